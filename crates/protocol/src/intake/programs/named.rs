//! Lines of which the first words behind the time tell the program: OpenVPN, the wrappers of MySQL, Exim, Dovecot; and the
//! kernel's lines.
//!
//! ```text
//!  us=818426 lena/192.0.2.7:41000 TLS: …
//!  mysqld_safe Starting mysqld daemon with databases from /var/lib/mysql
//!  H=mx.example.org [192.0.2.7] F=<a@example.org> rejected RCPT <b@example.org>: …
//!  imap(lena)<77><a1b2>: Info: …
//! ```
//!
//! Sources: OpenVPN, `print_timestamp` and `tls_common_name`; MySQL, `mysqld_safe`; Exim, "Log files"; Dovecot, "Logging".

use std::borrow::Cow;
use std::sync::LazyLock;

use logpond_record::Value;

use super::{Pen, columns, firewalls, sentences};
use crate::intake::access::canonical_int;

/// Bytes of a date and a clock.
const TIME_BYTES: usize = 19;

/// Starts of messages of OpenVPN that have no client before them.
const OPENVPN: [&str; 62] = [
    "OpenVPN ",
    "Initialization Sequence Completed",
    "library versions: ",
    "VERIFY ",
    "VERIFY: ",
    "TLS: ",
    "TLS Error: ",
    "TLS_ERROR: ",
    "TLS Auth Error: ",
    "TLS-Error: ",
    "TLS handshake failed",
    "TLS object -> ",
    "TCP/UDP: ",
    "TCP: ",
    "TCPv4_",
    "TCPv6_",
    "TCP connection established",
    "UDPv4 ",
    "UDPv6 ",
    "UDP link ",
    "TUN/TAP ",
    "TAP-WIN32 ",
    "MULTI: ",
    "MULTI_",
    "MANAGEMENT: ",
    "Control Channel",
    "Data Channel",
    "Outgoing ",
    "Incoming ",
    "Peer Connection Initiated",
    "PUSH: ",
    "PUSH_",
    "SENT CONTROL",
    "OPTIONS IMPORT: ",
    "Options error: ",
    "ROUTE_",
    "ROUTE: ",
    "ROUTE6_",
    "net_route_",
    "net_addr_",
    "net_iface_",
    "do_ifconfig",
    "/sbin/ip ",
    "/sbin/ifconfig ",
    "/sbin/route ",
    "/usr/sbin/ip ",
    "IFCONFIG POOL",
    "ifconfig_pool_",
    "Could not determine IPv4/IPv6 protocol",
    "Socket Buffers: ",
    "Socket flags: ",
    "Diffie-Hellman initialized",
    "CRL: ",
    "AUTH: ",
    "AUTH_PENDING",
    "SIGTERM[",
    "SIGUSR1[",
    "SIGHUP[",
    "SIGINT[",
    "Restart pause",
    "peer info: ",
    "NOTE: ",
];

/// Programs that start MySQL and MariaDB.
const WRAPPERS: [&str; 4] = ["mysqld_safe ", "mariadbd-safe ", "mysqld ", "mariadbd "];

/// Starts of lines of Exim that are about no message.
const EXIM: [&str; 44] = [
    "H=",
    "U=",
    "I=[",
    "exim ",
    "exim4 ",
    "Exim ",
    "cwd=",
    "Start queue run",
    "End queue run",
    "End '",
    "Start '",
    "SMTP ",
    "SIGHUP received",
    "TLS error on ",
    "TLS session: ",
    "no host name found for IP address ",
    "no IP address found for host ",
    "host name alias list truncated",
    "unexpected disconnection while ",
    "unqualified sender ",
    "unqualified recipient ",
    "unqualified verify ",
    "refused connection from ",
    "rejected connection from ",
    "rejected EHLO ",
    "rejected HELO ",
    "rejected EXPN ",
    "rejected VRFY ",
    "rejected ETRN ",
    "temporarily rejected ",
    "Connection from ",
    "connection from ",
    "Warning: purging the environment",
    "daemon: ",
    "pid ",
    "socket bind() to port ",
    "Failed writing ",
    "Failed to create ",
    "Failed to find ",
    "failed to ",
    "failed while ",
    "auth_",
    "plain authenticator failed ",
    "login authenticator failed ",
];

