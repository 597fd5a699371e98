//! Marks of lines that several shapes have in common.

use memchr::memmem;

/// The most bytes at the start of a line that a mark is looked for in: a call with its path is shorter.
const MARK_BYTES_MAX: usize = 1024;

/// The line without the colours of a terminal before it, and without a CR behind it.
pub(in super::super) fn visible(line: &[u8]) -> &[u8] {
    let mut line = line.strip_suffix(b"\r").unwrap_or(line);
    while let Some(inside) = line.strip_prefix(b"\x1b[") {
        let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
        let digits = inside.iter().take_while(is_part).count();
        match inside.get(digits) {
            Some(b'm') => line = &inside[digits + 1..],
            _ => break,
        }
    }
    line
}

pub(super) fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

pub(super) fn is_indented(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

/// True if a bracket at the end of a line is open.
pub(super) fn is_opened(line: &[u8]) -> bool {
    matches!(line.trim_ascii_end().last(), Some(b'{' | b'[' | b'('))
}

/// `}`, `],`, `})`: the end of brackets at the start of a line.
pub(super) fn is_closer(line: &[u8]) -> bool {
    let is_close = |byte: &u8| matches!(byte, b'}' | b']' | b')');
    let is_part = |byte: &u8| is_close(byte) || matches!(byte, b',' | b';' | b' ' | b'{' | b'[');
    line.first().is_some_and(is_close) && line.len() <= 16 && line.iter().all(is_part)
}

/// Lines that only follow others: ends of sentences that runtimes put below an error.
pub(super) fn is_continuation(line: &[u8]) -> bool {
    const STARTS: [&str; 25] = [
        "(Use `node --",
        "Suppressed:",
        "Stack trace:",
        "Stack Trace:",
        "Stacktrace:",
        "Stack backtrace:",
        "stack backtrace:",
        "stack traceback:",
        "Current stack trace:",
        "CallStack (from ",
        "Raised at ",
        "Re-raised at ",
        "Called from ",
        "Execution halted",
        "in expression starting at ",
        "LINE 1: ",
        "--- End of ",
        "note: run with `RUST_BACKTRACE",
        "At line:",
        "<asynchronous suspension>",
        "Raised by primitive operation ",
        // Julia, and Lua's coroutines.
        "caused by: ",
        "coroutine 0:",
        // Perl's ends of a compilation.
        "BEGIN failed--compilation aborted ",
        "Compilation failed in require at ",
    ];
    let is_first = line
        .first()
        .is_some_and(|byte| b"(SsCREiL-nA<cB".contains(byte));
    is_first
        && STARTS
            .iter()
            .any(|start| line.starts_with(start.as_bytes()))
}

/// The start of a line that marks are looked for in.
pub(super) fn head(line: &[u8]) -> &[u8] {
    &line[..line.len().min(MARK_BYTES_MAX)]
}

pub(super) fn has(line: &[u8], text: &str) -> bool {
    memmem::find(head(line), text.as_bytes()).is_some()
}

/// Digits at the start of a text.
pub(super) fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// `#12 /app/index.php(3): main()`, `#0  0x00007f… in raise () from …`
pub(super) fn is_numbered(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"#") else {
        return false;
    };
    let digits = digits(rest);
    digits > 0 && rest.get(digits) == Some(&b' ')
}

/// `    ^^^^` below the place of an error, or at the start of a line.
pub(super) fn is_mark(line: &[u8]) -> bool {
    let marks = line.trim_ascii();
    marks.starts_with(b"^") && marks.iter().all(|b| matches!(b, b'^' | b'~' | b' '))
}

/// How many bytes at the start of a line may be the name of an error, of any language.
pub(super) fn name_bytes(line: &[u8]) -> usize {
    let is_part = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'.' | b'_' | b'$' | b'<' | b'>' | b'\\' | b'/')
    };
    let is_first = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'\\');
    if !line.first().is_some_and(is_first) {
        return 0;
    }
    let mut length = 0;
    loop {
        length += line[length..].iter().take_while(|b| is_part(b)).count();
        match &line[length..] {
            // `ActiveRecord::RecordNotFound`
            [b':', b':', byte, ..] if byte.is_ascii_alphabetic() => length += 2,
            _ => return length,
        }
    }
}

/// `requests.exceptions.ConnectionError: why`, `KeyboardInterrupt`, `AssertionError [ERR_ASSERTION]: why`
pub(super) fn is_named(line: &[u8]) -> bool {
    let name = name_bytes(line);
    name > 0 && is_end_of_name(&line[name..])
}

fn is_end_of_name(rest: &[u8]) -> bool {
    match rest {
        [] | [b':'] | [b':', b' ', ..] => true,
        [b' ', b'[', code @ ..] => {
            let is_part =
                |byte: &&u8| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'0'..=b'9');
            let length = code.iter().take_while(is_part).count();
            length > 0 && code[length..].starts_with(b"]:")
        }
        // An object that is printed behind the name: `Error {`.
        [b' ', b'{'] => true,
        _ => false,
    }
}

/// `java.lang.IllegalStateException: why`, `TypeError: why`, `Uncaught Error`
pub(super) fn is_exception(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"Uncaught ").unwrap_or(line);
    if !line.first().is_some_and(u8::is_ascii_alphabetic) {
        return false;
    }
    let length = name_bytes(line);
    let name = &line[..length];
    let is_end = |end: &&str| name.ends_with(end.as_bytes());
    ["Exception", "Error", "Throwable"].iter().any(is_end) && is_end_of_name(&line[length..])
}

/// `com.example.Missing: why`: the name of a class with its package.
pub(super) fn is_class(line: &[u8]) -> bool {
    if !line.first().is_some_and(u8::is_ascii_lowercase) {
        return false;
    }
    let length = name_bytes(line);
    let parts = line[..length].split(|byte| *byte == b'.');
    let last = parts.clone().next_back().unwrap_or_default();
    let is_package = |part: &[u8]| part.first().is_some_and(u8::is_ascii_lowercase);
    let packages = parts.take_while(|part| is_package(part)).count();
    packages >= 2
        && last.first().is_some_and(u8::is_ascii_uppercase)
        && is_end_of_name(&line[length..])
}

/// A number that is nearly certainly the same only for the same text (FNV-1a).
pub(super) fn hash(text: &[u8]) -> u32 {
    text.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}
