//! Both servers with data of their own, on free ports.

use std::path::Path;

use std::time::Duration;

use serde_json::Value;

use super::ask;
use super::data::{Data, FROM_S, Half, LENGTH_S};
use crate::e2e::http::{Client, encode};
use crate::e2e::pond::{TestServer, wait_within};
use crate::loki::Loki;
use crate::run::Outcome;

/// How long entries may take until queries find them.
const VISIBLE_WITHIN: Duration = Duration::from_secs(20);

/// Both servers.
pub(super) struct Servers {
    loki: Loki,
    server: TestServer,
}

impl Servers {
    /// Starts both in a directory, and gives both all data: the first half is in segments here, the second
    /// in the journal, so that each query reads both.
    pub(super) fn start(
        loki: &Path,
        program: &Path,
        directory: &Path,
        data: &Data,
    ) -> Outcome<Servers> {
        let servers = Servers {
            loki: Loki::start(loki, &directory.join("loki"))?,
            server: TestServer::start(program, &directory.join("data"), &[])?,
        };
        for half in [Half::First, Half::Second] {
            let body = data.body(half);
            for address in servers.addresses() {
                post(&address, "/loki/api/v1/push", &body)?;
            }
            if half == Half::First {
                servers.server.compact()?;
            }
        }
        // Statistics are of what has left its memory.
        post(servers.loki.http(), "/flush", "")?;
        for address in servers.addresses() {
            let mut found = Err("not asked".to_owned());
            let has_all = wait_within(VISIBLE_WITHIN, "all entries are found", || {
                found = count(&address);
                found
                    .as_ref()
                    .is_ok_and(|count| *count == data.count() as f64)
            });
            has_all.map_err(|e| format!("{address}: {e}: {found:?} of {}", data.count()))?;
        }
        Ok(servers)
    }

    /// Where Loki and Logpond listen.
    pub(super) fn addresses(&self) -> [String; 2] {
        [self.loki.http().to_owned(), self.server.address("http")]
    }
}

fn post(address: &str, target: &str, body: &str) -> Outcome<()> {
    let mut client = Client::connect(address).map_err(|e| e.to_string())?;
    let headers = [("content-type", "application/json")];
    let response = client
        .send("POST", target, &headers, body.as_bytes())
        .map_err(|e| format!("{target}: {e}"))?;
    match response.status {
        204 => Ok(()),
        status => {
            let text = response.text().unwrap_or_default();
            Err(format!("{address}{target}: {status} {text}"))
        }
    }
}

/// How many entries a server finds.
fn count(address: &str) -> Outcome<f64> {
    let query = format!(
        "sum(count_over_time({{service_name=~\".+\"}}[{}s]))",
        LENGTH_S + 2
    );
    let target = format!(
        "/loki/api/v1/query?time={}&query={}",
        FROM_S + LENGTH_S + 1,
        encode(&query)
    );
    let (status, text) = ask::get(address, &target, &[])?;
    let answer: Value = serde_json::from_str(&text).map_err(|e| format!("{status}: {e}"))?;
    let value = answer["data"]["result"][0]["value"][1].as_str();
    value
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| format!("no count in {text}"))
}
