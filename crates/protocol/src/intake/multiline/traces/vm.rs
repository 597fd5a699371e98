//! Traces whose calls are indented lines: Java, Kotlin, Scala, .NET, Node.js and others. And thread dumps of
//! Java.
//!
//! ```text
//! java.lang.IllegalStateException: why          Exception in thread "main" …
//!         at com.example.Store.save(Store.java:42)
//!         ... 12 more
//! Caused by: java.io.IOException: disk
//!
//! /app/index.js:3                               /app/index.js:3
//! throw new TypeError('x');                         f();
//! ^                                                 ^
//!
//! TypeError: x
//!     at Object.<anonymous> (/app/index.js:3:7) {
//!   code: 'E'
//! }
//!
//! Node.js v20.11.0
//! ```
//!
//! Sources: Java, `Throwable.printStackTrace` and the HotSpot Guide, "Thread dumps"; .NET,
//! `Exception.ToString`; Node.js, "Errors" and `util.inspect`; Bun, whose errors have the lines of code first.

use super::Bond::{Near, Own};
use super::Next::{Hold, Refuse, Take};
use super::Stage::{Body, Done, Frames, Gap, Loose, Marked, Named, Text};
use super::Test::{Any, Blank, By, Indented, Is, Starts};
use super::marks::{digits, has, head, is_class, is_exception, is_mark};
use super::{Behind, Row, Shape, Start};

/// Stages in which an error is known.
const KNOWN: &[super::Stage] = &[Named, Loose, Frames];

pub(super) const TRACE: Shape = Shape {
    starts: &[
        Start(Starts("Exception in thread \""), Named, Own),
        Start(Starts("Unhandled exception. "), Named, Own),
        Start(Starts("Unhandled Exception: "), Named, Own),
        Start(Starts("Process terminated. "), Named, Own),
        Start(Starts("Caused by: "), Named, Near),
        Start(By(is_exception), Named, Near),
        Start(By(is_class), Named, Near),
        Start(By(is_frame), Frames, Near),
        Start(By(is_place), Text, Own),
        Start(Starts("(node:"), Done, Near),
    ],
    behind: &[
        Behind(By(is_exception), Hold(Named)),
        Behind(By(is_class), Hold(Named)),
        Behind(By(is_frame), Take(Frames)),
        Behind(Starts("Caused by: "), Take(Named)),
        Behind(By(is_mark), Take(Gap)),
        Behind(By(is_rest), Take(Frames)),
    ],
    rows: &[
        Row(KNOWN, By(is_frame), Take(Frames)),
        Row(KNOWN, Starts("Caused by:"), Take(Named)),
        Row(KNOWN, Starts("Suppressed:"), Take(Named)),
        Row(KNOWN, Starts("Wrapped by:"), Take(Named)),
        Row(KNOWN, Starts("---> "), Take(Named)),
        Row(KNOWN, By(is_rest), Take(Frames)),
        Row(KNOWN, Starts("--- End of "), Take(Frames)),
        Row(KNOWN, Is("<---"), Take(Frames)),
        Row(KNOWN, Starts("Server stack trace:"), Take(Frames)),
        Row(KNOWN, Starts("Exception rethrown at "), Take(Frames)),
        // Errors of Rust's anyhow and eyre, and of PHP.
        Row(KNOWN, Starts("Stack backtrace:"), Take(Frames)),
        Row(KNOWN, Starts("Stack trace:"), Take(Frames)),
        Row(KNOWN, Starts("stack backtrace:"), Take(Frames)),
        Row(KNOWN, Is("Location:"), Take(Frames)),
        Row(KNOWN, Starts("Backtrace omitted. "), Take(Frames)),
        Row(KNOWN, Starts("Run with RUST_BACKTRACE="), Take(Frames)),
        Row(KNOWN, By(super::marks::is_numbered), Take(Frames)),
        Row(KNOWN, Starts("(Use `node --"), Take(Named)),
        Row(KNOWN, Starts("Node.js v"), Take(Done)),
        Row(KNOWN, Starts("Bun v"), Take(Done)),
        Row(KNOWN, Starts("Thrown at:"), Take(Frames)),
        Row(KNOWN, Starts("Emitted 'error' event "), Take(Frames)),
        Row(KNOWN, By(is_exception), Refuse),
        Row(&[Frames], Indented, Take(Frames)),
        Row(&[Frames], Blank, Hold(Frames)),
        Row(&[Named], Indented, Take(Named)),
        Row(&[Named], Blank, Hold(Named)),
        // A message goes on with any lines, if calls follow.
        Row(&[Named, Loose], Any, Hold(Loose)),
        Row(&[Loose], Blank, Hold(Loose)),
        // The place that Node.js shows before an error: the line, and a mark below it.
        Row(&[Loose, Text], By(is_place), Refuse),
        Row(&[Text], Any, Hold(Body)),
        Row(&[Body], By(is_mark), Take(Marked)),
        Row(&[Marked], Blank, Hold(Marked)),
        Row(&[Marked], Any, Take(Named)),
        // The same without the name of the file.
        Row(&[Gap], Blank, Hold(Gap)),
        Row(&[Gap], Indented, Take(Gap)),
        Row(&[Gap], By(is_exception), Take(Named)),
        Row(&[Gap], Starts("error: "), Take(Named)),
        Row(&[Done], Starts("(Use `node --"), Take(Done)),
        Row(&[Done], Indented, Take(Done)),
    ],
    detail: None,
    // Spring Boot puts an empty line before a trace.
    crosses_gaps: true,
};

