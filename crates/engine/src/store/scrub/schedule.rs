//! Which segment is read next to find damage, when, and how fast: decisions without IO.
//!
//! Invariants:
//! - A segment is due again between half of the period and all of it after it was checked or made,
//!   or after the scrub of its directory began. Where in between, its name says: what was made
//!   together is not read together for ever.
//! - Of several that are due the one goes first that nobody has looked at for the longest, also
//!   after a start: when each was checked is kept on disk.
//! - What is known to be damaged is not read again, but for once after a start.
//!
//! `docs/format/scrub.md` is normative for what is kept.

use std::collections::BTreeMap;
use std::time::Duration;

use logpond_record::{Id, Timestamp, cast};
use xxhash_rust::xxh3::xxh3_64;

/// The first line.
const HEADER: &str = "logpond scrub 1";

/// Bytes a second that are read at least while something is due. A segment is read from its beginning
/// after a restart, so that none may take hours.
const PACE_BYTES_MIN: u64 = 4 << 20;

/// Bytes a second that are read at most: a quarter of what a slow rotating disk reads. With more data
/// than that is enough for, a round takes longer than it is to.
const PACE_BYTES_MAX: u64 = 32 << 20;

/// How long a segment waits that could not be read: what has failed may come back by then.
const FAILURE_PAUSE_MS: i64 = 600_000;

/// How often is looked whether anything is due: segments come and go.
const LOOK_TIME_MAX: Duration = Duration::from_secs(30);

/// A segment of the local disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalSegment {
    /// Its name.
    pub(super) id: Id,
    /// Length of its file.
    pub(super) bytes: u64,
    /// Whether it is known to be damaged.
    pub(super) is_damaged: bool,
}

/// What came of reading a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All bytes have their checksums.
    Sound,
    /// Some have not.
    Damaged,
    /// The disk did not give them.
    Unreadable,
    /// A defect of this program came in between, which says nothing of the segment.
    Defect,
}

/// The next step of the scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScrubStep {
    /// Read this segment.
    Read(Id),
    /// Look again after this time, or later.
    Wait(Duration),
}

/// When segments were checked, and are to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    every_ms: i64,
    began_ms: i64,
    checked: BTreeMap<Id, Check>,
    /// Segments that could not be read: until when they wait, and whether the disk was to blame.
    put_off: BTreeMap<Id, (i64, bool)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Check {
    at_ms: i64,
    is_damaged: bool,
}

impl Schedule {
    /// Of a directory whose segments nobody has checked yet.
    pub(super) fn new(every: Duration, now: Timestamp) -> Schedule {
        Schedule {
            every_ms: i64::try_from(every.as_millis()).unwrap_or(i64::MAX),
            began_ms: now.unix_ms(),
            checked: BTreeMap::new(),
            put_off: BTreeMap::new(),
        }
    }

    /// As [`Schedule::encode`] has said it; `None` if that is something else.
    pub(super) fn decode(bytes: &[u8], every: Duration) -> Option<Schedule> {
        let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
        let mut lines = text.split('\n');
        if lines.next()? != HEADER {
            return None;
        }
        let began_ms = lines.next()?.strip_prefix("began ")?.parse().ok()?;
        let mut schedule = Schedule::new(every, Timestamp(0));
        schedule.began_ms = began_ms;
        for line in lines {
            let (id, rest) = line.split_once(' ')?;
            let (at_ms, is_damaged) = match rest.strip_suffix(" damaged") {
                Some(at) => (at.parse().ok()?, true),
                None => (rest.parse().ok()?, false),
            };
            let check = Check { at_ms, is_damaged };
            schedule.checked.insert(id.parse().ok()?, check);
        }
        Some(schedule)
    }

    /// What is to be known at the next start.
    pub(super) fn encode(&self) -> String {
        let mut text = format!("{HEADER}\nbegan {}\n", self.began_ms);
        for (id, check) in &self.checked {
            let damaged = if check.is_damaged { " damaged" } else { "" };
            text.push_str(&format!("{id} {}{damaged}\n", check.at_ms));
        }
        text
    }

