//! A new process takes over from a running one, with the sockets that listen: no connection is
//! refused meanwhile, and none is cut.
//!
//! The one that runs starts the program anew, as it was started itself, with a socket as standard
//! input. Over that go the listening sockets, one a message with its address, and a message that says
//! that these were all; the new process answers once it serves. Until then the old one goes on as if
//! nothing were.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use logpond_proxy::ListenSockets;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socketpair};

use crate::commands::{Failure, variable};
use logpond_host::descriptors::{receive, send_patiently};

/// Tells a new process that its standard input is such a socket.
const VARIABLE: &str = "LOGPOND_PROXY_TAKES_OVER";

/// The last message with sockets, and the answer to it.
const THATS_ALL: &[u8] = b"all";
const SERVES: &[u8] = b"serves";

/// What begins the message with the operators' listener.
const ADMIN: &str = "admin ";

/// The longest message: an address.
const MESSAGE_BYTES_MAX: usize = 128;

/// The most sockets: addresses times workers.
const SOCKETS_MAX: usize = 1 << 16;

/// How long the new process may take until it serves, or the old one to hand sockets over.
const TIME_MAX: Duration = Duration::from_secs(60);

/// What a process hands over.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    pub(super) listening: Vec<ListenSockets>,
    pub(super) admin: Option<TcpListener>,
}

/// The process before this one, which waits to hear that this one serves.
#[derive(Debug)]
pub(super) struct PreviousProcess(OwnedFd);

/// Takes over what a process before this one hands over, if there is one.
///
/// # Errors
/// When it does not do so.
pub(super) fn take_over() -> Result<(Sockets, Option<PreviousProcess>), Failure> {
    if variable(VARIABLE).is_none() {
        return Ok((Sockets::default(), None));
    }
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    set_socket_timeout(&socket, Timeout::Recv, Some(TIME_MAX))?;
    let sockets = receive_all(&socket)
        .map_err(|error| format!("the process before hands over nothing: {error}"))?;
    Ok((sockets, Some(PreviousProcess(socket))))
}

fn receive_all(socket: &OwnedFd) -> io::Result<Sockets> {
    let mut sockets = Sockets::default();
    let mut message = [0; MESSAGE_BYTES_MAX];
    for _ in 0..SOCKETS_MAX {
        let (length, descriptor) = receive(socket, &mut message, RecvFlags::empty())?;
        let message = &message[..length];
        if message == THATS_ALL {
            return Ok(sockets);
        }
        let text = str::from_utf8(message).map_err(io::Error::other)?;
        let descriptor: OwnedFd = descriptor.ok_or(io::ErrorKind::InvalidData)?;
        let listener = TcpListener::from(descriptor);
        if text.starts_with(ADMIN) {
            sockets.admin = Some(listener);
            continue;
        }
        // The number tells two listeners of one address apart, of which each has any free port.
        let (number, asked) = text.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
        let number: usize = number.parse().map_err(io::Error::other)?;
        let asked: SocketAddr = asked.parse().map_err(io::Error::other)?;
        if number == sockets.listening.len() {
            let of_it = Vec::new();
            sockets.listening.push(ListenSockets {
                asked,
                sockets: of_it,
            });
        }
        let of_it = sockets.listening.get_mut(number);
        of_it
            .ok_or(io::ErrorKind::InvalidData)?
            .sockets
            .push(listener);
    }
    Err(io::ErrorKind::InvalidData.into())
}

impl PreviousProcess {
    /// Lets it know that this process serves.
    pub(super) fn tell(self) {
        // It may have been killed, which changes nothing for this one.
        let _ = send_patiently(&self.0, None, SERVES, None);
    }
}

/// Starts the program anew and hands over to it. Waits until it serves; gives its process id.
///
/// # Errors
/// Why it does not; then nothing has changed.
pub(super) fn hand_over(sockets: &Sockets) -> Result<u32, String> {
    let failed = |error: io::Error| error.to_string();
    let (near, far) = pair().map_err(failed)?;
    let mut child = Command::new(program().map_err(failed)?)
        .args(std::env::args_os().skip(1))
        .env(VARIABLE, "1")
        .stdin(Stdio::from(far))
        .spawn()
        .map_err(failed)?;
    let mut answer = [0; MESSAGE_BYTES_MAX];
    let sent = send_all(&near, sockets);
    let answered = sent.and_then(|()| receive(&near, &mut answer, RecvFlags::empty()));
    match answered {
        Ok((length, _)) if &answer[..length] == SERVES => Ok(child.id()),
        _ => {
            // It may hold what listens, and must not serve after all.
            let _ = child.kill();
            let status = child.wait().map_err(failed)?;
            Err(format!("the new process does not serve ({status})"))
        }
    }
}

/// Two ends of a socket that keeps messages apart and tells when the other end is gone.
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let (near, far) = socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
    for direction in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&near, direction, Some(TIME_MAX))?;
    }
    Ok((near, far))
}

fn send_all(socket: &OwnedFd, sockets: &Sockets) -> io::Result<()> {
    let send = |text: &str, descriptor: BorrowedFd<'_>| {
        send_patiently(socket, None, text.as_bytes(), Some(descriptor))
    };
    for (number, one) in sockets.listening.iter().enumerate() {
        for socket in &one.sockets {
            send(&format!("{number} {}", one.asked), socket.as_fd())?;
        }
    }
    if let Some(admin) = &sockets.admin {
        send(ADMIN, admin.as_fd())?;
    }
    send_patiently(socket, None, THATS_ALL, None)
}

/// The program as it is on the disk now: the one that runs may have been replaced there.
pub(super) fn program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_string_lossy();
    Ok(match text.strip_suffix(" (deleted)") {
        Some(before) if !path.exists() => before.into(),
        _ => path,
    })
}
