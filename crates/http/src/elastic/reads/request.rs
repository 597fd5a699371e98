//! The request of a search: its body and its parameters.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use logpond_client::exact;
use logpond_engine::query::{Key, parse_cursor};
use logpond_record::Timestamp;
use logpond_search::Filter;
use logpond_search::query::{Comparison, FieldTest};
use serde_json::{Value as Json, json};

use super::aggregations::{self, Plan};
use super::dates::interval::duration_ms;
use super::document::SourceFilter;
use super::hit::HitForm;
use super::indices::IndexExpression;
use super::json::{Object, bad, count, object, only, optional, unsupported};
use super::query::{self, Context};
use super::sort::SortOrder;
use super::sorted::Match;
use crate::error::ApiError;
use crate::params::Params;

/// The last hit that a page may have, as `index.max_result_window`.
pub(super) const WINDOW_MAX: u64 = 10_000;

/// Hits where a request says no number.
const SIZE_DEFAULT: u64 = 10;

/// How deep objects and lists of a body may be within one another: serde_json reads no more.
const DEPTH_MAX: usize = 127;

/// The longest id of a scroll, in bytes: it has the query.
const TOKEN_BYTES_MAX: usize = 1 << 20;

/// Members of a body that are read.
const MEMBERS: [&str; 24] = [
    "query",
    "post_filter",
    "aggs",
    "aggregations",
    "from",
    "size",
    "sort",
    "search_after",
    "_source",
    "fields",
    "docvalue_fields",
    "stored_fields",
    "track_total_hits",
    "pit",
    "scroll",
    "version",
    "seq_no_primary_term",
    "explain",
    "min_score",
    "terminate_after",
    "runtime_mappings",
    "script_fields",
    "profile",
    "slice",
];

/// Members that change no hit, no count and no bucket.
const WITHOUT_EFFECT: [&str; 6] = [
    "timeout",
    "highlight",
    "track_scores",
    "stats",
    "ext",
    "preference",
];

/// Members that are refused, with the remedy.
const REFUSED: [(&str, &str); 7] = [
    ("collapse", "use a terms aggregation with top_hits"),
    ("rescore", "there are no scores"),
    ("suggest", "use a terms aggregation"),
    ("knn", "there are no vectors"),
    ("rank", "there are no scores"),
    ("indices_boost", "there are no scores"),
    ("retriever", "use query"),
];

/// Parameters that a search takes.
pub(super) const PARAMETERS: [&str; 41] = [
    "q",
    "df",
    "default_operator",
    "analyze_wildcard",
    "lenient",
    "size",
    "from",
    "sort",
    "search_after",
    "_source",
    "_source_includes",
    "_source_excludes",
    "docvalue_fields",
    "stored_fields",
    "track_total_hits",
    "rest_total_hits_as_int",
    "typed_keys",
    "scroll",
    "scroll_id",
    "keep_alive",
    "allow_partial_search_results",
    "ignore_unavailable",
    "allow_no_indices",
    "expand_wildcards",
    "ignore_throttled",
    "preference",
    "request_cache",
    "search_type",
    "timeout",
    "track_scores",
    "max_concurrent_shard_requests",
    "max_concurrent_searches",
    "batched_reduce_size",
    "pre_filter_shard_size",
    "ccs_minimize_roundtrips",
    "pretty",
    "human",
    "error_trace",
    "version",
    "include_named_queries_score",
    "terminate_after",
];

/// How many records match, as an answer says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Total {
    /// Not at all.
    Unsaid,
    /// Exactly.
    Exact,
    /// As an earlier page of the scroll said it.
    Known(u64),
}

/// A scroll: the request of its pages.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scroll {
    body: Object,
    index: String,
    received: Timestamp,
}

