//! A saved query, and what is wrong with one.

use std::collections::BTreeMap;
use std::{fmt, io};

use logpond_search::logql::variables::{
    UnknownPolicy, Value, VariableError, Window, expand, is_name as is_variable,
};
use logpond_search::logql::{self, ParseError, Query};

use super::QUERIES_MAX;
use super::queries::{CATALOG_BYTES_MAX, PATH};

/// The longest name: it is a column of a list and a line of a menu.
pub const NAME_BYTES_MAX: usize = 64;

/// The longest query; that of a panel has a few hundred bytes.
pub const QUERY_BYTES_MAX: usize = 16 << 10;

/// The longest description: a paragraph.
pub const DESCRIPTION_BYTES_MAX: usize = 4 << 10;

/// The longest legend: some text around some labels.
pub const LEGEND_BYTES_MAX: usize = 1 << 10;

/// The most variables of a query: each is a field of a form.
pub const VARIABLES_MAX: usize = 32;

/// The longest default of a variable.
const DEFAULT_BYTES_MAX: usize = 4 << 10;

/// The longest address of a view: some columns and a range.
pub const VIEW_BYTES_MAX: usize = 4 << 10;

/// The language of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// LogQL, which may have variables.
    #[default]
    LogQl,
    /// The query language of searches.
    Native,
    /// SQL.
    Sql,
}

/// Languages by their names in files and answers.
const LANGUAGES: [(&str, Language); 3] = [
    ("logql", Language::LogQl),
    ("native", Language::Native),
    ("sql", Language::Sql),
];

impl Language {
    /// The name in files and answers.
    pub fn as_str(self) -> &'static str {
        let mut known = LANGUAGES.iter().filter(|(_, language)| *language == self);
        known.next().map_or("", |(name, _)| name)
    }

    /// The language of this name.
    pub fn parse(name: &str) -> Option<Language> {
        let mut known = LANGUAGES.iter().filter(|(known, _)| *known == name);
        known.next().map(|(_, language)| *language)
    }
}

/// How the numbers of a query are shown. Lines are always a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Over time.
    #[default]
    TimeSeries,
    /// Those at the end of the range.
    Table,
}

impl Format {
    /// The name in files and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::TimeSeries => "time_series",
            Format::Table => "table",
        }
    }

    /// The format of this name. The names that Grafana's data sources use for it are known, too.
    pub fn parse(name: &str) -> Option<Format> {
        match name {
            "time_series" | "timeserie" | "timeseries" => Some(Format::TimeSeries),
            "table" => Some(Format::Table),
            _ => None,
        }
    }
}

/// A query without its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedQuery {
    /// The query; LogQL has `$name` where variables stand.
    pub query: String,
    /// The language of the query.
    pub language: Language,
    /// The part of the page's address that has its columns and its range, such as `?from=1h&cols=app`; may be empty.
    pub view: String,
    /// What it is for.
    pub description: String,
    /// How series are called, with `{{label}}` for labels; empty is the default.
    pub legend: String,
    /// How its numbers are shown.
    pub format: Format,
    /// Its variables, each with what it is where nobody says otherwise.
    pub variables: BTreeMap<String, String>,
}

/// Why a query cannot be saved, found or removed.
#[derive(Debug)]
pub enum SavedError {
    /// A name that no query can have.
    Name(String),
    /// A part of a query is missing or too long.
    Part {
        /// Which.
        part: &'static str,
        /// What is expected.
        expected: String,
    },
    /// A variable stands where it cannot.
    Variable(VariableError),
    /// It is not LogQL.
    Query(Box<ParseError>),
    /// There are as many queries as there may be.
    TooMany,
    /// They take as many bytes as they may.
    TooLarge,
    /// No query is called so.
    Unknown(String),
    /// A query that the server brings along.
    BuiltIn(String),
    /// The file is not what the server writes.
    File {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// The file cannot be read or written.
    Disk(io::Error),
}

impl fmt::Display for SavedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SavedError::Name(name) => write!(
                f,
                "'{name}' is no name for a query: expected up to {NAME_BYTES_MAX} letters, digits, \
                 '.', '-' and '_'"
            ),
            SavedError::Part { part, expected } => write!(f, "'{part}' should be {expected}"),
            SavedError::Variable(error) => write!(f, "{error}"),
            SavedError::Query(error) => {
                write!(f, "with the defaults of its variables, {error}")
            }
            SavedError::TooMany => write!(
                f,
                "there are {QUERIES_MAX} queries already; remove some: logpond saved remove NAME"
            ),
            SavedError::TooLarge => write!(
                f,
                "all queries together would take more than {} MiB; remove some: logpond saved remove \
                 NAME",
                CATALOG_BYTES_MAX >> 20
            ),
            SavedError::Unknown(name) => write!(
                f,
                "there is no saved query '{name}'; logpond saved list shows all"
            ),
            SavedError::BuiltIn(name) => write!(
                f,
                "'{name}' is part of the server and cannot be removed; save another one of this name \
                 in its place"
            ),
            SavedError::File { line, what } => write!(
                f,
                "{PATH} in the data directory, line {line}: {what}; correct it, or move it away"
            ),
            SavedError::Disk(_) => write!(f, "{PATH} in the data directory cannot be used"),
        }
    }
}

