//! Splunk's HTTP Event Collector (HEC): JSON objects, one behind the other, each with an event and
//! what is said of it; or lines as they are.
//!
//! ```text
//! {"time":1763805600.5,"host":"web-1","source":"app","event":"started","fields":{"n":1}}
//! ```
//!
//! `host` becomes the field `hostname`; `source`, `sourcetype`, `index` and `fields` keep their names.
//! An event that is text is a line, whose form is recognised as anywhere else; an object is a JSON
//! record. Docker's log driver puts each line of a container into an object (`{"line":"started",
//! "source":"stdout","tag":"0123456789ab"}`): there the line is what it is inside, and the others are
//! fields, as in Docker's files.
//!
//! Invariants:
//! - A bad event costs no other one: those before and behind it are taken. Only an event whose JSON has no end
//!   takes the rest of its line along, see [`end_of_bad`].
//! - Each byte is looked at a bounded number of times, whatever is in the body.

use std::borrow::Cow;
use std::fmt;

use logpond_record::limits::LINE_BYTES_MAX;
use logpond_record::{Batch, EntryKind, Labels, Timestamp, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::members::{Fields, Members, flatten, keep_last};
use super::{
    DecodedBody, Lines, REJECTIONS_MAX, RejectReason, Shipment, TooLarge, check, check_names,
    check_time, put, without_cr,
};

const NANOS: i64 = 1_000_000_000;

/// Why a request is refused, at one of its events or as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HecError {
    /// There is nothing in it.
    NoData,
    /// An event is no JSON object as it should be.
    Format(String),
    /// An event without an `event`.
    EventRequired,
    /// An event whose `event` is empty.
    EventBlank,
    /// `fields` that are not flat, or that cannot be taken.
    Fields(String),
    /// An event that is too long, or has a bad time.
    Rejected(RejectReason),
    /// More than can be taken at once.
    TooLarge(TooLarge),
}

impl HecError {
    /// The number that senders know.
    pub fn code(&self) -> u32 {
        match self {
            HecError::NoData => 5,
            HecError::Format(_) | HecError::Rejected(_) | HecError::TooLarge(_) => 6,
            HecError::EventRequired => 12,
            HecError::EventBlank => 13,
            HecError::Fields(_) => 15,
        }
    }
}

impl fmt::Display for HecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HecError::NoData => f.write_str("No data"),
            HecError::Format(reason) => write!(f, "Invalid data format: {reason}"),
            HecError::EventRequired => f.write_str("Event field is required"),
            HecError::EventBlank => f.write_str("Event field cannot be blank"),
            HecError::Fields(reason) => write!(f, "Error in handling indexed fields: {reason}"),
            HecError::Rejected(reason) => write!(f, "Invalid data format: {reason}"),
            HecError::TooLarge(error) => write!(f, "Invalid data format: {error}"),
        }
    }
}

/// What was read of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// The good events.
    pub batch: Batch,
    /// The first [`REJECTIONS_MAX`] bad ones: their numbers from 0, and why.
    pub bad: Vec<(usize, HecError)>,
    /// How many were bad.
    pub bad_total: usize,
}

impl Events {
    fn reject(&mut self, number: usize, error: HecError) {
        self.bad_total += 1;
        if self.bad.len() < REJECTIONS_MAX {
            self.bad.push((number, error));
        }
    }
}

/// What the address of a request says of all of its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Names of fields and their values.
    pub fields: Labels,
    /// The time.
    pub time: Option<Timestamp>,
}

/// Names of what is said of events, and of the fields that they become.
pub const METADATA: [(&str, &str); 4] = [
    ("host", "hostname"),
    ("source", "source"),
    ("sourcetype", "sourcetype"),
    ("index", "index"),
];

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    time: Option<&'a RawValue>,
    #[serde(borrow)]
    host: Option<Cow<'a, str>>,
    #[serde(borrow)]
    source: Option<Cow<'a, str>>,
    #[serde(borrow)]
    sourcetype: Option<Cow<'a, str>>,
    #[serde(borrow)]
    index: Option<Cow<'a, str>>,
    #[serde(borrow)]
    fields: Option<Members<'a>>,
}

