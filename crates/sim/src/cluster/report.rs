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
    /// Segments that were written anew without what others hold.
    trims: "segments trimmed",
    /// Sources that were left out of them.
    trimmed: "sources trimmed",
    /// Attempts of it that came to nothing.
    untrimmed: "attempts to trim that came to nothing",
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
    /// Runs with a bucket.
    bucket_runs: "with a bucket",
    /// Runs that ended with stores in several zones, and copies in these.
    zone_runs: "with zones",
    /// Segments that were uploaded.
    uploads: "uploads",
    /// Links that were written.
    links: "links",
    /// Links of which another writer had the name.
    lost_races: "lost races",
    /// Segments whose sources others had listed.
    held: "listed by others",
    /// Segments that share sources with what others had listed.
    overlaps: "overlaps",
    /// Merges of those with these.
    overlap_merges: "merges of overlaps",
    /// Segments that got another name, as theirs was used up in the bucket.
    renewals: "segments renewed",
    /// Segments that were taken off for their age.
    expiries: "expiries in the bucket",
    /// Old links that were removed.
    swept_links: "links swept",
    /// Segments that were removed because nobody lists them.
    swept_segments: "segments swept",
    /// Local copies that were given up for those in the bucket.
    left_to_bucket: "left to the bucket",
    /// Sources of which one copy waited to be listed.
    on_their_way: "sources on their way",
    /// Segments that another cluster's store has put there.
    foreign: "changes by another cluster",
    /// Sources of it that answers had to count, and did.
    foreign_counted: "sources of another cluster counted",
    /// Times that a node could not reach the bucket for a while.
    bucket_cuts: "cuts from the bucket",
    /// Rounds that ended since the bucket did not answer.
    unreachable: "rounds without the bucket",
    /// Lost disks of clusters with a bucket.
    bucket_losses: "disks lost before a bucket",
    /// Segments that were read from the bucket for questions.
    remote_reads: "segments read remotely",
    /// Those that could not be.
    remote_failures: "remote reads failed",
    /// Complete answers with something that was read from the bucket.
    remote_complete: "complete with remote reads",
    /// Answers that say that the bucket was not read.
    unread: "answers without the bucket",
}
