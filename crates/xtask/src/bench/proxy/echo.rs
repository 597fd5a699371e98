//! The application behind the proxies: an HTTP/1.1 server of one thread that sends bodies back.
//!
//! `POST` is answered with its body, `GET /N` with a body of N bytes. It knows neither pipelining
//! nor chunks. It runs as a process of its own, so that its CPU can be told from the client's, and
//! ends when its standard input does.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;

use mio::event::Source;
use mio::net::{TcpListener, UnixListener};
use mio::{Events, Interest, Poll, Token};

use super::message::head;
use crate::run::Outcome;

/// Bytes read at once.
const READ_BYTES: usize = 128 << 10;

/// Events taken at once.
const EVENTS: usize = 256;

/// The most that is asked for in a body.
const BODY_BYTES_MAX: usize = 16 << 20;

/// The token of the listener; connections have their numbers.
const LISTENER: Token = Token(usize::MAX);

/// A connection of either kind.
trait Duplex: Read + Write + Source {}
impl<T: Read + Write + Source> Duplex for T {}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// `unix:PATH` or `tcp:IP:PORT`.
    fn bind(place: &str) -> Outcome<Listener> {
        let bound = match place.split_once(':') {
            Some(("unix", path)) => UnixListener::bind(path).and_then(|listener| {
                // Some proxies serve as a user of fewer rights.
                fs::set_permissions(path, Permissions::from_mode(0o666))?;
                Ok(Listener::Unix(listener))
            }),
            Some(("tcp", address)) => {
                let address = address.parse().map_err(|e| format!("{place}: {e}"))?;
                TcpListener::bind(address).map(Listener::Tcp)
            }
            _ => return Err(format!("{place} is neither unix:PATH nor tcp:IP:PORT")),
        };
        bound.map_err(|e| format!("{place}: {e}"))
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Listener::Tcp(listener) => listener,
            Listener::Unix(listener) => listener,
        }
    }

    fn accept(&self) -> io::Result<Box<dyn Duplex>> {
        Ok(match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Listener::Unix(listener) => Box::new(listener.accept()?.0),
        })
    }
}

/// A connection with what has come in of a request and what is left of an answer.
struct EchoConnection {
    stream: Box<dyn Duplex>,
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
}

