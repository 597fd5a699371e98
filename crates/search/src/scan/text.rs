//! Text in lines, searched column by column.
//!
//! A line is its shape's literals and the texts of its slots. A match lies within one of them, or
//! it crosses from one into the next and then holds a byte that stands at such a boundary. So the
//! values of the columns are searched, each distinct one once; lines are rendered only where a
//! match could cross, and to settle rows whose lines deviate from their values. Of a text it is
//! known which values let it cross; of an expression only whether it can hold the bytes that stand
//! beside slots.

use std::sync::Arc;

use logpond_record::{Piece, Shape, SlotKind};
use logpond_segment::file::ReadError;
use logpond_segment::rows::{Fixes, NULL, RowsView, Strings};

use super::crossing::{Crossing, crossings};
use super::group::GroupScan;
use super::values::{BlockDecisions, ShapeSearch, decide_plain, needs_escapes};
use crate::pattern::Finder;

/// Where a pattern is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the line.
    Line,
    /// In the line, and in its message as it is decoded.
    LineOrMessage,
}

/// The rows of the block at hand with the pattern there.
pub(super) fn select_by_text(
    finder: &Finder,
    place: Place,
    number: usize,
    scan: &mut GroupScan<'_>,
    rows: Vec<u32>,
) -> Result<Vec<u32>, ReadError> {
    if !finder.ignores_ends() {
        return render_and_match(finder, place, scan, rows);
    }
    let RowsByShape {
        dictionary,
        shapes,
        mut wanted,
        mut open,
    } = RowsByShape::new(finder, place, scan, &rows)?;
    let mut decisions = BlockDecisions::new(number, place);
    for (code, rows) in shapes {
        let shape = scan.shape(&dictionary, code);
        if literals_match(&shape, finder) {
            wanted.extend(rows);
            continue;
        }
        let mut rows = rows;
        if place == Place::LineOrMessage && shape.message_slot().is_none() {
            // A message that is made of the line, such as the one of an object in a text, is in no slot.
            let (found, rest) = split_by_made_message(finder, scan, rows)?;
            wanted.extend(found);
            rows = rest;
        }
        let Some(crossings) = known_crossings(&shape, finder) else {
            open.extend(rows);
            continue;
        };
        let mut search = ShapeSearch::new(finder, &shape, &rows, &crossings);
        search.run(scan, &mut decisions)?;
        search.search_crossings(scan, &decisions)?;
        search.sort((scan, &mut decisions), &mut wanted, &mut open)?;
    }
    if !open.is_empty() {
        open.sort_unstable();
        wanted.extend(render_and_match(finder, place, scan, open)?);
    }
    wanted.sort_unstable();
    Ok(wanted)
}

