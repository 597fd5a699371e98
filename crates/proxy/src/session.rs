//! TLS of one connection, as bytes in and bytes out.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::UnbufferedServerConnection;
use rustls::sign::CertifiedKey;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError,
    UnbufferedStatus, WriteTraffic,
};
use rustls::{Error, HandshakeKind, ServerConfig};

use crate::Certificates;
use crate::buffer::Buffer;
use crate::certificates::{OrderedHello, heard_hello};
use crate::clients::{Clients, refused_certificate};

/// The most that encrypting adds to 64 KiB: five bytes before and 17 or 24 after each record, of
/// which there are at most five, and a change of keys.
const OVERHEAD_BYTES: usize = 512;

/// The parameters that a handshake agreed on.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandshakeResult {
    pub(crate) alpn: Option<Vec<u8>>,
    pub(crate) version: Option<&'static str>,
    pub(crate) cipher: Option<&'static str>,
    pub(crate) is_resumed: bool,
}

/// The TLS of one connection.
pub(crate) struct Session {
    tls: UnbufferedServerConnection,
    /// The name that the client asked for, once its hello was read.
    name: Option<String>,
    /// The certificate that it is shown.
    shown: Option<Arc<CertifiedKey>>,
    /// What judges the client in its handshake, until that is over.
    clients: Option<Arc<Clients>>,
    /// The certificate that the client was refused for in its handshake.
    refused: Option<CertificateDer<'static>>,
    /// How it begins anew, if the client turns out to be an authority that asks about a name.
    challenges: Option<Arc<ServerConfig>>,
    /// What the hello came upon, if a certificate was ordered.
    ordered: Option<OrderedHello>,
    has_client_closed: bool,
}

impl Session {
    pub(crate) fn new(certificates: &Certificates) -> Result<Session, Error> {
        Ok(Session {
            tls: UnbufferedServerConnection::new(certificates.config())?,
            name: None,
            shown: None,
            clients: certificates.clients(),
            refused: None,
            challenges: certificates.challenges(),
            ordered: None,
            has_client_closed: false,
        })
    }

    /// Whether nothing of the application can go either way yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether the client has said that nothing more comes.
    pub(crate) fn has_client_closed(&self) -> bool {
        self.has_client_closed
    }

    /// What the client's hello came upon, if a certificate was ordered.
    pub(crate) fn ordered(&self) -> Option<OrderedHello> {
        self.ordered
    }

