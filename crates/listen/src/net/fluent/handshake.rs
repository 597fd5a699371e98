//! Which clients are believed: those that know the shared key, and a user's password if there are users.
//!
//! Source: Forward Protocol Specification v1 of Fluentd, section "Handshake". Keys and passwords stand in
//! a file, never in arguments.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Context as Hash, SHA512};
use logpond_protocol::intake::push::fluent::{read_ping, write_hello, write_pong};
use logpond_settings::{SecretFile, SecretFileError};
use toml::de::{DeTable, DeValue};

/// Random bytes of the server in each handshake.
const NONCE_BYTES: usize = 16;

/// The longest name of a client that is believed.
const HOSTNAME_BYTES_MAX: usize = 255;

/// What is expected of clients. It has no `Debug` that would show it.
#[derive(Default)]
pub(super) struct Security {
    shared_key: String,
    /// Passwords by user; if there are none, users are not asked for.
    users: BTreeMap<String, String>,
}

/// The file of the key and the users.
const FILE: SecretFile = SecretFile {
    flag: "--fluent-security",
    remedy: "; expected shared-key = \"…\" and, if users are asked for, their passwords below [users]",
};

/// Reads the file.
///
/// # Errors
/// When it cannot be read, or the key is missing.
pub(super) fn read_security(path: &Path) -> Result<Security, SecretFileError> {
    FILE.read(path, parse)
}

/// Gives the content of the file its meaning.
fn parse(table: DeTable<'_>) -> Result<Security, &'static str> {
    let mut security = Security::default();
    for (name, value) in table {
        match (&**name.get_ref(), value.into_inner()) {
            ("shared-key" | "shared_key", DeValue::String(key)) => {
                security.shared_key = key.into_owned();
            }
            ("users", DeValue::Table(users)) => {
                for (user, password) in users {
                    let DeValue::String(password) = password.into_inner() else {
                        return Err("a password is no text");
                    };
                    let user = user.into_inner().into_owned();
                    security.users.insert(user, password.into_owned());
                }
            }
            _ => return Err("it has something else"),
        }
    }
    if security.shared_key.is_empty() {
        Err("the key is missing")
    } else {
        Ok(security)
    }
}

/// A handshake that was begun.
pub(super) struct Handshake<'s> {
    security: &'s Security,
    nonce: [u8; NONCE_BYTES],
    user_salt: Vec<u8>,
    /// What is sent first.
    pub(super) hello: Vec<u8>,
}

/// What a client is answered.
pub(super) struct Answer {
    /// The message.
    pub(super) pong: Vec<u8>,
    /// Why it is not believed, if it is not.
    pub(super) refused: Option<&'static str>,
    /// What it calls itself.
    pub(super) hostname: Option<Arc<str>>,
}

impl Security {
    #[cfg(test)]
    pub(super) fn shared_key(&self) -> &str {
        &self.shared_key
    }

    /// Begins a handshake.
    pub(super) fn begin(&self) -> Result<Handshake<'_>, String> {
        let mut nonce = [0; NONCE_BYTES];
        let mut salt = [0; NONCE_BYTES];
        for bytes in [&mut nonce, &mut salt] {
            getrandom::fill(bytes).map_err(|error| error.to_string())?;
        }
        let user_salt = if self.users.is_empty() {
            Vec::new()
        } else {
            salt.to_vec()
        };
        let mut hello = Vec::new();
        write_hello(&nonce, &user_salt, &mut hello);
        Ok(Handshake {
            security: self,
            nonce,
            user_salt,
            hello,
        })
    }
}

impl Handshake<'_> {
    /// Checks what the client says.
    pub(super) fn answer(&mut self, ping: &[u8], own_name: &str) -> Answer {
        let key = self.security.shared_key.as_bytes();
        let refuse = |why: &'static str| {
            let mut pong = Vec::new();
            write_pong(Err(why), own_name, &mut pong);
            let (refused, hostname) = (Some(why), None);
            Answer {
                pong,
                refused,
                hostname,
            }
        };
        let Ok(ping) = read_ping(ping) else {
            return refuse("no PING came: set the shared key at the client, too");
        };
        let expected = hash(&[ping.salt, ping.hostname, &self.nonce, key]);
        if verify_slices_are_equal(expected.as_bytes(), ping.proof).is_err() {
            return refuse("shared_key mismatch");
        }
        if !self.security.users.is_empty() {
            let user = std::str::from_utf8(ping.user).ok();
            let password = user.and_then(|user| self.security.users.get(user));
            let expected =
                |password: &String| hash(&[&self.user_salt, ping.user, password.as_bytes()]);
            let is_known = password.is_some_and(|password| {
                let expected = expected(password);
                verify_slices_are_equal(expected.as_bytes(), ping.password_proof).is_ok()
            });
            if !is_known {
                return refuse("username/password mismatch");
            }
        }
        let proof = hash(&[ping.salt, own_name.as_bytes(), &self.nonce, key]);
        let mut pong = Vec::new();
        write_pong(Ok(&proof), own_name, &mut pong);
        let hostname = std::str::from_utf8(ping.hostname).ok();
        let hostname = hostname.filter(|name| (1..=HOSTNAME_BYTES_MAX).contains(&name.len()));
        Answer {
            pong,
            refused: None,
            hostname: hostname.map(Arc::from),
        }
    }
}

/// SHA-512 in hexadecimal digits.
fn hash(parts: &[&[u8]]) -> String {
    let mut hash = Hash::new(&SHA512);
    parts.iter().for_each(|part| hash.update(part));
    let digest = hash.finish();
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_names_the_key_and_users() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("security.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_security(&path)
        };
        let security = read("shared-key = \"k\"\n[users]\nann = \"secret\"\n")
            .ok()
            .unwrap();
        assert_eq!(security.shared_key, "k");
        assert_eq!(security.users["ann"], "secret");
        assert!(read("shared_key = \"k\"").is_ok());
        for bad in [
            "",
            "shared-key = \"\"",
            "shared-key = 7",
            "key = \"k\"",
            "shared-key = secret",
        ] {
            let error = read(bad).err().unwrap().to_string();
            assert!(
                error.contains("security.toml") && !error.contains("= secret"),
                "{error}"
            );
        }
        assert!(read_security(&directory.path().join("none")).is_err());
    }
}
