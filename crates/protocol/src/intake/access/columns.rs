//! Lines of columns: what a product's table says is read from left to right, and a line fits as a whole.
//!
//! Invariant: what is drawn gives the line back. A value that is not as its column's kind writes it is text, or
//! makes the line none of the product's where the column is [`Take::Number`] or [`Take::Status`].

use logpond_record::{TimeSource, Value, cast};
use memchr::{memchr, memmem};

use super::clock::Clock;
use super::{canonical_int, closing_quote, parts_of};
use crate::intake::access_format::{DerivedFields, Times, host_of};
use crate::intake::outline::BODY_PREFIX;
use crate::intake::sketch::Sketch;
use crate::intake::timestamps::{self, TimestampText};

/// Nanoseconds of a second and a millisecond.
pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const MILLISECOND: u64 = 1_000_000;

/// Values behind the known ones that become fields of their own; what is behind these is one text.
const EXTRA: [&str; 8] = [
    "extra1", "extra2", "extra3", "extra4", "extra5", "extra6", "extra7", "extra8",
];

/// The text behind all values that have names.
const SURPLUS: &str = "extra";

/// Most digits of a status.
const STATUS_DIGITS_MAX: usize = 4;

/// A column of a line.
#[derive(Clone, Copy)]
pub(super) struct Column {
    /// The name of its field.
    pub(super) name: &'static str,
    pub(super) take: Take,
    /// The text behind it; a line's last column has none. A value that a quote ends may hold escaped ones.
    pub(super) end: &'static str,
}

/// The kinds of values that columns hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// Text; `-` is no value.
    Text,
    /// Text; a `-` is its value, as of referers and agents.
    Plain,
    /// Text that is not empty and holds no blank.
    Word,
    /// The method of a request: capitals.
    Method,
    /// A path, which begins with a slash or is `*`; `-` is no value.
    Path,
    /// A whole number; `-` and `-1` are no value.
    Number,
    /// The status of an answer.
    Status,
    /// A part of the time that the request took, in units of so many nanoseconds.
    Took(u64),
    /// The same in milliseconds, with the unit behind it: `12ms`.
    TookMs,
    /// Address and port: `remote_addr`, `remote_port`.
    Client,
    /// A list of addresses, of which the first is the client's.
    Forwarded,
    /// The record's time.
    Time(Clock),
    /// Method, target and protocol.
    Request,
    /// A target: path and query, or a whole address.
    Target,
    /// Blanks.
    Pad,
}

/// A column, for tables.
pub(super) const fn column(name: &'static str, take: Take, end: &'static str) -> Column {
    Column { name, take, end }
}

/// A line's fields while they are drawn.
pub(crate) struct Pen<'p, 's, 'a, 't> {
    pub(crate) sketch: &'p mut Sketch<'s, 'a>,
    pub(super) times: Times<'t>,
    /// True if the line stands behind a header, whose fields keep their names.
    is_within: bool,
    has_host: bool,
    /// Values without a name so far.
    extras: usize,
    took_ns: Option<u64>,
    pub(crate) drawn: DerivedFields<'a>,
}

impl<'p, 's, 'a, 't> Pen<'p, 's, 'a, 't> {
    pub(crate) fn new(sketch: &'p mut Sketch<'s, 'a>, times: Times<'t>) -> Self {
        Pen {
            is_within: !sketch.parts.values.is_empty(),
            sketch,
            times,
            has_host: false,
            extras: 0,
            took_ns: None,
            drawn: DerivedFields::default(),
        }
    }