impl EchoConnection {
    /// Reads, answers and writes as far as it goes; false is its end.
    fn advance(&mut self, may_have_ended: bool, scratch: &mut [u8]) -> bool {
        loop {
            match self.stream.read(scratch) {
                Ok(0) => return false,
                Ok(count) => {
                    self.input.extend_from_slice(&scratch[..count]);
                    // More would be told of by another event; an end that was told of is not again.
                    if count < scratch.len() && !may_have_ended {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        self.answer().is_ok() && self.flush()
    }

    /// Answers the requests that are complete.
    fn answer(&mut self) -> Outcome<()> {
        while let Some(head) = head(&self.input)? {
            let end = head.bytes + head.body_bytes.min(BODY_BYTES_MAX);
            if self.input.len() < end {
                break;
            }
            let asked = head
                .first_line
                .strip_prefix("GET /")
                .and_then(|rest| rest.split(' ').next()?.parse().ok());
            let body_bytes =
                asked.map_or(head.body_bytes, |bytes: usize| bytes.min(BODY_BYTES_MAX));
            self.output.extend_from_slice(
                format!("HTTP/1.1 200 OK\r\nContent-Length: {body_bytes}\r\n\r\n").as_bytes(),
            );
            match asked {
                Some(_) => self.output.resize(self.output.len() + body_bytes, b'a'),
                None => self.output.extend_from_slice(&self.input[head.bytes..end]),
            }
            self.input.drain(..end);
        }
        Ok(())
    }

    /// Writes what is left as far as it is taken; false is its end.
    fn flush(&mut self) -> bool {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
        self.output.clear();
        self.written = 0;
        true
    }
}

/// Serves at `unix:PATH` or `tcp:IP:PORT` until standard input ends.
pub(crate) fn serve(place: &str) -> Outcome<()> {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    let listener = Listener::bind(place)?;
    Server::new(listener)
        .and_then(Server::run)
        .map_err(|e| format!("{place}: {e}"))
}

struct Server {
    poll: Poll,
    listener: Listener,
    served: Vec<Option<EchoConnection>>,
    free: Vec<usize>,
}

impl Server {
    fn new(mut listener: Listener) -> io::Result<Server> {
        let poll = Poll::new()?;
        poll.registry()
            .register(listener.source(), LISTENER, Interest::READABLE)?;
        Ok(Server {
            poll,
            listener,
            served: Vec::new(),
            free: Vec::new(),
        })
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        let mut scratch = vec![0; READ_BYTES];
        loop {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result?,
            }
            for event in &events {
                if event.token() == LISTENER {
                    self.accept()?;
                    continue;
                }
                let number = event.token().0;
                let Some(served) = self.served.get_mut(number).and_then(Option::as_mut) else {
                    continue;
                };
                let ended = event.is_read_closed() || event.is_error();
                let goes_on = if event.is_readable() || ended {
                    served.advance(ended, &mut scratch)
                } else {
                    served.flush()
                };
                if !goes_on {
                    self.served[number] = None;
                    self.free.push(number);
                }
            }
        }
    }

    /// Takes what waits.
    fn accept(&mut self) -> io::Result<()> {
        loop {
            let mut stream = match self.listener.accept() {
                Ok(stream) => stream,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(()),
                    ErrorKind::ConnectionAborted => continue,
                    _ => return Err(error),
                },
            };
            let number = self.free.pop().unwrap_or_else(|| {
                self.served.push(None);
                self.served.len() - 1
            });
            let both = Interest::READABLE | Interest::WRITABLE;
            let registry = self.poll.registry();
            registry.register(&mut stream, Token(number), both)?;
            self.served[number] = Some(EchoConnection {
                stream,
                input: Vec::new(),
                output: Vec::new(),
                written: 0,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::proxy::message::Exchange;

    /// A stream of bytes in memory that takes at most so many at once.
    struct Memory {
        input: io::Cursor<Vec<u8>>,
        output: std::rc::Rc<std::cell::RefCell<Vec<u8>>>,
        takes: usize,
    }

    impl Read for Memory {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.input.read(buffer)? {
                0 => Err(ErrorKind::WouldBlock.into()),
                count => Ok(count),
            }
        }
    }

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.takes);
            self.output.borrow_mut().extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Source for Memory {
        fn register(&mut self, _: &mio::Registry, _: Token, _: Interest) -> io::Result<()> {
            Ok(())
        }

        fn reregister(&mut self, _: &mio::Registry, _: Token, _: Interest) -> io::Result<()> {
            Ok(())
        }

        fn deregister(&mut self, _: &mio::Registry) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn bodies_come_back() {
        let mut requests = Exchange::Echo(5).request();
        requests.extend(Exchange::Download(3).request());
        let output = std::rc::Rc::default();
        let mut served = EchoConnection {
            stream: Box::new(Memory {
                input: io::Cursor::new(requests),
                output: std::rc::Rc::clone(&output),
                takes: 7,
            }),
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
        };
        // Buffers smaller than a head: what has come in is put together.
        assert!(served.advance(false, &mut [0; 16]));
        while !served.input.is_empty() || output.borrow().len() < 80 {
            assert!(served.advance(false, &mut [0; 16]));
        }
        let expected = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\naaaaa\
                        HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\naaa";
        assert_eq!(String::from_utf8_lossy(&output.borrow()), expected);
    }

    #[test]
    fn it_listens_only_where_it_can() {
        assert!(Listener::bind("/tmp/socket").is_err());
        assert!(Listener::bind("tcp:localhost").is_err());
    }
}
