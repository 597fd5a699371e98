//! Levels as single products write them: letters, signs and numbers.
//!
//! | product | line |
//! | --- | --- |
//! | glog, klog, CockroachDB | `I0302 00:00:06.000000 1 server.go:7] …`, `I20260302 …`, `I260302 …` |
//! | Tornado, Jupyter | `[I 260302 00:00:06 web:7] …` |
//! | Android's logcat | `E/Tag( 77): …`, `03-02 00:00:06.000  77  78 E Tag: …` |
//! | Redis, Valkey, KeyDB | `1:M 02 Mar 2026 00:00:06.000 * …`, `1:23:M 02 Mar 2026 …` |
//! | MongoDB up to 4.2 | `2026-03-02T00:00:06.000+0000 I NETWORK  [conn1] …` |
//! | Telegraf | `2026-03-02T00:00:06Z E! …` |
//! | TensorFlow | `2026-03-02 00:00:06.000000: E tensorflow/a.cc:7] …` |
//! | etcd 3.3 | `2026-03-02 00:00:06.000000 I \| etcdserver: …` |
//! | VMware ESXi 8 | `2026-03-02T00:00:06.000Z In(14) vpxa[77]: …`; the number is a priority of syslog |
//! | Erlang's reports | `=ERROR REPORT==== 2-Mar-2026::00:00:06 ===` |
//! | Sympa | `info main::do_signoff() …` |
//! | apt | `E: …` |
//! | MikroTik | `system,error,critical login failure …`; topics, the last level among them counts |
//! | Cisco | `%ASA-4-106023: …`; the number is a severity of syslog |
//! | WebSphere, Liberty | `[3/2/26 0:00:06:000 CET] 0000001a WSVR          E   …`, `[AUDIT   ] …` |
//! | Windows | `<Event …><Level>2</Level>`, `Error,27/11/2026 00:51:25,…` |
//! | PostgreSQL | `PREFIX LOG:  …`, with two blanks |
//! | systemd, in what services print | `<3>refused`; the number is a severity of syslog |
//! | others | see [`systems`], [`tools`] |

use std::sync::LazyLock;

use logpond_record::Severity;
use memchr::memmem;

use super::{systems, tools};

/// How far into a line PostgreSQL's level is looked for, in bytes: behind a prefix with the names of a user, a
/// database, an application and a host.
const POSTGRES_BYTES_MAX: usize = 512;

/// How far into an event of Windows its level is looked for, in bytes.
const EVENT_BYTES_MAX: usize = 1024;

/// The most percent signs that are looked at.
const PERCENTS_MAX: usize = 4;

/// The end of PostgreSQL's label.
static LABEL_END: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(":  "));

