// Fields of the result, with values and counts. A click includes, Alt and a click exclude.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort, isAway, objects, problemFrom, sql, type Problem } from "../api/client";
import { binsOf, isLog, scaled } from "../lib/numbers";
import { textParts } from "../lib/paint";
import { between, boundsOf, containing, withoutChoice } from "../lib/query";
import { toneOf } from "../lib/levels";
import type { Resolved } from "../lib/time";
import {
  fields,
  fieldsProblem,
  labelValues,
  shownLang,
  shownQuestion,
  textIn,
  total,
  type FieldInfo,
  type Question,
} from "../state/results";
import { own } from "../lib/own";
import { columnOf, textOf } from "../lib/record";
import { ask, state } from "../state/url";
import { T } from "../strings";
import { applyFilter, FilterButtons, toggleColumn } from "./detail";
import { Bar, Button, Parts, Retry, countText, number, percent, shortNumber } from "./parts";

const OPEN_AT_FIRST = [
  "_level",
  "detected_level",
  "hostname",
  "host",
  "app",
  "service_name",
  "SYSLOG_IDENTIFIER",
  "app_name",
  "status",
  "service",
];
const OPEN_AT_FIRST_MAX = 4;
const VALUES_FIRST = 8;
const VALUES_MAX = 500;
/** Different numbers that are counted one by one. */
const NUMBERS_MAX = 50_000;
const FIELDS_SHOWN = 40;

/** Fields that the reader opened (true) or closed (false). */
const chosen = signal<Record<string, boolean>>({});
export const facetsOpen = signal(false);

/** The fields that are a level of one scale: those of records, and of lines of LogQL. */
const LEVELS = ["_level", "detected_level"];

interface Value {
  value: unknown;
  count: number;
}

export function Facets() {
  const [find, setFind] = useState("");
  const [all, setAll] = useState(false);
  const native = shownLang.value === "q";
  // The first facet is the level from any field; a field of this name would say the same again.
  const list = (fields.value ?? []).filter(({ field }) => !native || field !== "level");
  const known: FieldInfo[] = !native
    ? list
    : list.length
      ? [
          {
            field: "_level",
            rows: total.value ?? 0,
            share: 1,
            distinct: 0,
            distinct_is_exact: true,
            types: ["string"],
          },
          ...list,
        ]
      : [];
  const lower = find.toLowerCase();
  const rank = ({ field }: FieldInfo) => (OPEN_AT_FIRST.includes(field) ? OPEN_AT_FIRST.indexOf(field) : 100);
  const found = known
    .filter(({ field }) => field.toLowerCase().includes(lower))
    .sort((a, b) => rank(a) - rank(b));
  const first = new Set(
    known
      .filter(({ field, distinct, share }) => OPEN_AT_FIRST.includes(field) && distinct <= 60 && share > 0.05)
      .sort((a, b) => rank(a) - rank(b))
      .slice(0, OPEN_AT_FIRST_MAX)
      .map(({ field }) => field),
  );
  const shown = all || lower ? found : found.slice(0, FIELDS_SHOWN);
  return (
    <aside class="facets" aria-label={T.facets} data-open={facetsOpen.value}>
      <div class="facets-head">
        <input
          id="find-field"
          value={find}
          onInput={(event) => setFind(event.currentTarget.value)}
          placeholder={T.findField}
          aria-label={T.findField}
        />
        <Button
          class="plain close-facets"
          label={T.close}
          onClick={() => {
            facetsOpen.value = false;
          }}
        >
          ✕
        </Button>
      </div>
      {fieldsProblem.value && !isAway(fieldsProblem.value) && (
        <p class="bad">
          {T.facetsFailed(fieldsProblem.value.message)} <Retry link />
        </p>
      )}
      {!list.length && !fieldsProblem.value && <p class="dim pad">{fields.value ? T.noFields : T.loading}</p>}
      {shown.map((info) => (
        <Facet key={info.field} info={info} open={own(chosen.value, info.field) ?? first.has(info.field)} />
      ))}
      {shown.length < found.length && (
        <Button class="link pad" onClick={() => setAll(true)}>
          {T.moreFields(number(found.length - shown.length))}
        </Button>
      )}
    </aside>
  );
}

