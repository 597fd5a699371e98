//! `| decolorize`: a line without what sets a terminal's colour.

use std::borrow::Cow;

use super::Work;

/// Takes out control sequences (ECMA-48 5.4), such as `ESC [ 31 m`.
pub(super) fn run(work: &mut Work<'_>) {
    if memchr::memchr(0x1b, &work.line).is_none() {
        return;
    }
    let mut out = Vec::with_capacity(work.line.len());
    let mut rest = &work.line[..];
    while let Some(at) = memchr::memchr(0x1b, rest) {
        out.extend_from_slice(&rest[..at]);
        let behind = &rest[at..];
        match sequence_bytes(behind) {
            Some(length) => rest = &behind[length..],
            None => {
                out.push(0x1b);
                rest = &behind[1..];
            }
        }
    }
    out.extend_from_slice(rest);
    work.line = Cow::Owned(out);
}

/// How long the control sequence is that a text begins with.
fn sequence_bytes(text: &[u8]) -> Option<usize> {
    let inside = text.strip_prefix(b"\x1b[")?;
    let parameters = inside
        .iter()
        .take_while(|b| (0x30..0x40).contains(*b))
        .count();
    let between = inside[parameters..]
        .iter()
        .take_while(|b| (0x20..0x30).contains(*b));
    let at = parameters + between.count();
    inside
        .get(at)
        .filter(|b| (0x40..0x7f).contains(*b))
        .map(|_| at + 3)
}
