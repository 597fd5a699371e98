//! Expressions for the elements of a list, which a record keeps as the JSON text that was sent.
//!
//! The text is as its writer wrote it: with white space or without, and with any escapes.

use std::fmt::Write;

/// A string of JSON.
const STRING: &str = r#""(?:[^"\\]|\\.)*""#;

/// The expression for a text as JSON writes it, in quotes, with the escapes that writers choose.
pub fn quoted(text: &str) -> String {
    let mut expression = String::from("\"");
    text.chars().for_each(|c| push(&mut expression, c));
    expression.push('"');
    expression
}

/// The expression for a character within a string of JSON.
fn push(expression: &mut String, c: char) {
    let short = match c {
        '"' | '\\' | '/' => Some(c),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        '\u{8}' => Some('b'),
        '\u{c}' => Some('f'),
        _ => None,
    };
    let is_escaped_always = matches!(c, '"' | '\\') || c < ' ';
    // What writers of HTML escape, and those who write ASCII only.
    let is_escaped_by_some = c == '/' || "<>&'\u{7f}".contains(c) || !c.is_ascii();
    if !is_escaped_always && !is_escaped_by_some {
        expression.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4])));
        return;
    }
    expression.push_str("(?:");
    if !is_escaped_always {
        expression.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4])));
        expression.push('|');
    }
    if let Some(short) = short {
        expression.push_str(r"\\");
        expression.push_str(&regex_syntax::escape(short.encode_utf8(&mut [0; 4])));
        expression.push('|');
    }
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = write!(expression, r"\\u(?i:{unit:04x})");
    }
    expression.push(')');
}

/// Digits that a number has when it is written without an exponent. Writers of JSON use one for longer numbers.
const PLAIN_DIGITS_MAX: usize = 40;

/// The expression for a number as writers of JSON spell it: `5`, `5.0` and `5e0` are one number, as are `1000` and
/// `1E+3`. A text that is not such a number is itself.
pub fn number(text: &str) -> String {
    spellings(text).unwrap_or_else(|| regex_syntax::escape(text))
}

fn spellings(text: &str) -> Option<String> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", text),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    if whole.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    // The value is the digits behind a point, times ten to the power of this.
    let leading_zeros = digits.len() - significant.len();
    let point = exponent.checked_add(i64::try_from(whole.len()).ok()?)?;
    let point = point.checked_sub(i64::try_from(leading_zeros).ok()?)?;
    let significant = significant.trim_end_matches('0');
    if significant.is_empty() {
        return Some(r"-?0(?:\.0+)?(?:[eE][+-]?[0-9]+)?".to_owned());
    }
    let (first, rest) = significant.split_at(1);
    let power = point.checked_sub(1)?;
    let power = match power {
        0 => "[+-]?0+".to_owned(),
        1.. => format!(r"\+?0*{power}"),
        _ => format!("-0*{}", power.unsigned_abs()),
    };
    let rest = fraction_of(rest);
    let scientific = format!("{first}{rest}[eE]{power}");
    let plain = plain(significant, point).map(|plain| format!("{plain}(?:[eE][+-]?0+)?|"));
    let plain = plain.unwrap_or_default();
    Some(format!("{sign}(?:{plain}{scientific})"))
}

/// A number without an exponent, if it is short.
fn plain(significant: &str, point: i64) -> Option<String> {
    if point <= 0 {
        let zeros = usize::try_from(point.unsigned_abs()).ok()?;
        let fits = zeros + significant.len() <= PLAIN_DIGITS_MAX;
        return fits.then(|| format!(r"0\.{}{significant}0*", "0".repeat(zeros)));
    }
    let whole = usize::try_from(point).ok()?;
    if whole.max(significant.len()) > PLAIN_DIGITS_MAX {
        return None;
    }
    let zeros = whole.saturating_sub(significant.len());
    let (before, behind) = significant.split_at(whole.min(significant.len()));
    Some(format!(
        "{before}{}{}",
        "0".repeat(zeros),
        fraction_of(behind)
    ))
}

