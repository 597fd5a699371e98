//! Columns of blocks as they were decoded, kept for the next question: panels of a dashboard read the same
//! ones, and segments never change.
//!
//! Texts are kept where a dictionary has them, once for all blocks; what is as long as the lines is not.

use std::mem::size_of;
use std::sync::Arc;

use logpond_record::Id;
use logpond_segment::file::{ReadError, RowGroupReader};
use logpond_segment::rows::{Column, Numbers, StringColumn, Strings};

use super::packed::PackedNumbers;
use crate::lru::{Lru, Room, allocated};

/// The bytes before the value of an [`Arc`]: two counts.
const COUNTS_BYTES: usize = 2 * size_of::<usize>();

/// A column of a block, or what its blocks have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    segment: Id,
    group: usize,
    part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// The event times of a block.
    Times(usize),
    /// The values of a field, by its number in the schema, in a block.
    Field(usize, usize),
    /// The dictionary of a field.
    Dictionary(usize),
}

#[derive(Clone, Debug)]
enum CachedColumn {
    Times(Arc<PackedNumbers>),
    Codes(Arc<PackedNumbers>),
    Dictionary(Arc<Strings>),
    /// Numbers, and whether each row has one; empty if all have.
    Ints(Arc<(PackedNumbers, Vec<bool>)>),
    Floats(Arc<Numbers<f64>>),
    Bools(Arc<Numbers<bool>>),
    Absent,
}

/// Columns of any segments.
#[derive(Debug)]
pub struct ColumnCache(Lru<Place, CachedColumn>);

impl ColumnCache {
    /// Room for columns of together so many bytes.
    pub fn new(bytes_max: usize) -> ColumnCache {
        ColumnCache(Lru::new(bytes_max))
    }

    /// The same, which keeps only what this has room for, too.
    #[must_use]
    pub fn within(self, room: Arc<dyn Room>) -> ColumnCache {
        ColumnCache(self.0.within(room))
    }

    /// The memory of all that is kept.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Forgets what was not asked for longest, until so many bytes are free; gives how many are.
    pub fn give_way(&self, bytes: usize) -> usize {
        self.0.give_way(bytes)
    }

    /// The part of it that is of one row group.
    pub(super) fn of_group(&self, segment: Id, group: usize) -> KeptGroup<'_> {
        KeptGroup {
            kept: &self.0,
            segment,
            group,
        }
    }
}

/// Columns of one row group.
#[derive(Clone, Copy)]
pub(super) struct KeptGroup<'k> {
    kept: &'k Lru<Place, CachedColumn>,
    segment: Id,
    group: usize,
}

impl KeptGroup<'_> {
    /// The event times of a block.
    pub(super) fn times(
        &self,
        block: usize,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<Vec<i64>, ReadError> {
        if let Some(CachedColumn::Times(times)) = self.get(Part::Times(block)) {
            return Ok(times.unpack(|time| time));
        }
        let times = reader.times(block)?;
        let packed = PackedNumbers::of_times(&times);
        let bytes = packed.bytes();
        self.put(
            Part::Times(block),
            CachedColumn::Times(Arc::new(packed)),
            bytes,
        );
        Ok(times)
    }

    /// The values of a field in a block.
    pub(super) fn field(
        &self,
        column: usize,
        block: usize,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<Column, ReadError> {
        let part = Part::Field(column, block);
        if let Some(kept) = self.get(part)
            && let Some(values) = self.restored(kept, column, reader)?
        {
            return Ok(values);
        }
        let values = reader.field(column, block)?;
        let (kept, bytes) = match &values {
            Column::Ints(numbers) => {
                let packed = PackedNumbers::new(&numbers.values);
                let bytes = allocated(packed.bytes()) + allocated(numbers.valid.len());
                (
                    CachedColumn::Ints(Arc::new((packed, numbers.valid.clone()))),
                    bytes,
                )
            }
            Column::Floats(numbers) => (
                CachedColumn::Floats(Arc::new(numbers.clone())),
                bytes_of(numbers),
            ),
            Column::Bools(numbers) => (
                CachedColumn::Bools(Arc::new(numbers.clone())),
                bytes_of(numbers),
            ),
            Column::Absent => (CachedColumn::Absent, 0),
            Column::Strings(strings) => {
                let dictionary = reader.text_dictionary(column)?;
                if dictionary.is_some_and(|known| Arc::ptr_eq(&known, &strings.values)) {
                    self.put_dictionary(column, &strings.values);
                    let packed = PackedNumbers::of_codes(&strings.codes);
                    let bytes = packed.bytes();
                    (CachedColumn::Codes(Arc::new(packed)), bytes)
                } else {
                    return Ok(values);
                }
            }
        };
        self.put(part, kept, bytes);
        Ok(values)
    }

    fn restored(
        &self,
        kept: CachedColumn,
        column: usize,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<Option<Column>, ReadError> {
        Ok(Some(match kept {
            CachedColumn::Ints(numbers) => Column::Ints(Numbers {
                values: numbers.0.unpack(|number| number),
                valid: numbers.1.clone(),
            }),
            CachedColumn::Floats(numbers) => Column::Floats((*numbers).clone()),
            CachedColumn::Bools(numbers) => Column::Bools((*numbers).clone()),
            CachedColumn::Absent => Column::Absent,
            CachedColumn::Codes(codes) => match self.dictionary(column, reader)? {
                Some(values) => Column::Strings(StringColumn {
                    codes: codes.codes(),
                    values,
                }),
                None => return Ok(None),
            },
            CachedColumn::Times(_) | CachedColumn::Dictionary(_) => return Ok(None),
        }))
    }

    fn dictionary(
        &self,
        column: usize,
        reader: &mut RowGroupReader<'_>,
    ) -> Result<Option<Arc<Strings>>, ReadError> {
        if let Some(CachedColumn::Dictionary(values)) = self.get(Part::Dictionary(column)) {
            return Ok(Some(values));
        }
        let values = reader.text_dictionary(column)?;
        if let Some(values) = &values {
            self.put_dictionary(column, values);
        }
        Ok(values)
    }

    fn put_dictionary(&self, column: usize, values: &Arc<Strings>) {
        let part = Part::Dictionary(column);
        if self.get(part).is_none() {
            let bytes = values.memory_bytes();
            self.put(part, CachedColumn::Dictionary(Arc::clone(values)), bytes);
        }
    }

    fn get(&self, part: Part) -> Option<CachedColumn> {
        self.kept.get(&self.place(part))
    }

    fn put(&self, part: Part, kept: CachedColumn, bytes: usize) {
        let value = match &kept {
            CachedColumn::Times(_) | CachedColumn::Codes(_) => size_of::<PackedNumbers>(),
            CachedColumn::Dictionary(_) => size_of::<Strings>(),
            CachedColumn::Ints(_) => size_of::<(PackedNumbers, Vec<bool>)>(),
            CachedColumn::Floats(_) => size_of::<Numbers<f64>>(),
            CachedColumn::Bools(_) => size_of::<Numbers<bool>>(),
            CachedColumn::Absent => return self.kept.put(self.place(part), kept, 0),
        };
        let bytes = allocated(bytes) + allocated(COUNTS_BYTES + value);
        self.kept.put(self.place(part), kept, bytes);
    }

    fn place(&self, part: Part) -> Place {
        Place {
            segment: self.segment,
            group: self.group,
            part,
        }
    }
}

fn bytes_of<T>(numbers: &Numbers<T>) -> usize {
    allocated(numbers.values.len() * size_of::<T>()) + allocated(numbers.valid.len())
}
