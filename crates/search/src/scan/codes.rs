//! Rows of a block by the values that they have in some columns, as numbers.

use std::collections::HashMap;

use logpond_segment::rows::{Column, NULL};

/// The most pairs of groups and values of a block that lie side by side in memory, whether they occur or
/// not.
const PAIRS_DENSE_MAX: usize = 1 << 17;

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
    pub(super) count: u32,
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
                self.bound += strings.values.len() as u32;
            }
            Column::Ints(numbers) => {
                let value = |at: usize| numbers.get(wanted(at)).map(|number| number as u64);
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
        let mut last = None;
        for (code, value) in self.of_rows.iter_mut().zip(values) {
            let Some(value) = value.filter(|_| *code == 0) else {
                continue;
            };
            // Rows are sorted by what has few values, so the next is mostly like the last.
            *code = match last {
                Some((same, number)) if same == value => number,
                _ => {
                    let next = self.bound + known.len() as u32;
                    *known.entry(value).or_insert(next)
                }
            };
            last = Some((value, *code));
        }
        self.bound += known.len() as u32;
    }
}

impl Groups {
    /// Tells rows of a group apart that differ in this, too.
    pub(super) fn refine(&mut self, codes: &Codes) {
        let Some(first) = codes.of_rows.first() else {
            return;
        };
        if codes.of_rows.iter().all(|code| code == first) {
            return;
        }
        let bound = codes.bound as usize;
        let groups = self.of_rows.iter_mut().zip(&codes.of_rows);
        self.count = match (self.count as usize).checked_mul(bound) {
            Some(pairs) if pairs <= PAIRS_DENSE_MAX => {
                let mut known = vec![u32::MAX; pairs];
                let mut count = 0;
                for (group, code) in groups {
                    let known = &mut known[*group as usize * bound + *code as usize];
                    if *known == u32::MAX {
                        *known = count;
                        count += 1;
                    }
                    *group = *known;
                }
                count
            }
            _ => {
                let mut known: HashMap<(u32, u32), u32> = HashMap::new();
                for (group, code) in groups {
                    let next = known.len() as u32;
                    *group = *known.entry((*group, *code)).or_insert(next);
                }
                known.len() as u32
            }
        };
    }

    /// Of each group the place of its first row and the number of its rows.
    pub(super) fn first_rows(&self) -> Vec<(usize, u64)> {
        let mut groups = vec![(usize::MAX, 0); self.count as usize];
        for (place, group) in self.of_rows.iter().enumerate() {
            let (first, rows) = &mut groups[*group as usize];
            *first = place.min(*first);
            *rows += 1;
        }
        groups
    }
}
