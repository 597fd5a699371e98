//! Reports of runtimes between fixed lines: Flutter, Nim and Clojure.
//!
//! ```text
//! ══╡ EXCEPTION CAUGHT BY WIDGETS LIBRARY ╞═══    Traceback (most recent call last)    Execution error at a.b/f (b.clj:7).
//! The following assertion was thrown:             /app/a.nim(7) save                   full
//! …                                               Error: unhandled exception: full
//! ═══════════════════════════════════════════
//! ```
//!
//! Sources: Flutter, `FlutterError.dumpErrorToConsole`; Nim, `system/excpt`; Clojure, `clojure.main/err->msg`.

use super::Bond::Own;
use super::Next::{Hold, Refuse, Take};
use super::Stage::{Body, Done, Frames, Text};
use super::Test::{Any, Blank, By, Is, Starts};
use super::marks::{digits, head};
use super::{Behind, Row, Shape, Start};

/// The first line of Nim; that of Python has a colon.
const NIM_HEAD: &str = "Traceback (most recent call last)";

pub(super) const FLUTTER: Shape = Shape {
    starts: &[Start(Starts("══╡ EXCEPTION CAUGHT BY "), Body, Own)],
    behind: &[],
    rows: &[
        Row(&[Body], By(is_rule), Take(Done)),
        Row(&[Body], Any, Hold(Body)),
        Row(&[Body], Blank, Hold(Body)),
    ],
    detail: None,
    crosses_gaps: false,
};

pub(super) const NIM: Shape = Shape {
    starts: &[Start(Is(NIM_HEAD), Frames, Own)],
    behind: &[Behind(Is(NIM_HEAD), Refuse)],
    rows: &[
        Row(&[Frames], By(is_call), Take(Frames)),
        Row(&[Frames], Starts("[["), Take(Frames)),
        Row(
            &[Frames],
            Starts("Error: unhandled exception: "),
            Take(Done),
        ),
    ],
    detail: None,
    crosses_gaps: false,
};

pub(super) const CLOJURE: Shape = Shape {
    starts: &[Start(By(is_execution), Text, Own)],
    behind: &[],
    rows: &[Row(&[Text], Any, Take(Done))],
    detail: None,
    crosses_gaps: false,
};

/// A line of `═` alone.
fn is_rule(line: &[u8]) -> bool {
    let mut characters = line.chunks(3);
    line.len() > 60 && characters.all(|character| character == "═".as_bytes())
}

/// `/app/a.nim(7) save`
fn is_call(line: &[u8]) -> bool {
    let line = head(line);
    memchr::memmem::find(line, b".nim(").is_some_and(|at| {
        let rest = &line[at + 5..];
        digits(rest) > 0 && rest[digits(rest)..].starts_with(b")")
    })
}

/// `Execution error (ExceptionInfo) at shop.core/pay (core.clj:7).`
fn is_execution(line: &[u8]) -> bool {
    let kinds = [
        "Execution error ",
        "Syntax error ",
        "Error printing return value ",
    ];
    let is_kind = kinds.iter().any(|kind| line.starts_with(kind.as_bytes()));
    is_kind && line.ends_with(b").")
}
