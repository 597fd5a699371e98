//! Bytes of a journal file: its header, its frames and its end mark. `docs/format/journal.md` is
//! normative.
//!
//! Invariants:
//! - A frame checks out only at the place it was written for: its header's checksum covers the
//!   file's identity and the frame's offset. So stale blocks of other files, and journal bytes
//!   that somebody logs, are never taken for frames.
//! - A header is checked by itself, in constant time, before its lengths are believed; so the
//!   search for the next frame after damage is linear in the bytes searched.
//! - The same holds for the end mark, so that a file that was cut has none, wherever it was cut.
//! - A frame states how far its file was synced when it was written, never more: what is lost
//!   before that is damage, and what is lost behind the greatest statement was never acknowledged
//!   as durable, as far as the file can tell.
//! - No allocation is made from a length that was not checked against a named bound.

use logpond_record::{Batch, EntryKind, Incarnation, Labels, SourceId, Timestamp, cast, limits};

use crate::batches::BatchId;

/// Version of the file layout that this code writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// Version of the frame layout that this code writes and reads.
pub const FRAME_VERSION: u8 = 1;

/// First bytes of a journal file; the first is not ASCII and the last is a line end, so that
/// text conversions are noticed.
pub const FILE_MAGIC: [u8; 8] = *b"\x8cLPJRNL\n";

/// Length of the file's header.
pub const FILE_HEADER_BYTES: usize = 48;

/// First bytes of a frame; 0xF5 and 0xFA occur in no UTF-8 text, so payloads rarely hold it.
pub const FRAME_MARKER: [u8; 4] = [0xF5, b'L', b'P', 0xFA];

/// Length of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 56;

/// First bytes of an end mark; they begin like those of a frame, so that one search finds both.
pub const END_MARKER: [u8; 4] = [0xF5, b'L', b'P', 0xFB];

/// Length of the end mark. That of a frame's header, so that either may be looked for anywhere.
pub const END_MARK_BYTES: usize = FRAME_HEADER_BYTES;

/// What both markers begin with.
pub(crate) const MARKER_START: [u8; 3] = [0xF5, b'L', b'P'];

/// The most entries of one frame: bounds the decoded length column (256 KiB).
pub const FRAME_ENTRIES_MAX: usize = 65_536;

/// A frame takes further entries up to this payload; larger batches make several frames. Large
/// enough that per-frame costs vanish, small enough that one damaged frame costs little.
pub const FRAME_PAYLOAD_BYTES_TARGET: usize = 1 << 20;

/// The largest payload: one entry of the hard line limit.
pub const FRAME_PAYLOAD_BYTES_MAX: usize = limits::LINE_BYTES_MAX;

/// The most encoded bytes of labels: far above what senders declare, far below a frame.
pub const LABELS_BYTES_MAX: usize = 64 << 10;

/// The most labels of a frame: as many as a record may have fields.
pub const LABELS_MAX: usize = limits::FIELDS_MAX;

/// The largest body: the largest payload with the largest other parts, with room to spare.
pub const FRAME_BODY_BYTES_MAX: usize = 40 << 20;

/// Payloads below this are never compressed: the gain is less than a block of the disk.
const COMPRESSED_PAYLOAD_BYTES_MIN: usize = 4096;

/// Length of the batch identity block.
const BATCH_ID_BYTES: usize = 36;

/// Length of what a run has behind that block.
const RUN_BYTES: usize = 8;

/// Flag bit: the body starts with a batch identity block.
const FLAG_BATCH_ID: u8 = 1;

/// Flag bit: the batch is a run, and its block says so.
const FLAG_RUN: u8 = 2;

/// Stated by a frame that is farther behind what was synced than can be said.
const UNSYNCED_UNKNOWN: u32 = u32::MAX;

/// The longest encoding of one length.
const LENGTH_BYTES_MAX: usize = 5;

const _: () = assert!(
    BATCH_ID_BYTES
        + RUN_BYTES
        + LABELS_BYTES_MAX
        + FRAME_ENTRIES_MAX * LENGTH_BYTES_MAX
        + FRAME_PAYLOAD_BYTES_MAX
        <= FRAME_BODY_BYTES_MAX
);
const _: () = assert!(FRAME_PAYLOAD_BYTES_TARGET <= FRAME_PAYLOAD_BYTES_MAX);

