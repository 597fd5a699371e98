//! Both servers with data of their own, on free ports.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::ask;
use super::data::{Data, FROM_S, Half, LENGTH_S};
use crate::e2e::http::{Client, encode};
use crate::e2e::pond::{Pond, wait_until, wait_within};
use crate::run::{Outcome, free_address};

/// How long entries may take until queries find them.
const VISIBLE_WITHIN: Duration = Duration::from_secs(20);

/// A Loki process. Dropping it kills the process.
pub(super) struct Loki {
    child: Child,
    http: String,
}

/// Everything in one process on the file system, with limits that refuse nothing of what is asked here,
/// and without caches and parts of queries: what is compared is what the language means. Queries go to the
/// frontend as text: a scheduler would get them as trees, whose readers refuse some.
fn configuration(http: &str, grpc: &str, directory: &Path) -> Outcome<String> {
    let port = |address: &str| {
        let port = address.rsplit_once(':').map(|(_, port)| port.to_owned());
        port.ok_or_else(|| format!("{address}: no port"))
    };
    let (http, grpc_port, directory) = (port(http)?, port(grpc)?, directory.display());
    Ok(format!(
        "\
auth_enabled: false
server:
  http_listen_address: 127.0.0.1
  http_listen_port: {http}
  grpc_listen_address: 127.0.0.1
  grpc_listen_port: {grpc_port}
  log_level: warn
common:
  instance_addr: 127.0.0.1
  path_prefix: {directory}
  storage:
    filesystem:
      chunks_directory: {directory}/chunks
      rules_directory: {directory}/rules
  replication_factor: 1
  ring:
    kvstore:
      store: inmemory
schema_config:
  configs:
    - from: 2020-10-24
      store: tsdb
      object_store: filesystem
      schema: v13
      index:
        prefix: index_
        period: 24h
analytics:
  reporting_enabled: false
ingester:
  max_chunk_age: 24h
  chunk_idle_period: 24h
  query_store_max_look_back_period: -1ns
frontend_worker:
  frontend_address: {grpc}
querier:
  query_ingesters_within: 0
query_range:
  parallelise_shardable_queries: false
  cache_results: false
  max_retries: 1
limits_config:
  reject_old_samples: false
  allow_structured_metadata: true
  volume_enabled: true
  ingestion_rate_mb: 1000
  ingestion_burst_size_mb: 1000
  per_stream_rate_limit: 1GB
  per_stream_rate_limit_burst: 1GB
  max_query_series: 100000
  max_entries_limit_per_query: 0
  max_query_length: 0
  query_timeout: 20s
  split_queries_by_interval: 0
  split_instant_metric_queries_by_interval: 0
"
    ))
}

impl Loki {
    /// Starts the binary on free ports and waits until it is ready.
    pub(super) fn start(program: &Path, directory: &Path) -> Outcome<Loki> {
        fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        let (http, grpc) = (free_address()?, free_address()?);
        let file = |name: &str| -> PathBuf { directory.join(name) };
        let configuration = configuration(&http, &grpc, directory)?;
        fs::write(file("loki.yaml"), configuration).map_err(|e| e.to_string())?;
        let said = fs::File::create(file("said")).map_err(|e| e.to_string())?;
        let child = Command::new(program)
            .arg(format!("-config.file={}", file("loki.yaml").display()))
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        let mut loki = Loki { child, http };
        let mut has_ended = false;
        wait_until("Loki is ready", || {
            has_ended = loki.child.try_wait().is_ok_and(|status| status.is_some());
            has_ended || loki.is_ready()
        })?;
        match has_ended {
            false => Ok(loki),
            true => {
                let said = fs::read_to_string(file("said")).unwrap_or_default();
                Err(format!("Loki ended before it was ready: {said}"))
            }
        }
    }

    fn is_ready(&self) -> bool {
        let asked = Client::connect(&self.http);
        asked.is_ok_and(|mut client| {
            let answer = client.send("GET", "/ready", &[], b"");
            answer.is_ok_and(|answer| answer.status == 200)
        })
    }
}

impl Drop for Loki {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both servers.
pub(super) struct Servers {
    loki: Loki,
    pond: Pond,
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
            pond: Pond::start(program, &directory.join("data"), &[])?,
        };
        for half in [Half::First, Half::Second] {
            let body = data.body(half);
            for address in servers.addresses() {
                post(&address, "/loki/api/v1/push", &body)?;
            }
            if half == Half::First {
                servers.pond.compact()?;
            }
        }
        // Statistics are of what has left its memory.
        post(&servers.loki.http, "/flush", "")?;
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
        [self.loki.http.clone(), self.pond.address("http")]
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
