//! Levels as daemons, devices and databases write them: letters, signs and numbers.
//!
//! | product | line |
//! | --- | --- |
//! | SSSD | `(2026-03-02  0:00:06): [be[a]] [dp_init] (0x0400): …`; the number is a bit of the level |
//! | `dmesg -x` | `kern  :err   : [    6.000000] …` |
//! | HPE Comware | `%Mar  2 00:00:06:000 2026 sw1 SHELL/5/SHELL_LOGIN: …`; the number is a severity of syslog |
//! | Couchbase | `[ns_server:info,2026-03-02T00:00:06.000Z,…` |
//! | GlusterFS | `[2026-03-02 00:00:06.000000] E [MSGID: 101075] …`, `… W [socket.c:7:connect] …` |
//! | Ruby's Semantic Logger | `2026-03-02 00:00:06.000000 E [7:main a.rb:7] Shop -- …` |
//! | Signale | `[shop] › ✖  error     …` |
//! | QuestDB | `2026-03-02T00:00:06.000000Z I i.q.c.l.LineTcp …` |
//! | in brackets | `2026-03-02 00:00:06 [E] …`, behind a time or before it |
//! | Phusion Passenger | `[ E 2026-03-02 00:00:06.0000 7/T1 age/Core.cpp:7 ]: …` |
//! | CUPS | `E [02/Mar/2026:00:00:06 +0000] …` |
//! | npm, Yarn | `npm error code ENOENT` |
//! | Configuration Manager, CMTrace | `<![LOG[text]LOG]!><time="00:00:06.000+000" date="03-02-2026" … type="3" …>` |
//! | OpenWrt | `Mon Mar  2 00:00:06 2026 daemon.err dnsmasq[7]: …` |
//! | systemd's console | `[FAILED] Failed to start …` |
//! | PgBouncer | `2026-03-02 00:00:06.000 UTC [7] LOG C-0x1: …` |
//! | Corosync | `Mar 02 00:00:06 [7] node1 corosync notice  [TOTEM ] …` |
//! | Nagios | `[1772409606] SERVICE ALERT: shop;HTTP;CRITICAL;…`; the state counts, not the kind of the entry |
//! | Datadog's agents | `2026-03-02 00:00:06 UTC \| TRACE \| ERROR \| …`; the first column is the agent |
//! | VMware | `2026-03-02T00:00:06.000Z verbose vpxd[7] [Originator@6876 sub=a] …` |
//! | AIX, `errpt` | `A924A5FC   0302000026 P S SYSPROC   SOFTWARE PROGRAM ABNORMALLY TERMINATED` |
//! | Icinga | `[2026-03-02 00:00:06 +0000] warning/ApiListener: …` |
//! | Monit | `[2026-03-02T00:00:06+0000] error    : …` |
//! | ExtremeXOS | `03/02/2026 00:00:06.00 <Noti:vlan.linkUp> …` |
//! | Db2 | `2026-03-02-00.00.06.000000+000 I1E1          LEVEL: Error` |
//! | VMware behind a header | `verbose vpxd[7] [Originator@6876 sub=a] …` |
//! | HP ProCurve, ArubaOS-Switch | `W 03/02/26 00:00:06 00331 FFI: …` |
//! | Aruba AOS-CX | `Event\|4655\|LOG_INFO\|AMM\|-\|…` |
//! | Huawei | `%%01IFNET/4/LINK_STATE(l)[7]:…` |
//! | Gitea, Forgejo | `2026/03/02 00:00:06 routers/web/repo/view.go:100:Home() [E] …` |
//! | Monolog in syslog | `shop.WARNING: …` |
//! | servers of languages in VS Code | `[Error - 12:00:06 AM] …` |
//! | Asterisk's security log | `[2026-03-02 00:00:06] SECURITY[7] … Severity="Error",…` |
//! | GLib, GTK, GNOME | `GLib-GIO-CRITICAL **: …` |
//! | stunnel | `2026.03.02 00:00:06 LOG3[0]: …`; the number is a severity of syslog |
//! | SAP HANA | `[7]{-1}[-1/-1] 2026-03-02 00:00:06.000000 e Basis …` |
//! | qBittorrent | `(W) 2026-03-02T00:00:06 - …` |
//! | Mattermost | `error [2026-03-02 00:00:06.000 Z] …` |
//! | Ray | `[2026-03-02 00:00:06,000 E 7 8] …` |
//! | XAPI of Xen | `[error\|xen1\|77 INET :::80\|session.login D:6b3c\|backtrace] …` |
//! | Geode | `[info 2026/03/02 00:00:06.000 CET server1 <main> tid=0x1] …` |
//! | Synology, Bamboo | `warn TAB 2026/03/02 00:00:06 TAB SYSTEM: TAB …` |
//! | Lustre | `00000100:00020000:3.0:1795740685.818426:0:…`; the second number has a bit of the level |
//! | Factorio, agents of Google | `   1.234 Error Util.cpp:83: …` |
//! | Kiwi, Solace | `2026-03-02 00:00:06 TAB Local7.Error TAB …`, `2026-03-02T00:00:06.000Z <local3.err> …` |
//! | VMware NSX | `… [nsx@6876 comp="a" level="ERROR"] …` |

