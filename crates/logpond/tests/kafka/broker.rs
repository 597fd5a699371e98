//! A broker of Apache Kafka on this machine, and a client that does to it what others do.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::pond::{Scratch, wait_until};
use crate::surroundings::{has_program, python, skip};

/// What the users of the broker are known by.
pub(crate) const USER: (&str, &str) = ("alice", "open-sesame");

/// A broker that runs.
pub(crate) struct Broker {
    child: Child,
    command: Settings,
    scratch: Scratch,
    /// The certificate that its encrypted listener shows.
    pub(crate) certificate: PathBuf,
    ports: [u16; 3],
}

/// What it is started with.
struct Settings {
    classes: String,
    file: PathBuf,
}

/// Where `./test` has put the jars.
fn jars() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    target.join("tools/kafka")
}

/// Ports that nobody has now: a broker must be told its own before it starts.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

impl Settings {
    fn java(&self) -> Command {
        let mut command = Command::new("java");
        // The first compiler alone: a broker of a test never gets warm.
        command.args([
            "-Xmx320m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-cp",
            &self.classes,
        ]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

impl Broker {
    /// Starts one; nothing where there is none.
    pub(crate) fn start(what: &str) -> Option<Broker> {
        let jars = jars();
        if !jars.is_dir() || !has_program("java") {
            skip(
                what,
                "there is no broker of Kafka, or no Java (./test installs them)",
            );
            return None;
        }
        let scratch = Scratch::new("kafka").unwrap();
        let ports = free_ports();
        let certificate = scratch.path().join("broker.pem");
        let file = scratch.path().join("server.properties");
        fs::write(&file, properties(scratch.path(), ports, &certificate)).unwrap();
        let command = Settings {
            classes: format!("{}/*", jars.display()),
            file,
        };
        let (user, password) = USER;
        let formatted = command
            .java()
            .args([
                "kafka.tools.StorageTool",
                "format",
                "--standalone",
                "-t",
                "5L6g3nShT-eMCtK--X86sw",
            ])
            .arg("--config")
            .arg(&command.file)
            .args([
                "--add-scram",
                &format!("SCRAM-SHA-512=[name={user},password={password}]"),
            ])
            .status()
            .unwrap();
        assert!(formatted.success());
        let child = run(&command, ports);
        Some(Broker {
            child,
            command,
            scratch,
            certificate,
            ports,
        })
    }

    /// Kills it and starts it again, on the same ports.
    pub(crate) fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = run(&self.command, self.ports);
    }

    /// Its plain listener.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports[0])
    }

    /// Its encrypted one, which asks who is there.
    pub(crate) fn secure_address(&self) -> String {
        format!("localhost:{}", self.ports[2])
    }

    /// A directory for what belongs to it.
    pub(crate) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// A client of it; nothing where there is no Python for one.
    pub(crate) fn client(&self, what: &str) -> Option<Client> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kafka/kafka_client.py");
        let mut child = Command::new(python(what)?)
            .arg(script)
            .arg(self.address())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let calls = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Some(Client {
            child,
            calls,
            answers,
        })
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(settings: &Settings, ports: [u16; 3]) -> Child {
    let mut command = settings.java();
    let child = command
        .arg("kafka.Kafka")
        .arg(&settings.file)
        .spawn()
        .unwrap();
    wait_until("the broker listens", || {
        ports
            .iter()
            .all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok())
    })
    .unwrap();
    child
}

fn properties(
    directory: &Path,
    [plain, controller, secure]: [u16; 3],
    certificate: &Path,
) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    fs::write(certificate, &pem).unwrap();
    let store = directory.join("broker.store");
    fs::write(&store, format!("{}{pem}", key.serialize_pem())).unwrap();
    let (user, password) = USER;
    let logs = directory.join("logs");
    format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n\
         listeners=PLAINTEXT://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller},\
         SASL_SSL://localhost:{secure}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SASL_SSL://localhost:{secure}\n\
         controller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL\n\
         log.dirs={}\n\
         offsets.topic.replication.factor=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n\
         transaction.state.log.num.partitions=1\n\
         offsets.topic.num.partitions=1\n\
         message.max.bytes=8388608\n\
         authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n\
         allow.everyone.if.no.acl.found=true\n\
         super.users=User:ANONYMOUS\n\
         broker.session.timeout.ms=1000\n\
         broker.heartbeat.interval.ms=100\n\
         ssl.keystore.type=PEM\n\
         ssl.keystore.location={}\n\
         sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN\n\
         listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=\
         org.apache.kafka.common.security.scram.ScramLoginModule required;\n\
         listener.name.sasl_ssl.plain.sasl.jaas.config=\
         org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}=\"{password}\";\n",
        logs.display(),
        store.display(),
    )
}

/// Does to a broker what producers and operators do.
pub(crate) struct Client {
    child: Child,
    calls: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Client {
    /// Has it do something, and waits until it is done.
    pub(crate) fn call(&mut self, call: Value) {
        self.begin(&call);
        self.finish(&call);
    }

    /// Has it begin with something.
    pub(crate) fn begin(&mut self, call: &Value) {
        writeln!(self.calls, "{call}").unwrap();
    }

    /// Waits until it is done.
    pub(crate) fn finish(&mut self, call: &Value) {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n", "{call}");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
