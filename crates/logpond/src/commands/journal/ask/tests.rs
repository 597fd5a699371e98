use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

fn parse(arguments: &str) -> Result<Journal, String> {
    let words = ["logpond", "journal"].into_iter();
    let cli = Cli::try_parse_from(words.chain(arguments.split_whitespace()));
    match cli.map_err(|error| error.to_string())?.command {
        Command::Journal(args) => Ok(*args),
        other => Err(format!("{other:?}")),
    }
}

fn question(arguments: &str) -> Result<Question, String> {
    Question::new(&parse(arguments)?).map_err(|error| error.to_string())
}

fn filter(arguments: &str) -> Filter {
    question(arguments).unwrap().filter
}

#[test]
fn journalctls_own_lines_are_understood() {
    let sshd = journal::equal("_COMM", b"sshd");
    assert_eq!(filter("_COMM=sshd"), sshd);
    assert_eq!(filter("-S yesterday _COMM=sshd"), sshd);
    let both = Filter::or([sshd, journal::equal("_COMM", b"autossh")]);
    assert_eq!(
        filter("-o verbose -S yesterday _COMM=sshd + _COMM=autossh"),
        both
    );
    assert_eq!(
        filter("_TRANSPORT=syslog _COMM=autosshd"),
        Filter::and([
            journal::equal("_TRANSPORT", b"syslog"),
            journal::equal("_COMM", b"autosshd")
        ])
    );
    assert_eq!(
        parse("--field=_TRANSPORT").unwrap().field.as_deref(),
        Some("_TRANSPORT")
    );
    for line in [
        "-fu nginx",
        "-xeu nginx.service",
        "-b -1 -p err",
        "-kb",
        "-n50 --no-pager -r",
        "-p3 -xb",
        "--since=-1h --until=now -o json-pretty",
        "--user -u app",
        "-u a -u b -t c --facility=auth,local0",
    ] {
        if let Err(error) = question(line) {
            panic!("{line}: {error}");
        }
    }
}

#[test]
fn numbers_of_lines_may_be_left_out() {
    let table = [
        ("", Lines::All),
        ("-n", Lines::Newest(10)),
        ("-n 5", Lines::Newest(5)),
        ("-n5", Lines::Newest(5)),
        ("--lines=+5", Lines::Oldest(5)),
        ("-n all", Lines::All),
        ("-f", Lines::Newest(10)),
        ("-f --no-tail", Lines::All),
        ("-f -n 0", Lines::Newest(0)),
        ("-e", Lines::Newest(1000)),
        ("-n A=1", Lines::Newest(10)),
    ];
    for (arguments, lines) in table {
        assert_eq!(question(arguments).unwrap().lines, lines, "{arguments}");
    }
    assert_eq!(filter("-n A=1"), journal::equal("A", b"1"));
    assert!(question("-n x").is_err());
}

#[test]
fn boots_may_be_left_out() {
    let id = "9c7f833031f94777aedd645a8789e450";
    let boot = |id: Option<&str>, offset| {
        Some(Boot {
            id: id.map(str::to_owned),
            offset,
        })
    };
    let table = [
        ("", None),
        ("-b", boot(None, 0)),
        ("-k", boot(None, 0)),
        ("-b -1", boot(None, -1)),
        ("-b 2", boot(None, 2)),
        ("-b all -k", None),
        ("-b -u x", boot(None, 0)),
        ("-b A=1", boot(None, 0)),
        (
            "--boot=9C7f8330-31f9-4777-aedd-645a8789e450",
            boot(Some(id), 0),
        ),
        (
            "--boot=9c7f833031f94777aedd645a8789e450-2",
            boot(Some(id), -2),
        ),
        ("-b9c7f833031f94777aedd645a8789e450+1", boot(Some(id), 1)),
    ];
    for (arguments, boot) in table {
        assert_eq!(question(arguments).unwrap().boot, boot, "{arguments}");
    }
}

#[test]
fn a_search_for_the_newest_prints_them_newest_first() {
    assert!(question("-g x -n 5").unwrap().is_reversed);
    assert!(!question("-g x -n +5").unwrap().is_reversed);
    assert!(!question("-g x -f").unwrap().is_reversed);
    assert!(!question("-g x").unwrap().is_reversed);
    let insensitive = |text: &str| filter(text).to_string().contains("/i");
    assert!(insensitive("-g abc") && !insensitive("-g Abc"));
    assert!(!insensitive("-g abc --case-sensitive") && insensitive("-g Abc --case-sensitive=no"));
    assert!(question("-g a(").unwrap_err().contains("unclosed group"));
    assert!(question("-g (?=a)").unwrap_err().contains("look-around"));
}

