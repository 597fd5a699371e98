//! The files in the directory of segments that count when a process begins.
//!
//! Invariants:
//! - Each source is counted once, and from a sound file where there is one.
//! - A file is retired only if sound ones list all that it lists. Files that cannot be read, and copies of
//!   others under other names, get another ending and are never removed (R12).

use std::collections::BTreeMap;
use std::io;

use logpond_record::Id;

use super::{
    DIRECTORY, SUFFIX_LIVE, SUFFIX_QUARANTINED, SUFFIX_SUPERSEDED, SUFFIX_TEMPORARY, SUFFIX_TRASH,
    open_live, path, retire,
};
use crate::compact::{self, Live};
use crate::disk::Disk;
use crate::file::{Damage, ReadError, SegmentFile, Summary};
use crate::sources::SourceSet;
use crate::verify::{self, Checksums, SalvagedSegment};

/// The contents of the directory of segments at start.
#[derive(Default)]
pub struct StartupScan {
    /// Live segments with their ids.
    pub live: Vec<SegmentFile>,
    /// Those of them whose files are damaged beyond their pages, and what is wrong with them: nothing of what
    /// they hold is lost by that.
    pub salvaged: Vec<(Id, String)>,
    /// Files that are no segments any more, by their new path, with the reason: now and earlier.
    pub quarantined: Vec<(String, String)>,
    /// Files that were put aside now because a live segment holds their rows, by their new path.
    pub superseded: Vec<String>,
    /// Retired segments that wait to be removed, with their lengths.
    pub trash: Vec<(Id, u64)>,
}

/// A file that has not the name of the segment in it.
struct MisnamedFile {
    path: String,
    segment: SegmentFile,
    damage: Option<Damage>,
}

/// Opens all segments, as [`open_known`] does if nothing is known of them from elsewhere.
///
/// # Errors
/// When the disk fails.
pub fn open_all(disk: &dyn Disk) -> io::Result<StartupScan> {
    open_known(disk, &BTreeMap::new())
}

/// Opens all segments; `known` is what is known of them from elsewhere. Temporary files are removed; files
/// that cannot be read are put aside under another ending and never removed (R12).
///
/// Nothing is to be read from the live ones before [`settle`] has left out what others cover.
///
/// # Errors
/// When the disk fails.
pub fn open_known(disk: &dyn Disk, known: &BTreeMap<Id, Summary>) -> io::Result<StartupScan> {
    let mut found = StartupScan::default();
    let (mut misnamed, mut changed) = (Vec::new(), false);
    for entry in disk.list(DIRECTORY)? {
        let full = format!("{DIRECTORY}/{}", entry.name);
        if entry.name.ends_with(SUFFIX_TEMPORARY) {
            disk.remove(&full)?;
            changed = true;
        } else if let Some(stem) = entry.name.strip_suffix(SUFFIX_LIVE) {
            let known = stem.parse().ok().and_then(|id: Id| known.get(&id));
            match open_or_salvage(disk, &full, known) {
                Ok((segment, damage)) if segment.manifest().id.to_string() != stem => {
                    misnamed.push(MisnamedFile {
                        path: full,
                        segment,
                        damage,
                    });
                }
                Ok((segment, damage)) => found.add(segment, damage),
                Err(ReadError::Disk(error)) => return Err(error),
                Err(error) => {
                    let aside = format!("{DIRECTORY}/{stem}{SUFFIX_QUARANTINED}");
                    disk.rename(&full, &aside)?;
                    changed = true;
                    found.quarantined.push((aside, error.to_string()));
                }
            }
        } else if entry.name.ends_with(SUFFIX_QUARANTINED) {
            let why = match open_live(disk, &full) {
                Err(ReadError::Damaged(damage)) => damage.to_string(),
                _ => "it was put aside earlier".to_owned(),
            };
            found.quarantined.push((full, why));
        } else if let Some(stem) = entry.name.strip_suffix(SUFFIX_TRASH)
            && let Ok(id) = stem.parse()
        {
            found.trash.push((id, entry.bytes));
        }
    }
    for misnamed in misnamed {
        found.name(disk, misnamed)?;
        changed = true;
    }
    changed |= found.supersede_held(disk, known)?;
    if changed {
        disk.sync_directory(DIRECTORY)?;
    }
    found.live.sort_by_key(|segment| segment.manifest().id);
    Ok(found)
}

impl StartupScan {
    fn add(&mut self, segment: SegmentFile, damage: Option<Damage>) {
        let id = segment.manifest().id;
        self.salvaged
            .extend(damage.map(|damage| (id, damage.to_string())));
        self.live.push(segment);
    }

    /// Gives a file the name of what is in it, unless a sound one has it.
    fn name(&mut self, disk: &dyn Disk, misnamed: MisnamedFile) -> io::Result<()> {
        let MisnamedFile {
            path: from,
            segment,
            damage,
        } = misnamed;
        let id = segment.manifest().id;
        let own = self.live.iter().position(|live| live.manifest().id == id);
        if let Some(own) = own {
            if is_sound(&self.live[own]) || !is_sound(&segment) {
                return self.supersede(disk, &from);
            }
            self.live.swap_remove(own);
            self.salvaged.retain(|(salvaged, _)| *salvaged != id);
            self.supersede(disk, &path(id, SUFFIX_LIVE))?;
        }
        disk.rename(&from, &path(id, SUFFIX_LIVE))?;
        self.add(segment, damage);
        Ok(())
    }

