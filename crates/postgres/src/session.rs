//! A session: messages of the client in, answers out.
//!
//! Invariants:
//! - One statement of a session is sent at a time. Portals that are not read hold no more than a reader that does not read.
//! - What a client sends ahead is read up to the longest message, then it waits.
//! - After an error in the extended protocol messages are passed over up to the next `Sync`.

mod commands;
mod extended;

use std::collections::HashMap;
use std::future;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use logpond_host::clock;
use logpond_host::telemetry::warn;
use logpond_http::{App, StatementRun};
use logpond_listen::tokens::Admission;
use logpond_sql::PostgresSession;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

use crate::failure::{Code, Failure};
use crate::login::Login;
use crate::registry::RegistryGuard;
use crate::script;
use crate::serve::FAREWELL_TIME_MAX;
use crate::settings::SessionSettings;
use crate::statement::{AnswerPart, Question, RunningStatement, work};
use crate::texts::TextRoom;
use crate::wire::{self, Frontend, MESSAGE_BYTES_MAX};
use extended::{Portal, PreparedStatement};

/// How often it is looked whether a session may go on. With the second after which a changed file of tokens is noticed it is
/// less than two.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// How long nothing may come within a message.
const STALL_TIME_MAX: Duration = Duration::from_secs(30);

/// Bytes of small answers that are gathered before they are sent.
const OUT_BYTES_MAX: usize = 64 << 10;

/// Bytes that a client may have sent ahead.
const INPUT_BYTES_MAX: usize = MESSAGE_BYTES_MAX + 1;

/// The end of a session.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The client is gone.
    Closed,
    /// The client is told why.
    Fatal(Failure),
}

/// The reason for which a message has no answer: it, or the end of the session.
#[derive(Debug)]
enum Trouble {
    Failed(Failure),
    /// The client was told by the statement itself.
    Told,
    Ended(Ending),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        Trouble::Failed(failure)
    }
}

impl From<Ending> for Trouble {
    fn from(ending: Ending) -> Trouble {
        Trouble::Ended(ending)
    }
}

/// The state of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    None,
    Open,
    Failed,
}

impl Transaction {
    const fn letter(self) -> u8 {
        match self {
            Transaction::None => b'I',
            Transaction::Open => b'T',
            Transaction::Failed => b'E',
        }
    }
}

/// The amount of an answer that is wanted.
#[derive(Clone, Copy, Debug)]
struct Demand {
    rows_max: u64,
    /// True if the columns are sent, too.
    has_columns: bool,
}

/// The end of a part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// All rows were sent, the last ones so many.
    Complete(u64),
    /// There may be more.
    Suspended(u64),
}

/// A session.
pub(crate) struct Session<'s, S> {
    stream: &'s mut S,
    input: BytesMut,
    out: Vec<u8>,
    app: Arc<App>,
    user: String,
    settings: SessionSettings,
    admission: Option<Admission>,
    guard: RegistryGuard,
    texts: Arc<TextRoom>,
    transaction: Transaction,
    prepared: HashMap<String, PreparedStatement>,
    portals: HashMap<String, Portal>,
    /// The time at which the present statement is cancelled.
    deadline: Option<Instant>,
    /// True after an error, up to the next `Sync`.
    is_skipping: bool,
    /// When it was looked last whether the session may go on.
    looked: Instant,
}

