//! Regular expressions by where they stand: what of a text they must match, and whether `.` matches the end
//! of a line there, which a text may hold.

use super::go_regex::translate;
use crate::pattern::RegexError;
use crate::query::Pattern;

/// Where an expression stands that must match all of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a selector, or in what `drop` and `keep` choose: `.` matches all characters.
    Selector,
    /// In a condition on labels: `.` matches no end of a line, but for `.*` around texts.
    LabelFilter,
}

/// What finds an expression anywhere in a line.
///
/// # Errors
/// When it is none.
pub(crate) fn in_line(expression: &str) -> Result<Pattern, RegexError> {
    translate(expression).map(|translated| Pattern::regex(&translated.source, false))
}

/// What matches a label if an expression matches all of it.
///
/// # Errors
/// When it is none.
pub(crate) fn whole_label(expression: &str, place: Place) -> Result<Pattern, RegexError> {
    let translated = translate(expression)?.source;
    let flags = match place {
        Place::Selector => "s",
        Place::LabelFilter if asks_for_texts(expression) => "s",
        Place::LabelFilter => "",
    };
    Ok(Pattern::regex(&format!("^(?{flags}:{translated})$"), false))
}

/// Whether an expression is nothing but texts with anything before or behind, such as `.*timeout.*|.*refused`.
fn asks_for_texts(expression: &str) -> bool {
    let expression = expression.strip_prefix("(?i)").unwrap_or(expression);
    expression.split('|').all(|choice| {
        // Lazy or not is the same where all of a label is matched.
        let any = [".*?", ".*"];
        let behind = any.iter().find_map(|any| choice.strip_prefix(any));
        let behind = behind.unwrap_or(choice);
        let text = any.iter().find_map(|any| behind.strip_suffix(any));
        let text = text.unwrap_or(behind);
        choice == ".+" || !text.contains(|c| r"\.+*?()[]{}^$".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Finder;

    #[test]
    fn a_dot_matches_ends_of_lines_where_it_does_in_loki() {
        type Case = (&'static str, bool, bool, bool);
        // In a selector, in a condition on labels, in a line.
        let table: [Case; 18] = [
            ("c.d", true, false, false),
            ("c.+", true, false, false),
            ("c.*", true, true, true),
            (".*d", true, true, true),
            (".*c.*", true, true, true),
            ("(?i).*D.*", true, true, true),
            ("c.*|x.*", true, true, true),
            (".*", true, true, true),
            (".*?", true, true, true),
            (".*?c.*?", true, true, true),
            ("x|c.*?", true, true, true),
            ("c.*?d", true, false, false),
            (".+", true, true, true),
            ("c.*d", true, false, false),
            ("c(?s).*d", true, true, true),
            ("(?-s)c.d", false, false, false),
            ("c", false, false, true),
            ("c|.", false, false, true),
        ];
        for (written, selector, label, line) in table {
            let finds = |pattern: Pattern| Finder::new(&pattern).unwrap().is_match(b"c\nd");
            let places = [Place::Selector, Place::LabelFilter];
            let [in_selector, in_filter] =
                places.map(|at| finds(whole_label(written, at).unwrap()));
            let found = (in_selector, in_filter, finds(in_line(written).unwrap()));
            assert_eq!(found, (selector, label, line), "{written}");
        }
    }
}
