//! What a follower of a cluster has shown, source by source, and so what it has still to read.
//!
//! Invariants:
//! - A row is to be shown as long as its source is not done and none of the source's regions has
//!   it; whoever shows or passes a row notes it here, so that it is shown once, wherever it is read.
//! - What is noted only grows.
//! - A client is told more than nodes are: which batches it has been shown, by whichever sending.
//!   Another sending is not shown to it wherever it comes back, though nobody who has the first one may
//!   answer there.

use std::collections::BTreeMap;
use std::fmt;

use logpond_record::{Id, Incarnation, SourceId, Timestamp};
use logpond_search::order::{Direction, Key};
use logpond_segment::batches::BatchSet;
use logpond_segment::sources::SourceSet;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::copies::{Batch, Copies};
use super::noted_batches::NotedBatches;

/// Version of the encoding for clients.
const VERSION: u64 = 4;

/// Runs of batches that a client is told of, of originals and of copies: some kilobytes, which go with
/// the address of a request. There is about one for each sender; those that were heard last are told,
/// as what is sent again was sent a short time ago.
const RUNS_TOLD_MAX: usize = 500;

/// Rows of copies that a client is told of, eight bytes each: those of the last copies whose originals
/// were not met. Of others it learns which batches they were only.
const COPIED_ROWS_TOLD_MAX: usize = 1000;

/// Regions of sources, all together, that a position of a client may have: some 10 MiB of memory. An
/// interval of sources is short, so the length of the text bounds nothing.
const REGIONS_TOLD_MAX: usize = 1 << 16;

/// Rows of a source that need not be shown any more: those with such keys among the first ones to
/// arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Region {
    /// The last row to arrive.
    pub(super) up_to: Id,
    /// The first key.
    pub(super) from: Key,
    /// The last key.
    pub(super) to: Key,
}

const FIRST: Key = Key {
    time: Timestamp::MIN,
    id: Id::MIN,
};

const LAST: Key = Key {
    time: Timestamp::MAX,
    id: Id::MAX,
};

impl Region {
    /// Everything that arrived up to a row.
    pub(super) fn arrived(up_to: Id) -> Region {
        let (from, to) = (FIRST, LAST);
        Region { up_to, from, to }
    }

    /// Of what arrived up to a row, what a reading in order passed that ended behind `last`.
    pub(super) fn read(up_to: Id, last: Key, direction: Direction) -> Region {
        match direction {
            Direction::Forward => Region {
                up_to,
                from: FIRST,
                to: last,
            },
            Direction::Backward => Region {
                up_to,
                from: last,
                to: LAST,
            },
        }
    }

    /// Whether a row is in it.
    pub(super) fn contains(&self, key: Key) -> bool {
        key.id <= self.up_to && self.from <= key && key <= self.to
    }

    /// Whether it has everything that arrived up to its last row.
    pub(super) fn is_whole(&self) -> bool {
        (self.from, self.to) == (FIRST, LAST)
    }

    fn contains_all(&self, other: &Region) -> bool {
        other.up_to <= self.up_to && self.from <= other.from && other.to <= self.to
    }

    fn encode(&self, out: &mut Encoder) {
        out.wide(self.up_to.0);
        for key in [self.from, self.to] {
            out.time(key.time);
            out.wide(key.id.0);
        }
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Region, DecodeError> {
        let up_to = Id(from.wide("a region")?);
        let mut key = || {
            let time = from.time("a region")?;
            let id = Id(from.wide("a region")?);
            Ok(Key { time, id })
        };
        let (from, to) = (key()?, key()?);
        Ok(Region { up_to, from, to })
    }
}

/// Appends a list of regions to a message.
pub(super) fn encode_regions(regions: &[Region], out: &mut Encoder) {
    out.count(regions.len());
    regions.iter().for_each(|region| region.encode(out));
}

/// Reads what [`encode_regions`] wrote.
pub(super) fn decode_regions(from: &mut Decoder<'_>) -> Result<Vec<Region>, DecodeError> {
    let count = from.count(64, "the regions")?;
    (0..count).map(|_| Region::decode(from)).collect()
}

/// How far each source was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    /// Sources of which nothing is to be shown any more.
    done: SourceSet,
    /// Of others, what need not be shown any more.
    shown: BTreeMap<SourceId, Vec<Region>>,
    /// Of incarnations that could not be read when the following began: rows up to here arrived
    /// before.
    floors: BTreeMap<Incarnation, Id>,
    /// Batches of which originals were shown or passed, or are with some that were.
    originals: NotedBatches,
    /// What was shown of copies.
    pub(super) copies: Copies,
}

impl Positions {
    /// Whether the original of a batch was shown, at least in part, or passed.
    pub(super) fn has_original(&self, batch: Batch) -> bool {
        self.originals.contains(batch)
    }

