//! The commands of aggregates, each made from its row.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use logpond_engine::query::{self, AGGREGATES, Parameter, ParameterKind};

use super::tables::{OutputOptions, RecordFilter};

/// The flag that limits the rows.
const LIMIT: &str = "limit";

/// The argument that names a field.
const FIELD: &str = "field";

/// The flag that names a field to tell records apart by.
const BY: &str = "by";

/// `logpond NAME` of an aggregate.
#[derive(Debug)]
pub struct Aggregate {
    /// The row.
    pub row: &'static query::Aggregate,
    /// The field; empty if it has none.
    pub field: String,
    /// The field by whose values the records are told apart.
    pub by: Option<String>,
    /// The most rows; 0 is no limit.
    pub limit: u64,
    /// The records.
    pub matching: RecordFilter,
    /// The form of the answer.
    pub printing: OutputOptions,
}

fn command(row: &'static query::Aggregate) -> Command {
    let arguments = |kind: fn(&Parameter) -> Option<Arg>| row.parameters.iter().filter_map(kind);
    let command = Command::new(row.name).args(arguments(field));
    let command = RecordFilter::augment_args(command).args(arguments(flag));
    // The groups of flags have descriptions of their own.
    let about = OutputOptions::augment_args(command).about(row.help);
    about.long_about(None)
}

fn field(parameter: &Parameter) -> Option<Arg> {
    match parameter.kind {
        ParameterKind::Field(_) => {
            let field = Arg::new(FIELD).value_name("FIELD").required(true);
            Some(field.help(parameter.help))
        }
        ParameterKind::By | ParameterKind::Limit { .. } => None,
    }
}

fn flag(parameter: &Parameter) -> Option<Arg> {
    match parameter.kind {
        ParameterKind::Field(_) => None,
        ParameterKind::By => {
            let by = Arg::new(BY).long(BY).value_name("FIELD");
            Some(by.help(parameter.help))
        }
        ParameterKind::Limit { default, .. } => {
            let limit = Arg::new(LIMIT).short('n').long(LIMIT).value_name("N");
            let limit = limit.value_parser(clap::value_parser!(u64));
            Some(limit.default_value(default).help(parameter.help))
        }
    }
}

impl Subcommand for Aggregate {
    fn augment_subcommands(all: Command) -> Command {
        all.subcommands(AGGREGATES.iter().map(command))
    }

    fn augment_subcommands_for_update(all: Command) -> Command {
        Aggregate::augment_subcommands(all)
    }

    fn has_subcommand(name: &str) -> bool {
        AGGREGATES.iter().any(|row| row.name == name)
    }
}

impl FromArgMatches for Aggregate {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Aggregate, Error> {
        let found = matches.subcommand().and_then(|(name, matches)| {
            let row = AGGREGATES.iter().find(|row| row.name == name)?;
            Some((row, matches))
        });
        let (row, matches) = found.ok_or_else(|| Error::new(ErrorKind::InvalidSubcommand))?;
        let (mut field, mut by, mut limit) = (String::new(), None, 0);
        for parameter in row.parameters {
            match parameter.kind {
                ParameterKind::Field(_) => {
                    field = matches.get_one(FIELD).cloned().unwrap_or_default();
                }
                ParameterKind::By => by = matches.get_one(BY).cloned(),
                ParameterKind::Limit { .. } => {
                    // It has a default.
                    limit = matches.get_one(LIMIT).copied().unwrap_or_default();
                }
            }
        }
        Ok(Aggregate {
            row,
            field,
            by,
            limit,
            matching: RecordFilter::from_arg_matches(matches)?,
            printing: OutputOptions::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Aggregate::from_arg_matches(matches)?;
        Ok(())
    }
}
