//! Counts over time in the height of a line.

/// Heights of a cell, lowest first; nothing at all is a space.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One character for each count, as high as its share of the largest.
pub fn sparkline(counts: &[u64]) -> String {
    let most = u128::from(counts.iter().copied().max().unwrap_or(0).max(1));
    let height = |count: &u64| match count {
        0 => ' ',
        count => HEIGHTS[((u128::from(*count) * 8).div_ceil(most) - 1) as usize],
    };
    counts.iter().map(height).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_count_is_as_high_as_the_line() {
        assert_eq!(sparkline(&[0, 1, 4, 8]), " ▁▄█");
        assert_eq!(sparkline(&[1, u64::MAX]), "▁█");
        assert_eq!(sparkline(&[0, 0]), "  ");
        assert_eq!(sparkline(&[]), "");
    }
}
