//! The store's half: claims become segments here and copies elsewhere.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use logpond_cluster::NodeId;
use logpond_cluster::consume::{Consume, Step};
use logpond_cluster::give_up::{Content, WhoHolds};
use logpond_cluster::offers::{Claim, OfferedFile};
use logpond_cluster::placement::{Key, cohort_hour};
use logpond_protocol::intake::Parser;
use logpond_record::{Id, cast};
use logpond_segment::build::{self, BuildLimits};
use logpond_segment::journal::{ClosedFile, SUFFIX_CLOSED, Summary};

use super::pace::ClaimStats;
use super::{Handoff, new_attempt};
use logpond_engine::store::LiveSegment;
use logpond_host::panics::caught;
use logpond_host::shutdown::Shutdown;
use logpond_host::side_by_side::side_by_side;
use logpond_host::telemetry::warn;
use logpond_host::terminal::with_causes;

/// Where journal files of other nodes are while a segment is made of them.
pub(super) const DIRECTORY: &str = "handoff";

impl Handoff {
    /// Consumes until nobody offers anything, or until the stop.
    pub(super) fn consume_all(&self, stop: &Shutdown) {
        while !stop.is_stopping() && self.parts.member.keeps() && self.consume_once(stop) {}
    }

    /// Consumes one claim, of this node or of another. False if there is none.
    fn consume_once(&self, stop: &Shutdown) -> bool {
        let own = self.own();
        if let Some(claim) = self.claim(own) {
            self.consume(claim, own, stop);
            return true;
        }
        for ingester in self.offering.nodes() {
            if let Ok(Some(claim)) = self.parts.member.claim_from(ingester) {
                self.consume(claim, ingester, stop);
                return true;
            }
            // It says so when it has something again.
            self.offering.take_back(ingester);
        }
        false
    }

    /// Makes segments of a claim. One that is left at the stop is claimed again later, by this node or another.
    fn consume(&self, claim: Claim, ingester: NodeId, stop: &Shutdown) {
        let member = &self.parts.member;
        let (own, copies) = (self.own(), member.copies());
        let seconds = cast::unsigned((self.parts.clock)().unix_ms().max(0)) / 1000;
        let cohort = Key::Cohort {
            store: own,
            hour: cohort_hour(seconds),
        };
        let targets = cohort.rank_targets(&member.stores(), &member.peers([own]));
        let others = member.live_others();
        let id = claim.id;
        let journal_bytes = claim.files.iter().map(|file| file.bytes).sum();
        let began = Instant::now();
        let mut served = ClaimStats {
            began_ms: self.now_ms(),
            journal_bytes,
            ..ClaimStats::default()
        };
        let mut work = Consume::new(own, claim, &others, targets, copies, new_attempt());
        while !stop.is_stopping() {
            match work.next(&self.holdings()) {
                Step::Ask { nodes, question } => self.ask(&mut work, &nodes, &question),
                Step::Build(files) => {
                    if let Some((stored_bytes, raw_bytes)) = self.build(&mut work, &files, ingester)
                    {
                        served.stored_bytes += stored_bytes;
                        served.raw_bytes += raw_bytes;
                    }
                }
                Step::Send { segment, to } => self.send(&mut work, segment, &to),
                Step::Report { sources, .. } => {
                    let sources = Some(&sources).filter(|sources| !sources.is_empty());
                    // What others had made already took no time.
                    if sources.is_some() && served.raw_bytes > 0 {
                        served.seconds = began.elapsed().as_secs_f64();
                        self.state().pace.serve(served);
                    }
                    if ingester == own {
                        self.reported(id, sources)
                    } else {
                        // A report that does not arrive is made up for by the next attempt.
                        drop(member.report_to(ingester, id, sources))
                    }
                    return;
                }
                // Everything that was begun has ended: each step waits for its own work.
                Step::Wait => return,
            }
        }
    }

    /// Asks stores side by side.
    fn ask(&self, work: &mut Consume, nodes: &[NodeId], question: &WhoHolds) {
        let member = &self.parts.member;
        let answers = side_by_side(nodes.iter().copied(), |node| {
            member.who_holds(node, question)
        });
        for (node, answer) in answers {
            match answer {
                Some(Ok(held)) => work.answered(&held),
                _ => work.unheard(node),
            }
        }
    }

    /// Makes a segment, and gives the bytes of its file and of the lines in it, if it can.
    fn build(
        &self,
        work: &mut Consume,
        files: &[OfferedFile],
        ingester: NodeId,
    ) -> Option<(u64, u64)> {
        let built = self.try_build(work, files, ingester);
        let bytes = match built {
            Ok(bytes) => Some(bytes),
            Err(what) => {
                self.counters.failures.add(1);
                warn(&format!(
                    "journal files could not be put into a segment: {what}"
                ));
                work.not_built();
                None
            }
        };
        if ingester != self.own() {
            files.iter().for_each(|file| self.discard_download(file));
        }
        bytes
    }

