//! Conditions on one field, compiled: for records row by row and for values of a column.

use std::borrow::Cow;
use std::fmt;

use logpond_record::{Id, Message, Record, Severity, Timestamp, Value, unreserved};

use crate::journal::names::{self, ENTRY_PREFIX};
use crate::label::{self, ComputedLabel, LABEL_PREFIX};
use crate::matcher::{Scratch, line};
use crate::number::Number;
use crate::pattern::{Finder, RegexError};
use crate::query::{Comparison, FieldFilter, FieldTest};
use crate::when;

/// What a condition looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `_time`: the event time.
    Time,
    /// `_received`: the receive time.
    Received,
    /// `_id`: the record's id.
    Id,
    /// `_time_source`: where the event time came from.
    TimeSource,
    /// `_msg`: the decoded message.
    Message,
    /// `_raw`: the original line.
    Line,
    /// The first field with this name.
    Field(Box<str>),
    /// `_logpond_label.NAME`: the field that a label means, see [`crate::label`].
    Label(Box<str>),
    /// `_logpond_label.NAME` of a label that is computed.
    ///
    /// `_level` and `_level_number`: the severity.
    Computed(ComputedLabel),
    /// `_logpond_entry.NAME`: what the entry that the record is shown as has under a name of journals, see
    /// [`crate::journal::names`].
    Entry(Box<str>),
}

impl Target {
    /// What this name stands for.
    pub fn new(name: &str) -> Target {
        match name {
            // A field that was sent under one of these names, or another reserved one, has the suffix.
            "_time" => Target::Time,
            "_received" => Target::Received,
            "_id" => Target::Id,
            "_time_source" => Target::TimeSource,
            "_msg" => Target::Message,
            "_raw" => Target::Line,
            label::SEVERITY => Target::Computed(ComputedLabel::Severity),
            label::SEVERITY_NUMBER => Target::Computed(ComputedLabel::SeverityNumber),
            name => match (
                name.strip_prefix(LABEL_PREFIX),
                name.strip_prefix(ENTRY_PREFIX),
            ) {
                (Some(label), _) => match ComputedLabel::named(label) {
                    Some(computed) => Target::Computed(computed),
                    None => Target::Label(label.into()),
                },
                (_, Some(name)) => Target::Entry(name.into()),
                _ => Target::Field(unreserved(name).unwrap_or(name).into()),
            },
        }
    }

    /// True if it is found by the name of a field.
    pub fn is_of_fields(&self) -> bool {
        matches!(self, Target::Field(_) | Target::Label(_) | Target::Entry(_))
    }
}

/// A compiled condition.
#[derive(Clone, Debug)]
pub struct FieldMatcher {
    target: Target,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Exists,
    Equal {
        text: Box<[u8]>,
        number: Option<Number>,
    },
    Order(Comparison, Number),
    Severity(Comparison, Severity),
    Instant(Comparison, Timestamp),
    Id(Comparison, Id),
    Find(Finder),
}

/// Why a condition does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// The regular expression is wrong.
    Regex(RegexError),
    /// An order is asked for with a value that is neither a number nor a time.
    NotANumber(Comparison),
    /// `_time` or `_received` is compared with something else than an instant.
    NotAnInstant,
    /// `_id` is compared with something else than an id.
    NotAnId,
    /// An order of severities is asked for with a text that is none.
    NotASeverity(Comparison),
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldError::Regex(error) => error.fmt(f),
            FieldError::NotANumber(comparison) => {
                write!(
                    f,
                    "`{}` compares numbers and times only",
                    comparison.as_str()
                )
            }
            FieldError::NotAnInstant => f.write_str("times are compared with an instant"),
            FieldError::NotAnId => f.write_str("ids are compared with an id of 26 characters"),
            FieldError::NotASeverity(comparison) => {
                write!(f, "`{}` compares severities only", comparison.as_str())
            }
        }
    }
}

impl std::error::Error for FieldError {}

