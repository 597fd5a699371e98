//! Datagrams with who sent them, and when.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::{PassCred, RcvBuf, RcvBufForce, ReceiveTimestamp};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixCredentials, recvmsg, setsockopt};
use nix::sys::time::{TimeVal, TimeValLike};

use super::backlog;
use super::process::Credentials;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::warn;

/// Receive buffer asked for: a stall of seconds fits in. Only who may administrate the network gets
/// all of it; the number of datagrams that wait is limited by `net.unix.max_dgram_qlen` besides.
const RECEIVE_BYTES: usize = 64 << 20;

/// How often the stop is looked for while nothing comes.
const IDLE_WAIT: Duration = Duration::from_millis(250);

/// How long it is received on after the stop: what a socket holds is taken in a fraction of it.
pub(super) const LAST_MAX: Duration = Duration::from_secs(1);

/// How long the first message of a batch waits for company.
const LINGER: Duration = Duration::from_millis(10);

/// How long it is not looked whether company has come, where that makes nobody wait: being woken for each
/// message costs more than the message, and is taken from the program that sends.
const NAP: Duration = Duration::from_millis(1);

/// The most descriptors that a datagram may carry (the kernel's SCM_MAX_FD): with room for all of
/// them none is left open by accident.
const FILES_MAX: usize = 253;

/// The largest datagram that is taken whole: that a sender's buffer of 8 MiB lets through, which
/// journald gives its own.
pub(super) const DATAGRAM_BYTES_MAX: usize = 8 << 20;

/// How often a socket that fails is complained of.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// The size, the sender and the time of a datagram.
pub(super) struct DatagramInfo {
    /// Bytes that were sent.
    pub(super) bytes: usize,
    /// Whether not all of them are there.
    pub(super) is_cut: bool,
    /// Who sent it, unless it came from another world.
    pub(super) credentials: Option<Credentials>,
    /// When it was sent, by the kernel's clock: microseconds since 1970.
    pub(super) at_us: Option<i64>,
    /// What was handed over with it.
    pub(super) files: Vec<File>,
    /// How many files were handed over that were closed unread.
    pub(super) files_refused: usize,
}

/// Takes what a socket receives.
pub(super) trait DatagramHandler: Send + 'static {
    /// Takes a datagram.
    fn take(&mut self, sent: DatagramInfo, bytes: &[u8]);

    /// Whether nothing waits to be handed over.
    fn is_empty(&self) -> bool;

    /// Whether what waits is worth being handed over at once.
    fn is_full(&self) -> bool;

    /// Hands over what waits.
    fn hand_over(&mut self);

    /// Hears that the socket could not be read.
    fn failed(&mut self, _error: &io::Error) {}
}

/// A socket and room for what comes.
pub(super) struct Receiver {
    socket: OwnedFd,
    buffer: Vec<u8>,
    /// For what comes beside the bytes.
    space: Vec<u8>,
    /// Whether many datagrams may wait in the kernel.
    is_backlog_long: bool,
    /// When the batch under way is to be handed over.
    linger_until: Option<Instant>,
    complained: Option<Instant>,
}

impl Receiver {
    /// Asks the kernel to say who sends. Longer messages than `message_bytes_max` are cut.
    pub(super) fn new(
        socket: impl Into<OwnedFd>,
        message_bytes_max: usize,
    ) -> io::Result<Receiver> {
        let socket = socket.into();
        setsockopt(&socket, PassCred, &true)?;
        setsockopt(&socket, ReceiveTimestamp, &true)?;
        // A smaller buffer than asked for is no reason to fail.
        if setsockopt(&socket, RcvBufForce, &RECEIVE_BYTES).is_err() {
            let _ = setsockopt(&socket, RcvBuf, &RECEIVE_BYTES);
        }
        Ok(Receiver {
            socket,
            buffer: vec![0; message_bytes_max.clamp(64 << 10, DATAGRAM_BYTES_MAX)],
            space: nix::cmsg_space!(UnixCredentials, TimeVal, [RawFd; FILES_MAX]),
            is_backlog_long: backlog::is_long(),
            linger_until: None,
            complained: None,
        })
    }