impl std::error::Error for SavedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SavedError::Disk(source) => Some(source),
            _ => None,
        }
    }
}

/// Whether a query may be called so: letters, digits, `.`, `-` and `_`, which no path and no
/// address must escape.
pub(super) fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    // These two are directories to whatever stands between.
    let is_path = matches!(text, "." | "..");
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits) && !is_path
}

fn part(part: &'static str, expected: impl Into<String>) -> SavedError {
    let expected = expected.into();
    SavedError::Part { part, expected }
}

impl SavedQuery {
    /// Sets a part that is text; says whether there is one of this name.
    ///
    /// # Errors
    /// When the part cannot be this.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<bool, SavedError> {
        let target = match name {
            "query" => &mut self.query,
            "description" => &mut self.description,
            "legend" => &mut self.legend,
            "view" => &mut self.view,
            "language" => {
                let language = Language::parse(value);
                self.language = language.ok_or_else(|| part("language", "logql, native or sql"))?;
                return Ok(true);
            }
            "format" => {
                let format = Format::parse(value);
                self.format = format.ok_or_else(|| part("format", "time_series or table"))?;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        value.clone_into(target);
        Ok(true)
    }

    /// Reads the JSON object that [`SavedQuery::to_json`] makes; `null` is an absent part. A member
    /// that is unknown is an error: it was meant to do something.
    ///
    /// # Errors
    /// With the member that cannot be read.
    pub fn from_json(value: &serde_json::Value) -> Result<SavedQuery, SavedError> {
        use serde_json::Value as Json;
        let Json::Object(members) = value else {
            return Err(part("the body", "a JSON object with 'query'"));
        };
        let mut query = SavedQuery::default();
        for (name, value) in members {
            let is_known = match (name.as_str(), value) {
                (_, Json::Null) => true,
                ("variables", Json::Object(variables)) => {
                    for (name, value) in variables {
                        let Json::String(value) = value else {
                            return Err(part("variables", "names with their defaults as texts"));
                        };
                        query.variables.insert(name.clone(), value.clone());
                    }
                    true
                }
                (name, Json::String(text)) => query.set(name, text)?,
                _ => false,
            };
            if !is_known {
                let expected = format!(
                    "of the members query, language, description, legend, format and view as texts, and \
                     variables, not '{name}'"
                );
                return Err(part("the body", expected));
            }
        }
        Ok(query)
    }

    /// It and its name as JSON.
    pub fn to_json(&self, name: &str) -> serde_json::Value {
        serde_json::json!({
            "name": name,
            "query": self.query,
            "language": self.language.as_str(),
            "view": self.view,
            "description": self.description,
            "legend": self.legend,
            "format": self.format.as_str(),
            "variables": self.variables,
        })
    }

    /// Checks what must hold of a query of this name.
    ///
    /// # Errors
    /// With the first thing that does not.
    pub fn check(&self, name: &str) -> Result<(), SavedError> {
        if !is_name(name) {
            return Err(SavedError::Name(name.to_owned()));
        }
        let texts: [(&'static str, &str, usize); 4] = [
            ("view", &self.view, VIEW_BYTES_MAX),
            ("query", &self.query, QUERY_BYTES_MAX),
            ("description", &self.description, DESCRIPTION_BYTES_MAX),
            ("legend", &self.legend, LEGEND_BYTES_MAX),
        ];
        for (name, text, bytes_max) in texts {
            if text.len() > bytes_max {
                return Err(part(name, format!("at most {bytes_max} bytes")));
            }
        }
        if self.query.trim().is_empty() {
            return Err(part(
                "query",
                "LogQL, or a query of the language that 'language' names",
            ));
        }
        if self.variables.len() > VARIABLES_MAX {
            return Err(part("variables", format!("at most {VARIABLES_MAX}")));
        }
        for (name, value) in &self.variables {
            if !is_variable(name) || name.starts_with("__") {
                let expected =
                    "names of letters, digits and '_' that begin with no digit and no '__'";
                return Err(part("variables", expected));
            }
            if value.len() > DEFAULT_BYTES_MAX {
                return Err(part(
                    "variables",
                    format!("defaults of at most {DEFAULT_BYTES_MAX} bytes"),
                ));
            }
        }
        self.check_query()
    }

    /// Checks that the query is one of its language. SQL is checked when it is asked, against the tables there are.
    fn check_query(&self) -> Result<(), SavedError> {
        match self.language {
            Language::LogQl => return self.parse_with_defaults().map(drop),
            Language::Native => {
                let parsed = logpond_search::query::parse(&self.query);
                parsed.map_err(|error| part("query", format!("a query: {error}")))?;
            }
            Language::Sql => {}
        }
        if self.variables.is_empty() {
            Ok(())
        } else {
            Err(part("variables", "absent: only LogQL has variables"))
        }
    }

    /// The query with its defaults, of some minute.
    fn parse_with_defaults(&self) -> Result<Query, SavedError> {
        let window = Window::default();
        let value_of = |name: &str| {
            let given = self.variables.get(name);
            window
                .value(name)
                .or_else(|| given.map(|text| Value::One(text.clone())))
        };
        let text =
            expand(&self.query, UnknownPolicy::Refused, value_of).map_err(SavedError::Variable)?;
        logql::parse(&text).map_err(|error| SavedError::Query(Box::new(error)))
    }
}
