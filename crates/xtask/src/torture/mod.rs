//! Breaks a cluster of real processes, and checks what it said: `cargo xtask torture`.
//!
//! ```text
//! seed ─▶ plan ─▶ inject ─┐
//!         load ───────────┼─▶ processes in namespaces (topology, world)
//!         questions ──────┤        │
//!         follow ─────────┘        │
//!              └─▶ history ◀───────┘ ─▶ checker ─▶ violations
//! ```
//!
//! After the manner of Jepsen: clients note what they sent and what was acknowledged, others ask or
//! follow all the time and note what they were told, while processes are killed and paused, networks cut and
//! disks filled. Then everything is healed, and a checker that knows nothing of how the product
//! works looks for a record that was lost, doubled or invented, and for an answer that claimed more
//! than was true. A seed names the faults and questions, not how they fall together.

mod bomb;
mod checker;
mod deliver;
mod ending;
mod follow;
mod history;
mod image;
mod inject;
mod limits;
mod load;
mod operator;
mod patience;
mod plan;
mod questions;
mod report;
mod samples;
mod sources;
mod summary;
mod tools;
mod topology;
mod tracer;
mod world;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::draw::Draw;
use crate::run::{Outcome, output, target_directory, tested_program};
use checker::{Facts, Violation};
use history::{History, Place};
use load::{Kind, Producer};
use plan::{PlannedFault, Targets};
use questions::interfaces::{self, INTERFACES, Interface};
use samples::Sample;
use sources::{Promise, SOURCES};
use summary::Summary;
use tools::Tools;
use topology::{Launch, Process, Role};
use world::World;

/// Processes that belong together. Any node answers.
struct Topology {
    name: &'static str,
    /// A number of processes of each role.
    roles: &'static [(Role, usize)],
    /// The copies that are kept.
    copies: usize,
    /// Whether there is a bucket behind them.
    has_bucket: bool,
}

const TOPOLOGIES: [Topology; 3] = [
    Topology {
        name: "roles",
        roles: &[
            (Role::Ingest, 3),
            (Role::Store, 3),
            (Role::QueryNode, 1),
            (Role::Forward, 2),
        ],
        copies: 2,
        has_bucket: false,
    },
    Topology {
        name: "serve",
        roles: &[(Role::Serve, 3), (Role::Forward, 2)],
        copies: 2,
        has_bucket: false,
    },
    // One copy, which must be the one in the bucket: disks of stores are lost.
    Topology {
        name: "bucket",
        roles: &[
            (Role::Ingest, 2),
            (Role::Store, 2),
            (Role::QueryNode, 1),
            (Role::Forward, 1),
        ],
        copies: 1,
        has_bucket: true,
    },
];

/// How many ask at a time.
const ASKING: u64 = 3;

/// The most violations that are printed; the history has all.
const VIOLATIONS_SHOWN_MAX: usize = 20;

/// What the command line asks for.
struct Settings {
    load: Duration,
    seed: u64,
    /// The topology; all one after the other if none is given and everything is wanted.
    topology: Option<&'static Topology>,
    /// The program to torture, if it is not one that is built for it.
    program: Option<PathBuf>,
    keeps: bool,
    /// The only kinds of faults that are drawn; all if there are none.
    only: BTreeSet<String>,
    /// Whether all sources send and all interfaces are queried.
    is_everything: bool,
    /// The page for figures and pictures.
    report: Option<PathBuf>,
    is_inside: bool,
}

/// Everything that the threads of a run share.
struct Run {
    seed: u64,
    world: World,
    program: PathBuf,
    tools: Tools,
    history: History,
    processes: Vec<Process>,
    clients: Vec<Producer>,
    /// The interfaces that are queried beside the native one.
    interfaces: Vec<Interface>,
    /// Memory and descriptors of nodes so far.
    samples: Mutex<Vec<Sample>>,
    /// Nodes that have lost their disk and are to be given up.
    lost: Mutex<Vec<String>>,
    is_over: AtomicBool,
    /// What followers were shown so far.
    shown: Vec<Mutex<follow::Shown>>,
    /// Whether followers are to come to their end.
    is_followed_to_the_end: AtomicBool,
}

