//! The heads of lines, by the bytes that they begin with: see [`super::pattern`] for the language.
//!
//! A row names its product. The time stands before the rows of a group that has one, and is read once for all of them.

use std::sync::LazyLock;

use super::pattern::{self, Row};

/// How far into a line is looked for what tells that a row without a level may fit, in bytes.
const HEAD_BYTES_MAX: usize = 96;

/// How far into a line the label of PostgreSQL behind a prefix is looked for, in bytes.
const PREFIX_BYTES_MAX: usize = 192;

/// Lines that begin with the same bytes.
pub(super) struct Group {
    /// True if the time of the record stands before the rows.
    pub(super) has_time: bool,
    rows: Vec<Row>,
}

impl Group {
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }
}

/// Behind a time that begins the line.
const TIMED: [&str; 73] = [
    // nginx, error log.
    " [{level}] {pid:i}#{tid:i}: (*{connection:i} )?{msg:nginx}",
    // MySQL 8, MySQL and MariaDB, error log.
    " {thread:i} [{level}] [{err_code:w}] [{subsystem:w}] {msg:mysql}",
    " {thread:i} [{level}] {msg:mysql}",
    // PostgreSQL: the default, Debian's, pgBadger's, and Amazon RDS.
    " [{pid:i}(-{line_num:i})?] ({user:w}@{dbname:w} )?{label}:  {msg}",
    " [{pid:i}(-{session_line:i})?](:)? ([{line_num:i}-1] )?user={user:e},db={dbname:e}(,app={application_name:e})?(,client={remote_host:e})? {label}:  {msg}",
    ":{remote_host:e}(\\({remote_port:i}\\))?:{user:e}@{dbname:e}:[{pid:i}]:{label}:  {msg}",
    // RabbitMQ.
    " [{level}] <{pid:w}> {msg:rabbitmq}",
    // MongoDB up to 4.2.
    " {letter}({verbosity:i})?~{component:u}~[{context:w}] {msg}",
    // ZooKeeper.
    " [myid:{myid:e}] - {level}~[{source}@{line:i}] - {msg}",
    // fail2ban.
    " fail2ban.{component:w}~[{pid:i}]: {level}~([{jail:w}] )?{msg}",
    // Windows, CBS.log and DISM.
    ", {level}~{component:w}~{msg}",
    // libvirt.
    ": {pid:i}: {level} : {function:w}:{line:i} : {msg}",
    // ClickHouse.
    " [ {tid:i} ] \\{{query_id:e}\\} <{level}> {logger}: {msg}",
    // etcd 3.3.
    " {letter} | {logger:w}: {msg}",
    // Kea.
    " {level}~[kea-{component:w}/{pid:w}] {msgid:w} {msg}",
    // WildFly, Quarkus.
    " {level}~[{logger:w}] \\({thread}\\) {msg}",
    // Neo4j.
    " {level}~[{logger:q}] {msg}",
    // Home Assistant.
    " {level} \\({thread}\\) [{logger:w}] {msg}",
    // OpenStack's oslo.log.
    " {pid:i} {level} {logger:q} [{request_context}] {msg}",
    // Salt.
    " [{logger:w}_:{line:i}_][{level}_][{pid:i}] {msg}",
    // Ansible.
    " p={pid:i} u={user:w} n={name:w} | {msg}",
    // Spring Boot, with the name of the application, with a trace or without.
    "~{level}~{pid:i} --- [{application}] [_{thread}] [{trace:w}] {logger:w}_: {msg}",
    "~{level}~{pid:i} --- [{application}] [_{thread}] {logger:w}_: {msg}",
    "~{level}~{pid:i} --- [_{thread}] {logger:w}_: {msg}",
    // logback, log4j2, log4net.
    " [{thread}] {level}~{logger:w} - {msg}",
    // logback from version 1.3, where there are no pairs before the message.
    " [{thread}] {level}~{logger:w} -- {msg}",
    // Jetty.
    ":{level}:{logger:w}:{thread:w}: {msg}",
    // Solr.
    "~{level}~\\({thread}\\) [{context}] {logger:q} {msg}",
    // OSSEC and Wazuh, with the place in debugging and without.
    " {component:w}[{pid:i}] {file:w}:{line:i} at {function:w}: {level}: {msg}",
    " {component:w}:{module:w}: {level}: {msg}",
    // Rust's tracing with the number of the thread.
    "~{level}~ThreadId\\({tid:w}\\) {logger:q}: {msg}",
    "~{level}~ThreadId\\({tid:w}\\) {logger:w}: {msg}",
    // lighttpd.
    ": \\({file:w}:{line:i}\\) {msg}",
    ": \\({file:w}\\) {msg}",
    // Confluence, Druid.
    " {level}~[{thread}] [{logger:q}] {function:w} {msg}",
    " {level}~[{thread}] {logger:q} - {msg}",
    // Tomcat.
    " {level} [{thread}] {logger:q} {msg}",
    // Flink, SonarQube.
    " {level}~{logger:q}~[{ndc:e}] - {msg}",
    " {level}~{process:w}[{request_id:e}][{logger:w}] {msg}",
    // Rust's tower-http.
    "~{level} request\\{method={method:w} uri={uri:w} version={protocol:w}\\}: {logger:q}: {msg:tower}",
    // Hadoop, HBase, Rust's tracing.
    "~{level} {logger:q}: {msg}",
    // Python's logging.
    " - {logger:w} - {level} - {msg}",
    // Synapse.
    " - {logger:w} - {line:i} - {level} - {request} - {msg}",
    // Deluge, AdGuard Home, Vertica.
    " [{level}_][{logger:w}:{line:i}_] {msg}",
    " {pid:i}#{tid:i} [{level}] {msg}",
    " {thread:w} [{component:w}] <{level}> {msg}",
    // loguru, Prefect.
    " | {level}_| {logger:w}:{function:w}:{line:i} - {msg}",
    " | {level}_| {source} - {msg}",
    // NLog.
    "|{level}|{logger:w}|{msg}",
    // zap's console encoder.
    "\t{level}\t{caller:p}\t{msg:zap}",
    "\t{level}\t{logger:w}\t{caller:p}\t{msg:zap}",
    // Trino, Jenkins.
    "\t{level}\t{thread}\t{logger:q}\t{msg}",
    " [id={thread_id:i}]\t{level}\t{logger:w}: {msg}",
    "\t{level}\t{logger:w}\t{msg:zap}",
    // AWS Lambda, Node.
    "\t{request_id:w}\t{level}\t{msg}",
    // Sidekiq.
    " pid={pid:i} tid={tid:w} (class={class:w} )?(jid={jid:w} )?(bid={bid:w} )?(tags={tags:w} )?(elapsed={elapsed:w} )?{level}: {msg}",
    // hclog of HashiCorp.
    " [{level}]  {logger:w}: {msg:hclog}",
    " [ERROR] {logger:w}: {msg:hclog}",
    " [DEBUG] {logger:w}: {msg:hclog}",
    " [TRACE] {logger:w}: {msg:hclog}",
    // Android's logcat, format threadtime.
    "~{pid:i}~{tid:i} {letter} {tag:w}_: {msg}",
    // The same in format `time`.
    " {letter}/{tag:w}_\\(_{pid:i}\\): {msg}",
    // Odoo.
    " {pid:i} {level} {dbname:w} {logger:w}: {msg}",
    // macOS, log show, also in style compact.
    " 0x{thread:w}~{messageType:l}~0x{activity:w}~{pid:i}~{ttl:i}~{process:w}: {msg}",
    " {letter}~{process:w}[{pid:i}:{tid:w}] {msg}",
    // Squid, cache.log.
    " kid{kid:i}| {msg}",
    // Adobe Experience Manager: a log within a request and beside one, requests and their answers.
    " *{level}* [{remote_addr:w} [{request_time:i}] {method:w} {path:w} {protocol:w}] {logger:q} {msg}",
    " *{level}* [{thread}] {logger:q} {msg}",
    " [{request_id:i}] -> {msg:request}",
    " [{request_id:i}] <- {status:i} {msg}",
    // BIND, OSSEC, Wazuh.
    " {component:w}: {level}: {msg}",
    // PostgreSQL with another log_line_prefix.
    "{msg:postgres}",
    // MySQL 5.5 and others that have a level alone.
    " [{level}] {msg:mysql}",
];

