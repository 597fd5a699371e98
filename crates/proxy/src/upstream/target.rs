//! An upstream as it is written.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use std::{error, fmt, io};

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::sleep;

use super::Stream;

/// An upstream as it is written: `unix:PATH`, or `HOST:PORT` with or without `tcp:` before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A socket of this machine.
    Unix(PathBuf),
    /// A host's name or address, and a port.
    Tcp(String, u16),
}

/// What was written is no upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetError(String);

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no upstream; write HOST:PORT, tcp:HOST:PORT or unix:PATH",
            self.0
        )
    }
}

impl error::Error for TargetError {}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        let wrong = || TargetError(text.to_owned());
        let target = match text.split_once(':') {
            Some(("unix", "")) => None,
            Some(("unix", path)) => Some(Target::Unix(path.into())),
            Some(("tcp", address)) => tcp(address),
            // As every other program takes it.
            _ => tcp(text),
        };
        target.ok_or_else(wrong)
    }
}

/// Reads `HOST:PORT`; an address of IPv6 stands in brackets.
fn tcp(address: &str) -> Option<Target> {
    let (host, port) = address.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = match bare {
        Some(bare) => bare.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && !host.contains([':', '[', ']', '/'])
                && !host.contains(char::is_whitespace)
        }
    };
    is_host.then(|| Target::Tcp(bare.unwrap_or(host).to_owned(), port))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Unix(path) => write!(f, "unix:{}", path.display()),
            Target::Tcp(host, port) if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Target::Tcp(host, port) => write!(f, "tcp:{host}:{port}"),
        }
    }
}

impl Target {
    pub(super) async fn connect(&self) -> io::Result<Stream> {
        match self {
            Target::Unix(path) => connect_unix(path).await.map(Stream::Unix),
            Target::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

/// How long to wait before a socket is tried again whose queue is full.
const QUEUE_PAUSE: Duration = Duration::from_millis(5);

/// Connects to a socket of this machine. That never waits for the other side to take the connection, so
/// that nothing is to be waited for, but for a place in its queue: there, the system knows of no
/// waiting that holds up only the caller (connect(2), EAGAIN).
async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let address = SockAddr::unix(path)?;
    loop {
        let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
        match socket.connect(&address) {
            Ok(()) => return UnixStream::from_std(OwnedFd::from(socket).into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(QUEUE_PAUSE).await,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        for text in [
            "unix:/run/app.sock",
            "tcp:app.example:80",
            "tcp:[::1]:443",
            "tcp:127.0.0.1:1",
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        for text in [
            "app.example:80",
            "[::1]:443",
            "127.0.0.1:1",
            "localhost:8080",
        ] {
            let target = text.parse::<Target>().unwrap();
            assert_eq!(target.to_string(), format!("tcp:{text}"));
        }
        let wrong = [
            "",
            "unix:",
            "/run/app.sock",
            "tcp:80",
            "tcp::80",
            "tcp:::1:80",
            "tcp:a:0",
            "tcp:a:b",
            "tcp:[a]:1",
            "http://a:80",
            "::1:80",
            "app.example",
            "app.example:",
            "a b:80",
            "a:1,b:2",
        ];
        for text in wrong {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
