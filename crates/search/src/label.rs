//! Labels as LogQL names them, and which field of a record one means.
//!
//! Names of labels are `[a-zA-Z_][a-zA-Z0-9_]*`, names of fields are anything. A label means the
//! field whose name is the label's once every other character is `_`: `service_name` means
//! `service.name`.
//!
//! A field `app@label` is a label whose own name the line has taken. The label `app` means it, and comes
//! to the line's only where there is none.

use std::borrow::Cow;
use std::cmp::Reverse;

use logpond_record::limits::UNLISTED_FIELD;
use logpond_record::{Record, SEVERITY_LABELS, Severity, Value, split_label_name};
pub use logpond_record::{SERVICE_LABELS, SERVICE_NAME, UNKNOWN_SERVICE};
use logpond_segment::timeline::Kind;

/// What the name of a condition begins with if it means a label rather than a field.
pub const LABEL_PREFIX: &str = "_logpond_label.";

/// The name of the label that says how bad it is what a record tells.
pub const DETECTED_LEVEL: &str = "detected_level";

/// The labels that may say [`DETECTED_LEVEL`] beside itself, the first one that is there counts.
pub const LEVEL_LABELS: &[&str] = SEVERITY_LABELS.split_at(1).1;

/// The name by which conditions and tables mean the severity of a record, see [`Severity`].
pub const SEVERITY: &str = "_level";

/// The name of its number, see [`Severity::number`].
pub const SEVERITY_NUMBER: &str = "_level_number";

/// The level of a record that has none, or one that is not known.
pub const UNKNOWN_LEVEL: &str = "unknown";

/// Fields beside a line that are made of it when it comes in: nobody declared them, and some have as many values
/// as there are lines.
const MADE_OF_LINES: [&str; 4] = ["_AUDIT_TYPE", "duration_s", "referer_host", UNLISTED_FIELD];

/// Whether a field beside a line was declared by whoever sent it, and not made of the line.
pub(crate) fn is_declared(field: &str) -> bool {
    !MADE_OF_LINES.contains(&field)
}

/// A label that each record has, made of what the first of some labels says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputedLabel {
    /// [`SERVICE_NAME`].
    Service,
    /// [`DETECTED_LEVEL`]: a [`Severity`] by the seven names that Grafana's tools know.
    Level,
    /// [`SEVERITY`]: a [`Severity`] by its own name, and other texts as they are. No label is called so.
    Severity,
    /// [`SEVERITY_NUMBER`]. No label is called so.
    SeverityNumber,
}

impl ComputedLabel {
    /// The computed label of this name.
    pub fn named(name: &str) -> Option<ComputedLabel> {
        match name {
            SERVICE_NAME => Some(ComputedLabel::Service),
            DETECTED_LEVEL => Some(ComputedLabel::Level),
            name => [ComputedLabel::Severity, ComputedLabel::SeverityNumber]
                .into_iter()
                .find(|computed| computed.name() == name),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ComputedLabel::Service => SERVICE_NAME,
            ComputedLabel::Level => DETECTED_LEVEL,
            // Not the name of any label: `_level` is what the field `@level` is called.
            ComputedLabel::Severity => "<severity>",
            ComputedLabel::SeverityNumber => "<severity number>",
        }
    }

