//! What is known of alerts, on disk: `alerts/state` below the data directory.
//!
//! Invariant: what [`StateFile::write`] returned for survives a crash.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use logpond_record::{Timestamp, cast};
use logpond_search::alert::{GroupState, STATE_BYTES_MAX, Stage, decode, encode};
use logpond_segment::disk::Disk;

use logpond_host::disk::replace;
use logpond_host::telemetry::warn;

const DIRECTORY: &str = "alerts";

const PATH: &str = "alerts/state";

/// Where a file goes that is no state.
const ASIDE: &str = "alerts/state.damaged";

/// How long nobody may have evaluated a group for its pending alerts to count as pending all the while:
/// as in Prometheus.
const OUTAGE_MAX_NS: i64 = 3600 * 1_000_000_000;

/// The file of a data directory.
pub(super) struct StateFile(Arc<dyn Disk>);

impl StateFile {
    /// The file, which may not exist yet, in a directory that is made.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub(super) fn open(disk: Arc<dyn Disk>) -> io::Result<StateFile> {
        disk.create_directory(DIRECTORY)?;
        Ok(StateFile(disk))
    }

    /// What is in it, by group; nothing is better known than what is damaged.
    pub(super) fn read(&self, now: Timestamp) -> BTreeMap<String, GroupState> {
        let bytes = match self.bytes() {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return BTreeMap::new(),
            Err(error) => {
                warn(&format!(
                    "{PATH} cannot be read, alerts begin anew: {error}"
                ));
                return BTreeMap::new();
            }
        };
        match decode(&bytes) {
            Ok(groups) => {
                let groups = groups.into_iter();
                groups
                    .map(|g| (g.key.clone(), after_outage(g, now)))
                    .collect()
            }
            Err(error) => {
                let moved = self.0.rename(PATH, ASIDE);
                let moved = moved.map_or_else(|e| format!(" ({e})"), |()| String::new());
                warn(&format!(
                    "{PATH} is damaged ({error}), alerts begin anew; it is put aside as {ASIDE}{moved}"
                ));
                BTreeMap::new()
            }
        }
    }

    fn bytes(&self) -> io::Result<Option<Vec<u8>>> {
        let file = match self.0.open(PATH) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = file.bytes()?;
        if length > STATE_BYTES_MAX {
            let text = format!("it is longer than {STATE_BYTES_MAX} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        let mut bytes = vec![0; cast::to_usize(length)];
        file.read_at(0, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// Replaces what is in it. Blocks for two syncs.
    ///
    /// # Errors
    /// When it cannot be written; the old one is there then.
    pub(super) fn write(&self, groups: &[GroupState]) -> io::Result<()> {
        let bytes = encode(groups);
        if bytes.len() as u64 > STATE_BYTES_MAX {
            let text = format!("the alerts take more than {STATE_BYTES_MAX} bytes");
            return Err(io::Error::other(text));
        }
        replace(&*self.0, DIRECTORY, PATH, &bytes)
    }
}

/// After a long time without evaluations nobody knows whether what was pending was so all the while.
fn after_outage(mut group: GroupState, now: Timestamp) -> GroupState {
    let since = group.evaluated_at.map(|at| now.0.saturating_sub(at.0));
    if since.is_some_and(|since| since > OUTAGE_MAX_NS) {
        for (_, rule) in &mut group.rules {
            rule.alerts.retain(|_, alert| alert.stage != Stage::Pending);
        }
    }
    group
}

#[cfg(test)]
mod tests {
    use logpond_search::alert::{Alert, RuleState};
    use logpond_search::metric::SeriesLabels;
    use logpond_segment::mem_disk::MemDisk;

    use super::*;

    fn state(stage: Stage) -> GroupState {
        let alert = Alert {
            annotations: Vec::new(),
            value: 1.0,
            stage,
            active_at: Timestamp(1),
            fired_at: (stage == Stage::Firing).then_some(Timestamp(2)),
            resolved_at: None,
            kept_since: None,
            sent_at: None,
            told_at: None,
        };
        let labels = Arc::new(SeriesLabels::new([("alertname", "A")]));
        let rule = RuleState {
            alerts: [(labels, alert)].into(),
            ..RuleState::default()
        };
        GroupState {
            key: format!("{stage:?}"),
            evaluated_at: Some(Timestamp(0)),
            took_ns: 5,
            rules: vec![("r".to_owned(), rule)],
        }
    }

    #[test]
    fn state_is_kept_and_what_is_damaged_is_put_aside() {
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        let file = StateFile::open(disk.clone()).unwrap();
        assert!(file.read(Timestamp(0)).is_empty());
        let groups = [state(Stage::Pending), state(Stage::Firing)];
        file.write(&groups).unwrap();
        let soon = file.read(Timestamp(OUTAGE_MAX_NS));
        assert_eq!(soon["Pending"], groups[0]);
        assert_eq!(soon["Firing"], groups[1]);
        // After a long outage only what fires is known to do so.
        let late = file.read(Timestamp(OUTAGE_MAX_NS + 1));
        assert!(late["Pending"].rules[0].1.alerts.is_empty());
        assert_eq!(late["Firing"], groups[1]);

        replace(&*disk, DIRECTORY, PATH, b"\x09nothing").unwrap();
        assert!(file.read(Timestamp(0)).is_empty());
        assert!(disk.open(PATH).is_err());
        assert!(disk.open(ASIDE).is_ok());
    }
}
