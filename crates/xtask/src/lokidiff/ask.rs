//! Questions, and asking them.

use std::time::Duration;

use super::data::{FROM_S, LENGTH_S};
use super::query::{Matcher, Query};
use crate::draw::Draw;
use crate::e2e::http::{Client, encode};
use crate::run::Outcome;

/// How long an answer may take: who is slower hangs.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Subject {
    /// A generated query, over a range or at an instant.
    Query { query: Query, is_instant: bool },
    /// Something else, by its name.
    Other(&'static str),
}

/// A question, as far as both servers are asked the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    pub(super) subject: Subject,
    /// The path below `/loki/api/v1/`.
    path: String,
    /// The parameters but the query.
    parameters: String,
    /// The query as text, if there is one, and the parameter that it is.
    text: Option<String>,
    name: &'static str,
    /// The most lines that are wanted.
    pub(super) limit: usize,
    /// Whether lines are wanted newest first.
    pub(super) is_backward: bool,
    /// Whether lines are to be some time apart.
    pub(super) is_thinned: bool,
    /// Whether labels are asked for by where they come from.
    pub(super) is_categorized: bool,
}

/// What a server said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) text: String,
}

impl Question {
    /// The same question with another query.
    pub(super) fn with(&self, query: Query) -> Question {
        let is_instant = matches!(self.subject, Subject::Query { is_instant, .. } if is_instant);
        Question {
            text: Some(query.to_string()),
            subject: Subject::Query { query, is_instant },
            ..self.clone()
        }
    }

    /// The same question without some streams.
    pub(super) fn without(&self, conditions: &[(&str, &str)]) -> Question {
        let matchers = conditions.iter().map(|(name, rest)| Matcher {
            name: (*name).to_owned(),
            rest: (*rest).to_owned(),
        });
        if let Subject::Query { query, .. } = &self.subject {
            let query = matchers.fold(query.clone(), |query, m| query.with_matcher(&m));
            return self.with(query);
        }
        let conditions: Vec<_> = matchers.map(|m| format!("{}{}", m.name, m.rest)).collect();
        let conditions = conditions.join(", ");
        let text = self.text.as_deref().unwrap_or("{service_name=~\".+\"}");
        Question {
            text: Some(text.replacen('{', &format!("{{{conditions}, "), 1)),
            ..self.clone()
        }
    }

