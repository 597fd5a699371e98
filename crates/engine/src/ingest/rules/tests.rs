use std::path::PathBuf;

use expect_test::expect;
use logpond_protocol::intake::Parser;
use logpond_record::{Entry, EntryKind, Id, Labels, Record, Value, line_of};
use proptest::prelude::*;

use super::*;
use logpond_host::terminal::with_causes;

const NOW: Timestamp = Timestamp(1_772_409_600_000_000_000);
const SECOND: i64 = 1_000_000_000;

/// A directory with a key, and a file of rules in it, which need not be there.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("key"), "0123456789abcdef\n").unwrap();
    std::fs::write(directory.path().join("short"), "0123456789abcde\n").unwrap();
    let path = directory.path().join("rules.toml");
    (directory, path)
}

fn stage(text: &str) -> Stage {
    let (_directory, path) = place();
    Stage::new(file::parse(text, &path).unwrap(), None)
}

fn rules(text: &str) -> Arc<Rules> {
    Arc::new(Rules::new(stage(text)))
}

fn batch(kind: EntryKind, labels: &[(&str, &str)], lines: &[&str]) -> Arc<Batch> {
    let labels = labels
        .iter()
        .map(|(n, v)| ((*n).into(), (*v).into()))
        .collect();
    let mut batch = Batch::new(kind, labels);
    lines.iter().for_each(|line| batch.push(line.as_bytes()));
    Arc::new(batch)
}

fn lines(lines: &[&str]) -> Arc<Batch> {
    batch(EntryKind::Line, &[], lines)
}

