//! Lines of several forms, well made and not.

use serde_json::json;

use super::data::Pair;
use crate::draw::Draw;

/// What lines of a stream look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Objects with nested members.
    Json,
    /// The same with broken ones, copies of members and unusual names among them.
    JsonOdd,
    Logfmt,
    /// The same with broken and empty pairs.
    LogfmtOdd,
    /// As web servers write them.
    Access,
    Plain,
    /// With addresses of both families.
    Addresses,
    /// With escapes of terminals.
    Colours,
    /// As a shipper packs labels and a line into an object.
    Packed,
    /// Plain, with metadata beside.
    Metadata,
    Unicode,
    /// Objects with members that are named like labels of their streams.
    Clash,
    /// What begins like an object and is none, and objects behind blanks.
    Broken,
    /// Text with words for levels.
    Levels,
}

impl Form {
    /// Whether entries of one time may be there: not where numbers are unwrapped.
    pub(super) fn has_equal_times(self) -> bool {
        matches!(self, Form::Plain | Form::Colours | Form::Unicode)
    }
}

const LEVELS: [&str; 7] = ["info", "warn", "error", "debug", "INFO", "Warning", "fatal"];
const WORDS: [&str; 8] = [
    "sold",
    "lost",
    "retry",
    "timeout",
    "ready",
    "closed",
    "slow query",
    "cache miss",
];
const NAMES: [&str; 5] = ["ann", "bob", "eve", "zoë", ""];
const DURATIONS: [&str; 8] = ["12ms", "1.5s", "2m3s", "0s", "350us", "1h", "-3ms", "7µs"];
const SIZES: [&str; 7] = ["3KB", "512B", "1.5MB", "2KiB", "0B", "10kB", "4 MB"];
const NUMBERS: [&str; 9] = ["0", "1", "17", "2.5", "-4", "1e3", "250", "99.9", "3"];
const PATHS: [&str; 6] = [
    "/",
    "/cart",
    "/cart/7",
    "/api/v1/items?id=3&q=a%20b",
    "/a b",
    "/ü",
];
const ADDRESSES: [&str; 8] = [
    "10.0.0.1",
    "10.0.3.77",
    "192.168.4.5",
    "8.8.8.8",
    "::1",
    "2001:db8::5",
    "172.16.0.9",
    "999.1.1.1",
];

/// The `n`th line of a stream, and what stands beside it.
pub(super) fn line(draw: &mut Draw, form: Form, n: usize) -> (String, Vec<Pair>) {
    let line = match form {
        Form::Json => json_line(draw, n),
        Form::JsonOdd if draw.below(2) == 0 => json_odd(draw, n),
        Form::JsonOdd => json_line(draw, n),
        Form::Logfmt => logfmt(draw, n),
        Form::LogfmtOdd if draw.below(2) == 0 => logfmt_odd(draw, n),
        Form::LogfmtOdd => logfmt(draw, n),
        Form::Access => access(draw, n),
        Form::Plain => plain(draw, n),
        Form::Addresses => addresses(draw, n),
        Form::Colours => {
            let (level, word) = (draw.one(&["one", "two"]), draw.one(&WORDS));
            let colour = 30 + draw.below(8);
            format!("\u{1b}[{colour}m{level}\u{1b}[0m \u{1b}[1;4m{word}\u{1b}[m {n}")
        }
        Form::Packed => packed(draw, n),
        Form::Metadata => return (plain(draw, n), metadata(draw)),
        Form::Unicode => format!(
            "{n} naïve {} 漢字 🙂 {}",
            draw.one(&NAMES),
            draw.one(&WORDS)
        ),
        Form::Clash => clash(draw, n),
        Form::Broken => match (draw.below(2), draw.one(&WORDS)) {
            (0, word) => format!("  {{\"n\" : {n} , \"msg\" : \"{word}\" }}"),
            (_, word) => format!("{{\"n\":{n},\"took\":3,\"msg\":\"{word}"),
        },
        Form::Levels => {
            let (level, word) = (draw.one(&LEVELS), draw.one(&WORDS));
            match draw.below(3) {
                0 => format!("{level}: {word} {n}"),
                1 => format!("[{level}] {word} {n}"),
                _ => format!("{n} {word} with {level} in the middle"),
            }
        }
    };
    (line, Vec::new())
}

