//! Traces of Python, with chains, groups, the places of pydantic's errors, and dumps of `faulthandler`.
//!
//! ```text
//! Traceback (most recent call last):            2 validation errors for User
//!   File "/app/a.py", line 3, in f              name
//!     g()                                         Field required [type=missing, …]
//! ValueError: bad                               items.0.price
//!                                                 Input should be … [type=…]
//! During handling of the above exception, another exception occurred:
//! ```
//!
//! Sources: Python, module `traceback` and PEP 654 (groups of exceptions), PEP 678 (notes), modules
//! `threading`, `logging` and `faulthandler`; twisted; pydantic, "Error messages"; loguru and rich, whose traces have other frames.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::Bond::{Near, Own};
use super::Next::{Count, Hold, Number, Refuse, Take};
use super::Stage::{Body, Chained, Frames, Gap, Listed, Loose, Named, Text};
use super::Test::{Any, Blank, By, Indented, Is, Starts};
use super::marks::{digits, has, head, is_indented, is_named};
use super::{Behind, Row, Shape, Start};

/// The most errors of a list whose places are looked for.
const ERRORS_MAX: u32 = 1000;

/// Stages in which the error is known.
const KNOWN: &[super::Stage] = &[Named, Listed, Gap];

pub(super) const TRACEBACK: Shape = Shape {
    starts: &[
        Start(By(is_traceback), Frames, Near),
        Start(Starts("  File \""), Frames, Near),
        Start(By(is_list), Listed, Near),
        Start(By(is_remote), Text, Near),
        Start(By(is_announced), Text, Own),
    ],
    behind: &[
        Behind(By(is_traceback_at_start), Take(Frames)),
        Behind(By(is_list), Hold(Listed)),
        Behind(By(is_remote), Hold(Text)),
        Behind(By(is_quote), Hold(Text)),
        Behind(By(is_task), Hold(Text)),
    ],
    rows: &[
        // Lines that asyncio writes between message and trace.
        Row(&[Text], By(is_traceback), Take(Frames)),
        Row(&[Text], By(is_task), Hold(Text)),
        Row(&[Text], By(is_quote), Hold(Text)),
        Row(&[Frames], Is(GROUP_END), Take(Named)),
        // Groups have traces within.
        Row(&[Frames], Indented, Take(Frames)),
        Row(&[Frames], By(is_traceback), Refuse),
        Row(&[Frames], Blank, Hold(Frames)),
        Row(&[Frames], By(is_frame), Take(Frames)),
        // A group may be what another error was raised for.
        Row(&[Frames], By(is_chain), Take(Chained)),
        // twisted shows where it caught an error.
        Row(&[Frames], Starts("--- <exception caught "), Take(Frames)),
        Row(&[Frames], By(is_list), Number(Listed)),
        Row(&[Frames], By(is_named), Take(Named)),
        // Ruby's traces begin with the same words.
        Row(&[Frames], By(super::ruby::is_place), Take(Named)),
        Row(KNOWN, By(is_chain), Take(Chained)),
        Row(KNOWN, By(is_detail), Take(Named)),
        Row(&[Named, Gap, Loose], Is("Call stack:"), Take(Frames)),
        Row(&[Named], By(is_quote), Take(Named)),
        Row(&[Named, Gap, Loose], By(is_remote), Refuse),
        Row(&[Named, Gap, Loose], By(is_announced), Refuse),
        Row(&[Loose], By(is_traceback), Refuse),
        Row(&[Named], Indented, Take(Named)),
        Row(&[Listed], Indented, Take(Listed)),
        Row(&[Listed, Named], By(is_traceback), Refuse),
        // The last line of a message of several lines.
        Row(&[Listed], By(is_end_of_listed), Take(Listed)),
        Row(&[Listed], Blank, Hold(Gap)),
        Row(&[Listed], Any, Count(Listed)),
        Row(&[Named], Blank, Hold(Gap)),
        Row(&[Named, Gap], Any, Hold(Loose)),
        Row(&[Gap], Blank, Hold(Gap)),
        Row(&[Loose], By(is_chain), Take(Chained)),
        Row(&[Loose], By(is_detail), Take(Named)),
        Row(&[Loose], Any, Hold(Loose)),
        Row(&[Loose], Blank, Hold(Loose)),
        Row(&[Chained], By(is_traceback), Take(Frames)),
        Row(&[Chained], Blank, Hold(Chained)),
    ],
    detail: Some(errors),
    crosses_gaps: false,
};

