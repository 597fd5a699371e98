//! Formats whose columns a file lists itself: `#Fields` of the W3C Extended Log File Format, and Zeek's `#fields`
//! and `#types`.
//!
//! ```text
//! #Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port c-ip cs(User-Agent) sc-status
//! #fields⇥ts⇥uid⇥id.orig_h⇥id.orig_p⇥…
//! #types⇥time⇥string⇥addr⇥port⇥…
//! ```
//!
//! Values of W3C have blanks or a tab between them, and may be in quotes; date and time are UTC by definition but
//! for `date-local` and `time-local`. Known names become those that access logs have everywhere; all others keep
//! theirs, in lower case, with `_` for what is neither letter nor digit. `-` is no value. Names that are there twice
//! have a number behind them.

use std::collections::HashSet;

use logpond_record::limits::FIELD_NAME_BYTES_MAX;
use logpond_record::{Assumption, Timestamp};

use super::{FormatError, FormatReason, Times, VARIABLES_MAX, flow};
use crate::intake::access::{Clock, MILLISECOND, Pen, SECOND, Take, nanoseconds};
use crate::intake::access_format::DerivedFields;
use crate::intake::logfmt;
use crate::intake::outline::BODY_PREFIX;
use crate::intake::sketch::Sketch;

/// The longest name of a column: there is room for what is put before it.
const NAME_BYTES_MAX: usize = FIELD_NAME_BYTES_MAX - BODY_PREFIX.len();

const W3C_START: &str = "#Fields:";
const ZEEK_START: &str = "#fields\t";
const ZEEK_TYPES: &str = "#types\t";

/// Columns of W3C's format that have another name or another type than text.
const NAMES: [(&str, &str, Take); 36] = [
    ("c-ip", "remote_addr", Take::Text),
    ("c-port", "remote_port", Take::Number),
    ("c-dns", "c_dns", Take::Text),
    ("cs-username", "user", Take::Text),
    ("c-auth-id", "user", Take::Text),
    ("s-ip", "server_addr", Take::Text),
    ("s-port", "port", Take::Number),
    ("cs-method", "method", Take::Text),
    ("cs-uri-stem", "path", Take::Text),
    ("cs-uri-query", "query", Take::Text),
    ("cs-uri", "", Take::Target),
    ("cs-uri-scheme", "scheme", Take::Text),
    ("cs-protocol", "scheme", Take::Text),
    ("cs-version", "protocol", Take::Text),
    ("cs-protocol-version", "protocol", Take::Text),
    ("x-host-header", "host", Take::Text),
    ("cs-host", "host", Take::Text),
    ("cs(Host)", "host", Take::Text),
    ("sc-status", "status", Take::Status),
    ("sc-substatus", "sc_substatus", Take::Number),
    ("sc-win32-status", "sc_win32_status", Take::Number),
    ("sc-bytes", "bytes", Take::Number),
    ("bytes", "bytes", Take::Number),
    ("cs-bytes", "request_length", Take::Number),
    ("sc-content-len", "sc_content_len", Take::Number),
    ("sc-range-start", "sc_range_start", Take::Number),
    ("sc-range-end", "sc_range_end", Take::Number),
    ("cs(User-Agent)", "agent", Take::Plain),
    ("cs(Referer)", "referer", Take::Plain),
    ("cs(Referrer)", "referer", Take::Plain),
    ("cs(Cookie)", "cookie", Take::Text),
    ("x-forwarded-for", "http_x_forwarded_for", Take::Text),
    ("cs(X-Forwarded-For)", "http_x_forwarded_for", Take::Text),
    ("x-edge-request-id", "request_id", Take::Text),
    ("TimeTakenMS", "time_taken", Take::Took(MILLISECOND)),
    // IIS counts milliseconds; CloudFront seconds, always with a fraction.
    ("time-taken", "time_taken", Take::Took(MILLISECOND)),
];

/// The columns of a file.
#[derive(Debug, PartialEq)]
pub(crate) struct ColumnList {
    columns: Box<[Column]>,
    is_zeek: bool,
}

