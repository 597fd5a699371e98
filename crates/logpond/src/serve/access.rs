//! Who may ask over HTTP and how it is encrypted, and the thread that watches the files that say so,
//! those of rules, for records and for alerts, and the saved queries.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use logpond_segment::disk::Disk;

use super::ServeError;
use logpond_engine::alert::{self, Alerts, WatchedAlertRules};
use logpond_engine::audit::{self, Audit, Events};
use logpond_engine::ingest::Ingest;
use logpond_engine::ingest::rules::{Rules, WatchedRules};
use logpond_engine::saved::{self, SavedQueries, WatchedQueries};
use logpond_host::clock;
use logpond_host::telemetry::{Metrics, warn};
use logpond_host::terminal::with_causes;
use logpond_host::watch::{self, Stamp, WatchTarget, WatchThread, Watcher};
use logpond_http as http;
use logpond_listen::net::tls::{self, Acceptor, ClusterTls};
use logpond_listen::net::{SharedSecurity, WatchedSecurity};
use logpond_listen::tokens::{self, Bounds, Entry, Guard, Tokens, WatchedTokens};
use logpond_settings::Settings;

/// What decides over connections and requests, kept up to date.
pub(super) struct Access {
    guard: Arc<Guard>,
    tls: Option<Arc<Acceptor>>,
    syslog: Option<Arc<Acceptor>>,
    cluster: Option<Arc<ClusterTls>>,
    rules: Option<Arc<Rules>>,
    alerts: Option<Arc<Alerts>>,
    security: Option<Arc<SharedSecurity>>,
    saved: Arc<SavedQueries>,
    audit: Audit,
    /// The events of the audit, until its thread is started.
    events: Mutex<Option<Events>>,
    watch: WatchThread,
}