/// The end of a program of .NET whose calls had no room. Those that repeat are between two lines.
pub(super) const OVERFLOW: Shape = Shape {
    starts: &[Start(Is("Stack overflow."), Body, Own)],
    behind: &[],
    rows: &[
        Row(&[Body], Starts("Repeat"), Take(Body)),
        Row(&[Body], Starts("--------"), Take(Body)),
        Row(&[Body], Indented, Take(Body)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// The place of an error of PowerShell, below its message.
pub(super) const POWERSHELL: Shape = Shape {
    starts: &[],
    behind: &[Behind(By(is_powershell), Take(Body))],
    rows: &[
        Row(&[Body], Starts("+ "), Take(Body)),
        Row(&[Body], Indented, Take(Body)),
    ],
    detail: None,
    crosses_gaps: false,
};

pub(super) const DUMP: Shape = Shape {
    starts: &[Start(Starts("Full thread dump "), Body, Near)],
    behind: &[Behind(Starts("Full thread dump "), Take(Body))],
    rows: &[
        Row(&[Body], By(is_thread), Take(Body)),
        Row(&[Body], Indented, Take(Body)),
        Row(&[Body], Blank, Hold(Body)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// `  at com.example.Store.save(Store.java:42)`, `at f (/app/a.js:3:7)`
fn is_frame(line: &[u8]) -> bool {
    let call = line.trim_ascii_start();
    if !call.starts_with(b"at ") {
        return false;
    }
    call.len() < line.len() || call.ends_with(b")") && has(call, "(") && has(call, ":")
}

/// `At C:\shop.ps1:3 char:5`
fn is_powershell(line: &[u8]) -> bool {
    line.starts_with(b"At ") && has(line, ":") && has(line, " char:")
}

/// `... 12 more`, `... 5 common frames omitted`
fn is_rest(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"... ") else {
        return false;
    };
    let behind = &rest[digits(rest)..];
    behind.len() < rest.len()
        && (behind.starts_with(b" more") || behind.starts_with(b" common frames"))
}

/// `/app/index.js:3`, `file:///app/a.mjs:12`, `node:internal/modules/cjs/loader:1147`
fn is_place(line: &[u8]) -> bool {
    let is_path = matches!(line.first(), Some(b'/' | b'.'))
        || line.starts_with(b"file:///")
        || line.starts_with(b"node:")
        || line.starts_with(b"evalmachine.")
        || line.starts_with(b"[eval]")
        || matches!(line, [b'A'..=b'Z', b':', b'\\', ..]);
    if !is_path || head(line).len() < line.len() {
        return false;
    }
    let number = line.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let path = line[..line.len() - number].strip_suffix(b":");
    // With a column behind the line it is a place in a message.
    path.is_some_and(|path| {
        let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        let last = path.rsplit(|byte| *byte == b':').next().unwrap_or_default();
        number > 0 && !path.contains(&b'\t') && !is_number(last)
    })
}

/// Lines of a thread dump that are not indented.
fn is_thread(line: &[u8]) -> bool {
    match line.first() {
        Some(b'"' | b'=' | b'}' | b'-') => true,
        Some(b'0') => line.starts_with(b"0x"),
        _ => [
            "Threads class SMR info:",
            "_java_thread_list=",
            "JNI global ref",
            "Found ",
            "Java stack information",
            "Heap",
            "Carrying virtual thread",
        ]
        .iter()
        .any(|start| line.starts_with(start.as_bytes())),
    }
}
