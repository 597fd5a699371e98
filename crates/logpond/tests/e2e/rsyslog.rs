//! rsyslog as the sender: every message of its that is acknowledged is here.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::pond::{Pond, Scratch, wait_until};
use crate::surroundings::{program, skip};

/// Messages that are sent.
const MESSAGES: usize = 5000;

/// A daemon that passes on what comes over TCP.
struct Rsyslog {
    child: Child,
    address: String,
}

impl Rsyslog {
    /// Starts it with this action; none where there is no rsyslog with the module.
    fn start(scratch: &Scratch, action: &str) -> Option<Rsyslog> {
        let directory = scratch.path();
        let port = directory.join("port");
        let configuration = format!(
            "global(workDirectory=\"{0}\")\n\
             module(load=\"imtcp\")\n\
             input(type=\"imtcp\" port=\"0\" address=\"127.0.0.1\" listenPortFileName=\"{1}\" \
             ruleset=\"out\")\n\
             {action}\n",
            directory.display(),
            port.display(),
        );
        let path = directory.join("rsyslog.conf");
        fs::write(&path, configuration).unwrap();
        let command = || {
            let mut command = Command::new("rsyslogd");
            command.arg("-f").arg(&path).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        // It looks for the modules, too.
        let checks_out = command().arg("-N1").status().is_ok_and(|s| s.success());
        if !checks_out {
            skip(
                "rsyslog",
                "there is no rsyslog with RELP (./test installs it)",
            );
            return None;
        }
        let child = command()
            .arg("-n")
            .arg("-i")
            .arg(directory.join("pid"))
            .spawn()
            .unwrap();
        let mut address = String::new();
        wait_until("rsyslog listens", || {
            let text = fs::read_to_string(&port).unwrap_or_default();
            address = format!("127.0.0.1:{}", text.trim());
            TcpStream::connect(&address).is_ok()
        })
        .unwrap();
        Some(Rsyslog { child, address })
    }
}

impl Drop for Rsyslog {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn messages_over_relp_are_here_once() {
    let scratch = Scratch::new("rsyslog").unwrap();
    let pond = Pond::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let relp = pond.address("relp");
    let port = relp.rsplit(':').next().unwrap();
    let action = format!(
        "module(load=\"omrelp\")\n\
         ruleset(name=\"out\") {{ action(type=\"omrelp\" target=\"127.0.0.1\" port=\"{port}\" \
         template=\"RSYSLOG_SyslogProtocol23Format\") }}"
    );
    let Some(rsyslog) = Rsyslog::start(&scratch, &action) else {
        return;
    };
    let mut stream = TcpStream::connect(&rsyslog.address).unwrap();
    for number in 0..MESSAGES {
        let line = format!("<13>1 2026-03-02T00:00:00Z ash app 7 - - relayed {number}\n");
        stream.write_all(line.as_bytes()).unwrap();
    }
    drop(stream);
    wait_until("all messages are here", || {
        pond.query("relayed")
            .is_ok_and(|(rows, _)| rows.len() >= MESSAGES)
    })
    .unwrap();
    let (rows, trailer) = pond.query("relayed").unwrap();
    assert_eq!(trailer["complete"], true);
    let messages: BTreeSet<_> = rows.iter().map(|row| row["_msg"].to_string()).collect();
    assert_eq!((rows.len(), messages.len()), (MESSAGES, MESSAGES));
    assert!(
        rows.iter()
            .all(|row| row["hostname"] == "ash" && row["app"] == "app")
    );
}
