//! The extended protocol: prepared statements with parameters, and portals that are read in parts.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

use super::commands::show_columns;
use super::{Delivery, Demand, Session, Trouble};
use crate::failure::{Code, Failure};
use crate::script::{self, Command};
use crate::statement::{AnswerPart, RunningStatement, column_types, parameter_types};
use crate::texts::StoredText;
use crate::values::{self, TEXT_OID};
use crate::wire::{self, Frontend, Target};

/// The most prepared statements of a session, and the bytes of all of them.
const PREPARED_MAX: usize = 512;
const PREPARED_BYTES_MAX: usize = 1 << 20;

/// The most portals of a session that are open. Each may hold a thread.
const PORTALS_MAX: usize = 8;

/// A statement with parameters.
#[derive(Clone, Debug)]
pub(super) struct PreparedStatement {
    text: Arc<StoredText>,
    /// The types of its parameters, as far as the client or its description gave them; 0 is none.
    types: Vec<u32>,
    /// The types of the columns that the client was told of.
    columns: Option<Vec<u32>>,
}

/// The state of a portal.
#[derive(Debug)]
pub(super) enum PortalState {
    /// It has not begun.
    Bound,
    /// Its statement runs.
    Running(RunningStatement),
    /// It has no more rows.
    Ended,
}

/// A statement with its values.
#[derive(Debug)]
pub(super) struct Portal {
    text: StoredText,
    formats: Vec<i16>,
    expected: Option<Vec<u32>>,
    /// True of cursors: the form of their columns is that of the first rows that are fetched.
    is_declared: bool,
    pub(super) state: PortalState,
    /// The message of its columns, once it runs.
    pub(super) columns: Bytes,
}

impl Portal {
    fn of_question(text: StoredText, formats: Vec<i16>) -> Portal {
        Portal {
            text,
            formats,
            expected: None,
            is_declared: false,
            state: PortalState::Bound,
            columns: Bytes::new(),
        }
    }

    /// A cursor.
    pub(super) fn of_cursor(text: StoredText) -> Portal {
        Portal {
            is_declared: true,
            ..Portal::of_question(text, Vec::new())
        }
    }

    /// Takes the forms in which a client fetches from this cursor: those of its first rows are those of all.
    pub(super) fn take_formats(&mut self, formats: &[i16]) -> Result<(), Failure> {
        if matches!(self.state, PortalState::Bound) {
            self.formats = formats.to_vec();
            return Ok(());
        }
        // None at all is text, as zeros are.
        let are_texts = |formats: &[i16]| formats.iter().all(|format| *format == 0);
        if self.formats == formats || (are_texts(&self.formats) && are_texts(formats)) {
            return Ok(());
        }
        let message = "a cursor has its columns in one form, text or binary, for all its rows";
        Err(Failure::new(Code::FeatureNotSupported, message))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Session<'_, S> {
    /// Answers a message of the extended protocol.
    pub(super) async fn extended(&mut self, message: Frontend) -> Result<(), Trouble> {
        match message {
            Frontend::Parse { name, text, types } => self.parse(name, text, types)?,
            Frontend::Bind {
                portal,
                statement,
                formats,
                values,
                results,
            } => self.bind(portal, &statement, (&formats, &values), results)?,
            Frontend::Describe { target, name } => match target {
                Target::Statement => self.describe_statement(&name).await?,
                Target::Portal => self.describe_portal(&name).await?,
            },
            Frontend::Execute { portal, rows_max } => self.execute(&portal, rows_max).await?,
            Frontend::Close { target, name } => {
                match target {
                    Target::Statement => drop(self.prepared.remove(&name)),
                    Target::Portal => drop(self.portals.remove(&name)),
                }
                wire::put_empty(&mut self.out, b'3');
            }
            Frontend::Flush => self.flush().await?,
            Frontend::Sync => {
                self.is_skipping = false;
                self.end_statements();
                self.ready();
            }
            Frontend::Terminate => return Err(super::Ending::Closed.into()),
            Frontend::FunctionCall => {
                let message = "functions are called by SELECT";
                return Err(Failure::new(Code::FeatureNotSupported, message).into());
            }
            Frontend::Query(_) | Frontend::Password(_) | Frontend::Copy => {}
        }
        Ok(())
    }

    fn parse(&mut self, name: String, text: String, types: Vec<u32>) -> Result<(), Failure> {
        if !name.is_empty() && self.prepared.contains_key(&name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(Failure::new(Code::DuplicateStatement, message));
        }
        if script::statements(&text).len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(Failure::new(Code::Syntax, message));
        }
        let bytes: usize = self.prepared.values().map(|known| known.text.len()).sum();
        if self.prepared.len() >= PREPARED_MAX || bytes + text.len() > PREPARED_BYTES_MAX {
            let message = format!(
                "a session has at most {PREPARED_MAX} prepared statements, of {} MiB together",
                PREPARED_BYTES_MAX >> 20
            );
            return Err(Failure::new(Code::ConfigurationLimit, message));
        }
        let count = script::parameters(&text).max(types.len());
        if count > wire::FORMATS_MAX {
            let message = format!("a statement has at most {} parameters", wire::FORMATS_MAX);
            return Err(Failure::new(Code::TooComplex, message));
        }
        let mut types = types;
        types.resize(count, 0);
        let statement = PreparedStatement {
            text: Arc::new(self.texts.keep(text)?),
            types,
            columns: None,
        };
        self.prepared.insert(name, statement);
        wire::put_empty(&mut self.out, b'1');
        Ok(())
    }

