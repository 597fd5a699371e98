//! What texts are not in the journal's files, so that questions that come again and again read little
//! but what is new.
//!
//! A file's frames are summed up a chunk of some hundred kilobytes at a time, at the second reading
//! that looks for a text: who asks once pays nothing. Later readings pass over chunks that cannot match.
//! Damage is in no chunk, so each answer names it.
//!
//! Invariant: a record that a reading without this would hand over is handed over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logpond_record::SourceId;
use logpond_search::{RawGrams, RawPrefilter};
use logpond_segment::journal::{Frame, Frames, Snapshot, Span};

use logpond_host::memory::Budget;

/// A chunk is done once it has so many bytes of entries, or if the next frame does not fit in. Little
/// enough that its bitmap stays in the processor's nearest memory while it is filled, and that the
/// rest of a file, which is read again each time, is little.
const CHUNK_BYTES: usize = 256 << 10;

/// What all chunks take at most: mostly an eighth of what they sum up. What there is no room for is read.
const BYTES_MAX: usize = 32 << 20;

/// The part of the memory for queries and caches that they take at most.
const MEMORY_SHARE: usize = 16;

/// Chunks of all files.
#[derive(Debug)]
pub(super) struct JournalGrams {
    files: Mutex<HashMap<SourceId, Arc<FileGrams>>>,
    bytes_max: usize,
}

impl Default for JournalGrams {
    fn default() -> JournalGrams {
        JournalGrams {
            files: Mutex::default(),
            bytes_max: BYTES_MAX,
        }
    }
}

/// Chunks of one file.
#[derive(Clone, Debug, Default)]
struct FileGrams {
    /// How far it was read.
    read_to: u64,
    /// By where they begin.
    chunks: BTreeMap<u64, Arc<Chunk>>,
}

#[derive(Debug)]
struct Chunk {
    span: Span,
    grams: RawGrams,
}

impl Chunk {
    /// The bytes that it takes, with its place in the map.
    fn bytes(&self) -> usize {
        self.grams.bytes() + 2 * size_of::<(u64, Chunk)>()
    }
}

impl FileGrams {
    fn bytes(&self) -> usize {
        self.chunks.values().map(|chunk| chunk.bytes()).sum()
    }
}

impl JournalGrams {
    /// None yet, for as many as are right within this memory.
    pub(super) fn within(budget: &Budget) -> JournalGrams {
        JournalGrams {
            bytes_max: budget.share(MEMORY_SHARE, BYTES_MAX),
            ..JournalGrams::default()
        }
    }

    /// The bytes that all take.
    pub(super) fn bytes(&self) -> usize {
        bytes_of(&self.lock())
    }

    /// Forgets files until so many bytes are free, or there are none; gives how many are.
    pub(super) fn give_way(&self, bytes: usize) -> usize {
        let mut files = self.lock();
        let mut freed = 0;
        files.retain(|_, file| {
            let stays = freed >= bytes;
            freed += if stays { 0 } else { file.bytes() };
            stays
        });
        freed
    }

