//! Zones as people name them, as the rules that travel with records (see
//! [`logpond_protocol::intake::timezone`]).
//!
//! | name | is |
//! | --- | --- |
//! | `local` | the zone of this machine: `TZ`, else `/etc/localtime`, else UTC |
//! | `Europe/Berlin` | a zone of the machine's database (tzdata) |
//! | `+05:30` | an offset from UTC |
//! | `CET-1CEST,M3.5.0,M10.5.0/3` | a rule of POSIX |
//!
//! A file of the database (RFC 9636) has a rule for the future at its end, and says what was: what
//! differs from the rule in the years around now goes with it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use logpond_protocol::intake::timezone::{CHANGES_MAX, Zone, offset_minutes};
use logpond_record::{Timestamp, cast};

/// The rule of UTC.
pub const UTC: &str = "UTC0";

/// The zone of this machine.
pub const LOCAL: &str = "local";

/// The longest file that is read: those of the database have 4 KiB at most.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// Where the database is looked for, after `TZDIR`.
const DIRECTORIES: [&str; 4] = [
    "/usr/share/zoneinfo",
    "/usr/lib/zoneinfo",
    "/usr/share/lib/zoneinfo",
    "/etc/zoneinfo",
];

/// Where a machine keeps its own zone.
const OWN: &str = "/etc/localtime";

/// How far back a zone's past is kept, and how far ahead what follows no rule (Morocco's zone): lines
/// without a zone are seldom older, and both have room in a label.
const YEARS_BACK: i64 = 20;
const YEARS_AHEAD: i64 = 10;

const YEAR_S: i64 = 31_556_952;

/// Why a name is no zone.
#[derive(Debug)]
pub enum TimezoneError {
    /// Nothing of that name is known.
    Unknown(String),
    /// A file of the database cannot be read.
    Read(PathBuf, io::Error),
    /// A file is none of the database.
    Form(PathBuf),
}

impl fmt::Display for TimezoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimezoneError::Unknown(name) => write!(
                f,
                "the zone '{name}' is not known: expected a name of this machine's database such as \
                 Europe/Berlin (package tzdata, looked for in TZDIR and {}), 'local', an offset such \
                 as +02:00, or a rule such as CET-1CEST,M3.5.0,M10.5.0/3",
                DIRECTORIES[0]
            ),
            TimezoneError::Read(path, error) => {
                write!(f, "the zone in {} cannot be read: {error}", path.display())
            }
            TimezoneError::Form(path) => {
                write!(f, "{} is no file of the time zone database", path.display())
            }
        }
    }
}

impl std::error::Error for TimezoneError {}

/// The rule of the zone that people call `name`.
///
/// # Errors
/// When there is no such zone.
pub fn rule(name: &str, now: Timestamp) -> Result<String, TimezoneError> {
    match name {
        LOCAL => local(now),
        "UTC" | "Z" => Ok(UTC.to_owned()),
        name => named(name, now),
    }
}

fn local(now: Timestamp) -> Result<String, TimezoneError> {
    let variable = std::env::var("TZ").ok();
    match variable
        .as_deref()
        .map(|text| text.strip_prefix(':').unwrap_or(text))
    {
        Some("") => Ok(UTC.to_owned()),
        Some(path) if path.starts_with('/') => of_file(Path::new(path), now),
        Some(name) => named(name, now),
        None => match of_file(Path::new(OWN), now) {
            // A machine that does not say where it is.
            Err(TimezoneError::Read(_, error)) if error.kind() == io::ErrorKind::NotFound => {
                Ok(UTC.to_owned())
            }
            outcome => outcome,
        },
    }
}

fn named(name: &str, now: Timestamp) -> Result<String, TimezoneError> {
    if let Some(minutes) = offset_minutes(name) {
        return Ok(fixed(minutes));
    }
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte);
    if !name.is_empty() && !name.starts_with('/') && name.bytes().all(is_path) {
        let own = std::env::var_os("TZDIR").map(PathBuf::from);
        let usual = DIRECTORIES.map(PathBuf::from);
        for directory in own.into_iter().chain(usual) {
            let path = directory.join(name);
            if path.is_file() {
                return of_file(&path, now);
            }
        }
    }
    // One without an offset is taken for a name with a slip of the pen.
    let is_rule = name.bytes().any(|byte| byte.is_ascii_digit()) && !name.contains(", ");
    match Zone::new(name) {
        Ok(_) if is_rule => Ok(name.to_owned()),
        _ => Err(TimezoneError::Unknown(name.to_owned())),
    }
}

/// The rule of an offset from UTC, whose sign POSIX turns around.
fn fixed(minutes: i64) -> String {
    let (sign, opposite) = if minutes < 0 { ('-', '+') } else { ('+', '-') };
    let (hours, minutes) = (minutes.abs() / 60, minutes.abs() % 60);
    format!("<{sign}{hours:02}{minutes:02}>{opposite}{hours:02}:{minutes:02}")
}

