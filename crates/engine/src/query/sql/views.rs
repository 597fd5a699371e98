//! The tables of SQL that have some of the records, with columns of their own.

use logpond_search::Filter;
use logpond_search::columns::ColumnKind;
use logpond_search::query::FieldTest;
use logpond_sql::{View, ViewField};

/// What the names of tables of access logs begin with.
pub(super) const VIEW_PREFIX: &str = "access_";

/// The field that names the declared format of a record.
pub(super) const FORMAT_FIELD: &str = "access_log";

/// The name of the table of access logs in the formats that need no declaration.
const COMBINED: &str = "combined";

/// The fields of these formats.
const COMBINED_FIELDS: [(&str, ColumnKind); 12] = [
    ("remote_addr", ColumnKind::Text),
    ("user", ColumnKind::Text),
    ("host", ColumnKind::Text),
    ("method", ColumnKind::Text),
    ("path", ColumnKind::Text),
    ("query", ColumnKind::Text),
    ("protocol", ColumnKind::Text),
    ("status", ColumnKind::Int),
    ("bytes", ColumnKind::Int),
    ("referer", ColumnKind::Text),
    ("referer_host", ColumnKind::Text),
    ("agent", ColumnKind::Text),
];

/// Fields of access logs that are made from others and stand in no line.
pub(super) const COMPUTED_FIELDS: [(&str, ColumnKind); 2] = [
    ("duration_s", ColumnKind::Float),
    ("referer_host", ColumnKind::Text),
];

/// Fields that are whole numbers in every declared format that has them.
pub(super) const NUMBER_FIELDS: [&str; 12] = [
    "bytes",
    "bytes_moved",
    "bytes_received",
    "bytes_sent",
    "connection",
    "connection_requests",
    "keepalive",
    "port",
    "remote_port",
    "request_length",
    "status",
    "worker_pid",
];

/// Words of statements that ask for the tables that there are.
const CATALOG_WORDS: [&str; 3] = ["show", "information_schema", "pg_"];

/// A table whose columns do not depend on the records.
struct FixedView {
    name: &'static str,
    /// The fields that each of its records has.
    having: &'static [&'static str],
    /// Its columns: name, field, type.
    columns: &'static [(&'static str, &'static str, ColumnKind)],
}

use ColumnKind::{Bool, Float, Int, Text};

/// The tables that are there whatever records there are.
const FIXED: [FixedView; 3] = [
    // The columns of nginx's variables, and the seconds that simple tables of access logs have.
    FixedView {
        name: "access_requests",
        having: &["remote_addr", "method", "status"],
        columns: &[
            ("epoch", "_time", Int),
            ("remote_addr", "remote_addr", Text),
            ("remote_user", "user", Text),
            ("host", "host", Text),
            ("method", "method", Text),
            ("path", "path", Text),
            ("query", "query", Text),
            ("version", "protocol", Text),
            ("status", "status", Int),
            ("body_bytes_sent", "bytes", Int),
            ("referer", "referer", Text),
            ("user_agent", "agent", Text),
            ("request_time", "duration_s", Float),
        ],
    },
    FixedView {
        name: "journal",
        having: &["_TRANSPORT"],
        columns: &[
            ("PRIORITY", "PRIORITY", Int),
            ("SYSLOG_IDENTIFIER", "SYSLOG_IDENTIFIER", Text),
            ("SYSLOG_FACILITY", "SYSLOG_FACILITY", Int),
            ("MESSAGE_ID", "MESSAGE_ID", Text),
            ("CODE_FILE", "CODE_FILE", Text),
            ("CODE_LINE", "CODE_LINE", Int),
            ("CODE_FUNC", "CODE_FUNC", Text),
            ("ERRNO", "ERRNO", Int),
            ("UNIT", "UNIT", Text),
            ("_TRANSPORT", "_TRANSPORT", Text),
            ("_PID", "_PID", Int),
            ("_UID", "_UID", Int),
            ("_GID", "_GID", Int),
            ("_COMM", "_COMM", Text),
            ("_EXE", "_EXE", Text),
            ("_CMDLINE", "_CMDLINE", Text),
            ("_SYSTEMD_UNIT", "_SYSTEMD_UNIT", Text),
            ("_SYSTEMD_USER_UNIT", "_SYSTEMD_USER_UNIT", Text),
            ("_SYSTEMD_SLICE", "_SYSTEMD_SLICE", Text),
            ("_BOOT_ID", "_BOOT_ID", Text),
            ("_MACHINE_ID", "_MACHINE_ID", Text),
            ("_HOSTNAME", "_HOSTNAME", Text),
        ],
    },
    FixedView {
        name: "proxy_connections",
        having: &["client", "client_port", "close_reason"],
        columns: &[
            ("frontend", "frontend", Text),
            ("client", "client", Text),
            ("client_port", "client_port", Int),
            ("sni", "sni", Text),
            ("alpn", "alpn", Text),
            ("version", "version", Text),
            ("cipher", "cipher", Text),
            ("resumed", "resumed", Bool),
            ("client_cn", "client_cn", Text),
            ("client_fingerprint", "client_fingerprint", Text),
            ("upstream", "upstream", Text),
            ("close_reason", "close_reason", Text),
            ("bytes_from_client", "bytes_from_client", Int),
            ("bytes_to_client", "bytes_to_client", Int),
            ("handshake_s", "handshake_s", Float),
            ("duration_s", "duration_s", Float),
        ],
    },
];

