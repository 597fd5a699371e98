import { expect, test } from "vitest";
import { SHOWN_ROWS_MAX, TailBuffer, WAITING_ROWS_MAX } from "../src/lib/tail";

test("rows come newest first, and a pause holds them", () => {
  const tail = new TailBuffer();
  tail.push("1", 0);
  tail.push("2", 0);
  expect(tail.flush()).toBe(2);
  expect(tail.shown).toEqual(["2", "1"]);
  tail.paused = true;
  for (const line of ["3", "4", "5"]) tail.push(line, 0);
  expect(tail.flush()).toBe(0);
  expect(tail.shown).toEqual(["2", "1"]);
  expect(tail.waitingCount).toBe(3);
  tail.paused = false;
  expect(tail.flush()).toBe(3);
  expect(tail.shown).toEqual(["5", "4", "3", "2", "1"]);
  expect(tail.dropped).toBe(0);
});

test("a pause that is too long drops the oldest, and says so", () => {
  const tail = new TailBuffer();
  tail.paused = true;
  for (let i = 0; i < WAITING_ROWS_MAX + 10; i += 1) tail.push(String(i), 0);
  expect(tail.waitingCount).toBe(WAITING_ROWS_MAX);
  expect(tail.dropped).toBe(10);
  tail.paused = false;
  tail.flush();
  expect(tail.shown.length).toBe(WAITING_ROWS_MAX);
  expect(tail.shown[0]).toBe(String(WAITING_ROWS_MAX + 9));
  expect(tail.shown.at(-1)).toBe("10");
});

test("all that a pause kept is shown, and rows that are pushed out are counted", () => {
  const tail = new TailBuffer();
  for (let i = 0; i < SHOWN_ROWS_MAX; i += 1) tail.push("before", 0);
  tail.flush();
  expect(tail.passed).toBe(0);
  tail.paused = true;
  for (let i = 0; i < SHOWN_ROWS_MAX * 2; i += 1) tail.push(String(i), 0);
  tail.paused = false;
  tail.flush();
  expect(tail.shown.length).toBe(SHOWN_ROWS_MAX * 2);
  expect(tail.shown.at(-1)).toBe("0");
  expect(tail.passed).toBe(SHOWN_ROWS_MAX);
  tail.push("after", 0);
  tail.flush();
  expect([tail.shown.length, tail.shown.at(-1), tail.passed]).toEqual([
    SHOWN_ROWS_MAX * 2,
    "1",
    SHOWN_ROWS_MAX + 1,
  ]);
  tail.clear();
  expect(tail.passed).toBe(0);
});

test("the rate is that of the last ten full seconds", () => {
  const tail = new TailBuffer();
  for (let second = 0; second < 10; second += 1)
    for (let i = 0; i < 50; i += 1) tail.push("x", second * 1000 + i);
  expect(tail.rate(10_000)).toBe(50);
  expect(tail.rate(15_000)).toBe(25);
  expect(tail.history(10_000).slice(-10)).toEqual(new Array(10).fill(50));
});