    /// Notes that originals were shown or passed, or are with some that were.
    pub(super) fn note_originals(&mut self, batches: &BatchSet) {
        self.originals.note_all(batches);
    }

    /// Notes that the original of a batch was shown.
    pub(super) fn note_original(&mut self, batch: Batch) {
        self.originals.note(batch);
    }

    /// Whether nothing of a source is to be shown any more.
    pub(super) fn is_done(&self, source: SourceId) -> bool {
        self.done.contains(source)
    }

    /// The sources of a set of which something may have to be shown.
    pub(super) fn open(&self, sources: &SourceSet) -> SourceSet {
        sources.without(&self.done)
    }

    /// The sources of a set of which at least a part was shown.
    pub(super) fn begun(&self, sources: &SourceSet) -> SourceSet {
        let mut begun = self.done.clone();
        self.shown.keys().for_each(|source| begun.insert(*source));
        begun.common(sources)
    }

    /// Whether at least a part of a source was shown or passed.
    pub(super) fn is_begun(&self, source: SourceId) -> bool {
        self.is_done(source) || self.shown.contains_key(&source)
    }

    /// What of a source need not be shown any more.
    pub(super) fn regions(&self, source: SourceId) -> Vec<Region> {
        let mut regions = self.shown.get(&source).cloned().unwrap_or_default();
        if let Some(floor) = self.floors.get(&source.incarnation) {
            add(&mut regions, Region::arrived(*floor));
        }
        regions
    }

    /// Notes that rows of a source were shown or passed.
    pub(super) fn pass(&mut self, source: SourceId, region: Region) {
        if !self.is_done(source) {
            add(self.shown.entry(source).or_default(), region);
        }
    }

    /// Notes that all rows of these sources were shown or passed, and that they get no others.
    pub(super) fn finish(&mut self, sources: &SourceSet) {
        self.done.union_with(sources);
        let done = &self.done;
        self.shown.retain(|source, _| !done.contains(*source));
    }

    /// Notes that what an incarnation took in up to a row is not to be shown.
    pub(super) fn set_floor(&mut self, incarnation: Incarnation, up_to: Id) {
        let floor = self.floors.entry(incarnation).or_default();
        *floor = up_to.max(*floor);
    }

    /// Puts sources with the same regions together: so they can be read in one go.
    pub(super) fn groups(&self, sources: &SourceSet) -> Vec<(SourceSet, Vec<Region>)> {
        let mut groups: Vec<(SourceSet, Vec<Region>)> = Vec::new();
        for source in sources.iter() {
            let regions = self.regions(source);
            match groups.iter_mut().find(|(_, same)| *same == regions) {
                Some((group, _)) => group.insert(source),
                None => groups.push((SourceSet::from_iter([source]), regions)),
            }
        }
        groups
    }

    /// Appends the positions to a message between nodes: batches are left out.
    pub(super) fn encode(&self, out: &mut Encoder) {
        out.sources(&self.done);
        out.count(self.shown.len());
        for (source, regions) in &self.shown {
            out.wide(source.incarnation.0);
            out.number(source.sequence);
            encode_regions(regions, out);
        }
        self.encode_floors(out);
    }

    fn encode_floors(&self, out: &mut Encoder) {
        out.count(self.floors.len());
        for (incarnation, floor) in &self.floors {
            out.wide(incarnation.0);
            out.wide(floor.0);
        }
    }

    fn decode_floors(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        for _ in 0..from.count(32, "what is older")? {
            let incarnation = Incarnation(from.wide("an incarnation")?);
            self.set_floor(incarnation, Id(from.wide("an incarnation")?));
        }
        Ok(())
    }

    /// Reads what [`Positions::encode`] wrote.
    pub(super) fn decode(from: &mut Decoder<'_>) -> Result<Positions, DecodeError> {
        let mut positions = Positions {
            done: from.sources("what is done")?,
            ..Positions::default()
        };
        for _ in 0..from.count(18, "what was shown")? {
            let incarnation = Incarnation(from.wide("a source")?);
            let sequence = from.number("a source")?;
            let source = SourceId {
                incarnation,
                sequence,
            };
            for region in decode_regions(from)? {
                positions.pass(source, region);
            }
        }
        positions.decode_floors(from)?;
        Ok(positions)
    }

    /// Appends the positions to what a client is told: sources with the same regions together. A reading
    /// in order that ended early has one region for each of very many sources.
    fn encode_briefly(&self, out: &mut Encoder) {
        out.sources(&self.done);
        let mut groups: BTreeMap<&[Region], SourceSet> = BTreeMap::new();
        for (source, regions) in &self.shown {
            groups.entry(regions).or_default().insert(*source);
        }
        out.count(groups.len());
        for (regions, sources) in &groups {
            encode_regions(regions, out);
            out.sources(sources);
        }
        self.encode_floors(out);
    }

