//! Files with entries of journals, in whatever form.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use logpond_protocol::intake::journal_export::{ENTRY_BYTES_MAX, ExportSplitter, Exported};
use logpond_protocol::intake::journal_file::{self, Item, JournalFile};
use logpond_protocol::intake::journal_json;

use super::{Entries, ImportError};
use crate::input;

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// The longest line of JSON: bytes that are no text take up to four times as many in it.
const LINE_BYTES_MAX: usize = 4 * ENTRY_BYTES_MAX + (1 << 20);

/// How deep directories are looked through: `/var/log/journal/MACHINE/` and above.
const DEPTH_MAX: usize = 4;

/// The files that an input stands for: itself, or the journals below a directory.
pub fn files_of(input: &Path) -> Result<Vec<PathBuf>, ImportError> {
    if !input.is_dir() {
        return Ok(vec![input.to_owned()]);
    }
    let mut found = Vec::new();
    gather(input, 0, &mut found).map_err(|source| failed(input, source))?;
    found.sort();
    if found.is_empty() {
        Err(ImportError::NoJournals(input.to_owned()))
    } else {
        Ok(found)
    }
}

fn gather(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Those that journald put aside after a crash have entries, too.
        let is_journal = name.ends_with(".journal") || name.ends_with(".journal~");
        if kind.is_dir() && depth < DEPTH_MAX {
            gather(&path, depth + 1, found)?;
        } else if kind.is_file() && is_journal {
            found.push(path);
        }
    }
    Ok(())
}

fn failed(path: &Path, source: io::Error) -> ImportError {
    let name = if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    };
    ImportError::Input { name, source }
}

/// A journal file.
struct Bytes(File);

impl journal_file::Source for Bytes {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }
}

/// Reads the entries of a file.
pub fn read(path: &Path, batcher: &mut impl Entries) -> Result<(), ImportError> {
    read_file(path, batcher, false)
}

/// The same, and looks at what else there is in a journal file.
pub fn verify(path: &Path, batcher: &mut impl Entries) -> Result<(), ImportError> {
    read_file(path, batcher, true)
}

fn read_file(
    path: &Path,
    batcher: &mut impl Entries,
    is_verified: bool,
) -> Result<(), ImportError> {
    batcher.begin(path);
    let failed = |source| failed(path, source);
    if path == Path::new("-") {
        return read_stream(input::standard(), batcher, &failed);
    }
    let file = File::open(path).map_err(failed)?;
    let mut start = [0; journal_file::MAGIC.len()];
    let is_journal = file.read_exact_at(&mut start, 0).is_ok() && &start == journal_file::MAGIC;
    if is_journal {
        return read_journal(file, batcher, is_verified, &failed);
    }
    read_stream(input::open(path).map_err(failed)?, batcher, &failed)
}

fn read_journal(
    file: File,
    batcher: &mut impl Entries,
    is_verified: bool,
    failed: &dyn Fn(io::Error) -> ImportError,
) -> Result<(), ImportError> {
    let length = file.metadata().map_err(failed)?.len();
    let opened = JournalFile::open(Bytes(file), length);
    let mut journal = opened.map_err(|error| match error {
        journal_file::FileError::Read(error) => failed(error),
        other => failed(io::Error::new(
            io::ErrorKind::InvalidData,
            other.to_string(),
        )),
    })?;
    loop {
        match journal.read_next().map_err(failed)? {
            None => break,
            Some(Item::Entry(Ok(fields))) => batcher.add(fields.iter())?,
            Some(Item::Entry(Err(fault))) => batcher.reject(&fault),
            Some(Item::Damage(damage)) => batcher.damage(&damage),
        }
    }
    if is_verified {
        let outcome = journal.verify(&mut |damage| batcher.damage(&damage));
        outcome.map_err(failed)?;
    }
    let (said, read) = (journal.entries_said(), batcher.count());
    if read < said {
        let state = if journal.is_closed() {
            ""
        } else {
            " (its writer did not close it)"
        };
        let lost = said - read;
        batcher.lack(&format!(
            "{lost} of {said} entries could not be read{state}"
        ));
    }
    Ok(())
}

/// Reads what is no journal file: the export format, or JSON.
fn read_stream(
    mut stream: Box<dyn Read + Send>,
    batcher: &mut impl Entries,
    failed: &dyn Fn(io::Error) -> ImportError,
) -> Result<(), ImportError> {
    let mut start = Vec::new();
    // A stream may begin with a short read.
    let mut first = stream.by_ref().take(journal_file::MAGIC.len() as u64);
    first.read_to_end(&mut start).map_err(failed)?;
    let whole = Cursor::new(start.clone()).chain(stream);
    let stream = BufReader::with_capacity(CHUNK_BYTES, whole);
    if start.starts_with(journal_file::MAGIC) {
        let what =
            "a journal file is read by its offsets: give it as a file that is not compressed";
        return Err(failed(io::Error::new(io::ErrorKind::Unsupported, what)));
    }
    match start.trim_ascii_start().first() {
        Some(b'{' | 0x1e) => read_json(stream, batcher, failed),
        Some(b'd') if start.starts_with(b"data:") => read_json(stream, batcher, failed),
        _ => read_export(stream, batcher, failed),
    }
}

fn read_export(
    mut stream: impl BufRead,
    batcher: &mut impl Entries,
    failed: &dyn Fn(io::Error) -> ImportError,
) -> Result<(), ImportError> {
    let mut splitter = ExportSplitter::new();
    loop {
        let chunk = stream.fill_buf().map_err(failed)?;
        if chunk.is_empty() {
            break;
        }
        let mut outcome = Ok(());
        let take = |entry: Exported<'_>| match entry {
            Ok(_) if outcome.is_err() => {}
            Ok(fields) => outcome = batcher.add(fields.iter()),
            Err(fault) => batcher.reject(&fault),
        };
        let fed = splitter.feed(chunk, take);
        let taken = chunk.len();
        outcome?;
        fed.map_err(|error| {
            failed(io::Error::new(
                io::ErrorKind::InvalidData,
                error.to_string(),
            ))
        })?;
        stream.consume(taken);
    }
    if splitter.partial().is_some() {
        batcher.reject(&"the input ends within it");
    }
    Ok(())
}

fn read_json(
    mut stream: impl BufRead,
    batcher: &mut impl Entries,
    failed: &dyn Fn(io::Error) -> ImportError,
) -> Result<(), ImportError> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = LINE_BYTES_MAX as u64;
        let read = stream.by_ref().take(limit).read_until(b'\n', &mut line);
        if read.map_err(failed)? == 0 {
            return Ok(());
        }
        let is_whole = line.last() == Some(&b'\n') || line.len() < LINE_BYTES_MAX;
        if !is_whole {
            skip_line(&mut stream).map_err(failed)?;
            batcher.reject(&format!("it has more than {LINE_BYTES_MAX} bytes"));
            continue;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match journal_json::read(line.trim_ascii()) {
            Ok(entry) => {
                if !entry.missing.is_empty() {
                    batcher.miss(&entry.missing);
                }
                let fields = entry.fields.iter();
                batcher.add(fields.map(|(name, value)| (&**name, &**value)))?;
            }
            Err(error) => batcher.reject(&error),
        }
    }
}

fn skip_line(stream: &mut impl BufRead) -> io::Result<()> {
    loop {
        let chunk = stream.fill_buf()?;
        if chunk.is_empty() {
            return Ok(());
        }
        let end = memchr::memchr(b'\n', chunk);
        let taken = end.map_or(chunk.len(), |end| end + 1);
        stream.consume(taken);
        if end.is_some() {
            return Ok(());
        }
    }
}