/// The level by the form that a line begins in.
pub(super) fn of_start(head: &[u8]) -> Option<&'static str> {
    match *head {
        [_, _, _, _, _, _, _, _, b' ', b' ', ..] if systems::is_errpt(head) => systems::errpt(head),
        [b'[', ..] => of_bracket(head),
        [letter @ b'A'..=b'Z', b'0'..=b'9', ..] => google(letter, &head[1..]),
        [
            letter @ b'A'..=b'Z',
            b' ',
            b'[',
            b'0'..=b'9',
            b'0'..=b'9',
            b'/',
            ..,
        ] => systems::cups(letter),
        [b'd', b' ', b'[', b'0'..=b'9', b'0'..=b'9', b'/', ..] => Some("debug"),
        [
            letter @ (b'I' | b'W' | b'M' | b'D' | b'E'),
            b' ',
            b'0'..=b'9',
            b'0'..=b'9',
            b'/',
            b'0'..=b'9',
            b'0'..=b'9',
            b'/',
            b'0'..=b'9',
            b'0'..=b'9',
            b' ',
            ..,
        ] => systems::procurve(letter),
        [b'E', b'v', b'e', b'n', b't', b'|', b'0'..=b'9', ..] => systems::aos_cx(head),
        [
            b'<',
            letter @ (b'D' | b'W' | b'C' | b'F'),
            b'>',
            b'0'..=b'9',
            ..,
        ] => letter_of(letter),
        [b'<', severity @ b'0'..=b'7', b'>', next, ..] if !next.is_ascii_digit() => {
            Some(Severity::of_syslog(severity - b'0')?.name())
        }
        [_, b' ', b'(', b'0'..=b'9', ..] | [0x1b, ..] => tools::esp(head),
        [letter @ b'A'..=b'Z', b'/', ref rest @ ..] => logcat(letter, rest),
        [b'A'..=b'Z', b':' | b'.', b' ', ..] => before_sign(head),
        [b'=', b'A'..=b'Z', ..] => erlang(&head[1..]),
        [
            b'(',
            letter @ (b'N' | b'I' | b'W' | b'C'),
            b')',
            b' ',
            b'0'..=b'9',
            ..,
        ] => systems::qbittorrent(letter),
        [b'(', b'0'..=b'9' | b'A'..=b'Z', ..] => {
            systems::sssd(head).or_else(|| systems::glib(head))
        }
        [b'(', b'a'..=b'z', ..] => systems::glib(head),
        [b'%', b'A'..=b'Z', ..] => systems::comware(head),
        [b'V' | b'I' | b'W' | b'E' | b'C', b'a'..=b'z', ..] => event_viewer(head),
        [b'0'..=b'9', _, _, _, b'/', ..] => systems::gitea(head),
        [b'0'..=b'9', ..] => redis(head)
            .or_else(|| logback(head))
            .or_else(|| systems::lustre(head)),
        [b'a'..=b'z', ..] => mikrotik(head)
            .or_else(|| systems::monolog(head))
            .or_else(|| systems::before_bracket(head))
            .or_else(|| sympa(head))
            .or_else(|| systems::package_tool(head))
            .or_else(|| systems::before_tab(head))
            .or_else(|| systems::dmesg(head)),
        _ => None,
    }
}

/// The level by a letter before a colon, as of apt and PulseAudio, and before a point, as of SQL Anywhere.
fn before_sign(head: &[u8]) -> Option<&'static str> {
    let (letter, sign) = (head[0], head[1]);
    let is_it = match (sign, &head[3..]) {
        (b':', [b'A'..=b'Z' | b'a'..=b'z', ..]) => b"EWNI".contains(&letter),
        (b':', [b'[', b'a'..=b'z', ..]) => b"EWNID".contains(&letter),
        (b'.', [b'2', b'0', _, _, b'-', ..] | [b'0' | b'1', b'0'..=b'9', b'/', ..]) => {
            b"EWIF".contains(&letter)
        }
        _ => false,
    };
    letter_of(letter).filter(|_| is_it)
}

/// The same of a line that begins with a bracket.
fn of_bracket(head: &[u8]) -> Option<&'static str> {
    match *head {
        [
            b'[',
            letter @ (b'D' | b'I' | b'W' | b'E' | b'F'),
            b']',
            b' ' | b'[',
            b'0'..=b'9',
            ..,
        ] => letter_of(letter),
        [b'[', b' ', b'a'..=b'z', ..] => systems::xapi(head),
        [b'[', b' ', letter @ b'A'..=b'Z', b' ', ref rest @ ..] if digits(rest) == 4 => {
            letter_of(letter)
        }
        [b'[', b'A'..=b'Z', b'a'..=b'z', ..] => systems::language_server(head),
        [b'[', b'F', b'A', b'I', b'L', b'E', b'D', b']', b' ', ..] => Some("error"),
        [b'[', letter @ b'A'..=b'Z', b' ', ref rest @ ..] => {
            let is_clock = digits(rest) == 2 && rest.get(2) == Some(&b':');
            letter_of(letter).filter(|_| is_clock || matches!(digits(rest), 4 | 6))
        }
        [b'[', b'0'..=b'9', ..] if systems::is_hana(head) => systems::hana(head),
        [b'[', b'a'..=b'z', ..] => systems::couchbase(head)
            .or_else(|| systems::xapi(head))
            .or_else(|| systems::geode(head)),
        [b'[', b'A', b'U', b'D', b'I', b'T', b' ', ..] => Some("notice"),
        // Solaris.
        [b'[', b'I', b'D', b' ', b'0'..=b'9', ..] => systems::solaris(head),
        // PyTorch.
        [b'[', letter @ (b'I' | b'W' | b'E' | b'F'), b'0'..=b'9', ..] => google(letter, &head[2..]),
        [b'[', b'0'..=b'9', _, b'/' | b'.', ..] | [b'[', b'0'..=b'9', b'/', ..] => websphere(head),
        _ => redis(head).or_else(|| logback(head)),
    }
}

