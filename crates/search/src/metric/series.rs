//! The labels of a series of an answer.

use std::cmp::Ordering;
use std::fmt;

use logpond_record::cast;

use crate::logql::Grouping;

/// Labels in the order of their names, each name once.
///
/// Layout, the same as that of a table's keys: of each label the length of its name as four bytes, the
/// name, the length of its value as four bytes, the value. One piece of memory, since there may be as many
/// series as there are addresses of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeriesLabels(Box<[u8]>);

impl SeriesLabels {
    /// These labels; the first of a name counts.
    pub fn new<'t>(labels: impl IntoIterator<Item = (&'t str, &'t str)>) -> SeriesLabels {
        let mut labels: Vec<_> = labels.into_iter().collect();
        labels.sort_by(|a, b| a.0.cmp(b.0));
        labels.dedup_by(|b, a| a.0 == b.0);
        SeriesLabels::written(labels.into_iter())
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        // What is kept was text.
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        Pairs(&self.0).map(move |(name, value)| (text(name), text(value)))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a label.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut labels = self.iter();
        labels.find_map(|(known, value)| (known == name).then_some(value))
    }

    /// The same without some labels, and without those that have no text.
    #[must_use]
    pub fn without(&self, names: &[Box<str>]) -> SeriesLabels {
        self.chosen(|name, value| !value.is_empty() && !is_named(names, name))
    }

    /// Only some labels, of these those that have a text.
    #[must_use]
    pub fn only(&self, names: &[Box<str>]) -> SeriesLabels {
        self.chosen(|name, value| !value.is_empty() && is_named(names, name))
    }

    fn chosen(&self, is_wanted: impl Fn(&str, &str) -> bool) -> SeriesLabels {
        SeriesLabels::written(self.iter().filter(|(name, value)| is_wanted(name, value)))
    }

    /// The same with a label of this value; without it if the value is empty, and without others whose
    /// values are.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> SeriesLabels {
        let is_kept = |(known, value): &(&str, &str)| *known != name && !value.is_empty();
        let rest = self.iter().filter(is_kept);
        let new = Some((name, value)).filter(|_| !value.is_empty());
        SeriesLabels::new(rest.chain(new))
    }

    /// The labels that are left of these by a grouping. A label without text is as good as none, since records without
    /// the field are of the same group.
    #[must_use]
    pub fn grouped(&self, grouping: &Grouping) -> SeriesLabels {
        if grouping.is_without {
            self.without(&grouping.labels)
        } else {
            self.only(&grouping.labels)
        }
    }

    /// Appends the labels to a key, in the layout of all labels.
    pub(super) fn write_key<'t>(
        labels: impl Iterator<Item = (&'t str, &'t str)>,
        key: &mut Vec<u8>,
    ) {
        for (name, value) in labels {
            for text in [name, value] {
                SeriesLabels::write_text(text, key);
            }
        }
    }

    /// Appends a name or a value to a key.
    pub(super) fn write_text(text: &str, key: &mut Vec<u8>) {
        key.extend_from_slice(&cast::low_u32(text.len()).to_le_bytes());
        key.extend_from_slice(text.as_bytes());
    }

    /// Labels in the order of their names, each name once.
    fn written<'t>(labels: impl Iterator<Item = (&'t str, &'t str)>) -> SeriesLabels {
        let mut bytes = Vec::new();
        SeriesLabels::write_key(labels, &mut bytes);
        SeriesLabels(bytes.into())
    }

    /// The labels of a key that [`SeriesLabels::write_key`] wrote of labels in order; `None` if it is
    /// something else.
    pub(super) fn of_key(key: Box<[u8]>) -> Option<SeriesLabels> {
        SeriesLabels::is_key(&key).then_some(SeriesLabels(key))
    }

    /// The order of the labels of two keys.
    pub(super) fn compare_keys(a: &[u8], b: &[u8]) -> Ordering {
        Pairs(a).cmp(Pairs(b))
    }

    /// Whether bytes are labels as they are kept.
    pub(super) fn is_key(key: &[u8]) -> bool {
        let mut pairs = Pairs(key);
        let mut last: Option<&[u8]> = None;
        for (name, value) in &mut pairs {
            let is_behind = last.is_none_or(|last| last < name);
            if !is_behind
                || [name, value]
                    .map(std::str::from_utf8)
                    .iter()
                    .any(Result::is_err)
            {
                return false;
            }
            last = Some(name);
        }
        pairs.0.is_empty()
    }
}

