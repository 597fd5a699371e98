use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use logpond_record::line_of;

use super::*;
use crate::intake::body::BODY_BYTES_MAX;

/// 2026-03-02T00:00:00.000000007Z as `EventTime`.
const EVENT_TIME: &[u8] = b"\xd7\0\x69\xa4\xd3\0\0\0\0\x07";

/// Each record: kind, time, fields and line.
fn records(decoded: &DecodedEvents) -> Vec<String> {
    let each = decoded.batches.iter().flat_map(|batch| {
        batch.iter().map(|held| {
            let (kind, envelope, line) = line_of(batch.kind, held);
            let mut out = format!("{kind:?} {:?}", envelope.time.map(|time| time.0));
            for (name, value) in envelope.fields() {
                out += &format!(" {name}={}", value.to_text().escape_ascii());
            }
            out + " | " + &line.escape_ascii().to_string()
        })
    });
    each.collect()
}

fn text(value: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write::text(value.as_bytes(), &mut out);
    out
}

fn map(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    write::map(members.len() as u8, &mut out);
    for (name, value) in members {
        out.extend(text(name));
        out.extend(value);
    }
    out
}

fn list(values: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    write::list(values.len() as u8, &mut out);
    out.extend(values.concat());
    out
}

fn bytes(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write::bytes(value, &mut out);
    out
}

fn log(line: &str) -> Vec<u8> {
    map(&[("log", text(line))])
}

fn entry(line: &str) -> Vec<u8> {
    list(&[EVENT_TIME.to_vec(), log(line)])
}

