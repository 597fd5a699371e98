//! Asks the engine what was resolved.

use logpond_record::{TimeRange, Timestamp, cast};
use logpond_search::Filter;
use logpond_search::logql::{Metric, Query};
use logpond_search::metric::{Answer, Plan, STEPS_MAX, Sample, SeriesLabels, Times};

use super::found::{Numbers, QueryResult};
use super::zeros;
use crate::error::{ApiError, Kind};
use logpond_engine::query::{Direction, Engine, Key, LineQuery, Output, QueryError, Trailer};
use logpond_engine::saved::Format;

/// Points that are aimed at where nobody says how far they are apart.
pub(crate) const POINTS_DEFAULT: i64 = 250;

/// The shortest time between points where nobody says it.
const STEP_DEFAULT_MIN_NS: i64 = 1_000_000_000;

/// The shortest one that is taken: points have milliseconds.
const STEP_MIN_NS: i64 = 1_000_000;

/// The parameters of an evaluation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryParameters {
    /// The times.
    pub(crate) range: TimeRange,
    /// The time between two points, in nanoseconds; see [`step_ns`].
    pub(crate) step_ns: i64,
    /// Whether numbers are those at the end of the range.
    pub(crate) format: Format,
    /// The most lines.
    pub(crate) limit: u64,
    /// In which order lines are wanted.
    pub(crate) direction: Direction,
    /// Only lines behind this place.
    pub(crate) behind: Option<Key>,
    /// The time of the question.
    pub(crate) now: Timestamp,
}

/// The time between the points of a range in nanoseconds: as is wished, but so that there are at most
/// `points_max`, and at most as many as a query may have.
pub(crate) fn step_ns(range: TimeRange, wish_ns: Option<i64>, points_max: i64) -> i64 {
    let length = i128::from(range.to.0) - i128::from(range.from.0);
    // Two more, since the ends are rounded.
    let points_max = points_max.clamp(1, cast::signed(STEPS_MAX) - 2);
    let least = (length + i128::from(points_max) - 1) / i128::from(points_max);
    let least = i64::try_from(least).unwrap_or(i64::MAX);
    let wish = wish_ns.filter(|wish| *wish > 0);
    let step = wish
        .unwrap_or(STEP_DEFAULT_MIN_NS)
        .max(least)
        .max(STEP_MIN_NS);
    // Whole milliseconds, as points have them.
    step.saturating_add(STEP_MIN_NS - 1) / STEP_MIN_NS * STEP_MIN_NS
}

/// The ends of windows of one step each that together cover a range. They are at whole steps since the
/// epoch, so that the windows of two questions are the same.
fn instants(range: TimeRange, step_ns: i64) -> Result<Times, ApiError> {
    let floor = |time: i64| time.div_euclid(step_ns).saturating_mul(step_ns);
    let start = floor(range.from.0).saturating_add(step_ns);
    let end = floor(range.to.0.saturating_sub(1)).saturating_add(step_ns);
    let times = Times::range(Timestamp(start), Timestamp(end.max(start)), step_ns);
    times.map_err(|error| ApiError::bad_request(error.to_string()))
}

/// Asks; blocks until the answer is there.
///
/// # Errors
/// When the query cannot be answered.
pub(crate) fn run(
    engine: &dyn Engine,
    query: Query,
    wanted: &QueryParameters,
    out: &mut Output,
) -> Result<(QueryResult, Trailer), ApiError> {
    match query {
        Query::Log(log) => {
            let query = LineQuery {
                log,
                range: wanted.range,
                limit: wanted.limit,
                direction: wanted.direction,
                behind: wanted.behind,
                interval_ns: 0,
                now: wanted.now,
                only: Filter::All,
            };
            let mut answer = engine.lines(&query, out).map_err(failed)?;
            let trailer = std::mem::take(&mut answer.trailer);
            let found = QueryResult::Lines {
                lines: answer.lines,
                cursor: trailer.cursor.filter(|_| trailer.has_more),
                warnings: answer.warnings,
            };
            Ok((found, trailer))
        }
        Query::Metric(metric) => numbers(engine, metric, wanted, out),
    }
}

