//! The table of settings: a row makes the key of the file, the variable, the flag, its help and the reference page.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use logpond_cluster::Roles;
use logpond_cluster::registry::ZONE_BYTES_MAX;
use logpond_cluster::seeds::Seed;
use logpond_record::Labels;
use logpond_search::size::Size;
use logpond_tls::{CertificateFiles, ClientRules};

use super::audit_log::{AuditLevel, audit_level};
use super::listeners::{Form, Framing, Listener, Protocol, StreamProtocol, listener, stream};
use super::values::{
    Values, age, copies, kept_time, memory, node, off_or, off_or_some, optional_file, room,
    scrub_time, seeds, truth, word,
};
use super::{
    AlertSettings, AtStart, BULK_PORT, BucketSettings, GOSSIP_PORT, HostName, IntakeAddresses,
    KafkaSettings, PREFIX, SettingsError, Timezones, access_logs, host_names, line_bytes,
    parse_age, parse_bytes, timezones,
};
use logpond_host::telemetry::Intake;

/// The longest name of the header of tenants.
const TENANT_HEADER_BYTES_MAX: usize = 64;

/// The kind of text that a shell completes after a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Any text.
    Text,
    /// The name of a file.
    File,
    /// The name of a directory.
    Directory,
    /// The name of either.
    Path,
}

/// The count of values that a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// None: its presence is `true`.
    Switch,
    /// One.
    One,
    /// The flag may be given several times; in the file it may be a list. Values are joined by line ends.
    Many,
}

/// One setting: the only place that knows its names, default, flag and meaning.
pub struct Setting {
    /// The key in `logpond.toml` and, with `--` before it, the flag.
    pub name: &'static str,
    /// The form of a value.
    pub form: &'static str,
    /// The default as it would be written; of the data directory, in words.
    pub default: &'static str,
    /// The meaning, for the reference page.
    pub doc: &'static str,
    /// The meaning in a few words, for the list of flags.
    pub help: &'static str,
    /// More of it, for the long list of flags; or empty.
    pub more: &'static str,
    /// The name of the flag's value in its help, if it is not the form without `|off`.
    value: Option<&'static str>,
    /// The note on the default in its help, if it is not the default itself; empty for none.
    shown: Option<&'static str>,
    /// The count of values that the flag takes.
    pub count: Count,
    /// The kind of text that a shell completes after the flag.
    pub hint: Hint,
    /// True if only nodes that take records in have the flag.
    pub is_of_intakes: bool,
    /// True if the short list of flags leaves it out.
    pub is_advanced: bool,
    /// True if a value may begin with a hyphen, as an offset from UTC does.
    pub takes_hyphens: bool,
    /// The listener, if the value is the address of one.
    listener: Option<Listener>,
}

const fn setting(name: &'static str, form: &'static str, default: &'static str) -> Setting {
    Setting {
        name,
        form,
        default,
        doc: "",
        help: "",
        more: "",
        value: None,
        shown: None,
        count: Count::One,
        hint: Hint::Text,
        is_of_intakes: false,
        is_advanced: false,
        takes_hyphens: false,
        listener: None,
    }
}

impl Setting {
    const fn doc(mut self, doc: &'static str) -> Setting {
        self.doc = doc;
        self
    }

    const fn help(mut self, help: &'static str) -> Setting {
        self.help = help;
        self
    }

    const fn more(mut self, more: &'static str) -> Setting {
        self.more = more;
        self
    }

    const fn value(mut self, value: &'static str) -> Setting {
        self.value = Some(value);
        self
    }

    const fn shown(mut self, shown: &'static str) -> Setting {
        self.shown = Some(shown);
        self
    }

    const fn switch(mut self) -> Setting {
        self.count = Count::Switch;
        self
    }

    const fn repeated(mut self) -> Setting {
        self.count = Count::Many;
        self
    }

    const fn hint(mut self, hint: Hint) -> Setting {
        self.hint = hint;
        self
    }

    const fn of_intakes(mut self) -> Setting {
        self.is_of_intakes = true;
        self
    }

    const fn hyphened(mut self) -> Setting {
        self.takes_hyphens = true;
        self
    }

    /// The value is the address of this listener.
    const fn listens(mut self, listener: Listener) -> Setting {
        self.listener = Some(Listener {
            name: self.name,
            ..listener
        });
        self
    }

    const fn advanced(mut self) -> Setting {
        self.is_advanced = true;
        self
    }

    /// The listener, if the value is the address of one.
    pub const fn listener(&self) -> Option<&Listener> {
        self.listener.as_ref()
    }

