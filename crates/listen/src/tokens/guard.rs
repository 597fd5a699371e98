//! Whether who asks may have it: decided on a snapshot in memory.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use logpond_record::Timestamp;

use super::entry::{Entry, Tokens, time_text};
use super::{Role, Token};

/// The tokens that a server knows, and whether it asks for one. Shared between the listeners, which
/// read, and the thread that watches the file.
#[derive(Debug, Default)]
pub struct Guard {
    is_required: bool,
    /// Locked only to take or to put the pointer.
    tokens: RwLock<Arc<Tokens>>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no token.
    Missing,
    /// What was given is no token, or not one that is known here. Which of them is not said.
    Unknown,
    /// The token was good when the request came.
    Revoked {
        /// Its name or id.
        label: String,
    },
    /// The token allowed something else when the request came.
    Changed {
        /// Its name or id.
        label: String,
    },
    /// The token was good once.
    Expired {
        /// Its name or id.
        label: String,
        /// From when on it was no longer.
        since: Timestamp,
    },
    /// The token is for something else.
    Role {
        /// Its name or id.
        label: String,
        /// What it is for.
        role: Role,
        /// What is needed.
        needed: Role,
    },
}

impl Refusal {
    /// The name or id of the token, if it is a known one.
    pub fn label(&self) -> Option<&str> {
        match self {
            Refusal::Missing | Refusal::Unknown => None,
            Refusal::Revoked { label }
            | Refusal::Changed { label }
            | Refusal::Expired { label, .. }
            | Refusal::Role { label, .. } => Some(label),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Missing => f.write_str("this server wants a token"),
            Refusal::Unknown => {
                f.write_str("the token is not known here; it may be revoked, or cut off")
            }
            Refusal::Revoked { label } => write!(f, "the token '{label}' was revoked"),
            Refusal::Changed { label } => write!(f, "the token '{label}' was changed; ask again"),
            Refusal::Expired { label, since } => {
                write!(f, "the token '{label}' expired at {}", time_text(*since))
            }
            Refusal::Role {
                label,
                role,
                needed,
            } => write!(
                f,
                "this needs a token of role {}; '{label}' has role {}",
                needed.as_str(),
                role.as_str()
            ),
        }
    }
}

impl Guard {
    /// A guard that asks for one of these tokens.
    pub fn new(tokens: Tokens) -> Guard {
        Guard {
            is_required: true,
            tokens: RwLock::new(Arc::new(tokens)),
        }
    }

    /// A guard that lets everybody through. A client that gives one of these tokens is bound by it all the same.
    pub fn optional(tokens: Tokens) -> Guard {
        Guard {
            is_required: false,
            tokens: RwLock::new(Arc::new(tokens)),
        }
    }

    /// Whether a token is asked for at all.
    pub fn is_required(&self) -> bool {
        self.is_required
    }

    /// The tokens now.
    pub fn tokens(&self) -> Arc<Tokens> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&tokens)
    }

    /// Puts other tokens in the place of those known.
    pub fn replace(&self, tokens: Tokens) {
        let mut current = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(tokens);
    }

    /// The token of a request that gives this text, if it may do what needs `needed`; `None` if it gives nothing of the
    /// form of a token, and needs none.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn check(
        &self,
        given: Option<&str>,
        needed: Role,
        now: Timestamp,
    ) -> Result<Option<Token>, Refusal> {
        let token = match (given, given.and_then(Token::parse)) {
            (_, Some(token)) => token,
            // Many senders have a password for every server. A text with the form of a token was one once.
            (_, None) if !self.is_required => return Ok(None),
            (None, None) => return Err(Refusal::Missing),
            (Some(_), None) => return Err(Refusal::Unknown),
        };
        let tokens = self.tokens();
        let entry = tokens.find(token.id()).filter(|entry| entry.is_of(&token));
        self.check_entry(entry.ok_or(Refusal::Unknown)?, needed, now)?;
        Ok(Some(token))
    }

    /// Checks that the token of an entry may do what needs `needed`.
    pub(super) fn check_entry(
        &self,
        entry: &Entry,
        needed: Role,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let label = || entry.label().to_owned();
        if let Some(since) = entry.expires.filter(|&end| now >= end) {
            return Err(Refusal::Expired {
                label: label(),
                since,
            });
        }
        if entry.role.allows(needed) {
            Ok(())
        } else {
            Err(Refusal::Role {
                label: label(),
                role: entry.role,
                needed,
            })
        }
    }
}
