import { expect, test } from "vitest";
import {
  LabelCounts,
  countedBars,
  countParams,
  countParts,
  isLabel,
  stateOfLabel,
  toggleLabel,
  valueParams,
  withVariables,
} from "../src/lib/logql";

test("variables of a saved query are escaped where the query has them in a text", () => {
  const values = { scripts: String.raw`.*\.js`, host: 'a"b', __range: "3600s" };
  expect(withVariables('{path!~"$scripts", host=~"${host:regex}"} [$__range]', values)).toBe(
    String.raw`{path!~".*\\.js", host=~"a\"b"} [3600s]`,
  );
  expect(withVariables('{path!~`$scripts`} |= "\\"$other" ', values)).toBe(
    '{path!~`.*\\.js`} |= "\\"$other" ',
  );
});

test("a filter of a label is added, turned and taken back", () => {
  const query = '{app="shop"} |= "timeout"';
  const only = toggleLabel(query, "service", "a", false);
  expect(only).toBe(`${query} | service="a"`);
  expect(stateOfLabel(only, "service", "a")).toBe("included");
  const not = toggleLabel(only, "service", "a", true);
  expect(not).toBe(`${query} | service!="a"`);
  expect(stateOfLabel(not, "service", "a")).toBe("excluded");
  expect(toggleLabel(not, "service", "a", true)).toBe(query);
  expect(stateOfLabel(query, "service", "a")).toBe(null);
});

test("any value, and only names that LogQL has", () => {
  for (const value of ['say "hi"', "a\nb", "$& $1", "back\\slash", ""]) {
    const query = toggleLabel("{}", "x", value, false);
    expect(stateOfLabel(query, "x", value)).toBe("included");
    expect(toggleLabel(query, "x", value, false)).toBe("{}");
  }
  expect(["app", "_x1", "a.b", "1a", ""].filter(isLabel)).toEqual(["app", "_x1"]);
});

test("bars of a range begin at multiples of the step", () => {
  expect(countParts(950, 5050, 1000)).toEqual([
    { from: 950, to: 1000, step: 50 },
    { from: 1000, to: 5000, step: 1000 },
    { from: 5000, to: 5050, step: 50 },
  ]);
  expect(countParts(1000, 3000, 1000)).toEqual([{ from: 1000, to: 3000, step: 1000 }]);
  expect(countParts(1100, 1900, 1000)).toEqual([{ from: 1100, to: 1900, step: 800 }]);
});

test("lines are counted in the bars that they are in", () => {
  const part = { from: 1000, to: 3000, step: 1000 };
  // A range of LogQL is behind its beginning up to its end.
  expect(countParams("{} # all", part)).toEqual({
    query: "sum by (detected_level) (count_over_time({} # all\n[1000ms]))",
    start: "1999999999",
    end: "2999999999",
    step: "1000ms",
  });
  const series: { metric: Record<string, string>; values: [number, string][] }[] = [
    { metric: { detected_level: "error" }, values: [[1.999999999, "2"]] },
    { metric: { detected_level: "unknown" }, values: [[2.999999999, "5"]] },
    { metric: {}, values: [[2.999999999, "1"]] },
  ];
  const bars = countedBars(series, part).map(({ count, by }) => ({ count, by }));
  expect(bars).toEqual([
    { count: 2, by: { error: 2 } },
    { count: 6, by: {} },
  ]);
  expect(countedBars([], part).map(({ count }) => count)).toEqual([0, 0]);
});

test("labels of lines are counted stream by stream", () => {
  const counts = new LabelCounts();
  const lines = (n: number) => Array.from({ length: n }, (_, at) => [String(at), "x"]);
  expect(counts.add([{ stream: { app: "a", level: "info" }, values: lines(3) }])).toBe(true);
  expect(counts.add([{ stream: { app: "b" }, values: lines(2) }])).toBe(false);
  expect(counts.add([{ stream: { app: "b", "not.one": "1" }, values: lines(1) }])).toBe(true);
  expect(counts.lines).toBe(6);
  expect(counts.list()).toEqual([
    { name: "app", lines: 6, values: 2 },
    { name: "level", lines: 3, values: 1 },
  ]);
});

test("values of a label are counted over the range, those with a text by an expression", () => {
  const range = { from: 1000, to: 61_000 };
  expect(valueParams('{app="a"} # all', "status", 8, "", range)).toEqual({
    query: 'topk(8, sum by (status) (count_over_time({app="a"} # all\n| status!="" [60000ms])))',
    time: "60999999999",
  });
  const { query } = valueParams('{app="a"}', "path", 500, 'a.b"(', range);
  expect(query).toContain('| path=~"(?is).*a\\\\.b\\"\\\\(.*" [60000ms]');
});