/// Services of Dovecot, sorted.
const SERVICES: [&str; 36] = [
    "aggregator",
    "anvil",
    "auth",
    "auth-worker",
    "config",
    "dict",
    "dict-async",
    "director",
    "dns-client",
    "doveadm",
    "dsync",
    "dsync-local",
    "imap",
    "imap-hibernate",
    "imap-login",
    "imap-urlauth",
    "imap-urlauth-login",
    "imap-urlauth-worker",
    "indexer",
    "indexer-worker",
    "lda",
    "lmtp",
    "log",
    "managesieve",
    "managesieve-login",
    "master",
    "old-stats",
    "pop3",
    "pop3-login",
    "quota-status",
    "replicator",
    "script",
    "ssl-params",
    "stats",
    "submission",
    "submission-login",
];

/// Its levels.
const LEVELS: [&str; 6] = ["Debug", "Info", "Warning", "Error", "Fatal", "Panic"];

/// The program that the first words of a text tell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Openvpn,
    Wrapper,
    Exim,
}

/// The starts by their first byte: few lines begin as one of them does.
static STARTS: LazyLock<Vec<Vec<(&str, Program)>>> = LazyLock::new(|| {
    let mut starts = vec![Vec::new(); 1 + usize::from(u8::MAX)];
    let lists = [
        (&OPENVPN[..], Program::Openvpn),
        (&WRAPPERS[..], Program::Wrapper),
        (&EXIM[..], Program::Exim),
    ];
    for (list, program) in lists {
        for start in list {
            starts[usize::from(start.as_bytes()[0])].push((*start, program));
        }
    }
    starts
});

/// The start of a text that tells its program, and the program.
fn begins(text: &str) -> Option<(&'static str, Program)> {
    let first = *text.as_bytes().first()?;
    let mut starts = STARTS[usize::from(first)].iter();
    let found = starts.find(|(start, _)| text.starts_with(start));
    found.copied()
}

/// True for a text that may be one of these: a cheap test.
pub(super) fn may_be_known(text: &str) -> bool {
    const MICROSECONDS: &str = "us=";
    begins(text).is_some() || text.starts_with(MICROSECONDS) || peer(text).is_some()
}

/// The same for Dovecot.
pub(super) fn may_be_dovecot(text: &str) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let length = text.bytes().take_while(is_part).count();
    let (word, behind) = text.split_at(length);
    matches!(behind.as_bytes().first(), Some(b':' | b'(' | b'<'))
        && (word == "dovecot" || LEVELS.contains(&word) || SERVICES.binary_search(&word).is_ok())
}

/// True if a line without a level has such words behind its time.
pub(super) fn is_known(line: &[u8]) -> bool {
    const BESIDE_BYTES: [usize; 6] = [
        0,
        ".818".len(),
        ".818426".len(),
        " +0100".len(),
        ".818 +0100".len(),
        ".818426Z".len(),
    ];
    // MySQL's date has two digits less for the century, and no hyphens.
    const SHORT_BYTES: usize = "261127 00:51:25".len();
    let chunk = line.utf8_chunks().next();
    let line = chunk.map_or("", |chunk| chunk.valid());
    let ends = BESIDE_BYTES.iter().map(|more| TIME_BYTES + more);
    ends.chain([SHORT_BYTES]).any(|end| {
        let behind = line.get(end..).and_then(|behind| behind.strip_prefix(' '));
        behind.is_some_and(may_be_known)
    })
}

/// Draws a line of which the first words are known.
pub(super) fn known<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    match begins(text) {
        Some((start, Program::Wrapper)) => wrapper(start, text, pen),
        Some((_, Program::Exim)) => {
            pen.sketch.message(text.as_bytes());
            columns::exim_values(text, pen);
            Some(())
        }
        _ => openvpn(text, pen),
    }
}

/// Draws a message of OpenVPN, with the client that it is about before it, or a message that is known.
fn openvpn<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    const MICROSECONDS: &str = "us=";
    let mut rest = text;
    if let Some(behind) = rest.strip_prefix(MICROSECONDS) {
        let (number, behind) = behind.split_once(' ')?;
        pen.sketch.literal(MICROSECONDS);
        pen.slot("microseconds", "i", Value::Int(canonical_int(number)?));
        pen.sketch.literal(" ");
        rest = behind;
    }
    if let Some((name, address, behind)) = peer(rest) {
        if !name.is_empty() {
            pen.text("common_name", name);
            pen.sketch.literal("/");
        }
        pen.client("client", address, true)?;
        pen.sketch.literal(" ");
        rest = behind;
    }
    let is_known = rest.len() < text.len() || begins(rest).is_some();
    (is_known && !rest.is_empty()).then(|| pen.sketch.message(rest.as_bytes()))
}

