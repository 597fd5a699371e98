// The queries that run on this server now, and a button to stop each.

import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort, json, problemFrom, request, type Problem } from "../api/client";
import { durationText } from "../lib/time";
import { run } from "../state/url";
import { T } from "../strings";
import { Button, ProblemText, bytesText, number } from "./parts";

interface RunningQuery {
  id: number;
  path: string;
  query: string;
  elapsed_ms: number;
  rows: number;
  bytes: number;
  bytes_total: number;
  follows: boolean;
  stopped: boolean;
}

const REFRESH_MS = 2000;

/** A token of another role than admin has no list, which is no reason to ask for another token. */
const isOfRole = (problem: Problem) => problem.code === "role_missing";

export function RunningQueries() {
  const [list, setList] = useState<RunningQuery[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const again = useRef(() => {});
  useEffect(() => {
    let control = new AbortController();
    let ended = false;
    const turn = () => {
      if (document.hidden || ended) return;
      control.abort();
      control = new AbortController();
      json<{ queries: RunningQuery[] }>("api/v1/running", {}, { signal: control.signal }, true).then(
        ({ queries }) => {
          setList(queries);
          setProblem(null);
        },
        (error: unknown) => {
          if (isAbort(error)) return;
          const found = problemFrom(error);
          ended ||= isOfRole(found);
          setProblem(found);
        },
      );
    };
    again.current = turn;
    turn();
    const timer = setInterval(turn, REFRESH_MS);
    return () => {
      clearInterval(timer);
      control.abort();
    };
  }, [run.value]);
  const stop = async (id: number) => {
    setList(
      (known) => known?.map((query) => (query.id === id ? { ...query, stopped: true } : query)) ?? null,
    );
    try {
      await request(`api/v1/running/${id}`, {}, { method: "DELETE" }, true);
    } catch (error) {
      // It has ended by itself.
      const found = problemFrom(error);
      if (found.status !== 404) setProblem(found);
    }
    again.current();
  };
  return (
    <section class="card wide running">
      <h2>{T.cluster.runningNow}</h2>
      {problem &&
        (isOfRole(problem) ? <p class="dim">{T.cluster.runningRole}</p> : <ProblemText problem={problem} />)}
      {list && !problem && !list.length && <p class="dim">{T.cluster.noneRunning}</p>}
      {list && list.length > 0 && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label={T.cluster.runningNow}>
          <table class="data">
            <thead>
              <tr>
                <th scope="col">{T.cluster.query}</th>
                <th scope="col" class="num">
                  {T.cluster.age}
                </th>
                <th scope="col" class="num">
                  {T.cluster.rows}
                </th>
                <th scope="col" class="num">
                  {T.cluster.scanned}
                </th>
                <th scope="col">
                  <span class="sr">{T.stop}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {list.map(({ id, path, query, elapsed_ms, rows, bytes, bytes_total, follows, stopped }) => (
                <tr key={id}>
                  <td>
                    <code class="query-text">{query || T.cluster.allRecords}</code>{" "}
                    <small class="dim">
                      {path}
                      {follows ? ` · ${T.cluster.follows}` : ""}
                    </small>
                  </td>
                  <td class="num">{durationText(elapsed_ms)}</td>
                  <td class="num">{number(rows)}</td>
                  <td class="num" title={bytes_total ? T.cluster.ofBytes(bytesText(bytes_total)) : ""}>
                    {bytesText(bytes)}
                  </td>
                  <td>
                    {stopped ? (
                      <span class="dim">{T.cluster.stopping}</span>
                    ) : (
                      <Button label={T.cluster.stopQuery(query || path)} onClick={() => void stop(id)}>
                        {T.stop}
                      </Button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
