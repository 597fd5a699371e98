//! Runs Loki's declarative tests of LogQL (`*.logqltest`) from a directory given as argument, and says
//! how many pass. `cargo xtask logqltest DIR` starts it.
//!
//! The files say which lines there are, what is asked, and what the answer is. They are read as data;
//! differences that are on purpose are in [`DIFFERENCES`], with their reasons.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a tool casts numbers that it knows"
)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use logpond_record::Timestamp;
use logpond_search::logql::{self, Metric, Query, duration_ns};
use logpond_search::metric::{Answer, Plan, RangeTable, SeriesLabels, Times};
use logpond_search::pipeline::{Labels, Origin};

/// What differs on purpose.
const DIFFERENCES: [&str; 2] = [
    "a line that a stage could not read is counted with __error__ and a warning; the query goes on",
    "durations in labels may have days, weeks and years, as those of queries have",
];

/// Numbers that differ by less than this part of themselves are the same.
const TOLERANCE: f64 = 1e-9;

struct Line {
    labels: BTreeMap<String, String>,
    metadata: BTreeMap<String, String>,
    time_ns: i64,
    text: String,
}

struct Eval {
    at: String,
    times: Option<Times>,
    instant_ns: i64,
    query: String,
    expected: Vec<String>,
}

#[derive(Default)]
struct Tally {
    passed: usize,
    differing: usize,
    failed: usize,
}

fn main() -> ExitCode {
    let Some(directory) = std::env::args().nth(1) else {
        eprintln!("usage: logqltest DIRECTORY");
        return ExitCode::FAILURE;
    };
    let entries = match std::fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) => {
            eprintln!("{directory}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "logqltest"));
    paths.sort();
    let mut all = Tally::default();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let tally = run_file(&path.display().to_string(), &text);
        println!(
            "{}: {} passed, {} differ on purpose, {} failed",
            path.file_name().unwrap_or_default().to_string_lossy(),
            tally.passed,
            tally.differing,
            tally.failed
        );
        all.passed += tally.passed;
        all.differing += tally.differing;
        all.failed += tally.failed;
    }
    println!(
        "all: {} passed, {} differ on purpose, {} failed",
        all.passed, all.differing, all.failed
    );
    for reason in DIFFERENCES {
        println!("on purpose: {reason}");
    }
    if all.failed == 0 && all.passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run_file(name: &str, text: &str) -> Tally {
    let mut tally = Tally::default();
    let mut lines: Vec<Line> = Vec::new();
    let mut source = text.lines().enumerate().peekable();
    while let Some((number, raw)) = source.next() {
        let line = without_comment(raw);
        let mut block = Vec::new();
        let mut take_block = || {
            while let Some((_, next)) = source.peek() {
                let is_inside = next.starts_with([' ', '\t']) && !next.trim().is_empty();
                let is_comment = next.trim_start().starts_with('#');
                if !is_inside && !is_comment {
                    break;
                }
                let next = without_comment(next).trim().to_owned();
                if !next.is_empty() {
                    block.push(next);
                }
                source.next();
            }
        };
        if line.trim() == "clear" {
            lines.clear();
        } else if line.trim() == "load" {
            take_block();
            for entry in &block {
                match load(entry) {
                    Some(more) => lines.extend(more),
                    None => println!("{name}:{}: cannot load {entry}", number + 1),
                }
            }
        } else if let Some(rest) = line.strip_prefix("eval ") {
            take_block();
            let Some(eval) = eval(rest, block, format!("{name}:{}", number + 1)) else {
                println!("{name}:{}: cannot read {line}", number + 1);
                tally.failed += 1;
                continue;
            };
            check(&eval, &lines, &mut tally);
        }
    }
    tally
}

/// A line without what stands behind a `#` outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '"' | '`') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '#') => return line[..at].trim_end(),
            _ => {}
        }
    }
    line.trim_end()
}

/// `{app="a"} "line" @ 0s [repeat every 10s for 3] [metadata a="b"]`
fn load(entry: &str) -> Option<Vec<Line>> {
    let close = entry.find('}')?;
    let matchers = logql::parse_matchers(&entry[..=close]).ok()?;
    let labels: BTreeMap<String, String> = matchers
        .iter()
        // A label without a value is none.
        .filter(|matcher| !matcher.value.is_empty())
        .map(|matcher| (matcher.name.to_string(), matcher.value.to_string()))
        .collect();
    let rest = entry[close + 1..].trim_start();
    let quote = rest.chars().next()?;
    let end = match quote {
        '`' => 1 + rest[1..].find('`')?,
        // Neither form has escapes: the last quote before the time ends the line.
        _ => {
            let is_end = |(at, _): &(usize, &str)| rest[at + 1..].trim_start().starts_with('@');
            rest.match_indices('"').skip(1).find(is_end)?.0
        }
    };
    let text = &rest[1..end];
    let rest = rest[end + 1..].trim_start().strip_prefix('@')?.trim_start();
    let time_end = rest.find(' ').unwrap_or(rest.len());
    let start = duration_ns(&rest[..time_end])?;
    let mut rest = rest[time_end..].trim();
    let (mut step, mut count) = (0, 1);
    let mut metadata = BTreeMap::new();
    while let Some(inside) = rest.strip_prefix('[') {
        let end = inside.find(']')?;
        let part = &inside[..end];
        if let Some(repeat) = part.strip_prefix("repeat every ") {
            let (every, times) = repeat.split_once(" for ")?;
            (step, count) = (duration_ns(every.trim())?, times.trim().parse().ok()?);
        } else if let Some(pairs) = part.strip_prefix("metadata ") {
            metadata = pairs_of(pairs)?;
        }
        rest = inside[end + 1..].trim();
    }
    let line = |at: i64| Line {
        labels: labels.clone(),
        metadata: metadata.clone(),
        time_ns: start + step * at,
        text: text.replace("{{.i}}", &at.to_string()),
    };
    Some((0..count).map(line).collect())
}

