//! Draws queries for numbers: aggregations, operators and functions around pipelines.

use super::expressions;
use super::pipelines::{self, is_drawn, is_parser};
use super::query::{Grouping, Kind, Log, Metric, Query, Stage};
use crate::draw::Draw;

/// How deep aggregations and operators are nested.
const DEPTH_MAX: usize = 3;

/// Of 100 queries, how many are for lines.
const LINES_PERCENT: usize = 40;

/// Of 100 queries, how many are changed so that they may be none.
const MUTATED_PERCENT: usize = 5;

const RANGES: [&str; 6] = ["5m", "10m", "30m", "1h", "90s", "2h"];
const OFFSETS: [&str; 4] = ["5m", "1h", "-10m", "30s"];

/// Labels that are there before any parser.
const LABELS: [&str; 6] = ["app", "env", "region", "node", "service_name", "trace_id"];

const OF_LINES: [&str; 5] = [
    "count_over_time",
    "rate",
    "bytes_over_time",
    "bytes_rate",
    "absent_over_time",
];

const OF_NUMBERS: [&str; 13] = [
    "sum_over_time",
    "avg_over_time",
    "min_over_time",
    "max_over_time",
    "first_over_time",
    "last_over_time",
    "stddev_over_time",
    "stdvar_over_time",
    "quantile_over_time",
    "rate",
    "rate_counter",
    "absent_over_time",
    "sum_over_time",
];

const OF_VECTORS: [&str; 9] = [
    "sum", "sum", "avg", "min", "max", "count", "stddev", "stdvar", "sum",
];

const COMPARISONS: [&str; 6] = ["==", "!=", ">", "<", ">=", "<="];
const ARITHMETIC: [&str; 6] = ["+", "-", "*", "/", "%", "^"];
const OF_SETS: [&str; 3] = ["and", "or", "unless"];

/// The query with this number of a seed.
pub(super) fn query(seed: u64, number: u64) -> Query {
    let mut draw = Draw::new(seed, 1_000_000 + number);
    let query = if is_drawn(&mut draw, LINES_PERCENT) {
        Query::Log(pipelines::log(&mut draw))
    } else {
        Query::Metric(metric(&mut draw, DEPTH_MAX))
    };
    if is_drawn(&mut draw, MUTATED_PERCENT) {
        Query::Mutated(mutated(&mut draw, &query.to_string()))
    } else {
        query
    }
}

/// A query with a word too many, too few or elsewhere: what is refused is compared, too.
fn mutated(draw: &mut Draw, text: &str) -> String {
    const INSERTED: [&str; 20] = [
        "|",
        "=",
        "(",
        ")",
        "{",
        "}",
        "[5m]",
        "by",
        "(app)",
        "offset 5m",
        "and",
        "or",
        "bool",
        "\"x\"",
        "json",
        "5",
        "-",
        ",",
        "unwrap n",
        "# comment\n",
    ];
    let mut words: Vec<&str> = text
        .split_inclusive([' ', '(', ')', '{', '}', '[', ']', '='])
        .collect();
    let at = draw.below(words.len());
    match draw.below(4) {
        0 => drop(words.remove(at)),
        1 => words.insert(at, draw.text(&INSERTED)),
        2 => {
            let next = (at + 1) % words.len();
            words.swap(at, next);
        }
        _ => words[at] = draw.text(&INSERTED),
    }
    words.concat()
}

fn metric(draw: &mut Draw, depth: usize) -> Metric {
    if depth == 0 {
        return range(draw);
    }
    match draw.below(12) {
        0..4 => range(draw),
        4..8 => vector(draw, depth),
        8 => Metric::Vector {
            operator: draw.text(&["sort", "sort_desc"]),
            parameter: None,
            grouping: None,
            inner: Box::new(metric(draw, depth - 1)),
        },
        9 => replace(draw, depth),
        _ => binary(draw, depth),
    }
}

