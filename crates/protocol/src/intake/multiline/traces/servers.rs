//! Records of several lines of MySQL's log of slow statements, of `java.util.logging`, and of MongoDB's signals.
//!
//! ```text
//! # Time: 2026-03-02T00:00:06.1Z                Mar 2, 2026 12:20:01 AM org.example.Shop start
//! # User@Host: root[root] @ localhost []        INFO: started
//! # Query_time: 2.0  Lock_time: 0.0
//! select 1;
//! ```
//!
//! Sources: MySQL Reference Manual, "The Slow Query Log"; Java, `SimpleFormatter`;
//! MongoDB, `mongo/util/stacktrace`.

use super::Bond::Own;
use super::Next::{Leave, Refuse, Take};
use super::Stage::{Body, Done, Text};
use super::Test::{Any, Blank, By, Indented, Starts};
use super::{Behind, Row, Shape, Start};

pub(super) const SLOW_LOG: Shape = Shape {
    starts: &[
        Start(Starts("# Time: "), Text, Own),
        Start(Starts("# User@Host: "), Body, Own),
        Start(By(is_server), Done, Own),
    ],
    behind: &[],
    rows: &[
        Row(&[Text], Starts("# User@Host: "), Take(Body)),
        Row(&[Body, Text], Starts("# Time: "), Refuse),
        Row(&[Body], Starts("# User@Host: "), Refuse),
        Row(&[Body, Text], By(is_server), Refuse),
        Row(&[Body, Text], Any, Take(Body)),
        Row(&[Body, Text], Blank, Take(Body)),
        Row(&[Done], Starts("Tcp port: "), Take(Done)),
        Row(&[Done], Starts("Time "), Take(Done)),
    ],
    detail: None,
    crosses_gaps: false,
};

pub(super) const JAVA_LOGGING: Shape = Shape {
    starts: &[Start(By(is_head), Text, Own)],
    behind: &[],
    rows: &[
        // A trace may follow.
        Row(&[Text], By(is_level), Leave),
        Row(&[Text], Indented, Take(Text)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// The calls that MongoDB up to version 4.2 writes behind the message about a signal.
pub(super) const MONGODB: Shape = Shape {
    starts: &[],
    behind: &[Behind(Starts("----- BEGIN BACKTRACE -----"), Take(Body))],
    rows: &[
        Row(&[Body], Starts("-----  END BACKTRACE  -----"), Take(Done)),
        Row(&[Body], Starts("{\"backtrace\":"), Take(Body)),
        Row(&[Body], Indented, Take(Body)),
        Row(&[Body], Starts("mongo"), Take(Body)),
        Row(&[Body], Starts("lib"), Take(Body)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// `/usr/sbin/mysqld, Version: 8.0.36 (…). started with:`
fn is_server(line: &[u8]) -> bool {
    line.ends_with(b"started with:")
}

/// A line that ends with a class and a method, and begins like a date. Its time is behind no level.
fn is_head(line: &[u8]) -> bool {
    const LINE_BYTES_MAX: usize = 256;
    if line.len() > LINE_BYTES_MAX
        || !line
            .last()
            .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'>')
    {
        return false;
    }
    let mut words = line.rsplit(|byte| *byte == b' ');
    let (Some(method), Some(class), Some(before)) = (words.next(), words.next(), words.next())
    else {
        return false;
    };
    let is_method = !method.is_empty()
        && !method.iter().all(u8::is_ascii_digit)
        && method
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'<' | b'>' | b'$' | b'.'));
    // `12:20:01 AM`, or the seconds of a day of 24 hours. Some versions have another space in it.
    let is_half = before.ends_with(b"AM") || before.ends_with(b"PM");
    let is_time =
        is_half || before.first().is_some_and(u8::is_ascii_digit) && before.contains(&b':');
    let is_class = (is_half || class.contains(&b'.'))
        && class.first().is_some_and(u8::is_ascii_alphabetic)
        && class
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.'));
    is_method && is_class && is_time
}

/// `INFO: started`, `INFORMATION: gestartet`: the name of a level in any language.
fn is_level(line: &[u8]) -> bool {
    const NAME_BYTES_MAX: usize = 32;
    let head = &line[..line.len().min(NAME_BYTES_MAX)];
    let Some(colon) = memchr::memchr(b':', head) else {
        return false;
    };
    let name = &line[..colon];
    !name.is_empty()
        && name.iter().all(|b| b.is_ascii_alphabetic() || *b >= 0x80)
        && !name[0].is_ascii_lowercase()
        && matches!(line.get(colon + 1), None | Some(b' '))
}
