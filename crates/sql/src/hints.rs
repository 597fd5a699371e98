//! What was meant, where a name is not there or an argument has the wrong type.

use datafusion::common::Column;
use logpond_search::nearest;

use crate::error::SqlError;

/// Names of columns that a message lists.
const NAMES_LISTED_MAX: usize = 12;

/// What the engine says of a table that is not there: before its name and behind it.
const NO_TABLE: (&str, &str) = ("table '", "' not found");

/// The same of a function, before its name.
const NO_FUNCTION: &str = "Invalid function '";

/// What the engine says around the reason for which a function refuses its arguments.
const OF_ARGUMENTS: [&str; 3] = [
    "user-defined coercion failed with: ",
    "Error during planning: ",
    ". No function matches the given name",
];

/// What the engine says of a function in a frame whose beginning moves, before its name.
const NO_FRAME: &str = "because `retract_batch` is not implemented: ";

/// How the engine calls texts.
const TEXT_TYPES: [&str; 2] = ["Utf8View", "Utf8"];

/// What is said of a column that is not there.
pub(crate) fn no_column(field: &Column, valid: &[Column]) -> String {
    let wanted = field.name();
    let names = || valid.iter().map(Column::name);
    if let Some(before) = &field.relation {
        let dotted = format!("{before}.{wanted}");
        if let Some(name) = names().find(|name| name.eq_ignore_ascii_case(&dotted)) {
            return format!(
                "no column {dotted}; there is \"{name}\": a name with a dot stands in double quotes"
            );
        }
    }
    let same = |name: &&str| name.eq_ignore_ascii_case(wanted) && *name != wanted;
    if let Some(name) = names().find(same) {
        return format!(
            "no column {wanted}; there is \"{name}\": names in double quotes are taken as they are, others \
             in small letters"
        );
    }
    if valid.is_empty() {
        return format!("no column {wanted}: the statement has no FROM logs");
    }
    let mut listed: Vec<&str> = names().take(NAMES_LISTED_MAX).collect();
    if valid.len() > listed.len() {
        listed.push("…");
    }
    let listed = listed.join(", ");
    let table = table_of(valid);
    match nearest(wanted, names()) {
        Some(name) => format!(
            "no column {wanted}: did you mean {name}? There are {listed} (DESCRIBE {table} lists all)"
        ),
        None => format!("no column {wanted}; there are {listed} (DESCRIBE {table} lists all)"),
    }
}

/// The table that columns are of: another name of it in the statement is none that can be described.
fn table_of(columns: &[Column]) -> &str {
    let tables = columns.iter().filter_map(|column| column.relation.as_ref());
    let mut tables = tables.map(|table| table.table());
    tables
        .find(|name| name.starts_with("access_"))
        .unwrap_or("logs")
}

/// An error that says what there is instead of a table or function that is not there, and in plain words what
/// a function or operator takes.
pub(crate) fn explained(error: SqlError, tables: &[String]) -> SqlError {
    let message = no_table(&error.message, tables)
        .or_else(|| no_function(&error.message))
        .or_else(|| text_for_number(&error.message))
        .or_else(|| refused_arguments(&error.message))
        .or_else(|| no_moving_frame(&error.message))
        .or_else(|| subquery_for_each_row(&error.message));
    match message {
        Some(message) => SqlError { message, ..error },
        None => error,
    }
}

fn no_table(message: &str, tables: &[String]) -> Option<String> {
    let (_, rest) = message.split_once(NO_TABLE.0)?;
    let (name, _) = rest.split_once(NO_TABLE.1)?;
    let name = name.rsplit('.').next().unwrap_or(name);
    let names = || tables.iter().map(String::as_str);
    let near = nearest(name, names()).or_else(|| {
        // Of `access_combined` people know that it begins with `access`.
        let first = nearest(first_word(name), names().map(first_word))?;
        names().find(|name| first_word(name) == first)
    });
    let meant = near.map(|near| format!(": did you mean {near}?"));
    let are = match tables {
        [_] => "There is",
        _ => "There are",
    };
    Some(format!(
        "no table {name}{} {are} {} (SHOW TABLES lists all)",
        meant.as_deref().unwrap_or("."),
        tables.join(", ")
    ))
}

fn first_word(name: &str) -> &str {
    name.split('_').next().unwrap_or(name)
}

/// The engine names the nearest of all functions, however far it is.
fn no_function(message: &str) -> Option<String> {
    let (name, rest) = message.strip_prefix(NO_FUNCTION)?.split_once('\'')?;
    let suggested = rest.split('\'').nth(1);
    let near = suggested.and_then(|suggested| nearest(name, std::iter::once(suggested)));
    Some(match near {
        Some(near) => format!("no function {name}: did you mean {near}?"),
        None => format!("no function {name}"),
    })
}

/// Functions and operators that take numbers name all the types that they would take, and call a text by the
/// engine's word.
fn text_for_number(message: &str) -> Option<String> {
    let is_text = TEXT_TYPES.iter().any(|kind| message.contains(kind));
    let what = if let Some((_, rest)) = message.split_once("Function '") {
        let (name, rest) = rest.split_once('\'')?;
        let takes_numbers = rest.contains("requires Float64") || rest.contains("requires Integer");
        takes_numbers.then(|| name.to_owned())?
    } else if let Some((_, rest)) = message.split_once("satisfy a call to '") {
        let (name, rest) = rest.split_once('\'')?;
        rest.contains("Float64").then(|| name.to_owned())?
    } else {
        let (_, rest) = message.split_once("Cannot coerce arithmetic expression ")?;
        let operator = rest.split_whitespace().nth(1)?;
        format!("the operator {operator}")
    };
    is_text.then(|| {
        format!(
            "{what} takes numbers, and this is text: TRY_CAST(… AS DOUBLE) or TRY_CAST(… AS BIGINT) makes \
             numbers of it, and nulls of what is none"
        )
    })
}