    /// Reads what [`Positions::encode_briefly`] wrote.
    fn decode_brief(from: &mut Decoder<'_>) -> Result<Positions, DecodeError> {
        let mut positions = Positions {
            done: from.sources("what is done")?,
            ..Positions::default()
        };
        let mut room = REGIONS_TOLD_MAX;
        for _ in 0..from.count(2, "what was shown")? {
            let regions = decode_regions(from)?;
            let sources = from.sources("what was shown")?;
            for source in sources.iter() {
                let left = room.checked_sub(regions.len().max(1));
                room = left.ok_or(DecodeError::Malformed("what was shown"))?;
                regions.iter().for_each(|r| positions.pass(source, *r));
            }
        }
        positions.decode_floors(from)?;
        Ok(positions)
    }

    /// The positions as text that a client gives back.
    pub fn to_text(&self) -> String {
        self.to_text_with(COPIED_ROWS_TOLD_MAX)
    }

    /// The positions as text with at most so many rows of copies.
    pub(super) fn to_text_with(&self, copied_rows_max: usize) -> String {
        use base64::Engine as _;
        let mut out = Encoder::new(VERSION);
        self.encode_briefly(&mut out);
        out.bytes(&self.originals.newest(RUNS_TOLD_MAX).to_bytes());
        self.copies.encode(RUNS_TOLD_MAX, copied_rows_max, &mut out);
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(out.finish())
    }

    /// Reads what [`Positions::to_text`] wrote.
    ///
    /// # Errors
    /// When the text is something else.
    pub fn from_text(text: &str) -> Result<Positions, PositionError> {
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text);
        let bytes = bytes.map_err(|_| PositionError)?;
        Positions::from_bytes(&bytes).map_err(|_| PositionError)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Positions, DecodeError> {
        let mut from = Decoder::new(bytes, VERSION)?;
        let mut positions = Positions::decode_brief(&mut from)?;
        let originals = from.bytes(bytes.len(), "the batches")?;
        positions.originals = BatchSet::from_bytes(originals)?.into();
        positions.copies = Copies::decode(&mut from, bytes.len())?;
        from.finish().map(|()| positions)
    }
}

/// Adds a region to those that are not within another.
fn add(regions: &mut Vec<Region>, region: Region) {
    if regions.iter().any(|known| known.contains_all(&region)) {
        return;
    }
    regions.retain(|known| !region.contains_all(known));
    let at = regions.partition_point(|known| {
        (known.up_to, known.from, known.to) < (region.up_to, region.from, region.to)
    });
    regions.insert(at, region);
}

/// A text is not a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionError;

impl fmt::Display for PositionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is not the `position` of an earlier answer of this release")
    }
}

