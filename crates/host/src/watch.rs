//! `lp-watch`: looks at files that may change under a running server, and takes them in.
//!
//! Invariants: only this thread reads them while the server runs; what it looks at keeps its last
//! good state when a file turns bad; each bad state of a file is reported once.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use logpond_tls::Stamp;

/// How often files are looked at: a revoked token works no longer than this, and a look costs one
/// `stat` a file.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Wishes that wait: one look serves all who asked before it.
const WISHES_MAX: usize = 1;

/// A value that is made from files.
pub trait WatchTarget: Send {
    /// Takes in what changed in the files; with `is_asked` also what seems not to have changed.
    fn look(&mut self, is_asked: bool);
}

/// Looks in a row at which files must be bad before it is said: they are replaced one after the
/// other, and in between a key need not be the certificate's.
const BAD_LOOKS_MAX: u32 = 2;

/// Files that are used together, and their state when they were last read.
pub struct WatchedFiles {
    paths: Vec<PathBuf>,
    stamps: Vec<Stamp>,
    /// Looks since the files changed at which they were bad.
    bad_looks: u32,
}

impl WatchedFiles {
    /// The state of the files now. Take it before they are read.
    pub fn of(paths: Vec<PathBuf>) -> WatchedFiles {
        let stamps = paths.iter().map(|path| Stamp::of(path)).collect();
        WatchedFiles {
            paths,
            stamps,
            bad_looks: 0,
        }
    }

    /// The files.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// From now on these files are used. Take them in before they are read; of those that were used
    /// before it counts when they were last looked at.
    pub fn follow(&mut self, paths: Vec<PathBuf>) {
        let stamp = |path: &PathBuf| {
            let known = self.paths.iter().position(|known| known == path);
            known.map_or_else(|| Stamp::of(path), |at| self.stamps[at].clone())
        };
        self.stamps = paths.iter().map(stamp).collect();
        self.paths = paths;
    }

    /// Whether the files are to be read at this look: they have changed, were bad at the last one, or
    /// somebody asks. Notes their state now.
    pub fn is_due(&mut self, is_asked: bool) -> bool {
        let now: Vec<Stamp> = self.paths.iter().map(|path| Stamp::of(path)).collect();
        let has_changed = std::mem::replace(&mut self.stamps, now) != self.stamps;
        if has_changed {
            self.bad_looks = 0;
        }
        has_changed || is_asked || (1..BAD_LOOKS_MAX).contains(&self.bad_looks)
    }

    /// They were read and are good.
    pub fn are_good(&mut self) {
        self.bad_looks = 0;
    }

    /// They were read and are bad; gives whether it is time to say so.
    pub fn are_bad(&mut self, is_asked: bool) -> bool {
        self.bad_looks += 1;
        let is_time = self.bad_looks == BAD_LOOKS_MAX || is_asked;
        if is_time {
            self.bad_looks = BAD_LOOKS_MAX;
        }
        is_time
    }
}

enum Wish {
    Look,
    Stop,
}

/// The running thread.
#[derive(Debug)]
pub struct WatchThread {
    thread: JoinHandle<()>,
    watcher: Watcher,
}

/// Asks the thread to look now. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Watcher(SyncSender<Wish>);

impl Watcher {
    /// Asks for a look at everything; returns at once.
    pub fn look_now(&self) {
        // Where one waits already, it will see what this one would.
        let _ = self.0.try_send(Wish::Look);
    }
}

/// Starts the thread.
///
/// # Errors
/// When the system gives no thread.
pub fn start(watched: Vec<Box<dyn WatchTarget>>) -> io::Result<WatchThread> {
    let (sender, wishes) = sync_channel(WISHES_MAX);
    let thread = thread::Builder::new()
        .name("lp-watch".to_owned())
        .spawn(move || run(watched, &wishes))?;
    Ok(WatchThread {
        thread,
        watcher: Watcher(sender),
    })
}

impl WatchThread {
    /// What asks the thread to look.
    pub fn watcher(&self) -> Watcher {
        self.watcher.clone()
    }

    /// Ends the thread and waits for it.
    pub fn stop(self) {
        // It fails if the thread panicked; then there is nothing left to stop.
        let _ = self.watcher.0.send(Wish::Stop);
        let _ = self.thread.join();
    }
}

fn run(mut watched: Vec<Box<dyn WatchTarget>>, wishes: &Receiver<Wish>) {
    loop {
        let is_asked = match wishes.recv_timeout(LOOK_INTERVAL) {
            Ok(Wish::Look) => true,
            Err(RecvTimeoutError::Timeout) => false,
            Ok(Wish::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        };
        for one in &mut watched {
            one.look(is_asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct LookRecorder(mpsc::Sender<bool>);

    impl WatchTarget for LookRecorder {
        fn look(&mut self, is_asked: bool) {
            let _ = self.0.send(is_asked);
        }
    }

    #[test]
    fn it_looks_by_itself_and_when_asked() {
        let (sender, seen) = mpsc::channel();
        let thread = start(vec![Box::new(LookRecorder(sender))]).unwrap();
        assert_eq!(seen.recv(), Ok(false));
        thread.watcher().look_now();
        assert!(seen.iter().any(|is_asked| is_asked));
        thread.stop();
        assert!(seen.iter().count() < 10, "it has ended");
    }
}