use logpond_record::Severity;
use memchr::memmem;

use super::forms::{digits, letter_of};
use super::words;

/// Names of syslog's facilities.
const FACILITIES: [&[u8]; 12] = [
    b"kern",
    b"user",
    b"mail",
    b"daemon",
    b"auth",
    b"syslog",
    b"lpr",
    b"news",
    b"uucp",
    b"cron",
    b"authpriv",
    b"ftp",
];

/// True for the name of one of syslog's facilities.
pub(super) fn is_facility(word: &[u8]) -> bool {
    FACILITIES.contains(&word)
}

/// The bits of SSSD's levels: fatal, critical, serious and minor failures, settings, data, calls, and libraries.
const SSSD: [(u32, &str); 8] = [
    (0x10, "fatal"),
    (0x20, "critical"),
    (0x40, "error"),
    (0x80, "warn"),
    (0x100, "info"),
    (0x200, "info"),
    (0x400, "debug"),
    (0x800, "debug"),
];

/// The end of a text of CMTrace.
const CMTRACE_END: &[u8] = b"]LOG]!><";

/// The most digits of one of SSSD's levels.
const SSSD_DIGITS_MAX: usize = 5;

/// `(2026-03-02  0:00:06): [be[a]] [dp_init] (0x0400): …`
pub(super) fn sssd(head: &[u8]) -> Option<&'static str> {
    let bracket = memmem::find(head, b"] (0x")? + 5;
    let hex = &head[bracket..];
    let count = hex
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    let is_ended = hex[count..].starts_with(b"): ");
    if !is_ended || !(4..=SSSD_DIGITS_MAX).contains(&count) {
        return None;
    }
    let level = u32::from_str_radix(std::str::from_utf8(&hex[..count]).ok()?, 16).ok()?;
    let known = SSSD.iter().find(|(bit, _)| *bit == level);
    Some(known.map_or("trace", |(_, name)| name))
}

/// `kern  :err   : …`
pub(super) fn dmesg(head: &[u8]) -> Option<&'static str> {
    let colon = memchr::memchr(b':', head)?;
    let facility = head[..colon].trim_ascii_end();
    if !FACILITIES.contains(&facility) {
        return None;
    }
    let rest = &head[colon + 1..];
    let colon = memchr::memchr(b':', rest).filter(|colon| rest[*colon..].starts_with(b": ["))?;
    Some(Severity::of_word(rest[..colon].trim_ascii())?.name())
}

/// `%Mar  2 00:00:06:000 2026 sw1 SHELL/5/SHELL_LOGIN: …`
pub(super) fn comware(head: &[u8]) -> Option<&'static str> {
    head.split(|byte| *byte == b' ').find_map(module)
}

/// `SHELL/5/SHELL_LOGIN:`, the module, severity and name of a message.
fn module(word: &[u8]) -> Option<&'static str> {
    mnemonic(word.strip_suffix(b":")?)
}

/// `%01IFNET/4/LINK_STATE(l)`, behind a percent sign: a version, and the same with the kind of the message.
pub(super) fn huawei(behind: &[u8]) -> Option<&'static str> {
    let [b'%', b'0'..=b'9', b'0'..=b'9', rest @ ..] = behind else {
        return None;
    };
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b'(' | b':' | b' '));
    mnemonic(&rest[..end.unwrap_or(rest.len())])
}

