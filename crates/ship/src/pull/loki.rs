//! Records of Loki, by `query_range` from the oldest to the newest, as bodies of Loki's push.
//!
//! A page is the beginning of a window of time. If it reaches the limit of entries, those with its last time are
//! left for the next page, since more of them may follow. The window follows the density of entries.
//!
//! Invariants: all entries before a position, and none from it on, are in the pages before it; entries of one
//! nanosecond that do not fit a page are read stream by stream, or end the import with an error.

use std::collections::{BTreeMap, BTreeSet};

use logpond_client::encode;
use logpond_host::terminal::note;
use logpond_record::{SERVICE_LABELS_OF_LOKI, SERVICE_NAME, UNKNOWN_SERVICE, cast};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::Source;
use super::error::PullError;
use super::exchange::{Call, Exchange, Method, Reply};
use super::state::{Page, PushBody, Totals};
use super::target::{Form, read_loki};

/// The form of pushes.
pub(super) const PUSH: Form = Form {
    path: "/loki/api/v1/push",
    content_type: "application/json",
    read: read_loki,
};

/// The first window, and the longest: Loki splits queries by hours, and refuses more than a month.
const WINDOW_FIRST_NS: i64 = 3_600_000_000_000;
const WINDOW_MAX_NS: i64 = 86_400_000_000_000;

/// The shortest window after failures. A source that fails at it is given up.
const WINDOW_MIN_NS: i64 = 1_000_000;

/// The longest range of questions about labels and streams: Loki refuses more than 30 days.
const RANGE_MAX_NS: i64 = 28 * WINDOW_MAX_NS;

/// The fewest entries of a page, where the source refuses more or their lines are long.
const PAGE_MIN: u64 = 16;

/// Bytes of a body, roughly: the target syncs once for all, and knows bodies again that fit one frame.
const BODY_BYTES: usize = 1 << 20;

/// The most labels that all streams are found by.
const LABELS_MAX: usize = 256;

/// The most streams that one nanosecond is read by.
const STREAMS_MAX: usize = 1_000;

/// Labels that most streams have, in the order in which they are tried.
const COMMON_LABELS: [&str; 3] = ["service_name", "job", "app"];

/// Statuses of queries that are too heavy: smaller ones may succeed.
const TOO_HEAVY: [u16; 2] = [500, 504];

/// The header that keeps structured metadata apart from labels.
const CATEGORIES: [(&str, &str); 1] = [("x-loki-response-encoding-flags", "categorize-labels")];

/// The entries to read.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) query: Option<String>,
    pub(super) labels: Vec<(String, String)>,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) page_records: u64,
}

/// A position: all entries of the queries before, and those of this query before a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The range, as it was when the import began.
    from: i64,
    to: i64,
    /// The queries, which have no entry in common.
    queries: Vec<String>,
    query: usize,
    at: i64,
}

#[derive(Deserialize)]
struct Answer<T> {
    data: T,
}

#[derive(Deserialize)]
struct Streams {
    result: Vec<Stream>,
}

#[derive(Deserialize)]
struct Stream {
    stream: BTreeMap<String, String>,
    values: Vec<Entry>,
}

