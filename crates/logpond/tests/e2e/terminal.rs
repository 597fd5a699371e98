//! The commands on a real terminal, one of script(1): nothing that a record, a label or a server says moves the
//! cursor, changes its state or the order of text.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};

use crate::journal_command::{program_of, said};
use crate::pond::{Scratch, TestServer};
use crate::surroundings::{has_program, program, skip};

/// Characters that a terminal obeys, in all forms: escapes, one byte, two bytes; and marks of
/// direction, a bell, a return, a backspace.
const EVIL: &str = "a\u{1b}[2J\u{1b}[8mb\u{9b}2Jc\u{202e}d\u{2066}e\u{200f}f\u{61c}g\u{7}h\rX\u{8}i\u{7f}j\u{85}k\u{2028}l";

/// The bytes that a command writes on a terminal.
fn on_terminal(arguments: &str) -> Vec<u8> {
    let asked = format!("{} {arguments}", program().display());
    let mut command = program_of("script");
    command
        .args(["-qec", &asked, "/dev/null"])
        .env("TERM", "xterm")
        .env("LOGPOND_PAGER", "cat");
    let Output { stdout, .. } = command.output().unwrap();
    stdout
}

/// Checks that a terminal only shows it, chooses colours and begins lines.
fn check(sent: &[u8], what: &str) -> String {
    let text = String::from_utf8(sent.to_vec()).unwrap_or_else(|e| panic!("{what}: {e}: {sent:?}"));
    let text = text.replace("\r\n", "\n");
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| is_obeyed(c)) {
        let colour = rest[at..].strip_prefix("\u{1b}[").and_then(|body| {
            let end = body.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            body[end..]
                .strip_prefix('m')
                .filter(|_| !body.starts_with("8m"))
        });
        rest = colour.unwrap_or_else(|| panic!("{what}: {:?} in {text:?}", &rest[at..]));
    }
    text
}

fn is_obeyed(c: char) -> bool {
    let is_mark = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_mark || (c.is_control() && !matches!(c, '\n' | '\t'))
}

fn pond(scratch: &Scratch) -> TestServer {
    let pond = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let evil = serde_json::Value::from(EVIL);
    let object = format!(
        "{{\"msg\":{evil},\"user\":{evil},{evil}:7,\"level\":\"error\",\"hostname\":{evil},\"app\":{evil}}}\n"
    );
    let entry = format!(
        "{{\"MESSAGE\":{evil},\"SYSLOG_IDENTIFIER\":{evil},\"_HOSTNAME\":{evil},\"__CURSOR\":{evil},\"_BOOT_ID\":{evil}}}\n"
    );
    for body in [object, entry] {
        let pushed = pond.push("application/x-ndjson", body.as_bytes()).unwrap();
        assert_eq!((pushed.status, pushed.accepted()), (200, 1));
    }
    let mut line = b"one byte \x9b2J \xff and ".to_vec();
    line.extend_from_slice(EVIL.replace('\r', "").as_bytes());
    let pushed = pond.push("text/plain", &line).unwrap();
    assert_eq!((pushed.status, pushed.accepted()), (200, 1));
    pond
}

/// Commands that print records.
fn commands() -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for format in ["pretty", "line", "raw", "json", "logfmt", "csv"] {
        commands.push(format!("query '' -o {format}"));
        commands.push(format!(
            "query a -o {format} --color always -C 1 -n 1 --stats"
        ));
    }
    for format in [
        "short",
        "short-full",
        "short-monotonic",
        "with-unit",
        "verbose",
        "export",
        "json",
        "json-pretty",
        "json-sse",
        "cat",
    ] {
        commands.push(format!("journal -o {format}"));
        commands.push(format!("journal -a --color always -g a -o {format}"));
    }
    let others = [
        "journal -F MESSAGE",
        "journal -F _HOSTNAME",
        "journal -N",
        "journal --list-boots",
        "journal --show-cursor",
        "top user",
        "top user -o json",
        "fields",
        "fields -o json",
        "patterns --samples",
        "patterns -o json",
        "histogram",
        "export",
        "segments",
    ];
    commands.extend(others.map(str::to_owned));
    commands
}

