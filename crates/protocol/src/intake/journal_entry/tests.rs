//! Entries as records and back, in tables and as a property.

use logpond_record::line_of;
use proptest::prelude::*;

use super::*;

type Fields = Vec<(String, Vec<u8>)>;
type Given<'a> = &'a [(&'a str, &'a [u8])];

struct SealedEntry {
    position: Option<Position>,
    kind: EntryKind,
    time: Option<Timestamp>,
    /// `name=value` as JSON, in the order of the envelope.
    fields: Vec<String>,
    line: Vec<u8>,
    back: Fields,
}

fn seal(fields: Given<'_>) -> Result<SealedEntry, RejectReason> {
    let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
    let position = Sealer::new(1000).seal(fields.iter().copied(), &mut batch);
    assert_eq!(batch.len(), usize::from(position.is_ok()));
    let position = position?;
    let (kind, envelope, line) = line_of(batch.kind, batch.payload());
    let owned: Vec<_> = envelope.fields().collect();
    let show = |(name, value): &(&str, Value<'_>)| {
        let mut json = Vec::new();
        value.write_json(&mut json);
        format!("{name}={}", String::from_utf8_lossy(&json))
    };
    let mut back = Fields::new();
    let each = owned.iter().map(|(name, value)| (*name, value));
    fields_of(each, line, |name, value| {
        back.push((name.to_owned(), value.to_vec()))
    });
    Ok(SealedEntry {
        position,
        kind,
        time: envelope.time,
        fields: owned.iter().map(show).collect(),
        line: line.to_vec(),
        back,
    })
}

fn sorted(fields: Given<'_>) -> Fields {
    let mut sorted: Fields = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_vec()))
        .collect();
    sorted.sort();
    sorted
}

#[test]
fn an_entry_is_a_record_under_its_own_and_the_usual_names() {
    let fields: [(&str, &[u8]); 12] = [
        ("__CURSOR", b"s=e992f143877046059b264a0f907056b6;i=82a;b=26d74a46deff4872be6d4ca6e885a198;m=14;t=5f855157e4ae6;x=7"),
        ("__REALTIME_TIMESTAMP", b"1680419200060134"),
        ("_SOURCE_REALTIME_TIMESTAMP", b"1680419200061777"),
        ("PRIORITY", b"6"),
        ("SYSLOG_FACILITY", b"3"),
        ("SYSLOG_IDENTIFIER", b"systemd"),
        ("_COMM", b"sh"),
        ("_PID", b"1150"),
        ("_HOSTNAME", b"ash"),
        ("_SYSTEMD_UNIT", b"a.service"),
        ("UNIT", b"b.service"),
        ("MESSAGE", b"Starting"),
    ];
    let sealed = seal(&fields).unwrap();
    assert_eq!(sealed.line, b"Starting");
    assert_eq!(sealed.kind, EntryKind::Line);
    assert_eq!(sealed.time, Some(Timestamp(1_680_419_200_060_134_000)));
    let position = Position {
        seqnum_id: 0xe992_f143_8770_4605_9b26_4a0f_9070_56b6,
        seqnum: 0x82a,
        boot_id: 0x26d7_4a46_deff_4872_be6d_4ca6_e885_a198,
        realtime_us: 0x5_f855_157e_4ae6,
    };
    assert_eq!(sealed.position, Some(position));
    assert_eq!(
        sealed.fields[sealed.fields.len() - 6..],
        [
            "severity=6",
            "facility=3",
            "hostname=\"ash\"",
            "app=\"systemd\"",
            "procid=\"1150\"",
            "unit=\"a.service\""
        ]
    );
    assert!(sealed.fields.contains(&"_PID=1150".to_owned()));
    let mut back = sealed.back;
    back.sort();
    assert_eq!(back, sorted(&fields));
}

