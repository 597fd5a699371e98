//! The text of clients: statements between semicolons, parameters, and commands of sessions.
//!
//! Invariant: the parts of a text are found by its tokens: no semicolon and no `$1` in quotes, comments or texts in dollars
//! counts.

use std::ops::Range;

use crate::failure::{Code, Failure};

/// A token that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A word, as it is written.
    Word(String),
    /// A name in double quotes, without them.
    Name(String),
    /// A text in single quotes or dollars, without them.
    Text(String),
    Number(String),
    /// `$1`.
    Parameter(usize),
    Semicolon,
    Other(char),
}

/// A token and its place.
struct Placed {
    token: Token,
    place: Range<usize>,
}

/// Reads the tokens of a text.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str) -> Scanner<'t> {
        Scanner { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn char(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.text.len());
    }

    /// The length of the characters that are so.
    fn length_of(&self, is_part: impl Fn(char) -> bool) -> usize {
        let rest = self.rest();
        rest.find(|char| !is_part(char)).unwrap_or(rest.len())
    }

    fn skip_blanks(&mut self) {
        loop {
            let before = self.at;
            let blanks = self.length_of(char::is_whitespace);
            self.advance(blanks);
            if self.rest().starts_with("--") {
                let line = self.length_of(|char| char != '\n');
                self.advance(line);
            } else if self.rest().starts_with("/*") {
                self.skip_comment();
            }
            if self.at == before {
                return;
            }
        }
    }

    /// Comments nest.
    fn skip_comment(&mut self) {
        let mut depth = 0_usize;
        while !self.rest().is_empty() {
            if self.rest().starts_with("/*") {
                depth += 1;
                self.advance(2);
            } else if self.rest().starts_with("*/") {
                depth = depth.saturating_sub(1);
                self.advance(2);
                if depth == 0 {
                    return;
                }
            } else {
                let char = self.char().map_or(1, char::len_utf8);
                self.advance(char);
            }
        }
    }

    /// A text to the next quote that is not doubled, behind its first one.
    fn quoted(&mut self, quote: char, has_escapes: bool) -> String {
        let mut inner = String::new();
        self.advance(1);
        while let Some(char) = self.char() {
            self.advance(char.len_utf8());
            if has_escapes && char == '\\' {
                if let Some(next) = self.char() {
                    inner.push(next);
                    self.advance(next.len_utf8());
                }
            } else if char != quote {
                inner.push(char);
            } else if self.char() == Some(quote) {
                inner.push(quote);
                self.advance(1);
            } else {
                return inner;
            }
        }
        inner
    }

    /// The delimiter of a text in dollars, if one begins here: `$$` or `$name$`.
    fn dollars(&self) -> Option<&'t str> {
        let rest = self.rest();
        let inner = rest.strip_prefix('$')?;
        let is_part = |char: char| char.is_alphanumeric() || char == '_';
        let end = inner.find(|char| !is_part(char)).unwrap_or(inner.len());
        let begins_well = !inner.starts_with(|char: char| char.is_ascii_digit());
        let ends_well = inner.get(end..)?.starts_with('$');
        (begins_well && ends_well).then(|| rest.get(..end + 2))?
    }

    fn token(&mut self) -> Option<Token> {
        let char = self.char()?;
        if let Some(delimiter) = self.dollars() {
            self.advance(delimiter.len());
            let rest = self.rest();
            let end = rest.find(delimiter).unwrap_or(rest.len());
            let inner = rest.get(..end).unwrap_or_default().to_owned();
            self.advance(end + delimiter.len());
            return Some(Token::Text(inner));
        }
        let is_word = |char: char| char.is_alphanumeric() || char == '_' || char == '$';
        Some(match char {
            '\'' => Token::Text(self.quoted('\'', false)),
            '"' => Token::Name(self.quoted('"', false)),
            ';' => {
                self.advance(1);
                Token::Semicolon
            }
            '$' if self
                .rest()
                .chars()
                .nth(1)
                .is_some_and(|next| next.is_ascii_digit()) =>
            {
                self.advance(1);
                let length = self.length_of(|char| char.is_ascii_digit());
                let digits = self.rest().get(..length).unwrap_or_default();
                self.advance(length);
                Token::Parameter(digits.parse().unwrap_or(usize::MAX))
            }
            char if char.is_ascii_digit() => {
                let length = self.length_of(|char| char.is_alphanumeric() || char == '.');
                let digits = self.rest().get(..length).unwrap_or_default();
                self.advance(length);
                Token::Number(digits.to_owned())
            }
            char if char.is_alphabetic() || char == '_' => {
                let length = self.length_of(is_word);
                let word = self.rest().get(..length).unwrap_or_default();
                self.advance(length);
                let has_escapes = word.eq_ignore_ascii_case("e");
                if has_escapes && self.char() == Some('\'') {
                    Token::Text(self.quoted('\'', true))
                } else {
                    Token::Word(word.to_owned())
                }
            }
            other => {
                self.advance(other.len_utf8());
                Token::Other(other)
            }
        })
    }
}

