//! Records of the audit system, by each of the ways in which they come.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::process::Command;

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};

use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{program, say};

/// An event as auditd writes it, and one of another number.
const EVENT: [&str; 4] = [
    "type=SYSCALL msg=audit(1772409600.123:456): arch=c000003e syscall=59 success=yes exit=0 pid=901 uid=0 comm=2F746D702F61 exe=\"/bin/sh\" key=\"run\"\u{1d}ARCH=x86_64 SYSCALL=execve UID=\"root\"",
    "type=EXECVE msg=audit(1772409600.123:456): argc=2 a0=\"sh\" a1=\"-c\"",
    "type=PROCTITLE msg=audit(1772409600.123:456): proctitle=7368002D63",
    "type=USER_AUTH msg=audit(1772409600.123:457): pid=7 uid=0 msg='op=login acct=\"root\" res=failed'",
];

#[test]
fn all_records_of_an_event_are_found_by_its_number() {
    let scratch = Scratch::new("audit").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    // The first of a file, the second as a line, the third by syslog.
    let file = scratch.path().join("audit.log");
    fs::write(&file, format!("{}\n{}\n", EVENT[0], EVENT[3])).unwrap();
    let forwarded = Command::new(program())
        .args(["forward", "--quiet", "--addr", &server.url()])
        .arg(&file)
        .status();
    assert!(forwarded.unwrap().success());
    let line = format!("{}\n", EVENT[1]);
    assert_eq!(
        server.send_tcp("durable", line.as_bytes()),
        Ok("OK 1\n".to_owned())
    );
    let mut syslog = TcpStream::connect(server.address("syslog_tcp")).unwrap();
    writeln!(
        syslog,
        "<14>Mar  2 00:00:09 ash audisp-syslog: {}",
        EVENT[2]
    )
    .unwrap();
    let mut rows = Vec::new();
    wait_until("all three are there", || {
        rows = server.query("_AUDIT_ID=456").unwrap().0;
        rows.len() == 3
    })
    .unwrap();
    for row in &rows {
        assert_eq!(row["_time"], "2026-03-02T00:00:00.123000000Z", "{row}");
    }
    let row = |q: &str| {
        let (mut rows, _) = server.query(q).unwrap();
        assert_eq!(rows.len(), 1, "{q}: {rows:?}");
        rows.remove(0)
    };
    let call = row("_AUDIT_TYPE=1300 _PID=901");
    let names = ["_COMM", "_EXE", "_AUDIT_FIELD_KEY", "_AUDIT_NAME_SYSCALL"];
    let found = names.map(|name| call[name].as_str().unwrap_or_default());
    assert_eq!(found, ["/tmp/a", "/bin/sh", "run", "execve"], "{call}");
    assert_eq!(row("_AUDIT_FIELD_A1=-c")["_AUDIT_TYPE_NAME"], "EXECVE");
    let title = row("_AUDIT_TYPE_NAME=PROCTITLE");
    let found = (&title["body._CMDLINE"], &title["hostname"], &title["app"]);
    assert_eq!(
        found,
        (&"sh -c".into(), &"ash".into(), &"audisp-syslog".into())
    );
    assert_eq!(row("AUDIT_FIELD_RES=failed")["AUDIT_FIELD_ACCT"], "root");
    // Columns give the lines back.
    server.compact().unwrap();
    let raw = Command::new(program())
        .args(["query", "", "--output", "raw", "--since", "2000-01-01"])
        .args(["--addr", &server.url()])
        .output()
        .unwrap();
    let text = String::from_utf8(raw.stdout).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let syslog = format!("<14>Mar  2 00:00:09 ash audisp-syslog: {}", EVENT[2]);
    let mut expected = [EVENT[0], EVENT[1], &syslog, EVENT[3]];
    expected.sort_unstable();
    assert_eq!(lines, expected);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// The type of records of programs that the kernel passes on although auditing is off (`AUDIT_USER_AVC`).
const USER_AVC: u16 = 1107;

/// Has the kernel make a record; false where it does not.
fn log_to_kernel(text: &str) -> bool {
    let flags = SockFlag::SOCK_CLOEXEC;
    let protocol = SockProtocol::NetlinkAudit;
    let Ok(socket) = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol) else {
        return false;
    };
    let length = u32::try_from(16 + text.len()).unwrap();
    // A request that is answered (`NLM_F_REQUEST`, `NLM_F_ACK`).
    let request = [
        &length.to_ne_bytes()[..],
        &USER_AVC.to_ne_bytes(),
        &5u16.to_ne_bytes(),
        &[0; 8],
        text.as_bytes(),
    ]
    .concat();
    let socket = socket.as_raw_fd();
    let kernel = NetlinkAddr::new(0, 0);
    let mut answer = [0; 64];
    sendto(socket, &request, &kernel, MsgFlags::empty()).is_ok()
        && recv(socket, &mut answer, MsgFlags::empty()).is_ok_and(|bytes| bytes >= 20)
        && answer[16..20] == [0; 4]
}

#[test]
fn the_kernel_sends_its_records() {
    let scratch = Scratch::new("audit-kernel").unwrap();
    let data = scratch.path().join("data");
    let server = match TestServer::start(program(), &data, &["--audit"]) {
        Ok(server) => server,
        Err(error) => {
            assert!(error.contains("(--audit)"), "{error}");
            return say(&format!("skipped: audit records of the kernel: {error}"));
        }
    };
    let run = std::process::id();
    if !log_to_kernel(&format!("op=logpond-{run} res=success")) {
        return say("skipped: audit records of the kernel, which takes none");
    }
    let mut rows = Vec::new();
    wait_until("it is there", || {
        rows = server
            .query(&format!("AUDIT_FIELD_OP=logpond-{run}"))
            .unwrap()
            .0;
        !rows.is_empty()
    })
    .unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert_eq!(
        (&row["_TRANSPORT"], &row["app"]),
        (&"audit".into(), &"audit".into())
    );
    assert_eq!(row["_AUDIT_TYPE"], USER_AVC);
    // Whom it is about is known by the kernel's word.
    assert_eq!(row["_PID"], run);
    assert!(row["_AUDIT_ID"].as_u64().is_some(), "{row}");
    assert_eq!((&row["facility"], &row["severity"]), (&4.into(), &5.into()));
    assert_eq!(server.metric("logpond_ingest_lost_total"), Ok(0.0));
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}
