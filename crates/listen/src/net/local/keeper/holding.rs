//! What the process that keeps descriptors has, and how long.
//!
//! A state machine; [`super::holder`] carries it out.
//!
//! Invariants:
//! - While a server is there, nothing ends; once it is gone, everything does, unless another comes in the
//!   time that the last one which got as far as serving has asked for. One that fails to start does not
//!   prolong that.
//! - At most [`KEPT_MAX`] descriptors are kept.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::KEPT_MAX;
use super::message::Request;
use super::name::Name;
use logpond_settings::SOCKET_WAIT_MAX;

/// A descriptor, or what stands for it in a test.
pub(super) struct DescriptorEntry<F> {
    pub(super) name: Name,
    /// What to remove in the end.
    pub(super) path: Option<PathBuf>,
    pub(super) descriptor: F,
}

/// The descriptors that are kept, and the end of their time.
pub(super) struct DescriptorTable<F> {
    kept: Vec<DescriptorEntry<F>>,
    until: Instant,
    /// How long the server that is connected wants it to be waited for the next; `None` until it serves.
    wait: Option<Duration>,
    is_connected: bool,
    is_asked_to_end: bool,
}

/// A request that is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HoldError {
    /// There is nothing to keep.
    Missing,
    /// There is too much.
    Full,
}

impl<F> DescriptorTable<F> {
    /// Nothing; it is over unless a server connects at once.
    pub(super) fn new(now: Instant) -> DescriptorTable<F> {
        DescriptorTable {
            kept: Vec::new(),
            until: now,
            wait: None,
            is_connected: false,
            is_asked_to_end: false,
        }
    }

    /// A server comes; `false` if there is one already.
    pub(super) fn connect(&mut self) -> bool {
        !std::mem::replace(&mut self.is_connected, true)
    }

    /// The server is gone.
    pub(super) fn disconnect(&mut self, now: Instant) {
        self.is_connected = false;
        if let Some(wait) = self.wait.take() {
            self.until = now + wait;
        }
    }

    /// Does what the server says; `descriptor` came with it.
    pub(super) fn take(
        &mut self,
        request: Request,
        descriptor: Option<F>,
    ) -> Result<(), HoldError> {
        match request {
            Request::Keep(name, path) => {
                let descriptor = descriptor.ok_or(HoldError::Missing)?;
                self.kept.retain(|kept| kept.name != name);
                if self.kept.len() >= KEPT_MAX {
                    return Err(HoldError::Full);
                }
                self.kept.push(DescriptorEntry {
                    name,
                    path,
                    descriptor,
                });
            }
            Request::Drop(name) => self.kept.retain(|kept| kept.name != name),
            Request::Serving(wait) => self.wait = Some(wait.min(SOCKET_WAIT_MAX)),
        }
        Ok(())
    }

    /// Somebody wants it to end: it does once no server is there.
    pub(super) fn ask_to_end(&mut self) {
        self.is_asked_to_end = true;
    }

    /// When it is over if nothing happens; `None` while a server is there.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.is_connected {
            return None;
        }
        let is_idle = self.kept.is_empty() || self.is_asked_to_end;
        Some(if is_idle { now } else { self.until })
    }

    /// What is kept.
    pub(super) fn kept(&self) -> &[DescriptorEntry<F>] {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(10);

    fn stream(number: u16) -> Request {
        Request::Keep(Name::Stream(number), None)
    }

    fn names(holding: &DescriptorTable<u8>) -> Vec<(Name, u8)> {
        let kept = holding.kept().iter();
        kept.map(|kept| (kept.name, kept.descriptor)).collect()
    }

    #[test]
    fn it_ends_when_nobody_comes_back_in_time() {
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let mut holding = DescriptorTable::new(start);
        assert_eq!(holding.deadline(start), Some(start), "nobody ever came");
        assert!(holding.connect());
        assert!(!holding.connect(), "there is one");
        assert_eq!(holding.deadline(later(1000)), None);
        assert_eq!(holding.take(stream(1), Some(1)), Ok(()));
        holding.disconnect(later(1));
        assert_eq!(holding.deadline(later(1)), Some(start), "it never served");
        assert!(holding.connect());
        assert_eq!(holding.take(Request::Serving(WAIT), None), Ok(()));
        holding.disconnect(later(100));
        assert_eq!(holding.deadline(later(105)), Some(later(110)));
        // One that does not get far.
        assert!(holding.connect());
        assert_eq!(holding.deadline(later(200)), None);
        holding.disconnect(later(200));
        assert_eq!(holding.deadline(later(200)), Some(later(110)));
        // One that wants no waiting, and one that wants too much of it.
        for (wait, kept_for) in [
            (Duration::ZERO, Duration::ZERO),
            (SOCKET_WAIT_MAX * 2, SOCKET_WAIT_MAX),
        ] {
            assert!(holding.connect());
            assert_eq!(holding.take(Request::Serving(wait), None), Ok(()));
            holding.disconnect(later(300));
            assert_eq!(holding.deadline(later(300)), Some(later(300) + kept_for));
        }
        // Nothing to keep, or told to end.
        assert_eq!(holding.take(Request::Drop(Name::Stream(1)), None), Ok(()));
        assert_eq!(holding.deadline(later(301)), Some(later(301)));
        assert_eq!(holding.take(stream(1), Some(1)), Ok(()));
        assert!(holding.connect());
        holding.ask_to_end();
        assert_eq!(holding.deadline(later(302)), None, "a server is there");
        holding.disconnect(later(303));
        assert_eq!(holding.deadline(later(303)), Some(later(303)));
    }

    #[test]
    fn descriptors_come_and_go_by_their_names() {
        let mut holding = DescriptorTable::new(Instant::now());
        assert_eq!(holding.take(stream(1), None), Err(HoldError::Missing));
        assert_eq!(holding.take(stream(1), Some(1)), Ok(()));
        assert_eq!(holding.take(stream(2), Some(2)), Ok(()));
        assert_eq!(holding.take(stream(1), Some(3)), Ok(()));
        assert_eq!(
            names(&holding),
            [(Name::Stream(2), 2), (Name::Stream(1), 3)]
        );
        assert_eq!(holding.take(Request::Drop(Name::Stream(2)), None), Ok(()));
        assert_eq!(holding.take(Request::Drop(Name::Board), None), Ok(()));
        assert_eq!(names(&holding), [(Name::Stream(1), 3)]);
        for number in 2..=u16::try_from(KEPT_MAX).unwrap() {
            assert_eq!(holding.take(stream(number), Some(0)), Ok(()));
        }
        assert_eq!(holding.take(stream(0), Some(0)), Err(HoldError::Full));
        assert_eq!(holding.take(stream(1), Some(4)), Ok(()), "it is replaced");
    }
}
