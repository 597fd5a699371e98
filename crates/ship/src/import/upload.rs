//! Sends entries of journals to a server, again and again until it has them.
//!
//! Invariants: what was taken is durable there; what may have been taken is sent again only if the
//! server knows all of it again, by the cursors of its entries. An answer that is not of an upload ends it only
//! before a server has taken a body, as in `forward`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::Deserialize;

use logpond_client::{Access, Address, ClientError, agent, describe, encode, read_error};
use logpond_host::terminal::note;
use logpond_render::quantity;

use crate::forward::{Pause, asked_wait};

/// How long a server may take to answer: a disk that syncs slower than this is broken.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The first wait after no server took a body, and the longest.
const WAIT_FIRST: Duration = Duration::from_millis(100);
const WAIT_LONGEST: Duration = Duration::from_secs(10);

/// How often trouble that goes on is reported.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The level of zstd: most of what there is to win, for little time.
const COMPRESSION_LEVEL: i32 = 1;

/// Where entries go.
#[derive(Clone, Debug)]
pub struct Target {
    /// Servers; one takes everything until it fails.
    pub addresses: Vec<Address>,
    /// What is shown to them.
    pub access: Access,
    /// Fields for all records.
    pub labels: Vec<(String, String)>,
    /// After so long without a server that takes entries it is over; `None` is never.
    pub give_up_after: Option<Duration>,
}

/// Some entries.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// In export format.
    pub(super) bytes: Vec<u8>,
    /// How many.
    pub(super) entries: u64,
    /// How many of them no server knows again.
    pub(super) unknowable: u64,
}

/// The answer of a server to a body.
#[derive(Debug, Default, Deserialize)]
pub(super) struct UploadAnswer {
    /// Entries that it has taken now.
    pub(super) accepted: u64,
    /// Entries that it had.
    pub(super) known: u64,
    /// Entries that it will never take, as far as it names them.
    #[serde(default)]
    pub(super) rejected: Vec<RejectedEntry>,
    /// How many there are.
    pub(super) rejected_total: u64,
}

/// An entry that is not taken.
#[derive(Debug, Deserialize)]
pub(super) struct RejectedEntry {
    /// Its number in the body, from 1.
    pub(super) entry: u64,
    /// Why.
    pub(super) reason: String,
}

/// Why entries were not taken.
#[derive(Debug)]
pub enum UploadError {
    /// A server refuses them, and would again.
    Refused {
        /// The server.
        address: String,
        /// What it says.
        error: Box<ClientError>,
    },
    /// No server took them for too long.
    GaveUp {
        /// How long.
        after: Duration,
        /// What the last one said.
        last: String,
    },
    /// A server may have taken some that it would not know again.
    Unsure {
        /// How many.
        entries: u64,
        /// What happened.
        last: String,
    },
    /// The process was told to stop.
    Stopped,
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UploadError::Refused { address, error } => write!(f, "{address} refuses: {error}"),
            UploadError::GaveUp { after, last } => write!(
                f,
                "gave up after {} without a server that takes entries: {last}",
                quantity::span(*after)
            ),
            UploadError::Unsure { entries, last } => write!(
                f,
                "{last}; up to {entries} entries without a cursor may have been taken, and are not \
                 sent again since they could then be there twice"
            ),
            UploadError::Stopped => f.write_str("stopped before everything was sent"),
        }
    }
}

impl std::error::Error for UploadError {}

/// How one attempt ended.
enum Attempt {
    Taken(UploadAnswer),
    Refused(ClientError),
    /// The answer is not about the body.
    Foreign {
        error: ClientError,
        may_be_there: bool,
    },
    Failed {
        reason: String,
        may_be_there: bool,
        wait: Duration,
    },
}

/// Sends entries.
pub(super) struct Uploader {
    agent: ureq::Agent,
    target: Target,
    current: usize,
    /// True once a server has taken a body.
    has_taken: bool,
    pause: Pause,
}

impl Uploader {
    pub(super) fn new(target: Target, stop: Arc<AtomicBool>) -> Uploader {
        Uploader {
            agent: agent(Some(ANSWER_TIMEOUT), &target.access),
            target,
            current: 0,
            has_taken: false,
            pause: Pause(stop),
        }
    }

    /// The server that took the last body.
    pub(super) fn address(&self) -> String {
        self.target.addresses[self.current].to_string()
    }

