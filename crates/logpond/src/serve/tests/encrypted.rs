#[path = "../../../../listen/src/net/tls/tests/authority.rs"]
mod authority;

use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::time::Instant;

use super::client::{PATIENCE, connect, get, read_answer};
use super::{TestServer, settings};
use crate::serve::{ServeError, Server};
use authority::{Authority, TestCertificate, files};
use logpond_client::{Access, Address, Client, ClientError, Item, Parameters};
use logpond_listen::tokens::{self, Entry, Role, Token};

/// A server with this certificate, and the file of the authority that clients trust.
fn encrypted(authority: &Authority, made: &TestCertificate) -> (TestServer, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(directory.path());
    let files = files(directory.path());
    made.write(&files);
    settings.tls = Some(files);
    settings.require_token = true;
    let token = directory.path().join("token");
    std::fs::write(token, create(&settings.tokens).expose()).unwrap();
    let authorities = directory.path().join("ca.pem");
    std::fs::write(&authorities, authority.pem()).unwrap();
    let server = Some(Server::start(&settings).unwrap());
    (TestServer { server, directory }, authorities)
}

fn create(path: &Path) -> Token {
    let token = Token::mint().unwrap();
    let entry = Entry::new(&token, None, Role::Admin, logpond_host::clock::now(), None);
    tokens::update(path, |tokens| tokens.add(entry)).unwrap();
    token
}

/// Asks as the commands do.
fn ask(
    server: &TestServer,
    scheme: &str,
    host: &str,
    authorities: &Path,
) -> Result<u64, ClientError> {
    let address = format!("{scheme}://{host}:{}", server.http().port());
    let token = server.directory.path().join("token");
    let mut access = Access::new(Some(&token), None).unwrap();
    access.trust(Some(authorities)).unwrap();
    let client = Client::new(Address::parse(&address).unwrap(), &access);
    let mut answer = client.get("/api/v1/query", &Parameters::new())?;
    loop {
        if let Item::Trailer(trailer) = answer.next_item()? {
            return Ok(trailer.rows);
        }
    }
}

#[test]
fn commands_ask_over_tls_whom_they_believe() {
    let authority = Authority::new();
    let made = authority.issue(&["localhost", "127.0.0.1"], |_| {});
    let (server, authorities) = encrypted(&authority, &made);
    for host in ["localhost", "127.0.0.1"] {
        assert_eq!(ask(&server, "https", host, &authorities).unwrap(), 0);
    }
    let refused = |scheme: &str, authorities: &Path| {
        let error = ask(&server, scheme, "127.0.0.1", authorities);
        error.unwrap_err().to_string()
    };
    let said = refused("http", &authorities);
    assert!(said.contains("speaks TLS only; ask at https://"), "{said}");
    let others = server.directory.path().join("others.pem");
    std::fs::write(&others, Authority::new().pem()).unwrap();
    let said = refused("https", &others);
    assert!(
        said.contains("authority that is not trusted here"),
        "{said}"
    );
    assert!(said.contains("--ca-file"), "{said}");
    let counts = server
        .server()
        .metrics()
        .access
        .tls(logpond_host::telemetry::TlsListener::Http);
    // The client has left before its going is counted.
    let started = Instant::now();
    while (counts.plain.get(), counts.failed.get()) != (1, 1) {
        assert!(started.elapsed() < PATIENCE, "{counts:?}");
        std::thread::yield_now();
    }
    assert!(counts.done.get() >= 2);
}

#[test]
fn a_certificate_for_another_name_is_not_believed() {
    let authority = Authority::new();
    let made = authority.issue(&["example.com"], |_| {});
    let (server, authorities) = encrypted(&authority, &made);
    let said = ask(&server, "https", "127.0.0.1", &authorities).unwrap_err();
    assert!(said.to_string().contains("only valid for"), "{said}");
    // Of itself it says no more than what it needs to: what came unencrypted is not looked at.
    let mut stream = connect(server.http());
    stream.write_all(b"POST /api/v1/push HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nx\n").unwrap();
    let answer = read_answer(&mut BufReader::new(stream));
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["error"]["code"], "tls_required");
}

#[test]
fn https_to_a_plain_server_says_so() {
    let server = TestServer::new();
    let token = server.directory.path().join("token");
    std::fs::write(token, "x").unwrap();
    let authorities = server.directory.path().join("ca.pem");
    std::fs::write(&authorities, Authority::new().pem()).unwrap();
    let said = ask(&server, "https", "127.0.0.1", &authorities).unwrap_err();
    assert!(matches!(said, ClientError::Tls { .. }), "{said:?}");
    let said = said.to_string();
    assert!(
        said.contains("does not speak TLS; ask at http://"),
        "{said}"
    );
    assert_eq!(get(server.http(), "/-/healthy").status, 200);
}

#[test]
fn the_stop_does_not_wait_for_handshakes() {
    let authority = Authority::new();
    let (mut server, _) = encrypted(&authority, &authority.issue(&["localhost"], |_| {}));
    let mut silent = connect(server.http());
    server.stop();
    assert_eq!(silent.read(&mut [0; 8]).unwrap_or(0), 0);
}

#[test]
fn what_others_can_reach_needs_a_certificate_that_holds_and_a_token() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(directory.path());
    let files = files(directory.path());
    // Refused before anything is bound.
    settings.http = "0.0.0.0:0".parse().unwrap();
    settings.tls = Some(files.clone());
    let error = |settings| Server::start(settings).err().unwrap();
    let no_token = error(&settings);
    assert!(
        matches!(no_token, ServeError::NoToken { .. }),
        "{no_token:?}"
    );
    let said = no_token.to_string();
    assert!(said.contains("logpond token create --role admin"), "{said}");
    create(&settings.tokens);
    let no_file = error(&settings);
    assert!(matches!(no_file, ServeError::Tls(_)), "{no_file:?}");
    assert!(no_file.to_string().contains("server.pem cannot be read"));
}
