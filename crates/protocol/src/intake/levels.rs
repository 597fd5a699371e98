//! The level that a line of text says it has.
//!
//! Levels stand near the beginning of lines, in capitals (`2026-03-02 00:00:06 ERROR …`), in brackets
//! (`[error]`), before a colon (`warning: …`), right behind the time, or as the letter that Google's logging library begins
//! lines with (`E0302 …`), or behind the name of the field that they are (`level=error`, `"level":"error"`), where
//! a line is not all logfmt or JSON. A word within a sentence (`no error occurred`) is none.

/// How far into a line is looked, in bytes: behind a time, a thread and a class at most.
const HEAD_BYTES_MAX: usize = 128;

/// Names of fields that say a level.
const FIELDS: [&[u8]; 5] = [b"level", b"lvl", b"severity", b"loglevel", b"levelname"];

/// Digits of a time: of a day and of hours, minutes and seconds.
const TIME_DIGITS_MIN: usize = 8;

/// The level of a line, in lower case: `trace`, `debug`, `info`, `notice`, `warn`, `error`,
/// `critical` or `fatal`.
pub(crate) fn of_line(line: &[u8]) -> Option<&'static str> {
    let head = &line[..line.len().min(HEAD_BYTES_MAX)];
    if let Some(level) = of_letter(head) {
        return Some(level);
    }
    let mut rest = head;
    let mut before = None;
    let mut is_time = true;
    while let Some((&byte, after)) = rest.split_first() {
        if let Some(behind) = behind_colour(rest) {
            (rest, before) = (behind, None);
            continue;
        }
        if !byte.is_ascii_alphabetic() {
            (rest, before) = (after, Some(byte));
            continue;
        }
        let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic());
        let (word, behind) = rest.split_at(letters.count());
        if let Some(level) = of_field(word, before, behind) {
            return Some(level);
        }
        let next = behind.first().copied();
        let is_behind_time = is_time && is_blank(before) && is_blank(next) && {
            let digits = head[..head.len() - rest.len()].iter();
            digits.filter(|byte| byte.is_ascii_digit()).count() >= TIME_DIGITS_MIN
        };
        let is_level = is_behind_time || is_marked(word, before, next);
        if let Some(level) = level(word).filter(|_| is_level) {
            return Some(level);
        }
        is_time &= matches!(word, b"T" | b"Z");
        (rest, before) = (behind, word.last().copied());
    }
    None
}

/// The level that a field says: `level=error`, `level="error"`, `"level": "error"`.
fn of_field(name: &[u8], before: Option<u8>, behind: &[u8]) -> Option<&'static str> {
    let is_json = behind.starts_with(b"\":");
    if !is_json && behind.first() != Some(&b'=') {
        return None;
    }
    let is_level = FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name));
    let begins = match is_json {
        true => before == Some(b'"'),
        false => before.is_none_or(|byte| b" \t,;|([{".contains(&byte)),
    };
    if !is_level || !begins {
        return None;
    }
    let value = match is_json {
        true => behind[2..].trim_ascii_start().strip_prefix(b"\"")?,
        false => behind[1..].strip_prefix(b"\"").unwrap_or(&behind[1..]),
    };
    let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic());
    let (word, after) = value.split_at(letters.count());
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    level(word).filter(|_| !after.first().is_some_and(is_part))
}

fn is_blank(byte: Option<u8>) -> bool {
    matches!(byte, Some(b' ' | b'\t'))
}

/// `I0302 00:00:06.000000`
fn of_letter(head: &[u8]) -> Option<&'static str> {
    let [letter, digits @ .., b' '] = head.get(..6)? else {
        return None;
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(match letter {
        b'D' => "debug",
        b'I' => "info",
        b'W' => "warn",
        b'E' => "error",
        b'F' => "fatal",
        _ => return None,
    })
}

/// What follows a sequence that sets a terminal's colour, if `text` begins with one.
fn behind_colour(text: &[u8]) -> Option<&[u8]> {
    let inside = text.strip_prefix(b"\x1b[")?;
    let end = inside.iter().position(u8::is_ascii_alphabetic)?;
    Some(&inside[end + 1..])
}

fn level(word: &[u8]) -> Option<&'static str> {
    let mut upper = [0; 11];
    let upper = upper.get_mut(..word.len())?;
    upper.copy_from_slice(word);
    upper.make_ascii_uppercase();
    Some(match &*upper {
        b"TRACE" => "trace",
        b"DEBUG" | b"DBG" => "debug",
        b"INFO" | b"INFORMATION" => "info",
        b"NOTICE" => "notice",
        b"WARN" | b"WARNING" => "warn",
        b"ERROR" | b"ERR" | b"SEVERE" => "error",
        b"CRITICAL" | b"CRIT" | b"ALERT" => "critical",
        b"FATAL" | b"PANIC" | b"EMERG" => "fatal",
        _ => return None,
    })
}