    /// The environment variable: [`PREFIX`] and the name in capitals.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_uppercase().replace('-', "_"))
    }

    /// The name of the flag's value in its help.
    pub fn value_name(&self) -> &'static str {
        let form = self.form.strip_suffix("|off").unwrap_or(self.form);
        self.value.unwrap_or(form)
    }

    /// The meaning in a few words, with the default.
    pub fn short_help(&self) -> String {
        match (self.count, self.shown) {
            (Count::Switch, _) | (_, Some("")) => self.help.to_owned(),
            (_, Some(shown)) => format!("{} [{shown}]", self.help),
            (_, None) => format!("{} [default: {}]", self.help, self.default),
        }
    }
}

const RAW_LINES: StreamProtocol = stream(Framing::Lines, Form::Line, "raw lines");

/// Syslog in frames (RFC 6587).
const SYSLOG: StreamProtocol = stream(Framing::Frames, Form::Syslog, "syslog");

const GELF: StreamProtocol = stream(Framing::Frames, Form::Gelf, "GELF");

/// The longest name of a machine (RFC 1035, section 2.3.4).
const HOSTNAME_BYTES_MAX: usize = 253;

/// Makes [`TABLE`] and [`Settings`] of rows. A row is `setting(…)…;`, or `setting(…)… => field: Type = read;`
/// with the reader of its text. The struct before the rows has fields that are read from several rows, or
/// from more than their text.
macro_rules! settings {
    (
        $(#[$composed_doc:meta])*
        struct $composed:ident { $($(#[$doc:meta])+ $field:ident: $type:ty,)* }
        $($row:expr $(=> $(#[$row_doc:meta])+ $row_field:ident: $row_type:ty = $read:expr)?;)*
    ) => {
        /// All settings of `logpond serve`, in the order of their reference page.
        pub const TABLE: [Setting; [$(stringify!($row)),*].len()] = [$($row),*];

        /// The settings of `logpond serve`: data only, all of it valid.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $($(#[$doc])+ pub $field: $type,)*
            $($($(#[$row_doc])+ pub $row_field: $row_type,)?)*
        }

        $(#[$composed_doc])*
        pub(super) struct $composed {
            $(pub(super) $field: $type,)*
        }

        impl $composed {
            /// Reads the other settings.
            ///
            /// # Errors
            /// When the text of one is no value for it.
            pub(super) fn complete(self, values: &Values<'_>) -> Result<Settings, SettingsError> {
                Ok(Settings {
                    $($field: self.$field,)*
                    $($($row_field: {
                        const ROW: Setting = $row;
                        values.read(ROW.name, $read)?
                    },)?)*
                })
            }
        }
    };
}

settings! {
    /// The settings that are read from several rows, or from more than their text.
    struct CompositeSettings {
        /// What the node does beside answering questions.
        roles: Roles,
        /// The data directory; it may not exist yet.
        data: PathBuf,
        /// Where HTTP listens. Port 0 means any free one, here and below.
        http: SocketAddr,
        /// The addresses of listeners for records.
        listeners: IntakeAddresses,
        /// The clients that may send over TLS.
        syslog_clients: ClientRules,
        /// Names of the listeners that are where they are only by default: nobody asked for them.
        default_listeners: Vec<&'static str>,
        /// The topics of Kafka that are read.
        kafka: KafkaSettings,
        /// Where other nodes are served, if this is one of a cluster.
        gossip: Option<SocketAddr>,
        /// The address for clients of Postgres.
        postgres: Option<SocketAddr>,
        /// The operator's word for this start only.
        at_start: AtStart,
        /// Where segments are put beside the local disk, if anywhere.
        bucket: Option<BucketSettings>,
        /// Labels that declare the fields of the time and the message.
        field_names: Labels,
        /// What is done about alerts.
        alerts: AlertSettings,
        /// Whether addresses beyond loopback are allowed.
        insecure: bool,
        /// The file of tokens; it may not exist.
        tokens: PathBuf,
        /// The certificate of HTTP; without one it is not encrypted.
        tls: Option<CertificateFiles>,
        /// The directory with the certificate of this node of a cluster.
        cluster_tls: Option<PathBuf>,
    }

    setting("data", "DIR", "$STATE_DIRECTORY; else /var/lib/logpond for root; else ~/.local/share/logpond")
        .help("Data directory")
        .shown("default: ~/.local/share/logpond; for root: /var/lib/logpond")
        .hint(Hint::Directory)
        .doc("Where the journal and the segments are kept.");
    setting("http", "ADDR", "127.0.0.1:7650")
        .listens(listener(Intake::Http, 7650, Protocol::Http).titled("Page").beside_records())
        .help("Page, API and metrics")
        .doc("Address of the HTTP interface: the page, the API and the metrics. It cannot be off. Where other machines can reach it, it needs a certificate and tokens, or `insecure`.");
    setting("http-host", "NAME[,NAME…]|off", "off")
        .help("Answer to this name, too, where no token is asked for; may be given several times")
        .value("NAME")
        .repeated()
        .advanced()
        .doc("Names under which HTTP and gRPC may be asked where no token is asked for, beside IP addresses, `localhost` and the names of this machine: `logs.example.org`, `*.example.org` for all names below a domain, `*` for any. A page of another site could pass for the server under any other name, see docs/security.md. A container or a pod is asked by the name of its service, which has to be named here. The flag may be given several times; in the file it may be a list.") =>
        /// Names under which it may be asked without a token, beside those of this machine.
        http_host: Vec<HostName> = host_names;
    setting("fast", "ADDR|off", "127.0.0.1:7651")
        .listens(listener(Intake::Fast, 7651, Protocol::Stream(RAW_LINES)).shown("Lines", "tcp {} (fast)"))
        .help("Raw lines over TCP, not acknowledged")
        .of_intakes()
        .doc("Address for raw lines over TCP without acknowledgement.");
    setting("durable", "ADDR|off", "127.0.0.1:7652")
        .listens(listener(Intake::Durable, 7652, Protocol::Stream(RAW_LINES.durable())).shown("Lines", "tcp {} (durable)"))
        .help("Raw lines over TCP, acknowledged once on disk")
        .of_intakes()
        .doc("Address for raw lines over TCP, answered by `OK <count>` once they are on the disk.");
    setting("lines-udp", "ADDR|off", "off")
        .listens(listener(Intake::LinesUdp, 7654, Protocol::Datagrams(Form::Line)).shown("Lines", "udp {}"))
        .help("Raw lines over UDP, not acknowledged")
        .shown("default: off; port 7654")
        .of_intakes()
        .advanced()
        .doc("Address for raw lines over UDP, one or several in a datagram, such as JSON objects; without a port 7654. There is no acknowledgement.");
    setting("bulk", "ADDR|off", "127.0.0.1:7653")
        .listens(listener(Intake::Bulk, BULK_PORT, Protocol::Bulk).shown("Bulk", "tcp {} (journal files)"))
        .help("Whole journal files over TCP, acknowledged once there are copies")
        .of_intakes()
        .doc("Address for whole journal files over TCP, as `logpond forward --bulk` sends them, answered once as many nodes as configured have copies.");
    setting("syslog-udp", "ADDR|off", "127.0.0.1:5514")
        .listens(listener(Intake::SyslogUdp, 5514, Protocol::Datagrams(Form::Syslog)).titled("Syslog"))
        .help("Syslog over UDP")
        .of_intakes()
        .doc("Address for syslog over UDP.");
    setting("syslog-tcp", "ADDR|off", "127.0.0.1:5514")
        .listens(listener(Intake::SyslogTcp, 5514, Protocol::Stream(SYSLOG)).titled("Syslog"))
        .help("Syslog over TCP")
        .of_intakes()
        .doc("Address for syslog over TCP.");
    setting("syslog-tls", "ADDR|off", "off")
        // RFC 5425, section 4.1.
        .listens(listener(Intake::SyslogTls, 6514, Protocol::Stream(SYSLOG)).encrypted().shown("Syslog", "{} tls"))
        .help("Syslog over TLS, with the certificate of HTTP")
        .shown("default: off; port 6514")
        .of_intakes()
        .doc("Address for syslog over TLS (RFC 5425); without a port 6514. It shows `tls-certificate`. Other machines can reach it only with a rule for clients, or `insecure`.");
    setting("syslog-tls-ca", "FILE|off", "off")
        .help("Authorities that sign for its clients, in PEM")
        .hint(Hint::File)
        .of_intakes()
        .doc("Authorities in PEM that sign for clients of `syslog-tls` and `relp-tls`; a client must show a certificate of theirs then.");
    setting("syslog-tls-peers", "PEER[,PEER…]|off", "off")
        .help("Fingerprints and names of its clients")
        .value("PEERS")
        .of_intakes()
        .doc("Clients of `syslog-tls` and `relp-tls` by the fingerprints of their certificates, whoever signed them (`sha-256:AB:…` or `sha-1:AB:…`), or by names in certificates that `syslog-tls-ca` signed (`host.example.org`, `*.example.org`). All others are refused.");
    setting("dev-log", "PATH|off", "off")
        .help("Syslog of this machine's programs, such as /dev/log")
        .hint(Hint::File)
        .of_intakes()
        .doc("Socket for syslog of this machine's programs, such as `/dev/log`. Each record says which process sent it. No program waits for it: what the journal cannot take waits in memory, up to 64 MiB, and a record says what was lost beyond that.") =>
        /// Where syslog of this machine's programs is taken, if at all.
        dev_log: Option<PathBuf> = optional_file;
    setting("dev-log-stream", "PATH|off", "off")
        .help("The same as a stream socket")
        .hint(Hint::File)
        .of_intakes()
        .advanced()
        .doc("The same as a stream socket, which syslog-ng's `unix-stream()` sends to, and any program where `/dev/log` is one. Messages end with a NUL or a line end, or are counted.") =>
        /// Where it is taken from streams, if at all.
        dev_log_stream: Option<PathBuf> = optional_file;
    setting("journald", "DIR|off", "off")
        .help("Sockets of journald, such as in /run/systemd/journal")
        .hint(Hint::Directory)
        .of_intakes()
        .doc("Directory for the sockets of journald, such as `/run/systemd/journal`, where no journald runs: `socket` for entries with fields, `stdout` for what services print, `dev-log` for syslog. As with `dev-log`, each record says which process sent it, and no program waits.") =>
        /// The directory for the sockets of journald, if there are to be any.
        journald: Option<PathBuf> = optional_file;
    setting("keep-sockets", "DURATION|off", "10s")
        .help("Keep these sockets so long for the next start, and streams open")
        .of_intakes()
        .advanced()
        .doc("How long the sockets of `dev-log` and `journald`, and what services print to, are kept once the server is gone: one that is started meanwhile goes on with them, and no program notices. Until then what programs send waits in the kernel. Up to an hour. `off`: a stop breaks what is open.") =>
        /// How long the sockets of these two, and streams, are kept for the next start, if they are.
        keep_sockets: Option<Duration> = kept_time;
    setting("kmsg", "FILE|off", "off")
        .help("Messages of the kernel: /dev/kmsg")
        .hint(Hint::File)
        .of_intakes()
        .doc("Device of the kernel's messages, `/dev/kmsg`. After a start all that the kernel still has is read; what was taken in before is known by its number.") =>
        /// The device that the kernel's messages are read from, if they are to be.
        kmsg: Option<PathBuf> = optional_file;
    setting("audit", "true|false", "false")
        .help("Listen to the kernel's audit records")
        .switch()
        .of_intakes()
        .advanced()
        .doc("Listens to the records of the kernel's audit system, beside auditd or without it; it needs the capability CAP_AUDIT_READ. Auditing itself is turned on elsewhere.") =>
        /// Whether the kernel's audit records are listened to.
        audit: bool = truth;
    setting("relp", "ADDR|off", "127.0.0.1:2514")
        .listens(listener(Intake::Relp, 2514, Protocol::Relp).shown("RELP", "{}"))
        .help("Syslog over RELP, acknowledged once on disk")
        .of_intakes()
        .doc("Address for syslog over RELP, each message acknowledged once it is on the disk.");
    setting("relp-tls", "ADDR|off", "off")
        // The port after that of RELP.
        .listens(listener(Intake::RelpTls, 2515, Protocol::Relp).encrypted().shown("RELP", "{} tls"))
        .help("RELP over TLS, with the certificate and the clients of syslog over TLS")
        .shown("default: off; port 2515")
        .of_intakes()
        .advanced()
        .doc("Address for RELP over TLS; without a port 2515. Certificate and clients are as for `syslog-tls`.");
    setting("gelf-udp", "ADDR|off", "127.0.0.1:12201")
        .listens(listener(Intake::GelfUdp, 12201, Protocol::Datagrams(Form::Gelf)).titled("GELF"))
        .help("GELF over UDP")
        .of_intakes()
        .doc("Address for GELF over UDP, in one datagram a message or in chunks, compressed or not.");
    setting("gelf-tcp", "ADDR|off", "127.0.0.1:12201")
        .listens(listener(Intake::GelfTcp, 12201, Protocol::Stream(GELF)).titled("GELF"))
        .help("GELF over TCP")
        .of_intakes()
        .doc("Address for GELF over TCP, with a NUL or a line end behind each message.");
    setting("fluent", "ADDR|off", "127.0.0.1:24224")
        .listens(listener(Intake::Fluent, 24224, Protocol::Forward).titled("Fluent"))
        .help("The Forward protocol of Fluentd and Fluent Bit")
        .of_intakes()
        .doc("Address for the Forward protocol of Fluentd and Fluent Bit, each chunk acknowledged once it is on the disk.");
    setting("fluent-security", "FILE|off", "off")
        .help("The shared key and the users of that protocol, in TOML")
        .hint(Hint::File)
        .of_intakes()
        .doc("A TOML file with the `shared-key` that clients of `fluent` must know and, if users are asked for, their passwords below `[users]`.") =>
        /// The file that says what clients of the Forward protocol must know.
        fluent_security: Option<PathBuf> = optional_file;
    setting("otlp-grpc", "ADDR|off", "127.0.0.1:4317")
        .listens(listener(Intake::OtlpGrpc, 4317, Protocol::Grpc).titled("OTLP"))
        .help("Logs of OpenTelemetry over gRPC")
        .of_intakes()
        .doc("Address for logs of OpenTelemetry over gRPC. It is encrypted and asks for tokens as `http` does, here and below.");
    setting("otlp-http", "ADDR|off", "off")
        .listens(listener(Intake::Otlp, 4318, Protocol::Http).titled("OTLP/HTTP"))
        .help("HTTP for exporters of OpenTelemetry, too")
        .shown("default: off; port 4318")
        .of_intakes()
        .doc("Another address of the HTTP interface, for exporters of OpenTelemetry; without a port 4318.");
    setting("loki", "ADDR|off", "off")
        .listens(listener(Intake::Loki, 3100, Protocol::Http).titled("Loki"))
        .help("HTTP for what ships to Loki, too")
        .shown("default: off; port 3100")
        .of_intakes()
        .doc("Another address of the HTTP interface, for what ships to Loki; without a port 3100.");
    setting("elasticsearch", "ADDR|off", "off")
        .listens(listener(Intake::Elastic, 9200, Protocol::Http).titled("Elastic"))
        .help("HTTP for what ships to Elasticsearch, too")
        .shown("default: off; port 9200")
        .of_intakes()
        .doc("Another address of the HTTP interface, for what ships to Elasticsearch; without a port 9200.");
    setting("splunk", "ADDR|off", "off")
        .listens(listener(Intake::Splunk, 8088, Protocol::Http).titled("Splunk"))
        .help("HTTP for what ships to Splunk, too")
        .shown("default: off; port 8088")
        .of_intakes()
        .doc("Another address of the HTTP interface, for what ships to Splunk's event collector; without a port 8088.");
    setting("kafka", "BROKERS/TOPIC[:PARTITIONS]|off", "off")
        .help("Read this topic of Kafka, or some partitions of it; may be given several times")
        .repeated()
        .of_intakes()
        .advanced()
        .doc("Topic of Kafka whose messages are taken in, each once, such as `kafka1:9092,kafka2:9092/logs`, or `kafka1:9092/logs:0-5,8` for some partitions; a partition belongs to one node, see docs/kafka.md. The flag may be given several times; in the file it may be a list, in the variable each topic has a line. Only in builds with the feature `kafka`.");
    setting("kafka-from", "earliest|latest", "earliest")
        .help("Where a partition is begun that was never read: earliest or latest")
        .value("WHERE")
        .of_intakes()
        .advanced()
        .doc("Where a partition is begun that was never read: with what Kafka still has of it, or with what comes from then on.");
    setting("kafka-security", "FILE|off", "off")
        .help("How brokers of Kafka are talked to, in TOML")
        .hint(Hint::File)
        .of_intakes()
        .advanced()
        .doc("A TOML file that says how brokers of Kafka are talked to: `tls`, `ca`, `certificate` and `key`, and below `[sasl]` the `mechanism`, `user` and `password`.");
    setting("postgres", "ADDR|off", "off")
        .listens(listener(Intake::Postgres, 5432, Protocol::Postgres).shown("Postgres", "{}").beside_records())
        .help("SQL for clients of Postgres")
        .shown("default: off; port 5432")
        .advanced()
        .doc("Address for clients of Postgres, such as psql, JDBC and Grafana, which ask in SQL; without a port 5432. It is encrypted and asks for tokens as `http` does; the token is the password. It needs a build with the feature `sql`.");
    setting("gossip", "ADDR|off", "off")
        .listens(listener(Intake::Cluster, GOSSIP_PORT, Protocol::Nodes).shown("Cluster", "{}").beside_records())
        .help("Other nodes of the cluster")
        .shown("default: off; port 7659")
        .doc("Address for other nodes of a cluster; without a port 7659. Off is a node alone.");
    setting("advertise", "ADDR|off", "off")
        .help("Where other nodes reach this one")
        .shown("default: the address of --gossip")
        .doc("The address at which other nodes reach `gossip`; off is the address that it is bound to.") =>
        /// Where other nodes reach that, if it is not where it is bound.
        advertise: Option<SocketAddr> = node;
    setting("join", "HOST[,HOST…]|off", "off")
        .help("Nodes to ask first for the others")
        .value("HOST[,HOST...]")
        .shown("")
        .doc("Nodes of the cluster to ask first for the others, by address or by name; without a port 7659. Of a name all addresses are asked. The first node of a cluster joins nobody, or all nodes have one list or one name of all. Until each was met, answers say that something may be missing.") =>
        /// Nodes to ask first for the others.
        join: Vec<Seed<SocketAddr>> = seeds;
    setting("replication", "COUNT", "1")
        .help("How many nodes of a cluster hold each record")
        .doc("How many nodes of a cluster hold each record, once its journal file was handed on; from 1 to 7. All nodes should have the same.") =>
        /// How many nodes are to hold each record.
        replication: usize = copies;
    setting("zone", "NAME|off", "off")
        .help("Keep copies of a record in different zones, of which this node is in this one")
        .advanced()
        .doc("What the disk of this node of a cluster fails together with: a rack, a room, a data centre. Where stores have zones, the copies of a record are in as many of them as there are, or as there are copies; until they are, the node that took it in keeps it as well. Up to 63 letters, digits, `-`, `_` and `.`.") =>
        /// What this node's disk fails together with; empty if nothing was said.
        zone: String = |text| word(text, ZONE_BYTES_MAX);
    setting("repair-after", "DURATION", "15m")
        .help("Make up for the copies of a node that is gone this long")
        .advanced()
        .doc("How long a node of a cluster may be gone until the others make new copies of what it held; most come back.") =>
        /// How long a node may be gone until others make up for its copies.
        repair_after: Duration = age;
    setting("canary", "DURATION|off", "off")
        .help("Measure this often how soon a record is found through another node")
        .advanced()
        .doc("How often a node of a cluster takes in a record of its own, of `app` logpond-canary, and asks another node for it: so it is measured how soon records are found.") =>
        /// How often it is measured how soon records are found, if at all.
        canary: Option<Duration> = |text| off_or(text, parse_age);
    setting("retain-age", "DURATION|off", "30d")
        .help("Keep records this long after their arrival")
        .doc("How long records are kept, counted from when they were received.") =>
        /// How long after their receive time records are kept; `None` is for ever.
        retain_age: Option<Duration> = |text| off_or_some(text, parse_age);
    setting("retain-size", "SIZE|off", "off")
        .help("Keep at most this many bytes of segments")
        .doc("The most bytes that segments may take; the oldest go first.") =>
        /// The most bytes of all live segments; `None` is no limit.
        retain_size_bytes: Option<u64> = |text| off_or_some(text, parse_bytes);
    setting("confirm-retention", "true|false", "false")
        .help("Remove at once what these two limits remove at this start, however much it is")
        .more("Without it a limit that would remove more than half of the records waits a day.")
        .switch()
        .advanced()
        .doc("Confirms what `retain-age` and `retain-size` remove at this start. Without it a setting that would remove more than half of the records waits a day in which the server runs, and the log says so; restarts do not change that. For one start only: leave it out of files.");
    setting("trust-clock", "true|false", "false")
        .help("Believe the clock at this start, though it is far ahead of the newest record")
        .more("Without it records that are old only by that clock stay for a day, or until a time server, another node or the bucket agrees with it.")
        .switch()
        .advanced()
        .doc("Says that the clock is right at this start. Without it records that are old only by a clock which is ahead of all that is known to have passed stay, until a time server, another node or the bucket agrees with the clock, or it has stayed like that for a day in which the server runs. For one start only: leave it out of files.");
    setting("keep-free", "SIZE|PERCENT", "20%")
        .help("Leave this much of the disk free")
        .doc("How much of the disk is left free: the oldest segments go first, then new records are refused. The newest GiB (or tenth of the disk) stays until the disk is all but full.") =>
        /// How much of the disk stays free.
        keep_free: Size = room;
    setting("scrub-every", "DURATION|off", "14d")
        .help("Read each segment once in this time, to find damage early")
        .advanced()
        .doc("In which time each segment on the local disk is read once, in the background, to find damage before somebody needs what is damaged; from `1s`. In a cluster, or with a bucket, a sound copy takes the place of one that is damaged.") =>
        /// In which time each segment on the local disk is read once to find damage, if ever.
        scrub_every: Option<Duration> = scrub_time;
    setting("bucket", "URL|off", "off")
        .help("Put all segments into this object store, too")
        .more("What the disk has no room for is read from there.")
        .advanced()
        .doc("Object store that all segments are put into as well: `s3://NAME/PREFIX`, `gs://NAME/PREFIX`, `az://CONTAINER/PREFIX` or `file:DIRECTORY`. Credentials, region and endpoint come from the variables that the vendor's own tools read, such as `AWS_ACCESS_KEY_ID` and `AWS_ENDPOINT_URL`. Where the local disk runs out of room, segments are read from there instead of being removed: how long data is kept, `retain-age` and `retain-size` say alone.");
    setting("bucket-cache", "SIZE", "4GiB")
        .help("Keep this much of what was read from the bucket on the disk")
        .advanced()
        .doc("How much of what was read from the bucket is kept on the local disk, the latest used.");
    setting("open-table", "DURATION|off", "1m")
        .help("Show the bucket as a table to other engines, at most so long after a change")
        .advanced()
        .doc("How often at most the bucket is shown as a table that other engines read (Delta Lake), see docs/open-tables.md; `off`: it is not, or no longer.");
    setting("local-age", "DURATION|off", "off")
        .help("Keep what is in the bucket on the disk for this long, too")
        .advanced()
        .doc("How long what is in the bucket stays on the local disk, too; `off`: as long as there is room.");
    setting("local-size", "SIZE|off", "off")
        .help("Keep at most this much of what is in the bucket on the disk, too")
        .advanced()
        .doc("The most bytes of what is in the bucket that stay on the local disk, too; `off`: as many as there is room for.");
    setting("memory", "SIZE|PERCENT", "40%")
        .help("Share this much memory between queries, caches and all else")
        .doc("The memory that queries and caches share with all else in the process, see docs/memory.md; `PERCENT` is of the machine, or of the container. At least 32MiB.") =>
        /// How much memory queries and caches share with all else.
        memory: Size = memory;
    setting("line-bytes-max", "SIZE", "1MiB")
        .help("The longest line that is taken whole")
        .of_intakes()
        .doc("The longest line that is taken whole; from 1KiB to 32MiB.") =>
        /// The longest line that is taken whole, in bytes.
        line_bytes_max: usize = line_bytes;
    setting("hostname", "NAME|off", "off")
        .help("The name of this machine in records that name no host")
        .shown("default: as the kernel has it")
        .of_intakes()
        .advanced()
        .doc("The name of this machine, in records that its programs send and that name no host; `off` is the kernel's name for it. In a container that is often the id of the container. Up to 253 letters, digits, `-`, `_` and `.`.") =>
        /// The name of this machine; empty for that of the kernel.
        hostname: String = |text| word(text, HOSTNAME_BYTES_MAX);
    setting("access-log", "NAME=FORMAT|off", "off")
        .help("A log_format of nginx or LogFormat of Apache; may be given several times")
        .repeated()
        .of_intakes()
        .doc("A format of access logs, as nginx's `log_format` or Apache's `LogFormat` has it; lines that it fits become fields, and have its name in the field `access_log`. The flag may be given several times; in the file it may be a list, in the variable each format begins a line.") =>
        /// Labels that declare formats of access logs.
        access_logs: Labels = access_logs;
    setting("time-field", "NAME,...|off", "off")
        .help("The field with the time of objects, before all known names; may be given several times")
        .repeated()
        .of_intakes()
        .advanced()
        .doc("The field with the time of objects and of logfmt, before all names that are known, see docs/sources.md; of several the first one that is an instant counts. The flag may be given several times; in the file it may be a list.");
    setting("message-field", "NAME,...|off", "off")
        .help("The field with the message of objects, likewise")
        .repeated()
        .of_intakes()
        .advanced()
        .doc("The same for the message; of several fields the first one that is text counts.");
    setting("timezone", "[NETWORK=]ZONE", "local")
        .help("The zone of times that say none, also of a network's; may be given several times")
        .repeated()
        .of_intakes()
        .advanced()
        .hyphened()
        .doc("The zone of times in lines that say none: `local`, a name such as `Europe/Berlin`, an offset such as `+02:00`, or a rule of POSIX. `10.1.0.0/16=America/Lima` is for what comes from there by syslog and raw TCP. The flag may be given several times; in the file it may be a list, in the variable each zone has a line.") =>
        /// The zones of times that say none.
        timezones: Timezones = timezones::timezones;
    setting("rules", "FILE|off", "off")
        .help("Drop, sample, redact, hash and limit records as this file says")
        .hint(Hint::File)
        .of_intakes()
        .doc("A TOML file that says which records are dropped or thinned out, which fields are redacted, hashed or added, and how much a source may send, see docs/rules.md. A changed file is taken in while the server runs.") =>
        /// The file that says what happens to records on their way in.
        rules: Option<PathBuf> = optional_file;
    setting("alert-rules", "PATH|off", "off")
        .help("Evaluate the alert rules of this file, or of the files of this directory")
        .hint(Hint::Path)
        .advanced()
        .doc("Alert and recording rules as Prometheus and Loki have them: a YAML file, or a directory whose `*.yml` and `*.yaml` files are read, see docs/alerts.md. Changed files are taken in while the server runs.");
    setting("alertmanager", "URL|off", "off")
        .help("Tell this Alertmanager of alerts; may be given several times")
        .repeated()
        .advanced()
        .doc("The address of an Alertmanager that is told of alerts, such as `http://127.0.0.1:9093`, also with `USER:PASSWORD@`. The flag may be given several times; in the file it may be a list, in the variable each address has a line.");
    setting("alert-webhook", "URL|off", "off")
        .help("Tell this webhook when alerts begin and end; may be given several times")
        .repeated()
        .advanced()
        .doc("An address that is told when alerts begin and end, in the form in which an Alertmanager tells webhooks. As `alertmanager` it may be several.");
    setting("external-url", "URL|off", "off")
        .help("The address for links in notices of alerts")
        .shown("default: that of --http")
        .advanced()
        .doc("The address at which people reach the server, for links in notices of alerts; off is the address of `http`.");
    setting("ready-file", "FILE|off", "off")
        .help("Write the bound addresses to this file, as JSON, once ready")
        .shown("")
        .hint(Hint::File)
        .advanced()
        .doc("A file that is written once the server is ready, with the bound addresses as JSON.") =>
        /// The file that says that the server is ready.
        ready_file: Option<PathBuf> = optional_file;
    setting("insecure", "true|false", "false")
        .help("Allow addresses that other machines can reach")
        .switch()
        .doc("Allows addresses that other machines can reach although nothing there is encrypted or authenticated.");
    setting("tokens", "FILE", "tokens.toml in the data directory")
        .help("The file of tokens")
        .hint(Hint::File)
        .doc("The file of tokens, which `logpond token` writes; several servers may read one.");
    setting("require-token", "true|false", "false")
        .help("Ask for a token also where only this machine can connect")
        .switch()
        .doc("Asks for a token also where only this machine can connect, and with `insecure`. HTTP only: raw TCP and syslog know no tokens.") =>
        /// Whether HTTP asks for a token wherever it listens.
        require_token: bool = truth;
    setting("tenant-header", "NAME|off", "off")
        .help("The header of a request that names its tenant")
        .value("NAME")
        .advanced()
        .doc("The header that names the tenant of a request over HTTP or gRPC, such as `X-Scope-OrgID`. Records that are pushed get the field `tenant` with its value, and questions are answered from records with that value only. A request without the header is refused, but with a token that is bound or of the role admin.") =>
        /// The header that names the tenant of a request; empty if none does.
        tenant_header: String = |text| word(text, TENANT_HEADER_BYTES_MAX);
    setting("audit-log", "off|metadata|queries", "off")
        .help("Keep records of who asked what")
        .value("LEVEL")
        .advanced()
        .doc("Keeps a record of each question and of each administration, which only tokens of the role admin can read: `record=logpond.audit`. `metadata` is without the text of questions, `queries` with it.") =>
        /// The records of questions that are kept.
        audit_log: AuditLevel = audit_level;
    setting("tls-certificate", "FILE|off", "off")
        .help("The certificate of HTTP, in PEM")
        .hint(Hint::File)
        .doc("The certificate of HTTP in PEM, followed by those between it and an authority; HTTP is then encrypted. Changed files are taken in while the server runs.");
    setting("tls-key", "FILE|off", "off")
        .help("The private key of that certificate, in PEM")
        .hint(Hint::File)
        .doc("The private key of that certificate in PEM.");
    setting("cluster-tls", "DIR|off", "off")
        .help("The directory with this node's certificate for its cluster")
        .hint(Hint::Directory)
        .doc("The directory with this node's certificate, as `logpond cluster certificate` makes it: ca.pem, node.pem and node.key. Nodes of a cluster encrypt what they say to each other, and believe only each other.");
}
