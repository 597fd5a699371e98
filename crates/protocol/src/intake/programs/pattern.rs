//! The language that rows of heads are written in.
//!
//! ```text
//! {time}~{level}~{pid:i} --- [_{thread}] {logger:w}_: {msg}
//! ```
//!
//! | text | line |
//! | --- | --- |
//! | `{name}` | text up to the literal behind it, or up to the blanks before that, on one line |
//! | `{name:t}` | the same, or nothing |
//! | `{name:w}` | a word: no blank, up to what may follow it |
//! | `{name:e}` | the same, or nothing |
//! | `{name:l}` | a word that may say the level |
//! | `{name:i}` | a whole number |
//! | `{name:f}` | a number with a fraction |
//! | `{name:d}` | a word that begins with a digit |
//! | `{name:x}` | names of spans with their values in braces |
//! | `{name:q}` | a word with a point or `::` in it, such as a class |
//! | `{name:p}` | a word that a colon and a number end, such as a place in a source |
//! | `{name:c}` | an address, with a port or without: also `remote_addr`, `remote_port` |
//! | `{name:a}` | the same, where a port always follows: also behind an address of version 6 without brackets |
//! | `{name:u}` | a word in capitals, or `-` |
//! | `{name:g}` | a word up to its last hyphen, such as a domain of GLib before the level |
//! | `{time}` | the time |
//! | `{clock}` | a time of day that a colon ends |
//! | `{level}` | a word for a level |
//! | `{LEVEL}` | the same in capitals, if it is the level of the line |
//! | `{abbr}` | the same of three letters |
//! | `{is:error}` | nothing: the line has this level |
//! | `{name:s}` | a file of a program's source, a colon and a line |
//! | `{name:h}` | digits of a hexadecimal number, eight at least |
//! | `{letter}`, `{sign}` | a letter or a sign that is one: `E`, `#` |
//! | `{label}` | a label of PostgreSQL |
//! | `{code}` | a code of Apache, `AH00126` |
//! | `{msg}`, `{msg:tail}` | the message, with what a product writes behind it |
//! | `~`, `_` | blanks, one at least or none at least |
//! | `(…)?` | may be missing |
//! | `\(` | a character of these as it is |
//! | others | as they are |

use core::net::Ipv6Addr;

use logpond_record::{Severity, Value};
use memchr::memchr_iter;

use super::{Pen, TIME_FIELD, tails};
use crate::intake::access::canonical_int;
use crate::intake::access_format::Times;
use crate::intake::levels;
use crate::intake::timestamps::{self, TimestampText};

/// The longest text of a field; longer ones are none.
const FIELD_BYTES_MAX: usize = 512;

/// The most bytes of a clock and the colon behind it.
const CLOCK_BYTES_MAX: usize = 24;

/// The most blanks that columns are padded with.
const BLANKS_MAX: usize = 64;

/// Labels of PostgreSQL; some stand before what belongs to a message and say no level.
pub(super) const POSTGRES_LABELS: [&str; 20] = [
    "LOG",
    "ERROR",
    "FATAL",
    "PANIC",
    "WARNING",
    "NOTICE",
    "INFO",
    "DEBUG",
    "DEBUG1",
    "DEBUG2",
    "DEBUG3",
    "DEBUG4",
    "DEBUG5",
    "DETAIL",
    "HINT",
    "STATEMENT",
    "CONTEXT",
    "QUERY",
    "LOCATION",
    "BACKTRACE",
];

/// A head of lines.
pub(super) struct Row {
    pub(super) steps: Vec<Step>,
    /// The byte that it begins with, if that is always the same.
    first: Option<u8>,
    /// The bytes that may follow, behind blanks if there may be more than one.
    seconds: Box<[bool; 256]>,
    is_padded: bool,
    has_level: bool,
}

/// The next part of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Literal(Box<str>),
    /// At least so many blanks.
    Blanks(usize),
    Field {
        name: Box<str>,
        take: Take,
        /// Bytes that may follow it, and the literal that does if it is always the same.
        follow: Box<[u8]>,
        end: Box<str>,
    },
    Time,
    Clock,
    Level,
    /// In capitals.
    CapitalLevel,
    /// Of three letters, in capitals.
    ShortLevel,
    /// The level that the line has, which is not written.
    Says(&'static str),
    Letter,
    Sign,
    Label,
    Code,
    Optional(Vec<Step>),
    Message(tails::Tail),
}

