//! Series by their keys, for tables of as many as there are addresses of clients: keys lie one behind another
//! in one piece of memory, and a series with one cell has no memory of its own.
//!
//! Such a table is larger than what a processor keeps at hand, and each of hash table, series and key is
//! somewhere else: where many keys are known, [`SeriesMap::find_together`] waits for them at once.

use std::mem::size_of;
use std::ops::Deref;
use std::sync::Arc;

use hashbrown::HashTable;
use logpond_record::cast;
use xxhash_rust::xxh3::xxh3_64;

use super::cells::Cell;
use crate::lru::allocated;

/// Cells with their pieces of time.
type Timed = (u32, Cell);

/// The cells of a series, in the order of their pieces of time. Many series have just one.
#[derive(Clone, Debug)]
pub(super) enum Cells {
    One([Timed; 1]),
    Many(Vec<Timed>),
}

impl Cells {
    pub(super) fn as_slice(&self) -> &[Timed] {
        match self {
            Cells::One(one) => one,
            Cells::Many(many) => many,
        }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [Timed] {
        match self {
            Cells::One(one) => one,
            Cells::Many(many) => many,
        }
    }

    /// The memory that the cells take beside this.
    fn memory_bytes(&self) -> usize {
        let numbers = |(_, cell): &Timed| cell.numbers_bytes() + cell.moments_bytes();
        let beside = self.as_slice().iter().map(numbers).sum::<usize>();
        match self {
            Cells::One(_) => beside,
            Cells::Many(many) => beside + allocated(many.capacity() * size_of::<Timed>()),
        }
    }

    fn shrink(&mut self) {
        if let Cells::Many(many) = self {
            many.shrink_to_fit();
        }
    }

    pub(super) fn insert(&mut self, at: usize, cell: Timed) {
        if let Cells::One([one]) = self {
            *self = Cells::Many(vec![one.clone()]);
        }
        if let Cells::Many(many) = self {
            many.insert(at, cell);
        }
    }
}

impl IntoIterator for Cells {
    type Item = Timed;
    type IntoIter = std::iter::Chain<
        std::iter::Flatten<std::option::IntoIter<[Timed; 1]>>,
        std::vec::IntoIter<Timed>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self {
            Cells::One(one) => (Some(one), Vec::new()),
            Cells::Many(many) => (None, many),
        };
        one.into_iter().flatten().chain(many)
    }
}

/// What is left of a key's hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tag(u32);

impl Tag {
    pub(super) fn of(key: &[u8]) -> Tag {
        Tag(cast::low_u32(xxh3_64(key)))
    }

    /// What the hash table goes by: it takes the first bits for one thing and the last ones for another.
    fn hash(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.0)
    }
}

/// How many keys are looked for together at most: as many as a processor can wait for, and some more.
pub(super) const TOGETHER_MAX: usize = 32;

/// Where a series is, by its key's tag. Growing the hash table reads nothing else.
#[derive(Clone, Copy, Debug)]
struct Place {
    tag: Tag,
    number: u32,
}

/// The result of a lookup in a table of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyLookup {
    /// The series is at this place.
    At(u32),
    /// There is none.
    Nowhere,
    /// There is one whose key has the same tag; the one that is looked for may be there, too.
    Unsure,
}

#[derive(Clone, Debug)]
struct Series {
    /// Where the key begins and ends in all keys; a table's bound lets them have few enough bytes.
    key: (u32, u32),
    cells: Cells,
}

/// Series, each by the number of its place: they stay where they were put.
#[derive(Clone, Debug, Default)]
pub(super) struct SeriesMap {
    places: HashTable<Place>,
    series: Vec<Series>,
    keys: Vec<u8>,
}

