//! The parts of the benchmark: who is started for each, and which tables come of it.

use std::path::Path;

use super::measure::{CONNECTIONS, CONNECTIONS_COUNTED, Candidate, OPENED_AT_A_TIME, Plan};
use super::message::Exchange;
use super::node::{self, Node, ServeMode};
use super::page::{self, NODE_BEHIND, NODE_HTTPS, TargetComparison};
use super::peers::{Certificate, Kind, Proxy};
use super::results::Grid;
use super::{Bench, PICTURE, syscalls};
use crate::bench::table::{Report, figure};
use crate::run::{Outcome, free_address};

/// The sizes of the article, and one more.
const ECHOES: [Exchange; 5] = [
    Exchange::Echo(10),
    Exchange::Echo(100),
    Exchange::Echo(1_000),
    Exchange::Echo(10_000),
    Exchange::Echo(100_000),
];

/// What most applications are asked for.
const DOWNLOAD: Exchange = Exchange::Download(100_000);

/// For which system calls are counted.
const COUNTED: [Exchange; 2] = [Exchange::Echo(100), Exchange::Echo(100_000)];

impl Bench {
    /// Connections that are kept, with a fast application.
    pub(super) fn steady(
        &self,
        echo: &Path,
        report: &mut Report,
        comparison: &mut Vec<TargetComparison>,
    ) -> Outcome<Grid> {
        let [certificate, _] = &self.certificates;
        let address = free_address()?;
        let direct = self.start_echo(&format!("tcp:{address}"))?;
        let started = self.start_all(echo, certificate, "steady");
        let mut candidates = vec![Candidate {
            name: "without TLS".into(),
            address: address.parse().map_err(|e| format!("{address}: {e}"))?,
            trusted: None,
            trees: vec![&direct],
        }];
        candidates.extend(of_all(&started.proxies, certificate));
        let exchanges: Vec<Exchange> = ECHOES.into_iter().chain([DOWNLOAD]).collect();
        eprintln!("== Kept connections");
        let grid = self.plan.grid(&candidates, &exchanges);
        let rounds = self.plan.rounds;
        page::sizes(report, "CPU µs for a request", &grid, |series, _| {
            series.least(|sample| sample.cpu_us)
        });
        report.note(format!("![CPU for a request]({PICTURE})"));
        report.note(format!(
            "The best of {rounds} rounds of {} s each, in which all take turns, with the median in \
             parentheses. {CONNECTIONS} connections send the next request as soon as they have their answer. \
             Bodies go both ways, except in the last column. \"Without TLS\" is the application itself over \
             TCP: the price of one pair of sockets.",
            self.plan.duration.as_secs_f64()
        ));
        for remark in started.remarks {
            report.note(remark);
        }
        page::sizes(
            report,
            "CPU seconds for a gigabyte of bodies",
            &grid,
            |series, exchange| series.least(|sample| page::cpu_s_per_gigabyte(sample, exchange)),
        );
        page::sizes(report, "Requests a second", &grid, |series, _| {
            series.most(|sample| sample.per_second)
        });
        report.note(
            "The highest, and the median. The client and the application share a core, and most requests wait \
             for them."
                .into(),
        );
        page::sizes(report, "Median latency, ms", &grid, |series, _| {
            series.least(|sample| sample.p50_ms)
        });
        page::sizes(
            report,
            "99th percentile of latency, ms",
            &grid,
            |series, _| series.least(|sample| sample.p99_ms),
        );
        self.calls(&candidates[1..], report);
        comparison.extend(page::judge_sizes(&grid));
        Ok(grid)
    }

    fn calls(&self, candidates: &[Candidate], report: &mut Report) {
        let columns: Vec<String> = COUNTED.iter().map(Exchange::to_string).collect();
        let title = "System calls for a request";
        report.table(
            title,
            &["", &columns[0], &columns[1], "new connection, P-256"],
        );
        if !syscalls::Count::is_possible() {
            report.note("There is no strace here.".into());
            return;
        }
        for candidate in candidates {
            let mut cells = vec![candidate.name.clone()];
            cells.extend(COUNTED.into_iter().map(|exchange| {
                let calls = self.plan.count_calls(candidate, exchange);
                calls.map_or_else(|error| error, figure)
            }));
            let opening = self.plan.count_calls_of_opening(candidate);
            cells.push(opening.map_or_else(|error| error, figure));
            report.row(cells);
        }
        report.note(format!(
            "Counted by strace in separate runs with {CONNECTIONS_COUNTED} connections, and {OPENED_AT_A_TIME} \
             new ones at a time."
        ));
    }

