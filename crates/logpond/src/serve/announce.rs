//! Says where the server listens: to people on standard error, to programs in the ready file.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use logpond_cluster::Roles;
use logpond_record::cast;
use logpond_search::size::Size;
use serde_json::{Value, json};

use super::{ServeError, Server};
use logpond_host::terminal::guard::clean;
use logpond_render::quantity;
use logpond_settings::{
    IntakeAddresses, Listener, Protection, Protocol, Settings, Transport, listeners,
};

/// Where a server listens; what is off has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Page, API and metrics.
    pub http: SocketAddr,
    /// Listeners for records.
    pub intakes: IntakeAddresses,
    /// Other nodes.
    pub gossip: Option<SocketAddr>,
    /// Clients of Postgres.
    pub postgres: Option<SocketAddr>,
}

impl Addresses {
    /// The object of the ready file.
    pub fn to_json(&self) -> Value {
        let all = listeners().map(|listener| {
            let name = listener.name.replace('-', "_");
            let address = self.of(listener).map(|address| address.to_string());
            (name, address.into())
        });
        Value::Object(all.collect())
    }

    /// The address of a listener.
    fn of(&self, listener: &Listener) -> Option<SocketAddr> {
        match listener.protocol {
            Protocol::Nodes => self.gossip,
            Protocol::Postgres => self.postgres,
            Protocol::Http if !listener.is_of_records => Some(self.http),
            Protocol::Http
            | Protocol::Grpc
            | Protocol::Stream(_)
            | Protocol::Datagrams(_)
            | Protocol::Relp
            | Protocol::Bulk
            | Protocol::Forward => self.intakes.of(listener.intake),
        }
    }

    /// Writes the ready file in one step: a reader that sees it sees all of it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_ready_file(&self, path: &Path) -> Result<(), ServeError> {
        let write = || -> io::Result<()> {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{}.tmp", std::process::id()));
            let temporary = path.with_file_name(name);
            let mut file = File::create(&temporary)?;
            writeln!(file, "{}", self.to_json())?;
            fs::rename(&temporary, path)
        };
        write().map_err(|source| ServeError::ReadyFile {
            path: path.to_owned(),
            source,
        })
    }
}

/// Prints the start block, or one line of JSON where nobody reads along.
pub(super) fn print(settings: &Settings, server: &Server, took: Duration) {
    let mut text = if io::stderr().is_terminal() {
        block(settings, server, took)
    } else {
        line(settings, server, took)
    };
    let recovered = server.recovered();
    let found = (recovered.damages.iter().map(ToString::to_string)).chain(
        recovered
            .unusable
            .iter()
            .map(|u| format!("{}: {}", u.path, u.reason)),
    );
    let off = server.listening.off();
    let off = off.iter().map(|off| {
        format!(
            "{0} at {1} is off: {2}; it is tried again, and --{0} ADDR or --{0} off settles it",
            off.name, off.address, off.reason
        )
    });
    for warning in found.chain(off) {
        text.push_str(&format!("warning: {warning}\n"));
    }
    // Without standard error there is nobody to tell.
    let _ = io::stderr().write_all(clean(&text).as_bytes());
}

fn line(settings: &Settings, server: &Server, took: Duration) -> String {
    let off = server.listening.off();
    let off: Vec<&str> = off.iter().map(|off| off.name).collect();
    let line = json!({
        "message": "ready",
        "version": env!("CARGO_PKG_VERSION"),
        "data": settings.data.display().to_string(),
        "addresses": server.addresses.to_json(),
        "role": settings.roles.as_str(),
        "encrypted": settings.tls.is_some(),
        "tokens": server.access.is_token_required(),
        "off": off,
        "start_ms": cast::low_u64(took.as_millis()),
    });
    format!("{line}\n")
}