#[test]
fn nothing_of_a_record_moves_the_cursor() {
    if !has_program("script") {
        return skip("the commands on a terminal", "there is no script");
    }
    let scratch = Scratch::new("terminal").unwrap();
    let pond = pond(&scratch);
    let ask = |arguments: &str| {
        let (command, rest) = arguments.split_once(' ').unwrap_or((arguments, ""));
        on_terminal(&format!("{command} --addr {} {rest}", pond.url()))
    };
    let commands = commands();
    let mut shown = 0;
    for command in &commands {
        let text = check(&ask(command), command);
        shown += usize::from(text.contains("[2J"));
    }
    assert!(shown >= commands.len() / 3, "{shown} of {}", commands.len());
    // `--unsafe` sends it; and a pipe gets every byte.
    let sent = ask("query '' -o raw --unsafe");
    assert!(sent.windows(4).any(|part| part == b"\x1b[2J"), "{sent:?}");
    let piped = Command::new(program())
        .args(["query", "", "-o", "raw", "--addr", &pond.url()])
        .output()
        .unwrap();
    assert!(
        piped
            .stdout
            .windows(14)
            .any(|part| part == b"byte \x9b2J \xff and")
    );
    let through_pager = program_of("script")
        .args(["-qec"])
        .arg(format!(
            "{} query '' -o raw --addr {}",
            program().display(),
            pond.url()
        ))
        .arg("/dev/null")
        .envs([("TERM", "xterm"), ("LOGPOND_PAGER", "cat -u")])
        .output()
        .unwrap();
    check(&through_pager.stdout, "a pager");
}

/// A server that answers the next request so.
fn server(status: &str, body: &str) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let serving = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).unwrap() > 2 {
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).unwrap();
        reader.get_mut().write_all(answer.as_bytes()).unwrap();
    });
    (url, serving)
}

#[test]
fn a_server_does_not_speak_to_the_terminal() {
    if !has_program("script") {
        return skip("a server's errors on a terminal", "there is no script");
    }
    let evil = serde_json::Value::from(EVIL);
    let refusal = format!("{{\"error\":{{\"code\":\"x\",\"message\":{evil},\"hint\":{evil}}}}}");
    let trailer = format!(
        "{{\"_notice\":{{\"message\":{evil}}}}}\n{{\"_trailer\":{{\"rows\":0,\"complete\":false,\"missing\":[{evil}],\"lost\":[{evil}],\"newest\":{evil}}}}}\n"
    );
    for command in [
        "query ''",
        "query '' -c",
        "top a",
        "journal",
        "fields",
        "histogram",
        "cluster status",
    ] {
        for (status, body) in [
            ("400 Bad Request", &refusal),
            ("500 Oh", &EVIL.to_owned()),
            ("200 OK", &trailer),
        ] {
            let (url, serving) = server(status, body);
            let sent = on_terminal(&format!("{command} --addr {url}"));
            check(&sent, command);
            serving.join().unwrap();
        }
    }
}

/// It is said as what is missing is: by a line, by the status and with `--stats`.
#[test]
fn what_is_lost_is_said() {
    let trailer = "{\"_trailer\":{\"rows\":1,\"complete\":true,\"lost\":[\"node 10.0.0.3:7660: 5 records\"]}}\n";
    let row = "{\"_time\":\"2026-03-02T00:00:00Z\",\"_id\":\"01M80EWMK404HVRCR54AQ55Q0V\",\"_msg\":\"m\"}\n";
    let answer = format!("{row}{trailer}");
    for (arguments, body) in [
        (&["query", ""][..], &*answer),
        (&["query", "", "-c"], trailer),
        (&["query", "", "-q"], trailer),
        (&["query", "", "-n", "1", "--stats"], &answer),
        (&["top", "a"], trailer),
        (&["fields"], trailer),
        (&["histogram"], trailer),
        (&["patterns"], trailer),
        (&["journal"], &answer),
        (&["export"], &answer),
        (&["segments"], trailer),
        (&["sql", "SELECT 1", "-o", "json"], trailer),
    ] {
        let (url, serving) = server("200 OK", body);
        let output = Command::new(program())
            .args(arguments)
            .args(["--addr", &url])
            .output()
            .unwrap();
        serving.join().unwrap();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {output:?}");
        let said = said(&output);
        assert!(
            said.contains("  lost: node 10.0.0.3:7660: 5 records\n"),
            "{arguments:?}: {said}"
        );
        let has_stats = arguments.contains(&"--stats");
        assert_eq!(said.contains("1 part lost"), has_stats, "{said}");
    }
}
