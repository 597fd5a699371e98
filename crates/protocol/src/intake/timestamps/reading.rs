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
    /// True if it may be a day or an hour: Elasticsearch reads `2026-11-27` as its beginning in UTC.
    pub(crate) may_be_day: bool,
}

/// The rest of the beginning of a day or an hour, by the bytes that are written of it.
const BEGINNINGS: [(usize, &[u8]); 2] = [
    ("2026-11-27".len(), b"T00:00:00Z"),
    ("2026-11-27T10".len(), b":00:00Z"),
];

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
        let read = if reading.is_utc {
            self.unplaced(text, received, reading.is_certain)
        } else {
            self.whole(text, received, reading.is_certain)
        };
        read.or_else(|| beginning(text, received).filter(|_| reading.may_be_day))
    }
}

/// The beginning of a day or an hour in UTC.
fn beginning(text: &[u8], received: Timestamp) -> Option<TimestampText> {
    let (_, rest) = BEGINNINGS.iter().find(|(bytes, _)| *bytes == text.len())?;
    let whole = [text, rest].concat();
    let read = known(&whole, received).filter(|read| read.bytes == whole.len())?;
    Some(other(read.time, text.len(), Assumption::Nothing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_hours_are_times_where_they_may_be() {
        let times = TimeReader::new();
        let reading = Reading {
            may_be_day: true,
            ..Reading::default()
        };
        let table = [
            ("2026-11-27", Some("2026-11-27T00:00:00.000000000Z")),
            ("2026-11-27T10", Some("2026-11-27T10:00:00.000000000Z")),
            (
                "2026-11-27T10:30:00Z",
                Some("2026-11-27T10:30:00.000000000Z"),
            ),
            ("2026-11-37", None),
            ("10-digits.", None),
        ];
        for (text, expected) in table {
            let read = times.read(text.as_bytes(), Timestamp(0), reading);
            let read = read.map(|read| read.time.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
        let plain = times.read(b"2026-11-27", Timestamp(0), Reading::default());
        assert!(plain.is_none());
    }
}
