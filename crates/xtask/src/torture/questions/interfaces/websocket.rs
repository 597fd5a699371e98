//! A client of WebSockets that reads texts.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::super::{ANSWER_TIMEOUT, CONNECT_TIMEOUT};
use crate::torture::patience::patient;

/// The most bytes that are held: of a message, or of the head of the response.
const BYTES_MAX: usize = 16 << 20;

/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// A connection, with the bytes that were read and not parsed.
pub(super) struct WebSocket {
    stream: TcpStream,
    bytes: Vec<u8>,
}

/// A frame from the server: its kind, its content, and its length with the head.
struct Frame {
    opcode: u8,
    content: Vec<u8>,
    length: usize,
}

impl WebSocket {
    /// Connects and waits for the switch of protocols.
    pub(super) fn open(address: &str, target: &str) -> io::Result<WebSocket> {
        let parsed = address.parse().map_err(io::Error::other)?;
        let mut stream = TcpStream::connect_timeout(&parsed, patient(CONNECT_TIMEOUT))?;
        stream.set_read_timeout(Some(patient(ANSWER_TIMEOUT)))?;
        stream.set_write_timeout(Some(patient(ANSWER_TIMEOUT)))?;
        let request = format!(
            "GET {target} HTTP/1.1\r\nhost: {address}\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dG9ydHVyZXRvcnR1cmV0bw==\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let mut socket = WebSocket {
            stream,
            bytes: Vec::new(),
        };
        let head = socket.read_head()?;
        if head.starts_with("HTTP/1.1 101 ") {
            Ok(socket)
        } else {
            Err(io::Error::other(head))
        }
    }

    fn read_head(&mut self) -> io::Result<String> {
        loop {
            let end = self.bytes.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head = self.bytes.drain(..end + 4).collect::<Vec<u8>>();
                return Ok(String::from_utf8_lossy(&head).into_owned());
            }
            self.read_more()?;
        }
    }

    /// The next text; none if there is none for a while.
    pub(super) fn read(&mut self, wait: Duration) -> io::Result<Option<String>> {
        self.stream.set_read_timeout(Some(wait))?;
        loop {
            while let Some(frame) = parse_frame(&self.bytes) {
                self.bytes.drain(..frame.length);
                match frame.opcode {
                    1 => return Ok(Some(String::from_utf8_lossy(&frame.content).into_owned())),
                    8 => return Err(io::Error::other("the server closes")),
                    _ => {}
                }
            }
            match self.read_more() {
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(None);
                }
                other => other?,
            }
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut buffer = [0; READ_BYTES];
        match self.stream.read(&mut buffer)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ if self.bytes.len() > BYTES_MAX => Err(io::Error::other("a message is too long")),
            count => {
                self.bytes.extend(&buffer[..count]);
                Ok(())
            }
        }
    }
}

/// The first frame, if all of it is there. Frames of a server have no mask.
fn parse_frame(bytes: &[u8]) -> Option<Frame> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    let (head, length) = match second & 0x7f {
        126 => (
            4,
            u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)),
        ),
        127 => (10, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)),
        short => (2, u64::from(short)),
    };
    let length = head + usize::try_from(length).ok()?;
    Some(Frame {
        opcode: first & 0x0f,
        content: bytes.get(head..length)?.to_vec(),
        length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_parsed_once_they_are_whole() {
        let mut bytes = vec![0x81, 126, 0, 200];
        bytes.extend([b'a'; 200]);
        bytes.extend([0x88, 0]);
        assert!(parse_frame(&bytes[..100]).is_none());
        let frame = parse_frame(&bytes).expect("a frame");
        assert_eq!(
            (frame.opcode, frame.content.len(), frame.length),
            (1, 200, 204)
        );
        assert_eq!(parse_frame(&bytes[204..]).expect("a frame").opcode, 8);
    }
}
