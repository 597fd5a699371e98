//! The report: one Markdown page with a table for each part.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use super::corpus::Corpora;
use super::output;
use crate::run::root;

/// What holds for every page.
const CONDITIONS: &str = "
MB is 10^6 bytes. CPU is user and system time of the server process. Timings of a shared machine vary by tens \
of percent; tests assert only sizes and exactness.
";

/// Everything that was measured, in order.
pub(super) struct Report {
    head: String,
    facts: Vec<String>,
    tables: Vec<Table>,
}

struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

/// A measured value beside what it must reach.
pub(super) struct Target {
    /// The bound.
    pub(super) bound: f64,
    /// Whether more is better.
    pub(super) at_least: bool,
    /// How the bound is written.
    pub(super) text: &'static str,
}

impl Target {
    /// A bound from above.
    pub(super) fn at_most(bound: f64, text: &'static str) -> Target {
        Target {
            bound,
            at_least: false,
            text,
        }
    }

    /// A bound from below.
    pub(super) fn at_least(bound: f64, text: &'static str) -> Target {
        Target {
            bound,
            at_least: true,
            text,
        }
    }

    /// The bound and whether the value keeps it.
    pub(super) fn judged(&self, value: f64) -> String {
        let is_met = if self.at_least {
            value >= self.bound
        } else {
            value <= self.bound
        };
        format!(
            "{} {}",
            self.text,
            if is_met { "met" } else { "**missed**" }
        )
    }
}

impl Report {
    /// A report that begins with the machine, the date, the version and the command.
    pub(super) fn new(title: &str, arguments: &[String], corpora: Option<&Corpora>) -> Report {
        let line = |program: &str, arguments: &[&str]| {
            let text = output(Command::new(program).current_dir(root()).args(arguments));
            text.unwrap_or_default().trim().to_string()
        };
        let command = shown_command(arguments);
        let mut head = format!("# {title}\n\n");
        let _ = writeln!(
            head,
            "Measured by `{command}`; run it to replace this page.\n"
        );
        let _ = writeln!(head, "- Machine: {}", machine());
        let _ = writeln!(
            head,
            "- Date: {}",
            line("date", &["-u", "+%Y-%m-%d %H:%M UTC"])
        );
        let _ = writeln!(head, "- Load average before: {}", load_average());
        let _ = writeln!(
            head,
            "- Version: {}",
            line("git", &["describe", "--always", "--dirty"])
        );
        for corpus in corpora.into_iter().flat_map(Corpora::all) {
            let _ = writeln!(
                head,
                "- Corpus {}: {} records, {:.1} MB; zstd -3 makes {} of it",
                corpus.kind,
                corpus.lines,
                corpus.bytes as f64 / 1e6,
                corpus
                    .zstd_bytes
                    .map_or("(no zstd here)".into(), |b| megabytes(b as f64)),
            );
        }
        Report {
            head,
            facts: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Adds what one must know of this run to what the page begins with.
    pub(super) fn fact(&mut self, text: String) {
        eprintln!("{text}");
        self.facts.push(text);
    }

    /// Begins a table.
    pub(super) fn table(&mut self, title: &str, columns: &[&str]) {
        eprintln!("== {title}");
        self.tables.push(Table {
            title: title.into(),
            columns: columns.iter().map(|c| c.to_string()).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        });
    }

    /// Adds a row to the last table.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        eprintln!("   {}", cells.join(" | "));
        if let Some(table) = self.tables.last_mut() {
            table.rows.push(cells);
        }
    }

    /// Adds a remark below the last table.
    pub(super) fn note(&mut self, text: String) {
        eprintln!("   {text}");
        if let Some(table) = self.tables.last_mut() {
            table.notes.push(text);
        }
    }

    /// The page.
    pub(super) fn text(&self) -> String {
        let mut text = self.head.clone();
        for fact in &self.facts {
            let _ = writeln!(text, "- {fact}");
        }
        text.push_str(CONDITIONS);
        for table in &self.tables {
            let _ = write!(
                text,
                "\n## {}\n\n| {} |\n",
                table.title,
                table.columns.join(" | ")
            );
            let _ = writeln!(text, "|{}", " --- |".repeat(table.columns.len()));
            for row in &table.rows {
                let _ = writeln!(text, "| {} |", row.join(" | "));
            }
            for note in &table.notes {
                let _ = writeln!(text, "\n{note}");
            }
        }
        text
    }
}

/// The command, without the paths of this machine.
fn shown_command(arguments: &[String]) -> String {
    let mut shown = String::from("cargo xtask bench");
    let mut hides_next = false;
    for argument in arguments {
        shown.push(' ');
        shown.push_str(if hides_next { "PATH" } else { argument });
        hides_next = matches!(
            argument.as_str(),
            "--corpus" | "--victoria-logs" | "--loki" | "--program"
        );
    }
    shown
}

fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown CPU", |(_, name)| name.trim());
    let cores = cpu.lines().filter(|l| l.starts_with("processor")).count();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib: f64 = memory
        .lines()
        .find_map(|l| {
            l.strip_prefix("MemTotal:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        })
        .unwrap_or(0.0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{cores} x {model}, {:.0} GB memory, Linux {}",
        kib / 1e6,
        kernel.trim()
    )
}

/// How many wanted a core over the last minute.
pub(super) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_string()
}

/// A size in megabytes.
pub(super) fn megabytes(bytes: f64) -> String {
    match bytes {
        b if b >= 100e6 => format!("{:.0} MB", b / 1e6),
        b => format!("{:.1} MB", b / 1e6),
    }
}

/// A number with about three digits.
pub(super) fn figure(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The middle of the values; of an even number the lower one of the two.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values
        .get(values.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_about_three_digits() {
        let shown = [0.123, 9.876, 12.34, 123.4, 12_345.6].map(figure);
        assert_eq!(shown, ["0.12", "9.88", "12.3", "123", "12346"]);
    }
}