/// `SHELL/5/SHELL_LOGIN`
pub(super) fn mnemonic(word: &[u8]) -> Option<&'static str> {
    let mut parts = word.splitn(3, |byte| *byte == b'/');
    let (module, severity, name) = (parts.next()?, parts.next()?, parts.next()?);
    let is_name = |name: &[u8]| {
        let is_part = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
        !name.is_empty() && name.iter().all(is_part)
    };
    let [severity @ b'0'..=b'7'] = severity else {
        return None;
    };
    let is_it = is_name(module) && is_name(name);
    let severity = Severity::of_syslog(severity - b'0').filter(|_| is_it)?;
    Some(severity.name())
}

/// `[ns_server:info,2026-03-02T00:00:06.000Z,…`
pub(super) fn couchbase(head: &[u8]) -> Option<&'static str> {
    let comma = memchr::memchr(b',', head)?;
    let is_name = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
    let colon = memchr::memchr(b':', &head[..comma])?;
    let is_it = head[1..colon].iter().all(is_name) && digits(&head[comma + 1..]) == 4;
    Some(
        Severity::of_word(&head[colon + 1..comma])
            .filter(|_| is_it)?
            .name(),
    )
}

/// True for what follows the letter of GlusterFS, of QuestDB and of Ruby's Semantic Logger.
pub(super) fn is_place(behind: &[u8]) -> bool {
    let is_gluster = || {
        let inside = behind.strip_prefix(b"[")?;
        let end = inside.iter().position(|byte| *byte == b']')?;
        let place = &inside[..end];
        let is_thread = digits(place) > 0 && place[digits(place)..].starts_with(b":");
        let is_semantic = is_thread && memmem::find(&inside[end..], b" -- ").is_some();
        let is_c = || memmem::find(place, b".c:").is_some();
        Some(is_semantic || place.starts_with(b"MSGID: ") || is_c())
    };
    behind.starts_with(b"i.q.") || is_gluster() == Some(true)
}

/// `[E]`, `(W)`, `E: `: a letter in brackets or before a colon, which stands right behind the time.
pub(super) fn in_brackets(word: &[u8], before: Option<u8>, behind: &[u8]) -> Option<&'static str> {
    let is_bracketed = matches!(
        (before, behind),
        (Some(b'['), [b']', ..]) | (Some(b'('), [b')', ..]) | (Some(b' '), [b':', b' ', ..])
    );
    match *word {
        [letter @ (b'D' | b'I' | b'W' | b'E' | b'F')] if is_bracketed => letter_of(letter),
        // IBM Storage Scale.
        [b'N'] if is_bracketed && before == Some(b'[') => Some("notice"),
        _ => None,
    }
}

/// True for a level in small letters behind `] `: before `/Component:` of Icinga, or before blanks and a colon of Monit.
pub(super) fn is_behind_bracket(ahead: &[u8], behind: &[u8]) -> bool {
    let is_component = || {
        let name = behind.strip_prefix(b"/")?;
        let letters = name
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric())
            .count();
        Some(letters > 0 && name[letters..].starts_with(b": "))
    };
    let is_padded = || behind.starts_with(b" ") && behind.trim_ascii_start().starts_with(b": ");
    ahead.starts_with(b"[")
        && ahead.ends_with(b"] ")
        && (is_component() == Some(true) || is_padded())
}

/// `<Noti:vlan.linkUp>`
pub(super) fn extreme(word: &[u8], before: Option<u8>, behind: &[u8]) -> Option<&'static str> {
    let is_event = || {
        let end = behind.iter().position(|byte| *byte == b'>')?;
        let name = behind[..end].strip_prefix(b":")?;
        Some(name.contains(&b'.') && !name.contains(&b' '))
    };
    if before != Some(b'<') || is_event() != Some(true) {
        return None;
    }
    Some(match word {
        b"Crit" => "critical",
        b"Erro" => "error",
        b"Warn" => "warn",
        b"Noti" => "notice",
        b"Info" | b"Summ" => "info",
        b"Debu" => "debug",
        b"Verb" | b"Data" => "trace",
        _ => return None,
    })
}

