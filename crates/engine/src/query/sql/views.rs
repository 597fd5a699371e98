//! The tables of SQL that have some of the records, with columns of their own.

use logpond_search::Filter;
use logpond_search::columns::ColumnKind;
use logpond_search::query::FieldTest;
use logpond_sql::{View, ViewField};

/// The beginning of the names of tables of access logs.
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

/// A column: its name, its field, its type.
type FixedColumn = (&'static str, &'static str, ColumnKind);

/// A column with the name of its field.
const fn same(field: &'static str, kind: ColumnKind) -> FixedColumn {
    (field, field, kind)
}

/// A table whose columns do not depend on the records.
struct FixedView {
    name: &'static str,
    /// The fields that each of its records has.
    having: &'static [&'static str],
    columns: &'static [FixedColumn],
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
            same("remote_addr", Text),
            ("remote_user", "user", Text),
            same("host", Text),
            same("method", Text),
            same("path", Text),
            same("query", Text),
            ("version", "protocol", Text),
            same("status", Int),
            ("body_bytes_sent", "bytes", Int),
            same("referer", Text),
            ("user_agent", "agent", Text),
            ("request_time", "duration_s", Float),
        ],
    },
    FixedView {
        name: "journal",
        having: &["_TRANSPORT"],
        columns: &[
            same("PRIORITY", Int),
            same("SYSLOG_IDENTIFIER", Text),
            same("SYSLOG_FACILITY", Int),
            same("MESSAGE_ID", Text),
            same("CODE_FILE", Text),
            same("CODE_LINE", Int),
            same("CODE_FUNC", Text),
            same("ERRNO", Int),
            same("UNIT", Text),
            same("_TRANSPORT", Text),
            same("_PID", Int),
            same("_UID", Int),
            same("_GID", Int),
            same("_COMM", Text),
            same("_EXE", Text),
            same("_CMDLINE", Text),
            same("_SYSTEMD_UNIT", Text),
            same("_SYSTEMD_USER_UNIT", Text),
            same("_SYSTEMD_SLICE", Text),
            same("_BOOT_ID", Text),
            same("_MACHINE_ID", Text),
            same("_HOSTNAME", Text),
        ],
    },
    FixedView {
        name: "proxy_connections",
        having: &["client", "client_port", "close_reason"],
        columns: &[
            same("frontend", Text),
            same("client", Text),
            same("client_port", Int),
            same("sni", Text),
            same("alpn", Text),
            same("version", Text),
            same("cipher", Text),
            same("resumed", Bool),
            same("client_cn", Text),
            same("client_fingerprint", Text),
            same("upstream", Text),
            same("close_reason", Text),
            same("bytes_from_client", Int),
            same("bytes_to_client", Int),
            same("handshake_s", Float),
            same("duration_s", Float),
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
