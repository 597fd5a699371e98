//! The connection below a stream of records, plain or encrypted.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A connection.
pub(super) enum Wire {
    Plain(TcpStream),
    /// With what the client is called, if it showed a certificate.
    Tls(Box<TlsStream<TcpStream>>, Option<Box<str>>),
}

impl Wire {
    /// What the client is called that showed a certificate.
    pub(super) fn client(&self) -> Option<&str> {
        match self {
            Wire::Plain(_) => None,
            Wire::Tls(_, client) => client.as_deref(),
        }
    }

    /// Reads what is there already; [`io::ErrorKind::WouldBlock`] if nothing is.
    pub(super) fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stream = match self {
            Wire::Plain(stream) => return stream.try_read(buffer),
            Wire::Tls(stream, _) => stream,
        };
        let mut buffer = ReadBuf::new(buffer);
        // Nobody needs to be woken: who waits does so by `readable`.
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(stream).poll_read(&mut context, &mut buffer) {
            Poll::Ready(read) => read.map(|()| buffer.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Waits until bytes come, after `try_read` has said that there are none.
    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Wire::Plain(stream) => stream.readable().await,
            Wire::Tls(stream, _) => stream.get_ref().0.readable().await,
        }
    }

    /// Waits for bytes; none are the end.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.read(buffer).await,
            Wire::Tls(stream, _) => stream.read(buffer).await,
        }
    }

    pub(super) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Wire::Plain(stream) => stream.write_all(bytes).await,
            Wire::Tls(stream, _) => {
                stream.write_all(bytes).await?;
                // What the kernel did not take yet waits in the session.
                stream.flush().await
            }
        }
    }

    /// Ends it in order; of TLS by a last word (`close_notify`).
    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Wire::Plain(stream) => stream.shutdown().await,
            Wire::Tls(stream, _) => stream.shutdown().await,
        }
    }
}
