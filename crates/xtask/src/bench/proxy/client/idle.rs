//! Connections that have asked once and stay.

use std::time::Instant;

use super::crowd::Crowd;
use super::{Destination, PATIENCE};
use crate::bench::proxy::message::Exchange;
use crate::run::Outcome;

/// Handshakes at a time: fewer than any listener lets wait.
const AT_A_TIME: usize = 64;

/// Open connections.
pub(in crate::bench::proxy) struct Idle {
    crowd: Crowd,
    destination: Destination,
}

impl Idle {
    /// None yet.
    pub(in crate::bench::proxy) fn new(destination: Destination) -> Outcome<Idle> {
        Ok(Idle {
            crowd: Crowd::new()?,
            destination,
        })
    }

    /// Opens more until there are so many, and each has had an answer.
    ///
    /// # Errors
    ///
    /// If one ends, or no answers come.
    pub(in crate::bench::proxy) fn grow(
        &mut self,
        count: usize,
        exchange: Exchange,
    ) -> Outcome<()> {
        let request = exchange.request();
        let mut waiting = 0;
        let mut brought = Vec::new();
        let mut last = Instant::now();
        while waiting > 0 || self.crowd.len() < count {
            while waiting < AT_A_TIME && self.crowd.len() < count {
                self.crowd.add(&self.destination, &request)?;
                waiting += 1;
            }
            self.crowd.turn(&mut brought)?;
            if brought.iter().any(|(_, what)| what.end) {
                return Err("an idle connection was ended by the server".into());
            }
            waiting -= brought.len();
            if !brought.is_empty() {
                last = Instant::now();
            } else if last.elapsed() > PATIENCE {
                return Err("no answers come".into());
            }
        }
        Ok(())
    }
}
