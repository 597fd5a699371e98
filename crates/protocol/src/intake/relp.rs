//! RELP: syslog messages over TCP, each acknowledged.
//!
//! ```text
//! frame:  TXNR SP COMMAND SP DATALEN [SP DATA] LF
//! client: 1 open 85 relp_version=0␊relp_software=…␊commands=syslog     3 close 0
//!         2 syslog 11 <13>a hello
//! server: 1 rsp 92 200 OK␊relp_version=0␊…      2 rsp 6 200 OK          3 rsp 0
//! ```
//!
//! Source: the RELP protocol specification of librelp, and what librelp sends where it differs (it
//! offers version 0).
//!
//! Invariants: a message is given with the number that its acknowledgement needs; what is no frame
//! ends the session, since nothing behind it can be understood; at most one frame of limited length is
//! held. How the input is cut into chunks does not matter.

use std::fmt;

use logpond_record::limits::{LINE_BYTES_DEFAULT, LINE_BYTES_MAX};

/// The most digits of a transaction's number and of a length.
const DIGITS_MAX: usize = 9;

/// The longest name of a command.
const COMMAND_BYTES_MAX: usize = 32;

/// The longest head of a frame: number, command, length and their spaces.
const HEAD_BYTES_MAX: usize = 2 * DIGITS_MAX + COMMAND_BYTES_MAX + 3;

/// The longest data of a frame that is no message.
const OFFER_BYTES_MAX: usize = 8 << 10;

/// What a session's client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelpCommand<'a> {
    /// It begins, with these offers.
    Open {
        /// Number of the transaction.
        number: u32,
        /// Whether it can send what is taken here: syslog messages.
        is_syslog: bool,
    },
    /// A message.
    Message {
        /// Number of the transaction.
        number: u32,
        /// What there is of it.
        bytes: &'a [u8],
        /// Bytes at its end that were cut off.
        truncated_bytes: usize,
    },
    /// It ends.
    Close {
        /// Number of the transaction.
        number: u32,
    },
    /// A command that nobody knows.
    Unknown {
        /// Number of the transaction.
        number: u32,
    },
}

/// The bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelpError {
    /// The head is none.
    Head,
    /// There is no line end where the frame must end.
    End,
    /// The data of a command is longer than any.
    TooLong,
}

impl fmt::Display for RelpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RelpError::Head => "expected a frame of RELP: NUMBER COMMAND LENGTH",
            RelpError::End => "a frame of RELP is longer than it says",
            RelpError::TooLong => "the data of a command of RELP is longer than 8 KiB",
        })
    }
}

impl std::error::Error for RelpError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Open,
    Syslog,
    Close,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The head of a frame is held.
    Head,
    /// So many bytes of data are to come.
    Data {
        number: u32,
        command: Command,
        left: usize,
    },
    /// The line end is to come.
    End { number: u32, command: Command },
}

/// Splits a stream of bytes into what a client sends.
#[derive(Debug)]
pub struct RelpSplitter {
    state: State,
    partial: Vec<u8>,
    truncated_bytes: usize,
    message_bytes_max: usize,
}

impl Default for RelpSplitter {
    fn default() -> RelpSplitter {
        RelpSplitter::new(LINE_BYTES_DEFAULT)
    }
}

impl RelpSplitter {
    /// A splitter that cuts messages to `message_bytes_max`, at most [`LINE_BYTES_MAX`].
    pub fn new(message_bytes_max: usize) -> RelpSplitter {
        RelpSplitter {
            state: State::Head,
            partial: Vec::new(),
            truncated_bytes: 0,
            message_bytes_max: message_bytes_max.min(LINE_BYTES_MAX),
        }
    }

    /// Bytes of the unfinished frame that are held.
    pub fn held_bytes(&self) -> usize {
        self.partial.len()
    }

