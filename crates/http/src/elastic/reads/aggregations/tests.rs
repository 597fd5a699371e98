use logpond_host::memory::{Budget, Charge, Lease};
use logpond_record::Timestamp;
use logpond_search::columns::{ColumnKind, ColumnRequest, Columns};
use logpond_segment::rows::{Column, NULL, Numbers, StringColumn, Strings};
use serde_json::{Value as Json, json};

use super::run::{Filling, Part};
use super::state::Finish;
use super::*;
use crate::error::Kind as ErrorKind;

const NOW: Timestamp = super::super::dates::tests_now();

/// Records as columns of a plan.
fn columns(asked: &[ColumnRequest], records: &[Json]) -> Columns {
    let column = |asked: &ColumnRequest| match asked.kind {
        ColumnKind::Time => {
            let ms = records
                .iter()
                .map(|record| record["@timestamp"].as_i64().unwrap());
            Column::Ints(Numbers {
                values: ms.map(|ms| ms * 1_000_000).collect(),
                valid: Vec::new(),
            })
        }
        _ => {
            let name = super::super::names::of_client(&asked.name);
            let (mut bytes, mut ranges, mut codes) = (Vec::new(), Vec::new(), Vec::new());
            for record in records {
                match super::super::json::text_of(&record[name]) {
                    None => codes.push(NULL),
                    Some(text) => {
                        codes.push(ranges.len() as u32);
                        let start = bytes.len() as u32;
                        bytes.extend_from_slice(text.as_bytes());
                        ranges.push((start, bytes.len() as u32));
                    }
                }
            }
            let values = Strings::new(bytes, ranges).into();
            Column::Strings(StringColumn { codes, values })
        }
    };
    Columns {
        rows: records.len(),
        columns: asked.iter().map(column).collect(),
        unfit: 0,
    }
}

pub(super) fn try_aggregate(aggs: &Json, records: &[Json]) -> Result<Json, ApiError> {
    aggregate_within(aggs, records, Charge::default())
}

fn aggregate_within(aggs: &Json, records: &[Json], charge: Charge) -> Result<Json, ApiError> {
    let plan = read(Some(aggs), &Context { now: NOW })?;
    // Of two threads, of which each has some.
    let (first, last) = records.split_at(records.len() / 2);
    let part = |records| {
        let mut part = Part::new(&plan);
        part.add(&plan, &columns(&plan.columns, records));
        part
    };
    let parts = vec![part(first), part(last)];
    let filling = Filling::new(&plan, parts, charge).end()?;
    let mut fetch = |places: &[logpond_engine::query::Key], _: &top_hits::TopHits| {
        Ok(places
            .iter()
            .map(|place| place.time.unix_ms().into())
            .collect())
    };
    let found = filling.finish(&mut Finish::new(false, &mut fetch))?;
    Ok(found.json)
}

pub(super) fn aggregate(aggs: &Json, records: &[Json]) -> Json {
    try_aggregate(aggs, records).unwrap()
}

#[test]
fn an_answer_takes_its_memory_before_it_is_made() {
    let records: Vec<Json> = (0..5000)
        .map(|n| json!({"host": format!("host-{n:05}"), "ms": n}))
        .collect();
    let budget = Budget::unmeasured(16 << 20);
    let of_size = |size: usize| {
        let aggs = json!({"a": {
            "terms": {"field": "host", "size": size},
            "aggs": {"p": {"percentiles": {"field": "ms"}}},
        }});
        let lease = Lease::of_query(&budget, 0, &mut || true).unwrap();
        aggregate_within(&aggs, &records, Charge::new(Some(&lease)))
    };
    let few = of_size(100).unwrap();
    assert_eq!(few["a"]["buckets"].as_array().unwrap().len(), 100);
    let refused = of_size(5000).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::MemoryFull);
    assert!(refused.message.contains(" MiB"), "{}", refused.message);
}

pub(super) fn records() -> Vec<Json> {
    let record = |s: i64, host: &str, status: Json, ms: Json| {
        json!({"@timestamp": 1_795_255_200_000_i64 + s * 1000, "host": host, "status": status, "ms": ms,
            "_id": format!("{s:026}"), "message": format!("{host} says hello"), "_raw": host})
    };
    vec![
        record(0, "a", json!(200), json!(10)),
        record(10, "b", json!(500), json!(20)),
        record(65, "a", json!(200), json!(30.5)),
        record(200, "a", json!(404), Json::Null),
    ]
}

