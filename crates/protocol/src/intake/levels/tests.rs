use super::*;

const LINES: &[(&str, Option<&str>)] = &[
    (
        "2026-03-02 00:00:06,123 ERROR [main] c.e.Shop - no INFO",
        Some("error"),
    ),
    (
        "[02-Mar-2026 00:00:06] WARNING: [pool www] busy",
        Some("warn"),
    ),
    (
        "2026/03/02 00:00:06 [error] 77#77: *1 open() failed",
        Some("error"),
    ),
    (
        "2026-03-02T00:00:06Z  \x1b[32mINFO\x1b[0m listening",
        Some("info"),
    ),
    (
        "E0302 00:00:06.000000       1 server.go:7] failed",
        Some("error"),
    ),
    (
        "I0302 00:00:06.000000       1 server.go:7] ERROR",
        Some("info"),
    ),
    ("<W>2026-03-02 00:00:06.000 1 => x", Some("warn")),
    ("<b>2026-03-02", None),
    ("E. 2026-03-02 00:00:06. failed", Some("error")),
    ("I. 100 apples", None),
    ("W: [pulseaudio] main.c: odd", Some("warn")),
    ("[E][00006.000000] spa: failed", Some("error")),
    ("[ warn||77 |VM.start|xenops] low", Some("warn")),
    ("[error|a] failed", None),
    (
        "[info 2026/03/02 00:00:06.000 CET a <b> tid=0x1] x",
        Some("info"),
    ),
    ("warn\t2026/03/02 00:00:06\tSYSTEM:\tlow", Some("warn")),
    ("error\tsome text", None),
    (
        "00000100:00020000:3.0:1772409606.000000:0:7:0:(a.c:7:f()) x",
        Some("error"),
    ),
    ("   1.234 Error Util.cpp:83: failed", Some("error")),
    (
        "2026-03-02T00:00:06Z OSConfigAgent Info main.go:7: started",
        Some("info"),
    ),
    ("an Error of main.go:7 x", None),
    (
        "2026-03-02T00:00:06.000Z In(05) vmx - started",
        Some("info"),
    ),
    (
        "2026-03-02 00:00:06\tLocal7.Error\t10.0.0.7\tfailed",
        Some("error"),
    ),
    (
        "2026-03-02T00:00:06Z <local3.warning> a event: low",
        Some("warn"),
    ),
    ("2026-03-02 00:00:06 shop.error\tx", None),
    ("2026-03-02 00:00:06,000 DEBG 'nginx' stdout", Some("debug")),
    (
        "(gnome-shell:7): Gjs-CRITICAL **: JS ERROR: failed",
        Some("critical"),
    ),
    ("npm ERR! code 1", Some("error")),
    ("warning: unused variable", Some("warn")),
    ("PHP Warning:  Undefined index", Some("warn")),
    ("FATAL:  password authentication failed", Some("fatal")),
    ("SEVERE", Some("error")),
    ("time | Information | x", None),
    ("2026-03-02 00:00:06.2|Warn|Auth|failed", Some("warn")),
    (
        "2026-03-02 00:00:06.123 | SUCCESS  | app:run:7 - done",
        Some("info"),
    ),
    (
        "2026-03-02T00:00:06Z [info     ] started  port=80",
        Some("info"),
    ),
    ("[00:00:06 INF] started", Some("info")),
    ("2026-03-02 00:00:06.311 -05:00 [WRN] denied", Some("warn")),
    ("[1] 2026/03/02 00:00:06.000001 [TRC] sub", Some("trace")),
    ("\x1b[90m12:51AM\x1b[0m \x1b[32mINF\x1b[0m up", Some("info")),
    ("#033[31mERROR#033[0m failed", Some("error")),
    ("INFO[0007] started", Some("info")),
    ("FATA[0007] broken", Some("fatal")),
    ("[Mar  2 00:00:06] NOTICE[77] chan_sip.c: x", Some("notice")),
    (
        "[2026-03-02 00:00:06] production.ERROR: broken {}",
        Some("error"),
    ),
    (
        "[2026-03-02T00:00:06.1+00:00] main.ALERT: page []",
        Some("alert"),
    ),
    ("read app.ERROR: x", None),
    (
        "[2026-03-02 00:00:06,818: ERROR/MainProcess] task",
        Some("error"),
    ),
    ("[INFO/ForkPoolWorker-1] child", Some("info")),
    ("fail: Shop.Orders[7]", Some("error")),
    ("trce: Shop.Orders[7]", Some("trace")),
    ("info  - ready on 0.0.0.0:3000", Some("info")),
    (
        "[Nest] 6  - 03/02/2026, 8:47:38 PM     LOG [Router] up",
        Some("info"),
    ),
    (
        "2026-03-02T00:00:06.1Z 7 [Note] [MY-010116] up",
        Some("info"),
    ),
    ("2026-03-02  0:00:06 0 [Warning] InnoDB: x", Some("warn")),
    (
        "2026-03-02 00:00:06.837 CET [7] LOG:  started",
        Some("info"),
    ),
    ("user=,db=,app=,client= DEBUG2:  x", Some("debug")),
    ("2026-03-02 00:00:06 CET [7] STATEMENT:  select 1", None),
    (
        "2026-03-02 00:00:06 CET [7] user@db ERROR:  no such",
        Some("error"),
    ),
    ("1:M 02 Mar 2026 00:00:06.818 * ready", Some("notice")),
    ("77:S 02 Mar 2026 00:00:06.818 # lost", Some("warn")),
    ("[7] 02 Mar 00:00:06.818 - x", Some("info")),
    (
        "2026-03-02T00:00:06.387+0100 I CONTROL  [initandlisten] x",
        Some("info"),
    ),
    (
        "2026-03-02T00:00:06.387+0100 E  -        [conn1] x",
        Some("error"),
    ),
    (
        "2026-03-02T00:00:06.387+0100 D1 STORAGE  [conn1] x",
        Some("debug"),
    ),
    (
        "2026-03-02 00:00:06.000000 W | etcdserver: slow",
        Some("warn"),
    ),
    ("2026-03-02T00:00:06.107Z Wa(12) vpxa[7]: x", Some("warn")),
    ("2026-03-02T00:00:06.107Z In(12) vpxa[7]: x", None),
    ("=ERROR REPORT==== 2-Mar-2026::00:00:06 ===", Some("error")),
    ("I20260302 00:00:06.000000 77 a.cc:7] x", Some("info")),
    ("[W 260302 00:00:06 web:7] 404", Some("warn")),
    ("E/Tag( 77): broken", Some("error")),
    ("03-02 00:00:06.818  77  78 W Tag     : x", Some("warn")),
    ("E: Unable to lock", Some("error")),
    ("PHP Fatal error:  Uncaught", Some("fatal")),
    ("no error: all is well", None),
    ("Log: rotated", None),
    ("Stack trace:", None),
    ("PHP Notice:  Undefined", Some("notice")),
    ("firewall,info drop-tcp input: in:ether1", Some("info")),
    ("system,error,critical login failure", Some("critical")),
    ("2026-03-02T00:00:06.296 77]INFO:module:up", Some("info")),
    ("2026-03-02 00:00:06 debug2 text", Some("debug")),
    ("- <Event><System>  <Provider Name=", None),
    ("[system] up", None),
    ("[Config] read", None),
    (
        "2026-03-02T00:00:06Z 7 [System] [MY-010116] up",
        Some("info"),
    ),
    ("2026-03-02 00:00:06 Fine weather", None),
    (
        "Mar 2, 2026 12:00:06 AM a.b.C run\nSEVERE: broken",
        Some("error"),
    ),
    ("Mar 2, 2026 12:00:06 AM a.b.C run\nFINE: x", Some("debug")),
    (
        "[Mon Mar 02 00:00:06 2026] [ssl:trace3] [pid 7] x",
        Some("trace"),
    ),
    (
        "##<Mar 2, 2026 1:00:06 AM UTC> <Emergency> <x>",
        Some("fatal"),
    ),
    (
        "\"Error\",\"http-1\",\"03/02/26\",\"00:00:06\"",
        Some("error"),
    ),
    ("{'log_level': 'WARNING', 'a': 1}", Some("warn")),
    ("log_level=error x", Some("error")),
    ("t=1 lvl=eror msg", Some("error")),
    ("[   7.1] (EE) no screens", Some("error")),
    ("time|DEBUG|x", Some("debug")),
    ("(Info) started", Some("info")),
    (
        "[Tue Jan 28 03:16:50 2024] [core:error] [pid 36] x",
        Some("error"),
    ),
    (
        "2025-04-24T22:09:20.856Z\terror\tqueue.go:128\tdropped",
        Some("error"),
    ),
    ("2024-01-10 05:27:07,4 info vsand[10] done", Some("info")),
    ("level=error something happened here", Some("error")),
    ("level=\"warning\" foo", Some("warn")),
    ("level=fatal", Some("fatal")),
    (
        "ts=1 level=info msg=\"x\" ERROR trailing words",
        Some("info"),
    ),
    (
        "2026-11-26T10:00:00Z stdout F level=error msg=x",
        Some("error"),
    ),
    (
        "Nov 26 10:00:00 host app[1]: ERROR something",
        Some("error"),
    ),
    ("2026-11-26 10:00:00 {\"level\":\"error\"}", Some("error")),
    (
        "{\"ts\":1, \"Level\": \"WARN\", \"msg\":\"cut o",
        Some("warn"),
    ),
    ("level=errors", None),
    ("level=error_rate", None),
    ("loglevel=", None),
    ("sealevel=info", None),
    ("the level: error", None),
    ("{\"level\":3, \"x", None),
    ("12 error codes", None),
    ("2024-01-10 05:27:07 an error was seen", None),
    ("a \"NOTICE\" text file", None),
    ("no error occurred", None),
    ("Error handling is on", None),
    ("GET /ERROR/x", None),
    ("MY_ERROR ERROR_CODE x-ERROR NOERROR ERRORS", None),
    ("panicked: terror: interrupt", None),
    ("", None),
    ("I030", None),
    ("\x1b[", None),
];

#[test]
fn lines_say_their_levels() {
    let mut failures = String::new();
    for (line, level) in LINES {
        let found = of_line(line.as_bytes());
        if found != *level {
            failures += &format!("{line}: {found:?}, not {level:?}\n");
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    let late = format!("{}ERROR", " ".repeat(HEAD_BYTES_MAX - 2));
    assert_eq!(of_line(late.as_bytes()), None);
}

#[test]
fn no_word_for_a_level_is_told_to_be_another_one() {
    let all = "TRACE DEBUG DBG INFO INFORMATION INFORMATIONAL NOTICE WARN WARNING ERROR ERR SEVERE CRITICAL CRIT \
        ALERT FATAL PANIC EMERG EMERGENCY TRC TRCE TRAC VRB VERBOSE DBUG DEBU INF WRN EROR ERRO FAIL CRT DPANIC \
        FTL FATA PANI PNC FINEST FINER FINE CONFIG NOTE SYSTEM SUCCESS LOG II WW EE";
    for word in all.split_whitespace() {
        assert!(words::of(word.as_bytes()).is_some(), "{word}");
        assert!(
            words::of(word.to_ascii_lowercase().as_bytes()).is_some(),
            "{word}"
        );
    }
}
