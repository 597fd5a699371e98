//! Documents of Elasticsearch and OpenSearch, from the oldest to the newest, as bulk requests.
//!
//! Elasticsearch from 7.10 on is read by points in time and `search_after`, other servers by scrolls. Documents
//! without a time come last, unless a range of time is given.
//!
//! Invariants: all documents before the time of a position are in the pages before it, and of those with this
//! time the ones whose identities it has. So a search that begins anew at this time leaves nothing out and gives
//! nothing twice, whatever the order of documents with the same time is.

use std::borrow::Cow;
use std::collections::HashSet;

use jiff::Timestamp as Instant;
use logpond_client::encode;
use logpond_record::cast;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};
use xxhash_rust::xxh3::Xxh3;

use super::error::PullError;
use super::exchange::{Call, Exchange, Method, Reply};
use super::state::{Page, PushBody, Totals};
use super::target::{Form, read_bulk};
use super::{PullRange, Source};

/// The form of pushes.
pub(super) const PUSH: Form = Form {
    path: "/_bulk",
    content_type: "application/x-ndjson",
    read: read_bulk,
};

/// How long the source keeps a point in time or a scroll: the target may take as long for a page.
const KEEP_ALIVE: &str = "10m";

/// Bytes of a body, roughly: the target syncs once for all, and knows bodies again that fit one frame.
const BODY_BYTES: usize = 1 << 20;

/// The most identities in a position.
const SAME_TIME_MAX: usize = 500_000;

/// The fewest documents of a page, where documents are long.
const PAGE_MIN: u64 = 16;

/// How often a search may begin anew before it gives another document.
const OPENINGS_MAX: u32 = 5;

/// The first version with points in time, and with one type for all times.
const PIT_SINCE: (u64, u64) = (7, 10);
const NANOSECONDS_SINCE: (u64, u64) = (7, 2);

/// A version that takes times of any precision in ranges.
const FORMATS_SINCE: (u64, u64) = (7, 0);

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// The documents to read.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) index: String,
    pub(super) query: Option<String>,
    pub(super) time_field: String,
    pub(super) range: PullRange,
    pub(super) page_records: u64,
}

/// The documents that are read now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Part {
    Timed,
    Untimed,
    End,
}

/// A position, see the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    part: Part,
    /// The range, as it was when the import began.
    from: Option<String>,
    to: Option<String>,
    /// The documents in it then.
    expected: u64,
    /// The time of the last document.
    time: Option<String>,
    /// The identities of the documents with this time.
    same_time: Vec<u64>,
}

#[derive(Deserialize)]
struct Greeting {
    version: Version,
}

#[derive(Deserialize)]
struct Version {
    number: String,
    #[serde(default)]
    distribution: Option<String>,
}

#[derive(Deserialize)]
struct SearchAnswer<'a> {
    #[serde(default)]
    timed_out: bool,
    #[serde(rename = "_shards", default)]
    shards: Shards,
    #[serde(rename = "_scroll_id", default)]
    scroll_id: Option<String>,
    #[serde(default)]
    pit_id: Option<String>,
    #[serde(borrow)]
    hits: Hits<'a>,
}

#[derive(Default, Deserialize)]
struct Shards {
    #[serde(default)]
    failed: u64,
}

#[derive(Deserialize)]
struct Hits<'a> {
    #[serde(borrow)]
    hits: Vec<Hit<'a>>,
}

#[derive(Deserialize)]
struct Hit<'a> {
    #[serde(rename = "_index", borrow)]
    index: Cow<'a, str>,
    #[serde(rename = "_id", borrow)]
    id: Cow<'a, str>,
    #[serde(rename = "_source", borrow, default)]
    source: Option<&'a RawValue>,
    #[serde(default)]
    sort: Vec<Json>,
}

impl Hit<'_> {
    fn identity(&self) -> u64 {
        let mut hash = Xxh3::new();
        for part in [&self.index, &self.id] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.digest()
    }
}

/// The abilities of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Abilities {
    has_pit: bool,
    has_nanoseconds: bool,
    has_formats: bool,
}

impl Abilities {
    fn of(version: &Version) -> Option<Abilities> {
        let mut numbers = version.number.split(['.', '-']);
        let mut number = || numbers.next()?.parse::<u64>().ok();
        let mut own = (number()?, number()?);
        let is_other = version.distribution.is_some();
        if is_other {
            // OpenSearch is a fork of 7.10 with versions of its own.
            own = PIT_SINCE;
        }
        Some(Abilities {
            has_pit: !is_other && own >= PIT_SINCE,
            has_nanoseconds: own >= NANOSECONDS_SINCE,
            has_formats: own >= FORMATS_SINCE,
        })
    }
}

