// Access logs: articles, bytes, hosts; then status, paths, clients. Every number leads to its lines.

import { useEffect, useState } from "preact/hooks";
import { isAbort, json, lines, objects, problemFrom, sql, ApiError, type Problem } from "../api/client";
import { isComparable } from "../lib/compare";
import { exceptAddress } from "../lib/networks";
import { include, stateOf, topTerms, without, withoutTerm } from "../lib/query";
import { textOf } from "../lib/record";
import { hoursOfDay, isoOf, msOf, secondsOfSql, stepMs, zoneName, type Resolved } from "../lib/time";
import { fields, range, type FieldInfo, type Series } from "../state/results";
import { ask, go, nativeText, state, tweak } from "../state/url";
import { T } from "../strings";
import { applyFilter, TopValue } from "./detail";
import { Bar, Button, Gaps, ProblemText, bytesText, number, percent, shortNumber } from "./parts";
import { Chart } from "./numbers";

const BASE = "status:* remote_addr:*";
const ROWS = 10;
const OWN_KEY = "logpond-own-addresses";

/** Paths of what pages are made of. */
const FILES = String.raw`/\.(js|css|png|jpe?g|gif|svg|ico|woff2?|map|webp|txt|xml)$/i`;

/** A longer range has more half hours than a histogram may have. */
const HOURS_SPAN_MS_MAX = 200 * 86_400_000;

/** Words of agents that say they are programs. */
const BOTS = String.raw`agent!~/bot|crawl|spider|slurp|preview|monitor|curl|wget|python-requests|go-http-client/i`;

interface Panel {
  title: string;
  field: string;
  q?: string;
  needs?: string;
  help?: string;
}
const PANELS: Panel[] = [
  { title: T.access.status, field: "status" },
  { title: T.access.notFound, field: "path", q: "status=404" },
  { title: T.access.errors, field: "path", q: "status>=500" },
  { title: T.access.staticFiles, field: "path", q: `path~${FILES}` },
  { title: T.access.referers, field: "referer_host" },
  { title: T.access.clients, field: "remote_addr" },
  { title: T.access.countries, field: "geo_country", needs: "geo_country" },
  { title: T.access.networks, field: "geo_organization", needs: "geo_organization" },
  { title: T.access.agents, field: "agent" },
  { title: T.access.methods, field: "method" },
  { title: T.access.protocols, field: "protocol" },
  { title: T.access.tls, field: "ssl_protocol", needs: "ssl_protocol" },
];
const DURATIONS = [
  "request_time",
  "duration",
  "request_duration",
  "upstream_response_time",
  "duration_ms",
  "response_time",
];

const ownList = (own: string) => own.split(/[\s,]+/).filter(Boolean);

const ownQuery = (own: string) =>
  ownList(own)
    .map((text) => exceptAddress("remote_addr", text))
    .filter((condition) => condition !== null)
    .join(" ");

export function Access() {
  const span = range.value;
  useEffect(() => {
    const known = localStorage.getItem(OWN_KEY);
    if (known && !state.value.own) tweak({ own: known });
  }, []);
  return span ? <Panels span={span} /> : <main class="screen scroll" id="main" tabIndex={0} />;
}

function Panels({ span }: { span: Resolved }) {
  const { q, own, bots } = state.value;
  const filter = (more = "") =>
    [BASE, /\bOR\b/.test(q) ? `(${q})` : q === "*" ? "" : q, ownQuery(own), bots ? "" : BOTS, more]
      .filter(Boolean)
      .join(" ");
  const terms = topTerms(q) ?? [];
  const unknown = ownList(own).filter((text) => exceptAddress("remote_addr", text) === null);
  const bytes = useBytes(span, filter());
  return (
    <main class="screen scroll access" id="main" tabIndex={0}>
      <h1 class="sr">{T.views.access}</h1>
      <div class="toolbar">
        <label class="own">
          {T.access.own}
          <input
            value={own}
            placeholder="203.0.113.7"
            onChange={(event) => {
              go({ own: event.currentTarget.value });
              localStorage.setItem(OWN_KEY, event.currentTarget.value);
            }}
          />
        </label>
        {unknown.length > 0 && (
          <span class="bad" role="alert">
            {T.access.noAddress(unknown.join(", "))}
          </span>
        )}
        <label>
          <input type="checkbox" checked={!bots} onChange={() => go({ bots: !bots })} /> {T.access.hideBots}
        </label>
        <span class="spacer" />
        {terms.map(({ text }) => (
          <Button
            class="chip"
            label={T.removeFilter(text)}
            onClick={() => ask({ q: withoutTerm(nativeText(), text) ?? withoutTerm(q, text) ?? q })}
          >
            {text} ✕
          </Button>
        ))}
        <Button onClick={() => ask({ view: "search", q: filter() })}>{T.showRecords}</Button>
      </div>
      <Gaps />
      <Numbers span={span} filter={filter} bytes={bytes} />
      <div class="panels">
        <Articles span={span} filter={filter} />
        <Outbound bytes={bytes} />
        <Top span={span} panel={{ title: T.access.hosts, field: "host" }} q={filter()} />
        {PANELS.map((panel) => (
          <Top key={panel.title} span={span} panel={panel} q={filter(panel.q)} />
        ))}
        <Hours span={span} q={filter()} />
        <Slowest span={span} filter={filter} />
      </div>
    </main>
  );
}

