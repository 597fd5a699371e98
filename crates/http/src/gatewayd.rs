//! What `systemd-journal-gatewayd.service(8)` answers: `/entries`, `/fields/NAME`, `/machine`, `/browse`.
//!
//! | of the request | means |
//! | --- | --- |
//! | `Accept` | `text/plain` lines (the default), `application/json`, `text/event-stream`, `application/vnd.fdo.journal` |
//! | `Range: entries=[cursor][[:skip]:count]` | where to begin, what to pass over, how many |
//! | `Range: realtime=[since]:[until][[:skip]:count]` | the same by seconds since 1970 |
//! | `?follow` | goes on with records as they come |
//! | `?discrete` | the record of the cursor alone |
//! | `?boot` | records of the last boot |
//! | `?FIELD=value` | matches, as of `logpond journal` |
//!
//! The forms have no place for what an answer lacks: one that lacks something before its first entry is
//! refused (503), later it is broken off, so that nobody takes it for a whole one.

use std::collections::HashSet;
use std::sync::Arc;

use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RANGE};
use hyper::{Response, StatusCode};
use jiff::tz::TimeZone;
use logpond_protocol::intake::journal_entry;
use logpond_record::{TimeRange, Timestamp, Value};
use logpond_search::journal::{self, Cursor, Term, ValuesAt};
use logpond_search::order::{Direction, Key};
use logpond_search::query::{FieldTest, Filter};

use super::body::Body;
use super::error::{ApiError, Kind};
use super::fold::fold;
use super::params::Params;
use super::rows::Begins;
use super::{App, header_text};
use logpond_engine::query::{
    Engine, Maintenance, Output, QueryError, RewriteStatus, Scope, Search, Trailer, ValueCount,
    Visitor,
};
use logpond_host::shutdown::Shutdown;
use logpond_render::Row;
use logpond_render::journal::{Entry, Format, Journal, LastCursor, Style, key_of};

/// The most entries that may be passed over from a place backwards, since their places are held.
const SKIP_BACK_MAX: u64 = 1_000_000;

/// Values of a field in an answer at most.
const VALUES_MAX: usize = 100_000;

/// The parameters of a request.
#[derive(Debug, PartialEq)]
struct JournalRequest {
    format: Format,
    filter: Filter,
    wants_boot: bool,
    is_followed: bool,
    is_discrete: bool,
    range: Range,
}

/// What the header `Range` says.
#[derive(Clone, Debug, Default, PartialEq)]
struct Range {
    cursor: Option<Cursor>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    skip: i64,
    count: Option<u64>,
}

/// `/entries`
pub(super) async fn entries(
    app: &Arc<App>,
    params: &Params,
    headers: &HeaderMap,
) -> Result<Response<Body>, ApiError> {
    let request = JournalRequest::read(params, headers)?;
    let format = request.format;
    let engine = app.engine.clone();
    let shutdown = app.shutdown.clone();
    // Who follows waits for the first row, be it days; the head must not.
    let begins = if request.is_followed {
        Begins::AtOnce
    } else {
        Begins::WithRows
    };
    let threads = app.threads.for_followers(request.is_followed);
    let (engine_there, shutdown_there) = (engine.clone(), shutdown.clone());
    let prepare = move || {
        let begin = begin(&*engine_there, &shutdown_there, &request)?;
        Ok((request, begin))
    };
    let run = move |(request, begin): (JournalRequest, AnswerStart), out: &mut Output| {
        answer(&*engine, &shutdown, &request, begin, out)
    };
    let mut response = threads.stream(begins, prepare, run).await?;
    typed(&mut response, content_type(format));
    Ok(header_text::note_losses(app, response).await)
}

/// `/fields/NAME`
pub(super) async fn field(
    app: &Arc<App>,
    name: &str,
    headers: &HeaderMap,
) -> Result<Response<Body>, ApiError> {
    let is_json = format_of(headers) == Format::Json;
    let (name, engine) = (name.to_owned(), app.engine.clone());
    let prepare = move || Ok(name);
    let run = move |name: String, out: &mut Output| values(&*engine, &name, is_json, out);
    let mut response = app.threads.stream(Begins::WithRows, prepare, run).await?;
    typed(
        &mut response,
        if is_json {
            "application/json"
        } else {
            "text/plain"
        },
    );
    Ok(header_text::note_losses(app, response).await)
}