#[test]
fn paths_are_programs_and_devices() {
    let missing = filter("/no/such/program");
    assert_eq!(missing, journal::equal("_EXE", b"/no/such/program"));
    let device = filter("/dev/null");
    assert!(device.to_string().contains("_KERNEL_DEVICE=c1:3"));
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("a-script-with-a-long-name");
    std::fs::write(&script, "#! /no/such/sh -e\n").unwrap();
    let found = filter(&script.display().to_string());
    let wanted = [("_COMM", "a-script-with-a"), ("_EXE", "/no/such/sh")];
    let wanted = wanted.map(|(name, value)| journal::equal(name, value.as_bytes()));
    assert_eq!(found, Filter::and(wanted));
}

#[test]
fn boots_are_counted_on_the_machine_that_is_meant() {
    let machine = |text: &str| question(text).unwrap().machine;
    assert_eq!(machine("-b"), Filter::All);
    assert_eq!(machine("-M web1"), journal::equal("_HOSTNAME", b"web1"));
    assert_eq!(
        machine("_HOSTNAME=web1 _COMM=x"),
        journal::equal("_HOSTNAME", b"web1")
    );
    assert_eq!(machine("_HOSTNAME=web1 + _COMM=x"), Filter::All);
}

#[test]
fn namespaces_may_be_beside_the_default_one() {
    let of = journal::equal("_NAMESPACE", b"ns1");
    let none = Filter::negate(journal::exists("_NAMESPACE"));
    assert_eq!(filter("--namespace=*"), Filter::All);
    assert_eq!(filter("--namespace=ns1"), of);
    assert_eq!(filter("--namespace=+ns1"), Filter::or([of, none]));
}

#[test]
fn the_last_of_several_is_meant() {
    assert_eq!(question("-n 3 -n 5").unwrap().lines, Lines::Newest(5));
    assert!(
        question("-q -q -r -r --no-pager --no-pager")
            .unwrap()
            .is_quiet
    );
    assert!(parse("-o cat -o json").unwrap().output == logpond_render::journal::Format::Json);
    assert_eq!(question("-b -b -1").unwrap().boot.unwrap().offset, -1);
}

#[test]
fn times_are_those_of_systemd() {
    // Saturday.
    let now: Timestamp = Timestamp(1_795_255_200_000_000_000);
    let zone = TimeZone::UTC;
    let table = [
        ("now", "2026-11-21T10:00:00Z"),
        ("today", "2026-11-21T00:00:00Z"),
        ("yesterday", "2026-11-20T00:00:00Z"),
        ("tomorrow", "2026-11-22T00:00:00Z"),
        ("-1h", "2026-11-21T09:00:00Z"),
        ("+3h30min", "2026-11-21T13:30:00Z"),
        ("-5s", "2026-11-21T09:59:55Z"),
        ("2 hours ago", "2026-11-21T08:00:00Z"),
        ("11min ago", "2026-11-21T09:49:00Z"),
        ("1 week 2 days ago", "2026-11-12T10:00:00Z"),
        ("@1395716396", "2014-03-25T02:59:56Z"),
        ("@1395716396.5", "2014-03-25T02:59:56.5Z"),
        ("2012-11-23", "2012-11-23T00:00:00Z"),
        ("2012-11-23 11:12", "2012-11-23T11:12:00Z"),
        ("2012-11-23 11:12:13.654", "2012-11-23T11:12:13.654Z"),
        ("2012-11-23 11:12:13 UTC", "2012-11-23T11:12:13Z"),
        ("2012-11-23T11:12:13Z", "2012-11-23T11:12:13Z"),
        ("Fri 2012-11-23", "2012-11-23T00:00:00Z"),
        ("Fri 2012-11-23 11:12:13", "2012-11-23T11:12:13Z"),
        ("Fri 2012-11-23 11:12:13 UTC", "2012-11-23T11:12:13Z"),
        ("11:12", "2026-11-21T11:12:00Z"),
        ("11:12:13", "2026-11-21T11:12:13Z"),
        ("12-11-23", "2012-11-23T00:00:00Z"),
    ];
    for (text, wanted) in table {
        let found = logpond_search::when::parse(text, now, &zone);
        let wanted = logpond_search::when::absolute(wanted).unwrap();
        assert_eq!(found, Ok(wanted), "{text}");
    }
}
