//! Differences that are kept on purpose: each with its reason and with what tells it from mistakes.

use std::collections::{BTreeMap, BTreeSet};

use super::answer::{Answer, Labels};
use super::ask::{Question, Subject};
use super::compare::{Promise, compare};
use super::pipelines::{self, is_parser};
use super::query::{Kind, Log, Query, Stage};
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

const PURPOSES: [Purpose; 28] = [
    Purpose {
        reason: GROUPS,
        holds: |case| {
            let keeps_empty =
                |stage: &Stage| is_parser(stage) && stage.text.contains("--keep-empty");
            let text = case.question.selector().unwrap_or_default();
            text.contains("without (") && has_stage(case.question, keeps_empty)
        },
    },
    Purpose {
        reason: "with `interval` the limit counts lines that are left; Loki thins out as many as it says",
        holds: |case| {
            let times = |answer: &Answer| match answer {
                Answer::Streams(streams) => {
                    let entries = streams.values().flatten();
                    entries.map(|entry| entry.time_ns).collect()
                }
                _ => BTreeSet::new(),
            };
            case.question.is_thinned
                && count(case.loki) < count(case.ours)
                && count(case.ours) <= case.promise.limit
                && times(case.loki).is_subset(&times(case.ours))
        },
    },
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
        reason: "templates that are wrong are refused, also where Loki leaves them out",
        holds: |case| matches!(case.ours, Answer::Refused(text) if text.contains("invalid line template")),
    },
    Purpose {
        reason: "details of errors are in words of our own",
        holds: |case| is_equal_after(case, without_details),
    },
    Purpose {
        reason: "structured metadata are labels of streams, as all that is declared beside lines",
        holds: |case| {
            let plain = |answer: &Answer| without_details(&without_metadata(answer));
            case.question.is_categorized && is_equal_after(case, plain)
        },
    },
    Purpose {
        reason: "lines of one time that are equal once formatted are all shown; Loki shows one",
        holds: |case| {
            let has_template = has_stage(case.question, |stage| stage.kind == Kind::LineFormat);
            let plain = |answer: &Answer| {
                if case.question.is_categorized {
                    without_details(&without_metadata(answer))
                } else {
                    without_details(answer)
                }
            };
            // Behind the limit there are others for those that Loki leaves out.
            let is_full = count(case.loki) == case.promise.limit
                && count(&without_copies(&plain(case.ours))) < count(case.ours);
            let shown_once = |answer: &Answer| without_copies(&plain(answer));
            has_template && (is_full || is_equal_after(case, shown_once))
        },
    },
    Purpose {
        reason: "no series comes twice; Loki's do where labels that differ are gone",
        holds: |case| {
            let is_twice = |answer: &Answer| {
                let labels = labels_of(&without_empty(answer));
                labels.windows(2).any(|pair| pair[0] == pair[1])
            };
            let chooses = Promise {
                chooses: true,
                ..case.promise
            };
            let is_replaced = case
                .question
                .selector()
                .is_some_and(|q| q.contains("label_replace"));
            is_replaced
                && (is_twice(case.loki) || is_twice(case.ours))
                && compare(case.loki, case.ours, chooses).is_none()
        },
    },
    Purpose {
        reason: "of conditions in one stage the first is asked first, also about errors",
        holds: |case| {
            has_stage(case.question, |stage| {
                let words = [" and ", " or ", ", "];
                stage.kind == Kind::LabelFilter
                    && stage.text.contains("__error__")
                    && words.iter().any(|word| stage.text.contains(word))
            })
        },
    },
    Purpose {
        reason: "words of the language are labels where only labels can stand",
        holds: |case| {
            let words = [
                "by", "json", "keep", "drop", "unwrap", "bool", "offset", "and", "or",
            ];
            let mut refused = words.iter().map(|word| format!("unexpected {word}"));
            let compared = ["json>", "json=", "json<"];
            let is_compared = case
                .question
                .selector()
                .is_some_and(|query| compared.iter().any(|text| query.contains(text)));
            let is_mutated = matches!(
                case.question.subject,
                Subject::Query {
                    query: Query::Mutated(_),
                    ..
                }
            );
            let is_word = is_mutated && refused.any(|words| is_refused_with(case, &words));
            is_answer(case.ours) && (is_word || is_compared)
        },
    },
    Purpose {
        reason: "sizes in queries are exact; Loki's frontend hands them on rounded",
        holds: |case| {
            has_stage(case.question, |stage| {
                stage.kind == Kind::LabelFilter && stage.text.contains("KiB")
            })
        },
    },
    Purpose {
        reason: "there may be blanks in the brackets of a range",
        holds: |case| {
            is_answer(case.ours) && is_refused_with(case, "not a valid duration string: \" ")
        },
    },
    Purpose {
        reason: "`substr` behind the end of a text is empty; in Loki it is an error",
        holds: |case| {
            let beyond = ["substr 1 3 ", "substr -1 3 "];
            has_stage(case.question, |stage| {
                beyond.iter().any(|text| stage.text.contains(text))
            })
        },
    },
    Purpose {
        reason: "an empty alternative of a line filter is in every line; Loki leaves it out",
        holds: |case| {
            has_stage(case.question, |stage| {
                stage.kind == Kind::LineFilter && stage.text.contains("or \"\"")
            })
        },
    },
    Purpose {
        reason: "a label that was dropped or renamed can be found again by a parser behind",
        holds: |case| {
            logs_of(case.question).iter().any(|log| {
                let mut stages = log.stages.iter();
                let is_dropping = |stage: &Stage| {
                    matches!(stage.kind, Kind::Drop | Kind::Keep)
                        || stage.text.contains("msg=code, code=msg")
                };
                stages.any(is_dropping) && stages.any(is_parser)
            })
        },
    },
    Purpose {
        reason: "stages run as they are written; Loki asks conditions before templates that they do not look at",
        holds: |case| {
            logs_of(case.question).iter().any(|log| {
                let mut stages = log.stages.iter();
                let has_template = |stage: &Stage| {
                    let kinds = [Kind::LabelFormat, Kind::LineFormat];
                    kinds.contains(&stage.kind) && stage.text.contains("{{")
                };
                let of_errors = |stage: &Stage| {
                    stage.kind == Kind::LabelFilter
                        && (stage.text.contains("ip(") || stage.text.contains("__error__"))
                };
                stages.any(has_template) && stages.any(of_errors)
            })
        },
    },
    Purpose {
        reason: "expressions find what a parser has found before; Loki leaves the label without text",
        holds: |case| {
            read_logs(case.question).iter().any(|log| {
                let mut stages = log.stages.iter();
                let plain = [
                    "| json",
                    "| logfmt --strict",
                    "| logfmt --keep-empty",
                    "| logfmt",
                ];
                let more = |stage: &Stage| !plain.iter().any(|plain| stage.text == *plain);
                let expressions =
                    |stage: &Stage| matches!(stage.kind, Kind::Json | Kind::Logfmt) && more(stage);
                stages.any(is_parser) && stages.any(expressions)
            })
        },
    },
    Purpose {
        reason: "series that labels without text tell apart are operands of their own; Loki refuses them",
        holds: |case| {
            let words = ["multiple matches for labels", "found duplicate series"];
            is_answer(case.ours)
                && words.iter().any(|words| is_failed_with(case, words))
                && has_stage(case.question, |stage| {
                    is_parser(stage) && stage.text.contains(['=', ','])
                        || stage.text.contains("keep-empty")
                        || stage.kind == Kind::Regexp
                        || stage.kind == Kind::LabelFormat
                })
        },
    },
    Purpose {
        reason: "a condition on a label with an empty expression asks for no text; Loki takes all",
        holds: |case| {
            let empty = ["~\"\"", "(?:)"];
            has_stage(case.question, |stage| {
                stage.kind == Kind::LabelFilter
                    && empty.iter().any(|text| stage.text.contains(text))
            })
        },
    },
    Purpose {
        reason: "wrong stages are refused; Loki answers nothing where labels are told by origin",
        holds: |case| {
            let wrong = ["error parsing regexp", "invalid template"];
            let is_wrong = |text: &String| wrong.iter().any(|words| text.contains(words));
            case.question.is_categorized
                && matches!(case.ours, Answer::Refused(text) if is_wrong(text))
                && is_answer(case.loki)
                && count(case.loki) == 0
        },
    },
    Purpose {
        reason: "choices of an expression mean what they say; Loki cuts some to shorter ones",
        holds: |case| {
            let of_choices = |text: &str| text.contains(".*(") || text.contains("(?:cart|api");
            let text = case.question.selector().unwrap_or_default();
            let is_mutated = logs_of(case.question).is_empty();
            let is_such = |stage: &Stage| {
                matches!(stage.kind, Kind::LineFilter | Kind::LabelFilter)
                    && of_choices(&stage.text)
            };
            has_stage(case.question, is_such) || (is_mutated && text.contains(".*(ms|s)"))
        },
    },
    Purpose {
        reason: "deviations of equal numbers are equal; Loki's differ in their last digits",
        holds: |case| {
            let Subject::Query { query, .. } = &case.question.subject else {
                return false;
            };
            let shape = query.shape();
            let deviations = shape.matches("stdvar(").count() + shape.matches("stddev(").count();
            let compared = [" == ", " != ", " > ", " < ", " >= ", " <= "];
            deviations > 1 && compared.iter().any(|operator| shape.contains(operator))
        },
    },
    Purpose {
        reason: "`label_replace` makes only labels that the language can name",
        holds: |case| {
            let words = "invalid label name in label_replace";
            is_answer(case.loki)
                && matches!(case.ours, Answer::Refused(text) if text.contains(words))
        },
    },
    Purpose {
        reason: "conditions are asked as they are written; Loki asks those on addresses last",
        holds: |case| {
            logs_of(case.question).iter().any(|log| {
                let is_condition = |stage: &&Stage| stage.kind == Kind::LabelFilter;
                let mut conditions = log.stages.iter().filter(is_condition);
                conditions.any(|stage| stage.text.contains("ip(")) && conditions.next().is_some()
            })
        },
    },
    Purpose {
        reason: "conditions, `unwrap` and `by` take fields of lines without a parser",
        holds: |case| match &case.question.subject {
            Subject::Query { query, .. } => takes_fields(query),
            Subject::Other(_) => false,
        },
    },
    Purpose {
        reason: "volumes are bytes of lines; Loki's are of chunks, with metadata",
        holds: |case| {
            is_about(case.question, "index/volume") && labels_of(case.loki) == labels_of(case.ours)
        },
    },
    Purpose {
        reason: "the type of a detected field is that of most values; Loki's is that of one",
        holds: |case| {
            is_about(case.question, "detected_fields")
                && detected(case.loki).is_some()
                && detected(case.loki) == detected(case.ours)
        },
    },
];

