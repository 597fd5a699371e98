//! `logpond proxy`: flags to settings, signals and changed files; the work is in `logpond_proxy`.

use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use logpond_proxy::{
    Certificates, Limits, ProxyHeader, Replacer, Settings, SniRule, Stopper, Target, Trust, start,
};
use logpond_tls::CertificateFiles;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Exit, Failure};
use crate::cli::{Proxy, ProxyVersion};
use crate::service_manager;
use crate::settings::{Network, parse_age};
use crate::telemetry::{say, warn};
use crate::terminal::with_causes;
use crate::watch::{self, Seen, Watched, Watcher};

/// Open files that are no connections: the program's own, listeners, event loops.
const FILES_RESERVED: u64 = 128;

/// Open files of a connection: to the client, and to the upstream.
const FILES_PER_CONNECTION: u64 = 2;

/// The most threads.
const WORKERS_MAX: usize = 1024;

pub(super) fn run(args: &Proxy) -> Result<Exit, Failure> {
    let drain_time = time("--drain-timeout", &args.drain_timeout)?;
    let settings = settings(args)?;
    let mut shown = Shown::new(args)?;
    // Before anything listens: a signal from now on ends it in order.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let signals = {
        let _entered = runtime.enter();
        Signals::new()?
    };
    let running = start(settings, &shown.certificates, std::io::stdout())?;
    shown.replacer = Some(running.replacer());
    let watching = watch::start(vec![Box::new(shown)])?;
    say(&format!("the proxy listens on {}", running.address()));
    service_manager::tell("READY=1");
    let stopper = running.stopper();
    let (cut, lost) = runtime.block_on(signals.until_ended(
        watching.watcher(),
        stopper,
        drain_time,
        move || running.join(),
    ))?;
    watching.stop();
    if cut > 0 {
        warn(&format!("{cut} connections had not ended and were cut"));
    }
    if lost > 0 {
        warn(&format!(
            "{lost} records of connections could not be written"
        ));
    }
    Ok(Exit::Found)
}

fn settings(args: &Proxy) -> Result<Settings, Failure> {
    let upstreams = args.to.iter().map(|text| text.parse::<Target>());
    let upstreams = upstreams.collect::<Result<_, _>>();
    let of_machine = || thread::available_parallelism().map_or(1, usize::from);
    let workers = args.workers.unwrap_or_else(of_machine);
    if !(1..=WORKERS_MAX).contains(&workers) {
        return Err(format!("--workers: expected a number from 1 to {WORKERS_MAX}").into());
    }
    Ok(Settings {
        listen: args.listen,
        upstreams: upstreams.map_err(|error| format!("--to: {error}"))?,
        limits: limits(args)?,
        proxy_header: args.proxy_protocol.map(|version| match version {
            ProxyVersion::V1 => ProxyHeader::V1,
            ProxyVersion::V2 => ProxyHeader::V2,
        }),
        trust: trust(&args.accept_proxy)?,
        workers,
    })
}

fn limits(args: &Proxy) -> Result<Limits, Failure> {
    Ok(Limits {
        handshake_time: time("--handshake-timeout", &args.handshake_timeout)?,
        connect_time: time("--connect-timeout", &args.connect_timeout)?,
        idle_time: time("--idle-timeout", &args.idle_timeout)?,
        half_close_time: time("--half-close-timeout", &args.half_close_timeout)?,
        connections_max: connections_max(args.connections_max)?,
        connections_per_address_max: args.connections_per_address_max,
    })
}

/// How many connections there may be, for which the limit of open files is raised.
fn connections_max(asked: Option<usize>) -> Result<usize, Failure> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = maximum;
    // Where that fails, the limit stays as it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let possible = files.saturating_sub(FILES_RESERVED) / FILES_PER_CONNECTION;
    let possible = usize::try_from(possible).unwrap_or(usize::MAX);
    match asked {
        Some(asked) if asked > possible => Err(format!(
            "--connections-max: {asked} connections need more than the {files} open files that \
             are allowed; raise the limit (ulimit -n, or LimitNOFILE= of the service)"
        )
        .into()),
        Some(asked) => Ok(asked),
        None => Ok(Limits::default().connections_max.min(possible)),
    }
}