/// How a field is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    Text,
    /// The same with blanks behind it.
    Padded,
    /// The same as [`Take::Text`], or nothing.
    MaybeText,
    Word,
    MaybeEmpty,
    Number,
    /// A number with a point in it.
    Decimal,
    Client,
    /// The same with a port.
    Peer,
    /// A word in capitals.
    Capitals,
    /// A word with a point or `::` in it.
    Qualified,
    /// A word that a colon and a number end.
    Place,
    /// A word that may say the level.
    Level,
    /// A file of a source, a colon and a line.
    Source,
    /// A hexadecimal number.
    Hexadecimal,
    /// A word that begins with a digit.
    Digit,
    /// Names with braces behind them, with colons between them.
    Spans,
    /// A word up to its last hyphen.
    Hyphenated,
}

/// Endings of files of programs' sources.
const SOURCES: [&str; 20] = [
    "c", "cc", "cpp", "cxx", "h", "hpp", "go", "rs", "py", "rb", "js", "ts", "java", "kt", "lua",
    "php", "pl", "ex", "swift", "scala",
];

/// The fewest digits of a hexadecimal number.
const HEXADECIMAL_BYTES_MIN: usize = 8;

impl Row {
    /// Compiles a row. Rows are constants, so one that is wrong is found by a test.
    pub(super) fn new(text: &str) -> Row {
        let mut steps = read(&mut text.chars().peekable());
        set_follow(&mut steps, &[]);
        let (first, seconds, is_padded) = match &steps[..] {
            [Step::Literal(literal), rest @ ..] => {
                let second = literal.as_bytes().get(1);
                let own = second.map(|byte| Step::Literal(char::from(*byte).to_string().into()));
                let next = own.as_ref().or(rest.first());
                (literal.bytes().next(), seconds_of(next), false)
            }
            [Step::Blanks(1), rest @ ..] => (Some(b' '), seconds_of(rest.first()), true),
            _ => (None, [true; 256], false),
        };
        Row {
            has_level: has_level(&steps),
            steps,
            first,
            seconds: Box::new(seconds),
            is_padded,
        }
    }

    /// True if a text may begin with this byte.
    pub(super) fn may_begin(&self, byte: u8) -> bool {
        self.first.is_none_or(|first| first == byte)
    }

    /// True if this byte may be the next one, behind blanks if the row [is padded](Row::is_padded).
    pub(super) fn may_go_on(&self, byte: u8) -> bool {
        self.seconds[usize::from(byte)]
    }

    /// True if it begins with blanks.
    pub(super) fn is_padded(&self) -> bool {
        self.is_padded
    }

    /// False if the line cannot go on so: a cheap test before anything is drawn.
    pub(super) fn may_fit(&self, ahead: &Ahead<'_>) -> bool {
        may_fit(&self.steps, ahead)
    }

    /// True if a level stands in it.
    pub(super) fn has_level(&self) -> bool {
        self.has_level
    }
}

fn has_level(steps: &[Step]) -> bool {
    let is_one = |step: &Step| {
        matches!(
            step,
            Step::Level | Step::CapitalLevel | Step::ShortLevel | Step::Sign
        )
    };
    steps.iter().any(is_one)
}

/// The text that rows may fit.
pub(super) struct Ahead<'t> {
    text: &'t str,
    /// The same without blanks, and what follows a level that stands there.
    word: &'t str,
    behind_level: Option<&'t str>,
    /// Its first byte, the second one, and the first one that is no blank behind the first; 0 if there is none.
    pub(super) first: u8,
    pub(super) second: u8,
    pub(super) second_word: u8,
}

