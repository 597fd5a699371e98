use std::time::Duration;

use super::*;
use crate::intake::assembly::{AssembledRecord, Assembler, Settings};
use crate::intake::container::Format;

/// The records of a text: each of its lines, with `|` where the next one belongs to it.
fn grouped(rule: &Rule, text: &str) -> Vec<String> {
    let mut assembler = Assembler::new(Settings {
        rule: Some(rule.clone()),
        ..Settings::of(Format::Lines)
    });
    let mut records: Vec<String> = Vec::new();
    let mut take = |record: AssembledRecord<'_>| {
        let text = std::str::from_utf8(record.line).unwrap();
        records.push(text.replace('\n', "|"));
    };
    let mut start = 0;
    for line in text.lines() {
        assembler.push(line.as_bytes(), start, Duration::ZERO, &mut take);
        start += line.len() as u64 + 1;
    }
    assembler.finish(&mut take);
    records
}

/// Each record of a text is one of these paragraphs, apart by lines of `~`.
fn assert_records(rule: &Rule, text: &str) {
    let expected = text.split("~\n");
    let expected: Vec<String> = expected
        .map(|record| {
            record
                .strip_suffix('\n')
                .unwrap_or(record)
                .replace('\n', "|")
        })
        .collect();
    assert_eq!(grouped(rule, &text.replace("~\n", "")), expected);
}

#[test]
fn traces_of_java_and_dotnet() {
    assert_records(
        &Rule::stacktrace(),
        "2026-03-02 00:00:06 ERROR cannot save
java.lang.IllegalStateException: closed
\tat com.example.Store.save(Store.java:42)
\t... 2 common frames omitted
Caused by: java.io.IOException: disk
\tat com.example.Disk.write(Disk.java:7)
... 12 more
~
Exception in thread \"main\" java.lang.NullPointerException
\tat com.example.Main.main(Main.java:3)
~
java.lang.Error: one
\tat a.B.c(B.java:1)
~
java.lang.Error: two
\tat a.B.c(B.java:1)
~
INFO done
~
Unhandled exception. System.InvalidOperationException: bad
 ---> System.Exception: inner
   at App.Inner() in /app/Program.cs:line 9
   --- End of inner exception stack trace ---
   at App.Main() in /app/Program.cs:line 5
--- End of stack trace from previous location ---
   at App.Again()
~

~
INFO done
",
    );
}

#[test]
fn traces_of_python() {
    assert_records(
        &Rule::stacktrace(),
        "ERROR:root:failed
Traceback (most recent call last):
  File \"/app/a.py\", line 3, in f
    g()
    ^^^
ValueError: bad

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File \"/app/a.py\", line 5, in <module>
KeyboardInterrupt
~
Traceback (most recent call last):
  File \"/app/b.py\", line 1, in <module>
requests.exceptions.ConnectionError: gone
~
INFO:root:next
~
MainThread::ERROR::(run) Traceback (most recent call last):
File \"/usr/share/vdsm\", line 72, in run
    serve(log)
libvirtError: Failed to connect
~
Thread-15::DEBUG::next
Traceback (most recent call last):
  File \"/app/b.py\", line 1, in <module>
~
2026-03-02 00:00:06 INFO between
",
    );
}

#[test]
fn traces_of_go_and_rust() {
    assert_records(
        &Rule::stacktrace(),
        "INFO starting
~
panic: runtime error: index out of range [3] with length 3
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x0]

goroutine 1 [running]:
main.handle(0xc000012345, {0x1, 0x2})
\t/app/main.go:12 +0x1d
main.main()
\t/app/main.go:5 +0x25
created by net/http.(*Server).Serve in goroutine 1
\t/usr/local/go/src/net/http/server.go:3086 +0x5cb
exit status 2
~
INFO again
~
thread 'main' panicked at src/main.rs:2:5:
index out of bounds: the len is 3
stack backtrace:
   0: rust_begin_unwind
             at /rustc/src/panicking.rs:597:5
note: run with `RUST_BACKTRACE=full` for more
~
INFO again
",
    );
}

#[test]
fn traces_of_scripts() {
    assert_records(
        &Rule::stacktrace(),
        "/app/a.rb:2:in `f': bad (RuntimeError)
\tfrom /app/a.rb:5:in `<main>'
~
/app/index.js:3
    throw new TypeError('x');
    ^

TypeError: x
    at Object.<anonymous> (/app/index.js:3:9)
    at node:internal/main/run_main_module:23:47

Node.js v20.11.0
~
PHP Fatal error:  Uncaught Exception: x in /app/index.php:3
Stack trace:
#0 /app/index.php(7): f()
#1 {main}
  thrown in /app/index.php on line 3
~
Error: one
~
Error: two
~
# a heading
",
    );
}

#[test]
fn other_rules() {
    assert_records(&Rule::indent(), "a\n b\n\tc\n~\n\n~\nd\n");
    assert_records(
        &Rule::timestamp(),
        "2026-03-02 00:00:06 a\nb\n\n c\n~\n[2026-03-02T00:00:07Z] d\n~\nMar  2 00:00:06 host e\n 2026-03-02 00:00:06 f\n",
    );
    // Every form of time begins a record, whatever stands before it.
    assert_records(
        &Rule::timestamp(),
        "2026-03-02  0:20:00 331 [ERROR] got signal 11 ;
stack_bottom = 0x0
key_buffer_size=134217728
~
2026-03-02  0:20:01 331 [Note] next
~
Mar 2, 2026 12:20:01 AM org.example.Shop start
INFO: started
expires 2027-01-01 00:00:00
~
W, [2026-03-02T00:20:01.123456 #41]  WARN -- : slow
~
26/03/02 00:20:01 INFO executor.Backend: started
Caused by: a.B: [2026-03-02 00:20:01] c
~
1:M 02 Mar 2026 00:20:01.123 * started
~
11/05/2026 00:20:01 started
",
    );
    assert_records(
        &Rule::sql(),
        "# Time: 2026-03-02T00:00:06.1Z
# User@Host: root[root] @ localhost []
# Query_time: 2.0  Lock_time: 0.0
SET timestamp=1772409606;
SELECT a
FROM b;
~
# User@Host: root[root] @ localhost []
SELECT 1;
~
2026-03-02 00:00:06 UTC [7] LOG:  statement: select a,
b
\tfrom c
~
2026-03-02 00:00:07 UTC [7] LOG:  duration: 1 ms
",
    );
    let rule = Rule::starting(|line| line.starts_with(b"--"));
    assert_records(&rule, "before\nand\n~\n-- a\nb\n~\n--\n");
}
