//! `forward --tail`: follows files across rotation and truncation.
//!
//! A file is known by device, inode and the hash of its start, never by its name. One that lost
//! its name (rotation by rename) is read on by its handle until it has been quiet for a while,
//! beside the new one of that name. One that shrank or starts differently was emptied
//! (`copytruncate`) and is read anew; what was written between our last look and the emptying is
//! in the copy only. A file that is created and renamed between two looks is not seen, unless a
//! pattern matches its new name, too.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::form::Reading;
use super::position::{Identity, Position, StateFile};
use super::sender::Outlet;
use super::watched::Watched;
use super::{ForwardError, SendError, Settings, Totals};
use crate::input;
use crate::terminal::note;

/// How often files are looked at.
const POLL_EVERY: Duration = Duration::from_millis(250);

/// Patterns are expanded with every look, but no more than this part of the time goes into it:
/// directories may be large.
const DISCOVER_TIME_PART: u32 = 20;

/// How long a file without its name is still read: daemons reopen their logs some time after the
/// rename.
const NAMELESS_FOR: Duration = Duration::from_secs(60);

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

/// The files that are followed.
pub(super) struct Tail {
    patterns: Vec<String>,
    reading: Reading,
    state: StateFile,
    /// What was remembered at the start; files that come later may be among them.
    remembered: Vec<Position>,
    files: Vec<Watched>,
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
            reading: settings.reading.clone(),
            state,
            remembered,
            files: Vec::new(),
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
        for at in ended.into_iter().rev() {
            let file = self.files.remove(at);
            self.remembered.retain(|p| p.identity != file.identity);
            *moved = true;
        }
        Ok(())
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
    fn add(&mut self, mut file: Watched) {
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
        let mut found = Vec::new();
        for pattern in &self.patterns {
            // The pattern was checked when it was taken.
            let Ok(paths) = glob::glob(pattern) else {
                continue;
            };
            found.extend(paths.filter_map(Result::ok));
        }
        for path in found {
            let identity = identity_at(&path);
            if identity.is_none() || self.files.iter().any(|f| Some(f.identity) == identity) {
                continue;
            }
            if self.files.len() >= FILES_MAX {
                self.complain_once(&path, "it is not followed: there are 4096 files already");
                continue;
            }
            match Watched::open(&path, &self.reading, &self.remembered, now) {
                Ok(file) => match file.start() {
                    Ok(start) if input::is_compressed(&start) => {
                        self.complain_once(&path, "it is not followed: it is compressed");
                    }
                    _ => self.add(file),
                },
                Err(error) => self.complain_once(&path, &format!("it cannot be read: {error}")),
            }
        }
    }

    /// Opens files that were renamed while nobody followed them: their rest is still to be sent.
    fn find_renamed(&mut self, now: Instant) {
        let mut lost: Vec<Position> = Vec::new();
        for position in &self.remembered {
            let is_asked_for = |pattern: &String| is_match(pattern, &position.path);
            let is_lost = identity_at(&position.path) != Some(position.identity)
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
            let Ok(entries) = std::fs::read_dir(directory) else {
                continue;
            };
            let renamed = entries
                .filter_map(Result::ok)
                .map(|entry| entry.path())
                .find(|path| identity_at(path) == Some(position.identity));
            let Some(renamed) = renamed else { continue };
            let same = [position.clone()];
            if let Ok(mut file) = Watched::open(&renamed, &self.reading, &same, now)
                && file.position().offset == position.offset
                && position.offset > 0
            {
                file.rename(&position);
                self.add(file);
            }
        }
    }

    fn complain_once(&mut self, path: &Path, reason: &str) {
        if self.complained.insert(path.to_path_buf()) {
            note(&format!("logpond: {}: {reason}", path.display()));
        }
    }

    /// Remembers where the files are now, and files of earlier runs as long as they exist.
    fn save(&self) -> Result<(), ForwardError> {
        let mut positions: Vec<Position> = self
            .files
            .iter()
            .map(|file| file.position().clone())
            .collect();
        let is_open = |p: &Position| self.files.iter().any(|f| f.identity == p.identity);
        let others = self.remembered.iter();
        positions.extend(others.filter(|p| !is_open(p) && p.path.exists()).cloned());
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

fn is_match(pattern: &str, path: &Path) -> bool {
    glob::Pattern::new(pattern).is_ok_and(|pattern| pattern.matches_path(path))
}

/// The regular file that has this name now.
fn identity_at(path: &Path) -> Option<Identity> {
    let metadata = std::fs::metadata(path).ok()?;
    metadata.is_file().then(|| Identity::of(&metadata))
}
