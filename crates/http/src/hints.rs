//! What is said of a question that found nothing: see [`logpond_search::hints`].
//!
//! Invariants: an answer with a record costs nothing more; of one without, at most [`LOOK_TIME_MAX`] goes
//! into finding out which fields there are and whether records match outside of its range.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use logpond_record::{TimeRange, Timestamp};
use logpond_search::hints::{HintRequest, Outside, hints, wants_names};
use logpond_search::order::Direction;

use super::App;
use logpond_engine::query::{Output, RewriteStatus, Scope, Search, Trailer};
use logpond_render::Row;

/// How long may be looked for what was meant: people hardly notice it, and who asks again and again for what is
/// not there keeps no processor busy with it.
const LOOK_TIME_MAX: Duration = Duration::from_millis(500);

/// Matches outside of the range that are counted on each side.
const OUTSIDE_MAX: u64 = 1000;

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
    let look = SecondPass {
        app,
        scope,
        until: Instant::now() + LOOK_TIME_MAX,
    };
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
    trailer.hints = hints(&HintRequest {
        filter: &asked,
        written,
        field,
        names: names.as_deref(),
        before,
        behind,
    });
}

/// A bounded second look.
struct SecondPass<'a> {
    app: &'a App,
    scope: &'a Scope,
    until: Instant,
}

/// Matches that were seen.
#[derive(Default)]
struct MatchStats {
    count: u64,
    first: Option<Timestamp>,
}

impl SecondPass<'_> {
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

    /// The matches that are nearest to the range, in this direction from it.
    fn matches(&self, range: TimeRange, direction: Direction) -> Option<Outside> {
        if range.from >= range.to {
            return None;
        }
        let mut scope = self.scope.copied();
        scope.range = range;
        let mut search = Search::new(scope);
        search.limit = Some(OUTSIDE_MAX);
        search.direction = direction;
        let seen: Arc<Mutex<MatchStats>> = Arc::default();
        // Nothing is written to it, so nobody needs to read.
        let (mut out, _receiver) = self.output();
        let seeing = Arc::clone(&seen);
        out.rewrite(Box::new(move |line, _| {
            if let Ok(row) = Row::from_json(line) {
                let mut seen = seeing.lock().unwrap_or_else(PoisonError::into_inner);
                seen.count += 1;
                seen.first = seen.first.or(row.time);
            }
            RewriteStatus::GoOn
        }));
        let outcome = self.app.engine.search(&search, &mut out);
        let is_all = outcome.is_ok_and(|trailer| trailer.missing_count == 0 && !trailer.has_more);
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Outside {
            count: seen.count,
            is_all,
            nearest: seen.first?,
        })
    }

    fn output(&self) -> (Output, tokio::sync::mpsc::Receiver<hyper::body::Bytes>) {
        let (mut out, receiver) = Output::new(self.app.shutdown.clone());
        let until = self.until;
        out.wanted_while(move || Instant::now() < until);
        (out, receiver)
    }
}
