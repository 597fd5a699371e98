//! The text that a tool answers with: bounded, marked, and honest about what is missing.

use logpond_client::Trailer;
use serde_json::{Value, json};

use super::answer::Rows;
use super::arguments::{Argument, number};
use super::server::Refusal;
use super::untrusted::{self, BlockName};

/// The bound of an answer. A model reads about four characters as one token.
pub(crate) const MAX_CHARACTERS: Argument = number(
    "max_characters",
    (20_000, 2_000, 200_000),
    "The most characters of the answer; about four are a token.",
);

/// Characters that are kept for the lines beside the rows.
const FRAME_CHARACTERS: usize = 1_200;

/// The most characters of facts and of the ways to get more; both are our own words, with times and cursors.
const FACTS_CHARACTERS_MAX: usize = 600;

/// A text of a row has at most so many characters; if the first row does not fit, the next number counts.
const TEXT_CHARACTERS_MAX: [usize; 4] = [4_000, 800, 160, 32];

/// Things that are listed as missing; the others are counted.
const MISSING_LISTED_MAX: usize = 10;

/// The completeness of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// Nothing is missing.
    Complete,
    /// Something is missing, and is named.
    Incomplete,
    /// The end of the answer, which would say it, was not read.
    Unknown,
}

/// An answer before it is text.
#[derive(Debug)]
pub(crate) struct Report {
    /// The completeness of the rows.
    pub(crate) completeness: Completeness,
    /// Sentences about the rows, without any text of records.
    pub(crate) facts: Vec<String>,
    /// The rows.
    pub(crate) rows: Vec<Value>,
    /// True if rows have a time and an id, by which the next page is asked for.
    pub(crate) has_cursors: bool,
    /// Other remarks of the server, each a row below a name of its own.
    remarks: Vec<Value>,
}

impl Report {
    /// A report of rows that lack nothing.
    pub(crate) fn complete(rows: Vec<Value>) -> Report {
        Report {
            completeness: Completeness::Complete,
            facts: Vec::new(),
            rows,
            has_cursors: false,
            remarks: Vec::new(),
        }
    }

    /// A report of an answer of the server.
    pub(crate) fn of(answer: Rows) -> Report {
        let mut report = Report::complete(answer.rows);
        report.lack(answer.trailer.as_ref());
        if let Some(trailer) = &answer.trailer {
            report
                .facts
                .push(format!("matched: {} records", trailer.rows));
            report.facts.push(format!("range: {}", range(trailer)));
            if let Some(cursor) = trailer.cursor.as_ref().filter(|_| trailer.more) {
                let cursor = plain(cursor);
                report
                    .facts
                    .push(format!("more: call again with cursor=\"{cursor}\""));
            } else if trailer.more {
                report
                    .facts
                    .push("more: rows beyond 'limit' are left out".to_owned());
            }
        }
        report
    }

    /// Notes what another answer lacks.
    pub(crate) fn lack(&mut self, trailer: Option<&Trailer>) {
        let Some(trailer) = trailer else {
            self.completeness = Completeness::Unknown;
            return;
        };
        if !trailer.complete && self.completeness == Completeness::Complete {
            self.completeness = Completeness::Incomplete;
        }
        for missing in trailer.missing.iter().take(MISSING_LISTED_MAX) {
            self.remark("_missing", missing.clone());
        }
        for lost in trailer.lost.iter().take(MISSING_LISTED_MAX) {
            self.remark("_lost", lost.as_str().into());
        }
        for hint in &trailer.hints {
            self.remark("_hint", hint.message.as_str().into());
        }
    }

