//! RFC 3164: `Mmm dd hh:mm:ss host tag[pid]: message`, behind the priority.
//!
//! Also read: one space before the time, a year, a zone or a fraction of a second in it, and all
//! other forms of times. A word that ends like a tag where the host should stand is the tag: senders on the same
//! machine leave the host out, and some the time as well. Behind a host, a tag may end without a colon
//! (`app[77] text`, as relays of RFC 5424 write it) or without a space (`app[77]:text`). Without a tag,
//! what follows the host is the message. F5's devices write the severity between
//! host and tag (`f5 err mcpd[77]:`), OpenWrt the facility, too (`router daemon.err dnsmasq[77]:`), AIX all names of
//! both (`aix1 daemon:err|error inetd[77]:`).
//!
//! Files of some daemons differ:
//!
//! | file | line |
//! | --- | --- |
//! | dnsmasq, SOGo, Dovecot without a daemon | `Mmm dd hh:mm:ss dnsmasq[77]: text`, `sogod [77]: text`, `auth(77): text` |
//! | Unbound, with the thread | `Mmm dd hh:mm:ss unbound[77:0] error: text` |
//! | OpenWrt's logread | `Fri Mmm dd hh:mm:ss yyyy daemon.err dnsmasq[77]: text` |
//! | FreeBSD's syslogd with `-v`, NetScaler | `Mmm dd hh:mm:ss <kern.crit> host kernel: text` |
//! | macOS | `Mmm dd hh:mm:ss mac launchd[1] (com.example.shop[77]): text`, `mac Dock[77] <Error>: text` |
//! | Junos | two blanks before the host |
//! | UniFi | `U7PG2,788a20aabbcc,v4.3.28: hostapd: text`, a host with a colon |
//! | PAN-OS | `fw1 1,2026/11/27 00:51:25,…`, no tag |
//! | Sophos UTM | `2026:11:27-00:51:25 utm ulogd[77]: text` |

use logpond_record::TimeSource;

use super::rule::Context;
use super::vendors::{is_body, topics_bytes};
use super::{WORD_BYTES_MAX, word};
use crate::intake::access;
use crate::intake::levels;
use crate::intake::sketch::Sketch;
use crate::intake::timestamps;

/// The longest name of a program in a tag; the RFC has 32, and nobody obeys.
const TAG_BYTES_MAX: usize = 128;

/// The longest name in a tag that nothing stands before.
const BARE_TAG_BYTES_MAX: usize = 64;

/// Names of syslog's severities.
const SEVERITIES: [&str; 9] = [
    "emerg", "alert", "crit", "err", "warning", "warn", "notice", "info", "debug",
];

/// Levels of MonetDB, which stand where the host does in syslog.
const SHORT_LEVELS: [&str; 3] = ["MSG", "WRN", "DBG"];

/// The most bytes of a facility and a severity, and the blank behind them.
const LEVEL_BYTES_MAX: usize = 20;

/// The most blanks that a column before the host is padded with, beyond the first.
const BLANKS_MAX: usize = 3;

/// The most bytes of a facility and a severity between angles.
const ANGLES_BYTES_MAX: usize = 24;

/// How sure it is that the RFC describes a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// There is a time, a host and a tag.
    Whole,
    /// There is a time, and a tag right behind it.
    Tagged,
    /// There is a time.
    Timed,
}

/// The author of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A sender of syslog: a priority stands before it.
    Sender,
    /// Anybody: it may be a line of another logger, which writes a level behind the time.
    Unknown,
}

impl Origin {
    fn may_have_host(self, word: &str) -> bool {
        let is_level = || timestamps::is_level(word.as_bytes()) || SHORT_LEVELS.contains(&word);
        is_host(word) && (self == Origin::Sender || !is_level())
    }
}

/// A tag and what follows it.
struct Tag<'a> {
    app: &'a str,
    process: Option<&'a str>,
    /// False if it ends with its process.
    has_colon: bool,
    /// Behind the colon.
    rest: &'a [u8],
}

