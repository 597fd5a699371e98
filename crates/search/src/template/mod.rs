//! Templates as Go's `text/template` has them, with the functions of LogQL.
//!
//! ```text
//! {{.method}} {{.path | urldecode}} {{if eq .status "500"}}!{{end}} {{printf "%6.2f" (float64 .ms)}}
//! ```
//!
//! A template sees labels as fields, the line as `__line__` and its time as `__timestamp__`. A field
//! that is not there is empty.
//!
//! Bounds: [`OUTPUT_BYTES_MAX`] for what a line becomes, and for what a function adds to a text,
//! [`STEPS_MAX`] and [`VALUES_BYTES_MAX`] for the work on it, and [`DEPTH_MAX`] for nesting.

mod alert;
mod alert_functions;
mod decimal;
mod format;
mod functions;
mod layout;
mod parse;
mod run;
mod text;
#[cfg(test)]
mod tests;
mod time;
mod value;

use std::collections::{BTreeMap, HashMap};

use regex_automata::meta;

use crate::pattern::compile_with_groups;
pub use alert::AlertData;
pub(crate) use text::expand;
pub use value::Value;

/// The longest text that a line becomes.
pub const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// The most steps for one line; a loop over what a line holds takes far fewer.
pub const STEPS_MAX: usize = 100_000;

/// The most bytes of values that functions of a template are given and give for one line, together. Variables
/// and arguments are among them.
const VALUES_BYTES_MAX: usize = 32 << 20;

/// The deepest nesting of a template and of calls of templates by each other.
pub const DEPTH_MAX: usize = 40;

/// The most regular expressions that are kept compiled; each may take megabytes.
const REGEXES_MAX: usize = 16;

/// A compiled template.
#[derive(Clone, Debug)]
pub struct Template {
    root: Vec<parse::Node>,
    named: BTreeMap<Box<str>, Vec<parse::Node>>,
}

/// Whose functions a template may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// LogQL's.
    Lines,
    /// Those of alerts, too.
    Alerts,
}

/// What a template sees.
pub trait Data {
    /// The value of a field.
    fn field(&self, name: &str) -> Option<&str>;

    /// All fields in the order of their names.
    fn fields(&self) -> Vec<(String, String)>;

    /// The line.
    fn line(&self) -> &[u8];

    /// The line's time, in nanoseconds since the epoch.
    fn time_ns(&self) -> i64;

    /// The time of the query, in nanoseconds since the epoch.
    fn now_ns(&self) -> i64;
}

/// Memory that is used again for each line.
#[derive(Debug, Default)]
pub struct Scratch {
    regexes: HashMap<Box<str>, meta::Regex>,
}

impl Scratch {
    /// A regular expression, compiled once.
    fn regex(&mut self, source: &str) -> Result<&meta::Regex, String> {
        if !self.regexes.contains_key(source) {
            if self.regexes.len() >= REGEXES_MAX {
                self.regexes.clear();
            }
            let regex = crate::logql::translate_regex(source)
                .and_then(|translated| compile_with_groups(&translated.source));
            let regex = regex.map_err(|e| format!("error parsing regexp: {}", e.message))?;
            self.regexes.insert(source.into(), regex);
        }
        self.regexes.get(source).ok_or_else(String::new)
    }
}

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn new(text: &str) -> Result<Template, String> {
        parse::parse(text, Dialect::Lines)
    }

    /// Compiles a template of alerts, which has the functions of Prometheus beside those of lines.
    ///
    /// # Errors
    /// As for [`Template::new`].
    pub fn of_alerts(text: &str) -> Result<Template, String> {
        parse::parse(text, Dialect::Alerts)
    }

    /// The field that the template is, if it is nothing else: `{{.message}}`.
    pub fn only_field(&self) -> Option<&str> {
        parse::only_field(&self.root)
    }

    /// Appends the filled template.
    ///
    /// # Errors
    /// What could not be done; a part may have been appended.
    pub fn fill(
        &self,
        data: &dyn Data,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        run::run(self, data, None, scratch, out)
    }

    /// Appends the filled template of an alert.
    ///
    /// # Errors
    /// As for [`Template::fill`].
    pub fn fill_alert(
        &self,
        data: &AlertData<'_>,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        run::run(self, data, Some(data), scratch, out)
    }
}