/// A search, read.
#[derive(Clone, Debug)]
pub(super) struct SearchRequest {
    /// The records that are counted and aggregated.
    pub(super) filter: Filter,
    /// A further condition on hits.
    pub(super) hits_filter: Filter,
    pub(super) size: u64,
    pub(super) from: u64,
    pub(super) order: SortOrder,
    pub(super) behind: Option<Key>,
    /// The same in an order of fields.
    pub(super) after: Option<Match>,
    /// The last hit of the page before in a scroll.
    pub(super) scroll_after: Option<Json>,
    pub(super) form: HitForm,
    pub(super) total: Total,
    pub(super) aggregations: Plan,
    pub(super) pit: Option<String>,
    pub(super) scroll: Option<Scroll>,
    pub(super) options: AnswerOptions,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerOptions {
    /// The total is a number instead of an object.
    pub(super) has_plain_total: bool,
    /// Names of aggregations have their kind before them.
    pub(super) has_typed_keys: bool,
    /// An answer that lacks something is one.
    pub(super) may_be_partial: bool,
}

impl AnswerOptions {
    /// Those of the parameters.
    ///
    /// # Errors
    /// When a parameter is wrong.
    pub(super) fn read(params: &Params) -> Result<AnswerOptions, ApiError> {
        Ok(AnswerOptions {
            has_plain_total: params.flag("rest_total_hits_as_int", false)?,
            has_typed_keys: params.flag("typed_keys", false)?,
            may_be_partial: params.flag("allow_partial_search_results", false)?,
        })
    }
}

/// Reads a body of one JSON object; nothing is an empty one. Numbers beyond 64 bits are texts of their digits, which are
/// compared exactly.
///
/// # Errors
/// When it is something else, or nested too deeply.
pub(super) fn read_body(bytes: &[u8]) -> Result<Object, ApiError> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Object::new());
    }
    // An error names the place in the body as it was sent.
    let read = exact::from_slice(bytes).or_else(|_| serde_json::from_slice(bytes));
    match read {
        Ok(Json::Object(members)) => Ok(members),
        Ok(_) => Err(bad("the body is a JSON object")),
        // The reader has no other sign of it than the text.
        Err(error) if error.to_string().starts_with("recursion limit") => Err(bad(format!(
            "the body has more than {DEPTH_MAX} objects and lists within one another: line {} column {}",
            error.line(),
            error.column()
        ))),
        Err(error) => Err(bad(format!("the body is no JSON object: {error}"))),
    }
}

/// Puts parameters that a body may have, too, into the body.
///
/// # Errors
/// When one is given twice.
pub(super) fn take_parameters(params: &Params, body: &mut Object) -> Result<(), ApiError> {
    for name in [
        "size",
        "from",
        "track_total_hits",
        "scroll",
        "terminate_after",
        "version",
    ] {
        if let Some(value) = params.one(name)? {
            body.insert(name.to_owned(), value.into());
        }
    }
    for name in ["docvalue_fields", "stored_fields", "search_after"] {
        if let Some(value) = params.one(name)? {
            body.insert(name.to_owned(), split(value));
        }
    }
    if let Some(sort) = params.one("sort")? {
        let keys = sort.split(',').map(|key| match key.rsplit_once(':') {
            Some((name, order)) => json!({ name: { "order": order } }),
            None => key.into(),
        });
        body.insert("sort".to_owned(), keys.collect());
    }
    if let Some(source) = params.one("_source")? {
        let value = match source {
            "true" | "false" => source.into(),
            names => split(names),
        };
        body.insert("_source".to_owned(), value);
    }
    let (includes, excludes) = (
        params.one("_source_includes")?,
        params.one("_source_excludes")?,
    );
    if includes.is_some() || excludes.is_some() {
        let names = |given: Option<&str>| given.map_or_else(|| json!([]), split);
        let filter = json!({ "includes": names(includes), "excludes": names(excludes) });
        body.insert("_source".to_owned(), filter);
    }
    if let Some(text) = params.one("q")? {
        let mut clause = json!({ "query": text });
        for (parameter, member) in [
            ("df", "default_field"),
            ("default_operator", "default_operator"),
        ] {
            if let Some(value) = params.one(parameter)? {
                clause[member] = value.into();
            }
        }
        body.insert("query".to_owned(), json!({ "query_string": clause }));
    }
    Ok(())
}

fn split(text: &str) -> Json {
    text.split(',').filter(|part| !part.is_empty()).collect()
}

impl SearchRequest {
    /// Reads a search in the indices of an expression.
    ///
    /// # Errors
    /// With the member that is wrong or not supported.
    pub(super) fn read(
        body: &Object,
        index: &str,
        options: AnswerOptions,
        now: Timestamp,
    ) -> Result<SearchRequest, ApiError> {
        check_members(body)?;
        let context = Context { now };
        let pit = body.get("pit").map(PointInTime::of_body).transpose()?;
        if pit.is_some() && !index.is_empty() {
            return Err(bad(
                "[indices] cannot be used with point in time: leave the index out of the path",
            ));
        }
        let scroll = scroll_of(body, index, now)?;
        let index = pit.as_ref().map_or(index, |pit| &pit.index);
        let mut parts = vec![IndexExpression::read(index)?.filter()];
        if let Some(query) = body.get("query").filter(|query| !query.is_null()) {
            parts.push(query::translate(query, &context)?);
        }
        let received = pit.as_ref().map(|pit| pit.received);
        let received = received.or(scroll.as_ref().map(|scroll| scroll.received));
        parts.extend(received.map(received_up_to));
        let hits_filter = match body.get("post_filter") {
            Some(query) if !query.is_null() => query::translate(query, &context)?,
            _ => Filter::All,
        };
        let order = SortOrder::read(body.get("sort"), pit.is_some())?;
        let (mut behind, mut after) = (None, None);
        match body.get("search_after").filter(|values| !values.is_null()) {
            Some(values) if order.is_of_times() => behind = Some(order.behind(values, now)?),
            Some(values) => after = Some(Match::of_values(&order, values, now)?),
            None => {}
        }
        let has_behind = behind.is_some() || after.is_some();
        let (from, size) = window(body, has_behind, scroll.is_some())?;
        let aggregations = body.get("aggs").or_else(|| body.get("aggregations"));
        Ok(SearchRequest {
            filter: Filter::and(parts),
            hits_filter,
            size,
            from,
            order,
            behind,
            after,
            scroll_after: None,
            form: form(body)?,
            total: total(body)?,
            aggregations: aggregations::read(aggregations, &context)?,
            pit: pit.map(|pit| pit.text),
            scroll,
            options,
        })
    }