impl Access {
    /// Reads what the settings name, and begins to watch it.
    ///
    /// # Errors
    /// When a file cannot be used, other machines could connect and nobody has a token, or the
    /// system gives no thread.
    pub(super) fn start(
        settings: &Settings,
        disk: &Arc<dyn Disk>,
        metrics: &Arc<Metrics>,
    ) -> Result<Access, ServeError> {
        let mut watched: Vec<Box<dyn WatchTarget>> = Vec::new();
        let (audit, events) = Audit::new(settings.audit_log, metrics);
        let saved = saved_queries(settings, disk, metrics, &mut watched)?;
        let rules = match &settings.rules {
            Some(path) => {
                let started = WatchedRules::start(path, metrics);
                let (rules, of_file) = started.map_err(ServeError::Rules)?;
                watched.push(Box::new(of_file));
                Some(rules)
            }
            None => None,
        };
        let alerts = alerts(settings, metrics, &mut watched)?;
        let guard = if settings.is_http_guarded() || settings.require_token {
            guard(settings, (metrics, &audit), &mut watched)?
        } else {
            optional_guard(settings, (metrics, &audit), &mut watched)
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
            Some(files) if settings.knows_clients() => {
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
        let watch = watch::start(watched).map_err(ServeError::Thread)?;
        Ok(Access {
            guard,
            tls,
            syslog,
            cluster,
            rules,
            alerts,
            security,
            saved,
            audit,
            events: Mutex::new(events),
            watch,
        })
    }

    /// True if a token is asked for.
    pub(super) fn is_token_required(&self) -> bool {
        self.guard.is_required()
    }

    /// The part that endpoints need.
    pub(super) fn of_requests(&self) -> http::Access {
        http::Access {
            guard: self.guard.clone(),
            saved: self.saved.clone(),
            alerts: self.alerts.clone(),
            audit: self.audit.clone(),
        }
    }

    /// Starts the thread that writes the audit, if there is one.
    pub(super) fn write_audit(
        &self,
        ingest: &Ingest,
    ) -> Result<Option<JoinHandle<()>>, ServeError> {
        let events = self.events.lock();
        let events = events.unwrap_or_else(PoisonError::into_inner).take();
        let started = events.map(|events| audit::start(events, ingest.clone()));
        started.transpose().map_err(ServeError::Runtime)
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

    /// The alert rules, if there are any.
    pub(super) fn alerts(&self) -> Option<Arc<Alerts>> {
        self.alerts.clone()
    }

    /// What clients of the Forward protocol must know, if anything.
    pub(super) fn security(&self) -> Option<Arc<SharedSecurity>> {
        self.security.clone()
    }

    /// Queries by name.
    pub(super) fn saved(&self) -> Arc<SavedQueries> {
        self.saved.clone()
    }

    /// What has files read again.
    pub(super) fn watcher(&self) -> Watcher {
        self.watch.watcher()
    }

    /// Ends the watching.
    pub(super) fn stop(self) {
        self.watch.stop();
    }
}

/// Reads the saved queries, and begins to watch them.
fn saved_queries(
    settings: &Settings,
    disk: &Arc<dyn Disk>,
    metrics: &Arc<Metrics>,
    watched: &mut Vec<Box<dyn WatchTarget>>,
) -> Result<Arc<SavedQueries>, ServeError> {
    let path = settings.data.join(saved::PATH);
    let stamp = Stamp::of(&path);
    let opened = SavedQueries::open_at_start(disk.clone(), clock::now());
    let (saved, error) = opened.map_err(ServeError::Saved)?;
    if let Some(error) = error {
        warn(&format!("saved queries are not there: {error}"));
    }
    let saved = Arc::new(saved);
    let of_file = WatchedQueries::new(saved.clone(), path, stamp, metrics.clone());
    watched.push(Box::new(of_file));
    Ok(saved)
}

fn alerts(
    settings: &Settings,
    metrics: &Arc<Metrics>,
    watched: &mut Vec<Box<dyn WatchTarget>>,
) -> Result<Option<Arc<Alerts>>, ServeError> {
    let Some(path) = &settings.alerts.rules else {
        return Ok(None);
    };
    // Before the files are read, so that a change in between is seen.
    let stamps = WatchedAlertRules::stamps(path);
    let loaded = alert::read(path).map_err(ServeError::AlertRules)?;
    let alerts = Arc::new(Alerts::new(loaded, &settings.alerts.receivers));
    alerts.expose_in(metrics);
    let of_files = WatchedAlertRules::new(alerts.clone(), path, stamps, metrics.clone());
    watched.push(Box::new(of_files));
    Ok(Some(alerts))
}

fn guard(
    settings: &Settings,
    telemetry: (&Arc<Metrics>, &Audit),
    watched: &mut Vec<Box<dyn WatchTarget>>,
) -> Result<Arc<Guard>, ServeError> {
    let path = &settings.tokens;
    let stamp = Stamp::of(path);
    let tokens = tokens::read(path).map_err(ServeError::Tokens)?;
    check_use(&tokens, path, settings.is_http_guarded())?;
    let guard = Arc::new(Guard::new(tokens));
    watched.push(Box::new(watched_tokens(settings, &guard, stamp, telemetry)));
    Ok(guard)
}

/// The guard of a server that asks for no token: what its tokens are bound to holds for those who give one.
fn optional_guard(
    settings: &Settings,
    telemetry: (&Arc<Metrics>, &Audit),
    watched: &mut Vec<Box<dyn WatchTarget>>,
) -> Arc<Guard> {
    let path = &settings.tokens;
    let stamp = Stamp::of(path);
    let tokens = tokens::read(path).unwrap_or_else(|error| {
        warn(&format!("{}; no token is asked for", with_causes(&error)));
        Tokens::default()
    });
    let is_bound = |entry: &Entry| entry.bounds != Bounds::default();
    if tokens.entries().iter().any(is_bound) {
        warn(&format!(
            "{} has tokens that are bound to a part of the records, but who gives no token sees all of them: no token is \
             asked for on loopback; start with --require-token to change this",
            path.display()
        ));
    }
    let guard = Arc::new(Guard::optional(tokens));
    watched.push(Box::new(watched_tokens(settings, &guard, stamp, telemetry)));
    guard
}

fn watched_tokens(
    settings: &Settings,
    guard: &Arc<Guard>,
    stamp: Stamp,
    (metrics, audit): (&Arc<Metrics>, &Audit),
) -> WatchedTokens {
    WatchedTokens::new(
        guard.clone(),
        settings.tokens.clone(),
        stamp,
        metrics.clone(),
        audit.clone(),
    )
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
