//! How the commands ask a server: HTTP, one request at a time, answers as lines of JSON.
//!
//! Invariants: an answer is read as it arrives and never held as a whole; closing it early closes
//! the connection, which cancels the work at the server; an answer without its trailer is broken
//! off and never taken for a complete one.

mod access;
mod address;
mod answer;
mod error;
pub mod exact;
mod explain;
mod resolve;
mod trust;

use std::time::Duration;

pub use access::{Access, Credentials, TOKEN_VARIABLE};
pub use address::{Address, HostPort, encode};
pub use answer::{Answer, Hint, Item, Progress, Trailer};
pub use error::{ClientError, describe};
pub use explain::{explain, tls_error_of_request};
pub use resolve::agent_of;

/// The server that is asked when none is named.
pub const ADDRESS_DEFAULT: &str = "http://127.0.0.1:7650";

/// How long a server may take to accept a connection; one that needs longer is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A longer URL is too long for some proxies; its parameters go into a body.
const URL_BYTES_MAX: usize = 8 << 10;

/// The longest error message that is read from a server.
const ERROR_BYTES_MAX: u64 = 64 << 10;

/// The header that names a batch, so that it can be sent again without being there twice.
pub const BATCH_HEADER: &str = "logpond-batch";

/// The header of an answer that says how busy the server is: `green`, `yellow` or `red`.
pub const LOAD_HEADER: &str = "logpond-load";

/// Parameters of a request.
pub type Parameters = Vec<(&'static str, String)>;

/// The agent that requests go through; `answer_timeout` bounds the wait for the head of an answer,
/// and `access` is shown with each.
pub fn agent(answer_timeout: Option<Duration>, access: &Access) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder();
    if let Some(tls) = access.tls() {
        config = config.tls_config(tls);
    }
    let config = config
        .http_status_as_error(false)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(answer_timeout)
        .timeout_recv_body(answer_timeout)
        .timeout_send_body(answer_timeout)
        .max_redirects(0)
        // The server is this machine or a neighbour: a proxy for the web must not get the logs.
        .proxy(None)
        .user_agent(concat!("logpond/", env!("CARGO_PKG_VERSION")))
        .middleware(access.clone())
        .build();
    agent_of(config)
}

/// A server to ask.
pub struct Client {
    agent: ureq::Agent,
    address: Address,
}

impl Client {
    /// A client of the server at this address, which is shown `access`.
    pub fn new(address: Address, access: &Access) -> Client {
        Client {
            agent: agent(None, access),
            address,
        }
    }

    /// The same, with a bound for the time of each answer.
    pub fn within(address: Address, access: &Access, answer_timeout: Duration) -> Client {
        Client {
            agent: agent(Some(answer_timeout), access),
            address,
        }
    }

    /// The address it asks.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Asks a question, in the URL if it is short; fails unless the server answers with success.
    pub fn get(&self, path: &str, parameters: &Parameters) -> Result<Answer, ClientError> {
        let url = self.address.url(path, parameters);
        if let Some((url, form)) = url.split_once('?').filter(|_| url.len() > URL_BYTES_MAX) {
            let request = self.agent.post(url);
            let request = request.header("content-type", "application/x-www-form-urlencoded");
            return self.answer(request.send(form));
        }
        self.answer(self.agent.get(url).call())
    }

    /// Asks as [`Client::get`] does, with parameters whose names are not known beforehand.
    pub fn ask(&self, path: &str, parameters: &[(String, String)]) -> Result<Answer, ClientError> {
        let mut form = String::new();
        for (name, value) in parameters {
            encode(name.as_bytes(), &mut form);
            form.push('=');
            encode(value.as_bytes(), &mut form);
            form.push('&');
        }
        let url = self.address.url(path, &Parameters::new());
        let request = self.agent.post(url);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        self.answer(request.send(form))
    }

    /// Puts something in the place of what is there; fails unless the server answers with success.
    pub fn put(&self, path: &str, body: &serde_json::Value) -> Result<Answer, ClientError> {
        let url = self.address.url(path, &Parameters::new());
        let request = self
            .agent
            .put(url)
            .header("content-type", "application/json");
        self.answer(request.send(body.to_string()))
    }

    /// Removes what is there; fails unless the server answers with success.
    pub fn delete(&self, path: &str) -> Result<Answer, ClientError> {
        let url = self.address.url(path, &Parameters::new());
        self.answer(self.agent.delete(url).call())
    }

    /// Tells the server to do something; fails unless the server answers with success.
    pub fn post(&self, path: &str, parameters: &Parameters) -> Result<Answer, ClientError> {
        let url = self.address.url(path, parameters);
        self.answer(self.agent.post(url).send_empty())
    }

    /// Sends records; fails unless the server answers with success.
    pub fn push(
        &self,
        path: &str,
        parameters: &Parameters,
        content_type: &str,
        body: &[u8],
    ) -> Result<Answer, ClientError> {
        let url = self.address.url(path, parameters);
        let request = self.agent.post(url).content_type(content_type);
        // Uploads answer with text unless an object is asked for.
        self.answer(request.header("accept", "application/json").send(body))
    }

    fn answer(
        &self,
        response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Answer, ClientError> {
        let response = response.map_err(|source| ClientError::no_answer(&self.address, source))?;
        let status = response.status().as_u16();
        let body = response.into_body();
        if matches!(status, 200..=202) {
            return Ok(Answer::new(Box::new(body.into_reader())));
        }
        Err(ClientError::refused(status, &read_error(body)))
    }
}

/// Reads the text of a refusal, as far as it is short; what cannot be read is left out.
pub fn read_error(body: ureq::Body) -> Vec<u8> {
    use std::io::Read;
    let mut text = Vec::new();
    let _ = body
        .into_reader()
        .take(ERROR_BYTES_MAX)
        .read_to_end(&mut text);
    text
}

#[cfg(test)]
mod tests;
