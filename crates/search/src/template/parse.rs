//! From the text of a template to its parts.

use std::collections::BTreeMap;

use super::value::Value;
use super::{DEPTH_MAX, Dialect, Template, functions};

/// A part of a template.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Text that stays.
    Text(Vec<u8>),
    /// The value of an expression, which is printed unless it only sets a variable.
    Action(Pipeline),
    /// `if`
    If(Pipeline, Vec<Node>, Vec<Node>),
    /// `with`
    With(Pipeline, Vec<Node>, Vec<Node>),
    /// `range`
    Range(Pipeline, Vec<Node>, Vec<Node>),
    /// `template`
    Call(Box<str>, Option<Pipeline>),
    /// `break`
    Break,
    /// `continue`
    Continue,
}

/// Commands, each of which gets the value of the one before.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipeline {
    /// Variables that are set; two for the index and the value of a loop.
    pub(super) variables: Vec<Box<str>>,
    /// Whether they are new.
    pub(super) declares: bool,
    pub(super) commands: Vec<Vec<Operand>>,
}

/// A part of a command.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Value(Value),
    /// `.a.b`; `.` alone has no names.
    Fields(Vec<Box<str>>),
    /// `$x.a`
    Variable(Box<str>, Vec<Box<str>>),
    Function(Box<str>),
    /// `(…).a`
    Nested(Pipeline, Vec<Box<str>>),
}

/// The field that a template is.
pub(super) fn only_field(nodes: &[Node]) -> Option<&str> {
    let [Node::Action(pipeline)] = nodes else {
        return None;
    };
    match (&pipeline.variables[..], &pipeline.commands[..]) {
        ([], [command]) => match &command[..] {
            [Operand::Fields(names)] if names.len() == 1 => Some(&names[0]),
            _ => None,
        },
        _ => None,
    }
}

type Result<T> = std::result::Result<T, String>;

pub(super) fn parse(text: &str, dialect: Dialect) -> Result<Template> {
    let mut parser = Parser {
        dialect,
        pieces: pieces(text)?,
        at: 0,
        depth: 0,
        named: BTreeMap::new(),
    };
    let (root, end) = parser.nodes()?;
    match end {
        None => Ok(Template {
            root,
            named: parser.named,
        }),
        Some(word) => Err(format!("template: unexpected {{{{{word}}}}}")),
    }
}

