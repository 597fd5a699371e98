//! Senders that go away without reading their answer: usual clients of GELF over HTTP do so with
//! every message.
//!
//! A connection whose peer has gone is given up with the request that is in hand, so that queries
//! nobody reads end. Of these requests the end is not seen before their answer is ready.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::router::GELF_PATH;

/// The mark of a connection that a request is in hand, whose sender may be gone.
#[derive(Clone, Default)]
pub(super) struct UnreadFlag(Arc<AtomicBool>);

/// The time from a request to its answer.
pub(super) struct InHand(UnreadFlag);

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

impl UnreadFlag {
    /// Notes that a request came.
    pub(super) fn begin<B>(&self, request: &Request<B>) -> InHand {
        let is_unread = request.uri().path() == GELF_PATH;
        self.0.store(is_unread, Ordering::Relaxed);
        InHand(self.clone())
    }

    /// The stream of the connection.
    pub(super) fn over<I>(&self, stream: I) -> UnreadStream<I> {
        UnreadStream {
            stream,
            unread: self.clone(),
        }
    }
}

/// A stream whose end is not seen while such a request is in hand.
pub(super) struct UnreadStream<I> {
    stream: I,
    unread: UnreadFlag,
}

impl<I: AsyncRead + Unpin> AsyncRead for UnreadStream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let is_over = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        // The answer wakes the connection, which reads again then.
        if is_over && self.unread.0.load(Ordering::Relaxed) {
            Poll::Pending
        } else {
            read
        }
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for UnreadStream<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
