//! Clients of other makes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use logpond_proxy::{Certificates, TlsSettings};
use serde_json::Value;

use crate::setting::*;

/// Whether a program is here; says so if it is not.
pub(crate) fn has(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command
        .arg(argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let is_here = command.status().is_ok_and(|status| status.success());
    if !is_here {
        let _ = writeln!(std::io::stderr(), "skipped: there is no {program}");
    }
    is_here
}

/// Answers a request of HTTP with its length and then goes.
fn answer(mut stream: TcpStream) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(read @ 1..) => request.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    }
    let body = "x".repeat(100_000);
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // Who asked may be gone.
    let _ = stream.write_all((head + &body).as_bytes());
}

/// What `openssl s_client` says with these arguments, and what was recorded.
fn s_client(proxy: &Proxy, arguments: &[&str]) -> (String, Value) {
    let output = Command::new("openssl")
        .args(["s_client", "-servername", "localhost", "-connect"])
        .arg(proxy.address().to_string())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), proxy.record())
}

/// A proxy that speaks HTTP by name, where there is openssl.
fn for_openssl() -> Option<(Scratch, Proxy)> {
    if !has("openssl", "version") {
        return None;
    }
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let alpn = ["h2".to_owned(), "http/1.1".to_owned()];
    let certificates = Certificates::load(&TlsSettings {
        alpn: alpn.into(),
        ..tls(&[files])
    });
    let proxy = Proxy::start(settings(&[upstream(echo)]), &certificates.unwrap());
    Some((scratch, proxy))
}

#[test]
fn openssl_is_served_what_is_offered() {
    let Some((_scratch, proxy)) = for_openssl() else {
        return;
    };
    let served = [
        (
            &["-tls1_3"][..],
            "TLSv1.3",
            "TLS13_AES_256_GCM_SHA384",
            Value::Null,
        ),
        (
            &["-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"],
            "TLSv1.3",
            "TLS13_AES_128_GCM_SHA256",
            Value::Null,
        ),
        (
            &[
                "-tls1_2",
                "-cipher",
                "ECDHE-ECDSA-AES128-GCM-SHA256",
                "-alpn",
                "http/1.1",
            ],
            "TLSv1.2",
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            "http/1.1".into(),
        ),
        (
            &[
                "-tls1_2",
                "-cipher",
                "ECDHE-ECDSA-CHACHA20-POLY1305",
                "-alpn",
                "http/1.1,h2",
            ],
            "TLSv1.2",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "h2".into(),
        ),
    ];
    for (arguments, version, cipher, alpn) in served {
        let (text, record) = s_client(&proxy, arguments);
        assert!(
            text.contains("Verification error: self-signed") || text.contains("self-signed"),
            "{text}"
        );
        assert_eq!(record["version"], version, "{record}");
        assert_eq!(record["cipher"], cipher);
        assert_eq!(record.get("alpn").unwrap_or(&Value::Null), &alpn);
        assert_eq!(record["close_reason"], "client");
    }
}

#[test]
fn openssl_is_refused_the_rest() {
    let Some((_scratch, proxy)) = for_openssl() else {
        return;
    };
    let refused = [
        &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"][..],
        &["-tls1", "-cipher", "ALL:@SECLEVEL=0"],
        &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"],
        &["-tls1_2", "-cipher", "AES128-GCM-SHA256"],
        &["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"],
        &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"],
        &["-tls1_3", "-alpn", "smtp"],
    ];
    for arguments in refused {
        let (text, record) = s_client(&proxy, arguments);
        assert!(text.contains("alert"), "{arguments:?}: {text}");
        assert_eq!(
            record["close_reason"], "handshake_failed",
            "{arguments:?}: {record}"
        );
        assert!(record["error"].is_string());
    }
}

#[test]
fn curl_gets_answers() {
    if !has("curl", "--version") {
        return;
    }
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let proxy = Proxy::start(
        settings(&[upstream(answer)]),
        &load(std::slice::from_ref(&files)),
    );
    for version in [&["--tls-max", "1.2"][..], &["--tlsv1.3"]] {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--noproxy", "*", "--cacert"])
            .arg(&files.certificate)
            .args(version)
            .arg("--resolve")
            .arg(format!("localhost:{}:127.0.0.1", proxy.address().port()))
            .arg(format!("https://localhost:{}/", proxy.address().port()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout.len(), 100_000);
        // It knows the length of the body, and may be the first to go.
        let record = proxy.record();
        let reason = record["close_reason"].as_str().unwrap();
        assert!(["client", "upstream"].contains(&reason), "{record}");
        assert!(record["bytes_to_client"].as_u64().unwrap() > 100_000);
    }
}

/// Sends, says that nothing more comes, and reads what comes then.
const PYTHON: &str = r#"
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
plain = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
secured = context.wrap_socket(plain, server_hostname="localhost")
sent = bytes(range(256)) * 1000
secured.sendall(sent)
got = b""
while len(got) < len(sent):
    got += secured.recv(65536)
assert got == sent
# It sends its end and waits for the other one.
secured.unwrap().close()
print(secured.version())
"#;

#[test]
fn python_ends_in_order() {
    if !has("python3", "--version") {
        return;
    }
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let proxy = Proxy::start(
        settings(&[upstream(echo)]),
        &load(std::slice::from_ref(&files)),
    );
    let output = Command::new("python3")
        .args(["-c", PYTHON])
        .arg(&files.certificate)
        .arg(proxy.address().port().to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let record = proxy.record();
    assert_eq!(record["close_reason"], "client");
    assert_eq!(record["bytes_to_client"], 256_000);
}
