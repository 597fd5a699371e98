import { expect, test } from "vitest";
import { FIRST_ROWS, KEPT_ROWS_MAX, Pages, type Bounds, type Bucket } from "../src/lib/pages";
import type { Trailer } from "../src/api/client";

// A server with a row each second, newest first.
const TOTAL = 200_000;
const START = Date.UTC(2026, 0, 1);
const timeOf = (index: number) =>
  new Date(START + (TOTAL - 1 - index) * 1000).toISOString().replace(".000Z", ".000000000Z");
const indexOfTime = (time: string) => TOTAL - 1 - Math.ceil((Date.parse(time) - START) / 1000 - 1);

function server() {
  const asked: { bounds: Bounds; limit: number }[] = [];
  let largest = 0;
  const source = {
    async rows(
      bounds: Bounds,
      limit: number,
      _signal: AbortSignal,
      take: (lines: string[]) => void,
    ): Promise<Trailer> {
      asked.push({ bounds, limit });
      largest = Math.max(largest, limit);
      let index = bounds.cursor ? Number(bounds.cursor) : bounds.to ? indexOfTime(bounds.to) : 0;
      const end = Math.min(TOTAL, index + limit);
      const lines: string[] = [];
      for (; index < end; index += 1)
        lines.push(`{"_time":"${timeOf(index)}","_id":"${index}","n":${index}}`);
      take(lines);
      return {
        complete: true,
        missing: [],
        rows: lines.length,
        bytes_scanned: 0,
        elapsed_ms: 1,
        ...(end < TOTAL ? { more: true, cursor: String(end) } : {}),
      };
    },
    async counts({ from, to }: Bounds, parts: number): Promise<Bucket[]> {
      const [low, high] = [Date.parse(from!), Date.parse(to!)];
      const step = Math.ceil((high - low) / parts / 1000) * 1000;
      const found: Bucket[] = [];
      for (let at = Math.floor(low / step) * step; at < high; at += step) {
        const [a, b] = [Math.max(at, low, START), Math.min(at + step, high, START + TOTAL * 1000)];
        found.push({
          from: new Date(at).toISOString(),
          to: new Date(at + step).toISOString(),
          count: Math.max(0, Math.ceil(b / 1000) - Math.ceil(a / 1000)),
        });
      }
      return found;
    },
  };
  return { source, asked, largest: () => largest };
}

async function settled(pages: Pages, index: number) {
  for (let turn = 0; turn < 2000 && !pages.get(index); turn += 1)
    await new Promise((done) => setTimeout(done, 0));
  return pages.get(index);
}

test("any row is reached by short reads, and few rows are kept", async () => {
  const { source, largest } = server();
  const failures: unknown[] = [];
  const pages = new Pages(
    source,
    "desc",
    () => undefined,
    () => undefined,
    (error) => failures.push(error),
  );
  pages.want(0, 50);
  expect((await settled(pages, 49))?.id).toBe("49");
  expect(pages.count).toBeLessThanOrEqual(FIRST_ROWS + 1000);
  const buckets = await source.counts(
    { from: new Date(START).toISOString(), to: new Date(START + TOTAL * 1000).toISOString() },
    40,
  );
  pages.learn(buckets);
  pages.setTotal(TOTAL);
  expect(pages.count).toBe(TOTAL);
  for (const index of [100_000, 199_990, 12_345, 150_001, 3]) {
    pages.want(index, Math.min(TOTAL - 1, index + 40));
    expect((await settled(pages, index))?.id).toBe(String(index));
  }
  expect(largest()).toBeLessThan(4000);
  for (let index = 0; index < TOTAL; index += 450) {
    pages.want(index, index + 40);
    await settled(pages, index);
  }
  const kept = Array.from({ length: TOTAL }, (_, index) => index).filter((index) => pages.get(index)).length;
  expect(kept).toBeLessThanOrEqual(KEPT_ROWS_MAX + 4000);
  expect(failures).toEqual([]);
}, 30_000);

test("a stopped list reads no more, and goes on when it is told to", async () => {
  const { source, asked } = server();
  const pages = new Pages(
    source,
    "desc",
    () => undefined,
    () => undefined,
    () => undefined,
  );
  pages.want(0, 50);
  await settled(pages, 0);
  pages.stop();
  const before = asked.length;
  pages.want(5000, 5050);
  await new Promise((done) => setTimeout(done, 5));
  expect(asked.length).toBe(before);
  pages.resume();
  expect((await settled(pages, 400))?.id).toBe("400");
});