/// The place of a tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Behind a host and a priority: a text that looks like a tag is one.
    BehindHost,
    /// Behind a host, in a file.
    InFile,
    /// Elsewhere.
    Bare,
}

pub(super) fn draw<'a>(
    after: &'a [u8],
    origin: Origin,
    context: Context<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<Certainty> {
    let text = match after.strip_prefix(b" ") {
        Some(text) => {
            sketch.literal(" ");
            text
        }
        None => after,
    };
    let written = context.times.header(text, context.received)?;
    let (time, mut rest) = text.split_at(written.bytes);
    if !matches!(rest.first(), None | Some(b' ' | b':')) {
        return None;
    }
    sketch.time(&written, time, TimeSource::Header);
    if let Some(after) = rest.strip_prefix(b": ") {
        sketch.literal(": ");
        return Some(draw_content(after, Place::Bare, sketch));
    }
    let Some(after) = rest.strip_prefix(b" ") else {
        sketch.message(rest);
        return Some(Certainty::Timed);
    };
    sketch.literal(" ");
    rest = draw_blanks(after, sketch);
    if origin == Origin::Unknown {
        if let Some(found) = draw_of_file(rest, sketch) {
            return Some(found);
        }
        rest = draw_angles(rest, sketch).unwrap_or(rest);
    }
    let mut has_host = false;
    if let Some(after) = draw_comma_host(rest, sketch) {
        has_host = true;
        rest = after;
    } else if tag(rest, Place::Bare).is_none()
        && let Some((host, after)) = word(rest).filter(|(host, _)| origin.may_have_host(host))
        && matches!(after.first(), None | Some(b' '))
    {
        sketch.text("hostname:t", host);
        has_host = true;
        rest = match after.strip_prefix(b" ") {
            Some(after) => {
                sketch.literal(" ");
                after
            }
            None => after,
        };
        rest = draw_level(draw_blanks(rest, sketch), sketch);
    }
    if has_host && let Some((topics, after)) = topics(rest) {
        sketch.text("app:t", topics);
        sketch.literal(" ");
        sketch.message(after);
        return Some(Certainty::Whole);
    }
    let place = match (has_host, origin) {
        (true, Origin::Sender) => Place::BehindHost,
        (true, Origin::Unknown) => Place::InFile,
        (false, _) => Place::Bare,
    };
    let is_certain =
        has_host && (is_content(rest) || is_repeated(rest) || sketch.has_slot(b"facility_name"));
    Some(match draw_content(rest, place, sketch) {
        Certainty::Tagged if has_host => Certainty::Whole,
        _ if is_certain => Certainty::Whole,
        certainty => certainty,
    })
}

/// Draws the blanks that a column is padded with.
fn draw_blanks<'a>(text: &'a [u8], sketch: &mut Sketch<'_, 'a>) -> &'a [u8] {
    let blanks = text.iter().take(BLANKS_MAX);
    let count = blanks.take_while(|byte| **byte == b' ').count();
    let is_padded = text.get(count).is_some_and(u8::is_ascii_alphanumeric);
    if count == 0 || !is_padded {
        return text;
    }
    let (blanks, rest) = text.split_at(count);
    sketch.ascii(blanks);
    rest
}

/// True if a line begins as OpenWrt's logread prints it: `Fri Nov 27 00:51:25 2026 daemon.err …`.
pub(super) fn is_logread(line: &[u8]) -> bool {
    const TIME_BYTES: usize = 25;
    let (Some(b' '), Some(b' '), Some(b' ')) = (line.get(3), line.get(7), line.get(24)) else {
        return false;
    };
    let behind = &line[TIME_BYTES..line.len().min(TIME_BYTES + LEVEL_BYTES_MAX)];
    let dot = memchr::memchr(b'.', behind);
    let facility = dot.and_then(|dot| std::str::from_utf8(&behind[..dot]).ok());
    facility.is_some_and(is_facility)
}

