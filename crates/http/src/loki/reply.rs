//! Answers in Loki's forms: JSON, compressed if that is asked for, and errors as plain text.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use logpond_record::{Timestamp, cast, write_json_string};
use serde_json::Value;

use crate::App;
use crate::body::Body;
use crate::coding::Coding;
use crate::error::ApiError;
pub(super) use crate::logql::run::{absent as warnings, failed};
use logpond_engine::query::{Output, Trailer};

/// The type of all answers that are no error, as Loki writes it.
pub(super) const JSON: &str = "application/json; charset=UTF-8";

/// The type of errors.
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// What makes an answer of what was gathered.
pub(super) type Writer<'a> = &'a mut dyn Write;

/// An error as these clients show it.
pub(crate) fn refusal(error: ApiError) -> Response<Body> {
    let (status, _, _) = error.kind.row();
    let text = match &error.hint {
        Some(hint) => format!("{}; {hint}\n", error.message),
        None => format!("{}\n", error.message),
    };
    error.kind.dress(Body::whole(status, TEXT, text))
}

/// A small answer that is there already.
pub(super) fn json(value: &Value) -> Response<Body> {
    Body::whole(StatusCode::OK, JSON, format!("{value}\n"))
}

/// Gathers on a query thread what an answer is made of, and then writes it while it is sent: the
/// status is known before the first byte.
pub(super) async fn gathered<T: 'static>(
    app: &Arc<App>,
    headers: &HeaderMap,
    gather: impl FnOnce(&App, &mut Output) -> Result<(T, Trailer), ApiError> + Send + 'static,
    write: impl FnOnce(T, &[String], Writer<'_>) -> io::Result<()> + Send + 'static,
) -> Result<Response<Body>, ApiError> {
    let coding = Coding::of(headers);
    let app_there = app.clone();
    let work = move |out: &mut Output| {
        let started = Instant::now();
        let result = gather(&app_there, out);
        let metrics = &app_there.metrics;
        metrics.query_ns.observe_duration(started.elapsed());
        let (gathered, trailer) = result?;
        metrics.query_bytes.add(trailer.bytes_scanned);
        Ok((gathered, warnings(&trailer)))
    };
    let send = move |(gathered, warnings): (T, Vec<String>), out: &mut Output| {
        coding.send(out, |to| write(gathered, &warnings, to))
    };
    let mut response = app.threads.gathered(work, send).await?;
    let json = HeaderValue::from_static(JSON);
    response.headers_mut().insert(CONTENT_TYPE, json);
    coding.dress(&mut response);
    Ok(response)
}

/// Writes the warnings of an answer as a further member of an object, if there are any.
pub(super) fn write_warnings(warnings: &[String], to: Writer<'_>) -> io::Result<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    to.write_all(b",\"warnings\":")?;
    write_texts(warnings, to)
}

/// Writes a list of texts.
pub(super) fn write_texts<S: AsRef<str>>(
    texts: impl IntoIterator<Item = S>,
    to: Writer<'_>,
) -> io::Result<()> {
    let mut text = Vec::new();
    to.write_all(b"[")?;
    for (at, value) in texts.into_iter().enumerate() {
        text.clear();
        if at > 0 {
            text.push(b',');
        }
        write_json_string(value.as_ref(), &mut text);
        to.write_all(&text)?;
    }
    to.write_all(b"]")
}

/// Writes labels as an object.
pub(super) fn write_labels<'l, S: AsRef<str>>(
    labels: impl IntoIterator<Item = (&'l str, S)>,
    to: Writer<'_>,
) -> io::Result<()> {
    let mut text = vec![b'{'];
    for (at, (name, value)) in labels.into_iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        write_json_string(name, &mut text);
        text.push(b':');
        write_json_string(value.as_ref(), &mut text);
    }
    text.push(b'}');
    to.write_all(&text)
}

/// A time as JSON: seconds with milliseconds.
pub(super) fn seconds(time: Timestamp) -> String {
    let ms = time.unix_ms();
    match ms.rem_euclid(1000) {
        0 => (ms / 1000).to_string(),
        _ => format!("{:.3}", cast::float(ms) / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_labels_are_json() {
        let mut out = Vec::new();
        write_texts(["a\"b", "c"], &mut out).unwrap();
        write_labels([("a", "1\n")], &mut out).unwrap();
        write_warnings(&[], &mut out).unwrap();
        write_warnings(&["x".to_owned()], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, r#"["a\"b","c"]{"a":"1\n"},"warnings":["x"]"#);
    }
}
