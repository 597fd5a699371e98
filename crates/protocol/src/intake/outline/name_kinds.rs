//! Names of fields that mean something, or cannot be in a shape.

use logpond_record::is_reserved_for_senders;
use logpond_record::limits::UNLISTED_FIELD;

/// True for names that no field of a line has, see [`is_reserved_for_senders`].
pub(super) fn is_reserved(name: &[u8]) -> bool {
    name.first() == Some(&b'_') && std::str::from_utf8(name).is_ok_and(is_reserved_for_senders)
}

/// True for a name that a shape would take for the time in some pattern.
pub(super) fn is_pattern(name: &[u8]) -> bool {
    name.starts_with(b"_time:") && name.contains(&b'%')
}

/// True for the name that says that fields are not listed.
pub(super) fn is_unlisted_count(name: &[u8]) -> bool {
    name == UNLISTED_FIELD.as_bytes()
}

/// True for a name that holds `⟨` or `⟩`, the marks of slots, or the code point that lists of fields have before
/// these.
pub(super) fn has_marks(name: &[u8]) -> bool {
    let marks = ["⟨", "⟩", "\u{fdd0}"].map(str::as_bytes);
    let has = |mark| memchr::memmem::find(name, mark).is_some();
    !name.is_ascii() && marks.into_iter().any(has)
}

/// Spreads short names well enough for a filter.
pub(super) fn hash(name: &[u8]) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = name.len() as u64;
    for chunk in name.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(SPREAD);
        hash ^= hash >> 29;
    }
    hash >> 32
}