/// True if a statement, in lower case, may mean a table of this name.
fn may_mean(statement: &str, name: &str) -> bool {
    let asks_for_all = CATALOG_WORDS.iter().any(|word| statement.contains(word));
    asks_for_all || statement.contains(name)
}

/// True if a statement, in lower case, may mean a table of a format of access logs.
pub(super) fn may_mean_formats(statement: &str) -> bool {
    may_mean(statement, VIEW_PREFIX)
}

/// The tables that a statement, in lower case, may mean, of those that are there whatever records there are.
pub(super) fn fixed(statement: &str) -> impl Iterator<Item = View> {
    let meant = FIXED
        .into_iter()
        .filter(|view| may_mean(statement, view.name));
    meant.map(|view| View {
        name: view.name.to_owned(),
        filter: Filter::and(view.having.iter().copied().map(exists)),
        fields: view.columns.iter().copied().map(column).collect(),
    })
}

/// The table of access logs in the formats that need no declaration.
pub(super) fn combined() -> View {
    let known = ["remote_addr", "method", "status"].map(exists);
    let undeclared = Filter::negate(exists(FORMAT_FIELD));
    View {
        name: format!("{VIEW_PREFIX}{COMBINED}"),
        filter: Filter::and(known.into_iter().chain([undeclared])),
        fields: COMBINED_FIELDS.map(view_field).into(),
    }
}

fn exists(field: &str) -> Filter {
    Filter::field(field, FieldTest::Exists)
}

fn column((name, field, kind): (&str, &str, ColumnKind)) -> ViewField {
    ViewField {
        name: name.into(),
        field: field.into(),
        kind,
    }
}

/// The column of a field, with its name.
pub(super) fn view_field((name, kind): (&str, ColumnKind)) -> ViewField {
    column((name, name, kind))
}

/// The name of the table of a format: without quotes, if no other table has that one.
pub(super) fn view_name(format: &str, views: &[View]) -> String {
    let plain = |byte: char| match byte.to_ascii_lowercase() {
        byte @ ('a'..='z' | '0'..='9' | '_') => byte,
        _ => '_',
    };
    let name: String = format.chars().map(plain).collect();
    let name = format!("{VIEW_PREFIX}{name}");
    if views.iter().any(|view| view.name == name) {
        format!("{VIEW_PREFIX}{format}")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_names_of_their_own() {
        let mut views = Vec::new();
        for (format, expected) in [
            ("shop", "access_shop"),
            ("My-Shop.2", "access_my_shop_2"),
            ("my.shop.2", "access_my.shop.2"),
        ] {
            let name = view_name(format, &views);
            assert_eq!(name, expected);
            views.push(View {
                name,
                filter: Filter::All,
                fields: Vec::new(),
            });
        }
    }
}
