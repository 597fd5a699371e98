//! What LogQL counts of columns is what it counts of records, and of lines.

use super::*;
use crate::logql::{Query, filter_of_matchers, parse};
use crate::metric::{Answer, Leaf, Plan, RangeTable, Times};
use crate::pipeline::add_base_labels;

const QUERIES: &[&str] = &[
    "sum(count_over_time({}[5m]))",
    "sum(rate({} |= \"refused\" [5m]))",
    "sum by (level, detected_level) (count_over_time({} | drop __error__ [5m]))",
    "sum by (ms, user, ok, pid) (count_over_time({}[10m]))",
    "sum by (web_host) (count_over_time({}[5m]))",
    "sum by (status, hostname) (count_over_time({status=~\".+\"}[2m]))",
    "sum by (detected_level, service_name) (count_over_time({}[2m]))",
    "count_over_time({web_host=\"w1\"}[5m])",
    "sum without (web_host) (bytes_over_time({}[5m]))",
    "max by (user) (max_over_time({} | json | unwrap ms [5m]))",
    "sum by (level) (count_over_time({} != \"refused\" !~ \"[0-9]{4}\" |= \"e\" [5m]))",
    "sum by (status) (count_over_time({} | status >= 300 [5m]))",
    "sum by (web_host) (count_over_time({} | status < 404 or user=\"\" [5m]))",
    "sum(count_over_time({} | status != 200 | status == 404 or status > 499 [5m]))",
    "sum by (__error__) (count_over_time({} | user > 5 [5m]))",
    "sum by (user) (count_over_time({} | status > 200 | __error__=\"\" [5m]))",
    "sum(count_over_time({} | detected_level=\"error\" | service_name!=\"x\" [5m]))",
    "sum by (web_host) (sum_over_time({} | unwrap ms [5m]))",
    "sum by (web_host) (sum_over_time({} | status < 300 | unwrap ms [5m]))",
    "quantile_over_time(0.9, {} | unwrap ms | __error__=\"\" [5m]) by (status)",
    "first_over_time({} | unwrap status [5m]) by (user)",
    "avg_over_time({} | unwrap pid | __error__=\"\" [5m]) by (hostname)",
    "sum(rate({} | unwrap bytes(ms) [5m]))",
    "max by (ms) (max_over_time({} | unwrap ms [5m]))",
    "sum by (status) (count_over_time({} | json | status >= 300 [5m]))",
    "sum by (status) (count_over_time({} | json | status = \"OK\" [5m]))",
    "sum by (status, __error__) (count_over_time({} | json | status != 250 or user = \"u3\" [5m]))",
    "sum by (user) (count_over_time({} | json | user = \"u3\" and status != \"\" [5m]))",
    "count_over_time({}[5m])",
    "rate({hostname=~\".+\"} | status >= 250 [5m])",
    "sum without (web_host, detected_level) (count_over_time({}[5m]))",
    "sum_over_time({} | unwrap ms [5m])",
    "count by (service_name) (count_over_time({} | user != \"\" [5m]))",
    "max_over_time({} | drop web_host | unwrap status | __error__=\"\" [5m])",
    "sum by (status, user, level) (count_over_time({} | json [5m]))",
    "sum by (msg) (count_over_time({} | json | __error__=\"\" [5m]))",
    "sum by (web_host, hostname) (avg_over_time({} | json | status >= 200 | unwrap ms [5m]))",
    "sum by (status) (count_over_time({status=~\".+\"} | json | status_extracted > 250 [5m]))",
    "sum by (status) (max_over_time({status=~\".+\"} | json | user = \"\" | unwrap ms [5m]))",
    "sum by (web_host) (count_over_time({} | json | detected_level = \"unknown\" [5m]))",
    "sum(sum_over_time({ms!=\"\"} | unwrap ms [5m]))",
    "sum by (user, ok) (sum_over_time({ms!=\"\"} | unwrap ms [5m]))",
    "avg_over_time({status=~\".+\"} | unwrap status [5m]) by (hostname)",
    "quantile_over_time(0.9, {pid=~\".*\"} | unwrap pid [5m]) by ()",
    "first_over_time({ms!=\"\"} | unwrap ms [2m]) by (detected_level)",
    "max_over_time({user!=\"\"} | unwrap user [5m]) by (user)",
    "sum by (user) (sum_over_time({ms!=\"\"} | unwrap ms | user!=\"u1\" [5m]))",
    "sum by (ok) (count_over_time({} | logfmt | k > 100 | ok = \"true\" [5m]))",
    "sum by (hostname) (sum_over_time({} | json | status = 250 or status > 300 | unwrap ms [5m]))",
    "absent_over_time({web_host=\"w9\"}[5m])",
    "sum by (__error__, status) (count_over_time({} | json [5m]))",
    "sum by (referer_host) (count_over_time({} | json [5m]))",
    "sum by (referer_host) (count_over_time({referer_host=~\".*\"} | json [5m]))",
    "sum by (referer_host) (count_over_time({}[5m]))",
    "sum by (hostname) (count_over_time({} | json | __error__=\"JSONParserErr\" [5m]))",
    "sum by (hostname) (count_over_time({} | json | __error_details__!=\"\" [5m]))",
    "sum by (__error__) (sum_over_time({} | json | unwrap ms [5m]))",
    "sum by (web_host) (count_over_time({} | json | drop __error__ | web_host!=\"\" [5m]))",
    "sum by (detected_level) (count_over_time({} | json | logfmt | drop __error__, __error_details__ [5m]))",
    "sum by (service_name, detected_level) (count_over_time({} | json |= \"e\" | drop __error__ | detected_level!=\"info\" [5m]))",
    "sum by (detected_level) (count_over_time({} | json | logfmt | drop __error_details__ [5m]))",
    "sum by (detected_level) (count_over_time({} | json | __error__=\"\" | drop __error__ [5m]))",
    "sum by (detected_level) (count_over_time({} | json | detected_level_extracted!=\"x\" | drop __error__ [5m]))",
    "sum by (user, msg) (count_over_time({} | json | logfmt | drop __error__, __error_details__ | status!=\"\" [5m]))",
    "sum by (x) (count_over_time({} | json | label_format x=status | x > 200 [5m]))",
    "sum by (status_extracted) (count_over_time({status=~\".+\"} | json | logfmt [5m]))",
    "sum by (word) (count_over_time({} | regexp \"(?P<word>[a-z]+)\" [5m]))",
    "sum by (__error__) (count_over_time({} | json | logfmt [5m]))",
    "avg by (user) (avg_over_time({} | json | logfmt | drop __error__ | unwrap ms | __error__=\"\" [5m]))",
];

