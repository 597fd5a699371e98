//! `logpond demo`: the five questions that it prints find the incident.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use logpond::demo::QUESTIONS;

use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::program;

/// The incident is within these times before the start of the demo, in seconds.
const INCIDENT: std::ops::Range<i64> = 9_000..12_600;

/// A demo that runs, and the file with its output.
struct Demo {
    child: Child,
    ready: std::path::PathBuf,
    printed: std::path::PathBuf,
}

impl Demo {
    fn start(scratch: &Path) -> Demo {
        let [ready, printed] = ["ready", "printed"].map(|name| scratch.join(name));
        let _ = fs::remove_file(&ready);
        let child = Command::new(program())
            .args(["demo", "--http", "127.0.0.1:0", "--data"])
            .arg(scratch.join("demo"))
            .arg("--ready-file")
            .arg(&ready)
            .stdout(File::create(&printed).unwrap())
            .spawn()
            .unwrap();
        let demo = Demo {
            child,
            ready,
            printed,
        };
        wait_until("the demo is there", || {
            demo.ready.exists() && demo.text().contains("Ctrl-C")
        })
        .unwrap();
        demo
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.printed).unwrap()
    }

    /// The answer of a command as it is printed.
    fn answer(&self, command: &str) -> String {
        let program = program().display().to_string();
        let command = command.replacen("logpond", &format!("'{program}'"), 1);
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Ends it as Ctrl-C does.
    fn interrupt(mut self) {
        let id = self.child.id().to_string();
        let killed = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(killed.success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It has ended unless the test fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The commands among the lines of the output.
fn commands(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("   "));
    lines.filter(|line| line.starts_with("logpond ")).collect()
}

#[test]
fn the_printed_questions_find_the_incident() {
    let scratch = Scratch::new("demo").unwrap();
    let before = jiff::Timestamp::now().as_second();
    let demo = Demo::start(scratch.path());
    let text = demo.text();
    let commands = commands(&text);
    assert_eq!(commands.len(), QUESTIONS.len(), "{text}");
    for (command, question) in commands.iter().zip(&QUESTIONS) {
        let answer = demo.answer(command);
        // Tables have a header.
        let first: String = answer.lines().take(2).collect();
        let leads = if command.contains(" query ") {
            answer.contains(question.clue)
        } else {
            first.contains(question.clue) || command.contains(" histogram ")
        };
        assert!(leads, "{}: {answer}", question.text);
    }
    // The bucket with the most failures is in the incident.
    let histogram = demo.answer(commands[0]);
    let buckets = histogram.lines().map(|line| line.split_once('\t').unwrap());
    let (time, count) = buckets
        .max_by_key(|(_, count)| count.parse::<u64>().unwrap())
        .unwrap();
    let ago = before - time.parse::<jiff::Timestamp>().unwrap().as_second();
    assert!(INCIDENT.contains(&ago), "{time} {count}: {ago} s ago");
    demo.interrupt();
}

#[test]
fn a_demo_goes_on_and_is_removed() {
    let scratch = Scratch::new("demo-again").unwrap();
    Demo::start(scratch.path()).interrupt();
    let again = Demo::start(scratch.path());
    assert!(!again.text().contains("records  "), "the day is made once");
    let address = again.text();
    let address = address.lines().next().unwrap().trim_start_matches("page ");
    let (address, _) = address.trim().split_once("/?").unwrap();
    let count = format!("logpond query -c --where demo=1 --since 25h --addr {address}");
    assert!(again.answer(&count).trim().parse::<u64>().unwrap() > 100_000);
    again.interrupt();
    let directory = scratch.path().join("demo");
    let cleaned = Command::new(program())
        .args(["demo", "--clean", "--data"])
        .arg(&directory)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(cleaned.success() && !directory.exists());
    let refused = Command::new(program())
        .args(["demo", "--clean", "--addr", "127.0.0.1:1"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("NOT demo:*"),
        "{said}"
    );
}

#[test]
fn a_server_is_filled() {
    let scratch = Scratch::new("demo-server").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let address = format!("http://{}", server.address("http"));
    let output = Command::new(program())
        .args(["demo", "--once", "--seed", "9", "--addr", &address])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(commands(&text).len(), QUESTIONS.len());
    let words = ["access", "services", "journal", "syslog", "proxy"];
    let filters = [
        "status:*",
        "service:*",
        "_SYSTEMD_UNIT:*",
        "facility:* NOT _SYSTEMD_UNIT:*",
        "sni:*",
    ];
    for (word, filter) in words.iter().zip(filters) {
        let filter = format!("demo=9 {filter}");
        let output = Command::new(program())
            .args(["query", "-c", "--since", "25h", "--where", &filter])
            .args(["--addr", &address])
            .output()
            .unwrap();
        let count = String::from_utf8(output.stdout).unwrap();
        let count: u64 = count.trim().parse().unwrap();
        assert!(count > 5000, "{word}: {count}");
    }
}
