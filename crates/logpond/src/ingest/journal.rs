//! The journal on a disk, as the writer thread uses it.

use std::io;
use std::sync::Arc;

use logpond_record::{Batch, Timestamp};
use logpond_segment::batches::BatchId;
use logpond_segment::disk::{Disk, Space};
use logpond_segment::journal::{Appended, DIRECTORY, Settings, Visible, WriteError, Writer};

use super::Journal;
use crate::clock;

/// A journal below a data directory.
pub struct DiskJournal {
    disk: Arc<dyn Disk>,
    writer: Writer,
}

impl DiskJournal {
    /// A journal that begins a new incarnation at its first append. Recovery comes before.
    pub fn new(disk: Arc<dyn Disk>, settings: Settings) -> DiskJournal {
        let writer = Writer::new(disk.clone(), settings);
        DiskJournal { disk, writer }
    }

    /// What readers may read, kept up to date by this journal.
    pub fn visible(&self) -> Arc<Visible> {
        self.writer.visible()
    }
}

impl Journal for DiskJournal {
    fn append(
        &mut self,
        batch: &Batch,
        id: Option<BatchId>,
        now: Timestamp,
    ) -> Result<Appended, WriteError> {
        let incarnation = match self.writer.incarnation() {
            Some(incarnation) => incarnation,
            None => clock::mint_incarnation().map_err(|error| WriteError::Disk {
                operation: "get random bytes for",
                path: DIRECTORY.to_owned(),
                error: io::Error::other(error.to_string()),
            })?,
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
        !self.writer.visible().snapshot().open.is_empty()
    }

    fn close(&mut self) -> Result<(), WriteError> {
        self.writer.close()
    }

    fn space(&self) -> io::Result<Space> {
        self.disk.space()
    }
}
