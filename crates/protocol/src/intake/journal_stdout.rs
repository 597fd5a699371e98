//! journald's stream protocol: what a service's standard output is connected to.
//!
//! Seven lines stand first: the identifier, the unit, the priority (facility and severity), whether
//! lines begin with a level, and three flags of forwarding that mean nothing here. Then lines follow
//! as the service prints them. Source: `src/journal/journald-stream.c` as documented by
//! `sd_journal_stream_fd(3)`.
//!
//! Invariants: the header is bounded; it is read from what has come without taking any of it, so that
//! nothing of a header is held that has not come whole.

use memchr::memchr;

/// Lines of the header.
const HEADER_LINES: usize = 7;

/// The longest line of the header, as journald has it.
const HEADER_LINE_BYTES_MAX: usize = 255;

/// The longest header, with its line ends.
pub const HEADER_BYTES_MAX: usize = HEADER_LINES * (HEADER_LINE_BYTES_MAX + 1);

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

impl StreamHeader {
    /// Reads the header that a stream begins with, and tells how many bytes it takes; `None` if it has
    /// not come whole.
    ///
    /// # Errors
    /// When the bytes do not begin as a stream does; nothing of it can be taken then.
    pub fn read(bytes: &[u8]) -> Result<Option<(StreamHeader, usize)>, NotAStream> {
        let mut lines: [&str; HEADER_LINES] = [""; HEADER_LINES];
        let mut rest = bytes;
        for line in &mut lines {
            let end = memchr(b'\n', rest);
            let so_far = &rest[..end.unwrap_or(rest.len())];
            if so_far.len() > HEADER_LINE_BYTES_MAX || so_far.contains(&0) {
                return Err(NotAStream);
            }
            let Some(end) = end else {
                return Ok(None);
            };
            *line = std::str::from_utf8(so_far).map_err(|_| NotAStream)?;
            rest = &rest[end + 1..];
        }
        let [identifier, unit, priority, flags @ ..] = lines;
        let priority = priority.parse().ok();
        let flags: Option<Vec<bool>> = flags.into_iter().map(truth).collect();
        let header = StreamHeader {
            identifier: identifier.to_owned(),
            unit: unit.to_owned(),
            priority: priority.filter(|p| *p <= PRIORITY_MAX).ok_or(NotAStream)?,
            has_levels: flags.ok_or(NotAStream)?.first() == Some(&true),
        };
        Ok(Some((header, bytes.len() - rest.len())))
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

/// Reads any bytes as the beginning of a stream. A fuzz target.
pub fn fuzz_stdout(bytes: &[u8]) {
    let whole = StreamHeader::read(bytes);
    let Ok(Some((header, taken))) = &whole else {
        return;
    };
    assert!(*taken <= HEADER_BYTES_MAX);
    // However little has come, it is the same header or none yet.
    assert_eq!(
        StreamHeader::read(&bytes[..*taken]),
        Ok(Some((header.clone(), *taken)))
    );
    assert_eq!(StreamHeader::read(&bytes[..taken - 1]), Ok(None));
    level(&bytes[*taken..], header);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_once_it_has_come() {
        let stream = b"app\na.service\n30\n1\n0\n0\n0\n<3>bad\nend";
        let header = StreamHeader {
            identifier: "app".to_owned(),
            unit: "a.service".to_owned(),
            priority: 30,
            has_levels: true,
        };
        let length = stream.len() - b"<3>bad\nend".len();
        for come in 0..=stream.len() {
            let expected = (come >= length).then(|| (header.clone(), length));
            assert_eq!(StreamHeader::read(&stream[..come]), Ok(expected), "{come}");
        }
        assert_eq!(level(b"<3>bad", &header), (3, b"bad".as_slice()));
        assert_eq!(level(b"<8>bad", &header), (6, b"<8>bad".as_slice()));
        let seen = b"\n\n6\n1\n0\n0\n0\nhi\n";
        let found = StreamHeader::read(seen).map(|found| found.map(|(_, length)| length));
        assert_eq!(found, Ok(Some(seen.len() - 3)));
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
            let read = StreamHeader::read(bytes);
            assert_eq!(read, Err(NotAStream), "{}", bytes.escape_ascii());
        }
    }
}
