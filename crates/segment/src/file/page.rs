//! Pages: encoding a block's values of one column, and decoding them.

use std::sync::Arc;

use logpond_record::cast;

use crate::encoding::{MalformedPage, bits, delta, plain, rle};
use crate::rows::{Column, NULL, Numbers, StringColumn, Strings};

/// How the values of a column chunk are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Codes of `bits` bits into the dictionary page.
    Codes { bits: u32 },
    /// Values one after another: PLAIN, whole numbers DELTA_BINARY_PACKED.
    Values,
}

/// Appends the definition levels of an optional column.
pub(super) fn write_levels(present: &[u32], out: &mut Vec<u8>) {
    with_length(out, |out| rle::encode(present, 1, out));
}

/// Appends the definition levels of an optional column whose rows have the same one.
pub(super) fn write_same_level(level: u32, rows: usize, out: &mut Vec<u8>) {
    with_length(out, |out| rle::encode_same(level, rows, 1, out));
}

fn with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = cast::low_u32(out.len() - at - 4);
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends dictionary codes.
pub(super) fn write_codes(codes: &[u32], width: u32, out: &mut Vec<u8>) {
    out.push(cast::low_u8(width));
    rle::encode(codes, width, out);
}

/// Bits of the codes into a dictionary of `values` values; never 0, which some readers refuse.
pub(super) fn code_bits(values: usize) -> u32 {
    bits::width(values.max(2) as u64 - 1)
}

/// What a column holds, as far as its pages show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Physical {
    Strings,
    Ints,
    Floats,
    Bools,
}

/// A dictionary page, decoded.
#[derive(Clone, Debug)]
pub(super) enum Dictionary {
    Strings(Arc<Strings>),
    Ints(Arc<Vec<i64>>),
    Floats(Arc<Vec<f64>>),
}

impl Dictionary {
    /// The memory that its values take.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Dictionary::Strings(strings) => strings.memory_bytes(),
            Dictionary::Ints(values) => values.capacity() * size_of::<i64>(),
            Dictionary::Floats(values) => values.capacity() * size_of::<f64>(),
        }
    }

    pub(super) fn decode(
        physical: Physical,
        count: usize,
        body: Vec<u8>,
    ) -> Result<Dictionary, MalformedPage> {
        // A value takes a byte at least, so a wrong count cannot make us allocate.
        if count > body.len() {
            return Err(MalformedPage("a dictionary ends early"));
        }
        match physical {
            Physical::Strings => {
                let mut ranges = Vec::with_capacity(count);
                plain::decode_bytes(&body, count, &mut ranges)?;
                Ok(Dictionary::Strings(Arc::new(Strings::new(body, ranges))))
            }
            Physical::Ints => {
                let (values, _) = body.as_chunks::<8>();
                let values = values
                    .get(..count)
                    .ok_or(MalformedPage("a dictionary ends early"))?;
                Ok(Dictionary::Ints(Arc::new(
                    values.iter().map(|v| i64::from_le_bytes(*v)).collect(),
                )))
            }
            Physical::Floats => {
                let mut values = Vec::with_capacity(count);
                plain::decode_floats(&body, count, &mut values)?;
                Ok(Dictionary::Floats(Arc::new(values)))
            }
            Physical::Bools => Err(MalformedPage("booleans have no dictionary")),
        }
    }
}

/// A data page's parts: which rows have values, and the values' bytes.
struct Parts {
    /// 1 for every row with a value; empty if all have.
    levels: Vec<u32>,
    /// Where the values start in the body.
    values_from: usize,
    count: usize,
}

fn split(body: &[u8], rows: usize, optional: bool) -> Result<Parts, MalformedPage> {
    if !optional {
        return Ok(Parts {
            levels: Vec::new(),
            values_from: 0,
            count: rows,
        });
    }
    let (length, rest) = body
        .split_first_chunk::<4>()
        .ok_or(MalformedPage("levels end early"))?;
    let length = u32::from_le_bytes(*length) as usize;
    let encoded = rest
        .get(..length)
        .ok_or(MalformedPage("levels end early"))?;
    let values_from = 4 + length;
    if let Some(level) = rle::one_run(encoded, rows) {
        let (levels, count) = (Vec::new(), if level == 1 { rows } else { 0 });
        return Ok(Parts {
            levels,
            values_from,
            count,
        });
    }
    let mut levels = Vec::with_capacity(rows);
    rle::decode(encoded, 1, rows, &mut levels)?;
    let count = levels.iter().map(|l| *l as usize).sum();
    if count == rows {
        levels.clear();
    }
    Ok(Parts {
        levels,
        values_from,
        count,
    })
}