/// The level by one or two letters behind a time.
pub(super) fn behind_time(
    head: &[u8],
    word: &[u8],
    before: Option<u8>,
    behind: &[u8],
) -> Option<&'static str> {
    if !matches!(before, Some(b' ' | b'\t')) {
        return None;
    }
    match (word, behind) {
        (&[_, _], [b'(', number @ ..]) => vmware(word, number),
        (&[letter @ b'A'..=b'Z'], [b'/', rest @ ..]) if head.starts_with(b"[ ") => {
            logcat_long(letter, rest)
        }
        (&[letter @ b'A'..=b'Z'], [b'/', rest @ ..]) => logcat(letter, rest),
        (&[letter @ b'A'..=b'Z'], [b' ', b'|', b' ', ..]) => letter_of(letter),
        (&[letter @ (b'D' | b'I' | b'W' | b'E')], [b'!', b' ', ..]) => letter_of(letter),
        (&[letter @ b'A'..=b'Z'], [b' ', rest @ ..])
            if is_tensorflow(head, rest) || systems::is_place(rest) || is_ray(rest) =>
        {
            letter_of(letter)
        }
        (&[letter @ b'A'..=b'Z'], [b' ', ..]) if is_threadtime(head) => letter_of(letter),
        (&[letter @ b'A'..=b'Z'], [b' ', rest @ ..])
            if is_behind_ids(&head[..head.len() - behind.len() - 1]) && rest.contains(&b':') =>
        {
            letter_of(letter)
        }
        (&[letter @ b'A'..=b'Z'], [b' ', rest @ ..]) => mongodb(letter, rest),
        // `D1` to `D5`.
        (b"D", [b'1'..=b'5', b' ', rest @ ..]) => mongodb(b'D', rest),
        _ => None,
    }
}

/// The level that PostgreSQL writes behind a prefix of the administrator's choice.
pub(super) fn postgres(line: &[u8]) -> Option<&'static str> {
    let head = &line[..line.len().min(POSTGRES_BYTES_MAX)];
    let colon = LABEL_END.find(head)?;
    let before = &head[..colon];
    let is_name = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let length = before.iter().rev().take_while(|byte| is_name(byte)).count();
    let (prefix, name) = before.split_at(before.len() - length);
    let is_apart = prefix
        .last()
        .is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    if !is_apart {
        return None;
    }
    Some(match name {
        b"DEBUG1" | b"DEBUG2" | b"DEBUG3" | b"DEBUG4" | b"DEBUG5" => "debug",
        b"INFO" | b"LOG" => "info",
        b"NOTICE" => "notice",
        b"WARNING" => "warn",
        b"ERROR" => "error",
        b"FATAL" | b"PANIC" => "fatal",
        _ => return None,
    })
}

pub(super) fn letter_of(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'T' | b'V' => "trace",
        b'D' => "debug",
        b'I' => "info",
        b'N' => "notice",
        b'W' => "warn",
        b'E' => "error",
        b'C' => "critical",
        b'F' => "fatal",
        _ => return None,
    })
}

/// How many digits a text begins with.
pub(super) fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// `0302 00:00:06`, with a year of two or four digits before the month or without one.
fn google(letter: u8, rest: &[u8]) -> Option<&'static str> {
    let date = digits(rest);
    // Meteor has a hyphen.
    let is_time = matches!(date, 4 | 6 | 8)
        && (rest.get(date) == Some(&b' ') || date == 8 && rest.get(date) == Some(&b'-'))
        && rest.get(date + 3).is_none_or(|byte| *byte == b':');
    // `T` is no level there.
    letter_of(letter).filter(|_| is_time && b"DIWEF".contains(&letter))
}

