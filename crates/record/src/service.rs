//! The labels that name the service of a record.

/// The name of the label with the service of a record.
pub const SERVICE_NAME: &str = "service_name";

/// The service of records that do not name one.
pub const UNKNOWN_SERVICE: &str = "unknown_service";

/// The labels that name a service, the first one that is there counts: those that Grafana's tools
/// expect, then those of syslog and of systemd's journal.
pub const SERVICE_LABELS: [&str; 18] = [
    "service",
    "app",
    "application",
    "app_name",
    "name",
    "app_kubernetes_io_name",
    "container",
    "container_name",
    "k8s_container_name",
    "component",
    "workload",
    "job",
    "k8s_job_name",
    "appname",
    "SYSLOG_IDENTIFIER",
    "_SYSTEMD_UNIT",
    "unit",
    "program",
];

/// Those of them that Loki makes the name of a service from.
pub const SERVICE_LABELS_OF_LOKI: &[&str] = SERVICE_LABELS.split_at(13).0;
