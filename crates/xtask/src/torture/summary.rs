//! What a run did, in few lines, and whether it did enough to mean anything.

use std::collections::BTreeMap;
use std::time::Duration;

use super::history::{
    self, AnswerEnd, Client, Event, FollowerEvent, Micros, QueryResult, Question,
};

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct Summary {
    sent: u64,
    acknowledged: u64,
    refused: u64,
    faults: BTreeMap<&'static str, u64>,
    complete: u64,
    incomplete: u64,
    unanswered: u64,
    rows: u64,
    /// Of answers, in order.
    times: Vec<Micros>,
    followed: FollowedSum,
    clients: BTreeMap<Client, ClientSum>,
    interfaces: BTreeMap<&'static str, InterfaceSum>,
}

/// The records of a client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientSum {
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
}

/// The answers of an interface.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InterfaceSum {
    pub(super) complete: u64,
    pub(super) incomplete: u64,
    pub(super) unanswered: u64,
}

/// What followers did.
#[derive(Debug, Default)]
struct FollowedSum {
    rows: u64,
    notices: u64,
    /// How often a follower went on at another node because it wanted to, and because the one
    /// before had ended, broken off or fallen silent.
    moves: u64,
    rescues: u64,
    position_bytes_max: usize,
    /// Whether the answer before this one ended because the follower left, and no word came since.
    left: BTreeMap<history::Follower, bool>,
}

impl FollowedSum {
    fn note(&mut self, follower: history::Follower, what: &FollowerEvent) {
        match what {
            FollowerEvent::Shown(rows) => self.rows += rows.len() as u64,
            FollowerEvent::Noticed { .. } => self.notices += 1,
            FollowerEvent::Told(position) => {
                self.position_bytes_max = self.position_bytes_max.max(position.len());
                match self.left.remove(&follower) {
                    Some(true) => self.moves += 1,
                    Some(false) => self.rescues += 1,
                    None => {}
                }
            }
            FollowerEvent::Ended { how, .. } => {
                let is_free = matches!(how, AnswerEnd::First { .. } | AnswerEnd::Left);
                let left = self.left.entry(follower).or_insert(is_free);
                *left &= is_free;
            }
            FollowerEvent::Asked { .. } | FollowerEvent::Over => {}
        }
    }
}

/// Of each second of load, the fewest acknowledged records of a run that means something: a tenth
/// of what clients can send.
const ACKNOWLEDGED_PER_SECOND_MIN: f64 = 40.0;

/// The same for answers.
const ANSWERS_PER_SECOND_MIN: f64 = 0.5;

/// Of each second of load, how often followers go on at another node because the one before fails.
const RESCUES_PER_SECOND_MIN: f64 = 0.1;

/// A run of this length, or a longer one, has met each kind of fault, and answers of both kinds.
const WHOLE_RUN: Duration = Duration::from_secs(90);

impl Summary {
    /// Counts events.
    pub(super) fn new(events: &[Event]) -> Summary {
        let mut summary = Summary::default();
        let length = |numbers: &std::ops::Range<u64>| numbers.end - numbers.start;
        for event in events {
            match event {
                Event::Sent {
                    client, numbers, ..
                } => {
                    summary.sent += length(numbers);
                    summary.clients.entry(*client).or_default().sent += length(numbers);
                }
                Event::Acknowledged {
                    client, numbers, ..
                } => {
                    summary.acknowledged += length(numbers);
                    summary.clients.entry(*client).or_default().acknowledged += length(numbers);
                }
                Event::Refused {
                    client, numbers, ..
                } => {
                    summary.refused += length(numbers);
                    summary.clients.entry(*client).or_default().refused += length(numbers);
                }
                Event::Broken { kind, .. } => *summary.faults.entry(kind).or_default() += 1,
                Event::Unanswered { question, .. } => {
                    summary.unanswered += 1;
                    summary.interface(question).unanswered += 1;
                }
                Event::Answered(answer) => {
                    if answer.is_complete {
                        summary.complete += 1;
                        summary.interface(&answer.question).complete += 1;
                    } else {
                        summary.incomplete += 1;
                        summary.interface(&answer.question).incomplete += 1;
                    }
                    if let QueryResult::Rows { numbers, .. } = &answer.found {
                        summary.rows += numbers.len() as u64;
                    }
                    summary.times.push(answer.ended - answer.began);
                }
                Event::Followed { follower, what, .. } => summary.followed.note(*follower, what),
                Event::Healed { .. } | Event::Clock { .. } | Event::Wrong { .. } => {}
            }
        }
        summary.times.sort_unstable();
        summary
    }