    /// Ends the line.
    pub(crate) fn finish(mut self) -> DerivedFields<'a> {
        if let Some(took_ns) = self.took_ns {
            self.drawn.duration_s = Some(cast::float(took_ns) / cast::float(SECOND));
        }
        let is_named =
            |sketch: &Sketch<'_, '_>| sketch.has_slot(b"host") || sketch.has_slot(b"port");
        if self.drawn.authority.is_some() && is_named(self.sketch) {
            self.drawn.authority = None;
        }
        self.drawn
    }

    /// Draws the columns of a table; gives what is behind them.
    pub(super) fn columns(&mut self, mut rest: &'a str, columns: &[Column]) -> Option<&'a str> {
        for column in columns {
            rest = self.column(rest, column)?;
        }
        Some(rest)
    }

    fn column(&mut self, rest: &'a str, column: &Column) -> Option<&'a str> {
        if let Take::Time(clock) = column.take {
            let after = self.time(rest, clock)?;
            self.sketch.literal(column.end);
            return after.strip_prefix(column.end);
        }
        if column.take == Take::Pad {
            let after = rest.trim_start_matches(' ');
            self.sketch.literal(&rest[..rest.len() - after.len()]);
            return Some(after);
        }
        let length = match column.end {
            "" => rest.len(),
            end if end.starts_with('"') => closing_quote(rest)?,
            end => find(rest, end)?,
        };
        let (value, after) = rest.split_at(length);
        self.value(column.name, column.take, value)?;
        self.sketch.literal(column.end);
        after.strip_prefix(column.end)
    }

    /// Draws a value by what its column holds.
    pub(crate) fn value(&mut self, name: &str, take: Take, value: &'a str) -> Option<()> {
        match take {
            Take::Plain => self.plain(name, value),
            Take::Text => self.text(name, value),
            Take::Word if value.is_empty() || value.contains(' ') => return None,
            Take::Word => self.text(name, value),
            Take::Method if !is_method(value) => return None,
            Take::Path if !(value.starts_with('/') || matches!(value, "*" | "-")) => return None,
            Take::Method | Take::Path => self.text(name, value),
            Take::Number => self.number(name, value)?,
            Take::Status => self.status(name, value)?,
            Take::Took(unit_ns) => self.took(name, value, unit_ns)?,
            Take::TookMs => {
                self.took(name, value.strip_suffix("ms")?, MILLISECOND)?;
                self.sketch.literal("ms");
            }
            Take::Client => self.client(value)?,
            Take::Forwarded => self.forwarded(value),
            Take::Request => self.request(value),
            Take::Target => self.target(value),
            Take::Time(_) | Take::Pad => {}
        }
        Some(())
    }

    /// Draws the time that `rest` begins with, which is the record's unless a header had one.
    pub(crate) fn time(&mut self, rest: &'a str, clock: Clock) -> Option<&'a str> {
        let read = clock.read(rest.as_bytes(), self.times)?;
        let (text, after) = rest.split_at_checked(read.bytes)?;
        self.drawn.time = Some((read.time, read.assumed));
        match self.sketch.parts.time {
            None => read.draw(text, self.sketch),
            Some(_) => self.fixed("time_local:t", Value::Str(text.into())),
        }
        Some(after)
    }

    /// Draws the time that `rest` begins with as nginx and Apache write it.
    pub(super) fn usual_time(&mut self, rest: &'a str) -> Option<&'a str> {
        let written = timestamps::access(rest.as_bytes())?;
        let (text, after) = rest.split_at_checked(written.bytes)?;
        self.first_time(&written, text);
        Some(after)
    }

    /// Draws a time as that of the line, or as a value if the line has one.
    fn first_time(&mut self, written: &TimestampText, text: &'a str) {
        self.drawn.time = Some((written.time, written.form.assumed()));
        match self.sketch.parts.time {
            None => self.sketch.time(written, text.as_bytes(), TimeSource::Line),
            Some(_) => self.fixed("time_local:t", Value::Str(text.into())),
        }
    }

    /// Draws the time that `rest` begins with in any form, if `end` follows it.
    pub(super) fn any_time(&mut self, rest: &'a str, end: &str) -> Option<&'a str> {
        let written = self
            .times
            .reader
            .header(rest.as_bytes(), self.times.received)?;
        let (text, after) = rest.split_at_checked(written.bytes)?;
        if !after.starts_with(end) {
            return None;
        }
        self.first_time(&written, text);
        Some(after)
    }

    /// Draws a value with blanks around it, and the bar behind these.
    pub(super) fn padded(
        &mut self,
        text: &'a str,
        draw: impl FnOnce(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        let behind = text.trim_start_matches(' ');
        let value = behind.trim_end_matches(' ');
        self.sketch.literal(&text[..text.len() - behind.len()]);
        draw(self, value)?;
        self.sketch.literal(&behind[value.len()..]);
        self.sketch.literal("|");
        Some(())
    }

    /// Draws a slot that is written with its kind, `name:kind`.
    fn fixed(&mut self, slot: &'static str, value: Value<'a>) {
        if self.is_within || self.has_host && slot == "host:t" {
            let (name, kind) = slot.rsplit_once(':').unwrap_or((slot, "t"));
            return self.slot(name, kind, value);
        }
        self.sketch.slot(slot, value);
    }

    pub(crate) fn slot(&mut self, name: &str, kind: &str, value: Value<'a>) {
        // A line may name its host twice: in its request and by itself.
        let may_be_taken = self.is_within || self.has_host && name == "host";
        let is_taken = may_be_taken && self.sketch.has_slot(name.as_bytes());
        let prefix = if is_taken { BODY_PREFIX } else { "" };
        self.sketch.prefixed_slot(prefix, name, kind, value);
    }

    /// Draws text; `-` and nothing are no value.
    pub(super) fn text(&mut self, name: &str, value: &'a str) {
        match value {
            "-" | "" => self.sketch.literal(value),
            _ => self.plain(name, value),
        }
    }

    fn plain(&mut self, name: &str, value: &'a str) {
        if name == "referer" {
            self.drawn.referer_host = host_of(value);
        }
        self.slot(name, "t", Value::Str(value.into()));
    }

    /// Draws a whole number; one that is not written as it would be rendered is text.
    fn number(&mut self, name: &str, value: &'a str) -> Option<()> {
        match value {
            "-" | "-1" | "" => self.sketch.literal(value),
            _ => match canonical_int(value) {
                Some(number) => self.slot(name, "i", Value::Int(number)),
                None if value.bytes().all(|b| b.is_ascii_digit()) => self.plain(name, value),
                // HAProxy's `option logasap` marks values that were not final.
                None if value.starts_with('+') => {
                    self.sketch.literal("+");
                    let number = canonical_int(&value[1..])?;
                    self.slot(name, "i", Value::Int(number));
                }
                None => return None,
            },
        }
        Some(())
    }

    /// Draws a status: any digits are one, `000` and `0200`, too.
    pub(super) fn status(&mut self, name: &str, value: &'a str) -> Option<()> {
        if value == "-" || value == "-1" {
            self.sketch.literal(value);
            return Some(());
        }
        let is_number = (1..=STATUS_DIGITS_MAX).contains(&value.len())
            && value.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 = value.parse().ok().filter(|_| is_number)?;
        self.slot(name, "i", Value::Int(number));
        if canonical_int(value).is_none() {
            self.sketch.fix(value.as_bytes());
        }
        Some(())
    }

    /// Draws the client's address.
    pub(super) fn address(&mut self, address: &'a str) {
        if address == "-" {
            return self.sketch.literal("-");
        }
        // Daphne has the port behind it.
        let has_port = address.rsplit_once(':').is_some_and(|(address, port)| {
            let is_part = |byte: u8| byte.is_ascii_digit() || byte == b'.';
            address.contains('.')
                && address.bytes().all(is_part)
                && port.parse::<u16>().is_ok()
                && canonical_int(port).is_some()
        });
        if has_port && self.client(address).is_some() {
            return;
        }
        self.remote_address(address);
    }

    /// Draws an address; brackets of one of version 6 are no part of it.
    fn remote_address(&mut self, address: &'a str) {
        let Some(inside) = inside_brackets(address) else {
            return self.fixed("remote_addr:t", Value::Str(address.into()));
        };
        self.sketch.literal("[");
        self.fixed("remote_addr:t", Value::Str(inside.into()));
        self.sketch.literal("]");
    }

    /// Draws status and bytes as common and combined have them.
    pub(super) fn answer(&mut self, status: &'a str, bytes: &'a str) -> Option<()> {
        match canonical_int(status).filter(|_| status.len() <= STATUS_DIGITS_MAX) {
            Some(number) => self.fixed("status:i", Value::Int(number)),
            None => self.status("status", status)?,
        }
        self.sketch.literal(" ");
        match canonical_int(bytes) {
            Some(number) => self.fixed("bytes:i", Value::Int(number)),
            None if bytes.contains('/') => self.sizes(bytes)?,
            None => self.number("bytes", bytes)?,
        }
        Some(())
    }

    /// Draws the sizes of the answer and of the request, `34/38`, as SOGo writes them.
    fn sizes(&mut self, sizes: &'a str) -> Option<()> {
        let (bytes, length) = sizes.split_once('/')?;
        self.number("bytes", bytes)?;
        self.sketch.literal("/");
        self.number("request_length", length)
    }

    /// Draws a value in quotes behind a blank; `slot` is written with its kind.
    pub(super) fn quoted(&mut self, slot: &'static str, value: &'a str) {
        if slot == "referer:t" {
            self.drawn.referer_host = host_of(value);
        }
        self.sketch.literal(" \"");
        self.fixed(slot, Value::Str(value.into()));
        self.sketch.literal("\"");
    }

    /// Draws a part of the time that the request took.
    fn took(&mut self, name: &str, value: &'a str, unit_ns: u64) -> Option<()> {
        if matches!(value, "-" | "-1" | "") {
            self.sketch.literal(value);
            return Some(());
        }
        let (sign, digits) = match value.strip_prefix('+') {
            Some(digits) => ("+", digits),
            None => ("", value),
        };
        let taken = nanoseconds(digits, unit_ns)?;
        self.took_ns = Some(self.took_ns.unwrap_or(0).saturating_add(taken));
        self.sketch.literal(sign);
        match canonical_int(digits) {
            Some(number) => self.slot(name, "i", Value::Int(number)),
            None => self.plain(name, digits),
        }
        Some(())
    }

    /// Draws address and port; an address of version 6 may be in brackets.
    pub(super) fn client(&mut self, value: &'a str) -> Option<()> {
        let (address, port) = value.rsplit_once(':')?;
        let number = canonical_int(port)?;
        let is_address = |byte: u8| byte.is_ascii_alphanumeric() || b".:[]%_-@".contains(&byte);
        if address.is_empty() || !address.bytes().all(is_address) {
            return None;
        }
        self.remote_address(address);
        self.sketch.literal(":");
        self.fixed("remote_port:i", Value::Int(number));
        Some(())
    }

    /// Draws a list of addresses: the client's, and those of the proxies that the request passed.
    pub(super) fn forwarded(&mut self, value: &'a str) {
        let comma = value.find(',').unwrap_or(value.len());
        let (first, rest) = value.split_at(comma);
        if matches!(value, "-" | "") || first.is_empty() || self.sketch.has_slot(b"remote_addr") {
            return self.text("http_x_forwarded_for", value);
        }
        self.fixed("remote_addr:t", Value::Str(first.into()));
        let proxies = rest.trim_start_matches([',', ' ']);
        self.sketch.literal(&rest[..rest.len() - proxies.len()]);
        if !proxies.is_empty() {
            self.fixed("proxies:t", Value::Str(proxies.into()));
        }
    }

    /// Draws `METHOD target PROTOCOL`, or a request that is something else.
    pub(super) fn request(&mut self, request: &'a str) {
        // InfluxDB has a blank behind it.
        let trimmed = request.strip_suffix(' ').unwrap_or(request);
        let Some((method, target, protocol)) = parts_of(trimmed) else {
            return self.plain("request", request);
        };
        self.fixed("method:t", Value::Str(method.into()));
        self.sketch.literal(" ");
        self.target(target);
        self.sketch.literal(" ");
        self.fixed("protocol:t", Value::Str(protocol.into()));
        self.sketch.literal(&request[trimmed.len()..]);
    }

    /// Draws a target: `path?query`, or `scheme://host:port/path?query` as proxies and load balancers have it.
    pub(super) fn target(&mut self, mut target: &'a str) {
        if !target.starts_with('/') && !self.has_host && !self.sketch.has_slot(b"host") {
            target = self.origin(target);
        }
        match memchr(b'?', target.as_bytes()) {
            Some(mark) => {
                self.fixed("path:t", Value::Str(target[..mark].into()));
                self.sketch.literal("?");
                self.fixed("query:t", Value::Str(target[mark + 1..].into()));
            }
            None => self.fixed("path:t", Value::Str(target.into())),
        }
    }

    /// Draws the scheme, host and port that a target begins with; gives the rest.
    fn origin(&mut self, target: &'a str) -> &'a str {
        let Some((scheme, behind)) = target.split_once("://") else {
            // `example.org:443` of CONNECT stays the path, too.
            self.drawn.authority = target.rsplit_once(':').and_then(|(name, port)| {
                let is_name = !name.is_empty() && !name.contains('/');
                Some((is_name.then_some(name)?, canonical_int(port)?))
            });
            return target;
        };
        let length = behind.find(['/', '?']).unwrap_or(behind.len());
        let (authority, rest) = behind.split_at(length);
        let is_scheme = !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphabetic());
        if !is_scheme || authority.is_empty() || rest.is_empty() {
            return target;
        }
        self.fixed("scheme:t", Value::Str(scheme.into()));
        self.sketch.literal("://");
        self.host(authority);
        rest
    }

    /// Draws a host, and the port behind it if there is one.
    pub(super) fn host(&mut self, host: &'a str) {
        let port = host.rsplit_once(':').and_then(|(name, port)| {
            let number = canonical_int(port)?;
            (!name.is_empty()).then_some((name, number))
        });
        match port {
            Some((name, number)) => {
                self.fixed("host:t", Value::Str(name.into()));
                self.sketch.literal(":");
                self.fixed("port:i", Value::Int(number));
            }
            None => self.fixed("host:t", Value::Str(host.into())),
        }
        self.has_host = true;
    }

    /// True if the host is drawn.
    pub(super) fn has_host(&self) -> bool {
        self.has_host
    }

    /// Draws values with a blank between them, each bare, in quotes or in brackets, and named by `names`. What
    /// is behind these has numbers, and what is no value, or has no name, is one text.
    pub(super) fn trailing(&mut self, rest: &'a str, names: &[(&str, Take)]) {
        let mut rest = self.named(rest, names);
        // Each round takes a value, and there are only so many names.
        while let Some(value) = rest.strip_prefix(' ').and_then(TrailingValue::read) {
            let Some(name) = self.next_extra() else { break };
            self.trailing_value(name, Take::Plain, &value);
            rest = value.rest;
        }
        self.surplus(rest);
    }

    /// Draws the values that have names; gives the rest.
    pub(super) fn named(&mut self, mut rest: &'a str, names: &[(&str, Take)]) -> &'a str {
        for (name, take) in names {
            let Some(value) = rest.strip_prefix(' ').and_then(TrailingValue::read) else {
                break;
            };
            self.trailing_value(name, *take, &value);
            rest = value.rest;
        }
        rest
    }

    /// Draws a value behind a blank.
    pub(super) fn trailing_value(&mut self, name: &str, take: Take, value: &TrailingValue<'a>) {
        self.sketch.literal(" ");
        self.bare_value(name, take, value);
    }

    fn bare_value(&mut self, name: &str, take: Take, value: &TrailingValue<'a>) {
        self.sketch.literal(value.open);
        let mark = self.sketch.mark();
        if self.value(name, take, value.text).is_none() {
            self.sketch.rewind(mark);
            self.plain(name, value.text);
        }
        self.sketch.literal(value.close);
    }

    /// Draws a label, a colon and the value that it names behind a blank.
    pub(super) fn labelled_value(
        &mut self,
        label: &'a str,
        name: &str,
        take: Take,
        value: &TrailingValue<'a>,
    ) {
        self.sketch.literal(" ");
        self.sketch.literal(label);
        self.sketch.literal(":");
        self.bare_value(name, take, value);
    }

    /// Draws a label, an equals sign and the value that it names, in quotes or not.
    pub(super) fn paired_value(&mut self, label: &'a str, name: &str, take: Take, value: &'a str) {
        let inside = value
            .strip_prefix('"')
            .and_then(|text| text.strip_suffix('"'));
        let quote = if inside.is_some() { "\"" } else { "" };
        self.sketch.literal(" ");
        self.sketch.literal(label);
        self.sketch.literal("=");
        let value = TrailingValue {
            open: quote,
            text: inside.unwrap_or(value),
            close: quote,
            rest: "",
        };
        self.bare_value(name, take, &value);
    }

    /// Draws a label and the value that it names, each behind a blank.
    pub(super) fn named_value(
        &mut self,
        name: &str,
        label: &TrailingValue<'a>,
        value: &TrailingValue<'a>,
    ) {
        self.sketch.literal(" ");
        self.sketch.literal(label.text);
        self.trailing_value(name, Take::Text, value);
    }

    /// The name of the next value without one, as long as there are names.
    pub(super) fn next_extra(&mut self) -> Option<&'static str> {
        let name = EXTRA.get(self.extras)?;
        self.extras += 1;
        Some(name)
    }

    /// Draws the text behind all values.
    pub(crate) fn surplus(&mut self, rest: &'a str) {
        if !rest.is_empty() {
            self.plain(SURPLUS, rest);
        }
    }
}

/// A value behind the known columns.
pub(super) struct TrailingValue<'a> {
    open: &'static str,
    pub(super) text: &'a str,
    close: &'static str,
    pub(super) rest: &'a str,
}

impl<'a> TrailingValue<'a> {
    pub(super) fn is_quoted(&self) -> bool {
        self.open == "\""
    }

    /// True for a value without quotes or brackets.
    pub(super) fn is_bare(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn read(text: &'a str) -> Option<TrailingValue<'a>> {
        let (open, close, length) = match text.as_bytes().first()? {
            b'"' => ("\"", "\"", closing_quote(&text[1..])?),
            b'[' => ("[", "]", memchr(b']', &text.as_bytes()[1..])?),
            b' ' => return None,
            _ => ("", "", bare(text)),
        };
        let inside = &text[open.len()..];
        let rest = &inside[length + close.len()..];
        (rest.is_empty() || rest.starts_with(' ')).then_some(TrailingValue {
            open,
            text: &inside[..length],
            close,
            rest,
        })
    }
}

/// The length of a value without quotes. nginx has one value for each server that it asked: `a, b : c`.
fn bare(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut blanks = memchr::memchr_iter(b' ', bytes);
    let end = blanks.find(|&at| {
        let is_within = bytes[..at].ends_with(b",")
            || bytes[..at].ends_with(b" :")
            || bytes[at..].starts_with(b" : ");
        !is_within
    });
    end.unwrap_or(text.len())
}

/// The address that stands in brackets, as one of version 6 does.
pub(super) fn inside_brackets(address: &str) -> Option<&str> {
    address.strip_prefix('[')?.strip_suffix(']')
}

/// True for `GET`, `PROPFIND`, `VERSION-CONTROL`, and for none.
fn is_method(value: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
    !value.is_empty() && value.bytes().all(is_part)
}

/// A decimal number of units as nanoseconds.
pub(crate) fn nanoseconds(text: &str, unit_ns: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 9 || fraction.len() > 9 {
        return None;
    }
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit_ns)?;
    let places = 10u64.pow(cast::low_u32(fraction.len()));
    let fraction = fraction.parse::<u64>().unwrap_or(0);
    whole.checked_add(fraction * unit_ns.min(SECOND) / places)
}

/// The first place of `end`.
fn find(text: &str, end: &str) -> Option<usize> {
    match end.as_bytes() {
        [byte] => memchr(*byte, text.as_bytes()),
        bytes => memmem::find(text.as_bytes(), bytes),
    }
}
