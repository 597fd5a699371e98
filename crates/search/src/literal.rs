//! What every match of a filter must contain: for skipping pages and entries without reading
//! them.
//!
//! A *token* is a maximal run of ASCII letters, digits, `_` and bytes from 0x80. The token index
//! says which pages hold a token; a filter is reduced to a formula of tokens that every wanted
//! record has ([`token_query`]).
//!
//! Invariant: the formula never excludes a wanted record, provided that a record's tokens are
//! those of its line, of its decoded message and of its field values' text, each on its own.

use logpond_segment::tokens::{fold, tokens};
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::field::{FieldMatcher, Target};
use crate::label::ComputedLabel;
use crate::number::Number;
use crate::pattern::hir;
use crate::query::{Comparison, FieldFilter, FieldTest, Filter, Pattern};

/// The most tokens in one formula; a conjunction forgets those beyond, a disjunction gives up.
const TOKENS_MAX: usize = 64;

/// The most cases that one letter has: `s`, `S` and the long s.
const CASES_MAX: usize = 3;

/// The longest literal that is put together from repetitions.
const REPEATED_BYTES_MAX: usize = 256;

/// Which tokens a record must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenQuery {
    /// None in particular.
    Any,
    /// This one.
    Token(Box<[u8]>),
    /// One that holds this.
    Part(TokenPart),
    /// All of these. Invariant: at least two, none of them `Any`.
    And(Vec<TokenQuery>),
    /// At least one of these. Invariant: at least two, none of them `Any`.
    Or(Vec<TokenQuery>),
}

/// A part of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPart {
    /// The bytes, all of them token bytes; folded ones as [`fold`] gives them.
    pub text: Box<[u8]>,
    /// Whether the token starts with them.
    pub at_start: bool,
    /// Whether the token ends with them.
    pub at_end: bool,
    /// Whether letters match in both cases.
    pub folded: bool,
}

impl TokenPart {
    fn matches(&self, token: &[u8]) -> bool {
        let text = &self.text[..];
        let folded_token;
        let token = if self.folded {
            folded_token = fold(token);
            &folded_token[..]
        } else {
            token
        };
        match (self.at_start, self.at_end) {
            (true, true) => token == text,
            (true, false) => token.starts_with(text),
            (false, true) => token.ends_with(text),
            (false, false) => token.windows(text.len()).any(|window| window == text),
        }
    }
}

impl TokenQuery {
    /// Whether a record may be wanted, of which `has` says whether any of its tokens fits.
    pub fn may_match(&self, has: &mut impl FnMut(&dyn Fn(&[u8]) -> bool) -> bool) -> bool {
        match self {
            TokenQuery::Any => true,
            TokenQuery::Token(token) => has(&|t| *t == **token),
            TokenQuery::Part(part) => has(&|t| part.matches(t)),
            TokenQuery::And(parts) => parts.iter().all(|p| p.may_match(has)),
            TokenQuery::Or(parts) => parts.iter().any(|p| p.may_match(has)),
        }
    }

    /// The parts of tokens in it, each once.
    pub(crate) fn parts(&self) -> Vec<TokenPart> {
        let mut parts = Vec::new();
        self.add_parts(&mut parts);
        parts
    }

    fn add_parts(&self, parts: &mut Vec<TokenPart>) {
        match self {
            TokenQuery::Any | TokenQuery::Token(_) => {}
            TokenQuery::Part(part) if parts.contains(part) => {}
            TokenQuery::Part(part) => parts.push(part.clone()),
            TokenQuery::And(inner) | TokenQuery::Or(inner) => {
                inner.iter().for_each(|query| query.add_parts(parts));
            }
        }
    }

