// Times: ranges of the address, and the one formatter of the application.

import { own } from "./own";

export interface Range {
  from: string;
  to: string;
  /** The zone of days that are given by their names, such as `today`; other times without a zone are in UTC. */
  tz?: string;
}
export interface Resolved {
  from: string;
  to: string;
  fromMs: number;
  toMs: number;
  open: boolean;
}

const UNIT_MS: Record<string, number> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
  month: 2_592_000_000,
  y: 31_536_000_000,
};

export const PRESETS: [from: string, text: string][] = [
  ["5m", "5 minutes"],
  ["15m", "15 minutes"],
  ["1h", "1 hour"],
  ["3h", "3 hours"],
  ["6h", "6 hours"],
  ["12h", "12 hours"],
  ["24h", "24 hours"],
  ["2d", "2 days"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["90d", "90 days"],
  ["@0", "All time"],
];

const DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/** A duration such as `15m`, `-1h`, `2 days ago` or `now-1h`, in milliseconds before now. */
export function durationMs(text: string): number | null {
  const match = /^(?:now\s*)?-?\s*(\d+(?:\.\d+)?)\s*([a-z]+)(?:\s+ago)?$/i.exec(text.trim());
  if (!match) return null;
  const unit = match[2]!.toLowerCase();
  const long: Record<string, string> = {
    sec: "s",
    second: "s",
    min: "m",
    minute: "m",
    hr: "h",
    hour: "h",
    day: "d",
    week: "w",
    months: "month",
    year: "y",
    millisecond: "ms",
  };
  const singular = unit.length > 2 ? unit.replace(/s$/, "") : unit;
  const ms =
    own(UNIT_MS, unit) ??
    own(UNIT_MS, singular) ??
    own(UNIT_MS, own(long, singular) ?? own(long, unit) ?? "");
  return ms === undefined ? null : Number(match[1]) * ms;
}

/** The offset of a zone at an instant, in milliseconds. */
export function offsetMs(ms: number, zone: string): number {
  if (zone === "UTC") return 0;
  if (zone === "local") return -new Date(ms).getTimezoneOffset() * 60_000;
  const parts = Object.fromEntries(
    partsFormat(zone)
      .formatToParts(ms)
      .map(({ type, value }) => [type, value]),
  );
  const { year, month, day, hour, minute, second } = parts as Record<string, string>;
  const shown = Date.UTC(+year!, +month! - 1, +day!, +hour! % 24, +minute!, +second!);
  return shown - Math.floor(ms / 1000) * 1000;
}

const formats = new Map<string, Intl.DateTimeFormat>();
function partsFormat(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
    formats.set(zone, format);
  }
  return format;
}

/** The instant of a local time of a zone; of two instants, the first. */
export function instantOf(localMs: number, zone: string): number {
  const first = localMs - offsetMs(localMs - 86_400_000, zone);
  if (first + offsetMs(first, zone) === localMs) return first;
  return localMs - offsetMs(localMs - offsetMs(localMs, zone), zone);
}

/** True if a text is a day by its name, such as `yesterday 09:00`, or a time of today. */
export const isDayName = (text: string) => DAY.test(text.trim().toLowerCase()) && !/^\d*$/.test(text.trim());

const DAY =
  /^(today|yesterday|sunday|monday|tuesday|wednesday|thursday|friday|saturday)?\s*(?:(\d{1,2})(?::(\d\d)(?::(\d\d(?:\.\d+)?))?)?\s*(am|pm)?)?$/;

