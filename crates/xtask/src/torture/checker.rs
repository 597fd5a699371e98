//! Whether a history can be that of a system that loses nothing, counts once and claims no more
//! than it knows.
//!
//! Pure: events in, violations out. A record counts as there from the moment on at which a node
//! acknowledged it, or at which any answer that had it ended or a follower was sent it: what was visible
//! once is durable (CLUSTER R1), so no later complete answer may lack it. Checked of each answer:
//!
//! - rows: none twice, none that nobody sent or that is altered, none of a push that was refused;
//! - complete: nothing is absent that was there when the question began;
//! - not complete: something is named as missing, and each record that is absent although it was
//!   acknowledged lies in what is named, by the node that took it and by the time, which may be that
//!   of a clock that was wrong by then;
//! - counts: at most what was sent until the end, and if complete at least what was there before.
//!
//! And of each question: a node that was running all the time answers to the end. What followers are
//! sent is judged in `followers`.

use std::collections::BTreeMap;
use std::fmt;

use logpond_record::Timestamp;

use super::history::{
    Answer, Client, Event, FollowerEvent, InterfaceQuestion, Micros, Place, QueryResult, Question,
    runs,
};

mod followers;
#[cfg(test)]
mod tests;

/// How far the stamps of nodes and ours may be apart: the system's clock is slewed, ours is not.
const CLOCK_SLACK_NS: i64 = 50_000_000;

const DAY_NS: i64 = 86_400_000_000_000;

/// How long after a process was started again somebody may meet the end of its earlier life.
const GRACE: Micros = 1_000_000;

/// What is known of the run beside its events.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// Names of clients.
    pub(super) clients: Vec<String>,
    /// Addresses by which nodes name each other, by place; empty for what is no node.
    pub(super) addresses: Vec<String>,
    /// The system's time when the run began.
    pub(super) start_time: Timestamp,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// Its kind in capitals.
    pub(super) kind: &'static str,
    /// What, where and when.
    pub(super) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.text)
    }
}

/// What became of a record.
#[derive(Clone, Copy, Debug)]
struct Fate {
    sent: Micros,
    acknowledged: Option<(Micros, Place)>,
    /// When an answer that had it ended.
    seen: Option<Micros>,
    is_refused: bool,
}

impl Fate {
    /// From when on it must be in every complete answer.
    fn there(&self) -> Option<Micros> {
        let acknowledged = self.acknowledged.map(|(at, _)| at);
        acknowledged.into_iter().chain(self.seen).min()
    }
}

/// What is known of all records, by client and number.
struct Ledger<'a> {
    facts: &'a Facts,
    fates: Vec<Vec<Fate>>,
    /// When each record was there, and sent, per client in order.
    there: Vec<Vec<Micros>>,
    sent: Vec<Vec<Micros>>,
    /// Clocks that became wrong: whose, when, and by how many days.
    clocks: Vec<(Place, Micros, i64)>,
}

/// All that is wrong with a history.
pub(super) fn check(events: &[Event], facts: &Facts) -> Vec<Violation> {
    let ledger = Ledger::new(events, facts);
    let mut violations = Vec::new();
    for event in events {
        match event {
            Event::Answered(answer) => ledger.check(answer, &mut violations),
            Event::Unanswered {
                place,
                began,
                ended,
                why,
                question,
            } if !was_down(events, *place, *began, *ended) => violations.push(Violation {
                kind: "NO ANSWER",
                text: format!(
                    "{} was up and did not answer {question:?}, asked at {began}, until {ended}: \
                     {why}",
                    ledger.place(*place)
                ),
            }),
            Event::Wrong { kind, text, at } => violations.push(Violation {
                kind,
                text: format!("at {at}: {text}"),
            }),
            _ => {}
        }
    }
    followers::check(&ledger, events, &mut violations);
    violations
}

/// Records that must be there at the end, by client: acknowledged or seen.
pub(super) fn there(events: &[Event], facts: &Facts) -> Vec<Vec<u64>> {
    let ledger = Ledger::new(events, facts);
    let numbers = |fates: &Vec<Fate>| {
        let found = (0..).zip(fates).filter(|(_, fate)| fate.there().is_some());
        found.map(|(number, _)| number).collect()
    };
    ledger.fates.iter().map(numbers).collect()
}

