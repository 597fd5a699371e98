//! The messages of SCRAM-SHA-256 (RFC 5802 sections 5 and 7) as PostgreSQL's clients send them: pure.
//!
//! There is no binding to the channel: clients may ask whether there is (`y`), but cannot want it (`p`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use logpond_listen::tokens::scram::{ITERATIONS, Proof, SALT};

use crate::failure::{Code, Failure};

/// The name of the mechanism.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";

/// Random bytes of the server in an exchange.
pub(crate) const NONCE_BYTES: usize = 18;

/// The longest random text of a client that is accepted; libraries send 24 to 48 bytes.
const CLIENT_NONCE_BYTES_MAX: usize = 512;

/// An exchange whose first half is over.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The header about channels, as it was sent.
    header: String,
    /// The client's first message without the header.
    client_first: String,
    /// The server's first message.
    server_first: String,
    nonce: String,
}

impl Exchange {
    /// Begins with what a client says first.
    ///
    /// # Errors
    /// When that is no such message.
    pub(crate) fn begin(client: &str, random: [u8; NONCE_BYTES]) -> Result<Exchange, Failure> {
        let parts = client.split_once(',').and_then(|(channel, rest)| {
            let (authorization, bare) = rest.split_once(',')?;
            Some((channel, authorization, bare))
        });
        let (channel, authorization, bare) = parts.ok_or_else(|| malformed("the first message"))?;
        match channel {
            "n" | "y" => {}
            _ => return Err(malformed("the binding to a channel, which there is not")),
        }
        if !(authorization.is_empty() || authorization.starts_with("a=")) {
            return Err(malformed("the first message"));
        }
        let mut attributes = bare.split(',');
        let user = attributes.next().and_then(|user| user.strip_prefix("n="));
        let nonce = attributes.next().and_then(|nonce| nonce.strip_prefix("r="));
        let (Some(_), Some(nonce)) = (user, nonce) else {
            return Err(malformed("the first message"));
        };
        let is_printable = nonce.bytes().all(|byte| byte.is_ascii_graphic());
        if nonce.is_empty() || nonce.len() > CLIENT_NONCE_BYTES_MAX || !is_printable {
            return Err(malformed("the random text"));
        }
        let nonce = format!("{nonce}{}", STANDARD.encode(random));
        Ok(Exchange {
            header: format!("{channel},{authorization},"),
            client_first: bare.to_owned(),
            server_first: format!("r={nonce},s={},i={ITERATIONS}", STANDARD.encode(SALT)),
            nonce,
        })
    }

    /// The server's first message.
    pub(crate) fn message(&self) -> &str {
        &self.server_first
    }

    /// Reads what the client says last: its proof.
    ///
    /// # Errors
    /// When that is no such message, or of another exchange.
    pub(crate) fn end(&self, client: &str) -> Result<Proof, Failure> {
        let (rest, proof) = client
            .rsplit_once(",p=")
            .ok_or_else(|| malformed("the last message"))?;
        let mut attributes = rest.split(',');
        let channel = attributes.next().and_then(|text| text.strip_prefix("c="));
        let header = channel.and_then(|text| STANDARD.decode(text).ok());
        if header.is_none_or(|header| header != self.header.as_bytes()) {
            return Err(malformed("the binding to a channel"));
        }
        let nonce = attributes.next().and_then(|text| text.strip_prefix("r="));
        if nonce != Some(&*self.nonce) {
            return Err(malformed("the random text"));
        }
        let proof = STANDARD.decode(proof).ok();
        let proof = proof.and_then(|bytes| bytes.try_into().ok());
        Ok(Proof {
            messages: format!("{},{},{rest}", self.client_first, self.server_first),
            client: proof.ok_or_else(|| malformed("the proof"))?,
        })
    }
}

/// The server's last message.
pub(crate) fn last_message(signature: &[u8]) -> String {
    format!("v={}", STANDARD.encode(signature))
}

fn malformed(part: &str) -> Failure {
    let message = format!("{part} of {MECHANISM} is wrong");
    Failure::new(Code::ProtocolViolation, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(client: &str) -> Result<Exchange, Failure> {
        Exchange::begin(client, [7; NONCE_BYTES])
    }

    #[test]
    fn both_halves_are_signed() {
        let exchange = begin("n,,n=ann,r=abc").unwrap();
        let random = STANDARD.encode([7; NONCE_BYTES]);
        let salt = STANDARD.encode(SALT);
        let first = format!("r=abc{random},s={salt},i=4096");
        assert_eq!(exchange.message(), first);
        let proof = STANDARD.encode([9; 32]);
        let found = exchange.end(&format!("c=biws,r=abc{random},p={proof}"));
        let found = found.unwrap();
        assert_eq!(
            found.messages,
            format!("n=ann,r=abc,{first},c=biws,r=abc{random}")
        );
        assert_eq!(found.client, [9; 32]);
        for wrong in [
            String::new(),
            format!("c=biws,r=abc,p={proof}"),
            format!("c=eSws,r=abc{random},p={proof}"),
            format!("c=biws,r=abc{random},p=AAAA"),
            format!("c=biws,r=abc{random}"),
        ] {
            assert!(exchange.end(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn first_messages_are_checked() {
        for right in ["n,,n=,r=a", "y,,n=a,r=b", "n,a=x,n=a,r=b,e=1"] {
            assert!(begin(right).is_ok(), "{right}");
        }
        let long = format!("n,,n=a,r={}", "x".repeat(CLIENT_NONCE_BYTES_MAX + 1));
        for wrong in [
            "",
            "n,,",
            "n,,m=x,n=a,r=b",
            "n,,n=a,r=",
            "p=tls-server-end-point,,n=a,r=b",
            "n,x,n=a,r=b",
            "n,,n=a,r=b c",
            &long,
        ] {
            assert!(begin(wrong).is_err(), "{wrong}");
        }
    }
}
