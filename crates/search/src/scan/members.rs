//! What `| json` finds in lines, taken from the columns that the lines are rendered from.
//!
//! Which slot of a shape becomes which label is learnt from the parser itself: it is given the shape with
//! a mark in place of each slot, and the labels that come out have the marks. So names, nesting and
//! members that stand twice are as they are in lines.
//!
//! Rows whose line deviates from its shape are left to their records, and so are shapes of which only lines tell
//! whether they are JSON.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use logpond_record::{Piece, Shape, SlotKind};
use logpond_segment::file::ReadError;
use logpond_segment::rows::{NULL, Strings};

use super::group::{GroupScan, SelectedRows};
use super::labels::{EmptyTexts, LabelColumn, LabelledRows, Source};
use crate::label::{self, ComputedLabel};
use crate::logql::{LabelMatcher, Stage, StageKind};
use crate::pipeline::{Pipeline, StageError, Work};

/// What stands in place of a slot's text; no line has this character in practice, and none that has it is
/// read by a shape.
const MARK: char = '\u{f8f0}';

/// What stands behind the number of a slot in place of a number.
const NUMBER_MARK: &str = ".7700000000000077";

/// What the parser finds in lines of a shape.
#[derive(Debug, Default)]
pub(super) struct Members(HashMap<Box<str>, MemberPlace>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum MemberPlace {
    /// The value of this slot.
    Slot(usize),
    /// The same text in every line.
    Text(Box<str>),
    /// Something that is made of a slot and what is beside it.
    Other,
}

impl Members {
    /// What the parser finds; `None` if lines of this shape are no JSON, or if only they tell.
    fn of(shape: &Shape) -> Option<Members> {
        let mut work = Work::new();
        work.line = Cow::Owned(marked(shape)?.into_bytes());
        let stage = Stage {
            kind: StageKind::Json(Vec::new()),
            span: crate::logql::Span::default(),
        };
        Pipeline::new(&[stage], 0).ok()?.run(&mut work);
        if work.labels.error().is_some() {
            return None;
        }
        let found = work.labels.iter().map(|(name, value, _)| {
            let found = match slot_of(value) {
                Some(slot) => MemberPlace::Slot(slot),
                None if value.contains(MARK) || value.contains(NUMBER_MARK) => MemberPlace::Other,
                None => MemberPlace::Text(value.into()),
            };
            (name.into(), found)
        });
        Some(Members(found.collect()))
    }
}

/// A line of a shape with marks in place of what its slots hold.
fn marked(shape: &Shape) -> Option<String> {
    let mut line = String::new();
    for piece in shape.pieces() {
        let slot = match piece {
            Piece::Literal(text) if text.contains(MARK) || text.contains(NUMBER_MARK) => {
                return None;
            }
            Piece::Literal(text) => {
                line.push_str(text);
                continue;
            }
            Piece::Slot(slot) => *slot,
        };
        let text = match &shape.slots()[slot].kind {
            SlotKind::JsonString => format!("{MARK}{slot}"),
            SlotKind::Time(_) if line.ends_with('"') => format!("{MARK}{slot}"),
            SlotKind::Int | SlotKind::Float | SlotKind::Bool | SlotKind::Time(_) => {
                format!("{slot}{NUMBER_MARK}")
            }
            SlotKind::Null => "null".to_owned(),
            // A number too large for an integer is a label, a list is none.
            SlotKind::Json => format!("\"{MARK}{slot}x\""),
            SlotKind::Text
            | SlotKind::Quoted
            | SlotKind::StructuredData
            | SlotKind::Facility
            | SlotKind::Severity => return None,
        };
        line.push_str(&text);
    }
    Some(line)
}

/// The slot whose mark a text is.
fn slot_of(text: &str) -> Option<usize> {
    let number = text.strip_prefix(MARK).or(text.strip_suffix(NUMBER_MARK))?;
    number.parse().ok()
}

/// The members of shapes that were met, by the dictionary and the code of each.
pub(super) type KnownMembers = HashMap<(usize, u32), Option<Arc<Members>>>;

/// Rows of a block by the shape of their lines.
struct RowsByShape {
    dictionary: Arc<Strings>,
    /// Codes of shapes, each with its rows.
    shapes: Vec<(u32, Vec<u32>)>,
    /// Rows whose lines deviate from their shape.
    odd: Vec<u32>,
}

impl GroupScan<'_> {
    /// The selected rows of the block at hand by labels that are there behind `| json`, as
    /// [`GroupScan::rows_by_labels`] does it; one part for each shape. What the selector names is of the
    /// stream.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub(crate) fn rows_by_members(
        &mut self,
        selected: &SelectedRows,
        by: &[Box<str>],
        number: Option<&str>,
        (selector, empty_texts): (&[LabelMatcher], EmptyTexts),
    ) -> Result<(Vec<LabelledRows>, Vec<u32>), ReadError> {
        let RowsByShape {
            dictionary,
            shapes,
            mut odd,
        } = self.rows_by_shape(&selected.rows)?;
        let mut parts = Vec::new();
        for (code, rows) in shapes {
            let shape = self.shape(&dictionary, code);
            let (members, rows, error) = match self.members_of(&dictionary, code, &shape) {
                Some(members) => (members, rows, None),
                None => {
                    let rows = self.no_objects(&shape, rows, &mut odd)?;
                    (Arc::default(), rows, Some(StageError::Json))
                }
            };
            if rows.is_empty() {
                continue;
            }
            let mut source = |name: &str| self.source_of(name, &shape, &members, selector);
            let sources: Result<Option<Vec<Source>>, ReadError> =
                by.iter().map(|name| source(name)).collect();
            let number = number.map(&mut source).transpose()?;
            match (sources?, number) {
                (None, _) | (_, Some(None)) => odd.extend(rows),
                (Some(sources), number) => {
                    let number = number.flatten();
                    let mut rows = rows;
                    self.take_empty(&sources, empty_texts, (&mut rows, &mut odd))?;
                    let labelled = self.label_rows(sources, number.as_ref(), rows, &mut odd)?;
                    parts.push(LabelledRows { error, ..labelled });
                }
            }
        }
        odd.sort_unstable();
        Ok((parts, odd))
    }

    fn rows_by_shape(&mut self, rows: &[u32]) -> Result<RowsByShape, ReadError> {
        let (block, reader, _) = self.parts();
        block.shapes(reader)?;
        block.exceptions(reader)?;
        block.more(reader)?;
        let known = block.known_rows();
        let mut shapes: Vec<(u32, Vec<u32>)> = Vec::new();
        let mut odd = Vec::new();
        for &row in rows {
            let at = row as usize;
            let deviates = [&known.whole, &known.fix, &known.more]
                .iter()
                .any(|column| column.codes.get(at).is_some_and(|code| *code != NULL));
            if deviates {
                odd.push(row);
                continue;
            }
            let code = known.shape.codes[at];
            // Rows are sorted by what has few values, so the next has mostly the same shape.
            match shapes.iter_mut().rev().find(|(known, _)| *known == code) {
                Some((_, rows)) => rows.push(row),
                None => shapes.push((code, vec![row])),
            }
        }
        Ok(RowsByShape {
            dictionary: Arc::clone(&known.shape.values),
            shapes,
            odd,
        })
    }

    fn members_of(
        &mut self,
        dictionary: &Arc<Strings>,
        code: u32,
        shape: &Shape,
    ) -> Option<Arc<Members>> {
        // The reader keeps the dictionary, so its address stays its own.
        let key = (Arc::as_ptr(dictionary) as usize, code);
        let known = self.known_members.entry(key);
        known
            .or_insert_with(|| Members::of(shape).map(Arc::new))
            .clone()
    }

    /// Where a label is in rows of a shape; `None` if only lines tell.
    fn source_of(
        &mut self,
        name: &str,
        shape: &Shape,
        Members(members): &Members,
        selector: &[LabelMatcher],
    ) -> Result<Option<Source>, ReadError> {
        let is_of_stream = selector.iter().any(|matcher| *matcher.name == *name);
        if is_of_stream || ComputedLabel::named(name).is_some() {
            return Ok(self.sources(Some(&[name.into()]))?.pop());
        }
        let schema = &self.directory.schema;
        let is_slot = |field: &str| shape.field_slot(field).is_some();
        let mut declared = self.columns_of_label(name);
        declared.retain(|column| {
            let field = &schema.columns[column.number].name;
            label::is_declared(field) && !is_slot(field)
        });
        let mut source = Source {
            name: name.into(),
            columns: declared,
            default: None,
            said_by: &[],
        };
        match members.get(name) {
            None => {}
            Some(MemberPlace::Text(text)) => source.default = Some(text.to_string().into()),
            Some(MemberPlace::Other) => return Ok(None),
            Some(MemberPlace::Slot(slot)) => {
                let slot = &shape.slots()[*slot];
                if !slot.is_field() {
                    return Ok(None);
                }
                let column = schema.column(&slot.name);
                source.columns.extend(column.map(LabelColumn::whole));
            }
        }
        Ok(Some(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_learnt_of_shapes() {
        let table = [
            (
                r#"{"a":"⟨a:j⟩","b":{"c":⟨b.c:i⟩,"d":"x"},"e":⟨e:n⟩,"f":⟨f:r⟩,"g":⟨g:b⟩}"#,
                Some("a=Slot(0) b_c=Slot(1) b_d=Text(\"x\") f=Other g=Slot(4)"),
            ),
            (r#"{"a.b":⟨a.b:f⟩,"a_b":"⟨a_b:j⟩"}"#, Some("a_b=Slot(1)")),
            (
                r#"{"t":"⟨_time:%Y-%m-%d⟩","u":⟨_time:%s⟩,"m":"x ⟨_msg:j⟩"}"#,
                Some("m=Other t=Slot(0) u=Slot(1)"),
            ),
            (r#"{"a":"⟨a:t⟩"}"#, None),
            (r#"x {"a":"⟨a:j⟩"}"#, None),
            ("⟨_msg:t⟩", None),
        ];
        for (shape, expected) in table {
            let members = Members::of(&Shape::new(shape).unwrap());
            let found = members.map(|Members(members)| {
                let members = members
                    .iter()
                    .map(|(name, found)| format!("{name}={found:?}"));
                let mut members: Vec<String> = members.collect();
                members.sort();
                members.join(" ")
            });
            assert_eq!(found.as_deref(), expected, "{shape}");
        }
    }
}
