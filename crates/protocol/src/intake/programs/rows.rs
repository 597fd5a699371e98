//! The heads of lines, by the bytes that they begin with: see [`super::pattern`] for the language.
//!
//! A row names its product. The time stands before the rows of a group that has one, and is read once for all of them.
//! [`starts`](super::starts) finds the group of a line.

mod timed;

pub(super) use timed::TIMED;

/// Behind a time whose date has slashes, before those of [`TIMED`]: Log4perl, RocksDB, and Go's slog and charm.
pub(super) const GO: [&str; 6] = [
    " {level}> {source:s} {package:w} - {msg}",
    // RocksDB.
    " {thread:w} [{level}] [{source:s}] {msg}",
    " {thread:h} EVENT\\_LOG\\_v1 {msg}",
    // Windows Update.
    " {pid:i}~{tid:i}~{component:w}  _{msg}",
    // rclone.
    " {LEVEL} : {msg}",
    " {LEVEL} {msg:pairs}",
];

/// The same after those: Go's logger with the place in the source, or without.
pub(super) const GO_PLAIN: [&str; 2] = [" {source:s}: {msg}", " {msg}"];

/// Fluent Bit, whose date has slashes, before the rows of [`BRACKETED`].
pub(super) const FLUENT: [&str; 2] = ["] [_{level}] [{component}] {msg}", "] [_{level}] {msg}"];

/// Rust's tracing, whose time has six digits behind the second: its target may be a word. Before the rows of [`TIMED`].
pub(super) const TRACING: [&str; 4] = [
    "~{level} request\\{method={method:w} uri={uri:w} version={protocol:w}\\}: {logger:q}: {msg:tower}",
    "~{level} {spans:x}: {logger:q}: {msg:beside}",
    "~{level} {spans:x}: {logger:w}: {msg:beside}",
    "~{level}~{logger:w}: {msg:beside}",
];

/// Zabbix.
pub(super) const ZABBIX: [&str; 1] = ["_{pid:i}:{time} {msg}"];

/// vLLM with the process.
pub(super) const PROCESS: [&str; 3] = [
    "\\({process:w} pid={pid:i}\\) {level} {time} [{source:s}] {msg}",
    "\\({process:w} pid={pid:i}\\) {msg}",
    "{msg:prefixed}",
];

/// Play, Knot Resolver, Sonarr with its siblings, XAPI and Geode; or else PostgreSQL.
pub(super) const PLAY: [&str; 8] = [
    "[_{level}|{xen_host:t}|{thread}_|{task:t}|{module:w}] {msg}",
    "[{level} {time} {member:w} <{thread}> tid={tid:w}] {msg}",
    "[{level} {time} <{thread}> tid={tid:w}] {msg}",
    "[system] {level}: {msg}",
    "[{thread}] {time} {level}~{logger:w} - {msg}",
    "[{level}] {logger:q} - {msg}",
    "[{level}] {logger:w}: {msg}",
    "{msg:prefixed}",
];

