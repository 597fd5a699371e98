//! Values of fields, as the names of the fields say that they are read.

use logpond_record::{Assumption, Timestamp};

use super::epoch::{decimal_epoch, epoch};
use super::{Layout, TimeReader, TimestampText, arrays, known, other};

/// How the value of a time field is read, by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// True if it can be nothing but a time, so that small numbers are one too.
    pub(crate) is_certain: bool,
    /// True if its product writes UTC, so that the zone of its batch does not count.
    pub(crate) is_utc: bool,
}

impl Reading {
    /// The parts of a time that was read so that it leaves open.
    pub(crate) fn assumed(self, written: &TimestampText) -> Assumption {
        match written.form.assumed() {
            Assumption::Zone if self.is_utc => Assumption::Nothing,
            Assumption::YearAndZone if self.is_utc => Assumption::Year,
            assumed => assumed,
        }
    }
}

impl TimeReader {
    /// The instant that the whole of `text`, the value of a time field, is.
    ///
    /// `certain` says that the field can be nothing but a time, so that small numbers are one too.
    pub(crate) fn whole(
        &self,
        text: &[u8],
        received: Timestamp,
        certain: bool,
    ) -> Option<TimestampText> {
        if text.ends_with(b" ") {
            return self.padded(text, received, certain);
        }
        Some(self.placed(self.unplaced(text, received, certain)?, received))
    }

    /// The same with a time without a zone read as UTC.
    fn unplaced(&self, text: &[u8], received: Timestamp, certain: bool) -> Option<TimestampText> {
        let mut found = known(text, received)
            .filter(|found| found.bytes == text.len())
            .or_else(|| epoch(text, certain))
            .or_else(|| self.rare(text, received, true))
            .or_else(|| {
                let decimal = || Some((decimal_epoch(text, certain)?, Assumption::Nothing));
                let (time, assumed) = arrays::read(text).or_else(decimal)?;
                Some(other(time, text.len(), assumed))
            })?;
        if let Layout::Row(_) = found.form.layout {
            found.exact = self.is_exact(&found, text);
        }
        Some(found)
    }

    /// The instant that the whole of `text` is, read so.
    pub(crate) fn read(
        &self,
        text: &[u8],
        received: Timestamp,
        reading: Reading,
    ) -> Option<TimestampText> {
        if reading.is_utc {
            self.unplaced(text, received, reading.is_certain)
        } else {
            self.whole(text, received, reading.is_certain)
        }
    }
}
