//! Tickets for sessions that several processes take, as they have the same secret in a file.
//!
//! Nobody hands keys out: each period of time has its own, which all derive from the secret (HKDF,
//! RFC 5869). A ticket is taken in its period and in the one after it.

use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use rustls::server::ProducesTickets;

use super::pem::read;
use super::{TlsError, now};

/// How long a key makes tickets, in seconds.
const PERIOD_S: u64 = LIFETIME_S as u64;

/// How long a client may use a ticket, in seconds.
const LIFETIME_S: u32 = 6 * 3600;

/// Bytes of a secret.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 32..=4096;

/// The longest file that is looked at.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// Makes and takes tickets by a secret that others have, too.
pub struct SharedTickets {
    secret: Prk,
}

impl fmt::Debug for SharedTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTickets").finish_non_exhaustive()
    }
}

/// The length of a key, for the derivation.
struct KeyLength;

impl KeyType for KeyLength {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

impl SharedTickets {
    /// Reads the secret: all bytes of the file, whatever they are.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn load(path: &Path) -> Result<Arc<SharedTickets>, TlsError> {
        let secret = read(path, FILE_BYTES_MAX)?;
        if !SECRET_BYTES.contains(&secret.len()) {
            let (least, most) = (SECRET_BYTES.start(), SECRET_BYTES.end());
            let reason = format!(
                "a secret for tickets has {least} to {most} bytes; make one by 'openssl rand -out FILE \
                 48'"
            );
            return Err(TlsError::Unreadable {
                path: path.to_owned(),
                source: io::Error::new(io::ErrorKind::InvalidData, reason),
            });
        }
        Ok(Arc::new(SharedTickets::new(&secret)))
    }

    fn new(secret: &[u8]) -> SharedTickets {
        SharedTickets {
            secret: Salt::new(HKDF_SHA256, b"logpond tickets 1").extract(secret),
        }
    }

    fn key(&self, period: u64) -> Option<RandomizedNonceKey> {
        let period = period.to_be_bytes();
        let info = [&b"period"[..], &period];
        let mut key = [0; KEY_BYTES];
        let derived = self.secret.expand(&info, KeyLength).ok()?;
        derived.fill(&mut key).ok()?;
        RandomizedNonceKey::new(&AES_256_GCM, &key).ok()
    }

    fn encrypt_at(&self, plain: &[u8], now_s: u64) -> Option<Vec<u8>> {
        let key = self.key(now_s / PERIOD_S)?;
        let mut sealed = plain.to_vec();
        let nonce = key.seal_in_place_append_tag(Aad::empty(), &mut sealed);
        let mut ticket = nonce.ok()?.as_ref().to_vec();
        ticket.append(&mut sealed);
        Some(ticket)
    }

    fn decrypt_at(&self, ticket: &[u8], now_s: u64) -> Option<Vec<u8>> {
        let (nonce, sealed) = ticket.split_at_checked(NONCE_LEN)?;
        let period = now_s / PERIOD_S;
        [period, period.saturating_sub(1)]
            .into_iter()
            .find_map(|period| {
                let mut plain = sealed.to_vec();
                let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
                let opened = self.key(period)?;
                let opened = opened.open_in_place(nonce, Aad::empty(), &mut plain);
                let length = opened.ok()?.len();
                plain.truncate(length);
                Some(plain)
            })
    }
}

impl ProducesTickets for SharedTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_S
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.encrypt_at(plain, now().as_secs())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.decrypt_at(ticket, now().as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = &[7; 48];

    #[test]
    fn who_has_the_secret_takes_a_ticket_for_a_while() {
        let [ours, theirs] = [SECRET, SECRET].map(SharedTickets::new);
        let others = SharedTickets::new(&[8; 48]);
        let begin = 1000 * PERIOD_S;
        for plain in [&b""[..], b"session"] {
            let ticket = ours.encrypt_at(plain, begin).unwrap();
            let taken =
                |tickets: &SharedTickets, after_s| tickets.decrypt_at(&ticket, begin + after_s);
            for after_s in [0, PERIOD_S - 1, PERIOD_S, 2 * PERIOD_S - 1] {
                assert_eq!(taken(&theirs, after_s).as_deref(), Some(plain), "{after_s}");
            }
            assert_eq!(taken(&theirs, 2 * PERIOD_S), None);
            assert_eq!(taken(&others, 0), None);
            // Not before it was made.
            assert_eq!(ours.decrypt_at(&ticket, begin - 1), None);
            for at in 0..ticket.len() {
                let mut broken = ticket.clone();
                broken[at] ^= 1;
                assert_eq!(ours.decrypt_at(&broken, begin), None, "{at}");
                assert_eq!(ours.decrypt_at(&ticket[..at], begin), None, "{at}");
            }
        }
        let twice = [0, 0].map(|_| ours.encrypt_at(b"session", begin));
        assert_ne!(twice[0], twice[1]);
    }

    #[test]
    fn a_secret_has_a_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        let error = SharedTickets::load(&path).unwrap_err().to_string();
        assert!(error.contains("cannot be read"), "{error}");
        for (bytes, is_good) in [(31, false), (32, true), (4096, true), (4097, false)] {
            std::fs::write(&path, vec![1; bytes]).unwrap();
            assert_eq!(SharedTickets::load(&path).is_ok(), is_good, "{bytes}");
        }
    }
}