type Filter = (more?: string) => string;

function useAnswer<R>(
  work: (signal: AbortSignal) => Promise<R>,
  keys: unknown[],
): [R | null, Problem | null] {
  const [found, setFound] = useState<R | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const control = new AbortController();
    work(control.signal).then(
      (result) => {
        setFound(result);
        setProblem(null);
      },
      (error: unknown) => {
        if (!isAbort(error)) setProblem(problemFrom(error));
      },
    );
    return () => control.abort();
  }, keys);
  return [found, problem];
}

const countOf = async (q: string, from: string, to: string, signal: AbortSignal) =>
  (await lines("api/v1/query", { q, from, to, count: true }, signal, () => undefined)).rows;

/** Numbers of the whole range, and of the range before. */
function Numbers({ span, filter, bytes }: { span: Resolved; filter: Filter; bytes: Bytes }) {
  const q = filter();
  const [found] = useAnswer(
    async (signal) => {
      const requests = await countOf(q, span.from, span.to, signal);
      const [list] = await objects<FieldInfo>("api/v1/fields", { q, from: span.from, to: span.to }, signal);
      fields.value = list;
      const failed = await countOf(filter("status>=500"), span.from, span.to, signal);
      const length = span.toMs - span.fromMs;
      const before =
        span.fromMs > 0
          ? await countOf(q, new Date(span.fromMs - length).toISOString(), span.from, signal)
          : 0;
      return { requests, visitors: list.find(({ field }) => field === "remote_addr"), failed, before };
    },
    [q, span.from, span.to],
  );
  const change =
    found && isComparable(found.before, found.requests) ? found.requests / found.before - 1 : null;
  return (
    <dl class="figures">
      <div>
        <dt>{T.access.requests}</dt>
        <dd>
          {found ? (
            <Button class="plain" onClick={() => ask({ view: "search", q })}>
              {number(found.requests)}
            </Button>
          ) : (
            "…"
          )}
          {change !== null && (
            <small title={T.access.before}>
              {change >= 0 ? "+" : "−"}
              {percent(Math.abs(change))}
            </small>
          )}
        </dd>
      </div>
      <div>
        <dt>{T.access.visitors}</dt>
        <dd>
          {found ? (
            <>
              {found.visitors && !found.visitors.distinct_is_exact ? "≈ " : ""}
              <Button class="plain" onClick={() => ask({ view: "search", q: filter("remote_addr:*") })}>
                {number(found.visitors?.distinct ?? 0)}
              </Button>
            </>
          ) : (
            "…"
          )}
        </dd>
      </div>
      <div>
        <dt>{T.access.out}</dt>
        <dd
          title={
            !bytes.filtered ? T.access.notFiltered : bytes.total === null ? undefined : number(bytes.total)
          }
        >
          {!bytes.filtered ? (
            // A number of other requests beside those of the filters would be taken for theirs.
            <>
              – <small>{T.access.needsSql}</small>
            </>
          ) : bytes.total === null ? (
            bytes.known ? (
              "…"
            ) : (
              "–"
            )
          ) : (
            <Button class="plain" onClick={() => ask({ view: "search", q: filter("bytes:*") })}>
              {bytesText(bytes.total)}
            </Button>
          )}
        </dd>
      </div>
      <div>
        <dt>{T.access.failed}</dt>
        <dd>
          {found ? (
            <Button class="plain" onClick={() => ask({ view: "search", q: filter("status>=500") })}>
              {percent(found.failed / Math.max(1, found.requests))}
            </Button>
          ) : (
            "…"
          )}
        </dd>
      </div>
      <P95 span={span} filter={filter} />
    </dl>
  );
}

/** The field that says how long requests took, if records have one. */
const durationField = () => DURATIONS.find((field) => fields.value?.some((known) => known.field === field));