/// The time in nanoseconds, the line, and labels that are not of the stream.
#[derive(Deserialize)]
struct Entry(String, String, #[serde(default)] Extra);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Extra {
    #[serde(rename = "structuredMetadata")]
    metadata: BTreeMap<String, String>,
    parsed: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Samples {
    result: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    value: (Json, String),
}

/// The answer to a query for entries.
enum Window {
    Entries(Vec<Stream>),
    /// The source refuses so many entries, or they are too long.
    TooMany,
    /// The query is too heavy.
    TooLong(String),
}

/// Loki.
pub(super) struct Loki {
    exchange: Exchange,
    request: Request,
    window_ns: i64,
    page_records: u64,
}

impl Loki {
    pub(super) fn new(exchange: Exchange, request: Request) -> Loki {
        Loki {
            exchange,
            window_ns: WINDOW_FIRST_NS,
            page_records: request.page_records,
            request,
        }
    }

    fn get(&mut self, path: &str, parameters: &[(&str, String)]) -> Result<Reply, PullError> {
        let mut target = format!("/loki/api/v1/{path}");
        for (at, (name, value)) in parameters.iter().enumerate() {
            target.push(if at == 0 { '?' } else { '&' });
            target.push_str(name);
            target.push('=');
            encode(value.as_bytes(), &mut target);
        }
        // Questions about labels and streams cannot be made smaller.
        let is_query = path.starts_with("query");
        self.exchange.send(Call {
            method: Method::Get,
            path: &target,
            headers: &CATEGORIES,
            returned: if is_query { &TOO_HEAVY } else { &[] },
        })
    }

    fn read<T: DeserializeOwned>(&self, reply: &Reply) -> Result<T, PullError> {
        if reply.status != 200 {
            return Err(self.refused(reply));
        }
        let read = serde_json::from_slice::<Answer<T>>(&reply.body);
        let read = read.map_err(|error| PullError::Answer {
            address: self.exchange.address(),
            reason: error.to_string(),
        });
        read.map(|answer| answer.data)
    }

    fn refused(&self, reply: &Reply) -> PullError {
        let message = reply.message();
        let hint = match reply.status {
            401 if message.contains("org id") => {
                Some("give the tenant by --source-org-id, as in X-Scope-OrgID")
            }
            401 | 403 => Some(
                "give credentials by --source-token-file, or --source-user with --source-password-file",
            ),
            404 => Some("--from-loki takes the address without /loki/api/v1"),
            400 => Some("see --query and --since"),
            _ => None,
        };
        PullError::Refused {
            address: self.exchange.address(),
            status: reply.status,
            message,
            hint,
        }
    }

    /// Queries that select every stream once: for each label the streams that have it, and none of those before.
    fn all_streams(&mut self) -> Result<Vec<String>, PullError> {
        let spans = spans(self.request.from, self.request.to);
        let mut names = BTreeSet::new();
        for (from, to) in &spans {
            let range = [("start", from.to_string()), ("end", to.to_string())];
            let reply = self.get("labels", &range)?;
            // Without a label there is no member.
            names.extend(
                self.read::<Option<Vec<String>>>(&reply)?
                    .unwrap_or_default(),
            );
        }
        let mut names: Vec<String> = names.into_iter().collect();
        names.retain(|name| !name.starts_with("__"));
        names.sort_by_key(|name| {
            let place = COMMON_LABELS.iter().position(|common| common == name);
            place.unwrap_or(COMMON_LABELS.len())
        });
        if names.len() > LABELS_MAX {
            let (count, address) = (names.len(), self.exchange.address());
            let reason = format!(
                "there are {count} labels, more than {LABELS_MAX}; select the streams by --query"
            );
            return Err(PullError::Source { address, reason });
        }
        let (mut queries, mut without) = (Vec::new(), String::new());
        for name in names {
            let selector = format!("{{{without}{name}=~\".+\"}}");
            // The newest first: most labels are still in use.
            let mut is_used = false;
            for (from, to) in spans.iter().rev() {
                is_used = is_used || !self.series(&selector, *from, *to)?.is_empty();
            }
            if is_used {
                queries.push(selector);
                without += &format!("{name}=\"\",");
            }
        }
        Ok(queries)
    }

    fn series(
        &mut self,
        selector: &str,
        from: i64,
        to: i64,
    ) -> Result<Vec<BTreeMap<String, String>>, PullError> {
        let parameters = [
            ("match[]", selector.to_owned()),
            ("start", from.to_string()),
            ("end", to.to_string()),
        ];
        let reply = self.get("series", &parameters)?;
        Ok(self.read::<Option<Vec<_>>>(&reply)?.unwrap_or_default())
    }

    /// The oldest entries of a window.
    fn window(&mut self, query: &str, from: i64, to: i64) -> Result<Window, PullError> {
        let parameters = [
            ("query", query.to_owned()),
            ("start", from.to_string()),
            ("end", to.to_string()),
            ("limit", self.page_records.to_string()),
            ("direction", "forward".to_owned()),
        ];
        let reply = self.get("query_range", &parameters)?;
        if reply.status == 200 && !reply.is_too_long {
            let streams = self.read::<Streams>(&reply)?;
            return Ok(Window::Entries(streams.result));
        }
        let message = reply.message().to_lowercase();
        if reply.is_too_long || reply.status == 400 && message.contains("max entries limit") {
            return Ok(Window::TooMany);
        }
        let is_heavy = TOO_HEAVY.contains(&reply.status)
            || reply.status == 400
                && (message.contains("exceeds the limit") || message.contains("query would read"));
        if is_heavy {
            return Ok(Window::TooLong(message));
        }
        Err(self.refused(&reply))
    }

    /// The entries of one nanosecond, stream by stream, where there are too many for one answer.
    fn instant(&mut self, query: &str, at: i64) -> Result<Vec<Stream>, PullError> {
        let too_many = |what: String| PullError::SameTime {
            what,
            hint: "raise max_entries_limit_per_query of the source and --page-size, or split by --query",
        };
        let limit = self.page_records;
        let Some((selector, pipeline)) = split_selector(query) else {
            return Err(too_many(format!(
                "{limit} entries or more have the time {at} ns"
            )));
        };
        let series = self.series(&format!("{selector}}}"), at, at.saturating_add(1))?;
        if series.len() > STREAMS_MAX {
            let count = series.len();
            return Err(too_many(format!(
                "{count} streams have entries at the time {at} ns"
            )));
        }
        let mut found = Vec::new();
        for matchers in matchers_of(&series) {
            let comma = if selector.trim_end().ends_with(['{', ',']) {
                ""
            } else {
                ","
            };
            let query = format!("{selector}{comma}{matchers}}}{pipeline}");
            let streams = match self.window(&query, at, at.saturating_add(1))? {
                Window::Entries(streams) => streams,
                Window::TooMany => {
                    return Err(too_many(format!(
                        "the stream {{{matchers}}} is too large at {at} ns"
                    )));
                }
                Window::TooLong(message) => {
                    let address = self.exchange.address();
                    return Err(PullError::Source {
                        address,
                        reason: message,
                    });
                }
            };
            if count_of(&streams) >= limit {
                return Err(too_many(format!(
                    "{limit} entries or more of the stream {{{matchers}}} have the time {at} ns"
                )));
            }
            found.extend(streams);
        }
        Ok(found)
    }

    /// Makes the next request smaller after an answer without entries.
    fn shrink(&mut self, window: Window, span: i64) -> Result<(), PullError> {
        let address = self.exchange.address();
        match window {
            Window::TooMany if self.page_records > PAGE_MIN => {
                self.page_records = (self.page_records / 2).max(PAGE_MIN);
                let now = self.page_records;
                note(&format!(
                    "logpond: {address} gives no such page; asking for {now} entries at once"
                ));
                Ok(())
            }
            Window::TooMany => {
                let reason = format!("it gives no {PAGE_MIN} entries at once");
                Err(PullError::Source { address, reason })
            }
            Window::TooLong(_) if span > WINDOW_MIN_NS => {
                self.window_ns = (span / 2).max(WINDOW_MIN_NS);
                Ok(())
            }
            Window::TooLong(message) => Err(PullError::Source {
                address,
                reason: message,
            }),
            Window::Entries(_) => Ok(()),
        }
    }

    /// Counts the entries of a query in a range by windows; `None` if the source refuses to.
    fn count_query(&mut self, query: &str, from: i64, to: i64) -> Result<Option<u64>, PullError> {
        let (mut at, mut total, mut window) = (from, 0_u64, WINDOW_MAX_NS);
        while at < to {
            let end = at.saturating_add(window).min(to);
            // A range excludes its beginning and includes its end.
            let parameters = [
                (
                    "query",
                    format!("sum(count_over_time({query}[{}ns]))", end - at),
                ),
                ("time", (end - 1).to_string()),
            ];
            let reply = self.get("query", &parameters)?;
            if reply.status != 200 {
                if window > WINDOW_FIRST_NS && reply.status != 401 {
                    window /= 2;
                    continue;
                }
                let message = reply.message();
                note(&format!(
                    "logpond: the source does not count its records: {message}"
                ));
                return Ok(None);
            }
            let samples: Samples = self.read(&reply)?;
            for sample in samples.result {
                total += whole(&sample.value.1).unwrap_or_default();
            }
            at = end;
        }
        Ok(Some(total))
    }
}

impl Source for Loki {
    type Cursor = Cursor;

    fn begin(&mut self) -> Result<Cursor, PullError> {
        let queries = match &self.request.query {
            Some(query) => vec![query.clone()],
            None => self.all_streams()?,
        };
        Ok(Cursor {
            from: self.request.from,
            to: self.request.to,
            queries,
            query: 0,
            at: self.request.from,
        })
    }

    fn page(&mut self, cursor: &Cursor) -> Result<Option<Page<Cursor>>, PullError> {
        let mut next = cursor.clone();
        if next.at >= next.to {
            next.query += 1;
            next.at = next.from;
        }
        let Some(query) = next.queries.get(next.query).cloned() else {
            return Ok(None);
        };
        loop {
            let end = next.at.saturating_add(self.window_ns).min(next.to);
            let mut streams = match self.window(&query, next.at, end)? {
                Window::Entries(streams) => streams,
                other => {
                    self.shrink(other, end - next.at)?;
                    continue;
                }
            };
            let count = count_of(&streams);
            if count < self.page_records {
                next.at = end;
                if count < self.page_records / 2 {
                    self.window_ns = self.window_ns.saturating_mul(2).min(WINDOW_MAX_NS);
                }
            } else {
                let (first, last) = times_of(&streams).unwrap_or((next.at, next.at));
                if first == last {
                    streams = self.instant(&query, last)?;
                    next.at = last.saturating_add(1);
                } else {
                    keep_before(&mut streams, last);
                    next.at = last;
                    self.window_ns = last.saturating_sub(first).saturating_mul(2);
                    self.window_ns = self.window_ns.clamp(WINDOW_MIN_NS, WINDOW_MAX_NS);
                }
            }
            let bodies = bodies(&streams, &self.request.labels);
            return Ok(Some(Page { bodies, next }));
        }
    }

    fn share(&self, cursor: &Cursor, _totals: &Totals) -> f64 {
        let span = cast::float((cursor.to - cursor.from).max(1));
        let within = cast::float(cursor.at - cursor.from) / span;
        (cast::float(cursor.query) + within) / cast::float(cursor.queries.len().max(1))
    }

    fn count(&mut self, cursor: &Cursor) -> Result<Option<u64>, PullError> {
        let mut total = 0;
        for query in &cursor.queries {
            match self.count_query(query, cursor.from, cursor.to)? {
                Some(count) => total += count,
                None => return Ok(None),
            }
        }
        Ok(Some(total))
    }
}

/// A range in parts that Loki answers.
fn spans(from: i64, to: i64) -> Vec<(i64, i64)> {
    let (mut at, mut spans) = (from, Vec::new());
    while at < to {
        let end = at.saturating_add(RANGE_MAX_NS).min(to);
        spans.push((at, end));
        at = end;
    }
    spans
}

/// A count as Loki writes it: `12`, `1.2e+07`.
fn whole(text: &str) -> Option<u64> {
    let number: f64 = text.parse().ok()?;
    // Counts are far below 2^53.
    (0.0..9e15)
        .contains(&number)
        .then_some(cast::whole_u64(number))
}

fn count_of(streams: &[Stream]) -> u64 {
    streams
        .iter()
        .map(|stream| stream.values.len() as u64)
        .sum()
}

fn time_of(entry: &Entry) -> Option<i64> {
    entry.0.parse().ok()
}

/// The first and the last time.
fn times_of(streams: &[Stream]) -> Option<(i64, i64)> {
    let entries = || streams.iter().flat_map(|stream| &stream.values);
    let first = entries().filter_map(time_of).min()?;
    Some((first, entries().filter_map(time_of).max()?))
}

/// Removes the entries from a time on.
fn keep_before(streams: &mut [Stream], time: i64) {
    for stream in streams {
        stream
            .values
            .retain(|entry| time_of(entry).is_none_or(|at| at < time));
    }
}

/// A query before the closing brace of its selector, and behind it.
fn split_selector(query: &str) -> Option<(&str, &str)> {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, c) in query.char_indices() {
        match (quote, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some('"'), '\\') => is_escaped = true,
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '`') => quote = Some(c),
            (None, '}') => return Some((query.get(..at)?, query.get(at + 1..)?)),
            (None, _) => {}
        }
    }
    None
}

