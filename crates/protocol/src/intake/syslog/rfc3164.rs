//! RFC 3164: `Mmm dd hh:mm:ss host tag[pid]: message`, behind the priority.
//!
//! Also read: one space before the time, a year or a fraction of a second in it, and RFC 3339
//! times. A word that ends like a tag where the host should stand is the tag: senders on the same
//! machine leave the host out. Without a tag, what follows the host is the message.

use logpond_record::{TimeSource, Timestamp};

use super::word;
use crate::intake::sketch::Sketch;
use crate::intake::timestamps;

/// The longest name of a program in a tag; the RFC has 32, and nobody obeys.
const TAG_BYTES_MAX: usize = 128;

/// What follows a tag's name.
struct Tag<'a> {
    app: &'a str,
    process: Option<&'a str>,
    /// Behind the colon.
    rest: &'a [u8],
}

pub(super) fn draw<'a>(
    after: &'a [u8],
    received: Timestamp,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<()> {
    let text = match after.strip_prefix(b" ") {
        Some(text) => {
            sketch.literal(" ");
            text
        }
        None => after,
    };
    let written = timestamps::syslog(text, received).or_else(|| timestamps::iso(text))?;
    let (time, mut rest) = text.split_at(written.bytes);
    if !matches!(rest.first(), None | Some(b' ' | b':')) {
        return None;
    }
    sketch.time(&written, time, TimeSource::Header);
    let Some(after) = rest.strip_prefix(b" ") else {
        sketch.message(rest);
        return Some(());
    };
    sketch.literal(" ");
    rest = after;
    if tag(rest).is_none()
        && let Some((host, after)) = word(rest).filter(|(host, _)| is_host(host))
        && matches!(after.first(), None | Some(b' '))
    {
        sketch.text("hostname:t", host);
        rest = match after.strip_prefix(b" ") {
            Some(after) => {
                sketch.literal(" ");
                after
            }
            None => after,
        };
    }
    draw_content(rest, sketch);
    Some(())
}

fn draw_content<'a>(rest: &'a [u8], sketch: &mut Sketch<'_, 'a>) {
    let Some(tag) = tag(rest) else {
        return sketch.message(rest);
    };
    sketch.text("app:t", tag.app);
    if let Some(process) = tag.process {
        sketch.literal("[");
        sketch.text("procid:t", process);
        sketch.literal("]");
    }
    sketch.literal(":");
    match tag.rest.strip_prefix(b" ") {
        Some(message) => {
            sketch.literal(" ");
            sketch.message(message);
        }
        None => sketch.message(tag.rest),
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
