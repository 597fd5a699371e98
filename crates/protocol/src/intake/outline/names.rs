//! Names by which documents say their time, their message and their level.
//!
//! Each table is in the order of precedence: of the time fields the first that is an instant counts, of the
//! message fields the first that is text, of the level fields the first that is there. Names of the programs
//! that almost all logs come from stand first, then those of one product each; a name that other documents
//! may have for something else needs a field beside it that only its product has.
//!
//! A time or a message under one of the first names is the record's and no field beside it ([`Place::Own`]);
//! under all other names it stays a field, too.

use logpond_record::SEVERITY_LABELS;

use super::products::PRODUCTS;
use super::scale::Scale;

/// The place of a time or a message: the record's own, or a field, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is the record's only.
    Own,
    /// It stays a field.
    Field,
}

/// A name for a time or a message.
pub(super) struct Name {
    pub(super) name: &'static str,
    /// A field that must be in the document, too; empty if none must.
    pub(super) beside: &'static str,
    pub(super) place: Place,
    /// True if it is UTC by the definition of its product, also where it does not say so.
    pub(super) is_utc: bool,
}

const fn own(name: &'static str) -> Name {
    Name {
        name,
        beside: "",
        place: Place::Own,
        is_utc: false,
    }
}

const fn field(name: &'static str) -> Name {
    with(name, "")
}

const fn with(name: &'static str, beside: &'static str) -> Name {
    Name {
        name,
        beside,
        place: Place::Field,
        is_utc: false,
    }
}

const fn utc(name: &'static str, beside: &'static str) -> Name {
    Name {
        is_utc: true,
        ..with(name, beside)
    }
}

