// The TLS proxy, from its records: every number leads to the connections behind it.

import { useEffect, useState } from "preact/hooks";
import { isAbort, objects, problemFrom, sql, type Problem } from "../api/client";
import { include } from "../lib/query";
import { textOf } from "../lib/record";
import { durationText, msOf, secondsOfSql, stepMs } from "../lib/time";
import { range, type Series } from "../state/results";
import { ask, state } from "../state/url";
import { T } from "../strings";
import { TopValue } from "./detail";
import { Chart } from "./numbers";
import { Button, Gaps, ProblemText, bytesText, number, percent, shortNumber } from "./parts";

const BASE = "close_reason:* bytes_to_client:*";
const CERTIFICATES = "proxy_state=certificate";
const UPSTREAMS = "proxy_state=upstream";
const NORMAL = new Set(["client", "upstream"]);
const FIELDS: [field: string, title: string][] = [
  ["sni", T.proxy.names],
  ["client", T.proxy.clients],
  ["version", T.proxy.versions],
  ["cipher", T.proxy.ciphers],
  ["alpn", T.proxy.protocols],
  ["resumed", T.proxy.resumed],
  ["upstream", T.proxy.upstreams],
  ["client_cn", T.proxy.clientCerts],
];
interface Value {
  value: unknown;
  count: number;
}
interface Totals {
  n: number;
  to_client: number | null;
  from_client: number | null;
  handshake_p50: number | null;
  handshake_p99: number | null;
}