    fn and(parts: impl IntoIterator<Item = TokenQuery>) -> TokenQuery {
        let mut all: Vec<TokenQuery> = Vec::new();
        for part in parts {
            match part {
                TokenQuery::Any => {}
                TokenQuery::And(inner) => all.extend(inner),
                other if all.contains(&other) => {}
                other => all.push(other),
            }
        }
        while all.iter().map(TokenQuery::len).sum::<usize>() > TOKENS_MAX {
            all.pop();
        }
        match all.len() {
            0 => TokenQuery::Any,
            1 => all.remove(0),
            _ => TokenQuery::And(all),
        }
    }

    fn or(parts: impl IntoIterator<Item = TokenQuery>) -> TokenQuery {
        let mut any: Vec<TokenQuery> = Vec::new();
        for part in parts {
            match part {
                TokenQuery::Any => return TokenQuery::Any,
                TokenQuery::Or(inner) => any.extend(inner),
                other if any.contains(&other) => {}
                other => any.push(other),
            }
        }
        match any.len() {
            1 => any.remove(0),
            _ if any.iter().map(TokenQuery::len).sum::<usize>() > TOKENS_MAX => TokenQuery::Any,
            0 => TokenQuery::Any,
            _ => TokenQuery::Or(any),
        }
    }

    fn len(&self) -> usize {
        match self {
            TokenQuery::Any | TokenQuery::Token(_) | TokenQuery::Part(_) => 1,
            TokenQuery::And(parts) | TokenQuery::Or(parts) => {
                parts.iter().map(TokenQuery::len).sum()
            }
        }
    }
}

/// The tokens that every record wanted by the filter has.
///
/// `whole_edges` says that a field's value, as it was put into the index, has no token bytes
/// right before or after it (each value was split into tokens on its own), so that the first and
/// the last token of a compared value count too. Numbers need it anyway: `5e2` equals 500 by its
/// value's text only.
pub fn token_query(filter: &Filter, whole_edges: bool) -> TokenQuery {
    match filter {
        Filter::All | Filter::Not(_) => TokenQuery::Any,
        Filter::And(parts) => TokenQuery::and(parts.iter().map(|p| token_query(p, whole_edges))),
        Filter::Or(parts) => TokenQuery::or(parts.iter().map(|p| token_query(p, whole_edges))),
        Filter::Text(pattern) => pattern_tokens(pattern),
        Filter::Field(field) => field_tokens(field, whole_edges),
    }
}

fn field_tokens(field: &FieldFilter, whole_edges: bool) -> TokenQuery {
    match &field.test {
        _ if is_beside_tokens(field) => TokenQuery::Any,
        FieldTest::Contains(pattern) => pattern_tokens(pattern),
        FieldTest::Compare(Comparison::Equal, value) if has_one_text(value, whole_edges) => {
            TokenQuery::and(whole_tokens(value, whole_edges).map(|t| TokenQuery::Token(t.into())))
        }
        FieldTest::Compare(..) | FieldTest::Exists => TokenQuery::Any,
    }
}

/// Whether what a condition looks at may be wanted although no token of a record says so.
fn is_beside_tokens(field: &FieldFilter) -> bool {
    match Target::new(&field.name) {
        Target::Time | Target::Received | Target::Id | Target::TimeSource => true,
        Target::Computed(
            ComputedLabel::Level | ComputedLabel::Severity | ComputedLabel::SeverityNumber,
        ) => true,
        Target::Computed(label) => FieldMatcher::new(field)
            .is_ok_and(|matcher| matcher.matches_value(label.unknown_value().as_ref())),
        _ => false,
    }
}

/// Whether all values that equal `value` contain its tokens: numbers equal others that are
/// written differently, unless they are small whole ones (`500`, found in `500` and `500.0`).
fn has_one_text(value: &[u8], whole_edges: bool) -> bool {
    match Number::parse(value) {
        None => true,
        Some(Number::Int(int)) => {
            let exact_as_float = int.unsigned_abs() < 1 << 53;
            whole_edges && exact_as_float && int != 0 && int.to_string().as_bytes() == value
        }
        Some(Number::Float(_) | Number::Decimal(_)) => false,
    }
}

