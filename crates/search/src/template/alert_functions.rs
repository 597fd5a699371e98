//! The functions that templates of alerts have in Prometheus and those of lines have not.

use jiff::tz::TimeZone;
use logpond_record::cast;

use super::format::general;
use super::functions::argument;
use super::value::Value;
use super::{Scratch, layout, text};
use crate::logql::{duration_ns, number_of};

type Result<T> = std::result::Result<T, String>;

/// Their names. `query` is known so that its absence can be explained.
pub(super) const NAMES: [&str; 15] = [
    "humanize",
    "humanize1024",
    "humanizeDuration",
    "humanizePercentage",
    "humanizeTimestamp",
    "match",
    "parseDuration",
    "query",
    "reReplaceAll",
    "safeHtml",
    "stripDomain",
    "stripPort",
    "toLower",
    "toTime",
    "toUpper",
];

const LARGE: [&str; 8] = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
const SMALL: [&str; 8] = ["m", "u", "n", "p", "f", "a", "z", "y"];

/// Calls a function; `None` if there is none of this name.
pub(super) fn call(
    name: &str,
    arguments: &[Value],
    scratch: &mut Scratch,
) -> Option<Result<Value>> {
    let number = |make: fn(f64) -> String| {
        let read = argument(arguments, 0, 1).and_then(number_of_value);
        read.map(|number| Value::text(make(number)))
    };
    let text = |make: &dyn Fn(&str) -> String| {
        let value = argument(arguments, 0, 1);
        value.map(|value| Value::text(make(&value.to_str())))
    };
    Some(match name {
        "humanize" => number(humanize),
        "humanize1024" => number(humanize_binary),
        "humanizeDuration" => number(humanize_duration),
        "humanizePercentage" => number(|number| format!("{}%", general(number * 100.0, 4))),
        "humanizeTimestamp" => number(humanize_timestamp),
        "toTime" => argument(arguments, 0, 1)
            .and_then(number_of_value)
            .map(|seconds| Value::Time(cast::whole_i128(seconds * 1e9), TimeZone::UTC)),
        "parseDuration" => argument(arguments, 0, 1).and_then(|value| {
            let text = value.to_str();
            let read = duration_ns(&text).map(|ns| Value::Float(cast::float(ns) / 1e9));
            read.ok_or_else(|| format!("{text:?} is no duration"))
        }),
        "toUpper" => text(&str::to_uppercase),
        "toLower" => text(&str::to_lowercase),
        "safeHtml" => text(&str::to_owned),
        "stripPort" => text(&|given| without_port(given).to_owned()),
        "stripDomain" => text(&without_domain),
        "match" => argument(arguments, 1, 2).and_then(|subject| {
            let regex = scratch.regex(&arguments[0].to_str())?;
            Ok(Value::Bool(regex.is_match(&subject.printed()[..])))
        }),
        "reReplaceAll" => replace_all(arguments, scratch),
        "query" => Err("templates of alerts cannot query: put the query into expr".to_owned()),
        _ => return None,
    })
}

/// Numbers, and text that is one.
fn number_of_value(value: &Value) -> Result<f64> {
    match value {
        Value::Float(float) => Ok(*float),
        Value::Int(int) => Ok(cast::float(*int)),
        Value::Text(text) => {
            let text = String::from_utf8_lossy(text);
            number_of(text.trim()).ok_or_else(|| format!("{text:?} is no number"))
        }
        other => Err(format!("can't convert {} to a number", other.kind())),
    }
}

fn is_plain(number: f64) -> bool {
    number == 0.0 || !number.is_finite()
}

fn humanize(number: f64) -> String {
    if is_plain(number) {
        return general(number, 4);
    }
    let (number, prefix) = if number.abs() >= 1.0 {
        scaled(number, 1000.0, &LARGE)
    } else {
        enlarged(number)
    };
    format!("{}{prefix}", general(number, 4))
}

fn humanize_binary(number: f64) -> String {
    if is_plain(number) || number.abs() <= 1.0 {
        return general(number, 4);
    }
    let (number, prefix) = scaled(number, 1024.0, &LARGE);
    let binary = if prefix.is_empty() { "" } else { "i" };
    format!("{}{prefix}{binary}", general(number, 4))
}

