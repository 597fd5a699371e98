//! A small HTTP/1.1 client: one connection, requests one after another, bodies as streams.
//!
//! It exists so that tests and measurements see what is on the wire: partial answers, refused
//! connections and stalls are visible here, and no pool or retry hides them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long a read may wait. Longer means that the server hangs.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// The longest header line that is taken.
const HEADER_BYTES_MAX: u64 = 64 << 10;

/// A connection to a server.
pub(crate) struct Client {
    address: String,
    stream: BufReader<TcpStream>,
}

/// What came back, with the body still to be read.
pub(crate) struct Response<'a> {
    /// The status code.
    pub(crate) status: u16,
    /// Names in lower case, and values.
    pub(crate) headers: Vec<(String, String)>,
    body: Body<'a>,
}

/// How the end of the body is known.
enum Framing {
    Length(u64),
    /// Bytes left of this chunk; `None` before the first.
    Chunked(Option<u64>),
    Ended,
    Close,
}

struct Body<'a> {
    stream: &'a mut BufReader<TcpStream>,
    framing: Framing,
}

impl Client {
    /// Connects to `HOST:PORT`.
    pub(crate) fn connect(address: &str) -> io::Result<Client> {
        Client::new(address, TcpStream::connect(address)?, READ_TIMEOUT)
    }

    /// Connects to `IP:PORT` within a time; reading and writing may wait as long as is given.
    pub(crate) fn connect_within(
        address: &str,
        connecting: Duration,
        waiting: Duration,
    ) -> io::Result<Client> {
        let parsed = address.parse().map_err(io::Error::other)?;
        let stream = TcpStream::connect_timeout(&parsed, connecting)?;
        Client::new(address, stream, waiting)
    }

    fn new(address: &str, stream: TcpStream, waiting: Duration) -> io::Result<Client> {
        stream.set_read_timeout(Some(waiting))?;
        stream.set_write_timeout(Some(waiting))?;
        stream.set_nodelay(true)?;
        Ok(Client {
            address: address.to_string(),
            stream: BufReader::new(stream),
        })
    }

    /// The connection's own port.
    pub(crate) fn local_port(&self) -> io::Result<u16> {
        Ok(self.stream.get_ref().local_addr()?.port())
    }

    /// Sends a request and reads the head of the answer. `headers` are extra.
    pub(crate) fn send(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response<'_>> {
        let mut head = format!("{method} {target} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if method != "GET" {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        self.read_head()
    }

    fn read_head(&mut self) -> io::Result<Response<'_>> {
        let first = read_line(&mut self.stream)?;
        let status = first
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .ok_or_else(|| io::Error::other(format!("no status in {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = read_line(&mut self.stream)?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
        }
        let header = |wanted: &str| {
            let found = headers.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.as_str())
        };
        let length = header("content-length").and_then(|l| l.parse().ok());
        let framing = match (header("transfer-encoding"), length) {
            (Some("chunked"), _) => Framing::Chunked(None),
            (_, Some(0)) => Framing::Ended,
            (_, Some(length)) => Framing::Length(length),
            _ if status == 204 => Framing::Ended,
            _ => Framing::Close,
        };
        let body = Body {
            stream: &mut self.stream,
            framing,
        };
        Ok(Response {
            status,
            headers,
            body,
        })
    }
}

impl Response<'_> {
    /// The rest of the body.
    pub(crate) fn bytes(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The rest of the body as text; bytes that are not UTF-8 are replaced.
    pub(crate) fn text(self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }
}

impl Read for Response<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.body.read(buffer)
    }
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if let Framing::Chunked(None | Some(0)) = self.framing {
            self.next_chunk()?;
        }
        let limit = match self.framing {
            Framing::Ended => return Ok(0),
            Framing::Close => buffer.len() as u64,
            Framing::Length(left) | Framing::Chunked(Some(left)) => left.min(buffer.len() as u64),
            Framing::Chunked(None) => return Err(io::Error::other("no chunk")),
        };
        let count = self.stream.read(&mut buffer[..limit as usize])?;
        match &mut self.framing {
            Framing::Length(left) | Framing::Chunked(Some(left)) => {
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                *left -= count as u64;
            }
            _ => {}
        }
        if let Framing::Length(0) = self.framing {
            self.framing = Framing::Ended;
        }
        Ok(count)
    }
}

impl Body<'_> {
    /// Reads the head of the next chunk, or the end of the body.
    fn next_chunk(&mut self) -> io::Result<()> {
        if let Framing::Chunked(Some(0)) = self.framing {
            read_line(self.stream)?;
        }
        let head = read_line(self.stream)?;
        let digits = head.split(';').next().unwrap_or_default().trim();
        let length = u64::from_str_radix(digits, 16)
            .map_err(|_| io::Error::new(io::ErrorKind::UnexpectedEof, "the body broke off"))?;
        self.framing = Framing::Chunked(Some(length));
        if length == 0 {
            while !read_line(self.stream)?.is_empty() {}
            self.framing = Framing::Ended;
        }
        Ok(())
    }
}

/// A line without its end. An empty line is also what a closed connection gives.
fn read_line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = Vec::new();
    stream.take(HEADER_BYTES_MAX).read_until(b'\n', &mut line)?;
    let text = String::from_utf8_lossy(&line);
    Ok(text.trim_end_matches(['\r', '\n']).to_string())
}

/// A text as part of a URL's query.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b':' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
