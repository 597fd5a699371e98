//! Bodies of `POST /api/v1/push`: newline-delimited JSON objects, lines of text, or entries with
//! envelopes; and, below it, bodies of the push APIs of others.
//!
//! Invariants: a bad line never takes a good one with it, and every line is either accepted or
//! rejected with its number and a reason. Only the list of rejections is cut, never their count.
//!
//! Of JSON an object a line is a record, and each object of an array; an object or an array may take several lines.
//! Blank lines between JSON objects are no records. Of text every line is one, also an empty one,
//! and all of its bytes but the LF are kept. A body of very many lines is refused as a whole
//! ([`BATCH_RECORDS_MAX`]): lines are never left out of one that is taken.

pub mod elastic;
pub mod fluent;
pub mod gelf;
pub mod entries;
pub mod loki;
pub mod otlp;
pub mod splunk;
pub mod pubsub;
pub mod firehose;
pub mod datadog;
pub mod logplex;
mod arrays;
mod bounded;
mod layers;
mod members;
mod moments;

use std::fmt;

use logpond_record::limits::{
    FIELD_NAME_BYTES_MAX, FIELDS_MAX, LINE_BYTES_DEFAULT, LINE_BYTES_MAX,
};
use logpond_record::{Batch, EntryKind, Labels, Timestamp, Value, envelope};
use memchr::{memchr, memchr_iter};

use super::json::{self, JsonError};
use super::{headers, without_mark};
use arrays::Values;

/// Rejections that are listed one by one: enough to find the mistake, small enough for an answer.
pub const REJECTIONS_MAX: usize = 100;

/// What the lines of a body are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushForm {
    /// `application/x-ndjson`: a JSON object a line, or arrays of objects.
    NdJson,
    /// `text/plain`: a record a line.
    Text,
    /// [`entries::CONTENT_TYPE`]: lines with what is known of each, see [`entries`].
    Entries,
}

impl PushForm {
    /// The form that a `Content-Type` header names; `None` if it is not supported.
    pub fn from_header(value: &str) -> Option<PushForm> {
        let name = value.split(';').next().unwrap_or("").trim();
        match name.to_ascii_lowercase().as_str() {
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines"
            | "application/json"
            | "application/stream+json" => Some(PushForm::NdJson),
            "text/plain" => Some(PushForm::Text),
            entries::CONTENT_TYPE => Some(PushForm::Entries),
            _ => None,
        }
    }
}

/// Why a line is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// It is not one JSON object.
    NotAnObject(JsonError),
    /// It is longer than the limit; both in bytes.
    TooLong {
        /// Length of the line.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// It is not what its protocol wants; why, in words.
    Malformed(String),
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RejectReason::NotAnObject(error) => write!(f, "not a JSON object: {error}"),
            RejectReason::TooLong { bytes, bytes_max } => write!(
                f,
                "the line has {bytes} bytes, more than the limit of {bytes_max} bytes a line \
                 (line-bytes-max)"
            ),
            RejectReason::Malformed(reason) => f.write_str(reason),
        }
    }
}

/// A line that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Number of the line in the body, counted from 1.
    pub line: usize,
    /// Why.
    pub reason: RejectReason,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// A decoded body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedBody {
    /// The accepted lines.
    pub batch: Batch,
    /// How many there are.
    pub accepted: usize,
    /// The first [`REJECTIONS_MAX`] lines that were not accepted.
    pub rejected: Vec<Rejection>,
    /// How many were not accepted.
    pub rejected_total: usize,
}

impl DecodedBody {
    /// Nothing but an empty batch.
    fn new(batch: Batch) -> DecodedBody {
        DecodedBody {
            batch,
            accepted: 0,
            rejected: Vec::new(),
            rejected_total: 0,
        }
    }

    /// Takes a line in, or notes why not.
    fn add(
        &mut self,
        number: usize,
        line: &[u8],
        checked: Result<(), RejectReason>,
    ) -> Result<(), TooLarge> {
        match checked {
            Ok(()) => self.batch.push(line),
            Err(reason) => self.reject(number, reason),
        }
        TooLarge::check(&self.batch)
    }

    fn reject(&mut self, line: usize, reason: RejectReason) {
        self.rejected_total += 1;
        if self.rejected.len() < REJECTIONS_MAX {
            self.rejected.push(Rejection { line, reason });
        }
    }

    /// The same once everything is in the batch.
    fn finished(mut self) -> DecodedBody {
        self.accepted = self.batch.len();
        self
    }
}

/// The most bytes that the records of one body may take in the journal. What senders say once for
/// many lines is repeated for each, so a small body can become a large batch. As many as the longest body has.
pub const BATCH_BYTES_MAX: usize = 64 << 20;

/// The most records of one body. Each costs memory and disk beside its bytes, so that a small body of
/// nothing but line ends would cost more than the longest one of lines. As many as a file of the journal
/// has; the longest body has so many of 64 bytes.
pub const BATCH_RECORDS_MAX: usize = 1 << 20;

