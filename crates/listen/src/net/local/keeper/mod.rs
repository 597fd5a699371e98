//! What outlives a restart: sockets stay bound, and streams open, while no server is there.
//!
//! A server hands duplicates of their descriptors to a keeper, and the next server takes them back from
//! it. What is written meanwhile waits in the kernel. The keeper is the service manager where there is one
//! that keeps descriptors, otherwise a small process of our own:
//!
//! ```text
//!            names, descriptors        ┌─ manager: systemd's store (FDSTORE=1, LISTEN_FDS)
//! server ◀──────────────────────▶ keeper
//!            [`name`]                  └─ process ◀─ [`message`] ─▶ holder: `logpond keep`, which
//!                                                                  does what [`holding`] decides
//! ```
//!
//! What is known of each stream stands on a [`board`], a file in memory that is kept like the rest.
//!
//! Invariants:
//! - A stream is kept before anything is read from it, and what its header says is noted before it is
//!   taken out of the stream; so whenever the server is killed, the next one can go on.
//! - A keeper reads from nothing that it keeps, keeps no more than [`KEPT_MAX`], and ends soon after the
//!   last server: nobody writes to where nobody will ever read.
//! - A server works without a keeper; its streams break at its end then.
//! - A keeper process that ends while there is a server is replaced, and gets all that the one before had.

mod board;
pub mod holder;
mod holding;
mod message;
mod name;
mod process;
mod replacing;
mod slot;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use logpond_protocol::intake::lines::UnfinishedLine;

use board::Board;
pub(super) use board::StreamNote;
use message::Request;
use name::Name;
pub(super) use name::{Identity, Kind};
use process::KeeperProcess;
pub(super) use process::{control_beside, control_in};
use replacing::Copies;
pub(super) use slot::State;

use super::bind;
use super::streams::STREAMS_MAX;
use logpond_host::open_files;
use logpond_host::service_manager::{self, ServiceManager};
use logpond_host::telemetry::warn;

/// Bound sockets beside the streams, and the board: there are no more kinds than this.
const SOCKETS_MAX: usize = 16;

/// The most descriptors that are kept.
const KEPT_MAX: usize = STREAMS_MAX + SOCKETS_MAX;

/// How long it is waited until a keeper that is busy has room for a message.
const ROOM_PAUSE: Duration = Duration::from_millis(10);

/// How often; a keeper has nothing to do but to take messages, a service manager may start services.
const ROOM_PAUSES_MAX: usize = 200;

/// A descriptor and what it is.
struct NamedDescriptor {
    name: Name,
    descriptor: OwnedFd,
}

/// Who keeps.
enum Backend {
    Manager(ServiceManager),
    Process(KeeperProcess),
}

impl Backend {
    fn tell(&self, request: &Request, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let manager = match self {
            Backend::Process(process) => return process.tell(request, descriptor),
            Backend::Manager(manager) => manager,
        };
        match request {
            // Not watched: of a stream whose writer is gone there may be something to read.
            Request::Keep(name, _) => {
                let text = format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0");
                manager.tell(&text, descriptor)
            }
            Request::Drop(name) => manager.tell(&format!("FDSTOREREMOVE=1\nFDNAME={name}"), None),
            // How long it keeps is its own matter.
            Request::Serving(_) => Ok(()),
        }
    }
}

/// The descriptors that an earlier server has left with a keeper.
pub(super) struct Handover {
    backend: Option<Backend>,
    control: PathBuf,
    kept: Vec<NamedDescriptor>,
}

impl Handover {
    /// Takes over what is there. `control` is where a keeper of our own is found.
    pub(super) fn take_over(control: &Path) -> Handover {
        let control = std::path::absolute(control).unwrap_or_else(|_| control.to_owned());
        open_files::raise_limit();
        let (backend, kept) = match ServiceManager::that_keeps() {
            Some(manager) => {
                let inherited = service_manager::inherited().into_iter();
                let kept = inherited.filter_map(|(name, descriptor)| {
                    let name = name.parse().ok()?;
                    Some(NamedDescriptor { name, descriptor })
                });
                (Some(Backend::Manager(manager)), kept.collect())
            }
            None => match KeeperProcess::take_over(&control) {
                Ok(Some((process, kept))) => (Some(Backend::Process(process)), kept),
                Ok(None) => (None, Vec::new()),
                Err(error) => {
                    let at = control.display();
                    warn(&format!(
                        "nothing can be taken over from the keeper at {at}: {error}"
                    ));
                    (None, Vec::new())
                }
            },
        };
        Handover {
            backend,
            control,
            kept,
        }
    }

