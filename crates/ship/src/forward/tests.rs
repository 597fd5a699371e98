//! Against a server of a few lines that says what each test wants it to say.

mod texts;

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;

use logpond_protocol::intake::container::Format;
use logpond_protocol::intake::multiline::Rule;
use logpond_protocol::intake::push::{self, PushForm, entries};
use logpond_record::envelope;
use logpond_segment::batches::BatchId;

use super::records::Records;
use super::sender::Origin;
use super::tail::Tail;
use super::*;

/// How the server behaves towards one request.
#[derive(Clone, Copy)]
pub(super) enum Behaviour {
    /// Accepts all lines.
    Yes,
    /// Accepts all lines but the first.
    Partly,
    /// Refuses all lines, as bad lines.
    NoLine,
    /// Answers with a status.
    Status(u16),
    /// Answers with a status and a page, as something else than a Logpond server does.
    Page(u16),
    /// Refuses as a Logpond server, with a status and a code.
    Code(u16, &'static str),
    /// Asks for patience, with a header.
    Busy,
    /// Takes the body and closes the connection without an answer.
    Vanish,
    /// Sends half of an answer.
    Half,
    /// Has it, or still has it, durably but not replicated.
    NotYet,
    /// Does not know a batch any more.
    Lost,
    /// Accepts all lines and asks to be spared.
    Enough,
}

/// What a server got: query and body of each request that it answered with success.
pub(super) type Received = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// The name of the batch in each request.
pub(super) type Names = Arc<Mutex<Vec<BatchId>>>;

pub(super) struct Server {
    address: SocketAddr,
    received: Received,
    pub(super) names: Names,
    script: Arc<Mutex<VecDeque<Behaviour>>>,
}

impl Server {
    /// A server that says these things in turn, and yes from then on.
    pub(super) fn start(script: &[Behaviour]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server {
            address: listener.local_addr().unwrap(),
            received: Arc::default(),
            names: Arc::default(),
            script: Arc::new(Mutex::new(VecDeque::from(script.to_vec()))),
        };
        let script = Arc::clone(&server.script);
        let (received, names) = (Arc::clone(&server.received), Arc::clone(&server.names));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = (
                    Arc::clone(&script),
                    Arc::clone(&received),
                    Arc::clone(&names),
                );
                std::thread::spawn(move || while serve(stream.as_ref().unwrap(), &shared) {});
            }
        });
        server
    }

    /// A server that is not there: nobody listens.
    pub(super) fn gone() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Server {
            address: listener.local_addr().unwrap(),
            received: Arc::default(),
            names: Arc::default(),
            script: Arc::default(),
        }
    }

    /// How much of the script was not said.
    pub(super) fn left(&self) -> usize {
        self.script.lock().unwrap().len()
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn text(&self) -> Vec<u8> {
        let received = self.received.lock().unwrap();
        received.iter().flat_map(|(_, body)| body.clone()).collect()
    }

    /// Sequence and attempt of the batch in each request, all of one epoch.
    pub(super) fn names(&self) -> Vec<(u64, u32)> {
        let names = self.names.lock().unwrap();
        let epoch = names.first().map(|id| id.epoch);
        assert!(names.iter().all(|id| Some(id.epoch) == epoch));
        names.iter().map(|id| (id.sequence, id.attempt)).collect()
    }

    fn queries(&self) -> Vec<String> {
        let received = self.received.lock().unwrap();
        received.iter().map(|(query, _)| query.clone()).collect()
    }
}

type Shared = (Arc<Mutex<VecDeque<Behaviour>>>, Received, Names);

/// Answers what has become of batches.
fn tell(mut stream: &TcpStream, say: Option<Behaviour>) -> bool {
    let runs = |is_there| if is_there { "[[0,99]]" } else { "[]" };
    let durable = runs(!matches!(say, Some(Behaviour::Lost)));
    let replicated = runs(!matches!(say, Some(Behaviour::Lost | Behaviour::NotYet)));
    let answer = format!("{{\"durable\":{durable},\"replicated\":{replicated}}}");
    let length = answer.len();
    let text = format!("HTTP/1.1 200 X\r\nContent-Length: {length}\r\n\r\n{answer}");
    stream.write_all(text.as_bytes()).is_ok()
}

/// How many records a body has, and the body; of entries a text: fields, line.
fn records_of(head: &str, body: Vec<u8>) -> (u64, Vec<u8>) {
    if !head.contains(entries::CONTENT_TYPE) {
        return (cutter::count_lines(&body), body);
    }
    let pushed = push::decode_default(PushForm::Entries, &body, Vec::new()).unwrap();
    assert_eq!(pushed.rejected, []);
    let mut text = Vec::new();
    for held in pushed.batch.iter() {
        let (_, envelope, line) = envelope::open(held).unwrap();
        for (name, value) in envelope.fields() {
            let value = String::from_utf8_lossy(&value.to_text()).into_owned();
            text.extend_from_slice(format!("{name}={value} ").as_bytes());
        }
        text.extend_from_slice(format!("{}\n", line.escape_ascii()).as_bytes());
    }
    (pushed.accepted as u64, text)
}

/// The head of a request, the length of its body, and the name of its batch.
fn read_head(reader: &mut impl BufRead) -> Option<(String, usize, Option<BatchId>)> {
    let mut head = String::new();
    let (mut length, mut id) = (0, None);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        match line.split_once(':') {
            Some(("logpond-batch", name)) => id = Some(name.trim().parse().unwrap()),
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap();
            }
            _ if line == "\r\n" => return Some((head, length, id)),
            _ => {}
        }
        head.push_str(&line);
    }
}

/// A refusal as a Logpond server has it.
fn refusal(code: &str) -> String {
    format!("{{\"error\":{{\"code\":\"{code}\",\"message\":\"not now\"}}}}")
}

