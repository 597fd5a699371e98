//! Draws regular expressions over what the data have, in the syntax of Go: most are well made, some are
//! none in it, and all of them find something where they are asked or nearly do.

use crate::draw::Draw;

/// Over whole values of labels of streams.
const OF_LABELS: [&str; 24] = [
    "(?i)(?:SHOP|api)",
    "[[:alpha:]]+",
    r"\w+",
    r"web-\d",
    r"\pL+",
    r"\p{Latin}{3}",
    "[^a-r]\\w*",
    "p(?:ro|re)d|d.{2}",
    "(?P<x>eu|us)",
    r"\x{fc}n.|(?i:API)",
    "^shop$",
    r"\Qweb-1\E",
    "[\\w-]+[-][12]",
    ".*?o.*?",
    "(?s).+",
    "s?h?o?p?",
    "(?i)ÜNÏ",
    r"\bshop\b",
    r"unknown\_service",
    "[a-z]{2,3}|",
    "{shop",
    "*",
    "sh(?!x)op",
    "p+?rod",
];

/// Within lines.
const OF_LINES: [&str; 73] = [
    r"(?i)\bsold\b",
    r"\d{2,3}",
    r#"^\{"n":\d"#,
    r#"{"n":[1-3]"#,
    r#""n":\d+,"level""#,
    r"took=\d+(\.\d+)?",
    "[[:upper:]]{2,}",
    "[[:^alpha:]]{6}",
    r"\p{Lu}",
    r"\p{Han}",
    r"\p{So}|\p{Sm}",
    r"\PL{8}",
    r"[\pL\d]+ [^\pL]",
    r"naïve\s",
    "(?i)NAÏVE",
    "na.ve",
    "(?s)two.lines",
    "two.lines",
    "(?m)^lines",
    "two$",
    "(?m)two$",
    r"[^\x00-\x7F]",
    r"\x{1F642}",
    r"sold.*?\d$",
    r"\bslow\W+query\b",
    r"\Bld\b",
    r"[\d.]+\.\d+",
    r"(?:GET|POST) /\S*",
    r"\t",
    r"\x1b\[[0-9;]*m",
    r"\Q[x] {y}\E",
    "{y}",
    "e{,2}",
    "o{1}",
    "l{",
    "x{2,1}",
    r"\A\s+\S",
    r"\s+\z",
    "(?U)s.+d",
    "(?i)É",
    "(?i)k|K",
    "(?i)ſold",
    r"(?<word>sold|lost)",
    "(?i:sold)|LOST",
    "(?i)info|WARN|(?-i)error",
    r#"[]{[]"#,
    "[^]a-z ]{4}",
    r#"[[:digit:]:"]{3,}"#,
    r"\<b\>",
    r"1\d\.\d",
    "(lost|sold)+",
    "(sold|)lost",
    "(a|b|c)*e",
    "(?:^|,)\"msg\"",
    "ready|^$",
    "level=(info|warn|error)",
    "(?i)level\"?[=:]\"?(INFO|WARN)",
    "^.{20,30}$",
    "^[^ ]+ [^ ]+$",
    "timeout.*(ms|s)",
    ".*retry.*",
    ".+closed",
    "closed.+",
    "^(?:ready|closed)",
    "(?:cache|slow) (?:miss|query)",
    r"\d+(ms|s|h)",
    r"[a-z&&[^s]]old",
    r"(?P<a>s)(?P<a>o)",
    r"(s)old\1",
    "(?=sold)",
    "[a-",
    "sold**",
    r"\é",
];

/// Over whole values of fields, and of metadata.
const OF_FIELDS: [&str; 22] = [
    r"\d+",
    r"-?\d+(\.\d+)?(e\d)?",
    "(?i)(INFO|warn).*",
    r"\w+ \w+",
    "[[:lower:]]{4}",
    r"\S+",
    r"[^/\s]*",
    r"/(?:cart|api/.*)",
    r"zo\x{eb}|ann",
    r"\pL+",
    r"(?i)ZOË",
    r"t[01]\d",
    r"\d+(?:ms|s|µs)",
    r"[2-4]\d{2}",
    "(?:10|192)\\..*",
    "^sold$|^lost$",
    "s.+?d",
    "(?s).*",
    "p-[^2]",
    "(?:)",
    "(",
    r"t0\Z",
];

