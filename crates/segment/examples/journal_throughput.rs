//! Measures the journal: CPU seconds per GB for appending, reading and searching.
//!
//! `cargo run --release -p logpond-segment --example journal_throughput [FILE [MB]]`
//!
//! The disk is memory, so that the figures are the journal's own. Without a file, lines like an
//! application's are made up.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a tool casts numbers that it knows"
)]

use std::io;
use std::sync::{Arc, Mutex};

use logpond_record::{Batch, EntryKind, Incarnation, Timestamp};
use logpond_segment::disk::{AppendFile, DirEntry, Disk, ReadAt, Space};
use logpond_segment::journal::{Codec, JournalFile, Settings, Writer, recover};
use memchr::memmem;

/// Entries of a batch: what a sender collects in a few milliseconds under load.
const BATCH_ENTRIES: usize = 1000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let text = match arguments.next() {
        Some(path) => std::fs::read(&path).expect("the file is readable"),
        None => made_up(64 << 20),
    };
    let megabytes: usize = arguments
        .next()
        .map_or(512, |text| text.parse().expect("a number"));
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    for codec in [Codec::None, Codec::Zstd] {
        for entries in [1, 20, BATCH_ENTRIES] {
            measure(codec, entries, &lines, megabytes << 20);
        }
    }
}

/// CPU seconds of the main thread, the only one.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux tells");
    let nanos = text
        .split(' ')
        .next()
        .and_then(|first| first.parse::<f64>().ok());
    nanos.expect("the first field is CPU nanoseconds") / 1e9
}

fn made_up(bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + 400);
    let mut number = 0u64;
    while text.len() < bytes {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let line = format!(
            "{{\"time\":\"2026-03-01T12:{:02}:{:02}.{:06}Z\",\"level\":\"info\",\"service\":\"cart\",\
             \"trace\":\"{:016x}\",\"msg\":\"request done\",\"path\":\"/api/v1/items/{}\",\"ms\":{}}}\n",
            number >> 58,
            number >> 59,
            number >> 45,
            number,
            number >> 50,
            number >> 54
        );
        text.extend_from_slice(line.as_bytes());
    }
    text
}

fn measure(codec: Codec, entries: usize, lines: &[&[u8]], bytes: usize) {
    let mut batches = Vec::new();
    for chunk in lines.chunks(entries) {
        let mut batch = Batch::new(EntryKind::Line, vec![("hostname".into(), "ash".into())]);
        chunk.iter().for_each(|line| batch.push(line));
        batches.push(batch);
    }
    let disk = Arc::new(PlainDisk::default());
    let settings = Settings {
        codec,
        ..Settings::default()
    };
    let mut writer = Writer::new(disk.clone(), settings);
    let mut done = 0;
    let mut rows = 0;
    let begun = cpu_seconds();
    for (index, batch) in batches.iter().cycle().enumerate() {
        if done >= bytes {
            break;
        }
        let now = Timestamp(1_700_000_000_000_000_000 + index as i64 * 1_000_000);
        writer
            .append(batch, now, || Incarnation(7))
            .expect("memory takes all");
        if index % 16 == 0 {
            writer.sync().expect("memory takes all");
        }
        done += batch.payload().len();
        rows += batch.len();
    }
    writer.close().expect("memory takes all");
    let append_seconds = cpu_seconds() - begun;

    let begun = cpu_seconds();
    let recovered = recover(&*disk).expect("memory gives all");
    let verify_seconds = cpu_seconds() - begun;
    let stored: u64 = recovered.closed.iter().map(|file| file.bytes).sum();
    let begun = cpu_seconds();
    let finder = memmem::Finder::new(b"no line has this");
    let mut hits = 0;
    for file in &recovered.closed {
        let mut frames = JournalFile::from_closed(&*disk, file)
            .expect("closed")
            .frames();
        while let Some(frame) = frames.next().expect("memory gives all") {
            hits += usize::from(finder.find(frame.payload()).is_some());
        }
    }
    let search_seconds = cpu_seconds() - begun;
    let gigabytes = done as f64 / 1e9;
    println!(
        "{codec:?}, {entries} entries a batch: append {:.2} s/GB ({:.1} M rows/s), recover {:.2} s/GB, \
         search {:.2} s/GB, {:.3} bytes stored a raw byte, {hits} hits",
        append_seconds / gigabytes,
        rows as f64 / append_seconds / 1e6,
        verify_seconds / gigabytes,
        search_seconds / gigabytes,
        stored as f64 / done as f64
    );
}

/// Files in memory, without any model of failures.
#[derive(Default)]
struct PlainDisk {
    files: Mutex<Vec<(String, Content)>>,
}

struct PlainFile(Content);

/// Bytes that a writer and readers share.
type Content = Arc<Mutex<Vec<u8>>>;

impl PlainDisk {
    fn find(&self, path: &str) -> io::Result<PlainFile> {
        let files = self.files.lock().expect("no panics");
        let found = files.iter().find(|(name, _)| name == path);
        found
            .map(|(_, file)| PlainFile(file.clone()))
            .ok_or(io::ErrorKind::NotFound.into())
    }
}

impl AppendFile for PlainFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.lock().expect("no panics").extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ReadAt for PlainFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.lock().expect("no panics").len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.lock().expect("no panics");
        let from = offset as usize;
        buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
        Ok(())
    }
}

impl Disk for PlainDisk {
    fn list(&self, directory: &str) -> io::Result<Vec<DirEntry>> {
        let files = self.files.lock().expect("no panics");
        let entry = |(path, file): &(String, Content)| DirEntry {
            name: path[directory.len() + 1..].to_owned(),
            bytes: file.lock().expect("no panics").len() as u64,
        };
        Ok(files.iter().map(entry).collect())
    }

    fn create_directory(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn AppendFile>> {
        let file = Arc::new(Mutex::new(Vec::new()));
        self.files
            .lock()
            .expect("no panics")
            .push((path.to_owned(), file.clone()));
        Ok(Box::new(PlainFile(file)))
    }

    fn open_append(&self, path: &str) -> io::Result<Box<dyn AppendFile>> {
        Ok(Box::new(self.find(path)?))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(self.find(path)?))
    }

    fn truncate(&self, path: &str, bytes: u64) -> io::Result<()> {
        self.find(path)?
            .0
            .lock()
            .expect("no panics")
            .truncate(bytes as usize);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files.lock().expect("no panics");
        let found = files.iter_mut().find(|(path, _)| path == from);
        found.ok_or(io::ErrorKind::NotFound)?.0 = to.to_owned();
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.files
            .lock()
            .expect("no panics")
            .retain(|(name, _)| name != path);
        Ok(())
    }

    fn sync_directory(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn space(&self) -> io::Result<Space> {
        Ok(Space {
            free_bytes: u64::MAX,
            total_bytes: u64::MAX,
        })
    }
}