    /// The article's own experiment: node.js by itself, and behind the proxy.
    pub(super) fn node(
        &self,
        report: &mut Report,
        comparison: &mut Vec<TargetComparison>,
    ) -> Outcome<()> {
        let own = self.found.iter().find(|found| found.kind == Kind::Logpond);
        let (Some(_), Some(own)) = (node::version(), own) else {
            report.table("Node.js with and without the proxy", &[]);
            report.note("There is no node here.".into());
            return Ok(());
        };
        let [certificate, _] = &self.certificates;
        let socket = self.directory("node.sock");
        let start = |served, name| Node::start(served, self.server_core, &self.directory(name));
        let http = start(ServeMode::Http, "node-http")?;
        let https = start(ServeMode::Https(certificate), "node-https")?;
        let behind = start(ServeMode::Unix(&socket), "node-unix")?;
        let proxy = self.start(own, &socket, certificate, "node")?;
        let mut candidates = Vec::new();
        for (name, node, trusted) in [
            ("node, HTTP", &http, None),
            (NODE_HTTPS, &https, Some(certificate.der.as_slice())),
        ] {
            candidates.push(Candidate {
                name: name.into(),
                address: node.address.ok_or("node has no address")?,
                trusted,
                trees: vec![&node.tree],
            });
        }
        candidates.push(Candidate {
            name: NODE_BEHIND.into(),
            address: proxy.address,
            trusted: Some(&certificate.der),
            trees: vec![&behind.tree, &proxy.tree],
        });
        eprintln!("== node");
        let plan = Plan {
            rounds: 2 * self.plan.rounds,
            ..self.plan.clone()
        };
        let grid = plan.grid(&candidates, &ECHOES);
        page::sizes(
            report,
            "Node.js with and without the proxy: requests a second",
            &grid,
            |series, _| series.most(|sample| sample.per_second),
        );
        report.note(format!(
            "One node process streams bodies back, on the core of the proxy; the client has the other core. \
             The highest of {} rounds, and the median. The rounds are twice as many as above, as these are \
             figures of wall time.",
            plan.rounds
        ));
        page::sizes(
            report,
            "Node.js with and without the proxy: CPU µs for a request, of both processes",
            &grid,
            |series, _| series.least(|sample| sample.cpu_us),
        );
        page::sizes(
            report,
            "Node.js with and without the proxy: median latency, ms",
            &grid,
            |series, _| series.least(|sample| sample.p50_ms),
        );
        comparison.extend(page::judge_node(&grid));
        Ok(())
    }

    /// New connections with each kind of key, and resumed ones.
    pub(super) fn openings(
        &self,
        echo: &Path,
        report: &mut Report,
        comparison: &mut Vec<TargetComparison>,
    ) -> Outcome<()> {
        eprintln!("== New connections");
        let mut all = Vec::new();
        for certificate in &self.certificates {
            let name = format!("open-{}", certificate.key_kind);
            let started = self.start_all(echo, certificate, &name);
            let candidates: Vec<Candidate> = of_all(&started.proxies, certificate).collect();
            all.push(self.plan.openings(certificate.key_kind, &candidates, false));
            if certificate.key_kind == self.certificates[0].key_kind {
                all.push(self.plan.openings("resumed", &candidates, true));
            }
        }
        page::openings(report, &all);
        report.note(format!(
            "A new connection is TCP and TLS, a connection to the application, a request of 10 B, and the end, \
             {OPENED_AT_A_TIME} at a time. The best of the rounds, and the median. Resumed: TLS 1.3 sessions \
             by tickets with X25519, after a P-256 handshake."
        ));
        comparison.extend(page::judge_openings(&all));
        Ok(())
    }

    /// Memory, of processes that have served nobody yet.
    pub(super) fn resting(
        &self,
        echo: &Path,
        report: &mut Report,
        comparison: &mut Vec<TargetComparison>,
    ) -> Outcome<()> {
        eprintln!("== Idle connections");
        let [certificate, _] = &self.certificates;
        let mut all = Vec::new();
        let mut failed = Vec::new();
        for found in &self.found {
            let resting = self
                .start(found, echo, certificate, "idle")
                .and_then(|proxy| {
                    self.plan
                        .resting(&of_proxy(found.kind, &proxy, certificate))
                });
            let name = found.kind.name();
            if let Err(error) = &resting {
                failed.push(format!("{name}: {error}."));
            }
            let resting = resting.ok();
            if found.kind == Kind::Logpond {
                comparison.extend(page::judge_resting(self.plan.idle, resting));
            }
            all.push((name.to_owned(), resting));
        }
        page::resting(report, self.plan.idle, &all);
        failed.into_iter().for_each(|error| report.note(error));
        report.note(
            "PSS of all processes of a program, for connections that have sent one request of 10 B. kB is \
             1,000 bytes. Kernel memory for sockets is not included."
                .into(),
        );
        Ok(())
    }
}

fn of_all<'p>(
    proxies: &'p [(Kind, Proxy)],
    certificate: &'p Certificate,
) -> impl Iterator<Item = Candidate<'p>> {
    let proxies = proxies.iter();
    proxies.map(|(kind, proxy)| of_proxy(*kind, proxy, certificate))
}

fn of_proxy<'p>(kind: Kind, proxy: &'p Proxy, certificate: &'p Certificate) -> Candidate<'p> {
    Candidate {
        name: kind.name().into(),
        address: proxy.address,
        trusted: Some(&certificate.der),
        trees: vec![&proxy.tree],
    }
}
