//! The outcome of a batch on its way back to who submitted it.

use logpond_record::Id;
use tokio::sync::oneshot;

use super::rules::Reservation;
use super::{Acknowledgement, Answer, IngestError};

/// Where the outcome of a batch is told, and what rules count then.
///
/// Invariant: what rules took is counted if the batch was written, and given back in any other case,
/// also if nobody waits for the outcome any more.
pub(super) struct Reply {
    sender: oneshot::Sender<Result<Acknowledgement, IngestError>>,
    reservation: Option<Box<Reservation>>,
}

impl Reply {
    /// A reply, and where it arrives.
    pub(super) fn new(reservation: Option<Reservation>) -> (Reply, Answer) {
        let (sender, answer) = oneshot::channel();
        let reply = Reply {
            sender,
            reservation: reservation.map(Box::new),
        };
        (reply, answer)
    }

    /// Tells the outcome.
    pub(super) fn send(self, outcome: Result<Acknowledgement, IngestError>) {
        let outcome = match (outcome, self.reservation) {
            (Ok(accepted), Some(reservation)) => {
                let count = reservation.sent;
                // One that was there already was counted when it came.
                if accepted.first_id != Id::MIN {
                    reservation.commit();
                }
                Ok(Acknowledgement { count, ..accepted })
            }
            (outcome, _) => outcome,
        };
        // Who submitted it may be gone.
        let _ = self.sender.send(outcome);
    }
}

/// The outcome of a batch of so many records of which nothing is kept.
pub(super) fn answered(count: u64) -> Answer {
    let (reply, answer) = Reply::new(None);
    reply.send(Ok(Acknowledgement {
        first_id: Id::MIN,
        count,
        source: None,
    }));
    answer
}