    /// Takes the next bytes of the stream and gives what ends in them.
    ///
    /// # Errors
    /// When they are no frames; the splitter is of no use then.
    pub fn feed(
        &mut self,
        mut input: &[u8],
        mut take: impl FnMut(RelpCommand<'_>),
    ) -> Result<(), RelpError> {
        while let [first, rest @ ..] = input {
            match self.state {
                State::Head => {
                    input = rest;
                    self.head(*first, &mut take)?;
                }
                State::Data {
                    number,
                    command,
                    left,
                } => {
                    let (data, after) = input.split_at(left.min(input.len()));
                    input = after;
                    self.data(data, command)?;
                    self.state = match left - data.len() {
                        0 => State::End { number, command },
                        left => State::Data {
                            number,
                            command,
                            left,
                        },
                    };
                }
                State::End { number, command } => {
                    if *first != b'\n' {
                        return Err(RelpError::End);
                    }
                    input = rest;
                    self.give(number, command, &mut take);
                    self.state = State::Head;
                }
            }
        }
        Ok(())
    }

    /// Takes a byte of a head.
    fn head(&mut self, byte: u8, take: &mut impl FnMut(RelpCommand<'_>)) -> Result<(), RelpError> {
        let spaces = self.partial.iter().filter(|byte| **byte == b' ').count();
        let is_end = byte == b'\n' || (byte == b' ' && spaces == 2);
        if !is_end {
            if self.partial.len() == HEAD_BYTES_MAX {
                return Err(RelpError::Head);
            }
            self.partial.push(byte);
            return Ok(());
        }
        let (number, command, length) = read_head(&self.partial).ok_or(RelpError::Head)?;
        self.partial.clear();
        match (length, byte) {
            // The space behind a length of 0 may be there or not.
            (0, b' ') => self.state = State::End { number, command },
            (0, _) => self.give(number, command, take),
            (left, b' ') => {
                self.state = State::Data {
                    number,
                    command,
                    left,
                };
            }
            _ => return Err(RelpError::Head),
        }
        Ok(())
    }

    fn data(&mut self, data: &[u8], command: Command) -> Result<(), RelpError> {
        let bytes_max = match command {
            Command::Syslog => self.message_bytes_max,
            _ => OFFER_BYTES_MAX,
        };
        let (kept, cut) = data.split_at(data.len().min(bytes_max - self.partial.len()));
        self.partial.extend_from_slice(kept);
        self.truncated_bytes += cut.len();
        if command != Command::Syslog && self.truncated_bytes > 0 {
            Err(RelpError::TooLong)
        } else {
            Ok(())
        }
    }

    fn give(&mut self, number: u32, command: Command, take: &mut impl FnMut(RelpCommand<'_>)) {
        take(match command {
            Command::Open => RelpCommand::Open {
                number,
                is_syslog: offers_syslog(&self.partial),
            },
            Command::Syslog => RelpCommand::Message {
                number,
                bytes: &self.partial,
                truncated_bytes: self.truncated_bytes,
            },
            Command::Close => RelpCommand::Close { number },
            Command::Unknown => RelpCommand::Unknown { number },
        });
        self.partial.clear();
        self.truncated_bytes = 0;
    }
}

/// Number, command and length of a frame.
fn read_head(head: &[u8]) -> Option<(u32, Command, usize)> {
    let mut parts = head.split(|byte| *byte == b' ');
    let (number, name, length) = (parts.next()?, parts.next()?, parts.next()?);
    let is_name =
        (1..=COMMAND_BYTES_MAX).contains(&name.len()) && name.iter().all(u8::is_ascii_alphanumeric);
    let command = match name {
        b"open" => Command::Open,
        b"syslog" => Command::Syslog,
        b"close" => Command::Close,
        _ => Command::Unknown,
    };
    let (number, length) = (digits(number)?, digits(length)?);
    is_name.then_some((number, command, length as usize))
}

fn digits(text: &[u8]) -> Option<u32> {
    let is_number = (1..=DIGITS_MAX).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok()?;
    is_number.then(|| text.parse().ok())?
}

/// Whether the offers of a client name the command that is taken here.
fn offers_syslog(offers: &[u8]) -> bool {
    let lines = offers.split(|byte| *byte == b'\n');
    let commands = lines.filter_map(|line| line.trim_ascii().strip_prefix(b"commands="));
    let mut names = commands.flat_map(|names| names.split(|byte| *byte == b','));
    names.any(|name| name.trim_ascii() == b"syslog")
}

/// Appends the acknowledgement of a message.
pub fn write_ok(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{number} rsp 6 200 OK\n").as_bytes());
}

/// Appends the answer to [`RelpCommand::Open`].
pub fn write_opened(number: u32, out: &mut Vec<u8>) {
    let data = "200 OK\nrelp_version=0\nrelp_software=logpond\ncommands=syslog";
    out.extend_from_slice(format!("{number} rsp {} {data}\n", data.len()).as_bytes());
}

/// Appends a refusal: the client tries again, perhaps elsewhere.
pub fn write_refused(number: u32, reason: &str, out: &mut Vec<u8>) {
    let data = format!("500 {}", reason.replace('\n', " "));
    out.extend_from_slice(format!("{number} rsp {} {data}\n", data.len()).as_bytes());
}

/// Appends the answer to [`RelpCommand::Close`].
pub fn write_closed(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{number} rsp 0\n0 serverclose 0\n").as_bytes());
}

/// Appends the hint that the server ends the session.
pub fn write_server_close(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0 serverclose 0\n");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is in a stream that comes in chunks of this size, and how it ends.
    fn read(input: &[u8], chunk: usize, bytes_max: usize) -> (Vec<String>, Option<RelpError>) {
        let mut splitter = RelpSplitter::new(bytes_max);
        let mut found = Vec::new();
        for part in input.chunks(chunk) {
            let fed = splitter.feed(part, |sent| {
                found.push(match sent {
                    RelpCommand::Message {
                        number,
                        bytes,
                        truncated_bytes,
                    } => format!("{number} {} {truncated_bytes}", bytes.escape_ascii()),
                    other => format!("{other:?}"),
                });
            });
            assert!(splitter.held_bytes() <= bytes_max.max(OFFER_BYTES_MAX));
            if let Err(error) = fed {
                return (found, Some(error));
            }
        }
        (found, None)
    }

    /// What librelp sends.
    const SESSION: &[u8] = b"1 open 86 relp_version=0\nrelp_software=librelp,1.11.0,http://librelp.adiscon.com\ncommands=syslog\n\
        2 syslog 11 <13>a hello\n3 syslog 6 <13>\nb\n4 syslog 0\n5 syslog 20 <13>longer than that\n\
        6 starttls 0\n7 close 0\n999999999 close 0 \n";

    #[test]
    fn a_session_is_read_in_chunks_of_any_size() {
        let expected = [
            "Open { number: 1, is_syslog: true }",
            "2 <13>a hello 0",
            "3 <13>\\nb 0",
            "4  0",
            "5 <13>longer t 8",
            "Unknown { number: 6 }",
            "Close { number: 7 }",
            "Close { number: 999999999 }",
        ];
        for chunk in [1, 2, 7, SESSION.len()] {
            let (found, error) = read(SESSION, chunk, 12);
            assert_eq!((&found[..], error), (&expected.map(String::from)[..], None));
        }
    }

    #[test]
    fn what_is_no_frame_ends_the_session() {
        let long = format!("1 open 9000 {}\n", "x".repeat(9000));
        let table: [(&[u8], RelpError); 11] = [
            (b"<13>hello there\n", RelpError::Head),
            (b"GET / HTTP/1.1\r\n", RelpError::Head),
            (b"\n", RelpError::Head),
            (b"1\n", RelpError::Head),
            (b"1 syslog\n", RelpError::Head),
            (b"1 syslog x y\n", RelpError::Head),
            (b"1234567890 syslog 1 x\n", RelpError::Head),
            (b"1 sys-log 1 x\n", RelpError::Head),
            (b"1 syslog 5\n", RelpError::Head),
            (b"1 syslog 1 xy\n", RelpError::End),
            (long.as_bytes(), RelpError::TooLong),
        ];
        for (input, error) in table {
            for chunk in [1, input.len()] {
                let (found, ended) = read(input, chunk, 1000);
                assert_eq!(
                    (found.len(), ended),
                    (0, Some(error)),
                    "{}",
                    input.escape_ascii()
                );
            }
        }
        let endless = vec![b'1'; 1000];
        assert_eq!(read(&endless, 1, 10).1, Some(RelpError::Head));
    }

    #[test]
    fn only_syslog_is_offered_back() {
        for (offers, is_syslog) in [
            ("commands=syslog", true),
            ("relp_version=0\ncommands=eventlog, syslog", true),
            ("commands=eventlog", false),
            ("", false),
        ] {
            assert_eq!(offers_syslog(offers.as_bytes()), is_syslog, "{offers}");
        }
        let mut out = Vec::new();
        write_opened(1, &mut out);
        write_ok(2, &mut out);
        write_refused(3, "no\nroom", &mut out);
        write_closed(4, &mut out);
        let said = String::from_utf8(out).unwrap();
        assert_eq!(
            said,
            "1 rsp 59 200 OK\nrelp_version=0\nrelp_software=logpond\ncommands=syslog\n\
             2 rsp 6 200 OK\n3 rsp 11 500 no room\n4 rsp 0\n0 serverclose 0\n"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_alike_in_any_chunks(
            input in prop::collection::vec(prop_oneof![any::<u8>(), Just(b' '), Just(b'1'), Just(b'\n')], 0..80),
            chunk in 1usize..20,
        ) {
            prop_assert_eq!(read(&input, chunk, 20), read(&input, input.len().max(1), 20));
        }
    }
}