/// Conditions and groups of labels that may have no text.
const OF_EMPTY_TEXTS: &[&str] = &[
    "sum(count_over_time({} | json | status == 200 [5m]))",
    "sum(count_over_time({} | json | status != 200 [5m]))",
    "sum(count_over_time({} | status > 1s [5m]))",
    "sum by (status, __error__) (count_over_time({} | json | user > 5 [5m]))",
    "max by (status) (max_over_time({} | json | unwrap status [5m]))",
    "sum by (status) (count_over_time({} | json | status = \"\" [5m]))",
    "sum by (web_host) (count_over_time({} | json | web_host = \"w1\" [5m]))",
    "sum by (web_host) (count_over_time({web_host=\"\"} | json [5m]))",
    "sum by (web_host) (count_over_time({} | web_host > 0 [5m]))",
    "sum without (status) (count_over_time({}[5m]))",
];

/// Texts of lines and labels are empty in some records.
fn with_empty_texts(mut records: Vec<Record<'static>>) -> Vec<Record<'static>> {
    for (n, record) in records.iter_mut().enumerate() {
        if n % 7 == 2 && n % 5 == 0 {
            record.values[n / 7 % 2] = Value::Str("".into());
        }
        let labels = record.labels.iter_mut();
        let labels = labels.filter(|(name, _)| n % 5 == 0 && *name == "web_host");
        labels.for_each(|(_, value)| *value = Value::Str("".into()));
    }
    records
}

#[test]
fn numbers_are_those_of_records() {
    check_numbers(&samples(3000), QUERIES);
    let records = with_empty_texts(samples(3000));
    check_numbers(&records, QUERIES);
    check_numbers(&records, OF_EMPTY_TEXTS);
}

fn check_numbers(records: &[Record<'static>], queries: &[&str]) {
    let segment = segment_of(records);
    let at = |seconds: i64| Timestamp(START_NS + seconds * 1_000_000_000);
    let times = Times::range(at(100), at(1500), 130_000_000_000).unwrap();
    let kept = ColumnCache::new(KEPT_BYTES);
    for query in queries {
        let Query::Metric(metric) = parse(query).unwrap() else {
            panic!("{query} asks for lines");
        };
        let plan = Plan::range(metric, times, 0).unwrap();
        let leaf = &plan.leaves()[0];
        let answer = |table: RangeTable| {
            let errors: Vec<_> = table.errors().filter(|(_, lines)| *lines > 0).collect();
            (plan.evaluate(vec![table], || true).unwrap(), errors)
        };
        let expected = answer(by_line(leaf, records));
        assert_eq!(expected, answer(by_record(leaf, records)), "{query}");
        assert_eq!(
            expected,
            answer(by_column(leaf, &segment, &kept)),
            "{query}"
        );
        let (Answer::Matrix(series), errors) = expected else {
            panic!("a range has a matrix");
        };
        assert!(!series.is_empty() || !errors.is_empty(), "{query}");
    }
}

/// Blocks that lie in one piece of time, which the values of one label are counted in.
#[test]
fn counts_of_one_label_are_those_of_records() {
    let records = samples(3000);
    let segment = segment_of(&records);
    let at = Timestamp(START_NS + 3_000_000_000_000);
    let names = [
        "web_host",
        "hostname",
        "user",
        "status",
        "ms",
        "ok",
        "pid",
        "level",
        "msg",
        "rare",
        "none",
        "detected_level",
        "service_name",
    ];
    let filters = ["", "| status >= 300", "|= \"refused\""];
    let kept = ColumnCache::new(KEPT_BYTES);
    for (name, filter) in names.iter().flat_map(|name| filters.map(|f| (name, f))) {
        let query = format!("sum by ({name}) (count_over_time({{}} {filter} [1h]))");
        let Query::Metric(metric) = parse(&query).unwrap() else {
            panic!("{query} asks for lines");
        };
        let plan = Plan::instant(metric, at, 0).unwrap();
        let leaf = &plan.leaves()[0];
        let answer = |table: RangeTable| plan.evaluate(vec![table], || true).unwrap();
        let expected = answer(by_line(leaf, &records));
        assert_eq!(
            expected,
            answer(by_column(leaf, &segment, &kept)),
            "{query}"
        );
        let Answer::Vector(series) = expected else {
            panic!("an instant has a vector");
        };
        assert!(!series.is_empty(), "{query}");
    }
}

/// What records add to a table of some times is what they add to one of other times with the same question,
/// whatever else is in it.
#[test]
fn what_was_kept_is_right_at_other_times() {
    const S: i64 = 1_000_000_000;
    let mut records = samples(600);
    records.sort_by_key(|record| record.time);
    let (mut asked, mut shifted) = (0, 0);
    for (query, shift) in QUERIES
        .iter()
        .flat_map(|q| [0, 130, 260, 31].map(|s| (q, s)))
    {
        let Query::Metric(metric) = parse(query).unwrap() else {
            panic!("{query} asks for lines");
        };
        let plan_at = |start: i64| {
            let times = Times {
                start_ns: START_NS + start * S,
                step_ns: 130 * S,
                count: 60,
            };
            Plan::range(metric.clone(), times, 0).unwrap()
        };
        let (earlier, later) = (plan_at(-2600), plan_at(shift - 2600));
        let answer = |table: RangeTable| later.evaluate(vec![table], || true).unwrap();
        let (earlier, later) = (&earlier.leaves()[0], &later.leaves()[0]);
        for (from, to) in [(0, 600), (100, 130), (599, 600), (37, 420)] {
            let (first, last) = (records[from].time, records[to - 1].time);
            let empty = RangeTable::new(Arc::clone(later));
            let question = RangeTable::new(Arc::clone(earlier)).question(first, last);
            if question.is_none() || question != empty.question(first, last) {
                continue;
            }
            asked += 1;
            shifted += u64::from(shift > 0);
            let kept = by_record(earlier, &records[from..to]).keep(first).unwrap();
            let others = [&records[..from], &records[to..]].concat();
            let mut behind = by_record(later, &others);
            behind.add_kept(&kept);
            let mut before = empty;
            before.add_kept(&kept);
            before.merge(by_record(later, &others));
            let expected = answer(by_record(later, &records));
            assert_eq!(expected, answer(behind), "{query} {shift} {from}..{to}");
            assert_eq!(expected, answer(before), "{query} {shift} {from}..{to}");
        }
    }
    assert!(asked > 200 && shifted > 100, "{asked} {shifted}");
}

/// All stages for each line, with nothing left to the filter but the selector.
pub(super) fn by_line(leaf: &Arc<Leaf>, records: &[Record<'_>]) -> RangeTable {
    let log = &leaf.spec().aggregation.log;
    let selector = Matcher::new(&filter_of_matchers(&log.matchers)).unwrap();
    let plain = Leaf::plain(leaf.spec().clone()).unwrap();
    let mut table = RangeTable::new(Arc::new(plain));
    let mut scratch = Scratch::new();
    for record in records
        .iter()
        .filter(|record| selector.matches(record, &mut scratch))
    {
        let mut line = Vec::new();
        record.write_line(&mut line);
        table.add_line(record.time.0, &line, |labels| {
            add_base_labels(record, leaf.named(), labels);
        });
    }
    table
}

pub(super) fn by_record(leaf: &Arc<Leaf>, records: &[Record<'_>]) -> RangeTable {
    let matcher = Matcher::new(leaf.filter()).unwrap();
    let mut scratch = Scratch::new();
    let mut table = RangeTable::new(Arc::clone(leaf));
    for record in records {
        if leaf.range().contains(record.time) && matcher.matches(record, &mut scratch) {
            table.add(record);
        }
    }
    table
}

/// By the columns of a segment, of which every other row group was kept of a table of earlier times.
pub(super) fn by_column(leaf: &Arc<Leaf>, segment: &SegmentFile, kept: &ColumnCache) -> RangeTable {
    let directory = segment.read_directory().unwrap();
    let evaluator = Evaluator::new(leaf.filter(), leaf.range()).unwrap();
    let shared = SegmentScan::new(segment, &directory, &evaluator, &SourceSet::new());
    let shared = shared.keeping(kept);
    let mut table = RangeTable::new(Arc::clone(leaf));
    for group in 0..directory.row_groups.len() {
        let mut scan = GroupScan::new(&shared, group);
        let mut alone = RangeTable::new(Arc::clone(leaf));
        scan.for_each_block(|scan, selected| alone.add_block(scan, &selected).map(|()| true))
            .unwrap();
        let (from, to) = directory.row_groups[group].time_bounds();
        match table.question(Timestamp(from), Timestamp(to)) {
            Some(_) => table.add_kept(&alone.keep(Timestamp(from)).unwrap()),
            None => {
                alone.end_group();
                table.merge(alone);
            }
        }
    }
    table
}