    fn interface(&mut self, question: &Question) -> &mut InterfaceSum {
        let name = match question {
            Question::Through(through) => through.interface,
            Question::Count(_) => "native count",
            Question::Top => "native top",
            Question::Rows(..) => "native rows",
            Question::Pages(..) => "native pages",
        };
        self.interfaces.entry(name).or_default()
    }

    /// The records of a client.
    pub(super) fn client(&self, client: Client) -> ClientSum {
        self.clients.get(&client).copied().unwrap_or_default()
    }

    /// The answers of each interface.
    pub(super) fn interfaces(&self) -> impl Iterator<Item = (&'static str, InterfaceSum)> + '_ {
        self.interfaces.iter().map(|(name, sum)| (*name, *sum))
    }

    /// The faults of each kind.
    pub(super) fn faults(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.faults.iter().map(|(kind, count)| (*kind, *count))
    }

    /// The source or interface that a run of this length did not use, if there is one: of the clients that
    /// are acknowledged, and of the interfaces that can be complete.
    pub(super) fn unused<'a>(
        &self,
        load: Duration,
        acknowledged: impl IntoIterator<Item = (Client, &'a str)>,
        interfaces: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        if load < WHOLE_RUN {
            return None;
        }
        let mut clients = acknowledged.into_iter();
        if let Some((_, name)) = clients.find(|(client, _)| self.client(*client).acknowledged == 0)
        {
            return Some(format!("no record of {name} was acknowledged"));
        }
        let is_complete = |name: &str| {
            self.interfaces
                .get(name)
                .is_some_and(|sum| sum.complete > 0)
        };
        let mut names = interfaces.into_iter();
        let name = names.find(|name| !is_complete(name))?;
        Some(format!("no answer of {name} was complete"))
    }

    /// What is too little for a run of this length, if anything.
    pub(super) fn too_little(&self, load: Duration, kinds: &[&'static str]) -> Option<String> {
        let seconds = load.as_secs_f64();
        let answers = (self.complete + self.incomplete) as f64;
        if (self.acknowledged as f64) < seconds * ACKNOWLEDGED_PER_SECOND_MIN {
            return Some(format!(
                "only {} records were acknowledged",
                self.acknowledged
            ));
        }
        if answers < seconds * ANSWERS_PER_SECOND_MIN || self.complete == 0 {
            return Some(format!(
                "only {} complete of {answers} answers",
                self.complete
            ));
        }
        if self.incomplete == 0 {
            return Some("no answer was incomplete: no fault was felt".to_owned());
        }
        let FollowedSum { rows, rescues, .. } = self.followed;
        if (rows as f64) < seconds * ACKNOWLEDGED_PER_SECOND_MIN
            || (rescues as f64) < seconds * RESCUES_PER_SECOND_MIN
        {
            return Some(format!(
                "followers were sent only {rows} rows, and went on {rescues} times after a failure"
            ));
        }
        let absent = kinds.iter().find(|kind| !self.faults.contains_key(*kind));
        match absent {
            Some(kind) if load >= WHOLE_RUN => Some(format!("there was no {kind}")),
            _ => None,
        }
    }

    fn time(&self, share: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        let at = (last as f64 * share) as usize;
        self.times
            .get(at)
            .map_or(0.0, |micros| *micros as f64 / 1e6)
    }

    /// Lines for people.
    pub(super) fn text(&self) -> String {
        let faults: Vec<String> = self
            .faults
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        format!(
            "{} records sent, {} acknowledged to clients, {} refused\n\
             faults: {}\n\
             {} answers complete, {} not, {} questions unanswered; {} rows looked at\n\
             followers: {} rows, {} notices; went on at another node {} times after a failure, {} \
             times without; longest position {} bytes\n\
             time of an answer: median {:.3} s, 99 of 100 {:.3} s, longest {:.3} s",
            self.sent,
            self.acknowledged,
            self.refused,
            faults.join(", "),
            self.complete,
            self.incomplete,
            self.unanswered,
            self.rows,
            self.followed.rows,
            self.followed.notices,
            self.followed.rescues,
            self.followed.moves,
            self.followed.position_bytes_max,
            self.time(0.5),
            self.time(0.99),
            self.time(1.0),
        )
    }
}