/// `Tag( 77): …` or `Tag: …`
fn logcat(letter: u8, rest: &[u8]) -> Option<&'static str> {
    let is_tag = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-:$ ".contains(byte);
    let tag = rest.iter().take_while(|byte| is_tag(byte)).count();
    let process = rest[tag..].strip_prefix(b"(")?.trim_ascii_start();
    let is_process = tag > 0 && digits(process) > 0 && process[digits(process)..].starts_with(b")");
    letter_of(letter).filter(|_| is_process)
}

/// True for `: I tensorflow/core/a.cc:7] …`, behind a time.
fn is_tensorflow(head: &[u8], behind: &[u8]) -> bool {
    let ahead = &head[..head.len() - behind.len()];
    let word = behind.split(|byte| *byte == b' ').next();
    ahead[..ahead.len() - 2].ends_with(b": ")
        && word.is_some_and(|word| word.ends_with(b"]") && memmem::find(word, b".cc:").is_some())
}

/// True for `5 6] …`: process and thread, which end the head of Ray.
fn is_ray(behind: &[u8]) -> bool {
    let process = digits(behind);
    let rest = &behind[process..];
    let thread = rest.strip_prefix(b" ").map_or(0, digits);
    process > 0 && thread > 0 && rest[1 + thread..].starts_with(b"] ")
}

/// True for lines that begin as logcat's format `threadtime`.
fn is_threadtime(head: &[u8]) -> bool {
    digits(head) == 2
        && head.get(2) == Some(&b'-')
        && head.get(5) == Some(&b' ')
        && head.get(8) == Some(&b':')
        && head.get(14) == Some(&b'.')
}

/// `E/Tag ]`, behind a bracket, a time and two numbers.
fn logcat_long(letter: u8, rest: &[u8]) -> Option<&'static str> {
    let end = rest.iter().position(|byte| *byte == b']')?;
    let is_tag = end > 1 && rest[end - 1] == b' ';
    letter_of(letter).filter(|_| is_tag)
}

/// True if two numbers end a text, each with blanks behind it: of a process and a thread.
fn is_behind_ids(ahead: &[u8]) -> bool {
    let mut rest = ahead;
    for _ in 0..2 {
        let digits_end = rest.trim_ascii_end();
        let is_digit = |byte: &&u8| byte.is_ascii_digit();
        let count = digits_end.iter().rev().take_while(is_digit).count();
        if count == 0 || digits_end.len() == rest.len() {
            return false;
        }
        rest = &digits_end[..digits_end.len() - count];
    }
    rest.ends_with(b" ")
}

/// `Error,27/11/2026 00:51:25,…`, as Windows' Event Viewer exports a log.
fn event_viewer(head: &[u8]) -> Option<&'static str> {
    let letters = head.iter().take_while(|byte| byte.is_ascii_alphabetic());
    let comma = letters.count();
    if head.get(comma) != Some(&b',') {
        return None;
    }
    let level = match &head[..comma] {
        b"Verbose" => "trace",
        b"Information" => "info",
        b"Warning" => "warn",
        b"Error" => "error",
        b"Critical" => "critical",
        _ => return None,
    };
    let date = &head[comma + 1..];
    (matches!(digits(date), 1 | 2 | 4) && matches!(date[digits(date)..], [b'/' | b'.' | b'-', ..]))
        .then_some(level)
}

/// `<Event xmlns=…>…<Level>2</Level>…`, as Windows writes an event.
pub(super) fn event_xml(line: &[u8]) -> Option<&'static str> {
    const LEVEL: &[u8] = b"<Level>";
    let head = &line[..line.len().min(EVENT_BYTES_MAX)];
    if !head.starts_with(b"<Event") {
        return None;
    }
    let at = memmem::find(head, LEVEL)? + LEVEL.len();
    let [digit @ b'0'..=b'9', b'<', ..] = head.get(at..)? else {
        return None;
    };
    Some(Severity::of_windows(u32::from(digit - b'0'))?.name())
}

