//! Requests that were let in, and whether their tokens still suffice.

use std::sync::Arc;

use logpond_record::Timestamp;

use super::scram::Proof;
use super::{Bounds, Guard, Refusal, Role};
use logpond_settings::HASH_BYTES;

/// A request that was let in by its token. Its answer may go on for days: it is asked again and again
/// whether the token still suffices. It holds the token's hash only.
#[derive(Clone, Debug)]
pub struct Admission {
    guard: Arc<Guard>,
    id: String,
    hash: [u8; HASH_BYTES],
    label: String,
    needed: Role,
    role: Role,
    bounds: Bounds,
}

impl Admission {
    /// Lets a request in that gives this text as its token, if that may do what needs `needed`; `None` if everybody may,
    /// and the text has not the form of a token.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn new(
        guard: &Arc<Guard>,
        given: Option<&str>,
        needed: Role,
        now: Timestamp,
    ) -> Result<Option<Admission>, Refusal> {
        let Some(token) = guard.check(given, needed, now)? else {
            return Ok(None);
        };
        let tokens = guard.tokens();
        let entry = tokens.find(token.id()).ok_or(Refusal::Unknown)?;
        Ok(Some(Admission {
            guard: Arc::clone(guard),
            id: token.id().to_owned(),
            hash: token.hash(),
            label: entry.label().to_owned(),
            needed,
            role: entry.role,
            bounds: entry.bounds.clone(),
        }))
    }

    /// Lets a client in that has proved that it has a token, if that may do what needs `needed`. The hash is the
    /// server's proof that it knows the token, too.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn of_proof(
        guard: &Arc<Guard>,
        proof: &Proof,
        needed: Role,
        now: Timestamp,
    ) -> Result<(Admission, [u8; HASH_BYTES]), Refusal> {
        let tokens = guard.tokens();
        // As long for any token: all are tried.
        let checked = tokens.entries().iter().map(|entry| {
            let verifier = entry.verifier.as_ref();
            (entry, verifier.and_then(|verifier| verifier.check(proof)))
        });
        let found = checked.fold(None, |found, (entry, signature)| {
            found.or(signature.map(|signature| (entry, signature)))
        });
        let (entry, signature) = found.ok_or(Refusal::Unknown)?;
        guard.check_entry(entry, needed, now)?;
        let admission = Admission {
            guard: Arc::clone(guard),
            id: entry.id.clone(),
            hash: *entry.hash(),
            label: entry.label().to_owned(),
            needed,
            role: entry.role,
            bounds: entry.bounds.clone(),
        };
        Ok((admission, signature))
    }

    /// The name or the id of the token.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// True if the token may do everything.
    pub fn is_admin(&self) -> bool {
        self.role == Role::Admin
    }

    /// The bounds of the token within its role.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Why nothing more may be sent, if so.
    pub fn refusal(&self, now: Timestamp) -> Option<Refusal> {
        let tokens = self.guard.tokens();
        let entry = tokens.find(&self.id).filter(|e| e.has_hash(&self.hash));
        match entry {
            // The answer goes on within the bounds with which it began.
            Some(entry) if entry.bounds != self.bounds => Some(Refusal::Changed {
                label: self.label.clone(),
            }),
            Some(entry) => self.guard.check_entry(entry, self.needed, now).err(),
            None => Some(Refusal::Revoked {
                label: self.label.clone(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use logpond_settings::Token;

    use super::*;
    use crate::tokens::entry::{Entry, Tokens};

    #[test]
    fn a_token_is_good_until_it_is_not() {
        let token = Token::mint().unwrap();
        let entry = |role, expires| {
            let mut tokens = Tokens::default();
            let name = Some("ann".to_owned());
            let entry = Entry::new(&token, name, role, Timestamp(0), expires);
            tokens.add(entry).unwrap();
            tokens
        };
        let end = Timestamp(10_000_000_000);
        let guard = Arc::new(Guard::new(entry(Role::Read, Some(end))));
        let admit = |now| Admission::new(&guard, Some(token.expose()), Role::Read, now);
        let admission = admit(Timestamp(1)).unwrap().unwrap();
        let said = |now| admission.refusal(now).map(|refusal| refusal.to_string());
        assert_eq!(said(Timestamp(2)), None);
        let expired = said(end).unwrap();
        assert!(
            expired.starts_with("the token 'ann' expired at "),
            "{expired}"
        );
        guard.replace(entry(Role::Write, None));
        assert!(said(Timestamp(2)).unwrap().contains("has role write"));
        guard.replace(Tokens::default());
        assert_eq!(said(Timestamp(2)).unwrap(), "the token 'ann' was revoked");
        // Another token of the same id is another one.
        assert!(admit(Timestamp(1)).is_err());
        let open = Arc::new(Guard::optional(Tokens::default()));
        assert!(
            Admission::new(&open, None, Role::Admin, end)
                .unwrap()
                .is_none()
        );
    }

    /// A token counts also if none is needed.
    #[test]
    fn a_token_that_is_given_counts() {
        let token = Token::mint().unwrap();
        let mut tokens = Tokens::default();
        let name = Some("ann".to_owned());
        let end = Timestamp(10_000_000_000);
        let entry = Entry::new(&token, name, Role::Read, Timestamp(0), Some(end));
        tokens.add(entry).unwrap();
        let guard = Arc::new(Guard::optional(tokens));
        let admit = |given: Option<&str>, needed, now| {
            let admission = Admission::new(&guard, given, needed, now);
            admission.map(|admission| admission.map(|admission| admission.label().to_owned()))
        };
        let other = Token::mint().unwrap();
        let now = Timestamp(1);
        assert_eq!(admit(None, Role::Admin, now), Ok(None));
        assert_eq!(admit(Some("changeme"), Role::Admin, now), Ok(None));
        // As one that was revoked.
        let unknown = admit(Some(other.expose()), Role::Read, now);
        assert_eq!(unknown, Err(Refusal::Unknown));
        let given = Some(token.expose());
        assert_eq!(admit(given, Role::Read, now), Ok(Some("ann".to_owned())));
        let refused = admit(given, Role::Write, now).unwrap_err().to_string();
        assert!(refused.contains("has role read"), "{refused}");
        let expired = admit(given, Role::Read, end).unwrap_err().to_string();
        assert!(expired.contains("expired"), "{expired}");
    }
}
