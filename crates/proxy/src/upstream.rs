//! Where connections go.

use std::cell::Cell;
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use std::{error, fmt, io};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// How long an upstream that did not take a connection is tried only after all others.
const EJECTED_TIME: Duration = Duration::from_secs(10);

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
    async fn connect(&self) -> io::Result<Stream> {
        match self {
            Target::Unix(path) => UnixStream::connect(path).await.map(Stream::Unix),
            Target::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

/// The upstreams, and which of them failed lately; all workers have the same.
#[derive(Debug)]
pub(crate) struct Upstreams {
    all: Vec<Upstream>,
    since: Instant,
}

#[derive(Debug)]
struct Upstream {
    target: Target,
    /// As records have it.
    name: Arc<str>,
    /// Until when it is tried last, in milliseconds since `since`.
    ejected_until_ms: AtomicU64,
}

impl Upstreams {
    pub(crate) fn new(targets: Vec<Target>) -> Upstreams {
        let upstream = |target: Target| Upstream {
            name: target.to_string().into(),
            target,
            ejected_until_ms: AtomicU64::new(0),
        };
        Upstreams {
            all: targets.into_iter().map(upstream).collect(),
            since: Instant::now(),
        }
    }

    /// Connects to one of them: they take turns, and those that failed lately come last.
    ///
    /// # Errors
    /// What the last one said that was tried; its name is given, too.
    pub(crate) async fn connect(
        &self,
        turn: &Cell<usize>,
        time: Duration,
    ) -> Result<(Stream, Arc<str>), (io::Error, Arc<str>)> {
        let mut failed = None;
        for upstream in self.in_turn(turn.replace(turn.get().wrapping_add(1))) {
            let connected = tokio::time::timeout(time, upstream.target.connect()).await;
            match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => {
                    upstream.ejected_until_ms.store(0, Ordering::Relaxed);
                    return Ok((stream, upstream.name.clone()));
                }
                Err(error) => {
                    let until = self.now_ms() + millis(EJECTED_TIME);
                    upstream.ejected_until_ms.store(until, Ordering::Relaxed);
                    failed = Some((error, upstream.name.clone()));
                }
            }
        }
        Err(failed.unwrap_or_else(|| (io::ErrorKind::NotFound.into(), "".into())))
    }

    fn in_turn(&self, turn: usize) -> impl Iterator<Item = &Upstream> {
        let now = self.now_ms();
        let count = self.all.len();
        let in_turn = move || (0..count).map(move |at| &self.all[(turn % count + at) % count]);
        let is_good =
            move |upstream: &&Upstream| upstream.ejected_until_ms.load(Ordering::Relaxed) <= now;
        let good: Vec<&Upstream> = in_turn().filter(is_good).collect();
        let bad: Vec<&Upstream> = in_turn().filter(|one| !is_good(one)).collect();
        good.into_iter().chain(bad)
    }

    fn now_ms(&self) -> u64 {
        millis(self.since.elapsed())
    }
}

fn millis(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}

/// A connection to an upstream.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Has the upstream see a reset rather than an end. Unix sockets have none: there, only an
    /// upstream that still writes sees a difference.
    pub(crate) fn reset(&self) {
        if let Stream::Tcp(stream) = self {
            let _ = stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
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

    #[test]
    fn upstreams_take_turns_and_failed_ones_come_last() {
        let targets = ["tcp:a:1", "tcp:b:1", "tcp:c:1"].map(|text| text.parse().unwrap());
        let upstreams = Upstreams::new(targets.into());
        let order = |turn| {
            let names = upstreams.in_turn(turn).map(|one| &one.name[4..5]);
            names.collect::<String>()
        };
        assert_eq!(
            [order(0), order(1), order(2), order(3)],
            ["abc", "bca", "cab", "abc"]
        );
        upstreams.all[1]
            .ejected_until_ms
            .store(u64::MAX, Ordering::Relaxed);
        assert_eq!([order(0), order(1), order(2)], ["acb", "cab", "cab"]);
    }
}
