//! `docs/http.md` against the code: what the page must name, and the numbers in it.

use std::collections::BTreeSet;
use std::time::Duration;

use logpond_protocol::intake::body::{BODY_BYTES_MAX, RATIO_MAX};
use logpond_protocol::intake::journal_export::ENTRY_BYTES_MAX;
use logpond_protocol::intake::push::{BATCH_RECORDS_MAX, REJECTIONS_MAX};
use logpond_record::limits::{FIELD_NAME_BYTES_MAX, LINE_BYTES_DEFAULT};
use logpond_search::aggregate::{BUCKETS_MAX, EXACT_VALUES_MAX};
use logpond_search::context::CONTEXT_BYTES_MAX;
use logpond_search::query::QUERY_BYTES_MAX;

use super::error::Kind;
use super::rows::{RANGE_DEFAULT_NS, SCOPE_PARAMS};
use super::*;
use logpond_engine::ingest::ROOM_WAIT_MAX;
use logpond_engine::query::{
    AGGREGATES, CONTEXT_ROWS_MAX, MISSING_MAX, ParameterKind, TOP_VALUES_MAX,
};
use logpond_engine::query::{FOLLOWERS_MAX, QUERIES_WAITING_MAX, QUERY_WAIT_MAX, STALLED_MIN};
use logpond_engine::saved;
use logpond_listen::net::tls;

const PAGE: &str = include_str!("../../../docs/http.md");

/// The kind after this one, in the order of the page. A new kind does not compile without its
/// place here.
fn kind_after(kind: Kind) -> Option<Kind> {
    Some(match kind {
        Kind::BadRequest => Kind::BadQuery,
        Kind::BadQuery => Kind::TlsRequired,
        Kind::TlsRequired => Kind::TokenMissing,
        Kind::TokenMissing => Kind::TokenRefused,
        Kind::TokenRefused => Kind::RoleMissing,
        Kind::RoleMissing => Kind::ForeignOrigin,
        Kind::ForeignOrigin => Kind::ForeignHost,
        Kind::ForeignHost => Kind::NotFound,
        Kind::NotFound => Kind::Conflict,
        Kind::Conflict => Kind::MethodNotAllowed,
        Kind::MethodNotAllowed => Kind::BodyTooSlow,
        Kind::BodyTooSlow => Kind::BodyTooLarge,
        Kind::BodyTooLarge => Kind::NothingPushed,
        Kind::NothingPushed => Kind::UnsupportedMediaType,
        Kind::UnsupportedMediaType => Kind::UnsupportedEncoding,
        Kind::UnsupportedEncoding => Kind::Busy,
        Kind::Busy => Kind::TooManyQueries,
        Kind::TooManyQueries => Kind::MemoryFull,
        Kind::MemoryFull => Kind::Internal,
        Kind::Internal => Kind::JournalFailed,
        Kind::JournalFailed => Kind::NotJoined,
        Kind::NotJoined => Kind::Stopping,
        Kind::Stopping => Kind::Incomplete,
        Kind::Incomplete => Kind::NotBuilt,
        Kind::NotBuilt => Kind::Leaving,
        Kind::Leaving => Kind::ClockBehind,
        Kind::ClockBehind => Kind::WrongRole,
        Kind::WrongRole => Kind::NodeSilent,
        Kind::NodeSilent => Kind::DiskFull,
        Kind::DiskFull => return None,
    })
}

/// The rows, in cells, of the first table that begins with this cell, below the heading that
/// starts so.
fn table(heading: &str, first: &str) -> Vec<Vec<&'static str>> {
    let mut sections = PAGE.split("\n## ");
    let section = sections.find(|s| s.starts_with(heading));
    let lines = section.into_iter().flat_map(str::lines);
    let rows: Vec<_> = lines
        .skip_while(|line| !line.starts_with(&format!("| {first} |")))
        .skip(2)
        .map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|row| row.split(" | ").collect())
        .collect();
    assert!(!rows.is_empty(), "no table of {first} below {heading}");
    rows
}

