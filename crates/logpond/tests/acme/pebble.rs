//! An ACME server on this machine that asks for proofs, and the names that it looks up.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::pond::wait_until;
use crate::unpacked::unpacked;

/// How many addresses it listens on.
const LISTENERS: usize = 2;

/// A running server.
pub(crate) struct Pebble {
    child: Child,
    /// Where orders are made.
    pub(crate) directory: String,
    /// The certificate of the server itself, in PEM.
    pub(crate) authority: PathBuf,
    /// What it signs with, in PEM.
    pub(crate) root: String,
}

impl Pebble {
    /// One that asks for proofs at this port, and issues for so long; none where there is no such program.
    pub(crate) fn start(directory: &Path, port: u16, validity_s: u64) -> Option<Pebble> {
        let mut command = unpacked("pebble", "pebble")?;
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let [certificate, key_file, settings] =
            ["pebble.pem", "pebble.key", "pebble.json"].map(|name| directory.join(name));
        fs::write(&certificate, params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(&key_file, key.serialize_pem()).unwrap();
        let text = serde_json::json!({"pebble": {
            "listenAddress": "127.0.0.1:0",
            "managementListenAddress": "127.0.0.1:0",
            "certificate": certificate,
            "privateKey": key_file,
            "httpPort": 1,
            "tlsPort": port,
            "certificateValidityPeriod": validity_s,
        }});
        fs::write(&settings, text.to_string()).unwrap();
        let output = fs::File::create(directory.join("pebble.log")).unwrap();
        let child = command
            .arg("-config")
            .arg(&settings)
            .args(["-dnsserver", &names().to_string()])
            // It refuses what is good, and waits before it asks, to try out its clients: the first is up to
            // chance, and the second takes time. What is asked stays.
            .envs([("PEBBLE_WFE_NONCEREJECT", "0"), ("PEBBLE_VA_NOSLEEP", "1")])
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let mut pebble = Pebble {
            child,
            directory: String::new(),
            authority: certificate,
            root: String::new(),
        };
        wait_until("pebble listens", || pebble.ports().len() == LISTENERS).unwrap();
        for port in pebble.ports() {
            match pebble.get(port, "/roots/0") {
                Some(root) => pebble.root = root,
                None => pebble.directory = format!("https://localhost:{port}/dir"),
            }
        }
        assert!(!pebble.root.is_empty() && !pebble.directory.is_empty());
        Some(pebble)
    }

    /// Where it listens, which it was left to choose and does not tell.
    fn ports(&self) -> Vec<u16> {
        let process = PathBuf::from(format!("/proc/{}", self.child.id()));
        let sockets = fs::read_dir(process.join("fd")).into_iter().flatten();
        let inodes: Vec<String> = sockets
            .filter_map(|entry| fs::metadata(entry.ok()?.path()).ok())
            .map(|file| file.ino().to_string())
            .collect();
        let table = fs::read_to_string(process.join("net/tcp")).unwrap_or_default();
        let ports = table.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // Its own address, its state, which is that of a listener, and its inode.
            let (address, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
            let is_own = *state == "0A" && inodes.iter().any(|own| own == inode);
            let (_, port) = address.split_once(':').filter(|_| is_own)?;
            u16::from_str_radix(port, 16).ok()
        });
        ports.collect()
    }

    /// What a server of it answers, if that is something.
    fn get(&self, port: u16, path: &str) -> Option<String> {
        let own = fs::read_to_string(&self.authority).unwrap();
        let mut client = connect(([127, 0, 0, 1], port).into(), &own, "localhost").unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| body.to_owned())
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that has shaken hands.
pub(crate) type Client = StreamOwned<ClientConnection, TcpStream>;

/// Connects, trusting this certificate alone, and shakes hands.
pub(crate) fn connect(address: SocketAddr, trusted: &str, name: &str) -> std::io::Result<Client> {
    let mut roots = RootCertStore::empty();
    let trusted = CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap();
    roots.add(trusted).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut client = StreamOwned::new(connection, TcpStream::connect(address)?);
    client.conn.complete_io(&mut client.sock)?;
    Ok(client)
}

/// Answers questions for addresses of names: all are this machine (RFC 1035, 4.1).
fn names() -> SocketAddr {
    const HEADER_BYTES: usize = 12;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut bytes = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let asked = &bytes[HEADER_BYTES..length];
            let name_bytes = asked.iter().position(|byte| *byte == 0).unwrap() + 1;
            let question = &asked[..name_bytes + 4];
            let is_of_version_4 = question[name_bytes..name_bytes + 2] == [0, 1];
            // The same number, an answer, without mistakes; one question, and an answer or none.
            let mut answer = bytes[..2].to_vec();
            answer.extend([0x84, 0, 0, 1, 0, u8::from(is_of_version_4), 0, 0, 0, 0]);
            answer.extend(question);
            if is_of_version_4 {
                // The name of the question, its kind and class, a second, and the address.
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
            }
            socket.send_to(&answer, from).unwrap();
        }
    });
    address
}
