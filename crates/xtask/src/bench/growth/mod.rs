//! Cost against size: each question asked for the first time after a start, and again.
//!
//! ```text
//! size ─▶ corpora ─▶ both servers ─▶ for each question: start, ask, ask again ─▶ table
//!                                                                 all sizes ─▶ picture
//! ```
//!
//! Both servers start anew for each question, so that no question finds what another one left in memory. Pages
//! of files stay in the system's cache, for both alike.

mod plot;
mod questions;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::Settings;
use super::corpus::Corpora;
use super::http::Client;
use super::ingest::{bytes_below, compact, load, settle};
use super::peers::VictoriaLogs;
use super::pond::{Scratch, TestServer, cpu_seconds, files_below, memory_bytes, wait_until};
use super::table::{Report, Target, figure, megabytes};
use crate::run::Outcome;
use plot::Panel;
use questions::Question;

/// Bytes of all corpora together, unless told.
pub(super) const SIZES_DEFAULT: [u64; 2] = [300_000_000, 3_000_000_000];

/// The picture beside the page.
pub(super) const PICTURE: &str = "benchmarks-growth.svg";

/// Looks without CPU used that show that a server has started.
const QUIET_LOOKS: u32 = 200;

/// Clients that ask at once in the last table.
const CLIENTS: [usize; 2] = [1, 64];

/// Either server, stopped and started at will.
struct Servers<'s> {
    program: &'s Path,
    peer: Option<&'s Path>,
    data: PathBuf,
    peer_data: PathBuf,
}

/// Wall milliseconds and CPU seconds.
#[derive(Clone, Copy)]
struct Cost {
    wall_ms: f64,
    cpu_s: f64,
}

impl Cost {
    /// Measures something that a server does.
    fn of(pid: u32, work: impl FnOnce() -> Outcome<()>) -> Outcome<Cost> {
        let (start, cpu) = (Instant::now(), cpu_seconds(pid)?);
        work()?;
        let wall_ms = start.elapsed().as_secs_f64() * 1e3;
        Ok(Cost {
            wall_ms,
            cpu_s: cpu_seconds(pid)? - cpu,
        })
    }

    fn cell(&self) -> String {
        format!("{:.2} ({})", self.cpu_s, figure(self.wall_ms))
    }
}

/// What a question cost first and again.
type Costs = [Cost; 2];

/// Measures all sizes; gives the picture.
pub(super) fn measure(program: &Path, settings: &Settings, report: &mut Report) -> Outcome<String> {
    report.fact(format!("Picture: ![CPU seconds by size]({PICTURE})"));
    let mut panels: Vec<Panel> = Vec::new();
    for bytes in &settings.sizes {
        let scratch = Scratch::new("bench-growth")?;
        let of_size = format!("{}M", bytes / 1_000_000);
        let directory = match &settings.corpus {
            Some(directory) => directory.join(&of_size),
            None => scratch.path().join("corpus"),
        };
        let corpora = Corpora::make_in(&directory, &(bytes / 3).to_string())?;
        let servers = Servers {
            program,
            peer: settings.victoria_logs.as_deref(),
            data: scratch.path().join("data"),
            peer_data: scratch.path().join("peer"),
        };
        servers.take_in(&corpora, report)?;
        let questions = questions::all(&corpora);
        servers.ask_all(&corpora, &questions, &mut panels, report)?;
        servers.ask_at_once(&questions[0], report)?;
    }
    Ok(plot::picture(
        &panels,
        "CPU seconds of the first answer (dashed: VictoriaLogs)",
    ))
}

/// Waits until a server that has started uses no CPU.
fn quiet(pid: u32) -> Outcome<()> {
    let (mut last, mut looks) = (cpu_seconds(pid)?, 0);
    wait_until("the server is quiet", || {
        let now = cpu_seconds(pid).unwrap_or(last);
        looks = if now > last { 0 } else { looks + 1 };
        last = now;
        looks >= QUIET_LOOKS
    })
}

