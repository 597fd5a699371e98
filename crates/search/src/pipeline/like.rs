//! Patterns: literal text with captures, `<ip> - <_> [<_>] "<method> <path>"`.
//!
//! A capture is as short as what follows allows. As a filter (`|>`) no capture is empty, and the
//! pattern goes to the end of the line; where it begins with text, that may stand anywhere, as in
//! Loki. As a stage the pattern begins where the line does, captures may be empty, and what is missing
//! at the end of a line is.

use memchr::memmem;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct LikePattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(Box<[u8]>),
    /// A capture with its name; none for `<_>`.
    Capture(Option<Box<str>>),
}

impl LikePattern {
    /// Compiles a filter's pattern, whose captures have no names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(pattern: &str) -> Result<LikePattern, String> {
        let parts = parts_of(pattern);
        check_neighbours(pattern, &parts)?;
        let is_named = |part: &Part| matches!(part, Part::Capture(Some(_)));
        if parts.iter().any(is_named) {
            return Err(format!(
                "named captures are not allowed in a pattern filter: {pattern:?}"
            ));
        }
        Ok(LikePattern { parts })
    }

    /// Compiles a stage's pattern, which has names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse_stage(pattern: &str) -> Result<LikePattern, String> {
        let parts = parts_of(pattern);
        check_neighbours(pattern, &parts)?;
        let like = LikePattern { parts };
        let names: Vec<&str> = like.names().collect();
        if names.is_empty() {
            return Err(format!(
                "at least one capture is required in {pattern:?}: name one, such as <method>"
            ));
        }
        let twice = (1..names.len()).find(|at| names[..*at].contains(&names[*at]));
        match twice {
            Some(at) => Err(format!(
                "duplicate capture name ({}) in {pattern:?}",
                names[at]
            )),
            None => Ok(like),
        }
    }

    /// The names of captures, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Capture(name) => name.as_deref(),
            Part::Literal(_) => None,
        })
    }

    /// Whether a line is like the pattern.
    pub fn is_match(&self, line: &[u8]) -> bool {
        if line.is_empty() || self.parts.is_empty() {
            return line.is_empty() && self.parts.is_empty();
        }
        let mut at = 0;
        for (place, part) in self.parts.iter().enumerate() {
            let Part::Literal(text) = part else {
                continue;
            };
            let found = match place {
                0 => memmem::find(line, text),
                _ => memmem::find(&line[at..], text).filter(|found| *found > 0),
            };
            let Some(found) = found else {
                return false;
            };
            at += found + text.len();
        }
        let ends_open = matches!(self.parts.last(), Some(Part::Capture(_)));
        ends_open == (at < line.len())
    }

    /// Hands over the named captures of a line, in order; none if it does not begin like the pattern.
    pub fn captures<'l>(&self, line: &'l [u8], mut visit: impl FnMut(&str, &'l [u8])) {
        let mut rest = line;
        let mut parts = &self.parts[..];
        if let [Part::Literal(text), behind @ ..] = parts {
            match rest.strip_prefix(&**text) {
                Some(behind_text) => rest = behind_text,
                None => return,
            }
            parts = behind;
        }
        if line.is_empty() {
            return;
        }
        while let [Part::Capture(name), behind @ ..] = parts {
            let (end, next) = match behind {
                [Part::Literal(text), ..] => match memmem::find(rest, text) {
                    Some(found) => (found, Some(found + text.len())),
                    None => (rest.len(), None),
                },
                _ => (rest.len(), None),
            };
            if let Some(name) = name {
                visit(name, &rest[..end]);
            }
            let Some(next) = next else {
                return;
            };
            (rest, parts) = (&rest[next..], &behind[1..]);
        }
    }
}

/// The literal texts of a pattern.
pub fn literals(pattern: &str) -> Vec<Box<[u8]>> {
    let literals = parts_of(pattern).into_iter().filter_map(|part| match part {
        Part::Literal(text) => Some(text),
        Part::Capture(_) => None,
    });
    literals.collect()
}

fn check_neighbours(pattern: &str, parts: &[Part]) -> Result<(), String> {
    let is_capture = |part: &Part| matches!(part, Part::Capture(_));
    if parts.windows(2).any(|pair| pair.iter().all(is_capture)) {
        Err(format!(
            "found consecutive capture in {pattern:?}: put text between"
        ))
    } else {
        Ok(())
    }
}

/// A name in angle brackets is a capture, all else is text.
fn parts_of(pattern: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut literal = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let name = rest
            .strip_prefix('<')
            .and_then(|inside| inside.split_once('>'))
            .map(|(name, _)| name)
            .filter(|name| crate::label::is_label_name(name));
        let Some(name) = name else {
            literal.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        if !literal.is_empty() {
            parts.push(Part::Literal(
                std::mem::take(&mut literal).into_bytes().into(),
            ));
        }
        parts.push(Part::Capture((name != "_").then(|| name.into())));
        rest = &rest[name.len() + 2..];
    }
    if !literal.is_empty() {
        parts.push(Part::Literal(literal.into_bytes().into()));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_like_patterns() {
        let table = [
            ("foo <_>", "foo bar", true),
            ("foo <_>", "foo ", false),
            ("<_> bar", "foo bar baz", false),
            ("<_> baz", "foo bar baz", true),
            ("<_> bar <_>", " bar ", false),
            ("<_>bar<_>", " bar ", true),
            ("foo", "foo", true),
            ("foo", "xfoo", true),
            ("foo", "foox", false),
            ("b<_>", "abc", true),
            ("", "", true),
            ("<_>", "", false),
            ("<_>", "x", true),
            ("a<b c>d", "a<b c>d", true),
        ];
        for (pattern, line, expected) in table {
            let like = LikePattern::parse(pattern).unwrap();
            assert_eq!(like.is_match(line.as_bytes()), expected, "{pattern} {line}");
        }
        for wrong in ["<_><_>", "<a> x"] {
            assert!(LikePattern::parse(wrong).is_err(), "{wrong}");
        }
        for wrong in ["<_>", "x", "", "<a><b>", "<a> <a>"] {
            assert!(LikePattern::parse_stage(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn captures_are_as_short_as_they_can_be() {
        type Case = (
            &'static str,
            &'static str,
            &'static [(&'static str, &'static str)],
        );
        let table: [Case; 5] = [
            (
                "<ip> - <_> [<at>] <rest>",
                "1.2.3.4 - x [now] a b",
                &[("ip", "1.2.3.4"), ("at", "now"), ("rest", "a b")],
            ),
            ("x<a>,<b>", "xy", &[("a", "y")]),
            ("x<a>", "y", &[]),
            ("<a>", "", &[]),
            ("<a>-", "-", &[("a", "")]),
        ];
        for (pattern, line, expected) in table {
            let like = LikePattern::parse_stage(pattern).unwrap();
            let mut found = Vec::new();
            like.captures(line.as_bytes(), |name, text| {
                found.push((name.to_owned(), String::from_utf8_lossy(text).into_owned()));
            });
            let found: Vec<(&str, &str)> = found.iter().map(|(n, t)| (&**n, &**t)).collect();
            assert_eq!(found, expected, "{pattern} {line}");
        }
    }
}