function Facet({ info, open }: { info: FieldInfo; open: boolean }) {
  const { field, share, distinct, distinct_is_exact: exact, types } = info;
  const level = field === "_level";
  const numeric =
    types.length > 0 && types.every((type) => type === "int" || type === "float") && distinct > 30;
  const name = level ? T.columnTitles.level! : field;
  const column = level ? "level" : columnOf(field);
  const inTable = state.value.cols.includes(column);
  return (
    <section class="facet">
      <h3>
        <button
          type="button"
          class="plain"
          aria-expanded={open}
          title={T.facetTitle(field, percent(share))}
          onClick={() => {
            chosen.value = { ...chosen.value, [field]: !open };
          }}
        >
          <span class="twist" aria-hidden="true">
            {open ? "▾" : "▸"}
          </span>
          <span class="name">
            <Parts parts={textParts(name)} />
          </span>
          <small>
            {level ? (
              ""
            ) : (
              <>
                {share < 0.995 && `${percent(share)} · `}
                {exact ? "" : "≈"}
                {shortNumber(distinct)}
              </>
            )}
          </small>
        </button>
        <Button
          class="plain as-column"
          label={inTable ? T.removeColumn(name) : T.addColumn(name)}
          pressed={inTable}
          onClick={() => toggleColumn(column)}
        >
          ▥
        </Button>
      </h3>
      {open && (numeric ? <Numbers info={info} /> : <Values info={info} />)}
    </section>
  );
}

/** Values of a field for the present question, newest question first: those with a text, if one is given. */
function useValues(
  field: string,
  n: number,
  text = "",
  wanted = true,
): { values: Value[] | null; rows: number; problem: Problem | null } {
  const [found, setFound] = useState<{ values: Value[] | null; rows: number; problem: Problem | null }>({
    values: null,
    rows: 0,
    problem: null,
  });
  const question = shownQuestion();
  useEffect(() => {
    if (!question || !wanted) return;
    const control = new AbortController();
    valuesOf(question, field, n, text, control.signal).then(
      ({ values, rows }) => setFound({ values, rows, problem: null }),
      (error: unknown) => {
        if (!isAbort(error)) setFound({ values: null, rows: 0, problem: problemFrom(error) });
      },
    );
    return () => control.abort();
    // The list of fields comes once the rows are there: values are asked after them.
  }, [fields.value, field, n, text, wanted]);
  return found;
}

/** The most frequent values of a field, and how many records there are of which they are a part. */
async function valuesOf(
  { lang, q, span }: Question,
  field: string,
  n: number,
  text: string,
  signal: AbortSignal,
): Promise<{ values: Value[]; rows: number }> {
  if (lang === "logql") {
    const values = await labelValues(field, n, text, signal);
    const counted = values.reduce((rows, { count }) => rows + count, 0);
    return { values, rows: Math.max(counted, total.value ?? 0) };
  }
  // Of a field that is filtered, the other values stay: another one can be chosen as well.
  const others = withoutChoice(q, field);
  const scope = { q: text ? containing(others, field, text) : others, from: span.from, to: span.to };
  const [values, { rows }] = await objects<Value>("api/v1/top", { field, n, ...scope }, signal);
  return { values, rows };
}