impl Iterator for Scanner<'_> {
    type Item = Placed;

    fn next(&mut self) -> Option<Placed> {
        self.skip_blanks();
        let begin = self.at;
        let token = self.token()?;
        let place = begin..self.at;
        Some(Placed { token, place })
    }
}

/// The statements of a text, without those that are empty.
pub(crate) fn statements(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut current: Option<Range<usize>> = None;
    for Placed { token, place } in Scanner::new(text) {
        if token == Token::Semicolon {
            all.extend(current.take());
        } else {
            let begin = current.map_or(place.start, |current| current.start);
            current = Some(begin..place.end);
        }
    }
    all.extend(current);
    let texts = all.into_iter().filter_map(|place| text.get(place));
    texts.collect()
}

/// The largest number of a parameter.
pub(crate) fn parameters(text: &str) -> usize {
    let numbers = Scanner::new(text).filter_map(|placed| match placed.token {
        Token::Parameter(number) => Some(number),
        _ => None,
    });
    numbers.max().unwrap_or(0)
}

/// The longest statement with values in the place of its parameters: a value may stand in many places.
const FILLED_BYTES_MAX: usize = 1 << 20;

/// The statement with other texts in the place of its parameters.
///
/// # Errors
/// When that is too long.
pub(crate) fn with_values(text: &str, value: impl Fn(usize) -> String) -> Result<String, Failure> {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for Placed { token, place } in Scanner::new(text) {
        if let Token::Parameter(number) = token {
            out.push_str(text.get(copied..place.start).unwrap_or_default());
            let value = value(number);
            if out.len() + value.len() > FILLED_BYTES_MAX {
                let message = format!(
                    "the statement with its values is longer than {} MiB",
                    FILLED_BYTES_MAX >> 20
                );
                return Err(Failure::new(Code::TooComplex, message));
            }
            out.push_str(&value);
            copied = place.end;
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok(out)
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Nothing.
    Empty,
    /// A question for the engine.
    Question,
    /// A transaction begins.
    Begin,
    /// A transaction ends, and keeps what it did.
    Commit,
    /// A transaction ends, and keeps nothing.
    Rollback,
    /// A point within a transaction, with the answer of the command.
    Savepoint(&'static str),
    /// A setting gets a value; `None` is its default.
    Set { name: String, value: Option<String> },
    /// A setting is shown; `all` are all.
    Show(String),
    /// All settings get their defaults, with the answer of the command.
    Reset,
    /// The session begins anew.
    Discard,
    /// A prepared statement is removed; `None` are all.
    Deallocate(Option<String>),
    /// A cursor opens over a question.
    Declare { name: String, question: String },
    /// Rows of a cursor; `None` are all that are left.
    Fetch { name: String, count: Option<u64> },
    /// A cursor closes; `None` are all.
    Close(Option<String>),
    /// Something that does nothing here, with the answer of the command.
    Ignored(&'static str),
    /// Something that would write.
    Write(String),
    /// Something that is not supported.
    Unsupported(String),
}

/// Reads the words of a command.
struct Words<'t> {
    text: &'t str,
    tokens: Vec<Placed>,
    at: usize,
}

impl Words<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|placed| &placed.token)
    }

    /// The next word in small letters, if it is one.
    fn word(&self) -> Option<String> {
        match self.peek()? {
            Token::Word(word) => Some(word.to_ascii_lowercase()),
            _ => None,
        }
    }

    /// Passes a word, if it is the next one.
    fn pass(&mut self, word: &str) -> bool {
        let is_next = self.word().is_some_and(|next| next == word);
        self.at += usize::from(is_next);
        is_next
    }

    /// Passes the first of these words that is next.
    fn pass_any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.pass(word))
    }

    fn is_other(&self, wanted: char) -> bool {
        self.peek() == Some(&Token::Other(wanted))
    }

    /// A name, with the dots in it.
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        loop {
            match self.peek()? {
                Token::Word(word) => name.push_str(&word.to_ascii_lowercase()),
                Token::Name(quoted) => name.push_str(quoted),
                _ => return None,
            }
            self.at += 1;
            if !self.is_other('.') {
                return Some(name);
            }
            self.at += 1;
            name.push('.');
        }
    }

    /// The text from the next token on.
    fn rest(&self) -> String {
        let begin = self.tokens.get(self.at).map(|placed| placed.place.start);
        let rest = begin.and_then(|begin| self.text.get(begin..));
        rest.unwrap_or_default().to_owned()
    }

    /// The values behind `=` or `TO`, joined by commas.
    fn values(&mut self) -> String {
        let mut values: Vec<String> = Vec::new();
        let mut sign = "";
        while let Some(token) = self.peek() {
            match token {
                Token::Word(text) | Token::Name(text) | Token::Text(text) | Token::Number(text) => {
                    values.push(format!("{sign}{text}"));
                    sign = "";
                }
                Token::Other('-') => sign = "-",
                _ => {}
            }
            self.at += 1;
        }
        values.join(", ")
    }
}

