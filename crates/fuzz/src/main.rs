//! Fuzzing of the decoders, guided by coverage: `logpond-fuzz LENGTH [TARGET...]`,
//! `logpond-fuzz replay TARGET FILE` or `logpond-fuzz list`.
//!
//! `LENGTH` is in seconds (`60`) or in inputs (`10000x`), for each target. A run of inputs is repeatable: it
//! depends on the seed (`LOGPOND_FUZZ_SEED`, 1 by default) and the files it starts from, not on the machine.
//! Inputs that reach new branches are kept and changed further. An input
//! that panics, be it caught or not, is written to `target/fuzz/failed/` and the command that replays it is printed.

mod coverage;
mod mutate;
mod targets;

use std::cell::Cell;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs};

use mutate::{Random, mutate};
use targets::{TARGETS, Target};

/// The longest input. Longer ones find little that shorter ones do not, and slow the run.
const INPUT_BYTES_MAX: usize = 16 << 10;

/// The most inputs that are kept; a target has far fewer branches to discover.
const CORPUS_MAX: usize = 8 << 10;

/// How much of a failing input is printed.
const SHOWN_BYTES_MAX: usize = 2 << 10;

/// The most inputs that a run starts from.
const SEEDS_MAX: usize = 2_000;

thread_local! {
    /// Panics of this thread so far.
    static PANICS: Cell<u64> = const { Cell::new(0) };
}

fn main() -> ExitCode {
    note_panics();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match texts[..] {
        ["replay", target, file] => replay(target, Path::new(file)),
        ["list"] => {
            TARGETS
                .iter()
                .for_each(|target| println!("{}", target.name));
            Ok(())
        }
        [length, ref names @ ..] => run_all(length, names),
        [] => run_all("10", &[]),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn replay(name: &str, file: &Path) -> Result<(), String> {
    let target = find(name)?;
    let input = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    if !passes(target, &input) {
        return Err(format!("{name}: failed"));
    }
    println!("{name}: passed");
    Ok(())
}

/// Counts panics from now on.
fn note_panics() {
    let say = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        PANICS.set(PANICS.get() + 1);
        say(panic);
    }));
}

/// Whether a target takes an input without a panic. One that the product lives through is a defect,
/// too.
fn passes(target: &Target, input: &[u8]) -> bool {
    let before = PANICS.get();
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    outcome.is_ok() && PANICS.get() == before
}

fn find(name: &str) -> Result<&'static Target, String> {
    let known = || TARGETS.map(|t| t.name).join(", ");
    TARGETS
        .iter()
        .find(|t| t.name == name)
        .ok_or_else(|| format!("no target {name}; there are {}", known()))
}

/// How long a target runs.
#[derive(Clone, Copy)]
enum Length {
    Time(Duration),
    Inputs(u64),
}

impl Length {
    fn read(text: &str) -> Result<Length, String> {
        let (digits, of): (&str, fn(u64) -> Length) = match text.strip_suffix('x') {
            Some(digits) => (digits, Length::Inputs),
            None => (text, |seconds| Length::Time(Duration::from_secs(seconds))),
        };
        let amount = digits.parse().map_err(|_| {
            format!("'{text}' is no length; give seconds, such as 60, or inputs, such as 10000x")
        })?;
        Ok(of(amount))
    }

    /// The part that inputs from files may take, so that changed ones follow.
    fn half(self) -> Length {
        match self {
            Length::Time(time) => Length::Time(time / 2),
            Length::Inputs(count) => Length::Inputs(count / 2),
        }
    }

    fn is_over(self, start: Instant, executions: u64) -> bool {
        match self {
            Length::Time(time) => start.elapsed() >= time,
            Length::Inputs(count) => executions >= count,
        }
    }
}

fn run_all(length: &str, names: &[&str]) -> Result<(), String> {
    let length = Length::read(length)?;
    let seed = env::var("LOGPOND_FUZZ_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    if coverage::count() == 0 {
        return Err("built without coverage; use `cargo xtask fuzz`".into());
    }
    let chosen: Vec<&Target> = match names {
        [] => TARGETS.iter().collect(),
        names => names.iter().map(|n| find(n)).collect::<Result<_, _>>()?,
    };
    // A target that fails does not keep those behind it from being tried.
    let failures: Vec<String> = chosen
        .into_iter()
        .filter_map(|target| Run::new(target, seed).run(length).err())
        .collect();
    match failures[..] {
        [] => Ok(()),
        _ => Err(failures.join("\n")),
    }
}

/// One target being fuzzed.
struct Run {
    target: &'static Target,
    random: Random,
    /// Highest step of each counter so far: 0, 1, 2, 3, 4-7, 8-15, 16-31, 32-127, 128-255.
    seen: Vec<u8>,
    corpus: Vec<Vec<u8>>,
    executions: u64,
    slowest: Duration,
}

impl Run {
    fn new(target: &'static Target, seed: u64) -> Run {
        Run {
            target,
            random: Random::new(seed),
            seen: vec![0; coverage::count()],
            corpus: Vec::new(),
            executions: 0,
            slowest: Duration::ZERO,
        }
    }

