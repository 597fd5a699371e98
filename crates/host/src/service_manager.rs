//! systemd, or what speaks like it: what it is told, and what it hands over at a start.
//!
//! Source: sd_notify(3) and sd_listen_fds(3). Messages are datagrams of lines `NAME=value`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::net::SocketAddrUnix;

use crate::descriptors;
use crate::telemetry::warn;

/// The first descriptor that is handed over.
const LISTEN_FDS_START: RawFd = 3;

/// The most that are taken: the limit of what systemd stores for a service is far below.
const LISTEN_FDS_MAX: usize = 1 << 16;

/// How long a manager may be busy.
const TELL_MAX: Duration = Duration::from_secs(5);

/// How long it may take to read what it was told.
const BARRIER_MAX: Duration = Duration::from_secs(5);

/// Is there where systemd runs the machine (sd_booted(3)).
const BOOTED: &str = "/run/systemd/system";

/// A manager that wants to be told.
pub struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddrUnix,
}

/// Reads an environment variable.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl ServiceManager {
    /// The one that has started this process, if it says so.
    pub fn of_process() -> Option<ServiceManager> {
        let address = address(&variable("NOTIFY_SOCKET")?)?;
        let socket = UnixDatagram::unbound().ok()?;
        Some(ServiceManager { socket, address })
    }

    /// The same, if it keeps descriptors. Before version 254 systemd does not say whether it does, and
    /// other programs that take such messages keep none.
    pub fn that_keeps() -> Option<ServiceManager> {
        let limit = variable("FDSTORE").and_then(|text| text.parse::<u64>().ok());
        let keeps = limit.map_or_else(|| Path::new(BOOTED).is_dir(), |limit| limit > 0);
        ServiceManager::of_process().filter(|_| keeps)
    }

    /// Tells it something, with a descriptor beside it if there is one; never waits.
    ///
    /// # Errors
    /// `WouldBlock` if it is busy, and whatever the system says.
    pub fn tell(&self, text: &str, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let to = Some(&self.address);
        descriptors::send(&self.socket, to, text.as_bytes(), descriptor)
    }

    /// Waits until it has read all that this process has told it (`BARRIER=1`): it takes no descriptor from a
    /// process that has ended. Not for the runtime.
    ///
    /// # Errors
    /// `TimedOut` after [`BARRIER_MAX`], and whatever the system says.
    pub fn wait_until_read(&self) -> io::Result<()> {
        let (reader, writer) = io::pipe()?;
        self.socket.set_write_timeout(Some(BARRIER_MAX))?;
        let (to, text) = (Some(&self.address), b"BARRIER=1");
        descriptors::send_patiently(&self.socket, to, text, Some(writer.as_fd()))?;
        drop(writer);
        // It closes its copy then, which is no event but the end of the pipe.
        let mut polled = [PollFd::new(reader.as_fd(), PollFlags::empty())];
        let timeout = PollTimeout::try_from(BARRIER_MAX).map_err(io::Error::other)?;
        match poll(&mut polled, timeout)? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(()),
        }
    }
}

/// Tells the manager, if there is one, how far the service is. Waits for a while if it is busy: not for
/// the runtime.
pub fn tell(text: &str) {
    let told = ServiceManager::of_process().map(|manager| {
        manager.socket.set_write_timeout(Some(TELL_MAX))?;
        descriptors::send_patiently(
            &manager.socket,
            Some(&manager.address),
            text.as_bytes(),
            None,
        )
    });
    if let Some(Err(error)) = told {
        warn(&format!(
            "the service manager cannot be told {text}: {error}"
        ));
    }
}

fn address(text: &str) -> Option<SocketAddrUnix> {
    let address = match text.strip_prefix('@') {
        Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
        None if text.starts_with('/') => SocketAddrUnix::new(text),
        None => return None,
    };
    address.ok()
}

/// The descriptors that the process was started with, by their names. To be asked for once.
pub fn inherited() -> Vec<(String, OwnedFd)> {
    let listed = listed(&variable, std::process::id());
    let owned = listed.into_iter().filter_map(|(name, number)| {
        let owned = descriptors::own(number);
        owned.ok().map(|descriptor| (name, descriptor))
    });
    owned.collect()
}

/// Names and numbers, if they are for this process.
fn listed(variable: Variable<'_>, pid: u32) -> Vec<(String, RawFd)> {
    let is_ours = variable("LISTEN_PID").and_then(|text| text.parse().ok()) == Some(pid);
    let count = variable("LISTEN_FDS").and_then(|text| text.parse::<usize>().ok());
    let count = count.filter(|_| is_ours).unwrap_or(0);
    let names = variable("LISTEN_FDNAMES").unwrap_or_default();
    let named = names.split(':').map(str::to_owned);
    let numbers = LISTEN_FDS_START..;
    named
        .chain(std::iter::repeat(String::new()))
        .zip(numbers)
        .take(count.min(LISTEN_FDS_MAX))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_listed_by_their_names() {
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, RawFd)]);
        let table: [Row<'_>; 6] = [
            (&[], &[]),
            (&[("LISTEN_PID", "7"), ("LISTEN_FDS", "x")], &[]),
            (
                &[
                    ("LISTEN_PID", "8"),
                    ("LISTEN_FDS", "1"),
                    ("LISTEN_FDNAMES", "a"),
                ],
                &[],
            ),
            (
                &[
                    ("LISTEN_PID", "7"),
                    ("LISTEN_FDS", "2"),
                    ("LISTEN_FDNAMES", "a:b"),
                ],
                &[("a", 3), ("b", 4)],
            ),
            (
                &[
                    ("LISTEN_PID", "7"),
                    ("LISTEN_FDS", "2"),
                    ("LISTEN_FDNAMES", "a"),
                ],
                &[("a", 3), ("", 4)],
            ),
            (&[("LISTEN_PID", "7"), ("LISTEN_FDS", "1")], &[("", 3)]),
        ];
        for (variables, expected) in table {
            let variable = |wanted: &str| {
                let found = variables.iter().find(|(name, _)| *name == wanted);
                found.map(|(_, value)| (*value).to_owned())
            };
            let found = listed(&variable, 7);
            let found: Vec<(&str, RawFd)> = found.iter().map(|(n, f)| (&**n, *f)).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn addresses_are_paths_or_abstract() {
        assert!(address("/run/systemd/notify").is_some());
        assert!(address("@name").is_some());
        for other in ["", "relative", "vsock:2:9"] {
            assert!(address(other).is_none(), "{other}");
        }
    }
}