/// For each series the matchers that select it alone: labels of other series are empty in it.
fn matchers_of(series: &[BTreeMap<String, String>]) -> Vec<String> {
    let mut names: Vec<&String> = series.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let all = series.iter().map(|labels| {
        let matchers = names.iter().map(|name| {
            let value = labels.get(*name).map_or("", String::as_str);
            // Strings of LogQL are those of Go, of which JSON's are a part, but for the slash.
            format!("{name}={}", json!(value))
        });
        matchers.collect::<Vec<_>>().join(",")
    });
    let mut all: Vec<String> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The labels of a stream without the one that Loki makes of others.
fn own_labels(stream: &BTreeMap<String, String>) -> BTreeMap<&String, &String> {
    let made = SERVICE_LABELS_OF_LOKI
        .iter()
        .find_map(|name| stream.get(*name));
    let made = made.map_or(UNKNOWN_SERVICE, String::as_str);
    let is_made = |name: &str, value: &str| name == SERVICE_NAME && value == made;
    let labels = stream.iter();
    labels
        .filter(|(name, value)| !is_made(name, value))
        .collect()
}

/// Pushes of some streams.
fn bodies(streams: &[Stream], labels: &[(String, String)]) -> Vec<PushBody> {
    let mut bodies = Vec::new();
    let mut body = Body::default();
    for stream in streams {
        let mut all = own_labels(&stream.stream);
        all.extend(labels.iter().map(|(name, value)| (name, value)));
        let head = json!(all).to_string();
        for entry in &stream.values {
            body.add(&head, entry);
            if body.bytes.len() >= BODY_BYTES {
                bodies.extend(std::mem::take(&mut body).finish());
            }
        }
        body.end_stream();
    }
    bodies.extend(body.finish());
    bodies
}

/// A push that is being written.
#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    records: u64,
    is_in_stream: bool,
}

