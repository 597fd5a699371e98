//! Panics of Rust.
//!
//! ```text
//! thread 'main' panicked at src/main.rs:2:5:
//! index out of bounds: the len is 3
//! stack backtrace:
//!    0: rust_begin_unwind
//! note: run with `RUST_BACKTRACE=full` for more
//! ```
//!
//! Sources: Rust, modules `std::panic` and `std::backtrace`; color-eyre. Earlier versions of Rust have the message
//! in the first line.

use super::Bond::Own;
use super::Next::{Hold, Refuse, Take};
use super::Stage::{Body, Frames, Named, Text};
use super::Test::{Any, Blank, By, Indented, Starts};
use super::marks::has;
use super::{Row, Shape, Start};

pub(super) const PANIC: Shape = Shape {
    starts: &[
        Start(By(is_located), Text, Own),
        Start(By(is_panic), Named, Own),
        Start(By(is_overflow), Named, Own),
        Start(Starts("The application panicked (crashed)."), Body, Own),
    ],
    behind: &[],
    rows: &[
        // The message, which may be empty.
        Row(&[Text], By(is_panic), Refuse),
        Row(&[Text], Blank, Take(Named)),
        Row(&[Text], Any, Take(Named)),
        Row(&[Named, Frames], Starts("stack backtrace:"), Take(Frames)),
        Row(&[Named, Frames], Starts("note: "), Take(Frames)),
        Row(
            &[Named, Frames],
            Starts("fatal runtime error: "),
            Take(Frames),
        ),
        Row(&[Named, Frames], Starts("thread caused "), Take(Frames)),
        Row(
            &[Named, Frames],
            Starts("thread panicked while "),
            Take(Frames),
        ),
        Row(&[Frames], Indented, Take(Frames)),
        Row(&[Named], By(is_panic), Refuse),
        Row(&[Named], Indented, Take(Named)),
        Row(&[Named], Any, Hold(Named)),
        Row(&[Named], Blank, Hold(Named)),
        // The report of color-eyre.
        Row(&[Body], Starts("Message: "), Take(Body)),
        Row(&[Body], Starts("Location: "), Take(Body)),
        Row(&[Body], Indented, Take(Body)),
        Row(&[Body], Starts("Backtrace omitted. "), Take(Body)),
        Row(&[Body], Starts("Run with RUST_BACKTRACE="), Take(Body)),
        Row(&[Body], Blank, Hold(Body)),
    ],
    detail: None,
    crosses_gaps: false,
};

fn is_panic(line: &[u8]) -> bool {
    is_thread(line) && has(line, " panicked at ")
}

/// `thread 'main' (77) has overflowed its stack`
fn is_overflow(line: &[u8]) -> bool {
    is_thread(line) && line.ends_with(b" has overflowed its stack")
}

fn is_thread(line: &[u8]) -> bool {
    line.starts_with(b"thread '") || line.starts_with(b"thread <")
}

/// A panic whose message is in the next line.
fn is_located(line: &[u8]) -> bool {
    is_panic(line) && line.ends_with(b":")
}
