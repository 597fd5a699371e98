//! Scripts of pipelines: expressions of numbers, as Painless and Lucene expressions have them.
//!
//! ```text
//! body       = "if" "(" choice ")" branch ( "else" branch / body ) / [ "return" ] choice [ ";" ]
//! branch     = "{" body "}" / body
//! choice     = or [ "?" choice ":" choice ]
//! or         = and *( "||" and )              and   = equal *( "&&" equal )
//! equal      = order *( ( "==" / "!=" ) order )
//! order      = sum *( ( "<" / "<=" / ">" / ">=" ) sum )
//! sum        = product *( ( "+" / "-" ) product )
//! product    = unary *( ( "*" / "/" / "%" ) unary )
//! unary      = ( "-" / "+" / "!" ) unary / primary
//! primary    = number / "true" / "false" / "null" / parameter / call / "(" choice ")"
//! parameter  = "params." name / "params['" name "']" / name
//! call       = [ "Math." / "MovingFunctions." ] name "(" [ choice *( "," choice ) ] ")"
//! ```
//!
//! Invariant: length and depth are bounded, and a script has no loops, so that it ends.

use std::iter::Peekable;
use std::str::CharIndices;

use logpond_record::cast;
use serde_json::Value as Json;

use super::super::super::json::{bad, only, optional};
use super::moving_functions;
use crate::error::ApiError;

/// The longest script, in bytes.
const SCRIPT_BYTES_MAX: usize = 4096;

/// How deep expressions may be within one another.
const DEPTH_MAX: usize = 50;

/// A compiled script.
#[derive(Clone, Debug)]
pub(super) struct Script {
    body: Expression,
}

/// A result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Truth(bool),
    Null,
}

#[derive(Clone, Debug)]
enum Expression {
    Constant(Value),
    /// The parameter of this place.
    Parameter(usize),
    /// How many values there are.
    Length,
    Negative(Box<Expression>),
    Not(Box<Expression>),
    Binary(Operator, Box<(Expression, Expression)>),
    /// A condition with what holds if it is true, and if not.
    Choice(Box<(Expression, Expression, Expression)>),
    Call(Function, Vec<Expression>),
    /// A function of the values of a window, with further arguments.
    OfValues(moving_functions::Function, Vec<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

type Function = fn(&[f64]) -> f64;

/// Functions with the numbers of their arguments.
const FUNCTIONS: [(&str, usize, Function); 18] = [
    ("abs", 1, |x| x[0].abs()),
    ("cbrt", 1, |x| x[0].cbrt()),
    ("ceil", 1, |x| x[0].ceil()),
    ("cos", 1, |x| x[0].cos()),
    ("exp", 1, |x| x[0].exp()),
    ("floor", 1, |x| x[0].floor()),
    ("hypot", 2, |x| x[0].hypot(x[1])),
    ("ln", 1, |x| x[0].ln()),
    ("log", 1, |x| x[0].ln()),
    ("log10", 1, |x| x[0].log10()),
    ("max", 2, |x| x[0].max(x[1])),
    ("min", 2, |x| x[0].min(x[1])),
    ("pow", 2, |x| x[0].powf(x[1])),
    // As Java does: halves go up.
    ("round", 1, |x| (x[0] + 0.5).floor()),
    (
        "signum",
        1,
        |x| if x[0] == 0.0 { x[0] } else { x[0].signum() },
    ),
    ("sin", 1, |x| x[0].sin()),
    ("sqrt", 1, |x| x[0].sqrt()),
    ("tan", 1, |x| x[0].tan()),
];

/// Operators by how they bind, the loosest first.
const LEVELS: [&[(&str, Operator)]; 6] = [
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[
        ("===", Operator::Equal),
        ("!==", Operator::Unequal),
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
    ],
    &[
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
        ("%", Operator::Remainder),
    ],
];

/// Symbols, of which the longest comes first.
const SYMBOLS: [&str; 27] = [
    "===", "!==", "||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?",
    ":", "(", ")", "[", "]", "{", "}", ",", ".", ";",
];

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Text(String),
    Symbol(&'static str),
}

impl Script {
    /// Reads the member `script`: a text, or an object with `source` or `inline`.
    ///
    /// # Errors
    /// When it is none, or has something that is not supported.
    pub(super) fn read(given: Option<&Json>, parameters: &[&str]) -> Result<Script, ApiError> {
        let source = match given {
            Some(Json::String(source)) => source.clone(),
            Some(Json::Object(members)) => {
                only(members, &["source", "inline", "lang", "params"], "script")?;
                let has_params = members.get("params").is_some_and(|params| {
                    params.as_object().is_none_or(|params| !params.is_empty())
                });
                if has_params {
                    return Err(bad("[script] has no [params]: write the numbers into it"));
                }
                let source = optional(members, "source")?.or(optional(members, "inline")?);
                source.ok_or_else(|| bad("[script] needs [source]"))?
            }
            _ => return Err(bad("[script] is a text, or an object with [source]")),
        };
        if source.len() > SCRIPT_BYTES_MAX {
            return Err(bad(format!(
                "[script] has at most {SCRIPT_BYTES_MAX} bytes"
            )));
        }
        let mut parser = Parser {
            tokens: tokens(&source)?,
            at: 0,
            depth: 0,
            parameters,
        };
        let body = parser.body()?;
        match parser.tokens.get(parser.at) {
            None => Ok(Script { body }),
            Some(token) => Err(parser.unexpected(Some(token))),
        }
    }

    /// The result for the parameters and the values of a window.
    ///
    /// # Errors
    /// When an operator has operands that it is not for.
    pub(super) fn run(&self, parameters: &[f64], values: &[f64]) -> Result<Value, ApiError> {
        Run { parameters, values }.value(&self.body)
    }
}

fn tokens(source: &str) -> Result<Vec<Token>, ApiError> {
    let mut tokens = Vec::new();
    let mut rest = source.char_indices().peekable();
    while let Some((at, first)) = rest.peek().copied() {
        if first.is_whitespace() {
            rest.next();
        } else if first.is_ascii_digit() {
            tokens.push(Token::Number(number(source, &mut rest)?));
        } else if first.is_alphabetic() || first == '_' {
            let name = taken(source, &mut rest, |char| {
                char.is_alphanumeric() || char == '_'
            });
            tokens.push(Token::Name(name.to_owned()));
        } else if first == '\'' || first == '"' {
            rest.next();
            let text = taken(source, &mut rest, |char| char != first);
            tokens.push(Token::Text(text.to_owned()));
            if rest.next().is_none() {
                return Err(bad("a text of [script] has no end"));
            }
        } else {
            let mut symbols = SYMBOLS.into_iter();
            let symbol = symbols.find(|symbol| source[at..].starts_with(symbol));
            let symbol =
                symbol.ok_or_else(|| bad(format!("[script] does not support [{first}]")))?;
            for _ in 0..symbol.len() {
                rest.next();
            }
            tokens.push(Token::Symbol(symbol));
        }
    }
    Ok(tokens)
}

fn taken<'s>(
    source: &'s str,
    rest: &mut Peekable<CharIndices<'_>>,
    is_part: impl Fn(char) -> bool,
) -> &'s str {
    let start = rest.peek().map_or(source.len(), |(at, _)| *at);
    while rest.next_if(|(_, char)| is_part(*char)).is_some() {}
    let end = rest.peek().map_or(source.len(), |(at, _)| *at);
    &source[start..end]
}