/// How payloads are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Codec {
    /// As they are.
    #[default]
    None = 0,
    /// One zstd frame of level 1, where that saves at least a quarter.
    Zstd = 1,
}

/// Why a range of a journal file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The file's header is damaged or missing; its identity was taken from the file name.
    FileHeader,
    /// There is no frame where one must start.
    Marker,
    /// The frame's header does not check out.
    HeaderChecksum,
    /// The frame is longer than what is left of the file.
    Torn,
    /// The frame's body does not check out.
    BodyChecksum,
    /// The frame checks out but its parts contradict each other.
    Inconsistent,
    /// The frame was written by a newer version: unknown version, codec, kind or flag.
    Unsupported,
    /// There is no sound end mark where one must be: the file was cut, or its end is damaged.
    EndMissing,
    /// The end mark counts other frames or entries than there are.
    EndWrong,
    /// There are bytes behind the end mark.
    AfterEnd,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Reason::FileHeader => "the file header is damaged",
            Reason::Marker => "no frame starts here",
            Reason::HeaderChecksum => "the frame header's checksum is wrong",
            Reason::Torn => "the frame is cut off",
            Reason::BodyChecksum => "the frame's checksum is wrong",
            Reason::Inconsistent => "the frame's parts contradict each other",
            Reason::Unsupported => "the frame was written by a newer version",
            Reason::EndMissing => "the end mark is missing; whatever else was there is lost",
            Reason::EndWrong => "the end mark counts other frames than there are",
            Reason::AfterEnd => "bytes follow the end mark",
        })
    }
}

/// What a file's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The source that the file holds.
    pub source: SourceId,
    /// When the file was begun.
    pub created: Timestamp,
}

/// Why a file's header cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileHeaderError {
    /// Too short, wrong magic or wrong checksum.
    Damaged,
    /// A layout of another version.
    Version(u32),
}

impl FileHeader {
    /// The header's bytes.
    pub fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut out = [0u8; FILE_HEADER_BYTES];
        out[..8].copy_from_slice(&FILE_MAGIC);
        out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        out[12..28].copy_from_slice(&self.source.incarnation.0.to_le_bytes());
        out[28..36].copy_from_slice(&self.source.sequence.to_le_bytes());
        out[36..44].copy_from_slice(&self.created.0.to_le_bytes());
        let checksum = crc32c::crc32c(&out[..44]);
        out[44..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Reads a header from the start of a file.
    pub fn decode(bytes: &[u8]) -> Result<FileHeader, FileHeaderError> {
        let header: &[u8; FILE_HEADER_BYTES] =
            bytes.first_chunk().ok_or(FileHeaderError::Damaged)?;
        let checks_out = crc32c::crc32c(&header[..44]) == u32_at(header, 44);
        if header[..8] != FILE_MAGIC || !checks_out {
            return Err(FileHeaderError::Damaged);
        }
        let version = u32_at(header, 8);
        if version != FORMAT_VERSION {
            return Err(FileHeaderError::Version(version));
        }
        Ok(FileHeader {
            source: SourceId {
                incarnation: Incarnation(u128_at(header, 12)),
                sequence: u64_at(header, 28),
            },
            created: Timestamp(cast::signed(u64_at(header, 36))),
        })
    }
}

/// What a frame is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameParts<'a> {
    pub(crate) kind: EntryKind,
    pub(crate) labels: &'a Labels,
    pub(crate) lengths: &'a [u32],
    pub(crate) payload: &'a [u8],
    pub(crate) first_number: u64,
    pub(crate) received: Timestamp,
    pub(crate) batch_id: Option<BatchId>,
    /// How far the file was synced when the frame was written.
    pub(crate) synced_bytes: u64,
}

/// Encodes frames; keeps the compressor between them.
pub(crate) struct Encoder {
    codec: Codec,
    compressor: Option<zstd::bulk::Compressor<'static>>,
}

impl Encoder {
    pub(crate) fn new(codec: Codec) -> Encoder {
        Encoder {
            codec,
            compressor: None,
        }
    }

