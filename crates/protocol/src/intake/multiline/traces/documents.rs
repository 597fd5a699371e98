//! Documents of several lines in logs: XML, YAML, and records between marks. JSON and other texts in
//! brackets need no shape: their brackets say what belongs together.
//!
//! ```text
//! <record>                    ---                     [#|2026-03-02T00:00:06.1Z|SEVERE|…|
//!   <level>INFO</level>       kind: Pod               a message|#]
//! </record>                   spec:
//!                               nodeName: a
//! ```
//!
//! Sources: Java, `XMLFormatter`; log4j, `XMLLayout`; YAML 1.2, "Documents"; GlassFish, "Uniform Log Format".

use super::Bond::{Near, Own};
use super::Next::{Hold, Refuse, Take};
use super::Stage::{Body, Done, Frames, Text};
use super::Test::{Any, Blank, By, Indented, Is, Starts, With};
use super::marks::{hash, head};
use super::{Row, Shape, Start};

pub(super) const XML: Shape = Shape {
    starts: &[
        Start(By(is_declaration), Text, Near),
        Start(By(is_opening), Body, Near),
    ],
    behind: &[],
    rows: &[
        Row(&[Text], By(is_tag), Take(Frames)),
        // Behind a declaration the outermost element is not known.
        Row(&[Frames], By(is_declaration), Refuse),
        Row(&[Frames], By(is_tag), Take(Frames)),
        Row(&[Frames], Indented, Take(Frames)),
        Row(&[Frames], Blank, Hold(Frames)),
        Row(&[Body], With(is_end), Take(Done)),
        Row(&[Body], With(is_again), Refuse),
        Row(&[Body], By(is_tag), Take(Body)),
        Row(&[Body], Indented, Take(Body)),
        Row(&[Body], Blank, Hold(Body)),
        Row(&[Body], Any, Hold(Body)),
    ],
    detail: Some(|line| hash(name(line))),
    crosses_gaps: false,
};

pub(super) const FRAMED: Shape = Shape {
    starts: &[
        Start(By(is_uniform), Body, Own),
        Start(Is("---"), Text, Near),
    ],
    behind: &[],
    rows: &[
        Row(&[Body], By(is_uniform_end), Take(Done)),
        Row(&[Body], Starts("[#|"), Refuse),
        Row(&[Body], Any, Take(Body)),
        Row(&[Body], Blank, Take(Body)),
        Row(&[Text], Indented, Take(Text)),
        Row(&[Text], By(is_entry), Take(Text)),
        Row(&[Text], Is("..."), Take(Done)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// A box that is drawn around a message or a table.
pub(super) const BOX: Shape = Shape {
    starts: &[Start(By(is_top), Body, Near)],
    behind: &[],
    rows: &[
        Row(&[Body], By(is_bottom), Take(Done)),
        Row(&[Body], By(is_drawn), Take(Body)),
    ],
    detail: None,
    crosses_gaps: false,
};

/// A line that begins with a character of the block "Box Drawing".
fn is_drawn(line: &[u8]) -> bool {
    matches!(line, [0xe2, 0x94 | 0x95, ..])
}

fn is_top(line: &[u8]) -> bool {
    is_drawn(line)
        && ["╷", "╭", "┌", "╔", "┏"]
            .iter()
            .any(|top| line.starts_with(top.as_bytes()))
}

fn is_bottom(line: &[u8]) -> bool {
    is_drawn(line)
        && ["╵", "╰", "└", "╚", "┗"]
            .iter()
            .any(|end| line.starts_with(end.as_bytes()))
}

/// The name of the element that a line begins with.
fn name(line: &[u8]) -> &[u8] {
    let inside = line.strip_prefix(b"</").or(line.strip_prefix(b"<"));
    let inside = inside.unwrap_or_default();
    let is_part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b':' | b'_' | b'-' | b'.');
    &inside[..inside.iter().take_while(is_part).count()]
}

/// `<?xml version="1.0"?>`
fn is_declaration(line: &[u8]) -> bool {
    line.starts_with(b"<?xml ") && line.trim_ascii_end().ends_with(b"?>")
}

/// A line that begins with an element and does not end it.
fn is_opening(line: &[u8]) -> bool {
    let text = line.trim_ascii_end();
    if !is_tag(text) || text.ends_with(b"/>") || !text[1].is_ascii_alphabetic() {
        return false;
    }
    let name = name(text);
    let end = [b"</", name, b">"].concat();
    !text.ends_with(&end)
}

/// A line between `<` and `>`.
fn is_tag(line: &[u8]) -> bool {
    line.first() == Some(&b'<') && line.len() > 2 && line.trim_ascii_end().ends_with(b">")
}

fn is_end(line: &[u8], element: u32) -> bool {
    line.starts_with(b"</") && hash(name(line)) == element
}

fn is_again(line: &[u8], element: u32) -> bool {
    is_opening(line) && hash(name(line)) == element
}

/// `[#|2026-…` without its end.
fn is_uniform(line: &[u8]) -> bool {
    line.starts_with(b"[#|") && !is_uniform_end(line)
}

fn is_uniform_end(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(b"|#]")
}

/// `name: value`, `- value` or a comment.
fn is_entry(line: &[u8]) -> bool {
    let line = head(line);
    if matches!(line, [b'-', b' ', ..] | [b'#', ..]) {
        return true;
    }
    let is_part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/');
    let name = line.iter().take_while(is_part).count();
    name > 0 && line[0].is_ascii_lowercase() && matches!(&line[name..], [b':'] | [b':', b' ', ..])
}