/// A number, which may have an exponent and a letter for its type.
fn number(source: &str, rest: &mut Peekable<CharIndices<'_>>) -> Result<f64, ApiError> {
    let digits = |char: char| char.is_ascii_digit() || char == '.';
    let mut text = taken(source, rest, digits).to_owned();
    if rest
        .next_if(|(_, char)| matches!(char, 'e' | 'E'))
        .is_some()
    {
        text.push('e');
        if let Some((_, sign)) = rest.next_if(|(_, char)| matches!(char, '+' | '-')) {
            text.push(sign);
        }
        text.push_str(taken(source, rest, digits));
    }
    rest.next_if(|(_, char)| matches!(char, 'd' | 'D' | 'f' | 'F' | 'l' | 'L'));
    text.parse()
        .map_err(|_| bad(format!("[script] has [{text}], which is no number")))
}

struct Parser<'p> {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    parameters: &'p [&'p str],
}

impl Parser<'_> {
    fn has(&mut self, symbol: &str) -> bool {
        let is_there =
            matches!(self.tokens.get(self.at), Some(Token::Symbol(found)) if *found == symbol);
        self.at += usize::from(is_there);
        is_there
    }

    fn has_name(&mut self, name: &str) -> bool {
        let is_there =
            matches!(self.tokens.get(self.at), Some(Token::Name(found)) if found == name);
        self.at += usize::from(is_there);
        is_there
    }

    fn need(&mut self, symbol: &str) -> Result<(), ApiError> {
        if self.has(symbol) {
            return Ok(());
        }
        Err(self.unexpected(self.tokens.get(self.at)))
    }

    fn unexpected(&self, token: Option<&Token>) -> ApiError {
        let found = match token {
            None => "its end".to_owned(),
            Some(Token::Number(number)) => format!("[{number}]"),
            Some(Token::Name(text) | Token::Text(text)) => format!("[{text}]"),
            Some(Token::Symbol(symbol)) => format!("[{symbol}]"),
        };
        let functions: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
        bad(format!(
            "[script] does not support {found} at this place: it has numbers, params.{}, operators, ?:, if, Math's {} \
             and MovingFunctions of values",
            if self.parameters.is_empty() {
                "x"
            } else {
                self.parameters[0]
            },
            functions.join(", ")
        ))
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(bad(format!("[script] is deeper than {DEPTH_MAX} levels")));
        }
        let found = read(self);
        self.depth -= 1;
        found
    }

    fn body(&mut self) -> Result<Expression, ApiError> {
        self.deeper(|parser| {
            if !parser.has_name("if") {
                parser.has_name("return");
                let result = parser.choice()?;
                parser.has(";");
                return Ok(result);
            }
            parser.need("(")?;
            let condition = parser.choice()?;
            parser.need(")")?;
            let first = parser.branch()?;
            let second = if parser.has_name("else") {
                parser.branch()?
            } else {
                parser.body()?
            };
            Ok(Expression::Choice(Box::new((condition, first, second))))
        })
    }

    fn branch(&mut self) -> Result<Expression, ApiError> {
        if !self.has("{") {
            return self.body();
        }
        let body = self.body()?;
        self.need("}")?;
        Ok(body)
    }

    fn choice(&mut self) -> Result<Expression, ApiError> {
        self.deeper(|parser| {
            let condition = parser.binary(0)?;
            if !parser.has("?") {
                return Ok(condition);
            }
            let first = parser.choice()?;
            parser.need(":")?;
            let second = parser.choice()?;
            Ok(Expression::Choice(Box::new((condition, first, second))))
        })
    }

    /// An expression of the operators of a level and of those that bind closer.
    fn binary(&mut self, level: usize) -> Result<Expression, ApiError> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.has(symbol)) {
            let right = self.binary(level + 1)?;
            left = Expression::Binary(*operator, Box::new((left, right)));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, ApiError> {
        self.deeper(|parser| {
            if parser.has("-") {
                return Ok(Expression::Negative(Box::new(parser.unary()?)));
            }
            if parser.has("!") {
                return Ok(Expression::Not(Box::new(parser.unary()?)));
            }
            if parser.has("+") {
                return parser.unary();
            }
            parser.primary()
        })
    }

    fn primary(&mut self) -> Result<Expression, ApiError> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        let constant = |value| Ok(Expression::Constant(value));
        match &token {
            Some(Token::Number(number)) => constant(Value::Number(*number)),
            Some(Token::Symbol("(")) => {
                let inner = self.choice()?;
                self.need(")")?;
                Ok(inner)
            }
            Some(Token::Name(name)) => match &**name {
                "true" | "false" => constant(Value::Truth(name == "true")),
                "null" => constant(Value::Null),
                "params" => self.parameter(),
                "values" => {
                    self.need(".")?;
                    if !self.has_name("length") {
                        return Err(self.unexpected(self.tokens.get(self.at)));
                    }
                    Ok(Expression::Length)
                }
                "Math" => {
                    self.need(".")?;
                    let name = self.name()?;
                    match &*name {
                        "PI" => constant(Value::Number(std::f64::consts::PI)),
                        "E" => constant(Value::Number(std::f64::consts::E)),
                        name => self.call(name),
                    }
                }
                "MovingFunctions" => {
                    self.need(".")?;
                    self.of_values()
                }
                name => match self.parameters.iter().position(|known| *known == name) {
                    Some(at) => Ok(Expression::Parameter(at)),
                    None => self.call(name),
                },
            },
            token => Err(self.unexpected(token.as_ref())),
        }
    }

    fn name(&mut self) -> Result<String, ApiError> {
        match self.tokens.get(self.at) {
            Some(Token::Name(name)) => {
                self.at += 1;
                Ok(name.clone())
            }
            token => Err(self.unexpected(token)),
        }
    }

    fn parameter(&mut self) -> Result<Expression, ApiError> {
        let name = if self.has("[") {
            let Some(Token::Text(name)) = self.tokens.get(self.at).cloned() else {
                return Err(self.unexpected(self.tokens.get(self.at)));
            };
            self.at += 1;
            self.need("]")?;
            name
        } else {
            self.need(".")?;
            self.name()?
        };
        let found = self.parameters.iter().position(|known| *known == name);
        found.map(Expression::Parameter).ok_or_else(|| {
            bad(format!(
                "[script] names params.{name}, which is not in [buckets_path]"
            ))
        })
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, ApiError> {
        let mut arguments = Vec::new();
        if self.has(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.choice()?);
            if self.has(")") {
                return Ok(arguments);
            }
            self.need(",")?;
        }
    }

    fn call(&mut self, name: &str) -> Result<Expression, ApiError> {
        let known = FUNCTIONS.iter().find(|(known, ..)| *known == name);
        let Some((_, count, function)) = known else {
            return Err(self.unexpected(Some(&Token::Name(name.to_owned()))));
        };
        self.need("(")?;
        let arguments = self.arguments()?;
        if arguments.len() != *count {
            return Err(bad(format!("[{name}] of [script] has {count} arguments")));
        }
        Ok(Expression::Call(*function, arguments))
    }

    fn of_values(&mut self) -> Result<Expression, ApiError> {
        let name = self.name()?;
        let (function, count) = moving_functions::find(&name)?;
        self.need("(")?;
        if !self.has_name("values") {
            return Err(self.unexpected(self.tokens.get(self.at)));
        }
        let arguments = if self.has(",") {
            self.arguments()?
        } else {
            self.need(")")?;
            Vec::new()
        };
        if arguments.len() != count {
            return Err(bad(format!(
                "[MovingFunctions.{name}] has {count} arguments behind values"
            )));
        }
        Ok(Expression::OfValues(function, arguments))
    }
}

