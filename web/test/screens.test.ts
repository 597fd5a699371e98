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
  const { firings } = await import("../src/ui/alerts");
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

test("rules take numbers and durations, and YAML takes texts as texts", async () => {
  const { ruleSeconds, quoteYaml, valueText } = await import("../src/ui/alerts");
  expect(["30s", "5m", "1h30m", "100ms", "0"].map(ruleSeconds)).toEqual([30, 300, 5400, 0.1, 0]);
  for (const text of ["", "abc", "5", "m5", "5 m", "-5m", "1.5h", "5m!"])
    expect(ruleSeconds(text)).toBe(null);
  expect(quoteYaml("High errors")).toBe("High errors");
  for (const text of ["yes", "null", "12", "", 'a"b', "a: b", "- x", "~"])
    expect(quoteYaml(text)).toBe(JSON.stringify(text));
  expect(["7.2e+02", "0.00125", "NaN", "", "+Inf"].map(valueText)).toEqual([
    "720",
    "0.00125",
    "NaN",
    "",
    "+Inf",
  ]);
});

test("a pattern's filter has its level", async () => {
  const { filterOf } = await import("../src/ui/patterns");
  const pattern = { pattern: "order <_> paid", count: 1, level: "warn", buckets: [], samples: [] };
  expect(filterOf("", pattern, false)).toBe('"order" "paid" level=warn');
  expect(filterOf("a OR b", pattern, true)).toBe('(a OR b) NOT ("order" "paid" level=warn)');
  expect(filterOf("", { ...pattern, level: null }, false)).toBe('"order" "paid" NOT level:*');
});

test("records in all files, each once", async () => {
  const { storedIn } = await import("../src/ui/cluster");
  expect(
    storedIn([
      { path: "journal/a.open", rows: 3, raw_bytes: 30 },
      { path: "segments/b.parquet", rows: 10, raw_bytes: 100 },
      { path: "segments/b.parquet", rows: 10, raw_bytes: 100 },
      { path: "" },
    ]),
  ).toEqual({ rows: 13, bytes: 130 });
});

test("a series of regular points has a gap where it has none", async () => {
  const { aligned } = await import("../src/ui/numbers");
  const series = (points: [number, number][]) => ({ name: "", labels: {}, points });
  const list = [
    series([
      [0, 1],
      [60, 2],
      [300, 3],
    ]),
  ];
  expect(aligned(list, true)).toEqual([
    [0, 60, 120, 300],
    [1, 2, null, 3],
  ]);
  expect(aligned(list)[0]).toEqual([0, 60, 300]);
  expect(aligned([series([[5, 1]])], true)).toEqual([[5], [1]]);
});

test("a file of the columns is safe and whole", async () => {
  const { csvOf } = await import("../src/ui/commands");
  expect(["plain", "a,b", 'say "hi"', "two\nlines", "=1+1", "-5", "-x", "+49", "@a"].map(csvOf)).toEqual([
    "plain",
    '"a,b"',
    '"say ""hi"""',
    '"two\nlines"',
    "'=1+1",
    "-5",
    "'-x",
    "'+49",
    "'@a",
  ]);
});

test("advice for the command line is left out", async () => {
  const { withoutFlags } = await import("../src/api/client");
  expect(withoutFlags("give a range (--since 1h, from=1h); or quote (it)")).toBe(
    "give a range; or quote (it)",
  );
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

test("commands for senders have the ports of the server", async () => {
  const { senders } = await import("../src/ui/senders");
  const listener = (name: string, address: string, up = true) => ({ name, address, up });
  const of = (url: string, listeners: Parameters<typeof senders>[1], name: string) =>
    senders(new URL(url), listeners).find((sender) => sender.name === name)!;
  const near = "http://127.0.0.1:7650/";
  const far = "http://logs.example:7650/";
  expect(of(near, null, "Syslog").command).toContain('port="5514"');
  expect(of(near, null, "Syslog").text).toContain("syslog-tcp, here its default");
  const on = [listener("syslog-tcp", "127.0.0.1:4711"), listener("fluent", "[::]:4712")];
  expect(of(near, on, "Syslog").command).toContain('port="4711"');
  expect(of(near, on, "Syslog").text).toMatch(/restart rsyslog\.$/);
  expect(of(far, on, "Syslog").text).toContain("from its own machine only (127.0.0.1:4711)");
  expect(of(far, on, "Docker").command).toContain("logs.example:4712");
  expect(of(far, on, "Docker").text).not.toContain("own machine");
  expect(of(far, [], "Docker").text).toContain("--fluent 0.0.0.0:PORT");
  const taken = [listener("fluent", "0.0.0.0:24224", false)];
  expect(of(far, taken, "Docker").text).toContain("Another program has 0.0.0.0:24224");
});

test("lines over time of patterns have a bar for each bucket of the server", async () => {
  const { seriesOf } = await import("../src/ui/patterns");
  const [low, high] = [Date.UTC(2026, 10, 27, 10, 2), Date.UTC(2026, 10, 27, 11, 2)];
  const at = (minute: number) => new Date(Date.UTC(2026, 10, 27, 10, minute)).toISOString();
  const pattern = (buckets: [string, number][]) => ({
    pattern: "",
    count: 0,
    level: null,
    buckets,
    samples: [],
  });
  const whole = pattern(Array.from({ length: 13 }, (_, index) => [at(index * 5), 1]));
  const some = pattern([[at(30), 2]]);
  const series = seriesOf([whole, some], low, high);
  expect(series(whole)).toEqual(new Array(13).fill(1));
  expect(series(some)).toEqual([0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]);
  expect(seriesOf([], low, high)(some)).toEqual([2]);
  // Of very many, each bar has as many buckets as the next.
  const many = pattern(
    Array.from({ length: 120 }, (_, index) => [new Date(low + index * 1000).toISOString(), 1]),
  );
  expect(seriesOf([many], low, low + 120_000)(many)).toEqual(new Array(60).fill(2));
});
