//! What followers were sent. Promised is (docs/http.md, "Follow"):
//!
//! - nothing is sent twice, also not a batch that was sent again to another node. A follower that comes
//!   back with a position is sent what had not been sent before the line with that position: so what
//!   came behind the last such line may come once more, and nothing else;
//! - all is sent that there is and that comes, once it can be read: all records that were there when a
//!   follower comes to its end. Where an answer that was not followed was not complete, following from its
//!   position sends only what was taken in since it began of nodes that it could not read;
//! - a notice says that a node stops answering, or that it does so again: in turns;
//! - a followed answer ends by itself only when its server stops, and the trailer says so.

use std::collections::{BTreeMap, BTreeSet};

use super::{Client, Event, Ledger, Micros, Violation, runs, was_down};
use crate::torture::history::{self, AnswerEnd, FollowerEvent, Row};

/// How long after its disk was lost all have heard that a node was given up.
const GIVEN_UP: Micros = 30_000_000;

/// A record.
type Name = (Client, u64);

/// Judges all that followers were sent.
pub(super) fn check(ledger: &Ledger<'_>, events: &[Event], violations: &mut Vec<Violation>) {
    let mut followers: BTreeMap<history::Follower, Follower> = BTreeMap::new();
    let mut replaced: BTreeMap<String, Micros> = BTreeMap::new();
    for event in events {
        let (follower, what, at) = match event {
            Event::Followed { follower, what, at } => (follower, what, at),
            Event::Broken { kind, down, at, .. } if *kind == "lost disk" => {
                let names = down
                    .iter()
                    .map(|place| ledger.facts.addresses[*place].clone());
                replaced.extend(names.map(|address| (format!("node {address}"), *at)));
                continue;
            }
            _ => continue,
        };
        let mut found = |kind, what: String| {
            violations.push(Violation {
                kind,
                text: format!("follower {follower} at {at}: {what}"),
            });
        };
        let state = followers.entry(*follower).or_default();
        match what {
            FollowerEvent::Asked { .. } => state.come_back(*at),
            FollowerEvent::Shown(rows) => state.see(ledger, rows, *at, &mut found),
            FollowerEvent::Told(_) => state.since.clear(),
            FollowerEvent::Noticed { node, answers } => {
                // There may be two nodes of one address.
                let lost_at = replaced.get(node);
                if lost_at.is_none_or(|lost| state.asked_at > lost + GIVEN_UP) {
                    state.note(node, *answers, &mut found);
                }
            }
            FollowerEvent::Ended { place, began, how } => {
                let was_up = !state.is_over && !was_down(events, *place, *began, *at);
                let what = format!("{}, asked at {began}", ledger.place(*place));
                state.end(how, *began, was_up, &mut |kind, why: &str| {
                    found(kind, format!("{what}: {why}"));
                });
            }
            FollowerEvent::Over => {
                state.is_over = true;
                state.check_absent(ledger, *at, &mut found);
            }
        }
    }
}

/// What a follower has and may be sent.
#[derive(Default)]
struct Follower {
    shown: BTreeSet<Name>,
    /// What came behind the last position.
    since: BTreeSet<Name>,
    /// What came behind the last position when the follower went elsewhere.
    again: BTreeSet<Name>,
    /// Nodes that it was told do not answer.
    away: BTreeSet<String>,
    /// What was sent from then on must have been shown in the end, whatever could be read at first.
    owed_since: Micros,
    asked_at: Micros,
    is_over: bool,
}

impl Follower {
    fn come_back(&mut self, at: Micros) {
        self.asked_at = at;
        self.again.append(&mut self.since);
        self.away.clear();
    }

    fn see(
        &mut self,
        ledger: &Ledger<'_>,
        rows: &[Row],
        at: Micros,
        found: &mut impl FnMut(&'static str, String),
    ) {
        let mut wrong: BTreeMap<(&'static str, Client), Vec<u64>> = BTreeMap::new();
        for row in rows {
            let name = (row.client, row.number);
            let is_new = self.shown.insert(name);
            let fate = ledger.fates[row.client].get(row.number as usize);
            let kinds = [
                ("DUPLICATE", !is_new && !self.again.remove(&name)),
                (
                    "INVENTED",
                    row.is_altered || fate.is_none_or(|fate| fate.sent > at),
                ),
                (
                    "KEPT THOUGH REFUSED",
                    fate.is_some_and(|fate| fate.is_refused),
                ),
            ];
            self.since.insert(name);
            for (kind, _) in kinds.into_iter().filter(|(_, is_so)| *is_so) {
                wrong
                    .entry((kind, row.client))
                    .or_default()
                    .push(row.number);
            }
        }
        for ((kind, client), numbers) in wrong {
            let name = &ledger.facts.clients[client];
            found(kind, format!("was shown of {name} {:?}", runs(&numbers)));
        }
    }

    fn note(&mut self, node: &str, answers: bool, found: &mut impl FnMut(&'static str, String)) {
        let is_news = if answers {
            self.away.remove(node)
        } else {
            self.away.insert(node.to_owned())
        };
        if !is_news {
            found(
                "WRONG NOTICE",
                format!("{node} answers: {answers}, as it was"),
            );
        }
    }

    fn end(
        &mut self,
        how: &AnswerEnd,
        began: Micros,
        was_up: bool,
        found: &mut impl FnMut(&'static str, &str),
    ) {
        match how {
            AnswerEnd::First { is_complete } => {
                self.owed_since = if *is_complete { 0 } else { began };
            }
            AnswerEnd::Stopped { missing } if missing.is_empty() => {
                found("UNTRUTHFUL GAP", "it ended, and nothing is missing");
            }
            AnswerEnd::Stopped { .. } if was_up => found("NO ANSWER", "it was up, and ended"),
            AnswerEnd::Broken { why } if was_up => found("NO ANSWER", why),
            AnswerEnd::Left
            | AnswerEnd::Silent
            | AnswerEnd::Stopped { .. }
            | AnswerEnd::Broken { .. } => {}
        }
    }

    /// What was there and was never shown.
    fn check_absent(
        &self,
        ledger: &Ledger<'_>,
        at: Micros,
        found: &mut impl FnMut(&'static str, String),
    ) {
        for (client, fates) in ledger.fates.iter().enumerate() {
            let owed = (0..).zip(fates).filter(|(number, fate)| {
                let is_there = fate.there().is_some_and(|there| there < at);
                is_there && fate.sent >= self.owed_since && !self.shown.contains(&(client, *number))
            });
            let absent: Vec<u64> = owed.map(|(number, _)| number).collect();
            if !absent.is_empty() {
                let name = &ledger.facts.clients[client];
                found("NOT SHOWN", format!("lacks of {name} {:?}", runs(&absent)));
            }
        }
    }
}
