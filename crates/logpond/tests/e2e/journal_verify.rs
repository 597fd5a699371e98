//! `logpond journal --verify` beside `journalctl --verify`.

use std::fs;

use crate::journal_command::{journal_of_file, journalctl, odd_fields, odd_messages, said};
use crate::journal_upload::{make_journal, tool, write_entry};
use crate::pond::Scratch;

#[test]
fn a_file_in_which_bytes_changed_does_not_pass() {
    let Some(remote) = tool("systemd-journal-remote") else {
        return;
    };
    let scratch = Scratch::new("journal-verify").unwrap();
    let mut export = Vec::new();
    for entry in odd_messages().iter().chain(&odd_fields()) {
        let fields: Vec<_> = entry.iter().map(|(n, v)| (&**n, &**v)).collect();
        write_entry(&fields, &mut export);
    }
    let source = scratch.path().join("odd.export");
    fs::write(&source, export).unwrap();
    let file = scratch.path().join("odd.journal");
    make_journal(&remote, &source, &file, &[]);
    let verify = |wanted: i32, what: &str| {
        for output in [
            journalctl(&file, "--verify"),
            journal_of_file(&file, "--verify"),
        ] {
            let said = said(&output);
            assert_eq!(output.status.code(), Some(wanted), "{what}: {said}");
        }
    };
    verify(0, "whole");
    let whole = fs::read(&file).unwrap();
    // Data of an entry, and the name of a field.
    for text in ["MESSAGE=multi", "_SYSTEMD_UNIT=a.service", "SEVEN"] {
        let at = memchr::memmem::find(&whole, text.as_bytes()).unwrap();
        let mut damaged = whole.clone();
        damaged[at + text.len() - 1] ^= 1;
        fs::write(&file, &damaged).unwrap();
        verify(1, text);
    }
    assert_eq!(journal_of_file(&file, "-n 1").status.code(), Some(3));
}
