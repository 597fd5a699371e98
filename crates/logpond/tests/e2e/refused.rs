//! What neither the proxy nor the server's own listener agrees to, as scanners such as testssl ask it:
//! by `openssl s_client`, and by hellos written here for what today's openssl cannot offer.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256, RsaKeySize};

use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{program, say, skip};

/// Alerts by the names that RFC 8446 gives them.
const HANDSHAKE_FAILURE: u8 = 40;
const ACCESS_DENIED: u8 = 49;
const DECODE_ERROR: u8 = 50;
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// The required outcome of an offer.
enum ExpectedOutcome {
    /// The server refuses with this alert.
    Alert(u8),
    /// The same, where this openssl can offer it at all: most cannot.
    AlertIfOffered(u8),
    /// There is a connection, and s_client says this of it.
    Say(&'static str),
}

use ExpectedOutcome::{Alert, AlertIfOffered, Say};

/// What is offered, how it is told to s_client, what must happen.
type Row = (&'static str, &'static str, ExpectedOutcome);

/// Level 0 has openssl offer what it has long stopped to offer by itself. Versions before 1.2 are refused
/// as their hellos say no signature algorithms, which comes before the version is looked at.
const REFUSED: [Row; 33] = [
    ("SSLv3", "-ssl3", AlertIfOffered(HANDSHAKE_FAILURE)),
    (
        "TLS 1.0",
        "-tls1 -cipher ALL:@SECLEVEL=0",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "TLS 1.1",
        "-tls1_1 -cipher ALL:@SECLEVEL=0",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "static RSA",
        "-tls1_2 -cipher kRSA:@SECLEVEL=0",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "CBC",
        "-tls1_2 -cipher ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES256-SHA384:ECDHE-ECDSA-AES256-SHA384",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "3DES",
        "-tls1_2 -cipher 3DES:@SECLEVEL=0",
        AlertIfOffered(HANDSHAKE_FAILURE),
    ),
    (
        "RC4",
        "-tls1_2 -cipher RC4:@SECLEVEL=0",
        AlertIfOffered(HANDSHAKE_FAILURE),
    ),
    (
        "DES",
        "-tls1_2 -cipher DES:@SECLEVEL=0",
        AlertIfOffered(HANDSHAKE_FAILURE),
    ),
    (
        "IDEA",
        "-tls1_2 -cipher IDEA:@SECLEVEL=0",
        AlertIfOffered(HANDSHAKE_FAILURE),
    ),
    (
        "EXPORT",
        "-tls1_2 -cipher EXPORT:@SECLEVEL=0",
        AlertIfOffered(HANDSHAKE_FAILURE),
    ),
    (
        "no encryption",
        "-tls1_2 -cipher NULL:@SECLEVEL=0",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "anonymous",
        "-tls1_2 -cipher aNULL:@SECLEVEL=0",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "finite-field DHE",
        "-tls1_2 -cipher kDHE:@SECLEVEL=0",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "ARIA",
        "-tls1_2 -cipher ARIA:@SECLEVEL=0",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "Camellia",
        "-tls1_2 -cipher CAMELLIA:@SECLEVEL=0",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "CCM",
        "-tls1_2 -cipher ECDHE-ECDSA-AES128-CCM:ECDHE-ECDSA-AES128-CCM8",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "CCM, 1.3",
        "-tls1_3 -ciphersuites TLS_AES_128_CCM_SHA256",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "CCM-8, 1.3",
        "-tls1_3 -ciphersuites TLS_AES_128_CCM_8_SHA256",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "keys agreed before",
        "-tls1_2 -cipher PSK:@SECLEVEL=0 -psk 1a2b3c",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "passwords (SRP)",
        "-tls1_2 -cipher SRP:@SECLEVEL=0 -srpuser user -srppass pass:word",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "signatures by SHA-1",
        "-tls1_2 -cipher DEFAULT:@SECLEVEL=0 -sigalgs RSA+SHA1:ECDSA+SHA1",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "signatures by SHA-224",
        "-tls1_2 -cipher DEFAULT:@SECLEVEL=0 -sigalgs RSA+SHA224:ECDSA+SHA224",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "signatures by PKCS #1, 1.3",
        "-tls1_3 -sigalgs RSA+SHA256",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "P-192",
        "-tls1_2 -cipher ALL:@SECLEVEL=0 -curves P-192",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "secp160r1",
        "-tls1_2 -cipher ALL:@SECLEVEL=0 -curves secp160r1",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "P-224 and others",
        "-tls1_2 -cipher ALL:@SECLEVEL=0 -curves secp224r1:secp256k1:brainpoolP256r1",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "FFDHE, 1.3",
        "-tls1_3 -curves ffdhe2048",
        Alert(HANDSHAKE_FAILURE),
    ),
    (
        "an unknown protocol",
        "-alpn smtp",
        Alert(NO_APPLICATION_PROTOCOL),
    ),
    (
        "a hundred unknown protocols",
        "-alpn MANY",
        Alert(NO_APPLICATION_PROTOCOL),
    ),
    ("compression", "-tls1_2 -comp", Say("Compression: NONE")),
    (
        "renegotiation, securely",
        "-tls1_2",
        Say("Secure Renegotiation IS supported"),
    ),
    (
        "NPN",
        "-tls1_2 -nextprotoneg http/1.1",
        Say("No ALPN negotiated"),
    ),
    // The server heeds the marks that RFC 8446 puts into its random bytes rather than the suite of RFC
    // 7507, and the client is who notices.
    (
        "falling back from 1.3",
        "-tls1_2 -fallback_scsv",
        Say("inappropriate fallback"),
    ),
];

/// A server that speaks TLS.
struct Server {
    name: &'static str,
    address: String,
}

fn has_openssl() -> bool {
    let output = Command::new("openssl").arg("version").output();
    output.is_ok_and(|output| output.status.success())
}

fn s_client(address: &str, arguments: &str) -> Command {
    let many: Vec<String> = (0..100).map(|at| format!("protocol-{at:0>100}")).collect();
    let many = many.join(",");
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", address]);
    if !arguments.contains("-servername") && !arguments.contains("-noservername") {
        command.args(["-servername", "localhost"]);
    }
    let arguments = arguments.split_whitespace();
    command.args(arguments.map(|text| if text == "MANY" { &*many } else { text }));
    command
}

/// What s_client says with these arguments, and nothing to send.
fn ask(address: &str, arguments: &str) -> String {
    let mut command = s_client(address, arguments);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Whether this openssl has what it is told to offer.
fn can_offer(said: &str) -> bool {
    let cannot = ["no cipher match", "nknown option", "null ssl method passed"];
    !cannot.iter().any(|text| said.contains(text))
}

fn check(server: &Server, (what, arguments, must): &Row) {
    let said = ask(&server.address, arguments);
    let context = format!("{} is offered {what}: {said}", server.name);
    let is_offered = can_offer(&said);
    match must {
        AlertIfOffered(_) if !is_offered => say(&format!("openssl cannot offer {what}")),
        Alert(number) | AlertIfOffered(number) => {
            assert!(is_offered, "{context}");
            assert!(
                said.contains(&format!("SSL alert number {number}\n")),
                "{context}"
            );
        }
        Say(text) => assert!(said.contains(text), "{context}"),
    }
}

/// A running proxy, killed when it is dropped.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Proxy {
    /// Before this upstream, with flags; gives where it listens.
    fn start([pem, key]: &[PathBuf; 2], upstream: &str, more: &[&str]) -> (Proxy, String) {
        let mut child = Command::new(program())
            .args([
                "proxy",
                "--listen",
                "127.0.0.1:0",
                "--alpn",
                "h2",
                "--alpn",
                "http/1.1",
            ])
            .args(["--to", upstream, "--cert"])
            .arg(pem)
            .arg("--key")
            .arg(key)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        said.read_line(&mut line).unwrap();
        let address = line.trim_end().rsplit_once(' ').unwrap().1.to_owned();
        (Proxy(child), address)
    }
}

/// A certificate for `localhost` of this key, in files.
fn files(directory: &Path, name: &str, key: &KeyPair) -> [PathBuf; 2] {
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let pem = params.self_signed(key).unwrap().pem();
    let texts = [("pem", pem), ("key", key.serialize_pem())];
    texts.map(|(kind, text)| {
        let path = directory.join(format!("{name}.{kind}"));
        fs::write(&path, text).unwrap();
        path
    })
}

/// Both kinds of key for both programs: what is refused is not refused for the key's sake.
struct Servers {
    scratch: Scratch,
    all: Vec<Server>,
    _ponds: Vec<TestServer>,
    _proxies: Vec<Proxy>,
}

impl Servers {
    fn start() -> Servers {
        let scratch = Scratch::new("refused").unwrap();
        let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048);
        let keys = [
            ("rsa", rsa.unwrap()),
            ("p256", KeyPair::generate().unwrap()),
        ];
        let names = [
            ["the server, RSA", "the proxy, RSA"],
            ["the server, P-256", "the proxy, P-256"],
        ];
        let (mut all, mut ponds, mut proxies) = (Vec::new(), Vec::new(), Vec::new());
        for ((name, key), [of_pond, of_proxy]) in keys.iter().zip(names) {
            let files = files(scratch.path(), name, key);
            let [pem, key] = files.each_ref().map(|path| path.to_str().unwrap());
            let flags = ["--tls-certificate", pem, "--tls-key", key];
            let pond = TestServer::start(program(), &scratch.path().join(name), &flags).unwrap();
            let address = pond.address("http");
            // The server's own listener is as good an upstream as any: it waits for a hello.
            let (proxy, listens) = Proxy::start(&files, &format!("tcp:{address}"), &[]);
            all.push(Server {
                name: of_pond,
                address,
            });
            all.push(Server {
                name: of_proxy,
                address: listens,
            });
            ponds.push(pond);
            proxies.push(proxy);
        }
        Servers {
            scratch,
            all,
            _ponds: ponds,
            _proxies: proxies,
        }
    }
}

