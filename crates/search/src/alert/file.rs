//! A file of rules: `groups:` of `alert:` and `record:` rules, each mistake named with its place.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::rule::{Action, Group, Rule, Words};
use super::yaml::{self, Kind, Node, Place};
use crate::logql::{self, Query, duration_ns};
use crate::metric::Plan;
use crate::nearest;
use logpond_record::Timestamp;

/// The longest file: far above any that people write.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// The most groups of a file.
const GROUPS_MAX: usize = 500;

/// The most rules of a group.
const RULES_MAX: usize = 1000;

/// The most labels, or annotations, of a rule.
const LABELS_MAX: usize = 100;

/// The longest name of a group, a rule or a label.
const NAME_BYTES_MAX: usize = 512;

/// The longest label or annotation; runbooks are linked, not quoted.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// The shortest interval: a query takes milliseconds.
const INTERVAL_MIN_NS: i64 = 100_000_000;

/// The longest duration of any kind.
const DURATION_MAX_NS: i64 = 366 * 86_400 * 1_000_000_000;

const TOP_KEYS: [&str; 2] = ["groups", "namespace"];
const GROUP_KEYS: [&str; 6] = [
    "name",
    "interval",
    "query_offset",
    "limit",
    "labels",
    "rules",
];
const RULE_KEYS: [&str; 7] = [
    "alert",
    "record",
    "expr",
    "for",
    "keep_firing_for",
    "labels",
    "annotations",
];

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFileError {
    /// The line, counted from 1.
    pub line: usize,
    /// The character of the line, counted from 1.
    pub column: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

impl RuleFileError {
    pub(super) fn new(place: Place, message: String) -> RuleFileError {
        RuleFileError {
            line: place.line,
            column: place.column,
            message,
        }
    }
}

impl fmt::Display for RuleFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for RuleFileError {}

type Result<T> = std::result::Result<T, RuleFileError>;

fn wrong<T>(node: &Node, message: impl Into<String>) -> Result<T> {
    Err(RuleFileError::new(node.place, message.into()))
}

/// Reads the text of a file.
///
/// # Errors
/// The first mistake, with its place.
pub fn parse(text: &str) -> Result<Vec<Group>> {
    if text.len() > FILE_BYTES_MAX {
        let message = format!("it is longer than {FILE_BYTES_MAX} bytes");
        return Err(RuleFileError::new(Place { line: 1, column: 1 }, message));
    }
    let Some(root) = yaml::read(text)? else {
        return Ok(Vec::new());
    };
    let mut groups = Vec::new();
    for (key, value) in entries(&root, "a file of rules", &TOP_KEYS)? {
        if key == "groups" {
            let list = list(value, "groups", GROUPS_MAX)?;
            groups = list.iter().map(group).collect::<Result<_>>()?;
            are_distinct(list, &groups)?;
        }
    }
    Ok(groups)
}

fn are_distinct(nodes: &[Node], groups: &[Group]) -> Result<()> {
    let mut names = BTreeSet::new();
    for (node, group) in nodes.iter().zip(groups) {
        if !names.insert(&*group.name) {
            let name = &group.name;
            return wrong(node, format!("two groups of this file are called '{name}'"));
        }
    }
    Ok(())
}

fn group(node: &Node) -> Result<Group> {
    let entries = entries(node, "a group", &GROUP_KEYS)?;
    let of = |key| entries.iter().find(|(known, _)| *known == key);
    let mut group = Group {
        name: match of("name") {
            Some((_, name)) => name_of(name, "name")?.into(),
            None => return wrong(node, "this group has no name; give it one: name: NAME"),
        },
        interval_ns: None,
        query_offset_ns: 0,
        limit: 0,
        rules: Vec::new(),
    };
    let shared = match of("labels") {
        Some((_, value)) => words(value, "labels", true)?,
        None => Vec::new(),
    };
    for (key, value) in &entries {
        match *key {
            "interval" => {
                let interval = duration(value, key)?;
                if interval != 0 && interval < INTERVAL_MIN_NS {
                    return wrong(value, "an interval is from 100ms on");
                }
                group.interval_ns = Some(interval).filter(|interval| *interval > 0);
            }
            "query_offset" => group.query_offset_ns = duration(value, key)?,
            "limit" => {
                let limit = text_of(value, key)?.parse().ok();
                let Some(limit) = limit else {
                    return wrong(value, "limit is a whole number; 0 is none");
                };
                group.limit = limit;
            }
            "rules" => {
                let rules = list(value, key, RULES_MAX)?.iter();
                let rules = rules.map(|node| rule(node, &shared).map(Arc::new));
                group.rules = rules.collect::<Result<_>>()?;
            }
            _ => {}
        }
    }
    Ok(group)
}

type Named = Vec<(Box<str>, Words)>;

fn rule(node: &Node, shared: &Named) -> Result<Rule> {
    let entries = entries(node, "a rule", &RULE_KEYS)?;
    let of = |key| {
        let found = entries.iter().find(|(known, _)| *known == key);
        found.map(|(_, value)| *value)
    };
    let (name, is_alert) = match (of("alert"), of("record")) {
        (Some(name), None) => (name_of(name, "alert")?, true),
        (None, Some(name)) => (name_of(name, "record")?, false),
        (Some(_), Some(name)) => {
            return wrong(name, "a rule is an alert or a record; make two rules of it");
        }
        (None, None) => {
            return wrong(
                node,
                "this rule has no name; give it one: alert: NAME, or record: NAME",
            );
        }
    };
    let Some(expression) = of("expr") else {
        return wrong(node, "this rule has no query; give it one: expr: QUERY");
    };
    let query = query(expression)?;
    let mut labels = shared.clone();
    if let Some(value) = of("labels") {
        for (name, words) in words(value, "labels", true)? {
            labels.retain(|(known, _)| *known != name);
            labels.push((name, words));
        }
    }
    let time = |key| of(key).map_or(Ok(0), |value| duration(value, key));
    let action = if is_alert {
        Action::Alert {
            hold_ns: time("for")?,
            keep_firing_ns: time("keep_firing_for")?,
            annotations: match of("annotations") {
                Some(value) => words(value, "annotations", false)?,
                None => Vec::new(),
            },
        }
    } else {
        for key in ["for", "keep_firing_for", "annotations"] {
            if let Some(value) = of(key) {
                return wrong(value, format!("'{key}' is for alerts; a record has none"));
            }
        }
        Action::Record
    };
    Ok(Rule {
        name: name.into(),
        text: query.to_string().into(),
        query,
        labels,
        action,
        line: node.place.line,
    })
}

fn query(node: &Node) -> Result<logql::Metric> {
    let text = text_of(node, "expr")?;
    let at = |message: String| RuleFileError::new(node.place, message);
    let metric = match logql::parse(&text) {
        Ok(Query::Metric(metric)) => metric,
        Ok(Query::Log(_)) => {
            return Err(at(
                "expr asks for lines; a rule needs numbers, such as: sum(count_over_time({app=\"shop\"} \
                 |= \"error\" [5m])) > 10"
                    .to_owned(),
            ));
        }
        Err(error) => return Err(at(format!("expr: {error}"))),
    };
    // What the parser takes may still not compile: regular expressions, templates.
    let plan = Plan::instant(metric.clone(), Timestamp(0), 0);
    plan.map_err(|error| at(format!("expr: {error}")))?;
    Ok(metric)
}

/// Labels or annotations.
fn words(node: &Node, key: &str, are_labels: bool) -> Result<Named> {
    if node.is_null() {
        return Ok(Vec::new());
    }
    let Kind::Map(pairs) = &node.kind else {
        return wrong(node, format!("{key} is a map of names and texts"));
    };
    if pairs.len() > LABELS_MAX {
        return wrong(node, format!("a rule has at most {LABELS_MAX} {key}"));
    }
    let mut all: Named = Vec::new();
    for (name_node, value) in pairs {
        let name = name_of(name_node, key)?;
        if all.iter().any(|(known, _)| **known == *name) {
            return wrong(name_node, format!("'{name}' is there twice"));
        }
        if are_labels && !is_label(&name) {
            return wrong(
                name_node,
                format!(
                    "'{name}' is no name for a label: it has letters, digits and _, does not begin with a \
                     digit, and is not __name__"
                ),
            );
        }
        let text = text_of(value, &name)?;
        if text.len() > TEXT_BYTES_MAX {
            return wrong(value, format!("a text has at most {TEXT_BYTES_MAX} bytes"));
        }
        let words = Words::new(&text)
            .map_err(|error| RuleFileError::new(value.place, format!("{name}: {error}")))?;
        all.push((name.into(), words));
    }
    Ok(all)
}

fn is_label(name: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(is_known)
        && name != "__name__"
}

fn entries<'n>(
    node: &'n Node,
    what: &str,
    known: &[&'static str],
) -> Result<Vec<(&'static str, &'n Node)>> {
    let Kind::Map(pairs) = &node.kind else {
        return wrong(node, format!("{what} is a map of {}", known.join(", ")));
    };
    let mut found: Vec<(&'static str, &Node)> = Vec::new();
    for (key_node, value) in pairs {
        let name = match &key_node.kind {
            Kind::Scalar(name, _) => &**name,
            _ => return wrong(key_node, format!("{what} has no such key")),
        };
        let Some(key) = known.iter().find(|key| **key == name) else {
            let meant = nearest(name, known.iter().copied());
            let meant = meant.map(|meant| format!("; did you mean '{meant}'?"));
            let message = format!(
                "'{name}' is nothing that {what} has: {}{}",
                known.join(", "),
                meant.unwrap_or_default()
            );
            return wrong(key_node, message);
        };
        if found.iter().any(|(other, _)| other == key) {
            return wrong(key_node, format!("'{key}' is there twice"));
        }
        // A key without a value is as none.
        if !value.is_null() {
            found.push((key, value));
        }
    }
    Ok(found)
}

fn list<'n>(node: &'n Node, key: &str, most: usize) -> Result<&'n [Node]> {
    match &node.kind {
        Kind::List(list) if list.len() <= most => Ok(list),
        Kind::List(_) => wrong(node, format!("there are at most {most} {key}")),
        _ => wrong(node, format!("{key} is a list")),
    }
}

