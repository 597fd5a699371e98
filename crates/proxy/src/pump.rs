//! What is between the two sockets of a connection, without the sockets.
//!
//! What was read goes in, what is to be written comes out in the worker's [`Scratch`]; what could not
//! be written at once is kept here.

use std::fmt;

use rustls::pki_types::UnixTime;

use crate::Certificates;
use crate::buffer::{Buffer, PendingBytes, Scratch};
use crate::session::Session;

/// The longest part of a message of TLS that is waited for the rest of: a record has at most 18 KiB.
/// The hello of a client has two.
pub(crate) const PARTIAL_BYTES_MAX: usize = 20 << 10;

/// How much may wait for a client that sends without reading: more than one read gives.
const ANSWER_BYTES_MAX: usize = 128 << 10;

/// Why a client is not talked to any longer.
#[derive(Debug)]
pub(crate) enum PumpError {
    /// It broke the protocol.
    Tls(rustls::Error),
    /// A message of it is too long.
    TooLong,
}

impl PumpError {
    /// Whether it is about the client's certificate, or that there is none.
    pub(crate) fn is_of_certificate(&self) -> bool {
        use rustls::Error::{InvalidCertificate, NoCertificatesPresented};
        let PumpError::Tls(error) = self else {
            return false;
        };
        matches!(error, InvalidCertificate(_) | NoCertificatesPresented)
    }
}

impl fmt::Display for PumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PumpError::Tls(error) => f.write_str(&logpond_tls::explain(error)),
            PumpError::TooLong => {
                write!(
                    f,
                    "a message of TLS is longer than {PARTIAL_BYTES_MAX} bytes"
                )
            }
        }
    }
}

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Upstream,
}

/// The state between the sockets.
pub(crate) struct Pump {
    session: Session,
    /// The beginning of a message of TLS, at most [`PARTIAL_BYTES_MAX`].
    partial: Vec<u8>,
    /// Encrypted.
    to_client: PendingBytes,
    /// Decrypted.
    to_upstream: PendingBytes,
    /// Whether nothing more comes from the client.
    has_client_ended: bool,
    /// Whether it ended without having said so in TLS, as who cuts a connection makes it look.
    is_truncated: bool,
    /// Whether nothing more comes from the upstream; the client has been told.
    has_upstream_ended: bool,
    /// Whether the upstream takes nothing any more.
    is_upstream_deaf: bool,
    /// The ends of writing that were passed on.
    has_shut_client: bool,
    has_shut_upstream: bool,
    first_end: Option<Side>,
    bytes_from_client: u64,
    bytes_to_client: u64,
}

impl Pump {
    pub(crate) fn new(certificates: &Certificates) -> Result<Pump, rustls::Error> {
        Ok(Pump {
            session: Session::new(certificates)?,
            partial: Vec::new(),
            to_client: PendingBytes::default(),
            to_upstream: PendingBytes::default(),
            has_client_ended: false,
            is_truncated: false,
            has_upstream_ended: false,
            is_upstream_deaf: false,
            has_shut_client: false,
            has_shut_upstream: false,
            first_end: None,
            bytes_from_client: 0,
            bytes_to_client: 0,
        })
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Judges the client when the handshake is over.
    ///
    /// # Errors
    /// Why it is not let in.
    pub(crate) fn judge_client(
        &mut self,
        current: &Certificates,
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        self.session.judge_client(current, now)
    }

    /// Decrypted from the client, and encrypted for it.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.bytes_from_client, self.bytes_to_client)
    }