/// Behind a time that a bracket opens.
pub(super) const BRACKETED: [&str; 66] = [
    // Elasticsearch, OpenSearch, Logstash. Ignite has a thread there.
    "][{level}_][{logger:q}_]([{pipeline:w}])?( [{node:w}])?_{msg}",
    "][{level}_][{thread}][{logger:w}] {msg}",
    "][{level}_][{logger:w}_]([{pipeline:w}])?( [{node:w}])?_{msg}",
    // Project Zomboid.
    "] {level}_: {category:w}~f:{frame:i}, t:{time_ms:i}> {msg}",
    "] LOG~: {is:info}{category:w}~f:{frame:i}, t:{time_ms:i}> {msg}",
    // Kafka.
    "] {level} {msg:logger}",
    // Zigbee2MQTT.
    "] {level}: \t{logger:w}: {msg}",
    // PHP, PHP-FPM; PostgreSQL behind a time in brackets.
    "] PHP {error_type}:  {msg:php}",
    "]{msg:postgres}",
    "] {level}: ([pool {pool:w}] )?(pid {pid:i}, {function:w}, line {line:i}: )?{msg:fpm}",
    // Envoy.
    "][{tid:i}][{level}][{logger:w}] [{file:w}:{line:i}] {msg}",
    // Flask, GlusterFS.
    "] {level} in {module:w}: {msg}",
    "] {letter} [MSGID: {msgid:i}] [{file:w}:{line:i}:{function:w}] {source:w}: {msg}",
    "] {letter} [{file:w}:{line:i}:{function:w}] {source:w}: {msg}",
    // Gerrit, UniFi.
    "] [{thread}] {level}~{logger:q} : {msg}",
    "] <{thread}> {level}~{logger:w}_- {msg}",
    // ESPHome, whose C is its configuration.
    "][C][{tag:w}:{line:w}]: {msg}",
    "][{letter}][{tag:w}:{line:w}]: {msg}",
    "][{letter}][{tag:w}]: {msg}",
    // Vaultwarden.
    "][{logger:w}][{level}] {msg}",
    // Minecraft: Forge, Fabric and others.
    "] [{thread}/{level}] [{logger}]: {msg}",
    "] [{thread}/{level}] \\({logger}\\) {msg}",
    "] [{thread}/{level}]: {msg}",
    // Slurm, Unbound and NSD.
    "] [{step:d}] {level}: {msg}",
    "] {process:w}[{pid:i}(:{tid:w})?](:)? {level}: {msg}",
    // Jellyfin, Frigate.
    "] [{level}] [{thread:i}] {logger:w}: {msg}",
    "] {logger:q}~{level}_: {msg}",
    // GlassFish, Payara.
    "] [{product}] [{level}] [{message_id:e}] [{logger:e}] [tid: \\_ThreadID={tid:i} \\_ThreadName={thread}] \
     [timeMillis: {time_ms:i}] [levelValue: {level_value:i}] [[\n_{msg:closed}",
    // katip.
    "][{namespace:w}][{level}][{hostname:w}][PID {pid:i}][{thread}] {msg}",
    // TeamCity.
    "]i:\t {is:debug}{msg}",
    "]{letter}:\t {msg}",
    "] :\t {msg}",
    // Unreal.
    "][_{frame:i}]{category:w}: Display: {is:info}{msg}",
    "][_{frame:i}]{category:w}: {level}: {msg}",
    "][_{frame:i}]{category:w}: {msg}",
    // gunicorn.
    "] [{pid:i}] [{level}] {msg}",
    // logfmt.
    "] {msg:keyed}",
    // Celery.
    ": {level}/{process:w}] {msg}",
    // Airflow.
    "] \\{{file:w}:{line:i}\\} {level} - {msg}",
    "] \\{\\{{file:w}:{line:i}\\}\\} {level} - {msg}",
    // Monolog, Laravel, Symfony.
    "] {channel:w}.{level}: {msg}",
    // TiDB, TiKV, PD.
    "] [{level}] [{file:w}:{line:i}] {msg:tidb}",
    // log4js.
    "] [{level}] {category:w} - {msg}",
    // Fluent Bit, spdlog.
    "] [{level}] [{component:q}] {msg}",
    "] [{level}] {msg}",
    // Boost.Log.
    "] [0x{thread:h}] [{level}]~{msg}",
    "] [{logger:w}] [{level}] {msg}",
    // spdlog with its thread.
    "] [thread {tid:i}] [{level}] {msg}",
    // Rust's env_logger.
    " {level}~{target:w}] {msg}",
    // Asterisk.
    "] {level}[{tid:i}]([{callid:w}])? {file:w}: {msg}",
    "] {level}[{tid:i}]([{callid:w}])?: {file:w}:{line:i} {function:w}: {msg}",
    "] {level}[{tid:i}]([{callid:w}])?: {module:w}: {msg}",
    // pino-pretty.
    "] {level} \\({pid:i}( on {hostname:w})?\\): {msg}",
    // BeeGFS, pacman.
    "] [{letter}] [{component:w}] {msg}",
    "] [{letter}] {msg}",
    "] [{component:u}] {msg}",
    // Samba: the number of its level, and the message on a line of its own.
    ",  0(, pid={pid:i}, effective\\({effective}\\), real\\({real}\\)(, class={class:w})?)?] {file:w}:{line:i}\\({function:w}\\){is:error}(\n_{msg})?",
    ",  1(, pid={pid:i}, effective\\({effective}\\), real\\({real}\\)(, class={class:w})?)?] {file:w}:{line:i}\\({function:w}\\){is:warn}(\n_{msg})?",
    ",  2(, pid={pid:i}, effective\\({effective}\\), real\\({real}\\)(, class={class:w})?)?] {file:w}:{line:i}\\({function:w}\\){is:notice}(\n_{msg})?",
    ",  3(, pid={pid:i}, effective\\({effective}\\), real\\({real}\\)(, class={class:w})?)?] {file:w}:{line:i}\\({function:w}\\){is:notice}(\n_{msg})?",
    ",  4(, pid={pid:i}, effective\\({effective}\\), real\\({real}\\)(, class={class:w})?)?] {file:w}:{line:i}\\({function:w}\\){is:info}(\n_{msg})?",
    ",  5(, pid={pid:i}, effective\\({effective}\\), real\\({real}\\)(, class={class:w})?)?] {file:w}:{line:i}\\({function:w}\\){is:info}(\n_{msg})?",
    ", 10(, pid={pid:i}, effective\\({effective}\\), real\\({real}\\)(, class={class:w})?)?] {file:w}:{line:i}\\({function:w}\\){is:debug}(\n_{msg})?",
    // Serilog, PaperMC.
    " {level}] {msg}",
    " {level}]: {msg}",
    "] {LEVEL}~{msg}",
];

