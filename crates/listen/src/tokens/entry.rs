//! What is kept of a token, and the text of the file.
//!
//! ```toml
//! [[token]]
//! id = "7k2m9qxa"
//! name = "shipper"                  # may be absent
//! role = "write"
//! sha256 = "…"                      # of the token's whole text, 64 hexadecimal digits
//! scram-sha-256 = "…"               # StoredKey and ServerKey (RFC 5802), 128 digits; may be absent
//! created = "2026-11-22T03:00:00Z"
//! expires = "2027-11-22T03:00:00Z"  # may be absent
//! only = "team=payments"            # of readers; may be absent
//! label = ["team=payments"]         # of writers; may be absent
//! ```

use logpond_record::{Labels, Timestamp};
use toml::de::{DeTable, DeValue};

use super::Role;
use super::bounds::{Bounds, read_label};
use super::file::{TOKENS_MAX, TokenFileError};
use super::scram::Verifier;
use logpond_settings::{HASH_BYTES, Token, is_id};

/// The longest name of a token: it is a column of a list.
pub const NAME_BYTES_MAX: usize = 64;

/// The first lines of the file.
const HEAD: &str = "\
# Tokens of Logpond, made by `logpond token create`. Only hashes are kept: a token that is lost\n\
# cannot be shown again, revoke it and create another. Servers notice changes by themselves.\n";

/// One token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// What its owner called it. Invariant: of [`is_name`]'s characters, and no other entry's.
    pub name: Option<String>,
    /// What it allows.
    pub role: Role,
    /// When it was made, in whole seconds.
    pub created: Timestamp,
    /// From when on it is refused, in whole seconds; `None` is never.
    pub expires: Option<Timestamp>,
    /// The bounds within the role. Invariant: they fit it.
    pub bounds: Bounds,
    hash: [u8; HASH_BYTES],
    /// By which proofs are checked; `None` for tokens that were made before there were any.
    pub(super) verifier: Option<Verifier>,
}

impl Entry {
    /// What is kept of a token.
    pub fn new(
        token: &Token,
        name: Option<String>,
        role: Role,
        created: Timestamp,
        expires: Option<Timestamp>,
    ) -> Entry {
        Entry {
            id: token.id().to_owned(),
            name,
            role,
            created,
            expires,
            bounds: Bounds::default(),
            hash: token.hash(),
            verifier: Some(Verifier::of(token)),
        }
    }

    /// The same, for less.
    ///
    /// # Errors
    /// When a token of its role cannot have such bounds.
    pub fn bound_by(self, bounds: Bounds) -> Result<Entry, TokenFileError> {
        bounds.check(self.role)?;
        Ok(Entry { bounds, ..self })
    }

    /// Whether this is the entry of the token: in constant time.
    pub(super) fn is_of(&self, token: &Token) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.hash, &token.hash()).is_ok()
    }

    /// True if it has not expired.
    fn is_usable(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|end| now < end)
    }

    /// The hash of the token.
    pub(super) fn hash(&self) -> &[u8; HASH_BYTES] {
        &self.hash
    }

    /// True if it is the entry of the token with this hash.
    pub(super) fn has_hash(&self, hash: &[u8; HASH_BYTES]) -> bool {
        self.hash == *hash
    }

    /// The name if it has one, else the id.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }
}

/// Whether a token may be called so: letters, digits, `.`, `-` and `_`.
pub(super) fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits)
}

/// All tokens of a file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens(Vec<Entry>);

impl Tokens {
    /// The entries, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// How many can still be used.
    pub fn usable(&self, now: Timestamp) -> usize {
        self.0.iter().filter(|entry| entry.is_usable(now)).count()
    }

    /// True if proofs of all these tokens can be checked: of those that can still be used.
    pub fn have_verifiers(&self, now: Timestamp) -> bool {
        let mut usable = self.0.iter().filter(|entry| entry.is_usable(now));
        usable.all(|entry| entry.verifier.is_some())
    }

    /// The entry with this id.
    pub(super) fn find(&self, id: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.id == id)
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// When its name cannot be one or is taken, its id is taken, or there are [`TOKENS_MAX`].
    pub fn add(&mut self, entry: Entry) -> Result<(), TokenFileError> {
        if let Some(name) = &entry.name {
            if !is_name(name) {
                return Err(TokenFileError::Name(name.clone()));
            }
            let taken = |other: &Entry| other.name.as_ref() == Some(name) || other.id == *name;
            if self.0.iter().any(taken) {
                return Err(TokenFileError::NameTaken(name.clone()));
            }
        }
        if self.find(&entry.id).is_some() {
            return Err(TokenFileError::NameTaken(entry.id));
        }
        if self.0.len() >= TOKENS_MAX {
            return Err(TokenFileError::TooMany);
        }
        self.0.push(entry);
        Ok(())
    }

    /// Removes the entry with this id or name, and gives it.
    ///
    /// # Errors
    /// When there is none.
    pub fn remove(&mut self, id_or_name: &str) -> Result<Entry, TokenFileError> {
        let is_meant =
            |entry: &Entry| entry.id == id_or_name || entry.name.as_deref() == Some(id_or_name);
        match self.0.iter().position(is_meant) {
            Some(index) => Ok(self.0.remove(index)),
            None => Err(TokenFileError::Unknown(id_or_name.to_owned())),
        }
    }

