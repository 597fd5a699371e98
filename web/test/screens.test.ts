import { beforeAll, expect, test } from "vitest";

// The modules of screens look at the address when they are loaded.
beforeAll(() => {
  Object.assign(globalThis, {
    location: { search: "", href: "http://127.0.0.1/" },
    addEventListener: () => undefined,
    document: { documentElement: { dataset: {} } },
    requestAnimationFrame: () => 0,
    history: { pushState: () => undefined, replaceState: () => undefined },
    localStorage: { getItem: () => null, setItem: () => undefined },
    sessionStorage: { getItem: () => null, setItem: () => undefined, removeItem: () => undefined },
    matchMedia: () => ({ matches: false, addEventListener: () => undefined }),
    fetch: () => new Promise(() => undefined),
  });
});

test("rules from queries", async () => {
  const { logqlOf, firings } = await import("../src/ui/alerts");
  expect(logqlOf("level=error app=shop")).toBe('{app="shop"} | detected_level="error"');
  expect(logqlOf('timeout of "pay" status>=500')).toBe('{} |= "timeout of" |= "pay" | status >= 500');
  expect(logqlOf("level>=error")).toBe('{} | detected_level=~"error|critical|fatal"');
  expect(logqlOf("a OR b")).toBe(null);
  expect(
    firings(
      [
        {
          name: "",
          labels: {},
          points: [
            [0, 1],
            [60, 20],
            [120, 20],
            [180, 20],
            [240, 1],
            [300, 20],
          ],
        },
      ],
      10,
      120,
    ),
  ).toEqual([[180, 180]]);
});

test("patterns: changes and terms", async () => {
  const { changeOf, termsOf } = await import("../src/ui/patterns");
  expect(changeOf(5, undefined, true)).toEqual({ kind: "new" });
  expect(changeOf(50, 5, true)).toEqual({ kind: "more", factor: 10 });
  expect(changeOf(49, 5, true)).toBe(null);
  expect(changeOf(5, undefined, false)).toBe(null);
  expect(termsOf("Failed password for <_> from <_> port <_> ssh2")).toEqual([
    "Failed password for",
    "from",
    "port",
  ]);
});

test("metrics of Prometheus", async () => {
  const { parseMetrics } = await import("../src/ui/cluster");
  expect(parseMetrics('# HELP x y\nx{a="1",b="q\\"z"} 2\ny 3.5\n')).toEqual([
    { name: "x", labels: { a: "1", b: 'q"z' }, value: 2 },
    { name: "y", labels: {}, value: 3.5 },
  ]);
});

test("silent sources come first, and of these the busiest", async () => {
  const { bySilence } = await import("../src/ui/sources");
  const source = (name: string, day: number, recent: number) => ({ name, day, recent });
  const list = [source("busy", 900, 50), source("rare", 1, 0), source("calm", 5, 1), source("gone", 70, 0)];
  expect(bySilence(list).map(({ name }) => name)).toEqual(["gone", "rare", "busy", "calm"]);
});

test("how long a disk lasts is no promise for decades", async () => {
  const { lastsText } = await import("../src/ui/cluster");
  const day = 86_400_000;
  expect(lastsText(12 * day)).toBe("12 d");
  expect(lastsText(400 * day)).toBe("400 d");
  expect(lastsText(40_000 * day)).toBe("more than 10 years");
});
