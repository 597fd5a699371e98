//! `| regexp`: labels of the named groups of a regular expression.

use regex_automata::meta;

use super::Work;
use crate::label::{is_label_name, sanitised};
use crate::logql::translate_regex;
use crate::pattern::{RegexError, compile_with_groups};

/// A compiled expression and the labels of its groups.
#[derive(Clone, Debug)]
pub(super) struct Regexp {
    regex: meta::Regex,
    /// Groups by number, with their labels.
    groups: Vec<(usize, Box<str>)>,
}

impl Regexp {
    pub(super) fn new(source: &str) -> Result<Regexp, String> {
        let refused = |error: RegexError| format!("error parsing regexp: {}", error.message);
        let translated = translate_regex(source).map_err(refused)?;
        if let Some(name) = translated.repeated_name {
            let name = &source[name];
            return Err(format!("duplicate extracted label name '{name}'"));
        }
        let regex = compile_with_groups(&translated.source).map_err(refused)?;
        let names = regex
            .group_info()
            .pattern_names(regex_automata::PatternID::ZERO);
        let groups = names.enumerate().filter_map(|(at, name)| Some((at, name?)));
        let groups: Vec<(usize, Box<str>)> = groups
            .map(|(at, name)| (at, sanitised(name).into()))
            .collect();
        if groups.is_empty() {
            return Err("at least one named capture must be supplied".to_owned());
        }
        debug_assert!(groups.iter().all(|(_, name)| is_label_name(name)));
        Ok(Regexp { regex, groups })
    }

    /// A line that the expression does not match stays as it is.
    pub(super) fn run(&self, work: &mut Work<'_>) {
        let mut captures = self.regex.create_captures();
        self.regex.captures(&*work.line, &mut captures);
        if !captures.is_match() {
            return;
        }
        for (at, name) in &self.groups {
            let found = captures.get_group(*at);
            let text = found.map_or(&b""[..], |span| &work.line[span.range()]);
            work.labels.extract(name, &String::from_utf8_lossy(text));
        }
    }
}
