//! Times that heads of lines begin with, and whether their forms render them.

use logpond_record::{Assumption, TimePattern, Timestamp};

use super::epoch::{epoch, tai64};
use super::labelled::joined_day;
use super::{
    GOOGLE_ROW, Layout, TimeReader, TimestampText, general, other, programs, regions, zones,
};

/// Bytes of most concrete patterns.
const PATTERN_BYTES: usize = 48;

/// A concrete pattern and its text.
pub(super) struct Concrete {
    pattern: Vec<u8>,
    compiled: TimePattern,
}

impl TimeReader {
    /// The instant that the head of a program's line begins with, as [`TimeReader::header`] reads it, as Google's
    /// logging libraries write it, or as a clock alone.
    pub(crate) fn program(&self, text: &[u8], received: Timestamp) -> Option<TimestampText> {
        let google = || {
            let read = general::read_google(text, received)?;
            let row = self.row(GOOGLE_ROW, text, received);
            let row = row.filter(|found| found.bytes == read.bytes && found.time == read.time);
            let found = row.unwrap_or_else(|| self.unrendered(&read, read.bytes, received));
            Some(self.placed(found, received))
        };
        if text.get(4) == Some(&b' ')
            && let Some(found) = google()
        {
            return Some(found);
        }
        let found = self.header(text, received).or_else(google);
        found
            .or_else(|| self.clock(text, received))
            .or_else(|| joined_day(text, received))
            .or_else(|| seconds(text))
            .or_else(|| {
                let (time, bytes) = tai64(text)?;
                Some(other(time, bytes, Assumption::Nothing))
            })
            .or_else(|| {
                let read = programs::exponential(text)?;
                Some(self.unrendered(&read, read.bytes, received))
            })
    }

    /// The instant that the whole of a text is, with blanks behind it, as .NET's formats of times have them.
    pub(super) fn padded(
        &self,
        text: &[u8],
        received: Timestamp,
        certain: bool,
    ) -> Option<TimestampText> {
        let found = self.whole(text.trim_ascii_end(), received, certain)?;
        let mut padded = other(found.time, text.len(), found.form.assumed());
        // It is in its place.
        padded.form.layout = Layout::Other(found.form.assumed(), true);
        Some(padded)
    }

    /// True if the form of `found`, which was read by the rows, rendered is `text`. A row knows it itself, but for the
    /// name of a zone.
    pub(super) fn is_exact(&self, found: &TimestampText, text: &[u8]) -> bool {
        match found.form.layout {
            Layout::Row(_) if found.form.zone_name.is_none() => found.exact,
            Layout::Other(..) => false,
            _ => self.renders_to(found, text),
        }
    }

    /// True if the form of `found`, rendered, is `text`.
    pub(super) fn renders_to(&self, found: &TimestampText, text: &[u8]) -> bool {
        let mut pattern = Vec::with_capacity(PATTERN_BYTES);
        found.form.write_pattern(&mut pattern);
        // Lines of one program have one form.
        let mut last = self.last.try_lock().ok();
        let known = last.as_mut().and_then(|last| last.take());
        let known = known.filter(|known| known.pattern == pattern);
        let concrete = known.or_else(|| {
            let text = std::str::from_utf8(&pattern).ok()?;
            let compiled = TimePattern::new(text).ok()?;
            Some(Concrete { pattern, compiled })
        });
        let Some(concrete) = concrete else {
            return false;
        };
        let mut rendered = Vec::with_capacity(text.len());
        concrete.compiled.render(found.time, &mut rendered);
        if let Some(last) = &mut last {
            **last = Some(concrete);
        }
        rendered == text
    }
}

/// Unix time with a fraction, or with a blank behind it.
fn seconds(text: &[u8]) -> Option<TimestampText> {
    const SECONDS_DIGITS: usize = 10;
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let behind = text.get(SECONDS_DIGITS..)?;
    if behind.starts_with(b" ") {
        return epoch(&text[..SECONDS_DIGITS], false);
    }
    let fraction = behind.strip_prefix(b".")?;
    let bytes = SECONDS_DIGITS + 1 + digits(fraction);
    epoch(&text[..bytes], false).filter(|_| digits(text) == SECONDS_DIGITS)
}

/// True if a time may go on behind what the readers of usual forms take: a half of the day, a short offset, or the
/// name of a region.
pub(super) fn continues(behind: &[u8]) -> bool {
    match behind {
        [b' ', b'+' | b'-', b'0'..=b'9', ..] | [b' ', b'U', b'h', b'r', b' ', ..] => true,
        [
            b' ',
            b'A' | b'P' | b'a' | b'p',
            b'M' | b'm' | b'.',
            after @ ..,
        ] => !after.first().is_some_and(u8::is_ascii_alphanumeric),
        [0xc2 | 0xe2, ..] => true,
        [b' ', b'(' | b'[', ..] | [b'[', ..] => {
            regions::read_bracketed(behind).is_some() || zones::is_bracketed(behind)
        }
        [b' ', region @ ..] => regions::read(region).is_some(),
        _ => false,
    }
}
