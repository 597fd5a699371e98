//! `forward --tail`: follows files across rotation and truncation.
//!
//! A file is known by device, inode and the hash of its start, never by its name. One that lost
//! its name (rotation by rename) is read on by its handle until it has been quiet for a while,
//! beside the new one of that name. One that shrank or starts differently was emptied
//! (`copytruncate`) and is read anew; what was written between our last look and the emptying is
//! in the copy only. A file that is created and renamed between two looks is not seen, unless a
//! pattern matches its new name, too. One that was so while nobody looked is found at the start beside the one before
//! it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::archive::{self, Archive, Outcome, Seen};
use super::form::ReadOptions;
use super::position::{Identity, POSITIONS_MAX, Position, StateFile};
use super::sender::Outlet;
use super::watched::WatchedFile;
use super::{ForwardError, SendError, Settings, Totals};
use crate::input;
use logpond_host::terminal::note;

/// How often files are looked at.
const POLL_EVERY: Duration = Duration::from_millis(250);

/// Patterns are expanded with every look, but no more than this part of the time goes into it:
/// directories may be large.
const DISCOVER_TIME_PART: u32 = 20;

/// How long a file without its name is still read: daemons reopen their logs some time after the
/// rename.
const NAMELESS_FOR: Duration = Duration::from_secs(60);

/// How long a compressed file must not change before it is read: compressing takes time.
const ARCHIVE_QUIET: Duration = Duration::from_secs(5);

/// Positions that are remembered of files of one name that are followed no longer: as many rotations as
/// may lie between the end of one file and the reading of what it was compressed to.
const ENDED_MAX: usize = 8;

/// Ends of the names of compressed files.
const COMPRESSED: [&str; 2] = [".gz", ".zst"];

/// Most files beside a lost one that are looked at for what it was compressed to.
const CANDIDATES_MAX: usize = 100;

/// Directories that are looked through for a file that was moved while nobody followed it: a few, unless
/// there is one for each of many programs.
const DIRECTORIES_MAX: usize = 256;

/// Most files followed at once; each holds a handle.
const FILES_MAX: usize = 4096;

