//! What is answered when copies do not come. That they come is tested with real nodes.

use std::sync::Arc;

use logpond_record::{Batch, EntryKind, Labels, SourceId};
use logpond_segment::disk::Disk;
use logpond_segment::journal;
use logpond_segment::mem_disk::MemDisk;
use tokio::sync::watch;

use super::*;
use logpond_engine::ingest::{self, DiskJournal, Gate, News, Replication};
use logpond_host::clock;
use logpond_host::panics::StopAtPanic;
use logpond_host::shutdown;
use logpond_host::telemetry::{Intake, Metrics};

/// No node has copies.
struct NoReplicas(watch::Sender<u64>);

impl Replication for NoReplicas {
    fn is_replicated(&self, _source: SourceId) -> bool {
        false
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

#[test]
fn without_copies_there_is_no_success() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::default());
    let metrics = Arc::new(Metrics::default());
    let (stopper, shutdown) = shutdown::pair();
    let stopper = Arc::new(stopper);
    let (ingest, writer) = ingest::start(
        DiskJournal::new(disk, journal::Settings::default()),
        ingest::Parts {
            news: News::default(),
            metrics: metrics.clone(),
            clock: clock::now,
            replication: Arc::new(NoReplicas(watch::Sender::new(0))),
            gate: Gate::default(),
            declared: Labels::new(),
            rules: None,
            queue_bytes: 1 << 20,
        },
        StopAtPanic(stopper),
    )
    .unwrap();
    let context = Context {
        ingest,
        metrics,
        shutdown,
        intake: Intake::Bulk,
        decoded_bytes_max: 1 << 20,
        line_bytes_max: 1024,
        hostname: "ash".into(),
        zones: Arc::default(),
        unfinished: Arc::new(crate::net::UnfinishedParts::new(1 << 20)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let outcome = runtime.block_on(async {
        let mut batch = Batch::new(EntryKind::Line, Labels::new());
        batch.push(b"a");
        let accepted = context.ingest.submit(batch, true).await.unwrap();
        let upload = Upload {
            accepted: 1,
            sources: accepted.source.into_iter().collect(),
            ..Upload::default()
        };
        wait_for_copies(upload, &context).await
    });
    let trouble = outcome.unwrap_err();
    assert!(matches!(trouble, UploadFailure::NotReplicated));
    assert_eq!(trouble.to_json()["retry"], true);
    drop(context);
    writer.join().unwrap();
}