#[test]
fn openssl_is_refused_what_scanners_look_for() {
    if !has_openssl() {
        return skip("what scanners look for", "there is no openssl");
    }
    let servers = Servers::start();
    for server in &servers.all {
        REFUSED.iter().for_each(|row| check(server, row));
        renegotiate(server);
        resume(server, &servers.scratch.path().join("session"));
    }
}

/// A client that asks for another handshake is told that there is none.
fn renegotiate(server: &Server) {
    let mut command = s_client(&server.address, "-tls1_2");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It is the first thing on a line that counts.
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"R\n").unwrap();
    let mut said = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    while !said.contains("no renegotiation") {
        assert_ne!(errors.read_line(&mut said).unwrap(), 0, "{said}");
    }
    drop(input);
    errors.read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    assert!(said.contains("RENEGOTIATING"), "{}: {said}", server.name);
}

/// Sessions are resumed, without bytes ahead of the handshake; by the proxy with tickets only, so that it
/// remembers the secrets of none.
fn resume(server: &Server, session: &Path) {
    let path = session.to_str().unwrap();
    keep(&server.address, "-tls1_3", session);
    let early = session.with_extension("early");
    fs::write(&early, "too early").unwrap();
    let early = format!("-early_data {}", early.display());
    let said = ask(&server.address, &format!("-tls1_3 -sess_in {path} {early}"));
    for expected in ["Reused, TLSv1.3", "Early data was not sent"] {
        assert!(said.contains(expected), "{}: {said}", server.name);
    }
    let numbered = "-tls1_2 -no_ticket";
    let said = ask(&server.address, &format!("{numbered} -sess_out {path}"));
    assert!(said.contains("New, TLSv1.2"), "{}: {said}", server.name);
    let said = ask(&server.address, &format!("{numbered} -sess_in {path}"));
    let is_new = said.contains("New, TLSv1.2");
    assert_eq!(
        is_new,
        server.name.contains("proxy"),
        "{}: {said}",
        server.name
    );
}

