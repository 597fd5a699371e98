//! The groups of rows, by the bytes that their lines begin with.

use std::sync::LazyLock;

use super::pattern::{self, Row};
use super::{rows, tails};

/// How far into a line is looked for what tells that a row without a level may fit, in bytes.
const HEAD_BYTES_MAX: usize = 96;

/// How far into a line the label of PostgreSQL behind a prefix is looked for, in bytes.
const PREFIX_BYTES_MAX: usize = 192;

/// The most rows of a group.
pub(super) const ROWS_MAX: usize = 256;

/// A set of rows of a group: a bit for each.
#[derive(Clone, Copy, Default)]
struct RowSet([u64; ROWS_MAX / 64]);

impl RowSet {
    fn of<'r>(rows: &'r [Row], holds: impl Fn(&'r Row) -> bool) -> RowSet {
        let mut set = RowSet::default();
        for (index, row) in rows.iter().enumerate().take(ROWS_MAX) {
            set.0[index / 64] |= u64::from(holds(row)) << (index % 64);
        }
        set
    }
}

/// Lines that begin with the same bytes.
pub(super) struct Group {
    /// True if the time of the record stands before the rows.
    pub(super) has_time: bool,
    rows: Vec<Row>,
    /// Rows that a byte may begin, and rows that it may go on with: most rows are told by it not to fit.
    first: Vec<RowSet>,
    second: Vec<RowSet>,
    padded: RowSet,
}

impl Group {
    fn new(has_time: bool, rows: &[&str]) -> Group {
        let rows: Vec<Row> = rows.iter().map(|row| Row::new(row)).collect();
        let by_byte = |holds: fn(&Row, u8) -> bool| {
            let sets = (0..=u8::MAX).map(|byte| RowSet::of(&rows, |row| holds(row, byte)));
            sets.collect()
        };
        Group {
            has_time,
            first: by_byte(Row::may_begin),
            second: by_byte(Row::may_go_on),
            padded: RowSet::of(&rows, Row::is_padded),
            rows,
        }
    }

    /// The rows that a text may fit by its first bytes, in their order.
    pub(super) fn likely(&self, ahead: &pattern::Ahead<'_>) -> impl Iterator<Item = &Row> {
        let first = self.first[usize::from(ahead.first)];
        let second = self.second[usize::from(ahead.second)];
        let word = self.second[usize::from(ahead.second_word)];
        let places = (0..ROWS_MAX / 64).map(move |at| {
            let padded = self.padded.0[at];
            (
                at,
                first.0[at] & (padded & word.0[at] | !padded & second.0[at]),
            )
        });
        places.flat_map(move |(at, mut bits)| {
            std::iter::from_fn(move || {
                let index = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                self.rows.get(at * 64 + index)
            })
        })
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }
}

/// All groups.
struct Groups {
    timed: Group,
    bracketed: Group,
    slashed: Group,
    named: Group,
    google: Group,
    ruby: Group,
    angled: Group,
    redis: Group,
    numbered: Group,
    levelled: Group,
    coredns: Group,
    radius: Group,
    prefixed: Group,
    go: Group,
    abseil: Group,
    fluent: Group,
    tracing: Group,
    zabbix: Group,
    process: Group,
    play: Group,
    spark: Group,
    logrus: Group,
    python: Group,
    dotnet: Group,
    android: Group,
    long: Group,
    named_level: Group,
    weblogic: Group,
    nest: Group,
    source: Group,
    audit: Group,
    java: Group,
    tor: Group,
    mumble: Group,
    anywhere: Group,
    beegfs: Group,
    lustre: Group,
    lxc: Group,
    tabbed: Group,
    splunk: Group,
    mail: Group,
    kamailio: Group,
    coturn: Group,
    jitsi: Group,
    call: Group,
    drupal: Group,
    tornado: Group,
    unbound: Group,
    factorio: Group,
    asctime: Group,
}

