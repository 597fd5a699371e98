//! The field `hostname`: which machine a record comes from.
//!
//! It is what the record itself says (a syslog header, a JSON field), else what its sender says (a
//! label), else, where a line of text is all that a sender can give, what the connection says.

use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::sync::Arc;

use logpond_record::Labels;

use crate::host_name::HostName;

/// Where names of machines are written down, this one's among them.
const HOSTS_FILE: &str = "/etc/hosts";

/// The most that is read of it: lists of blocked sites have some megabytes.
const HOSTS_BYTES_MAX: u64 = 16 << 20;

/// The name of this machine, as the kernel has it.
pub fn own() -> String {
    let names = rustix::system::uname();
    names.nodename().to_string_lossy().into_owned()
}

/// All names of this machine: as the kernel has it, the first part of that, and those that `/etc/hosts`
/// has beside it. Reads a file.
pub fn own_names() -> Vec<HostName> {
    let mut text = Vec::new();
    if let Ok(file) = File::open(HOSTS_FILE) {
        // What was read until an error counts.
        let _ = file.take(HOSTS_BYTES_MAX).read_to_end(&mut text);
    }
    names_in(&own(), &String::from_utf8_lossy(&text))
}

/// The names of the machine that the kernel calls `own`, with a text in the form of `/etc/hosts`.
fn names_in(own: &str, hosts: &str) -> Vec<HostName> {
    let own = own.to_ascii_lowercase();
    let short = own.split('.').next().unwrap_or_default();
    let is_own = |name: &str| name.eq_ignore_ascii_case(&own) || name.eq_ignore_ascii_case(short);
    let mut names = vec![own.clone(), short.to_owned()];
    for line in hosts.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let named = line.split_whitespace().skip(1);
        if named.clone().any(is_own) {
            names.extend(named.map(str::to_ascii_lowercase));
        }
    }
    names.sort();
    names.dedup();
    let names = names.iter().map(|name| HostName::parse(name));
    names
        .flatten()
        .filter(|name| matches!(name, HostName::Exact(_)))
        .collect()
}

/// The labels of what a peer sends: its name.
pub fn labels_of(peer: IpAddr, own: &Arc<str>) -> Labels {
    vec![("hostname".into(), Box::from(&*of_peer(peer, own)))]
}

/// The labels of what this server says itself, on the machine of the name `own`.
pub fn labels_of_server(own: &str) -> Labels {
    vec![
        ("hostname".into(), own.into()),
        ("app".into(), "logpond".into()),
    ]
}

/// What a peer is called: its address, or for loopback the name of this machine, `own`.
pub fn of_peer(peer: IpAddr, own: &Arc<str>) -> Arc<str> {
    if peer.is_loopback() && !own.is_empty() {
        own.clone()
    } else {
        peer.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_machine_are_beside_its_own() {
        let hosts = "127.0.0.1 localhost\n127.0.1.1\tAsh.example.org ash # this one\n\
                     ::1 ip6-localhost\n192.0.2.7 elm.example.org elm\n#1.1.1.1 ash evil.example\n";
        let exact = |names: &[&str]| -> Vec<HostName> {
            let names = names.iter().map(|name| HostName::Exact((*name).into()));
            names.collect()
        };
        assert_eq!(names_in("ash", hosts), exact(&["ash", "ash.example.org"]));
        assert_eq!(
            names_in("elm.example.org", ""),
            exact(&["elm", "elm.example.org"])
        );
        assert_eq!(names_in("", hosts), []);
        assert_eq!(names_in("*", ""), []);
    }

    #[test]
    fn a_loopback_peer_is_this_machine() {
        let table = [
            ("127.0.0.1", "ash", "ash"),
            ("::1", "ash", "ash"),
            ("127.0.0.1", "", "127.0.0.1"),
            ("192.0.2.7", "ash", "192.0.2.7"),
            ("2001:db8::7", "ash", "2001:db8::7"),
        ];
        for (peer, own, want) in table {
            let labels = labels_of(peer.parse().unwrap(), &own.into());
            assert_eq!(labels, [("hostname".into(), want.into())]);
        }
    }
}