/// Behind a time of which the day and the month are numbers, before those of [`BRACKETED`]: WebSphere.
pub(super) const SLASHED: [&str; 1] = ["] {thread:w} {component:w}~{event_type:u}~{msg}"];

/// Behind a time with a name of a day or a month that a bracket opens.
pub(super) const NAMED: [&str; 6] = [
    // Apache HTTP Server 2.4.
    "] [({module:w}:)?{level}] [pid {pid:i}(:tid {tid:i})?] ({file:w}\\({line:i}\\): )?\
     (\\({errno:i}\\){error}: )?([client {client:a}] )?([remote {remote:a}] )?({code}: )?{msg:apache}",
    // Janus.
    "] [{level}] [{file:w}:{function:w}:{line:i}] {msg}",
    // Apache HTTP Server 2.2.
    "] [{level}] ([client {client:c}] )?{msg:apache}",
    // Asterisk.
    "] {level}[{tid:i}]([{callid:w}])? {file:w}: {msg}",
    "] {level}[{tid:i}]([{callid:w}])?: {file:w}:{line:i} {function:w}: {msg}",
    // The kernel, `dmesg -T`.
    "] {msg:kernel}",
];

/// Behind the letter and the time of Google's logging libraries: glog, klog, CockroachDB.
pub(super) const GOOGLE: [&str; 3] = [
    "~{tid:i} {file:w}:{line:i}] {msg:klog}",
    " {goroutine:i} {file:w}:{line:i} ⋮ ([{tags}] )?({counter:i}  _)?{msg}",
    " {goroutine:i} {file:w}:{line:i}  ([{tags}] )?{msg}",
];

/// Abseil before its clock is known: the time is that since 1970.
pub(super) const ABSEIL: [&str; 1] =
    ["{letter}0000 00:00:{epoch:w}~{tid:i} {file:w}:{line:i}] {msg:klog}"];

/// Behind the letter and the time of Ruby's logger.
pub(super) const RUBY: [&str; 1] = [" #{pid:i}]~{level} -- {progname:e}: {msg:ruby}"];

/// PostgreSQL with a time between angles, as packages of Red Hat had it.
pub(super) const ANGLED: [&str; 1] = ["{msg:postgres}"];

