// Records of a tail: those that are shown, and those that arrived while the reader reads.

/** Rows that are kept for display, and rows that wait while the tail is paused. All that a pause kept is shown. */
export const SHOWN_ROWS_MAX = 10_000;
export const WAITING_ROWS_MAX = 50_000;
const RATE_SECONDS = 10;

export class TailBuffer {
  /** Newest first. */
  shown: string[] = [];
  private waiting: string[] = [];
  /** Rows that were neither shown nor kept, because the reader was away for longer than the buffer lasts. */
  dropped = 0;
  received = 0;
  /** Rows that were shown, and that newer ones have pushed out of the list. */
  passed = 0;
  private room = SHOWN_ROWS_MAX;
  paused = false;
  private readonly seconds = new Map<number, number>();

  get waitingCount() {
    return this.waiting.length;
  }

  push(line: string, nowMs: number) {
    this.received += 1;
    const second = Math.floor(nowMs / 1000);
    this.seconds.set(second, (this.seconds.get(second) ?? 0) + 1);
    for (const known of this.seconds.keys()) if (known < second - 60) this.seconds.delete(known);
    this.waiting.push(line);
    if (this.waiting.length > WAITING_ROWS_MAX) {
      const extra = this.waiting.length - WAITING_ROWS_MAX;
      this.waiting.splice(0, extra);
      this.dropped += extra;
    }
  }

  /** Shows the rows that wait, unless paused. Returns how many came. */
  flush(): number {
    if (this.paused || !this.waiting.length) return 0;
    const came = this.waiting.length;
    this.room = Math.max(this.room, came);
    this.shown = [...this.waiting.reverse(), ...this.shown];
    this.passed += Math.max(0, this.shown.length - this.room);
    this.shown.length = Math.min(this.shown.length, this.room);
    this.waiting = [];
    return came;
  }

  /** Records a second over the last ten full seconds, or since the first. */
  rate(nowMs: number): number {
    const now = Math.floor(nowMs / 1000);
    let sum = 0;
    for (const [second, count] of this.seconds)
      if (second < now && second >= now - RATE_SECONDS) sum += count;
    return sum / RATE_SECONDS;
  }

  /** Counts of the last sixty seconds, oldest first. */
  history(nowMs: number): number[] {
    const now = Math.floor(nowMs / 1000);
    return Array.from({ length: 60 }, (_, i) => this.seconds.get(now - 60 + i) ?? 0);
  }

  clear() {
    this.shown = [];
    this.waiting = [];
    this.dropped = this.received = this.passed = 0;
    this.room = SHOWN_ROWS_MAX;
    this.seconds.clear();
  }
}