/// Why the records of a body are too much for one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLarge {
    /// They take more than [`BATCH_BYTES_MAX`].
    Bytes,
    /// They are more than [`BATCH_RECORDS_MAX`].
    Records,
}

impl TooLarge {
    /// Whether a batch is.
    ///
    /// # Errors
    /// When it is.
    fn check(batch: &Batch) -> Result<(), TooLarge> {
        if batch.len() > BATCH_RECORDS_MAX {
            return Err(TooLarge::Records);
        }
        if batch.payload().len() > BATCH_BYTES_MAX {
            Err(TooLarge::Bytes)
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TooLarge::Bytes => write!(
                f,
                "with its labels repeated for each record the body takes more than {} MiB; send \
                 smaller ones",
                BATCH_BYTES_MAX >> 20
            ),
            TooLarge::Records => write!(
                f,
                "the body has more than {BATCH_RECORDS_MAX} records; nothing of it was taken: send it \
                 in parts"
            ),
        }
    }
}

impl std::error::Error for TooLarge {}

/// Records on their way into the batch of one body, each with what its sender said of it.
struct Shipment {
    pushed: DecodedBody,
    line_bytes_max: usize,
    /// Records so far, taken or not.
    records: usize,
}

impl Shipment {
    /// Nothing yet. `labels` are fields of all records; lines longer than `line_bytes_max`, at most
    /// [`LINE_BYTES_MAX`], are rejected.
    fn new(labels: Labels, line_bytes_max: usize) -> Shipment {
        Shipment {
            pushed: DecodedBody::new(Batch::new(EntryKind::Enveloped, labels)),
            line_bytes_max: line_bytes_max.min(LINE_BYTES_MAX),
            records: 0,
        }
    }

    /// Takes a record in, or notes why not; a time that cannot be read is such a reason. Of fields with one name the
    /// first keeps it, see [`layers`].
    fn add<'f>(
        &mut self,
        kind: EntryKind,
        time: Result<Option<Timestamp>, RejectReason>,
        fields: impl Iterator<Item = (&'f str, &'f Value<'f>)> + Clone,
        line: &[u8],
    ) -> Result<(), TooLarge> {
        let apart = layers::apart(fields.clone());
        let names_checked = match &apart {
            Some(fields) => check_names(fields.iter().map(|(name, _)| &**name)),
            None => check_names(fields.clone().map(|(name, _)| name)),
        };
        let checked = check(kind, line, self.line_bytes_max)
            .and(names_checked)
            .and(time)
            .and_then(|time| check_time(time).map(|()| time));
        let time = match checked {
            Ok(time) => time,
            Err(reason) => {
                self.reject(reason);
                return Ok(());
            }
        };
        self.records += 1;
        let batch = &mut self.pushed.batch;
        match apart {
            Some(fields) => {
                let fields = fields.iter().map(|(name, value)| (&**name, *value));
                put(batch, kind, time, fields, line)
            }
            None => put(batch, kind, time, fields, line),
        }
    }

    /// Notes that the next record is not taken.
    fn reject(&mut self, reason: RejectReason) {
        self.records += 1;
        self.pushed.reject(self.records, reason);
    }

    fn finish(self) -> DecodedBody {
        self.pushed.finished()
    }
}

/// Appends a record with what its sender said of it, as long as there is room.
fn put<'f>(
    batch: &mut Batch,
    kind: EntryKind,
    time: Option<Timestamp>,
    fields: impl IntoIterator<Item = (&'f str, &'f Value<'f>)>,
    line: &[u8],
) -> Result<(), TooLarge> {
    batch.push_enveloped(kind, time, fields, line);
    TooLarge::check(batch)
}

/// The lines of a body without their LF. A last one without it is one, too.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = memchr(b'\n', self.0);
        let line = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = &self.0[end.map_or(self.0.len(), |end| end + 1)..];
        Some(line)
    }
}

/// A line without the CR that some senders end it with.
fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Decodes a body, which is as long as the caller allows. Lines longer than `line_bytes_max`, at
/// most [`LINE_BYTES_MAX`], are rejected.
///
/// # Errors
/// When it has too many records for one batch; nothing of it is taken then.
pub fn decode(
    form: PushForm,
    body: &[u8],
    labels: Labels,
    line_bytes_max: usize,
) -> Result<DecodedBody, TooLarge> {
    let line_bytes_max = line_bytes_max.min(LINE_BYTES_MAX);
    match form {
        PushForm::NdJson => decode_json(body, labels, line_bytes_max),
        PushForm::Text => decode_text(body, labels, line_bytes_max),
        PushForm::Entries => entries::decode(body, labels, line_bytes_max),
    }
}

