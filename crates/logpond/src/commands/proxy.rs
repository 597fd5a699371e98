//! `logpond proxy`: flags and files to settings, signals; the work is in `logpond_proxy`.

#[cfg(feature = "acme")]
mod acme;
#[cfg(not(feature = "acme"))]
#[path = "proxy/acme/absent.rs"]
mod acme;
mod admin;
mod configured;
mod frontends;
mod privileges;
mod records;
mod sandbox;
mod signals;
mod source;
mod upgrade;

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use logpond_proxy::{RunningProxy, Settings, Stopper, bind, start};

use self::acme::Acme;
use self::admin::Admin;
use self::configured::ProxyConfig;
use self::privileges::become_user;
use self::records::{Records, SenderThread};
use self::sandbox::Sandbox;
use self::signals::{Actions, Signals};
use self::source::{Source, duration};
use self::upgrade::Sockets;
use super::{Exit, Failure};
use crate::cli::Proxy;
use logpond_host::memory;
use logpond_host::service_manager;
use logpond_host::shutdown;
use logpond_host::telemetry::{say, warn};
use logpond_host::watch;
use logpond_settings::parse_bytes;

/// Which part of memory may wait in connections.
const WAITING_SHARE: u64 = 16;

/// How often a server is told the state of certificates and upstreams.
const STATE_INTERVAL: Duration = Duration::from_secs(30);

/// The most threads.
const WORKERS_MAX: usize = 1024;

pub(super) fn run(args: &Proxy) -> Result<Exit, Failure> {
    let drain_time = duration("--drain-timeout", &args.drain_timeout)?;
    let (workers, waiting_bytes_max) = (workers(args)?, waiting_bytes_max(args)?);
    let (inherited, before) = upgrade::take_over()?;
    let mut configured = ProxyConfig::new(Source::of(args)?)?;
    // Before anything listens: a signal from now on ends it in order.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let entered = runtime.enter();
    let signals = Signals::new()?;
    let admin = Admin::listen(args, inherited.admin)?;
    drop(entered);
    let settings = Settings {
        frontends: configured.frontends().to_vec(),
        workers,
        waiting_bytes_max,
        // They are for the page of the server; others have the metrics.
        state_interval: (!args.records.is_empty()).then_some(STATE_INTERVAL),
    };
    let listening = bind(&settings, inherited.listening)?;
    if let Some(user) = &args.user {
        become_user(user)?;
    }
    if args.sandbox {
        let mut written = configured.written();
        written.extend(args.records_spool.clone());
        let sandbox = Sandbox::enter(args, configured.files(), &written, before.is_some())?;
        configured.stay_in(sandbox);
    }
    let Records { output, sending } = Records::new(args, before.is_some())?;
    let running = start(&settings, listening, output)?;
    let (stop, shutdown) = shutdown::pair();
    let acme = Acme::new(shutdown.clone());
    let followed = configured.under(running.control(), acme)?;
    let watching = watch::start(vec![Box::new(followed.clone())])?;
    say(&format!("the proxy listens on {}", addresses(&running)));
    let admin_socket = admin.as_ref().map(Admin::socket).transpose()?;
    if let Some(admin) = admin {
        say(&format!("operators reach it at http://{}", admin.address));
        runtime.spawn(admin.serve(running.control(), followed, shutdown));
    }
    service_manager::tell("READY=1");
    if let Some(before) = before {
        before.tell();
    }
    let stopper = running.stopper();
    let actions = Actions {
        watcher: watching.watcher(),
        stopper: stopper.clone(),
        drain_time,
        hand_over: Arc::new(move || hand_over(&stopper, admin_socket.as_ref())),
        beside: stop,
    };
    let join = move || {
        let ended = running.join();
        sending.into_iter().for_each(SenderThread::finish);
        ended
    };
    let (cut, lost) = runtime.block_on(signals.until_ended(actions, join))?;
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

/// Has a new process take over all that listens.
fn hand_over(stopper: &Stopper, admin: Option<&TcpListener>) -> Result<u32, String> {
    let sockets = || {
        Ok(Sockets {
            listening: stopper.listening()?,
            admin: admin.map(TcpListener::try_clone).transpose()?,
        })
    };
    let sockets: std::io::Result<Sockets> = sockets();
    upgrade::hand_over(&sockets.map_err(|error| error.to_string())?)
}

/// What may wait in all connections.
fn waiting_bytes_max(args: &Proxy) -> Result<usize, Failure> {
    let asked = args.waiting_bytes_max.as_ref();
    let asked = asked.map(|text| parse_bytes(text)).transpose();
    let asked = asked.map_err(|error| format!("--waiting-bytes-max: {error}"))?;
    let share = memory::bytes() / WAITING_SHARE;
    Ok(asked.unwrap_or(share).try_into().unwrap_or(usize::MAX))
}

fn workers(args: &Proxy) -> Result<usize, Failure> {
    let of_machine = || thread::available_parallelism().map_or(1, usize::from);
    let workers = args.workers.unwrap_or_else(of_machine);
    if (1..=WORKERS_MAX).contains(&workers) {
        Ok(workers)
    } else {
        Err(format!("--workers: expected a number from 1 to {WORKERS_MAX}").into())
    }
}

/// Where it listens, in words.
fn addresses(running: &RunningProxy) -> String {
    let all = running.addresses().into_iter().flatten();
    let texts: Vec<String> = all.map(|address| address.to_string()).collect();
    texts.join(", ")
}
