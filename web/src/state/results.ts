// The results of the question in the address: rows, histogram, facets. One run at a time.

import { batch, computed, effect, signal, untracked } from "@preact/signals";
import {
  gaps,
  isAbort,
  json,
  lineWarnings,
  lines,
  noteSql,
  objects,
  problemFrom,
  type Hint,
  type Problem,
  type Trailer,
  statement,
} from "../api/client";
import { LIST_PARAMS } from "../api/features";
import { LabelCounts, countedBars, countParams, countParts, lastBefore, valueParams } from "../lib/logql";
import { own } from "../lib/own";
import { parseRow, type Row } from "../lib/record";
import { Pages, type Bounds, type Bucket } from "../lib/pages";
import { isoOf, msOf, resolve, stepMs, type Resolved } from "../lib/time";
import { T } from "../strings";
import { asked, draft, draftLang, run, state, type State } from "./url";
import { tail, tailPaused, tailState, tailVersion, startTail, stopTail } from "./live";

export type Phase = "idle" | "loading" | "done" | "stopped" | "failed";

export interface FieldInfo {
  field: string;
  rows: number;
  share: number;
  distinct: number;
  distinct_is_exact: boolean;
  types: string[];
}
export interface Series {
  name: string;
  labels: Record<string, string>;
  points: [number, number][];
}
export interface Table {
  columns: { name: string; type: string }[];
  rows: unknown[][];
  cut: boolean;
}

/** A question as it was asked. */
export interface Question {
  lang: State["lang"];
  q: string;
  sort: State["sort"];
  span: Resolved;
}

/** The range of this run: all requests of a view are of the same. */
export const range = signal<Resolved | null>(null);
export const phase = signal<Phase>("idle");
export const problem = signal<Problem | null>(null);
/** The question that the problem is of: it stays marked until the text changes. */
export const problemText = signal("");
export const trailer = signal<Trailer | null>(null);
export const hints = signal<Hint[]>([]);
export const pages = signal<Pages | null>(null);
export const version = signal(0);
export const total = signal<number | null>(null);
export const warnings = signal<string[]>([]);
export const startedAt = signal(0);
export const firstRowMs = signal<number | null>(null);

export const buckets = signal<Bucket[]>([]);
export const bucketsPhase = signal<Phase>("idle");
export const bucketsProblem = signal<Problem | null>(null);
/** Instants: the histogram is counted from here on. */
export const countedFrom = signal<number | null>(null);
export const histogramRange = signal<[number, number] | null>(null);

export const fields = signal<FieldInfo[] | null>(null);
export const fieldsProblem = signal<Problem | null>(null);

export const series = signal<Series[] | null>(null);
export const table = signal<Table | null>(null);
/** Lines of LogQL: those that were read, and where the next ones begin. */
export const logLines = signal<Row[] | null>(null);
export const logLinesNext = signal("");
export const logLinesPhase = signal<Phase>("idle");
/** A question without a text, which only the native language has. */
export const nothingAsked = signal(false);
/** The question of the result on the screen, or null if there is none. That of the address may have failed since. */
export const answered = signal<Question | null>(null);

/** The language of the result on the screen, or of the question if there is none. */
export const shownLang = computed(() => {
  const { view, lang, live } = state.value;
  return view === "search" && !live ? (answered.value?.lang ?? lang) : lang;
});

/** The question of the result on the screen. A tail has no end: its question is that of the address. */
export function shownQuestion(): Question | null {
  const { view, live } = state.value;
  if (view === "search" && !live && answered.value) return answered.value;
  return range.value && questionOf(state.value);
}

/** The text of a language that a click in the result adds to: that of the bar, also if it was not run. */
export function textIn(lang: State["lang"]): string {
  if (draftLang.value === lang) return draft.value;
  if (state.value.lang === lang) return state.value.q;
  return answered.value?.lang === lang ? answered.value.q : "";
}

let control = new AbortController();
/** The rows of this run, which are shown once there is an answer. */
let pending: Pages | null = null;
export const runSignal = () => control.signal;

let frame = 0;
function bump() {
  // As often as the screen is drawn, not as often as rows arrive.
  if (frame) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    version.value += 1;
  });
}

/** Parameters that all requests of a run share. */
export function scope(): { q: string; from: string; to: string } {
  const found = range.value!;
  return { q: state.value.q, from: found.from, to: found.to };
}

const questionOf = ({ lang, q, sort }: State): Question => ({ lang, q, sort, span: range.value! });

