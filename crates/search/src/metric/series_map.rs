//! Series by their keys, for tables of as many as there are addresses of clients: keys lie one behind another
//! in one piece of memory, and a series with one cell has no memory of its own.
//!
//! Such a table is larger than what a processor keeps at hand, and each of hash table, series and key is
//! somewhere else: where many keys are known, [`SeriesMap::find_together`] waits for them at once.

use std::mem::size_of;
use std::ops::Deref;
use std::sync::Arc;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use super::cells::Cell;

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

/// How many keys are looked for together at most: as many as a processor can wait for, and some more.
pub(super) const TOGETHER_MAX: usize = 32;

/// Where a series is, by what is left of its key's hash. Growing the hash table reads nothing else.
#[derive(Clone, Copy, Debug)]
struct Place {
    tag: u32,
    number: u32,
}

impl Place {
    /// What the hash table goes by: it takes the first bits for one thing and the last ones for another.
    fn hash(tag: u32) -> u64 {
        u64::from(tag) << 32 | u64::from(tag)
    }
}

fn tag(key: &[u8]) -> u32 {
    xxh3_64(key) as u32
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
        self.keys.len() + self.series.len() * (size_of::<Series>() + 2 * size_of::<Place>())
    }

    fn shrink(&mut self) {
        let SeriesMap {
            places,
            series,
            keys,
        } = self;
        series.shrink_to_fit();
        keys.shrink_to_fit();
        places.shrink_to_fit(|place| Place::hash(place.tag));
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

    /// The places of series with these keys, at most [`TOGETHER_MAX`] of them, as far as they are found
    /// without a second look: a series without a place may be there all the same.
    pub(super) fn find_together(&self, keys: &[&[u8]]) -> [Option<u32>; TOGETHER_MAX] {
        let mut places = [None; TOGETHER_MAX];
        // One loop for each thing that is waited for, so that its turns wait side by side.
        for (place, key) in places.iter_mut().zip(keys) {
            let tag = tag(key);
            let found = self.places.find(Place::hash(tag), |known| known.tag == tag);
            *place = found.map(|place| place.number);
        }
        let mut spans = [(0, 0); TOGETHER_MAX];
        for (span, place) in spans.iter_mut().zip(places) {
            if let Some(place) = place {
                *span = self.series[place as usize].key;
            }
        }
        for ((place, (start, end)), key) in places.iter_mut().zip(spans).zip(keys) {
            if place.is_some() && self.keys[start as usize..end as usize] != **key {
                *place = None;
            }
        }
        places
    }

    /// All, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[Timed])> {
        let key = |series| key_of(&self.keys, series);
        self.series
            .iter()
            .map(move |series| (key(series), series.cells.as_slice()))
    }

    /// The place of the series with this key. If there is none, it is put there with the cells that `new`
    /// gives.
    pub(super) fn find_or_insert(&mut self, key: &[u8], new: impl FnOnce() -> Cells) -> u32 {
        let SeriesMap {
            places,
            series,
            keys,
        } = self;
        let tag = tag(key);
        let is_it =
            |place: &Place| place.tag == tag && key_of(keys, &series[place.number as usize]) == key;
        let hash = Place::hash(tag);
        if let Some(place) = places.find(hash, is_it) {
            return place.number;
        }
        let number = series.len() as u32;
        let start = keys.len() as u32;
        keys.extend_from_slice(key);
        series.push(Series {
            key: (start, keys.len() as u32),
            cells: new(),
        });
        let hash_of = |place: &Place| Place::hash(place.tag);
        places.insert_unique(hash, Place { tag, number }, hash_of);
        number
    }

    /// Hands over all with their keys, in the order in which they came.
    pub(super) fn into_each(self, mut visit: impl FnMut(&[u8], Cells)) {
        for series in self.series {
            visit(key_of(&self.keys, &series), series.cells);
        }
    }
}

/// Series of one table, or of many. An `Arc` alone would ask for the number of its owners with each cell
/// that is filled in.
#[derive(Clone, Debug)]
pub(super) enum Held {
    Own(SeriesMap),
    Shared(Arc<SeriesMap>),
}

impl Held {
    /// The series, to be changed; they are copied if others have them, too.
    pub(super) fn own(&mut self) -> &mut SeriesMap {
        if let Held::Shared(shared) = self {
            *self = Held::Own(SeriesMap::clone(shared));
        }
        match self {
            Held::Own(own) => own,
            Held::Shared(_) => unreachable!("they were made its own"),
        }
    }

    /// Hands over all with their keys.
    pub(super) fn into_each(self, mut visit: impl FnMut(&[u8], Cells)) {
        match self {
            Held::Own(own) => own.into_each(visit),
            Held::Shared(shared) => shared
                .series
                .iter()
                .for_each(|series| visit(key_of(&shared.keys, series), series.cells.clone())),
        }
    }

    /// The series, for any number of tables.
    pub(super) fn into_shared(self) -> Arc<SeriesMap> {
        match self {
            Held::Own(mut own) => {
                own.shrink();
                Arc::new(own)
            }
            Held::Shared(shared) => shared,
        }
    }
}

impl Default for Held {
    fn default() -> Held {
        Held::Own(SeriesMap::default())
    }
}

impl Deref for Held {
    type Target = SeriesMap;

    fn deref(&self) -> &SeriesMap {
        match self {
            Held::Own(own) => own,
            Held::Shared(shared) => shared,
        }
    }
}

fn key_of<'k>(keys: &'k [u8], series: &Series) -> &'k [u8] {
    &keys[series.key.0 as usize..series.key.1 as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_found_by_their_keys_and_stay_in_their_places() {
        let mut map = SeriesMap::default();
        let count = |n: u64| (n as u32, Cell::Count(n));
        for round in 0..3u64 {
            for number in 0..10_000u64 {
                let key = number.to_string();
                let mut is_known = true;
                let place = map.find_or_insert(key.as_bytes(), || {
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
        let found = map.find_together(&[b"77", b"none", b"9999"]);
        assert_eq!(found[..3], [Some(77), None, Some(9999)]);
        assert!(found[3..].iter().all(Option::is_none));
        map.cells_mut(77).as_mut_slice()[0] = count(7);
        assert!(matches!(map.cells(77)[0], (7, Cell::Count(7))));
        let mut cells = 0;
        map.into_each(|_, of_series| cells += of_series.into_iter().count());
        assert_eq!(cells, 30_000);
    }
}
