//! Which records are meant: flags to a filter and a range of time.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use logpond_record::Timestamp;
use logpond_search::query::{self, Comparison, FieldTest, Filter};
use logpond_search::{Matcher, SyntaxError, label, when};

use super::Failure;
use crate::cli::Selection;
use logpond_client::Parameters;
use logpond_host::terminal::note;

/// A filter and a range, ready to be sent or applied.
pub(super) struct ResolvedSelection {
    /// The filter.
    pub(super) filter: Filter,
    /// The filter as it was written, if it was written as a whole: its writer may have meant another language.
    pub(super) written: Option<String>,
    /// Earliest time, if one was given.
    pub(super) since: Option<Timestamp>,
    /// Latest time, excluded, if one was given.
    pub(super) until: Option<Timestamp>,
    /// Whether there is to be no answer that is not complete.
    pub(super) is_strict: bool,
    /// The zone of times that people read.
    pub(super) zone: TimeZone,
}

/// A part of the selection that makes no sense, with what was typed and where it goes wrong.
#[derive(Debug)]
pub(super) struct SelectionError {
    flag: &'static str,
    text: String,
    error: SyntaxError,
}

impl fmt::Display for SelectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.flag, self.error)?;
        for line in self.error.underline(&self.text).lines() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SelectionError {}

/// Gives the flags their meaning; `text` is searched for as it is.
pub(super) fn meaning(
    text: Option<&OsStr>,
    selection: &Selection,
) -> Result<ResolvedSelection, Failure> {
    let zone = TimeZone::system();
    let now = now();
    let since = instant("--since", selection.since.as_deref(), now, &zone)?;
    let until = instant("--until", selection.until.as_deref(), now, &zone)?;
    if let (Some(since), Some(until)) = (since, until)
        && since > until
    {
        return Err(format!("--since {since} is after --until {until}").into());
    }
    let filter = filter(text, selection)?;
    let written = selection.filter.clone();
    let written = written.filter(|written| query::parse(written).is_ok_and(|own| own == filter));
    Ok(ResolvedSelection {
        filter,
        written,
        since,
        until,
        is_strict: selection.strict,
        zone,
    })
}

/// The range that a server takes if none is named, for a sentence about an empty answer: it is what
/// people forget who have brought old logs in.
pub(super) fn range_of(selection: &Selection) -> &'static str {
    if selection.since.is_none() && selection.until.is_none() {
        " in the last hour (--since reaches further back)"
    } else {
        ""
    }
}

impl ResolvedSelection {
    /// What a server is asked.
    pub(super) fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::new();
        if self.filter != Filter::All {
            let written = self.written.clone();
            parameters.push(("q", written.unwrap_or_else(|| self.filter.to_string())));
        }
        if let Some(since) = self.since {
            parameters.push(("from", since.to_string()));
        }
        if let Some(until) = self.until {
            parameters.push(("to", until.to_string()));
        }
        if self.is_strict {
            parameters.push(("strict", "true".into()));
        }
        parameters
    }
}

/// The time now.
pub(super) fn now() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX))
}

pub(super) fn instant(
    flag: &'static str,
    text: Option<&str>,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = text else { return Ok(None) };
    if text == "boot" {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        return match boot_time(&stat) {
            Some(time) => Ok(Some(time)),
            None => Err(format!("{flag}: the system does not tell when it was started").into()),
        };
    }
    let moment = when::resolve(text, now, zone).map_err(|error| format!("{flag}: {error}"))?;
    match moment.oddity {
        Some(when::Oddity::Repeated) => note(&format!(
            "logpond: {flag} {text}: clocks show this time twice, the first one is meant"
        )),
        Some(when::Oddity::Skipped) => note(&format!(
            "logpond: {flag} {text}: clocks skip this time, the moment after is meant"
        )),
        None => {}
    }
    Ok(Some(moment.time))
}

/// When the machine was started, by `/proc/stat`.
fn boot_time(stat: &str) -> Option<Timestamp> {
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    let seconds: i64 = line.trim().parse().ok()?;
    seconds.checked_mul(1_000_000_000).map(Timestamp)
}

