//! Who a sender is: `HELO` of the server, `PING` of the client, `PONG` of the server.
//!
//! Only the messages; what they prove is checked where secrets are.

use crate::intake::msgpack::{MsgpackError, Reader, Token, write};

/// What a client says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ping<'a> {
    /// Its name.
    pub hostname: &'a [u8],
    /// What it mixed into its proof.
    pub salt: &'a [u8],
    /// That it knows the shared key: SHA-512 of salt, name, nonce and key, in hexadecimal digits.
    pub proof: &'a [u8],
    /// A user; empty for none.
    pub user: &'a [u8],
    /// SHA-512 of the server's salt, user and password, in hexadecimal digits.
    pub password_proof: &'a [u8],
}

/// The message is no `PING`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAPing;

impl From<MsgpackError> for NotAPing {
    fn from(_: MsgpackError) -> NotAPing {
        NotAPing
    }
}

/// Appends what a server begins with. `user_salt` asks for a user and its password, if it is not empty.
pub fn write_hello(nonce: &[u8], user_salt: &[u8], out: &mut Vec<u8>) {
    write::list(2, out);
    write::text(b"HELO", out);
    write::map(3, out);
    write::text(b"nonce", out);
    write::bytes(nonce, out);
    write::text(b"auth", out);
    write::bytes(user_salt, out);
    write::text(b"keepalive", out);
    write::bool(true, out);
}

/// Reads what a client answers.
///
/// # Errors
/// When it is something else.
pub fn read_ping(message: &[u8]) -> Result<Ping<'_>, NotAPing> {
    let mut reader = Reader::new(message);
    let is_list = reader.token()? == Token::List(6);
    let mut text = || match reader.token()? {
        Token::Text(text) | Token::Bytes(text) => Ok(text),
        Token::Nil => Ok(&[][..]),
        _ => Err(NotAPing),
    };
    if !is_list || text()? != b"PING" {
        return Err(NotAPing);
    }
    Ok(Ping {
        hostname: text()?,
        salt: text()?,
        proof: text()?,
        user: text()?,
        password_proof: text()?,
    })
}

/// Appends what a server answers: its own proof, of the client's salt, its name, the nonce and the
/// key; or why not.
pub fn write_pong(outcome: Result<&str, &str>, hostname: &str, out: &mut Vec<u8>) {
    write::list(5, out);
    write::text(b"PONG", out);
    write::bool(outcome.is_ok(), out);
    write::text(outcome.err().unwrap_or("").as_bytes(), out);
    write::text(hostname.as_bytes(), out);
    write::text(outcome.unwrap_or("").as_bytes(), out);
}
