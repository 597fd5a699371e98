//! SCRAM-SHA-256 with a token as the password (RFC 5802, RFC 7677): a client proves that it has a token, and the token
//! itself never leaves it.
//!
//! Invariant: all tokens have one salt. A server names it before it can know which token a client has, as the name of
//! the user has no meaning here; and no table of passwords can hold tokens, which are random.

use std::num::NonZeroU32;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use aws_lc_rs::pbkdf2::{PBKDF2_HMAC_SHA256, derive};
use logpond_settings::{HASH_BYTES, Token};

use super::entry::{hash_text, parse_hash};

/// The salt of all tokens.
pub const SALT: [u8; 16] = *b"logpond tokens 1";

/// Rounds of the key's derivation, the least of RFC 7677: a random token needs no more.
pub const ITERATIONS: NonZeroU32 = match NonZeroU32::new(4096) {
    Some(rounds) => rounds,
    None => NonZeroU32::MIN,
};

type Hash = [u8; HASH_BYTES];

/// The proof of a client that it has a token.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The messages so far (`AuthMessage`).
    pub messages: String,
    /// The client's proof (`ClientProof`).
    pub client: Hash,
}

/// The keys by which a server checks proofs; a token cannot be made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verifier {
    stored_key: Hash,
    server_key: Hash,
}

impl Verifier {
    /// The keys of a token.
    pub(super) fn of(token: &Token) -> Verifier {
        let mut salted = [0; HASH_BYTES];
        let secret = token.expose().as_bytes();
        derive(PBKDF2_HMAC_SHA256, ITERATIONS, &SALT, secret, &mut salted);
        Verifier {
            stored_key: hash(&hmac(&salted, b"Client Key")),
            server_key: hmac(&salted, b"Server Key"),
        }
    }

    /// The server's own proof, if the client's is right.
    pub(super) fn check(&self, proof: &Proof) -> Option<Hash> {
        let messages = proof.messages.as_bytes();
        let signature = hmac(&self.stored_key, messages);
        let mut client_key = proof.client;
        for (byte, mask) in client_key.iter_mut().zip(signature) {
            *byte ^= mask;
        }
        let is_right = verify_slices_are_equal(&hash(&client_key), &self.stored_key).is_ok();
        is_right.then(|| hmac(&self.server_key, messages))
    }

    /// As it is kept: both keys in hexadecimal digits.
    pub(super) fn render(&self) -> String {
        hash_text(&self.stored_key) + &hash_text(&self.server_key)
    }

    /// Reads what [`Verifier::render`] wrote.
    pub(super) fn parse(text: &str) -> Option<Verifier> {
        let (stored_key, server_key) = text.split_at_checked(2 * HASH_BYTES)?;
        Some(Verifier {
            stored_key: parse_hash(stored_key)?,
            server_key: parse_hash(server_key)?,
        })
    }
}

fn hash(bytes: &[u8]) -> Hash {
    of_slice(digest(&SHA256, bytes).as_ref())
}

fn hmac(key: &[u8], bytes: &[u8]) -> Hash {
    of_slice(sign(&Key::new(HMAC_SHA256, key), bytes).as_ref())
}

fn of_slice(bytes: &[u8]) -> Hash {
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(bytes);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client, as RFC 5802 section 3 has it.
    fn proof_of(token: &Token, messages: &str) -> Proof {
        let mut salted = [0; HASH_BYTES];
        let secret = token.expose().as_bytes();
        derive(PBKDF2_HMAC_SHA256, ITERATIONS, &SALT, secret, &mut salted);
        let client_key = hmac(&salted, b"Client Key");
        let signature = hmac(&hash(&client_key), messages.as_bytes());
        let mut client = client_key;
        client
            .iter_mut()
            .zip(signature)
            .for_each(|(byte, mask)| *byte ^= mask);
        Proof {
            messages: messages.to_owned(),
            client,
        }
    }

    #[test]
    fn a_proof_is_of_one_token_and_one_exchange() {
        let (token, other) = (Token::mint().unwrap(), Token::mint().unwrap());
        let kept = Verifier::parse(&Verifier::of(&token).render()).unwrap();
        let proof = proof_of(&token, "n=,r=a");
        assert!(kept.check(&proof).is_some());
        assert!(Verifier::of(&other).check(&proof).is_none());
        let replayed = Proof {
            messages: "n=,r=b".to_owned(),
            ..proof
        };
        assert!(kept.check(&replayed).is_none());
        assert!(Verifier::parse("00").is_none());
    }
}