    /// The labels beside itself that may say what it is.
    pub(crate) fn others(self) -> &'static [&'static str] {
        match self {
            ComputedLabel::Service => &SERVICE_LABELS,
            ComputedLabel::Level => LEVEL_LABELS,
            ComputedLabel::Severity | ComputedLabel::SeverityNumber => &SEVERITY_LABELS,
        }
    }

    /// All labels that may say what it is, the first one with a text counts.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name()).chain(self.others().iter().copied())
    }

    /// What it is if a field of this name has this value.
    pub(crate) fn said_by<'v>(self, field: &str, value: &'v Value<'_>) -> Cow<'v, [u8]> {
        let text = value.to_text();
        let severity = || Severity::of_field(split_label_name(field).0, &text);
        match self {
            ComputedLabel::Service => text,
            ComputedLabel::Level => {
                Cow::Borrowed(severity().map_or(UNKNOWN_LEVEL, level_of).as_bytes())
            }
            ComputedLabel::Severity => match severity() {
                Some(known) => Cow::Borrowed(known.name().as_bytes()),
                None => text,
            },
            ComputedLabel::SeverityNumber => severity().map_or(Cow::Borrowed(b""), |known| {
                Cow::Owned(known.number().to_string().into_bytes())
            }),
        }
    }

    /// What it is of records of which no label says it.
    pub fn unknown(self) -> &'static str {
        match self {
            ComputedLabel::Service => UNKNOWN_SERVICE,
            ComputedLabel::Level => UNKNOWN_LEVEL,
            ComputedLabel::Severity | ComputedLabel::SeverityNumber => "",
        }
    }

    /// [`ComputedLabel::unknown`] as a value; `None` if such records have none.
    pub(crate) fn unknown_value(self) -> Option<Value<'static>> {
        let unknown = self.unknown();
        (!unknown.is_empty()).then_some(Value::Str(Cow::Borrowed(unknown)))
    }

    /// What it is of a record as a value; `None` if it has none.
    pub(crate) fn value_of<'r>(self, record: &'r Record<'_>) -> Option<Value<'r>> {
        match self.of(record) {
            Cow::Borrowed(text) => self.value(text),
            Cow::Owned(text) => self.value(&text).map(Value::into_owned),
        }
    }

    /// The value that a text of it is; `None` for records without one.
    pub(crate) fn value(self, text: &[u8]) -> Option<Value<'_>> {
        let number = || std::str::from_utf8(text).ok()?.parse().ok();
        match self {
            _ if text.is_empty() => None,
            ComputedLabel::SeverityNumber => number().map(Value::Int),
            ComputedLabel::Service | ComputedLabel::Level | ComputedLabel::Severity => {
                Some(Value::text(text))
            }
        }
    }

    /// What it is of a record.
    pub fn of<'r>(self, record: &'r Record<'_>) -> Cow<'r, [u8]> {
        self.of_fields(record.fields())
    }

    /// The same of all records of a kind.
    pub(crate) fn of_kind(self, kind: &Kind) -> Vec<u8> {
        let fields = kind.iter().map(|(name, text)| (&**name, Value::text(text)));
        let fields: Vec<(&str, Value<'_>)> = fields.collect();
        let of_fields = self.of_fields(fields.iter().map(|(name, value)| (*name, value)));
        of_fields.into_owned()
    }

    /// The same of a record with these fields.
    pub(crate) fn of_fields<'r, 'v: 'r>(
        self,
        fields: impl Iterator<Item = (&'r str, &'r Value<'v>)>,
    ) -> Cow<'r, [u8]> {
        // In one pass: there are many fields, and few of them say it.
        let mut said: Vec<(usize, Place<'r>, (&'r str, &'r Value<'v>))> = Vec::new();
        for (field, value) in fields.filter(|(_, value)| **value != Value::Null) {
            let Some(rank) = self.rank(split_label_name(field).0) else {
                continue;
            };
            if let Some(label) = self.names().nth(rank)
                && let Some(place) = place(label, field)
            {
                said.push((rank, place, (field, value)));
            }
        }
        // The first field of a label counts, and the first label whose field has a text. Stable, as of
        // one name the first counts.
        said.sort_by_key(|(rank, place, _)| (*rank, *place));
        said.dedup_by_key(|(rank, ..)| *rank);
        let said = said.into_iter().map(|(.., value)| value);
        let mut texts = said.filter(|(_, value)| !value.to_text().is_empty());
        match texts.next() {
            Some((field, value)) => self.said_by(field, value),
            None => Cow::Borrowed(self.unknown().as_bytes()),
        }
    }

    /// The place of the label that means a field of this name, which has no suffix, among those that may
    /// say what it is.
    fn rank(self, field: &str) -> Option<usize> {
        let length = field.chars().count();
        // None of them begins with an underscore and a digit, as labels do of fields that begin with one.
        let is_it = |label: &str| label.len() == length && means_own(label, field);
        self.names().position(is_it)
    }
}

