//! A cluster with all of its nodes on this machine, beside a single process: what a record costs until
//! it is in segments, whether stores keep up with ingesters, and how soon a record that one node has
//! acknowledged is found through another.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Settings;
use super::machine;
use super::pond::{Pond, Scratch, cpu_seconds, wait_until};
use super::steady::{Sample, Steady};
use super::table::{Report, Target, median};
use crate::run::Outcome;

/// The roles of the cluster's nodes.
const ROLES: [(&str, usize); 2] = [("ingest", 3), ("store", 3)];

/// How many nodes hold each record.
const COPIES: &str = "2";

/// What is sent: lines of this length over so many connections.
const LINE: &str = "300B";
const CONNECTIONS: &str = "6";

/// Rounds of single process and cluster, and how long each is loaded, unless told.
const ROUNDS_DEFAULT: usize = 2;
const SECONDS_DEFAULT: f64 = 60.0;

/// Of the machine's cores, what is busy when stores have to keep up, the sender's share included.
const LOAD_SHARE: f64 = 0.8;

/// How the rate that does this to a cluster is found on a machine: from a guess, by loads of this
/// length, to whole thousands of lines a second. A line costs less the more there are, so each of them
/// comes nearer only.
const RATE_GUESSED: u32 = 80_000;
const PROBES: usize = 3;
const PROBE_SECONDS: f64 = 20.0;
const RATE_STEP: f64 = 1000.0;

/// Lines a second at which a record's cost is measured as well: they come in requests of two lines.
const RATE_LOW: u32 = 15_000;

/// Lines a second beside which records are looked for, and how many are.
const RATES_LOOKED: [u32; 2] = [5_000, 15_000];
const LOOKS: usize = 200;

/// What is waited before each, so that they are spread over the growth and the closing of several files.
const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// What is in segments of all that was acknowledged once it counts as settled: files that are still
/// open may have the rest.
const SETTLED_SHARE: f64 = 0.99;

/// How often it is seen what waits for stores.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Measures throughput, then how soon records are found.
pub(super) fn measure(program: &Path, settings: &Settings, report: &mut Report) -> Outcome<()> {
    let columns = [
        "lines a second",
        "servers",
        "acknowledged within, ms (p50 / p99)",
        "server CPU-s a million, acknowledged / in segments",
        "cores busy, with servers / with all",
        "consumed for each offered",
        "the same in the steady second half",
        "waiting for stores, MB (first / second half)",
        "records for the same CPU",
    ];
    report.table("Throughput", &columns);
    let rounds = settings.rounds.unwrap_or(ROUNDS_DEFAULT);
    let seconds = settings.seconds.unwrap_or(SECONDS_DEFAULT);
    for rate in [rate_of_load(program)?, RATE_LOW] {
        for _ in 0..rounds {
            let single = throughput(program, Kind::Single, rate, seconds)?;
            let cluster = throughput(program, Kind::Cluster, rate, seconds)?;
            let share = single.settled_s / cluster.settled_s;
            report.row(single.cells(rate, Kind::Single, String::new()));
            let judged = Target::at_least(0.5, ">= 0.5").judged(share);
            report.row(cluster.cells(rate, Kind::Cluster, format!("{share:.2} x, {judged}")));
        }
    }
    let share = LOAD_SHARE * 100.0;
    report.note(format!(
        "The first rate is the one that keeps the cores of this machine busy to {share:.0} % with the cluster \
         and its sender, as {PROBES} shorter loads found it. \
         Lines of {LINE} over {CONNECTIONS} connections for {seconds:.0} s, durable. A cluster is three \
         ingesters and three stores, {COPIES} copies; the single process keeps one. In segments: \
         99 % of what was acknowledged is (files that are still open have the rest), with all its copies and \
         what was merged meanwhile. \
         Consumed and offered are bytes of journal files, as `logpond cluster status` says them: over the \
         last minute, the filling of the queue included; and in the second half of the load by the trend of what \
         waits, with twice its standard error, within which the target is judged. What waits are \
         whole files of up to 16 MiB, so a single look is off by percents."
    ));
    found_soon(program, report)
}

