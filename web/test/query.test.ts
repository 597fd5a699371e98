import { describe, expect, test } from "vitest";
import {
  between,
  boundsOf,
  caretAt,
  choices,
  condition,
  containing,
  exclude,
  include,
  levelWords,
  needles,
  stateOf,
  toggleChoice,
  tokens,
  topTerms,
  without,
  withoutChoice,
  withoutTerm,
} from "../src/lib/query";
import { nearestLevel } from "../src/lib/levels";

describe("tokens", () => {
  test("together they are the query", () => {
    for (const query of [
      "",
      "*",
      "connection refused",
      'level>=warn "a \\"b\\"" NOT (x=1 OR y!=2)',
      "path~/^\\/api\\/v1/i status=500",
      "12:30:01 std::vec http://x",
      'agent:i"Curl" "odd name"=x user:*',
      'i"any case" /time(d )?out/',
      'unclosed "text',
      "a=",
      "()(",
      "日本=語 🙂",
    ])
      expect(
        tokens(query)
          .map(({ text }) => text)
          .join(""),
      ).toBe(query);
  });
  test("conditions and texts", () => {
    expect(tokens("status=500").map(({ kind }) => kind)).toEqual(["field", "operator", "value"]);
    expect(tokens("http://x").map(({ kind }) => kind)).toEqual(["text"]);
    expect(tokens("12:30:01").map(({ kind }) => kind)).toEqual(["text"]);
    expect(tokens("std::vec").map(({ kind }) => kind)).toEqual(["text"]);
    expect(tokens("NOT x").map(({ kind }) => kind)).toEqual(["word", "space", "text"]);
  });
});

describe("filters by click", () => {
  test("are added as text", () => {
    expect(include("", "status", "500")).toBe("status=500");
    expect(include("*", "status", "500")).toBe("status=500");
    expect(include("timeout", "app", "shop")).toBe("timeout app=shop");
    expect(exclude("timeout", "app", "shop")).toBe("timeout app!=shop");
    expect(include("a OR b", "app", "shop")).toBe("(a OR b) app=shop");
    expect(include("", "_level", "error")).toBe("level=error");
  });
  test("values and names are quoted where they must be", () => {
    expect(condition("path", "=", "/cart/pay")).toBe('path="/cart/pay"');
    expect(condition("odd name", "=", 'say "hi"\n')).toBe('"odd name"="say \\"hi\\"\\n"');
    expect(condition("x", "=", "")).toBe('x=""');
    expect(condition("user", "=", null)).toBe("user:*");
  });
  test("are not added twice, and replace their opposite", () => {
    expect(include("status=500 timeout", "status", "500")).toBe("status=500 timeout");
    expect(exclude("status=500 timeout", "status", "500")).toBe("timeout status!=500");
    expect(include("app!=shop", "app", "shop")).toBe("app=shop");
  });
  test("are taken back", () => {
    expect(without("a status=500 b", "status", "500")).toBe("a b");
    expect(without("a AND status!=500", "status", "500")).toBe("a");
    expect(without("(a OR status=500)", "status", "500")).toBe("(a OR status=500)");
    expect(stateOf("x app!=shop", "app", "shop")).toBe("excluded");
    expect(stateOf("x app=shop", "app", "shop")).toBe("included");
    expect(stateOf("(app=shop OR y)", "app", "shop")).toBe(null);
  });
  test("any value that is added is found again and can be removed", () => {
    for (const value of [
      "a",
      "a b",
      "/x/",
      '"',
      "\\",
      "a=b",
      "(x)",
      "NOT",
      "日本",
      "🙂",
      "x\ty",
      "5.0",
      "-5",
      'i"x"',
    ]) {
      const query = include("timeout", "field", value);
      expect(stateOf(query, "field", value)).toBe("included");
      expect(without(query, "field", value)).toBe("timeout");
    }
  });
  test("ranges of numbers replace each other", () => {
    expect(between("timeout", "ms", 5, 10)).toBe("timeout ms>=5 ms<=10");
    expect(between("timeout ms>=5 ms<=10", "ms", 6, 7)).toBe("timeout ms>=6 ms<=7");
    expect(between("a OR b", "ms", 1, 2)).toBe("(a OR b) ms>=1 ms<=2");
  });
});