fn read<T>(batch: &Batch, mut look: impl FnMut(&Record<'_>) -> T) -> Vec<T> {
    let mut parser = Parser::new();
    let entries = batch.iter().map(|held| {
        let (kind, envelope, raw) = line_of(batch.kind, held);
        look(&parser.parse(&Entry {
            id: Id::MIN,
            received: NOW,
            kind,
            labels: &batch.labels,
            envelope,
            raw,
        }))
    });
    entries.collect()
}

/// Lines of a batch, each with the fields beside it.
fn shown(batch: &Batch) -> Vec<String> {
    read(batch, |record| {
        let mut line = Vec::new();
        record.write_line(&mut line);
        let mut text = String::from_utf8_lossy(&line).into_owned();
        for (name, value) in &record.labels {
            let value = value.to_text();
            text.push_str(&format!(" +{name}={}", String::from_utf8_lossy(&value)));
        }
        text
    })
}

fn applied(text: &str, batch: &Arc<Batch>) -> Vec<String> {
    let outcome = stage(text).apply(batch, &mut Worker::default(), NOW);
    shown(&outcome.batch)
}

/// Rules, a batch, and what is kept of it.
type Case = (&'static str, Arc<Batch>, &'static [&'static str]);

/// What is kept, and what is added to it.
fn choices() -> Vec<Case> {
    vec![
        (
            "[[rule]]\nwhere = 'path=/healthz status=200'\ndrop = true",
            lines(&[
                r#"{"path":"/healthz","status":200}"#,
                r#"{"path":"/healthz","status":500}"#,
                "path=/healthz status=200 a=b",
            ]),
            &[r#"{"path":"/healthz","status":500}"#],
        ),
        (
            "[[rule]]\nsample = 2",
            lines(&["a", "b", "c"]),
            &["a +_sample_rate=2", "c +_sample_rate=2"],
        ),
        (
            "[[rule]]\nsample = 2\n[[rule]]\nwhere = 'c'\nsample = 3",
            lines(&["a", "b", "c"]),
            &["a +_sample_rate=2", "c +_sample_rate=6"],
        ),
        (
            "[[rule]]\nwhere = 'app=shop'\nadd = { team = \"shop\", tier = 1, n = 9, up = true, x = 0.5 }",
            lines(&["app=shop n=1", "app=other n=1"]),
            &[
                "app=shop n=1 +team=shop +tier=1 +up=true +x=0.5",
                "app=other n=1",
            ],
        ),
    ]
}

fn hidden_in_arrays() -> Vec<Case> {
    vec![(
        "[[rule]]\nredact = ['password', 'o.token']\nanonymise = ['ip']",
        lines(&[
            r#"{"users":[{"password":"x1","ip":"192.0.2.7"},{"password":["x2"]}]}"#,
            r#"{"o":[{"token":4},[{"token":{"a":5}}]],"tokens":[{"id":6}]}"#,
            "<13>1 2026-03-01T22:14:15Z h a - - - {\"users\":[{\"password\":\"x1\"}]}",
        ]),
        &[
            r#"{"users":[{"password":"REDACTED","ip":"192.0.2.0"},{"password":"REDACTED"}]}"#,
            r#"{"o":[{"token":"REDACTED"},[{"token":{"a":"REDACTED"}}]],"tokens":[{"id":6}]}"#,
            "<13>1 2026-03-01T22:14:15Z h a - - - {\"users\":[{\"password\":\"REDACTED\"}]}",
        ],
    )]
}

/// The hashes are those that another program makes of this key and these names.
fn hidden() -> Vec<Case> {
    vec![
        (
            "[[rule]]\nredact = ['password', 'o.token']",
            lines(&[
                r#"{"password":"x1","o":{"token":7,"b":1}}"#,
                "password=x1 a=b",
                "text",
            ]),
            &[
                r#"{"password":"REDACTED","o":{"token":"REDACTED","b":1}}"#,
                "password=REDACTED a=b",
                "text",
            ],
        ),
        // A name covers all below it, wherever it is; one with dots is a path from the top.
        (
            "[[rule]]\nredact = ['password', 'o.token']",
            lines(&[
                r#"{"password":{"old":"x1","new":{"a":2}},"passwords":1}"#,
                r#"{"user":{"password":"x1","name":"n"},"token":3}"#,
                r#"{"user":{"password":{"old":["x1"]}},"p":{"o":{"token":4}}}"#,
                r#"{"o":{"token":{"id":5,"of":{"x":6}},"tokens":7},"user.password":8}"#,
                "o.token.id=1 a.password.b=2 password=3",
            ]),
            &[
                r#"{"password":{"old":"REDACTED","new":{"a":"REDACTED"}},"passwords":1}"#,
                r#"{"user":{"password":"REDACTED","name":"n"},"token":3}"#,
                r#"{"user":{"password":{"old":"REDACTED"}},"p":{"o":{"token":4}}}"#,
                r#"{"o":{"token":{"id":"REDACTED","of":{"x":"REDACTED"}},"tokens":7},"user.password":"REDACTED"}"#,
                "o.token.id=REDACTED a.password.b=REDACTED password=REDACTED",
            ],
        ),
        (
            "[[rule]]\nremove = ['user']\nredact = ['user.id']",
            lines(&[r#"{"user":{"id":1,"name":"n"},"a":{"user":2}}"#]),
            &[r#"{"user":{"id":"REDACTED","name":null},"a":{"user":null}}"#],
        ),
        (
            "hash-key-file = 'key'\n[[rule]]\nhash = ['user']",
            lines(&["user=alice a=b", "user=bob a=b", "user=alice a=c"]),
            &[
                "user=fdbf8b1cacd3d578 a=b",
                "user=6f32117ae2bc2046 a=b",
                "user=fdbf8b1cacd3d578 a=c",
            ],
        ),
        (
            "[[rule]]\nanonymise = ['addr']",
            lines(&[
                "addr=192.0.2.77 a=b",
                "addr=x a=b",
                "addr=- a=b",
                "addr=2001:db8:1:2::3 a=b",
            ]),
            &[
                "addr=192.0.2.0 a=b",
                "addr=REDACTED a=b",
                "addr=- a=b",
                "addr=2001:db8:1:: a=b",
            ],
        ),
        (
            "[[rule]]\nremove = ['addr']",
            lines(&["addr=192.0.2.77 a=b", r#"{"addr":"192.0.2.77"}"#]),
            &["addr=- a=b", r#"{"addr":null}"#],
        ),
    ]
}

/// Texts, and rules that see what others made.
fn replaced() -> Vec<Case> {
    vec![
        (
            "[[rule]]\nreplace = [{ field = '_msg', pattern = '\\b\\d{16}\\b', with = '<card>' }]",
            lines(&[
                "paid by 4111111111111111, 5500000000000004",
                r#"{"msg":"card 4111111111111111","other":"4111111111111111"}"#,
            ]),
            &[
                "paid by <card>, <card>",
                r#"{"msg":"card <card>","other":"4111111111111111"}"#,
            ],
        ),
        // Groups stand for what they found, in each place that was found.
        (
            "[[rule]]\nreplace = [{ field = '_msg', pattern = '(\\d{4})\\d{8}(?<last>\\d{4})', with = '$1…${last} for $$5' }]",
            lines(&[
                "by 4111111111111111, 5500000000000004",
                r#"{"msg":"4111111111111119"}"#,
            ]),
            &[
                "by 4111…1111 for $5, 5500…0004 for $5",
                r#"{"msg":"4111…1119 for $5"}"#,
            ],
        ),
        (
            "[[rule]]\nreplace = [{ field = '_raw', pattern = 'bob', with = 'B' }]",
            lines(&[r#"{"a":"bob","b":"\u0062ob","c":["bob"]}"#]),
            &[r#"{"a":"B","b":"B","c":["B"]}"#],
        ),
        (
            "[[rule]]\nremove-ansi = true",
            lines(&[
                "\x1b[31merror\x1b[0m of it",
                r#"{"msg":"\u001b[1mbold\u001b[0m"}"#,
            ]),
            &["error of it", r#"{"msg":"bold"}"#],
        ),
        // Each rule sees what those before it have made.
        (
            "[[rule]]\nremove-ansi = true\n[[rule]]\nwhere = 'level=error'\nadd = { page = true }\n\
             [[rule]]\nwhere = 'page=true'\nredact = ['user']",
            lines(&["\x1b[1mlevel=error\x1b[0m user=bob"]),
            &["level=error user=REDACTED +page=true"],
        ),
        // Labels of a batch are changed for the records that are meant.
        (
            "[[rule]]\nwhere = 'two'\nredact = ['file']",
            batch(
                EntryKind::Line,
                &[("file", "/home/bob"), ("app", "a")],
                &["one", "two", "three"],
            ),
            &[
                "one +file=/home/bob +app=a",
                "two +file=REDACTED +app=a",
                "three +file=/home/bob +app=a",
            ],
        ),
        (
            "[[rule]]\nwhere = 'two'\nadd = { x = 1 }\n[[rule]]\nwhere = 'four'\nremove = ['app']",
            batch(
                EntryKind::Syslog,
                &[("app", "a")],
                &["one", "two", "three", "four"],
            ),
            &["one +app=a", "two +x=1 +app=a", "three +app=a", "four"],
        ),
    ]
}

#[test]
fn rules_do_what_they_say() {
    let all = [choices(), hidden(), hidden_in_arrays(), replaced()];
    for (text, batch, expected) in all.into_iter().flatten() {
        assert_eq!(applied(text, &batch), expected, "{text}");
    }
}

#[test]
fn what_no_rule_touches_is_not_copied() {
    let batch = lines(&["a", "b"]);
    for text in [
        "",
        "[[rule]]\nwhere = 'nothing like it'\ndrop = true",
        "[[rule]]\nwhere = 'x=1'\ndrop = true",
        "[[rule]]\nredact = ['x']",
        "[[quota]]\nrecords = 5\nevery = '1m'",
    ] {
        let outcome = stage(text).apply(&batch, &mut Worker::default(), NOW);
        assert!(Arc::ptr_eq(&outcome.batch, &batch), "{text}");
    }
}

/// Fields that are sent beside a line are hidden as those in it are.
#[test]
fn envelopes_are_changed_and_stay() {
    let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
    let fields = [("user", Value::Str("bob".into())), ("n", Value::Int(5))];
    for line in ["one", "two"] {
        let fields = fields.iter().map(|(name, value)| (*name, value));
        batch.push_enveloped(EntryKind::Text, Some(NOW), fields, line.as_bytes());
    }
    let text = "[[rule]]\nwhere = 'two'\nredact = ['user']\nremove = ['n']";
    let outcome = stage(text).apply(&Arc::new(batch), &mut Worker::default(), Timestamp(0));
    assert_eq!(
        shown(&outcome.batch),
        ["one +user=bob +n=5", "two +user=REDACTED"]
    );
    let times = read(&outcome.batch, |record| record.time);
    assert_eq!(times, [NOW, NOW]);
}

#[test]
fn mistakes_are_named_with_their_place() {
    let table = [
        "rule = 1",
        "[[rule]\n",
        "[[rul]]\n",
        "[[rule]]\nwere = 'a'",
        "[[rule]]\nwhere = 'a'",
        "[[rule]]\nwhere = 'a~/(/'\ndrop = true",
        "[[rule]]\ndrop = true\nredact = ['a']",
        "[[rule]]\ndrop = 1",
        "[[rule]]\nsample = 1",
        "[[rule]]\nhash = ['a']",
        "hash-key-file = 'short'\n[[rule]]\nhash = ['a']",
        "hash-key-file = 'nowhere'",
        "[[rule]]\nredact = 'a'",
        "[[rule]]\nredact = ['_time']",
        "[[rule]]\nredact = ['_raw']",
        "[[rule]]\nredact = ['a']\nremove = ['a']",
        "[[rule]]\nreplace = [{ field = 'a', pattern = '(', with = '' }]",
        "[[rule]]\nreplace = [{ field = 'a', patern = 'x', with = '' }]",
        "[[rule]]\nreplace = [{ field = 'a', pattern = 'x' }]",
        "[[rule]]\nreplace = [{ field = 'a', pattern = '(x)', with = '$2' }]",
        "[[rule]]\nadd = { a = [1] }",
        "[[rule]]\nname = 'x\"'\ndrop = true",
        "[[rule]]\nname = \"2\"\ndrop = true\n[[rule]]\ndrop = true",
        "[[quota]]\nrecords = 5",
        "[[quota]]\nevery = '1m'",
        "[[quota]]\nrecords = 0\nevery = '1m'",
        "[[quota]]\nbytes = '5 XB'\nevery = '1m'",
        "[[quota]]\nrecords = 5\nevery = '1ms'",
    ];
    let (directory, path) = place();
    let mut said = String::new();
    for text in table {
        let error = file::parse(text, &path).expect_err(text);
        let error = with_causes(&error).replace(&*directory.path().to_string_lossy(), "DIR");
        said.push_str(&format!("{error}\n"));
    }
    expect![[r#"
        DIR/rules.toml:1:8: rules are tables; write [[rule]] with double brackets
        DIR/rules.toml:1:8: unclosed array table, expected `]`
        DIR/rules.toml:1:3: a file of rules has no key 'rul', did you mean 'rule'?
        DIR/rules.toml:2:1: a rule has no key 'were', did you mean 'where'?
        DIR/rules.toml:1:1: this rule does nothing; give it one of drop, sample, add, redact, hash, anonymise, remove, replace, remove-ansi
        DIR/rules.toml:2:9: regular expression: unclosed group (at character 4); write a backslash before special characters, or quote the text
        a~/(/
           ^
        DIR/rules.toml:1:1: what this rule drops cannot be changed, too; make two rules of it
        DIR/rules.toml:2:8: '1' is no value for drop: expected true or false
        DIR/rules.toml:2:10: sample keeps one in so many: a number from 2 to 1000000000
        DIR/rules.toml:2:8: hashes need a key, so that nobody finds the values by trying: hash-key-file = "FILE" at the top of this file
        DIR/rules.toml:1:17: the key in 'short' has 15 bytes; it needs 16 at least, such as those of: head -c 32 /dev/urandom | base64
        the key of hashes DIR/nowhere cannot be read (--rules): No such file or directory (os error 2)
        DIR/rules.toml:2:10: ''a'' is no value for redact: expected a list of names in quotes
        DIR/rules.toml:2:11: '_time' is no field: no rule can change it
        DIR/rules.toml:2:11: '_raw' is the line; name its fields, or the message '_msg'
        DIR/rules.toml:3:11: the field 'a' is hidden twice in this rule
        DIR/rules.toml:2:37: regular expression: unclosed group
        DIR/rules.toml:2:27: replace has no key 'patern', did you mean 'pattern'?
        DIR/rules.toml:2:12: 'with' is missing; replace needs field, pattern and with
        DIR/rules.toml:2:51: with: the pattern has no group '2'; a dollar sign is written $$
        DIR/rules.toml:2:13: '[1]' is no value for add: expected texts, numbers, true or false
        DIR/rules.toml:2:8: ''x"'' is no value for name: expected up to 64 bytes, without quotes and backslashes: metrics carry it
        DIR/rules.toml:2:8: two rules are called '2', and could not be told apart; those without a name are called by their number
        DIR/rules.toml:1:1: 'every' is missing: within which time, such as every = "1m"
        DIR/rules.toml:1:1: this quota has no end: give it records = 10000, bytes = "50MB", or both
        DIR/rules.toml:2:11: '0' is no value for records: expected how many records are let in, 1 or more
        DIR/rules.toml:2:9: ''5 XB'' is no value for bytes: expected an amount; unknown unit `XB`; units are B kB MB GB TB KiB MiB GiB TiB and %
        DIR/rules.toml:3:9: a window of a quota is from 1s to 31d long
    "#]].assert_eq(&said);
}

fn count(rules: &Rules, name: &str) -> Option<i64> {
    let mut out = Exposition::default();
    rules.totals.expose(&mut out);
    rules.stage().expose(&mut out);
    let text = out.finish();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

fn name_of(sequence: u64) -> Option<BatchId> {
    Some(BatchId {
        epoch: 7,
        sequence,
        attempt: 0,
        first_sent: NOW,
        more: 0,
    })
}

fn has_dropped(rules: &Rules, sequence: u64) -> bool {
    name_of(sequence).is_some_and(|id| rules.has_dropped(&id))
}

const DROPPED: &str = "logpond_rule_records_total{rule=\"1\",action=\"dropped\"}";

#[test]
fn counters_count_what_was_accepted_once() {
    let rules = rules("[[rule]]\nwhere = 'x'\ndrop = true");
    let mixed = lines(&["x", "y", "x"]);
    let refused = rules.apply(&mixed, None, NOW);
    drop(refused);
    assert_eq!(count(&rules, DROPPED), Some(0));
    rules.apply(&mixed, name_of(1), NOW).reservation.commit();
    rules.apply(&mixed, name_of(1), NOW).reservation.commit();
    assert_eq!(count(&rules, DROPPED), Some(2));
    let all = lines(&["x"]);
    let applied = rules.apply(&all, name_of(2), NOW);
    assert!(applied.batch.is_empty() && !has_dropped(&rules, 2));
    applied.reservation.commit();
    assert!(has_dropped(&rules, 2) && !has_dropped(&rules, 1));
    assert_eq!(count(&rules, DROPPED), Some(3));
    let name = "logpond_ingest_left_out_records_total{reason=\"dropped\"}";
    assert_eq!(count(&rules, name), Some(3));
}

#[test]
fn rules_go_on_counting_when_they_are_read_again() {
    let text = "[[rule]]\nname = 'a'\nsample = 4\n[[quota]]\nname = 'q'\nby = ['app']\nrecords = 3\nevery = '1m'";
    let (_directory, path) = place();
    let rules = rules(text);
    let send = |rules: &Arc<Rules>, lines_of: &[&str]| {
        let applied = rules.apply(&lines(lines_of), None, NOW);
        let kept = shown(&applied.batch).len();
        applied.reservation.commit();
        kept
    };
    assert_eq!(send(&rules, &["one"; 5]), 2);
    rules.replace(file::parse(&text.replace("records = 3", "records = 4"), &path).unwrap());
    assert_eq!(send(&rules, &["one"; 4]), 1);
    let sampled = "logpond_rule_records_total{rule=\"a\",action=\"sampled\"}";
    assert_eq!(count(&rules, sampled), Some(6));
    // Three were let in, so one more is.
    assert_eq!(send(&rules, &["one"; 12]), 1);
    assert_eq!(
        count(&rules, "logpond_quota_lost_records_total{quota=\"q\"}"),
        Some(2)
    );
    // Of a quota that is gone the losses are told.
    rules.replace(file::parse("", &path).unwrap());
    assert!(rules.is_empty());
    let told = rules.take_losses(NOW, false);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].text().contains("2 records (6 bytes) of no app"),
        "{}",
        told[0].text()
    );
    assert!(rules.take_losses(NOW, true).is_empty());
    assert!(locked(&rules.retired).is_empty());
}

#[test]
fn a_quota_lets_so_many_in_and_tells_the_rest() {
    let rules = rules(
        "[[quota]]\nname = 'per app'\nwhere = 'level=debug'\nby = ['app']\nrecords = 2\nevery = '10s'",
    );
    let send = |at: i64, app: &str, count: usize| {
        let line = format!("app={app} level=debug");
        let applied = rules.apply(
            &lines(&vec![&*line; count]),
            None,
            Timestamp(NOW.0 + at * SECOND),
        );
        let kept = applied.batch.len();
        applied.reservation.commit();
        kept
    };
    assert_eq!(
        (send(0, "a", 1), send(3, "a", 5), send(9, "b", 1)),
        (1, 1, 1)
    );
    assert_eq!(applied_len(&rules, &["app=a level=info"; 9], 9), 9);
    assert!(
        rules
            .take_losses(Timestamp(NOW.0 + 9 * SECOND), false)
            .is_empty()
    );
    // The next window.
    assert_eq!((send(10, "a", 5), send(12, "c", 3)), (2, 2));
    let told = |at: i64, is_end| -> Vec<String> {
        let losses = rules.take_losses(Timestamp(NOW.0 + at * SECOND), is_end);
        losses.iter().map(Loss::text).collect()
    };
    assert_eq!(
        told(12, false),
        [
            "logpond: quota \"per app\": 4 records (68 bytes) of app=a were not kept from \
             2026-03-02T00:00:00Z to 2026-03-02T00:00:10Z"
        ]
    );
    assert!(told(19, false).is_empty());
    assert_eq!(told(13, true).len(), 2, "at the end all is told");
    assert!(told(99, true).is_empty());
    // A clock that is set back opens no window again.
    assert_eq!(send(5, "a", 1), 0);
}

fn applied_len(rules: &Arc<Rules>, of: &[&str], at: i64) -> usize {
    let applied = rules.apply(&lines(of), None, Timestamp(NOW.0 + at * SECOND));
    let kept = applied.batch.len();
    applied.reservation.commit();
    kept
}

#[test]
fn what_was_refused_takes_no_room() {
    let rules =
        rules("[[quota]]\nbytes = '30B'\nevery = '1m'\n[[quota]]\nrecords = 4\nevery = '1h'");
    let ten = lines(&["0123456789"; 5]);
    for _ in 0..3 {
        let refused = rules.apply(&ten, None, NOW);
        assert_eq!(refused.batch.len(), 3);
    }
    assert_eq!(applied_len(&rules, &["0123456789"; 2], 0), 2);
    assert_eq!(applied_len(&rules, &["0123456789"; 2], 0), 1);
    // The other quota was not asked for more than was let in.
    assert_eq!(applied_len(&rules, &["0"; 3], 60), 1);
    let lost = |quota: u32| {
        count(
            &rules,
            &format!("logpond_quota_lost_records_total{{quota=\"{quota}\"}}"),
        )
    };
    assert_eq!((lost(1), lost(2)), (Some(1), Some(2)));
    assert_eq!(
        count(&rules, "logpond_quota_lost_bytes_total{quota=\"1\"}"),
        Some(10)
    );
}

#[test]
fn sources_are_bounded() {
    let rules = rules("[[quota]]\nby = ['app']\nrecords = 1\nevery = '1m'");
    let each: Vec<String> = (0..quota::SOURCES_MAX + 50)
        .map(|n| format!("app=a{n} x=1"))
        .collect();
    let each: Vec<&str> = each.iter().map(String::as_str).collect();
    let kept = applied_len(&rules, &each, 0);
    assert_eq!(kept, quota::SOURCES_MAX + 1, "further ones share one");
    let losses = rules.take_losses(NOW, true);
    let texts: Vec<String> = losses.iter().map(Loss::text).collect();
    assert_eq!(texts.len(), 1);
    assert!(
        texts[0].contains("49 records") && texts[0].contains("of other sources"),
        "{texts:?}"
    );
    let told = losses::batch(&losses, "h", NOW);
    let fields = read(&told, |record| {
        record
            .field("_lost_records")
            .cloned()
            .map(Value::into_owned)
    });
    assert_eq!(fields, [Some(Value::Int(49))]);
}

proptest! {
    /// Whatever is kept, thrown away and changed: what is left are the records that a reader who looks at
    /// each alone would have left, with the same fields.
    #[test]
    fn a_batch_is_as_its_records(
        numbers in proptest::collection::vec((0u8..6, any::<bool>()), 0..12),
        is_enveloped in any::<bool>(),
        rules_of in proptest::sample::select(vec![
            "[[rule]]\nwhere='n=1'\ndrop=true\n[[rule]]\nwhere='n=2'\nredact=['file']",
            "[[rule]]\nwhere='n=3'\nadd={x=1}\n[[rule]]\nwhere='n=4'\nredact=['user','app']",
            "[[rule]]\nwhere='n=5'\nremove=['own','app']\nadd={y='z'}\n[[rule]]\nwhere='n=0'\nredact=['_msg']",
        ]),
    ) {
        let labels = [("file", "/var/log/a"), ("app", "b")];
        let line = |n: u8, is_json: bool| {
            if is_json {
                format!("{{\"n\":{n},\"user\":\"bob\",\"msg\":\"m\"}}")
            } else {
                format!("n={n} user=bob msg=\"m m\"")
            }
        };
        let make = |entries: &[(u8, bool)]| {
            let kind = if is_enveloped { EntryKind::Enveloped } else { EntryKind::Line };
            let labels = labels.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
            let mut batch = Batch::new(kind, labels);
            for (n, is_json) in entries {
                let line = line(*n, *is_json);
                if is_enveloped {
                        let own = Value::Int(i64::from(*n));
                        batch.push_enveloped(EntryKind::Line, None, [("own", &own)], line.as_bytes());
                    } else { batch.push(line.as_bytes()) }
            }
            Arc::new(batch)
        };
        let stage = stage(rules_of);
        let together = stage.apply(&make(&numbers), &mut Worker::default(), NOW);
        let mut alone = Vec::new();
        for one in &numbers {
            let outcome = stage.apply(&make(&[*one]), &mut Worker::default(), NOW);
            alone.extend(shown(&outcome.batch));
        }
        prop_assert_eq!(shown(&together.batch), alone);
    }
}