export function Proxy() {
  const span = range.value;
  const { q } = state.value;
  const base = [BASE, /\bOR\b/.test(q) ? `(${q})` : q === "*" ? "" : q].filter(Boolean).join(" ");
  const [tops, setTops] = useState<Map<string, Value[]>>(new Map());
  const [totals, setTotals] = useState<Totals | null>(null);
  const [series, setSeries] = useState<Series[]>([]);
  const [count, setCount] = useState<number | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    if (!span) return;
    const control = new AbortController();
    const { signal } = control;
    setProblem(null);
    (async () => {
      const made = new Map<string, Value[]>();
      const [reasons, { rows }] = await objects<Value>(
        "api/v1/top",
        { field: "close_reason", n: 30, q: base, from: span.from, to: span.to },
        signal,
      );
      setCount(rows);
      made.set("close_reason", reasons);
      setTops(new Map(made));
      if (!rows) return;
      for (const [field] of FIELDS) {
        const [list] = await objects<Value>(
          "api/v1/top",
          { field, n: 10, q: base, from: span.from, to: span.to },
          signal,
        );
        made.set(field, list);
        setTops(new Map(made));
      }
      const scope = { q: base, from: span.from, to: span.to };
      const [sums] = await sql<Totals>(
        "SELECT count(*) AS n, sum(bytes_to_client) AS to_client, sum(bytes_from_client) AS from_client, approx_percentile_cont(handshake_s, 0.5) AS handshake_p50, approx_percentile_cont(handshake_s, 0.99) AS handshake_p99 FROM logs",
        scope,
        signal,
      );
      if (sums) setTotals(sums);
      const step =
        Math.max(1000, stepMs(span.toMs - Math.max(span.fromMs, span.toMs - 400 * 86_400_000), 90)) / 1000;
      const [out, into]: [Series, Series] = [
        { name: T.proxy.toClients, labels: {}, points: [] },
        { name: T.proxy.fromClients, labels: {}, points: [] },
      ];
      const moments = await sql<{ at: string; o: unknown; i: unknown }>(
        `SELECT date_bin(INTERVAL '${step} seconds', time) AS at, sum(bytes_to_client) AS o, sum(bytes_from_client) AS i FROM logs GROUP BY at ORDER BY at`,
        scope,
        signal,
      );
      for (const { at, o, i } of moments) {
        out.points.push([secondsOfSql(at), Number(o) / step]);
        into.points.push([secondsOfSql(at), Number(i) / step]);
      }
      setSeries([out, into]);
    })().catch((error: unknown) => {
      if (!isAbort(error)) setProblem(problemFrom(error));
    });
    return () => control.abort();
  }, [base, span?.from, span?.to]);

  if (count === 0) {
    return (
      <main class="screen scroll" id="main" tabIndex={0}>
        <section class="card wide">
          <h1>{T.views.proxy}</h1>
          <p>{T.proxy.none}</p>
          <pre tabIndex={0}>
            <code>{`logpond proxy --listen 0.0.0.0:443 --to 127.0.0.1:8080 --certificate cert.pem --key key.pem \\\n  --records ${new URL(".", location.href).href.replace(/\/$/, "")}`}</code>
          </pre>
        </section>
      </main>
    );
  }
  const reasons = tops.get("close_reason") ?? [];
  const failed = reasons
    .filter(({ value }) => !NORMAL.has(textOf(value)))
    .reduce((sum, { count }) => sum + count, 0);
  // Without SQL there will be no sums.
  const unknown = problem ? "–" : "…";
  const ms = (seconds: number | null | undefined) =>
    seconds === null || seconds === undefined ? unknown : `${shortNumber(seconds * 1000)} ms`;
  return (
    <main class="screen scroll proxy" id="main" tabIndex={0}>
      <h1 class="sr">{T.views.proxy}</h1>
      <Gaps />
      {problem &&
        (problem.status === 501 ? <p class="notice">{T.proxy.noSql}</p> : <ProblemText problem={problem} />)}
      <dl class="figures">
        <div>
          <dt>{T.proxy.connections}</dt>
          <dd>
            {count === null ? (
              "…"
            ) : (
              <Button class="plain" onClick={() => ask({ view: "search", q: base })}>
                {number(count)}
              </Button>
            )}
          </dd>
        </div>
        <div>
          <dt>{T.proxy.failed}</dt>
          <dd>
            {count ? percent(failed / count) : "…"}
            <small>{number(failed)}</small>
          </dd>
        </div>
        <div>
          <dt>{T.proxy.handshake}</dt>
          <dd>
            {ms(totals?.handshake_p50)}
            <small>p99 {ms(totals?.handshake_p99)}</small>
          </dd>
        </div>
        <div>
          <dt>{T.proxy.toClients}</dt>
          <dd>
            {totals ? bytesText(Number(totals.to_client ?? 0)) : unknown}
            <small>
              {totals ? `${T.proxy.fromClients} ${bytesText(Number(totals.from_client ?? 0))}` : ""}
            </small>
          </dd>
        </div>
      </dl>
      {series.length > 0 && (
        <section class="card wide">
          <h2>{T.proxy.throughput}</h2>
          <Chart list={series} height={160} format={(value) => `${bytesText(value)}/s`} area quiet />
        </section>
      )}
      {span && <States from={span.from} to={span.to} />}
      <div class="panels">
        <Values
          field="close_reason"
          title={T.proxy.reasons}
          values={reasons}
          base={base}
          marked={(text) => !NORMAL.has(text)}
        />
        {FIELDS.map(([field, title]) => (
          <Values key={field} field={field} title={title} values={tops.get(field)} base={base} />
        ))}
      </div>
      <p class="dim pad">{T.proxy.live}</p>
    </main>
  );
}

/** A certificate of which so little time is left is to be renewed. */
const RENEW_MS = 14 * 86_400_000;

/** Records of the state that are looked at, the newest. */
const STATES_MAX = 500;

interface CertificateState {
  _time: string;
  frontend: unknown;
  name: unknown;
  names: unknown;
  expires: string;
}

interface UpstreamState {
  _time: string;
  upstream: unknown;
  state: string;
  connections_open: number;
  connected_total: number;
  failed_total: number;
  connect_s: number;
}

