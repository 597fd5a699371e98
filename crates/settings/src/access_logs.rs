//! Formats of access logs that users declare: `NAME=FORMAT`, one or several.

use logpond_protocol::intake::access_format::{AccessFormat, LABEL_PREFIX};
use logpond_record::Labels;

/// The most formats; each line may be tried in all of them.
const FORMATS_MAX: usize = 16;

/// The longest name.
const NAME_BYTES_MAX: usize = 64;

/// The labels that declare formats for what is taken in. `text` has each of them at the beginning
/// of a line, with lines that belong to it behind, or is `off`.
///
/// # Errors
/// What is wrong with which format, in words.
pub fn access_logs(text: &str) -> Result<Labels, String> {
    let mut labels = Labels::new();
    if text == "off" {
        return Ok(labels);
    }
    for (name, definition) in split(text)? {
        let why = |error| format!("format '{name}': {error}");
        AccessFormat::new(&definition).map_err(why)?;
        let label = format!("{LABEL_PREFIX}{name}");
        if labels.iter().any(|(known, _)| **known == *label) {
            return Err(format!("there are two formats '{name}'"));
        }
        labels.push((label.into(), definition.into()));
    }
    match labels.len() {
        0..=FORMATS_MAX => Ok(labels),
        _ => Err(format!("there are more than {FORMATS_MAX} formats")),
    }
}

/// Names and definitions.
fn split(text: &str) -> Result<Vec<(&str, String)>, String> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match (named(line), found.last_mut()) {
            (Some((name, definition)), _) => found.push((name, definition.to_owned())),
            (None, Some((_, definition))) => {
                definition.push('\n');
                definition.push_str(line);
            }
            (None, None) => {
                return Err(format!(
                    "expected NAME=FORMAT, where NAME has from 1 to {NAME_BYTES_MAX} letters, \
                     digits, '_', '-' and '.'"
                ));
            }
        }
    }
    Ok(found)
}

fn named(line: &str) -> Option<(&str, &str)> {
    let (name, definition) = line.split_once('=')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let is_right = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_name);
    // `escape=json '…'` stands within a definition.
    (is_right && name != "escape").then_some((name, definition))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart() {
        let text = "a=$msec $status\nb.2=escape=json '{\"t\":$msec,'\n   '\"s\":$status}'\n";
        let labels = access_logs(text).unwrap();
        let told: Vec<(&str, &str)> = labels
            .iter()
            .map(|(name, text)| (&**name, &**text))
            .collect();
        assert_eq!(
            told,
            [
                ("_access_log.a", "$msec $status"),
                (
                    "_access_log.b.2",
                    "escape=json '{\"t\":$msec,'\n   '\"s\":$status}'"
                ),
            ]
        );
        assert!(access_logs("off").unwrap().is_empty());
    }

    #[test]
    fn what_is_none_is_refused() {
        let many: String = (0..=FORMATS_MAX).map(|i| format!("f{i}=$msec\n")).collect();
        let table = [
            ("$msec $status", "expected NAME=FORMAT, where NAME has"),
            ("a b=$msec", "expected NAME=FORMAT"),
            ("=$msec", "expected NAME=FORMAT"),
            ("a=$msec\na=%t", "there are two formats 'a'"),
            ("a=$status", "format 'a': the format has no time: add"),
            (&many, "there are more than 16 formats"),
        ];
        for (text, why) in table {
            let error = access_logs(text).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
