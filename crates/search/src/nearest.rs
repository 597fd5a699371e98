//! The known name that a name which nothing has was probably meant to be.
//!
//! Names of settings, of fields, of stages and functions of LogQL, of columns and of commands are all
//! compared here, so that a slip is recognised by the same rule everywhere.

/// Longer names are not compared: nobody writes them by hand, and comparing takes the product of the lengths.
const NAME_CHARS_MAX: usize = 64;

/// Characters of the name for each slip in it: every third character wrong is another name.
const CHARS_PER_SLIP: usize = 3;

/// The most slips, however long the name is.
const SLIPS_MAX: usize = 3;

/// The known name that takes the fewest slips to become `name`, if it is near enough to be meant; upper and
/// lower case are the same. Of names that are equally near the first in the order of the alphabet.
///
/// A slip is a character too many, too few or wrong, or two neighbours in the wrong order.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let written = characters(name)?;
    let slips_max = (written.len() / CHARS_PER_SLIP).clamp(1, SLIPS_MAX);
    let near = known.into_iter().filter_map(|known| {
        let candidate = characters(known)?;
        // Each character that one has more is a slip.
        if written.len().abs_diff(candidate.len()) > slips_max {
            return None;
        }
        let slips = slips(&written, &candidate);
        // Half of a short name changed is another name.
        (slips <= slips_max && slips * 2 <= candidate.len()).then_some((slips, known))
    });
    near.min().map(|(_, known)| known)
}

/// The characters of a name in lower case; `None` if it is too long to be compared, or empty.
fn characters(name: &str) -> Option<Vec<char>> {
    let characters: Vec<char> = name
        .chars()
        .flat_map(char::to_lowercase)
        .take(NAME_CHARS_MAX + 1)
        .collect();
    (1..=NAME_CHARS_MAX)
        .contains(&characters.len())
        .then_some(characters)
}

/// How many slips lie between two names.
fn slips(a: &[char], b: &[char]) -> usize {
    let mut two_before: Vec<usize> = Vec::new();
    let mut before: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = before[j] + usize::from(x != y);
            let mut best = changed.min(before[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(two_before[j - 1] + 1);
            }
            row.push(best);
        }
        two_before = std::mem::replace(&mut before, row);
    }
    before[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_names_are_not() {
        let known = [
            "status",
            "host",
            "remote_addr",
            "http.method",
            "size",
            "RETAIN_AGE",
        ];
        for (name, meant) in [
            ("statsu", Some("status")),
            ("Status", Some("status")),
            ("stat", None),
            ("hosts", Some("host")),
            ("hsot", Some("host")),
            ("remote_adr", Some("remote_addr")),
            ("remoteaddr", Some("remote_addr")),
            ("http_method", Some("http.method")),
            ("retain-age", Some("RETAIN_AGE")),
            ("path", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), meant, "{name}");
        }
        assert_eq!(nearest("lin", ["line", "lint"]), Some("line"));
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        assert_eq!(nearest(&long, [&*long]), None);
    }
}
