// Numbers of LogQL as a chart with a table; results of SQL as a table.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { labelsText, range, type Series, type Table } from "../state/results";
import { textParts } from "../lib/paint";
import { own } from "../lib/own";
import { offsetMs, timeText, isoOf, type Resolved } from "../lib/time";
import { ask, state } from "../state/url";
import { T } from "../strings";
import { Parts, number, shortNumber } from "./parts";

/** Series that are drawn, and rows of a table on the screen. */
const SERIES_DRAWN_MAX = 20;
const ROWS_DRAWN = 200;
const COLOURS = [
  "#2f7ebc",
  "#d9822b",
  "#3a9d5d",
  "#b3539c",
  "#7b6cc7",
  "#c24a4a",
  "#2aa1a1",
  "#8a8d2f",
  "#7a5c46",
  "#6b7a8f",
];

const LIMIT_COLOUR = "#c24a4a";

/** Series on one axis of times. Where a series of regular points has none, the axis has a time without a value. */
export function aligned(list: Series[], regular = false): uPlot.AlignedData {
  const known = [...new Set(list.flatMap(({ points }) => points.map(([at]) => at)))].sort((a, b) => a - b);
  const step = Math.min(...known.slice(1).map((at, index) => at - known[index]!));
  const times = regular
    ? known.flatMap((at, index) => (known[index + 1]! - at > step * 1.5 ? [at, at + step] : [at]))
    : known;
  const place = new Map(times.map((at, index) => [at, index]));
  const columns = list.map(({ points }) => {
    const values = new Array<number | null>(times.length).fill(null);
    for (const [at, value] of points) values[place.get(at)!] = Number.isFinite(value) ? value : null;
    return values;
  });
  return [times, ...columns];
}

export function Chart({
  list,
  zoom = true,
  height = 240,
  format = shortNumber,
  area,
  span,
  quiet,
  limit,
}: {
  list: Series[];
  /** The range of a query with points at regular times; the axis is this range. */
  span?: Resolved | null;
  zoom?: boolean;
  height?: number;
  format?: (value: number) => string;
  area?: boolean;
  /** Says no value while none is pointed at: the last one is of a part of time that is not over. */
  quiet?: boolean;
  /** A value that is marked by a line across. */
  limit?: number;
}) {
  const box = useRef<HTMLDivElement>(null);
  const { tz } = state.value;
  // The range may already be that of the next answer.
  const axisSpan = useMemo(() => span, [list]);
  useEffect(() => {
    const element = box.current!;
    const style = getComputedStyle(element);
    const [ink, line] = [
      style.getPropertyValue("--dim-now") || style.color,
      style.getPropertyValue("--line-now") || style.color,
    ];
    const drawn = list.slice(0, SERIES_DRAWN_MAX);
    const axis = {
      stroke: ink,
      grid: { stroke: line, width: 1 },
      ticks: { stroke: line, width: 1 },
      font: "11px system-ui, sans-serif",
    };
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height,
        legend: { show: false },
        cursor: { drag: { x: zoom, y: false, setScale: false }, points: { size: 6 } },
        scales: {
          x: {
            time: true,
            ...(axisSpan && axisSpan.fromMs > 0
              ? { range: [axisSpan.fromMs / 1000, axisSpan.toMs / 1000] }
              : {}),
          },
          // The line is within the axis, also if no value comes near it.
          ...(limit !== undefined && Number.isFinite(limit)
            ? {
                y: {
                  range: (_: uPlot, low: number | null, high: number | null) =>
                    uPlot.rangeNum(Math.min(low ?? limit, limit), Math.max(high ?? limit, limit), 0.1, true),
                },
              }
            : {}),
        },
        axes: [
          { ...axis, size: 30, values: (_, splits) => splits.map((at) => axisTime(at * 1000, splits, tz)) },
          { ...axis, size: 56, values: (_, splits) => splits.map((value) => format(value)) },
        ],
        series: [
          {},
          ...drawn.map(({ name }, index) => ({
            label: name,
            stroke: COLOURS[index % COLOURS.length]!,
            width: 1.5,
            spanGaps: false,
            ...(area ? { fill: `${COLOURS[index % COLOURS.length]}33` } : {}),
            points: { show: drawn[0]!.points.length < 3 },
          })),
        ],
        hooks: {
          setSelect: [
            (made) => {
              const { left, width } = made.select;
              if (!zoom || width < 4) return;
              const [from, to] = [made.posToVal(left, "x"), made.posToVal(left + width, "x")];
              ask({ from: isoOf(from * 1000), to: isoOf(to * 1000) });
            },
          ],
          draw: [
            (made) => {
              if (limit === undefined || !Number.isFinite(limit)) return;
              const [y, { left, width, top, height }] = [made.valToPos(limit, "y", true), made.bbox];
              if (y < top || y > top + height) return;
              made.ctx.save();
              made.ctx.strokeStyle = LIMIT_COLOUR;
              made.ctx.lineWidth = devicePixelRatio;
              made.ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
              made.ctx.beginPath();
              made.ctx.moveTo(left, y);
              made.ctx.lineTo(left + width, y);
              made.ctx.stroke();
              made.ctx.restore();
            },
          ],
          setCursor: [(made) => setPoint(made.cursor.idx ?? null)],
        },
      },
      aligned(drawn, Boolean(axisSpan)),
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [list, tz, height, limit]);
  const [point, setPoint] = useState<number | null>(null);
  const data = list.length ? aligned(list.slice(0, SERIES_DRAWN_MAX), Boolean(axisSpan)) : [[]];
  const valueText = (value: number | null | undefined) =>
    value === null || value === undefined ? "–" : format(value);
  const at = point === null ? null : data[0]?.[point];
  return (
    <figure class="chart">
      <div class="uplot-box" ref={box} role="img" aria-label={T.chartLabel(list.length)} />
      <figcaption>
        {at !== null && at !== undefined && <time>{timeText(Number(at) * 1000, tz, "full")}</time>}
        <ul class="legend">
          {list.slice(0, SERIES_DRAWN_MAX).map(({ name, points }, index) => (
            <li>
              <svg width="10" height="10" aria-hidden="true">
                <rect width="10" height="10" rx="2" fill={COLOURS[index % COLOURS.length]} />
              </svg>
              <span>{name}</span>{" "}
              <b>
                {point !== null
                  ? valueText(data[index + 1]?.[point])
                  : quiet
                    ? ""
                    : valueText(points.at(-1)?.[1])}
              </b>
            </li>
          ))}
          {limit !== undefined && Number.isFinite(limit) && (
            <li>
              <svg width="10" height="10" aria-hidden="true">
                <rect y="4" width="10" height="2" fill={LIMIT_COLOUR} />
              </svg>
              <span>{T.alerts.limit}</span> <b>{format(limit)}</b>
            </li>
          )}
        </ul>
      </figcaption>
    </figure>
  );
}