/** A time as people write it, and as the page does: relative, absolute in a zone, or Unix time. Null if it is none. */
export function parseTime(text: string, nowMs: number, zone: string): number | null {
  // The page prints offsets with a minus sign of its own.
  const word = text.trim().replace("−", "-");
  const lower = word.toLowerCase();
  if (lower === "" || lower === "now") return nowMs;
  const before = durationMs(lower);
  if (before !== null) return nowMs - before;
  const unix = /^@?(-?\d+)(\.\d+)?$/.exec(word);
  if (unix && (word.startsWith("@") || unix[1]!.length >= 9)) {
    const digits = unix[1]!.length;
    const scale = word.startsWith("@") || digits <= 11 ? 1000 : digits <= 14 ? 1 : digits <= 17 ? 1e-3 : 1e-6;
    return Number(unix[1]! + (unix[2] ?? "")) * scale;
  }
  const day = DAY.exec(lower);
  if (day && (day[1] || day[3] || day[5])) return dayTime(day, nowMs, zone);
  const traditional = /^([a-z]{3}) +(\d\d?)(?: +(\d\d?):(\d\d)(?::(\d\d)(\.\d+)?)?)?$/.exec(lower);
  if (traditional) return traditionalTime(traditional, nowMs, zone);
  const short = /^(\d\d)-(\d\d)(?: (\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?)?$/.exec(word);
  if (short) return yearlessTime(Number(short[1]) - 1, short.slice(2), nowMs, zone);
  const date =
    /^(\d{4})-(\d\d?)-(\d\d?)(?:[T ](\d\d?):(\d\d)(?::(\d\d)(\.\d+)?)?)?\s*(Z|[+-]\d\d:?\d\d)?$/i.exec(word);
  if (!date) return null;
  const [, y, mo, d, h = "0", mi = "0", s = "0", f = "", offset] = date;
  if (+mo! > 12 || +mo! < 1 || +d! > 31 || +d! < 1 || +h > 23 || +mi > 59 || +s > 60) return null;
  const local = Date.UTC(+y!, +mo! - 1, +d!, +h, +mi, +s) + Number(`0${f || ".0"}`) * 1000;
  if (!offset) return instantOf(local, zone);
  if (/z/i.test(offset)) return local;
  const minutes = +offset.slice(1, 3) * 60 + +offset.slice(-2);
  return local - (offset.startsWith("-") ? -1 : 1) * minutes * 60_000;
}

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** A time as syslog writes it, without a year: the last such day, or tomorrow. */
function traditionalTime(match: RegExpExecArray, nowMs: number, zone: string): number | null {
  return yearlessTime(MONTHS.indexOf(match[1]!), match.slice(2), nowMs, zone);
}

function yearlessTime(month: number, rest: string[], nowMs: number, zone: string): number | null {
  const [day, hour = "0", minute = "0", second = "0", fraction = ""] = rest;
  if (month < 0 || month > 11 || +day! < 1 || +day! > 31 || +hour > 23 || +minute > 59 || +second > 60)
    return null;
  const year = new Date(nowMs + offsetMs(nowMs, zone)).getUTCFullYear();
  const part = Number(`0${fraction || ".0"}`) * 1000;
  const of = (y: number) => instantOf(Date.UTC(y, month, +day!, +hour, +minute, +second) + part, zone);
  return of(year) > nowMs + 86_400_000 ? of(year - 1) : of(year);
}

function dayTime(day: RegExpExecArray, nowMs: number, zone: string): number | null {
  let hour = Number(day[2] ?? 0);
  if (day[5]) hour = (hour % 12) + (day[5] === "pm" ? 12 : 0);
  if (hour > 23 || Number(day[3] ?? 0) > 59) return null;
  const localNow = nowMs + offsetMs(nowMs, zone);
  const midnight = Math.floor(localNow / 86_400_000) * 86_400_000;
  let back = day[1] === "yesterday" ? 1 : 0;
  const weekday = DAYS.indexOf(day[1] ?? "");
  if (weekday >= 0) back = (new Date(localNow).getUTCDay() - weekday + 7) % 7;
  const local =
    midnight - back * 86_400_000 + ((hour * 60 + Number(day[3] ?? 0)) * 60 + Number(day[4] ?? 0)) * 1000;
  return instantOf(local, zone);
}

export const isoOf = (ms: number) => new Date(Math.round(ms)).toISOString();

/** Milliseconds of a time of the server, which has nanoseconds. */
export const msOf = (time: string) => Date.parse(time.replace(/(\.\d{3})\d+/, "$1"));

/** The seconds of a time as SQL prints it: in UTC, with or without its zone. */
export const secondsOfSql = (time: string) => msOf(time.replace(/Z?$/, "Z")) / 1000;

/** The next nanosecond. */
export function afterTime(time: string): string {
  const match = /^(.{19})(?:\.(\d{1,9}))?Z$/.exec(time);
  if (!match) return time;
  const nanos = Number((match[2] ?? "").padEnd(9, "0")) + 1;
  if (nanos < 1e9) return `${match[1]}.${String(nanos).padStart(9, "0")}Z`;
  return `${new Date(Date.parse(`${match[1]}Z`) + 1000).toISOString().slice(0, 19)}.000000000Z`;
}

/** The bounds of a range at this moment, so that all requests of a view are of the same range. */
export function resolve(range: Range, nowMs: number): Resolved | null {
  // A time of the address without a zone is in UTC, as for the server: a link means the same everywhere.
  // Without a beginning, a range with an end is all that came before.
  const from = range.from || (range.to ? "@0" : "1h");
  const zoneOf = (text: string) => (isDayName(text) && range.tz ? range.tz : "UTC");
  const fromMs = parseTime(from, nowMs, zoneOf(from));
  const toMs = parseTime(range.to || "now", nowMs, zoneOf(range.to));
  if (fromMs === null || toMs === null || !Number.isFinite(fromMs) || !Number.isFinite(toMs)) return null;
  const exact = (text: string, ms: number) => (/T.*\.\d{4,}Z$/.test(text) ? text : isoOf(ms));
  return { from: exact(from, fromMs), to: exact(range.to, toMs), fromMs, toMs, open: range.to === "" };
}

/** Steps that read well, in milliseconds. */
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000,
  600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000,
  172_800_000, 604_800_000, 2_419_200_000, 7_257_600_000, 31_536_000_000,
];