impl Body {
    fn add(&mut self, stream: &str, entry: &Entry) {
        if self.is_in_stream {
            self.bytes.push(b',');
        } else {
            let start: &[u8] = if self.bytes.is_empty() {
                b"{\"streams\":["
            } else {
                b","
            };
            self.bytes.extend_from_slice(start);
            self.bytes.extend_from_slice(b"{\"stream\":");
            self.bytes.extend_from_slice(stream.as_bytes());
            self.bytes.extend_from_slice(b",\"values\":[");
            self.is_in_stream = true;
        }
        let Entry(time, line, extra) = entry;
        let metadata = extra.metadata.iter().chain(&extra.parsed);
        // Loki makes it of the line when an entry comes in.
        let metadata = metadata.filter(|(name, _)| *name != "detected_level");
        let metadata: BTreeMap<&String, &String> = metadata.collect();
        let value = if metadata.is_empty() {
            json!([time, line])
        } else {
            json!([time, line, metadata])
        };
        self.bytes.extend_from_slice(value.to_string().as_bytes());
        self.records += 1;
    }

    fn end_stream(&mut self) {
        if std::mem::take(&mut self.is_in_stream) {
            self.bytes.extend_from_slice(b"]}");
        }
    }

    fn finish(mut self) -> Option<PushBody> {
        self.end_stream();
        if self.records == 0 {
            return None;
        }
        self.bytes.extend_from_slice(b"]}");
        Some(PushBody {
            bytes: self.bytes,
            records: self.records,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(text: &str) -> Vec<Stream> {
        serde_json::from_str::<Answer<Streams>>(text)
            .unwrap()
            .data
            .result
    }

    #[test]
    fn answers_become_pushes() {
        let streams = streams(
            r#"{"status":"success","data":{"resultType":"streams","encodingFlags":["categorize-labels"],"result":[
            {"stream":{"app":"a","service_name":"a"},"values":[
                ["1700000000000000001","one",{"structuredMetadata":{"trace":"x","detected_level":"info"}}],
                ["1700000000000000002","two \"2\"",{}]]},
            {"stream":{"app":"b","job":"c","service_name":"b"},"values":[["1700000000000000003","three"]]}]}}"#,
        );
        assert_eq!(count_of(&streams), 3);
        assert_eq!(
            times_of(&streams),
            Some((1_700_000_000_000_000_001, 1_700_000_000_000_000_003))
        );
        let label = [("env".to_owned(), "prod".to_owned())];
        let bodies = bodies(&streams, &label);
        assert_eq!(bodies.len(), 1);
        assert_eq!(bodies[0].records, 3);
        assert_eq!(
            String::from_utf8_lossy(&bodies[0].bytes),
            concat!(
                r#"{"streams":[{"stream":{"app":"a","env":"prod"},"values":["#,
                r#"["1700000000000000001","one",{"trace":"x"}],["1700000000000000002","two \"2\""]]},"#,
                r#"{"stream":{"app":"b","env":"prod","job":"c"},"values":[["1700000000000000003","three"]]}]}"#
            )
        );
    }

