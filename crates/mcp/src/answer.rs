//! An answer of the server, read: rows, and if they are all.

use std::io::Cursor;

use logpond_client::{Answer, Item, Trailer, exact};
use serde_json::Value;

use super::server::{RawAnswer, Refusal};

/// Rows with what the server said about them.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The rows.
    pub(crate) rows: Vec<Value>,
    /// The end of the answer; `None` if it was cut or broke off before it.
    pub(crate) trailer: Option<Trailer>,
}

impl Rows {
    /// Reads lines of JSON up to their trailer.
    pub(crate) fn read(raw: RawAnswer) -> Result<Rows, Refusal> {
        let mut read = Rows::default();
        let mut answer = Answer::new(Box::new(Cursor::new(raw.bytes)));
        loop {
            match answer.next_item() {
                Ok(Item::Row(line)) => match exact::from_slice(line) {
                    Ok(row) => read.rows.push(row),
                    // The last line of a cut answer ends anywhere.
                    Err(_) if raw.is_cut => return Ok(read),
                    Err(error) => return Err(nonsense(&error)),
                },
                Ok(Item::Trailer(trailer)) => {
                    read.trailer = Some(trailer);
                    return Ok(read);
                }
                Ok(Item::Gap | Item::Progress(_) | Item::Position(_) | Item::Notice(_)) => {}
                // It broke off: the caller learns that something is missing.
                Err(_) => return Ok(read),
            }
        }
    }
}

/// Reads an answer that is one JSON value.
pub(crate) fn value(raw: &RawAnswer) -> Result<Value, Refusal> {
    if raw.is_cut {
        let message = "the answer is too long: ask for fewer rows or a shorter range";
        return Err(Refusal {
            code: "answer_too_long".to_owned(),
            message: message.to_owned(),
        });
    }
    exact::from_slice(&raw.bytes).map_err(|error| nonsense(&error))
}

fn nonsense(error: &serde_json::Error) -> Refusal {
    Refusal {
        code: "no_answer".to_owned(),
        message: format!("the answer makes no sense: {error}"),
    }
}