/// Names of the time.
pub(super) const TIMES: [Name; 203] = [
    own("_time"),
    own("time"),
    own("timestamp"),
    own("ts"),
    own("@timestamp"),
    // Serilog's compact form, .NET's JSON console and Serilog's other forms.
    field("@t"),
    field("Timestamp"),
    // Database servers: MongoDB's structured log, MySQL has `time`.
    field("t.$date"),
    field("t.$date.$numberLong"),
    field("timestamp.$date"),
    field("timestamp.$date.$numberLong"),
    field("time.$date"),
    field("ts.$date"),
    field("date.$date"),
    // Audit logs: Kubernetes, AWS CloudTrail, Azure, Microsoft 365, Entra, Okta, Windows, NXLog.
    field("requestReceivedTimestamp"),
    with("stageTimestamp", "auditID"),
    field("eventTime"),
    field("eventTimestamp"),
    utc("TimeGenerated", ""),
    utc("timeGenerated", "operationName"),
    field("timeStamp"),
    utc("createdDateTime", ""),
    utc("activityDateTime", ""),
    utc("CreationTime", "Workload"),
    utc("CreationDate", "AuditData"),
    with("published", "eventType"),
    // Kubernetes' events, also as a watch gives them.
    with("lastTimestamp", "involvedObject.kind"),
    with("object.lastTimestamp", "object.involvedObject.kind"),
    field("TimeCreated"),
    field("EventTime"),
    field("Event.System.TimeCreated.#attributes.SystemTime"),
    field("Event.System.TimeCreated.SystemTime"),
    // Java: log4j2's layouts have the instant in two fields, see [`PAIRS`].
    field("timeMillis"),
    field("instant"),
    // Python: json-logger, loguru.
    field("asctime"),
    field("record.time.repr"),
    field("record.time.timestamp"),
    // PHP: Monolog.
    field("datetime"),
    // Google's LogEntry, where its own timestamp is missing.
    field("receiveTimestamp"),
    // OpenTelemetry's data as JSON.
    field("timeUnixNano"),
    field("observedTimeUnixNano"),
    // Proxies: nginx's variables, Envoy, Traefik, Cloudflare, CloudFront in JSON.
    field("time_iso8601"),
    field("msec"),
    field("time_local"),
    field("start_time"),
    utc("StartUTC", ""),
    field("EdgeStartTimestamp"),
    field("Datetime"),
    field("timestamp_ms"),
    // Kong, and GitHub's events.
    with("started_at", "request.method"),
    // ModSecurity's audit log.
    field("transaction.time_stamp"),
    with("created_at", "actor.login"),
    // Amazon's API Gateway, Akamai, Vercel.
    with("requestTimeEpoch", "httpMethod"),
    with("requestTime", "httpMethod"),
    with("reqTimeSec", "cliIP"),
    field("proxy.timestamp"),
    // journalctl -o json: the time at which the journal took the entry.
    field("__REALTIME_TIMESTAMP"),
    // Macros of syslog-ng, and properties of rsyslog, in documents that they make.
    field("ISODATE"),
    field("S_ISODATE"),
    field("timereported"),
    field("timegenerated"),
    with("DATE", "PROGRAM"),
    // osquery.
    field("unixTime"),
    // Fortinet.
    field("eventtime"),
    field("calendarTime"),
    // Elastic's schema, where `@timestamp` is missing.
    field("event.created"),
    // Node: tslog, log4js.
    with("_meta.date", "_meta.logLevelName"),
    with("startTime", "categoryName"),
    // SAP's loggers for the cloud, Liberty, Elixir's logger_json, katip.
    with("written_at", "written_ts"),
    field("ibm_datetime"),
    with("syslog.timestamp", "syslog.severity"),
    with("at", "sev"),
    // GuardDuty and Security Hub.
    with("updatedAt", "schemaVersion"),
    with("UpdatedAt", "SchemaVersion"),
    field("observedTimestamp"),
    field("ObservedTimestamp"),
    field("log.timestamp"),
    // Loggers whose names for it are configured.
    field("TIMESTAMP"),
    field("TimeStamp"),
    field("Time"),
    field("TIME"),
    utc("datetime_utc", ""),
    field("dateTime"),
    field("DateTime"),
    field("date_time"),
    utc("timestampUtc", ""),
    utc("timestamp_utc", ""),
    field("logTime"),
    field("log_time"),
    field("logtime"),
    field("log_timestamp"),
    field("logTimestamp"),
    field("event_time"),
    field("event_timestamp"),
    field("time_ms"),
    field("ts_ms"),
    field("epoch_ms"),
    field("epochMillis"),
    field("epoch_millis"),
    field("epoch"),
    field("unix_time"),
    field("unixtime"),
    field("unix_timestamp"),
    field("time_stamp"),
    field("timestampMillis"),
    field("timestamp_millis"),
    field("timestampMs"),
    field("_timestamp"),
    field("__timestamp"),
    field("dt"),
    field("log_date"),
    field("logdate"),
    field("date"),
    field("Date"),
    // log15 and zap's development encoder.
    field("t"),
    with("T", "L"),
    // Python's LogRecord as it is.
    with("created", "levelname"),
    // Events of services: Slack, Cloudflare, Stripe, MongoDB Atlas, Sentry, Papertrail, and others by a kind of
    // event. A record of a program may have `created_at` for the object that it is about.
    with("date_create", "actor.type"),
    with("when", "actor.email"),
    with("created", "api_version"),
    with("created", "eventTypeName"),
    with("dateCreated", "eventID"),
    with("received_at", "source_ip"),
    with("created_at", "event_type"),
    with("createdAt", "eventType"),
    field("occurred_at"),
    field("occurredAt"),
    field("logged_at"),
    with("TS", "LEVEL"),
    field("loggedAt"),
    field("emitted_at"),
    // Other names that loggers are configured to have, and those of agents that read Windows' events.
    utc("utc_time", ""),
    utc("utcTime", ""),
    utc("UtcTime", ""),
    utc("TimestampUTC", ""),
    field("server_time"),
    field("serverTime"),
    field("generated_at"),
    field("generatedAt"),
    utc("generatedDateTime", ""),
    field("LogTime"),
    field("LogDate"),
    field("LogTimestamp"),
    field("EventTimestamp"),
    field("event_ts"),
    field("event_date"),
    field("eventDate"),
    field("record_time"),
    field("local_time"),
    field("timestampISO"),
    field("timestamp_iso"),
    field("time_iso"),
    utc("time_utc", ""),
    field("unix_ts"),
    field("UnixTime"),
    field("timeMs"),
    field("time_unix_nano"),
    field("@time"),
    field("@ts"),
    field("sys_time"),
    field("system_time"),
    field("timeCreated"),
    field("time_generated"),
    with("event.lastTimestamp", "event.involvedObject.kind"),
    // Services in the cloud that say when they took the record in.
    field("ingestionTime"),
    with("EventReceivedTime", "SourceName"),
    // Security services: CrowdStrike, SentinelOne, Google Workspace, Zscaler, Sentinel, Cortex, Vision One, Proofpoint,
    // Sophos, ESET, HarfangLab, WithSecure, Darktrace, BeyondTrust.
    field("metadata.eventCreationTime"),
    utc("event.UTCTimestamp", ""),
    with("createdAt", "activityType"),
    with("id.time", "id.applicationName"),
    with("event.datetime", "sourcetype"),
    with("event.time", "sourcetype"),
    utc("created_time_utc", ""),
    utc("createdTimeUtc", ""),
    field("detection_timestamp"),
    utc("detectedDateTime", ""),
    with("messageTime", "GUID"),
    with("clickTime", "GUID"),
    with("rt", "endpoint_id"),
    with("end", "endpoint_id"),
    field("occured"),
    field("@event_create_date"),
    field("detection_date"),
    field("alert_time"),
    field("serverTimestamp"),
    field("clientTimestamp"),
    with("creationTime", "breachUrl"),
    field("eventDateTime"),
    // Cloudflare: Workers, audit logs, Access. Amazon's flow logs, Akamai, Exchange, Salesforce.
    field("EventTimestampMs"),
    with("When", "ActionType"),
    with("CreatedAt", "RayID"),
    with("start", "srcaddr"),
    with("httpMessage.start", "httpMessage.method"),
    with("Received", "MessageTraceId"),
    with("TIMESTAMP_DERIVED", "EVENT_TYPE"),
    with("LOGIN_TIME", "EVENT_TYPE"),
    // Records that AWS hands to functions: of SNS, SQS, Kinesis, Firehose and DynamoDB.
    field("Sns.Timestamp"),
    with("attributes.SentTimestamp", "messageId"),
    field("kinesis.approximateArrivalTimestamp"),
    with("approximateArrivalTimestamp", "recordId"),
    field("dynamodb.ApproximateCreationDateTime"),
    // An object that says no other time. That of a program is mostly about nothing else.
    field("createdAt"),
    field("created"),
];

