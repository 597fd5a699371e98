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
