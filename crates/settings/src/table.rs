//! The table of settings.

use super::PREFIX;

/// One setting: the only place that knows its names, default and meaning.
pub struct Setting {
    /// The key in `logpond.toml` and, with `--` before it, the flag.
    pub name: &'static str,
    /// What a value looks like.
    pub form: &'static str,
    /// The default as it would be written; of the data directory, in words.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
}

impl Setting {
    /// The environment variable: [`PREFIX`] and the name in capitals.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_uppercase().replace('-', "_"))
    }
}

/// All settings of `logpond serve`, in the order of their reference page.
pub const TABLE: [Setting; 67] = [
    Setting {
        name: "data",
        form: "DIR",
        default: "$STATE_DIRECTORY; else /var/lib/logpond for root; else ~/.local/share/logpond",
        doc: "Where the journal and the segments are kept.",
    },
    Setting {
        name: "http",
        form: "ADDR",
        default: "127.0.0.1:7650",
        doc: "Address of the HTTP interface: the page, the API and the metrics. It cannot be off. Where other machines can reach it, it needs a certificate and tokens, or `insecure`.",
    },
    Setting {
        name: "http-host",
        form: "NAME[,NAME…]|off",
        default: "off",
        doc: "Names under which HTTP and gRPC may be asked where no token is asked for, beside IP addresses, `localhost` and the names of this machine: `logs.example.org`, `*.example.org` for all names below a domain, `*` for any. A page of another site could pass for the server under any other name, see docs/security.md. A container or a pod is asked by the name of its service, which has to be named here. The flag may be given several times; in the file it may be a list.",
    },
    Setting {
        name: "fast",
        form: "ADDR|off",
        default: "127.0.0.1:7651",
        doc: "Address for raw lines over TCP without acknowledgement.",
    },
    Setting {
        name: "durable",
        form: "ADDR|off",
        default: "127.0.0.1:7652",
        doc: "Address for raw lines over TCP, answered by `OK <count>` once they are on the disk.",
    },
    Setting {
        name: "bulk",
        form: "ADDR|off",
        default: "127.0.0.1:7653",
        doc: "Address for whole journal files over TCP, as `logpond forward --bulk` sends them, answered once as many nodes as configured have copies.",
    },
    Setting {
        name: "syslog-udp",
        form: "ADDR|off",
        default: "127.0.0.1:5514",
        doc: "Address for syslog over UDP.",
    },
    Setting {
        name: "syslog-tcp",
        form: "ADDR|off",
        default: "127.0.0.1:5514",
        doc: "Address for syslog over TCP.",
    },
    Setting {
        name: "syslog-tls",
        form: "ADDR|off",
        default: "off",
        doc: "Address for syslog over TLS (RFC 5425); without a port 6514. It shows `tls-certificate`. Other machines can reach it only with a rule for clients, or `insecure`.",
    },
    Setting {
        name: "syslog-tls-ca",
        form: "FILE|off",
        default: "off",
        doc: "Authorities in PEM that sign for clients of `syslog-tls` and `relp-tls`; a client must show a certificate of theirs then.",
    },
    Setting {
        name: "syslog-tls-peers",
        form: "PEER[,PEER…]|off",
        default: "off",
        doc: "Clients of `syslog-tls` and `relp-tls` by the fingerprints of their certificates, whoever signed them (`sha-256:AB:…` or `sha-1:AB:…`), or by names in certificates that `syslog-tls-ca` signed (`host.example.org`, `*.example.org`). All others are refused.",
    },
    Setting {
        name: "dev-log",
        form: "PATH|off",
        default: "off",
        doc: "Socket for syslog of this machine's programs, such as `/dev/log`. Each record says which process sent it. No program waits for it: what the journal cannot take waits in memory, up to 64 MiB, and a record says what was lost beyond that.",
    },
    Setting {
        name: "dev-log-stream",
        form: "PATH|off",
        default: "off",
        doc: "The same as a stream socket, which syslog-ng's `unix-stream()` sends to, and any program where `/dev/log` is one. Messages end with a NUL or a line end, or are counted.",
    },
    Setting {
        name: "journald",
        form: "DIR|off",
        default: "off",
        doc: "Directory for the sockets of journald, such as `/run/systemd/journal`, where no journald runs: `socket` for entries with fields, `stdout` for what services print, `dev-log` for syslog. As with `dev-log`, each record says which process sent it, and no program waits.",
    },
    Setting {
        name: "keep-sockets",
        form: "DURATION|off",
        default: "10s",
        doc: "How long the sockets of `dev-log` and `journald`, and what services print to, are kept once the server is gone: one that is started meanwhile goes on with them, and no program notices. Until then what programs send waits in the kernel. Up to an hour. `off`: a stop breaks what is open.",
    },
    Setting {
        name: "kmsg",
        form: "FILE|off",
        default: "off",
        doc: "Device of the kernel's messages, `/dev/kmsg`. After a start all that the kernel still has is read; what was taken in before is known by its number.",
    },
    Setting {
        name: "audit",
        form: "true|false",
        default: "false",
        doc: "Listens to the records of the kernel's audit system, beside auditd or without it; it needs the capability CAP_AUDIT_READ. Auditing itself is turned on elsewhere.",
    },
    Setting {
        name: "relp",
        form: "ADDR|off",
        default: "127.0.0.1:2514",
        doc: "Address for syslog over RELP, each message acknowledged once it is on the disk.",
    },
    Setting {
        name: "relp-tls",
        form: "ADDR|off",
        default: "off",
        doc: "Address for RELP over TLS; without a port 2515. Certificate and clients are as for `syslog-tls`.",
    },
    Setting {
        name: "gelf-udp",
        form: "ADDR|off",
        default: "127.0.0.1:12201",
        doc: "Address for GELF over UDP, in one datagram a message or in chunks, compressed or not.",
    },
    Setting {
        name: "gelf-tcp",
        form: "ADDR|off",
        default: "127.0.0.1:12201",
        doc: "Address for GELF over TCP, with a NUL or a line end behind each message.",
    },
    Setting {
        name: "fluent",
        form: "ADDR|off",
        default: "127.0.0.1:24224",
        doc: "Address for the Forward protocol of Fluentd and Fluent Bit, each chunk acknowledged once it is on the disk.",
    },
    Setting {
        name: "fluent-security",
        form: "FILE|off",
        default: "off",
        doc: "A TOML file with the `shared-key` that clients of `fluent` must know and, if users are asked for, their passwords below `[users]`.",
    },
    Setting {
        name: "otlp-grpc",
        form: "ADDR|off",
        default: "127.0.0.1:4317",
        doc: "Address for logs of OpenTelemetry over gRPC. It is encrypted and asks for tokens as `http` does, here and below.",
    },
    Setting {
        name: "otlp-http",
        form: "ADDR|off",
        default: "off",
        doc: "Another address of the HTTP interface, for exporters of OpenTelemetry; without a port 4318.",
    },
    Setting {
        name: "loki",
        form: "ADDR|off",
        default: "off",
        doc: "Another address of the HTTP interface, for what ships to Loki; without a port 3100.",
    },
    Setting {
        name: "elasticsearch",
        form: "ADDR|off",
        default: "off",
        doc: "Another address of the HTTP interface, for what ships to Elasticsearch; without a port 9200.",
    },
    Setting {
        name: "splunk",
        form: "ADDR|off",
        default: "off",
        doc: "Another address of the HTTP interface, for what ships to Splunk's event collector; without a port 8088.",
    },
    Setting {
        name: "kafka",
        form: "BROKERS/TOPIC[:PARTITIONS]|off",
        default: "off",
        doc: "Topic of Kafka whose messages are taken in, each once, such as `kafka1:9092,kafka2:9092/logs`, or `kafka1:9092/logs:0-5,8` for some partitions; a partition belongs to one node, see docs/kafka.md. The flag may be given several times; in the file it may be a list, in the variable each topic has a line. Only in builds with the feature `kafka`.",
    },
    Setting {
        name: "kafka-from",
        form: "earliest|latest",
        default: "earliest",
        doc: "Where a partition is begun that was never read: with what Kafka still has of it, or with what comes from then on.",
    },
    Setting {
        name: "kafka-security",
        form: "FILE|off",
        default: "off",
        doc: "A TOML file that says how brokers of Kafka are talked to: `tls`, `ca`, `certificate` and `key`, and below `[sasl]` the `mechanism`, `user` and `password`.",
    },
    Setting {
        name: "gossip",
        form: "ADDR|off",
        default: "off",
        doc: "Address for other nodes of a cluster; without a port 7659. Off is a node alone.",
    },
    Setting {
        name: "advertise",
        form: "ADDR|off",
        default: "off",
        doc: "The address at which other nodes reach `gossip`; off is the address that it is bound to.",
    },
    Setting {
        name: "join",
        form: "ADDR[,ADDR…]|off",
        default: "off",
        doc: "Nodes of the cluster to ask first for the others. The first node of a cluster joins nobody. Until each was met, answers say that something may be missing.",
    },
    Setting {
        name: "replication",
        form: "COUNT",
        default: "1",
        doc: "How many nodes of a cluster hold each record, once its journal file was handed on; from 1 to 7. All nodes should have the same.",
    },
    Setting {
        name: "zone",
        form: "NAME|off",
        default: "off",
        doc: "What the disk of this node of a cluster fails together with: a rack, a room, a data centre. Where stores have zones, the copies of a record are in as many of them as there are, or as there are copies; until they are, the node that took it in keeps it as well. Up to 63 letters, digits, `-`, `_` and `.`.",
    },
    Setting {
        name: "repair-after",
        form: "DURATION",
        default: "15m",
        doc: "How long a node of a cluster may be gone until the others make new copies of what it held; most come back.",
    },
    Setting {
        name: "canary",
        form: "DURATION|off",
        default: "off",
        doc: "How often a node of a cluster takes in a record of its own, of `app` logpond-canary, and asks another node for it: so it is measured how soon records are found.",
    },
    Setting {
        name: "retain-age",
        form: "DURATION|off",
        default: "30d",
        doc: "How long records are kept, counted from when they were received.",
    },
    Setting {
        name: "retain-size",
        form: "SIZE|off",
        default: "off",
        doc: "The most bytes that segments may take; the oldest go first.",
    },
    Setting {
        name: "confirm-retention",
        form: "true|false",
        default: "false",
        doc: "Confirms what `retain-age` and `retain-size` remove at this start. Without it a setting that would remove more than half of the records waits a day in which the server runs, and the log says so; restarts do not change that. For one start only: leave it out of files.",
    },
    Setting {
        name: "trust-clock",
        form: "true|false",
        default: "false",
        doc: "Says that the clock is right at this start. Without it records that are old only by a clock which is ahead of all that is known to have passed stay, until a time server, another node or the bucket agrees with the clock, or it has stayed like that for a day in which the server runs. For one start only: leave it out of files.",
    },
    Setting {
        name: "keep-free",
        form: "SIZE|PERCENT",
        default: "20%",
        doc: "How much of the disk is left free: the oldest segments go first, then new records are refused. The newest GiB (or tenth of the disk) stays until the disk is all but full.",
    },
    Setting {
        name: "scrub-every",
        form: "DURATION|off",
        default: "14d",
        doc: "In which time each segment on the local disk is read once, in the background, to find damage before somebody needs what is damaged; from `1s`. In a cluster, or with a bucket, a sound copy takes the place of one that is damaged.",
    },
    Setting {
        name: "bucket",
        form: "URL|off",
        default: "off",
        doc: "Object store that all segments are put into as well: `s3://NAME/PREFIX`, `gs://NAME/PREFIX`, `az://CONTAINER/PREFIX` or `file:DIRECTORY`. Credentials, region and endpoint come from the variables that the vendor's own tools read, such as `AWS_ACCESS_KEY_ID` and `AWS_ENDPOINT_URL`. Where the local disk runs out of room, segments are read from there instead of being removed: how long data is kept, `retain-age` and `retain-size` say alone.",
    },
    Setting {
        name: "bucket-cache",
        form: "SIZE",
        default: "4GiB",
        doc: "How much of what was read from the bucket is kept on the local disk, the latest used.",
    },
    Setting {
        name: "open-table",
        form: "DURATION|off",
        default: "1m",
        doc: "How often at most the bucket is shown as a table that other engines read (Delta Lake), see docs/open-tables.md; `off`: it is not, or no longer.",
    },
    Setting {
        name: "local-age",
        form: "DURATION|off",
        default: "off",
        doc: "How long what is in the bucket stays on the local disk, too; `off`: as long as there is room.",
    },
    Setting {
        name: "local-size",
        form: "SIZE|off",
        default: "off",
        doc: "The most bytes of what is in the bucket that stay on the local disk, too; `off`: as many as there is room for.",
    },
    Setting {
        name: "memory",
        form: "SIZE|PERCENT",
        default: "40%",
        doc: "The memory that queries and caches share with all else in the process, see docs/memory.md; `PERCENT` is of the machine, or of the container. At least 32MiB.",
    },
    Setting {
        name: "line-bytes-max",
        form: "SIZE",
        default: "1MiB",
        doc: "The longest line that is taken whole; from 1KiB to 32MiB.",
    },
    Setting {
        name: "access-log",
        form: "NAME=FORMAT|off",
        default: "off",
        doc: "A format of access logs, as nginx's `log_format` or Apache's `LogFormat` has it; lines that it fits become fields, and have its name in the field `access_log`. The flag may be given several times; in the file it may be a list, in the variable each format begins a line.",
    },
    Setting {
        name: "time-field",
        form: "NAME,...|off",
        default: "off",
        doc: "The field with the time of objects and of logfmt, before all names that are known, see docs/sources.md; of several the first one that is an instant counts. The flag may be given several times; in the file it may be a list.",
    },
    Setting {
        name: "message-field",
        form: "NAME,...|off",
        default: "off",
        doc: "The same for the message; of several fields the first one that is text counts.",
    },
    Setting {
        name: "timezone",
        form: "[NETWORK=]ZONE",
        default: "local",
        doc: "The zone of times in lines that say none: `local`, a name such as `Europe/Berlin`, an offset such as `+02:00`, or a rule of POSIX. `10.1.0.0/16=America/Lima` is for what comes from there by syslog and raw TCP. The flag may be given several times; in the file it may be a list, in the variable each zone has a line.",
    },
    Setting {
        name: "rules",
        form: "FILE|off",
        default: "off",
        doc: "A TOML file that says which records are dropped or thinned out, which fields are redacted, hashed or added, and how much a source may send, see docs/rules.md. A changed file is taken in while the server runs.",
    },
    Setting {
        name: "alert-rules",
        form: "PATH|off",
        default: "off",
        doc: "Alert and recording rules as Prometheus and Loki have them: a YAML file, or a directory whose `*.yml` and `*.yaml` files are read, see docs/alerts.md. Changed files are taken in while the server runs.",
    },
    Setting {
        name: "alertmanager",
        form: "URL|off",
        default: "off",
        doc: "The address of an Alertmanager that is told of alerts, such as `http://127.0.0.1:9093`, also with `USER:PASSWORD@`. The flag may be given several times; in the file it may be a list, in the variable each address has a line.",
    },
    Setting {
        name: "alert-webhook",
        form: "URL|off",
        default: "off",
        doc: "An address that is told when alerts begin and end, in the form in which an Alertmanager tells webhooks. As `alertmanager` it may be several.",
    },
    Setting {
        name: "external-url",
        form: "URL|off",
        default: "off",
        doc: "The address at which people reach the server, for links in notices of alerts; off is the address of `http`.",
    },
    Setting {
        name: "ready-file",
        form: "FILE|off",
        default: "off",
        doc: "A file that is written once the server is ready, with the bound addresses as JSON.",
    },
    Setting {
        name: "insecure",
        form: "true|false",
        default: "false",
        doc: "Allows addresses that other machines can reach although nothing there is encrypted or authenticated.",
    },
    Setting {
        name: "tokens",
        form: "FILE",
        default: "tokens.toml in the data directory",
        doc: "The file of tokens, which `logpond token` writes; several servers may read one.",
    },
    Setting {
        name: "require-token",
        form: "true|false",
        default: "false",
        doc: "Asks for a token also where only this machine can connect, and with `insecure`. HTTP only: raw TCP and syslog know no tokens.",
    },
    Setting {
        name: "tls-certificate",
        form: "FILE|off",
        default: "off",
        doc: "The certificate of HTTP in PEM, followed by those between it and an authority; HTTP is then encrypted. Changed files are taken in while the server runs.",
    },
    Setting {
        name: "tls-key",
        form: "FILE|off",
        default: "off",
        doc: "The private key of that certificate in PEM.",
    },
    Setting {
        name: "cluster-tls",
        form: "DIR|off",
        default: "off",
        doc: "The directory with this node's certificate, as `logpond cluster certificate` makes it: ca.pem, node.pem and node.key. Nodes of a cluster encrypt what they say to each other, and believe only each other.",
    },
];
