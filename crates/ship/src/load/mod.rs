//! A load of a known rate: what OK Log's test service was for.
//!
//! ```text
//! schedule ─▶ connection 0..N (a thread each): lines ─▶ push ─▶ acknowledged? ─▶ tally ─▶ report
//! ```
//!
//! It measures and does not make up for anything: what is refused or lost is counted, and not sent
//! again. The rate is kept whatever the server does, so that its stalls show.

mod lines;
mod schedule;
mod tally;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lines::Lines;
use logpond_client as client;
use logpond_client::{Access, Address, read_error};
use logpond_host::clock;
use logpond_record::cast;
use schedule::{Schedule, ScheduleStep};
use tally::{Outcome, Tally};

/// Records of a batch at most.
const BATCH_RECORDS_MAX: u64 = 5_000;

/// Bytes of a batch at most, one record aside.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Batches are sent no more often: what is due in this time goes together.
const TICK: Duration = Duration::from_millis(10);

/// How long an acknowledgement may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// After a batch that was not taken the next one waits for this.
const FAILED_PAUSE: Duration = Duration::from_millis(100);

/// How long the end may wait for a connection that has nothing to do.
const STOP_CHECK: Duration = Duration::from_millis(25);

/// What load is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The servers; connections take turns.
    pub addresses: Vec<Address>,
    /// What is shown to them.
    pub access: Access,
    /// What the lines are called.
    pub id: String,
    /// Records a second of all connections together; `None` is as fast as they are taken.
    pub rate: Option<f64>,
    /// Bytes of a line.
    pub size: usize,
    /// Connections.
    pub connections: usize,
    /// How long; `None` is until the stop.
    pub time: Option<Duration>,
    /// Whether records count once they are on the disk, and not once they were written.
    pub durable: bool,
    /// How often is said how it goes.
    pub report_every: Duration,
}

/// What became of the records of some time.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The time.
    pub time: Duration,
    /// The records.
    pub tally: Tally,
}

/// A load that is being made.
struct Load<'a> {
    settings: &'a Settings,
    lines: Lines,
    started: Instant,
    stop: &'a AtomicBool,
    /// Since the last report.
    tally: Mutex<Tally>,
}

/// Makes a load until its time is over or the stop, and says now and then how it goes. Gives how it
/// went.
///
/// # Errors
/// When the system gives no thread.
pub fn run(
    settings: &Settings,
    stop: &AtomicBool,
    mut say: impl FnMut(&Report),
) -> io::Result<Report> {
    let load = Load {
        settings,
        lines: Lines::new(&settings.id, settings.size),
        started: Instant::now(),
        stop,
        tally: Mutex::default(),
    };
    let mut all = Tally::default();
    thread::scope(|scope| {
        let load = &load;
        let mut connections = Vec::new();
        for number in 0..settings.connections.max(1) {
            let thread = thread::Builder::new().name(format!("load-{number}"));
            connections.push(thread.spawn_scoped(scope, move || load.send(number))?);
        }
        let mut reported = Instant::now();
        while !connections
            .iter()
            .all(thread::ScopedJoinHandle::is_finished)
        {
            thread::sleep(STOP_CHECK);
            if reported.elapsed() >= settings.report_every {
                let report = Report {
                    time: reported.elapsed(),
                    tally: std::mem::take(&mut *load.tally()),
                };
                say(&report);
                reported = Instant::now();
                all.add(report.tally);
            }
        }
        Ok::<(), io::Error>(())
    })?;
    all.add(std::mem::take(&mut *load.tally()));
    Ok(Report {
        time: load.started.elapsed(),
        tally: all,
    })
}

impl Load<'_> {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        let is_late = |time| self.started.elapsed() >= time;
        self.stop.load(Ordering::Relaxed) || self.settings.time.is_some_and(is_late)
    }

    /// Sends the records of one connection.
    fn send(&self, connection: usize) {
        let settings = self.settings;
        let share = cast::float(settings.connections.max(1));
        let batch_max = (BATCH_BYTES_MAX / settings.size.max(1)).max(1) as u64;
        let schedule = Schedule::new(
            settings.rate.map(|rate| rate / share),
            batch_max.min(BATCH_RECORDS_MAX),
        );
        let agent = client::agent(Some(ANSWER_TIMEOUT), &settings.access);
        let address = &settings.addresses[connection % settings.addresses.len()];
        let durable = vec![("durable", settings.durable.to_string())];
        let url = address.url("/api/v1/push", &durable);
        let (mut sent, mut body) = (0, Vec::new());
        while !self.is_over() {
            let (count, due) = match schedule.next(sent, self.started.elapsed()) {
                ScheduleStep::Send { count, due } => (count, due),
                ScheduleStep::Wait(until) => {
                    self.wait(until);
                    continue;
                }
            };
            body.clear();
            let now = jiff::Timestamp::from_nanosecond(i128::from(clock::now().0));
            let now = now.unwrap_or_default();
            for number in sent..sent + count {
                self.lines.append(connection, number, now, &mut body);
            }
            sent += count;
            let outcome = push(&agent, &url, &body, count);
            let is_taken = matches!(outcome, Outcome::Acknowledged);
            let took = self.started.elapsed().saturating_sub(due);
            let bytes = body.len() as u64;
            self.tally().note(count, bytes, outcome, took);
            if !is_taken {
                self.wait(self.started.elapsed() + FAILED_PAUSE);
            }
        }
    }

    /// Waits until a time since the start, at least a tick, or until it is over.
    fn wait(&self, until: Duration) {
        let until = until.max(self.started.elapsed() + TICK);
        while !self.is_over() {
            let left = until.saturating_sub(self.started.elapsed());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(STOP_CHECK));
        }
    }
}

fn push(agent: &ureq::Agent, url: &str, body: &[u8], count: u64) -> Outcome {
    let response = match agent.post(url).content_type("text/plain").send(body) {
        Ok(response) => response,
        Err(error) => return Outcome::Failed(client::describe(&error)),
    };
    let status = response.status().as_u16();
    let text = read_error(response.into_body());
    let answer: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    match status {
        200 if answer["accepted"] == count => Outcome::Acknowledged,
        200 => Outcome::Failed("the server took another number of records".to_owned()),
        status => {
            let error = client::ClientError::refused(status, &text);
            Outcome::Refused(error.to_string())
        }
    }
}