/// Writes the values of a name, each once.
fn values(
    engine: &dyn Engine,
    name: &str,
    is_json: bool,
    out: &mut Output,
) -> Result<Trailer, QueryError> {
    out.leave_out_trailer();
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    let mut trailer = Trailer::default();
    for at in journal::values_of(name) {
        let scope = scope(&at.of, TimeRange::ALL)?;
        let found;
        (found, trailer) = engine.top_values(&scope, &at.field, VALUES_MAX, out)?;
        for value in &found {
            let mut text = Vec::new();
            values_of(value, &at, &mut |value| {
                if seen.len() < VALUES_MAX && seen.insert(value.to_vec()) {
                    write_value(name, value, is_json, &mut text);
                }
            });
            out.append(|chunk| chunk.extend_from_slice(&text))?;
        }
        if !trailer.missing.is_empty() {
            break;
        }
    }
    Ok(trailer)
}

/// `/machine`: what this server is, and from when to when it has records.
pub(super) async fn machine(app: &Arc<App>) -> Result<Response<Body>, ApiError> {
    let maintenance = app.maintenance.clone();
    let run = move |(), out: &mut Output| {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let id = |path: &str| read(path).trim().replace('-', "");
        let release = read("/etc/os-release");
        let system = release
            .lines()
            .find_map(|line| line.strip_prefix("PRETTY_NAME="))
            .map_or("Linux", |name| name.trim_matches('"'));
        let held = held(&*maintenance);
        let us = |time: Option<Timestamp>| time.map_or(0, |time| time.0 / 1000).to_string();
        let text = serde_json::json!({
            "machine_id": id("/etc/machine-id"),
            "boot_id": id("/proc/sys/kernel/random/boot_id"),
            "hostname": logpond_host::hostname::own(),
            "os_pretty_name": system,
            "virtualization": "bare",
            "usage": held.bytes.to_string(),
            "cutoff_from_realtime": us(held.first),
            "cutoff_to_realtime": us(held.last),
        });
        out.json(&text)?;
        out.leave_out_trailer();
        Ok(Trailer::default())
    };
    let mut response = app.threads.stream(Begins::WithRows, || Ok(()), run).await?;
    typed(&mut response, "application/json");
    Ok(response)
}

/// The size and the time range of the stored records.
#[derive(Default)]
struct StoredExtent {
    bytes: u64,
    /// When the first and the last record were.
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl StoredExtent {
    fn add(&mut self, file: &serde_json::Value) {
        self.bytes += file["bytes"].as_u64().unwrap_or(0);
        // Of a file that was not read yet it is only known when its records came in.
        let time = |name: &str, otherwise: &str| -> Option<Timestamp> {
            let text = file[name].as_str().or(file[otherwise].as_str());
            let time: jiff::Timestamp = text?.parse().ok()?;
            i64::try_from(time.as_nanosecond()).ok().map(Timestamp)
        };
        let from = time("time_from", "received_from");
        self.first = self.first.into_iter().chain(from).min();
        self.last = self.last.max(time("time_to", "received_to"));
    }
}

/// What is said of all files, without reading a record.
fn held(maintenance: &dyn Maintenance) -> StoredExtent {
    let mut held = StoredExtent::default();
    // What another node has is left out as long as that does not say it.
    let (files, _) = maintenance.files();
    files.iter().for_each(|file| held.add(file));
    held
}

/// `/browse`: there is a page.
pub(super) fn browse() -> Response<Body> {
    let mut response = Body::whole(StatusCode::TEMPORARY_REDIRECT, "text/plain", "");
    let page = HeaderValue::from_static("/");
    response.headers_mut().insert(LOCATION, page);
    response
}

fn typed(response: &mut Response<Body>, content_type: &'static str) {
    let value = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, value);
}

fn content_type(format: Format) -> &'static str {
    match format {
        Format::Json => "application/json",
        Format::JsonSse => "text/event-stream",
        Format::Export => "application/vnd.fdo.journal",
        _ => "text/plain",
    }
}

