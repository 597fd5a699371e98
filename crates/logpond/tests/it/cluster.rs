//! `logpond cluster ca create` and `certificate`: files that servers and clients take.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::cli::{CommandResult, run};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn certificate(ca: &Path, out: &Path, more: &[&str]) -> CommandResult {
    let (ca, out) = (ca.to_str().unwrap(), out.to_str().unwrap());
    let mut all = vec!["cluster", "certificate", "--ca", ca, "--out", out];
    all.extend(more);
    run(&all)
}

#[test]
fn an_authority_makes_nodes() {
    let directory = tempfile::tempdir().unwrap();
    let ca = directory.path().join("ca");
    let create = || run(&["cluster", "ca", "create", "--out", ca.to_str().unwrap()]);
    let made = create();
    assert_eq!(
        (made.code, made.text().as_str()),
        (Some(0), ""),
        "{}",
        made.err
    );
    assert!(
        made.err.contains("logpond cluster certificate --ca"),
        "{}",
        made.err
    );
    assert_eq!((mode(&ca), mode(&ca.join("ca.key"))), (0o700, 0o600));
    let key = std::fs::read(ca.join("ca.key")).unwrap();
    let again = create();
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("not overwritten"), "{}", again.err);
    assert_eq!(std::fs::read(ca.join("ca.key")).unwrap(), key);

    let node = directory.path().join("node");
    let names = ["--name", "node-1", "--address", "127.0.0.1,::1,localhost"];
    let made = certificate(&ca, &node, &names);
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert!(made.err.contains("--cluster-tls"), "{}", made.err);
    assert_eq!(mode(&node.join("node.key")), 0o600);
    assert_eq!(mode(&node.join("node.pem")), 0o644);
    let copy = std::fs::read(node.join("ca.pem")).unwrap();
    assert_eq!(copy, std::fs::read(ca.join("ca.pem")).unwrap());
    assert!(!node.join("ca.key").exists());
    // One file that is there keeps all others from being written.
    let half = directory.path().join("half");
    std::fs::create_dir(&half).unwrap();
    std::fs::write(half.join("node.pem"), "x").unwrap();
    assert_eq!(certificate(&ca, &half, &names).code, Some(2));
    assert!(!half.join("node.key").exists());
}

#[test]
fn mistakes_with_certificates_say_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let (ca, other) = (directory.path().join("ca"), directory.path().join("other"));
    for out in [&ca, &other] {
        let out = out.to_str().unwrap();
        assert_eq!(
            run(&["cluster", "ca", "create", "--out", out]).code,
            Some(0)
        );
    }
    let out = directory.path().join("node");
    let named = ["--name", "a", "--address", "10.0.0.1"];
    let table: [(&[&str], &str); 8] = [
        (&["--name", "a"], "--address"),
        (&["--name", "a b", "--address", "::1"], "no name for a node"),
        (
            &["--name", "a", "--address", "10.0.0.1:7650"],
            "without a port",
        ),
        (
            &["--name", "a", "--address", "10.0.0"],
            "neither an IP address",
        ),
        (
            &["--name", "a", "--address", "*.example.com"],
            "neither an IP address",
        ),
        (
            &["--name", "a", "--address", "::1", "--valid", "1"],
            "--valid: the unit",
        ),
        (
            &["--name", "a", "--address", "::1", "--valid", "0s"],
            "such as 90d",
        ),
        (
            &["--name", "a", "--address", "::1", "--valid", "20y"],
            "a shorter --valid",
        ),
    ];
    for (more, want) in table {
        let done = certificate(&ca, &out, more);
        assert_eq!(done.code, Some(2), "{more:?}: {}", done.err);
        assert!(done.err.contains(want), "{more:?}: {}", done.err);
    }
    let nowhere = certificate(&out, &out, &named);
    assert!(
        nowhere.err.contains("ca.pem cannot be read"),
        "{}",
        nowhere.err
    );
    std::fs::copy(other.join("ca.key"), ca.join("ca.key")).unwrap();
    let mixed = certificate(&ca, &out, &named);
    assert!(
        mixed.err.contains("key is not that of its certificate"),
        "{}",
        mixed.err
    );
    assert!(!out.exists(), "nothing was made");
}
