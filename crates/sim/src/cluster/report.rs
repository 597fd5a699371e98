//! What runs did, for people, and so that it can be asserted that they did something.

use std::fmt;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident: $text:literal,)*) => {
        /// Counts of one or more runs.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Report {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Report {
            /// Adds the counts of other runs.
            pub fn add(&mut self, other: &Report) {
                $(self.$name += other.$name;)*
            }
        }

        impl fmt::Display for Report {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let counts = [$((self.$name, $text),)*];
                let texts: Vec<String> =
                    counts.iter().map(|(count, text)| format!("{count} {text}")).collect();
                f.write_str(&texts.join(", "))
            }
        }
    };
}

counts! {
    /// Runs.
    runs: "runs",
    /// Batches that producers made.
    batches: "batches",
    /// Acknowledgements.
    acknowledgements: "acknowledged",
    /// Batches of which producers were told that stores have them.
    replicated: "replicated",
    /// Sendings of batches that were sent before.
    retries: "sent again",
    /// Messages, replies included.
    messages: "messages",
    /// Messages that did not arrive.
    dropped: "dropped",
    /// Ends of processes.
    crashes: "crashes",
    /// Processes that stood still for a while.
    pauses: "pauses",
    /// Links that were cut for a while.
    cuts: "cuts",
    /// Clocks that were set wrong.
    jumps: "clock jumps",
    /// Disks that were lost.
    losses: "disks lost",
    /// Disks that came back as they were earlier.
    restores: "disks restored",
    /// Segments that were damaged.
    damages: "segments damaged",
    /// Those of which somebody noticed.
    damages_noticed: "damages noticed",
    /// Disks that were full for a while.
    fulls: "full disks",
    /// Batches, copies and records that were refused for that.
    refused_full: "refused for want of room",
    /// Nodes that were to leave.
    drains: "drains",
    /// Those that were to stay after all.
    stayed: "stayed",
    /// Those that have left.
    left: "left",
    /// Nodes that were given up.
    forgotten: "forgotten",
    /// Syncs that failed.
    sync_errors: "sync errors",
    /// Sources that stores reported.
    consumed: "sources consumed",
    /// Journal files that ingesters dropped.
    dropped_sources: "files dropped",
    /// Merges of segments.
    merges: "merges",
    /// Merges whose inputs had to stay.
    kept_inputs: "inputs kept",
    /// Copies that repair sent.
    repairs: "repairs",
    /// Segments that were given up.
    given_up: "segments given up",
    /// Journal files that differ from what stores have.
    conflicts: "conflicts",
    /// Times that the number of copies of everything was checked.
    checks: "checks of copies",
    /// Answers.
    answers: "answers",
    /// Answers that claimed to be complete.
    complete: "complete",
    /// Answers that said what was missing.
    incomplete: "incomplete",
    /// Sources whose counted rows were compared.
    sources_counted: "sources counted",
}
