//! Starts the workers, and ends them.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{error, fmt, io, mem};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::balance::Balance;
use crate::client_table::{ClientOrder, ClientTable, ClientsStatus, INTERVAL};
use crate::counters::{Lateness, TimesStatus};
use crate::frontend::{Frontend, FrontendStatus, Rules};
use crate::limits::BufferBudget;
use crate::listen::{ListenSockets, keep, listen};
use crate::settings;
use crate::state_record::state_records;
use crate::upstream::{UpstreamStatus, Upstreams, check};
use crate::worker::{self, Sources, Worker, WorkerContext};
use crate::{Settings, sink};

/// Why a proxy does not start.
#[derive(Debug)]
pub enum StartError {
    /// The address cannot be listened on.
    Listen(SocketAddr, io::Error),
    /// The system gives no thread or no event loop.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen(address, _) => write!(f, "cannot listen on {address}"),
            StartError::Thread(_) => f.write_str("cannot start a worker"),
        }
    }
}

impl error::Error for StartError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            StartError::Listen(_, source) | StartError::Thread(source) => Some(source),
        }
    }
}

/// Those of a running proxy, until it is to end.
type Sockets = Arc<Mutex<Vec<ListenSockets>>>;

/// A running proxy. Where nothing is left of it and of its [`Stopper`]s, connections are cut.
#[derive(Debug)]
pub struct RunningProxy {
    control: Control,
    stopper: Stopper,
    workers: Vec<JoinHandle<usize>>,
    checks: JoinHandle<()>,
    records: sink::Thread,
}

/// Listens where a proxy is to listen, or goes on with what listens there already. It may need rights
/// that [`start`] does not.
///
/// # Errors
/// When it cannot listen.
pub fn bind(
    settings: &Settings,
    mut inherited: Vec<ListenSockets>,
) -> Result<Vec<ListenSockets>, StartError> {
    let asked = settings
        .frontends
        .iter()
        .flat_map(|frontend| &frontend.listen);
    let bound = asked.map(|address| {
        let before = inherited.iter().position(|one| one.asked == *address);
        let before = before.map(|at| inherited.remove(at).sockets);
        let sockets = listen(
            *address,
            before.unwrap_or_default(),
            settings.workers.max(1),
        );
        let sockets = sockets.map_err(|error| StartError::Listen(*address, error))?;
        Ok(ListenSockets {
            asked: *address,
            sockets,
        })
    });
    bound.collect()
}

/// Starts a proxy; it listens when this returns. Its records go to `output`, a line of JSON each.
/// Addresses that one of `inherited` listens on are taken over with all that waits there.
///
/// # Errors
/// When it cannot listen, or the system gives no thread.
pub fn start(
    settings: &Settings,
    inherited: Vec<ListenSockets>,
    output: impl Write + Send + 'static,
) -> Result<RunningProxy, StartError> {
    let count = settings.workers.max(1);
    let mut listeners: Vec<Vec<(usize, TcpListener)>> = (0..count).map(|_| Vec::new()).collect();
    let upstreams = Upstreams::new();
    let mut frontends = Vec::with_capacity(settings.frontends.len());
    let mut kept = Vec::new();
    let mut bound = bind(settings, inherited)?.into_iter();
    for (number, frontend) in settings.frontends.iter().enumerate() {
        let mut addresses = Vec::with_capacity(frontend.listen.len());
        for ListenSockets { asked, sockets } in bound.by_ref().take(frontend.listen.len()) {
            let failed = |error| StartError::Listen(asked, error);
            addresses.push(sockets[0].local_addr().map_err(failed)?);
            kept.push(keep(asked, &sockets).map_err(failed)?);
            // There may be more of them than workers, of a proxy that had more.
            for (at, socket) in sockets.into_iter().enumerate() {
                listeners[at % count].push((number, socket));
            }
        }
        let rules = Rules::new(frontend, &upstreams).into();
        frontends.push(Frontend::new(
            frontend.listen.clone(),
            addresses,
            count,
            rules,
        ));
    }
    let (sender, records) = sink::start(output).map_err(StartError::Thread)?;
    let (balance, handed) = Balance::new(count);
    let shared = Arc::new(WorkerContext {
        frontends,
        balance,
        clients: ClientTable::new(),
        waiting: BufferBudget::new(settings.waiting_bytes_max),
        lateness: (0..count).map(|_| Lateness::default()).collect(),
    });
    let (stop, asked) = watch::channel(None);
    let mut workers = Vec::with_capacity(count);
    for (number, (listeners, handed)) in listeners.into_iter().zip(handed).enumerate() {
        let runtime = event_loop()?;
        let worker = Worker::new(number, shared.clone(), sender.clone());
        let (sources, asked) = (Sources { listeners, handed }, asked.clone());
        let run = move || worker::run(&runtime, worker, sources, asked);
        workers.push(thread(&format!("lp-proxy-{number}"), run)?);
    }
    let runtime = event_loop()?;
    let control = Control(Arc::new(ControlState {
        handle: runtime.handle().clone(),
        checks: Mutex::default(),
        upstreams,
        shared,
    }));
    control.check_upstreams();
    let controlled = control.clone();
    let states = settings.state_interval.map(|every| (every, sender));
    let checks = thread("lp-proxy-control", move || {
        run_control(&runtime, &controlled, asked, states)
    })?;
    Ok(RunningProxy {
        control,
        stopper: Stopper {
            stop,
            sockets: Arc::new(Mutex::new(kept)),
        },
        workers,
        checks,
        records,
    })
}

fn event_loop() -> Result<Runtime, StartError> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().build().map_err(StartError::Thread)
}

fn thread<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, StartError> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(run).map_err(StartError::Thread)
}