/// Text, or what stands between braces.
enum Piece {
    Text(String),
    Action(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    /// `.a`, attached to what stands before it or not.
    Field(String, bool),
    Dot,
    Variable(String),
    Text(Vec<u8>),
    Int(i64),
    Float(f64),
    Sign(&'static str),
}

/// Cuts a template at its braces; `{{-` and `-}}` take the white space beside them away.
fn pieces(text: &str) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut trims = false;
    while let Some(open) = rest.find("{{") {
        let before = &rest[..open];
        let before = if trims { before.trim_start() } else { before };
        let mut inside = &rest[open + 2..];
        let trims_before = inside.starts_with('-') && inside[1..].starts_with(char::is_whitespace);
        let before = if trims_before {
            before.trim_end()
        } else {
            before
        };
        if trims_before {
            inside = &inside[1..];
        }
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        let (tokens, end) = if inside.trim_start().starts_with("/*") {
            let end = inside.find("*/").ok_or("template: unclosed comment")?;
            let blanks = inside[end + 2..].len() - inside[end + 2..].trim_start().len();
            (None, end + 2 + blanks)
        } else {
            let (tokens, end) = tokens(inside)?;
            (Some(tokens), end)
        };
        let behind = &inside[end..];
        trims = behind.starts_with("-}}");
        let close = if trims { "-}}" } else { "}}" };
        rest = behind
            .strip_prefix(close)
            .ok_or("template: unclosed action")?;
        pieces.extend(tokens.map(Piece::Action));
    }
    let rest = if trims { rest.trim_start() } else { rest };
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

/// The tokens of an action, and where its closing braces are.
fn tokens(text: &str) -> Result<(Vec<Token>, usize)> {
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut is_spaced = true;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    loop {
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            return Err("template: unclosed action".to_owned());
        };
        let closes = rest.starts_with("}}") || (is_spaced && rest.starts_with("-}}"));
        if closes {
            return Ok((tokens, at));
        }
        let word_bytes = |from: usize| {
            let part = &rest[from..];
            from + part.find(|c| !is_word(c)).unwrap_or(part.len())
        };
        let mut length = first.len_utf8();
        match first {
            c if c.is_whitespace() => {}
            '"' | '`' | '\'' => {
                let (value, used) = quoted(rest, first)?;
                tokens.push(match (first, std::str::from_utf8(&value)) {
                    ('\'', Ok(c)) => {
                        Token::Int(c.chars().next().map_or(0, |c| i64::from(u32::from(c))))
                    }
                    _ => Token::Text(value),
                });
                length = used;
            }
            '.' if rest[1..].starts_with(|c: char| is_word(c) && !c.is_ascii_digit()) => {
                length = word_bytes(1);
                tokens.push(Token::Field(rest[1..length].to_owned(), !is_spaced));
            }
            '$' => {
                length = word_bytes(1);
                tokens.push(Token::Variable(rest[..length].to_owned()));
            }
            '0'..='9' | '+' | '-' | '.'
                if first.is_ascii_digit()
                    || rest[1..].starts_with(|c: char| c.is_ascii_digit()) =>
            {
                length = rest[1..]
                    .find(|c: char| !is_word(c) && c != '.')
                    .map_or(rest.len(), |found| found + 1);
                tokens.push(number(&rest[..length])?);
            }
            '.' => tokens.push(Token::Dot),
            c if is_word(c) => {
                length = word_bytes(0);
                tokens.push(Token::Word(rest[..length].to_owned()));
            }
            _ => {
                let signs = [":=", "=", "|", "(", ")", ","];
                let sign = signs.into_iter().find(|sign| rest.starts_with(sign));
                let sign =
                    sign.ok_or_else(|| format!("template: unexpected {first:?} in command"))?;
                length = sign.len();
                tokens.push(Token::Sign(sign));
            }
        }
        is_spaced = first.is_whitespace() || matches!(first, '(' | '|' | '=' | ',');
        at += length;
    }
}

fn number(text: &str) -> Result<Token> {
    if let Ok(int) = text.parse() {
        return Ok(Token::Int(int));
    }
    let hexadecimal = text
        .strip_prefix("0x")
        .map(|digits| i64::from_str_radix(digits, 16));
    if let Some(Ok(int)) = hexadecimal {
        return Ok(Token::Int(int));
    }
    let float = crate::logql::number_of(text).map(Token::Float);
    float.ok_or_else(|| format!("template: bad number syntax: {text:?}"))
}

/// A quoted text and its length with the quotes.
fn quoted(text: &str, quote: char) -> Result<(Vec<u8>, usize)> {
    let unclosed = || "template: unterminated quoted string".to_owned();
    let inside = &text[1..];
    if quote == '`' {
        let end = inside.find('`').ok_or_else(unclosed)?;
        return Ok((inside.as_bytes()[..end].to_vec(), end + 2));
    }
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        let rest = &inside[at..];
        let c = rest.chars().next().ok_or_else(unclosed)?;
        match c {
            c if c == quote => return Ok((out, at + 2)),
            '\n' => return Err(unclosed()),
            '\\' => {
                let used = crate::logql::escape(&rest[1..], &mut out);
                at += 1 + used.ok_or("template: invalid escape in quoted string")?;
            }
            c => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                at += c.len_utf8();
            }
        }
    }
}

struct Parser {
    dialect: Dialect,
    pieces: Vec<Piece>,
    at: usize,
    depth: usize,
    named: BTreeMap<Box<str>, Vec<Node>>,
}

/// The word that ended a block: `end`, `else`, or `else` with the tokens of another `if`.
type End = Option<String>;

