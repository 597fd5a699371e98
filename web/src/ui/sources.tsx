// Who sends, and who fell silent: the last day against the last quarter of an hour.

import { useEffect, useState } from "preact/hooks";
import { isAbort, lines, objects, problemFrom, type Problem } from "../api/client";
import { quote } from "../lib/query";
import { durationText, isoOf, msOf, timeText } from "../lib/time";
import { ask, run, state } from "../state/url";
import { T } from "../strings";
import { Bar, Button, ProblemText, Sparkline, number } from "./parts";

interface Source {
  name: string;
  day: number;
  recent: number;
  /** Records in each part of the day, if the server has counted them. */
  parts?: number[];
  /** The time of its last record, if that was asked for. */
  last?: string;
}
const SOURCE_FIELDS = ["hostname", "app", "host", "service_name", "SYSLOG_IDENTIFIER"];
const DAY_MS = 86_400_000;
const QUIET_MS = 15 * 60_000;
const STEP = "30m";
/** Sources that are listed, and silent ones whose last record is looked for. */
const SOURCES_MAX = 200;
const LAST_MAX = 20;
const SHOWN_MAX = 100;

/** The silent ones first, and of these the busiest. */
export function bySilence(list: Source[]): Source[] {
  return [...list].sort((a, b) => Number(a.recent > 0) - Number(b.recent > 0) || b.day - a.day);
}

async function load(field: string, now: number, signal: AbortSignal): Promise<Source[]> {
  const range = (from: number) => ({ from: isoOf(from), to: isoOf(now) });
  const top = (from: number) =>
    objects<{ value: unknown; count: number }>(
      "api/v1/top",
      { field, n: SOURCES_MAX, ...range(from) },
      signal,
    );
  const [day] = await top(now - DAY_MS);
  if (!day.length) return [];
  const [recent] = await top(now - QUIET_MS);
  const lately = new Map(recent.map(({ value, count }) => [String(value), count]));
  const list: Source[] = day.map(({ value, count }) => ({
    name: String(value),
    day: count,
    recent: lately.get(String(value)) ?? 0,
  }));
  const silent = bySilence(list)
    .filter((source) => source.recent === 0)
    .slice(0, LAST_MAX);
  for (const source of silent) {
    const [[row]] = await objects<{ _time: string }>(
      "api/v1/query",
      {
        q: `${field}=${quote(source.name)}`,
        limit: 1,
        direction: "backward",
        clip: 1,
        ...range(now - DAY_MS),
      },
      signal,
    );
    if (row) source.last = row._time;
  }
  const [buckets] = await objects<{ by?: Record<string, number> }>(
    "api/v1/histogram",
    { by: field, step: STEP, ...range(now - DAY_MS) },
    signal,
  );
  const counted = new Set(buckets.flatMap(({ by }) => Object.keys(by ?? {})));
  for (const source of list)
    if (counted.has(source.name)) source.parts = buckets.map(({ by }) => by?.[source.name] ?? 0);
  return list;
}

export function Sources() {
  const [field, setField] = useState("hostname");
  const [picked, setPicked] = useState(false);
  const [list, setList] = useState<Source[] | null>(null);
  const [at, setAt] = useState(0);
  const [problem, setProblem] = useState<Problem | null>(null);
  /** Records of the day, if none of them says who sent it. */
  const [nameless, setNameless] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    const now = Date.now();
    (async () => {
      const found = await load(field, now, control.signal);
      const next = SOURCE_FIELDS[SOURCE_FIELDS.indexOf(field) + 1];
      if (!found.length && !picked && next) return setField(next);
      const day = { from: isoOf(now - DAY_MS), to: isoOf(now), count: true };
      setNameless(
        found.length ? 0 : (await lines("api/v1/query", day, control.signal, () => undefined)).rows,
      );
      setAt(now);
      setList(found);
      setProblem(null);
    })().catch((error: unknown) => {
      if (!isAbort(error)) setProblem(problemFrom(error));
    });
    return () => control.abort();
  }, [field, run.value]);
  const silent = list?.filter(({ recent }) => recent === 0).length ?? 0;
  return (
    <section class="card wide sources">
      <h2>
        {T.cluster.sources}{" "}
        <label>
          {T.cluster.by}{" "}
          <select
            value={field}
            onChange={(event) => {
              setPicked(true);
              setField(event.currentTarget.value);
            }}
          >
            {SOURCE_FIELDS.map((name) => (
              <option>{name}</option>
            ))}
          </select>
        </label>
        {silent > 0 && <small class="state-warn">{T.cluster.silentCount(silent)}</small>}
      </h2>
      {problem ? (
        <ProblemText problem={problem} />
      ) : !list ? (
        <p class="dim">{T.loading}</p>
      ) : !list.length ? (
        <p class="dim">
          {nameless
            ? T.cluster.noSender(number(nameless), picked ? field : SOURCE_FIELDS.join(", "))
            : T.cluster.noSources}
        </p>
      ) : (
        <SourceTable field={field} list={list} at={at} />
      )}
    </section>
  );
}

function SourceTable({ field, list, at }: { field: string; list: Source[]; at: number }) {
  const most = Math.max(1, ...list.map(({ day }) => day));
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label={T.cluster.sources}>
      <table class="data">
        <thead>
          <tr>
            <th scope="col">{field}</th>
            <th scope="col">{T.cluster.state}</th>
            <th scope="col" class="num">
              {T.cluster.last24}
            </th>
            <th scope="col" class="wide-only">
              {T.cluster.rate}
            </th>
            <th scope="col" class="num">
              {T.cluster.last15}
            </th>
            <th scope="col">{T.cluster.lastSeen}</th>
          </tr>
        </thead>
        <tbody>
          {bySilence(list)
            .slice(0, SHOWN_MAX)
            .map(({ name, day, recent, parts, last }) => (
              <tr key={name}>
                <td>
                  <Button
                    class="link"
                    onClick={() => ask({ view: "search", q: `${field}=${quote(name)}`, from: "24h", to: "" })}
                  >
                    {name || T.emptyValue}
                  </Button>
                </td>
                <td class={recent ? "state-good" : "state-warn"}>
                  {recent
                    ? T.cluster.sends
                    : last
                      ? T.cluster.silentFor(durationText(at - msOf(last)))
                      : T.cluster.quiet}
                </td>
                <td class="num">{number(day)}</td>
                <td class="wide-only share">
                  {parts ? (
                    <Sparkline values={parts} label={T.overTime} width={144} />
                  ) : (
                    <Bar share={day / most} />
                  )}
                </td>
                <td class="num">{number(recent)}</td>
                <td>{last ? timeText(last, state.value.tz, "minute") : ""}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </div>
  );
}
