//! Forms that the bytes of a line's start tell from others.

use super::super::columns::DPKG_WORDS;
use super::super::tails;
use super::HEAD_BYTES_MAX;

/// The shortest head with a time, behind which pairs may stand.
const TIMED_BYTES_MIN: usize = 8;

/// True for `Fri Nov 27 00:51:25 2026`, `Fri Nov 27 00:51:25.818 2026: `, `Fri Nov 27 00:51:25 CET [`,
/// `Nov 27 2026 00:51:25`, `Nov 27 00:51:25 2026 (`, and `Nov 27 00:51:25 09[`.
pub(super) fn is_asctime(line: &[u8]) -> bool {
    let is_at = |at: usize, signs: &[u8]| line.get(at).is_some_and(|byte| signs.contains(byte));
    let is_clock = |at: usize| is_at(at, b":") && is_at(at + 3, b":");
    let is_year = |at: usize| {
        let year = line.get(at..at + 4);
        year.is_some_and(|year| year.starts_with(b"20") && year.iter().all(u8::is_ascii_digit))
    };
    match line.get(6) {
        _ if is_clock(13) => {
            is_at(19, b".")
                || is_year(20)
                || is_at(19, b" ") && memchr::memchr(b'[', line).is_some()
        }
        Some(b' ') if is_clock(14) => is_year(7),
        Some(b' ') if is_clock(9) => {
            let tab = || memchr::memchr(b'\t', &line[..line.len().min(HEAD_BYTES_MAX)]);
            is_year(16) && is_at(21, b"(") || is_at(18, b"[") || is_at(16, b"[") || tab().is_some()
        }
        _ => false,
    }
}

/// True for `00000100:00020000:`.
pub(super) fn is_lustre(line: &[u8]) -> bool {
    line.get(8) == Some(&b':')
        && line.get(17) == Some(&b':')
        && line[..8].iter().all(u8::is_ascii_hexdigit)
}

/// How far into a line of GLib its domain and its level end, in bytes.
const DOMAIN_BYTES_MAX: usize = 64;

/// True for `(evince:4711): `, the same behind `** `, `** Message: `, and `Gtk-Message: `.
pub(super) fn is_glib(line: &[u8]) -> bool {
    let head = &line[..line.len().min(DOMAIN_BYTES_MAX)];
    let inside = match head.strip_prefix(b"** ").unwrap_or(head) {
        [b'M', b'e', ..] => return line.starts_with(b"** Message: "),
        [b'(', inside @ ..] => inside,
        _ => {
            let hyphen = memchr::memchr(b'-', &head[..head.len().min(DOMAIN_BYTES_MAX / 2)]);
            return hyphen.is_some_and(|hyphen| head[hyphen..].starts_with(b"-Message: "));
        }
    };
    let Some(close) = memchr::memchr(b')', inside) else {
        return false;
    };
    let (process, behind) = inside.split_at(close);
    let digits = process
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit());
    let digits = digits.count();
    digits > 0 && process[..process.len() - digits].ends_with(b":") && behind.starts_with(b"): ")
}

/// True for a name of a host, a TAB, and a time that the name of a day begins.
pub(crate) fn is_firebird(line: &[u8]) -> bool {
    const HOST_BYTES_MAX: usize = 64;
    let tab = memchr::memchr(b'\t', &line[..line.len().min(HOST_BYTES_MAX)]);
    let time = tab.map_or(&b""[..], |tab| &line[tab + 1..]);
    matches!(
        time,
        [
            b'A'..=b'Z',
            b'a'..=b'z',
            b'a'..=b'z',
            b' ',
            b'A'..=b'Z',
            b'a'..=b'z',
            b'a'..=b'z',
            b' ',
            ..
        ]
    )
}

/// True for a word of dpkg behind a time of 19 bytes.
pub(super) fn is_dpkg(head: &[u8]) -> bool {
    let behind = head.get(19..).and_then(|behind| behind.strip_prefix(b" "));
    behind.is_some_and(|behind| {
        let blank_behind = |word: &&str| behind.strip_prefix(word.as_bytes())?.first().copied();
        DPKG_WORDS
            .iter()
            .any(|word| blank_behind(word) == Some(b' '))
    })
}

/// True for a TAB behind a time whose milliseconds a colon begins, as the log of Windows Update has it.
pub(super) fn is_update(head: &[u8]) -> bool {
    head.get(19) == Some(&b':') && head.get(23) == Some(&b'\t')
}

/// True for an address of a site, a bar and Unix time.
pub(super) fn is_drupal(line: &[u8]) -> bool {
    let bar = memchr::memchr(b'|', &line[..line.len().min(HEAD_BYTES_MAX)]);
    bar.is_some_and(|bar| matches!(line[bar + 1..], [b'1', b'0'..=b'9', ..]))
}