pub(super) const FAULT: Shape = Shape {
    starts: &[Start(Starts("Fatal Python error: "), Body, Own)],
    behind: &[Behind(By(is_thread), Take(Body))],
    rows: &[
        Row(&[Body], By(is_thread), Take(Body)),
        Row(&[Body], Indented, Take(Body)),
        Row(&[Body], Blank, Hold(Body)),
        Row(&[Body], Starts("Python runtime state:"), Take(Body)),
        Row(&[Body], Starts("Extension modules:"), Take(Body)),
        Row(&[Body], Is("<no Python frame>"), Take(Body)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// The last line of the outermost group.
const GROUP_END: &str = "    +------------------------------------";

const WORDS: &[u8] = b"Traceback (most recent call last)";

/// A line that ends with the words that traces begin with, perhaps behind a message.
fn is_traceback(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    match line.last() {
        Some(b':') => line[..line.len() - 1].ends_with(WORDS),
        Some(b')') => line == WORDS,
        // rich draws a box.
        Some(0x80..) => has(line, "Traceback (most recent call last)"),
        _ => false,
    }
}

/// The same without a message; in a group it is indented.
fn is_traceback_at_start(line: &[u8]) -> bool {
    let start = line.trim_ascii_start();
    let start = start.strip_prefix(b"+ Exception Group ").unwrap_or(start);
    start.starts_with(WORDS) && is_traceback(line) || is_traceback(line) && line[0] >= 0x80
}

/// Calls that are not indented.
fn is_frame(line: &[u8]) -> bool {
    // rich: `│ ╭ ╰ ┌ └ ─`
    line.starts_with(b"File \"")
        || line.starts_with(b"> File \"")
        || line.starts_with(b"\xe2\x94")
        || line.starts_with(b"\xe2\x95")
}

/// The sentences that join traces.
fn is_chain(line: &[u8]) -> bool {
    line.starts_with(b"During handling of the above exception, another exception occurred:")
        || line.starts_with(b"The above exception was the direct cause of the following exception:")
}

/// Lines that database drivers and SQLAlchemy put below an error.
fn is_detail(line: &[u8]) -> bool {
    const DETAILS: [&str; 9] = [
        "Arguments: ",
        "LINE ",
        "DETAIL:",
        "HINT:",
        "CONTEXT:",
        "QUERY:",
        "[SQL: ",
        "[parameters: ",
        "(Background on this error at: ",
    ];
    DETAILS
        .iter()
        .any(|start| line.starts_with(start.as_bytes()))
        && (!line.starts_with(b"LINE ") || line.get(5).is_some_and(u8::is_ascii_digit))
}

/// Lines that module `threading` and `logging` write before a trace. Java has the name of a thread in quotes.
fn is_announced(line: &[u8]) -> bool {
    let in_thread = line.strip_prefix(b"Exception in thread ");
    let is_thread = |name: &[u8]| !name.starts_with(b"\"") && name.ends_with(b":");
    in_thread.is_some_and(is_thread) || line == b"--- Logging error ---"
}

/// `why [type=value_error, input_value='x', input_type=str]`
fn is_end_of_listed(line: &[u8]) -> bool {
    line.ends_with(b"]") && has(line, " [type=")
}

/// `concurrent.futures.process._RemoteTraceback: `
fn is_remote(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(b"RemoteTraceback:")
}

/// The quotes around a trace of another process.
fn is_quote(line: &[u8]) -> bool {
    matches!(line, b"\"\"\"" | b"'''")
}

/// `future: <Task finished …>`
fn is_task(line: &[u8]) -> bool {
    [
        "future: <",
        "task: <",
        "handle: <",
        "transport: <",
        "protocol: <",
    ]
    .iter()
    .any(|start| line.starts_with(start.as_bytes()))
}

/// `2 validation errors for User`, behind anything.
fn is_list(line: &[u8]) -> bool {
    !is_indented(line) && errors(line) > 0
}

/// How many errors a line announces; 0 if it is none that does.
fn errors(line: &[u8]) -> u32 {
    static ERROR: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(" validation error"));
    let line = head(line);
    let Some(end) = ERROR.find(line) else {
        return 0;
    };
    let before = &line[..end];
    let length = before
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let number = &before[end - length..];
    debug_assert_eq!(digits(number), length);
    let number = std::str::from_utf8(number).ok();
    let number = number.and_then(|number| number.parse().ok());
    number.unwrap_or(0).min(ERRORS_MAX)
}

/// `Current thread 0x00007f… (most recent call first):`
fn is_thread(line: &[u8]) -> bool {
    (line.starts_with(b"Current thread 0x") || line.starts_with(b"Thread 0x"))
        && line.ends_with(b"(most recent call first):")
}