/// The conjunction of all conditions. Only what is searched for in text can be inverted, as in
/// grep: a record must then match none of it.
fn filter(text: Option<&OsStr>, selection: &Selection) -> Result<Filter, Failure> {
    let mut patterns = Vec::new();
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        patterns.push(Filter::substring(text.as_bytes(), selection.ignore_case));
    }
    for source in &selection.regexes {
        let source = source
            .to_str()
            .ok_or("--regexp: the expression is not UTF-8; write bytes as \\xNN")?;
        let pattern = Filter::regex(source, selection.ignore_case);
        Matcher::new(&pattern).map_err(|error| SelectionError {
            flag: "--regexp",
            text: source.to_string(),
            error,
        })?;
        patterns.push(pattern);
    }
    if selection.invert_match {
        if patterns.is_empty() {
            return Err("--invert-match needs a TEXT or --regexp to invert".into());
        }
        patterns = patterns.into_iter().map(Filter::negate).collect();
    }
    for condition in &selection.fields {
        let parsed = query::parse_condition(condition).map_err(|error| SelectionError {
            flag: "--field",
            text: condition.clone(),
            error,
        })?;
        patterns.push(parsed);
    }
    if let Some(severity) = selection.level {
        let word = severity.name().as_bytes();
        let test = FieldTest::Compare(Comparison::GreaterOrEqual, word.into());
        patterns.push(Filter::field(label::SEVERITY, test));
    }
    if let Some(text) = &selection.filter {
        let parsed = query::parse(text).map_err(|error| SelectionError {
            flag: "--where",
            text: text.clone(),
            error,
        })?;
        patterns.push(parsed);
    }
    Ok(Filter::and(patterns))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use logpond_record::Severity;

    use super::*;

    fn text_of(text: &str, selection: &Selection) -> String {
        match filter(Some(text.as_ref()), selection) {
            Ok(filter) => filter.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn flags_become_a_filter() {
        let selection = Selection {
            regexes: vec!["a/b+".into()],
            fields: vec!["status>=500".into(), "path=/a b".into(), "user:*".into()],
            filter: Some("x OR y=1".into()),
            ..Selection::default()
        };
        expect![[r#""say \"hi\" AND" AND /a\/b+/ AND status>=500 AND path="/a b" AND user:* AND ("x" OR y=1)"#]].assert_eq(&text_of("say \"hi\" AND", &selection));
        let inverted = Selection {
            invert_match: true,
            ignore_case: true,
            level: Some(Severity::Warn),
            fields: vec!["host!=a".into()],
            ..Selection::default()
        };
        expect![[r#"NOT i"x" AND host!=a AND level>=warn"#]].assert_eq(&text_of("x", &inverted));
        expect!["*"].assert_eq(&text_of("", &Selection::default()));
    }

    #[test]
    fn boot_is_a_time() {
        let stat = "cpu 1 2\nbtime 1795255200\nprocesses 3\n";
        assert_eq!(boot_time(stat), Some(Timestamp(1_795_255_200_000_000_000)));
        assert_eq!(boot_time("cpu 1 2\n"), None);
    }

    #[test]
    fn mistakes_are_shown_where_they_are() {
        let mistakes = [
            Selection {
                regexes: vec!["a(b".into()],
                ..Selection::default()
            },
            Selection {
                fields: vec!["status".into()],
                ..Selection::default()
            },
            Selection {
                filter: Some("a AND (b".into()),
                ..Selection::default()
            },
            Selection {
                invert_match: true,
                ..Selection::default()
            },
        ];
        let said: Vec<String> = mistakes.iter().map(|s| text_of("", s)).collect();
        expect![[r#"
            --regexp: regular expression: unclosed group (at character 2)
              a(b
               ^
            --field: a condition needs an operator (at character 7); write FIELD=VALUE, FIELD!=VALUE, FIELD>=N, FIELD~REGEX, FIELD:TEXT or FIELD:*
              status
                    ^
            --where: `(` without `)` (at character 7); close it, or quote the text
              a AND (b
                    ^
            --invert-match needs a TEXT or --regexp to invert"#]].assert_eq(&said.join("\n"));
    }
}
