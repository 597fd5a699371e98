import { expect, test } from "vitest";
import { isLabel, stateOfLabel, toggleLabel } from "../src/lib/logql";

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
