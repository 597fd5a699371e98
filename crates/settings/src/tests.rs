use std::ffi::OsString;
use std::path::Path;

use expect_test::{expect, expect_file};

use super::*;
use logpond_host::telemetry::Intake;

fn surroundings<'a>(variable: &'a dyn Fn(&str) -> Option<OsString>) -> Environment<'a> {
    Environment {
        variable,
        is_root: false,
    }
}

fn home(name: &str) -> Option<OsString> {
    (name == "HOME").then(|| "/home/me".into())
}

fn from_file(text: &str) -> Result<Settings, SettingsError> {
    let given = file::parse(text, Path::new("/etc/logpond/logpond.toml"))?;
    Settings::resolve(&given, &surroundings(&home))
}

#[test]
#[expect(clippy::too_many_lines, reason = "one line a setting")]
fn defaults() {
    let settings = Settings::resolve(&[], &surroundings(&home)).unwrap();
    expect![[r#"
        Settings {
            roles: Roles {
                ingests: true,
                stores: true,
            },
            data: "/home/me/.local/share/logpond",
            http: 127.0.0.1:7650,
            listeners: {
                "fast": 127.0.0.1:7651,
                "durable": 127.0.0.1:7652,
                "bulk": 127.0.0.1:7653,
                "syslog-udp": 127.0.0.1:5514,
                "syslog-tcp": 127.0.0.1:5514,
                "relp": 127.0.0.1:2514,
                "gelf-udp": 127.0.0.1:12201,
                "gelf-tcp": 127.0.0.1:12201,
                "fluent": 127.0.0.1:24224,
                "otlp-grpc": 127.0.0.1:4317,
            },
            syslog_clients: ClientRules {
                authorities: None,
                peers: [],
            },
            default_listeners: [
                "http",
                "fast",
                "durable",
                "lines-udp",
                "bulk",
                "syslog-udp",
                "syslog-tcp",
                "syslog-tls",
                "relp",
                "relp-tls",
                "gelf-udp",
                "gelf-tcp",
                "fluent",
                "otlp-grpc",
                "otlp-http",
                "loki",
                "elasticsearch",
                "splunk",
                "postgres",
                "gossip",
            ],
            kafka: KafkaSettings {
                topics: [],
                start: Earliest,
                security: None,
            },
            gossip: None,
            postgres: None,
            at_start: AtStart {
                confirms_retention: false,
                trusts_clock: false,
            },
            bucket: None,
            field_names: [],
            alerts: AlertSettings {
                rules: None,
                receivers: [],
                external_url: None,
            },
            insecure: false,
            tokens: "/home/me/.local/share/logpond/tokens.toml",
            tls: None,
            cluster_tls: None,
            http_host: [],
            dev_log: None,
            dev_log_stream: None,
            journald: None,
            keep_sockets: Some(
                10s,
            ),
            kmsg: None,
            audit: false,
            fluent_security: None,
            advertise: None,
            join: [],
            replication: 1,
            zone: "",
            repair_after: 900s,
            canary: None,
            retain_age: Some(
                2592000s,
            ),
            retain_size_bytes: None,
            keep_free: Percent(
                20.0,
            ),
            scrub_every: Some(
                1209600s,
            ),
            memory: Percent(
                40.0,
            ),
            line_bytes_max: 1048576,
            hostname: "",
            access_logs: [],
            timezones: Timezones {
                all: "local",
                networks: [],
            },
            rules: None,
            ready_file: None,
            require_token: false,
            tenant_header: "",
            audit_log: Off,
        }
    "#]]
    .assert_debug_eq(&settings);
}

#[test]
fn the_usual_place_for_data() {
    let state = |name: &str| match name {
        "STATE_DIRECTORY" => Some("/var/lib/a:/var/lib/b".into()),
        _ => home(name),
    };
    let none = |_: &str| None;
    let mut place = surroundings(&state);
    assert_eq!(place.data_directory(), Some("/var/lib/a".into()));
    place = surroundings(&none);
    assert_eq!(place.data_directory(), None);
    place.is_root = true;
    assert_eq!(place.data_directory(), Some("/var/lib/logpond".into()));
}

#[test]
fn flags_win_over_variables_and_these_over_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("logpond.toml");
    std::fs::write(
        &path,
        "http = 1\nfast = 1\ndurable = \"off\"\nretain_age='2d'",
    )
    .unwrap();
    let variable = |name: &str| match name {
        "LOGPOND_HTTP" | "LOGPOND_FAST" => Some("2".into()),
        "LOGPOND_CONFIG" => Some(path.clone().into()),
        _ => home(name),
    };
    let place = surroundings(&variable);
    let given = gather(None, vec![("http", "3".into())], &place).unwrap();
    let settings = Settings::resolve(&given, &place).unwrap();
    assert_eq!(settings.http.port(), 3);
    assert_eq!(
        settings.listeners.of(Intake::Fast).map(|a| a.port()),
        Some(2)
    );
    assert_eq!(settings.listeners.of(Intake::Durable), None);
    assert_eq!(settings.retain_age, Some(Duration::from_secs(172_800)));
    let missing = gather(Some(Path::new("/nowhere.toml")), Vec::new(), &place);
    assert!(matches!(missing, Err(SettingsError::Unreadable { .. })));
}

#[test]
fn complaints_say_where_and_what_to_do() {
    let table = [
        "retain-agee = \"1d\"",
        "# ä\ncolour = 1",
        "http = ",
        "data = 'ä'\nretain-age = 30",
        "\"keep-free\" = \"120%\"",
        "http = \"off\"",
        "http = [1]",
        "fast = \"0.0.0.0:7651\"",
        "http = \"0.0.0.0:7650\"",
        "tls-certificate = 'a.pem'",
        "tls-key = 'a.key'",
        "line-bytes-max = \"64MiB\"",
        "zone = 'rack 4'",
        "retain_age = '1d'\nretain-age = '1d'",
        "tokens = 'lp_7k2m9qxa_0123456789abcdefghjkmnpqrstvwxyz'",
    ];
    let said: Vec<String> = table
        .iter()
        .map(|text| from_file(text).unwrap_err().to_string())
        .collect();
    expect![[r#"
        /etc/logpond/logpond.toml:1:1: there is no setting 'retain-agee', did you mean 'retain-age'?
        /etc/logpond/logpond.toml:2:1: there is no setting 'colour'; settings are data, http, http-host, fast, durable, lines-udp, bulk, syslog-udp, syslog-tcp, syslog-tls, syslog-tls-ca, syslog-tls-peers, dev-log, dev-log-stream, journald, keep-sockets, kmsg, audit, relp, relp-tls, gelf-udp, gelf-tcp, fluent, fluent-security, otlp-grpc, otlp-http, loki, elasticsearch, splunk, kafka, kafka-from, kafka-security, postgres, gossip, advertise, join, replication, zone, repair-after, canary, retain-age, retain-size, confirm-retention, trust-clock, keep-free, scrub-every, bucket, bucket-cache, open-table, local-age, local-size, memory, line-bytes-max, hostname, access-log, time-field, message-field, timezone, rules, alert-rules, alertmanager, alert-webhook, external-url, ready-file, insecure, tokens, require-token, tenant-header, audit-log, tls-certificate, tls-key, cluster-tls
        /etc/logpond/logpond.toml:1:8: string values must be quoted, expected literal string
        /etc/logpond/logpond.toml:2:14: '30' is no value for retain-age: the unit is missing; units are ns us ms s m h d w month y
        /etc/logpond/logpond.toml:1:15: '120%' is no value for keep-free: the amount is too large
        /etc/logpond/logpond.toml:1:8: 'off' is no value for http: HTTP cannot be off: the commands need it
        /etc/logpond/logpond.toml:1:8: '[1]' is no value for http: expected ADDR in quotes
        /etc/logpond/logpond.toml:1:8: other machines could reach fast at 0.0.0.0:7651, and nothing there is encrypted or authenticated. Either stay on this machine: --fast 127.0.0.1:7651; or take the lines in by HTTP, which can be encrypted: logpond forward; or, in a network you trust: --fast 0.0.0.0:7651 --insecure
        /etc/logpond/logpond.toml:1:8: other machines could reach http at 0.0.0.0:7650, and nothing there is encrypted or authenticated. Either stay on this machine: --http 127.0.0.1:7650; or give it a certificate and a token: logpond cluster ca create --out CA; logpond cluster certificate --ca CA --name NAME --address IP,DNS --out DIR; logpond token create --role admin; and then --tls-certificate DIR/node.pem --tls-key DIR/node.key; or, in a network you trust: --http 0.0.0.0:7650 --insecure
        /etc/logpond/logpond.toml:1:19: 'a.pem' is no value for tls-certificate: its key is missing: name it by tls-key
        /etc/logpond/logpond.toml:1:11: 'a.key' is no value for tls-key: its certificate is missing: name it by tls-certificate
        /etc/logpond/logpond.toml:1:18: '64MiB' is no value for line-bytes-max: the limit for lines is from 1KiB to 32MiB
        /etc/logpond/logpond.toml:1:8: 'rack 4' is no value for zone: expected up to 63 letters, digits, '-', '_' and '.'
        /etc/logpond/logpond.toml:2:1: the setting 'retain-age' is given twice
        /etc/logpond/logpond.toml:1:10: 'lp_…' is no value for tokens: it is a token; expected the name of the file of tokens"#]].assert_eq(&said.join("\n"));
}

#[test]
fn open_addresses_are_taken_when_asked_for() {
    let encrypted = "http = '0.0.0.0'\ntls-certificate = 'a.pem'\ntls-key = 'a.key'";
    let settings = from_file(encrypted).unwrap();
    assert!(settings.is_http_guarded() && settings.tls.is_some());
    let settings = from_file(&format!("{encrypted}\ninsecure = true")).unwrap();
    assert!(!settings.is_http_guarded());
    let raw = from_file(&format!("{encrypted}\ndurable = '0.0.0.0'")).unwrap_err();
    assert!(raw.to_string().contains("reach durable"), "{raw}");
    let settings = from_file("fast = '0.0.0.0'\ninsecure = true").unwrap();
    assert_eq!(
        settings.listeners.of(Intake::Fast),
        Some("0.0.0.0:7651".parse().unwrap())
    );
}

#[test]
fn the_reference_page_is_up_to_date() {
    expect_file!["../../../docs/reference/settings.md"].assert_eq(&reference());
}

#[test]
fn the_default_file_has_every_setting_and_says_its_default() {
    let file = default_file();
    assert!(
        file.lines()
            .all(|line| line.is_empty() || line.starts_with('#'))
    );
    assert!(
        file::parse(&file, Path::new("logpond.toml"))
            .unwrap()
            .is_empty()
    );
    let is_setting = |line: &&str| !line.starts_with("# ") && line.starts_with('#');
    let settings: Vec<&str> = file
        .lines()
        .filter(is_setting)
        .map(|line| &line[1..])
        .collect();
    let given = file::parse(&settings.join("\n"), Path::new("logpond.toml")).unwrap();
    assert_eq!(given.len(), TABLE.len());
    for (given, row) in given.iter().zip(&TABLE) {
        assert_eq!(given.name, row.name);
        assert!(
            given.text == row.default || row.name == "data",
            "{}",
            row.name
        );
    }
}

#[test]
fn the_value_that_counts_has_its_origin() {
    let given = |name, text: &str, origin| SettingValue {
        name,
        text: text.to_owned(),
        origin,
    };
    let all = [
        given("http", "1", Origin::Variable("LOGPOND_HTTP".to_owned())),
        given("http", "2", Origin::Flag("http")),
    ];
    let effective = effective(&all);
    assert_eq!(effective.len(), TABLE.len());
    let of = |name: &str| effective.iter().find(|given| given.name == name).unwrap();
    assert_eq!(of("http"), &all[1]);
    assert_eq!(of("fast").origin, Origin::Default);
    assert_eq!(of("fast").text, "127.0.0.1:7651");
}

#[test]
fn roles_leave_out_what_they_do_not_do() {
    let settings = |text: &str| from_file(text).unwrap();
    let store = settings("gossip = \"127.0.0.1\"\n").limited_to(Roles::STORE);
    let store = store.unwrap();
    assert_eq!(
        (store.roles, store.listeners),
        (Roles::STORE, IntakeAddresses::default())
    );
    let ingester = settings("gossip = \"127.0.0.1\"\n").limited_to(Roles::INGEST);
    assert!(ingester.unwrap().listeners.of(Intake::Fast).is_some());
    assert!(settings("").limited_to(Roles::ALL).is_ok());
    let alone = settings("").limited_to(Roles::QUERY).unwrap_err();
    expect!["`logpond query-node` is one node of several: say where it talks with the others by --gossip ADDR, and whom it asks first for them by --join ADDR; `logpond serve` works alone"]
        .assert_eq(&alone.to_string());
}

#[test]
fn settings_of_nodes_need_other_nodes() {
    for (text, name) in [
        ("replication = 2", "replication"),
        ("join = '10.0.0.1'", "join"),
        ("zone = 'east'", "zone"),
        ("canary = '1m'", "canary"),
        ("advertise = '10.0.0.1'", "advertise"),
    ] {
        let error = from_file(text).unwrap_err().to_string();
        assert!(
            error.contains(name) && error.contains("--gossip ADDR"),
            "{error}"
        );
        let node = format!("gossip = '127.0.0.1'\n{text}");
        assert!(from_file(&node).is_ok(), "{node}");
    }
    assert!(from_file("replication = 1\njoin = 'off'\nzone = 'off'").is_ok());
}

#[test]
fn formats_of_access_logs_may_be_a_list() {
    let text = "access-log = ['a=$msec', \"b=%t\"]";
    let given = file::parse(text, Path::new("logpond.toml")).unwrap();
    assert_eq!(given[0].text, "a=$msec\nb=%t");
    for bad in ["access-log = [1]", "data = ['a']"] {
        let error = file::parse(bad, Path::new("logpond.toml")).unwrap_err();
        assert!(error.to_string().contains("expected"), "{error}");
    }
}

#[test]
fn nodes_are_joined_by_address_or_by_name() {
    let joined = |text: &str| {
        let settings = from_file(&format!(
            "gossip = '10.0.0.1'\ninsecure = true\njoin = '{text}'"
        ));
        settings.map(|settings| {
            let seeds = settings.join.iter().map(ToString::to_string);
            seeds.collect::<Vec<_>>().join(" ")
        })
    };
    for (text, expected) in [
        ("off", ""),
        ("10.0.0.7", "10.0.0.7:7659"),
        ("[fd00::7]:7000, fd00::8", "[fd00::7]:7000 [fd00::8]:7659"),
        ("localhost", "127.0.0.1:7659"),
        ("node-1", "node-1:7659"),
        (
            "nodes.default.svc.:7000,10.0.0.7",
            "nodes.default.svc.:7000 10.0.0.7:7659",
        ),
    ] {
        assert_eq!(joined(text).unwrap(), expected, "{text}");
    }
    for text in [
        "10.0.0",
        "300.1.1.1",
        "a b",
        "node:70000",
        "node:",
        "http://node",
        "node,,node",
    ] {
        let error = joined(text).unwrap_err().to_string();
        assert!(
            error.contains("expected an address or a name"),
            "{text}: {error}"
        );
    }
}