const HISTOGRAM_BUCKETS = 90;
const QUICK_MS = 250;
/** Rows of SQL that the page shows; a file has all. */
export const TABLE_ROWS_MAX = 10_000;
/** Lines of LogQL that are read at once. */
export const LOG_LINES_PAGE = 5000;

function reset(now: State) {
  control.abort();
  // The end of a run is no answer: its rows would take the place of those that are kept.
  const ended = pending;
  pending = null;
  ended?.stop();
  pages.value?.stop();
  control = new AbortController();
  stopTail();
  problem.value = null;
  bucketsProblem.value = fieldsProblem.value = null;
  warnings.value = [];
  gaps.value = null;
  startedAt.value = performance.now();
  firstRowMs.value = null;
  range.value = resolve(now, Date.now());
}

function start() {
  const now = state.value;
  reset(now);
  if (!range.value) {
    problem.value = {
      status: 400,
      code: "range",
      message: `no time is known as ${JSON.stringify(now.to || now.from)}`,
    };
    phase.value = "failed";
    return;
  }
  nothingAsked.value = now.view === "search" && now.lang !== "q" && !now.q.trim();
  if (nothingAsked.value) {
    clearResult();
    phase.value = "idle";
    return;
  }
  phase.value = "loading";
  if (now.view !== "search") {
    if (now.lang === "q") void check(now.q, control.signal);
    return;
  }
  if (now.lang === "q") startNative(now);
  else if (now.lang === "logql") void guarded(startLogql(now));
  else void guarded(startSql(now));
}

/** Says where a query of another view is wrong: its panels ask more than the text in the bar. */
async function check(q: string, signal: AbortSignal) {
  if (!q.trim()) return;
  const { from, fromMs } = range.value!;
  try {
    // No record is read for it.
    await lines("api/v1/query", { q, from, to: isoOf(fromMs + 1), limit: 1 }, signal, () => undefined);
  } catch (error) {
    const found = problemFrom(error);
    if (signal.aborted || found.status !== 400) return;
    [problem.value, problemText.value, phase.value] = [found, q, "failed"];
  }
}

function startNative(now: State) {
  const { signal } = control;
  if (now.live) {
    if (answered.value?.lang !== "q") clearResult();
    answered.value = questionOf(now);
    startTail(now.q, signal, (error) => fail(error, signal));
    phase.value = "done";
    hints.value = [];
    void histogram(signal);
    void facets(signal);
    return;
  }
  const base = scope();
  const question = questionOf(now);
  const store = new Pages(
    {
      rows: (bounds, limit, aborted, take) =>
        lines(
          "api/v1/query",
          {
            ...LIST_PARAMS,
            ...base,
            ...bounds,
            limit,
            direction: now.sort === "asc" ? "forward" : "backward",
          },
          aborted,
          take,
        ),
      counts: async ({ from, to }: Bounds, parts, aborted) => {
        const step = Math.max(1, Math.ceil((msOf(to!) - msOf(from!)) / parts));
        const [found] = await objects<Bucket>(
          "api/v1/histogram",
          { q: base.q, from, to, step: `${step}ms` },
          aborted,
        );
        return found;
      },
    },
    now.sort,
    () => {
      if (pending !== store && pages.value !== store) return;
      // The rows of the run before stay until there is an answer.
      show(store, question);
      bump();
    },
    (found, first) => {
      if (pending !== store) return bump();
      show(store, question);
      if (first) trailer.value = found;
      if (first) {
        hints.value = found.rows === 0 ? (found.hints ?? []) : [];
        phase.value = "done";
        problem.value = null;
        if (store.ended) total.value = store.total;
        // What else is asked must not delay rows.
        void histogram(control.signal, store);
        void facets(control.signal);
      }
      bump();
    },
    (error) => {
      // Rows that are kept may fail later than the question that kept them.
      if (pending === store) fail(error, control.signal);
      else bump();
    },
  );
  pending = store;
  total.value = null;
  store.want(0, 60);
}

function show(store: Pages, question: Question) {
  if (pages.value === store || pending !== store) return;
  batch(() => {
    if (answered.value?.lang !== "q") clearResult();
    pending = store;
    firstRowMs.value = performance.now() - startedAt.value;
    pages.value = store;
    answered.value = question;
    hints.value = [];
  });
}

function fail(error: unknown, signal: AbortSignal) {
  if (signal.aborted || isAbort(error)) return;
  problem.value = problemFrom(error);
  problemText.value = state.value.q;
  phase.value = "failed";
  bucketsPhase.value = "idle";
  fields.value ??= [];
  // The result of the run before stays, and its rows can still be scrolled.
  const before = pages.value;
  if (before && before !== pending) {
    total.value = before.total;
    before.resume();
  } else if (logLines.value) total.value = logLinesNext.value ? null : logLines.value.length;
  else if (series.value ?? table.value) total.value = series.value?.length ?? table.value!.rows.length;
}

