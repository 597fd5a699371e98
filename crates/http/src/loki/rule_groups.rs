//! `/loki/api/v1/rules` and `/api/prom/rules`: the rules as they are in their files, in YAML.

use std::fmt::Write;
use std::sync::Arc;

use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Response, StatusCode};
use logpond_record::write_json_string;
use logpond_search::alert::{Action, Rule, Words};
use logpond_search::logql::write_duration;

use super::reply::TEXT;
use crate::App;
use crate::body::Body;
use crate::error::ApiError;
use crate::params::of_path;
use logpond_engine::alert::LoadedGroup;

/// The type of the answer, as Loki writes it.
const YAML: &str = "application/yaml";

/// Answers for all rules, those of a namespace or of one group; changes are refused with the reason.
pub(super) fn answer(
    app: &Arc<App>,
    method: &Method,
    names: &[&str],
) -> Result<Response<Body>, ApiError> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Ok(read_only());
    }
    let names = names.iter().map(|name| of_path(name));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let loaded = app.alerts.as_ref().map(|alerts| alerts.loaded());
    let groups = loaded.iter().flat_map(|loaded| &loaded.groups);
    let is_meant = |group: &&Arc<LoadedGroup>| {
        names.first().is_none_or(|name| group.namespace == *name)
            && names.get(1).is_none_or(|name| *group.group.name == **name)
    };
    let groups: Vec<_> = groups.filter(is_meant).collect();
    let mut out = String::new();
    match (groups.first(), names.len()) {
        (None, 2) => return Ok(missing("group does not exist\n")),
        (None, _) => return Ok(missing("no rule groups found\n")),
        (Some(group), 2) => write_group(group, "", &mut out),
        _ => {
            let mut namespace = None;
            for group in groups {
                if namespace != Some(&group.namespace) {
                    out.push_str(&format!("{}:\n", quoted(&group.namespace)));
                    namespace = Some(&group.namespace);
                }
                out.push_str("    - ");
                write_group(group, "      ", &mut out);
            }
        }
    }
    Ok(Body::whole(StatusCode::OK, YAML, out))
}

fn missing(text: &'static str) -> Response<Body> {
    Body::whole(StatusCode::NOT_FOUND, TEXT, text)
}

fn read_only() -> Response<Body> {
    let text = "rules cannot be changed here: they are in the files of --alert-rules, and changed files \
                are taken in at once\n";
    let mut response = Body::whole(StatusCode::METHOD_NOT_ALLOWED, TEXT, text);
    let allow = HeaderValue::from_static("GET, HEAD");
    response.headers_mut().insert(ALLOW, allow);
    response
}

/// A text in quotes, as JSON and so YAML have it.
fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    write_json_string(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes a group; its first line stands where the writer is, the others are indented.
fn write_group(group: &LoadedGroup, indent: &str, out: &mut String) {
    // Writing to a text does not fail.
    let _ = writeln!(out, "name: {}", quoted(&group.group.name));
    if let Some(interval_ns) = group.group.interval_ns {
        let _ = writeln!(out, "{indent}interval: {}", write_duration(interval_ns));
    }
    if group.group.query_offset_ns > 0 {
        let offset = write_duration(group.group.query_offset_ns);
        let _ = writeln!(out, "{indent}query_offset: {offset}");
    }
    if group.group.limit > 0 {
        let _ = writeln!(out, "{indent}limit: {}", group.group.limit);
    }
    let empty = if group.group.rules.is_empty() {
        " []"
    } else {
        ""
    };
    let _ = writeln!(out, "{indent}rules:{empty}");
    for rule in &group.group.rules {
        write_rule(rule, indent, out);
    }
}

fn write_rule(rule: &Rule, indent: &str, out: &mut String) {
    let kind = if rule.is_alert() { "alert" } else { "record" };
    let _ = writeln!(out, "{indent}    - {kind}: {}", quoted(&rule.name));
    let indent = format!("{indent}      ");
    let _ = writeln!(out, "{indent}expr: {}", quoted(&rule.text));
    let mut said: &[(Box<str>, Words)] = &[];
    if let Action::Alert {
        hold_ns,
        keep_firing_ns,
        annotations,
    } = &rule.action
    {
        said = annotations;
        for (key, time_ns) in [("for", *hold_ns), ("keep_firing_for", *keep_firing_ns)] {
            if time_ns > 0 {
                let _ = writeln!(out, "{indent}{key}: {}", write_duration(time_ns));
            }
        }
    }
    for (key, words) in [("labels", &rule.labels[..]), ("annotations", said)] {
        if !words.is_empty() {
            let _ = writeln!(out, "{indent}{key}:");
        }
        for (name, text) in words {
            let _ = writeln!(
                out,
                "{indent}    {}: {}",
                quoted(name),
                quoted(&text.source)
            );
        }
    }
}
