//! Records pushed as shippers push them: Loki's Protocol Buffers in Snappy, and OTLP over HTTP.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::http::Client;
use super::ingest::{CLIENTS, settle};
use super::messages::text;
use super::pond::{Scratch, TestServer, cpu_seconds, memory_bytes};
use super::table::{Report, Target, median, megabytes};
use crate::run::Outcome;

/// Records pushed.
const RECORDS: u64 = 600_000;

/// Records in a request; Promtail's batches of 1 MiB have some 5000, the batches of OpenTelemetry's
/// SDKs 512.
const REQUEST_RECORDS: u64 = 2000;

/// Bytes of a line.
const LINE_BYTES: usize = 150;

/// Runs of each way, which take turns.
const ROUNDS: usize = 3;

/// The first time, in nanoseconds since 1970.
const START_NANOS: u64 = 1_772_409_600_000_000_000;

/// A way to push.
struct Way {
    name: &'static str,
    path: &'static str,
    bodies: Vec<Vec<u8>>,
}

/// What a run cost.
struct Cost {
    acknowledged: f64,
    settled: f64,
    wall: f64,
    peak: f64,
}

/// Measures both ways.
pub(super) fn measure(program: &Path, report: &mut Report) -> Outcome<()> {
    let columns = [
        "protocol",
        "records per CPU-s, acked",
        "records per CPU-s, settled",
        "wall s until acked",
        "peak memory",
        "target",
    ];
    report.table("Records pushed by shippers' protocols", &columns);
    let requests = || (0..RECORDS).step_by(REQUEST_RECORDS as usize);
    let ways = [
        Way {
            name: "Loki, Protocol Buffers in Snappy",
            path: "/loki/api/v1/push",
            bodies: requests().map(loki).collect::<Outcome<_>>()?,
        },
        Way {
            name: "OTLP over HTTP, Protocol Buffers",
            path: "/v1/logs",
            bodies: requests().map(otlp).collect(),
        },
    ];
    let mut costs: Vec<Vec<Cost>> = ways.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (way, costs) in ways.iter().zip(&mut costs) {
            costs.push(run(program, way)?);
        }
    }
    for (way, costs) in ways.iter().zip(&costs) {
        let middle = |of: fn(&Cost) -> f64| median(&mut costs.iter().map(of).collect::<Vec<_>>());
        let per_second = |seconds: f64| RECORDS as f64 / seconds;
        let settled = per_second(middle(|cost| cost.settled));
        report.row(vec![
            way.name.into(),
            format!("{:.0}k", per_second(middle(|cost| cost.acknowledged)) / 1e3),
            format!("{:.0}k", settled / 1e3),
            format!("{:.1}", middle(|cost| cost.wall)),
            megabytes(middle(|cost| cost.peak)),
            Target::at_least(150e3, ">= 150k records settled").judged(settled),
        ]);
    }
    report.note(format!(
        "{RECORDS} records with different lines of {LINE_BYTES} bytes, {REQUEST_RECORDS} in a request, \
         {CLIENTS} clients. A Loki record has three labels and two fields of its own. An OTLP record has a \
         severity, a trace id, three attributes and two resource attributes. Acked: durable. Settled: in \
         segments, indexed. Medians of {ROUNDS} runs."
    ));
    Ok(())
}

fn run(program: &Path, way: &Way) -> Outcome<Cost> {
    let scratch = Scratch::new("bench-push")?;
    let data = scratch.path().join("data");
    let server = TestServer::start(program, &data, &[])?;
    let (start, before) = (Instant::now(), cpu_seconds(server.pid())?);
    let next = AtomicUsize::new(0);
    let address = server.address("http");
    let push = || -> Outcome<()> {
        let mut client = Client::connect(&address).map_err(|e| e.to_string())?;
        while let Some(body) = way.bodies.get(next.fetch_add(1, Ordering::Relaxed)) {
            let headers = [("content-type", "application/x-protobuf")];
            let answer = client
                .send("POST", way.path, &headers, body)
                .map_err(|e| e.to_string())?;
            let status = answer.status;
            let said = answer.text().map_err(|e| e.to_string())?;
            if !(200..300).contains(&status) {
                return Err(format!("{}: {status} {said}", way.path));
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(push)).collect();
        clients
            .into_iter()
            .try_for_each(|client| client.join().map_err(|_| "a client panicked".to_string())?)
    })?;
    let wall = start.elapsed().as_secs_f64();
    let acknowledged = cpu_seconds(server.pid())? - before;
    settle(&data)?;
    let stored = server.metric("logpond_ingest_records_total")?;
    if stored != RECORDS as f64 {
        return Err(format!("{}: {stored} of {RECORDS} records", way.name));
    }
    Ok(Cost {
        acknowledged,
        settled: cpu_seconds(server.pid())? - before,
        wall,
        peak: memory_bytes(server.pid(), "VmHWM")? as f64,
    })
}