/// A column.
#[derive(Debug, PartialEq)]
struct Column {
    name: Box<str>,
    holds: Holds,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Holds {
    /// Date and time of day, which stand in two columns; the clock is that of both.
    Date(Clock),
    TimeOfDay,
    /// The record's time.
    Time(Clock),
    /// By the name.
    Known(Take),
    /// A number or a truth if it is written as one, else text.
    Typed,
}

impl ColumnList {
    /// Compiles a header; `None` if the definition is none.
    pub(super) fn new(definition: &str) -> Option<Result<ColumnList, FormatError>> {
        let (mut columns, is_zeek) = if let Some(fields) = definition.strip_prefix(W3C_START) {
            (w3c(fields), false)
        } else if flow::is_header(definition.as_bytes()) {
            let columns = flow::columns(definition).map(|(name, holds)| Column {
                name: own_name(name).into(),
                holds,
            });
            (columns.collect(), false)
        } else {
            (zeek(definition.strip_prefix(ZEEK_START)?), true)
        };
        if columns.len() <= VARIABLES_MAX {
            number_names(&mut columns);
        }
        let whole = |reason| Err(FormatError { at: 0, reason });
        let is_unfit = |column: &&Column| column.name.len() > NAME_BYTES_MAX;
        Some(match columns.len() {
            0 => whole(FormatReason::NoVariables),
            1..=VARIABLES_MAX => match columns.iter().find(is_unfit) {
                Some(column) => whole(FormatReason::Name(column.name.to_string())),
                None => Ok(ColumnList {
                    columns: columns.into(),
                    is_zeek,
                }),
            },
            _ => whole(FormatReason::TooMany),
        })
    }

    /// The number of values of a line.
    pub(super) fn count(&self) -> usize {
        self.columns.len()
    }

