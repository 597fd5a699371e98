//! Questions that are asked all the time, of any node.

pub(super) mod interfaces;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::Run;
use super::history::{
    Answer, Client, Event, InterfaceQuestion, Micros, Place, QueryResult, Question,
};
use super::load::value;
use super::patience::patient;
use crate::draw::Draw;
use crate::e2e::http::{self, encode};
use crate::run::Outcome;
use interfaces::{Inquiry, Interface};

/// How long a node may take to accept a connection: much longer than one that is up takes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an answer may pause. A node waits for others for seconds, not for a minute.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long somebody who asks waits before the next question.
const PACE: Duration = Duration::from_millis(50);

/// Of 100 questions, how many go through another interface than the native one, if there is one.
const INTERFACE_PERCENT: usize = 70;

/// The most records that are asked for during the load.
const ROWS_MAX: u64 = 2_000;

/// Rows of a page: so few that several are needed.
const PAGE_ROWS: usize = 97;

/// What the trailer of an answer says.
#[derive(Debug, Default)]
pub(super) struct Trailer {
    rows: u64,
    pub(super) is_complete: bool,
    pub(super) missing: Vec<String>,
    is_missing_cut: bool,
    cursor: Option<String>,
    /// Where following goes on.
    pub(super) position: Option<String>,
}

/// Asks until the load stops.
pub(super) fn ask_on(run: &Run, purpose: u64) {
    let mut draw = Draw::new(run.seed, 200 + purpose);
    let nodes = run.nodes();
    while !run.is_load_over() {
        let client = draw.below(run.clients.len());
        if !run.interfaces.is_empty() && draw.below(100) < INTERFACE_PERCENT {
            let interface = draw.one(&run.interfaces);
            let range = range(run, client, &mut draw);
            let event = ask_through(run, interface, (client, range), &mut || *draw.one(&nodes));
            run.history.note(event);
            thread::sleep(PACE);
            continue;
        }
        let question = match draw.below(10) {
            0..=1 => Question::Top,
            2..=4 => Question::Count(client),
            5..=7 => Question::Rows(client, range(run, client, &mut draw)),
            _ => Question::Pages(client, range(run, client, &mut draw)),
        };
        let event = ask(run, &question, &mut || *draw.one(&nodes));
        run.history.note(event);
        thread::sleep(PACE);
    }
}

/// Asks once through an interface.
fn ask_through(
    run: &Run,
    interface: &Interface,
    (client, range): (Client, Range<u64>),
    whom: &mut dyn FnMut() -> Place,
) -> Event {
    let (place, began) = (whom(), run.history.now());
    let mut inquiry = Inquiry {
        run,
        client,
        range,
        place,
        whom,
    };
    let answer = (interface.ask)(&mut inquiry);
    let question = Question::Through(InterfaceQuestion {
        interface: interface.name,
        is_one_view: interface.is_one_view,
        client,
        range: inquiry.range.clone(),
    });
    event(run, question, (inquiry.place, began), answer)
}

/// Some of the records of a client: the newest of all, or any.
fn range(run: &Run, client: Client, draw: &mut Draw) -> Range<u64> {
    let next = run.clients[client].next.load(Ordering::SeqCst);
    let length = draw.within(1, ROWS_MAX);
    match draw.below(2) {
        0 => next.saturating_sub(length)..next + length,
        _ => {
            let from = draw.within(0, next + 1);
            from..from + length
        }
    }
}

/// Asks once; each page is asked of whom `whom` says.
pub(super) fn ask(run: &Run, question: &Question, whom: &mut dyn FnMut() -> Place) -> Event {
    let (mut place, began) = (whom(), run.history.now());
    let answer = match question {
        Question::Pages(client, range) => pages(run, *client, range, &mut place, whom),
        Question::Rows(client, range) => rows(run, place, *client, range, ""),
        Question::Count(client) => count(run, place, *client),
        Question::Top => top(run, place),
        Question::Through(through) => Err(format!("{} is not native", through.interface)),
    };
    event(run, question.clone(), (place, began), answer)
}

/// The event of an answer that has just ended.
fn event(run: &Run, question: Question, (place, began): (Place, Micros), answer: Told) -> Event {
    let ended = run.history.now();
    match answer {
        Ok((found, trailer)) => Event::Answered(Answer {
            question,
            place,
            began,
            ended,
            found,
            is_complete: trailer.is_complete,
            missing: trailer.missing,
            is_missing_cut: trailer.is_missing_cut,
        }),
        Err(why) => Event::Unanswered {
            question,
            place,
            began,
            ended,
            why,
        },
    }
}

