//! RFC 3164: `Mmm dd hh:mm:ss host tag[pid]: message`, behind the priority.
//!
//! Also read: one space before the time, a year, a zone or a fraction of a second in it, and all
//! other forms of times. A word that ends like a tag where the host should stand is the tag: senders on the same
//! machine leave the host out. Without a tag, what follows the host is the message.

use logpond_record::TimeSource;

use super::rule::Context;
use super::word;
use crate::intake::sketch::Sketch;

/// The longest name of a program in a tag; the RFC has 32, and nobody obeys.
const TAG_BYTES_MAX: usize = 128;

/// How sure it is that the RFC describes a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// There is a time, a host and a tag.
    Whole,
    /// There is a time, and a tag right behind it.
    Tagged,
    /// There is a time.
    Timed,
}

/// What follows a tag's name.
struct Tag<'a> {
    app: &'a str,
    process: Option<&'a str>,
    /// Behind the colon.
    rest: &'a [u8],
}

pub(super) fn draw<'a>(
    after: &'a [u8],
    context: Context<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<Certainty> {
    let text = match after.strip_prefix(b" ") {
        Some(text) => {
            sketch.literal(" ");
            text
        }
        None => after,
    };
    let written = context.times.header(text, context.received)?;
    let (time, mut rest) = text.split_at(written.bytes);
    if !matches!(rest.first(), None | Some(b' ' | b':')) {
        return None;
    }
    sketch.time(&written, time, TimeSource::Header);
    if let Some(after) = rest.strip_prefix(b": ") {
        sketch.literal(": ");
        return Some(draw_content(after, sketch));
    }
    let Some(after) = rest.strip_prefix(b" ") else {
        sketch.message(rest);
        return Some(Certainty::Timed);
    };
    sketch.literal(" ");
    rest = after;
    let mut has_host = false;
    if tag(rest).is_none()
        && let Some((host, after)) = word(rest).filter(|(host, _)| is_host(host))
        && matches!(after.first(), None | Some(b' '))
    {
        sketch.text("hostname:t", host);
        has_host = true;
        rest = match after.strip_prefix(b" ") {
            Some(after) => {
                sketch.literal(" ");
                after
            }
            None => after,
        };
    }
    Some(match draw_content(rest, sketch) {
        Certainty::Tagged if has_host => Certainty::Whole,
        certainty => certainty,
    })
}

/// Draws a line that has no priority, if a host and a tag follow its time. Among lines of unknown
/// origin only the RFC's own form of time counts: after others, any two words may stand.
pub(super) fn draw_alone<'a>(
    line: &'a [u8],
    is_syslog: bool,
    context: Context<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<()> {
    let may_begin_so = match line.first()? {
        first if first.is_ascii_uppercase() => true,
        first => is_syslog && *first != b' ',
    };
    let drawn = may_begin_so.then(|| draw(line, context, sketch));
    (drawn == Some(Some(Certainty::Whole))).then_some(())
}

fn draw_content<'a>(rest: &'a [u8], sketch: &mut Sketch<'_, 'a>) -> Certainty {
    let behind_tag = draw_tag(rest, sketch);
    sketch.message(behind_tag.unwrap_or(rest));
    match behind_tag {
        Some(_) => Certainty::Tagged,
        None => Certainty::Timed,
    }
}

/// Draws a tag and the space behind it, or nothing; gives what follows.
pub(super) fn draw_tag<'a>(text: &'a [u8], sketch: &mut Sketch<'_, 'a>) -> Option<&'a [u8]> {
    let tag = tag(text)?;
    sketch.text("app:t", tag.app);
    if let Some(process) = tag.process {
        sketch.literal("[");
        sketch.text("procid:t", process);
        sketch.literal("]");
    }
    sketch.literal(":");
    match tag.rest.strip_prefix(b" ") {
        Some(rest) => {
            sketch.literal(" ");
            Some(rest)
        }
        None => Some(tag.rest),
    }
}

/// Reads `name:` or `name[process]:`, followed by a space or the end.
fn tag(text: &[u8]) -> Option<Tag<'_>> {
    let end = text
        .iter()
        .take(TAG_BYTES_MAX + 1)
        .take_while(|b| b.is_ascii_graphic() && !matches!(b, b':' | b'[' | b'{' | b'"' | b'='))
        .count();
    if end == 0 || end > TAG_BYTES_MAX {
        return None;
    }
    let app = std::str::from_utf8(&text[..end]).ok()?;
    let mut rest = &text[end..];
    let mut process = None;
    if let Some(inside) = rest.strip_prefix(b"[") {
        let end = inside.iter().take(TAG_BYTES_MAX).position(|b| *b == b']')?;
        let inside_text = std::str::from_utf8(&inside[..end]).ok()?;
        if !inside_text.bytes().all(|b| b.is_ascii_graphic()) {
            return None;
        }
        process = Some(inside_text);
        rest = &inside[end + 1..];
    }
    let rest = rest.strip_prefix(b":")?;
    matches!(rest.first(), None | Some(b' ')).then_some(Tag { app, process, rest })
}

/// Whether a word can name a machine.
fn is_host(word: &str) -> bool {
    word.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'/' | b'%'))
        && !word.ends_with(':')
}