/// Redis from version 3, Sentinel, Valkey; KeyDB has a thread's number, too. An X is Sentinel's role.
pub(super) const REDIS: [&str; 3] = [
    "{pid:i}:{tid:i}:{role:w} {time} {sign} {msg}",
    "{pid:i}:{role:w} {time} {sign} {msg}",
    "{pid:i}:signal-handler \\({epoch:i}\\) {msg}",
];

/// Redis before version 3, and NATS.
pub(super) const NUMBERED: [&str; 2] = [
    "[{pid:i}] {time} {sign} {msg}",
    "[{pid:i}] {time} [{level}] {msg}",
];

/// Cassandra, and the form `verbose` of Django's documentation.
pub(super) const LEVELLED: [&str; 12] = [
    "{level}~[{thread}] {time}~{file:w}:{line:i} - {msg}",
    "{level} {time} {module:w} {pid:i} {tid:i} {msg}",
    // ScyllaDB.
    "{level}~{time} [shard~{shard:w}_] {component:w} - {msg}",
    // vLLM, CodeIgniter.
    "{level} {time} [{source:s}] {msg}",
    "{level} {time} {source:s}] {msg}",
    "{level} - {time} --> {msg}",
    // Dropwizard, R's loggers, go-ethereum.
    "{level}~[{time}] {logger:q}: {msg}",
    "{level}~[{time}] {msg:pairs}",
    // chronicles of Nim.
    "{abbr} {time} {msg:pairs}",
    // Dart.
    "{level}: {time}: {msg}",
    // WireGuard outside of the kernel.
    "{level}: \\({interface:w}\\) {time} peer\\({peer:w}\\) - {msg}",
    "{level}: \\({interface:w}\\) {time} {msg}",
];

/// GLib: the program, the domain and the level; messages and what is less have no stars behind it.
pub(super) const GLIB: [&str; 9] = [
    "\\({program:w}:{pid:i}\\): {domain:g}-{LEVEL} **: {clock}: {msg}",
    "\\({program:w}:{pid:i}\\): {domain:g}-{LEVEL} **: {msg}",
    "\\({program:w}:{pid:i}\\): {domain:g}-Message: {is:notice}{clock}: {msg}",
    "\\({program:w}:{pid:i}\\): {domain:g}-INFO: {is:info}{clock}: {msg}",
    "\\({program:w}:{pid:i}\\): {domain:g}-DEBUG: {is:debug}{clock}: {msg}",
    "** \\({program:w}:{pid:i}\\): {LEVEL} **: {clock}: {msg}",
    "** \\({program:w}:{pid:i}\\): {LEVEL} **: {msg}",
    "** Message: {is:notice}{clock}: {msg}",
    "{domain:g}-Message: {is:notice}{clock}: {msg}",
];

/// CUPS, about a job or not.
pub(super) const CUPS: [&str; 10] = [
    "{letter} [{time}] [Job {job:i}] {msg}",
    "{letter} [{time}] [Client {client_number:i}] {msg}",
    "{letter} [{time}] {msg}",
    // Levels whose letters mean something else in other programs: alert, emergency, and the finest of debugging.
    "A {is:alert}[{time}] [Job {job:i}] {msg}",
    "A {is:alert}[{time}] {msg}",
    "X {is:emergency}[{time}] [Job {job:i}] {msg}",
    "X {is:emergency}[{time}] {msg}",
    "d {is:debug}[{time}] [Job {job:i}] {msg}",
    "d {is:debug}[{time}] [Client {client_number:i}] {msg}",
    "d {is:debug}[{time}] {msg}",
];

/// CUPS about pages, in the order of its versions.
pub(super) const PAGES: [&str; 2] = [
    "{printer:w} {user:w} {job:i} [{time}] {msg:page}",
    "{printer:w} {job:i} {user:w} [{time}] {msg:page}",
];

