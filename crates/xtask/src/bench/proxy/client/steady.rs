//! Connections that are kept, and ask again as soon as they have an answer.

use std::time::Instant;

use super::crowd::Crowd;
use super::{AtEdge, Edge, Load, PATIENCE};
use crate::run::Outcome;

/// The outcome of a load.
pub(in crate::bench::proxy) struct LoadOutcome {
    /// How long was counted.
    pub(in crate::bench::proxy) seconds: f64,
    /// Of each answer, in the order in which they came.
    pub(in crate::bench::proxy) latencies_us: Vec<u32>,
}

/// Asks for as long as the load says.
///
/// # Errors
///
/// If a connection breaks, an answer is none, or none comes.
pub(in crate::bench::proxy) fn keep_asking(load: &Load, at_edge: AtEdge) -> Outcome<LoadOutcome> {
    let request = load.exchange.request();
    let mut crowd = Crowd::new()?;
    for _ in 0..load.connections {
        crowd.add(&load.destination, &request)?;
    }
    let mut has_answer = vec![false; crowd.len()];
    let mut without_answer = crowd.len();
    let mut begin = None;
    let mut took = LoadOutcome {
        seconds: 0.0,
        latencies_us: Vec::new(),
    };
    let mut counts = false;
    let mut last_answer = Instant::now();
    let mut brought = Vec::new();
    loop {
        crowd.turn(&mut brought)?;
        for (number, what) in &brought {
            if what.end {
                return Err("a connection was ended by the server".into());
            }
            let connection = crowd.get(*number)?;
            if counts {
                took.latencies_us.push(connection.latency_us);
            }
            connection.ask(&request)?;
            without_answer -= usize::from(!std::mem::replace(&mut has_answer[*number], true));
        }
        let now = Instant::now();
        if !brought.is_empty() {
            last_answer = now;
        } else if now - last_answer > PATIENCE {
            return Err("no answers come".into());
        }
        match begin {
            None if without_answer == 0 => begin = Some(now + load.warm_up),
            Some(start) if !counts && now >= start => {
                at_edge(Edge::Begin)?;
                counts = true;
                begin = Some(Instant::now());
            }
            Some(start) if counts && now >= start + load.duration => {
                took.seconds = (now - start).as_secs_f64();
                at_edge(Edge::End)?;
                return Ok(took);
            }
            _ => (),
        }
    }
}
