//! Requests to servers that are repeated until they are answered.
//!
//! Invariants: an answer has at most [`ANSWER_BYTES_MAX`] bytes; a request is repeated after statuses
//! that may pass and after failures of connections, and never after a refusal; the wait is as long as the
//! server asks for, up to [`WAIT_ASKED_MAX`].

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use logpond_client::{Access, Address, ClientError, Parameters, agent, describe};
use logpond_host::terminal::note;
use ureq::RequestBuilder;
use ureq::http::Response;

use super::error::PullError;
use crate::forward::{Pause, asked_wait};

/// The longest answer that is read: a page of long lines. Larger pages are asked for in parts.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// How long a server may take to answer: queries over old data are slow.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// The first wait after a failure, and the longest that the server did not ask for.
const WAIT_FIRST: Duration = Duration::from_millis(100);
const WAIT_LONGEST: Duration = Duration::from_secs(10);

/// The longest wait that a server may ask for.
const WAIT_ASKED_MAX: Duration = Duration::from_secs(600);

/// How often a failure that lasts is reported.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Characters of a refusal that are shown.
const MESSAGE_CHARS_MAX: usize = 500;

/// The method of a request, with its body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Method<'a> {
    Get,
    Post(&'a [u8]),
    Delete(&'a [u8]),
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) method: Method<'a>,
    /// The path with its parameters.
    pub(super) path: &'a str,
    pub(super) headers: &'a [(&'static str, &'static str)],
    /// Statuses that are handed back although they may pass.
    pub(super) returned: &'a [u16],
}

/// An answer.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// True if the answer is longer than the limit. Its body is cut then.
    pub(super) is_too_long: bool,
}

impl Reply {
    /// The reason in a refusal: of Elasticsearch, of Logpond, or the text.
    pub(super) fn message(&self) -> String {
        let value = serde_json::from_slice::<serde_json::Value>(&self.body).unwrap_or_default();
        let paths = [
            "/error/root_cause/0/reason",
            "/error/reason",
            "/error/message",
            "/error",
            "/message",
        ];
        let mut named = paths
            .iter()
            .filter_map(|path| value.pointer(path)?.as_str());
        let text = match named.next() {
            Some(text) => text.to_owned(),
            None => String::from_utf8_lossy(&self.body).trim().to_owned(),
        };
        text.chars().take(MESSAGE_CHARS_MAX).collect()
    }
}

/// How one attempt ended.
enum Attempt {
    Answered(Reply),
    Failed { reason: String, wait: Duration },
}

/// Sends requests to the first server that answers.
pub(super) struct Exchange {
    agent: ureq::Agent,
    addresses: Vec<Address>,
    current: usize,
    give_up_after: Option<Duration>,
    pause: Pause,
}

impl Exchange {
    /// Requests to these servers, of which there is at least one.
    pub(super) fn new(
        addresses: Vec<Address>,
        access: &Access,
        give_up_after: Option<Duration>,
        stop: Arc<AtomicBool>,
    ) -> Exchange {
        Exchange {
            agent: agent(Some(ANSWER_TIMEOUT), access),
            addresses,
            current: 0,
            give_up_after,
            pause: Pause(stop),
        }
    }

    /// The server that is asked now.
    pub(super) fn address(&self) -> String {
        let address = self.addresses.get(self.current);
        address.map(Address::to_string).unwrap_or_default()
    }

    /// Repeats a request until it is answered.
    ///
    /// # Errors
    /// When no server answered for too long, or the process is told to stop.
    pub(super) fn send(&mut self, call: Call<'_>) -> Result<Reply, PullError> {
        self.send_until(call, |_| true)
    }

