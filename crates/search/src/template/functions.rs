//! The functions of templates: those of Go, those of Loki, and those of sprig that Loki has.

use std::cmp::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use logpond_record::cast;

use super::decimal::{self, Operation};
use super::value::Value;
use super::{Dialect, Scratch, alert_functions, format, layout, text};
use crate::logql::{bytes_of, duration_ns};
use crate::pipeline::json_value;

type Result<T> = std::result::Result<T, String>;

/// What functions know beside their arguments.
pub(super) struct Context<'a> {
    pub(super) now_ns: i64,
    pub(super) scratch: &'a mut Scratch,
}

/// All names.
const NAMES: [&str; 88] = [
    "__line__",
    "__timestamp__",
    "and",
    "or",
    "not",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "len",
    "index",
    "slice",
    "print",
    "println",
    "printf",
    "html",
    "js",
    "urlquery",
    "ToLower",
    "ToUpper",
    "Replace",
    "Trim",
    "TrimLeft",
    "TrimRight",
    "TrimPrefix",
    "TrimSuffix",
    "TrimSpace",
    "regexReplaceAll",
    "regexReplaceAllLiteral",
    "count",
    "urldecode",
    "urlencode",
    "bytes",
    "duration",
    "duration_seconds",
    "unixEpochMillis",
    "unixEpochNanos",
    "toDateInZone",
    "unixToTime",
    "alignLeft",
    "alignRight",
    "b64dec",
    "b64enc",
    "lower",
    "upper",
    "title",
    "trunc",
    "substr",
    "contains",
    "hasPrefix",
    "hasSuffix",
    "indent",
    "nindent",
    "replace",
    "repeat",
    "trim",
    "trimAll",
    "trimSuffix",
    "trimPrefix",
    "int",
    "float64",
    "add",
    "sub",
    "mul",
    "div",
    "mod",
    "addf",
    "subf",
    "mulf",
    "divf",
    "max",
    "min",
    "maxf",
    "minf",
    "ceil",
    "floor",
    "round",
    "fromJson",
    "date",
    "toDate",
    "now",
    "unixEpoch",
    "default",
    "call",
    "add1",
    "toString",
];

/// Whether there is a function of this name.
pub(super) fn is_known(name: &str, dialect: Dialect) -> bool {
    NAMES.contains(&name) || (dialect == Dialect::Alerts && alert_functions::NAMES.contains(&name))
}

/// Calls a function.
pub(super) fn call(name: &str, arguments: &[Value], context: &mut Context<'_>) -> Result<Value> {
    let known = builtin(name, arguments)
        .or_else(|| of_text(name, arguments))
        .or_else(|| of_numbers(name, arguments))
        .or_else(|| of_times(name, arguments, context.now_ns))
        .or_else(|| of_expressions(name, arguments, context.scratch))
        .or_else(|| alert_functions::call(name, arguments, context.scratch));
    known.unwrap_or_else(|| Err(format!("function {name:?} not defined")))
}

pub(super) fn argument(arguments: &[Value], at: usize, wanted: usize) -> Result<&Value> {
    if arguments.len() == wanted {
        Ok(&arguments[at])
    } else {
        Err(format!(
            "wrong number of args: want {wanted} got {}",
            arguments.len()
        ))
    }
}

