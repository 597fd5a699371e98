//! Sends the lines of a demo by HTTP, as any client does.

use std::sync::atomic::{AtomicBool, Ordering};

use logpond_client::Client;
use logpond_host::terminal::note;

use crate::commands::Failure;
use crate::demo::{DAY_SECONDS, Day, SOURCES, Source};

/// A body is sent once it has so many bytes.
const BODY_BYTES: usize = 1 << 20;

/// The longest answer to a push that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Most seconds that live records make up for at once, such as after the machine slept.
const CATCH_UP_SECONDS: i64 = 600;

/// The field of all records of a demo; its value is the seed.
const MARK: &str = "demo";

/// Seconds between two notes on how far the filling is.
const NOTE_SECONDS: i64 = DAY_SECONDS / 4;

/// Sends a day, and what comes behind it.
pub(super) struct DaySender<'a> {
    client: &'a Client,
    day: &'a Day,
    seed: u64,
    bodies: [Vec<u8>; SOURCES.len()],
    /// The next second that is sent.
    next: i64,
}

impl<'a> DaySender<'a> {
    /// Nothing is sent yet.
    pub(super) fn new(client: &'a Client, day: &'a Day, seed: u64) -> DaySender<'a> {
        DaySender {
            client,
            day,
            seed,
            bodies: Default::default(),
            next: day.seconds().start,
        }
    }

    /// Sends the day; gives how many records it has. Ends early at a stop.
    pub(super) fn day(&mut self, stop: &AtomicBool) -> Result<u64, Failure> {
        note("making a day of logs");
        let seconds = self.day.seconds();
        let mut records = 0;
        for second in seconds.clone() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let passed = second - seconds.start;
            if passed > 0 && passed % NOTE_SECONDS == 0 {
                note(&format!(
                    "{} % of the day is there",
                    passed * 100 / DAY_SECONDS
                ));
            }
            records += self.second(second, BODY_BYTES)?;
        }
        self.send_all()?;
        Ok(records)
    }

    /// Leaves out the seconds before this one.
    pub(super) fn skip_to(&mut self, second: i64) {
        self.next = self.next.max(second);
    }

    /// Sends the seconds before `now`.
    pub(super) fn live(&mut self, now: i64) -> Result<(), Failure> {
        self.skip_to(now - CATCH_UP_SECONDS);
        for second in self.next..now {
            self.second(second, BODY_BYTES)?;
        }
        self.send_all()
    }

    /// Takes the lines of a second, and sends the bodies that are long enough.
    fn second(&mut self, second: i64, bytes_min: usize) -> Result<u64, Failure> {
        let mut records = 0;
        for (source, body) in SOURCES.iter().zip(&mut self.bodies) {
            records += self.day.write(source, second, body);
            if body.len() >= bytes_min {
                send(self.client, self.seed, source, body)?;
            }
        }
        self.next = second + 1;
        Ok(records)
    }

    fn send_all(&mut self) -> Result<(), Failure> {
        for (source, body) in SOURCES.iter().zip(&mut self.bodies) {
            if !body.is_empty() {
                send(self.client, self.seed, source, body)?;
            }
        }
        Ok(())
    }
}

/// Sends a body and empties it. Every record must be taken.
fn send(client: &Client, seed: u64, source: &Source, body: &mut Vec<u8>) -> Result<(), Failure> {
    let labels = source.labels.iter();
    let labels = labels.map(|(name, value)| ("label", format!("{name}={value}")));
    let mark = ("label", format!("{MARK}={seed}"));
    let parameters = labels.chain([mark]).collect();
    let answer = client.push(source.path, &parameters, source.content_type, body)?;
    let text = answer.into_text(ANSWER_BYTES_MAX)?;
    let answer: serde_json::Value = serde_json::from_slice(&text)?;
    let rejected = answer["rejected_total"].as_u64().unwrap_or(0);
    if rejected > 0 {
        return Err(format!("the server rejected {rejected} records of {}", source.name).into());
    }
    body.clear();
    Ok(())
}
