//! Several transfers at a time, since one waits for the store most of its time, and how far they are.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

use logpond_segment::disk::ReadAt;

use super::BackupError;

/// So many at a time. Each has a part of a file in memory, 16 MiB at most.
const TRANSFERS_MAX: usize = 4;

/// How far a backup, a restore or a check is. Another thread may look at it meanwhile.
#[derive(Debug, Default)]
pub struct Progress {
    files: AtomicU64,
    files_total: AtomicU64,
    bytes: AtomicU64,
    bytes_total: AtomicU64,
}

/// The counts of a [`Progress`] at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressSnapshot {
    /// Files that are done with.
    pub files: u64,
    /// All files that are known to be dealt with so far.
    pub files_total: u64,
    /// Bytes that are done with.
    pub bytes: u64,
    /// Bytes of all files; 0 if that is not known.
    pub bytes_total: u64,
}

impl Progress {
    /// How far it is.
    pub fn reached(&self) -> ProgressSnapshot {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ProgressSnapshot {
            files: of(&self.files),
            files_total: of(&self.files_total),
            bytes: of(&self.bytes),
            bytes_total: of(&self.bytes_total),
        }
    }

    /// So many bytes are to be done, too.
    pub(super) fn expect_bytes(&self, bytes: u64) {
        self.bytes_total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many bytes more are done with.
    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The same as [`transfer`] of files, each of which counts as done with at its end.
    ///
    /// # Errors
    /// Those of [`transfer`].
    pub(super) fn transfer<I: Sync, T: Send>(
        &self,
        files: &[I],
        work: impl Fn(&I) -> Result<T, BackupError> + Sync,
    ) -> Result<Vec<T>, BackupError> {
        self.files_total
            .fetch_add(files.len() as u64, Ordering::Relaxed);
        transfer(files, |file| {
            let done = work(file)?;
            self.files.fetch_add(1, Ordering::Relaxed);
            Ok(done)
        })
    }
}

/// A file whose bytes count as done with as they are read.
pub(super) struct MeteredFile<'a> {
    pub(super) file: &'a dyn ReadAt,
    pub(super) progress: &'a Progress,
}

impl ReadAt for MeteredFile<'_> {
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, out)?;
        self.progress.add_bytes(out.len() as u64);
        Ok(())
    }
}

/// Does something for each item, for several at a time; gives what came of them in their order.
///
/// # Errors
/// The first failure in the order of the items, of those that were begun; none is begun after one.
pub(super) fn transfer<I: Sync, T: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<T, BackupError> + Sync,
) -> Result<Vec<T>, BackupError> {
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut ended = Vec::new();
    ended.resize_with(items.len(), || None);
    let ended = Mutex::new(ended);
    let run = || {
        while !has_failed.load(Ordering::Relaxed) {
            let position = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(position) else {
                break;
            };
            let done = work(item);
            has_failed.fetch_or(done.is_err(), Ordering::Relaxed);
            ended.lock().unwrap_or_else(PoisonError::into_inner)[position] = Some(done);
        }
    };
    thread::scope(|scope| {
        // This thread is one of them, so that it goes on where the system gives no others.
        for _ in 1..TRANSFERS_MAX.min(items.len()) {
            let _ = thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Without a failure each has ended.
    ended.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn several_run_at_a_time_and_come_back_in_order() {
        let met = Barrier::new(TRANSFERS_MAX);
        let items: Vec<usize> = (0..3 * TRANSFERS_MAX).collect();
        let found = transfer(&items, |item| {
            met.wait();
            Ok(item * 10)
        });
        let expected: Vec<usize> = items.iter().map(|item| item * 10).collect();
        assert_eq!(found.unwrap(), expected);
        assert!(transfer(&[0; 0], |_| Ok(())).unwrap().is_empty());
    }

    #[test]
    fn after_a_failure_none_is_begun_and_the_first_one_is_told() {
        let (begun, met) = (AtomicUsize::new(0), Barrier::new(TRANSFERS_MAX));
        let items: Vec<usize> = (0..1000).collect();
        let failed = transfer(&items, |item| {
            begun.fetch_add(1, Ordering::Relaxed);
            // All of the first ones have begun, and all of them fail.
            met.wait();
            Err::<(), _>(io::Error::other(format!("number {item}")).into())
        });
        let told = logpond_host::terminal::with_causes(&failed.unwrap_err());
        assert!(told.contains("number 0"), "{told}");
        assert_eq!(begun.into_inner(), TRANSFERS_MAX);
    }
}