/// Tokens of a compared value that are whole in every value that equals it; with `edges` also the
/// first and last. Next to a backslash a token may be part of an escape, and is left out.
fn whole_tokens(literal: &[u8], edges: bool) -> impl Iterator<Item = &[u8]> {
    neighbours(literal).filter_map(move |(token, before, after)| {
        let separates = |byte: Option<u8>| byte.map_or(edges, |b| b != b'\\');
        (separates(before) && separates(after)).then_some(token)
    })
}

/// The tokens of a literal with the bytes before and after each.
fn neighbours(literal: &[u8]) -> impl Iterator<Item = (&[u8], Option<u8>, Option<u8>)> {
    let base = literal.as_ptr() as usize;
    tokens(literal).map(move |token| {
        let start = token.as_ptr() as usize - base;
        let before = start.checked_sub(1).and_then(|at| literal.get(at)).copied();
        (token, before, literal.get(start + token.len()).copied())
    })
}

/// What a literal that occurs anywhere in a line says of the line's tokens: those inside the
/// literal are whole, the first and the last may go on beyond it. Next to a backslash a token may
/// be part of an escape, and may go on too.
pub(crate) fn literal_parts(literal: &[u8], folded: bool) -> impl Iterator<Item = TokenQuery> {
    neighbours(literal).map(move |(token, before, after)| {
        let separates = |byte: Option<u8>| byte.is_some_and(|b| b != b'\\');
        match (separates(before), separates(after)) {
            (true, true) if !folded => TokenQuery::Token(token.into()),
            (at_start, at_end) => TokenQuery::Part(TokenPart {
                text: token.into(),
                at_start,
                at_end,
                folded,
            }),
        }
    })
}

fn pattern_tokens(pattern: &Pattern) -> TokenQuery {
    required_tokens(&required(pattern))
}

fn required_tokens(required: &RequiredLiterals) -> TokenQuery {
    match required {
        RequiredLiterals::Nothing => TokenQuery::Any,
        RequiredLiterals::Literal(text) => TokenQuery::and(literal_parts(text, false)),
        RequiredLiterals::Folded(text) => TokenQuery::and(literal_parts(text, true)),
        RequiredLiterals::And(parts) => TokenQuery::and(parts.iter().map(required_tokens)),
        RequiredLiterals::Or(parts) => TokenQuery::or(parts.iter().map(required_tokens)),
    }
}

/// Substrings that every match of a pattern contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequiredLiterals {
    Nothing,
    Literal(Vec<u8>),
    /// A substring of the text as [`fold`] gives it.
    Folded(Vec<u8>),
    And(Vec<RequiredLiterals>),
    Or(Vec<RequiredLiterals>),
}

/// The substrings that a pattern requires.
pub(crate) fn required(pattern: &Pattern) -> RequiredLiterals {
    match pattern {
        Pattern::Substring {
            text,
            case_insensitive: false,
        } => Run::exact(text.to_vec()).into_required(),
        folded => hir(folded).map_or(RequiredLiterals::Nothing, |hir| required_of(&hir)),
    }
}

/// The substrings that a parsed expression requires.
pub(crate) fn required_of(hir: &Hir) -> RequiredLiterals {
    walk(hir).into_required()
}

/// A run of characters that stand side by side in every match.
#[derive(Default)]
struct Run {
    text: Vec<u8>,
    /// Whether some of its letters match in both cases; then all are folded.
    folded: bool,
}

impl Run {
    fn exact(text: Vec<u8>) -> Run {
        Run {
            text,
            folded: false,
        }
    }

    fn extend(&mut self, other: Run) {
        self.text.extend(other.text);
        self.folded |= other.folded;
    }