/// Serves one request; false if the connection is over.
fn serve(mut stream: &TcpStream, (script, received, names): &Shared) -> bool {
    let mut reader = BufReader::new(stream);
    let Some((head, length, id)) = read_head(&mut reader) else {
        return false;
    };
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return false;
    }
    if head.starts_with("GET /api/v1/batches") {
        return tell(stream, script.lock().unwrap().pop_front());
    }
    names.lock().unwrap().push(id.unwrap());
    let (lines, body) = records_of(&head, body);
    let say = script.lock().unwrap().pop_front().unwrap_or(Behaviour::Yes);
    let (status, extra, answer) = match say {
        Behaviour::Enough => {
            let load = "Logpond-Load: yellow\r\n";
            (
                200,
                load,
                format!("{{\"accepted\":{lines},\"rejected\":[]}}"),
            )
        }
        Behaviour::Yes | Behaviour::Lost => {
            (200, "", format!("{{\"accepted\":{lines},\"rejected\":[]}}"))
        }
        Behaviour::NotYet => {
            let level = "\"durable\":true,\"replicated\":false";
            (
                200,
                "",
                format!("{{\"accepted\":{lines},\"rejected\":[],{level}}}"),
            )
        }
        Behaviour::Partly => {
            let rejected = "[{\"line\":1,\"reason\":\"too long\"}]";
            let accepted = lines - 1;
            (
                200,
                "",
                format!("{{\"accepted\":{accepted},\"rejected\":{rejected},\"rejected_total\":1}}"),
            )
        }
        Behaviour::NoLine => {
            let rejected = "[{\"line\":1,\"reason\":\"bad\"}]";
            (
                400,
                "",
                format!("{{\"accepted\":0,\"rejected\":{rejected},\"rejected_total\":{lines}}}"),
            )
        }
        Behaviour::Status(status) => (status, "", "{\"error\":{\"message\":\"no\"}}".to_string()),
        Behaviour::Page(status) => (status, "", "<html>\nno\n</html>".to_string()),
        Behaviour::Code(status, code) => (status, "", refusal(code)),
        Behaviour::Busy => (429, "Retry-After: 0\r\n", String::new()),
        Behaviour::Vanish => return false,
        Behaviour::Half => (200, "Content-Length: 99\r\n", "{\"acc".to_string()),
    };
    if status == 200 && !matches!(say, Behaviour::Half | Behaviour::Page(_)) {
        let query = head.split_whitespace().nth(1).unwrap().to_string();
        received.lock().unwrap().push((query, body));
    }
    let length = match say {
        Behaviour::Half => String::new(),
        _ => format!("Content-Length: {}\r\n", answer.len()),
    };
    let text = format!("HTTP/1.1 {status} X\r\n{extra}{length}\r\n{answer}");
    stream.write_all(text.as_bytes()).is_ok() && !matches!(say, Behaviour::Half)
}

pub(super) fn settings(servers: &[&Server]) -> Settings {
    Settings {
        access: Access::default(),
        addresses: servers
            .iter()
            .map(|s| Address::parse(&s.url()).unwrap())
            .collect(),
        bulk: None,
        inputs: Vec::new(),
        read_options: ReadOptions::default(),
        tail: None,
        labels: vec![("hostname".into(), "web 1".into())],
        zones: FileZones::default(),
        backoff: Backoff {
            first: Duration::from_millis(1),
            longest: Duration::from_millis(4),
            give_up_after: Some(Duration::from_secs(30)),
        },
        spool: None,
        waits_for_replication: false,
        quiet: true,
    }
}

fn pause() -> Pause {
    Pause(Arc::default())
}

fn forward(settings: &Settings, input: &[u8]) -> (Result<(), ForwardError>, Totals) {
    let mut sender = Sender::new(settings, pause(), Producer::new().unwrap());
    let mut totals = Totals::default();
    let reader = Box::new(std::io::Cursor::new(input.to_vec()));
    let input = stream::Input {
        name: "input",
        file: None,
        labels: &[],
        read_options: &settings.read_options,
    };
    let outcome = stream::forward(reader, input, &mut sender, &mut totals);
    (outcome, totals)
}

#[test]
fn every_byte_arrives() {
    let server = Server::start(&[]);
    let input = b"cpu 100%d done 50% x\n\0\xff\xfe\r\n\nlast without end";
    let (outcome, totals) = forward(&settings(&[&server]), input);
    outcome.unwrap();
    assert_eq!(server.text(), input);
    assert_eq!((totals.accepted, totals.rejected), (4, 0));
    assert_eq!(totals.bytes, input.len() as u64);
    assert_eq!(
        server.queries(),
        ["/api/v1/push?durable=true&label=hostname%3Dweb%201"]
    );
}

#[test]
fn failures_are_tried_again() {
    let failures = [
        Behaviour::Status(500),
        Behaviour::Busy,
        Behaviour::Vanish,
        Behaviour::Half,
        Behaviour::Status(507),
        Behaviour::Status(503),
    ];
    let server = Server::start(&failures);
    let (outcome, totals) = forward(&settings(&[&server]), b"a\nb\n");
    outcome.unwrap();
    assert_eq!((server.text(), totals.accepted), (b"a\nb\n".to_vec(), 2));
    // A batch that may be there is sent under its next name; one that cannot be, under the same.
    let names = [0, 1, 1, 2, 3, 4, 5].map(|attempt| (0, attempt));
    assert_eq!(server.names(), names);
}

#[test]
fn the_next_server_takes_over() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (tired, awake) = (
        Server::start(&[Behaviour::Status(503); 100]),
        Server::start(&[]),
    );
    let mut settings = settings(&[&tired, &awake]);
    settings
        .addresses
        .insert(0, Address::parse(&closed.to_string()).unwrap());
    let input = "x".repeat(700_000) + "\n";
    let (outcome, totals) = forward(&settings, input.repeat(4).as_bytes());
    outcome.unwrap();
    assert_eq!(totals.accepted, 4);
    assert_eq!(awake.text(), input.repeat(4).as_bytes());
    // The server that answered is asked first from then on.
    assert_eq!(tired.names(), [(0, 0)]);
    let attempts = awake.names();
    assert_eq!(attempts[0], (0, 1));
    let others = attempts[1..].iter().map(|(_, attempt)| *attempt);
    assert!(others.clone().count() > 0 && others.sum::<u32>() == 0);
}

#[test]
fn refusals_are_final_and_named() {
    let server = Server::start(&[Behaviour::Status(413)]);
    let (outcome, totals) = forward(&settings(&[&server]), b"a\n");
    let error = outcome.unwrap_err().to_string();
    assert_eq!(error, format!("{} refuses: no", server.url()));
    assert_eq!(totals, Totals::default());
    assert_eq!(server.names(), [(0, 0)]);
}

/// Answers that are not about a batch: of something else than a Logpond server, or about the token.
const FOREIGN: [Behaviour; 9] = [
    Behaviour::Page(404),
    Behaviour::Page(200),
    Behaviour::Page(401),
    Behaviour::Page(403),
    Behaviour::Page(405),
    Behaviour::Page(302),
    Behaviour::Page(400),
    Behaviour::Code(401, "unauthorized"),
    Behaviour::Code(403, "forbidden"),
];

#[test]
fn a_foreign_answer_is_final_before_anything_was_taken() {
    for answer in FOREIGN {
        let server = Server::start(&[answer]);
        let (outcome, totals) = forward(&settings(&[&server]), b"a\n");
        let error = outcome.unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{} refuses: ", server.url())),
            "{error}"
        );
        assert!(!error.contains("<html>"), "{error}");
        assert_eq!((totals, server.names().len()), (Totals::default(), 1));
    }
    let server = Server::start(&[Behaviour::Page(404)]);
    let (outcome, _) = forward(&settings(&[&server]), b"a\n");
    let error = outcome.unwrap_err().to_string();
    assert!(error.ends_with("is this a Logpond server?"), "{error}");
}