    /// Forgets what is not there any more, and keeps what others have found to be damaged. Gives
    /// whether anything is to be kept that was not known.
    pub(super) fn follow(&mut self, stored: &[LocalSegment], now: Timestamp) -> bool {
        let present: BTreeMap<Id, bool> = stored.iter().map(|s| (s.id, s.is_damaged)).collect();
        self.put_off.retain(|id, _| present.contains_key(id));
        let before = self.checked.len();
        self.checked.retain(|id, _| present.contains_key(id));
        let mut has_changed = before != self.checked.len();
        for (id, _) in present.into_iter().filter(|(_, is_damaged)| *is_damaged) {
            let known = self.checked.get(&id).is_some_and(|check| check.is_damaged);
            has_changed |= !known;
            if !known {
                self.checked.insert(id, Check::damaged(now));
            }
        }
        has_changed
    }

    /// What to do.
    pub(super) fn next(&self, stored: &[LocalSegment], now: Timestamp) -> ScrubStep {
        let now_ms = now.unix_ms();
        let sound = stored.iter().filter(|segment| !segment.is_damaged);
        let due = |segment: &LocalSegment| {
            let since_ms = self.since_ms(segment.id, now_ms);
            (self.due_ms(segment.id, since_ms), since_ms, segment.id)
        };
        let is_due = |(due_ms, ..): &(i64, i64, Id)| *due_ms <= now_ms;
        let first = sound.clone().map(due).filter(is_due);
        if let Some((_, _, id)) = first.min_by_key(|(_, since_ms, id)| (*since_ms, *id)) {
            return ScrubStep::Read(id);
        }
        let soonest_ms = sound.map(|segment| due(segment).0).min();
        let wait_ms = soonest_ms.map(|due_ms| due_ms.saturating_sub(now_ms));
        let wait = wait_ms.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs()));
        ScrubStep::Wait(wait.map_or(LOOK_TIME_MAX, |wait| wait.min(LOOK_TIME_MAX)))
    }

    /// Notes what came of reading a segment. Gives whether it is to be taken for damaged: also if it
    /// could not be read twice, some time apart.
    pub(super) fn note(&mut self, id: Id, outcome: Outcome, now: Timestamp) -> bool {
        let now_ms = now.unix_ms();
        let failed = self.put_off.remove(&id);
        let has_failed = failed.is_some_and(|(_, is_disk)| is_disk);
        let is_damaged = match outcome {
            Outcome::Sound => false,
            Outcome::Damaged => true,
            Outcome::Unreadable if has_failed => true,
            Outcome::Unreadable | Outcome::Defect => {
                let is_disk = has_failed || outcome == Outcome::Unreadable;
                let until_ms = now_ms.saturating_add(FAILURE_PAUSE_MS);
                self.put_off.insert(id, (until_ms, is_disk));
                return false;
            }
        };
        let check = Check {
            at_ms: now_ms,
            is_damaged,
        };
        self.checked.insert(id, check);
        is_damaged
    }

    /// Since when nobody has checked the segment that was checked or made before all others.
    pub(super) fn oldest(&self, stored: &[LocalSegment], now: Timestamp) -> Option<Timestamp> {
        let sound = stored.iter().filter(|segment| !segment.is_damaged);
        let since = sound.map(|segment| self.since_ms(segment.id, now.unix_ms()));
        since.min().map(at_ms)
    }

    /// Bytes a second to read while something is due: twice what would be enough for the period, since
    /// the second half of it has to be.
    pub(super) fn pace(&self, stored: &[LocalSegment]) -> u64 {
        let bytes: u64 = stored.iter().map(|segment| segment.bytes).sum();
        let every_ms = u128::from(self.every_ms.max(1).unsigned_abs());
        let needed = u128::from(bytes) * 2 * 1000 / every_ms;
        u64::try_from(needed)
            .unwrap_or(u64::MAX)
            .clamp(PACE_BYTES_MIN, PACE_BYTES_MAX)
    }

    /// Since when a segment has not been checked. What is said to be later than now was said by a
    /// clock that was wrong.
    fn since_ms(&self, id: Id, now_ms: i64) -> i64 {
        let checked = self.checked.get(&id).map(|check| check.at_ms);
        let made = i64::try_from(id.received_ms()).ok();
        let known = [checked, made, Some(self.began_ms)].into_iter().flatten();
        known.filter(|ms| *ms <= now_ms).max().unwrap_or(0)
    }

    /// When a segment is to be read that has not been checked since then.
    fn due_ms(&self, id: Id, since_ms: i64) -> i64 {
        if let Some((until_ms, _)) = self.put_off.get(&id) {
            return *until_ms;
        }
        if self.checked.get(&id).is_some_and(|check| check.is_damaged) {
            return i64::MIN;
        }
        let half = self.every_ms / 2;
        let place = xxh3_64(&id.0.to_be_bytes()) >> 32;
        // Below `half`, which a product of 32 and 63 bits is after the shift.
        let later = (i128::from(half) * i128::from(place)) >> 32;
        since_ms
            .saturating_add(half)
            .saturating_add(cast::low_i64(later))
    }
}

