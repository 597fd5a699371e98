//! A connection that asks for one thing at a time.

use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Instant;

use mio::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, HandshakeKind};

use super::Destination;
use crate::bench::proxy::message::head;
use crate::run::Outcome;

/// The effect of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EventOutcome {
    /// An answer is complete.
    pub(super) answer: bool,
    /// The other side has ended.
    pub(super) end: bool,
}

/// A connection.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    output: Vec<u8>,
    written: usize,
    answer: Answer,
    sent_at: Instant,
    /// From the last request to the end of its answer.
    pub(super) latency_us: u32,
}

/// How much of an answer there is.
#[derive(Default)]
struct Answer {
    head: Vec<u8>,
    /// Bytes of the body that are to come; none before the end of the head.
    rest_bytes: Option<usize>,
}

impl Answer {
    /// Takes a piece; true at the end of the answer.
    fn take(&mut self, piece: &[u8]) -> Outcome<bool> {
        let body_bytes = match self.rest_bytes {
            Some(rest) => {
                self.rest_bytes = Some(excess(rest, piece.len())?);
                self.rest_bytes
            }
            None => {
                self.head.extend_from_slice(piece);
                let Some(found) = head(&self.head)? else {
                    return Ok(false);
                };
                if !found.first_line.starts_with("HTTP/1.1 200") {
                    return Err(format!("the answer is {:?}", found.first_line));
                }
                self.rest_bytes = Some(excess(found.body_bytes, self.head.len() - found.bytes)?);
                self.rest_bytes
            }
        };
        let is_complete = body_bytes == Some(0);
        if is_complete {
            self.head.clear();
            self.rest_bytes = None;
        }
        Ok(is_complete)
    }
}

fn excess(expected: usize, came: usize) -> Outcome<usize> {
    expected
        .checked_sub(came)
        .ok_or_else(|| "more came than was asked for".to_owned())
}

impl Connection {
    /// Begins to connect.
    pub(super) fn open(destination: &Destination) -> Outcome<Connection> {
        let stream = TcpStream::connect(destination.address).map_err(|e| e.to_string())?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let tls = destination.tls.as_ref().map(|config| {
            let name = ServerName::try_from("localhost").map_err(|e| e.to_string())?;
            let mut tls = ClientConnection::new(config.clone(), name).map_err(|e| e.to_string())?;
            // A request is put in whole; the vector of what is to be sent bounds it.
            tls.set_buffer_limit(None);
            Ok::<_, String>(Box::new(tls))
        });
        Ok(Connection {
            stream,
            tls: tls.transpose()?,
            output: Vec::new(),
            written: 0,
            answer: Answer::default(),
            sent_at: Instant::now(),
            latency_us: 0,
        })
    }

    /// Asks; goes out as soon as there is a connection.
    pub(super) fn ask(&mut self, request: &[u8]) -> Outcome<()> {
        self.sent_at = Instant::now();
        match &mut self.tls {
            Some(tls) => tls.writer().write_all(request).map_err(|e| e.to_string())?,
            None => self.output.extend_from_slice(request),
        }
        self.flush()
    }

    /// Whether the session was resumed; none before the end of the handshake.
    pub(super) fn is_resumed(&self) -> Option<bool> {
        let kind = self.tls.as_ref()?.handshake_kind()?;
        Some(kind == HandshakeKind::Resumed)
    }

    /// Says that nothing more will be asked for.
    pub(super) fn end(&mut self) -> Outcome<()> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush()?;
        match self.stream.shutdown(Shutdown::Write) {
            Err(error) if error.kind() != ErrorKind::NotConnected => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    /// Reads what there is and writes what is left. An event that tells of an end is the last one.
    pub(super) fn advance(
        &mut self,
        tells_of_end: bool,
        scratch: &mut [u8],
    ) -> Outcome<EventOutcome> {
        let mut brought = EventOutcome::default();
        loop {
            let count = match self.stream.read(scratch) {
                Ok(0) => {
                    brought.end = true;
                    break;
                }
                Ok(count) => count,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::NotConnected => break,
                    ErrorKind::ConnectionReset => {
                        brought.end = true;
                        break;
                    }
                    _ => return Err(error.to_string()),
                },
            };
            brought.answer |= self.take(&scratch[..count])?;
            if count < scratch.len() && !tells_of_end {
                break;
            }
        }
        if brought.answer {
            self.latency_us = self.sent_at.elapsed().as_micros() as u32;
        }
        if !brought.end {
            self.flush()?;
        }
        Ok(brought)
    }

    /// Takes what came over the wire; true at the end of an answer.
    fn take(&mut self, mut wire: &[u8]) -> Outcome<bool> {
        let Some(tls) = &mut self.tls else {
            return self.answer.take(wire);
        };
        let mut is_answered = false;
        while !wire.is_empty() {
            tls.read_tls(&mut wire).map_err(|e| e.to_string())?;
            tls.process_new_packets().map_err(|e| format!("TLS: {e}"))?;
            let mut reader = tls.reader();
            loop {
                let piece = match reader.fill_buf() {
                    Ok([]) => break,
                    Ok(piece) => piece,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.to_string()),
                };
                let count = piece.len();
                is_answered |= self.answer.take(piece)?;
                reader.consume(count);
            }
        }
        Ok(is_answered)
    }

    /// Writes as far as it is taken.
    fn flush(&mut self) -> Outcome<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.output).map_err(|e| e.to_string())?;
            }
        }
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if is_not_yet(&error) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        self.output.clear();
        self.written = 0;
        Ok(())
    }
}

/// Whether it may go on later.
fn is_not_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::NotConnected
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_come_in_pieces() {
        let message = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        for cut in 1..message.len() {
            let mut answer = Answer::default();
            assert_eq!(answer.take(&message[..cut]), Ok(false), "{cut}");
            assert_eq!(answer.take(&message[cut..]), Ok(true), "{cut}");
            // The next one begins anew.
            assert_eq!(answer.take(message), Ok(true));
        }
    }

    #[test]
    fn answers_that_are_none_are_refused() {
        let mut answer = Answer::default();
        assert!(answer.take(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").is_err());
        let mut answer = Answer::default();
        assert!(answer.take(b"HTTP/1.1 200 OK\r\n\r\nmore").is_err());
    }
}