fn format_of(headers: &HeaderMap) -> Format {
    let accepted = headers
        .get(ACCEPT)
        .map_or(&b""[..], |value| value.as_bytes());
    // The first one that there is; programs that accept anything get lines.
    let each = accepted.split(|byte| *byte == b',').map(|one| {
        let one = one.split(|byte| *byte == b';').next().unwrap_or_default();
        one.trim_ascii()
    });
    let format = |one: &[u8]| match one {
        b"application/json" => Some(Format::Json),
        b"text/event-stream" => Some(Format::JsonSse),
        b"application/vnd.fdo.journal" => Some(Format::Export),
        b"text/plain" => Some(Format::Short),
        _ => None,
    };
    each.filter_map(format).next().unwrap_or(Format::Short)
}

impl JournalRequest {
    fn read(params: &Params, headers: &HeaderMap) -> Result<JournalRequest, ApiError> {
        let mut terms: Vec<Term> = Vec::new();
        for (name, value) in params.pairs() {
            if matches!(name, "follow" | "discrete" | "boot") {
                continue;
            }
            refuse_unknown(name)?;
            // `A!~x` has no equals sign, or one that belongs to the expression.
            let text = if name.contains("!~") && value.is_empty() {
                name.to_owned()
            } else {
                format!("{name}={value}")
            };
            let term = journal::term(text.as_bytes());
            terms.push(term.map_err(|error| ApiError::bad_request(error.to_string()))?);
        }
        let filter = journal::matches(&terms);
        let request = JournalRequest {
            format: format_of(headers),
            filter: filter.map_err(|error| ApiError::bad_request(error.to_string()))?,
            wants_boot: flag(params, "boot")?,
            is_followed: flag(params, "follow")?,
            is_discrete: flag(params, "discrete")?,
            range: match headers.get(RANGE) {
                None => Range::default(),
                Some(text) => text.to_str().ok().and_then(range).ok_or_else(|| {
                    ApiError::bad_request(
                        "the header Range is `entries=[cursor][[:skip]:count]` or \
                         `realtime=[since]:[until][[:skip]:count]`",
                    )
                })?,
            },
        };
        if request.is_discrete && request.range.cursor.is_none() {
            let message = "discrete asks for the entry of a cursor, which the header Range names";
            return Err(ApiError::bad_request(message));
        }
        Ok(request)
    }
}

/// A small word is no field that entries are shown with, but a parameter that was mistyped, or is for others.
fn refuse_unknown(name: &str) -> Result<(), ApiError> {
    let is_small = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_small) {
        return Ok(());
    }
    let mut error = ApiError::bad_request(format!("unknown parameter '{name}'"));
    error.hint = Some(format!(
        "known here: follow, discrete, boot, and matches; a field is asked for as it is shown: {}=",
        journal::field_name(name)
    ));
    Err(error)
}

/// `?name`, `?name=1` and `?name=yes`, as `systemd` reads truth values.
fn flag(params: &Params, name: &str) -> Result<bool, ApiError> {
    match params.one(name)? {
        None => Ok(false),
        Some("" | "1" | "yes" | "y" | "true" | "t" | "on") => Ok(true),
        Some("0" | "no" | "n" | "false" | "f" | "off") => Ok(false),
        Some(other) => Err(ApiError::bad_request(format!(
            "parameter '{name}' is true or false, not '{other}'"
        ))),
    }
}

/// Reads the header; `None` if it is malformed. Of other units nothing is asked.
fn range(text: &str) -> Option<Range> {
    if let Some(text) = text.strip_prefix("entries=") {
        // A cursor may have colons in its time.
        return (0..=2).rev().find_map(|colons| entries_range(text, colons));
    }
    let Some(text) = text.strip_prefix("realtime=") else {
        return Some(Range::default());
    };
    let seconds = |text: &str| match text.trim() {
        "" => Some(None),
        text => Timestamp::from_seconds(text.parse().ok()?, 0).map(Some),
    };
    let (since, rest) = text.split_once(':')?;
    let (until, numbers) = rest
        .split_once(':')
        .map_or((rest, ""), |(until, rest)| (until, rest));
    Some(Range {
        since: seconds(since)?,
        until: seconds(until)?.map(|until| until.saturating_add(1000)),
        ..numbers_range(numbers)?
    })
}

