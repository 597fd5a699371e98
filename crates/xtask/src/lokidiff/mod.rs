//! Generated questions to Loki and to Logpond about the same data, and every difference between what
//! they answer: `cargo xtask lokidiff`.
//!
//! ```text
//! seed ─▶ data ──────────────▶ servers ─▶ ask ─▶ answer ─▶ compare ─▶ purposes ─▶ report
//!    └──▶ pipelines, numbers ──────────────┘                  └─ smaller queries ◀─┘
//! ```
//!
//! Invariants: data and questions follow from the seed alone; a difference counts unless it is in the
//! table of those that are kept on purpose.

mod answer;
mod ask;
mod compare;
mod data;
mod expressions;
mod lines;
mod numbers;
mod pipelines;
mod purposes;
mod query;
mod report;
mod servers;

use std::path::PathBuf;

use crate::draw::Draw;
use crate::e2e::pond::Scratch;
use crate::run::{Outcome, tested_program};
use answer::{Answer, warnings};
use ask::{Question, Subject};
use compare::{Difference, Promise, compare};
use data::Data;
use purposes::Case;
use query::Query;
use report::{Report, ReportEntry};
use servers::Servers;

/// Queries unless told: what takes about a minute.
const QUERIES_DEFAULT: u64 = 1_000;

/// Questions that a different one is made smaller with, at most.
const SMALLER_MAX: usize = 200;

/// What the command line asks for.
struct Settings {
    loki: PathBuf,
    program: Option<PathBuf>,
    queries: u64,
    seed: u64,
    stays: bool,
}