/// Names of the message. `log` is what Fluentd, Fluent Bit and Docker call a line.
pub(super) const MESSAGES: [Name; 61] = [
    own("_msg"),
    own("message"),
    own("msg"),
    own("log"),
    // Serilog: the message, then its template.
    field("@m"),
    field("RenderedMessage"),
    field("@mt"),
    // .NET, NLog, Windows, journald, hclog, zap's development encoder.
    field("Message"),
    field("MessageTemplate"),
    field("MESSAGE"),
    field("@message"),
    with("M", "L"),
    with("m", "l"),
    field("Msg"),
    field("MSG"),
    // Rust's tracing, loguru, logstash's older form, winston's nested form.
    field("fields.message"),
    field("record.message"),
    field("@fields.message"),
    field("@fields.msg"),
    field("log.message"),
    field("meta.message"),
    // Splunk's logger for JavaScript, whose message may be an object.
    field("message.message"),
    field("message.msg"),
    // GELF as lines.
    field("short_message"),
    field("full_message"),
    // Google: text, then JSON, then what an API answered.
    field("textPayload"),
    field("jsonPayload.message"),
    field("jsonPayload.msg"),
    // OpenTelemetry's data as JSON.
    field("body.stringValue"),
    field("body.text"),
    field("body.message"),
    field("body.msg"),
    // The same with a body that is an object, as the collector's exporter for Elasticsearch writes it.
    field("body.structured.message"),
    field("body.structured.msg"),
    field("Body.message"),
    field("Body.msg"),
    field("Body"),
    field("body"),
    // macOS, Supabase, Okta, Falco, AWS Lambda.
    field("eventMessage"),
    field("event_message"),
    field("displayMessage"),
    with("object.message", "object.involvedObject.kind"),
    with("output", "rule"),
    // Azure.
    field("resultDescription"),
    field("properties.message"),
    field("properties.log"),
    // structlog.
    field("event"),
    // logback's encoder with arguments filled in, Spring Cloud, tslog.
    field("formattedMessage"),
    with("rest", "class"),
    with("0", "_meta.logLevelName"),
    with("m", "level"),
    // Loggers whose names for it are configured.
    field("log_message"),
    field("logMessage"),
    field("LogMessage"),
    field("text"),
    // Elastic's schema, where `message` is missing.
    field("event.original"),
    field("line"),
    // Wazuh, Heptio's eventrouter, MinIO.
    with("full_log", "rule.level"),
    with("event.message", "event.involvedObject.kind"),
    with("error.message", "errKind"),
    field("Sns.Message"),
];