/// The kernel, as dmesg prints it, also with the facility and the level.
pub(super) const KERNEL: [&str; 2] = [
    "[_{uptime:f}] {msg:kernel}",
    "{facility_name:w}_:{level}_: [_{uptime:f}] {msg:kernel}",
];

/// Dovecot's own file.
pub(super) const DOVECOT: [&str; 1] = [" {msg:dovecot}"];

/// zap's console encoder without a time.
pub(super) const CONSOLE: [&str; 4] = [
    "{level}\t{logger:w}\t{caller:p}\t{msg:zap}",
    "{level}\t{caller:p}\t{msg:zap}",
    "{level}\t{logger:w}\t{msg:zap}",
    "{level}\t{msg:zap}",
];

/// WirePlumber and PipeWire. The times of older versions of PipeWire count from the start of the machine.
pub(super) const PIPEWIRE: [&str; 6] = [
    "[{letter}][{uptime:f}] {component:w}_| [_{file:w}:_{line:i} {function}] {msg}",
    "[{letter}][{time}] {component:w}_| [_{file:w}:_{line:i} {function}] {msg}",
    "M {is:notice}{time}~{component:w} {file:w}:{line:i}:{function:w}: {msg}",
    "M {is:notice}{time}~{component:w} {msg}",
    "{letter} {time}~{component:w} {file:w}:{line:i}:{function:w}: {msg}",
    "{letter} {time}~{component:w} {msg}",
];

/// VirtualBox, whose clock counts from the start of the machine.
pub(super) const VIRTUALBOX: [&str; 3] = [
    "{uptime:w} {level} [{component:w}]: {msg}",
    "{uptime:w} {component:w}: {msg}",
    "{uptime:w} {thread:w}~{msg}",
];

/// Firebird: the lines of its message are indented.
pub(super) const FIREBIRD: [&str; 2] = ["{hostname}\t{time}\n\t{msg}", "{hostname}\t{time}"];

/// Spark, behind a date with a year of two digits, before the rows of [`TIMED`].
pub(super) const SPARK: [&str; 1] = [" {LEVEL} {logger:w}: {msg}"];

/// logrus on a terminal.
pub(super) const LOGRUS: [&str; 2] = [
    // Also log15.
    "{level}[{time}] {msg:pairs}",
    "{level}[{uptime:w}] {msg:pairs}",
];

/// Python's default: level, logger and message with colons between them.
pub(super) const PYTHON: [&str; 1] = ["{level}:{logger:w}:{msg}"];

/// .NET's console: a level, a category and the number of an event.
pub(super) const DOTNET: [&str; 2] = [
    "{level}: {logger:w}[{event_id:i}]\n_{msg}",
    "{level}: {logger:w}[{event_id:i}] {msg}",
];

/// Android's logcat without a time: formats brief, tag, process and thread; and ESP-IDF with the milliseconds since its
/// start.
pub(super) const ANDROID: [&str; 7] = [
    "{letter}/{tag:w}_\\(_{pid:i}\\): {msg}",
    "{letter}/{tag}\\(_{pid:i}\\): {msg}",
    "{letter}/{tag:w}_: {msg}",
    "{letter}\\(_{pid:i}:_{tid:i}\\) {msg}",
    "{letter}\\(_{pid:i}\\) {msg:tag}",
    "{letter} \\({uptime_ms:i}\\) {tag:w}: {msg}",
    "{letter} \\({uptime_ms:i}\\) {tag}: {msg}",
];

/// logcat's format long.
pub(super) const LONG: [&str; 2] = [
    "~{pid:i}:_{tid:i} {letter}/{tag:w}_]\n{msg}",
    "~{pid:i}:_{tid:i} {letter}/{tag}_]\n{msg}",
];

/// CouchDB: a log of a request has its number. NSQ has its daemon first.
pub(super) const NAMED_LEVEL: [&str; 4] = [
    "[{level}] {time} {node:w} <{pid:w}> -------- {msg}",
    "[{level}] {time} {node:w} <{pid:w}> {msg}",
    "[{component:w}] {time} {level}: {msg}",
    "[{level}] {time}( -)? {msg}",
];

