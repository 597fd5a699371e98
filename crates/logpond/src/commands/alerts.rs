//! `logpond alerts`: checks files of alert rules, and lists the rules of a server.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::listing::print;
use super::{Exit, Failure, client};
use crate::cli::{Alerts, AlertsCheck, AlertsList, TableFormat};
use logpond_client::{ClientError, Parameters};
use logpond_engine::alert;
use logpond_host::terminal::{complain, note};
use logpond_render::Table;

/// The longest answer: ten thousand alerts of some 2 KB.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

pub(super) fn run(alerts: &Alerts) -> Result<Exit, Failure> {
    match alerts {
        Alerts::Check(args) => check(args),
        Alerts::List(args) => list(args),
    }
}

/// Says of each path how many rules there are, or what is wrong.
fn check(args: &AlertsCheck) -> Result<Exit, Failure> {
    let mut exit = Exit::Found;
    let mut out = String::new();
    for path in &args.paths {
        match alert::read(path) {
            Ok(loaded) => {
                let rules = loaded.groups.iter().map(|group| group.group.rules.len());
                let (groups, rules) = (loaded.groups.len(), rules.sum::<usize>());
                out.push_str(&format!(
                    "{}: {} in {}\n",
                    path.display(),
                    counted(rules, "rule"),
                    counted(groups, "group")
                ));
            }
            Err(error) => {
                complain(&error);
                exit = Exit::Error;
            }
        }
    }
    print(out.as_bytes())?;
    Ok(exit)
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// What the server says.
#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    #[serde(rename = "evaluatedBy", default)]
    evaluated_by: String,
    rules: Vec<Map<String, Value>>,
}

fn list(args: &AlertsList) -> Result<Exit, Failure> {
    let client = client(&args.server)?;
    let answer = client.get("/prometheus/api/v1/rules", &Parameters::new())?;
    let text = answer.into_text(ANSWER_BYTES_MAX)?;
    let answer: Answer =
        serde_json::from_slice(&text).map_err(|error| ClientError::Nonsense(Box::new(error)))?;
    let groups = answer.data.groups.iter();
    let rules = groups.flat_map(|group| group.rules.iter().map(move |rule| (group, rule)));
    let rules: Vec<_> = rules
        .filter(|(_, rule)| !args.active || alerts_of(rule).next().is_some())
        .collect();
    let mut out = Vec::new();
    match args.table.output {
        TableFormat::Json => {
            for (_, rule) in &rules {
                serde_json::to_writer(&mut out, rule)?;
                out.push(b'\n');
            }
        }
        TableFormat::Text => write(&rules, &mut out),
    }
    print(&out)?;
    let is_bad = |(_, rule): &(&Group, &Map<String, Value>)| rule["health"] == "err";
    if rules.is_empty() {
        note(if args.active {
            "no rule has alerts"
        } else {
            "the server has no alert rules"
        });
        return Ok(Exit::None);
    }
    if rules.iter().any(is_bad) {
        Ok(Exit::Incomplete)
    } else {
        Ok(Exit::Found)
    }
}

fn alerts_of(rule: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let alerts = rule.get("alerts").and_then(Value::as_array);
    alerts.into_iter().flatten()
}

/// A line for each rule, and one below it for each of its alerts.
fn write(rules: &[(&Group, &Map<String, Value>)], out: &mut Vec<u8>) {
    let is_clustered = rules
        .iter()
        .any(|(group, _)| !group.evaluated_by.is_empty());
    let columns = [
        ("group", false),
        ("rule", false),
        ("state", false),
        ("health", false),
        ("last evaluation", false),
        ("value", true),
        ("since", false),
        ("evaluated by", false),
    ];
    let shown = columns.len() - usize::from(!is_clustered);
    let mut table = Table::new(&columns[..shown]);
    for (group, rule) in rules {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
        let state = if rule.contains_key("state") {
            text("state")
        } else {
            "record"
        };
        let row = [
            group.name.clone(),
            text("name").to_owned(),
            state.to_owned(),
            text("health").to_owned(),
            seconds(text("lastEvaluation")),
            String::new(),
            String::new(),
            group.evaluated_by.clone(),
        ];
        table.row(row[..shown].to_vec());
        for alert in alerts_of(rule) {
            let text = |name: &str| alert[name].as_str().unwrap_or_default();
            let row = [
                String::new(),
                format!("  {}", labels(&alert["labels"])),
                text("state").to_owned(),
                String::new(),
                String::new(),
                value(text("value")),
                seconds(text("activeAt")),
                String::new(),
            ];
            table.row(row[..shown].to_vec());
        }
    }
    table.write(out);
    for (group, rule) in rules {
        let error = rule.get("lastError").and_then(Value::as_str);
        if let Some(error) = error {
            let name = rule.get("name").and_then(Value::as_str).unwrap_or_default();
            out.extend_from_slice(format!("\n{}, {name}: {error}\n", group.name).as_bytes());
        }
    }
}

/// A time without its fraction; nothing for one that never was.
fn seconds(time: &str) -> String {
    match time.split_once('.') {
        Some((time, _)) => format!("{time}Z"),
        None if time.starts_with("0001-") => "never".to_owned(),
        None => time.to_owned(),
    }
}

/// A number as people write it.
fn value(text: &str) -> String {
    let number = text.parse::<f64>();
    number.map_or(text.to_owned(), |number| number.to_string())
}

/// All labels but the name, which stands above.
fn labels(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    let labels = labels.filter(|(name, _)| *name != "alertname");
    let labels: Vec<_> = labels
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if labels.is_empty() {
        "{}".to_owned()
    } else {
        labels.join(" ")
    }
}