/// Draws what stands behind the time in files of daemons that write no host: a program with a number of its process, or
/// facility and severity of OpenWrt.
fn draw_of_file<'a>(text: &'a [u8], sketch: &mut Sketch<'_, 'a>) -> Option<Certainty> {
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let head = &text[..text.len().min(BARE_TAG_BYTES_MAX)];
    let length = head.iter().take_while(is_name).count();
    let (name, behind) = text.split_at(length);
    if length == 0 || !name[0].is_ascii_alphabetic() {
        return None;
    }
    let (open, close) = match behind {
        [b'[', ..] => ("[", "]:"),
        [b' ', b'[', ..] => (" [", "]:"),
        [b'(', ..] => ("(", "):"),
        [b' ', ..] if memchr::memchr(b'.', name).is_some() => {
            let rest = draw_level(text, sketch);
            let is_drawn = rest.len() < text.len();
            return is_drawn.then(|| {
                draw_content(rest, Place::Bare, sketch);
                Certainty::Whole
            });
        }
        _ => return None,
    };
    let inside = &behind[open.len()..];
    let digits = inside.iter().take_while(|byte| byte.is_ascii_digit());
    let (process, rest) = inside.split_at(digits.count());
    let thread = rest.strip_prefix(b":").unwrap_or_default();
    let thread = &thread[..thread.iter().take_while(|b| b.is_ascii_digit()).count()];
    let (rest, close) = match thread {
        [] => (rest.strip_prefix(close.as_bytes())?, close),
        // Unbound.
        thread => (rest[1 + thread.len()..].strip_prefix(b"]")?, "]"),
    };
    let rest = rest.strip_prefix(b" ")?;
    if process.is_empty() || timestamps::is_level(name) {
        return None;
    }
    sketch.text("app:t", std::str::from_utf8(name).ok()?);
    sketch.literal(open);
    sketch.text("procid:t", std::str::from_utf8(process).ok()?);
    if !thread.is_empty() {
        sketch.literal(":");
        sketch.text("tid:t", std::str::from_utf8(thread).ok()?);
    }
    sketch.literal(close);
    sketch.literal(" ");
    sketch.message(rest);
    Some(Certainty::Whole)
}

/// Draws facility and severity between angles, `<kern.crit> `; gives what follows.
fn draw_angles<'a>(text: &'a [u8], sketch: &mut Sketch<'_, 'a>) -> Option<&'a [u8]> {
    let inside = text.strip_prefix(b"<")?;
    let end = memchr::memchr(b'>', &inside[..inside.len().min(ANGLES_BYTES_MAX)])?;
    let word = std::str::from_utf8(&inside[..end]).ok()?;
    let (facility, level) = word.split_once('.')?;
    let rest = inside[end + 1..].strip_prefix(b" ")?;
    if !is_facility(facility) || !SEVERITIES.contains(&level) {
        return None;
    }
    sketch.literal("<");
    sketch.text("facility_name:t", facility);
    sketch.literal(".");
    sketch.text("level:t", level);
    sketch.literal("> ");
    Some(rest)
}

/// Draws a host of UniFi, whose commas part its model, its address and its version, and which a colon ends.
fn draw_comma_host<'a>(text: &'a [u8], sketch: &mut Sketch<'_, 'a>) -> Option<&'a [u8]> {
    let head = &text[..text.len().min(BARE_TAG_BYTES_MAX)];
    let comma = memchr::memchr(b',', head)?;
    let (host, after) = word(text)?;
    let host = host.strip_suffix(':')?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".,+_-".contains(&byte);
    if comma >= host.len() || !host.bytes().all(is_part) {
        return None;
    }
    let rest = after.strip_prefix(b" ")?;
    tag(rest, Place::Bare)?;
    sketch.text("hostname:t", host);
    sketch.literal(": ");
    Some(rest)
}

/// True for `last message repeated 3 times`, also between hyphens as on macOS.
fn is_repeated(text: &[u8]) -> bool {
    let starts: [&[u8]; 2] = [b"last message repeated ", b"--- last message repeated "];
    starts.iter().any(|start| text.starts_with(start))
}

/// The topics of RouterOS, which stand where others have a tag, and the message.
fn topics(text: &[u8]) -> Option<(&str, &[u8])> {
    let (topics, rest) = text.split_at(topics_bytes(text)?);
    Some((std::str::from_utf8(topics).ok()?, &rest[1..]))
}