    /// Says something whose text is not our own.
    pub(crate) fn remark(&mut self, name: &str, text: Value) {
        let remark = json!({ name: text });
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// The text, with as many rows as fit.
    pub(crate) fn render(&self, characters_max: usize, name: &BlockName) -> String {
        let room = characters_max.saturating_sub(FRAME_CHARACTERS);
        // Missing parts are said before rows take the room, and takes a quarter of it at most.
        let (mut lines, mut used) = fitting(&self.remarks, room / 4);
        let (rows, _) = fitting(&self.rows, room.saturating_sub(used));
        let shown = rows.len();
        lines.extend(rows);
        used = shown;
        let mut facts = vec![format!("complete: {}", self.words())];
        facts.push(format!("rows: {used} shown of {}", self.rows.len()));
        if shown < self.rows.len() {
            facts.push(self.how_to_go_on(shown));
        }
        let mut characters = 0;
        for fact in &self.facts {
            characters += fact.chars().count();
            let is_replaced = shown < self.rows.len() && fact.starts_with("more: ");
            if characters <= FACTS_CHARACTERS_MAX && !is_replaced {
                facts.push(fact.clone());
            }
        }
        let facts = facts.join("\n");
        if lines.is_empty() {
            return facts;
        }
        format!("{facts}\n{}", name.block(&lines))
    }

    fn words(&self) -> &'static str {
        match self.completeness {
            Completeness::Complete => "yes",
            Completeness::Incomplete => {
                "no, records are missing from the answer as _missing says; do not conclude that something \
                 did not happen"
            }
            Completeness::Unknown => {
                "unknown, the end of the answer was not read; ask for fewer rows or a shorter range"
            }
        }
    }

    fn how_to_go_on(&self, shown: usize) -> String {
        let last = shown.checked_sub(1).and_then(|last| self.rows.get(last));
        let cursor = last.filter(|_| self.has_cursors).and_then(cursor_of);
        match cursor {
            Some(cursor) => format!("cut: call again with cursor=\"{cursor}\" for the next rows"),
            None => format!(
                "cut: raise max_characters (at most {}), or narrow the query, the range or 'limit'",
                characters_most()
            ),
        }
    }
}

/// The text about a question that was refused; the reason may hold text of records.
pub(crate) fn refusal_text(refusal: &Refusal, characters_max: usize, name: &BlockName) -> String {
    let code = plain(&refusal.code);
    let row = json!({ "_error": refusal.message });
    let (lines, _) = fitting(&[row], characters_max.saturating_sub(FRAME_CHARACTERS));
    format!(
        "complete: no, there is no answer\nrefused: {code}\n{}",
        name.block(&lines)
    )
}

/// The most characters that can be asked for.
fn characters_most() -> u64 {
    match MAX_CHARACTERS.kind {
        super::arguments::ArgumentKind::Number { max, .. } => max,
        _ => 0,
    }
}

/// Lines of the first rows that fit into so many characters, and how many these have.
fn fitting(rows: &[Value], room: usize) -> (Vec<String>, usize) {
    for characters_max in TEXT_CHARACTERS_MAX {
        let mut used = 0;
        let lines: Vec<String> = rows
            .iter()
            .map(|row| untrusted::line(&untrusted::clipped(row, characters_max)))
            .take_while(|line| {
                used += line.chars().count() + 1;
                used <= room
            })
            .collect();
        if !lines.is_empty() || rows.is_empty() {
            let used = lines.iter().map(|line| line.chars().count() + 1).sum();
            return (lines, used);
        }
    }
    // A row of very many members: by its time and id it can be asked for otherwise.
    let head = rows.first().map(|row| {
        json!({ "_time": row["_time"], "_id": row["_id"], "_more": "the row has more members than fit" })
    });
    let line = head.map(|head| untrusted::line(&untrusted::clipped(&head, 64)));
    let line = line.filter(|line| line.chars().count() < room);
    let used = line.iter().map(|line| line.chars().count() + 1).sum();
    (line.into_iter().collect(), used)
}

/// The position of a row, as the server takes it.
pub(crate) fn cursor_of(row: &Value) -> Option<String> {
    let (time, id) = (row["_time"].as_str()?, row["_id"].as_str()?);
    Some(plain(&format!("{time}_{id}")))
}

/// The range that was searched.
pub(crate) fn range(trailer: &Trailer) -> String {
    let bound = |bound: &Option<String>, none: &str| {
        bound.as_deref().map_or_else(|| none.to_owned(), plain)
    };
    format!(
        "from {} to {}",
        bound(&trailer.from, "the beginning"),
        bound(&trailer.to, "now")
    )
}

/// Text outside of a block: letters, digits and signs of times and ids, and nothing else.
fn plain(text: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.' | '_' | '+');
    text.chars().filter(is_plain).take(120).collect()
}
