//! Questions on the command line: arguments, output, exit codes.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use expect_test::{Expect, expect};

use crate::scripted::{Answer, Server, ok};

/// The exit code and the output of a command.
pub(crate) struct CommandResult {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl CommandResult {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.out.clone()).unwrap()
    }
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_logpond"));
    command
        .args(arguments)
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run_with(arguments: &[&str], input: &[u8]) -> CommandResult {
    let mut child = command(arguments).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A command need not read its input.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    CommandResult {
        code: output.status.code(),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn run(arguments: &[&str]) -> CommandResult {
    run_with(arguments, b"")
}

const LOG: &[u8] = b"2026-03-02T00:00:01Z one\n\
2026-03-02T00:00:02Z TWO\r\n\
{\"time\":\"2026-03-02T00:00:03Z\",\"msg\":\"three\",\"status\":503,\"ok\":2.70}\n\
2026-03-02T00:00:04Z four \xff\0\n\
\n\
2026-03-02T00:00:06Z one more";

fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.log");
    std::fs::write(&path, content).unwrap();
    (directory, path)
}

fn raw(arguments: &[&str]) -> (Option<i32>, String) {
    let mut all = vec!["query", "-", "-o", "raw"];
    all.extend(arguments);
    let done = run_with(&all, LOG);
    (done.code, done.out.escape_ascii().to_string())
}

#[test]
fn files_come_out_byte_for_byte() {
    let (_directory, path) = file(LOG);
    let done = run(&["query", "-o", "raw", "--file", path.to_str().unwrap()]);
    assert_eq!(done.out, [LOG, b"\n"].concat());
    assert_eq!((done.code, &*done.err), (Some(0), ""));
    let zstd = zstd::encode_all(LOG, 1).unwrap();
    assert_eq!(run_with(&["query", "-", "-o", "raw"], &zstd).out, done.out);
}

#[test]
fn exports_of_a_journal_are_entries() {
    let export = b"__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1795740685818426\nPRIORITY=3\n_HOSTNAME=web1\n\
        SYSLOG_IDENTIFIER=shop\nMESSAGE=refused\n\n\
        __REALTIME_TIMESTAMP=1795740686818426\nMESSAGE\n\x09\x00\x00\x00\x00\x00\x00\x00two\nlines\n\n";
    let (_directory, path) = file(export);
    let done = run(&["query", "-o", "json", "--file", path.to_str().unwrap()]);
    assert_eq!((done.code, &*done.err), (Some(0), ""));
    let out = String::from_utf8_lossy(&done.out).into_owned();
    let rows: Vec<&str> = out.lines().collect();
    assert_eq!(rows.len(), 2, "{out}");
    for part in [
        "2026-11-27T00:51:25.818426000Z",
        "\"_msg\":\"refused\"",
        "\"app\":\"shop\"",
        "\"hostname\":\"web1\"",
    ] {
        assert!(rows[0].contains(part), "{part} in {}", rows[0]);
    }
    assert!(rows[1].contains("two\\nlines"), "{}", rows[1]);
    let done = run(&[
        "query",
        "-f",
        "app=shop",
        "--file",
        path.to_str().unwrap(),
        "-c",
    ]);
    assert_eq!(done.out, b"1\n");
}

#[test]
fn filters_and_contexts_of_grep() {
    let table: [(&[&str], i32, &str); 15] = [
        (
            &["one"],
            0,
            "2026-03-02T00:00:01Z one\\n2026-03-02T00:00:06Z one more\\n",
        ),
        (&["two"], 1, ""),
        (&["two", "-i"], 0, "2026-03-02T00:00:02Z TWO\\r\\n"),
        (
            &["-e", "f.{2}r"],
            0,
            "2026-03-02T00:00:04Z four \\xff\\x00\\n",
        ),
        (&["-f", "status>=500", "-c"], 0, "1\\n"),
        (&["-f", "status<500", "-c"], 1, "0\\n"),
        (&["", "-c"], 0, "6\\n"),
        (&["-v", "2026", "-c"], 0, "1\\n"),
        (&["one", "-n", "1"], 0, "2026-03-02T00:00:06Z one more\\n"),
        (
            &["one", "-r"],
            0,
            "2026-03-02T00:00:06Z one more\\n2026-03-02T00:00:01Z one\\n",
        ),
        (
            &["one", "-C1"],
            0,
            "2026-03-02T00:00:01Z one\\n2026-03-02T00:00:02Z TWO\\r\\n--\\n\\n2026-03-02T00:00:06Z one more\\n",
        ),
        (
            &["one", "-B1", "-n1"],
            0,
            "\\n2026-03-02T00:00:06Z one more\\n",
        ),
        (
            &[
                "--since",
                "2026-03-02T00:00:02Z",
                "--until",
                "2026-03-02 00:00:04",
                "-c",
            ],
            0,
            "2\\n",
        ),
        (&["one", "-q"], 0, ""),
        (&["one", "-qc"], 0, ""),
    ];
    for (arguments, code, out) in table {
        assert_eq!(
            raw(arguments),
            (Some(code), out.to_string()),
            "{arguments:?}"
        );
    }
}

fn check(format: &str, want: Expect) {
    let done = run_with(&["query", "-", "-o", format, "-e", "three|four"], LOG);
    assert_eq!(done.code, Some(0), "{}", done.err);
    // Ids of records that no server has taken in hold the time of reading.
    let text = done.out.escape_ascii().to_string().replace("\\n", "\n");
    let text = match text.find("0000000000000002") {
        Some(at) => text.replace(&text[at - 10..at], "<received>"),
        None => text,
    };
    want.assert_eq(&text);
}

#[test]
fn formats() {
    check(
        "line",
        expect![[r#"
        2026-03-02T00:00:03.000000Z three status=503 ok=2.7
        2026-03-02T00:00:04.000000Z 2026-03-02T00:00:04Z four \\xff\\x00
    "#]],
    );
    check(
        "pretty",
        expect![[r#"
        2026-03-02 00:00:03.000+00:00 three status=503 ok=2.7
        2026-03-02 00:00:04.000+00:00 2026-03-02T00:00:04Z four \\xff\\x00
    "#]],
    );
    check(
        "json",
        expect![[r#"
        {\"_time\":\"2026-03-02T00:00:03.000000000Z\",\"_id\":\"<received>0000000000000002\",\"_msg\":\"three\",\"status\":503,\"ok\":2.7}
        {\"_time\":\"2026-03-02T00:00:04.000000000Z\",\"_id\":\"<received>0000000000000003\",\"_msg\":\"2026-03-02T00:00:04Z four \xef\xbf\xbd\\u0000\",\"_msg_bin\":\"MjAyNi0wMy0wMlQwMDowMDowNFogZm91ciD/AA==\"}
    "#]],
    );
    check(
        "logfmt",
        expect![[r#"
        time=2026-03-02T00:00:03.000000Z id=<received>0000000000000002 msg=three status=503 ok=2.7
        time=2026-03-02T00:00:04.000000Z id=<received>0000000000000003 msg=\"2026-03-02T00:00:04Z four \\xff\\x00\"
    "#]],
    );
    check(
        "csv",
        expect![[r#"
        _time,_id,_msg,status,ok,_more\r
        2026-03-02T00:00:03.000000000Z,<received>0000000000000002,three,503,2.7,\r
        2026-03-02T00:00:04.000000000Z,<received>0000000000000003,2026-03-02T00:00:04Z four \xff\x00,,,\r
    "#]],
    );
}

#[test]
fn colours_only_when_asked_for() {
    let plain = run_with(&["query", "-", "one", "-o", "pretty"], LOG);
    assert!(!plain.out.contains(&0x1b));
    let coloured = run_with(
        &["query", "-", "one", "-o", "pretty", "--color=always"],
        LOG,
    );
    assert!(coloured.text().contains("\x1b[1;31mone\x1b[0m"));
}

#[test]
fn mistakes_exit_with_2_and_say_what_to_do() {
    let table: [(&[&str], &str); 12] = [
        (&["query", "-", "-A", "10001"], "10001 is not in"),
        (&["verify", "--data", "/dev"], "/dev is no data directory"),
        (&["query", "-", "-e", "a(b"], "unclosed group"),
        (&["query", "-", "-f", "status"], "needs an operator"),
        (&["query", "-", "--since", "soon"], "1h"),
        (&["query", "a", "b"], "quote them to search for one: 'a b'"),
        (
            &[
                "query",
                "--addr",
                "https://x",
                "--ca-file",
                "/nonexistent/ca",
            ],
            "/nonexistent/ca cannot be read",
        ),
        (
            &["serve", "--tls-key", "/nonexistent/k"],
            "name it by tls-certificate",
        ),
        (&["query", "--file", "/nonexistent/a.log"], "cannot be read"),
        (&["query", "-o", "yaml"], "possible values: pretty"),
        (&["forward", "--label", "x"], "NAME=VALUE"),
        (&["serve", "--http", "0.0.0.0:0"], "--insecure"),
    ];
    for (arguments, want) in table {
        let done = run(arguments);
        assert_eq!(done.code, Some(2), "{arguments:?}: {}", done.err);
        assert!(done.err.contains(want), "{arguments:?}: {}", done.err);
        assert!(done.out.is_empty());
    }
}

#[test]
fn an_empty_answer_says_what_there_is() {
    let done = run_with(&["query", "-", "nothing"], LOG);
    assert_eq!(done.code, Some(1));
    assert!(
        done.err
            .starts_with("no records match; the newest record is of ")
    );
    let done = run_with(&["query", "-"], b"");
    assert_eq!(done.err, "no records match; there are none at all\n");
}

#[test]
fn an_empty_answer_of_files_says_what_was_meant() {
    let log = b"{\"time\":\"2026-03-01T00:00:00Z\",\"level\":\"error\"}\n";
    for (arguments, said) in [
        (
            &["query", "-", "level=error"][..],
            "try: logpond query -f level=error",
        ),
        (
            &["query", "-", "-f", "levle=error"],
            "no record of the range has a field 'levle'; the nearest is 'level'",
        ),
        (
            &["query", "-", "-f", "level=error", "-S", "2026-04-01"],
            "1 record matches before the range",
        ),
    ] {
        let done = run_with(arguments, log);
        assert_eq!(done.code, Some(1), "{arguments:?}");
        assert!(done.err.contains(said), "{arguments:?}: {}", done.err);
    }
}

#[test]
fn a_reader_that_leaves_ends_it_silently() {
    let (_directory, path) = file(&LOG.repeat(20_000));
    let mut child = command(&["query", "", "--file", path.to_str().unwrap()])
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert!(!line.is_empty());
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
}

const ROWS: &str = "{\"_time\":\"2026-03-02T00:00:02.000000000Z\",\"_id\":\"01BBBBBBBBBBBBBBBBBBBBBBBB\",\"_msg\":\"b\",\"n\":1}\n\
{\"_time\":\"2026-03-02T00:00:01.000000000Z\",\"_id\":\"01AAAAAAAAAAAAAAAAAAAAAAAA\",\"_msg\":\"a\",\"n\":18446744073709551615}\n";

fn trailer(more: &str) -> String {
    format!(
        "{{\"_trailer\":{{\"rows\":2,\"bytes_scanned\":9,\"elapsed_ms\":1.5,\"complete\":true,\"missing\":[]{more}}}}}\n"
    )
}

fn ask(arguments: &[&str], answers: Vec<Answer>) -> (CommandResult, Vec<String>) {
    let server = Server::start(answers);
    let url = server.url();
    let mut all = arguments.to_vec();
    all.extend(["--addr", &url]);
    let done = run(&all);
    (done, server.asked.try_iter().collect())
}

#[test]
fn servers_are_asked_for_what_was_meant() {
    let body = format!("{ROWS}{}", trailer(""));
    let (done, asked) = ask(
        &[
            "query", "a b", "-f", "n=1", "-S", "@1", "-U", "@2", "-o", "json",
        ],
        vec![ok(&body)],
    );
    assert_eq!((done.code, done.text()), (Some(0), ROWS.to_string()));
    assert_eq!(
        asked,
        [
            "GET /api/v1/query?q=%22a%20b%22%20AND%20n%3D1&from=1970-01-01T00%3A00%3A01.000000000Z\
          &to=1970-01-01T00%3A00%3A02.000000000Z"
        ]
    );
    let (done, asked) = ask(&["query", "-o", "raw", "-n2", "-A3"], vec![ok(&body)]);
    assert_eq!((done.code, done.text()), (Some(0), "a\nb\n".to_string()));
    assert_eq!(
        asked,
        ["GET /api/v1/query?fields=raw&after=3&limit=2&direction=backward"]
    );
    let (done, asked) = ask(&["query", "-c"], vec![ok(&trailer(""))]);
    assert_eq!((done.code, done.text()), (Some(0), "2\n".to_string()));
    assert_eq!(asked, ["GET /api/v1/query?count=true"]);
}

#[test]
fn answers_that_lack_something_exit_with_3() {
    let lacking = "{\"_trailer\":{\"rows\":1,\"complete\":false,\"missing\":[\"page 7 of x\"]}}\n";
    let (done, _) = ask(&["query"], vec![ok(lacking)]);
    assert_eq!(done.code, Some(3));
    assert!(done.err.contains("not complete") && done.err.contains("page 7 of x"));
    for is_whole in [true, false] {
        let broken = Answer {
            is_whole,
            ..ok(ROWS)
        };
        let (done, _) = ask(&["query"], vec![broken]);
        assert_eq!(done.code, Some(3), "{}", done.err);
        assert_eq!(done.text().lines().count(), 2);
        assert!(done.err.contains("broke off"));
    }
}

#[test]
fn refusals_and_absence_exit_with_2() {
    let refusal = Answer {
        status: 400,
        ..ok(
            "{\"error\":{\"code\":\"bad_query\",\"message\":\"no such thing\",\"hint\":\"try x\"}}",
        )
    };
    let (done, _) = ask(&["query"], vec![refusal]);
    assert_eq!(
        (done.code, &*done.err),
        (Some(2), "logpond: no such thing; try x\n")
    );
    let nobody = Server::start(Vec::new()).url();
    for verb in [
        &["query"][..],
        &["top", "x"],
        &["segments"],
        &["compact", "--wait"],
    ] {
        let mut all = verb.to_vec();
        all.extend(["--addr", &nobody]);
        let done = run(&all);
        assert_eq!(done.code, Some(2));
        assert!(done.err.contains("no server answers"), "{}", done.err);
    }
    let done = command(&["query"])
        .env("LOGPOND_ADDR", &nobody)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&done.stderr).contains(&nobody));
}

#[test]
fn a_mistyped_variable_is_named() {
    let said = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.env("LOGPOND_ADR", "http://127.0.0.1:1");
        command.env("LOGPOND_PORT", "tcp://10.0.0.1:7650");
        let done = command.stdin(Stdio::null()).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let warning = "logpond: the variable LOGPOND_ADR is not known and ignored, did you mean \
                   LOGPOND_ADDR?\n";
    let (code, text) = said(&["query", "-"]);
    let rest = text.strip_prefix(warning).expect(&text);
    assert_eq!(
        (code, rest),
        (Some(1), "no records match; there are none at all\n")
    );
    assert!(said(&["serve", "--http", "off"]).1.starts_with(warning));
    assert_eq!(said(&["version"]), (Some(0), String::new()));
}

#[test]
fn numbers_are_summarised() {
    let stats = format!(
        "{{\"value\":\"web\",\"count\":1200,\"min\":-0.5,\"p99\":7}}\n{}",
        trailer("")
    );
    let (done, asked) = ask(&["stats", "ms", "--by", "app"], vec![ok(&stats)]);
    assert_eq!(asked, ["GET /api/v1/stats?field=ms&by=app&n=10"]);
    expect![[r#"
        value  count   min  p50  p90  p95  p99  max  mean  sum
        web    1,200  -0.5                   7
    "#]]
    .assert_eq(&done.text());
}

#[test]
fn tables() {
    let top = format!(
        "{{\"value\":\"a\\nb\",\"count\":3}}\n{{\"value\":7,\"count\":1}}\n{}",
        trailer("")
    );
    let (done, asked) = ask(
        &["top", "n", "text", "-n", "5", "-o", "json"],
        vec![ok(&top)],
    );
    assert_eq!(
        done.text(),
        "{\"value\":\"a\\nb\",\"count\":3}\n{\"value\":7,\"count\":1}\n"
    );
    assert_eq!(asked, ["GET /api/v1/top?q=%22text%22&field=n&n=5"]);
    let (done, _) = ask(&["top", "n"], vec![ok(&top)]);
    expect![[r#"
        count    share  value
            3  150.0 %  a\nb
            1   50.0 %  7
    "#]]
    .assert_eq(&done.text());
    let buckets = format!(
        "{{\"from\":\"2026-03-02T00:00:00Z\",\"to\":\"x\",\"count\":3}}\n{}",
        trailer("")
    );
    let (done, asked) = ask(&["histogram", "--step", "1m"], vec![ok(&buckets)]);
    assert_eq!(
        (done.text(), asked),
        (
            "2026-03-02T00:00:00Z\t3\n".into(),
            vec!["GET /api/v1/histogram?step=1m".to_string()]
        )
    );
    let fields = format!(
        "{{\"field\":\"n\",\"rows\":3,\"share\":0.5,\"types\":[\"int\",\"string\"],\"distinct\":2}}\n{}",
        trailer("")
    );
    let (done, _) = ask(&["fields"], vec![ok(&fields)]);
    expect![[r#"
        field  records   share  distinct  types
        n            3  50.0 %         2  int string
    "#]]
    .assert_eq(&done.text());
    let segments = format!(
        "{{\"path\":\"a.parquet\",\"state\":\"live\",\"rows\":3,\"bytes\":1000,\"raw_bytes\":9000}}\n{}",
        trailer("")
    );
    let (done, _) = ask(&["segments"], vec![ok(&segments)]);
    expect![[r#"
        state  rows   bytes     raw  path
        live      3  1.0 kB  9.0 kB  a.parquet
    "#]]
    .assert_eq(&done.text());
    let (done, asked) = ask(&["compact", "--wait", "--cold"], vec![ok(&trailer(""))]);
    assert_eq!((done.code, &*done.err), (Some(0), "compacted in 1 ms\n"));
    assert_eq!(asked, ["POST /api/v1/compact?cold=true&wait=true"]);
    let begun = Answer {
        status: 202,
        ..ok("{\"started\":true}")
    };
    let (done, asked) = ask(&["compact"], vec![begun]);
    assert_eq!(done.code, Some(0));
    assert!(
        done.err.starts_with("compaction has started"),
        "{}",
        done.err
    );
    assert_eq!(asked, ["POST /api/v1/compact"]);
}

#[test]
fn patterns_have_a_curve_and_messages() {
    let patterns = format!(
        "{{\"pattern\":\"job <_>\",\"level\":\"warn\",\"count\":2,\
         \"buckets\":[[\"2026-03-02T00:00:00Z\",1],[\"2026-03-02T01:00:00Z\",2]],\
         \"samples\":[{{\"time\":\"2026-03-02T01:00:00Z\",\"message\":\"job 7\"}}]}}\n{}",
        trailer("")
    );
    let (done, asked) = ask(&["patterns", "--samples"], vec![ok(&patterns)]);
    assert_eq!(asked, ["GET /api/v1/patterns?n=20"]);
    expect![[r#"
        count    share  over time             level  pattern
            2  100.0 %  ▄                  █  warn   job <_>
                                                       job 7
    "#]]
    .assert_eq(&done.text());
}

#[test]
fn empty_tables_say_why() {
    let nothing = "{\"_trailer\":{\"rows\":0,\"complete\":true,\"newest\":\"then\"}}\n";
    let (done, _) = ask(&["top", "n"], vec![ok(nothing)]);
    let said = "no records with a field 'n' match in the last hour (--since reaches further back); \
                the newest record is of then\n";
    assert_eq!((done.code, &*done.err), (Some(1), said));
    let (done, _) = ask(&["fields", "-S", "@1"], vec![ok(nothing)]);
    let said = "no records match; the newest record is of then\n";
    assert_eq!((done.code, &*done.err), (Some(1), said));
}

/// Kills the process that never ends by itself.
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn following_goes_on_after_a_lost_connection() {
    let row = |id: &str, text: &str| {
        format!(
            "{{\"_time\":\"2026-03-02T00:00:03.000000000Z\",\"_id\":\"{id}\",\"_msg\":\"{text}\"}}\n"
        )
    };
    let lost = Answer {
        is_whole: false,
        ..ok(&row("01CCCCCCCCCCCCCCCCCCCCCCCC", "c"))
    };
    let server = Server::start(vec![
        ok(&format!("{ROWS}{}", trailer(""))),
        lost,
        ok(&row("01DDDDDDDDDDDDDDDDDDDDDDDD", "d")),
    ]);
    let mut child = command(&["query", "--follow", "-o", "raw", "--addr", &server.url()])
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let _killed = ChildGuard(child);
    let lines: Vec<String> = out.lines().take(4).map(|line| line.unwrap()).collect();
    assert_eq!(lines, ["a", "b", "c", "d"]);
    let asked: Vec<String> = server.asked.iter().take(3).collect();
    let cursor = |id| {
        format!(
            "GET /api/v1/query?fields=raw&follow=true&positions=true&cursor=2026-03-02T00%3A00%3A{id}"
        )
    };
    assert_eq!(
        asked,
        [
            "GET /api/v1/query?fields=raw&limit=10&direction=backward&positions=true".to_string(),
            cursor("02.000000000Z_01BBBBBBBBBBBBBBBBBBBBBBBB"),
            cursor("03.000000000Z_01CCCCCCCCCCCCCCCCCCCCCCCC"),
        ]
    );
}

#[test]
fn following_a_cluster_goes_on_where_it_says() {
    let row = |id: &str, text: &str| {
        format!(
            "{{\"_time\":\"2026-03-02T00:00:03.000000000Z\",\"_id\":\"{id}\",\"_msg\":\"{text}\"}}\n"
        )
    };
    // An id that is less than the others is of another node.
    let (c, d) = (
        row("00CCCCCCCCCCCCCCCCCCCCCCCC", "c"),
        row("01DDDDDDDDDDDDDDDDDDDDDDDD", "d"),
    );
    let notice =
        "{\"_notice\":{\"answers\":false,\"message\":\"node 1 is away\",\"node\":\"1\"}}\n";
    let lost = Answer {
        is_whole: false,
        ..ok(&format!("{notice}{c}{{\"_position\":\"p2\"}}\n{d}"))
    };
    let server = Server::start(vec![
        ok(&format!("{ROWS}{}", trailer(",\"position\":\"p1\""))),
        lost,
        ok(&format!("{d}{}", row("00EEEEEEEEEEEEEEEEEEEEEEEE", "e"))),
    ]);
    let mut child = command(&["query", "--follow", "-o", "raw", "--addr", &server.url()])
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let _killed = ChildGuard(child);
    let lines: Vec<String> = out.lines().take(5).map(|line| line.unwrap()).collect();
    assert_eq!(lines, ["a", "b", "c", "d", "e"]);
    let mut said = String::new();
    err.read_line(&mut said).unwrap();
    assert_eq!(said, "-- node 1 is away --\n");
    let asked: Vec<String> = server.asked.iter().take(3).collect();
    let position =
        |at| format!("GET /api/v1/query?fields=raw&follow=true&positions=true&position={at}");
    assert_eq!(asked[1..], [position("p1"), position("p2")]);
}

#[test]
fn forward_claims_nothing_that_it_has_not_sent() {
    let done = run(&["forward", "/nonexistent/a.log"]);
    let said =
        "logpond: /nonexistent/a.log cannot be read: No such file or directory (os error 2)\n";
    assert_eq!((done.code, &*done.err), (Some(2), said));
}

#[test]
fn forward_sends_standard_input() {
    let answer = ok("{\"accepted\":2,\"rejected\":[]}");
    let server = Server::start(vec![answer]);
    let done = run_with(
        &["forward", "--label", "hostname=h", "--addr", &server.url()],
        b"a\nb",
    );
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.starts_with("2 records (3 B) durable at http://"));
    let asked: Vec<String> = server.asked.iter().collect();
    let asked_for = "POST /api/v1/push?durable=true&label=hostname%3Dh&label=_timezone%3DUTC0";
    assert_eq!(asked, [asked_for]);
}

#[test]
fn complaints_about_arguments_do_not_move_the_cursor() {
    let hostile = "\u{1b}[2J\u{1b}]52;c;aGk=\u{7}";
    for words in [
        vec!["verify", hostile],
        vec![hostile],
        vec!["query", "--\u{1b}[2J"],
        vec!["token", "create", "--role", hostile],
    ] {
        let done = run(&words);
        assert_eq!(done.code, Some(2), "{words:?}");
        assert!(!done.err.contains(['\u{1b}', '\u{7}']), "{:?}", done.err);
        assert!(done.err.contains(r"\x1b[2J"), "{:?}", done.err);
    }
    let full = std::fs::File::create("/dev/full").unwrap();
    let mut help = command(&["--help"]);
    let help = help.stdout(full).status();
    assert_eq!(help.unwrap().code(), Some(1));
}

#[test]
fn pages_about_itself() {
    let version = run(&["version", "--json"]).text();
    assert!(version.contains("\"version\":\""));
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completion", shell]).text().contains("histogram"));
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    assert_eq!(run(&["man", "--out", out]).code, Some(0));
    assert!(Path::new(out).join("logpond-query.1").exists());
    assert!(run(&["man"]).text().contains(".TH logpond"));
}