static GROUPS: LazyLock<Groups> = LazyLock::new(|| {
    let group = Group::new;
    Groups {
        timed: group(true, &rows::TIMED),
        bracketed: group(true, &rows::BRACKETED),
        slashed: group(true, &[&rows::SLASHED[..], &rows::BRACKETED[..]].concat()),
        named: group(true, &rows::NAMED),
        google: group(true, &rows::GOOGLE),
        ruby: group(true, &rows::RUBY),
        angled: group(true, &rows::ANGLED),
        redis: group(false, &rows::REDIS),
        numbered: group(false, &rows::NUMBERED),
        levelled: group(false, &rows::LEVELLED),
        coredns: group(false, &rows::COREDNS),
        radius: group(true, &rows::RADIUS),
        prefixed: group(false, &rows::PREFIXED),
        go: group(
            true,
            &[&rows::GO[..], &rows::TIMED[..], &rows::GO_PLAIN[..]].concat(),
        ),
        abseil: group(false, &rows::ABSEIL),
        fluent: group(true, &[&rows::FLUENT[..], &rows::BRACKETED[..]].concat()),
        tracing: group(true, &[&rows::TRACING[..], &rows::TIMED[..]].concat()),
        zabbix: group(false, &rows::ZABBIX),
        process: group(false, &rows::PROCESS),
        play: group(false, &rows::PLAY),
        spark: group(true, &[&rows::SPARK[..], &rows::TIMED[..]].concat()),
        logrus: group(false, &rows::LOGRUS),
        python: group(false, &rows::PYTHON),
        dotnet: group(false, &rows::DOTNET),
        android: group(false, &rows::ANDROID),
        long: group(true, &rows::LONG),
        named_level: group(false, &rows::NAMED_LEVEL),
        weblogic: group(true, &rows::WEBLOGIC),
        nest: group(false, &rows::NEST),
        source: group(true, &rows::SOURCE),
        audit: group(true, &rows::AUDIT),
        java: group(true, &rows::JAVA),
        tor: group(true, &rows::TOR),
        mumble: group(false, &rows::MUMBLE),
        anywhere: group(false, &rows::ANYWHERE),
        beegfs: group(false, &rows::BEEGFS),
        lustre: group(false, &rows::LUSTRE),
        lxc: group(false, &rows::LXC),
        tabbed: group(false, &rows::TABBED),
        splunk: group(true, &[&rows::SPLUNK[..], &rows::TIMED[..]].concat()),
        mail: group(true, &rows::MAIL),
        kamailio: group(false, &rows::KAMAILIO),
        coturn: group(false, &rows::COTURN),
        jitsi: group(false, &rows::JITSI),
        call: group(false, &rows::CALL),
        drupal: group(false, &rows::DRUPAL),
        tornado: group(false, &rows::TORNADO),
        unbound: group(false, &rows::UNBOUND),
        factorio: group(false, &rows::FACTORIO),
        asctime: group(true, &rows::ASCTIME),
    }
});

/// The text that a line begins with, and the rows that may follow it.
pub(super) fn candidates(line: &[u8]) -> Option<(&'static str, &'static Group)> {
    by_start(line).or_else(|| is_prefixed(line).then(|| ("", &GROUPS.prefixed)))
}

/// True for a line with a label as of PostgreSQL, which no time begins.
fn is_prefixed(line: &[u8]) -> bool {
    let head = &line[..line.len().min(PREFIX_BYTES_MAX)];
    matches!(line.first(), Some(b'a'..=b'z' | b'A'..=b'Z' | b'[' | b'('))
        && pattern::find(head, b":  ")
            .is_some_and(|end| end > 0 && head[end - 1].is_ascii_uppercase())
}