fn builtin(name: &str, arguments: &[Value]) -> Option<Result<Value>> {
    Some(match name {
        "not" => argument(arguments, 0, 1).map(|value| Value::Bool(!value.is_true())),
        "eq" => match arguments.split_first() {
            Some((first, rest)) if !rest.is_empty() => {
                let is_any = rest.iter().map(|other| compare(first, other));
                is_any
                    .collect::<Result<Vec<_>>>()
                    .map(|orders| Value::Bool(orders.contains(&Some(Ordering::Equal))))
            }
            _ => Err("missing argument for comparison".to_owned()),
        },
        "ne" | "lt" | "le" | "gt" | "ge" => argument(arguments, 1, 2).and_then(|right| {
            let order = compare(&arguments[0], right)?;
            Ok(Value::Bool(match name {
                "ne" => order != Some(Ordering::Equal),
                "lt" => order == Some(Ordering::Less),
                "le" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                "gt" => order == Some(Ordering::Greater),
                _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            }))
        }),
        "len" => argument(arguments, 0, 1).and_then(|value| {
            Ok(Value::Int(match value {
                Value::Text(text) => cast::low_i64(text.len()),
                Value::List(list) => cast::low_i64(list.len()),
                Value::Map(map) | Value::Labels(map) => cast::low_i64(map.len()),
                other => return Err(format!("len of type {}", other.kind())),
            }))
        }),
        "index" => index(arguments),
        "slice" => slice(arguments),
        "print" | "println" => {
            let mut out = Vec::new();
            let mut was_text = true;
            for (at, value) in arguments.iter().enumerate() {
                let is_text = matches!(value, Value::Text(_));
                if at > 0 && (name == "println" || !(is_text || was_text)) {
                    out.push(b' ');
                }
                value.write(&mut out);
                was_text = is_text;
            }
            if name == "println" {
                out.push(b'\n');
            }
            Ok(Value::Text(out))
        }
        "printf" => match arguments.split_first() {
            Some((form, rest)) => format::printf(&form.printed(), rest).map(Value::Text),
            None => Err("wrong number of args: want at least 1 got 0".to_owned()),
        },
        "html" => argument(arguments, 0, 1).map(|value| {
            let escaped = value.to_str().replace('&', "&amp;").replace('\'', "&#39;");
            let escaped = escaped.replace('<', "&lt;").replace('>', "&gt;");
            Value::text(escaped.replace('"', "&#34;"))
        }),
        "js" => argument(arguments, 0, 1).map(|value| {
            let escaped = value.to_str().replace('\\', "\\\\").replace('\'', "\\'");
            let escaped = escaped.replace('"', "\\\"").replace('\n', "\\u000A");
            let escaped = escaped.replace('<', "\\u003C").replace('>', "\\u003E");
            Value::text(escaped.replace('&', "\\u0026").replace('=', "\\u003D"))
        }),
        "call" => Err("there are no functions that are values".to_owned()),
        _ => return None,
    })
}

/// The order of two values of one kind; `None` where neither is before the other.
fn compare(left: &Value, right: &Value) -> Result<Option<Ordering>> {
    Ok(match (left, right) {
        (Value::Nil, Value::Nil) => Some(Ordering::Equal),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Time(a, _), Value::Time(b, _)) => Some(a.cmp(b)),
        (Value::Nil, _) | (_, Value::Nil) => None,
        _ => return Err("incompatible types for comparison".to_owned()),
    })
}

fn index(arguments: &[Value]) -> Result<Value> {
    let Some((first, keys)) = arguments.split_first() else {
        return Err("wrong number of args: want at least 1 got 0".to_owned());
    };
    keys.iter()
        .try_fold(first.clone(), |value, key| match &value {
            Value::Map(map) => Ok(map.get(&key.to_str()).cloned().unwrap_or(Value::Nil)),
            Value::Labels(map) => {
                let found = map.get(&key.to_str()).cloned();
                Ok(found.unwrap_or(Value::text("")))
            }
            Value::List(list) => {
                let at = place(key)?;
                let found = list.get(at).cloned();
                found.ok_or_else(|| format!("index out of range: {at}"))
            }
            Value::Text(text) => {
                let at = place(key)?;
                let byte = text.get(at).map(|byte| Value::Int(i64::from(*byte)));
                byte.ok_or_else(|| format!("index out of range: {at}"))
            }
            other => Err(format!("can't index item of type {}", other.kind())),
        })
}

/// A place in a list or a text: only whole numbers are some, not texts that look like it.
fn place(key: &Value) -> Result<usize> {
    let Value::Int(number) = key else {
        let kind = key.kind();
        return Err(format!("cannot index slice/array with type {kind}"));
    };
    usize::try_from(*number).map_err(|_| format!("index out of range: {number}"))
}

fn of_decimals(
    operation: Operation,
    first: f64,
    rest: impl Iterator<Item = f64> + Clone,
) -> Result<Value> {
    decimal::fold(operation, first, rest).map(Value::Float)
}

