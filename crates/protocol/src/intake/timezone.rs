//! The zone of times that are written without one.
//!
//! A batch's label [`LABEL`] says in which zone its lines were written. The zone is not named there,
//! as whoever reads the lines may know other rules by that name or none: the label has the rules.
//!
//! ```text
//! CET-1CEST,M3.5.0,M10.5.0/3                                  a rule of POSIX (TZ)
//! +03:00 until 1301180400, +04:00 until 1414274400, MSK-3     what was different before
//! ```
//!
//! Invariants:
//! - What a rule says depends on its text, the local time and the receive time only.
//! - A rule's text is bounded, and the work for a time is bounded.
//!
//! Local times that occur twice, when clocks are put back, are the one that is nearest to the receive
//! time; of those that do not occur, when clocks are put forward, the offset before that counts, so
//! that 02:30 is what the clock shows as 03:30.

use std::fmt;
use std::sync::Arc;

use logpond_record::{Assumption, Civil, Labels, Timestamp};

/// The label with the rule. It is no field of records.
pub const LABEL: &str = "_timezone";

/// The longest text of a rule, as of a label that servers take.
pub const RULE_BYTES_MAX: usize = 4 << 10;

/// The most changes beside the rule's own. A zone with four changes a year that follow no rule, as
/// Morocco's has had, has as many in thirty years, and they have room in the text.
pub const CHANGES_MAX: usize = 128;

/// Zones that are kept compiled: a server has a few.
const ZONES_MAX: usize = 32;

/// The largest offset from UTC in minutes that has been in use is 15 hours and some; written offsets
/// go to a day.
const MINUTES_MAX: i64 = 24 * 60;

const DAY_S: i64 = 86_400;

const DAY_NS: i64 = DAY_S * 1_000_000_000;

/// How many years back a date without one may be: eight always have a 29 February, and the first one
/// tried may be in the future.
const YEARS_MAX: i64 = 10;

/// Rules that say which offset from UTC local times have.
#[derive(Clone, Debug)]
pub struct Zone {
    /// Offsets that were in use before the rule, each until an instant; ascending.
    past: Box<[Past]>,
    rule: jiff::tz::TimeZone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Past {
    /// Unix seconds.
    until: i64,
    /// East of UTC.
    minutes: i64,
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneError {
    /// It is longer than [`RULE_BYTES_MAX`], or has more than [`CHANGES_MAX`] changes.
    TooLong,
    /// This part is no offset and instant, or is not later than the one before it.
    Change(String),
    /// This part is no rule of POSIX.
    Rule(String),
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ZoneError::TooLong => write!(f, "the rule has more than {RULE_BYTES_MAX} bytes"),
            ZoneError::Change(text) => write!(f, "'{text}' is no '+HH:MM until SECONDS'"),
            ZoneError::Rule(text) => {
                write!(f, "'{text}' is no rule such as CET-1CEST,M3.5.0,M10.5.0/3")
            }
        }
    }
}

impl std::error::Error for ZoneError {}

impl Zone {
    /// Compiles a rule.
    ///
    /// # Errors
    /// Where the text is none.
    pub fn new(text: &str) -> Result<Zone, ZoneError> {
        if text.len() > RULE_BYTES_MAX {
            return Err(ZoneError::TooLong);
        }
        let (changes, rule) = match text.rsplit_once(", ") {
            Some((changes, rule)) => (Some(changes), rule),
            None => (None, text),
        };
        let mut past: Vec<Past> = Vec::new();
        for text in changes.into_iter().flat_map(|changes| changes.split(", ")) {
            let earlier = past.last().map(|past| past.until);
            let change = change(text).filter(|change| earlier.is_none_or(|at| at < change.until));
            past.push(change.ok_or_else(|| ZoneError::Change(text.to_owned()))?);
        }
        if past.len() > CHANGES_MAX {
            return Err(ZoneError::TooLong);
        }
        let rule = jiff::tz::TimeZone::posix(rule).map_err(|_| ZoneError::Rule(rule.to_owned()))?;
        let past = past.into();
        Ok(Zone { past, rule })
    }

