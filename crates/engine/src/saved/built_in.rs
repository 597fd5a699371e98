//! Queries that every server has: what people first ask of the access logs of a web server.
//!
//! Fields are those of access logs (`docs/sources.md`). Own addresses and hosts are expressions, so that
//! several fit. A `-` is how access logs write that there is none, so it is not counted among the values. A
//! query that is saved under the same name takes the place of one of these.

use std::sync::LazyLock;

use super::query::{Format, SavedQuery};

/// A row: name, query, description, legend, format, variables with their defaults.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Format,
    &'static [(&'static str, &'static str)],
);

const ROWS: [Row; 3] = [
    (
        "outbound-bytes",
        r#"sum(sum_over_time({host=~"$host", bytes!="", remote_addr!~"$own_address"} | unwrap bytes [$__interval]))"#,
        "Bytes sent to others than oneself, over time.",
        "outbound",
        Format::TimeSeries,
        &[HOST, OWN_ADDRESS],
    ),
    (
        "requests-by-host",
        r#"sum by (host) (count_over_time({host=~"$host", host!="-", status!=""}[$__interval]))"#,
        "Requests to each virtual host, over time.",
        "{{host}}",
        Format::TimeSeries,
        &[HOST],
    ),
    (
        "top-articles",
        r#"topk(20, sum by (referer) (count_over_time({host=~"$host", method="GET", path!~"$scripts", referer!~"-?", remote_addr!~"$own_address"}[$__range])))"#,
        "The pages that most requests came from, such as those of a counter or of comments that \
         articles embed; without one's own visits and without the embedded scripts themselves.",
        "{{referer}}",
        Format::Table,
        &[HOST, OWN_ADDRESS, ("scripts", r".*\.js")],
    ),
];

/// Any virtual host.
const HOST: (&str, &str) = ("host", ".+");

/// Nobody.
const OWN_ADDRESS: (&str, &str) = ("own_address", "");

static QUERIES: LazyLock<[(&str, SavedQuery); ROWS.len()]> = LazyLock::new(|| {
    ROWS.map(|(name, query, description, legend, format, variables)| {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let saved = SavedQuery {
            query: query.to_owned(),
            description: description.to_owned(),
            legend: legend.to_owned(),
            format,
            variables: variables.iter().map(owned).collect(),
            ..SavedQuery::default()
        };
        (name, saved)
    })
});

/// The queries that every server has, in the order of their names.
pub fn built_in() -> impl Iterator<Item = (&'static str, &'static SavedQuery)> {
    QUERIES.iter().map(|(name, query)| (*name, query))
}