/// `lena/192.0.2.7:41000 `, or the address alone: the name, the address with the port, and the rest.
fn peer(text: &str) -> Option<(&str, &str, &str)> {
    let (word, rest) = text.split_once(' ')?;
    let (name, address) = word.rsplit_once('/').unwrap_or(("", word));
    let (host, port) = address.rsplit_once(':')?;
    let is_one = sentences::is_address(host.trim_matches(['[', ']']))
        && canonical_int(port).is_some()
        && (host.matches('.').count() == 3 || host.matches(':').count() > 1);
    (is_one && !rest.is_empty()).then_some((name, address, rest))
}

/// Draws the name of a program that starts MySQL, and its message.
fn wrapper<'a>(start: &str, text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    let (process, _) = text.split_at(start.len() - 1);
    let message = text.get(start.len()..).filter(|text| !text.is_empty())?;
    pen.text("process", process);
    pen.sketch.literal(" ");
    pen.sketch.message(message.as_bytes());
    Some(())
}

/// Draws a line of Dovecot's own file: the service with its user and its session, the level, and the message.
pub(super) fn dovecot<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    const NAME: &str = "dovecot: ";
    let mut rest = text;
    if let Some(behind) = rest.strip_prefix(NAME) {
        pen.sketch.literal(NAME);
        rest = behind;
    }
    // Before version 2.0 the level was first.
    let is_level_first = level(rest).is_some();
    if is_level_first {
        rest = draw_level(rest, pen)?;
    }
    let rest = service(rest, pen)?;
    let rest = if is_level_first {
        rest
    } else {
        draw_level(rest, pen)?
    };
    (!rest.is_empty()).then(|| pen.sketch.message(rest.as_bytes()))?;
    let mut made = Vec::new();
    sentences::login(rest, &mut made);
    made.retain(|(name, _)| !pen.sketch.has_slot(name.as_bytes()));
    pen.beside.fields.append(&mut made);
    Some(())
}

fn level(text: &str) -> Option<&str> {
    let (word, _) = text.split_once(": ")?;
    LEVELS.contains(&word).then_some(word)
}

fn draw_level<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<&'a str> {
    let word = level(text)?;
    pen.sketch.literal(word);
    pen.sketch.literal(": ");
    Some(&text[word.len() + 2..])
}

/// Draws `imap(lena)<77><a1b2>: `, of which the brackets may be missing; gives the rest.
fn service<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<&'a str> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let length = text.bytes().take_while(is_part).count();
    let (name, mut rest) = text.split_at(length);
    SERVICES.contains(&name).then_some(())?;
    pen.text("app", name);
    if let Some(inside) = rest.strip_prefix('(') {
        let (inside, behind) = inside.split_once(')')?;
        pen.sketch.literal("(");
        let (process, user) = match inside.split_once(", ") {
            Some((process, user)) => (process, user),
            None if canonical_int(inside).is_some() => (inside, ""),
            None => ("", inside),
        };
        if !process.is_empty() {
            pen.text("procid", process);
        }
        if !(process.is_empty() || user.is_empty()) {
            pen.sketch.literal(", ");
        }
        if !user.is_empty() {
            pen.text("user", user);
        }
        pen.sketch.literal(")");
        rest = behind;
    }
    for name in ["procid", "session"] {
        let Some(inside) = rest.strip_prefix('<') else {
            break;
        };
        let (value, behind) = inside.split_once('>')?;
        pen.sketch.literal("<");
        if !value.is_empty() {
            (!pen.sketch.has_slot(name.as_bytes())).then(|| pen.text(name, value))?;
        }
        pen.sketch.literal(">");
        rest = behind;
    }
    let rest = rest.strip_prefix(": ")?;
    pen.sketch.literal(": ");
    Some(rest)
}

/// Draws a message of the kernel, with the fields of a packet of its firewall, or of a tunnel of WireGuard.
pub(super) fn kernel<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    pen.sketch.message(text.as_bytes());
    let mut made = Vec::new();
    if firewalls::netfilter(text, &mut made).is_some() || wireguard(text, &mut made).is_some() {
        made.retain(|(name, _)| !pen.sketch.has_slot(name.as_bytes()));
        pen.beside.fields.append(&mut made);
    }
}