    fn try_build(
        &self,
        work: &mut Consume,
        files: &[OfferedFile],
        ingester: NodeId,
    ) -> Result<(u64, u64), String> {
        let mut closed = Vec::new();
        for file in files {
            let found = if ingester == self.own() {
                self.closed(file.content.source)
            } else {
                Some(self.download(file, ingester)?)
            };
            // One that is gone meanwhile is with others.
            closed.extend(found);
        }
        let disk = &*self.parts.disk;
        let id = self.new_id();
        let mut parser = Parser::new();
        let within = BuildLimits {
            memory_bytes_max: self.mark.memory_bytes_max(),
            ..BuildLimits::default()
        };
        let parse = || build::from_journal_within(disk, id, &closed, within, |e| parser.parse(e));
        let built = self.mark.during(|| caught(parse));
        let built = built.map_err(|error| self.discarded(id, &error))?;
        let built = built.map_err(|panicked| self.discarded(id, &panicked))?;
        let built = built.map_err(|error| self.discarded(id, &error))?;
        let manifest = &built.written.manifest;
        let contents: Vec<Content> = manifest.sources.iter().map(Content::of).collect();
        let segment = build::open(disk, id).map_err(|error| self.discarded(id, &error))?;
        if let Err(differs) = work.built(id, &contents) {
            let what = format!("{:?} do not hold what their ingester says", differs.sources);
            return Err(self.discarded(id, &io::Error::other(what)));
        }
        let bytes = (segment.bytes(), manifest.line_bytes);
        let live = Arc::new(LiveSegment::new(segment));
        self.parts.live.replace(&[], Some(live));
        self.counters.consumed_files.add(closed.len() as u64);
        self.counters.consumed_rows.add(manifest.rows);
        let met = parser.take_met();
        self.counters.unfit_lines.add(met.unfit);
        self.counters.panicked_lines.add(met.panicked);
        Ok(bytes)
    }

    /// Removes what a failed attempt has left, and says what failed.
    fn discarded(&self, id: Id, error: &dyn std::error::Error) -> String {
        let mut text = with_causes(error);
        if let Err(error) = build::discard(&*self.parts.disk, id) {
            text.push_str(&format!("; nor can the attempt be removed: {error}"));
        }
        text
    }

    /// Copies a journal file of another node to this one's disk. Each frame checks itself when it is
    /// read, so the bytes are taken as they come.
    fn download(&self, file: &OfferedFile, ingester: NodeId) -> Result<ClosedFile, String> {
        let disk = &*self.parts.disk;
        disk.create_directory(DIRECTORY)
            .map_err(|e| e.to_string())?;
        self.discard_download(file);
        let path = download_path(file);
        let mut into = disk.create(&path).map_err(|e| e.to_string())?;
        let mut from = self
            .parts
            .member
            .journal_of(ingester, file.content.source)
            .map_err(|error| error.to_string())?;
        let mut buffer = vec![0; 256 << 10];
        let mut left = file.bytes;
        while left > 0 {
            let most = buffer
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            let count = from.read(&mut buffer[..most]).map_err(|e| e.to_string())?;
            if count == 0 {
                return Err(format!("{path}: {left} bytes are missing"));
            }
            into.append(&buffer[..count]).map_err(|e| e.to_string())?;
            left -= count as u64;
        }
        Ok(ClosedFile {
            path,
            source: file.content.source,
            bytes: file.bytes,
            summary: Summary::default(),
            batches: Arc::default(),
        })
    }

    fn discard_download(&self, file: &OfferedFile) {
        // What cannot be removed is overwritten or found at the next start.
        let _ = self.parts.disk.remove(&download_path(file));
    }

    /// Sends copies side by side.
    fn send(&self, work: &mut Consume, segment: Id, to: &[NodeId]) {
        let answers = side_by_side(to.iter().copied(), |node| self.send_copy(segment, node));
        for (node, answer) in answers {
            match answer {
                Some(Ok(())) => {
                    self.counters.copies_sent.add(1);
                    work.stored(segment, node);
                }
                _ => {
                    self.counters.failures.add(1);
                    work.not_stored(segment, node);
                }
            }
        }
    }
}

fn download_path(file: &OfferedFile) -> String {
    let source = file.content.source;
    format!(
        "{DIRECTORY}/{}-{:016}{SUFFIX_CLOSED}",
        source.incarnation, source.sequence
    )
}