/// A search that is open at the source.
struct Session {
    /// Of the point in time or of the scroll.
    id: String,
    /// The place behind which the next page begins; before the first page none.
    after: Option<Vec<Json>>,
    /// Identities of documents that were read before the search began.
    known: HashSet<u64>,
}

/// Elasticsearch.
pub(super) struct Elastic {
    exchange: Exchange,
    request: Request,
    page_records: u64,
    abilities: Option<Abilities>,
    session: Option<Session>,
}

impl Elastic {
    pub(super) fn new(exchange: Exchange, request: Request) -> Elastic {
        Elastic {
            exchange,
            page_records: request.page_records,
            request,
            abilities: None,
            session: None,
        }
    }

    fn refused(&self, reply: &Reply) -> PullError {
        let hint = match reply.status {
            401 | 403 => Some(
                "give credentials by --source-api-key-file, or --source-user with --source-password-file",
            ),
            404 => Some("see --index; the source lists its indexes at /_cat/indices"),
            _ => None,
        };
        PullError::Refused {
            address: self.exchange.address(),
            status: reply.status,
            message: reply.message(),
            hint,
        }
    }

    fn nonsense(&self, error: impl ToString) -> PullError {
        PullError::Answer {
            address: self.exchange.address(),
            reason: error.to_string(),
        }
    }

