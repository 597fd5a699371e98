//! A proxy that ends TLS, beside its peers: the experiment of the article "Writing a high performance
//! TLS terminating proxy in Rust" again, with more sizes, new connections and idle ones.
//!
//! ```text
//!  client ──TLS──▶ proxy ──Unix socket──▶ echo
//!  core 1          core 0                 core 1
//! ```
//!
//! `client` sends from one thread; `echo` is the application, a process of its own, or `node` is. The
//! rounds of `measure` become `results`, which `page` and `plot` show.

mod message;
pub(crate) mod echo;
mod client;
mod packages;
mod process;
mod peers;
mod node;
mod syscalls;
mod results;
mod measure;
pub(super) mod listener;
mod page;
mod plot;
mod parts;

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use measure::Plan;
use peers::{Certificate, Kind, PeerProgram, Proxy, Setup};
use process::{Tree, pin_thread, raise_open_files};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize};

use super::Settings;
use super::pond::Scratch;
use super::table::{Report, load_average};
use crate::run::{Outcome, own_program};

/// The file of the picture, beside the page.
pub(super) const PICTURE: &str = "benchmarks-proxy.svg";

/// Rounds unless told.
const ROUNDS_DEFAULT: usize = 3;

/// Seconds of each measurement unless told.
const SECONDS_DEFAULT: f64 = 1.2;

/// What is not counted before each measurement.
const WARM_UP: Duration = Duration::from_millis(300);

/// Idle connections.
const IDLE: [usize; 2] = [1_000, 5_000];

/// What all agree on.
const CONDITIONS: &str = "All use TLS 1.3 with AES-256-GCM and X25519: the client accepts nothing else. \
    One worker each, on a core without the client and the application. Logpond writes the records of \
    connections to /dev/null, the others write none";

/// The benchmark itself is in it, with about two.
const LOADS: &str = "Load average, the benchmark's included,";

/// Connections that servers are set up for, where the limit of open files allows it.
const CONNECTIONS_MAX: usize = 6_000;

/// What all measurements need.
struct Bench {
    scratch: Scratch,
    plan: Plan,
    /// Logpond first; who is not there is left out.
    found: Vec<PeerProgram>,
    certificates: [Certificate; 2],
    connections_max: usize,
    server_core: Option<usize>,
}

/// Proxies that listen.
struct ProxySet {
    proxies: Vec<(Kind, Proxy)>,
    /// Why others do not.
    remarks: Vec<String>,
}

/// Measures everything, and gives the picture.
pub(super) fn measure(program: &Path, settings: &Settings, report: &mut Report) -> Outcome<String> {
    // A thread of its own: the others stay where they were.
    std::thread::scope(|scope| {
        let bench = scope.spawn(|| {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let core = |number: usize| (cores > 1).then_some(number);
            pin_thread(core(1));
            Bench::new(program, settings, core(0), report)?.run(report)
        });
        bench.join().map_err(|_| "the benchmark panicked")?
    })
}