fn decode_json(
    body: &[u8],
    labels: Labels,
    line_bytes_max: usize,
) -> Result<DecodedBody, TooLarge> {
    let mut pushed = DecodedBody::new(Batch::new(EntryKind::Json, labels));
    // Editors on Windows begin files with a byte order mark, which JSON does not allow.
    let body = without_mark(body);
    let mut values = Values::new(body, line_bytes_max);
    let (mut at, mut number) = (0, 1);
    while at < body.len() {
        if let Some(end) = values.take(at, number, &mut pushed)? {
            number += memchr_iter(b'\n', &body[at..end]).count();
            at = end;
            continue;
        }
        let end = memchr(b'\n', &body[at..]).map_or(body.len(), |length| at + length);
        let line = without_cr(&body[at..end]);
        if !line.trim_ascii().is_empty() {
            pushed.add(number, line, check(EntryKind::Json, line, line_bytes_max))?;
        }
        (at, number) = (end + 1, number + 1);
    }
    Ok(pushed.finished())
}

fn decode_text(
    body: &[u8],
    mut labels: Labels,
    line_bytes_max: usize,
) -> Result<DecodedBody, TooLarge> {
    headers::declare_for(body, &mut labels);
    let mut pushed = DecodedBody::new(Batch::new(EntryKind::Line, labels));
    for (line, number) in Lines(body).zip(1..) {
        pushed.add(number, line, check(EntryKind::Line, line, line_bytes_max))?;
    }
    Ok(pushed.finished())
}

/// Leaves out of a batch that came whole what [`decode`] would reject: JSON entries that are no
/// objects, what is no envelope, and lines longer than `line_bytes_max`, which is at most
/// [`LINE_BYTES_MAX`].
pub fn screen(batch: Batch, line_bytes_max: usize) -> DecodedBody {
    let line_bytes_max = line_bytes_max.min(LINE_BYTES_MAX);
    let kind = batch.kind;
    let is_sound = batch
        .iter()
        .all(|line| check(kind, line, line_bytes_max).is_ok());
    let mut pushed = DecodedBody::new(Batch::new(kind, batch.labels.clone()));
    if is_sound {
        pushed.batch = batch
    } else {
        for (index, line) in batch.iter().enumerate() {
            match check(kind, line, line_bytes_max) {
                Ok(()) => pushed.batch.push(line),
                Err(reason) => pushed.reject(index + 1, reason),
            }
        }
    }
    pushed.finished()
}

/// [`decode`] with the default limit of a line.
///
/// # Errors
/// As for [`decode`].
pub fn decode_default(
    form: PushForm,
    body: &[u8],
    labels: Labels,
) -> Result<DecodedBody, TooLarge> {
    decode(form, body, labels, LINE_BYTES_DEFAULT)
}

/// Times that senders may give: from 1970 up to 2200. Nobody asks for records of other times.
const TIMES: std::ops::Range<Timestamp> = Timestamp(0)..Timestamp(7_258_118_400_000_000_000);

/// Whether a sender may give this time.
pub(super) fn may_be_given(time: Timestamp) -> bool {
    TIMES.contains(&time)
}

/// Whether a record may have this time.
fn check_time(time: Option<Timestamp>) -> Result<(), RejectReason> {
    if time.is_none_or(may_be_given) {
        Ok(())
    } else {
        Err(RejectReason::Malformed(
            "its time is before 1970 or after 2199".to_owned(),
        ))
    }
}

/// Whether a record may have fields of these names: nothing of it is left out in silence.
pub(super) fn check_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), RejectReason> {
    let malformed = |reason: String| Err(RejectReason::Malformed(reason));
    let mut count = 0;
    for name in names {
        count += 1;
        if name.is_empty() {
            return malformed("a field has no name".to_owned());
        }
        if name.len() > FIELD_NAME_BYTES_MAX {
            let begin: String = name.chars().take(40).collect();
            return malformed(format!(
                "the name of a field, '{begin}…', is longer than {FIELD_NAME_BYTES_MAX} bytes"
            ));
        }
    }
    if count > FIELDS_MAX {
        malformed(format!("it has more than {FIELDS_MAX} fields"))
    } else {
        Ok(())
    }
}

fn check(kind: EntryKind, held: &[u8], line_bytes_max: usize) -> Result<(), RejectReason> {
    let too_long = |bytes_max| RejectReason::TooLong {
        bytes: held.len(),
        bytes_max,
    };
    match kind {
        // What stands beside a line is no part of it, but has the room of the longest one only.
        EntryKind::Enveloped if held.len() > LINE_BYTES_MAX => Err(too_long(LINE_BYTES_MAX)),
        EntryKind::Enveloped => match envelope::open(held) {
            Some((kind, envelope, line)) => {
                check_time(envelope.time).and_then(|()| check(kind, line, line_bytes_max))
            }
            None => Err(RejectReason::Malformed("it is no envelope".to_owned())),
        },
        _ if held.len() > line_bytes_max => Err(too_long(line_bytes_max)),
        EntryKind::Json => json::validate(held).map_err(RejectReason::NotAnObject),
        EntryKind::Line | EntryKind::Syslog | EntryKind::Text => Ok(()),
    }
}

#[cfg(test)]
mod tests;
