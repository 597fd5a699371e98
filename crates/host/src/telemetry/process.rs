//! What the kernel says about the process. Linux; elsewhere the families are left out.

use std::fs;
use std::net::SocketAddr;

use super::exposition::Exposition;

/// `USER_HZ` of every Linux that Rust's standard library runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Writes the resources that this process uses.
pub fn expose(out: &mut Exposition) {
    if let Some(bytes) = resident_bytes() {
        let name = "process_resident_memory_bytes";
        out.family(name, "gauge", "Resident memory.");
        out.sample(name, &[], bytes);
    }
    if let Some(seconds) = cpu_seconds() {
        let name = "process_cpu_seconds_total";
        out.family(name, "counter", "User and system CPU time.");
        out.sample(name, &[], seconds);
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        out.family("process_open_fds", "gauge", "Open file descriptors.");
        out.sample("process_open_fds", &[], files.count());
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may hold spaces; fields are counted after it.
    let after = stat.rsplit_once(')')?.1;
    let mut fields = after.split_ascii_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

/// Datagrams that the kernel dropped at the UDP socket bound to `address`, because the process
/// did not read fast enough. Reads `/proc`: not for an async thread.
pub fn kernel_drops(address: SocketAddr) -> Option<u64> {
    let table = if address.is_ipv4() {
        "/proc/net/udp"
    } else {
        "/proc/net/udp6"
    };
    drops_in(&fs::read_to_string(table).ok()?, address)
}

fn drops_in(table: &str, address: SocketAddr) -> Option<u64> {
    // Ports are unique enough: two sockets of one port differ only by address.
    let suffix = format!(":{:04X}", address.port());
    let drops = table.lines().skip(1).filter_map(|line| {
        let local = line.split_ascii_whitespace().nth(1)?;
        let drops = line.split_ascii_whitespace().next_back()?;
        local
            .ends_with(&suffix)
            .then(|| drops.parse::<u64>().ok())?
    });
    Some(drops.sum())
}

#[cfg(test)]
pub(super) fn drops_of(table: &str, address: SocketAddr) -> Option<u64> {
    drops_in(table, address)
}
