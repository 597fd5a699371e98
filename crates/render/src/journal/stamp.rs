//! Times in the ways that journalctl writes them.

use jiff::tz::TimeZone;

use super::Format;

const SECOND_US: i64 = 1_000_000;

/// The time in front of a line.
pub(super) fn line(us: i64, format: Format, zone: &TimeZone) -> String {
    let fraction = us.rem_euclid(SECOND_US);
    match format {
        Format::ShortUnix => {
            return format!("{:10}.{fraction:06}", us.div_euclid(SECOND_US));
        }
        Format::ShortFull | Format::WithUnit => return pretty(us, zone),
        _ => {}
    }
    let Some(time) = zoned(us, zone) else {
        return us.to_string();
    };
    match format {
        Format::ShortIso => time.strftime("%Y-%m-%dT%H:%M:%S%z").to_string(),
        Format::ShortIsoPrecise => format!(
            "{}.{fraction:06}{}",
            time.strftime("%Y-%m-%dT%H:%M:%S"),
            time.strftime("%z")
        ),
        Format::ShortPrecise => format!("{}.{fraction:06}", time.strftime("%b %d %H:%M:%S")),
        _ => time.strftime("%b %d %H:%M:%S").to_string(),
    }
}

/// `Fri 2023-12-15 05:14:46 UTC`
pub fn pretty(us: i64, zone: &TimeZone) -> String {
    match zoned(us, zone) {
        Some(time) => time.strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string(),
        None => us.to_string(),
    }
}

/// `Fri 2023-12-15 05:14:46.786610 UTC`
pub(super) fn precise(us: i64, zone: &TimeZone) -> String {
    let fraction = us.rem_euclid(SECOND_US);
    match zoned(us, zone) {
        Some(time) => format!(
            "{}.{fraction:06} {}",
            time.strftime("%a %Y-%m-%d %H:%M:%S"),
            time.strftime("%Z")
        ),
        None => us.to_string(),
    }
}

/// `   28.989881`
pub(super) fn seconds(us: i64) -> String {
    format!("{:5}.{:06}", us / SECOND_US, (us % SECOND_US).abs())
}

fn zoned(us: i64, zone: &TimeZone) -> Option<jiff::Zoned> {
    let time = jiff::Timestamp::from_microsecond(us).ok()?;
    Some(time.to_zoned(zone.clone()))
}