impl<'s, S: AsyncRead + AsyncWrite + Unpin + Send> Session<'s, S> {
    pub(crate) fn new(
        stream: &'s mut S,
        input: BytesMut,
        app: Arc<App>,
        login: Login,
        (admission, guard): (Option<Admission>, RegistryGuard),
        texts: Arc<TextRoom>,
    ) -> Session<'s, S> {
        Session {
            stream,
            input,
            out: Vec::new(),
            app,
            user: login.user,
            settings: login.settings,
            admission,
            guard,
            texts,
            transaction: Transaction::None,
            prepared: HashMap::new(),
            portals: HashMap::new(),
            deadline: None,
            is_skipping: false,
            looked: Instant::now(),
        }
    }

    /// Serves the session to its end.
    pub(crate) async fn run(mut self) -> Ending {
        for (name, value) in self.settings.reported() {
            wire::put_parameter(&mut self.out, name, value);
        }
        wire::put_key(&mut self.out, self.guard.process_id, self.guard.secret);
        self.ready();
        loop {
            if let Err(ending) = self.step().await {
                return ending;
            }
        }
    }

    /// Appends that the next message may come.
    fn ready(&mut self) {
        wire::put_ready(&mut self.out, self.transaction.letter());
    }

    /// Answers a message.
    async fn step(&mut self) -> Result<(), Ending> {
        let message = self.message().await?;
        if self.is_skipping && !matches!(message, Frontend::Sync | Frontend::Terminate) {
            return Ok(());
        }
        let is_extended = !matches!(message, Frontend::Query(_));
        self.deadline = self
            .settings
            .statement_timeout()
            .and_then(|time| Instant::now().checked_add(time));
        let answered = match message {
            Frontend::Query(text) => self.query(&text).await,
            other => self.extended(other).await,
        };
        match answered {
            Ok(()) => {}
            Err(Trouble::Ended(ending)) => return Err(ending),
            Err(trouble) => {
                if let Trouble::Failed(failure) = trouble {
                    failure.put(&mut self.out, false);
                }
                self.is_skipping = is_extended;
                if self.transaction == Transaction::Open {
                    self.transaction = Transaction::Failed;
                }
            }
        }
        if !is_extended {
            self.end_statements();
            self.ready();
        }
        if self.out.len() > OUT_BYTES_MAX {
            self.flush().await?;
        }
        Ok(())
    }

    /// Drops the portals that end with their transaction.
    fn end_statements(&mut self) {
        if self.transaction == Transaction::None {
            self.portals.clear();
        }
    }

    /// The next message. What was answered before is sent before it is waited for.
    async fn message(&mut self) -> Result<Frontend, Ending> {
        let mut came = Instant::now();
        loop {
            // A client that never pauses leaves no time to wait.
            if self.looked.elapsed() >= LOOK_INTERVAL {
                self.look()?;
            }
            match wire::message(&mut self.input, MESSAGE_BYTES_MAX) {
                Ok(Some(message)) => return Ok(message),
                Ok(None) => {}
                Err(error) => {
                    self.flush().await?;
                    let failure = Failure::new(Code::ProtocolViolation, error.to_string());
                    return Err(Ending::Fatal(failure));
                }
            }
            self.flush().await?;
            tokio::select! {
                read = self.stream.read_buf(&mut self.input) => {
                    if read.map_err(|_| Ending::Closed)? == 0 {
                        return Err(Ending::Closed);
                    }
                    came = Instant::now();
                }
                () = tokio::time::sleep(LOOK_INTERVAL) => {
                    self.look()?;
                    if !self.input.is_empty() && came.elapsed() >= STALL_TIME_MAX {
                        let message = "a message did not come to its end";
                        let failure = Failure::new(Code::ProtocolViolation, message);
                        return Err(Ending::Fatal(failure));
                    }
                }
            }
        }
    }

    /// Looks whether the session may go on.
    fn look(&mut self) -> Result<(), Ending> {
        self.looked = Instant::now();
        let refusal = self.admission.as_ref();
        if let Some(refusal) = refusal.and_then(|admission| admission.refusal(clock::now())) {
            self.app.metrics.access.ended.add(1);
            warn(&format!("a session of Postgres was ended: {refusal}"));
            return Err(Ending::Fatal(Failure::of_refusal(&refusal)));
        }
        if self.app.shutdown.is_stopping() {
            let message = "the server stops";
            return Err(Ending::Fatal(Failure::new(Code::Shutdown, message)));
        }
        Ok(())
    }

    /// Sends what was answered.
    async fn flush(&mut self) -> Result<(), Ending> {
        let out = std::mem::take(&mut self.out);
        if !out.is_empty() {
            self.send(&out).await?;
        }
        Ok(())
    }

    /// Sends whole messages, as long as the session may go on. The one that is on its way then is sent to its end, for
    /// behind a part of it the client would not find the reason.
    async fn send(&mut self, bytes: &[u8]) -> Result<(), Ending> {
        let mut sent = 0;
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            tokio::select! {
                written = self.stream.write(rest) => match written {
                    Ok(0) | Err(_) => return Err(Ending::Closed),
                    Ok(count) => sent += count,
                },
                () = tokio::time::sleep(LOOK_INTERVAL) => if let Err(ending) = self.look() {
                    let rest = &bytes[sent..wire::message_end(bytes, sent)];
                    let sending = self.stream.write_all(rest);
                    return match tokio::time::timeout(FAREWELL_TIME_MAX, sending).await {
                        Ok(Ok(())) => Err(ending),
                        _ => Err(Ending::Closed),
                    };
                },
            }
        }
        // Of TLS, some may still wait to be sent.
        self.stream.flush().await.map_err(|_| Ending::Closed)
    }

    /// The facts that statements may ask for.
    fn facts(&self) -> Arc<PostgresSession> {
        Arc::new(PostgresSession {
            user: self.user.clone(),
            process_id: self.guard.process_id,
            version: SessionSettings::version(),
            settings: self.settings.all().to_vec(),
        })
    }

    /// A question in this session, with columns in these forms.
    fn question(&self, text: &str, formats: Vec<i16>) -> Question {
        Question {
            text: text.to_owned(),
            formats,
            session: self.facts(),
            incompleteness: self.settings.incompleteness(),
            expected: None,
            describes: false,
        }
    }

    /// Begins a statement.
    async fn start(&mut self, question: Question) -> Result<RunningStatement, Trouble> {
        let work = move |run: StatementRun| work(run, question);
        let admission = self.admission.clone();
        let started = StatementRun::start(&self.app, admission, work).await;
        let chunks =
            started.map_err(|error| Failure::new(Code::TooManyConnections, error.message()))?;
        Ok(RunningStatement::new(chunks))
    }

    /// The next part of an answer.
    async fn part(
        &mut self,
        running: &mut RunningStatement,
        rows_max: u64,
    ) -> Result<AnswerPart, Trouble> {
        loop {
            if let Some(part) = running.next(rows_max) {
                return Ok(part);
            }
            let has_room = self.input.len() < INPUT_BYTES_MAX;
            let cancels = Arc::clone(&self.guard.cancels);
            tokio::select! {
                chunk = running.chunks.recv() => match chunk {
                    Some(chunk) => running.add(chunk),
                    None => {
                        // The end of a session ends its statements, which may see it first.
                        self.look()?;
                        return Err(broken_off(running).into());
                    }
                },
                read = self.stream.read_buf(&mut self.input), if has_room => {
                    if read.map_err(|_| Ending::Closed)? == 0 {
                        return Err(Ending::Closed.into());
                    }
                }
                () = cancels.notified() => {
                    let message = "canceling statement due to user request";
                    return Err(Failure::new(Code::Cancelled, message).into());
                }
                () = at(self.deadline) => {
                    let message = "canceling statement due to statement timeout";
                    return Err(Failure::new(Code::Cancelled, message).into());
                }
                () = tokio::time::sleep(LOOK_INTERVAL) => self.look()?,
            }
        }
    }

    /// Sends an answer, or as much of it as is wanted.
    async fn deliver(
        &mut self,
        running: &mut RunningStatement,
        demand: Demand,
    ) -> Result<Delivery, Trouble> {
        let mut rows = 0;
        loop {
            if rows >= demand.rows_max {
                return Ok(Delivery::Suspended(rows));
            }
            match self.part(running, demand.rows_max - rows).await? {
                AnswerPart::Rows(bytes, count) => {
                    self.flush().await?;
                    self.send(&bytes).await?;
                    rows += count;
                }
                AnswerPart::Columns(columns) => {
                    if demand.has_columns {
                        self.out.extend_from_slice(&columns);
                    }
                }
                AnswerPart::Notice(notice) => self.out.extend_from_slice(&notice),
                AnswerPart::Failed(error) => {
                    self.look()?;
                    self.out.extend_from_slice(&error);
                    return Err(Trouble::Told);
                }
                AnswerPart::Parameters(_) => {}
                AnswerPart::Complete => return Ok(Delivery::Complete(rows)),
            }
        }
    }

    /// Refuses all but the end of a transaction that has failed.
    fn check_transaction(&self, command: &script::Command) -> Result<(), Failure> {
        use script::Command::{Commit, Empty, Rollback, Savepoint};
        let ends = matches!(command, Commit | Rollback | Savepoint(_) | Empty);
        if self.transaction != Transaction::Failed || ends {
            return Ok(());
        }
        let message =
            "current transaction is aborted, commands ignored until end of transaction block";
        Err(Failure::new(Code::FailedTransaction, message))
    }
}

/// Why an answer has no end.
fn broken_off(running: &RunningStatement) -> Failure {
    if running.chunks.is_broken_off() {
        let message = "the client took nothing for some time while other statements waited";
        Failure::new(Code::Cancelled, message)
    } else {
        Failure::new(
            Code::Internal,
            "the statement ended by a mistake of the program",
        )
    }
}

/// Waits until a time; for ever without one.
async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => future::pending().await,
    }
}