    /// Replaces `out` by the frame that belongs at `offset` of the file of `source`.
    ///
    /// The parts must be within the bounds above; [`labels_bytes`] tells for labels.
    pub(crate) fn encode(
        &mut self,
        source: SourceId,
        offset: u64,
        parts: &FrameParts<'_>,
        out: &mut Vec<u8>,
    ) {
        debug_assert!((1..=FRAME_ENTRIES_MAX).contains(&parts.lengths.len()));
        debug_assert!(parts.payload.len() <= FRAME_PAYLOAD_BYTES_MAX);
        out.clear();
        out.resize(FRAME_HEADER_BYTES, 0);
        if let Some(id) = parts.batch_id {
            out.extend_from_slice(&id.epoch.to_le_bytes());
            out.extend_from_slice(&id.sequence.to_le_bytes());
            out.extend_from_slice(&id.attempt.to_le_bytes());
            out.extend_from_slice(&id.first_sent.0.to_le_bytes());
            if id.more > 0 {
                out.extend_from_slice(&id.more.to_le_bytes());
            }
        }
        let labels_from = out.len();
        encode_labels(parts.labels, out);
        let lengths_from = out.len();
        for &length in parts.lengths {
            encode_length(length, out);
        }
        let payload_from = out.len();
        let codec = self.encode_payload(parts.payload, out);

        let body_checksum = crc32c::crc32c(&out[FRAME_HEADER_BYTES..]);
        let body_bytes = cast::low_u32(out.len() - FRAME_HEADER_BYTES);
        let header = &mut out[..FRAME_HEADER_BYTES];
        header[..4].copy_from_slice(&FRAME_MARKER);
        header[8..12].copy_from_slice(&body_bytes.to_le_bytes());
        header[12..16].copy_from_slice(&body_checksum.to_le_bytes());
        header[16] = FRAME_VERSION;
        header[17] = codec as u8;
        header[18] = parts.kind as u8;
        header[19] = match parts.batch_id {
            None => 0,
            Some(id) if id.more == 0 => FLAG_BATCH_ID,
            Some(_) => FLAG_BATCH_ID | FLAG_RUN,
        };
        header[20..24].copy_from_slice(&cast::low_u32(parts.lengths.len()).to_le_bytes());
        header[24..32].copy_from_slice(&parts.first_number.to_le_bytes());
        header[32..40].copy_from_slice(&parts.received.0.to_le_bytes());
        header[40..44].copy_from_slice(&cast::low_u32(lengths_from - labels_from).to_le_bytes());
        header[44..48].copy_from_slice(&cast::low_u32(payload_from - lengths_from).to_le_bytes());
        header[48..52].copy_from_slice(&cast::low_u32(parts.payload.len()).to_le_bytes());
        place(source, offset, parts.synced_bytes, header);
    }