    /// The text of the file.
    pub(super) fn render(&self) -> String {
        let mut text = HEAD.to_owned();
        for entry in &self.0 {
            let mut line = |key: &str, value: &str| {
                text.push_str(&format!("{key} = \"{value}\"\n"));
            };
            // None of the values can hold a quote or a backslash.
            line("\n[[token]]\nid", &entry.id);
            if let Some(name) = &entry.name {
                line("name", name);
            }
            line("role", entry.role.as_str());
            line("sha256", &hash_text(&entry.hash));
            if let Some(verifier) = &entry.verifier {
                line("scram-sha-256", &verifier.render());
            }
            line("created", &time_text(entry.created));
            if let Some(expires) = entry.expires {
                line("expires", &time_text(expires));
            }
            text.push_str(&entry.bounds.render());
        }
        text
    }

    /// Reads the text of the file.
    ///
    /// # Errors
    /// With the line, if the text is not TOML of the form above. Unknown keys are errors: an old
    /// program must not overlook what a newer one restricts.
    pub(super) fn parse(text: &str) -> Result<Tokens, TokenFileError> {
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            wrong(text, at, error.message())
        })?;
        let mut tokens = Tokens::default();
        for (key, value) in table.get_ref().iter() {
            let at = key.span().start;
            let DeValue::Array(entries) = value.get_ref() else {
                return Err(wrong(text, at, "expected [[token]]"));
            };
            if key.get_ref() != "token" {
                return Err(wrong(text, at, "expected [[token]]"));
            }
            for entry in entries.iter() {
                let at = entry.span().start;
                let DeValue::Table(members) = entry.get_ref() else {
                    return Err(wrong(text, at, "expected [[token]]"));
                };
                let entry = parse_entry(members).map_err(|what| wrong(text, at, &what))?;
                tokens
                    .add(entry)
                    .map_err(|error| wrong(text, at, &error.to_string()))?;
            }
        }
        Ok(tokens)
    }
}

fn wrong(text: &str, at: usize, what: &str) -> TokenFileError {
    let before = &text.as_bytes()[..at.min(text.len())];
    TokenFileError::Syntax {
        line: before.iter().filter(|&&byte| byte == b'\n').count() + 1,
        what: what.to_owned(),
    }
}

fn parse_entry(members: &DeTable<'_>) -> Result<Entry, String> {
    const KNOWN: [&str; 8] = [
        "id",
        "name",
        "role",
        "sha256",
        "scram-sha-256",
        "created",
        "expires",
        "only",
    ];
    let mut values: [Option<&str>; KNOWN.len()] = [None; KNOWN.len()];
    let mut labels = Vec::new();
    for (key, value) in members.iter() {
        let key: &str = key.get_ref();
        if key == "label" {
            labels = parse_labels(value.get_ref())?;
            continue;
        }
        let Some(index) = KNOWN.iter().position(|known| *known == key) else {
            return Err(format!("unknown key '{key}'"));
        };
        let DeValue::String(value) = value.get_ref() else {
            return Err(format!("'{key}' is not a text in quotes"));
        };
        values[index] = Some(value);
    }
    let [id, name, role, hash, verifier, created, expires, only] = values;
    let id = id
        .filter(|id| is_id(id))
        .ok_or("'id' is missing or no id")?;
    let role = role.and_then(Role::parse);
    let role = role.ok_or("'role' is missing or none of read, write, admin")?;
    let hash = hash.and_then(parse_hash);
    let hash = hash.ok_or("'sha256' is missing or not 64 hexadecimal digits")?;
    let verifier = verifier
        .map(|text| Verifier::parse(text).ok_or("'scram-sha-256' is not 128 hexadecimal digits"))
        .transpose()?;
    let created = created.and_then(parse_time);
    let created = created.ok_or("'created' is missing or no RFC 3339 time")?;
    let expires = expires
        .map(|text| parse_time(text).ok_or("'expires' is no RFC 3339 time"))
        .transpose()?;
    let bounds = Bounds::new(only.map(str::to_owned), labels);
    let bounds = bounds.map_err(|error| error.to_string())?;
    let entry = Entry {
        id: id.to_owned(),
        name: name.map(str::to_owned),
        role,
        created,
        expires,
        bounds: Bounds::default(),
        hash,
        verifier,
    };
    entry.bound_by(bounds).map_err(|error| error.to_string())
}

fn parse_labels(value: &DeValue<'_>) -> Result<Labels, String> {
    const EXPECTED: &str = "'label' is not a list of texts in quotes";
    let DeValue::Array(texts) = value else {
        return Err(EXPECTED.to_owned());
    };
    let read = |text: &toml::Spanned<DeValue<'_>>| match text.get_ref() {
        DeValue::String(text) => read_label(text).map_err(|error| error.to_string()),
        _ => Err(EXPECTED.to_owned()),
    };
    texts.iter().map(read).collect()
}

/// The hexadecimal digits of a hash.
pub(super) fn hash_text(hash: &[u8; HASH_BYTES]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn parse_hash(text: &str) -> Option<[u8; HASH_BYTES]> {
    if text.len() != 2 * HASH_BYTES || !text.is_ascii() {
        return None;
    }
    let mut hash = [0; HASH_BYTES];
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(hash)
}

/// RFC 3339 in UTC and whole seconds.
pub fn time_text(time: Timestamp) -> String {
    let (seconds, _) = time.seconds();
    // Every time of ours is within that library's range, which is wider.
    jiff::Timestamp::from_second(seconds).map_or_else(|_| time.to_string(), |t| t.to_string())
}

fn parse_time(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Timestamp::from_seconds(time.as_second(), 0)
}
