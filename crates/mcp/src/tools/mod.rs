//! The tools, one file each and one row each.

mod search;
mod count;
mod group;
mod stats;
mod histogram;
mod fields;
mod values;
mod patterns;
mod changes;
mod context;
#[cfg(feature = "sql")]
mod sql;
mod saved_queries;
mod run_saved_query;
mod cluster_health;

use std::pin::Pin;
use std::sync::Arc;

use super::answer::{Rows, value};
use super::arguments::{Argument, Arguments};
use super::report::{MAX_CHARACTERS, Report};
use super::server::{Question, Refusal, Server};

/// A tool.
#[derive(Debug)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Its title, for people.
    pub title: &'static str,
    /// Its use, for the model.
    pub help: &'static str,
    /// Its own arguments; each tool has `max_characters`, too.
    pub arguments: &'static [Argument],
    pub(crate) run: fn(Call) -> Running,
}

/// A call that runs.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<Report, ToolError>> + Send>>;

/// The tools, in the order in which clients list them.
pub const TOOLS: &[Tool] = &[
    search::TOOL,
    count::TOOL,
    group::TOOL,
    stats::TOOL,
    histogram::TOOL,
    fields::TOOL,
    values::TOOL,
    patterns::TOOL,
    changes::TOOL,
    context::TOOL,
    #[cfg(feature = "sql")]
    sql::TOOL,
    saved_queries::TOOL,
    run_saved_query::TOOL,
    cluster_health::TOOL,
];

impl Tool {
    /// All arguments.
    pub fn all_arguments(&self) -> impl Iterator<Item = &'static Argument> + Clone {
        self.arguments
            .iter()
            .chain(std::iter::once(&MAX_CHARACTERS))
    }
}

/// Why a tool has no answer.
#[derive(Debug)]
pub(crate) enum ToolError {
    /// The arguments are wrong, in our own words.
    Arguments(String),
    /// The server refused.
    Refused(Refusal),
}

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> ToolError {
        ToolError::Refused(refusal)
    }
}

/// A call of a tool.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) arguments: Arguments,
    pub(crate) server: Arc<dyn Server>,
}

impl Call {
    /// The parameters of the API for arguments that were given: pairs of the names of both.
    fn parameters(&self, names: &[(&str, &str)]) -> Vec<(String, String)> {
        let given = names.iter().filter_map(|(argument, parameter)| {
            let text = self.arguments.text(argument)?;
            Some(((*parameter).to_owned(), text.to_owned()))
        });
        given.collect()
    }

    /// The parameters of the records that are meant.
    fn scope(&self) -> Vec<(String, String)> {
        self.parameters(&[("query", "q"), ("from", "from"), ("to", "to")])
    }

    /// Asks for rows.
    async fn rows(
        &self,
        path: &'static str,
        parameters: Vec<(String, String)>,
    ) -> Result<Rows, ToolError> {
        let raw = self.server.ask(Question { path, parameters }).await?;
        Ok(Rows::read(raw)?)
    }

    /// Asks for one JSON value.
    async fn value(
        &self,
        path: &'static str,
        parameters: Vec<(String, String)>,
    ) -> Result<serde_json::Value, ToolError> {
        let raw = self.server.ask(Question { path, parameters }).await?;
        Ok(value(&raw)?)
    }
}

/// A parameter of the API.
fn parameter(name: &str, value: impl ToString) -> (String, String) {
    (name.to_owned(), value.to_string())
}
