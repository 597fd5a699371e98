//! A Loki of its own, started from a binary, as a peer to ask beside Logpond.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::e2e::http::Client;
use crate::e2e::pond::wait_until;
use crate::run::{Outcome, free_address};

/// A Loki process. Dropping it kills the process.
pub(crate) struct Loki {
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
  max_query_series: 10000000
  max_entries_limit_per_query: 0
  max_query_length: 0
  query_timeout: 3m
  split_queries_by_interval: 0
  split_instant_metric_queries_by_interval: 0
"
    ))
}

impl Loki {
    /// Starts the binary on free ports and waits until it is ready.
    pub(crate) fn start(program: &Path, directory: &Path) -> Outcome<Loki> {
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
        if has_ended {
            let said = fs::read_to_string(file("said")).unwrap_or_default();
            Err(format!("Loki ended before it was ready: {said}"))
        } else {
            Ok(loki)
        }
    }

    /// Where it listens.
    pub(crate) fn http(&self) -> &str {
        &self.http
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
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