/** The duration that 95 of 100 requests keep within. */
function P95({ span, filter }: { span: Resolved; filter: Filter }) {
  const name = durationField();
  const q = name ? filter(`${name}:*`) : "";
  const [found, problem] = useAnswer(
    async (signal) => {
      if (!name) return null;
      return sql<{ p95: number | null }>(
        `SELECT approx_percentile_cont(${name}, 0.95) AS p95 FROM logs`,
        { q, from: span.from, to: span.to },
        signal,
      );
    },
    [q, span.from, span.to],
  );
  // Without SQL there is none.
  if (!name || problem) return null;
  const p95 = found?.[0]?.p95;
  return (
    <div>
      <dt>{T.access.p95}</dt>
      <dd>
        {p95 === null || p95 === undefined ? (
          "…"
        ) : (
          <Button class="plain" onClick={() => ask({ view: "search", q: filter(`${name}>=${p95}`) })}>
            {shortNumber(p95)}
          </Button>
        )}
        <small>{name}</small>
      </dd>
    </div>
  );
}

/** Requests by the hour of the day. */
function Hours({ span, q }: { span: Resolved; q: string }) {
  const zone = state.value.tz;
  const [found, problem] = useAnswer(
    async (signal) => {
      const [from, to] = await extentOf(span, q, signal);
      if (msOf(to) - msOf(from) > HOURS_SPAN_MS_MAX) return null;
      return objects<{ from: string; count: number }>(
        "api/v1/histogram",
        { q, from, to, step: "30m" },
        signal,
      );
    },
    [q, span.from, span.to],
  );
  if (!problem && !found) return null;
  const hours = found ? hoursOfDay(found[0], zone) : [];
  const most = Math.max(1, ...hours);
  return (
    <section class="card">
      <h2>
        {T.access.hours} <small>{zoneName(zone)}</small>
      </h2>
      {problem ? (
        <ProblemText problem={problem} />
      ) : (
        <ol class="hours">
          {hours.map((count, hour) => (
            <li key={hour} title={T.access.hour(hour, number(count))}>
              <span class="column" style={{ height: `${(100 * count) / most}%` }} />
              <span class="sr">{T.access.hour(hour, number(count))}</span>
              <span aria-hidden="true">{hour % 6 === 0 ? hour : ""}</span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

/** A range, or that of all records if it has no beginning. */
async function extentOf(span: Resolved, q: string, signal: AbortSignal): Promise<[from: string, to: string]> {
  if (span.fromMs > 0) return [span.from, span.to];
  const [found] = await objects<{ from: string; to: string }>(
    "api/v1/histogram",
    { q, from: span.from, to: span.to },
    signal,
  );
  return found.length ? [found[0]!.from, found.at(-1)!.to] : [isoOf(span.toMs - 3_600_000), span.to];
}

async function lengthOf(span: Resolved, q: string, signal: AbortSignal): Promise<number> {
  const [from, to] = await extentOf(span, q, signal);
  return msOf(to) - msOf(from);
}

interface Bytes {
  points: [number, number][] | null;
  total: number | null;
  filtered: boolean;
  problem: Problem | null;
  known: boolean;
}

/** Bytes over time: by SQL, which takes the filter of the page, or by the built-in query of LogQL, which does not. */
function useBytes(span: Resolved, q: string): Bytes {
  // SQL refuses a column that no record has.
  const known = fields.value?.some(({ field }) => field === "bytes") ?? false;
  const [found, problem] = useAnswer(
    async (signal) => {
      if (!known) return null;
      const step = Math.max(60_000, stepMs(await lengthOf(span, q, signal), 60));
      try {
        const rows = await sql<{ at: string; bytes: number | null }>(
          `SELECT date_bin(INTERVAL '${step / 1000} seconds', time) AS at, sum(bytes) AS bytes FROM logs GROUP BY at ORDER BY at`,
          { q, from: span.from, to: span.to },
          signal,
        );
        const points = rows.map(({ at, bytes }): [number, number] => [secondsOfSql(at), Number(bytes ?? 0)]);
        return { points, filtered: true };
      } catch (error) {
        if (!(error instanceof ApiError) || error.problem.status !== 501) throw error;
        // As a page, the answer says what it lacks.
        const { rows } = await json<{ rows: { time: string; value: number | null }[] }>(
          "api/query",
          { query: "outbound-bytes", from: span.from, to: span.to, step: `${step / 1000}s`, format: "page" },
          { signal },
        );
        return {
          points: rows.map(({ time, value }): [number, number] => [
            Date.parse(time.replace(/(\.\d{3})\d+/, "$1")) / 1000,
            value ?? 0,
          ]),
          filtered: false,
        };
      }
    },
    [q, span.from, span.to, known],
  );
  const total = found ? found.points.reduce((sum, [, value]) => sum + value, 0) : null;
  return { points: found?.points ?? null, total, filtered: found?.filtered ?? true, problem, known };
}

function Outbound({ bytes: { points, total, filtered, problem, known } }: { bytes: Bytes }) {
  const list: Series[] | null = points && [{ name: T.access.bytesSent, labels: {}, points }];
  return (
    <section class="card">
      <h2>
        {T.access.outbound} <small>{total === null ? "" : bytesText(total)}</small>
      </h2>
      {problem ? (
        <ProblemText problem={problem} />
      ) : list ? (
        <Chart list={list} height={190} format={bytesText} area quiet />
      ) : (
        <p class="dim">{known || !fields.value ? T.loading : T.access.none}</p>
      )}
      {!filtered && <p class="dim">{T.access.notFiltered}</p>}
    </section>
  );
}

interface Value {
  value: unknown;
  count: number;
}

function Articles({ span, filter }: { span: Resolved; filter: Filter }) {
  const [by, setBy] = useState<"path" | "referer">("path");
  const q =
    by === "path"
      ? filter(`method=GET status<400 path!~${FILES}`)
      : filter(String.raw`method=GET referer:* referer!="-" path!~/\.js$/`);
  return (
    <Top span={span} panel={{ title: T.access.articles, field: by }} q={q}>
      <span class="switch">
        <Button pressed={by === "path"} onClick={() => setBy("path")}>
          {T.access.byPage}
        </Button>
        <Button pressed={by === "referer"} onClick={() => setBy("referer")}>
          {T.access.byReferer}
        </Button>
      </span>
    </Top>
  );
}

function Top({
  span,
  panel,
  q,
  children,
}: {
  span: Resolved;
  panel: Panel;
  q: string;
  children?: preact.ComponentChildren;
}) {
  const known = fields.value;
  const missing = panel.needs !== undefined && !known?.some(({ field }) => field === panel.needs);
  const [found, problem] = useAnswer(
    async (signal) => {
      if (missing) return null;
      return objects<Value>(
        "api/v1/top",
        { field: panel.field, n: ROWS, q, from: span.from, to: span.to },
        signal,
      );
    },
    [q, span.from, span.to, panel.field, missing],
  );
  if (missing) return null;
  const values = found?.[0];
  return (
    <section class="card">
      <h2>
        {panel.title}
        {children}{" "}
        <Button
          class="plain query"
          label={T.access.viewQuery(panel.title)}
          onClick={() => ask({ view: "search", q })}
        >
          {T.show}
        </Button>
      </h2>
      {problem ? (
        <ProblemText problem={problem} />
      ) : !values ? (
        <p class="dim">{T.loading}</p>
      ) : !values.length ? (
        <p class="dim">{T.access.none}</p>
      ) : (
        <ol class="top">
          {values.map(({ value, count }) => {
            const text = textOf(value);
            const has = stateOf(state.value.q, panel.field, text);
            return (
              <TopValue
                key={text}
                field={panel.field}
                text={text}
                count={count}
                share={count / Math.max(1, values[0]!.count)}
                pressed={has === "included"}
                lines={() => include(without(q, panel.field, text), panel.field, text)}
              />
            );
          })}
        </ol>
      )}
    </section>
  );
}

function Slowest({ span, filter }: { span: Resolved; filter: Filter }) {
  const name = durationField();
  const q = name ? filter(`${name}:*`) : "";
  const [found, problem] = useAnswer(
    async (signal) => {
      if (!name) return null;
      return sql<{ path: string; p95: number; n: number }>(
        `SELECT path, approx_percentile_cont(${name}, 0.95) AS p95, count(*) AS n FROM logs GROUP BY path ORDER BY p95 DESC LIMIT ${ROWS}`,
        { q, from: span.from, to: span.to },
        signal,
      );
    },
    [q, span.from, span.to],
  );
  if (!name || (problem && problem.status === 501)) return null;
  return (
    <section class="card">
      <h2>
        {T.access.slowest} <small>p95, {name}</small>
      </h2>
      {problem ? (
        <ProblemText problem={problem} />
      ) : !found ? (
        <p class="dim">{T.loading}</p>
      ) : (
        <ol class="top">
          {found.map(({ path, p95, n }) => (
            <li>
              <button
                type="button"
                class="plain"
                title={`${path}\n${number(n)}`}
                onClick={() => applyFilter("path", path, false)}
              >
                <span class="text">{path}</span>
                <span class="count">{shortNumber(p95)}</span>
                <Bar share={p95 / Math.max(1e-9, found[0]!.p95)} />
              </button>
              <Button
                class="plain go"
                label={T.access.lines(path)}
                onClick={() => ask({ view: "search", q: include(q, "path", path) })}
              >
                →
              </Button>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
