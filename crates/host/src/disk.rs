//! The real disk: files of a data directory.
//!
//! Invariants: no path leaves the data directory; every error's text carries the path; a call may
//! block, so none is made from the async thread.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use logpond_segment::disk::{AppendFile, DirEntry, Disk, ReadAt, Space};
use logpond_segment::journal;
use rustix::fs::Advice;
use rustix::io::Errno;

/// Logs may hold secrets: directories are for the owner and its group only.
const DIRECTORY_MODE: u32 = 0o750;

/// As for directories.
const FILE_MODE: u32 = 0o640;

/// Name of the file whose lock says that a server uses the directory. The directory of its journal is
/// locked, too: a file can be deleted while its lock is held, and the next one of this name is another file.
/// (The data directory has a lock of its own, of those who change its tokens.)
const LOCK_NAME: &str = "lock";

/// A data directory.
#[derive(Clone, Debug)]
pub struct RealDisk {
    root: PathBuf,
}

/// The right to change a data directory; given back when dropped or when the process ends.
#[derive(Debug)]
pub struct DataLock {
    /// `None` where the file system has no locks of directories, as NFS has none.
    _directory: Option<File>,
    /// Earlier versions of this program look at this one only.
    _file: File,
}

impl RealDisk {
    /// The data directory at `root`, which is made if it does not exist.
    pub fn create(root: &Path) -> io::Result<RealDisk> {
        if !root.is_dir() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(DIRECTORY_MODE);
            builder.create(root).map_err(named(root))?;
            if let Some(parent) = root
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
            {
                sync_directory(parent)?;
            }
        }
        RealDisk::open(root)
    }

    /// The data directory at `root`, which must exist.
    pub fn open(root: &Path) -> io::Result<RealDisk> {
        let root = root.canonicalize().map_err(named(root))?;
        if !root.is_dir() {
            let text = format!("{}: not a directory", root.display());
            return Err(io::Error::new(ErrorKind::NotADirectory, text));
        }
        Ok(RealDisk { root })
    }

    /// The data directory's path, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Takes the right to change the directory; fails at once if another process has it. Makes the directory
    /// of the journal if it is not there.
    pub fn lock(&self) -> io::Result<DataLock> {
        self.create_directory(journal::DIRECTORY)?;
        let path = self.path(journal::DIRECTORY)?;
        let directory = File::open(&path).map_err(named(&path))?;
        let directory = match directory.try_lock() {
            Ok(()) => Some(directory),
            Err(TryLockError::WouldBlock) => return Err(self.in_use()),
            Err(TryLockError::Error(error)) if has_no_directory_locks(&error) => None,
            Err(TryLockError::Error(error)) => return Err(named(&path)(error)),
        };
        let path = self.root.join(LOCK_NAME);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = open_regular(options.mode(FILE_MODE), &path)?;
        match file.try_lock() {
            Ok(()) => Ok(DataLock {
                _directory: directory,
                _file: file,
            }),
            Err(TryLockError::WouldBlock) => Err(self.in_use()),
            Err(TryLockError::Error(error)) => Err(named(&path)(error)),
        }
    }

    fn in_use(&self) -> io::Error {
        let text = format!(
            "{}: another logpond uses this directory; stop it or choose another one",
            self.root.display()
        );
        io::Error::new(ErrorKind::ResourceBusy, text)
    }

    /// The path of a file, which must be a plain relative one.
    fn path(&self, path: &str) -> io::Result<PathBuf> {
        let plain = |part| matches!(part, Component::Normal(_));
        if !Path::new(path).components().all(plain) {
            let text = format!("{path}: not a path below the data directory");
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        Ok(self.root.join(path))
    }
}