/// `[error|xen1|77 INET :::80|session.login D:6b3c|backtrace] …` of XAPI: a level, and bars behind it.
pub(super) fn xapi(head: &[u8]) -> Option<&'static str> {
    const BARS: usize = 4;
    let inside = &head[1..memchr::memchr(b']', head)?];
    let mut parts = inside.split(|byte| *byte == b'|');
    let level = Severity::of_word(parts.next()?.trim_ascii_start())?;
    (parts.count() == BARS).then_some(level.name())
}

/// `[info 2026/03/02 00:00:06.000 CET server1 <main> tid=0x1] …` of Geode.
pub(super) fn geode(head: &[u8]) -> Option<&'static str> {
    let inside = &head[1..];
    let letters = inside.iter().take_while(|byte| byte.is_ascii_lowercase());
    let (word, behind) = inside.split_at(letters.count());
    let is_date = matches!(behind, [b' ', b'2', b'0', _, _, b'/', ..]);
    Some(Severity::of_word(word).filter(|_| is_date)?.name())
}

/// `warn TAB 2026/03/02 00:00:06 TAB …` of Synology and Bamboo.
pub(super) fn before_tab(head: &[u8]) -> Option<&'static str> {
    let letters = head.iter().take_while(|byte| byte.is_ascii_lowercase());
    let (word, behind) = head.split_at(letters.count());
    let is_date = matches!(
        behind,
        [
            b'\t',
            b'0'..=b'9',
            b'0'..=b'9',
            b'-' | b'/' | b'0'..=b'9',
            ..
        ]
    );
    let level = match word {
        b"err" => "error",
        word => words::of(word)?.level,
    };
    is_date.then_some(level)
}

/// Masks of Lustre's debug log that are levels.
const LUSTRE: [(&[u8], &str); 3] = [
    (b":00000400:", "warn"),
    (b":00020000:", "error"),
    (b":00040000:", "fatal"),
];

/// `00000100:00020000:3.0:1795740685.818426:0:…`
pub(super) fn lustre(head: &[u8]) -> Option<&'static str> {
    let mask = head.get(8..18).filter(|mask| mask[0] == b':')?;
    let known = LUSTRE.iter().find(|(name, _)| *name == mask)?;
    Some(known.1)
}

/// True for what follows a level of Factorio and of agents of Google: a file of a source and a line, `Util.cpp:83: `.
pub(super) fn is_before_source(behind: &[u8]) -> bool {
    const ENDINGS: [&[u8]; 2] = [b".cpp", b".go"];
    let Some(text) = behind.strip_prefix(b" ") else {
        return false;
    };
    let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
    let place = || {
        let place = word.strip_suffix(b":")?;
        let colon = memchr::memrchr(b':', place)?;
        let (file, line) = (&place[..colon], &place[colon + 1..]);
        let is_line = !line.is_empty() && line.iter().all(u8::is_ascii_digit);
        Some(is_line && ENDINGS.iter().any(|ending| file.ends_with(ending)))
    };
    place() == Some(true)
}

/// True for a level between a facility and a TAB or an angle: `TAB Local7.Error TAB` of Kiwi, `<local3.err>` of Solace.
pub(super) fn is_behind_facility(ahead: &[u8], behind: &[u8]) -> bool {
    const NAME_BYTES_MAX: usize = 12;
    let tail = &ahead[ahead.len().saturating_sub(NAME_BYTES_MAX)..];
    let open = match behind.first() {
        Some(b'\t') => b'\t',
        Some(b'>') => b'<',
        _ => return false,
    };
    let Some(start) = memchr::memrchr(open, tail) else {
        return false;
    };
    let Some(name) = tail[start + 1..].strip_suffix(b".") else {
        return false;
    };
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let word = name[..name.len() - digits].to_ascii_lowercase();
    let is_numbered = matches!(&word[..], b"local" | b"system");
    FACILITIES.contains(&&word[..]) || word == b"kernel" || is_numbered
}

/// The letter that CUPS writes before the time.
pub(super) fn cups(letter: u8) -> Option<&'static str> {
    match letter {
        b'X' => Some("fatal"),
        b'A' => Some("alert"),
        letter => letter_of(letter),
    }
}