/// WebLogic, behind the bracket that a time opens: in its server's file, and on its console.
pub(super) const WEBLOGIC: [&str; 2] = [
    "> <{level}> <{subsystem}> <{hostname:t}> <{server:t}> <{thread:t}> <{user:t}> <{transaction:t}> <{diagnostic:t}> \
     <{time_ms:i}> <[severity-value: {severity_value:i}] > <{msgid}> <{msg:angled}",
    "> <{level}> <{subsystem}> <{msgid}> <{msg:angled}",
];

/// NestJS.
pub(super) const NEST: [&str; 2] = [
    "[Nest] {pid:i}  - {time}~{level}~[{logger}] {msg}",
    "[Nest] {pid:i}  - {time}~{level}~{msg}",
];

/// Servers of the Source engine, behind the letter and the time.
pub(super) const SOURCE: [&str; 1] = [": {msg}"];

/// Brocade's audits, behind the name and the time.
pub(super) const AUDIT: [&str; 1] = [
    ", [{msgid:w}], {level}, {category:w}, {user_session}, {switch}, {version:w}, , , , , , , {msg:brocade}",
];

/// java.util.logging, and Plex.
pub(super) const JAVA: [&str; 3] = [
    " {logger:q} {function:w}\n{level}: {msg}",
    " [{thread:w}] {level} - {msg}",
    " [{thread:w}/{context:w}] {level} - {msg}",
];

/// CoreDNS: its plugins, and queries.
pub(super) const COREDNS: [&str; 14] = [
    // AppDynamics, the runners of GitHub's actions.
    "[{thread}] {time} {level}~{logger:w} - {msg}",
    "[{process:w} {time} {level}~{component:w}] {msg}",
    // Akka.
    "[{level}] [{time}] [{thread}] [{source}] {msg}",
    // Brocade without a time before the message.
    "[{msgid:w}], {sequence:w}, {flags}, {level}, {switch:w}, {msg:brocade}",
    // AWS Lambda, Python.
    "[{level}]\t{time}\t{request_id:w}\t{msg}",
    // A level before the time.
    "[{level}] {time} [{thread}] {logger:q} - {msg}",
    // Haraka: the connection and the plugin, with a time or without.
    "[{level}] ({time} )?[-] [{plugin:w}] {msg}",
    "[{level}] {time} [{connection:w}] [{plugin:w}] {msg}",
    "[{level}] [{connection:q}] [{plugin:w}] {msg}",
    "[{level}] {time} {logger:q} - {msg}",
    "[{level}] {time}( -)?(:)? {msg}",
    "[{level}]_[{time}] {msg}",
    "[{level}] plugin/{plugin:w}: {msg}",
    "[{level}] {client:c} - {id:i} \"{query_type:w} {query_class:w} {query_name:w} {protocol:w} {request_length:i} \
     {dnssec_ok:w} {buffer_size:i}\" {rcode:w} {flags:w} {bytes:i} {duration:w}",
];

/// Mumble.
pub(super) const MUMBLE: [&str; 1] = ["<{letter}>{time} {msg}"];

/// SQL Anywhere.
pub(super) const ANYWHERE: [&str; 1] = ["{letter}. {time}. {msg}"];

/// BeeGFS.
pub(super) const BEEGFS: [&str; 1] =
    ["\\({level_number:i}\\) {time} {thread:w} [{component}] >> {msg}"];

/// Lustre.
pub(super) const LUSTRE: [&str; 1] = [
    "{subsystem:h}:{mask:h}:{cpu:w}:{time}:{stack:i}:{pid:i}:{host_pid:i}:\\({file:w}:{line:i}:{function:w}(\\(\\))?\\) {msg}",
];

/// LXC.
pub(super) const LXC: [&str; 1] = [
    "{program:w} {container:w} {time} {level}~{component:w} - {file:w}:{function:w}:{line:i} - {msg}",
];

