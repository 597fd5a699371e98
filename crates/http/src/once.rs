//! Requests that are stored once, however often they are sent.
//!
//! Clients give up waiting after some seconds and send the same request again, and do not say that they do.
//! A request is known by a hash of what is in it: while it is being stored here, afterwards by the name that
//! its batch has in the journal, and by what is remembered of files that are gone (`logpond_engine::resends`).
//!
//! Invariant: rather twice than not at all. Only a request whose records tell that they are no others (they
//! have times that are finer than seconds, or ids) is taken for one that came before.

use std::sync::{Arc, Mutex, PoisonError};

use logpond_protocol::intake::push::DecodedBody;
use logpond_record::{Batch, EntryKind, Labels, envelope};
use logpond_segment::batches::{BatchId, BatchSet};
use logpond_segment::journal::{FRAME_ENTRIES_MAX, FRAME_PAYLOAD_BYTES_MAX};
use tokio::sync::Mutex as AsyncMutex;
use xxhash_rust::xxh3::Xxh3;

use super::App;
use super::error::{ApiError, Kind};
use super::intake;
use logpond_engine::resends::name_of;
use logpond_host::recent::Recent;
use logpond_host::telemetry::Intake;

/// True once a request is stored. The task that stores it holds the lock meanwhile.
type Stored = Arc<AsyncMutex<bool>>;

/// Requests that came lately: Promtail gives up one after less than nine minutes.
#[derive(Default)]
pub(crate) struct RecentRequests(Mutex<Recent<Stored>>);

impl RecentRequests {
    /// The state of a request, which is remembered from now on.
    fn request(&self, identity: u128) -> Stored {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(recent.of(identity))
    }
}

/// Hands a batch to the journal, unless the same one is there; `identity` tells it from others, if anything
/// does.
pub(super) async fn submit(
    app: &Arc<App>,
    intake: Intake,
    batch: Batch,
    identity: Option<u128>,
) -> Result<(), ApiError> {
    let identity = identity.map(|identity| labelled(identity, &batch.labels));
    let identity = identity.map(|identity| app.ingest.stamp().identity(identity));
    let Some(identity) = identity.filter(|_| !batch.is_empty()) else {
        return intake::submit(app, intake, batch, None, true)
            .await
            .map(drop);
    };
    // Whoever sends a request again has closed the connection of the first sending, which goes on.
    let storing = tokio::spawn(store(Arc::clone(app), intake, batch, identity));
    let stored = storing.await;
    stored.map_err(|e| ApiError::new(Kind::Internal, e.to_string()))?
}

/// Hands the accepted parts of a body to the journal, then refuses it if others, called `noun`, were not accepted. Gives
/// how many there are.
///
/// # Errors
/// With the counts of both and the first fault, or when nothing could be stored.
pub(super) async fn submit_all(
    app: &Arc<App>,
    intake: Intake,
    pushed: DecodedBody,
    identity: Option<u128>,
    noun: &str,
) -> Result<usize, ApiError> {
    let (accepted, rejected_total) = (pushed.accepted, pushed.rejected_total);
    submit(app, intake, pushed.batch, identity).await?;
    let Some(first) = pushed.rejected.first() else {
        return Ok(accepted);
    };
    let metrics = app.metrics.intake(intake);
    metrics.rejected.add(rejected_total as u64);
    Err(ApiError::bad_request(format!(
        "{accepted} {noun}s are stored; {rejected_total} are not, the first of them is {noun} {}: {}",
        first.line, first.reason
    )))
}

async fn store(
    app: Arc<App>,
    intake: Intake,
    batch: Batch,
    identity: u128,
) -> Result<(), ApiError> {
    let stored = app.once.request(identity);
    let mut is_stored = stored.lock().await;
    let id = name_of(identity);
    if *is_stored || is_held(&app, id).await {
        *is_stored = true;
        app.metrics.resends_known.add(1);
        return Ok(());
    }
    // A named batch is one frame of the journal. A larger one is known while this process lives.
    let fits = batch.len() <= FRAME_ENTRIES_MAX && batch.payload().len() <= FRAME_PAYLOAD_BYTES_MAX;
    intake::submit(&app, intake, batch, fits.then_some(id), true).await?;
    *is_stored = true;
    Ok(())
}

