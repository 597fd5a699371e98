// Rows of a result of any size, by their index. Only the part near the reader is kept.
//
// The server has cursors, and no indexes. A histogram has them: all rows at or after the start of a bucket come
// before it, so their number is the index of the first row of an earlier bucket. Such anchors, and the ends of
// pages that were read, lead to any row with a short read.

import type { Trailer } from "../api/client";
import { parseRow, type Row } from "./record";

/** Rows of a chunk, of the first request, and rows that are kept. */
const CHUNK_ROWS = 256;
export const FIRST_ROWS = 200;
const PAGE_ROWS = 500;
export const KEPT_ROWS_MAX = 60_000;
/** Rows that are read and not shown to reach a row between two anchors. */
const SKIPPED_ROWS_MAX = 3000;
const REFINEMENTS_MAX = 6;
/** Lines longer than this are kept clipped. */
const LINE_CHARS_MAX = 16_384;

export interface Bucket {
  from: string;
  to: string;
  count: number;
  by?: Record<string, number>;
}
export interface Bounds {
  from?: string;
  to?: string;
  cursor?: string;
}
interface Anchor extends Bounds {
  index: number;
}

export interface Source {
  rows(bounds: Bounds, limit: number, signal: AbortSignal, take: (lines: string[]) => void): Promise<Trailer>;
  /** Counts of parts of a range, oldest first. */
  counts(bounds: Bounds, parts: number, signal: AbortSignal): Promise<Bucket[]>;
}

type Held = string | Row;

export class Pages {
  /** The number of rows, once it is known. */
  total: number | null = null;
  /** Rows without a gap from the first on. */
  reached = 0;
  ended = false;
  stopped = false;
  loading = false;
  private readonly chunks = new Map<number, (Held | undefined)[]>();
  private anchors: Anchor[];
  private spans: { start: number; end: number; from: string; to: string }[] = [];
  private wanted: [number, number] = [0, 0];
  private readonly parsed = new Map<Held, Row>();
  private control = new AbortController();

  constructor(
    private readonly source: Source,
    private readonly direction: "desc" | "asc",
    private readonly changed: () => void,
    private readonly ended_with: (trailer: Trailer, first: boolean) => void,
    private readonly failed: (error: unknown) => void,
    first: Bounds = {},
  ) {
    this.anchors = [{ index: 0, ...first }];
  }

  /** Rows that a list shows: all, or those that were read and one more page. */
  get count(): number {
    if (this.stopped && this.total === null) return this.reached;
    if (this.total !== null) return Math.max(this.total, this.reached);
    return this.reached;
  }

  get(index: number): Row | undefined {
    const held = this.chunks.get(Math.floor(index / CHUNK_ROWS))?.[index % CHUNK_ROWS];
    if (held === undefined) return undefined;
    if (typeof held !== "string") return held;
    let row = this.parsed.get(held);
    if (!row) {
      row = parseRow(held);
      if (this.parsed.size > 600) this.parsed.clear();
      this.parsed.set(held, row);
    }
    return row;
  }

  private has(index: number): boolean {
    return this.chunks.get(Math.floor(index / CHUNK_ROWS))?.[index % CHUNK_ROWS] !== undefined;
  }

  private put(index: number, line: string) {
    const chunk = Math.floor(index / CHUNK_ROWS);
    let rows = this.chunks.get(chunk);
    if (!rows) this.chunks.set(chunk, (rows = new Array<Held | undefined>(CHUNK_ROWS)));
    rows[index % CHUNK_ROWS] = line.length > LINE_CHARS_MAX ? parseRow(line) : line;
  }

  private evict() {
    const [first, last] = this.wanted.map((index) => Math.floor(index / CHUNK_ROWS)) as [number, number];
    const excess = this.chunks.size - Math.floor(KEPT_ROWS_MAX / CHUNK_ROWS);
    if (excess <= 0) return;
    const middle = (first + last) / 2;
    const far = [...this.chunks.keys()].sort((a, b) => Math.abs(b - middle) - Math.abs(a - middle));
    for (const chunk of far.slice(0, excess)) this.chunks.delete(chunk);
  }

