//! Spans of time in a question: `last 5 minutes`, `earliest=-1h`. The range of a question is given apart from it.

use super::RESERVED;
use super::translate::has_stray_joint;
use crate::query::{self, Comparison, FieldFilter, FieldTest, Filter, Pattern};
use crate::when::WEEKDAYS;

/// Units of time as people and other languages write them, and what `--since` calls them with how many of these.
const UNITS: [(&[&str], u64, char); 6] = [
    (&["s", "sec", "secs", "second", "seconds"], 1, 's'),
    (&["m", "min", "mins", "minute", "minutes"], 1, 'm'),
    (&["h", "hr", "hrs", "hour", "hours"], 1, 'h'),
    (&["d", "day", "days"], 1, 'd'),
    (&["w", "week", "weeks"], 7, 'd'),
    (&["month", "months"], 30, 'd'),
];

/// Names by which other languages begin a range, beside those of the time.
const BEGINNINGS: [&str; 4] = ["earliest", "since", "start", "from"];

/// Words before a span: `in the last 5 minutes`.
const LEADING: [&str; 8] = [
    "in", "within", "over", "during", "from", "since", "for", "the",
];

/// Days that are named without a number. Those of the week are only behind `since`: they are words of texts, too.
const DAYS: [&str; 2] = ["today", "yesterday"];

/// The largest number of a span: nobody means more by one.
const NUMBER_MAX: u64 = 10_000;

/// The most words of a span that is written out: `in the last 15 minutes`.
const WORDS_MAX: usize = 5;

/// A span that a part of a question means.
pub(super) struct TimeSpan {
    /// The part as it was written.
    pub(super) written: String,
    /// The value of `--since`, such as `15m`.
    pub(super) since: String,
    /// The rest of the question.
    pub(super) rest: Filter,
}

/// The span of time in a question that is one of its conditions, or ends one of its texts.
pub(super) fn span_of(filter: &Filter) -> Option<TimeSpan> {
    let parts = match filter {
        Filter::And(parts) => &parts[..],
        one => std::slice::from_ref(one),
    };
    parts.iter().enumerate().find_map(|(at, part)| {
        let (written, since, rest) = match part {
            Filter::Field(field) => (part.to_string(), of_field(field)?, Filter::All),
            Filter::Text(Pattern::Substring {
                text,
                case_insensitive,
            }) => {
                let (rest, written, since) = of_text(std::str::from_utf8(text).ok()?)?;
                let rest = match rest {
                    "" => Filter::All,
                    rest => Filter::substring(rest.as_bytes(), *case_insensitive),
                };
                (written.to_owned(), since, rest)
            }
            _ => return None,
        };
        let others = parts.iter().enumerate().filter(|(other, _)| *other != at);
        let others = others.map(|(_, part)| part.clone());
        Some(TimeSpan {
            written,
            since,
            rest: Filter::and(std::iter::once(rest).chain(others)),
        })
    })
}

/// `earliest=-1h`, `time:5m`, `timestamp:now-1h`. A comparison with `>` takes numbers only, and its error says so.
fn of_field(field: &FieldFilter) -> Option<String> {
    let is_named = |names: &[&str]| names.iter().any(|n| n.eq_ignore_ascii_case(&field.name));
    let means_time =
        |(reserved, others): &(&str, &[&str])| *reserved == "_time" && is_named(others);
    if !RESERVED.iter().any(means_time) && !is_named(&BEGINNINGS) {
        return None;
    }
    let value = match &field.test {
        FieldTest::Compare(Comparison::Equal, value) => value,
        FieldTest::Contains(Pattern::Substring { text, .. }) => text,
        _ => return None,
    };
    let value = std::str::from_utf8(value).ok()?;
    let since = value.strip_prefix("now").unwrap_or(value);
    let since = since.strip_prefix("()").unwrap_or(since).trim_start();
    let since = since.strip_prefix('-').unwrap_or(since).trim_start();
    let rounded = since.split_once(['/', '@']);
    amount(rounded.map_or(since, |(since, _)| since))
}

/// The text before a span, the span as it is written, and what it means: `failed in the last 5 minutes`.
fn of_text(text: &str) -> Option<(&str, &str, String)> {
    let text = text.trim();
    if let Ok(Filter::Field(field)) = query::parse_condition(text) {
        return Some(("", text, of_field(&field)?));
    }
    let is_start =
        |at: usize| !text[at..].starts_with(' ') && (at == 0 || text[..at].ends_with(' '));
    let starts: Vec<usize> = text
        .char_indices()
        .map(|(at, _)| at)
        .filter(|at| is_start(*at))
        .collect();
    let first = starts.len().saturating_sub(WORDS_MAX);
    starts[first..].iter().find_map(|start| {
        let since = of_words(&text[*start..].to_ascii_lowercase())?;
        let rest = text[..*start].trim_end();
        let is_joined = has_stray_joint(&Filter::substring(rest.as_bytes(), false));
        (!is_joined).then_some((rest, &text[*start..], since))
    })
}

/// `in the last 5 minutes`, `past hour`, `10 min ago`.
fn of_words(words: &str) -> Option<String> {
    let (mut rest, mut is_since) = (words, false);
    while let Some((word, behind)) = rest.split_once(' ')
        && LEADING.contains(&word)
    {
        is_since = matches!(word, "since" | "from");
        rest = behind.trim_start();
    }
    if DAYS.contains(&rest) || (is_since && WEEKDAYS.contains(&rest)) {
        return Some(rest.to_owned());
    }
    if let Some(ago) = rest.strip_suffix(" ago") {
        return amount(ago);
    }
    let named = ["last ", "past ", "previous "];
    let span = named.iter().find_map(|name| rest.strip_prefix(name))?;
    let span = span.trim_start();
    amount(span).or_else(|| amount(&format!("1 {span}")))
}

/// `5m`, `5 minutes`.
fn amount(text: &str) -> Option<String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    if !(1..=NUMBER_MAX).contains(&number) {
        return None;
    }
    let unit = unit.trim().to_ascii_lowercase();
    let known = UNITS.iter().find(|(names, ..)| names.contains(&&*unit));
    let (_, times, letter) = known?;
    Some(format!("{}{letter}", number.checked_mul(*times)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(String, String)> {
        let span = span_of(&query::parse(text).unwrap())?;
        Some((span.since, span.rest.to_string()))
    }

    #[test]
    fn spans_are_told_from_texts() {
        let all = Filter::All.to_string();
        let table = [
            ("last 5 minutes", "5m", &*all),
            ("failed in the last 15 Minutes", "15m", "\"failed\""),
            ("past hour", "1h", &all),
            ("last  2 months", "60d", &all),
            ("\"earliest=-4h\"", "4h", &all),
            ("timeout 2 weeks ago", "14d", "\"timeout\""),
            ("timestamp:now-1h", "1h", &all),
            ("level=error ts=now()-30m", "30m", "level=error"),
            ("earliest=-24h@h error", "24h", "\"error\""),
            ("time:5m error", "5m", "\"error\""),
            ("timeout yesterday", "yesterday", "\"timeout\""),
            ("Today", "today", &all),
            ("failed since Monday", "monday", "\"failed\""),
        ];
        for (text, since, rest) in table {
            let expected = Some((since.to_owned(), rest.to_owned()));
            assert_eq!(found(text), expected, "{text}");
        }
        for text in [
            "last request",
            "last login 5 tries",
            "the last 0 minutes",
            "retry in 5 minutes",
            "status=now-1h",
            "time=2026-01-01",
            "ago",
            "black friday",
            "for yesterday's run",
            "timeout OR last 5 minutes",
            "last 99999999999 days",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