fn aggregations_first() -> Vec<(Json, Json)> {
    vec![
        (
            json!({"avg": {"field": "ms"}}),
            json!({"value": 60.5 / 3.0}),
        ),
        (json!({"min": {"field": "ms"}}), json!({"value": 10.0})),
        (
            json!({"max": {"field": "ms", "missing": 99}}),
            json!({"value": 99.0}),
        ),
        (json!({"sum": {"field": "nothing"}}), json!({"value": 0.0})),
        (json!({"avg": {"field": "nothing"}}), json!({"value": null})),
        (
            json!({"max": {"field": "@timestamp"}}),
            json!({"value": 1_795_255_400_000.0, "value_as_string": "2026-11-21T10:03:20.000Z"}),
        ),
        (json!({"value_count": {"field": "ms"}}), json!({"value": 3})),
        (
            json!({"cardinality": {"field": "host.keyword", "precision_threshold": 3}}),
            json!({"value": 2}),
        ),
        (
            json!({"stats": {"field": "ms"}}),
            json!({"count": 3, "min": 10.0, "max": 30.5, "avg": 60.5 / 3.0, "sum": 60.5}),
        ),
        (
            json!({"percentiles": {"field": "ms", "percents": [50, "100"]}}),
            json!({"values": {"50.0": 20.0, "100.0": 30.5}}),
        ),
        (
            json!({"percentiles": {"field": "ms", "percents": [25], "keyed": false}}),
            json!({"values": [{"key": 25.0, "value": 15.0}]}),
        ),
        (
            json!({"percentile_ranks": {"field": "ms", "values": [20]}}),
            json!({"values": {"20.0": 200.0 / 3.0}}),
        ),
        (json!({"missing": {"field": "ms"}}), json!({"doc_count": 1})),
        (
            json!({"filter": {"term": {"status": 200}}}),
            json!({"doc_count": 2}),
        ),
        (
            json!({"filter": {"match_phrase": {"message": "B says"}}}),
            json!({"doc_count": 1}),
        ),
        (
            json!({"filters": {"filters": {"bad": {"range": {"status": {"gte": 400}}}}, "other_bucket": true}}),
            json!({"buckets": {"bad": {"doc_count": 2}, "_other_": {"doc_count": 2}}}),
        ),
        (
            json!({"filters": {"filters": [{"query_string": {"query": "status:[400 TO *]"}}]}}),
            json!({"buckets": [{"doc_count": 2}]}),
        ),
        (
            json!({"terms": {"field": "host"}}),
            terms(&[(json!("a"), 3), (json!("b"), 1)], 0),
        ),
        (
            json!({"terms": {"field": "status", "size": 1}}),
            terms(&[(json!(200), 2)], 2),
        ),
        (
            json!({"terms": {"field": "status", "order": {"_key": "desc"}}}),
            terms(&[(json!(500), 1), (json!(404), 1), (json!(200), 2)], 0),
        ),
    ]
}

fn aggregations_second() -> Vec<(Json, Json)> {
    vec![
        (
            json!({"terms": {"field": "status", "min_doc_count": 2}}),
            terms(&[(json!(200), 2)], 0),
        ),
        (
            json!({"terms": {"field": "status", "include": "[45].*", "exclude": ["500"]}}),
            terms(&[(json!(404), 1)], 0),
        ),
        (
            json!({"terms": {"field": "ms", "missing": "none", "order": [{"_count": "asc"}, {"_key": "asc"}]}}),
            terms(
                &[
                    (json!("10"), 1),
                    (json!("20"), 1),
                    (json!("30.5"), 1),
                    (json!("none"), 1),
                ],
                0,
            ),
        ),
        (
            json!({"histogram": {"field": "ms", "interval": 10, "min_doc_count": 1}}),
            json!({"buckets": [{"key": 10.0, "doc_count": 1}, {"key": 20.0, "doc_count": 1}, {"key": 30.0, "doc_count": 1}]}),
        ),
        (
            json!({"histogram": {"field": "ms", "interval": 15, "offset": 5, "keyed": true}}),
            json!({"buckets": {"5.0": {"key": 5.0, "doc_count": 1}, "20.0": {"key": 20.0, "doc_count": 2}}}),
        ),
        (
            json!({"range": {"field": "ms", "ranges": [{"from": 20}, {"to": 20, "key": "low"}]}}),
            json!({"buckets": [{"key": "low", "to": 20.0, "doc_count": 1}, {"key": "20.0-*", "from": 20.0, "doc_count": 2}]}),
        ),
        (
            json!({"date_range": {"field": "@timestamp", "format": "HH:mm", "ranges": [{"to": "now-30m/m", "key": "old"}]}}),
            Json::Null,
        ),
        (
            json!({"top_hits": {"size": 2, "sort": [{"@timestamp": "desc"}]}}),
            json!({"hits": {"total": {"value": 4, "relation": "eq"}, "max_score": null, "hits": [1_795_255_400_000_i64, 1_795_255_265_000_i64]}}),
        ),
    ]
}