    /// The selector or query, if there is one.
    pub(super) fn selector(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The address that is asked, behind the server's.
    pub(super) fn target(&self) -> String {
        let name = self.name;
        let query = self
            .text
            .iter()
            .map(|text| format!("&{name}={}", encode(text)));
        format!(
            "/loki/api/v1/{}?{}{}",
            self.path,
            self.parameters,
            query.collect::<String>()
        )
    }

    /// What is asked, for a person.
    pub(super) fn shown(&self) -> String {
        let text = self.text.as_deref().unwrap_or_default();
        format!("{} {} {text}", self.path, self.parameters)
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        if self.is_categorized {
            &[("x-loki-response-encoding-flags", "categorize-labels")]
        } else {
            &[]
        }
    }

    /// Asks a server.
    pub(super) fn ask(&self, address: &str) -> Reply {
        match get(address, &self.target(), self.headers()) {
            Ok((status, text)) => Reply { status, text },
            // Whoever does not answer has failed, and is asked on.
            Err(text) => Reply { status: 599, text },
        }
    }
}

/// The status and body of an answer.
pub(super) fn get(address: &str, target: &str, headers: &[(&str, &str)]) -> Outcome<(u16, String)> {
    let failed = |e: std::io::Error| format!("{address}{target}: {e}");
    let client = Client::connect_within(address, ANSWERED_WITHIN, ANSWERED_WITHIN);
    let mut client = client.map_err(failed)?;
    let response = client.send("GET", target, headers, b"").map_err(failed)?;
    let status = response.status;
    Ok((status, response.text().map_err(failed)?))
}

/// The questions that a query is asked in.
pub(super) fn of_query(draw: &mut Draw, query: &Query) -> Vec<Question> {
    let text = query.to_string();
    let question = |is_instant: bool, parameters: String, limit: usize, is_categorized: bool| {
        let path = if is_instant { "query" } else { "query_range" };
        let query = query.clone();
        Question {
            subject: Subject::Query { query, is_instant },
            path: path.into(),
            is_backward: !parameters.to_lowercase().contains("direction=forward"),
            is_thinned: parameters.contains("interval="),
            parameters,
            text: Some(text.clone()),
            name: "query",
            limit,
            is_categorized,
        }
    };
    let start = FROM_S + draw.below(LENGTH_S as usize / 2) as i64;
    let start = if draw.below(3) > 0 { FROM_S } else { start };
    match query {
        Query::Log(_) => {
            let end = FROM_S + LENGTH_S - draw.below(2) as i64 * 1_800;
            let limit = *draw.one(&[5_000, 5_000, 10, 1, 100]);
            let is_categorized = draw.below(4) == 0;
            let directions = ["forward", "backward"].map(|direction| {
                let parameters =
                    format!("start={start}&end={end}&limit={limit}&direction={direction}");
                question(false, parameters, limit, is_categorized)
            });
            let mut questions: Vec<_> = directions.into();
            questions.extend(
                other_of_lines(draw, start, end).map(|(is_instant, text, limit)| {
                    question(is_instant, text, limit, is_categorized)
                }),
            );
            questions
        }
        Query::Metric(_) | Query::Mutated(_) => {
            let step = draw.one(&["7m", "300", "20m", "61s", "1h"]);
            let end = FROM_S + LENGTH_S + draw.below(2) as i64 * 900;
            let range = format!("start={start}&end={end}&step={step}");
            let at = FROM_S + draw.within(600, LENGTH_S as u64 + 600) as i64;
            let at = if draw.below(2) == 0 {
                FROM_S + LENGTH_S
            } else {
                at
            };
            vec![
                question(false, range, 100, false),
                question(
                    true,
                    format!("time={at}{}", draw.one(&INSTANTLY)),
                    100,
                    false,
                ),
            ]
        }
    }
}

/// What lines are not asked with everywhere: an interval, what is left out or wrong, an instant. Gives
/// whether it is an instant, the parameters, and the limit that they have.
fn other_of_lines(draw: &mut Draw, start: i64, end: i64) -> Option<(bool, String, usize)> {
    const INTERVALS: [&str; 12] = [
        "10m", "60", "0.5", "1m30s", "1h", "90s", "3600", "500ms", "0", "0s", "-1s", "x",
    ];
    let range = format!("start={start}&end={end}");
    match draw.below(6) {
        0 | 1 => {
            let limit = *draw.one(&[5_000, 5_000, 10]);
            let direction = draw.one(&["", "&direction=forward", "&direction=backward"]);
            let interval = draw.one(&INTERVALS);
            let text = format!("{range}&limit={limit}&interval={interval}{direction}");
            Some((false, text, limit))
        }
        2 => {
            let (rest, limit) = *draw.one(&[
                ("", 100),
                ("&direction=FORWARD", 100),
                ("&direction=BACKWARD&limit=7", 7),
                ("&limit=0", 0),
                ("&limit=-1", 0),
                ("&limit=x", 0),
                ("&direction=up", 100),
                ("&direction=", 100),
                ("&limit=&direction=forward", 100),
            ]);
            Some((false, format!("{range}{rest}"), limit))
        }
        3 => {
            let rest = draw.one(&INSTANTLY);
            Some((true, format!("time={end}{rest}"), 100))
        }
        _ => None,
    }
}

/// What an instant may be asked with.
const INSTANTLY: [&str; 8] = [
    "",
    "",
    "&limit=10",
    "&direction=forward",
    "&direction=backward&limit=1",
    "&limit=0",
    "&direction=sideways",
    "&limit=many",
];

/// Questions about labels, streams and volumes, over all entries.
pub(super) fn others() -> Vec<Question> {
    const SELECTORS: [&str; 8] = [
        "",
        "{app=\"shop\"}",
        "{env=\"prod\"}",
        "{app=~\".+\", env!=\"dev\"}",
        "{app=\"web\"} |= \"GET\"",
        "{app=\"nobody\"}",
        "{service_name=\"svc\"}",
        "{job=\"meta\"",
    ];
    const PATHS: [&str; 12] = [
        "labels",
        "label/app/values",
        "label/env/values",
        "label/service_name/values",
        "label/nobody/values",
        "series",
        "index/stats",
        "index/volume",
        "index/volume_range",
        "detected_labels",
        "detected_fields",
        "detected_field/level/values",
    ];
    let mut questions = Vec::new();
    for path in PATHS {
        for selector in SELECTORS {
            let (start, end) = (FROM_S - 1, FROM_S + LENGTH_S + 1);
            let mut parameters = format!("start={start}&end={end}");
            if path.starts_with("index/volume") {
                parameters.push_str("&limit=1000&step=1h");
            }
            if path.starts_with("detected_field") {
                parameters.push_str("&line_limit=5000&limit=1000");
            }
            questions.push(Question {
                subject: Subject::Other(path),
                path: path.into(),
                parameters,
                text: (!selector.is_empty()).then(|| selector.to_owned()),
                name: if path == "series" { "match[]" } else { "query" },
                limit: 1000,
                is_backward: false,
                is_thinned: false,
                is_categorized: false,
            });
        }
    }
    questions
}

#[cfg(test)]
mod tests {
    use super::super::numbers;
    use super::*;

    #[test]
    fn lines_are_asked_for_in_both_directions_and_numbers_in_both_ways() {
        let mut draw = Draw::new(1, 1);
        for number in 0..20 {
            let query = numbers::query(1, number);
            let questions = of_query(&mut draw, &query);
            assert!((2..=3).contains(&questions.len()));
            let part = format!("&query={}", encode(&query.to_string()));
            assert!(questions.iter().all(|q| q.target().ends_with(&part)));
        }
    }
}