/// Synology's exports, and Bamboo.
pub(super) const TABBED: [&str; 3] = [
    "{level}\t{time}\t{user:w}:\t{msg}",
    "{level}\t{time}\t{msg}",
    "{kind:w}\t{time}\t{msg}",
];

/// Splunk, before the rows of [`TIMED`].
pub(super) const SPLUNK: [&str; 2] = [
    " {level}~{component:w} [{thread}] - {msg}",
    " {level}~{component:w} - {msg}",
];

/// TYPO3, behind the time of a mail.
pub(super) const MAIL: [&str; 3] = [
    " [{level}] request=\"{request_id:e}\" component=\"{component:e}\": {msg}",
    " [{level}]: {msg}",
    " [{level}] {msg}",
];

/// Kamailio on a terminal.
pub(super) const KAMAILIO: [&str; 1] =
    ["_{process:i}\\({pid:i}\\) {level}: {module:w} [{source:s}]: {msg}"];

/// coturn without a time.
pub(super) const COTURN: [&str; 1] = ["{uptime:i}: : {level}: {msg}"];

/// Jitsi.
pub(super) const JITSI: [&str; 1] =
    ["{program:w} {time} {level}: [{tid:i}] ([{context}] )?{logger:w}#{line:i}: {msg}"];

/// FreeSWITCH with the identifier of a call.
pub(super) const CALL: [&str; 1] = ["{uuid:w} {time} ({idle:w}% )?[{level}] {source:s} {msg}"];

/// Drupal's message to syslog.
pub(super) const DRUPAL: [&str; 1] = [
    "{base_url:w}|{epoch:i}|{type}|{remote_addr:w}|{request_uri:w}|{referer:e}|{uid:i}|{link:t}|{msg}",
];

/// Tornado and Jupyter.
pub(super) const TORNADO: [&str; 2] = [
    "[{letter} {time} {module:w}:{line:i}] {msg}",
    "[{letter} {time} {logger:w}] {msg}",
];

/// Unbound.
pub(super) const UNBOUND: [&str; 1] = ["[{epoch:i}] {process:w}[{pid:i}:{tid:w}] {level}: {msg}"];

/// Factorio.
pub(super) const FACTORIO: [&str; 1] = ["_{uptime:f} {level} {file:w}:{line:i}: {msg}"];

/// Behind a time with a name of a day or a month: OpenVPN and SpamAssassin, OpenSIPS, Prosody, Keepalived, IBM Storage Scale, Mailman,
/// Aerospike, ONTAP, strongSwan.
pub(super) const ASCTIME: [&str; 14] = [
    " {msg:known}",
    " [{pid:i}] {level}: {msg}",
    " [{pid:i}] {level}:{module:w}:{function:w}: {msg}",
    " {logger:w}\t{level}\t{msg}",
    " [{level}] {msg}",
    " {LEVEL}: {msg}",
    " \\({pid:i}\\) {msg}",
    ": {level} \\({context:w}\\): (\\({file:w}:{line:i}\\) )?{msg}",
    " {level} \\({context:w}\\): (\\({file:w}:{line:i}\\) )?{msg}",
    " [{node:w}: {event:w}:{level}]: {msg}",
    " [{node:w}: {process:w}: {event:w}:{level}]: {msg}",
    " {thread:d}[{subsystem:w}] (<{connection:w}> )?{msg}",
    ": [{letter}] {msg}",
    ": {msg}",
];

/// PostgreSQL with the time within its prefix.
pub(super) const PREFIXED: [&str; 1] = ["{msg:prefixed}"];

/// Tor, and Rust's slog on a terminal, behind their time.
pub(super) const TOR: [&str; 3] = [
    " [{level}] {msg}",
    " {LEVEL} {msg:listed}",
    " {thread:d}[{subsystem:w}] (<{connection:w}> )?{msg}",
];

/// FreeRADIUS and ClamAV, behind their time.
pub(super) const RADIUS: [&str; 3] = [" : {category:w}: {msg}", " -> {level}: {msg}", " -> {msg}"];
