//! What the values of a variable of a dashboard can be: names of labels, values of one, or the values
//! that a query finds.

use logpond_search::label;
use logpond_search::logql::{self, LabelMatcher};

use super::asked::QueryRequest;
use super::escapes;
use crate::App;
use crate::error::{ApiError, Kind};
use crate::logql::resolve::Resolver;
use crate::logql::run::{self, QueryParameters, failed};
use crate::logql::table::{Cell, Kind as ColumnKind, columns, each_row};
use logpond_engine::query::{Direction, Output, Scope};
use logpond_engine::saved::Format;

/// A list, and a warning for each part of the data that it lacks. The lists of these data sources have no place for
/// warnings, so the header of the answer has them.
pub(super) type Warned<T> = (T, Vec<String>);

/// The most values: a menu of more is of no use.
const VALUES_MAX: usize = 10_000;

/// What a text asks for.
#[derive(Debug, PartialEq, Eq)]
enum Lookup<'l> {
    /// `label_names()`
    Names,
    /// `label_values(label)` or `label_values({…}, label)`
    Values { selector: &'l str, label: &'l str },
    /// Anything else.
    Query(&'l str),
}

impl Lookup<'_> {
    fn read(text: &str) -> Lookup<'_> {
        let text = text.trim();
        let inside = |name: &str| {
            let inside = text.strip_prefix(name)?.trim_start().strip_prefix('(')?;
            inside.strip_suffix(')').map(str::trim)
        };
        if inside("label_names") == Some("") {
            return Lookup::Names;
        }
        let Some(inside) = inside("label_values") else {
            return Lookup::Query(text);
        };
        match inside.rsplit_once(',') {
            Some((selector, label)) => Lookup::Values {
                selector: selector.trim(),
                label: label.trim(),
            },
            None => Lookup::Values {
                selector: "",
                label: inside,
            },
        }
    }
}

/// Whether a text asks for names or values of labels.
pub(super) fn is_of_labels(text: &str) -> bool {
    !matches!(Lookup::read(text), Lookup::Query(_))
}

/// The values that a text asks for.
pub(super) fn values(
    app: &App,
    request: &QueryRequest,
    text: &str,
    out: &mut Output,
) -> Result<Warned<Vec<String>>, ApiError> {
    match Lookup::read(&escapes::known(text)) {
        Lookup::Names => label_names(app, request, out),
        Lookup::Values { selector, label } => label_values(app, request, selector, label, out),
        Lookup::Query(text) => found(app, request, text, out),
    }
}

/// The records in which names and values are looked for: those that filters let through.
fn scope(request: &QueryRequest, selector: &str) -> Result<Scope, ApiError> {
    let refused = |what: String| ApiError::new(Kind::BadQuery, what);
    let mut matchers: Vec<LabelMatcher> = match selector {
        "" => Vec::new(),
        text => logql::parse_matchers(text).map_err(|error| refused(error.to_string()))?,
    };
    let of_filters = request.filters.iter().flat_map(|filter| &filter.matchers);
    matchers.extend(of_filters.cloned());
    let filter = logql::filter_of_matchers(&matchers);
    Scope::of_filter(&filter, request.range).map_err(|error| refused(error.message))
}

/// Names of labels: what was declared beside lines, and the fields of the lines.
pub(super) fn label_names(
    app: &App,
    request: &QueryRequest,
    out: &mut Output,
) -> Result<Warned<Vec<String>>, ApiError> {
    let scope = scope(request, "")?;
    let (labels, of_labels) = app.engine.labels(&scope, out).map_err(failed)?;
    let fields = labels.fields.into_iter();
    let mut names: Vec<String> = fields.map(|field| field.name.into()).collect();
    let (fields, of_fields) = app.engine.field_list(&scope, out).map_err(failed)?;
    let fields = fields.into_iter().map(|field| field.name);
    // Those that begin so are parts of records, and labels that are there already.
    let fields = fields.filter(|name| !name.starts_with('_'));
    names.extend(fields.map(|name| label::of_field(&name).into_owned()));
    names.sort_unstable();
    names.dedup();
    let mut warnings = run::absent(&of_labels);
    warnings.extend(run::absent(&of_fields));
    warnings.sort_unstable();
    warnings.dedup();
    Ok((names, warnings))
}

/// The values of a label; any field may be one.
pub(super) fn label_values(
    app: &App,
    request: &QueryRequest,
    selector: &str,
    label: &str,
    out: &mut Output,
) -> Result<Warned<Vec<String>>, ApiError> {
    let scope = scope(request, selector)?;
    let (mut values, trailer) = app
        .engine
        .label_values(&scope, label, out)
        .map_err(failed)?;
    values.truncate(VALUES_MAX);
    Ok((values, run::absent(&trailer)))
}

/// What stands in the first column of text that a query finds at the end of the range.
fn found(
    app: &App,
    request: &QueryRequest,
    text: &str,
    out: &mut Output,
) -> Result<Warned<Vec<String>>, ApiError> {
    let resolver = Resolver {
        saved: &app.saved,
        window: request.window(),
        filters: &request.filters,
        format: Some(Format::Table),
    };
    let resolved = resolver.resolve(text, |name| request.variable(name))?;
    let wanted = QueryParameters {
        range: request.range,
        step_ns: request.step_ns,
        format: Format::Table,
        limit: VALUES_MAX as u64,
        direction: Direction::Backward,
        behind: None,
        now: request.now,
    };
    let (found, trailer) = run::run(&*app.engine, resolved.query, &wanted, out)?;
    let mut warnings = run::absent(&trailer);
    warnings.extend_from_slice(found.warnings());
    let columns = columns(&found, false);
    let first = columns
        .iter()
        .position(|column| column.kind == ColumnKind::Text);
    let mut values: Vec<String> = Vec::new();
    let take = |cells: &[Cell<'_>]| {
        if let Some(Cell::Text(text)) = first.and_then(|at| cells.get(at)) {
            values.push(text.to_string());
        }
        Ok::<(), std::convert::Infallible>(())
    };
    let Ok(()) = each_row(&found, &columns, take);
    let mut seen = std::collections::BTreeSet::new();
    values.retain(|value| seen.insert(value.clone()));
    Ok((values, warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_looked_up_as_elsewhere() {
        let table = [
            ("label_names()", Lookup::Names),
            (
                " label_values( host ) ",
                Lookup::Values {
                    selector: "",
                    label: "host",
                },
            ),
            (
                r#"label_values({app="a,b", x="y"}, host)"#,
                Lookup::Values {
                    selector: r#"{app="a,b", x="y"}"#,
                    label: "host",
                },
            ),
            ("top-articles", Lookup::Query("top-articles")),
            ("label_names(x)", Lookup::Query("label_names(x)")),
        ];
        for (text, expected) in table {
            assert_eq!(Lookup::read(text), expected, "{text}");
        }
    }
}
