//! Entry points for fuzzing: each takes any bytes and panics if an invariant does not hold.

use std::time::Duration;

use logpond_record::{Batch, Entry, EntryKind, Envelope, Id, Labels, Timestamp, envelope, line_of};

use super::access_format::{AccessFormat, LABEL_PREFIX};
use super::assembly::{AssembledRecord, Assembler, Settings};
use super::body::{BODY_BYTES_MAX, BodyError, Decoder, Encoding};
use super::container::{Format, Part};
use super::frames::{Frame, FrameSplitter, START_BYTES_MAX};
use super::journal_entry::{DERIVED, Sealer, fields_of};
use super::journal_export::{ENTRY_BYTES_MAX, ExportSplitter, Exported, write_entry};
use super::journal_file::{Item, JournalFile};
use super::lines::{Line, LineSplitter};
use super::multiline::Rule;
use super::parser::{Parser, rebuilds};
use super::push::{
    PushForm, datadog, decode, elastic, firehose, fluent, gelf, logplex, loki, otlp, pubsub, splunk,
};
use super::timezone;
use super::{cri, docker, json};

/// 2026-03-02T00:00:00Z.
const RECEIVED: Timestamp = Timestamp(1_772_409_600_000_000_000);

/// Small, so that short inputs reach it.
const FRAME_BYTES_MAX: usize = 64;

/// Readers that are stopped, of one input: each reads again what was held, so many cost much.
const STOPS_MAX: usize = 32;

/// Any bytes as a syslog message.
pub fn fuzz_syslog(data: &[u8]) {
    round_trip(EntryKind::Syslog, data);
}

/// Any bytes as a line: JSON, access log, logfmt or text.
pub fn fuzz_line(data: &[u8]) {
    round_trip(EntryKind::Line, data);
}

/// Any bytes behind what an access log line begins with.
pub fn fuzz_access(data: &[u8]) {
    let mut line = b"192.0.2.1 - - [02/Mar/2026:00:00:06 +0000] \"".to_vec();
    line.extend_from_slice(data);
    round_trip(EntryKind::Line, &line);
}

/// Any bytes behind what a record of the audit system begins with, and as what a program says in one.
pub fn fuzz_audit(data: &[u8]) {
    for (before, after) in [
        ("type=SYSCALL msg=audit(1772409600.123:456): ", ""),
        ("type=EXECVE msg=audit(1772409600.123:456): a0=", ""),
        (
            "type=USER msg=audit(1772409600.123:456): pid=1 msg='",
            "'\u{1d}UID=\"root\"",
        ),
        (
            "audit: type=1400 audit(1772409600.123:456): avc:  denied  { ",
            " } for pid=1",
        ),
    ] {
        let line = [before.as_bytes(), data, after.as_bytes()].concat();
        round_trip(EntryKind::Line, &line);
        round_trip(
            EntryKind::Syslog,
            &[b"<13>ash auditd: ", &line[..]].concat(),
        );
    }
}

/// Any bytes as a format of an access log, in the first line, and as lines of it.
pub fn fuzz_access_format(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (definition, lines) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(_) = AccessFormat::new(definition) else {
        return;
    };
    let labels: Labels = vec![(format!("{LABEL_PREFIX}any").into(), definition.into())];
    for (kind, line) in lines
        .lines()
        .flat_map(|line| [EntryKind::Line, EntryKind::Syslog].map(|kind| (kind, line.as_bytes())))
    {
        round_trip_of(kind, &labels, line);
    }
}

/// Any bytes as a zone's rules, in the first line, and as lines with times in it.
pub fn fuzz_timezone(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (rule, lines) = text.split_once('\n').unwrap_or((&text, ""));
    let labels: Labels = vec![(timezone::LABEL.into(), rule.into())];
    for line in lines.lines() {
        for kind in [EntryKind::Line, EntryKind::Syslog] {
            round_trip_of(kind, &labels, line.as_bytes());
        }
    }
}

/// Any bytes as JSON: what validation accepts is a record with fields.
pub fn fuzz_json(data: &[u8]) {
    round_trip(EntryKind::Json, data);
    let valid = json::validate(data).is_ok();
    let flattened = std::str::from_utf8(data).is_ok_and(json::is_object);
    assert_eq!(
        valid,
        flattened,
        "two readers differ about {}",
        data.escape_ascii()
    );
}

