//! The logs that are measured with: generated, with exact ground truth.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Settings;
use crate::run::{Outcome, check, find_program, output, root};

/// One corpus.
pub(super) struct Corpus {
    /// `nginx`, `app` or `mixed`.
    pub(super) kind: &'static str,
    /// The file.
    pub(super) file: PathBuf,
    /// Its size.
    pub(super) bytes: u64,
    /// Its records.
    pub(super) lines: u64,
    /// What `zstd -3` makes of it, if zstd is installed.
    pub(super) zstd_bytes: Option<u64>,
    /// What is true of it.
    pub(super) facts: Value,
}

/// All corpora.
pub(super) struct Corpora {
    /// Combined access logs with the virtual host.
    pub(super) nginx: Corpus,
    /// Nested JSON lines.
    pub(super) app: Corpus,
    /// RFC 5424 syslog.
    pub(super) mixed: Corpus,
}

impl Corpora {
    /// Generates the corpora, or takes those of an earlier run.
    pub(super) fn make(settings: &Settings, scratch: &Path) -> Outcome<Corpora> {
        let directory = settings.corpus.clone();
        let directory = directory.unwrap_or_else(|| scratch.join("corpus"));
        Corpora::make_in(&directory, &settings.bytes)
    }

    /// Generates corpora of so many bytes each in a directory, or takes those that are there.
    pub(super) fn make_in(directory: &Path, bytes: &str) -> Outcome<Corpora> {
        if !directory.join("FACTS.mixed.json").is_file() {
            let shared = env::var_os("LOGPOND_SHARED")
                .map_or_else(|| root().join("../shared"), PathBuf::from);
            let generator = shared.join("tools/make-corpus.py");
            if !generator.is_file() {
                return Err(
                    "the corpus generator is absent (LOGPOND_SHARED or ../shared); give \
                     --corpus DIR with its output"
                        .into(),
                );
            }
            let mut command = Command::new("python3");
            command.arg(generator);
            command.args(["all", "--bytes", bytes, "--out"]);
            check(command.arg(directory))?;
        }
        Ok(Corpora {
            nginx: Corpus::open(directory, "nginx")?,
            app: Corpus::open(directory, "app")?,
            mixed: Corpus::open(directory, "mixed")?,
        })
    }

    /// All of them.
    pub(super) fn all(&self) -> [&Corpus; 3] {
        [&self.nginx, &self.app, &self.mixed]
    }

    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> u64 {
        self.all().iter().map(|c| c.bytes).sum()
    }

    /// Records of all of them.
    pub(super) fn lines(&self) -> u64 {
        self.all().iter().map(|c| c.lines).sum()
    }
}

impl Corpus {
    fn open(directory: &Path, kind: &'static str) -> Outcome<Corpus> {
        let path = directory.join(format!("FACTS.{kind}.json"));
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let facts: Value =
            serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let file = directory.join(facts["file"].as_str().unwrap_or_default());
        let compressed = directory.join(format!("{kind}.zst"));
        if !compressed.is_file() && find_program("zstd").is_some() {
            let mut command = Command::new("zstd");
            command.args(["-3", "-q", "-o"]).arg(&compressed).arg(&file);
            output(&mut command)?;
        }
        Ok(Corpus {
            kind,
            bytes: facts["bytes"].as_u64().unwrap_or(0),
            lines: facts["lines"].as_u64().unwrap_or(0),
            zstd_bytes: fs::metadata(&compressed).ok().map(|m| m.len()),
            file,
            facts,
        })
    }

    /// The file compressed by `zstd -3`, if zstd is installed.
    pub(super) fn compressed(&self) -> Option<PathBuf> {
        let path = self.file.with_file_name(format!("{}.zst", self.kind));
        path.is_file().then_some(path)
    }

    /// The planted token that begins so.
    pub(super) fn needle(&self, start: &str) -> Outcome<String> {
        let needles = self.facts["needles"].as_object();
        needles
            .and_then(|needles| needles.keys().find(|key| key.starts_with(start)).cloned())
            .ok_or_else(|| format!("the {} corpus has no needle {start}", self.kind))
    }

    /// The file in pieces of whole lines, none longer than this unless a line is.
    pub(super) fn pieces(&self, bytes_max: usize) -> Outcome<Vec<Vec<u8>>> {
        let bytes = fs::read(&self.file).map_err(|e| format!("{}: {e}", self.file.display()))?;
        let mut pieces: Vec<Vec<u8>> = vec![Vec::new()];
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            let is_full = pieces
                .last()
                .is_some_and(|p| p.len() + line.len() > bytes_max);
            if is_full {
                pieces.push(Vec::new());
            }
            if let Some(piece) = pieces.last_mut() {
                piece.extend_from_slice(line);
            }
        }
        Ok(pieces)
    }
}
