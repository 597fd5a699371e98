//! The groups of rows, by the bytes that their lines begin with.

mod marks;

use std::sync::LazyLock;

use super::pattern::{self, Row};
use super::{named, postgres, rows};
use marks::{
    is_asctime, is_before_console, is_before_tab, is_before_year, is_behind_call, is_ceph, is_dpkg,
    is_drupal, is_exim, is_exponential, is_facility, is_glib, is_keydb, is_keyed, is_klog,
    is_logcat, is_lustre, is_numbered, is_page, is_sql_server, is_studio, is_tracing, is_update,
    is_uptime, is_zabbix,
};

pub(crate) use marks::is_firebird;

use crate::intake::timestamps::is_since_start;

/// How far into a line is looked for what tells that a row without a level may fit, in bytes.
const HEAD_BYTES_MAX: usize = 96;

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
    glib: Group,
    cups: Group,
    pipewire: Group,
    virtualbox: Group,
    firebird: Group,
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
    pages: Group,
    kernel: Group,
    dovecot: Group,
    console: Group,
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
        glib: group(false, &rows::GLIB),
        cups: group(false, &rows::CUPS),
        pipewire: group(false, &rows::PIPEWIRE),
        virtualbox: group(false, &rows::VIRTUALBOX),
        firebird: group(false, &rows::FIREBIRD),
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
        pages: group(false, &rows::PAGES),
        kernel: group(false, &rows::KERNEL),
        dovecot: group(true, &rows::DOVECOT),
        console: group(false, &rows::CONSOLE),
    }
});

/// The text that a line begins with, and the rows that may follow it.
pub(super) fn candidates(line: &[u8]) -> Option<(&'static str, &'static Group)> {
    by_start(line).or_else(|| Some(("", prefixed(line)?)))
}

/// The rows of a line with a label as of PostgreSQL, whose prefix may begin as lines of others do.
pub(super) fn prefixed(line: &[u8]) -> Option<&'static Group> {
    postgres::is_labelled(line).then(|| &GROUPS.prefixed)
}

fn by_start(line: &[u8]) -> Option<(&'static str, &'static Group)> {
    match *line {
        [b'0'..=b'9', ..] if is_lustre(line) => Some(("", &GROUPS.lustre)),
        [b'0'..=b'9', b'0'..=b'9', b':', ..] if is_since_start(line) => {
            Some(("", &GROUPS.virtualbox))
        }
        [b'0'..=b'9', ref rest @ ..] => {
            let group = of_digits(line, rest).or_else(|| of_rare(line));
            group.map(|group| ("", group))
        }
        [b' ', ..] => of_blank(line),
        [b'(' | b'*', ..] if is_glib(line) => Some(("", &GROUPS.glib)),
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
        [b'd', ..] if line.starts_with(b"dovecot: 2") => Some(("dovecot: ", &GROUPS.dovecot)),
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
            let group = of_capitals(&line[letters.count()..]).or_else(|| of_rare(line));
            Some(("", group?))
        }
        [b'A'..=b'Z', b'a'..=b'z', b'a'..=b'z', b' ', ..] => Some(("", of_name(line)?)),
        [_, _, _, _, b':', b' ', ..] if DOTNET_LEVELS.contains(&&line[..4]) => {
            Some(("", &GROUPS.dotnet))
        }
        _ => of_rare(line).map(|group| ("", group)),
    }
}

/// The rows of lines that a blank begins.
fn of_blank(line: &[u8]) -> Option<(&'static str, &'static Group)> {
    match *line {
        // Cloud Foundry, and the agents of HashiCorp, on their console.
        [b' ', b' ', b' ', b'2', b'0', _, _, b'-', ..] => Some(("   ", &GROUPS.timed)),
        // Rust's tracing, format pretty.
        [b' ', b' ', b'2', b'0', _, _, b'-', ..] => Some(("  ", &GROUPS.timed)),
        [b' ', b' ', b' ', b' ', b'2', b'0', _, _, b'-', ..] => Some(("    ", &GROUPS.timed)),
        _ => of_number(line),
    }
}