impl SeriesMap {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.series.len()
    }

    /// The memory that all take, but for that of cells beyond the first ones of their series.
    pub(super) fn bytes(&self) -> usize {
        // A full table has seven of eight places taken, and a byte beside each.
        let places = self.places.capacity() / 7 * 8 * (size_of::<Place>() + 1);
        self.keys.capacity() + self.series.capacity() * size_of::<Series>() + places
    }

    /// The memory that all take.
    pub(super) fn memory_bytes(&self) -> usize {
        let cells = self.series.iter().map(|series| series.cells.memory_bytes());
        self.bytes() + cells.sum::<usize>()
    }

    fn shrink(&mut self) {
        let SeriesMap {
            places,
            series,
            keys,
        } = self;
        series.iter_mut().for_each(|series| series.cells.shrink());
        series.shrink_to_fit();
        keys.shrink_to_fit();
        places.shrink_to_fit(|place| place.tag.hash());
    }

    /// Makes room for so many more series, whose keys have so many bytes.
    pub(super) fn reserve(&mut self, series: usize, key_bytes: usize) {
        self.series.reserve(series);
        self.keys.reserve(key_bytes);
        self.places.reserve(series, |place| place.tag.hash());
    }

    /// The key of a series by its place.
    pub(super) fn key(&self, place: u32) -> &[u8] {
        key_of(&self.keys, &self.series[place as usize])
    }

    /// The cells of a series by its place.
    pub(super) fn cells(&self, place: u32) -> &[Timed] {
        self.series[place as usize].cells.as_slice()
    }

    /// The cells of a series by its place, to be changed.
    pub(super) fn cells_mut(&mut self, place: u32) -> &mut Cells {
        &mut self.series[place as usize].cells
    }

    /// Where the series with these keys are, at most [`TOGETHER_MAX`] of them.
    pub(super) fn find_together(&self, keys: &[(Tag, &[u8])]) -> [KeyLookup; TOGETHER_MAX] {
        let mut all = [KeyLookup::Nowhere; TOGETHER_MAX];
        // One loop for each thing that is waited for, so that its turns wait side by side.
        for (found, (tag, _)) in all.iter_mut().zip(keys) {
            if let Some(place) = self.places.find(tag.hash(), |known| known.tag == *tag) {
                *found = KeyLookup::At(place.number);
            }
        }
        let mut spans = [(0, 0); TOGETHER_MAX];
        for (span, found) in spans.iter_mut().zip(all) {
            if let KeyLookup::At(place) = found {
                *span = self.series[place as usize].key;
            }
        }
        for ((found, (start, end)), (_, key)) in all.iter_mut().zip(spans).zip(keys) {
            let is_it = self.keys[start as usize..end as usize] == **key;
            if matches!(found, KeyLookup::At(_)) && !is_it {
                *found = KeyLookup::Unsure;
            }
        }
        all
    }

    /// All, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[Timed])> {
        let key = |series| key_of(&self.keys, series);
        self.series
            .iter()
            .map(move |series| (key(series), series.cells.as_slice()))
    }

    /// The place of the series with this key and its tag. If there is none, it is put there with the cells
    /// that `new` gives.
    pub(super) fn find_or_insert(
        &mut self,
        (tag, key): (Tag, &[u8]),
        new: impl FnOnce() -> Cells,
    ) -> u32 {
        let SeriesMap {
            places,
            series,
            keys,
        } = self;
        let is_it =
            |place: &Place| place.tag == tag && key_of(keys, &series[place.number as usize]) == key;
        match places.find(tag.hash(), is_it) {
            Some(place) => place.number,
            None => self.insert((tag, key), new()),
        }
    }

    /// Puts a series there whose key no other one has. Gives its place.
    pub(super) fn insert(&mut self, (tag, key): (Tag, &[u8]), cells: Cells) -> u32 {
        let number = cast::low_u32(self.series.len());
        let start = cast::low_u32(self.keys.len());
        self.keys.extend_from_slice(key);
        self.series.push(Series {
            key: (start, cast::low_u32(self.keys.len())),
            cells,
        });
        let hash_of = |place: &Place| place.tag.hash();
        self.places
            .insert_unique(tag.hash(), Place { tag, number }, hash_of);
        number
    }

    /// Hands over all with their keys, so many at a time as are looked for together.
    fn into_batches(self, mut visit: impl FnMut(&[(Tag, &[u8])], Vec<Cells>)) {
        let SeriesMap { series, keys, .. } = self;
        let mut series = series.into_iter();
        loop {
            let batch: Vec<Series> = series.by_ref().take(TOGETHER_MAX).collect();
            if batch.is_empty() {
                return;
            }
            let tagged = |series: &Series| {
                let key = key_of(&keys, series);
                (Tag::of(key), key)
            };
            let tagged: Vec<(Tag, &[u8])> = batch.iter().map(tagged).collect();
            visit(
                &tagged,
                batch.into_iter().map(|series| series.cells).collect(),
            );
        }
    }
}

