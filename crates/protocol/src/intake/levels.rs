//! The level that a line of text says it has.
//!
//! Levels stand near the beginning of lines: in capitals (`2026-03-02 00:00:06 ERROR …`), in brackets
//! (`[error]`, `<Warning>`, `|Warn|`), before a colon (`warning: …`), right behind the time, behind the name
//! of the field that they are (`level=error`, `"level":"error"`) where a line is not all logfmt or JSON, and
//! in the forms of some products, see [`forms`]. A word within a sentence (`no error occurred`) is none.
//!
//! Words that are common in prose, or short, count only in the places of [`Strength::Weak`].

mod forms;
mod systems;
mod tools;
mod words;

use words::Strength;

/// How far into a line is looked, in bytes: behind a time, a thread and a class at most.
const HEAD_BYTES_MAX: usize = 128;

/// Names of fields that say a level.
const FIELDS: [&[u8]; 5] = [b"level", b"lvl", b"severity", b"loglevel", b"levelname"];

/// Digits of a time: of a day and of hours, minutes and seconds.
const TIME_DIGITS_MIN: usize = 8;

/// Digits of a time of day, which stands in brackets with the level (`[00:51:25 INF]`) or before `AM`.
const CLOCK_DIGITS_MIN: usize = 3;

/// Spellings of the byte that begins a sequence of a terminal: itself, and as loggers and syslog daemons
/// escape it.
const ESCAPES: [&[u8]; 5] = [b"\x1b[", b"\\x1b[", b"\\u001b[", b"\\033[", b"#033["];

/// The level of a line, in lower case: `trace`, `debug`, `info`, `notice`, `warn`, `error`,
/// `critical`, `alert` or `fatal`.
pub(crate) fn of_line(line: &[u8]) -> Option<&'static str> {
    let head = &line[..line.len().min(HEAD_BYTES_MAX)];
    if line.starts_with(b"<![LOG[") {
        return systems::cmtrace(line);
    }
    if matches!(line, [b'#', b'1' | b'2', b'.', ..]) {
        return systems::sap(line);
    }
    forms::of_start(head)
        .or_else(|| Scan::new(head).level())
        .or_else(|| forms::postgres(line))
        .or_else(|| forms::cisco(head))
        .or_else(|| systems::db2(head))
        .or_else(|| forms::event_xml(line))
        .or_else(|| systems::asterisk(line))
        .or_else(|| systems::glib(head))
        .or_else(|| tools::level(head))
}

/// The level of the name that devices of Cisco, Huawei, HPE and MikroTik write before their messages: `%ASA-4-106023`,
/// `%%01IFNET/4/LINK_STATE(l)`, `IFNET/3/PHY_UPDOWN`, `firewall,info`.
pub(crate) fn of_mnemonic(name: &[u8]) -> Option<&'static str> {
    match name {
        [b'%', ..] => forms::cisco(name),
        _ if name.contains(&b',') => forms::topics(name),
        _ => systems::mnemonic(name),
    }
}

/// The level of a letter.
pub(crate) fn of_letter(letter: u8) -> Option<&'static str> {
    forms::letter_of(letter)
}

/// True for the name of one of syslog's facilities.
pub(crate) fn is_facility(word: &[u8]) -> bool {
    systems::is_facility(word)
}

/// The level that a word means, in any case.
pub(crate) fn of_word(word: &[u8]) -> Option<&'static str> {
    words::of(word).map(|known| known.level)
}

/// True for a word for a level, in any case.
pub(crate) fn is_word(word: &[u8]) -> bool {
    words::of(word).is_some()
}

/// A walk over the words of a line's head.
struct Scan<'a> {
    head: &'a [u8],
    rest: &'a [u8],
    /// The byte before `rest`, unless it begins the line or stands behind a colour.
    before: Option<u8>,
    /// The last word, and the byte before it.
    previous: &'a [u8],
    before_previous: Option<u8>,
    /// True as long as only a time was seen.
    is_time: bool,
    /// True until the first word has ended.
    is_first: bool,
    digits: usize,
}

/// A word with the bytes around it.
struct Place<'a> {
    /// The line up to the word.
    ahead: &'a [u8],
    word: &'a [u8],
    before: Option<u8>,
    behind: &'a [u8],
}

