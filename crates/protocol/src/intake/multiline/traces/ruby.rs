//! Errors of Ruby: those that end a program, those that its Logger writes, and those of Rails.
//!
//! ```text
//! /app/a.rb:2:in `f': bad (RuntimeError)        E, [2026-03-02T00:00:06.1 #41] ERROR -- : bad (RuntimeError)
//!         from /app/a.rb:5:in `<main>'          /app/a.rb:2:in `f'
//! /app/a.rb:9:in `g': cause (IOError)           /app/a.rb:5:in `<main>'
//! ```
//!
//! Rails puts the tags of a request before each line, and empty lines between. Sources: Ruby,
//! `Exception#full_message`, `Logger::Formatter` and the gem `error_highlight`; Rails,
//! `ActionDispatch::DebugExceptions`; Rake and Bundler, which end a program with an error.

use super::Bond::{Near, Own};
use super::Next::{Hold, Refuse, Take};
use super::Stage::{Frames, Named, Text};
use super::Test::{Any, Blank, By, Indented, Starts, With};
use super::marks::{digits, has, hash, head, is_blank, is_indented, name_bytes};
use super::{Behind, Row, Shape, Start};

pub(super) const ERROR: Shape = Shape {
    starts: &[
        Start(By(is_uncaught), Named, Own),
        Start(By(is_place), Frames, Near),
        Start(By(is_logged), Text, Own),
        Start(By(is_rails), Named, Near),
        Start(Starts("bundler: failed to load "), Text, Own),
        Start(By(is_aborted), Text, Own),
    ],
    behind: &[
        Behind(By(is_frame), Take(Frames)),
        Behind(By(is_rails), Hold(Named)),
    ],
    rows: &[
        // The same error again is another one, not the cause of itself.
        Row(&[Named, Frames], With(is_first), Refuse),
        Row(&[Text, Named, Frames], By(is_place), Take(Frames)),
        Row(&[Named, Frames], By(is_causes), Take(Text)),
        Row(&[Text, Frames], By(is_rails), Hold(Named)),
        Row(&[Named], By(is_rails), Refuse),
        Row(&[Text], By(is_logged), Refuse),
        Row(&[Frames], Indented, Take(Frames)),
        Row(&[Named, Frames], Starts("Did you mean?"), Take(Frames)),
        Row(&[Frames], By(is_blank), Hold(Frames)),
        Row(&[Frames], By(is_tag), Hold(Frames)),
        Row(&[Frames], Starts("Tasks: "), Take(Frames)),
        Row(&[Frames], Starts("(See full trace "), Take(Frames)),
        Row(&[Text], Indented, Take(Text)),
        Row(&[Named], By(is_from), Take(Frames)),
        Row(&[Named], Indented, Take(Named)),
        // A message of several lines, if calls follow.
        Row(&[Named], Blank, Hold(Named)),
        Row(&[Named], Any, Hold(Named)),
        Row(&[Text], Blank, Hold(Text)),
        Row(&[Text], Any, Hold(Text)),
    ],
    detail: Some(hash),
    crosses_gaps: false,
};

/// Behind the tags of a request: `[f3c1] app/a.rb:5`.
fn untagged(line: &[u8]) -> &[u8] {
    const TAGS_MAX: usize = 8;
    let mut line = line;
    for _ in 0..TAGS_MAX {
        let inside = line.strip_prefix(b"[").map(head);
        let Some(end) = inside.and_then(|inside| memchr::memmem::find(inside, b"] ")) else {
            break;
        };
        line = &line[1 + end + 2..];
    }
    line
}

/// `/app/a.rb:2:in `f'`, with a message behind it or not. Since Ruby 3.4 the first quote is a `'`.
pub(super) fn is_place(line: &[u8]) -> bool {
    /// The most quotes that are looked at.
    const QUOTES_MAX: usize = 4;
    if is_indented(line) {
        return false;
    }
    let line = head(line);
    let mut quotes = memchr::memchr2_iter(b'`', b'\'', line).take(QUOTES_MAX);
    let Some(before) = quotes.find_map(|at| line[..at].strip_suffix(b":in ")) else {
        return false;
    };
    let before = untagged(before);
    let number = before
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let path = &before[..before.len() - number];
    number > 0 && path.len() > 1 && path.ends_with(b":") && !path.contains(&b'"')
}

/// A place with a message behind it, as the error that ends a program has.
fn is_uncaught(line: &[u8]) -> bool {
    is_place(line) && !line.ends_with(b"'")
}

fn is_frame(line: &[u8]) -> bool {
    is_place(line) && line.ends_with(b"'")
}

/// `E, [2026-03-02T00:00:06.123456 #41] ERROR -- : bad`
fn is_logged(line: &[u8]) -> bool {
    let [
        b'D' | b'I' | b'W' | b'E' | b'F' | b'A',
        b',',
        b' ',
        b'[',
        rest @ ..,
    ] = line
    else {
        return false;
    };
    digits(rest) == 4
}

/// `NoMethodError (undefined method `x' for nil):`, as Rails writes it.
fn is_rails(line: &[u8]) -> bool {
    if !line
        .first()
        .is_some_and(|b| b.is_ascii_uppercase() || *b == b'[')
    {
        return false;
    }
    let line = untagged(line);
    let name = name_bytes(line);
    let is_error = ["Error", "Exception", "NotFound", "Invalid", "Missing"]
        .iter()
        .any(|end| line[..name].ends_with(end.as_bytes()));
    (is_error || has(&line[..name], "::")) && line[name..].starts_with(b" (")
}

/// `rake aborted!`, `bin/rails aborted!`
fn is_aborted(line: &[u8]) -> bool {
    line.strip_suffix(b" aborted!").is_some_and(|name| {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"/._-".contains(b);
        name.iter().all(is_part)
    })
}

/// The line before the errors that another one was raised for, of Rails or Rake.
fn is_causes(line: &[u8]) -> bool {
    matches!(untagged(line), b"Causes:" | b"Caused by:")
}

/// Tags without anything behind them.
fn is_tag(line: &[u8]) -> bool {
    line.starts_with(b"[") && is_blank(untagged(line))
}

fn is_from(line: &[u8]) -> bool {
    is_indented(line) && line.trim_ascii_start().starts_with(b"from ")
}

fn is_first(line: &[u8], first: u32) -> bool {
    hash(line) == first
}
