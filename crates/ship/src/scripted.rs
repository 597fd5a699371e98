//! A server for tests that answers as a script says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use logpond_client::Address;

/// An answer of a scripted server: the beginning of the expected request, the status with further headers, the body.
pub(crate) type Answer = (&'static str, &'static str, String);

/// A server that gives these answers, each over a connection of its own. Its thread gives the requests, of compressed
/// ones the head alone in full.
pub(crate) fn scripted(answers: Vec<Answer>) -> (Address, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::parse(&listener.local_addr().unwrap().to_string()).unwrap();
    let thread = std::thread::spawn(move || {
        let mut requests = Vec::new();
        for (expected, status, body) in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let start = head.len();
                assert_ne!(
                    reader.read_line(&mut head).unwrap(),
                    0,
                    "{expected}: {head}"
                );
                if let Some(value) = head[start..].to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut text = vec![0; length];
            reader.read_exact(&mut text).unwrap();
            assert!(head.starts_with(expected), "{expected}: {head}");
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
            requests.push(head + &String::from_utf8_lossy(&text));
        }
        requests
    });
    (address, thread)
}
