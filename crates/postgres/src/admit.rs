//! Admits a client by its token, which is its password.
//!
//! A client proves by SCRAM-SHA-256 that it has a token. Tokens that were made before there were keys for that are sent
//! as they are: over TLS, or within the machine.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use logpond_host::clock;
use logpond_http::App;
use logpond_listen::tokens::{Admission, Refusal, Role};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::failure::{Code, Failure};
use crate::scram::{self, Exchange, MECHANISM, NONCE_BYTES};
use crate::session::Ending;
use crate::wire::{self, Frontend};

/// The way by which a client shows its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It proves that it has one.
    Proof,
    /// It sends it.
    Text,
}

impl Way {
    /// The way over a connection: a token is not sent where others could read it.
    fn of(is_private: bool, have_verifiers: bool) -> Way {
        if is_private && !have_verifiers {
            Way::Text
        } else {
            Way::Proof
        }
    }
}

/// Asks for a token and checks it, over a connection that is encrypted, or within the machine, if it is private.
///
/// # Errors
/// When the token is not known, or may not read; or when the client goes.
pub(crate) async fn admit<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    input: &mut BytesMut,
    is_private: bool,
    app: &Arc<App>,
) -> Result<Admission, Ending> {
    let have_verifiers = app.guard.tokens().have_verifiers(clock::now());
    match Way::of(is_private, have_verifiers) {
        Way::Text => {
            let mut out = Vec::new();
            wire::put_password_request(&mut out);
            send(stream, &out).await?;
            of_text(app, &password(stream, input).await?)
        }
        Way::Proof => of_proof(stream, input, app).await,
    }
}

fn of_text(app: &App, password: &Bytes) -> Result<Admission, Ending> {
    let text = password.strip_suffix(b"\0").unwrap_or(password);
    let token = std::str::from_utf8(text).unwrap_or_default();
    let admission = Admission::new(&app.guard, Some(token), Role::Read, clock::now());
    let admission = admission.and_then(|admission| admission.ok_or(Refusal::Unknown));
    admission.map_err(|refusal| count(app, &refusal))
}

async fn of_proof<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    input: &mut BytesMut,
    app: &App,
) -> Result<Admission, Ending> {
    let mut random = [0; NONCE_BYTES];
    getrandom::fill(&mut random).map_err(|_| {
        let message = "the system gives no random bytes";
        Ending::Fatal(Failure::new(Code::Internal, message))
    })?;
    let mut out = Vec::new();
    wire::put_mechanisms(&mut out, &[MECHANISM]);
    send(stream, &out).await?;
    let response = password(stream, input).await?;
    let response = wire::sasl_response(response).map_err(malformed)?;
    if response.mechanism != MECHANISM {
        let message = format!("the mechanism is {MECHANISM}, not {}", response.mechanism);
        return Err(malformed(message));
    }
    let exchange = Exchange::begin(&response.data, random).map_err(Ending::Fatal)?;
    out.clear();
    wire::put_sasl(&mut out, wire::SASL_GOES_ON, exchange.message());
    send(stream, &out).await?;
    let last = password(stream, input).await?;
    let last = std::str::from_utf8(&last).unwrap_or_default();
    let proof = exchange.end(last).map_err(Ending::Fatal)?;
    let admitted = Admission::of_proof(&app.guard, &proof, Role::Read, clock::now());
    let (admission, signature) = admitted.map_err(|refusal| count(app, &refusal))?;
    out.clear();
    wire::put_sasl(&mut out, wire::SASL_ENDS, &scram::last_message(&signature));
    send(stream, &out).await?;
    Ok(admission)
}

fn malformed(error: impl ToString) -> Ending {
    Ending::Fatal(Failure::new(Code::ProtocolViolation, error.to_string()))
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, bytes: &[u8]) -> Result<(), Ending> {
    stream.write_all(bytes).await.map_err(|_| Ending::Closed)
}

async fn password<S: AsyncRead + Unpin>(
    stream: &mut S,
    input: &mut BytesMut,
) -> Result<Bytes, Ending> {
    loop {
        match wire::message(input, wire::STARTUP_BYTES_MAX) {
            Ok(Some(Frontend::Password(password))) => return Ok(password),
            Ok(Some(Frontend::Terminate)) => return Err(Ending::Closed),
            Ok(None) => {}
            Ok(Some(_)) => return Err(malformed("a password is awaited, and no other message")),
            Err(error) => return Err(malformed(error)),
        }
        let read = stream.read_buf(input).await;
        if read.map_err(|_| Ending::Closed)? == 0 {
            return Err(Ending::Closed);
        }
    }
}

fn count(app: &App, refusal: &Refusal) -> Ending {
    app.count_refusal(refusal);
    Ending::Fatal(Failure::of_refusal(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_not_sent_in_the_clear() {
        let table = [
            (true, true, Way::Proof),
            (true, false, Way::Text),
            (false, true, Way::Proof),
            (false, false, Way::Proof),
        ];
        for (is_private, have_verifiers, way) in table {
            assert_eq!(Way::of(is_private, have_verifiers), way);
        }
    }
}
