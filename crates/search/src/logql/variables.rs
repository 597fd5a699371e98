//! Variables in queries: `$name` and `${name}`, as dashboards have them.
//!
//! A value is put in so that it stays one value: within quotes what would end them is escaped. Several
//! values become an expression of which each is one choice. `$$` is a dollar sign where a name
//! follows. Within templates (`{{ … }}`) only names that are known are variables, since templates have
//! variables of their own.

use std::borrow::Cow;
use std::fmt;

use super::{QUERY_BYTES_MAX, write_duration};

/// The longest query that variables may make: what LogQL takes.
const EXPANDED_BYTES_MAX: usize = QUERY_BYTES_MAX;

/// What a variable is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    One(String),
    /// Choices, for matching by an expression.
    Any(Vec<String>),
}

/// The handling of unknown names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownPolicy {
    /// They are an error.
    Refused,
    /// They are text.
    Kept,
}

/// A variable cannot be put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableError {
    /// Nobody says what it is.
    Unknown(String),
    /// Its value has a backtick and should stand between some.
    Backtick(String),
    /// `${` without its end, or `${name:format}` with a format that is none.
    Malformed(String),
    /// The query is too long with it.
    TooLong,
}

impl fmt::Display for VariableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VariableError::Unknown(name) => write!(
                f,
                "nothing says what ${name} is: give it a default among the variables, or write $${name} \
                 if the dollar sign is meant"
            ),
            VariableError::Backtick(name) => write!(
                f,
                "the value of ${name} has a backtick, and stands between backticks in the query; write \
                 it in double quotes there"
            ),
            VariableError::Malformed(text) => write!(
                f,
                "'{text}' is no variable: expected ${{name}} or ${{name:regex}}"
            ),
            VariableError::TooLong => write!(
                f,
                "with its variables the query is longer than {EXPANDED_BYTES_MAX} bytes"
            ),
        }
    }
}

impl std::error::Error for VariableError {}

/// The times that a query is asked for, as variables.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The first instant, in milliseconds since the epoch.
    pub from_ms: i64,
    /// The last one.
    pub to_ms: i64,
    /// The time between two points, in nanoseconds.
    pub interval_ns: i64,
}

impl Default for Window {
    /// A minute in steps of a second.
    fn default() -> Window {
        Window {
            from_ms: 0,
            to_ms: 60_000,
            interval_ns: 1_000_000_000,
        }
    }
}

impl Window {
    /// The value of a variable that Grafana has of itself.
    pub fn value(&self, name: &str) -> Option<Value> {
        let range_ms = self.to_ms.saturating_sub(self.from_ms).max(1);
        let text = match name {
            "__interval" | "__auto" | "__rate_interval" => write_duration(self.interval_ns.max(1)),
            "__interval_ms" => (self.interval_ns / 1_000_000).max(1).to_string(),
            "__range" => write_duration(range_ms.saturating_mul(1_000_000)),
            "__range_ms" => range_ms.to_string(),
            "__range_s" => (range_ms / 1000).max(1).to_string(),
            "__from" => self.from_ms.to_string(),
            "__to" => self.to_ms.to_string(),
            _ => return None,
        };
        Some(Value::One(text))
    }
}

/// Whether a variable may be called so.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && name_bytes(text) == text.len()
}

/// Bytes of the name at the start of a text.
fn name_bytes(text: &str) -> usize {
    let fits = |(at, byte): &(usize, u8)| match byte {
        b'0'..=b'9' => *at > 0,
        byte => byte.is_ascii_alphabetic() || *byte == b'_',
    };
    text.bytes().enumerate().take_while(fits).count()
}

/// Where in a query something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Plain,
    /// In double quotes; whether of a template.
    Quotes(bool),
    /// In backticks; whether of a template.
    Backticks(bool),
}

impl Place {
    fn is_template(self) -> bool {
        matches!(self, Place::Quotes(true) | Place::Backticks(true))
    }
}