/// Any bytes as a line of Docker's files, alone and as the text of one.
pub fn fuzz_docker(data: &[u8]) {
    check_part(docker::parse(data), data);
    let text = String::from_utf8_lossy(data);
    let log = serde_json::Value::from(&*text);
    let line = format!("{{\"log\":{log},\"stream\":\"stderr\",\"time\":\"2026-03-02T00:00:06Z\"}}");
    let part = docker::parse(line.as_bytes()).expect("it is such a line");
    assert_eq!(
        &*part.text,
        text.strip_suffix('\n').unwrap_or(&text).as_bytes()
    );
    assert_eq!(part.is_last, text.ends_with('\n'));
}

/// Any bytes as a line of Kubernetes' files, alone and as the text of one.
pub fn fuzz_cri(data: &[u8]) {
    check_part(cri::parse(data), data);
    let line = [b"2026-03-02T00:00:06Z stdout P ", data].concat();
    let part = cri::parse(&line).expect("it is such a line");
    assert!(*part.text == *data && !part.is_last);
}

fn check_part(part: Option<Part<'_>>, line: &[u8]) {
    if let Some(part) = part {
        assert!(part.text.len() <= line.len());
    }
}

/// Any bytes as a file of each format: read at once, and by readers that are stopped after each line
/// and go on from what was held.
pub fn fuzz_assembly(data: &[u8]) {
    for (format, rule) in [
        (Format::Docker, None),
        (Format::Cri, None),
        (Format::Lines, Some(Rule::stacktrace())),
        (Format::Lines, Some(Rule::auto())),
        (Format::Docker, Some(Rule::sql())),
        (Format::Cri, Some(Rule::indent())),
        (Format::Cri, Some(Rule::auto())),
    ] {
        let settings = Settings {
            line_bytes_max: FRAME_BYTES_MAX,
            rule,
            ..Settings::of(format)
        };
        let mut starts = Vec::new();
        let mut offset = 0;
        for line in data.split(|byte| *byte == b'\n') {
            starts.push((offset, line));
            offset += line.len() as u64 + 1;
        }
        let now = Duration::ZERO;
        let records = [
            std::cell::RefCell::new(Vec::new()),
            std::cell::RefCell::new(Vec::new()),
        ];
        let keep = |way: usize, record: AssembledRecord<'_>| {
            assert!(record.line.len() <= FRAME_BYTES_MAX);
            let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
            record.push_to(&mut batch);
            records[way].borrow_mut().push(batch);
        };
        let mut whole = Assembler::new(settings.clone());
        for (start, line) in &starts {
            whole.push(line, *start, now, &mut |record| keep(0, record));
        }
        whole.finish(&mut |record| keep(0, record));
        let (mut at, mut held) = (0, [None; 3]);
        for end in 1..=starts.len().min(STOPS_MAX) {
            let is_last = end == starts.len().min(STOPS_MAX);
            let end = if is_last { starts.len() } else { end };
            let mut part = Assembler::resume(settings.clone(), at, held);
            part.learn(data);
            let from = part.reads_from();
            for (start, line) in starts[..end].iter().filter(|(start, _)| *start >= from) {
                part.push(line, *start, now, &mut |record| keep(1, record));
            }
            at = starts.get(end).map_or(offset, |(start, _)| *start);
            held = part.held();
            if is_last {
                part.finish(&mut |record| keep(1, record));
            }
        }
        let [first, second] = records;
        assert_eq!(first.into_inner(), second.into_inner(), "stops matter");
    }
}

/// Any bytes as lines that rules put together: the lines of the records are those that there were.
pub fn fuzz_multiline(data: &[u8]) {
    let rules = [
        Rule::auto(),
        Rule::stacktrace(),
        Rule::indent(),
        Rule::sql(),
        Rule::timestamp(),
        Rule::starting(|line| line.len() % 2 == 0),
    ];
    for rule in rules {
        let mut assembler = Assembler::new(Settings {
            rule: Some(rule),
            ..Settings::of(Format::Lines)
        });
        let mut text = Vec::new();
        let mut take = |record: AssembledRecord<'_>| {
            text.extend_from_slice(record.line);
            text.push(b'\n');
        };
        let mut start = 0;
        for line in data.split(|byte| *byte == b'\n') {
            assembler.push(line, start, Duration::ZERO, &mut take);
            start += line.len() as u64 + 1;
        }
        assembler.finish(&mut take);
        text.pop();
        assert_eq!(text, data);
    }
}

