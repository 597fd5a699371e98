use std::borrow::Cow;

use logpond_record::{Batch, line_of};
use proptest::prelude::*;

use super::*;
use crate::intake::access_format::LABEL_PREFIX;
use crate::intake::parser::tests::entry;

/// Changes fields of these names in one way.
struct Of<'n>(&'n [&'n str], Option<&'n str>);

impl Edit for Of<'_> {
    fn names(&self) -> Vec<&str> {
        self.0.to_vec()
    }

    fn wants(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    fn change(&mut self, _name: &str, _value: &Value<'_>) -> Option<Change> {
        Some(match self.1 {
            Some(text) => Change::Text(text.to_owned()),
            None => Change::Remove,
        })
    }
}

/// An entry after an edit: its kind, line and all that is read of it.
struct After {
    kind: EntryKind,
    line: Vec<u8>,
    record: Record<'static>,
}

impl After {
    fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.line)
    }

    fn field(&self, name: &str) -> String {
        let value = self.record.field(name);
        value.map_or("none".to_owned(), |value| {
            String::from_utf8_lossy(&value.to_text()).into_owned()
        })
    }
}

fn edited(kind: EntryKind, raw: &[u8], edit: &mut dyn Edit) -> After {
    let mut parser = Parser::new();
    let labels = Labels::new();
    let mut draft = Draft::new(&entry(kind, &labels, raw), &mut parser);
    draft.edit(edit, &mut parser);
    draft.settle(&mut parser);
    let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
    assert_eq!(draft.push_to(&mut batch, true), 0);
    let held = batch.iter().next().unwrap();
    let (kind, envelope, line) = line_of(EntryKind::Enveloped, held);
    After {
        kind,
        line: line.to_vec(),
        record: Parser::new()
            .parse(&Entry {
                envelope,
                ..entry(kind, &labels, line)
            })
            .into_owned(),
    }
}

/// The text that is put in most cases.
const PUT: Option<&str> = Some("R R");

/// A line of a kind, the fields that are changed, to what, and the line afterwards.
type Case = (
    EntryKind,
    &'static str,
    &'static [&'static str],
    Option<&'static str>,
    &'static str,
);