fn text_of(node: &Node, key: &str) -> Result<String> {
    match &node.kind {
        Kind::Scalar(text, _) => Ok(text.clone()),
        _ => wrong(node, format!("{key} is a text")),
    }
}

fn name_of(node: &Node, key: &str) -> Result<String> {
    let text = text_of(node, key)?;
    if text.trim().is_empty() || text.len() > NAME_BYTES_MAX {
        wrong(node, format!("a name has from 1 to {NAME_BYTES_MAX} bytes"))
    } else {
        Ok(text)
    }
}

fn duration(node: &Node, key: &str) -> Result<i64> {
    let text = text_of(node, key)?;
    let read = duration_ns(text.trim());
    match read.filter(|ns| (0..=DURATION_MAX_NS).contains(ns)) {
        Some(ns) => Ok(ns),
        None => wrong(
            node,
            format!("'{text}' is no duration for {key}: expected one such as 5m, 1h30m or 2d"),
        ),
    }
}

/// Reads any bytes as a file of rules and checks what must hold for every one: reading ends, a mistake
/// lies within the text, and what was read can be shown and read again. An entry point for fuzzing.
///
/// # Panics
/// If one of these does not hold.
pub fn fuzz_alert_rules(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse(&text) {
        Ok(groups) => {
            for rule in groups.iter().flat_map(|group| &group.rules) {
                assert!(!rule.name.is_empty() && !rule.key().is_empty());
            }
        }
        Err(error) => {
            // YAML ends lines by line feeds, carriage returns, or both (YAML 1.2, section 5.4). What is
            // missing at the end may be missed on the line behind it.
            let lines = text.matches(['\n', '\r']).count() + 1;
            assert!(
                error.line >= 1 && error.line <= lines + 1,
                "{error}: {lines} lines"
            );
        }
    }
}
