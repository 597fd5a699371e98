//! The answer of one node to another: rows or a table, and a receipt at the end.
//!
//! Invariants: an answer without a receipt is none, its table is thrown away and its rows count
//! only as far as they came; a node that has nothing to say for [`ALIVE_EVERY`] says so, and one
//! that is silent for much longer is not waited for.
//!
//! `docs/format/cluster.md` is normative for the bytes.

use std::io::{self, Read};
use std::time::Duration;

use logpond_record::{Id, Incarnation, SourceId, TimeRange, Timestamp, cast};
use logpond_search::order::Key;
use logpond_segment::batches::BatchSet;
use logpond_segment::sources::SourceSet;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::journal_rows::Row;
use super::output::{Cancellation, Output};
use super::{MISSING_MAX, Trailer};

/// Version of the receipt's encoding.
const VERSION: u64 = 1;

/// How often a node that works and finds nothing says that it is there.
pub(super) const ALIVE_EVERY: Duration = Duration::from_millis(500);

/// The frame that says that a node is there.
pub(super) const ALIVE: &[u8] = &[ALIVE_TAG, 0, 0, 0, 0];

/// The longest frame: a table of the most values that are counted, or a row of the longest line
/// with each byte escaped.
const FRAME_BYTES_MAX: u32 = 256 << 20;

/// What is read of a frame before more room is made.
const CAPACITY_BYTES_MAX: usize = 64 << 10;

/// The longest description of something that is missing.
const MISSING_BYTES_MAX: usize = 64 << 10;

const ROW: u8 = b'r';
const TABLE: u8 = b't';
const RANGES: u8 = b'c';
const ALIVE_TAG: u8 = b'a';
const RECEIPT: u8 = b'e';
const GONE: u8 = b'g';
const FAILED: u8 = b'f';
const BLOCK: u8 = b'b';
const PASSED: u8 = b'p';

/// What a node has counted.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Receipt {
    /// The sources whose rows are in its answer.
    pub(super) sources: SourceSet,
    /// What it has counted and could not read.
    pub(super) trailer: Trailer,
}

/// What the rows of a follower's answer up to the next block have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Where they are.
    pub(super) source: SourceId,
    /// The epoch and sequence of their batch, if their producer named it.
    pub(super) batch: Option<(u128, u64)>,
}

/// The position of a node in its journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct JournalProgress {
    /// Files that grow: of each the last row.
    pub(super) growing: Vec<(SourceId, Id)>,
    /// Files that were read to their end.
    pub(super) done: SourceSet,
    /// What could not be read, in words.
    pub(super) missing: Vec<String>,
    /// Of what a follower has read, the batches as they were first sent.
    pub(super) batches: BatchSet,
}

/// A part of a node's answer.
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    /// A row.
    Row(Row),
    /// What is in a table.
    Table(Vec<u8>),
    /// Where context lies; `None` is everywhere.
    Ranges(Option<Vec<TimeRange>>),
    /// What the following rows have in common.
    Block(Block),
    /// How far the journal is read; of rows in order, how far it was read when the answer began.
    Passed(JournalProgress),
    /// The end of an answer.
    Receipt(Box<Receipt>),
    /// The node does not have what it was asked to read, or no longer.
    Gone,
    /// The node cannot answer; why, in words.
    Failed(String),
}

fn write(
    out: &mut Output,
    tag: u8,
    payload: impl FnOnce(&mut Vec<u8>),
) -> Result<(), Cancellation> {
    out.append(|chunk| {
        let start = chunk.len();
        chunk.extend_from_slice(&[tag, 0, 0, 0, 0]);
        payload(chunk);
        let length = cast::low_u32(chunk.len() - start - 5);
        chunk[start + 1..start + 5].copy_from_slice(&length.to_le_bytes());
    })
}

