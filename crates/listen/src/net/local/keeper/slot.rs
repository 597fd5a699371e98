//! What the board says of a stream, as bytes.
//!
//! ```text
//! 0   phase              u8     0 nothing, 1 the header was seen, 2 it was taken
//! 8   unfinished offset  u64    where on the board the line is whose end has not come
//! 16  unfinished length  u64    0 if there is none
//! 24  truncated          u64    bytes of it that were left out
//! 32  hash               u64    XXH3 of the state
//! 40  state length       u32
//! 44  state                     fields, each with its length (u32) before it: identifier, unit,
//!                               priority (u32), levels (u8), and a name and a value for each label
//! ```
//!
//! Numbers are little-endian. What stands before the hash is written in one piece that lies in one page
//! of memory, so that a kill in the middle leaves the old or the new; the state is written before the
//! phase says that there is one.

use logpond_protocol::intake::journal_stdout::StreamHeader;
use logpond_record::{Labels, cast};
use xxhash_rust::xxh3::xxh3_64;

/// Room for a stream; the state of one whose labels find none in it is without them.
pub(super) const SLOT_BYTES: usize = 16 << 10;

/// Where the phase is.
pub(super) const PHASE_AT: u64 = 0;

/// Where it is said where the unfinished line is.
pub(super) const UNFINISHED_AT: u64 = 8;

/// Where the state begins, with its hash.
pub(super) const STATE_AT: usize = 32;

/// Where the fields of the state begin.
const FIELDS_AT: usize = STATE_AT + 12;

/// How far a stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is known of it, and nothing was taken.
    New = 0,
    /// Its header is known, and perhaps in the stream still.
    Seen = 1,
    /// Its header was taken out of the stream.
    Taken = 2,
}

/// What is known of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::net::local) struct State {
    /// What it says of itself.
    pub(in crate::net::local) header: StreamHeader,
    /// What is known of who writes it; `None` if that found no room.
    pub(in crate::net::local) labels: Option<Labels>,
}

/// Where the unfinished line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) truncated_bytes: u64,
}

impl Place {
    pub(super) fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..].copy_from_slice(&self.truncated_bytes.to_le_bytes());
        bytes
    }
}

impl State {
    /// The bytes from [`STATE_AT`] on.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        let mut put = |field: &[u8]| {
            fields.extend_from_slice(&cast::low_u32(field.len()).to_le_bytes());
            fields.extend_from_slice(field);
        };
        put(self.header.identifier.as_bytes());
        put(self.header.unit.as_bytes());
        put(&self.header.priority.to_le_bytes());
        put(&[u8::from(self.header.has_levels)]);
        for (name, value) in self.labels.iter().flatten() {
            put(name.as_bytes());
            put(value.as_bytes());
        }
        if fields.len() > SLOT_BYTES - FIELDS_AT {
            // A header alone has room.
            let header = self.header.clone();
            let labels = None;
            return State { header, labels }.to_bytes();
        }
        let hash = xxh3_64(&fields).to_le_bytes();
        let length = cast::low_u32(fields.len()).to_le_bytes();
        [hash.as_slice(), &length, &fields].concat()
    }
}

/// Reads a slot; what is not whole is not there.
pub(super) fn read(slot: &[u8]) -> (Phase, Option<State>, Place) {
    let phase = match slot.first() {
        Some(1) => Phase::Seen,
        Some(2) => Phase::Taken,
        _ => Phase::New,
    };
    let number = |at| number(slot, at).unwrap_or_default();
    let place = Place {
        offset: number(8),
        length: number(16),
        truncated_bytes: number(24),
    };
    (phase, read_state(slot), place)
}

fn number(slot: &[u8], at: usize) -> Option<u64> {
    let bytes = slot.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn read_state(slot: &[u8]) -> Option<State> {
    let hash = number(slot, STATE_AT)?;
    let (length, fields) = slot.get(STATE_AT + 8..)?.split_first_chunk()?;
    let fields = fields.get(..u32::from_le_bytes(*length) as usize)?;
    if xxh3_64(fields) != hash {
        return None;
    }
    let mut rest = fields;
    let mut next = || {
        let (length, behind) = rest.split_first_chunk()?;
        let (field, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = behind;
        Some(field)
    };
    let mut text = || String::from_utf8(next()?.to_vec()).ok();
    let (identifier, unit) = (text()?, text()?);
    let priority = u32::from_le_bytes(next()?.try_into().ok()?);
    let has_levels = next()? == [1];
    let mut labels = Labels::new();
    while let Some(name) = next() {
        let (name, value) = (std::str::from_utf8(name), std::str::from_utf8(next()?));
        labels.push((name.ok()?.into(), value.ok()?.into()));
    }
    Some(State {
        header: StreamHeader {
            identifier,
            unit,
            priority,
            has_levels,
        },
        labels: (!labels.is_empty()).then_some(labels),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn state(value_bytes: usize) -> State {
        State {
            header: StreamHeader {
                identifier: "app".to_owned(),
                unit: "a.service".to_owned(),
                priority: 30,
                has_levels: true,
            },
            labels: Some(vec![
                ("_PID".into(), "7".into()),
                ("_CMDLINE".into(), "x".repeat(value_bytes).into()),
            ]),
        }
    }

    fn slot(phase: Phase, place: Place, state: &State) -> Vec<u8> {
        let mut slot = vec![0; STATE_AT];
        slot[0] = phase as u8;
        slot[8..32].copy_from_slice(&place.to_bytes());
        slot.extend(state.to_bytes());
        assert!(slot.len() <= SLOT_BYTES);
        slot.resize(SLOT_BYTES, 0);
        slot
    }

    #[test]
    fn states_come_back() {
        let place = Place {
            offset: 1,
            length: u64::MAX,
            truncated_bytes: 3,
        };
        for phase in [Phase::New, Phase::Seen, Phase::Taken] {
            let state = state(10_000);
            let slot = slot(phase, place, &state);
            assert_eq!(read(&slot), (phase, Some(state), place));
        }
        let large = state(SLOT_BYTES);
        let (_, found, _) = read(&slot(Phase::Taken, place, &large));
        let (header, labels) = (large.header, None);
        assert_eq!(found, Some(State { header, labels }));
        let empty = (Phase::New, None, Place::default());
        assert_eq!(read(&[]), empty);
        assert_eq!(read(&[0; SLOT_BYTES]), (Phase::New, None, Place::default()));
    }

    proptest! {
        #[test]
        fn damage_is_no_state(at in 0..60_usize, bit in 0..8) {
            let mut slot = slot(Phase::Taken, Place::default(), &state(3));
            let at = STATE_AT + at;
            slot[at] ^= 1_u8 << bit;
            prop_assert_eq!(read(&slot).1, None);
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut slot = vec![0; STATE_AT];
            slot.extend(xxh3_64(&bytes).to_le_bytes());
            slot.extend((bytes.len() as u32).to_le_bytes());
            slot.extend(&bytes);
            if let Some(state) = read(&slot).1 {
                prop_assert!(state.header.identifier.len() <= bytes.len());
            }
        }
    }
}
