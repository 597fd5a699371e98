use logpond_record::{Batch, Entry, EntryKind, Id, Labels, Value, line_of};
use proptest::prelude::*;

use crate::intake::fuzz;
use crate::intake::parser::Parser;
use crate::intake::parser::tests::{RECEIVED, describe, describe_record, entry};

/// Lines and what they become.
const LINES: &[(&str, &str)] = &[
    (
        "type=SYSCALL msg=audit(1772409600.123:456): arch=c000003e syscall=59 success=yes exit=0 a0=55d1 a1=100 items=2 ppid=900 pid=901 auid=4294967295 uid=0 tty=pts0 ses=3 comm=\"cat\" exe=\"/usr/bin/cat\" subj=unconfined key=(null)",
        "field=1772409600.123 _AUDIT_TYPE_NAME=SYSCALL _AUDIT_ID=456 _AUDIT_FIELD_ARCH=c000003e _AUDIT_FIELD_SYSCALL=59 _AUDIT_FIELD_SUCCESS=yes _AUDIT_FIELD_EXIT=0 _AUDIT_FIELD_A0=55d1 _AUDIT_FIELD_A1=100 _AUDIT_FIELD_ITEMS=2 _PPID=900 _PID=901 _AUDIT_LOGINUID=4294967295 _UID=0 _TTY=pts0 _AUDIT_SESSION=3 _COMM=cat _EXE=/usr/bin/cat _SELINUX_CONTEXT=unconfined _AUDIT_FIELD_KEY=(null) _AUDIT_TYPE=1300 | line",
    ),
    (
        "type=SYSCALL msg=audit(1772409600.123:456): syscall=59 pid=901 comm=2F746D702F6120622E7368 exe=\"/bin/sh\" key=\"run\"\u{1d}ARCH=x86_64 SYSCALL=execve AUID=\"unset\" UID=\"root\"",
        "field=1772409600.123 _AUDIT_TYPE_NAME=SYSCALL _AUDIT_ID=456 _AUDIT_FIELD_SYSCALL=59 _PID=901 _COMM=/tmp/a b.sh _EXE=/bin/sh _AUDIT_FIELD_KEY=run _AUDIT_NAME_ARCH=x86_64 _AUDIT_NAME_SYSCALL=execve _AUDIT_NAME_AUID=unset _AUDIT_NAME_UID=root _AUDIT_TYPE=1300 | line fix5=2F746D702F6120622E7368",
    ),
    (
        "type=USER_AUTH msg=audit(1772409601.5:457): pid=902 uid=0 auid=1000 ses=2 msg='op=PAM:authentication grantors=? acct=\"o'neil\" exe=\"/usr/sbin/sshd\" hostname=192.0.2.7 addr=192.0.2.7 terminal=ssh res=failed'\u{1d}UID=\"root\" AUID=\"eve\"",
        "field=1772409601.5 _AUDIT_TYPE_NAME=USER_AUTH _AUDIT_ID=457 _PID=902 _UID=0 _AUDIT_LOGINUID=1000 _AUDIT_SESSION=2 AUDIT_FIELD_OP=PAM:authentication AUDIT_FIELD_GRANTORS=? AUDIT_FIELD_ACCT=o'neil AUDIT_FIELD_EXE=/usr/sbin/sshd AUDIT_FIELD_HOSTNAME=192.0.2.7 AUDIT_FIELD_ADDR=192.0.2.7 AUDIT_FIELD_TERMINAL=ssh AUDIT_FIELD_RES=failed _AUDIT_NAME_UID=root _AUDIT_NAME_AUID=eve _AUDIT_TYPE=1100 | line",
    ),
    (
        "type=EXECVE msg=audit(1772409600.123:456): argc=3 a0=\"sh\" a1=\"-c\" a2=6563686F2022E282AC22",
        "field=1772409600.123 _AUDIT_TYPE_NAME=EXECVE _AUDIT_ID=456 _AUDIT_FIELD_ARGC=3 _AUDIT_FIELD_A0=sh _AUDIT_FIELD_A1=-c _AUDIT_FIELD_A2=echo \"\\xe2\\x82\\xac\" _AUDIT_TYPE=1309 | line fix6=6563686F2022E282AC22",
    ),
    (
        "type=PROCTITLE msg=audit(1772409600.123:456): proctitle=7368002D63006C7300",
        "field=1772409600.123 _AUDIT_TYPE_NAME=PROCTITLE _AUDIT_ID=456 _CMDLINE=sh -c ls _AUDIT_TYPE=1327 | line fix3=7368002D63006C7300",
    ),
    (
        "node=ash.example type=PATH msg=audit(1772409600.123:456): item=0 name=\"/bin/sh\" inode=131 dev=08:01 mode=0100755 ouid=0 cap_fp=0 nametype=NORMAL",
        "field=1772409600.123 hostname=ash.example _AUDIT_TYPE_NAME=PATH _AUDIT_ID=456 _AUDIT_FIELD_ITEM=0 _AUDIT_FIELD_NAME=/bin/sh _AUDIT_FIELD_INODE=131 _AUDIT_FIELD_DEV=08:01 _AUDIT_FIELD_MODE=0100755 _AUDIT_FIELD_OUID=0 _AUDIT_FIELD_CAP_FP=0 _AUDIT_FIELD_NAMETYPE=NORMAL _AUDIT_TYPE=1302 | line",
    ),
    (
        "type=SOCKADDR msg=audit(1772409600.123:456): saddr=02000035C0000207\u{1d}SADDR={ saddr_fam=inet laddr=192.0.2.7 lport=53 }",
        "field=1772409600.123 _AUDIT_TYPE_NAME=SOCKADDR _AUDIT_ID=456 _AUDIT_FIELD_SADDR=02000035C0000207 _AUDIT_NAME_SADDR=saddr_fam=inet laddr=192.0.2.7 lport=53 _AUDIT_TYPE=1306 | line",
    ),
    (
        "audit: type=1400 audit(1772409600.123:458): avc:  denied  { read write } for  pid=7 comm=\"x\" name=\"y\" scontext=u:r:a:s0:c1,c2 tclass=file permissive=0",
        "field=1772409600.123 _AUDIT_TYPE=1400 _AUDIT_ID=458 _AUDIT_FIELD_SERESULT=denied _AUDIT_FIELD_SEPERMS=read write _PID=7 _COMM=x _AUDIT_FIELD_NAME=y _AUDIT_FIELD_SCONTEXT=u:r:a:s0:c1,c2 _AUDIT_FIELD_TCLASS=file _AUDIT_FIELD_PERMISSIVE=0 _AUDIT_TYPE_NAME=AVC | line",
    ),
    (
        "type=USER_AVC msg=audit(1772409600.123:459): pid=1 uid=0 msg='avc:  denied  { start } for auid=0 cmdline=\"x\"  exe=\"/usr/lib/systemd/systemd\" sauid=0'",
        "field=1772409600.123 _AUDIT_TYPE_NAME=USER_AVC _AUDIT_ID=459 _PID=1 _UID=0 AUDIT_FIELD_SERESULT=denied AUDIT_FIELD_SEPERMS=start AUDIT_FIELD_AUID=0 AUDIT_FIELD_CMDLINE=x AUDIT_FIELD_EXE=/usr/lib/systemd/systemd AUDIT_FIELD_SAUID=0 _AUDIT_TYPE=1107 | line",
    ),
    (
        "type=USER msg=audit(1772409600.123:460): pid=3 msg='written by hand exe=\"/sbin/auditctl\" res=success'",
        "field=1772409600.123 _AUDIT_TYPE_NAME=USER _AUDIT_ID=460 _PID=3 AUDIT_FIELD_TEXT=written by hand AUDIT_FIELD_EXE=/sbin/auditctl AUDIT_FIELD_RES=success _AUDIT_TYPE=1005 | line",
    ),
    (
        "type=UNKNOWN[1420] msg=audit(1772409600.123:461): subj_apparmor=unconfined",
        "field=1772409600.123 _AUDIT_TYPE_NAME=UNKNOWN[1420] _AUDIT_ID=461 _AUDIT_FIELD_SUBJ_APPARMOR=unconfined _AUDIT_TYPE=1420 | line",
    ),
    (
        "type=4999 audit(1772409600.123:462): some words",
        "field=1772409600.123 _AUDIT_TYPE=4999 _AUDIT_ID=462 _AUDIT_FIELD_TEXT=some words | line",
    ),
    (
        "type=EOE msg=audit(1772409600.123:456): ",
        "field=1772409600.123 _AUDIT_TYPE_NAME=EOE _AUDIT_ID=456 _AUDIT_TYPE=1320 | line",
    ),
    (
        "type=EOE msg=audit(1772409600.123:456):",
        "field=1772409600.123 _AUDIT_TYPE_NAME=EOE _AUDIT_ID=456 _AUDIT_TYPE=1320 | line",
    ),
    // The separator got lost.
    (
        "type=SYSCALL msg=audit(1772409600.123:7): syscall=59 key=\"k\"ARCH=x86_64 SYSCALL=execve",
        "field=1772409600.123 _AUDIT_TYPE_NAME=SYSCALL _AUDIT_ID=7 _AUDIT_FIELD_SYSCALL=59 _AUDIT_FIELD_KEY=k _AUDIT_NAME_ARCH=x86_64 _AUDIT_NAME_SYSCALL=execve _AUDIT_TYPE=1300 | line",
    ),
    // A name that occurs twice.
    (
        "type=CONFIG_CHANGE msg=audit(1772409600.123:7): op=a, list=4 op=b res=1",
        "field=1772409600.123 _AUDIT_TYPE_NAME=CONFIG_CHANGE _AUDIT_ID=7 _AUDIT_FIELD_OP=a _AUDIT_FIELD_LIST=4 _AUDIT_FIELD_RES=1 _AUDIT_TYPE=1305 | line whole",
    ),
    // Hexadecimal digits of no text, an odd number of them, small ones; numbers that are none.
    (
        "type=SYSCALL msg=audit(1772409600.123:7): comm=FF exe=ABC key=ab pid=-1 uid=01 gid=x exit=-13",
        "field=1772409600.123 _AUDIT_TYPE_NAME=SYSCALL _AUDIT_ID=7 _COMM=\\xff _EXE=ABC _AUDIT_FIELD_KEY=ab _PID=-1 _UID=01 _GID=x _AUDIT_FIELD_EXIT=-13 _AUDIT_TYPE=1300 | line fix3=FF",
    ),
    // Quotes and braces that do not close.
    (
        "type=USER msg=audit(1772409600.123:7): a=\"b c msg='d\u{1d}E={ f",
        "field=1772409600.123 _AUDIT_TYPE_NAME=USER _AUDIT_ID=7 _AUDIT_FIELD_A=\"b _AUDIT_FIELD_TEXT=c _AUDIT_FIELD_MSG='d _AUDIT_NAME_E={ _AUDIT_NAME_TEXT=f _AUDIT_TYPE=1005 | line",
    ),
    // White space that is no space, and letters of several bytes right behind it.
    (
        "audit: type=1400 audit(1772409600.123:458): avc:  denied  { \t\u{27e9}read\u{27e9}\t } for pid=7",
        "field=1772409600.123 _AUDIT_TYPE=1400 _AUDIT_ID=458 _AUDIT_FIELD_SERESULT=denied _AUDIT_FIELD_SEPERMS=\\xe2\\x9f\\xa9read\\xe2\\x9f\\xa9 _PID=7 _AUDIT_TYPE_NAME=AVC | line",
    ),
    (
        "audit: type=1400 audit(1772409600.123:458): avc:  denied  {\t} for pid=7",
        "field=1772409600.123 _AUDIT_TYPE=1400 _AUDIT_ID=458 _AUDIT_FIELD_SERESULT=denied _AUDIT_FIELD_SEPERMS= _PID=7 _AUDIT_TYPE_NAME=AVC | line",
    ),
    // No time that a record could have.
    (
        "type=SYSCALL msg=audit(99999999999999999999.123:7): pid=1",
        "_AUDIT_TYPE_NAME=SYSCALL _time@label=99999999999999999999.123 _AUDIT_ID=7 _PID=1 _AUDIT_TYPE=1300 | line",
    ),
];

