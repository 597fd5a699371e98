//! Files good and bad, alerts from evaluation to evaluation, and the same across restarts.

use std::sync::Arc;

use logpond_record::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::metric::{Answer, Sample, SeriesLabels};

const SECOND_NS: i64 = 1_000_000_000;

const GOOD: &str = r#"
# Rules of a shop.
groups:
  - name: shop
    interval: 30s
    query_offset: 10s
    limit: 5
    labels: { team: web }
    rules:
      - alert: Errors
        expr: |
          sum by (app) (count_over_time({app="shop"} |= "error" [5m])) > 10
        for: 2m
        keep_firing_for: 1m
        labels: &labels
          severity: '{{ if gt $value 100.0 }}page{{ else }}ticket{{ end }}'
        annotations:
          summary: "{{ $labels.app }} has {{ $value | humanize }} errors"
      - record: app:lines:rate5m
        expr: sum by (app) (rate({app=~".+"}[5m]))
        labels: *labels
  - name: empty
"#;

#[test]
fn a_file_is_read() {
    let groups = parse(GOOD).unwrap();
    let [shop, empty] = &groups[..] else {
        panic!("{groups:?}");
    };
    assert_eq!(shop.interval_ns, Some(30 * SECOND_NS));
    assert_eq!((shop.limit, shop.query_offset_ns), (5, 10 * SECOND_NS));
    assert_eq!(
        (&*empty.name, empty.interval_ns, empty.rules.len()),
        ("empty", None, 0)
    );
    let [alert, record] = &shop.rules[..] else {
        panic!("{shop:?}");
    };
    let Action::Alert {
        hold_ns,
        keep_firing_ns,
        annotations,
    } = &alert.action
    else {
        panic!("{alert:?}");
    };
    assert_eq!(
        (*hold_ns, *keep_firing_ns),
        (120 * SECOND_NS, 60 * SECOND_NS)
    );
    assert_eq!(
        (annotations.len(), alert.line, &*alert.name),
        (1, 10, "Errors")
    );
    let names: Vec<_> = alert.labels.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["team", "severity"]);
    assert!(matches!(record.action, Action::Record));
    assert_eq!(record.labels.len(), 2);
    assert_ne!(alert.key(), record.key());
    assert!(parse("").unwrap().is_empty());
    assert!(parse("groups:\n").unwrap().is_empty());
}

/// A file with a rule of these lines.
fn with_rule(lines: &str) -> String {
    format!(
        "groups:\n- name: g\n  rules:\n  - {}\n",
        lines.replace('\n', "\n    ")
    )
}