fn parse(arguments: &[String]) -> Outcome<Settings> {
    let mut settings = Settings {
        loki: PathBuf::new(),
        program: None,
        queries: QUERIES_DEFAULT,
        seed: 1,
        stays: false,
    };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let mut value = || rest.next().cloned().ok_or(format!("{flag} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|e| format!("{flag}: {e}"));
        match flag.as_str() {
            "--loki" => settings.loki = value()?.into(),
            "--program" => settings.program = Some(value()?.into()),
            "--queries" => settings.queries = number(value()?)?,
            "--seed" => settings.seed = number(value()?)?,
            "--stay" => settings.stays = true,
            _ => return Err(format!("lokidiff: unknown flag {flag}")),
        }
    }
    if settings.loki.as_os_str().is_empty() {
        Err("lokidiff: --loki PATH names the binary to compare with".into())
    } else {
        Ok(settings)
    }
}

/// Starts both servers, asks, and prints what differs; a difference that is not on purpose is a failure.
pub(crate) fn run(arguments: &[String]) -> Outcome<()> {
    let settings = parse(arguments)?;
    let program = match settings.program.clone() {
        Some(program) => program,
        None => tested_program()?,
    };
    let absolute = |path: &PathBuf| std::path::absolute(path).map_err(|e| e.to_string());
    let (loki, program) = (absolute(&settings.loki)?, absolute(&program)?);
    let scratch = Scratch::new("lokidiff")?;
    let data = Data::new(settings.seed);
    let servers = Servers::start(&loki, &program, scratch.path(), &data)?;
    let mut run = Run {
        addresses: servers.addresses(),
        report: Report::default(),
    };
    run.all(&settings);
    println!("{}", run.report.text());
    if settings.stays {
        let [loki, ours] = &run.addresses;
        eprintln!("Loki is at http://{loki}, Logpond at http://{ours}, until a line is entered");
        let _ = std::io::stdin().read_line(&mut String::new());
    }
    match run.report.different_count() {
        0 => Ok(()),
        count => Err(format!("lokidiff: {count} answers differ")),
    }
}

/// Asking, and what it has found so far.
struct Run {
    addresses: [String; 2],
    report: Report,
}

/// A question that was answered differently.
struct DifferingQuestion {
    question: Question,
    difference: Difference,
    purpose: Option<&'static str>,
}

impl Run {
    fn all(&mut self, settings: &Settings) {
        for question in ask::others() {
            self.question(&question);
        }
        for number in 0..settings.queries {
            let query = numbers::query(settings.seed, number);
            let mut draw = Draw::new(settings.seed, 2_000_000 + number);
            for question in ask::of_query(&mut draw, &query) {
                self.question(&question);
            }
            if number % 500 == 499 {
                eprintln!(
                    "{} queries, {} differ",
                    number + 1,
                    self.report.different_count()
                );
            }
        }
    }

    fn question(&mut self, question: &Question) {
        let (kind, differing) = self.differing(question);
        match differing {
            None => self.report.equal(&kind),
            Some(DifferingQuestion {
                purpose: Some(reason),
                ..
            }) => self.report.on_purpose(reason),
            Some(differing) => {
                let smallest = self.smallest(differing);
                self.different(&smallest);
            }
        }
    }

    /// Asks both; gives the kind of what is answered, and the difference.
    fn differing(&self, question: &Question) -> (String, Option<DifferingQuestion>) {
        let [loki, ours] = &self.addresses;
        let (loki, ours) = (question.ask(loki), question.ask(ours));
        let warnings = warnings(&ours);
        let (loki, ours) = (Answer::of(&loki), Answer::of(&ours));
        let kind = ours.class().to_owned();
        let promise = promise(question);
        let Some(difference) = compare(&loki, &ours, promise) else {
            return (kind, None);
        };
        let case = Case {
            question,
            loki: &loki,
            ours: &ours,
            warnings: &warnings,
            promise,
        };
        let purpose = match purposes::reason(&case) {
            None => self.streams(question).or_else(|| self.groups(question)),
            reason => reason,
        };
        let differing = DifferingQuestion {
            question: question.clone(),
            difference,
            purpose,
        };
        (kind, Some(differing))
    }

    /// Which streams make the difference, if they are of those in which differences are on purpose.
    fn streams(&self, question: &Question) -> Option<&'static str> {
        let [loki, ours] = &self.addresses;
        for streams in &purposes::STREAMS {
            if !(streams.applies)(question) {
                continue;
            }
            let without = question.without(streams.without);
            let (loki, ours) = (without.ask(loki), without.ask(ours));
            let case = Case {
                question: &without,
                loki: &Answer::of(&loki),
                ours: &Answer::of(&ours),
                warnings: &warnings(&ours),
                promise: promise(&without),
            };
            let difference = compare(case.loki, case.ours, case.promise);
            if difference.is_none() || purposes::reason(&case).is_some() {
                return Some(streams.reason);
            }
        }
        None
    }

    /// Whether labels without text make the difference, by which something is grouped: without these lines
    /// something is left, which is answered equally.
    fn groups(&self, question: &Question) -> Option<&'static str> {
        let Subject::Query { query, .. } = &question.subject else {
            return None;
        };
        let [loki, ours] = &self.addresses;
        let labels = query.groupings();
        let is_equal = |label: &String| {
            let without = question.with(query.with_text(label));
            let (loki, ours) = (without.ask(loki), without.ask(ours));
            let (loki, ours) = (Answer::of(&loki), Answer::of(&ours));
            let is_some = matches!(&ours, Answer::Series { series, .. } if !series.is_empty());
            is_some && compare(&loki, &ours, promise(&without)).is_none()
        };
        labels.iter().any(is_equal).then_some(purposes::GROUPS)
    }

    /// The smallest part of a query that still is answered differently, in the same way.
    fn smallest(&self, mut found: DifferingQuestion) -> DifferingQuestion {
        let mut asked = 0;
        'smaller: loop {
            let Subject::Query { query, .. } = &found.question.subject else {
                return found;
            };
            for part in query.smaller() {
                asked += 1;
                if asked > SMALLER_MAX {
                    return found;
                }
                let (_, differing) = self.differing(&found.question.with(part));
                if let Some(differing) = differing
                    && differing.purpose.is_none()
                    && differing.difference.kind == found.difference.kind
                {
                    found = differing;
                    continue 'smaller;
                }
            }
            return found;
        }
    }

    fn different(&mut self, found: &DifferingQuestion) {
        let shape = match &found.question.subject {
            Subject::Query { query, is_instant } => {
                let way = if *is_instant { "instant" } else { "range" };
                format!("{way} {}", query.shape())
            }
            Subject::Other(name) => (*name).to_owned(),
        };
        let target = found.question.target();
        let url = |address: &String| format!("http://{address}{target}");
        self.report.different(ReportEntry {
            group: format!("{}: {shape}", found.difference.kind),
            question: found.question.shown(),
            text: found.difference.text.clone(),
            urls: self.addresses.each_ref().map(url),
        });
    }
}

/// What is promised of the answers to a question.
fn promise(question: &Question) -> Promise {
    let Subject::Query { query, is_instant } = &question.subject else {
        return Promise::default();
    };
    let text = query.to_string();
    Promise {
        limit: question.limit,
        is_backward: question.is_backward,
        is_thinned: question.is_thinned,
        is_sorted: *is_instant && matches!(query, Query::Metric(_)) && text.starts_with("sort"),
        chooses: text.contains("topk") || text.contains("bottomk"),
    }
}
