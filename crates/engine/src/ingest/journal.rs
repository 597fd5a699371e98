//! The journal on a disk, as the writer thread uses it.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use logpond_record::{Batch, Incarnation, Timestamp};
use logpond_segment::batches::BatchId;
use logpond_segment::disk::{Disk, Space};
use logpond_segment::journal::{AppendReceipt, DIRECTORY, Settings, Visible, WriteError, Writer};

use super::Journal;
use logpond_host::clock;

/// How long after a failed announcement the next one is tried.
const ANNOUNCE_PAUSE: Duration = Duration::from_millis(500);

/// Learns of an incarnation before it acknowledges its first record (CLUSTER R3).
pub trait IncarnationListener: Send + Sync {
    /// Returns once so many nodes know of the incarnation that none can overlook it. Blocks for
    /// calls to other nodes, each for a bounded time; may be called again for the same one.
    ///
    /// # Errors
    /// Why too few know of it, in words; nothing may be acknowledged then.
    fn announce(&self, incarnation: Incarnation, now: Timestamp) -> Result<(), String>;
}

/// A journal below a data directory.
pub struct DiskJournal {
    disk: Arc<dyn Disk>,
    writer: Writer,
    births: Option<Arc<dyn IncarnationListener>>,
    /// What was minted and is not announced yet.
    unborn: Option<Incarnation>,
    /// When the last announcement failed, and why.
    failed: Option<(Instant, String)>,
}

impl DiskJournal {
    /// A journal that begins a new incarnation at its first append. Recovery comes before.
    pub fn new(disk: Arc<dyn Disk>, settings: Settings) -> DiskJournal {
        let writer = Writer::new(disk.clone(), settings);
        DiskJournal {
            disk,
            writer,
            births: None,
            unborn: None,
            failed: None,
        }
    }

    /// Announces its incarnation before anything is acknowledged.
    pub fn announce_to(&mut self, births: Arc<dyn IncarnationListener>) {
        self.births = Some(births);
    }

    /// A new incarnation, once enough nodes know of it.
    fn give_birth(&mut self, now: Timestamp) -> Result<Incarnation, WriteError> {
        let incarnation = match self.unborn {
            Some(incarnation) => incarnation,
            None => clock::mint_incarnation().map_err(|error| WriteError::Disk {
                operation: "get random bytes for",
                path: DIRECTORY.to_owned(),
                error: io::Error::other(error.to_string()),
            })?,
        };
        self.unborn = Some(incarnation);
        let Some(births) = &self.births else {
            return Ok(incarnation);
        };
        if let Some((at, why)) = &self.failed
            && at.elapsed() < ANNOUNCE_PAUSE
        {
            return Err(WriteError::Unannounced { why: why.clone() });
        }
        births.announce(incarnation, now).map_err(|why| {
            self.failed = Some((Instant::now(), why.clone()));
            WriteError::Unannounced { why }
        })?;
        Ok(incarnation)
    }
}

impl Journal for DiskJournal {
    fn append(
        &mut self,
        batch: &Batch,
        id: Option<BatchId>,
        now: Timestamp,
    ) -> Result<AppendReceipt, WriteError> {
        let incarnation = match self.writer.incarnation() {
            Some(incarnation) => incarnation,
            None => self.give_birth(now)?,
        };
        self.writer
            .append_identified(batch, id, now, || incarnation)
    }

    fn sync(&mut self) -> Result<(), WriteError> {
        self.writer.sync()
    }

    fn durable_mark(&self) -> u64 {
        self.writer.durable_mark()
    }

    fn rotate_if_due(&mut self, now: Timestamp) -> Result<(), WriteError> {
        self.writer.rotate_if_due(now)
    }

    fn needs_attention(&self) -> bool {
        self.writer.visible().has_open()
    }

    fn close(&mut self) -> Result<(), WriteError> {
        self.writer.close()
    }

    fn end_incarnation(&mut self) -> Result<(), WriteError> {
        self.writer.end_incarnation()?;
        // One that was announced and never written to has ended, too.
        self.unborn = None;
        Ok(())
    }

    fn visible(&self) -> Arc<Visible> {
        self.writer.visible()
    }

    fn space(&self) -> io::Result<Space> {
        self.disk.space()
    }
}
