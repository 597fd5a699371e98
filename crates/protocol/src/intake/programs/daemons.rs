//! Fields of further sentences of daemons and devices, made beside the message as those of [`super::sentences`].
//!
//! | daemon | message |
//! | --- | --- |
//! | sudo | `lena : TTY=pts/0 ; PWD=/srv/lena ; USER=root ; COMMAND=/usr/bin/id` |
//! | cron | `(root) CMD (/usr/bin/true)` |
//! | PAM | `pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=192.0.2.7  user=lena` |
//! | ISC dhcpd | `DHCPACK on 10.0.0.77 to 00:11:22:33:44:55 (phone) via eth0` |
//! | Snort, Suricata | `[1:2019401:3] ET SCAN [Classification: Misc Attack] [Priority: 2] {TCP} 192.0.2.7:41000 -> 10.0.0.7:80` |
//! | RouterOS | `forward: in:bridge out:ether1, proto TCP (SYN), 192.0.2.7:41000->10.0.0.7:80, len 52` |
//!
//! Sources: sudoers(5), "Log format"; cron(8); pam_unix(8); dhcpd(8); Suricata, "fast.log"; MikroTik, "Log".

use std::borrow::Cow;

use logpond_record::Value;

use super::sentences::is_address;
use crate::intake::access::canonical_int;

/// Fields that are made of a message.
type Made<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// The most words of a message of dhcpd and of PAM.
const WORDS_MAX: usize = 24;

/// How far into a line the mark of an alert is looked for, in bytes.
const MARK_BYTES_MAX: usize = 64;

/// The mark that stands before an alert in a file.
const MARK: &str = "[**] [";

/// Names of sudo with the fields that they are.
const SUDO: [(&str, &str); 4] = [
    ("TTY", "tty"),
    ("PWD", "pwd"),
    ("USER", "target_user"),
    ("GROUP", "target_group"),
];

/// True for the name of a daemon whose sentences are read here.
pub(super) fn is_one(name: &str) -> bool {
    matches!(
        name,
        "sudo" | "su" | "CRON" | "CROND" | "cron" | "crond" | "dhcpd" | "snort" | "suricata"
    ) || name.starts_with("firewall,")
}

/// Makes the fields of a message of one of them.
pub(super) fn read<'a>(name: &str, message: &'a str, made: &mut Made<'a>) -> Option<()> {
    match name {
        "sudo" => sudo(message, made),
        "CRON" | "CROND" | "cron" | "crond" => cron(message, made),
        "dhcpd" => dhcpd(message, made),
        "snort" | "suricata" => alert(message, made),
        _ if name.starts_with("firewall,") => router(message, made),
        _ => None,
    }
}

fn sudo<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    let (user, rest) = message.trim_start_matches(' ').split_once(" : ")?;
    let (head, command) = rest.split_once("COMMAND=")?;
    if user.contains(' ') {
        return None;
    }
    put(made, "user", user);
    for part in head.split(" ; ") {
        if let Some((name, value)) = part.split_once('=')
            && let Some((_, field)) = SUDO.iter().find(|(known, _)| *known == name)
        {
            put(made, field, value);
        }
    }
    put(made, "command", command);
    Some(())
}

fn cron<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    let (user, rest) = message.strip_prefix('(')?.split_once(") CMD (")?;
    put(made, "user", user);
    put(made, "command", rest.strip_suffix(')')?);
    Some(())
}

/// Makes the fields of a message of a module of PAM, whichever program it is in.
pub(super) fn pam<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    let (place, rest) = message.strip_prefix("pam_")?.split_once("): ")?;
    let (module, service) = place.split_once('(')?;
    put(made, "pam_module", module);
    put(made, "pam_service", service);
    if let Some((_, user)) = rest.split_once(" for user ") {
        put(made, "user", user.split([' ', '(']).next()?);
        return Some(());
    }
    let (_, pairs) = rest.split_once("; ")?;
    for word in pairs.split(' ').take(WORDS_MAX) {
        match word.split_once('=') {
            Some(("user", user)) => put(made, "user", user),
            Some(("rhost", host)) if is_address(host) => put(made, "remote_addr", host),
            Some(("rhost", host)) => put(made, "remote_host", host),
            Some(("tty", tty)) => put(made, "tty", tty),
            _ => {}
        }
    }
    Some(())
}