/// True for what devices write behind the host without a tag: an event, pairs, values, topics, an object or a line of an
/// access log.
fn is_content(text: &[u8]) -> bool {
    let is_topic = |byte: &&u8| byte.is_ascii_lowercase() || matches!(byte, b',' | b'-');
    match text {
        [b'{', b'"', ..] => true,
        [b'd', b'a', b't', b'e', b'=', b'2', b'0', ..] => true,
        [b'a'..=b'z', ..] if !is_body(text) => {
            let topics = &text[..text.iter().take_while(is_topic).count()];
            topics.contains(&b',') && text[topics.len()..].starts_with(b" ")
        }
        [b'0'..=b'9', ..] => is_pan_os(text) || access::reader(text).is_some(),
        _ => is_body(text),
    }
}

/// True for the values of PAN-OS: `1,2026/11/27 00:51:25,…`
fn is_pan_os(text: &[u8]) -> bool {
    matches!(
        text,
        [b'1', b',', b'2', b'0', b'0'..=b'9', b'0'..=b'9', b'/', ..]
    )
}

/// Draws a tag and the message behind it where neither time nor host stands before: senders on the same
/// machine, and the libraries of many languages, leave both out.
pub(super) fn draw_tagged<'a>(text: &'a [u8], sketch: &mut Sketch<'_, 'a>) -> Option<()> {
    let found = tag(text, Place::Bare)?;
    let is_name =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    let is_likely = found.app.len() <= BARE_TAG_BYTES_MAX
        && found.app.as_bytes()[0].is_ascii_alphabetic()
        && found.app.bytes().all(is_name);
    if !is_likely {
        return None;
    }
    let rest = draw_found(&found, sketch);
    sketch.message(rest);
    Some(())
}

/// Draws a line that has no priority, if a host and a tag follow its time. Among lines of unknown
/// origin only the RFC's own form of time counts, and lines of files as [`is_of_file`] knows them: after
/// other times, any two words may stand.
pub(super) fn draw_alone<'a>(
    line: &'a [u8],
    is_syslog: bool,
    context: Context<'_>,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<()> {
    let may_begin_so = match line.first()? {
        first if first.is_ascii_uppercase() => true,
        first => is_syslog && *first != b' ' || is_of_file(line),
    };
    if !may_begin_so {
        return None;
    }
    match draw(line, Origin::Unknown, context, sketch)? {
        Certainty::Whole => Some(()),
        Certainty::Tagged => is_of_file(line).then_some(()),
        Certainty::Timed => None,
    }
}

