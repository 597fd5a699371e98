//! `logpond token`: a file of tokens from its first to its last.

use std::os::unix::fs::PermissionsExt;

use crate::cli::run;

#[test]
fn tokens_are_made_listed_and_revoked() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    let empty = run(&["token", "list", "--data", data]);
    assert_eq!((empty.code, empty.text().as_str()), (Some(1), ""));
    assert!(empty.err.contains("logpond token create"), "{}", empty.err);

    let create = |arguments: &[&str]| {
        let mut all = vec!["token", "create", "--data", data];
        all.extend(arguments);
        run(&all)
    };
    let made = create(&["--role", "write", "--name", "shipper", "--expires", "90d"]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let token = made.text();
    let (id, secret) = token.trim_end()[3..].split_once('_').unwrap();
    assert!(token.starts_with("lp_") && token.lines().count() == 1);
    assert!(
        made.err.contains(id) && !made.err.contains(secret),
        "{}",
        made.err
    );
    assert!(made.err.contains("--token-file FILE"), "{}", made.err);
    assert_eq!(create(&["--role", "admin"]).code, Some(0));

    let file = format!("{data}/tokens.toml");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!std::fs::read_to_string(&file).unwrap().contains(secret));

    let listed = run(&["token", "list", "--tokens", &file]);
    assert_eq!(listed.code, Some(0));
    let lines: Vec<String> = listed.text().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for word in ["id", "name", "role", "created", "expires"] {
        assert!(lines[0].contains(word), "{lines:?}");
    }
    assert!(lines[1].contains("shipper") && lines[1].contains(" write "));
    assert!(lines[2].trim_end().ends_with("never") && !listed.text().contains(secret));
    let json = run(&["token", "list", "--data", data, "-o", "json"]).text();
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["id"], &first["role"]),
        (&id.into(), &"write".into())
    );
    assert!(first["expires"].is_string());

    let revoked = run(&["token", "revoke", "shipper", "--data", data]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.err);
    assert!(revoked.err.contains(id), "{}", revoked.err);
    assert_eq!(
        run(&["token", "list", "--data", data])
            .text()
            .lines()
            .count(),
        2
    );
}

#[test]
fn mistakes_with_tokens_say_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().to_str().unwrap();
    let file = format!("{data}/x.toml");
    std::fs::write(&file, "[[token]]\nid = 1\n").unwrap();
    let table: [(&[&str], &str); 9] = [
        (&["create", "--data", data], "--role <ROLE>"),
        (
            &["create", "--data", data, "--role", "root"],
            "read, write, admin",
        ),
        (
            &["create", "--data", data, "--role", "read", "--name", "a b"],
            "no name for a token",
        ),
        (
            &["create", "--data", data, "--role", "read", "--expires", "1"],
            "--expires: the unit is missing",
        ),
        (
            &[
                "create",
                "--data",
                data,
                "--role",
                "read",
                "--expires",
                "0s",
            ],
            "such as 90d",
        ),
        (
            &["create", "--tokens", "/nonexistent/t", "--role", "read"],
            "/nonexistent/t cannot be used",
        ),
        (&["revoke", "nobody", "--data", data], "logpond token list"),
        (
            &["list", "--tokens", &file],
            "x.toml: line 1: 'id' is not a text",
        ),
        (
            &[
                "list",
                "--tokens",
                "lp_7k2m9qxa_0123456789abcdefghjkmnpqrstvwxyz",
            ],
            "it is a token",
        ),
    ];
    for (arguments, want) in table {
        let mut all = vec!["token"];
        all.extend(arguments);
        let done = run(&all);
        assert_eq!(done.code, Some(2), "{arguments:?}: {}", done.err);
        assert!(done.err.contains(want), "{arguments:?}: {}", done.err);
        assert!(
            done.out.is_empty() && !done.err.contains("_0123"),
            "{}",
            done.err
        );
    }
}

#[test]
fn a_bad_token_is_not_sent() {
    let done = run(&["query", "--token-file", "/nonexistent/t"]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("/nonexistent/t"), "{}", done.err);
    let output = crate::cli::command(&["forward"])
        .env("LOGPOND_TOKEN", "two words")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("LOGPOND_TOKEN holds no token"), "{said}");
    assert!(!said.contains("two words"), "{said}");
}
