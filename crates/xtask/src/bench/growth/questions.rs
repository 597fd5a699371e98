//! The questions about free text and overviews, in the languages of both servers.

use super::super::corpus::Corpora;
use super::super::loki_corpus;
use super::super::pond::ALL_TIME;
use crate::e2e::http::encode;

/// A question, and the part of the peer's CPU that its first answer may take.
pub(super) struct Question {
    pub(super) name: &'static str,
    /// Path and parameters of Logpond's API.
    pub(super) target: String,
    /// In LogsQL.
    pub(super) peer: String,
    /// The most of the peer's CPU seconds.
    pub(super) share_max: f64,
}

/// A number of records that match, without the records.
fn count(q: &str) -> String {
    format!("/api/v1/histogram?{ALL_TIME}&step=36500d&q={}", encode(q))
}

fn counted(name: &'static str, own: &str, peer: &str, share_max: f64) -> Question {
    Question {
        name,
        target: count(own),
        peer: format!("{peer} | stats count()"),
        share_max,
    }
}

/// Questions that texts answer.
fn texts(corpora: &Corpora) -> Vec<Question> {
    let pattern = corpora.mixed.facts["regex"]["pattern"].as_str();
    let pattern = pattern.unwrap_or("Failed password for [^ ]+");
    let own = format!("/{}/", pattern.replace('/', "\\/"));
    let peer = format!(
        "~\"{}\"",
        pattern.replace('\\', "\\\\").replace('"', "\\\"")
    );
    vec![
        counted("count of a word in 4 %", "session", "session", 0.25),
        counted("count of a substring in 6 %", "essi", "~\"essi\"", 0.1),
        counted("the same in any case", "i\"essi\"", "~\"(?i)essi\"", 0.1),
        counted("expression with literals around a class", &own, &peer, 0.2),
        counted(
            "an id that is nowhere",
            "BP-130856138",
            "\"BP-130856138\"",
            0.05,
        ),
        counted(
            "a word that is nowhere",
            "nosuchword9q",
            "nosuchword9q",
            0.1,
        ),
    ]
}

/// Questions that tables answer.
fn overviews() -> Vec<Question> {
    let hourly = "/api/v1/histogram?from=2026-03-01T00:00:00Z&to=2026-03-10T00:00:00Z&step=1h&q=";
    vec![
        Question {
            name: "fields of everything",
            target: format!("/api/v1/fields?{ALL_TIME}"),
            peer: "* | field_names".into(),
            share_max: 0.05,
        },
        Question {
            name: "patterns of everything (peer: facets)",
            target: format!("/api/v1/patterns?{ALL_TIME}"),
            peer: "* | facets".into(),
            share_max: 0.05,
        },
        Question {
            name: "last 100",
            target: format!("/api/v1/query?{ALL_TIME}&direction=backward&limit=100&q="),
            peer: "* | sort by (_time desc) limit 100".into(),
            share_max: 0.1,
        },
        Question {
            name: "top 10 of a field",
            target: format!("/api/v1/top?{ALL_TIME}&n=10&field=remote_addr"),
            peer: "* | top 10 by (remote_addr)".into(),
            share_max: 0.1,
        },
        Question {
            name: "distinct addresses",
            target: loki_corpus::number(
                r#"count(count by (remote_addr) (count_over_time({remote_addr!=""} [10d])))"#,
            ),
            peer: "* | stats count_uniq(remote_addr)".into(),
            share_max: 0.1,
        },
        Question {
            name: "histogram by hour",
            target: hourly.into(),
            peer: "* | stats by (_time:1h) count()".into(),
            share_max: 0.1,
        },
        counted("count of all", "", "*", 0.1),
    ]
}

/// All questions.
pub(super) fn all(corpora: &Corpora) -> Vec<Question> {
    let mut all = texts(corpora);
    all.extend(overviews());
    all
}