fn at_ms(ms: i64) -> Timestamp {
    Timestamp(ms.saturating_mul(1_000_000))
}

impl Check {
    fn damaged(now: Timestamp) -> Check {
        Check {
            at_ms: now.unix_ms(),
            is_damaged: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::Incarnation;

    use super::*;

    const HOUR_MS: i64 = 3_600_000;
    const DAY: Duration = Duration::from_secs(86_400);
    const START_MS: i64 = 1_772_409_600_000;

    /// So many hours after the scrub began.
    fn hour(hours: i64) -> Timestamp {
        at_ms(START_MS + hours * HOUR_MS)
    }

    /// A segment that was made so many hours after the scrub began.
    fn made(number: u64, hours: i64) -> LocalSegment {
        let made_ms = (START_MS + hours * HOUR_MS) as u64;
        LocalSegment {
            id: Id::new(made_ms, Incarnation(5), number),
            bytes: 1000,
            is_damaged: false,
        }
    }

    /// Reads what is due, each in no time, until this hour; gives which, in which hour.
    fn run(
        schedule: &mut Schedule,
        stored: &[LocalSegment],
        hours: std::ops::Range<i64>,
    ) -> Vec<(Id, i64)> {
        let mut read = Vec::new();
        for at in hours {
            while let ScrubStep::Read(id) = schedule.next(stored, hour(at)) {
                assert!(read.len() < 10_000, "one is read without end");
                read.push((id, at));
                schedule.note(id, Outcome::Sound, hour(at));
            }
        }
        read
    }

    #[test]
    fn each_is_read_once_in_the_period_and_not_all_at_once() {
        let mut schedule = Schedule::new(10 * DAY, hour(0));
        let stored: Vec<LocalSegment> = (0..200).map(|n| made(n, -1)).collect();
        let read = run(&mut schedule, &stored, 0..4800);
        for segment in &stored {
            let hours = read.iter().filter(|(id, _)| *id == segment.id);
            let hours: Vec<i64> = hours.map(|(_, at)| *at).collect();
            let gaps = [0].iter().chain(&hours).zip(&hours);
            for (before, after) in gaps {
                assert!((120..=240).contains(&(after - before)), "{hours:?}");
            }
            assert!(4800 - hours.last().unwrap() <= 240);
        }
        let most = (0..4800).map(|hour| read.iter().filter(|(_, at)| *at == hour).count());
        assert!(most.max().unwrap() < 20);
    }

    #[test]
    fn restarts_change_nothing() {
        let stored: Vec<LocalSegment> = (0..50).map(|n| made(n, -1)).collect();
        let mut whole = Schedule::new(10 * DAY, hour(0));
        let expected = run(&mut whole, &stored, 0..1000);
        let (mut schedule, mut read) = (Schedule::new(10 * DAY, hour(0)), Vec::new());
        for day in 0..100 {
            let kept = schedule.encode();
            schedule = Schedule::decode(kept.as_bytes(), 10 * DAY).unwrap();
            read.extend(run(&mut schedule, &stored, 10 * day..10 * day + 10));
        }
        assert_eq!(read, expected);
    }

    #[test]
    fn who_waits_for_the_longest_goes_first() {
        let mut schedule = Schedule::new(DAY, hour(0));
        let (early, late, new) = (made(1, 1), made(2, 2), made(3, 99));
        let stored = [new, late, early];
        assert_eq!(schedule.next(&stored, hour(100)), ScrubStep::Read(early.id));
        assert_eq!(schedule.oldest(&stored, hour(100)), Some(hour(1)));
        assert!(!schedule.note(early.id, Outcome::Sound, hour(100)));
        assert_eq!(schedule.next(&stored, hour(100)), ScrubStep::Read(late.id));
        assert_eq!(schedule.oldest(&stored, hour(100)), Some(hour(2)));
        assert!(!schedule.note(late.id, Outcome::Sound, hour(100)));
        assert_eq!(
            schedule.next(&stored, hour(100)),
            ScrubStep::Wait(LOOK_TIME_MAX)
        );
        assert_eq!(schedule.oldest(&stored, hour(100)), Some(hour(99)));
        assert_eq!(schedule.oldest(&[], hour(100)), None);
        assert_eq!(
            schedule.next(&[], hour(100)),
            ScrubStep::Wait(LOOK_TIME_MAX)
        );
    }

    #[test]
    fn the_wait_ends_when_something_is_due() {
        let schedule = Schedule::new(Duration::from_secs(10), hour(0));
        let stored = [made(1, 0), made(2, 0)];
        let ScrubStep::Wait(wait) = schedule.next(&stored, hour(0)) else {
            panic!("nothing is due yet");
        };
        assert!((5..10).contains(&wait.as_secs()), "{wait:?}");
        let then = Timestamp(hour(0).0 + wait.as_nanos() as i64);
        assert!(matches!(schedule.next(&stored, then), ScrubStep::Read(_)));
    }

    #[test]
    fn what_is_damaged_is_read_once_more_after_a_start() {
        let mut schedule = Schedule::new(DAY, hour(0));
        let mut stored = [made(1, 0)];
        let id = stored[0].id;
        assert!(schedule.note(id, Outcome::Damaged, hour(24)));
        stored[0].is_damaged = true;
        assert!(!schedule.follow(&stored, hour(24)), "it is known");
        assert_eq!(
            schedule.next(&stored, hour(1000)),
            ScrubStep::Wait(LOOK_TIME_MAX)
        );
        assert_eq!(schedule.oldest(&stored, hour(1000)), None);
        let kept = schedule.encode();
        assert!(kept.ends_with(" damaged\n"), "{kept}");
        let mut again = Schedule::decode(kept.as_bytes(), DAY).unwrap();
        stored[0].is_damaged = false;
        assert_eq!(again.next(&stored, hour(25)), ScrubStep::Read(id));
        // What was to blame may have been a cable.
        assert!(!again.note(id, Outcome::Sound, hour(25)));
        assert_eq!(
            again.next(&stored, hour(26)),
            ScrubStep::Wait(LOOK_TIME_MAX)
        );
    }

    #[test]
    fn what_others_find_is_kept_and_what_is_gone_is_forgotten() {
        let mut schedule = Schedule::new(DAY, hour(0));
        let mut stored = [made(1, 0), made(2, 0)];
        stored[0].is_damaged = true;
        assert!(schedule.follow(&stored, hour(1)));
        assert!(!schedule.follow(&stored, hour(2)));
        schedule.note(stored[1].id, Outcome::Unreadable, hour(2));
        assert!(schedule.follow(&[], hour(3)));
        assert_eq!(schedule.encode(), Schedule::new(DAY, hour(0)).encode());
        assert!(schedule.put_off.is_empty());
    }

    #[test]
    fn what_cannot_be_read_twice_is_damaged_and_a_defect_says_nothing() {
        use Outcome::{Damaged, Defect, Sound, Unreadable};
        let table: [(&[Outcome], bool); 7] = [
            (&[Sound], false),
            (&[Damaged], true),
            (&[Unreadable], false),
            (&[Unreadable, Sound, Unreadable], false),
            (&[Unreadable, Unreadable], true),
            (&[Unreadable, Defect, Unreadable], true),
            (&[Defect, Defect, Defect], false),
        ];
        for (outcomes, expected) in table {
            let mut schedule = Schedule::new(DAY, hour(0));
            let segment = made(1, 0);
            let mut then_ms = hour(24).unix_ms();
            let mut is_damaged = false;
            for outcome in outcomes {
                let now = at_ms(then_ms);
                let next = schedule.next(&[segment], now);
                assert_eq!(next, ScrubStep::Read(segment.id), "{outcomes:?}");
                is_damaged = schedule.note(segment.id, *outcome, now);
                let next = schedule.next(&[segment], now);
                assert!(
                    is_damaged || matches!(next, ScrubStep::Wait(_)),
                    "{outcomes:?}"
                );
                then_ms += match outcome {
                    Sound => 24 * HOUR_MS,
                    _ => FAILURE_PAUSE_MS,
                };
            }
            assert_eq!(is_damaged, expected, "{outcomes:?}");
        }
    }

    #[test]
    fn clocks_that_were_wrong_cost_no_more_than_a_round() {
        let mut schedule = Schedule::new(DAY, hour(9000));
        let (ahead, sound) = (made(1, 9000), made(2, 0));
        schedule.note(sound.id, Outcome::Sound, hour(9000));
        for segment in [ahead, sound] {
            assert!(matches!(
                schedule.next(&[segment], hour(24)),
                ScrubStep::Read(_)
            ));
        }
        assert_eq!(schedule.oldest(&[sound], hour(24)), Some(hour(0)));
    }

    #[test]
    fn the_pace_is_what_is_needed_within_bounds() {
        let gib = 1u64 << 30;
        let table = [
            (gib, 14, PACE_BYTES_MIN),
            (10_000 * gib, 14, 10_000 * gib * 2 / (14 * 86_400)),
            (100_000 * gib, 14, PACE_BYTES_MAX),
            (u64::MAX, 0, PACE_BYTES_MAX),
            (0, 0, PACE_BYTES_MIN),
        ];
        for (bytes, days, expected) in table {
            let schedule = Schedule::new(days * DAY, hour(0));
            let stored = LocalSegment {
                bytes,
                ..made(1, 0)
            };
            assert_eq!(schedule.pace(&[stored]), expected, "{bytes} in {days} d");
        }
    }

    #[test]
    fn what_was_kept_comes_back_and_nothing_else_does() {
        let mut schedule = Schedule::new(DAY, hour(0));
        schedule.note(made(1, 0).id, Outcome::Sound, hour(1));
        schedule.note(made(2, 0).id, Outcome::Damaged, hour(2));
        let kept = schedule.encode();
        assert_eq!(Schedule::decode(kept.as_bytes(), DAY), Some(schedule));
        let golden = include_str!("../../../../../testdata/scrub/v1.checked");
        let read = Schedule::decode(golden.as_bytes(), DAY).unwrap();
        assert_eq!(read.encode(), golden);
        assert_eq!(read.began_ms, START_MS);
        let checks: Vec<(i64, bool)> = read
            .checked
            .values()
            .map(|check| (check.at_ms, check.is_damaged))
            .collect();
        let day_ms = DAY.as_millis() as i64;
        let expected = [
            (START_MS + 7 * day_ms, false),
            (START_MS + 8 * day_ms, true),
        ];
        assert_eq!(checks, expected);
        for damaged in [
            "",
            "logpond scrub 1\n",
            "logpond scrub 2\nbegan 5\n",
            "logpond scrub 1\nbegan x\n",
            "logpond scrub 1\nbegan 5\n\n",
            &golden[1..],
            &golden[..golden.len() - 1],
            &golden.replace("damaged", "mended"),
            &golden.replace('K', "!"),
        ] {
            assert_eq!(
                Schedule::decode(damaged.as_bytes(), DAY),
                None,
                "{damaged:?}"
            );
        }
    }
}
