//! Says where the server listens: to people on standard error, to programs in the ready file.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use logpond_cluster::Roles;
use logpond_search::size::Size;
use serde_json::{Value, json};

use super::{ServeError, Server};
use logpond_host::terminal::guard::clean;
use logpond_render::quantity;
use logpond_settings::{SHIPPERS, Settings, ShipperAddresses, Transport};

/// Where a server listens; what is off has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Page, API and metrics.
    pub http: SocketAddr,
    /// Raw lines without acknowledgement.
    pub fast: Option<SocketAddr>,
    /// Raw lines with acknowledgement.
    pub durable: Option<SocketAddr>,
    /// Journal files, acknowledged once there are copies.
    pub bulk: Option<SocketAddr>,
    /// Syslog datagrams.
    pub syslog_udp: Option<SocketAddr>,
    /// Syslog over TCP.
    pub syslog_tcp: Option<SocketAddr>,
    /// Syslog over TLS.
    pub syslog_tls: Option<SocketAddr>,
    /// Syslog over RELP.
    pub relp: Option<SocketAddr>,
    /// Syslog over RELP over TLS.
    pub relp_tls: Option<SocketAddr>,
    /// What ships logs to other systems.
    pub shippers: ShipperAddresses,
    /// Other nodes.
    pub gossip: Option<SocketAddr>,
}

impl Addresses {
    /// The object of the ready file.
    pub fn to_json(&self) -> Value {
        let text = |address: Option<SocketAddr>| address.map(|a| a.to_string());
        let mut all = json!({
            "http": self.http.to_string(),
            "fast": text(self.fast),
            "durable": text(self.durable),
            "bulk": text(self.bulk),
            "syslog_udp": text(self.syslog_udp),
            "syslog_tcp": text(self.syslog_tcp),
            "syslog_tls": text(self.syslog_tls),
            "relp": text(self.relp),
            "relp_tls": text(self.relp_tls),
            "gossip": text(self.gossip),
        });
        for (shipper, address) in SHIPPERS.iter().zip(self.shippers.0) {
            all[shipper.name.replace('-', "_")] = text(address).into();
        }
        all
    }

    /// Writes the ready file in one step: whoever sees it sees all of it.
    pub(super) fn write_ready_file(&self, path: &Path) -> Result<(), ServeError> {
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
    let mut text = match io::stderr().is_terminal() {
        true => block(settings, server, took),
        false => line(settings, server, took),
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
        "tokens": server.access.guard().is_required(),
        "off": off,
        "start_ms": took.as_millis() as u64,
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
    if server.access.guard().is_required() {
        let tokens = settings.tokens.display();
        say(
            "Tokens",
            format!("required over HTTP; they are in {tokens}"),
        );
    }
    text.push_str(reach(settings, server.addresses));
    text.push_str(match settings.roles.ingests {
        true => {
            "Try:  tail -F /var/log/syslog | logpond forward -      then      logpond query error\n"
        }
        false => "Try:  logpond query error\n",
    });
    text.push_str(&format!("ready in {} ms\n", took.as_millis()));
    text
}

/// What listens where.
fn listening(settings: &Settings, addresses: Addresses) -> Vec<(&'static str, String)> {
    let Addresses {
        http,
        fast,
        durable,
        bulk,
        syslog_udp,
        syslog_tcp,
        syslog_tls,
        relp,
        relp_tls,
        shippers,
        gossip,
    } = addresses;
    let scheme = match settings.tls {
        Some(_) => "https",
        None => "http",
    };
    let mut all = vec![("Page", format!("{scheme}://{http}/"))];
    if settings.roles.ingests {
        let forms = "JSON lines or text";
        all.push(("Push", format!("{scheme}://{http}/api/v1/push ({forms})")));
    }
    let lines = [(fast, "fast"), (durable, "durable")].into_iter();
    let lines = lines.filter_map(|(a, name)| a.map(|a| format!("tcp {a} ({name})")));
    all.push(("Lines", lines.collect::<Vec<_>>().join("   ")));
    all.extend(bulk.map(|bulk| ("Bulk", format!("tcp {bulk} (journal files)"))));
    all.extend(gossip.map(|gossip| ("Cluster", gossip.to_string())));
    all.push(("Syslog", sockets(syslog_udp, syslog_tcp)));
    let local = [
        &settings.dev_log,
        &settings.dev_log_stream,
        &settings.journald,
        &settings.kmsg,
    ];
    let local = local.into_iter().flatten();
    let mut local: Vec<String> = local.map(|path| path.display().to_string()).collect();
    local.extend(settings.audit.then(|| "audit".to_owned()));
    all.push(("Local", local.join("   ")));
    all.extend(syslog_tls.map(|address| ("Syslog", format!("{address} tls"))));
    all.extend(relp.map(|relp| ("RELP", relp.to_string())));
    all.extend(relp_tls.map(|address| ("RELP", format!("{address} tls"))));
    for protocol in SHIPPERS.chunk_by(|a, b| a.title == b.title) {
        let title = protocol[0].title;
        let address = |transport| {
            let mut on = shippers.on();
            let found = on.find(|(s, _)| s.title == title && s.transport == transport);
            found.map(|(_, address)| address)
        };
        all.push((
            title,
            sockets(address(Transport::Udp), address(Transport::Tcp)),
        ));
    }
    all.retain(|(_, value)| !value.is_empty());
    all
}

/// Where a protocol is spoken; empty for nowhere.
fn sockets(udp: Option<SocketAddr>, tcp: Option<SocketAddr>) -> String {
    if let (Some(udp), Some(tcp)) = (udp, tcp)
        && udp == tcp
    {
        return format!("{udp} udp+tcp");
    }
    let sockets = [(udp, "udp"), (tcp, "tcp")].into_iter();
    let sockets = sockets.filter_map(|(a, name)| a.map(|a| format!("{a} {name}")));
    sockets.collect::<Vec<_>>().join("   ")
}

/// Who can connect, and how safely.
fn reach(settings: &Settings, addresses: Addresses) -> &'static str {
    let Addresses {
        http,
        fast,
        durable,
        bulk,
        syslog_udp,
        syslog_tcp,
        syslog_tls,
        relp,
        relp_tls,
        shippers,
        gossip,
    } = addresses;
    let is_open = |address: SocketAddr| !address.ip().is_loopback();
    // Without a rule for its clients it is encrypted for anybody.
    let encrypted = [syslog_tls, relp_tls].map(|address| {
        let is_open = settings.syslog_clients.are_open();
        address.filter(|_| is_open)
    });
    let raw = [fast, durable, bulk, syslog_udp, syslog_tcp, relp, gossip];
    let of_shippers = |is_http| {
        let mut found = shippers.on().filter(move |(s, _)| s.is_http == is_http);
        found.any(|(_, address)| is_open(address))
    };
    let mut raw = raw.into_iter().chain(encrypted).flatten();
    let is_raw_open = raw.any(is_open) || of_shippers(false);
    match (is_raw_open, is_open(http) || of_shippers(true)) {
        (false, false) => "  Only this machine can connect (loopback).\n",
        (false, true) if settings.is_http_guarded() => {
            "  Other machines can connect, encrypted and with a token.\n"
        }
        _ => {
            "  Other machines can connect, and not all is encrypted and authenticated (--insecure).\n"
        }
    }
}