impl<'t> Ahead<'t> {
    pub(super) fn new(text: &'t str) -> Ahead<'t> {
        let bytes = text.as_bytes();
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        let mut behind = bytes.iter().skip(1);
        let word = text.trim_start_matches(' ');
        Ahead {
            word,
            behind_level: behind_level(word),
            text,
            first: at(0),
            second: at(1),
            second_word: behind.find(|byte| **byte != b' ').copied().unwrap_or(0),
        }
    }
}

/// Follows steps as far as they say for certain what a text has, and draws nothing.
fn may_fit(steps: &[Step], ahead: &Ahead<'_>) -> bool {
    let mut rest = ahead.text;
    for step in steps {
        rest = match step {
            Step::Literal(literal) => match rest.strip_prefix(&**literal) {
                Some(rest) => rest,
                None => return false,
            },
            Step::Blanks(least) => {
                let after = rest.trim_start_matches(' ');
                if rest.len() - after.len() < *least {
                    return false;
                }
                after
            }
            Step::Says(_) => rest,
            Step::Level | Step::CapitalLevel | Step::ShortLevel => {
                let is_loud = !matches!(step, Step::Level);
                if is_loud && !rest.starts_with(|first: char| first.is_ascii_uppercase()) {
                    return false;
                }
                let behind = if rest.len() == ahead.word.len() {
                    ahead.behind_level
                } else {
                    behind_level(rest)
                };
                match behind {
                    Some(behind) => behind,
                    None => return false,
                }
            }
            Step::Field {
                take: Take::Number, ..
            } if rest.starts_with(|first: char| first.is_ascii_digit()) => {
                rest.trim_start_matches(|letter: char| letter.is_ascii_digit())
            }
            Step::Field {
                take: Take::Qualified | Take::Source,
                ..
            } => {
                let word = rest.split(' ').next().unwrap_or_default();
                return word.trim_end_matches(':').contains(['.', ':']);
            }
            Step::Field {
                take: Take::Number, ..
            } => return false,
            Step::Field {
                take: Take::Word | Take::Hexadecimal,
                follow,
                ..
            } => {
                let is_end =
                    |byte: &u8| matches!(byte, b' ' | b'\n' | b'\t') || follow.contains(byte);
                let mut head = rest.as_bytes().iter().take(FIELD_BYTES_MAX);
                match head.position(is_end).map(|length| rest.get(length..)) {
                    Some(Some(behind)) if behind.len() < rest.len() => behind,
                    Some(_) => return false,
                    None => return true,
                }
            }
            Step::Letter => match rest.as_bytes() {
                [b'A'..=b'Z', next, ..] if !next.is_ascii_alphabetic() => &rest[1..],
                _ => return false,
            },
            Step::Message(tail) => return tail.may_fit(rest),
            _ => return true,
        };
    }
    true
}

/// The bytes that a step may begin with.
fn seconds_of(step: Option<&Step>) -> [bool; 256] {
    let mut set = [true; 256];
    for (byte, is_in) in (0..=u8::MAX).zip(set.iter_mut()) {
        *is_in = match step {
            Some(Step::Literal(literal)) => literal.as_bytes()[0] == byte,
            Some(Step::Level | Step::Letter | Step::Label) => byte.is_ascii_alphabetic(),
            Some(Step::CapitalLevel | Step::ShortLevel) => byte.is_ascii_uppercase(),
            Some(Step::Field {
                take: Take::Number, ..
            }) => byte.is_ascii_digit(),
            _ => true,
        };
    }
    set
}

/// The text behind a word for a level.
fn behind_level(text: &str) -> Option<&str> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let is_level = levels::is_word(&text.as_bytes()[..letters]);
    is_level.then(|| text[letters..].trim_start_matches(|digit: char| digit.is_ascii_digit()))
}

fn read(text: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut literal = String::new();
    while let Some(letter) = text.next() {
        let step = match letter {
            '\\' => {
                literal.extend(text.next());
                continue;
            }
            '~' => Step::Blanks(1),
            '_' => Step::Blanks(0),
            '{' => {
                let inside: String = text.by_ref().take_while(|c| *c != '}').collect();
                field(&inside)
            }
            '(' => Step::Optional(read(text)),
            ')' => {
                text.next();
                break;
            }
            other => {
                literal.push(other);
                continue;
            }
        };
        if !literal.is_empty() {
            steps.push(Step::Literal(std::mem::take(&mut literal).into()));
        }
        steps.push(step);
    }
    if !literal.is_empty() {
        steps.push(Step::Literal(literal.into()));
    }
    steps
}

