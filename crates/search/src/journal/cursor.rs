//! Cursors: places between records that outlive files.
//!
//! Ours is `t=<µs since 1970, hexadecimal>;l=<time>_<id>`: the place in the total order of records, which
//! no rotation, compaction or removal changes. Programs of systemd understand it as far as `t`.
//!
//! Those of journals (`s=…;i=…;b=…;m=…;t=…;x=…`) are names of entries. They are looked for among the
//! records; `t` says where to go on if the entry is gone.

use logpond_record::{Id, Timestamp};

use crate::order::Key;
use crate::when;

/// The longest text that is a cursor; those of journals have about 150 bytes.
const CURSOR_BYTES_MAX: usize = 1024;

/// A place, or what names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// The place of this record.
    Place(Key),
    /// An entry of a journal.
    Entry {
        /// The cursor as it was given.
        text: String,
        /// When the journal took the entry, if the cursor says it.
        time: Option<Timestamp>,
    },
}

impl Cursor {
    /// Reads a cursor; `None` if it is none.
    pub fn parse(text: &str) -> Option<Cursor> {
        let text = text.trim();
        if text.len() > CURSOR_BYTES_MAX {
            return None;
        }
        if let Some(key) = place(text) {
            return Some(Cursor::Place(key));
        }
        let part = |name: &str| {
            let mut parts = text.split(';');
            parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
        };
        if let Some(key) = part("l") {
            return place(key).map(Cursor::Place);
        }
        let is_part = |part: &str| part.as_bytes().get(1) == Some(&b'=');
        if !text.split(';').filter(|part| !part.is_empty()).all(is_part) || text.is_empty() {
            return None;
        }
        let time = part("t").map(|us| {
            let us = i64::from_str_radix(us, 16).ok()?;
            us.checked_mul(1000).map(Timestamp)
        });
        Some(Cursor::Entry {
            text: text.to_owned(),
            time: match time {
                Some(None) => return None,
                time => time.flatten(),
            },
        })
    }

    /// True if this is an address as journals write it (`s=…;i=…;b=…;m=…;t=…;x=…`, hexadecimal): no other
    /// text may pass for the address of an entry.
    pub fn is_of_journals(text: &str) -> bool {
        let is_part = |part: &str| {
            let value = part
                .split_once('=')
                .filter(|(name, _)| matches!(*name, "s" | "i" | "b" | "m" | "t" | "x"));
            value.is_some_and(|(_, hex)| {
                !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit())
            })
        };
        text.len() <= CURSOR_BYTES_MAX && text.split(';').all(is_part)
    }

    /// The text of a record's place.
    pub fn text(key: Key) -> String {
        let us = key.time.0.div_euclid(1000);
        format!("t={us:x};l={}_{}", key.time, key.id)
    }
}

fn place(text: &str) -> Option<Key> {
    let (time, id) = text.rsplit_once('_')?;
    let id: Id = id.parse().ok()?;
    Some(Key {
        time: when::absolute(time)?,
        id,
    })
}
