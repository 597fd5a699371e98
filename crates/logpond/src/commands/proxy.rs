//! `logpond proxy`: flags and files to settings, signals; the work is in `logpond_proxy`.

mod configured;
mod frontends;
mod signals;
mod source;

use std::thread;

use logpond_proxy::{Running, Settings, start};

use self::configured::Configured;
use self::signals::Signals;
use self::source::{Source, duration};
use super::{Exit, Failure};
use crate::cli::Proxy;
use crate::service_manager;
use crate::telemetry::{say, warn};
use crate::watch;

/// The most threads.
const WORKERS_MAX: usize = 1024;

pub(super) fn run(args: &Proxy) -> Result<Exit, Failure> {
    let drain_time = duration("--drain-timeout", &args.drain_timeout)?;
    let workers = workers(args)?;
    let configured = Configured::new(Source::of(args)?)?;
    // Before anything listens: a signal from now on ends it in order.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let signals = {
        let _entered = runtime.enter();
        Signals::new()?
    };
    let frontends = configured.frontends().to_vec();
    let running = start(&Settings { frontends, workers }, std::io::stdout())?;
    let followed = configured.under(running.control());
    let watching = watch::start(vec![Box::new(followed)])?;
    say(&format!("the proxy listens on {}", addresses(&running)));
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
