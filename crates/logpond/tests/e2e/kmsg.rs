//! Messages of this machine's kernel: each is there once, with its number's fields, over restarts.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{program, skip};

const DEVICE: &str = "/dev/kmsg";

fn start(data: &Path) -> TestServer {
    TestServer::start(program(), data, &["--kmsg", DEVICE]).unwrap()
}

/// Writes to the kernel's log as a program, if this machine lets us read and write there. A message
/// without a line end could be continued, so it is not shown before the next one comes.
fn write(text: &str) -> std::io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(DEVICE)?
        .write_all(format!("{text}\n").as_bytes())
}

/// How many messages the kernel has.
fn messages() -> std::io::Result<usize> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let mut device = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(DEVICE)?;
    let mut buffer = vec![0; 8 << 10];
    let mut count = 0;
    while device.read(&mut buffer).is_ok() {
        count += 1;
    }
    Ok(count)
}

/// A number that no other run has.
fn clock_ns() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_nanos()
}

#[test]
fn messages_of_the_kernel_are_there_once() {
    // The kernel still has what earlier runs wrote.
    let run = format!("run{}", clock_ns());
    let first = format!("<28>logpond-test[77]: first-{run} \u{e9} \\ end");
    if let Err(error) = write(&first).and_then(|()| messages().map(drop)) {
        return skip(
            "messages of the kernel",
            &format!("{DEVICE} cannot be used: {error}"),
        );
    }
    let scratch = Scratch::new("kmsg").unwrap();
    let data = scratch.path().join("data");
    let server = start(&data);
    let rows = |server: &TestServer, q: &str| server.query(q).unwrap().0;
    let of_kernel = "_TRANSPORT=kernel";
    wait_until("those before it are read", || {
        rows(&server, of_kernel).len() >= messages().unwrap()
    })
    .unwrap();
    write(&format!("<29>logpond-test: second-{run}")).unwrap();
    wait_until("a new one is there", || {
        !rows(&server, &format!("app=logpond-test AND \"second-{run}\"")).is_empty()
    })
    .unwrap();
    let found = rows(&server, &format!("app=logpond-test AND \"first-{run}\""));
    assert_eq!(found.len(), 1);
    let row = &found[0];
    assert_eq!(row["_msg"], format!("first-{run} \u{e9} \\ end"));
    assert_eq!((&row["severity"], &row["facility"]), (&4.into(), &3.into()));
    assert_eq!(
        (&row["procid"], &row["PRIORITY"]),
        (&"77".into(), &4.into())
    );
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(row["_BOOT_ID"], boot.trim().replace('-', ""));
    assert!(row["_SOURCE_BOOTTIME_TIMESTAMP"].as_i64().unwrap() > 0);
    // Others may write meanwhile; what was there is there once afterwards.
    let before: Vec<_> = rows(&server, of_kernel)
        .iter()
        .map(|row| row["_id"].clone())
        .collect();
    // What is in a segment is known, too.
    server.compact().unwrap();
    server.kill();
    let server = start(&data);
    write(&format!("<29>logpond-test: third-{run}")).unwrap();
    wait_until("it goes on", || {
        !rows(&server, &format!("app=logpond-test AND \"third-{run}\"")).is_empty()
    })
    .unwrap();
    let times = |q: &str| {
        let mut times: Vec<_> = rows(&server, q)
            .iter()
            .map(|row| row["_SOURCE_BOOTTIME_TIMESTAMP"].as_i64().unwrap())
            .collect();
        let all = times.len();
        times.sort_unstable();
        times.dedup();
        (all, times.len())
    };
    let (all, distinct) = times("app=logpond-test");
    assert_eq!(all, distinct, "a message is there twice");
    assert!(rows(&server, of_kernel).len() > before.len());
    let taken = server.metric("logpond_ingest_records_total").unwrap();
    assert!(
        taken < before.len() as f64 / 2.0,
        "{taken} were taken in again"
    );
    assert_eq!(server.metric("logpond_ingest_lost_total"), Ok(0.0));
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn what_is_no_device_is_refused() {
    let scratch = Scratch::new("kmsg-none").unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, "6,1,2,-;x\n").unwrap();
    let data = scratch.path().join("data");
    let error = TestServer::start(program(), &data, &["--kmsg", file.to_str().unwrap()]);
    let error = error.err().unwrap();
    assert!(
        error.contains("it is no device that the kernel writes to"),
        "{error}"
    );
}
