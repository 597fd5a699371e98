//! `logpond.toml`: one flat table of settings. Sections of proxies may stand beside it.

use std::path::Path;

use logpond_search::nearest;
use toml::de::{DeTable, DeValue};

use super::{Count, Origin, Setting, SettingValue, SettingsError, TABLE, row};

/// The longest settings file that is read: far above any real one, far below any memory.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The sections that are `logpond proxy`'s.
const PROXIES: &str = "proxy";

/// Reads a settings file that must exist.
pub fn read_file(path: &Path) -> Result<Option<Vec<SettingValue>>, SettingsError> {
    parse(&read_text(path)?, path).map(Some)
}

/// The text of a settings file.
pub(super) fn read_text(path: &Path) -> Result<String, SettingsError> {
    let unreadable = |source| SettingsError::Unreadable {
        path: path.to_path_buf(),
        source,
    };
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    if bytes > FILE_BYTES_MAX {
        let reason = format!("it has {bytes} bytes, a settings file at most {FILE_BYTES_MAX}");
        return Err(unreadable(std::io::Error::other(reason)));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

/// Reads a settings file; `None` where there is none.
pub(super) fn read_file_if_present(
    path: &Path,
) -> Result<Option<Vec<SettingValue>>, SettingsError> {
    match read_file(path) {
        Err(SettingsError::Unreadable { source, .. })
            if source.kind() == std::io::ErrorKind::NotFound =>
        {
            Ok(None)
        }
        read => read,
    }
}

/// Reads the text of a settings file; `path` is only named in errors.
pub(super) fn parse(text: &str, path: &Path) -> Result<Vec<SettingValue>, SettingsError> {
    let origin = |at| place(text, path, at);
    let table = DeTable::parse(text).map_err(|error| SettingsError::Syntax {
        origin: origin(error.span().map_or(0, |span| span.start)),
        message: error.message().to_string(),
    })?;
    let mut entries: Vec<_> = table.into_inner().into_iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut given: Vec<SettingValue> = Vec::with_capacity(TABLE.len());
    for (key, value) in entries {
        let name = key.get_ref().to_string();
        if name == PROXIES {
            continue;
        }
        let Some(row) = row(&name) else {
            return Err(SettingsError::Unknown {
                origin: origin(key.span().start),
                meant: nearest(
                    &name.replace('_', "-").to_lowercase(),
                    TABLE.iter().map(|row| row.name),
                ),
                name,
            });
        };
        if given.iter().any(|earlier| earlier.name == row.name) {
            return Err(SettingsError::Syntax {
                origin: origin(key.span().start),
                message: format!("the setting '{}' is given twice", row.name),
            });
        }
        let value_origin = origin(value.span().start);
        let written = &text[value.span()];
        let value = match value.into_inner() {
            DeValue::String(value) => value.into_owned(),
            DeValue::Integer(value) => value.to_string(),
            DeValue::Boolean(value) => value.to_string(),
            DeValue::Array(values) if row.count == Count::Many => lines(&values)
                .ok_or_else(|| refused(row, &value_origin, written, "a list of texts"))?,
            _ => {
                let expected = format!("{} in quotes", row.form);
                return Err(refused(row, &value_origin, written, &expected));
            }
        };
        given.push(SettingValue {
            name: row.name,
            text: value,
            origin: value_origin,
        });
    }
    Ok(given)
}

fn refused(row: &Setting, origin: &Origin, written: &str, expected: &str) -> SettingsError {
    SettingsError::Value {
        origin: origin.clone(),
        name: row.name,
        text: written.to_owned(),
        reason: format!("expected {expected}"),
    }
}

/// The texts of a list, a line each.
fn lines(values: &[toml::Spanned<DeValue<'_>>]) -> Option<String> {
    let texts: Option<Vec<&str>> = values
        .iter()
        .map(|value| value.get_ref().as_str())
        .collect();
    Some(texts?.join("\n"))
}

/// Where a byte of a file's text stands.
pub(super) fn place(text: &str, path: &Path, at: usize) -> Origin {
    let (line, column) = position(text, at);
    Origin::File {
        path: path.to_path_buf(),
        line,
        column,
    }
}

/// Line and column, in characters and from 1, of a byte of the text.
pub fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |n| n + 1);
    (
        before.bytes().filter(|&b| b == b'\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}
