//! Levels of compilers, of consoles of R and Julia, of what builds programs, of bridges of home automation, and of java.util.logging in languages
//! with other letters.

use logpond_record::Severity;
use memchr::memmem;

/// Texts behind a place in a source, as MSBuild, the C# and the TypeScript compiler write them: `app.ts(7,1): error TS2304:`.
const BEHIND_PLACE: [(&[u8], &str); 2] = [(b"): error ", "error"), (b"): warning ", "warn")];

/// Starts of lines of R and Julia.
const STARTS: [(&[u8], &str); 6] = [
    (b"Error in ", "error"),
    (b"Warning message", "warn"),
    ("┌ Error: ".as_bytes(), "error"),
    ("┌ Warning: ".as_bytes(), "warn"),
    ("┌ Info: ".as_bytes(), "info"),
    ("┌ Debug: ".as_bytes(), "debug"),
];

/// Names of levels of java.util.logging with letters beyond ASCII, which begin its second line.
const LOCAL: [(&str, &str); 13] = [
    ("INFORMACIÓN:", "info"),
    ("INFORMAÇÕES:", "info"),
    ("情報:", "info"),
    ("信息:", "info"),
    ("資訊:", "info"),
    ("정보:", "info"),
    ("警告:", "warn"),
    ("경고:", "warn"),
    ("ПРЕДУПРЕЖДЕНИЕ:", "warn"),
    ("致命的:", "error"),
    ("严重:", "error"),
    ("嚴重的:", "error"),
    ("심각:", "error"),
];

/// The level of a line of one of these, or of the second line of java.util.logging.
pub(super) fn level(head: &[u8]) -> Option<&'static str> {
    if let Some(end) = memchr::memchr(b'\n', head) {
        let second = &head[end + 1..];
        let mut known = LOCAL.iter();
        let found = known.find(|(name, _)| second.starts_with(name.as_bytes()));
        return found.map(|(_, level)| *level);
    }
    if let Some(command) = head.strip_prefix(b"::") {
        return workflow(command);
    }
    if let Some(kind) = head.strip_prefix(b"##vso[task.logissue type=") {
        return word(kind, b";]");
    }
    if let Some((_, level)) = STARTS.iter().find(|(start, _)| head.starts_with(start)) {
        return Some(level);
    }
    if let Some(rest) = head.strip_prefix(b"Zigbee2MQTT:") {
        return word(rest, b" ");
    }
    if head.starts_with(b"make") {
        return is_make(head).then_some("error");
    }
    BEHIND_PLACE.iter().find_map(|(mark, level)| {
        let at = memmem::find(head, mark)?;
        let open = memchr::memrchr(b'(', &head[..at])?;
        let is_place = |byte: &u8| byte.is_ascii_digit() || *byte == b',';
        let is_it = at > open + 1 && head[open + 1..at].iter().all(is_place);
        is_it.then_some(*level)
    })
}

/// `E (818) wifi: refused`: a letter and the milliseconds since the start, in a colour or not, as ESP-IDF writes them.
pub(super) fn esp(head: &[u8]) -> Option<&'static str> {
    let text = super::behind_colour(head).unwrap_or(head);
    let [letter, b' ', b'(', rest @ ..] = text else {
        return None;
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_it = digits > 0 && rest[digits..].starts_with(b") ") && b"EWIDV".contains(letter);
    super::of_letter(*letter).filter(|_| is_it)
}

/// `error file=app.js,line=1::…`, a command of GitHub's workflows.
fn workflow(command: &[u8]) -> Option<&'static str> {
    memmem::find(command, b"::")?;
    word(command, b" :")
}

/// The level of the word that a text begins with, if one of these bytes ends it.
fn word(text: &[u8], ends: &[u8]) -> Option<&'static str> {
    let letters = text.iter().take_while(|byte| byte.is_ascii_alphabetic());
    let (word, behind) = text.split_at(letters.count());
    let is_ended = behind.first().is_some_and(|byte| ends.contains(byte));
    let level = Severity::of_word(word).filter(|_| is_ended)?;
    Some(level.name())
}

/// `make: *** [Makefile:7: all] Error 2`, `make[1]: *** …`
fn is_make(head: &[u8]) -> bool {
    memmem::find(head, b": *** ").is_some_and(|at| {
        let depth = &head[b"make".len()..at];
        depth
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'[' | b']'))
    })
}
