//! A full disk refuses new records with a clear error and recovers by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{program, say};

/// Size of the file system under test.
const DISK_BYTES: usize = 48 << 20;

/// A small file system in memory, unmounted with its owner.
pub(crate) struct SmallDisk {
    pub(crate) path: PathBuf,
}

impl SmallDisk {
    /// Mounts one; nothing where that is not permitted.
    pub(crate) fn mount(path: &Path, bytes: usize) -> Option<SmallDisk> {
        fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "none"])
            .arg(path)
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then(|| SmallDisk { path: path.into() })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    let scratch = Scratch::new("full").unwrap();
    let Some(disk) = SmallDisk::mount(&scratch.path().join("disk"), DISK_BYTES) else {
        // Mounting needs privileges that a build machine may rightly not give.
        say("skipped: a full disk because mounting a small file system is not permitted here");
        return;
    };
    let ballast = disk.path.join("ballast");
    fs::write(&ballast, vec![0; DISK_BYTES / 2]).unwrap();
    let data = disk.path.join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    let mut accepted = 0;
    let mut refusal = None;
    for number in 0..400 {
        // Text that does not compress, so that segments do not make room faster than it fills.
        let pushed = server
            .push("text/plain", &noise(number, 256 << 10))
            .unwrap();
        if pushed.status != 200 {
            refusal = Some(pushed);
            break;
        }
        accepted += pushed.accepted();
    }
    let refusal = refusal.expect("the disk never filled");
    assert!(
        matches!(refusal.status, 429 | 503 | 507),
        "{} {}",
        refusal.status,
        refusal.body
    );
    let message = refusal.body["error"]["message"]
        .as_str()
        .unwrap_or_default();
    assert!(
        message.contains("disk") || message.contains("space"),
        "{}",
        refusal.body
    );
    let (rows, trailer) = server.query("noise").unwrap();
    assert_eq!(trailer["complete"], true, "{trailer}");
    assert_eq!(
        rows.len() as u64,
        accepted,
        "a full disk still answers, and exactly"
    );
    fs::remove_file(&ballast).unwrap();
    wait_until("it takes records again", || {
        server
            .push("text/plain", b"noise after\n")
            .is_ok_and(|pushed| pushed.status == 200)
    })
    .unwrap();
    let (rows, _) = server.query("\"noise after\"").unwrap();
    assert_eq!(rows.len(), 1, "exactly the accepted one");
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    let server = TestServer::start(program(), &data, &[]).unwrap();
    let (rows, trailer) = server.query("noise").unwrap();
    let files = crate::pond::files_below(&data, "");
    let found = rows.len() as u64;
    assert_eq!(found, accepted + 1, "after a restart: {trailer} {files:?}");
}

/// Lines of about 1 KiB of letters drawn from a seed.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(bytes + 1100);
    while out.len() < bytes {
        out.extend_from_slice(b"noise ");
        for _ in 0..1_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            out.push(
                b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"
                    [(state % 64) as usize],
            );
        }
        out.push(b'\n');
    }
    out
}