#[test]
fn the_page_has_every_endpoint() {
    let expected = router::routes().map(|(path, methods, needed)| {
        let methods: Vec<_> = methods.iter().map(|m| format!("`{m}`")).collect();
        let role = needed.map_or("-".to_owned(), |role| format!("`{}`", role.as_str()));
        [methods.join(" "), format!("`{path}`"), role]
    });
    let expected: BTreeSet<_> = expected.collect();
    let rows = table("# The HTTP API", "method");
    let named: BTreeSet<_> = rows
        .iter()
        .map(|row| [row[0], row[1], row[2]].map(str::to_owned))
        .collect();
    assert_eq!(named, expected);
    assert_eq!(rows.len(), named.len());
}

#[test]
fn the_page_has_every_parameter() {
    let (shared, own) = query::PARAMS.split_at(SCOPE_PARAMS.len());
    assert_eq!(shared, SCOPE_PARAMS);
    let expected: [(&str, &[&str]); 16] = [
        ("Session", &session::PARAMS),
        ("Parameters", &SCOPE_PARAMS),
        ("Push", &push::PARAMS),
        ("Journals", &journal_upload::PARAMS),
        ("Batches", &batches::PARAMS),
        ("Query", own),
        ("LogsQL", &logsql::PARAMS),
        ("Other ways", &victoria::PARAMS),
        ("SQL", &sql::PARAMS),
        ("Histogram", &histogram::PARAMS),
        ("Patterns", &patterns::PARAMS),
        ("Compact", &compact::PARAMS),
        ("Vacuum", &vacuum::PARAMS),
        ("Forget", &forget::PARAMS),
        ("The cluster", &cluster::DRAIN_PARAMS),
        ("Flat objects", &flat::PARAMS),
    ];
    for (heading, params) in expected {
        let rows = table(heading, "parameter");
        let named: Vec<_> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
        assert_eq!(named, params, "below {heading}");
    }
    for aggregate in AGGREGATES.iter().filter(|row| !row.parameters.is_empty()) {
        let path = aggregate.path;
        let sections = PAGE.split("\n## ");
        let heading = sections.map(|section| section.lines().next().unwrap_or_default());
        let mut found = heading.filter(|heading| heading.ends_with(&format!(": `{path}`")));
        let rows = table(found.next().unwrap(), "parameter");
        let named: Vec<_> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
        let expected: Vec<_> = aggregate::names(aggregate).collect();
        assert_eq!(named, expected, "{path}");
    }
}

#[test]
fn the_page_has_every_error() {
    let kinds = std::iter::successors(Some(Kind::BadRequest), |kind| kind_after(*kind));
    let expected: Vec<_> = kinds
        .map(|kind| {
            let (status, code, seconds) = kind.row();
            let seconds = seconds.map_or("-".to_owned(), |s| s.to_string());
            [status.as_str().to_owned(), format!("`{code}`"), seconds]
        })
        .collect();
    let rows = table("Errors", "status");
    let named: Vec<_> = rows.iter().map(|row| &row[..3]).collect();
    assert_eq!(named, expected);
}

