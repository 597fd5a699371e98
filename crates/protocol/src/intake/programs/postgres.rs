//! Prefixes of PostgreSQL's lines (`log_line_prefix`), which each server sets as it likes.
//!
//! ```text
//!  [77-1] lena@shop [psql] 192.0.2.7(41000) ERROR:  relation "cart" does not exist
//!  pid=77,user=lena,db=shop LOG:  …
//! -65e0f3b1.4d-LOG:  …
//! ```
//!
//! Invariants:
//! - The label behind the prefix says whose line it is. It is the first text that a colon and two blanks follow.
//! - Every part of the prefix has a form or a name that tells what it is, or the line is none of these. Words are names in
//!   their order, of a user, a database and an application, if another part is certain.
//!
//! Source: PostgreSQL, "Error Reporting and Logging", whose names of columns the fields have.

mod words;

use logpond_record::Value;
use memchr::memchr;

use super::Pen;
use super::pattern::{POSTGRES_LABELS, find};
use super::sentences::is_address;
use words::{BACKENDS, CALM, CLASSES, COMMANDS, NAMES, TIME_NAMES, VERBS};

use crate::intake::access::canonical_int;

/// The longest prefix.
pub(super) const PREFIX_BYTES_MAX: usize = 384;

/// The most parts of a prefix.
const PARTS_MAX: usize = 24;

/// Texts in place of a name that is not known, and of the address of a socket of the machine.
const UNKNOWN: &str = "[unknown]";
const LOCAL: &str = "[local]";

/// The names of words of which nothing else tells what they are, in their order.
const WORDS: [&str; 3] = ["user", "dbname", "application_name"];

/// Numbers are no identifiers of transactions and lines from here on, but those of queries.
const QUERY_ID_MIN: i64 = 1 << 32;

/// False for a text that no label ends: a cheap test.
pub(super) fn may_fit(text: &str) -> bool {
    is_labelled(text.as_bytes())
}

/// True if a colon and two blanks stand behind a word in capitals or with digits.
pub(super) fn is_labelled(line: &[u8]) -> bool {
    let head = &line[..line.len().min(PREFIX_BYTES_MAX)];
    find(head, b":  ").is_some_and(|end| {
        let is_part = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        end > 2 && is_part(&head[end - 1]) && head[end - 2].is_ascii_uppercase()
    })
}

/// Draws the prefix behind the time, the label and the message.
pub(super) fn draw<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    draw_by(text, pen, |prefix, label, pen| {
        let is_certain = Prefix::new(prefix, prefix, label, pen).parts(pen)?;
        is_certain.then_some(())
    })
}

/// Draws a prefix with the time in it or without, the label and the message: `shop 2026-11-27 00:51:25 UTC [77] ERROR:  …`.
pub(super) fn draw_prefixed<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    draw_by(text, pen, |prefix, label, pen| {
        let Some(start) = time_in(prefix) else {
            let is_certain = Prefix::new(prefix, prefix, label, pen).parts(pen)?;
            return is_certain.then_some(());
        };
        let (ahead, behind) = prefix.split_at(start);
        let written = pen
            .times
            .reader
            .program(behind.as_bytes(), pen.times.received)?;
        let (time, rest) = behind.split_at_checked(written.bytes)?;
        // The name of a database, of a server.
        let word = ahead.strip_suffix(' ').filter(|word| is_name(word));
        let is_ahead_certain = match word {
            Some(word) => {
                pen.text("prefix", word);
                pen.sketch.literal(" ");
                true
            }
            None => Prefix::new(ahead, prefix, label, pen).parts(pen)?,
        };
        pen.time(&written, time);
        let is_certain = Prefix::new(rest, prefix, label, pen).parts(pen)?;
        (is_certain && is_ahead_certain).then_some(())
    })
}

