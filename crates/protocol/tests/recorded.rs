//! Requests that clients sent, byte for byte: the records in them are those of `testdata/clients/recorded.txt`.
//!
//! The files are in `testdata/clients/recorded`. Their extension says what they are:
//!
//! | extension | request |
//! | --- | --- |
//! | `bulk` | body of Elasticsearch's `_bulk` |
//! | `loki` | body of a push of Loki, as JSON |
//! | `otlp`, `otlp-json` | body of an export of OpenTelemetry; `otlp.gz` is compressed |
//! | `gelf` | a datagram of GELF, or a message of one chunk |
//! | `gelf-tcp` | a stream of GELF |
//! | `hec` | body of events for Splunk's collector |
//! | `fluent` | a stream of the Forward protocol |
//! | `syslog` | a stream of syslog |
//! | `lines` | a stream of lines |
//!
//! Some programs take too long to build for a test. `otelcol-MODE.bulk` has the bodies of all requests that
//! `elasticsearchexporter` 0.120.0 of the OpenTelemetry Collector sent in a mapping mode.

mod records;

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use expect_test::expect_file;
use logpond_protocol::intake::Parser;
use logpond_protocol::intake::body::{BODY_BYTES_MAX, Encoding, decompressed};
use logpond_protocol::intake::frames::{FrameSplitter, trim_end};
use logpond_protocol::intake::push::{elastic, fluent, gelf, loki, otlp, splunk};
use logpond_record::limits::LINE_BYTES_DEFAULT;
use logpond_record::{
    Batch, Entry, EntryKind, Id, Labels, Record, Severity, TimeSource, Timestamp, line_of,
};
use records::{message, severity};

/// When all of them are received: 2026-11-27T15:00:00Z.
const RECEIVED: Timestamp = Timestamp(1_795_791_600_000_000_000);

/// The most letters of a value that are shown.
const SHOWN_LETTERS_MAX: usize = 100;

/// A batch of messages without fields.
fn batch_of<'m>(kind: EntryKind, messages: impl Iterator<Item = &'m [u8]>) -> Batch {
    let mut batch = Batch::new(kind, Labels::new());
    for message in messages {
        batch.push(message);
    }
    batch
}

/// The batches of a request.
fn batches(extension: &str, body: &[u8]) -> Vec<Batch> {
    let most = LINE_BYTES_DEFAULT;
    let labels = Labels::new;
    match extension {
        "bulk" => {
            let names = elastic::Names {
                index: None,
                id: None,
            };
            let bulk = elastic::decode(body, names, labels(), most).unwrap();
            assert!(bulk.items.iter().all(|item| item.outcome.is_ok()));
            vec![bulk.batch]
        }
        "loki" => vec![loki::decode_json(body, labels(), most).unwrap().batch],
        "otlp-json" => vec![otlp::decode_json(body, labels(), most).unwrap().batch],
        "otlp" => vec![otlp::decode_protobuf(body, labels(), most).unwrap().batch],
        "gelf" => {
            let mut chunks = gelf::Chunks::default();
            let message = chunks.take(0, body, Duration::ZERO).unwrap();
            vec![
                gelf::decode_body(&message, BODY_BYTES_MAX, most)
                    .unwrap()
                    .batch,
            ]
        }
        "gelf-tcp" => {
            let messages = body
                .split(|byte| matches!(byte, 0 | b'\n'))
                .filter(|message| !message.is_empty());
            let decoded = gelf::decode(&batch_of(EntryKind::Line, messages), 0, most);
            assert_eq!((decoded.malformed, decoded.lost), (0, 0));
            vec![decoded.batch]
        }
        "hec" => {
            let events = splunk::decode(body, &splunk::Metadata::default(), most).unwrap();
            assert_eq!(events.bad, []);
            vec![events.batch]
        }
        "fluent" => {
            let (decoded, outcome) = fluent::decode(body, "web-1", (BODY_BYTES_MAX, most));
            assert_eq!(outcome, Ok(()));
            decoded
                .into_iter()
                .flat_map(|decoded| decoded.batches)
                .collect()
        }
        "syslog" => {
            let mut messages: Vec<Vec<u8>> = Vec::new();
            let mut splitter = FrameSplitter::default();
            splitter.feed(body, |frame| messages.push(trim_end(frame.bytes).to_vec()));
            splitter.finish(|frame| messages.push(trim_end(frame.bytes).to_vec()));
            vec![batch_of(
                EntryKind::Syslog,
                messages.iter().map(Vec::as_slice),
            )]
        }
        "lines" => {
            let lines = body
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty());
            vec![batch_of(EntryKind::Line, lines)]
        }
        other => panic!("no request is called {other}"),
    }
}

/// A value on one line, cut to what tells it from others.
fn shortened(text: &str) -> String {
    let text = text.escape_debug().to_string();
    match text.char_indices().nth(SHOWN_LETTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn describe(record: &Record<'_>) -> String {
    let time = jiff::Timestamp::from_nanosecond(record.time.0.into()).unwrap();
    let level = severity(record).map_or("none", Severity::name);
    let source = record.time_source;
    // The arrival is the same for all.
    let time = match source {
        TimeSource::Received => String::new(),
        _ => time.to_string(),
    };
    let message = shortened(&message(record));
    let mut out = format!("  {} {time} {level} | {message} |", source.as_str());
    for (name, value) in record.fields() {
        let value = value.to_text();
        let _ = write!(
            out,
            " {name}={}",
            shortened(&String::from_utf8_lossy(&value))
        );
    }
    out
}

#[test]
fn requests_of_clients_have_these_records() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/clients/recorded");
    let mut files: Vec<_> = folder
        .read_dir()
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let mut out = String::new();
    let mut parser = Parser::new();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let body = std::fs::read(&file).unwrap();
        let (plain, encoding) = match name.strip_suffix(".gz") {
            Some(plain) => (plain, Encoding::Gzip),
            None => (name, Encoding::Identity),
        };
        let body = decompressed(&body, encoding, BODY_BYTES_MAX).unwrap();
        let (_, extension) = plain.rsplit_once('.').unwrap();
        let _ = writeln!(out, "{name}");
        for batch in batches(extension, &body) {
            for held in batch.iter() {
                let (kind, envelope, raw) = line_of(batch.kind, held);
                let record = parser.parse(&Entry {
                    id: Id::MIN,
                    received: RECEIVED,
                    kind,
                    labels: &batch.labels,
                    envelope,
                    raw,
                });
                let mut rebuilt = Vec::new();
                record.write_line(&mut rebuilt);
                assert_eq!(rebuilt, raw, "{name}");
                let _ = writeln!(out, "{}", describe(&record));
            }
        }
    }
    expect_file!["../../../testdata/clients/recorded.txt"].assert_eq(&out);
}
