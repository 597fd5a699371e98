//! The places where records come in: one row each.

/// Makes [`Intake`], [`INTAKES`] and the labels of rows `Name = "label"`.
macro_rules! intakes {
    ($($(#[$doc:meta])+ $name:ident = $label:literal,)+) => {
        /// A way in for records.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Intake {
            $($(#[$doc])+ $name,)+
        }

        /// All intakes, in the order of their numbers.
        pub const INTAKES: [Intake; [$($label),+].len()] = [$(Intake::$name),+];

        impl Intake {
            /// The name in labels, settings and answers.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Intake::$name => $label,)+
                }
            }
        }
    };
}

intakes! {
    /// Raw lines over TCP, acknowledged by nothing.
    Fast = "fast",
    /// Raw lines over TCP, acknowledged after the sync.
    Durable = "durable",
    /// Raw lines in datagrams.
    LinesUdp = "lines_udp",
    /// Uploads over TCP, answered once they are replicated.
    Bulk = "bulk",
    /// Syslog datagrams.
    SyslogUdp = "syslog_udp",
    /// Syslog over TCP.
    SyslogTcp = "syslog_tcp",
    /// Syslog over TLS.
    SyslogTls = "syslog_tls",
    /// Syslog datagrams of this machine's programs.
    DevLog = "dev_log",
    /// Syslog streams of this machine's programs.
    DevLogStream = "dev_log_stream",
    /// Entries for journald.
    Journal = "journal",
    /// The output of services.
    Stdout = "stdout",
    /// Messages of the kernel.
    Kernel = "kernel",
    /// Audit records of the kernel.
    Audit = "audit",
    /// Syslog over RELP, each message acknowledged after the sync.
    Relp = "relp",
    /// The same over TLS.
    RelpTls = "relp_tls",
    /// GELF datagrams.
    GelfUdp = "gelf_udp",
    /// GELF over TCP.
    GelfTcp = "gelf_tcp",
    /// GELF over HTTP.
    GelfHttp = "gelf_http",
    /// The Forward protocol of Fluentd.
    Fluent = "fluent",
    /// `POST /api/v1/push`.
    Http = "http",
    /// Loki's push API.
    Loki = "loki",
    /// Elasticsearch's bulk API.
    Elastic = "elastic",
    /// Logs of OpenTelemetry.
    Otlp = "otlp",
    /// The same over gRPC.
    OtlpGrpc = "otlp_grpc",
    /// Splunk's event collector.
    Splunk = "splunk",
    /// HTTPS drains of Heroku.
    Logplex = "logplex",
    /// The log intake of Datadog.
    Datadog = "datadog",
    /// Deliveries of AWS Firehose.
    Firehose = "firehose",
    /// Push deliveries of Google Pub/Sub.
    PubSub = "pubsub",
    /// Cloudflare Logpush.
    Logpush = "logpush",
    /// Ingestion of VictoriaLogs.
    JsonLine = "jsonline",
    /// Uploads of systemd's journal.
    JournalUpload = "journal_upload",
    /// Topics of Kafka.
    Kafka = "kafka",
    /// Calls of other nodes.
    Cluster = "cluster",
    /// Statements of clients of Postgres: it has connections, and no records.
    Postgres = "postgres",
}