impl<'a> Scan<'a> {
    fn new(head: &'a [u8]) -> Scan<'a> {
        Scan {
            head,
            rest: head,
            before: None,
            previous: b"",
            before_previous: None,
            is_time: true,
            is_first: true,
            digits: 0,
        }
    }

    fn level(mut self) -> Option<&'static str> {
        // Each round takes a byte, a word or a colour.
        while let Some((&byte, after)) = self.rest.split_first() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' => {
                    if let Some(level) = self.word() {
                        return Some(level);
                    }
                    continue;
                }
                b'0'..=b'9' => self.digits += 1,
                b'\x1b' | b'\\' | b'#' => {
                    if let Some(behind) = behind_colour(self.rest) {
                        (self.rest, self.before) = (behind, None);
                        continue;
                    }
                }
                _ => {}
            }
            (self.rest, self.before) = (after, Some(byte));
        }
        None
    }

    /// Takes the next word; gives the level if it is one.
    fn word(&mut self) -> Option<&'static str> {
        let is_letter = |byte: &u8| byte.is_ascii_alphabetic();
        let length = self.rest.iter().position(|byte| !is_letter(byte));
        let (word, behind) = self.rest.split_at(length.unwrap_or(self.rest.len()));
        let is_name = matches!(behind.first(), Some(b'=' | b'"' | b'\''));
        // Most words are no more than that.
        let is_topic = behind.first() == Some(&b',');
        let may_be_short = self.is_time && (word.len() <= 2 || is_topic);
        let level = if words::may_be(word) || is_name || may_be_short {
            self.level_at(&Place {
                ahead: &self.head[..self.head.len() - self.rest.len()],
                word,
                before: self.before,
                behind,
            })
        } else {
            None
        };
        self.is_time = self.is_time && is_of_time(word, self.before);
        self.is_first = false;
        (self.previous, self.before_previous) = (word, self.before);
        (self.rest, self.before) = (behind, word.last().copied());
        level
    }

    fn level_at(&self, place: &Place<'_>) -> Option<&'static str> {
        if let Some(level) = self.of_field(place) {
            return Some(level);
        }
        let by_letters = || forms::behind_time(self.head, place.word, place.before, place.behind);
        if place.word.len() <= 2
            && self.is_time
            && let Some(level) = by_letters()
        {
            return Some(level);
        }
        let in_brackets = || systems::in_brackets(place.word, place.before, place.behind);
        if place.word.len() == 1
            && self.is_time
            && self.digits >= CLOCK_DIGITS_MIN
            && let Some(level) = in_brackets()
        {
            return Some(level);
        }
        if place.word.len() == 4
            && let Some(level) = systems::extreme(place.word, place.before, place.behind)
        {
            return Some(level);
        }
        if place.word == b"LOG"
            && self.is_time
            && let [digit @ b'0'..=b'7', b'[', ..] = *place.behind
        {
            return systems::stunnel(digit);
        }
        if place.next() == Some(b',') && self.is_time && is_blank(place.before) {
            let topics = &self.head[place.ahead.len()..];
            if let Some(level) = forms::mikrotik(topics) {
                return Some(level);
            }
        }
        let known = words::of(place.word)?;
        let is_level = match known.strength {
            _ if systems::is_name(place.ahead, place.behind) => false,
            Strength::Plain => {
                self.is_behind_time(place)
                    || self.is_marked(place)
                    || self.is_of_product(place)
                    || self.is_time && systems::is_behind_bracket(place.ahead, place.behind)
                    || systems::is_behind_sign(place.ahead, place.behind)
                    || self.digits >= TIME_DIGITS_MIN && place.is_of_facility(self.previous)
                    || self.previous == b"corosync" && systems::is_of_corosync(place.behind)
                    || self.is_time && systems::is_of_vmware(place.behind)
                    || self.is_behind_facility(place)
                    || place.word[0].is_ascii_uppercase() && systems::is_before_source(place.behind)
            }
            _ => self.is_marked_for_certain(place, known.strength),
        };
        is_level.then_some(known.level)
    }

    /// True for a word that follows the time alone, with a number behind it or not (`debug2`).
    fn is_behind_time(&self, place: &Place<'_>) -> bool {
        let next = match place.behind {
            [b'1'..=b'9', next, ..] => Some(*next),
            _ => place.next(),
        };
        self.is_time && self.digits >= TIME_DIGITS_MIN && is_blank(place.before) && is_blank(next)
    }

    /// True for a word that follows the name of a facility and a point, and that a TAB or an angle ends.
    fn is_behind_facility(&self, place: &Place<'_>) -> bool {
        self.digits >= TIME_DIGITS_MIN
            && place.before == Some(b'.')
            && systems::is_behind_facility(place.ahead, place.behind)
    }

    /// True for a word that stands as a level does, by the bytes around it.
    fn is_marked(&self, place: &Place<'_>) -> bool {
        let Place { word, before, .. } = *place;
        let next = place.next();
        let stands_alone = before
            .is_none_or(|byte| is_open(byte) || is_edge(byte) || matches!(byte, b':' | b']'))
            && next.is_none_or(|byte| {
                is_close(byte) || is_edge(byte) || matches!(byte, b':' | b',' | b'!' | b';')
            });
        if place.is_bracketed() || place.is_piped() || place.is_column() || place.is_starred() {
            return true;
        }
        let is_between = |first, last| before == Some(first) && next == Some(last);
        let is_column = is_capital(word) && is_between(b',', b',');
        // Prosody has the name of a module before it, Twisted has it in brackets, and quill has `LOG_`.
        let is_of_quill = || self.previous == b"LOG" && before == Some(b'_') && is_blank(next);
        if is_between(b'\t', b'\t') || is_between(b'#', b']') || is_of_quill() {
            return true;
        }
        let is_last_inside = self.head.starts_with(b"[") && is_between(b' ', b']');
        if self.is_time && (is_column || is_last_inside) {
            return true;
        }
        if !(stands_alone || behind_colour(place.behind).is_some()) {
            return false;
        }
        let label_end = behind_colour(place.behind).map_or(next, |rest| rest.first().copied());
        let is_labelled = label_end == Some(b':')
            && before.is_none_or(is_edge)
            && !words::is_negation(self.previous)
            // The last letter of a time is no prose.
            && (self.is_time
                || !(place.is_behind_prose() && words::is_in_prose(word, self.previous)));
        is_capital(word)
            || is_labelled
            || words::is_before_label(word, place.behind)
            || self.is_first && before.is_none() && is_dashed(place.behind)
    }

    /// True for a word that stands where only a level does.
    fn is_marked_for_certain(&self, place: &Place<'_>, strength: Strength) -> bool {
        let Place { word, before, .. } = *place;
        let next = place.next();
        let is_nest = self.head.starts_with(b"[Nest]") && is_capital(word) && is_edge_or_none(next);
        let is_bracketed = place.is_bracketed() || place.is_piped();
        match strength {
            _ if is_nest => return true,
            Strength::Bracketed if systems::is_certain(word, place.ahead, place.behind) => {
                return true;
            }
            Strength::Bracketed => {
                return is_bracketed && words::is_certain_in(word, before, place.behind);
            }
            Strength::Capital if !is_capital(word) => return false,
            _ if is_bracketed => return true,
            _ => {}
        }
        let is_start = self.is_first && before.is_none_or(|byte| byte == b'\n');
        let is_clocked =
            self.is_time && self.digits >= CLOCK_DIGITS_MIN && before.is_none_or(is_edge);
        let ends = next.is_none_or(|byte| is_edge(byte) || is_close(byte) || byte == b':')
            || behind_colour(place.behind).is_some();
        let is_behind_line = before == Some(b'\n') && next == Some(b':');
        is_clocked && ends && (is_capital(word) || next == Some(b':'))
            || is_start && next == Some(b':')
            || is_behind_line && is_capital(word)
            || self.is_of_product(place)
            || systems::is_certain(word, place.ahead, place.behind)
    }

    /// `INFO[0007]` of logrus and Asterisk's `NOTICE[123]`, `error[E0432]`, Monolog's `production.ERROR:`,
    /// `ERROR/MainProcess]` of Celery and Python's multiprocessing, and the first column of CSV.
    fn is_of_product(&self, place: &Place<'_>) -> bool {
        let Place { word, before, .. } = *place;
        let is_head = self.is_first && before.is_none() || self.is_time && is_blank(before);
        match behind_colour(place.behind).unwrap_or(place.behind) {
            [b'[', b'0'..=b'9', ..] => is_head && is_capital(word),
            [b'[', b'E', b'0'..=b'9', ..] => is_head,
            // Luanti.
            [b'[', b'A'..=b'Z', b'a'..=b'z', rest @ ..] => {
                let end = memchr::memchr(b']', rest).unwrap_or(rest.len());
                is_head && is_capital(word) && rest[end..].starts_with(b"]: ")
            }
            [b':', ..] if before == Some(b'.') => {
                is_capital(word) && self.head.starts_with(b"[") && place.is_behind_channel()
            }
            [b'/', b'A'..=b'Z' | b'a'..=b'z', ..] => {
                let is_inside = self.is_time && matches!(before, Some(b' ' | b'['));
                is_capital(word) && self.head.starts_with(b"[") && is_inside
            }
            // VMware's kernel, Minecraft.
            [b':', ..] if before == Some(b')') => is_capital(word),
            [b']', b':', ..] | [b']', b' ', b'[' | b'(', ..] if before == Some(b'/') => {
                is_capital(word) && self.head.starts_with(b"[")
            }
            [b'"', b',', ..] => self.is_first && self.head.starts_with(b"\"") && self.digits == 0,
            _ => false,
        }
    }

    /// The level that a field says: `level=error`, `level="error"`, `"level": "error"`.
    fn of_field(&self, place: &Place<'_>) -> Option<&'static str> {
        let Place {
            word: name,
            before,
            behind,
            ..
        } = *place;
        let quote = *behind.first()?;
        let is_member = matches!(quote, b'"' | b'\'') && behind.get(1) == Some(&b':');
        if !is_member && quote != b'=' {
            return None;
        }
        let is_level = FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name));
        // `log_level`, `log.level`.
        let is_log =
            matches!(before, Some(b'_' | b'.')) && self.previous.eq_ignore_ascii_case(b"log");
        let before = if is_log { self.before_previous } else { before };
        let begins = if is_member {
            before == Some(quote)
        } else {
            before.is_none_or(|byte| b" \t,;|([{".contains(&byte))
        };
        if !is_level || !begins {
            return None;
        }
        let value = if is_member {
            behind[2..].trim_ascii_start().strip_prefix(&[quote])?
        } else {
            let value = &behind[1..];
            // Python's form of a text has single quotes.
            value
                .strip_prefix(b"\"")
                .or(value.strip_prefix(b"'"))
                .unwrap_or(value)
        };
        let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic());
        let (word, after) = value.split_at(letters.count());
        let is_part =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let known = words::of(word).filter(|_| !after.first().is_some_and(is_part))?;
        Some(known.level)
    }
}