fn dhcpd<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    let mut words = message.split(' ').take(WORDS_MAX);
    let kind = words.next().filter(|word| word.starts_with("DHCP"))?;
    put(made, "dhcp_type", kind.trim_end_matches(':'));
    let mut before = "";
    for word in words {
        let is_hardware =
            word.len() == 17 && word.bytes().filter(|byte| *byte == b':').count() == 5;
        match before {
            "from" | "to" if is_hardware => put(made, "mac", word),
            "on" | "for" if is_address(word) => put(made, "client_ip", word),
            "via" => put(made, "interface", word.trim_end_matches(':')),
            _ => {}
        }
        before = word;
    }
    Some(())
}

/// The alert that a line of a file has behind its time.
pub(super) fn alert_of_file(line: &str) -> Option<&str> {
    let head = &line.as_bytes()[..line.len().min(MARK_BYTES_MAX)];
    let at = memchr::memmem::find(head, MARK.as_bytes())?;
    line.get(at + MARK.len() - 1..)
}

/// Makes the fields of an alert.
pub(super) fn alert<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    let (id, rest) = message.strip_prefix('[')?.split_once("] ")?;
    let number = id.split(':').nth(1).and_then(canonical_int)?;
    let (head, flow) = rest.rsplit_once(" {")?;
    let (protocol, flow) = flow.split_once("} ")?;
    let (from, to) = flow.split_once(" -> ")?;
    let (signature, remarks) = head.split_once(" [").unwrap_or((head, ""));
    made.push(("signature_id".into(), Value::Int(number)));
    put(
        made,
        "signature",
        signature.trim_end_matches("[**]").trim_end(),
    );
    for remark in remarks.split(['[', ']']) {
        match remark.split_once(": ") {
            Some(("Classification", value)) => put(made, "classification", value),
            Some(("Priority", value)) => put(made, "rule_priority", value),
            _ => {}
        }
    }
    put(made, "protocol", protocol);
    end(from, "src_ip", "src_port", made);
    end(to, "dst_ip", "dst_port", made);
    Some(())
}

/// Makes the fields of an address with a port behind it or none.
fn end<'a>(text: &'a str, address: &'static str, port: &'static str, made: &mut Made<'a>) {
    let parts = text
        .rsplit_once(':')
        .filter(|(host, _)| is_address(host) && (host.contains('.') || host.contains(':')));
    match parts {
        Some((host, number)) => {
            put(made, address, host);
            put(made, port, number);
        }
        None => put(made, address, text),
    }
}

fn router<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    let (head, rest) = message.split_once(", ")?;
    for word in head.split(' ') {
        // It is `(unknown 0)` if there is none.
        match word.split_once(':') {
            Some(("in", name)) if !name.starts_with('(') => put(made, "in_interface", name),
            Some(("out", name)) if !name.starts_with('(') => put(made, "out_interface", name),
            _ => {}
        }
    }
    for part in rest.split(", ") {
        if let Some(protocol) = part.rsplit_once("proto ").map(|(_, protocol)| protocol) {
            put(made, "protocol", protocol.split(' ').next()?);
        } else if let Some(length) = part.strip_prefix("len ") {
            put(made, "length", length);
        } else if let Some((from, to)) = part.split_once("->") {
            end(from, "src_ip", "src_port", made);
            end(to, "dst_ip", "dst_port", made);
        }
    }
    Some(())
}

fn put<'a>(made: &mut Made<'a>, name: &'static str, value: &'a str) {
    if value.is_empty() || made.iter().any(|(known, _)| known == name) {
        return;
    }
    let value = canonical_int(value).map_or(Value::Str(value.into()), Value::Int);
    made.push((name.into(), value));
}