/// `logproto.PushRequest` of the records from this one on.
fn loki(first: u64) -> Outcome<Vec<u8>> {
    let labels = format!(
        "{{app=\"shop\", env=\"prod\", host=\"web-{}\"}}",
        first % 40
    );
    let mut stream = Message::default();
    stream.bytes(1, labels.as_bytes());
    for number in first..first + REQUEST_RECORDS {
        let mut time = Message::default();
        let nanos = START_NANOS + number * 10_000;
        time.varint(1, nanos / 1_000_000_000);
        time.varint(2, nanos % 1_000_000_000);
        let mut entry = Message::default();
        entry.bytes(1, &time.0);
        entry.bytes(2, text(number, LINE_BYTES).as_bytes());
        for (name, value) in [("trace_id", trace_id(number)), ("level", "info".into())] {
            let mut pair = Message::default();
            pair.bytes(1, name.as_bytes());
            pair.bytes(2, value.as_bytes());
            entry.bytes(3, &pair.0);
        }
        stream.bytes(2, &entry.0);
    }
    let mut request = Message::default();
    request.bytes(1, &stream.0);
    let mut encoder = snap::raw::Encoder::new();
    encoder.compress_vec(&request.0).map_err(|e| e.to_string())
}

/// `ExportLogsServiceRequest` of the records from this one on.
fn otlp(first: u64) -> Vec<u8> {
    let mut resource = Message::default();
    resource.bytes(1, &attribute("service.name", &text_value("shop")));
    let host = format!("web-{}", first % 40);
    resource.bytes(1, &attribute("host.name", &text_value(&host)));
    let mut of_scope = Message::default();
    let mut scope = Message::default();
    scope.bytes(1, b"orders");
    of_scope.bytes(1, &scope.0);
    for number in first..first + REQUEST_RECORDS {
        let nanos = START_NANOS + number * 10_000;
        let mut record = Message::default();
        record.fixed64(1, nanos);
        record.varint(2, 9);
        record.bytes(3, b"INFO");
        record.bytes(5, &text_value(&text(number, LINE_BYTES)));
        let mut count = Message::default();
        count.varint(3, number);
        let path = format!("/orders/{}", number % 500);
        let attributes = [
            attribute("http.route", &text_value(&path)),
            attribute("http.method", &text_value("POST")),
            attribute("order", &count.0),
        ];
        for attribute in attributes {
            record.bytes(6, &attribute);
        }
        record.bytes(
            9,
            &u128::from(number)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .to_be_bytes(),
        );
        record.fixed64(11, nanos + 1000);
        of_scope.bytes(2, &record.0);
    }
    let mut of_resource = Message::default();
    of_resource.bytes(1, &resource.0);
    of_resource.bytes(2, &of_scope.0);
    let mut request = Message::default();
    request.bytes(1, &of_resource.0);
    request.0
}

fn trace_id(number: u64) -> String {
    format!(
        "{:032x}",
        u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c)
    )
}

/// `AnyValue` of text.
fn text_value(text: &str) -> Vec<u8> {
    let mut value = Message::default();
    value.bytes(1, text.as_bytes());
    value.0
}

/// `KeyValue`.
fn attribute(name: &str, value: &[u8]) -> Vec<u8> {
    let mut pair = Message::default();
    pair.bytes(1, name.as_bytes());
    pair.bytes(2, value);
    pair.0
}

/// A message of Protocol Buffers as it is written, field by field.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn varint(&mut self, field: u64, value: u64) {
        self.raw_varint(field << 3);
        self.raw_varint(value);
    }

    fn fixed64(&mut self, field: u64, value: u64) {
        self.raw_varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.raw_varint(field << 3 | 2);
        self.raw_varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}
