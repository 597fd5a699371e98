//! What senders really write, and the sensible reading of each.

use super::check;
use crate::intake::parser::tests::describe;
use logpond_record::EntryKind;

#[test]
fn odd_messages() {
    check(SAMPLES);
}

/// Describing a record checks that its line is rebuilt.
#[test]
fn spoilt_messages_lose_nothing() {
    for (message, _) in SAMPLES {
        for at in 0..message.len() {
            let (before, after) = message.as_bytes().split_at(at);
            for spoilt in [before, after] {
                describe(EntryKind::Syslog, spoilt);
                describe(EntryKind::Line, spoilt);
            }
            for inserted in [
                &b" "[..],
                b"\"",
                b"=",
                b"|",
                b"\\",
                b": ",
                "⟨_msg:t⟩".as_bytes(),
            ] {
                describe(EntryKind::Syslog, &[before, inserted, after].concat());
                describe(EntryKind::Syslog, &[before, inserted, &after[1..]].concat());
            }
        }
    }
}

/// A name of any length costs no other field of its line.
#[test]
fn a_long_name_hides_no_field() {
    for length in [64, 65, 128, 129, 256, 257, 5000] {
        let name = "N".repeat(length);
        for (message, prefix) in [
            (format!("user=ann {name}=1"), ""),
            (format!("[user:\"ann\"; {name}:\"1\"]"), ""),
            (format!("CEF:0|a|b|1|2|c|3|user=ann {name}=1"), ""),
            (format!("LEEF:1.0|a|b|1|2|user=ann\t{name}=1"), ""),
            (format!("{{\"user\":\"ann\",\"{name}\":1}}"), ""),
            (
                format!("type=USER msg=audit(1772409600.123:460): msg='USER=ann {name}=1'"),
                "AUDIT_FIELD_",
            ),
        ] {
            let line = format!("<34>1 2003-10-11T22:14:15.003Z h a - - - {message}");
            let described = describe(EntryKind::Syslog, line.as_bytes());
            let lowered = described.to_lowercase();
            let has = |pair: String| lowered.contains(&pair.to_lowercase());
            assert!(has(format!(" {prefix}user=ann")), "{described}");
            assert!(has(format!(" {prefix}{name}=1")), "{described}");
        }
        let line =
            format!("<34>1 2003-10-11T22:14:15.003Z h a - - [id user=\"ann\" {name}=\"1\"] m");
        let described = describe(EntryKind::Syslog, line.as_bytes());
        assert!(described.contains(" id.user=ann "), "{described}");
        assert!(described.contains(&format!(" id.{name}=1 ")), "{described}");
    }
}

