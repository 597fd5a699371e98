//! Who ends TLS: Logpond and its peers, each with one worker, set up alike.
//!
//! All are told the same version, cipher and key exchange; what they have beyond that is as they come.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;

use super::packages::PackagedProgram;
use super::process::Tree;
use crate::run::{Outcome, free_address};

/// A program that ends TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Logpond,
    Hitch,
    Haproxy,
    Nginx,
    Stunnel,
}

/// Files of a certificate, and itself.
pub(super) struct Certificate {
    /// What kind of key it has.
    pub(super) key_kind: &'static str,
    pub(super) chain: PathBuf,
    pub(super) key: PathBuf,
    /// Both in one file, as some want it.
    pub(super) both: PathBuf,
    /// What clients trust.
    pub(super) der: Vec<u8>,
}

/// How a program is to be set up.
#[derive(Clone, Copy)]
pub(super) struct Setup<'s> {
    /// The socket of the application.
    pub(super) upstream: &'s Path,
    pub(super) certificate: &'s Certificate,
    /// Connections that it must be able to have.
    pub(super) connections_max: usize,
    /// The core that it runs on; none for all.
    pub(super) core: Option<usize>,
    /// Of its own.
    pub(super) directory: &'s Path,
}

/// A program that was found.
pub(super) struct PeerProgram {
    pub(super) kind: Kind,
    pub(super) version: String,
    /// The program of Logpond.
    program: PathBuf,
}

/// A proxy that listens.
pub(super) struct Proxy {
    pub(super) tree: Tree,
    pub(super) address: SocketAddr,
}

impl Kind {
    /// In the order of tables.
    pub(super) const ALL: [Kind; 5] = [
        Kind::Logpond,
        Kind::Hitch,
        Kind::Haproxy,
        Kind::Nginx,
        Kind::Stunnel,
    ];

    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Logpond => "Logpond",
            Kind::Hitch => "hitch",
            Kind::Haproxy => "haproxy",
            Kind::Nginx => "nginx",
            Kind::Stunnel => "stunnel",
        }
    }

    /// Whether targets are judged by it.
    pub(super) fn is_measure(self) -> bool {
        matches!(self, Kind::Hitch | Kind::Haproxy | Kind::Nginx)
    }

    fn packed(self) -> Option<PackagedProgram> {
        let (packages, program, module): (&'static [&'static str], _, _) = match self {
            Kind::Logpond => return None,
            Kind::Hitch => (&["hitch"], "hitch", None),
            Kind::Haproxy => (&["haproxy"], "haproxy", None),
            Kind::Nginx => (
                &["nginx", "libnginx-mod-stream"],
                "nginx",
                Some("usr/lib/nginx/modules/ngx_stream_module.so"),
            ),
            Kind::Stunnel => (&["stunnel4"], "stunnel4", None),
        };
        Some(PackagedProgram {
            packages,
            program,
            module,
        })
    }

    /// The program and its module; of Logpond the one that is given.
    fn command(self, program: &Path) -> Option<(Command, Option<PathBuf>)> {
        match self.packed() {
            Some(packed) => packed.find(),
            None => Some((Command::new(program), None)),
        }
    }

    /// The version that it says it has; none where it does not run.
    pub(super) fn find(self, program: &Path) -> Option<PeerProgram> {
        let (mut command, _) = self.command(program)?;
        command.arg(match self {
            Kind::Logpond | Kind::Hitch => "--version",
            Kind::Haproxy | Kind::Nginx => "-v",
            Kind::Stunnel => "-version",
        });
        let said = command.output().ok()?;
        // Programs disagree about where it goes.
        let text = [said.stdout, said.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        said.status.success().then(|| PeerProgram {
            kind: self,
            version: version(&text),
            program: program.to_owned(),
        })
    }
}

/// The version of the library that haproxy has, which the others share.
pub(super) fn openssl_version() -> String {
    let said = Kind::Haproxy
        .packed()
        .and_then(|packed| packed.find())
        .and_then(|(mut command, _)| command.arg("-vv").output().ok());
    let text = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    let mut lines = text.iter().flat_map(|text| text.lines());
    let line = lines.find_map(|line| line.strip_prefix("Running on OpenSSL version"));
    version(line.unwrap_or_default())
}

/// The first word that looks like a version.
fn version(said: &str) -> String {
    let words = said.split(|c: char| c.is_whitespace() || c == '/');
    let numbers =
        words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
    numbers.into_iter().next().map_or("unknown".into(), |word| {
        let end = word.find(|c: char| !c.is_ascii_digit() && c != '.');
        word[..end.unwrap_or(word.len())].to_owned()
    })
}

impl PeerProgram {
    /// Starts it on a free port.
    pub(super) fn start(&self, setup: Setup) -> Outcome<Proxy> {
        let kind = self.kind;
        let directory = setup.directory;
        fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        let address = free_address()?
            .parse()
            .map_err(|e| format!("no address: {e}"))?;
        let (mut command, module) = kind.command(&self.program).ok_or("the program has gone")?;
        let path = directory.join("conf");
        let text = setup.configuration(kind, address, module.as_deref());
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        setup.arguments(kind, address, &path, &mut command);
        let tree = Tree::start(&command, setup.core, &directory.join("said"), || {
            TcpStream::connect(address).is_ok()
        })?;
        Ok(Proxy { tree, address })
    }
}