/// Words that begin something that would write.
const WRITES: [&str; 21] = [
    "insert", "update", "delete", "merge", "truncate", "create", "alter", "drop", "grant",
    "revoke", "comment", "vacuum", "reindex", "cluster", "refresh", "import", "security",
    "reassign", "call", "do", "analyze",
];

/// The command of a statement.
pub(crate) fn command(text: &str) -> Command {
    let tokens: Vec<Placed> = Scanner::new(text).collect();
    let mut words = Words {
        text,
        tokens,
        at: 0,
    };
    let Some(first) = words.word() else {
        return if words.tokens.is_empty() {
            Command::Empty
        } else {
            Command::Question
        };
    };
    words.at += 1;
    of_transactions(&first, &mut words)
        .or_else(|| of_settings(&first, &mut words))
        .or_else(|| of_cursors(&first, &mut words))
        .unwrap_or_else(|| other(&first))
}

fn of_transactions(first: &str, words: &mut Words<'_>) -> Option<Command> {
    Some(match first {
        "begin" => Command::Begin,
        "start" if words.pass("transaction") => Command::Begin,
        "commit" | "end" => Command::Commit,
        "rollback" => {
            words.pass_any(&["work", "transaction"]);
            if words.pass("to") {
                Command::Savepoint("ROLLBACK")
            } else {
                Command::Rollback
            }
        }
        "abort" => Command::Rollback,
        "savepoint" => Command::Savepoint("SAVEPOINT"),
        "release" => Command::Savepoint("RELEASE"),
        _ => return None,
    })
}

fn of_settings(first: &str, words: &mut Words<'_>) -> Option<Command> {
    Some(match first {
        "set" => set(words)?,
        "reset" => {
            if words.pass("all") {
                return Some(Command::Reset);
            }
            let name = setting(words)?;
            Command::Set { name, value: None }
        }
        "show" => {
            // Tables and columns are shown by the engine.
            if matches!(words.word().as_deref(), Some("tables" | "columns")) {
                return Some(Command::Question);
            }
            Command::Show(setting(words)?)
        }
        "discard" => Command::Discard,
        _ => return None,
    })
}

/// The name of a setting, of which some are several words.
fn setting(words: &mut Words<'_>) -> Option<String> {
    if words.pass("time") {
        words.pass("zone");
        return Some("timezone".to_owned());
    }
    if words.pass("transaction") {
        words.pass("isolation");
        words.pass("level");
        return Some("transaction_isolation".to_owned());
    }
    if words.pass("names") {
        return Some("client_encoding".to_owned());
    }
    words.name()
}