fn by_start(line: &[u8]) -> Option<(&'static str, &'static Group)> {
    match *line {
        [b'0'..=b'9', ..] if is_lustre(line) => Some(("", &GROUPS.lustre)),
        [b'0'..=b'9', ref rest @ ..] => {
            let group = of_digits(line, rest).or_else(|| of_rare(line));
            group.map(|group| ("", group))
        }
        // Cloud Foundry, and the agents of HashiCorp, on their console.
        [b' ', b' ', b' ', b'2', b'0', _, _, b'-', ..] => Some(("   ", &GROUPS.timed)),
        [b' ', b' ', b' ', b' ', b'2', b'0', _, _, b'-', ..] => Some(("    ", &GROUPS.timed)),
        [b' ', ..] => of_number(line),
        [b'(', b'A'..=b'Z', ..] => Some(("", &GROUPS.process)),
        [b'<', b' ', b'0'..=b'9', ..] => Some(("< ", &GROUPS.angled)),
        [b'#', b'#', b'#', b'#', b'<', ..] => Some(("####<", &GROUPS.weblogic)),
        [
            b'<',
            b'A'..=b'Z',
            b'a'..=b'z',
            b'a'..=b'z',
            b' ',
            b'0'..=b'9',
            ..,
        ] => Some(("<", &GROUPS.weblogic)),
        [b'[', ..] => of_bracket(line),
        [letter, ref rest @ ..] if is_logcat(letter, rest) => Some(("", &GROUPS.android)),
        [b'L', b' ', b'0'..=b'9', b'0'..=b'9', b'/', ..] => Some(("L ", &GROUPS.source)),
        [b'A', b'U', b'D', b'I', b'T', b',', b' ', b'0'..=b'9', ..] => {
            Some(("AUDIT, ", &GROUPS.audit))
        }
        [_, b'0', b'0', b'0', b'0', b' ', ..] => Some(("", &GROUPS.abseil)),
        [
            letter,
            b'0'..=b'9',
            b'0'..=b'9',
            b'0'..=b'9',
            b'0'..=b'9',
            ..,
        ] => {
            let start = ["I", "W", "E", "F", "D"].into_iter();
            let mut start = start.filter(|start| start.as_bytes() == [letter]);
            Some((start.next()?, &GROUPS.google))
        }
        [letter, b',', b' ', b'[', b'0'..=b'9', ..] => {
            let start = ["I, [", "W, [", "E, [", "F, [", "D, [", "A, ["].into_iter();
            let mut start = start.filter(|start| start.as_bytes()[0] == letter);
            Some((start.next()?, &GROUPS.ruby))
        }
        [b'J', b'V', b'B', b' ', b'2', ..] => Some(("", &GROUPS.jitsi)),
        [b'A'..=b'Z', b'A'..=b'Z', ..] => {
            let letters = line.iter().take_while(|byte| byte.is_ascii_uppercase());
            Some(("", of_capitals(&line[letters.count()..])?))
        }
        [b'A'..=b'Z', b'a'..=b'z', b'a'..=b'z', b' ', ..] => Some(("", of_name(line)?)),
        [_, _, _, _, b':', b' ', ..] if DOTNET_LEVELS.contains(&&line[..4]) => {
            Some(("", &GROUPS.dotnet))
        }
        _ => of_rare(line).map(|group| ("", group)),
    }
}

/// The rows of lines that a digit begins, which `rest` follows.
fn of_digits(line: &[u8], rest: &[u8]) -> Option<&'static Group> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match rest.get(digits..digits + 3)? {
        [b':', b'A'..=b'Z', b' '] => Some(&GROUPS.redis),
        [b':', b'0'..=b'9', b'0'..=b'9' | b':'] if is_keydb(&rest[digits..]) => Some(&GROUPS.redis),
        [b'/', ..] if digits == 3 => Some(&GROUPS.go),
        [b':', b'2', b'0'] if is_zabbix(&rest[digits..]) => Some(&GROUPS.zabbix),
        [b'/', ..] if digits == 1 && line.get(5) == Some(&b'/') => Some(&GROUPS.spark),
        [b'-', ..] if is_tracing(line) => Some(&GROUPS.tracing),
        [b'-', ..] if digits == 1 && line.get(5) == Some(&b'-') => Some(&GROUPS.splunk),
        [b'(', ..] if digits < 3 => Some(&GROUPS.kamailio),
        [b':', b' ', b':'] => Some(&GROUPS.coturn),
        [b' ', b'A'..=b'Z', b'a'..=b'z'] if digits == 1 => Some(&GROUPS.timed),
        [b' ' | b'T' | b'-', b'0'..=b'2', b'0'..=b'9'] if digits == 7 => Some(&GROUPS.timed),
        [b'-' | b'/' | b'.' | b':', ..] if digits < 4 => Some(&GROUPS.timed),
        // MySQL 5.5: `261127  0:51:25 `
        [b' ', b'0'..=b'9' | b' ', b'0'..=b'9'] if digits == 5 => Some(&GROUPS.timed),
        _ => None,
    }
}