    /// Minutes east of UTC at an instant in Unix seconds.
    fn minutes_at(&self, seconds: i64) -> i64 {
        let index = self.past.partition_point(|past| past.until <= seconds);
        if let Some(past) = self.past.get(index) {
            return past.minutes;
        }
        // Instants of records are well within the years that are known there.
        let instant = jiff::Timestamp::from_second(seconds).unwrap_or_default();
        i64::from(self.rule.to_offset(instant).seconds()) / 60
    }

    /// Minutes east of UTC of a local time, which is given as if it were UTC, in seconds.
    fn minutes_of(&self, local: i64, received: Timestamp) -> i64 {
        let before = self.minutes_at(local - DAY_S);
        let after = self.minutes_at(local + DAY_S);
        if before == after {
            return before;
        }
        let is_one = |minutes: i64| self.minutes_at(local - minutes * 60) == minutes;
        let now = received.seconds().0;
        let distance = |minutes: i64| (local - minutes * 60).abs_diff(now);
        match (is_one(before), is_one(after)) {
            (true, true) if distance(after) < distance(before) => after,
            (false, true) => after,
            _ => before,
        }
    }

    /// The instant of a local time that was read as UTC, and its offset in minutes. Where its year
    /// was assumed, too, it is the one that puts it nearest below a day after the receive time.
    pub fn instant(
        &self,
        read: Timestamp,
        assumed: Assumption,
        received: Timestamp,
    ) -> Option<(Timestamp, i64)> {
        let (local, nanos) = read.seconds();
        let at = |local: i64| {
            let minutes = self.minutes_of(local, received);
            Some((
                Timestamp::from_seconds(local - minutes * 60, nanos)?,
                minutes,
            ))
        };
        match assumed {
            Assumption::Nothing | Assumption::Year | Assumption::Day => None,
            Assumption::Zone | Assumption::DayAndZone => at(local),
            Assumption::YearAndZone => {
                let latest = received.saturating_add(DAY_NS);
                let mut civil = Civil::from_seconds(local);
                let first = civil.year + 1;
                (0..YEARS_MAX).find_map(|back| {
                    civil.year = first - back;
                    at(civil.to_seconds()?).filter(|(time, _)| *time <= latest)
                })
            }
        }
    }
}

/// Reads `+HH:MM until SECONDS`.
fn change(text: &str) -> Option<Past> {
    let (offset, until) = text.split_once(" until ")?;
    let minutes = offset_minutes(offset)?;
    let until = until.parse().ok()?;
    Some(Past { until, minutes })
}

/// Reads `+HH:MM` or `-HH:MM`.
pub fn offset_minutes(text: &str) -> Option<i64> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_once(':')?;
    let number = |text: &str| -> Option<i64> {
        let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number)
    };
    let (hours, minutes) = (number(hours)?, number(minutes).filter(|m| *m < 60)?);
    let all = hours * 60 + minutes;
    (all < MINUTES_MAX).then_some(sign * all)
}

/// Zones by their rules; `None` for those that do not compile.
#[derive(Default)]
pub(crate) struct Zones {
    known: Vec<(Box<str>, Option<Arc<Zone>>)>,
}

impl Zones {
    /// The zone that a batch declares.
    pub(crate) fn of(&mut self, labels: &Labels) -> Option<Arc<Zone>> {
        let (_, rule) = labels.iter().find(|(name, _)| &**name == LABEL)?;
        if let Some((_, zone)) = self.known.iter().find(|(known, _)| known == rule) {
            return zone.clone();
        }
        if self.known.len() >= ZONES_MAX {
            self.known.clear();
        }
        let zone = Zone::new(rule).ok().map(Arc::new);
        self.known.push((rule.clone(), zone.clone()));
        zone
    }
}

#[cfg(test)]
mod tests;