/// Digits behind a point. More zeros may follow.
fn fraction_of(digits: &str) -> String {
    match digits {
        "" => r"(?:\.0+)?".to_owned(),
        digits => format!(r"\.{digits}0*"),
    }
}

/// The expression for a list with an element that `element` matches as a whole. Elements of lists within it count;
/// those of objects do not.
pub fn list_with(element: &str) -> String {
    let object = format!(r#"\{{(?:{STRING}|[^"{{}}])*\}}"#);
    let before = format!(r#"(?:(?:{STRING}|{object}|[^"{{}}])*[,\[])?"#);
    format!(r"^\[{before}\s*(?:{element})\s*[,\]]")
}

#[cfg(test)]
mod tests {
    use regex_automata::meta::Regex;

    use super::*;

    #[test]
    fn spellings_of_a_number_are_one() {
        let same: [&[&str]; 7] = [
            &["5", "5.0", "5.00", "5e0", "5E+0", "5.0e-00"],
            &["1000", "1e3", "1E+3", "1.0e03", "1000.0"],
            &["0.1", "0.10", "1e-1", "1.0E-01"],
            &["-12.5", "-12.50", "-1.25e1"],
            &["0", "-0", "0.0", "-0.0", "0e5"],
            &[
                "18446744073709551615",
                "18446744073709551615.0",
                "1.8446744073709551615e19",
            ],
            &["1e300", "1.0E+300"],
        ];
        for (at, numbers) in same.iter().enumerate() {
            for number in *numbers {
                let expression = format!("^(?:{})$", super::number(number));
                let expression = Regex::new(&expression).unwrap();
                for (other_at, others) in same.iter().enumerate() {
                    for other in *others {
                        let is_same = expression.is_match(other);
                        assert_eq!(is_same, at == other_at, "{number} {other}");
                    }
                }
            }
        }
        assert_eq!(super::number(".5"), r"\.5");
    }

    #[test]
    fn elements_are_found_as_any_writer_writes_them() {
        let table = [
            (r#"["a","b"]"#, "b", true),
            (r#"[ "a" , "b" ]"#, "b", true),
            ("[\n  \"a\",\n  \"b\"\n]", "b", true),
            (r#"["a", "b"]"#, "c", false),
            (r#"["caf\u00e9"]"#, "café", true),
            (r#"["caf\u00E9"]"#, "café", true),
            (r#"["café"]"#, "café", true),
            (r#"["\ud83d\ude00!"]"#, "😀!", true),
            (r#"["a\/b"]"#, "a/b", true),
            (r#"["a/b"]"#, "a/b", true),
            (r#"["\u003ca\u003e"]"#, "<a>", true),
            (r#"["a\nb"]"#, "a\nb", true),
            (r#"["a\u000ab"]"#, "a\nb", true),
            (r#"["a\"b"]"#, "a\"b", true),
            (r#"["a\\b"]"#, "a\\b", true),
            (r#"["x, \"b\", y"]"#, "b", false),
            (r#"[["a"], [ "b" ]]"#, "b", true),
            (r#"[{"b": "b"}]"#, "b", false),
            (r#"[{"k": ["b"]}]"#, "b", false),
            (r#"[{"k": 1}, "b"]"#, "b", true),
        ];
        for (list, text, expected) in table {
            let regex = Regex::new(&list_with(&quoted(text))).unwrap();
            assert_eq!(regex.is_match(list.as_bytes()), expected, "{list} {text}");
        }
        let number = Regex::new(&list_with("20")).unwrap();
        for (list, expected) in [
            ("[1,20]", true),
            ("[ 20 ]", true),
            ("[1, 20, 3]", true),
            ("[120]", false),
            ("[20.5]", false),
            (r#"["1, 20, 3"]"#, false),
        ] {
            assert_eq!(number.is_match(list.as_bytes()), expected, "{list}");
        }
    }
}
