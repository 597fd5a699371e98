//! Heads behind a time that begins the line: most programs write so.

/// Behind a time that begins the line.
pub(in crate::intake::programs) const TIMED: [&str; 237] = [
    // nginx, error log.
    " [{level}] {pid:i}#{tid:i}: (*{connection:i} )?{msg:nginx}",
    // MySQL 8, MySQL and MariaDB, error log.
    " {thread:i} [{level}] [{err_code:w}] [{subsystem:w}] {msg:mysql}",
    " {thread:i} [{level}] {msg:mysql}",
    // RabbitMQ.
    " [{level}] <{pid:w}> {msg:rabbitmq}",
    // MongoDB up to 4.2.
    " {letter}({verbosity:i})?~{component:u}~[{context:w}] {msg}",
    // ZooKeeper.
    " [myid:{myid:e}] - {level}~[{source}@{line:i}] - {msg}",
    // The same without a server of its own.
    " - {level}~[{source}@{line:i}] - {msg}",
    // fail2ban.
    " fail2ban~[{pid:i}]: {level}~{msg}",
    " fail2ban.{component:w}~[{pid:i}]: {level}~([{jail:w}] )?{msg}",
    // Windows, CBS.log and DISM.
    ", {level}~{component:w}~{msg}",
    // pgpool, pgBackRest, Barman, ProxySQL.
    ": pid {pid:i}: {label}:  {msg}",
    ": {process:w} pid {pid:i}: {label}:  {msg}",
    // PostgreSQL: the default, Debian's, pgBadger's, Amazon RDS, and Azure.
    " [{pid:i}{msg:postgres}",
    ":{msg:postgres}",
    "-{msg:postgres}",
    " P{process:d}~{level}: {msg}",
    " [{pid:i}] {logger:q} {level}: {msg}",
    " {file:w}:{line:i}:{function:w}: [{level}] {msg}",
    // Tarantool.
    " [{pid:i}] {fiber:w} ({source:s} )?{letter}> {msg}",
    // libvirt.
    ": {pid:i}: {level} : {function:w}:{line:i} : {msg}",
    // ClickHouse.
    " [ {tid:i} ] \\{{query_id:e}\\} <{level}> {logger}: {msg}",
    // etcd 3.3.
    " {letter} | {logger:w}: {msg}",
    // Kea.
    " {level}~[kea-{component:w}/{pid:w}] {msgid:w} {msg}",
    // log4j with the file and the line behind the logger.
    " {level}~[{thread}] [{logger:q}] \\({file:w}:{line:i}\\) - {msg}",
    // Flume.
    " {level}~[{thread}] \\({logger:w}:{line:i}\\)~- {msg}",
    // WildFly, Quarkus.
    " {level}~[{logger:w}] \\({thread}\\) {msg}",
    // Python with OpenTelemetry.
    " {level} [{logger:w}] [{source:s}] [trace\\_id={trace_id:w} span\\_id={span_id:w} \
     resource.service.name={resource.service.name:e}( trace\\_sampled={trace_sampled:w})?] - {msg}",
    // Hazelcast.
    " [_{level}] [{thread}] [{logger:w}]: [{member_addr:w}]:{member_port:i} [{cluster:w}] [{version:w}] {msg}",
    " [_{level}] [{thread}] [{logger:w}]: {msg}",
    " {level}~[{thread}] {logger:q} [{member_addr:w}]:{member_port:i} [{cluster:w}] [{version:w}] {msg}",
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
    // The same with an empty trace, and with Sleuth's.
    "~{level}~{pid:i} --- [{application}] [_{thread}] [_] {logger:w}_: {msg}",
    "~{level}~[{application:e},{trace_id:e},{span_id:e}(,{exportable:w})?] {pid:i} --- [_{thread}] {logger:w}_: {msg}",
    // log4j, logback and log4net with the line, and without a thread.
    " [{thread}] {level}~{logger:w}:{line:i} - {msg}",
    " [{thread}] {level}~{logger:w} [{ndc:t}] - {msg}",
    "~{level}~{logger:w}:{line:i} - {msg}",
    "~{level}~{logger:q} - {msg}",
    // logback, log4j2, log4net.
    " [{thread}] {level}~{logger:w} - {msg}",
    // logback from version 1.3, where there are no pairs before the message.
    " [{thread}] {level}~{logger:w} -- {msg}",
    // The same with a colon behind the logger.
    " [{thread}] {level}~{logger:q}: {msg}",
    // Agents of New Relic and Instana.
    " [{pid:i} {tid:i}] {logger:q} {level}: {msg}",
    " \\({pid:i}/{thread:w}\\) {logger:w} {level} - {msg}",
    " | {LEVEL}_| {logger:q} | {msg}",
    // Artifactory.
    " [{service:w}_] [{level}_] [{trace_id:e}_] [{logger:w}:{line:i}_] [{thread}_] [{context:t}] - {msg}",
    " [{service:w}_] [{level}_] [{trace_id:e}_] [{logger:w}:{line:i}_] [{thread}_] - {msg}",
    // GoCD, Cassandra, with the line.
    "~{level}~[{thread}] {logger:w}:{line:i} - {msg}",
    // Jetty.
    ":{level}:{logger:w}:{thread:w}: {msg}",
    // Solr.
    "~{level}~\\({thread}\\) [{context}] {logger:q} {msg}",
    // OSSEC and Wazuh, with the place in debugging and without.
    " {component:w}[{pid:i}] {file:w}:{line:i} at {function:w}: {level}: {msg}",
    " {component:w}:{module:w}: {level}: {msg}",
    // Rust's tracing with the number of the thread.
    "~{level}~ThreadId\\({tid:w}\\) {logger:q}: {msg:beside}",
    "~{level}~ThreadId\\({tid:w}\\) {logger:w}: {msg:beside}",
    // lighttpd.
    ": \\({file:w}:{line:i}\\) {msg}",
    ": \\({file:w}\\) {msg}",
    // log4j and logback with the file and the line.
    "~{level}~[{thread}] {logger:w} \\({file:w}:{line:i}\\) - {msg}",
    " [{thread}] {level}~{logger:w} \\({file:w}:{line:i}\\) - {msg}",
    // Zimbra, Openfire, Liferay, Nexus, Alfresco.
    "~{level}~[{thread}] [{context:t}] {component:w} - {msg}",
    "~{level}~[{thread}]: {logger:q} - {msg}",
    "~{level}~[{thread}][{logger:w}:{line:i}] {msg}",
    "~{level}~[{thread}] {user:w} {logger:q} - {msg}",
    "~{level}~[{logger:q}] [{thread}] {msg}",
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
    // Rust's tracing within spans.
    "~{level} {spans:x}: {logger:q}: {msg:beside}",
    "~{level} {spans:x}: {logger:w}: {msg:beside}",
    // Hadoop, HBase, Rust's tracing.
    "~{level}~{logger:q}: {msg:beside}",
    // Python's logging.
    " - {logger:w} - {level} - {msg}",
    // Synapse.
    " - {logger:w} - {line:i} - {level} - {request} - {msg}",
    // Deluge, AdGuard Home, Vertica.
    " [{level}_][{logger:w}:{line:i}_] {msg}",
    " {pid:i}#{tid:i} [{level}] {msg}",
    " {thread:w} [{component:w}] <{level}> {msg}",
    // Datadog's agents.
    " | {agent:w} | {level}_| \\({source}\\) | {msg}",
    // ActiveMQ, Karaf.
    " | {level}_| {msg:activemq}",
    " | {level}_| {thread}_| {logger:w}_| {bundle_id:i} - {bundle:w} - {bundle_version:w} | {msg}",
    // loguru, Prefect.
    " | {level}_| {logger:w}:{function:w}:{line:i} - {msg}",
    " | {level}_| {source} - {msg}",
    // Python's logging with bars.
    " | {logger:w} | {level}_| {msg}",
    // NLog, with a thread and without.
    "|{thread:i}|{level}|{logger:w}|{msg}",
    "|{level}|{logger:w}|{msg}",
    // TeamSpeak, Grid Engine.
    "|{level}_|{component:w}_|_{server_id:e}_|{msg}",
    "|_{thread:w}|{hostname:w}|{letter}|{msg}",
    // VMware's virtual machines.
    "| {thread:w}| {letter}{verbosity:d}: {msg}",
    // Open vSwitch, OVN.
    "|{sequence:w}|{module:w}|{level}|{msg}",
    // zap's console encoder with the function.
    "\t{level}\t{logger:w}\t{caller:p}\t{function:q}\t{msg:zap}",
    "\t{level}\t{caller:p}\t{function:q}\t{msg:zap}",
    // zap's console encoder.
    "\t{level}\t{caller:p}\t{msg:zap}",
    "\t{level}\t{logger:w}\t{caller:p}\t{msg:zap}",
    // Trino, Jenkins.
    "\t{level}\t{thread}\t{logger:q}\t{msg}",
    " [id={thread_id:i}]\t{level}\t{logger:w}: {msg}",
    "\t{level}\t{logger:w}\t{msg:zap}",
    "\t{level}\t{msg:zap}",
    // Kiwi, Solace.
    "\t{facility_name:w}.{level}\t{hostname:w}\t{msg}",
    " <{facility_name:w}.{level}> {hostname:w} {app:w}([{procid:i}])?: {msg}",
    // AWS Lambda, Node.
    "\t{request_id:w}\t{level}\t{msg}",
    // Sidekiq.
    " pid={pid:i} tid={tid:w} (class={class:w} )?(jid={jid:w} )?(bid={bid:w} )?(tags={tags:w} )?(elapsed={elapsed:w} )?{level}: {msg}",
    // The same before version 6.
    " {pid:i} TID-{tid:w} ({class:w} JID-{jid:w} )?{level}: {msg}",
    // Yii, Laminas, TensorFlow.
    " [{remote_addr:e}][{user:e}][{session:e}][{level}][{category:e}] {msg}",
    " {level} \\({level_value:i}\\): {msg}",
    ": {letter} {file:w}:{line:i}] {msg}",
    // hclog of HashiCorp.
    " [{level}]  {logger:w}: {msg:hclog}",
    " [ERROR] {logger:w}: {msg:hclog}",
    " [DEBUG] {logger:w}: {msg:hclog}",
    " [TRACE] {logger:w}: {msg:hclog}",
    // Android Studio's logcat, and that of its older versions.
    "~{pid:i}-{tid:i}~{tag:w}~{package:w}~{letter}~{msg}",
    "~{pid:i}-{tid:i}~{tag}  _{package:w}~{letter}~{msg}",
    "~{pid:i}-{tid:i}/{package:w}~{letter}/{tag}: {msg}",
    // Android's logcat with the user, format threadtime.
    "~{uid:w}~{pid:i}~{tid:i} {letter} {tag:w}_: {msg}",
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
    // MonetDB.
    " MSG {app:w}[{procid:i}]: {is:info}{msg}",
    " {abbr} {app:w}[{procid:i}]: {msg}",
    // dpkg, and the history of ZYpp: an installed package, one that was removed, a repository, and a command.
    " {msg:dpkg}",
    "|{action:w}_|{package:w}|{version:w}|{architecture:w}|{user:e}|{repository:e}|{checksum:e}|",
    "|{action:w}_|{package:w}|{version:w}|{architecture:w}|{user:e}|",
    "|radd_|{repository:w}|{url:w}|",
    "|command_|{user:w}|{command}|",
    // Azure's App Service, and a process and its number before the level.
    " PID[{pid:i}] {level}~{msg}",
    " {process:w}[{pid:i}](:)? {level}(:)? {msg}",
    " {process:w}[{pid:i}]: {msg}",
    // Dovecot.
    " {msg:dovecot}",
    // BIND, OSSEC, Wazuh.
    " {component:w}: {level}: {msg:query}",
    // BIND without a category, about a query.
    " {msg:client}",
    // PostgreSQL with another log_line_prefix.
    "{msg:postgres}",
    // Elixir, within a request.
    " request\\_id={request_id:w} [{level}] {msg}",
    // strongSwan.
    " {thread:d}[{subsystem:w}] (<{connection:w}> )?{msg}",
    // frp and Beego, Xray.
    " [{letter}] [{source:s}]~([{request_id:w}] )?{msg}",
    " [{level}] [{session_id:i}] {component:w}: {msg}",
    // Firecracker.
    " [{instance:w}:{thread:w}:{level}:{file:w}:{line:i}] {msg}",
    // Agents of Google.
    " {program:w} {level} {file:w}:{line:i}: {msg}",
    // coturn, ZYpp, Windows Update, Netlogon.
    ": {uptime:i}: : {level}: {msg}",
    " <0> {hostname:w}\\({pid:i}\\) [{component:w}] {is:debug}{file:w}\\({function:w}\\):{line:i} {msg}",
    " <1> {hostname:w}\\({pid:i}\\) [{component:w}] {is:info}{file:w}\\({function:w}\\):{line:i} {msg}",
    " <2> {hostname:w}\\({pid:i}\\) [{component:w}] {is:warn}{file:w}\\({function:w}\\):{line:i} {msg}",
    " <3> {hostname:w}\\({pid:i}\\) [{component:w}] {is:error}{file:w}\\({function:w}\\):{line:i} {msg}",
    "\t_{pid:w}\t{tid:w}\t{component:w}\t{level}: {msg}",
    "\t_{pid:i}\t_{tid:w}\t{component:w}\t{msg}",
    " [{category:u}] [{tid:i}] {msg}",
    // Fly.io, Cloud Foundry.
    " app[{instance:w}] {region:w} [{level}]_{msg}",
    " [{source_type:w}] OUT {msg}",
    // NGINX Unit.
    " [{level}] {pid:i}#{tid:i} {msg}",
    // fluentd, BIRD.
    " [{level}]: {msg}",
    " <{level}> {msg}",
    // Jira.
    " {thread:w} {level} {user:w} {request_id:w} {session:w} {remote_addr:w} {path:w} [{logger:q}] {msg}",
    // SQL Server.
    " spid{spid:w}~{msg}",
    " Logon       {msg}",
    " Server      {msg}",
    " Backup      {msg}",
    // Google's logging libraries behind the time of a container's runtime.
    " {letter}{day_written:w} {time_written:w}~{tid:i} {file:w}:{line:i}] {msg:klog}",
    // Telegraf.
    " {letter}! [{plugin:w}] {msg}",
    " {letter}! {msg}",
    // cloud-init, SABnzbd, Kodi.
    " - {file:w}[{level}]: {msg}",
    "::{level}::{msg}",
    "~T:{tid:i}~{level} <{component}>: {msg}",
    // Calico, openHAB.
    " [{level}][{pid:i}] {file:w} {line:i}: {msg}",
    " [{level}_] [{logger:w}_] - {msg}",
    // FreeSWITCH.
    " ({idle:w}% )?[{level}] {source:s} {msg}",
    // Play.
    " [{level}] from {logger:w} in {thread:w} - {msg}",
    // ejabberd.
    " [{level}] <{pid:w}>@{module:w}:{function:w}:{line:i} {msg}",
    // ArangoDB.
    " [{pid:i}] {level} ([{log_id:w}] )?\\{{topic:w}\\} {msg}",
    // loguru of C++.
    " \\(_{uptime:w}\\) [{thread}_]~{source:s}~{level}| {msg}",
    // Timbre of Clojure.
    " {hostname:w} {level} [{logger:w}:{line:i}] - {msg}",
    // swift-log.
    " {level} {logger:w} :_[{module:w}] {msg}",
    " {level} {logger:w} : {metadata} [{module:w}] {msg}",
    " {level} {logger:w} : {msg}",
    // Crystal.
    "~{level} - {logger:w}: {msg}",
    // .NET's console with a time.
    "~{level}: {logger:w}[{event_id:i}] {msg}",
    "~{level}: {logger:w}[{event_id:i}]\n_{msg}",
    // Node-RED.
    " - [{level}] [{node:q}] {msg}",
    " - [{level}] {msg}",
    // ioBroker.
    "~- {level}: {msg}",
    // GitHub's and Azure's pipelines.
    " ##[{level}]{msg}",
    // Ceph: its cluster's log, that of `ceph -w`, and a daemon's.
    " {name:w} \\({entity:w}\\) {sequence:i} : {channel:w} [{level}] {msg}",
    " {name:w} [{level}] {msg}",
    " {thread:h} -1 {is:error}{msg}",
    " {thread:h}~{verbosity:i} {msg}",
    // Apache Storm.
    " {logger:q} {thread:w} [{level}] {msg}",
    // ESXi.
    " {severity_name:w}\\({priority:i}\\) {app:w}[{procid:i}]: {msg}",
    " {severity_name:w}\\({priority:i}\\) {app:w}: {msg}",
    " {severity_name:w}\\({verbosity:d}\\) {thread:w} - {msg}",
    // IBM Storage Scale.
    ": [{letter}] {msg}",
    // Xcode's console.
    " {process:w}[{pid:i}:{tid:w}] [{category}] {msg}",
    " {process:w}[{pid:i}:{tid:w}] {msg}",
    // rspamd.
    " #{pid:i}\\({process:w}\\) <{tag:e}>; {module:w}; {msg}",
    // Luanti.
    ": {level}[{thread}]: {msg}",
    // Brocade.
    ", [{msgid:w}], {sequence:w}, {flags}, {level}, {switch:w}, {msg:brocade}",
    ", [{msgid:w}], {sequence:w},, {level}, {switch:w}, {msg:brocade}",
    // Exim.
    " ([{pid:i}] )?{queue_id:w} {msg:exim}",
    // Exim without the identifier of a message, OpenVPN, MySQL's wrappers.
    " [{pid:i}] {msg:known}",
    " {msg:known}",
    // The kernel, `dmesg --time-format iso`.
    " {msg:packet}",
    // Puppet.
    " {program:w} \\({level}\\): {msg}",
    // Pi-hole, Scrapy.
    " [{pid:d}] {level}: {msg}",
    " [{logger:w}] {level}: {msg}",
    // Twisted.
    " [{logger:e}#{level}] {msg}",
    " [-] {msg}",
    // Ruby's Semantic Logger.
    " {letter} [{pid:i}:{thread}] ([{tags}] )?(\\{{named_tags}\\} )?(\\({duration:w}\\) )?{logger:w} -- {msg}",
    // quill.
    " [{tid:i}] {source:s}~LOG\\_{level}~{logger:w}~{msg}",
    // structlog, and loggers that pad the level.
    " [{level}~] {msg:structlog}",
    // zerolog.
    " {abbr} {caller:s} > {msg:pairs}",
    // slog of Go with tint.
    " {abbr} {caller:s} {msg:pairs}",
    " |{abbr}| {msg:pairs}",
    " {abbr} {msg:pairs}",
    // logfmt.
    "~{msg:keyed}",
    // A level and a logger in brackets.
    " [{level}_] [{logger:q}] {msg}",
    // MySQL 5.5 and others that have a level alone.
    " [{level}] {msg:mysql}",
    "~[{level}]~{msg}",
    // Python's logging with colons, and with a name of one's own.
    ":{level}:{logger:w}:{msg}",
    // Agents of Dynatrace and Instana.
    " [{thread}] {level}~[{logger:w}] {msg}",
    " [{thread}] {LEVEL}~{msg}",
    // logback about itself, 7 Days to Die, MaxScale.
    " |-{level} in {logger} - {msg}",
    " {uptime:f} {abbr} {msg}",
    "~{level}~: {msg}",
    " {level}: {msg}",
    " - {LEVEL} - {msg}",
    " | {LEVEL}_| {msg}",
    "~{LEVEL}: {msg}",
    "~{LEVEL}~- {msg}",
    "~{LEVEL}~{msg}",
];
