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

/// An upstream as it is written: `unix:PATH` or `tcp:HOST:PORT`.
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
            "'{}' is no upstream; write unix:PATH or tcp:HOST:PORT",
            self.0
        )
    }
}

impl error::Error for TargetError {}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        let wrong = || TargetError(text.to_owned());
        match text.split_once(':').ok_or_else(wrong)? {
            ("unix", path) if !path.is_empty() => Ok(Target::Unix(path.into())),
            ("tcp", address) => {
                let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
                let port = port.parse().map_err(|_| wrong())?;
                let bare = host
                    .strip_prefix('[')
                    .and_then(|host| host.strip_suffix(']'));
                let is_host = match bare {
                    Some(bare) => bare.parse::<std::net::Ipv6Addr>().is_ok(),
                    None => !host.is_empty() && !host.contains([':', '[', ']']),
                };
                if !is_host || port == 0 {
                    return Err(wrong());
                }
                Ok(Target::Tcp(bare.unwrap_or(host).to_owned(), port))
            }
            _ => Err(wrong()),
        }
    }
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
        ];
        for text in wrong {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
