//! Fields of packets that firewalls log, and of queries of BIND: they are made beside the message.
//!
//! | daemon | message |
//! | --- | --- |
//! | netfilter, UFW, firewalld | `[UFW BLOCK] IN=eth0 OUT= MAC=… SRC=192.0.2.7 DST=10.0.0.7 … PROTO=TCP SPT=41000 DPT=80 …` |
//! | pf of pfSense and OPNsense | `5,,,1000,igb0,match,block,in,4,0x0,,64,1,0,none,6,tcp,60,192.0.2.7,10.0.0.7,41000,80,…` |
//! | BIND | `client @0x7f 192.0.2.7#41000 (example.org): query: example.org IN A +E(0)K (10.0.0.7)` |
//!
//! Sources: Linux, `nf_log_syslog`; Netgate, "Raw Filter Log Format"; ISC, BIND 9, "queries" category.

use std::borrow::Cow;

use logpond_record::Value;

use super::sentences::is_address;
use crate::intake::access::canonical_int;

/// Fields that are made of a message.
type Made<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// The most words of a packet.
const WORDS_MAX: usize = 48;

/// The most values of a packet of pf that are looked at.
const VALUES_MAX: usize = 24;

/// Names of netfilter, and the fields that they are.
const NETFILTER: [(&str, &str); 8] = [
    ("IN", "in_interface"),
    ("OUT", "out_interface"),
    ("SRC", "src_ip"),
    ("DST", "dst_ip"),
    ("PROTO", "protocol"),
    ("SPT", "src_port"),
    ("DPT", "dst_port"),
    ("LEN", "length"),
];

/// Places of pf's values with their fields, before those of the version of IP.
const PF: [(usize, &str); 3] = [(4, "interface"), (6, "action"), (7, "direction")];

/// The same for version 4, and for version 6.
const PF_4: [(usize, &str); 5] = [
    (16, "protocol"),
    (18, "src_ip"),
    (19, "dst_ip"),
    (20, "src_port"),
    (21, "dst_port"),
];
const PF_6: [(usize, &str); 5] = [
    (12, "protocol"),
    (15, "src_ip"),
    (16, "dst_ip"),
    (17, "src_port"),
    (18, "dst_port"),
];

/// Makes the fields of a packet of netfilter.
pub(super) fn netfilter<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    // A prefix may end with a bracket, as those of EdgeOS and UniFi do.
    let start = message
        .find("IN=")
        .filter(|at| *at == 0 || message[..*at].ends_with([' ', ']', ':']))?;
    if !(message.contains(" SRC=") && message.contains(" DST=")) {
        return None;
    }
    for word in message[start..].split(' ').take(WORDS_MAX) {
        let Some((name, value)) = word.split_once('=') else {
            continue;
        };
        let known = NETFILTER.iter().find(|(known, _)| *known == name);
        if let Some((_, field)) = known {
            put(made, field, value);
        }
    }
    Some(())
}

/// Makes the fields of a packet of pf.
pub(super) fn pf<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    let mut values = [""; VALUES_MAX];
    let split = message.split(',');
    values
        .iter_mut()
        .zip(split)
        .for_each(|(place, value)| *place = value);
    let rest = match values[8] {
        "4" => PF_4,
        "6" => PF_6,
        _ => return None,
    };
    for (place, name) in PF.into_iter().chain(rest) {
        put(made, name, values[place]);
    }
    // Other protocols have something else in the place of ports.
    let protocols = ["tcp", "udp"];
    let is_known = |text: &str| {
        protocols
            .iter()
            .any(|known| known.eq_ignore_ascii_case(text))
    };
    let is_ported = made.iter().any(|(name, value)| {
        name == "protocol" && matches!(value, Value::Str(text) if is_known(text))
    });
    if !is_ported {
        made.retain(|(name, _)| !name.ends_with("_port"));
    }
    Some(())
}

/// Makes the fields of a query of BIND.
pub(super) fn query<'a>(message: &'a str, made: &mut Made<'a>) -> Option<()> {
    let (_, rest) = message.split_once("client ")?;
    let rest = match rest.strip_prefix("@0x") {
        Some(pointer) => pointer.split_once(' ')?.1,
        None => rest,
    };
    let (client, rest) = rest.split_once(' ')?;
    let (address, port) = client.trim_end_matches(':').split_once('#')?;
    let (_, query) = rest.split_once("query: ")?;
    let mut words = query.split(' ');
    let (name, class, kind) = (words.next()?, words.next()?, words.next()?);
    let port = canonical_int(port).filter(|_| is_address(address))?;
    made.push(("remote_addr".into(), Value::Str(address.into())));
    made.push(("remote_port".into(), Value::Int(port)));
    put(made, "query_name", name);
    put(made, "query_class", class);
    put(made, "query_type", kind);
    Some(())
}

fn put<'a>(made: &mut Made<'a>, name: &'static str, value: &'a str) {
    if value.is_empty() || made.iter().any(|(known, _)| known == name) {
        return;
    }
    let value = canonical_int(value).map_or(Value::Str(value.into()), Value::Int);
    made.push((name.into(), value));
}