/// Decodes events.
///
/// # Errors
/// See [`TooLarge`].
pub fn decode(body: &[u8], metadata: &Metadata, line_bytes_max: usize) -> Result<Events, TooLarge> {
    let mut events = Events {
        batch: Batch::new(EntryKind::Enveloped, Labels::new()),
        bad: Vec::new(),
        bad_total: 0,
    };
    let line_bytes_max = line_bytes_max.min(LINE_BYTES_MAX);
    let mut number = 0;
    let mut take = |event: serde_json::Result<Event<'_>>, number| {
        let read = event.map_err(|error| HecError::Format(error.to_string()));
        match read.and_then(|event| add(event, metadata, line_bytes_max, &mut events.batch)) {
            Err(HecError::TooLarge(error)) => return Err(error),
            Err(error) => events.reject(number, error),
            Ok(()) => {}
        }
        Ok(())
    };
    // As long as events can be read, their ends are known by reading them.
    let mut stream = serde_json::Deserializer::from_slice(body).into_iter::<Event<'_>>();
    let mut rest = body;
    while let Some(event) = stream.next() {
        let is_read = event.is_ok();
        rest = &body[stream.byte_offset()..];
        if !is_read {
            break;
        }
        take(event, number)?;
        number += 1;
        rest = b"";
    }
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            break;
        }
        let (event, behind) = rest.split_at(end_of_bad(rest));
        take(serde_json::from_slice(event), number)?;
        number += 1;
        rest = behind;
    }
    if number == 0 {
        events.reject(0, HecError::NoData);
    }
    Ok(events)
}

