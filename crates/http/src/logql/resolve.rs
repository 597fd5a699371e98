//! What a text means: a saved query by its name, or LogQL itself; with the values of its variables.

use logpond_search::hints::shell_word;
use logpond_search::logql::{self, LogQuery, Query};

use super::filters;
use crate::error::{ApiError, Kind};
use logpond_engine::saved::{
    Format, Language, SavedQueries, SavedQuery, UnknownPolicy, Value, Window, expand,
};

/// A query, ready to be asked.
#[derive(Debug)]
pub(crate) struct ResolvedQuery {
    /// The query.
    pub(crate) query: Query,
    /// How its numbers are shown.
    pub(crate) format: Format,
    /// How series are called; empty is the default.
    pub(crate) legend: String,
}

/// What queries are resolved with.
pub(crate) struct Resolver<'r> {
    /// Queries by name.
    pub(crate) saved: &'r SavedQueries,
    /// The times that are asked for.
    pub(crate) window: Window,
    /// Conditions on all lines.
    pub(crate) filters: &'r [LogQuery],
    /// How numbers are to be shown, whatever a saved query says.
    pub(crate) format: Option<Format>,
}

impl Resolver<'_> {
    /// The times for a query that is shown so: a table is about the whole range.
    fn window(&self, format: Format) -> Window {
        let mut window = self.window;
        if format == Format::Table {
            let range_ms = window.to_ms.saturating_sub(window.from_ms);
            window.interval_ns = range_ms.saturating_mul(1_000_000);
        }
        window
    }

    /// The query that a text means; `value_of` says what variables are for whom asks.
    ///
    /// # Errors
    /// When it is neither a name nor LogQL.
    pub(crate) fn resolve(
        &self,
        text: &str,
        value_of: impl Fn(&str) -> Option<Value>,
    ) -> Result<ResolvedQuery, ApiError> {
        let text = text.trim();
        match self.saved.get(text) {
            Some(saved) if saved.language == Language::LogQl => {
                self.of_saved(text, saved, value_of)
            }
            Some(saved) => Err(of_other_language(text, &saved)),
            None => self.of_text(text, value_of),
        }
    }

    fn of_saved(
        &self,
        name: &str,
        saved: SavedQuery,
        value_of: impl Fn(&str) -> Option<Value>,
    ) -> Result<ResolvedQuery, ApiError> {
        let format = self.format.unwrap_or(saved.format);
        let window = self.window(format);
        let value = |variable: &str| {
            let default = || saved.variables.get(variable).cloned().map(Value::One);
            // What a query does not declare is none of its variables, whoever knows one so called.
            let given = || {
                let is_declared = saved.variables.contains_key(variable);
                value_of(variable).filter(|_| is_declared)
            };
            window.value(variable).or_else(given).or_else(default)
        };
        let refused =
            |what: String| ApiError::new(Kind::BadQuery, format!("saved query '{name}': {what}"));
        let text = expand(&saved.query, UnknownPolicy::Refused, value);
        let text = text.map_err(|error| refused(error.to_string()))?;
        let mut query = logql::parse(&text).map_err(|error| refused(error.to_string()))?;
        filters::apply(&mut query, self.filters);
        Ok(ResolvedQuery {
            query,
            format,
            legend: saved.legend,
        })
    }

    fn of_text(
        &self,
        text: &str,
        value_of: impl Fn(&str) -> Option<Value>,
    ) -> Result<ResolvedQuery, ApiError> {
        let refused = |what: String| ApiError::new(Kind::BadQuery, what);
        let format = self.format.unwrap_or_default();
        let window = self.window(format);
        let value = |variable: &str| window.value(variable).or_else(|| value_of(variable));
        let expanded = expand(text, UnknownPolicy::Kept, value);
        let expanded = expanded.map_err(|error| refused(error.to_string()))?;
        let mut query = logql::parse(&expanded).map_err(|error| {
            let mut refused = refused(error.to_string());
            // A name that is none reads like a query that is none.
            if !text.contains(['{', '(']) {
                refused.hint = Some(format!(
                    "there is no saved query '{text}' either; /api/v1/saved-queries lists all"
                ));
            }
            refused
        })?;
        filters::apply(&mut query, self.filters);
        Ok(ResolvedQuery {
            query,
            format,
            legend: String::new(),
        })
    }
}
/// Refuses a saved query that is no LogQL, with the way to ask it.
fn of_other_language(name: &str, saved: &SavedQuery) -> ApiError {
    let language = saved.language;
    let message = format!(
        "saved query '{name}' is of the language {}, and LogQL is asked here",
        language.as_str()
    );
    let mut refused = ApiError::new(Kind::BadQuery, message);
    let query = shell_word(&saved.query);
    refused.hint = match language {
        Language::Sql => Some(format!("try: logpond sql {query}")),
        Language::Native => Some(format!("try: logpond query --where {query}")),
        Language::LogQl => None,
    };
    refused
}