/// A data page of which is known what rows have values.
pub(super) struct Page {
    body: Vec<u8>,
    rows: usize,
    parts: Parts,
}

impl Page {
    /// Reads the levels of the page of `rows` rows.
    pub(super) fn new(body: Vec<u8>, rows: usize, optional: bool) -> Result<Page, MalformedPage> {
        let parts = split(&body, rows, optional)?;
        Ok(Page { body, rows, parts })
    }

    /// The values of all rows.
    pub(super) fn decode(
        self,
        physical: Physical,
        dictionary: Option<&Dictionary>,
    ) -> Result<Column, MalformedPage> {
        let Page { body, rows, parts } = self;
        if parts.count == 0 {
            return Ok(Column::Absent);
        }
        match dictionary {
            None => decode_values(physical, rows, &parts, body),
            Some(dictionary) => decode_codes(rows, &parts, dictionary, &body[parts.values_from..]),
        }
    }
}

fn decode_values(
    physical: Physical,
    rows: usize,
    parts: &Parts,
    body: Vec<u8>,
) -> Result<Column, MalformedPage> {
    let encoded = &body[parts.values_from..];
    match physical {
        Physical::Strings => {
            let mut ranges = Vec::with_capacity(parts.count);
            plain::decode_bytes(encoded, parts.count, &mut ranges)?;
            let start = cast::low_u32(parts.values_from);
            ranges
                .iter_mut()
                .for_each(|(a, b)| (*a, *b) = (*a + start, *b + start));
            let codes = spread(rows, parts, 0..cast::low_u32(parts.count));
            let values = Arc::new(Strings::new(body, ranges));
            Ok(Column::Strings(StringColumn { codes, values }))
        }
        Physical::Ints => {
            let mut values = Vec::with_capacity(parts.count);
            delta::decode(encoded, parts.count, &mut values)?;
            Ok(Column::Ints(numbers(rows, parts, values)))
        }
        Physical::Floats => {
            let mut values = Vec::with_capacity(parts.count);
            plain::decode_floats(encoded, parts.count, &mut values)?;
            Ok(Column::Floats(numbers(rows, parts, values)))
        }
        Physical::Bools => {
            let mut values = Vec::with_capacity(parts.count);
            plain::decode_bools(encoded, parts.count, &mut values)?;
            Ok(Column::Bools(numbers(rows, parts, values)))
        }
    }
}

fn decode_codes(
    rows: usize,
    parts: &Parts,
    dictionary: &Dictionary,
    body: &[u8],
) -> Result<Column, MalformedPage> {
    let (&width, encoded) = body.split_first().ok_or(MalformedPage("codes end early"))?;
    let mut codes = Vec::with_capacity(parts.count);
    rle::decode(encoded, u32::from(width), parts.count, &mut codes)?;
    let size = match dictionary {
        Dictionary::Strings(values) => values.len(),
        Dictionary::Ints(values) => values.len(),
        Dictionary::Floats(values) => values.len(),
    };
    if codes.iter().any(|c| *c as usize >= size) {
        return Err(MalformedPage("a code is beyond the dictionary"));
    }
    Ok(match dictionary {
        Dictionary::Strings(values) => {
            let codes = if parts.levels.is_empty() {
                codes
            } else {
                spread(rows, parts, codes.into_iter())
            };
            Column::Strings(StringColumn {
                codes,
                values: Arc::clone(values),
            })
        }
        Dictionary::Ints(values) => Column::Ints(numbers(
            rows,
            parts,
            codes.iter().map(|c| values[*c as usize]).collect(),
        )),
        Dictionary::Floats(values) => Column::Floats(numbers(
            rows,
            parts,
            codes.iter().map(|c| values[*c as usize]).collect(),
        )),
    })
}

/// Codes of the rows with values, put where these rows are.
fn spread(rows: usize, parts: &Parts, mut codes: impl Iterator<Item = u32>) -> Vec<u32> {
    if parts.levels.is_empty() {
        return codes.collect();
    }
    let mut out = Vec::with_capacity(rows);
    out.extend(parts.levels.iter().map(|level| match level {
        0 => NULL,
        _ => codes.next().unwrap_or(NULL),
    }));
    out
}

fn numbers<T: Copy + Default>(rows: usize, parts: &Parts, values: Vec<T>) -> Numbers<T> {
    if parts.levels.is_empty() {
        return Numbers {
            values,
            valid: Vec::new(),
        };
    }
    let mut next = values.into_iter();
    let mut spread = Vec::with_capacity(rows);
    spread.extend(parts.levels.iter().map(|level| match level {
        0 => T::default(),
        _ => next.next().unwrap_or_default(),
    }));
    Numbers {
        values: spread,
        valid: parts.levels.iter().map(|l| *l == 1).collect(),
    }
}