/// `wireguard: wg0: Handshake for peer 7 (192.0.2.7:51820) did not complete after 5 seconds`
pub(super) fn wireguard<'a>(
    message: &'a str,
    made: &mut Vec<(Cow<'a, str>, Value<'a>)>,
) -> Option<()> {
    let (_, rest) = message.split_once("wireguard: ")?;
    let (interface, rest) = rest.split_once(": ")?;
    if interface.is_empty() || interface.contains(' ') {
        return None;
    }
    made.push(("interface".into(), Value::Str(interface.into())));
    let Some((_, peer)) = rest.split_once("peer ") else {
        return Some(());
    };
    let number = peer.split([' ', ',']).next().and_then(canonical_int);
    if let Some(number) = number {
        made.push(("peer".into(), Value::Int(number)));
    }
    let inside = peer
        .split_once(" (")
        .and_then(|(_, rest)| rest.split_once(')'));
    let parts = inside.and_then(|(address, _)| address.rsplit_once(':'));
    if let Some((host, port)) = parts {
        let host = host.trim_matches(['[', ']']);
        if let Some(port) = canonical_int(port).filter(|_| sentences::is_address(host)) {
            made.push(("remote_addr".into(), Value::Str(host.into())));
            made.push(("remote_port".into(), Value::Int(port)));
        }
    }
    Some(())
}

/// True for a packet, or a line of a tunnel, without the kernel's clock.
pub(super) fn is_of_kernel(text: &str) -> bool {
    const STARTS: [&str; 4] = ["IN=", "[UFW ", "wireguard: ", "iptables"];
    STARTS.iter().any(|start| text.starts_with(start))
}

/// Draws what CUPS says of a page: its number, the copies, what it is billed to, the client, the document, the medium
/// and its sides.
pub(super) fn page<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) -> Option<()> {
    const BEFORE: [&str; 4] = ["page", "copies", "billing", "hostname"];
    const BEHIND: [&str; 2] = ["sides", "media"];
    let mut rest = text;
    let mut values = [("", ""); 6];
    for (at, name) in BEFORE.into_iter().enumerate() {
        let (value, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        values[at] = (name, value);
        rest = behind;
    }
    for (at, name) in BEHIND.into_iter().enumerate() {
        let Some((before, value)) = rest.rsplit_once(' ') else {
            break;
        };
        values[BEFORE.len() + at] = (name, value);
        rest = before;
    }
    let copies = canonical_int(values[1].1)?;
    let is_page = values[0].1 == "total" || canonical_int(values[0].1).is_some();
    is_page.then_some(())?;
    pen.sketch.message(text.as_bytes());
    pen.make("copies", Value::Int(copies));
    for (name, value) in values {
        if !matches!(name, "copies" | "") && value != "-" {
            pen.make_text(name, value);
        }
    }
    if rest != "-" {
        pen.make_text("document", rest);
    }
    Some(())
}

/// Draws a message of Go's log15 or Rust's slog with the pairs that end it: `refused, order: 7, host: web1`.
pub(super) fn listed<'a>(text: &'a str, pen: &mut Pen<'_, '_, 'a>) {
    const PAIRS_MAX: usize = 32;
    let key_of = |part: &'a str| {
        let (key, value) = part.split_once(": ")?;
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        let is_key =
            key.starts_with(|first: char| first.is_ascii_alphabetic()) && key.bytes().all(is_part);
        is_key.then_some((key, value))
    };
    let mut pairs = Vec::new();
    let mut message = text;
    while pairs.len() < PAIRS_MAX
        && let Some((before, part)) = message.rsplit_once(", ")
        && let Some(pair) = key_of(part)
    {
        pairs.push(pair);
        message = before;
    }
    let is_own = |(key, _): &(&str, &str)| pen.sketch.has_slot(key.as_bytes());
    if message.is_empty() || text.contains('\n') || pairs.iter().any(is_own) {
        return pen.sketch.message(text.as_bytes());
    }
    pen.sketch.message(message.as_bytes());
    for (at, (key, value)) in pairs.iter().rev().enumerate() {
        pen.sketch.literal(", ");
        pen.sketch.literal(key);
        pen.sketch.literal(": ");
        let is_first = !pairs[pairs.len() - at..]
            .iter()
            .any(|(known, _)| known == key);
        if is_first {
            columns::bare(key, value, pen);
        } else {
            pen.text("repeated", value);
        }
    }
}