fn is_name(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        && word.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// The place of a date or of Unix time within a prefix, or before it.
fn time_in(prefix: &str) -> Option<usize> {
    let bytes = prefix.as_bytes();
    if is_epoch(bytes) {
        return Some(0);
    }
    let is_date = |at: &usize| {
        let is_start = *at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        // That of the session's start has another name.
        let ahead = prefix.get(..*at).unwrap_or_default();
        let key = ahead.trim_end_matches(['=', '"', ' ']);
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let key = &key[key.trim_end_matches(is_part).len()..];
        let is_of_key = ahead.ends_with(['=', '"']);
        is_start && is_date(&bytes[*at..]) && (!is_of_key || is_time_name(key))
    };
    memchr::memchr_iter(b'2', bytes).find(is_date)
}

/// True for `1795740685.818 `: seconds with milliseconds, as `%n` writes them.
fn is_epoch(text: &[u8]) -> bool {
    let is_digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    text.get(..10).is_some_and(is_digits)
        && text.get(10) == Some(&b'.')
        && text.get(11..14).is_some_and(is_digits)
}

fn is_date(text: &[u8]) -> bool {
    matches!(
        text,
        [
            b'2',
            b'0',
            b'0'..=b'9',
            b'0'..=b'9',
            b'-',
            b'0'..=b'9',
            b'0'..=b'9',
            b'-',
            ..
        ]
    )
}

fn draw_by<'p, 's, 'a>(
    text: &'a str,
    pen: &mut Pen<'p, 's, 'a>,
    draw_prefix: impl FnOnce(&'a str, &'a str, &mut Pen<'p, 's, 'a>) -> Option<()>,
) -> Option<()> {
    let head = &text.as_bytes()[..text.len().min(PREFIX_BYTES_MAX)];
    let end = find(head, b":  ")?;
    let (before, message) = text.split_at_checked(end)?;
    let message = message.strip_prefix(":  ")?;
    let is_part = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit();
    let prefix = before.trim_end_matches(is_part);
    let label = &before[prefix.len()..];
    let is_apart = !prefix.ends_with(|last: char| last.is_alphanumeric() || last == '_');
    // More blanks are padding of others.
    let is_blank = message.is_empty() || (prefix.is_empty() && message.starts_with(' '));
    if is_blank || !is_apart || !POSTGRES_LABELS.contains(&label) {
        return None;
    }
    draw_prefix(prefix, label, pen)?;
    pen.sketch.literal(label);
    pen.sketch.literal(":  ");
    let state = message.split_once(": ").map(|(state, _)| state);
    let message = match state.filter(|state| is_state(state) || is_numeric_state(state)) {
        // With log_error_verbosity = verbose.
        Some(state) if message.len() > state.len() + 2 => {
            field("state_code", state, pen)?;
            pen.sketch.literal(": ");
            &message[state.len() + 2..]
        }
        _ => message,
    };
    pen.sketch.message(message.as_bytes());
    Some(())
}

fn is_separator(letter: char) -> bool {
    matches!(
        letter,
        ' ' | '['
            | ']'
            | '('
            | ')'
            | ','
            | '|'
            | '<'
            | '>'
            | ';'
            | ':'
            | '{'
            | '}'
            | '%'
            | '*'
            | '#'
            | '"'
    )
}

/// A prefix, or a part of one, while it is drawn.
struct Prefix<'a> {
    rest: &'a str,
    label: &'a str,
    /// The separator before the rest.
    before: char,
    /// True if hyphens stand between parts, as in `%t-%c-`.
    has_hyphens: bool,
    /// True if the number of the process has a name of its own.
    has_pid_name: bool,
    /// True if the number of the line has one: another number with a hyphen is that of syslog.
    has_line_name: bool,
    /// True if the form of a part tells what it is.
    is_certain: bool,
    /// The names of words that were taken by one, or by the text for a name that is not known.
    words: usize,
    /// The field of the last part; none if it was the text for a name that is not known.
    last: &'static str,
}