/// Each text is refused at a place that is written so, with these words.
fn are_refused(table: &[(String, &str, &str)]) {
    for (text, place, part) in table {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with(place), "{text}: {error}");
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn mistakes_are_named_with_their_places() {
    let table = [
        ("groups: [".to_owned(), "2:", "expected"),
        ("group: []".to_owned(), "1:1:", "did you mean 'groups'?"),
        ("[1, 2]".to_owned(), "1:1:", "a map of groups"),
        ("groups: 5".to_owned(), "1:9:", "groups is a list"),
        ("groups:\n- rules: []".to_owned(), "2:3:", "name: NAME"),
        (
            "groups:\n- name: a\n- name: a".to_owned(),
            "3:3:",
            "two groups",
        ),
        ("groups:\n- name: a\n  name: b".to_owned(), "3:3:", "twice"),
        (
            "groups:\n- name: a\n  interval: often".to_owned(),
            "3:13:",
            "no duration",
        ),
        (
            "groups:\n- name: a\n  interval: 1ms".to_owned(),
            "3:13:",
            "100ms",
        ),
        (
            "groups:\n- name: a\n  limit: -1".to_owned(),
            "3:10:",
            "whole number",
        ),
        (
            "groups: []\n---\ngroups: []".to_owned(),
            "2:",
            "one document",
        ),
    ];
    are_refused(&table);
}

#[test]
fn mistakes_of_rules_are_named_with_their_places() {
    let ok = "expr: vector(1)";
    let table = [
        (with_rule(ok), "4:5:", "no name"),
        (with_rule("alert: A"), "4:5:", "expr: QUERY"),
        (
            with_rule(&format!("alert: A\nrecord: b\n{ok}")),
            "5:13:",
            "two rules",
        ),
        (
            with_rule("alert: A\nexpr: '{app=\"x\"}'"),
            "5:11:",
            "asks for lines",
        ),
        (
            with_rule("alert: A\nexpr: sum(rate({app=\"x\"}[5m])"),
            "5:11:",
            "parse error at line 1",
        ),
        (
            with_rule(&format!("alert: A\n{ok}\nfor: 5 minutes")),
            "6:10:",
            "no duration for for",
        ),
        (
            with_rule(&format!("alert: A\n{ok}\nforr: 5m")),
            "6:5:",
            "did you mean 'for'?",
        ),
        (
            with_rule(&format!("alert: A\n{ok}\nfor: -5m")),
            "6:10:",
            "no duration",
        ),
        (
            with_rule(&format!("record: a\n{ok}\nfor: 5m")),
            "6:10:",
            "for alerts",
        ),
        (
            with_rule(&format!("alert: A\n{ok}\nlabels:\n  a-b: c")),
            "7:7:",
            "no name for a label",
        ),
        (
            with_rule(&format!("alert: A\n{ok}\nlabels: [a]")),
            "6:13:",
            "map of names",
        ),
        (
            with_rule(&format!("alert: A\n{ok}\nlabels:\n  a: '{{{{ $x }}}}'")),
            "7:10:",
            "undefined variable",
        ),
        (
            with_rule(&format!(
                "alert: A\n{ok}\nannotations:\n  a: '{{{{ nope }}}}'"
            )),
            "7:10:",
            "not defined",
        ),
        (
            with_rule(&format!("alert: A\n{ok}\nannotations:\n  a: '{{{{'")),
            "7:10:",
            "unclosed",
        ),
        ("a: &a [*a]".to_owned(), "1:", ""),
    ];
    are_refused(&table);
}

#[test]
fn reading_is_bounded() {
    let deep = format!("groups: {}{}", "[".repeat(100), "]".repeat(100));
    assert!(parse(&deep).is_err());
    // Each line repeats the one before ten times.
    let mut laughs = "x0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for at in 1..9 {
        let before = vec![format!("*a{}", at - 1); 10].join(",");
        laughs.push_str(&format!("x{at}: &a{at} [{before}]\n"));
    }
    assert!(parse(&laughs).unwrap_err().message.contains("aliases"));
    let long = format!("# {}", "x".repeat(FILE_BYTES_MAX));
    assert!(parse(&long).unwrap_err().message.contains("longer"));
    fuzz_alert_rules(GOOD.as_bytes());
    fuzz_alert_rules(laughs.as_bytes());
}

fn rule(more: &str) -> Arc<Rule> {
    let text = with_rule(&format!("alert: A\nexpr: vector(1)\n{more}"));
    parse(&text).unwrap()[0].rules[0].clone()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp(seconds * SECOND_NS)
}

/// An answer with a number for each of these series.
fn answer(apps: &[&str], is_complete: bool) -> EvaluationResult {
    let samples = apps.iter().map(|app| Sample {
        labels: Arc::new(SeriesLabels::new([("app", *app)])),
        value: 2.0,
    });
    EvaluationResult {
        answer: Answer::Vector(samples.collect()),
        missing: (!is_complete).then(|| "node b".into()),
    }
}

fn advance(state: &mut RuleState, rule: &Rule, evaluated: EvaluationResult, seconds: i64) {
    state.advance(rule, Ok(evaluated), (0, "http://l"), at(seconds));
}

/// One letter for each alert: where it is, `k` if it is kept without a number.
fn shown(state: &RuleState) -> String {
    let letters = state.alerts.values().map(|alert| match alert.stage {
        Stage::Pending => 'p',
        Stage::Firing if alert.kept_since.is_some() => 'k',
        Stage::Firing => 'f',
        Stage::Resolved => 'r',
    });
    letters.collect()
}

/// A second, the series there are then, whether the answer is complete, and what is shown.
type Moment<'t> = (i64, &'t [&'t str], bool, &'t str);