/// A field that says a level under another name than those that every record may have it by, or on another scale.
pub(super) struct LevelName {
    pub(super) name: &'static str,
    /// A field that must be in the document, too; empty if none must.
    pub(super) beside: &'static str,
    pub(super) scale: Scale,
    /// True if it counts although a field has one of the names that every record may have a level by.
    pub(super) is_first: bool,
}

const fn first(name: &'static str, beside: &'static str) -> LevelName {
    LevelName {
        is_first: true,
        ..level(name, beside, Scale::Usual)
    }
}

const fn level(name: &'static str, beside: &'static str, scale: Scale) -> LevelName {
    LevelName {
        name,
        beside,
        scale,
        is_first: false,
    }
}

/// Level fields of one product each.
pub(super) const LEVELS: [LevelName; 70] = [
    // MongoDB.
    level("s", "t.$date", Scale::Usual),
    // MySQL's JSON sink.
    level("label", "err_code", Scale::Usual),
    // osquery's status log: these are glog's numbers.
    level("severity", "calendarTime", Scale::Glog),
    // Windows' events.
    level("Level", "EventID", Scale::Windows),
    level("Level", "EventId", Scale::Windows),
    level("Level", "ProviderName", Scale::Windows),
    level("Event.System.Level", "", Scale::Windows),
    level("LevelDisplayName", "", Scale::Usual),
    // Application Insights and Azure.
    level("severityLevel", "", Scale::ApplicationInsights),
    level("SeverityLevel", "", Scale::ApplicationInsights),
    level("properties.level", "", Scale::Usual),
    // loguru, logback.
    level("record.level.name", "", Scale::Usual),
    level("level.name", "", Scale::Usual),
    level("level.levelStr", "", Scale::Usual),
    level("fields.level", "", Scale::Usual),
    level("@fields.severity", "", Scale::Usual),
    level("@fields.level", "", Scale::Usual),
    level("@fields.lvl", "", Scale::Usual),
    level("meta.level", "", Scale::Usual),
    // zap's development encoder.
    level("L", "M", Scale::Usual),
    // Elastic's schema, Logstash's grok patterns, Google's agents, macOS, Datadog.
    level("log.syslog.severity.name", "", Scale::Usual),
    level("log.syslog.severity.code", "", Scale::Syslog),
    level("syslog_severity", "", Scale::Usual),
    level("syslogseverity-text", "", Scale::Usual),
    level("syslogseverity", "", Scale::Syslog),
    level("syslog_severity_code", "", Scale::Syslog),
    level("logging.googleapis.com/severity", "", Scale::Usual),
    level("messageType", "eventMessage", Scale::Usual),
    // Kubernetes' events, open-appsec.
    level("type", "involvedObject.kind", Scale::Usual),
    level("object.type", "object.involvedObject.kind", Scale::Usual),
    level("event.type", "event.involvedObject.kind", Scale::Usual),
    // Fluentd's and Fluent Bit's input of Windows' events, and Promtail's, whose `level` is a number of Windows.
    level("event_type", "source_name", Scale::Usual),
    level("EventType", "SourceName", Scale::Usual),
    first("levelText", "eventRecordID"),
    level("eventLogLevel", "", Scale::Usual),
    level("status", "ddsource", Scale::Usual),
    // Heroku's router.
    level("at", "dyno", Scale::Usual),
    // Azure's resource logs.
    level("Level", "resourceId", Scale::Windows),
    level("level", "resourceId", Scale::Windows),
    // GuardDuty, Security Hub.
    level("severity", "schemaVersion", Scale::Finding),
    level("Severity.Label", "SchemaVersion", Scale::Finding),
    // Fortinet's own word in CEF, whose header has a number for each kind of event.
    level("FortinetFortiGatelevel", "", Scale::Word),
    level("FTNTFGTlevel", "", Scale::Word),
    level("cef.severity", "", Scale::Finding),
    level("sev", "leef.version", Scale::Finding),
    // Node: tslog, roarr; Elixir's logger_json, katip and programs that write as short, Zend and Laminas.
    level("_meta.logLevelName", "", Scale::Usual),
    level("context.logLevel", "sequence", Scale::Usual),
    level("syslog.severity", "", Scale::Usual),
    level("sev", "at", Scale::Usual),
    level("sev", "ts", Scale::Usual),
    level("priorityName", "", Scale::Usual),
    level("severityText", "", Scale::Usual),
    level("levelName", "", Scale::Usual),
    level("level_str", "", Scale::Usual),
    level("levelStr", "", Scale::Usual),
    // Kubernetes' components, whose errors have no verbosity.
    level("v", "caller", Scale::Verbosity),
    // SonicWall.
    level("pri", "sn", Scale::Syslog),
    // Kibana up to version 7.
    level("tags", "pid", Scale::Tags),
    // Nextcloud and ownCloud, consola of Nuxt.
    level("level", "reqId", Scale::Nextcloud),
    level("level", "args", Scale::Consola),
    // CockroachDB's compact forms, and others.
    level("sev", "", Scale::Word),
    // Devices of Fortinet, WELF of firewalls.
    level("pri", "device_id", Scale::Word),
    level("pri", "fw", Scale::Syslog),
    // PowerDNS's recursor, whose own `level` is a verbosity.
    first("prio", "subsystem"),
    // Cloud Foundry's lager, mox, Winlogbeat, and others.
    level("log_level", "source", Scale::Lager),
    level("l", "m", Scale::Word),
    level("winlog.level", "winlog.event_id", Scale::Word),
    level("event_level", "", Scale::Word),
    // winston with `colorize` before `json`.
    level("level", "", Scale::Coloured),
    level("severity", "", Scale::Coloured),
];

