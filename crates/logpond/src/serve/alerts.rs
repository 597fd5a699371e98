//! What alert rules need of this server: composition only.

use std::net::SocketAddr;
use std::sync::Arc;

use logpond_cluster::NodeId;
use logpond_record::{Batch, EntryKind, Timestamp};
use logpond_search::alert::{GroupState, STATE_BYTES_MAX, decode, encode};
use logpond_search::metric::{Plan, SeriesLabels};
use logpond_search::query::{RECORD_FIELD, RULE_FIELD};
use logpond_segment::disk::Disk;
use serde_json::{Map, Value};

use super::ServeError;
use super::node::NodeServices;
use logpond_engine::alert::{self, Alerts, EvaluationResult, Peers, Recorder, SoleNode, Source};
use logpond_engine::ingest::Ingest;
use logpond_engine::query::{Engine, Output};
use logpond_host::clock;
use logpond_host::shutdown::Shutdown;
use logpond_host::{hostname, terminal};
use logpond_node::cluster::Member;
use logpond_node::server::AlertStates;
use logpond_settings::Settings;

/// The label of what recording rules write down, by which people ask for it.
const RECORD_LABEL: &str = RECORD_FIELD;

/// What is missing in an answer is named so often; the rest is counted.
const MISSING_NAMED_MAX: usize = 3;

/// The parts of the server that evaluations need.
pub(super) struct EvaluationContext {
    /// What takes results of recording rules.
    pub(super) ingest: Ingest,
    /// Where the state is kept.
    pub(super) disk: Arc<dyn Disk>,
    /// This node among others, in a cluster.
    pub(super) member: Option<Arc<Member>>,
    /// Where people reach it.
    pub(super) external_url: String,
}

impl EvaluationContext {
    /// Starts the threads of alert rules, if there are any; the node answers their queries.
    pub(super) fn start(
        self,
        alerts: Option<Arc<Alerts>>,
        node: &mut NodeServices,
        shutdown: &Shutdown,
    ) -> Result<(), ServeError> {
        let Some(alerts) = alerts else {
            return Ok(());
        };
        alerts.reached_at(self.external_url);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(ServeError::Runtime)?;
        let parts = alert::Parts {
            alerts,
            source: Box::new(Answers {
                engine: node.engine.clone(),
                shutdown: shutdown.clone(),
            }),
            recorder: Box::new(Records {
                ingest: self.ingest,
                runtime,
            }),
            peers: match self.member {
                Some(member) => Box::new(Nodes(member)),
                None => Box::new(SoleNode),
            },
            disk: self.disk,
            clock: clock::now,
        };
        let thread = alert::start(parts, shutdown).map_err(ServeError::Alerts)?;
        node.threads.push(thread);
        Ok(())
    }
}

/// What other nodes are told of alerts.
pub(super) fn states(alerts: Arc<Alerts>) -> AlertStates {
    Arc::new(move || encode(&alerts.states()))
}

/// Where people reach this server: as it is told, or where it listens.
pub(super) fn external_url(settings: &Settings, http: SocketAddr) -> String {
    if let Some(url) = &settings.alerts.external_url {
        return url.clone();
    }
    let scheme = if settings.tls.is_some() {
        "https"
    } else {
        "http"
    };
    if http.ip().is_unspecified() {
        format!("{scheme}://{}:{}", hostname::own(), http.port())
    } else {
        format!("{scheme}://{http}")
    }
}

/// The other nodes of a cluster. They agree on nothing: who is thought to be alive and has the same rules
/// may evaluate them, and a hash says who does.
struct Nodes(Arc<Member>);

impl Nodes {
    /// Live nodes with these rules, and how they are called.
    fn others(&self, digest: u64) -> Vec<(NodeId, String)> {
        let others = self.0.live_others().into_iter();
        let seen = others.filter_map(|node| Some((node, self.0.gossip().of(node)?)));
        seen.filter(|(_, seen)| seen.alert_rules == digest)
            .map(|(node, seen)| (node, seen.address.to_string()))
            .collect()
    }
}

impl Peers for Nodes {
    fn owner(&self, key: &str, digest: u64) -> Option<String> {
        let others = self.others(digest);
        let own = self.0.identity().node.0;
        let all = others.iter().map(|(node, _)| node.0).chain([own]);
        let owner = alert::owner(key, all)?;
        let of_other = others.into_iter().find(|(node, _)| node.0 == owner);
        of_other.map(|(_, name)| name)
    }