#[test]
fn records_become_fields() {
    for (line, expected) in LINES {
        let found = describe(EntryKind::Line, line.as_bytes());
        assert_eq!(found, *expected, "{line}");
    }
}

#[test]
fn what_does_not_begin_like_a_record_is_none() {
    for line in [
        "type=SYSCALL",
        "type= msg=audit(1.2:3): a=b",
        "type=SYSCALL msg=audit(1.2:3) a=b",
        "type=SYSCALL msg=audit(1:3): a=b",
        "type=SYSCALL msg=audit(.2:3): a=b",
        "type=SYSCALL msg=audit(1.2:x): a=b",
        "type=SYSCALL msg=audit: initialized",
        "type=a type=b msg=audit(1.2:3): a=b",
        "node= type=SYSCALL msg=audit(1.2:3): a=b",
        "audit: initializing netlink subsys (disabled)",
        "xtype=SYSCALL msg=audit(1.2:3): a=b",
    ] {
        let described = describe(EntryKind::Line, line.as_bytes());
        assert!(!described.contains("_AUDIT_"), "{described}");
    }
}

/// Behind a header that guesses its time the record's own counts, and whom it is about is not who sent it.
#[test]
fn records_come_in_syslog_too() {
    let table = [
        (
            "<13>Mar  2 00:00:09 ash audispd: node=birch type=SYSCALL msg=audit(1772409600.123:456): syscall=59 pid=7 comm=\"x\"",
            "field=1772409600.123 facility=1 severity=5 hostname=ash app=audispd body.hostname=birch _AUDIT_TYPE_NAME=SYSCALL body._time=1772409600.123 _AUDIT_ID=456 _AUDIT_FIELD_SYSCALL=59 body._PID=7 body._COMM=x _AUDIT_TYPE=1300 | line fix2=Mar  2 00:00:09",
        ),
        (
            "<5>1 2026-03-02T00:00:09Z ash kernel - - - audit: type=1334 audit(1772409600.123:5): prog-id=4 op=LOAD",
            "header=1772409609 facility=0 severity=5 hostname=ash app=kernel _AUDIT_TYPE=1334 body._time=1772409600.123 _AUDIT_ID=5 _AUDIT_FIELD_PROG_ID=4 _AUDIT_FIELD_OP=LOAD _AUDIT_TYPE_NAME=BPF | line",
        ),
    ];
    for (line, expected) in table {
        assert_eq!(
            describe(EntryKind::Syslog, line.as_bytes()),
            expected,
            "{line}"
        );
    }
}