fn time(name: &str, text: &str) -> Result<Duration, Failure> {
    parse_age(text).map_err(|error| format!("{name}: {error}").into())
}

fn trust(networks: &[String]) -> Result<Trust, Failure> {
    if networks.is_empty() {
        return Ok(Trust::default());
    }
    let read = |text: &String| {
        let wrong = || format!("--accept-proxy: '{text}' is no ADDRESS or ADDRESS/BITS");
        Network::parse(text).ok_or_else(wrong)
    };
    let networks = networks.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Trust::new(move |address: IpAddr| {
        networks.iter().any(|network| network.contains(address))
    }))
}

/// The certificates that clients are shown, and what they were made of.
struct Shown {
    certificates: Certificates,
    files: Vec<CertificateFiles>,
    alpn: Vec<String>,
    rule: SniRule,
    /// Of the files, before they were read.
    seen: Seen,
    /// Set before files are watched.
    replacer: Option<Replacer>,
}

impl Shown {
    fn new(args: &Proxy) -> Result<Shown, Failure> {
        if args.cert.len() != args.key.len() {
            return Err(format!(
                "there are {} --cert and {} --key; each certificate needs its key, in the same order",
                args.cert.len(),
                args.key.len()
            )
            .into());
        }
        let is_name = |name: &&String| !(1..=255).contains(&name.len());
        if let Some(name) = args.alpn.iter().find(is_name) {
            return Err(format!("--alpn: '{name}' is no name of 1 to 255 bytes").into());
        }
        let files = args.cert.iter().zip(&args.key);
        let files = files.map(|(certificate, key)| CertificateFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        });
        let files: Vec<CertificateFiles> = files.collect();
        let rule = match args.strict_sni {
            true => SniRule::Refuse,
            false => SniRule::ShowFirst,
        };
        let paths = files.iter().flat_map(|one| [&one.certificate, &one.key]);
        let seen = Seen::of(paths.cloned().collect());
        Ok(Shown {
            certificates: Certificates::load(&files, &args.alpn, rule)?,
            alpn: args.alpn.clone(),
            files,
            rule,
            seen,
            replacer: None,
        })
    }
}

impl Watched for Shown {
    fn look(&mut self, is_asked: bool) {
        if !self.seen.is_due(is_asked) {
            return;
        }
        let read = self
            .certificates
            .load_again(&self.files, &self.alpn, self.rule);
        match read {
            Ok(certificates) => {
                if let Some(replacer) = &self.replacer {
                    replacer.replace(&certificates);
                }
                self.certificates = certificates;
                self.seen.are_good();
                say("the proxy has read its certificates again");
            }
            Err(error) if self.seen.are_bad(is_asked) => {
                let error = with_causes(&error);
                warn(&format!("{error}; the certificates in use stay"));
            }
            Err(_) => {}
        }
    }
}

/// What the proxy is told by the system.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Has files read again at SIGHUP until an end is asked for; then waits for it, the second time
    /// without patience.
    async fn until_ended<T: Send + 'static>(
        mut self,
        watcher: Watcher,
        stopper: Stopper,
        drain_time: Duration,
        join: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        loop {
            tokio::select! {
                _ = self.hangup.recv() => watcher.look_now(),
                _ = self.terminate.recv() => break,
                _ = self.interrupt.recv() => break,
            }
        }
        service_manager::tell("STOPPING=1");
        stopper.drain(drain_time);
        let mut joined = tokio::task::spawn_blocking(join);
        loop {
            tokio::select! {
                joined = &mut joined => return Ok(joined?),
                _ = self.terminate.recv() => stopper.drain(Duration::ZERO),
                _ = self.interrupt.recv() => stopper.drain(Duration::ZERO),
            }
        }
    }
}