fn field(inside: &str) -> Step {
    let (name, kind) = inside.split_once(':').unwrap_or((inside, ""));
    let take = match kind {
        "w" => Take::Word,
        "e" => Take::MaybeEmpty,
        "i" => Take::Number,
        "f" => Take::Decimal,
        "c" => Take::Client,
        "a" => Take::Peer,
        "u" => Take::Capitals,
        "q" => Take::Qualified,
        "p" => Take::Place,
        "l" => Take::Level,
        "s" => Take::Source,
        "h" => Take::Hexadecimal,
        "d" => Take::Digit,
        "x" => Take::Spans,
        "g" => Take::Hyphenated,
        "t" => Take::MaybeText,
        _ => Take::Text,
    };
    match name {
        "time" => Step::Time,
        "clock" => Step::Clock,
        "level" => Step::Level,
        "LEVEL" => Step::CapitalLevel,
        "abbr" => Step::ShortLevel,
        "is" => Step::Says(Severity::of_word(kind.as_bytes()).map_or("info", Severity::name)),
        "letter" => Step::Letter,
        "sign" => Step::Sign,
        "label" => Step::Label,
        "code" => Step::Code,
        "msg" => Step::Message(tails::Tail::of_name(kind)),
        _ => Step::Field {
            name: name.into(),
            take,
            follow: Box::new([]),
            end: "".into(),
        },
    }
}

/// Notes for each field the bytes that may follow it; `behind` are those that follow all steps.
fn set_follow(steps: &mut [Step], behind: &[u8]) {
    for at in 0..steps.len() {
        let (head, rest) = steps.split_at_mut(at + 1);
        let mut after = first(rest);
        if is_optional(rest) {
            after.extend_from_slice(behind);
        }
        match &mut head[at] {
            Step::Field {
                take, follow, end, ..
            } => {
                match rest {
                    [Step::Literal(literal), ..] => *end = literal.clone(),
                    [Step::Blanks(0), Step::Literal(literal), ..] if *take == Take::Text => {
                        (*take, *end) = (Take::Padded, literal.clone());
                    }
                    _ => {}
                }
                *follow = after.into();
            }
            Step::Optional(inner) => set_follow(inner, &after),
            _ => {}
        }
    }
}

/// Bytes that some steps may begin with.
fn first(steps: &[Step]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for step in steps {
        match step {
            Step::Literal(literal) => bytes.extend(literal.bytes().take(1)),
            Step::Blanks(_) => bytes.push(b' '),
            Step::Optional(inner) => bytes.extend(first(inner)),
            _ => {}
        }
        if !is_optional(std::slice::from_ref(step)) {
            break;
        }
    }
    bytes
}

fn is_optional(steps: &[Step]) -> bool {
    steps
        .iter()
        .all(|step| matches!(step, Step::Optional(_) | Step::Blanks(0)))
}