/** The newest record of each thing. */
function newest<R>(rows: R[], key: (row: R) => string): R[] {
  const found = new Map<string, R>();
  for (const row of rows) if (!found.has(key(row))) found.set(key(row), row);
  return [...found.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

/** Certificates and upstreams, as proxies told them last in the range. */
function States({ from, to }: { from: string; to: string }) {
  const [certificates, setCertificates] = useState<CertificateState[]>([]);
  const [upstreams, setUpstreams] = useState<UpstreamState[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const control = new AbortController();
    const told = <R,>(q: string) =>
      objects<R>("api/v1/query", { q, from, to, limit: STATES_MAX, direction: "backward" }, control.signal);
    (async () => {
      const [ofCertificates] = await told<CertificateState>(CERTIFICATES);
      const [ofUpstreams] = await told<UpstreamState>(UPSTREAMS);
      setCertificates(newest(ofCertificates, (row) => `${textOf(row.frontend)} ${textOf(row.names)}`));
      setUpstreams(newest(ofUpstreams, (row) => textOf(row.upstream)));
      setProblem(null);
    })().catch((error: unknown) => {
      if (!isAbort(error)) setProblem(problemFrom(error));
    });
    return () => control.abort();
  }, [from, to]);
  if (problem) return <ProblemText problem={problem} />;
  return (
    <>
      {certificates.length > 0 && (
        <section class="card wide">
          <h2>{T.proxy.certificates}</h2>
          <div class="table-scroll" tabIndex={0} role="region" aria-label={T.proxy.certificates}>
            <table class="data">
              <thead>
                <tr>
                  <th>{T.proxy.name}</th>
                  <th>{T.proxy.frontend}</th>
                  <th>{T.proxy.expires}</th>
                </tr>
              </thead>
              <tbody>
                {certificates.map((row) => (
                  <Certificate key={`${textOf(row.frontend)} ${textOf(row.names)}`} row={row} />
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      {upstreams.length > 0 && (
        <section class="card wide">
          <h2>{T.proxy.upstreams}</h2>
          <div class="table-scroll" tabIndex={0} role="region" aria-label={T.proxy.upstreams}>
            <table class="data">
              <thead>
                <tr>
                  <th>{T.proxy.upstream}</th>
                  <th>{T.proxy.state}</th>
                  <th class="num">{T.proxy.open}</th>
                  <th class="num">{T.proxy.connections}</th>
                  <th class="num">{T.proxy.connectFailed}</th>
                  <th class="num">{T.proxy.connect}</th>
                </tr>
              </thead>
              <tbody>
                {upstreams.map((row) => (
                  <tr key={textOf(row.upstream)}>
                    <td>
                      <Lines
                        q={include(UPSTREAMS, "upstream", textOf(row.upstream))}
                        text={textOf(row.upstream)}
                      />
                    </td>
                    <td class={row.state === "up" ? "" : "warn"}>{row.state}</td>
                    <td class="num">{number(row.connections_open)}</td>
                    <td class="num">{number(row.connected_total)}</td>
                    <td class="num">{number(row.failed_total)}</td>
                    <td class="num">{shortNumber(row.connect_s * 1000)} ms</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
    </>
  );
}

function Certificate({ row }: { row: CertificateState }) {
  const left = msOf(row.expires) - Date.now();
  const text = left < 0 ? T.proxy.expired(durationText(-left)) : T.proxy.expiresIn(durationText(left));
  return (
    <tr>
      <td>
        <Lines q={include(CERTIFICATES, "name", textOf(row.name))} text={textOf(row.name)} />
      </td>
      <td>{textOf(row.frontend)}</td>
      <td class={left < RENEW_MS ? "warn" : ""} title={row.expires}>
        {text}
      </td>
    </tr>
  );
}

function Lines({ q, text }: { q: string; text: string }) {
  return (
    <Button class="plain" label={T.access.lines(text)} onClick={() => ask({ view: "search", q })}>
      {text}
    </Button>
  );
}

function Values({
  field,
  title,
  values,
  base,
  marked,
}: {
  field: string;
  title: string;
  values: Value[] | undefined;
  base: string;
  marked?: (text: string) => boolean;
}) {
  if (values && !values.length) return null;
  return (
    <section class="card">
      <h2>{title}</h2>
      {!values ? (
        <p class="dim">{T.loading}</p>
      ) : (
        <ol class="top">
          {values.map(({ value, count }) => {
            const text = textOf(value);
            return (
              <TopValue
                key={text}
                field={field}
                text={text}
                count={count}
                share={count / Math.max(1, values[0]!.count)}
                marked={marked?.(text)}
                lines={() => include(base, field, text)}
              />
            );
          })}
        </ol>
      )}
    </section>
  );
}