impl Run {
    /// Whether clients are to come to their end.
    fn is_load_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    fn places(&self, is_so: impl Fn(Role) -> bool) -> Vec<Place> {
        let found = self.processes.iter().filter(|process| is_so(process.role));
        found.map(|process| process.place).collect()
    }

    /// Places of nodes.
    fn nodes(&self) -> Vec<Place> {
        self.places(Role::is_node)
    }

    /// Places of those that take records in.
    fn intakes(&self) -> Vec<Place> {
        self.places(Role::ingests)
    }

    /// What the checker has to know.
    fn facts(&self) -> Facts {
        let address = |process: &Process| {
            if process.role.is_node() {
                process.gossip()
            } else {
                String::new()
            }
        };
        Facts {
            clients: self
                .clients
                .iter()
                .map(|client| client.name.clone())
                .collect(),
            addresses: self.processes.iter().map(address).collect(),
            start_time: self.history.start_time(),
        }
    }
}

fn parse(arguments: &[String]) -> Outcome<Settings> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |t| t.as_secs());
    let mut settings = Settings {
        load: Duration::from_secs(60),
        seed: now % 1_000_000,
        topology: None,
        program: None,
        keeps: false,
        only: BTreeSet::new(),
        is_everything: false,
        report: None,
        is_inside: false,
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let mut value = || rest.next().cloned().ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "--minutes" => {
                let text = value()?;
                let minutes = text
                    .parse::<f64>()
                    .ok()
                    .filter(|m| (0.1..=10_000.0).contains(m));
                let minutes = minutes.ok_or(format!("--minutes: {text} is not from 0.1 on"))?;
                settings.load = Duration::from_secs_f64(minutes * 60.0);
            }
            "--seed" => settings.seed = value()?.parse().map_err(|e| format!("--seed: {e}"))?,
            "--topology" => {
                let name = value()?;
                let found = TOPOLOGIES.iter().find(|known| known.name == name);
                let names = TOPOLOGIES.map(|known| known.name).join(", ");
                let unknown = || format!("--topology: {name} is none of {names}");
                settings.topology = Some(found.ok_or_else(unknown)?);
            }
            "--program" => settings.program = Some(value()?.into()),
            "--only" => {
                settings.only.insert(value()?);
            }
            "--keep" => settings.keeps = true,
            "--everything" => settings.is_everything = true,
            "--patience" => {
                let text = value()?;
                let factor = text.parse().ok();
                let factor = factor.filter(|f| (1..=patience::FACTOR_MAX).contains(f));
                let wrong = || {
                    let most = patience::FACTOR_MAX;
                    format!("--patience: {text} is not from 1 to {most}")
                };
                patience::set(factor.ok_or_else(wrong)?);
            }
            "--report" => settings.report = Some(value()?.into()),
            world::INSIDE => settings.is_inside = true,
            _ => return Err(format!("torture: unknown flag {flag}")),
        }
    }
    Ok(settings)
}

/// Builds the program, tortures a cluster of it, and reports.
pub(crate) fn run(arguments: &[String]) -> Outcome<()> {
    let settings = parse(arguments)?;
    let program = match &settings.program {
        Some(program) => program.clone(),
        None => tested_program()?,
    };
    if settings.is_inside {
        let topology = settings.topology.unwrap_or(&TOPOLOGIES[0]);
        return run_in(World::Isolated, &settings, topology, program);
    }
    if let Some(page) = &settings.report {
        report::begin(page, arguments)?;
    }
    let topologies: Vec<&'static Topology> = match settings.topology {
        Some(topology) => vec![topology],
        None if settings.is_everything => TOPOLOGIES.iter().collect(),
        None => vec![&TOPOLOGIES[0]],
    };
    let share = Settings {
        load: settings.load / u32::try_from(topologies.len()).unwrap_or(1),
        ..settings
    };
    let results = topologies
        .iter()
        .map(|topology| run_topology(arguments, &share, topology, &program));
    let failures: Vec<String> = results.filter_map(Result::err).collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n"))
    }
}