const SAMPLES: &[(&str, &str)] = &[
    (
        "<34>1 2003-10-11T22:14:15.003Z host evntslog - ID47 [ex@1 a=\"q\\\"b\\\\c\\]d\"] \u{feff}An event",
        "header=1065910455.003 facility=4 severity=2 hostname=host app=evntslog msgid=ID47 ex@1.a=q\"b\\\\c]d | An event",
    ),
    ("Use the BFG!", "| Use the BFG!"),
    ("<013>text", "invalid_priority=013 | text"),
    ("<192>text", "invalid_priority=192 | text"),
    (
        "<999>Mar  2 00:00:00 h app: text",
        "header-year-and-zone-assumed=1772409600 invalid_priority=999 hostname=h app=app | text",
    ),
    (
        "<13Oct 11 22:14:15 h app: x",
        "| <13Oct 11 22:14:15 h app: x",
    ),
    (
        "<189>29: foo: *Apr 29 13:58:40.411: %SYS-5-CONFIG_I: Configured from console",
        "header-year-and-zone-assumed=1745935120.411 facility=23 severity=5 sequence=29 hostname=foo clock_status=* app=%SYS-5-CONFIG_I | Configured from console",
    ),
    (
        "<189>35: *Apr 29 14:00:16.059: %SYS-5-CONFIG_I: Configured",
        "header-year-and-zone-assumed=1745935216.059 facility=23 severity=5 sequence=35 clock_status=* app=%SYS-5-CONFIG_I | Configured",
    ),
    (
        "<189>782431: machine1: .Nov 18 21:03:22.631 GMT: %CDP-4-NATIVE_VLAN_MISMATCH: mismatch",
        "header-year-assumed=1763499802.631 facility=23 severity=5 sequence=782431 hostname=machine1 clock_status=. app=%CDP-4-NATIVE_VLAN_MISMATCH | mismatch",
    ),
    (
        "<189>238: 1w2d: %LINK-3-UPDOWN: Interface up",
        "facility=23 severity=5 sequence=238 uptime=1w2d app=%LINK-3-UPDOWN | Interface up",
    ),
    (
        "<189>00:01:01: %LINK-3-UPDOWN: Interface up",
        "facility=23 severity=5 uptime=00:01:01 app=%LINK-3-UPDOWN | Interface up",
    ),
    (
        "<189>29: 000123: foo: *Apr 29 13:58:40.411 CEST: %SYS-5-CONFIG_I: x",
        "header-year-assumed=1745927920.411 facility=23 severity=5 sequence=29 sequence_sent=000123 hostname=foo clock_status=* app=%SYS-5-CONFIG_I | x",
    ),
    (
        "<189>foo: 29: *Apr 29 13:58:40.411: %SYS-5-CONFIG_I: x",
        "header-year-and-zone-assumed=1745935120.411 facility=23 severity=5 hostname=foo sequence=29 clock_status=* app=%SYS-5-CONFIG_I | x",
    ),
    (
        "<189>foo 29: Apr 29 13:58:40.411 AKDT: %SYS-5-CONFIG_I: x",
        "header-year-assumed=1745963920.411 facility=23 severity=5 hostname=foo sequence=29 app=%SYS-5-CONFIG_I | x",
    ),
    (
        "<189>29: Apr 29 2026 13:58:40.411 EST: %SYS-SW1-5-CONFIG_I: x",
        "header=1777489120.411 facility=23 severity=5 sequence=29 app=%SYS-SW1-5-CONFIG_I | x",
    ),
    (
        "<166>Jul 16 2021 21:28:13: %ASA-6-302013: Built inbound",
        "header-zone-assumed=1626470893 facility=20 severity=6 app=%ASA-6-302013 | Built inbound",
    ),
    (
        "<166>Jul 16 2021 21:28:13 fw1 : %ASA-6-302013: Built inbound",
        "header-zone-assumed=1626470893 facility=20 severity=6 hostname=fw1 app=%ASA-6-302013 | Built inbound",
    ),
    (
        "<163>2018-06-27T12:17:46Z asa : %ASA-3-710003: TCP access denied",
        "header=1530101866 facility=20 severity=3 hostname=asa app=%ASA-3-710003 | TCP access denied",
    ),
    (
        "<166>: Jul 16 2021 21:28:13 UTC: %FTD-6-302013: Built",
        "header=1626470893 facility=20 severity=6 app=%FTD-6-302013 | Built",
    ),
    (
        "<189>: 2017 Jul 28 14:42:46 UTC: %AUTHPRIV-6-SYSTEM_MSG: pam",
        "header=1501252966 facility=23 severity=5 app=%AUTHPRIV-6-SYSTEM_MSG | pam",
    ),
    (
        "<189>1234: RP/0/RSP0/CPU0:Feb  3 10:01:02.123 UTC: ifmgr[200]: %PKT_INFRA-LINK-3-UPDOWN : up",
        "header-year-assumed=1770112862.123 facility=23 severity=5 sequence=1234 node=RP/0/RSP0/CPU0 app=ifmgr procid=200 | %PKT_INFRA-LINK-3-UPDOWN : up",
    ),
    (
        "<134>ap1: *spamApTask1: Nov 06 14:12:05.153: %CAPWAP-3-DTLS_CLOSED_ERR: closed",
        "header-year-and-zone-assumed=1762438325.153 facility=16 severity=6 hostname=ap1 task=spamApTask1 app=%CAPWAP-3-DTLS_CLOSED_ERR | closed",
    ),
    (
        "<134>Jan 13 16:33:35 haproxy[73411]: Connect from 10.0.0.1",
        "header-year-and-zone-assumed=1768322015 facility=16 severity=6 app=haproxy procid=73411 | Connect from 10.0.0.1",
    ),
    (
        "<13>May  1 12:00:00 prog[1]: x\n",
        "header-year-and-zone-assumed=1746100800 facility=1 severity=5 app=prog procid=1 | x\\n",
    ),
    (
        "<13>2023-05-01T12:00:00+02:00 host prog[1]: x\n",
        "header=1682935200 facility=1 severity=5 hostname=host app=prog procid=1 | x\\n",
    ),
    (
        "<30> May  1 12:00:00 docker/abc[1]: x",
        "header-year-and-zone-assumed=1746100800 facility=3 severity=6 app=docker/abc procid=1 | x",
    ),
    (
        "<13>Jan  1 00:00:12 root: x",
        "header-year-and-zone-assumed=1767225612 facility=1 severity=5 app=root | x",
    ),
    (
        "<14>plain message\0",
        "facility=1 severity=6 | plain message\\x00",
    ),
    (
        "<38>User logged into the appliance.",
        "facility=4 severity=6 | User logged into the appliance.",
    ),
    (
        "<30>MiniSwitch 7483c2000000,USW-Flex-Mini-1.8: NETDEV: up",
        "facility=3 severity=6 | MiniSwitch 7483c2000000,USW-Flex-Mini-1.8: NETDEV: up",
    ),
    (
        "<13>Mar  2 00:00:00 h app: one\ntwo\nthree",
        "header-year-and-zone-assumed=1772409600 facility=1 severity=5 hostname=h app=app | one\\ntwo\\nthree",
    ),
    (
        "<13>Feb 29 12:00:00 h app: x",
        "header-year-and-zone-assumed=1709208000 facility=1 severity=5 hostname=h app=app | x",
    ),
    (
        "<13>Dec 28 12:00:00 h app: x",
        "header-year-and-zone-assumed=1766923200 facility=1 severity=5 hostname=h app=app | x",
    ),
    (
        "<30>Apr 15 21:28:13 2007 linksys app: x",
        "header-zone-assumed=1176672493 facility=3 severity=6 hostname=linksys app=app | x",
    ),
    (
        "<165>Aug 24 05:34:00 CST 1987 mymachine myproc[10]: %% It's time",
        "header-zone-assumed=556803240 facility=20 severity=5 hostname=mymachine app=myproc procid=10 | %% It's time",
    ),
    (
        "<0>1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!",
        "header=656614321 facility=0 severity=0 hostname=scapegoat.dmz.example.org | 10.1.2.3 sched[0]: That's All Folks!",
    ),
    (
        "<38>Mar  2 00:00:00 Message forwarded from cdaix66: sshd[679960]: Accepted",
        "header-year-and-zone-assumed=1772409600 facility=4 severity=6 hostname=cdaix66 app=sshd procid=679960 | Accepted",
    ),
    (
        "<189>date=2020-01-01 time=12:00:00 devname=\"FG1\" devid=\"FG100\" type=\"traffic\" srcport=443 msg=\"a b\"",
        "header-zone-assumed=1577880000 facility=23 severity=5 hostname=FG1 devid=FG100 type=traffic srcport=443 | a b",
    ),
    (
        "<30>system,info,account user admin logged in from 10.0.0.1 via ssh",
        "facility=3 severity=6 app=system,info,account | user admin logged in from 10.0.0.1 via ssh",
    ),
    (
        "<34>1 2003-10-11T22:14:15.000000003Z h a p m - x",
        "header=1065910455.000000003 facility=4 severity=2 hostname=h app=a procid=p msgid=m | x",
    ),
    (
        "<34>1 2003-10-11T22:14:15.003Z h a - ID1 text only",
        "header=1065910455.003 facility=4 severity=2 hostname=h app=a msgid=ID1 | text only",
    ),
    (
        "<34>1 2003-10-11T22:14:15.003Z h a - - [a i=\"\"ok\"] m",
        "header=1065910455.003 facility=4 severity=2 hostname=h app=a | [a i=\"\"ok\"] m",
    ),
    (
        "<34>1 2003-10-11T22:14:15 h a - - - x",
        "header-zone-assumed=1065910455 facility=4 severity=2 hostname=h app=a | x",
    ),
    (
        "<134>1 2018-03-21 17:25:25 MDS-72 CheckPoint 13752 - [action:\"Update\"; flags:\"1\"]",
        "header-zone-assumed=1521653125 facility=16 severity=6 hostname=MDS-72 app=CheckPoint procid=13752 action=Update flags=1 | line",
    ),
    (
        "<134>1 1374543986.038687615 MX84 urls src=10.0.0.1:80 dst=10.0.0.2:443 request: GET http://x",
        "header=1374543986.038687615 facility=16 severity=6 hostname=MX84 app=urls src=10.0.0.1:80 dst=10.0.0.2:443 request=GET http://x | line",
    ),
    (
        "<134>1 1374543986.038687615 MX84 flows src=10.0.0.1 dst=10.0.0.2 sport=80",
        "header=1374543986.038687615 facility=16 severity=6 hostname=MX84 app=flows src=10.0.0.1 dst=10.0.0.2 sport=80 | line",
    ),
    (
        "<13>Feb 14 19:04:54 fw1 CEF:0|Security|threat\\|manager|1.0|100|worm stopped|10|src=10.0.0.1 dst=2.1.2.2 spt=1232 msg=a worm \\= bad filePath=C:\\\\x",
        "header-year-and-zone-assumed=1771095894 facility=1 severity=5 hostname=fw1 cef.version=0 cef.vendor=Security cef.product=threat|manager cef.product_version=1.0 cef.id=100 cef.name=worm stopped cef.severity=10 src=10.0.0.1 dst=2.1.2.2 spt=1232 filePath=C:\\\\x | a worm = bad fix6=threat\\\\|manager fix14=a worm \\\\= bad fix15=C:\\\\\\\\x",
    ),
    (
        "<13>Feb 14 19:04:54 fw1 LEEF:1.0|Microsoft|MSExchange|4.0|15345|src=192.0.2.0\tdst=172.50.123.1\tsev=5",
        "header-year-and-zone-assumed=1771095894 facility=1 severity=5 hostname=fw1 leef.version=1.0 leef.vendor=Microsoft leef.product=MSExchange leef.product_version=4.0 leef.id=15345 src=192.0.2.0 dst=172.50.123.1 sev=5 | line",
    ),
    (
        "<13>Feb 14 19:04:54 fw1 LEEF:2.0|Lancope|StealthWatch|1.0|41|^|src=192.0.2.0^dst=172.50.123.1",
        "header-year-and-zone-assumed=1771095894 facility=1 severity=5 hostname=fw1 leef.version=2.0 leef.vendor=Lancope leef.product=StealthWatch leef.product_version=1.0 leef.id=41 src=192.0.2.0 dst=172.50.123.1 | line",
    ),
    (
        "<13>Feb 14 19:04:54 fw1 CEF:0|a|b|1|2|c|3|  src=10.0.0.1 dst=2.1.2.2",
        "header-year-and-zone-assumed=1771095894 facility=1 severity=5 hostname=fw1 cef.version=0 cef.vendor=a cef.product=b cef.product_version=1 cef.id=2 cef.name=c cef.severity=3 src=10.0.0.1 dst=2.1.2.2 | line",
    ),
    (
        "<13>Feb 14 19:04:54 fw1 LEEF:1.0|a|b|1|2|\tsrc=192.0.2.0\t\tusrName=ann\tb\tsev=5\t",
        "header-year-and-zone-assumed=1771095894 facility=1 severity=5 hostname=fw1 leef.version=1.0 leef.vendor=a leef.product=b leef.product_version=1 leef.id=2 src=192.0.2.0 usrName=ann\\tb sev=5 | line",
    ),
    (
        "<13>Feb 14 19:04:54 win1 MSWinEventLog\t1\tSecurity\t3041\tMon Feb 14 19:04:54 2011\t540\tSecurity\tuser\tUser\tSuccess Audit\tWIN1\tLogon\t\tSuccessful Logon\t10",
        "header-year-and-zone-assumed=1771095894 facility=1 severity=5 hostname=win1 snare.criticality=1 snare.log=Security snare.counter=3041 snare.time=Mon Feb 14 19:04:54 2011 snare.event_id=540 snare.source=Security snare.user=user snare.sid_type=User snare.event_type=Success Audit snare.computer=WIN1 snare.category=Logon snare.data= snare.text=Successful Logon snare.checksum=10 | line",
    ),
    (
        "<22>Mar  2 00:00:00 mail postfix/smtpd[1]: connect",
        "header-year-and-zone-assumed=1772409600 facility=2 severity=6 hostname=mail app=postfix/smtpd procid=1 | connect",
    ),
    (
        "<13>Mar  2 00:00:00 fe80::1 prg0: x",
        "header-year-and-zone-assumed=1772409600 facility=1 severity=5 hostname=fe80::1 app=prg0 | x",
    ),
    (
        "<13>Aug 30 23:00:05 X4711",
        "header-year-and-zone-assumed=1756594805 facility=1 severity=5 hostname=X4711 | ",
    ),
    (
        "<13>Jan  1 12:15:00 nas 1 1970-01-01T12:15:00.005048-00:00 nas /usr/sbin/cron 61898 - - x",
        "header=44100.005048 facility=1 severity=5 relay_time=Jan  1 12:15:00 relay_hostname=nas hostname=nas app=/usr/sbin/cron procid=61898 | x",
    ),
    (
        "<13>2006-11-10T10:43:21.156 host app[1]: x",
        "header-zone-assumed=1163155401.156 facility=1 severity=5 hostname=host app=app procid=1 | x",
    ),
    (
        "<13>{\"a\":1,\"time\":\"2026-03-02T01:00:00Z\",\"msg\":\"hi\"}",
        "field=1772413200 facility=1 severity=5 a=1 | hi",
    ),
    (
        "<13>Mar  2 00:00:00 h app[1]: {\"hostname\":\"inner\",\"n\":{\"x\":1.5},\"msg\":\"hi\",\"time\":\"2026-03-02T01:00:00Z\"}",
        "field=1772413200 facility=1 severity=5 hostname=h app=app procid=1 body.hostname=inner n.x=1.5 time=2026-03-02T01:00:00Z | hi fix2=Mar  2 00:00:00",
    ),
    (
        "<13>Mar  2 00:00:00 h app: @cee: {\"a\":\"b\"}",
        "header-year-and-zone-assumed=1772409600 facility=1 severity=5 hostname=h app=app a=b | none",
    ),
    (
        "<13>Mar  2 00:00:00 h app: level=info user=\"a b\" took=1.5 msg=done",
        "header-year-and-zone-assumed=1772409600 facility=1 severity=5 hostname=h app=app level=info user=a b took=1.5 | done",
    ),
    (
        "<13>Mar  2 00:00:00 h app: {\"_PID\":1,\"_msg\":\"hi\"}",
        "header-year-and-zone-assumed=1772409600 facility=1 severity=5 hostname=h app=app body._PID=1 | hi",
    ),
    (
        "<13>Mar  2 00:00:00 h app: {\"_gap\":1,\"n\":\"hi\"}",
        "header-year-and-zone-assumed=1772409600 facility=1 severity=5 hostname=h app=app body._gap=1 n=hi | none",
    ),
    (
        "<6>[  128.604348] bcmgenet fd580000.ethernet: Link is up",
        "facility=0 severity=6 uptime=128.604348 | bcmgenet fd580000.ethernet: Link is up",
    ),
    (
        "Mar  2 00:00:00 h app[12]: no priority",
        "header-year-and-zone-assumed=1772409600 hostname=h app=app procid=12 | no priority",
    ),
    (
        "2026-03-02T00:00:00.5+01:00 h app[12]: no priority",
        "header=1772406000.5 hostname=h app=app procid=12 | no priority",
    ),
    (
        "Mar  2 00:00:00 only words here",
        "line-year-and-zone-assumed=1772409600 | Mar  2 00:00:00 only words here",
    ),
    (
        "2026 plain text that starts with digits",
        "| 2026 plain text that starts with digits",
    ),
    ("zip", "| zip"),
    (
        "CEF:0|V|P|1|2|n|3|",
        "cef.version=0 cef.vendor=V cef.product=P cef.product_version=1 cef.id=2 cef.name=n cef.severity=3 level=notice | line",
    ),
    ("{\"a\":1}", "a=1 | none"),
    (
        "<13>2026-03-02T00:00:00Z h app: user=a = b",
        "header=1772409600 facility=1 severity=5 hostname=h app=app | user=a = b",
    ),
];
