//! Commands of a session, and the simple protocol.

use tokio::io::{AsyncRead, AsyncWrite};

use super::extended::{Portal, PortalState};
use super::{Delivery, Demand, Session, Transaction, Trouble};
use crate::failure::{Code, Failure};
use crate::script::{self, Command};
use crate::settings::Change;
use crate::values::TEXT_OID;
use crate::wire::{self, ColumnDescription};

/// The most statements of a message: each has an answer.
const STATEMENTS_MAX: usize = 100;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<'_, S> {
    /// Answers a message of the simple protocol: one statement after another, up to the first error.
    pub(super) async fn query(&mut self, text: &str) -> Result<(), Trouble> {
        let statements = script::statements(text);
        if statements.len() > STATEMENTS_MAX {
            let message = format!("a message has at most {STATEMENTS_MAX} statements");
            return Err(Failure::new(Code::TooComplex, message).into());
        }
        if statements.is_empty() {
            wire::put_empty(&mut self.out, b'I');
        }
        for statement in statements {
            let command = script::command(statement);
            self.check_transaction(&command)?;
            self.simple(statement, command).await?;
        }
        Ok(())
    }

    async fn simple(&mut self, text: &str, command: Command) -> Result<(), Trouble> {
        let everything = Demand {
            rows_max: u64::MAX,
            has_columns: true,
        };
        match command {
            Command::Question => {
                let question = self.question(text, Vec::new());
                let mut running = self.start(question).await?;
                let delivered = self.deliver(&mut running, everything).await?;
                self.complete(text, delivered);
                Ok(())
            }
            Command::Fetch { name, count } => {
                let demand = Demand {
                    rows_max: count.unwrap_or(u64::MAX),
                    has_columns: true,
                };
                self.fetch(&name, demand, &[]).await
            }
            other => self.command(other, true),
        }
    }

    /// Appends the end of an answer.
    fn complete(&mut self, text: &str, delivered: Delivery) {
        let (Delivery::Complete(rows) | Delivery::Suspended(rows)) = delivered;
        wire::put_complete(&mut self.out, &script::tag(text, rows));
    }

    /// Sends rows of a cursor, with columns in these forms.
    pub(super) async fn fetch(
        &mut self,
        name: &str,
        demand: Demand,
        formats: &[i16],
    ) -> Result<(), Trouble> {
        let Some(mut portal) = self.portals.remove(name) else {
            let message = format!("cursor \"{name}\" does not exist");
            return Err(Failure::new(Code::NoSuchCursor, message).into());
        };
        let formed = portal.take_formats(formats);
        if let Err(failure) = formed {
            self.portals.insert(name.to_owned(), portal);
            return Err(failure.into());
        }
        let sent = self.fetch_from(&mut portal, demand).await;
        if sent.is_ok() {
            self.portals.insert(name.to_owned(), portal);
        }
        let rows = sent?;
        wire::put_complete(&mut self.out, &format!("FETCH {rows}"));
        Ok(())
    }

    /// Sends rows of a cursor, with its columns before them; gives their number.
    async fn fetch_from(&mut self, portal: &mut Portal, demand: Demand) -> Result<u64, Trouble> {
        self.open(portal).await?;
        if demand.has_columns {
            self.out.extend_from_slice(&portal.columns);
        }
        let PortalState::Running(running) = &mut portal.state else {
            return Ok(0);
        };
        let rows_only = Demand {
            has_columns: false,
            ..demand
        };
        let delivered = self.deliver(running, rows_only).await?;
        let (Delivery::Complete(rows) | Delivery::Suspended(rows)) = delivered;
        if matches!(delivered, Delivery::Complete(_)) {
            portal.state = PortalState::Ended;
        }
        Ok(rows)
    }

    /// Answers a command that asks nothing of the engine. `has_columns` is true if the columns of its rows are sent.
    pub(super) fn command(&mut self, command: Command, has_columns: bool) -> Result<(), Trouble> {
        let tag = match command {
            Command::Empty => {
                wire::put_empty(&mut self.out, b'I');
                return Ok(());
            }
            Command::Begin => {
                self.transaction = Transaction::Open;
                "BEGIN"
            }
            Command::Commit => self.end_transaction("COMMIT"),
            Command::Rollback => self.end_transaction("ROLLBACK"),
            Command::Savepoint(tag) => {
                if tag == "ROLLBACK" && self.transaction == Transaction::Failed {
                    self.transaction = Transaction::Open;
                }
                tag
            }
            Command::Set { name, value } => {
                let change = self.settings.set(&name, value.as_deref())?;
                self.report(change);
                if value.is_some() { "SET" } else { "RESET" }
            }
            Command::Reset => {
                self.settings.reset();
                self.report_all();
                "RESET"
            }
            Command::Show(name) => {
                self.show(&name, has_columns)?;
                "SHOW"
            }
            Command::Discard => {
                self.settings.reset();
                self.report_all();
                self.prepared.clear();
                self.portals.clear();
                "DISCARD ALL"
            }
            Command::Deallocate(name) => self.deallocate(name)?,
            Command::Declare { name, question } => self.declare(name, question)?,
            Command::Close(name) => self.close_cursor(name)?,
            Command::Ignored(tag) => tag,
            Command::Write(name) => return Err(read_only(&name).into()),
            Command::Unsupported(name) => return Err(unsupported(&name).into()),
            Command::Question | Command::Fetch { .. } => return Ok(()),
        };
        wire::put_complete(&mut self.out, tag);
        Ok(())
    }

    fn end_transaction(&mut self, tag: &'static str) -> &'static str {
        let has_failed = self.transaction == Transaction::Failed;
        self.transaction = Transaction::None;
        self.portals.clear();
        if has_failed { "ROLLBACK" } else { tag }
    }

    /// Tells the client of a change.
    fn report(&mut self, change: Change) {
        if let Some(warning) = change.warning {
            Failure::new(Code::Warning, warning).put_notice(&mut self.out, "WARNING");
        }
        if change.is_reported {
            wire::put_parameter(&mut self.out, &change.name, &change.value);
        }
    }

    fn report_all(&mut self) {
        for (name, value) in self.settings.reported() {
            wire::put_parameter(&mut self.out, name, value);
        }
    }

    fn show(&mut self, name: &str, has_columns: bool) -> Result<(), Failure> {
        let columns = show_columns(name);
        let rows: Vec<Vec<&str>> = if name == "all" {
            let all = self.settings.all().iter();
            all.map(|(name, value)| vec![name.as_str(), value.as_str(), ""])
                .collect()
        } else {
            let missing = || {
                let message = format!("unrecognized configuration parameter \"{name}\"");
                Failure::new(Code::NoParameter, message)
            };
            vec![vec![self.settings.get(name).ok_or_else(missing)?]]
        };
        if has_columns {
            wire::put_columns(&mut self.out, &columns);
        }
        for row in rows {
            wire::put(&mut self.out, b'D', |out| {
                wire::put_count(out, row.len());
                for text in row {
                    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
                    out.extend_from_slice(&length.to_be_bytes());
                    out.extend_from_slice(text.as_bytes());
                }
            });
        }
        Ok(())
    }

    fn deallocate(&mut self, name: Option<String>) -> Result<&'static str, Failure> {
        let Some(name) = name else {
            self.prepared.clear();
            return Ok("DEALLOCATE ALL");
        };
        if self.prepared.remove(&name).is_none() {
            let message = format!("prepared statement \"{name}\" does not exist");
            return Err(Failure::new(Code::NoSuchStatement, message));
        }
        Ok("DEALLOCATE")
    }

    fn declare(&mut self, name: String, question: String) -> Result<&'static str, Failure> {
        if self.transaction == Transaction::None {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Failure::new(Code::NoSuchCursor, message).hint("BEGIN begins one"));
        }
        if script::command(&question) != Command::Question {
            let message = "a cursor is of a SELECT";
            return Err(Failure::new(Code::Syntax, message));
        }
        if self.portals.contains_key(&name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(Failure::new(Code::DuplicateCursor, message));
        }
        let question = self.texts.keep(question)?;
        self.add_portal(name, Portal::of_cursor(question))?;
        Ok("DECLARE CURSOR")
    }

    fn close_cursor(&mut self, name: Option<String>) -> Result<&'static str, Failure> {
        let Some(name) = name else {
            self.portals.clear();
            return Ok("CLOSE CURSOR ALL");
        };
        if self.portals.remove(&name).is_none() {
            let message = format!("cursor \"{name}\" does not exist");
            return Err(Failure::new(Code::NoSuchCursor, message));
        }
        Ok("CLOSE CURSOR")
    }
}

/// The columns of the answer of `SHOW`.
pub(super) fn show_columns(name: &str) -> Vec<ColumnDescription> {
    let names = if name == "all" {
        vec!["name", "setting", "description"]
    } else {
        vec![name]
    };
    let column = |name: &str| ColumnDescription {
        name: name.to_owned(),
        oid: TEXT_OID,
        bytes: -1,
        is_binary: false,
    };
    names.into_iter().map(column).collect()
}

fn read_only(name: &str) -> Failure {
    let message = format!("cannot execute {name} in a read-only transaction");
    Failure::new(Code::ReadOnly, message).hint("records come in by the listeners for records")
}

fn unsupported(name: &str) -> Failure {
    let message = format!("{name} is not supported");
    Failure::new(Code::FeatureNotSupported, message)
}