/// Lines a second that keep this machine as busy as [`LOAD_SHARE`] says, with a cluster.
fn rate_of_load(program: &Path) -> Outcome<u32> {
    let mut rate = RATE_GUESSED;
    for _ in 0..PROBES {
        let busy = throughput(program, Kind::Cluster, rate, PROBE_SECONDS)?.busy_all;
        let aimed = f64::from(rate) * LOAD_SHARE * machine::cores() / busy;
        rate = ((aimed / RATE_STEP).round() * RATE_STEP) as u32;
        eprintln!("   {busy:.2} cores were busy; next {rate} lines a second");
    }
    Ok(rate)
}

#[derive(Clone, Copy)]
enum Kind {
    Single,
    Cluster,
}

/// The processes of one measurement.
struct Servers {
    /// Those that take records in, then the others.
    nodes: Vec<Pond>,
    /// How many those are.
    intakes: usize,
    _scratch: Scratch,
}

impl Servers {
    fn start(program: &Path, kind: Kind) -> Outcome<Servers> {
        let scratch = Scratch::new("bench-cluster")?;
        let mut nodes = Vec::new();
        let roles: &[(&str, usize)] = match kind {
            Kind::Single => &[("serve", 1)],
            Kind::Cluster => &ROLES,
        };
        for (role, count) in roles {
            for number in 0..*count {
                let data = scratch.path().join(format!("{role}-{number}"));
                let join = nodes
                    .first()
                    .map_or("off".into(), |n: &Pond| n.address("gossip"));
                let of_cluster = ["--gossip", "127.0.0.1:0", "--replication", COPIES];
                let extra = match kind {
                    Kind::Single => vec![],
                    Kind::Cluster => [&of_cluster[..], &["--join", &join]].concat(),
                };
                nodes.push(Pond::start_as(program, role, &data, &extra)?);
            }
        }
        let servers = Servers {
            nodes,
            intakes: roles[0].1,
            _scratch: scratch,
        };
        servers.meet()?;
        Ok(servers)
    }

    /// Waits until each node knows all others, and what they take in.
    fn meet(&self) -> Outcome<()> {
        let all = self.nodes.len();
        let knows_all = |node: &Pond| match all {
            1 => true,
            _ => status(node).is_ok_and(|said| {
                let nodes = said["nodes"].as_array().map_or(&[][..], Vec::as_slice);
                nodes.iter().filter(|n| n["state"] == "live").count() == all
            }),
        };
        wait_until("all nodes know each other", || {
            self.nodes.iter().all(knows_all)
        })?;
        let is_complete = |node: &Pond| {
            let answer = node.query("nothing");
            answer.is_ok_and(|(_, trailer)| trailer["complete"] == true)
        };
        wait_until("answers are complete", || {
            self.intakes().iter().all(is_complete)
        })
    }

    fn intakes(&self) -> &[Pond] {
        &self.nodes[..self.intakes]
    }

    fn cpu(&self) -> Outcome<f64> {
        self.nodes.iter().map(|node| cpu_seconds(node.pid())).sum()
    }

