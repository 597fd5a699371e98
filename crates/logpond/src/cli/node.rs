//! Flags of the commands that run a node.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Said of all commands that run a node.
const SETTINGS_HELP: &str = "Each setting is also a key of logpond.toml and, as LOGPOND_<NAME>, an \
                             environment variable. Flags win over the environment, the \
                             environment over the file.\nADDR is IP:PORT, IP, PORT or :PORT; \
                             port 0 is any free one; 'off' turns a listener off.";

/// Flags of `logpond serve` and `logpond ingest`. Their meaning is in `settings`; they have the
/// same names there.
#[derive(Debug, Default, Args)]
#[command(after_help = SETTINGS_HELP)]
pub struct Serve {
    /// Of every node.
    #[command(flatten)]
    pub node: Node,
    /// Of one that takes records in.
    #[command(flatten)]
    pub intakes: Intakes,
}

/// Where lines are taken in, and how long they may be.
#[derive(Debug, Default, Args)]
pub struct Intakes {
    /// Raw lines over TCP, not acknowledged [default: 127.0.0.1:7651].
    #[arg(long, value_name = "ADDR")]
    pub fast: Option<String>,
    /// Raw lines over TCP, acknowledged once on disk [default: 127.0.0.1:7652].
    #[arg(long, value_name = "ADDR")]
    pub durable: Option<String>,
    /// Whole journal files over TCP, acknowledged once there are copies [default: 127.0.0.1:7653].
    #[arg(long, value_name = "ADDR")]
    pub bulk: Option<String>,
    /// Syslog over UDP [default: 127.0.0.1:5514].
    #[arg(long, value_name = "ADDR")]
    pub syslog_udp: Option<String>,
    /// Syslog over TCP [default: 127.0.0.1:5514].
    #[arg(long, value_name = "ADDR")]
    pub syslog_tcp: Option<String>,
    /// Syslog over TLS, with the certificate of HTTP [default: off; port 6514].
    #[arg(long, value_name = "ADDR")]
    pub syslog_tls: Option<String>,
    /// Authorities that sign for its clients, in PEM [default: off].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub syslog_tls_ca: Option<String>,
    /// Fingerprints and names of its clients [default: off].
    #[arg(long, value_name = "PEERS")]
    pub syslog_tls_peers: Option<String>,
    /// Syslog of this machine's programs, such as /dev/log [default: off].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub dev_log: Option<String>,
    /// The same as a stream socket [default: off].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub dev_log_stream: Option<String>,
    /// Sockets of journald, such as in /run/systemd/journal [default: off].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub journald: Option<String>,
    /// Keep these sockets so long for the next start, and streams open [default: 10s].
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub keep_sockets: Option<String>,
    /// Messages of the kernel: /dev/kmsg [default: off].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kmsg: Option<String>,
    /// Listen to the kernel's audit records.
    #[arg(long, hide_short_help = true)]
    pub audit: bool,
    /// Syslog over RELP, acknowledged once on disk [default: 127.0.0.1:2514].
    #[arg(long, value_name = "ADDR")]
    pub relp: Option<String>,
    /// RELP over TLS, with the certificate and the clients of syslog over TLS [default: off; port 2515].
    #[arg(long, value_name = "ADDR", hide_short_help = true)]
    pub relp_tls: Option<String>,
    /// GELF over UDP [default: 127.0.0.1:12201].
    #[arg(long, value_name = "ADDR")]
    pub gelf_udp: Option<String>,
    /// GELF over TCP [default: 127.0.0.1:12201].
    #[arg(long, value_name = "ADDR")]
    pub gelf_tcp: Option<String>,
    /// The Forward protocol of Fluentd and Fluent Bit [default: 127.0.0.1:24224].
    #[arg(long, value_name = "ADDR")]
    pub fluent: Option<String>,
    /// The shared key and the users of that protocol, in TOML [default: off].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub fluent_security: Option<String>,
    /// Logs of OpenTelemetry over gRPC [default: 127.0.0.1:4317].
    #[arg(long, value_name = "ADDR")]
    pub otlp_grpc: Option<String>,
    /// HTTP for exporters of OpenTelemetry, too [default: off; port 4318].
    #[arg(long, value_name = "ADDR")]
    pub otlp_http: Option<String>,
    /// HTTP for what ships to Loki, too [default: off; port 3100].
    #[arg(long, value_name = "ADDR")]
    pub loki: Option<String>,
    /// HTTP for what ships to Elasticsearch, too [default: off; port 9200].
    #[arg(long, value_name = "ADDR")]
    pub elasticsearch: Option<String>,
    /// HTTP for what ships to Splunk, too [default: off; port 8088].
    #[arg(long, value_name = "ADDR")]
    pub splunk: Option<String>,
    /// Read this topic of Kafka, or some partitions of it; may be given several times [default: off].
    #[arg(
        long,
        value_name = "BROKERS/TOPIC[:PARTITIONS]",
        hide_short_help = true
    )]
    pub kafka: Vec<String>,
    /// Where a partition is begun that was never read: earliest or latest [default: earliest].
    #[arg(long, value_name = "WHERE", hide_short_help = true)]
    pub kafka_from: Option<String>,
    /// How brokers of Kafka are talked to, in TOML [default: off].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub kafka_security: Option<String>,
    /// The longest line that is taken whole [default: 1MiB].
    #[arg(long, value_name = "SIZE")]
    pub line_bytes_max: Option<String>,
    /// A log_format of nginx or LogFormat of Apache; may be given several times [default: off].
    #[arg(long, value_name = "NAME=FORMAT")]
    pub access_log: Vec<String>,
    /// The field with the time of objects, before all known names; may be given several times [default: off].
    #[arg(long, value_name = "NAME,...", hide_short_help = true)]
    pub time_field: Vec<String>,
    /// The field with the message of objects, likewise [default: off].
    #[arg(long, value_name = "NAME,...", hide_short_help = true)]
    pub message_field: Vec<String>,
    /// The zone of times that say none, also of a network's; may be given several times [default: local].
    #[arg(
        long,
        value_name = "[NETWORK=]ZONE",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub timezone: Vec<String>,
    /// Drop, sample, redact, hash and limit records as this file says [default: off].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub rules: Option<String>,
}

