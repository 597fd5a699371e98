//! Lines with what their sender knows of each: what `logpond forward` sends where a line alone does
//! not say it, or has line ends in it.
//!
//! ```text
//! entry:  length (4, little-endian) envelope and line
//! ```
//!
//! The bytes of an envelope are those of the journal, see [`logpond_record::envelope`] and
//! `docs/format/journal.md`.

use logpond_record::{Batch, EntryKind, Labels, cast};

use super::{DecodedBody, RejectReason, TooLarge, check};

/// The content type of such a body.
pub const CONTENT_TYPE: &str = "application/vnd.logpond.entries";

/// Bytes of a length.
const LENGTH_BYTES: usize = 4;

/// Makes a body of entries of kind [`EntryKind::Enveloped`].
pub fn encode<'a>(entries: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut body = Vec::new();
    for entry in entries {
        body.extend_from_slice(&cast::low_u32(entry.len()).to_le_bytes());
        body.extend_from_slice(entry);
    }
    body
}

/// Decodes a body. Where it ends in the middle of an entry, all before it are taken.
pub(super) fn decode(
    body: &[u8],
    labels: Labels,
    line_bytes_max: usize,
) -> Result<DecodedBody, TooLarge> {
    let mut pushed = DecodedBody::new(Batch::new(EntryKind::Enveloped, labels));
    let mut rest = body;
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let Some((entry, after)) = take(rest) else {
            let reason = "the body ends in the middle of the entry".to_owned();
            pushed.reject(number, RejectReason::Malformed(reason));
            break;
        };
        rest = after;
        let checked = check(EntryKind::Enveloped, entry, line_bytes_max);
        pushed.add(number, entry, checked)?;
    }
    Ok(pushed.finished())
}

/// The first entry, and what is behind it.
fn take(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = rest.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::push::{PushForm, decode as decode_any};
    use logpond_record::{Timestamp, Value};

    fn batch(lines: &[&[u8]], time: i64) -> Batch {
        let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
        for line in lines {
            let fields = [("stream", &Value::Str("stdout".into()))];
            batch.push_enveloped(EntryKind::Line, Some(Timestamp(time)), fields, line);
        }
        batch
    }

    fn reasons(pushed: &DecodedBody) -> Vec<String> {
        pushed.rejected.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let batch = batch(&[b"a", b"", b"two\nlines\xff"], 5);
        let body = encode(batch.iter());
        let pushed = decode_any(PushForm::Entries, &body, Labels::new(), 100).unwrap();
        assert_eq!((pushed.accepted, pushed.rejected_total), (3, 0));
        assert_eq!(pushed.batch, batch);
        assert_eq!(PushForm::from_header(CONTENT_TYPE), Some(PushForm::Entries));
    }

    #[test]
    fn bad_entries_take_no_good_one_with_them() {
        let mut body = encode(batch(&[b"a", b"longer than six"], 5).iter());
        body.extend(encode(batch(&[b"of no time"], -1).iter()));
        body.extend(encode([&b"no envelope"[..], b""].into_iter()));
        body.extend(encode(batch(&[b"sixsix"], 5).iter()));
        let whole = body.len();
        body.extend(encode(batch(&[b"cut"], 5).iter()));
        let cut = &body[..body.len() - 1];
        let pushed = decode_any(PushForm::Entries, cut, Labels::new(), 6).unwrap();
        assert_eq!(pushed.accepted, 2);
        assert_eq!(
            reasons(&pushed),
            [
                "line 2: the line has 15 bytes, more than the limit of 6 bytes a line \
                 (line-bytes-max)",
                "line 3: its time is before 1970 or after 2199",
                "line 4: it is no envelope",
                "line 5: it is no envelope",
                "line 7: the body ends in the middle of the entry",
            ]
        );
        for end in [whole + 1, whole + 3, whole + 4] {
            let pushed = decode_any(PushForm::Entries, &body[..end], Labels::new(), 6).unwrap();
            assert_eq!((pushed.accepted, pushed.rejected_total), (2, 5), "{end}");
        }
    }
}
