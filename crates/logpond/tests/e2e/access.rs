//! Who gets in: tokens and TLS, end to end.

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

pub(crate) fn create(data: &Path, role: &str) -> String {
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

/// Makes an authority and the certificate of a node of it.
pub(crate) fn certificate(ca: &Path, out: &Path) {
    let (ca, out) = (ca.to_str().unwrap(), out.to_str().unwrap());
    let table: [&[&str]; 2] = [
        &["cluster", "ca", "create", "--out", ca],
        &[
            "cluster",
            "certificate",
            "--ca",
            ca,
            "--name",
            "node-1",
            "--address",
            "127.0.0.1",
            "--out",
            out,
        ],
    ];
    for arguments in table {
        let output = run(arguments, None, "");
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn certificates_of_our_own_encrypt_http_and_follow_their_files() {
    let scratch = Scratch::new("tls").unwrap();
    let path = |name: &str| scratch.path().join(name);
    let (old, new) = (path("old-ca"), path("new-ca"));
    certificate(&old, &path("node"));
    certificate(&new, &path("new-node"));
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    let (pem, key) = (text(path("node/node.pem")), text(path("node/node.key")));
    let flags = [
        "--tls-certificate",
        &pem,
        "--tls-key",
        &key,
        "--cluster-tls",
        &text(path("node")),
    ];
    let pond = Pond::start(program(), &path("data"), &flags).unwrap();
    let url = format!("https://{}", pond.address("http"));
    let forward = |ca: &Path| {
        let ca = text(ca.join("ca.pem"));
        let arguments = [
            "forward",
            "--addr",
            &url,
            "--ca-file",
            &ca,
            "--give-up-after",
            "0s",
        ];
        run(&arguments, None, "one\n")
    };
    let output = forward(&old);
    assert!(output.status.success(), "{output:?}");
    let output = forward(&new);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("not trusted here"),
        "{said}"
    );
    for name in ["node.pem", "node.key", "ca.pem"] {
        std::fs::copy(path("new-node").join(name), path("node").join(name)).unwrap();
    }
    signal("HUP", pond.pid()).unwrap();
    wait_until("the new certificate is shown", || {
        forward(&new).status.success()
    })
    .unwrap();
    let ca = text(new.join("ca.pem"));
    let arguments = ["query", "-c", "--addr", &url, "--ca-file", &ca];
    assert_eq!(run(&arguments, None, "").stdout, b"2\n");
    // A key that cannot be used leaves what is there, and says so.
    std::fs::write(&key, "x").unwrap();
    signal("HUP", pond.pid()).unwrap();
    wait_until("the bad key is reported", || {
        pond.stderr().contains("node.key holds no private key")
    })
    .unwrap();
    assert_eq!(run(&arguments, None, "").stdout, b"2\n");
    let without = run(
        &[
            "query",
            "--addr",
            &format!("http://{}", pond.address("http")),
        ],
        None,
        "",
    );
    let said = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(said.contains("ask at https://"), "{said}");
    assert_eq!(pond.terminate().unwrap().code(), Some(0));
}
