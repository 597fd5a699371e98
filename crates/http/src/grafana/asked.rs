//! What a data source sends, as far as it is looked at.

use logpond_record::{TimeRange, Timestamp, cast};
use logpond_search::logql::LogQuery;
use serde_json::Value as Json;

use crate::error::ApiError;
use crate::logql::filters;
use crate::logql::run::{self, POINTS_DEFAULT};
use logpond_engine::saved::{Value, Window};

const MILLISECOND_NS: i64 = 1_000_000;

/// How far back a question looks that says no times: those about names and values of labels.
const LOOK_BACK_NS: i64 = 24 * 3_600_000_000_000;

/// What stands for all values of a variable: nothing that anybody chose.
const ALL: &str = "$__all";

/// A question.
pub(super) struct QueryRequest {
    /// All that was sent.
    pub(super) body: Json,
    /// The times.
    pub(super) range: TimeRange,
    /// The time between two points, in nanoseconds.
    pub(super) step_ns: i64,
    /// Conditions on all lines.
    pub(super) filters: Vec<LogQuery>,
    /// When it was asked.
    pub(super) now: Timestamp,
}

impl QueryRequest {
    /// Reads a question; nothing is one without anything in it.
    ///
    /// # Errors
    /// When it is no JSON object, or times or filters cannot be read.
    pub(super) fn read(bytes: &[u8], now: Timestamp) -> Result<QueryRequest, ApiError> {
        let body: Json = match bytes.trim_ascii() {
            b"" => Json::Object(serde_json::Map::new()),
            bytes => serde_json::from_slice(bytes)
                .map_err(|error| ApiError::bad_request(format!("the body is no JSON: {error}")))?,
        };
        if !body.is_object() {
            return Err(ApiError::bad_request("the body is no JSON object"));
        }
        // Questions about names and values of labels have the other name.
        let times = ["range", "timeRange"].map(|name| &body[name]);
        let times = times.into_iter().find(|times| !times.is_null());
        let range = range(times.unwrap_or(&Json::Null), now)?;
        let wish_ms = number(&body["intervalMs"]);
        let wish_ns = wish_ms.map(|ms| cast::whole_i64(ms * cast::float(MILLISECOND_NS)));
        let points = number(&body["maxDataPoints"]).filter(|points| *points >= 1.0);
        let points = points.map_or(i64::MAX, cast::whole_i64);
        let points = match wish_ns {
            None => points.min(POINTS_DEFAULT),
            Some(_) => points,
        };
        let mut filters = filters::read(&body["adhocFilters"])?;
        // The other data source sends them under both names.
        if filters.is_empty() {
            filters = filters::read(&body["filters"])?;
        }
        Ok(QueryRequest {
            range,
            step_ns: run::step_ns(range, wish_ns, points),
            filters,
            now,
            body,
        })
    }

    /// The times as variables.
    pub(super) fn window(&self) -> Window {
        Window {
            from_ms: self.range.from.unix_ms(),
            to_ms: self.range.to.unix_ms(),
            interval_ns: self.step_ns,
        }
    }

    /// The value of a variable of the dashboard.
    pub(super) fn variable(&self, name: &str) -> Option<Value> {
        value(&self.body["scopedVars"][name]["value"])
    }

    /// A member that is text, without spaces around it; nothing is the empty text.
    pub(super) fn text(&self, name: &str) -> &str {
        self.body[name].as_str().unwrap_or_default().trim()
    }
}

/// A number, also as text.
pub(super) fn number(value: &Json) -> Option<f64> {
    let number = match value {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| number.is_finite())
}

/// What somebody chose as the value of a variable, if anything.
pub(super) fn value(chosen: &Json) -> Option<Value> {
    let text = |value: &Json| match value {
        Json::String(text) if text == ALL => None,
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        Json::Bool(flag) => Some(flag.to_string()),
        _ => None,
    };
    match chosen {
        Json::Array(values) => {
            let texts: Option<Vec<String>> = values.iter().map(text).collect();
            texts.filter(|texts| !texts.is_empty()).map(Value::Any)
        }
        // The form of lists of choices.
        Json::Object(choice) => choice.get("value").and_then(text).map(Value::One),
        other => text(other).map(Value::One),
    }
}

