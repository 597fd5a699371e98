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
//! Source: Rust, module `std::panic` and `std::backtrace`. Earlier versions have the message in the first line.

use super::Bond::Own;
use super::Next::{Hold, Refuse, Take};
use super::Stage::{Frames, Named, Text};
use super::Test::{Any, Blank, By, Indented, Starts};
use super::marks::has;
use super::{Row, Shape, Start};

pub(super) const PANIC: Shape = Shape {
    starts: &[
        Start(By(is_located), Text, Own),
        Start(By(is_panic), Named, Own),
    ],
    behind: &[],
    rows: &[
        // The message, which may be empty.
        Row(&[Text], By(is_panic), Refuse),
        Row(&[Text], Blank, Take(Named)),
        Row(&[Text], Any, Take(Named)),
        Row(&[Named, Frames], Starts("stack backtrace:"), Take(Frames)),
        Row(&[Named, Frames], Starts("note: "), Take(Frames)),
        Row(&[Frames], Indented, Take(Frames)),
        Row(&[Named], By(is_panic), Refuse),
        Row(&[Named], Indented, Take(Named)),
        Row(&[Named], Any, Hold(Named)),
        Row(&[Named], Blank, Hold(Named)),
    ],
    detail: None,
    crosses_gaps: false,
};

fn is_panic(line: &[u8]) -> bool {
    let is_thread = line.starts_with(b"thread '") || line.starts_with(b"thread <");
    is_thread && has(line, " panicked at ")
}

/// A panic whose message is in the next line.
fn is_located(line: &[u8]) -> bool {
    is_panic(line) && line.ends_with(b":")
}