    fn run(mut self, length: Length) -> Result<(), String> {
        let start = Instant::now();
        let mut seeds = seeds(self.target);
        let seed_count = seeds.len();
        // A short run has some of each file.
        for at in (1..seeds.len()).rev() {
            seeds.swap(at, self.random.below(at + 1));
        }
        for seed in seeds {
            if length.half().is_over(start, self.executions) {
                break;
            }
            if self.seen.is_empty() {
                self.corpus.push(seed.clone());
            }
            self.try_input(seed)?;
        }
        if self.corpus.is_empty() {
            self.corpus.push(Vec::new());
        }
        while !length.is_over(start, self.executions) {
            let mut input = self.corpus[self.random.below(self.corpus.len())].clone();
            let other = self.random.below(self.corpus.len());
            mutate(
                &mut input,
                &self.corpus[other],
                INPUT_BYTES_MAX,
                &mut self.random,
            );
            self.try_input(input)?;
        }
        println!(
            "{:<16} {:>9} inputs in {:.0} s, {:>5} branches, kept {} of which {} given, slowest {:.1} ms",
            self.target.name,
            self.executions,
            start.elapsed().as_secs_f64(),
            self.seen.iter().filter(|s| **s > 0).count(),
            self.corpus.len(),
            seed_count,
            self.slowest.as_secs_f64() * 1e3,
        );
        Ok(())
    }

    /// Runs one input; keeps it if it did something new. Without counters, those that are given are kept.
    fn try_input(&mut self, input: Vec<u8>) -> Result<(), String> {
        coverage::take(|_, _| {});
        let start = Instant::now();
        let passes = passes(self.target, &input);
        self.slowest = self.slowest.max(start.elapsed());
        self.executions += 1;
        if !passes {
            return Err(report(self.target.name, &input));
        }
        let mut is_new = false;
        let seen = &mut self.seen;
        coverage::take(|at, count| {
            let step = match count {
                0..=3 => count,
                4..=7 => 4,
                8..=15 => 5,
                16..=31 => 6,
                32..=127 => 7,
                128.. => 8,
            };
            if step > seen[at] {
                seen[at] = step;
                is_new = true;
            }
        });
        if is_new && self.corpus.len() < CORPUS_MAX {
            self.corpus.push(input);
        }
        Ok(())
    }
}

/// Keeps a failing input and says how to run it again.
fn report(target: &str, input: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let directory = root().join("target/fuzz/failed");
    let path = directory.join(format!("{target}-{:016x}", hasher.finish()));
    let written = fs::create_dir_all(&directory).and_then(|()| fs::write(&path, input));
    match written {
        Ok(()) => format!(
            "{target} failed on {}; run it again with\n  cargo run -p logpond-fuzz -- replay {target} {}",
            shown(input),
            path.display()
        ),
        Err(e) => format!("{target} failed on {input:?}, which could not be kept: {e}"),
    }
}

/// The beginning of an input, for whoever has only what a run printed.
fn shown(input: &[u8]) -> String {
    let beginning = &input[..input.len().min(SHOWN_BYTES_MAX)];
    let bytes = input.len();
    format!("{bytes} bytes that begin b\"{}\"", beginning.escape_ascii())
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a run starts from: our own test data, then lines of the shared fixtures where they are.
fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut directories = vec![root().join("testdata")];
    if target.takes_lines {
        let shared = env::var_os("LOGPOND_SHARED");
        let shared = shared.map_or_else(|| root().join("../shared"), PathBuf::from);
        directories.push(shared.join("fixtures"));
    }
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                directories.push(path);
            } else if let Ok(bytes) = fs::read(&path) {
                add_seeds(target, &bytes, &mut seeds);
            }
        }
    }
    seeds
}

/// The file as it is, and where lines are wanted its first few lines and every 500th.
fn add_seeds(target: &Target, bytes: &[u8], seeds: &mut Vec<Vec<u8>>) {
    if bytes.len() <= INPUT_BYTES_MAX && seeds.len() < SEEDS_MAX {
        seeds.push(bytes.to_vec());
    }
    if !target.takes_lines {
        return;
    }
    for (number, line) in bytes.split(|b| *b == b'\n').enumerate() {
        let chosen = number < 3 || number.is_multiple_of(500);
        if chosen && line.len() <= INPUT_BYTES_MAX && seeds.len() < SEEDS_MAX {
            seeds.push(line.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Inputs for each target: half of them given, half of them changes of these.
    const INPUTS: Length = Length::Inputs(6_000);

    #[test]
    fn every_target_takes_what_it_is_given_and_changes_of_it() {
        note_panics();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let failures: Vec<String> = thread::scope(|scope| {
            let part = |first: usize| {
                let targets = TARGETS.iter().skip(first).step_by(threads);
                let runs = targets.filter_map(|target| Run::new(target, 1).run(INPUTS).err());
                runs.collect::<Vec<_>>()
            };
            let running: Vec<_> = (0..threads)
                .map(|first| scope.spawn(move || part(first)))
                .collect();
            let parts = running.into_iter().map(|run| run.join().unwrap());
            parts.flatten().collect()
        });
        assert_eq!(failures, Vec::<String>::new());
    }
}
