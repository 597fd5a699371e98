//! Parameters of time, limit and direction, read as Loki reads them.

use logpond_record::{TimeRange, Timestamp, cast};
use logpond_search::logql::duration_ns;

use super::LokiRequest;
use crate::error::ApiError;
use logpond_engine::query::Direction;

/// How far back a question looks that does not say it.
pub(super) const SINCE_DEFAULT_NS: i64 = 3_600_000_000_000;

/// Rows of an answer that does not say how many.
pub(super) const LIMIT_DEFAULT: u64 = 100;

/// Whole numbers of more digits are nanoseconds, others seconds.
const SECONDS_DIGITS_MAX: usize = 10;

/// The most points of a series.
pub(super) const POINTS_MAX: i64 = 11_000;

/// Points that are aimed at where no step is given.
const POINTS_DEFAULT: i64 = 250;

const SECOND_NS: i64 = 1_000_000_000;

/// The instant that a parameter gives.
pub(super) fn instant(request: &LokiRequest, name: &str) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = request.text(name) else {
        return Ok(None);
    };
    match time(text) {
        Some(time) => Ok(Some(time)),
        None => Err(ApiError::bad_request(format!(
            "could not parse '{name}' parameter: '{text}' is neither Unix time in seconds or \
             nanoseconds nor RFC 3339"
        ))),
    }
}

/// `12.5` and whole numbers of up to ten characters are seconds, longer ones nanoseconds; all else is
/// RFC 3339.
fn time(text: &str) -> Option<Timestamp> {
    if text.contains('.')
        && let Ok(seconds) = text.parse::<f64>()
    {
        let ms = cast::whole_i64((seconds.fract() * 1000.0).round());
        let whole_ns = i128::from(cast::whole_i64(seconds.trunc())) * i128::from(SECOND_NS);
        let ns = whole_ns + i128::from(ms) * 1_000_000;
        let is_known = seconds.is_finite();
        return i64::try_from(ns).ok().filter(|_| is_known).map(Timestamp);
    }
    if let Ok(number) = text.parse::<i64>() {
        return if text.len() <= SECONDS_DIGITS_MAX {
            Timestamp::from_seconds(number, 0)
        } else {
            Some(Timestamp(number))
        };
    }
    let time: jiff::Timestamp = text.parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok().map(Timestamp)
}

/// The range of a question: from `start`, or `since` before the end, to `end`, or now.
pub(super) fn range(request: &LokiRequest) -> Result<TimeRange, ApiError> {
    let end = instant(request, "end")?;
    let to = end.unwrap_or(request.now);
    let from = match instant(request, "start")? {
        Some(start) => start,
        None => {
            let since = request.text("since").map(|text| {
                duration_ns(text).ok_or_else(|| {
                    let message = format!(
                        "could not parse 'since' parameter: '{text}' is no duration such as 1h30m"
                    );
                    ApiError::bad_request(message)
                })
            });
            let since = since.transpose()?.unwrap_or(SINCE_DEFAULT_NS);
            to.min(request.now).saturating_add(-since)
        }
    };
    if to < from {
        return Err(ApiError::bad_request(
            "end timestamp must not be before or equal to start time",
        ));
    }
    Ok(TimeRange { from, to })
}

/// A span of time: a number of seconds or a duration.
fn span(request: &LokiRequest, name: &str) -> Result<Option<i64>, ApiError> {
    let Some(text) = request.text(name) else {
        return Ok(None);
    };
    let seconds = text.parse::<f64>().ok().filter(|s| s.is_finite());
    let nanoseconds = match seconds {
        Some(seconds) => {
            let ns = seconds * cast::float(SECOND_NS);
            (ns.abs() < cast::float(i64::MAX)).then_some(cast::whole_i64(ns))
        }
        None => duration_ns(text),
    };
    match nanoseconds {
        Some(ns) => Ok(Some(ns)),
        None => Err(ApiError::bad_request(format!(
            "could not parse '{name}' parameter: cannot parse \"{text}\" to a valid duration"
        ))),
    }
}

/// The time between two points of a series, in nanoseconds.
pub(super) fn step_ns(request: &LokiRequest, range: TimeRange) -> Result<i64, ApiError> {
    let length = i128::from(range.to.0) - i128::from(range.from.0);
    let default = || {
        let seconds = length / i128::from(SECOND_NS) / i128::from(POINTS_DEFAULT);
        i64::try_from(seconds)
            .unwrap_or(i64::MAX)
            .max(1)
            .saturating_mul(SECOND_NS)
    };
    let step = span(request, "step")?.unwrap_or_else(default);
    if step <= 0 {
        return Err(ApiError::bad_request(
            "zero or negative query resolution step widths are not accepted. Try a positive \
             integer",
        ));
    }
    if length / i128::from(step) > i128::from(POINTS_MAX) {
        return Err(ApiError::bad_request(
            "exceeded maximum resolution of 11,000 points per time series. Try increasing the \
             value of the step parameter",
        ));
    }
    Ok(step)
}

/// The least time between two rows of a stream, in nanoseconds; 0 is none.
pub(super) fn interval_ns(request: &LokiRequest) -> Result<i64, ApiError> {
    match span(request, "interval")?.unwrap_or(0) {
        interval if interval >= 0 => Ok(interval),
        _ => Err(ApiError::bad_request("interval must be >= 0")),
    }
}

/// How many rows are wanted at most.
pub(super) fn limit(request: &LokiRequest) -> Result<u64, ApiError> {
    let Some(text) = request.text("limit") else {
        return Ok(LIMIT_DEFAULT);
    };
    match text.parse::<i64>() {
        Ok(limit) if limit > 0 => Ok(cast::unsigned(limit)),
        Ok(_) => Err(ApiError::bad_request("limit must be a positive value")),
        Err(_) => Err(ApiError::bad_request(format!(
            "could not parse 'limit' parameter: '{text}' is no whole number"
        ))),
    }
}