    /// The socket that is bound to this path, if it is among what was left.
    pub(super) fn socket(&mut self, kind: Kind, path: &Path) -> Option<(OwnedFd, Identity)> {
        let identity = bind::identity(path).ok()?;
        let name = Name::Socket(kind, identity);
        let index = self.kept.iter().position(|kept| kept.name == name)?;
        Some((self.kept.swap_remove(index).descriptor, identity))
    }
}

/// A socket that is to be kept.
pub(super) struct ToKeep<'a> {
    pub(super) kind: Kind,
    pub(super) identity: Identity,
    pub(super) path: &'a Path,
    pub(super) descriptor: BorrowedFd<'a>,
    /// Whether it was taken over, and so is kept.
    pub(super) is_kept: bool,
}

/// Keeps what this server has.
pub(super) struct Keeper {
    backend: Mutex<Backend>,
    /// Of what a process keeps, for the next one; `None` with a service manager.
    copies: Option<Mutex<Copies>>,
    /// Where a process is connected to.
    control: PathBuf,
    board: Board,
    /// Slots on the board.
    free: Mutex<Vec<u16>>,
    has_complained: AtomicBool,
}

/// A stream that an earlier server has left.
pub(super) struct LeftStream {
    pub(super) stream: UnixStream,
    pub(super) kept: KeptStream,
    /// What was noted of it; `None` if nothing was taken from it.
    pub(super) noted: Option<StreamNote>,
}

