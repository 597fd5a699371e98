//! Whole journal files over TCP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

use logpond_record::{Batch, EntryKind, Incarnation, Labels, SourceId, Timestamp};
use logpond_segment::batches::BatchId;
use logpond_segment::journal::UploadWriter;
use serde_json::Value;

use super::TestServer;
use super::client::{connect, get};
use logpond_host::telemetry::Intake;

/// A batch of the producer that all tests are.
struct Frame {
    kind: EntryKind,
    sequence: u64,
    attempt: u32,
    lines: Vec<Vec<u8>>,
}

impl Frame {
    fn new(sequence: u64, lines: &[&[u8]]) -> Frame {
        Frame {
            kind: EntryKind::Line,
            sequence,
            attempt: 0,
            lines: lines.iter().map(|line| line.to_vec()).collect(),
        }
    }

    fn again(self) -> Frame {
        let attempt = self.attempt + 1;
        Frame { attempt, ..self }
    }

    fn json(self) -> Frame {
        let kind = EntryKind::Json;
        Frame { kind, ..self }
    }
}

fn upload(frames: &[Frame]) -> Vec<u8> {
    let source = SourceId {
        incarnation: Incarnation(9),
        sequence: 0,
    };
    let (mut writer, header) = UploadWriter::begin(source, Timestamp(0));
    let mut bytes = header.to_vec();
    for frame in frames {
        let labels: Labels = vec![("hostname".into(), "ash".into())];
        let mut batch = Batch::new(frame.kind, labels);
        frame.lines.iter().for_each(|line| batch.push(line));
        let id = BatchId {
            epoch: 0xb01d,
            sequence: frame.sequence,
            attempt: frame.attempt,
            first_sent: Timestamp(1_763_780_000_000_000_000),
            more: 0,
        };
        let frame = writer.frame(&batch, id, Timestamp(0)).unwrap();
        bytes.extend_from_slice(frame);
    }
    bytes.extend_from_slice(&writer.end());
    bytes
}

fn open(server: &TestServer) -> (TcpStream, BufReader<TcpStream>) {
    let stream = connect(server.address(Intake::Bulk));
    let answers = BufReader::new(stream.try_clone().unwrap());
    (stream, answers)
}

fn answer(answers: &mut BufReader<TcpStream>) -> Value {
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    read(&line)
}

/// An answer without its hint of the load, which is that of the disk under the test.
fn read(line: &str) -> Value {
    let mut answer: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: '{line}'"));
    let load = answer
        .as_object_mut()
        .and_then(|answer| answer.remove("load"));
    let known = ["green", "yellow", "red"];
    assert!(
        load.is_none_or(|load| known.contains(&load.as_str().unwrap_or(""))),
        "{line}"
    );
    answer
}

