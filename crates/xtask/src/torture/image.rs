//! Disks of nodes whose power can be cut: ext4 in a file, on a loop device.
//!
//! ext4 can be told to stop at once and to forget what it has not written (`EXT4_IOC_SHUTDOWN`). What a
//! node has synced is in the image by then, and nothing else has to be. The node must not run any more at
//! that moment: a sync that meets the shutdown may return 0 although the journal of ext4 was given up (seen
//! with a program of ten lines on Linux 6.18, once in twenty times), which no real power cut does.
//!
//! This needs root in the first user namespace. The files are in memory, below the `/run` of the run's
//! mount namespace, and vanish with it; so do the loop devices.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::world::DISK_BYTES;
use crate::e2e::pond::wait_within;
use crate::run::{Outcome, find_program, output};

/// Options of the mount. By default ext4 writes the data of a file before it is renamed over another one,
/// which a program must not count on.
const OPTIONS: &str = "loop,noatime,noauto_da_alloc";

/// Stops a file system: `EXT4_IOC_SHUTDOWN` with `EXT4_GOING_FLAGS_NOLOGFLUSH`.
const SHUTDOWN: &str = "import fcntl, os, struct, sys\n\
    fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))";

/// How long a file system may be in use by a process that was killed.
const UNMOUNT_DEADLINE: Duration = Duration::from_secs(10);

/// A file with a file system, which is mounted somewhere.
#[derive(Clone, Debug)]
pub(super) struct Image {
    file: PathBuf,
    mount: PathBuf,
}

impl Image {
    /// Makes a file system and mounts it.
    pub(super) fn create(name: &str, mount: &Path) -> Outcome<Image> {
        let image = Image {
            file: Path::new("/run").join(format!("{name}.image")),
            mount: mount.to_owned(),
        };
        let made = File::create(&image.file).and_then(|file| file.set_len(DISK_BYTES));
        made.map_err(|e| format!("{}: {e}", image.file.display()))?;
        let mut make = Command::new("mkfs.ext4");
        make.args(["-q", "-F", "-m", "0", "-b", "4096"]);
        make.args(["-E", "lazy_itable_init=0,lazy_journal_init=0"]);
        output(make.arg(&image.file))?;
        image.mount()?;
        Ok(image)
    }

    /// Mounts it again.
    pub(super) fn mount(&self) -> Outcome<()> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "ext4", "-o", OPTIONS]);
        output(mount.arg(&self.file).arg(&self.mount)).map(drop)
    }

    /// Loses what was not synced. Processes that write to the file system must be stopped.
    pub(super) fn cut_power(&self) -> Outcome<()> {
        let python = find_program("python3").ok_or("python3 is not installed")?;
        output(Command::new(python).args(["-c", SHUTDOWN]).arg(&self.mount)).map(drop)
    }

    /// Unmounts it, once nobody uses it any more.
    pub(super) fn unmount(&self) -> Outcome<()> {
        let mut last = Ok(String::new());
        let what = "the file system is unmounted";
        let waited = wait_within(UNMOUNT_DEADLINE, what, || {
            last = output(Command::new("umount").arg(&self.mount));
            last.is_ok()
        });
        waited.map_err(|error| format!("{error}: {last:?}"))
    }
}

/// Makes an image, cuts its power and mounts it again.
///
/// # Errors
/// Why that cannot be done.
pub(super) fn probe() -> Outcome<()> {
    let mount = Path::new("/run/probe");
    fs::create_dir_all(mount).map_err(|e| format!("{}: {e}", mount.display()))?;
    let image = Image::create("probe", mount)?;
    let cut = image.cut_power();
    image.unmount()?;
    cut?;
    image.mount()?;
    image.unmount()?;
    fs::remove_file(&image.file).map_err(|e| format!("{}: {e}", image.file.display()))
}