/// Emits a row.
pub(super) fn write_row((key, row, is_match): &Row, out: &mut Output) -> Result<(), Cancellation> {
    write(out, ROW, |payload| {
        payload.extend_from_slice(&key.time.0.to_le_bytes());
        payload.extend_from_slice(&key.id.0.to_le_bytes());
        payload.push(u8::from(*is_match));
        payload.extend_from_slice(row);
    })
}

/// Emits what is in a table.
pub(super) fn write_table(table: Encoder, out: &mut Output) -> Result<(), Cancellation> {
    let table = table.finish();
    write(out, TABLE, |payload| payload.extend_from_slice(&table))
}

/// Emits where context lies.
pub(super) fn write_ranges(
    ranges: Option<&[TimeRange]>,
    out: &mut Output,
) -> Result<(), Cancellation> {
    let mut message = Encoder::default();
    message.flag(ranges.is_some());
    let ranges = ranges.unwrap_or_default();
    message.count(ranges.len());
    for range in ranges {
        message.time(range.from);
        message.time(range.to);
    }
    let message = message.finish();
    write(out, RANGES, |payload| payload.extend_from_slice(&message))
}

fn encode_source(source: SourceId, message: &mut Encoder) {
    message.wide(source.incarnation.0);
    message.number(source.sequence);
}

fn decode_source(from: &mut Decoder<'_>) -> Result<SourceId, DecodeError> {
    Ok(SourceId {
        incarnation: Incarnation(from.wide("a source")?),
        sequence: from.number("a source")?,
    })
}

/// Says where the following rows are.
pub(super) fn write_block(block: &Block, out: &mut Output) -> Result<(), Cancellation> {
    let mut message = Encoder::default();
    encode_source(block.source, &mut message);
    message.flag(block.batch.is_some());
    let (epoch, sequence) = block.batch.unwrap_or_default();
    message.wide(epoch);
    message.number(sequence);
    let message = message.finish();
    write(out, BLOCK, |payload| payload.extend_from_slice(&message))
}

/// Says how far the journal is read.
pub(super) fn write_passed(passed: &JournalProgress, out: &mut Output) -> Result<(), Cancellation> {
    let mut message = Encoder::default();
    message.count(passed.growing.len());
    for (source, last) in &passed.growing {
        encode_source(*source, &mut message);
        message.wide(last.0);
    }
    message.sources(&passed.done);
    encode_texts(&passed.missing, &mut message);
    message.bytes(&passed.batches.to_bytes());
    let message = message.finish();
    write(out, PASSED, |payload| payload.extend_from_slice(&message))
}

fn encode_texts(texts: &[String], message: &mut Encoder) {
    message.count(texts.len());
    for what in texts {
        let end = what.floor_char_boundary(MISSING_BYTES_MAX);
        message.bytes(&what.as_bytes()[..end]);
    }
}

fn decode_texts(from: &mut Decoder<'_>) -> Result<Vec<String>, DecodeError> {
    let mut texts = Vec::new();
    for _ in 0..from.count(1, "what is missing")?.min(MISSING_MAX) {
        let what = from.text(MISSING_BYTES_MAX, "what is missing")?;
        texts.push(what.to_owned());
    }
    Ok(texts)
}

/// Says that there is nothing to say.
pub(super) fn write_alive(out: &mut Output) -> Result<(), Cancellation> {
    write(out, ALIVE_TAG, |_| ())?;
    out.flush()
}

/// Says that something asked for is not there.
pub(super) fn write_gone(out: &mut Output) -> Result<(), Cancellation> {
    write(out, GONE, |_| ())?;
    out.flush()
}

/// Says why there is no answer.
pub(super) fn write_failed(why: &str, out: &mut Output) -> Result<(), Cancellation> {
    write(out, FAILED, |payload| {
        payload.extend_from_slice(why.as_bytes())
    })?;
    out.flush()
}

