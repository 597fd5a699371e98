//! Templates of `to_char`, `to_timestamp` and `to_date` as the engine's formats.

/// Patterns of a template and the engine's specifiers; longer ones stand before those that begin alike.
const PATTERNS: [(&str, &str); 30] = [
    ("YYYY", "%Y"),
    ("YY", "%y"),
    ("IYYY", "%G"),
    ("IY", "%g"),
    ("HH24", "%H"),
    ("HH12", "%I"),
    ("HH", "%I"),
    ("MI", "%M"),
    ("SSSS", ""),
    ("SS", "%S"),
    ("MS", "%3f"),
    ("US", "%6f"),
    ("FF3", "%3f"),
    ("FF6", "%6f"),
    ("Month", "%B"),
    ("Mon", "%b"),
    ("MM", "%m"),
    ("Day", "%A"),
    ("Dy", "%a"),
    ("DDD", "%j"),
    ("DD", "%d"),
    ("ID", "%u"),
    ("IW", "%V"),
    ("AM", "%p"),
    ("PM", "%p"),
    ("am", "%P"),
    ("pm", "%P"),
    ("TZH", "+00"),
    ("TZ", "UTC"),
    ("OF", "+00"),
];

/// Specifiers that pad with zeros, and do not behind `FM`.
const PADDED: &str = "YyGgHIMSmdj";

/// The engine's format for a template.
///
/// # Errors
/// When the template has a pattern that there is none for.
pub(super) fn format_of(template: &str) -> Result<String, String> {
    let mut format = String::new();
    let (mut rest, mut is_filled) = (template, true);
    while let Some(char) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix("FM") {
            (rest, is_filled) = (behind, false);
            continue;
        }
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, behind) = quoted.split_once('"').unwrap_or((quoted, ""));
            format.push_str(&text.replace('%', "%%"));
            rest = behind;
            continue;
        }
        let found = PATTERNS.iter().find(|(name, _)| rest.starts_with(name));
        match found {
            Some((name, specifier)) if !specifier.is_empty() => {
                push(&mut format, specifier, is_filled);
                rest = rest.get(name.len()..).unwrap_or_default();
                is_filled = true;
            }
            _ if char.is_alphabetic() => {
                let known = PATTERNS.iter().filter(|(_, to)| !to.is_empty());
                let known: Vec<&str> = known.map(|(name, _)| *name).collect();
                return Err(format!(
                    "no pattern for times begins at '{rest}': there are {}, and text in double quotes",
                    known.join(", ")
                ));
            }
            _ => {
                format.push(char);
                if char == '%' {
                    format.push('%');
                }
                rest = rest.get(char.len_utf8()..).unwrap_or_default();
            }
        }
    }
    Ok(format)
}

fn push(format: &mut String, specifier: &str, is_filled: bool) {
    match specifier.strip_prefix('%') {
        Some(letter) if !is_filled && PADDED.contains(letter) => {
            format.push_str("%-");
            format.push_str(letter);
        }
        _ => format.push_str(specifier),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_become_formats() {
        for (template, expected) in [
            ("YYYY-MM-DD HH24:MI:SS.MS", Some("%Y-%m-%d %H:%M:%S.%3f")),
            ("Dy, DD Mon YYYY HH12:MI AM", Some("%a, %d %b %Y %I:%M %p")),
            ("YYYY-MM-DD\"T\"HH24", Some("%Y-%m-%dT%H")),
            ("FMMonth FMDD", Some("%B %-d")),
            ("100% DDD", Some("100%% %j")),
            ("\"open", Some("open")),
            ("J", None),
            ("MONTH", None),
            ("SSSS", None),
        ] {
            assert_eq!(format_of(template).ok().as_deref(), expected, "{template}");
        }
    }
}
