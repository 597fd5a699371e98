//! Copies of segments, sent to other nodes and received from them.
//!
//! Invariant: a received copy is shown, and its receipt said, once it is what was sent, and its
//! file and its name are synced.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Bytes;
use logpond_cluster::NodeId;
use logpond_record::Id;
use logpond_segment::build;
use logpond_segment::disk::ReadAt;
use logpond_segment::file::{ReadError, SegmentFile};
use tokio::sync::mpsc::Receiver;
use xxhash_rust::xxh3::Xxh3Default;

use super::Handoff;
use crate::cluster::PeerError;
use logpond_engine::store::LiveSegment;

/// Read at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// Why a copy was not taken.
#[derive(Debug)]
pub enum CopyError {
    /// The disk fails, or is full.
    Disk(io::Error),
    /// This node keeps no segments.
    NoStore,
    /// The same copy is just being received from somebody else, or from an earlier attempt.
    Busy,
    /// What arrived is not what was sent.
    Differs,
    /// What arrived is no segment.
    Damaged(ReadError),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CopyError::Disk(error) => write!(f, "the copy cannot be written: {error}"),
            CopyError::NoStore => f.write_str("this node is no store, or is leaving"),
            CopyError::Busy => f.write_str("the same copy is just being received; ask later"),
            CopyError::Differs => f.write_str("what arrived is not what was sent; send it again"),
            CopyError::Damaged(error) => write!(f, "what arrived is no segment: {error}"),
        }
    }
}

impl std::error::Error for CopyError {}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> CopyError {
        CopyError::Disk(error)
    }
}

/// Reads a file from its start to its end.
struct FileReader {
    file: Arc<dyn ReadAt>,
    offset: u64,
    end: u64,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        self.file.read_at(self.offset, &mut buffer[..count])?;
        self.offset += count as u64;
        Ok(count)
    }
}

fn read(file: &Arc<dyn ReadAt>) -> io::Result<FileReader> {
    Ok(FileReader {
        file: Arc::clone(file),
        offset: 0,
        end: file.bytes()?,
    })
}

fn hash(file: &Arc<dyn ReadAt>) -> io::Result<u128> {
    let mut reading = read(file)?;
    let mut hash = Xxh3Default::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match reading.read(&mut buffer)? {
            0 => return Ok(hash.digest128()),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// The copies that are being received.
pub(super) type Received = Mutex<BTreeSet<Id>>;

/// The right to receive a copy, until it is dropped.
struct ReceiveGuard<'a> {
    all: &'a Received,
    segment: Id,
}

impl ReceiveGuard<'_> {
    /// `None` if somebody has it.
    fn begin(all: &Received, segment: Id) -> Option<ReceiveGuard<'_>> {
        let mut receiving = all.lock().unwrap_or_else(PoisonError::into_inner);
        // Made only if it is free: dropping one gives the right back.
        receiving
            .insert(segment)
            .then(|| ReceiveGuard { all, segment })
    }
}

impl Drop for ReceiveGuard<'_> {
    fn drop(&mut self) {
        let mut receiving = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        receiving.remove(&self.segment);
    }
}

impl Handoff {
    /// Sends a copy of a live segment; returns once the other node has synced it.
    pub(super) fn send_copy(&self, segment: Id, to: NodeId) -> Result<(), PeerError> {
        let path = build::path(segment, build::SUFFIX_LIVE);
        let opened = self.parts.disk.open(&path);
        let opened = opened.and_then(|file| Ok((hash(&file)?, read(&file)?)));
        let (hash, mut reading) = opened.map_err(|error| PeerError::new(error.to_string()))?;
        let bytes = reading.end;
        let member = &self.parts.member;
        member.send_segment(to, segment, hash, bytes, &mut reading)
    }

    /// Takes a copy that another node sends.
    ///
    /// # Errors
    /// See [`CopyError`]; nothing of it is kept then.
    pub fn receive(
        &self,
        segment: Id,
        expected: u128,
        chunks: &mut Receiver<Bytes>,
    ) -> Result<(), CopyError> {
        if !self.parts.member.keeps() {
            return Err(CopyError::NoStore);
        }
        let _receiving = ReceiveGuard::begin(&self.receiving, segment).ok_or(CopyError::Busy)?;
        self.receive_alone(segment, expected, chunks)
    }

    fn receive_alone(
        &self,
        segment: Id,
        expected: u128,
        chunks: &mut Receiver<Bytes>,
    ) -> Result<(), CopyError> {
        let live = self.parts.live.snapshot();
        if live.iter().any(|s| s.file().manifest().id == segment) {
            return Ok(());
        }
        let disk = &*self.parts.disk;
        build::discard(disk, segment)?;
        let received = self.write(segment, expected, chunks);
        let shown = received.and_then(|()| {
            build::adopt(disk, segment)?;
            build::open(disk, segment).map_err(CopyError::Damaged)
        });
        match shown {
            Ok(file) => {
                let live = Arc::new(LiveSegment::copy(file));
                self.parts.live.replace(&[], Some(live));
                self.counters.copies_received.add(1);
                Ok(())
            }
            Err(error) => {
                build::discard(disk, segment)?;
                Err(error)
            }
        }
    }

    /// Writes and syncs what arrives under a temporary name.
    fn write(
        &self,
        segment: Id,
        expected: u128,
        chunks: &mut Receiver<Bytes>,
    ) -> Result<(), CopyError> {
        let disk = &*self.parts.disk;
        let path = build::path(segment, build::SUFFIX_TEMPORARY);
        let mut file = disk.create(&path)?;
        let mut hash = Xxh3Default::new();
        while let Some(chunk) = chunks.blocking_recv() {
            hash.update(&chunk);
            file.append(&chunk)?;
        }
        if hash.digest128() != expected {
            return Err(CopyError::Differs);
        }
        file.sync()?;
        drop(file);
        let opened = SegmentFile::open(disk.open(&path)?).map_err(CopyError::Damaged)?;
        if opened.manifest().id == segment {
            Ok(())
        } else {
            Err(CopyError::Differs)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_received_once_at_a_time() {
        let all = Received::default();
        let first = ReceiveGuard::begin(&all, Id(1));
        assert!(first.is_some() && ReceiveGuard::begin(&all, Id(2)).is_some());
        assert!(ReceiveGuard::begin(&all, Id(1)).is_none());
        assert!(
            ReceiveGuard::begin(&all, Id(1)).is_none(),
            "asking does not free it"
        );
        drop(first);
        assert!(ReceiveGuard::begin(&all, Id(1)).is_some());
    }
}
