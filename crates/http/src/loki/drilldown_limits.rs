//! `GET /loki/api/v1/drilldown-limits`: what Grafana's app for logs asks when it starts.

use hyper::Response;
use logpond_search::label::{LEVEL_LABELS, SERVICE_LABELS};
use serde_json::json;

use super::build_info::API_VERSION;
use super::reply;
use crate::body::Body;

/// Rows and series of an answer, for clients that ask for no more than they are told they may: a
/// number beyond what any of them shows. What answers take is bounded in bytes.
const COUNT_MAX: u64 = 1_000_000;

/// Says that there are next to no limits. Durations and sizes of 0 are none.
pub(super) fn answer() -> Response<Body> {
    reply::json(&json!({
        "limits": {
            "discover_log_levels": true,
            "discover_service_name": SERVICE_LABELS,
            "log_level_fields": LEVEL_LABELS,
            "max_entries_limit_per_query": COUNT_MAX,
            "max_line_size_truncate": false,
            "max_query_bytes_read": "0B",
            "max_query_length": "0s",
            "max_query_lookback": "0s",
            "max_query_range": "0s",
            "max_query_series": COUNT_MAX,
            "metric_aggregation_enabled": false,
            "pattern_persistence_enabled": false,
            "query_timeout": "0s",
            "retention_period": "0s",
            "volume_enabled": true,
            "volume_max_series": COUNT_MAX,
        },
        "pattern_ingester_enabled": true,
        "version": API_VERSION,
    }))
}
