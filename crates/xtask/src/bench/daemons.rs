//! The syslog daemons beside which Logpond takes in: rsyslog and syslog-ng, as Debian packs them,
//! writing to a file.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::pond::wait_until;
use crate::e2e::unpacked::unpacked;
use crate::run::{Outcome, output};

/// Receive buffer of the daemons for datagrams in bytes, as their manuals advise for bursts; about
/// what Logpond asks for by itself.
const RECEIVE_BYTES: usize = 16 << 20;

/// A daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rsyslog,
    SyslogNg,
    /// syslog-ng that syncs each message to the disk before it takes the next one, as the first
    /// syslog daemons did.
    Syncing,
}

/// Where messages come in.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// RFC 5424 in lines.
    Tcp(SocketAddr),
    /// RFC 5424 in datagrams.
    Udp(SocketAddr),
    /// Local syslog at a socket like `/dev/log`.
    Socket(PathBuf),
}

/// A running daemon. Dropping it kills the process.
pub(super) struct Daemon {
    child: Child,
    file: PathBuf,
    read_bytes: u64,
    lines: u64,
}

impl Kind {
    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Rsyslog => "rsyslog",
            Kind::SyslogNg => "syslog-ng",
            Kind::Syncing => "syslog-ng, fsync for each message",
        }
    }

    fn command(self) -> Option<Command> {
        match self {
            Kind::Rsyslog => unpacked("rsyslog", "rsyslogd"),
            Kind::SyslogNg | Kind::Syncing => unpacked("syslog-ng", "syslog-ng"),
        }
    }
}

fn rsyslog(input: &Input, file: &Path) -> String {
    let input = match input {
        Input::Tcp(address) => format!(
            "module(load=\"imtcp\")\ninput(type=\"imtcp\" address=\"{}\" port=\"{}\")",
            address.ip(),
            address.port()
        ),
        Input::Udp(address) => format!(
            "module(load=\"imudp\")\n\
             input(type=\"imudp\" address=\"{}\" port=\"{}\" rcvbufSize=\"{RECEIVE_BYTES}\")",
            address.ip(),
            address.port()
        ),
        Input::Socket(path) => format!(
            "module(load=\"imuxsock\" SysSock.Use=\"off\")\n\
             input(type=\"imuxsock\" Socket=\"{}\")",
            path.display()
        ),
    };
    let file = file.display();
    format!("{input}\naction(type=\"omfile\" file=\"{file}\")\n")
}

fn syslog_ng(kind: Kind, version: &str, input: &Input, file: &Path) -> String {
    let (source, flags) = match input {
        Input::Tcp(address) => (
            format!(
                "network(ip({}) port({}) flags(syslog-protocol) log-iw-size(10000))",
                address.ip(),
                address.port()
            ),
            "flow-control",
        ),
        Input::Udp(address) => (
            format!(
                "network(ip({}) port({}) transport(udp) flags(syslog-protocol) \
                 so-rcvbuf({RECEIVE_BYTES}) log-iw-size(10000))",
                address.ip(),
                address.port()
            ),
            "",
        ),
        Input::Socket(path) => (
            format!("unix-dgram(\"{}\" log-iw-size(10000))", path.display()),
            "flow-control",
        ),
    };
    let sync = match kind {
        Kind::Syncing => "fsync(yes) flush-lines(1)",
        _ => "",
    };
    let flags = match flags {
        "" => String::new(),
        flags => format!(" flags({flags});"),
    };
    format!(
        "@version: {version}\noptions {{ keep-hostname(yes); log-fifo-size(100000); }};\n\
         source s {{ {source}; }};\ndestination d {{ file(\"{}\" {sync}); }};\n\
         log {{ source(s); destination(d);{flags} }};\n",
        file.display()
    )
}

impl Daemon {
    /// Starts it with files in this directory; none where it is not installed.
    pub(super) fn start(kind: Kind, input: &Input, directory: &Path) -> Outcome<Option<Daemon>> {
        let Some(mut command) = kind.command() else {
            return Ok(None);
        };
        fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        let (file, path) = (directory.join("messages"), directory.join("conf"));
        let configuration = match kind {
            Kind::Rsyslog => rsyslog(input, &file),
            Kind::SyslogNg | Kind::Syncing => {
                let said = output(command.arg("--version"))?;
                let version = said
                    .lines()
                    .find_map(|line| line.strip_prefix("Config version: "))
                    .ok_or("syslog-ng does not say the version of its configuration")?;
                syslog_ng(kind, version, input, &file)
            }
        };
        fs::write(&path, configuration).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut command = kind.command().ok_or("the daemon has gone")?;
        match kind {
            Kind::Rsyslog => {
                command.arg("-n").arg("-i").arg(directory.join("pid"));
            }
            Kind::SyslogNg | Kind::Syncing => {
                command.args(["-F", "--no-caps"]);
                for (flag, name) in [("-R", "persist"), ("-p", "pid"), ("-c", "control")] {
                    command.arg(flag).arg(directory.join(name));
                }
            }
        }
        let child = command
            .arg("-f")
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{command:?}: {e}"))?;
        let daemon = Daemon {
            child,
            file,
            read_bytes: 0,
            lines: 0,
        };
        wait_until("the daemon listens", || listens(input))?;
        Ok(Some(daemon))
    }

    /// The process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How many messages are in its file.
    pub(super) fn lines(&mut self) -> Outcome<u64> {
        let fails = |e: std::io::Error| format!("{}: {e}", self.file.display());
        // There is none before the first message.
        let Ok(mut file) = fs::File::open(&self.file) else {
            return Ok(0);
        };
        file.seek(SeekFrom::Start(self.read_bytes)).map_err(fails)?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer).map_err(fails)? {
                0 => return Ok(self.lines),
                count => {
                    self.read_bytes += count as u64;
                    let ends = buffer[..count].iter().filter(|byte| **byte == b'\n');
                    self.lines += ends.count() as u64;
                }
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether somebody receives there.
fn listens(input: &Input) -> bool {
    match input {
        Input::Tcp(address) => TcpStream::connect(address).is_ok(),
        // Sockets that are bound are listed with their ports.
        Input::Udp(address) => {
            let port = format!(":{:04X} ", address.port());
            let sockets = fs::read_to_string("/proc/net/udp").unwrap_or_default();
            sockets.lines().any(|line| line.contains(&port))
        }
        Input::Socket(path) => path.exists(),
    }
}