/// Two fields that are one instant.
pub(super) struct Pair {
    pub(super) first: &'static str,
    pub(super) second: &'static str,
    /// A field with the zone, which may be missing; empty if there is none.
    pub(super) zone: &'static str,
    /// A field that must be there, too, of a product whose times are UTC; empty if none must.
    pub(super) beside: &'static str,
    pub(super) how: How,
}

/// How two fields are one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Seconds, and nanoseconds if they are there.
    Nanos,
    /// A text, and what follows it: a time behind a date, a zone behind a time.
    Text,
}

const fn nanos(first: &'static str, second: &'static str) -> Pair {
    Pair {
        first,
        second,
        zone: "",
        beside: "",
        how: How::Nanos,
    }
}

const fn texts(first: &'static str, second: &'static str, zone: &'static str) -> Pair {
    Pair {
        first,
        second,
        zone,
        beside: "",
        how: How::Text,
    }
}

const fn in_utc(first: &'static str, second: &'static str, beside: &'static str) -> Pair {
    Pair {
        beside,
        ..texts(first, second, "")
    }
}

/// Instants in two fields, which count where no field is an instant by itself: log4j2's layouts, timestamps of
/// Protocol Buffers as JSON, Google's agents, Serde's `SystemTime`; PHP's `DateTime` as Monolog 1 writes it, and
/// dates beside times, as of Fortinet and of W3C's logs as objects.
pub(super) const PAIRS: [Pair; 24] = [
    nanos("instant.epochSecond", "instant.nanoOfSecond"),
    nanos("timestamp.seconds", "timestamp.nanos"),
    nanos("timestampSeconds", "timestampNanos"),
    nanos("time.seconds", "time.nanos"),
    nanos("ts.seconds", "ts.nanos"),
    nanos("Timestamp.seconds", "Timestamp.nanos"),
    nanos("@timestamp.seconds", "@timestamp.nanos"),
    nanos("receiveTimestamp.seconds", "receiveTimestamp.nanos"),
    nanos("timestamp.secs_since_epoch", "timestamp.nanos_since_epoch"),
    nanos("time.secs_since_epoch", "time.nanos_since_epoch"),
    nanos("timestamp.epochSecond", "timestamp.nanoOfSecond"),
    nanos("timestamp.secs", "timestamp.nanos"),
    nanos("timestamp.sec", "timestamp.nsec"),
    texts("timestamp.date", "timestamp.timezone", ""),
    nanos("timestamp.epochSecond", "timestamp.nano"),
    nanos("time.epochSecond", "time.nano"),
    nanos("@timestamp.epochSecond", "@timestamp.nano"),
    texts("datetime.date", "datetime.timezone", ""),
    // W3C's logs: CloudFront, IIS.
    in_utc("date", "time", "x-edge-location"),
    in_utc("date", "time", "cs-method"),
    texts("date", "time", "timezone"),
    texts("date", "time", "tz"),
    texts("Date", "Time", "TimeZone"),
    texts("date", "clock", "tz"),
];