fn pairs_of(text: &str) -> Option<BTreeMap<String, String>> {
    let mut pairs = BTreeMap::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (name, behind) = quoted.split_once('"')?;
                (name, behind.strip_prefix('=')?)
            }
            None => rest.split_once('=')?,
        };
        let (value, behind) = behind.strip_prefix('"')?.split_once('"')?;
        pairs.insert(name.trim().to_owned(), value.to_owned());
        rest = behind.trim();
    }
    Some(pairs)
}

fn eval(rest: &str, expected: Vec<String>, at: String) -> Option<Eval> {
    let word = |text: &str| {
        let text = text.trim_start();
        let end = text.find(' ').unwrap_or(text.len());
        (text[..end].to_owned(), text[end..].trim_start().to_owned())
    };
    let ns = |text: &str| {
        if text == "0" {
            Some(0)
        } else {
            duration_ns(text)
        }
    };
    let (times, instant_ns, query) = if let Some(rest) = rest.strip_prefix("instant at ") {
        let (time, query) = word(rest);
        (None, ns(&time)?, query)
    } else {
        let (from, rest) = word(rest.strip_prefix("range from ")?);
        let (to, rest) = word(rest.strip_prefix("to ")?);
        let (step, query) = word(rest.strip_prefix("step ")?);
        let times = Times::range(Timestamp(ns(&from)?), Timestamp(ns(&to)?), ns(&step)?).ok()?;
        (Some(times), 0, query)
    };
    Some(Eval {
        at,
        times,
        instant_ns,
        query,
        expected,
    })
}

fn answer(eval: &Eval, lines: &[Line]) -> Result<Answer, String> {
    let metric: Metric = match logql::parse(&eval.query).map_err(|error| error.to_string())? {
        Query::Metric(metric) => metric,
        Query::Log(_) => return Err("the query asks for lines".to_owned()),
    };
    let plan = match eval.times {
        Some(times) => Plan::range(metric, times, 0),
        None => Plan::instant(metric, Timestamp(eval.instant_ns), 0),
    };
    let plan = plan.map_err(|error| error.to_string())?;
    let tables = plan.leaves().iter().map(|leaf| {
        let mut table = RangeTable::new(Arc::clone(leaf));
        let matchers = &leaf.spec().aggregation.log.matchers;
        for line in lines {
            let value = |name: &str| line.labels.get(name).map_or("", String::as_str);
            if matchers
                .iter()
                .all(|matcher| matcher.accepts(value(&matcher.name)))
            {
                table.add_line(line.time_ns, line.text.as_bytes(), |labels| {
                    add_labels(line, labels);
                });
            }
        }
        table
    });
    plan.evaluate(tables.collect(), || true)
        .map_err(|error| error.to_string())
}

fn add_labels(line: &Line, labels: &mut Labels) {
    for (name, value) in &line.labels {
        labels.add_base(Origin::Stream, name, value);
    }
    for (name, value) in &line.metadata {
        let name = logpond_search::label::sanitised(name);
        labels.add_base(Origin::Metadata, &name, value);
    }
}

fn check(eval: &Eval, lines: &[Line], tally: &mut Tally) {
    let found = answer(eval, lines);
    match compare(eval, &found) {
        Ok(()) => tally.passed += 1,
        Err(_) if is_on_purpose(eval, &found) => tally.differing += 1,
        Err(error) => {
            tally.failed += 1;
            println!("{}: {}\n    {error}", eval.at, eval.query);
        }
    }
}

/// Whether a query was to fail for a line that a stage could not read, or not to know a day.
fn is_on_purpose(eval: &Eval, found: &Result<Answer, String>) -> bool {
    let has_day = |labels: &SeriesLabels| labels.iter().any(|(_, value)| value == "1d");
    let knows_days = match found {
        Ok(Answer::Vector(samples)) => samples
            .iter()
            .any(|sample| has_day(&sample.labels) || sample.value == 86_400.0),
        Ok(Answer::Matrix(series)) => series.iter().any(|series| has_day(&series.labels)),
        _ => false,
    };
    if knows_days {
        return true;
    }
    let is_failure = eval
        .expected
        .first()
        .is_some_and(|line| line.starts_with("expect fail"));
    let may_err = [
        "json",
        "logfmt",
        "unwrap",
        ">",
        "<",
        "=",
        "unpack",
        "line_format",
        "label_format",
    ];
    is_failure && found.is_ok() && may_err.iter().any(|part| eval.query.contains(part))
}