/// True for the identifier of a call, `6b3c8e0f-7d1a-4c55-9a01-0123456789ab`, before a time.
pub(super) fn is_behind_call(line: &[u8]) -> bool {
    line.get(8) == Some(&b'-')
        && line.get(13) == Some(&b'-')
        && line.get(36) == Some(&b' ')
        && line.get(37) == Some(&b'2')
}

/// True for a word before a TAB and a date.
pub(super) fn is_before_tab(line: &[u8]) -> bool {
    const WORD_BYTES_MAX: usize = 12;
    let head = &line[..line.len().min(WORD_BYTES_MAX)];
    let tab = memchr::memchr(b'\t', head);
    tab.is_some_and(|tab| line.get(tab + 1).is_some_and(u8::is_ascii_digit))
}

/// True for `2026-11-27T00:51:25.818426Z `.
pub(super) fn is_tracing(line: &[u8]) -> bool {
    line.get(10) == Some(&b'T') && line.get(19) == Some(&b'.') && line.get(26) == Some(&b'Z')
}

/// True for `:20261127:005125.818 `, behind the number of a process.
pub(super) fn is_zabbix(text: &[u8]) -> bool {
    let is_digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    let parts = text.get(1..9).zip(text.get(10..16));
    text.first() == Some(&b':')
        && text.get(9) == Some(&b':')
        && text.get(16) == Some(&b'.')
        && parts.is_some_and(|(date, clock)| is_digits(date) && is_digits(clock))
}

/// True for `[error] 2026-` and `[nsqd] 2026/`.
pub(super) fn is_before_year(line: &[u8]) -> bool {
    const WORD_BYTES_MAX: usize = 24;
    let close = memchr::memchr(b']', &line[..line.len().min(WORD_BYTES_MAX)]);
    close.is_some_and(|close| matches!(line[close + 1..], [b' ', b'2', b'0', ..]))
}

/// The fewest bytes of the number of a process in logcat.
const PROCESS_BYTES: usize = 5;

/// True for `E/Tag`, `E( 77`, and `E (77` of ESP-IDF.
pub(super) fn is_logcat(letter: u8, rest: &[u8]) -> bool {
    matches!(letter, b'V' | b'D' | b'I' | b'W' | b'E' | b'F')
        && match rest {
            [b'/', first, second, ..] => {
                first.is_ascii_alphabetic() && *second > b' ' && *second != b':'
            }
            // The number of a process is padded.
            [b'(', b' ' | b'0'..=b'9', inside @ ..] => inside
                .iter()
                .take(PROCESS_BYTES - 1)
                .all(|byte| matches!(byte, b' ' | b'0'..=b'9')),
            [b' ', b'(', b'0'..=b'9', ..] => true,
            _ => false,
        }
}

/// True for `:23:M `: a thread's number and a role.
pub(super) fn is_keydb(text: &[u8]) -> bool {
    let digits = text[1..].iter().take_while(|byte| byte.is_ascii_digit());
    matches!(text[1 + digits.count()..], [b':', b'A'..=b'Z', b' ', ..])
}

/// True for `234] 27 Nov 00:51:25` and `234] 2026/11/27 00:51:25`, behind a bracket and a digit.
pub(super) fn is_numbered(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    matches!(
        text[digits.count()..],
        [
            b']',
            b' ',
            b'0'..=b'9',
            b'0'..=b'9',
            b' ',
            b'A'..=b'Z',
            b'a'..=b'z',
            b'a'..=b'z',
            b' ',
            ..
        ] | [
            b']',
            b' ',
            b'0'..=b'9',
            b'0'..=b'9',
            b'0'..=b'9',
            b'0'..=b'9',
            b'/',
            ..
        ]
    )
}

/// True if a key and its sign stand behind a time: behind a blank that only digits and signs stand before.
pub(super) fn is_keyed(head: &[u8]) -> bool {
    let is_of_time = |byte: &&u8| {
        byte.is_ascii_digit()
            || matches!(
                byte,
                b'-' | b':' | b'.' | b',' | b'+' | b'/' | b'T' | b'Z' | b' '
            )
    };
    let time = head.iter().take_while(is_of_time).count();
    let key = &head[time..];
    let length = key.iter().take_while(|byte| tails::is_of_key(byte)).count();
    time > TIMED_BYTES_MIN && length > 0 && key.get(length) == Some(&b'=')
}

/// True if numbers of a process and a thread stand behind the milliseconds, as Android Studio writes them.
pub(super) fn is_studio(head: &[u8]) -> bool {
    let end = if head.get(2) == Some(&b'-') { 18 } else { 23 };
    if head.get(end) != Some(&b' ') || head[end - 4] != b'.' {
        return false;
    }
    let ids = head[end..].trim_ascii_start();
    let digits = ids.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && matches!(ids[digits..], [b'-', b'0'..=b'9', ..])
}

