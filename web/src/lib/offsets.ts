// Offsets of rows of a virtual list. Most rows have one height; others differ from it by a known amount.

const CHUNK_ROWS = 1024;

export class Offsets {
  private readonly extra = new Map<number, number>();
  private readonly chunks = new Map<number, number>();

  constructor(
    public rowHeight: number,
    public count: number,
  ) {}

  clear(rowHeight: number, count: number) {
    this.extra.clear();
    this.chunks.clear();
    this.rowHeight = rowHeight;
    this.count = count;
  }

  heightOf(index: number): number {
    return this.rowHeight + (this.extra.get(index) ?? 0);
  }

  /** True if this changes anything. */
  setHeight(index: number, height: number): boolean {
    const [before, after] = [this.extra.get(index) ?? 0, height - this.rowHeight];
    if (Math.abs(before - after) < 0.5) return false;
    if (after === 0) this.extra.delete(index);
    else this.extra.set(index, after);
    const chunk = Math.floor(index / CHUNK_ROWS);
    this.chunks.set(chunk, (this.chunks.get(chunk) ?? 0) + after - before);
    return true;
  }

  private extraBefore(index: number): number {
    const chunk = Math.floor(index / CHUNK_ROWS);
    let sum = 0;
    for (const [at, extra] of this.chunks) if (at < chunk) sum += extra;
    if (this.chunks.has(chunk)) {
      for (let i = chunk * CHUNK_ROWS; i < index; i += 1) sum += this.extra.get(i) ?? 0;
    }
    return sum;
  }

  offsetOf(index: number): number {
    return index * this.rowHeight + this.extraBefore(index);
  }

  get total(): number {
    return this.offsetOf(this.count);
  }

  /** The row at this offset. */
  indexAt(offset: number): number {
    let [low, high] = [0, Math.max(0, this.count - 1)];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.offsetOf(middle) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Moves known heights by some rows, as new rows come before the first. */
  shift(rows: number) {
    const before = [...this.extra];
    this.extra.clear();
    this.chunks.clear();
    this.count += rows;
    for (const [index, extra] of before) {
      if (index + rows < this.count) this.setHeight(index + rows, this.rowHeight + extra);
    }
  }
}