    fn prepared(&self, name: &str) -> Result<&PreparedStatement, Failure> {
        self.prepared.get(name).ok_or_else(|| {
            let message = format!("prepared statement \"{name}\" does not exist");
            Failure::new(Code::NoSuchStatement, message)
        })
    }

    fn bind(
        &mut self,
        portal: String,
        statement: &str,
        (formats, values): (&[i16], &[Option<Bytes>]),
        results: Vec<i16>,
    ) -> Result<(), Failure> {
        let prepared = self.prepared(statement)?;
        if values.len() != prepared.types.len() {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {}",
                values.len(),
                prepared.types.len()
            );
            return Err(Failure::new(Code::ProtocolViolation, message));
        }
        let mut constants = Vec::with_capacity(values.len());
        for (at, (value, oid)) in values.iter().zip(&prepared.types).enumerate() {
            let is_binary = wire::is_binary(formats, at);
            constants.push(values::constant(value.as_deref(), *oid, is_binary)?);
        }
        let text = script::with_values(&prepared.text, |number| {
            let at = number.checked_sub(1);
            let constant = at.and_then(|at| constants.get(at));
            constant.cloned().unwrap_or_else(|| "NULL".to_owned())
        })?;
        let text = self.texts.keep(text)?;
        let expected = prepared.columns.clone();
        let bound = Portal {
            expected,
            ..Portal::of_question(text, results)
        };
        if !portal.is_empty() && self.portals.contains_key(&portal) {
            let message = format!("portal \"{portal}\" already exists");
            return Err(Failure::new(Code::DuplicateCursor, message));
        }
        self.add_portal(portal, bound)?;
        wire::put_empty(&mut self.out, b'2');
        Ok(())
    }

    pub(super) fn add_portal(&mut self, name: String, portal: Portal) -> Result<(), Failure> {
        // One of this name makes room.
        self.portals.remove(&name);
        if self.portals.len() >= PORTALS_MAX {
            let message = format!("a session has at most {PORTALS_MAX} open portals and cursors");
            return Err(Failure::new(Code::ConfigurationLimit, message));
        }
        self.portals.insert(name, portal);
        Ok(())
    }

    /// Begins the statement of a portal, and waits for its columns.
    pub(super) async fn open(&mut self, portal: &mut Portal) -> Result<(), Trouble> {
        if !matches!(portal.state, PortalState::Bound) {
            return Ok(());
        }
        let mut question = self.question(&portal.text, portal.formats.clone());
        question.expected.clone_from(&portal.expected);
        let mut running = self.start(question).await?;
        match self.part(&mut running, 0).await? {
            AnswerPart::Columns(columns) => portal.columns = columns,
            AnswerPart::Failed(error) => {
                self.out.extend_from_slice(&error);
                return Err(Trouble::Told);
            }
            _ => {
                let message = "the statement has no columns";
                return Err(Failure::new(Code::Internal, message).into());
            }
        }
        portal.state = PortalState::Running(running);
        Ok(())
    }

    async fn describe_portal(&mut self, name: &str) -> Result<(), Trouble> {
        let mut portal = self.take_portal(name)?;
        match script::command(&portal.text) {
            Command::Question if portal.is_declared && portal.columns.is_empty() => {
                let (_, columns) = self.description(&portal.text).await?;
                self.out.extend_from_slice(&columns);
            }
            Command::Question => {
                self.open(&mut portal).await?;
                self.out.extend_from_slice(&portal.columns);
            }
            Command::Show(setting) => wire::put_columns(&mut self.out, &show_columns(&setting)),
            Command::Fetch { name: cursor, .. } if self.portals.contains_key(&cursor) => {
                let mut of_cursor = self.take_portal(&cursor)?;
                of_cursor.take_formats(&portal.formats)?;
                self.open(&mut of_cursor).await?;
                self.out.extend_from_slice(&of_cursor.columns);
                self.portals.insert(cursor, of_cursor);
            }
            _ => wire::put_empty(&mut self.out, b'n'),
        }
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    fn take_portal(&mut self, name: &str) -> Result<Portal, Failure> {
        self.portals.remove(name).ok_or_else(|| {
            let message = format!("portal \"{name}\" does not exist");
            Failure::new(Code::NoSuchCursor, message)
        })
    }

    async fn describe_statement(&mut self, name: &str) -> Result<(), Trouble> {
        let prepared = self.prepared(name)?.clone();
        match script::command(&prepared.text) {
            Command::Question => {}
            other => {
                wire::put_parameter_types(&mut self.out, &prepared.types);
                match other {
                    Command::Show(setting) => {
                        wire::put_columns(&mut self.out, &show_columns(&setting));
                    }
                    _ => wire::put_empty(&mut self.out, b'n'),
                }
                return Ok(());
            }
        }
        // Parameters whose type is known are nulls of it; others stay, so that the engine finds their types.
        let of_type = |number: usize| {
            let oid = number.checked_sub(1).and_then(|at| prepared.types.get(at));
            match oid.copied().and_then(values::name_of) {
                Some(name) => format!("CAST(NULL AS {name})"),
                None => format!("${number}"),
            }
        };
        let text = script::with_values(&prepared.text, of_type)?;
        let (found, columns) = match self.description(&text).await {
            Ok(description) => description,
            // A parameter without a type may be what the engine does not understand.
            Err(Trouble::Failed(_)) if text.contains('$') => {
                let of_text = |_| "CAST(NULL AS VARCHAR)".to_owned();
                let text = script::with_values(&text, of_text)?;
                self.description(&text).await?
            }
            Err(trouble) => return Err(trouble),
        };
        let mut types = prepared.types;
        for (at, oid) in types.iter_mut().enumerate().filter(|(_, oid)| **oid == 0) {
            *oid = found.get(at).copied().unwrap_or(TEXT_OID);
        }
        wire::put_parameter_types(&mut self.out, &types);
        self.out.extend_from_slice(&columns);
        if let Some(known) = self.prepared.get_mut(name) {
            known.types = types;
            known.columns = Some(column_types(&columns));
        }
        Ok(())
    }

    /// The types of the parameters of a statement, and the message of its columns.
    async fn description(&mut self, text: &str) -> Result<(Vec<u32>, Bytes), Trouble> {
        let mut question = self.question(text, Vec::new());
        question.describes = true;
        let mut running = self.start(question).await?;
        let (mut types, mut columns) = (Vec::new(), Bytes::new());
        loop {
            match self.part(&mut running, 0).await? {
                AnswerPart::Parameters(message) => types = parameter_types(&message),
                AnswerPart::Columns(message) => columns = message,
                AnswerPart::Failed(error) => return Err(Failure::of_message(&error).into()),
                AnswerPart::Complete => return Ok((types, columns)),
                AnswerPart::Rows(..) | AnswerPart::Notice(_) => {}
            }
        }
    }

    async fn execute(&mut self, name: &str, rows_max: i32) -> Result<(), Trouble> {
        let mut portal = self.take_portal(name)?;
        let command = script::command(&portal.text);
        self.check_transaction(&command)?;
        match command {
            Command::Question => {
                let rows_max = u64::try_from(rows_max).unwrap_or(0);
                let demand = Demand {
                    rows_max: if rows_max == 0 { u64::MAX } else { rows_max },
                    has_columns: false,
                };
                self.execute_question(&mut portal, demand).await?;
            }
            Command::Fetch { name, count } => {
                let demand = Demand {
                    rows_max: count.unwrap_or(u64::MAX),
                    has_columns: false,
                };
                let formats = portal.formats.clone();
                self.fetch(&name, demand, &formats).await?;
            }
            other => {
                // It may end all portals, and is none any more.
                return self.command(other, false);
            }
        }
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    async fn execute_question(
        &mut self,
        portal: &mut Portal,
        demand: Demand,
    ) -> Result<(), Trouble> {
        self.open(portal).await?;
        let PortalState::Running(running) = &mut portal.state else {
            wire::put_complete(&mut self.out, &script::tag(&portal.text, 0));
            return Ok(());
        };
        match self.deliver(running, demand).await? {
            Delivery::Suspended(_) => wire::put_empty(&mut self.out, b's'),
            Delivery::Complete(rows) => {
                portal.state = PortalState::Ended;
                wire::put_complete(&mut self.out, &script::tag(&portal.text, rows));
            }
        }
        Ok(())
    }
}