#[test]
fn a_foreign_answer_is_an_outage_once_something_was_taken() {
    let mut script = vec![Behaviour::Yes];
    script.extend(FOREIGN);
    let server = Server::start(&script);
    let line = "x".repeat(1 << 20) + "\n";
    let (outcome, totals) = forward(&settings(&[&server]), line.repeat(2).as_bytes());
    outcome.unwrap();
    assert_eq!(
        (totals.accepted, server.text()),
        (2, line.repeat(2).into_bytes())
    );
    // Behind something else there may be a server that has the batch; a refusal of a server is sure.
    let attempts: Vec<u32> = server.names().iter().map(|(_, attempt)| *attempt).collect();
    assert_eq!(attempts, [0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 7]);
    // It is as patient as with a server that does not answer.
    let server = Server::start(&[Behaviour::Yes, Behaviour::Page(404), Behaviour::Page(404)]);
    let mut settings = settings(&[&server]);
    settings.backoff.give_up_after = Some(Duration::ZERO);
    let (outcome, _) = forward(&settings, line.repeat(2).as_bytes());
    let error = outcome.unwrap_err();
    assert!(
        matches!(error, ForwardError::Send(SendError::GaveUp { .. })),
        "{error}"
    );
}

#[test]
fn a_refusal_of_a_batch_is_final_whatever_was_taken() {
    let line = "x".repeat(1 << 20) + "\n";
    for answer in [
        Behaviour::Page(413),
        Behaviour::Code(400, "bad_request"),
        Behaviour::Code(415, "x"),
    ] {
        let server = Server::start(&[Behaviour::Yes, answer]);
        let (outcome, totals) = forward(&settings(&[&server]), line.repeat(2).as_bytes());
        let error = outcome.unwrap_err();
        assert!(
            matches!(error, ForwardError::Send(SendError::Refused { .. })),
            "{error}"
        );
        assert_eq!(totals.accepted, 1);
    }
}

#[test]
fn another_server_takes_what_a_foreign_one_does_not() {
    let (foreign, server) = (
        Server::start(&[Behaviour::Page(404); 100]),
        Server::start(&[]),
    );
    let (outcome, totals) = forward(&settings(&[&foreign, &server]), b"a\n");
    outcome.unwrap();
    assert_eq!((totals.accepted, server.text()), (1, b"a\n".to_vec()));
}

#[test]
fn a_follower_keeps_its_position_while_something_else_answers() {
    let mut bench = Bench::new();
    bench.append("a.log", "1\n");
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "1\n");
    bench.append("a.log", "2\n");
    let script = [
        Behaviour::Page(404),
        Behaviour::Page(200),
        Behaviour::Code(401, "unauthorized"),
    ];
    bench.server.script.lock().unwrap().extend(script);
    assert_eq!(bench.poll(&mut tail), "2\n");
    assert_eq!(bench.server.left(), 0);
    drop(tail);
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "");
}

#[test]
fn rejected_lines_are_counted_and_the_rest_goes_on() {
    let server = Server::start(&[Behaviour::Partly, Behaviour::NoLine]);
    let line = "x".repeat(1 << 20) + "\n";
    let (outcome, totals) = forward(&settings(&[&server]), line.repeat(3).as_bytes());
    outcome.unwrap();
    assert_eq!(totals.accepted + totals.rejected, 3);
    assert_eq!(totals.rejected, 2);
}

#[test]
fn it_gives_up_when_it_may() {
    let server = Server::start(&[Behaviour::Status(503); 1000]);
    let mut settings = settings(&[&server]);
    settings.backoff.give_up_after = Some(Duration::ZERO);
    let (outcome, _) = forward(&settings, b"a\n");
    assert!(matches!(
        outcome,
        Err(ForwardError::Send(SendError::GaveUp { .. }))
    ));
    assert!(server.received.lock().unwrap().is_empty());
}

#[test]
fn files_carry_their_path_and_may_be_compressed() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&[]);
    let path = directory.path().join("a.log.zst");
    fs::write(&path, zstd::encode_all(&b"a\nb"[..], 1).unwrap()).unwrap();
    let mut settings = settings(&[&server]);
    settings.inputs = vec![path.clone()];
    let totals = run(&settings, &Arc::default()).unwrap();
    assert_eq!((totals.accepted, server.text()), (2, b"a\nb".to_vec()));
    assert!(server.queries()[0].ends_with("a.log.zst"));
    settings.inputs = vec![directory.path().join("missing")];
    assert!(matches!(
        run(&settings, &Arc::default()),
        Err(ForwardError::Input { .. })
    ));
}

/// A directory with logs, a server, and a forwarder that is started and stopped.
struct Bench {
    directory: tempfile::TempDir,
    server: Server,
    sender: Sender,
    totals: Totals,
    now: Instant,
    read_options: ReadOptions,
}

impl Bench {
    fn new() -> Bench {
        let server = Server::start(&[]);
        Bench {
            directory: tempfile::tempdir().unwrap(),
            sender: Sender::new(&settings(&[&server]), pause(), Producer::new().unwrap()),
            server,
            totals: Totals::default(),
            now: Instant::now(),
            read_options: ReadOptions::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn append(&self, name: &str, text: &str) {
        let mut options = OpenOptions::new();
        let mut file = options
            .append(true)
            .create(true)
            .open(self.path(name))
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn following(&self, inputs: &[PathBuf]) -> Settings {
        let mut settings = settings(&[&self.server]);
        settings.inputs = inputs.to_vec();
        settings.read_options = self.read_options.clone();
        settings
    }

    fn start(&self, pattern: &str) -> Tail {
        let settings = self.following(&[self.path(pattern)]);
        let state = self.path("state/positions.json");
        Tail::open(&settings, &state, Vec::new(), self.now).unwrap()
    }

    /// Polls, a second later each time, until nothing moves; gives what arrived since.
    fn poll(&mut self, tail: &mut Tail) -> String {
        loop {
            self.now += Duration::from_secs(1);
            if !tail
                .poll(self.now, &mut self.sender, &mut self.totals)
                .unwrap()
            {
                break;
            }
        }
        let text = String::from_utf8(self.server.text()).unwrap();
        self.server.received.lock().unwrap().clear();
        text
    }
}

#[test]
fn a_restart_goes_on_where_it_was() {
    let mut bench = Bench::new();
    bench.append("a.log", "1\n2\npart");
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "1\n2\n");
    assert_eq!(bench.poll(&mut tail), "");
    bench.append("a.log", "ial\n3\n");
    assert_eq!(bench.poll(&mut tail), "partial\n3\n");
    drop(tail);
    bench.append("a.log", "4\n");
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "4\n");
}

#[test]
fn rotation_by_rename_loses_and_repeats_nothing() {
    let mut bench = Bench::new();
    bench.append("a.log", "1\n");
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "1\n");
    bench.append("a.log", "2\n");
    fs::rename(bench.path("a.log"), bench.path("a.log.1")).unwrap();
    // The daemon writes on into the old file, then opens the new one.
    bench.append("a.log.1", "3\nwithout end");
    bench.append("a.log", "4\n");
    assert_eq!(bench.poll(&mut tail), "2\n3\n4\n");
    bench.now += Duration::from_secs(61);
    assert_eq!(bench.poll(&mut tail), "without end");
    bench.append("a.log", "5\n");
    assert_eq!(bench.poll(&mut tail), "5\n");
}