    /// Sends a body until a server has it durably, or refuses it.
    pub(super) fn send(&mut self, body: &Body) -> Result<UploadAnswer, UploadError> {
        let packed = zstd::bulk::compress(&body.bytes, COMPRESSION_LEVEL);
        let packed = packed.map_err(|error| UploadError::Unsure {
            entries: 0,
            last: format!("entries cannot be compressed: {error}"),
        })?;
        let (started, mut wait) = (Instant::now(), WAIT_FIRST);
        let mut reported: Option<Instant> = None;
        loop {
            let address = self.address();
            let failed = match self.attempt(&packed) {
                Attempt::Taken(taken) => {
                    self.has_taken = true;
                    if reported.is_some() {
                        note(&format!("logpond: {address} takes entries again"));
                    }
                    return Ok(taken);
                }
                Attempt::Foreign {
                    error,
                    may_be_there,
                } if self.has_taken => (error.to_string(), may_be_there, Duration::ZERO),
                Attempt::Refused(error) | Attempt::Foreign { error, .. } => {
                    let error = Box::new(error);
                    return Err(UploadError::Refused { address, error });
                }
                Attempt::Failed {
                    reason,
                    may_be_there,
                    wait,
                } => (reason, may_be_there, wait),
            };
            let (reason, may_be_there, asked) = failed;
            let last = format!("{address}: {reason}");
            if may_be_there && body.unknowable > 0 {
                let entries = body.unknowable;
                return Err(UploadError::Unsure { entries, last });
            }
            if let Some(after) = self.target.give_up_after
                && started.elapsed() >= after
            {
                return Err(UploadError::GaveUp { after, last });
            }
            if reported.is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
                note(&format!("logpond: {last}; trying again"));
                reported = Some(Instant::now());
            }
            self.current = (self.current + 1) % self.target.addresses.len();
            if !self.pause.wait(wait.max(asked)) {
                return Err(UploadError::Stopped);
            }
            wait = (wait * 2).min(WAIT_LONGEST);
        }
    }

    fn attempt(&self, packed: &[u8]) -> Attempt {
        let mut url = self.target.addresses[self.current].url("/upload", &Vec::new());
        for (at, (name, value)) in self.target.labels.iter().enumerate() {
            url.push_str(if at == 0 { "?label=" } else { "&label=" });
            encode(format!("{name}={value}").as_bytes(), &mut url);
        }
        let request = self
            .agent
            .post(url)
            .header("accept", "application/json")
            .header("content-encoding", "zstd")
            .content_type("application/vnd.fdo.journal");
        let failed = |reason, may_be_there, wait| Attempt::Failed {
            reason,
            may_be_there,
            wait,
        };
        let response = match request.send(packed) {
            Ok(response) => response,
            Err(error) => {
                let is_connected = !matches!(
                    error,
                    ureq::Error::ConnectionFailed
                        | ureq::Error::HostNotFound
                        | ureq::Error::Timeout(ureq::Timeout::Connect)
                );
                return failed(describe(&error), is_connected, Duration::ZERO);
            }
        };
        let status = response.status().as_u16();
        // Each answer to an upload names the encodings of the next one.
        let is_own = response.headers().contains_key("accept-encoding");
        let wait = asked_wait(&response, WAIT_LONGEST).unwrap_or_default();
        match status {
            202 => match read_answer(response.into_body()) {
                Ok(taken) => Attempt::Taken(taken),
                Err(error) => failed(error.to_string(), true, wait),
            },
            408 | 421 | 425 | 429 | 500.. => {
                let error = ClientError::refused(status, &read_error(response.into_body()));
                failed(error.to_string(), status != 421, wait)
            }
            _ => {
                let error = ClientError::refused(status, &read_error(response.into_body()));
                if is_own && !matches!(status, 401 | 403) || status == 413 {
                    return Attempt::Refused(error);
                }
                let may_be_there = status < 300;
                Attempt::Foreign {
                    error,
                    may_be_there,
                }
            }
        }
    }
}

fn read_answer(body: ureq::Body) -> std::io::Result<UploadAnswer> {
    use std::io::Read;
    let mut text = Vec::new();
    body.into_reader()
        .take(ANSWER_BYTES_MAX)
        .read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::thread::JoinHandle;

    use super::*;
    use crate::scripted::scripted;

    const TAKEN: &str = r#"{"accepted":1,"known":0,"rejected_total":0}"#;

    /// Status and headers of a refusal by a server of ours.
    const NO_TOKEN: &str = "401 X\r\naccept-encoding: zstd";

    /// A server that gives these answers to uploads: status with headers, body.
    fn server(answers: &[(&'static str, &str)]) -> (Address, JoinHandle<Vec<String>>) {
        let answers = answers.iter();
        scripted(
            answers
                .map(|(status, body)| ("POST ", *status, (*body).to_owned()))
                .collect(),
        )
    }

    fn uploader(address: Address) -> Uploader {
        let target = Target {
            addresses: vec![address],
            access: Access::default(),
            labels: Vec::new(),
            give_up_after: None,
        };
        Uploader::new(target, Arc::default())
    }

    fn body() -> Body {
        Body {
            bytes: b"MESSAGE=x\n\n".to_vec(),
            entries: 1,
            unknowable: 0,
        }
    }

    #[test]
    fn a_foreign_answer_is_final_before_anything_was_taken() {
        let answers = [
            ("404 X", "<html>"),
            ("200 X", "<html>"),
            (NO_TOKEN, "no token"),
        ];
        for answer in answers {
            let (address, serving) = server(&[answer]);
            let error = uploader(address).send(&body()).unwrap_err();
            assert!(matches!(error, UploadError::Refused { .. }), "{error}");
            assert_eq!(serving.join().unwrap().len(), 1);
        }
    }

    #[test]
    fn a_foreign_answer_is_an_outage_once_something_was_taken() {
        let (address, serving) = server(&[
            ("202 X", TAKEN),
            ("404 X", "<html>"),
            ("200 X", "<html>"),
            (NO_TOKEN, "no token"),
            ("202 X", TAKEN),
        ]);
        let mut uploader = uploader(address);
        for _ in 0..2 {
            assert_eq!(uploader.send(&body()).unwrap().accepted, 1);
        }
        assert_eq!(serving.join().unwrap().len(), 5);
    }

    #[test]
    fn a_refusal_of_entries_is_final_whatever_was_taken() {
        let (address, serving) = server(&[
            ("202 X", TAKEN),
            ("400 X\r\naccept-encoding: zstd", "no journal"),
        ]);
        let mut uploader = uploader(address);
        uploader.send(&body()).unwrap();
        let error = uploader.send(&body()).unwrap_err();
        assert!(
            error.to_string().ends_with("refuses: no journal"),
            "{error}"
        );
        serving.join().unwrap();
    }
}
