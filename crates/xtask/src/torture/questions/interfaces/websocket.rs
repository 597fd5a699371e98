//! A WebSocket that reads texts.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tungstenite::protocol::Role;
use tungstenite::{Error, Message};

use super::connect;

/// The most bytes of the head of a response.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// A connection.
pub(super) struct WebSocket(tungstenite::WebSocket<TcpStream>);

impl WebSocket {
    /// Connects and waits for the switch of protocols.
    pub(super) fn open(address: &str, target: &str) -> io::Result<WebSocket> {
        let mut stream = connect(address)?;
        let request = format!(
            "GET {target} HTTP/1.1\r\nhost: {address}\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dG9ydHVyZXRvcnR1cmV0bw==\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let (head, rest) = read_head(&mut stream)?;
        if !head.starts_with("HTTP/1.1 101 ") {
            return Err(io::Error::other(head));
        }
        let socket = tungstenite::WebSocket::from_partially_read(stream, rest, Role::Client, None);
        Ok(WebSocket(socket))
    }

    /// The next text; none if there is none for a while.
    pub(super) fn read(&mut self, wait: Duration) -> io::Result<Option<String>> {
        self.0.get_ref().set_read_timeout(Some(wait))?;
        loop {
            match self.0.read() {
                Ok(Message::Text(text)) => return Ok(Some(text.to_string())),
                Ok(Message::Close(_)) => return Err(io::Error::other("the server closes")),
                Ok(_) => {}
                Err(Error::Io(error)) => {
                    return match error.kind() {
                        ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(None),
                        _ => Err(error),
                    };
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

/// The head of a response, and what came behind it.
fn read_head(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    while bytes.len() < HEAD_BYTES_MAX {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => bytes.extend(&buffer[..count]),
        }
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let rest = bytes.split_off(end + 4);
            return Ok((String::from_utf8_lossy(&bytes).into_owned(), rest));
        }
    }
    Err(io::Error::other("the head of the response is too long"))
}