    /// Decrypted or encrypted bytes that were not taken yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.to_client.waiting().len() + self.to_upstream.waiting().len()
    }

    pub(crate) fn first_end(&self) -> Option<Side> {
        self.first_end
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    pub(crate) fn is_half_closed(&self) -> bool {
        self.first_end.is_some()
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_done(&self) -> bool {
        self.has_client_ended && self.has_upstream_ended && self.to_client.is_empty() && {
            self.is_upstream_deaf || self.to_upstream.is_empty()
        }
    }

    /// How many bytes a message of TLS has already; what is read goes behind them.
    pub(crate) fn partial_length(&self) -> usize {
        self.partial.len()
    }

    pub(crate) fn wants_from_client(&self) -> bool {
        let is_waiting = self.to_client.waiting().len() >= ANSWER_BYTES_MAX;
        !self.has_client_ended && self.to_upstream.is_empty() && !is_waiting
    }

    pub(crate) fn wants_from_upstream(&self) -> bool {
        !self.has_upstream_ended && self.to_client.is_empty() && !self.session.is_handshaking()
    }

    /// Takes what was read from the client: `received` bytes of `scratch.incoming`, behind room for
    /// [`Pump::partial_length`] of them. What comes of it is in `plain` and `sealed`, also after an
    /// error: what to tell the client.
    ///
    /// # Errors
    /// When the client is not to be talked to any longer.
    pub(crate) fn receive(
        &mut self,
        scratch: &mut Scratch,
        received: usize,
    ) -> Result<(), PumpError> {
        let kept = self.partial.len();
        let (plain, sealed) = (&mut scratch.plain, &mut scratch.sealed);
        plain.clear();
        sealed.clear();
        scratch.incoming[..kept].copy_from_slice(&self.partial);
        let bytes = &mut scratch.incoming[..kept + received];
        let taken = self.session.open(bytes, plain, sealed);
        let taken = taken.map_err(PumpError::Tls)?;
        self.bytes_from_client += plain.filled().len() as u64;
        if self.is_upstream_deaf {
            plain.clear();
        }
        if self.session.has_client_closed() {
            self.end_client();
            self.partial = Vec::new();
            return Ok(());
        }
        self.keep_partial(&scratch.incoming[taken..kept + received])
    }

    fn keep_partial(&mut self, rest: &[u8]) -> Result<(), PumpError> {
        if rest.len() > PARTIAL_BYTES_MAX {
            return Err(PumpError::TooLong);
        }
        if rest.is_empty() {
            self.partial = Vec::new();
        } else {
            self.partial.clear();
            self.partial.extend_from_slice(rest);
        }
        Ok(())
    }

    /// The client's socket ended.
    pub(crate) fn client_ended(&mut self) {
        // After the upstream's end nothing can be missing.
        self.is_truncated = self.first_end.is_none() && !self.session.has_client_closed();
        self.end_client();
    }

    fn end_client(&mut self) {
        self.has_client_ended = true;
        self.first_end.get_or_insert(Side::Client);
    }

    /// Takes what was read from the upstream; what is for the client is appended to `sealed`.
    ///
    /// # Errors
    /// When the connection's keys are used up.
    pub(crate) fn send(&mut self, plain: &[u8], sealed: &mut Buffer) -> Result<(), PumpError> {
        sealed.clear();
        self.bytes_to_client += plain.len() as u64;
        let sealing = self.session.seal(plain, &mut self.partial, sealed);
        sealing.map_err(PumpError::Tls)
    }

    /// The upstream's socket ended: the client is told.
    ///
    /// # Errors
    /// As of [`Pump::send`].
    pub(crate) fn upstream_ended(&mut self, sealed: &mut Buffer) -> Result<(), PumpError> {
        sealed.clear();
        self.has_upstream_ended = true;
        self.first_end.get_or_insert(Side::Upstream);
        let closing = self.session.close(&mut self.partial, sealed);
        closing.map_err(PumpError::Tls)
    }

    /// The upstream takes nothing more. It may still have said something, which the client is to get;
    /// what the client sends is dropped.
    pub(crate) fn upstream_is_deaf(&mut self) {
        self.is_upstream_deaf = true;
        self.to_upstream = PendingBytes::default();
    }

    pub(crate) fn for_client(&mut self) -> &mut PendingBytes {
        &mut self.to_client
    }

    pub(crate) fn for_upstream(&mut self) -> &mut PendingBytes {
        &mut self.to_upstream
    }

    /// Whether the client is now to be told by its socket that nothing more comes. Once.
    pub(crate) fn shuts_client(&mut self) -> bool {
        let is_due = self.has_upstream_ended && self.to_client.is_empty() && !self.has_shut_client;
        self.has_shut_client |= is_due;
        is_due
    }

    /// Whether the upstream is now to be told that nothing more comes. Once.
    pub(crate) fn shuts_upstream(&mut self) -> bool {
        let is_due =
            self.has_client_ended && self.to_upstream.is_empty() && !self.has_shut_upstream;
        self.has_shut_upstream |= is_due;
        is_due && !self.is_upstream_deaf
    }
}

#[cfg(test)]
mod tests;