/// Divides until the number is below `base`.
fn scaled(mut number: f64, base: f64, prefixes: &[&'static str]) -> (f64, &'static str) {
    let mut prefix = "";
    for next in prefixes {
        if number.abs() < base {
            break;
        }
        (number, prefix) = (number / base, next);
    }
    (number, prefix)
}

/// Multiplies until the number is no fraction.
fn enlarged(mut number: f64) -> (f64, &'static str) {
    let mut prefix = "";
    for next in SMALL {
        if number.abs() >= 1.0 {
            break;
        }
        (number, prefix) = (number * 1000.0, next);
    }
    (number, prefix)
}

fn humanize_duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return general(seconds, 4);
    }
    if seconds == 0.0 {
        return "0s".to_owned();
    }
    let (sign, length) = if seconds < 0.0 {
        ("-", -seconds)
    } else {
        ("", seconds)
    };
    if length < 1.0 {
        let (number, prefix) = enlarged(seconds);
        return format!("{}{prefix}s", general(number, 4));
    }
    let whole = cast::whole_u64(length);
    let (days, hours, minutes) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60);
    let rest = whole % 60;
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{sign}{}s", general(length, 4)),
        (0, 0, _) => format!("{sign}{minutes}m {rest}s"),
        (0, ..) => format!("{sign}{hours}h {minutes}m {rest}s"),
        _ => format!("{sign}{days}d {hours}h {minutes}m {rest}s"),
    }
}

fn humanize_timestamp(seconds: f64) -> String {
    let form = "2006-01-02 15:04:05.999999999 -0700 MST";
    let ns = cast::whole_i128(seconds * 1e9);
    let shown = seconds
        .is_finite()
        .then(|| layout::format(form, ns, &TimeZone::UTC));
    shown.flatten().unwrap_or_else(|| general(seconds, 4))
}

/// What stands before a port; all of what has none.
fn without_port(text: &str) -> &str {
    match text.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => {
            let bare = host
                .strip_prefix('[')
                .and_then(|host| host.strip_suffix(']'));
            match bare {
                Some(bare) => bare,
                None if host.contains(':') => text,
                None => host,
            }
        }
        _ => text,
    }
}

/// The first part of a host's name, with its port; addresses stay.
fn without_domain(text: &str) -> String {
    let host = without_port(text);
    if host.parse::<core::net::IpAddr>().is_ok() {
        return text.to_owned();
    }
    let first = host.split('.').next().unwrap_or_default();
    let port = text.strip_prefix(host).unwrap_or_default();
    format!("{first}{port}")
}

/// The pattern comes first, what replaces it second, the text last.
fn replace_all(arguments: &[Value], scratch: &mut Scratch) -> Result<Value> {
    let subject = argument(arguments, 2, 3)?.printed();
    let replacement = arguments[1].to_str();
    let regex = scratch.regex(&arguments[0].to_str())?;
    let mut out = Vec::new();
    let mut behind = 0;
    for captures in regex.captures_iter(&subject) {
        let Some(whole) = captures.get_match() else {
            continue;
        };
        out.extend_from_slice(&subject[behind..whole.start()]);
        behind = whole.end();
        text::expand(
            &replacement,
            |name| {
                let span = match name.parse() {
                    Ok(number) => captures.get_group(number),
                    Err(_) => captures.get_group_by_name(name),
                };
                span.map_or(Vec::new(), |span| subject[span.range()].to_vec())
            },
            &mut out,
        );
        text::check_growth(out.len(), subject.len())?;
    }
    out.extend_from_slice(&subject[behind..]);
    Ok(Value::Text(out))
}

#[cfg(test)]
mod tests {
    use super::super::{AlertData, Scratch, Template};
    use crate::metric::SeriesLabels;