const CASES: [Case; 24] = [
    (
        EntryKind::Json,
        r#"{"users":[{"pin":12,"n":1},[{"pin":"x"}],"pin"],"o":{"list":[ {"pin":null} ]}}"#,
        &["users.pin", "o.list.pin"],
        Some("R"),
        r#"{"users":[{"pin":"R","n":1},[{"pin":"R"}],"pin"],"o":{"list":[ {"pin":"R"} ]}}"#,
    ),
    (
        EntryKind::Json,
        r#"{"users":[{"pin":12,"o":{"pins":[{"pin":{"x":1}}]}}]}"#,
        &["users.pin", "users.o.pins.pin.x"],
        None,
        r#"{"users":[{"pin":null,"o":{"pins":[{"pin":{"x":null}}]}}]}"#,
    ),
    (
        EntryKind::Syslog,
        r#"<34>1 2026-03-01T22:14:15Z web1 app 7 ID - {"users":[{"pin":12}],"msg":"m"}"#,
        &["users.pin"],
        Some("R"),
        r#"<34>1 2026-03-01T22:14:15Z web1 app 7 ID - {"users":[{"pin":"R"}],"msg":"m"}"#,
    ),
    (
        EntryKind::Json,
        r#"{ "user":"bob", "o":{"pin": 12},"n":1 }"#,
        &["user", "o.pin"],
        PUT,
        r#"{ "user":"R R", "o":{"pin": "R R"},"n":1 }"#,
    ),
    (
        EntryKind::Json,
        r#"{"user":"bob","pin":12,"list":[1],"no":null}"#,
        &["user", "pin", "list", "no"],
        None,
        r#"{"user":null,"pin":null,"list":null,"no":null}"#,
    ),
    (
        EntryKind::Line,
        r#"{"a":1,"user":"x","user":"y","message":"m"}"#,
        &["user", "_msg"],
        PUT,
        r#"{"a":1,"user":"R R","user":"R R","message":"R R"}"#,
    ),
    (
        EntryKind::Line,
        "level=info user=bob pin=12 ok=true",
        &["user", "pin", "ok"],
        Some("R"),
        "level=info user=R pin=R ok=R",
    ),
    (
        EntryKind::Line,
        "level=info user=bob pin=12 say=\"a b\"",
        &["user", "pin", "say"],
        PUT,
        "level=info user=\"R R\" pin=\"R R\" say=\"R R\"",
    ),
    (
        EntryKind::Line,
        "level=info user=bob",
        &["user"],
        Some("1234567890123456"),
        "level=info user=\"1234567890123456\"",
    ),
    (
        EntryKind::Line,
        "level=info user=bob say=\"a b\"",
        &["user", "say"],
        None,
        "level=info user=- say=\"-\"",
    ),
    (
        EntryKind::Line,
        "user=secret1 a=1 user=secret2 b=2",
        &["user"],
        Some("R"),
        "user=R a=1 user=R b=2",
    ),
    (
        EntryKind::Line,
        "192.0.2.77 - frank [10/Oct/2000:13:55:36 -0700] \"GET /a?b=c HTTP/1.0\" 200 2326",
        &["remote_addr", "user"],
        None,
        "- - - [10/Oct/2000:13:55:36 -0700] \"GET /a?b=c HTTP/1.0\" 200 2326",
    ),
    (
        EntryKind::Line,
        "192.0.2.77 - frank [10/Oct/2000:13:55:36 -0700] \"GET /a?b=c HTTP/1.0\" 200 2326",
        &["remote_addr"],
        Some("192.0.2.0"),
        "192.0.2.0 - frank [10/Oct/2000:13:55:36 -0700] \"GET /a?b=c HTTP/1.0\" 200 2326",
    ),
    (
        EntryKind::Line,
        "192.0.2.77 - frank [10/Oct/2000:13:55:36 -0700] \"GET /a?b=c HTTP/1.0\" 200 2326",
        &["_msg"],
        PUT,
        "R R",
    ),
    (
        EntryKind::Syslog,
        "<34>1 2026-03-01T22:14:15Z web1 app 7 ID [x@1 user=\"bob\" k=\"v\"] text of it",
        &["x@1.user", "user", "app"],
        Some("R]\""),
        "<34>1 2026-03-01T22:14:15Z web1 R]\" 7 ID [x@1 user=\"R\\]\\\"\" k=\"v\"] text of it",
    ),
    (
        EntryKind::Syslog,
        "<34>1 2026-03-01T22:14:15Z web1 app 7 ID - text of it",
        &["hostname", "_msg"],
        None,
        "<34>1 2026-03-01T22:14:15Z - app 7 ID - -",
    ),
    (
        EntryKind::Syslog,
        "<34>Mar  1 22:14:15 web1 app[7]: {\"user\":\"bob\",\"pin\":1}",
        &["user", "pin"],
        PUT,
        "<34>Mar  1 22:14:15 web1 app[7]: {\"user\":\"R R\",\"pin\":\"R R\"}",
    ),
    (
        EntryKind::Syslog,
        "<34>Mar  1 22:14:15 web1 app[7]: user=bob pin=1",
        &["user", "pin"],
        PUT,
        "<34>Mar  1 22:14:15 web1 app[7]: user=\"R R\" pin=\"R R\"",
    ),
    (
        EntryKind::Syslog,
        "<34>Mar  1 22:14:15 web1 app[7]: secret text",
        &["_msg"],
        PUT,
        "<34>Mar  1 22:14:15 web1 app[7]: R R",
    ),
    (EntryKind::Text, "secret text", &["_msg"], PUT, "R R"),
    (EntryKind::Line, "secret text", &["_msg"], None, "-"),
    // A name that is there twice; the message is all of the line.
    (
        EntryKind::Line,
        "a=secret b=2 a=3 c=4",
        &["_msg", "a"],
        PUT,
        "R R",
    ),
    (
        EntryKind::Json,
        r#"{"caf\u00e9":"x","a":"\u0062ob"}"#,
        &["café", "a"],
        Some("R\""),
        r#"{"caf\u00e9":"R\"","a":"R\""}"#,
    ),
    (EntryKind::Json, r#"{"a":1}"#, &["b"], PUT, r#"{"a":1}"#),
];

#[test]
fn values_are_changed_where_they_stand() {
    for (kind, raw, names, to, expected) in CASES {
        let after = edited(kind, raw.as_bytes(), &mut Of(names, to));
        assert_eq!(after.text(), expected, "{raw}");
        assert_eq!(after.kind, kind, "{raw}");
    }
}

/// A status that is a word is read as no access log line, a severity of a word is none.
#[test]
fn what_no_line_of_that_form_says_becomes_json() {
    let after = edited(
        EntryKind::Line,
        b"192.0.2.77 - frank [10/Oct/2000:13:55:36 -0700] \"GET /a?b=c HTTP/1.0\" 200 2326",
        &mut Of(&["status"], Some("a b")),
    );
    assert_eq!(after.kind, EntryKind::Json);
    assert_eq!(after.field("status"), "a b");
    assert_eq!(after.field("remote_addr"), "192.0.2.77");
    assert_eq!(after.record.time, Timestamp(971_211_336_000_000_000));
    let after = edited(
        EntryKind::Syslog,
        b"<34>1 2026-03-01T22:14:15Z web1 app 7 ID - text of it",
        &mut Of(&["severity"], Some("R")),
    );
    assert_eq!(after.field("severity"), "R");
    assert_eq!(after.field("hostname"), "web1");
    assert_eq!(
        after.record.message,
        Message::Part(Value::Str("text of it".into()))
    );
}

#[test]
fn fields_beside_the_line_are_changed_and_labels_move_there() {
    let labels: Labels = vec![
        ("file".into(), "/var/secret".into()),
        ("app".into(), "shop".into()),
    ];
    let mut held = Vec::new();
    let fields = [("token", Value::Int(77)), ("gone", Value::Bool(true))];
    let each = fields.iter().map(|(name, value)| (*name, value));
    logpond_record::envelope::seal(EntryKind::Line, None, each, b"text", &mut held);
    let (kind, envelope, raw) = line_of(EntryKind::Enveloped, &held);
    let mut parser = Parser::new();
    let entry = Entry {
        envelope,
        ..entry(kind, &labels, raw)
    };
    let mut draft = Draft::new(&entry, &mut parser);
    assert!(draft.edit(&mut Of(&["token"], Some("R")), &mut parser));
    assert!(!draft.are_labels_own());
    assert!(draft.edit(&mut Of(&["gone"], None), &mut parser));
    assert!(draft.edit(&mut Of(&["file"], Some("R")), &mut parser));
    assert!(draft.are_labels_own() && draft.needs_envelope(EntryKind::Line));
    draft.add("team", Value::Int(1));
    let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
    draft.push_to(&mut batch, true);
    let (_, envelope, line) = line_of(EntryKind::Enveloped, batch.payload());
    let text = |text: &'static str| Value::Str(text.into());
    let expected = [
        ("token", text("R")),
        ("team", Value::Int(1)),
        ("file", text("R")),
        ("app", text("shop")),
    ];
    assert!(envelope.fields().eq(expected));
    assert_eq!(line, b"text");
}

#[test]
fn further_values_of_a_name_are_changed_like_the_first() {
    let labels: Labels = vec![
        ("token@label".into(), "third".into()),
        ("file@label".into(), "/var/log".into()),
    ];
    let mut held = Vec::new();
    let text = |text: &'static str| Value::Str(text.into());
    let fields = [
        ("token", text("first")),
        ("token@label@label", text("second")),
    ];
    let each = fields.iter().map(|(name, value)| (*name, value));
    logpond_record::envelope::seal(EntryKind::Line, None, each, b"text", &mut held);
    let (kind, envelope, raw) = line_of(EntryKind::Enveloped, &held);
    let mut parser = Parser::new();
    let entry = Entry {
        envelope,
        ..entry(kind, &labels, raw)
    };
    let mut draft = Draft::new(&entry, &mut parser);
    assert!(draft.edit(&mut Of(&["token"], Some("R")), &mut parser));
    assert!(draft.edit(&mut Of(&["file@label"], Some("F")), &mut parser));
    let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
    draft.push_to(&mut batch, true);
    let (_, envelope, _) = line_of(EntryKind::Enveloped, batch.payload());
    let expected = [
        ("token", text("R")),
        ("token@label@label", text("R")),
        ("token@label", text("R")),
        ("file@label", text("F")),
    ];
    assert!(envelope.fields().eq(expected));
}

#[test]
fn the_machine_that_passed_a_line_on_still_yields_to_that_of_the_line() {
    let labels: Labels = vec![
        ("hostname".into(), "relay".into()),
        ("app".into(), "shop".into()),
    ];
    let line = b"<34>1 2026-03-01T22:14:15Z web1 app 7 ID - text of it";
    for (raw, expected) in [(&line[..], "web1"), (b"text", "relay")] {
        let mut parser = Parser::new();
        let mut draft = Draft::new(&entry(EntryKind::Syslog, &labels, raw), &mut parser);
        assert!(draft.edit(&mut Of(&["app"], Some("R")), &mut parser));
        draft.settle(&mut parser);
        assert!(draft.are_labels_own());
        let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
        draft.push_to(&mut batch, true);
        let (kind, envelope, line) = line_of(EntryKind::Enveloped, batch.payload());
        let none = Labels::new();
        let record = parser.parse(&Entry {
            envelope,
            ..entry(kind, &none, line)
        });
        let hosts = record
            .fields()
            .filter(|(name, _)| name.starts_with("hostname"));
        let hosts: Vec<(&str, &Value<'_>)> = hosts.collect();
        assert_eq!(hosts, [("hostname", &Value::Str(expected.into()))]);
    }
}

/// Lines in which a value of this text is the field `secret`.
fn lines(secret: &str) -> Vec<(EntryKind, String)> {
    let mut json = Vec::new();
    logpond_record::write_json_string(secret, &mut json);
    let json = String::from_utf8(json).unwrap();
    let data = secret
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace(']', "\\]");
    let quoted = secret.replace('\\', "\\\\").replace('"', "\\\"");
    vec![
        (
            EntryKind::Json,
            format!("{{\"a\":1,\"secret\":{json},\"z\":[]}}"),
        ),
        (
            EntryKind::Line,
            format!("{{\"secret\":{json},\"secret\":{json},\"m\":{{\"b\":2}}}}"),
        ),
        (EntryKind::Line, format!("a=1 secret=\"{quoted}\" z=2")),
        (EntryKind::Line, format!("a=1 secret=\"{quoted}\" z=2 z=3")),
        (
            EntryKind::Syslog,
            format!("<34>1 2026-03-01T22:14:15Z h a 7 - - {{\"secret\":{json},\"k\":1}}"),
        ),
        (
            EntryKind::Syslog,
            format!("<34>1 2026-03-01T22:14:15Z h a 7 - [s@1 secret=\"{data}\" k=\"1\"] m"),
        ),
        (
            EntryKind::Syslog,
            format!("<34>Mar  1 22:14:15 h a[7]: b=1 secret=\"{quoted}\" c=2"),
        ),
    ]
}

proptest! {
    /// Whatever stood in it, the value is nowhere afterwards, and the other fields are as before.
    #[test]
    fn a_value_is_nowhere_afterwards(
        secret in "[ -~äöü€]{6,30}",
        put in prop_oneof![Just(Some("REDACTED".to_owned())), Just(None), "[0-9a-f]{16}".prop_map(Some), "[ -~]{0,3}".prop_map(Some)],
    ) {
        prop_assume!(!secret.trim().is_empty() && !put.as_deref().unwrap_or("-").contains(&secret));
        for (kind, line) in lines(&secret) {
            let names = ["secret", "s@1.secret"];
            let before = edited(kind, line.as_bytes(), &mut Of(&[], None)).record;
            let after = edited(kind, line.as_bytes(), &mut Of(&names, put.as_deref()));
            let is_secret = |name: &str| names.contains(&name);
            if !before.fields().any(|(name, _)| is_secret(name)) {
                continue;
            }
            prop_assert!(
                memchr::memmem::find(&after.line, secret.as_bytes()).is_none(),
                "{} in {}", secret, after.text()
            );
            let others = |record: &Record<'static>| -> Vec<(String, Value<'static>)> {
                let fields = record.fields().filter(|(name, _)| !is_secret(name));
                fields.map(|(name, value)| (name.to_owned(), value.clone())).collect()
            };
            prop_assert_eq!(others(&before), others(&after.record), "{} to {}", line, after.text());
            prop_assert_eq!(before.time, after.record.time);
            for (_, value) in after.record.fields().filter(|(name, _)| is_secret(name)) {
                let expected = put.as_deref().unwrap_or("-");
                let is_put = *value == Value::Null || value.to_text() == expected.as_bytes();
                prop_assert!(is_put, "{:?} in {}", value, after.text());
            }
        }
    }

    /// Any bytes.
    #[test]
    fn any_line_can_be_changed(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz::fuzz_rewrite(&data);
    }
}

/// What is made of a line is changed where it stands, and a format that is declared is used.
#[test]
fn fields_that_are_made_of_a_line_are_changed_in_it() {
    let labels: Labels = vec![
        ("hostname".into(), "h".into()),
        (
            format!("{LABEL_PREFIX}shop").into(),
            "$remote_addr [$time_local] \"$http_referer\" $request_time".into(),
        ),
    ];
    let raw = b"192.0.2.7 [02/Mar/2026:00:00:06 +0000] \"http://geheim.example/a\" 0.250";
    let entry = entry(EntryKind::Line, &labels, raw);
    let mut parser = Parser::new();
    let mut draft = Draft::new(&entry, &mut parser);
    let field = |draft: &Draft<'_>, name: &str| {
        let value = draft.record().field(name);
        value.map(|value| String::from_utf8_lossy(&value.to_text()).into_owned())
    };
    assert_eq!(
        field(&draft, "referer_host").as_deref(),
        Some("geheim.example")
    );
    assert!(!draft.edit(&mut Of(&["none"], Some("R")), &mut parser));
    assert!(draft.edit(&mut Of(&["remote_addr"], Some("192.0.2.0")), &mut parser));
    draft.settle(&mut parser);
    assert_eq!(
        *draft.current_line(),
        *b"192.0.2.0 [02/Mar/2026:00:00:06 +0000] \"http://geheim.example/a\" 0.250"
    );
    assert_eq!(field(&draft, "access_log").as_deref(), Some("shop"));
    assert!(draft.edit(&mut Of(&["referer_host"], Some("R")), &mut parser));
    draft.settle(&mut parser);
    assert_eq!(
        *draft.current_line(),
        *b"192.0.2.0 [02/Mar/2026:00:00:06 +0000] \"http://R/a\" 0.250"
    );
    assert_eq!(field(&draft, "referer_host").as_deref(), Some("R"));
    // It goes with what it is made of.
    assert!(draft.edit(&mut Of(&["referer"], None), &mut parser));
    draft.settle(&mut parser);
    assert_eq!(field(&draft, "referer_host"), None);
    assert_eq!(field(&draft, "hostname").as_deref(), Some("h"));
    assert!(
        !draft.needs_envelope(EntryKind::Line),
        "nothing came beside the line"
    );
    // A line of another form keeps it.
    assert!(draft.edit(&mut Of(&["remote_addr"], Some("a b")), &mut parser));
    draft.settle(&mut parser);
    assert_eq!(field(&draft, "access_log").as_deref(), Some("shop"));
    assert_eq!(field(&draft, "remote_addr").as_deref(), Some("a b"));
}

