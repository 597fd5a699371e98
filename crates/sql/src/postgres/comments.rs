//! Comments on tables and their columns.

/// Comments on columns that every table has.
const COLUMNS: [(&str, &str); 13] = [
    ("epoch", "The event time in seconds since 1970"),
    ("time", "The event time"),
    ("message", "The message"),
    ("hostname", "The host that the record is of"),
    ("level", "The field of that name"),
    ("service_name", "The service, as in Loki's interface"),
    ("detected_level", "The level, as in Loki's interface"),
    ("_level", "The level from any source: trace to fatal"),
    ("_level_number", "The number of the level in OpenTelemetry"),
    (
        "received",
        "The time at which the server received the record",
    ),
    ("_time_source", "The origin of the event time"),
    ("_id", "The id of the record"),
    ("line", "The original line"),
];

/// The comment on a table.
pub(super) fn of_table(name: &str) -> Option<String> {
    match name {
        "logs" => Some("All records; fields are columns".to_owned()),
        "access_combined" => Some("Access logs of the formats that need no declaration".to_owned()),
        "access_requests" => Some("Access logs of all formats, with the names of nginx".to_owned()),
        "fields" => Some("The fields that records have".to_owned()),
        "journal" => Some("Records of journald and its clients".to_owned()),
        "patterns" => Some("The kinds of messages".to_owned()),
        "proxy_connections" => Some("Connections of the TLS proxy".to_owned()),
        _ => {
            let format = name.strip_prefix("access_")?;
            Some(format!("Access logs of the declared format {format}"))
        }
    }
}

/// The comment on a column.
pub(super) fn of_column(name: &str) -> Option<&'static str> {
    let found = COLUMNS.iter().find(|(known, _)| *known == name);
    found.map(|(_, comment)| *comment)
}
