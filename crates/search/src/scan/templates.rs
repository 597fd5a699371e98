//! Texts decided by the templates of messages, without reading the messages.
//!
//! A match in a message lies in the literal text of its template, or it holds a part of a token that
//! the template leaves out. The literal text decides for all rows of a template. The words of the
//! token index tell which blocks have a token that may be left out and that the match could lie in; only
//! there messages are read.

use std::collections::HashMap;
use std::sync::Arc;

use logpond_segment::file::ReadError;
use logpond_segment::rows::{NULL, OPEN_END, Strings, VARIABLE, may_vary};
use logpond_segment::tokens::BlockSet;
use memchr::memmem;

use super::group::GroupScan;
use super::values::{decide_plain, escapes_that_matter};
use crate::literal::{TokenPart, TokenQuery, literal_parts};
use crate::pattern::{Finder, Needle};

/// By the number of the condition, and whether messages stand with escapes in the line.
pub(super) type TemplateDecisions = HashMap<(usize, bool), Option<Arc<TemplateDecision>>>;

/// Whether messages of a template hold the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All do.
    All,
    /// None does in blocks that are not open.
    None,
    /// The messages tell.
    Unknown,
}

/// What is decided about the templates of a row group.
pub(super) struct TemplateDecision {
    by_code: Vec<Verdict>,
    /// Blocks with tokens that templates leave out and that the text may lie in.
    open: BlockSet,
}

impl TemplateDecision {
    /// What is decided about a row of a block by the code of its template.
    pub(super) fn of(&self, code: u32, block: usize) -> Verdict {
        match code {
            NULL => Verdict::Unknown,
            code => match self.by_code[code as usize] {
                Verdict::None if self.open.contains(block) => Verdict::Unknown,
                verdict => verdict,
            },
        }
    }
}

/// The parts of tokens in a text that may lie in a token which templates leave out; `None` if the
/// templates are of no use for it.
pub(crate) fn parts_that_may_vary(finder: &Finder) -> Option<Vec<TokenPart>> {
    let needle = finder.needle()?;
    // A mark is no text of the message.
    if needle.text == b"_" || needle.text.iter().any(|byte| matches!(byte, b'<' | b'>')) {
        return None;
    }
    let mut parts = Vec::new();
    for query in literal_parts(needle.text, needle.folded) {
        match query {
            TokenQuery::Token(token) if may_vary(&token) => return None,
            TokenQuery::Part(part) if !is_among_words(&part) => return None,
            TokenQuery::Part(part) if !(part.at_start && part.at_end) => parts.push(part),
            _ => {}
        }
    }
    Some(parts)
}

/// Whether each token with this part that templates leave out is among the words, or none is left out.
fn is_among_words(part: &TokenPart) -> bool {
    if part.at_start && part.at_end {
        return !may_vary(&part.text);
    }
    // Ids, and fractions of a second, are not among the words.
    let is_of_id = part.text.iter().all(u8::is_ascii_hexdigit);
    let is_of_time = part.text.eq_ignore_ascii_case(b"z");
    !is_of_id && !is_of_time && !part.text.iter().any(u8::is_ascii_digit)
}

