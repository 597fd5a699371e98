use super::*;
use crate::scripted::scripted;

#[test]
fn progress_has_rate_and_share() {
    let text = progress_text(12_345, 4_000, 0.456, Duration::from_secs(10));
    assert_eq!(text, "12,345 records · 400 records/s · 46 % of the range");
}

#[test]
fn an_import_is_complete_with_all_that_the_source_counts() {
    let totals = |rejected, counted| Totals {
        read: 5,
        accepted: 5 - rejected,
        rejected,
        counted,
        ..Totals::default()
    };
    assert!(totals(0, Some(5)).is_complete());
    assert!(
        totals(0, Some(4)).is_complete(),
        "records expired meanwhile"
    );
    assert!(totals(0, None).is_complete());
    assert!(!totals(0, Some(6)).is_complete());
    assert!(!totals(1, Some(5)).is_complete());
}

#[test]
fn imports_have_files_of_their_own() {
    assert_ne!(
        state_name("http://a since=1h"),
        state_name("http://a since=2h")
    );
    assert!(state_name("x").ends_with(".json"));
}

fn exchange(address: &Address) -> Exchange {
    let stop = Arc::new(AtomicBool::new(false));
    let patience = Some(Duration::from_secs(60));
    Exchange::new(vec![address.clone()], &Access::default(), patience, stop)
}

/// All records of a source, as the target would get them.
fn read_all<S: Source>(source: &mut S) -> Vec<String> {
    let mut cursor = source.begin().unwrap();
    let mut lines = Vec::new();
    while let Some(page) = source.page(&cursor).unwrap() {
        for body in page.bodies {
            let text = String::from_utf8(body.bytes).unwrap();
            lines.extend(text.lines().map(str::to_owned));
        }
        cursor = page.next;
    }
    lines
}

/// The greeting of OpenSearch 2.
const OPENSEARCH: &str = r#"{"name":"n","cluster_name":"c","cluster_uuid":"u",
    "version":{"distribution":"opensearch","number":"2.19.0","build_type":"tar","lucene_version":"9.12.1",
    "minimum_wire_compatibility_version":"7.10.0","minimum_index_compatibility_version":"7.0.0"},
    "tagline":"The OpenSearch Project: https://opensearch.org/"}"#;

/// A page of a scroll: ids with their times in milliseconds.
fn scroll_page(hits: &[(&str, i64)]) -> String {
    let hit = |(id, time): &(&str, i64)| {
        format!(
            r#"{{"_index":"logs","_id":"{id}","_score":null,"_source":{{"@timestamp":{time}}},"sort":[{time}]}}"#
        )
    };
    let hits: Vec<String> = hits.iter().map(hit).collect();
    format!(
        r#"{{"_scroll_id":"s","took":1,"timed_out":false,"_shards":{{"total":1,"successful":1,"skipped":0,"failed":0}},
        "hits":{{"total":{{"value":4,"relation":"eq"}},"max_score":null,"hits":[{}]}}}}"#,
        hits.join(",")
    )
}

fn elastic_source(address: &Address) -> elastic::Elastic {
    let request = elastic::Request {
        index: "logs".to_owned(),
        query: None,
        time_field: "@timestamp".to_owned(),
        range: PullRange {
            from: Some(Timestamp(0)),
            to: None,
        },
        page_records: 2,
    };
    elastic::Elastic::new(exchange(address), request)
}