fn of_file(path: &Path, now: Timestamp) -> Result<String, TimezoneError> {
    let read = |path: &Path| {
        let mut bytes = Vec::new();
        File::open(path)?
            .take(FILE_BYTES_MAX)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read(path).map_err(|error| TimezoneError::Read(path.to_owned(), error))?;
    of_bytes(&bytes, now).ok_or_else(|| TimezoneError::Form(path.to_owned()))
}

/// The rule of a zone by its file.
fn of_bytes(bytes: &[u8], now: Timestamp) -> Option<String> {
    let zone = TimeZone::tzif("", bytes).ok()?;
    let now = now.seconds().0;
    let (from, to) = (now - YEARS_BACK * YEAR_S, now + YEARS_AHEAD * YEAR_S);
    let rule = match footer(bytes) {
        Some(rule) => rule.to_owned(),
        None => fixed(minutes_at(&zone, to)),
    };
    let text = match &past(&zone, &TimeZone::posix(&rule).ok()?, from, to)[..] {
        [] => rule,
        past => format!("{}, {rule}", past.join(", ")),
    };
    Zone::new(&text).is_ok().then_some(text)
}

/// The rule at the end of a file of version 2 or later, between two line feeds.
fn footer(bytes: &[u8]) -> Option<&str> {
    let text = bytes.strip_suffix(b"\n")?;
    let start = text.iter().rposition(|byte| *byte == b'\n')?;
    let rule = std::str::from_utf8(&text[start + 1..]).ok()?;
    (!rule.is_empty() && Zone::new(rule).is_ok()).then_some(rule)
}

/// The offsets that a zone had in these years for as long as they are not those of its rule, each with
/// its end; the newest, if they are many.
fn past(zone: &TimeZone, rule: &TimeZone, from: i64, to: i64) -> Vec<String> {
    let mut points: Vec<i64> = [zone, rule]
        .iter()
        .flat_map(|of| changes(of, from, to))
        .collect();
    points.push(from);
    points.sort_unstable();
    points.dedup();
    let differs = |at: &i64| minutes_at(zone, *at) != minutes_at(rule, *at);
    let Some(last) = points.iter().rposition(differs) else {
        return Vec::new();
    };
    let end = points.get(last + 1).copied().unwrap_or(to);
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for (index, point) in points[..=last].iter().enumerate() {
        let minutes = minutes_at(zone, *point);
        let until = points.get(index + 1).copied().unwrap_or(end);
        match spans.last_mut() {
            Some((known, earlier)) if *known == minutes => *earlier = until,
            _ => spans.push((minutes, until)),
        }
    }
    let newest = &spans[spans.len().saturating_sub(CHANGES_MAX)..];
    let text = |(minutes, until): &(i64, i64)| {
        let (sign, minutes) = (if *minutes < 0 { '-' } else { '+' }, minutes.abs());
        format!(
            "{sign}{:02}:{:02} until {until}",
            minutes / 60,
            minutes % 60
        )
    };
    newest.iter().map(text).collect()
}

/// Instants at which the offset of a zone changes.
fn changes(zone: &TimeZone, from: i64, to: i64) -> Vec<i64> {
    let start = jiff::Timestamp::from_second(from).unwrap_or_default();
    let changes = zone
        .following(start)
        .map(|change| change.timestamp().as_second());
    // Twice what any zone has had.
    let most = cast::to_usize(cast::unsigned(YEARS_BACK + YEARS_AHEAD)) * 8;
    changes.take_while(|at| *at < to).take(most).collect()
}

fn minutes_at(zone: &TimeZone, seconds: i64) -> i64 {
    let instant = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    i64::from(zone.to_offset(instant).seconds()) / 60
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-03-02T00:00:00Z.
    const NOW: Timestamp = Timestamp(1_772_409_600_000_000_000);

    #[test]
    fn names_are_rules() {
        let table = [
            ("UTC", "UTC0"),
            ("+02:00", "<+0200>-02:00"),
            ("-03:30", "<-0330>+03:30"),
            ("+00:00", "<+0000>-00:00"),
            ("CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST,M3.5.0,M10.5.0/3"),
            ("JST-9", "JST-9"),
        ];
        for (name, want) in table {
            assert_eq!(rule(name, NOW).unwrap(), want, "{name}");
            assert!(Zone::new(want).is_ok());
        }
        for name in [
            "",
            "Mars/Phobos",
            "../../etc/passwd",
            "/etc/passwd",
            "Berlin",
            "+25:00",
            "+2",
            "a=b",
        ] {
            let error = rule(name, NOW).unwrap_err().to_string();
            let start = format!("the zone '{name}' is not known: expected");
            assert!(error.starts_with(&start), "{error}");
        }
    }

    /// Of every zone of this machine's database: its rule says what the database says.
    #[test]
    fn rules_say_what_the_database_says() {
        let database = jiff::tz::db();
        let mut zones = 0;
        for name in database.available() {
            let name = name.as_str();
            let Ok(zone) = database.get(name) else {
                continue;
            };
            let Ok(text) = rule(name, NOW) else { continue };
            let made = Zone::new(&text).unwrap();
            zones += 1;
            for days in -7000..3000 {
                let at = NOW.seconds().0 + days * 86_400 + 3 * 3600;
                let local = Timestamp::from_seconds(at + minutes_at(&zone, at) * 60, 0).unwrap();
                let assumed = logpond_record::Assumption::Zone;
                let near = Timestamp::from_seconds(at, 0).unwrap();
                let (read, _) = made.instant(local, assumed, near).unwrap();
                assert_eq!(read, near, "{name} {text}");
            }
        }
        // A machine without the database has no zones but those that need none.
        assert!(zones == 0 || zones > 300, "{zones}");
    }

    #[test]
    fn a_past_without_a_rule_is_written_out() {
        let database = jiff::tz::db();
        let Ok(zone) = database.get("Europe/Moscow") else {
            return;
        };
        let rule = TimeZone::posix("MSK-3").unwrap();
        let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_second();
        let (from, to) = (at("2010-12-01T00:00:00Z"), at("2030-01-01T00:00:00Z"));
        assert_eq!(
            past(&zone, &rule, from, to),
            ["+03:00 until 1301180400", "+04:00 until 1414274400"]
        );
        let berlin = database.get("Europe/Berlin").unwrap();
        let rule = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert!(past(&berlin, &rule, from, to).is_empty());
    }
}
