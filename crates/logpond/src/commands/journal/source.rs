//! Where records come from: a server, or files that are read here.

use std::path::PathBuf;

use logpond_record::TimeRange;
use logpond_search::order::{Direction, Key};
use logpond_search::query::Filter;

use super::ask::parameters;
use super::files;
use crate::cli::Journal;
use crate::commands::{Failure, client};
use logpond_client::{Client, Item, Parameters, Trailer};
use logpond_render::Row;

/// A server or files.
pub(super) enum Source {
    Server(Client),
    Files(Vec<PathBuf>),
}

/// A filter, a range and a limit of records, in an order.
pub(super) struct RecordQuery<'f> {
    pub(super) filter: &'f Filter,
    pub(super) range: TimeRange,
    pub(super) direction: Direction,
    /// Only those behind this place.
    pub(super) behind: Option<Key>,
    pub(super) limit: Option<u64>,
}

impl RecordQuery<'_> {
    /// What a server is asked.
    pub(super) fn parameters(&self) -> Parameters {
        let mut asked = parameters(self.filter, self.range);
        asked.push(("fields", "raw".into()));
        if let Some(limit) = self.limit {
            asked.push(("limit", limit.to_string()));
        }
        if self.direction == Direction::Backward {
            asked.push(("direction", "backward".into()));
        }
        if let Some(key) = self.behind {
            asked.push(("cursor", format!("{}_{}", key.time, key.id)));
        }
        asked
    }
}

impl Source {
    pub(super) fn open(args: &Journal) -> Result<Source, Failure> {
        if args.files.is_empty() && args.directory.is_none() {
            return Ok(Source::Server(client(&args.server)?));
        }
        Ok(Source::Files(files::named(
            &args.files,
            args.directory.as_deref(),
        )?))
    }

    /// Gives rows with their lines to `each`.
    pub(super) fn rows(
        &self,
        wanted: &RecordQuery<'_>,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
    ) -> Result<Trailer, Failure> {
        match self {
            Source::Server(client) => from_server(client, wanted, each),
            Source::Files(paths) => {
                let read = files::read(paths, wanted)?;
                for row in &read.rows {
                    each(row.clone())?;
                }
                Ok(read.trailer)
            }
        }
    }

    /// The first row, and what is missing of it.
    pub(super) fn first(
        &self,
        filter: &Filter,
        range: TimeRange,
        direction: Direction,
    ) -> Result<(Option<Row<'static>>, Trailer), Failure> {
        let mut first = None;
        let wanted = RecordQuery {
            filter,
            range,
            direction,
            behind: None,
            limit: Some(1),
        };
        let trailer = self.rows(&wanted, &mut |row| {
            first.get_or_insert(row.into_owned());
            Ok(())
        })?;
        Ok((first, trailer))
    }
}

fn from_server(
    client: &Client,
    wanted: &RecordQuery<'_>,
    each: &mut dyn FnMut(Row<'_>) -> Result<(), Failure>,
) -> Result<Trailer, Failure> {
    let mut answer = client.get("/api/v1/query", &wanted.parameters())?;
    loop {
        match answer.next_item()? {
            Item::Row(line) => each(Row::from_json(line)?)?,
            Item::Trailer(trailer) => return Ok(trailer),
            Item::Gap | Item::Progress(_) | Item::Notice(_) | Item::Position(_) => {}
        }
    }
}