  /** Takes the buckets of a histogram: they tell where rows are. */
  learn(buckets: Bucket[], base = 0) {
    const ordered = this.direction === "desc" ? [...buckets].reverse() : buckets;
    let index = base;
    for (const { from, to, count } of ordered) {
      if (count) this.spans.push({ start: index, end: index + count, from, to });
      index += count;
      if (!this.anchors.some((anchor) => anchor.index === index)) {
        this.anchors.push(this.direction === "desc" ? { index, to: from } : { index, from: to });
      }
    }
    this.anchors.sort((a, b) => a.index - b.index);
  }

  setTotal(total: number) {
    // Rows that were read are there, whatever was counted.
    this.total = this.ended ? this.reached : total;
    this.changed();
  }

  stop() {
    this.stopped = true;
    this.control.abort();
    this.control = new AbortController();
    this.loading = false;
    this.changed();
  }

  resume() {
    this.stopped = false;
    this.want(...this.wanted);
  }

  /** Says which rows are on the screen; they and some around them are read. */
  want(first: number, last: number) {
    this.wanted = [first, last];
    if (this.loading || this.stopped) return;
    const missing = this.missing(first, last + 100);
    if (missing !== null) void this.load(missing);
  }

  private missing(first: number, last: number): number | null {
    const end =
      this.total !== null
        ? Math.min(last, this.total - 1)
        : this.ended
          ? Math.min(last, this.reached - 1)
          : last;
    for (let index = Math.max(0, first - 40); index <= end; index += 1) if (!this.has(index)) return index;
    return null;
  }

  private nearest(index: number): Anchor {
    let best = this.anchors[0]!;
    for (const anchor of this.anchors) {
      if (anchor.index > index) break;
      best = anchor;
    }
    return best;
  }

  private async load(missing: number) {
    this.loading = true;
    const { signal } = this.control;
    try {
      for (
        let turn = 0;
        turn < REFINEMENTS_MAX && missing - this.nearest(missing).index > SKIPPED_ROWS_MAX;
        turn += 1
      ) {
        if (!(await this.refine(missing, signal))) break;
      }
      await this.read(this.nearest(missing), missing, signal);
    } catch (error) {
      if (signal.aborted) return;
      this.loading = false;
      this.stopped = true;
      this.failed(error);
      return;
    }
    if (signal.aborted) return;
    this.loading = false;
    this.evict();
    this.changed();
    this.want(...this.wanted);
  }

  /** Counts parts of the bucket in which a row is. False if that does not help. */
  private async refine(index: number, signal: AbortSignal): Promise<boolean> {
    const within = this.spans.filter(({ start, end }) => start <= index && index < end);
    const span = within.sort((a, b) => a.end - a.start - (b.end - b.start))[0];
    if (!span) return false;
    const before = this.anchors.length;
    const buckets = await this.source.counts({ from: span.from, to: span.to }, 60, signal);
    if (signal.aborted) return false;
    this.learn(buckets, span.start);
    return this.anchors.length > before;
  }

  private async read(anchor: Anchor, missing: number, signal: AbortSignal) {
    const { index, ...bounds } = anchor;
    const first = index === 0 && this.reached === 0;
    const limit = first ? FIRST_ROWS : missing - index + PAGE_ROWS;
    let at = index;
    const trailer = await this.source.rows(bounds, limit, signal, (lines) => {
      if (signal.aborted) return;
      for (const line of lines) {
        this.put(at, line);
        at += 1;
      }
      if (index <= this.reached) this.reached = Math.max(this.reached, at);
      this.changed();
    });
    if (signal.aborted) return;
    if (trailer.more && trailer.cursor && !this.anchors.some((known) => known.index === at)) {
      this.anchors.push({ index: at, cursor: trailer.cursor });
      this.anchors.sort((a, b) => a.index - b.index);
    }
    if (!trailer.more) {
      this.ended = true;
      this.total = at;
      if (index <= this.reached) this.reached = at;
    }
    this.ended_with(trailer, first);
  }
}
