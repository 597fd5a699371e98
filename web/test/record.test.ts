import { describe, expect, test } from "vitest";
import {
  COLUMNS,
  FIELDS_MAX,
  VALUE_CHARS_MAX,
  columnField,
  columnOf,
  fieldOfColumn,
  parseRow,
} from "../src/lib/record";
import { levelOf } from "../src/lib/levels";
import { textParts, invisibleIn, markParts, markRange } from "../src/lib/paint";
import { Offsets } from "../src/lib/offsets";

describe("rows", () => {
  test("numbers stay as they were sent", () => {
    const row = parseRow(
      '{"_time":"2026-11-27T10:00:00.000000000Z","_id":"A","big":18446744073709551615,"one":1.0,"e":1e400,"n":-5,"s":"1.0"}',
    );
    expect(row.fields.map(({ text }) => text)).toEqual(["18446744073709551615", "1.0", "1e400", "-5", "1.0"]);
    expect(row.fields.map(({ kind }) => kind)).toEqual(["number", "number", "number", "number", "text"]);
  });
  test("long values and many fields are clipped, and that is known", () => {
    const row = parseRow(
      JSON.stringify({
        _time: "t",
        _id: "i",
        _msg: "x".repeat(100_000),
        ...Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`f${i}`, i])),
      }),
    );
    expect(row.message?.length).toBe(VALUE_CHARS_MAX);
    expect(row.fields.length).toBe(FIELDS_MAX);
    expect(row.fieldsOmitted).toBe(2000 - FIELDS_MAX);
    expect(row.clippedBytes).toBeGreaterThan(100_000);
  });
  test("the server says what it has cut, and only the server", () => {
    const row = parseRow('{"_time":"t","_id":"i","_msg":"ab","a":"xy","_clipped":{"_msg":900,"a":1200000}}');
    expect(row.message).toBe("ab");
    expect(row.fields).toEqual([{ name: "a", text: "xy", kind: "text", clipped: 1_200_000 }]);
    expect(row.clippedBytes).toBeGreaterThan(1_200_900);
    expect(parseRow('{"_time":"t","_id":"i","_clipped":"no"}').clippedBytes).toBe(undefined);
  });
  test("levels and columns of senders", () => {
    expect(parseRow('{"severity":"ERR"}').level).toBe("error");
    expect(parseRow('{"PRIORITY":"4"}').level).toBe("warn");
    expect(parseRow('{"level":30}').level).toBe("info");
    expect(parseRow('{"priority":"high","level":"weird"}').level).toBe(undefined);
    expect(columnField(parseRow('{"_HOSTNAME":"a","SYSLOG_IDENTIFIER":"sshd"}'), "app")?.text).toBe("sshd");
    expect(levelOf("level", "INFO+2")).toBe("info");
    expect(levelOf("severity_number", "17")).toBe("error");
    expect(levelOf("LogLevel", "3")).toBe("warn");
  });
});

describe("columns", () => {
  test("the column of a field is another one than the column of its name", () => {
    const row = parseRow('{"host":"shop.example.com","hostname":"edge-2","app":"web","level":"weird"}');
    expect(columnField(row, "host")?.text).toBe("edge-2");
    expect(columnField(row, columnOf("host"))?.text).toBe("shop.example.com");
    expect(columnField(row, columnOf("level"))?.text).toBe("weird");
    expect(columnField(row, columnOf("hostname"))?.text).toBe("edge-2");
  });
  test("any field has one", () => {
    const names = [...COLUMNS, "status", "field:host", "field:field:host", "constructor", "a,b %"];
    const columns = names.map(columnOf);
    expect(new Set(columns).size).toBe(names.length);
    expect(columns.filter((column) => COLUMNS.includes(column))).toEqual([]);
    expect(columns.map(fieldOfColumn)).toEqual(names);
  });
  test("names of a prototype are only names", () => {
    const row = parseRow('{"constructor":"a","__proto__":"b","toString":"c"}');
    for (const [name, text] of [
      ["constructor", "a"],
      ["__proto__", "b"],
      ["toString", "c"],
      ["valueOf", undefined],
      ["hasOwnProperty", undefined],
    ])
      expect(columnField(row, name!)?.text).toBe(text);
  });
});

test("characters without a shape have a name", () => {
  const texts = (text: string) => textParts(text).map(({ text, tone }) => (tone ? [text, tone] : text));
  expect(texts("plain \t 日本 שלום 👨‍👩‍👧 é\r\nnext")).toEqual(["plain \t 日本 שלום 👨‍👩‍👧 é\r\nnext"]);
  expect(texts("RTL \u202eevil\u202c text")).toEqual([
    "RTL ",
    ["U+202E", "control"],
    "evil",
    ["U+202C", "control"],
    " text",
  ]);
  expect(texts("a\0b\x07c\x9bd")).toEqual([
    "a",
    ["NUL", "control"],
    "b",
    ["BEL", "control"],
    "c",
    ["U+009B", "control"],
    "d",
  ]);
  // A link and a title are no text; without an end nothing is left out.
  expect(texts("\x1b]8;;http://evil\x07link\x1b]8;;\x1b\\ \x1b]0;title\x07end").join("")).toBe("link end");
  expect(texts("\x1b]8;;http://evil")).toEqual([["ESC", "control"], "]8;;http://evil"]);
  expect(texts("\x1b[31mred\u202e\x1b[0m")).toEqual([
    ["red", "red"],
    ["U+202E", "control"],
  ]);
  // A text of nothing else makes no thousands of elements.
  const parts = textParts("\0".repeat(100_000));
  expect(parts.length).toBeLessThan(1100);
  expect(parts.some(({ text }) => text.includes("\0"))).toBe(false);
  expect(markParts([{ text: "NUL", tone: "control" }], [{ text: "NUL", fold: false }])[0]!.mark).toBe(
    undefined,
  );
});

test("colours of terminals are not text", () => {
  expect(textParts("a \x1b[31mred\x1b[0m b").map(({ text, tone }) => [text, tone])).toEqual([
    ["a ", undefined],
    ["red", "red"],
    [" b", undefined],
  ]);
  expect(
    markParts([{ text: "one two one" }], [{ text: "one", fold: false }]).filter(({ mark }) => mark).length,
  ).toBe(2);
  expect(markParts([{ text: "One" }], [{ text: "one", fold: true }])).toEqual([{ text: "One", mark: true }]);
});

test("the place of an error is cut out of tokens", () => {
  expect(
    markRange([{ text: "status" }, { text: "==" }, { text: "500" }], 6, 8).filter(({ mark }) => mark),
  ).toEqual([{ text: "==", mark: true }]);
  expect(markRange([{ text: "abc" }], 3, 4).at(-1)).toEqual({ text: " ", mark: true });
  expect(invisibleIn("a\u200bb\u00a0")).toEqual([
    { code: "U+200B", at: 1 },
    { code: "U+00A0", at: 3 },
  ]);
});

test("offsets of rows of different heights", () => {
  const offsets = new Offsets(20, 1_000_000);
  expect(offsets.total).toBe(20_000_000);
  offsets.setHeight(5, 120);
  offsets.setHeight(500_000, 220);
  expect(offsets.offsetOf(6)).toBe(220);
  expect(offsets.total).toBe(20_000_300);
  for (const index of [0, 5, 6, 499_999, 500_000, 500_001, 999_999])
    expect(offsets.indexAt(offsets.offsetOf(index))).toBe(index);
  offsets.setHeight(5, 20);
  expect(offsets.offsetOf(6)).toBe(120);
  offsets.shift(10);
  expect(offsets.heightOf(500_010)).toBe(220);
});
