//! Panics, fatal errors and dumps of goroutines of Go, and reports of its race detector.
//!
//! ```text
//! panic: runtime error: index out of range [3] with length 3
//!
//! goroutine 1 [running]:
//! main.main()
//!         /app/main.go:5 +0x25
//! exit status 2
//! ```
//!
//! Sources: Go, packages `runtime` and `runtime/debug`; "Data Race Detector", "Report Format"; Gin, `Recovery`.

use super::Bond::{Near, Own};
use super::Next::{Hold, Refuse, Take};
use super::Stage::{Body, Done, Frames, Loose, Named, Text};
use super::Test::{Any, Blank, By, Indented, Is, Starts};
use super::marks::{digits, has, head, is_indented};
use super::{Behind, Row, Shape, Start};

/// Stages in which goroutines may follow.
const KNOWN: &[super::Stage] = &[Named, Frames];

/// The line around a report of a race.
const RACE_BORDER: &str = "==================";

pub(super) const PANIC: Shape = Shape {
    starts: &[
        Start(Starts("panic: "), Named, Own),
        Start(Starts("fatal error: "), Named, Own),
        Start(Starts("runtime: "), Named, Own),
        Start(Starts("unexpected fault address "), Named, Own),
        Start(By(is_goroutine), Frames, Near),
        Start(By(is_signal), Named, Own),
    ],
    behind: &[
        Behind(By(is_goroutine), Take(Frames)),
        Behind(By(is_symbol), Hold(Loose)),
    ],
    rows: &[
        // Stacks of loggers: functions without arguments, each above its place.
        Row(&[Loose], By(is_source), Take(Frames)),
        Row(&[Frames], By(is_symbol), Hold(Loose)),
        Row(KNOWN, By(is_goroutine), Take(Frames)),
        Row(KNOWN, Starts("[signal "), Take(Named)),
        Row(KNOWN, Starts("[originating from "), Take(Frames)),
        Row(KNOWN, Starts("exit status "), Take(Done)),
        Row(KNOWN, Starts("created by "), Take(Frames)),
        Row(KNOWN, Starts("runtime stack:"), Take(Frames)),
        Row(KNOWN, Starts("PC=0x"), Take(Named)),
        Row(&[Named], Starts("panic: "), Take(Named)),
        Row(&[Named], Starts("fatal error: "), Take(Named)),
        Row(&[Frames], By(is_call), Take(Frames)),
        Row(&[Frames], Starts("..."), Take(Frames)),
        Row(&[Frames], By(is_register), Take(Frames)),
        Row(KNOWN, Indented, Take(Frames)),
        Row(&[Named], Blank, Hold(Named)),
        Row(&[Named], Any, Hold(Named)),
        Row(&[Frames], Blank, Hold(Frames)),
    ],
    detail: None,
    crosses_gaps: false,
};

pub(super) const RACE: Shape = Shape {
    starts: &[
        Start(Is(RACE_BORDER), Text, Own),
        Start(Is("WARNING: DATA RACE"), Body, Own),
    ],
    behind: &[],
    rows: &[
        Row(&[Text], Is("WARNING: DATA RACE"), Take(Body)),
        Row(&[Body], Is(RACE_BORDER), Take(Done)),
        Row(&[Body], Indented, Take(Body)),
        Row(&[Body], Blank, Hold(Body)),
        Row(&[Body], By(is_access), Take(Body)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// A panic that Gin has caught: the request, the error, and places with the address of their code.
pub(super) const RECOVERY: Shape = Shape {
    starts: &[Start(By(is_recovery), Text, Own)],
    behind: &[],
    rows: &[
        Row(&[Text, Frames], By(is_addressed), Take(Frames)),
        Row(&[Frames], Indented, Take(Frames)),
        Row(&[Frames], Blank, Hold(Frames)),
        Row(&[Text], By(is_recovery), Refuse),
        Row(&[Text], Any, Hold(Text)),
        Row(&[Text], Blank, Hold(Text)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// `2026/03/02 00:00:06 [Recovery] 2026/03/02 - 00:00:06 panic recovered:`
fn is_recovery(line: &[u8]) -> bool {
    has(line, "[Recovery] ") && has(line, " panic recovered:")
}

/// `/app/main.go:12 (0x6e2a3b)`
fn is_addressed(line: &[u8]) -> bool {
    line.first() == Some(&b'/') && line.ends_with(b")") && has(line, " (0x")
}

/// `goroutine 1 [running]:`, `goroutine 7 gp=0xc000 m=0 mp=0x… [idle]:`
fn is_goroutine(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"goroutine ") else {
        return false;
    };
    let digits = digits(rest);
    let behind = head(&rest[digits..]);
    digits > 0 && behind.starts_with(b" ") && memchr::memchr(b'[', behind).is_some()
}

/// `SIGQUIT: quit`, `SIGSEGV: segmentation violation`
fn is_signal(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"SIG") else {
        return false;
    };
    let letters = rest.iter().take_while(|b| b.is_ascii_uppercase()).count();
    letters > 1 && rest[letters..].starts_with(b": ")
}

/// `main.handle(0xc000012345, {0x1, 0x2})`, `panic({0x45e0a0?, 0x4c8e10?})`
fn is_call(line: &[u8]) -> bool {
    let Some(bracket) = memchr::memchr(b'(', head(line)) else {
        return false;
    };
    let name = &line[..bracket];
    let is_name = name.contains(&b'.') && name.iter().all(u8::is_ascii_graphic);
    line.ends_with(b")") && (is_name || name == b"panic")
}

/// `main.(*Shop).save`, `k8s.io/client-go/rest.New`
fn is_symbol(line: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"./*()[]_-".contains(byte);
    line.contains(&b'.') && line[0].is_ascii_alphabetic() && line.iter().all(is_part)
}

/// `  /app/main.go:12`, behind a tab; `asm_amd64.s` is where all goroutines begin
fn is_source(line: &[u8]) -> bool {
    is_indented(line) && (has(line, ".go:") || has(line, ".s:"))
}

/// `rax    0x0`, `rflags 0x10202`
fn is_register(line: &[u8]) -> bool {
    let letters = line
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric())
        .count();
    let rest = line[letters..].trim_ascii_start();
    (2..=8).contains(&letters) && rest.len() < line.len() - letters && rest.starts_with(b"0x")
}

/// `Previous write at 0x00c000… by main goroutine:`
fn is_access(line: &[u8]) -> bool {
    line.ends_with(b":")
        && [
            "Read at ",
            "Write at ",
            "Previous ",
            "Goroutine ",
            "Atomic ",
        ]
        .iter()
        .any(|start| line.starts_with(start.as_bytes()))
}
