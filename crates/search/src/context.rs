//! Rows around matches, as `-A`, `-B` and `-C` of grep show them.
//!
//! Rows of one stream go in one by one, in its order, with whether they match. Those to show come
//! out, each once; a separator stands between groups that are not neighbours.

use std::collections::VecDeque;

/// The most rows of context before a match; they are held in memory.
pub const CONTEXT_ROWS_MAX: usize = 10_000;

/// Bytes of such rows that are held; those furthest from the match are left out of more. Rows may be as
/// long as a line may, so that their number alone bounds nothing.
pub const CONTEXT_BYTES_MAX: usize = 64 << 20;

/// A part of the output: a row, or a separator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextItem<T> {
    /// A row that matches.
    Match(T),
    /// A row near one that matches.
    Context(T),
    /// Rows were left out here (`--`).
    Separator,
}

/// Chooses the rows to show.
#[derive(Clone, Debug)]
pub struct Context<T> {
    before_max: usize,
    after_max: usize,
    /// Rows since the last one shown that a match may still need.
    before: VecDeque<T>,
    /// How long a row is, and how long those are that are held.
    length: fn(&T) -> usize,
    bytes: usize,
    /// A row was dropped for its length since the last match; and: such a row was needed by a match.
    is_short: bool,
    has_cut: bool,
    after_left: usize,
    /// Whether rows were left out since the last one shown.
    is_gap: bool,
    has_shown: bool,
}

impl<T> Context<T> {
    /// Shows so many rows before and after each match; more than [`CONTEXT_ROWS_MAX`] is cut.
    pub fn new(before: usize, after: usize) -> Context<T> {
        Context::measured(before, after, |_| 0)
    }

    /// The same of rows of different lengths, of which [`CONTEXT_BYTES_MAX`] are held.
    pub fn measured(before: usize, after: usize, length: fn(&T) -> usize) -> Context<T> {
        Context {
            length,
            bytes: 0,
            is_short: false,
            has_cut: false,
            before_max: before.min(CONTEXT_ROWS_MAX),
            after_max: after.min(CONTEXT_ROWS_MAX),
            before: VecDeque::new(),
            after_left: 0,
            is_gap: false,
            has_shown: false,
        }
    }

    /// True if a match has fewer rows before it than there are, because of their length.
    pub fn has_cut(&self) -> bool {
        self.has_cut
    }

    /// Forgets the rows that a match may still need: rows were passed over, and the next ones are others.
    pub fn pass_over(&mut self) {
        self.before.clear();
        (self.bytes, self.is_short) = (0, false);
        self.after_left = 0;
        self.is_gap = true;
    }

    /// Takes the next row; calls `show` with what is to be shown now.
    pub fn push(&mut self, row: T, is_match: bool, mut show: impl FnMut(ContextItem<T>)) {
        if is_match {
            let separates = self.before_max > 0 || self.after_max > 0;
            if self.is_gap && self.has_shown && separates {
                show(ContextItem::Separator);
            }
            self.has_cut |= self.is_short && self.before.len() < self.before_max;
            (self.bytes, self.is_short) = (0, false);
            self.before
                .drain(..)
                .for_each(|r| show(ContextItem::Context(r)));
            show(ContextItem::Match(row));
            self.after_left = self.after_max;
            self.is_gap = false;
            self.has_shown = true;
        } else if self.after_left > 0 {
            self.after_left -= 1;
            show(ContextItem::Context(row));
        } else {
            self.bytes += (self.length)(&row);
            self.before.push_back(row);
            while self.before.len() > self.before_max || self.bytes > CONTEXT_BYTES_MAX {
                self.is_short |= self.before.len() <= self.before_max;
                let Some(left_out) = self.before.pop_front() else {
                    break;
                };
                self.bytes -= (self.length)(&left_out);
                self.is_gap = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(before: usize, after: usize, matches: &[bool]) -> String {
        let mut context = Context::new(before, after);
        let mut out = String::new();
        for (at, is_match) in matches.iter().enumerate() {
            context.push(at, *is_match, |shown| match shown {
                ContextItem::Match(row) => out.push_str(&format!("{row}: ")),
                ContextItem::Context(row) => out.push_str(&format!("{row}- ")),
                ContextItem::Separator => out.push_str("-- "),
            });
        }
        out
    }

    #[test]
    fn groups_are_separated_and_overlaps_merged() {
        let matches = [false, false, true, false, false, false, true, true, false];
        let table = [
            (0, 0, "2: 6: 7: "),
            (1, 1, "1- 2: 3- -- 5- 6: 7: 8- "),
            (2, 1, "0- 1- 2: 3- 4- 5- 6: 7: 8- "),
            (0, 1, "2: 3- -- 6: 7: 8- "),
            (9, 0, "0- 1- 2: 3- 4- 5- 6: 7: "),
        ];
        for (before, after, expected) in table {
            assert_eq!(
                show(before, after, &matches),
                expected,
                "-B{before} -A{after}"
            );
        }
    }

    #[test]
    fn what_is_held_is_bounded_in_bytes() {
        let mut context = Context::measured(3, 0, |row: &usize| *row);
        let mut shown = Vec::new();
        let half = CONTEXT_BYTES_MAX / 2;
        for (row, is_match) in [
            (half, false),
            (half, false),
            (1, false),
            (5, true),
            (6, false),
            (7, true),
        ] {
            context.push(row, is_match, |row| shown.push(row));
            assert_eq!(context.has_cut(), shown.contains(&ContextItem::Match(5)));
        }
        let expected = [
            ContextItem::Context(half),
            ContextItem::Context(1),
            ContextItem::Match(5),
            ContextItem::Context(6),
            ContextItem::Match(7),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn rows_that_are_passed_over_are_a_gap() {
        let mut context = Context::new(2, 0);
        let mut shown = Vec::new();
        for (row, is_match) in [(0, true), (1, false), (7, false), (8, true)] {
            if row == 7 {
                context.pass_over();
            }
            context.push(row, is_match, |row| shown.push(row));
        }
        let expected = [
            ContextItem::Match(0),
            ContextItem::Separator,
            ContextItem::Context(7),
            ContextItem::Match(8),
        ];
        assert_eq!(shown, expected);
    }

    proptest! {
        #[test]
        fn rows_near_matches_are_shown_once(
            before in 0usize..4,
            after in 0usize..4,
            matches in proptest::collection::vec(any::<bool>(), 0..30),
        ) {
            let near = |at: usize| {
                let from = at.saturating_sub(after);
                let to = (at + before + 1).min(matches.len());
                matches[from..to].contains(&true)
            };
            let mut expected = String::new();
            let mut last = None;
            for at in (0..matches.len()).filter(|at| near(*at)) {
                if before + after > 0 && last.is_some_and(|l| l + 1 < at) {
                    expected.push_str("-- ");
                }
                last = Some(at);
                expected.push_str(&format!("{at}{} ", if matches[at] { ':' } else { '-' }));
            }
            prop_assert_eq!(show(before, after, &matches), expected);
        }
    }
}