/// A meaning of a name: a row of one of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameMeaning {
    /// Of [`TIMES`].
    Time(u8),
    /// Of [`MESSAGES`].
    Message(u8),
    /// Of [`LEVELS`].
    Level(u8),
    /// Of [`PAIRS`], by the name of its first field.
    Pair(u8),
    /// The first mark of a row of [`PRODUCTS`].
    Request(u8),
    /// One of the names by which every record may have its level.
    Usual,
}

/// Longer names mean nothing.
const NAME_BYTES_MAX: usize = 63;

/// All names of the tables.
const NAMES_COUNT: usize = TIMES.len()
    + MESSAGES.len()
    + LEVELS.len()
    + PAIRS.len()
    + PRODUCTS.len()
    + SEVERITY_LABELS.len();

/// Places that names are spread over: a few times as many as there are names, so that most fields are told by an
/// empty one.
const PLACES: usize = 2048;

/// No further name is at this place.
const NONE: u16 = u16::MAX;

/// The names by their places, made when this program is compiled.
struct Index {
    /// The first name at each place.
    first: [u16; PLACES],
    /// The name behind each at the same place.
    next: [u16; NAMES_COUNT],
}

static INDEX: Index = index();

#[expect(
    clippy::cast_possible_truncation,
    reason = "constant functions cannot call generic ones; a number is below `NONE`"
)]
const fn index() -> Index {
    assert!(NAMES_COUNT < NONE as usize);
    let mut index = Index {
        first: [NONE; PLACES],
        next: [NONE; NAMES_COUNT],
    };
    let mut number = 0;
    while number < NAMES_COUNT {
        let name = name_of(number).0.as_bytes();
        assert!(name.len() <= NAME_BYTES_MAX);
        let place = place_of(name);
        index.next[number] = index.first[place];
        index.first[place] = number as u16;
        number += 1;
    }
    index
}