/// Behind a time that a bracket opens.
const BRACKETED: [&str; 22] = [
    // Elasticsearch, OpenSearch, Logstash.
    "][{level}_][{logger:w}_]([{pipeline:w}])?( [{node:w}])?_{msg}",
    // Kafka.
    "] {level} {msg:logger}",
    // PHP, PHP-FPM.
    "] PHP {error_type}:  {msg:php}",
    "] {level}: ([pool {pool:w}] )?(pid {pid:i}, {function:w}, line {line:i}: )?{msg:fpm}",
    // Envoy.
    "][{tid:i}][{level}][{logger:w}] [{file:w}:{line:i}] {msg}",
    // Flask, GlusterFS.
    "] {level} in {module:w}: {msg}",
    "] {letter} [MSGID: {msgid:i}] [{file:w}:{line:i}:{function:w}] {source:w}: {msg}",
    // Gerrit, UniFi.
    "] [{thread}] {level}~{logger:q} : {msg}",
    "] <{thread}> {level}~{logger:w}_- {msg}",
    // gunicorn.
    "] [{pid:i}] [{level}] {msg}",
    // Celery.
    ": {level}/{process:w}] {msg}",
    // Airflow.
    "] \\{{file:w}:{line:i}\\} {level} - {msg}",
    // Monolog, Laravel, Symfony.
    "] {channel:w}.{level}: {msg}",
    // TiDB, TiKV, PD.
    "] [{level}] [{file:w}:{line:i}] {msg:tidb}",
    // log4js.
    "] [{level}] {category:w} - {msg}",
    // Fluent Bit, spdlog.
    "] [{level}] [{component:q}] {msg}",
    "] [{level}] {msg}",
    "] [{logger:w}] [{level}] {msg}",
    // Rust's env_logger.
    " {level}~{target:w}] {msg}",
    // Asterisk.
    "] {level}[{tid:i}]([{callid:w}])? {file:w}: {msg}",
    "] {level}[{tid:i}]([{callid:w}])?: {file:w}:{line:i} {function:w}: {msg}",
    // pino-pretty.
    "] {level} \\({pid:i}( on {hostname:w})?\\): {msg}",
];

