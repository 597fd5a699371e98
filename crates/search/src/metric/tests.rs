//! Lines in, numbers out.

use proptest::prelude::*;

use super::*;
use crate::logql::{Metric, Query, parse};
use crate::pipeline::Origin;
use logpond_record::Timestamp;
use logpond_segment::wire::{Decoder, Encoder};

const S: i64 = 1_000_000_000;

fn metric(text: &str) -> Metric {
    match parse(text).unwrap_or_else(|error| panic!("{text}: {error}")) {
        Query::Metric(metric) => metric,
        Query::Log(_) => panic!("{text} asks for lines"),
    }
}

/// Lines of two applications, one each ten seconds.
fn lines() -> Vec<(i64, &'static str, String)> {
    let mut lines = Vec::new();
    for i in 0..31i64 {
        lines.push((i * 10 * S, "a", format!("n={} m=x{}", i % 5, i % 2)));
        if i % 3 == 0 {
            lines.push((i * 10 * S + 1, "b", format!("n={i}")));
        }
    }
    lines
}

fn fill(plan: &Plan, lines: &[(i64, &'static str, String)], parts: usize) -> Vec<RangeTable> {
    let fill_one = |leaf: &std::sync::Arc<Leaf>| {
        let mut whole = RangeTable::new(std::sync::Arc::clone(leaf));
        for part in 0..parts {
            let mut table = RangeTable::new(std::sync::Arc::clone(leaf));
            for (time, app, line) in lines.iter().skip(part).step_by(parts) {
                table.add_line(*time, line.as_bytes(), |labels| {
                    labels.add_base(Origin::Stream, "app", app);
                });
            }
            let mut sent = Encoder::new(1);
            table.encode(&mut sent);
            let sent = sent.finish();
            match part % 2 {
                0 => whole.merge(table),
                _ => whole
                    .merge_encoded(&mut Decoder::new(&sent, 1).unwrap())
                    .unwrap(),
            }
        }
        whole
    };
    plan.leaves().iter().map(fill_one).collect()
}

fn answer(text: &str, at: i64) -> String {
    let plan = Plan::instant(metric(text), Timestamp(at * S), 0).unwrap();
    let tables = fill(&plan, &lines(), 2);
    let shown = |samples: Vec<Sample>| {
        let samples = samples.iter().map(|s| format!("{}={}", s.labels, s.value));
        samples.collect::<Vec<_>>().join(" ")
    };
    match plan.evaluate(tables, || true) {
        Ok(Answer::Scalar(number)) => number.to_string(),
        Ok(Answer::Vector(samples)) => shown(samples),
        Ok(Answer::Matrix(_)) => panic!("an instant has no matrix"),
        Err(error) => format!("error: {error}"),
    }
}

const INSTANTS: &[(&str, &str)] = &[
    ("1 + 2 * 3", "7"),
    ("1 / 0", "NaN"),
    ("5 % 0 + 1", "NaN"),
    ("2 ^ 3 ^ 2", "512"),
    ("10 - 3 - 2", "5"),
    ("1 > 2", "0"),
    ("vector(1) + vector(1)", "{}=2"),
    ("count_over_time({}[1m])", r#"{app="a"}=6 {app="b"}=2"#),
    // A stage's label without text is shown, and tells no series apart.
    (
        r#"count_over_time({} | label_format x=""[1m])"#,
        r#"{app="a", x=""}=6 {app="b", x=""}=2"#,
    ),
    (
        r#"sum without (y) (count_over_time({} | label_format x=""[1m]))"#,
        r#"{app="a"}=6 {app="b"}=2"#,
    ),
    (
        r#"sum by (app, x) (count_over_time({} | label_format x=""[1m]))"#,
        r#"{app="a"}=6 {app="b"}=2"#,
    ),
    (
        r#"max_over_time({} | label_format n="1", x="" | unwrap n [1m]) by (app, x)"#,
        r#"{app="a"}=1 {app="b"}=1"#,
    ),
    (
        r#"count without (y) (count_over_time({} | label_format x=""[1m]))"#,
        r#"{app="a"}=1 {app="b"}=1"#,
    ),
    (
        r#"sum by (app) (count_over_time({}[1m])) / sum by (app, x) (count_over_time({} | logfmt x="no"[1m]))"#,
        r#"{app="a"}=1 {app="b"}=1"#,
    ),
    (
        r#"sum(count_over_time({}[1m])) + on (x) sum by (x) (count_over_time({} | logfmt x="no"[1m]))"#,
        "{}=16",
    ),
    ("sum(count_over_time({}[1m]))", "{}=8"),
    (
        "sum by (app) (rate({}[1m]))",
        r#"{app="a"}=0.1 {app="b"}=0.03333333333333333"#,
    ),
    (
        r#"count_over_time({}[1m] offset 1m)"#,
        r#"{app="a"}=6 {app="b"}=2"#,
    ),
    (r#"count_over_time({}[1m] offset -10m)"#, ""),
    (r#"count_over_time({} |= "n=1" [1m])"#, r#"{app="a"}=1"#),
    ("bytes_over_time({}[20s])", r#"{app="a"}=16"#),
    // Nobody reads the line, so that its template does not fail.
    (
        r#"count_over_time({} | line_format `{{ .none | bytes }}` [1m])"#,
        r#"{app="a"}=6 {app="b"}=2"#,
    ),
    (
        r#"count_over_time({} | line_format "x=1" | line_format `{{ __line__ }}` | logfmt [1m])"#,
        r#"{app="a", x="1"}=6 {app="b", x="1"}=2"#,
    ),
    (
        r#"bytes_over_time({} | line_format "1234" [20s])"#,
        r#"{app="a"}=8"#,
    ),
    (
        "sum by (app) (sum_over_time({} | logfmt | unwrap n [1m]))",
        r#"{app="a"}=10 {app="b"}=51"#,
    ),
    (
        "avg_over_time({} | logfmt | unwrap n [1m]) by (app)",
        r#"{app="a"}=1.6666666666666667 {app="b"}=25.5"#,
    ),
    ("max(max_over_time({} | logfmt | unwrap n [1m]))", "{}=27"),
    (
        "min by (app) (min_over_time({} | logfmt | unwrap n [1m]))",
        r#"{app="a"}=0 {app="b"}=24"#,
    ),
    (
        "first_over_time({} | logfmt | unwrap n [1m]) by (app)",
        r#"{app="a"}=0 {app="b"}=24"#,
    ),
    (
        "last_over_time({} | logfmt | unwrap n [1m]) by (app)",
        r#"{app="a"}=0 {app="b"}=27"#,
    ),
    (
        "quantile_over_time(0.5, {} | logfmt | unwrap n [1m]) by (app)",
        r#"{app="a"}=1.5 {app="b"}=25.5"#,
    ),
    (
        "stdvar_over_time({} | logfmt | unwrap n [1m]) by (app)",
        r#"{app="a"}=2.2222222222222223 {app="b"}=2.25"#,
    ),
    (
        "stddev_over_time({} | logfmt | unwrap n [1m]) by (app) > 1.49",
        r#"{app="a"}=1.4907119849998598 {app="b"}=1.5"#,
    ),
    (
        r#"rate_counter({} | logfmt | app="b" | unwrap n [2m]) > bool 0.0999"#,
        r#"{app="b"}=1"#,
    ),
    (r#"absent_over_time({app="z", x=~"y"}[1m])"#, ""),
    (
        r#"absent_over_time({app="z", x=~"y"} |= "nothing" [1m])"#,
        r#"{app="z"}=1"#,
    ),
    ("topk(1, count_over_time({}[1m]))", r#"{app="a"}=6"#),
    ("bottomk(1, count_over_time({}[1m]))", r#"{app="b"}=2"#),
    (
        "sort(count_over_time({}[1m]))",
        r#"{app="b"}=2 {app="a"}=6"#,
    ),
    (
        "sort_desc(count_over_time({}[1m]))",
        r#"{app="a"}=6 {app="b"}=2"#,
    ),
    ("avg(count_over_time({}[1m]))", "{}=4"),
    (
        "stddev(count_over_time({}[1m])) + stdvar(count_over_time({}[1m]))",
        "{}=6",
    ),
    ("count without (app) (count_over_time({}[1m]))", "{}=2"),
    ("count(count by (app) (count_over_time({}[1m])))", "{}=2"),
    (
        "count by (app) (max by (app, n) (rate({} | logfmt [1m]))) * 1",
        r#"{app="a"}=5 {app="b"}=2"#,
    ),
    (
        "count(avg by (app) (avg_over_time({} | logfmt | unwrap n [1m])))",
        "{}=2",
    ),
    ("count(topk(1, count_over_time({}[1m])))", "{}=1"),
    ("count_over_time({}[1m]) > 3", r#"{app="a"}=6"#),
    ("3 < count_over_time({}[1m])", r#"{app="a"}=6"#),
    (
        "count_over_time({}[1m]) > bool 3",
        r#"{app="a"}=1 {app="b"}=0"#,
    ),
    (
        r#"count_over_time({} |= "n=1" [1m]) or count_over_time({}[1m])"#,
        r#"{app="a"}=1 {app="b"}=2"#,
    ),
    (
        r#"count_over_time({}[1m]) and count_over_time({} |= "n=1" [1m])"#,
        r#"{app="a"}=6"#,
    ),
    (
        r#"count_over_time({}[1m]) unless count_over_time({} |= "n=1" [1m])"#,
        r#"{app="b"}=2"#,
    ),
    (
        "count_over_time({}[1m]) / on () group_left sum(count_over_time({}[1m]))",
        r#"{app="a"}=0.75 {app="b"}=0.25"#,
    ),
    (
        "sum(count_over_time({}[1m])) - on () group_right count_over_time({}[1m])",
        r#"{app="a"}=2 {app="b"}=6"#,
    ),
    (
        "count_over_time({}[1m]) + ignoring (app) sum(count_over_time({}[1m]))",
        "error: multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)",
    ),
    (
        "sum(count_over_time({}[1m])) + ignoring (app) count_over_time({}[1m])",
        "error: found duplicate series on the right hand-side; many-to-many matching not allowed: matching labels must be unique on one side",
    ),
    (
        r#"label_replace(count_over_time({}[1m]), "x", "<$1>", "app", "(a)")"#,
        r#"{app="a", x="<a>"}=6 {app="b"}=2"#,
    ),
    (
        r#"sum by (__error__) (count_over_time({} | json [1m]))"#,
        r#"{__error__="JSONParserErr"}=8"#,
    ),
    (r#"sum(sum_over_time({} | logfmt | unwrap m [1m]))"#, ""),
];

/// A column without a dictionary has the text of each of its rows.
#[test]
fn counts_of_equal_texts_are_of_one_series() {
    let text = "sum by (app) (count_over_time({}[1m]))";
    let plan = Plan::instant(metric(text), Timestamp(60 * S), 0).unwrap();
    let mut table = RangeTable::new(std::sync::Arc::clone(&plan.leaves()[0]));
    let mut keys = Vec::new();
    for app in ["a", "b", "a", "a"] {
        let mut key = Vec::new();
        series::SeriesLabels::write_key([("app", app)].into_iter(), &mut key);
        keys.push(key);
    }
    let tagged: Vec<_> = keys
        .iter()
        .map(|key| (series_map::Tag::of(key), &**key))
        .collect();
    for _ in 0..2 {
        table.add_counts_of(&tagged, 0, &[1, 2, 3, 4]);
    }
    let Ok(Answer::Vector(samples)) = plan.evaluate(vec![table], || true) else {
        panic!("no vector");
    };
    let samples = samples.iter().map(|s| format!("{}={}", s.labels, s.value));
    assert_eq!(
        samples.collect::<Vec<_>>(),
        [r#"{app="a"}=16"#, r#"{app="b"}=4"#]
    );
}

#[test]
fn instants_are_answered() {
    for (text, expected) in INSTANTS {
        assert_eq!(answer(text, 300), *expected, "{text}");
    }
}

/// Where groups are only counted, lines of a group need no series each.
#[test]
fn counted_groups_are_put_together_at_once() {
    let grouping = |text: &str| {
        let plan = Plan::instant(metric(text), Timestamp(0), 0).unwrap();
        let spec = plan.leaves()[0].spec().clone();
        spec.reduce.map(|grouping| grouping.labels.join(" "))
    };
    let table = [
        ("count(count by (x) (rate({}[1m])))", Some("x")),
        (
            "count by (y) (min by (x, y) (bytes_over_time({}[1m]))) > 1",
            Some("x y"),
        ),
        ("sum(count by (x) (rate({}[1m])))", None),
        (
            "count(count by (x) (rate_counter({} | unwrap n [1m])))",
            None,
        ),
    ];
    for (text, expected) in table {
        assert_eq!(grouping(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn lines_with_errors_are_counted() {
    let plan = Plan::instant(
        metric("sum(sum_over_time({} | logfmt | unwrap m [1m]))"),
        Timestamp(300 * S),
        0,
    );
    let plan = plan.unwrap();
    let tables = fill(&plan, &lines(), 1);
    let errors: Vec<_> = tables[0].errors().collect();
    assert_eq!(errors, [("SampleExtractionErr", 6)]);
}

#[test]
fn ranges_are_answered() {
    let times = Times::range(Timestamp(0), Timestamp(60 * S), 30 * S).unwrap();
    let plan = Plan::range(metric("sum(count_over_time({}[20s]))"), times, 0).unwrap();
    let Ok(Answer::Matrix(series)) = plan.evaluate(fill(&plan, &lines(), 3), || true) else {
        panic!("no matrix");
    };
    let points: Vec<_> = series[0]
        .points
        .iter()
        .map(|(t, v)| (t.0 / S, *v))
        .collect();
    assert_eq!(points, [(0, 1.0), (30, 2.0), (60, 2.0)]);
    let scalar = Plan::range(metric("1 + 1"), times, 0).unwrap();
    let Ok(Answer::Matrix(series)) = scalar.evaluate(Vec::new(), || true) else {
        panic!("no matrix");
    };
    assert_eq!((series.len(), series[0].points.len()), (1, 3));
    let approx = Plan::range(metric("approx_topk(1, rate({}[1m]))"), times, 0);
    assert_eq!(approx.err(), Some(EvaluationError::ApproxRange));
}

#[test]
fn an_answer_that_nobody_wants_is_not_made() {
    let times = Times::range(Timestamp(0), Timestamp(60 * S), 10 * S).unwrap();
    let plan = Plan::range(metric("count_over_time({}[20s])"), times, 0).unwrap();
    let mut asked = 0;
    let answer = plan.evaluate(fill(&plan, &lines(), 1), || {
        asked += 1;
        asked < 3
    });
    assert_eq!((answer.err(), asked), (Some(EvaluationError::Unwanted), 3));
}

#[test]
fn memory_is_bounded_and_told() {
    let plan = Plan::instant(metric("count_over_time({} | logfmt [1m])"), Timestamp(S), 0);
    let plan = plan.unwrap();
    let mut table = RangeTable::new(std::sync::Arc::clone(&plan.leaves()[0]));
    let long = "x".repeat(1 << 20);
    for i in 0..300 {
        table.add_line(S, format!("k={long}{i}").as_bytes(), |_| {});
    }
    assert!(table.is_full());
    let error = plan.evaluate(vec![table], || true).unwrap_err();
    assert!(error.to_string().contains("256 MiB"));
}

proptest! {
    #[test]
    fn parts_give_the_same_as_the_whole(
        numbers in proptest::collection::vec((0i64..120, -1e9f64..1e9), 1..60),
        parts in 1usize..6,
        function in 0usize..9,
        step in 1i64..40,
    ) {
        let functions = [
            "sum_over_time(X)", "avg_over_time(X)", "min_over_time(X)", "max_over_time(X)",
            "stdvar_over_time(X)", "quantile_over_time(0.9, X)", "first_over_time(X)",
            "last_over_time(X)", "rate_counter(X)",
        ];
        let text = functions[function].replace('X', "{} | logfmt | unwrap n [30s]");
        let times = Times::range(Timestamp(0), Timestamp(120 * S), step * S).unwrap();
        let plan = Plan::range(metric(&text), times, 0).unwrap();
        let lines: Vec<_> = numbers.iter().map(|(t, n)| (*t * S, "a", format!("n={n}"))).collect();
        let whole = plan.evaluate(fill(&plan, &lines, 1), || true).unwrap();
        let merged = plan.evaluate(fill(&plan, &lines, parts), || true).unwrap();
        prop_assert_eq!(whole, merged);
    }
}
