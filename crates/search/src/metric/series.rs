//! The labels of a series of an answer.

use std::fmt;

use crate::logql::Grouping;

/// Labels in the order of their names, each name once.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesLabels(Vec<(Box<str>, Box<str>)>);

impl SeriesLabels {
    /// None.
    pub const EMPTY: SeriesLabels = SeriesLabels(Vec::new());

    /// These labels; the first of a name counts.
    pub fn new<'t>(labels: impl IntoIterator<Item = (&'t str, &'t str)>) -> SeriesLabels {
        let labels = labels.into_iter();
        let mut labels: Vec<_> = labels
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        labels.sort_by(|a: &(Box<str>, Box<str>), b| a.0.cmp(&b.0));
        labels.dedup_by(|b, a| a.0 == b.0);
        SeriesLabels(labels)
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a label.
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(known, _)| (**known).cmp(name));
        at.ok().map(|at| &*self.0[at].1)
    }

    /// The same without some labels.
    #[must_use]
    pub fn without(&self, names: &[Box<str>]) -> SeriesLabels {
        let rest = self.0.iter().filter(|(name, _)| !names.contains(name));
        SeriesLabels(rest.cloned().collect())
    }

    /// Only some labels.
    #[must_use]
    pub fn only(&self, names: &[Box<str>]) -> SeriesLabels {
        let chosen = self.0.iter().filter(|(name, _)| names.contains(name));
        SeriesLabels(chosen.cloned().collect())
    }

    /// The same with a label of this value; without it if the value is empty.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> SeriesLabels {
        let mut labels = self.without(&[name.into()]);
        if !value.is_empty() {
            let at = labels.0.partition_point(|(known, _)| **known < *name);
            labels.0.insert(at, (name.into(), value.into()));
        }
        labels
    }

    /// The labels that are left of these by a grouping.
    #[must_use]
    pub fn grouped(&self, grouping: &Grouping) -> SeriesLabels {
        match grouping.is_without {
            true => self.without(&grouping.labels),
            false => self.only(&grouping.labels),
        }
    }

    /// Appends the labels to a key: names and values with their lengths.
    pub(super) fn write_key<'t>(
        labels: impl Iterator<Item = (&'t str, &'t str)>,
        key: &mut Vec<u8>,
    ) {
        for (name, value) in labels {
            for text in [name, value] {
                key.extend_from_slice(&(text.len() as u32).to_le_bytes());
                key.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Reads what [`SeriesLabels::write_key`] wrote; `None` if it is something else.
    pub(super) fn of_key(key: &[u8]) -> Option<SeriesLabels> {
        let mut texts: Vec<&str> = Vec::new();
        let mut rest = key;
        while !rest.is_empty() {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            let length = u32::from_le_bytes(*length) as usize;
            let (text, behind) = behind.split_at_checked(length)?;
            texts.push(std::str::from_utf8(text).ok()?);
            rest = behind;
        }
        let pairs = texts.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return None;
        }
        Some(SeriesLabels::new(pairs.map(|pair| (pair[0], pair[1]))))
    }
}

impl fmt::Display for SeriesLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (at, (name, value)) in self.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{name}={value:?}")?;
        }
        f.write_str("}")
    }
}
