//! Numbers in Loki's form, which is that of Prometheus.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::Response;
use logpond_record::{Timestamp, cast};
use logpond_search::metric::{Answer, Plan, SeriesLabels};
use serde_json::{Value, json};

use super::LokiRequest;
use super::reply::{Writer, failed, gathered, seconds, write_labels, write_warnings};
use crate::App;
use crate::body::Body;
use crate::error::ApiError;
use logpond_engine::query::Output;

/// What an answer took, as far as clients show it.
pub(super) struct Stats {
    /// Bytes read.
    pub(super) bytes: u64,
    /// Records looked at.
    pub(super) rows: u64,
    /// Lines of the answer.
    pub(super) entries: u64,
    /// How long it took.
    pub(super) time: Duration,
}

impl Stats {
    pub(super) fn json(&self) -> Value {
        let time_s = self.time.as_secs_f64();
        let each_second = |count: u64| {
            if time_s > 0.0 {
                cast::whole_u64(cast::float(count) / time_s)
            } else {
                0
            }
        };
        json!({ "summary": {
            "bytesProcessedPerSecond": each_second(self.bytes),
            "linesProcessedPerSecond": each_second(self.rows),
            "totalBytesProcessed": self.bytes,
            "totalLinesProcessed": self.rows,
            "execTime": time_s,
            "queueTime": 0,
            "subqueries": 0,
            "totalEntriesReturned": self.entries,
            "splits": 0,
            "shards": 0,
            "totalPostFilterLines": self.rows,
            "totalStructuredMetadataBytesProcessed": 0,
        }, "querier": {}, "ingester": {}, "cache": {}, "index": {} })
    }
}

/// Answers a query for numbers; those of an instant are of `at`.
pub(super) async fn answer(
    app: &Arc<App>,
    request: &LokiRequest,
    plan: Plan,
    at: Timestamp,
) -> Result<Response<Body>, ApiError> {
    let gather = move |app: &App, out: &mut Output| {
        let started = Instant::now();
        let found = app.engine.numbers(&plan, out).map_err(failed)?;
        let stats = Stats {
            bytes: found.trailer.bytes_scanned,
            rows: found.trailer.rows,
            entries: 0,
            time: started.elapsed(),
        };
        Ok(((found.answer, found.warnings, stats), found.trailer))
    };
    gathered(app, &request.headers, gather, move |found, missing, to| {
        let (answer, warnings, stats) = found;
        to.write_all(b"{\"status\":\"success\",\"data\":{\"resultType\":")?;
        write(&answer, at, to)?;
        write!(to, ",\"stats\":{}}}", stats.json())?;
        write_warnings(&[missing, &warnings].concat(), to)?;
        to.write_all(b"}\n")
    })
    .await
}

fn write(answer: &Answer, at: Timestamp, to: Writer<'_>) -> io::Result<()> {
    match answer {
        Answer::Scalar(value) => {
            let (at, value) = (seconds(at), number(*value));
            write!(to, "\"scalar\",\"result\":[{at},\"{value}\"]")
        }
        Answer::Vector(samples) => {
            to.write_all(b"\"vector\",\"result\":[")?;
            for (place, sample) in samples.iter().enumerate() {
                begin_series(place, &sample.labels, to)?;
                let (at, value) = (seconds(at), number(sample.value));
                write!(to, "\"value\":[{at},\"{value}\"]}}")?;
            }
            to.write_all(b"]")
        }
        Answer::Matrix(series) => {
            to.write_all(b"\"matrix\",\"result\":[")?;
            for (place, series) in series.iter().enumerate() {
                begin_series(place, &series.labels, to)?;
                to.write_all(b"\"values\":[")?;
                for (place, (time, value)) in series.points.iter().enumerate() {
                    let comma = if place > 0 { "," } else { "" };
                    let (time, value) = (seconds(*time), number(*value));
                    write!(to, "{comma}[{time},\"{value}\"]")?;
                }
                to.write_all(b"]}")?;
            }
            to.write_all(b"]")
        }
    }
}

fn begin_series(place: usize, labels: &SeriesLabels, to: Writer<'_>) -> io::Result<()> {
    let comma = if place > 0 { "," } else { "" };
    write!(to, "{comma}{{\"metric\":")?;
    write_labels(labels.iter(), to)?;
    to.write_all(b",")
}

/// A number as Prometheus writes it: exponents for what is very large or small.
fn number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    value.to_string()
}

#[cfg(test)]
mod tests {
    use logpond_search::metric::{Sample, Series};

    use super::*;

    #[test]
    fn numbers_are_written_as_prometheus_writes_them() {
        let table = [
            (2.0, "2"),
            (0.1, "0.1"),
            (-0.5, "-0.5"),
            (1.0 / 3.0, "0.3333333333333333"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (2.5e-7, "2.5e-07"),
            (0.0, "0"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ];
        for (value, text) in table {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn answers_have_the_forms_of_prometheus() {
        let labels = Arc::new(SeriesLabels::new([("app", "a\"b")]));
        let sample = Sample {
            labels: labels.clone(),
            value: 2.0,
        };
        let points = vec![
            (Timestamp(1_500_000_000), 1.0),
            (Timestamp(2_000_000_000), 0.5),
        ];
        let table = [
            (Answer::Scalar(2.0), r#""scalar","result":[4,"2"]"#),
            (
                Answer::Vector(vec![sample]),
                r#""vector","result":[{"metric":{"app":"a\"b"},"value":[4,"2"]}]"#,
            ),
            (
                Answer::Matrix(vec![Series { labels, points }]),
                r#""matrix","result":[{"metric":{"app":"a\"b"},"values":[[1.500,"1"],[2,"0.5"]]}]"#,
            ),
            (Answer::Matrix(Vec::new()), r#""matrix","result":[]"#),
        ];
        for (answer, expected) in table {
            let mut out = Vec::new();
            write(&answer, Timestamp(4_000_000_000), &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