#[test]
fn a_scroll_that_breaks_off_begins_anew_at_its_last_time() {
    let (first, second) = (1_795_255_200_000, 1_795_255_200_001);
    let (address, server) = scripted(vec![
        ("GET / ", "200 OK", OPENSEARCH.to_owned()),
        ("POST /logs/_count", "200 OK", r#"{"count":4}"#.to_owned()),
        (
            "POST /logs/_search?scroll=",
            "200 OK",
            scroll_page(&[("a", first), ("b", second)]),
        ),
        (
            "POST /_search/scroll",
            "503 Service Unavailable",
            "{}".to_owned(),
        ),
        (
            "POST /logs/_search?scroll=",
            "200 OK",
            scroll_page(&[("c", second), ("b", second)]),
        ),
        (
            "POST /_search/scroll",
            "200 OK",
            scroll_page(&[("d", second + 1)]),
        ),
        ("POST /_search/scroll", "200 OK", scroll_page(&[])),
        ("DELETE /_search/scroll", "200 OK", "{}".to_owned()),
    ]);
    let lines = read_all(&mut elastic_source(&address));
    let ids: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.split_once(r#""_id":""#))
        .map(|(_, rest)| &rest[..1])
        .collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    let requests = server.join().unwrap();
    assert!(
        requests[4].contains("2026-11-21T10:00:00.001000000Z"),
        "{}",
        requests[4]
    );
    assert!(
        !requests[2].contains("track_total_hits"),
        "scrolls refuse it"
    );
}

#[test]
fn a_source_without_some_shards_is_not_taken_for_complete() {
    let page = scroll_page(&[("a", 1)]).replace("\"failed\":0", "\"failed\":1");
    let (address, server) = scripted(vec![
        ("GET / ", "200 OK", OPENSEARCH.to_owned()),
        ("POST /logs/_count", "200 OK", r#"{"count":4}"#.to_owned()),
        ("POST /logs/_search?scroll=", "200 OK", page),
    ]);
    let mut source = elastic_source(&address);
    let cursor = source.begin().unwrap();
    let error = source.page(&cursor).unwrap_err().to_string();
    assert!(error.contains("without some shards"), "{error}");
    server.join().unwrap();
}

#[test]
fn refusals_have_a_remedy() {
    let missing = r#"{"error":{"root_cause":[{"type":"index_not_found_exception","reason":"no such index [logs]"}],
        "type":"index_not_found_exception","reason":"no such index [logs]"},"status":404}"#;
    let table = [
        (
            "404 Not Found",
            missing,
            "no such index [logs]; see --index",
        ),
        ("401 Unauthorized", "{}", "--source-api-key-file"),
    ];
    for (status, body, wanted) in table {
        let (address, server) = scripted(vec![
            ("GET / ", "200 OK", OPENSEARCH.to_owned()),
            ("POST /logs/_count", status, body.to_owned()),
        ]);
        let error = elastic_source(&address).begin().unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
        server.join().unwrap();
    }
}

fn loki_source(address: &Address, page_records: u64) -> loki::Loki {
    let request = loki::Request {
        query: Some(r#"{app="a"}"#.to_owned()),
        labels: Vec::new(),
        from: 0,
        to: 1_000,
        page_records,
    };
    loki::Loki::new(exchange(address), request)
}

fn streams(times: &[i64]) -> String {
    let entries: Vec<String> = times
        .iter()
        .map(|time| format!(r#"["{time}","line {time}",{{}}]"#))
        .collect();
    format!(
        r#"{{"status":"success","data":{{"resultType":"streams","encodingFlags":["categorize-labels"],
        "result":[{{"stream":{{"app":"a"}},"values":[{}]}}],"stats":{{}}}}}}"#,
        entries.join(",")
    )
}

#[test]
fn pages_of_loki_end_before_their_last_time_and_shrink_as_it_asks() {
    let path = "GET /loki/api/v1/query_range?";
    let refusal =
        "max entries limit per query exceeded, limit > max_entries_limit_per_query (64 > 16)";
    let all: Vec<i64> = (0..20).map(|n| n / 2).collect();
    let (address, server) = scripted(vec![
        (
            path,
            "429 Too Many Requests\r\nretry-after: 0",
            "too many outstanding requests".to_owned(),
        ),
        (path, "400 Bad Request", refusal.to_owned()),
        (path, "400 Bad Request", refusal.to_owned()),
        (path, "200 OK", streams(&all[..16])),
        (path, "200 OK", streams(&all[14..])),
    ]);
    let lines = read_all(&mut loki_source(&address, 64));
    let count = lines.join("").matches("line ").count();
    assert_eq!(count, 20, "{lines:?}");
    let requests = server.join().unwrap();
    assert!(
        requests[3].contains("limit=16&direction=forward"),
        "{}",
        requests[3]
    );
    assert!(requests[4].contains("start=7&end=1000"), "{}", requests[4]);
    assert!(requests[4].contains("x-loki-response-encoding-flags: categorize-labels"));
}
