// Numbers of a field as a small histogram.

/** True if numbers spread over powers of ten, as sizes and durations do. */
export const isLog = (low: number, high: number, median: number) =>
  low >= 0 && high > 1000 * Math.max(1, median);

export const scaled = (value: number, log: boolean) => (log ? Math.log10(value + 1) : value);

/** How many numbers lie in each of the parts between two ends, which belong to it. */
export function binsOf(
  points: { value: number; count: number }[],
  low: number,
  high: number,
  log: boolean,
  parts: number,
): number[] {
  const [a, b] = [scaled(low, log), scaled(high, log)];
  const bins = new Array<number>(parts).fill(0);
  for (const { value, count } of points) {
    const place = Math.floor(((scaled(value, log) - a) / Math.max(1e-12, b - a)) * parts);
    bins[Math.min(parts - 1, Math.max(0, place))]! += count;
  }
  return bins;
}
