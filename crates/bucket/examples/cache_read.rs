//! What a read costs that the cache answers, beside the same read of the file that it keeps.
//!
//! ```text
//! cargo run --release --package logpond-bucket --example cache_read
//! ```

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a tool casts numbers that it knows"
)]

use std::error::Error;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use logpond_bucket::{
    BucketError, Cache, CreateOutcome, FailureKind, ObjectEntry, Objects, RemoteFile,
};
use logpond_segment::disk::ReadAt;
use logpond_segment::mem_disk::SeededRandom;

const OBJECT_BYTES: u64 = 256 << 20;
/// The last bytes are in a file of their own.
const TAIL_BYTES: u64 = 64 << 10;
const BATCHES: usize = 4000;
const BATCH_READS: u64 = 64;

/// One object, in memory.
struct Store(Bytes);

fn unsupported(name: &str) -> BucketError {
    BucketError {
        operation: "use",
        name: name.to_owned(),
        kind: FailureKind::Unsupported,
        source: "there is one object, to be read".into(),
    }
}

impl Objects for Store {
    fn read(&self, _: &str, offset: u64, bytes: u64) -> Result<Bytes, BucketError> {
        Ok(self.0.slice(offset as usize..(offset + bytes) as usize))
    }

    fn get(&self, name: &str, _: u64) -> Result<Option<Bytes>, BucketError> {
        Err(unsupported(name))
    }

    fn create(&self, name: &str, _: Bytes) -> Result<CreateOutcome, BucketError> {
        Err(unsupported(name))
    }

    fn put(&self, name: &str, _: Bytes) -> Result<(), BucketError> {
        Err(unsupported(name))
    }

    fn list(&self, prefix: &str, _: Option<&str>) -> Result<Vec<ObjectEntry>, BucketError> {
        Err(unsupported(prefix))
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        Err(unsupported(name))
    }
}

/// A file of the local disk, as the product reads one.
struct Plain(File);

impl ReadAt for Plain {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }
}

/// Nanoseconds per read at random places, the median of batches that take turns.
fn compare(files: [&dyn ReadAt; 2], bytes: usize, threads: u64) -> io::Result<[u64; 2]> {
    let read_some = |seed| {
        let (mut random, mut buffer) = (SeededRandom::new(seed), vec![0; bytes]);
        let mut batches = [Vec::new(), Vec::new()];
        for _ in 0..BATCHES {
            for (file, batches) in files.iter().zip(&mut batches) {
                let start = Instant::now();
                for _ in 0..BATCH_READS {
                    let offset = random.below(OBJECT_BYTES - TAIL_BYTES - bytes as u64);
                    file.read_at(offset, &mut buffer)?;
                }
                batches.push(start.elapsed().as_nanos() as u64 / BATCH_READS);
            }
        }
        Ok::<_, io::Error>(batches)
    };
    let mut batches = [Vec::new(), Vec::new()];
    thread::scope(|scope| {
        let read_some = &read_some;
        let spawn = |seed| scope.spawn(move || read_some(seed));
        let running: Vec<_> = (0..threads).map(spawn).collect();
        for thread in running {
            let result = thread.join();
            let found = result.unwrap_or_else(|_| Err(io::Error::other("a reader panicked")))?;
            batches
                .iter_mut()
                .zip(found)
                .for_each(|(all, found)| all.extend(found));
        }
        Ok::<_, io::Error>(())
    })?;
    Ok(batches.map(|mut batches| {
        batches.sort_unstable();
        batches[batches.len() / 2]
    }))
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let mut random = SeededRandom::new(1);
    let object: Vec<u8> = (0..OBJECT_BYTES / 8)
        .flat_map(|_| random.draw().to_le_bytes())
        .collect();
    let cache = Cache::open(&directory.path().join("cache"), 2 * OBJECT_BYTES)?;
    let store = Arc::new(Store(object.into()));
    let remote = RemoteFile::new(&cache, store, "object", OBJECT_BYTES, OBJECT_BYTES);
    let start = Instant::now();
    remote.will_read(0, OBJECT_BYTES);
    remote.read_at(0, &mut [0; 1])?;
    println!("filled in {} ms", start.elapsed().as_millis());
    // The same bytes at the same places of the page cache.
    let plain = Plain(File::open(directory.path().join("cache/object.pages"))?);
    for (bytes, threads) in [(4 << 10, 1), (4 << 10, 2), (64 << 10, 1), (64 << 10, 2)] {
        let [plain, cached] = compare([&plain, &remote], bytes, threads)?;
        println!("{bytes} bytes, {threads} threads: plain {plain} ns, cached {cached} ns");
    }
    println!("{:?}", cache.counters());
    Ok(())
}
