//! Syslog of the gateway and the switch (RFC 5424).

use super::{Moment, RFC3339_US};

/// The burst of failed logins, before the story: it has nothing to do with it.
const BURST_BEFORE_SECONDS: i64 = 5 * 3600;
const BURST_SECONDS: i64 = 180;

pub(super) fn ordinary(moment: &mut Moment<'_>, out: &mut Vec<u8>) {
    let address = moment.draw.between(1, 250);
    let port = moment.draw.between(1024, 65_000);
    let (priority, machine, program, message) = match moment.draw.below(10) {
        0..=3 => {
            let text =
                format!("Accepted publickey for deploy from 203.0.113.{address} port {port}");
            (38, "gate-1", "sshd", text)
        }
        4..=5 => (86, "gate-1", "sshd", refused(address, port)),
        6 => (
            78,
            "gate-1",
            "CRON",
            "(root) CMD (run-parts /etc/cron.hourly)".to_owned(),
        ),
        _ => {
            let text = format!("port {}: {} frames dropped", address % 24 + 1, port % 7);
            (189, "switch-1", "ifmgr", text)
        }
    };
    line(moment, (priority, machine, program), &message, out);
}

/// Someone tries names at the gateway.
pub(super) fn planted(moment: &mut Moment<'_>, out: &mut Vec<u8>) -> u64 {
    let since = moment.second() - (moment.incident.deployed - BURST_BEFORE_SECONDS);
    if !(0..BURST_SECONDS).contains(&since) {
        return 0;
    }
    let port = moment.draw.between(1024, 65_000);
    line(moment, (86, "gate-1", "sshd"), &refused(66, port), out);
    1
}

fn refused(address: u64, port: u64) -> String {
    format!("Failed password for invalid user admin from 198.51.100.{address} port {port}")
}

type Origin<'a> = (u8, &'a str, &'a str);

fn line(
    moment: &mut Moment<'_>,
    (priority, machine, program): Origin<'_>,
    message: &str,
    out: &mut Vec<u8>,
) {
    let time = moment.time(RFC3339_US);
    let process = moment.draw.between(300, 9000);
    let text = format!("<{priority}>1 {time} {machine} {program} {process} - - {message}\n");
    out.extend_from_slice(text.as_bytes());
}