fn numbers(
    engine: &dyn Engine,
    metric: Metric,
    wanted: &QueryParameters,
    out: &mut Output,
) -> Result<(QueryResult, Trailer), ApiError> {
    let now_ns = wanted.now.0;
    let is_additive = zeros::is_additive(&metric);
    let is_one = zeros::is_one_series(&metric);
    let (plan, times) = match wanted.format {
        Format::Table => {
            let plan = Plan::instant(metric, wanted.range.to, now_ns);
            (plan, Times::instant(wanted.range.to))
        }
        Format::TimeSeries => {
            let times = instants(wanted.range, wanted.step_ns)?;
            (Plan::range(metric, times, now_ns), times)
        }
    };
    let plan = plan.map_err(|error| ApiError::bad_request(error.to_string()))?;
    let answer = engine.numbers(&plan, out).map_err(failed)?;
    let mut numbers = match answer.answer {
        Answer::Matrix(series) => Numbers::Series {
            series,
            times,
            is_additive,
        },
        Answer::Vector(samples) => Numbers::Samples(samples, wanted.range.to),
        Answer::Scalar(value) => {
            let labels = SeriesLabels::default().into();
            Numbers::Samples(vec![Sample { labels, value }], wanted.range.to)
        }
    };
    if is_additive && is_one {
        numbers.at_least_one();
    }
    let found = QueryResult::Numbers {
        numbers,
        warnings: answer.warnings,
    };
    Ok((found, answer.trailer))
}

/// What an answer lacks, in words.
pub(crate) fn missing(trailer: &Trailer) -> Vec<String> {
    let named = trailer.missing.iter();
    let mut warnings: Vec<String> = named
        .map(|what| format!("the answer is not complete: {what}"))
        .collect();
    let others = trailer.missing_count - trailer.missing.len() as u64;
    if others > 0 {
        warnings.push(format!("the answer is not complete: {others} more"));
    }
    warnings
}

/// The parts that an answer lacks, and those that are lost for good and no answer will have.
pub(crate) fn absent(trailer: &Trailer) -> Vec<String> {
    let mut warnings = missing(trailer);
    warnings.extend(losses(&trailer.lost));
    warnings
}

/// Warnings of the parts that are lost for good.
pub(crate) fn losses(lost: &[String]) -> impl Iterator<Item = String> {
    lost.iter().map(|what| format!("lost for good: {what}"))
}

/// Why a question has no answer.
pub(crate) fn failed(error: QueryError) -> ApiError {
    let kind = match error {
        QueryError::Unsupported(_) | QueryError::Impossible(_) => Kind::BadRequest,
        QueryError::Cancelled => Kind::Stopping,
        QueryError::Disk(_) => Kind::Internal,
        QueryError::Memory(_) => Kind::MemoryFull,
    };
    ApiError::new(kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn range(from_s: i64, to_s: i64) -> TimeRange {
        TimeRange {
            from: Timestamp(from_s * SECOND),
            to: Timestamp(to_s * SECOND),
        }
    }

    #[test]
    fn steps_follow_wishes_and_bounds() {
        let table = [
            (3600, Some(60 * SECOND), 1000, 60 * SECOND),
            (3600, Some(SECOND), 360, 10 * SECOND),
            (3600, None, POINTS_DEFAULT, 14_400_000_000),
            (10, None, POINTS_DEFAULT, SECOND),
            (0, Some(0), 0, SECOND),
            (1, Some(-5), 1, SECOND),
            (100, Some(1), 1_000_000, 10_000_000),
        ];
        for (length_s, wish, points, expected) in table {
            let found = step_ns(range(0, length_s), wish, points);
            assert_eq!(found, expected, "{length_s} {wish:?} {points}");
            assert!(instants(range(0, length_s), found).is_ok());
        }
        let all = TimeRange {
            from: Timestamp(i64::MIN),
            to: Timestamp(i64::MAX),
        };
        let step = step_ns(all, Some(1), i64::MAX);
        assert!(instants(all, step).is_ok());
    }

    #[test]
    fn windows_cover_a_range_and_no_more_than_their_ends() {
        let table = [
            // from, to, first end, how many
            ((0, 60), (10, 6)),
            ((5, 60), (10, 6)),
            ((5, 61), (10, 7)),
            ((-5, 5), (0, 2)),
            ((10, 10), (20, 1)),
        ];
        for ((from, to), (first, count)) in table {
            let times = instants(range(from, to), 10 * SECOND).unwrap();
            assert_eq!(
                (times.start_ns / SECOND, times.count),
                (first, count),
                "{from} {to}"
            );
        }
    }
}