    /// Draws a line. `None` if it does not fit; the sketch is spoilt then.
    pub(crate) fn draw<'a>(
        &self,
        line: &'a str,
        times: Times<'_>,
        sketch: &mut Sketch<'_, 'a>,
    ) -> Option<DerivedFields<'a>> {
        if line.starts_with('#') || flow::is_header(line.as_bytes()) {
            return None;
        }
        let mut pen = Pen::new(sketch, times);
        let mut rest = line;
        let mut at = 0;
        let mut apart = Apart::default();
        while let Some(column) = self.columns.get(at) {
            if at > 0 {
                rest = self.separator(rest, &mut pen)?;
            }
            at += 1;
            if let Holds::Date(clock) = column.holds
                && self.is_before_time(at)
                && let Some(after) = self.date_and_time(rest, clock, &mut pen)
            {
                at += 1;
                rest = after;
                continue;
            }
            let before = rest;
            rest = match column.holds {
                Holds::Time(clock) => pen.time(rest, clock)?,
                _ => self.value(rest, column, &mut pen)?,
            };
            apart.note(column.holds, &before[..before.len() - rest.len()]);
        }
        if pen.drawn.time.is_none() {
            pen.drawn.time = apart.time(times);
        }
        if !rest.is_empty() {
            pen.surplus(rest);
        }
        Some(pen.finish())
    }

    /// True if the column at `at` is the time of the day.
    fn is_before_time(&self, at: usize) -> bool {
        let column = self.columns.get(at);
        column.is_some_and(|column| column.holds == Holds::TimeOfDay)
    }

    /// Draws what stands between two values; gives the rest.
    fn separator<'a>(&self, rest: &'a str, pen: &mut Pen<'_, '_, 'a, '_>) -> Option<&'a str> {
        let length = match rest.as_bytes().first()? {
            b'\t' => 1,
            b' ' if !self.is_zeek => rest.bytes().take_while(|byte| *byte == b' ').count(),
            _ => return None,
        };
        pen.sketch.literal(&rest[..length]);
        Some(&rest[length..])
    }

    /// Draws date and time, with a blank or a tab between them.
    fn date_and_time<'a>(
        &self,
        rest: &'a str,
        clock: Clock,
        pen: &mut Pen<'_, '_, 'a, '_>,
    ) -> Option<&'a str> {
        let with_tab = match clock {
            Clock::W3c => Clock::W3cTab,
            other => other,
        };
        let clocks = match rest.as_bytes().get(10)? {
            b'\t' => [with_tab, with_tab],
            _ => [clock.with_fraction(), clock],
        };
        clocks.into_iter().find_map(|clock| pen.time(rest, clock))
    }

    /// Draws a value; gives the rest.
    fn value<'a>(
        &self,
        rest: &'a str,
        column: &Column,
        pen: &mut Pen<'_, '_, 'a, '_>,
    ) -> Option<&'a str> {
        if self.is_zeek {
            let length = memchr::memchr(b'\t', rest.as_bytes()).unwrap_or(rest.len());
            let (value, rest) = rest.split_at(length);
            self.draw_value(column, value, pen)?;
            return Some(rest);
        }
        if let Some(inside) = rest.strip_prefix('"') {
            let end = memchr::memchr(b'"', inside.as_bytes())?;
            let (value, after) = (&inside[..end], &inside[end + 1..]);
            if after.is_empty() || after.starts_with([' ', '\t']) {
                pen.sketch.literal("\"");
                self.draw_value(column, value, pen)?;
                pen.sketch.literal("\"");
                return Some(after);
            }
        }
        let is_end = |byte: &u8| matches!(byte, b' ' | b'\t');
        let length = rest.bytes().position(|byte| is_end(&byte));
        let (value, rest) = rest.split_at(length.unwrap_or(rest.len()));
        self.draw_value(column, value, pen)?;
        Some(rest)
    }

    fn draw_value<'a>(
        &self,
        column: &Column,
        value: &'a str,
        pen: &mut Pen<'_, '_, 'a, '_>,
    ) -> Option<()> {
        if value == "-" && column.holds != Holds::Known(Take::Plain) {
            pen.sketch.literal("-");
            return Some(());
        }
        match column.holds {
            Holds::Known(Take::Took(_)) => {
                let unit = if value.contains('.') {
                    SECOND
                } else {
                    MILLISECOND
                };
                let take = match nanoseconds(value, unit) {
                    Some(_) => Take::Took(unit),
                    None => Take::Text,
                };
                pen.value(&column.name, take, value)
            }
            // A status that is none shows that the line is another one's.
            Holds::Known(Take::Number) if !is_number(value) => {
                pen.value(&column.name, Take::Text, value)
            }
            Holds::Known(take) => pen.value(&column.name, take, value),
            Holds::Typed => {
                let (value, kind, is_canonical) = logfmt::bare_value(value);
                let kind = if is_canonical { kind } else { b't' };
                pen.slot(&column.name, &char::from(kind).to_string(), value);
                Some(())
            }
            _ => pen.value(&column.name, Take::Text, value),
        }
    }
}

/// Date and time of day that do not stand side by side, or are in quotes.
#[derive(Default)]
struct Apart<'a> {
    date: Option<(Clock, &'a str)>,
    time: Option<&'a str>,
}

impl<'a> Apart<'a> {
    fn note(&mut self, holds: Holds, written: &'a str) {
        let value = written.trim_matches('"');
        match holds {
            Holds::Date(clock) => self.date = Some((clock, value)),
            Holds::TimeOfDay => self.time = Some(value),
            _ => {}
        }
    }

    fn time(&self, times: Times<'_>) -> Option<(Timestamp, Assumption)> {
        let ((clock, date), time) = (self.date?, self.time?);
        let text = format!("{date} {time}");
        let clocks = [clock.with_fraction(), clock].into_iter();
        let mut read = clocks.filter_map(|clock| clock.read(text.as_bytes(), times));
        let found = read.find(|found| found.bytes == text.len())?;
        Some((found.time, found.assumed))
    }
}

