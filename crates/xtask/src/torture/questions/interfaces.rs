//! Interfaces that are queried beside the native one: a file for each, and a row of [`INTERFACES`].
//!
//! Each answer is judged as one of the native interface is. An answer that a node refuses as incomplete
//! counts as an incomplete one without rows.

mod elasticsearch;
mod logql;
mod mcp;
mod postgres;
mod sql;
mod tail;
mod websocket;

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;
use std::ops::Range;

use serde_json::Value;

use super::{ANSWER_TIMEOUT, CONNECT_TIMEOUT, Told, Trailer};
use crate::e2e::http;
use crate::run::Outcome;
use crate::torture::Run;
use crate::torture::history::{Client, Place, QueryResult};
use crate::torture::load::value;
use crate::torture::patience::patient;

pub(crate) use postgres::PORT as POSTGRES_PORT;

/// All interfaces. Some need a program with the feature `sql`.
pub(crate) const INTERFACES: [Interface; 10] = [
    elasticsearch::SEARCH,
    elasticsearch::COUNT,
    logql::LINES,
    logql::NUMBER,
    mcp::SEARCH,
    mcp::COUNT,
    postgres::ROWS,
    sql::ROWS,
    sql::COUNT,
    tail::LINES,
];

/// An interface.
#[derive(Clone, Copy)]
pub(crate) struct Interface {
    pub(crate) name: &'static str,
    /// True if one request gives all rows, so that none may be there twice even in an incomplete answer.
    pub(crate) is_one_view: bool,
    /// True if an answer can be complete.
    pub(crate) can_be_complete: bool,
    /// Asks once.
    pub(super) ask: fn(&mut Inquiry<'_>) -> Told,
}

/// A question about records of a client.
pub(super) struct Inquiry<'a> {
    pub(super) run: &'a Run,
    pub(super) client: Client,
    /// The numbers of the records. A count is of all records of the client.
    pub(super) range: Range<u64>,
    /// The node that was asked last.
    pub(super) place: Place,
    /// The node for the next page.
    pub(super) whom: &'a mut dyn FnMut() -> Place,
}

impl Inquiry<'_> {
    /// The name of the client.
    fn name(&self) -> &str {
        &self.run.clients[self.client].name
    }

    /// The address of the HTTP listener of the node.
    fn address(&self) -> String {
        self.run.processes[self.place].http()
    }

    /// Sends a request; the status and the body.
    fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Outcome<(u16, String)> {
        let address = self.address();
        let failed = |e: std::io::Error| format!("{address}{target}: {e}");
        let client = http::Client::connect_within(
            &address,
            patient(CONNECT_TIMEOUT),
            patient(ANSWER_TIMEOUT),
        );
        let mut client = client.map_err(failed)?;
        let answer = client.send(method, target, headers, body.as_bytes());
        let answer = answer.map_err(failed)?;
        Ok((answer.status, answer.text().map_err(failed)?))
    }

    /// An answer of one number.
    fn count(&self, count: u64, trailer: Trailer) -> Told {
        let counts = BTreeMap::from([(self.client, count)]);
        Ok((QueryResult::Counts(counts), trailer))
    }
}

/// The rows of an answer.
#[derive(Default)]
struct Rows {
    numbers: Vec<u64>,
    altered: Vec<u64>,
}

/// The values of a row, as texts.
struct Row<'a> {
    client: &'a str,
    number: &'a str,
    value: &'a str,
    /// None if the interface gives the whole line instead.
    message: Option<&'a str>,
}

impl Rows {
    fn add(&mut self, inquiry: &Inquiry<'_>, row: &Row<'_>) -> Outcome<()> {
        let number = row.number.parse();
        let number = number.map_err(|_| format!("a row has no number: {}", row.number))?;
        let is_right = row.client == inquiry.name()
            && row.value == value(inquiry.client, number)
            && row.message.is_none_or(|message| message == "torture")
            && inquiry.range.contains(&number);
        if !is_right {
            self.altered.push(number);
        }
        self.numbers.push(number);
        Ok(())
    }

    /// Adds a row with its fields as members of an object.
    fn add_object(&mut self, inquiry: &Inquiry<'_>, row: &Value, message: &str) -> Outcome<()> {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let row = Row {
            client: &text("client"),
            number: &row["n"].to_string(),
            value: &text("v"),
            message: Some(&text(message)),
        };
        self.add(inquiry, &row)
    }

    fn answer(self, trailer: Trailer) -> Told {
        let Rows { numbers, altered } = self;
        Ok((QueryResult::Rows { numbers, altered }, trailer))
    }
}

/// A complete answer.
fn complete() -> Trailer {
    Trailer {
        is_complete: true,
        ..Trailer::default()
    }
}

/// An answer that lacks records. All further pages are missing as well, so nothing is said of the rest.
fn incomplete(why: impl Into<String>) -> Trailer {
    Trailer {
        missing: vec![why.into()],
        is_missing_cut: true,
        ..Trailer::default()
    }
}

/// Connects over TCP, for protocols beside HTTP.
fn connect(address: &str) -> io::Result<TcpStream> {
    let parsed = address.parse().map_err(io::Error::other)?;
    let stream = TcpStream::connect_timeout(&parsed, patient(CONNECT_TIMEOUT))?;
    stream.set_read_timeout(Some(patient(ANSWER_TIMEOUT)))?;
    stream.set_write_timeout(Some(patient(ANSWER_TIMEOUT)))?;
    Ok(stream)
}

fn parse(text: &str) -> Outcome<Value> {
    serde_json::from_str(text).map_err(|e| format!("{e}: {text}"))
}
