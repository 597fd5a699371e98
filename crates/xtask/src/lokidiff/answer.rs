//! Answers in a form in which equal ones are equal: sets by labels, numbers as numbers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ask::Reply;

/// Labels of a stream or a series, as JSON with sorted names.
pub(super) type Labels = String;

/// An entry as it was answered.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) struct Entry {
    pub(super) time_ns: i64,
    pub(super) line: String,
    /// What stands beside the line, as JSON.
    pub(super) beside: String,
}

/// A number at a time, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) time_ms: i64,
    pub(super) value: f64,
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// The question is wrong, it said.
    Refused(String),
    /// Something else went wrong.
    Failed(String),
    Streams(BTreeMap<Labels, Vec<Entry>>),
    /// A matrix or a vector, by its type, in the order of the answer.
    Series {
        kind: String,
        series: Vec<(Labels, Vec<Point>)>,
    },
    Scalar(Point),
    /// Texts or objects, in no order.
    Set(Vec<String>),
}

impl Answer {
    /// Reads what a server said.
    pub(super) fn of(reply: &Reply) -> Answer {
        match reply.status {
            200 => {}
            400..500 => return Answer::Refused(reply.text.trim().to_owned()),
            status => return Answer::Failed(format!("{status} {}", reply.text.trim())),
        }
        let Ok(value) = serde_json::from_str::<Value>(&reply.text) else {
            return Answer::Failed(format!("no JSON: {:.200}", reply.text));
        };
        let read = match value["data"]["resultType"].as_str() {
            Some("streams") => streams(&value["data"]["result"]),
            Some("scalar") => point(&value["data"]["result"]).map(Answer::Scalar),
            Some(kind) => series(kind, &value["data"]["result"]),
            None => Some(Answer::Set(set(&value))),
        };
        read.unwrap_or_else(|| Answer::Failed(format!("not understood: {:.200}", reply.text)))
    }

    /// What kind of answer it is.
    pub(super) fn class(&self) -> &str {
        match self {
            Answer::Refused(_) => "refused",
            Answer::Failed(_) => "failed",
            Answer::Streams(_) => "streams",
            Answer::Series { kind, .. } => kind,
            Answer::Scalar(_) => "scalar",
            Answer::Set(_) => "set",
        }
    }
}

/// Warnings beside an answer.
pub(super) fn warnings(reply: &Reply) -> Vec<String> {
    let value: Value = serde_json::from_str(&reply.text).unwrap_or_default();
    let warnings = value["warnings"].as_array().cloned().unwrap_or_default();
    let warnings = warnings.iter().filter_map(Value::as_str);
    warnings.map(str::to_owned).collect()
}

/// Labels with their names in order. serde_json keeps objects so.
fn labels(value: &Value) -> Option<Labels> {
    value.as_object().map(|_| value.to_string())
}

fn streams(result: &Value) -> Option<Answer> {
    let mut streams: BTreeMap<Labels, Vec<Entry>> = BTreeMap::new();
    for stream in result.as_array()? {
        let entries = streams.entry(labels(&stream["stream"])?).or_default();
        for value in stream["values"].as_array()? {
            entries.push(Entry {
                time_ns: value[0].as_str()?.parse().ok()?,
                line: value[1].as_str()?.to_owned(),
                beside: beside(value.get(2)),
            });
        }
    }
    Some(Answer::Streams(streams))
}

/// What stands beside a line; nothing is the same as an empty object.
fn beside(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(value) if value.as_object().is_some_and(|object| object.is_empty()) => String::new(),
        Some(value) => value.to_string(),
    }
}

fn series(kind: &str, result: &Value) -> Option<Answer> {
    let rows = result.as_array()?.iter().map(|row| {
        let points = match row.get("values") {
            Some(values) => values
                .as_array()?
                .iter()
                .map(point)
                .collect::<Option<_>>()?,
            None => vec![point(&row["value"])?],
        };
        Some((labels(&row["metric"])?, points))
    });
    Some(Answer::Series {
        kind: kind.to_owned(),
        series: rows.collect::<Option<_>>()?,
    })
}

fn point(value: &Value) -> Option<Point> {
    let number = match value[1].as_str()? {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        text => text.parse().ok()?,
    };
    Some(Point {
        time_ms: (value[0].as_f64()? * 1e3).round() as i64,
        value: number,
    })
}

/// The parts of an answer without a type: of lists their elements, of objects their members, without
/// what is said about the work and about how things are stored.
fn set(value: &Value) -> Vec<String> {
    let mut parts = Vec::new();
    let members = value.as_object().into_iter().flatten();
    let of_storage = ["bytes", "chunks"];
    let of_work = ["status", "stats", "warnings", "limit"];
    let told = members.filter(|(name, _)| {
        !of_storage.contains(&name.as_str()) && !of_work.contains(&name.as_str())
    });
    for (name, member) in told {
        match member {
            Value::Array(items) => {
                parts.extend(items.iter().map(|item| format!("{name} {}", sorted(item))));
            }
            Value::Null => {}
            member => parts.push(format!("{name} {member}")),
        }
    }
    parts.sort_unstable();
    parts
}

/// An element with its own lists of texts in order.
fn sorted(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(members) = item.as_object_mut() {
        for member in members.values_mut() {
            if let Value::Array(texts) = member
                && texts.iter().all(Value::is_string)
            {
                texts.sort_by_key(ToString::to_string);
            }
        }
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, text: &str) -> Answer {
        Answer::of(&Reply {
            status,
            text: text.into(),
        })
    }

    #[test]
    fn answers_are_read() {
        assert_eq!(of(400, "no\n"), Answer::Refused("no".into()));
        assert_eq!(of(500, "oh").class(), "failed");
        let text = r#"{"status":"success","data":{"resultType":"streams","result":[
            {"stream":{"b":"1","a":"2"},"values":[["5","x",{}],["6","y"]]}]}}"#;
        let Answer::Streams(streams) = of(200, text) else {
            panic!("no streams");
        };
        assert_eq!(streams[r#"{"a":"2","b":"1"}"#].len(), 2);
        let text = r#"{"data":{"resultType":"matrix","result":[
            {"metric":{},"values":[[1.5,"+Inf"],[2,"0.5"]]}]}}"#;
        let Answer::Series { kind, series } = of(200, text) else {
            panic!("no series");
        };
        assert_eq!((kind.as_str(), series[0].1[1].time_ms), ("matrix", 2000));
        assert_eq!(series[0].1[0].value, f64::INFINITY);
        let text = r#"{"status":"success","data":["b","a"]}"#;
        let expected = ["data \"a\"", "data \"b\""].map(String::from);
        assert_eq!(of(200, text), Answer::Set(expected.into()));
    }
}
