//! Who may ask over HTTP and how it is encrypted, and the thread that watches the files that say so,
//! and those of rules.

use std::path::Path;
use std::sync::Arc;

use super::ServeError;
use crate::clock;
use crate::ingest::rules::{Rules, WatchedRules};
use crate::net::tls::{self, Acceptor, ClusterTls};
use crate::net::{SharedSecurity, WatchedSecurity};
use crate::settings::Settings;
use crate::telemetry::{Metrics, warn};
use crate::tokens::{self, Guard, Tokens, WatchedTokens};
use crate::watch::{self, Stamp, WatchThread, Watched, Watcher};

/// What decides over connections and requests, kept up to date.
pub(super) struct Access {
    guard: Arc<Guard>,
    tls: Option<Arc<Acceptor>>,
    syslog: Option<Arc<Acceptor>>,
    cluster: Option<Arc<ClusterTls>>,
    rules: Option<Arc<Rules>>,
    security: Option<Arc<SharedSecurity>>,
    /// There is none where no file is to be watched.
    watch: Option<WatchThread>,
}

impl Access {
    /// Reads what the settings name, and begins to watch it.
    ///
    /// # Errors
    /// When a file cannot be used, other machines could connect and nobody has a token, or the
    /// system gives no thread.
    pub(super) fn start(settings: &Settings, metrics: &Arc<Metrics>) -> Result<Access, ServeError> {
        let mut watched: Vec<Box<dyn Watched>> = Vec::new();
        let rules = match &settings.rules {
            Some(path) => {
                let started = WatchedRules::start(path, metrics);
                let (rules, of_file) = started.map_err(ServeError::Rules)?;
                watched.push(Box::new(of_file));
                Some(rules)
            }
            None => None,
        };
        let guard = match settings.is_http_guarded() || settings.require_token {
            true => guard(settings, metrics, &mut watched)?,
            false => Arc::new(Guard::open()),
        };
        let tls = match &settings.tls {
            Some(files) => {
                let (acceptor, of_files) = tls::https(files, metrics).map_err(ServeError::Tls)?;
                watched.push(of_files);
                Some(acceptor)
            }
            None => None,
        };
        let syslog = match &settings.tls {
            Some(files) if settings.syslog_tls.or(settings.relp_tls).is_some() => {
                let rules = &settings.syslog_clients;
                let (acceptor, of_files) =
                    tls::syslog(files, rules, metrics).map_err(ServeError::Tls)?;
                watched.push(of_files);
                Some(acceptor)
            }
            _ => None,
        };
        let cluster = match &settings.cluster_tls {
            Some(directory) => {
                let (cluster, of_files) =
                    tls::cluster(directory, metrics).map_err(ServeError::Tls)?;
                watched.push(of_files);
                Some(cluster)
            }
            None => None,
        };
        let security = match &settings.fluent_security {
            Some(path) => {
                let started = WatchedSecurity::start(path, metrics);
                let (security, of_file) = started.map_err(ServeError::Security)?;
                watched.push(Box::new(of_file));
                Some(security)
            }
            None => None,
        };
        let watch = match watched.is_empty() {
            true => None,
            false => Some(watch::start(watched).map_err(ServeError::Thread)?),
        };
        Ok(Access {
            guard,
            tls,
            syslog,
            cluster,
            rules,
            security,
            watch,
        })
    }

    /// What decides over requests.
    pub(super) fn guard(&self) -> Arc<Guard> {
        self.guard.clone()
    }

    /// What encrypts HTTP, if anything does.
    pub(super) fn tls(&self) -> Option<Arc<Acceptor>> {
        self.tls.clone()
    }

    /// What encrypts syslog, if anything does.
    pub(super) fn syslog(&self) -> Option<Arc<Acceptor>> {
        self.syslog.clone()
    }

    /// What this node needs to talk with the others, if it is one of a cluster.
    pub(super) fn cluster(&self) -> Option<Arc<ClusterTls>> {
        self.cluster.clone()
    }

    /// What happens to records on their way in, if there are rules for it.
    pub(super) fn rules(&self) -> Option<Arc<Rules>> {
        self.rules.clone()
    }

    /// What clients of the Forward protocol must know, if anything.
    pub(super) fn security(&self) -> Option<Arc<SharedSecurity>> {
        self.security.clone()
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

fn guard(
    settings: &Settings,
    metrics: &Arc<Metrics>,
    watched: &mut Vec<Box<dyn Watched>>,
) -> Result<Arc<Guard>, ServeError> {
    let path = &settings.tokens;
    let stamp = Stamp::of(path);
    let tokens = tokens::read(path).map_err(ServeError::Tokens)?;
    check_use(&tokens, path, settings.is_http_guarded())?;
    let guard = Arc::new(Guard::new(tokens));
    let of_guard = guard.clone();
    let tokens = WatchedTokens::new(of_guard, path.clone(), stamp, metrics.clone());
    watched.push(Box::new(tokens));
    Ok(guard)
}

/// A server that nobody can use is a mistake, or on the machine itself a beginning.
fn check_use(tokens: &Tokens, path: &Path, is_reachable: bool) -> Result<(), ServeError> {
    if tokens.usable(clock::now()) > 0 {
        return Ok(());
    }
    if is_reachable {
        return Err(ServeError::NoToken {
            tokens: path.to_owned(),
        });
    }
    warn(&format!(
        "a token is required, and {} has none that can be used; make one: \
         logpond token create --role admin --tokens {0}",
        path.display()
    ));
    Ok(())
}