/// `%ASA-4-106023: …`: Cisco's facility, severity and mnemonic near the start of a line. The name of a context may
/// stand between other signs before it: `%$ VDC-1 %$ %VSHD-5-…`.
pub(super) fn cisco(head: &[u8]) -> Option<&'static str> {
    memchr::memchr_iter(b'%', head)
        .take(PERCENTS_MAX)
        .find_map(|percent| {
            let behind = &head[percent + 1..];
            mnemonic(behind).or_else(|| systems::huawei(behind))
        })
}

/// `ASA-4-106023:`, `PKT_INFRA-LINK-3-UPDOWN :`
fn mnemonic(text: &[u8]) -> Option<&'static str> {
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let facility = text
        .iter()
        .take_while(|byte| is_part(byte) || **byte == b'-')
        .count();
    let (tag, behind) = text.split_at(facility);
    let (rest, mnemonic) = tag.split_at(tag.iter().rposition(|byte| *byte == b'-')?);
    let [
        ..,
        b'A'..=b'Z' | b'0'..=b'9' | b'_',
        b'-',
        severity @ b'0'..=b'7',
    ] = rest
    else {
        return None;
    };
    let is_tag = mnemonic.len() > 1 && matches!(behind, [] | [b':', ..] | [b' ', b':', ..]);
    let severity = Severity::of_syslog(severity - b'0').filter(|_| is_tag)?;
    Some(severity.name())
}

/// `[11/27/26 0:51:25:818 CET] 00000041 WSVR          E   WSVR0001E: …`: a letter behind the component, which is padded
/// to a column. WebSphere writes `A`, `O` and `R`, too: for the audit, and for what programs print.
fn websphere(head: &[u8]) -> Option<&'static str> {
    let end = memchr::memchr(b']', head)?;
    let thread = head[end + 1..].strip_prefix(b" ")?;
    let is_thread = |byte: &u8| byte.is_ascii_hexdigit();
    let rest = thread.get(8..)?.strip_prefix(b" ")?;
    if !thread[..8].iter().all(is_thread) {
        return None;
    }
    let component = rest.iter().position(|byte| *byte == b' ')?;
    let [letter, b' ', ..] = *rest[component..].trim_ascii_start() else {
        return None;
    };
    match letter {
        b'A' => Some("notice"),
        b'O' => Some("info"),
        b'R' => Some("error"),
        b'C' => Some("info"),
        b'>' | b'<' | b'1'..=b'3' => Some("trace"),
        letter => letter_of(letter),
    }
}

/// `1:M 02 Mar 2026 00:00:06.000 * …`, before version 3 `[1] 02 Mar 00:00:06.000 * …`
fn redis(head: &[u8]) -> Option<&'static str> {
    let process = digits(head.strip_prefix(b"[").unwrap_or(head));
    let rest = match head {
        [b'[', rest @ ..] => rest[process..].strip_prefix(b"] ")?,
        _ => match *behind_thread(&head[process..]) {
            [b':', b'M' | b'S' | b'C' | b'X', b' ', ref rest @ ..] => rest,
            _ => return None,
        },
    };
    let [
        b'0'..=b'9',
        b'0'..=b'9',
        b' ',
        b'A'..=b'Z',
        _,
        _,
        b' ',
        rest @ ..,
    ] = rest
    else {
        return None;
    };
    let rest = match digits(rest) {
        4 => rest[4..].strip_prefix(b" ")?,
        _ => rest,
    };
    let is_clock = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.');
    let clock = rest.iter().take_while(|byte| is_clock(byte)).count();
    match rest[clock..] {
        [b' ', b'.', b' ', ..] => Some("debug"),
        [b' ', b'-', b' ', ..] => Some("info"),
        [b' ', b'*', b' ', ..] => Some("notice"),
        [b' ', b'#', b' ', ..] => Some("warn"),
        _ => None,
    }
}