/// Puts the values of variables into a query.
///
/// # Errors
/// See [`VariableError`].
pub fn expand(
    query: &str,
    unknown: UnknownPolicy,
    value_of: impl Fn(&str) -> Option<Value>,
) -> Result<String, VariableError> {
    let mut out = String::with_capacity(query.len());
    let mut rest = query;
    let mut place = Place::Plain;
    while let Some(at) = rest.find(['$', '"', '`', '\\', '#']) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let taken = match (after.as_bytes()[0], place) {
            (b'$', place) => variable(after, place, unknown, &value_of, &mut out)?,
            (sign, _) => {
                let (taken, next) = pass(after, sign, place);
                out.push_str(&after[..taken]);
                place = next;
                taken
            }
        };
        rest = &after[taken..];
        if out.len() > EXPANDED_BYTES_MAX {
            return Err(VariableError::TooLong);
        }
    }
    out.push_str(rest);
    if out.len() > EXPANDED_BYTES_MAX {
        Err(VariableError::TooLong)
    } else {
        Ok(out)
    }
}

/// Passes over a sign that may begin or end quotes; gives how many bytes that were, and what follows.
fn pass(text: &str, sign: u8, place: Place) -> (usize, Place) {
    let behind = &text[1..];
    match (sign, place) {
        (b'"', Place::Plain) => (1, Place::Quotes(is_template(behind, b'"'))),
        (b'`', Place::Plain) => (1, Place::Backticks(is_template(behind, b'`'))),
        (b'"', Place::Quotes(_)) | (b'`', Place::Backticks(_)) => (1, Place::Plain),
        // What is escaped ends nothing.
        (b'\\', Place::Quotes(_)) => (1 + behind.chars().next().map_or(0, char::len_utf8), place),
        (b'#', Place::Plain) => (text.find('\n').unwrap_or(text.len()), place),
        _ => (1, place),
    }
}

/// Whether the text up to this quote is a template.
fn is_template(text: &str, quote: u8) -> bool {
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == quote && !is_escaped;
        is_escaped = byte == b'\\' && quote == b'"' && !is_escaped;
        ends
    });
    text[..end.unwrap_or(text.len())].contains("{{")
}

/// Writes what a dollar sign and what follows it mean; gives how many bytes that were.
fn variable(
    text: &str,
    place: Place,
    unknown: UnknownPolicy,
    value_of: &impl Fn(&str) -> Option<Value>,
    out: &mut String,
) -> Result<usize, VariableError> {
    let behind = &text[1..];
    let literal = |out: &mut String| {
        out.push('$');
        Ok(1)
    };
    if let Some(escaped) = behind.strip_prefix('$')
        && (escaped.starts_with('{') || name_bytes(escaped) > 0)
    {
        out.push('$');
        // Up to the next sign, so that the name is not read again.
        let bytes = if escaped.starts_with('{') {
            1
        } else {
            name_bytes(escaped)
        };
        out.push_str(&escaped[..bytes]);
        return Ok(2 + bytes);
    }
    let (name, format, taken) = match behind.strip_prefix('{') {
        Some(inner) if name_bytes(inner) > 0 => {
            let bytes = name_bytes(inner);
            let end = inner.find('}');
            let format = end.and_then(|end| match &inner[bytes..end] {
                "" => Some(""),
                format => format.strip_prefix(':'),
            });
            match (end, format) {
                (Some(end), Some(format)) => (&inner[..bytes], format, end + 3),
                _ => {
                    let shown: String = text.chars().take(24).collect();
                    return Err(VariableError::Malformed(shown));
                }
            }
        }
        Some(_) => return literal(out),
        None => match name_bytes(behind) {
            0 => return literal(out),
            bytes => (&behind[..bytes], "", bytes + 1),
        },
    };
    let Some(value) = value_of(name) else {
        if unknown == UnknownPolicy::Kept || place.is_template() {
            out.push_str(&text[..taken]);
            return Ok(taken);
        }
        return Err(VariableError::Unknown(name.to_owned()));
    };
    let value = match (value, format) {
        (Value::One(text), "" | "raw" | "text") => text,
        (Value::One(text), "regex") => escape_regex(&text).into_owned(),
        (Value::Any(texts), "" | "regex") => choices(&texts),
        (Value::Any(texts), "raw" | "text" | "csv") => texts.join(","),
        (Value::Any(texts), "pipe") => texts.join("|"),
        (Value::One(text), "csv" | "pipe") => text,
        _ => return Err(VariableError::Malformed(text[..taken].to_owned())),
    };
    out.push_str(&quoted(name, &value, place)?);
    Ok(taken)
}

