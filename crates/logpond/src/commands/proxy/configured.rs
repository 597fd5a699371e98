//! What a running proxy was told, read again when the files change that say it.

use logpond_proxy::{Control, Frontend};

use super::frontends;
use super::source::Source;
use crate::commands::Failure;
use crate::telemetry::{say, warn};
use crate::terminal::with_causes;
use crate::watch::{Seen, Watched};

/// The frontends, and what they were made of.
pub(super) struct Configured {
    source: Source,
    frontends: Vec<Frontend>,
    /// The settings file and those that it names, before they were read.
    seen: Seen,
}

impl Configured {
    /// # Errors
    /// When something is wrong with what is written, or with a file.
    pub(super) fn new(source: Source) -> Result<Configured, Failure> {
        let seen = Seen::of(source.path().map(Into::into).into_iter().collect());
        let mut configured = Configured {
            source,
            frontends: Vec::new(),
            seen,
        };
        configured.load()?;
        Ok(configured)
    }

    pub(super) fn frontends(&self) -> &[Frontend] {
        &self.frontends
    }

    /// Has a running proxy follow the files.
    pub(super) fn under(self, control: Control) -> impl Watched {
        Followed {
            configured: self,
            control,
        }
    }

    fn load(&mut self) -> Result<(), Failure> {
        let sections = self.source.read()?;
        let mut paths = frontends::files(&sections);
        paths.extend(self.source.path().map(Into::into));
        self.seen.follow(paths);
        self.frontends = frontends::load(&sections, &self.frontends)?;
        Ok(())
    }
}

struct Followed {
    configured: Configured,
    control: Control,
}

impl Followed {
    fn take_in(&mut self) -> Result<(), Failure> {
        let before = self.configured.frontends.clone();
        self.configured.load()?;
        let replaced = self.control.replace(&self.configured.frontends);
        Ok(replaced.inspect_err(|_| self.configured.frontends = before)?)
    }
}

impl Watched for Followed {
    fn look(&mut self, is_asked: bool) {
        if !self.configured.seen.is_due(is_asked) {
            return;
        }
        match self.take_in() {
            Ok(()) => {
                self.configured.seen.are_good();
                say("the proxy has read its settings and certificates again");
            }
            Err(error) if self.configured.seen.are_bad(is_asked) => {
                let error = with_causes(&*error);
                warn(&format!(
                    "{error}; the settings and certificates in use stay"
                ));
            }
            Err(_) => {}
        }
    }
}
