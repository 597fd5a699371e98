// Alert rules with their state; a rule made from a query, and tested against the past.

import { useEffect, useState } from "preact/hooks";
import { isAbort, json, problemFrom, type Problem } from "../api/client";
import { own } from "../lib/own";
import { logqlOf } from "../lib/translate";
import { durationText, timeText, type Resolved } from "../lib/time";
import { range, type Series } from "../state/results";
import { ask, run, state } from "../state/url";
import { T } from "../strings";
import { Chart } from "./numbers";
import { Button, Gaps, ProblemText, copy, number } from "./parts";

interface Alert {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  state: string;
  activeAt?: string;
  value: string;
}
interface Rule {
  name: string;
  query: string;
  type: string;
  health: string;
  lastError?: string;
  state?: string;
  duration?: number;
  labels: Record<string, string>;
  annotations?: Record<string, string>;
  alerts?: Alert[];
  lastEvaluation?: string;
  evaluationTime?: number;
}
interface Group {
  name: string;
  file: string;
  interval: number;
  rules: Rule[];
}

const REFRESH_MS = 10_000;
/** The longest past of a test, and its points. */
const PAST_MS_MAX = 31 * 86_400_000;
const POINTS = 500;
const ORDER: Record<string, number> = { firing: 0, pending: 1, inactive: 2 };

export function Alerts() {
  const [groups, setGroups] = useState<Group[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const control = new AbortController();
    const load = () =>
      json<{ data: { groups: Group[] } }>("prometheus/api/v1/rules", {}, { signal: control.signal }).then(
        ({ data }) => {
          setGroups(data.groups);
          setProblem(null);
        },
        (error: unknown) => {
          if (!isAbort(error)) setProblem(problemFrom(error));
        },
      );
    void load();
    const timer = setInterval(() => {
      if (!document.hidden) void load();
    }, REFRESH_MS);
    return () => {
      clearInterval(timer);
      control.abort();
    };
  }, [run.value]);
  const rules = (groups ?? []).flatMap((group) => group.rules.map((rule) => ({ group, rule })));
  rules.sort((a, b) => (ORDER[a.rule.state ?? ""] ?? 3) - (ORDER[b.rule.state ?? ""] ?? 3));
  return (
    <main class="screen scroll alerts" id="main" tabIndex={0}>
      <h1 class="sr">{T.views.alerts}</h1>
      <Gaps />
      {problem && <ProblemText problem={problem} />}
      <section class="card wide">
        <h2>
          {T.alerts.rules} <small>{groups ? number(rules.length) : ""}</small>
        </h2>
        {groups === null ? (
          !problem && <p class="dim">{T.loading}</p>
        ) : rules.length === 0 ? (
          <p>
            {T.alerts.none} <code>logpond serve --alert-rules rules.yml</code>
          </p>
        ) : (
          rules.map(({ group, rule }) => (
            <RuleRow key={`${group.file} ${group.name} ${rule.name}`} group={group} rule={rule} />
          ))
        )}
      </section>
      <Maker />
    </main>
  );
}

/** A time of a rule, to the second. */
const secondText = (time: string) =>
  timeText(time.replace(/\.\d+/, ""), state.value.tz, "full").replace(".000", "");

/** A value as Prometheus writes it, `7.2e+02`, as people do. */
export function valueText(text: string): string {
  const value = Number(text);
  return text.trim() && Number.isFinite(value)
    ? value.toLocaleString("en-US", { maximumSignificantDigits: 6 })
    : text;
}

