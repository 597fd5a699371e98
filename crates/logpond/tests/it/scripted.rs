//! A server that gives prepared answers, to see what a command asks and does with them.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// One prepared answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// Whether the body ends as it should; if not, the connection just closes.
    pub(crate) is_whole: bool,
}

/// An answer with success.
pub(crate) fn ok(body: &str) -> Answer {
    Answer {
        status: 200,
        body: body.to_string(),
        is_whole: true,
    }
}

/// A running server; it gives its answers in order and then goes away.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Method and target of each request.
    pub(crate) asked: Receiver<String>,
}

impl Server {
    pub(crate) fn start(answers: Vec<Answer>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, asked) = channel();
        std::thread::spawn(move || {
            for answer in answers {
                let (stream, _) = listener.accept().unwrap();
                let _ = sender.send(request(&stream));
                // A client may go away in the middle: that is its right.
                let _ = give(&stream, &answer);
            }
        });
        Server { address, asked }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn request(stream: &TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines().map(|line| line.unwrap());
    let first = lines.next().unwrap();
    lines.find(|line| line.is_empty());
    first.strip_suffix(" HTTP/1.1").unwrap().to_string()
}

fn give(mut stream: &TcpStream, answer: &Answer) -> std::io::Result<()> {
    let Answer { status, body, .. } = answer;
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    )?;
    if !body.is_empty() {
        write!(stream, "{:x}\r\n{body}\r\n", body.len())?;
    }
    if answer.is_whole {
        write!(stream, "0\r\n\r\n")?;
    }
    // The rest of the request may come after its head. Closed before it is read, the connection is reset, and the
    // answer may be lost.
    stream.shutdown(Shutdown::Write)?;
    std::io::copy(&mut stream, &mut std::io::sink()).map(drop)
}