    fn post(&mut self, path: &str, body: &Json) -> Result<Reply, PullError> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.exchange.send(Call {
            method: Method::Post(body.as_bytes()),
            path,
            headers: &JSON,
            returned: &[],
        })
    }

    /// A member of the answer to a request.
    fn member(&mut self, path: &str, body: &Json, name: &str) -> Result<Json, PullError> {
        let reply = self.post(path, body)?;
        if reply.status != 200 {
            return Err(self.refused(&reply));
        }
        let value: Json =
            serde_json::from_slice(&reply.body).map_err(|error| self.nonsense(error))?;
        let member = value.get(name).cloned();
        member.ok_or_else(|| self.nonsense(format!("it has no '{name}'")))
    }

    fn abilities(&mut self) -> Result<Abilities, PullError> {
        if let Some(known) = self.abilities {
            return Ok(known);
        }
        let reply = self.exchange.send(Call {
            method: Method::Get,
            path: "/",
            headers: &JSON,
            returned: &[],
        })?;
        if reply.status != 200 {
            return Err(self.refused(&reply));
        }
        let greeting = serde_json::from_slice::<Greeting>(&reply.body).ok();
        let found = greeting.and_then(|greeting| Abilities::of(&greeting.version));
        let address = self.exchange.address();
        let found = found.ok_or(PullError::Source {
            address,
            reason: "it does not tell a version at /, as Elasticsearch and OpenSearch do"
                .to_owned(),
        })?;
        self.abilities = Some(found);
        Ok(found)
    }

    fn index_path(&self, rest: &str) -> String {
        let mut path = "/".to_owned();
        encode(self.request.index.as_bytes(), &mut path);
        path + rest
    }

    /// The conditions on documents, without those of a position.
    fn conditions(&self, cursor: &Cursor, abilities: Abilities) -> Vec<Json> {
        let mut all = Vec::new();
        if let Some(query) = &self.request.query {
            all.push(json!({ "query_string": { "query": query, "analyze_wildcard": true } }));
        }
        if cursor.from.is_some() || cursor.to.is_some() {
            all.push(self.times(&cursor.from, &cursor.to, abilities));
        }
        all
    }

    /// Documents from one time to another.
    fn times(&self, from: &Option<String>, to: &Option<String>, abilities: Abilities) -> Json {
        let format = if abilities.has_formats {
            "strict_date_optional_time_nanos||strict_date_optional_time"
        } else {
            "strict_date_optional_time"
        };
        let mut range = json!({ "format": format });
        if let Some(from) = from {
            range["gte"] = from.as_str().into();
        }
        if let Some(to) = to {
            range["lt"] = to.as_str().into();
        }
        json!({ "range": { self.request.time_field.as_str(): range } })
    }

    fn search_body(&self, cursor: &Cursor, abilities: Abilities) -> Json {
        let field = self.request.time_field.as_str();
        let mut conditions = self.conditions(cursor, abilities);
        let exists = json!({ "exists": { "field": field } });
        let mut clauses = json!({});
        let sort = match cursor.part {
            Part::Timed => {
                conditions.push(exists);
                if cursor.time.is_some() {
                    conditions.push(self.times(&cursor.time, &None, abilities));
                }
                let mut options = json!({ "order": "asc", "unmapped_type": "date" });
                if abilities.has_nanoseconds {
                    options["numeric_type"] = "date_nanos".into();
                }
                json!([{ field: options }])
            }
            Part::Untimed | Part::End => {
                clauses["must_not"] = json!([exists]);
                let place = if abilities.has_pit {
                    "_shard_doc"
                } else {
                    "_doc"
                };
                json!([{ place: { "order": "asc" } }])
            }
        };
        clauses["filter"] = conditions.into();
        json!({
            "size": self.page_records,
            "query": { "bool": clauses },
            "sort": sort,
            "track_total_hits": false,
        })
    }

    /// Opens a search at a position, and gives the answer with its first page if there is one already.
    fn open(&mut self, cursor: &Cursor, abilities: Abilities) -> Result<Option<Reply>, PullError> {
        let known = cursor.same_time.iter().copied().collect();
        let new = |id| Session {
            id,
            after: None,
            known,
        };
        if abilities.has_pit {
            let path = self.index_path(&format!("/_pit?keep_alive={KEEP_ALIVE}"));
            let id = self.member(&path, &Json::Null, "id")?;
            self.session = Some(new(id.as_str().unwrap_or_default().to_owned()));
            return Ok(None);
        }
        let mut body = self.search_body(cursor, abilities);
        if let Some(members) = body.as_object_mut() {
            members.remove("track_total_hits");
        }
        let path = self.index_path(&format!("/_search?scroll={KEEP_ALIVE}"));
        let reply = self.post(&path, &body)?;
        self.session = Some(new(String::new()));
        Ok(Some(reply))
    }

    /// The answer with the next page of the open search; `None` if the search cannot go on.
    fn next_answer(
        &mut self,
        cursor: &Cursor,
        abilities: Abilities,
    ) -> Result<Option<Reply>, PullError> {
        if self.session.is_none()
            && let Some(first) = self.open(cursor, abilities)?
        {
            return Ok(Some(first));
        }
        let Some(session) = &self.session else {
            return Err(self.nonsense("no search is open"));
        };
        if !abilities.has_pit {
            let body = json!({ "scroll": KEEP_ALIVE, "scroll_id": session.id });
            // A scroll that answered in vain has moved on: its page would be missing.
            return self.exchange.send_once(Call {
                method: Method::Post(body.to_string().as_bytes()),
                path: "/_search/scroll",
                headers: &JSON,
                returned: &[],
            });
        }
        let mut body = self.search_body(cursor, abilities);
        body["pit"] = json!({ "id": session.id, "keep_alive": KEEP_ALIVE });
        if let Some(after) = &session.after {
            body["search_after"] = after.clone().into();
        }
        self.post("/_search?allow_partial_search_results=false", &body)
            .map(Some)
    }

    /// Closes the open search. The source does it some time later if this fails.
    fn close(&mut self, abilities: Abilities) {
        let Some(session) = self.session.take().filter(|session| !session.id.is_empty()) else {
            return;
        };
        let (path, body) = if abilities.has_pit {
            ("/_pit", json!({ "id": session.id }))
        } else {
            ("/_search/scroll", json!({ "scroll_id": [session.id] }))
        };
        let body = body.to_string();
        let _ = self.exchange.send_once(Call {
            method: Method::Delete(body.as_bytes()),
            path,
            headers: &JSON,
            returned: &[],
        });
    }

    /// Makes a page of an answer.
    fn page_of(&mut self, reply: &Reply, cursor: &Cursor) -> Result<Page<Cursor>, PullError> {
        let answer: SearchAnswer<'_> =
            serde_json::from_slice(&reply.body).map_err(|error| self.nonsense(error))?;
        if answer.timed_out || answer.shards.failed > 0 {
            return Err(PullError::Source {
                address: self.exchange.address(),
                reason:
                    "it answered without some shards; the same command continues when they are \
                         there again"
                        .to_owned(),
            });
        }
        let hits = &answer.hits.hits;
        let mut next = cursor.clone();
        let Some(last) = hits.last() else {
            next.part = match cursor.part {
                Part::Timed if cursor.from.is_none() && cursor.to.is_none() => Part::Untimed,
                _ => Part::End,
            };
            (next.time, next.same_time) = (None, Vec::new());
            let bodies = Vec::new();
            return Ok(Page { bodies, next });
        };
        let id = answer.pit_id.or(answer.scroll_id);
        let mut session = self.session.take();
        if let Some(session) = &mut session {
            session.id = id.unwrap_or(std::mem::take(&mut session.id));
            session.after = Some(last.sort.clone());
        }
        let known = session.as_ref().map(|session| &session.known);
        let is_new = |hit: &&Hit<'_>| known.is_none_or(|known| !known.contains(&hit.identity()));
        let new: Vec<&Hit<'_>> = hits.iter().filter(is_new).collect();
        let bodies = bodies(&new, &self.exchange.address())?;
        self.move_behind(&mut next, hits)?;
        self.session = session;
        Ok(Page { bodies, next })
    }

    /// Moves a position behind these documents.
    fn move_behind(&self, next: &mut Cursor, hits: &[Hit<'_>]) -> Result<(), PullError> {
        let part = next.part;
        let time = |hit: &Hit<'_>| match part {
            Part::Timed => hit.sort.first().and_then(time_text),
            Part::Untimed | Part::End => Some(String::new()),
        };
        let last = hits.last().and_then(time);
        let last = last.ok_or_else(|| self.nonsense("a hit has no time in 'sort'"))?;
        if next.part == Part::Timed && next.time.as_ref() != Some(&last) {
            next.same_time.clear();
            next.time = Some(last.clone());
        }
        let same = hits.iter().filter(|hit| time(hit).as_ref() == Some(&last));
        let same: Vec<u64> = same.map(Hit::identity).collect();
        next.same_time.extend(same);
        next.same_time.sort_unstable();
        next.same_time.dedup();
        if next.same_time.len() <= SAME_TIME_MAX {
            return Ok(());
        }
        let what = if last.is_empty() {
            format!("more than {SAME_TIME_MAX} documents have no time")
        } else {
            format!("more than {SAME_TIME_MAX} documents have the time {last}")
        };
        Err(PullError::SameTime {
            what,
            hint: "name a finer field by --time-field, or split them by --index or --query",
        })
    }
}

