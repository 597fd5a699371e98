//! Entries of a journal as `journalctl -o json` writes them: an object a line.
//!
//! ```text
//! {"MESSAGE":"text","_PID":"7","BINARY":[255,0],"TAG":["first","second"],"COREDUMP":null}
//! ```
//!
//! A value is text; bytes that are no text are a list of numbers; a name that repeats has a list of
//! values. `null` stands for a value that was too large to be written, unless `--all` was given.
//! Source: "Journal JSON Format", systemd.io/JOURNAL_EXPORT_FORMATS.
//!
//! Invariant: [`read`] gives the fields of the entry that was written, or says which are missing.

use std::fmt;

use serde_json::{Map, Value};

/// An entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonEntry {
    /// Names and values.
    pub fields: Vec<(String, Vec<u8>)>,
    /// Names of fields whose values were left out when the entry was written.
    pub missing: Vec<String>,
}

/// A line is no entry; why, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonEntryError(String);

impl fmt::Display for JsonEntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is no entry of a journal: {}", self.0)
    }
}

impl std::error::Error for JsonEntryError {}

/// Reads an object. What stands before it in the other forms of JSON is passed over: the record
/// separator of `json-seq`, and `data:` of `json-sse`.
///
/// # Errors
/// When it is no object, or a value is none that a journal has.
pub fn read(line: &[u8]) -> Result<JsonEntry, JsonEntryError> {
    let object = line.strip_prefix(b"\x1e").unwrap_or(line);
    let object = object.strip_prefix(b"data:").unwrap_or(object);
    let read: Result<Map<String, Value>, _> = serde_json::from_slice(object);
    let object = read.map_err(|error| JsonEntryError(error.to_string()))?;
    let mut entry = JsonEntry::default();
    for (name, value) in object {
        add(name, value, &mut entry)?;
    }
    Ok(entry)
}

fn add(name: String, value: Value, entry: &mut JsonEntry) -> Result<(), JsonEntryError> {
    match value {
        Value::Null => entry.missing.push(name),
        Value::Array(list) if list.iter().all(Value::is_number) => {
            let value = bytes(&name, &list)?;
            entry.fields.push((name, value));
        }
        Value::Array(list) => {
            for value in list {
                if value.is_array() {
                    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
                    let value = bytes(&name, list)?;
                    entry.fields.push((name.clone(), value));
                } else {
                    add(name.clone(), value, entry)?;
                }
            }
        }
        Value::String(text) => entry.fields.push((name, text.into_bytes())),
        Value::Number(number) => entry.fields.push((name, number.to_string().into_bytes())),
        Value::Bool(_) | Value::Object(_) => {
            return Err(JsonEntryError(format!("'{name}' is no text")));
        }
    }
    Ok(())
}

fn bytes(name: &str, list: &[Value]) -> Result<Vec<u8>, JsonEntryError> {
    let byte = |value: &Value| u8::try_from(value.as_u64()?).ok();
    let bytes: Option<Vec<u8>> = list.iter().map(byte).collect();
    bytes.ok_or_else(|| JsonEntryError(format!("'{name}' is no list of bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_texts_bytes_and_lists_of_both() {
        type Row = (
            &'static str,
            &'static [(&'static str, &'static [u8])],
            &'static [&'static str],
        );
        let table: [Row; 8] = [
            (r#"{"A":"x","B":""}"#, &[("A", b"x"), ("B", b"")], &[]),
            (r#"{"A":[255,0]}"#, &[("A", b"\xff\0")], &[]),
            (
                r#"{"A":["x",[1],"y"]}"#,
                &[("A", b"x"), ("A", b"\x01"), ("A", b"y")],
                &[],
            ),
            (r#"{"A":null,"B":"x"}"#, &[("B", b"x")], &["A"]),
            (r#"{"A":["x",null]}"#, &[("A", b"x")], &["A"]),
            (r#"{"A":7}"#, &[("A", b"7")], &[]),
            ("\u{1e}{\"A\":\"\\u00e4\"}", &[("A", b"\xc3\xa4")], &[]),
            (r#"data: {"A":"x"}"#, &[("A", b"x")], &[]),
        ];
        for (line, fields, missing) in table {
            let entry = read(line.as_bytes()).unwrap();
            let found: Vec<_> = entry.fields.iter().map(|(n, v)| (&**n, &**v)).collect();
            assert_eq!(
                (found, entry.missing),
                (
                    fields.to_vec(),
                    missing.iter().map(|name| (*name).to_owned()).collect()
                ),
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for line in [
            "",
            "x",
            "[]",
            r#"{"A":true}"#,
            r#"{"A":{}}"#,
            r#"{"A":[256]}"#,
            r#"{"A":[-1]}"#,
            "{}x",
        ] {
            assert!(read(line.as_bytes()).is_err(), "{line}");
        }
    }
}
