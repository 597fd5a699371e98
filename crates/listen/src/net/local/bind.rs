//! Sockets in the file system.

use std::fmt;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::backlog;
use super::keeper::Identity;

/// Every program of the machine may send.
const MODE: u32 = 0o666;

/// A path could not be bound.
#[derive(Debug)]
pub struct PathBindError {
    /// The flag that names the path, with its dashes.
    pub flag: &'static str,
    /// The path.
    pub path: PathBuf,
    /// The system's answer.
    pub source: io::Error,
}

impl fmt::Display for PathBindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PathBindError { flag, path, source } = self;
        write!(f, "cannot receive at {} ({flag}): ", path.display())?;
        match source.kind() {
            io::ErrorKind::AddrInUse => write!(
                f,
                "another program receives there, such as systemd-journald or a syslog daemon; stop it, \
                 or choose another path with {flag} PATH"
            ),
            io::ErrorKind::AlreadyExists => write!(
                f,
                "there is something that is no socket; remove it, or choose another path with {flag} PATH"
            ),
            io::ErrorKind::PermissionDenied => write!(
                f,
                "permission denied; run as root, or choose another path with {flag} PATH"
            ),
            io::ErrorKind::NotFound => write!(f, "its directory does not exist; make it first"),
            _ => write!(f, "{source}"),
        }
    }
}

impl std::error::Error for PathBindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// A socket that is taken away again at the end, if it is still ours.
#[derive(Debug)]
pub struct PathGuard {
    path: PathBuf,
    identity: Identity,
    is_left: bool,
}

impl PathGuard {
    /// Guards a path that the socket of an earlier server is bound to.
    pub(super) fn over(path: &Path, identity: Identity) -> PathGuard {
        PathGuard {
            path: path.to_owned(),
            identity,
            is_left: false,
        }
    }

    /// The file that is guarded.
    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// Leaves it where it is: another one takes it away.
    pub(super) fn leave(mut self) {
        self.is_left = true;
    }
}

impl Drop for PathGuard {
    fn drop(&mut self) {
        if !self.is_left {
            remove(&self.path, self.identity);
        }
    }
}

/// Removes a path that leads to this file. What cannot be removed is removed by whoever binds it next.
pub(super) fn remove(path: &Path, file: Identity) {
    if identity(path).is_ok_and(|now| now == file) {
        let _ = fs::remove_file(path);
    }
}

/// The file that a path leads to.
pub(super) fn identity(path: &Path) -> io::Result<Identity> {
    let metadata = fs::symlink_metadata(path)?;
    Ok(Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}

/// Binds a datagram socket that every program of the machine may send to. A socket that a program
/// left behind is replaced.
///
/// # Errors
/// When somebody receives there already, or the system refuses; the error names `flag`.
pub(super) fn bind_datagram(
    flag: &'static str,
    path: &Path,
) -> Result<(UnixDatagram, PathGuard), PathBindError> {
    backlog::raise();
    let connect = |path: &Path| UnixDatagram::unbound()?.connect(path);
    bind(flag, path, connect, |path| UnixDatagram::bind(path))
}

/// Binds a stream socket in the same way.
///
/// # Errors
/// As those of [`bind_datagram`].
pub(super) fn bind_listener(
    flag: &'static str,
    path: &Path,
) -> Result<(UnixListener, PathGuard), PathBindError> {
    let connect = |path: &Path| UnixStream::connect(path).map(drop);
    bind(flag, path, connect, |path| UnixListener::bind(path))
}

/// Opens a device to read from it whenever there is something.
///
/// # Errors
/// When it is none, or the system refuses.
pub(super) fn open_device(flag: &'static str, path: &Path) -> Result<File, PathBindError> {
    let failed = |source| PathBindError {
        flag,
        path: path.to_owned(),
        source,
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let file = File::from(opened.map_err(|error| failed(error.into()))?);
    let kind = file.metadata().map_err(failed)?.file_type();
    if kind.is_char_device() {
        Ok(file)
    } else {
        Err(failed(io::Error::other(
            "it is no device that the kernel writes to, such as /dev/kmsg",
        )))
    }
}

/// Makes a directory for sockets, if there is none.
///
/// # Errors
/// When the system refuses.
pub(super) fn make_directory(flag: &'static str, path: &Path) -> Result<(), PathBindError> {
    fs::create_dir_all(path).map_err(|source| PathBindError {
        flag,
        path: path.to_owned(),
        source,
    })
}

fn bind<S>(
    flag: &'static str,
    path: &Path,
    connect: impl Fn(&Path) -> io::Result<()>,
    make: impl Fn(&Path) -> io::Result<S>,
) -> Result<(S, PathGuard), PathBindError> {
    let bound = || {
        if is_left_behind(path, connect)? {
            fs::remove_file(path)?;
        }
        let socket = make(path)?;
        fs::set_permissions(path, Permissions::from_mode(MODE))?;
        let identity = identity(path)?;
        Ok((socket, PathGuard::over(path, identity)))
    };
    bound().map_err(|source| PathBindError {
        flag,
        path: path.to_owned(),
        source,
    })
}

/// Whether there is a socket at which nobody receives, or a link to nothing.
fn is_left_behind(path: &Path, connect: impl Fn(&Path) -> io::Result<()>) -> io::Result<bool> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        found => found?.file_type(),
    };
    if !found.is_socket() && !found.is_symlink() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    match connect(path) {
        Ok(()) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Ok(true),
            _ => Err(io::ErrorKind::AddrInUse.into()),
        },
    }
}

/// Removes a socket that nobody can be behind any more, if there is one.
///
/// # Errors
/// When there is something else, or the system refuses.
pub(super) fn remove_left_behind(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_behind_is_replaced_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        drop(UnixDatagram::bind(&path).unwrap());
        let (socket, guard) = bind_datagram("--dev-log", &path).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        sender.send_to(b"x", &path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        let error = bind_datagram("--dev-log", &path).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::AddrInUse);
        drop((socket, guard));
        assert!(!path.exists(), "it is taken away at the end");
        fs::write(&path, "mine").unwrap();
        let error = bind_datagram("--dev-log", &path).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        let missing = directory.path().join("no/log");
        let error = bind_datagram("--dev-log", &missing).unwrap_err();
        assert!(error.to_string().contains("its directory does not exist"));
    }

    #[test]
    fn one_takes_away_only_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let (_first, guard) = bind_datagram("--dev-log", &path).unwrap();
        fs::remove_file(&path).unwrap();
        let _second = bind_datagram("--dev-log", &path).unwrap();
        drop(guard);
        assert!(path.exists());
    }
}