    /// Appends the payload in the form that pays; gives that form.
    fn encode_payload(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Codec {
        if self.codec == Codec::Zstd && payload.len() >= COMPRESSED_PAYLOAD_BYTES_MIN {
            if self.compressor.is_none() {
                self.compressor = zstd::bulk::Compressor::new(1).ok();
            }
            let compressed = self
                .compressor
                .as_mut()
                .and_then(|compressor| compressor.compress(payload).ok())
                .filter(|compressed| compressed.len() <= payload.len() / 4 * 3);
            if let Some(compressed) = compressed {
                out.extend_from_slice(&compressed);
                return Codec::Zstd;
            }
        }
        out.extend_from_slice(payload);
        Codec::None
    }
}

/// Completes a frame's header (or an end mark), or moves it to another place or file: states how
/// far the file was synced, and gives it the checksum of its place.
pub(crate) fn place(source: SourceId, offset: u64, synced_bytes: u64, header: &mut [u8]) {
    let unsynced = u32::try_from(offset - synced_bytes).unwrap_or(UNSYNCED_UNKNOWN);
    header[52..56].copy_from_slice(&unsynced.to_le_bytes());
    let checksum = header_checksum(source, offset, header);
    header[4..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Length of labels in a frame.
pub(crate) fn labels_bytes(labels: &Labels) -> usize {
    let each = labels
        .iter()
        .map(|(name, value)| 8 + name.len() + value.len());
    each.sum()
}

fn encode_labels(labels: &Labels, out: &mut Vec<u8>) {
    for (name, value) in labels {
        for text in [name, value] {
            out.extend_from_slice(&cast::low_u32(text.len()).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
    }
}

fn encode_length(length: u32, out: &mut Vec<u8>) {
    let mut rest = length;
    while rest >= 0x80 {
        out.push(cast::low_u8(rest) | 0x80);
        rest >>= 7;
    }
    out.push(cast::low_u8(rest));
}

/// A frame's header, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) body_bytes: usize,
    pub(crate) body_checksum: u32,
    pub(crate) version: u8,
    pub(crate) codec: u8,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) count: usize,
    pub(crate) first_number: u64,
    pub(crate) received: Timestamp,
    /// How far the file was synced when the frame was written, as far as it says.
    pub(crate) synced_bytes: u64,
    labels_bytes: usize,
    lengths_bytes: usize,
    payload_bytes: usize,
}

impl FrameHeader {
    /// Reads the header of the frame at `offset` of the file of `source`.
    ///
    /// Fails unless marker and checksum are right and the bounds on lengths and counts are kept.
    pub(crate) fn decode(
        bytes: &[u8; FRAME_HEADER_BYTES],
        source: SourceId,
        offset: u64,
    ) -> Result<FrameHeader, Reason> {
        if bytes[..4] != FRAME_MARKER {
            return Err(Reason::Marker);
        }
        if header_checksum(source, offset, bytes) != u32_at(bytes, 4) {
            return Err(Reason::HeaderChecksum);
        }
        let header = FrameHeader::unchecked(bytes, offset);
        if header.body_bytes > FRAME_BODY_BYTES_MAX
            || !(1..=FRAME_ENTRIES_MAX).contains(&header.count)
            || header
                .first_number
                .checked_add(header.count as u64)
                .is_none()
        {
            return Err(Reason::HeaderChecksum);
        }
        Ok(header)
    }

    /// Length of the payload, decompressed, within the bound that decoding keeps.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.payload_bytes.min(FRAME_PAYLOAD_BYTES_MAX)
    }

    /// Reads the fields without any check.
    pub(crate) fn unchecked(bytes: &[u8; FRAME_HEADER_BYTES], offset: u64) -> FrameHeader {
        FrameHeader {
            body_bytes: u32_at(bytes, 8) as usize,
            body_checksum: u32_at(bytes, 12),
            version: bytes[16],
            codec: bytes[17],
            kind: bytes[18],
            flags: bytes[19],
            count: u32_at(bytes, 20) as usize,
            first_number: u64_at(bytes, 24),
            received: Timestamp(cast::signed(u64_at(bytes, 32))),
            synced_bytes: synced_before(bytes, offset),
            labels_bytes: u32_at(bytes, 40) as usize,
            lengths_bytes: u32_at(bytes, 44) as usize,
            payload_bytes: u32_at(bytes, 48) as usize,
        }
    }
}

/// The last thing in a closed file: it ends here, and this was in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndMark {
    /// Frames with a sound header.
    pub(crate) frames: u64,
    /// Entries that those headers count.
    pub(crate) entries: u64,
    /// How far the file was synced when the mark was written.
    pub(crate) synced_bytes: u64,
}

impl EndMark {
    /// Counts a frame.
    pub(crate) fn add(&mut self, entries: u64) {
        self.frames += 1;
        self.entries += entries;
    }

    /// Counts frames that were counted together.
    pub(crate) fn add_all(&mut self, other: &EndMark) {
        self.frames += other.frames;
        self.entries += other.entries;
        self.note_synced(other.synced_bytes);
    }

    /// Notes that so much was synced.
    pub(crate) fn note_synced(&mut self, bytes: u64) {
        self.synced_bytes = self.synced_bytes.max(bytes);
    }

    /// The mark's bytes at `offset` of the file of `source`.
    pub(crate) fn encode(&self, source: SourceId, offset: u64) -> [u8; END_MARK_BYTES] {
        let mut out = [0u8; END_MARK_BYTES];
        out[..4].copy_from_slice(&END_MARKER);
        out[8..16].copy_from_slice(&(offset + END_MARK_BYTES as u64).to_le_bytes());
        out[16..24].copy_from_slice(&self.frames.to_le_bytes());
        out[24..32].copy_from_slice(&self.entries.to_le_bytes());
        place(source, offset, self.synced_bytes, &mut out);
        out
    }

