// Comparing a range with the one before it.

const ROWS_MIN = 1000;
const SHARE_MIN = 0.05;

/** True if the range before has enough records to say that something is new, or has grown. */
export const isComparable = (before: number, now: number) =>
  before > 0 && (before >= ROWS_MIN || before >= now * SHARE_MIN);