/// Each aggregation over the same four records.
#[test]
fn aggregations_are_exact() {
    let table = [aggregations_first(), aggregations_second()].concat();
    for (body, expected) in table {
        let mut found = aggregate(&json!({"x": body}), &records());
        if !expected.is_null() {
            assert_eq!(found["x"].take(), expected, "{body}");
        }
    }
}

fn terms(buckets: &[(Json, u64)], others: u64) -> Json {
    let buckets = buckets
        .iter()
        .map(|(key, count)| json!({"key": key, "doc_count": count}));
    json!({"doc_count_error_upper_bound": 0, "sum_other_doc_count": others, "buckets": buckets.collect::<Vec<_>>()})
}

#[test]
fn histograms_of_times_have_gaps_and_bounds() {
    let key = |minute: i64| 1_795_255_200_000_i64 + minute * 60_000;
    let counts = |body: Json| -> Vec<(i64, u64)> {
        let found = aggregate(&json!({"x": {"date_histogram": body}}), &records());
        let buckets = found["x"]["buckets"].as_array().unwrap().iter();
        buckets
            .map(|b| (b["key"].as_i64().unwrap(), b["doc_count"].as_u64().unwrap()))
            .collect()
    };
    assert_eq!(
        counts(json!({"field": "@timestamp", "fixed_interval": "1m"})),
        [(key(0), 2), (key(1), 1), (key(2), 0), (key(3), 1)]
    );
    assert_eq!(
        counts(json!({"field": "@timestamp", "calendar_interval": "1m", "min_doc_count": 1})),
        [(key(0), 2), (key(1), 1), (key(3), 1)]
    );
    let extended = json!({"min": key(-1), "max": key(1).to_string()});
    let grafana = json!({"field": "@timestamp", "fixed_interval": "1m", "min_doc_count": 0, "format": "epoch_millis",
        "extended_bounds": extended});
    assert_eq!(
        counts(grafana),
        [
            (key(-1), 0),
            (key(0), 2),
            (key(1), 1),
            (key(2), 0),
            (key(3), 1)
        ]
    );
    assert_eq!(
        counts(
            json!({"field": "@timestamp", "interval": "2m", "offset": "+1m", "order": {"_count": "desc"}})
        ),
        [(key(-1), 2), (key(1), 1), (key(3), 1)]
    );
    let hard =
        json!({"field": "@timestamp", "fixed_interval": "1m", "hard_bounds": {"max": key(2)}});
    assert_eq!(counts(hard), [(key(0), 2), (key(1), 1)]);
}