    fn into_required(self) -> RequiredLiterals {
        match (self.text.is_empty(), self.folded) {
            (true, _) => RequiredLiterals::Nothing,
            (false, false) => RequiredLiterals::Literal(self.text),
            // Folding changes letters of several bytes, of which this would be a part.
            (false, true) if std::str::from_utf8(&self.text).is_err() => RequiredLiterals::Nothing,
            (false, true) => RequiredLiterals::Folded(fold(&self.text).into_owned()),
        }
    }
}

/// What a part of an expression matches: exactly one text, or something that requires others.
enum Part {
    Exact(Run),
    Needs(RequiredLiterals),
}

impl Part {
    fn into_required(self) -> RequiredLiterals {
        match self {
            Part::Exact(run) => run.into_required(),
            Part::Needs(required) => required,
        }
    }
}

/// The parser bounds how deeply expressions nest, and so this recursion.
fn walk(hir: &Hir) -> Part {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Part::Exact(Run::default()),
        HirKind::Literal(text) => Part::Exact(Run::exact(text.0.to_vec())),
        HirKind::Class(class) => match one_text(class) {
            Some(run) => Part::Exact(run),
            None => Part::Needs(RequiredLiterals::Nothing),
        },
        HirKind::Capture(capture) => walk(&capture.sub),
        HirKind::Repetition(repetition) => match (repetition.min, repetition.max) {
            (0, _) => Part::Needs(RequiredLiterals::Nothing),
            (min, max) => repeat(walk(&repetition.sub), min as usize, max == Some(min)),
        },
        HirKind::Concat(parts) => concat(parts),
        HirKind::Alternation(parts) => {
            let parts: Vec<RequiredLiterals> =
                parts.iter().map(|p| walk(p).into_required()).collect();
            Part::Needs(if parts.contains(&RequiredLiterals::Nothing) {
                RequiredLiterals::Nothing
            } else {
                RequiredLiterals::Or(parts)
            })
        }
    }
}

/// The one text of a class, or the letter that its characters are cases of.
fn one_text(class: &Class) -> Option<Run> {
    if let Some(text) = class.literal() {
        return Some(Run::exact(text));
    }
    let mut letters: Vec<char> = Vec::new();
    match class {
        Class::Unicode(class) => {
            for range in class.ranges().iter().take(CASES_MAX + 1) {
                letters.extend((range.start()..=range.end()).take(CASES_MAX + 1));
            }
        }
        Class::Bytes(class) => {
            for range in class.ranges().iter().take(CASES_MAX + 1) {
                let bytes = (range.start()..=range.end()).take(CASES_MAX + 1);
                letters.extend(bytes.map(char::from));
            }
        }
    }
    let folded = |letter: &char| fold(letter.to_string().as_bytes()).into_owned();
    let text = folded(letters.first()?);
    let is_one = text.is_ascii() && letters.iter().all(|letter| folded(letter) == text);
    is_one.then_some(Run { text, folded: true })
}

fn repeat(part: Part, min: usize, exactly: bool) -> Part {
    match part {
        Part::Exact(run) if run.text.len() * min <= REPEATED_BYTES_MAX => {
            let repeated = Run {
                text: run.text.repeat(min),
                folded: run.folded,
            };
            if exactly {
                Part::Exact(repeated)
            } else {
                Part::Needs(repeated.into_required())
            }
        }
        other => Part::Needs(other.into_required()),
    }
}