impl Disk for RealDisk {
    fn list(&self, directory: &str) -> io::Result<Vec<DirEntry>> {
        let path = self.path(directory)?;
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(named(&path))?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(named(&path))?;
            // A link counts as what it leads to: old segments may lie on another disk.
            let bytes = match fs::metadata(entry.path()) {
                Ok(metadata) if metadata.is_dir() => continue,
                Ok(metadata) if metadata.is_file() => metadata.len(),
                // Opening it says what is wrong. Left out, it would look as if it had never been there.
                Ok(_) => 0,
                Err(_) => match fs::symlink_metadata(entry.path()) {
                    // Removed since the directory was read.
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    other => other.map(|_| 0).map_err(named(&entry.path()))?,
                },
            };
            // Names that are not UTF-8 are none of ours.
            if let Ok(name) = entry.file_name().into_string() {
                found.push(DirEntry { name, bytes });
            }
        }
        Ok(found)
    }

    fn create_directory(&self, directory: &str) -> io::Result<()> {
        let mut path = self.path("")?;
        self.path(directory)?;
        for part in Path::new(directory).components() {
            let parent = path.clone();
            path.push(part);
            match fs::DirBuilder::new().mode(DIRECTORY_MODE).create(&path) {
                Ok(()) => sync_directory(&parent)?,
                Err(_) if path.is_dir() => {}
                Err(error) => return Err(named(&path)(error)),
            }
        }
        Ok(())
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn AppendFile>> {
        let path = self.path(path)?;
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(&path)
            .map_err(named(&path))?;
        Ok(Box::new(RealFile { file, path }))
    }

    fn open_append(&self, path: &str) -> io::Result<Box<dyn AppendFile>> {
        let path = self.path(path)?;
        let file = open_regular(OpenOptions::new().append(true), &path)?;
        Ok(Box::new(RealFile { file, path }))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn ReadAt>> {
        let path = self.path(path)?;
        let file = open_regular(OpenOptions::new().read(true), &path)?;
        Ok(Arc::new(RealFile { file, path }))
    }

    fn truncate(&self, path: &str, bytes: u64) -> io::Result<()> {
        let path = self.path(path)?;
        let file = open_regular(OpenOptions::new().write(true), &path)?;
        let shorten = || {
            file.set_len(bytes)?;
            file.sync_all()
        };
        shorten().map_err(named(&path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let from = self.path(from)?;
        fs::rename(&from, self.path(to)?).map_err(named(&from))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let path = self.path(path)?;
        fs::remove_file(&path).map_err(named(&path))
    }

    fn sync_directory(&self, directory: &str) -> io::Result<()> {
        sync_directory(&self.path(directory)?)
    }

    fn space(&self) -> io::Result<Space> {
        let found = rustix::fs::statvfs(&self.root)
            .map_err(|error| named(&self.root)(io::Error::from(error)))?;
        Ok(Space {
            free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
            total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
        })
    }
}

/// An open file with its path, for the text of errors.
struct RealFile {
    file: File,
    path: PathBuf,
}

impl AppendFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).map_err(named(&self.path))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data().map_err(named(&self.path))
    }
}

impl ReadAt for RealFile {
    fn bytes(&self) -> io::Result<u64> {
        let metadata = self.file.metadata().map_err(named(&self.path))?;
        Ok(metadata.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file
            .read_exact_at(buffer, offset)
            .map_err(named(&self.path))
    }

    fn forget(&self, offset: u64, bytes: u64) {
        // Without a length the advice would be about all that follows.
        if let Some(bytes) = NonZeroU64::new(bytes) {
            // A file system that cannot has the bytes read from its cache.
            let _ = rustix::fs::fadvise(&self.file, offset, Some(bytes), Advice::DontNeed);
        }
    }
}

/// Replaces a small file of a directory in one step: after a crash there is the old one or the new
/// one, and once this returned, the new one. Blocks for two syncs.
pub fn replace(disk: &dyn Disk, directory: &str, path: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!("{path}.new");
    match disk.remove(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = disk.create(&temporary)?;
    file.append(bytes)?;
    file.sync()?;
    disk.rename(&temporary, path)?;
    disk.sync_directory(directory)
}

/// The bytes of a regular file, at most so many.
///
/// # Errors
/// When it cannot be read, is longer, or is no regular file; the error does not name it.
pub fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_if_regular(OpenOptions::new().read(true), path)?;
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let text = format!("it is longer than {bytes_max} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Opens a file that must be a regular one; an error names it.
pub(crate) fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_if_regular(options, path).map_err(named(path))
}

/// Opening a FIFO would wait for its other end, for ever.
fn open_if_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = options.custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        let text = "it is not a regular file";
        return Err(io::Error::new(ErrorKind::InvalidData, text));
    }
    Ok(file)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(named(path))
}

/// True if a file system refuses to lock a directory at all.
fn has_no_directory_locks(error: &io::Error) -> bool {
    let refusals = [
        Errno::BADF,
        Errno::INVAL,
        Errno::ISDIR,
        Errno::NOLCK,
        Errno::NOSYS,
        Errno::OPNOTSUPP,
    ];
    let code = error.raw_os_error();
    refusals.iter().any(|e| Some(e.raw_os_error()) == code)
}