    /// Begins a reading of a file.
    pub(super) fn of(&self, source: SourceId) -> GramScan<'_> {
        let files = self.lock();
        GramScan {
            all: self,
            source,
            known: files.get(&source).map(Arc::clone).unwrap_or_default(),
            has_room: bytes_of(&files) < self.bytes_max,
            known_to: 0,
            read_to: 0,
            growing: None,
            done: Vec::new(),
        }
    }

    /// Forgets files that are gone.
    pub(super) fn retain(&self, journal: &Snapshot) {
        let mut files = self.lock();
        if files.is_empty() {
            return;
        }
        let closed = journal.closed.iter().map(|file| file.source);
        let there: HashSet<SourceId> = closed
            .chain(journal.open.iter().map(|o| o.source))
            .collect();
        files.retain(|source, _| there.contains(source));
    }

    /// Keeps what a reading has found, as far as there is room.
    fn keep(&self, source: SourceId, read_to: u64, done: Vec<Chunk>) {
        let mut files = self.lock();
        let mut bytes = bytes_of(&files);
        let file = Arc::make_mut(files.entry(source).or_default());
        file.read_to = file.read_to.max(read_to);
        for chunk in done {
            bytes += chunk.bytes();
            if bytes > self.bytes_max {
                return;
            }
            // Another reading may have done the same meanwhile.
            file.chunks.insert(chunk.span.from(), Arc::new(chunk));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SourceId, Arc<FileGrams>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the chunks of all files take.
fn bytes_of(files: &HashMap<SourceId, Arc<FileGrams>>) -> usize {
    files.values().map(|file| file.bytes()).sum()
}

/// One reading of a file, front to back.
pub(super) struct GramScan<'a> {
    all: &'a JournalGrams,
    source: SourceId,
    /// What was known when it began.
    known: Arc<FileGrams>,
    /// Whether anything that is summed up could be kept.
    has_room: bool,
    /// Where the chunk ends that is read although it is known.
    known_to: u64,
    read_to: u64,
    growing: Option<ChunkBuilder>,
    done: Vec<Chunk>,
}

/// The chunk that is being filled.
struct ChunkBuilder {
    chunk: Chunk,
    bytes: usize,
    /// Of how many bytes the bitmap can tell something.
    bytes_max: usize,
}

impl ChunkBuilder {
    fn of(frame: &Frame<'_>) -> ChunkBuilder {
        let bytes_max = CHUNK_BYTES.max(frame.payload().len());
        let mut grams = RawGrams::for_bytes(bytes_max);
        grams.add(frame.payload());
        ChunkBuilder {
            chunk: Chunk {
                span: Span::of(frame),
                grams,
            },
            bytes: frame.payload().len(),
            bytes_max,
        }
    }

    /// Adds a frame; says whether it fits in and follows.
    fn add(&mut self, frame: &Frame<'_>) -> bool {
        let bytes = self.bytes + frame.payload().len();
        if bytes > self.bytes_max || !self.chunk.span.add(frame) {
            return false;
        }
        self.chunk.grams.add(frame.payload());
        self.bytes = bytes;
        true
    }
}

impl GramScan<'_> {
    /// Passes over chunks that come next and cannot match; tells where the last frame in them is.
    pub(super) fn pass_over(&mut self, frames: &mut Frames, wanted: &RawPrefilter) -> Option<u64> {
        let mut last_at = None;
        while let Some(chunk) = self.known.chunks.get(&frames.offset()) {
            if wanted.may_match_any(&chunk.grams) || !frames.pass_span(&chunk.span) {
                self.known_to = chunk.span.to();
                break;
            }
            last_at = Some(chunk.span.last_at());
        }
        last_at
    }

    /// Sums up a frame that was read, if it is the second time.
    pub(super) fn add(&mut self, frame: &Frame<'_>) {
        let end = frame.offset() + frame.bytes();
        self.read_to = end;
        if !self.has_room || end > self.known.read_to || frame.offset() < self.known_to {
            return;
        }
        if let Some(growing) = &mut self.growing
            && growing.add(frame)
        {
            return;
        }
        let done = self.growing.replace(ChunkBuilder::of(frame));
        self.done.extend(done.map(|growing| growing.chunk));
    }

    /// Keeps what was done for later readings. The last chunk may go on to grow.
    pub(super) fn finish(self) {
        drop(self.known);
        self.all.keep(self.source, self.read_to, self.done);
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::{Batch, EntryKind, Incarnation, Labels, Timestamp};
    use logpond_search::Matcher;
    use logpond_search::query::parse;
    use logpond_segment::journal::{Codec, JournalFile, Settings, Writer};
    use logpond_segment::mem_disk::MemDisk;

    use super::*;

    /// What only the line of this number has.
    fn name(number: u32) -> String {
        format!(
            "{:016x}",
            u64::from(number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        )
    }

    /// A file that grows, and what is known of it.
    struct Journal {
        writer: Writer,
        number: u32,
        known: JournalGrams,
    }

    impl Journal {
        fn new(codec: Codec) -> Journal {
            let settings = Settings {
                codec,
                rotate_bytes: 1 << 30,
                ..Settings::default()
            };
            Journal {
                writer: Writer::new(Arc::new(MemDisk::new()), settings),
                number: 0,
                known: JournalGrams::default(),
            }
        }

        /// Adds frames of so many lines each.
        fn grow(&mut self, frames: usize, lines: usize) {
            for _ in 0..frames {
                let mut batch = Batch::new(EntryKind::Line, Labels::new());
                for _ in 0..lines {
                    let line = format!(
                        "GET /article/{} 200 {} end",
                        self.number % 100,
                        name(self.number)
                    );
                    batch.push(line.as_bytes());
                    self.number += 1;
                }
                let minted = || Incarnation(9);
                self.writer.append(&batch, Timestamp(5), minted).unwrap();
            }
            self.writer.sync().unwrap();
        }

        fn file(&self) -> JournalFile {
            JournalFile::from_open(&self.writer.visible().snapshot().open[0]).unwrap()
        }

        /// Payload bytes that a reading looks at, and how many lines have the text.
        fn read(&self, text: &str) -> (usize, usize) {
            let matcher = Matcher::new(&parse(text).unwrap()).unwrap();
            let wanted = matcher.raw_prefilter().unwrap();
            let file = self.file();
            let (mut frames, mut reading) = (file.frames(), self.known.of(file.source()));
            let (mut bytes, mut found) = (0, 0);
            loop {
                let passed = reading.pass_over(&mut frames, wanted);
                let Some(frame) = frames.next().unwrap() else {
                    assert!(passed.is_none_or(|at| at < file.limit()));
                    break;
                };
                reading.add(&frame);
                bytes += frame.payload().len();
                let held = |raw: &[u8]| String::from_utf8_lossy(raw).contains(text);
                found += frame.entries().filter(|entry| held(entry.raw)).count();
            }
            assert_eq!(frames.damages().count, 0);
            reading.finish();
            (bytes, found)
        }
    }

    #[test]
    fn the_third_reading_looks_at_what_is_new_and_what_may_match() {
        for codec in [Codec::None, Codec::Zstd] {
            let mut journal = Journal::new(codec);
            journal.grow(400, 100);
            let (all, found) = journal.read("nothing");
            assert_eq!(found, 0);
            assert!(all > 4 * CHUNK_BYTES);
            assert_eq!(journal.read("nothing"), (all, 0));
            let (third, _) = journal.read("nothing");
            assert!(third <= CHUNK_BYTES, "{third} of {all}");
            let (one, found) = journal.read(&name(7777));
            assert_eq!(found, 1);
            assert!(one <= 2 * CHUNK_BYTES, "{one} of {all}");
            // What came since then is found.
            let new = name(journal.number + 50);
            journal.grow(1, 100);
            assert_eq!(journal.read(&new).1, 1);
        }
    }

    #[test]
    fn each_text_is_found_at_each_reading_while_the_file_grows() {
        let mut journal = Journal::new(Codec::None);
        journal.grow(1, 10);
        for round in 0..40_u32 {
            journal.grow(
                round as usize % 7 + 1,
                [3, 500, 60, 9000][round as usize % 4],
            );
            for part in 1..=8 {
                let number = journal.number / 8 * part - 1;
                let text = name(number);
                assert_eq!(journal.read(&text).1, 1, "{text} in round {round}");
            }
            assert_eq!(journal.read("article").1, journal.number as usize);
        }
    }

    #[test]
    fn files_that_are_gone_are_forgotten() {
        let mut journal = Journal::new(Codec::None);
        journal.grow(200, 200);
        journal.read("nothing");
        journal.read("nothing");
        let known = |journal: &Journal| journal.known.lock().len();
        journal.known.retain(&journal.writer.visible().snapshot());
        assert_eq!(known(&journal), 1);
        journal.known.retain(&Snapshot::default());
        assert_eq!(known(&journal), 0);
    }

    #[test]
    fn there_is_room_for_so_much() {
        let mut journal = Journal::new(Codec::None);
        journal.grow(20, 20_000);
        let file = journal.file();
        for number in 0..60 {
            let source = SourceId {
                sequence: number,
                ..file.source()
            };
            for _ in 0..2 {
                let (mut frames, mut reading) = (file.frames(), journal.known.of(source));
                while let Some(frame) = frames.next().unwrap() {
                    reading.add(&frame);
                }
                reading.finish();
            }
        }
        assert!((BYTES_MAX / 2..=BYTES_MAX).contains(&journal.known.bytes()));
        let freed = journal.known.give_way(BYTES_MAX / 4);
        assert!(freed >= BYTES_MAX / 4 && journal.known.bytes() < BYTES_MAX * 3 / 4);
    }
}