export function stepMs(spanMs: number, buckets: number): number {
  return STEPS.find((step) => spanMs / step <= buckets) ?? STEPS.at(-1)!;
}

/** Positions and texts of an axis of times: about `most` of them, and two at least. */
export function ticks(low: number, high: number, most: number, zone: string): { at: number; text: string }[] {
  const coarse = STEPS.indexOf(stepMs(high - low, Math.max(2, most)));
  const found = ticksOf(low, high, STEPS[coarse]!, zone);
  return found.length < 2 && coarse > 0 ? ticksOf(low, high, STEPS[coarse - 1]!, zone) : found;
}

function ticksOf(low: number, high: number, step: number, zone: string): { at: number; text: string }[] {
  const offset = offsetMs(low, zone);
  const found: { at: number; text: string }[] = [];
  for (let at = Math.ceil((low + offset) / step) * step - offset; at < high; at += step) {
    const midnight = (at + offset) % 86_400_000 === 0;
    const full = timeText(at, zone, "full");
    const text =
      step >= 86_400_000 || midnight
        ? full.slice(5, 10)
        : step >= 60_000
          ? full.slice(11, 16)
          : step >= 1000
            ? full.slice(11, 19)
            : full.slice(14, 23);
    found.push({ at, text });
  }
  return found;
}

/** Counts by the hour of the day in a zone, of counts by time. */
export function hoursOfDay(counts: { from: string; count: number }[], zone: string): number[] {
  const hours = new Array<number>(24).fill(0);
  for (const { from, count } of counts) {
    const ms = msOf(from);
    if (Number.isFinite(ms)) hours[new Date(ms + offsetMs(ms, zone)).getUTCHours()]! += count;
  }
  return hours;
}

const two = (n: number) => String(n).padStart(2, "0");

/** An offset as text: `+01:00`, or `Z`. */
export function offsetText(ms: number, zone: string): string {
  const offset = Math.round(offsetMs(ms, zone) / 60_000);
  if (offset === 0) return "Z";
  const size = Math.abs(offset);
  return `${offset < 0 ? "−" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

export type Form = "time" | "full" | "minute" | "day" | "iso";

/** The one formatter of times. `full` has all digits of the fraction that the time has, in threes. */
export function timeText(time: string | number, zone: string, form: Form): string {
  const ms = typeof time === "number" ? time : msOf(time);
  if (!Number.isFinite(ms)) return String(time);
  const local = new Date(ms + offsetMs(ms, zone));
  const day = `${local.getUTCFullYear()}-${two(local.getUTCMonth() + 1)}-${two(local.getUTCDate())}`;
  const minute = `${two(local.getUTCHours())}:${two(local.getUTCMinutes())}`;
  if (form === "day") return day;
  if (form === "minute") return `${day} ${minute}`;
  const second = `${minute}:${two(local.getUTCSeconds())}`;
  let fraction =
    typeof time === "string"
      ? (/\.(\d+)/.exec(time)?.[1] ?? "")
      : String(Math.floor(ms) % 1000).padStart(3, "0");
  fraction = fraction.padEnd(3, "0");
  if (form === "time") return `${day.slice(5)} ${second}.${fraction.slice(0, 3)}`;
  fraction = fraction.replace(/^(\d{3}(?:\d{3})??)(?:000)+$/, "$1");
  if (form === "iso") return `${day}T${second}.${fraction}${offsetText(ms, zone).replace("−", "-")}`;
  return `${day} ${second}.${fraction} ${offsetText(ms, zone)}`;
}

export function durationText(ms: number): string {
  const abs = Math.abs(ms);
  const forms: [number, string][] = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
    [1000, "s"],
    [1, "ms"],
  ];
  for (const [size, unit] of forms) {
    if (abs >= size)
      return `${Number((ms / size).toFixed(abs / size < 10 ? 1 : 0)).toLocaleString("en-US")} ${unit}`;
  }
  return `${Math.round(ms)} ms`;
}

export function zoneName(zone: string): string {
  return zone === "local" ? Intl.DateTimeFormat().resolvedOptions().timeZone : zone;
}
