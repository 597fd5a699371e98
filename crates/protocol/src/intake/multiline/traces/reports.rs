//! Reports whose lines begin at the margin: InnoDB's transactions, R, PowerShell 7, Haskell and Gradle.
//!
//! ```text
//! TRANSACTION 4212, ACTIVE 12 sec inserting     Error in save(x) : full     FAILURE: Build failed with an exception.
//! mysql tables in use 1, locked 1               Calls: main -> save
//! MySQL thread id 9, … updating                 Execution halted            * What went wrong:
//! update shop set n = 1                                                     …
//! ```
//!
//! Sources: MySQL Reference Manual, "InnoDB Standard Monitor"; R, `stop` and rlang, `format_error`; PowerShell,
//! ErrorView ConciseView; GHC, `Control.Exception.Context`; Gradle, "Failures".

use super::Bond::Own;
use super::Next::{Hold, Refuse, Take};
use super::Stage::{Body, Done, Frames, Gap, Listed, Named, Text};
use super::Test::{Any, Blank, By, Indented, Is, Starts};
use super::marks::{digits, has};
use super::{Behind, Row, Shape, Start};

/// Transactions and locks behind the line that announces them. Behind the client comes its statement.
pub(super) const INNODB: Shape = Shape {
    starts: &[],
    behind: &[
        Behind(By(is_transaction), Take(Body)),
        Behind(By(is_lock), Take(Body)),
    ],
    rows: &[
        Row(&[Body], Starts("MySQL thread id "), Take(Named)),
        Row(&[Body], Starts("MariaDB thread id "), Take(Named)),
        Row(&[Body, Named], Starts("*** "), Take(Body)),
        Row(&[Body, Named], By(is_lock), Take(Body)),
        Row(&[Body], By(is_transaction), Take(Body)),
        Row(&[Body], Starts("mysql tables in use "), Take(Body)),
        Row(&[Body], Starts("LOCK WAIT "), Take(Body)),
        Row(&[Body], By(is_lock_count), Take(Body)),
        Row(&[Body], Starts("Record lock, heap no "), Take(Body)),
        Row(&[Body, Named], Indented, Take(Body)),
        Row(&[Body, Named], Blank, Hold(Body)),
        Row(&[Named], Any, Take(Named)),
    ],
    detail: None,
    crosses_gaps: false,
};

pub(super) const R: Shape = Shape {
    starts: &[
        Start(By(is_error_of_r), Named, Own),
        Start(Is("Warning message:"), Text, Own),
        Start(Is("Warning messages:"), Listed, Own),
    ],
    behind: &[],
    rows: &[
        Row(&[Text], Any, Take(Named)),
        Row(&[Listed], By(is_listed_warning), Take(Listed)),
        Row(&[Named], By(is_error_of_r), Refuse),
        Row(&[Named, Frames], Starts("Calls: "), Take(Frames)),
        Row(&[Named, Frames], Starts("In addition: "), Take(Text)),
        Row(&[Named, Frames], Is("Backtrace:"), Take(Frames)),
        Row(&[Named, Frames], Starts("Caused by error"), Take(Named)),
        Row(&[Named, Frames], Starts("! "), Take(Named)),
        Row(&[Named, Frames], By(is_bullet), Take(Named)),
        Row(&[Named, Frames], Is("---"), Take(Frames)),
        Row(&[Named, Frames], Is("Execution halted"), Take(Done)),
        Row(&[Named, Frames, Listed], Indented, Take(Frames)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// The place of an error, below the name of the command and its script.
pub(super) const CONCISE: Shape = Shape {
    starts: &[],
    behind: &[Behind(Is("Line |"), Take(Body))],
    rows: &[Row(&[Body], Indented, Take(Body))],
    detail: None,
    crosses_gaps: false,
};

/// An exception of GHC 9.10 and later: its message stands between empty lines.
pub(super) const HASKELL: Shape = Shape {
    starts: &[Start(By(is_uncaught), Named, Own)],
    behind: &[],
    rows: &[
        Row(
            &[Named, Frames],
            Is("HasCallStack backtrace:"),
            Take(Frames),
        ),
        Row(&[Frames], Indented, Take(Frames)),
        Row(&[Named], Any, Hold(Named)),
        Row(&[Named, Frames], Blank, Hold(Named)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// A failure of Gradle, up to its last line.
pub(super) const GRADLE: Shape = Shape {
    starts: &[Start(Starts("FAILURE: Build "), Gap, Own)],
    behind: &[],
    rows: &[
        Row(&[Gap, Body], Starts("BUILD FAILED"), Take(Done)),
        Row(&[Gap, Body], Starts("* "), Take(Body)),
        // Below a heading; behind an empty line only if another heading or the end follows.
        Row(&[Body], Any, Take(Body)),
        Row(&[Gap, Body], Blank, Hold(Gap)),
        Row(&[Gap], Any, Hold(Gap)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// `TRANSACTION 4212, ACTIVE 12 sec inserting`
fn is_transaction(line: &[u8]) -> bool {
    let rest = line.strip_prefix(b"---").unwrap_or(line);
    rest.strip_prefix(b"TRANSACTION ").is_some_and(|rest| {
        let behind = &rest[digits(rest)..];
        behind.len() < rest.len()
            && (behind.starts_with(b", ACTIVE") || behind.starts_with(b", not started"))
    })
}

/// `RECORD LOCKS space id 2 page no 4 …`, `TABLE LOCK table …`
fn is_lock(line: &[u8]) -> bool {
    line.starts_with(b"RECORD LOCKS space id ") || line.starts_with(b"TABLE LOCK table ")
}

/// `3 lock struct(s), heap size 1128, 2 row lock(s)`
fn is_lock_count(line: &[u8]) -> bool {
    digits(line) > 0 && line[digits(line)..].starts_with(b" lock struct(s)")
}

/// `Error in save(x) : full`, ``Error in `save()`:``, `Error: full`, whose lines below show that R wrote it.
fn is_error_of_r(line: &[u8]) -> bool {
    line.strip_prefix(b"Error in ")
        .is_some_and(|call| has(call, "(") && (has(call, ") :") || call.ends_with(b")`:")))
}

/// `1: In f(x) : NAs introduced by coercion`
fn is_listed_warning(line: &[u8]) -> bool {
    let number = digits(line);
    number > 0 && line[number..].starts_with(b": ")
}

/// `ℹ In argument: …`, `✖ …`, `• …`
fn is_bullet(line: &[u8]) -> bool {
    ["ℹ ", "✖ ", "• "]
        .iter()
        .any(|bullet| line.starts_with(bullet.as_bytes()))
}

/// `shop: Uncaught exception ghc-internal:GHC.Internal.Exception.ErrorCall:`
fn is_uncaught(line: &[u8]) -> bool {
    has(line, ": Uncaught exception ") && line.ends_with(b":")
}
