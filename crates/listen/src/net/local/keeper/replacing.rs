//! A keeper process that ends while there is a server, by a kill for instance, and the one that takes its
//! place.
//!
//! The server has a copy of every descriptor that is kept. A thread waits for the end of the keeper; then it
//! starts another one and hands it all copies.
//!
//! Invariant: what is said while there is no keeper changes the copies first, so the next one has it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::message::Request;
use super::name::Name;
use super::process::KeeperProcess;
use super::{Backend, Keeper};
use logpond_host::telemetry::warn;

/// How long it is waited before a keeper is started again: whatever ends it may do so at once.
const PAUSE_FIRST: Duration = Duration::from_millis(100);

/// The longest of these pauses, each of which is twice the one before.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// A keeper that lived as long ended by chance.
const LIFE_MIN: Duration = Duration::from_secs(60);

/// What a keeper has. There are at most [`super::KEPT_MAX`].
#[derive(Default)]
pub(super) struct Copies {
    kept: BTreeMap<Name, (OwnedFd, Option<PathBuf>)>,
    wait: Option<Duration>,
}

impl Copies {
    fn take(&mut self, request: &Request, with: Option<BorrowedFd<'_>>) -> io::Result<()> {
        match (request, with) {
            (Request::Keep(name, path), Some(descriptor)) => {
                let copy = descriptor.try_clone_to_owned()?;
                self.kept.insert(*name, (copy, path.clone()));
            }
            (Request::Keep(..), None) => {}
            (Request::Drop(name), _) => drop(self.kept.remove(name)),
            (Request::Serving(wait), _) => self.wait = Some(*wait),
        }
        Ok(())
    }

    fn give_to(&self, keeper: &KeeperProcess) -> io::Result<()> {
        for (name, (descriptor, path)) in &self.kept {
            let request = Request::Keep(*name, path.clone());
            keeper.tell_patiently(&request, Some(descriptor.as_fd()))?;
        }
        match self.wait {
            Some(wait) => keeper.tell_patiently(&Request::Serving(wait), None),
            None => Ok(()),
        }
    }
}

/// Whether an error says that there is nobody any more.
pub(super) fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
    matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected)
}

/// Starts the thread that replaces the keeper, if that is a process.
///
/// # Errors
/// When the system gives no thread.
pub(super) fn start(keeper: &Arc<Keeper>) -> io::Result<()> {
    let end = match &*keeper.backend() {
        Backend::Process(process) => process.end()?,
        Backend::Manager(_) => return Ok(()),
    };
    let keeper = Arc::downgrade(keeper);
    let thread = thread::Builder::new().name("lp-keeper".to_owned());
    // It ends with the process.
    thread.spawn(move || watch(&keeper, end)).map(drop)
}

fn watch(keeper: &Weak<Keeper>, mut end: OwnedFd) {
    let mut pause = PAUSE_FIRST;
    loop {
        let since = std::time::Instant::now();
        wait_for(&end);
        if since.elapsed() >= LIFE_MIN {
            pause = PAUSE_FIRST;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
        // Without one the server is about to end.
        let Some(keeper) = keeper.upgrade() else {
            return;
        };
        match keeper.replace() {
            Ok(next) => {
                end = next;
                warn(
                    "the process that keeps sockets over a restart (logpond keep) had ended; \
                     another one does so now",
                );
            }
            Err(error) => keeper.complain_of(Err(error)),
        }
    }
}

/// Waits until there is something to read.
fn wait_for(end: &OwnedFd) {
    loop {
        let mut ready = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, PollTimeout::NONE) {
            Err(Errno::EINTR) => {}
            _ => return,
        }
    }
}

impl Keeper {
    /// Has the copies do what the keeper is told.
    pub(super) fn copy(&self, request: &Request, with: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.copies()
            .map_or(Ok(()), |mut copies| copies.take(request, with))
    }

    fn copies(&self) -> Option<MutexGuard<'_, Copies>> {
        let copies = self.copies.as_ref()?;
        Some(copies.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts another keeper and gives it all; what tells when that one ends. Whoever has something to say
    /// waits meanwhile, a hundredth of a second with thousands of streams.
    fn replace(&self) -> io::Result<OwnedFd> {
        let process = KeeperProcess::start(&self.control)?;
        let end = process.end()?;
        let mut backend = self.backend();
        if let Some(copies) = self.copies() {
            copies.give_to(&process)?;
        }
        let before = std::mem::replace(&mut *backend, Backend::Process(process));
        drop(backend);
        if let Backend::Process(before) = before {
            before.reap();
        }
        Ok(end)
    }
}
