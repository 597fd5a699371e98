// The records around one, by position: exact at equal times, and paged to both ends.

import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort, lines, problemFrom, type Problem } from "../api/client";
import { LIST_PARAMS } from "../api/features";
import { columnField, cursorOf, parseRow, summaryOf, type Row } from "../lib/record";
import { textParts } from "../lib/paint";
import { condition } from "../lib/query";
import { toneOf } from "../lib/levels";
import { timeText } from "../lib/time";
import { go, state } from "../state/url";
import { T } from "../strings";
import { Button, Dialog, Parts, ProblemText } from "./parts";
import { Detail, useRecordAt } from "./detail";

const FIRST_ROWS = 20;
const MORE_ROWS = 200;

/** The record whose surroundings were opened, which then is not asked for. */
let opened: Row | null = null;
export function openContext(row: Row) {
  opened = row;
  go({ around: cursorOf(row) });
}

type Scope = "source" | "host" | "all";

function queryOf(row: Row, scope: Scope): string {
  const wanted = scope === "all" ? [] : scope === "host" ? ["host"] : ["host", "app"];
  return wanted
    .map((column) => columnField(row, column))
    .filter((field) => field !== undefined)
    .map(({ name, text }) => condition(name, "=", text))
    .join(" ");
}

interface Side {
  rows: Row[];
  more: boolean;
  loading: boolean;
}
const EMPTY: Side = { rows: [], more: true, loading: false };

/** The surroundings of the record in the address, so that Back closes them. */
export function ContextPanel() {
  const { around } = state.value;
  const known = opened && cursorOf(opened) === around ? opened : null;
  const { row, problem } = useRecordAt(known ? "" : around);
  if (!around) return null;
  const shown = known ?? row;
  if (shown) return <Context key={shown.id} row={shown} />;
  return (
    <Dialog title={T.contextTitle} class="context" onClose={closeContext}>
      {problem ? <ProblemText problem={problem} /> : <p>{shown === null ? T.recordGone : T.loading}</p>}
    </Dialog>
  );
}

const closeContext = () => go({ around: "" });

function Context({ row }: { row: Row }) {
  const [scope, setScope] = useState<Scope>(queryOf(row, "source") ? "source" : "all");
  const [before, setBefore] = useState<Side>(EMPTY);
  const [after, setAfter] = useState<Side>(EMPTY);
  const [problem, setProblem] = useState<Problem | null>(null);
  const control = useRef(new AbortController());
  const list = useRef<HTMLOListElement>(null);
  const query = queryOf(row, scope);

  const load = async (
    side: Side,
    set: (side: Side) => void,
    direction: "backward" | "forward",
    limit: number,
  ) => {
    const { signal } = control.current;
    const end = direction === "backward" ? side.rows[0] : side.rows.at(-1);
    set({ ...side, loading: true });
    const found: Row[] = [];
    try {
      const range = direction === "backward" ? { from: "@0" } : { from: row.time };
      const { more } = await lines(
        "api/v1/query",
        { ...LIST_PARAMS, q: query, ...range, direction, limit, cursor: cursorOf(end ?? row) },
        signal,
        (batch) => {
          for (const line of batch) found.push(parseRow(line));
        },
      );
      if (direction === "backward") found.reverse();
      set({
        rows: direction === "backward" ? [...found, ...side.rows] : [...side.rows, ...found],
        more: more === true,
        loading: false,
      });
    } catch (error) {
      if (isAbort(error) || signal.aborted) return;
      setProblem(problemFrom(error));
      set({ ...side, loading: false });
    }
  };

  useEffect(() => {
    control.current.abort();
    control.current = new AbortController();
    setProblem(null);
    void load(EMPTY, setBefore, "backward", FIRST_ROWS);
    void load(EMPTY, setAfter, "forward", FIRST_ROWS);
    return () => control.current.abort();
  }, [query]);

  const settled = !before.loading && !after.loading;
  useEffect(() => {
    if (settled) list.current?.querySelector(".origin")?.scrollIntoView({ block: "center" });
  }, [settled && query, before.rows.length === FIRST_ROWS]);

  const loadMore = (side: "before" | "after") => {
    if (side === "after") return void load(after, setAfter, "forward", MORE_ROWS);
    // The rows that are read stay where they are.
    const element = list.current!;
    const height = element.scrollHeight;
    void load(before, setBefore, "backward", MORE_ROWS).then(() =>
      requestAnimationFrame(() => {
        element.scrollTop += element.scrollHeight - height;
      }),
    );
  };

  const scopes: [Scope, string][] = [
    ["source", T.sameSource],
    ["host", T.sameHost],
    ["all", T.everything],
  ];
  return (
    <Dialog title={T.contextTitle} class="context" onClose={closeContext}>
      <div class="context-bar" role="toolbar" aria-label={T.contextScope}>
        {scopes
          .filter(([name]) => name === "all" || queryOf(row, name))
          .map(([name, text]) => (
            <Button pressed={scope === name} onClick={() => setScope(name)}>
              {text}
            </Button>
          ))}
        <code>{query || "*"}</code>
      </div>
      {problem && <ProblemText problem={problem} />}
      <ol class="context-rows" ref={list} tabIndex={0} aria-label={T.contextTitle}>
        <li class="edge">
          {before.more ? (
            <Button disabled={before.loading} onClick={() => loadMore("before")}>
              {before.loading ? T.loading : T.earlierRecords}
            </Button>
          ) : (
            <span class="dim">{T.firstRecord}</span>
          )}
        </li>
        {before.rows.map((found) => (
          <ContextRow key={found.id} row={found} />
        ))}
        <ContextRow row={row} origin />
        {after.rows.map((found) => (
          <ContextRow key={found.id} row={found} />
        ))}
        <li class="edge">
          {after.more ? (
            <Button disabled={after.loading} onClick={() => loadMore("after")}>
              {after.loading ? T.loading : T.laterRecords}
            </Button>
          ) : (
            <span class="dim">{T.lastRecord}</span>
          )}
        </li>
      </ol>
    </Dialog>
  );
}

function ContextRow({ row, origin }: { row: Row; origin?: boolean }) {
  const [open, setOpen] = useState(false);
  const parts = (["host", "app"] as const).map((column) => columnField(row, column)?.text).filter(Boolean);
  return (
    <li
      class={`context-row level-${toneOf(row.level)} ${origin ? "origin" : ""}`}
      aria-current={origin ? "true" : undefined}
      data-id={row.id}
    >
      <button
        type="button"
        class="plain"
        aria-expanded={open}
        onClick={() => {
          if (getSelection()?.isCollapsed) setOpen(!open);
        }}
      >
        <time>{timeText(row.time, state.value.tz, "time")}</time>
        <span class="level">{row.level ?? ""}</span>
        <span class="dim">{parts.join(" ")}</span>
        <span class="text">
          <Parts parts={textParts(summaryOf(row).slice(0, 2000))} />
        </span>
      </button>
      {open && <Detail row={row} alone />}
    </li>
  );
}
