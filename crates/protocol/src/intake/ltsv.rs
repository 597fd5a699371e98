//! Labeled Tab-separated Values: `label:value` parts with tabs between them, and nothing else.
//!
//! A value is typed where it is written as a number or a boolean would be rendered. A time in brackets is that
//! between them. Source: ltsv.org, "Labeled Tab-separated Values"; its recommended labels are a product of
//! [`outline`](super::outline).

use memchr::memchr;

use super::logfmt;
use super::outline::Outline;
use super::sketch::Parts;

/// Fewer parts than this are more likely a text with a tab.
const PARTS_MIN: usize = 2;

/// The tab behind the first part of most lines stands before this byte.
const PART_BYTES_MAX: usize = 256;

/// True if `line` may be made of labeled values: it begins with a label, and each of its first two parts has one.
pub(crate) fn is_candidate(line: &[u8]) -> bool {
    // Most lines have no tab.
    let head = &line[..line.len().min(PART_BYTES_MAX)];
    memchr(b'\t', head).is_some_and(|tab| {
        let has_label = |part: &[u8]| label_bytes(part).is_some();
        has_label(&line[..tab]) && has_label(&line[tab + 1..])
    })
}

/// Reads the parts of `line`: the fields go to `outline`, their values to the parts.
pub(crate) fn read<'a>(line: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    outline.clear();
    let mut parts = Parts::new(12);
    let (mut at, mut count) = (0, 0);
    let end = line.trim_end_matches('\r').len();
    for part in line[..end].split('\t') {
        let label = label_bytes(part.as_bytes())?;
        let mut span = (at + label + 1, at + part.len());
        if let Some(inside) = line[span.0..span.1].strip_prefix('[')
            && inside.ends_with(']')
        {
            span = (span.0 + 1, span.1 - 1);
        }
        let read = logfmt::bare_value(&line[span.0..span.1]);
        outline.add(&mut parts, &part.as_bytes()[..label], line, span, read);
        at += part.len() + 1;
        count += 1;
    }
    (count >= PARTS_MIN).then_some(parts)
}

/// The length of the label that `text` begins with and a colon follows.
fn label_bytes(text: &[u8]) -> Option<usize> {
    if !text.first()?.is_ascii_alphabetic() && text[0] != b'_' {
        return None;
    }
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let length = text.iter().take_while(is_part).count();
    let value = text.get(length..)?.strip_prefix(b":")?;
    // Those are texts, addresses and paths.
    let is_other = matches!(value, [b' ' | b'\\', ..] | [b'/', b'/', ..]);
    (!is_other).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_any_length() {
        let label = "n".repeat(5000);
        let line = format!("src:ltsv\ta:1\t{label}:x");
        assert!(is_candidate(line.as_bytes()));
        assert_eq!(label_bytes(&line.as_bytes()[13..]), Some(label.len()));
    }

    #[test]
    fn lines_are_told_by_two_labels() {
        for (line, expected) in [
            ("time:2026-11-27T00:51:25Z\tstatus:200", true),
            ("a:\tb:", true),
            ("time: 2026\tstatus: 200", false),
            ("time:2026", false),
            ("main:7\tstarted", false),
            ("http://a\thttp://b", false),
            ("C:\\a\tD:\\b", false),
            ("\ta:b\tc:d", false),
            ("", false),
        ] {
            assert_eq!(is_candidate(line.as_bytes()), expected, "{line}");
        }
    }
}
