//! The record: one log line or structured entry.

use std::borrow::Cow;
use std::sync::Arc;

use crate::id::Id;
use crate::shape::Shape;
use crate::time::Timestamp;
use crate::time_source::TimeSource;
use crate::value::Value;

/// The message of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Message<'a> {
    /// The record has none (a JSON object without a message field).
    Absent,
    /// The message is the whole line (an access log).
    Line,
    /// The message is a part of the line; bytes that are not UTF-8 are [`Value::Bytes`].
    Part(Value<'a>),
}

/// The text of a slot where rendering its value would give another one (`2.70`, `\u00e9`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix<'a> {
    /// Index of the slot in the shape.
    pub slot: u16,
    /// What stands in the line.
    pub text: Cow<'a, [u8]>,
}

/// One log record: identity, times, message, fields and the way back to its line.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// The record's id; together with the time it gives the total order of records.
    pub id: Id,
    /// Event time.
    pub time: Timestamp,
    /// Where the event time came from.
    pub time_source: TimeSource,
    /// When the record was received; never decreases within an incarnation.
    pub received: Timestamp,
    /// The message.
    pub message: Message<'a>,
    /// How the line is rebuilt.
    pub shape: Arc<Shape>,
    /// What fills the shape's slots, one value per slot.
    ///
    /// Invariant: as long as `shape.slots()`. Slots of kind `Time` and `Null` and the message slot
    /// hold `Value::Null` here; the time and the message are in their own fields.
    pub values: Vec<Value<'a>>,
    /// Slots whose text differs from what their value renders to, in slot order.
    pub fixes: Vec<Fix<'a>>,
    /// Fields that are not part of the line: the sender's labels. One whose name a field of the line
    /// has is there under another one, see [`Shape::label_name`].
    pub labels: Vec<(Cow<'a, str>, Value<'a>)>,
    /// The whole line, where the shape cannot rebuild it.
    pub whole: Option<Cow<'a, [u8]>>,
}

impl<'a> Record<'a> {
    /// The fields in the order of the line, then the labels. A name occurs once.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value<'a>)> {
        let in_line = self
            .shape
            .slots()
            .iter()
            .zip(&self.values)
            .filter_map(|(slot, value)| slot.is_field().then_some((&*slot.name, value)));
        in_line.chain(self.labels.iter().map(|(name, value)| (&**name, value)))
    }

    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        if let Some(slot) = self.shape.field_slot(name) {
            return self.values.get(slot);
        }
        let mut labels = self.labels.iter();
        labels.find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// Appends the original line, without a line end.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        self.write_line_with(|_| None, out);
    }

    /// Appends the line with other texts in some slots, by their index. A line that is kept whole stays as it is.
    pub fn write_line_with<'t>(
        &self,
        other: impl Fn(usize) -> Option<&'t [u8]>,
        out: &mut Vec<u8>,
    ) {
        if let Some(whole) = &self.whole {
            out.extend_from_slice(whole);
            return;
        }
        let message_slot = self.shape.message_slot();
        let mut fixes = self.fixes.iter().peekable();
        self.shape.render_fixed(
            self.time,
            |index| match &self.message {
                Message::Part(message) if Some(index) == message_slot => message.clone(),
                _ => self.values.get(index).cloned().unwrap_or(Value::Null),
            },
            |index| {
                let fix = fixes.next_if(|fix| usize::from(fix.slot) == index);
                other(index).or(fix.map(|fix| &*fix.text))
            },
            out,
        );
    }

    /// Appends the message: nothing where it is absent, the line where it is the line.
    pub fn write_message(&self, out: &mut Vec<u8>) {
        match &self.message {
            Message::Absent => {}
            Message::Line => self.write_line(out),
            Message::Part(value) => value.write_text(out),
        }
    }

    /// The same record without borrowed parts.
    pub fn into_owned(self) -> Record<'static> {
        let owned = |text: Cow<'_, [u8]>| Cow::Owned(text.into_owned());
        Record {
            id: self.id,
            time: self.time,
            time_source: self.time_source,
            received: self.received,
            message: match self.message {
                Message::Absent => Message::Absent,
                Message::Line => Message::Line,
                Message::Part(value) => Message::Part(value.into_owned()),
            },
            shape: self.shape,
            values: self.values.into_iter().map(Value::into_owned).collect(),
            fixes: self
                .fixes
                .into_iter()
                .map(|f| Fix {
                    slot: f.slot,
                    text: owned(f.text),
                })
                .collect(),
            labels: self
                .labels
                .into_iter()
                .map(|(name, value)| (Cow::Owned(name.into_owned()), value.into_owned()))
                .collect(),
            whole: self.whole.map(owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time_source::Assumption;

    fn record(shape: &str, values: Vec<Value<'static>>) -> Record<'static> {
        Record {
            id: Id(1),
            time: Timestamp(0),
            time_source: TimeSource::Line(Assumption::Nothing),
            received: Timestamp(0),
            message: Message::Absent,
            shape: Arc::new(Shape::new(shape).unwrap()),
            values,
            fixes: Vec::new(),
            labels: vec![("hostname".into(), Value::Str("web-1".into()))],
            whole: None,
        }
    }

    fn line(record: &Record<'_>) -> String {
        let mut out = Vec::new();
        record.write_line(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fixes_replace_what_a_slot_renders() {
        let mut r = record(
            r#"{"a":⟨a:f⟩,"b":⟨b:i⟩}"#,
            vec![Value::Float(2.7), Value::Int(1)],
        );
        assert_eq!(line(&r), r#"{"a":2.7,"b":1}"#);
        r.fixes.push(Fix {
            slot: 0,
            text: Cow::Borrowed(b"2.70"),
        });
        assert_eq!(line(&r), r#"{"a":2.70,"b":1}"#);
        assert_eq!(r.field("hostname"), Some(&Value::Str("web-1".into())));
        assert_eq!(r.fields().count(), 3);
    }

    #[test]
    fn the_whole_line_wins() {
        let mut r = record("⟨_msg:t⟩", vec![Value::Null]);
        r.message = Message::Part(Value::Str("x".into()));
        assert_eq!(line(&r), "x");
        r.whole = Some(Cow::Borrowed(b"y"));
        assert_eq!(line(&r), "y");
    }
}