/// True if the identifier of a message of Exim stands behind the time: `1abcDE-000abc-2x`, or with eleven letters in
/// its middle. The time may have milliseconds or an offset.
pub(super) fn is_exim(head: &[u8]) -> bool {
    const BESIDE_BYTES: [usize; 4] = [0, ".818".len(), " +0100".len(), ".818 +0100".len()];
    BESIDE_BYTES.iter().any(|more| {
        let is_at = |at: usize| head.get(at + more) == Some(&b'-');
        is_at(26) && (is_at(33) || is_at(38))
    })
}

/// True if a thread of twelve hexadecimal digits stands behind the time.
pub(super) fn is_ceph(head: &[u8]) -> bool {
    let thread = head.get(28..43).unwrap_or_default();
    matches!(thread, [b' ', digits @ .., b' ', _] if digits.iter().all(u8::is_ascii_hexdigit))
        || matches!(thread, [b' ', digits @ .., b' '] if digits.iter().all(u8::is_ascii_hexdigit))
}

/// True if a process of SQL Server stands behind a time with two digits of its fraction.
pub(super) fn is_sql_server(head: &[u8]) -> bool {
    const PROCESSES: [&[u8]; 4] = [b" spid", b" Logon ", b" Server ", b" Backup "];
    let behind = head.get(22..).unwrap_or_default();
    PROCESSES.iter().any(|process| behind.starts_with(process))
}

/// True if a letter and the day of Google's logging libraries stand behind a time that `Z` ends.
pub(super) fn is_klog(head: &[u8]) -> bool {
    let behind = memchr::memchr(b'Z', head).map(|zone| &head[zone + 1..]);
    matches!(
        behind,
        Some([b' ', b'I' | b'W' | b'E' | b'F', day @ .., ]) if day.len() > 5
            && day[..4].iter().all(u8::is_ascii_digit)
            && day[4] == b' '
    )
}

/// True for `1.795740685818426e+09`, as zap writes Unix time.
pub(super) fn is_exponential(line: &[u8]) -> bool {
    const NUMBER_BYTES_MAX: usize = 24;
    let head = &line[..line.len().min(NUMBER_BYTES_MAX)];
    memchr::memmem::find(head, b"e+09\t").is_some()
}

/// True for `[    5.678901] `, the time since the start of the kernel.
pub(super) fn is_uptime(line: &[u8]) -> bool {
    const DIGITS: usize = 6;
    let inside = line[1..].trim_ascii_start();
    let whole = inside.iter().take_while(|byte| byte.is_ascii_digit());
    let whole = whole.count();
    let behind = inside.get(whole..whole + 1 + DIGITS + 2);
    whole > 0
        && behind.is_some_and(|behind| {
            behind[0] == b'.'
                && behind[1..=DIGITS].iter().all(u8::is_ascii_digit)
                && behind.ends_with(b"] ")
        })
}

/// True for `kern  :warn  : [`, as `dmesg -x` writes facility and level.
pub(super) fn is_facility(line: &[u8]) -> bool {
    const FACILITIES: [&[u8]; 7] = [
        b"kern",
        b"user",
        b"daemon",
        b"auth",
        b"syslog",
        b"mail",
        b"authpriv",
    ];
    const LEVEL_BYTES_MAX: usize = 16;
    let word = line.iter().take_while(|byte| byte.is_ascii_lowercase());
    let (word, behind) = line.split_at(word.count());
    let level = behind.trim_ascii_start().strip_prefix(b":");
    FACILITIES.contains(&word)
        && level.is_some_and(|level| {
            let head = &level[..level.len().min(LEVEL_BYTES_MAX)];
            memchr::memmem::find(head, b": [").is_some()
        })
}

/// True for a level before a TAB, in capitals or in small letters.
pub(super) fn is_before_console(line: &[u8]) -> bool {
    let word = line.iter().take_while(|byte| byte.is_ascii_alphabetic());
    let (word, behind) = line.split_at(word.count());
    behind.first() == Some(&b'\t')
        && !behind.get(1).is_some_and(u8::is_ascii_digit)
        && crate::intake::levels::is_word(&word.to_ascii_uppercase())
}

/// True if a time in brackets, as access logs have it, stands behind three words, and no request behind it.
pub(super) fn is_page(line: &[u8]) -> bool {
    const TIME_BYTES: usize = "[27/Nov/2026:00:51:25 +0100] ".len();
    let head = &line[..line.len().min(HEAD_BYTES_MAX)];
    memchr::memchr(b'[', head).is_some_and(|at| {
        head.get(at + 3) == Some(&b'/')
            && head.get(at + 7) == Some(&b'/')
            && line.get(at + TIME_BYTES).is_some_and(|byte| *byte != b'"')
            && memchr::memchr_iter(b' ', &head[..at]).count() == 3
    })
}