struct Run<'r> {
    parameters: &'r [f64],
    values: &'r [f64],
}

impl Run<'_> {
    /// Recursion is bounded by the depth of scripts.
    fn value(&self, expression: &Expression) -> Result<Value, ApiError> {
        Ok(match expression {
            Expression::Constant(value) => *value,
            Expression::Parameter(at) => {
                Value::Number(self.parameters.get(*at).copied().unwrap_or(f64::NAN))
            }
            Expression::Length => Value::Number(cast::float(self.values.len())),
            Expression::Negative(inner) => Value::Number(-self.number(inner)?),
            Expression::Not(inner) => Value::Truth(!self.truth(inner)?),
            Expression::Binary(operator, operands) => {
                return self.binary(*operator, &operands.0, &operands.1);
            }
            Expression::Choice(parts) => {
                let (condition, first, second) = &**parts;
                let chosen = if self.truth(condition)? {
                    first
                } else {
                    second
                };
                return self.value(chosen);
            }
            Expression::Call(function, arguments) => Value::Number(function(&self.all(arguments)?)),
            Expression::OfValues(function, arguments) => {
                Value::Number(function(self.values, &self.all(arguments)?))
            }
        })
    }

    fn all(&self, expressions: &[Expression]) -> Result<Vec<f64>, ApiError> {
        expressions.iter().map(|one| self.number(one)).collect()
    }

    fn number(&self, expression: &Expression) -> Result<f64, ApiError> {
        match self.value(expression)? {
            Value::Number(number) => Ok(number),
            other => Err(bad(format!(
                "[script] needs a number, not {}",
                shown(other)
            ))),
        }
    }

    fn truth(&self, expression: &Expression) -> Result<bool, ApiError> {
        match self.value(expression)? {
            Value::Truth(truth) => Ok(truth),
            other => Err(bad(format!(
                "[script] needs a condition, not {}",
                shown(other)
            ))),
        }
    }

    fn binary(
        &self,
        operator: Operator,
        left: &Expression,
        right: &Expression,
    ) -> Result<Value, ApiError> {
        let is_equal = || -> Result<bool, ApiError> {
            let (left, right) = (self.value(left)?, self.value(right)?);
            Ok(left == right)
        };
        let numbers =
            || -> Result<(f64, f64), ApiError> { Ok((self.number(left)?, self.number(right)?)) };
        let compare = |holds: fn(f64, f64) -> bool| -> Result<Value, ApiError> {
            numbers().map(|(a, b)| Value::Truth(holds(a, b)))
        };
        let compute = |result: fn(f64, f64) -> f64| -> Result<Value, ApiError> {
            numbers().map(|(a, b)| Value::Number(result(a, b)))
        };
        match operator {
            Operator::Or => Ok(Value::Truth(self.truth(left)? || self.truth(right)?)),
            Operator::And => Ok(Value::Truth(self.truth(left)? && self.truth(right)?)),
            Operator::Equal => is_equal().map(Value::Truth),
            Operator::Unequal => is_equal().map(|is_equal| Value::Truth(!is_equal)),
            Operator::Less => compare(|a, b| a < b),
            Operator::LessOrEqual => compare(|a, b| a <= b),
            Operator::Greater => compare(|a, b| a > b),
            Operator::GreaterOrEqual => compare(|a, b| a >= b),
            Operator::Add => compute(|a, b| a + b),
            Operator::Subtract => compute(|a, b| a - b),
            Operator::Multiply => compute(|a, b| a * b),
            Operator::Divide => compute(|a, b| a / b),
            Operator::Remainder => compute(|a, b| a % b),
        }
    }
}

fn shown(value: Value) -> &'static str {
    match value {
        Value::Number(_) => "a number",
        Value::Truth(_) => "true or false",
        Value::Null => "null",
    }
}