/// True for a line of AIX's `errpt`: an identifier, a time, a type and a class.
pub(super) fn is_errpt(head: &[u8]) -> bool {
    let is_id = head[..8]
        .iter()
        .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    let rest = head[8..].trim_ascii_start();
    is_id
        && digits(rest) == 10
        && matches!(
            rest[10..],
            [
                b' ',
                b'P' | b'T' | b'I' | b'U',
                b' ',
                b'H' | b'S' | b'O' | b'U',
                b' ',
                ..
            ]
        )
}

/// The type of an error: permanent, temporary or informational.
pub(super) fn errpt(head: &[u8]) -> Option<&'static str> {
    let rest = head[8..].trim_ascii_start();
    match rest.get(11) {
        Some(b'P') => Some("error"),
        Some(b'T') => Some("warn"),
        Some(b'I') => Some("info"),
        _ => None,
    }
}

/// True for a word for a level that is the name of something else: of an entry of Nagios, of an agent of Datadog.
pub(super) fn is_name(ahead: &[u8], behind: &[u8]) -> bool {
    is_of_nagios(ahead, behind) || is_before_column(behind)
}

/// True if the next column between bars is a level, too: the one before it is a name.
fn is_before_column(behind: &[u8]) -> bool {
    let column = || {
        let behind = behind.trim_ascii_start().strip_prefix(b"|")?;
        let end = behind.iter().position(|byte| *byte == b'|')?;
        let column = behind[..end].trim_ascii();
        Some(column.iter().all(u8::is_ascii_uppercase) && words::of(column).is_some())
    };
    column() == Some(true)
}

/// True for `SERVICE ALERT: …` and `HOST ALERT: …`.
fn is_of_nagios(ahead: &[u8], behind: &[u8]) -> bool {
    behind.starts_with(b": ") && (ahead.ends_with(b"SERVICE ") || ahead.ends_with(b"HOST "))
}

/// True for what follows a level behind the name of Corosync.
pub(super) fn is_of_corosync(behind: &[u8]) -> bool {
    behind.starts_with(b" ") && behind.trim_ascii_start().starts_with(b"[")
}

/// True between a sign and a column of blanks, as Signale writes a level: `[shop] › ✖  error     refused`.
pub(super) fn is_behind_sign(ahead: &[u8], behind: &[u8]) -> bool {
    let is_sign = |ahead: &[u8]| {
        ahead
            .trim_ascii_end()
            .last()
            .is_some_and(|byte| *byte >= 0x80)
    };
    behind.starts_with(b"  ") && ahead.ends_with(b" ") && is_sign(ahead)
}

/// True for words that are levels where only one product writes them so: PgBouncer's `LOG` behind its process, VMware's
/// `verbose` before its originator.
pub(super) fn is_certain(word: &[u8], ahead: &[u8], behind: &[u8]) -> bool {
    let is_behind_process = || {
        let ahead = ahead.strip_suffix(b"] ")?;
        let digits = ahead
            .iter()
            .rev()
            .take_while(|b| b.is_ascii_digit())
            .count();
        Some(digits > 0 && ahead[..ahead.len() - digits].ends_with(b" ["))
    };
    match word {
        b"LOG" => behind.starts_with(b" ") && is_behind_process() == Some(true),
        // Oracle's diagnostic logs, with the number of the level or without.
        b"NOTIFICATION" => {
            ahead.ends_with(b"[") && behind.starts_with(b"]") || behind.starts_with(b":")
        }
        b"verbose" => memmem::find(behind, b" [Originator@").is_some(),
        // `77 2026/11/27 00:51:25.81 UTC MINOR: SNMP #2004 Base …` of Nokia.
        b"MAJOR" | b"MINOR" | b"CLEARED" => {
            let mut words = behind.split(|byte| *byte == b' ');
            let is_number = |word: &[u8]| word.len() > 1 && word[0] == b'#';
            words.next() == Some(b":") && words.nth(1).is_some_and(is_number)
        }
        _ => false,
    }
}

/// The letter that switches of HP write before the time; `M` is a major event.
pub(super) fn procurve(letter: u8) -> Option<&'static str> {
    match letter {
        b'M' => Some("critical"),
        letter => letter_of(letter),
    }
}