#[test]
fn the_page_has_the_limits() {
    let mib = |bytes: usize| format!("{} MiB", bytes >> 20);
    let kib = |bytes: usize| format!("{} KiB", bytes >> 10);
    let seconds = |time: Duration| format!("{} s", time.as_secs());
    let limits = [
        mib(body::RECEIVED_BYTES_MAX),
        mib(BODY_BYTES_MAX),
        RATIO_MAX.to_string(),
        BATCH_RECORDS_MAX.to_string(),
        mib(BODIES.bytes_max),
        seconds(ROOM_WAIT_MAX),
        seconds(bodies::BODY_IDLE_MAX),
        format!(
            "{} + {} KiB/s",
            seconds(bodies::BODY_GRACE),
            bodies::BODY_BYTES_PER_S_MIN >> 10
        ),
        mib(ENTRY_BYTES_MAX),
        mib(LINE_BYTES_DEFAULT),
        push::LABELS_MAX.to_string(),
        format!("{FIELD_NAME_BYTES_MAX} bytes"),
        format!("{} bytes", push::LABEL_VALUE_BYTES_MAX),
        REJECTIONS_MAX.to_string(),
        MISSING_MAX.to_string(),
        params::PARAMETERS_MAX.to_string(),
        mib(router::FORM_BYTES_MAX),
        kib(QUERY_BYTES_MAX),
        CONTEXT_ROWS_MAX.to_string(),
        mib(CONTEXT_BYTES_MAX),
        format!("{}; {}", TOP_VALUES_MAX, patterns::PATTERNS_MAX),
        BUCKETS_MAX.to_string(),
        EXACT_VALUES_MAX.to_string(),
        QUERIES_MAX.to_string(),
        FOLLOWERS_MAX.to_string(),
        QUERIES_WAITING_MAX.to_string(),
        seconds(QUERY_WAIT_MAX),
        seconds(STALLED_MIN),
        net::CONNECTIONS_MAX.to_string(),
        net::connections_per_address_max(net::CONNECTIONS_MAX).to_string(),
        format!(
            "{}; {}",
            net::SHARE_WAITING_MAX,
            seconds(net::SHARE_WAIT_MAX)
        ),
        format!(
            "{}; {}",
            tls::HANDSHAKES_MAX,
            tls::HANDSHAKES_PER_ADDRESS_MAX
        ),
        seconds(tls::HANDSHAKE_TIME_MAX),
        HEADERS_MAX.to_string(),
        seconds(HEADER_TIME_MAX),
    ];
    let rows = table("Limits", "what");
    let given: Vec<_> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(given, limits);
}

#[test]
fn the_page_has_the_bounds_of_saved_queries() {
    let kib = |bytes: usize| format!("{} KiB", bytes >> 10);
    for said in [
        format!("| the query, up to {}; ", kib(saved::QUERY_BYTES_MAX)),
        format!("for, up to {} |", kib(saved::DESCRIPTION_BYTES_MAX)),
        format!("labels, up to {};", kib(saved::LEGEND_BYTES_MAX)),
        format!("cols=app`, up to {} |", kib(saved::VIEW_BYTES_MAX)),
        format!("| up to {} variables", saved::VARIABLES_MAX),
        format!("A name has up to {} letters", saved::NAME_BYTES_MAX),
        format!(
            "at most {} queries, of {} MiB",
            saved::QUERIES_MAX,
            saved::CATALOG_BYTES_MAX >> 20
        ),
        format!("| {} | lines at most; 0", flat::LIMIT_DEFAULT),
    ] {
        assert!(PAGE.contains(&said), "docs/http.md lacks '{said}'");
    }
    for (name, query) in saved::built_in() {
        let variables: Vec<_> = query.variables.keys().map(|v| format!("`{v}`")).collect();
        let (start, end) = (
            format!("| `{name}` |"),
            format!("| {} |", variables.join(", ")),
        );
        let is_row = |line: &str| line.starts_with(&start) && line.ends_with(&end);
        assert!(
            PAGE.lines().any(is_row),
            "docs/http.md lacks {start} … {end}"
        );
    }
}

#[test]
fn the_page_has_the_defaults() {
    let buckets = histogram::BUCKETS_DEFAULT;
    let parameters = AGGREGATES.iter().flat_map(|aggregate| aggregate.parameters);
    let mut limits = parameters.filter_map(|parameter| match parameter.kind {
        ParameterKind::Limit { default, .. } => Some(default),
        ParameterKind::Field(_) | ParameterKind::By => None,
    });
    let values = limits.next().unwrap();
    let (context, values_max) = (CONTEXT_ROWS_MAX, TOP_VALUES_MAX);
    let (patterns_default, patterns_max) = (patterns::PATTERNS_DEFAULT, patterns::PATTERNS_MAX);
    assert_eq!(RANGE_DEFAULT_NS, 3_600_000_000_000, "the page says an hour");
    for said in [
        format!("about {buckets} buckets"),
        format!("about {} buckets", patterns::BUCKETS_DEFAULT),
        format!("| {patterns_default} | patterns at most, up to {patterns_max}; "),
        format!("too, {BUCKETS_MAX} at most"),
        format!("| {values} | values at most, up to {values_max}; "),
        format!("before each match in time, up to {context} |"),
        format!("after each match in time, up to {context} |"),
    ] {
        assert!(PAGE.contains(&said), "docs/http.md lacks '{said}'");
    }
}