impl<'a> Prefix<'a> {
    /// A part of a prefix, which is `whole`.
    fn new(prefix: &'a str, whole: &str, label: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Prefix<'a> {
        // The number of the line stands behind that of the process.
        let is_line = prefix.starts_with('-') && pen.sketch.has_slot(b"pid");
        let rest = if is_line {
            pen.sketch.literal("-");
            &prefix[1..]
        } else {
            prefix
        };
        Prefix {
            rest,
            label,
            before: ' ',
            has_hyphens: rest.starts_with('-'),
            has_pid_name: whole.contains("pid="),
            has_line_name: whole.contains("log_line="),
            is_certain: pen.sketch.has_slot(b"pid"),
            words: 0,
            last: "prefix",
        }
    }

    /// Draws all parts. Gives false if there are words alone.
    fn parts(mut self, pen: &mut Pen<'_, '_, 'a>) -> Option<bool> {
        for _ in 0..PARTS_MAX {
            self.separators(pen);
            if self.rest.is_empty() {
                return Some(self.is_certain || self.words == 0);
            }
            self.part(pen)?;
        }
        None
    }

    /// Draws what stands before the next part.
    fn separators(&mut self, pen: &mut Pen<'_, '_, 'a>) {
        let is_between = |(at, letter): (usize, char)| {
            let text = &self.rest[at..];
            let is_hyphen = letter == '-'
                && (self.has_hyphens || matches!(text.as_bytes().get(1), None | Some(b' ')));
            let is_value = match letter {
                '[' => text.starts_with(UNKNOWN) || text.starts_with(LOCAL),
                ':' => text.starts_with("::") && host_bytes(text).is_some(),
                _ => false,
            };
            (is_separator(letter) || is_hyphen) && !is_value
        };
        let length = self
            .rest
            .char_indices()
            .take_while(|part| is_between(*part));
        let length = length.map(|(at, letter)| at + letter.len_utf8()).last();
        if let Some(length) = length {
            self.before = self.rest[..length].chars().next_back().unwrap_or(' ');
            pen.sketch.literal(self.take(length));
        }
    }

    /// Takes so many bytes of the rest.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Takes so many bytes as a field.
    fn field(
        &mut self,
        name: &'static str,
        length: usize,
        pen: &mut Pen<'_, '_, 'a>,
    ) -> Option<()> {
        self.last = name;
        field(name, self.take(length), pen)
    }

    /// True if the rest goes on with a separator behind so many bytes.
    fn ends_at(&self, length: usize) -> bool {
        let behind = self.rest[length..].chars().next();
        behind.is_none_or(|letter| is_separator(letter) || self.has_hyphens && letter == '-')
    }

    /// Draws a part by its name or its form.
    fn part(&mut self, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
        if self.rest.starts_with(UNKNOWN) {
            self.words += 1;
            self.is_certain = true;
            self.last = "";
            pen.sketch.literal(self.take(UNKNOWN.len()));
            return Some(());
        }
        self.is_certain |= self.before == '[';
        if let Some(known) = self.known(pen) {
            return known;
        }
        if let Some((name, length)) = key_of(self.rest) {
            self.is_certain = true;
            pen.sketch.literal(self.take(length));
            return self.value(name, pen);
        }
        let length = self.word_bytes();
        let is_port_behind = matches!(self.rest.as_bytes()[length..], [b'(', b'0'..=b'9', ..]);
        let part = &self.rest[..length];
        if let Some(length) = host_bytes(&self.rest[..self.token_bytes()]) {
            self.is_certain = true;
            return self.field("remote_host", length, pen);
        }
        if let Some((user, database)) = part.rsplit_once('@') {
            self.is_certain = true;
            self.words = 2;
            self.take(length);
            maybe("user", user, pen)?;
            pen.sketch.literal("@");
            let (database, application) = database.split_once('/').unwrap_or((database, ""));
            maybe("dbname", database, pen)?;
            if part.len() > user.len() + 1 + database.len() {
                pen.sketch.literal("/");
            }
            return maybe("application_name", application, pen);
        }
        if is_port_behind {
            self.is_certain = true;
            return self.field("remote_host", length, pen);
        }
        if let Some((number, line)) = numbers(part) {
            self.is_certain = true;
            self.take(length);
            if self.has_line_name {
                return field("sequence", part, pen);
            }
            let has_pid = self.has_pid_name || pen.sketch.has_slot(b"pid");
            if has_pid {
                field("line_num", number, pen)?;
                pen.sketch.literal("-");
                // `%l-1`, as syslog has it.
                return (line == "1").then(|| pen.sketch.literal("1"));
            }
            field("pid", number, pen)?;
            pen.sketch.literal("-");
            return field("line_num", line, pen);
        }
        if let Some(name) = self.name_of(part, pen) {
            self.is_certain = true;
            return self.field(name, length, pen);
        }
        self.words(length, pen)
    }

    /// Draws what is told by its first bytes: the address of a socket, a time, a type of process, or a command.
    fn known(&mut self, pen: &mut Pen<'_, '_, 'a>) -> Option<Option<()>> {
        if self.rest.starts_with(LOCAL) {
            self.is_certain = true;
            return Some(self.field("remote_host", LOCAL.len(), pen));
        }
        if is_date(self.rest.as_bytes()) {
            self.is_certain = true;
            let bytes = self.rest.as_bytes();
            let written = pen.times.reader.program(bytes, pen.times.received);
            return written.map(|written| self.field("session_start", written.bytes, pen));
        }
        let is_here = |text: &&&str| self.rest.starts_with(**text) && self.ends_at(text.len());
        if let Some(text) = BACKENDS.iter().find(is_here) {
            self.is_certain |= text.contains(' ');
            return Some(self.field("backend_type", text.len(), pen));
        }
        if let Some(text) = COMMANDS.iter().find(is_here) {
            self.is_certain |= text.contains(' ');
            return Some(self.field("ps", text.len(), pen));
        }
        let is_part = |byte: &u8| byte.is_ascii_uppercase() || *byte == b' ';
        let length = self.rest.bytes().take_while(is_part).count();
        let text = self.rest[..length].trim_end_matches(' ');
        let verb = text.split(' ').next().unwrap_or_default();
        let is_command = VERBS.contains(&verb) && self.ends_at(text.len());
        is_command.then(|| self.field("ps", text.len(), pen))
    }

    /// The bytes up to a separator that is no colon: addresses of version 6 have some.
    fn token_bytes(&self) -> usize {
        let is_end = |letter| is_separator(letter) && letter != ':';
        self.rest.find(is_end).unwrap_or(self.rest.len())
    }

    fn word_bytes(&self) -> usize {
        let is_end = |letter| is_separator(letter) || self.has_hyphens && letter == '-';
        self.rest.find(is_end).unwrap_or(self.rest.len())
    }

    /// The field that a part is by its form.
    fn name_of(&self, part: &str, pen: &Pen<'_, '_, 'a>) -> Option<&'static str> {
        let is_free = |name: &str| !pen.sketch.has_slot(name.as_bytes());
        if is_state(part) {
            return Some("state_code");
        }
        if is_session(part) {
            return Some("session_id");
        }
        let is_vxid = |(a, b)| is_number(a) && is_number(b);
        if part.split_once('/').is_some_and(is_vxid) {
            return Some("vxid");
        }
        if part.strip_prefix('-').is_some_and(is_number) && part.len() > 8 {
            return Some("query_id");
        }
        if !is_number(part) {
            return None;
        }
        let is_of_error = !CALM.contains(&self.label) && is_numeric_state(part);
        match canonical_int(part) {
            _ if self.before == '(' && matches!(self.last, "remote_host" | "") => {
                Some("remote_port")
            }
            Some(number) if number >= QUERY_ID_MIN => Some("query_id"),
            Some(0) => Some("txid"),
            Some(_) if self.last == "vxid" && is_free("txid") => Some("txid"),
            Some(_) if is_free("pid") && !self.has_pid_name => Some("pid"),
            _ if is_of_error && is_free("state_code") => Some("state_code"),
            Some(_) if is_free("line_num") => Some("line_num"),
            Some(_) if is_free("txid") => Some("txid"),
            _ => None,
        }
    }

    /// Draws a name of a user, a database, an application or a host of which nothing tells what it is but its place.
    fn words(&mut self, length: usize, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
        if self.before == '[' {
            let length = memchr(b']', self.rest.as_bytes())?;
            let is_free = !pen.sketch.has_slot(b"application_name");
            return is_free.then(|| self.field("application_name", length, pen))?;
        }
        let part = &self.rest[..length];
        if part == "from" {
            pen.sketch.literal(self.take(length));
            return Some(());
        }
        let names = WORDS.iter().skip(self.words);
        let mut free = names.filter(|name| !pen.sketch.has_slot(name.as_bytes()));
        let name = free.next()?;
        let is_host = *name == "application_name"
            && part.contains('.')
            && !pen.sketch.has_slot(b"remote_host");
        if is_host {
            return self.field("remote_host", length, pen);
        }
        self.words = WORDS.iter().position(|known| known == name)? + 1;
        is_word(part).then_some(())?;
        self.field(name, length, pen)
    }

    /// Draws the value behind a name.
    fn value(&mut self, name: &'static str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
        if let Some(inside) = self.rest.strip_prefix('"') {
            let length = memchr(b'"', inside.as_bytes()).unwrap_or(0);
            pen.sketch.literal(self.take(1));
            let is_address = name == "remote_host";
            return match inside[..length].find('(').filter(|_| is_address) {
                Some(port) => self.field(name, port, pen),
                None if length == 0 => Some(()),
                None => self.field(name, length, pen),
            };
        }
        if self.rest.starts_with(UNKNOWN) {
            self.last = "";
            pen.sketch.literal(self.take(UNKNOWN.len()));
            return Some(());
        }
        if self.rest.starts_with(LOCAL) {
            return self.field(name, LOCAL.len(), pen);
        }
        let length = match name {
            "remote_host" => {
                let host = host_bytes(&self.rest[..self.token_bytes()]);
                host.unwrap_or_else(|| self.word_bytes())
            }
            "session_start" => {
                let bytes = self.rest.as_bytes();
                let written = pen.times.reader.program(bytes, pen.times.received);
                written.map_or_else(|| self.word_bytes(), |written| written.bytes)
            }
            "application_name" | "ps" | "backend_type" => self.phrase_bytes(),
            _ => self
                .rest
                .find(|letter| is_separator(letter) || letter == '=')
                .unwrap_or(self.rest.len()),
        };
        if length == 0 {
            return Some(());
        }
        self.field(name, length, pen)
    }

    /// The bytes of a text with blanks in it, up to another separator or the next name.
    fn phrase_bytes(&self) -> usize {
        let is_end = |letter| matches!(letter, ',' | ']' | '|' | ';' | '>' | '}' | '"');
        let length = self.rest.find(is_end).unwrap_or(self.rest.len());
        let text = &self.rest[..length];
        let is_name = |at: &usize| key_of(&text[at + 1..]).is_some();
        let mut blanks = memchr::memchr_iter(b' ', text.as_bytes());
        let text = &text[..blanks.find(is_name).unwrap_or(length)];
        text.trim_end_matches([' ', ':', ')']).len()
    }
}

/// The field of a name that a text begins with, and the bytes up to its value.
fn key_of(text: &str) -> Option<(&'static str, usize)> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = text.bytes().take_while(is_part).count();
    let (key, behind) = text.split_at(length);
    // One letter before a colon may be the name of a user.
    let is_long = length > 2;
    let at = match behind.as_bytes() {
        [b'=', ..] => length + 1,
        [b' ', b'=', b' ', ..] => length + 3,
        [b':', b' ', ..] if is_long => length + 2,
        [b':', ..] if is_long => length + 1,
        _ => return None,
    };
    if is_time_name(key) {
        return Some(("time_local", at));
    }
    let known = NAMES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(key));
    known.map(|(_, name)| (*name, at))
}

fn is_time_name(key: &str) -> bool {
    let mut names = TIME_NAMES.iter();
    names.any(|name| name.eq_ignore_ascii_case(key))
}

/// Draws a field that is not there yet, if it has a value.
fn maybe<'a>(name: &str, value: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    value
        .is_empty()
        .then_some(())
        .or_else(|| field(name, value, pen))
}