fn block(settings: &Settings, server: &Server, took: Duration) -> String {
    let new = if server.is_new { " (new)" } else { "" };
    let age = settings.retain_age.map_or("all".to_owned(), quantity::span);
    let mut text = format!(
        "logpond {}   data {}{new}   keep {age}, {} free\n",
        env!("CARGO_PKG_VERSION"),
        settings.data.display(),
        match settings.keep_free {
            Size::Bytes(bytes) => quantity::bytes(bytes),
            Size::Percent(percent) => format!("{percent} % of the disk"),
        },
    );
    let mut say = |what: &str, value: String| text.push_str(&format!("  {what:<8}  {value}\n"));
    if settings.roles != Roles::ALL {
        say("Role", settings.roles.to_string());
    }
    for (what, value) in listening(settings, server.addresses) {
        say(what, value);
    }
    for off in server.listening.off() {
        say(
            "Off",
            format!("{} at {} ({})", off.name, off.address, off.reason),
        );
    }
    if server.access.is_token_required() {
        let tokens = settings.tokens.display();
        say(
            "Tokens",
            format!("required over HTTP; they are in {tokens}"),
        );
    }
    text.push_str(reach(settings, server.addresses));
    text.push_str(if settings.roles.ingests {
        "Try:  tail -F /var/log/syslog | logpond forward -      then      logpond query error\n"
    } else {
        "Try:  logpond query error\n"
    });
    text.push_str(&format!("ready in {} ms\n", took.as_millis()));
    text
}

/// A heading and addresses, for each group of listeners that is on.
fn listening(settings: &Settings, addresses: Addresses) -> Vec<(&'static str, String)> {
    let http = addresses.http;
    let scheme = if settings.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let mut all = vec![("Page", format!("{scheme}://{http}/"))];
    if settings.roles.ingests {
        let forms = "JSON lines or text";
        all.push(("Push", format!("{scheme}://{http}/api/v1/push ({forms})")));
    }
    let on: Vec<_> = addresses.intakes.on().collect();
    let is_group = |(a, _): &(&Listener, _), (b, _): &(&Listener, _)| {
        a.title == b.title && a.protection == b.protection
    };
    let groups = on.chunk_by(is_group);
    all.extend(groups.map(|group| (group[0].0.title, sockets(group))));
    let local = [
        &settings.dev_log,
        &settings.dev_log_stream,
        &settings.journald,
        &settings.kmsg,
    ];
    let local = local.into_iter().flatten();
    let mut local: Vec<String> = local.map(|path| path.display().to_string()).collect();
    local.extend(settings.audit.then(|| "audit".to_owned()));
    if !local.is_empty() {
        all.push(("Local", local.join("   ")));
    }
    all.extend(addresses.postgres.map(|at| ("Postgres", at.to_string())));
    all.extend(addresses.gossip.map(|at| ("Cluster", at.to_string())));
    all
}

/// The addresses of listeners of one protocol.
fn sockets(group: &[(&Listener, SocketAddr)]) -> String {
    if let [(udp, at), (tcp, other)] = group
        && at == other
        && (udp.transport(), tcp.transport()) == (Transport::Udp, Transport::Tcp)
    {
        return format!("{at} udp+tcp");
    }
    let shown = group.iter().map(|(listener, address)| {
        let address = address.to_string();
        listener.shown.replace("{}", &address)
    });
    shown.collect::<Vec<_>>().join("   ")
}

/// The machines that can connect, and the protection of connections.
fn reach(settings: &Settings, addresses: Addresses) -> &'static str {
    let (mut is_raw_open, mut is_http_open) = (false, false);
    for listener in listeners() {
        let Some(address) = addresses.of(listener) else {
            continue;
        };
        let is_open = !address.ip().is_loopback();
        match listener.protection {
            Protection::Http => is_http_open |= is_open,
            Protection::Open | Protection::Nodes => is_raw_open |= is_open,
            // Without a rule for its clients it is encrypted for anybody.
            Protection::ClientCertificates => {
                is_raw_open |= is_open && settings.syslog_clients.are_open();
            }
        }
    }
    match (is_raw_open, is_http_open) {
        (false, false) => "  Only this machine can connect (loopback).\n",
        (false, true) if settings.is_http_guarded() => {
            "  Other machines can connect, encrypted and with a token.\n"
        }
        _ => {
            "  Other machines can connect, and not all is encrypted and authenticated (--insecure).\n"
        }
    }
}
