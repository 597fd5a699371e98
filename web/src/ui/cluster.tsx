// Nodes, disks, losses, sources. A single server shows the same with one row.

import { useEffect, useState } from "preact/hooks";
import { ApiError, isAbort, json, objects, problemFrom, request, type Problem } from "../api/client";
import { own } from "../lib/own";
import { durationText, msOf, timeText } from "../lib/time";
import { run, state } from "../state/url";
import { T } from "../strings";
import { addressFlag } from "./commands";
import { Bar, Button, Gaps, ProblemText, bytesText, copy, number, percent, shortNumber } from "./parts";
import { RunningQueries } from "./running";
import { Sources } from "./sources";

interface NodeStatus {
  segments?: number;
  segment_rows?: number;
  segment_bytes?: number;
  free_bytes?: number;
  total_bytes?: number;
  is_full?: boolean;
  waiting_bytes?: number;
  waiting_ms?: number;
  copies_lacking?: number;
  clock_ahead_ms?: number;
  canary_ms?: number;
  leaving?: unknown;
}
interface NodeInfo {
  node: string;
  address: string;
  http?: string;
  version?: string;
  role?: string;
  zone?: string | null;
  state: string;
  answer_ms?: number;
  status?: NodeStatus | null;
  silence?: string;
  forget?: string;
}
interface Cluster {
  replication: number;
  nodes: NodeInfo[];
  offered_bytes_per_s?: number;
  waiting_bytes?: number;
  copies_lacking?: number;
  copies_superfluous?: number;
}
interface Segment {
  path: string;
  state: string;
  bytes: number;
  raw_bytes?: number;
  rows?: number;
  received_from?: string;
  received_to?: string;
  time_from?: string;
  time_to?: string;
  node?: string;
}

