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
mod indices;
mod journals;
mod lines;
mod listeners;
mod queries;
mod resends;
mod searches;
mod shippers;
mod slow;
mod syslog;
mod tenants;
mod tokens;

use std::net::SocketAddr;
use std::path::Path;

use tempfile::TempDir;

use super::Server;
use logpond_host::telemetry::Intake;
use logpond_settings::{Environment, IntakeAddresses, Origin, Protection, SettingValue, Settings};

/// A server with a data directory of its own.
struct TestServer {
    server: Option<Server>,
    directory: TempDir,
}

fn settings(data: &Path) -> Settings {
    let data = data.display().to_string();
    let text = [
        ("data", &*data),
        ("http", "127.0.0.1:0"),
        ("keep-sockets", "off"),
        ("retain-age", "off"),
        ("keep-free", "0B"),
        ("scrub-every", "off"),
        ("timezone", "UTC"),
    ];
    let given = text.map(|(name, text)| SettingValue {
        name,
        text: text.to_owned(),
        origin: Origin::Flag(name),
    });
    let environment = Environment {
        variable: &|_| None,
        is_root: false,
    };
    let settings = Settings::resolve(&given, &environment).unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut listeners = IntakeAddresses::all_at(any);
    for listener in logpond_settings::listeners() {
        // It needs a certificate.
        if listener.protection == Protection::ClientCertificates {
            listeners.set(listener.intake, None);
        }
    }
    Settings {
        listeners,
        default_listeners: Vec::new(),
        ..settings
    }
}

impl TestServer {
    fn new() -> TestServer {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::start(&settings(directory.path())).unwrap();
        TestServer {
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

impl Drop for TestServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.stop();
    }
}
