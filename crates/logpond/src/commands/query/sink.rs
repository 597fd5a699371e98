//! Where printed records go: standard output or a pager.
//!
//! A pager is started with the first bytes, so that progress can be shown until then and an empty
//! answer opens none.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::commands::progress::{Progress, amount};
use crate::commands::variable;
use logpond_client as client;
use logpond_host::terminal;
use logpond_host::terminal::When;
use logpond_host::terminal::guard::{Guard, Hands};
use logpond_render::Format;
use logpond_render::html::Facts;
use logpond_render::{Render, Row, Style, quantity, renderer};

/// Leave at once if it fits a screen, keep colours, do not clear, wrap long lines.
const LESS: &str = "FRX";

/// How a pager is chosen and begun.
pub(in crate::commands) struct Pagers {
    /// Variables that name one, the first that is set counts; less otherwise.
    pub(in crate::commands) named_by: &'static [&'static str],
    /// Variables for the pager.
    pub(in crate::commands) given: Vec<(&'static str, OsString)>,
}

impl Pagers {
    /// Those of commands that are only ours.
    fn plain() -> Pagers {
        let less = variable("LESS").is_none().then(|| ("LESS", LESS.into()));
        Pagers {
            named_by: &["LOGPOND_PAGER", "PAGER"],
            given: less.into_iter().collect(),
        }
    }
}

/// Bytes gathered before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// See the module.
pub(in crate::commands) struct Sink {
    renderer: Box<dyn Render>,
    /// The filter in front of a terminal or its pager.
    guard: Guard,
    /// Whether lines of a server's answer are printed as they are.
    is_verbatim: bool,
    only_fields: Vec<String>,
    buffer: Vec<u8>,
    pager: Pager,
    pagers: Pagers,
    /// What is shown while there is nothing to print.
    pub(in crate::commands) progress: Progress,
}

enum Pager {
    /// None is wanted.
    Off,
    /// This one is started with the first bytes.
    Wanted(String),
    Running(Child),
}

impl Sink {
    pub(in crate::commands) fn open(
        format: Format,
        style: Style,
        only_fields: &[String],
        (paging, hands): (When, Hands),
    ) -> Sink {
        Sink {
            is_verbatim: format == Format::Json && only_fields.is_empty(),
            only_fields: only_fields.to_vec(),
            ..Sink::of(
                renderer(format, style, only_fields),
                (paging, hands),
                Pagers::plain(),
            )
        }
    }

    /// Prints by this renderer.
    pub(in crate::commands) fn of(
        renderer: Box<dyn Render>,
        (paging, hands): (When, Hands),
        pagers: Pagers,
    ) -> Sink {
        let wanted = match paging {
            When::Auto => terminal::is_output() && variable("TERM").is_none_or(|t| t != "dumb"),
            When::Always => true,
            When::Never => false,
        };
        Sink {
            renderer,
            guard: Guard::new(hands),
            is_verbatim: false,
            only_fields: Vec::new(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            pager: match (wanted, pager_command(pagers.named_by, &variable)) {
                (true, Some(command)) => Pager::Wanted(command),
                _ => Pager::Off,
            },
            pagers,
            progress: Progress::new(),
        }
    }

    /// Shows how far a question is.
    pub(in crate::commands) fn show_progress(&mut self, reached: client::Progress) {
        self.progress.show(|elapsed| found(reached, elapsed));
    }

    /// Prints a line of a server's answer.
    pub(in crate::commands) fn line(
        &mut self,
        line: &[u8],
    ) -> Result<(), crate::commands::Failure> {
        if self.is_verbatim {
            self.buffer.extend_from_slice(line);
            self.buffer.push(b'\n');
            return Ok(self.flush_if_full()?);
        }
        let row = Row::from_json(line)?;
        Ok(self.row(row)?)
    }

    /// Prints a row.
    pub(in crate::commands) fn row(&mut self, mut row: Row<'_>) -> io::Result<()> {
        if !self.only_fields.is_empty() {
            row.keep_only(&self.only_fields);
        }
        self.renderer.row(&row, &mut self.buffer);
        self.flush_if_full()
    }

    /// Prints what separates groups of context.
    pub(in crate::commands) fn gap(&mut self) -> io::Result<()> {
        self.renderer.gap(&mut self.buffer);
        self.flush_if_full()
    }

    /// Says of the answer what is not in its rows.
    pub(in crate::commands) fn conclude(&mut self, facts: Facts) {
        self.renderer.conclude(facts);
    }

    /// Prints bytes as they are.
    pub(in crate::commands) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.flush_if_full()
    }

