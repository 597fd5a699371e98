//! Traces whose calls are numbered: PHP with Laravel and Symfony, Dart, and debuggers.
//!
//! ```text
//! PHP Fatal error:  Uncaught Exception: x in /app/a.php:3     [2026-03-02 00:00:06] production.ERROR: x {"exception":"…
//! Stack trace:                                                [stacktrace]
//! #0 /app/a.php(7): f()                                       #0 /app/a.php(7): f()
//! #1 {main}                                                   #1 {main}
//!                                                             "}
//! Next RuntimeException: y in /app/a.php:9
//! ```
//!
//! Sources: PHP, `Throwable::__toString`; Xdebug, "Stack traces"; Monolog, `LineFormatter`; Dart, `StackTrace`; GDB, "Backtraces".

use super::Bond::{Near, Own};
use super::Next::{Hold, Take};
use super::Stage::{Frames, Loose, Named, Text};
use super::Test::{Any, Blank, By, Indented, Is, Starts};
use super::marks::{digits, has, is_numbered};
use super::{Behind, Row, Shape, Start};

/// Stages in which calls may follow.
const KNOWN: &[super::Stage] = &[Named, Loose, Frames];

pub(super) const TRACE: Shape = Shape {
    starts: &[
        Start(By(is_uncaught), Named, Own),
        Start(By(is_monolog), Named, Near),
        Start(Is("Unhandled exception:"), Text, Own),
        Start(By(is_thread), Frames, Near),
        Start(Starts("Program terminated with signal "), Named, Own),
        Start(Starts("Program received signal "), Named, Own),
        Start(By(is_numbered), Frames, Near),
    ],
    behind: &[
        Behind(By(is_numbered), Take(Frames)),
        Behind(Is("Stack trace:"), Take(Frames)),
        Behind(Is("Stack Trace:"), Take(Frames)),
        Behind(Is("[stacktrace]"), Take(Frames)),
        Behind(Is("PHP Stack trace:"), Take(Frames)),
    ],
    rows: &[
        // The error of a Dart program.
        Row(&[Text], Any, Take(Named)),
        Row(KNOWN, By(is_numbered), Take(Frames)),
        Row(KNOWN, Is("Stack trace:"), Take(Frames)),
        Row(KNOWN, Is("Stack Trace:"), Take(Frames)),
        Row(KNOWN, Is("[stacktrace]"), Take(Frames)),
        Row(KNOWN, Is("PHP Stack trace:"), Take(Frames)),
        Row(&[Frames], By(is_xdebug), Take(Frames)),
        Row(KNOWN, Starts("[previous exception]"), Take(Named)),
        Row(&[Frames], Starts("Next "), Take(Named)),
        Row(&[Frames], Starts("\""), Take(Frames)),
        Row(&[Frames], Starts("{main}"), Take(Frames)),
        Row(&[Frames], Starts("- "), Take(Frames)),
        Row(&[Frames], Starts("<asynchronous suspension>"), Take(Frames)),
        Row(&[Frames], By(is_thread), Take(Frames)),
        Row(&[Frames], Starts("No locals."), Take(Frames)),
        Row(&[Frames], Starts("No symbol table "), Take(Frames)),
        Row(&[Frames], Starts("(More stack frames follow"), Take(Frames)),
        Row(&[Frames], Starts("(elided "), Take(Frames)),
        Row(&[Named], Indented, Take(Named)),
        Row(&[Frames], Indented, Take(Frames)),
        Row(&[Frames], Blank, Hold(Frames)),
        // A message of several lines, if calls follow.
        Row(&[Named, Loose], Any, Hold(Loose)),
        Row(&[Named, Loose], Blank, Hold(Loose)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// `PHP Fatal error:  Uncaught Exception: x in /app/a.php:3`, behind anything.
fn is_uncaught(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'P' | b'F' | b'['))
        && has(line, "error:")
        && has(line, " Uncaught ")
}

/// A line of Laravel's or another program's that has an exception as its context.
fn is_monolog(line: &[u8]) -> bool {
    line.starts_with(b"[")
        && memchr::memmem::find(line, b"\"exception\":\"[object] (").is_some()
        && !line.trim_ascii_end().ends_with(b"}")
}

/// `PHP   1. {main}() /app/a.php:0`, as Xdebug writes it
fn is_xdebug(line: &[u8]) -> bool {
    let call = line.strip_prefix(b"PHP ").map(<[u8]>::trim_ascii_start);
    call.is_some_and(|call| {
        let digits = digits(call);
        digits > 0 && call[digits..].starts_with(b". ")
    })
}

/// `Thread 1 (Thread 0x7f… (LWP 12)):`
fn is_thread(line: &[u8]) -> bool {
    line.strip_prefix(b"Thread ").is_some_and(|rest| {
        rest.first().is_some_and(u8::is_ascii_digit) && rest.ends_with(b":") && has(rest, "(")
    })
}