#[test]
fn values_are_kept_whatever_they_are() {
    let table: [(Given<'_>, &[&str]); 11] = [
        (&[("PRIORITY", b"06")], &["PRIORITY=\"06\"", "severity=6"]),
        (&[("PRIORITY", b"9")], &["PRIORITY=9"]),
        (&[("PRIORITY", b"")], &["PRIORITY=\"\""]),
        (&[("A", b"1")], &["A=\"1\""]),
        (&[("A", b"\xff\x00")], &["A=[255,0]"]),
        (&[("A", b"1"), ("A", b"2")], &["A=[\"1\",\"2\"]"]),
        (
            &[("A", b"x"), ("B", b"y"), ("A", b"\xff")],
            &["A=[\"x\",[255]]", "B=\"y\""],
        ),
        (&[("A", b"a\nb\"")], &["A=\"a\\nb\\\"\""]),
        (&[("MESSAGE", b"")], &["MESSAGE=\"\""]),
        (
            &[("MESSAGE", b"x"), ("MESSAGE", b"y")],
            &["MESSAGE=[\"x\",\"y\"]"],
        ),
        (
            &[
                ("_PID", b"1"),
                ("UNIT", b"u"),
                ("_SYSTEMD_UNIT", b"init.scope"),
            ],
            &[
                "UNIT=\"u\"",
                "_PID=1",
                "_SYSTEMD_UNIT=\"init.scope\"",
                "procid=\"1\"",
                "unit=\"u\"",
            ],
        ),
    ];
    for (fields, wanted) in table {
        let sealed = seal(fields).unwrap();
        assert_eq!(sealed.fields, wanted);
        let mut back = sealed.back;
        back.sort();
        assert_eq!(back, sorted(fields));
    }
}

#[test]
fn positions_are_of_the_cursor_or_the_address() {
    let address: [(&str, &[u8]); 4] = [
        ("__SEQNUM", b"7"),
        ("__SEQNUM_ID", b"0000000000000000000000000000000a"),
        ("_BOOT_ID", b"0000000000000000000000000000000b"),
        ("__REALTIME_TIMESTAMP", b"5"),
    ];
    let position = Position {
        seqnum_id: 10,
        seqnum: 7,
        boot_id: 11,
        realtime_us: 5,
    };
    assert_eq!(seal(&address).unwrap().position, Some(position));
    assert_eq!(seal(&address[1..]).unwrap().position, None);
    for cursor in [
        "",
        "s=;i=;b=;t=",
        "s=a;i=7;b=b",
        "i=7;b=b;t=5",
        "s=zz;i=7;b=b;t=5",
    ] {
        assert_eq!(
            seal(&[("__CURSOR", cursor.as_bytes())]).unwrap().position,
            None
        );
    }
}

#[test]
fn no_message_pretends_to_be_what_the_journal_says() {
    let table: [(&[u8], EntryKind); 7] = [
        (b"level=info _SYSTEMD_UNIT=sshd.service", EntryKind::Text),
        (b"_PID=1 status=done", EntryKind::Text),
        (b"{\"a\":1,\"\\u005fPID\":1}", EntryKind::Text),
        (b"pid=1 status=done", EntryKind::Line),
        (b"{\"a\":1,\"_pid\":1}", EntryKind::Line),
        (b"<13>1 - - - - - [_PID x=\"1\"] text", EntryKind::Line),
        (b"plain _PID=1", EntryKind::Line),
    ];
    for (line, kind) in table {
        let sealed = seal(&[("_PID", b"7"), ("MESSAGE", line)]).unwrap();
        assert_eq!(sealed.kind, kind, "{}", line.escape_ascii());
    }
}

#[test]
fn only_the_kernel_names_others_in_audit_records() {
    let line =
        b"audit: type=1400 audit(1772409600.123:458): avc:  denied  { read } for  pid=7 comm=\"x\"";
    let kind = |mut sealer: Sealer, line: &[u8], comm: &str| {
        let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
        let fields = [("MESSAGE", line), (comm, b"y"), ("_TRANSPORT", b"kernel")];
        sealer.seal(fields.into_iter(), &mut batch).unwrap();
        line_of(batch.kind, batch.payload()).0
    };
    let of_kernel = || Sealer::of_kernel(1000);
    assert_eq!(kind(of_kernel(), line, "X"), EntryKind::Line);
    assert_eq!(kind(of_kernel(), line, "_COMM"), EntryKind::Text);
    assert_eq!(kind(of_kernel(), b"_PID=7 a=b", "X"), EntryKind::Text);
    assert_eq!(kind(Sealer::new(1000), line, "X"), EntryKind::Text);
}

#[test]
fn times_that_no_record_has_are_left_out() {
    let table: [(Given<'_>, Option<i64>); 4] = [
        (&[("__REALTIME_TIMESTAMP", b"5")], Some(5000)),
        (
            &[
                ("_SOURCE_REALTIME_TIMESTAMP", b"x"),
                ("__REALTIME_TIMESTAMP", b"5"),
            ],
            Some(5000),
        ),
        (&[("__REALTIME_TIMESTAMP", b"18446744073709551615")], None),
        (&[("A", b"1")], None),
    ];
    for (fields, time) in table {
        assert_eq!(seal(fields).unwrap().time, time.map(Timestamp));
    }
}

#[test]
fn what_is_too_large_is_rejected() {
    let line = [b'x'; 1001];
    assert!(matches!(
        seal(&[("MESSAGE", &line)]),
        Err(RejectReason::TooLong {
            bytes: 1001,
            bytes_max: 1000
        })
    ));
    let names: Vec<String> = (0..=FIELDS_MAX).map(|n| format!("F{n}")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b""[..])).collect();
    assert!(matches!(seal(&many), Err(RejectReason::Malformed(_))));
    let most = seal(&many[1..]).unwrap();
    assert_eq!(most.fields.len(), FIELDS_MAX);
    let binary = vec![0xff; 9 << 20];
    assert!(matches!(
        seal(&[("A", &binary)]),
        Err(RejectReason::Malformed(_))
    ));
}

#[test]
fn numbers_are_sorted() {
    assert!(NUMBERS.is_sorted());
}

proptest! {
    #[test]
    fn every_field_comes_back(
        fields in prop::collection::vec(
            ("(A|B|PRIORITY|_PID|MESSAGE|__CURSOR|odd)", prop_oneof![
                "[0-9]{1,3}".prop_map(String::into_bytes),
                "(_PID=1 B=2|\\[1\\]|\\{\"A\":1\\}|[ -~]{0,9})".prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 0..9),
            ]),
            0..8,
        ),
    ) {
        let fields: Vec<(&str, &[u8])> = fields.iter().map(|(n, v)| (&**n, &**v)).collect();
        let mut back = seal(&fields).unwrap().back;
        back.sort();
        prop_assert_eq!(back, sorted(&fields));
    }
}
