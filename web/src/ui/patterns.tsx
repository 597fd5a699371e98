// Kinds of messages of the query, and what changed against the range before.

import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort, objects, problemFrom, type Problem, type Trailer } from "../api/client";
import { textParts } from "../lib/paint";
import { condition, quote } from "../lib/query";
import { COVERED_MIN, isComparable } from "../lib/compare";
import { isoOf, msOf, timeText } from "../lib/time";
import { toneOf } from "../lib/levels";
import { range } from "../state/results";
import { ask, nativeText, state } from "../state/url";
import { T } from "../strings";
import { Bar, Button, Gaps, Parts, ProblemText, Retry, Sparkline, number, percent } from "./parts";

export interface Pattern {
  pattern: string;
  count: number;
  level: string | null;
  buckets: [string, number][];
  samples: { message: string; time: string }[];
}

const PATTERNS_MAX = 500;
const SHOWN = 100;
/** So many times as frequent as before is a change. */
const CHANGE_FACTOR = 10;
/** Bars of a line; of more buckets, several are one bar. */
const SPARK_BUCKETS_MAX = 60;

export type Change =
  { kind: "new" } | { kind: "more"; factor: number } | { kind: "gone"; before: number } | null;

/** How a count differs from the one of the range before. */
export function changeOf(count: number, before: number | undefined, comparable: boolean): Change {
  if (!comparable) return null;
  if (!before) return { kind: "new" };
  if (count >= before * CHANGE_FACTOR) return { kind: "more", factor: count / before };
  return null;
}

/** A filter for the lines of a pattern: its longest fixed parts. */
export function termsOf(pattern: string): string[] {
  const parts = pattern
    .split("<_>")
    .map((part) => part.trim())
    .filter((part) => /[\p{L}\p{N}]/u.test(part));
  const long = [...parts].sort((a, b) => b.length - a.length).slice(0, 3);
  return parts.filter((part) => long.includes(part));
}

/** A filter for the records of a row. Rows of the same text differ by their level. */
export function filterOf(q: string, { pattern, level }: Pattern, negative: boolean): string {
  const texts = termsOf(pattern).map(quote);
  if (!texts.length) return q;
  const terms = [...texts, level === null ? "NOT level:*" : condition("_level", "=", level)].join(" ");
  const wanted = negative ? `NOT (${terms})` : terms;
  if (!q.trim() || q.trim() === "*") return wanted;
  return / OR /.test(q) ? `(${q}) ${wanted}` : `${q} ${wanted}`;
}

/** Puts buckets of the server, which leaves out empty ones, on one axis from `low` to `high`. */
export function seriesOf(list: Pattern[], low: number, high: number): (pattern: Pattern) => number[] {
  const times = [...new Set(list.flatMap(({ buckets }) => buckets.map(([time]) => msOf(time))))];
  times.sort((a, b) => a - b);
  // All buckets of an answer are of one length. Of a bar for each there is no gap that the records do not have.
  const step = Math.min(high - low || 1, ...times.slice(1).map((at, index) => at - times[index]!));
  const first =
    times[0] === undefined ? low : times[0] - Math.max(0, Math.ceil((times[0] - low) / step)) * step;
  const bars = Math.max(1, Math.ceil((high - first) / step));
  const joined = Math.ceil(bars / SPARK_BUCKETS_MAX);
  return ({ buckets }) => {
    const values = new Array<number>(Math.ceil(bars / joined)).fill(0);
    for (const [time, count] of buckets) {
      const index = Math.floor(Math.round((msOf(time) - first) / step) / joined);
      values[Math.min(values.length - 1, Math.max(0, index))]! += count;
    }
    return values;
  };
}

/** The beginning of the first bucket with records. */
const firstOf = (list: Pattern[]) =>
  list.reduce((first, { buckets }) => Math.min(first, buckets[0] ? msOf(buckets[0][0]) : first), Infinity);

const key = ({ pattern, level }: Pattern) => `${level} ${pattern}`;

