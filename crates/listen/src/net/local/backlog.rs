//! How many datagrams may wait at a socket of this machine.
//!
//! The kernel's default is 10 (`net.unix.max_dgram_qlen`, unix(7)): a program that logs eleven lines at once
//! waits until somebody has been woken and has received some of them. Where systemd is the first process it
//! raises that to [`DATAGRAMS`] before any socket is made. Where Logpond takes the place of journald there may
//! be no systemd, so it does the same, if it may.

use std::fs;

use logpond_host::telemetry::say;

/// What systemd sets.
const DATAGRAMS: u32 = 512;

/// From so many on the receiver may let some come together.
const MANY: u32 = 256;

/// Where the kernel has it. It counts for sockets that are made from then on.
const PATH: &str = "/proc/sys/net/unix/max_dgram_qlen";

/// Makes it long, for sockets that are about to be bound.
pub(super) fn raise() {
    let Some(before) = datagrams().filter(|before| *before < DATAGRAMS) else {
        return;
    };
    // In a container it may be readable only; then programs wait a little more often.
    if fs::write(PATH, DATAGRAMS.to_string()).is_ok() {
        say(&format!(
            "net.unix.max_dgram_qlen is {DATAGRAMS} from now on, and was {before}, so that programs need \
             not wait to log"
        ));
    }
}

/// Whether programs need not wait if what they send is received in a millisecond.
pub(super) fn is_long() -> bool {
    datagrams().is_some_and(|datagrams| datagrams >= MANY)
}

fn datagrams() -> Option<u32> {
    fs::read_to_string(PATH).ok()?.trim().parse().ok()
}
