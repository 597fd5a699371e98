//! Errors of Elixir, and reports of Erlang.
//!
//! ```text
//! 00:00:06.123 [error] GenServer A terminating          =ERROR REPORT==== 2-Mar-2026::00:00:06 ===
//! ** (RuntimeError) oops                                ** Generic server a terminating
//!     (app 0.1.0) lib/a.ex:5: A.f/1                     ** Last message in was stop
//! Last message: :stop
//! State: %{}
//! ```
//!
//! Sources: Elixir, `Exception.format` and `Logger.Translator`; Erlang, `error_logger`.

use super::Bond::{Near, Own};
use super::Next::{Hold, Take};
use super::Stage::{Body, Frames};
use super::Test::{Any, Blank, By, Indented, Starts};
use super::{Behind, Row, Shape, Start};

pub(super) const TERMINATION: Shape = Shape {
    starts: &[Start(Starts("** ("), Frames, Near)],
    behind: &[Behind(Starts("** ("), Take(Frames))],
    rows: &[
        Row(&[Frames], Indented, Take(Frames)),
        Row(&[Frames], Starts("** ("), Take(Frames)),
        Row(&[Frames], By(is_circumstance), Take(Frames)),
        Row(&[Frames], Blank, Hold(Frames)),
    ],
    detail: None,
    crosses_gaps: false,
};

pub(super) const REPORT: Shape = Shape {
    starts: &[Start(By(is_report), Body, Own)],
    behind: &[],
    rows: &[
        Row(&[Body], By(is_report), super::Next::Refuse),
        Row(&[Body], Any, Take(Body)),
        Row(&[Body], Blank, Take(Body)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// Lines below an error that is the end of a process.
fn is_circumstance(line: &[u8]) -> bool {
    const NAMES: [&str; 13] = [
        "Last message",
        "State: ",
        "State:",
        "Args: ",
        "Function: ",
        "Client ",
        "Queue: ",
        "Postponed: ",
        "Start Call: ",
        "Initial Call: ",
        "Ancestors: ",
        "Message Queue Length: ",
        "Process Label: ",
    ];
    NAMES.iter().any(|name| line.starts_with(name.as_bytes()))
}

/// `=ERROR REPORT==== 2-Mar-2026::00:00:06 ===`
pub(in super::super) fn is_report(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"=") else {
        return false;
    };
    let name = rest
        .iter()
        .take_while(|b| b.is_ascii_uppercase() || **b == b' ')
        .count();
    rest[..name].ends_with(b" REPORT") && rest[name..].starts_with(b"====")
}