fn slice(arguments: &[Value]) -> Result<Value> {
    let Some((first, bounds)) = arguments.split_first() else {
        return Err("wrong number of args: want at least 1 got 0".to_owned());
    };
    let length = match first {
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        other => return Err(format!("slice of type {}", other.kind())),
    };
    let bound = |at: usize, other: usize| bounds.get(at).map_or(Ok(other), place);
    let (from, to) = (bound(0, 0)?, bound(1, length)?);
    if from > to || to > length {
        return Err(format!("index out of range: {from}:{to}"));
    }
    Ok(match first {
        Value::Text(text) => Value::text(&text[from..to]),
        Value::List(list) => Value::List(list[from..to].to_vec()),
        _ => Value::Nil,
    })
}

fn of_text(name: &str, arguments: &[Value]) -> Option<Result<Value>> {
    let count = match name {
        "ToLower" | "ToUpper" | "TrimSpace" | "lower" | "upper" | "title" | "trim" | "b64enc"
        | "b64dec" | "urldecode" | "urlencode" | "urlquery" | "fromJson" | "bytes" | "toString"
        | "duration" | "duration_seconds" => 1,
        "Trim" | "TrimLeft" | "TrimRight" | "TrimPrefix" | "TrimSuffix" | "trunc" | "contains"
        | "hasPrefix" | "hasSuffix" | "indent" | "nindent" | "repeat" | "trimAll"
        | "trimSuffix" | "trimPrefix" | "alignLeft" | "alignRight" => 2,
        "substr" | "replace" => 3,
        "Replace" => 4,
        "default" => return Some(default(arguments)),
        _ => return None,
    };
    if let Err(error) = argument(arguments, 0, count) {
        return Some(Err(error));
    }
    let is_nothing = |value: &Value| matches!(value, Value::Nil);
    if !matches!(name, "toString" | "urlquery") && arguments.iter().any(is_nothing) {
        // Go has words for nothing, which are no text that something could be made of.
        return Some(Err("invalid value; expected string".to_owned()));
    }
    let text_at = |at: usize| arguments[at].to_str();
    let set = |at: usize| text_at(at).chars().collect::<Vec<char>>();
    // The text comes first in functions of Loki, last in those of sprig.
    let (first, last) = (text_at(0), text_at(count - 1));
    if let Some(made) = growing(name, arguments, (&first, &last)) {
        return Some(made.map(Value::text));
    }
    let result = match name {
        "ToLower" | "lower" => first.to_lowercase(),
        "ToUpper" | "upper" => first.to_uppercase(),
        "TrimSpace" | "trim" => first.trim().to_owned(),
        "title" => text::title(&first),
        "toString" => first,
        "Trim" => first.trim_matches(&set(1)[..]).to_owned(),
        "TrimLeft" => first.trim_start_matches(&set(1)[..]).to_owned(),
        "TrimRight" => first.trim_end_matches(&set(1)[..]).to_owned(),
        "TrimPrefix" => first
            .strip_prefix(&*text_at(1))
            .unwrap_or(&first)
            .to_owned(),
        "TrimSuffix" => first
            .strip_suffix(&*text_at(1))
            .unwrap_or(&first)
            .to_owned(),
        "trunc" => text::truncated(&last, arguments[0].to_int()),
        "substr" => text::substring(&last, arguments[0].to_int(), arguments[1].to_int()),
        "contains" => return Some(Ok(Value::Bool(last.contains(&*first)))),
        "hasPrefix" => return Some(Ok(Value::Bool(last.starts_with(&*first)))),
        "hasSuffix" => return Some(Ok(Value::Bool(last.ends_with(&*first)))),
        "repeat" => text::repeat(&last, arguments[0].to_int()),
        "trimAll" => last.trim_matches(&set(0)[..]).to_owned(),
        "trimSuffix" => last.strip_suffix(&*first).unwrap_or(&last).to_owned(),
        "trimPrefix" => last.strip_prefix(&*first).unwrap_or(&last).to_owned(),
        "alignLeft" => text::aligned(&last, arguments[0].to_int(), true),
        "alignRight" => text::aligned(&last, arguments[0].to_int(), false),
        "urlencode" | "urlquery" => text::url_encode(&arguments[0].printed()),
        "urldecode" => return Some(text::url_decode(&arguments[0].printed()).map(Value::Text)),
        "b64enc" => STANDARD.encode(arguments[0].printed()),
        "b64dec" => return Some(Ok(base64_decoded(&first))),
        "fromJson" => return Some(Ok(json_value(first.as_bytes()).unwrap_or(Value::Nil))),
        _ => return Some(quantity(name, &first)),
    };
    Some(Ok(Value::text(result)))
}