/// `Event|4655|LOG_INFO|AMM|-|…`
pub(super) fn aos_cx(head: &[u8]) -> Option<&'static str> {
    let word = head.split(|byte| *byte == b'|').nth(2)?;
    Some(Severity::of_word(word.strip_prefix(b"LOG_")?)?.name())
}

/// `[Error - 12:00:06 AM] …`, also with blanks behind the word.
pub(super) fn language_server(head: &[u8]) -> Option<&'static str> {
    let inside = &head[1..];
    let letters = inside.iter().take_while(|byte| byte.is_ascii_alphabetic());
    let (word, rest) = inside.split_at(letters.count());
    let clock = rest.trim_ascii_start().strip_prefix(b"- ")?;
    let is_clock = rest.starts_with(b" ") && matches!(digits(clock), 1 | 2);
    Some(words::of(word).filter(|_| is_clock)?.level)
}

/// `2026/03/02 00:00:06 routers/web/repo/view.go:100:Home() [E] …`: a letter behind a word behind the time.
pub(super) fn gitea(head: &[u8]) -> Option<&'static str> {
    const TIME_BYTES: usize = 20;
    let mut words = head
        .get(TIME_BYTES..)?
        .splitn(3, |byte| *byte == b' ')
        .skip(1);
    match *words.next()? {
        [b'[', letter, b']'] if head[TIME_BYTES - 1] == b' ' => letter_of(letter),
        _ => None,
    }
}

/// `shop.WARNING: …`: the channel and the level of Monolog, where syslog has the time.
pub(super) fn monolog(head: &[u8]) -> Option<&'static str> {
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let (_, rest) = head.split_at(head.iter().take_while(is_name).count());
    let rest = rest.strip_prefix(b".")?;
    let capitals = rest.iter().take_while(|byte| byte.is_ascii_uppercase());
    let (word, behind) = rest.split_at(capitals.count());
    Some(words::of(word).filter(|_| behind.starts_with(b": "))?.level)
}

/// `error [2026-03-02 00:00:06.000 Z] …`: a word before a time in brackets.
pub(super) fn before_bracket(head: &[u8]) -> Option<&'static str> {
    let letters = head.iter().take_while(|byte| byte.is_ascii_lowercase());
    let (word, rest) = head.split_at(letters.count());
    let inside = rest
        .strip_prefix(b" ")?
        .trim_ascii_start()
        .strip_prefix(b"[")?;
    let is_date = digits(inside) == 4 && inside.get(4) == Some(&b'-');
    Some(words::of(word).filter(|_| is_date)?.level)
}

/// How far behind a level VMware's originator may stand, in bytes.
const ORIGINATOR_BYTES_MAX: usize = 64;

/// True for what follows a level of VMware: a process and its originator.
pub(super) fn is_of_vmware(behind: &[u8]) -> bool {
    let head = &behind[..behind.len().min(ORIGINATOR_BYTES_MAX)];
    memmem::find(head, b" [Originator@").is_some()
}

/// The number that stunnel writes behind `LOG`.
pub(super) fn stunnel(digit: u8) -> Option<&'static str> {
    Some(Severity::of_syslog(digit - b'0')?.name())
}

/// The letter of qBittorrent; `N` is what is normal.
pub(super) fn qbittorrent(letter: u8) -> Option<&'static str> {
    match letter {
        b'N' => Some("info"),
        letter => letter_of(letter),
    }
}

/// True for `[7]{-1}[-1/-1] `: thread, connection and transaction of SAP HANA.
pub(super) fn is_hana(head: &[u8]) -> bool {
    let rest = &head[1 + digits(&head[1..])..];
    rest.starts_with(b"]{") && memmem::find(rest, b"}[").is_some()
}

/// The letter behind the date and the clock of SAP HANA.
pub(super) fn hana(head: &[u8]) -> Option<&'static str> {
    match *head.split(|byte| *byte == b' ').nth(3)? {
        [letter @ (b'f' | b'e' | b'w' | b'i' | b'd')] => letter_of(letter.to_ascii_uppercase()),
        _ => None,
    }
}