/// Functions that cannot let go of a value have frames that only grow.
fn no_moving_frame(message: &str) -> Option<String> {
    let (_, function) = message.split_once(NO_FRAME)?;
    let function = function.split(" ORDER BY [").next().unwrap_or(function);
    Some(format!(
        "{function} has no frame whose beginning moves: write OVER (… ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT \
         ROW), or a subquery for each row"
    ))
}

/// Subqueries become joins, where that can be.
fn subquery_for_each_row(message: &str) -> Option<String> {
    let is_left = message.starts_with("Physical plan does not support logical expression")
        && [
            "ScalarSubquery",
            "Exists(",
            "InSubquery",
            "OuterReferenceColumn",
        ]
        .iter()
        .any(|name| message.contains(name));
    is_left.then(|| {
        "a subquery would be computed for each row: it may name columns of the statement around it in \
         comparisons by = only. A JOIN … ON with GROUP BY says the same"
            .to_owned()
    })
}

/// Why a function refuses its arguments, in its own words.
fn refused_arguments(message: &str) -> Option<String> {
    let [before, prefix, behind] = OF_ARGUMENTS;
    let (_, reason) = message.split_once(before)?;
    let reason = reason.strip_prefix(prefix).unwrap_or(reason);
    let (reason, _) = reason.split_once(behind)?;
    Some(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_near_or_not() {
        let names = ["status", "host", "remote_addr", "http.method"];
        for (wanted, expected) in [
            ("statsu", Some("status")),
            ("Status", Some("status")),
            ("hosts", Some("host")),
            ("remote_adr", Some("remote_addr")),
            ("path", None),
            ("x", None),
        ] {
            assert_eq!(nearest(wanted, names.into_iter()), expected, "{wanted}");
        }
    }

    #[test]
    fn columns_are_suggested() {
        let of = |table: &str, names: &[&str]| -> Vec<Column> {
            let column = |name: &&str| Column::new(Some(table), *name);
            names.iter().map(column).collect()
        };
        let logs = of("logs", &["time", "status", "http.method", "Host"]);
        let view = of("access_combined", &["time", "status"]);
        let field = |relation: Option<&str>, name: &str| Column::new(relation, name);
        let table = [
            (
                field(None, "statsu"),
                &logs,
                "no column statsu: did you mean status? There are ",
            ),
            (
                field(Some("http"), "method"),
                &logs,
                "there is \"http.method\": a name with a dot",
            ),
            (
                field(None, "host"),
                &logs,
                "there is \"Host\": names in double quotes",
            ),
            (field(None, "nothing"), &logs, "(DESCRIBE logs lists all)"),
            (
                field(None, "nothing"),
                &view,
                "(DESCRIBE access_combined lists all)",
            ),
        ];
        for (field, valid, expected) in table {
            let message = no_column(&field, valid);
            assert!(message.contains(expected), "{field}: {message}");
        }
    }

    #[test]
    fn what_the_engine_says_is_said_in_plain_words() {
        let tables = ["logs".to_owned(), "access_combined".to_owned()];
        let table = [
            (
                "table 'logpond.public.log' not found",
                "no table log: did you mean logs? There are logs, access_combined (SHOW TABLES lists all)",
            ),
            (
                "table 'logpond.public.nowhere' not found",
                "no table nowhere. There are logs, access_combined (SHOW TABLES lists all)",
            ),
            (
                "table 'logpond.public.acess' not found",
                "no table acess: did you mean access_combined? There are logs, access_combined (SHOW TABLES lists all)",
            ),
            (
                "table 'logpond.public.access_log' not found",
                "no table access_log: did you mean access_combined? There are logs, access_combined (SHOW TABLES lists all)",
            ),
            (
                "table 'logpond.public.Access_Combind' not found",
                "no table Access_Combind: did you mean access_combined? There are logs, access_combined (SHOW TABLES lists all)",
            ),
            (
                "Aggregate can not be used as a sliding accumulator because `retract_batch` is not implemented: \
                 avg(DISTINCT t.x) ORDER BY [t.i ASC NULLS LAST] ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
                "avg(DISTINCT t.x) has no frame whose beginning moves: write OVER (… ROWS BETWEEN UNBOUNDED \
                 PRECEDING AND CURRENT ROW), or a subquery for each row",
            ),
            (
                "Invalid function 'date_trunk'.\nDid you mean 'date_trunc'?",
                "no function date_trunk: did you mean date_trunc?",
            ),
            (
                "Physical plan does not support logical expression ScalarSubquery(<subquery>)",
                "a subquery would be computed for each row: it may name columns of the statement around it in \
                 comparisons by = only. A JOIN … ON with GROUP BY says the same",
            ),
            (
                "Invalid function 'frobnicate'.\nDid you mean 'concat'?",
                "no function frobnicate",
            ),
        ];
        for (message, expected) in table {
            let error = SqlError::new(crate::error::Blame::Statement, message);
            assert_eq!(explained(error, &tables).message, expected);
        }
    }
}