fn vector(draw: &mut Draw, depth: usize) -> Metric {
    let inner = metric(draw, depth - 1);
    // Which of equal series are chosen is not defined, and would show in what is around.
    let is_choice = depth == DEPTH_MAX && is_drawn(draw, 20);
    // Without a parser our `by` takes fields of lines, which Loki does not know of.
    let mut logs = Vec::new();
    inner.logs(&mut logs);
    let has_fields = logs.iter().all(|log| log.stages.iter().any(is_parser));
    let grouping = is_drawn(draw, 65).then(|| grouping(draw, has_fields));
    Metric::Vector {
        operator: if is_choice {
            draw.text(&["topk", "bottomk"])
        } else {
            draw.text(&OF_VECTORS)
        },
        parameter: is_choice.then(|| (draw.text(&["1", "2", "3", "10"])).to_owned()),
        grouping,
        inner: Box::new(inner),
    }
}

fn replace(draw: &mut Draw, depth: usize) -> Metric {
    let plain = [
        "\"first\", \"$1\", \"app\", \"(.).*\"",
        "\"env\", \"$2-$1\", \"env\", \"(p)(.*)\"",
        "\"new\", \"fixed\", \"\", \"\"",
        "\"new\", \"${x}!\", \"service_name\", \"(?P<x>s.*)\"",
        "\"app\", \"\", \"app\", \".*\"",
        "\"new\", \"$1\", \"app\", \"nothing(.)\"",
    ];
    let rest = match draw.below(2) {
        0 => draw.text(&plain),
        _ => expressions::replacement(draw),
    };
    Metric::Replace {
        rest: rest.into(),
        inner: Box::new(metric(draw, depth - 1)),
    }
}

fn grouping(draw: &mut Draw, has_fields: bool) -> Grouping {
    let count = draw.below(3);
    let mut labels = Vec::new();
    for _ in 0..count {
        let label = if has_fields && is_drawn(draw, 40) {
            draw.text(&pipelines::TEXTS)
        } else {
            draw.text(&LABELS)
        };
        if !labels.iter().any(|known| known == label) {
            labels.push(label.to_owned());
        }
    }
    Grouping {
        is_without: is_drawn(draw, 30),
        labels,
    }
}

fn range(draw: &mut Draw) -> Metric {
    let mut log = pipelines::log(draw);
    let has_parser = log.stages.iter().any(is_parser);
    let unwraps = is_drawn(draw, 50);
    let operator: &'static str = if unwraps {
        draw.text(&OF_NUMBERS)
    } else {
        draw.text(&OF_LINES)
    };
    if unwraps {
        unwrap(draw, &mut log, has_parser);
    }
    // Loki refuses whole queries for one line: most are to give numbers.
    let leaves_errors_out = (has_parser || unwraps) && is_drawn(draw, 85);
    if leaves_errors_out {
        log.stages.push(Stage {
            kind: Kind::LabelFilter,
            text: "| __error__=\"\"".into(),
        });
    }
    if unwraps && is_drawn(draw, 15) {
        log.stages.push(pipelines::label_filter(draw, has_parser));
    }
    let can_group = unwraps
        && !matches!(
            operator,
            "sum_over_time" | "rate" | "rate_counter" | "absent_over_time"
        );
    let groups = is_drawn(draw, 40) && (can_group || is_drawn(draw, 3));
    let parameter = match operator {
        "quantile_over_time" => Some((draw.text(&["0.5", "0.95", "0", "1", "0.333", "2"])).into()),
        _ => None,
    };
    Metric::Range {
        operator,
        parameter,
        log,
        range: (draw.text(&RANGES)).into(),
        offset: is_drawn(draw, 10).then(|| (draw.text(&OFFSETS)).into()),
        grouping: groups.then(|| grouping(draw, has_parser)),
    }
}

