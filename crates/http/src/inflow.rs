//! Bodies of requests, of which nobody may want the rest.
//!
//! A refusal often comes before the body was read. A client that goes on sending sees its connection
//! break then, or its stream of HTTP/2 reset, and never reads the refusal: many read nothing before they
//! have sent everything. So the rest is read and thrown away, within bounds, while the answer is under
//! way. Behind a bound a stream ends with `NO_ERROR` (RFC 9113, section 8.1), a connection of HTTP/1.1 is
//! closed.
//!
//! An answer of HTTP/2 that ends with its headers, as a failure of gRPC does, or whose request had no need of a
//! body, is missed by clients that are still sending (curl 7.88): such an answer waits for the end of the rest,
//! within bounds.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::EXPECT;
use hyper::{Request, Version};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use logpond_host::shutdown::Shutdown;

/// How much of a body is thrown away: twice the longest that is taken, so that who sends a little too
/// much is told, and nobody keeps the server busy.
const DISCARDED_BYTES_MAX: usize = 64 << 20;

/// How long that may take: some clients need half a minute to have their own bytes ready.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(120);

/// How long an answer waits for the rest of a body.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long a stream stays open behind the bound, where its answer has waited for that: the answer is under way then,
/// and clients that are still sending go on until their stream ends (curl 7.88).
const STREAM_END_DELAY: Duration = Duration::from_secs(1);

/// The end of what is read of a body.
pub(super) struct End(oneshot::Receiver<()>);

impl End {
    /// Waits until nothing more of the body is read, for ten seconds at most.
    pub(super) async fn wait(self) {
        // The sender is dropped at the end; nothing is ever sent.
        let _ = tokio::time::timeout(ANSWER_WAIT_MAX, self.0).await;
    }
}

/// The body of a request.
#[derive(Debug)]
pub struct Inflow {
    /// Nothing once it is over.
    body: Option<Incoming>,
    /// Whether the rest is read if nobody wants it.
    is_discarded: bool,
    /// Whether other requests of the connection go on when this one is broken.
    is_stream: bool,
    /// Dropped when nothing more is read.
    ended: Option<oneshot::Sender<()>>,
    shutdown: Shutdown,
}

impl Inflow {
    /// A request with such a body.
    pub(super) fn of(request: Request<Incoming>, shutdown: &Shutdown) -> Request<Inflow> {
        // Who waits for a word before the body has not sent it yet; reading would be that word.
        let is_discarded = !request.headers().contains_key(EXPECT);
        let is_stream = request.version() == Version::HTTP_2;
        request.map(|body| Inflow {
            body: Some(body),
            is_discarded,
            is_stream,
            ended: None,
            shutdown: shutdown.clone(),
        })
    }

    /// The body of a request that has none.
    pub(super) fn empty(shutdown: &Shutdown) -> Inflow {
        Inflow {
            body: None,
            is_discarded: false,
            is_stream: false,
            ended: None,
            shutdown: shutdown.clone(),
        }
    }

    /// The end of what is read of it, by whoever reads it.
    pub(super) fn end(&mut self) -> End {
        let (ended, end) = oneshot::channel();
        self.ended = Some(ended);
        End(end)
    }

    /// Nobody waits for the rest, which does not come: the connection ends with the answer.
    pub(super) fn give_up(&mut self) {
        // A stream that ends before its answer takes it along, and holds up no other.
        self.is_discarded &= self.is_stream;
    }
}

impl Body for Inflow {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or(SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for Inflow {
    fn drop(&mut self) {
        let rest = self.body.take().filter(|rest| !rest.is_end_stream());
        if let Some(rest) = rest.filter(|_| self.is_discarded)
            // Without a runtime it ends, and the connection with it.
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(discard(rest, self.ended.take(), self.shutdown.clone()));
        }
    }
}

async fn discard(
    mut rest: Incoming,
    mut ended: Option<oneshot::Sender<()>>,
    mut shutdown: Shutdown,
) {
    let reading = async {
        let mut discarded = 0;
        while discarded < DISCARDED_BYTES_MAX {
            let frame = std::future::poll_fn(|context| Pin::new(&mut rest).poll_frame(context));
            match frame.await {
                Some(Ok(frame)) => discarded += frame.data_ref().map_or(0, Bytes::len),
                _ => return,
            }
        }
        // The client may still read the answer.
        if ended.take().is_some() {
            tokio::time::sleep(STREAM_END_DELAY).await;
        } else {
            std::future::pending().await
        }
    };
    tokio::select! {
        () = reading => {}
        () = tokio::time::sleep(DISCARD_TIME_MAX) => {}
        () = shutdown.stopping() => {}
    }
}