export function Patterns() {
  const [found, setFound] = useState<{
    list: Pattern[];
    trailer: Trailer;
    before: Map<string, number> | null;
    beforeRows: number;
    covered: boolean;
  } | null>(null);
  // Rows stay where they are while one points at them.
  const reading = useRef(false);
  const [changesFirst, setChangesFirst] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [changed, setChanged] = useState(false);
  const { q, from, to, tz } = state.value;
  const span = range.value;

  useEffect(() => {
    if (!span) return;
    const control = new AbortController();
    const { signal } = control;
    setProblem(null);
    setFound(null);
    setChangesFirst(false);
    (async () => {
      const [list, trailer] = await objects<Pattern>(
        "api/v1/patterns",
        { q, from: span.from, to: span.to, n: PATTERNS_MAX },
        signal,
      );
      setFound({ list, trailer, before: null, beforeRows: 0, covered: false });
      // The same length of time before it; without a beginning there is none.
      if (span.fromMs <= 0) return;
      const length = span.toMs - span.fromMs;
      const [old, { rows }] = await objects<Pattern>(
        "api/v1/patterns",
        { q, from: isoOf(span.fromMs - length), to: span.from, n: 10_000 },
        signal,
      );
      setFound({
        list,
        trailer,
        before: new Map(old.map((pattern) => [key(pattern), pattern.count])),
        beforeRows: rows,
        covered: span.fromMs - firstOf(old) >= length * COVERED_MIN,
      });
      setChangesFirst(!reading.current);
    })().catch((error: unknown) => {
      if (!isAbort(error)) setProblem(problemFrom(error));
    });
    return () => control.abort();
  }, [q, from, to, span?.from, span?.to]);

  if (problem)
    return (
      <main class="screen scroll" id="main" tabIndex={0}>
        <ProblemText problem={problem}>
          <Retry />
        </ProblemText>
      </main>
    );
  if (!found || !span)
    return (
      <main class="screen scroll pad" id="main" tabIndex={0} aria-busy="true">
        <h1 class="sr">{T.views.patterns}</h1>
        {T.loading}
      </main>
    );
  const { list, trailer, before, beforeRows, covered } = found;
  const compared = isComparable(beforeRows, trailer.rows, covered);
  const rows = list.map((pattern) => ({
    pattern,
    change: before ? changeOf(pattern.count, before.get(key(pattern)), compared) : null,
  }));
  const rank = ({ kind }: { kind: string }) => (kind === "new" ? 2 : 1);
  rows.sort(
    (a, b) =>
      (changesFirst ? (b.change ? rank(b.change) : 0) - (a.change ? rank(a.change) : 0) : 0) ||
      b.pattern.count - a.pattern.count,
  );
  const shown = (changed ? rows.filter(({ change }) => change) : rows).slice(0, SHOWN);
  const changes = rows.filter(({ change }) => change).length;
  const low =
    span.fromMs > 0
      ? span.fromMs
      : Math.min(...list.flatMap(({ buckets }) => buckets.map(([time]) => msOf(time))));
  const series = seriesOf(list, low, span.toMs);
  return (
    <main class="screen scroll patterns" id="main" tabIndex={0}>
      <h1 class="sr">{T.views.patterns}</h1>
      <div class="toolbar">
        <span class="count" role="status">
          <b>
            {number(list.length)}
            {list.length === PATTERNS_MAX ? "+" : ""}
          </b>{" "}
          {T.patternsOf(number(trailer.rows))}
        </span>
        <span class="spacer" />
        <span class="dim">
          {before === null
            ? span.fromMs > 0
              ? T.comparing
              : T.noBefore
            : compared
              ? T.changesFound(changes)
              : beforeRows
                ? T.tooFewBefore(number(beforeRows))
                : T.nothingBefore}
        </span>
        <Button pressed={changed} disabled={!changes} onClick={() => setChanged(!changed)}>
          {T.onlyChanges}
        </Button>
      </div>
      <Gaps />
      <table
        class="data pattern-table"
        onPointerEnter={() => {
          reading.current = true;
        }}
        onPointerLeave={() => {
          reading.current = false;
          setChangesFirst(before !== null);
        }}
      >
        <thead>
          <tr>
            <th scope="col" class="num">
              {T.count}
            </th>
            <th scope="col">{T.share}</th>
            <th scope="col" class="wide-only">
              {T.overTime}
            </th>
            <th scope="col">{T.columnTitles.level}</th>
            <th scope="col">{T.pattern}</th>
            <th scope="col">
              <span class="sr">{T.filter}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ pattern, change }) => (
            <tr class={change ? `change-${change.kind}` : ""}>
              <td class="num">{number(pattern.count)}</td>
              <td class="share">
                {percent(pattern.count / Math.max(1, trailer.rows))}
                <Bar share={pattern.count / Math.max(1, trailer.rows)} />
              </td>
              <td class="wide-only">
                <Sparkline values={series(pattern)} label={T.overTime} />
              </td>
              <td class={`tone-${toneOf(pattern.level ?? undefined)}`}>{pattern.level ?? ""}</td>
              <td class="pattern">
                {change && (
                  <span class="badge">
                    {change.kind === "new"
                      ? T.isNew
                      : change.kind === "more"
                        ? T.timesMore(change.factor)
                        : ""}
                  </span>
                )}
                <code>
                  {pattern.pattern
                    .split("<_>")
                    .flatMap((part, index) => (index ? [<i>‹…›</i>, part] : [part]))}
                </code>
                {pattern.samples[0] && (
                  <details>
                    <summary>{T.sample}</summary>
                    {pattern.samples.map(({ message, time }) => (
                      <p>
                        <time>{timeText(time, tz, "time")}</time>{" "}
                        <Parts parts={textParts(message.slice(0, 1000))} />
                      </p>
                    ))}
                  </details>
                )}
              </td>
              <td class="acts">
                <Button
                  label={T.showRecords}
                  onClick={() => ask({ view: "search", q: filterOf(q, pattern, false) })}
                >
                  {T.show}
                </Button>
                <Button
                  class="plain"
                  label={T.includePattern}
                  onClick={() => ask({ q: filterOf(nativeText(), pattern, false) })}
                >
                  ⊕
                </Button>
                <Button
                  class="plain"
                  label={T.excludePattern}
                  onClick={() => ask({ q: filterOf(nativeText(), pattern, true) })}
                >
                  ⊖
                </Button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {!shown.length && <p class="pad dim">{T.nothing}</p>}
    </main>
  );
}
