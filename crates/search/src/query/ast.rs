//! The filter as a tree, and its canonical text.
//!
//! Invariant: the text of a filter built by [`Filter::and`], [`Filter::or`] and the parser parses
//! back to an equal filter.

use std::fmt::{self, Write};

use logpond_record::Severity;

use crate::field::Target;
use crate::label;

/// Which records are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Every record.
    All,
    /// Records that all of these want.
    And(Vec<Filter>),
    /// Records that at least one of these wants.
    Or(Vec<Filter>),
    /// Records that this does not want.
    Not(Box<Filter>),
    /// Records whose line or decoded message holds this.
    Text(Pattern),
    /// Records with a field like this.
    Field(FieldFilter),
}

/// What is looked for in text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// These bytes, anywhere. No bytes are in every text.
    Substring {
        /// The bytes.
        text: Box<[u8]>,
        /// Whether `a` finds `A` too; Unicode's simple folding where the bytes are UTF-8.
        case_insensitive: bool,
    },
    /// A match of this regular expression, anywhere.
    Regex {
        /// The expression. Invariant: slashes in it are not escaped, and it is not empty.
        source: Box<str>,
        /// Whether `a` finds `A` too.
        case_insensitive: bool,
    },
}

/// A condition on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFilter {
    /// The field's name, or a reserved one such as `_msg`.
    pub name: Box<str>,
    /// What must hold for its value. No condition holds for a missing field.
    pub test: FieldTest,
}

/// What must hold for a field's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldTest {
    /// There is one, be it null or empty.
    Exists,
    /// It compares like this with a value given as text.
    Compare(Comparison, Box<[u8]>),
    /// Its text holds this.
    Contains(Pattern),
}

/// How two values compare. "Unequal" is the negation of `Equal`, see [`Filter::Not`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same number if both are numbers, otherwise the same text.
    Equal,
    /// A smaller number.
    Less,
    /// A smaller number or the same.
    LessOrEqual,
    /// A larger number.
    Greater,
    /// A larger number or the same.
    GreaterOrEqual,
}

impl Comparison {
    /// The operator as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }

    /// Whether two values in this order satisfy the comparison.
    pub fn accepts(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Filter {
    /// All of these: nested conjunctions become one, `All` disappears, one alone stays itself.
    pub fn and(filters: impl IntoIterator<Item = Filter>) -> Filter {
        let mut parts = Vec::new();
        for filter in filters {
            match filter {
                Filter::All => {}
                Filter::And(inner) => parts.extend(inner),
                other => parts.push(other),
            }
        }
        match parts.len() {
            0 => Filter::All,
            1 => parts.remove(0),
            _ => Filter::And(parts),
        }
    }

    /// Any of these: nested disjunctions become one, `All` swallows the rest, one alone stays
    /// itself. None at all is the filter that wants no record.
    pub fn or(filters: impl IntoIterator<Item = Filter>) -> Filter {
        let mut parts = Vec::new();
        for filter in filters {
            match filter {
                Filter::All => return Filter::All,
                Filter::Or(inner) => parts.extend(inner),
                other => parts.push(other),
            }
        }
        match parts.len() {
            0 => Filter::negate(Filter::All),
            1 => parts.remove(0),
            _ => Filter::Or(parts),
        }
    }

    /// Whether a condition looks at a field, by its name or as a label.
    pub fn looks_at_fields(&self) -> bool {
        match self {
            Filter::All | Filter::Text(_) => false,
            Filter::And(parts) | Filter::Or(parts) => parts.iter().any(Filter::looks_at_fields),
            Filter::Not(inner) => inner.looks_at_fields(),
            Filter::Field(FieldFilter { name, .. }) => Target::new(name).is_of_fields(),
        }
    }

    /// The opposite.
    pub fn negate(filter: Filter) -> Filter {
        Filter::Not(Box::new(filter))
    }

    /// Lines or messages that hold these bytes; everything if there are none.
    pub fn substring(text: &[u8], case_insensitive: bool) -> Filter {
        if text.is_empty() {
            return Filter::All;
        }
        Filter::Text(Pattern::substring(text, case_insensitive))
    }

    /// Lines or messages that this regular expression matches.
    pub fn regex(source: &str, case_insensitive: bool) -> Filter {
        Filter::Text(Pattern::regex(source, case_insensitive))
    }

    /// A condition on a field.
    pub fn field(name: &str, test: FieldTest) -> Filter {
        Filter::Field(FieldFilter {
            name: name.into(),
            test,
        })
    }
}

impl Pattern {
    /// These bytes.
    pub fn substring(text: &[u8], case_insensitive: bool) -> Pattern {
        Pattern::Substring {
            text: text.into(),
            case_insensitive,
        }
    }

    /// This regular expression; `\/` in it becomes `/`, and an empty one `(?:)`, which mean the same.
    pub fn regex(source: &str, case_insensitive: bool) -> Pattern {
        // An empty one between slashes would read as text.
        let source = if source.is_empty() { "(?:)" } else { source };
        Pattern::Regex {
            source: unescape_slashes(source).into(),
            case_insensitive,
        }
    }

    /// True if it may be found in an empty text.
    pub fn may_match_nothing(&self) -> bool {
        match self {
            Pattern::Substring { text, .. } => text.is_empty(),
            Pattern::Regex { source, .. } => {
                let parsed = regex_syntax::Parser::new().parse(source);
                parsed.is_ok_and(|hir| hir.properties().minimum_len() == Some(0))
            }
        }
    }
}

/// Replaces `\/` by `/` without touching other escapes.
fn unescape_slashes(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut chars = source.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('/') => out.push('/'),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

impl Filter {
    /// True if it is written as one condition on a field.
    pub(crate) fn is_condition(&self) -> bool {
        matches!(self, Filter::Field(_)) || self.as_level().is_some()
    }

    /// How a condition on `level` is written that means this: see [`label::SEVERITY`].
    fn as_level(&self) -> Option<(Comparison, &[u8])> {
        let parts = match self {
            Filter::Or(parts) => &parts[..],
            other => std::slice::from_ref(other),
        };
        level_of(parts)
    }
}

/// The condition on `level` that these mean together, see [`Filter::as_level`].
fn level_of(parts: &[Filter]) -> Option<(Comparison, &[u8])> {
    let compared = |field: &FieldFilter, name: &str| match &field.test {
        FieldTest::Compare(comparison, word) if &*field.name == name => {
            let is_word = Severity::of_word(word).is_some();
            is_word.then(|| (*comparison, word.clone()))
        }
        _ => None,
    };
    let (field, of_text) = match parts {
        [Filter::Field(field)] => (field, None),
        [Filter::Field(field), Filter::Field(of_text)] => (field, Some(of_text)),
        _ => return None,
    };
    let severity = compared(field, label::SEVERITY)?;
    let of_text = of_text.map(|field| compared(field, "level"));
    let is_written = match of_text {
        None => severity.0 != Comparison::Equal,
        Some(text) => severity.0 == Comparison::Equal && text.as_ref() == Some(&severity),
    };
    match &field.test {
        FieldTest::Compare(comparison, word) if is_written => Some((*comparison, word)),
        _ => None,
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((comparison, word)) = self.as_level() {
            return write_level("", comparison, word, f);
        }
        match self {
            Filter::All => f.write_char('*'),
            Filter::And(parts) => write_joined(parts, " AND ", f),
            // An empty disjunction wants nothing.
            Filter::Or(parts) if parts.is_empty() => f.write_str("NOT *"),
            Filter::Or(parts) => write_choices(parts, f),
            Filter::Not(inner) => write_negated(inner, f),
            Filter::Text(pattern) => write!(f, "{pattern}"),
            Filter::Field(field) => field.write(false, f),
        }
    }
}

fn write_joined(parts: &[Filter], joint: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if parts.is_empty() {
        return f.write_char('*');
    }
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(joint)?;
        }
        write_operand(part, f)?;
    }
    Ok(())
}

/// Writes choices; two of them may be one condition on `level`.
fn write_choices(mut parts: &[Filter], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut joint = "";
    while let Some((first, rest)) = parts.split_first() {
        f.write_str(joint)?;
        joint = " OR ";
        match parts.get(..2).and_then(level_of) {
            Some((comparison, word)) => {
                write_level("", comparison, word, f)?;
                parts = &parts[2..];
            }
            None => {
                write_operand(first, f)?;
                parts = rest;
            }
        }
    }
    Ok(())
}

fn write_level(
    bang: &str,
    comparison: Comparison,
    word: &[u8],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(f, "level{bang}{}", comparison.as_str())?;
    write_value(word, f)
}

fn write_value(value: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if is_plain_value(value) {
        f.write_str(&String::from_utf8_lossy(value))
    } else {
        write_quoted(value, f)
    }
}

fn write_operand(filter: &Filter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match filter {
        _ if filter.as_level().is_some() => write!(f, "{filter}"),
        Filter::And(_) | Filter::Or(_) => write!(f, "({filter})"),
        _ => write!(f, "{filter}"),
    }
}

fn write_negated(inner: &Filter, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some((Comparison::Equal, word)) = inner.as_level() {
        return write_level("!", Comparison::Equal, word, f);
    }
    match inner {
        Filter::Field(field) if field.has_negated_form() => field.write(true, f),
        _ => {
            f.write_str("NOT ")?;
            write_operand(inner, f)
        }
    }
}

impl FieldFilter {
    /// Whether it would mean the severity that any source says if its name were not in quotes.
    pub(crate) fn may_mean_severity(&self) -> bool {
        match &self.test {
            FieldTest::Compare(_, word) => {
                &*self.name == "level" && Severity::of_word(word).is_some()
            }
            FieldTest::Exists | FieldTest::Contains(_) => false,
        }
    }