/// Sends these bytes, ends the sending side, and reads all answers.
fn exchange(server: &TestServer, bytes: &[u8]) -> Vec<Value> {
    let (mut stream, answers) = open(server);
    stream.write_all(bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let lines = answers.lines().map(Result::unwrap);
    lines.map(|line| read(&line)).collect()
}

fn found(server: &TestServer) -> Vec<String> {
    let (rows, trailer) = get(server.http(), "/api/v1/query?fields=raw&from=@0").rows();
    assert_eq!(trailer["complete"], true);
    let lines = rows.iter().map(|row| row["_line"].as_str().unwrap());
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    lines.sort();
    lines
}

fn accepted(count: u64) -> Value {
    serde_json::json!({
        "accepted": count, "durable": true, "replicated": true,
        "rejected": [], "rejected_total": 0,
    })
}

#[test]
fn each_upload_is_answered_in_turn() {
    let mut server = TestServer::new();
    let (mut stream, mut answers) = open(&server);
    let first = upload(&[Frame::new(0, &[b"a", b"b"]), Frame::new(1, &[b"c"])]);
    stream.write_all(&first).unwrap();
    assert_eq!(answer(&mut answers), accepted(3));
    // Three more without waiting, one of them empty.
    let rest = [
        upload(&[Frame::new(2, &[b"d"])]),
        upload(&[]),
        upload(&[Frame::new(3, &[b"e", b"f"])]),
    ];
    stream.write_all(&rest.concat()).unwrap();
    for count in [1, 0, 2] {
        assert_eq!(answer(&mut answers), accepted(count));
    }
    let (rows, _) = get(server.http(), "/api/v1/query?from=@0").rows();
    assert!(rows.iter().all(|row| row["hostname"] == "ash"));
    assert_eq!(found(&server), ["a", "b", "c", "d", "e", "f"]);
    // The connection is still open; the drain ends it with a reason.
    server.stop();
    let last = answer(&mut answers);
    assert_eq!(last["retry"], true, "{last}");
    assert_eq!(answers.read_to_string(&mut String::new()).unwrap(), 0);
}

#[test]
fn an_upload_sent_again_counts_once() {
    let server = TestServer::new();
    let frames = || vec![Frame::new(0, &[b"a", b"b"]), Frame::new(1, &[b"c"])];
    let again = || frames().into_iter().map(Frame::again).collect::<Vec<_>>();
    // Broken off within its second frame: nothing was acknowledged, the first may be kept.
    let whole = upload(&frames());
    let torn = exchange(&server, &whole[..whole.len() - 100]);
    assert_eq!(torn.len(), 1, "{torn:?}");
    assert_eq!(
        (&torn[0]["retry"], &torn[0]["accepted"]),
        (&true.into(), &Value::Null)
    );
    let bytes = [upload(&again()), upload(&again())].concat();
    assert_eq!(exchange(&server, &bytes), [accepted(3), accepted(3)]);
    assert_eq!(found(&server), ["a", "b", "c"]);
}

#[test]
fn what_is_not_taken_is_named_by_its_number_in_the_upload() {
    let server = TestServer::new();
    let long = vec![b'x'; (1 << 20) + 1];
    let frames = [
        Frame::new(0, &[b"a", &long, b"b"]),
        Frame::new(1, &[b"{\"n\":1}", b"{\"n\":"]).json(),
    ];
    let answers = exchange(&server, &upload(&frames));
    assert_eq!(answers[0]["accepted"], 3);
    assert_eq!(answers[0]["rejected_total"], 2);
    let rejected = answers[0]["rejected"].as_array().unwrap();
    let lines: Vec<_> = rejected
        .iter()
        .map(|r| r["line"].as_u64().unwrap())
        .collect();
    assert_eq!(lines, [2, 5]);
    let reasons: Vec<_> = rejected.iter().map(|r| r["reason"].to_string()).collect();
    assert!(reasons[0].contains("1048577 bytes"), "{reasons:?}");
    assert!(reasons[1].contains("not a JSON object"), "{reasons:?}");
    assert_eq!(found(&server).len(), 3);
}

/// What is no upload is told so at once, and nothing of it is kept.
#[test]
fn other_bytes_are_refused_with_a_reason() {
    let server = TestServer::new();
    let good = upload(&[Frame::new(0, &[b"a"])]);
    let flipped = {
        let mut bytes = good.clone();
        let at = bytes.len() - 80;
        bytes[at] ^= 1;
        bytes
    };
    let golden = include_bytes!("../../../../../testdata/journal/v1.journal");
    let table: [(&[u8], &str); 4] = [
        (b"hello\n", "no journal file begins here"),
        (&flipped, "frame 1: the frame's checksum is wrong"),
        (golden, "frame 1 has no batch identity"),
        (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello",
            "no journal file begins here",
        ),
    ];
    for (bytes, reason) in table {
        let (mut stream, mut answers) = open(&server);
        stream.write_all(bytes).unwrap();
        // The sending side stays open: the answer does not wait for more.
        let answer = answer(&mut answers);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(reason), "{message}");
        assert_eq!(answer["retry"], false);
        drop(stream);
    }
    // Nothing at all is no mistake.
    assert_eq!(exchange(&server, b""), [] as [Value; 0]);
    assert_eq!(found(&server), [] as [String; 0]);
}