fn json_line(draw: &mut Draw, n: usize) -> String {
    let mut members = vec![format!("\"n\":{n}")];
    let mut add = |draw: &mut Draw, percent: usize, name: &str, value: String| {
        if draw.below(100) < percent {
            members.push(format!("\"{name}\":{value}"));
        }
    };
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let level = quoted(draw.text(&LEVELS));
    add(draw, 70, "level", level);
    let word = quoted(draw.text(&WORDS));
    add(draw, 90, "msg", word);
    let user = format!(
        "{{\"id\":{},\"name\":{}}}",
        draw.below(5),
        quoted(draw.text(&NAMES))
    );
    add(draw, 80, "user", user);
    let number = draw.one(&NUMBERS).to_string();
    add(draw, 80, "took", number);
    let duration = quoted(draw.text(&DURATIONS));
    add(draw, 80, "latency", duration);
    let size = quoted(draw.text(&SIZES));
    add(draw, 70, "size", size);
    let code = (200 + 100 * draw.below(4)).to_string();
    add(draw, 90, "code", code);
    let peer = quoted(draw.text(&ADDRESSES));
    add(draw, 50, "peer", peer);
    let path = quoted(draw.text(&PATHS));
    add(draw, 50, "path", path);
    let list = format!(
        "[{},{{\"a\":\"b{}\"}},\"x\",[2]]",
        draw.below(4),
        draw.below(3)
    );
    add(draw, 40, "list", list);
    add(draw, 20, "ok", "true".into());
    add(draw, 20, "void", "null".into());
    let comma = if draw.below(8) == 0 { ", " } else { "," };
    format!("{{{}}}", members.join(comma))
}

fn json_odd(draw: &mut Draw, n: usize) -> String {
    let word = draw.one(&WORDS);
    match draw.below(16) {
        0 => format!("{{\"n\":{n},\"list\":[],\"user\":[{{\"id\":1}},2],\"msg\":\"{word}\"}}"),
        1 => format!("{{\"n\":{n},\"code\":-0,\"took\":0.1e1,\"msg\":\" {word} \"}}"),
        2 => format!("[{n},\"{word}\"]"),
        3 => format!("{{\"n\":{n},\"msg\":\"{word}\",\"msg\":\"again\",\"took\":3,\"took\":4}}"),
        4 => format!("{{\"n\":{n},\"msg\":\"tab\\t quote\\\" back\\\\ nl\\n u\\u00e9 {word}\"}}"),
        5 => format!("{{\"n\":{n},\"k-1.x\":\"{word}\",\"1st\":1,\"\":\"none\",\"a b\":\"c\"}}"),
        6 => format!("{{\"n\" : {n} , \"msg\" : \"{word}\" , \"list\" : [ 1 , 2 ] }}  "),
        7 => format!("{{\"n\":{n},\"deep\":{{\"er\":{{\"est\":\"{word}\"}},\"no\":{{}}}}}}"),
        8 => format!("plain {word} {n}"),
        9 => format!("{{\"n\":{n},\"took\":1.50,\"code\":2e2,\"big\":12345678901234567890}}"),
        10 => format!("{{\"n\":{n},\"user\":\"{word}\",\"user_id\":\"flat\",\"user_name\":7}}"),
        11 => format!("{{\"n\":{n},\"ok\":true,\"void\":null,\"msg\":\"{word} \\/ \\b\\f\"}}"),
        12 => format!(
            "{{\"n\":{n},\"msg\":\"\",\"latency\":\"later\",\"size\":\"wide\",\"took\":\"x\"}}"
        ),
        13 => format!("{{\"n\":{n},\"ok\":false,\"emoji\":\"\\ud83d\\ude42\",\"msg\":\"<&>\"}}"),
        14 => format!("{{\"n\":{n},\"took\":\"17\",\"code\":\"500\",\"level\":\"ERROR\"}}"),
        _ => format!("\"{word} {n}\""),
    }
}

fn logfmt(draw: &mut Draw, n: usize) -> String {
    let mut pairs = vec![format!("n={n}")];
    let mut add = |draw: &mut Draw, percent: usize, name: &str, value: &str| {
        if draw.below(100) < percent {
            let is_quoted = value.is_empty() || value.contains([' ', '"', '=']);
            let quote = if is_quoted { "\"" } else { "" };
            pairs.push(format!("{name}={quote}{value}{quote}"));
        }
    };
    let table: [(usize, &str, &[&str]); 8] = [
        (80, "level", &LEVELS),
        (90, "msg", &WORDS),
        (60, "name", &NAMES),
        (80, "took", &NUMBERS),
        (80, "latency", &DURATIONS),
        (70, "size", &SIZES),
        (50, "peer", &ADDRESSES),
        (50, "path", &PATHS),
    ];
    for (percent, name, values) in table {
        let value = draw.one(values);
        add(draw, percent, name, value);
    }
    let code = (200 + 100 * draw.below(4)).to_string();
    add(draw, 90, "code", &code);
    pairs.join(" ")
}

