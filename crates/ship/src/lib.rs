//! The commands that send records to a server: forward, import, load.

pub mod input;
pub mod forward;
pub mod import;
pub mod pull;
pub mod load;
#[cfg(test)]
mod scripted;
