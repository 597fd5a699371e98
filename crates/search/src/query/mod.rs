//! The query language: what HTTP's `q` and the command line's filters say.
//!
//! ```text
//! connection refused                    bare words: one substring, spaces included
//! "exact \"text\"\n\x00"                a substring with escapes
//! i"text"                               the same, upper and lower case alike
//! /time(d )?out/  /error/i              regular expression; slashes in it are written \/
//! status=500  host!=a  status>=500      comparisons; != also holds where the field is missing
//! until>=2026-11-21T10:00:00Z           times; a text without an offset is in UTC
//! path~/^\/api/  path!~/x/  agent:curl  a field's text matches, does not match, contains
//! user:*                                the field exists
//! a AND b   a OR b   NOT a   (a OR b)   upper case; terms side by side are joined by AND
//! *                                     everything, as is no text at all
//! ```
//!
//! NOT binds tightest, then AND, then OR. Operators stand without spaces between name and value.
//! A bare word is text, not a condition, where it only looks like one: `12:30`, `std::vec`,
//! `error: x`, `a->b`, `http://x`, `C:\x`. A word that starts with a slash is a regular expression
//! only if the next slash ends it, so `/var/log` is text. Parentheses group where a word could
//! start; those that a word opens itself belong to it (`f(a, b)`).
//!
//! Reserved names: `_time` and `_received` (compared as instants), `_id`, `_msg`, `_raw` (the
//! line), `_time_source`. They take precedence over fields of the same name. `_logpond_label.NAME` is the
//! field that LogQL's label of this name means, see [`crate::label`]; `_logpond_entry.NAME` is what the entry of a
//! journal that the record is shown as has under this name, see [`crate::journal::names`].

mod ast;
mod parse;
mod quoted;
mod rule_results;
mod syntax_error;

pub(crate) use ast::is_bare_name;
pub use ast::{Comparison, FieldFilter, FieldTest, Filter, Pattern};
pub(crate) use parse::by_severity;
pub use parse::{QUERY_BYTES_MAX, parse, parse_condition};
pub use rule_results::{RECORD_FIELD, RULE_FIELD};
pub use syntax_error::SyntaxError;

/// Reads any bytes as a query and checks what must hold for every one: parsing ends, the printed
/// form of a filter parses back to it, and a parsed filter compiles. An entry point for fuzzing.
///
/// # Panics
///
/// If one of these does not hold.
pub fn fuzz_query(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse(&text) {
        Ok(filter) => {
            let printed = filter.to_string();
            // Escapes make the printed form longer than the limit allows for a query.
            if printed.len() <= QUERY_BYTES_MAX {
                assert_eq!(parse(&printed).as_ref(), Ok(&filter), "{printed}");
            }
            assert!(crate::Matcher::new(&filter).is_ok(), "{printed}");
        }
        Err(error) => {
            assert!(error.start <= error.end && error.end <= text.len());
            assert!(text.is_char_boundary(error.start) && text.is_char_boundary(error.end));
        }
    }
}

#[cfg(test)]
mod tests;