#[test]
fn rotation_while_nobody_looks_loses_and_repeats_nothing() {
    let mut bench = Bench::new();
    bench.append("a.log", "1\n");
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "1\n");
    drop(tail);
    bench.append("a.log", "2\n");
    fs::rename(bench.path("a.log"), bench.path("a.log.1")).unwrap();
    bench.append("a.log", "3\n");
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "2\n3\n");
    drop(tail);
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "");
}

/// Files that were made and rotated while nobody looked are found between the one that was followed and the newest.
#[test]
fn several_rotations_while_nobody_looks_lose_and_repeat_nothing() {
    let names: [[&str; 3]; 4] = [
        ["a.log.3", "a.log.2", "a.log.1"],
        ["a.log-20261127", "a.log-20261128", "a.log-20261129"],
        ["a-20261127.log", "a-20261128.log", "a-20261129.log"],
        ["a.log.3", "a.log.2.gz", "a.log.1"],
    ];
    for [first, second, third] in names {
        let mut bench = Bench::new();
        // Those from before the first start are not asked for, and others are not related.
        bench.append("a.log.9", "old\n");
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let old = File::options().append(true).open(bench.path("a.log.9"));
        old.unwrap().set_modified(hour_ago).unwrap();
        bench.append("a.log", "1\n");
        let mut tail = bench.start("a.log");
        assert_eq!(bench.poll(&mut tail), "1\n");
        drop(tail);
        bench.append("a.log", "2\n");
        fs::rename(bench.path("a.log"), bench.path(first)).unwrap();
        let plain = second.trim_end_matches(".gz");
        bench.append(plain, "3\n");
        if second != plain {
            bench.compress(plain, second);
        }
        bench.append(third, "4\n");
        bench.append("a.log", "5\n");
        bench.append("a.log.bak", "other\n");
        bench.append("ab.log.1", "other\n");
        let mut tail = bench.start("a.log");
        let found = bench.poll_long(&mut tail);
        let mut lines: Vec<&str> = found.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["2", "3", "4", "5"], "{second}");
        drop(tail);
        let mut tail = bench.start("a.log");
        assert_eq!(bench.poll_long(&mut tail), "", "{second}");
    }
}

/// A link of the newest of several files leads to another one after a while.
#[test]
fn a_link_that_leads_elsewhere_loses_and_repeats_nothing() {
    let mut bench = Bench::new();
    let link = |bench: &Bench, to: &str| {
        let _ = fs::remove_file(bench.path("now.log"));
        std::os::unix::fs::symlink(bench.path(to), bench.path("now.log")).unwrap();
    };
    bench.append("day-1", "1\n");
    link(&bench, "day-1");
    let mut tail = bench.start("now.log");
    assert_eq!(bench.poll(&mut tail), "1\n");
    drop(tail);
    bench.append("day-1", "2\n");
    bench.append("day-2", "3\n");
    link(&bench, "day-2");
    let mut tail = bench.start("now.log");
    assert_eq!(bench.poll(&mut tail), "2\n3\n");
    drop(tail);
    let mut tail = bench.start("now.log");
    assert_eq!(bench.poll(&mut tail), "");
}

/// logrotate's `olddir`: in the directory of the file, or beside it.
#[test]
fn files_that_are_moved_elsewhere_lose_and_repeat_nothing() {
    for (file, old) in [("a.log", "old/a.log.1"), ("app/a.log", "old/a.log.1")] {
        let mut bench = Bench::new();
        for name in [file, old] {
            fs::create_dir_all(bench.path(name).parent().unwrap()).unwrap();
        }
        bench.append(file, "1\n");
        let mut tail = bench.start(file);
        assert_eq!(bench.poll(&mut tail), "1\n");
        // While it is followed.
        fs::rename(bench.path(file), bench.path(old)).unwrap();
        bench.append(old, "2\n");
        bench.append(file, "3\n");
        assert_eq!(bench.poll(&mut tail), "2\n3\n", "{file}");
        drop(tail);
        // And while nobody looks.
        bench.append(file, "4\n");
        fs::rename(bench.path(file), bench.path(old)).unwrap();
        bench.append(file, "5\n");
        let mut tail = bench.start(file);
        assert_eq!(bench.poll(&mut tail), "4\n5\n", "{file}");
        drop(tail);
        let mut tail = bench.start(file);
        assert_eq!(bench.poll(&mut tail), "", "{file}");
    }
}

/// What was moved there is compressed, too.
#[test]
fn the_rest_of_a_file_that_was_moved_and_compressed_is_sent() {
    for pattern in ["**/a.log*", "a.log"] {
        let mut bench = Bench::new();
        fs::create_dir(bench.path("old")).unwrap();
        bench.append("a.log", "1\n2\n");
        let mut tail = bench.start(pattern);
        assert_eq!(bench.poll(&mut tail), "1\n2\n");
        drop(tail);
        bench.append("a.log", "3\n");
        bench.compress("a.log", "old/a.log.1.gz");
        bench.append("a.log", "4\n");
        let mut tail = bench.start(pattern);
        let text = bench.poll_long(&mut tail);
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["3", "4"], "{pattern}");
    }
}

#[test]
fn truncation_starts_anew() {
    let mut bench = Bench::new();
    bench.append("a.log", "1\n2\n");
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "1\n2\n");
    File::create(bench.path("a.log")).unwrap();
    bench.append("a.log", "3\n");
    assert_eq!(bench.poll(&mut tail), "3\n");
    // Emptied and grown beyond where it was, between two looks.
    File::create(bench.path("a.log")).unwrap();
    bench.append("a.log", "4\n5\n6\n");
    assert_eq!(bench.poll(&mut tail), "4\n5\n6\n");
    drop(tail);
    File::create(bench.path("a.log")).unwrap();
    bench.append("a.log", "7\n8\n9\n10\n");
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "7\n8\n9\n10\n");
}

/// NUL bytes that a program leaves in front of a line, wherever a batch begins.
#[test]
fn holes_within_a_file_are_skipped() {
    let mut bench = Bench::new();
    let hole = "\0".repeat(5000);
    let short = "\0".repeat(15);
    bench.append("a.log", &format!("{hole}1\n2\n{hole}3\n{short}4\n{hole}"));
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), format!("1\n2\n3\n{short}4\n"));
    bench.append("a.log", "5\n");
    assert_eq!(bench.poll(&mut tail), "5\n");
}

