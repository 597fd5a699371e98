use jiff::tz::TimeZone;

use super::super::{Format, renderer};
use super::*;
use crate::Style;

fn style() -> Style {
    Style {
        colour: false,
        zone: TimeZone::UTC,
        spans: None,
        defuses_formulas: false,
    }
}

/// The page of these rows.
fn page(rows: &[&str], facts: Facts) -> String {
    let mut renderer = renderer(Format::Html, style(), &[]);
    let mut out = Vec::new();
    for text in rows {
        renderer.row(&Row::from_json(text.as_bytes()).unwrap(), &mut out);
    }
    assert!(out.is_empty(), "the head comes first, and is known last");
    renderer.conclude(facts);
    renderer.end(&mut out);
    String::from_utf8(out).unwrap()
}

/// The tags of a page, in their order, without their attributes.
fn tags(page: &str) -> Vec<&str> {
    let each = page.split('<').skip(1);
    each.map(|part| {
        part.split(|c: char| c.is_whitespace() || c == '>')
            .next()
            .unwrap()
    })
    .collect()
}

/// Elements that AMP allows and this page uses.
const ALLOWED: [&str; 32] = [
    "!doctype", "html", "head", "meta", "title", "link", "style", "body", "main", "h1", "dl", "dt",
    "dd", "svg", "g", "rect", "text", "table", "thead", "tbody", "tr", "th", "td", "span", "b",
    "i", "p", "a", "div", "code", "pre", "em",
];

fn hostile() -> Vec<String> {
    let texts = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "</td></tr></table><iframe src=//example.net></iframe>",
        "\" onmouseover=\"alert(1)",
        "' style='background:url(//example.net)",
        "</title></style><style>*{display:none}</style>",
        "<!-- a comment that does not end",
        "&lt;script&gt; &#60;b&#62; <![CDATA[ x ]]>",
        "\u{202e}txet\u{0}\u{1b}[31m\u{2028}",
        "{{template}} ${expression} <%= code %>",
    ];
    let each = texts.iter().map(|text| {
        serde_json::json!({
            "_time": "2026-03-02T00:02:32Z", "_id": "A", "_msg": text, "level": text,
            "hostname": text, "app": text, (*text): text,
        })
        .to_string()
    });
    each.collect()
}

#[test]
fn hostile_lines_stay_text() {
    let rows = hostile();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let text = "</dd><script>x</script>\"'".to_owned();
    let facts = Facts {
        query: text.clone(),
        range: text.clone(),
        source: text.clone(),
        missing: vec![text.clone()],
        lost: vec![text.clone()],
        buckets: vec![Bucket {
            from: text.clone(),
            count: 3,
            levels: vec![(text, 1)],
        }],
        ..Facts::default()
    };
    let page = page(&rows, facts);
    for tag in tags(&page) {
        let name = tag.trim_start_matches('/');
        assert!(ALLOWED.contains(&name.trim_end_matches('/')), "<{tag}");
    }
    assert_eq!(page.matches("<style").count(), 1);
    let markup: String = page
        .split('<')
        .skip(1)
        .map(|part| part.split('>').next().unwrap())
        .collect();
    for word in [
        "on",
        "src",
        "style=",
        "url",
        "//",
        "javascript",
        "!important",
    ] {
        let word = format!(" {word}");
        assert!(!markup.contains(&word), "{word}: {markup}");
    }
    assert!(!page.contains(['\u{202e}', '\u{0}', '\u{1b}', '\u{2028}']));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn a_page_is_valid_under_the_restrictions_of_amp() {
    let page = page(
        &[r#"{"_time":"2026-03-02T00:02:32Z","_id":"A","_msg":"m"}"#],
        Facts::default(),
    );
    assert!(
        page.starts_with("<!doctype html>\n<html amp lang=en>\n<head>\n<meta charset=utf-8>\n")
    );
    assert!(page.contains("<link rel=canonical href=\".\">"));
    assert!(page.contains("<meta name=viewport content=\"width=device-width\">"));
    // AMP's limit for styles of the author.
    assert!(STYLE.len() < 75_000);
    for word in ["@import", "url(", "!important", "behavior", "-moz-binding"] {
        assert!(!STYLE.contains(word), "{word}");
    }
    for word in [
        "<script", " style=", "http:", "https:", "<img", "<iframe", "<form",
    ] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn rows_are_bounded_and_the_page_says_so() {
    let row = r#"{"_time":"2026-03-02T00:02:32Z","_id":"A","_msg":"m"}"#;
    let all = page(&vec![row; ROWS_MAX], Facts::default());
    assert!(!all.contains("left out"));
    let page = page(&vec![row; ROWS_MAX + 7], Facts::default());
    assert_eq!(page.matches("<tr><td").count(), ROWS_MAX);
    assert!(
        page.contains("7 rows more are left out: a page has at most 10,000 rows"),
        "{page}"
    );
}

#[test]
fn long_texts_and_many_fields_are_bounded() {
    let long = "é<".repeat(3_000_000);
    let mut object = serde_json::json!({ "_time": "2026-03-02T00:02:32Z", "_msg": long });
    for number in 0..2000 {
        object[format!("f{number}")] = number.into();
    }
    let text = object.to_string();
    let page = page(&[&text], Facts::default());
    assert!(page.len() < 64 << 10, "{}", page.len());
    assert!(
        page.contains("fields more") && page.contains("MB more"),
        "{page}"
    );
}

#[test]
fn an_answer_says_what_it_is() {
    let facts = Facts {
        query: "status>=500".to_owned(),
        range: "2026-03-01 to 2026-03-02".to_owned(),
        source: "http://127.0.0.1:7650".to_owned(),
        made: "2026-03-02 10:00:00".to_owned(),
        matches: Some(1200),
        buckets: (0..1000)
            .map(|number| Bucket {
                from: format!("bucket {number}"),
                count: 4,
                levels: vec![("error".to_owned(), 3)],
            })
            .collect(),
        ..Facts::default()
    };
    let row = r#"{"_time":"2026-03-02T00:02:32.5Z","_id":"A","_msg":"no","level":"error","hostname":"web","app":"shop","n":1}"#;
    let complete = page(&[row], facts.clone());
    for text in [
        "status&gt;=500",
        "1 row of 1,200 that match",
        "yes: no part of the range is missing",
        "<td class=t>2026-03-02 00:02:32.500+00:00<td class=\"error\">error<td class=h>web<td class=h>shop<td class=m>no <span><b>n</b>=1</span></tr>",
        "bucket 0: 12</title>",
        "<rect class=error",
    ] {
        assert!(complete.contains(text), "{text} in {complete}");
    }
    assert!(complete.matches("<g>").count() <= BARS_MAX);
    let missing = Facts {
        missing: vec!["node b does not answer".to_owned()],
        ..facts
    };
    let incomplete = page(&[row], missing);
    assert!(incomplete.contains("<dd class=warn>no, missing: node b does not answer</dd>"));
    assert!(!incomplete.contains("yes: no part"));
}

#[test]
fn columns_have_the_host_and_the_program_of_any_sender() {
    let row = r#"{"_time":"2026-11-21T10:00:00Z","_id":"01M80EWMK404HVRCR54AQ55Q0V","_msg":"paid","host.name":"web-1","service":"checkout","tag":"x"}"#;
    let page = page(&[row], Facts::default());
    let cells = "<td class=h>web-1<td class=h>checkout<td class=m>paid <span><b>tag</b>=x</span>";
    assert!(page.contains(cells), "{page}");
}
