//! Several values as one key: bytes whose order is that of the values.
//!
//! ```text
//! tuple  = *part                ; all bytes of a part inverted if its values descend
//! part   = %x00 / %x03          ; no value, which is first or last
//!        / %x01 8OCTET text     ; a number by its order, and as it is written
//!        / %x02 text
//! text   = *( %x01-FF / %x00 %xFF ) %x00 %x00
//! ```
//!
//! Numbers are before texts.

use logpond_record::cast;
use logpond_search::Number;

use super::super::lists;
use super::super::numbers::{canonical, number};
use super::columns::{Field, RowView};

/// The most combinations of values of a record.
pub(in super::super) const COMBINATIONS_MAX: usize = 1024;

const NONE_FIRST: u8 = 0;
const NUMBER: u8 = 1;
const TEXT: u8 = 2;
const NONE_LAST: u8 = 3;

/// A value of a tuple.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// No value; true if it is last whatever the direction is.
    None(Place),
    /// A whole number, or text; what is written as a number is ordered as one.
    Whole(i64),
    Text(Box<[u8]>),
}

/// The place of tuples without a value among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Before all in ascending order, behind them in descending order.
    Default,
    First,
    Last,
}

/// The order of a number as bytes.
fn order_of(number: f64) -> [u8; 8] {
    let bits = number.to_bits();
    let ordered = if bits >> 63 == 0 {
        bits | (1 << 63)
    } else {
        !bits
    };
    ordered.to_be_bytes()
}

/// The values of a field of a record, or the one for records without.
pub(super) fn parts_of(row: &RowView<'_>, field: Field, missing: Option<&str>) -> Vec<Part> {
    let mut parts = Vec::new();
    if field.is_time {
        parts.extend(row.time_ms(field).map(Part::Whole));
    } else {
        let text = row.text(field).or(missing.map(str::as_bytes));
        lists::each_value(text, &mut |value| parts.push(Part::Text(value.into())));
    }
    parts
}

/// Adds a value to a tuple.
pub(super) fn push(tuple: &mut Vec<u8>, part: &Part, is_descending: bool) {
    let start = tuple.len();
    let mut text: &[u8] = &[];
    let written;
    let kept;
    match part {
        Part::None(place) => {
            let is_first = match place {
                Place::Default => true,
                // It is inverted with the others below.
                Place::First => !is_descending,
                Place::Last => is_descending,
            };
            tuple.push(if is_first { NONE_FIRST } else { NONE_LAST });
        }
        Part::Whole(whole) => {
            tuple.push(NUMBER);
            tuple.extend(order_of(cast::float(*whole)));
            written = whole.to_string();
            text = written.as_bytes();
        }
        Part::Text(value) => {
            let value = canonical(value);
            let as_number = std::str::from_utf8(&value)
                .ok()
                .filter(|text| number(text).is_some());
            match as_number.and_then(|_| Number::parse(&value)) {
                Some(number) => {
                    tuple.push(NUMBER);
                    tuple.extend(order_of(number.to_float()));
                }
                None => tuple.push(TEXT),
            }
            kept = value;
            text = &kept;
        }
    }
    if !matches!(part, Part::None(_)) {
        for byte in text {
            tuple.push(*byte);
            if *byte == 0 {
                tuple.push(0xff);
            }
        }
        tuple.extend([0, 0]);
    }
    if is_descending {
        tuple[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The texts of a tuple; `directions` say of each whether it descends.
pub(super) fn texts(tuple: &[u8], directions: &[bool]) -> Vec<Option<Box<[u8]>>> {
    let mut rest = tuple.iter().copied();
    let each = directions.iter().map(|is_descending| {
        let mut next = || {
            let byte = rest.next()?;
            Some(if *is_descending { !byte } else { byte })
        };
        match next()? {
            NUMBER => {
                for _ in 0..8 {
                    next();
                }
            }
            TEXT => {}
            _ => return None,
        }
        let mut text = Vec::new();
        while let Some(byte) = next() {
            if byte == 0 && next() != Some(0xff) {
                break;
            }
            text.push(byte);
        }
        Some(text.into())
    });
    each.collect()
}

/// Visits each combination of one value of each list; nothing instead if they are too many.
pub(super) fn each_combination(
    lists: &[Vec<Part>],
    directions: &[bool],
    visit: &mut dyn FnMut(Option<&[u8]>),
) {
    let count = lists
        .iter()
        .try_fold(1_usize, |count, list| count.checked_mul(list.len()));
    let Some(count) = count.filter(|count| *count <= COMBINATIONS_MAX) else {
        return visit(None);
    };
    let mut tuple = Vec::new();
    for combination in 0..count {
        tuple.clear();
        let mut rest = combination;
        for (list, is_descending) in lists.iter().zip(directions) {
            if let Some(part) = list.get(rest % list.len()) {
                push(&mut tuple, part, *is_descending);
            }
            rest /= list.len();
        }
        visit(Some(&tuple));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Part {
        Part::Text(text.as_bytes().into())
    }

    #[test]
    fn tuples_are_in_the_order_of_their_values() {
        let ascending = [
            Part::None(Place::Default),
            text("-7"),
            Part::Whole(-3),
            text("0"),
            text("2.5"),
            Part::Whole(10),
            text(""),
            text("\0"),
            text("\0a"),
            text("02"),
            text("a"),
            text("a\0"),
            text("aa"),
            Part::None(Place::Last),
        ];
        for is_descending in [false, true] {
            let tuples = ascending.iter().filter_map(|part| {
                let is_placed = matches!(part, Part::None(Place::Last));
                let mut tuple = Vec::new();
                push(&mut tuple, part, is_descending);
                push(&mut tuple, &text("x"), false);
                (!is_placed || !is_descending).then_some(tuple)
            });
            let tuples: Vec<Vec<u8>> = tuples.collect();
            for pair in tuples.windows(2) {
                assert_eq!(pair[0] < pair[1], !is_descending, "{pair:?}");
            }
            let found = texts(&tuples[9], &[is_descending, false]);
            assert_eq!(found, [Some((*b"02").into()), Some((*b"x").into())]);
            assert_eq!(
                texts(&tuples[8], &[is_descending, false])[0],
                Some((*b"\0a").into())
            );
            assert_eq!(texts(&tuples[0], &[is_descending, false])[0], None);
        }
    }
}
