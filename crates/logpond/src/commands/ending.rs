//! What is said on standard error once a question is answered: which range was searched, what it cost and,
//! where nothing was found, what was probably meant.

use std::time::Duration;

use logpond_search::hints::shell_word;

use super::Exit;
use super::listing::exit;
use crate::cli::Selection;
use logpond_client::{Hint, Trailer};
use logpond_host::terminal::note;
use logpond_render::quantity;

/// The end of an answer.
pub(super) struct AnswerFooter<'a> {
    /// The command with what stands before its conditions: `top status`.
    pub(super) command: String,
    /// Which records were meant.
    pub(super) selection: &'a Selection,
    /// Whether rows, bytes and time are wanted.
    pub(super) stats: bool,
}

impl AnswerFooter<'_> {
    /// The exit code of a table, once all is said; `none` says that it is empty.
    pub(super) fn of_table(&self, is_empty: bool, trailer: &Trailer, none: &str) -> Exit {
        self.note_stats(trailer);
        let exit = exit(is_empty, trailer, none);
        if exit != Exit::None {
            self.note_range(trailer.from.as_deref());
        }
        self.note_hints(&trailer.hints);
        exit
    }

    /// Says what the answer cost and lacks, if that is wanted.
    pub(super) fn note_stats(&self, trailer: &Trailer) {
        if !self.stats {
            return;
        }
        let mut stats = stats_text(trailer.rows, trailer.bytes_scanned, trailer.elapsed_ms);
        for (parts, what) in [
            (trailer.missing.len(), "missing"),
            (trailer.lost.len(), "lost"),
        ] {
            if parts > 0 {
                let parts = quantity::counted(parts as u64, "part");
                stats.push_str(&format!(" · {parts} {what}"));
            }
        }
        note(&stats);
    }

    /// Says which range was searched, if that was not asked for.
    pub(super) fn note_range(&self, from: Option<&str>) {
        let Some(from) = from.filter(|_| self.selection.since.is_none()) else {
            return;
        };
        let what = match self.selection.until {
            None => "the last hour was searched",
            Some(_) => "the hour before --until was searched",
        };
        note(&format!(
            "-- {what}, from {from} on; --since reaches further back --"
        ));
    }

    /// Says what was probably meant.
    pub(super) fn note_hints(&self, hints: &[Hint]) {
        for hint in hints {
            note(&format!("hint: {}", self.text(hint)));
        }
    }

    fn text(&self, hint: &Hint) -> String {
        let mut text = hint.message.clone();
        if let Some(command) = &hint.command {
            let own = command.strip_prefix("logpond query ");
            let command = match own {
                Some(conditions) => {
                    format!("logpond {} {conditions}{}", self.command, self.range())
                }
                None => format!("{command}{}", self.range()),
            };
            text.push_str(&format!("\n  try: {command}"));
        }
        for (flag, time) in [("--since", &hint.from), ("--until", &hint.to)] {
            if let Some(time) = time {
                text.push_str(&format!(" ({flag} {time} reaches it)"));
            }
        }
        text
    }

    /// The range as it was asked for.
    fn range(&self) -> String {
        let flags = [
            ("--since", &self.selection.since),
            ("--until", &self.selection.until),
        ];
        let given = flags.into_iter().filter_map(|(flag, text)| {
            let text = text.as_deref()?;
            Some(format!(" {flag} {}", shell_word(text)))
        });
        given.collect()
    }
}

/// Says what an answer cost.
pub(super) fn note_stats(rows: u64, bytes: u64, elapsed_ms: f64) {
    note(&stats_text(rows, bytes, elapsed_ms));
}

fn stats_text(rows: u64, bytes: u64, elapsed_ms: f64) -> String {
    format!(
        "{} · {} scanned · {}",
        quantity::counted(rows, "record"),
        quantity::bytes(bytes),
        quantity::span(Duration::from_secs_f64(
            (elapsed_ms / 1000.0).clamp(0.0, 1e9)
        )),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_of_the_command_and_its_range() {
        let selection = Selection {
            since: Some("2 days ago".into()),
            ..Selection::default()
        };
        let ending = AnswerFooter {
            command: "top status".into(),
            selection: &selection,
            stats: false,
        };
        let hint = |command: &str| Hint {
            message: "it looks like x".into(),
            command: Some(command.into()),
            ..Hint::default()
        };
        assert_eq!(
            ending.text(&hint("logpond query -f level=error")),
            "it looks like x\n  try: logpond top status -f level=error --since '2 days ago'"
        );
        assert_eq!(
            ending.text(&hint("logpond saved run '{}'")),
            "it looks like x\n  try: logpond saved run '{}' --since '2 days ago'"
        );
        let outside = Hint {
            message: "1 record matches before the range".into(),
            from: Some("2026-01-01T00:00:00Z".into()),
            ..Hint::default()
        };
        assert_eq!(
            ending.text(&outside),
            "1 record matches before the range (--since 2026-01-01T00:00:00Z reaches it)"
        );
    }
}