    /// Repeats a request until an answer is what is expected of such a server.
    ///
    /// # Errors
    /// As [`Exchange::send`].
    pub(super) fn send_until(
        &mut self,
        call: Call<'_>,
        is_expected: impl Fn(&Reply) -> bool,
    ) -> Result<Reply, PullError> {
        let (started, mut wait) = (Instant::now(), WAIT_FIRST);
        let mut reported: Option<Instant> = None;
        loop {
            if self.pause.is_stopped() {
                return Err(PullError::Stopped);
            }
            let address = self.address();
            let (last, asked) = match self.attempt(call) {
                Attempt::Answered(reply) if is_expected(&reply) => {
                    if reported.is_some() {
                        note(&format!("logpond: {address} answers again"));
                    }
                    return Ok(reply);
                }
                Attempt::Answered(reply) => {
                    let error = ClientError::refused(reply.status, &reply.body);
                    (format!("{address}: {error}"), Duration::ZERO)
                }
                Attempt::Failed { reason, wait } => (format!("{address}: {reason}"), wait),
            };
            if let Some(after) = self.give_up_after
                && started.elapsed() >= after
            {
                return Err(PullError::GaveUp { after, last });
            }
            if reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
                note(&format!("logpond: {last}; trying again"));
                reported = Some(Instant::now());
            }
            self.current = (self.current + 1) % self.addresses.len().max(1);
            self.pause(wait.max(asked))?;
            wait = (wait * 2).min(WAIT_LONGEST);
        }
    }

    /// Sends a request that must not be repeated; `None` is a failure that may pass.
    ///
    /// # Errors
    /// When the process is told to stop.
    pub(super) fn send_once(&self, call: Call<'_>) -> Result<Option<Reply>, PullError> {
        match self.attempt(call) {
            Attempt::Answered(reply) => Ok(Some(reply)),
            Attempt::Failed { reason, wait } => {
                note(&format!("logpond: {}: {reason}", self.address()));
                self.pause(wait)?;
                Ok(None)
            }
        }
    }

    fn attempt(&self, call: Call<'_>) -> Attempt {
        let Some(address) = self.addresses.get(self.current) else {
            let reason = "there is no address".to_owned();
            return Attempt::Failed {
                reason,
                wait: Duration::ZERO,
            };
        };
        let url = address.url(call.path, &Parameters::new());
        let response = match self.request(&url, call) {
            Ok(response) => response,
            Err(error) => {
                let reason = describe(&error);
                return Attempt::Failed {
                    reason,
                    wait: Duration::ZERO,
                };
            }
        };
        let status = response.status().as_u16();
        let wait = asked_wait(&response, WAIT_ASKED_MAX).unwrap_or_default();
        let reply = match read(response, status) {
            Ok(reply) => reply,
            Err(error) => {
                let reason = format!("the answer broke off: {error}");
                return Attempt::Failed { reason, wait };
            }
        };
        let may_pass = matches!(status, 408 | 421 | 425 | 429 | 500..);
        if may_pass && !call.returned.contains(&status) {
            let reason = format!("status {status}: {}", reply.message());
            return Attempt::Failed { reason, wait };
        }
        Attempt::Answered(reply)
    }

    fn request(&self, url: &str, call: Call<'_>) -> Result<Response<ureq::Body>, ureq::Error> {
        match call.method {
            Method::Get => with_headers(self.agent.get(url), call.headers).call(),
            Method::Post(body) => with_headers(self.agent.post(url), call.headers).send(body),
            Method::Delete(body) => with_headers(self.agent.delete(url), call.headers)
                .force_send_body()
                .send(body),
        }
    }

    /// Waits.
    ///
    /// # Errors
    /// When the process is told to stop.
    fn pause(&self, time: Duration) -> Result<(), PullError> {
        if self.pause.wait(time) {
            Ok(())
        } else {
            Err(PullError::Stopped)
        }
    }
}

fn with_headers<B>(
    request: RequestBuilder<B>,
    headers: &[(&'static str, &'static str)],
) -> RequestBuilder<B> {
    headers.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    })
}

fn read(response: Response<ureq::Body>, status: u16) -> std::io::Result<Reply> {
    let mut body = Vec::new();
    let reader = response.into_body().into_reader();
    let read = reader.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut body)?;
    Ok(Reply {
        status,
        body,
        is_too_long: read as u64 > ANSWER_BYTES_MAX,
    })
}