/// A value as it stands there.
fn quoted<'v>(name: &str, value: &'v str, place: Place) -> Result<Cow<'v, str>, VariableError> {
    match place {
        Place::Plain => Ok(Cow::Borrowed(value)),
        Place::Backticks(_) if value.contains('`') => Err(VariableError::Backtick(name.to_owned())),
        Place::Backticks(_) => Ok(Cow::Borrowed(value)),
        Place::Quotes(_) => {
            let mut text = String::with_capacity(value.len());
            for sign in value.chars() {
                match sign {
                    '"' => text.push_str("\\\""),
                    '\\' => text.push_str("\\\\"),
                    '\n' => text.push_str("\\n"),
                    '\r' => text.push_str("\\r"),
                    other => text.push(other),
                }
            }
            Ok(Cow::Owned(text))
        }
    }
}

/// An expression that matches each of these.
fn choices(texts: &[String]) -> String {
    let escaped: Vec<_> = texts.iter().map(|text| escape_regex(text)).collect();
    match &escaped[..] {
        [one] => one.to_string(),
        several => format!("({})", several.join("|")),
    }
}

/// A regular expression that matches this text only.
pub fn escape_regex(text: &str) -> Cow<'_, str> {
    const SIGNS: &str = r"\.+*?()|[]{}^$";
    if !text.contains(|sign| SIGNS.contains(sign)) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for sign in text.chars() {
        if SIGNS.contains(sign) {
            escaped.push('\\');
        }
        escaped.push(sign);
    }
    Cow::Owned(escaped)
}

