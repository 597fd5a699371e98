//! `logpond journal` on a terminal: one of script(1).

use crate::journal_command::{program_of, text};
use crate::pond::{Scratch, TestServer};
use crate::surroundings::{has_program, program, skip};

/// Variables with their values.
type Set<'s> = &'s [(&'s str, &'s str)];

/// What is printed by a pager that says how it was begun, or without it.
fn on_terminal(server: &TestServer, variables: Set<'_>, arguments: &str) -> String {
    let ours = program().display();
    let asked = format!("{ours} journal --quiet --addr {} {arguments}", server.url());
    let mut command = program_of("script");
    for name in [
        "LOGPOND_PAGER",
        "SYSTEMD_PAGER",
        "PAGER",
        "SYSTEMD_LESS",
        "NO_COLOR",
    ] {
        command.env_remove(name);
    }
    command
        .args(["-qec", &asked, "/dev/null"])
        .env("TERM", "xterm")
        .envs(variables.iter().copied());
    text(&command.output().unwrap())
}

#[test]
fn a_terminal_has_a_pager_and_colours() {
    if !has_program("script") {
        return skip("the journal on a terminal", "there is no script");
    }
    let scratch = Scratch::new("journal-terminal").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let entry = "{\"MESSAGE\":\"broken\",\"PRIORITY\":\"3\",\"SYSLOG_IDENTIFIER\":\"disk\"}\n";
    server
        .push("application/x-ndjson", entry.as_bytes())
        .unwrap();
    let ours = ("SYSTEMD_PAGER", "echo paged by less $LESS; cat");
    let table: [(Set<'_>, &str, &str, bool); 6] = [
        (
            &[ours, ("PAGER", "false")],
            "",
            "paged by less FRXMK\r\n",
            true,
        ),
        (&[ours], "-e", "paged by less FRXMK +G\r\n", true),
        (
            &[ours, ("SYSTEMD_LESS", "FRSX")],
            "",
            "paged by less FRSX\r\n",
            true,
        ),
        (&[ours], "--no-pager", "", true),
        (
            &[("SYSTEMD_PAGER", ""), ("PAGER", ours.1), ("NO_COLOR", "1")],
            "",
            "",
            false,
        ),
        (
            &[("PAGER", ours.1), ("SYSTEMD_COLORS", "0")],
            "",
            "paged by less FRXMK\r\n",
            false,
        ),
    ];
    for (variables, arguments, head, has_colours) in table {
        let printed = on_terminal(&server, variables, arguments);
        let rest = printed.strip_prefix(head);
        let rest = rest.unwrap_or_else(|| panic!("{variables:?} {arguments}: {printed:?}"));
        assert!(
            rest.contains("broken") && !rest.contains("paged"),
            "{variables:?}: {rest:?}"
        );
        assert_eq!(
            rest.contains("\x1b["),
            has_colours,
            "{variables:?}: {rest:?}"
        );
    }
}