    fn has_negated_form(&self) -> bool {
        matches!(
            self.test,
            FieldTest::Compare(Comparison::Equal, _) | FieldTest::Contains(Pattern::Regex { .. })
        )
    }

    fn write(&self, negated: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_bare_name(&self.name) && !self.may_mean_severity() {
            f.write_str(&self.name)?;
        } else {
            write_quoted(self.name.as_bytes(), f)?;
        }
        let bang = if negated { "!" } else { "" };
        match &self.test {
            FieldTest::Exists => f.write_str(":*"),
            FieldTest::Compare(comparison, value) => {
                write!(f, "{bang}{}", comparison.as_str())?;
                write_value(value, f)
            }
            FieldTest::Contains(pattern @ Pattern::Substring { .. }) => write!(f, ":{pattern}"),
            FieldTest::Contains(pattern @ Pattern::Regex { .. }) => write!(f, "{bang}~{pattern}"),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Substring {
                text,
                case_insensitive,
            } => {
                if *case_insensitive {
                    f.write_char('i')?;
                }
                write_quoted(text, f)
            }
            Pattern::Regex {
                source,
                case_insensitive,
            } => {
                f.write_char('/')?;
                write_with_escaped_slashes(source, f)?;
                f.write_str(if *case_insensitive { "/i" } else { "/" })
            }
        }
    }
}

fn write_with_escaped_slashes(source: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut chars = source.chars();
    while let Some(c) = chars.next() {
        match c {
            '/' => f.write_str("\\/")?,
            '\\' => {
                f.write_char('\\')?;
                // What follows a backslash is escaped already.
                chars.next().map_or(Ok(()), |next| f.write_char(next))?;
            }
            other => f.write_char(other)?,
        }
    }
    Ok(())
}

/// Writes a quoted string: what is not printable or not UTF-8 becomes `\xNN`.
fn write_quoted(text: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                c if c.is_ascii_control() => write!(f, "\\x{:02x}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        for byte in chunk.invalid() {
            write!(f, "\\x{byte:02x}")?;
        }
    }
    f.write_char('"')
}

/// Whether a name needs no quotes: it starts like a word and does not end like an arrow (`->`).
pub(crate) fn is_bare_name(name: &str) -> bool {
    let Some(first) = name.bytes().next() else {
        return false;
    };
    is_name_start(first) && name.bytes().all(is_name_byte) && !name.ends_with('-')
}

/// Whether a bare name may start with this byte.
pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'@') || byte >= 0x80
}

/// Whether a bare name may hold this byte.
pub(super) fn is_name_byte(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || matches!(byte, b'.' | b'-')
}

fn is_plain_value(value: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_./:+@-".contains(b);
    !value.is_empty() && value.iter().all(plain)
}