#[test]
fn globs_find_new_files_and_know_renamed_ones() {
    let mut bench = Bench::new();
    bench.append("a.log", "1\n");
    let mut tail = bench.start("*.log*");
    assert_eq!(bench.poll(&mut tail), "1\n");
    bench.append("b.log", "2\n");
    assert_eq!(bench.poll(&mut tail), "2\n");
    fs::rename(bench.path("a.log"), bench.path("a.log.1")).unwrap();
    bench.append("a.log", "3\n");
    fs::write(bench.path("c.log.bz2"), b"BZh91AY&SY..").unwrap();
    assert_eq!(bench.poll(&mut tail), "3\n");
    drop(tail);
    let mut tail = bench.start("*.log*");
    assert_eq!(bench.poll(&mut tail), "");
}

/// What a pattern finds under its new name, after it is followed no longer under the old one.
#[test]
fn renamed_files_are_not_sent_again_later() {
    let mut bench = Bench::new();
    bench.append("a.log", "1\n");
    let mut tail = bench.start("*.log*");
    assert_eq!(bench.poll(&mut tail), "1\n");
    fs::rename(bench.path("a.log"), bench.path("a.log.1")).unwrap();
    bench.append("a.log", "2\n");
    assert_eq!(bench.poll(&mut tail), "2\n");
    for _ in 0..3 {
        bench.now += Duration::from_secs(61);
        assert_eq!(bench.poll(&mut tail), "");
    }
    bench.append("a.log.1", "late\n");
    assert_eq!(bench.poll(&mut tail), "late\n");
    drop(tail);
    let mut tail = bench.start("*.log*");
    assert_eq!(bench.poll(&mut tail), "");
}

/// A file is renamed between the start of a run and its first look, and that run is killed before it remembers
/// where it is: only the spool knows.
#[test]
fn a_file_that_was_found_under_its_new_name_is_not_sent_again() {
    let mut bench = Bench::new();
    bench.append("a.log", "1\n");
    let mut tail = bench.start("a.log*");
    assert_eq!(bench.poll(&mut tail), "1\n");
    drop(tail);
    let state = bench.path("state/positions.json");
    let stale = fs::read(&state).unwrap();
    let mut tail = bench.start("a.log*");
    fs::rename(bench.path("a.log"), bench.path("a.log.1")).unwrap();
    bench.append("a.log.1", "2\n");
    assert_eq!(bench.poll(&mut tail), "2\n");
    drop(tail);
    let (_, others) = position::StateFile::open(&state).unwrap();
    fs::write(&state, stale).unwrap();
    let settings = bench.following(&[bench.path("a.log*")]);
    let mut tail = Tail::open(&settings, &state, others, bench.now).unwrap();
    assert_eq!(bench.poll(&mut tail), "");
    bench.append("a.log.1", "3\n");
    assert_eq!(bench.poll(&mut tail), "3\n");
}

/// More rotations within a minute than positions are remembered of one name.
#[test]
fn many_files_that_were_renamed_are_not_sent_again() {
    let mut bench = Bench::new();
    let mut tail = bench.start("a.log*");
    for number in 0..30 {
        bench.append("a.log", &format!("{number}\n"));
        assert_eq!(bench.poll(&mut tail), format!("{number}\n"));
        let to = bench.path(&format!("a.log.{number}"));
        fs::rename(bench.path("a.log"), to).unwrap();
        if number == 20 {
            drop(tail);
            tail = bench.start("a.log*");
        }
    }
    for _ in 0..3 {
        bench.now += Duration::from_secs(61);
        assert_eq!(bench.poll(&mut tail), "");
    }
    drop(tail);
    let mut tail = bench.start("a.log*");
    for _ in 0..3 {
        bench.now += Duration::from_secs(61);
        assert_eq!(bench.poll(&mut tail), "");
    }
}

impl Bench {
    /// Compresses a file, as rotation does.
    fn compress(&self, from: &str, to: &str) {
        let content = fs::read(self.path(from)).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        encoder.write_all(&content).unwrap();
        fs::write(self.path(to), encoder.finish().unwrap()).unwrap();
        fs::remove_file(self.path(from)).unwrap();
    }

    /// Polls until compressed files have been quiet for long enough.
    fn poll_long(&mut self, tail: &mut Tail) -> String {
        let mut text = String::new();
        for _ in 0..4 {
            self.now += Duration::from_secs(31);
            text += &self.poll(tail);
        }
        text
    }
}

/// The file is followed while it is renamed and compressed, and nothing comes of it again.
#[test]
fn compressed_files_that_were_followed_are_not_sent_again() {
    let mut bench = Bench::new();
    bench.append("a.log", "1\n2\n");
    let mut tail = bench.start("a.log*");
    assert_eq!(bench.poll(&mut tail), "1\n2\n");
    fs::rename(bench.path("a.log"), bench.path("a.log.1")).unwrap();
    bench.append("a.log.1", "3\n");
    bench.append("a.log", "4\n");
    bench.compress("a.log.1", "a.log.1.gz");
    assert_eq!(bench.poll_long(&mut tail), "3\n4\n");
    fs::rename(bench.path("a.log.1.gz"), bench.path("a.log.2.gz")).unwrap();
    assert_eq!(bench.poll_long(&mut tail), "");
    drop(tail);
    let mut tail = bench.start("a.log*");
    assert_eq!(bench.poll_long(&mut tail), "");
}

/// Rotation and compression while nobody looks: only the rest is sent, whether a pattern matches what
/// came of it or not.
#[test]
fn the_rest_of_a_file_that_was_compressed_is_sent() {
    for pattern in ["a.log*", "a.log"] {
        let mut bench = Bench::new();
        bench.append("a.log", "1\n2\n");
        let mut tail = bench.start(pattern);
        assert_eq!(bench.poll(&mut tail), "1\n2\n");
        drop(tail);
        bench.append("a.log", "3\nwithout end");
        bench.compress("a.log", "a.log.1.gz");
        bench.append("a.log", "4\n");
        let mut tail = bench.start(pattern);
        let mut text = bench.poll_long(&mut tail);
        text = text.replace("without end", "without end\n");
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["3", "4", "without end"], "{pattern}");
        drop(tail);
        let mut tail = bench.start(pattern);
        assert_eq!(bench.poll_long(&mut tail), "", "{pattern}");
    }
}