export interface Metric {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** Reads the text format of Prometheus. */
export function parseMetrics(text: string): Metric[] {
  const found: Metric[] = [];
  for (const line of text.split("\n")) {
    const match = /^([\w:]+)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!match || line.startsWith("#")) continue;
    const labels: Record<string, string> = {};
    for (const [, name, value] of (match[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
      labels[name!] = value!.replace(/\\(.)/g, "$1");
    found.push({ name: match[1]!, labels, value: Number(match[3]) });
  }
  return found;
}

const sumOf = (metrics: Metric[], name: string) =>
  metrics.filter((metric) => metric.name === name).reduce((sum, { value }) => sum + value, 0);
const DAY_MS = 86_400_000;
const REFRESH_MS = 5000;

interface Found {
  /** Of the newest answer: the screen is read again and again. */
  complete: boolean;
  missing: string[];
  cluster: Cluster | null;
  segments: Segment[];
  metrics: Metric[];
  at: number;
}

async function load(signal: AbortSignal): Promise<Found> {
  const metrics = parseMetrics(await (await request("metrics", {}, { signal })).text());
  const [segments, trailer] = await objects<Segment>("api/v1/segments", {}, signal, {}, true);
  let cluster: Cluster | null = null;
  if (!single && metrics.some(({ name }) => name === "logpond_copies_lacking")) {
    try {
      cluster = await json<Cluster>("api/v1/cluster", {}, { signal });
    } catch (error) {
      if (!(error instanceof ApiError) || error.problem.status !== 404) throw error;
      single = true;
    }
  }
  return { cluster, segments, metrics, complete: trailer.complete, missing: trailer.missing, at: Date.now() };
}
/** True once a server said that it is no node of a cluster. */
let single = false;

export function ClusterScreen() {
  const [found, setFound] = useState<Found | null>(null);
  const [before, setBefore] = useState<Found | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    let control = new AbortController();
    let last: Found | null = null;
    const turn = () => {
      if (document.hidden) return;
      control.abort();
      control = new AbortController();
      load(control.signal).then(
        (next) => {
          setBefore(last);
          setFound(next);
          setProblem(null);
          last = next;
        },
        (error: unknown) => {
          if (!isAbort(error)) setProblem(problemFrom(error));
        },
      );
    };
    turn();
    const timer = setInterval(turn, REFRESH_MS);
    return () => {
      clearInterval(timer);
      control.abort();
    };
  }, [run.value]);
  if (!found)
    return (
      <main class="screen scroll pad" id="main" tabIndex={0}>
        {problem ? <ProblemText problem={problem} /> : T.loading}
      </main>
    );
  return (
    <main class="screen scroll cluster" id="main" tabIndex={0}>
      <h1 class="sr">{T.views.cluster}</h1>
      {problem && <ProblemText problem={problem} />}
      <Gaps more={found.complete ? [] : [`${T.incomplete} ${found.missing.join("; ")}`]} />
      <Summary found={found} before={before} />
      <Nodes found={found} />
      <div class="panels">
        <Storage found={found} />
        <Losses found={found} />
        <Queries found={found} />
      </div>
      <RunningQueries />
      <Sources />
    </main>
  );
}

function perSecond(found: Found, before: Found | null, name: string): number | null {
  if (!before) return null;
  return Math.max(
    0,
    (sumOf(found.metrics, name) - sumOf(before.metrics, name)) /
      Math.max(0.001, (found.at - before.at) / 1000),
  );
}

/** State of the line of a node that does not answer. */
const NO_ANSWER = "no-answer";

/** Records and their bytes in all files, also those of the journal. A copy on another node is the same file. */
export function storedIn(segments: Pick<Segment, "path" | "rows" | "raw_bytes">[]): {
  rows: number;
  bytes: number;
} {
  const files = new Map(segments.map((segment) => [segment.path, segment]));
  let [rows, bytes] = [0, 0];
  for (const { rows: some, raw_bytes: size } of files.values()) {
    rows += some ?? 0;
    bytes += size ?? 0;
  }
  return { rows, bytes };
}

function Summary({ found, before }: { found: Found; before: Found | null }) {
  const { cluster, metrics } = found;
  const records = perSecond(found, before, "logpond_ingest_records_total");
  const bytes = perSecond(found, before, "logpond_ingest_bytes_total");
  const damaged = sumOf(metrics, "logpond_segments_damaged");
  const silent = cluster?.nodes.filter(({ state }) => state === "gone").length ?? 0;
  const lacking = cluster?.copies_lacking ?? 0;
  const stored = storedIn(found.segments);
  const health = silent || damaged ? "error" : lacking ? "warn" : "good";
  return (
    <dl class="figures">
      <div>
        <dt>{cluster ? T.cluster.nodes : T.cluster.server}</dt>
        <dd>
          {cluster ? number(cluster.nodes.length) : T.cluster.single}
          <small class={`state-${health}`}>
            {health === "good"
              ? T.cluster.healthy
              : silent
                ? T.cluster.silentNodes(silent)
                : damaged
                  ? T.cluster.damaged(damaged)
                  : T.cluster.copying(lacking)}
          </small>
        </dd>
      </div>
      {cluster && (
        <div>
          <dt>{T.cluster.replication}</dt>
          <dd>{cluster.replication}</dd>
        </div>
      )}
      <div>
        <dt>{T.cluster.incoming}</dt>
        <dd>
          {records === null ? "…" : `${shortNumber(records)} /s`}
          <small>{bytes === null ? "" : `${bytesText(bytes)}/s`}</small>
        </dd>
      </div>
      <div>
        <dt>{T.cluster.stored}</dt>
        <dd>
          {shortNumber(stored.rows)}
          <small>{bytesText(stored.bytes)}</small>
        </dd>
      </div>
      <div>
        <dt>{T.cluster.memory}</dt>
        <dd>
          {bytesText(sumOf(metrics, "logpond_memory_in_use_bytes"))}
          <small>{T.of(bytesText(sumOf(metrics, "logpond_memory_budget_bytes")))}</small>
        </dd>
      </div>
    </dl>
  );
}

function Nodes({ found }: { found: Found }) {
  const { cluster, metrics, segments } = found;
  const version = metrics.find(({ name }) => name === "logpond_build_info")?.labels.version;
  const oldest = segments
    .map(({ time_from }) => time_from)
    .filter((time) => time !== undefined)
    .sort()[0];
  const list: NodeInfo[] = cluster?.nodes ?? [
    {
      node: location.host,
      address: location.host,
      version,
      role: "serve",
      state: "live",
      status: {
        segments: sumOf(metrics, "logpond_segments"),
        segment_rows: sumOf(metrics, "logpond_segment_rows"),
        segment_bytes: sumOf(metrics, "logpond_segment_bytes"),
        free_bytes: sumOf(metrics, "logpond_disk_free_bytes"),
        total_bytes: sumOf(metrics, "logpond_disk_total_bytes"),
      },
    },
  ];
  return (
    <section class="card wide">
      <h2>{cluster ? T.cluster.nodes : T.cluster.server}</h2>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={T.cluster.nodes}>
        <table class="data">
          <thead>
            <tr>
              {[
                T.cluster.node,
                T.cluster.role,
                T.cluster.version,
                T.cluster.disk,
                T.cluster.segments,
                T.cluster.oldest,
                T.cluster.queue,
                T.cluster.clock,
                T.cluster.state,
              ].map((name) => (
                <th scope="col">{name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {list.map((node) => {
              const { status } = node;
              const used = status?.total_bytes ? 1 - (status.free_bytes ?? 0) / status.total_bytes : null;
              const own = cluster
                ? segments
                    .filter((segment) => segment.node === undefined || segment.node.includes(node.address))
                    .map(({ time_from }) => time_from)
                    .filter((time) => time !== undefined)
                    .sort()[0]
                : oldest;
              return (
                <tr>
                  <td>
                    <b>{node.address}</b>
                    {cluster && (
                      <small class="dim">
                        {" "}
                        {node.node.slice(0, 8)}
                        {node.zone ? ` · ${node.zone}` : ""}
                      </small>
                    )}
                  </td>
                  <td>{node.role ?? ""}</td>
                  <td>{node.version ?? ""}</td>
                  <td class="disk">
                    {used === null ? (
                      <span class="dim">{T.cluster.diskUnknown}</span>
                    ) : (
                      <>
                        <Bar share={used} />
                        {percent(used)}
                        <small> {T.cluster.free(bytesText(status!.free_bytes!))}</small>
                        {status!.is_full && <b class="bad"> {T.cluster.full}</b>}
                      </>
                    )}
                  </td>
                  <td class="num">
                    {status?.segments !== undefined
                      ? `${number(status.segments)} · ${bytesText(status.segment_bytes ?? 0)}`
                      : ""}
                  </td>
                  <td>{own ? timeText(own, state.value.tz, "day") : ""}</td>
                  <td class="num">
                    {status?.waiting_bytes !== undefined
                      ? `${bytesText(status.waiting_bytes)}${status.waiting_ms ? ` · ${durationText(status.waiting_ms)}` : ""}`
                      : ""}
                  </td>
                  <td class="num">
                    {status?.clock_ahead_ms !== undefined && status.clock_ahead_ms !== null
                      ? `${status.clock_ahead_ms >= 0 ? "+" : "−"}${durationText(Math.abs(status.clock_ahead_ms))}`
                      : ""}
                  </td>
                  <td
                    class={
                      node.state === "live"
                        ? "state-good"
                        : node.state === "leaving"
                          ? "state-warn"
                          : "state-error"
                    }
                  >
                    {node.state}
                    {node.silence && <small> {node.silence}</small>}
                    {node.state === "live" && cluster && list.length > 1 && (
                      <Button
                        class="link"
                        onClick={() => void copy(`logpond cluster drain ${node.address} ${addressFlag()}`)}
                      >
                        {T.cluster.copyDrain}
                      </Button>
                    )}
                    {node.forget && (
                      <Button
                        class="link"
                        onClick={() => void copy(`logpond cluster forget ${node.forget} ${addressFlag()}`)}
                      >
                        {T.cluster.copyForget}
                      </Button>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** Beyond so many years a rate of a day says nothing. */
const LASTS_YEARS_MAX = 10;

export function lastsText(ms: number): string {
  const years = ms / (365 * DAY_MS);
  return years > LASTS_YEARS_MAX ? T.cluster.longer(LASTS_YEARS_MAX) : durationText(ms);
}

function Storage({ found }: { found: Found }) {
  const { segments, cluster, metrics, at } = found;
  const states = [...new Set(segments.map(({ state }) => state))];
  // Bytes on the disk of what was received within a day.
  const recent = segments.filter(({ received_to }) => received_to && msOf(received_to) > at - DAY_MS);
  const daily = recent.reduce((sum, { bytes }) => sum + bytes, 0);
  const free = cluster
    ? cluster.nodes.reduce((sum, { status }) => sum + (status?.free_bytes ?? 0), 0)
    : metrics.find(({ name }) => name === "logpond_disk_free_bytes")?.value;
  const received = segments
    .map(({ received_from }) => received_from)
    .filter((time) => time !== undefined)
    .sort()[0];
  // Records of a journal are not compressed yet.
  const sealed = segments.filter(({ state }) => state === "hot" || state === "cold");
  const raw = sealed.reduce((sum, { raw_bytes }) => sum + (raw_bytes ?? 0), 0);
  const kept = sealed.reduce((sum, { bytes }) => sum + bytes, 0);
  return (
    <section class="card">
      <h2>{T.cluster.storage}</h2>
      <dl class="pairs">
        {states.map((name) => {
          const list = segments.filter((segment) => segment.state === name);
          return (
            <>
              <dt>{own(T.cluster.states, name) ?? name}</dt>
              <dd>
                {name === NO_ANSWER ? (
                  `${number(list.length)} ${T.cluster.nodesN(list.length)}`
                ) : (
                  <>
                    {number(list.length)} {T.cluster.files(list.length)} ·{" "}
                    {bytesText(list.reduce((sum, { bytes }) => sum + bytes, 0))}
                  </>
                )}
              </dd>
            </>
          );
        })}
        <dt>{T.cluster.compression}</dt>
        <dd>{kept ? `${(raw / kept).toFixed(1)} : 1` : "–"}</dd>
        <dt>{T.cluster.lastDay}</dt>
        <dd>{bytesText(daily)}</dd>
        {free !== undefined && (
          <>
            <dt>{T.cluster.diskFree}</dt>
            <dd>{T.cluster.free(bytesText(free))}</dd>
          </>
        )}
        {free !== undefined && daily > 0 && (
          <>
            <dt>{T.cluster.lasts}</dt>
            <dd>
              <b>{lastsText((free / daily) * DAY_MS)}</b>
            </dd>
          </>
        )}
        {received && (
          <>
            <dt>{T.cluster.since}</dt>
            <dd>{timeText(received, state.value.tz, "minute")}</dd>
          </>
        )}
      </dl>
    </section>
  );
}

const LOSSES: [metric: string, label: string, text: string][] = [
  ["logpond_ingest_lost_total", "intake", T.cluster.lostAt],
  ["logpond_ingest_truncated_total", "intake", T.cluster.truncated],
  ["logpond_ingest_rejected_total", "intake", T.cluster.rejected],
  ["logpond_ingest_malformed_total", "intake", T.cluster.malformed],
  ["logpond_ingest_refused_batches_total", "reason", T.cluster.refused],
  ["logpond_ingest_unsynced_lost_total", "", T.cluster.unsynced],
  ["logpond_segments_damaged", "", T.cluster.damagedFiles],
  ["logpond_files_absent", "", T.cluster.absentFiles],
];

function Losses({ found }: { found: Found }) {
  const rows = LOSSES.flatMap(([metric, label, text]) =>
    found.metrics
      .filter(({ name, value }) => name === metric && value > 0)
      .map(({ labels, value }) => ({ text, of: label ? labels[label] : "", value })),
  );
  return (
    <section class="card">
      <h2>
        {T.cluster.losses} <small>{T.cluster.sinceStart}</small>
      </h2>
      {rows.length === 0 ? (
        <p class="state-good">{T.cluster.noLosses}</p>
      ) : (
        <dl class="pairs">
          {rows.map(({ text, of, value }) => (
            <>
              <dt>
                {text}
                {of ? ` · ${of}` : ""}
              </dt>
              <dd class="warn">{number(value)}</dd>
            </>
          ))}
        </dl>
      )}
    </section>
  );
}

function Queries({ found }: { found: Found }) {
  const { metrics } = found;
  const count = sumOf(metrics, "logpond_query_seconds_count");
  return (
    <section class="card">
      <h2>
        {T.cluster.queries} <small>{T.cluster.sinceStart}</small>
      </h2>
      <dl class="pairs">
        <dt>{T.cluster.running}</dt>
        <dd>{number(sumOf(metrics, "logpond_queries_active"))}</dd>
        <dt>{T.cluster.waiting}</dt>
        <dd>{number(sumOf(metrics, "logpond_queries_waiting"))}</dd>
        <dt>{T.cluster.answered}</dt>
        <dd>{number(count)}</dd>
        <dt>{T.cluster.average}</dt>
        <dd>{count ? durationText((sumOf(metrics, "logpond_query_seconds_sum") / count) * 1000) : "–"}</dd>
        <dt>{T.cluster.scanned}</dt>
        <dd>{bytesText(sumOf(metrics, "logpond_query_scanned_bytes_total"))}</dd>
        <dt>{T.cluster.cancelled}</dt>
        <dd>{number(sumOf(metrics, "logpond_queries_cancelled_total"))}</dd>
        <dt>{T.cluster.memoryRefused}</dt>
        <dd>{number(sumOf(metrics, "logpond_memory_refused_total"))}</dd>
      </dl>
    </section>
  );
}