/// Whether a byte may stand in the name of a label.
fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a text is the name of a label as it is.
pub fn is_label_name(name: &str) -> bool {
    let first = name.bytes().next();
    first.is_some_and(|b| !b.is_ascii_digit()) && name.bytes().all(is_label_byte)
}

/// The label that means a field of this name: each character that labels cannot have is `_`, and
/// one stands before a digit at the beginning.
pub fn sanitised(name: &str) -> Cow<'_, str> {
    if is_label_name(name) {
        return Cow::Borrowed(name);
    }
    let mut label = String::with_capacity(name.len() + 1);
    if name.bytes().next().is_none_or(|b| b.is_ascii_digit()) {
        label.push('_');
    }
    label.extend(name.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() => c,
        _ => '_',
    }));
    Cow::Owned(label)
}

/// The label that a field beside the line is.
pub fn of_field(name: &str) -> Cow<'_, str> {
    sanitised(split_label_name(name).0)
}

/// Whether a label means a field of this name.
pub fn means(label: &str, field: &str) -> bool {
    label == field || means_own(label, split_label_name(field).0)
}

/// Whether a label means a field of this name, which has no suffix.
fn means_own(label: &str, field: &str) -> bool {
    if label == field {
        return true;
    }
    let digit_first = field.bytes().next().is_none_or(|b| b.is_ascii_digit());
    let label = if digit_first {
        match label.strip_prefix('_') {
            Some(rest) => rest,
            None => return false,
        }
    } else {
        label
    };
    let mut chars = label.chars();
    let same = field.chars().all(|c| match chars.next() {
        Some('_') => !c.is_ascii_alphanumeric(),
        Some(other) => other == c && c.is_ascii_alphanumeric(),
        None => false,
    });
    same && chars.next().is_none()
}

/// The place of a field among those that a label means, the least counts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place<'f> {
    suffixes: Reverse<usize>,
    is_other: bool,
    field: &'f str,
}

impl Place<'_> {
    /// Whether the field is a label whose own name the line has taken.
    pub(crate) fn is_apart(&self) -> bool {
        self.suffixes.0 > 0
    }
}

/// The place of a field among those that a label means: labels whose own names the line has taken, then the
/// one of exactly the label's name, then others by name. `None` if the label does not mean it.
pub fn place<'f>(label: &str, field: &'f str) -> Option<Place<'f>> {
    let (own, suffixes) = split_label_name(field);
    means_own(label, own).then_some(Place {
        suffixes: Reverse(suffixes),
        is_other: own != label,
        field,
    })
}

/// The value that a label has in a record: of the first field that it means, see [`place`]. A null is no
/// value.
pub fn value<'r, 'a>(record: &'r Record<'a>, label: &str) -> Option<&'r Value<'a>> {
    let fields = record.fields().filter(|(_, value)| **value != Value::Null);
    let meant = fields.filter_map(|(name, value)| Some((place(label, name)?, value)));
    // The first one of a name counts, as everywhere.
    let best = meant.reduce(|best, other| if other.0 < best.0 { other } else { best });
    best.map(|(_, value)| value)
}

/// The labels that a sender declared beside the line with their values, by name, each once. A null is no
/// label. Where the line has a field of the same name, that one counts.
pub fn declared<'r, 'a>(record: &'r Record<'a>) -> Vec<(Cow<'r, str>, &'r Value<'a>)> {
    let is_in_line = |name: &str| record.shape.field_slot(name).is_some();
    let labels = record.labels.iter();
    let labels = labels
        .filter(|(name, value)| *value != Value::Null && is_declared(name) && !is_in_line(name));
    let mut labels: Vec<(Cow<'r, str>, &str, &Value<'a>)> = labels
        .map(|(name, value)| (of_field(name), &**name, value))
        .collect();
    // Of several names that one label means the first counts; and of one name the first, as everywhere.
    labels.sort_by(|(a, a_name, _), (b, b_name, _)| {
        (a, place(a, a_name)).cmp(&(b, place(b, b_name)))
    });
    labels.dedup_by(|(later, ..), (first, ..)| later == first);
    let labels = labels.into_iter();
    labels.map(|(label, _, value)| (label, value)).collect()
}

