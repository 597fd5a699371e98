//! The language that rows of heads are written in.
//!
//! ```text
//! {time}~{level}~{pid:i} --- [_{thread}] {logger:w}_: {msg}
//! ```
//!
//! | text | line |
//! | --- | --- |
//! | `{name}` | text up to the literal behind it, on one line |
//! | `{name:w}` | a word: no blank, up to what may follow it |
//! | `{name:e}` | the same, or nothing |
//! | `{name:i}` | a whole number |
//! | `{name:q}` | a word with a point or `::` in it, such as a class |
//! | `{name:p}` | a word that a colon and a number end, such as a place in a source |
//! | `{name:c}` | an address, with a port or without: also `remote_addr`, `remote_port` |
//! | `{time}` | the time |
//! | `{level}` | a word for a level |
//! | `{letter}`, `{sign}` | a letter or a sign that is one: `E`, `#` |
//! | `{label}` | a label of PostgreSQL |
//! | `{code}` | a code of Apache, `AH00126` |
//! | `{msg}`, `{msg:tail}` | the message, with what a product writes behind it |
//! | `~`, `_` | blanks, one at least or none at least |
//! | `(…)?` | may be missing |
//! | `\(` | a character of these as it is |
//! | others | as they are |

use logpond_record::Value;
use memchr::memmem;

use super::{Pen, tails};
use crate::intake::access::canonical_int;
use crate::intake::access_format::Times;
use crate::intake::levels;

/// The longest text of a field; longer ones are none.
const FIELD_BYTES_MAX: usize = 512;

/// The most blanks that columns are padded with.
const BLANKS_MAX: usize = 40;

/// Labels of PostgreSQL; some stand before what belongs to a message and say no level.
const POSTGRES_LABELS: [&str; 18] = [
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
];

/// A head of lines.
pub(super) struct Row {
    pub(super) steps: Vec<Step>,
}

/// What comes next in a line.
#[derive(Debug)]
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
    Level,
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
    Word,
    MaybeEmpty,
    Number,
    Client,
    /// A word with a point or `::` in it.
    Qualified,
    /// A word that a colon and a number end.
    Place,
}

impl Row {
    /// Compiles a row. Rows are constants, so one that is wrong is found by a test.
    pub(super) fn new(text: &str) -> Row {
        let mut steps = read(&mut text.chars().peekable());
        set_follow(&mut steps, &[]);
        Row { steps }
    }

    /// False if the line cannot go on so: a cheap test before anything is drawn.
    pub(super) fn may_fit(&self, rest: &str) -> bool {
        match self.steps.first() {
            Some(Step::Literal(literal)) => rest.starts_with(&**literal),
            Some(Step::Blanks(1..)) => rest.starts_with(' '),
            _ => true,
        }
    }
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
        "c" => Take::Client,
        "q" => Take::Qualified,
        "p" => Take::Place,
        _ => Take::Text,
    };
    match name {
        "time" => Step::Time,
        "level" => Step::Level,
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
            Step::Field { follow, end, .. } => {
                if let Some(Step::Literal(literal)) = rest.first() {
                    *end = literal.clone();
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
                let written = times.reader.program(rest.as_bytes(), times.received)?;
                let (time, after) = rest.split_at_checked(written.bytes)?;
                self.time(&written, time);
                Some(after)
            }
            Step::Level => {
                let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
                let word = rest[..letters].as_bytes();
                // `trace3`, `DEBUG2`
                let digit = rest[letters..].bytes().next();
                let length = letters + usize::from(matches!(digit, Some(b'1'..=b'8')));
                levels::is_word(word).then(|| self.fixed(rest, length))
            }
            Step::Letter => {
                let letter = rest.bytes().next()?;
                b"TVDIWEFCN".contains(&letter).then(|| self.fixed(rest, 1))
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
            Take::Text => {
                let length = memmem::find(head, end.as_bytes())?;
                (!head[..length].contains(&b'\n')).then_some(length)?
            }
            Take::Number => head.iter().take_while(|byte| byte.is_ascii_digit()).count(),
            // An address of version 6 has colons.
            Take::Client => head
                .iter()
                .position(|byte| is_end(byte) && *byte != b':')
                .unwrap_or(head.len()),
            // Its colons end no name.
            Take::Qualified => head
                .iter()
                .position(|byte| matches!(byte, b' ' | b'\n' | b'\t'))
                .map(|end| end - usize::from(head[..end].ends_with(b":")))?,
            _ => head.iter().position(is_end).unwrap_or(head.len()),
        };
        let (value, after) = rest.split_at_checked(length)?;
        match take {
            Take::MaybeEmpty if value.is_empty() => {}
            _ if value.is_empty() => return None,
            Take::Number => self.slot(name, "i", Value::Int(canonical_int(value)?)),
            Take::Client => self.client(name, value)?,
            Take::Qualified if !value.contains(['.', ':']) => return None,
            Take::Place => {
                let (_, line) = value.rsplit_once(':')?;
                canonical_int(line)?;
                self.text(name, value);
            }
            _ => self.text(name, value),
        }
        Some(after)
    }

    /// Draws the address of a client, with a port or without. Sockets of the machine have a path.
    pub(super) fn client(&mut self, name: &str, value: &'a str) -> Option<()> {
        let is_address = |byte: u8| byte.is_ascii_hexdigit() || b".:%[]".contains(&byte);
        if !value.bytes().all(is_address) {
            let is_word = value.bytes().all(|byte| byte > b' ' && byte != b'"');
            is_word.then(|| self.text(name, value))?;
            return Some(());
        }
        let parts = value.rsplit_once(':').and_then(|(address, port)| {
            let is_whole = address.starts_with('[') == address.ends_with(']');
            let is_one = !address.contains(':') || address.starts_with('[');
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