fn concat(parts: &[Hir]) -> Part {
    let mut run = Run::default();
    let mut needed = Vec::new();
    let mut exact = true;
    for part in parts {
        match walk(part) {
            Part::Exact(more) => run.extend(more),
            Part::Needs(required) => {
                exact = false;
                needed.push(std::mem::take(&mut run).into_required());
                needed.push(required);
            }
        }
    }
    if exact {
        return Part::Exact(run);
    }
    needed.push(run.into_required());
    needed.retain(|r| *r != RequiredLiterals::Nothing);
    Part::Needs(match needed.len() {
        0 => RequiredLiterals::Nothing,
        1 => needed.remove(0),
        _ => RequiredLiterals::And(needed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::parse;

    fn show(query: &TokenQuery) -> String {
        let join = |parts: &[TokenQuery], by: &str| {
            let parts: Vec<String> = parts.iter().map(show).collect();
            format!("({})", parts.join(by))
        };
        match query {
            TokenQuery::Any => "any".into(),
            TokenQuery::Token(token) => String::from_utf8_lossy(token).into_owned(),
            TokenQuery::Part(part) => {
                let open = |is_whole: bool| if is_whole { "" } else { "*" };
                let (text, mark) = (
                    String::from_utf8_lossy(&part.text),
                    if part.folded { "~" } else { "" },
                );
                format!("{mark}{}{text}{}", open(part.at_start), open(part.at_end))
            }
            TokenQuery::And(parts) => join(parts, "&"),
            TokenQuery::Or(parts) => join(parts, "|"),
        }
    }

    #[test]
    fn texts_are_split() {
        let table: [(&str, &[&str]); 5] = [
            ("", &[]),
            (" ,;", &[]),
            ("a_1-b", &["a_1", "b"]),
            ("[x=é☃1]", &["x", "é☃1"]),
            ("GET /a.html", &["GET", "a", "html"]),
        ];
        for (text, expected) in table {
            let found: Vec<&[u8]> = tokens(text.as_bytes()).collect();
            let expected: Vec<&[u8]> = expected.iter().map(|t| t.as_bytes()).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn filters_imply_tokens() {
        let table = [
            ("*", "any"),
            ("error", "*error*"),
            ("an error here", "(*an&error&here*)"),
            ("\" error \"", "error"),
            (r#"" a\nb \\n c ""#, "(a&b&*n&c)"),
            (r#"" x\\ndone y ""#, "(x*&*ndone&y)"),
            ("i\" Error 42 \"", "(~error&~42)"),
            ("i\"Disk K\"", "(~*disk&~k*)"),
            (r"/(?i) Timeout /", "~timeout"),
            (r"/ [Tt]imeout [a-c]x/", "(~timeout&*x*)"),
            (r"/(?-u:[k\xe2]) b /", "b"),
            (r"/ user=(bob|eve|.*) /", "user"),
            (r"/ user=( bob | eve ) x/", "(user&(bob|eve)&x*)"),
            (r"/\[[0-9]+\] done\./", "done"),
            (r"/( ab ){2,3}/", "ab"),
            (r"/a* b /i", "~b"),
            ("a=v-1", "(v&1)"),
            ("a!=v", "any"),
            ("NOT \" v \"", "any"),
            ("status=500", "500"),
            ("status=500.0", "any"),
            ("status=0500", "any"),
            ("status>=500", "any"),
            ("_time=2026-11-21", "any"),
            ("a=x OR b=y", "(x|y)"),
            ("a=x OR b:*", "any"),
            ("a=x b=x", "x"),
        ];
        for (query, expected) in table {
            let found = token_query(&parse(query).unwrap(), true);
            assert_eq!(show(&found), expected, "{query}");
        }
        let inner = token_query(&parse("a=x-y-z").unwrap(), false);
        assert_eq!(show(&inner), "y");
        assert_eq!(
            token_query(&parse("a=500").unwrap(), false),
            TokenQuery::Any
        );
    }

    #[test]
    fn formulas_are_bounded() {
        let many: Vec<String> = (0..500).map(|i| format!("t{i}")).collect();
        let all = token_query(&parse(&format!("x {} x", many.join(" "))).unwrap(), true);
        assert_eq!(all.len(), TOKENS_MAX);
        let terms: Vec<String> = many.iter().map(|t| format!("a={t}")).collect();
        let any = token_query(&parse(&terms.join(" OR ")).unwrap(), true);
        assert_eq!(any, TokenQuery::Any);
    }
}