#[test]
fn aggregations_are_within_one_another() {
    let aggs = json!({"2": {
        "terms": {"field": "host", "order": {"1[max]": "asc"}},
        "meta": {"a": 1},
        "aggs": {"1": {"stats": {"field": "ms"}}, "3": {"date_histogram": {"field": "@timestamp", "fixed_interval": "1m", "min_doc_count": 1}}},
    }});
    let found = aggregate(&aggs, &records());
    let found = &found["2"];
    assert_eq!(found["meta"], json!({"a": 1}));
    assert_eq!(
        (&found["buckets"][0]["key"], &found["buckets"][1]["key"]),
        (&json!("b"), &json!("a"))
    );
    assert_eq!(found["buckets"][1]["1"]["sum"], json!(40.5));
    assert_eq!(
        found["buckets"][1]["3"]["buckets"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let typed = read(Some(&aggs), &Context { now: NOW }).unwrap();
    let filling = Filling::new(&typed, Vec::new(), Charge::default());
    filling.take(&columns(&typed.columns, &records()));
    let mut fetch = |_: &[logpond_engine::query::Key], _: &top_hits::TopHits| Ok(Vec::new());
    let filled = filling.end().unwrap();
    let found = filled
        .finish(&mut Finish::new(true, &mut fetch))
        .unwrap()
        .json;
    assert!(
        found["sterms#2"]["buckets"][0]["date_histogram#3"].is_object(),
        "{found}"
    );
}

#[test]
fn values_of_lists_are_buckets_each() {
    let record = |tags: &str| json!({"@timestamp": 0, "tags": tags});
    let records = [
        record(r#"["a","b"]"#),
        record("a"),
        record(r#"["a","a",["c"]]"#),
        record("[]"),
        record("[7,8]"),
    ];
    let found = aggregate(&json!({"t": {"terms": {"field": "tags"}}}), &records);
    let buckets = found["t"]["buckets"].as_array().unwrap();
    let pairs: Vec<String> = buckets
        .iter()
        .map(|bucket| format!("{} {}", bucket["key"], bucket["doc_count"]))
        .collect();
    assert_eq!(
        pairs,
        ["\"a\" 3", "\"7\" 1", "\"8\" 1", "\"b\" 1", "\"c\" 1"]
    );
    let found = aggregate(&json!({"n": {"cardinality": {"field": "tags"}}}), &records);
    assert_eq!(found["n"]["value"], 5);
    let sums = json!({"s": {"stats": {"field": "tags"}}});
    let found = aggregate(&sums, &records);
    assert_eq!(
        (&found["s"]["count"], &found["s"]["sum"]),
        (&json!(2), &json!(15.0))
    );
    let bars = json!({"h": {"histogram": {"field": "tags", "interval": 10}}});
    assert_eq!(
        aggregate(&bars, &records)["h"]["buckets"][0]["doc_count"],
        1
    );
    let only_a = json!({"f": {"filter": {"term": {"tags": "a"}}}});
    assert_eq!(aggregate(&only_a, &records)["f"]["doc_count"], 3);
}

#[test]
fn what_is_not_there_is_refused() {
    let deep = (0..11).fold(
        json!({"x": {"min": {"field": "a"}}}),
        |inner, _| json!({"x": {"filter": {"match_all": {}}, "aggs": inner}}),
    );
    let minute = json!({"x": {"date_histogram": {"field": "@timestamp", "fixed_interval": "1ms"}}});
    let table = [
        (json!({"x": {"global": {}}}), "[global] is not supported"),
        (json!({"x": {"composite": {}}}), "[sources] of [composite]"),
        (
            json!({"x": {"rate": {"unit": "hour"}}}),
            "within a date_histogram",
        ),
        (
            json!({"x": {"filter": {"match_all": {}}, "aggs": {}, "aggregations": {}}}),
            "both [aggs] and",
        ),
        (json!({"x": {"geo_bounds": {}}}), "unknown aggregation type"),
        (json!({"x": {}}), "no kind"),
        (
            json!({"x": {"min": {"field": "a"}, "max": {"field": "a"}}}),
            "two kinds",
        ),
        (
            json!({"x": {"min": {"field": "a"}, "aggs": {"y": {"min": {"field": "a"}}}}}),
            "no buckets",
        ),
        (
            json!({"x": {"min": {"script": {}}}}),
            "[script] is not supported",
        ),
        (
            json!({"x": {"min": {"field": "a", "format": "0"}}}),
            "[format]",
        ),
        (
            json!({"x": {"terms": {"field": "host", "order": {"y": "asc"}}}}),
            "names [y]",
        ),
        (
            json!({"x": {"date_histogram": {"field": "ms", "fixed_interval": "1m"}}}),
            "another field",
        ),
        (
            json!({"x": {"date_histogram": {"field": "@timestamp"}}}),
            "needs one of",
        ),
        (
            json!({"x": {"histogram": {"field": "ms", "interval": 0}}}),
            "above 0",
        ),
        (
            json!({"x": {"histogram": {"field": "ms", "interval": 0.0001}}}),
            "too many buckets",
        ),
        (minute, "too many buckets"),
        (deep, "deeper"),
    ];
    for (aggs, part) in table {
        let error = try_aggregate(&aggs, &records()).unwrap_err();
        assert!(error.message.contains(part), "{aggs}: {}", error.message);
    }
}

/// The same four records, by aggregations of several fields and by values of few records.
#[test]
fn aggregations_take_several_fields() {
    let table = [
        (
            json!({"multi_terms": {"terms": [{"field": "host"}, {"field": "status"}]}}),
            json!({"doc_count_error_upper_bound": 0, "sum_other_doc_count": 0, "buckets": [
                {"key": ["a", 200], "key_as_string": "a|200", "doc_count": 2},
                {"key": ["a", 404], "key_as_string": "a|404", "doc_count": 1},
                {"key": ["b", 500], "key_as_string": "b|500", "doc_count": 1}]}),
        ),
        (
            json!({"rare_terms": {"field": "status"}}),
            json!({"buckets": [{"key": 404, "doc_count": 1}, {"key": 500, "doc_count": 1}]}),
        ),
        (
            json!({"sampler": {"shard_size": 1}}),
            json!({"doc_count": 4}),
        ),
        (
            json!({"weighted_avg": {"value": {"field": "ms"}, "weight": {"field": "status"}}}),
            json!({"value": (10.0 * 200.0 + 20.0 * 500.0 + 30.5 * 200.0) / 900.0}),
        ),
        (
            json!({"weighted_avg": {"value": {"field": "ms"}, "weight": {"field": "nothing"}}}),
            json!({"value": null}),
        ),
        (
            json!({"median_absolute_deviation": {"field": "ms"}}),
            json!({"value": 10.0}),
        ),
        (
            json!({"boxplot": {"field": "ms"}}),
            json!({"min": 10.0, "max": 30.5, "q1": 15.0, "q2": 20.0, "q3": 25.25, "lower": 10.0, "upper": 30.5}),
        ),
        (
            json!({"boxplot": {"field": "nothing"}}),
            json!({"min": null, "max": null, "q1": null, "q2": null, "q3": null, "lower": null, "upper": null}),
        ),
        (
            json!({"top_metrics": {"metrics": [{"field": "ms"}, {"field": "host"}], "sort": {"@timestamp": "desc"}, "size": 2}}),
            json!({"top": [
                {"sort": ["2026-11-21T10:03:20.000Z"], "metrics": {"ms": null, "host": "a"}},
                {"sort": ["2026-11-21T10:01:05.000Z"], "metrics": {"ms": 30.5, "host": "a"}}]}),
        ),
        (
            json!({"top_metrics": {"metrics": {"field": "host"}, "sort": [{"ms": {"order": "asc"}}]}}),
            json!({"top": [{"sort": [10], "metrics": {"host": "a"}}]}),
        ),
    ];
    for (body, expected) in table {
        let mut found = aggregate(&json!({"x": body}), &records());
        assert_eq!(found["x"].take(), expected, "{body}");
    }
}

/// All pages of a composite aggregation, each with its keys and counts.
fn pages(body: &Json, records: &[Json]) -> Vec<Vec<(Json, u64)>> {
    let mut body = body.clone();
    let mut pages = Vec::new();
    for _ in 0..100 {
        let found = aggregate(&json!({"x": {"composite": body}}), records);
        let buckets = found["x"]["buckets"].as_array().unwrap().iter();
        let page = buckets.map(|b| (b["key"].clone(), b["doc_count"].as_u64().unwrap()));
        let page: Vec<(Json, u64)> = page.collect();
        if page.is_empty() {
            assert_eq!(found["x"]["after_key"], Json::Null);
            return pages;
        }
        assert_eq!(found["x"]["after_key"], page.last().unwrap().0);
        body["after"] = found["x"]["after_key"].clone();
        pages.push(page);
    }
    panic!("the pages have no end: {pages:?}");
}

#[test]
fn composites_give_each_combination_once_in_pages() {
    let by_status = json!({"size": 2, "sources": [
        {"s": {"terms": {"field": "status", "order": "desc"}}},
        {"h": {"terms": {"field": "host"}}}]});
    assert_eq!(
        pages(&by_status, &records()),
        [
            vec![
                (json!({"s": 500, "h": "b"}), 1),
                (json!({"s": 404, "h": "a"}), 1)
            ],
            vec![(json!({"s": 200, "h": "a"}), 2)],
        ]
    );
    let first = 1_795_255_200_000_i64;
    let by_time = json!({"size": 1, "sources": [
        {"t": {"date_histogram": {"field": "@timestamp", "fixed_interval": "2m"}}},
        {"m": {"histogram": {"field": "ms", "interval": 20, "missing_bucket": true, "missing_order": "last"}}}]});
    assert_eq!(
        pages(&by_time, &records()),
        [
            vec![(json!({"t": first, "m": 0.0}), 1)],
            vec![(json!({"t": first, "m": 20.0}), 2)],
            vec![(json!({"t": first + 120_000, "m": null}), 1)],
        ]
    );
    let formatted = json!({"size": 1, "sources": [
        {"t": {"date_histogram": {"field": "@timestamp", "calendar_interval": "1m", "format": "yyyy-MM-dd HH:mm:ss"}}}]});
    let keys: Vec<Json> = pages(&formatted, &records())
        .into_iter()
        .map(|page| page[0].0["t"].clone())
        .collect();
    let expected = ["10:00:00", "10:01:00", "10:03:00"].map(|time| format!("2026-11-21 {time}"));
    assert_eq!(keys, expected);
}

/// Only a page is kept, however many keys there are.
#[test]
fn composites_hold_one_page() {
    let record = |at: i64| json!({"@timestamp": at, "id": format!("{:05}", (at * 7919) % 5000)});
    let many: Vec<Json> = (0..5000).map(record).collect();
    let body =
        json!({"x": {"composite": {"size": 3, "sources": [{"id": {"terms": {"field": "id"}}}]}}});
    let plan = read(Some(&body), &Context { now: NOW }).unwrap();
    let mut part = Part::new(&plan);
    part.add(&plan, &columns(&plan.columns, &many));
    assert_eq!(part.groups(), 3);
    let found = aggregate(&body, &many);
    let ids: Vec<&str> = found["x"]["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| bucket["key"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["00000", "00001", "00002"]);
}

#[test]
fn a_record_with_too_many_combinations_is_refused() {
    let list = |name: &str| -> Json {
        let values = (0..40).map(|at| format!("{name}{at}"));
        Json::from(values.collect::<Vec<String>>())
            .to_string()
            .into()
    };
    let record = json!({"@timestamp": 0, "a": list("a"), "b": list("b")});
    let body = json!({"x": {"multi_terms": {"terms": [{"field": "a"}, {"field": "b"}]}}});
    let error = try_aggregate(&body, &[record]).unwrap_err();
    assert!(
        error.message.contains("1024 combinations"),
        "{}",
        error.message
    );
}

/// With `min_doc_count` 0 a value that another bucket has is listed with no records.
#[test]
fn terms_without_records_are_listed_on_request() {
    let body = json!({"x": {
        "date_histogram": {"field": "@timestamp", "fixed_interval": "1m", "min_doc_count": 1},
        "aggs": {"y": {"terms": {"field": "host", "min_doc_count": 0, "order": {"_key": "desc"}}}}}});
    let found = aggregate(&body, &records());
    let second = &found["x"]["buckets"][1]["y"]["buckets"];
    assert_eq!(
        *second,
        json!([{"key": "b", "doc_count": 0}, {"key": "a", "doc_count": 1}])
    );
}

#[test]
fn rates_are_for_a_length_of_time() {
    let rates = |interval: Json, rate: Json| -> Vec<Json> {
        let mut histogram = json!({"field": "@timestamp", "min_doc_count": 1});
        for (name, value) in interval.as_object().unwrap() {
            histogram[name] = value.clone();
        }
        let body = json!({"x": {"date_histogram": histogram, "aggs": {
            "by": {"terms": {"field": "host", "order": {"_key": "asc"}}, "aggs": {"r": {"rate": rate}}}}}});
        let found = aggregate(&body, &records());
        let buckets = found["x"]["buckets"].as_array().unwrap().iter();
        buckets
            .map(|bucket| bucket["by"]["buckets"][0]["r"]["value"].clone())
            .collect()
    };
    let minutes = json!({"fixed_interval": "2m"});
    assert_eq!(
        rates(minutes.clone(), json!({"unit": "minute"})),
        [json!(1.0), json!(0.5)]
    );
    assert_eq!(
        rates(minutes.clone(), json!({"unit": "second", "field": "ms"})),
        [json!(40.5 / 120.0), json!(0.0)]
    );
    assert_eq!(
        rates(minutes, json!({"field": "ms", "mode": "value_count"})),
        [json!(2.0), json!(0.0)]
    );
    let month = json!({"calendar_interval": "month"});
    assert_eq!(
        rates(month.clone(), json!({"unit": "day"})),
        [json!(3.0 / 30.0)]
    );
    assert_eq!(rates(month, json!({"unit": "year"})), [json!(36.0)]);
}
