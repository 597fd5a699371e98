//! The real clock and the real randomness. The lower crates get both as arguments.

use std::time::{SystemTime, UNIX_EPOCH};

use logpond_record::{Id, Incarnation, Timestamp};

/// The wall clock now. Clamped to the range of [`Timestamp`], whatever the machine's clock says.
pub fn now() -> Timestamp {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)),
        Err(before) => {
            Timestamp(i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns))
        }
    }
}

/// A new random incarnation.
///
/// # Errors
/// When the system has no randomness to give. The caller must not append without one: a
/// predictable incarnation could be used twice.
pub fn mint_incarnation() -> Result<Incarnation, getrandom::Error> {
    random().map(Incarnation)
}

/// A new segment's name: an id as records have, of an incarnation that nothing else uses. `made`
/// is how many names its maker has made: without randomness, which no system of ours lacks, it and
/// `now` still make names distinct.
pub fn mint_segment_id(now: Timestamp, made: u64) -> Id {
    let incarnation = Incarnation(random().unwrap_or_default());
    Id::new(now.unix_ms().max(0) as u64, incarnation, made)
}

/// 128 random bits.
///
/// # Errors
/// When the system has no randomness to give.
pub fn random() -> Result<u128, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}