impl GroupScan<'_> {
    /// What the templates say of a text; `None` if they are of no use.
    ///
    /// # Errors
    /// When a page is damaged or the disk fails.
    pub(super) fn decide_templates(
        &mut self,
        (number, finder): (usize, &Finder),
        is_escaped: bool,
    ) -> Result<Option<Arc<TemplateDecision>>, ReadError> {
        if let Some(known) = self.template_decisions.get(&(number, is_escaped)) {
            return Ok(known.clone());
        }
        let made = self.judge_templates(finder, is_escaped)?.map(Arc::new);
        self.template_decisions
            .insert((number, is_escaped), made.clone());
        Ok(made)
    }

    /// Splits rows of the block at hand into those whose template shows that their message matches, and the
    /// others.
    ///
    /// # Errors
    /// When a page is damaged or the disk fails.
    pub(super) fn split_by_template(
        &mut self,
        text: (usize, &Finder),
        rows: Vec<u32>,
    ) -> Result<(Vec<u32>, Vec<u32>), ReadError> {
        let Some(decision) = self.decide_templates(text, false)? else {
            return Ok((Vec::new(), rows));
        };
        let (block, reader, _) = self.parts();
        let number = block.number();
        let templates = block.templates(reader)?;
        let verdict = |row: &u32| decision.of(templates.codes[*row as usize], number);
        Ok(rows
            .into_iter()
            .partition(|row| verdict(row) == Verdict::All))
    }

    /// Splits rows of the block at hand into those that `is_wanted` accepts by the first line of their
    /// template, and the others.
    ///
    /// # Errors
    /// When a page is damaged or the disk fails.
    pub(super) fn part_by_template(
        &mut self,
        rows: Vec<u32>,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<(Vec<u32>, Vec<u32>), ReadError> {
        let Some(texts) = self.template_texts()? else {
            return Ok((Vec::new(), rows));
        };
        let decide = |code: u32| {
            let text = texts.get(code);
            is_wanted(text.strip_suffix(OPEN_END).unwrap_or(text))
        };
        let (block, reader, _) = self.parts();
        let codes = &block.templates(reader)?.codes;
        // Neighbouring rows mostly have the same template, and blocks few of all.
        let mut last = (NULL, false);
        Ok(rows.into_iter().partition(|row| {
            let code = codes[*row as usize];
            if code != last.0 {
                last = (code, code != NULL && decide(code));
            }
            last.1
        }))
    }

    fn judge_templates(
        &mut self,
        finder: &Finder,
        is_escaped: bool,
    ) -> Result<Option<TemplateDecision>, ReadError> {
        if !finder.ignores_ends() {
            return Ok(None);
        }
        let Some(texts) = self.template_texts()? else {
            return Ok(None);
        };
        let open = match parts_that_may_vary(finder) {
            Some(parts) => self.blocks_that_vary(&parts)?,
            // Whatever is in the literal text is found.
            None if finder.needle().is_none() => None,
            None => return Ok(None),
        };
        let absent = if open.is_some() {
            Verdict::None
        } else {
            Verdict::Unknown
        };
        let blocks = self.blocks_count();
        Ok(Some(TemplateDecision {
            by_code: judge(finder, &texts, is_escaped, absent),
            open: open.unwrap_or_else(|| BlockSet::none(blocks)),
        }))
    }

    /// The blocks with a token that templates leave out and that holds one of the parts; `None` if that
    /// is not known.
    fn blocks_that_vary(&mut self, parts: &[TokenPart]) -> Result<Option<BlockSet>, ReadError> {
        let mut open = BlockSet::none(self.blocks_count());
        if parts.is_empty() {
            return Ok(Some(open));
        }
        let Some(hits) = self.hits()? else {
            return Ok(None);
        };
        for part in parts {
            let Some(words) = hits.varying(part) else {
                return Ok(None);
            };
            for word in words {
                open.unite(&self.reader.look_up(word)?);
            }
        }
        Ok(Some(open))
    }
}

fn judge(finder: &Finder, texts: &Strings, is_escaped: bool, absent: Verdict) -> Vec<Verdict> {
    let is_affected = escapes_that_matter(finder);
    // No mark is a part of a match of a text, but for the newline of one at the end.
    let needle = finder.needle();
    let is_line = |needle: &Needle<'_>| !needle.text.contains(&b'\n');
    let hits = needle.filter(is_line).map(|_| decide_plain(finder, texts));
    let marks = memmem::Finder::new(VARIABLE);
    let holds = |code: usize, literal: &[u8]| match &hits {
        Some(hits) => hits[code],
        None => literal_holds(finder, &marks, literal),
    };
    let verdict = |(code, text): (usize, &[u8])| {
        let (literal, is_open) = match text.strip_suffix(OPEN_END) {
            Some(literal) => (literal, true),
            None => (text, false),
        };
        if is_escaped && is_affected(literal) {
            Verdict::Unknown
        } else if holds(code, literal) {
            Verdict::All
        } else if is_open {
            Verdict::Unknown
        } else {
            absent
        }
    };
    texts.iter().enumerate().map(verdict).collect()
}

/// Whether the text between the marks of a template holds a match.
fn literal_holds(finder: &Finder, marks: &memmem::Finder<'_>, template: &[u8]) -> bool {
    let mut from = 0;
    for at in marks.find_iter(template).chain([template.len()]) {
        if finder.is_match(&template[from..at]) {
            return true;
        }
        from = at + VARIABLE.len();
    }
    false
}

/// The literal text at an end of each message of this template, which may go on beyond it; `None` if it is
/// not known.
pub(super) fn literal_end(template: &[u8], is_end: bool) -> Option<&[u8]> {
    let closed = template.strip_suffix(OPEN_END);
    let literal = closed.unwrap_or(template);
    if !is_end {
        let mark = memmem::find(literal, VARIABLE);
        return Some(&literal[..mark.unwrap_or(literal.len())]);
    }
    let mark = memmem::rfind(literal, VARIABLE);
    let from = mark.map_or(0, |at| at + VARIABLE.len());
    closed.is_none().then_some(&literal[from..])
}