impl Keeper {
    /// Keeps these sockets, and goes on with the streams that were left if this server takes any.
    ///
    /// # Errors
    /// When there is no keeper and none can be started, or it does not keep these.
    pub(super) fn start(
        left: Handover,
        sockets: &[ToKeep<'_>],
        takes_streams: bool,
    ) -> io::Result<(Arc<Keeper>, Vec<LeftStream>)> {
        let backend = match left.backend {
            Some(backend) => backend,
            None => Backend::Process(KeeperProcess::start(&left.control)?),
        };
        let is_process = matches!(backend, Backend::Process(_));
        let (mut boards, mut streams, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for kept in left.kept {
            match kept.name {
                Name::Board => boards.push(kept.descriptor),
                Name::Stream(slot) if takes_streams && usize::from(slot) < STREAMS_MAX => {
                    streams.push((slot, kept.descriptor));
                }
                name => others.push(name),
            }
        }
        let opened = boards.pop().map(Board::open).transpose();
        let opened = opened.unwrap_or_else(|error| {
            warn(&format!(
                "what earlier streams said of themselves cannot be read: {error}"
            ));
            None
        });
        let is_new = opened.is_none();
        let keeper = Keeper {
            backend: Mutex::new(backend),
            copies: is_process.then(Mutex::default),
            control: left.control,
            board: opened.map_or_else(Board::new, Ok)?,
            free: Mutex::default(),
            has_complained: AtomicBool::new(false),
        };
        let request = Request::Keep(Name::Board, None);
        let board = Some(keeper.board.file().as_fd());
        if is_new {
            keeper.tell_now(&request, board)?
        } else {
            keeper.copy(&request, board)?
        }
        for socket in sockets {
            let name = Name::Socket(socket.kind, socket.identity);
            let request = Request::Keep(name, Some(std::path::absolute(socket.path)?));
            if socket.is_kept {
                keeper.copy(&request, Some(socket.descriptor))?
            } else {
                keeper.tell_now(&request, Some(socket.descriptor))?
            }
        }
        for name in others {
            keeper.tell_now(&Request::Drop(name), None)?;
        }
        let keeper = Arc::new(keeper);
        let streams = keeper.go_on(streams)?;
        Ok((keeper, streams))
    }

    fn go_on(self: &Arc<Keeper>, streams: Vec<(u16, OwnedFd)>) -> io::Result<Vec<LeftStream>> {
        let mut gone_on = Vec::new();
        let mut is_free = vec![true; STREAMS_MAX];
        for (slot, descriptor) in streams {
            let noted = match self.board.read(slot) {
                Ok(noted) => noted,
                Err(error) => {
                    warn(&format!("a stream of an earlier server ends: {error}"));
                    self.tell_now(&Request::Drop(Name::Stream(slot)), None)?;
                    continue;
                }
            };
            let request = Request::Keep(Name::Stream(slot), None);
            self.copy(&request, Some(descriptor.as_fd()))?;
            is_free[usize::from(slot)] = false;
            gone_on.push(LeftStream {
                stream: descriptor.into(),
                kept: KeptStream {
                    keeper: self.clone(),
                    slot,
                },
                noted,
            });
        }
        let slots = gone_on.iter().map(|left| left.kept.slot);
        self.board.forget_lines(slots)?;
        let free = (0..).zip(is_free).filter(|(_, is_free)| *is_free);
        *self.free() = free.map(|(slot, _)| slot).collect();
        Ok(gone_on)
    }

    fn backend(&self) -> MutexGuard<'_, Backend> {
        self.backend.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free(&self) -> MutexGuard<'_, Vec<u16>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that all is served: what is kept is worth waiting for another server so long. From now on a
    /// keeper that ends is replaced.
    pub(super) fn serving(self: &Arc<Keeper>, wait: Duration) {
        self.complain_of(self.tell_now(&Request::Serving(wait), None));
        self.complain_of(replacing::start(self));
    }

    /// Keeps a stream of which nothing was read yet. `None` if it cannot be; it breaks at the end then.
    pub(super) async fn keep(self: &Arc<Keeper>, stream: impl AsFd) -> Option<KeptStream> {
        let slot = self.free().pop()?;
        let request = Request::Keep(Name::Stream(slot), None);
        let told = match self.board.clear(slot) {
            Ok(()) => self.tell(&request, Some(stream.as_fd())).await,
            failed => failed,
        };
        if told.is_err() {
            self.complain_of(told);
            self.free().push(slot);
            return None;
        }
        let keeper = self.clone();
        Some(KeptStream { keeper, slot })
    }

    /// Waits until a service manager has taken the streams that it was given: those that it reads of a process that
    /// has ended are lost. A keeper of our own reads them then, too.
    pub(super) async fn settle(self: &Arc<Keeper>) {
        let keeper = self.clone();
        let settled = tokio::task::spawn_blocking(move || match &*keeper.backend() {
            Backend::Manager(manager) => manager.wait_until_read(),
            Backend::Process(_) => Ok(()),
        });
        if let Ok(settled) = settled.await {
            self.complain_of(settled);
        }
    }

    async fn tell(&self, request: &Request, with: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.copy(request, with)?;
        for _ in 0..ROOM_PAUSES_MAX {
            match self.tell_once(request, with) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(ROOM_PAUSE).await;
                }
                told => return told,
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// The same before the runtime starts.
    fn tell_now(&self, request: &Request, with: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.copy(request, with)?;
        for _ in 0..ROOM_PAUSES_MAX {
            match self.tell_once(request, with) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(ROOM_PAUSE);
                }
                told => return told,
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    fn tell_once(&self, request: &Request, with: Option<BorrowedFd<'_>>) -> io::Result<()> {
        match self.backend().tell(request, with) {
            // The next one is told what the copies are.
            Err(error) if self.copies.is_some() && replacing::is_end(&error) => Ok(()),
            told => told,
        }
    }

    /// Once: whatever it is, it goes on.
    fn complain_of(&self, told: io::Result<()>) {
        if let Err(error) = told
            && !self.has_complained.swap(true, Ordering::Relaxed)
        {
            warn(&format!(
                "a restart will break streams of services: they cannot be kept: {error}"
            ));
        }
    }
}

/// A stream that is kept, and its slot on the board.
pub(super) struct KeptStream {
    keeper: Arc<Keeper>,
    slot: u16,
}

impl KeptStream {
    /// Notes what is known of it, before its header is taken out of it.
    pub(super) fn see(&self, state: &State) {
        let noted = self.keeper.board.see(self.slot, state);
        self.keeper.complain_of(noted);
    }

    /// Notes that the header was taken out.
    pub(super) fn take(&self) {
        self.keeper.complain_of(self.keeper.board.take(self.slot));
    }

    /// Leaves it to the next server, which goes on with this line.
    pub(super) fn leave(&self, line: Option<&UnfinishedLine>) {
        if let Some(line) = line {
            let noted = self.keeper.board.leave(self.slot, line);
            self.keeper.complain_of(noted);
        }
    }

    /// It has ended, or cannot be read.
    pub(super) async fn end(self) {
        let KeptStream { keeper, slot } = self;
        let told = match keeper.board.clear(slot) {
            Ok(()) => keeper.tell(&Request::Drop(Name::Stream(slot)), None).await,
            failed => failed,
        };
        match told {
            Ok(()) => keeper.free().push(slot),
            // The name is still taken.
            failed => keeper.complain_of(failed),
        }
    }
}