/// The text behind `:23`, the number of a thread that KeyDB writes.
fn behind_thread(text: &[u8]) -> &[u8] {
    match text {
        [b':', rest @ ..] if digits(rest) > 0 => &rest[digits(rest)..],
        _ => text,
    }
}

/// `NETWORK  [conn1] …`; a component that has none is `-`.
fn mongodb(letter: u8, rest: &[u8]) -> Option<&'static str> {
    let rest = rest.trim_ascii_start();
    let is_name = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-');
    let component = rest.iter().take_while(|byte| is_name(byte)).count();
    let is_component = component > 0 && rest[component..].trim_ascii_start().starts_with(b"[");
    letter_of(letter).filter(|_| is_component && b"DIWEF".contains(&letter))
}

/// `In(14)`, `In(05)`: the number is eight times the facility and the severity.
fn vmware(word: &[u8], number: &[u8]) -> Option<&'static str> {
    const NAMES: [&[u8]; 8] = [b"Em", b"Al", b"Cr", b"Er", b"Wa", b"No", b"In", b"Db"];
    let length = digits(number);
    let priority: u8 = std::str::from_utf8(number.get(..length)?)
        .ok()?
        .parse()
        .ok()?;
    // A virtual machine's own log has the number of its level there: `In(05)`.
    let severity = if number[0] == b'0' && length == 2 {
        let place = NAMES.iter().position(|name| *name == word)?;
        u8::try_from(place).ok()?
    } else {
        priority % 8
    };
    let is_name = NAMES[usize::from(severity)] == word && number[length..].starts_with(b")");
    let severity = Severity::of_syslog(severity).filter(|_| is_name)?;
    Some(severity.name())
}

/// `00:51:25,818 |-INFO in ch.qos.logback…`: logback about itself.
fn logback(head: &[u8]) -> Option<&'static str> {
    if head.get(12..15) != Some(b" |-") {
        return None;
    }
    let word = head[15..].split(|byte| *byte == b' ').next()?;
    Some(Severity::of_word(word)?.name())
}

/// `firewall,info drop …`
pub(super) fn mikrotik(head: &[u8]) -> Option<&'static str> {
    let is_topic = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b',' | b'-');
    let end = head.iter().position(|byte| !is_topic(byte))?;
    let (topics, rest) = head.split_at(end);
    if rest[0] != b' ' || !topics.contains(&b',') {
        return None;
    }
    self::topics(topics)
}

/// The level among topics, `firewall,info`.
pub(super) fn topics(topics: &[u8]) -> Option<&'static str> {
    let levels = topics.split(|byte| *byte == b',').rev();
    levels.into_iter().find_map(|topic| match topic {
        b"debug" => Some("debug"),
        b"info" => Some("info"),
        b"warning" => Some("warn"),
        b"error" => Some("error"),
        b"critical" => Some("critical"),
        _ => None,
    })
}

/// `info main::do_signoff() …`: a word and the name of a function, as Perl's Sympa writes to syslog.
fn sympa(head: &[u8]) -> Option<&'static str> {
    let letters = head.iter().take_while(|byte| byte.is_ascii_lowercase());
    let (word, rest) = head.split_at(letters.count());
    let place = rest
        .strip_prefix(b" ")?
        .split(|byte| *byte == b' ')
        .next()?;
    memmem::find(place, b"::")?;
    Some(Severity::of_word(word)?.name())
}

/// `ERROR REPORT==== …`
fn erlang(rest: &[u8]) -> Option<&'static str> {
    let word = rest
        .iter()
        .take_while(|byte| byte.is_ascii_uppercase())
        .count();
    let is_report = rest[word..].starts_with(b" REPORT====");
    Some(match &rest[..word] {
        _ if !is_report => return None,
        b"INFO" | b"PROGRESS" => "info",
        b"WARNING" => "warn",
        b"ERROR" | b"CRASH" | b"SUPERVISOR" => "error",
        _ => return None,
    })
}
