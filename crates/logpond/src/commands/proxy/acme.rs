//! Certificates by ACME (RFC 8555): `lp-acme` orders and renews them, and its files are kept by `lp-acme-files`.
//!
//! Invariants: an order is made once, however many frontends ask for the same; what comes to nothing changes
//! nothing of what clients are shown; no event loop opens a file.

mod order;
mod report;
mod store;

use std::io;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use self::order::Order;
use self::report::Report;
use crate::commands::Failure;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::say;

pub(super) use order::{Orders, order};

/// After so long without a word of an order it begins anew with what is in the files. The client's longest pause
/// after a failure is 18 hours, so that this ends only what hangs, as the client waits for a server that says
/// nothing for ever, and otherwise finds out what other processes have put into the files.
const SILENCE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Orders what it is told to, from the first order on.
pub(super) struct Acme {
    shutdown: Shutdown,
    told: Option<watch::Sender<Orders>>,
}

impl Acme {
    /// One that orders nothing yet, and nothing more from the stop on.
    pub(super) fn new(shutdown: Shutdown) -> Acme {
        Acme {
            shutdown,
            told: None,
        }
    }

    /// Finds out whether what comes of orders could be kept: an authority counts what it has issued.
    ///
    /// # Errors
    /// When it could not.
    pub(super) fn check(&self, orders: &Orders) -> Result<(), Failure> {
        orders.iter().try_for_each(|order| order.store().check())
    }

    /// Has these be ordered from now on, and no others.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn follow(&mut self, orders: &Orders) -> Result<(), Failure> {
        match &self.told {
            Some(told) => {
                told.send_replace(orders.clone());
            }
            None if orders.iter().next().is_none() => {}
            None => self.told = Some(start(orders.clone(), self.shutdown.clone())?),
        }
        Ok(())
    }
}

fn start(orders: Orders, shutdown: Shutdown) -> io::Result<watch::Sender<Orders>> {
    let (sender, told) = watch::channel(orders);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_name("lp-acme-files")
        .max_blocking_threads(1)
        .build()?;
    let thread = std::thread::Builder::new().name("lp-acme".to_owned());
    thread.spawn(move || runtime.block_on(run(told, shutdown)))?;
    Ok(sender)
}

/// Keeps what was told until the stop.
async fn run(mut told: watch::Receiver<Orders>, mut shutdown: Shutdown) {
    let mut tasks = JoinSet::new();
    let mut kept: Vec<(Order, AbortHandle)> = Vec::new();
    loop {
        let orders = told.borrow_and_update().clone();
        kept.retain(|(order, task)| {
            let stays = orders.iter().any(|other| other == order);
            if !stays {
                task.abort();
            }
            stays
        });
        for order in orders.iter() {
            if !kept.iter().any(|(other, _)| other == order) {
                kept.push((order.clone(), tasks.spawn(keep(order.clone()))));
            }
        }
        tokio::select! {
            changed = told.changed() => if changed.is_err() { return },
            () = shutdown.stopping() => return,
        }
    }
}

/// Has a certificate ordered where none holds, and renewed before it ends.
async fn keep(order: Order) {
    if !order.is_kept() {
        let (names, directory) = (order.names(), order.directory());
        say(&format!(
            "a certificate for {names} is ordered at {directory}"
        ));
    }
    loop {
        let mut report = Report::new(order.clone());
        let mut state = pin!(order.state());
        order.ordered().answer(state.resolver());
        while let Ok(Some(event)) = timeout(SILENCE_MAX, state.next()).await {
            let pause = report.of(event);
            // The client's own pause goes on meanwhile.
            sleep(pause).await;
        }
    }
}
