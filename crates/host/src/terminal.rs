//! The terminal: whether there is one, how wide it is, and notes on standard error.

pub mod guard;
pub mod text;

use std::io::{IsTerminal, Write};

use clap::ValueEnum;

use guard::{Guard, Hands, clean};

/// Width that is assumed where a terminal does not tell.
const WIDTH_DEFAULT: usize = 80;

/// Bytes that are gathered before they are written.
const OUT_BYTES: usize = 64 << 10;

/// When something is done that suits terminals only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Writes one line to standard error, as a terminal may be sent it: it may be a server that speaks. If
/// that is closed there is nobody to tell.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", clean(text));
}

/// The filter in front of standard output: none unless it is a terminal, or if `is_unsafe`; `has_colours` is of
/// formats that have colours and escape all text of records.
pub fn hands(is_unsafe: bool, has_colours: bool) -> Hands {
    match (is_output() && !is_unsafe, has_colours) {
        (false, _) => Hands::Everything,
        (true, true) => Hands::TextAndColours,
        (true, false) => Hands::Text,
    }
}

/// Standard output behind its filter. Written bytes leave only when it is flushed or finished.
pub struct Out {
    guard: Guard,
    buffer: Vec<u8>,
}

impl Out {
    /// Standard output; a terminal is sent text only.
    pub fn of_text() -> Out {
        Out::handed(hands(false, false))
    }

    /// Standard output that is handed this.
    pub fn handed(hands: Hands) -> Out {
        Out {
            guard: Guard::new(hands),
            buffer: Vec::new(),
        }
    }

    /// Writes what was held back.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> std::io::Result<()> {
        self.guard.end(&mut self.buffer);
        self.flush()
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.guard.pass(bytes, &mut self.buffer);
        if self.buffer.len() >= OUT_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(&self.buffer).and_then(|()| out.flush());
        self.buffer.clear();
        self.buffer.shrink_to(2 * OUT_BYTES);
        written
    }
}

/// Writes `logpond: …` with the whole chain of causes.
pub fn complain(error: &dyn std::error::Error) {
    note(&format!("logpond: {}", with_causes(error)));
}

/// Faults that are named one by one.
const NAMED_MAX: u64 = 20;

/// The faults of an input: the first [`NAMED_MAX`] are named on standard error, all are counted.
#[derive(Debug, Default)]
pub struct NamedFaults {
    count: u64,
}

impl NamedFaults {
    /// Counts a fault, and names it if it is one of the first.
    pub fn add(&mut self, what: &dyn std::fmt::Display) {
        self.count += 1;
        if self.count <= NAMED_MAX {
            note(&format!("logpond: {what}"));
        } else if self.count == NAMED_MAX + 1 {
            note("logpond: further ones are only counted");
        }
    }

    /// The number of all.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// An error with the whole chain of its causes.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// Whether standard output is a terminal.
pub fn is_output() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub fn is_error() -> bool {
    std::io::stderr().is_terminal()
}

/// Width of the terminal at standard output in characters.
pub fn width() -> usize {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => WIDTH_DEFAULT,
    }
}

/// Whether colours are used: the flag, then `NO_COLOR`, `CLICOLOR_FORCE`, `CLICOLOR` and the
/// terminal, in this order.
pub fn colours(
    flag: When,
    is_terminal: bool,
    variable: &dyn Fn(&str) -> Option<std::ffi::OsString>,
) -> bool {
    let given = |name| variable(name).filter(|value| !value.is_empty());
    match flag {
        When::Always => true,
        When::Never => false,
        When::Auto if given("NO_COLOR").is_some() => false,
        When::Auto if given("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        When::Auto => {
            is_terminal
                && given("CLICOLOR").is_none_or(|value| value != "0")
                && given("TERM").is_none_or(|value| value != "dumb")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_colour_settings() {
        let set = |names: &'static [(&'static str, &'static str)]| {
            move |name: &str| {
                names
                    .iter()
                    .find(|(n, _)| *n == name)
                    .map(|(_, value)| value.into())
            }
        };
        let both = set(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]);
        assert!(colours(When::Always, false, &both));
        assert!(!colours(When::Auto, true, &both));
        assert!(colours(When::Auto, false, &set(&[("CLICOLOR_FORCE", "1")])));
        assert!(colours(When::Auto, true, &set(&[("NO_COLOR", "")])));
        assert!(!colours(When::Auto, true, &set(&[("CLICOLOR", "0")])));
        assert!(!colours(When::Auto, true, &set(&[("TERM", "dumb")])));
        assert!(!colours(When::Auto, false, &set(&[])));
    }
}