/// Series of one table, or of many. An `Arc` alone would ask for the number of its owners with each cell
/// that is filled in.
#[derive(Clone, Debug)]
pub(super) enum SeriesHandle {
    Own(SeriesMap),
    Shared(Arc<SeriesMap>),
}

impl SeriesHandle {
    /// The series, to be changed; they are copied if others have them, too.
    pub(super) fn own(&mut self) -> &mut SeriesMap {
        if let SeriesHandle::Shared(shared) = self {
            *self = SeriesHandle::Own(SeriesMap::clone(shared));
        }
        match self {
            SeriesHandle::Own(own) => own,
            SeriesHandle::Shared(_) => unreachable!("they were made its own"),
        }
    }

    /// Hands over all with their keys, at most [`TOGETHER_MAX`] at a time.
    pub(super) fn into_batches(self, visit: impl FnMut(&[(Tag, &[u8])], Vec<Cells>)) {
        match self {
            SeriesHandle::Own(own) => own.into_batches(visit),
            SeriesHandle::Shared(shared) => SeriesMap::clone(&shared).into_batches(visit),
        }
    }

    /// The series, for any number of tables.
    pub(super) fn into_shared(self) -> Arc<SeriesMap> {
        match self {
            SeriesHandle::Own(mut own) => {
                own.shrink();
                Arc::new(own)
            }
            SeriesHandle::Shared(shared) => shared,
        }
    }
}

impl Default for SeriesHandle {
    fn default() -> SeriesHandle {
        SeriesHandle::Own(SeriesMap::default())
    }
}

impl Deref for SeriesHandle {
    type Target = SeriesMap;

    fn deref(&self) -> &SeriesMap {
        match self {
            SeriesHandle::Own(own) => own,
            SeriesHandle::Shared(shared) => shared,
        }
    }
}

fn key_of<'k>(keys: &'k [u8], series: &Series) -> &'k [u8] {
    &keys[series.key.0 as usize..series.key.1 as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(key: &[u8]) -> (Tag, &[u8]) {
        (Tag::of(key), key)
    }

    #[test]
    fn series_are_found_by_their_keys_and_stay_in_their_places() {
        let mut map = SeriesMap::default();
        let count = |n: u64| (n as u32, Cell::Count(n));
        for round in 0..3u64 {
            for number in 0..10_000u64 {
                let key = number.to_string();
                let mut is_known = true;
                let place = map.find_or_insert(tagged(key.as_bytes()), || {
                    is_known = false;
                    Cells::One([count(round)])
                });
                assert_eq!((u64::from(place), is_known), (number, round > 0));
                if is_known {
                    let cells = map.cells_mut(place);
                    cells.insert(cells.as_slice().len(), count(round));
                }
            }
        }
        assert_eq!(map.len(), 10_000);
        assert_eq!((map.key(77), map.cells(77).len()), (&b"77"[..], 3));
        for (number, (key, _)) in map.iter().enumerate() {
            assert_eq!(key, number.to_string().as_bytes());
        }
        let wanted = [&b"77"[..], b"none", b"9999"].map(tagged);
        let found = map.find_together(&wanted);
        let expected = [KeyLookup::At(77), KeyLookup::Nowhere, KeyLookup::At(9999)];
        assert_eq!(found[..3], expected);
        assert!(found[3..].iter().all(|found| *found == KeyLookup::Nowhere));
        let same_tag = (Tag::of(b"77"), &b"another"[..]);
        assert_eq!(map.find_together(&[same_tag])[0], KeyLookup::Unsure);
        let mut batched = Vec::new();
        map.clone().into_batches(|keys, cells| {
            assert!(keys.len() == cells.len() && keys.len() <= TOGETHER_MAX);
            batched.extend(keys.iter().map(|(_, key)| key.to_vec()));
        });
        assert!(
            batched
                .iter()
                .map(Vec::as_slice)
                .eq(map.iter().map(|(key, _)| key))
        );
        map.cells_mut(77).as_mut_slice()[0] = count(7);
        assert!(matches!(map.cells(77)[0], (7, Cell::Count(7))));
        let mut cells = 0;
        map.into_batches(|_, batch| {
            let batch = batch.into_iter();
            cells += batch
                .map(|of_series| of_series.into_iter().count())
                .sum::<usize>();
        });
        assert_eq!(cells, 30_000);
        assert_eq!(size_of::<Cell>(), 24, "there may be millions");
    }
}