impl Setup<'_> {
    fn arguments(
        &self,
        kind: Kind,
        listen: SocketAddr,
        configuration: &Path,
        command: &mut Command,
    ) {
        match kind {
            Kind::Logpond => {
                let many = self.connections_max.to_string();
                command
                    .args(["proxy", "--workers", "1"])
                    .args(["--listen", &listen.to_string()])
                    .args([Path::new("--cert"), &self.certificate.chain])
                    .args([Path::new("--key"), &self.certificate.key])
                    .args(["--to", &format!("unix:{}", self.upstream.display())])
                    .args(["--connections-max", &many])
                    .args(["--connections-per-address-max", &many])
                    .args(["--handshakes-per-address-per-second-max", "1000000"])
            }
            Kind::Hitch => command.arg("--config").arg(configuration),
            Kind::Haproxy => command.args(["-db", "-f"]).arg(configuration),
            Kind::Nginx => command
                .args(["-e", "stderr", "-p"])
                .arg(self.directory)
                .arg("-c")
                .arg(configuration),
            Kind::Stunnel => command.arg(configuration),
        };
    }

    fn configuration(&self, kind: Kind, listen: SocketAddr, module: Option<&Path>) -> String {
        match kind {
            Kind::Logpond => String::new(),
            Kind::Hitch => self.hitch(listen),
            Kind::Haproxy => self.haproxy(listen),
            Kind::Nginx => self.nginx(listen, module.unwrap_or(Path::new(""))),
            Kind::Stunnel => self.stunnel(listen),
        }
    }

    fn hitch(&self, listen: SocketAddr) -> String {
        // It does not serve as root.
        let user = if geteuid().is_root() {
            "user = \"nobody\"\n"
        } else {
            ""
        };
        format!(
            "{user}frontend = \"[{}]:{}\"\nbackend = \"{}\"\npem-file = \"{}\"\nworkers = 1\n\
             tls-protos = TLSv1.3\nciphersuites = \"TLS_AES_256_GCM_SHA384\"\n\
             ecdh-curve = \"X25519\"\nbacklog = 4096\ndaemon = off\nocsp-dir = \"\"\n",
            listen.ip(),
            listen.port(),
            self.upstream.display(),
            self.certificate.both.display(),
        )
    }

    fn haproxy(&self, listen: SocketAddr) -> String {
        let many = self.connections_max;
        format!(
            "global\n nbthread 1\n maxconn {many}\n\
             defaults\n mode tcp\n timeout connect 5s\n timeout client 1h\n timeout server 1h\n\
             listen echo\n bind {} ssl crt {} ssl-min-ver TLSv1.3 ciphersuites \
             TLS_AES_256_GCM_SHA384 curves X25519 backlog 4096\n maxconn {many}\n \
             server echo unix@{}\n",
            listen,
            self.certificate.both.display(),
            self.upstream.display(),
        )
    }

    fn nginx(&self, listen: SocketAddr, module: &Path) -> String {
        format!(
            "load_module {};\ndaemon off;\nworker_processes 1;\npid {}/pid;\nerror_log stderr crit;\n\
             events {{ worker_connections {}; }}\nstream {{\n server {{\n  listen {} ssl backlog=4096;\n  \
             ssl_certificate {};\n  ssl_certificate_key {};\n  ssl_protocols TLSv1.3;\n  \
             ssl_conf_command Ciphersuites TLS_AES_256_GCM_SHA384;\n  ssl_ecdh_curve X25519;\n  \
             proxy_pass unix:{};\n }}\n}}\n",
            module.display(),
            self.directory.display(),
            // Those to the application count as well.
            2 * self.connections_max + 100,
            listen,
            self.certificate.chain.display(),
            self.certificate.key.display(),
            self.upstream.display(),
        )
    }

    fn stunnel(&self, listen: SocketAddr) -> String {
        format!(
            "foreground = yes\npid =\nsyslog = no\ndebug = 3\nsocket = l:TCP_NODELAY=1\n\
             [echo]\naccept = {}\nconnect = {}\ncert = {}\nkey = {}\nsslVersion = TLSv1.3\n\
             ciphersuites = TLS_AES_256_GCM_SHA384\ncurves = X25519\n",
            listen,
            self.upstream.display(),
            self.certificate.chain.display(),
            self.certificate.key.display(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let said = [
            ("HAProxy version 2.6.12-1+deb12u4 2025/10/03", "2.6.12"),
            ("nginx version: nginx/1.22.1\n", "1.22.1"),
            ("hitch 1.7.2\n", "1.7.2"),
            ("stunnel 5.68 on x86_64-pc-linux-gnu platform", "5.68"),
            ("logpond 0.1.0 (abc)", "0.1.0"),
            ("nothing", "unknown"),
        ];
        for (said, expected) in said {
            assert_eq!(version(said), expected);
        }
    }

    #[test]
    fn all_are_told_the_same_of_tls() {
        let certificate = Certificate {
            key_kind: "P-256",
            chain: "/c/chain".into(),
            key: "/c/key".into(),
            both: "/c/both".into(),
            der: Vec::new(),
        };
        let setup = Setup {
            upstream: Path::new("/run/echo.sock"),
            certificate: &certificate,
            connections_max: 1_000,
            core: None,
            directory: Path::new("/d"),
        };
        let listen = "127.0.0.1:4433".parse().unwrap();
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Logpond) {
            let text = setup.configuration(kind, listen, Some(Path::new("/m/stream.so")));
            for part in [
                "TLSv1.3",
                "TLS_AES_256_GCM_SHA384",
                "X25519",
                "/run/echo.sock",
                "4433",
            ] {
                assert!(text.contains(part), "{kind:?}: {part}");
            }
        }
    }
}