test("the bounds of a range are read back", () => {
  expect(boundsOf(between("timeout", "ms", 5, 10.5), "ms")).toEqual({ low: "5", high: "10.5" });
  expect(boundsOf("ms>=5 bytes<=7", "ms")).toEqual({ low: "5" });
  expect(boundsOf("ms>5 OR ms<=7", "ms")).toEqual({});
  expect(boundsOf(between("", "odd name", 1, 2), "odd name")).toEqual({ low: "1", high: "2" });
});

test("a text within a field is asked in any case", () => {
  expect(containing("", "customer", "cust-2")).toBe('customer:i"cust-2"');
  expect(containing("a OR b", "odd name", 'say "hi"')).toBe('(a OR b) "odd name":i"say \\"hi\\""');
  expect(containing("level>=warn", "path", "/x")).toBe('level>=warn path:i"/x"');
});

test("a term is removed by its text, or not at all", () => {
  expect(withoutTerm("a=1 b=2", "a=1")).toBe("b=2");
  expect(withoutTerm("a=1 b=2", "c=3")).toBe(null);
  expect(withoutTerm("a=1 OR b=2", "a=1")).toBe(null);
});

test("terms of the top", () => {
  expect(topTerms("a b=1 NOT c=2 (d OR e)")?.map(({ text }) => text)).toEqual([
    "a",
    "b=1",
    "NOT c=2",
    "(d OR e)",
  ]);
  expect(topTerms("a OR b")).toBe(null);
  expect(topTerms("(a OR b) c=1")?.map(({ text }) => text)).toEqual(["(a OR b)", "c=1"]);
});

test("needles are the texts that a row may have", () => {
  expect(needles('connection refused level=error i"Any" NOT "none"')).toEqual([
    { text: "connection refused", fold: false },
    { text: "Any", fold: true },
  ]);
});

test("the place of the caret", () => {
  expect(caretAt("sta", 3)).toMatchObject({ kind: "field", prefix: "sta", from: 0, to: 3 });
  expect(caretAt("status=", 7)).toMatchObject({ kind: "value", field: "status", prefix: "" });
  expect(caretAt("status=50 x", 9)).toMatchObject({
    kind: "value",
    field: "status",
    prefix: "50",
    from: 7,
    to: 9,
  });
  expect(caretAt("x ", 2)).toMatchObject({ kind: "field", prefix: "" });
});

test("a second value of a field is one more, and the others can still be chosen", () => {
  const one = toggleChoice("timeout", "app", "shop");
  expect(one).toBe("timeout app=shop");
  const two = toggleChoice(one, "app", "my app");
  expect(two).toBe('timeout (app=shop OR app="my app")');
  expect(choices(two, "app")).toEqual(["shop", '"my app"']);
  expect(stateOf(two, "app", "my app")).toBe("included");
  expect(stateOf(two, "app", "x")).toBe(null);
  expect(withoutChoice(two, "app")).toBe("timeout");
  expect(toggleChoice(two, "app", "shop")).toBe('timeout app="my app"');
  expect(toggleChoice(toggleChoice(two, "app", "shop"), "app", "my app")).toBe("timeout");
  expect(toggleChoice("level=error", "_level", "warn")).toBe("(level=error OR level=warn)");
  // Terms of another form are left as they are.
  for (const query of [
    "(app=a OR host=b)",
    "app!=a",
    "(app=a OR NOT app=b)",
    "app~/a/",
    "NOT (app=a OR app=b)",
  ]) {
    expect(choices(query, "app")).toEqual([]);
    expect(withoutChoice(query, "app")).toBe(query);
  }
});

test("words that are no level are found, and the level that they are most like", () => {
  expect(levelWords("level>=wran app=x")).toEqual([{ word: "wran", start: 7, end: 11 }]);
  expect(levelWords("level>=warning OR level=err lvl=wran level:*")).toEqual([]);
  expect(["wran", "eror1", "inof", "debgu", "warn", "xyzzy"].map(nearestLevel)).toEqual([
    "warn",
    "error",
    "info",
    "debug",
    null,
    null,
  ]);
});
