//! What is said of a question that found nothing: see [`logpond_search::hints`].
//!
//! Invariants: an answer with a record costs nothing more; of one without, at most [`LOOK_TIME_MAX`] goes
//! into finding out which fields there are and whether records match outside of its range.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use logpond_record::{TimeRange, Timestamp};
use logpond_search::Filter;
use logpond_search::hints::{
    FieldValues, HintRequest, Outside, compared_fields, hints, in_any_case, in_any_separator,
    tried, wants_names,
};
use logpond_search::order::Direction;

use super::App;
use logpond_engine::query::{Output, RewriteStatus, Scope, Search, Trailer, ValueCount, Visitor};

/// How long may be looked for what was meant: people hardly notice it, and who asks again and again for what is
/// not there keeps no processor busy with it.
const LOOK_TIME_MAX: Duration = Duration::from_millis(500);

/// Matches outside of the range that are counted on each side, and those in it with upper and lower case alike.
const OUTSIDE_MAX: u64 = 1000;

/// Values of a field that are looked at; one with more is not looked at for a value that was meant.
const VALUES_MAX: usize = 1000;

/// Says in the trailer which range was searched and, where nothing was found there, what was probably
/// meant. `field` is the one whose values were counted.
pub(super) fn note(
    app: &App,
    scope: &Scope,
    field: Option<&str>,
    is_empty: bool,
    trailer: &mut Trailer,
) {
    trailer.range = Some(scope.range);
    if !is_empty || trailer.missing_count > 0 || trailer.is_cancelled {
        return;
    }
    let asked = scope.asked();
    let look = SecondPass::new(app, scope);
    let written = Some(&*scope.text);
    let names = (field.is_some() || wants_names(&asked, written)).then(|| look.names());
    let names = names.flatten();
    let names: Option<Vec<&str>> = names
        .as_ref()
        .map(|names| names.iter().map(|name| &**name).collect());
    let sides = [
        (
            TimeRange {
                to: scope.range.from,
                ..TimeRange::ALL
            },
            Direction::Backward,
        ),
        (
            TimeRange {
                from: scope.range.to,
                ..TimeRange::ALL
            },
            Direction::Forward,
        ),
    ];
    let [before, behind] = sides.map(|(range, direction)| match trailer.rows {
        0 => look.matches(range, direction),
        // Of `top` over a field that no record has.
        _ => None,
    });
    let (mut values, mut any_case, mut any_separator) = (Vec::new(), None, None);
    if trailer.rows == 0 {
        for name in compared_fields(&asked, names.as_deref()) {
            values.extend(look.values(name));
        }
        any_case = in_any_case(&asked).and_then(|filter| look.count(&filter, OUTSIDE_MAX));
        if any_case.is_none_or(|(count, _)| count == 0) {
            let loose = in_any_separator(&asked);
            any_separator = loose.and_then(|filter| look.count(&filter, OUTSIDE_MAX));
        }
    }
    let found = hints(&HintRequest {
        filter: &asked,
        written,
        field,
        names: names.as_deref(),
        values: &values,
        any_case,
        any_separator,
        before,
        behind,
    });
    trailer.hints = match trailer.rows {
        0 => {
            let try_out = |hint| tried(hint, |filter| look.count(filter, 1));
            found.into_iter().map(try_out).collect()
        }
        _ => found,
    };
}

/// Says in the trailer that no record of the range has a field by which records were told apart, if that is so.
pub(super) fn note_unknown_field(app: &App, scope: &Scope, field: &str, trailer: &mut Trailer) {
    if trailer.missing_count > 0 || trailer.is_cancelled {
        return;
    }
    let Some(names) = SecondPass::new(app, scope).names() else {
        return;
    };
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    trailer.hints = hints(&HintRequest {
        filter: &Filter::All,
        written: None,
        field: Some(field),
        names: Some(&names),
        values: &[],
        any_case: None,
        any_separator: None,
        before: None,
        behind: None,
    });
}

/// A bounded second look.
struct SecondPass<'a> {
    app: &'a App,
    scope: &'a Scope,
    until: Instant,
}