/// Compressed files of which nothing is known are read once, those that are damaged or still being
/// written as far as they go.
#[test]
fn compressed_files_are_read_once() {
    let mut bench = Bench::new();
    bench.append("plain", "1\n2\n");
    bench.compress("plain", "old.log.gz");
    let zstd = zstd::encode_all(&b"3\n4\n"[..], 1).unwrap();
    fs::write(bench.path("older.log.zst"), &zstd).unwrap();
    fs::write(bench.path("bad.log.gz"), b"\x1f\x8bnonsense").unwrap();
    let long: String = (0..50_000).map(|n| format!("{n} {}\n", n * 7919)).collect();
    bench.append("plain", &long);
    bench.compress("plain", "cut.log.gz");
    let whole = fs::read(bench.path("cut.log.gz")).unwrap();
    fs::write(bench.path("cut.log.gz"), &whole[..whole.len() / 2]).unwrap();
    let mut tail = bench.start("*.log*");
    assert_eq!(bench.poll(&mut tail), "", "they may still be written");
    let first = bench.poll_long(&mut tail);
    assert!(
        first.lines().count() > 10_000,
        "what there is of one that ends early is sent"
    );
    assert_eq!(bench.poll_long(&mut tail), "");
    fs::write(bench.path("cut.log.gz"), &whole).unwrap();
    let second = bench.poll_long(&mut tail);
    drop(tail);
    let mut tail = bench.start("*.log*");
    assert_eq!(bench.poll_long(&mut tail), "");
    let all = first + &second;
    let mut found: Vec<&str> = all.lines().collect();
    let mut expected: Vec<&str> = long.lines().chain(["1", "2", "3", "4"]).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert!(
        found == expected,
        "{} of {} lines",
        found.len(),
        expected.len()
    );
}

/// What an earlier run held of a line goes on in what the file was compressed to.
#[test]
fn parts_go_on_in_compressed_files() {
    let mut bench = Bench::new();
    bench.append(
        "0.log",
        &(cri("stdout", "F", "a") + &cri("stdout", "P", "b ")),
    );
    let mut tail = bench.start("0.log");
    assert_eq!(bench.poll(&mut tail), "stream=stdout a\n");
    drop(tail);
    bench.append("0.log", &cri("stdout", "F", "c"));
    bench.compress("0.log", "0.log.20260302-000006.gz");
    bench.append("0.log", &cri("stderr", "F", "d"));
    let mut tail = bench.start("0.log");
    let text = bench.poll_long(&mut tail);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["stream=stderr d", "stream=stdout b c"]);
}

#[test]
fn what_is_not_acknowledged_is_not_remembered() {
    let mut bench = Bench::new();
    bench.append("a.log", "1\n");
    let mut tail = bench.start("a.log");
    let refusing = Server::start(&[Behaviour::Status(403)]);
    let mut sender = Sender::new(&settings(&[&refusing]), pause(), Producer::new().unwrap());
    assert!(
        tail.poll(bench.now, &mut sender, &mut bench.totals)
            .is_err()
    );
    drop(tail);
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "1\n");
}

#[test]
fn positions_that_make_no_sense_cost_repetition_only() {
    let mut bench = Bench::new();
    bench.append("a.log", "1\n");
    fs::create_dir(bench.path("state")).unwrap();
    fs::write(bench.path("state/positions.json"), b"{\"version\":1,\"fil").unwrap();
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "1\n");
    assert!(bench.path("state/positions.json.bad").exists());
    let settings = bench.following(&[bench.path("a.log")]);
    let state = bench.path("state/positions.json");
    let second = Tail::open(&settings, &state, Vec::new(), bench.now);
    assert!(matches!(second, Err(ForwardError::StateInUse(_))));
}

#[test]
fn tail_needs_files() {
    let state = Path::new("/nowhere/state");
    let open = |inputs: Vec<PathBuf>| {
        let mut settings = settings(&[&Server::gone()]);
        settings.inputs = inputs;
        Tail::open(&settings, state, Vec::new(), Instant::now())
    };
    for inputs in [vec![], vec![PathBuf::from("-")]] {
        let tail = open(inputs);
        assert!(matches!(tail, Err(ForwardError::NothingToTail)));
    }
    let tail = open(vec!["/tmp/a[".into()]);
    assert!(matches!(tail, Err(ForwardError::Pattern { .. })));
}

/// Lines that reached the spool are not read again, also if their position was not remembered.
#[test]
fn positions_are_known_from_the_spool() {
    let bench = Bench::new();
    bench.append("a.log", "1\n2\n");
    let mut settings = settings(&[&bench.server]);
    settings.backoff.give_up_after = Some(Duration::ZERO);
    let of = SpoolSettings {
        path: bench.path("spool"),
        bytes_max: 4 << 20,
        drops_when_full: false,
    };
    let open = |settings: &Settings| {
        let sender = Sender::new(settings, pause(), Producer::new().unwrap());
        spool::Spool::open(&of, settings, sender, Producer::new().unwrap()).unwrap()
    };
    let follow = |mut spool: spool::Spool, state: &str| {
        let following = bench.following(&[bench.path("a.log")]);
        let positions = spool.positions();
        let mut tail = Tail::open(&following, &bench.path(state), positions, bench.now).unwrap();
        let mut totals = Totals::default();
        while tail.poll(bench.now, &mut spool, &mut totals).unwrap() {}
        spool.finish().unwrap()
    };
    // Nobody takes them: they stay in the spool, and the positions are lost.
    let mut unreachable = settings.clone();
    unreachable.addresses = vec![Address::parse(&Server::gone().url()).unwrap()];
    assert_eq!(follow(open(&unreachable), "first.json").rest.0, 2);
    bench.append("a.log", "3\n");
    assert_eq!(follow(open(&settings), "second.json").rest.0, 0);
    assert_eq!(bench.server.text(), b"1\n2\n3\n");
    // The spool is empty by now; its marks remember.
    bench.append("a.log", "4\n");
    follow(open(&settings), "third.json");
    assert_eq!(bench.server.text(), b"1\n2\n3\n4\n");
}