/// In lines of JSON that a format declares, keys are no names of fields.
#[test]
fn names_of_a_format_count() {
    let definition = r#"escape=json {"ip":"$remote_addr","at":"$time_iso8601","code":$status}"#;
    let labels: Labels = vec![(format!("{LABEL_PREFIX}shop").into(), definition.into())];
    let raw = br#"{"ip":"192.0.2.77","at":"2026-03-02T00:00:06+00:00","code":200}"#;
    let entry = entry(EntryKind::Line, &labels, raw);
    let mut parser = Parser::new();
    let mut draft = Draft::new(&entry, &mut parser);
    assert_eq!(draft.record().field("status"), Some(&Value::Int(200)));
    assert!(draft.edit(&mut Of(&["remote_addr"], Some("R")), &mut parser));
    draft.settle(&mut parser);
    let line = String::from_utf8(draft.current_line().into_owned()).unwrap();
    assert_eq!(
        line,
        r#"{"ip":"R","at":"2026-03-02T00:00:06+00:00","code":200}"#
    );
    assert!(draft.edit(&mut Of(&["status"], Some("R")), &mut parser));
    draft.settle(&mut parser);
    let line = String::from_utf8(draft.current_line().into_owned()).unwrap();
    assert!(
        !line.contains("200") && !line.contains("192.0.2.77"),
        "{line}"
    );
    assert_eq!(
        draft.record().field("status"),
        Some(&Value::Str("R".into()))
    );
    assert_eq!(
        draft.record().field("remote_addr"),
        Some(&Value::Str("R".into()))
    );
}