/// The rows of lines of which few are written.
fn of_rare(line: &[u8]) -> Option<&'static Group> {
    match *line {
        [b'(', b'0'..=b'9', b')', b' ', b'A'..=b'Z', ..] => Some(&GROUPS.beegfs),
        [b'<', b'A'..=b'Z', b'>', b'0'..=b'9', ..] => Some(&GROUPS.mumble),
        [b'A'..=b'Z', b'.', b' ', b'0'..=b'9', ..] => Some(&GROUPS.anywhere),
        [b'l', b'x', b'c', b' ' | b'-', ..] => Some(&GROUPS.lxc),
        [b'a'..=b'z', ..] if is_before_tab(line) => Some(&GROUPS.tabbed),
        [b'J', b'i', b'c', b'o', b'f', b'o', b' ', ..] => Some(&GROUPS.jitsi),
        [b'h', b't', b't', b'p', ..] if is_drupal(line) => Some(&GROUPS.drupal),
        [
            b'A'..=b'Z',
            b'a'..=b'z',
            b'a'..=b'z',
            b',',
            b' ',
            b'0'..=b'9',
            ..,
        ] => Some(&GROUPS.mail),
        _ if is_behind_call(line) => Some(&GROUPS.call),
        _ => None,
    }
}

/// The rows of lines that the name of a day or a month begins: `Fri Nov 27 00:51:25 2026 : `, `Nov 27, 2026 12:51:25 AM `.
fn of_name(line: &[u8]) -> Option<&'static Group> {
    if let Some(b" : " | b" ->") = line.get(24..27) {
        return Some(&GROUPS.radius);
    }
    if line.get(15) == Some(&b'.') {
        return Some(&GROUPS.tor);
    }
    if is_asctime(line) {
        return Some(&GROUPS.asctime);
    }
    let is_day = line.get(5) == Some(&b',') || line.get(6) == Some(&b',');
    is_day.then(|| &GROUPS.java)
}