/// Flags of every command that runs a node.
#[derive(Debug, Default, Args)]
#[command(after_help = SETTINGS_HELP)]
pub struct Node {
    /// Settings file [default: /etc/logpond/logpond.toml, then ~/.config/logpond/logpond.toml].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Data directory [default: ~/.local/share/logpond; for root: /var/lib/logpond].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: Option<String>,
    /// Page, API and metrics [default: 127.0.0.1:7650].
    #[arg(long, value_name = "ADDR")]
    pub http: Option<String>,
    /// Answer to this name, too, where no token is asked for; may be given several times [default: off].
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub http_host: Vec<String>,
    /// Other nodes of the cluster [default: off; port 7659].
    #[arg(long, value_name = "ADDR")]
    pub gossip: Option<String>,
    /// Where other nodes reach this one [default: the address of --gossip].
    #[arg(long, value_name = "ADDR")]
    pub advertise: Option<String>,
    /// Nodes to ask first for the others.
    #[arg(long, value_name = "ADDR[,ADDR...]")]
    pub join: Option<String>,
    /// How many nodes of a cluster hold each record [default: 1].
    #[arg(long, value_name = "COUNT")]
    pub replication: Option<String>,
    /// Keep copies of a record in different zones, of which this node is in this one [default: off].
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub zone: Option<String>,
    /// Make up for the copies of a node that is gone this long [default: 15m].
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub repair_after: Option<String>,
    /// Measure this often how soon a record is found through another node [default: off].
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub canary: Option<String>,
    /// Keep records this long after their arrival [default: 30d].
    #[arg(long, value_name = "DURATION")]
    pub retain_age: Option<String>,
    /// Keep at most this many bytes of segments [default: off].
    #[arg(long, value_name = "SIZE")]
    pub retain_size: Option<String>,
    /// Remove at once what these two limits remove at this start, however much it is.
    ///
    /// Without it a limit that would remove more than half of the records waits a day.
    #[arg(long, hide_short_help = true)]
    pub confirm_retention: bool,
    /// Believe the clock at this start, though it is far ahead of the newest record.
    ///
    /// Without it records that are old only by that clock stay for a day, or until a time server, another
    /// node or the bucket agrees with it.
    #[arg(long, hide_short_help = true)]
    pub trust_clock: bool,
    /// Leave this much of the disk free [default: 20%].
    #[arg(long, value_name = "SIZE|PERCENT")]
    pub keep_free: Option<String>,
    /// Share this much memory between queries, caches and all else [default: 40%].
    #[arg(long, value_name = "SIZE|PERCENT")]
    pub memory: Option<String>,
    /// Read each segment once in this time, to find damage early [default: 14d].
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub scrub_every: Option<String>,
    /// Put all segments into this object store, too [default: off].
    ///
    /// What the disk has no room for is read from there.
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub bucket: Option<String>,
    /// Keep this much of what was read from the bucket on the disk [default: 4GiB].
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub bucket_cache: Option<String>,
    /// Show the bucket as a table to other engines, at most so long after a change [default: 1m].
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub open_table: Option<String>,
    /// Keep what is in the bucket on the disk for this long, too [default: off].
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub local_age: Option<String>,
    /// Keep at most this much of what is in the bucket on the disk, too [default: off].
    #[arg(long, value_name = "SIZE", hide_short_help = true)]
    pub local_size: Option<String>,
    /// Evaluate the alert rules of this file, or of the files of this directory [default: off].
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, hide_short_help = true)]
    pub alert_rules: Option<String>,
    /// Tell this Alertmanager of alerts; may be given several times [default: off].
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub alertmanager: Vec<String>,
    /// Tell this webhook when alerts begin and end; may be given several times [default: off].
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub alert_webhook: Vec<String>,
    /// The address for links in notices of alerts [default: that of --http].
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub external_url: Option<String>,
    /// Write the bound addresses to this file, as JSON, once ready.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub ready_file: Option<String>,
    /// Allow addresses that other machines can reach.
    #[arg(long)]
    pub insecure: bool,
    /// The file of tokens [default: tokens.toml in the data directory].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tokens: Option<String>,
    /// Ask for a token also where only this machine can connect.
    #[arg(long)]
    pub require_token: bool,
    /// The certificate of HTTP, in PEM [default: off].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_certificate: Option<String>,
    /// The private key of that certificate, in PEM [default: off].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tls_key: Option<String>,
    /// The directory with this node's certificate for its cluster [default: off].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cluster_tls: Option<String>,
}

