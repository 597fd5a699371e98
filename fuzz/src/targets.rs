//! The targets: one line each, calling an entry point that stands beside the decoder.

use logpond_protocol::intake;
use logpond_search as search;
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
pub(crate) const TARGETS: [Target; 7] = [
    target("syslog", intake::syslog::fuzz_syslog, true),
    target("syslog_frames", intake::syslog::fuzz_frames, true),
    target("push", intake::push::fuzz_push, true),
    target("json", intake::json::fuzz_json, true),
    target("access", intake::access::fuzz_access, true),
    target("journal_frames", journal::fuzz_frames, false),
    target("query", search::fuzz_query, true),
];