/// Behind a time of which the day and the month are numbers, before those of [`BRACKETED`]: WebSphere.
const SLASHED: [&str; 1] = ["] {thread:w} {component:w}~{event_type:u}~{msg}"];

/// Behind a time with a name of a day or a month that a bracket opens.
const NAMED: [&str; 4] = [
    // Apache HTTP Server 2.4.
    "] [({module:w}:)?{level}] [pid {pid:i}(:tid {tid:i})?] ({file:w}\\({line:i}\\): )?\
     (\\({errno:i}\\){error}: )?([client {client:a}] )?([remote {remote:a}] )?({code}: )?{msg:apache}",
    // Apache HTTP Server 2.2.
    "] [{level}] ([client {client:c}] )?{msg:apache}",
    // Asterisk.
    "] {level}[{tid:i}]([{callid:w}])? {file:w}: {msg}",
    "] {level}[{tid:i}]([{callid:w}])?: {file:w}:{line:i} {function:w}: {msg}",
];

/// Behind the letter and the time of Google's logging libraries: glog, klog, CockroachDB.
const GOOGLE: [&str; 2] = [
    "~{tid:i} {file:w}:{line:i}] {msg:klog}",
    " {goroutine:i} {file:w}:{line:i} ⋮ ([{tags}] )?{msg}",
];

/// Behind the letter and the time of Ruby's logger.
const RUBY: [&str; 1] = [" #{pid:i}]~{level} -- {progname:e}: {msg:ruby}"];

/// PostgreSQL with a time between angles, as packages of Red Hat had it.
const ANGLED: [&str; 1] = ["{msg:postgres}"];

