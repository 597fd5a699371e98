//! Lines of containers, as their runtimes write them to files: what the forms have in common.
//!
//! A runtime writes a line of its container with a time and the name of its stream, and a long one in
//! several parts, which [`super::assembly`] joins again.

use std::borrow::Cow;

use logpond_record::Timestamp;

use super::push::may_be_given;
use super::timestamps;
use super::{cri, docker};

/// What the lines of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Records as they are.
    Lines,
    /// Docker's `json-file`.
    Docker,
    /// The files of Kubernetes' Container Runtime Interface.
    Cri,
}

impl Format {
    /// Its name in settings and messages.
    pub fn name(self) -> &'static str {
        match self {
            Format::Lines => "lines",
            Format::Docker => "docker",
            Format::Cri => "cri",
        }
    }

    /// The format of this name.
    pub fn from_name(name: &str) -> Option<Format> {
        let all = [Format::Lines, Format::Docker, Format::Cri];
        all.into_iter().find(|format| format.name() == name)
    }

    /// The format of a file that begins like this: that of the first whole line that is certainly one
    /// of a runtime. `None` while there is no whole line.
    pub fn detect(start: &[u8]) -> Option<Format> {
        let end = memchr::memrchr(b'\n', start)?;
        let lines = start[..end].split(|byte| *byte == b'\n');
        let found = lines.take(DETECTION_LINES_MAX).find_map(|line| {
            let is_certain = |part: Option<Part<'_>>| {
                part.is_some_and(|p| p.stream != Stream::Unnamed && p.time.is_some())
            };
            if is_certain(docker::parse(line)) {
                Some(Format::Docker)
            } else if is_certain(cri::parse(line)) {
                Some(Format::Cri)
            } else {
                None
            }
        });
        Some(found.unwrap_or(Format::Lines))
    }
}

/// Lines at the start of a file that its format is recognised by: a file may begin with what a crash
/// has left, but no runtime's file begins with many lines of others.
const DETECTION_LINES_MAX: usize = 16;

/// Where a container wrote a line to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Nobody says.
    Unnamed,
}

impl Stream {
    /// All of them, each at its index.
    pub const ALL: [Stream; 3] = [Stream::Stdout, Stream::Stderr, Stream::Unnamed];

    /// Its name, if it has one.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Stream::Stdout => Some("stdout"),
            Stream::Stderr => Some("stderr"),
            Stream::Unnamed => None,
        }
    }

    /// The stream of this name.
    pub(super) fn from_name(name: &[u8]) -> Option<Stream> {
        let named = |stream: &Stream| stream.name().is_some_and(|n| n.as_bytes() == name);
        Stream::ALL.into_iter().find(named)
    }
}

/// Names and values that a runtime gives beside a line.
pub type Attributes<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// A line of a container, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Where it was written to.
    pub stream: Stream,
    /// When the runtime had read it.
    pub time: Option<Timestamp>,
    /// Its bytes, without the line's end.
    pub text: Cow<'a, [u8]>,
    /// Whether the line ends with it.
    pub is_last: bool,
    /// What the runtime was told to add.
    pub attributes: Attributes<'a>,
}

impl<'a> Part<'a> {
    /// A line of which nothing else is known.
    pub(super) fn of_line(line: &'a [u8]) -> Part<'a> {
        Part {
            stream: Stream::Unnamed,
            time: None,
            text: Cow::Borrowed(line),
            is_last: true,
            attributes: Vec::new(),
        }
    }
}

/// The time of a part: RFC 3339 with any number of digits up to nine. `Some(None)` is a time that no
/// record has, such as that of year 1, which an unset clock gives; `None` is no time.
pub(super) fn time(text: &[u8]) -> Option<Option<Timestamp>> {
    match timestamps::rfc3339(text) {
        Some(time) => Some(Some(time).filter(|time| may_be_given(*time))),
        None if text.starts_with(b"0001-01-01T") => Some(None),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised() {
        let docker = r#"{"log":"a\n","stream":"stdout","time":"2026-03-02T00:00:06.1Z"}"#;
        let cri = "2026-03-02T00:00:06.123456789+01:00 stderr P x";
        let table: [(String, Option<Format>); 9] = [
            (format!("{docker}\n"), Some(Format::Docker)),
            (format!("{cri}\n"), Some(Format::Cri)),
            (docker.to_owned(), None),
            (String::new(), None),
            ("text\n".to_owned(), Some(Format::Lines)),
            (format!("\0\0\n{docker}\n"), Some(Format::Docker)),
            ("\n".repeat(16) + docker + "\n", Some(Format::Lines)),
            // Records of an application, whatever their members are called.
            (
                "{\"log\":\"a\\n\",\"level\":\"info\"}\n{\"log\":\"a\"}\n".to_owned(),
                Some(Format::Lines),
            ),
            (
                "2026-03-02T00:00:06Z stdout everything\n".to_owned(),
                Some(Format::Lines),
            ),
        ];
        for (start, format) in table {
            assert_eq!(Format::detect(start.as_bytes()), format, "{start}");
        }
        for format in [Format::Lines, Format::Docker, Format::Cri] {
            assert_eq!(Format::from_name(format.name()), Some(format));
        }
    }

    #[test]
    fn times_are_those_of_records() {
        let nanos = |text: &str| time(text.as_bytes()).map(|time| time.map(|t| t.0));
        assert_eq!(
            nanos("2026-03-02T00:00:06.000000001Z"),
            Some(Some(1_772_409_606_000_000_001))
        );
        assert_eq!(
            nanos("2026-03-02T01:00:06+01:00"),
            Some(Some(1_772_409_606_000_000_000))
        );
        assert_eq!(nanos("0001-01-01T00:00:00Z"), Some(None));
        assert_eq!(nanos("1969-12-31T23:59:59Z"), Some(None));
        for no_time in [
            "",
            "2026-03-02",
            "2026-03-02T00:00:06",
            "2026-03-02 00:00:06Z",
            "2026-03-02T00:00:06Z ",
            "2026-13-02T00:00:06Z",
        ] {
            assert_eq!(nanos(no_time), None, "{no_time}");
        }
    }
}