impl FieldError {
    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            FieldError::Regex(_) => "write a backslash before special characters",
            FieldError::NotANumber(_) => {
                "write a number, or a time such as 2026-11-21T10:00:00Z; write a severity as level>=warn; give a range such \
                 as the last hour beside the query (--since 1h, from=1h); or quote the whole to search for the text"
            }
            FieldError::NotAnInstant => {
                "write RFC 3339, such as 2026-11-21T10:00:00Z, or give a range beside the query (--since 1h, from=1h)"
            }
            FieldError::NotASeverity(_) => {
                "write trace, debug, info, notice, warn, error, critical, alert or fatal"
            }
            FieldError::NotAnId => "copy it from the _id of a record, or use _id:TEXT for a part",
        }
    }
}

impl FieldMatcher {
    /// Compiles a condition.
    pub fn new(filter: &FieldFilter) -> Result<FieldMatcher, FieldError> {
        let target = Target::new(&filter.name);
        let test = match &filter.test {
            FieldTest::Exists => Test::Exists,
            FieldTest::Contains(pattern) => {
                Test::Find(Finder::new(pattern).map_err(FieldError::Regex)?)
            }
            FieldTest::Compare(comparison, value) => compile(&target, *comparison, value)?,
        };
        Ok(FieldMatcher { target, test })
    }

    /// The same condition on another target whose values are those of fields, too.
    pub(crate) fn at(&self, target: Target) -> FieldMatcher {
        FieldMatcher {
            target,
            test: self.test.clone(),
        }
    }

    /// What the condition looks at.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Whether how a number is written matters: `5` and `5.0` are the same number, not the same text.
    pub(crate) fn looks_at_text(&self) -> bool {
        matches!(self.test, Test::Find(_))
    }

    /// Whether the condition holds for this value; never for a missing one.
    ///
    /// For targets that are no fields: instants and ids as their text, see
    /// [`FieldMatcher::matches_instant`] and [`FieldMatcher::matches_id`].
    pub fn matches_value(&self, value: Option<&Value<'_>>) -> bool {
        let Some(value) = value else { return false };
        match &self.test {
            Test::Exists => true,
            Test::Equal { text, number } => equal(value, text, number.as_ref()),
            Test::Order(comparison, number) => {
                Number::of(value).is_some_and(|n| comparison.accepts(n.compare(number)))
            }
            Test::Severity(comparison, severity) => Severity::of_word(&value.to_text())
                .is_some_and(|known| comparison.accepts(known.cmp(severity))),
            Test::Find(finder) if is_plain(value) && !finder.may_match_plain() => false,
            Test::Find(finder) => finder.is_match(&value.to_text()),
            Test::Instant(..) | Test::Id(..) => match value {
                Value::Str(text) => self.matches_text_form(text),
                _ => false,
            },
        }
    }

    fn matches_text_form(&self, text: &str) -> bool {
        match self.test {
            Test::Instant(..) => when::absolute(text).is_some_and(|t| self.matches_instant(t)),
            _ => text.parse().is_ok_and(|id| self.matches_id(id)),
        }
    }

    /// Whether the condition holds for an instant (`_time`, `_received`).
    pub fn matches_instant(&self, time: Timestamp) -> bool {
        match &self.test {
            Test::Exists => true,
            Test::Instant(comparison, wanted) => comparison.accepts(time.cmp(wanted)),
            _ => self.matches_value(Some(&Value::Str(Cow::Owned(time.to_string())))),
        }
    }

    /// Whether the condition holds for an id (`_id`).
    pub fn matches_id(&self, id: Id) -> bool {
        match &self.test {
            Test::Exists => true,
            Test::Id(comparison, wanted) => comparison.accepts(id.cmp(wanted)),
            _ => self.matches_value(Some(&Value::Str(Cow::Owned(id.to_string())))),
        }
    }