impl Source for Elastic {
    type Cursor = Cursor;

    fn begin(&mut self) -> Result<Cursor, PullError> {
        self.abilities()?;
        let PullRange { from, to } = self.request.range;
        let mut cursor = Cursor {
            part: Part::Timed,
            from: from.map(|from| from.to_string()),
            to: to.map(|to| to.to_string()),
            expected: 0,
            time: None,
            same_time: Vec::new(),
        };
        cursor.expected = self.count(&cursor)?.unwrap_or(0);
        Ok(cursor)
    }

    fn page(&mut self, cursor: &Cursor) -> Result<Option<Page<Cursor>>, PullError> {
        if cursor.part == Part::End {
            return Ok(None);
        }
        let abilities = self.abilities()?;
        let mut openings = 0;
        loop {
            let Some(reply) = self.next_answer(cursor, abilities)? else {
                self.session = None;
                openings += 1;
                if openings > OPENINGS_MAX {
                    return Err(self.nonsense("scrolls break off; the same command continues"));
                }
                continue;
            };
            if reply.is_too_long && self.page_records > PAGE_MIN {
                self.page_records = (self.page_records / 2).max(PAGE_MIN);
                // A scroll has moved on, and its size is fixed.
                self.close(abilities);
                continue;
            }
            let is_gone = reply.status == 404
                && String::from_utf8_lossy(&reply.body).contains("search_context");
            if is_gone && openings < OPENINGS_MAX {
                self.session = None;
                openings += 1;
                continue;
            }
            if reply.is_too_long {
                return Err(self.nonsense(format!("{PAGE_MIN} documents are too long")));
            }
            if reply.status != 200 {
                return Err(self.refused(&reply));
            }
            let page = self.page_of(&reply, cursor)?;
            if page.next.part != cursor.part {
                self.close(abilities);
            }
            return Ok(Some(page));
        }
    }

    fn share(&self, cursor: &Cursor, totals: &Totals) -> f64 {
        cast::float(totals.read) / cast::float(cursor.expected.max(1))
    }

    fn count(&mut self, cursor: &Cursor) -> Result<Option<u64>, PullError> {
        let abilities = self.abilities()?;
        let query = json!({ "bool": { "filter": self.conditions(cursor, abilities) } });
        let path = self.index_path("/_count");
        let count = self.member(&path, &json!({ "query": query }), "count")?;
        Ok(count.as_u64())
    }
}

/// A time in `sort`: a text, or a number of milliseconds or nanoseconds. Milliseconds have at most 14 digits for
/// the next thousand years, nanoseconds have more from the second day of 1970 on.
fn time_text(value: &Json) -> Option<String> {
    const MS_DIGITS_MAX: i64 = 100_000_000_000_000;
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let number = value.as_i64()?;
    let time = if number.abs() < MS_DIGITS_MAX {
        Instant::from_millisecond(number)
    } else {
        Instant::from_nanosecond(i128::from(number))
    };
    Some(format!("{:.9}", time.ok()?))
}

