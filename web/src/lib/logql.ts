// Queries of LogQL for lines: filters by clicks, and counts over time.
import { own } from "./own";
import type { Bucket } from "./pages";
import { isoOf } from "./time";

const term = (name: string, value: string, negative: boolean) =>
  ` | ${name}${negative ? "!=" : "="}${JSON.stringify(value)}`;

/** True if a label can be written in a filter. */
export const isLabel = (name: string) => /^[A-Za-z_]\w*$/.test(name);

/** Says how a query has a filter already. */
export function stateOfLabel(query: string, name: string, value: string): "included" | "excluded" | null {
  if (query.includes(term(name, value, false))) return "included";
  return query.includes(term(name, value, true)) ? "excluded" : null;
}

/** Adds a filter in place of its opposite, or takes it back if it is there. */
export function toggleLabel(query: string, name: string, value: string, negative: boolean): string {
  const wanted = term(name, value, negative);
  if (query.includes(wanted)) return query.replace(wanted, () => "");
  return query.replace(term(name, value, !negative), () => "").trimEnd() + wanted;
}

/** A query with its variables in place. Within quotation marks a value is escaped, as a text of LogQL. */
export function withVariables(query: string, values: Record<string, string>): string {
  const variable = /\$\{(\w+)(?::\w+)?\}|\$(\w+)/g;
  const put = (part: string, escape: (value: string) => string) =>
    part.replace(variable, (whole, braced: string, plain: string) => {
      const value = own(values, braced ?? plain);
      return value === undefined ? whole : escape(value);
    });
  const escaped = (value: string) => JSON.stringify(value).slice(1, -1);
  // Texts in quotation marks, texts in backquotes, which have no escapes, and all between them.
  return query.replace(/"(?:[^"\\]|\\.)*"?|`[^`]*`?|[^"`]+/g, (part) =>
    put(part, part.startsWith('"') ? escaped : String),
  );
}

/** A part of a range whose lines are counted: in one bucket, or in several of one length. */
export interface CountPart {
  from: number;
  to: number;
  step: number;
}

/** The parts of a range whose bars begin at multiples of a step, all in ms. The first and the last bar may be shorter. */
export function countParts(from: number, to: number, step: number): CountPart[] {
  const [first, last] = [Math.ceil(from / step) * step, Math.floor(to / step) * step];
  if (first >= last) return [{ from, to, step: to - from }];
  const parts = [
    { from, to: first, step: first - from },
    { from: first, to: last, step },
    { from: last, to, step: to - last },
  ];
  return parts.filter((part) => part.from < part.to);
}

/** The last instant before a time, in ns: a range of LogQL has its end and not its beginning, a bar the other way round. */
export const lastBefore = (ms: number) => `${BigInt(ms) * 1_000_000n - 1n}`;

/** The parameters of `query_range` that count the lines of a part by level. */
export function countParams(query: string, { from, to, step }: CountPart) {
  return {
    query: `sum by (detected_level) (count_over_time(${query}\n[${step}ms]))`,
    start: lastBefore(from + step),
    end: lastBefore(to),
    step: `${step}ms`,
  };
}

interface CountSeries {
  metric: Record<string, string>;
  values?: [number, string][];
}

/** The bars of a part: all of them, also those without lines. */
export function countedBars(series: CountSeries[], { from, to, step }: CountPart): Bucket[] {
  const bars: Bucket[] = [];
  for (let at = from; at < to; at += step) {
    bars.push({ from: isoOf(at), to: isoOf(at + step), count: 0, by: {} });
  }
  for (const { metric, values } of series) {
    for (const [seconds, text] of values ?? []) {
      const bar = bars[Math.round((seconds * 1000 - from) / step) - 1];
      const count = Number(text);
      if (!bar || !Number.isFinite(count)) continue;
      bar.count += count;
      const level = metric.detected_level;
      if (level && level !== "unknown") bar.by![level] = (bar.by![level] ?? 0) + count;
    }
  }
  return bars;
}

/** A label of some lines: on how many of them it is, and how many values it has there. */
export interface LabelCount {
  name: string;
  lines: number;
  values: number;
}

/** Counts the labels of lines, stream by stream. */
export class LabelCounts {
  lines = 0;
  private labels = new Map<string, { lines: number; values: Set<string> }>();

  /** Adds streams. Says whether one of them has a label that none had before. */
  add(streams: { stream: Record<string, string>; values: unknown[] }[]): boolean {
    const known = this.labels.size;
    for (const { stream, values } of streams) {
      this.lines += values.length;
      for (const [name, value] of Object.entries(stream)) {
        let label = this.labels.get(name);
        if (!label) this.labels.set(name, (label = { lines: 0, values: new Set() }));
        label.lines += values.length;
        label.values.add(value);
      }
    }
    return this.labels.size > known;
  }

  /** The labels that filters can name, those of most lines first. */
  list(): LabelCount[] {
    return [...this.labels]
      .filter(([name]) => isLabel(name))
      .map(([name, { lines, values }]) => ({ name, lines, values: values.size }))
      .sort((a, b) => b.lines - a.lines || (a.name < b.name ? -1 : 1));
  }
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/** The parameters of `query` that count the lines of a range for each value of a label: the `count` most frequent of
 * those that have a text. */
export function valueParams(
  query: string,
  name: string,
  count: number,
  text: string,
  { from, to }: { from: number; to: number },
) {
  const wanted = text ? `=~${JSON.stringify(`(?is).*${escaped(text)}.*`)}` : '!=""';
  const lines = `count_over_time(${query}\n| ${name}${wanted} [${to - from}ms])`;
  return { query: `topk(${count}, sum by (${name}) (${lines}))`, time: lastBefore(to) };
}
