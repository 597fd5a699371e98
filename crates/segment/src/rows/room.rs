//! Room for what is still to come, estimated by what has come.

use logpond_record::cast;

/// The most rows, and bytes of their lines, that are believed to come: what is made at once is a few tens of
/// megabytes, and a wrong number must not ask for more memory than there is.
const EXPECTED_MAX: (u64, u64) = (1 << 24, 1 << 30);

/// What is still to come and what has come so far, in rows and in bytes of their lines.
pub(super) struct Room {
    rows: (u64, u64),
    bytes: (u64, u64),
}

impl Room {
    /// Of so many rows and bytes in all, so many have come.
    pub(super) fn new(expected: (u64, u64), so_far: (u64, u64)) -> Room {
        let to_come =
            |expected: u64, max: u64, so_far| (expected.min(max).saturating_sub(so_far), so_far);
        Room {
            rows: to_come(expected.0, EXPECTED_MAX.0, so_far.0),
            bytes: to_come(expected.1, EXPECTED_MAX.1, so_far.1),
        }
    }

    /// What has grown to `count` with the rows will grow by so much.
    pub(super) fn rows_like(&self, count: usize) -> usize {
        more_of(count, self.rows)
    }

    /// What has grown to `count` bytes with those of the lines will grow by so much.
    pub(super) fn bytes_like(&self, count: usize) -> usize {
        more_of(count, self.bytes)
    }
}

/// A sixteenth more than as before: memory that is never touched costs nothing, growing costs a copy.
fn more_of(count: usize, (to_come, so_far): (u64, u64)) -> usize {
    let more = (count as u64).saturating_mul(to_come) / so_far.max(1);
    cast::to_usize(more + more / 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_estimated_by_what_has_come() {
        let table = [
            ((10_000, 1_000_000), (1_700, 1_700)),
            // More has come than was expected.
            ((10, 10), (0, 0)),
            // Nobody has so much.
            ((u64::MAX, u64::MAX), (5_702_553, 3_649_021)),
        ];
        for (expected, (rows, bytes)) in table {
            let room = Room::new(expected, (5_000, 500_000));
            assert_eq!(
                (room.rows_like(1_600), room.bytes_like(1_600)),
                (rows, bytes),
                "{expected:?}"
            );
        }
        assert_eq!(Room::new((10, 10), (0, 0)).rows_like(0), 0);
    }
}