/// Bulk requests of some documents.
fn bodies(hits: &[&Hit<'_>], address: &str) -> Result<Vec<PushBody>, PullError> {
    let mut bodies = Vec::new();
    let mut body = PushBody::default();
    for hit in hits {
        let Some(source) = hit.source else {
            let index = &hit.index;
            return Err(PullError::Source {
                address: address.to_owned(),
                reason: format!(
                    "documents of '{index}' have no _source, which it does not store; leave it out of --index"
                ),
            });
        };
        let action = json!({ "create": { "_index": hit.index, "_id": hit.id } });
        body.bytes.extend_from_slice(action.to_string().as_bytes());
        body.bytes.push(b'\n');
        // A line end within a JSON text is white space.
        let document = source.get().bytes().filter(|byte| *byte != b'\n');
        body.bytes.extend(document);
        body.bytes.push(b'\n');
        body.records += 1;
        if body.bytes.len() >= BODY_BYTES {
            bodies.push(std::mem::take(&mut body));
        }
    }
    bodies.extend(Some(body).filter(|body| body.records > 0));
    Ok(bodies)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abilities(greeting: &str) -> Option<Abilities> {
        let greeting: Greeting = serde_json::from_str(greeting).unwrap();
        Abilities::of(&greeting.version)
    }

    #[test]
    fn servers_tell_their_abilities() {
        let pit = |text: &str| abilities(text).map(|found| (found.has_pit, found.has_nanoseconds));
        let of = |number: &str| format!(r#"{{"name":"n","version":{{"number":"{number}"}}}}"#);
        assert_eq!(pit(&of("9.1.0")), Some((true, true)));
        assert_eq!(pit(&of("8.19.0-SNAPSHOT")), Some((true, true)));
        assert_eq!(pit(&of("7.9.3")), Some((false, true)));
        assert_eq!(pit(&of("6.8.23")), Some((false, false)));
        assert_eq!(pit(&of("none")), None);
        let fork = r#"{"version":{"distribution":"opensearch","number":"2.19.0"},"tagline":"t"}"#;
        assert_eq!(pit(fork), Some((false, true)));
    }

    #[test]
    fn times_are_texts() {
        let table = [
            (
                json!("2026-11-21T10:00:00.123456789Z"),
                Some("2026-11-21T10:00:00.123456789Z"),
            ),
            (
                json!(1_795_255_200_123_i64),
                Some("2026-11-21T10:00:00.123000000Z"),
            ),
            (
                json!(1_795_255_200_123_456_789_i64),
                Some("2026-11-21T10:00:00.123456789Z"),
            ),
            (json!(null), None),
        ];
        for (value, text) in table {
            assert_eq!(time_text(&value).as_deref(), text, "{value}");
        }
    }

    #[test]
    fn hits_become_bulk_requests() {
        // As Elasticsearch 8 and 9 write it.
        let text = r#"{"pit_id":"p","took":3,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},
            "hits":{"max_score":null,"hits":[
            {"_index":".ds-logs-app-default-2026.11.21-000001","_id":"a1","_score":null,
             "_source":{"@timestamp":"2026-11-21T10:00:00.123Z",
             "n":1.50},"sort":[1795255200123000000,4294967298]}]}}"#;
        let answer: SearchAnswer<'_> = serde_json::from_str(text).unwrap();
        let hits: Vec<&Hit<'_>> = answer.hits.hits.iter().collect();
        let made = bodies(&hits, "").unwrap();
        assert_eq!(made[0].records, 1);
        let text = String::from_utf8_lossy(&made[0].bytes);
        let mut lines = text.lines();
        let action: Json = serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!(
            action,
            json!({ "create": { "_index": ".ds-logs-app-default-2026.11.21-000001", "_id": "a1" } })
        );
        let document = lines.next().unwrap();
        assert!(document.starts_with(r#"{"@timestamp":"2026-11-21T10:00:00.123Z","#));
        assert!(
            document.ends_with(r#""n":1.50}"#),
            "numbers stay as they are written"
        );
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn documents_without_a_source_are_an_error() {
        let hit: Hit<'_> = serde_json::from_str(r#"{"_index":"a","_id":"1"}"#).unwrap();
        let error = bodies(&[&hit], "http://es:9200").unwrap_err().to_string();
        assert!(error.contains("no _source"), "{error}");
    }
}