    /// Reads the mark at `offset` of the file of `source`, if that is where it is.
    fn decode(
        bytes: &[u8; END_MARK_BYTES],
        source: SourceId,
        offset: u64,
    ) -> Result<EndMark, Reason> {
        let end = offset.saturating_add(END_MARK_BYTES as u64);
        let checks_out = header_checksum(source, offset, bytes) == u32_at(bytes, 4);
        if !checks_out || u64_at(bytes, 8) != end {
            return Err(Reason::EndMissing);
        }
        Ok(EndMark {
            frames: u64_at(bytes, 16),
            entries: u64_at(bytes, 24),
            synced_bytes: synced_before(bytes, offset),
        })
    }
}

/// What may be where a frame ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    Frame(FrameHeader),
    End(EndMark),
}

impl Head {
    /// Reads what is at `offset` of the file of `source`, by its marker.
    pub(crate) fn decode(
        bytes: &[u8; FRAME_HEADER_BYTES],
        source: SourceId,
        offset: u64,
    ) -> Result<Head, Reason> {
        if bytes[..4] == END_MARKER {
            return EndMark::decode(bytes, source, offset).map(Head::End);
        }
        FrameHeader::decode(bytes, source, offset).map(Head::Frame)
    }
}

/// What the frame or mark at `offset` states to have been synced; 0 if it cannot say.
fn synced_before(bytes: &[u8; FRAME_HEADER_BYTES], offset: u64) -> u64 {
    match u32_at(bytes, 52) {
        UNSYNCED_UNKNOWN => 0,
        unsynced => offset.saturating_sub(u64::from(unsynced)),
    }
}

/// The parts of a body that had to be decoded; reused from frame to frame.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) labels: Labels,
    /// End of each entry in the payload.
    pub(crate) ends: Vec<u32>,
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
    decompressed: Vec<u8>,
}

/// The entries of a decoded body as a batch of their own.
pub(crate) fn batch_of(kind: EntryKind, labels: &Labels, payload: &[u8], ends: &[u32]) -> Batch {
    let mut batch = Batch::new(kind, labels.clone());
    let mut from = 0;
    for end in ends.iter().map(|end| *end as usize) {
        batch.push(&payload[from..end]);
        from = end;
    }
    batch
}

/// A decoded body, with labels and ends in the scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) kind: EntryKind,
    pub(crate) batch_id: Option<BatchId>,
    payload: PayloadPlace,
}

/// The place of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayloadPlace {
    /// In the body, from this byte on.
    Body(usize),
    /// In the scratch.
    Scratch,
}

impl Body {
    /// The payload, given the body and the scratch that were decoded.
    pub(crate) fn payload<'a>(&self, body: &'a [u8], scratch: &'a Scratch) -> &'a [u8] {
        match self.payload {
            PayloadPlace::Body(from) => &body[from..],
            PayloadPlace::Scratch => &scratch.decompressed,
        }
    }
}

/// Decodes a body whose checksum is right. Fails if its parts contradict each other or the header.
pub(crate) fn decode_body(
    header: &FrameHeader,
    body: &[u8],
    scratch: &mut Scratch,
) -> Result<Body, Reason> {
    let kind = EntryKind::from_u8(header.kind).ok_or(Reason::Unsupported)?;
    let known_flags = FLAG_BATCH_ID | FLAG_RUN;
    if header.version != FRAME_VERSION || header.codec > 1 || header.flags & !known_flags != 0 {
        return Err(Reason::Unsupported);
    }
    if header.labels_bytes > LABELS_BYTES_MAX || header.payload_bytes > FRAME_PAYLOAD_BYTES_MAX {
        return Err(Reason::Inconsistent);
    }
    let mut rest = body;
    let batch_id = decode_batch_id(header.flags, &mut rest)?;
    decode_labels(take(&mut rest, header.labels_bytes)?, &mut scratch.labels)?;
    let lengths = take(&mut rest, header.lengths_bytes)?;
    decode_ends(
        lengths,
        header.count,
        header.payload_bytes,
        &mut scratch.ends,
    )?;
    let payload = if header.codec == Codec::Zstd as u8 {
        decompress(rest, header.payload_bytes, scratch)?;
        PayloadPlace::Scratch
    } else if rest.len() == header.payload_bytes {
        PayloadPlace::Body(body.len() - rest.len())
    } else {
        return Err(Reason::Inconsistent);
    };
    Ok(Body {
        kind,
        batch_id,
        payload,
    })
}