    /// Whether the condition holds for a record.
    pub(crate) fn matches(&self, record: &Record<'_>, scratch: &mut Scratch) -> bool {
        match &self.target {
            Target::Time => self.matches_instant(record.time),
            Target::Received => self.matches_instant(record.received),
            Target::Id => self.matches_id(record.id),
            Target::TimeSource => {
                let name = record.time_source.as_str();
                self.matches_value(Some(&Value::Str(Cow::Borrowed(name))))
            }
            Target::Message => match &record.message {
                Message::Absent => false,
                Message::Part(value) => self.matches_value(Some(value)),
                Message::Line => self.matches_value(Some(&Value::text(line(record, scratch)))),
            },
            Target::Line => self.matches_value(Some(&Value::text(line(record, scratch)))),
            Target::Field(name) => self.matches_value(record.field(name)),
            Target::Label(name) => self.matches_value(label::value(record, name)),
            Target::Computed(label) => self.matches_value(label.value_of(record).as_ref()),
            Target::Entry(name) => self.matches_value(names::value(record, name)),
        }
    }
}

/// True for values whose text has letters, digits, signs and points only: it need not be made for expressions that
/// require more.
fn is_plain(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_))
}

fn compile(target: &Target, comparison: Comparison, value: &[u8]) -> Result<Test, FieldError> {
    let text = || std::str::from_utf8(value).ok();
    match target {
        Target::Time | Target::Received => text()
            .and_then(when::absolute)
            .map(|time| Test::Instant(comparison, time))
            .ok_or(FieldError::NotAnInstant),
        Target::Id => text()
            .and_then(|t| t.parse().ok())
            .map(|id| Test::Id(comparison, id))
            .ok_or(FieldError::NotAnId),
        Target::Computed(ComputedLabel::Severity) => match Severity::of_word(value) {
            Some(severity) => Ok(Test::Severity(comparison, severity)),
            // Texts that are no severity are compared as they are.
            None if comparison == Comparison::Equal => Ok(Test::Equal {
                text: value.into(),
                number: Number::parse(value),
            }),
            None => Err(FieldError::NotASeverity(comparison)),
        },
        _ if comparison == Comparison::Equal => Ok(Test::Equal {
            text: value.into(),
            number: Number::parse(value),
        }),
        _ => Number::parse(value)
            .map(|number| Test::Order(comparison, number))
            .or_else(|| {
                let time = text().and_then(when::absolute);
                time.map(|time| Test::Instant(comparison, time))
            })
            .ok_or(FieldError::NotANumber(comparison)),
    }
}

/// Numbers equal numbers by value, everything else equals its text.
fn equal(value: &Value<'_>, text: &[u8], number: Option<&Number>) -> bool {
    match number.and_then(|number| Some((Number::of_typed(value)?, number))) {
        Some((a, b)) => a.compare(b).is_eq(),
        None => *value.to_text() == *text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_times_are_compared_as_times() {
        let holds = |condition: &str, value: &str| {
            let filter = crate::query::parse(condition).unwrap();
            let crate::Filter::Field(field) = filter else {
                panic!("{filter:?}")
            };
            let matcher = FieldMatcher::new(&field).unwrap();
            matcher.matches_value(Some(&Value::text(value.as_bytes())))
        };
        let table = [
            ("t>=2026-11-21T10:00:00Z", "2026-11-21T11:00:00+01:00", true),
            ("t>2026-11-21T10:00:00Z", "2026-11-21T11:00:00+01:00", false),
            ("t<2026-11-21", "2026-11-20T23:59:59.999", true),
            ("t<2026-11-21", "2026-11-21", false),
            ("t<=2026-11-21T00:00:00Z", "2026-11-21", true),
            ("t<2026-11-21", "soon", false),
            ("t<2026-11-21", "", false),
            ("t<2026", "2026-11-21", false),
        ];
        for (condition, value, expected) in table {
            assert_eq!(holds(condition, value), expected, "{condition} {value}");
        }
        assert!(crate::query::parse("t>x").is_err());
    }
}
