//! The whole server in this process, over real sockets on free ports.

mod backup;
mod browsers;
mod bucket;
mod bulk;
mod client;
mod damage;
mod encrypted;
mod ends;
mod gelf;
mod fluent;
mod foreign;
mod http;
mod journals;
mod lines;
mod listeners;
mod queries;
mod resends;
mod shippers;
mod slow;
mod syslog;
mod tokens;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use logpond_cluster::Roles;
use logpond_search::size::Size;
use tempfile::TempDir;

use super::Server;
use logpond_host::telemetry::Intake;
use logpond_settings::{AlertSettings, AtStart, IntakeAddresses, Protection, Settings, Timezones};
use logpond_tls::ClientRules;

/// A server with a data directory of its own.
struct Pond {
    server: Option<Server>,
    directory: TempDir,
}

fn settings(data: &Path) -> Settings {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut listeners = IntakeAddresses::all_at(any);
    for listener in logpond_settings::listeners() {
        // It needs a certificate.
        if listener.protection == Protection::ClientCertificates {
            listeners.set(listener.intake, None);
        }
    }
    Settings {
        roles: Roles::ALL,
        data: data.to_owned(),
        http: any,
        http_host: Vec::new(),
        listeners,
        syslog_clients: ClientRules::default(),
        dev_log: None,
        dev_log_stream: None,
        journald: None,
        keep_sockets: None,
        kmsg: None,
        audit: false,
        default_listeners: Vec::new(),
        fluent_security: None,
        kafka: logpond_settings::KafkaSettings::default(),
        gossip: None,
        advertise: None,
        join: Vec::new(),
        replication: 1,
        zone: String::new(),
        repair_after: Duration::from_secs(900),
        canary: None,
        retain_age: None,
        retain_size_bytes: None,
        at_start: AtStart::default(),
        keep_free: Size::Bytes(0),
        scrub_every: None,
        access_logs: Vec::new(),
        field_names: Vec::new(),
        timezones: Timezones {
            all: "UTC".to_owned(),
            networks: Vec::new(),
        },
        bucket: None,
        memory: Size::Percent(40.0),
        line_bytes_max: 1 << 20,
        rules: None,
        alerts: AlertSettings::default(),
        ready_file: None,
        insecure: false,
        tokens: data.join("tokens.toml"),
        require_token: false,
        tls: None,
        cluster_tls: None,
    }
}

impl Pond {
    fn new() -> Pond {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::start(&settings(directory.path())).unwrap();
        Pond {
            server: Some(server),
            directory,
        }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn http(&self) -> SocketAddr {
        self.server().addresses().http
    }

    fn address(&self, intake: Intake) -> SocketAddr {
        let addresses = self.server().addresses();
        addresses.intakes.of(intake).unwrap()
    }

    /// Stops, waits for the drain, and starts again on the same data.
    fn restart(&mut self) {
        self.stop();
        self.server = Some(Server::start(&settings(self.directory.path())).unwrap());
    }

    fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
            server.join().unwrap();
        }
    }
}

impl Drop for Pond {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.stop();
    }
}