impl std::error::Error for PositionError {}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_segment::sources::Interval;
    use proptest::prelude::*;

    fn key(time: i64, id: u128) -> Key {
        Key {
            time: Timestamp(time),
            id: Id(id),
        }
    }

    fn source(sequence: u64) -> SourceId {
        SourceId {
            incarnation: Incarnation(7),
            sequence,
        }
    }

    /// Something that happens to one source of a follower.
    #[derive(Clone, Debug)]
    enum Step {
        /// Rows were taken in.
        Arrive(Vec<i64>),
        /// A stream shows rows in the order of arrival, at most so many.
        Stream(usize),
        /// A reading in order shows at most so many, and breaks unless that was all.
        Read(usize, bool),
        /// A client goes away and comes back with what it was told.
        Reconnect,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => prop::collection::vec(0i64..6, 1..5).prop_map(Step::Arrive),
            2 => (0usize..5).prop_map(Step::Stream),
            2 => (0usize..5, any::<bool>()).prop_map(|(n, b)| Step::Read(n, b)),
            1 => Just(Step::Reconnect),
        ];
        prop::collection::vec(step, 0..30)
    }

    proptest! {
        /// However streams and readings of one source alternate and break: each row is shown once.
        #[test]
        fn each_row_is_shown_once(steps in steps()) {
            let (mut rows, mut shown) = (Vec::<Key>::new(), Vec::<Key>::new());
            let mut positions = Positions::default();
            let it = source(0);
            let left = |rows: &[Key], positions: &Positions| -> Vec<Key> {
                let regions = positions.regions(it);
                let is_left = |key: &&Key| !regions.iter().any(|r| r.contains(**key));
                rows.iter().filter(is_left).copied().collect()
            };
            for step in steps {
                match step {
                    Step::Arrive(times) => for time in times {
                        rows.push(key(time, rows.len() as u128 + 1));
                    },
                    Step::Stream(count) => for row in left(&rows, &positions).into_iter().take(count) {
                        shown.push(row);
                        positions.pass(it, Region::arrived(row.id));
                    },
                    Step::Read(count, is_backward) => {
                        let direction = if is_backward {
                            Direction::Backward
                        } else {
                            Direction::Forward
                        };
                        let up_to = rows.last().map_or(Id::MIN, |row| row.id);
                        let mut left = left(&rows, &positions);
                        left.sort_unstable_by(|a, b| direction.compare(*a, *b));
                        let whole = left.len() <= count;
                        left.truncate(count);
                        shown.extend(&left);
                        match (whole, left.last()) {
                            (true, _) => positions.pass(it, Region::arrived(up_to)),
                            (false, Some(last)) => {
                                positions.pass(it, Region::read(up_to, *last, direction));
                            }
                            (false, None) => {}
                        }
                    }
                    Step::Reconnect => {
                        positions = Positions::from_text(&positions.to_text()).expect("it is one");
                    }
                }
            }
            shown.extend(left(&rows, &positions));
            shown.sort_unstable();
            rows.sort_unstable();
            prop_assert_eq!(shown, rows);
        }
    }

    #[test]
    fn what_is_done_is_not_read_again() {
        let mut positions = Positions::default();
        let all = SourceSet::from_iter((0..4).map(source));
        positions.pass(source(1), Region::arrived(Id(9)));
        positions.pass(source(2), Region::arrived(Id(5)));
        positions.pass(source(2), Region::arrived(Id(4)));
        positions.set_floor(Incarnation(7), Id(5));
        positions.finish(&SourceSet::from_iter([source(0)]));
        let groups = positions.groups(&positions.open(&all));
        let expected = [
            (
                SourceSet::from_iter([source(1)]),
                vec![Region::arrived(Id(9))],
            ),
            (
                SourceSet::from_iter([source(2), source(3)]),
                vec![Region::arrived(Id(5))],
            ),
        ];
        assert_eq!(groups, expected);
        positions.finish(&all);
        assert_eq!(positions.open(&all), SourceSet::new());
        assert!(positions.shown.is_empty());
    }

    #[test]
    fn a_position_goes_with_an_address() {
        let mut positions = Positions::default();
        for sender in 0..5000 {
            positions.note_original((u128::MAX - sender, u64::MAX));
            let copy = (u128::MAX - sender, u64::MAX - 2);
            (0..5).for_each(|row| positions.copies.show(copy, source(u64::MAX), row));
        }
        let text = positions.to_text();
        assert!(text.len() < 60_000, "{}", text.len());
        let told = Positions::from_text(&text).unwrap();
        assert!(told.has_original((u128::MAX - 4999, u64::MAX)));
        assert!(told.copies.contains((u128::MAX - 4999, u64::MAX - 2)));
    }

    /// A client that leaves a long reading in order is told about every source of it, and they have the
    /// same region.
    #[test]
    fn a_position_amidst_very_many_sources_goes_with_an_address() {
        let mut positions = Positions::default();
        let region = Region::read(Id::MAX, key(5, 6), Direction::Forward);
        for node in 0..20 {
            for sequence in (0..1000).step_by(2) {
                let incarnation = Incarnation(u128::MAX - node);
                let [read, done] = [0, 1].map(|next| SourceId {
                    incarnation,
                    sequence: sequence + next,
                });
                positions.pass(read, region);
                positions.finish(&SourceSet::from_iter([done]));
            }
        }
        let text = positions.to_text();
        assert!(text.len() < 60_000, "{}", text.len());
        assert_eq!(Positions::from_text(&text), Ok(positions));
    }

    /// An interval of sources is short, and each source takes memory.
    #[test]
    fn a_position_of_all_sources_is_refused() {
        let mut out = Encoder::new(VERSION);
        out.sources(&SourceSet::new());
        out.count(1);
        encode_regions(&[Region::arrived(Id(1))], &mut out);
        let mut all = SourceSet::new();
        all.insert_interval(
            Incarnation(7),
            Interval {
                from: 0,
                to: u64::MAX,
            },
        );
        out.sources(&all);
        let decoded = Positions::from_bytes(&out.finish());
        assert_eq!(decoded, Err(DecodeError::Malformed("what was shown")));
    }

    #[test]
    fn only_positions_are_read() {
        let mut positions = Positions::default();
        positions.pass(
            source(3),
            Region::read(Id(4), key(5, 6), Direction::Backward),
        );
        positions.finish(&SourceSet::from_iter([source(9)]));
        positions.note_original((7, 8));
        positions.copies.show((7, 9), source(4), 5);
        let text = positions.to_text();
        assert_eq!(Positions::from_text(&text), Ok(positions));
        for length in 0..text.len() {
            assert_eq!(Positions::from_text(&text[..length]), Err(PositionError));
        }
        assert_eq!(Positions::from_text("!"), Err(PositionError));
    }
}
