//! A column of one type, one place per row.

use logpond_record::cast;

/// The code of a row without a value.
pub const NULL: u32 = u32::MAX;

/// Byte strings, one after another in one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    bytes: Vec<u8>,
    /// Where each string starts and ends in `bytes`.
    ranges: Vec<(u32, u32)>,
}

impl Strings {
    /// Strings that lie at `ranges` of `bytes`.
    ///
    /// Every range must lie inside, as [`crate::encoding::plain::decode_bytes`] ensures.
    pub fn new(bytes: Vec<u8>, ranges: Vec<(u32, u32)>) -> Strings {
        debug_assert!(
            ranges
                .iter()
                .all(|(a, b)| a <= b && *b as usize <= bytes.len())
        );
        Strings { bytes, ranges }
    }

    /// No strings, with room for `count` of together `bytes`.
    pub(crate) fn with_capacity(count: usize, bytes: usize) -> Strings {
        Strings {
            bytes: Vec::with_capacity(bytes),
            ranges: Vec::with_capacity(count),
        }
    }

    /// Makes room for `count` more strings of together `bytes`.
    pub(crate) fn reserve(&mut self, count: usize, bytes: usize) {
        self.bytes.reserve(bytes);
        self.ranges.reserve(count);
    }

    /// Appends a string.
    pub fn push(&mut self, value: &[u8]) {
        let from = cast::low_u32(self.bytes.len());
        self.bytes.extend_from_slice(value);
        self.ranges.push((from, cast::low_u32(self.bytes.len())));
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The memory that the strings take, room for further ones included.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ranges.capacity() * size_of::<(u32, u32)>()
    }

    /// String number `code`.
    pub fn get(&self, code: u32) -> &[u8] {
        let (from, to) = self.ranges[code as usize];
        &self.bytes[from as usize..to as usize]
    }

    /// The strings in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ranges
            .iter()
            .map(|(a, b)| &self.bytes[*a as usize..*b as usize])
    }

    /// Bytes of all strings and the buffer around them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether every string is shorter than so many bytes.
    pub fn all_shorter_than(&self, bytes: u32) -> bool {
        self.bytes.len() < bytes as usize || self.ranges.iter().all(|(a, b)| b - a < bytes)
    }

    /// Where string number `code` lies in [`Strings::bytes`].
    pub fn range(&self, code: u32) -> (u32, u32) {
        self.ranges[code as usize]
    }
}

/// Strings by row: codes into a table of strings.
///
/// The table may be a dictionary, in which equal strings have one code, or just the strings in
/// row order.
#[derive(Clone, Debug, Default)]
pub struct StringColumn {
    /// A code per row, or [`NULL`].
    pub codes: Vec<u32>,
    /// What the codes stand for.
    pub values: std::sync::Arc<Strings>,
}

impl StringColumn {
    /// The value of a row.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        match self.codes[row] {
            NULL => None,
            code => Some(self.values.get(code)),
        }
    }
}

/// Numbers by row.
#[derive(Clone, Debug, Default)]
pub struct Numbers<T> {
    /// A number per row; 0 stands where there is none.
    pub values: Vec<T>,
    /// Whether each row has a number; empty if all have.
    pub valid: Vec<bool>,
}

impl<T: Copy> Numbers<T> {
    /// The number of a row.
    pub fn get(&self, row: usize) -> Option<T> {
        let valid = self.valid.is_empty() || self.valid[row];
        valid.then(|| self.values[row])
    }
}

/// A column of any type.
#[derive(Clone, Debug)]
pub enum Column {
    /// Text, JSON text or bytes.
    Strings(StringColumn),
    /// Whole numbers.
    Ints(Numbers<i64>),
    /// Numbers with a fraction.
    Floats(Numbers<f64>),
    /// True or false.
    Bools(Numbers<bool>),
    /// No row has a value.
    Absent,
}
