//! What expressions match, and which are none.

use proptest::prelude::*;

use super::translate;
use crate::pattern::Finder;
use crate::query::Pattern;

fn finder(written: &str) -> Finder {
    let translated = translate(written).unwrap_or_else(|error| panic!("{written}: {error}"));
    let pattern = Pattern::regex(&translated.source, false);
    Finder::new(&pattern).unwrap_or_else(|error| panic!("{written}: {pattern}: {error}"))
}

/// The text that an expression finds first.
fn found<'t>(written: &str, text: &'t str) -> Option<&'t str> {
    let range = finder(written).find(text.as_bytes(), 0)?;
    text.get(range)
}

/// Expressions, texts, and what of a text is found first.
const FOUND: &[(&str, &str, Option<&str>)] = &[
    // Braces that count nothing.
    (
        r#"{"level":"error""#,
        r#"{"level":"error"}"#,
        Some(r#"{"level":"error""#),
    ),
    (
        r#""id":{"a":\d"#,
        r#"{"id":{"a":1}}"#,
        Some(r#""id":{"a":1"#),
    ),
    ("user{id}", "/user{id}/b", Some("user{id}")),
    ("a{", "aa{", Some("a{")),
    ("{", "x{", Some("{")),
    ("}", "x}", Some("}")),
    ("a{,3}", "aaa{,3}", Some("a{,3}")),
    ("a{01}", "aa{01}", Some("a{01}")),
    ("a{2", "aa{2", Some("a{2")),
    ("a{2}", "aaa", Some("aa")),
    ("a{1,2}?", "aaa", Some("a")),
    ("a{2,}", "aaa", Some("aaa")),
    ("(error|fatal){1,}", "an error", Some("error")),
    // Characters as they are.
    (r"\Qa.b{\E+", "a.b{{", Some("a.b{{")),
    (r"\Q[x", "a[x", Some("[x")),
    (r"a\Q\E*b", "aab", Some("aab")),
    (r"\<error\>", "<error>", Some("<error>")),
    (r"\173\175", "{}", Some("{}")),
    (r"\0", "\0", Some("\0")),
    (r"\12", "a\n", Some("\n")),
    (r"\x41\x{2764}", "A❤", Some("A❤")),
    (r"\_\@\%\ \-\#\&\~", "_@% -#&~", Some("_@% -#&~")),
    (
        r"\a\f\v\t\r\n",
        "\x07\x0c\x0b\t\r\n",
        Some("\x07\x0c\x0b\t\r\n"),
    ),
    (r"a&&b~~c--d#e f", "a&&b~~c--d#e f", Some("a&&b~~c--d#e f")),
    (r"\x{d800}|a", "xa", Some("a")),
    // Classes of letters are of ASCII.
    (r"\d+", "٣4", Some("4")),
    (r"\w+", "éab", Some("ab")),
    (r"\W", "aé", Some("é")),
    (r"\s", "a\u{a0}b\x0bc d", Some(" ")),
    (r"\S", "\u{a0}", Some("\u{a0}")),
    (r"\bab", "éab", Some("ab")),
    (r"\Bab", "éab", None),
    (r"\b{", "a{", Some("{")),
    (r"\b{start}", "a{start}", Some("{start}")),
    (r"(?i)\w+", "K", Some("K")),
    // Classes of Unicode.
    (r"\pN+", "a٣4", Some("٣4")),
    (r"\PN+", "٣a4", Some("a")),
    (r"\p{Greek}+", "aλω", Some("λω")),
    (r"\p{^Greek}+", "λab", Some("ab")),
    (r"\P{^Greek}+", "abλ", Some("λ")),
    (r"[^\p{Lu}\d]+", "A1bc2", Some("bc")),
    // Classes in brackets.
    (r"[[]error[]]", "an [error]", Some("[error]")),
    (r"[]x]+", "a]x]", Some("]x]")),
    (r"[^]x]+", "]a]", Some("a")),
    (r"[a[b]+", "xb[a", Some("b[a")),
    (r"[a[b]]", "[]", Some("[]")),
    (r"[+--]+", "a+,-", Some("+,-")),
    (r"[a-]+", "b-a", Some("-a")),
    (r"[\w-.]+", "é a-b.c", Some("a-b.c")),
    (r"[&&]", "a&", Some("&")),
    (r"[a&&b]+", "cb&a", Some("b&a")),
    (r"[~~]+", "a~~", Some("~~")),
    (r"[\d\s]+", "a1 2", Some("1 2")),
    (r"[^\D5]+", "a15", Some("1")),
    (r"[^\S\t]", "a\tb c", Some(" ")),
    (r"[[:word:]-]+", "é a-b_", Some("a-b_")),
    (r"[[:^digit:]]+", "12ab", Some("ab")),
    (r"[[:foo]+", "f:[o", Some("f:[o")),
    (r"[\]\\\-]+", r"a\]-", Some(r"\]-")),
    (r"[\x41-\x{43}]+", "xABCD", Some("ABC")),
    (r"[\x{d7ff}-\x{e000}]", "\u{e000}", Some("\u{e000}")),
    (r"[\x{d800}]", "a", None),
    (r"[^\x{d800}]", "a", Some("a")),
    (r"[#^$.*+?()|{}]+", "a#^$.*+?()|{}", Some("#^$.*+?()|{}")),
    // Lines.
    (r"a.b", "a\nb", None),
    (r"(?s)a.b", "a\nb", Some("a\nb")),
    (r"(?s:a.)b|a(?s).b", "a\nb", Some("a\nb")),
    (r"(?m)^b$", "a\nb\nc", Some("b")),
    (r"^b$", "a\nb", None),
    (r"\Aa\z", "a", Some("a")),
    // Groups and flags.
    (r"(?)a(?:)", "a", Some("a")),
    (r"(?ii-s)A", "a", Some("a")),
    (r"(?i-i)A", "a", None),
    (r"(?U)a+", "aa", Some("a")),
    (r"(?U)a+?", "aa", Some("aa")),
    (r"a(?i)B|X", "x", Some("x")),
    (r"(a(?i)B)C", "abc", None),
    (r"(?P<a>x)(?P<a>y)(?<b>z)(?P<1>!)", "xyz!", Some("xyz!")),
    (r"()*a|^*b|(?:a|)*c", "a", Some("a")),
    ("a||b", "x", Some("")),
    ("", "x", Some("")),
];

#[test]
fn expressions_find_what_they_find_in_loki() {
    for (written, text, expected) in FOUND {
        assert_eq!(found(written, text), *expected, "{written:?} in {text:?}");
    }
}

#[test]
fn what_is_no_expression_says_where() {
    let table: &[(&str, std::ops::Range<usize>)] = &[
        ("a**", 1..3),
        ("ab*+?", 2..5),
        ("x++", 1..3),
        ("a{2}{3}", 1..7),
        ("*a", 0..1),
        ("a|+", 2..3),
        ("(?:?)", 3..4),
        ("{2}", 0..3),
        ("a{1001}", 1..7),
        ("a{2,1}", 1..6),
        ("a{99999999999}", 1..14),
        (r"a\u0041", 1..3),
        (r"\1", 0..2),
        (r"\8", 0..2),
        (r"\é", 0..3),
        (r"\c", 0..2),
        (r"\C", 0..2),
        (r"\E", 0..2),
        (r"\Z", 0..2),
        (r"\x4", 0..2),
        (r"\x{110000}", 0..2),
        (r"a\", 1..2),
        (r"[\b]", 1..3),
        (r"[a-\d]", 3..5),
        ("[z-a]", 1..4),
        ("[a--b]", 1..4),
        ("x[a", 1..3),
        ("[]", 0..2),
        (r"[a\", 2..3),
        ("[[:foo:]]", 1..8),
        (r"\p{Foo}", 0..7),
        (r"\p{sc=Greek}", 0..12),
        (r"\pé", 0..4),
        (r"a\p{L", 1..5),
        ("a)", 1..2),
        ("x(a(b)", 1..6),
        ("(?x)a", 0..4),
        ("(?u:a)", 0..4),
        ("(?R)", 0..4),
        ("(?i-)", 0..5),
        ("a(?i", 1..4),
        ("(?=a)", 0..5),
        ("(?<=a)", 0..6),
        ("(?P<a-b>x)", 0..8),
        ("(?P<>x)", 0..5),
        ("(?P=a)", 0..6),
    ];
    for (written, span) in table {
        let error = translate(written).expect_err(written);
        assert_eq!(error.span, *span, "{written}: {error}");
    }
}

#[test]
fn a_name_that_is_there_twice_is_told() {
    let translated = translate("(?P<a>x)(?P<bc>y)(?<bc>z)").unwrap();
    assert_eq!(translated.repeated_name, Some(20..22));
    assert_eq!(translated.source, "(?P<a>x)(?P<bc>y)(z)");
    assert_eq!(translate("(?P<1a>x)").unwrap().source, "(?P<_1a>x)");
}

/// Expressions that mean the same in both syntaxes.
fn ordinary() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        "[a-c]{1,3}",
        Just(".".to_owned()),
        Just("[a-b]".to_owned()),
        Just("[^a]".to_owned()),
        Just(r"\.".to_owned()),
        Just("^".to_owned()),
        Just("$".to_owned()),
    ];
    atom.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(?:{a}|{b})")),
            (inner.clone(), "[*+?]|\\{2\\}|\\{1,2\\}\\?").prop_map(|(a, r)| format!("({a}){r}")),
            inner.prop_map(|a| format!("(?i:{a})")),
        ]
    })
}

proptest! {
    #[test]
    fn ordinary_expressions_match_what_they_matched(written in ordinary(), text in "[a-cA.\n]{0,8}") {
        let pattern = Pattern::regex(&written, false);
        let expected = Finder::new(&pattern).unwrap().find(text.as_bytes(), 0);
        prop_assert_eq!(finder(&written).find(text.as_bytes(), 0), expected);
    }

    #[test]
    fn what_is_translated_compiles_and_is_closed(
        written in r"[a-c.*+?(){}\[\]|^$\\dwpPbBQEx0-9:,&~<>iU-]{0,12}"
    ) {
        if let Ok(translated) = translate(&written) {
            let grouped = format!("^(?:{})$", translated.source);
            let grouped = Finder::new(&Pattern::regex(&grouped, false));
            prop_assert!(grouped.is_ok(), "{}: {:?}", written, grouped);
        }
    }
}
