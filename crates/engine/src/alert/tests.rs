//! Rules and their states, and what receivers are sent.

use std::sync::Arc;

use logpond_record::Timestamp;
use logpond_search::alert::{
    EvaluationResult, Group, GroupState, Health, Notice, RuleState, parse,
};
use logpond_search::metric::{Answer, SeriesLabels};
use serde_json::{Value, json};

use super::notify::{QueuedNotice, Target, fingerprint};
use super::*;
use logpond_settings::{Receiver, ReceiverForm};

fn groups(rules: &[&str]) -> Vec<Group> {
    let rules: String = rules.iter().map(|rule| format!("  - {rule}\n")).collect();
    parse(&format!("groups:\n- name: g\n  rules:\n{rules}")).unwrap()
}

#[test]
fn rules_find_their_states_again() {
    let a = "{ alert: A, expr: vector(1) }";
    let b = "{ alert: B, expr: vector(1), for: 5m }";
    let before = groups(&[a, a, b]).remove(0);
    let named = |why: &str| RuleState {
        health: Health::Bad(why.into()),
        ..RuleState::default()
    };
    let keys = before.rules.iter().map(|rule| rule.key());
    let state = GroupState {
        key: "g".to_owned(),
        rules: keys.zip([named("1"), named("2"), named("3")]).collect(),
        ..GroupState::default()
    };
    // Another order, another time to wait, one rule less and one more.
    let b = "{ alert: B, expr: vector(1), for: 1m }";
    let after = groups(&[b, "{ alert: C, expr: vector(1) }", a]).remove(0);
    let found = matched(&after, &state);
    assert_eq!(found, [named("3"), RuleState::default(), named("1")]);
    let gone = parted(&after, &state).1;
    assert_eq!(gone, [(before.rules[1].key(), named("2"))]);
    let both = matched(&before, &state);
    assert_eq!(both, [named("1"), named("2"), named("3")]);
}

#[test]
fn numbers_that_lack_something_are_not_recorded() {
    let rules = groups(&[
        "{ record: R, expr: vector(1) }",
        "{ alert: A, expr: vector(1) }",
    ]);
    let rules = &rules[0].rules;
    let mut found = EvaluationResult {
        answer: Answer::Scalar(1.0),
        missing: None,
    };
    assert!(evaluate::is_recorded(&rules[0].action, &found));
    assert!(!evaluate::is_recorded(&rules[1].action, &found));
    found.missing = Some("a segment is gone".into());
    assert!(!evaluate::is_recorded(&rules[0].action, &found));
}

#[test]
fn other_rules_have_another_digest() {
    let load = |rules: &[&str]| {
        let groups = groups(rules).into_iter();
        RuleSet::new(
            groups
                .map(|g| Arc::new(LoadedGroup::new("f.yml", "/etc/f.yml", g)))
                .collect(),
        )
    };
    let a = load(&["{ alert: A, expr: vector(1) }"]);
    assert_eq!(a.digest, load(&["{ alert: A, expr: vector(1) }"]).digest);
    assert_ne!(a.digest, load(&["{ alert: A, expr: vector(2) }"]).digest);
    assert_eq!(RuleSet::default().digest, 0);
    assert_eq!(a.groups[0].key, "f.yml;g");
}

fn labels(app: &str) -> Arc<SeriesLabels> {
    Arc::new(SeriesLabels::new([("alertname", "A"), ("app", app)]))
}

fn waiting(app: &str, is_resolved: bool) -> QueuedNotice {
    let second = |n: i64| Timestamp(n * 1_000_000_000);
    let notice = Notice {
        labels: labels(app),
        annotations: vec![("summary".into(), "it is so".into())],
        query: "vector(1)".into(),
        starts_at: second(60),
        ends_at: second(if is_resolved { 90 } else { 360 }),
        is_resolved,
        value: 1.0,
        is_news: true,
        news_since: second(60),
        is_due: true,
    };
    QueuedNotice {
        notice,
        rule: "f;g;A".into(),
        generator_url: "http://l/?logql=vector%281%29".into(),
        at: second(120),
    }
}

