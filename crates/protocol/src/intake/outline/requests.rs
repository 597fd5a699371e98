//! Requests in objects: access logs as JSON, and as logfmt.
//!
//! Each product names what it says of a request in its own way. Its objects keep these names. Beside them they have
//! the fields that access logs in text have, with the same names and types, so that one query or dashboard fits
//! all. They are made of the line each time that it is read, and no part of it.
//!
//! Invariants:
//! - An object is one of a product if it has all of the product's marks; the first product in [`PRODUCTS`] counts.
//! - A field of the object is never made again: a name that it has already is left as it is.
//! - A value that is not what its column holds makes no field.

use std::borrow::Cow;

use logpond_record::{Value, cast};

use super::products::PRODUCTS;
use super::{Outline, OutlineSlot};
use crate::intake::access::{MILLISECOND, SECOND, canonical_int, parts_of, seconds_with_unit};
use crate::intake::access_format::host_of;

/// A field that access logs in text have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    RemoteAddr,
    RemotePort,
    User,
    Method,
    Path,
    Query,
    Protocol,
    Scheme,
    Host,
    Port,
    Status,
    Bytes,
    RequestLength,
    Referer,
    Agent,
    RequestId,
    UpstreamAddr,
    UpstreamStatus,
    CacheStatus,
    Proxies,
    RefererHost,
    Duration,
}

/// The names of the columns, in their order.
const NAMES: [&str; 22] = [
    "remote_addr",
    "remote_port",
    "user",
    "method",
    "path",
    "query",
    "protocol",
    "scheme",
    "host",
    "port",
    "status",
    "bytes",
    "request_length",
    "referer",
    "agent",
    "request_id",
    "upstream_addr",
    "upstream_status",
    "cache_status",
    "proxies",
    "referer_host",
    "duration_s",
];

/// How a field of an object is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    /// Text, or the first text of an array; `-` and nothing are no value.
    Text(Column),
    /// A whole number, or text that is one.
    Number(Column),
    /// An address, with a port or without.
    Client,
    /// A list of addresses, of which the first is the client's.
    Forwarded,
    /// `METHOD target PROTOCOL`
    Request,
    /// Path and query, or a whole address.
    Target,
    /// A host, with a port or without.
    Host,
    /// `1.1` or `HTTP/1.1`
    Version,
    /// The time that the request took, in units of so many nanoseconds, or with its unit as text.
    Took(u64),
    /// The same as text with its unit; a number alone may be anything.
    TookWithUnit,
    /// A list of the request's headers, as objects of name and value.
    Headers,
}

/// Seconds, milliseconds and nanoseconds.
pub(super) const SECONDS: Take = Take::Took(SECOND);
pub(super) const MILLISECONDS: Take = Take::Took(MILLISECOND);
pub(super) const NANOSECONDS: Take = Take::Took(1);

/// The objects of a product.
pub(super) struct Product {
    /// Names that an object of it has.
    pub(super) marks: &'static [&'static str],
    /// Names with what they hold. Of several that make one field, the first one counts.
    pub(super) names: &'static [(&'static str, Take)],
}

/// Headers of a request that are columns, in lower case.
const HEADERS: [(&str, Take); 6] = [
    ("host", Take::Host),
    (":authority", Take::Host),
    ("user-agent", Take::Text(Column::Agent)),
    ("referer", Take::Text(Column::Referer)),
    ("content-length", Take::Number(Column::RequestLength)),
    ("x-request-id", Take::Text(Column::RequestId)),
];

/// Headers of a list that are looked at. Servers accept a hundred or fewer.
const HEADERS_MAX: usize = 256;

/// Fields among which those of a request are looked for. Objects about requests have fewer.
const REQUEST_SLOTS_MAX: usize = 256;

/// How the fields of objects of one outline are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestPlan {
    /// Slots, and what they hold.
    slots: Box<[(u32, Take)]>,
    /// Columns that are fields of the object.
    taken: u32,
}

impl RequestPlan {
    /// The plan for an object of a product. `slot_of` gives the slot of a name.
    pub(super) fn new(product: u8, slot_of: impl Fn(&str) -> Option<u32>) -> Option<RequestPlan> {
        let product = PRODUCTS.get(usize::from(product))?;
        if !product.marks.iter().all(|mark| slot_of(mark).is_some()) {
            return None;
        }
        let names = product.names.iter();
        let slots = names.filter_map(|(name, take)| Some((slot_of(name)?, *take)));
        let mut taken = 0;
        for (column, name) in NAMES.iter().enumerate() {
            taken |= u32::from(slot_of(name).is_some()) << column;
        }
        Some(RequestPlan {
            slots: slots.collect(),
            taken,
        })
    }