/// `GLib-GIO-CRITICAL **: …`: a domain and a level of GLib.
pub(super) fn glib(head: &[u8]) -> Option<&'static str> {
    let star = memchr::memchr(b'*', head)?;
    let ahead = head[..star].strip_suffix(b" ")?;
    if !head[star..].starts_with(b"**: ") {
        return None;
    }
    let hyphen = memchr::memrchr(b'-', ahead)?;
    Some(match &ahead[hyphen + 1..] {
        b"ERROR" => "error",
        b"CRITICAL" => "critical",
        b"WARNING" => "warn",
        b"Message" => "notice",
        b"INFO" => "info",
        b"DEBUG" => "debug",
        _ => return None,
    })
}

/// `[ID 800047 auth.info] …`: facility and level of Solaris.
pub(super) fn solaris(head: &[u8]) -> Option<&'static str> {
    let inside = &head[..memchr::memchr(b']', head)?];
    let word = inside.split(|byte| *byte == b' ').nth(2)?;
    let dot = memchr::memchr(b'.', word)?;
    Some(Severity::of_word(&word[dot + 1..])?.name())
}

/// How far into an event of Asterisk its severity is looked for, in bytes.
const SECURITY_BYTES_MAX: usize = 256;

/// `[2026-03-02 00:00:06] SECURITY[7] res_security_log.c: SecurityEvent="…",EventTV="…",Severity="Error",…`
pub(super) fn asterisk(line: &[u8]) -> Option<&'static str> {
    const SEVERITY: &[u8] = b",Severity=\"";
    let head = &line[..line.len().min(SECURITY_BYTES_MAX)];
    if !head.starts_with(b"[") {
        return None;
    }
    let event = &head[memmem::find(head, b" SECURITY[")?..];
    let word = &event[memmem::find(event, SEVERITY)? + SEVERITY.len()..];
    let end = memchr::memchr(b'"', word)?;
    Some(Severity::of_word(&word[..end])?.name())
}

/// `npm error code ENOENT`, `yarn warn …`: the name of the tool and a word.
pub(super) fn package_tool(head: &[u8]) -> Option<&'static str> {
    let rest = head.strip_prefix(b"npm ").or(head.strip_prefix(b"yarn "))?;
    let word = rest.split(|byte| *byte == b' ').next()?;
    match word {
        b"error" => Some("error"),
        b"warn" => Some("warn"),
        b"notice" => Some("notice"),
        b"info" => Some("info"),
        b"verb" | b"silly" | b"http" => Some("trace"),
        _ => None,
    }
}

/// `…]LOG]!><time="…" … type="3" …>`
pub(super) fn cmtrace(line: &[u8]) -> Option<&'static str> {
    let behind = &line[memmem::find(line, CMTRACE_END)?..];
    let at = memmem::find(behind, b" type=\"")? + 7;
    match behind.get(at..at + 2)? {
        b"1\"" => Some("info"),
        b"2\"" => Some("warn"),
        b"3\"" => Some("error"),
        _ => None,
    }
}

/// `LEVEL: Error` of Db2, behind the number of a record.
pub(super) fn db2(head: &[u8]) -> Option<&'static str> {
    // `2026-03-02-00.00.06`
    if head.get(13) != Some(&b'.') || digits(head) != 4 {
        return None;
    }
    let at = memmem::find(head, b" LEVEL: ")?;
    let word = head[at + 8..]
        .split(|byte| byte.is_ascii_whitespace())
        .next()?;
    match word {
        b"Event" => Some("info"),
        word => Some(words::of(word)?.level),
    }
}

/// `#2.0#2026 11 27 00:51:25:818#+0100#Error#…`: the first value of SAP's list format that is a word for a level.
pub(super) fn sap(line: &[u8]) -> Option<&'static str> {
    const VALUES_MAX: usize = 24;
    const HEAD_BYTES_MAX: usize = 1 << 10;
    let head = &line[..line.len().min(HEAD_BYTES_MAX)];
    let mut values = head.split(|byte| *byte == b'#').take(VALUES_MAX);
    let level = values.find_map(|value| match value {
        b"Path" => Some(Severity::Trace),
        value => Severity::of_word(value),
    });
    level.map(Severity::name)
}