/// A flag's name in the settings' table, and its text if it was given.
type Flag = (&'static str, String);

fn given<const N: usize>(texts: [(&'static str, &Option<String>); N]) -> Vec<Flag> {
    let each = texts.into_iter();
    each.filter_map(|(name, text)| Some((name, text.clone()?)))
        .collect()
}

impl Serve {
    /// The flags that were given, by their names in the settings' table.
    pub fn given(&self) -> Vec<Flag> {
        let mut all = self.node.given();
        all.extend(given([
            ("fast", &self.intakes.fast),
            ("durable", &self.intakes.durable),
            ("bulk", &self.intakes.bulk),
            ("syslog-udp", &self.intakes.syslog_udp),
            ("syslog-tcp", &self.intakes.syslog_tcp),
            ("syslog-tls", &self.intakes.syslog_tls),
            ("syslog-tls-ca", &self.intakes.syslog_tls_ca),
            ("syslog-tls-peers", &self.intakes.syslog_tls_peers),
            ("dev-log", &self.intakes.dev_log),
            ("dev-log-stream", &self.intakes.dev_log_stream),
            ("journald", &self.intakes.journald),
            ("keep-sockets", &self.intakes.keep_sockets),
            ("kmsg", &self.intakes.kmsg),
            ("relp", &self.intakes.relp),
            ("relp-tls", &self.intakes.relp_tls),
            ("gelf-udp", &self.intakes.gelf_udp),
            ("gelf-tcp", &self.intakes.gelf_tcp),
            ("fluent", &self.intakes.fluent),
            ("fluent-security", &self.intakes.fluent_security),
            ("otlp-grpc", &self.intakes.otlp_grpc),
            ("otlp-http", &self.intakes.otlp_http),
            ("loki", &self.intakes.loki),
            ("elasticsearch", &self.intakes.elasticsearch),
            ("splunk", &self.intakes.splunk),
            ("kafka-from", &self.intakes.kafka_from),
            ("kafka-security", &self.intakes.kafka_security),
            ("line-bytes-max", &self.intakes.line_bytes_max),
            ("rules", &self.intakes.rules),
        ]));
        all.extend(self.intakes.audit.then(|| ("audit", "true".to_owned())));
        let lists = [
            ("access-log", &self.intakes.access_log),
            ("time-field", &self.intakes.time_field),
            ("message-field", &self.intakes.message_field),
            ("timezone", &self.intakes.timezone),
            ("kafka", &self.intakes.kafka),
        ];
        for (name, texts) in lists.into_iter().filter(|(_, texts)| !texts.is_empty()) {
            all.push((name, texts.join("\n")));
        }
        all
    }
}

impl Node {
    /// The flags that were given, by their names in the settings' table.
    pub fn given(&self) -> Vec<Flag> {
        let mut all = given([
            ("data", &self.data),
            ("http", &self.http),
            ("gossip", &self.gossip),
            ("advertise", &self.advertise),
            ("join", &self.join),
            ("replication", &self.replication),
            ("zone", &self.zone),
            ("repair-after", &self.repair_after),
            ("canary", &self.canary),
            ("retain-age", &self.retain_age),
            ("retain-size", &self.retain_size),
            ("keep-free", &self.keep_free),
            ("memory", &self.memory),
            ("scrub-every", &self.scrub_every),
            ("bucket", &self.bucket),
            ("bucket-cache", &self.bucket_cache),
            ("open-table", &self.open_table),
            ("local-age", &self.local_age),
            ("local-size", &self.local_size),
            ("alert-rules", &self.alert_rules),
            ("external-url", &self.external_url),
            ("ready-file", &self.ready_file),
            ("tokens", &self.tokens),
            ("tls-certificate", &self.tls_certificate),
            ("tls-key", &self.tls_key),
            ("cluster-tls", &self.cluster_tls),
        ]);
        let switches = [
            ("insecure", self.insecure),
            ("require-token", self.require_token),
            ("confirm-retention", self.confirm_retention),
            ("trust-clock", self.trust_clock),
        ];
        for (name, _) in switches.into_iter().filter(|(_, is_on)| *is_on) {
            all.push((name, "true".to_string()));
        }
        let lists = [
            ("http-host", &self.http_host),
            ("alertmanager", &self.alertmanager),
            ("alert-webhook", &self.alert_webhook),
        ];
        for (name, texts) in lists.into_iter().filter(|(_, texts)| !texts.is_empty()) {
            all.push((name, texts.join("\n")));
        }
        all
    }
}
