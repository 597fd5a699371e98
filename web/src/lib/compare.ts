// Comparing a range with the one before it.

const ROWS_MIN = 1000;
const SHARE_MIN = 0.05;

/** Part of the range before from which on records must lie in it. */
export const COVERED_MIN = 0.5;

/**
 * True if the range before has enough records to say that something is new, or has grown. Where it has far fewer, it
 * must be `covered`: otherwise the server began to receive within it.
 */
export const isComparable = (before: number, now: number, covered = false) =>
  before > 0 && (before >= now * SHARE_MIN || (covered && before >= ROWS_MIN));
