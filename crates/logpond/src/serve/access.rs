//! Who may ask over HTTP, and the thread that watches the files that say so.

use std::path::Path;
use std::sync::Arc;

use super::{Addresses, ServeError};
use crate::clock;
use crate::settings::Settings;
use crate::telemetry::{Metrics, warn};
use crate::tokens::{self, Guard, Tokens, WatchedTokens};
use crate::watch::{self, Stamp, WatchThread, Watched, Watcher};

/// What decides over requests, kept up to date.
pub(super) struct Access {
    guard: Arc<Guard>,
    /// There is none where no file is to be watched.
    watch: Option<WatchThread>,
}

impl Access {
    /// Reads what the settings name, and begins to watch it.
    ///
    /// # Errors
    /// When a file cannot be used, or the system gives no thread.
    pub(super) fn start(
        settings: &Settings,
        addresses: &Addresses,
        metrics: &Arc<Metrics>,
    ) -> Result<Access, ServeError> {
        let mut watched: Vec<Box<dyn Watched>> = Vec::new();
        let is_reachable = !addresses.http.ip().is_loopback() && !settings.insecure;
        let guard = if is_reachable || settings.require_token {
            let path = &settings.tokens;
            let stamp = Stamp::of(path);
            let tokens = tokens::read(path).map_err(ServeError::Tokens)?;
            warn_if_useless(&tokens, path);
            let guard = Arc::new(Guard::new(tokens));
            let of_guard = guard.clone();
            let tokens = WatchedTokens::new(of_guard, path.clone(), stamp, metrics.clone());
            watched.push(Box::new(tokens));
            guard
        } else {
            Arc::new(Guard::open())
        };
        let watch = match watched.is_empty() {
            true => None,
            false => Some(watch::start(watched).map_err(ServeError::Thread)?),
        };
        Ok(Access { guard, watch })
    }

    /// What decides over requests.
    pub(super) fn guard(&self) -> Arc<Guard> {
        self.guard.clone()
    }

    /// What has files read again, if there are any to read.
    pub(super) fn watcher(&self) -> Option<Watcher> {
        self.watch.as_ref().map(WatchThread::watcher)
    }

    /// Ends the watching.
    pub(super) fn stop(self) {
        if let Some(watch) = self.watch {
            watch.stop();
        }
    }
}

fn warn_if_useless(tokens: &Tokens, path: &Path) {
    if tokens.usable(clock::now()) == 0 {
        warn(&format!(
            "a token is required, and {} has none that can be used; make one by \
             'logpond token create --role admin --tokens {0}'",
            path.display()
        ));
    }
}
