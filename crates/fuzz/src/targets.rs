//! The targets: one line each, calling an entry point that stands beside the decoder.

use logpond_protocol::{intake, proxy};
use logpond_search::{alert, logql, logsql, query};
use logpond_segment::journal;

/// A decoder under test.
pub(crate) struct Target {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// Runs one input; panics where an invariant does not hold.
    pub(crate) run: fn(&[u8]),
    /// Whether lines of logs are good inputs.
    pub(crate) takes_lines: bool,
}

const fn target(name: &'static str, run: fn(&[u8]), takes_lines: bool) -> Target {
    Target {
        name,
        run,
        takes_lines,
    }
}

/// All targets.
pub(crate) const TARGETS: [Target; 34] = [
    target("syslog", intake::fuzz::fuzz_syslog, true),
    target("frames", intake::fuzz::fuzz_frames, true),
    target("line", intake::fuzz::fuzz_line, true),
    target("access", intake::fuzz::fuzz_access, true),
    target("access_format", intake::fuzz::fuzz_access_format, true),
    target("timezone", intake::fuzz::fuzz_timezone, true),
    target("audit", intake::fuzz::fuzz_audit, true),
    target("json", intake::fuzz::fuzz_json, true),
    target("push", intake::fuzz::fuzz_push, true),
    target("docker", intake::fuzz::fuzz_docker, true),
    target("cri", intake::fuzz::fuzz_cri, true),
    target("assembly", intake::fuzz::fuzz_assembly, true),
    target("multiline", intake::fuzz::fuzz_multiline, true),
    target("shippers", intake::fuzz::fuzz_shippers, true),
    target("logsql", logsql::fuzz_logsql, false),
    target("gelf", intake::fuzz::fuzz_gelf, true),
    target("rewrite", intake::rewrite::fuzz::fuzz_rewrite, true),
    target("journal_export", intake::fuzz::fuzz_journal_export, false),
    target("journal_native", intake::journal_native::fuzz_native, false),
    target("journal_stdout", intake::journal_stdout::fuzz_stdout, false),
    target("kmsg", intake::kmsg::fuzz_kmsg, false),
    target("audit_netlink", intake::audit::netlink::fuzz_netlink, false),
    target("journal_file", intake::fuzz::fuzz_journal_file, false),
    target("unpack", intake::fuzz::fuzz_unpack, false),
    target("fluent", intake::fuzz::fuzz_fluent, false),
    target("proxy", proxy::fuzz_proxy, false),
    target("journal", journal::fuzz_frames, false),
    target("uploads", journal::fuzz_uploads, false),
    target("query", query::fuzz_query, true),
    target("logql", logql::fuzz_logql, true),
    target("variables", logql::variables::fuzz_variables, true),
    target("alert_rules", alert::fuzz_alert_rules, true),
    target("matches", logpond_search::journal::fuzz_matches, false),
    target("columns", logpond_search::columns::fuzz_columns, false),
];
