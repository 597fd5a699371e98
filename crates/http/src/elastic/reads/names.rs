//! Names of fields, as clients write them and as records have them.
//!
//! | client | record |
//! | --- | --- |
//! | `@timestamp` | `_time` |
//! | `message` | `_msg` |
//! | `name.keyword` | `name` |
//! | `@timestamp@label`, `message@label` | fields of records with these names, such as labels |

/// The time of a record.
pub(super) const TIME: &str = "@timestamp";

/// The message of a record.
pub(super) const MESSAGE: &str = "message";

/// The index of a record: a field that shippers of Elasticsearch have stored.
pub(super) const INDEX: &str = "_index";

/// The id of a record.
pub(super) const ID: &str = "_id";

/// The id that a shipper gave a document.
pub(super) const DOCUMENT_ID: &str = "_document_id";

/// The index of records that have no field of this name.
pub(super) const DEFAULT_INDEX: &str = "logpond";

/// Fields of records that have a name by which clients know something else, and the names that these have for them.
const APART: [(&str, &str); 2] = [(TIME, "@timestamp@label"), (MESSAGE, "message@label")];

/// The name that clients see of a record's own field.
pub(super) fn of_field(name: &str) -> &str {
    let apart = APART.iter().find(|(field, _)| *field == name);
    apart.map_or(name, |(_, shown)| shown)
}

/// The name that a record has for a field.
pub(super) fn of_record(name: &str) -> &str {
    let name = match name.strip_suffix(".keyword") {
        Some(short) if !short.is_empty() => short,
        _ => name,
    };
    match name {
        TIME => "_time",
        MESSAGE => "_msg",
        name => {
            let apart = APART.iter().find(|(_, shown)| *shown == name);
            apart.map_or(name, |(field, _)| field)
        }
    }
}

/// The name that clients know a field by.
#[cfg(test)]
pub(super) fn of_client(name: &str) -> &str {
    match name {
        "_time" => TIME,
        "_msg" => MESSAGE,
        name => name,
    }
}

/// True if a field holds text whose words are searched, rather than one value.
pub(super) fn is_text(name: &str) -> bool {
    // With the suffix the message is one value, too.
    matches!(name, MESSAGE | "_msg" | "_raw")
}

/// True if a field holds an instant.
pub(super) fn is_time(name: &str) -> bool {
    matches!(of_record(name), "_time" | "_received")
}

/// True if a name with stars fits a name.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut is_open = false;
    let mut last = "";
    for part in parts {
        is_open = true;
        last = part;
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    if is_open {
        // The last part has to be at the end, which may be behind its first place.
        last.is_empty() || rest.is_empty() || ends_with_behind(pattern, name, last)
    } else {
        rest.is_empty()
    }
}

fn ends_with_behind(pattern: &str, name: &str, last: &str) -> bool {
    let before = pattern.len() - last.len();
    let start = name.len().checked_sub(last.len());
    let head = start.and_then(|start| name.get(..start));
    let pattern = pattern.get(..before);
    match (head, pattern) {
        (Some(head), Some(pattern)) => name.ends_with(last) && fits(pattern, head),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_stars_fit() {
        let table = [
            ("*", "a", true),
            ("a*", "abc", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("*c*", "abcd", true),
            ("a*bc", "abcbc", true),
            ("logs-*-x", "logs-a-b-x", true),
            ("logs-*-x", "logs-x", false),
            ("a", "a", true),
            ("a", "ab", false),
            ("", "", true),
        ];
        for (pattern, name, expected) in table {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn clients_and_records_have_names() {
        for (client, record) in [
            ("@timestamp", "_time"),
            ("message", "_msg"),
            ("host.name.keyword", "host.name"),
            ("message.keyword", "_msg"),
            (".keyword", ".keyword"),
            ("_id", "_id"),
        ] {
            assert_eq!(of_record(client), record);
        }
        assert_eq!(of_client("_time"), "@timestamp");
        assert_eq!(of_client("status"), "status");
    }
}
