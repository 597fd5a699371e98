//! Records of the kernel's audit system, as the kernel sends them to whoever listens.
//!
//! Besides auditd, which the kernel waits for, others may listen to the same records
//! (`AUDIT_NLGRP_READLOG`, netlink(7)). Whether there is anything to hear is decided elsewhere: auditing is
//! neither turned on nor off here.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::{fmt, io};

use logpond_protocol::intake::audit::netlink::Messages;
use logpond_record::{Batch, EntryKind, Labels};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, socket,
};

use super::entries::Entries;
use super::process;
use super::queue::{self, QueueReceiver, QueueSender};
use super::receive::{DatagramHandler, DatagramInfo, Receiver};
use crate::net::Context;
use logpond_host::clock;
use logpond_host::hostname;

/// The group of those who read records, as a bit.
const READLOG: u32 = 1;

/// The longest record: the kernel cuts them at 8970 bytes (`MAX_AUDIT_MESSAGE_LENGTH`).
const RECORD_BYTES_MAX: usize = 16 << 10;

/// What the socket is called in records of losses.
const NAME: &str = "audit";

/// What is said of every record: notices of the facility for security.
const SAID: [(&str, &[u8]); 3] = [
    ("PRIORITY", b"5"),
    ("SYSLOG_FACILITY", b"4"),
    ("SYSLOG_IDENTIFIER", b"audit"),
];

/// The kernel does not let us listen.
#[derive(Debug)]
pub struct AuditError(io::Error);

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot listen to the kernel's audit records (--audit): ")?;
        match self.0.kind() {
            io::ErrorKind::PermissionDenied => f.write_str(
                "permission denied; run as root or with the capability CAP_AUDIT_READ, outside of \
                 containers with their own users",
            ),
            io::ErrorKind::Unsupported => f.write_str("this kernel has no audit system"),
            _ => match self.0.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EPROTONOSUPPORT | Errno::ECONNREFUSED) => {
                    f.write_str("this kernel has no audit system, or not for containers")
                }
                _ => write!(f, "{}", self.0),
            },
        }
    }
}

impl std::error::Error for AuditError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Listens; what comes waits in the kernel.
///
/// # Errors
/// When the kernel does not let us.
pub(super) fn listen() -> Result<OwnedFd, AuditError> {
    let listening = || {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let protocol = SockProtocol::NetlinkAudit;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        let address = NetlinkAddr::new(0, READLOG);
        bind(socket.as_raw_fd(), &address)?;
        Ok(socket)
    };
    listening().map_err(|error: Errno| AuditError(error.into()))
}

/// Starts to receive; what is received comes out of the queue that is given back.
///
/// # Errors
/// When the socket cannot tell who sends, or no thread can be started.
pub(super) fn start(
    socket: OwnedFd,
    context: Context,
) -> io::Result<(JoinHandle<()>, QueueReceiver)> {
    let receiver = Receiver::new(socket, RECORD_BYTES_MAX)?;
    let machine = process::machine(&context.hostname, "audit");
    let (filling, emptying) = queue::queue(context.clone(), NAME.to_owned());
    let shutdown = context.shutdown.clone();
    let intake = Audit {
        machine,
        filling,
        entries: Entries::of_kernel(context.clone()),
        context,
    };
    Ok((receiver.start("lp-audit", intake, shutdown)?, emptying))
}

struct Audit {
    machine: Labels,
    filling: QueueSender,
    entries: Entries,
    context: Context,
}

impl DatagramHandler for Audit {
    fn take(&mut self, sent: DatagramInfo, bytes: &[u8]) {
        // The kernel is no process; whoever is one may not speak for it.
        if sent.credentials.is_some() {
            return;
        }
        for message in Messages::new(bytes) {
            let line = message.line();
            let fields = [&[("MESSAGE", &line[..])], &SAID[..]].concat();
            self.entries.add(&fields, &self.machine, !sent.is_cut);
        }
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn is_full(&self) -> bool {
        self.entries.is_full()
    }

    fn hand_over(&mut self) {
        let now = clock::now();
        self.entries.push_to(&mut self.filling, now);
        self.filling.tell_losses(now);
    }

    /// The kernel says once that some were lost, and not how many.
    fn failed(&mut self, error: &io::Error) {
        if error.raw_os_error().map(Errno::from_raw) != Some(Errno::ENOBUFS) {
            return;
        }
        self.hand_over();
        self.context.count_lost(1);
        let now = clock::now();
        let labels = hostname::labels_of_server(&self.context.hostname);
        let mut batch = Batch::new(EntryKind::Line, labels);
        let line = format!(
            "time={now} level=warning msg=\"audit records came faster than they were read: at least one \
             was lost\" lost=1 socket=\"{NAME}\""
        );
        batch.push(line.as_bytes());
        self.filling.push(Arc::new(batch), now);
    }
}