async function guarded(work: Promise<void>) {
  const { signal } = control;
  try {
    await work;
    if (!signal.aborted) phase.value = "done";
  } catch (error) {
    fail(error, signal);
  }
}

/** Ends all requests of the view; the rows stay. */
export function stop() {
  if (phase.value !== "loading" && bucketsPhase.value !== "loading" && !pages.value?.loading) return;
  control.abort();
  control = new AbortController();
  // The stop of rows that were not shown yet does not show them.
  const unseen = pending;
  pending = null;
  unseen?.stop();
  pages.value?.stop();
  pending = unseen;
  phase.value = "stopped";
  if (bucketsPhase.value === "loading") bucketsPhase.value = "stopped";
  version.value += 1;
}

export function resume() {
  phase.value = pages.value === pending ? "done" : "loading";
  (pending ?? pages.value)?.resume();
  if (bucketsPhase.value === "stopped" && pending) void histogram(control.signal, pending);
  if (fields.value === null) void facets(control.signal);
  version.value += 1;
}

// The newest part first; if that was slow, the rest comes in parts, so that something is seen early.
async function histogram(signal: AbortSignal, store?: Pages) {
  const found = range.value!;
  const base = scope();
  bucketsPhase.value = "loading";
  try {
    if (found.fromMs <= 0) {
      await wholeHistogram(base, signal, store);
      return;
    }
    const step = stepMs(found.toMs - found.fromMs, HISTOGRAM_BUCKETS);
    const [firstStart, end] = [Math.floor(found.fromMs / step) * step, found.toMs];
    const kept: Bucket[] = [];
    let upper = end;
    let parts = 4;
    histogramRange.value = [found.fromMs, end];
    countedFrom.value = end;
    while (upper > found.fromMs && !signal.aborted) {
      const size = Math.max(step, Math.ceil((upper - firstStart) / parts / step) * step);
      let lower = Math.floor((upper - size) / step) * step;
      if (lower - step < found.fromMs) lower = found.fromMs;
      const began = performance.now();
      const [part] = await objects<Bucket>(
        "api/v1/histogram",
        {
          q: base.q,
          from: lower <= found.fromMs ? base.from : isoOf(lower),
          to: upper === found.toMs ? base.to : isoOf(upper),
          step: `${step}ms`,
          by: "level",
        },
        signal,
      );
      if (signal.aborted) return;
      kept.unshift(...part);
      buckets.value = [...kept];
      countedFrom.value = lower;
      upper = lower;
      parts = performance.now() - began < QUICK_MS ? 1 : Math.max(1, parts - 1);
    }
    finishHistogram(kept, store);
  } catch (error) {
    if (signal.aborted || isAbort(error)) return;
    bucketsPhase.value = "failed";
    bucketsProblem.value = problemFrom(error);
  }
}

// All time: only the server knows when it begins.
async function wholeHistogram(
  base: { q: string; from: string; to: string },
  signal: AbortSignal,
  store?: Pages,
) {
  const [found] = await objects<Bucket>("api/v1/histogram", { ...base, by: "level" }, signal);
  if (signal.aborted) return;
  buckets.value = found;
  const [first, last] = [found[0], found.at(-1)];
  histogramRange.value =
    first && last ? [msOf(first.from), msOf(last.to)] : [range.value!.toMs - 3_600_000, range.value!.toMs];
  countedFrom.value = histogramRange.value[0];
  finishHistogram(found, store);
}

function finishHistogram(found: Bucket[], store?: Pages) {
  const sum = found.reduce((rows, { count }) => rows + count, 0);
  bucketsPhase.value = "done";
  total.value = sum;
  if (!store) return;
  store.learn(found);
  store.setTotal(sum);
  if (store.ended && store.total !== null) total.value = store.total;
}

/** A tail has other fields after a while, and none at first. */
const TAIL_FIELDS_MS = 15_000;
const TAIL_EMPTY_MS = 3000;
let fieldsAt = 0;

effect(() => {
  void tailVersion.value;
  untracked(() => {
    if (tailState.value === "off" || tailPaused.value || !tail.shown.length || !fields.value) return;
    const age = performance.now() - fieldsAt;
    if (age < (fields.value.length ? TAIL_FIELDS_MS : TAIL_EMPTY_MS)) return;
    range.value = resolve(state.value, Date.now());
    gaps.value = null;
    void facets(control.signal);
  });
});

