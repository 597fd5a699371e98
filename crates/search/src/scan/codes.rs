//! Rows of a block by the values that they have in some columns, as numbers.

use std::collections::HashMap;

use logpond_record::cast;
use logpond_segment::rows::{Column, NULL};

/// The most pairs of groups and values of a block that lie side by side in memory, whether they occur or
/// not.
const PAIRS_DENSE_MAX: usize = 1 << 17;

/// How many numbers are at hand without asking for them.
const NUMBERS_NEAR: usize = 64;

/// Of each row a number that tells its value of a label from those of others; 0 for none.
pub(super) struct Codes {
    pub(super) of_rows: Vec<u32>,
    /// All are below.
    bound: u32,
}

/// Rows of a block that have the same labels.
pub(super) struct Groups {
    /// For each selected row the number of its group.
    pub(super) of_rows: Vec<u32>,
    /// Of each group the place of its first row.
    pub(super) firsts: Vec<usize>,
}

impl Codes {
    pub(super) fn none(rows: usize) -> Codes {
        Codes {
            of_rows: vec![0; rows],
            bound: 1,
        }
    }

    /// Takes the values of a column where there are none yet, in rows that have the label.
    pub(super) fn add(&mut self, values: &Column, rows: &[u32], has_label: Option<&[bool]>) {
        let has_label = |at: usize| has_label.is_none_or(|has_label| has_label[at]);
        let wanted = |at: usize| rows[at] as usize;
        let places = 0..rows.len();
        match values {
            Column::Absent => {}
            Column::Strings(strings) => {
                let of_rows = self.of_rows.iter_mut().enumerate();
                for (at, code) in of_rows.filter(|(at, code)| **code == 0 && has_label(*at)) {
                    let found = strings.codes[wanted(at)];
                    // An empty text is no value.
                    if found != NULL && !strings.values.get(found).is_empty() {
                        *code = self.bound + found;
                    }
                }
                self.bound += cast::low_u32(strings.values.len());
            }
            Column::Ints(numbers) => {
                let value = |at: usize| numbers.get(wanted(at)).map(cast::unsigned);
                self.number(places.map(|at| value(at).filter(|_| has_label(at))));
            }
            Column::Floats(numbers) => {
                let value = |at: usize| numbers.get(wanted(at)).map(f64::to_bits);
                self.number(places.map(|at| value(at).filter(|_| has_label(at))));
            }
            Column::Bools(numbers) => {
                let value = |at: usize| numbers.get(wanted(at)).map(u64::from);
                self.number(places.map(|at| value(at).filter(|_| has_label(at))));
            }
        }
    }

    /// Numbers the distinct values, where there are none yet.
    pub(super) fn number(&mut self, values: impl Iterator<Item = Option<u64>>) {
        let mut known: HashMap<u64, u32> = HashMap::new();
        // Most columns of numbers that tell rows apart have few of them.
        let mut near: [Option<(u64, u32)>; NUMBERS_NEAR] = [None; NUMBERS_NEAR];
        for (code, value) in self.of_rows.iter_mut().zip(values) {
            let Some(value) = value.filter(|_| *code == 0) else {
                continue;
            };
            // Fractions differ in their first bits only.
            let near = &mut near[cast::to_usize(value ^ value >> 47) % NUMBERS_NEAR];
            *code = match *near {
                Some((same, number)) if same == value => number,
                _ => {
                    let next = self.bound + cast::low_u32(known.len());
                    *known.entry(value).or_insert(next)
                }
            };
            *near = Some((value, *code));
        }
        self.bound += cast::low_u32(known.len());
    }
}

impl Groups {
    /// One group of so many rows; none if there are no rows.
    pub(super) fn one(rows: usize) -> Groups {
        Groups {
            of_rows: vec![0; rows],
            firsts: (0..rows.min(1)).collect(),
        }
    }

    /// Tells rows of a group apart that differ in this, too.
    pub(super) fn refine(&mut self, codes: &Codes) {
        let Some(first) = codes.of_rows.first() else {
            return;
        };
        if codes.of_rows.iter().all(|code| code == first) {
            return;
        }
        let bound = codes.bound as usize;
        let pairs = self.firsts.len().checked_mul(bound);
        self.firsts.clear();
        let groups = self.of_rows.iter_mut().zip(&codes.of_rows).enumerate();
        match pairs {
            Some(pairs) if pairs <= PAIRS_DENSE_MAX => {
                let mut known = vec![u32::MAX; pairs];
                for (at, (group, code)) in groups {
                    let known = &mut known[*group as usize * bound + *code as usize];
                    if *known == u32::MAX {
                        *known = cast::low_u32(self.firsts.len());
                        self.firsts.push(at);
                    }
                    *group = *known;
                }
            }
            _ => {
                let mut known: HashMap<(u32, u32), u32> = HashMap::new();
                for (at, (group, code)) in groups {
                    let next = cast::low_u32(self.firsts.len());
                    *group = *known.entry((*group, *code)).or_insert_with(|| {
                        self.firsts.push(at);
                        next
                    });
                }
            }
        }
    }

    /// How many rows each group has.
    pub(super) fn rows(&self) -> Vec<u64> {
        let mut rows = vec![0; self.firsts.len()];
        for group in &self.of_rows {
            rows[*group as usize] += 1;
        }
        rows
    }
}