/// For the stage `regexp`, over lines of every form.
const OF_STAGES: [&str; 28] = [
    r"(?P<word>\w+) (?P<n>\d+)$",
    r"(?i)(?P<level>info|warn|error)",
    r#"took"?[=:](?P<took>[\d.]+)"#,
    r"(?<n>\d+)",
    r"(?P<empty>x*)",
    r"(?P<uni>\p{Han}+) (?P<rest>.*)",
    r"^(?P<first>\S+?)\s(?P<rest>.*?)$",
    r"(?U)(?P<peer>\d+\..+)\s",
    "(?P<msg>sold|lost)?",
    "(?P<msg>sold)|(?P<name>lost)",
    r#"(?P<key>\w+)="?(?P<value>[^" ]*)"?"#,
    r#""msg":"(?P<msg>[^"]*)"(?:.*"took":(?P<took>[^,}]+))?"#,
    r"(?P<msg>(?P<verb>\w+) (?P<n>\d+))",
    r"job (?P<n>\d+) finished after (?P<latency>\S+)",
    r"(?P<app>[a-z]+) (?P<msg>.+)",
    r"(?s)(?P<msg>.*)",
    r"(?P<name>zo\x{eb}|ann|bob)",
    r"(?i)\b(?P<msg>SOLD|RETRY)\b",
    r"(?P<colour>\x1b\[\d+m)",
    r"{(?P<object>[^{}]*)}",
    r"(?P<peer>(?:\d{1,3}\.){3}\d{1,3})",
    r"^(?P<n>[[:digit:]]+) (?P<msg>[[:alpha:]]+)",
    r"(\w+)",
    r"(?P<n>\d+) (?P<n>\w+)",
    r"(?P<1st>\w)",
    r"(?P<ünï>\w)",
    r"(?P<n>\d",
    r"(?P<>x)",
];

/// What is behind the vector of `label_replace`.
const OF_REPLACEMENTS: [&str; 20] = [
    r#""new", "$1", "app", "(?i)(S\\w+)""#,
    r#""new", "${1}-$0", "app", "(s|a)(?:hop|pi)""#,
    r#""new", "$x/$y", "node", "(?P<x>[a-z]+)-(?P<y>\\d)""#,
    r#""new", "$1x", "app", "(.).*""#,
    r#""new", "${1}x", "app", "(.).*""#,
    r#""new", "$$1", "app", "(.).*""#,
    r#""new", "$", "app", ".*""#,
    r#""new", "${}", "app", ".*""#,
    r#""new", "${1", "app", "(.*)""#,
    r#""new", "$2", "app", "(.*)""#,
    r#""new", "$nobody", "app", "(.*)""#,
    r#""new", "$1", "app", "(\\pL+)""#,
    r#""new", "$1", "app", "^(\\w+?)$""#,
    r#""new", "$1$2", "env", "(p)|(d).*""#,
    r#""env", "$1", "app", "([^s]+)""#,
    r#""new", "$1", "missing", "(x?)""#,
    r#""new", "none", "missing", "^$""#,
    r#""new-name", "$1", "app", "(.*)""#,
    r#""new", "$1", "app", "(""#,
    r#""__name", "$1", "app", "(.*)""#,
];

/// An expression for a condition of a selector, in quotes.
pub(super) fn of_label(draw: &mut Draw) -> String {
    let expression = draw.text(&OF_LABELS);
    quoted(draw, expression)
}

/// An expression for a line filter, in quotes.
pub(super) fn of_line(draw: &mut Draw) -> String {
    let expression = draw.text(&OF_LINES);
    quoted(draw, expression)
}

/// An expression for a condition on labels, in quotes.
pub(super) fn of_field(draw: &mut Draw) -> String {
    let expression = draw.text(&OF_FIELDS);
    quoted(draw, expression)
}

/// A stage `regexp`.
pub(super) fn stage(draw: &mut Draw) -> String {
    let expression = draw.text(&OF_STAGES);
    format!("| regexp {}", quoted(draw, expression))
}

/// What is behind the vector of `label_replace`.
pub(super) fn replacement(draw: &mut Draw) -> &'static str {
    draw.text(&OF_REPLACEMENTS)
}

/// A text in quotes of either kind.
fn quoted(draw: &mut Draw, text: &str) -> String {
    match draw.below(2) {
        0 => format!("`{text}`"),
        _ => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_what_is_in_them() {
        let all = [OF_LABELS.as_slice(), &OF_LINES, &OF_FIELDS, &OF_STAGES];
        assert!(all.concat().iter().all(|text| !text.contains('`')));
        let mut draw = Draw::new(1, 1);
        let both: Vec<_> = (0..20).map(|_| quoted(&mut draw, "\\d\"")).collect();
        assert!(both.contains(&"`\\d\"`".to_owned()));
        assert!(both.contains(&"\"\\\\d\\\"\"".to_owned()));
    }
}