#[test]
fn a_sender_that_the_kernel_names_is_not_renamed() {
    let line = b"type=USER msg=audit(1772409600.123:456): pid=1 comm=\"init\" key=\"k\"";
    let fields = [("_PID", Value::Str("77".into()))];
    let labels: Labels = vec![("_PID".into(), "77".into())];
    let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
    let each = fields.iter().map(|(name, value)| (*name, value));
    batch.push_enveloped(EntryKind::Line, None, each, line);
    let (kind, envelope, raw) = line_of(batch.kind, batch.iter().next().unwrap());
    let none = Labels::new();
    let of_envelope = Entry {
        id: Id::MIN,
        received: RECEIVED,
        kind,
        labels: &none,
        envelope,
        raw,
    };
    let of_batch = entry(EntryKind::Line, &labels, line);
    for entry in [of_envelope, of_batch] {
        let found = describe_record(&Parser::new().parse(&entry));
        assert_eq!(
            found,
            "field=1772409600.123 _AUDIT_TYPE_NAME=USER _AUDIT_ID=456 body._PID=1 body._COMM=init _AUDIT_FIELD_KEY=k _PID=77 _AUDIT_TYPE=1005 | line"
        );
    }
}

/// A line that has more fields than a record may keeps all of its text.
#[test]
fn arguments_without_end_are_kept() {
    let arguments: String = (0..3000)
        .map(|number| format!(" a{number}=\"x\""))
        .collect();
    let line = format!("type=EXECVE msg=audit(1772409600.123:456): argc=3000{arguments}");
    let described = describe(EntryKind::Line, line.as_bytes());
    assert!(described.contains(" _AUDIT_FIELD_A500=x "), "{described}");
    assert!(described.ends_with(" whole"), "{described}");
}

proptest! {
    #[test]
    fn lines_are_given_back(line in prop::sample::select(LINES), bytes in "\\PC{0,40}", at in any::<prop::sample::Index>()) {
        let mut changed = line.0.to_owned();
        let mut at = at.index(changed.len() + 1);
        while !changed.is_char_boundary(at) {
            at -= 1;
        }
        changed.insert_str(at, &bytes);
        fuzz::fuzz_line(changed.as_bytes());
        fuzz::fuzz_audit(&changed.as_bytes()[at..]);
        fuzz::fuzz_syslog(format!("<13>ash auditd: {changed}").as_bytes());
        crate::intake::rewrite::fuzz::fuzz_rewrite(changed.as_bytes());
    }
}