impl Parser {
    /// Nodes up to the end of their block, and the word that ends it.
    fn nodes(&mut self) -> Result<(Vec<Node>, End)> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("template: it nests deeper than {DEPTH_MAX} levels"));
        }
        let mut nodes = Vec::new();
        let end = loop {
            let Some(piece) = self.pieces.get_mut(self.at) else {
                break None;
            };
            self.at += 1;
            let tokens = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text(std::mem::take(text).into_bytes()));
                    continue;
                }
                Piece::Action(tokens) => std::mem::take(tokens),
            };
            let keyword = match tokens.first() {
                Some(Token::Word(word)) => word.as_str(),
                _ => "",
            };
            match keyword {
                "end" => break Some("end".to_owned()),
                "else" => {
                    if tokens.len() > 1 {
                        // What follows is a block of its own, which the same `end` closes.
                        self.at -= 1;
                        self.pieces[self.at] = Piece::Action(tokens[1..].to_vec());
                        break Some("else if".to_owned());
                    }
                    break Some("else".to_owned());
                }
                "if" | "with" | "range" => {
                    let keyword = keyword.to_owned();
                    nodes.push(self.block(&keyword, &tokens[1..])?);
                }
                "define" | "block" => self.define(&tokens, &mut nodes)?,
                "template" => nodes.push(call(&tokens, self.dialect)?),
                "break" => nodes.push(Node::Break),
                "continue" => nodes.push(Node::Continue),
                _ => nodes.push(Node::Action(whole_pipeline(&tokens, self.dialect)?)),
            }
        };
        self.depth -= 1;
        Ok((nodes, end))
    }

    fn block(&mut self, keyword: &str, tokens: &[Token]) -> Result<Node> {
        let pipeline = whole_pipeline(tokens, self.dialect)?;
        let (then, end) = self.nodes()?;
        let otherwise = match end.as_deref() {
            Some("end") => Vec::new(),
            Some("else") => match self.nodes()? {
                (nodes, Some(end)) if end == "end" => nodes,
                _ => return Err(format!("template: {keyword} without {{{{end}}}}")),
            },
            Some(_) => self.chained()?,
            None => return Err("template: unexpected EOF, expecting {{end}}".to_owned()),
        };
        Ok(match keyword {
            "if" => Node::If(pipeline, then, otherwise),
            "with" => Node::With(pipeline, then, otherwise),
            _ => Node::Range(pipeline, then, otherwise),
        })
    }

    /// `else if …`, which ends where the block does that it stands in.
    fn chained(&mut self) -> Result<Vec<Node>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("template: it nests deeper than {DEPTH_MAX} levels"));
        }
        let Some(Piece::Action(tokens)) = self.pieces.get_mut(self.at) else {
            return Err("template: unexpected EOF".to_owned());
        };
        let tokens = std::mem::take(tokens);
        self.at += 1;
        let node = match tokens.split_first() {
            Some((Token::Word(word), rest)) if matches!(&**word, "if" | "with") => {
                self.block(word, rest)?
            }
            _ => return Err("template: unexpected words behind else".to_owned()),
        };
        self.depth -= 1;
        Ok(vec![node])
    }

    fn define(&mut self, tokens: &[Token], nodes: &mut Vec<Node>) -> Result<()> {
        let Some(Token::Text(name)) = tokens.get(1) else {
            return Err("template: define needs a quoted name".to_owned());
        };
        let name: Box<str> = String::from_utf8_lossy(name).into();
        let (body, end) = self.nodes()?;
        if end.as_deref() != Some("end") {
            return Err("template: unexpected EOF, expecting {{end}}".to_owned());
        }
        self.named.insert(name.clone(), body);
        if tokens[0] == Token::Word("block".into()) {
            let data = whole_pipeline(&tokens[2..], self.dialect)?;
            nodes.push(Node::Call(name, Some(data)));
        }
        Ok(())
    }
}

fn call(tokens: &[Token], dialect: Dialect) -> Result<Node> {
    let Some(Token::Text(name)) = tokens.get(1) else {
        return Err("template: template needs a quoted name".to_owned());
    };
    let name = String::from_utf8_lossy(name).into();
    let data = match &tokens[2..] {
        [] => None,
        rest => Some(whole_pipeline(rest, dialect)?),
    };
    Ok(Node::Call(name, data))
}

fn whole_pipeline(tokens: &[Token], dialect: Dialect) -> Result<Pipeline> {
    let mut reader = Reader {
        dialect,
        tokens,
        at: 0,
        depth: 0,
    };
    let pipeline = reader.pipeline()?;
    match reader.tokens.get(reader.at) {
        None => Ok(pipeline),
        Some(token) => Err(format!(
            "template: unexpected {} in command",
            describe(token)
        )),
    }
}