/// The name of this number, counted through all tables, and what it means.
#[expect(
    clippy::cast_possible_truncation,
    reason = "constant functions cannot call generic ones; a table has less than 256 rows"
)]
const fn name_of(number: usize) -> (&'static str, NameMeaning) {
    let mut row = number;
    if row < TIMES.len() {
        return (TIMES[row].name, NameMeaning::Time(row as u8));
    }
    row -= TIMES.len();
    if row < MESSAGES.len() {
        return (MESSAGES[row].name, NameMeaning::Message(row as u8));
    }
    row -= MESSAGES.len();
    if row < LEVELS.len() {
        return (LEVELS[row].name, NameMeaning::Level(row as u8));
    }
    row -= LEVELS.len();
    if row < PAIRS.len() {
        return (PAIRS[row].first, NameMeaning::Pair(row as u8));
    }
    row -= PAIRS.len();
    if row < PRODUCTS.len() {
        return (PRODUCTS[row].marks[0], NameMeaning::Request(row as u8));
    }
    (SEVERITY_LABELS[row - PRODUCTS.len()], NameMeaning::Usual)
}

/// The place of a name. Names that differ only in characters that a label writes as `_` share it.
const fn place_of(name: &[u8]) -> usize {
    let last = name.len() - 1;
    let (a, b, c) = (
        as_label(name[0]) as usize,
        as_label(name[last / 2]) as usize,
        as_label(name[last]) as usize,
    );
    (a.wrapping_mul(37) ^ b.wrapping_mul(181) ^ c.wrapping_mul(1301) ^ (last * 67)) % PLACES
}

/// A byte as the name of a label has it.
const fn as_label(byte: u8) -> u8 {
    if byte.is_ascii_alphanumeric() {
        byte
    } else {
        b'_'
    }
}

/// Calls `found` with each meaning of a name.
#[inline]
pub(super) fn meanings(name: &[u8], mut found: impl FnMut(NameMeaning)) {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return;
    }
    let mut number = INDEX.first[place_of(name)];
    while number != NONE {
        let (known, meaning) = name_of(usize::from(number));
        let is_it = match meaning {
            NameMeaning::Usual => {
                known.len() == name.len()
                    && known.bytes().eq(name.iter().map(|byte| as_label(*byte)))
            }
            _ => known.as_bytes() == name,
        };
        if is_it {
            found(meaning);
        }
        number = INDEX.next[usize::from(number)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(name: &str) -> Vec<NameMeaning> {
        let mut all = Vec::new();
        meanings(name.as_bytes(), |meaning| all.push(meaning));
        all
    }

    #[test]
    fn names_are_there_once_and_found() {
        for number in 0..NAMES_COUNT {
            let (name, meaning) = name_of(number);
            assert!(all(name).contains(&meaning), "{name}");
        }
        let rows = TIMES.iter().chain(&MESSAGES);
        let mut names: Vec<_> = rows.map(|row| (row.name, row.beside)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for name in ["@l", "log.level", "lvl", "severity_number", "level_name"] {
            assert_eq!(all(name), [NameMeaning::Usual], "{name}");
        }
        for name in ["", "user", "levels", "remote_addr", "ms"] {
            assert_eq!(all(name), [], "{name}");
        }
        assert_eq!(all("severity").len(), 4);
        assert_eq!(all(&"t".repeat(100)), []);
    }

    /// Most places have no name, and none has many.
    #[test]
    fn names_are_spread() {
        let length = |first: u16| {
            let mut number = first;
            std::iter::from_fn(|| {
                let here = (number != NONE).then_some(number)?;
                number = INDEX.next[usize::from(here)];
                Some(here)
            })
            .count()
        };
        let lengths: Vec<usize> = INDEX.first.iter().map(|first| length(*first)).collect();
        assert_eq!(lengths.iter().sum::<usize>(), NAMES_COUNT);
        let longest = lengths.iter().max().copied();
        assert!(longest <= Some(6), "{longest:?}");
    }
}
