//! Searches whose rows stay in the process.

use std::sync::{Arc, Mutex, PoisonError};

use logpond_record::{TimeRange, Timestamp};
use logpond_search::order::Direction;

use logpond_engine::query::{
    Engine, Output, QueryError, RewriteStatus, Scope, Search, Trailer, Visitor,
};
use logpond_host::shutdown::Shutdown;
use logpond_render::Row;

/// Searches, and keeps of each row what `keep` makes of it and what was kept before; no row leaves the
/// process.
///
/// # Errors
/// See [`QueryError`]; also if the answer lacks something.
pub(super) fn fold<T: Default + Send + 'static>(
    engine: &dyn Engine,
    shutdown: &Shutdown,
    search: &Search,
    keep: impl Fn(&Row<'_>, T) -> T + Send + 'static,
) -> Result<T, QueryError> {
    let (kept, trailer) = fold_what_is_there(engine, shutdown, search, keep)?;
    match trailer.missing.into_iter().next() {
        None => Ok(kept),
        Some(missing) => Err(QueryError::Impossible(missing)),
    }
}

/// The same of what can be read; the trailer names the rest.
fn fold_what_is_there<T: Default + Send + 'static>(
    engine: &dyn Engine,
    shutdown: &Shutdown,
    search: &Search,
    keep: impl Fn(&Row<'_>, T) -> T + Send + 'static,
) -> Result<(T, Trailer), QueryError> {
    let kept = Arc::new(Mutex::new(T::default()));
    // Nothing is written to it, so nobody needs to read.
    let (mut out, _receiver) = Output::new(shutdown.clone());
    let keeping = Arc::clone(&kept);
    let visitor: Visitor = Box::new(move |row, _| {
        let mut kept = keeping.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = keep(row, std::mem::take(&mut *kept));
        RewriteStatus::GoOn
    });
    let trailer = engine.visit(search, visitor, &mut out)?;
    let kept = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((kept, trailer))
}

/// From when to when there are records of a scope, the end excluded; `None` if there are none. Parts that cannot be
/// read are left out: the answer that needs the times names them.
///
/// # Errors
/// See [`QueryError`].
pub(super) fn times_of(
    engine: &dyn Engine,
    shutdown: &Shutdown,
    scope: &Scope,
) -> Result<Option<TimeRange>, QueryError> {
    let end = |direction| {
        let mut search = Search::new(scope.copied());
        search.direction = direction;
        search.limit = Some(1);
        search.parts.line = false;
        let keep = |row: &Row<'_>, found: Option<Timestamp>| found.or(row.time);
        let found = fold_what_is_there(engine, shutdown, &search, keep);
        found.map(|(time, _)| time)
    };
    let (first, last) = (end(Direction::Forward)?, end(Direction::Backward)?);
    let range = first.zip(last).map(|(from, last)| TimeRange {
        from,
        to: last.saturating_add(1),
    });
    Ok(range)
}