function axisTime(ms: number, splits: number[], zone: string): string {
  const step = splits.length > 1 ? (splits[1]! - splits[0]!) * 1000 : 60_000;
  const full = timeText(ms, zone, "full");
  if ((ms + offsetMs(ms, zone)) % 86_400_000 === 0 || step >= 86_400_000) return full.slice(5, 10);
  return step >= 60_000 ? full.slice(11, 16) : full.slice(11, 19);
}

/** A value that is not there comes last. */
const order = (value: number) => (Number.isNaN(value) ? -Infinity : value);
const endText = (value: number) => (Number.isNaN(value) ? "–" : value.toLocaleString("en-US"));

export function Numbers({ list }: { list: Series[] }) {
  const over = list.some(({ points }) => points.length > 1);
  if (!list.length) return <p class="pad">{T.noSeries}</p>;
  const names = [...new Set(list.flatMap(({ labels }) => Object.keys(labels)))];
  const end = Math.max(...list.map(({ points }) => points.at(-1)?.[0] ?? -Infinity));
  const rows = [...list]
    .map(({ labels, points }) => ({
      labels,
      // The value at the end of all: a series that ended before has none there.
      last: points.at(-1)?.[0] === end ? points.at(-1)![1] : NaN,
      most: Math.max(...points.map(([, value]) => value)),
    }))
    .sort((a, b) => order(b.last) - order(a.last) || b.most - a.most);
  return (
    <div class="scroll">
      {over && (
        <Chart
          span={range.value}
          list={list.map((one) => ({ ...one, name: one.name === "{}" ? T.value : one.name }))}
        />
      )}
      {list.length > SERIES_DRAWN_MAX && (
        <p class="dim pad">{T.seriesCut(SERIES_DRAWN_MAX, number(list.length))}</p>
      )}
      <table class="data">
        <thead>
          <tr>
            {names.map((name) => (
              <th scope="col">{name}</th>
            ))}
            <th scope="col" class="num">
              {over ? T.lastValue : T.value}
            </th>
            {over && (
              <th scope="col" class="num">
                {T.mostValue}
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ROWS_DRAWN).map(({ labels, last, most }) => (
            <tr title={labelsText(labels)}>
              {names.map((name) => (
                <td>{own(labels, name) ?? ""}</td>
              ))}
              <td class="num">{endText(last)}</td>
              {over && <td class="num">{most.toLocaleString("en-US")}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A text of a table that is longer is broken into lines. */
const LONG_CHARS = 60;

const isTime = (type: string) => /timestamp/i.test(type);
const isNumber = (type: string) => /int|float|double|decimal/i.test(type);

function cellText(value: unknown, type: string, zone: string): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string")
    return isTime(type) && /^\d{4}-/.test(value)
      ? timeText(value.endsWith("Z") ? value : `${value}Z`, zone, "full")
      : value;
  return JSON.stringify(value);
}

/** A table of times and numbers is a chart, too. */
function seriesOf({ columns, rows }: Table): Series[] {
  const time = columns.findIndex(({ type }) => isTime(type));
  if (time < 0 || rows.length < 2 || rows.length > 5000) return [];
  const numbers = columns
    .map((column, index) => ({ ...column, index }))
    .filter(({ type, index }) => index !== time && isNumber(type));
  const texts = columns
    .map((column, index) => ({ ...column, index }))
    .filter(({ type, index }) => index !== time && !isNumber(type) && !isTime(type));
  if (!numbers.length || texts.length > 1) return [];
  const made = new Map<string, Series>();
  for (const row of rows) {
    const at =
      Date.parse(
        String(row[time])
          .replace(/(\.\d{3})\d+/, "$1")
          .replace(/Z?$/, "Z"),
      ) / 1000;
    if (!Number.isFinite(at)) return [];
    for (const { name, index } of numbers) {
      const label = [texts[0] ? String(row[texts[0].index]) : "", numbers.length > 1 || !texts[0] ? name : ""]
        .filter(Boolean)
        .join(" ");
      const known = made.get(label) ?? { name: label, labels: {}, points: [] };
      known.points.push([at, Number(row[index])]);
      made.set(label, known);
    }
  }
  return [...made.values()];
}

export function SqlTable({ table }: { table: Table }) {
  const { tz } = state.value;
  const [shown, setShown] = useState(ROWS_DRAWN);
  const [order, setOrder] = useState<{ index: number; down: boolean } | null>(null);
  const { columns } = table;
  const rows = order
    ? [...table.rows].sort((a, b) => {
        const [x, y] = [a[order.index], b[order.index]];
        const by =
          typeof x === "number" && typeof y === "number"
            ? x - y
            : String(x ?? "").localeCompare(String(y ?? ""));
        return order.down ? -by : by;
      })
    : table.rows;
  const list = seriesOf(table);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={T.table}>
      {list.length > 0 && list.some(({ points }) => points.length > 1) && <Chart list={list} zoom={false} />}
      <table class="data">
        <thead>
          <tr>
            {columns.map(({ name, type }, index) => (
              <th
                scope="col"
                class={isNumber(type) ? "num" : ""}
                aria-sort={order?.index === index ? (order.down ? "descending" : "ascending") : undefined}
              >
                <button
                  type="button"
                  class="plain"
                  title={type}
                  onClick={() =>
                    setOrder({ index, down: order?.index === index ? !order.down : isNumber(type) })
                  }
                >
                  {name}
                  {order?.index === index ? (order.down ? " ↓" : " ↑") : ""}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, shown).map((row) => (
            <tr>
              {row.map((value, index) => {
                const text = cellText(value, columns[index]!.type, tz);
                return (
                  <td
                    class={isNumber(columns[index]!.type) ? "num" : ""}
                    title={text.length > LONG_CHARS ? text.slice(0, 3000) : undefined}
                  >
                    {text.length > LONG_CHARS ? (
                      <span class="long">
                        <Parts parts={textParts(text.length > 300 ? `${text.slice(0, 300)}…` : text)} />
                      </span>
                    ) : (
                      <Parts parts={textParts(text)} />
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {shown < rows.length && (
        <p class="pad">
          <button type="button" onClick={() => setShown(shown + 1000)}>
            {T.moreRows(number(rows.length - shown))}
          </button>
        </p>
      )}
      {table.cut && <p class="pad dim">{T.tableCut(number(table.rows.length))}</p>}
    </div>
  );
}