    fn fill(text: &str, value: f64) -> Result<String, String> {
        let labels = SeriesLabels::new([("app", "shop"), ("host", "web-1.example.org:8080")]);
        let data = AlertData {
            labels: &labels,
            value,
            external_url: "http://logs:7650",
            now_ns: 0,
        };
        let mut out = Vec::new();
        let template = Template::of_alerts(text)?;
        template.fill_alert(&data, &mut Scratch::default(), &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn numbers_are_shown_for_people() {
        let table = [
            ("humanize", 0.0, "0"),
            ("humanize", 1_234_567.0, "1.235M"),
            ("humanize", 999.0, "999"),
            ("humanize", -0.00123, "-1.23m"),
            ("humanize", f64::INFINITY, "+Inf"),
            ("humanize1024", 1024.0, "1ki"),
            ("humanize1024", 1_048_576.0, "1Mi"),
            ("humanize1024", 0.5, "0.5"),
            ("humanizeDuration", 0.0, "0s"),
            ("humanizeDuration", 59.9, "59.9s"),
            ("humanizeDuration", 61.0, "1m 1s"),
            ("humanizeDuration", 3661.0, "1h 1m 1s"),
            ("humanizeDuration", -90_061.0, "-1d 1h 1m 1s"),
            ("humanizeDuration", 0.001, "1ms"),
            ("humanizePercentage", 0.123_456, "12.35%"),
            (
                "humanizeTimestamp",
                1_435_065_584.128,
                "2015-06-23 13:19:44.128 +0000 UTC",
            ),
            ("printf \"%.2f\"", 3.25159, "3.25"),
            ("printf \"%.4g\"", 123_456.0, "1.235e+05"),
            ("printf \"%.3g\"", 0.000_012_34, "1.23e-05"),
            ("printf \"%.3g\"", 12.0, "12"),
        ];
        for (function, value, expected) in table {
            let filled = fill(&format!("{{{{ $value | {function} }}}}"), value);
            assert_eq!(filled.as_deref(), Ok(expected), "{function} {value}");
        }
    }

    #[test]
    fn templates_see_alerts_as_those_of_prometheus() {
        let table = [
            (
                "{{ $labels.app }} {{ .Labels.app }} {{ $.Value }}",
                "shop shop 2.5",
            ),
            ("[{{ $labels.none }}{{ $externalLabels.none }}]", "[]"),
            (
                "{{ index $labels \"app\" }} {{ $externalURL }}",
                "shop http://logs:7650",
            ),
            ("{{ with $labels }}{{ .app }}{{ end }}", "shop"),
            (
                "{{ range $k, $v := $labels }}{{ $k }};{{ end }}",
                "app;host;",
            ),
            ("{{ $labels.host | stripPort }}", "web-1.example.org"),
            ("{{ $labels.host | stripDomain }}", "web-1:8080"),
            (
                "{{ \"10.0.0.1:80\" | stripDomain }} {{ \"[::1]:80\" | stripPort }}",
                "10.0.0.1:80 ::1",
            ),
            (
                "{{ reReplaceAll \"(.*)op\" \"${1}ip\" $labels.app | toUpper }}",
                "SHIP",
            ),
            (
                "{{ if match \"^s\" $labels.app }}y{{ else }}n{{ end }}",
                "y",
            ),
            (
                "{{ parseDuration \"1h\" }} {{ (toTime 0).Year }}",
                "3600 1970",
            ),
            ("{{ if gt $value 2.0 }}high{{ end }}", "high"),
            ("{{ \"12.5\" | humanize }}", "12.5"),
            (
                "{{ $value }} {{ . }}",
                "2.5 map[ExternalLabels:map[] ExternalURL:http://logs:7650 Labels:map[app:shop host:web-1.example.org:8080] Value:2.5]",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(fill(text, 2.5).as_deref(), Ok(expected), "{text}");
        }
        for (text, part) in [
            ("{{ query \"up\" }}", "cannot query"),
            ("{{ .Nope }}", ".Labels"),
            ("{{ $nope }}", "undefined variable"),
            ("{{ humanize \"x\" }}", "no number"),
            ("{{ nope }}", "not defined"),
        ] {
            let error = fill(text, 1.0).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        // Lines have the functions of LogQL only.
        assert!(Template::new("{{ humanize .x }}").is_err());
    }
}