    /// Receives on a thread of this name until the stop.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(
        mut self,
        name: &str,
        mut taking: impl DatagramHandler,
        shutdown: Shutdown,
    ) -> io::Result<JoinHandle<()>> {
        let thread = thread::Builder::new().name(name.to_owned());
        thread.spawn(move || self.run(&mut taking, &shutdown))
    }

    fn run(&mut self, taking: &mut impl DatagramHandler, shutdown: &Shutdown) {
        while !shutdown.is_stopping() {
            match self.next(taking.is_empty()) {
                Ok(Some(sent)) => {
                    self.pass(sent, taking);
                    if taking.is_full() {
                        taking.hand_over();
                    }
                }
                Ok(None) => taking.hand_over(),
                Err(error) => {
                    taking.failed(&error);
                    self.complain(&error);
                    taking.hand_over();
                }
            }
        }
        // What the kernel holds already; somebody may send without end.
        let until = Instant::now() + LAST_MAX;
        while Instant::now() < until
            && let Ok(Some(sent)) = self.at_once()
        {
            self.pass(sent, taking);
        }
        taking.hand_over();
    }

    fn pass(&self, sent: DatagramInfo, taking: &mut impl DatagramHandler) {
        let bytes = &self.buffer[..sent.bytes.min(self.buffer.len())];
        taking.take(sent, bytes);
    }

    /// The next datagram; `None` after a while without one. That while is short unless nothing
    /// waits for company (`is_idle`).
    fn next(&mut self, is_idle: bool) -> io::Result<Option<DatagramInfo>> {
        if is_idle {
            self.linger_until = None;
        }
        if let Some(sent) = self.at_once()? {
            return Ok(Some(sent));
        }
        let wait = if is_idle {
            IDLE_WAIT
        } else {
            let now = Instant::now();
            let until = *self.linger_until.get_or_insert(now + LINGER);
            if self.is_backlog_long {
                return self.next_after_naps(until);
            }
            until.saturating_duration_since(now)
        };
        let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
        let mut ready = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, wait) {
            Ok(0) => Ok(None),
            Ok(_) | Err(Errno::EINTR) => self.at_once(),
            Err(error) => Err(error.into()),
        }
    }

    fn next_after_naps(&mut self, until: Instant) -> io::Result<Option<DatagramInfo>> {
        while Instant::now() < until {
            thread::sleep(NAP);
            if let Some(sent) = self.at_once()? {
                return Ok(Some(sent));
            }
        }
        Ok(None)
    }

    /// The next datagram, if there is one.
    fn at_once(&mut self) -> io::Result<Option<DatagramInfo>> {
        let mut parts = [IoSliceMut::new(&mut self.buffer)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_TRUNC;
        let (socket, space) = (self.socket.as_raw_fd(), Some(self.space.as_mut_slice()));
        let received = match recvmsg::<()>(socket, &mut parts, space, flags) {
            Ok(received) => received,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut sent = DatagramInfo {
            bytes: received.bytes,
            is_cut: received.flags.contains(MsgFlags::MSG_TRUNC),
            credentials: None,
            at_us: None,
            files: Vec::new(),
            files_refused: 0,
        };
        for message in received.cmsgs()? {
            match message {
                ControlMessageOwned::ScmCredentials(said) => {
                    // The number of a process that cannot be seen from here is 0.
                    sent.credentials =
                        u32::try_from(said.pid())
                            .ok()
                            .filter(|pid| *pid > 0)
                            .map(|pid| Credentials {
                                pid,
                                uid: said.uid(),
                                gid: said.gid(),
                            });
                }
                ControlMessageOwned::ScmTimestamp(at) => sent.at_us = Some(at.num_microseconds()),
                ControlMessageOwned::ScmRights(files) => {
                    let handed_over = files.len();
                    sent.files.extend(files.into_iter().filter_map(own));
                    sent.files_refused += handed_over - sent.files.len();
                }
                _ => {}
            }
        }
        Ok(Some(sent))
    }

    /// Says that the socket fails, now and then, and waits a little.
    fn complain(&mut self, error: &io::Error) {
        let now = Instant::now();
        let is_due = |before: Instant| now.saturating_duration_since(before) >= COMPLAIN_EVERY;
        if self.complained.is_none_or(is_due) {
            self.complained = Some(now);
            warn(&format!("a socket of this machine cannot be read: {error}"));
        }
        std::thread::sleep(LINGER);
    }
}

/// A file in memory that was handed over, opened anew for reading, since a bare number owns nothing.
/// Anything else is closed without being opened: this process may read what the sender may not, and
/// some files do things when they are opened.
fn own(handed_over: RawFd) -> Option<File> {
    let path = format!("/proc/self/fd/{handed_over}");
    let is_in_memory = std::fs::read_link(&path)
        .is_ok_and(|to| to.as_os_str().as_bytes().starts_with(b"/memfd:"))
        && std::fs::metadata(&path).is_ok_and(|file| file.is_file());
    let file = if is_in_memory {
        File::open(path).ok()
    } else {
        None
    };
    let _ = nix::unistd::close(handed_over);
    file
}