fn is_named(names: &[Box<str>], name: &str) -> bool {
    names.iter().any(|known| **known == *name)
}

impl Ord for SeriesLabels {
    /// Label by label, first by name and then by value.
    fn cmp(&self, other: &SeriesLabels) -> Ordering {
        SeriesLabels::compare_keys(&self.0, &other.0)
    }
}

impl PartialOrd for SeriesLabels {
    fn partial_cmp(&self, other: &SeriesLabels) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The names and values in the bytes of labels; what is behind the last whole pair stays.
struct Pairs<'k>(&'k [u8]);

impl<'k> Pairs<'k> {
    fn text(bytes: &'k [u8]) -> Option<(&'k [u8], &'k [u8])> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        rest.split_at_checked(u32::from_le_bytes(*length) as usize)
    }
}

impl<'k> Iterator for Pairs<'k> {
    type Item = (&'k [u8], &'k [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = Pairs::text(self.0)?;
        let (value, rest) = Pairs::text(rest)?;
        self.0 = rest;
        Some((name, value))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_in_the_order_of_their_names_and_then_of_their_values() {
        let sets = [
            SeriesLabels::default(),
            SeriesLabels::new([("a", "b")]),
            SeriesLabels::new([("b", "x"), ("a", "b")]),
            SeriesLabels::new([("a", "ba")]),
            SeriesLabels::new([("a", "c")]),
            SeriesLabels::new([("ab", "a")]),
        ];
        assert!(sets.is_sorted());
        let pairs: Vec<Vec<_>> = sets.iter().map(|set| set.iter().collect()).collect();
        assert!(pairs.is_sorted());
        assert_eq!(sets[2].to_string(), r#"{a="b", b="x"}"#);
    }

    #[test]
    fn labels_change_as_asked() {
        let labels = SeriesLabels::new([("a", "1"), ("b", "2"), ("b", "ignored"), ("c", "3")]);
        let names = ["b".into(), "x".into()];
        assert_eq!(labels.get("b"), Some("2"));
        assert_eq!(labels.get("x"), None);
        assert_eq!(labels.only(&names), SeriesLabels::new([("b", "2")]));
        let without = SeriesLabels::new([("a", "1"), ("c", "3")]);
        assert_eq!(labels.without(&names), without);
        assert_eq!(labels.with("b", ""), without);
        assert_eq!(without.with("b", "2"), labels);
        let empty = SeriesLabels::new([("a", "1"), ("c", "3"), ("d", "")]);
        assert_eq!(empty.with("b", "2"), labels);
        assert_eq!(labels.with("b", "4").get("b"), Some("4"));
        let named = ["b".into(), "d".into()];
        assert_eq!(empty.without(&named), without);
        assert!(empty.only(&named).is_empty());
        let grouped = |is_without| {
            let labels = named.to_vec();
            empty.grouped(&Grouping { is_without, labels })
        };
        assert_eq!(grouped(true), without);
        assert!(grouped(false).is_empty());
    }

    #[test]
    fn keys_of_others_are_checked() {
        let key = |labels: &[(&str, &str)]| {
            let mut key = Vec::new();
            SeriesLabels::write_key(labels.iter().copied(), &mut key);
            key
        };
        let good = key(&[("a", "1"), ("b", "")]);
        assert!(SeriesLabels::is_key(&good) && SeriesLabels::is_key(&[]));
        for length in 1..good.len() {
            assert!(
                !SeriesLabels::is_key(&good[..length]) || length == 10,
                "{length}"
            );
        }
        assert!(!SeriesLabels::is_key(&key(&[("b", "1"), ("a", "1")])));
        assert!(!SeriesLabels::is_key(&key(&[("a", "1"), ("a", "1")])));
        let mut no_text = good.clone();
        no_text[4] = 0xff;
        assert!(!SeriesLabels::is_key(&no_text));
    }
}