fn set(words: &mut Words<'_>) -> Option<Command> {
    words.pass_any(&["session", "local"]);
    if matches!(
        words.word().as_deref(),
        Some("characteristics" | "transaction")
    ) {
        // Levels of isolation are all the same where nothing is written.
        return Some(Command::Ignored("SET"));
    }
    let is_bare = matches!(words.word().as_deref(), Some("time" | "names"));
    let name = setting(words)?;
    if !is_bare && !words.pass("to") {
        if !words.is_other('=') {
            return None;
        }
        words.at += 1;
    }
    let value = if words.pass("default") {
        None
    } else {
        Some(words.values())
    };
    Some(Command::Set { name, value })
}

fn of_cursors(first: &str, words: &mut Words<'_>) -> Option<Command> {
    Some(match first {
        "deallocate" => {
            words.pass("prepare");
            if words.pass("all") {
                Command::Deallocate(None)
            } else {
                Command::Deallocate(Some(words.name()?))
            }
        }
        "declare" => {
            let name = words.name()?;
            while words.at < words.tokens.len() {
                if words.pass("for") {
                    let question = words.rest();
                    return Some(Command::Declare { name, question });
                }
                if words.pass("binary") {
                    // The form is that of the FETCH.
                    return Some(Command::Unsupported("BINARY of DECLARE".to_owned()));
                }
                words.at += 1;
            }
            return None;
        }
        "fetch" => fetch(words)?,
        "close" => {
            if words.pass("all") {
                Command::Close(None)
            } else {
                Command::Close(Some(words.name()?))
            }
        }
        _ => return None,
    })
}

/// Only forward: rows are sent as they come.
fn fetch(words: &mut Words<'_>) -> Option<Command> {
    words.pass("forward");
    let number = match words.peek()? {
        Token::Number(digits) => Some(digits.parse().ok()?),
        _ => None,
    };
    words.at += usize::from(number.is_some());
    let count = if number.is_some() {
        number
    } else if words.pass("all") {
        None
    } else {
        words.pass("next");
        Some(1)
    };
    words.pass_any(&["from", "in"]);
    let name = words.name()?;
    Some(Command::Fetch { name, count })
}

fn other(first: &str) -> Command {
    match first {
        "listen" => Command::Ignored("LISTEN"),
        "unlisten" => Command::Ignored("UNLISTEN"),
        "notify" | "lock" | "load" | "checkpoint" | "copy" | "prepare" | "execute" | "fetch"
        | "move" | "declare" => {
            let name = first.to_ascii_uppercase();
            Command::Unsupported(name)
        }
        _ if WRITES.contains(&first) => Command::Write(first.to_ascii_uppercase()),
        _ => Command::Question,
    }
}