fn compare(eval: &Eval, found: &Result<Answer, String>) -> Result<(), String> {
    let mut expected: Vec<&str> = eval.expected.iter().map(String::as_str).collect();
    expected.retain(|line| !line.starts_with("skip "));
    let first = expected.first().copied().unwrap_or_default();
    if let Some(rest) = first.strip_prefix("expect fail") {
        let Err(error) = found else {
            return Err(format!("should fail{rest}, is {found:?}"));
        };
        return match rest.trim().strip_prefix("msg:").map(str::trim) {
            Some(message) if !error.contains(message) => {
                Err(format!("fails with {error:?}, should with {message:?}"))
            }
            _ => Ok(()),
        };
    }
    let found = found.as_ref().map_err(|error| format!("fails: {error}"))?;
    let is_ordered = first == "expect ordered";
    expected.retain(|line| !line.starts_with("expect "));
    let count = eval.times.map_or(1, |times| times.count as usize);
    let mut wanted = Vec::new();
    for line in expected {
        wanted.push(series_of(line, count).ok_or_else(|| format!("cannot read {line}"))?);
    }
    let mut got: Vec<(SeriesLabels, Vec<Option<f64>>)> = match found {
        Answer::Scalar(number) => vec![(SeriesLabels::default(), vec![Some(*number)])],
        Answer::Vector(samples) => samples
            .iter()
            .map(|sample| ((*sample.labels).clone(), vec![Some(sample.value)]))
            .collect(),
        Answer::Matrix(series) => series
            .iter()
            .map(|series| {
                let mut points = vec![None; count];
                for (time, value) in &series.points {
                    let times = eval.times.unwrap_or(Times::instant(*time));
                    points[((time.0 - times.start_ns) / times.step_ns) as usize] = Some(*value);
                }
                ((*series.labels).clone(), points)
            })
            .collect(),
    };
    if !is_ordered {
        wanted.sort_by(|a, b| a.0.cmp(&b.0));
        got.sort_by(|a, b| a.0.cmp(&b.0));
    }
    let is_same = wanted.len() == got.len()
        && wanted.iter().zip(&got).all(|(a, b)| {
            a.0 == b.0
                && a.1.len() == b.1.len()
                && a.1.iter().zip(&b.1).all(|(a, b)| is_near(*a, *b))
        });
    if is_same {
        Ok(())
    } else {
        Err(format!(
            "should be {}\n    is        {}",
            show(&wanted),
            show(&got)
        ))
    }
}

fn show(series: &[(SeriesLabels, Vec<Option<f64>>)]) -> String {
    let series = series.iter().map(|(labels, points)| {
        let points = points
            .iter()
            .map(|p| p.map_or("_".to_owned(), |v| v.to_string()));
        format!("{labels} {}", points.collect::<Vec<_>>().join(" "))
    });
    series.collect::<Vec<_>>().join("; ")
}

fn is_near(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => {
            a == b
                || (a.is_nan() && b.is_nan())
                || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1.0)
        }
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// `{a="b"} 1 _ 2+3x2`
fn series_of(line: &str, count: usize) -> Option<(SeriesLabels, Vec<Option<f64>>)> {
    let (labels, rest) = if line.starts_with('{') {
        let end = end_of_labels(line)?;
        let matchers = logql::parse_matchers(&line[..=end]).ok()?;
        let pairs = matchers.iter().map(|m| (&*m.name, &*m.value));
        (SeriesLabels::new(pairs), &line[end + 1..])
    } else {
        (SeriesLabels::default(), line)
    };
    let mut points = Vec::new();
    for word in rest.split_whitespace() {
        match word {
            "_" => points.push(None),
            word => points.extend(points_of(word)?.into_iter().map(Some)),
        }
    }
    points.resize(count.max(points.len()), None);
    Some((labels, points))
}

fn end_of_labels(line: &str) -> Option<usize> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    line.bytes().position(|b| {
        let ends = b == b'}' && !is_quoted;
        if b == b'"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = b == b'\\' && !is_escaped;
        ends
    })
}

fn points_of(word: &str) -> Option<Vec<f64>> {
    if let Some(number) = logql::number_of(word) {
        return Some(vec![number]);
    }
    let (series, times) = word.rsplit_once('x')?;
    let times: usize = times.parse().ok()?;
    let split = series
        .char_indices()
        .skip(1)
        .find(|(_, c)| matches!(c, '+' | '-'));
    let (base, step) = match split {
        Some((at, _)) => (&series[..at], &series[at..]),
        None => (series, "0"),
    };
    let (base, step) = (logql::number_of(base)?, logql::number_of(step)?);
    Some((0..=times).map(|at| base + step * at as f64).collect())
}
