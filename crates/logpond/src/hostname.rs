//! The field `hostname`: which machine a record comes from.
//!
//! It is what the record itself says (a syslog header, a JSON field), else what its sender says (a
//! label), else, where a line of text is all that a sender can give, what the connection says.

use std::net::IpAddr;
use std::sync::Arc;

use logpond_record::Labels;

/// The name of this machine, as the kernel has it.
pub fn own() -> String {
    let names = rustix::system::uname();
    names.nodename().to_string_lossy().into_owned()
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
    match peer.is_loopback() && !own.is_empty() {
        true => own.clone(),
        false => peer.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