    /// The request of the next page of a scroll.
    ///
    /// # Errors
    /// When the text is no id of a scroll.
    pub(super) fn of_scroll(
        id: &str,
        options: AnswerOptions,
        now: Timestamp,
    ) -> Result<SearchRequest, ApiError> {
        let wrong = || bad("[scroll_id] is not one that this server gave");
        let state = decoded(id).ok_or_else(wrong)?;
        let body = state
            .get("body")
            .and_then(Json::as_object)
            .ok_or_else(wrong)?;
        let index = state
            .get("index")
            .and_then(Json::as_str)
            .ok_or_else(wrong)?;
        let received = state
            .get("received")
            .and_then(Json::as_i64)
            .ok_or_else(wrong)?;
        let mut request = SearchRequest::read(body, index, options, now)?;
        let received = Timestamp(received);
        request.filter = Filter::and([request.filter, received_up_to(received)]);
        request.scroll = Some(Scroll {
            body: body.clone(),
            index: index.to_owned(),
            received,
        });
        let after = state.get("after").filter(|after| !after.is_null());
        match after {
            Some(Json::String(place)) => request.behind = parse_cursor(place).ok(),
            Some(state) => request.after = Match::of_state(&request.order, state),
            None => {}
        }
        request.scroll_after = after.cloned();
        if let Some(total) = state.get("total").and_then(Json::as_u64) {
            request.total = Total::Known(total);
        }
        Ok(request)
    }
}

impl Scroll {
    /// The id by which the next page is asked for.
    pub(super) fn id(&self, after: Option<Json>, total: Option<u64>) -> String {
        let state = json!({
            "body": self.body,
            "index": self.index,
            "received": self.received.0,
            "after": after,
            "total": total,
        });
        encoded(&state)
    }
}

/// A point in time: the records of indices that were received up to then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PointInTime {
    /// Its id.
    pub(super) text: String,
    index: String,
    received: Timestamp,
}

impl PointInTime {
    /// The point that is now.
    pub(super) fn new(index: &str, now: Timestamp) -> PointInTime {
        let text = encoded(&json!({ "index": index, "received": now.0 }));
        PointInTime {
            text,
            index: index.to_owned(),
            received: now,
        }
    }

    fn of_body(given: &Json) -> Result<PointInTime, ApiError> {
        let members = object(given, "pit")?;
        only(members, &["id", "keep_alive"], "pit")?;
        check_keep_alive(optional(members, "keep_alive")?.as_deref())?;
        let text = optional(members, "id")?.ok_or_else(|| bad("[pit] needs [id]"))?;
        let state = decoded(&text);
        let read = state.and_then(|state| {
            let index = state.get("index")?.as_str()?.to_owned();
            let received = Timestamp(state.get("received")?.as_i64()?);
            Some((index, received))
        });
        let (index, received) =
            read.ok_or_else(|| bad("[pit] [id] is not one that this server gave"))?;
        Ok(PointInTime {
            text,
            index,
            received,
        })
    }
}

/// Refuses a time to live that is none. It needs nothing: scrolls and points in time take no memory.
///
/// # Errors
/// When the text is no length of time.
pub(super) fn check_keep_alive(text: Option<&str>) -> Result<(), ApiError> {
    match text {
        Some(text) if duration_ms(text).is_none() => {
            Err(bad(format!("[{text}] is no length of time, such as 1m")))
        }
        _ => Ok(()),
    }
}

fn encoded(state: &Json) -> String {
    URL_SAFE_NO_PAD.encode(state.to_string())
}

