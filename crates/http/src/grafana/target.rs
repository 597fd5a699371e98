//! A target of a question: what one line of a panel's editor says.

use logpond_record::cast;
use serde_json::Value as Json;

use super::asked::{QueryRequest, value};
use super::escapes;
use super::metrics::LOGQL;
use crate::App;
use crate::error::ApiError;
use crate::logql::resolve::{ResolvedQuery, Resolver};
use logpond_engine::query::Direction;
use logpond_engine::saved::{Format, Value};

/// Lines of an answer that does not say how many.
const LIMIT_DEFAULT: u64 = 1_000;

/// The most lines: no table of a panel shows more.
const LIMIT_MAX: u64 = 100_000;

/// What one target asks.
pub(super) struct Target<'t> {
    /// A saved query's name, or LogQL.
    pub(super) text: &'t str,
    /// What the panel calls it.
    pub(super) id: &'t str,
    /// What the fields of its form hold.
    payload: &'t Json,
    /// How its numbers are to be shown, if the target says so.
    format: Option<Format>,
}

impl<'t> Target<'t> {
    /// Reads a target; `None` if it asks nothing, as an empty line of an editor, or is hidden.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn read(target: &'t Json) -> Result<Option<Target<'t>>, ApiError> {
        if !target.is_object() {
            return Err(ApiError::bad_request("a target is no JSON object"));
        }
        let payload = &target["payload"];
        let own = target["target"].as_str().unwrap_or_default().trim();
        let text = match own {
            "" | LOGQL => payload["query"].as_str().unwrap_or_default().trim(),
            own => own,
        };
        if text.is_empty() || target["hide"] == true {
            return Ok(None);
        }
        let format = payload["format"].as_str().filter(|name| !name.is_empty());
        let format = format.map(|name| {
            Format::parse(name).ok_or_else(|| {
                let message = format!("'format' is time_series or table, not '{name}'");
                ApiError::bad_request(message)
            })
        });
        // Series are what editors say that nobody has touched: no wish.
        let asked_for = (target["type"] == "table").then_some(Format::Table);
        Ok(Some(Target {
            text,
            id: target["refId"].as_str().unwrap_or_default(),
            payload,
            format: format.transpose()?.or(asked_for),
        }))
    }

    /// What the form of a target has for a variable; nothing is no value.
    fn value(&self, name: &str) -> Option<Value> {
        value(&self.payload[name]).filter(|value| *value != Value::One(String::new()))
    }

    /// The query that is meant.
    ///
    /// # Errors
    /// When it is neither a name nor LogQL.
    pub(super) fn resolve(
        &self,
        app: &App,
        request: &QueryRequest,
    ) -> Result<ResolvedQuery, ApiError> {
        let resolver = Resolver {
            saved: &app.saved,
            window: request.window(),
            filters: &request.filters,
            format: self.format,
        };
        let value_of = |name: &str| self.value(name).or_else(|| request.variable(name));
        let text = escapes::known(self.text);
        let mut resolved = resolver.resolve(&text, value_of)?;
        if let Some(legend) = self.payload["legend"].as_str().filter(|l| !l.is_empty()) {
            legend.clone_into(&mut resolved.legend);
        }
        Ok(resolved)
    }

    /// The most lines that are wanted.
    pub(super) fn limit(&self) -> u64 {
        let limit = super::asked::number(&self.payload["limit"]);
        let limit = limit.filter(|limit| *limit >= 1.0);
        limit.map_or(LIMIT_DEFAULT, |limit| cast::whole_u64(limit).min(LIMIT_MAX))
    }

    /// In which order lines are wanted.
    pub(super) fn direction(&self) -> Direction {
        match self.payload["direction"].as_str() {
            Some("forward") => Direction::Forward,
            _ => Direction::Backward,
        }
    }
}