    /// The fields that are made of an object's values.
    pub(crate) fn fields<'a>(&self, values: &[Value<'a>]) -> Vec<(Cow<'a, str>, Value<'a>)> {
        let mut made = DerivedFields {
            fields: Vec::with_capacity(self.slots.len()),
            taken: self.taken,
        };
        for (slot, take) in &self.slots {
            if let Some(value) = values.get(*slot as usize) {
                made.take(*take, value);
            }
        }
        made.fields
    }
}

impl Outline {
    /// The way to make the fields of a request, if it is an object about one.
    pub(super) fn request(&self) -> Option<RequestPlan> {
        let slot_of = |name: &str| {
            let is_it = |slot: &OutlineSlot| slot.listed && self.name(slot) == name.as_bytes();
            let slots = self.slots.iter().take(REQUEST_SLOTS_MAX);
            slots.into_iter().position(is_it).map(cast::low_u32)
        };
        let mut products: Vec<u8> = self.products.clone();
        products.sort_unstable();
        products
            .into_iter()
            .find_map(|product| RequestPlan::new(product, slot_of))
    }
}

/// A header of a list.
#[derive(serde::Deserialize)]
struct Header {
    #[serde(alias = "key", alias = "Name")]
    name: String,
    #[serde(alias = "Value", default)]
    value: String,
}

/// Fields that are made of an object.
struct DerivedFields<'a> {
    fields: Vec<(Cow<'a, str>, Value<'a>)>,
    taken: u32,
}

impl<'a> DerivedFields<'a> {
    fn take(&mut self, take: Take, value: &Value<'a>) {
        match take {
            Take::Number(column) => self.number(column, value),
            Take::Took(unit_ns) => self.took(value, unit_ns),
            Take::TookWithUnit => {
                if let Value::Str(text) = value
                    && let Some(seconds) = seconds_with_unit(text)
                {
                    self.put(Column::Duration, Value::Float(seconds));
                }
            }
            Take::Headers => self.headers(value),
            _ => {
                let Some(text) = text_of(value).filter(|text| !matches!(&**text, "" | "-")) else {
                    return;
                };
                self.text(take, Text(text));
            }
        }
    }

    fn text(&mut self, take: Take, text: Text<'a>) {
        match take {
            Take::Text(column) => {
                if column == Column::Referer
                    && let Some(host) = host_of(&text)
                {
                    self.put_text(Column::RefererHost, text.part(host));
                }
                self.put_text(column, text.0);
            }
            Take::Client => self.client(&text),
            Take::Forwarded => {
                let (first, rest) = text.split_once(',').unwrap_or((&text, ""));
                let is_free = !self.has(Column::RemoteAddr);
                self.put_text(Column::RemoteAddr, text.part(first.trim()));
                if is_free && !rest.is_empty() {
                    self.put_text(Column::Proxies, text.part(rest.trim()));
                }
            }
            Take::Request => {
                if let Some((method, target, protocol)) = parts_of(&text) {
                    self.put_text(Column::Method, text.part(method));
                    self.target(&text, target);
                    self.put_text(Column::Protocol, text.part(protocol));
                }
            }
            Take::Target => self.target(&text, &text),
            Take::Host => self.host(&text, &text),
            Take::Version => {
                let is_number = text.starts_with(|first: char| first.is_ascii_digit());
                let text = if is_number {
                    Cow::Owned(format!("HTTP/{}", &*text))
                } else {
                    text.0
                };
                self.put_text(Column::Protocol, text);
            }
            Take::Number(_) | Take::Took(_) | Take::TookWithUnit | Take::Headers => {}
        }
    }

    /// `[{"name":"Host","value":"shop.example.org"}]`; of several with one name the first counts.
    fn headers(&mut self, value: &Value<'a>) {
        let Value::Json(json) = value else { return };
        let Ok(headers) = serde_json::from_str::<Vec<Header>>(json) else {
            return;
        };
        for header in headers.into_iter().take(HEADERS_MAX) {
            let name = header.name.to_ascii_lowercase();
            let known = HEADERS.iter().find(|(known, _)| *known == name);
            if let Some((_, take)) = known {
                self.take(*take, &Value::Str(Cow::Owned(header.value)));
            }
        }
    }

    fn has(&self, column: Column) -> bool {
        self.taken & (1 << column as u32) != 0
    }

    fn put(&mut self, column: Column, value: Value<'a>) {
        if !self.has(column) {
            self.taken |= 1 << column as u32;
            self.fields
                .push((Cow::Borrowed(NAMES[column as usize]), value));
        }
    }

    fn put_text(&mut self, column: Column, text: Cow<'a, str>) {
        if !text.is_empty() {
            self.put(column, Value::Str(text));
        }
    }

    fn number(&mut self, column: Column, value: &Value<'a>) {
        let number = match value {
            Value::Int(number) if *number >= 0 => Some(*number),
            Value::Str(text) => canonical_int(text),
            _ => None,
        };
        if let Some(number) = number {
            self.put(column, Value::Int(number));
        }
    }