impl Place<'_> {
    fn next(&self) -> Option<u8> {
        self.behind.first().copied()
    }

    /// True inside of brackets, with blanks behind it or not (`[info     ]`), or with a module before it:
    /// Apache writes `[core:error]`, and `[ssl:trace3]`.
    fn is_bracketed(&self) -> bool {
        let opens = match self.before {
            // Fluent Bit pads words before them.
            Some(b' ') => self.ahead.ends_with(b"[ "),
            before => before.is_some_and(|byte| is_open(byte) || byte == b':'),
        };
        let mut behind = self.behind;
        if let [b'0'..=b'9', rest @ ..] = behind {
            behind = rest;
        }
        opens
            && behind
                .trim_ascii_start()
                .first()
                .copied()
                .is_some_and(is_close)
    }

    /// True if a word stands before it, with a blank between them.
    fn is_behind_prose(&self) -> bool {
        let ahead = self.ahead.trim_ascii_end();
        let is_letter = |byte: &&u8| byte.is_ascii_alphabetic();
        let letters = ahead.iter().rev().take_while(is_letter).count();
        // A unit is none.
        let before = ahead[..ahead.len() - letters].last();
        letters > 0 && !before.is_some_and(u8::is_ascii_digit)
    }

    /// True if the name of a channel and a point stand before it, behind a time in brackets.
    fn is_behind_channel(&self) -> bool {
        let ahead = &self.ahead[..self.ahead.len().saturating_sub(1)];
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let name = ahead.iter().rev().take_while(|byte| is_name(byte)).count();
        name > 0 && ahead[..ahead.len() - name].ends_with(b"] ")
    }

    /// In capitals, as a column of CSV: `;ERROR;`, `,"ERROR",`
    fn is_column(&self) -> bool {
        let is_parted = self.before == Some(b';') && self.next() == Some(b';');
        let is_quoted = self.ahead.ends_with(b",\"") && self.behind.starts_with(b"\",");
        is_capital(self.word) && (is_parted || is_quoted)
    }

    /// `daemon.err dnsmasq[7]: …` of OpenWrt and others, behind a time.
    fn is_of_facility(&self, previous: &[u8]) -> bool {
        let has_tag = || {
            let tag = self.behind.strip_prefix(b" ")?;
            let end = tag.iter().position(|byte| *byte == b' ')?;
            Some(tag[..end].ends_with(b":"))
        };
        self.before == Some(b'.') && systems::is_facility(previous) && has_tag() == Some(true)
    }

    /// In capitals, between the stars of Apache Sling and CRX.
    fn is_starred(&self) -> bool {
        // Two stars are of Markdown.
        let is_start = self.ahead == b"*" || self.ahead.ends_with(b" *");
        is_capital(self.word) && is_start && self.behind.starts_with(b"* ")
    }

    /// `|Warn|`, and in capitals with blanks: `| SUCCESS  |`.
    fn is_piped(&self) -> bool {
        let is_tight = self.before == Some(b'|');
        let is_spaced = || is_capital(self.word) && self.ahead.trim_ascii_end().ends_with(b"|");
        self.behind.trim_ascii_start().first() == Some(&b'|') && (is_tight || is_spaced())
    }
}