/// Gets an answer, line by line, and its trailer.
fn get(
    run: &Run,
    place: Place,
    target: &str,
    mut line: impl FnMut(Value) -> Outcome<()>,
) -> Outcome<Trailer> {
    let address = run.processes[place].http();
    let failed = |e: std::io::Error| format!("{address}: {e}");
    let client =
        http::Client::connect_within(&address, patient(CONNECT_TIMEOUT), patient(ANSWER_TIMEOUT));
    let mut client = client.map_err(failed)?;
    let target = format!("{target}&from=@0");
    let answer = client.send("GET", &target, &[], b"").map_err(failed)?;
    if answer.status != 200 {
        let status = answer.status;
        let text = answer.text().map_err(failed)?;
        return Err(format!("{address}{target}: status {status}: {text}"));
    }
    for text in BufReader::new(answer).lines() {
        let text = text.map_err(failed)?;
        let mut value: Value =
            serde_json::from_str(&text).map_err(|e| format!("{address}{target}: {e}: {text}"))?;
        match value.get_mut("_trailer").map(Value::take) {
            Some(trailer) => return Ok(read_trailer(&trailer)),
            None => line(value)?,
        }
    }
    Err(format!("{address}{target}: no trailer"))
}

pub(super) fn read_trailer(trailer: &Value) -> Trailer {
    let texts = trailer["missing"].as_array().into_iter().flatten();
    Trailer {
        rows: trailer["rows"].as_u64().unwrap_or_default(),
        is_complete: trailer["complete"] == true,
        missing: texts
            .filter_map(|text| text.as_str().map(str::to_owned))
            .collect(),
        is_missing_cut: trailer.get("missing_count").is_some(),
        cursor: trailer["cursor"].as_str().map(str::to_owned),
        position: trailer["position"].as_str().map(str::to_owned),
    }
}

type Told = Outcome<(QueryResult, Trailer)>;

fn count(run: &Run, place: Place, client: Client) -> Told {
    let q = encode(&format!("client={}", run.clients[client].name));
    let trailer = get(
        run,
        place,
        &format!("/api/v1/query?count=true&q={q}"),
        |row| Err(format!("a count has a row: {row}")),
    )?;
    Ok((
        QueryResult::Counts(BTreeMap::from([(client, trailer.rows)])),
        trailer,
    ))
}

fn top(run: &Run, place: Place) -> Told {
    let mut counts = BTreeMap::new();
    let trailer = get(
        run,
        place,
        "/api/v1/top?field=client&n=0&q=torture",
        |row| {
            let known = run
                .clients
                .iter()
                .position(|client| row["value"] == client.name.as_str());
            let client = known.ok_or_else(|| format!("nobody is called so: {row}"))?;
            match counts.insert(client, row["count"].as_u64().unwrap_or_default()) {
                None => Ok(()),
                Some(_) => Err(format!("a value is there twice: {row}")),
            }
        },
    )?;
    Ok((QueryResult::Counts(counts), trailer))
}

fn rows(run: &Run, place: Place, client: Client, range: &Range<u64>, more: &str) -> Told {
    let (name, Range { start, end }) = (&run.clients[client].name, range);
    let q = encode(&format!("client={name} n>={start} n<{end}"));
    let (mut numbers, mut altered) = (Vec::new(), Vec::new());
    let trailer = get(run, place, &format!("/api/v1/query?q={q}{more}"), |row| {
        let number = row["n"]
            .as_u64()
            .ok_or_else(|| format!("a row has no number: {row}"))?;
        let is_right = row["v"] == value(client, number)
            && row["_msg"] == "torture"
            && row["client"] == name.as_str()
            && range.contains(&number);
        if !is_right {
            altered.push(number);
        }
        numbers.push(number);
        Ok(())
    })?;
    if trailer.rows != numbers.len() as u64 {
        let (said, rows) = (trailer.rows, numbers.len());
        return Err(format!("{rows} rows, and the trailer says {said}"));
    }
    Ok((QueryResult::Rows { numbers, altered }, trailer))
}

/// The same a page at a time.
fn pages(
    run: &Run,
    client: Client,
    range: &Range<u64>,
    place: &mut Place,
    whom: &mut dyn FnMut() -> Place,
) -> Told {
    let (mut numbers, mut altered) = (Vec::new(), Vec::new());
    let mut all = Trailer {
        is_complete: true,
        ..Trailer::default()
    };
    let mut cursor = String::new();
    loop {
        let more = format!("&limit={PAGE_ROWS}&cursor={}", encode(&cursor));
        let (found, page) = rows(run, *place, client, range, &more)?;
        if let QueryResult::Rows {
            numbers: n,
            altered: a,
        } = found
        {
            numbers.extend(n);
            altered.extend(a);
        }
        all.is_complete &= page.is_complete;
        all.is_missing_cut |= page.is_missing_cut;
        all.missing.extend(page.missing);
        match page.cursor {
            Some(next) if next == cursor => return Err(format!("the page after {next} is itself")),
            Some(next) => cursor = next,
            None => return Ok((QueryResult::Rows { numbers, altered }, all)),
        }
        *place = whom();
    }
}