#[test]
fn alerts_go_from_pending_to_resolved() {
    let table: [(&str, &[Moment<'_>]); 6] = [
        (
            "",
            &[
                (0, &["a"], true, "f"),
                (60, &[], true, "r"),
                (120, &["a"], true, "f"),
            ],
        ),
        (
            "for: 2m",
            &[
                (0, &["a"], true, "p"),
                (60, &["a", "b"], true, "pp"),
                (119, &["a", "b"], true, "pp"),
                (120, &["a", "b"], true, "fp"),
                (150, &["a"], true, "f"),
                (180, &[], true, "r"),
                // It is shown for 15 minutes.
                (180 + 900, &[], true, "r"),
                (180 + 901, &[], true, ""),
            ],
        ),
        // One that is gone before its time was never told.
        (
            "for: 2m",
            &[
                (0, &["a"], true, "p"),
                (60, &[], true, ""),
                (120, &["a"], true, "p"),
            ],
        ),
        (
            "keep_firing_for: 2m",
            &[
                (0, &["a"], true, "f"),
                (60, &[], true, "k"),
                (120, &["a"], true, "f"),
                (180, &[], true, "k"),
                (299, &[], true, "k"),
                (300, &[], true, "r"),
            ],
        ),
        // Nobody resolves what only a silent node may know.
        (
            "for: 1m",
            &[
                (0, &["a", "b"], true, "pp"),
                (60, &["a"], false, "fp"),
                (120, &[], false, "fp"),
                (180, &[], true, "r"),
            ],
        ),
        (
            "for: 1m",
            &[(0, &["a"], false, "p"), (60, &["a"], false, "f")],
        ),
    ];
    for (more, steps) in table {
        let rule = rule(more);
        let mut state = RuleState::default();
        for (seconds, apps, is_complete, expected) in steps {
            advance(&mut state, &rule, answer(apps, *is_complete), *seconds);
            assert_eq!(shown(&state), *expected, "{more} at {seconds} s");
            assert_eq!(state.health == Health::Good, *is_complete);
        }
    }
}

#[test]
fn a_failed_evaluation_changes_no_alert() {
    let rule = rule("");
    let mut state = RuleState::default();
    advance(&mut state, &rule, answer(&["a"], true), 0);
    state.advance(&rule, Err("the disk".to_owned()), (0, ""), at(60));
    assert_eq!(state.health, Health::Bad("the disk".into()));
    assert_eq!(
        (shown(&state), state.evaluated_at),
        ("f".to_owned(), Some(at(60)))
    );
}

#[test]
fn labels_are_those_of_series_and_rule() {
    let rule = rule(
        "labels:\n  severity: page\n  app: '{{ $labels.app }}-{{ $value }}'\nannotations:\n  \
         summary: '{{ $labels.app }} at {{ $externalURL }}'\n  broken: '{{ $labels.app.x }}'",
    );
    let mut state = RuleState::default();
    advance(&mut state, &rule, answer(&["shop"], true), 0);
    let (labels, alert) = state.alerts.first_key_value().unwrap();
    assert_eq!(
        labels.to_string(),
        r#"{alertname="A", app="shop-2", severity="page"}"#
    );
    let said: Vec<_> = alert
        .annotations
        .iter()
        .map(|(n, v)| (&**n, &**v))
        .collect();
    assert_eq!(said[0], ("summary", "shop at http://l"));
    assert!(
        said[1].1.starts_with("<error expanding template: "),
        "{said:?}"
    );
}

#[test]
fn the_same_labels_twice_and_too_many_are_bad_health() {
    let same = rule("labels:\n  app: all");
    let mut state = RuleState::default();
    advance(&mut state, &same, answer(&["a", "b"], true), 0);
    let Health::Bad(why) = &state.health else {
        panic!("{state:?}");
    };
    assert!(why.contains("same labels") && state.alerts.is_empty());
    let limited = rule("");
    state.advance(&limited, Ok(answer(&["a", "b"], true)), (1, ""), at(0));
    assert_eq!(
        state.health,
        Health::Bad("exceeded limit of 1 with 2 alerts".into())
    );
    assert!(state.alerts.is_empty());
}

#[test]
fn notices_are_repeated_each_minute_and_end() {
    let rule = rule("for: 20s");
    let mut state = RuleState::default();
    let mut told = Vec::new();
    for seconds in (0..1500).step_by(10) {
        let apps: &[&str] = if seconds < 200 { &["a"] } else { &[] };
        advance(&mut state, &rule, answer(apps, true), seconds);
        let notices = state.notices(&rule.text, at(seconds), 10 * SECOND_NS);
        for notice in notices.iter().filter(|notice| notice.is_due) {
            assert_eq!(notice.starts_at, at(20));
            let ends = notice.ends_at.0 / SECOND_NS;
            told.push((seconds, notice.is_resolved, ends));
        }
    }
    let mut expected = vec![
        (20, false, 260),
        (80, false, 320),
        (140, false, 380),
        (200, true, 200),
    ];
    expected.extend((1..=15).map(|minute| (200 + 60 * minute, true, 200)));
    assert_eq!(told, expected);
}

#[test]
fn what_fires_ends_with_its_rule() {
    let rule = rule("for: 20s");
    let mut state = RuleState::default();
    for (seconds, apps) in [(0, &["a"][..]), (20, &["a", "b"])] {
        advance(&mut state, &rule, answer(apps, true), seconds);
        state.notices(&rule.text, at(seconds), 10 * SECOND_NS);
    }
    // What was pending is gone, what fired is told as long as what ended otherwise.
    assert!(state.end(at(30)));
    let notices = state.notices("", at(30), 10 * SECOND_NS);
    let told: Vec<_> = notices
        .iter()
        .map(|notice| (notice.is_resolved, notice.starts_at, notice.ends_at))
        .collect();
    assert_eq!(told, [(true, at(20), at(30))]);
    assert!(state.end(at(30 + 15 * 60)) && !state.end(at(31 + 15 * 60)));
}

#[test]
fn news_is_told_until_it_was_taken_and_repeated_every_four_hours() {
    let rule = rule("");
    let mut state = RuleState::default();
    let mut news = Vec::new();
    for minute in 0..500 {
        let apps: &[&str] = if minute < 400 { &["a"] } else { &[] };
        advance(&mut state, &rule, answer(apps, true), minute * 60);
        let notices = state.notices(&rule.text, at(minute * 60), 60 * SECOND_NS);
        for notice in notices.iter().filter(|notice| notice.is_news) {
            news.push((minute, notice.is_resolved));
            // Nobody takes the first ones.
            if minute >= 2 {
                state.told(&notice.labels, notice.is_resolved, at(minute * 60));
            }
        }
    }
    let expected = [0, 1, 2, 242].map(|minute| (minute, false));
    assert_eq!(news[..4], expected);
    assert_eq!(news[4..], [(400, true)]);
}

/// A node that begins knows nothing, and goes on with what others know once it meets them.
#[test]
fn what_another_node_knows_is_taken_over() {
    let rule = rule("for: 2m");
    let (mut old, mut new) = (RuleState::default(), RuleState::default());
    for seconds in [0, 60, 120] {
        advance(&mut old, &rule, answer(&["a", "b"], true), seconds);
    }
    advance(&mut old, &rule, answer(&["a"], true), 180);
    assert_eq!(shown(&old), "fr");
    advance(&mut new, &rule, answer(&["a", "c"], true), 190);
    new.adopt(&old);
    assert_eq!(shown(&new), "frp");
    assert_eq!(new.evaluated_at, Some(at(190)));
    // The other way round there is nothing new but what only the new one has.
    let before = old.clone();
    old.adopt(&new);
    assert_eq!(shown(&old), "frp");
    assert_eq!(old.alerts.values().next(), before.alerts.values().next());
    advance(&mut new, &rule, answer(&["a"], true), 240);
    assert_eq!(shown(&new), "fr");
}

#[test]
fn schedules_are_the_same_for_everybody() {
    let schedule = Schedule::new("file;group", 60 * SECOND_NS);
    let last = schedule.last(at(1_700_000_000));
    let next = schedule.next(last);
    assert!(last <= at(1_700_000_000) && at(1_700_000_000) < next);
    assert_eq!(next.0 - last.0, 60 * SECOND_NS);
    assert_eq!(schedule.last(next), next);
    assert_eq!(schedule.next(Timestamp(next.0 - 1)), next);
    assert_eq!(schedule.missed(next, next), 0);
    assert_eq!(schedule.missed(next, last), 0);
    assert_eq!(
        schedule.missed(next, Timestamp(next.0 + 120 * SECOND_NS)),
        2
    );
    let offsets: std::collections::BTreeSet<i64> = (0..50)
        .map(|n| {
            Schedule::new(&format!("g{n}"), 60 * SECOND_NS)
                .last(at(0))
                .0
        })
        .collect();
    assert!(offsets.len() > 40, "groups are spread over their interval");
}

#[test]
fn a_node_that_goes_gives_up_only_its_own_groups() {
    let nodes = [1u128, 2, 3, 4];
    let mut counts = [0; 5];
    for group in 0..1000 {
        let key = format!("group {group}");
        let of_all = owner(&key, nodes).unwrap();
        counts[of_all as usize] += 1;
        for gone in nodes {
            let left = owner(&key, nodes.into_iter().filter(|node| *node != gone)).unwrap();
            assert_eq!(left == of_all, gone != of_all, "{key} without {gone}");
        }
    }
    assert!(
        counts[1..].iter().all(|count| (150..350).contains(count)),
        "{counts:?}"
    );
    assert_eq!(owner("x", []), None);
}

/// What a rule is given at an evaluation: which of three series there are, whether the answer is
/// complete, whether it failed, and how many seconds after the last one it is.
type Step = (u8, bool, bool, i64);

fn apply(state: &mut RuleState, rule: &Rule, step: &Step, now: i64) -> Vec<Notice> {
    let (which, is_complete, fails, _) = *step;
    let apps = ["a", "b", "c"].into_iter().enumerate();
    let apps: Vec<_> = apps
        .filter(|(n, _)| which & 1 << n != 0)
        .map(|(_, a)| a)
        .collect();
    let evaluated = if fails {
        Err("failed".to_owned())
    } else {
        Ok(answer(&apps, is_complete))
    };
    state.advance(rule, evaluated, (0, ""), at(now));
    state.notices(&rule.text, at(now), 30 * SECOND_NS)
}

proptest! {
    /// Whoever writes the state down behind each evaluation and begins anew from it, wherever, tells the
    /// same as whoever never ended.
    #[test]
    fn restarts_change_nothing(
        steps in prop::collection::vec((0u8..8, prop::bool::weighted(0.8), prop::bool::weighted(0.1), 1i64..400), 1..40),
        restarts in prop::collection::vec(any::<bool>(), 40),
        (hold, keep) in (0i64..300, 0i64..300),
    ) {
        let rule = rule(&format!("for: {hold}s\nkeep_firing_for: {keep}s"));
        let (mut whole, mut broken) = (RuleState::default(), RuleState::default());
        let mut now = 0;
        for (step, restarts) in steps.iter().zip(restarts) {
            now += step.3;
            let expected = apply(&mut whole, &rule, step, now);
            let found = apply(&mut broken, &rule, step, now);
            prop_assert_eq!(found, expected);
            if restarts {
                let state = GroupState {
                    key: "g".to_owned(),
                    rules: vec![(rule.key(), broken)],
                    ..GroupState::default()
                };
                let mut read = decode(&encode(std::slice::from_ref(&state))).unwrap();
                prop_assert_eq!(&read[0], &state);
                broken = read.remove(0).rules.remove(0).1;
            }
            prop_assert_eq!(&broken, &whole);
        }
    }

    /// What must hold however numbers come and go.
    #[test]
    fn alerts_are_never_told_too_soon(
        steps in prop::collection::vec((0u8..8, any::<bool>(), Just(false), 1i64..200), 1..60),
        hold in 0i64..300,
    ) {
        let rule = rule(&format!("for: {hold}s"));
        let mut state = RuleState::default();
        let mut now = 0;
        for step in &steps {
            now += step.3;
            let notices = apply(&mut state, &rule, step, now);
            for notice in &notices {
                let alert = &state.alerts[&notice.labels];
                prop_assert!(notice.starts_at.0 - alert.active_at.0 >= hold * SECOND_NS);
                prop_assert_eq!(notice.is_resolved, alert.stage == Stage::Resolved);
                prop_assert!(notice.is_resolved == (notice.ends_at <= at(now)));
                if notice.is_resolved && alert.resolved_at == Some(at(now)) {
                    prop_assert!(step.1, "an incomplete answer resolves nothing");
                }
            }
            for alert in state.alerts.values() {
                prop_assert_eq!(alert.stage == Stage::Pending, alert.fired_at.is_none());
                prop_assert_eq!(alert.stage == Stage::Resolved, alert.resolved_at.is_some());
            }
        }
    }

    /// Bytes that are no state are refused, and nothing panics.
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes);
    }
}