/// Redis from version 3, Sentinel, Valkey; KeyDB has a thread's number, too. An X is Sentinel's role.
const REDIS: [&str; 2] = [
    "{pid:i}:{tid:i}:{role:w} {time} {sign} {msg}",
    "{pid:i}:{role:w} {time} {sign} {msg}",
];

/// Redis before version 3, and NATS.
const NUMBERED: [&str; 2] = [
    "[{pid:i}] {time} {sign} {msg}",
    "[{pid:i}] {time} [{level}] {msg}",
];

/// Cassandra, and the form `verbose` of Django's documentation.
const LEVELLED: [&str; 2] = [
    "{level}~[{thread}] {time} {file:w}:{line:i} - {msg}",
    "{level} {time} {module:w} {pid:i} {tid:i} {msg}",
];

/// CoreDNS: its plugins, and queries.
const COREDNS: [&str; 3] = [
    // AWS Lambda, Python.
    "[{level}]\t{time}\t{request_id:w}\t{msg}",
    "[{level}] plugin/{plugin:w}: {msg}",
    "[{level}] {client:c} - {id:i} \"{query_type:w} {query_class:w} {query_name:w} {protocol:w} {request_length:i} \
     {dnssec_ok:w} {buffer_size:i}\" {rcode:w} {flags:w} {bytes:i} {duration:w}",
];

/// PostgreSQL with the time within its prefix.
const PREFIXED: [&str; 1] = ["{msg:prefixed}"];

/// FreeRADIUS, behind its time.
const RADIUS: [&str; 1] = [" : {category:w}: {msg}"];

/// All groups.
struct Groups {
    timed: Group,
    bracketed: Group,
    slashed: Group,
    named: Group,
    google: Group,
    ruby: Group,
    angled: Group,
    redis: Group,
    numbered: Group,
    levelled: Group,
    coredns: Group,
    radius: Group,
    prefixed: Group,
}

static GROUPS: LazyLock<Groups> = LazyLock::new(|| {
    let group = |has_time, rows: &[&str]| Group {
        has_time,
        rows: rows.iter().map(|row| Row::new(row)).collect(),
    };
    Groups {
        timed: group(true, &TIMED),
        bracketed: group(true, &BRACKETED),
        slashed: group(true, &[&SLASHED[..], &BRACKETED[..]].concat()),
        named: group(true, &NAMED),
        google: group(true, &GOOGLE),
        ruby: group(true, &RUBY),
        angled: group(true, &ANGLED),
        redis: group(false, &REDIS),
        numbered: group(false, &NUMBERED),
        levelled: group(false, &LEVELLED),
        coredns: group(false, &COREDNS),
        radius: group(true, &RADIUS),
        prefixed: group(false, &PREFIXED),
    }
});

/// The text that a line begins with, and the rows that may follow it.
pub(super) fn candidates(line: &[u8]) -> Option<(&'static str, &'static Group)> {
    by_start(line).or_else(|| is_prefixed(line).then(|| ("", &GROUPS.prefixed)))
}

/// True for a line with a label as of PostgreSQL, which no time begins.
fn is_prefixed(line: &[u8]) -> bool {
    let head = &line[..line.len().min(PREFIX_BYTES_MAX)];
    matches!(line.first(), Some(b'a'..=b'z' | b'A'..=b'Z' | b'[' | b'('))
        && pattern::find(head, b":  ")
            .is_some_and(|end| end > 0 && head[end - 1].is_ascii_uppercase())
}

