//! Matches of a text that reach from a slot into what stands next to it.
//!
//! Such a match is cut in two where a slot begins or ends. One part must fit the literal text
//! beside the slot, which rules out most cuts for all rows of a shape; the other part must fit the
//! slot's own text. So the rows that may have such a match are found by the beginnings and ends of
//! values, without rendering a line.

use std::sync::Arc;

use logpond_record::{Piece, Shape, SlotKind};
use logpond_segment::tokens::fold;

use crate::pattern::{Alphabet, Needle};

/// A place where a match may cross from a slot or into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Crossing<'n> {
    /// The slot.
    pub(super) slot: usize,
    /// Whether it is the slot's end, not its beginning.
    pub(super) is_end: bool,
    /// Where the match may be cut. Crossings of one needle with the same cuts and the same side are
    /// alike, whatever their shapes.
    pub(super) cuts: Arc<[usize]>,
    /// What the match may have on the slot's side, of each cut.
    parts: Vec<&'n [u8]>,
    /// The bytes next to the cuts: the slot's last or first one is among them.
    edges: Alphabet,
    folded: bool,
}

/// The crossings of a shape that its literals allow; `None` if that is not known.
pub(super) fn crossings<'n>(shape: &Shape, needle: Needle<'n>) -> Option<Vec<Crossing<'n>>> {
    let is_silent = |piece: &&Piece| match piece {
        Piece::Slot(slot) => shape.slots()[*slot].kind == SlotKind::Facility,
        Piece::Literal(_) => false,
    };
    let pieces: Vec<&Piece> = shape.pieces().iter().filter(|p| !is_silent(p)).collect();
    let mut found = Vec::new();
    for pair in pieces.windows(2) {
        let (slot, is_end, cuts) = match pair {
            [Piece::Slot(slot), Piece::Slot(_)] => (*slot, true, cuts(needle, |_, _| true)),
            [Piece::Slot(slot), Piece::Literal(text)] => {
                let text = needle.fold(text.as_bytes());
                let fits =
                    |_: &[u8], rest: &[u8]| rest.starts_with(&text) || text.starts_with(rest);
                (*slot, true, cuts(needle, fits))
            }
            [Piece::Literal(text), Piece::Slot(slot)] => {
                let text = needle.fold(text.as_bytes());
                let fits = |rest: &[u8], _: &[u8]| rest.ends_with(&text) || text.ends_with(rest);
                (*slot, false, cuts(needle, fits))
            }
            _ => return None,
        };
        let part = |at: &usize| {
            if is_end {
                &needle.text[..*at]
            } else {
                &needle.text[*at..]
            }
        };
        let parts: Vec<&[u8]> = cuts.iter().map(part).collect();
        let edge = |part: &&[u8]| {
            if is_end {
                part.last().copied()
            } else {
                part.first().copied()
            }
        };
        let edges: Vec<u8> = parts.iter().filter_map(edge).collect();
        if !parts.is_empty() {
            found.push(Crossing {
                slot,
                is_end,
                cuts,
                parts,
                edges: Alphabet::of(&edges),
                folded: needle.folded,
            });
        }
    }
    Some(found)
}

/// The cuts whose two sides fit.
fn cuts(needle: Needle<'_>, fits: impl Fn(&[u8], &[u8]) -> bool) -> Arc<[usize]> {
    let fits = |at: &usize| {
        let (before, behind) = needle.text.split_at(*at);
        fits(before, behind)
    };
    (1..needle.text.len()).filter(fits).collect()
}

impl Crossing<'_> {
    /// Whether a match may reach into a slot with this text.
    pub(super) fn fits(&self, shown: &[u8]) -> bool {
        let folded_text;
        let text = if self.folded {
            folded_text = fold(shown);
            &folded_text[..]
        } else {
            shown
        };
        let edge = if self.is_end {
            text.last()
        } else {
            text.first()
        };
        if edge.is_some_and(|byte| !self.edges.contains(*byte)) {
            return false;
        }
        self.parts.iter().any(|part| {
            if self.is_end {
                text.ends_with(part) || part.ends_with(text)
            } else {
                text.starts_with(part) || part.starts_with(text)
            }
        })
    }

    /// The same for the texts of numbers.
    pub(super) fn fits_numbers(&self) -> bool {
        self.parts.iter().any(|part| {
            if self.is_end {
                part.last().is_some_and(u8::is_ascii_digit)
            } else {
                part.first()
                    .is_some_and(|b| b.is_ascii_digit() || *b == b'-')
            }
        })
    }

    /// The same for times that are written like a sample: with digits, letters and other bytes in
    /// the same places.
    pub(super) fn fits_times(&self, sample: &[u8]) -> bool {
        let is_alike = |(a, b): (&u8, &u8)| time_class(*a) == time_class(*b);
        self.parts.iter().any(|part| {
            if self.is_end {
                part.iter().rev().zip(sample.iter().rev()).all(is_alike)
            } else {
                part.iter().zip(sample).all(is_alike)
            }
        })
    }
}

/// Digits, letters, and every other byte by itself; a day may be padded with a space.
fn time_class(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' | b' ' => b'0',
        b'a'..=b'z' | b'A'..=b'Z' => b'a',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(shape: &str, text: &str) -> Vec<(usize, bool, Vec<String>)> {
        let shape = Shape::new(shape).unwrap();
        let needle = Needle {
            text: text.as_bytes(),
            folded: false,
        };
        let crossings = crossings(&shape, needle).unwrap();
        let texts = |parts: &[&[u8]]| {
            parts
                .iter()
                .map(|p| String::from_utf8_lossy(p).into())
                .collect()
        };
        crossings
            .iter()
            .map(|c| (c.slot, c.is_end, texts(&c.parts)))
            .collect()
    }

    #[test]
    fn literals_rule_out_cuts() {
        let line = "⟨host:t⟩ ⟨app:t⟩[⟨pid:i⟩]: ⟨_msg:t⟩";
        assert_eq!(found(line, "sshd"), []);
        assert_eq!(
            found(line, " port 22"),
            [
                (0, true, vec![" port".to_string()]),
                (1, false, vec!["port 22".into(), "22".into()]),
                (3, false, vec!["port 22".into()]),
            ]
        );
        assert_eq!(
            found(line, "a]: b"),
            [
                (0, true, vec!["a]:".to_string()]),
                (1, false, vec!["b".into()]),
                (2, true, vec!["a".into()]),
                (3, false, vec!["b".into()]),
            ]
        );
    }

    #[test]
    fn values_are_compared_on_the_side_of_the_cut() {
        let shape = Shape::new("⟨a:t⟩ ⟨b:t⟩").unwrap();
        let needle = Needle {
            text: b"one two",
            folded: false,
        };
        let crossings = crossings(&shape, needle).unwrap();
        let [end, start] = &crossings[..] else {
            panic!("{crossings:?}")
        };
        for (text, fits) in [("someone", true), ("ne", true), ("", true), ("ones", false)] {
            assert_eq!(end.fits(text.as_bytes()), fits, "{text}");
        }
        for (text, fits) in [
            ("twofold", true),
            ("tw", true),
            ("two", true),
            ("at two", false),
        ] {
            assert_eq!(start.fits(text.as_bytes()), fits, "{text}");
        }
        assert!(!end.fits_numbers());
        assert!(!end.fits_times(b"12:01:02"));
    }
}
