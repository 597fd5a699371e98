//! How many records there are.

/// A count of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    rows: u64,
}

impl Count {
    /// Nothing counted yet.
    pub fn new() -> Count {
        Count::default()
    }

    /// Counts so many records.
    pub fn add(&mut self, rows: u64) {
        self.rows += rows;
    }

    /// Adds what another counted.
    pub fn merge(&mut self, other: Count) {
        self.rows += other.rows;
    }

    /// The number of records.
    pub fn finish(self) -> u64 {
        self.rows
    }
}