/// Puts the path into an error's text; the kind stays.
fn named(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_the_suite() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::create(&directory.path().join("a/b")).unwrap();
        logpond_segment::disk_suite::check(&disk);
    }

    #[test]
    fn paths_stay_below_the_data_directory() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::create(directory.path()).unwrap();
        for path in ["../x", "/etc/passwd", "a/../../x", "./x"] {
            let error = disk.open(path).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path}");
        }
    }

    #[test]
    fn what_is_no_regular_file_is_listed_and_refused_at_once() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        use std::os::unix::net::UnixListener;

        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::create(directory.path()).unwrap();
        let path = |name: &str| directory.path().join("journal").join(name);
        disk.create_directory("journal/directory").unwrap();
        mknodat(
            CWD,
            path("fifo"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        fs::write(path("file"), b"four").unwrap();
        for (target, link) in [("file", "link"), ("nothing", "dangling"), ("loop", "loop")] {
            std::os::unix::fs::symlink(target, path(link)).unwrap();
        }
        let mut found = disk.list("journal").unwrap();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        let found: Vec<_> = found.iter().map(|e| (&*e.name, e.bytes)).collect();
        let others = ["dangling", "fifo", "loop", "socket"];
        let mut expected: Vec<_> = others.iter().map(|name| (*name, 0)).collect();
        expected.extend([("file", 4), ("link", 4)]);
        expected.sort_unstable();
        assert_eq!(found, expected);
        for name in others.into_iter().chain(["directory"]) {
            let path = format!("journal/{name}");
            assert!(disk.open(&path).is_err(), "{name}");
            assert!(disk.open_append(&path).is_err(), "{name}");
            assert!(disk.truncate(&path, 0).is_err(), "{name}");
            assert!(
                read_bounded(&directory.path().join(path), 4).is_err(),
                "{name}"
            );
        }
        assert_eq!(read_bounded(&path("link"), 4).unwrap(), b"four");
        let too_long = read_bounded(&path("link"), 3).unwrap_err();
        assert_eq!(too_long.kind(), ErrorKind::FileTooLarge);
        assert_eq!(disk.open("journal/link").unwrap().bytes().unwrap(), 4);
    }

    #[test]
    fn one_process_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::create(directory.path()).unwrap();
        let lock = disk.lock().unwrap();
        let error = disk.clone().lock().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        drop(lock);
        disk.lock().unwrap();
    }

    #[test]
    fn a_deleted_lock_file_lets_nobody_in() {
        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::create(directory.path()).unwrap();
        let lock = disk.lock().unwrap();
        fs::remove_file(directory.path().join(LOCK_NAME)).unwrap();
        let error = disk.lock().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        // Nor does the directory under another name.
        let moved = directory.path().with_extension("moved");
        fs::rename(directory.path(), &moved).unwrap();
        let error = RealDisk::open(&moved).unwrap().lock().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        drop(lock);
        RealDisk::open(&moved).unwrap().lock().unwrap();
        fs::rename(&moved, directory.path()).unwrap();
    }

    #[test]
    fn a_journal_is_written_and_recovered() {
        use logpond_record::{Batch, EntryKind, Incarnation, Timestamp};
        use logpond_segment::journal::{JournalFile, Settings, Writer, recover};

        let directory = tempfile::tempdir().unwrap();
        let disk = RealDisk::create(directory.path()).unwrap();
        let mut writer = Writer::new(Arc::new(disk.clone()), Settings::default());
        let mut batch = Batch::new(EntryKind::Line, Vec::new());
        batch.push(b"one");
        batch.push(b"two");
        let now = Timestamp(1_700_000_000_000_000_000);
        writer.append(&batch, now, || Incarnation(1)).unwrap();
        writer.sync().unwrap();
        drop(writer);
        let recovered = recover(&disk).unwrap();
        assert_eq!(recovered.closed.len(), 1);
        assert_eq!(recovered.closed[0].summary.rows(), 2);
        let journal = JournalFile::from_closed(&disk, &recovered.closed[0]).unwrap();
        let mut frames = journal.frames();
        assert_eq!(frames.next().unwrap().unwrap().payload(), b"onetwo");
        assert_eq!(recover(&disk).unwrap(), recovered);
    }
}
