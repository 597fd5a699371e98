//! `/prometheus/api/v1/rules` and `alerts`: rules and what became of them, as Prometheus shows them.

use std::sync::Arc;

use hyper::Response;
use logpond_record::{Timestamp, cast};
use logpond_search::alert::{Action, Alert, Health, Rule, RuleState, Stage, Words};
use logpond_search::metric::SeriesLabels;
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_128;

use super::{LokiRequest, reply};
use crate::App;
use crate::body::Body;
use crate::error::{ApiError, Kind};
use logpond_engine::alert::{Alerts, GroupStatus, LoadedGroup, matched};

/// A time that never was, as Go writes it.
const NEVER: &str = "0001-01-01T00:00:00Z";

const SECOND_NS: f64 = 1e9;

/// Which rules are wanted.
struct Filters {
    kind: Option<bool>,
    names: Vec<String>,
    groups: Vec<String>,
    files: Vec<String>,
    has_alerts: bool,
    /// How many groups at most, and behind which one of the answer before.
    limit: usize,
    behind: Option<String>,
}

impl Filters {
    fn of(request: &LokiRequest) -> Result<Filters, ApiError> {
        let all = |name: &str| request.params.all(name).map(str::to_owned).collect();
        let kind = match request.text("type") {
            None => None,
            Some("alert") => Some(true),
            Some("record") => Some(false),
            Some(other) => {
                let message = format!("not supported value \"{other}\" of 'type': alert or record");
                return Err(ApiError::bad_request(message));
            }
        };
        if request.text("match[]").is_some() {
            let message = "'match[]' is not supported here; there are rule_name[], rule_group[], \
                           file[] and type";
            return Err(ApiError::bad_request(message));
        }
        let limit = match request.text("group_limit").map(str::parse) {
            None => usize::MAX,
            Some(Ok(limit)) if limit > 0 => limit,
            Some(_) => return Err(ApiError::bad_request("'group_limit' is a number from 1 on")),
        };
        Ok(Filters {
            kind,
            names: all("rule_name[]"),
            groups: all("rule_group[]"),
            files: all("file[]"),
            has_alerts: !matches!(request.text("exclude_alerts"), Some("true" | "1")),
            limit,
            behind: request.text("group_next_token").map(str::to_owned),
        })
    }

    fn wants_group(&self, group: &LoadedGroup) -> bool {
        let is_any = |names: &[String], name: &str| {
            names.is_empty() || names.iter().any(|wanted| wanted == name)
        };
        is_any(&self.groups, &group.group.name)
            && (is_any(&self.files, &group.file) || is_any(&self.files, &group.namespace))
    }

    fn wants(&self, rule: &Rule) -> bool {
        self.kind.is_none_or(|is_alert| rule.is_alert() == is_alert)
            && (self.names.is_empty() || self.names.iter().any(|name| **name == *rule.name))
    }

    fn is_narrow(&self) -> bool {
        self.kind.is_some() || !self.names.is_empty()
    }
}

fn success(data: Value) -> Response<Body> {
    reply::json(&json!({ "status": "success", "data": data, "errorType": "", "error": "" }))
}

/// Makes an answer where the others do not wait for it: there may be thousands of alerts.
async fn apart(
    work: impl FnOnce() -> Result<Response<Body>, ApiError> + Send + 'static,
) -> Result<Response<Body>, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ApiError::new(Kind::Internal, error.to_string())))
}

/// Shows the rules by groups.
pub(super) async fn rules(
    app: &Arc<App>,
    request: LokiRequest,
) -> Result<Response<Body>, ApiError> {
    let app = app.clone();
    apart(move || by_groups(&app, &request)).await
}

/// Shows what is pending and what fires.
pub(super) async fn alerts(app: &Arc<App>) -> Result<Response<Body>, ApiError> {
    let app = app.clone();
    apart(move || Ok(all_alerts(&app))).await
}

fn by_groups(app: &App, request: &LokiRequest) -> Result<Response<Body>, ApiError> {
    let filters = Filters::of(request)?;
    let Some(alerts) = &app.alerts else {
        return Ok(success(json!({ "groups": [] })));
    };
    let loaded = alerts.loaded();
    let wanted = loaded.groups.iter().filter(|g| filters.wants_group(g));
    let mut wanted: Vec<_> = wanted.collect();
    if let Some(token) = &filters.behind {
        let at = wanted.iter().position(|group| token_of(group) == *token);
        let Some(at) = at else {
            let message = "'group_next_token' names no group: the rules have changed; begin anew";
            return Err(ApiError::bad_request(message));
        };
        wanted.drain(..at);
    }
    let mut groups = Vec::new();
    let mut next = None;
    for group in wanted {
        if groups.len() >= filters.limit {
            next = Some(token_of(group));
            break;
        }
        groups.extend(group_json(alerts, group, &filters));
    }
    let mut data = json!({ "groups": groups });
    if let Some(next) = next {
        data["groupNextToken"] = next.into();
    }
    Ok(success(data))
}

fn token_of(group: &LoadedGroup) -> String {
    format!("{:032x}", xxh3_128(group.key.as_bytes()))
}