fn is_open(byte: u8) -> bool {
    matches!(byte, b'[' | b'(' | b'<' | b'{')
}

fn is_close(byte: u8) -> bool {
    matches!(byte, b']' | b')' | b'>' | b'}')
}

fn is_edge(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'|' | b'\x1b')
}

fn is_edge_or_none(byte: Option<u8>) -> bool {
    byte.is_none_or(is_edge)
}

fn is_blank(byte: Option<u8>) -> bool {
    matches!(byte, Some(b' ' | b'\t'))
}

fn is_capital(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_uppercase)
}

/// `info  - ready` of Node's tools.
fn is_dashed(behind: &[u8]) -> bool {
    behind.trim_ascii_start().starts_with(b"- ") && is_blank(behind.first().copied())
}

/// True for words that belong to a time: of ISO 8601, halves of the day, months, days of the week, and
/// names of zones behind digits.
fn is_of_time(word: &[u8], before: Option<u8>) -> bool {
    const NAMES: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDecMonTueWedThuFriSatSun";
    match word.len() {
        // The last is that of an exponent.
        1 => matches!(word, b"T" | b"Z" | b"e"),
        2 => matches!(word, b"AM" | b"PM" | b"am" | b"pm"),
        3 if NAMES
            .chunks_exact(3)
            .any(|name| name.eq_ignore_ascii_case(word)) =>
        {
            true
        }
        // Monit.
        3 if word == b"UTC" => true,
        3..=5 => {
            is_capital(word) && before.is_some_and(|byte| byte == b' ' || byte.is_ascii_digit())
        }
        _ => false,
    }
}

/// The bytes that follow a sequence that sets a terminal's colour, if `text` begins with one.
fn behind_colour(text: &[u8]) -> Option<&[u8]> {
    if !matches!(text.first(), Some(b'\x1b' | b'\\' | b'#')) {
        return None;
    }
    let inside = ESCAPES
        .iter()
        .find_map(|escape| text.strip_prefix(*escape))?;
    let end = inside.iter().position(u8::is_ascii_alphabetic)?;
    Some(&inside[end + 1..])
}

#[cfg(test)]
mod tests;
