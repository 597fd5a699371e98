//! journald's stream protocol: what a service's standard output is connected to.
//!
//! Seven lines stand first: the identifier, the unit, the priority (facility and severity), whether
//! lines begin with a level, and three flags of forwarding that mean nothing here. Then lines follow
//! as the service prints them. Source: `src/journal/journald-stream.c` as documented by
//! `sd_journal_stream_fd(3)`.
//!
//! Invariants: the header is bounded; lines are cut only at the limit, and say so; how the bytes are cut
//! into reads does not matter.

use memchr::memchr;

use super::lines::{Line, LineSplitter};

/// Lines of the header.
const HEADER_LINES: usize = 7;

/// The longest line of the header, as journald has it.
const HEADER_LINE_BYTES_MAX: usize = 255;

/// The highest priority: facility 127 and severity 7, as journald has it.
const PRIORITY_MAX: u32 = 1023;

/// What a stream says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamHeader {
    /// What the service calls itself; may be empty.
    pub identifier: String,
    /// The unit that its manager names; may be empty. To be believed only of the manager.
    pub unit: String,
    /// Facility times eight, and severity.
    pub priority: u32,
    /// Whether a line may begin with `<0>` to `<7>`, its severity.
    pub has_levels: bool,
}

/// The bytes are no stream of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAStream;

/// Splits a stream.
pub struct StdoutSplitter {
    header: Option<StreamHeader>,
    /// Lines of the header so far, and the start of the next.
    begun: Vec<String>,
    part: Vec<u8>,
    lines: LineSplitter,
}

impl StdoutSplitter {
    /// A stream of which nothing has come; longer lines than this are cut.
    pub fn new(line_bytes_max: usize) -> StdoutSplitter {
        StdoutSplitter {
            header: None,
            begun: Vec::new(),
            part: Vec::new(),
            lines: LineSplitter::new(line_bytes_max),
        }
    }

    /// What the stream says of itself, once it has.
    pub fn header(&self) -> Option<&StreamHeader> {
        self.header.as_ref()
    }

    /// Takes bytes; gives the lines that are complete.
    ///
    /// # Errors
    /// When they do not begin as a stream does; nothing of it can be taken then.
    pub fn feed(&mut self, bytes: &[u8], take: impl FnMut(Line<'_>)) -> Result<(), NotAStream> {
        let mut rest = bytes;
        while self.header.is_none() {
            let Some(end) = memchr(b'\n', rest) else {
                self.part.extend_from_slice(rest);
                return match self.part.len() > HEADER_LINE_BYTES_MAX || self.part.contains(&0) {
                    true => Err(NotAStream),
                    false => Ok(()),
                };
            };
            self.part.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            self.header_line()?;
        }
        self.lines.feed(rest, take);
        Ok(())
    }

    fn header_line(&mut self) -> Result<(), NotAStream> {
        let line = std::mem::take(&mut self.part);
        if line.len() > HEADER_LINE_BYTES_MAX || line.contains(&0) {
            return Err(NotAStream);
        }
        self.begun
            .push(String::from_utf8(line).map_err(|_| NotAStream)?);
        if self.begun.len() < HEADER_LINES {
            return Ok(());
        }
        let mut lines = std::mem::take(&mut self.begun).into_iter();
        let (identifier, unit) = (lines.next(), lines.next());
        let priority = lines.next().and_then(|text| text.parse().ok());
        let flags: Option<Vec<bool>> = lines.map(|text| truth(&text)).collect();
        self.header = Some(StreamHeader {
            identifier: identifier.unwrap_or_default(),
            unit: unit.unwrap_or_default(),
            priority: priority.filter(|p| *p <= PRIORITY_MAX).ok_or(NotAStream)?,
            has_levels: flags.ok_or(NotAStream)?.first() == Some(&true),
        });
        Ok(())
    }

    /// Takes what the stream ended with as the last line.
    pub fn finish(&mut self, take: impl FnMut(Line<'_>)) {
        if self.header.is_some() {
            self.lines.finish(take);
        }
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "0" | "no" | "false" => Some(false),
        "1" | "yes" | "true" => Some(true),
        _ => None,
    }
}

/// The severity that a line begins with, if it may and does; and the line without it.
pub fn level<'a>(line: &'a [u8], header: &StreamHeader) -> (u32, &'a [u8]) {
    match line {
        [b'<', level @ b'0'..=b'7', b'>', rest @ ..] if header.has_levels => {
            (u32::from(level - b'0'), rest)
        }
        _ => (header.priority & 7, line),
    }
}

/// Reads any bytes as a stream. A fuzz target.
pub fn fuzz_stdout(bytes: &[u8]) {
    const LINE_BYTES_MAX: usize = 64;
    let mut splitter = StdoutSplitter::new(LINE_BYTES_MAX);
    let mut taken = 0;
    for chunk in bytes.chunks(7) {
        let mut take = |line: Line<'_>| {
            assert!(line.bytes.len() <= LINE_BYTES_MAX);
            taken += line.bytes.len() + line.truncated_bytes;
        };
        if splitter.feed(chunk, &mut take).is_err() {
            return;
        }
    }
    splitter.finish(|line| taken += line.bytes.len());
    assert!(taken <= bytes.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]]) -> Result<(StreamHeader, Vec<String>), NotAStream> {
        let mut splitter = StdoutSplitter::new(10);
        let mut lines = Vec::new();
        let mut keep = |line: Line<'_>| {
            let text = String::from_utf8_lossy(line.bytes).into_owned();
            lines.push(format!("{text}+{}", line.truncated_bytes));
        };
        for chunk in chunks {
            splitter.feed(chunk, &mut keep)?;
        }
        splitter.finish(&mut keep);
        Ok((splitter.header().cloned().unwrap_or_default(), lines))
    }

    #[test]
    fn lines_follow_a_header() {
        let stream = b"app\na.service\n30\n1\n0\n0\n0\n<3>bad\n\nlong line 01234\nend";
        let header = StreamHeader {
            identifier: "app".to_owned(),
            unit: "a.service".to_owned(),
            priority: 30,
            has_levels: true,
        };
        let lines = ["<3>bad+0", "+0", "long line +5", "end+0"].map(str::to_owned);
        let expected = Ok((header.clone(), lines.to_vec()));
        assert_eq!(split(&[stream]), expected);
        for at in 0..stream.len() {
            let (before, after) = stream.split_at(at);
            assert_eq!(split(&[before, after]), expected, "cut at {at}");
        }
        assert_eq!(level(b"<3>bad", &header), (3, b"bad".as_slice()));
        assert_eq!(level(b"<8>bad", &header), (6, b"<8>bad".as_slice()));
    }

    #[test]
    fn other_bytes_are_no_stream() {
        let long = [b'x'; HEADER_LINE_BYTES_MAX + 1];
        let table: [&[u8]; 6] = [
            b"a\nb\nno number\n0\n0\n0\n0\n",
            b"a\nb\n1024\n0\n0\n0\n0\n",
            b"a\nb\n6\nmaybe\n0\n0\n0\n",
            b"a\0\n",
            b"\xff\n\n6\n0\n0\n0\n0\n",
            &long,
        ];
        for bytes in table {
            assert_eq!(split(&[bytes]), Err(NotAStream), "{}", bytes.escape_ascii());
        }
        let seen = "\n\n6\n1\n0\n0\n0\nhi\n";
        assert_eq!(
            split(&[seen.as_bytes()]).map(|(_, lines)| lines),
            Ok(vec!["hi+0".to_owned()])
        );
    }
}