/// True if a line begins as those of files that today's syslog daemons write (rsyslog's
/// RSYSLOG_FileFormat, the default of Debian 12 and Ubuntu 24; syslog-ng's ISO dates), and that
/// `journalctl -o short-iso` prints: a time of RFC 3339, a host and a tag.
///
/// A tag with a process is beyond doubt. Without one, the time must be as rsyslog writes it, or the host
/// have a digit, a dot or a hyphen: others write a thread and a class there. Heroku writes such a time and
/// a tag without a host.
pub(super) fn is_of_file(line: &[u8]) -> bool {
    let Some(head) = line.first_chunk::<20>() else {
        return false;
    };
    let is_iso = head[4] == b'-' && head[7] == b'-' && head[10] == b'T' && head[13] == b':';
    // Sophos UTM.
    let is_utm = head[4] == b':' && head[7] == b':' && head[10] == b'-' && head[13] == b':';
    // Templates of one's own have a blank in it.
    let is_parted = head[4] == b'-' && head[7] == b'-' && head[10] == b' ' && head[13] == b':';
    if !(is_iso || is_utm || is_parted) {
        return false;
    }
    let line = if is_parted { &line[11..] } else { line };
    let mut words = line.splitn(5, |byte| *byte == b' ');
    let (Some(time), Some(host)) = (words.next(), words.next()) else {
        return false;
    };
    let zone = &time[19.min(time.len())..];
    let is_rsyslog = zone.len() == 13 && zone[0] == b'.' && zone[10] == b':';
    if host.ends_with(b"]:") && is_rsyslog {
        return true;
    }
    // Ceph writes a thread.
    let is_thread = host.len() == 12 && host.iter().all(u8::is_ascii_hexdigit);
    // `… - error: refused` is a logger's line.
    let may_be_host = !matches!(host, b"" | b"-")
        && !is_thread
        && host.len() <= WORD_BYTES_MAX
        && std::str::from_utf8(host).is_ok_and(is_host)
        && !timestamps::is_level(host);
    if !may_be_host {
        return false;
    }
    let mut tag = words.next().unwrap_or_default();
    let content = line.get(time.len() + 1 + host.len() + 1..);
    let is_machine = host
        .iter()
        .any(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'));
    // An object may stand behind the name of a logger, too.
    let is_event = |content: &[u8]| !content.starts_with(b"{") && is_content(content);
    if is_machine && content.is_some_and(|content| is_event(content.trim_ascii_start())) {
        return true;
    }
    if is_level_of_facility(tag) {
        tag = words.next().unwrap_or_default();
    }
    // `… 00E ERROR: failed` is one, too.
    if timestamps::is_level(tag.strip_suffix(b":").unwrap_or(tag)) {
        return false;
    }
    if let Some(end) = memchr::memmem::find(tag, b"]:") {
        let start = memchr::memchr(b'[', &tag[..end]);
        return start
            .is_some_and(|start| start > 0 && tag[start + 1..end].iter().all(u8::is_ascii_digit));
    }
    !is_parted
        && tag.len() > 1
        && tag.ends_with(b":")
        && (is_rsyslog || is_machine && !zone.is_empty())
}

/// True for `daemon.err`.
fn is_level_of_facility(word: &[u8]) -> bool {
    let parts = std::str::from_utf8(word)
        .ok()
        .and_then(|word| word.split_once('.'));
    parts.is_some_and(|(facility, level)| is_facility(facility) && SEVERITIES.contains(&level))
}

/// True for the name of one of syslog's facilities.
fn is_facility(word: &str) -> bool {
    levels::is_facility(word.as_bytes())
        || word
            .strip_prefix("local")
            .is_some_and(|digit| matches!(digit.as_bytes(), [b'0'..=b'7']))
}

/// Draws the severity that F5's devices and OpenWrt's logread write between host and tag, or nothing; gives what
/// follows.
fn draw_level<'a>(text: &'a [u8], sketch: &mut Sketch<'_, 'a>) -> &'a [u8] {
    let found = || {
        let end = memchr::memchr(b' ', &text[..text.len().min(LEVEL_BYTES_MAX)])?;
        // A tag is the rule.
        if end == 0 || !text[end - 1].is_ascii_alphabetic() {
            return None;
        }
        let (word, after) = word(text)?;
        let parts = word.split_once('.').map(|parts| (parts, "."));
        let (facility, sign, levels) = match parts.or_else(|| of_aix(word)) {
            Some(((facility, levels), sign)) if is_facility(first_of(facility)) => {
                (facility, sign, levels)
            }
            Some(_) => return None,
            None => ("", "", word),
        };
        let after = after
            .strip_prefix(b" ")
            .filter(|_| SEVERITIES.contains(&first_of(levels)))?;
        let has_process = tag(after, Place::Bare)?.process.is_some();
        (has_process || !facility.is_empty()).then_some((facility, sign, levels, after))
    };
    let Some((facility, sign, levels, after)) = found() else {
        return text;
    };
    if !facility.is_empty() {
        sketch.text("facility_name:t", facility);
        sketch.literal(sign);
    }
    let level = first_of(levels);
    sketch.text("level:t", level);
    sketch.literal(&levels[level.len()..]);
    sketch.literal(" ");
    after
}

/// Facility and severity as AIX writes them, with all of their names: `auth|security:info`, `daemon:err|error`.
fn of_aix(word: &str) -> Option<((&str, &str), &'static str)> {
    Some((word.split_once(':')?, ":"))
}

/// The first of the names that bars part.
fn first_of(names: &str) -> &str {
    names.split('|').next().unwrap_or(names)
}

