//! A line of Docker's `json-file` driver.
//!
//! ```text
//! {"log":"text\n","stream":"stdout","attrs":{"tag":"a"},"time":"2026-03-02T00:00:06.123456789Z"}
//! ```
//!
//! A `log` that does not end with a line end is a part of a line: Docker cuts lines at 16 KiB.
//! Source: <https://docs.docker.com/engine/logging/drivers/json-file/>, and moby's `jsonlog` and
//! `Copier` for the cutting and the escapes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::container::{Part, Stream, time};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DockerLine<'a> {
    #[serde(borrow)]
    log: Cow<'a, str>,
    #[serde(borrow, default)]
    stream: Cow<'a, str>,
    #[serde(borrow, default)]
    time: Cow<'a, str>,
    #[serde(borrow, default)]
    attrs: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

/// Reads a line without its LF. `None` if it is no such line: another form of JSON, an unknown stream,
/// no time where one stands, or a member that is not known. Only `log` must be there.
pub fn parse(line: &[u8]) -> Option<Part<'_>> {
    // Whatever else there is in such a file is told without a parser.
    if line.first() != Some(&b'{') {
        return None;
    }
    let written: DockerLine<'_> = serde_json::from_slice(line).ok()?;
    let stream = match &*written.stream {
        "" => Stream::Unnamed,
        name => Stream::from_name(name.as_bytes())?,
    };
    let time = match &*written.time {
        "" => None,
        text => time(text.as_bytes())?,
    };
    let is_last = written.log.ends_with('\n');
    let text = match written.log {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(mut text) => {
            text.truncate(text.len() - usize::from(is_last));
            Cow::Owned(text.into_bytes())
        }
    };
    Some(Part {
        stream,
        time,
        text,
        is_last,
        attributes: written.attrs.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_parts_are_read() {
        let told = |line: &str| {
            let part = parse(line.as_bytes())?;
            let attributes: Vec<_> = part.attributes.iter().collect();
            let time = part.time.map_or(0, |t| t.0 % 1_000_000_000);
            Some(format!(
                "{:?} {time} {} {}{}",
                part.stream,
                part.text.escape_ascii(),
                if part.is_last { "whole" } else { "part" },
                if attributes.is_empty() {
                    String::new()
                } else {
                    format!(" {attributes:?}")
                }
            ))
        };
        let table = [
            (
                r#"{"log":"a\tb\n","stream":"stdout","time":"2026-03-02T00:00:06.5Z"}"#,
                Some(r"Stdout 500000000 a\tb whole"),
            ),
            (
                r#"{"log":"\u003c&\u0000é\r\n","stream":"stderr","time":"2026-03-02T00:00:06Z"}"#,
                Some(r"Stderr 0 <&\x00\xc3\xa9\r whole"),
            ),
            (
                r#"{"log":"part","stream":"stdout","time":"2026-03-02T00:00:06Z"}"#,
                Some("Stdout 0 part part"),
            ),
            (
                r#"{"log":"","stream":"stdout","time":"2026-03-02T00:00:06Z"}"#,
                Some("Stdout 0  part"),
            ),
            (r#"{"log":"\n"}"#, Some("Unnamed 0  whole")),
            (r#"{"log":"a\nb\n"}"#, Some(r"Unnamed 0 a\nb whole")),
            (
                r#"{"log":"a\n","attrs":{"tag":"x","com.docker.compose.service":"web"},"time":""}"#,
                Some(r#"Unnamed 0 a whole [("com.docker.compose.service", "web"), ("tag", "x")]"#),
            ),
            (r#"{"log":"a\n","level":"info"}"#, None),
            (r#"{"log":1}"#, None),
            (r#"{"stream":"stdout"}"#, None),
            (r#"{"log":"a\n","stream":"third"}"#, None),
            (r#"{"log":"a\n","time":"yesterday"}"#, None),
            (r#"{"log":"a\n"} "#, Some("Unnamed 0 a whole")),
            (r#"{"log":"a\n"}{"#, None),
            (r#"{"log":"a"#, None),
            ("text", None),
            ("", None),
        ];
        for (line, expected) in table {
            assert_eq!(told(line).as_deref(), expected, "{line}");
        }
    }
}
