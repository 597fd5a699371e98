//! The tools and prompts of assistants, by the Model Context Protocol (MCP).
//!
//! Invariants:
//! - Nothing here changes records or settings: every tool asks what the role `read` may ask.
//! - Each answer says if it is complete, has at most `max_characters` characters, and says how to get the rest.
//! - Text of records is data: it stands between two lines with a random name, and no record can hold such a line.
//! - No state lives between two requests: a restart or another node breaks no client.

mod untrusted;
mod arguments;
mod server;
mod answer;
mod report;
mod tools;
mod prompts;
mod handler;
mod remote;
mod transports;

pub use arguments::{Argument, ArgumentKind};
pub use prompts::{PROMPTS, Prompt};
pub use server::{
    ANSWER_BYTES_MAX, Asking, CALLS_MAX, Calls, Question, RawAnswer, Refusal, Server,
};
pub use tools::{TOOLS, Tool};
pub use transports::{REQUEST_BYTES_MAX, answer, serve_stdio};

#[cfg(test)]
mod tests;