impl<'a> Pen<'_, '_, 'a> {
    /// Draws the steps; gives what is behind them.
    pub(super) fn steps(
        &mut self,
        steps: &[Step],
        mut rest: &'a str,
        times: Times<'_>,
    ) -> Option<&'a str> {
        for step in steps {
            rest = self.step(step, rest, times)?;
        }
        Some(rest)
    }

    fn step(&mut self, step: &Step, rest: &'a str, times: Times<'_>) -> Option<&'a str> {
        match step {
            Step::Literal(literal) => {
                let after = rest.strip_prefix(&**literal)?;
                self.sketch.literal(literal);
                Some(after)
            }
            Step::Blanks(least) => {
                let after = rest.trim_start_matches(' ');
                let count = rest.len() - after.len();
                (*least..=BLANKS_MAX).contains(&count).then_some(())?;
                self.sketch.literal(&rest[..count]);
                Some(after)
            }
            Step::Field {
                name,
                take,
                follow,
                end,
            } => self.field(name, *take, follow, end, rest),
            Step::Time => {
                let written = times.reader.program(rest.as_bytes(), times.received);
                self.time_or_clock(written, rest)
            }
            Step::Clock => {
                let end = find(&rest.as_bytes()[..rest.len().min(CLOCK_BYTES_MAX)], b": ")?;
                let clock = rest.get(..end)?;
                let written = times.reader.clock(clock.as_bytes(), times.received);
                let after = self.time_or_clock(written, clock)?;
                after.is_empty().then(|| &rest[end..])
            }
            Step::Optional(steps) => {
                let mark = self.sketch.mark();
                let made = self.beside.fields.len();
                Some(self.steps(steps, rest, times).unwrap_or_else(|| {
                    self.sketch.rewind(mark);
                    self.beside.fields.truncate(made);
                    rest
                }))
            }
            Step::Message(tail) => {
                (!rest.is_empty()).then_some(())?;
                tail.draw(rest, self)?;
                Some("")
            }
            fixed => self.fixed_step(fixed, rest),
        }
    }

    /// Draws the time that a text begins with. A clock without a day that is known is a part of the head, too.
    fn time_or_clock(&mut self, written: Option<TimestampText>, rest: &'a str) -> Option<&'a str> {
        let Some(written) = written else {
            let bytes = timestamps::clock_bytes(rest.as_bytes())?;
            let (clock, after) = rest.split_at_checked(bytes)?;
            self.text(TIME_FIELD, clock);
            return Some(after);
        };
        let (time, after) = rest.split_at_checked(written.bytes)?;
        self.time(&written, time);
        Some(after)
    }

    /// Draws a text of few that there may be, such as a level.
    fn fixed_step(&mut self, step: &Step, rest: &'a str) -> Option<&'a str> {
        match step {
            Step::Level => {
                let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
                let word = &rest.as_bytes()[..letters];
                // `trace3`, `DEBUG2`
                let digit = rest[letters..].bytes().next();
                let length = letters + usize::from(matches!(digit, Some(b'1'..=b'8')));
                levels::is_word(word).then(|| self.fixed(rest, length))
            }
            Step::CapitalLevel | Step::ShortLevel => {
                let letters = rest.bytes().take_while(u8::is_ascii_uppercase).count();
                let word = &rest.as_bytes()[..letters];
                let is_short = *step == Step::ShortLevel;
                let level = levels::of_word(word)?;
                if is_short {
                    self.level = (letters == 3).then_some(Some(level))?;
                } else if self.line_level != Some(level) {
                    return None;
                }
                Some(self.fixed(rest, letters))
            }
            Step::Says(level) => {
                self.level = Some(level);
                Some(rest)
            }
            Step::Letter => {
                self.level = Some(levels::of_letter(rest.bytes().next()?)?);
                Some(self.fixed(rest, 1))
            }
            Step::Sign => {
                let sign = rest.bytes().next()?;
                b".-*#".contains(&sign).then(|| self.fixed(rest, 1))
            }
            Step::Label => {
                let end = rest.find(':')?;
                let is_one = POSTGRES_LABELS.contains(&&rest[..end]);
                is_one.then(|| self.fixed(rest, end))
            }
            Step::Code => {
                let digits = rest.strip_prefix("AH")?;
                let count = digits.bytes().take_while(u8::is_ascii_digit).count();
                (3..=6).contains(&count).then_some(())?;
                let (code, after) = rest.split_at(count + 2);
                self.text("code", code);
                Some(after)
            }
            _ => None,
        }
    }

    /// Draws a text of few that there may be; gives the rest.
    fn fixed(&mut self, rest: &'a str, length: usize) -> &'a str {
        self.sketch.ascii(&rest.as_bytes()[..length]);
        &rest[length..]
    }

    fn field(
        &mut self,
        name: &str,
        take: Take,
        follow: &[u8],
        end: &str,
        rest: &'a str,
    ) -> Option<&'a str> {
        let is_end = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\t') || follow.contains(byte);
        let head = &rest.as_bytes()[..rest.len().min(FIELD_BYTES_MAX)];
        let length = match take {
            Take::Text | Take::Padded | Take::MaybeText => {
                let found = &head[..find(head, end.as_bytes())?];
                let trimmed = if take == Take::Padded {
                    found.trim_ascii_end()
                } else {
                    found
                };
                (!found.contains(&b'\n')).then_some(trimmed.len())?
            }
            Take::Number => head.iter().take_while(|byte| byte.is_ascii_digit()).count(),
            // An address of version 6 has colons.
            Take::Client | Take::Peer => head
                .iter()
                .position(|byte| is_end(byte) && *byte != b':')
                .unwrap_or(head.len()),
            // Its colons end no name.
            Take::Qualified | Take::Source => head
                .iter()
                .position(|byte| {
                    let is_close = *byte == b']' && follow.contains(&b']');
                    matches!(byte, b' ' | b'\n' | b'\t') || is_close
                })
                .map(|end| end - usize::from(head[..end].ends_with(b":")))?,
            Take::Spans => spans_bytes(head)?,
            Take::Hyphenated => {
                let word = head.iter().take_while(|byte| **byte > b' ').count();
                memchr::memrchr(b'-', &head[..word])?
            }
            _ => head.iter().position(is_end).unwrap_or(head.len()),
        };
        let (value, after) = rest.split_at_checked(length)?;
        match take {
            Take::MaybeEmpty | Take::MaybeText if value.is_empty() => {}
            _ if value.is_empty() => return None,
            Take::Number => self.slot(name, "i", Value::Int(canonical_int(value)?)),
            Take::Client => self.client(name, value, false)?,
            Take::Peer => self.client(name, value, true)?,
            Take::Decimal if !is_decimal(value) => return None,
            Take::Capitals if !value.bytes().all(is_capital) => return None,
            Take::Qualified if !value.contains(['.', ':']) => return None,
            Take::Level => {
                let level = Severity::of_word(value.as_bytes());
                self.level = level.map(Severity::name);
                self.text(name, value);
            }
            Take::Source if !is_source(value) => return None,
            Take::Hexadecimal if !is_hexadecimal(value) => return None,
            Take::Digit if !value.as_bytes()[0].is_ascii_digit() => return None,
            Take::Place => {
                let (_, line) = value.rsplit_once(':')?;
                canonical_int(line)?;
                self.text(name, value);
            }
            _ => self.text(name, value),
        }
        Some(after)
    }

    /// Draws the address of a client, with a port or without; `has_port` if there always is one. Sockets of the
    /// machine have a path.
    pub(super) fn client(&mut self, name: &str, value: &'a str, has_port: bool) -> Option<()> {
        let is_address = |byte: u8| byte.is_ascii_hexdigit() || b".:%[]".contains(&byte);
        if !value.bytes().all(is_address) {
            let is_word = value.bytes().all(|byte| byte > b' ' && byte != b'"');
            is_word.then(|| self.text(name, value))?;
            return Some(());
        }
        let parts = value.rsplit_once(':').and_then(|(address, port)| {
            let is_whole = address.starts_with('[') == address.ends_with(']');
            let is_one = !address.contains(':')
                || address.starts_with('[')
                || has_port && address.parse::<Ipv6Addr>().is_ok();
            let port = canonical_int(port).filter(|_| is_whole && is_one)?;
            Some((address, port))
        });
        let Some((address, port)) = parts else {
            self.text(name, value);
            self.make_text("remote_addr", value.trim_matches(['[', ']']));
            return Some(());
        };
        self.text(name, address);
        self.make_text("remote_addr", address.trim_matches(['[', ']']));
        self.sketch.literal(":");
        self.slot("remote_port", "i", Value::Int(port));
        Some(())
    }
}

/// The bytes of `request{method=GET}:query{id=7}`: spans of Rust's tracing, up to a colon and a blank.
fn spans_bytes(head: &[u8]) -> Option<usize> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let (mut at, mut has_values) = (0, false);
    loop {
        let name = head[at..].iter().take_while(|byte| is_name(byte)).count();
        at += name;
        if name == 0 {
            return None;
        }
        if head.get(at) == Some(&b'{') {
            has_values = true;
            at += closing_brace(&head[at..])? + 1;
        }
        match head.get(at..at + 2)? {
            [b':', b' '] => return has_values.then_some(at),
            [b':', _] => at += 1,
            _ => return None,
        }
    }
}

