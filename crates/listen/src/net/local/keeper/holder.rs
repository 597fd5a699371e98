//! The process that keeps descriptors: `logpond keep`, which servers start.
//!
//! It waits for servers at the socket that it has as its standard input, one at a time, gives each what is
//! kept, and does what it says, as [`super::holding`] decides. It reads from nothing that it keeps. In the
//! end it removes the paths of what is bound and then its own: so whoever finds nobody here finds nobody
//! there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::net::{RecvFlags, SocketFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::holding::DescriptorTable;
use super::message::{Answer, MESSAGE_BYTES_MAX, Request};
use super::name::Name;
use crate::net::local::bind;
use logpond_host::descriptors;
use logpond_host::open_files;

/// How long a server may take to receive what is kept; it does nothing else then.
const GIVE_MAX: Duration = Duration::from_secs(5);

/// Keeps descriptors until nobody wants them any more. `control` is where servers connect.
///
/// # Errors
/// When standard input is no such socket, or the system refuses.
pub fn run(control: &Path) -> io::Result<()> {
    detach()?;
    let (told, telling) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, telling.try_clone()?)?;
    }
    let listener = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::io::ioctl_fionbio(&listener, true)?;
    let mut keeper = Keeper {
        identity: bind::identity(control)?,
        listener,
        told,
        server: None,
        holding: DescriptorTable::new(Instant::now()),
    };
    while keeper.wait()? {
        keeper.listen();
        keeper.accept();
    }
    for kept in keeper.holding.kept() {
        if let (Name::Socket(_, identity), Some(path)) = (kept.name, &kept.path) {
            bind::remove(path, identity);
        }
    }
    bind::remove(control, keeper.identity);
    Ok(())
}

/// Leaves what the server was started in: its terminal, its directory, and what it was given open.
fn detach() -> io::Result<()> {
    // Only who leads a group already cannot.
    let _ = rustix::process::setsid();
    let open: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for number in open.into_iter().filter(|number| *number > 2) {
        // The directory's own number is among them.
        let _ = nix::unistd::close(number);
    }
    std::env::set_current_dir("/")?;
    // Otherwise it would be called by the last part of `/proc/self/exe`.
    let _ = std::fs::write("/proc/self/comm", "logpond-keep");
    open_files::raise_limit();
    Ok(())
}

struct Keeper {
    listener: OwnedFd,
    /// The file that it is bound to.
    identity: super::Identity,
    /// Gets a byte at a signal that asks for the end.
    told: UnixStream,
    server: Option<OwnedFd>,
    holding: DescriptorTable<OwnedFd>,
}

impl Keeper {
    /// Waits until something happens; `false` at the end.
    fn wait(&mut self) -> io::Result<bool> {
        let timeout = match self.holding.deadline(Instant::now()) {
            None => PollTimeout::NONE,
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                // Rounded up, so that it is over when it ends.
                let left = left + Duration::from_millis(u64::from(!left.is_zero()));
                PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
            }
        };
        let server = self.server.as_ref().map_or(self.told.as_fd(), AsFd::as_fd);
        let mut ready = [
            PollFd::new(self.told.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.listener.as_fd(), PollFlags::POLLIN),
            PollFd::new(server, PollFlags::POLLIN),
        ];
        let count = match poll(&mut ready, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        if ready[0].any() == Some(true) {
            let mut bytes = [0; 64];
            let _ = rustix::net::recv(&self.told, &mut bytes, RecvFlags::DONTWAIT);
            self.holding.ask_to_end();
        }
        let now = Instant::now();
        let is_over = self.holding.deadline(now).is_some_and(|until| until <= now);
        Ok(count > 0 || !is_over)
    }

    /// Does all that the server has said. What makes no sense is left out: only when it is gone the
    /// connection ends, since paths are removed then.
    fn listen(&mut self) {
        let mut buffer = [0; MESSAGE_BYTES_MAX];
        while let Some(server) = &self.server {
            match descriptors::receive(server, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((length, descriptor)) if length > 0 => {
                    if let Ok(request) = Request::read(&buffer[..length]) {
                        let _ = self.holding.take(request, descriptor);
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    io::ErrorKind::Interrupted | io::ErrorKind::InvalidData => {}
                    _ => self.end(),
                },
                Ok(_) => self.end(),
            }
        }
    }

    fn end(&mut self) {
        self.server = None;
        self.holding.disconnect(Instant::now());
    }

    /// Lets a server in, if there is none; all others are sent away.
    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(socket) = rustix::net::accept_with(&self.listener, flags) {
            // The one before may be gone by now.
            self.listen();
            if !is_ours(socket.as_fd()) || !self.holding.connect() {
                continue;
            }
            match self.give(&socket) {
                Ok(()) => self.server = Some(socket),
                Err(_) => self.holding.disconnect(Instant::now()),
            }
        }
    }

    /// Gives a server what is kept.
    fn give(&self, socket: &OwnedFd) -> io::Result<()> {
        use rustix::net::sockopt::{Timeout, set_socket_timeout};
        rustix::io::ioctl_fionbio(socket, false)?;
        set_socket_timeout(socket, Timeout::Send, Some(GIVE_MAX))?;
        let kept = self.holding.kept();
        let count = Answer::Count(kept.len()).to_bytes();
        descriptors::send(socket, None, &count, None)?;
        for kept in kept {
            let name = Answer::Kept(kept.name).to_bytes();
            let descriptor = Some(kept.descriptor.as_fd());
            descriptors::send_patiently(socket, None, &name, descriptor)?;
        }
        Ok(())
    }
}

/// Whether who is at the other end may have all this: the same user, or root.
pub(super) fn is_ours(socket: BorrowedFd<'_>) -> bool {
    let me = rustix::process::geteuid().as_raw();
    getsockopt(&socket, PeerCredentials).is_ok_and(|peer| [0, me].contains(&peer.uid()))
}