/// The field that splits a histogram: by `level` people mean the severity that any source says.
pub fn counted_field(name: &str) -> &str {
    match name {
        "level" => SEVERITY,
        other => other,
    }
}

/// The severity that some fields say, and the one that says it: the first field of a record's severity whose
/// text is one.
pub fn severity_of<'f>(
    fields: impl Iterator<Item = (&'f str, &'f Value<'f>)>,
) -> Option<(&'f str, Severity)> {
    let said = fields.filter_map(|(field, value)| {
        let own = split_label_name(field).0;
        let rank = ComputedLabel::Severity.rank(own)?;
        let severity = Severity::of_field(own, &value.to_text())?;
        let place = place(ComputedLabel::Severity.names().nth(rank)?, field)?;
        Some(((rank, place), severity))
    });
    let first = said.min_by_key(|(place, _)| *place)?;
    Some((first.0.1.field, first.1))
}

/// The name that Grafana's tools have for a severity: they know neither notice nor alert.
pub fn level_of(severity: Severity) -> &'static str {
    match severity {
        Severity::Notice => Severity::Info.name(),
        Severity::Alert => Severity::Critical.name(),
        other => other.name(),
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::{Message, Shape};

    use super::*;

    #[test]
    fn labels_mean_fields() {
        let table = [
            ("app", "app", true),
            ("service_name", "service.name", true),
            ("service_name", "service_name", true),
            ("k8s_pod_name", "k8s.pod-name", true),
            ("a_", "aé", true),
            ("_5xx", "5xx", true),
            ("_", "", true),
            ("app", "App", false),
            ("app", "ap", false),
            ("app", "apps", false),
            ("a.b", "a_b", false),
            ("_x", "x", false),
            ("app", "app@label", true),
            ("service_name", "service.name@label@label", true),
            ("app_label", "app@label", false),
            ("_label", "@label", true),
        ];
        for (label, field, expected) in table {
            assert_eq!(means(label, field), expected, "{label} {field}");
            assert_eq!(place(label, field).is_some(), expected, "{label} {field}");
            if is_label_name(label) {
                assert_eq!(of_field(field) == label, expected, "{label} {field}");
            }
        }
    }

    #[test]
    fn labels_apart_from_lines_come_first() {
        let mut fields = [
            "a_b",
            "a-b",
            "a_b@label",
            "a.b",
            "a.b@label",
            "a_b@label@label",
        ];
        fields.sort_by_key(|field| place("a_b", field));
        let expected = [
            "a_b@label@label",
            "a_b@label",
            "a.b@label",
            "a_b",
            "a-b",
            "a.b",
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn one_field_says_the_severity() {
        type Pairs = &'static [(&'static str, &'static str)];
        let table: [(Pairs, &str, &str); 9] = [
            (&[("level", "WARNING")], "warn", "warn"),
            (&[("severity", "notice")], "info", "notice"),
            (&[("level", "30"), ("pid", "1")], "info", "info"),
            (&[("levelno", "30")], "warn", "warn"),
            (
                &[("level", "400"), ("level_name", "ERROR")],
                "error",
                "error",
            ),
            (&[("level", ""), ("PRIORITY", "1")], "critical", "alert"),
            (&[("level", "fine-grained")], "unknown", "fine-grained"),
            (
                &[("detected_level", "error"), ("level", "info")],
                "error",
                "error",
            ),
            (&[("pid", "3")], "unknown", ""),
        ];
        let record = crate::tests::record(Shape::TEXT, vec![Value::Null], Message::Absent);
        for (fields, level, severity) in table {
            let labels = fields.iter();
            let labels = labels.map(|(name, value)| ((*name).into(), Value::Str((*value).into())));
            let record = Record {
                labels: labels.collect(),
                ..record.clone()
            };
            let of =
                |label: ComputedLabel| String::from_utf8(label.of(&record).into_owned()).unwrap();
            assert_eq!(of(ComputedLabel::Level), level, "{fields:?}");
            assert_eq!(of(ComputedLabel::Severity), severity, "{fields:?}");
        }
    }
}