/// Any bytes as the body of a push, in all forms.
pub fn fuzz_push(data: &[u8]) {
    for form in [PushForm::NdJson, PushForm::Text, PushForm::Entries] {
        let Ok(pushed) = decode(form, data, Labels::new(), FRAME_BYTES_MAX) else {
            continue;
        };
        assert_eq!(pushed.accepted, pushed.batch.len());
        assert!(pushed.rejected.len() <= pushed.rejected_total);
        for held in pushed.batch.iter() {
            let (kind, _, line) = line_of(pushed.batch.kind, held);
            assert!(line.len() <= FRAME_BYTES_MAX);
            round_trip(kind, line);
        }
    }
}

/// Any bytes as bodies of the push APIs of others.
pub fn fuzz_shippers(data: &[u8]) {
    let pushed = [
        loki::decode_json(data, Labels::new(), FRAME_BYTES_MAX).ok(),
        loki::decode_protobuf(data, Labels::new(), FRAME_BYTES_MAX).ok(),
        otlp::decode_json(data, Labels::new(), FRAME_BYTES_MAX).ok(),
        otlp::decode_protobuf(data, Labels::new(), FRAME_BYTES_MAX).ok(),
    ];
    let pushed = pushed.into_iter().flatten().map(|pushed| pushed.batch);
    let names = elastic::Names {
        index: Some("index"),
        id: None,
    };
    let bulk = elastic::decode(data, names, Labels::new(), FRAME_BYTES_MAX);
    let events = splunk::decode(data, &splunk::Metadata::default(), FRAME_BYTES_MAX).ok();
    for batch in pushed
        .chain(bulk.ok().map(|bulk| bulk.batch))
        .chain(events.map(|events| events.batch))
        .chain(
            pubsub::decode(data, FRAME_BYTES_MAX)
                .ok()
                .map(|read| read.pushed.batch),
        )
        .chain(
            firehose::decode(data, Labels::new(), (BODY_BYTES_MAX, FRAME_BYTES_MAX))
                .ok()
                .map(|read| read.pushed.batch),
        )
        .chain(
            datadog::decode(data, Labels::new(), FRAME_BYTES_MAX)
                .ok()
                .map(|pushed| pushed.batch),
        )
        .chain(
            logplex::decode(data, Labels::new(), None, FRAME_BYTES_MAX)
                .ok()
                .map(|pushed| pushed.batch),
        )
    {
        for held in batch.iter() {
            let (_, _, line) = envelope::open(held).expect("what was sealed is opened");
            assert!(line.len() <= FRAME_BYTES_MAX);
        }
    }
}

/// Any bytes as a body of GELF, as messages one by one, and as datagrams of chunks: all of it is kept,
/// or counted as lost.
pub fn fuzz_gelf(data: &[u8]) {
    let _ = gelf::decode_body(data, BODY_BYTES_MAX, FRAME_BYTES_MAX);
    let labels = vec![("hostname".into(), "peer".into())];
    let mut messages = Batch::new(EntryKind::Line, labels);
    let mut chunks = gelf::Chunks::default();
    messages.push(data);
    for part in data.split(|byte| *byte == b'\n') {
        messages.push(part);
        let chunk = [b"\x1e\x0f", part].concat();
        if let Some(whole) = chunks.take(1, &chunk, Duration::ZERO) {
            messages.push(&whole);
        }
    }
    chunks.expire(gelf::ASSEMBLY_TIME_MAX);
    assert_eq!(chunks.held_bytes(), 0);
    let (mut taken, mut kept) = (0, 0);
    while taken < messages.len() {
        let decoded = gelf::decode(&messages, taken, FRAME_BYTES_MAX);
        assert!(decoded.taken > 0);
        taken += decoded.taken;
        kept += decoded.batch.len() + decoded.lost;
        for held in decoded.batch.iter() {
            let (kind, envelope, line) = envelope::open(held).expect("what was sealed is opened");
            assert!(line.len() <= FRAME_BYTES_MAX);
            assert!(envelope.fields().any(|(name, _)| name == "hostname"));
            round_trip(kind, line);
        }
    }
    assert_eq!(kept, messages.len());
}

