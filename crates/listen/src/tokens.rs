//! Tokens: who may do what over HTTP.
//!
//! Invariants:
//! - A token is `lp_<id>_<secret>`. It is shown once, when it is made; what is kept is the SHA-256
//!   of its whole text. The secret has 160 random bits, so that a slow hash would add nothing.
//! - Hashes are compared in constant time. The id is no secret: it finds the entry, and names the
//!   token in lists and answers.
//! - The file is replaced in one step and never edited in place, so that a server reads the old
//!   tokens or the new ones. A file that cannot be read leaves the tokens as they were; no file is
//!   no tokens.
//! - Who was let in is asked again while the answer goes on ([`Admission`]): a revoked or expired token
//!   ends it within two seconds.
//! - The event loop only reads a snapshot in memory; files belong to the commands and to
//!   [`logpond_host::watch`].

mod admission;
mod bounds;
mod entry;
mod file;
mod guard;
pub mod scram;
mod watch;
#[cfg(test)]
mod tests;

use clap::ValueEnum;

pub use admission::Admission;
pub use bounds::{Bounds, LABELS_MAX, read_label};
pub use entry::{Entry, NAME_BYTES_MAX, Tokens, time_text};
pub use file::{TOKENS_MAX, TokenFileError, read, update};
pub use guard::{Guard, Refusal};
pub use logpond_settings::Token;
pub use watch::WatchedTokens;

/// What a token allows. One role a token; `admin` includes the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Queries, tables and metrics.
    Read,
    /// Pushing records.
    Write,
    /// Everything, compaction included.
    Admin,
}

/// All roles.
pub const ROLES: [Role; 3] = [Role::Read, Role::Write, Role::Admin];

impl Role {
    /// The name on the command line, in the file and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Write => "write",
            Role::Admin => "admin",
        }
    }

    /// The role of this name.
    pub fn parse(name: &str) -> Option<Role> {
        ROLES.into_iter().find(|role| role.as_str() == name)
    }

    /// Whether who has this role may do what needs that one.
    pub fn allows(self, needed: Role) -> bool {
        self == Role::Admin || self == needed
    }
}
