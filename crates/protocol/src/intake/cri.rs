//! A line of a container's file as runtimes of Kubernetes (containerd, CRI-O) write it.
//!
//! ```text
//! 2026-03-02T00:00:06.123456789Z stdout F a line
//! 2026-03-02T00:00:06.123456789Z stderr P the first part of a lin
//! 2026-03-02T00:00:06.123456790Z stderr F e
//! ```
//!
//! `P` is a part of a line, `F` is all of it or its last part; more tags may follow behind colons.
//! Source: Kubernetes' design of the CRI's logs
//! (`contributors/design-proposals/node/kubelet-cri-logging.md`) and the kubelet's own reader.

use std::borrow::Cow;

use memchr::memchr;

use super::container::{Part, Stream, time};

/// Reads a line without its LF; `None` if it is no such line.
pub fn parse(line: &[u8]) -> Option<Part<'_>> {
    // A year: whatever else there is in such a file is mostly told by this.
    if !line.first()?.is_ascii_digit() {
        return None;
    }
    let (at, rest) = word(line)?;
    let (stream, rest) = word(rest)?;
    // Nothing behind the tags is an empty line, whose space an editor may have removed.
    let (tags, text) = word(rest).unwrap_or((rest, b""));
    let is_last = match tags.split(|byte| *byte == b':').next() {
        Some(b"F") => true,
        Some(b"P") => false,
        _ => return None,
    };
    Some(Part {
        stream: Stream::from_name(stream)?,
        time: time(at)?,
        text: Cow::Borrowed(text),
        is_last,
        attributes: Vec::new(),
    })
}

/// What is before the first space and behind it.
fn word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr(b' ', line)?;
    Some((&line[..end], &line[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_parts_are_read() {
        let told = |line: &[u8]| {
            let part = parse(line)?;
            let time = part.time.map_or(0, |t| t.0 % 1_000_000_000);
            let what = if part.is_last { "whole" } else { "part" };
            let text = part.text.escape_ascii();
            Some(format!("{:?} {time} {text} {what}", part.stream))
        };
        let table: [(&[u8], Option<&str>); 14] = [
            (
                b"2026-03-02T00:00:06.123456789Z stdout F a  b \r",
                Some(r"Stdout 123456789 a  b \r whole"),
            ),
            (
                b"2026-03-02T00:00:06.1+08:00 stderr P \xff\0",
                Some(r"Stderr 100000000 \xff\x00 part"),
            ),
            (b"2026-03-02T00:00:06Z stdout F ", Some("Stdout 0  whole")),
            (b"2026-03-02T00:00:06Z stdout F", Some("Stdout 0  whole")),
            (b"2026-03-02T00:00:06Z stdout P", Some("Stdout 0  part")),
            (
                b"2026-03-02T00:00:06Z stdout F:new:tags a",
                Some("Stdout 0 a whole"),
            ),
            (b"2026-03-02T00:00:06Z stdout  F a", None),
            (b"2026-03-02T00:00:06Z stdout a", None),
            (b"2026-03-02T00:00:06Z stdin F a", None),
            (b"2026-03-02T00:00:06 stdout F a", None),
            (b"2026-03-02T00:00:06Z stdout FULL a", None),
            (b"2026-03-02T00:00:06Z", None),
            (b"text", None),
            (b"", None),
        ];
        for (line, expected) in table {
            assert_eq!(told(line).as_deref(), expected, "{}", line.escape_ascii());
        }
    }
}