fn all_alerts(app: &App) -> Response<Body> {
    let mut all = Vec::new();
    if let Some(alerts) = &app.alerts {
        for group in &alerts.loaded().groups {
            let known = alerts.known(&group.key);
            for state in matched(&group.group, &known.state) {
                all.extend(alerts_json(&state));
            }
        }
    }
    success(json!({ "alerts": all }))
}

fn group_json(alerts: &Alerts, group: &LoadedGroup, filters: &Filters) -> Option<Value> {
    let known = alerts.known(&group.key);
    let states = matched(&group.group, &known.state);
    let rules = group.group.rules.iter().zip(&states);
    let rules = rules.filter(|(rule, _)| filters.wants(rule));
    let rules: Vec<_> = rules
        .map(|(rule, state)| rule_json(alerts, rule, state, &known, filters))
        .collect();
    if rules.is_empty() && filters.is_narrow() {
        return None;
    }
    let mut shown = json!({
        "name": &*group.group.name,
        "file": group.file,
        "interval": cast::float(group.schedule.interval_ns()) / SECOND_NS,
        "limit": group.group.limit,
        "evaluationTime": cast::float(known.state.took_ns) / SECOND_NS,
        "lastEvaluation": time(known.state.evaluated_at),
        "rules": rules,
    });
    if let Some(owner) = &known.owner {
        shown["evaluatedBy"] = owner.as_str().into();
    }
    Some(shown)
}

fn rule_json(
    alerts: &Alerts,
    rule: &Rule,
    state: &RuleState,
    known: &GroupStatus,
    filters: &Filters,
) -> Value {
    let (mut health, mut error) = match &state.health {
        Health::Unknown => ("unknown", None),
        Health::Good => ("ok", None),
        Health::Bad(why) => ("err", Some(why.to_string())),
    };
    let is_told = state.alerts.values().any(|a| a.stage != Stage::Pending);
    let troubles = [
        known.silence.clone(),
        alerts
            .undelivered()
            .filter(|_| is_told && known.owner.is_none()),
    ];
    for trouble in troubles.into_iter().flatten() {
        health = "err";
        error = Some(error.map_or(trouble.clone(), |error| format!("{error}; {trouble}")));
    }
    let mut shown = json!({
        "name": &*rule.name,
        "query": &*rule.text,
        "labels": words(&rule.labels),
        "health": health,
        "evaluationTime": cast::float(state.took_ns) / SECOND_NS,
        "lastEvaluation": time(state.evaluated_at),
        "type": if rule.is_alert() { "alerting" } else { "recording" },
    });
    if let Some(error) = error {
        shown["lastError"] = error.into();
    }
    if let Action::Alert {
        hold_ns,
        keep_firing_ns,
        annotations,
    } = &rule.action
    {
        shown["state"] = state.stage().map_or("inactive", stage_name).into();
        shown["duration"] = (cast::float(*hold_ns) / SECOND_NS).into();
        shown["keepFiringFor"] = (cast::float(*keep_firing_ns) / SECOND_NS).into();
        shown["annotations"] = words(annotations);
        let listed = if filters.has_alerts {
            alerts_json(state).collect()
        } else {
            Vec::new()
        };
        shown["alerts"] = listed.into();
    }
    shown
}

fn alerts_json(state: &RuleState) -> impl Iterator<Item = Value> {
    let there = state.alerts.iter();
    let there = there.filter(|(_, alert)| alert.stage != Stage::Resolved);
    there.map(|(labels, alert)| alert_json(labels, alert))
}

fn alert_json(labels: &SeriesLabels, alert: &Alert) -> Value {
    let annotations = alert.annotations.iter();
    let annotations: Map<_, _> = annotations
        .map(|(name, text)| (name.to_string(), (&**text).into()))
        .collect();
    let labels = labels.iter();
    let labels: Map<_, _> = labels
        .map(|(name, text)| (name.to_owned(), text.into()))
        .collect();
    let mut shown = json!({
        "labels": labels,
        "annotations": annotations,
        "state": stage_name(alert.stage),
        "activeAt": alert.active_at.to_string(),
        "value": scientific(alert.value),
    });
    if let Some(since) = alert.kept_since {
        shown["keepFiringSince"] = since.to_string().into();
    }
    shown
}

fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Pending => "pending",
        Stage::Firing => "firing",
        Stage::Resolved => "inactive",
    }
}

fn words(words: &[(Box<str>, Words)]) -> Value {
    let words = words.iter();
    let all: Map<_, _> = words
        .map(|(name, text)| (name.to_string(), (&*text.source).into()))
        .collect();
    Value::Object(all)
}

fn time(time: Option<Timestamp>) -> String {
    time.map_or(NEVER.to_owned(), |time| time.to_string())
}

/// `2.5e+00`, as values of alerts are shown.
fn scientific(value: f64) -> String {
    if !value.is_finite() {
        return match value {
            v if v.is_nan() => "NaN",
            v if v > 0.0 => "+Inf",
            _ => "-Inf",
        }
        .to_owned();
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_prometheus_shows_them() {
        let table = [
            (1.0, "1e+00"),
            (12.5, "1.25e+01"),
            (-0.001, "-1e-03"),
            (0.0, "0e+00"),
            (1e100, "1e+100"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Inf"),
        ];
        for (value, expected) in table {
            assert_eq!(scientific(value), expected);
        }
    }
}