/// Keeps a connection until s_client has written down its session, which comes behind the handshake.
fn keep(address: &str, arguments: &str, session: &Path) {
    let _ = fs::remove_file(session);
    let mut command = s_client(address, arguments);
    command.arg("-sess_out").arg(session);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take();
    let has_come = || {
        let text = fs::read_to_string(session).unwrap_or_default();
        text.contains("-----END SSL SESSION PARAMETERS-----")
    };
    wait_until("a session", has_come).unwrap();
    drop(input);
    child.wait().unwrap();
}

#[test]
fn a_strict_proxy_refuses_names_that_it_does_not_know() {
    if !has_openssl() {
        return skip("names", "there is no openssl");
    }
    let scratch = Scratch::new("refused-names").unwrap();
    let files = files(scratch.path(), "p256", &KeyPair::generate().unwrap());
    // The server's own listener has no such mode: it has one certificate, and shows it to all. RFC 6066
    // has an alert of its own for unknown names, which the library does not send.
    let (_proxy, address) = Proxy::start(&files, "tcp:127.0.0.1:1", &["--strict-sni"]);
    let server = Server {
        name: "a strict proxy",
        address,
    };
    check(
        &server,
        &(
            "another name",
            "-servername other.example",
            Alert(ACCESS_DENIED),
        ),
    );
    check(&server, &("no name", "-noservername", Alert(ACCESS_DENIED)));
    check(
        &server,
        &("its name", "-servername localhost", Say("New, TLSv1.3")),
    );
}

/// X25519, P-256 and P-384, and the signatures by which certificates here are signed: what is refused is
/// refused for its suites.
const EXTENSIONS: &[u8] = &[
    0, 10, 0, 8, 0, 6, 0, 29, 0, 23, 0, 24, 0, 13, 0, 8, 0, 6, 8, 4, 4, 1, 4, 3,
];

