//! `logpond proxy`: flags and files to settings, signals; the work is in `logpond_proxy`.

mod admin;
mod configured;
mod frontends;
mod records;
mod signals;
mod source;

use std::thread;

use logpond_proxy::{Running, Settings, start};

use self::admin::Admin;
use self::configured::Configured;
use self::records::Records;
use self::signals::Signals;
use self::source::{Source, duration};
use super::{Exit, Failure};
use crate::cli::Proxy;
use crate::memory;
use crate::service_manager;
use crate::settings::parse_bytes;
use crate::shutdown;
use crate::telemetry::{say, warn};
use crate::watch;

/// Which part of memory may wait in connections.
const WAITING_SHARE: u64 = 16;

/// The most threads.
const WORKERS_MAX: usize = 1024;

pub(super) fn run(args: &Proxy) -> Result<Exit, Failure> {
    let drain_time = duration("--drain-timeout", &args.drain_timeout)?;
    let (workers, waiting_bytes_max) = (workers(args)?, waiting_bytes_max(args)?);
    let configured = Configured::new(Source::of(args)?)?;
    // Before anything listens: a signal from now on ends it in order.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let entered = runtime.enter();
    let signals = Signals::new()?;
    let admin = Admin::listen(args)?;
    drop(entered);
    let Records { output, sending } = Records::new(args)?;
    let settings = Settings {
        frontends: configured.frontends().to_vec(),
        workers,
        waiting_bytes_max,
    };
    let running = start(&settings, output)?;
    let followed = configured.under(running.control());
    let watching = watch::start(vec![Box::new(followed.clone())])?;
    say(&format!("the proxy listens on {}", addresses(&running)));
    let (stop, shutdown) = shutdown::pair();
    if let Some(admin) = admin {
        say(&format!("operators reach it at http://{}", admin.address));
        runtime.spawn(admin.serve(running.control(), followed, shutdown));
    }
    service_manager::tell("READY=1");
    let stopper = running.stopper();
    let join = move || {
        let ended = running.join();
        if let Some(sending) = sending {
            sending.finish();
        }
        ended
    };
    let ended = signals.until_ended(watching.watcher(), stopper, drain_time, join);
    let (cut, lost) = runtime.block_on(ended)?;
    stop.stop();
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
    match (1..=WORKERS_MAX).contains(&workers) {
        true => Ok(workers),
        false => Err(format!("--workers: expected a number from 1 to {WORKERS_MAX}").into()),
    }
}

/// Where it listens, in words.
fn addresses(running: &Running) -> String {
    let all = running.addresses().into_iter().flatten();
    let texts: Vec<String> = all.map(|address| address.to_string()).collect();
    texts.join(", ")
}
