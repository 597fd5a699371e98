//! Filters that people add to a whole dashboard: each becomes a condition of every selector.

use logpond_search::logql::variables::escape_regex;
use logpond_search::logql::{self, LogQuery, Metric, Query, bytes_of, duration_ns, number_of};
use serde_json::Value;

use crate::error::{ApiError, Kind};

/// The most filters of a question.
const FILTERS_MAX: usize = 100;

/// Reads filters as Grafana sends them: `{"key","operator","value"}`, or `values` for one of several.
///
/// # Errors
/// With the filter that cannot be read.
pub(crate) fn read(filters: &Value) -> Result<Vec<LogQuery>, ApiError> {
    let filters = filters.as_array().map_or(&[][..], Vec::as_slice);
    if filters.len() > FILTERS_MAX {
        let message = format!("there are more than {FILTERS_MAX} filters");
        return Err(ApiError::bad_request(message));
    }
    filters.iter().map(condition).collect()
}

/// A selector and stages that let through what a filter wants.
fn condition(filter: &Value) -> Result<LogQuery, ApiError> {
    let key = filter["key"].as_str().unwrap_or_default();
    let operator = filter["operator"].as_str().unwrap_or("=");
    let value = match &filter["value"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let values = || {
        let values = filter["values"].as_array().into_iter().flatten();
        let values: Vec<String> = values
            .filter_map(|value| value.as_str())
            .map(|text| escape_regex(text).into_owned())
            .collect();
        if values.is_empty() {
            escape_regex(&value).into_owned()
        } else {
            values.join("|")
        }
    };
    let text = match operator {
        "=" | "==" => format!("{{{key}={}}}", quoted(&value)),
        "!=" => format!("{{{key}!={}}}", quoted(&value)),
        "=~" | "!~" => format!("{{{key}{operator}{}}}", quoted(&value)),
        "=|" => format!("{{{key}=~{}}}", quoted(&values())),
        "!=|" => format!("{{{key}!~{}}}", quoted(&values())),
        "<" | "<=" | ">" | ">=" if is_quantity(&value) => {
            format!("{{{key}!=\"\"}} | {key} {operator} {value}")
        }
        "<" | "<=" | ">" | ">=" => {
            let what = format!("'{value}' is no number, duration or size to compare with");
            return Err(refused(key, &what));
        }
        other => return Err(refused(key, &format!("there is no operator '{other}'"))),
    };
    logql::parse_log(&text).map_err(|error| refused(key, &error.to_string()))
}

fn refused(key: &str, what: &str) -> ApiError {
    ApiError::new(Kind::BadQuery, format!("the filter of '{key}': {what}"))
}

fn is_quantity(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-".contains(&byte);
    let is_known =
        number_of(text).is_some() || duration_ns(text).is_some() || bytes_of(text).is_some();
    is_known && text.bytes().all(is_plain)
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    logpond_record::write_json_string(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Has conditions hold for all lines that a query reads.
pub(crate) fn apply(query: &mut Query, conditions: &[LogQuery]) {
    if conditions.is_empty() {
        return;
    }
    match query {
        Query::Log(log) => narrow(log, conditions),
        Query::Metric(metric) => apply_metric(metric, conditions),
    }
}

/// Recursion is bounded by the depth of queries.
fn apply_metric(metric: &mut Metric, conditions: &[LogQuery]) {
    match metric {
        Metric::Range(range) => narrow(&mut range.log, conditions),
        Metric::Vector(vector) => apply_metric(&mut vector.of, conditions),
        Metric::Binary(binary) => {
            apply_metric(&mut binary.left, conditions);
            apply_metric(&mut binary.right, conditions);
        }
        Metric::LabelReplace(replace) => apply_metric(&mut replace.of, conditions),
        Metric::Literal(_) | Metric::VectorLiteral(_) => {}
    }
}

fn narrow(log: &mut LogQuery, conditions: &[LogQuery]) {
    for condition in conditions.iter().rev() {
        log.matchers.extend(condition.matchers.iter().cloned());
        // In front: what parsers make is not what a filter of all panels means.
        let stages = condition.stages.iter().cloned();
        log.stages.splice(0..0, stages);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn filters_are_conditions_of_all_selectors() {
        let table = [
            (json!([]), r#"sum(rate({app="a"}[5m])) / 2"#),
            (
                json!([{ "key": "host", "operator": "=", "value": "w\"1" }]),
                r#"sum(rate({app="a",host="w\"1"}[5m])) / 2"#,
            ),
            (
                json!([{ "key": "host", "value": "x" }, { "key": "env", "operator": "!~", "value": "d.*" }]),
                r#"sum(rate({app="a",env!~"d.*",host="x"}[5m])) / 2"#,
            ),
            (
                json!([{ "key": "host", "operator": "=|", "values": ["a.b", "c"] }]),
                r#"sum(rate({app="a",host=~"a\\.b|c"}[5m])) / 2"#,
            ),
            (
                json!([{ "key": "status", "operator": ">", "value": 499 }]),
                r#"sum(rate({app="a",status!=""} | status > 499 [5m])) / 2"#,
            ),
        ];
        for (filters, expected) in table {
            let mut query = logql::parse(r#"sum(rate({app="a"}[5m])) / 2"#).unwrap();
            apply(&mut query, &read(&filters).unwrap());
            assert_eq!(query, logql::parse(expected).unwrap(), "{filters}");
        }
    }

    #[test]
    fn filters_that_are_none_are_refused() {
        let table = [
            (json!([{ "key": "a b", "value": "x" }]), "'a b'"),
            (json!([{ "key": "a", "operator": "?" }]), "operator '?'"),
            (
                json!([{ "key": "a", "operator": "<", "value": "1 or b" }]),
                "no number",
            ),
            (
                json!([{ "key": "a", "operator": "=~", "value": "(" }]),
                "'a'",
            ),
        ];
        for (filters, part) in table {
            let error = read(&filters).unwrap_err();
            assert!(error.message.contains(part), "{}", error.message);
        }
        let many = vec![json!({ "key": "a" }); FILTERS_MAX + 1];
        assert!(read(&Value::from(many)).is_err());
    }
}