/// Reads `[cursor][[:skip]:count]` where so many colons are behind the cursor.
fn entries_range(text: &str, colons: usize) -> Option<Range> {
    let (cursor, numbers) = match colons {
        0 => (text, ""),
        _ => {
            let (at, _) = text.rmatch_indices(':').nth(colons - 1)?;
            (&text[..at], &text[at + 1..])
        }
    };
    let cursor = match cursor.trim() {
        "" => None,
        cursor => Some(Cursor::parse(cursor)?),
    };
    Some(Range {
        cursor,
        ..numbers_range(numbers)?
    })
}

/// Reads `[skip:]count`.
fn numbers_range(numbers: &str) -> Option<Range> {
    let (skip, count) = numbers.split_once(':').unwrap_or(("", numbers));
    let mut range = Range::default();
    if !skip.trim().is_empty() {
        range.skip = skip.trim().parse().ok()?;
    }
    if !count.trim().is_empty() {
        range.count = Some(count.trim().parse().ok().filter(|count| *count > 0)?);
    }
    (range.skip.unsigned_abs() <= SKIP_BACK_MAX || range.skip > 0).then_some(range)
}

/// The start of an answer: none if the entry that is asked for alone is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerStart {
    AtStart,
    At(Key),
    Nowhere,
}

/// Looks for the cursor.
fn begin(
    engine: &dyn Engine,
    shutdown: &Shutdown,
    request: &JournalRequest,
) -> Result<AnswerStart, ApiError> {
    let Some(cursor) = &request.range.cursor else {
        return Ok(AnswerStart::AtStart);
    };
    let found = place(engine, shutdown, cursor);
    let found = found.map_err(|error| ApiError::new(Kind::Incomplete, error.to_string()))?;
    match found {
        (Some(_), false) if request.is_discrete => Ok(AnswerStart::Nowhere),
        (Some(key), _) => Ok(AnswerStart::At(key)),
        (None, _) => Err(ApiError::bad_request("there is no entry with this cursor")),
    }
}

fn answer(
    engine: &dyn Engine,
    shutdown: &Shutdown,
    request: &JournalRequest,
    begin: AnswerStart,
    out: &mut Output,
) -> Result<Trailer, QueryError> {
    let range = &request.range;
    let mut filter = request.filter.clone();
    if request.wants_boot {
        filter = Filter::and([boot(engine, shutdown)?, filter]);
    }
    let times = TimeRange {
        from: range.since.unwrap_or(Timestamp::MIN),
        to: range.until.unwrap_or(Timestamp::MAX),
    };
    let mut search = search(&filter, times)?;
    search.is_strict = !request.is_followed;
    search.is_followed = request.is_followed && !request.is_discrete;
    let mut begin = match begin {
        AnswerStart::AtStart => None,
        AnswerStart::At(key) => Some(key),
        AnswerStart::Nowhere => {
            out.leave_out_trailer();
            return Ok(Trailer::default());
        }
    };
    if range.skip < 0 {
        begin = Some(before(
            engine,
            shutdown,
            &filter,
            times,
            begin,
            range.skip.unsigned_abs(),
        )?);
    }
    if let Some(key) = begin {
        search.scope.range.from = search.scope.range.from.max(key.time);
        if request.is_discrete {
            search.scope.range.to = key.time.saturating_add(1);
        }
    }
    let count = if request.is_discrete {
        Some(1)
    } else {
        range.count
    };
    let passed_over = u64::try_from(range.skip).unwrap_or(0);
    if request.format == Format::JsonSse {
        out.part_by(write_comment);
    }
    let visitor = entries_printer(request, begin, passed_over, count);
    match engine.visit(&search, visitor, out) {
        // What was wanted was sent.
        _ if out.is_done() => Ok(Trailer::default()),
        outcome => outcome,
    }
}