fn ask(server: &TestServer, client: &mut Client, question: &Question) -> Outcome<Cost> {
    Cost::of(server.pid(), || {
        let answer = client.send("GET", &question.target, &[], b"");
        let answer = answer.map_err(|e| format!("{}: {e}", question.name))?;
        let status = answer.status;
        let text = answer.text().map_err(|e| e.to_string())?;
        match status {
            200 if !text.contains("\"complete\":false") => Ok(()),
            _ => Err(format!("{}: {status} {text}", question.name)),
        }
    })
}

impl Servers<'_> {
    fn start(&self) -> Outcome<TestServer> {
        let server = TestServer::start(self.program, &self.data, &[])?;
        quiet(server.pid())?;
        Ok(server)
    }

    fn start_peer(&self) -> Outcome<Option<VictoriaLogs>> {
        let start = |program: &Path| {
            let peer = VictoriaLogs::start(program, &self.peer_data)?;
            quiet(peer.pid())?;
            Ok::<_, String>(peer)
        };
        self.peer.map(start).transpose()
    }

    /// Has both servers take the corpora in, and merge them as they do by themselves.
    fn take_in(&self, corpora: &Corpora, report: &mut Report) -> Outcome<()> {
        let title = format!(
            "{:.1} GB, {:.1} M records: taking in",
            corpora.bytes() as f64 / 1e9,
            corpora.lines() as f64 / 1e6
        );
        let columns = [
            "server",
            "CPU-s settled",
            "disk settled",
            "segments",
            "peak memory",
        ];
        report.table(&title, &columns);
        let server = self.start()?;
        let settled = Cost::of(server.pid(), || {
            corpora
                .all()
                .into_iter()
                .try_for_each(|c| load(&server, c))?;
            settle(&self.data)?;
            quiet(server.pid())
        })?;
        let segments = self.data.join("segments");
        let before = (
            bytes_below(&segments, ".parquet"),
            files_below(&segments, ".parquet").len(),
        );
        report.row(vec![
            "Logpond".into(),
            format!("{:.1}", settled.cpu_s),
            megabytes(before.0 as f64),
            before.1.to_string(),
            megabytes(memory_bytes(server.pid(), "VmHWM")? as f64),
        ]);
        server.terminate()?;
        if let Some(peer) = self.start_peer()? {
            let settled = Cost::of(peer.pid(), || {
                peer.load_fields(&corpora.nginx)?;
                [&corpora.app, &corpora.mixed]
                    .into_iter()
                    .try_for_each(|corpus| peer.load(corpus))?;
                peer.settle()
            })?;
            report.row(vec![
                "VictoriaLogs".into(),
                format!("{:.1}", settled.cpu_s),
                megabytes(bytes_below(&self.peer_data, "") as f64),
                String::new(),
                megabytes(memory_bytes(peer.pid(), "VmHWM")? as f64),
            ]);
        }
        Ok(())
    }

    /// What a question costs Logpond just after its start, and then again.
    fn ask_own(&self, question: &Question) -> Outcome<Costs> {
        let server = self.start()?;
        let mut client = server.client()?;
        let first = ask(&server, &mut client, question)?;
        let again = ask(&server, &mut client, question)?;
        server.terminate()?;
        Ok([first, again])
    }

    /// The same of the peer.
    fn ask_peer(&self, question: &Question) -> Outcome<Option<Costs>> {
        let Some(peer) = self.start_peer()? else {
            return Ok(None);
        };
        let ask = || Cost::of(peer.pid(), || peer.query(&question.peer).map(drop));
        Ok(Some([ask()?, ask()?]))
    }

    /// Asks all questions of segments as hot merges leave them, and then of merged ones.
    fn ask_all(
        &self,
        corpora: &Corpora,
        questions: &[Question],
        panels: &mut Vec<Panel>,
        report: &mut Report,
    ) -> Outcome<()> {
        let size = corpora.bytes() as f64;
        let columns = [
            "question",
            "Logpond, first",
            "VictoriaLogs, first",
            "ratio",
            "aim",
            "Logpond, again",
            "VictoriaLogs, again",
            "Logpond, first, merged cold",
        ];
        let title = format!(
            "{:.1} GB, {:.1} M records: questions, CPU-s (wall ms)",
            size / 1e9,
            corpora.lines() as f64 / 1e6
        );
        let mut asked = Vec::new();
        for question in questions {
            asked.push((self.ask_own(question)?, self.ask_peer(question)?));
        }
        let server = self.start()?;
        let merged = Cost::of(server.pid(), || compact(&server))?;
        server.terminate()?;
        report.table(&title, &columns);
        for (question, ([first, again], peer)) in questions.iter().zip(asked) {
            let [cold, _] = self.ask_own(question)?;
            let ratio = peer.map(|[of_peer, _]| first.cpu_s / of_peer.cpu_s.max(0.01));
            let aim = Target::at_most(question.share_max, "");
            report.row(vec![
                question.name.into(),
                first.cell(),
                peer.map_or(String::new(), |[of_peer, _]| of_peer.cell()),
                ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
                ratio.map_or(String::new(), |ratio| {
                    format!("<= {}{}", question.share_max, aim.judged(ratio))
                }),
                again.cell(),
                peer.map_or(String::new(), |[_, of_peer]| of_peer.cell()),
                cold.cell(),
            ]);
            note_costs(panels, question, size, first, peer.map(|[first, _]| first));
        }
        report.note(format!(
            "Each server starts anew for each question. \"Again\" is the second answer, which Logpond gives from \
             memory where it can. The last column is after a cold merge of all, which took {:.1} CPU-s. A tick of \
             the system's clock is 0.01 s.",
            merged.cpu_s
        ));
        Ok(())
    }

    /// Asks one question by many clients.
    fn ask_at_once(&self, question: &Question, report: &mut Report) -> Outcome<()> {
        report.table(
            &format!("Clients at once: {}", question.name),
            &[
                "clients",
                "Logpond, CPU-s (wall ms)",
                "VictoriaLogs, CPU-s (wall ms)",
            ],
        );
        for clients in CLIENTS {
            let server = self.start()?;
            let own = Cost::of(server.pid(), || {
                at_once(clients, || {
                    ask(&server, &mut server.client()?, question).map(drop)
                })
            })?;
            server.terminate()?;
            // It refuses what waits for longer than ten seconds.
            let refused = AtomicUsize::new(0);
            let ask_peer = |peer: &VictoriaLogs| {
                let is_refused = peer.query(&question.peer).is_err();
                refused.fetch_add(usize::from(is_refused), Ordering::Relaxed);
                Ok(())
            };
            let of_peer =
                |peer: VictoriaLogs| Cost::of(peer.pid(), || at_once(clients, || ask_peer(&peer)));
            let peer = self.start_peer()?.map(of_peer).transpose()?;
            let refused = match refused.into_inner() {
                0 => String::new(),
                count => format!(", {count} refused"),
            };
            report.row(vec![
                clients.to_string(),
                own.cell(),
                peer.map_or(String::new(), |cost| cost.cell()) + &refused,
            ]);
        }
        Ok(())
    }
}

/// Does something in so many threads.
fn at_once(clients: usize, work: impl Fn() -> Outcome<()> + Sync) -> Outcome<()> {
    thread::scope(|scope| {
        let all: Vec<_> = (0..clients).map(|_| scope.spawn(&work)).collect();
        all.into_iter()
            .try_for_each(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
    })
}

fn note_costs(
    panels: &mut Vec<Panel>,
    question: &Question,
    size: f64,
    own: Cost,
    peer: Option<Cost>,
) {
    let known = panels.iter().position(|p| p.title == question.name);
    let at = known.unwrap_or_else(|| {
        panels.push(Panel {
            title: question.name.into(),
            own: Vec::new(),
            peer: Vec::new(),
        });
        panels.len() - 1
    });
    panels[at].own.push((size, own.cpu_s));
    panels[at].peer.extend(peer.map(|cost| (size, cost.cpu_s)));
}
