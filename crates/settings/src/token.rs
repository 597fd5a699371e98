//! The text of a token.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};

/// What every token begins with, so that scanners for leaked secrets can know one.
const PREFIX: &str = "lp_";

/// Crockford's base 32 in lower case: no letters that look like digits, nothing to escape anywhere.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Characters of an id, 40 bits: the ids of one file do not collide by chance.
const ID_CHARS: usize = 8;

/// Characters of a secret, 160 bits.
const SECRET_CHARS: usize = 32;

/// Bytes of a hash.
pub const HASH_BYTES: usize = 32;

/// A token as it is handed out: the secret itself. It has no `Debug` that would show it.
pub struct Token {
    text: String,
}

impl Token {
    /// A new random token.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn mint() -> Result<Token, getrandom::Error> {
        let mut random = [0; ID_CHARS + SECRET_CHARS];
        getrandom::fill(&mut random)?;
        // 256 is a multiple of 32: each character is equally likely.
        let mut characters = random.map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
        let (id, secret) = characters.split_at_mut(ID_CHARS);
        let text = format!(
            "{PREFIX}{}_{}",
            id.iter().collect::<String>(),
            secret.iter().collect::<String>()
        );
        Ok(Token { text })
    }

    /// The token that this text is, if it has the form of one. Decides nothing about its worth.
    pub fn parse(text: &str) -> Option<Token> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_token = is_of_alphabet(id, ID_CHARS) && is_of_alphabet(secret, SECRET_CHARS);
        is_token.then(|| Token {
            text: text.to_owned(),
        })
    }

    /// The part that may be shown.
    pub fn id(&self) -> &str {
        &self.text[PREFIX.len()..PREFIX.len() + ID_CHARS]
    }

    /// The whole token. For its owner only.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// What is kept of it.
    pub fn hash(&self) -> [u8; HASH_BYTES] {
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(digest(&SHA256, self.text.as_bytes()).as_ref());
        hash
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.id())
    }
}

/// Whether this can be the id of a token.
pub fn is_id(text: &str) -> bool {
    is_of_alphabet(text, ID_CHARS)
}

fn is_of_alphabet(text: &str, chars: usize) -> bool {
    text.len() == chars && text.bytes().all(|byte| ALPHABET.contains(&byte))
}