/// Follows the files of the settings until the process is told to stop.
pub(super) fn run(
    settings: &Settings,
    state: &Path,
    sender: &mut dyn Outlet,
    totals: &mut Totals,
) -> Result<(), ForwardError> {
    let others = sender.positions();
    let mut tail = Tail::open(settings, state, others, Instant::now())?;
    let pause = sender.pause().clone();
    while !pause.is_stopped() {
        match tail.poll(Instant::now(), sender, totals) {
            Ok(true) => {}
            Ok(false) => {
                pause.wait(POLL_EVERY);
            }
            Err(ForwardError::Send(SendError::Stopped)) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The state of a compressed file when it was read last.
#[derive(Clone, Copy)]
struct FileSnapshot {
    seen: Seen,
    /// When it may be looked at again, if it is to be before it changes.
    again: Option<Instant>,
}

/// Where the content of a compressed file comes from.
enum Origin {
    /// A file that is followed.
    Followed,
    /// A file that was sent up to here.
    Sent(Box<Position>),
    Unknown,
}

/// The files that are followed.
pub(super) struct Tail {
    patterns: Vec<String>,
    read_options: ReadOptions,
    state: StateFile,
    /// What was remembered at the start, and of files that are followed no longer; files that come
    /// later may be among them.
    remembered: Vec<Position>,
    files: Vec<WatchedFile>,
    /// Compressed files that are being read, one after the other.
    archives: Vec<Archive>,
    /// Compressed files as they were when they were looked at.
    looked_at: HashMap<Identity, FileSnapshot>,
    /// When patterns may be expanded again.
    discover_after: Option<Instant>,
    /// Paths that were complained about.
    complained: HashSet<PathBuf>,
}

impl Tail {
    /// Reads the positions; files are opened by the first poll.
    pub(super) fn open(
        settings: &Settings,
        state: &Path,
        others: Vec<Position>,
        now: Instant,
    ) -> Result<Tail, ForwardError> {
        let inputs = &settings.inputs;
        if inputs.is_empty() || inputs.iter().any(|input| input.as_os_str() == "-") {
            return Err(ForwardError::NothingToTail);
        }
        let patterns = inputs
            .iter()
            .map(|input| pattern(input))
            .collect::<Result<_, _>>()?;
        let (state, mut remembered) = StateFile::open(state)?;
        // What reached the spool may be farther than what was remembered here.
        remembered.extend(others);
        let mut tail = Tail {
            patterns,
            read_options: settings.read_options.clone(),
            state,
            remembered,
            files: Vec::new(),
            archives: Vec::new(),
            looked_at: HashMap::new(),
            discover_after: None,
            complained: HashSet::new(),
        };
        tail.find_renamed(now);
        Ok(tail)
    }

    /// Looks at every file once and sends what is new. True if anything was sent.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
    ) -> Result<bool, ForwardError> {
        if self.discover_after.is_none_or(|after| now >= after) {
            let started = Instant::now();
            self.discover(now);
            self.discover_after = Some(now + started.elapsed() * DISCOVER_TIME_PART);
        }
        let mut moved = false;
        let outcome = self.follow_all(now, sender, totals, &mut moved);
        // Also when a later file failed: what was acknowledged is remembered.
        if moved {
            self.save()?;
        }
        outcome.map(|()| moved)
    }

    fn follow_all(
        &mut self,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
        moved: &mut bool,
    ) -> Result<(), ForwardError> {
        let mut ended = Vec::new();
        for at in 0..self.files.len() {
            if !self.hand_over(at, now) {
                continue;
            }
            let file = &mut self.files[at];
            let is_nameless = identity_at(&file.path) != Some(file.identity);
            let is_quiet = now.saturating_duration_since(file.changed) >= NAMELESS_FOR;
            let is_over = is_nameless && is_quiet;
            match file.follow(is_over, now, sender, totals) {
                Ok(sent) => {
                    *moved |= sent;
                    if is_over && !sent {
                        ended.push(at);
                    }
                }
                Err(ForwardError::Input { name, source }) => {
                    if self.complained.insert(file.path.clone()) {
                        note(&format!("logpond: {name} cannot be read: {source}"));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let has_ended = !ended.is_empty();
        for at in ended.into_iter().rev() {
            let file = self.files.remove(at);
            self.remember(file.position().clone());
        }
        if has_ended {
            // Those that a pattern matches go on under their new names before anything is saved: nothing need be at
            // the old one, and then it is not remembered.
            self.discover(now);
            *moved = true;
        }
        self.read_archive(now, sender, totals, moved)
    }

    /// Remembers how far a file was sent that is followed no longer: a pattern may match its new name,
    /// or that of what it is compressed to.
    fn remember(&mut self, position: Position) {
        self.remembered.retain(|p| p.identity != position.identity);
        if self.remembered.len() >= POSITIONS_MAX {
            self.remembered.remove(0);
        }
        self.remembered.push(position);
    }

    /// Forgets the oldest files of each name that are followed no longer, after the patterns were looked at: one
    /// that a pattern matches under its new name is followed, or it would be sent again.
    fn forget_oldest(&mut self) {
        let mut of_name: HashMap<PathBuf, usize> = HashMap::new();
        let open: HashSet<Identity> = self.files.iter().map(|file| file.identity).collect();
        let mut is_kept: Vec<bool> = Vec::with_capacity(self.remembered.len());
        for position in self.remembered.iter().rev() {
            let is_counted = position.archive.is_none() && !open.contains(&position.identity);
            let count = of_name.entry(position.path.clone()).or_default();
            *count += usize::from(is_counted);
            is_kept.push(!is_counted || *count <= ENDED_MAX);
        }
        let mut is_kept = is_kept.into_iter().rev();
        self.remembered.retain(|_| is_kept.next().unwrap_or(true));
    }

    /// Reads a compressed file for a while.
    fn read_archive(
        &mut self,
        now: Instant,
        sender: &mut dyn Outlet,
        totals: &mut Totals,
        moved: &mut bool,
    ) -> Result<(), ForwardError> {
        let Some(archive) = self.archives.first_mut() else {
            return Ok(());
        };
        *moved = true;
        let complaint = match archive.follow(now, sender, totals) {
            Ok(Outcome::More) => return Ok(()),
            Ok(Outcome::Done) => None,
            Ok(Outcome::Incomplete) => {
                Some("it ends early; the rest is read when it has it".into())
            }
            Err(ForwardError::Input { source, .. }) => Some(format!("it cannot be read: {source}")),
            Err(error) => return Err(error),
        };
        let archive = self.archives.remove(0);
        if let Some(complaint) = complaint {
            self.complain_once(&archive.path, &complaint);
        }
        let seen = archive.seen;
        self.looked_at
            .insert(archive.identity, FileSnapshot { seen, again: None });
        self.remember(archive.position().clone());
        Ok(())
    }

    /// Looks at a compressed file that is not being read: it is once it has not changed for a while and
    /// no file with its content is followed.
    fn look_at(&mut self, path: &Path, now: Instant) -> std::io::Result<()> {
        let metadata = std::fs::metadata(path)?;
        let (identity, seen) = (Identity::of(&metadata), archive::seen(&metadata));
        let own = self.remembered.iter().find(|p| p.identity == identity);
        let is_sent = own.is_some_and(|own| own.archive == Some(seen.0));
        let was_seen = self
            .looked_at
            .get(&identity)
            .is_some_and(|l| l.seen == seen);
        let again = (!is_sent).then(|| now + ARCHIVE_QUIET);
        if self.looked_at.len() >= POSITIONS_MAX {
            // Those that were sent are remembered as such.
            self.looked_at.clear();
        }
        self.looked_at
            .insert(identity, FileSnapshot { seen, again });
        if is_sent || !was_seen {
            return Ok(());
        }
        let start = match archive::start(path) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
            start => start?,
        };
        let known = match self.origin(path, identity, &start) {
            Origin::Followed => return Ok(()),
            Origin::Sent(position) => Some(position),
            Origin::Unknown => None,
        };
        let archive = Archive::open(path, start, known.as_deref(), &self.read_options, now)?;
        self.archives.push(archive);
        Ok(())
    }

    /// Which file a compressed one was, by its content and its name.
    fn origin(&self, path: &Path, identity: Identity, start: &[u8]) -> Origin {
        let is_of = |p: &&Position| {
            (p.identity == identity || is_related(path, p)) && p.fingerprint.is_of(start)
        };
        let is_followed =
            |file: &&WatchedFile| is_related(path, file.position()) && file.starts_like(start);
        if self.files.iter().any(|file| is_followed(&file)) {
            return Origin::Followed;
        }
        let sent = self.remembered.iter().filter(is_of);
        match sent.max_by(|a, b| a.progress().cmp(&b.progress())) {
            Some(position) => Origin::Sent(Box::new(position.clone())),
            None => Origin::Unknown,
        }
    }

    /// Whether nothing is to be done about a compressed file now.
    fn is_settled(&self, path: &Path, identity: Identity, now: Instant) -> bool {
        let is_read = self.archives.iter().any(|a| a.identity == identity);
        let Some(look) = self.looked_at.get(&identity) else {
            return is_read;
        };
        let seen = std::fs::metadata(path).map(|metadata| archive::seen(&metadata));
        let is_same = seen.is_ok_and(|seen| seen == look.seen);
        is_read || is_same && look.again.is_none_or(|again| now < again)
    }

    /// Has a file that nothing was read of go on with what the one before it, of the same name, has left
    /// unfinished. False if that one is to be read first.
    fn hand_over(&mut self, at: usize, now: Instant) -> bool {
        let (before, rest) = self.files.split_at_mut(at);
        // Once there are bytes its writer uses it, and so has ended with the other.
        let Some(file) = rest.first_mut().filter(|f| f.awaits() && f.has_bytes()) else {
            return true;
        };
        let before = before.iter_mut().rev();
        let mut same_name = before.filter(|before| before.path == file.path);
        let is_late = now.saturating_duration_since(file.changed) >= NAMELESS_FOR;
        match same_name.next().filter(|before| before.is_holding()) {
            Some(before) if before.is_read() => file.carry_on(before),
            // It may be that it cannot be read.
            Some(_) if !is_late => return false,
            _ => file.await_nothing(),
        }
        true
    }

    /// Adds a file; what one before it holds and was sent with this one by an earlier run is not sent
    /// again.
    fn add(&mut self, mut file: WatchedFile) {
        let before = self.files.iter_mut().rev();
        let mut same_name = before.filter(|before| before.path == file.path);
        if let Some(before) = same_name.next()
            && file.position().offset > 0
        {
            before.held_for(&mut file);
        }
        self.files.push(file);
    }

    /// Opens what the patterns name and is not open yet.
    fn discover(&mut self, now: Instant) {
        let mut found: Vec<PathBuf> = Vec::new();
        let mut awaited = Vec::new();
        for pattern in &self.patterns {
            // The pattern was checked when it was taken.
            let Ok(paths) = glob::glob(pattern) else {
                continue;
            };
            let before = found.len();
            found.extend(paths.filter_map(Result::ok));
            // Later on it is a rotation.
            let is_first = self.discover_after.is_none();
            if is_first && !found[before..].iter().any(|path| path.is_file()) {
                awaited.push(pattern.clone());
            }
        }
        for pattern in awaited {
            let waiting = "there is no such file yet; it is waited for";
            self.complain_once(Path::new(&pattern), waiting);
        }
        for path in found {
            let identity = identity_at(&path);
            let Some(identity) = identity else { continue };
            let is_open = self.files.iter().any(|f| f.identity == identity);
            if is_open || self.is_settled(&path, identity, now) {
                continue;
            }
            if self.files.len() >= FILES_MAX {
                self.complain_once(&path, "it is not followed: there are 4096 files already");
                continue;
            }
            match WatchedFile::open(&path, &self.read_options, &self.remembered, now) {
                Ok(file) => match file.start() {
                    Ok(start) if input::is_compressed(&start) => {
                        if let Err(error) = self.look_at(&path, now) {
                            self.complain_once(&path, &format!("it cannot be read: {error}"));
                        }
                    }
                    Ok(start) if input::is_unreadable(&start) => {
                        let reason =
                            "it is not followed: it is compressed by neither gzip nor zstd";
                        self.complain_once(&path, reason);
                    }
                    _ => self.add(file),
                },
                Err(error) => self.complain_once(&path, &format!("it cannot be read: {error}")),
            }
        }
        self.forget_oldest();
    }

    /// Opens files that were renamed while nobody followed them: their rest is still to be sent.
    fn find_renamed(&mut self, now: Instant) {
        let mut lost: Vec<Position> = Vec::new();
        for position in &self.remembered {
            let is_asked_for = |pattern: &String| is_match(pattern, &position.path);
            let is_lost = position.archive.is_none()
                && !is_there(position)
                && self.patterns.iter().any(is_asked_for);
            let known = lost.iter_mut().find(|p| p.identity == position.identity);
            match known {
                _ if !is_lost => {}
                Some(known) if known.progress() <= position.progress() => {
                    *known = position.clone();
                }
                Some(_) => {}
                None => lost.push(position.clone()),
            }
        }
        for position in lost {
            let own = position.target.as_ref().unwrap_or(&position.path);
            let Some(directory) = own.parent() else {
                continue;
            };
            let mut paths = rotated_to(directory)
                .into_iter()
                .flat_map(|to| files_in(&to));
            // A link that leads elsewhere now leaves its target where it was.
            let renamed = paths.find(|path| {
                *path != position.path && identity_at(path) == Some(position.identity)
            });
            let Some(renamed) = renamed else {
                self.find_compressed(&position, directory, now);
                continue;
            };
            // It may have been found under this name meanwhile, and was read farther then.
            let known = &self.remembered;
            if let Ok(mut file) = WatchedFile::open(&renamed, &self.read_options, known, now)
                && file.position().offset > 0
            {
                file.rename(&position);
                self.add(file);
                if renamed != *own {
                    self.find_generations(&position, &renamed, now);
                }
            }
        }
    }

    /// Opens the files between one that was renamed and the one that has its name now: each had the name in turn, while
    /// nobody followed it.
    fn find_generations(&mut self, before: &Position, renamed: &Path, now: Instant) {
        let own = before.target.as_ref().unwrap_or(&before.path);
        let (Some(directory), Some(since)) = (renamed.parent(), modified(renamed)) else {
            return;
        };
        let mut found = Vec::new();
        for path in files_in(directory).take(FILES_MAX) {
            let is_one = path != *own && path != renamed && is_generation(&path, own);
            let Some(time) = modified(&path).filter(|time| is_one && *time >= since) else {
                continue;
            };
            let is_known = |identity| self.remembered.iter().any(|p| p.identity == identity);
            // Those that a pattern matches are found by it.
            let is_found = self.patterns.iter().any(|pattern| is_match(pattern, &path));
            if !is_found && identity_at(&path).is_some_and(|identity| !is_known(identity)) {
                found.push((time, path));
            }
        }
        found.sort();
        for (_, path) in found.into_iter().take(CANDIDATES_MAX) {
            if let Err(error) = self.open_generation(&path, before, now) {
                self.complain_once(&path, &format!("it cannot be read: {error}"));
            }
        }
    }

    /// Opens a file that had a name while nobody followed it, unless its content is known by another one.
    fn open_generation(
        &mut self,
        path: &Path,
        before: &Position,
        now: Instant,
    ) -> std::io::Result<()> {
        let identity = Identity::of(&std::fs::metadata(path)?);
        let start = archive::start(path)?;
        if !matches!(self.origin(path, identity, &start), Origin::Unknown) {
            return Ok(());
        }
        if is_compressed(path) {
            let archive = Archive::open(path, start, None, &self.read_options, now)?;
            self.archives.push(archive);
            return Ok(());
        }
        let mut file = WatchedFile::open(path, &self.read_options, &self.remembered, now)?;
        file.rename(before);
        self.add(file);
        Ok(())
    }

    /// Opens what a file was compressed to while nobody followed it.
    fn find_compressed(&mut self, lost: &Position, directory: &Path, now: Instant) {
        let paths = rotated_to(directory)
            .into_iter()
            .flat_map(|to| files_in(&to));
        let candidates = paths.filter(|path| is_related(path, lost) && path.is_file());
        for path in candidates.take(CANDIDATES_MAX) {
            let is_known = |identity| self.remembered.iter().any(|p| p.identity == identity);
            let is_new = identity_at(&path).is_some_and(|identity| !is_known(identity));
            let Some(start) = archive::start(&path).ok().filter(|_| is_new) else {
                continue;
            };
            if is_compressed(&path) && lost.fingerprint.is_of(&start) {
                let opened = Archive::open(&path, start, Some(lost), &self.read_options, now);
                self.archives.extend(opened.ok());
                self.find_generations(lost, &path, now);
                return;
            }
        }
    }

    fn complain_once(&mut self, path: &Path, reason: &str) {
        if self.complained.insert(path.to_path_buf()) {
            note(&format!("logpond: {}: {reason}", path.display()));
        }
    }

    /// Remembers where the files are now, and files of earlier runs as long as they exist.
    fn save(&mut self) -> Result<(), ForwardError> {
        let mut positions: Vec<Position> = self
            .files
            .iter()
            .map(|file| file.position().clone())
            .collect();
        let is_open = |p: &Position| self.files.iter().any(|f| f.identity == p.identity);
        let others = self.remembered.iter();
        // Compressed files get other names with each rotation.
        let exists = |p: &Position| p.path.exists() || self.looked_at.contains_key(&p.identity);
        positions.extend(others.filter(|p| !is_open(p) && exists(p)).cloned());
        positions.extend(
            self.archives
                .iter()
                .map(|archive| archive.position().clone()),
        );
        self.state.save(positions)
    }
}

/// The absolute pattern of an input: an existing file is meant as it is, whatever its name.
fn pattern(input: &Path) -> Result<String, ForwardError> {
    let refuse = |reason| ForwardError::Pattern {
        pattern: input.display().to_string(),
        reason,
    };
    let absolute = std::path::absolute(input).map_err(|_| refuse("it is no path"))?;
    let text = absolute.to_str().ok_or_else(|| refuse("it is not UTF-8"))?;
    if absolute.exists() {
        return Ok(glob::Pattern::escape(text));
    }
    match glob::Pattern::new(text) {
        Ok(_) => Ok(text.to_string()),
        Err(error) => Err(refuse(error.msg)),
    }
}

/// Where files of a directory are moved by a rotation: nowhere, or as by logrotate's `olddir` into a
/// directory that is in it or beside it.
fn rotated_to(directory: &Path) -> Vec<PathBuf> {
    let near = [Some(directory), directory.parent()].into_iter().flatten();
    let others = near
        .flat_map(files_in)
        .filter(|path| path.is_dir() && path != directory);
    let all = std::iter::once(directory.to_owned()).chain(others);
    all.take(DIRECTORIES_MAX).collect()
}

fn files_in(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(Result::ok).map(|entry| entry.path())
}

/// Whether a file's name may be that of this file after a rotation: it is beside it or in a directory
/// there, and begins with its name up to the first dot.
fn is_related(path: &Path, of: &Position) -> bool {
    let own = of.target.as_ref().unwrap_or(&of.path);
    let near = [path.parent(), path.parent().and_then(Path::parent)];
    let is_near = |p: &Path| p.parent().is_some_and(|own| near.contains(&Some(own)));
    let is_beside = is_near(&of.path) || is_near(own);
    let (Some(name), Some(of)) = (name_of(path), name_of(own)) else {
        return false;
    };
    let stem = of.split('.').next().unwrap_or_default();
    is_beside && !stem.is_empty() && name.starts_with(stem)
}

/// True if a file's name is that of this file with what a rotation adds: a number or a date at its end, or before its
/// extension, and the extension of a compressed file.
fn is_generation(path: &Path, of: &Path) -> bool {
    let (Some(name), Some(of)) = (name_of(path), name_of(of)) else {
        return false;
    };
    let plain = COMPRESSED.iter().find_map(|end| name.strip_suffix(end));
    let plain = plain.unwrap_or(&name);
    let (stem, extension) = of.rsplit_once('.').unwrap_or((&of, ""));
    let within = plain
        .strip_prefix(stem)
        .and_then(|rest| rest.strip_suffix(extension)?.strip_suffix('.'));
    let added = plain.strip_prefix(&of).or(within);
    added.is_some_and(|added| {
        let is_part = |char: char| char.is_ascii_digit() || "-_.:T".contains(char);
        added.starts_with(['.', '-', '_']) && added.len() > 1 && added.chars().all(is_part)
    })
}

/// The name of a file in its directory.
fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

/// When a file was written last.
fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

/// Whether the file that has this name now is the one that was sent up to here: the number of one that
/// was removed may be that of the next one.
fn is_there(position: &Position) -> bool {
    let is_same = |file: File| position.fingerprint.matches(&file).unwrap_or(true);
    identity_at(&position.path) == Some(position.identity)
        && File::open(&position.path).map_or(true, is_same)
}

/// Whether a file is compressed.
fn is_compressed(path: &Path) -> bool {
    input::plain_length(path).is_none()
}

fn is_match(pattern: &str, path: &Path) -> bool {
    glob::Pattern::new(pattern).is_ok_and(|pattern| pattern.matches_path(path))
}

/// The regular file that has this name now.
fn identity_at(path: &Path) -> Option<Identity> {
    let metadata = std::fs::metadata(path).ok()?;
    metadata.is_file().then(|| Identity::of(&metadata))
}
