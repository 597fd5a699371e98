//! What the other nodes of a cluster have of a partition.

use logpond_segment::batches::BatchSet;

/// Named batches that other nodes have.
#[derive(Debug, Default)]
pub struct RemoteBatches {
    /// The batches.
    pub held: BatchSet,
    /// Whether a node was given up that may have had others, which are nowhere now.
    pub is_one_lost: bool,
}

/// The other nodes. Calls block for a bounded time.
pub trait PeerNodes: Send + Sync {
    /// Which of some named batches they hold.
    ///
    /// # Errors
    /// Who does not answer.
    fn held(&self, wanted: &BatchSet) -> Result<RemoteBatches, String>;

    /// Which of them those nodes have taken in themselves, lately, that go before this one where two
    /// read the same. Who does not answer is passed over.
    fn taken(&self, wanted: &BatchSet) -> BatchSet;
}

/// What all nodes hold, if each answers. Each is asked twice: a file that goes from one that was not
/// asked yet to one that was is found by the second round.
///
/// # Errors
/// The first that a node gives.
pub fn of_all<N: Copy, E>(
    nodes: &[N],
    mut ask: impl FnMut(N) -> Result<BatchSet, E>,
) -> Result<BatchSet, E> {
    let mut held = BatchSet::default();
    for node in nodes.iter().chain(nodes) {
        held.union_with(&ask(*node)?);
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_between_nodes_meanwhile_is_found() {
        // The file goes from the one to the other after each number of questions.
        for (from, to) in [(0, 1), (1, 0)] {
            for moved_after in 0..=4 {
                let mut asked = 0;
                let held = of_all(&[0, 1], |node| {
                    let holder = if asked < moved_after { from } else { to };
                    asked += 1;
                    let held = (node == holder).then_some((7, 1));
                    Ok::<_, ()>(BatchSet::from_iter(held))
                });
                assert!(held.unwrap().contains(7, 1), "{from} {to} {moved_after}");
            }
        }
        assert_eq!(of_all(&[0, 1], Err), Err(0));
    }
}