    /// Makes what was printed visible.
    pub(in crate::commands) fn flush(&mut self) -> io::Result<()> {
        let mut sent = Vec::with_capacity(self.buffer.len());
        self.guard.pass(&self.buffer, &mut sent);
        self.buffer.clear();
        self.buffer.shrink_to(2 * BUFFER_BYTES);
        self.send(&sent)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.progress.clear();
        if let Pager::Wanted(command) = &self.pager {
            self.pager = match start(command, &self.pagers.given) {
                Ok(child) => {
                    self.progress.disable();
                    Pager::Running(child)
                }
                // Without its pager the output is still worth having.
                Err(_) => Pager::Off,
            };
        }
        match &mut self.pager {
            Pager::Running(child) => match &mut child.stdin {
                Some(stdin) => stdin.write_all(bytes),
                None => Ok(()),
            },
            _ => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
        }
    }

    /// Prints what was held back and waits for the pager to be left.
    pub(in crate::commands) fn close(mut self) -> io::Result<()> {
        self.renderer.end(&mut self.buffer);
        let mut held = Vec::new();
        let flushed = self.flush().and_then(|()| {
            self.guard.end(&mut held);
            self.send(&held)
        });
        self.progress.clear();
        if let Pager::Running(mut child) = self.pager {
            drop(child.stdin.take());
            child.wait()?;
        }
        flushed
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }
}

/// `3.1 GB of 8.4 GB · 1.6 GB/s · 4.0 s left · 17 found`
fn found(reached: client::Progress, elapsed: Duration) -> String {
    let read = amount(reached.bytes, reached.bytes_total, elapsed);
    format!("{read} · {} found", quantity::count(reached.rows))
}

/// The command that the first of these variables has; none if that is empty or `cat`.
fn pager_command(names: &[&str], variable: &dyn Fn(&str) -> Option<OsString>) -> Option<String> {
    let given = names
        .iter()
        .find_map(|name| variable(name))
        .map_or("less".to_string(), |value| {
            value.to_string_lossy().into_owned()
        });
    (!given.trim().is_empty() && given.trim() != "cat").then_some(given)
}

fn start(command: &str, given: &[(&'static str, OsString)]) -> io::Result<Child> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::piped());
    shell.envs(given.iter().map(|(name, value)| (name, value)));
    shell.spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_a_question_is() {
        let reached = client::Progress {
            bytes: 3_100_000_000,
            bytes_total: 8_400_000_000,
            rows: 17,
        };
        assert_eq!(
            found(reached, Duration::from_secs(2)),
            "3.1 GB of 8.4 GB · 1.6 GB/s · 4.0 s left · 17 found"
        );
        let unknown = client::Progress::default();
        assert_eq!(
            found(unknown, Duration::from_secs(1)),
            "0 B · 0 B/s · 0 found"
        );
    }

    /// Variables with their values.
    type Set<'s> = &'s [(&'s str, &'s str)];

    #[test]
    fn the_first_variable_names_the_pager() {
        let names = ["LOGPOND_PAGER", "SYSTEMD_PAGER", "PAGER"];
        let table: [(Set<'_>, Option<&str>); 6] = [
            (&[], Some("less")),
            (&[("PAGER", "more -s")], Some("more -s")),
            (
                &[("PAGER", "more"), ("SYSTEMD_PAGER", "most")],
                Some("most"),
            ),
            (&[("PAGER", "more"), ("SYSTEMD_PAGER", "")], None),
            (&[("SYSTEMD_PAGER", "most"), ("LOGPOND_PAGER", "cat")], None),
            (&[("LESS", "x")], Some("less")),
        ];
        for (set, expected) in table {
            let variable = |name: &str| {
                let mut set = set.iter();
                set.find(|(known, _)| *known == name)
                    .map(|(_, value)| OsString::from(value))
            };
            assert_eq!(
                pager_command(&names, &variable).as_deref(),
                expected,
                "{set:?}"
            );
        }
    }
}