    /// Starts the sender.
    fn load(&self, program: &Path, rate: u32, seconds: f64) -> Outcome<Child> {
        let urls: Vec<String> = self.intakes().iter().map(Pond::url).collect();
        let (rate, seconds) = (rate.to_string(), format!("{seconds}s"));
        Command::new(program)
            .args(["load", "--addr", &urls.join(","), "--rate", &rate])
            .args(["--size", LINE, "--connections", CONNECTIONS])
            .args(["--for", &seconds, "--report-every", "1h", "-o", "json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))
    }

    /// Waits until records are in segments, with all their copies.
    fn settle(&self, records: f64) -> Outcome<()> {
        let rows = |node: &Pond| {
            let of = |name| node.metric(name).unwrap_or(0.0);
            of("logpond_store_consumed_rows_total") + of("logpond_handoff_consumed_rows_total")
        };
        wait_until("stores have consumed what was sent", || {
            // Asking costs the servers some CPU, too.
            thread::sleep(LOOK_EVERY);
            let consumed: f64 = self.nodes.iter().map(rows).sum();
            consumed >= records * SETTLED_SHARE && self.waiting_mb() == 0.0
        })
    }

    /// What ingesters have offered and stores have consumed since they were started.
    fn sample(&self, start: Instant) -> Outcome<Sample> {
        let said = status(&self.nodes[0])?;
        let nodes = said["nodes"].as_array().map_or(&[][..], Vec::as_slice);
        let of_all = |name: &str| {
            nodes
                .iter()
                .filter_map(|n| n["status"][name].as_f64())
                .sum()
        };
        Ok(Sample {
            at_s: start.elapsed().as_secs_f64(),
            offered: of_all("offered_bytes"),
            consumed: of_all("consumed_bytes"),
        })
    }

    /// Megabytes of journal files that no store has made segments of yet.
    fn waiting_mb(&self) -> f64 {
        let waiting = self
            .intakes()
            .iter()
            .map(|node| node.metric("logpond_unreplicated_bytes").unwrap_or(0.0));
        waiting.sum::<f64>() / 1e6
    }
}

/// What a cluster says of itself.
fn status(node: &Pond) -> Outcome<serde_json::Value> {
    serde_json::from_str(&node.get("/api/v1/cluster")?).map_err(|e| e.to_string())
}

/// What taking records in cost.
struct Cost {
    /// Acknowledgements, milliseconds.
    within_ms: [f64; 2],
    /// CPU seconds of all servers for a million records, until the last acknowledgement, and until
    /// all are in segments.
    acknowledged_s: f64,
    settled_s: f64,
    /// Cores that the servers kept busy until the last acknowledgement, and that anybody did.
    busy_servers: f64,
    busy_all: f64,
    /// What the cluster says of its stores.
    consumed_per_offered: Option<f64>,
    /// That ratio in the second half, by what was seen.
    steady: Option<Steady>,
    /// Means of what waited for stores in both halves of the time, megabytes.
    waiting_mb: Option<[f64; 2]>,
}

fn throughput(program: &Path, kind: Kind, rate: u32, seconds: f64) -> Outcome<Cost> {
    let servers = Servers::start(program, kind)?;
    let (before, all_before) = (servers.cpu()?, machine::busy_seconds()?);
    let start = Instant::now();
    let mut sender = servers.load(program, rate, seconds)?;
    let mut samples = Vec::new();
    while sender.try_wait().map_err(|e| e.to_string())?.is_none() {
        thread::sleep(LOOK_EVERY);
        if let Kind::Cluster = kind {
            samples.push(servers.sample(start)?);
        }
    }
    let took = start.elapsed().as_secs_f64();
    let all = machine::busy_seconds()? - all_before;
    let sent = sender.wait_with_output().map_err(|e| e.to_string())?;
    let said: serde_json::Value =
        serde_json::from_slice(&sent.stdout).map_err(|e| format!("logpond load: {e}"))?;
    let number = |name: &str| {
        said[name]
            .as_f64()
            .ok_or(format!("logpond load: no {name}"))
    };
    if number("refused")? + number("failed")? > 0.0 {
        return Err(format!("not everything was taken: {said}"));
    }
    let millions = number("acknowledged")? / 1e6;
    let acknowledged = servers.cpu()? - before;
    let consumed_per_offered = match kind {
        Kind::Single => None,
        Kind::Cluster => status(&servers.nodes[0])?["consumed_per_offered"].as_f64(),
    };
    servers.settle(number("acknowledged")?)?;
    let waiting = samples.iter().map(|s| (s.offered - s.consumed) / 1e6);
    let waiting: Vec<f64> = waiting.collect();
    let half = waiting.len() / 2;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let halves = [mean(&waiting[..half]), mean(&waiting[half..])];
    Ok(Cost {
        within_ms: [number("latency_ms_p50")?, number("latency_ms_p99")?],
        acknowledged_s: acknowledged / millions,
        settled_s: (servers.cpu()? - before) / millions,
        busy_servers: acknowledged / took,
        busy_all: all / took,
        consumed_per_offered,
        steady: Steady::of(&samples, seconds),
        waiting_mb: matches!(kind, Kind::Cluster).then_some(halves),
    })
}

impl Cost {
    fn cells(&self, rate: u32, kind: Kind, share: String) -> Vec<String> {
        let servers = match kind {
            Kind::Single => "`logpond serve`",
            Kind::Cluster => "3 ingesters, 3 stores",
        };
        let [p50, p99] = self.within_ms;
        let (cores, all) = (machine::cores(), self.busy_all);
        let ratio = self.consumed_per_offered;
        let waiting = self.waiting_mb;
        let steady = self.steady.map(|steady| {
            let target = Target::at_least(1.0, ">= 1");
            let judged = steady.at_most().map(|ratio| target.judged(ratio));
            let judged = judged.unwrap_or_else(|| "too coarse to be judged".into());
            format!("{:.3} ± {:.3}, {judged}", steady.ratio, steady.resolution)
        });
        vec![
            rate.to_string(),
            servers.into(),
            format!("{p50:.1} / {p99:.1}"),
            format!("{:.2} / {:.2}", self.acknowledged_s, self.settled_s),
            format!("{:.2} / {all:.2} of {cores}", self.busy_servers),
            ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
            steady.unwrap_or_default(),
            waiting.map_or(String::new(), |[a, b]| format!("{a:.0} / {b:.0}")),
            share,
        ]
    }
}

/// How soon what one node has acknowledged is found through another one.
fn found_soon(program: &Path, report: &mut Report) -> Outcome<()> {
    report.table(
        "From acknowledgement to answer",
        &[
            "lines a second beside it",
            "half within, ms",
            "99 of 100 within, ms",
            "at most, ms",
            "target",
        ],
    );
    for rate in RATES_LOOKED {
        let servers = Servers::start(program, Kind::Cluster)?;
        let mut sender = servers.load(program, rate, SECONDS_DEFAULT)?;
        let looked = (0..LOOKS).map(|number| {
            thread::sleep(LOOK_PAUSE);
            look(&servers, number)
        });
        let looked: Outcome<Vec<f64>> = looked.collect();
        let _ = sender.kill();
        let _ = sender.wait();
        let mut times = looked?;
        let half = median(&mut times);
        let late = times[(LOOKS * 99).div_ceil(100) - 1];
        report.row(vec![
            rate.to_string(),
            format!("{half:.0}"),
            format!("{late:.0}"),
            format!("{:.0}", times[LOOKS - 1]),
            Target::at_most(50.0, "<= 50 ms").judged(late),
        ]);
    }
    report.note(format!(
        "{LOOKS} lines, one every {} ms, each pushed to an ingester, acknowledged as durable, and \
         looked for by a word in it through another ingester, over all nodes; the time from the \
         acknowledgement to the end of the answer, which had the line at the first look.",
        LOOK_PAUSE.as_millis()
    ));
    Ok(())
}

/// Milliseconds from the acknowledgement of a line to its being found elsewhere.
fn look(servers: &Servers, number: usize) -> Outcome<f64> {
    let intakes = servers.intakes();
    let word = format!("soughtafter{number}");
    let (taken, asked) = (number % intakes.len(), (number + 1) % intakes.len());
    let pushed = intakes[taken].push("text/plain", word.as_bytes())?;
    if pushed.accepted() != 1 {
        return Err(format!("{word}: {} {}", pushed.status, pushed.body));
    }
    let since = Instant::now();
    let (rows, trailer) = intakes[asked].query(&word)?;
    let ms = since.elapsed().as_secs_f64() * 1e3;
    match (rows.len(), &trailer["complete"]) {
        (1, serde_json::Value::Bool(true)) => Ok(ms),
        (count, _) => Err(format!("{word} was found {count} times: {trailer}")),
    }
}