/// Whether a word stands as a level does, by the bytes around it.
fn is_marked(word: &[u8], before: Option<u8>, next: Option<u8>) -> bool {
    let is_open = |byte| matches!(byte, b'[' | b'(' | b'<' | b'{');
    let is_close = |byte| matches!(byte, b']' | b')' | b'>' | b'}');
    let is_edge = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'|' | b'\x1b');
    let stands_alone = before.is_none_or(|byte| is_open(byte) || is_edge(byte) || byte == b':')
        && next.is_none_or(|byte| {
            is_close(byte) || is_edge(byte) || matches!(byte, b':' | b',' | b'!' | b';')
        });
    // Apache names the module before the level: `[core:error]`.
    let is_inside = |byte| is_open(byte) || byte == b':';
    let is_bracketed = before.is_some_and(is_inside) && next.is_some_and(is_close);
    let is_labelled = next == Some(b':') && before.is_none_or(is_edge);
    stands_alone && (word.iter().all(u8::is_ascii_uppercase) || is_bracketed || is_labelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &[(&str, Option<&str>)] = &[
        (
            "2026-03-02 00:00:06,123 ERROR [main] c.e.Shop - no INFO",
            Some("error"),
        ),
        (
            "[02-Mar-2026 00:00:06] WARNING: [pool www] busy",
            Some("warn"),
        ),
        (
            "2026/03/02 00:00:06 [error] 77#77: *1 open() failed",
            Some("error"),
        ),
        (
            "2026-03-02T00:00:06Z  \x1b[32mINFO\x1b[0m listening",
            Some("info"),
        ),
        (
            "E0302 00:00:06.000000       1 server.go:7] failed",
            Some("error"),
        ),
        (
            "I0302 00:00:06.000000       1 server.go:7] ERROR",
            Some("info"),
        ),
        ("npm ERR! code 1", Some("error")),
        ("warning: unused variable", Some("warn")),
        ("PHP Warning:  Undefined index", Some("warn")),
        ("FATAL:  password authentication failed", Some("fatal")),
        ("SEVERE", Some("error")),
        ("time | Information | x", None),
        ("time|DEBUG|x", Some("debug")),
        ("(Info) started", Some("info")),
        (
            "[Tue Jan 28 03:16:50 2024] [core:error] [pid 36] x",
            Some("error"),
        ),
        (
            "2025-04-24T22:09:20.856Z\terror\tqueue.go:128\tdropped",
            Some("error"),
        ),
        ("2024-01-10 05:27:07,4 info vsand[10] done", Some("info")),
        ("level=error something happened here", Some("error")),
        ("level=\"warning\" foo", Some("warn")),
        ("level=fatal", Some("fatal")),
        (
            "ts=1 level=info msg=\"x\" ERROR trailing words",
            Some("info"),
        ),
        (
            "2026-11-26T10:00:00Z stdout F level=error msg=x",
            Some("error"),
        ),
        (
            "Nov 26 10:00:00 host app[1]: ERROR something",
            Some("error"),
        ),
        ("2026-11-26 10:00:00 {\"level\":\"error\"}", Some("error")),
        (
            "{\"ts\":1, \"Level\": \"WARN\", \"msg\":\"cut o",
            Some("warn"),
        ),
        ("level=errors", None),
        ("level=error_rate", None),
        ("loglevel=", None),
        ("sealevel=info", None),
        ("the level: error", None),
        ("{\"level\":3, \"x", None),
        ("12 error codes", None),
        ("2024-01-10 05:27:07 an error was seen", None),
        ("a \"NOTICE\" text file", None),
        ("no error occurred", None),
        ("Error handling is on", None),
        ("GET /ERROR/x", None),
        ("MY_ERROR ERROR_CODE x-ERROR NOERROR ERRORS", None),
        ("panicked: terror: interrupt", None),
        ("", None),
        ("I030", None),
        ("\x1b[", None),
    ];

    #[test]
    fn lines_say_their_levels() {
        for (line, level) in LINES {
            assert_eq!(of_line(line.as_bytes()), *level, "{line}");
        }
        let late = format!("{}ERROR", " ".repeat(HEAD_BYTES_MAX - 2));
        assert_eq!(of_line(late.as_bytes()), None);
    }
}