/// Draws a field that is not there yet.
fn field<'a>(name: &str, value: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    if pen.sketch.has_slot(name.as_bytes()) {
        return None;
    }
    let is_number = matches!(
        name,
        "pid" | "line_num" | "remote_port" | "txid" | "query_id"
    );
    match canonical_int(value).filter(|_| is_number) {
        Some(number) => pen.slot(name, "i", Value::Int(number)),
        None => pen.text(name, value),
    }
    Some(())
}

/// `77-3`
fn numbers(part: &str) -> Option<(&str, &str)> {
    let (number, line) = part.split_once('-')?;
    let is_pair = canonical_int(number).is_some() && canonical_int(line).is_some();
    is_pair.then_some((number, line))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A name that stands without quotes.
fn is_word(text: &str) -> bool {
    text.chars()
        .all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '$' | '/'))
}

/// The bytes of the address that a text begins with, up to its end or a colon.
fn host_bytes(text: &str) -> Option<usize> {
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || b".:%".contains(&byte);
    let mut length = text.bytes().take_while(|byte| is_part(*byte)).count();
    let ends_at = |length: usize| {
        matches!(
            text.as_bytes().get(length),
            None | Some(b':' | b'(' | b' ' | b',' | b']' | b'|' | b'-')
        )
    };
    while length > 0 {
        if ends_at(length) && is_host(&text[..length]) {
            return Some(length);
        }
        length = text[..length].rfind(':')?;
    }
    None
}

fn is_host(text: &str) -> bool {
    is_address(text)
        && (text.matches('.').count() == 3 && !text.ends_with([':', '.'])
            || text.matches(':').count() >= 2 && text.parse::<core::net::Ipv6Addr>().is_ok())
}

/// `42P01`, `00000`
fn is_state(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    text.len() == 5
        && text.bytes().all(is_part)
        && text.starts_with(|first: char| first.is_ascii_digit() || "FHPX".contains(first))
        && (text.contains(|letter: char| letter.is_ascii_uppercase())
            && text.contains(|letter: char| letter.is_ascii_digit())
            || text.starts_with('0') && is_numeric_state(text))
}

/// `57014`, which could be the number of a process, too.
fn is_numeric_state(text: &str) -> bool {
    text.len() == 5 && is_number(text) && CLASSES.contains(&&text[..2])
}

/// `65e0f3b1.4d`: the start of the session and its process, in hexadecimal digits.
fn is_session(text: &str) -> bool {
    text.split_once('.').is_some_and(|(start, process)| {
        let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
        start.len() == 8 && is_hex(start) && is_hex(process)
    })
}
