//! Who gets in: tokens, end to end.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::pond::{Pond, Scratch, signal, wait_until};
use crate::surroundings::program;

fn run(arguments: &[&str], token: Option<&str>, input: &str) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).env_remove("LOGPOND_TOKEN_FILE");
    match token {
        Some(token) => command.env("LOGPOND_TOKEN", token),
        None => command.env_remove("LOGPOND_TOKEN"),
    };
    let pipes = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    // It may refuse before it reads.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn create(data: &Path, role: &str) -> String {
    let data = data.to_str().unwrap();
    let output = run(
        &["token", "create", "--role", role, "--data", data],
        None,
        "",
    );
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn tokens_open_what_they_are_for() {
    let scratch = Scratch::new("tokens").unwrap();
    let data = scratch.path().join("data");
    let writer = scratch.path().join("writer.token");
    std::fs::write(&writer, create(&data, "write")).unwrap();
    let reader = create(&data, "read");
    let pond = Pond::start(program(), &data, &["--require-token"]).unwrap();
    let url = pond.url();
    let query = |token| run(&["query", "-c", "--addr", &url], token, "");
    let refused = query(None);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("--token-file FILE"), "{said}");
    let forward = |file: &Path| {
        let file = file.to_str().unwrap();
        let arguments = ["forward", "--addr", &url, "--token-file", file];
        run(&arguments, None, "one\ntwo\n")
    };
    let output = forward(&writer);
    assert!(output.status.success(), "{output:?}");
    let found = query(Some(reader.trim()));
    assert_eq!(found.stdout, b"2\n", "{found:?}");
    // Each is for its own purpose.
    let text = std::fs::read_to_string(&writer).unwrap();
    let said = String::from_utf8(query(Some(text.trim())).stderr).unwrap();
    assert!(
        said.contains("role read") && said.contains("role write"),
        "{said}"
    );
    let id = &text[3..11];
    let arguments = ["token", "revoke", id, "--data", data.to_str().unwrap()];
    assert!(run(&arguments, None, "").status.success());
    // SIGHUP has it read at once, and ends nothing.
    signal("HUP", pond.pid()).unwrap();
    wait_until("the token is revoked", || {
        !forward(&writer).status.success()
    })
    .unwrap();
    assert_eq!(pond.terminate().unwrap().code(), Some(0));
}