/// Splits rows of the block at hand into those whose message is wanted, and the others.
pub(super) fn split_by_message(
    scan: &mut GroupScan<'_>,
    rows: Vec<u32>,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> Result<(Vec<u32>, Vec<u32>), ReadError> {
    if rows.is_empty() {
        return Ok((rows, Vec::new()));
    }
    let (block, reader, _) = scan.parts();
    let [texts, others] = block.messages(reader)?;
    let message = |row: usize| texts.get(row).or_else(|| others.get(row));
    Ok(rows
        .into_iter()
        .partition(|row| message(*row as usize).is_some_and(&is_wanted)))
}

/// Splits rows of the block at hand into those with a match in their message, and the others.
fn split_by_made_message(
    finder: &Finder,
    scan: &mut GroupScan<'_>,
    rows: Vec<u32>,
) -> Result<(Vec<u32>, Vec<u32>), ReadError> {
    let (block, reader, _) = scan.parts();
    let messages = block.messages(reader)?;
    let decided = messages.map(|messages| decide_plain(finder, &messages.values));
    if !decided.iter().flatten().any(|is_match| *is_match) {
        return Ok((Vec::new(), rows));
    }
    let is_wanted = |row: &u32| {
        let mut each = messages.iter().zip(&decided);
        each.any(
            |(messages, decided)| match messages.codes.get(*row as usize) {
                None | Some(&NULL) => false,
                Some(code) => decided[*code as usize],
            },
        )
    };
    Ok(rows.into_iter().partition(is_wanted))
}

/// Rows of a block by the shape of their lines.
struct RowsByShape {
    dictionary: Arc<Strings>,
    /// Code of the shape, and its rows in order.
    shapes: Vec<(u32, Vec<u32>)>,
    /// Rows without a shape whose whole line matches.
    wanted: Vec<u32>,
    /// The others without a shape, if messages count: theirs may be decoded from a part of the line.
    open: Vec<u32>,
}

impl RowsByShape {
    fn new(
        finder: &Finder,
        place: Place,
        scan: &mut GroupScan<'_>,
        rows: &[u32],
    ) -> Result<RowsByShape, ReadError> {
        let (block, reader, _) = scan.parts();
        block.shapes(reader)?;
        block.exceptions(reader)?;
        let known = block.known_rows();
        let mut by_shape = RowsByShape {
            dictionary: Arc::clone(&known.shape.values),
            shapes: Vec::new(),
            wanted: Vec::new(),
            open: Vec::new(),
        };
        // Where the rows of each shape are collected.
        let mut places = vec![usize::MAX; known.shape.values.len()];
        for &row in rows {
            match known.whole.get(row as usize) {
                Some(line) if finder.is_match(line) => by_shape.wanted.push(row),
                Some(_) if place == Place::Line => {}
                Some(_) => by_shape.open.push(row),
                None => {
                    let code = known.shape.codes[row as usize];
                    let place = &mut places[code as usize];
                    if *place == usize::MAX {
                        *place = by_shape.shapes.len();
                        by_shape.shapes.push((code, Vec::new()));
                    }
                    by_shape.shapes[*place].1.push(row);
                }
            }
        }
        Ok(by_shape)
    }
}

/// Decides by the line and the message themselves.
fn render_and_match(
    finder: &Finder,
    place: Place,
    scan: &mut GroupScan<'_>,
    rows: Vec<u32>,
) -> Result<Vec<u32>, ReadError> {
    let found: Vec<u32> = scan.with_lines(&rows, |view| {
        let mut line = Vec::new();
        let matches = |row: &u32| text_matches(finder, place, view, *row as usize, &mut line);
        rows.iter().copied().filter(matches).collect()
    })?;
    Ok(found)
}

/// The same decision as for a record.
fn text_matches(
    finder: &Finder,
    place: Place,
    view: &RowsView<'_>,
    row: usize,
    line: &mut Vec<u8>,
) -> bool {
    line.clear();
    view.write_line(row, line);
    let is_in_line = finder.is_match(line);
    if is_in_line || place == Place::Line {
        return is_in_line;
    }
    let rows = view.rows();
    let Some(message) = rows
        .message
        .get(row)
        .or_else(|| rows.message_bytes.get(row))
    else {
        return false;
    };
    let seen = finder.ignores_ends()
        && rows.whole.codes[row] == NULL
        && is_shown_as_it_is(view.shape(row), message, rows.fix.get(row));
    !seen && message != &line[..] && finder.is_match(message)
}

/// True if a message stands in the line without escapes: a line may also escape what needs no escape.
fn is_shown_as_it_is(shape: &Shape, message: &[u8], fix: Option<&[u8]>) -> bool {
    let Some(slot) = shape.message_slot() else {
        return false;
    };
    let is_fixed = || Fixes::new(fix).any(|(fixed, _)| fixed == slot);
    (shape.slots()[slot].kind == SlotKind::Text || !needs_escapes(message)) && !is_fixed()
}

fn literals_match(shape: &Shape, finder: &Finder) -> bool {
    let null =
        || shape.slots().iter().any(|slot| slot.kind == SlotKind::Null) && finder.is_match(b"null");
    let literal =
        |piece: &Piece| matches!(piece, Piece::Literal(text) if finder.is_match(text.as_bytes()));
    shape.pieces().iter().any(literal) || null()
}

/// Where a match could reach from a slot into what stands next to it; `None` if every line must be
/// looked at to know.
fn known_crossings<'f>(shape: &Shape, finder: &'f Finder) -> Option<Vec<Crossing<'f>>> {
    if !can_cross(shape, finder) {
        return Some(Vec::new());
    }
    crossings(shape, finder.needle()?)
}

/// Whether a match could cross, by the bytes of which it consists.
fn can_cross(shape: &Shape, finder: &Finder) -> bool {
    let alphabet = finder.alphabet();
    let is_silent = |slot: usize| shape.slots()[slot].kind == SlotKind::Facility;
    let at_end = |text: &str| text.bytes().last().is_some_and(|b| alphabet.contains(b));
    let at_start = |text: &str| text.bytes().next().is_some_and(|b| alphabet.contains(b));
    shape.pieces().windows(2).any(|pair| match pair {
        [Piece::Slot(slot), Piece::Slot(_)] => !is_silent(*slot),
        [Piece::Literal(text), Piece::Slot(_)] => at_end(text),
        [Piece::Slot(_), Piece::Literal(text)] => at_start(text),
        _ => false,
    })
}