/// Any bytes as a stream of the Forward protocol: what is decoded is sealed, and ends are found
/// wherever the stream is cut.
pub fn fuzz_fluent(data: &[u8]) {
    let _ = fluent::read_ping(data);
    let (parts, _) = fluent::decode(data, "sender", (BODY_BYTES_MAX, FRAME_BYTES_MAX));
    for part in parts {
        for held in part.batches.iter().flat_map(Batch::iter) {
            let (kind, envelope, line) = envelope::open(held).expect("what was sealed is opened");
            assert!(line.len() <= FRAME_BYTES_MAX);
            assert!(envelope.fields().any(|(name, _)| name == "tag"));
            assert!(kind != EntryKind::Json || json::validate(line).is_ok());
        }
        let mut ack = Vec::new();
        if let Some(chunk) = part.chunk {
            chunk.write_ack(&mut ack);
            assert_eq!(
                fluent::ValueEnd::default().find(&ack, 1 << 20),
                Ok(Some(ack.len()))
            );
        }
    }
    let whole = fluent::ValueEnd::default().find(data, 1 << 16);
    let mut end = fluent::ValueEnd::default();
    let lengths = 0..=data.len();
    let mut bit_by_bit = lengths.map(|length| end.find(&data[..length], 1 << 16));
    let decided = bit_by_bit.find(|found| *found != Ok(None));
    assert_eq!(decided.unwrap_or(Ok(None)), whole);
}

/// Any bytes as a stream of syslog frames and of lines, whole and byte by byte.
pub fn fuzz_frames(data: &[u8]) {
    let mut lines = [Vec::new(), Vec::new()];
    // The end of the first frame tells how the others end.
    for first in [&b"<0>x\n"[..], b"<0>x\0"] {
        let mut frames = [Vec::new(), Vec::new()];
        for (frames, chunk) in frames.iter_mut().zip([data.len().max(1), 1]) {
            let mut splitter = FrameSplitter::new(FRAME_BYTES_MAX);
            let mut take = |f: Frame<'_>| frames.push((f.bytes.to_vec(), f.truncated_bytes));
            splitter.feed(first, &mut take);
            for part in data.chunks(chunk) {
                splitter.feed(part, &mut take);
                assert!(splitter.held_bytes() <= FRAME_BYTES_MAX + START_BYTES_MAX);
            }
            splitter.finish(&mut take);
        }
        assert_eq!(frames[0], frames[1], "chunks matter to frames");
    }
    for (way, chunk) in [data.len().max(1), 1].into_iter().enumerate() {
        let mut splitter = LineSplitter::new(FRAME_BYTES_MAX);
        let lines = &mut lines[way];
        let mut take = |l: Line<'_>| lines.push((l.bytes.to_vec(), l.truncated_bytes));
        for part in data.chunks(chunk) {
            splitter.feed(part, &mut take);
        }
        splitter.finish(&mut take);
    }
    assert_eq!(lines[0], lines[1], "chunks matter to lines");
}

/// Any bytes as a journal in export format, whole and byte by byte: what is an entry is a record from
/// which the entry is made again.
pub fn fuzz_journal_export(data: &[u8]) {
    let mut ways = [Vec::new(), Vec::new()];
    for (way, chunk) in ways.iter_mut().zip([data.len().max(1), 1]) {
        let mut splitter = ExportSplitter::new();
        let mut sealer = Sealer::new(FRAME_BYTES_MAX);
        let take = |entry: Exported<'_>, way: &mut Vec<Vec<u8>>| {
            let Ok(fields) = entry else {
                return way.push(b"rejected".to_vec());
            };
            let mut written = Vec::new();
            write_entry(fields.iter(), &mut written);
            way.push(written);
            check_sealed(&mut sealer, &fields.iter().collect::<Vec<_>>());
        };
        let mut take = take;
        let mut fed = data.chunks(chunk);
        let end = fed.try_for_each(|part| splitter.feed(part, |entry| take(entry, way)));
        way.push(format!("{end:?} {:?}", splitter.partial()).into_bytes());
    }
    assert_eq!(ways[0], ways[1], "chunks matter to entries");
}

