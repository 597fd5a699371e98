import { expect, test } from "vitest";
import { binsOf, isLog } from "../src/lib/numbers";
import { isComparable } from "../src/lib/compare";

test("numbers are counted between their ends, which belong to it", () => {
  const points = [0, 1, 5, 9, 10].map((value) => ({ value, count: value + 1 }));
  expect(binsOf(points, 0, 10, false, 2)).toEqual([3, 27]);
  expect(binsOf([{ value: 7, count: 3 }], 7, 7, false, 4)).toEqual([3, 0, 0, 0]);
  const bins = binsOf(
    [0, 9, 99, 999].map((value) => ({ value, count: 1 })),
    0,
    999,
    true,
    3,
  );
  expect(bins).toEqual([1, 1, 2]);
});

test("sizes and durations spread over powers of ten", () => {
  expect(isLog(0, 60_000, 8000)).toBe(false);
  expect(isLog(0, 60_000, 12)).toBe(true);
  expect(isLog(-1, 60_000, 12)).toBe(false);
});

test("a handful of records is nothing to compare with", () => {
  expect(isComparable(0, 100)).toBe(false);
  expect(isComparable(35, 218_000)).toBe(false);
  expect(isComparable(35, 40)).toBe(true);
  expect(isComparable(2000, 500_000)).toBe(false);
  expect(isComparable(2000, 500_000, true)).toBe(true);
  expect(isComparable(35, 218_000, true)).toBe(false);
});
