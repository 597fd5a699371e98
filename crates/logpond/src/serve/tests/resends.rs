//! Batches with names, sent more than once.

use std::thread;

use super::Pond;
use super::client::{Answer, get, request};

const EPOCH: &str = "0123456789abcdef0123456789abcdef";

fn send(pond: &Pond, name: &str, body: &[u8]) -> Answer {
    let headers = [("Content-Type", "text/plain"), ("Logpond-Batch", name)];
    request(pond.http(), "POST", "/api/v1/push", &headers, body)
}

fn name(sequence: u64, attempt: u32) -> String {
    format!("{EPOCH}-{sequence}-{attempt}@1763780000000")
}

fn count(pond: &Pond) -> u64 {
    let (_, trailer) = get(pond.http(), "/api/v1/query?count=true&from=@0").rows();
    assert_eq!(trailer["complete"], true);
    trailer["rows"].as_u64().unwrap()
}

fn metric(pond: &Pond, name: &str) -> u64 {
    let text = String::from_utf8(get(pond.http(), "/metrics").body).unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
    lines.next().unwrap().trim().parse().unwrap()
}

#[test]
fn a_batch_sent_again_is_there_once() {
    let mut pond = Pond::new();
    for attempt in [0, 1, 1, 2] {
        let answer = send(&pond, &name(0, attempt), b"a\nb\n");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["accepted"], 2, "as at the first time");
    }
    assert_eq!(send(&pond, &name(1, 0), b"c\n").json()["accepted"], 1);
    assert_eq!(count(&pond), 3);
    assert_eq!(metric(&pond, "logpond_ingest_resends_total "), 3);
    assert_eq!(metric(&pond, "logpond_ingest_resends_known_total "), 3);
    // What the journal holds is known after a restart.
    pond.restart();
    assert_eq!(send(&pond, &name(1, 1), b"c\n").json()["accepted"], 1);
    assert_eq!(count(&pond), 3);
    assert_eq!(metric(&pond, "logpond_ingest_resends_known_total "), 1);
}

/// All at once: one writes it, the others wait for the same sync.
#[test]
fn a_batch_that_is_being_written_is_joined() {
    let pond = Pond::new();
    thread::scope(|scope| {
        for attempt in 0..8 {
            let pond = &pond;
            scope.spawn(move || {
                let answer = send(pond, &name(0, attempt), b"a\nb\n");
                assert_eq!(answer.json()["accepted"], 2);
            });
        }
    });
    assert_eq!(count(&pond), 2);
}

#[test]
fn names_that_make_no_sense_are_refused() {
    let pond = Pond::new();
    let far = format!("{}0", name(0, 0));
    for name in ["", "x", "1-2-3", &name(0, 0).to_uppercase(), &far] {
        let answer = send(&pond, name, b"a\n");
        assert_eq!(answer.status, 400, "{name}");
        let message = answer.json()["error"]["message"].to_string();
        let explains = message.contains("logpond-batch") && message.contains("EPOCH");
        assert!(explains, "{message}");
    }
    let twice = [
        ("Content-Type", "text/plain"),
        ("Logpond-Batch", &*name(0, 0)),
        ("Logpond-Batch", &*name(1, 0)),
    ];
    let answer = request(pond.http(), "POST", "/api/v1/push", &twice, b"a\n");
    assert_eq!(answer.status, 400);
}

/// A batch with a name is stored as a whole or not at all; what is too large for that is refused.
#[test]
fn a_batch_with_a_name_has_bounds() {
    let pond = Pond::new();
    let answer = send(&pond, &name(0, 0), &vec![b'\n'; 65_537]);
    assert_eq!(answer.status, 400);
    let message = answer.json()["error"]["message"].to_string();
    assert!(message.contains("65536 entries"), "{message}");
    assert_eq!(send(&pond, &name(0, 0), &vec![b'\n'; 65_536]).status, 200);
    assert_eq!(count(&pond), 65_536);
}