/// Runs one topology, in namespaces of its own if there can be any.
fn run_topology(
    arguments: &[String],
    settings: &Settings,
    topology: &'static Topology,
    program: &Path,
) -> Outcome<()> {
    // The seed may have been drawn from the clock, and the time is shared.
    let minutes = settings.load.as_secs_f64() / 60.0;
    let known = [
        ("--seed", settings.seed.to_string()),
        ("--program", program.display().to_string()),
        ("--topology", topology.name.to_owned()),
        ("--minutes", minutes.to_string()),
    ];
    let known = known
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value]);
    match world::enter(&[arguments, &known.collect::<Vec<_>>()].concat()) {
        // The other process has said everything.
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the torture of {} failed: {status}", topology.name)),
        Err(why) => {
            world::say_that_it_is_not_isolated(&why);
            run_in(World::Loopback, settings, topology, program.to_owned())
        }
    }
}

fn run_in(
    world: World,
    settings: &Settings,
    topology: &'static Topology,
    program: PathBuf,
) -> Outcome<()> {
    let directory = target_directory().join("torture").join(format!(
        "{}-{}",
        settings.seed,
        std::process::id()
    ));
    fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let violations = torture(settings, topology, (world, program), &directory)?;
    if violations.is_empty() && !settings.keeps {
        return fs::remove_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()));
    }
    for violation in violations.iter().take(VIOLATIONS_SHOWN_MAX) {
        eprintln!("{violation}");
    }
    let (count, kept) = (violations.len(), directory.display());
    eprintln!("history.jsonl, logs and data are kept in {kept}");
    match count {
        0 => Ok(()),
        _ => Err(format!("{count} violations with seed {}", settings.seed)),
    }
}

fn prepare(
    settings: &Settings,
    topology: &'static Topology,
    (world, program): (World, PathBuf),
    directory: &Path,
) -> Outcome<Run> {
    world.begin()?;
    let tools = Tools::find(world)?;
    let (sources, interfaces) = if settings.is_everything {
        (&SOURCES[..], INTERFACES.to_vec())
    } else {
        (&[][..], Vec::new())
    };
    let launch = Launch {
        world,
        program,
        directory: directory.to_owned(),
        // With and without encryption between nodes, both are there to be used.
        has_certificates: settings.seed % 2 == 1,
        copies: topology.copies,
        bucket: topology.has_bucket.then(|| directory.join("bucket")),
        listeners: sources.iter().filter_map(|s| s.listener).collect(),
        postgres: settings.is_everything.then_some(interfaces::POSTGRES_PORT),
        tools: tools.clone(),
    };
    let processes = topology::processes(&launch, topology.roles);
    world.join(processes.len())?;
    let mut kinds = vec![Kind::Named, Kind::Named, Kind::Plain];
    let forwarders = processes.iter().filter(|process| !process.role.is_node());
    kinds.extend(forwarders.map(|process| Kind::Lines(process.place)));
    kinds.extend(sources.iter().map(|source| Kind::Protocol(source)));
    let clients = kinds
        .iter()
        .enumerate()
        .map(|(index, kind)| Producer::new(index, *kind));
    let nothing = vec![BTreeSet::new(); kinds.len()];
    let shown = (0..follow::FOLLOWERS).map(|_| Mutex::new(nothing.clone()));
    let run = Run {
        seed: settings.seed,
        world,
        program: launch.program,
        tools,
        history: History::create(&directory.join("history.jsonl"))?,
        processes,
        clients: clients.collect(),
        interfaces,
        samples: Mutex::default(),
        lost: Mutex::default(),
        is_over: AtomicBool::new(false),
        shown: shown.collect(),
        is_followed_to_the_end: AtomicBool::new(false),
    };
    for process in &run.processes {
        process.prepare()?;
    }
    for process in &run.processes {
        process.start()?;
    }
    Ok(run)
}

/// The processes and networks that can be broken.
fn targets(run: &Run, settings: &Settings) -> Targets {
    Targets {
        nodes: run.nodes(),
        stores: run.places(Role::is_store_only),
        forwarders: run.places(|role| !role.is_node()),
        images: if run.tools.has_images {
            run.nodes()
        } else {
            Vec::new()
        },
        is_isolated: run.world == World::Isolated,
        has_tracer: run.tools.has_tracer,
        has_memory_limits: run.tools.has_groups,
        has_clocks: run.tools.faketime.is_some(),
        only: settings.only.clone(),
    }
}

