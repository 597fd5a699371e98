//! Lists: a field that has several values is found by each of them, as in Elasticsearch.
//!
//! A record keeps a list as its JSON text, so that an element is found there by a regular expression.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use logpond_search::query::{Comparison, FieldFilter, FieldTest, Pattern};
use logpond_search::{Filter, Number, elements};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::numbers::{self, canonical, number};

/// Any text within a string of JSON, for patterns.
pub(super) const ANY_TEXT: &str = r#"(?:[^"\\]|\\.)*"#;

/// Any character within a string of JSON, for patterns.
pub(super) const ANY_CHARACTER: &str = r#"(?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|.))"#;

/// Visits each value of a field, equal ones once: the elements of a list, or the value itself.
pub(super) fn each_value(text: Option<&[u8]>, visit: &mut dyn FnMut(&[u8])) {
    let Some(text) = text else { return };
    match elements(text) {
        None => visit(&canonical(text)),
        Some(elements) => {
            let elements = elements.iter().map(|element| canonical(element.as_bytes()));
            let elements: BTreeSet<Cow<'_, [u8]>> = elements.collect();
            elements.iter().for_each(|element| visit(element));
        }
    }
}

/// Visits each number of a field, equal ones as often as they are there: numbers of a list are not a set.
pub(super) fn each_number(text: Option<&[u8]>, visit: &mut dyn FnMut(f64)) {
    let Some(text) = text else { return };
    let mut visit = |text: &[u8]| {
        let number = Number::parse(text).map(|number| number.to_float());
        if let Some(number) = number.filter(|number| number.is_finite()) {
            visit(number);
        }
    };
    match elements(text) {
        None => visit(text),
        Some(elements) => elements.iter().for_each(|one| visit(one.as_bytes())),
    }
}

/// How many values a field has: all numbers of a list, and each other element once.
pub(super) fn values_count(text: &[u8]) -> u64 {
    let Some(elements) = elements(text) else {
        return 1;
    };
    let (numbers, others): (Vec<String>, Vec<String>) = elements
        .into_iter()
        .partition(|element| number(element).is_some());
    let others: BTreeSet<String> = others.into_iter().collect();
    (numbers.len() + others.len()) as u64
}

/// The elements of a list; those of lists within it, too.
fn elements(text: &[u8]) -> Option<Vec<String>> {
    if text.first() != Some(&b'[') || text.last() != Some(&b']') {
        return None;
    }
    let mut found = Vec::new();
    let mut rest = vec![std::str::from_utf8(text).ok()?];
    let mut is_outer = true;
    // What is within a list is shorter than it, so that this ends.
    while let Some(list) = rest.pop() {
        // Each element as it is written: as a float a large number would be another one.
        let elements: Result<Vec<&RawValue>, _> = serde_json::from_str(list);
        let elements = match elements {
            Err(_) if is_outer => return None,
            elements => elements.unwrap_or_default(),
        };
        is_outer = false;
        for element in elements.into_iter().map(RawValue::get) {
            match element.as_bytes() {
                [b'[', ..] => rest.push(element),
                b"null" => {}
                [b'-' | b'0'..=b'9', ..] => found.push(numbers::of_json(element)),
                [b'"', ..] => found.extend(serde_json::from_str::<String>(element)),
                _ => found.extend(serde_json::from_str::<Json>(element).map(|one| one.to_string())),
            }
        }
    }
    Some(found)
}

/// The same conditions, where a value of a field may also be an element of a list. Values of one field that are a
/// choice are looked for together. Recursion is bounded by the depth of JSON.
pub(super) fn with_elements(filter: &Filter) -> Filter {
    match filter {
        Filter::All | Filter::Text(_) => filter.clone(),
        Filter::And(parts) => Filter::and(parts.iter().map(with_elements)),
        Filter::Not(inner) => Filter::negate(with_elements(inner)),
        Filter::Or(parts) => any_of(parts),
        one @ Filter::Field(_) => any_of(std::slice::from_ref(one)),
    }
}

fn any_of(parts: &[Filter]) -> Filter {
    let mut values: BTreeMap<&str, Vec<&[u8]>> = BTreeMap::new();
    for part in parts {
        if let Some((name, value)) = value_of(part) {
            values.entry(name).or_default().push(value);
        }
    }
    let same = parts.iter().map(|part| match part {
        Filter::Field(_) => part.clone(),
        other => with_elements(other),
    });
    let in_lists = values.into_iter().filter_map(|(name, values)| {
        let sources: Option<Vec<String>> = values.into_iter().map(element).collect();
        Some(matching(name, &sources?.join("|"), false))
    });
    Filter::or(same.chain(in_lists))
}

/// The name and the value of a condition on the value of a field that may be a list.
fn value_of(filter: &Filter) -> Option<(&str, &[u8])> {
    match filter {
        Filter::Field(FieldFilter {
            name,
            test: FieldTest::Compare(Comparison::Equal, value),
        }) if !name.starts_with('_') => Some((name, value)),
        _ => None,
    }
}

/// The expression for an element.
fn element(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    let quoted = elements::quoted(text);
    Some(match text {
        "true" | "false" => format!("{quoted}|{text}"),
        number_text if Number::parse(value).is_some() => {
            format!("{quoted}|{}", elements::number(number_text))
        }
        _ => quoted,
    })
}

/// The expression for a text within a string of JSON.
pub(super) fn literal(text: &str) -> String {
    let quoted = elements::quoted(text);
    quoted
        .get(1..quoted.len() - 1)
        .unwrap_or_default()
        .to_owned()
}

/// Records whose field is a list with an element that an expression matches as a whole, as JSON writes it.
pub(super) fn matching(name: &str, source: &str, any_case: bool) -> Filter {
    let pattern = Pattern::regex(&elements::list_with(source), any_case);
    Filter::field(name, FieldTest::Contains(pattern))
}