/// Whether a process was down at some time of an interval.
fn was_down(events: &[Event], place: Place, began: Micros, ended: Micros) -> bool {
    let mut since: Option<Micros> = None;
    for event in events {
        match event {
            Event::Broken { down, at, .. } if down.contains(&place) => since = Some(*at),
            Event::Healed { down, at, .. } if down.contains(&place) => {
                let had_begun = since.take().is_some_and(|from| from <= ended);
                if had_begun && at + GRACE >= began {
                    return true;
                }
            }
            _ => {}
        }
    }
    since.is_some_and(|from| from <= ended)
}

impl<'a> Ledger<'a> {
    fn new(events: &[Event], facts: &'a Facts) -> Ledger<'a> {
        let mut fates: Vec<Vec<Fate>> = vec![Vec::new(); facts.clients.len()];
        for event in events {
            if let Event::Sent {
                client,
                numbers,
                at,
            } = event
            {
                // Numbers are dense; what is sent again was sent before.
                for _ in fates[*client].len() as u64..numbers.end {
                    fates[*client].push(Fate {
                        sent: *at,
                        acknowledged: None,
                        seen: None,
                        is_refused: false,
                    });
                }
            }
        }
        let mut ledger = Ledger {
            facts,
            fates,
            there: Vec::new(),
            sent: Vec::new(),
            clocks: Vec::new(),
        };
        events.iter().for_each(|event| ledger.note(event));
        for fates in &ledger.fates {
            let mut there: Vec<Micros> = fates.iter().filter_map(Fate::there).collect();
            let kept = fates.iter().filter(|fate| !fate.is_refused);
            let mut sent: Vec<Micros> = kept.map(|fate| fate.sent).collect();
            there.sort_unstable();
            sent.sort_unstable();
            ledger.there.push(there);
            ledger.sent.push(sent);
        }
        ledger
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Acknowledged {
                client,
                numbers,
                place,
                at,
                ..
            } => {
                for fate in self.some(*client, numbers.clone()) {
                    fate.acknowledged.get_or_insert((*at, *place));
                }
            }
            Event::Refused {
                client, numbers, ..
            } => {
                self.some(*client, numbers.clone())
                    .for_each(|fate| fate.is_refused = true);
            }
            Event::Clock { place, days, at } => self.clocks.push((*place, *at, *days)),
            Event::Answered(answer) => {
                let Some((client, _)) = answer.question.rows() else {
                    return;
                };
                let QueryResult::Rows { numbers, .. } = &answer.found else {
                    return;
                };
                for number in numbers {
                    self.see(client, *number, answer.ended);
                }
            }
            Event::Followed {
                what: FollowerEvent::Shown(rows),
                at,
                ..
            } => {
                for row in rows {
                    self.see(row.client, row.number, *at);
                }
            }
            _ => {}
        }
    }

    fn see(&mut self, client: Client, number: u64, at: Micros) {
        for fate in self.some(client, number..number + 1) {
            fate.seen = Some(fate.seen.map_or(at, |seen| seen.min(at)));
        }
    }

    fn some(
        &mut self,
        client: Client,
        numbers: std::ops::Range<u64>,
    ) -> impl Iterator<Item = &mut Fate> {
        let fates = &mut self.fates[client];
        let end = fates.len().min(numbers.end as usize);
        let start = end.min(numbers.start as usize);
        fates[start..end].iter_mut()
    }

    fn place(&self, place: Place) -> String {
        format!("place {place} ({})", self.facts.addresses[place])
    }