/// True for `Fri Nov 27 00:51:25 2026`, `Fri Nov 27 00:51:25.818 2026: `, `Fri Nov 27 00:51:25 CET [`,
/// `Nov 27 2026 00:51:25`, `Nov 27 00:51:25 2026 (`, and `Nov 27 00:51:25 09[`.
fn is_asctime(line: &[u8]) -> bool {
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
fn is_lustre(line: &[u8]) -> bool {
    line.get(8) == Some(&b':')
        && line.get(17) == Some(&b':')
        && line[..8].iter().all(u8::is_ascii_hexdigit)
}

/// True for an address of a site, a bar and Unix time.
fn is_drupal(line: &[u8]) -> bool {
    let bar = memchr::memchr(b'|', &line[..line.len().min(HEAD_BYTES_MAX)]);
    bar.is_some_and(|bar| matches!(line[bar + 1..], [b'1', b'0'..=b'9', ..]))
}

/// True for the identifier of a call, `6b3c8e0f-7d1a-4c55-9a01-0123456789ab`, before a time.
fn is_behind_call(line: &[u8]) -> bool {
    line.get(8) == Some(&b'-')
        && line.get(13) == Some(&b'-')
        && line.get(36) == Some(&b' ')
        && line.get(37) == Some(&b'2')
}

/// True for a word before a TAB and a date.
fn is_before_tab(line: &[u8]) -> bool {
    const WORD_BYTES_MAX: usize = 12;
    let head = &line[..line.len().min(WORD_BYTES_MAX)];
    let tab = memchr::memchr(b'\t', head);
    tab.is_some_and(|tab| line.get(tab + 1).is_some_and(u8::is_ascii_digit))
}

/// The rows of lines that a bracket begins.
fn of_bracket(line: &[u8]) -> Option<(&'static str, &'static Group)> {
    match *line {
        [b'[', b'0'..=b'9', ref rest @ ..] if is_numbered(rest) => Some(("", &GROUPS.numbered)),
        [b'[', b'1', ..] if line.get(11) == Some(&b']') => Some(("", &GROUPS.unbound)),
        [b'[', b'0'..=b'9', b'/', ..] | [b'[', b'0'..=b'9', b'0'..=b'9', b'/', b'0'..=b'9', ..] => {
            Some(("[", &GROUPS.slashed))
        }
        [b'[', b'2', b'0', _, _, b'/', ..] if line.get(20) == Some(&b']') => {
            Some(("[", &GROUPS.fluent))
        }
        [b'[', b'0'..=b'9', ..] => Some(("[", &GROUPS.bracketed)),
        [b'[', b'A'..=b'Z', b'a'..=b'z', b'a'..=b'z', b' ', ..] => Some(("[", &GROUPS.named)),
        [b'[', b'A'..=b'Z', b' ', b'0'..=b'9', ..] => Some(("", &GROUPS.tornado)),
        [b'[', b'N', b'e', b's', b't', b']', ..] => Some(("", &GROUPS.nest)),
        [b'[', b'A'..=b'Z', b'a'..=b'z', ..] => Some(("", &GROUPS.play)),
        [b'[', b'A'..=b'Z', b'A'..=b'Z' | b'0'..=b'9', ..] => Some(("", &GROUPS.coredns)),
        [b'[', b'a'..=b'z', ..] if is_before_year(line) => Some(("", &GROUPS.named_level)),
        [b'[', b'a'..=b'z', ..] | [b'[', b' ', b'a'..=b'z', ..] => Some(("", &GROUPS.play)),
        [b'[', b' ', b'0'..=b'9', b'0'..=b'9', b'-', ..] => Some(("[ ", &GROUPS.long)),
        _ => None,
    }
}

/// Levels of .NET's console.
const DOTNET_LEVELS: [&[u8]; 6] = [b"trce", b"dbug", b"info", b"warn", b"fail", b"crit"];

/// The rows of lines that a word in capitals begins, by what follows it.
fn of_capitals(behind: &[u8]) -> Option<&'static Group> {
    match behind {
        [b' ', b'-', b' ', b'0'..=b'9', ..] => Some(&GROUPS.levelled),
        [b' ', rest @ ..] => {
            let next = rest.trim_ascii_start().first();
            let is_it = next.is_some_and(|byte| *byte == b'[' || byte.is_ascii_digit());
            is_it.then(|| &GROUPS.levelled)
        }
        [b'[', b'0'..=b'9', ..] => Some(&GROUPS.logrus),
        [b':', b' ', b'0'..=b'9', ..] => Some(&GROUPS.levelled),
        [b':', b'A'..=b'Z' | b'a'..=b'z' | b'_', ..] => Some(&GROUPS.python),
        _ => None,
    }
}

/// True for `2026-11-27T00:51:25.818426Z `.
fn is_tracing(line: &[u8]) -> bool {
    line.get(10) == Some(&b'T') && line.get(19) == Some(&b'.') && line.get(26) == Some(&b'Z')
}

/// The rows of lines that a padded number begins.
fn of_number(line: &[u8]) -> Option<(&'static str, &'static Group)> {
    let number = line.trim_ascii_start();
    let digits = number
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    match number.get(digits) {
        _ if digits == 0 => None,
        Some(b'.') => Some(("", &GROUPS.factorio)),
        Some(b'(') => Some(("", &GROUPS.kamailio)),
        _ => is_zabbix(&number[digits..]).then(|| ("", &GROUPS.zabbix)),
    }
}

/// True for `:20261127:005125.818 `, behind the number of a process.
fn is_zabbix(text: &[u8]) -> bool {
    let is_digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    let parts = text.get(1..9).zip(text.get(10..16));
    text.first() == Some(&b':')
        && text.get(9) == Some(&b':')
        && text.get(16) == Some(&b'.')
        && parts.is_some_and(|(date, clock)| is_digits(date) && is_digits(clock))
}

/// True for `[error] 2026-` and `[nsqd] 2026/`.
fn is_before_year(line: &[u8]) -> bool {
    const WORD_BYTES_MAX: usize = 24;
    let close = memchr::memchr(b']', &line[..line.len().min(WORD_BYTES_MAX)]);
    close.is_some_and(|close| matches!(line[close + 1..], [b' ', b'2', b'0', ..]))
}