#[test]
fn the_end_may_wait_for_copies() {
    let server = Server::start(&[Behaviour::NotYet, Behaviour::NotYet, Behaviour::NotYet]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.log");
    fs::write(&path, b"a\n").unwrap();
    let mut settings = settings(&[&server]);
    settings.inputs = vec![path];
    settings.waits_for_replication = true;
    assert_eq!(run(&settings, &Arc::default()).unwrap().accepted, 1);
    assert_eq!(server.left(), 0, "it was asked until it said yes");
    // Or not.
    let server = Server::start(&[Behaviour::NotYet, Behaviour::NotYet]);
    settings.addresses = vec![Address::parse(&server.url()).unwrap()];
    settings.waits_for_replication = false;
    assert_eq!(run(&settings, &Arc::default()).unwrap().accepted, 1);
    assert_eq!(server.left(), 1);
}

/// What a server says of its load is heard; a server is kept for a while all the same.
#[test]
fn a_busy_server_is_kept_for_a_while() {
    let (busy, other) = (Server::start(&[Behaviour::Enough; 100]), Server::start(&[]));
    let settings = settings(&[&busy, &other]);
    let mut sender = Sender::new(&settings, pause(), Producer::new().unwrap());
    let taken = sender
        .send(Records::Lines(b"a\n"), &Origin::default())
        .unwrap();
    assert!(taken.is_busy);
    sender
        .send(Records::Lines(b"b\n"), &Origin::default())
        .unwrap();
    assert_eq!(
        (busy.text(), other.text()),
        (b"a\nb\n".to_vec(), Vec::new())
    );
}

fn cri(stream: &str, tag: &str, text: &str) -> String {
    format!("2026-03-02T00:00:06.1Z {stream} {tag} {text}\n")
}

fn docker(stream: &str, text: &str) -> String {
    format!("{{\"log\":\"{text}\",\"stream\":\"{stream}\",\"time\":\"2026-03-02T00:00:06Z\"}}\n")
}

#[test]
fn lines_of_containers_are_unwrapped_and_joined() {
    let mut bench = Bench::new();
    bench.append("a.log", &docker("stdout", "one \\u003c2\\n"));
    bench.append("a.log", &docker("stdout", "part "));
    bench.append("a.log", "no JSON\n");
    bench.append("b.log", "{\"log\":1}\n");
    let mut tail = bench.start("*.log");
    let first = "stream=stdout one <2\nno JSON\n{\"log\":1}\n";
    assert_eq!(bench.poll(&mut tail), first);
    bench.append("a.log", &docker("stderr", "between\\n"));
    bench.append("a.log", &docker("stdout", "of it\\n"));
    assert_eq!(
        bench.poll(&mut tail),
        "stream=stderr between\nstream=stdout part of it\n"
    );
    assert_eq!((bench.totals.accepted, bench.totals.unfit), (5, 1));
}

/// Whatever is held when a follower ends, the next one reads it again, and nothing else.
#[test]
fn a_restart_between_parts_loses_and_repeats_nothing() {
    let mut bench = Bench::new();
    let pieces = [
        cri("stdout", "P", "a "),
        cri("stderr", "F", "b"),
        cri("stderr", "P", "c "),
        cri("stdout", "F", "d"),
        cri("stdout", "P", "e "),
        cri("stderr", "F", "f"),
        "no such line\n".to_owned(),
        cri("stdout", "F", "g"),
    ];
    let mut text = String::new();
    for piece in &pieces {
        bench.append("a.log", piece);
        let mut tail = bench.start("a.log");
        text += &bench.poll(&mut tail);
    }
    let expected = [
        "stream=stderr b",
        "stream=stdout a d",
        "stream=stderr c f",
        "no such line",
        "stream=stdout e g",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_part_whose_rest_does_not_come_is_sent_after_a_while() {
    let mut bench = Bench::new();
    bench.append("a.log", &cri("stdout", "P", "name: "));
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "");
    bench.now += Duration::from_secs(11);
    assert_eq!(bench.poll(&mut tail), "stream=stdout name: \n");
    bench.append("a.log", &cri("stdout", "F", "x"));
    drop(tail);
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "stream=stdout x\n");
    assert_eq!(bench.totals.unfinished, 1);
}

/// A runtime may begin a new file in the middle of a line.
#[test]
fn lines_are_joined_over_a_rotation() {
    let mut bench = Bench::new();
    bench.append(
        "0.log",
        &(cri("stdout", "P", "a ") + &cri("stderr", "P", "b ")),
    );
    let mut tail = bench.start("0.log");
    assert_eq!(bench.poll(&mut tail), "");
    fs::rename(bench.path("0.log"), bench.path("0.log.1")).unwrap();
    bench.append("0.log.1", &cri("stdout", "P", "c "));
    bench.append("0.log", "");
    assert_eq!(bench.poll(&mut tail), "");
    bench.append("0.log", &cri("stdout", "F", "d"));
    assert_eq!(bench.poll(&mut tail), "stream=stdout a c d\n");
    bench.append("0.log", &cri("stderr", "F", "e"));
    assert_eq!(bench.poll(&mut tail), "stream=stderr b e\n");
    bench.now += Duration::from_secs(61);
    assert_eq!(bench.poll(&mut tail), "");
    drop(tail);
    let mut tail = bench.start("0.log");
    assert_eq!(bench.poll(&mut tail), "");
}

/// The same with a follower that is started anew at each step.
#[test]
fn lines_are_joined_over_a_rotation_and_restarts() {
    let mut bench = Bench::new();
    let mut text = String::new();
    let mut step = |bench: &mut Bench, name: &str, piece: &str| {
        bench.append(name, piece);
        let mut tail = bench.start("0.log");
        text += &bench.poll(&mut tail);
    };
    step(&mut bench, "0.log", &cri("stdout", "P", "a "));
    step(&mut bench, "0.log", &cri("stderr", "P", "b "));
    fs::rename(bench.path("0.log"), bench.path("0.log.1")).unwrap();
    step(&mut bench, "0.log.1", &cri("stdout", "P", "c "));
    step(&mut bench, "0.log", &cri("stdout", "F", "d"));
    step(&mut bench, "0.log", &cri("stdout", "F", "between"));
    step(&mut bench, "0.log", &cri("stderr", "P", "e "));
    step(&mut bench, "0.log", &cri("stderr", "F", "f"));
    step(&mut bench, "0.log", &cri("stderr", "F", "last"));
    let expected = [
        "stream=stdout a c d",
        "stream=stdout between",
        "stream=stderr b e f",
        "stream=stderr last",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

/// A line that goes on much later does so in another file, which nobody has seen.
#[test]
fn lines_are_not_joined_over_a_gap() {
    let mut bench = Bench::new();
    bench.append("0.log", &cri("stdout", "P", "a "));
    let mut tail = bench.start("0.log");
    assert_eq!(bench.poll(&mut tail), "");
    drop(tail);
    fs::rename(bench.path("0.log"), bench.path("0.log.1")).unwrap();
    bench.append("0.log", "2026-03-02T01:00:06Z stdout F b\n");
    let mut tail = bench.start("0.log");
    assert_eq!(bench.poll(&mut tail), "stream=stdout a \nstream=stdout b\n");
}

#[test]
fn emptied_files_give_what_was_held_of_them() {
    let mut bench = Bench::new();
    bench.append("0.log", &cri("stdout", "P", "a "));
    let mut tail = bench.start("0.log");
    assert_eq!(bench.poll(&mut tail), "");
    File::create(bench.path("0.log")).unwrap();
    bench.append("0.log", "now it is text\n");
    assert_eq!(bench.poll(&mut tail), "stream=stdout a \nnow it is text\n");
    drop(tail);
    let mut tail = bench.start("0.log");
    assert_eq!(bench.poll(&mut tail), "");
}

#[test]
fn inputs_that_end_are_unwrapped_too() {
    let server = Server::start(&[]);
    let mut settings = settings(&[&server]);
    let input = cri("stdout", "P", "a ") + &cri("stdout", "F", "b") + &cri("stderr", "P", "c");
    let (outcome, totals) = forward(&settings, input.as_bytes());
    outcome.unwrap();
    assert_eq!(server.text(), b"stream=stdout a b\nstream=stderr c\n");
    assert_eq!((totals.accepted, totals.unfinished), (2, 1));
    // As they are, if that is asked for.
    let server = Server::start(&[]);
    settings.addresses = vec![Address::parse(&server.url()).unwrap()];
    settings.read_options.format = Some(Format::Lines);
    forward(&settings, input.as_bytes()).0.unwrap();
    assert_eq!(server.text(), input.as_bytes());
}

/// Records of several lines, with a follower that is started anew after each line, and a rotation.
#[test]
fn lines_of_a_record_are_one() {
    let mut bench = Bench::new();
    bench.read_options.rule = Some(Rule::stacktrace());
    bench.read_options.record_wait = Duration::from_secs(600);
    let mut text = String::new();
    let lines = [
        "first",
        "failed",
        "java.lang.Error: x",
        "\tat a.b(c:1)",
        "Caused by: y",
        "... 2 more",
        "next",
        " indented",
        "last",
    ];
    for (number, line) in lines.into_iter().enumerate() {
        if number == 3 {
            fs::rename(bench.path("a.log"), bench.path("a.log.1")).unwrap();
        }
        bench.append("a.log", &format!("{line}\n"));
        let mut tail = bench.start("a.log");
        text += &bench.poll(&mut tail);
    }
    let expected = [
        "first",
        r"failed\njava.lang.Error: x\n\tat a.b(c:1)\nCaused by: y\n... 2 more",
        r"next\n indented",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    bench.read_options.record_wait = Duration::from_secs(1);
    let mut tail = bench.start("a.log");
    bench.poll(&mut tail);
    assert_eq!(bench.totals.accepted, 4);
    drop(tail);
    let mut tail = bench.start("a.log");
    assert_eq!(bench.poll(&mut tail), "");
}

/// A trace with lines that only a later one takes along, with a follower that is started anew after each
/// line, and a rotation before each of them.
#[test]
fn a_record_is_one_wherever_it_is_interrupted() {
    let lines = [
        "2026-03-02 00:00:06 INFO first",
        "2026-03-02 00:00:06 ERROR failed",
        "java.lang.Error: x",
        "y",
        "",
        "z",
        "\tat a.b(c:1)",
        "",
        "Caused by: d.E: f",
        "\tat g.h(i:1)",
        "2026-03-02 00:00:07 INFO next",
    ];
    for rule in [Rule::auto(), Rule::stacktrace()] {
        for rotated in 1..lines.len() {
            let mut bench = Bench::new();
            bench.read_options.rule = Some(rule.clone());
            bench.read_options.record_wait = Duration::from_secs(600);
            let mut text = String::new();
            for (number, line) in lines.into_iter().enumerate() {
                if number == rotated {
                    fs::rename(bench.path("a.log"), bench.path("a.log.1")).unwrap();
                }
                bench.append("a.log", &format!("{line}\n"));
                let mut tail = bench.start("a.log");
                text += &bench.poll(&mut tail);
            }
            bench.read_options.record_wait = Duration::from_secs(1);
            let mut tail = bench.start("a.log");
            text += &bench.poll(&mut tail);
            let expected = [
                lines[0],
                &lines[1..10].join("\\n").replace('\t', "\\t"),
                lines[10],
            ];
            let found: Vec<&str> = text.lines().collect();
            assert_eq!(found, expected, "{rule:?}, rotated before line {rotated}");
        }
    }
}

/// Lines that are held when a file is rotated, and belong to no record, are there once.
#[test]
fn held_lines_of_a_rotated_file_are_there_once() {
    let mut bench = Bench::new();
    bench.read_options.rule = Some(Rule::auto());
    bench.read_options.record_wait = Duration::from_secs(600);
    bench.append("a.log", "java.lang.Error: x\ny\nz\n");
    let mut tail = bench.start("a.log");
    let mut text = bench.poll(&mut tail);
    fs::rename(bench.path("a.log"), bench.path("a.log.1")).unwrap();
    bench.append("a.log", "INFO next\nlast\n");
    text += &bench.poll(&mut tail);
    drop(tail);
    let mut tail = bench.start("a.log");
    text += &bench.poll(&mut tail);
    drop(tail);
    bench.read_options.record_wait = Duration::from_secs(1);
    let mut tail = bench.start("a.log");
    text += &bench.poll(&mut tail);
    assert_eq!(
        text.replace("\\n", "\n"),
        "java.lang.Error: x\ny\nz\nINFO next\nlast\n"
    );
}

/// The rule of a file is that of its first lines, also when its reading goes on later.
#[test]
fn the_lines_of_a_file_decide_its_rule() {
    let mut bench = Bench::new();
    bench.read_options.rule = Some(Rule::auto());
    bench.read_options.record_wait = Duration::from_secs(600);
    let levels = "INFO a\n".repeat(5);
    bench.append("levels.log", &levels);
    bench.append("plain.log", "a\nb\n");
    let mut tail = bench.start("*.log");
    bench.poll(&mut tail);
    drop(tail);
    bench.append("levels.log", "INFO c\nd\n");
    bench.append("plain.log", "INFO c\nd\n");
    let mut tail = bench.start("*.log");
    let mut text = bench.poll(&mut tail);
    drop(tail);
    bench.read_options.record_wait = Duration::from_secs(1);
    let mut tail = bench.start("*.log");
    text += &bench.poll(&mut tail);
    let mut found: Vec<&str> = text.lines().collect();
    found.sort_unstable();
    assert_eq!(found, ["INFO a", "INFO c", "INFO c\\nd", "b", "d"]);
}

/// What labels of a path say is sent; what is given for all records stands.
#[test]
fn paths_give_labels() {
    let mut bench = Bench::new();
    let directory = "pods/shop_web-1_0c5cd3b8-6d2c/server";
    fs::create_dir_all(bench.path(directory)).unwrap();
    bench.append(&format!("{directory}/0.log"), &cri("stdout", "F", "a"));
    let mut settings = bench.following(&[bench.path("pods/*/*/*.log")]);
    settings.labels.push(("pod".into(), "mine".into()));
    bench.sender = Sender::new(&settings, pause(), Producer::new().unwrap());
    let state = bench.path("state/positions.json");
    let mut tail = Tail::open(&settings, &state, Vec::new(), bench.now).unwrap();
    while tail
        .poll(bench.now, &mut bench.sender, &mut bench.totals)
        .unwrap()
    {}
    let query = bench.server.queries().remove(0);
    let labels = query
        .split("&label=")
        .skip(1)
        .filter(|l| !l.starts_with("file"));
    let expected = [
        "hostname%3Dweb%201",
        "pod%3Dmine",
        "namespace%3Dshop",
        "pod_uid%3D0c5cd3b8-6d2c",
        "container%3Dserver",
    ];
    assert_eq!(labels.collect::<Vec<_>>(), expected);
}