fn logfmt_odd(draw: &mut Draw, n: usize) -> String {
    let word = draw.one(&WORDS);
    match draw.below(12) {
        0 => format!("n={n} msg=\"{word}"),
        1 => format!("n={n} empty= msg={word} alone flag"),
        2 => format!("n={n} =nokey msg=\"x\""),
        3 => format!("n={n} a=\"q\\\"q\" b=\"t\\tt\" c=\"u\\u00e9\" d=\"back\\\\\""),
        4 => format!("n={n} msg=a msg=b took=3 took=4"),
        5 => format!("n={n}  spaced   =  x  took=5"),
        6 => format!("n={n} k-1.x={word} 1st=1 ü=1 a/b=c"),
        7 => format!("n={n} url=http://h/?a=b&c=d took=7"),
        8 => format!("{word} {n}"),
        9 => format!("n={n} msg='single {word}' rest=x"),
        10 => format!("n={n} latency=later size=wide took=x code=\"\""),
        _ => format!("n={n} msg=\"two\nlines\" tail=1"),
    }
}

fn access(draw: &mut Draw, n: usize) -> String {
    let (address, path) = (draw.one(&ADDRESSES), draw.one(&PATHS));
    let method = draw.one(&["GET", "POST", "PUT"]);
    let status = 200 + 100 * draw.below(4) + draw.below(3);
    let size = draw.below(50_000);
    let second = n % 60;
    format!(
        "{address} - - [01/May/2024:10:00:{second:02} +0000] \"{method} {path} HTTP/1.1\" {status} {size} {}.{:03}",
        draw.below(3),
        n
    )
}

fn plain(draw: &mut Draw, n: usize) -> String {
    let word = draw.one(&WORDS);
    match draw.below(8) {
        0 => format!("worker {n} {word} UPPER"),
        1 => format!("job {n} finished after {}", draw.one(&DURATIONS)),
        2 => format!("{word} ({n}) [x] {{y}} a+b*c?"),
        3 => format!("{n} {word}: took {}", draw.one(&NUMBERS)),
        4 => format!("{word}\t{n}\t\"quoted\" 'single' back\\slash"),
        5 => format!("  {word} {n}  "),
        6 => format!("<b>{n}</b> &amp; {word}"),
        _ => format!("{word} {n}"),
    }
}

fn clash(draw: &mut Draw, n: usize) -> String {
    let word = draw.one(&WORDS);
    match draw.below(3) {
        0 => json!({ "app": word, "n": n }).to_string(),
        1 => format!("team={word} env=line n={n}"),
        _ => json!({ "service": word, "job": "line", "n": n }).to_string(),
    }
}

fn addresses(draw: &mut Draw, n: usize) -> String {
    let (one, other) = (draw.one(&ADDRESSES), draw.one(&ADDRESSES));
    match draw.below(4) {
        0 => format!("from {one} to {other} #{n}"),
        1 => format!("{one}:8080 refused #{n}"),
        2 => format!("src={one} dst={other} n={n}"),
        _ => format!("no address #{n} 1.2.3"),
    }
}

fn packed(draw: &mut Draw, n: usize) -> String {
    let word = draw.one(&WORDS);
    let pod = format!("p-{}", draw.below(3));
    match draw.below(6) {
        0 => json!({ "pod": pod, "zone": "z1" }).to_string() + &" ".repeat(n),
        1 => format!("{word} {n}"),
        2 => json!({ "_entry": format!("{word} {n}"), "pod": pod, "num": 3 }).to_string(),
        _ => {
            let entry = format!("n={n} msg=\"{word}\" took={}", draw.one(&NUMBERS));
            json!({ "_entry": entry, "pod": pod, "zone": "z1" }).to_string()
        }
    }
}

fn metadata(draw: &mut Draw) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut add = |name: &str, value: &str| pairs.push((name.into(), value.into()));
    if draw.below(4) > 0 {
        add("trace_id", &format!("t{:02}", draw.below(20)));
    }
    if draw.below(2) == 0 {
        add("user", draw.text(&["ann", "bob", "eve"]));
    }
    if draw.below(2) == 0 {
        add("wait", draw.text(&DURATIONS));
    }
    if draw.below(2) == 0 {
        add("weight", draw.text(&NUMBERS));
    }
    if draw.below(5) == 0 {
        add("dot.ted-name", "d");
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_lines_are_well_made_and_some_are_not() {
        let mut draw = Draw::new(1, 1);
        let mut parsed = |form| {
            let lines = (0..200).map(|n| line(&mut draw, form, n).0);
            let objects = lines.filter(|line| {
                serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line).is_ok()
            });
            objects.count()
        };
        assert_eq!(parsed(Form::Json), 200);
        assert!((1..199).contains(&parsed(Form::JsonOdd)));
        assert!((1..199).contains(&parsed(Form::Broken)));
        assert_eq!(parsed(Form::Plain), 0);
    }
}