fn by_start(line: &[u8]) -> Option<(&'static str, &'static Group)> {
    match *line {
        [b'0'..=b'9', ref rest @ ..] => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            match rest.get(digits..digits + 3)? {
                [b':', b'A'..=b'Z', b' '] => Some(("", &GROUPS.redis)),
                [b':', b'0'..=b'9', b'0'..=b'9' | b':'] if is_keydb(&rest[digits..]) => {
                    Some(("", &GROUPS.redis))
                }
                [b'-' | b'/' | b'.' | b':', ..] if digits < 4 => Some(("", &GROUPS.timed)),
                // MySQL 5.5: `261127  0:51:25 `
                [b' ', b'0'..=b'9' | b' ', b'0'..=b'9'] if digits == 5 => Some(("", &GROUPS.timed)),
                _ => None,
            }
        }
        [b'<', b' ', b'0'..=b'9', ..] => Some(("< ", &GROUPS.angled)),
        [b'[', b'0'..=b'9', ref rest @ ..] if is_numbered(rest) => Some(("", &GROUPS.numbered)),
        [b'[', b'0'..=b'9', b'/', ..] | [b'[', b'0'..=b'9', b'0'..=b'9', b'/', b'0'..=b'9', ..] => {
            Some(("[", &GROUPS.slashed))
        }
        [b'[', b'0'..=b'9', ..] => Some(("[", &GROUPS.bracketed)),
        [b'[', b'A'..=b'Z', b'a'..=b'z', b'a'..=b'z', b' ', ..] => Some(("[", &GROUPS.named)),
        [b'[', b'A'..=b'Z', b'A'..=b'Z', ..] => Some(("", &GROUPS.coredns)),
        [
            letter,
            b'0'..=b'9',
            b'0'..=b'9',
            b'0'..=b'9',
            b'0'..=b'9',
            ..,
        ] => {
            let start = ["I", "W", "E", "F", "D"].into_iter();
            let mut start = start.filter(|start| start.as_bytes() == [letter]);
            Some((start.next()?, &GROUPS.google))
        }
        [letter, b',', b' ', b'[', b'0'..=b'9', ..] => {
            let start = ["I, [", "W, [", "E, [", "F, [", "D, [", "A, ["].into_iter();
            let mut start = start.filter(|start| start.as_bytes()[0] == letter);
            Some((start.next()?, &GROUPS.ruby))
        }
        [b'A'..=b'Z', b'A'..=b'Z', ..] => {
            let letters = line.iter().take_while(|byte| byte.is_ascii_uppercase());
            let behind = &line[letters.count()..];
            let next = behind.trim_ascii_start().first();
            let is_it = next.is_some_and(|byte| *byte == b'[' || byte.is_ascii_digit());
            (is_it && behind[0] == b' ').then(|| ("", &GROUPS.levelled))
        }
        // `Fri Nov 27 00:51:25 2026 : `
        [b'A'..=b'Z', b'a'..=b'z', b'a'..=b'z', b' ', ..] => {
            let is_it = line.get(24..27) == Some(b" : ");
            is_it.then(|| ("", &GROUPS.radius))
        }
        _ => None,
    }
}

/// True for `:23:M `: a thread's number and a role.
fn is_keydb(text: &[u8]) -> bool {
    let digits = text[1..].iter().take_while(|byte| byte.is_ascii_digit());
    matches!(text[1 + digits.count()..], [b':', b'A'..=b'Z', b' ', ..])
}

/// True for `234] 27 Nov 00:51:25` and `234] 2026/11/27 00:51:25`, behind a bracket and a digit.
fn is_numbered(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    matches!(
        text[digits.count()..],
        [
            b']',
            b' ',
            b'0'..=b'9',
            b'0'..=b'9',
            b' ',
            b'A'..=b'Z',
            b'a'..=b'z',
            b'a'..=b'z',
            b' ',
            ..
        ] | [
            b']',
            b' ',
            b'0'..=b'9',
            b'0'..=b'9',
            b'0'..=b'9',
            b'0'..=b'9',
            b'/',
            ..
        ]
    )
}

/// Texts of lines without a level: of macOS, and of lighttpd.
const UNLEVELLED: [&[u8]; 2] = [b" 0x", b": ("];

/// True for a line of which some rows have no level: labels of PostgreSQL that say none, and lines of products
/// that write none, or write it as a letter or in another word.
pub(super) fn may_lack_level(line: &[u8]) -> bool {
    let head = &line[..line.len().min(HEAD_BYTES_MAX)];
    !head[0].is_ascii_digit()
        || memchr::memchr2(b'[', b'|', head).is_some()
        || UNLEVELLED
            .iter()
            .any(|mark| pattern::find(head, mark).is_some())
}
