//! Stack traces as runtimes of languages print them.
//!
//! Indented lines, and those that only traces have (`Caused by:`, `... 12 more`), belong to what is
//! before them. What names an exception at the start of a line belongs to a line before it that is
//! none itself; so a message and its trace are one record, and two traces are two.

use super::is_indented;

/// What is known of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// There is no trace in it yet.
    #[default]
    Message,
    /// A trace whose frames are indented: of Java, .NET, Ruby, Node.js, PHP.
    Frames,
    /// The place that Node.js shows before an error.
    NodePlace,
    /// Python's, before the line that names the exception.
    Python,
    /// Python's, behind that line.
    PythonNamed,
    /// Python's, behind the sentence that says that there is another one.
    PythonChained,
    /// Go's: goroutines with their calls, apart by empty lines.
    Go,
    /// Rust's, before the message of the panic.
    RustLocated,
    /// Rust's, behind it.
    Rust,
}

/// What Python's traces begin with, perhaps behind a message.
const TRACEBACK: &[u8] = b"Traceback (most recent call last):";

/// What joins Python's traces.
const CHAINS: [&[u8]; 2] = [
    b"During handling of the above exception, another exception occurred:",
    b"The above exception was the direct cause of the following exception:",
];

/// What lines of traces begin with that are not indented.
const FRAMES: [&[u8]; 6] = [
    b"Caused by:",
    b"Suppressed:",
    b"Stack trace:",
    b"stack backtrace:",
    b"--- End of ",
    b"note: run with `RUST_BACKTRACE",
];

/// What lines of Go's traces begin with that are not indented.
const GO: [&[u8]; 6] = [
    b"goroutine ",
    b"created by ",
    b"[signal ",
    b"exit status ",
    b"panic: ",
    b"runtime stack:",
];

/// What is known from the first line.
pub(super) fn begin(line: &[u8]) -> State {
    if line.trim_ascii_end().ends_with(TRACEBACK) {
        State::Python
    } else if line.starts_with(b"panic: ")
        || line.starts_with(b"fatal error: ")
        || is_goroutine(line)
    {
        State::Go
    } else if line.starts_with(b"thread '") && find(line, b" panicked at ") {
        State::RustLocated
    } else if is_exception(line) || line.starts_with(b"Exception in thread ") {
        State::Frames
    } else {
        State::Message
    }
}

/// Whether a line belongs to the record, and what is known then.
pub(super) fn continued(state: State, line: &[u8]) -> Option<State> {
    let begins = |all: &[&[u8]]| all.iter().any(|begin| line.starts_with(begin));
    let is_empty = line.trim_ascii().is_empty();
    let has_traceback = line.trim_ascii_end().ends_with(TRACEBACK);
    match state {
        State::Message if has_traceback && line.starts_with(TRACEBACK) => Some(State::Python),
        State::Message if is_goroutine(line) => Some(State::Go),
        State::Message | State::NodePlace if is_exception(line) => Some(State::Frames),
        State::Message if is_mark(line) => Some(State::NodePlace),
        State::NodePlace if is_empty => Some(State::NodePlace),
        State::Python if has_traceback => None,
        State::Python if is_indented(line) || line.starts_with(b"File \"") => Some(State::Python),
        State::Python if is_named(line) => Some(State::PythonNamed),
        State::PythonNamed if begins(&CHAINS) => Some(State::PythonChained),
        State::PythonNamed if is_empty => Some(State::PythonNamed),
        State::PythonChained if has_traceback => Some(State::Python),
        State::PythonChained if is_empty => Some(State::PythonChained),
        State::Go if is_empty || begins(&GO) || is_call(line) => Some(State::Go),
        State::RustLocated => Some(State::Rust),
        _ if is_indented(line) => Some(state),
        _ if begins(&FRAMES) || is_rest(line) || is_numbered(line) => Some(match state {
            State::Message => State::Frames,
            state => state,
        }),
        _ => None,
    }
}

fn find(line: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(line, text).is_some()
}

/// `goroutine 1 [running]:`
fn is_goroutine(line: &[u8]) -> bool {
    let rest = line.strip_prefix(b"goroutine ");
    let digits = |rest: &[u8]| rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest.is_some_and(|rest| digits(rest) > 0 && rest[digits(rest)..].starts_with(b" ["))
}

/// `main.handle(0xc000012345, {0x1, 0x2})`
fn is_call(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b'(').next().unwrap_or_default();
    let is_name = |byte: &u8| byte.is_ascii_graphic();
    line.ends_with(b")")
        && name.len() < line.len()
        && name.contains(&b'.')
        && name.iter().all(is_name)
}

/// `... 12 more`
fn is_rest(line: &[u8]) -> bool {
    line.starts_with(b"... ") && find(line, b" more")
}

/// `#12 /app/index.php(3): main()`
fn is_numbered(line: &[u8]) -> bool {
    let digits = line.iter().skip(1).take_while(|byte| byte.is_ascii_digit());
    let digits = digits.count();
    line.first() == Some(&b'#') && digits > 0 && line.get(1 + digits) == Some(&b' ')
}

/// `    ^` below the place of an error
fn is_mark(line: &[u8]) -> bool {
    is_indented(line) && line.trim_ascii().first() == Some(&b'^')
}

/// `requests.exceptions.ConnectionError: why`, `KeyboardInterrupt`
fn is_named(line: &[u8]) -> bool {
    let (name, rest) = line.split_at(name_bytes(line));
    !name.is_empty() && (rest.is_empty() || rest == b"\r" || rest.starts_with(b":"))
}

/// How many bytes at the start of a line may be the name of an exception.
fn name_bytes(line: &[u8]) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'$');
    line.iter().take_while(|byte| is_part(byte)).count()
}

/// `java.lang.IllegalStateException: why`, `TypeError: why`, `Uncaught Error`
fn is_exception(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"Uncaught ").unwrap_or(line);
    let name = &line[..name_bytes(line)];
    let is_end = |end: &&str| name.ends_with(end.as_bytes());
    is_named(line) && ["Exception", "Error", "Throwable"].iter().any(is_end)
}