function Values({ info }: { info: FieldInfo }) {
  const [n, setN] = useState(VALUES_FIRST);
  const [find, setFind] = useState("");
  const { values, rows, problem } = useValues(info.field, n === VALUES_FIRST ? VALUES_FIRST + 1 : VALUES_MAX);
  // Where the most frequent values are not all, the server looks for the text.
  const cut = n !== VALUES_FIRST && (values?.length ?? 0) >= VALUES_MAX;
  const searched = useValues(info.field, VALUES_MAX, find.trim(), cut && find.trim() !== "");
  if (problem) return <p class="bad pad">{problem.message}</p>;
  if (!values) return <p class="dim pad">{T.loading}</p>;
  const lower = find.trim().toLowerCase();
  const all = cut && lower ? (searched.values ?? values) : values;
  const matches = all
    .map(({ value, count }) => ({ text: textOf(value), count }))
    .filter(({ text }) => text.toLowerCase().includes(lower));
  const shown = n === VALUES_FIRST ? matches.slice(0, VALUES_FIRST) : matches;
  return (
    <>
      {n !== VALUES_FIRST && (
        <input
          class="find-value"
          value={find}
          onInput={(event) => setFind(event.currentTarget.value)}
          placeholder={T.findValue}
          aria-label={T.findValue}
        />
      )}
      <ul class="values">
        {shown.map(({ text, count }) => (
          <li key={text}>
            <button
              type="button"
              class={`plain value ${LEVELS.includes(info.field) ? `tone-${toneOf(text)}` : ""}`}
              title={`${text}\n${number(count)} · ${percent(count / Math.max(1, rows))}\n${T.valueHint}`}
              onClick={(event) => applyFilter(info.field, text, event.altKey)}
            >
              <span class="text">
                {text === "" ? T.emptyValue : <Parts parts={textParts(text.slice(0, 200))} />}
              </span>
              <span class="count">{countText(count)}</span>
              <Bar share={count / Math.max(1, rows)} />
            </button>
            <FilterButtons field={info.field} value={text} />
          </li>
        ))}
      </ul>
      {n === VALUES_FIRST && values.length > VALUES_FIRST && (
        <Button class="link pad" onClick={() => setN(VALUES_MAX)}>
          {T.moreValues}
        </Button>
      )}
      {cut && all.length >= VALUES_MAX && <p class="dim pad">{T.valuesCut(number(VALUES_MAX))}</p>}
      {searched.problem && <p class="bad pad">{searched.problem.message}</p>}
    </>
  );
}

const BINS = 24;
const PLOT = { width: 196, height: 44 };

/** A part of a histogram, from 0 to 1, with the whole of the bars that it touches. */
const wholeBins = ([a, b]: [number, number]): [number, number] => [
  Math.floor(Math.min(a, b) * BINS) / BINS,
  Math.ceil(Math.max(a, b) * BINS) / BINS,
];

/** The numbers of a field: their ends, and how many lie in each part between them, if that can be known. */
interface Spread {
  low: number;
  high: number;
  log: boolean;
  bins: number[] | null;
}

interface Stats {
  count: number;
  min: number;
  max: number;
  p50: number;
}

/** Counts the numbers of a field. The most frequent values are no sample: all of them are counted, or none. */
async function spreadOf(
  info: FieldInfo,
  q: string,
  span: Resolved,
  signal: AbortSignal,
): Promise<Spread | null> {
  const { field } = info;
  const scope = { q, from: span.from, to: span.to };
  const [[stats]] = await objects<Stats>("api/v1/stats", { field, ...scope }, signal);
  if (!stats) return null;
  const { min: low, max: high } = stats;
  const log = isLog(low, high, stats.p50);
  const made = { low, high, log };
  if (info.distinct <= NUMBERS_MAX * 0.8) {
    const [values] = await objects<Value>("api/v1/top", { field, n: NUMBERS_MAX, ...scope }, signal);
    const points = values
      .map(({ value, count }) => ({ value: Number(value), count }))
      .filter(({ value }) => Number.isFinite(value));
    if (values.length < NUMBERS_MAX) return { ...made, bins: binsOf(points, low, high, log, BINS) };
  }
  const [a, b] = [scaled(low, log), scaled(high, log)];
  const column = `CAST("${field.replaceAll('"', '""')}" AS DOUBLE)`;
  const place = `floor((${log ? `log10(${column} + 1)` : column} - ${a}) * ${BINS / Math.max(1e-12, b - a)})`;
  const statement = `SELECT ${place} AS bin, count(*) AS n FROM logs WHERE ${column} IS NOT NULL GROUP BY 1`;
  try {
    const rows = await sql<{ bin: number; n: number }>(statement, scope, signal);
    const bins = new Array<number>(BINS).fill(0);
    for (const { bin, n } of rows) bins[Math.min(BINS - 1, Math.max(0, Number(bin)))]! += n;
    return { ...made, bins };
  } catch (error) {
    // A server without SQL knows the ends only.
    if (isAbort(error)) throw error;
    return { ...made, bins: null };
  }
}

function useSpread(info: FieldInfo): { spread: Spread | null | undefined; problem: Problem | null } {
  const [found, setFound] = useState<{ spread: Spread | null | undefined; problem: Problem | null }>({
    spread: undefined,
    problem: null,
  });
  useEffect(() => {
    const question = shownQuestion();
    if (!question) return;
    const control = new AbortController();
    spreadOf(info, question.q, question.span, control.signal).then(
      (spread) => setFound({ spread, problem: null }),
      (error: unknown) => {
        if (!isAbort(error)) setFound({ spread: undefined, problem: problemFrom(error) });
      },
    );
    return () => control.abort();
  }, [fields.value, info.field]);
  return found;
}

