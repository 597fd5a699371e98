//! `GET|POST /loki/api/v1/patterns`: which kinds of messages there are, over time.

use std::io;
use std::sync::Arc;

use hyper::Response;
use logpond_record::write_json_string;
use logpond_search::aggregate::{Pattern, PatternsAnswer};
use logpond_search::logql;

use super::reply::{Writer, failed, gathered, write_warnings};
use super::{LokiRequest, selector, times};
use crate::App;
use crate::body::Body;
use crate::error::ApiError;

/// Patterns of an answer: more than anybody looks at.
const PATTERNS_MAX: usize = 1000;

/// The level of messages that have none, as these clients know it.
const NO_LEVEL: &str = "unknown";

/// Counts messages by pattern, in steps of time. Of a query's stages those count that records are
/// selected by: filters of lines and of labels that are not extracted.
pub(super) async fn answer(
    app: &Arc<App>,
    request: LokiRequest,
) -> Result<Response<Body>, ApiError> {
    let range = times::range(&request)?;
    let step_ns = times::step_ns(&request, range)?;
    let text = request.text("query").unwrap_or_default();
    let log = logql::parse_log(text).map_err(selector::refused)?;
    let gather = move |app: &App, out: &mut _| {
        let scope = selector::scope_of_filter(logql::filter_of(&log), range)?;
        let found = app
            .engine
            .patterns(&scope, (range, step_ns), PATTERNS_MAX, out);
        found.map_err(failed)
    };
    gathered(app, &request.headers, gather, |answer, warnings, to| {
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
        write_json_string(&filter_of(pattern), &mut out);
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

/// What stands for a part that differs, and for what a filter cannot say.
const CAPTURE: &str = "<_>";

/// The pattern as a filter (`|>`), which is what these clients make of it: of lines, not of the message in them,
/// with one capture at a time and none that has a name.
fn filter_of(pattern: &Pattern) -> String {
    let text = String::from_utf8_lossy(&pattern.text);
    let mut filter = String::with_capacity(text.len() + 2 * CAPTURE.len());
    if pattern.is_part {
        push_capture(&mut filter);
    }
    let mut rest = &*text;
    while let Some(sign) = rest.chars().next() {
        let named = capture_length(rest);
        // In the line a message may be written with escapes.
        let is_escaped = pattern.is_part && (matches!(sign, '"' | '\\') || sign.is_control());
        if named.is_some() || is_escaped || sign == char::REPLACEMENT_CHARACTER {
            push_capture(&mut filter)
        } else {
            filter.push(sign)
        }
        rest = &rest[named.unwrap_or(sign.len_utf8())..];
    }
    if pattern.is_part {
        push_capture(&mut filter);
    }
    filter
}

fn push_capture(filter: &mut String) {
    if !filter.ends_with(CAPTURE) {
        filter.push_str(CAPTURE);
    }
}

/// The length of a text's beginning if a filter takes that for a capture: a name in angle brackets.
fn capture_length(text: &str) -> Option<usize> {
    let (name, _) = text.strip_prefix('<')?.split_once('>')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = name
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    (begins && name.bytes().all(is_name)).then_some(name.len() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_record::Timestamp;

    #[test]
    fn patterns_are_filters_of_lines() {
        let table = [
            ("req <_> done", false, "req <_> done"),
            ("req <_> done", true, "<_>req <_> done<_>"),
            ("<_> at <_>", true, "<_> at <_>"),
            ("no \"file\" <_>", true, "<_>no <_>file<_> <_>"),
            ("no \"file\"", false, "no \"file\""),
            (
                "of <principalId> and <5> <<_>",
                false,
                "of <_> and <5> <<_>",
            ),
            ("a <_><_>; <b><c>", false, "a <_>; <_>"),
            ("", true, "<_>"),
        ];
        for (text, is_part, expected) in table {
            let pattern = Pattern {
                text: text.as_bytes().into(),
                level: Box::default(),
                count: 1,
                is_part,
                buckets: Vec::new(),
                samples: Vec::new(),
            };
            let filter = filter_of(&pattern);
            assert_eq!(filter, expected, "{text}");
            if expected != CAPTURE {
                let query = format!("{{}} |> `{filter}`");
                assert!(logql::parse_log(&query).is_ok(), "{query}");
            }
        }
    }

    #[test]
    fn patterns_have_the_form_of_loki() {
        let pattern = |text: &[u8], level: &[u8]| Pattern {
            text: text.into(),
            level: level.into(),
            count: 3,
            is_part: false,
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