/// True if a batch is here, or was until its rows expired.
async fn is_held(app: &Arc<App>, id: BatchId) -> bool {
    let wanted: BatchSet = [(id.epoch, id.sequence)].into_iter().collect();
    // Files of the journal first: what leaves them meanwhile is remembered by then.
    if app.ingest.durability().states(&wanted).durable == wanted || app.resends.has(id.epoch) {
        return true;
    }
    let store = app.store.clone();
    let look = move || store.batches_of(id.epoch).contains(id.epoch, id.sequence);
    // Blocking work is only thrown away when the process ends.
    tokio::task::spawn_blocking(look).await.unwrap_or(false)
}

/// The identity of a request with these labels: the same delivery with others is another one.
fn labelled(identity: u128, labels: &Labels) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(&identity.to_le_bytes());
    add_labels(&mut hash, labels);
    hash.digest128()
}

fn add_labels(hash: &mut Xxh3, labels: &Labels) {
    for (name, value) in labels {
        for part in [name.as_bytes(), value.as_bytes()] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
}

/// The identity of a batch: a hash of its entries, if all of its entries have times of their own, and
/// one of them a time that is finer than a second.
pub(super) fn identity_of(batch: &Batch) -> Option<u128> {
    if batch.kind != EntryKind::Enveloped {
        return None;
    }
    let mut hash = Xxh3::new();
    let mut is_fine = false;
    add_labels(&mut hash, &batch.labels);
    for entry in batch.iter() {
        let (_, envelope, _) = envelope::open(entry)?;
        let time = envelope.time?;
        is_fine |= time.0 % 1_000_000_000 != 0;
        hash.update(&(entry.len() as u64).to_le_bytes());
        hash.update(entry);
    }
    is_fine.then(|| hash.digest128())
}

#[cfg(test)]
mod tests {
    use logpond_record::Timestamp;

    use super::*;
    use logpond_host::recent::IDENTITIES_MAX;

    #[test]
    fn requests_are_remembered_and_the_memory_is_bounded() {
        let once = RecentRequests::default();
        *once.request(1).try_lock().unwrap() = true;
        assert!(*once.request(1).try_lock().unwrap());
        assert!(!*once.request(2).try_lock().unwrap());
        for identity in 0..2 * IDENTITIES_MAX as u128 {
            once.request(1000 + identity);
        }
        assert!(!*once.request(1).try_lock().unwrap(), "it is forgotten");
        assert_eq!(once.0.lock().unwrap().count(), IDENTITIES_MAX);
    }

    #[test]
    fn requests_with_other_labels_are_others() {
        let zone = |name: &str| vec![("zone".into(), name.into())];
        assert_eq!(labelled(7, &zone("a")), labelled(7, &zone("a")));
        assert_ne!(labelled(7, &zone("a")), labelled(7, &zone("b")));
        assert_ne!(labelled(7, &zone("a")), labelled(8, &zone("a")));
        assert_ne!(labelled(7, &zone("a")), labelled(7, &Labels::new()));
    }

    #[test]
    fn only_what_has_fine_times_is_told_from_others() {
        let of = |times: &[Option<i64>]| {
            let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
            for time in times {
                batch.push_enveloped(EntryKind::Line, time.map(Timestamp), [], b"hello");
            }
            identity_of(&batch)
        };
        const SECOND: i64 = 1_000_000_000;
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[None]), None);
        assert_eq!(of(&[Some(7 * SECOND)]), None);
        assert_eq!(of(&[Some(7 * SECOND + 1), None]), None);
        let fine = of(&[Some(7 * SECOND), Some(7 * SECOND + 1)]);
        assert!(fine.is_some());
        assert_eq!(fine, of(&[Some(7 * SECOND), Some(7 * SECOND + 1)]));
        assert_ne!(fine, of(&[Some(7 * SECOND), Some(7 * SECOND + 2)]));
    }
}
