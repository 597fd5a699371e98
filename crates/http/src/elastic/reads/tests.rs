//! `docs/elasticsearch.md` against the code.

use super::aggregations::limits::*;
use super::*;

const PAGE: &str = include_str!("../../../../../docs/elasticsearch.md");

/// The first cells of the table below a heading.
fn names(heading: &str) -> Vec<&'static str> {
    let mut sections = PAGE.split("\n## ");
    let section = sections
        .find(|section| section.starts_with(heading))
        .unwrap();
    let rows = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    rows.map(|(name, _)| name).collect()
}

#[test]
fn the_page_has_every_query() {
    assert_eq!(names("Queries"), query::clauses());
}

#[test]
fn the_page_has_every_aggregation() {
    assert_eq!(names("Aggregations"), aggregations::kinds());
    assert_eq!(names("Pipelines"), aggregations::pipelines());
}

#[test]
fn the_page_has_the_limits() {
    let limits = [
        format!("| body of a request | {} MiB |", BODY_BYTES_MAX >> 20),
        format!(
            "| hits of an answer | {}, {} MiB in memory |",
            request::WINDOW_MAX,
            fetch::HITS_BYTES_MAX >> 20
        ),
        format!("| searches of a `_msearch` | {} |", multi::SEARCHES_MAX),
        format!("| buckets of an answer | {BUCKETS_MAX} |"),
        format!("| groups before `order` and `size` choose | {GROUPS_MAX} |"),
        format!("| values held for percentiles and cardinalities | {VALUES_MAX} |"),
        format!("| combinations of values of a record | {COMBINATIONS_MAX} |"),
        format!("| aggregations of a request | {AGGREGATIONS_MAX}, {DEPTH_MAX} levels |"),
        format!("| indices of a list | {} |", listing::INDICES_MAX),
        format!("| fields of a mapping | {} |", fields::FIELDS_MAX),
        format!(
            "together at most {TOP_HITS_MAX}, `sort`, `_source`; at most {ALL_TOP_HITS_MAX} hits"
        ),
    ];
    for said in limits {
        assert!(PAGE.contains(&said), "docs/elasticsearch.md lacks '{said}'");
    }
}