/// Checks upstreams, measures throughput and writes records of the state, so often, until the end is asked for, or
/// nobody is left to ask.
fn run_control(
    runtime: &Runtime,
    control: &Control,
    mut stop: watch::Receiver<Option<Instant>>,
    states: Option<(Duration, sink::Sender)>,
) {
    let measure = async {
        loop {
            sleep(INTERVAL).await;
            control.0.shared.clients.measure(std::time::Instant::now());
        }
    };
    let tell = async {
        let Some((every, sender)) = states else {
            return std::future::pending::<()>().await;
        };
        loop {
            sleep(every).await;
            let now = Duration::from_secs(logpond_tls::now().as_secs());
            state_records(&control.status(), now)
                .into_iter()
                .for_each(|line| sender.send(line));
        }
    };
    let stopped = async {
        // An error says that the proxy is gone.
        let _ = stop.wait_for(Option::is_some).await;
    };
    runtime.block_on(async {
        tokio::select! {
            () = measure => {}
            () = tell => {}
            () = stopped => {}
        }
    });
}

impl RunningProxy {
    /// Where it listens, for each frontend.
    pub fn addresses(&self) -> Vec<Vec<SocketAddr>> {
        let frontends = self.control.0.shared.frontends.iter();
        frontends
            .map(|frontend| frontend.addresses.clone())
            .collect()
    }

    /// What changes it, and says how it is.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Waits until all connections have ended or were cut, after [`Stopper::drain`]. Gives how many
    /// were cut, and how many records were not written.
    pub fn join(self) -> (usize, u64) {
        let ended = self
            .workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or(0));
        let cut = ended.sum();
        let _ = self.checks.join();
        (cut, self.records.join().unwrap_or(0))
    }
}

/// Changes a running proxy, and says how it is. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Control(Arc<ControlState>);

#[derive(Debug)]
struct ControlState {
    shared: Arc<WorkerContext>,
    upstreams: Upstreams,
    /// Where upstreams are checked.
    handle: Handle,
    checks: Mutex<JoinSet<()>>,
}

/// How a proxy is, and what it counted since it began.
#[derive(Clone, Debug)]
pub struct Status {
    /// In the order of the settings.
    pub frontends: Vec<FrontendStatus>,
    /// By name.
    pub upstreams: Vec<UpstreamStatus>,
    /// How late each worker's event loop was for timers; what keeps it busy delays connections by
    /// as much.
    pub lateness: Vec<TimesStatus>,
    /// What waits in all connections for sides that do not take it.
    pub waiting_bytes: usize,
}

/// Settings that a running proxy cannot take on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceError {
    /// It would listen elsewhere than now.
    Listen,
}

impl fmt::Display for ReplaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("where the proxy listens can be changed by starting it anew only")
    }
}

impl error::Error for ReplaceError {}

impl Control {
    /// Has other settings hold for the next connections; no other notices. The number of workers stays.
    ///
    /// # Errors
    /// When they have it listen elsewhere; then nothing has changed.
    pub fn replace(&self, settings: &[settings::Frontend]) -> Result<(), ReplaceError> {
        let ControlState {
            shared, upstreams, ..
        } = &*self.0;
        let asked = settings.iter().map(|frontend| &frontend.listen);
        if !asked.eq(shared.frontends.iter().map(|frontend| &frontend.listen)) {
            return Err(ReplaceError::Listen);
        }
        for (settings, frontend) in settings.iter().zip(&shared.frontends) {
            frontend.replace(Rules::new(settings, upstreams).into());
        }
        self.check_upstreams();
        upstreams.forget_unused();
        Ok(())
    }

    /// How the upstreams are, by name.
    pub fn upstreams(&self) -> Vec<UpstreamStatus> {
        self.0.upstreams.status()
    }

    /// So many of the clients, those with the most first.
    pub fn clients(&self, count: usize, order: ClientOrder) -> ClientsStatus {
        self.0.shared.clients.top(count, order)
    }

    /// How it is, without clients.
    pub fn status(&self) -> Status {
        let shared = &self.0.shared;
        let frontends = shared.frontends.iter().enumerate();
        Status {
            frontends: frontends
                .map(|(at, frontend)| frontend.status(at))
                .collect(),
            upstreams: self.upstreams(),
            lateness: shared.lateness.iter().map(Lateness::status).collect(),
            waiting_bytes: shared.waiting.bytes(),
        }
    }

    /// Ends the checks of before, and begins those that the settings ask for now.
    fn check_upstreams(&self) {
        let mut checks = JoinSet::new();
        for frontend in &self.0.shared.frontends {
            let rules = frontend.rules();
            for (pool, every) in rules.checked() {
                let check = check(pool, every, rules.limits.connect_time);
                checks.spawn_on(check, &self.0.handle);
            }
        }
        let now = &mut *self.0.checks.lock().unwrap_or_else(PoisonError::into_inner);
        // Dropped, the others end.
        drop(mem::replace(now, checks));
    }
}

/// Ends a running proxy. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stopper {
    stop: watch::Sender<Option<Instant>>,
    sockets: Sockets,
}

impl Stopper {
    /// What listens, for a proxy that is to take over; nothing once this one is to end.
    ///
    /// # Errors
    /// When the system has no descriptors.
    pub fn listening(&self) -> io::Result<Vec<ListenSockets>> {
        let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let all = sockets.iter().map(|one| keep(one.asked, &one.sockets));
        all.collect()
    }

    /// Stops listening, and gives connections so long to end. Called again, the shorter time counts.
    pub fn drain(&self, time: Duration) {
        // Where nobody has taken them over, the system refuses connections from now on.
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.clear();
        drop(sockets);
        let end = Instant::now() + time;
        self.stop.send_modify(|asked| {
            *asked = Some(asked.map_or(end, |before| before.min(end)));
        });
    }
}