/// A hello with these suites, of TLS 1.2 with the extensions, or of SSLv3, which had none, in a record.
fn hello(version: [u8; 2], suites: &[u16]) -> Vec<u8> {
    let mut body = version.to_vec();
    body.extend([7; 32]);
    body.push(0);
    body.extend(u16::try_from(suites.len() * 2).unwrap().to_be_bytes());
    body.extend(suites.iter().flat_map(|suite| suite.to_be_bytes()));
    body.extend([1, 0]);
    if version != [3, 0] {
        body.extend(u16::try_from(EXTENSIONS.len()).unwrap().to_be_bytes());
        body.extend(EXTENSIONS);
    }
    let length = u16::try_from(body.len()).unwrap();
    let mut record = vec![22, 3, version[1].min(1)];
    record.extend((length + 4).to_be_bytes());
    record.extend([1, 0]);
    record.extend(length.to_be_bytes());
    record.extend(body);
    record
}

/// A hello that says that it is of 16 MiB, as far as anybody takes it.
fn endless_hello() -> Vec<u8> {
    let mut record = vec![22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff];
    record.resize(5 + 0x4000, 0);
    let mut next = vec![22, 3, 1, 0x40, 0];
    next.resize(5 + 0x4000, 0);
    record.extend(next.repeat(7));
    record
}

/// What comes of bytes.
#[derive(Debug, PartialEq)]
enum Answer {
    /// A fatal alert.
    Alert(u8),
    /// That it is a request of HTTP, which the server expects at its port, too: it says where to ask.
    BadRequest,
    /// The connection ends.
    Nothing,
}

fn answer_to(address: &str, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let patience = Some(Duration::from_secs(30));
    stream.set_read_timeout(patience).unwrap();
    // It may end before it has taken all.
    let _ = stream.write_all(bytes);
    let mut answer = [0; 12];
    if let Err(error) = stream.read_exact(&mut answer[..7]) {
        let is_timeout = error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(!is_timeout, "the connection goes on");
        return Answer::Nothing;
    }
    if answer.starts_with(b"HTTP/1.") {
        stream.read_exact(&mut answer[7..]).unwrap();
        assert_eq!(&answer[7..], b"1 400");
        return Answer::BadRequest;
    }
    assert_eq!((answer[0], &answer[3..6]), (21, &[0, 2, 2][..]));
    Answer::Alert(answer[6])
}

/// What openssl 3 does not have any more, as Debian builds it, or never had.
#[test]
fn hellos_that_openssl_cannot_send_are_refused() {
    let servers = Servers::start();
    let old = [
        ("SSLv3", hello([3, 0], &[0x000a, 0x0005])),
        ("RC4", hello([3, 3], &[0x0005, 0x0004, 0xc011, 0xc007])),
        ("3DES", hello([3, 3], &[0x000a, 0x0016, 0xc012, 0xc008])),
        ("DES and IDEA", hello([3, 3], &[0x0009, 0x0007])),
        ("EXPORT", hello([3, 3], &[0x0003, 0x0006, 0x0008, 0x0014])),
    ];
    // No handshake at all: SSLv2, and the heartbeat that asks for 16 kB before anything else.
    let ssl2 = [&[0x80, 0x1c, 1, 0, 2, 0, 3, 0, 0, 0, 16][..], &[7; 19]].concat();
    let others = [
        ("SSLv2", ssl2),
        ("a heartbeat", vec![24, 3, 2, 0, 3, 1, 0x40, 0]),
    ];
    for Server { name, address } in &servers.all {
        for (what, bytes) in &old {
            let answer = answer_to(address, bytes);
            assert_eq!(answer, Answer::Alert(HANDSHAKE_FAILURE), "{name}: {what}");
        }
        let is_proxy = name.contains("proxy");
        for (what, bytes) in &others {
            let expected = if is_proxy {
                Answer::Alert(DECODE_ERROR)
            } else {
                Answer::BadRequest
            };
            assert_eq!(answer_to(address, bytes), expected, "{name}: {what}");
        }
        let answer = answer_to(address, &endless_hello());
        assert_eq!(answer, Answer::Nothing, "{name}: a hello of 16 MiB");
    }
    // The hello is what is refused only for its suites.
    let good = hello([3, 3], &[0xc02f, 0xc02b]);
    let mut stream = TcpStream::connect(&servers.all[0].address).unwrap();
    stream.write_all(&good).unwrap();
    let mut answer = [0; 1];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [22], "a handshake goes on");
}