    fn took(&mut self, value: &Value<'a>, unit_ns: u64) {
        let number = |number: f64| number / (cast::float(SECOND) / cast::float(unit_ns));
        let seconds = match value {
            Value::Int(units) => Some(number(cast::float(*units))),
            Value::Float(units) => Some(number(*units)),
            Value::Str(text) => match text.parse::<f64>() {
                Ok(units) => Some(number(units)),
                Err(_) => seconds_with_unit(text),
            },
            _ => None,
        };
        let seconds = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
        if let Some(seconds) = seconds {
            self.put(Column::Duration, Value::Float(seconds));
        }
    }

    /// `192.0.2.7:41000`, `[2001:db8::7]:41000` or an address alone.
    fn client(&mut self, text: &Text<'a>) {
        let (address, port) = with_port(text).unwrap_or((text, None));
        let is_address = |byte: u8| byte.is_ascii_alphanumeric() || b".:%_-".contains(&byte);
        if address.bytes().all(is_address) && !self.has(Column::RemoteAddr) {
            self.put_text(Column::RemoteAddr, text.part(address));
            if let Some(port) = port {
                self.put(Column::RemotePort, Value::Int(port));
            }
        }
    }

    fn host(&mut self, whole: &Text<'a>, host: &str) {
        let (host, port) = with_port(host).unwrap_or((host, None));
        self.put_text(Column::Host, whole.part(host));
        if let Some(port) = port {
            self.put(Column::Port, Value::Int(port));
        }
    }

    fn target(&mut self, whole: &Text<'a>, target: &str) {
        let mut rest = target;
        if let Some((scheme, behind)) = target.split_once("://")
            && !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphabetic())
        {
            let end = behind.find(['/', '?']).unwrap_or(behind.len());
            self.put_text(Column::Scheme, whole.part(scheme));
            self.host(whole, &behind[..end]);
            rest = &behind[end..];
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        self.put_text(Column::Path, whole.part(path));
        self.put_text(Column::Query, whole.part(query));
    }
}

/// The text of a value: its own, or that of the first element of an array, as of headers.
fn text_of<'a>(value: &Value<'a>) -> Option<Cow<'a, str>> {
    match value {
        Value::Str(text) => Some(text.clone()),
        Value::Int(number) => Some(Cow::Owned(number.to_string())),
        Value::Float(number) => Some(Cow::Owned(number.to_string())),
        Value::Json(Cow::Borrowed(json)) if is_plain_array(json) => {
            let inside = &json[2..];
            Some(Cow::Borrowed(inside.split('"').next()?))
        }
        Value::Json(json) if json.starts_with("[\"") => {
            let all: Vec<String> = serde_json::from_str(json).ok()?;
            all.into_iter().next().map(Cow::Owned)
        }
        _ => None,
    }
}

/// True for an array whose first text is written as it is.
fn is_plain_array(json: &str) -> bool {
    json.starts_with("[\"") && !json.contains('\\')
}

/// The text of a field.
struct Text<'a>(Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'a> Text<'a> {
    /// A part of it, which lives as long as it does.
    fn part(&self, inside: &str) -> Cow<'a, str> {
        let Cow::Borrowed(text) = self.0 else {
            return Cow::Owned(inside.to_owned());
        };
        let start = (inside.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        match text.get(start..start.wrapping_add(inside.len())) {
            Some(part) if part == inside => Cow::Borrowed(part),
            _ => Cow::Owned(inside.to_owned()),
        }
    }
}

/// Host or address, and the port behind it.
fn with_port(text: &str) -> Option<(&str, Option<i64>)> {
    if let Some(inside) = text.strip_prefix('[') {
        let (address, behind) = inside.split_once(']')?;
        return Some((address, behind.strip_prefix(':').and_then(canonical_int)));
    }
    let (name, port) = text.rsplit_once(':')?;
    // An address of version 6 has more colons.
    let port = canonical_int(port).filter(|_| !name.contains(':'))?;
    Some((name, Some(port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_sound() {
        assert_eq!(NAMES.len(), Column::Duration as usize + 1);
        for product in &PRODUCTS {
            assert!(!product.marks.is_empty());
            for (name, _) in product.names {
                let count = product.names.iter().filter(|(other, _)| other == name);
                assert_eq!(count.count(), 1, "{name}");
            }
        }
    }

    #[test]
    fn ports_are_parted() {
        for (text, expected) in [
            ("192.0.2.7:80", Some(("192.0.2.7", Some(80)))),
            ("[2001:db8::7]:80", Some(("2001:db8::7", Some(80)))),
            ("[2001:db8::7]", Some(("2001:db8::7", None))),
            ("2001:db8::7", None),
            ("shop", None),
            ("shop:http", None),
        ] {
            assert_eq!(with_port(text), expected, "{text}");
        }
    }
}