async function facets(signal: AbortSignal) {
  fieldsAt = performance.now();
  fieldsProblem.value = null;
  try {
    const [found] = await objects<FieldInfo>("api/v1/fields", scope(), signal);
    if (!signal.aborted) fields.value = found.filter(({ field }) => field !== "_msg");
  } catch (error) {
    if (signal.aborted || isAbort(error)) return;
    fieldsProblem.value = problemFrom(error);
  }
}

interface LokiAnswer {
  data:
    | { resultType: "streams"; result: LokiStream[]; cursor?: string }
    | { resultType: "matrix" | "vector"; result: LokiSeries[] };
  warnings?: string[];
}
interface LokiStream {
  stream: Record<string, string>;
  values: [string, string][];
}
interface LokiSeries {
  metric: Record<string, string>;
  values?: [number, string][];
  value?: [number, string];
}

/** The question of the lines on the screen. */
const linesOf = () => (logLines.value ? answered.value : null);

/** The labels of the lines on the screen. */
let labels = new LabelCounts();

/** Shows the labels of the lines that were read as fields. */
function showLabels() {
  fields.value = labels.list().map(({ name, lines, values }) => ({
    field: name,
    rows: lines,
    share: lines / Math.max(1, labels.lines),
    distinct: values,
    distinct_is_exact: !logLinesNext.value,
    types: ["string"],
  }));
}

/** Counts the lines of the range for each value of a label, the most frequent first; those with a text, if one is
 * given. */
export async function labelValues(name: string, count: number, text: string, signal: AbortSignal) {
  const question = linesOf();
  if (!question) return [];
  const { q, span } = question;
  const ends = { from: Math.max(0, Math.floor(span.fromMs)), to: Math.round(span.toMs) };
  const params = valueParams(q, name, count, text, ends);
  const { data } = await json<LokiAnswer>("loki/api/v1/query", params, { signal });
  if (data.resultType === "streams") return [];
  const found = data.result.map(({ metric, value }) => ({
    value: metric[name] ?? "",
    count: Number(value?.[1] ?? 0),
  }));
  return found.sort((a, b) => b.count - a.count);
}

const askLogql = ({ q, sort, span }: Question, cursor: string | undefined, signal: AbortSignal) =>
  json<LokiAnswer>(
    "loki/api/v1/query_range",
    {
      query: q,
      start: span.fromMs <= 0 ? "0" : span.from,
      end: span.to,
      limit: LOG_LINES_PAGE,
      direction: sort === "asc" ? "forward" : "backward",
      cursor,
    },
    { signal },
  );

async function startLogql(now: State) {
  const { signal } = control;
  const question = questionOf(now);
  const { sort } = question;
  const answer = await askLogql(question, undefined, signal);
  if (signal.aborted) return;
  clearResult();
  answered.value = question;
  warnings.value = lineWarnings(answer.warnings);
  if (answer.data.resultType === "streams") {
    logLines.value = lokiLines(answer.data.result, sort);
    logLinesNext.value = answer.data.cursor ?? "";
    logLinesPhase.value = "done";
    series.value = table.value = null;
    if (!logLinesNext.value) total.value = logLines.value.length;
    labels = new LabelCounts();
    labels.add(answer.data.result);
    showLabels();
    void lineHistogram(question, signal);
  } else {
    series.value = answer.data.result.map(({ metric, values, value }) => ({
      name: labelsText(metric),
      labels: metric,
      points: (values ?? (value ? [value] : [])).map(([at, text]) => [at, Number(text)]),
    }));
    logLines.value = table.value = null;
    total.value = answer.data.result.length;
  }
}

/** Reads the next lines of LogQL. */
export async function moreLines() {
  const cursor = logLinesNext.value;
  const question = linesOf();
  if (!question || !cursor || logLinesPhase.value !== "done") return;
  const { signal } = control;
  logLinesPhase.value = "loading";
  try {
    const { data, warnings: said } = await askLogql(question, cursor, signal);
    if (answered.value !== question || data.resultType !== "streams") return;
    const next = lokiLines(data.result, question.sort);
    batch(() => {
      logLines.value = [...logLines.value!, ...next];
      logLinesNext.value = data.cursor ?? "";
      logLinesPhase.value = "done";
      warnings.value = [...new Set([...warnings.value, ...lineWarnings(said)])];
      if (!logLinesNext.value) total.value = logLines.value.length;
      if (labels.add(data.result)) showLabels();
    });
  } catch (error) {
    if (answered.value !== question) return;
    logLinesPhase.value = isAbort(error) ? "done" : "failed";
    if (!isAbort(error)) warnings.value = [...warnings.value, T.linesFailed(problemFrom(error).message)];
  }
}