/// Prints entries from this place on: after so many, so many.
fn entries_printer(
    request: &JournalRequest,
    begin: Option<Key>,
    mut passed_over: u64,
    count: Option<u64>,
) -> Visitor {
    let is_discrete = request.is_discrete;
    let style = Style {
        format: request.format,
        zone: TimeZone::system(),
        all: false,
        columns: 0,
        no_hostname: false,
        only: Vec::new(),
        colour: false,
        escapes: false,
        marks_boots: false,
        has_own_cursors: true,
        spans: None,
    };
    let mut printer = Journal::new(style, LastCursor::default());
    let mut left = count.unwrap_or(u64::MAX);
    Box::new(move |row, out| {
        let is_meant = |begin: Key| match (key_of(row), is_discrete) {
            (Some(key), true) => key == begin,
            (Some(key), false) => key >= begin,
            (None, _) => true,
        };
        if !begin.is_none_or(is_meant) {
            return RewriteStatus::GoOn;
        }
        if passed_over > 0 {
            passed_over -= 1;
            return RewriteStatus::GoOn;
        }
        left -= 1;
        printer.entry(&Entry::of(row), out);
        match left {
            0 => RewriteStatus::Done,
            _ => RewriteStatus::GoOn,
        }
    })
}

/// Writes a text as a comment of an event stream, which shows no event to the page.
fn write_comment(text: &str, out: &mut Vec<u8>) {
    for line in text.lines() {
        out.extend_from_slice(b": ");
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
}

/// Gives a value as it is shown to `take`: one text, or those of a list.
fn values_of(found: &ValueCount, at: &ValuesAt, take: &mut dyn FnMut(&[u8])) {
    if found.is_null() {
        return;
    }
    let text = &found.text;
    let mut take = |value: &[u8]| at.shown(value).iter().for_each(|value| take(value));
    let mut is_list = false;
    if at.has_lists() && text.starts_with('[') {
        let list = Value::Json(text.as_str().into());
        let named = [("_", &list)].into_iter();
        journal_entry::fields_of(named, b"", |_, value| {
            is_list = true;
            take(value);
        });
    }
    if !is_list {
        take(text.as_bytes());
    }
}

fn write_value(name: &str, value: &[u8], is_json: bool, out: &mut Vec<u8>) {
    if is_json {
        let text = String::from_utf8_lossy(value);
        let object = serde_json::json!({ name: text });
        out.extend_from_slice(object.to_string().as_bytes());
    } else {
        out.extend_from_slice(value)
    }
    out.push(b'\n');
}

/// A search for rows with their lines, oldest first.
fn search(filter: &Filter, range: TimeRange) -> Result<Search, QueryError> {
    let mut search = Search::new(scope(filter, range)?);
    search.parts.line = true;
    Ok(search)
}

fn scope(filter: &Filter, range: TimeRange) -> Result<Scope, QueryError> {
    let text = match filter {
        Filter::All => String::new(),
        filter => filter.to_string(),
    };
    Scope::new(&text, range).map_err(|error| QueryError::Impossible(error.to_string()))
}

/// Records of the boot that the newest one is of.
fn boot(engine: &dyn Engine, shutdown: &Shutdown) -> Result<Filter, QueryError> {
    let has_boot = Filter::field("_BOOT_ID", FieldTest::Exists);
    let newest = first(engine, shutdown, &has_boot, Direction::Backward)?;
    let id = newest.and_then(|row| Entry::of(&row).boot_id);
    Ok(journal::equal(
        "_BOOT_ID",
        id.unwrap_or_default().as_bytes(),
    ))
}

/// The place that a cursor names, and whether its record is there.
fn place(
    engine: &dyn Engine,
    shutdown: &Shutdown,
    cursor: &Cursor,
) -> Result<(Option<Key>, bool), QueryError> {
    match cursor {
        Cursor::Place(key) => Ok((Some(*key), true)),
        Cursor::Entry { text, time } => {
            let filter = journal::equal("__CURSOR", text.as_bytes());
            let found = first(engine, shutdown, &filter, Direction::Forward)?;
            let key = found.as_ref().and_then(key_of);
            let at = time.map(|time| Key {
                time,
                id: logpond_record::Id::MIN,
            });
            Ok((key.or(at), key.is_some()))
        }
    }
}

/// The place of the record that is so many before a place, or before the end; of the first one, if there
/// are fewer.
fn before(
    engine: &dyn Engine,
    shutdown: &Shutdown,
    filter: &Filter,
    mut range: TimeRange,
    begin: Option<Key>,
    count: u64,
) -> Result<Key, QueryError> {
    if let Some(key) = begin {
        range.to = range.to.min(key.time.saturating_add(1));
    }
    let mut search = search(filter, range)?;
    search.direction = Direction::Backward;
    search.behind = begin;
    // The end is behind the last record, and one step back from it is none: as gatewayd counts.
    search.limit = Some(count + u64::from(begin.is_none()));
    search.parts.line = false;
    let last = fold(engine, shutdown, &search, |row, last| key_of(row).or(last))?;
    Ok(last.or(begin).unwrap_or(Key {
        time: Timestamp::MIN,
        id: logpond_record::Id::MIN,
    }))
}

/// The first row in a direction.
fn first(
    engine: &dyn Engine,
    shutdown: &Shutdown,
    filter: &Filter,
    direction: Direction,
) -> Result<Option<Row<'static>>, QueryError> {
    let mut search = search(filter, TimeRange::ALL)?;
    search.direction = direction;
    search.limit = Some(1);
    fold(
        engine,
        shutdown,
        &search,
        |row, found: Option<Row<'static>>| found.or_else(|| Some(row.clone().into_owned())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(cursor: Option<&str>, skip: i64, count: Option<u64>) -> Range {
        Range {
            cursor: cursor.and_then(Cursor::parse),
            skip,
            count,
            ..Range::default()
        }
    }

    #[test]
    fn ranges_are_read_as_gatewayd_reads_them() {
        let cursor = "s=1;i=2;b=3;m=4;t=5;x=6";
        let own = Cursor::text(Key {
            time: Timestamp(1_702_617_286_786_610_123),
            id: logpond_record::Id(77),
        });
        let table = [
            ("entries=", entries(None, 0, None)),
            (&format!("entries={cursor}"), entries(Some(cursor), 0, None)),
            (
                &format!("entries={cursor}:10"),
                entries(Some(cursor), 0, Some(10)),
            ),
            (
                &format!("entries={cursor}:-5:10"),
                entries(Some(cursor), -5, Some(10)),
            ),
            ("entries=:20:10", entries(None, 20, Some(10))),
            ("entries=:-1:", entries(None, -1, None)),
            ("bytes=0-5", Range::default()),
            (&format!("entries={own}"), entries(Some(&own), 0, None)),
            (&format!("entries={own}:3"), entries(Some(&own), 0, Some(3))),
            (
                &format!("entries={own}:1:3"),
                entries(Some(&own), 1, Some(3)),
            ),
        ];
        for (text, wanted) in table {
            assert_eq!(range(text), Some(wanted), "{text}");
        }
        let times = range("realtime=5:7:-2:3").unwrap();
        assert_eq!(times.since, Some(Timestamp(5_000_000_000)));
        assert_eq!(times.until, Some(Timestamp(7_000_001_000)));
        assert_eq!((times.skip, times.count), (-2, Some(3)));
        assert_eq!(range("realtime=:"), Some(Range::default()));
        for bad in [
            "entries=x",
            "entries=:0",
            "entries=:a:5",
            "entries=:-9999999:5",
            "realtime=5",
            "realtime=x:",
        ] {
            assert_eq!(range(bad), None, "{bad}");
        }
    }

    #[test]
    fn forms_are_chosen_by_the_first_that_there_is() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(text));
            format_of(&headers)
        };
        assert_eq!(of("application/json"), Format::Json);
        assert_eq!(of("text/html, text/event-stream;q=0.5"), Format::JsonSse);
        assert_eq!(of("application/vnd.fdo.journal"), Format::Export);
        assert_eq!(of("*/*"), Format::Short);
        assert_eq!(format_of(&HeaderMap::new()), Format::Short);
    }

    #[test]
    fn queries_are_matches_and_flags() {
        let read = |query: &str| {
            let mut params = Params::default();
            params.read(query.as_bytes()).unwrap();
            JournalRequest::read(&params, &HeaderMap::new())
        };
        let request = read("boot&follow=0&_COMM=sshd&A!~x").unwrap();
        assert!(request.wants_boot && !request.is_followed);
        let wanted = Filter::and([
            journal::equal("_COMM", b"sshd"),
            Filter::negate(journal::like("A", "x", false)),
        ]);
        assert_eq!(request.filter, wanted);
        for bad in [
            "boot=x",
            "discrete",
            "nginx%20x=1",
            "=1",
            "folow",
            "limit=5",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