fn unwrap(draw: &mut Draw, log: &mut Log, has_parser: bool) {
    let text = match (has_parser, draw.below(10)) {
        (false, 0..8) => "weight".to_owned(),
        (false, _) => (draw.text(&["duration(wait)", "duration_seconds(wait)", "trace_id"])).into(),
        (true, 0..6) => (draw.text(&pipelines::NUMBERS)).to_owned(),
        (true, 6) => format!("duration({})", draw.one(&pipelines::DURATIONS)),
        (true, 7) => format!("duration_seconds({})", draw.one(&pipelines::DURATIONS)),
        (true, 8) => format!("bytes({})", draw.one(&pipelines::SIZES)),
        (true, _) => format!("bytes({})", draw.one(&["n", "took", "msg"])),
    };
    log.stages.push(Stage {
        kind: Kind::Unwrap,
        text: format!("| unwrap {text}"),
    });
}

fn binary(draw: &mut Draw, depth: usize) -> Metric {
    let left = metric(draw, depth - 1);
    let kind = draw.below(10);
    let (operator, bool_word) = match kind {
        0..5 => (draw.text(&ARITHMETIC), ""),
        5..8 => (draw.text(&COMPARISONS), draw.text(&["", " bool"])),
        _ => (draw.text(&OF_SETS), ""),
    };
    let has_number = kind < 8 && is_drawn(draw, 40);
    let right = if has_number {
        Metric::Number((draw.text(&["2", "0", "0.5", "100", "-1", "vector(3)"])).into())
    } else if is_drawn(draw, 50) {
        // The same vector again, or something else.
        sibling(draw, &left)
    } else {
        metric(draw, depth - 1)
    };
    let modifiers = if has_number {
        bool_word.to_owned()
    } else {
        // What is in parentheses would be the labels of `group_left`.
        let is_bare = !matches!(right, Metric::Binary { .. });
        format!("{bool_word}{}", matching(draw, kind < 8, is_bare))
    };
    let (left, right) = if has_number && is_drawn(draw, 30) {
        (right, left)
    } else {
        (left, right)
    };
    Metric::Binary {
        operator,
        modifiers,
        left: Box::new(left),
        right: Box::new(right),
    }
}

/// A vector with the labels of another one.
fn sibling(draw: &mut Draw, of: &Metric) -> Metric {
    let mut sibling = of.clone();
    if let Metric::Range { range, .. } = &mut sibling {
        *range = (draw.text(&RANGES)).into();
    }
    sibling
}

fn matching(draw: &mut Draw, can_group: bool, is_bare: bool) -> String {
    if is_drawn(draw, 50) {
        return String::new();
    }
    let word = draw.one(&["on", "ignoring"]);
    let labels = draw.one(&["app", "env", "app, env", "level", "service_name, app", ""]);
    let groups = [
        " group_left (region)",
        " group_right ()",
        " group_left ()",
        " group_left",
    ];
    let group = if !(can_group && is_drawn(draw, 50)) {
        ""
    } else if is_bare {
        draw.text(&groups)
    } else {
        draw.text(&groups[..3])
    };
    format!(" {word} ({labels}){group}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_gives_the_same_queries() {
        let of = |seed| (0..50).map(move |number| query(seed, number).to_string());
        assert!(of(5).eq(of(5)));
        assert!(!of(5).eq(of(6)));
    }

    #[test]
    fn every_kind_of_stage_and_function_is_drawn() {
        let queries: Vec<_> = (0..4_000).map(|number| query(1, number)).collect();
        let logs = queries.iter().flat_map(Query::logs);
        let stages = logs.flat_map(|log| &log.stages);
        let kinds: BTreeSet<String> = stages.map(|stage| format!("{:?}", stage.kind)).collect();
        assert_eq!(kinds.len(), 13, "{kinds:?}");
        let texts: String = queries.iter().map(|query| format!("{query}\n")).collect();
        let functions = OF_LINES.iter().chain(&OF_NUMBERS).chain(&OF_VECTORS);
        for function in functions.chain(&["topk", "sort", "label_replace", "vector", "group_left"])
        {
            assert!(texts.contains(function), "{function}");
        }
    }
}