impl Bench {
    fn new(
        program: &Path,
        settings: &Settings,
        server_core: Option<usize>,
        report: &mut Report,
    ) -> Outcome<Bench> {
        let scratch = Scratch::new("bench-proxy")?;
        let open_files = usize::try_from(raise_open_files()).unwrap_or(usize::MAX);
        let connections_max = CONNECTIONS_MAX.min(open_files / 2 - 100);
        let duration = settings.seconds.unwrap_or(SECONDS_DEFAULT);
        let plan = Plan {
            rounds: settings.rounds.unwrap_or(ROUNDS_DEFAULT),
            warm_up: WARM_UP,
            duration: Duration::from_secs_f64(duration),
            idle: IDLE.map(|count| count.min(connections_max - 100)),
            counts: scratch.path().join("calls"),
        };
        let mut found = Vec::new();
        for kind in Kind::ALL {
            if kind == Kind::Logpond && !program.is_file() {
                return Err(format!("there is no {}", program.display()));
            }
            let version = match kind.find(program) {
                Some(known) => {
                    let version = known.version.clone();
                    found.push(known);
                    version
                }
                None => "absent".into(),
            };
            report.fact(format!("{}: {version}", kind.name()));
        }
        let node = node::version().unwrap_or("absent".into());
        report.fact(format!("node: {node}"));
        report.fact(format!(
            "OpenSSL of the peers: {}",
            peers::openssl_version()
        ));
        report.fact(CONDITIONS.into());
        let p256 = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256);
        let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048);
        let certificates = [("P-256", p256), ("RSA-2048", rsa)].map(|(key_kind, key)| {
            let key = key.map_err(|e| format!("{key_kind}: {e}"))?;
            certificate(key_kind, &key, scratch.path())
        });
        let [p256, rsa] = certificates;
        Ok(Bench {
            plan,
            found,
            certificates: [p256?, rsa?],
            connections_max,
            server_core,
            scratch,
        })
    }

    /// All parts, the picture last.
    fn run(&self, report: &mut Report) -> Outcome<String> {
        let echo = self.scratch.path().join("echo.sock");
        let _echo = self.start_echo(&format!("unix:{}", echo.display()))?;
        let mut comparison = Vec::new();
        let grid = self.steady(&echo, report, &mut comparison)?;
        report.fact(format!("{LOADS} after the first part: {}", load_average()));
        self.node(report, &mut comparison)?;
        report.fact(format!("{LOADS} after the second: {}", load_average()));
        self.openings(&echo, report, &mut comparison)?;
        self.resting(&echo, report, &mut comparison)?;
        report.fact(format!("{LOADS} after the last: {}", load_average()));
        page::targets(report, comparison);
        report.note(
            "The others are hitch, haproxy and nginx. CPU is judged by the best of the rounds, as other load \
             on the machine only adds to it. Wall time is judged by medians, as only one of two may have had a \
             quiet moment."
                .into(),
        );
        let title = "CPU µs for a request, by bytes of body";
        Ok(plot::picture(&grid, Kind::Logpond.name(), title))
    }

    /// Ourselves as the application, at a place as `echo::serve` takes it.
    fn start_echo(&self, place: &str) -> Outcome<Tree> {
        let mut command = Command::new(own_program()?);
        command.args(["bench-echo", place]);
        // It inherits the client's core.
        Tree::start(
            &command,
            None,
            &self.scratch.path().join("echo"),
            || match place.split_once(':') {
                Some(("unix", path)) => UnixStream::connect(path).is_ok(),
                Some((_, address)) => std::net::TcpStream::connect(address).is_ok(),
                None => true,
            },
        )
    }

    /// Starts a proxy before a socket, with files in a directory of this name.
    fn start(
        &self,
        found: &PeerProgram,
        upstream: &Path,
        certificate: &Certificate,
        name: &str,
    ) -> Outcome<Proxy> {
        let directory = self.directory(&format!("{name}-{}", found.kind.name()));
        found.start(Setup {
            upstream,
            certificate,
            connections_max: self.connections_max,
            core: self.server_core,
            directory: &directory,
        })
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// All that can be started, and what is to be said of the others.
    fn start_all(&self, upstream: &Path, certificate: &Certificate, name: &str) -> ProxySet {
        let mut started = ProxySet {
            proxies: Vec::new(),
            remarks: Vec::new(),
        };
        for found in &self.found {
            match self.start(found, upstream, certificate, name) {
                Ok(proxy) => started.proxies.push((found.kind, proxy)),
                Err(error) => started
                    .remarks
                    .push(format!("{} is left out: {error}.", found.kind.name())),
            }
        }
        started
    }
}

/// A certificate for `localhost`, in files.
fn certificate(key_kind: &'static str, key: &KeyPair, directory: &Path) -> Outcome<Certificate> {
    let failed = |e: rcgen::Error| format!("{key_kind}: {e}");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).map_err(failed)?;
    let signed = params.self_signed(key).map_err(failed)?;
    let (chain, key) = (signed.pem(), key.serialize_pem());
    let write = |name: &str, text: &str| {
        let path = directory.join(format!("{key_kind}.{name}"));
        let written = fs::write(&path, text);
        written.map_err(|e| format!("{}: {e}", path.display()))?;
        Ok::<_, String>(path)
    };
    Ok(Certificate {
        key_kind,
        chain: write("pem", &chain)?,
        key: write("key", &key)?,
        both: write("both", &[key.as_str(), chain.as_str()].concat())?,
        der: signed.der().to_vec(),
    })
}