fn is_number(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// The columns of `#Fields:`.
fn w3c(fields: &str) -> Vec<Column> {
    let written: Vec<&str> = fields.split_ascii_whitespace().collect();
    let has_header_host = written.contains(&"x-host-header");
    let mut columns = Vec::with_capacity(written.len());
    for field in written {
        let known = NAMES.iter().find(|(name, ..)| *name == field);
        let (name, holds) = match (field, known) {
            ("date", _) => ("date".to_owned(), Holds::Date(Clock::W3c)),
            ("date-local", _) => ("date_local".to_owned(), Holds::Date(Clock::W3cLocal)),
            ("time" | "time-local", _) => (own_name(field), Holds::TimeOfDay),
            // The host that a client asked for, rather than that of the distribution.
            ("cs(Host)", _) if has_header_host => (own_name(field), Holds::Known(Take::Text)),
            (_, Some((_, name, take))) => ((*name).to_owned(), Holds::Known(*take)),
            (_, None) => (own_name(field), Holds::Known(Take::Text)),
        };
        columns.push(Column {
            name: name.into(),
            holds,
        });
    }
    columns
}

/// The columns of Zeek's `#fields`, with the types of the line behind it.
fn zeek(definition: &str) -> Vec<Column> {
    let (fields, types) = match definition.split_once('\n') {
        Some((fields, types)) => (fields, types.strip_prefix(ZEEK_TYPES).unwrap_or("")),
        None => (definition, ""),
    };
    let mut types = types.split('\t');
    let columns = fields.split('\t').enumerate().map(|(at, field)| {
        let kind = types.next().unwrap_or("");
        let holds = match kind {
            _ if at == 0 && field == "ts" => Holds::Time(Clock::Epoch),
            "count" | "int" | "port" | "double" | "interval" | "bool" => Holds::Typed,
            _ => Holds::Known(Take::Text),
        };
        Column {
            name: plain_name(field).into(),
            holds,
        }
    });
    columns.collect()
}

/// Gives names that are there twice a number. Bounded by the number of columns.
fn number_names(columns: &mut [Column]) {
    let mut taken = HashSet::new();
    // A target is several fields.
    taken.extend(
        columns
            .iter()
            .filter(|column| column.name.is_empty())
            .flat_map(|_| ["scheme", "host", "port", "path", "query"].map(str::to_owned)),
    );
    for column in columns.iter_mut().filter(|column| !column.name.is_empty()) {
        let own = column.name.to_string();
        let mut name = own.clone();
        for number in 2..=VARIABLES_MAX + 2 {
            if taken.insert(name.clone()) {
                break;
            }
            name = format!("{own}_{number}");
        }
        column.name = name.into();
    }
}

/// A column's own name as the name of a field.
fn own_name(field: &str) -> String {
    plain_name(&field.to_ascii_lowercase().replace(['.', '-'], "_"))
}

/// A name with `_` for what names of fields do not hold here; never one that begins with `_`, as those of intakes
/// do, and never an empty one.
fn plain_name(field: &str) -> String {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-');
    let letters = field
        .chars()
        .map(|letter| if is_part(letter) { letter } else { '_' });
    let name: String = letters.collect();
    match name.trim_matches('_') {
        "" => "column".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(definition: &str) -> String {
        let listed = ColumnList::new(definition).unwrap().unwrap();
        let names: Vec<&str> = listed.columns.iter().map(|column| &*column.name).collect();
        names.join(" ")
    }

    #[test]
    fn names_are_those_of_fields_and_unique() {
        let table = [
            (
                "#Fields: date time c-ip c-ip x(A-B) () ⟨x:t⟩ _time cs(Host) x-host-header",
                "date time remote_addr remote_addr_2 x_a_b column x_t time_2 cs_host host",
            ),
            (
                "#fields\tts\tid.orig_h\t_msg:t⟩\tts",
                "ts id.orig_h msg_t ts_2",
            ),
            ("#Fields: cs-uri path cs-uri-stem", " path_2 path_3"),
        ];
        for (definition, expected) in table {
            assert_eq!(names(definition), expected, "{definition}");
        }
    }

    #[test]
    fn what_is_no_header_is_none() {
        assert!(ColumnList::new("$status").is_none());
        assert!(ColumnList::new("#Fields:").unwrap().is_err());
        let many = format!("#Fields: {}", "a ".repeat(VARIABLES_MAX + 1));
        assert!(ColumnList::new(&many).unwrap().is_err());
    }
}