function RuleRow({ group, rule }: { group: Group; rule: Rule }) {
  const alerts = rule.alerts ?? [];
  const status = rule.health === "err" ? "error" : (rule.state ?? rule.health);
  return (
    <details class={`rule rule-${status}`} open={rule.state === "firing"}>
      <summary>
        <span class="badge">{own(T.alerts.states, status) ?? status}</span> <b>{rule.name}</b>{" "}
        <span class="dim">{group.name}</span>
        {alerts.length > 0 && <span> · {T.alerts.active(alerts.length)}</span>}
      </summary>
      {rule.lastError && <p class="bad">{rule.lastError}</p>}
      <pre tabIndex={0}>
        <code>{rule.query}</code>
      </pre>
      <p class="dim">
        {rule.duration ? `${T.alerts.for} ${durationText(rule.duration * 1000)} · ` : ""}
        {T.alerts.every} {durationText(group.interval * 1000)}
        {rule.lastEvaluation && !rule.lastEvaluation.startsWith("0001")
          ? ` · ${T.alerts.evaluated} ${secondText(rule.lastEvaluation)}`
          : ""}
      </p>
      <Button onClick={() => ask({ view: "search", lang: "logql", q: rule.query })}>
        {T.alerts.openQuery}
      </Button>
      {rule.type === "alerting" && <History rule={rule} />}
      {alerts.length > 0 && (
        <table class="data">
          <thead>
            <tr>
              <th scope="col">{T.alerts.state}</th>
              <th scope="col">{T.alerts.labels}</th>
              <th scope="col" class="num">
                {T.value}
              </th>
              <th scope="col">{T.alerts.since}</th>
            </tr>
          </thead>
          <tbody>
            {alerts.slice(0, 200).map((alert) => (
              <tr>
                <td>{own(T.alerts.states, alert.state) ?? alert.state}</td>
                <td>
                  {Object.entries(alert.labels).map(([name, value]) => (
                    <span class="label">
                      {name}={value}
                    </span>
                  ))}
                  {alert.annotations.summary && <p>{alert.annotations.summary}</p>}
                </td>
                <td class="num">{valueText(alert.value)}</td>
                <td>{alert.activeAt ? secondText(alert.activeAt) : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </details>
  );
}

/** The part of a range that a rule is tested against. */
const pastOf = (span: Resolved): Resolved => ({
  ...span,
  fromMs: Math.max(span.fromMs, span.toMs - PAST_MS_MAX),
});

/** The numbers of an expression over the range of the page. */
async function evaluate(query: string): Promise<Series[]> {
  const span = pastOf(range.value!);
  const from = span.fromMs;
  const step = Math.max(15, Math.ceil((span.toMs - from) / 1000 / POINTS));
  const { data } = await json<{
    data: { result: { metric: Record<string, string>; values?: [number, string][] }[] };
  }>("loki/api/v1/query_range", {
    query,
    start: new Date(from).toISOString(),
    end: span.to,
    step,
  });
  return data.result.map(({ metric, values }) => ({
    name:
      Object.entries(metric)
        .map(([label, value]) => `${label}=${value}`)
        .join(" ") || T.value,
    labels: metric,
    points: (values ?? []).map(([at, text]) => [at, Number(text)]),
  }));
}

/** When a rule would have fired in the range of the page: its expression has numbers only while its condition holds. */
function History({ rule }: { rule: Rule }) {
  const [result, setResult] = useState<Test | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const show = () =>
    evaluate(rule.query).then(
      (series) => setResult({ series, fired: firings(series.map(gaps), -Infinity, rule.duration ?? 0) }),
      (error: unknown) => setProblem(problemFrom(error)),
    );
  return (
    <>
      <Button onClick={() => void show()}>{T.alerts.history}</Button>
      {problem && <ProblemText problem={problem} />}
      {result && <Fired result={result} />}
    </>
  );
}

/** Puts a number that never fires between points that do not follow each other. */
function gaps(series: Series): Series {
  const steps = series.points.slice(1).map(([at], index) => at - series.points[index]![0]);
  const step = Math.min(...steps);
  const points = series.points.flatMap((point, index): [number, number][] =>
    steps[index]! > step * 1.5 ? [point, [point[0] + step, -Infinity]] : [point],
  );
  return { ...series, points };
}

function Fired({ result }: { result: Test }) {
  return (
    <div role="status">
      <p>{result.fired.length ? T.alerts.wouldFire(result.fired.length) : T.alerts.wouldNot}</p>
      {result.fired.length > 0 && (
        <ul class="firings">
          {result.fired.slice(0, 20).map(([from, to]) => (
            <li>
              <Button
                class="link"
                onClick={() =>
                  ask({
                    view: "search",
                    from: new Date((from - 600) * 1000).toISOString(),
                    to: new Date((to + 600) * 1000).toISOString(),
                  })
                }
              >
                {timeText(from * 1000, state.value.tz, "full")}
              </Button>{" "}
              · {durationText((to - from) * 1000)}
            </li>
          ))}
        </ul>
      )}
      <Chart list={result.series} height={180} span={pastOf(range.value!)} limit={result.limit} />
    </div>
  );
}

/** A text as YAML. Words that YAML would take for something else are quoted. */
export const quoteYaml = (text: string) =>
  /^[A-Za-z][\w ./-]*$/.test(text) && !/^(?:true|false|yes|no|on|off|null|y|n)$|\s$/i.test(text)
    ? text
    : JSON.stringify(text);

/** A duration of a rule such as `1h30m`, in seconds, or null if it is none. */
export function ruleSeconds(text: string): number | null {
  const units: Record<string, number> = {
    ms: 0.001,
    s: 1,
    m: 60,
    h: 3600,
    d: 86_400,
    w: 604_800,
    y: 31_536_000,
  };
  if (!/^(?:\d+(?:ms|[smhdwy]))+$/.test(text)) return text === "0" ? 0 : null;
  return [...text.matchAll(/(\d+)(ms|[smhdwy])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * units[unit!]!,
    0,
  );
}

interface Test {
  series: Series[];
  /** The value above which it fires; a rule has its own in its expression. */
  limit?: number;
  fired: [number, number][];
}

function Maker() {
  const { q, lang } = state.value;
  const known = lang === "logql" ? q : logqlOf(q);
  const [name, setName] = useState("Errors");
  const [expr, setExpr] = useState("");
  const [limit, setLimit] = useState("10");
  const [duration, setDuration] = useState("2m");
  const [severity, setSeverity] = useState("page");
  const [result, setResult] = useState<Test | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const isNumber =
    known !== null && /\b(?:count_over_time|rate|sum|avg|max|min|quantile|topk|bytes_)/.test(known);
  useEffect(() => {
    setExpr(known === null ? "" : isNumber ? known : `sum(count_over_time(${known} [5m]))`);
    setResult(null);
  }, [q, lang]);

  const above = limit.trim() === "" ? NaN : Number(limit);
  const seconds = ruleSeconds(duration.trim());
  const wrong = {
    limit: Number.isFinite(above) ? "" : T.alerts.noNumber,
    duration: seconds === null ? T.alerts.noDuration : "",
    name: name.trim() ? "" : T.alerts.noName,
  };
  const usable = expr.trim() !== "" && !Object.values(wrong).some(Boolean);
  const whole = `${expr} > ${limit.trim()}`;
  const yaml = `groups:\n  - name: ${quoteYaml(name.toLowerCase())}\n    rules:\n      - alert: ${quoteYaml(name)}\n        expr: ${JSON.stringify(whole)}\n        for: ${duration.trim()}\n        labels:\n          severity: ${quoteYaml(severity)}\n        annotations:\n          summary: ${JSON.stringify(`${name}: {{ $value }}`)}\n`;

  const test = async () => {
    setProblem(null);
    try {
      const series = await evaluate(expr);
      setResult({ series, limit: above, fired: firings(series, above, seconds ?? 0) });
    } catch (error) {
      if (!isAbort(error)) setProblem(problemFrom(error));
    }
  };

  return (
    <section class="card wide maker">
      <h2>{T.alerts.make}</h2>
      {known === null && <p class="warn">{T.alerts.noLogql}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (usable) void test();
        }}
      >
        <label class="grow">
          {T.alerts.expression}
          <input
            value={expr}
            spellcheck={false}
            onInput={(event) => setExpr(event.currentTarget.value)}
            placeholder={'sum(count_over_time({app="shop"} |= "error" [5m]))'}
          />
        </label>
        <RuleField label={T.alerts.above} value={limit} set={setLimit} size={6} wrong={wrong.limit} />
        <RuleField label={T.alerts.for} value={duration} set={setDuration} size={5} wrong={wrong.duration} />
        <RuleField label={T.alerts.name} value={name} set={setName} size={12} wrong={wrong.name} />
        <label>
          {T.alerts.severity}
          <input value={severity} size={8} onInput={(event) => setSeverity(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary" disabled={!usable}>
          {T.alerts.test}
        </button>
      </form>
      {problem && <ProblemText problem={problem} />}
      {result && <Fired result={result} />}
      {usable && (
        <>
          <p class="dim">{T.alerts.howTo}</p>
          <pre tabIndex={0}>
            <code>{yaml}</code>
          </pre>
          <Button onClick={() => void copy(yaml)}>{T.alerts.copyRule}</Button>
        </>
      )}
    </section>
  );
}

interface RuleFieldProps {
  label: string;
  value: string;
  set: (value: string) => void;
  size: number;
  /** Why the value is none, or nothing. */
  wrong: string;
}

function RuleField({ label, value, set, size, wrong }: RuleFieldProps) {
  return (
    <label>
      {label}
      <input
        value={value}
        size={size}
        aria-invalid={wrong !== ""}
        onInput={(event) => set(event.currentTarget.value)}
      />
      {wrong && (
        <span class="bad" role="alert">
          {wrong}
        </span>
      )}
    </label>
  );
}

/** The spans during which a rule fires: above the limit for at least so long. */
export function firings(list: Series[], limit: number, forSeconds: number): [number, number][] {
  const found: [number, number][] = [];
  for (const { points } of list) {
    let start: number | null = null;
    let last = 0;
    for (const [at, value] of points) {
      if (value > limit) {
        start ??= at;
        last = at;
      } else if (start !== null) {
        if (last - start >= forSeconds) found.push([start + forSeconds, last]);
        start = null;
      }
    }
    if (start !== null && last - start >= forSeconds) found.push([start + forSeconds, last]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}