fn decoded(text: &str) -> Option<Json> {
    if text.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn received_up_to(at: Timestamp) -> Filter {
    let test = FieldTest::Compare(Comparison::LessOrEqual, at.to_string().as_bytes().into());
    Filter::field("_received", test)
}

fn scroll_of(body: &Object, index: &str, now: Timestamp) -> Result<Option<Scroll>, ApiError> {
    let Some(keep_alive) = optional(body, "scroll")? else {
        return Ok(None);
    };
    check_keep_alive(Some(&keep_alive))?;
    let mut body = body.clone();
    for name in ["scroll", "aggs", "aggregations", "from"] {
        body.remove(name);
    }
    Ok(Some(Scroll {
        body,
        index: index.to_owned(),
        received: now,
    }))
}

fn check_members(body: &Object) -> Result<(), ApiError> {
    for (name, value) in body {
        let known = MEMBERS.contains(&&**name) || WITHOUT_EFFECT.contains(&&**name);
        if known {
            continue;
        }
        let refused = REFUSED.iter().find(|(refused, _)| refused == name);
        let is_empty = match value {
            Json::Null | Json::Bool(false) => true,
            Json::Array(values) => values.is_empty(),
            Json::Object(members) => members.is_empty(),
            Json::Bool(true) | Json::Number(_) | Json::String(_) => false,
        };
        match refused {
            Some(_) if is_empty => {}
            Some((_, instead)) => return Err(unsupported(name, instead)),
            None => return Err(bad(format!("unknown key [{name}] in the search"))),
        }
    }
    let is_set = |name: &str| match body.get(name) {
        None | Some(Json::Null | Json::Bool(false)) => false,
        Some(Json::Object(members)) => !members.is_empty(),
        Some(Json::Number(number)) => number.as_f64() != Some(0.0),
        Some(Json::String(text)) => !matches!(&**text, "0" | "false"),
        Some(_) => true,
    };
    for (name, instead) in [
        ("runtime_mappings", "ask for fields that records have"),
        ("script_fields", "ask for fields that records have"),
        ("explain", "there are no scores"),
        ("profile", "use the metrics of the server"),
        (
            "slice",
            "read one scroll after another, or ranges of @timestamp",
        ),
    ] {
        if is_set(name) {
            return Err(unsupported(name, instead));
        }
    }
    match super::json::number(body, "min_score")? {
        Some(score) if score > 1.0 => Err(unsupported("min_score", "all hits have the score 1")),
        _ => Ok(()),
    }
}

/// The first hit of the page and their number.
fn window(body: &Object, has_behind: bool, has_scroll: bool) -> Result<(u64, u64), ApiError> {
    let from = count(body, "from", 0)?;
    let size = count(body, "size", SIZE_DEFAULT)?;
    let to = from.saturating_add(size);
    if to > WINDOW_MAX {
        return Err(ApiError::bad_request(format!(
            "Result window is too large, from + size must be less than or equal to: [{WINDOW_MAX}] but was \
             [{to}]: use search_after or scroll for more"
        )));
    }
    if from > 0 && (has_behind || has_scroll) {
        return Err(bad("[from] must be 0 with search_after and scroll"));
    }
    Ok((from, size))
}

fn form(body: &Object) -> Result<HitForm, ApiError> {
    let mut form = HitForm::read(body)?;
    match body.get("stored_fields") {
        None | Some(Json::Null) => {}
        Some(given) => {
            let names = super::json::texts(given, "stored_fields")?;
            match names.first().map(String::as_str) {
                Some("_none_") => form.source = SourceFilter::none(),
                None | Some("*" | "_source") => {}
                Some(_) => return Err(unsupported("stored_fields", "use fields or _source")),
            }
        }
    }
    Ok(form)
}

/// A bound of the total asks for it: it is always exact.
fn total(body: &Object) -> Result<Total, ApiError> {
    match optional(body, "track_total_hits")?.as_deref() {
        None | Some("true") => Ok(Total::Exact),
        Some("false" | "-1") => Ok(Total::Unsaid),
        Some(text) if text.parse::<u64>().is_ok() => Ok(Total::Exact),
        Some(text) => Err(bad(format!(
            "[track_total_hits] is true, false or a number, not [{text}]"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_an_object_of_bounded_depth() {
        let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(read_body(nested(DEPTH_MAX).as_bytes()).is_ok());
        let table = [
            (nested(DEPTH_MAX + 1), "more than 127 objects and lists"),
            ("{\"a\"".to_owned(), "is no JSON object"),
            ("[1]".to_owned(), "is a JSON object"),
        ];
        for (body, expected) in table {
            let error = read_body(body.as_bytes()).unwrap_err();
            assert!(error.message.contains(expected), "{}", error.message);
        }
    }
}
