//! A new connection for each request, ended by the client as soon as it has its answer.

use std::time::Instant;

use super::crowd::Crowd;
use super::{AtEdge, Edge, Load, PATIENCE};
use crate::run::Outcome;

/// What came of a load of connections.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::bench::proxy) struct Handshakes {
    /// Connections that were over in the time that counts.
    pub(in crate::bench::proxy) count: u64,
    /// Of these, how many had resumed a session.
    pub(in crate::bench::proxy) resumed: u64,
    /// How long was counted.
    pub(in crate::bench::proxy) seconds: f64,
}

/// Opens connections for as long as the load says; warming up counts from the first answer.
///
/// # Errors
///
/// If a connection breaks before its answer, or nothing happens.
pub(in crate::bench::proxy) fn shake_hands(load: &Load, at_edge: AtEdge) -> Outcome<Handshakes> {
    let request = load.exchange.request();
    let mut crowd = Crowd::new()?;
    // The first one alone: it brings what others resume.
    crowd.add(&load.destination, &request)?;
    // Of each connection's answer: whether the session was resumed.
    let mut answered: Vec<Option<bool>> = vec![None; load.connections];
    let mut begin = None;
    let mut counts = false;
    let mut done = Handshakes::default();
    let mut last = Instant::now();
    let mut brought = Vec::new();
    loop {
        crowd.turn(&mut brought)?;
        for (number, what) in &brought {
            if what.answer {
                let connection = crowd.get(*number)?;
                answered[*number] = Some(connection.is_resumed() == Some(true));
                connection.end()?;
            }
            if what.end {
                let Some(resumed) = answered[*number].take() else {
                    return Err("a connection ended before its answer".into());
                };
                done.count += u64::from(counts);
                done.resumed += u64::from(counts && resumed);
                crowd.replace(*number, &load.destination, &request)?;
            }
        }
        let now = Instant::now();
        if !brought.is_empty() {
            last = now;
        } else if now - last > PATIENCE {
            return Err("connections neither answer nor end".into());
        }
        match begin {
            None if answered[0].is_some() => {
                while crowd.len() < load.connections {
                    crowd.add(&load.destination, &request)?;
                }
                begin = Some(now + load.warm_up);
            }
            Some(start) if !counts && now >= start => {
                at_edge(Edge::Begin)?;
                counts = true;
                begin = Some(Instant::now());
            }
            Some(start) if counts && now >= start + load.duration => {
                done.seconds = (now - start).as_secs_f64();
                at_edge(Edge::End)?;
                return Ok(done);
            }
            _ => (),
        }
    }
}