#[test]
fn a_change_is_told_once_however_long_the_receiver_takes() {
    let receiver = Receiver::parse(ReceiverForm::Webhook, "http://127.0.0.1:9/").unwrap();
    let target = Target::new(receiver);
    let (_stopper, stop) = logpond_host::shutdown::pair();
    target.tell(waiting("shop", true));
    let batch = target.next(&stop).unwrap();
    // The next evaluation comes before the receiver has answered.
    let mut again = waiting("shop", true);
    again.at = Timestamp(150_000_000_000);
    target.tell(again.clone());
    // So does one of another alert.
    target.tell(QueuedNotice {
        at: again.at,
        ..waiting("mail", true)
    });
    target.finish(&batch);
    let rest = target.next(&stop).unwrap();
    let apps = rest.iter().map(|queued| queued.notice.labels.get("app"));
    assert_eq!(apps.collect::<Vec<_>>(), [Some("mail")]);
    target.finish(&rest);
    // Another change of the same alert is told.
    again.notice.is_resolved = false;
    target.tell(again.clone());
    let fires = target.next(&stop).unwrap();
    again.notice.is_resolved = true;
    again.notice.news_since = Timestamp(170_000_000_000);
    again.at = Timestamp(180_000_000_000);
    target.tell(again);
    target.finish(&fires);
    assert_eq!(target.next(&stop).unwrap()[0].at.0, 180_000_000_000);
}

#[test]
fn alertmanagers_are_sent_what_prometheus_sends() {
    let body = super::notify::alertmanager::body(&[waiting("shop", false)]);
    let body: Value = serde_json::from_str(&body).unwrap();
    let expected = json!([{
        "labels": { "alertname": "A", "app": "shop" },
        "annotations": { "summary": "it is so" },
        "startsAt": "1970-01-01T00:01:00.000000000Z",
        "endsAt": "1970-01-01T00:06:00.000000000Z",
        "generatorURL": "http://l/?logql=vector%281%29",
    }]);
    assert_eq!(body, expected);
}

#[test]
fn webhooks_are_sent_what_an_alertmanager_sends() {
    let batch = [waiting("shop", false), waiting("mail", true)];
    let body = super::notify::webhook::body(&batch, "http://l");
    let body: Value = serde_json::from_str(&body).unwrap();
    let alert = |app: &str, status: &str, ends_at: &str, fingerprint: &str| {
        json!({
            "status": status,
            "labels": { "alertname": "A", "app": app },
            "annotations": { "summary": "it is so" },
            "startsAt": "1970-01-01T00:01:00.000000000Z",
            "endsAt": ends_at,
            "generatorURL": "http://l/?logql=vector%281%29",
            "fingerprint": fingerprint,
        })
    };
    let of = |app| format!("{:016x}", fingerprint(&labels(app)));
    let expected = json!({
        "version": "4",
        "groupKey": "{}:{alertname=\"A\"}",
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "logpond",
        "groupLabels": { "alertname": "A" },
        "commonLabels": { "alertname": "A" },
        "commonAnnotations": { "summary": "it is so" },
        "externalURL": "http://l",
        "alerts": [
            alert("shop", "firing", "0001-01-01T00:00:00Z", &of("shop")),
            alert("mail", "resolved", "1970-01-01T00:01:30.000000000Z", &of("mail")),
        ],
    });
    assert_eq!(body, expected);
}

#[test]
fn fingerprints_are_those_of_an_alertmanager() {
    // The offset of FNV-1a, and what it makes of: a ff b ff.
    assert_eq!(fingerprint(&SeriesLabels::default()), 0xcbf2_9ce4_8422_2325);
    let one = b"a\xffb\xff"
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211)
        });
    assert_eq!(fingerprint(&SeriesLabels::new([("a", "b")])), one);
}

#[test]
fn a_receiver_of_changes_does_not_know_what_it_was_not_sent() {
    let receiver = |form| Receiver::parse(form, "http://127.0.0.1:1/").unwrap();
    let webhook = Target::new(receiver(ReceiverForm::Webhook));
    assert!(!webhook.knows(&waiting("shop", false).notice));
    let alertmanager = Target::new(receiver(ReceiverForm::Alertmanager));
    assert!(alertmanager.knows(&waiting("shop", false).notice));
}
