//! The question for a canary record: whether the answers of a node have it.
//!
//! It tells when the record came, so that what is measured is the way of a record into an answer, and
//! not the reading of all that came before it.

use logpond_cluster::wire::{DecodeError, Decoder, Encoder};
use logpond_record::{Id, TimeRange, Timestamp};

use logpond_engine::query::{Scope, Search};

/// The longest question.
pub(crate) const BYTES_MAX: usize = 256;

/// Version of its encoding.
const VERSION: u64 = 1;

/// A record whose way is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canary {
    /// Its name, which says when it came: nothing before it is looked into.
    pub id: Id,
    /// The words that only it has.
    pub text: String,
}

impl Canary {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::new(VERSION);
        out.wide(self.id.0);
        out.bytes(self.text.as_bytes());
        out.finish()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Canary, DecodeError> {
        let mut from = Decoder::new(bytes, VERSION)?;
        let id = Id(from.wide("the record")?);
        let text = from.text(BYTES_MAX, "its words")?.to_owned();
        from.finish()?;
        Ok(Canary { id, text })
    }

    /// The question for it. It has no time of its own, so its time is that of its arrival.
    pub(crate) fn search(&self) -> Result<Search, String> {
        let arrived_ms = i64::try_from(self.id.received_ms()).unwrap_or(i64::MAX);
        let range = TimeRange {
            from: Timestamp(arrived_ms.saturating_mul(1_000_000)),
            to: Timestamp::MAX,
        };
        let scope = Scope::new(&format!("\"{}\"", self.text), range);
        let mut search = Search::new(scope.map_err(|error| error.message)?);
        search.begin_at(self.id);
        search.is_count = true;
        Ok(search)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_comes_back() {
        let canary = Canary {
            id: Id((1_772_409_600_123_u128 << 80) | 5),
            text: "canary 5".into(),
        };
        let bytes = canary.to_bytes();
        assert!(bytes.len() <= BYTES_MAX);
        assert_eq!(Canary::from_bytes(&bytes), Ok(canary.clone()));
        for length in 0..bytes.len() {
            assert!(Canary::from_bytes(&bytes[..length]).is_err());
        }
        let search = canary.search().unwrap();
        assert_eq!(search.scope.range.from.unix_ms(), 1_772_409_600_123);
    }
}