/** Counts the lines over the range, by level: bars, and how many there are. */
async function lineHistogram({ q, span }: Question, signal: AbortSignal) {
  const [from, to] = [Math.floor(span.fromMs), Math.round(span.toMs)];
  // Only the server knows when all time begins, and it has no histogram of LogQL.
  if (from <= 0 || from >= to) {
    await countLines({ q, from: Math.max(0, from), to }, signal);
    return;
  }
  bucketsPhase.value = "loading";
  histogramRange.value = [from, to];
  countedFrom.value = to;
  try {
    let bars: Bucket[] = [];
    // The newest part first, as of rows.
    for (const part of countParts(from, to, stepMs(to - from, HISTOGRAM_BUCKETS)).reverse()) {
      const { data } = await json<LokiAnswer>("loki/api/v1/query_range", countParams(q, part), { signal });
      if (signal.aborted || data.resultType === "streams") return;
      bars = [...countedBars(data.result, part), ...bars];
      buckets.value = bars;
      countedFrom.value = part.from;
    }
    bucketsPhase.value = "done";
    total.value = bars.reduce((lines, { count }) => lines + count, 0);
  } catch (error) {
    if (signal.aborted || isAbort(error)) return;
    bucketsPhase.value = "failed";
    bucketsProblem.value = problemFrom(error);
  }
}

async function countLines({ q, from, to }: { q: string; from: number; to: number }, signal: AbortSignal) {
  const query = `sum(count_over_time(${q}\n[${to - from}ms]))`;
  try {
    const { data } = await json<LokiAnswer>("loki/api/v1/query", { query, time: lastBefore(to) }, { signal });
    if (signal.aborted || data.resultType !== "vector") return;
    const sum = Number(data.result[0]?.value?.[1]);
    if (logLinesNext.value && Number.isFinite(sum)) total.value = sum;
  } catch {
    // Without that number, the page says that there are more lines than it has.
  }
}

export const labelsText = (labels: Record<string, string>) =>
  `{${Object.entries(labels)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(", ")}}`;

function lokiLines(streams: LokiStream[], sort: "asc" | "desc"): Row[] {
  const all = streams.flatMap(({ stream, values }) =>
    values.map(([nanos, line]) => ({ nanos, line, stream })),
  );
  all.sort((a, b) => (a.nanos < b.nanos ? 1 : a.nanos > b.nanos ? -1 : 0) * (sort === "asc" ? -1 : 1));
  return all.map(({ nanos, line, stream }) => {
    const seconds = new Date(Number(nanos.slice(0, -9)) * 1000).toISOString().slice(0, 19);
    const time = `${seconds}.${nanos.slice(-9)}Z`;
    return parseRow(JSON.stringify({ _time: time, _id: "", _msg: line, ...stream }));
  });
}

function clearResult() {
  pages.value = pending = null;
  buckets.value = [];
  bucketsPhase.value = "idle";
  fields.value = null;
  hints.value = [];
  trailer.value = null;
  total.value = null;
  series.value = table.value = logLines.value = null;
  answered.value = null;
  logLinesNext.value = "";
  logLinesPhase.value = "idle";
}

async function startSql(now: State) {
  const { signal } = control;
  const found = range.value!;
  const question = questionOf(now);
  const result: Table = { columns: [], rows: [], cut: false };
  const ended = await lines(
    "api/v1/sql",
    { columns: true, from: found.from, to: found.to },
    signal,
    (batch) => {
      for (const line of batch) {
        if (!result.columns.length && line.startsWith('{"_columns"')) {
          result.columns = (JSON.parse(line) as { _columns: Table["columns"] })._columns;
          continue;
        }
        if (result.rows.length >= TABLE_ROWS_MAX) {
          result.cut = true;
          continue;
        }
        const row = JSON.parse(line) as Record<string, unknown>;
        if (!result.columns.length) result.columns = Object.keys(row).map((name) => ({ name, type: "" }));
        result.rows.push(result.columns.map(({ name }) => own(row, name)));
      }
    },
    statement(now.q),
  ).catch((error: unknown) => {
    noteSql(error);
    throw error;
  });
  if (signal.aborted) return;
  noteSql();
  clearResult();
  answered.value = question;
  table.value = result;
  trailer.value = ended;
  total.value = result.rows.length;
}

effect(() => {
  void asked.value;
  void run.value;
  untracked(start);
});
