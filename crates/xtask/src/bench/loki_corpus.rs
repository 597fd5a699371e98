//! The corpora in a Loki: each is one stream of lines, whose fields are found when they are asked for.

use serde_json::Value;

use super::corpus::Corpus;
use super::http::{Client, encode};
use super::peers::access_fields;
use crate::loki::Loki;
use crate::run::Outcome;

/// Bytes of lines in a push.
const PUSH_BYTES: usize = 2 << 20;

/// Everything that the corpora may be of, in seconds of Unix time: ten days from March 2026 on.
const FROM_S: i64 = 1_772_323_200;
const TO_S: i64 = FROM_S + 10 * 86_400;

/// A question in LogQL.
pub(super) enum Question {
    /// Lines of a query, the oldest or the newest of them first.
    Lines {
        query: String,
        limit: u64,
        direction: &'static str,
    },
    /// A number, or several, of all time.
    Total(String),
    /// A number for each hour.
    Hourly(String),
}

/// Lines of a query, oldest first.
pub(super) fn lines(query: String) -> Option<Question> {
    Some(Question::Lines {
        query,
        limit: 1000,
        direction: "forward",
    })
}

/// How many lines there are of a query.
pub(super) fn total(query: &str) -> Option<Question> {
    Some(Question::Total(format!(
        "sum(count_over_time({query}[10d]))"
    )))
}

/// The ten most frequent values of a field that a query finds.
pub(super) fn top(field: &str, query: &str) -> Option<Question> {
    Some(Question::Total(format!(
        "topk(10, sum by ({field}) (count_over_time({query}[10d])))"
    )))
}

/// How many lines there are of a query in each hour.
pub(super) fn hourly(query: &str) -> Option<Question> {
    Some(Question::Hourly(format!(
        "sum(count_over_time({query}[1h]))"
    )))
}

/// Where a number of all time is asked for.
pub(super) fn number(query: &str) -> String {
    Question::Total(query.into()).target()
}

impl Question {
    fn target(&self) -> String {
        let range = format!("start={FROM_S}&end={TO_S}");
        match self {
            Question::Lines {
                query,
                limit,
                direction,
            } => format!(
                "/loki/api/v1/query_range?{range}&limit={limit}&direction={direction}&query={}",
                encode(query)
            ),
            Question::Total(query) => {
                format!("/loki/api/v1/query?time={TO_S}&query={}", encode(query))
            }
            Question::Hourly(query) => format!(
                "/loki/api/v1/query_range?{range}&step=3600&query={}",
                encode(query)
            ),
        }
    }

    /// Asks it.
    pub(super) fn ask(&self, loki: &Loki) -> Outcome<()> {
        let mut client = Client::connect(loki.http()).map_err(|e| e.to_string())?;
        exchange(&mut client, "GET", &self.target(), b"")
    }
}

/// Pushes a corpus, and has it written to its store.
pub(super) fn load(loki: &Loki, corpus: &Corpus) -> Outcome<()> {
    let mut client = Client::connect(loki.http()).map_err(|e| e.to_string())?;
    let mut last_ns = i128::from(FROM_S) * 1_000_000_000;
    for piece in corpus.pieces(PUSH_BYTES)? {
        let text = String::from_utf8_lossy(&piece);
        let values = text.lines().map(|line| {
            // One without a time has that of the one before it.
            last_ns = time_ns(corpus.kind, line).unwrap_or(last_ns);
            format!(r#"["{last_ns}",{}]"#, Value::from(line))
        });
        let values: Vec<String> = values.collect();
        let body = format!(
            r#"{{"streams":[{{"stream":{{"app":"{}"}},"values":[{}]}}]}}"#,
            corpus.kind,
            values.join(",")
        );
        exchange(&mut client, "POST", "/loki/api/v1/push", body.as_bytes())?;
    }
    exchange(&mut client, "POST", "/flush", b"")
}

/// Sends a request, and reads its answer to the end.
fn exchange(client: &mut Client, method: &str, target: &str, body: &[u8]) -> Outcome<()> {
    let headers = [("content-type", "application/json")];
    let answer = client.send(method, target, &headers, body);
    let answer = answer.map_err(|e| format!("{target}: {e}"))?;
    let status = answer.status;
    let text = answer.text().map_err(|e| format!("{target}: {e}"))?;
    match status {
        200..300 => Ok(()),
        _ => Err(format!("{target}: {status} {text:.300}")),
    }
}

/// When a line of a corpus was written.
fn time_ns(kind: &str, line: &str) -> Option<i128> {
    let text = match kind {
        "nginx" => return Some(i128::from(access_fields(line)?.time_s) * 1_000_000_000),
        "app" => line.strip_prefix(r#"{"ts":""#)?.split('"').next()?,
        _ => line.split(' ').nth(1)?,
    };
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(time.as_nanosecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_times() {
        let syslog = "<28>1 2026-03-02T00:00:02.828756Z web-01 app 1 - - text";
        let json = r#"{"ts":"2026-03-02T00:00:02.828756Z","level":"info"}"#;
        for (kind, line) in [("mixed", syslog), ("app", json)] {
            assert_eq!(time_ns(kind, line), Some(1_772_409_602_828_756_000));
        }
        let access =
            r#"1.2.3.4 - - [02/Mar/2026:00:00:02 +0000] "GET / HTTP/1.1" 200 5 "-" "x" "y""#;
        assert_eq!(time_ns("nginx", access), Some(1_772_409_602_000_000_000));
        assert_eq!(time_ns("app", "no JSON"), None);
    }
}
