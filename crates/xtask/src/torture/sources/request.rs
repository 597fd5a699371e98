//! Sessions over HTTP: a request for each batch.

use std::io;

use super::{ANSWER_TIMEOUT, CONNECT_TIMEOUT, Record, Reply, Session};
use crate::e2e::http::Client;
use crate::run::Outcome;

/// A form of requests.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) target: &'static str,
    pub(super) headers: &'static [(&'static str, &'static str)],
    pub(super) body: fn(&[Record]) -> String,
    /// True if a response acknowledges all records.
    pub(super) is_acknowledged: fn(u16, &str) -> bool,
}

/// A connection, and the form of its requests.
struct HttpSession {
    client: Client,
    request: &'static Request,
}

/// Connects to an address, for requests of this form.
pub(super) fn open(address: &str, request: &'static Request) -> io::Result<Box<dyn Session>> {
    let client = Client::connect_within(address, CONNECT_TIMEOUT, ANSWER_TIMEOUT)?;
    Ok(Box::new(HttpSession { client, request }))
}

impl Session for HttpSession {
    fn send(&mut self, records: &[Record]) -> Outcome<Reply> {
        let Request {
            target,
            headers,
            body,
            is_acknowledged,
        } = self.request;
        let answer = self
            .client
            .send("POST", target, headers, body(records).as_bytes());
        let answer = answer.and_then(|answer| Ok((answer.status, answer.text()?)));
        let Ok((status, text)) = answer else {
            return Ok(Reply::UNKNOWN);
        };
        match status {
            _ if is_acknowledged(status, &text) => Ok(Reply::acknowledged(records.len())),
            429 | 503 | 507 => Ok(Reply::REFUSED),
            _ => Err(format!("{target} was answered by {status}: {text}")),
        }
    }
}