/// The rows of lines that a digit begins, which `rest` follows.
fn of_digits(line: &[u8], rest: &[u8]) -> Option<&'static Group> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match rest.get(digits..digits + 3)? {
        [b':', b'A'..=b'Z', b' '] | [b':', b's', b'i'] => Some(&GROUPS.redis),
        [b':', b'0'..=b'9', b'0'..=b'9' | b':'] if is_keydb(&rest[digits..]) => Some(&GROUPS.redis),
        [b'/', ..] if digits == 3 => Some(&GROUPS.go),
        [b':', b'2', b'0'] if is_zabbix(&rest[digits..]) => Some(&GROUPS.zabbix),
        [b'/', ..] if digits == 1 && line.get(5) == Some(&b'/') => Some(&GROUPS.spark),
        [b'-', ..] if is_tracing(line) => Some(&GROUPS.tracing),
        [b'-', ..] if digits == 1 && line.get(5) == Some(&b'-') => Some(&GROUPS.splunk),
        [b'(', ..] if digits < 3 => Some(&GROUPS.kamailio),
        [b':', b' ', b':'] => Some(&GROUPS.coturn),
        [b' ', b'A'..=b'Z', b'a'..=b'z'] if digits == 1 => Some(&GROUPS.timed),
        // PostgreSQL and zap with Unix time.
        [b'.', b'0'..=b'9', b'0'..=b'9'] if digits == 9 => Some(&GROUPS.timed),
        [b'.', b'0'..=b'9', b'0'..=b'9'] if digits == 0 && is_exponential(line) => {
            Some(&GROUPS.timed)
        }
        // Dovecot with Unix time.
        [b' ', b'a'..=b'z', b'a'..=b'z'] if digits == 9 => Some(&GROUPS.dovecot),
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
        [b'A'..=b'Z', b' ', b'0'..=b'9', b'0'..=b'9', b':', ..] => Some(&GROUPS.pipewire),
        [
            b'A'..=b'Z' | b'd',
            b' ',
            b'[',
            b'0'..=b'9',
            b'0'..=b'9',
            b'/',
            ..,
        ] => Some(&GROUPS.cups),
        [b'a'..=b'z', ..] if is_facility(line) => Some(&GROUPS.kernel),
        [b'a'..=b'z' | b'A'..=b'Z', ..] if is_before_console(line) => Some(&GROUPS.console),
        [b'A'..=b'Z' | b'a'..=b'z', ..] if is_glib(line) => Some(&GROUPS.glib),
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
        _ if is_firebird(line) => Some(&GROUPS.firebird),
        _ if is_page(line) => Some(&GROUPS.pages),
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
    if is_page(line) {
        return Some(&GROUPS.pages);
    }
    if line.get(6) == Some(&b' ') && line.get(9) == Some(&b':') && line.get(15) == Some(&b' ') {
        return Some(&GROUPS.dovecot);
    }
    let is_day = line.get(5) == Some(&b',') || line.get(6) == Some(&b',');
    is_day.then(|| &GROUPS.java)
}

/// The rows of lines that a bracket begins.
fn of_bracket(line: &[u8]) -> Option<(&'static str, &'static Group)> {
    match *line {
        [b'[', b'0'..=b'9', ref rest @ ..] if is_numbered(rest) => Some(("", &GROUPS.numbered)),
        [b'[', b'1', ..] if line.get(11) == Some(&b']') => Some(("", &GROUPS.unbound)),
        [b'[', b' ' | b'0'..=b'9', ..] if is_uptime(line) => Some(("", &GROUPS.kernel)),
        [b'[', b'0'..=b'9', b'/', ..] | [b'[', b'0'..=b'9', b'0'..=b'9', b'/', b'0'..=b'9', ..] => {
            Some(("[", &GROUPS.slashed))
        }
        [b'[', b'2', b'0', _, _, b'/', ..] if line.get(20) == Some(&b']') => {
            Some(("[", &GROUPS.fluent))
        }
        [b'[', b'0'..=b'9', ..] => Some(("[", &GROUPS.bracketed)),
        [b'[', b'A'..=b'Z', b'a'..=b'z', b'a'..=b'z', b' ', ..] => Some(("[", &GROUPS.named)),
        [b'[', b'A'..=b'Z', b' ', b'0'..=b'9', ..] => Some(("", &GROUPS.tornado)),
        [b'[', b'A'..=b'Z', b']', b'[', b'0'..=b'9', ..] => Some(("", &GROUPS.pipewire)),
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
        [b':', b' ', b'0'..=b'9' | b'(', ..] => Some(&GROUPS.levelled),
        [b':', b'A'..=b'Z' | b'a'..=b'z' | b'_', ..] => Some(&GROUPS.python),
        _ => None,
    }
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

/// Texts of lines without a level: of macOS, of lighttpd, of rspamd, of queries of BIND, and of signals to Redis.
const UNLEVELLED: [&[u8]; 5] = [b" 0x", b": (", b">; ", b" client @", b":signal-handler ("];

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
        || is_dpkg(head)
        || is_update(head)
        || is_lustre(head)
        || is_since_start(head)
        || is_ceph(head)
        || is_sql_server(head)
        || is_klog(head)
        || UNLEVELLED
            .iter()
            .any(|mark| pattern::find(head, mark).is_some())
        || postgres::is_labelled(line)
        || named::is_known(head)
}