/// A hidden value is nowhere: not in the line, nor in the message, nor in a field that is the message, too.
#[test]
fn fields_of_a_message_are_changed_in_the_message() {
    let access = r#"{"host":"web-1","message":"192.0.2.17 - lena [27/Nov/2026:00:51:25 +0100] \"GET /a HTTP/1.1\" 200 17 \"-\" \"x\""}"#;
    let table = [
        (access, "remote_addr", "192.0.2.17"),
        (access, "user", "lena"),
        (access, "path", "/a"),
        (
            r#"{"log":"{\"msg\":\"refused\",\"user\":\"lena\"}\n","n":1}"#,
            "user",
            "lena",
        ),
        (
            r#"{"Timestamp":"2026-11-27T00:00:00Z","Message":"user=lena peer=n2"}"#,
            "user",
            "lena",
        ),
        (
            r#"{"message":"user=lena url=\u0022x\u0022"}"#,
            "user",
            "lena",
        ),
        (r#"{"Message":"lena was here","n":1}"#, "_msg", "lena"),
        (r#"{"Message":"lena was here","n":1}"#, "Message", "lena"),
        (r#"{"event":"lena was here","n":1}"#, "_msg", "lena"),
        ("Message=lena n=1", "_msg", "lena"),
        // The member holds more than the message.
        (
            r#"{"MESSAGE":"2026-11-27 00:51:25,818 - shop - WARNING - lena was here","n":1}"#,
            "_msg",
            "lena",
        ),
        (
            r#"{"MESSAGE":"2026-11-27 00:51:25,818 - shop.lena - WARNING - was here","n":1}"#,
            "logger",
            "lena",
        ),
        (access, "_msg", "lena"),
    ];
    for (line, name, hidden) in table {
        let after = edited(EntryKind::Line, line.as_bytes(), &mut Of(&[name], PUT));
        let said = format!("{:?}", after.record);
        assert!(
            !after.text().contains(hidden),
            "{name} of {line}: {}",
            after.text()
        );
        assert!(!said.contains(hidden), "{name} of {line}: {said}");
        assert!(said.contains("R R"), "{name} of {line}: {said}");
    }
    let after = edited(
        EntryKind::Line,
        access.as_bytes(),
        &mut Of(&["user"], Some("R")),
    );
    let line = access.replace("lena", "R");
    assert_eq!(after.text(), line);
    assert_eq!(after.field("remote_addr"), "192.0.2.17");
}

/// A time that is a field, too, may be hidden: the record keeps it.
#[test]
fn a_time_that_is_hidden_stays_the_time() {
    let line = r#"{"eventTime":"2026-11-27T00:51:25Z","date":"2026-01-01T00:00:00Z"}"#;
    let before = Parser::new()
        .parse(&entry(EntryKind::Json, &Labels::new(), line.as_bytes()))
        .time;
    let after = edited(
        EntryKind::Json,
        line.as_bytes(),
        &mut Of(&["eventTime"], PUT),
    );
    assert_eq!(
        (after.record.time, after.field("eventTime")),
        (before, "R R".to_owned())
    );
}
