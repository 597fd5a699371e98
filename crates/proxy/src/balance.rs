//! Connections are divided among workers by the system, which knows nothing of how long they last: a
//! worker that has many more than the others hands new ones on.

use std::sync::atomic::{AtomicUsize, Ordering};

use std::net::SocketAddr;

use tokio::net::TcpStream;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Connections that wait for a worker that they were handed to; further ones stay where they are.
const HANDED_MAX: usize = 64;

/// So many connections more than the mean are nothing to be mended.
const MARGIN: usize = 8;

/// A connection that was accepted, on its way.
#[derive(Debug)]
pub(crate) struct AcceptedConnection {
    pub(crate) stream: std::net::TcpStream,
    pub(crate) peer: SocketAddr,
    /// Of which frontend.
    pub(crate) frontend: usize,
}

/// How many connections each worker has, and the ways to them.
#[derive(Debug)]
pub(crate) struct Balance {
    active: Vec<AtomicUsize>,
    ways: Vec<Sender<AcceptedConnection>>,
}

impl Balance {
    /// Gives the ends of the ways, too, one for each worker.
    pub(crate) fn new(workers: usize) -> (Balance, Vec<Receiver<AcceptedConnection>>) {
        let (ways, ends) = (0..workers).map(|_| channel(HANDED_MAX)).unzip();
        let active = (0..workers).map(|_| AtomicUsize::new(0)).collect();
        (Balance { active, ways }, ends)
    }

    pub(crate) fn begin(&self, worker: usize) {
        self.active[worker].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, worker: usize) {
        self.active[worker].fetch_sub(1, Ordering::Relaxed);
    }

    /// Hands a connection on if this worker has too many; gives it back if it is to stay.
    pub(crate) fn hand_on(
        &self,
        worker: usize,
        stream: TcpStream,
        peer: SocketAddr,
        frontend: usize,
    ) -> Option<TcpStream> {
        let active = self.active.iter().map(|one| one.load(Ordering::Relaxed));
        let Some(other) = better(worker, active) else {
            return Some(stream);
        };
        // Where there is no room, it stays.
        let Ok(permit) = self.ways[other].try_reserve() else {
            return Some(stream);
        };
        match stream.into_std() {
            Ok(stream) => permit.send(AcceptedConnection {
                stream,
                peer,
                frontend,
            }),
            // The loop does not let go of it: nobody can serve it.
            Err(_) => drop(permit),
        }
        None
    }
}

/// The worker with the fewest connections, if this one has many more than the mean.
fn better(worker: usize, active: impl ExactSizeIterator<Item = usize> + Clone) -> Option<usize> {
    let workers = active.len();
    if workers < 2 {
        return None;
    }
    let sum: usize = active.clone().sum();
    let own = active.clone().nth(worker)?;
    let mean = sum / workers;
    if own <= mean + mean / 8 + MARGIN {
        return None;
    }
    let least = active.enumerate().min_by_key(|(_, active)| *active);
    least.map(|(worker, _)| worker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_many_more_hands_on() {
        let better = |worker, active: &[usize]| better(worker, active.iter().copied());
        assert_eq!(better(0, &[100]), None);
        assert_eq!(better(0, &[0, 0]), None);
        assert_eq!(better(0, &[16, 0]), None);
        assert_eq!(better(0, &[19, 0]), Some(1));
        assert_eq!(better(1, &[19, 0]), None);
        assert_eq!(better(2, &[5, 3, 100, 4]), Some(1));
        assert_eq!(better(2, &[100, 101, 120, 100]), None);
        assert_eq!(better(0, &[1000, 900, 1000, 1000]), None);
        assert_eq!(better(0, &[1200, 900, 1000, 1000]), Some(1));
    }
}