/// One run, from the first process to the last check.
fn torture(
    settings: &Settings,
    topology: &'static Topology,
    (world, program): (World, PathBuf),
    directory: &Path,
) -> Outcome<Vec<Violation>> {
    let start = Instant::now();
    let run = prepare(settings, topology, (world, program), directory)?;
    let targets = targets(&run, settings);
    let length_ms = settings.load.as_millis() as u64;
    let kinds = plan::kinds(&targets);
    if kinds.is_empty() {
        return Err(format!("--only: no fault here is of {:?}", settings.only));
    }
    let plan = plan::plan(&mut Draw::new(settings.seed, 1), &targets, length_ms);
    eprintln!(
        "torture: topology {}, seed {}, {} faults in {:?}",
        topology.name,
        settings.seed,
        plan.len(),
        settings.load
    );
    let mut load_ended = 0;
    thread::scope(|scope| {
        for follower in 0..follow::FOLLOWERS {
            let (run, plan) = (&run, &plan);
            scope.spawn(move || follow::follow(run, follower, plan));
        }
        load(&run, &plan, start + settings.load);
        load_ended = run.history.now();
        ending::end(&run);
    });
    let events = run.history.events();
    let mut violations = checker::check(&events, &run.facts());
    let summary = Summary::new(&events);
    let too_little = summary.too_little(settings.load, &kinds);
    let unused = || unused(&run, settings, &summary);
    violations.extend(too_little.or_else(unused).map(|text| Violation {
        kind: "TOO LITTLE",
        text,
    }));
    let samples = run.samples.lock().unwrap_or_else(PoisonError::into_inner);
    violations.extend(samples::check(&samples));
    if let Some(page) = &settings.report {
        let results = report::Results {
            topology: topology.name,
            seed: settings.seed,
            names: run.processes.iter().map(Process::name).collect(),
            clients: run.facts().clients,
            events: &events,
            samples: &samples,
            summary: &summary,
            violations: &violations,
            load_ended,
        };
        report::append(page, &results)?;
    }
    drop(samples);
    eprintln!("{}", summary.text());
    let (seed, seconds) = (settings.seed, start.elapsed().as_secs_f64());
    eprintln!(
        "seed {seed}, {seconds:.0} s, {} violations",
        violations.len()
    );
    release_disks(&run, settings.keeps || !violations.is_empty())?;
    Ok(violations)
}

/// A source or an interface that a run did not use.
fn unused(run: &Run, settings: &Settings, summary: &Summary) -> Option<String> {
    let is_acknowledged = |client: &Producer| match client.kind {
        Kind::Named | Kind::Plain => true,
        Kind::Lines(_) => false,
        Kind::Protocol(source) => source.promise != Promise::Nothing,
    };
    let clients = run.clients.iter().enumerate();
    let clients = clients.filter(|(_, client)| is_acknowledged(client));
    let interfaces = run.interfaces.iter().filter(|i| i.can_be_complete);
    summary.unused(
        settings.load,
        clients.map(|(index, client)| (index, client.name.as_str())),
        interfaces.map(|interface| interface.name),
    )
}

/// Has clients send and others ask while faults are carried out, until the time is over.
fn load(run: &Run, plan: &[PlannedFault], until: Instant) {
    thread::scope(|scope| {
        for client in 0..run.clients.len() {
            scope.spawn(move || {
                if let Err(error) = load::produce(run, client) {
                    run.history.wrong("WRONG PUSH", error);
                }
            });
        }
        for number in 0..ASKING {
            scope.spawn(move || questions::ask_on(run, number));
        }
        scope.spawn(move || operator::operate(run));
        scope.spawn(move || samples::sample(run));
        inject::inject(run, plan, until);
        while Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
        run.is_over.store(true, Ordering::SeqCst);
    });
}

/// Gives up the disks of nodes; what is on them ends with this process unless it is kept.
fn release_disks(run: &Run, keeps: bool) -> Outcome<()> {
    for place in run.nodes() {
        let disk = run.processes[place].disk();
        if run.world == World::Loopback {
            continue;
        }
        if keeps {
            let kept = disk.with_extension("kept");
            output(Command::new("cp").arg("-a").arg(&disk).arg(kept))?;
        }
        output(Command::new("umount").arg("-l").arg(&disk))?;
    }
    Ok(())
}
