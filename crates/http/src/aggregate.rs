//! `GET|POST /api/v1/NAME` for each row of [`AGGREGATES`], such as `top` and `fields`.

use std::sync::Arc;

use hyper::Response;
use logpond_record::cast;

use super::body::Body;
use super::error::ApiError;
use super::params::Params;
use super::rows::{SCOPE_PARAMS, table};
use super::{App, hints};
use logpond_engine::query::{
    AGGREGATES, Aggregate, Arguments, Output, Parameter, ParameterKind, Scope,
};

/// Answers with the aggregate of this place in the table.
pub(super) async fn answer(
    app: &Arc<App>,
    place: usize,
    params: Params,
) -> Result<Response<Body>, ApiError> {
    let aggregate = &AGGREGATES[place];
    let names: Vec<&str> = names(aggregate).collect();
    params.only(&[&SCOPE_PARAMS[..], &names].concat())?;
    let run = |app: &App, scope: &Scope, arguments: Arguments, out: &mut Output| {
        let mut trailer = aggregate.answer(&*app.engine, scope, &arguments, out)?;
        if aggregate.has_field() {
            let is_empty = out.lines() == 0;
            hints::note(app, scope, Some(&arguments.field), is_empty, &mut trailer);
            // One group may be that of all records that lack the field.
            if let Some(by) = arguments.by.as_deref().filter(|_| out.lines() == 1) {
                hints::note_unknown_field(app, scope, by, &mut trailer);
            }
        }
        Ok(trailer)
    };
    table(app, params, |params| read(aggregate, params), run).await
}

/// The names of its parameters.
pub(super) fn names(aggregate: &Aggregate) -> impl Iterator<Item = &'static str> {
    aggregate.parameters.iter().map(|parameter| parameter.name)
}

/// Reads the parameters of an aggregate.
fn read(aggregate: &Aggregate, params: &Params) -> Result<Arguments, ApiError> {
    let mut arguments = Arguments::default();
    for Parameter { name, help, kind } in aggregate.parameters {
        match kind {
            ParameterKind::Field(_) => {
                let field = params.one(name)?.filter(|field| !field.is_empty());
                let missing = || {
                    let meaning = lower_case(help);
                    ApiError::bad_request(format!("parameter '{name}' is missing: {meaning}"))
                };
                arguments.field = field.ok_or_else(missing)?.to_owned();
            }
            ParameterKind::By => {
                let by = params.one(name)?.filter(|field| !field.is_empty());
                arguments.by = by.map(str::to_owned);
            }
            ParameterKind::Limit { default, max } => {
                let default = default.parse().unwrap_or(*max);
                let limit = params.number(name, default, *max)?;
                // No limit, as everywhere, is still this limit.
                arguments.limit = cast::to_usize(if limit == 0 { *max } else { limit });
            }
        }
    }
    Ok(arguments)
}

/// A sentence within another.
fn lower_case(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}
