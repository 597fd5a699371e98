import { describe, expect, test } from "vitest";
import {
  afterTime,
  durationMs,
  hoursOfDay,
  instantOf,
  isDayName,
  isoOf,
  parseTime,
  resolve,
  stepMs,
  ticks,
  timeText,
} from "../src/lib/time";

const NOW = Date.UTC(2026, 10, 27, 13, 30, 0);
const iso = (text: string, zone = "UTC") => {
  const ms = parseTime(text, NOW, zone);
  return ms === null ? null : isoOf(ms);
};

describe("times as people write them", () => {
  test.each([
    ["1h", "2026-11-27T12:30:00.000Z"],
    ["-1h", "2026-11-27T12:30:00.000Z"],
    ["now-1h", "2026-11-27T12:30:00.000Z"],
    ["1h ago", "2026-11-27T12:30:00.000Z"],
    ["2 days ago", "2026-11-25T13:30:00.000Z"],
    ["90 minutes ago", "2026-11-27T12:00:00.000Z"],
    ["today", "2026-11-27T00:00:00.000Z"],
    ["yesterday", "2026-11-26T00:00:00.000Z"],
    ["yesterday 09:00", "2026-11-26T09:00:00.000Z"],
    ["monday", "2026-11-23T00:00:00.000Z"],
    ["2pm", "2026-11-27T14:00:00.000Z"],
    ["12am", "2026-11-27T00:00:00.000Z"],
    ["09:15", "2026-11-27T09:15:00.000Z"],
    ["2026-11-21", "2026-11-21T00:00:00.000Z"],
    ["2026-11-21 10:00", "2026-11-21T10:00:00.000Z"],
    ["2026-11-21T10:00:00.5+01:00", "2026-11-21T09:00:00.500Z"],
    ["2026-11-21T10:00:00Z", "2026-11-21T10:00:00.000Z"],
    ["@1763719200", "2025-11-21T10:00:00.000Z"],
    ["@1763719200.5", "2025-11-21T10:00:00.500Z"],
    ["1763719200000", "2025-11-21T10:00:00.000Z"],
    ["now", "2026-11-27T13:30:00.000Z"],
  ])("%s", (text, wanted) => expect(iso(text)).toBe(wanted));
  // The page prints these: rows of the list, bars, records, axes.
  test.each([
    ["11-30 15:40:00.500", "2025-11-30T15:40:00.500Z"],
    ["11-27 09:15:07.026", "2026-11-27T09:15:07.026Z"],
    ["11-27 09:15:07", "2026-11-27T09:15:07.000Z"],
    ["11-27", "2026-11-27T00:00:00.000Z"],
    ["09:15:07.026", "2026-11-27T09:15:07.026Z"],
    ["2026-11-21 10:00:00.000 +01:00", "2026-11-21T09:00:00.000Z"],
    ["2026-11-21 05:00:00.123456789 −05:00", "2026-11-21T10:00:00.123Z"],
    ["2026-11-21 10:00:00.000 Z", "2026-11-21T10:00:00.000Z"],
  ])("the page's own %s", (text, wanted) => expect(iso(text)).toBe(wanted));
  test("every form that the page prints is read in its zone", () => {
    const ms = NOW - 3_600_000;
    for (const zone of ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
      for (const form of ["time", "full", "iso"] as const)
        expect(parseTime(timeText(ms, zone, form), NOW, zone)).toBe(ms);
  });
  test("days by their names are those of the zone of the page", () => {
    const today = (tz?: string) => resolve({ from: "today", to: "", tz }, NOW)!.from;
    expect(today()).toBe("2026-11-27T00:00:00.000Z");
    expect(today("Europe/Berlin")).toBe("2026-11-26T23:00:00.000Z");
    // Other times without a zone mean the same in every zone.
    expect(resolve({ from: "2026-11-21 10:00", to: "", tz: "Europe/Berlin" }, NOW)!.from).toBe(
      "2026-11-21T10:00:00.000Z",
    );
    expect(["today", "yesterday 09:00", "monday", "2pm", "09:15"].filter(isDayName)).toHaveLength(5);
    expect(["", "15m", "now", "2026-11-21", "@1763719200", "1763719200000", "9"].filter(isDayName)).toEqual(
      [],
    );
  });
  test.each(["soon", "25:00", "2026-13-01", "1 parsec", "2026-11-41", "::", "Nov", "13-01", "11-41 10:00"])(
    "%s is none",
    (text) => expect(iso(text)).toBe(null),
  );
  test("in zones, with the days on which clocks change", () => {
    expect(iso("2026-11-21 10:00", "Europe/Berlin")).toBe("2026-11-21T09:00:00.000Z");
    expect(iso("2026-07-21 10:00", "Europe/Berlin")).toBe("2026-07-21T08:00:00.000Z");
    expect(iso("2026-11-21 10:00", "Asia/Kathmandu")).toBe("2026-11-21T04:15:00.000Z");
    // 02:30 is there twice: the first counts.
    expect(iso("2026-10-25 02:30", "Europe/Berlin")).toBe("2026-10-25T00:30:00.000Z");
    expect(iso("2026-10-25 03:30", "Europe/Berlin")).toBe("2026-10-25T02:30:00.000Z");
    expect(iso("today", "America/New_York")).toBe("2026-11-27T05:00:00.000Z");
    expect(instantOf(Date.UTC(2026, 2, 29, 12), "Europe/Berlin")).toBe(Date.UTC(2026, 2, 29, 10));
  });
});

test("durations", () => {
  expect(durationMs("15m")).toBe(900_000);
  expect(durationMs("1 week")).toBe(604_800_000);
  expect(durationMs("x")).toBe(null);
});

test("what is shown can be written again", () => {
  for (const zone of ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"]) {
    const time = "2026-11-27T10:02:11.482000000Z";
    expect(isoOf(parseTime(timeText(time, zone, "iso"), NOW, "UTC")!)).toBe("2026-11-27T10:02:11.482Z");
  }
});

test("all digits of a fraction that are there, in threes", () => {
  expect(timeText("2026-11-27T10:02:11.482000000Z", "UTC", "full")).toBe("2026-11-27 10:02:11.482 Z");
  expect(timeText("2026-11-27T10:02:11.482100000Z", "UTC", "full")).toBe("2026-11-27 10:02:11.482100 Z");
  expect(timeText("2026-11-27T10:02:11.000000001Z", "UTC", "full")).toBe("2026-11-27 10:02:11.000000001 Z");
  expect(timeText("2026-11-27T10:02:11.000000001Z", "Asia/Kathmandu", "full")).toBe(
    "2026-11-27 15:47:11.000000001 +05:45",
  );
});

test("a range is fixed once a run", () => {
  expect(resolve({ from: "1h", to: "" }, NOW)).toMatchObject({
    from: "2026-11-27T12:30:00.000Z",
    to: "2026-11-27T13:30:00.000Z",
    open: true,
  });
  expect(resolve({ from: "@0", to: "" }, NOW)?.fromMs).toBe(0);
  expect(resolve({ from: "nonsense", to: "" }, NOW)).toBe(null);
  // Without a beginning, a range with an end is all that came before.
  expect(resolve({ from: "", to: "2026-11-26T12:00:00Z" }, NOW)).toMatchObject({
    from: "1970-01-01T00:00:00.000Z",
    fromMs: 0,
    to: "2026-11-26T12:00:00.000Z",
  });
  expect(resolve({ from: "", to: "" }, NOW)?.from).toBe("2026-11-27T12:30:00.000Z");
  expect(resolve({ from: "5 constructor", to: "" }, NOW)).toBe(null);
  // Nanoseconds of an address stay.
  expect(resolve({ from: "2026-11-27T12:30:00.000000001Z", to: "" }, NOW)?.from).toBe(
    "2026-11-27T12:30:00.000000001Z",
  );
});

test("times as syslog and commands write them", () => {
  const iso = (text: string, zone = "UTC") => {
    const ms = parseTime(text, NOW, zone);
    return ms === null ? null : isoOf(ms);
  };
  expect(iso("Nov 26 22:00:00")).toBe("2026-11-26T22:00:00.000Z");
  expect(iso("nov  6 22:00:00.25")).toBe("2026-11-06T22:00:00.250Z");
  expect(iso("Nov 26 22:00", "Europe/Berlin")).toBe("2026-11-26T21:00:00.000Z");
  expect(iso("Dec 31")).toBe("2025-12-31T00:00:00.000Z");
  expect(iso("Nov 28 00:00:00")).toBe("2026-11-28T00:00:00.000Z");
  for (const text of ["Nox 26", "Nov 32", "Nov 0", "Nov 26 25:00"]) expect(iso(text)).toBe(null);
});

test("the next nanosecond", () => {
  expect(afterTime("2026-11-27T12:30:00.000000009Z")).toBe("2026-11-27T12:30:00.000000010Z");
  expect(afterTime("2026-11-27T12:30:00Z")).toBe("2026-11-27T12:30:00.000000001Z");
  expect(afterTime("2026-12-31T23:59:59.999999999Z")).toBe("2027-01-01T00:00:00.000000000Z");
});

test("steps read well", () => {
  expect(stepMs(3_600_000, 90)).toBe(60_000);
  expect(stepMs(86_400_000, 90)).toBe(1_800_000);
  expect(stepMs(1000, 90)).toBe(20);
});

test("an axis has two times or more, also where it is short", () => {
  const day = 86_400_000;
  for (const span of [day, day + 60_000, 1.5 * day, 3_600_000, 3_660_000, 7.1 * day, 30 * day, 400 * day])
    for (const most of [1, 2, 3, 9]) {
      const found = ticks(NOW - span, NOW, most, "Europe/Berlin");
      expect(found.length, `${span} ${most}`).toBeGreaterThanOrEqual(2);
      expect(found.length, `${span} ${most}`).toBeLessThanOrEqual(2 * Math.max(3, most));
    }
  expect(ticks(NOW - day - 60_000, NOW, 3, "UTC").map(({ text }) => text)).toEqual(
    ["12:00", "11-27", "12:00"].slice(-2),
  );
});

test("hours of the day are those of the zone", () => {
  const counts = [
    { from: "2026-03-29T00:30:00Z", count: 1 },
    { from: "2026-03-29T01:30:00.000000001Z", count: 2 },
    { from: "2026-03-30T01:00:00Z", count: 4 },
    { from: "", count: 8 },
  ];
  const filled = (zone: string) =>
    hoursOfDay(counts, zone).flatMap((count, hour) => (count ? [[hour, count]] : []));
  expect(filled("UTC")).toEqual([
    [0, 1],
    [1, 6],
  ]);
  // Clocks go forward at 01:00 UTC.
  expect(filled("Europe/Berlin")).toEqual([
    [1, 1],
    [3, 6],
  ]);
  expect(filled("Asia/Kathmandu")).toEqual([
    [6, 5],
    [7, 2],
  ]);
});
