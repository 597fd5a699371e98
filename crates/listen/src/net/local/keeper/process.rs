//! A process of our own as the keeper, from the server's side.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType};

use super::holder::is_ours;
use super::message::{Answer, MESSAGE_BYTES_MAX, Request};
use super::{KEPT_MAX, NamedDescriptor};
use crate::net::local::bind;
use logpond_host::descriptors;

/// How long a keeper may take to give back what it has.
const TAKE_MAX: Duration = Duration::from_secs(5);

/// Servers that wait to be let in or sent away.
const BACKLOG: i32 = 16;

/// The program that runs, also if its file was replaced meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// A keeper that this server is connected to.
pub(super) struct KeeperProcess {
    socket: OwnedFd,
    /// Of one that this server has started.
    child: Option<Child>,
}

/// Where the keeper of sockets in a directory is connected to.
pub(in crate::net::local) fn control_in(directory: &Path) -> PathBuf {
    directory.join("keeper")
}

/// Where that of one socket is.
pub(in crate::net::local) fn control_beside(socket: &Path) -> PathBuf {
    let mut path = OsString::from(socket);
    path.push(".keeper");
    path.into()
}

fn socket() -> io::Result<OwnedFd> {
    let (domain, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    Ok(rustix::net::socket_with(
        domain,
        kind,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

impl KeeperProcess {
    /// Takes over from the keeper of an earlier server; `None` if there is none, or a server has it.
    ///
    /// # Errors
    /// When it is somebody else's, or does not give all that it has.
    pub(super) fn take_over(
        control: &Path,
    ) -> io::Result<Option<(KeeperProcess, Vec<NamedDescriptor>)>> {
        let socket = socket()?;
        match rustix::net::connect(&socket, &SocketAddrUnix::new(control)?) {
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::CONNREFUSED) => return Ok(None),
            connected => connected?,
        }
        if !is_ours(socket.as_fd()) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        set_socket_timeout(&socket, Timeout::Recv, Some(TAKE_MAX))?;
        let misunderstood = || io::Error::from(io::ErrorKind::InvalidData);
        let count = match receive(&socket) {
            Ok(Some((Answer::Count(count), _))) => Ok(count),
            Ok(Some(_)) => Err(misunderstood()),
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => Err(error),
        }?;
        if count > KEPT_MAX {
            return Err(misunderstood());
        }
        let mut taken = Vec::new();
        for _ in 0..count {
            match receive(&socket)? {
                Some((Answer::Kept(name), Some(descriptor))) => {
                    taken.push(NamedDescriptor { name, descriptor });
                }
                _ => return Err(misunderstood()),
            }
        }
        let child = None;
        Ok(Some((KeeperProcess { socket, child }, taken)))
    }

    /// Starts one, which keeps nothing yet.
    ///
    /// # Errors
    /// When its socket cannot be bound, or no process can be started.
    pub(super) fn start(control: &Path) -> io::Result<KeeperProcess> {
        let listener = socket()?;
        let address = SocketAddrUnix::new(control)?;
        bind::remove_left_behind(control)?;
        rustix::net::bind(&listener, &address)?;
        std::fs::set_permissions(control, std::fs::Permissions::from_mode(0o600))?;
        rustix::net::listen(&listener, BACKLOG)?;
        // It finds a server waiting, and so does not end at once.
        let socket = socket()?;
        rustix::net::connect(&socket, &address)?;
        let started = Command::new(OWN_PROGRAM)
            .arg0("logpond")
            .arg("keep")
            .arg(control)
            .env_clear()
            .current_dir("/")
            .stdin(listener)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = started.inspect_err(|_| drop(std::fs::remove_file(control)))?;
        let child = Some(child);
        set_socket_timeout(&socket, Timeout::Recv, Some(TAKE_MAX))?;
        match receive(&socket)? {
            Some((Answer::Count(0), None)) => Ok(KeeperProcess { socket, child }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Says something; never waits.
    ///
    /// # Errors
    /// `WouldBlock` if it is busy, and when it is gone.
    pub(super) fn tell(
        &self,
        request: &Request,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        descriptors::send(&self.socket, None, &request.to_bytes(), descriptor)
    }

    /// Says something, and waits for room.
    ///
    /// # Errors
    /// When there is none for [`TAKE_MAX`], and when it is gone.
    pub(super) fn tell_patiently(
        &self,
        request: &Request,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        set_socket_timeout(&self.socket, Timeout::Send, Some(TAKE_MAX))?;
        descriptors::send_patiently(&self.socket, None, &request.to_bytes(), descriptor)
    }

    /// What has something to read once the keeper is gone: it says nothing any more.
    pub(super) fn end(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }

    /// Forgets one that is gone.
    pub(super) fn reap(self) {
        if let Some(mut child) = self.child {
            // It is over already, or was about to be.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The next message; `None` at the end.
fn receive(socket: &OwnedFd) -> io::Result<Option<(Answer, Option<OwnedFd>)>> {
    let mut buffer = [0; MESSAGE_BYTES_MAX];
    let (length, descriptor) = descriptors::receive(socket, &mut buffer, RecvFlags::empty())?;
    if length == 0 {
        return Ok(None);
    }
    let answer = Answer::read(&buffer[..length]);
    let answer = answer.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(Some((answer, descriptor)))
}
