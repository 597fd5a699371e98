//! Rows around matches, as `-A`, `-B` and `-C` of grep show them.
//!
//! Rows of one stream go in one by one, in its order, with whether they match. Those to show come
//! out, each once; a separator stands between groups that are not neighbours.

use std::collections::VecDeque;

/// The most rows of context before a match; they are held in memory.
pub const CONTEXT_ROWS_MAX: usize = 10_000;

/// Something to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown<T> {
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
    after_left: usize,
    /// Whether rows were left out since the last one shown.
    is_gap: bool,
    has_shown: bool,
}

impl<T> Context<T> {
    /// Shows so many rows before and after each match; more than [`CONTEXT_ROWS_MAX`] is cut.
    pub fn new(before: usize, after: usize) -> Context<T> {
        Context {
            before_max: before.min(CONTEXT_ROWS_MAX),
            after_max: after.min(CONTEXT_ROWS_MAX),
            before: VecDeque::new(),
            after_left: 0,
            is_gap: false,
            has_shown: false,
        }
    }

    /// Takes the next row; calls `show` with what is to be shown now.
    pub fn push(&mut self, row: T, is_match: bool, mut show: impl FnMut(Shown<T>)) {
        if is_match {
            let separates = self.before_max > 0 || self.after_max > 0;
            if self.is_gap && self.has_shown && separates {
                show(Shown::Separator);
            }
            self.before.drain(..).for_each(|r| show(Shown::Context(r)));
            show(Shown::Match(row));
            self.after_left = self.after_max;
            self.is_gap = false;
            self.has_shown = true;
        } else if self.after_left > 0 {
            self.after_left -= 1;
            show(Shown::Context(row));
        } else {
            self.before.push_back(row);
            if self.before.len() > self.before_max {
                self.before.pop_front();
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
                Shown::Match(row) => out.push_str(&format!("{row}: ")),
                Shown::Context(row) => out.push_str(&format!("{row}- ")),
                Shown::Separator => out.push_str("-- "),
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
