//! Names of time zones behind times.
//!
//! Abbreviations are not unique; these are what devices write, each with the meaning that is by far
//! the most frequent. An unknown one is no zone, and stays where it is.

use logpond_record::{Timestamp, write_unwritten_offset};

use super::traditional::{syslog_civil, year_after};
use super::{Form, Layout, Written, digit, in_latest_year, instant};

/// Abbreviations and their minutes east of UTC.
const NAMES: [(&str, i16); 45] = [
    ("UTC", 0),
    ("GMT", 0),
    ("Z", 0),
    ("WET", 0),
    ("WEST", 60),
    ("BST", 60),
    ("CET", 60),
    ("CEST", 120),
    ("MET", 60),
    ("MEST", 120),
    ("EET", 120),
    ("EEST", 180),
    ("SAST", 120),
    ("MSK", 180),
    ("GST", 240),
    ("PKT", 300),
    ("IST", 330),
    ("WIB", 420),
    ("ICT", 420),
    ("SGT", 480),
    ("HKT", 480),
    ("AWST", 480),
    ("JST", 540),
    ("KST", 540),
    ("ACST", 570),
    ("AEST", 600),
    ("AEDT", 660),
    ("NZST", 720),
    ("NZDT", 780),
    ("EST", -300),
    ("EDT", -240),
    ("CST", -360),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("PST", -480),
    ("PDT", -420),
    ("AKST", -540),
    ("AKDT", -480),
    ("HST", -600),
    ("NST", -210),
    ("NDT", -150),
    ("AST", -240),
    ("ADT", -180),
    ("BRT", -180),
];

/// The longest name, also of the form `TZ-11`.
const NAME_BYTES_MAX: usize = 6;

/// The name of a zone as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneName {
    text: [u8; NAME_BYTES_MAX],
    length: u8,
    /// East of UTC.
    minutes: i16,
}

impl ZoneName {
    /// Appends what a pattern says of it, and of a year behind it.
    pub(super) fn write_pattern(&self, is_year_behind: bool, out: &mut Vec<u8>) {
        out.push(b' ');
        out.extend_from_slice(&self.text[..usize::from(self.length)]);
        if is_year_behind {
            out.extend_from_slice(b" %Y");
        }
        if self.minutes != 0 {
            write_unwritten_offset(self.minutes.into(), out);
        }
    }

    /// Reads a name, `TZ` and hours included, at the start of `text`.
    fn read(text: &[u8]) -> Option<ZoneName> {
        let letters = text.iter().take(NAME_BYTES_MAX);
        let letters = letters.take_while(|b| b.is_ascii_uppercase()).count();
        let (length, minutes) = match &text[..letters] {
            b"TZ" => hours(&text[letters..]).map(|(bytes, minutes)| (letters + bytes, minutes))?,
            name => {
                let mut names = NAMES.iter();
                let known = names.find(|(known, _)| known.as_bytes() == name)?;
                (letters, known.1)
            }
        };
        let mut name = ZoneName {
            text: [0; NAME_BYTES_MAX],
            length: length as u8,
            minutes,
        };
        name.text
            .get_mut(..length)?
            .copy_from_slice(&text[..length]);
        Some(name)
    }
}

/// Reads `+H`, `-HH`; gives the bytes and minutes.
fn hours(text: &[u8]) -> Option<(usize, i16)> {
    let sign = match text.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let tens = digit(*text.get(1)?)?;
    let (bytes, hours) = match text.get(2).copied().and_then(digit) {
        Some(ones) => (3, tens * 10 + ones),
        None => (2, tens),
    };
    (hours <= 14).then_some((bytes, sign * hours as i16 * 60))
}

/// The same time with the zone that ` NAME` behind it says, and the year of ` NAME 1987`.
pub(super) fn with_name(text: &[u8], found: Written, received: Timestamp) -> Option<Written> {
    if found.form.offset.length > 0 {
        return None;
    }
    let after = text.get(found.bytes..)?.strip_prefix(b" ")?;
    let name = ZoneName::read(after)?;
    let after = &after[usize::from(name.length)..];
    if !matches!(after.first(), None | Some(b' ' | b':' | b'-')) {
        return None;
    }
    let minutes = i64::from(name.minutes);
    let mut bytes = found.bytes + 1 + usize::from(name.length);
    let mut is_year_behind = false;
    let time = match found.form.layout {
        Layout::Syslog { year: false, .. } => {
            let (mut civil, nanos) = syslog_civil(text)?;
            match year_after(after) {
                Some(year) => {
                    civil.year = year;
                    is_year_behind = true;
                    bytes += 5;
                    instant(&civil, nanos, minutes)?
                }
                None => in_latest_year(&mut civil, nanos, minutes, received)?,
            }
        }
        _ => Timestamp(found.time.0.checked_sub(minutes * 60_000_000_000)?),
    };
    Some(Written {
        time,
        bytes,
        form: Form {
            zone_name: Some((name, is_year_behind)),
            ..found.form
        },
        exact: found.exact,
    })
}