/// Ends an answer.
pub(super) fn write_receipt(receipt: &Receipt, out: &mut Output) -> Result<(), Cancellation> {
    let mut message = Encoder::new(VERSION);
    message.sources(&receipt.sources);
    let trailer = &receipt.trailer;
    message.number(trailer.rows);
    message.number(trailer.bytes_scanned);
    message.number(trailer.missing_count);
    encode_texts(&trailer.missing, &mut message);
    message.flag(trailer.newest.is_some());
    message.time(trailer.newest.unwrap_or(Timestamp::MIN));
    let message = message.finish();
    write(out, RECEIPT, |payload| payload.extend_from_slice(&message))?;
    out.flush()
}

/// Reads the frames of an answer.
pub(super) struct Frames<R> {
    reader: R,
}

impl<R: Read> Frames<R> {
    pub(super) fn new(reader: R) -> Frames<R> {
        Frames { reader }
    }

    /// The next frame. An answer that ends without a receipt ends in an error.
    pub(super) fn next(&mut self) -> io::Result<Frame> {
        loop {
            let mut head = [0; 5];
            self.reader.read_exact(&mut head)?;
            let [tag, length @ ..] = head;
            let length = u32::from_le_bytes(length);
            if length > FRAME_BYTES_MAX {
                return Err(malformed("a frame is too long"));
            }
            let mut payload = Vec::with_capacity((length as usize).min(CAPACITY_BYTES_MAX));
            let read = (&mut self.reader)
                .take(u64::from(length))
                .read_to_end(&mut payload)?;
            if read as u64 != u64::from(length) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match tag {
                ALIVE_TAG => {}
                tag => return parse(tag, payload),
            }
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn parse(tag: u8, mut payload: Vec<u8>) -> io::Result<Frame> {
    let decoded = |error: DecodeError| malformed(&error.to_string());
    Ok(match tag {
        ROW => {
            let (head, _) = payload
                .split_first_chunk::<25>()
                .ok_or_else(|| malformed("a row is too short"))?;
            let mut from = Decoder::bare(head);
            let time = from.time("a row").map_err(decoded)?;
            let id = Id(from.wide("a row").map_err(decoded)?);
            let is_match = from.flag("a row").map_err(decoded)?;
            payload.drain(..25);
            Frame::Row((Key { time, id }, payload.into(), is_match))
        }
        TABLE => Frame::Table(payload),
        RANGES => Frame::Ranges(parse_ranges(&payload).map_err(decoded)?),
        RECEIPT => Frame::Receipt(Box::new(parse_receipt(&payload).map_err(decoded)?)),
        BLOCK => Frame::Block(parse_block(&payload).map_err(decoded)?),
        PASSED => Frame::Passed(parse_passed(&payload).map_err(decoded)?),
        GONE => Frame::Gone,
        FAILED => Frame::Failed(String::from_utf8_lossy(&payload).into_owned()),
        _ => return Err(malformed("a frame of an unknown kind")),
    })
}

fn parse_ranges(payload: &[u8]) -> Result<Option<Vec<TimeRange>>, DecodeError> {
    let mut from = Decoder::bare(payload);
    let is_bounded = from.flag("the ranges")?;
    let mut ranges = Vec::new();
    for _ in 0..from.count(16, "the ranges")? {
        ranges.push(TimeRange {
            from: from.time("a range")?,
            to: from.time("a range")?,
        });
    }
    from.finish()?;
    Ok(is_bounded.then_some(ranges))
}

fn parse_block(payload: &[u8]) -> Result<Block, DecodeError> {
    let mut from = Decoder::bare(payload);
    let source = decode_source(&mut from)?;
    let is_named = from.flag("a batch")?;
    let batch = (from.wide("a batch")?, from.number("a batch")?);
    from.finish()?;
    let batch = is_named.then_some(batch);
    Ok(Block { source, batch })
}

fn parse_passed(payload: &[u8]) -> Result<JournalProgress, DecodeError> {
    let mut from = Decoder::bare(payload);
    let mut passed = JournalProgress::default();
    for _ in 0..from.count(33, "the files that grow")? {
        let source = decode_source(&mut from)?;
        passed.growing.push((source, Id(from.wide("a row")?)));
    }
    passed.done = from.sources("the files that were read")?;
    passed.missing = decode_texts(&mut from)?;
    let batches = from.bytes(FRAME_BYTES_MAX as usize, "the batches")?;
    passed.batches = BatchSet::from_bytes(batches)?;
    from.finish()?;
    Ok(passed)
}

fn parse_receipt(payload: &[u8]) -> Result<Receipt, DecodeError> {
    let mut from = Decoder::new(payload, VERSION)?;
    let sources = from.sources("the receipt")?;
    let mut trailer = Trailer {
        rows: from.number("the rows")?,
        bytes_scanned: from.number("the bytes")?,
        missing_count: from.number("what is missing")?,
        ..Trailer::default()
    };
    trailer.missing = decode_texts(&mut from)?;
    let has_newest = from.flag("the newest time")?;
    let newest = from.time("the newest time")?;
    trailer.newest = has_newest.then_some(newest);
    trailer.missing_count = trailer.missing_count.max(trailer.missing.len() as u64);
    from.finish()?;
    Ok(Receipt { sources, trailer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_host::shutdown;

    fn sent(write: impl FnOnce(&mut Output)) -> Vec<u8> {
        let (_stopper, shutdown) = shutdown::pair();
        let (mut out, mut receiver) = Output::new(shutdown);
        write(&mut out);
        out.flush().unwrap();
        drop(out);
        let mut bytes = Vec::new();
        while let Some(chunk) = receiver.blocking_recv() {
            bytes.extend_from_slice(&chunk);
        }
        bytes
    }

    #[test]
    fn an_answer_comes_back() {
        let key = Key {
            time: Timestamp(-3),
            id: Id(77),
        };
        let row = (key, Box::from(&b"{\"_msg\":\"x\"}"[..]), true);
        let mut trailer = Trailer {
            rows: 3,
            bytes_scanned: 500,
            newest: Some(Timestamp(9)),
            ..Trailer::default()
        };
        trailer.miss("a page");
        let source = SourceId {
            incarnation: Incarnation(4),
            sequence: 2,
        };
        let receipt = Receipt {
            sources: SourceSet::from_iter([source]),
            trailer,
        };
        let ranges = vec![TimeRange::ALL];
        let batch = Some((9, 4));
        let block = Block { source, batch };
        let passed = JournalProgress {
            growing: vec![(source, Id(77))],
            done: SourceSet::from_iter([source]),
            missing: vec!["a page".to_owned()],
            batches: BatchSet::from_iter([(9, 4)]),
        };
        let bytes = sent(|out| {
            write_row(&row, out).unwrap();
            write_alive(out).unwrap();
            write_ranges(Some(&ranges), out).unwrap();
            write_ranges(None, out).unwrap();
            write_block(&block, out).unwrap();
            write_passed(&passed, out).unwrap();
            write_receipt(&receipt, out).unwrap();
        });
        let mut frames = Frames::new(&bytes[..]);
        assert_eq!(frames.next().unwrap(), Frame::Row(row));
        assert_eq!(frames.next().unwrap(), Frame::Ranges(Some(ranges)));
        assert_eq!(frames.next().unwrap(), Frame::Ranges(None));
        assert_eq!(frames.next().unwrap(), Frame::Block(block));
        assert_eq!(frames.next().unwrap(), Frame::Passed(passed));
        assert_eq!(frames.next().unwrap(), Frame::Receipt(Box::new(receipt)));
        assert!(frames.next().is_err(), "nothing follows");
    }

    #[test]
    fn what_is_cut_or_foreign_is_an_error() {
        let bytes = sent(|out| write_receipt(&Receipt::default(), out).unwrap());
        for length in 0..bytes.len() {
            assert!(Frames::new(&bytes[..length]).next().is_err(), "{length}");
        }
        for bytes in [&b"z\0\0\0\0"[..], b"r\x01\0\0\0x", b"t\xff\xff\xff\xff"] {
            assert!(Frames::new(bytes).next().is_err());
        }
    }
}