/// In which order rows are wanted.
pub(super) fn direction(request: &LokiRequest) -> Result<Direction, ApiError> {
    match request.text("direction") {
        None => Ok(Direction::Backward),
        Some(text) if text.eq_ignore_ascii_case("backward") => Ok(Direction::Backward),
        Some(text) if text.eq_ignore_ascii_case("forward") => Ok(Direction::Forward),
        Some(text) => Err(ApiError::bad_request(format!(
            "invalid direction '{text}': it is forward or backward"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderMap;

    use super::*;
    use crate::params::Params;

    const NOW: Timestamp = Timestamp(1_700_000_000 * SECOND_NS);

    fn asked(text: &str) -> LokiRequest {
        let mut params = Params::default();
        params.read(text.as_bytes()).unwrap();
        LokiRequest {
            params,
            headers: HeaderMap::new(),
            now: NOW,
        }
    }

    #[test]
    fn instants_are_read_as_loki_reads_them() {
        let table = [
            ("1571332130", Some(1_571_332_130_000_000_000)),
            ("1571332130.934", Some(1_571_332_130_934_000_000)),
            ("1571332130.9341", Some(1_571_332_130_934_000_000)),
            ("1571334162051000000", Some(1_571_334_162_051_000_000)),
            ("4000000000", Some(4_000_000_000_000_000_000)),
            ("40000000000", Some(40_000_000_000)),
            ("0", Some(0)),
            ("-5", Some(-5_000_000_000)),
            ("2002-10-02T15:00:00Z", Some(1_033_570_800_000_000_000)),
            (
                "2002-10-02T10:00:00.000000123-05:00",
                Some(1_033_570_800_000_000_123),
            ),
            ("nan.", None),
            ("1e400.0", None),
            ("yesterday", None),
            ("99999999999999999999", None),
        ];
        for (text, expected) in table {
            let found = time(text).map(|time| time.0);
            assert_eq!(found, expected, "{text}");
        }
        let error = instant(&asked("start=x"), "start").unwrap_err();
        assert!(error.message.contains("'start'"), "{}", error.message);
    }

    #[test]
    fn ranges_have_defaults() {
        let hour = SINCE_DEFAULT_NS;
        let table = [
            ("", Some((NOW.0 - hour, NOW.0))),
            ("since=30m", Some((NOW.0 - hour / 2, NOW.0))),
            (
                "end=1600000000",
                Some((1_600_000_000 * SECOND_NS - hour, 1_600_000_000 * SECOND_NS)),
            ),
            // An end in the future does not move the start there.
            (
                "end=1800000000",
                Some((NOW.0 - hour, 1_800_000_000 * SECOND_NS)),
            ),
            (
                "start=1600000000&since=1m",
                Some((1_600_000_000 * SECOND_NS, NOW.0)),
            ),
            (
                "start=1600000000&end=1600000000",
                Some((1_600_000_000 * SECOND_NS, 1_600_000_000 * SECOND_NS)),
            ),
            ("start=1600000001&end=1600000000", None),
            ("since=soon", None),
        ];
        for (text, expected) in table {
            let found = range(&asked(text)).ok().map(|r| (r.from.0, r.to.0));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn steps_and_intervals_are_seconds_or_durations() {
        let of = |seconds: i64| TimeRange {
            from: Timestamp(0),
            to: Timestamp(seconds * SECOND_NS),
        };
        let table = [
            ("", 3600, Ok(14 * SECOND_NS)),
            ("", 10, Ok(SECOND_NS)),
            ("step=15", 3600, Ok(15 * SECOND_NS)),
            ("step=0.5", 3600, Ok(SECOND_NS / 2)),
            ("step=250ms", 60, Ok(SECOND_NS / 4)),
            ("step=1h30m", 86_400, Ok(5400 * SECOND_NS)),
            ("step=0", 60, Err("zero or negative")),
            ("step=-1", 60, Err("zero or negative")),
            ("step=x", 60, Err("'step'")),
            ("step=NaN", 60, Err("'step'")),
            ("step=1e300", 60, Err("'step'")),
            ("step=1", 11_000, Ok(SECOND_NS)),
            ("step=1", 11_001, Err("11,000 points")),
        ];
        for (text, seconds, expected) in table {
            match (step_ns(&asked(text), of(seconds)), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(e), Err(part)) => assert!(e.message.contains(part), "{}", e.message),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        assert_eq!(interval_ns(&asked("interval=2m")).unwrap(), 120 * SECOND_NS);
        assert_eq!(interval_ns(&asked("")).unwrap(), 0);
        assert!(interval_ns(&asked("interval=-1s")).is_err());
    }

    #[test]
    fn limits_and_directions() {
        let limits = [
            ("", Ok(100)),
            ("limit=7", Ok(7)),
            ("limit=0", Err(())),
            ("limit=-1", Err(())),
            ("limit=x", Err(())),
        ];
        for (text, expected) in limits {
            assert_eq!(limit(&asked(text)).map_err(|_| ()), expected, "{text}");
        }
        let error = limit(&asked("limit=0")).unwrap_err();
        assert_eq!(error.message, "limit must be a positive value");
        let directions = [
            ("", Some(Direction::Backward)),
            ("direction=backward", Some(Direction::Backward)),
            ("direction=BACKWARD", Some(Direction::Backward)),
            ("direction=Forward", Some(Direction::Forward)),
            ("direction=up", None),
        ];
        for (text, expected) in directions {
            assert_eq!(direction(&asked(text)).ok(), expected, "{text}");
        }
    }
}