/// Matches that were seen.
#[derive(Clone, Copy, Default)]
struct MatchStats {
    count: u64,
    first: Option<Timestamp>,
}

struct Found {
    stats: MatchStats,
    is_all: bool,
}

impl<'a> SecondPass<'a> {
    fn new(app: &'a App, scope: &'a Scope) -> SecondPass<'a> {
        SecondPass {
            app,
            scope,
            until: Instant::now() + LOOK_TIME_MAX,
        }
    }

    /// Names of the fields of the range's records, or of all if there are none; `None` if they are too many
    /// or it takes too long.
    fn names(&self) -> Option<Vec<String>> {
        let names = self.names_in(self.scope.range)?;
        if names.is_empty() {
            self.names_in(TimeRange::ALL)
        } else {
            Some(names)
        }
    }

    fn names_in(&self, range: TimeRange) -> Option<Vec<String>> {
        let (mut out, _receiver) = self.output();
        let found = self
            .app
            .engine
            .field_types(&Scope::all(range), false, &mut out);
        let (types, trailer) = found.ok()?;
        let is_whole = trailer.missing_count == 0 && !types.is_cut();
        is_whole.then(|| types.fields().map(|(name, _)| name.to_owned()).collect())
    }

    /// The values of a field in the range, the most frequent first; `None` if it takes too long.
    fn values(&self, name: String) -> Option<FieldValues> {
        let (mut out, _receiver) = self.output();
        let scope = Scope::all(self.scope.range);
        let engine = &self.app.engine;
        let (found, trailer) = engine
            .top_values(&scope, &name, VALUES_MAX, &mut out)
            .ok()?;
        if trailer.missing_count > 0 {
            return None;
        }
        let is_all = found.len() < VALUES_MAX;
        let is_number = |found: &ValueCount| !matches!(&*found.text, "null" | "true" | "false");
        let found = found
            .into_iter()
            .filter(|found| !found.is_bare || is_number(found));
        let values = found.map(|found| found.text).collect();
        Some(FieldValues {
            name,
            values,
            is_all,
        })
    }

    /// How many records of the range match another filter, at most `count_max`, and whether these are all.
    fn count(&self, filter: &Filter, count_max: u64) -> Option<(u64, bool)> {
        let scope = Scope::of_filter(filter, self.scope.range).ok()?;
        let found = self.found(scope, Direction::Backward, count_max);
        Some((found.stats.count, found.is_all))
    }

    /// The matches that are nearest to the range, in this direction from it.
    fn matches(&self, range: TimeRange, direction: Direction) -> Option<Outside> {
        if range.from >= range.to {
            return None;
        }
        let mut scope = self.scope.copied();
        scope.range = range;
        let found = self.found(scope, direction, OUTSIDE_MAX);
        Some(Outside {
            count: found.stats.count,
            is_all: found.is_all,
            nearest: found.stats.first?,
        })
    }

    fn found(&self, scope: Scope, direction: Direction, count_max: u64) -> Found {
        let mut search = Search::new(scope);
        search.limit = Some(count_max);
        search.direction = direction;
        let seen: Arc<Mutex<MatchStats>> = Arc::default();
        // Nothing is written to it, so nobody needs to read.
        let (mut out, _receiver) = self.output();
        let seeing = Arc::clone(&seen);
        let visitor: Visitor = Box::new(move |row, _| {
            let mut seen = seeing.lock().unwrap_or_else(PoisonError::into_inner);
            seen.count += 1;
            seen.first = seen.first.or(row.time);
            RewriteStatus::GoOn
        });
        let outcome = self.app.engine.visit(&search, visitor, &mut out);
        let is_all = outcome.is_ok_and(|trailer| trailer.missing_count == 0 && !trailer.has_more);
        let stats = *seen.lock().unwrap_or_else(PoisonError::into_inner);
        Found { stats, is_all }
    }

    fn output(&self) -> (Output, tokio::sync::mpsc::Receiver<hyper::body::Bytes>) {
        let (mut out, receiver) = Output::new(self.app.shutdown.clone());
        let until = self.until;
        out.wanted_while(move || Instant::now() < until);
        (out, receiver)
    }
}