    #[test]
    fn long_lines_make_several_pushes() {
        let line = "x".repeat(BODY_BYTES / 2);
        let entry = |time: &str| Entry(time.to_owned(), line.clone(), Extra::default());
        let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let values = vec![entry("1"), entry("2"), entry("3")];
        let made = bodies(
            &[Stream {
                stream: labels,
                values,
            }],
            &[],
        );
        let records: Vec<u64> = made.iter().map(|body| body.records).collect();
        assert_eq!(records, [2, 1]);
        for body in made {
            serde_json::from_slice::<Json>(&body.bytes).unwrap();
        }
        assert!(bodies(&[], &[]).is_empty());
    }

    #[test]
    fn selectors_end_at_their_brace() {
        let table = [
            (r#"{a="b"}"#, Some((r#"{a="b""#, ""))),
            (r#"{a="}\"}"} |= "}""#, Some((r#"{a="}\"}""#, r#" |= "}""#))),
            ("{a=`\\}`} | json", Some(("{a=`\\}`", " | json"))),
            (r#"{a="b"#, None),
        ];
        for (query, parts) in table {
            assert_eq!(split_selector(query), parts, "{query}");
        }
    }

    #[test]
    fn each_series_is_selected_alone() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect()
        };
        let series = [
            of(&[("a", "1")]),
            of(&[("a", "1"), ("b", "\"")]),
            of(&[("a", "1")]),
        ];
        assert_eq!(matchers_of(&series), [r#"a="1",b="""#, r#"a="1",b="\"""#]);
    }

    #[test]
    fn long_ranges_are_asked_for_in_parts() {
        let day = WINDOW_MAX_NS;
        assert_eq!(spans(0, 30 * day), [(0, 28 * day), (28 * day, 30 * day)]);
        assert_eq!(spans(5, 5), []);
    }

    #[test]
    fn counts_are_whole() {
        assert_eq!(whole("12"), Some(12));
        assert_eq!(whole("1.2e+07"), Some(12_000_000));
        assert_eq!(whole("NaN"), None);
    }
}