    fn others(&self, digest: u64) -> Vec<String> {
        let others = Nodes::others(self, digest).into_iter();
        others.map(|(_, name)| name).collect()
    }

    fn states_of(&self, name: &str) -> Result<Vec<GroupState>, String> {
        let others = self.0.live_others().into_iter();
        let is_meant = |node: &NodeId| {
            let seen = self.0.gossip().of(*node);
            seen.is_some_and(|seen| seen.address.to_string() == name)
        };
        let node = others.into_iter().find(is_meant);
        let node = node.ok_or_else(|| format!("node {name} is gone"))?;
        let bytes = self.0.alert_states_of(node, STATE_BYTES_MAX);
        let bytes = bytes.map_err(|error| format!("node {name}: {error}"))?;
        decode(&bytes).map_err(|error| format!("node {name}: {error}"))
    }

    fn say(&self, digest: u64) {
        self.0.gossip().say_alert_rules(digest);
    }
}

/// The answers of this server, as a rule needs them.
struct Answers {
    engine: Arc<dyn Engine>,
    shutdown: Shutdown,
}

impl Source for Answers {
    fn numbers(&self, plan: &Plan) -> Result<EvaluationResult, String> {
        // Numbers are returned; nothing goes this way.
        let (mut out, _reader) = Output::new(self.shutdown.clone());
        let found = self.engine.numbers(plan, &mut out);
        let found = found.map_err(|error| terminal::with_causes(&error))?;
        let trailer = &found.trailer;
        let missing = (trailer.missing_count > 0).then(|| {
            let named = trailer.missing.iter().take(MISSING_NAMED_MAX);
            let named: Vec<&str> = named.map(String::as_str).collect();
            let others = trailer.missing_count - named.len() as u64;
            match others {
                0 => named.join("; "),
                others => format!("{}; and {others} more", named.join("; ")),
            }
        });
        Ok(EvaluationResult {
            answer: found.answer,
            missing: missing.map(String::into_boxed_str),
        })
    }
}

/// Results of recording rules as records of this server.
struct Records {
    ingest: Ingest,
    /// Handing records in is asynchronous, and waits with a timer.
    runtime: tokio::runtime::Runtime,
}

impl Recorder for Records {
    fn record(
        &self,
        name: &str,
        at: Timestamp,
        series: &[(SeriesLabels, f64)],
    ) -> Result<(), String> {
        let labels = [RECORD_LABEL, RULE_FIELD].map(|label| (label.into(), name.into()));
        let mut batch = Batch::new(EntryKind::Json, labels.to_vec());
        for (labels, value) in series {
            batch.push(line(labels, *value, at).as_bytes());
        }
        let accepted = self.runtime.block_on(self.ingest.submit_own(batch));
        accepted
            .map(drop)
            .map_err(|refused| format!("the numbers cannot be written down: {refused}"))
    }
}

/// A number with its labels as a record. Labels that would hide the number or its time are renamed.
fn line(labels: &SeriesLabels, value: f64, at: Timestamp) -> String {
    let mut record = Map::new();
    for (name, text) in labels.iter() {
        let name = match name {
            "time" | "value" | RECORD_LABEL | RULE_FIELD => format!("exported_{name}"),
            name => name.to_owned(),
        };
        record.insert(name, text.into());
    }
    record.insert("time".to_owned(), at.to_string().into());
    // JSON has no words for what is no number.
    let number = serde_json::Number::from_f64(value).map(Value::Number);
    let number = number.unwrap_or_else(|| value.to_string().into());
    record.insert("value".to_owned(), number);
    Value::Object(record).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_records() {
        let labels = SeriesLabels::new([("app", "a\"b"), ("value", "x"), ("time", "y")]);
        let table = [
            (1.5, "1.5"),
            (f64::NAN, "\"NaN\""),
            (f64::INFINITY, "\"inf\""),
        ];
        for (value, expected) in table {
            assert_eq!(
                line(&labels, value, Timestamp(0)),
                format!(
                    "{{\"app\":\"a\\\"b\",\"exported_time\":\"y\",\"exported_value\":\"x\",\
                     \"time\":\"1970-01-01T00:00:00.000000000Z\",\"value\":{expected}}}"
                )
            );
        }
    }
}