/// Any bytes as a journal file, and behind the beginning of one: it ends, and its entries are bounded.
pub fn fuzz_journal_file(data: &[u8]) {
    let mut whole = b"LPKSHHRH\0\0\0\0\x1a\0\0\0".to_vec();
    whole.extend_from_slice(data);
    for bytes in [data, &whole] {
        let Ok(mut file) = JournalFile::open(bytes, bytes.len() as u64) else {
            continue;
        };
        let mut items = 0;
        while let Ok(Some(item)) = file.read_next() {
            items += 1;
            assert!(items <= bytes.len(), "the file does not end");
            if let Item::Entry(Ok(fields)) = item {
                let bytes: usize = fields
                    .iter()
                    .map(|(name, value)| name.len() + value.len())
                    .sum();
                assert!(bytes <= ENTRY_BYTES_MAX);
            }
        }
    }
}

/// Any bytes as xz and as LZ4 of systemd, from the begin and behind what xz begins with: cut or not, the
/// same comes of them.
pub fn fuzz_unpack(data: &[u8]) {
    const BEGIN: [u8; 24] =
        *b"\xfd7zXZ\0\0\0\xff\x12\xd9\x41\x02\0\x21\x01\0\0\0\0\x37\x27\x97\xd6";
    const BYTES_MAX: usize = 1 << 20;
    let behind = [&BEGIN[..], data].concat();
    for (encoding, body) in [
        (Encoding::Xz, data),
        (Encoding::Xz, &behind),
        (Encoding::Lz4Blocks, data),
    ] {
        let unpacked = |piece_bytes: usize| -> Result<Vec<u8>, BodyError> {
            let mut decoder = Decoder::new(encoding, BYTES_MAX)?;
            for piece in body.chunks(piece_bytes) {
                decoder.write(piece)?;
            }
            decoder.finish()
        };
        // Of damage and a limit, whichever a step comes to first is said.
        let in_pieces = unpacked(1 + data.len() % 5);
        assert_eq!(unpacked(BYTES_MAX).ok(), in_pieces.ok());
    }
}

fn check_sealed(sealer: &mut Sealer, fields: &[(&str, &[u8])]) {
    let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
    if sealer.seal(fields.iter().copied(), &mut batch).is_err() {
        return assert!(batch.is_empty());
    }
    let (_, envelope, line) = envelope::open(batch.payload()).expect("what was sealed is opened");
    let values: Vec<_> = envelope.fields().collect();
    let mut back: Vec<(String, Vec<u8>)> = Vec::new();
    let each = values.iter().map(|(name, value)| (*name, value));
    fields_of(each, line, |name, value| {
        back.push((name.to_owned(), value.to_vec()));
    });
    let own = fields.iter().filter(|(name, _)| !DERIVED.contains(name));
    let mut own: Vec<(String, Vec<u8>)> = own
        .map(|(name, value)| ((*name).to_owned(), value.to_vec()))
        .collect();
    own.sort();
    back.sort();
    assert_eq!(own, back);
}

/// Parses `raw` three times, so that what is learned from it is used, and compares.
fn round_trip(kind: EntryKind, raw: &[u8]) {
    round_trip_of(kind, &Labels::new(), raw);
}

fn round_trip_of(kind: EntryKind, labels: &Labels, raw: &[u8]) {
    let entry = Entry {
        id: Id::MIN,
        received: RECEIVED,
        kind,
        labels,
        envelope: Envelope::default(),
        raw,
    };
    let mut parser = Parser::new();
    let first = parser.parse(&entry);
    assert!(
        rebuilds(&first, raw),
        "{} is not rebuilt",
        raw.escape_ascii()
    );
    // The time that a sender says replaces that of the line, and the line stays as it is.
    let said = Timestamp(RECEIVED.0 + 12_345_678);
    let envelope = Envelope::of_time(said);
    let enveloped = parser.parse(&Entry { envelope, ..entry });
    assert_eq!(enveloped.time, said);
    assert!(
        rebuilds(&enveloped, raw),
        "{} is not rebuilt with another time",
        raw.escape_ascii()
    );
    for _ in 0..2 {
        let again = parser.parse(&entry);
        assert_eq!(
            format!("{first:?}"),
            format!("{again:?}"),
            "what was learned changes {}",
            raw.escape_ascii()
        );
    }
    let met = parser.take_met();
    assert_eq!(met.panicked, 0, "{}", raw.escape_ascii());
}