    /// Puts files that cannot be read, but whose rows live segments hold, where nobody misses them.
    fn supersede_held(
        &mut self,
        disk: &dyn Disk,
        known: &BTreeMap<Id, Summary>,
    ) -> io::Result<bool> {
        if self.quarantined.is_empty() {
            return Ok(false);
        }
        let manifests = self.live.iter().map(SegmentFile::manifest);
        let entries = manifests.flat_map(|manifest| manifest.sources.iter());
        let held: SourceSet = entries.map(|entry| entry.source).collect();
        let id_of = |file: &str| {
            let name = file.strip_prefix(DIRECTORY)?.strip_prefix('/')?;
            name.strip_suffix(SUFFIX_QUARANTINED)?.parse::<Id>().ok()
        };
        let is_held = |file: &str| {
            id_of(file).is_some_and(|id| {
                let is_live = self.live.iter().any(|live| live.manifest().id == id);
                let sources = known.get(&id).map(|summary| &summary.sources);
                is_live || sources.is_some_and(|sources| held.contains_all(sources))
            })
        };
        let quarantined = self.quarantined.iter().map(|(file, _)| file);
        let superseded: Vec<String> = quarantined.filter(|file| is_held(file)).cloned().collect();
        for file in &superseded {
            self.supersede(disk, file)?;
        }
        self.quarantined
            .retain(|(file, _)| !superseded.contains(file));
        Ok(!superseded.is_empty())
    }

    fn supersede(&mut self, disk: &dyn Disk, file: &str) -> io::Result<()> {
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let aside = format!("{stem}{SUFFIX_SUPERSEDED}");
        disk.rename(file, &aside)?;
        self.superseded.push(aside);
        Ok(())
    }
}

/// Opens a file, if need be without what is damaged of it beyond its pages; that is said then.
fn open_or_salvage(
    disk: &dyn Disk,
    path: &str,
    known: Option<&Summary>,
) -> Result<(SegmentFile, Option<Damage>), ReadError> {
    let file = disk.open(path)?;
    let damaged = match SegmentFile::open(file.clone()) {
        Ok(segment) => return Ok((segment, None)),
        Err(error @ ReadError::Disk(_)) => return Err(error),
        Err(damaged) => damaged,
    };
    match verify::salvage(&file, known).map_err(ReadError::Disk)? {
        Some(SalvagedSegment { segment, damage }) => Ok((segment, Some(damage))),
        None => Err(damaged),
    }
}

/// True if all of a file has the right checksums, and can be read.
fn is_sound(segment: &SegmentFile) -> bool {
    let mut checksums = Checksums::new(segment);
    loop {
        match checksums.step() {
            Ok(Some(_)) => {}
            Ok(None) => return checksums.into_damages().is_empty(),
            Err(_) => return false,
        }
    }
}

/// Live segments that hold each source once.
pub struct SettledSegments {
    /// Those that count.
    pub live: Vec<SegmentFile>,
    /// Those of them that were found to be damaged: files that share sources are compared with their
    /// checksums, so that the sound ones count.
    pub damaged: Vec<Id>,
    /// Those that others cover, with their lengths; they are retired.
    pub covered: Vec<(Id, u64)>,
    /// Why those that others cover have kept their names, if they have. They do not count anyway.
    pub error: Option<io::Error>,
}

/// Retires the segments that others cover (R5): a process may end after a merge and before its
/// inputs are retired, and rows must not be counted twice until somebody finds the time.
pub fn settle(disk: &dyn Disk, live: Vec<SegmentFile>) -> SettledSegments {
    let each = live.iter();
    let mut described: Vec<Live> = each
        .map(|segment| Live::new(segment.manifest(), segment.bytes()))
        .collect();
    let shares = compact::share_sources(&described);
    for (at, _) in shares.iter().enumerate().filter(|(_, shares)| **shares) {
        described[at].is_damaged = !is_sound(&live[at]);
    }
    let counting = compact::cover(&described);
    let (live, covered): (Vec<_>, Vec<_>) = live.into_iter().partition(|segment| {
        let id = segment.manifest().id;
        counting.contains(&id) || !compact::is_covered(id, &described)
    });
    let covered: Vec<(Id, u64)> = covered
        .iter()
        .map(|segment| (segment.manifest().id, segment.bytes()))
        .collect();
    let ids: Vec<Id> = covered.iter().map(|(id, _)| *id).collect();
    let error = if ids.is_empty() {
        None
    } else {
        retire(disk, &ids).err()
    };
    let damaged = described.iter().filter(|segment| segment.is_damaged);
    SettledSegments {
        live,
        damaged: damaged.map(|segment| segment.id).collect(),
        covered,
        error,
    }
}
