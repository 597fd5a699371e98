//! Series by their keys, for tables of as many as there are addresses of clients: keys lie one behind another
//! in one piece of memory, and a series with one cell has no memory of its own.

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

#[derive(Clone, Debug)]
struct Series {
    hash: u64,
    /// Where the key begins and ends in all keys; a table's bound lets them have few enough bytes.
    key: (u32, u32),
    cells: Cells,
}

/// Series, each by the number of its place: they stay where they were put.
#[derive(Clone, Debug, Default)]
pub(super) struct SeriesMap {
    places: HashTable<u32>,
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
        self.keys.len() + self.series.len() * (size_of::<Series>() + 2 * size_of::<u32>())
    }

    fn shrink(&mut self) {
        let SeriesMap {
            places,
            series,
            keys,
        } = self;
        series.shrink_to_fit();
        keys.shrink_to_fit();
        places.shrink_to_fit(|place| series[*place as usize].hash);
    }

    /// The key of a series by its place.
    pub(super) fn key(&self, place: u32) -> &[u8] {
        key_of(&self.keys, &self.series[place as usize])
    }

    /// The cells of a series by its place.
    pub(super) fn cells(&self, place: u32) -> &[Timed] {
        self.series[place as usize].cells.as_slice()
    }

    /// All, in the order in which they came.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[Timed])> {
        let key = |series| key_of(&self.keys, series);
        self.series
            .iter()
            .map(move |series| (key(series), series.cells.as_slice()))
    }

    /// The cells of the series with this key. If there is none, it is put there with the cells that `new`
    /// gives; whether it was there is said, too.
    pub(super) fn find_or_insert(
        &mut self,
        key: &[u8],
        new: impl FnOnce() -> Cells,
    ) -> (&mut Cells, bool) {
        let SeriesMap {
            places,
            series,
            keys,
        } = self;
        let hash = xxh3_64(key);
        let is_it = |place: &u32| {
            let known = &series[*place as usize];
            known.hash == hash && key_of(keys, known) == key
        };
        if let Some(place) = places.find(hash, is_it) {
            return (&mut series[*place as usize].cells, true);
        }
        let place = series.len();
        let start = keys.len() as u32;
        keys.extend_from_slice(key);
        series.push(Series {
            hash,
            key: (start, keys.len() as u32),
            cells: new(),
        });
        places.insert_unique(hash, place as u32, |place| series[*place as usize].hash);
        (&mut series[place].cells, false)
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
                let (cells, is_known) =
                    map.find_or_insert(key.as_bytes(), || Cells::One([count(round)]));
                assert_eq!(is_known, round > 0);
                if is_known {
                    cells.insert(cells.as_slice().len(), count(round));
                }
            }
        }
        assert_eq!(map.len(), 10_000);
        assert_eq!((map.key(77), map.cells(77).len()), (&b"77"[..], 3));
        for (number, (key, _)) in map.iter().enumerate() {
            assert_eq!(key, number.to_string().as_bytes());
        }
        let mut cells = 0;
        map.into_each(|_, of_series| cells += of_series.into_iter().count());
        assert_eq!(cells, 30_000);
    }
}
