//! When which record is due.
//!
//! Invariant: record `n` is due at `n / rate`, whatever became of those before it. A server that
//! stalls is measured with the time that the records behind the stall had to wait, too.

use std::time::Duration;

use logpond_record::cast;

/// When the records of one connection are due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// Records a second; `None` is as fast as they are taken.
    rate: Option<f64>,
    /// Records that are sent together at most.
    batch_max: u64,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ScheduleStep {
    /// Send so many records, the first of which was due then.
    Send {
        /// Records.
        count: u64,
        /// Since the start.
        due: Duration,
    },
    /// Nothing is due before this, since the start.
    Wait(Duration),
}

impl Schedule {
    pub(super) fn new(rate: Option<f64>, batch_max: u64) -> Schedule {
        Schedule { rate, batch_max }
    }

    /// What to do at a time since the start, after so many records.
    pub(super) fn next(&self, sent: u64, now: Duration) -> ScheduleStep {
        let Some(rate) = self.rate else {
            let count = self.batch_max;
            return ScheduleStep::Send { count, due: now };
        };
        let due = Duration::from_secs_f64(cast::float(sent) / rate);
        if due > now {
            return ScheduleStep::Wait(due);
        }
        // The first is due; so are those whose time has come by now.
        let so_far = cast::whole_u64((now.as_secs_f64() * rate).floor()) + 1;
        let count = so_far.saturating_sub(sent).clamp(1, self.batch_max);
        ScheduleStep::Send { count, due }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_due_one_after_the_other() {
        let schedule = Schedule::new(Some(10.0), 100);
        let ms = Duration::from_millis;
        assert_eq!(
            schedule.next(0, ms(0)),
            ScheduleStep::Send {
                count: 1,
                due: ms(0)
            }
        );
        assert_eq!(schedule.next(1, ms(50)), ScheduleStep::Wait(ms(100)));
        assert_eq!(
            schedule.next(1, ms(450)),
            ScheduleStep::Send {
                count: 4,
                due: ms(100)
            }
        );
    }

    /// After a stall everything is late, and counts as that.
    #[test]
    fn a_stall_is_made_up_for() {
        let schedule = Schedule::new(Some(1000.0), 100);
        let now = Duration::from_secs(5);
        let due = Duration::from_secs(1);
        assert_eq!(
            schedule.next(1000, now),
            ScheduleStep::Send { count: 100, due }
        );
    }

    #[test]
    fn without_a_rate_there_is_always_more() {
        let schedule = Schedule::new(None, 100);
        let now = Duration::from_secs(3);
        assert_eq!(
            schedule.next(7, now),
            ScheduleStep::Send {
                count: 100,
                due: now
            }
        );
    }
}