fn draw_content<'a>(rest: &'a [u8], place: Place, sketch: &mut Sketch<'_, 'a>) -> Certainty {
    let behind_tag = tag(rest, place).map(|tag| draw_found(&tag, sketch));
    sketch.message(behind_tag.unwrap_or(rest));
    match behind_tag {
        Some(_) => Certainty::Tagged,
        None => Certainty::Timed,
    }
}

/// Draws a tag and the space behind it, or nothing; gives what follows.
pub(super) fn draw_tag<'a>(text: &'a [u8], sketch: &mut Sketch<'_, 'a>) -> Option<&'a [u8]> {
    tag(text, Place::Bare).map(|tag| draw_found(&tag, sketch))
}

fn draw_found<'a>(tag: &Tag<'a>, sketch: &mut Sketch<'_, 'a>) -> &'a [u8] {
    sketch.text("app:t", tag.app);
    if let Some(process) = tag.process {
        sketch.literal("[");
        sketch.text("procid:t", process);
        sketch.literal("]");
    }
    if tag.has_colon {
        sketch.literal(":");
    }
    match tag.rest.strip_prefix(b" ") {
        Some(rest) => {
            sketch.literal(" ");
            rest
        }
        None => tag.rest,
    }
}

/// Reads `name:` or `name[process]:`.
fn tag(text: &[u8], place: Place) -> Option<Tag<'_>> {
    let end = text
        .iter()
        .take(TAG_BYTES_MAX + 1)
        .take_while(|b| b.is_ascii_graphic() && !matches!(b, b':' | b'[' | b'{' | b'"' | b'='))
        .count();
    if end == 0 || end > TAG_BYTES_MAX {
        return None;
    }
    let app = std::str::from_utf8(&text[..end]).ok()?;
    let mut rest = &text[end..];
    let mut process = None;
    if let Some(inside) = rest.strip_prefix(b"[") {
        let end = inside.iter().take(TAG_BYTES_MAX).position(|b| *b == b']')?;
        let inside_text = std::str::from_utf8(&inside[..end]).ok()?;
        if !inside_text.bytes().all(|b| b.is_ascii_graphic()) {
            return None;
        }
        process = Some(inside_text);
        rest = &inside[end + 1..];
    }
    let colon = rest.strip_prefix(b":");
    let tag = Tag {
        app,
        process,
        has_colon: colon.is_some(),
        rest: colon.unwrap_or(rest),
    };
    tag.is_one(place).then_some(tag)
}

impl Tag<'_> {
    /// True if what follows the name makes it a tag.
    fn is_one(&self, place: Place) -> bool {
        let is_ended = matches!(self.rest.first(), None | Some(b' '));
        let is_number = |process: &str| process.bytes().all(|b| b.is_ascii_digit());
        match (self.process, self.has_colon) {
            (Some(_), true) if is_ended => true,
            // A process tells enough, a number at least.
            (Some(process), true) => !process.is_empty() && is_number(process),
            (Some(process), false) => {
                let is_it = is_ended && !process.is_empty() && is_number(process);
                // macOS has the level, or the process that a message is about, behind it.
                let is_macos = || {
                    place == Place::InFile
                        && matches!(
                            self.rest,
                            [b' ', b'(' | b'<', b'A'..=b'Z' | b'a'..=b'z', ..]
                        )
                };
                is_it && (place == Place::BehindHost || is_macos())
            }
            (None, true) if is_ended => true,
            // As the RFC has it: the first character that a name does not have ends it. Not so in
            // addresses, paths and clocks.
            (None, true) => {
                let app = self.app.as_bytes();
                place == Place::BehindHost
                    && app.len() > 1
                    && app[0].is_ascii_alphabetic()
                    && app
                        .iter()
                        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
                    && !matches!(self.rest[0], b':' | b'/' | b'\\' | b'0'..=b'9')
            }
            (None, false) => false,
        }
    }
}

/// Whether a word can name a machine.
fn is_host(word: &str) -> bool {
    word.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'/' | b'%'))
        && !word.ends_with(':')
}
