//! Lines that are no JSON objects, as what they begin with tells.

use logpond_record::{Piece, Shape, SlotKind};
use logpond_segment::file::ReadError;
use logpond_segment::rows::column_value;

use super::group::GroupScan;
use super::text::split_by_message;

/// The beginning of all lines of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineStart {
    /// Something that no object begins with.
    NoBrace,
    /// The text of this slot.
    Slot(usize),
    /// What they have for their message.
    Message,
    /// A brace, or what only the line itself tells.
    Unknown,
}

impl LineStart {
    fn of(shape: &Shape) -> LineStart {
        for piece in shape.pieces() {
            let slot = match piece {
                Piece::Literal(text) => match first_sign(text.as_bytes()) {
                    None => continue,
                    Some(b'{') => return LineStart::Unknown,
                    Some(_) => return LineStart::NoBrace,
                },
                Piece::Slot(slot) => *slot,
            };
            let is_message = shape.slots()[slot].is_message();
            return match &shape.slots()[slot].kind {
                SlotKind::Text if is_message => LineStart::Message,
                SlotKind::Text => LineStart::Slot(slot),
                SlotKind::Int | SlotKind::Float | SlotKind::Bool | SlotKind::Null => {
                    LineStart::NoBrace
                }
                // A part of a time is a number, a name or a sign.
                SlotKind::Time(pattern) if pattern.as_str().starts_with('%') => LineStart::NoBrace,
                SlotKind::Time(_)
                | SlotKind::JsonString
                | SlotKind::Quoted
                | SlotKind::StructuredData
                | SlotKind::Json
                | SlotKind::Facility
                | SlotKind::Severity => LineStart::Unknown,
            };
        }
        LineStart::Unknown
    }
}

/// The first byte that is no space to JSON.
fn first_sign(text: &[u8]) -> Option<u8> {
    let is_space = |byte: &u8| [b' ', b'\t', b'\n', b'\r'].contains(byte);
    text.iter().copied().find(|byte| !is_space(byte))
}

impl GroupScan<'_> {
    /// Rows of the block at hand whose lines, which are of this shape, are no objects for certain; the others
    /// become odd.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub(super) fn no_objects(
        &mut self,
        shape: &Shape,
        rows: Vec<u32>,
        odd: &mut Vec<u32>,
    ) -> Result<Vec<u32>, ReadError> {
        let is_none = |text: &[u8]| first_sign(text).is_some_and(|sign| sign != b'{');
        let (are, others): (Vec<u32>, Vec<u32>) = match LineStart::of(shape) {
            LineStart::NoBrace => (rows, Vec::new()),
            LineStart::Unknown => (Vec::new(), rows),
            LineStart::Message => {
                let (mut are, rest) = self.part_by_template(rows, is_none)?;
                let (found, others) = split_by_message(self, rest, is_none)?;
                are.extend(found);
                are.sort_unstable();
                (are, others)
            }
            LineStart::Slot(slot) => {
                match self.directory.schema.column(&shape.slots()[slot].name) {
                    None => (Vec::new(), rows),
                    Some(column) => {
                        let kind = self.directory.schema.columns[column].kind;
                        let (block, reader, _) = self.parts();
                        let values = block.field(column, reader)?;
                        rows.into_iter().partition(|row| {
                            let value = column_value(values, kind, *row as usize);
                            value.is_some_and(|value| is_none(&value.to_text()))
                        })
                    }
                }
            }
        };
        odd.extend(others);
        Ok(are)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_tell_what_their_lines_begin_with() {
        let table = [
            ("⟨_msg:t⟩", LineStart::Message),
            (" ⟨_msg:t⟩", LineStart::Message),
            ("⟨ip:t⟩ - ⟨user:t⟩", LineStart::Slot(0)),
            ("⟨_time:%Y-%m-%d⟩ ⟨_msg:t⟩", LineStart::NoBrace),
            ("level=⟨level:t⟩", LineStart::NoBrace),
            ("⟨n:i⟩ {", LineStart::NoBrace),
            (r#" {"a":⟨a:i⟩}"#, LineStart::Unknown),
            (r#"⟨a:j⟩"#, LineStart::Unknown),
            ("⟨a:r⟩", LineStart::Unknown),
        ];
        for (shape, expected) in table {
            assert_eq!(
                LineStart::of(&Shape::new(shape).unwrap()),
                expected,
                "{shape}"
            );
        }
    }
}
