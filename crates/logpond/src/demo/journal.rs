//! Entries of systemd's journals, in the export format.

use super::Moment;
use super::story::{BAD_RELEASE, GOOD_RELEASE};

/// Connections that the database gives out.
const CONNECTIONS_MAX: u64 = 100;

/// Priorities of syslog.
const ERROR: u8 = 3;
const NOTICE: u8 = 5;
const INFO: u8 = 6;

/// The program that rolls releases out.
const DEPLOYER: (&str, &str) = ("deployer", "deploy-1");

/// The database.
const DATABASE: (&str, &str) = ("postgres", "db-1");

pub(super) fn ordinary(moment: &mut Moment<'_>, out: &mut Vec<u8>) {
    let number = moment.draw.below(5000);
    let machines = ["app-1", "app-2", "app-3", "db-1", "edge-1", "edge-2"];
    let machine = *moment.draw.pick(&machines);
    let (program, priority, message) = match moment.draw.below(8) {
        0 => ("systemd", INFO, "Started logrotate.service.".to_owned()),
        1 => (
            "systemd",
            INFO,
            format!("session-{number}.scope: Deactivated."),
        ),
        2 => (
            "kernel",
            NOTICE,
            format!("eth0: link is up, {number} resets so far"),
        ),
        3 => ("chronyd", INFO, "Selected source 192.0.2.123".to_owned()),
        _ => {
            let pages = moment.draw.skewed(900);
            let message = format!("checkpoint complete: wrote {pages} buffers");
            return entry(moment, DATABASE, INFO, &message, out);
        }
    };
    entry(moment, (program, machine), priority, &message, out);
}

/// The release, its removal, and how the database sees the time between them.
pub(super) fn planted(moment: &mut Moment<'_>, out: &mut Vec<u8>) -> u64 {
    let second = moment.second();
    let (deployed, rolled_back) = (moment.incident.deployed, moment.incident.rolled_back);
    if second == deployed {
        let message = format!(
            "checkout {BAD_RELEASE} rolled out to app-1, app-2 and app-3 by pipeline 8841 \
             (before: {GOOD_RELEASE})"
        );
        entry(moment, DEPLOYER, NOTICE, &message, out);
        return 1;
    }
    if second == rolled_back {
        let message = format!(
            "checkout {GOOD_RELEASE} rolled out to app-1, app-2 and app-3 by hand \
             (before: {BAD_RELEASE})"
        );
        entry(moment, DEPLOYER, NOTICE, &message, out);
        return 1;
    }
    if moment.incident.is_failing(second) && second % 20 == 0 {
        let idle = moment.draw.between(84, 91);
        let message = format!(
            "connection refused: {CONNECTIONS_MAX} of {CONNECTIONS_MAX} are in use, \
             {idle} of them idle in a transaction of checkout"
        );
        entry(moment, DATABASE, ERROR, &message, out);
        return 1;
    }
    0
}

fn entry(
    moment: &mut Moment<'_>,
    (program, machine): (&str, &str),
    priority: u8,
    message: &str,
    out: &mut Vec<u8>,
) {
    let micros = moment.nanos / 1000;
    let process = moment.draw.between(300, 4000);
    let text = format!(
        "__REALTIME_TIMESTAMP={micros}\n_HOSTNAME={machine}\n_SYSTEMD_UNIT={program}.service\n\
         SYSLOG_IDENTIFIER={program}\n_PID={process}\nPRIORITY={priority}\nMESSAGE={message}\n\n"
    );
    out.extend_from_slice(text.as_bytes());
}
