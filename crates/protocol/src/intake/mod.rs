//! Intakes: bytes of others in, as raw entries and as records.
//!
//! Invariants:
//! - No byte is lost: for every input, `Parser::parse` gives a record whose `write_line` is the
//!   input, byte for byte.
//! - An entry is changed only by [`rewrite`], where it is told to.
//! - A record depends only on its entry, never on the entries before it.
//! - No input panics, recurses or allocates more than a small multiple of its own size.
//!
//! ```text
//! socket ─▶ lines, frames ─────────────────┐
//! HTTP ─▶ body ─▶ push, journal_upload ────┼▶ Batch ─▶ journal ─▶ Entry ─▶ parser ─▶ Record
//! files ─▶ assembly ───────────────────────┘                               │ json  syslog  access
//!                                                                          │ logfmt  content  audit
//!                                                                          └ timestamps, shapes
//! ```

use std::borrow::Cow;

use logpond_record::{Assumption, Timestamp, Value};

pub mod lines;
pub mod frames;
pub mod relp;
pub mod foreign;
pub mod resent;
pub mod body;
pub mod journal_entry;
pub mod journal_export;
pub mod journal_file;
pub mod journal_json;
pub mod journal_upload;
pub mod push;
pub mod container;
pub mod docker;
pub mod cri;
mod joiner;
mod group;
pub mod multiline;
pub mod assembly;
pub mod unpack;
pub mod journal_native;
pub mod journal_stdout;
pub mod kmsg;
pub mod parser;
pub mod rewrite;
pub mod json;
pub mod fuzz;
mod protobuf;
mod msgpack;
mod syslog;
mod content;
mod csvlog;
mod slowlog;
mod programs;
mod access;
pub mod access_format;
pub mod headers;
pub mod timezone;
pub mod declared;
pub mod audit;
mod logfmt;
mod ltsv;
mod levels;
mod timestamps;
mod outline;
mod sketch;
mod shapes;

pub use parser::Parser;
pub use syslog::header_bytes as syslog_header_bytes;

/// The mark that some senders and editors write before a text to say that it is UTF-8.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A text behind its mark of byte order, if it has one.
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK.as_bytes())
        .unwrap_or(text)
}

/// Facts of a line beside the fields that stand in it: fields that are made of it, a time that counts more
/// than that of its header, and a level.
#[derive(Default)]
pub(crate) struct Beside<'a> {
    pub(crate) fields: Vec<(Cow<'a, str>, Value<'a>)>,
    pub(crate) time: Option<(Timestamp, Assumption)>,
    /// The level that stands in its head.
    pub(crate) level: Option<&'static str>,
    /// True if the level counts although a field of a usual name says another one.
    pub(crate) beats_level: bool,
}