fn one(message: &[u8]) -> DecodedEvents {
    let (mut parts, outcome) = decode(message, "peer", (BODY_BYTES_MAX, 40));
    assert_eq!(outcome, Ok(()), "{}", message.escape_ascii());
    // The first one is of those that want no acknowledgement.
    parts.pop().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const A: &str = "Line Some(1772409600000000007) tag=t hostname=peer | a";
const B: &str = "Line Some(1772409600000000007) tag=t hostname=peer | b";

#[test]
fn all_modes_give_the_same_records() {
    let (tag, time) = (text("t"), EVENT_TIME.to_vec());
    let both = [entry("a"), entry("b")];
    let packed = both.concat();
    let members = [gzip(&both[0]), gzip(&both[1])].concat();
    let zstd = zstd::stream::encode_all(&packed[..], 1).unwrap();
    let compressed = |name| map(&[("compressed", text(name)), ("size", vec![2])]);
    let with_metadata: Vec<_> = ["a", "b"]
        .map(|line| list(&[list(&[time.clone(), map(&[])]), log(line)]))
        .into();
    let messages = [
        [
            list(&[tag.clone(), time.clone(), log("a")]),
            list(&[tag.clone(), time.clone(), log("b"), map(&[])]),
        ]
        .concat(),
        list(&[tag.clone(), list(&both)]),
        list(&[tag.clone(), list(&both), vec![0xc0]]),
        list(&[tag.clone(), list(&with_metadata)]),
        list(&[tag.clone(), bytes(&packed)]),
        list(&[
            tag.clone(),
            bytes(&packed),
            map(&[("fluent_signal", vec![0])]),
        ]),
        list(&[tag.clone(), bytes(&members), compressed("gzip")]),
        list(&[tag.clone(), bytes(&zstd), compressed("zstd")]),
        list(&[tag.clone(), bytes(&packed), compressed("text")]),
        [vec![0xc0], list(&[tag, bytes(&packed)]), vec![0xc0]].concat(),
    ];
    for message in messages {
        let decoded = one(&message);
        assert_eq!(records(&decoded), [A, B], "{}", message.escape_ascii());
        assert_eq!((decoded.chunk, decoded.malformed), (None, 0));
    }
}

#[test]
fn records_become_lines_and_fields() {
    let number = |n: u8| vec![n];
    let table = [
        (
            map(&[
                ("stream", text("stdout")),
                ("log", text("{\"level\":\"info\"}\n")),
                (
                    "kubernetes",
                    map(&[("pod", text("p")), ("labels", map(&[("app", text("x"))]))]),
                ),
            ]),
            "Line None stream=stdout kubernetes.pod=p kubernetes.labels.app=x tag=t hostname=peer | \
             {\\\"level\\\":\\\"info\\\"}",
        ),
        (
            map(&[
                ("msg", text("b")),
                ("message", text("a")),
                ("hostname", text("h")),
            ]),
            "Line None msg=b hostname=h tag=t | a",
        ),
        (
            map(&[("log", number(7)), ("msg", text("b"))]),
            "Line None log=7 tag=t hostname=peer | b",
        ),
        // As bytes, which are no text.
        (
            map(&[("log", bytes(b"caf\xe9\n"))]),
            "Line None tag=t hostname=peer | caf\\xe9",
        ),
        (
            map(&[("n", number(7)), ("o", map(&[("a", vec![0xc0])]))]),
            "Json None tag=t hostname=peer | {\\\"n\\\":7,\\\"o\\\":{\\\"a\\\":null}}",
        ),
        (map(&[]), "Json None tag=t hostname=peer | {}"),
        (
            log("longer than forty bytes, which is the limit"),
            "Line None tag=t hostname=peer _truncated_bytes=43 | longer than forty bytes, which is the li",
        ),
    ];
    for (record, expected) in table {
        let decoded = one(&list(&[text("t"), number(0), record]));
        assert_eq!(records(&decoded), [expected]);
        assert_eq!(decoded.malformed, 0);
    }
    // What is no record is kept, and so are times that are none.
    let odd = list(&[text("t"), list(&[text("x"), list(&[number(1), number(2)])])]);
    let decoded = one(&odd);
    assert_eq!(
        records(&decoded),
        [
            "Line None tag=t hostname=peer | \\\"x\\\"",
            "Line Some(1000000000) tag=t hostname=peer | 2",
        ]
    );
    assert_eq!(decoded.malformed, 2);
}

#[test]
fn metadata_and_times() {
    let meta = map(&[("severity", text("warn"))]);
    let head = list(&[EVENT_TIME.to_vec(), meta]);
    let decoded = one(&list(&[
        text("t"),
        list(&[list(&[head.clone(), log("a")])]),
    ]));
    let expected = "Line Some(1772409600000000007) severity=warn tag=t hostname=peer | a";
    assert_eq!(records(&decoded), [expected]);
    assert_eq!(
        records(&one(&list(&[text("t"), head, log("a")]))),
        [expected]
    );
    for (time, said) in [
        (&b"\xce\x69\xa4\xd3\0"[..], "Some(1772409600000000000)"),
        (
            b"\xcb\x41\xda\x69\x34\xc0\x20\0\0",
            "Some(1772409600500000000)",
        ),
        (b"\xff", "None time=-1"),
        (b"\xc0", "None"),
    ] {
        let decoded = one(&list(&[text("t"), time.to_vec(), log("a")]));
        let expected = format!("Line {said} tag=t hostname=peer | a");
        assert_eq!(records(&decoded), [expected]);
    }
}

#[test]
fn metadata_and_the_tag_are_kept_beside_members_of_their_names() {
    let meta = map(&[("m", text("meta"))]);
    let head = list(&[EVENT_TIME.to_vec(), meta]);
    let members = [("log", text("a")), ("m", text("own")), ("tag", text("x"))];
    let decoded = one(&list(&[text("t"), head, map(&members)]));
    let expected = "Line Some(1772409600000000007) m=own tag=x m@label=meta tag@label=t \
                    hostname=peer | a";
    assert_eq!(records(&decoded), [expected]);
}

#[test]
fn chunks_are_told_apart_by_name_and_content() {
    let message = |tag: &str, events: Vec<u8>, name: Vec<u8>| {
        list(&[text(tag), events, map(&[("chunk", name)])])
    };
    let events = bytes(&entry("a"));
    let first = one(&message("t", events.clone(), text("c1")))
        .chunk
        .unwrap();
    let mut ack = Vec::new();
    first.write_ack(&mut ack);
    assert_eq!(ack, map(&[("ack", text("c1"))]));
    let again = one(&message("t", events.clone(), text("c1")))
        .chunk
        .unwrap();
    assert_eq!(first.identity(), again.identity());
    for other in [
        message("u", events.clone(), text("c1")),
        message("t", events.clone(), text("c2")),
        message("t", bytes(&entry("b")), text("c1")),
    ] {
        assert_ne!(one(&other).chunk.unwrap().identity(), first.identity());
    }
    // However it was compressed.
    let packed = bytes(&gzip(&entry("a")));
    let option = map(&[("compressed", text("gzip")), ("chunk", bytes(b"c1"))]);
    let compressed = one(&list(&[text("t"), packed, option])).chunk.unwrap();
    assert_eq!(first.identity(), compressed.identity());
    let mut ack = Vec::new();
    compressed.write_ack(&mut ack);
    assert_eq!(ack, map(&[("ack", bytes(b"c1"))]));
    // Messages without a chunk go together, and chunks each by itself.
    let plain = list(&[text("t"), events.clone()]);
    let stream = [
        plain.clone(),
        plain.clone(),
        message("t", events.clone(), text("c1")),
        message("t", events, text("c2")),
        plain,
    ];
    let (parts, outcome) = decode(&stream.concat(), "peer", (BODY_BYTES_MAX, 40));
    assert_eq!(outcome, Ok(()));
    let counts = parts
        .iter()
        .map(|part| (records(part).len(), part.chunk.is_some()));
    let expected = [(2, false), (1, true), (1, true), (1, false)];
    assert_eq!(counts.collect::<Vec<_>>(), expected);
    assert_eq!(parts[0].batches.len(), 1);
}

#[test]
fn what_is_no_message_ends_the_stream_behind_the_good_ones() {
    let good = list(&[text("t"), list(&[entry("a")])]);
    let packed = |events: &[u8], option| list(&[text("t"), bytes(events), map(&[option])]);
    let table = [
        vec![0x07],
        list(&[text("t")]),
        list(&[vec![7], list(&[])]),
        list(&[text("t"), vec![7]]),
        list(&[text("t"), list(&[]), vec![7]]),
        list(&[text("t"), bytes(b"\xc1")]),
        list(&[text("t"), bytes(&entry("a")[..5])]),
        list(&[text("t"), text("noon"), log("a")]),
        packed(b"", ("compressed", text("lz4"))),
        packed(b"x", ("compressed", text("gzip"))),
        packed(b"", ("chunk", vec![7])),
        packed(b"", ("fluent_signal", vec![1])),
        list(&[text("t"), vec![7], map(&[])])[..3].to_vec(),
    ];
    for bad in table {
        let stream = [good.clone(), bad.clone(), good.clone()].concat();
        let (parts, outcome) = decode(&stream, "peer", (BODY_BYTES_MAX, 40));
        assert!(outcome.is_err(), "{}", bad.escape_ascii());
        let taken: Vec<_> = parts.iter().flat_map(records).collect();
        assert_eq!(taken, [A], "{}", bad.escape_ascii());
    }
}

/// Bombs, records with too many fields, and more than a batch holds.
#[test]
fn what_is_held_is_bounded() {
    let bomb = gzip(&vec![0xc0; 100 << 20]);
    let message = list(&[
        text("t"),
        bytes(&bomb),
        map(&[("compressed", text("gzip"))]),
    ]);
    let (_, outcome) = decode(&message, "peer", (BODY_BYTES_MAX, 40));
    assert!(matches!(outcome, Err(FluentError::Compressed(_))));
    let mut many = vec![0xde, 0x10, 0x00];
    (0..0x1000).for_each(|n| many.extend([text(&format!("n{n}")), vec![1]].concat()));
    let decoded = decode(
        &list(&[text("t"), vec![0], many]),
        "peer",
        (BODY_BYTES_MAX, 1 << 20),
    )
    .0;
    let records = records(&decoded[0]);
    assert!(
        records[0].starts_with("Json None tag=t hostname=peer | {\\\"n0\\\":1,\\\"n1\\\""),
        "{}",
        records.len()
    );
    let packed = entry("a").repeat(BATCH_RECORDS_MAX + 1);
    let decoded = one(&list(&[text("t"), bytes(&packed)]));
    let lengths: Vec<_> = decoded.batches.iter().map(Batch::len).collect();
    assert_eq!(lengths, [BATCH_RECORDS_MAX, 1]);
    let long = entry(&"x".repeat(3 << 20)).repeat(5);
    let (parts, _) = decode(
        &list(&[text("t"), bytes(&long)]),
        "peer",
        (BODY_BYTES_MAX, 4 << 20),
    );
    let lengths: Vec<_> = parts[0].batches.iter().map(Batch::len).collect();
    assert_eq!(lengths, [3, 2]);
}

#[test]
fn a_ping_is_read_and_greetings_are_written() {
    let ping = list(&[
        text("PING"),
        text("client"),
        bytes(b"salt"),
        text("proof"),
        text("ann"),
        text("secret"),
    ]);
    let read = read_ping(&ping).unwrap();
    assert_eq!((read.hostname, read.salt), (&b"client"[..], &b"salt"[..]));
    assert_eq!((read.proof, read.user), (&b"proof"[..], &b"ann"[..]));
    assert_eq!(read.password_proof, b"secret");
    let end = ping.len();
    for bad in [
        &ping[..end - 1],
        b"\xc0",
        &list(&[text("PING")]),
        &ping[1..],
    ] {
        assert_eq!(read_ping(bad), Err(NotAPing));
    }
    let mut hello = Vec::new();
    write_hello(b"n", b"", &mut hello);
    let options = [
        ("nonce", bytes(b"n")),
        ("auth", bytes(b"")),
        ("keepalive", vec![0xc3]),
    ];
    assert_eq!(hello, list(&[text("HELO"), map(&options)]));
    for (outcome, said) in [
        (
            Ok("proof"),
            [vec![0xc3], text(""), text("own"), text("proof")],
        ),
        (Err("no"), [vec![0xc2], text("no"), text("own"), text("")]),
    ] {
        let mut pong = Vec::new();
        write_pong(outcome, "own", &mut pong);
        assert_eq!(pong, list(&[&[text("PONG")][..], &said].concat()));
    }
}