#[cfg(test)]
mod tests {
    use logpond_record::Value;
    use logpond_search::FieldMatcher;

    use super::*;

    fn has(list: &str, value: &str) -> bool {
        let equal = FieldTest::Compare(Comparison::Equal, value.as_bytes().into());
        let filter = with_elements(&Filter::field("tags", equal));
        let Filter::Or(parts) = filter else {
            panic!("{filter:?}")
        };
        let mut holds = parts.iter().map(|part| match part {
            Filter::Field(field) => {
                let matcher = FieldMatcher::new(field).unwrap();
                matcher.matches_value(Some(&Value::Json(list.into())))
            }
            other => panic!("{other:?}"),
        });
        holds.any(|holds| holds)
    }

    #[test]
    fn elements_of_lists_are_values() {
        let table = [
            (r#"["a","b"]"#, "a", true),
            (r#"["a","b"]"#, "b", true),
            (r#"["a","b"]"#, "c", false),
            (r#"["ab"]"#, "a", false),
            (r#"["a\"b","c,d"]"#, "a\"b", true),
            (r#"["a\"b","c,d"]"#, "d", false),
            (r#"["c,\"d\",e"]"#, "d", false),
            (r#"["é.*"]"#, "é.*", true),
            (r#"["x"]"#, ".", false),
            (r#"[["a"],["b","c"]]"#, "b", true),
            ("[1,20,3.5,true]", "20", true),
            ("[1,20,3.5,true]", "2", false),
            ("[1,20,3.5,true]", "3.5", true),
            ("[1,20,3.5,true]", "true", true),
            (r#"["20"]"#, "20", true),
            (r#"["a", "b" , "c"]"#, "b", true),
            (r#"["caf\u00e9"]"#, "café", true),
            ("[1, 20]", "20", true),
            ("[]", "a", false),
        ];
        for (list, value, expected) in table {
            assert_eq!(has(list, value), expected, "{list} {value}");
            // Buckets are of the same values.
            let mut found = Vec::new();
            each_value(Some(list.as_bytes()), &mut |one| found.push(one.to_vec()));
            let is_value = found.contains(&value.as_bytes().to_vec());
            assert_eq!(is_value, expected, "{list} {value}");
        }
    }

    #[test]
    fn numbers_of_lists_are_found_in_any_spelling() {
        let table = [
            ("[1,20,3.5,true]", "20.0", true),
            ("[1.0,2e1]", "1", true),
            ("[1.0,2e1]", "20", true),
            ("[1.0,2e1]", "2", false),
            ("[18446744073709551615,1]", "18446744073709551615", true),
            ("[-9223372036854775809]", "-9223372036854775809", true),
            ("[-9223372036854775809]", "-9223372036854775808", false),
            ("[9223372036854775808]", "9223372036854775808", true),
            ("[12345678901234567.0]", "12345678901234567", true),
            ("[1e19]", "10000000000000000000", true),
            ("[100]", "1e2", true),
            ("[1.5]", "1.50", true),
            ("[0]", "-0", true),
            ("[\"1.0\"]", "1", false),
        ];
        for (list, value, expected) in table {
            assert_eq!(has(list, value), expected, "{list} {value}");
        }
    }

    #[test]
    fn a_choice_of_values_is_one_expression() {
        let filter = logpond_search::query::parse("a=x OR a=y OR b=1 OR _id~z").unwrap();
        let listed = elements::list_with;
        let expected = format!(
            "a=x OR a=y OR b=1 OR _id~/z/ OR a~/{}/ OR b~/{}/",
            listed("\"x\"|\"y\""),
            listed(&format!("\"1\"|{}", elements::number("1")))
        );
        assert_eq!(with_elements(&filter).to_string(), expected);
        let filter = logpond_search::query::parse("NOT (a=x _msg=y)").unwrap();
        let expected = format!("NOT ((a=x OR a~/{}/) AND _msg=y)", listed("\"x\""));
        assert_eq!(with_elements(&filter).to_string(), expected);
    }

    #[test]
    fn numbers_of_a_list_count_as_often_as_they_are_there() {
        let list = br#"[1, 5, 5, "x", "x", 2.5, null]"#;
        let mut numbers = Vec::new();
        each_number(Some(list), &mut |number| numbers.push(number));
        numbers.sort_unstable_by(f64::total_cmp);
        assert_eq!(numbers, [1.0, 2.5, 5.0, 5.0]);
        assert_eq!(values_count(list), 5);
        assert_eq!(values_count(b"x"), 1);
        assert_eq!(values_count(b"[]"), 0);
    }

    #[test]
    fn values_of_lists_are_those_of_fields() {
        let list = br#"[1e300, -9223372036854775809, 5.0, 5, -0, [2e1], "5.0", {"a": 1}]"#;
        let mut found = Vec::new();
        each_value(Some(list), &mut |one| {
            found.push(String::from_utf8_lossy(one).into_owned());
        });
        let large = format!("1{}", "0".repeat(300));
        let expected = ["-9223372036854775809", "0", &large, "20", "5", "{\"a\":1}"];
        assert_eq!(found, expected);
        for scalar in ["5", "5.0"] {
            each_value(Some(scalar.as_bytes()), &mut |one| assert_eq!(one, b"5"));
        }
    }

    #[test]
    fn what_is_no_list_is_one_value() {
        for text in ["", "[GIN] 200]", "[a", "x", r#"{"a":1}"#] {
            let mut found = Vec::new();
            each_value(Some(text.as_bytes()), &mut |one| found.push(one.to_vec()));
            assert_eq!(found, [text.as_bytes()], "{text}");
        }
    }
}
