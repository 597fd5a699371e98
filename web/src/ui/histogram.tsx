// Counts over the whole range, stacked by level. Drag, or the keys, zoom.

import { useEffect, useRef, useState } from "preact/hooks";
import { isAway } from "../api/client";
import type { Bucket } from "../lib/pages";
import { TONES, toneOf, type Tone } from "../lib/levels";
import { durationText, isoOf, msOf, ticks, timeText } from "../lib/time";
import { buckets, bucketsPhase, bucketsProblem, countedFrom, histogramRange, total } from "../state/results";
import { state, zoomIn, zoomOut } from "../state/url";
import { T } from "../strings";
import { Retry, number, shortNumber } from "./parts";

const HEIGHT = 84;
const AXIS = 16;
const LEFT = 44;
/** Room of a time below the axis. */
const TICK_PX = 90;

interface Stack {
  from: number;
  to: number;
  count: number;
  tones: Record<Tone, number>;
  levels: [string, number][];
}

function stackOf({ from, to, count, by }: Bucket): Stack {
  const tones: Record<Tone, number> = { error: 0, warn: 0, info: 0, debug: 0, none: 0 };
  let known = 0;
  const levels = Object.entries(by ?? {}).filter(([, rows]) => rows > 0);
  for (const [level, rows] of levels) {
    tones[toneOf(level)] += rows;
    known += rows;
  }
  tones.none += count - known;
  if (count > known) levels.push([T.noLevel, count - known]);
  return { from: msOf(from), to: msOf(to), count, tones, levels };
}

function niceMax(value: number): number {
  if (value <= 4) return 4;
  const size = 10 ** Math.floor(Math.log10(value));
  return (
    [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10]
      .map((n) => n * size)
      .find((n) => n >= value && Number.isInteger(n / 2)) ?? 10 * size
  );
}

