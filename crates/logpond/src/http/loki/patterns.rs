//! `GET|POST /loki/api/v1/patterns`: which kinds of messages there are, over time.

use std::io;
use std::sync::Arc;

use hyper::Response;
use logpond_record::write_json_string;
use logpond_search::aggregate::PatternsAnswer;
use logpond_search::logql;

use super::reply::{Writer, failed, gathered, write_warnings};
use super::{Asked, selector, times};
use crate::http::App;
use crate::http::body::Body;
use crate::http::error::ApiError;

/// Patterns of an answer: more than anybody looks at.
const PATTERNS_MAX: usize = 1000;

/// The level of messages that have none, as these clients know it.
const NO_LEVEL: &str = "unknown";

/// Counts messages by pattern, in steps of time. Of a query's stages those count that records are
/// selected by: filters of lines and of labels that are not extracted.
pub(super) async fn answer(app: &Arc<App>, asked: Asked) -> Result<Response<Body>, ApiError> {
    let range = times::range(&asked)?;
    let step_ns = times::step_ns(&asked, range)?;
    let text = asked.text("query").unwrap_or_default();
    let log = logql::parse_log(text).map_err(selector::refused)?;
    let gather = move |app: &App, out: &mut _| {
        let scope = selector::scope_of_filter(logql::filter_of(&log), range)?;
        let found = app
            .engine
            .patterns(&scope, range, step_ns, PATTERNS_MAX, out);
        found.map_err(failed)
    };
    gathered(app, &asked.headers, gather, |answer, warnings, to| {
        write(&answer, warnings, to)
    })
    .await
}

fn write(answer: &PatternsAnswer, warnings: &[String], to: Writer<'_>) -> io::Result<()> {
    to.write_all(b"{\"status\":\"success\",\"data\":[")?;
    for (place, pattern) in answer.patterns.iter().enumerate() {
        let level = match &*String::from_utf8_lossy(&pattern.level) {
            "" => NO_LEVEL.to_owned(),
            level => level.to_owned(),
        };
        let mut out = Vec::new();
        out.extend_from_slice(if place > 0 {
            b",{\"pattern\":"
        } else {
            b"{\"pattern\":"
        });
        write_json_string(&String::from_utf8_lossy(&pattern.text), &mut out);
        out.extend_from_slice(b",\"level\":");
        write_json_string(&level, &mut out);
        out.extend_from_slice(b",\"samples\":[");
        for (place, (time, count)) in pattern.buckets.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            let seconds = time.unix_ms().div_euclid(1000);
            out.extend_from_slice(format!("{comma}[{seconds},{count}]").as_bytes());
        }
        out.extend_from_slice(b"]}");
        to.write_all(&out)?;
    }
    to.write_all(b"]")?;
    write_warnings(warnings, to)?;
    to.write_all(b"}\n")
}

#[cfg(test)]
mod tests {
    use logpond_record::Timestamp;
    use logpond_search::aggregate::Pattern;

    use super::*;

    #[test]
    fn patterns_have_the_form_of_loki() {
        let pattern = |text: &[u8], level: &[u8]| Pattern {
            text: text.into(),
            level: level.into(),
            count: 3,
            buckets: vec![
                (Timestamp(60_000_000_000), 2),
                (Timestamp(120_000_000_000), 1),
            ],
            samples: Vec::new(),
        };
        let answer = PatternsAnswer {
            patterns: vec![pattern(b"a <_> \"b\"", b"info"), pattern(b"c", b"")],
            distinct: 2,
            is_coarse: false,
        };
        let mut out = Vec::new();
        write(&answer, &["x".to_owned()], &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            concat!(
                r#"{"status":"success","data":[{"pattern":"a <_> \"b\"","level":"info","#,
                r#""samples":[[60,2],[120,1]]},{"pattern":"c","level":"unknown","#,
                r#""samples":[[60,2],[120,1]]}],"warnings":["x"]}"#,
                "\n"
            )
        );
    }
}
