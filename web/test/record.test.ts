import { describe, expect, test } from "vitest";
import { FIELDS_MAX, VALUE_CHARS_MAX, columnField, parseRow } from "../src/lib/record";
import { levelOf } from "../src/lib/levels";
import { ansiParts, invisibleIn, markParts, markRange } from "../src/lib/paint";
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

test("colours of terminals are not text", () => {
  expect(ansiParts("a \x1b[31mred\x1b[0m b").map(({ text, tone }) => [text, tone])).toEqual([
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
