//! End to end: the real program, real processes, real files, real peers.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "tests cast numbers that they know"
)]

#[allow(
    dead_code,
    reason = "the benchmark uses these modules too, each user a part"
)]
mod http;
#[allow(
    dead_code,
    reason = "the benchmark uses these modules too, each user a part"
)]
mod pond;

mod surroundings;
mod access;
mod access_logs;
mod alerts;
mod audit;
mod bucket;
mod bucket_cluster;
mod bulk;
mod clients;
mod command_line;
mod compressed;
mod cluster;
mod containers;
mod crash;
mod crowds;
mod damage;
mod dashboards;
mod demo;
mod dev_log_stream;
mod disk_full;
mod failures;
mod exact_numbers;
mod facts;
mod fields;
mod fluent;
mod grafana_json;
mod follow;
mod load;
mod local;
mod loki_api;
mod loki_clients;
mod loki_cluster;
mod loki_names;
mod loki_tail;
mod forwarded;
mod http2;
mod hints;
mod import;
mod pull;
mod join_by_name;
mod journal_command;
mod journal_gatewayd;
mod journal_terminal;
mod journal_upload;
mod journal_verify;
mod kmsg;
mod late;
mod mcp;
mod nginx;
mod page;
mod patterns;
mod nodes;
mod open_table;
mod original;
mod process;
mod proxy;
mod readers;
mod refused;
mod relp_resends;
mod report;
mod members;
mod memory;
mod memory_limit;
mod resends;
mod reserved_names;
mod retention;
mod restarts;
mod roles;
mod rsyslog;
mod rules;
mod s3;
mod saved_queries;
mod shippers;
mod shown_is_found;
mod spool;
mod syslog_ng;
mod systemd;
mod terminal;
mod timezones;
mod tls_proxy;
mod tracing;
mod trimming;
mod unpacked;
mod vacuum;
mod vendor_pushes;
mod vanished;