/** A number as a small histogram. Dragging, or the two fields, choose a part of it. */
function Numbers({ info }: { info: FieldInfo }) {
  const { spread, problem } = useSpread(info);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const box = useRef<SVGSVGElement>(null);
  if (problem) return <p class="bad pad">{problem.message}</p>;
  if (spread === undefined) return <p class="dim pad">{T.loading}</p>;
  if (!spread) return <p class="dim pad">{T.noNumbers}</p>;
  const { low, high, log, bins } = spread;
  const [a, b] = [scaled(low, log), scaled(high, log)];
  const unscale = (value: number) => (log ? 10 ** value - 1 : value);
  const most = Math.max(1, ...(bins ?? []));
  const at = (event: PointerEvent) => {
    const rect = box.current!.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - rect.left) / rect.width));
  };
  const round = (value: number) =>
    info.types.includes("float") ? Number(value.toPrecision(4)) : Math.round(value);
  const select = (from: number, to: number) =>
    ask({
      lang: "q",
      q: between(
        textIn("q"),
        info.field,
        round(unscale(a + from * (b - a))),
        round(unscale(a + to * (b - a))),
      ),
    });
  return (
    <div class="numbers">
      <svg
        ref={box}
        viewBox={`0 0 ${PLOT.width} ${PLOT.height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={T.numbersLabel(info.field, shortNumber(low), shortNumber(high))}
        onPointerDown={(event) => {
          box.current!.setPointerCapture(event.pointerId);
          setDrag([at(event), at(event)]);
        }}
        onPointerMove={(event) => {
          if (drag) setDrag([drag[0], at(event)]);
        }}
        onPointerUp={() => {
          if (drag && Math.abs(drag[1] - drag[0]) > 0.02) select(...wholeBins(drag));
          setDrag(null);
        }}
      >
        {bins?.map((count, index) => {
          const size = count ? Math.max(1.5, (count / most) * PLOT.height) : 0;
          return (
            <rect
              x={(index * PLOT.width) / BINS}
              y={PLOT.height - size}
              width={PLOT.width / BINS - 1}
              height={size}
            />
          );
        })}
        {drag && (
          <rect
            class="chosen"
            x={wholeBins(drag)[0] * PLOT.width}
            width={(wholeBins(drag)[1] - wholeBins(drag)[0]) * PLOT.width}
            y={0}
            height={PLOT.height}
          />
        )}
      </svg>
      <p class="numbers-axis" aria-hidden="true">
        {[0, 0.5, 1].map((part) => (
          <span>{shortNumber(round(unscale(a + part * (b - a))))}</span>
        ))}
      </p>
      <Bounds field={info.field} low={low} high={high} />
      {!bins && <p class="dim">{T.noBins}</p>}
    </div>
  );
}

/** The two ends of a range of numbers, to be typed. They show those of the query. */
function Bounds({ field, low, high }: { field: string; low: number; high: number }) {
  const { q } = state.value;
  const known = boundsOf(q, field);
  const shown: [string, string] = [known.low ?? String(low), known.high ?? String(high)];
  const [texts, setTexts] = useState(shown);
  useEffect(() => setTexts(shown), [q, ...shown]);
  const submit = (event: Event) => {
    event.preventDefault();
    // An end that is left empty is that of the values.
    const [from, to] = [Number(texts[0].trim() || low), Number(texts[1].trim() || high)];
    if (Number.isFinite(from) && Number.isFinite(to))
      ask({ lang: "q", q: between(textIn("q"), field, Math.min(from, to), Math.max(from, to)) });
  };
  return (
    <form onSubmit={submit}>
      <input
        name="low"
        inputMode="decimal"
        value={texts[0]}
        onInput={(event) => setTexts([event.currentTarget.value, texts[1]])}
        aria-label={T.atLeast(field)}
      />
      <span>–</span>
      <input
        name="high"
        inputMode="decimal"
        value={texts[1]}
        onInput={(event) => setTexts([texts[0], event.currentTarget.value])}
        aria-label={T.atMost(field)}
      />
      <button type="submit" aria-label={T.applyRange(field)}>
        ⊕
      </button>
    </form>
  );
}
