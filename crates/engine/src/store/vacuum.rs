//! Removing the oldest files when somebody asks for it, as `journalctl --vacuum-…` does.

use logpond_segment::retain::{self, Room};

use super::RequestError;
use super::steps::{Worker, describe};
use logpond_host::telemetry::say;
use logpond_render::quantity;

/// How much is to stay; `None` is no limit. As for retention, the newest file goes for its age only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vacuum {
    /// Files all of whose records were received longer ago go.
    pub age_ns: Option<i64>,
    /// The most bytes that stay.
    pub size_bytes: Option<u64>,
    /// The most files that stay.
    pub files_max: Option<usize>,
    /// Whether the journal's open file is closed first, so that it may go, too.
    pub rotate: bool,
}

/// The numbers of removed files and records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VacuumReport {
    /// Segments and journal files.
    pub files: u64,
    /// Records in them.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Worker {
    /// Removes what is beyond the limits. What was retired before goes from the disk, too.
    pub(super) fn vacuum(&mut self, limits: &Vacuum) -> Result<VacuumReport, RequestError> {
        if limits.rotate {
            self.parts.closer.close().map_err(RequestError::Failed)?;
        }
        let now = match limits.age_ns {
            Some(_) => self.expires_by(),
            None => None,
        };
        if limits.age_ns.is_some() && now.is_none() {
            return Err(RequestError::Impossible(
                "nothing is removed for its age while it is not certain what time it is: this node's \
                 clock is ahead of the other nodes', or none of them answers",
            ));
        }
        let space = self.parts.disk.space();
        let space = space.map_err(|error| describe("the free space is not known", &error))?;
        let settings = retain::Settings {
            age_ns: limits.age_ns,
            size_bytes: limits.size_bytes,
            files_max: limits.files_max,
            ..retain::Settings::default()
        };
        let room = Room {
            space,
            trash_bytes: 0,
        };
        let held = self.held();
        let plan = retain::plan(&held, now, &settings, &room);
        // The answer would say that little was old enough.
        let by_clock = now.map(|_| (self.parts.clock)());
        if retain::plan(&held, by_clock, &settings, &room).len() > plan.len() && self.is_doubted() {
            return Err(RequestError::Impossible(
                "nothing is removed for its age while it is not certain what time it is: nobody agrees with \
                 this server's clock yet; if it is right, start the server once with --trust-clock",
            ));
        }
        let files: Vec<_> = plan.into_iter().map(|(kept, _)| kept).collect();
        let removed = VacuumReport {
            files: files.len() as u64,
            records: files.iter().map(|file| file.records()).sum(),
            bytes: files.iter().map(|file| file.bytes()).sum(),
        };
        self.remove(files)?;
        self.purge(true)?;
        say(&format!(
            "{} with {} ({}) were removed, as was asked for",
            quantity::counted(removed.files, "file"),
            quantity::counted(removed.records, "record"),
            quantity::bytes(removed.bytes),
        ));
        Ok(removed)
    }
}
