//! What of a journal file could not be read.

use std::fmt;

use super::frame::Reason;

/// The most damages that are listed for one file; further ones are counted only.
pub const DAMAGES_LISTED_MAX: usize = 256;

/// A range of a file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: String,
    /// First byte of the range.
    pub from: u64,
    /// First byte after the range.
    pub to: u64,
    /// What is wrong at its start.
    pub reason: Reason,
    /// How many rows are lost, where a frame's header still tells.
    pub rows: Option<u64>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: bytes {}..{}: {}",
            self.path, self.from, self.to, self.reason
        )?;
        match self.rows {
            Some(rows) => write!(f, " ({rows} rows)"),
            None => Ok(()),
        }
    }
}

/// The damages of a file: the first ones listed, all counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damages {
    /// The first ones in file order, at most [`DAMAGES_LISTED_MAX`].
    pub listed: Vec<Damage>,
    /// How many there are.
    pub count: u64,
    /// How many bytes they cover.
    pub bytes: u64,
}

impl Damages {
    pub(super) fn add(&mut self, damage: Damage) {
        self.count += 1;
        self.bytes += damage.to - damage.from;
        if self.listed.len() < DAMAGES_LISTED_MAX {
            self.listed.push(damage);
        }
    }

    /// Adds the damages of another file.
    pub fn merge(&mut self, other: Damages) {
        self.count += other.count;
        self.bytes += other.bytes;
        let room = DAMAGES_LISTED_MAX.saturating_sub(self.listed.len());
        self.listed.extend(other.listed.into_iter().take(room));
    }
}
