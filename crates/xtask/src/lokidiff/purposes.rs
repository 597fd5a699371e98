//! Differences that are kept on purpose: each with its reason and with what tells it from mistakes.

use std::collections::BTreeMap;

use super::answer::{Answer, Labels};
use super::ask::{Question, Subject};
use super::compare::{Promise, compare};
use super::pipelines::{self, is_parser};
use super::query::{Kind, Log, Query};
use serde_json::Value;

/// A question with both answers, which differ.
pub(super) struct Case<'a> {
    pub(super) question: &'a Question,
    pub(super) loki: &'a Answer,
    pub(super) ours: &'a Answer,
    /// What our answer warns of.
    pub(super) warnings: &'a [String],
    pub(super) promise: Promise,
}

/// A difference that shows in the answers.
struct Purpose {
    reason: &'static str,
    holds: fn(&Case<'_>) -> bool,
}

/// A difference that only some streams make: without them the answers are equal.
pub(super) struct Streams {
    pub(super) reason: &'static str,
    /// Conditions that leave these streams out.
    pub(super) without: &'static [(&'static str, &'static str)],
    /// Whether the question can meet it.
    pub(super) applies: fn(&Question) -> bool,
}

const PURPOSES: [Purpose; 8] = [
    Purpose {
        reason: "lines that a stage could not read are counted with a warning; Loki fails the query",
        holds: |case| {
            is_refused_with(case, "pipeline error")
                && is_answer(case.ours)
                && !case.warnings.is_empty()
        },
    },
    Purpose {
        reason: "selectors that match everything are allowed",
        holds: |case| {
            is_answer(case.ours)
                && (is_refused_with(case, "at least one regexp or equality matcher")
                    || (case.question.selector().is_none()
                        && is_refused_with(case, "unexpected $end")))
        },
    },
    Purpose {
        reason: "labels without text are none; Loki shows those that a stage made",
        holds: |case| is_equal_after(case, without_empty),
    },
    Purpose {
        reason: "details of errors are in words of our own",
        holds: |case| is_equal_after(case, |answer| without_empty(&without_details(answer))),
    },
    Purpose {
        reason: "structured metadata are labels of streams, as all that is declared beside lines",
        holds: |case| {
            let plain =
                |answer: &Answer| without_empty(&without_details(&without_metadata(answer)));
            case.question.is_categorized && is_equal_after(case, plain)
        },
    },
    Purpose {
        reason: "volumes are bytes of lines, by steps from the start; Loki's are of chunks and of whole steps",
        holds: |case| {
            matches!(case.question.subject, Subject::Other(name) if name.starts_with("index/volume"))
                && labels_of(case.loki) == labels_of(case.ours)
        },
    },
    Purpose {
        reason: "a condition on a label with an empty expression asks for no text; Loki takes all",
        holds: |case| match &case.question.subject {
            Subject::Query { query, .. } => query.logs().iter().any(|log| {
                let mut filters = log.stages.iter().filter(|s| s.kind == Kind::LabelFilter);
                filters.any(|s| s.text.contains("~\"\""))
            }),
            Subject::Other(_) => false,
        },
    },
    Purpose {
        reason: "conditions, `unwrap` and `by` take fields of lines without a parser",
        holds: |case| match &case.question.subject {
            Subject::Query { query, .. } => takes_fields(query),
            Subject::Other(_) => false,
        },
    },
];

/// What is in streams of its own.
pub(super) const STREAMS: [Streams; 5] = [
    Streams {
        reason: "fields of lines that are named like labels count as these",
        without: &[("odd", "!=\"clash\"")],
        applies: |question| matches!(question.subject, Subject::Query { .. }),
    },
    Streams {
        reason: "`json` with expressions tells of lines that are no JSON; Loki takes what it finds",
        without: &[("odd", "!=\"broken\"")],
        applies: |question| match &question.subject {
            Subject::Query { query, .. } => query.logs().into_iter().any(has_expressions),
            Subject::Other(_) => false,
        },
    },
    Streams {
        reason: "levels in text are found by other rules, and are a label `level`",
        without: &[("odd", "!=\"levels\"")],
        applies: |question| matches!(question.subject, Subject::Query { .. }),
    },
    Streams {
        reason: "several of these",
        without: &[("odd", "=\"\"")],
        applies: |question| matches!(question.subject, Subject::Query { .. }),
    },
    Streams {
        reason: "lists of labels have structured metadata, and fields that are named like labels",
        without: &[("job", "!=\"meta\""), ("odd", "=\"\"")],
        applies: |question| matches!(question.subject, Subject::Other(_)),
    },
];

/// Why two answers differ on purpose, if the answers show it.
pub(super) fn reason(case: &Case<'_>) -> Option<&'static str> {
    let found = PURPOSES.iter().find(|purpose| (purpose.holds)(case));
    found.map(|purpose| purpose.reason)
}

/// Whether nothing else differs once both answers are changed so.
fn is_equal_after(case: &Case<'_>, change: impl Fn(&Answer) -> Answer) -> bool {
    compare(&change(case.loki), &change(case.ours), case.promise).is_none()
}

/// Whether Loki says that the question is wrong, with these words.
fn is_refused_with(case: &Case<'_>, words: &str) -> bool {
    matches!(case.loki, Answer::Refused(text) if text.contains(words))
}

fn is_answer(answer: &Answer) -> bool {
    !matches!(answer, Answer::Refused(_) | Answer::Failed(_))
}

fn has_expressions(log: &Log) -> bool {
    let mut stages = log.stages.iter();
    stages.any(|stage| stage.kind == Kind::Json && stage.text != "| json")
}

/// Whether a query names fields of lines where no parser has found them.
fn takes_fields(query: &Query) -> bool {
    let is_field = |word: &str| {
        let fields = pipelines::TEXTS.iter().chain(&pipelines::NUMBERS);
        let fields = fields.chain(&pipelines::DURATIONS).chain(&pipelines::SIZES);
        fields
            .filter(|field| **field != "detected_level")
            .any(|field| *field == word)
    };
    let names_field = |text: &str| {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.into_iter().any(is_field)
    };
    let unparsed = |log: &Log| {
        let before = log.stages.iter().take_while(|stage| !is_parser(stage));
        let mut looking =
            before.filter(|stage| matches!(stage.kind, Kind::LabelFilter | Kind::Unwrap));
        looking.any(|stage| names_field(&stage.text))
    };
    let groups = query.groupings().iter().any(|label| is_field(label));
    let logs = query.logs();
    let has_unparsed = logs.iter().any(|log| !log.stages.iter().any(is_parser));
    logs.iter().any(|log| unparsed(log)) || (groups && has_unparsed)
}

fn labels_of(answer: &Answer) -> Vec<Labels> {
    let mut labels: Vec<Labels> = match answer {
        Answer::Series { series, .. } => series.iter().map(|(labels, _)| labels.clone()).collect(),
        _ => Vec::new(),
    };
    labels.sort_unstable();
    labels
}

/// An answer with other labels.
fn relabelled(answer: &Answer, change: impl Fn(&Labels) -> Labels) -> Answer {
    match answer {
        Answer::Streams(streams) => {
            let mut changed: BTreeMap<Labels, Vec<_>> = BTreeMap::new();
            for (labels, entries) in streams {
                let of_stream = changed.entry(change(labels)).or_default();
                of_stream.extend(entries.iter().cloned().map(|mut entry| {
                    entry.beside = change(&entry.beside);
                    entry
                }));
            }
            changed
                .values_mut()
                .for_each(|entries| entries.sort_by_key(|entry| entry.time_ns));
            Answer::Streams(changed)
        }
        Answer::Series { kind, series } => {
            let series = series.iter();
            let series = series.map(|(labels, points)| (change(labels), points.clone()));
            Answer::Series {
                kind: kind.clone(),
                series: series.collect(),
            }
        }
        other => other.clone(),
    }
}

/// An answer without labels that have no text.
fn without_empty(answer: &Answer) -> Answer {
    without(answer, |_, value| {
        value.as_str() == Some("") || value.as_object().is_some_and(serde_json::Map::is_empty)
    })
}

/// An answer without details of errors.
fn without_details(answer: &Answer) -> Answer {
    without(answer, |name, _| name == "__error_details__")
}

/// An answer without some of its labels.
fn without(answer: &Answer, is_left_out: fn(&str, &Value) -> bool) -> Answer {
    fn clean(value: &mut Value, is_left_out: fn(&str, &Value) -> bool) {
        if let Some(members) = value.as_object_mut() {
            let values = members.values_mut();
            values.for_each(|value| clean(value, is_left_out));
            members.retain(|name, value| !is_left_out(name, value));
        }
    }
    relabelled(answer, |labels| {
        match serde_json::from_str::<Value>(labels) {
            Ok(mut value) => {
                clean(&mut value, is_left_out);
                value.to_string()
            }
            Err(_) => labels.clone(),
        }
    })
}

/// An answer whose entries have all that is no part of the line as labels of their streams.
fn without_metadata(answer: &Answer) -> Answer {
    let Answer::Streams(streams) = answer else {
        return answer.clone();
    };
    let mut changed: BTreeMap<Labels, Vec<_>> = BTreeMap::new();
    for (labels, entries) in streams {
        for entry in entries {
            let mut beside: Value = serde_json::from_str(&entry.beside).unwrap_or_default();
            let mut all: Value = serde_json::from_str(labels).unwrap_or_default();
            let metadata = beside
                .as_object_mut()
                .and_then(|beside| beside.remove("structuredMetadata"));
            if let (Some(all), Some(Value::Object(metadata))) = (all.as_object_mut(), metadata) {
                all.extend(metadata);
            }
            let mut entry = entry.clone();
            entry.beside = match beside.as_object().is_none_or(serde_json::Map::is_empty) {
                true => String::new(),
                false => beside.to_string(),
            };
            changed.entry(all.to_string()).or_default().push(entry);
        }
    }
    changed
        .values_mut()
        .for_each(|entries| entries.sort_by_key(|entry| entry.time_ns));
    Answer::Streams(changed)
}
