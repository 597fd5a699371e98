//! The memory of records on their way in, which must be had before they are taken.

/// The least and the most of a pool, in bytes, and the part of the budget between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The bytes with the smallest budget.
    pub bytes_min: usize,
    /// The bytes with a large one.
    pub bytes_max: usize,
    /// It is one in so many bytes of the budget.
    share: usize,
}

const fn pool(min_mib: usize, max_mib: usize, share: usize) -> Pool {
    Pool {
        bytes_min: min_mib << 20,
        bytes_max: max_mib << 20,
        share,
    }
}

/// Bodies of requests, as they came in: those of HTTP, and those of other nodes apart. With the decoded size of the
/// two that are decoded at once it bounds the memory of pushes. The least is what shippers send at most.
pub const BODIES: Pool = pool(16, 64, 4);

/// One body, decompressed. Its records take some times as much while it is decoded.
pub const DECODED: Pool = pool(16, 64, 3);

/// Parts of records, of all connections of listeners that are not HTTP.
pub const UNFINISHED: Pool = pool(8, 64, 8);

/// Records that wait for the disk.
pub const QUEUE: Pool = pool(8, 32, 8);

impl Pool {
    /// The bytes of this pool with such a budget.
    pub fn bytes(self, budget_bytes: u64) -> usize {
        let budget = usize::try_from(budget_bytes).unwrap_or(usize::MAX);
        (budget / self.share).clamp(self.bytes_min, self.bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(pool: Pool) -> String {
        let (min, max) = (pool.bytes_min >> 20, pool.bytes_max >> 20);
        let share = pool.share;
        format!("1/{share} of the budget, at least {min} MiB, at most {max} MiB")
    }

    #[test]
    fn pools_grow_with_the_budget_within_bounds() {
        let table = [
            (BODIES, 32, 16),
            (BODIES, 128, 32),
            (BODIES, 4096, 64),
            (DECODED, 32, 16),
            (DECODED, 96, 32),
            (DECODED, 192, 64),
            (UNFINISHED, 64, 8),
            (UNFINISHED, 256, 32),
            (QUEUE, 64, 8),
            (QUEUE, 128, 16),
            (QUEUE, 1 << 20, 32),
        ];
        for (pool, budget_mib, mib) in table {
            let bytes = pool.bytes(budget_mib << 20);
            assert_eq!(bytes >> 20, mib, "{pool:?} of {budget_mib} MiB");
        }
    }

    #[test]
    fn the_page_has_the_pools() {
        let page = include_str!("../../../../docs/memory.md");
        let rows = [
            ("bodies of requests", BODIES),
            ("one body, decompressed", DECODED),
            (
                "parts of records on connections of other listeners",
                UNFINISHED,
            ),
            ("records that wait for the disk", QUEUE),
        ];
        for (what, pool) in rows {
            let row = format!("| {what} | {} |", described(pool));
            assert!(page.contains(&row), "docs/memory.md lacks {row}");
        }
    }
}
