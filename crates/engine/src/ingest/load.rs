//! How busy this server is, as it tells those who send to it.
//!
//! Invariants: a level is entered at once and left only when the fill has been ten points below
//! where it was entered for [`CALM_TIME`]; so senders are not chased to and fro. Nothing here reads
//! a clock.

use std::time::Duration;

use logpond_record::cast;

/// How long the fill must have been low before a level is left.
pub(super) const CALM_TIME: Duration = Duration::from_secs(30);

/// Above this fill, in percent, a server asks senders to go elsewhere.
const YELLOW_ABOVE: u8 = 70;

/// Above this fill, in percent, a server is about to refuse.
const RED_ABOVE: u8 = 85;

/// A level is left when the fill is so far below where it was entered.
const POINTS_BELOW: u8 = 10;

/// How busy a server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Load {
    /// It takes more.
    #[default]
    Green,
    /// Whoever can should send elsewhere.
    Yellow,
    /// It is about to refuse.
    Red,
}

impl Load {
    /// The name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Load::Green => "green",
            Load::Yellow => "yellow",
            Load::Red => "red",
        }
    }

    /// The level that is entered at this fill.
    fn entered_at(fill_percent: u8) -> Load {
        match fill_percent {
            fill if fill > RED_ABOVE => Load::Red,
            fill if fill > YELLOW_ABOVE => Load::Yellow,
            _ => Load::Green,
        }
    }
}

/// The level over time.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadState {
    level: Load,
    /// Since when the fill has been low enough for a lower level, and the highest that it may be.
    calm: Option<(Duration, Load)>,
}

impl LoadState {
    /// Notes the fill of what fills up first, in percent, at a time since some start; gives the
    /// level.
    pub fn update(&mut self, fill_percent: u8, now: Duration) -> Load {
        let entered = Load::entered_at(fill_percent);
        if entered >= self.level {
            self.level = entered;
            self.calm = None;
            return self.level;
        }
        let lower = Load::entered_at(fill_percent.saturating_add(POINTS_BELOW));
        if lower >= self.level {
            self.calm = None;
            return self.level;
        }
        let (since, highest) = self.calm.unwrap_or((now, lower));
        self.calm = Some((since, highest.max(lower)));
        if now.saturating_sub(since) >= CALM_TIME {
            self.level = highest.max(lower);
            self.calm = None;
        }
        self.level
    }
}

/// How full something is, in percent.
pub(super) fn percent(used: u64, total: u64) -> u8 {
    let used = u128::from(used.min(total)) * 100;
    cast::low_u8(used / u128::from(total.max(1)))
}

#[cfg(test)]
mod tests {
    use super::Load::{Green, Red, Yellow};
    use super::*;

    #[test]
    fn levels_are_entered_at_once_and_left_late() {
        // Second, fill, level.
        let table: [&[(u64, u8, Load)]; 6] = [
            &[
                (0, 0, Green),
                (1, 70, Green),
                (2, 71, Yellow),
                (3, 85, Yellow),
                (4, 86, Red),
            ],
            &[(0, 100, Red)],
            // Not ten points lower.
            &[
                (0, 71, Yellow),
                (1, 61, Yellow),
                (100, 61, Yellow),
                (200, 70, Yellow),
            ],
            // Ten points lower, but not for long enough at a time.
            &[
                (0, 71, Yellow),
                (1, 60, Yellow),
                (30, 61, Yellow),
                (31, 60, Yellow),
                (60, 60, Yellow),
            ],
            &[
                (0, 71, Yellow),
                (1, 60, Yellow),
                (30, 60, Yellow),
                (31, 60, Green),
            ],
            // From red to the level that held all the while.
            &[
                (0, 90, Red),
                (1, 75, Red),
                (20, 20, Red),
                (31, 20, Yellow),
                (32, 20, Yellow),
                (62, 20, Green),
            ],
        ];
        for (case, steps) in table.iter().enumerate() {
            let mut state = LoadState::default();
            for (second, fill, level) in steps.iter() {
                let found = state.update(*fill, Duration::from_secs(*second));
                assert_eq!(found, *level, "case {case} second {second}");
            }
        }
    }

    #[test]
    fn fills_are_percents() {
        let table = [
            (0, 10, 0),
            (7, 10, 70),
            (10, 10, 100),
            (11, 10, 100),
            (0, 0, 0),
        ];
        for (used, total, expected) in table {
            assert_eq!(percent(used, total), expected);
        }
        assert_eq!(percent(u64::MAX, u64::MAX), 100);
    }
}