fn range(range: &Json, now: Timestamp) -> Result<TimeRange, ApiError> {
    let instant = |name: &str| match &range[name] {
        Json::Null => Ok(None),
        value => match time(value) {
            Some(time) => Ok(Some(time)),
            None => Err(ApiError::bad_request(format!(
                "'range.{name}' is {value}, and neither an RFC 3339 time nor milliseconds since 1970"
            ))),
        },
    };
    let to = instant("to")?.unwrap_or(now);
    let from = instant("from")?.unwrap_or_else(|| to.saturating_add(-LOOK_BACK_NS));
    if from <= to {
        Ok(TimeRange { from, to })
    } else {
        Err(ApiError::bad_request(format!(
            "the range is empty: from {from} is after to {to}"
        )))
    }
}

fn time(value: &Json) -> Option<Timestamp> {
    if let Some(ms) = number(value) {
        let ns = ms * cast::float(MILLISECOND_NS);
        return (ns.abs() < cast::float(i64::MAX)).then_some(Timestamp(cast::whole_i64(ns)));
    }
    let time: jiff::Timestamp = value.as_str()?.trim().parse().ok()?;
    i64::try_from(time.as_nanosecond()).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

    fn read(body: &Json) -> Result<QueryRequest, ApiError> {
        QueryRequest::read(body.to_string().as_bytes(), NOW)
    }

    #[test]
    fn times_and_steps_are_read_as_they_come() {
        let second = 1_000_000_000;
        let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_nanosecond() as i64;
        let (from, to) = ("2017-11-14T12:00:00.000Z", "2017-11-14T13:00:00.000Z");
        let (from_ns, to_ns) = (at(from), at(to));
        let table = [
            (
                json!({ "range": { "from": from, "to": to, "raw": { "from": "now-1h" } },
                    "interval": "30s", "intervalMs": 30_000, "maxDataPoints": 550, "panelId": 1 }),
                (from_ns, to_ns, 30 * second),
            ),
            (
                json!({ "range": { "from": from_ns / 1_000_000, "to": (to_ns / 1_000_000) as f64 },
                    "intervalMs": 10_000.5, "maxDataPoints": 100.7 }),
                (from_ns, to_ns, 36 * second),
            ),
            (
                json!({ "range": { "from": from, "to": to }, "intervalMs": null, "maxDataPoints": null }),
                (from_ns, to_ns, 14_400_000_000),
            ),
            (
                json!({ "timeRange": { "from": from, "to": to }, "key": "host" }),
                (from_ns, to_ns, 14_400_000_000),
            ),
            (json!({}), (NOW.0 - LOOK_BACK_NS, NOW.0, 345_600_000_000)),
        ];
        for (body, expected) in table {
            let request = read(&body).unwrap();
            let found = (request.range.from.0, request.range.to.0, request.step_ns);
            assert_eq!(found, expected, "{body}");
        }
        assert!(QueryRequest::read(b"", NOW).is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let table = [
            (json!([]), "no JSON object"),
            (json!({ "range": { "from": "yesterday" } }), "'range.from'"),
            (json!({ "range": { "from": 2, "to": 1 } }), "empty"),
            (json!({ "adhocFilters": [{ "key": "" }] }), "filter"),
        ];
        for (body, part) in table {
            let Err(error) = read(&body) else {
                panic!("{body} cannot be answered");
            };
            assert!(error.message.contains(part), "{}", error.message);
        }
        assert!(QueryRequest::read(b"{", NOW).is_err());
    }

    #[test]
    fn variables_are_what_was_chosen() {
        let request = read(&json!({ "scopedVars": {
            "host": { "text": "a", "value": "a", "selected": true },
            "several": { "value": ["a", 5] },
            "all": { "value": ["$__all"] },
            "number": { "value": 7 },
            "none": { "value": [] },
        } }))
        .unwrap();
        let one = |text: &str| Some(Value::One(text.to_owned()));
        let any =
            |texts: &[&str]| Some(Value::Any(texts.iter().map(|t| (*t).to_owned()).collect()));
        let table = [
            ("host", one("a")),
            ("several", any(&["a", "5"])),
            ("all", None),
            ("number", one("7")),
            ("none", None),
            ("nobody", None),
        ];
        for (name, expected) in table {
            assert_eq!(request.variable(name), expected, "{name}");
        }
    }
}
