//! Records of random shapes are found by each text, field and value that answers show of them: in the journal, after a
//! merge, and after a kill. A model of the rows that were shown says which records a condition finds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::http::encode;
use crate::pond::{Scratch, TestServer};
use crate::surroundings::{program, say};

/// Records of each source.
const RECORDS: usize = 40;

/// Conditions of each kind that are drawn.
const DRAWS: usize = 60;

/// Seeds of a run for each change. Each has a server of its own and takes five seconds.
const SEEDS: u64 = 2;

/// Seeds at night at most.
const SEEDS_MAX: u64 = 100;

/// Says how many seeds simulations run: more at night.
const SEEDS_VARIABLE: &str = "LOGPOND_SIM_SEEDS";

/// Names of members. Some need quotes, some are those of objects that others have as a value.
const NAMES: [&str; 12] = [
    "user", "n", "o", "o.p", "päth", "odd name", "a-b", "list", "status", "trace_id", "k", "Ünï",
];

/// Parts of texts: quotes, escapes, controls, wide characters, numbers, ids, and what looks like syntax.
const PARTS: [&str; 26] = [
    "error",
    "Error",
    " ",
    " ",
    "\"",
    "\\",
    "\n",
    "\t",
    "\u{1}",
    "é",
    "日本",
    "🦆",
    "\u{202e}",
    "=",
    "{\"k\":1}",
    "[1,2]",
    "5",
    "5.0",
    "0x1f",
    "BP-130856138",
    "18446744073709551616",
    "null",
    "true",
    "/a/b?c=d",
    "AND",
    "\u{7f}",
];

/// Numbers as they are written.
const NUMBERS: [&str; 12] = [
    "0",
    "-0.0",
    "1",
    "1.0",
    "5",
    "1e3",
    "0.1",
    "-7",
    "9007199254740993",
    "18446744073709551615",
    "2.5e-7",
    "1.7976931348623157e308",
];

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn text(&mut self) -> String {
        let parts = self.below(6);
        (0..parts).map(|_| self.of(&PARTS)).collect()
    }

    /// A text as JSON, some of whose characters are escaped without need.
    fn json_text(&mut self, text: &str) -> String {
        let plain = Value::from(text).to_string();
        if self.below(3) > 0 {
            return plain;
        }
        let mut units = [0; 2];
        let escaped = text.chars().flat_map(|character| {
            let units = character.encode_utf16(&mut units);
            let units = units.iter().map(|unit| format!("\\u{unit:04x}"));
            units.collect::<Vec<String>>()
        });
        format!("\"{}\"", escaped.collect::<String>())
    }

    fn json_value(&mut self, depth: usize) -> String {
        match self.below(if depth > 2 { 6 } else { 9 }) {
            0 | 1 => self.of(&NUMBERS).to_owned(),
            2 => self.of(&["true", "false"]).to_owned(),
            3..=5 => {
                let text = self.text();
                self.json_text(&text)
            }
            6 => {
                let items: Vec<String> = (0..self.below(3))
                    .map(|_| self.json_value(depth + 1))
                    .collect();
                format!("[{}]", items.join(","))
            }
            _ => self.json_object(depth + 1),
        }
    }

    fn json_object(&mut self, depth: usize) -> String {
        let mut members = Vec::new();
        if depth == 0 && self.below(4) > 0 {
            let message = self.text();
            members.push(format!("\"message\":{}", self.json_text(&message)));
        }
        for _ in 0..=self.below(5) {
            let name = self.of(&NAMES);
            members.push(format!(
                "{}:{}",
                self.json_text(name),
                self.json_value(depth)
            ));
        }
        format!("{{{}}}", members.join(","))
    }

    /// A line that is an object, or a text.
    fn line(&mut self) -> String {
        match self.below(3) {
            0 => format!("line {}", self.text().replace('\n', " ")),
            _ => self.json_object(0),
        }
    }

    /// A part of a text that is not empty.
    fn part_of(&mut self, text: &str) -> Option<String> {
        let characters: Vec<char> = text.chars().collect();
        let from = self.below(characters.len().max(1));
        let length = 1 + self.below(12);
        let part: String = characters.iter().skip(from).take(length).collect();
        (!part.trim().is_empty()).then_some(part)
    }
}