/// The results of functions whose text may be much longer than the one that they are given: of Loki's the first
/// argument, of sprig's the last.
fn growing(name: &str, arguments: &[Value], (first, last): (&str, &str)) -> Option<Result<String>> {
    Some(match name {
        "Replace" => {
            let times = usize::try_from(arguments[3].to_int()).ok();
            text::replace(first, &arguments[1].to_str(), &arguments[2].to_str(), times)
        }
        "replace" => text::replace(last, first, &arguments[1].to_str(), None),
        "indent" => text::indent(last, arguments[0].to_int()),
        "nindent" => text::indent(last, arguments[0].to_int()).map(|text| format!("\n{text}")),
        _ => return None,
    })
}

fn default(arguments: &[Value]) -> Result<Value> {
    match arguments {
        [default] => Ok(default.clone()),
        [default, given] => Ok(if given.is_true() {
            given.clone()
        } else {
            default.clone()
        }),
        _ => Err("wrong number of args: want 2".to_owned()),
    }
}

fn base64_decoded(text: &str) -> Value {
    let padding = match text.len() % 4 {
        0 | 1 => 0,
        rest => 4 - rest,
    };
    match STANDARD.decode(format!("{text}{}", "=".repeat(padding))) {
        Ok(bytes) => Value::Text(bytes),
        Err(error) => Value::text(error.to_string()),
    }
}

fn quantity(name: &str, text: &str) -> Result<Value> {
    let read = match name {
        "bytes" => bytes_of(text).map(cast::float),
        _ => duration_ns(text).map(|ns| cast::float(ns) / 1e9),
    };
    read.map(Value::Float)
        .ok_or_else(|| format!("{text:?} is none"))
}

fn of_numbers(name: &str, arguments: &[Value]) -> Option<Result<Value>> {
    let ints = || arguments.iter().map(Value::to_int);
    let floats = || arguments.iter().map(Value::to_float);
    let pair = || argument(arguments, 1, 2).map(|b| (arguments[0].to_int(), b.to_int()));
    let two = || match arguments.split_first() {
        Some((first, rest)) => Ok((first.to_float(), rest.iter().map(Value::to_float))),
        None => Err("wrong number of args: want at least 1 got 0".to_owned()),
    };
    let one = || argument(arguments, 0, 1);
    Some(match name {
        "int" => one().map(|value| Value::Int(value.to_int())),
        "float64" => one().map(|value| Value::Float(value.to_float())),
        "add" => Ok(Value::Int(ints().fold(0, i64::wrapping_add))),
        "add1" => one().map(|value| Value::Int(value.to_int().wrapping_add(1))),
        "mul" => Ok(Value::Int(ints().fold(1, i64::wrapping_mul))),
        "sub" => pair().map(|(a, b)| Value::Int(a.wrapping_sub(b))),
        "div" | "mod" => pair().and_then(|(a, b)| {
            let result = match name {
                "div" => a.checked_div(b),
                _ => a.checked_rem(b),
            };
            result
                .map(Value::Int)
                .ok_or_else(|| "integer divide by zero".to_owned())
        }),
        "max" => Ok(Value::Int(ints().max().unwrap_or(0))),
        "min" => Ok(Value::Int(ints().min().unwrap_or(0))),
        "addf" => decimal::fold(Operation::Add, 0.0, floats()).map(Value::Float),
        "mulf" => two().and_then(|(first, rest)| of_decimals(Operation::Multiply, first, rest)),
        "subf" => two().and_then(|(first, rest)| of_decimals(Operation::Subtract, first, rest)),
        "divf" => two().and_then(|(first, rest)| of_decimals(Operation::Divide, first, rest)),
        "maxf" => two().map(|(first, rest)| Value::Float(rest.fold(first, f64::max))),
        "minf" => two().map(|(first, rest)| Value::Float(rest.fold(first, f64::min))),
        "ceil" => one().map(|value| Value::Float(value.to_float().ceil())),
        "floor" => one().map(|value| Value::Float(value.to_float().floor())),
        "round" => match arguments {
            [value, places, ..] => {
                let scale = 10f64.powi(cast::low_i32(places.to_int().clamp(-300, 300)));
                Ok(Value::Float((value.to_float() * scale).round() / scale))
            }
            _ => Err("wrong number of args: want at least 2".to_owned()),
        },
        _ => return None,
    })
}