/// Takes the batch's name from the start of a body, if it has one.
fn decode_batch_id(flags: u8, rest: &mut &[u8]) -> Result<Option<BatchId>, Reason> {
    if flags & FLAG_BATCH_ID == 0 {
        return (flags & FLAG_RUN == 0)
            .then_some(None)
            .ok_or(Reason::Inconsistent);
    }
    let block = take(rest, BATCH_ID_BYTES)?;
    let mut id = BatchId {
        epoch: u128_at(block, 0),
        sequence: u64_at(block, 16),
        attempt: u32_at(block, 24),
        first_sent: Timestamp(cast::signed(u64_at(block, 28))),
        more: 0,
    };
    if flags & FLAG_RUN != 0 {
        id.more = u64_at(take(rest, RUN_BYTES)?, 0);
        let is_sound = id.more > 0 && !id.is_retry() && id.sequence.checked_add(id.more).is_some();
        if !is_sound {
            return Err(Reason::Inconsistent);
        }
    }
    Ok(Some(id))
}

fn decode_labels(mut bytes: &[u8], labels: &mut Labels) -> Result<(), Reason> {
    labels.clear();
    while !bytes.is_empty() {
        if labels.len() == LABELS_MAX {
            return Err(Reason::Inconsistent);
        }
        let name = take_text(&mut bytes)?;
        let value = take_text(&mut bytes)?;
        labels.push((name.into(), value.into()));
    }
    Ok(())
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> Result<&'a str, Reason> {
    let length = u32_at(take(bytes, 4)?, 0) as usize;
    std::str::from_utf8(take(bytes, length)?).map_err(|_| Reason::Inconsistent)
}

/// Decodes `count` lengths, as running ends; they must add up to `payload_bytes`.
fn decode_ends(
    lengths: &[u8],
    count: usize,
    payload_bytes: usize,
    ends: &mut Vec<u32>,
) -> Result<(), Reason> {
    ends.clear();
    if lengths.len() < count || count > FRAME_ENTRIES_MAX {
        return Err(Reason::Inconsistent);
    }
    ends.reserve(count);
    let mut end = 0u64;
    let mut length = 0u64;
    let mut shift = 0;
    for &byte in lengths {
        length |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 != 0 {
            shift += 7;
            if shift >= 7 * cast::low_u32(LENGTH_BYTES_MAX) {
                return Err(Reason::Inconsistent);
            }
            continue;
        }
        end += length;
        if end > payload_bytes as u64 || ends.len() == count {
            return Err(Reason::Inconsistent);
        }
        ends.push(cast::low_u32(end));
        (length, shift) = (0, 0);
    }
    let complete = shift == 0 && ends.len() == count && end == payload_bytes as u64;
    complete.then_some(()).ok_or(Reason::Inconsistent)
}

fn decompress(stored: &[u8], payload_bytes: usize, scratch: &mut Scratch) -> Result<(), Reason> {
    // Only compression that pays is written, so the ratio has a floor, and a limit as well.
    if stored.len() > payload_bytes {
        return Err(Reason::Inconsistent);
    }
    if scratch.decompressor.is_none() {
        scratch.decompressor = zstd::bulk::Decompressor::new().ok();
    }
    let Scratch {
        decompressor: Some(decompressor),
        decompressed,
        ..
    } = scratch
    else {
        return Err(Reason::Unsupported);
    };
    decompressed.clear();
    decompressed.reserve(payload_bytes);
    // Writes no more than the capacity, which may exceed what was asked for; hence the check.
    match decompressor.decompress_to_buffer(stored, decompressed) {
        Ok(bytes) if bytes == payload_bytes => Ok(()),
        _ => Err(Reason::Inconsistent),
    }
}

/// Checksum of a frame's header at its place.
fn header_checksum(source: SourceId, offset: u64, header: &[u8]) -> u32 {
    let mut place = [0u8; 32];
    place[..16].copy_from_slice(&source.incarnation.0.to_le_bytes());
    place[16..24].copy_from_slice(&source.sequence.to_le_bytes());
    place[24..].copy_from_slice(&offset.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place), &header[8..FRAME_HEADER_BYTES])
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Reason> {
    let (taken, after) = rest.split_at_checked(length).ok_or(Reason::Inconsistent)?;
    *rest = after;
    Ok(taken)
}

/// Reads a number; the caller has checked that `bytes` reaches far enough.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0u8; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0u8; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

fn u128_at(bytes: &[u8], at: usize) -> u128 {
    let mut number = [0u8; 16];
    number.copy_from_slice(&bytes[at..at + 16]);
    u128::from_le_bytes(number)
}
