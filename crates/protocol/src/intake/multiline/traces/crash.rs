//! Reports of crashes of native programs: sanitizers, valgrind, Swift, the Java VM, V8 and the C library.
//!
//! Sources: LLVM, "AddressSanitizer"; valgrind's manual, "Core: Commentary"; Swift, "Backtracing support";
//! Java, "Fatal Error Log"; Node.js, "Diagnostics".

use super::Bond::{Near, Own};
use super::Next::{Hold, Refuse, Take};
use super::Stage::{Body, Done, Text};
use super::Test::{Any, Blank, By, Indented, Is, Starts};
use super::marks::{digits, has};
use super::{Behind, Row, Shape, Start};

pub(super) const SANITIZER: Shape = Shape {
    starts: &[
        Start(By(is_error), Body, Own),
        Start(By(is_border), Text, Own),
        Start(By(is_valgrind), Done, Own),
    ],
    behind: &[Behind(By(is_error), Take(Body))],
    rows: &[
        Row(&[Text], By(is_error), Take(Body)),
        Row(&[Text], Starts("WARNING: ThreadSanitizer:"), Take(Body)),
        Row(&[Body], By(is_border), Take(Done)),
        Row(&[Body], By(is_abort), Take(Done)),
        Row(&[Body], Indented, Take(Body)),
        Row(&[Body], Blank, Hold(Body)),
        Row(&[Body], Any, Hold(Body)),
        // Valgrind has the number of the process before each line, and calls further in.
        Row(&[Done], By(is_valgrind_call), Take(Done)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// Lines of a comment: the first is an empty one.
pub(super) const COMMENTS: Shape = Shape {
    starts: &[Start(Is("#"), Body, Own)],
    behind: &[],
    rows: &[Row(&[Body], Starts("#"), Take(Body))],
    detail: None,
    crosses_gaps: false,
};

pub(super) const CRASH: Shape = Shape {
    starts: &[
        Start(By(is_crash), Body, Own),
        Start(Starts("<--- Last few GCs --->"), Body, Own),
        Start(Starts("FATAL ERROR: "), Body, Own),
        Start(Starts("terminate called "), Body, Own),
        Start(By(is_certificate), Text, Near),
    ],
    behind: &[
        Behind(Starts("<--- Last few GCs --->"), Take(Body)),
        Behind(Starts("<--- JS stacktrace --->"), Take(Body)),
        Behind(By(is_first_frame), Take(Body)),
        Behind(Starts("======= Backtrace: ="), Take(Body)),
        Behind(By(is_zig_frame), Take(Body)),
        Behind(By(is_certificate), Hold(Text)),
    ],
    rows: &[
        Row(&[Text], Starts("-----END "), Take(Done)),
        Row(&[Text], By(is_base64), Hold(Text)),
        Row(&[Body], By(is_crash), Refuse),
        Row(&[Body], Indented, Take(Body)),
        Row(&[Body], By(is_native_frame), Take(Body)),
        Row(&[Body], By(is_zig_frame), Take(Body)),
        Row(&[Body], By(is_section), Take(Body)),
        Row(&[Body], Blank, Hold(Body)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// `==123==ERROR: AddressSanitizer: heap-use-after-free …`
fn is_error(line: &[u8]) -> bool {
    process(line).is_some_and(|rest| rest.starts_with(b"ERROR: ") || rest.starts_with(b"WARNING: "))
}

fn is_abort(line: &[u8]) -> bool {
    process(line).is_some_and(|rest| rest.starts_with(b"ABORTING"))
}

/// `==123== Invalid read of size 4`
fn is_valgrind(line: &[u8]) -> bool {
    process(line).is_some_and(|rest| matches!(rest, [b' ', byte, ..] if *byte != b' '))
}

fn is_valgrind_call(line: &[u8]) -> bool {
    process(line).is_some_and(|rest| rest.starts_with(b"  "))
}

/// The text behind `==123==`.
fn process(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"==")?;
    let digits = digits(rest);
    rest[digits..].strip_prefix(b"==").filter(|_| digits > 0)
}

/// A long line of `=`.
fn is_border(line: &[u8]) -> bool {
    line.len() >= 40 && line.iter().all(|byte| *byte == b'=')
}

/// `*** Program crashed: Illegal instruction at 0x… ***`
fn is_crash(line: &[u8]) -> bool {
    let is_first = line.starts_with(b"***") || line.first().is_some_and(|b| *b >= 0x80);
    is_first && has(line, "Program crashed: ") || line.starts_with(b"*** Signal ")
}

/// `1    libswiftCore.so    0x00007f… swift_fatal + 68`, ` 1: 0xb7a9e0 node::Abort() [node]`, `./a.out(f+0x1)[0x40]`
pub(super) fn is_native_frame(line: &[u8]) -> bool {
    match line.first() {
        Some(b'0'..=b'9') => {
            let rest = line[digits(line)..].trim_ascii_start();
            let mut words = rest
                .split(|byte| *byte == b' ')
                .filter(|word| !word.is_empty());
            words.by_ref().take(2).any(|word| word.starts_with(b"0x"))
        }
        Some(b'/' | b'.' | b'[') => {
            let end = line.strip_suffix(b"]");
            let start = end.and_then(|end| memchr::memrchr(b'[', end).map(|at| &end[at + 1..]));
            start.is_some_and(|start| start.starts_with(b"0x"))
        }
        _ => false,
    }
}

/// The call that is the innermost one.
fn is_first_frame(line: &[u8]) -> bool {
    let is_first = matches!(
        line,
        [b'0', b' ', ..] | [b'1', b':', ..] | [b'/' | b'.' | b'[', ..]
    );
    is_first && is_native_frame(line)
}

/// `/app/a.zig:3:5: 0x1234 in main (a)`
fn is_zig_frame(line: &[u8]) -> bool {
    line.first() == Some(&b'/') && has(line, ": 0x") && has(line, " in ")
}

/// Headings within the reports.
fn is_section(line: &[u8]) -> bool {
    const STARTS: [&str; 18] = [
        "Thread ",
        "Registers",
        "Images ",
        "Backtrace took",
        "Crash dump",
        "Press space",
        "rax ",
        "rip ",
        "0x",
        "[",
        "<--- JS stacktrace --->",
        "FATAL ERROR: ",
        "----- Native stack trace -----",
        "----- JavaScript stack trace -----",
        "======= Memory map: =",
        "======= Backtrace: =",
        "Aborted",
        "Current stack trace:",
    ];
    STARTS
        .iter()
        .any(|start| line.starts_with(start.as_bytes()))
}

fn is_certificate(line: &[u8]) -> bool {
    line.starts_with(b"-----BEGIN ") && line.ends_with(b"-----")
}

fn is_base64(line: &[u8]) -> bool {
    let is_part = |b: &u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b':' | b' ' | b'-' | b',')
    };
    line.iter().all(is_part)
}