fn of_times(name: &str, arguments: &[Value], now_ns: i64) -> Option<Result<Value>> {
    let utc = || TimeZone::UTC;
    // What cannot be read is the first instant of the first year, as in Go.
    const ZERO_NS: i128 = -62_135_596_800_000_000_000;
    Some(match name {
        "now" => Ok(Value::Time(i128::from(now_ns), utc())),
        "date" => argument(arguments, 1, 2).and_then(|value| {
            let (ns, zone) = match value {
                Value::Time(ns, zone) => (*ns, zone.clone()),
                Value::Int(seconds) => (i128::from(*seconds) * 1_000_000_000, utc()),
                _ => (i128::from(now_ns), utc()),
            };
            let text = layout::format(&arguments[0].to_str(), ns, &zone);
            text.map(Value::text)
                .ok_or_else(|| "the time is out of range".to_owned())
        }),
        "toDate" => argument(arguments, 1, 2).map(|value| {
            let read = layout::parse(&arguments[0].to_str(), &value.to_str(), &utc());
            Value::Time(read.unwrap_or(ZERO_NS), utc())
        }),
        "toDateInZone" => argument(arguments, 2, 3).map(|value| {
            let zone = TimeZone::get(&arguments[1].to_str()).unwrap_or(TimeZone::UTC);
            let read = layout::parse(&arguments[0].to_str(), &value.to_str(), &zone);
            Value::Time(read.unwrap_or(ZERO_NS), zone)
        }),
        "unixEpoch" | "unixEpochMillis" | "unixEpochNanos" => {
            argument(arguments, 0, 1).and_then(|value| {
                let Value::Time(ns, _) = value else {
                    return Err(format!(
                        "wrong type for value; expected time.Time; got {}",
                        value.kind()
                    ));
                };
                let scale = match name {
                    "unixEpoch" => 1_000_000_000,
                    "unixEpochMillis" => 1_000_000,
                    _ => 1,
                };
                Ok(Value::text(ns.div_euclid(scale).to_string()))
            })
        }
        "unixToTime" => argument(arguments, 0, 1).and_then(|value| {
            let text = value.to_str();
            let scale = match text.len() {
                5 => 86_400_000_000_000,
                10 => 1_000_000_000,
                13 => 1_000_000,
                16 => 1_000,
                19 => 1,
                _ => 0,
            };
            match text.parse::<i128>() {
                Ok(number) if scale > 0 => Ok(Value::Time(number * scale, utc())),
                _ => Err(format!("unable to parse time '{text}'")),
            }
        }),
        _ => return None,
    })
}

fn of_expressions(name: &str, arguments: &[Value], scratch: &mut Scratch) -> Option<Result<Value>> {
    let count = match name {
        "regexReplaceAll" | "regexReplaceAllLiteral" => 3,
        "count" => 2,
        _ => return None,
    };
    if let Err(error) = argument(arguments, 0, count) {
        return Some(Err(error));
    }
    let regex = match scratch.regex(&arguments[0].to_str()) {
        Ok(regex) => regex,
        Err(error) => return Some(Err(error)),
    };
    let subject = arguments[1].printed();
    if name == "count" {
        return Some(Ok(Value::Int(cast::low_i64(
            regex.find_iter(&subject).count(),
        ))));
    }
    let replacement = arguments[2].to_str();
    let mut out = Vec::new();
    let mut behind = 0;
    for captures in regex.captures_iter(&subject) {
        let Some(whole) = captures.get_match() else {
            continue;
        };
        out.extend_from_slice(&subject[behind..whole.start()]);
        behind = whole.end();
        match name {
            "regexReplaceAllLiteral" => out.extend_from_slice(replacement.as_bytes()),
            _ => text::expand(
                &replacement,
                |name| {
                    let span = match name.parse() {
                        Ok(number) => captures.get_group(number),
                        Err(_) => captures.get_group_by_name(name),
                    };
                    span.map_or(Vec::new(), |span| subject[span.range()].to_vec())
                },
                &mut out,
            ),
        }
        if let Err(error) = text::check_growth(out.len(), subject.len()) {
            return Some(Err(error));
        }
    }
    out.extend_from_slice(&subject[behind..]);
    Some(Ok(Value::Text(out)))
}