/// Puts a value into a query, both any text, and checks what must hold: it ends, what is no variable stays
/// as it is, and a value in quotes stays one value. An entry point for fuzzing.
///
/// # Panics
///
/// If one of these does not hold.
pub fn fuzz_variables(data: &[u8]) {
    const VALUE_BYTES_MAX: usize = EXPANDED_BYTES_MAX / 4;
    let text = String::from_utf8_lossy(data);
    let (value, query) = text.split_once('\n').unwrap_or((&text, ""));
    let one = |name: &str| (name == "v").then(|| Value::One(value.to_owned()));
    let any = |name: &str| (name == "v").then(|| Value::Any(vec![value.to_owned(), String::new()]));
    for unknown in [UnknownPolicy::Kept, UnknownPolicy::Refused] {
        // It may be refused, but it ends.
        let _ = expand(query, unknown, one);
        let _ = expand(query, unknown, any);
    }
    if !query.contains("$$") && !query.contains("${") && query.len() <= EXPANDED_BYTES_MAX {
        let kept = expand(query, UnknownPolicy::Kept, |_| None);
        assert_eq!(kept.as_deref(), Ok(query));
    }
    if value.len() <= VALUE_BYTES_MAX {
        let expanded = expand("{a=\"$v\"}", UnknownPolicy::Refused, one).unwrap_or_default();
        let matchers = super::parse_matchers(&expanded).unwrap_or_default();
        let values: Vec<&str> = matchers.iter().map(|matcher| &*matcher.value).collect();
        assert_eq!(values, [value]);
        // An expression may be too large to be compiled, but it is never two.
        let expanded = expand("{a=~\"$v\"}", UnknownPolicy::Refused, any).unwrap_or_default();
        if let Ok(matchers) = super::parse_matchers(&expanded) {
            assert_eq!(matchers.len(), 1, "{expanded}");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(name: &str) -> Option<Value> {
        Some(match name {
            "host" => Value::One("a.example".to_owned()),
            "quote" => Value::One("a\"b\\c\nd".to_owned()),
            "tick" => Value::One("a`b".to_owned()),
            "none" => Value::One(String::new()),
            "one" => Value::Any(vec!["a.b".to_owned()]),
            "two" => Value::Any(vec!["a.b".to_owned(), "c".to_owned()]),
            "x" => Value::One("X".to_owned()),
            name => return Window::default().value(name),
        })
    }

    #[test]
    fn values_stay_what_they_are() {
        let table = [
            (r#"{host="$host"}"#, Ok(r#"{host="a.example"}"#)),
            (r#"{host=~"${host:regex}"}"#, Ok(r#"{host=~"a\\.example"}"#)),
            ("{host=~`${host:regex}`}", Ok(r"{host=~`a\.example`}")),
            (r#"{a="$quote"}"#, Ok(r#"{a="a\"b\\c\nd"}"#)),
            (
                r#"{a=~"$two|$one|$none"}"#,
                Ok(r#"{a=~"(a\\.b|c)|a\\.b|"}"#),
            ),
            ("rate({}[$__interval])", Ok("rate({}[1s])")),
            ("rate({}[$__range])", Ok("rate({}[1m])")),
            ("$__range_s $__range_ms $__interval_ms", Ok("60 60000 1000")),
            // Ends of expressions and groups are no variables.
            (r#"{a=~"b$"} |~ `^c$`"#, Ok(r#"{a=~"b$"} |~ `^c$`"#)),
            (
                r#"label_replace(x, "a", "$1-${2}", "b", "(.*)")"#,
                Ok(r#"label_replace(x, "a", "$1-${2}", "b", "(.*)")"#),
            ),
            (r#""$$host $${host} $$""#, Ok(r#""$host ${host} $$""#)),
            (r#"{a="\"$x"}"#, Ok(r#"{a="\"X"}"#)),
            // Templates have variables of their own.
            (
                "| line_format `{{ $y := .a }}$x`",
                Ok("| line_format `{{ $y := .a }}X`"),
            ),
            (
                "{} # about $nobody and \"\n| json",
                Ok("{} # about $nobody and \"\n| json"),
            ),
            (
                "{a=`$tick`}",
                Err(VariableError::Backtick("tick".to_owned())),
            ),
            (
                r#"{a="$nobody"}"#,
                Err(VariableError::Unknown("nobody".to_owned())),
            ),
            ("${host", Err(VariableError::Malformed("${host".to_owned()))),
            (
                "${host:date}",
                Err(VariableError::Malformed("${host:date}".to_owned())),
            ),
        ];
        for (query, expected) in table {
            let found = expand(query, UnknownPolicy::Refused, values);
            assert_eq!(found.as_deref(), expected.as_ref().copied(), "{query}");
        }
        let kept = expand(r#"{a="$nobody ${nobody}"}"#, UnknownPolicy::Kept, values);
        assert_eq!(kept.unwrap(), r#"{a="$nobody ${nobody}"}"#);
        let long = "$x".repeat(EXPANDED_BYTES_MAX + 1);
        assert_eq!(
            expand(&long, UnknownPolicy::Kept, values),
            Err(VariableError::TooLong)
        );
    }

    proptest! {
        #[test]
        fn values_never_leave_their_quotes(
            value in any::<String>(),
            query in "[$`\"\\\\{}:#av-z\u{e4} \n]{0,40}",
        ) {
            fuzz_variables(format!("{value}\n{query}").as_bytes());
        }
    }
}