    fn check(&self, answer: &Answer, violations: &mut Vec<Violation>) {
        let (
            place,
            Answer {
                question,
                began,
                ended,
                ..
            },
        ) = (self.place(answer.place), answer);
        let mut found = |kind, what: String| {
            let at = format!("{question:?} to {place}, from {began} to {ended}");
            violations.push(Violation {
                kind,
                text: format!("{at}: {what}"),
            });
        };
        if !answer.is_complete && answer.missing.is_empty() {
            found(
                "UNTRUTHFUL GAP",
                "not complete, and nothing is said to be missing".into(),
            );
        }
        match (&answer.question, &answer.found) {
            (Question::Count(client), QueryResult::Counts(counts)) => {
                self.check_count(*client, counts, answer, &mut found);
            }
            (Question::Top, QueryResult::Counts(counts)) => {
                for client in 0..self.facts.clients.len() {
                    self.check_count(client, counts, answer, &mut found);
                }
            }
            (Question::Through(through), QueryResult::Counts(counts)) => {
                self.check_count(through.client, counts, answer, &mut found);
            }
            (
                Question::Rows(client, range)
                | Question::Pages(client, range)
                | Question::Through(InterfaceQuestion { client, range, .. }),
                QueryResult::Rows { numbers, altered },
            ) => {
                if !altered.is_empty() {
                    found("INVENTED", format!("altered: {:?}", runs(altered)));
                }
                self.check_rows(*client, numbers, answer, &mut found);
                self.check_absent(*client, range.clone(), numbers, answer, &mut found);
            }
            _ => found(
                "WRONG FORM",
                "the answer is not one to this question".into(),
            ),
        }
    }

