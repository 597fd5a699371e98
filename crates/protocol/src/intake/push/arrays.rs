//! Values of JSON that take several lines of a body, or hold several records: arrays of objects, and objects that
//! are written over several lines.
//!
//! Invariant: a value is taken only if it ends; else the line that it begins with is one bad line, and the lines
//! behind it are what they would be without it.

use logpond_record::EntryKind;

use super::{DecodedBody, RejectReason, TooLarge, check};

/// Where in a body values may reach beyond their line.
pub(super) struct Values<'a> {
    body: &'a [u8],
    /// Whether they still may: after one without an end each further one could be looked for up to the end of
    /// the body, which would take the square of its length.
    spans_lines: bool,
    line_bytes_max: usize,
}

impl<'a> Values<'a> {
    pub(super) fn new(body: &'a [u8], line_bytes_max: usize) -> Values<'a> {
        Values {
            body,
            spans_lines: true,
            line_bytes_max,
        }
    }

    /// Takes in the value that begins in the line at this byte, if it is one of these; gives the first byte
    /// behind the line that it ends in.
    ///
    /// # Errors
    /// When there are more records than a batch may have.
    pub(super) fn take(
        &mut self,
        at: usize,
        line: usize,
        pushed: &mut DecodedBody,
    ) -> Result<Option<usize>, TooLarge> {
        let Some((start, end, behind)) = self.find(at) else {
            return Ok(None);
        };
        match self.body[start] {
            b'[' => self.elements(start, end, line, pushed)?,
            _ => {
                let value = &self.body[start..end];
                let checked = check(EntryKind::Json, value, self.line_bytes_max);
                pushed.add(line, value, checked)?;
            }
        }
        Ok(Some((behind + 1).min(self.body.len())))
    }

    /// Where the value that begins in the line at this byte begins and ends, and where its last line ends, if it
    /// is one of these.
    fn find(&mut self, at: usize) -> Option<(usize, usize, usize)> {
        let line_end = self.line_end(at);
        let start = at + blanks(&self.body[at..line_end]);
        match self.body.get(start)? {
            b'[' if begins_array(&self.body[start + 1..]) => {}
            // As tools write an object that people shall read; one in a line is a line.
            b'{' if blanks(&self.body[start + 1..]) >= line_end - start - 1 => {}
            _ => return None,
        }
        let limit = if self.spans_lines {
            self.body.len()
        } else {
            line_end
        };
        let Some(end) = value_end(&self.body[..limit], start) else {
            self.spans_lines = false;
            return None;
        };
        let behind = self.line_end(end);
        // Nothing else may stand in its last line.
        if blanks(&self.body[end..behind]) < behind - end {
            return None;
        }
        Some((start, end, behind))
    }

    /// Takes in the elements of an array between its brackets.
    fn elements(
        &self,
        start: usize,
        end: usize,
        mut line: usize,
        pushed: &mut DecodedBody,
    ) -> Result<(), TooLarge> {
        let (mut at, last) = (start + 1, end - 1);
        let mut number = 0;
        loop {
            let blank = blanks(&self.body[at..last]);
            line += line_ends(&self.body[at..at + blank]);
            at += blank;
            if at == last && number == 0 {
                return Ok(());
            }
            number += 1;
            let element_end = element_end(&self.body[..last], at);
            let element = self.body[at..element_end].trim_ascii_end();
            let checked = check(EntryKind::Json, element, self.line_bytes_max);
            let checked = checked.map_err(|reason| {
                RejectReason::Malformed(format!("element {number} of the array: {reason}"))
            });
            pushed.add(line, element, checked)?;
            line += line_ends(&self.body[at..element_end]);
            if element_end == last {
                return Ok(());
            }
            at = element_end + 1;
        }
    }

    /// The first line end from this byte on, or the end of the body.
    fn line_end(&self, at: usize) -> usize {
        memchr::memchr(b'\n', &self.body[at..]).map_or(self.body.len(), |length| at + length)
    }
}

/// How many white spaces a text begins with.
fn blanks(text: &[u8]) -> usize {
    text.len() - text.trim_ascii_start().len()
}

fn line_ends(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// Whether this stands behind the bracket of an array of objects, or of an empty one: `[ERROR] …` is text.
fn begins_array(rest: &[u8]) -> bool {
    matches!(rest.trim_ascii_start().first(), Some(b'{' | b']'))
}

/// The first byte behind the value that begins here with a bracket; `None` if it does not end.
fn value_end(text: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = start;
    while at < text.len() {
        match text[at] {
            b'"' => at = string_end(text, at)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the comma is behind the element that begins here, or the end of the text.
fn element_end(text: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at < text.len() {
        match text[at] {
            b'"' => match string_end(text, at) {
                Some(end) => at = end,
                None => return text.len(),
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// The closing quote of the string whose opening one is here.
fn string_end(text: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        match text[at] {
            b'"' => return Some(at),
            _ => at += 2,
        }
    }
}