fn describe(token: &Token) -> String {
    match token {
        Token::Word(word) | Token::Variable(word) => format!("{word:?}"),
        Token::Field(name, _) => format!("\".{name}\""),
        Token::Dot => "\".\"".to_owned(),
        Token::Sign(sign) => format!("{sign:?}"),
        Token::Text(_) => "string".to_owned(),
        Token::Int(_) | Token::Float(_) => "number".to_owned(),
    }
}

struct Reader<'t> {
    dialect: Dialect,
    tokens: &'t [Token],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn sign(&mut self, sign: &str) -> bool {
        let is_there = matches!(self.tokens.get(self.at), Some(Token::Sign(s)) if *s == sign);
        self.at += usize::from(is_there);
        is_there
    }

    fn pipeline(&mut self) -> Result<Pipeline> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("template: it nests deeper than {DEPTH_MAX} levels"));
        }
        let mut pipeline = Pipeline::default();
        self.variables(&mut pipeline);
        loop {
            let command = self.command()?;
            if command.is_empty() {
                return Err("template: missing value for command".to_owned());
            }
            pipeline.commands.push(command);
            if !self.sign("|") {
                self.depth -= 1;
                return Ok(pipeline);
            }
        }
    }

    /// `$x :=`, `$i, $x :=` and `$x =`
    fn variables(&mut self, pipeline: &mut Pipeline) {
        let name = |at: usize| match self.tokens.get(at) {
            Some(Token::Variable(name)) => Some(Box::<str>::from(name.as_str())),
            _ => None,
        };
        let is_set = |at: usize| match self.tokens.get(at) {
            Some(Token::Sign(":=")) => Some(true),
            Some(Token::Sign("=")) => Some(false),
            _ => None,
        };
        let Some(first) = name(self.at) else { return };
        if let Some(declares) = is_set(self.at + 1) {
            (pipeline.variables, pipeline.declares) = (vec![first], declares);
            self.at += 2;
        } else if self.tokens.get(self.at + 1) == Some(&Token::Sign(","))
            && let (Some(second), Some(declares)) = (name(self.at + 2), is_set(self.at + 3))
        {
            (pipeline.variables, pipeline.declares) = (vec![first, second], declares);
            self.at += 4;
        }
    }

    fn command(&mut self) -> Result<Vec<Operand>> {
        let mut operands = Vec::new();
        while let Some(token) = self.tokens.get(self.at) {
            let operand = match token {
                Token::Sign("(") => {
                    self.at += 1;
                    let inner = self.pipeline()?;
                    if !self.sign(")") {
                        return Err("template: unclosed left paren".to_owned());
                    }
                    operands.push(Operand::Nested(inner, self.fields()));
                    continue;
                }
                Token::Sign(_) => break,
                Token::Word(word) => match &**word {
                    "true" => Operand::Value(Value::Bool(true)),
                    "false" => Operand::Value(Value::Bool(false)),
                    "nil" => Operand::Value(Value::Nil),
                    name if functions::is_known(name, self.dialect) => {
                        let function = Operand::Function(name.into());
                        self.at += 1;
                        let fields = self.fields();
                        operands.push(if fields.is_empty() {
                            function
                        } else {
                            let commands = vec![vec![function]];
                            let alone = Pipeline {
                                commands,
                                ..Pipeline::default()
                            };
                            Operand::Nested(alone, fields)
                        });
                        continue;
                    }
                    name => return Err(format!("template: function {name:?} not defined")),
                },
                Token::Text(text) => Operand::Value(Value::Text(text.clone())),
                Token::Int(int) => Operand::Value(Value::Int(*int)),
                Token::Float(float) => Operand::Value(Value::Float(*float)),
                Token::Dot => Operand::Fields(Vec::new()),
                Token::Variable(name) => {
                    self.at += 1;
                    operands.push(Operand::Variable(name.as_str().into(), self.fields()));
                    continue;
                }
                Token::Field(name, _) => {
                    self.at += 1;
                    let mut names = vec![name.as_str().into()];
                    names.extend(self.fields());
                    operands.push(Operand::Fields(names));
                    continue;
                }
            };
            self.at += 1;
            operands.push(operand);
        }
        Ok(operands)
    }

    /// The fields that are attached to what was read.
    fn fields(&mut self) -> Vec<Box<str>> {
        let mut names = Vec::new();
        while let Some(Token::Field(name, true)) = self.tokens.get(self.at) {
            names.push(name.as_str().into());
            self.at += 1;
        }
        names
    }
}