/// The fewest bytes of the number of a process in logcat.
const PROCESS_BYTES: usize = 5;

/// True for `E/Tag`, `E( 77`, and `E (77` of ESP-IDF.
fn is_logcat(letter: u8, rest: &[u8]) -> bool {
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
fn is_keydb(text: &[u8]) -> bool {
    let digits = text[1..].iter().take_while(|byte| byte.is_ascii_digit());
    matches!(text[1 + digits.count()..], [b':', b'A'..=b'Z', b' ', ..])
}

/// True for `234] 27 Nov 00:51:25` and `234] 2026/11/27 00:51:25`, behind a bracket and a digit.
fn is_numbered(text: &[u8]) -> bool {
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

/// Texts of lines without a level: of macOS, of lighttpd and of rspamd.
const UNLEVELLED: [&[u8]; 3] = [b" 0x", b": (", b">; "];

/// The shortest head with a time, behind which pairs may stand.
const TIMED_BYTES_MIN: usize = 8;

/// True if a key and its sign stand behind a time: behind a blank that only digits and signs stand before.
fn is_keyed(head: &[u8]) -> bool {
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

/// True for a line of which some rows have no level: labels of PostgreSQL that say none, and lines of products
/// that write none, or write it as a letter or in another word.
pub(super) fn may_lack_level(line: &[u8]) -> bool {
    let head = &line[..line.len().min(HEAD_BYTES_MAX)];
    !head[0].is_ascii_digit()
        || matches!(head, [_, _, _, _, b'/', _, _, b'/', ..])
        || is_zabbix(&head[head.iter().take_while(|byte| byte.is_ascii_digit()).count()..])
        || memchr::memchr2(b'[', b'|', head).is_some()
        || is_keyed(head)
        || is_studio(head)
        || is_exim(head)
        || is_ceph(head)
        || is_sql_server(head)
        || is_klog(head)
        || UNLEVELLED
            .iter()
            .any(|mark| pattern::find(head, mark).is_some())
}

/// True if numbers of a process and a thread stand behind the milliseconds, as Android Studio writes them.
fn is_studio(head: &[u8]) -> bool {
    let end = if head.get(2) == Some(&b'-') { 18 } else { 23 };
    if head.get(end) != Some(&b' ') || head[end - 4] != b'.' {
        return false;
    }
    let ids = head[end..].trim_ascii_start();
    let digits = ids.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && matches!(ids[digits..], [b'-', b'0'..=b'9', ..])
}

/// True if the identifier of a message of Exim stands behind the time: `1abcDE-000abc-2x`, or with eleven letters in
/// its middle.
fn is_exim(head: &[u8]) -> bool {
    head.get(26) == Some(&b'-') && (head.get(33) == Some(&b'-') || head.get(38) == Some(&b'-'))
}

/// True if a thread of twelve hexadecimal digits stands behind the time.
fn is_ceph(head: &[u8]) -> bool {
    let thread = head.get(28..43).unwrap_or_default();
    matches!(thread, [b' ', digits @ .., b' ', _] if digits.iter().all(u8::is_ascii_hexdigit))
        || matches!(thread, [b' ', digits @ .., b' '] if digits.iter().all(u8::is_ascii_hexdigit))
}

/// True if a process of SQL Server stands behind a time with two digits of its fraction.
fn is_sql_server(head: &[u8]) -> bool {
    const PROCESSES: [&[u8]; 4] = [b" spid", b" Logon ", b" Server ", b" Backup "];
    let behind = head.get(22..).unwrap_or_default();
    PROCESSES.iter().any(|process| behind.starts_with(process))
}

/// True if a letter and the day of Google's logging libraries stand behind a time that `Z` ends.
fn is_klog(head: &[u8]) -> bool {
    let behind = memchr::memchr(b'Z', head).map(|zone| &head[zone + 1..]);
    matches!(
        behind,
        Some([b' ', b'I' | b'W' | b'E' | b'F', day @ .., ]) if day.len() > 5
            && day[..4].iter().all(u8::is_ascii_digit)
            && day[4] == b' '
    )
}