/// The end of an event that may be bad, by its brackets alone. It is at the latest before a line that begins with
/// a bracket: JSON has no line ends in its texts, and who indents an event puts blanks before those within.
/// Text that is no object ends before the next object.
fn end_of_bad(text: &[u8]) -> usize {
    let (mut depth, mut is_text, mut is_escaped) = (0usize, false, false);
    let is_object = text.first() == Some(&b'{');
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\n' if text.get(at + 1) == Some(&b'{') => return at + 1,
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' if is_object => is_text = !is_text,
            _ if is_text => {}
            b'{' if at > 0 && !is_object => return at,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if is_object => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

fn add(
    event: Event<'_>,
    metadata: &Metadata,
    line_bytes_max: usize,
    batch: &mut Batch,
) -> Result<(), HecError> {
    let said = event.event.ok_or(HecError::EventRequired)?;
    let docker = DockerLine::of(said);
    let (kind, line) = match &docker {
        // A container's line may be empty.
        Some(DockerLine { line, .. }) if line.get() == "\"\"" => (EntryKind::Line, "".into()),
        Some(docker) => line_of(docker.line)?,
        None => line_of(said)?,
    };
    let time = match event.time {
        None => metadata.time,
        Some(time) => Some(seconds(time.get().trim_matches('"')).map_err(HecError::Rejected)?),
    };
    let mut fields = Fields::new();
    if let Some(docker) = docker {
        docker.add_to(&mut fields);
    }
    let beside = fields.len();
    for (name, value) in event.fields.into_iter().flat_map(|members| members.0) {
        if value.get().starts_with('{') {
            return Err(HecError::Fields("an object in 'fields'".to_owned()));
        }
        flatten(name, value, &mut fields);
    }
    keep_last(&mut fields, beside);
    let own = [event.host, event.source, event.sourcetype, event.index];
    for ((_, name), value) in METADATA.into_iter().zip(own) {
        match value {
            Some(value) => fields.push((name.into(), Value::Str(value))),
            None => {
                let given = metadata.fields.iter().filter(|(given, _)| **given == *name);
                fields.extend(given.map(|(_, value)| (name.into(), text(value))));
            }
        }
    }
    let checked = check(kind, line.as_bytes(), line_bytes_max).and_then(|()| check_time(time));
    checked.map_err(HecError::Rejected)?;
    let names = fields.iter().map(|(name, _)| &**name);
    check_names(names).map_err(|reason| HecError::Fields(reason.to_string()))?;
    let each = fields.iter().map(|(name, value)| (&**name, value));
    put(batch, kind, time, each, line.as_bytes()).map_err(HecError::TooLarge)
}

/// What Docker's log driver makes of a container's line, unless its format is `raw`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DockerLine<'a> {
    /// Text; an object with the format `json`.
    #[serde(borrow)]
    line: &'a RawValue,
    #[serde(borrow)]
    source: Cow<'a, str>,
    #[serde(borrow)]
    tag: Option<Cow<'a, str>>,
    #[serde(borrow)]
    attrs: Option<Members<'a>>,
}

impl<'a> DockerLine<'a> {
    fn of(said: &'a RawValue) -> Option<DockerLine<'a>> {
        if !said.get().starts_with('{') {
            return None;
        }
        let read: DockerLine<'a> = serde_json::from_str(said.get()).ok()?;
        let is_line = read.line.get().starts_with(['"', '{']);
        (is_line && ["stdout", "stderr"].contains(&&*read.source)).then_some(read)
    }

    fn add_to(self, fields: &mut Fields<'a>) {
        fields.push(("stream".into(), Value::Str(self.source)));
        fields.extend(self.tag.map(|tag| ("tag".into(), Value::Str(tag))));
        for (name, value) in self.attrs.into_iter().flat_map(|attributes| attributes.0) {
            flatten(name, value, fields);
        }
    }
}

fn text(value: &str) -> Value<'_> {
    Value::Str(Cow::Borrowed(value))
}

/// The line that an event is.
fn line_of(said: &RawValue) -> Result<(EntryKind, Cow<'_, str>), HecError> {
    let json = said.get();
    match json.as_bytes().first() {
        Some(b'{') => Ok((EntryKind::Json, Cow::Borrowed(json))),
        Some(b'"') => {
            let text: String =
                serde_json::from_str(json).map_err(|error| HecError::Format(error.to_string()))?;
            if text.is_empty() {
                Err(HecError::EventBlank)
            } else {
                Ok((EntryKind::Line, Cow::Owned(text)))
            }
        }
        _ if json == "null" => Err(HecError::EventRequired),
        _ => Ok((EntryKind::Line, Cow::Borrowed(json))),
    }
}

/// Reads Unix time in seconds, with a fraction or not.
///
/// # Errors
/// When it is none.
pub fn seconds(text: &str) -> Result<Timestamp, RejectReason> {
    let read = || {
        let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = format!("{:0<9}", &fraction[..fraction.len().min(9)]);
        let nanos: u32 = digits.parse().ok()?;
        let seconds: i64 = whole.parse().ok()?;
        let time = seconds.checked_mul(NANOS)?;
        let nanos = i64::from(nanos);
        time.checked_add(if whole.starts_with('-') {
            -nanos
        } else {
            nanos
        })
    };
    read().map(Timestamp).ok_or_else(|| {
        let text: String = text.chars().take(40).collect();
        RejectReason::Malformed(format!(
            "time '{}' is no number of seconds",
            text.escape_debug()
        ))
    })
}

/// Decodes lines as they are; blank ones are none, as with Splunk.
///
/// # Errors
/// See [`TooLarge`].
pub fn decode_raw(
    body: &[u8],
    metadata: &Metadata,
    line_bytes_max: usize,
) -> Result<DecodedBody, TooLarge> {
    let mut shipment = Shipment::new(metadata.fields.clone(), line_bytes_max);
    let lines = Lines(body).map(without_cr);
    for line in lines.filter(|line| !line.trim_ascii().is_empty()) {
        shipment.add(EntryKind::Line, Ok(metadata.time), std::iter::empty(), line)?;
    }
    Ok(shipment.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(events: &Events) -> Vec<String> {
        let each = events.batch.iter().map(|held| {
            let (kind, envelope, line) = logpond_record::line_of(events.batch.kind, held);
            let mut out = format!("{kind:?} {:?}", envelope.time.map(|time| time.0));
            for (name, value) in envelope.fields() {
                out += &format!(" {name}={}", value.to_text().escape_ascii());
            }
            out + " | " + &line.escape_ascii().to_string()
        });
        each.collect()
    }

    #[test]
    fn events_stand_one_behind_the_other() {
        let body = r#"{"event":"one","time":1763805600.5,"host":"web-1","sourcetype":"app"}{"event":{"n":1},
            "fields":{"a":1,"b":1.5,"c":true,"d":"x","e":[1],"f":null},"time":"1763805601"}
            {"event":7,"index":"own","time":0.25}"#;
        let metadata = Metadata {
            fields: vec![
                ("index".into(), "given".into()),
                ("hostname".into(), "h".into()),
            ],
            time: Some(Timestamp(5)),
        };
        let read = decode(body.as_bytes(), &metadata, 100).unwrap();
        assert_eq!(read.bad, []);
        assert_eq!(
            events(&read),
            [
                "Line Some(1763805600500000000) hostname=web-1 sourcetype=app index=given | one",
                "Json Some(1763805601000000000) a=1 b=1.5 c=true d=x e=[1] f=null hostname=h \
                 index=given | {\\\"n\\\":1}",
                "Line Some(250000000) hostname=h index=own | 7",
            ]
        );
    }

    #[test]
    fn lines_of_docker_are_what_they_are_inside() {
        let body = r#"{"event":{"line":"up\ttabs \"x\"","source":"stdout","tag":"a1"},"time":"1.5","host":"h","source":"src"}
            {"event":{"line":{"n":1},"source":"stderr","tag":"a1","attrs":{"com.x":"y"}}}
            {"event":{"line":"","source":"stdout"}}
            {"event":{"line":"x","source":"file"}}
            {"event":{"line":"x","source":"stdout","more":1}}
            {"event":{"line":7,"source":"stdout"}}"#;
        let read = decode(body.as_bytes(), &Metadata::default(), 100).unwrap();
        assert_eq!(read.bad, []);
        assert_eq!(
            events(&read),
            [
                r#"Line Some(1500000000) stream=stdout tag=a1 hostname=h source=src | up\ttabs \"x\""#,
                r#"Json None stream=stderr tag=a1 com.x=y | {\"n\":1}"#,
                "Line None stream=stdout | ",
                r#"Json None | {\"line\":\"x\",\"source\":\"file\"}"#,
                r#"Json None | {\"line\":\"x\",\"source\":\"stdout\",\"more\":1}"#,
                r#"Json None | {\"line\":7,\"source\":\"stdout\"}"#,
            ]
        );
    }

    #[test]
    fn numbers_are_exact() {
        let body = r#"{"event":"x","fields":{"a":100000000000000001,"b":-9223372036854775808,"c":1.10,
            "d":18446744073709551615,"e":0.1,"f":1e400}}"#;
        let read = decode(body.as_bytes(), &Metadata::default(), 100).unwrap();
        assert_eq!(read.bad, []);
        assert_eq!(
            events(&read),
            [
                "Line None a=100000000000000001 b=-9223372036854775808 c=1.1 \
              d=18446744073709551615 e=0.1 f=1e400 | x"
            ]
        );
    }

    #[test]
    fn blank_lines_between_events_are_none() {
        let body =
            "\r\n{\"event\":\"one\"}\r\n\r\n \n{\"event\":\"two\"}\n{\"event\":\"three\"}\r\n\r\n";
        let read = decode(body.as_bytes(), &Metadata::default(), 20).unwrap();
        assert_eq!((read.batch.len(), read.bad_total), (3, 0));
    }

    #[test]
    fn a_bad_event_costs_no_other_one() {
        let good = r#"{"event":"good"}"#;
        let table: [(&[u8], u32); 19] = [
            (b"x", 6),
            (b"[1]", 6),
            (b"{}", 12),
            (br#"{"event":null}"#, 12),
            (br#"{"event":""}"#, 13),
            (br#"{"event":"x","time":"noon"}"#, 6),
            (br#"{"event":"x","time":-1}"#, 6),
            (br#"{"event":"x","fields":{"a":{"b":1}}}"#, 15),
            (br#"{"event":"x","fields":{"":1}}"#, 15),
            (br#"{"event":"longer than twenty bytes"}"#, 6),
            // Text where none may be, and JSON that is none.
            (br#"{"event":"x","host":7}"#, 6),
            (b"{\"event\":\"\xff\"}", 6),
            (br#"{"event":"\x"}"#, 6),
            (br#"{"event":NaN}"#, 6),
            (br#"{"event":"x",}"#, 6),
            (b"{'event':'x'}", 6),
            (b"{\n  \"event\": [\n    {\"a\": 01}\n  ]\n}", 6),
            // Brackets and quotes within a text are no ends of an event.
            (br#"{"event":"}\"{","time":x}"#, 6),
            (b"]", 6),
        ];
        for (bad, code) in table {
            let shown = bad.escape_ascii();
            let body = [good.as_bytes(), bad, good.as_bytes(), b"\n", bad].concat();
            let read = decode(&body, &Metadata::default(), 20).unwrap();
            let found: Vec<_> = read.bad.iter().map(|bad| (bad.0, bad.1.code())).collect();
            assert_eq!(found, [(1, code), (3, code)], "{shown}: {:?}", read.bad);
            assert_eq!((read.bad_total, read.batch.len()), (2, 2), "{shown}");
        }
    }

    #[test]
    fn an_event_without_an_end_costs_its_line() {
        let good = r#"{"event":"good"}"#;
        for bad in [r#"{"event":"x"#, r#"{"event":["#, r#"{"event"#, "{"] {
            let body = format!("{good}\n{bad}{good}\n{good}\r\n{good}\n{bad}");
            let read = decode(body.as_bytes(), &Metadata::default(), 20).unwrap();
            let numbers: Vec<usize> = read.bad.iter().map(|bad| bad.0).collect();
            assert_eq!((&numbers[..], read.batch.len()), (&[1, 4][..], 3), "{body}");
        }
    }

    #[test]
    fn a_request_without_events_is_bad() {
        for body in ["", " ", "\r\n"] {
            let read = decode(body.as_bytes(), &Metadata::default(), 20).unwrap();
            assert_eq!(read.bad, [(0, HecError::NoData)]);
        }
    }

    /// Many bad events are listed up to a bound, and take no time.
    #[test]
    fn bad_events_are_counted() {
        for bad in ["{\n", "{\"event\":[\n", "{\"event\":\"\n"] {
            let body = bad.repeat(200_000) + r#"{"event":"good"}"#;
            let read = decode(body.as_bytes(), &Metadata::default(), 20).unwrap();
            assert_eq!((read.bad.len(), read.batch.len()), (REJECTIONS_MAX, 1));
            assert!(read.bad_total >= 200_000, "{bad}");
        }
    }

    #[test]
    fn lines_are_taken_as_they_are() {
        let metadata = Metadata {
            fields: vec![("hostname".into(), "h".into())],
            time: None,
        };
        let pushed = decode_raw(
            b"one\r\n\r\n \n\ntwo\nlonger than ten bytes\r\n",
            &metadata,
            10,
        );
        let pushed = pushed.unwrap();
        assert_eq!((pushed.accepted, pushed.rejected_total), (2, 1));
        assert_eq!(pushed.rejected[0].line, 3);
        assert_eq!(pushed.batch.labels, metadata.fields);
    }

    #[test]
    fn times_are_exact() {
        let table = [
            ("0", Some(0)),
            ("1763805600.123456789", Some(1_763_805_600_123_456_789)),
            ("1763805600.1234567899", Some(1_763_805_600_123_456_789)),
            ("-1.5", Some(-1_500_000_000)),
            ("1.", Some(1_000_000_000)),
            ("", None),
            ("1.x", None),
            ("1.-5", None),
            ("99999999999999", None),
            ("1e9", None),
        ];
        for (text, time) in table {
            assert_eq!(seconds(text).ok(), time.map(Timestamp), "{text}");
        }
    }
}