    /// The name that the client asked for.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The protocol that was agreed on.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    /// The certificate that the client was shown.
    pub(crate) fn shown(&self) -> Option<&CertificateDer<'static>> {
        self.shown.as_ref()?.cert.first()
    }

    /// The client's certificate: of this handshake, of that of the session which it resumes, or the one
    /// that was refused, of which nobody knows whether it is the client's own.
    pub(crate) fn client(&self) -> Option<&CertificateDer<'static>> {
        let good = self.tls.peer_certificates().and_then(<[_]>::first);
        good.or(self.refused.as_ref())
    }

    /// Judges the client when the handshake is over, by what is valid then: the library asks the verifier
    /// in full handshakes only, and takes who was let in once for good as long as there are tickets.
    ///
    /// # Errors
    /// Why the client is not let in.
    pub(crate) fn judge_client(
        &mut self,
        current: &Certificates,
        now: UnixTime,
    ) -> Result<(), Error> {
        debug_assert!(!self.is_handshaking());
        let Some(clients) = current.clients() else {
            return Ok(());
        };
        // It is needed no more: long connections must not keep the revocation lists of former days.
        let asked = self.clients.take();
        let was_asked = asked.is_some_and(|asked| Arc::ptr_eq(&asked, &clients));
        match self.tls.handshake_kind() {
            Some(HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest) if was_asked => {
                Ok(())
            }
            _ => clients.judge(self.tls.peer_certificates(), now),
        }
    }

    pub(crate) fn agreed(&self) -> HandshakeResult {
        let version = self.tls.protocol_version();
        let suite = self.tls.negotiated_cipher_suite();
        HandshakeResult {
            alpn: self.alpn().map(<[u8]>::to_vec),
            version: version.and_then(|version| match version {
                rustls::ProtocolVersion::TLSv1_2 => Some("TLSv1.2"),
                rustls::ProtocolVersion::TLSv1_3 => Some("TLSv1.3"),
                _ => None,
            }),
            cipher: suite.and_then(|suite| suite.suite().as_str()),
            is_resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// Takes what the client sent: appends what it means to `plain`, and what is to be answered to
    /// `sealed`. Gives how many of the bytes were taken; the others are to be given again, with more
    /// behind them.
    ///
    /// # Errors
    /// When the client breaks the protocol; what to tell it is in `sealed`.
    pub(crate) fn open(
        &mut self,
        bytes: &mut [u8],
        plain: &mut Buffer,
        sealed: &mut Buffer,
    ) -> Result<usize, Error> {
        let is_greeting = self.is_handshaking();
        let outcome = self.process(bytes, plain, sealed);
        if !is_greeting {
            return outcome;
        }
        if let Some(refused) = refused_certificate() {
            self.refused = Some(refused);
        }
        let Some(hello) = heard_hello() else {
            return outcome;
        };
        (self.name, self.shown, self.ordered) = (hello.name, hello.shown, hello.ordered);
        let challenges = self.challenges.take();
        match (self.ordered, challenges) {
            (Some(OrderedHello::Challenge), Some(config)) => {
                // Nothing was told to anybody yet but that there is no certificate.
                sealed.clear();
                self.clients = None;
                self.tls = UnbufferedServerConnection::new(config)?;
                self.process(bytes, plain, sealed)
            }
            _ => outcome,
        }
    }

    fn process(
        &mut self,
        bytes: &mut [u8],
        plain: &mut Buffer,
        sealed: &mut Buffer,
    ) -> Result<usize, Error> {
        let mut taken = 0;
        // Each round takes bytes or a part of the answer, or is the last.
        loop {
            let UnbufferedStatus { discard, state, .. } =
                self.tls.process_tls_records(&mut bytes[taken..]);
            let mut is_last = false;
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        match record {
                            Ok(record) => {
                                plain.extend(record.payload);
                                taken += record.discard;
                            }
                            Err(_) => is_last = true,
                        }
                    }
                }
                Ok(ConnectionState::EncodeTlsData(data)) => is_last = !encode(data, sealed),
                // What is in `sealed` reaches the client before anything that comes after it.
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.has_client_closed = true,
                Ok(_) => is_last = true,
                Err(error) => {
                    self.alert(&mut bytes[taken + discard..], sealed);
                    break Err(error);
                }
            }
            taken += discard;
            if is_last {
                break Ok(taken);
            }
        }
    }

    /// Encrypts what the upstream sent. `partial` is what [`Session::open`] has not taken: the library
    /// may remember places in it.
    ///
    /// # Errors
    /// When so much was encrypted that the keys must not be used any more.
    pub(crate) fn seal(
        &mut self,
        plain: &[u8],
        partial: &mut Vec<u8>,
        sealed: &mut Buffer,
    ) -> Result<(), Error> {
        let room = plain.len() + OVERHEAD_BYTES;
        self.write(partial, sealed, room, |traffic, into| {
            traffic.encrypt(plain, into)
        })
    }

    /// Says that nothing more comes.
    ///
    /// # Errors
    /// As of [`Session::seal`].
    pub(crate) fn close(
        &mut self,
        partial: &mut Vec<u8>,
        sealed: &mut Buffer,
    ) -> Result<(), Error> {
        self.write(partial, sealed, OVERHEAD_BYTES, |traffic, into| {
            traffic.queue_close_notify(into)
        })
    }

    /// What there is to say to a client that broke the protocol with what is left of its bytes. The last
    /// part is the alert; once that has been said, the library must not be given these bytes again.
    fn alert(&mut self, rest: &mut [u8], sealed: &mut Buffer) {
        // Each round takes one part; the queue of what is to be sent ends.
        while let Ok(ConnectionState::EncodeTlsData(data)) =
            self.tls.process_tls_records(rest).state
        {
            let start = sealed.filled().len();
            encode(data, sealed);
            if may_be_alert(&sealed.filled()[start..]) {
                return;
            }
        }
    }

    fn write(
        &mut self,
        partial: &mut Vec<u8>,
        sealed: &mut Buffer,
        mut room: usize,
        mut write: impl FnMut(&mut WriteTraffic<'_, Data>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<(), Error> {
        loop {
            let UnbufferedStatus { discard, state, .. } = self.tls.process_tls_records(partial);
            match state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    match write(&mut traffic, sealed.room(room)) {
                        Ok(written) => {
                            sealed.advance(written);
                            partial.drain(..discard);
                            return Ok(());
                        }
                        Err(EncryptError::InsufficientSize(InsufficientSizeError {
                            required_size,
                        })) if required_size > room => room = required_size,
                        Err(_) => return Err(Error::EncryptError),
                    }
                }
                ConnectionState::EncodeTlsData(data) => {
                    encode(data, sealed);
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.has_client_closed = true,
                _ => return Err(Error::EncryptError),
            }
            partial.drain(..discard);
        }
    }
}

/// What the library keeps of a server's connection.
type Data = rustls::server::ServerConnectionData;

/// Whether a record is an alert, or encrypted as those of TLS 1.3 are (RFC 8446, 5.1): before an alert
/// nothing else is, as what fails does so before a certificate is sent, or when that is out already.
fn may_be_alert(record: &[u8]) -> bool {
    const ALERT: u8 = 21;
    const ENCRYPTED: u8 = 23;
    matches!(record.first(), None | Some(&(ALERT | ENCRYPTED)))
}

/// Appends a part of the handshake; false if the library has none, which it had announced.
fn encode(mut data: EncodeTlsData<'_, Data>, sealed: &mut Buffer) -> bool {
    let mut room = 0;
    loop {
        match data.encode(sealed.room(room)) {
            Ok(written) => {
                sealed.advance(written);
                return true;
            }
            Err(EncodeError::InsufficientSize(error)) if error.required_size > room => {
                room = error.required_size;
            }
            Err(_) => return false,
        }
    }
}
