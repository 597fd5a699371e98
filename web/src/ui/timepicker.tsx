// The range of times: presets, absolute bounds, zone, one window back and forth.

import { computed, effect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import {
  PRESETS,
  durationMs,
  durationText,
  isDayName,
  isoOf,
  parseTime,
  resolve,
  timeText,
  zoneName,
} from "../lib/time";
import { EVERY, ask, go, run, state, type State } from "../state/url";
import { histogramRange, range } from "../state/results";
import { T } from "../strings";
import { Button, Menu } from "./parts";

const everyText = (seconds: number) =>
  seconds === 0 ? T.off : seconds < 60 ? `${seconds} s` : `${seconds / 60} min`;

const every = computed(() => state.value.every);
let timer = 0;
effect(() => {
  clearInterval(timer);
  if (every.value)
    timer = window.setInterval(() => {
      // A tail is up to date, and text that is hidden needs to be no newer.
      if (!document.hidden && !state.value.live) run.value += 1;
    }, every.value * 1000);
});

export function rangeLabel(): string {
  const { from, to, tz } = state.value;
  const preset = PRESETS.find(([known]) => known === from);
  if (!to && preset) return preset[0] === "@0" ? preset[1] : T.last(preset[1]);
  const now = Date.now();
  const form = (text: string) => {
    if (text === "@0") return T.beginning;
    const ms = parseTime(text, now, "UTC");
    return /^\d{4}-|^@|^\d{9,}$/.test(text) && ms !== null ? timeText(ms, tz, "minute") : text;
  };
  return `${from ? form(from) : T.beginning} – ${to ? form(to) : T.now}`;
}

/** Moves the range by a part of its length. */
export function shift(parts: number) {
  const found = resolve(state.value, Date.now());
  if (!found) return;
  const span = found.toMs - Math.max(found.fromMs, histogramRange.value?.[0] ?? 0);
  const to = found.toMs + parts * span;
  ask({ from: isoOf(to - span), to: isoOf(to), live: false });
}

/** Makes the range longer around its middle. */
export function widen() {
  const found = resolve(state.value, Date.now());
  if (!found) return;
  const span = found.toMs - found.fromMs;
  const to = Math.min(found.toMs + span / 2, Math.max(Date.now(), found.toMs));
  ask({ from: isoOf(Math.max(0, to - 2 * span)), to: isoOf(to), live: false });
}

const COMMON_ZONES = [
  "UTC",
  "Europe/London",
  "Europe/Berlin",
  "America/New_York",
  "America/Los_Angeles",
  "Asia/Kolkata",
  "Asia/Tokyo",
];

export function ZoneSelect() {
  const { tz } = state.value;
  const all = typeof Intl.supportedValuesOf === "function" ? Intl.supportedValuesOf("timeZone") : [];
  return (
    <select
      id="zone"
      aria-label={T.zone}
      value={tz}
      onChange={(event) => go({ tz: event.currentTarget.value })}
    >
      <option value="local">{T.browserZone(zoneName("local"))}</option>
      {COMMON_ZONES.map((zone) => (
        <option value={zone}>{zone}</option>
      ))}
      {!COMMON_ZONES.includes(tz) && tz !== "local" && <option value={tz}>{tz}</option>}
      <optgroup label={T.allZones}>
        {all
          .filter((zone) => !COMMON_ZONES.includes(zone) && zone !== tz)
          .map((zone) => (
            <option value={zone}>{zone}</option>
          ))}
      </optgroup>
    </select>
  );
}

function Absolute({ choose }: { choose: (range: Partial<State>) => void }) {
  const { tz, from, to } = state.value;
  const shown = range.value;
  const text = (ms: number | undefined) =>
    ms === undefined || ms <= 0
      ? ""
      : timeText(ms, tz, "full")
          .replace(/ [^ ]+$/, "")
          .replace(/\.000$/, "");
  const fixed = (given: string) => /^\d{4}-/.test(given);
  const [low, setLow] = useState(fixed(from) ? text(shown?.fromMs) : from);
  const [high, setHigh] = useState(fixed(to) ? text(shown?.toMs) : to);
  const [wrong, setWrong] = useState("");
  const apply = (event: Event) => {
    event.preventDefault();
    const now = Date.now();
    const lowMs = parseTime(low || "@0", now, tz);
    const highMs = high.trim() ? parseTime(high, now, tz) : now;
    if (lowMs === null || highMs === null) return setWrong(T.timeForms);
    if (lowMs >= highMs) return setWrong(T.timeOrder);
    // A relative time stays relative; others become instants.
    const relative = (text: string) => durationMs(text) !== null || isDayName(text);
    choose({
      from: relative(low) ? low.trim() : low ? isoOf(lowMs) : "@0",
      to: high.trim() === "" || high.trim() === "now" ? "" : relative(high) ? high.trim() : isoOf(highMs),
      live: false,
    });
  };
  return (
    <form class="absolute" onSubmit={apply}>
      <label>
        {T.from}
        <input
          data-first
          value={low}
          onInput={(event) => setLow(event.currentTarget.value)}
          placeholder="2026-11-21 10:00"
        />
      </label>
      <label>
        {T.to}
        <input value={high} onInput={(event) => setHigh(event.currentTarget.value)} placeholder={T.now} />
      </label>
      <p class="dim">{T.timeHelp(zoneName(tz))}</p>
      {wrong && (
        <p class="bad" role="alert">
          {wrong}
        </p>
      )}
      <button type="submit" class="primary">
        {T.apply}
      </button>
    </form>
  );
}

/** The range, and what is done with one that is chosen. */
export function TimePicker({ choose }: { choose: (range: Partial<State>) => void }) {
  const { from, to, tz } = state.value;
  const found = range.value;
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 30_000);
    return () => clearInterval(timer);
  }, []);
  const bounds =
    found && found.fromMs > 0
      ? `${timeText(found.fromMs, tz, "full")} – ${timeText(found.toMs, tz, "full")} (${durationText(found.toMs - found.fromMs)})`
      : found && to
        ? `${T.beginning} – ${timeText(found.toMs, tz, "full")}`
        : T.allTime;
  return (
    <div class="time" role="group" aria-label={T.timeRange}>
      <Button class="step" label={T.earlier} onClick={() => shift(-1)}>
        ‹
      </Button>
      <Menu
        name="time"
        label={rangeLabel()}
        title={`${T.timeRange}: ${rangeLabel()}. ${bounds}`}
        right
        wide
        class="range"
      >
        <div class="time-panel">
          <ul class="presets">
            {PRESETS.map(([value, text]) => (
              <li>
                <button
                  type="button"
                  aria-pressed={from === value && !to}
                  onClick={() => choose({ from: value, to: "" })}
                >
                  {value === "@0" ? text : T.last(text)}
                </button>
              </li>
            ))}
          </ul>
          <div>
            <Absolute choose={choose} />
            <label class="zone">
              {T.zone}
              <ZoneSelect />
            </label>
            <label class="zone">
              {T.refreshEvery}
              <select
                value={every.value}
                onChange={(event) => go({ every: Number(event.currentTarget.value) })}
              >
                {EVERY.map((seconds) => (
                  <option value={seconds}>{everyText(seconds)}</option>
                ))}
              </select>
            </label>
          </div>
        </div>
      </Menu>
      <Button class="step" label={T.later} onClick={() => shift(1)}>
        ›
      </Button>
    </div>
  );
}
