//! What a running proxy was told, read again when the files change that say it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use logpond_proxy::{Control, Frontend};

use super::acme::Acme;
use super::frontends::{self, FrontendSet};
use super::sandbox::Sandbox;
use super::source::Source;
use crate::commands::Failure;
use logpond_host::telemetry::{say, warn};
use logpond_host::terminal::with_causes;
use logpond_host::watch::{WatchTarget, WatchedFiles};

/// The frontends, and what they were made of.
pub(super) struct ProxyConfig {
    source: Source,
    loaded: FrontendSet,
    /// The settings file and those that it names, before they were read.
    seen: WatchedFiles,
    /// What files are to be in, if anything.
    sandbox: Option<Sandbox>,
}

impl ProxyConfig {
    /// # Errors
    /// When something is wrong with what is written, or with a file.
    pub(super) fn new(source: Source) -> Result<ProxyConfig, Failure> {
        let seen = WatchedFiles::of(source.path().map(Into::into).into_iter().collect());
        let mut configured = ProxyConfig {
            source,
            loaded: FrontendSet::default(),
            seen,
            sandbox: None,
        };
        configured.load()?;
        Ok(configured)
    }

    pub(super) fn frontends(&self) -> &[Frontend] {
        &self.loaded.frontends
    }

    /// All files that it was made of.
    pub(super) fn files(&self) -> &[PathBuf] {
        self.seen.paths()
    }

    /// The directories that are written to.
    pub(super) fn written(&self) -> Vec<PathBuf> {
        self.loaded.orders.directories()
    }

    /// From now on files are read in a sandbox.
    pub(super) fn stay_in(&mut self, sandbox: Sandbox) {
        self.sandbox = Some(sandbox);
    }

    /// Has a running proxy follow the files, and certificates be ordered.
    ///
    /// # Errors
    /// When those could not be kept.
    pub(super) fn under(self, control: Control, mut acme: Acme) -> Result<ConfigHandle, Failure> {
        let configured = self;
        acme.check(&configured.loaded.orders)?;
        acme.follow(&configured.loaded.orders)?;
        Ok(ConfigHandle(Arc::new(Mutex::new(ConfigFollower {
            configured,
            control,
            acme,
        }))))
    }

    fn load(&mut self) -> Result<(), Failure> {
        let sections = self.source.read()?;
        let mut paths = frontends::files(&sections);
        paths.extend(self.source.path().map(Into::into));
        self.seen.follow(paths);
        let loaded = frontends::load(&sections, &self.loaded);
        self.loaded = loaded.map_err(|error| match &self.sandbox {
            Some(sandbox) => sandbox.explain(self.seen.paths(), error),
            None => error,
        })?;
        for frontend in &self.loaded.frontends {
            frontend
                .certificates
                .warnings()
                .iter()
                .for_each(|text| warn(text));
        }
        Ok(())
    }
}

/// Settings that a running proxy follows. Cheap to clone.
#[derive(Clone)]
pub(super) struct ConfigHandle(Arc<Mutex<ConfigFollower>>);

struct ConfigFollower {
    configured: ProxyConfig,
    control: Control,
    acme: Acme,
}

impl ConfigHandle {
    /// Reads the files now, whether they have changed or not.
    ///
    /// # Errors
    /// What is wrong with them, in words; nothing has changed then.
    pub(super) fn reload(&self) -> Result<(), String> {
        self.take_in(true).unwrap_or(Ok(()))
    }

    /// Reads the files if that is due; then gives what came of it, and says so where it is time.
    fn take_in(&self, is_asked: bool) -> Option<Result<(), String>> {
        let mut following = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !following.configured.seen.is_due(is_asked) {
            return None;
        }
        let taken = following.take_in();
        let seen = &mut following.configured.seen;
        Some(match taken {
            Ok(()) => {
                seen.are_good();
                say("the proxy has read its settings and certificates again");
                Ok(())
            }
            Err(error) => {
                let error = with_causes(&*error);
                if seen.are_bad(is_asked) {
                    warn(&format!(
                        "{error}; the settings and certificates in use stay"
                    ));
                }
                Err(error)
            }
        })
    }
}

impl ConfigFollower {
    fn take_in(&mut self) -> Result<(), Failure> {
        let before = self.configured.loaded.clone();
        self.configured.load()?;
        let taken = self.replace();
        taken.inspect_err(|_| self.configured.loaded = before)
    }

    fn replace(&mut self) -> Result<(), Failure> {
        let FrontendSet { frontends, orders } = &self.configured.loaded;
        self.acme.check(orders)?;
        self.control.replace(frontends)?;
        self.acme.follow(orders)
    }
}

impl WatchTarget for ConfigHandle {
    fn look(&mut self, is_asked: bool) {
        // What came of it was said.
        let _ = self.take_in(is_asked);
    }
}