/// Sends records of all sources.
fn fill(server: &TestServer, random: &mut Random) {
    let objects: Vec<String> = (0..RECORDS).map(|_| random.json_object(0)).collect();
    let taken = server.push("application/x-ndjson", objects.join("\n").as_bytes());
    assert_eq!(taken.unwrap().accepted(), RECORDS as u64);
    let lines: Vec<String> = (0..RECORDS).map(|_| random.line()).collect();
    let taken = server.push("text/plain", lines.join("\n").as_bytes());
    assert_eq!(taken.unwrap().accepted(), RECORDS as u64);
    let entries: Vec<Value> = (0..RECORDS)
        .map(|number| {
            let metadata = json!({ "user": random.text(), "k": random.text() });
            json!([
                format!("{}", 1_795_740_000_000_000_000 + number),
                random.line(),
                metadata
            ])
        })
        .collect();
    let stream = json!({ "stream": { "app": "web", "status": "5" }, "values": entries });
    let body = json!({ "streams": [stream] }).to_string();
    let mut client = server.client().unwrap();
    let json = [("content-type", "application/json")];
    let answer = client.send("POST", "/loki/api/v1/push", &json, body.as_bytes());
    assert_eq!(answer.unwrap().status, 204);
}

/// A condition: how it is written, and which of the rows that were shown it must find.
struct Condition {
    q: String,
    /// Of those that were shown.
    must: BTreeSet<String>,
    /// Others that it may find: a text stands in the line too, which the rows do not show.
    may_find_others: bool,
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// The scalar of a field as a condition compares it.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// True if `name=wanted` finds a value: the same text, or a number that is the same one.
fn equals(value: &Value, wanted: &str) -> bool {
    let Some(text) = scalar(value) else {
        return false;
    };
    text == wanted
        || value.is_number() && number(&text).is_some_and(|found| Some(found) == number(wanted))
}

/// A text that is a number: whole ones exactly, which doubles do not tell apart.
#[derive(PartialEq)]
enum Number {
    Whole(i128),
    Fraction(f64),
}

fn number(text: &str) -> Option<Number> {
    let value: Value = text.parse().ok()?;
    let double = value.as_f64()?;
    let whole = text.parse::<i128>().ok();
    // Doubles below 2^53 are whole numbers exactly.
    let is_whole = double.fract() == 0.0 && double.abs() < 9_007_199_254_740_992.0;
    let whole = whole.or(is_whole.then_some(double as i128));
    Some(whole.map_or(Number::Fraction(double), Number::Whole))
}

/// True if Elasticsearch's `term` finds a value: also as one of a list. A text of a list counts as one.
fn has_term(value: &Value, wanted: &str) -> bool {
    let list = match value {
        Value::Array(_) => Some(value.clone()),
        Value::String(text) if text.starts_with('[') => text.parse().ok(),
        _ => None,
    };
    let is_in = |list: &Value| {
        list.as_array()
            .is_some_and(|items| items.iter().any(|item| has_term(item, wanted)))
    };
    equals(value, wanted) || list.as_ref().is_some_and(is_in)
}

/// The rows that are shown, by their ids.
type Shown = BTreeMap<String, Map<String, Value>>;

fn shown(server: &TestServer) -> Shown {
    let (rows, trailer) = server.query("*").unwrap();
    assert_eq!(trailer["complete"], true, "{trailer}");
    let keyed = rows.into_iter().map(|row| match row {
        Value::Object(members) => (members["_id"].as_str().unwrap().to_owned(), members),
        other => panic!("a row is {other}"),
    });
    keyed.collect()
}

/// The ids that a predicate of rows holds for.
fn ids(shown: &Shown, holds: impl Fn(&Map<String, Value>) -> bool) -> BTreeSet<String> {
    let rows = shown.iter().filter(|(_, row)| holds(row));
    rows.map(|(id, _)| id.clone()).collect()
}

/// Conditions drawn from what is shown.
fn conditions(shown: &Shown, random: &mut Random) -> Vec<Condition> {
    let rows: Vec<&Map<String, Value>> = shown.values().collect();
    let mut conditions = Vec::new();
    let exactly = |q: String, must| Condition {
        q,
        must,
        may_find_others: false,
    };
    for _ in 0..DRAWS {
        let row = random.of(&rows);
        let message = |row: &Map<String, Value>| {
            let text = row.get("_msg").and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        if let Some(part) = random.part_of(&message(row)) {
            let must = ids(shown, |row| message(row).contains(&part));
            conditions.push(Condition {
                q: quoted(&part),
                must: must.clone(),
                may_find_others: true,
            });
            conditions.push(exactly(format!("_msg:{}", quoted(&part)), must));
        }
        let Some(name) = name_of(row, random) else {
            continue;
        };
        conditions.push(exactly(
            format!("{}:*", quoted(name)),
            ids(shown, |row| {
                row.get(name).is_some_and(|value| !value.is_null())
            }),
        ));
        let Some(value) = scalar(&row[name]) else {
            continue;
        };
        let must = ids(shown, |row| {
            row.get(name).is_some_and(|found| equals(found, &value))
        });
        let others = ids(shown, |row| {
            !row.get(name).is_some_and(|found| equals(found, &value))
        });
        let (name_quoted, value_quoted) = (quoted(name), quoted(&value));
        conditions.push(exactly(format!("{name_quoted}={value_quoted}"), must));
        conditions.push(exactly(format!("{name_quoted}!={value_quoted}"), others));
        if let (Value::String(text), Some(part)) = (&row[name], random.part_of(&value)) {
            let contains = |found: &Value| found.as_str().is_some_and(|text| text.contains(&part));
            conditions.push(Condition {
                q: format!("{name_quoted}:{}", quoted(&part)),
                must: ids(shown, |row| row.get(name).is_some_and(contains)),
                // A part of a number or of a list is found in its text.
                may_find_others: true,
            });
            assert!(text.contains(&part));
        }
    }
    conditions
}

/// Fields with values that are shown, and how many records have them.
fn terms(shown: &Shown, random: &mut Random) -> Vec<(String, Value, BTreeSet<String>)> {
    let rows: Vec<&Map<String, Value>> = shown.values().collect();
    let draws = (0..DRAWS).filter_map(|_| {
        let row = random.of(&rows);
        let name = name_of(row, random)?;
        let wanted = scalar(&row[name])?;
        let has =
            |row: &Map<String, Value>| row.get(name).is_some_and(|value| has_term(value, &wanted));
        Some((name.clone(), row[name].clone(), ids(shown, has)))
    });
    draws.collect()
}

/// Fails with all answers that are not as the model says.
fn assert_none(wrong: &[String], when: &str) {
    assert!(
        wrong.is_empty(),
        "{when}: {} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The name of a field of a row.
fn name_of<'r>(row: &'r Map<String, Value>, random: &mut Random) -> Option<&'r String> {
    let names: Vec<&String> = row.keys().filter(|name| !name.starts_with('_')).collect();
    (!names.is_empty()).then(|| random.of(&names))
}

/// The ids that each condition finds. Fails with all that are not as the model says.
fn ask(
    server: &TestServer,
    conditions: &[Condition],
    shown: &Shown,
    when: &str,
) -> Vec<BTreeSet<String>> {
    let mut wrong = Vec::new();
    let mut all = Vec::new();
    for condition in conditions {
        let (rows, trailer) = server.query(&condition.q).unwrap();
        assert_eq!(trailer["complete"], true, "{}: {trailer}", condition.q);
        let found: BTreeSet<String> = rows
            .iter()
            .map(|row| row["_id"].as_str().unwrap().to_owned())
            .collect();
        let lacks: Vec<&String> = condition.must.difference(&found).collect();
        let surplus: Vec<&String> = found.difference(&condition.must).collect();
        if let Some(id) = lacks.first() {
            wrong.push(format!("{} does not find {:?}", condition.q, shown[*id]));
        }
        if let (Some(id), false) = (surplus.first(), condition.may_find_others) {
            wrong.push(format!("{} finds {:?}", condition.q, shown[*id]));
        }
        all.push(found);
    }
    assert_none(&wrong, when);
    all
}

/// The lines that LogQL gives, in order.
fn loki_lines(server: &TestServer, query: &str) -> Vec<String> {
    let range = "start=0&end=4000000000000000000&limit=5000";
    let target = format!("/loki/api/v1/query_range?{range}&query={}", encode(query));
    let answer: Value = serde_json::from_str(&server.get(&target).unwrap()).unwrap();
    let streams = answer["data"]["result"].as_array().unwrap();
    let values = streams
        .iter()
        .flat_map(|stream| stream["values"].as_array().unwrap());
    let mut lines: Vec<String> = values
        .map(|value| value[1].as_str().unwrap().to_owned())
        .collect();
    lines.sort_unstable();
    lines
}

/// LogQL's filters of lines find the lines that LogQL shows, and no others.
fn ask_logql(server: &TestServer, parts: &[String], lines: &[String], when: &str) {
    assert_eq!(loki_lines(server, "{}"), lines, "{when}, lines differ");
    for part in parts {
        let (with, without): (Vec<String>, Vec<String>) =
            lines.iter().cloned().partition(|line| line.contains(part));
        for (operator, wanted) in [("|=", with), ("!=", without)] {
            let query = format!("{{}} {operator} {}", quoted(part));
            assert_eq!(loki_lines(server, &query), wanted, "{when}: {query}");
        }
    }
}

/// Elasticsearch's `term` finds the records that have the value.
fn ask_elasticsearch(
    server: &TestServer,
    terms: &[(String, Value, BTreeSet<String>)],
    rows: &Shown,
    when: &str,
) {
    let mut client = server.client().unwrap();
    let mut wrong = Vec::new();
    for (name, value, must) in terms {
        let body = json!({ "size": 1000, "query": { "term": { name: value } } }).to_string();
        let headers = [("content-type", "application/json")];
        let answer = client
            .send("POST", "/_search", &headers, body.as_bytes())
            .unwrap();
        let answer: Value = serde_json::from_str(&answer.text().unwrap()).unwrap();
        let hits = answer["hits"]["hits"]
            .as_array()
            .unwrap_or_else(|| panic!("{body}: {answer}"));
        let found = hits
            .iter()
            .map(|hit| hit["_id"].as_str().unwrap().to_owned());
        let found: BTreeSet<String> = found.collect();
        for id in must.symmetric_difference(&found) {
            let verb = if found.contains(id) {
                "finds"
            } else {
                "does not find"
            };
            wrong.push(format!("{body} {verb} {:?}", rows[id]));
        }
    }
    assert_none(&wrong, when);
}

#[test]
fn what_is_shown_is_found_before_and_after_a_merge() {
    let wanted = std::env::var(SEEDS_VARIABLE).ok();
    let wanted = wanted.and_then(|count| count.parse().ok());
    for seed in 0..wanted.unwrap_or(SEEDS).min(SEEDS_MAX) {
        say(&format!("seed {seed}"));
        let mut random = Random(seed);
        let scratch = Scratch::new("shown-is-found").unwrap();
        let data = scratch.path().join("data");
        let server = TestServer::start(program(), &data, &[]).unwrap();
        fill(&server, &mut random);
        let rows = shown(&server);
        assert_eq!(rows.len(), 3 * RECORDS);
        let conditions = conditions(&rows, &mut random);
        let first = ask(&server, &conditions, &rows, "in the journal");
        let lines = loki_lines(&server, "{}");
        assert_eq!(lines.len(), rows.len());
        let parts = (0..DRAWS).filter_map(|_| {
            let line = &lines[random.below(lines.len())];
            random.part_of(line)
        });
        let parts: Vec<String> = parts.collect();
        let terms = terms(&rows, &mut random);
        ask_logql(&server, &parts, &lines, "in the journal");
        ask_elasticsearch(&server, &terms, &rows, "in the journal");
        let same = |server: &TestServer, when: &str| {
            assert_eq!(shown(server), rows, "{when}, rows differ");
            ask_logql(server, &parts, &lines, when);
            ask_elasticsearch(server, &terms, &rows, when);
            let found = ask(server, &conditions, &rows, when);
            for (condition, (before, after)) in conditions.iter().zip(first.iter().zip(&found)) {
                assert_eq!(before, after, "{when}: {}", condition.q);
            }
        };
        server.compact().unwrap();
        same(&server, "in segments");
        server.kill();
        let server = TestServer::start(program(), &data, &[]).unwrap();
        same(&server, "after a kill");
    }
}
