//! Connections that are waited for together.

use std::io::ErrorKind;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};

use super::Destination;
use super::connection::{Connection, EventOutcome};
use crate::run::Outcome;

/// Bytes read at once, of all connections.
const READ_BYTES: usize = 128 << 10;

/// Events taken at once.
const EVENTS: usize = 256;

/// How long events are waited for before the clock is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Connections by number.
pub(super) struct Crowd {
    poll: Poll,
    events: Events,
    scratch: Vec<u8>,
    members: Vec<Option<Connection>>,
}

impl Crowd {
    /// Without anybody.
    pub(super) fn new() -> Outcome<Crowd> {
        Ok(Crowd {
            poll: Poll::new().map_err(|e| e.to_string())?,
            events: Events::with_capacity(EVENTS),
            scratch: vec![0; READ_BYTES],
            members: Vec::new(),
        })
    }

    /// How many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Opens a connection that asks for something; gives its number.
    pub(super) fn add(&mut self, destination: &Destination, request: &[u8]) -> Outcome<usize> {
        let number = self.members.len();
        self.members.push(None);
        self.replace(number, destination, request)?;
        Ok(number)
    }

    /// The same in the place of another one.
    pub(super) fn replace(
        &mut self,
        number: usize,
        destination: &Destination,
        request: &[u8],
    ) -> Outcome<()> {
        let mut connection = Connection::open(destination)?;
        let both = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        registry
            .register(&mut connection.stream, Token(number), both)
            .map_err(|e| e.to_string())?;
        connection.ask(request)?;
        self.members[number] = Some(connection);
        Ok(())
    }

    /// A connection that is there.
    pub(super) fn get(&mut self, number: usize) -> Outcome<&mut Connection> {
        let member = self.members.get_mut(number).and_then(Option::as_mut);
        member.ok_or_else(|| format!("no connection {number}"))
    }

    /// Waits a moment for events, and gives what they have brought, by numbers.
    pub(super) fn turn(&mut self, brought: &mut Vec<(usize, EventOutcome)>) -> Outcome<()> {
        brought.clear();
        match self.poll.poll(&mut self.events, Some(LOOK)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            result => result.map_err(|e| e.to_string())?,
        }
        for event in &self.events {
            let number = event.token().0;
            let Some(Some(connection)) = self.members.get_mut(number) else {
                continue;
            };
            let tells_of_end = event.is_read_closed() || event.is_error();
            let what = connection.advance(tells_of_end, &mut self.scratch)?;
            if what.answer || what.end {
                brought.push((number, what));
            }
        }
        Ok(())
    }
}