    fn check_count(
        &self,
        client: Client,
        counts: &BTreeMap<Client, u64>,
        answer: &Answer,
        found: &mut impl FnMut(&'static str, String),
    ) {
        let count = counts.get(&client).copied().unwrap_or(0);
        let least = self.there[client].partition_point(|at| *at < answer.began) as u64;
        let most = self.sent[client].partition_point(|at| *at <= answer.ended) as u64;
        let name = &self.facts.clients[client];
        if count > most {
            found(
                "WRONG COUNT",
                format!("{count} of {name}, of which {most} were sent"),
            );
        }
        if answer.is_complete && count < least {
            found(
                "FALSE COMPLETE",
                format!("{count} of {name}, of which {least} were there"),
            );
        }
    }

    /// No row twice, and none that cannot be.
    fn check_rows(
        &self,
        client: Client,
        numbers: &[u64],
        answer: &Answer,
        found: &mut impl FnMut(&'static str, String),
    ) {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        let twice: Vec<u64> = sorted
            .windows(2)
            .filter(|pair| pair[0] == pair[1])
            .map(|pair| pair[0])
            .collect();
        // What one page had from a copy, because its original could not be read, the next may have
        // from the original, elsewhere in the order.
        let is_one_view = answer.question.is_one_view() || answer.is_complete;
        if !twice.is_empty() && is_one_view {
            found("DUPLICATE", format!("{:?}", runs(&twice)));
        }
        sorted.dedup();
        let fate = |number: &u64| self.fates[client].get(*number as usize);
        let unsent = |n: &&u64| fate(n).is_none_or(|fate| fate.sent > answer.ended);
        let invented: Vec<u64> = sorted.iter().filter(unsent).copied().collect();
        if !invented.is_empty() {
            found("INVENTED", format!("never sent: {:?}", runs(&invented)));
        }
        let refused = |n: &&u64| fate(n).is_some_and(|fate| fate.is_refused);
        let kept: Vec<u64> = sorted.iter().filter(refused).copied().collect();
        if !kept.is_empty() {
            found("KEPT THOUGH REFUSED", format!("{:?}", runs(&kept)));
        }
    }

    /// What was there and is not in the answer.
    fn check_absent(
        &self,
        client: Client,
        range: std::ops::Range<u64>,
        numbers: &[u64],
        answer: &Answer,
        found: &mut impl FnMut(&'static str, String),
    ) {
        let had: std::collections::BTreeSet<u64> = numbers.iter().copied().collect();
        let fates = (0..).zip(&self.fates[client]);
        let absent: Vec<(u64, &Fate)> = fates
            .filter(|(number, fate)| {
                let is_due = fate.there().is_some_and(|at| at < answer.began);
                range.contains(number) && is_due && !had.contains(number)
            })
            .collect();
        if absent.is_empty() {
            return;
        }
        if answer.is_complete {
            let numbers: Vec<u64> = absent.iter().map(|(number, _)| *number).collect();
            found("FALSE COMPLETE", format!("absent: {:?}", runs(&numbers)));
            return;
        }
        if answer.is_missing_cut {
            return;
        }
        let gaps: Vec<Gap> = answer.missing.iter().map(|text| Gap::read(text)).collect();
        let unexplained: Vec<u64> = absent
            .iter()
            .filter(|(_, fate)| !gaps.iter().any(|gap| self.explains(gap, fate)))
            .map(|(number, _)| *number)
            .collect();
        if !unexplained.is_empty() {
            let (runs, missing) = (runs(&unexplained), &answer.missing);
            found(
                "UNTRUTHFUL GAP",
                format!("absent: {runs:?}, said: {missing:?}"),
            );
        }
    }

    /// Whether a record may be in what is named: the node that took it, and the time at which it
    /// must have done so.
    fn explains(&self, gap: &Gap, fate: &Fate) -> bool {
        let time = |at: Micros| {
            let nanos = i64::try_from(at).unwrap_or(i64::MAX).saturating_mul(1_000);
            self.facts.start_time.saturating_add(nanos)
        };
        let (behind, ahead) = self.days_off(fate);
        let latest = fate
            .there()
            .map_or(Timestamp::MAX, time)
            .saturating_add(CLOCK_SLACK_NS + ahead * DAY_NS);
        let earliest = time(fate.sent).saturating_add(behind * DAY_NS - CLOCK_SLACK_NS);
        let in_time = gap.from <= latest.to_string()
            && gap.to.as_ref().is_none_or(|to| *to >= earliest.to_string());
        let Some(place) = gap.node.as_deref().and_then(|name| {
            self.facts
                .addresses
                .iter()
                .position(|address| address == name)
        }) else {
            return in_time;
        };
        in_time && fate.acknowledged.is_none_or(|(_, by)| by == place)
    }

    /// By how many days the receive time of a record may be off at most, to either side. A node whose clock
    /// was ahead does not go back to earlier times.
    fn days_off(&self, fate: &Fate) -> (i64, i64) {
        let by = fate.acknowledged.map(|(_, by)| by);
        let there = fate.there().unwrap_or(Micros::MAX);
        let may_count = |(place, at, days): &(Place, Micros, i64)| {
            (by.is_none_or(|by| by == *place) && *at <= there).then_some(*days)
        };
        let days = self.clocks.iter().filter_map(may_count);
        days.fold((0, 0), |(behind, ahead), days| {
            (days.min(behind), days.max(ahead))
        })
    }
}

/// What an answer says that it lacks. Times are texts of one width, which compare as they are.
#[derive(Debug, PartialEq, Eq)]
struct Gap {
    /// The address of the node; none if it can be any.
    node: Option<String>,
    from: String,
    /// None if it is open.
    to: Option<String>,
}

impl Gap {
    /// Reads `node ADDR: what it took in from T to T (…)`, `… from T on (…)` and `… since T or later
    /// (…)`. Anything else names no time, so it may be any.
    fn read(text: &str) -> Gap {
        let node = text
            .strip_prefix("node ")
            .and_then(|rest| rest.split_once(": "));
        let (node, rest) = match node {
            Some((node, rest)) => (Some(node.to_owned()), rest),
            None => (None, text.split_once(": ").map_or(text, |(_, rest)| rest)),
        };
        let said = rest.strip_prefix("what it took in ").unwrap_or_default();
        let words: Vec<&str> = said.split(' ').collect();
        match words[..] {
            ["from", from, "to", to, ..] => Gap {
                node,
                from: from.to_owned(),
                to: Some(to.to_owned()),
            },
            ["from", from, "on", ..] | ["since", from, "or", ..] => Gap {
                node,
                from: from.to_owned(),
                to: None,
            },
            _ => Gap {
                node: None,
                from: String::new(),
                to: None,
            },
        }
    }
}