export function Histogram() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const [hover, setHover] = useState<number | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const [anchor, setAnchor] = useState<number | null>(null);
  const dragged = useRef(false);
  const clicked = useRef(false);
  const { tz } = state.value;

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(200, entry!.contentRect.width)));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  const stacks = buckets.value.map(stackOf);
  const [low, high] = histogramRange.value ?? [stacks[0]?.from ?? 0, stacks.at(-1)?.to ?? 1];
  const start = Math.min(low, stacks[0]?.from ?? low);
  const end = Math.max(high, stacks.at(-1)?.to ?? high);
  const plot = width - LEFT - 4;
  const x = (ms: number) => LEFT + ((ms - start) / Math.max(1, end - start)) * plot;
  const ms = (px: number) => start + (Math.min(Math.max(px - LEFT, 0), plot) / plot) * (end - start);
  const most = niceMax(Math.max(0, ...stacks.map(({ count }) => count)));
  const y = (count: number) => (count / most) * (HEIGHT - AXIS - 6);
  const counted = countedFrom.value ?? start;
  const under = (at: number) => stacks.findIndex(({ from, to }) => from <= at && at < to);

  const zoom = (a: number, b: number) => {
    const [from, to] = a < b ? [a, b] : [b, a];
    if (to - from < 1) return;
    zoomIn(isoOf(from), isoOf(to));
  };

  const px = (event: MouseEvent) => event.clientX - box.current!.getBoundingClientRect().left;
  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0 || !stacks.length) return;
    box.current!.setPointerCapture(event.pointerId);
    dragged.current = false;
    setDrag([px(event), px(event)]);
  };
  const onPointerMove = (event: PointerEvent) => {
    setHover(px(event));
    if (drag) setDrag([drag[0], px(event)]);
  };
  const onPointerUp = () => {
    if (!drag) return;
    setDrag(null);
    dragged.current = Math.abs(drag[1] - drag[0]) > 4;
    if (dragged.current) zoom(ms(drag[0]), ms(drag[1]));
  };
  // A click zooms to the bar. The first click of a double click did so, too, and is taken back with it.
  const onClick = (event: MouseEvent) => {
    if (dragged.current || event.detail > 1) return;
    const bar = stacks[under(ms(px(event)))];
    clicked.current = bar !== undefined && stacks.length > 1;
    if (clicked.current) zoom(bar!.from, bar!.to);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!stacks.length) return;
    const at = cursor ?? stacks.length - 1;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      event.preventDefault();
      const next = Math.min(
        stacks.length - 1,
        Math.max(0, at + (event.key === "ArrowLeft" ? -1 : cursor === null ? 0 : 1)),
      );
      if (event.shiftKey && anchor === null) setAnchor(at);
      if (!event.shiftKey) setAnchor(null);
      setCursor(next);
    } else if (event.key === "Enter" && cursor !== null) {
      event.preventDefault();
      event.stopPropagation();
      const other = anchor ?? cursor;
      const [a, b] = [Math.min(cursor, other), Math.max(cursor, other)];
      setCursor(null);
      setAnchor(null);
      zoom(stacks[a]!.from, stacks[b]!.to);
    } else if (event.key === "Backspace") {
      event.preventDefault();
      zoomOut();
    } else if (event.key === "Escape" && (cursor !== null || drag)) {
      event.stopPropagation();
      setCursor(null);
      setDrag(null);
    }
  };

  const pointed = cursor ?? (hover === null || drag ? null : under(ms(hover)));
  const shown = pointed === null || pointed < 0 ? null : stacks[pointed];
  const chosen: [number, number] | null = drag
    ? [ms(Math.min(...drag)), ms(Math.max(...drag))]
    : cursor !== null
      ? [
          stacks[Math.min(cursor, anchor ?? cursor)]?.from ?? 0,
          stacks[Math.max(cursor, anchor ?? cursor)]?.to ?? 0,
        ]
      : null;
  const loading = bucketsPhase.value === "loading";
  const sum = total.value ?? stacks.reduce((rows, { count }) => rows + count, 0);
  // The first and the last bar may be shorter.
  const step = Math.max(0, ...stacks.map(({ from, to }) => to - from));

  return (
    <section class="histogram" aria-label={T.histogram}>
      <div
        class="plot"
        ref={box}
        tabIndex={0}
        role="application"
        aria-roledescription={T.histogram}
        aria-label={T.histogramLabel(number(sum))}
        aria-describedby="histogram-tip"
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerLeave={() => setHover(null)}
        onClick={onClick}
        onDblClick={() => {
          if (!dragged.current) zoomOut(clicked.current);
        }}
        onKeyDown={onKeyDown}
        onBlur={() => {
          setCursor(null);
          setAnchor(null);
        }}
      >
        <svg width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
          <defs>
            <pattern
              id="unread"
              width="6"
              height="6"
              patternUnits="userSpaceOnUse"
              patternTransform="rotate(45)"
            >
              <rect width="2" height="6" />
            </pattern>
          </defs>
          {[0, 0.5, 1].map((part) => (
            <g class="axis">
              <line
                x1={LEFT}
                x2={width - 4}
                y1={HEIGHT - AXIS - y(most * part)}
                y2={HEIGHT - AXIS - y(most * part)}
              />
              {part > 0 && (
                <text x={LEFT - 6} y={HEIGHT - AXIS - y(most * part) + 4} text-anchor="end">
                  {shortNumber(most * part)}
                </text>
              )}
            </g>
          ))}
          {loading && counted > start && (
            <rect
              class="unread"
              x={LEFT}
              y={2}
              width={Math.max(0, x(counted) - LEFT)}
              height={HEIGHT - AXIS - 2}
            />
          )}
          {stacks.map((stack, index) => {
            const [left, right] = [x(stack.from), x(stack.to)];
            let foot = HEIGHT - AXIS;
            return (
              <g class={`stack ${pointed === index ? "pointed" : ""}`} data-count={stack.count}>
                {TONES.map((tone) => {
                  const size = stack.tones[tone] ? Math.max(1, y(stack.tones[tone])) : 0;
                  foot -= size;
                  return size ? (
                    <rect
                      class={`tone-${tone}`}
                      x={left + 0.5}
                      width={Math.max(0.8, right - left - 1)}
                      y={foot}
                      height={size}
                    />
                  ) : null;
                })}
              </g>
            );
          })}
          {(stacks.length > 0 || histogramRange.value !== null) &&
            ticks(start, end, Math.floor(plot / TICK_PX), tz).map(({ at, text }) => (
              <text class="tick" x={Math.min(x(at), width - 18)} y={HEIGHT - 3} text-anchor="middle">
                {text}
              </text>
            ))}
          {chosen && (
            <rect
              class="chosen"
              x={x(chosen[0])}
              width={Math.max(1, x(chosen[1]) - x(chosen[0]))}
              y={0}
              height={HEIGHT - AXIS}
            />
          )}
        </svg>
        {loading && counted > start && <span class="unread-note">{T.notCounted}</span>}
      </div>
      <div class="histogram-foot">
        <span id="histogram-tip" aria-live={cursor !== null ? "polite" : "off"}>
          {bucketsProblem.value && !isAway(bucketsProblem.value) ? (
            <span class="bad">
              {T.histogramFailed(bucketsProblem.value.message)} <Retry link />
            </span>
          ) : drag ? (
            `${timeText(chosen![0], tz, "full")} – ${timeText(chosen![1], tz, "full")} · ${durationText(chosen![1] - chosen![0])}`
          ) : shown ? (
            <>
              {timeText(shown.from, tz, "minute")}
              {timeText(shown.from, tz, "full").slice(16, 19)} –{" "}
              {timeText(shown.to, tz, "full").slice(11, 19)} · <b>{number(shown.count)}</b>
              {shown.levels.map(([level, rows]) => (
                <>
                  {" "}
                  ·{" "}
                  <span class={`tone-${toneOf(level)}`}>
                    {level} {number(rows)}
                  </span>
                </>
              ))}
            </>
          ) : stacks.length ? (
            <span class="dim">
              {T.perBar(durationText(step))} · {T.zoomHint}
            </span>
          ) : null}
        </span>
      </div>
    </section>
  );
}
