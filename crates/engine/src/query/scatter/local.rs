//! This node's own share: the same bytes as from another node, through memory.

use std::io::{self, Read};
use std::sync::Arc;
use std::thread;

use hyper::body::{Buf, Bytes};
use tokio::sync::mpsc::Receiver;

use super::super::output::Output;
use super::super::pond::LocalEngine;
use super::Unreachable;
use logpond_host::shutdown::Shutdown;

/// Asks this node; the answer is made on a thread of its own while it is read.
pub(super) fn ask(
    engine: &Arc<LocalEngine>,
    question: Vec<u8>,
    shutdown: Shutdown,
) -> Result<Box<dyn Read + Send>, Unreachable> {
    let (mut out, chunks) = Output::new(shutdown);
    let engine = Arc::clone(engine);
    let answer = move || {
        // This process has encoded the question; that there is no receipt says the rest.
        if let Ok(question) = LocalEngine::read_question(&question) {
            engine.answer_node(&question, &mut out);
        }
    };
    let spawned = thread::Builder::new()
        .name("lp-share".to_owned())
        .spawn(answer);
    match spawned {
        Ok(_) => Ok(Box::new(Chunks {
            chunks,
            current: Bytes::new(),
        })),
        Err(error) => Err(Unreachable {
            why: format!("the system gives no thread: {error}"),
        }),
    }
}

/// Reads chunks as they come.
struct Chunks {
    chunks: Receiver<Bytes>,
    current: Bytes,
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            // What was read counts as on its way as long as it is held, and the next chunk may wait for that.
            self.current = Bytes::new();
            match self.chunks.blocking_recv() {
                Some(chunk) => self.current = chunk,
                None => return Ok(0),
            }
        }
        let count = self.current.len().min(buffer.len());
        self.current.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::super::super::output::WAITING_BYTES_MAX;
    use super::*;
    use logpond_host::shutdown;

    #[test]
    fn a_chunk_that_was_read_does_not_hold_up_the_next_one() {
        let (_stopper, shutdown) = shutdown::pair();
        let (mut out, chunks) = Output::new(shutdown);
        // Two do not fit at a time.
        let bytes = WAITING_BYTES_MAX / 2 + 1;
        let writer = thread::spawn(move || {
            for _ in 0..3 {
                out.append(|chunk| chunk.resize(bytes, b'x')).unwrap();
                out.flush().unwrap();
            }
        });
        let (sender, read) = channel();
        thread::spawn(move || {
            let current = Bytes::new();
            let mut read = Vec::new();
            let result = Chunks { chunks, current }.read_to_end(&mut read);
            sender.send(result.map(|_| read.len()))
        });
        let read = read.recv_timeout(Duration::from_secs(60));
        assert_eq!(read.unwrap().unwrap(), 3 * bytes);
        writer.join().unwrap();
    }
}