/// Why answers differ where lines have labels without text by which something is grouped.
pub(super) const GROUPS: &str =
    "a label without text is none to groups; Loki has a group of its own for it";

/// What is in streams of its own.
pub(super) const STREAMS: [Streams; 5] = [
    Streams {
        reason: "fields of lines that are named like labels count as these",
        without: &[("odd", "!=\"clash\"")],
        applies: |question| matches!(question.subject, Subject::Query { .. }),
    },
    Streams {
        reason: "`json` with expressions and `unpack` read JSON behind blanks, and tell of what is broken",
        without: &[("odd", "!=\"broken\"")],
        applies: |question| match &question.subject {
            Subject::Query { query, .. } => query.logs().into_iter().any(may_differ_on_broken),
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

/// The same where Loki says that something else went wrong.
fn is_failed_with(case: &Case<'_>, words: &str) -> bool {
    matches!(case.loki, Answer::Failed(text) if text.contains(words))
}

fn is_answer(answer: &Answer) -> bool {
    !matches!(answer, Answer::Refused(_) | Answer::Failed(_))
}

fn logs_of(question: &Question) -> Vec<&Log> {
    match &question.subject {
        Subject::Query { query, .. } => query.logs(),
        Subject::Other(_) => Vec::new(),
    }
}

/// The same of a query that was changed as text, as far as it still shows parsers.
fn read_logs(question: &Question) -> Vec<Log> {
    let Subject::Query {
        query: Query::Mutated(text),
        ..
    } = &question.subject
    else {
        return logs_of(question).into_iter().cloned().collect();
    };
    let stages = text.split(" | ").skip(1).filter_map(|text| {
        let text = text.split(" [").next().unwrap_or_default();
        let kind = match text.split(' ').next()? {
            "json" => Kind::Json,
            "logfmt" => Kind::Logfmt,
            _ => return None,
        };
        Some(Stage {
            kind,
            text: format!("| {text}"),
        })
    });
    vec![Log {
        matchers: Vec::new(),
        stages: stages.collect(),
    }]
}

/// Whether a query has such a stage.
fn has_stage(question: &Question, is_such: impl Fn(&Stage) -> bool) -> bool {
    let logs = logs_of(question);
    let mut stages = logs.iter().flat_map(|log| &log.stages);
    stages.any(is_such)
}

fn is_about(question: &Question, name: &str) -> bool {
    matches!(question.subject, Subject::Other(subject) if subject.starts_with(name))
}

/// Detected fields by their names, with how they were found and how many values they have.
fn detected(answer: &Answer) -> Option<BTreeMap<String, String>> {
    let Answer::Set(parts) = answer else {
        return None;
    };
    let fields = parts.iter().filter_map(|part| part.strip_prefix("fields "));
    let fields = fields.filter_map(|field| serde_json::from_str::<Value>(field).ok());
    let named = fields.map(|field| {
        let (how, path) = (&field["parsers"], &field["jsonPath"]);
        let how = format!("{how} {path} {}", field["cardinality"]);
        (field["label"].to_string(), how)
    });
    Some(named.collect())
}

fn may_differ_on_broken(log: &Log) -> bool {
    let mut stages = log.stages.iter();
    stages.any(|stage| {
        (stage.kind == Kind::Json && stage.text != "| json") || stage.kind == Kind::Unpack
    })
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

/// How many entries there are.
fn count(answer: &Answer) -> usize {
    match answer {
        Answer::Streams(streams) => streams.values().map(Vec::len).sum(),
        _ => 0,
    }
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
                    if entry.beside == "{}" {
                        entry.beside.clear();
                    }
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

/// An answer in which no entry of a stream is there twice.
fn without_copies(answer: &Answer) -> Answer {
    let Answer::Streams(streams) = answer else {
        return answer.clone();
    };
    let streams = streams.iter().map(|(labels, entries)| {
        let mut entries = entries.clone();
        entries.sort_by(|a, b| (a.time_ns, &a.line).cmp(&(b.time_ns, &b.line)));
        entries.dedup();
        (labels.clone(), entries)
    });
    Answer::Streams(streams.collect())
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
            entry.beside = if beside.as_object().is_none_or(serde_json::Map::is_empty) {
                String::new()
            } else {
                beside.to_string()
            };
            changed.entry(all.to_string()).or_default().push(entry);
        }
    }
    changed
        .values_mut()
        .for_each(|entries| entries.sort_by_key(|entry| entry.time_ns));
    Answer::Streams(changed)
}

#[cfg(test)]
mod tests {
    use super::super::ask::{self, Reply};
    use super::super::query::Matcher;
    use super::*;
    use crate::draw::Draw;

    fn question(stages: &[(Kind, &str)]) -> Question {
        let stages = stages.iter().map(|(kind, text)| Stage {
            kind: *kind,
            text: (*text).to_owned(),
        });
        let query = Query::Log(Log {
            matchers: vec![Matcher {
                name: "app".into(),
                rest: "=\"a\"".into(),
            }],
            stages: stages.collect(),
        });
        let mut questions = ask::of_query(&mut Draw::new(1, 1), &query);
        questions.remove(0)
    }

    /// Whether two answers of streams differ on purpose.
    fn is_kept(question: &Question, streams: [&str; 2]) -> bool {
        let [loki, ours] = streams.map(|streams| {
            let text =
                format!("{{\"data\":{{\"resultType\":\"streams\",\"result\":[{streams}]}}}}");
            Answer::of(&Reply { status: 200, text })
        });
        let case = Case {
            question,
            loki: &loki,
            ours: &ours,
            warnings: &[],
            promise: Promise::default(),
        };
        assert!(compare(&loki, &ours, case.promise).is_some());
        reason(&case).is_some()
    }

    #[test]
    fn only_what_is_meant_is_kept() {
        let empty = r#"{"stream":{"a":"1","b":""},"values":[["1","x"]]}"#;
        let one = r#"{"stream":{"a":"1"},"values":[["1","x"]]}"#;
        let other = r#"{"stream":{"a":"2"},"values":[["1","x"]]}"#;
        let twice = r#"{"stream":{"a":"1"},"values":[["1","x"],["1","x"]]}"#;
        let plain = question(&[(Kind::Json, "| json")]);
        assert!(!is_kept(&plain, [empty, one]));
        assert!(!is_kept(&plain, [one, other]));
        assert!(!is_kept(&plain, [one, twice]));
        let formatted = question(&[(Kind::LineFormat, "| line_format `x`")]);
        assert!(is_kept(&formatted, [one, twice]));
        assert!(!is_kept(&formatted, [one, other]));
    }

    #[test]
    fn fields_without_a_parser_are_told() {
        let filter = (Kind::LabelFilter, "| level=\"error\"");
        let takes = |stages: &[(Kind, &str)]| match question(stages).subject {
            Subject::Query { query, .. } => takes_fields(&query),
            Subject::Other(_) => false,
        };
        assert!(takes(&[filter]));
        assert!(!takes(&[(Kind::Json, "| json"), filter]));
        assert!(!takes(&[(Kind::LabelFilter, "| env=\"dev\"")]));
    }
}