/// The place of the brace that closes the one that a text begins with.
fn closing_brace(text: &[u8]) -> Option<usize> {
    let (mut depth, mut is_quoted, mut is_escaped) = (0, false, false);
    text.iter().position(|byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            b'{' if !is_quoted => depth += 1,
            b'}' if !is_quoted => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

/// True for `cart.cpp:77`, also behind folders.
fn is_source(value: &str) -> bool {
    let parts = value
        .rsplit_once(':')
        .and_then(|(file, line)| Some((file.rsplit_once('.')?.1, line)));
    parts.is_some_and(|(ending, line)| SOURCES.contains(&ending) && canonical_int(line).is_some())
}

/// True for `1.234`.
fn is_decimal(value: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parts = value.split_once('.');
    parts.is_some_and(|(whole, fraction)| is_number(whole) && is_number(fraction))
}

fn is_hexadecimal(value: &str) -> bool {
    value.len() >= HEXADECIMAL_BYTES_MIN && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_capital(byte: u8) -> bool {
    byte.is_ascii_uppercase() || b"_-".contains(&byte)
}

/// The first place of a short text: its first byte is looked for, since lines are short, too.
pub(super) fn find(text: &[u8], short: &[u8]) -> Option<usize> {
    let first = *short.first()?;
    memchr_iter(first, text).find(|at| text[*at..].starts_with(short))
}