/// The answer of a command that asks: `SELECT 5` has the number of rows, other answers have none.
pub(crate) fn tag(text: &str, rows: u64) -> String {
    let first = Scanner::new(text).next().map(|placed| placed.token);
    let word = match first {
        Some(Token::Word(word)) => word.to_ascii_uppercase(),
        _ => String::new(),
    };
    match &*word {
        "EXPLAIN" | "SHOW" => word,
        "FETCH" => format!("FETCH {rows}"),
        _ => format!("SELECT {rows}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split_at_semicolons() {
        for (text, expected) in [
            ("SELECT 1; SELECT 2;", &["SELECT 1", "SELECT 2"][..]),
            ("SELECT ';' ; -- a;b\n/* ; /* ; */ */", &["SELECT ';'"]),
            (
                "SELECT \"a;b\", $$;$$, $x$;$$;$x$",
                &["SELECT \"a;b\", $$;$$, $x$;$$;$x$"],
            ),
            ("SELECT E'\\';', 'it''s;'", &["SELECT E'\\';', 'it''s;'"]),
            (" ; ;", &[]),
            ("SELECT 'no end;", &["SELECT 'no end;"]),
        ] {
            assert_eq!(statements(text), expected, "{text}");
        }
    }

    #[test]
    fn parameters_get_values() {
        let text = "SELECT $1, '$2', \"$3\", $$ $4 $$, a$5 /* $6 */ WHERE x=$10";
        assert_eq!(parameters(text), 10);
        let filled = with_values(text, |number| format!("<{number}>")).unwrap();
        assert_eq!(
            filled,
            "SELECT <1>, '$2', \"$3\", $$ $4 $$, a$5 /* $6 */ WHERE x=<10>"
        );
    }

    /// One value in thousands of places would be gigabytes.
    #[test]
    fn statements_with_their_values_are_bounded() {
        let text = format!("SELECT {}", "$1,".repeat(80_000));
        let filled = with_values(&text, |_| "x".repeat(200_000));
        assert!(filled.is_err());
        assert!(with_values(&text, |_| "'x'".to_owned()).is_ok());
        let filled = with_values("SELECT $1, $1", |_| "x".repeat(200_000));
        assert_eq!(filled.unwrap().len(), 400_009);
    }

    #[test]
    fn commands_are_known() {
        let set = |name: &str, value: Option<&str>| Command::Set {
            name: name.to_owned(),
            value: value.map(str::to_owned),
        };
        let fetch = |name: &str, count| Command::Fetch {
            name: name.to_owned(),
            count,
        };
        for (text, expected) in [
            ("", Command::Empty),
            ("-- nothing", Command::Empty),
            ("select 1", Command::Question),
            ("(select 1)", Command::Question),
            ("BEGIN READ ONLY", Command::Begin),
            (
                "start transaction isolation level serializable",
                Command::Begin,
            ),
            ("COMMIT AND CHAIN", Command::Commit),
            ("ROLLBACK TO SAVEPOINT a", Command::Savepoint("ROLLBACK")),
            ("rollback work", Command::Rollback),
            (
                "SET extra_float_digits = 3",
                set("extra_float_digits", Some("3")),
            ),
            ("SET SESSION TIME ZONE 'UTC'", set("timezone", Some("UTC"))),
            ("set timezone to default", set("timezone", None)),
            (
                "SET search_path TO a, \"B\"",
                set("search_path", Some("a, B")),
            ),
            (
                "SET logpond.incomplete = 'error'",
                set("logpond.incomplete", Some("error")),
            ),
            (
                "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
                Command::Ignored("SET"),
            ),
            ("SET x", Command::Question),
            (
                "SHOW TRANSACTION ISOLATION LEVEL",
                Command::Show("transaction_isolation".to_owned()),
            ),
            ("show all", Command::Show("all".to_owned())),
            ("SHOW TABLES", Command::Question),
            ("DEALLOCATE ALL", Command::Deallocate(None)),
            (
                "deallocate \"_p\"",
                Command::Deallocate(Some("_p".to_owned())),
            ),
            ("FETCH FORWARD 100 FROM c", fetch("c", Some(100))),
            ("fetch all in \"C\"", fetch("C", None)),
            ("fetch c", fetch("c", Some(1))),
            (
                "DECLARE c BINARY CURSOR FOR SELECT 1",
                Command::Unsupported("BINARY of DECLARE".to_owned()),
            ),
            (
                "insert into logs values (1)",
                Command::Write("INSERT".to_owned()),
            ),
            (
                "COPY logs TO STDOUT",
                Command::Unsupported("COPY".to_owned()),
            ),
        ] {
            assert_eq!(command(text), expected, "{text}");
        }
    }

    #[test]
    fn a_cursor_has_the_rest_of_its_text() {
        let declared = command("DECLARE \"c\" NO SCROLL CURSOR WITHOUT HOLD FOR SELECT 1 -- x");
        let expected = Command::Declare {
            name: "c".to_owned(),
            question: "SELECT 1 -- x".to_owned(),
        };
        assert_eq!(declared, expected);
    }

    #[test]
    fn answers_have_tags() {
        for (text, expected) in [
            ("select 1", "SELECT 3"),
            ("WITH a AS (SELECT 1) SELECT * FROM a", "SELECT 3"),
            ("explain select 1", "EXPLAIN"),
            ("VALUES (1)", "SELECT 3"),
        ] {
            assert_eq!(tag(text, 3), expected);
        }
    }
}
