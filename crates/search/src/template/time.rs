//! What a time says of itself in a template: `.Unix`, `.Year`, `.Format "2006-01-02"`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use logpond_record::cast;

use super::layout;
use super::value::Value;
use crate::logql::duration_ns;

type Result<T> = std::result::Result<T, String>;

/// The answer of a method of a time to these arguments.
pub(super) fn method(ns: i128, zone: &TimeZone, name: &str, arguments: &[Value]) -> Result<Value> {
    let unknown = || format!("can't evaluate field {name} in type time.Time");
    let count = match name {
        "Format" | "Add" | "Truncate" | "Before" | "After" | "Equal" => 1,
        _ => 0,
    };
    if arguments.len() != count {
        let got = arguments.len();
        return Err(format!(
            "wrong number of args for {name}: want {count} got {got}"
        ));
    }
    match arguments.first() {
        None => plain(ns, zone, name).ok_or_else(unknown),
        Some(argument) => with_argument(ns, zone, name, argument),
    }
}

fn with_argument(ns: i128, zone: &TimeZone, name: &str, argument: &Value) -> Result<Value> {
    let other = || match argument {
        Value::Time(ns, _) => Ok(*ns),
        other => Err(format!(
            "wrong type for value; expected time.Time; got {}",
            other.kind()
        )),
    };
    Ok(match name {
        "Format" => Value::text(formatted(&argument.to_str(), ns, zone)),
        "Add" => Value::Time(ns + i128::from(nanoseconds(argument)?), zone.clone()),
        "Truncate" => match i128::from(nanoseconds(argument)?) {
            unit if unit > 0 => Value::Time(ns - ns.rem_euclid(unit), zone.clone()),
            _ => Value::Time(ns, zone.clone()),
        },
        "Before" => Value::Bool(ns < other()?),
        "After" => Value::Bool(ns > other()?),
        _ => Value::Bool(ns == other()?),
    })
}

/// A duration: nanoseconds, or a text such as `1h`.
fn nanoseconds(value: &Value) -> Result<i64> {
    match value {
        Value::Int(ns) => Ok(*ns),
        other => {
            let text = other.to_str();
            duration_ns(&text).ok_or_else(|| format!("{text:?} is no duration"))
        }
    }
}

fn plain(ns: i128, zone: &TimeZone, name: &str) -> Option<Value> {
    let at = Timestamp::from_nanosecond(ns).ok()?.to_zoned(zone.clone());
    let int = |number: i128| Some(Value::Int(cast::low_i64(number)));
    match name {
        "Unix" => int(ns.div_euclid(1_000_000_000)),
        "UnixMilli" => int(ns.div_euclid(1_000_000)),
        "UnixMicro" => int(ns.div_euclid(1_000)),
        "UnixNano" => int(ns),
        "UTC" => Some(Value::Time(ns, TimeZone::UTC)),
        "Year" => int(i128::from(at.year())),
        "Day" => int(i128::from(at.day())),
        "YearDay" => int(i128::from(at.day_of_year())),
        "Hour" => int(i128::from(at.hour())),
        "Minute" => int(i128::from(at.minute())),
        "Second" => int(i128::from(at.second())),
        "Nanosecond" => int(i128::from(at.subsec_nanosecond())),
        "Month" => Some(Value::text(formatted("January", ns, zone))),
        "Weekday" => Some(Value::text(formatted("Monday", ns, zone))),
        "String" => Some(Value::text(Value::Time(ns, zone.clone()).to_str())),
        // Go's zero is a time in the year 1, which no record has.
        "IsZero" => Some(Value::Bool(false)),
        _ => None,
    }
}

fn formatted(form: &str, ns: i128, zone: &TimeZone) -> String {
    layout::format(form, ns, zone).unwrap_or_default()
}
