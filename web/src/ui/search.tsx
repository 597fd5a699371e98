// The search screen: histogram, facets, rows; and the same for a tail, LogQL and SQL.

import { lazy } from "./lazy";
import { columnTitle, Grid, narrow, type Rows } from "./grid";
import { Facets, facetsOpen } from "./facets";
import { Histogram } from "./histogram";
import { Button, Menu, Sparkline, bytesText, gapTexts, number, percent } from "./parts";
import {
  answered,
  firstRowMs,
  fields,
  hints,
  logLines,
  logLinesNext,
  moreLines,
  nothingAsked,
  pages,
  phase,
  problem,
  range,
  series,
  shownLang,
  shownQuestion,
  table,
  total,
  trailer,
  version,
  warnings,
  bucketsPhase,
} from "../state/results";
import {
  pauseTail,
  resumeTail,
  tail,
  tailCame,
  tailDropped,
  tailNotice,
  tailPaused,
  tailRate,
  tailRow,
  tailState,
  tailVersion,
  tailWaiting,
} from "../state/live";
import { ask, go, hrefOf, state } from "../state/url";
import { COLUMNS, columnOf } from "../lib/record";
import { timeText } from "../lib/time";
import { away, noSql } from "../api/client";

import { T } from "../strings";
import { Empty, stored } from "./empty";
import { toggleColumn } from "./detail";

const Numbers = lazy(() => import("./numbers").then(({ Numbers }) => Numbers));
const Table = lazy(() => import("./numbers").then(({ SqlTable }) => SqlTable));

export function SearchScreen() {
  const { lang, live } = state.value;
  if (lang === "q" && live) return <Live />;
  // A question that fails leaves the result before it, which may be of another language.
  if (shownLang.value === "q") return <Native />;
  if (logLines.value) return <LogqlLines />;
  return (
    <main class="screen plain-results" id="main">
      <Notices />
      {nothingAsked.value && lang !== "q" ? <Example lang={lang} /> : <Toolbar />}
      {series.value && <Numbers list={series.value} />}
      {table.value && <Table table={table.value} />}
      <Foot />
    </main>
  );
}

/** In place of an answer, as nothing was asked yet. */
function Example({ lang }: { lang: "logql" | "sql" }) {
  const list = T.examples[lang];
  // Each of these would fail.
  if (lang === "sql" && noSql.value)
    return (
      <section class="nothing">
        <h2>{T.noSqlHere}</h2>
        <p>{noSql.value}</p>
      </section>
    );
  return (
    <section class="nothing examples">
      <h2>{T.askSomething[lang]}</h2>
      <ul class="hints" aria-label={T.examplesLabel}>
        {list.map(([text, query]) => (
          <li>
            <span>{text}</span>
            <a
              href={hrefOf({ q: query })}
              onClick={(event) => {
                event.preventDefault();
                ask({ q: query });
              }}
            >
              {query}
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Lines of LogQL with their histogram and the values of their labels. */
const LogqlLines = () => (
  <div class="screen with-facets">
    <Facets />
    <main class="results" id="main">
      <Histogram />
      <Notices />
      <Toolbar />
      <Lines />
      <Foot />
    </main>
  </div>
);

/** Rows before the end of a list at which the next ones are read. */
const AHEAD_ROWS = 200;

function Lines() {
  const list = logLines.value!;
  const rows: Rows = {
    count: list.length,
    get: (index) => list[index],
    want: (_, last) => {
      if (last >= list.length - AHEAD_ROWS) void moreLines();
    },
  };
  return (
    <Grid
      rows={rows}
      version={list.length}
      columns={state.value.cols}
      label={T.records}
      scope={list[0] ? scopeOf(list[0]) : "none"}
    />
  );
}

let ids = 0;
const idOf = new WeakMap<object, number>();
function scopeOf(object: object): string {
  let id = idOf.get(object);
  if (id === undefined) idOf.set(object, (id = ids += 1));
  return String(id);
}

function Native() {
  const store = pages.value;
  void version.value;
  const empty = phase.value === "done" && total.value === 0 && store?.count === 0;
  if (empty && stored.value === false)
    return (
      <main class="screen" id="main">
        <Empty />
      </main>
    );
  return (
    <div class="screen with-facets">
      <Facets />
      <main class="results" id="main">
        <Histogram />
        <Notices />
        <Toolbar />
        {empty ? (
          <Nothing />
        ) : store ? (
          <Grid
            rows={rowsOf(store)}
            version={version.value}
            columns={state.value.cols}
            label={T.records}
            scope={scopeOf(store)}
          />
        ) : (
          <div class="grid placeholder" aria-busy="true">
            {phase.value === "loading" ? T.searching : ""}
          </div>
        )}
        <Foot />
      </main>
    </div>
  );
}

const rowsOf = (store: NonNullable<typeof pages.value>): Rows => store as unknown as Rows;

function Live() {
  void tailVersion.value;
  const rows: Rows = { count: tail.shown.length, get: tailRow };
  const paused = tailPaused.value;
  return (
    <div class="screen with-facets">
      <Facets />
      <main class="results live" id="main">
        <section class="live-bar" aria-label={T.live}>
          <span class={`live-state ${tailState.value} ${paused ? "paused" : ""}`}>
            {tailState.value === "waiting"
              ? T.liveReconnecting
              : tailState.value === "off"
                ? T.liveOff
                : paused
                  ? T.livePaused
                  : T.liveOn}
          </span>
          <span class="rate">
            <b>{tailRate.value.toFixed(tailRate.value < 10 ? 1 : 0)}</b> {T.perSecond}
          </span>
          <Sparkline values={tail.history(Date.now())} label={T.lastMinute} width={160} />
          <span class="dim">{T.received(number(tail.received))}</span>
          {tailDropped.value > 0 && <span class="bad">{T.dropped(number(tailDropped.value))}</span>}
          {tail.passed > 0 && <span class="dim">{T.newestShown(number(tail.shown.length))}</span>}
          {tailNotice.value && <span class="warn">{tailNotice.value}</span>}
          <span class="spacer" />
          {paused ? (
            <Button class="primary" onClick={resumeTail}>
              {T.follow}
            </Button>
          ) : (
            <Button onClick={pauseTail}>{T.pause}</Button>
          )}
        </section>
        <Notices />
        <Toolbar />
        <div class="tail-rows" onSelect={pauseTail} onPointerDown={pauseTail}>
          {paused && tailWaiting.value > 0 && (
            <button
              type="button"
              class="pill"
              onClick={() => {
                resumeTail();
                document.querySelector(".grid")?.scrollTo({ top: 0 });
              }}
              aria-live="polite"
            >
              ↑ {T.waitingNew(number(tailWaiting.value))}
            </button>
          )}
          {tail.shown.length === 0 ? (
            <div class="grid placeholder">{T.waitingRecords}</div>
          ) : (
            <Grid
              rows={rows}
              version={tailVersion.value}
              columns={state.value.cols}
              label={T.records}
              came={tailCame.value}
              scope="tail"
              onReading={(reading) => {
                if (reading) pauseTail();
                else if (tailWaiting.value === 0) resumeTail();
              }}
            />
          )}
        </div>
        <Foot />
      </main>
    </div>
  );
}

/** What is not as it should be, in sentences. */
function Notices() {
  const list: preact.ComponentChildren[] = [];
  // The head of the page says why.
  if (away.value) list.push(T.shownBefore);
  list.push(...gapTexts());
  for (const warning of warnings.value) list.push(warning);
  if (phase.value === "failed" && problem.value && answered.value && !state.value.live && !away.value)
    list.push(T.earlierRows);
  if (phase.value === "stopped") list.push(T.partial);
  if (!list.length) return null;
  return (
    <div class="notices" role="status">
      {list.map((text) => (
        <p>{text}</p>
      ))}
    </div>
  );
}

function Toolbar() {
  const now = state.value;
  const lang = shownLang.value;
  const count = now.live ? null : total.value;
  const lines = lang === "logql" && logLinesNext.value ? logLines.value : null;
  // A tail counts what it received by itself.
  const partial =
    !now.live && (phase.value === "stopped" || (pages.value && !pages.value.ended && count === null));
  return (
    <div class="toolbar" role="toolbar" aria-label={T.view}>
      <span class="count" role="status" aria-live="polite">
        {phase.value === "loading" && !now.live ? (
          T.searching
        ) : count !== null && count !== undefined ? (
          <>
            <b>{number(count)}</b>{" "}
            {lang === "logql" && series.value ? (
              T.series(count)
            ) : lang === "sql" ? (
              T.tableRows(count)
            ) : (
              <span class="narrow-hidden">{T.recordsN(count)}</span>
            )}
          </>
        ) : lines ? (
          <>
            <b>{number(lines.length)}+</b> {T.recordsN(2)}
          </>
        ) : partial && pages.value ? (
          <>
            <b>{number(pages.value.reached)}+</b> {T.recordsN(2)}
          </>
        ) : (
          ""
        )}
        {phase.value === "stopped" && <span class="partial"> · {T.partialLabel}</span>}
      </span>
      {(lang === "q" || logLines.value) && (
        <Button
          class="only-narrow"
          onClick={() => {
            facetsOpen.value = true;
          }}
        >
          {T.facets}
        </Button>
      )}
      <span class="spacer" />
      {lang === "q" && (
        <Button
          class="live-button"
          pressed={now.live}
          onClick={() => go({ live: !now.live, sel: "" })}
          title={T.liveTitle}
        >
          <span class="dot" aria-hidden="true" /> {T.live}
        </Button>
      )}
      {(lang === "q" || logLines.value) && (
        <>
          <Columns />
          <Button pressed={now.wrap} onClick={() => go({ wrap: !now.wrap })} title={T.wrapTitle}>
            {T.wrap}
          </Button>
          <Button
            class="narrow-hidden"
            pressed={now.dense}
            onClick={() => go({ dense: !now.dense })}
            title={T.denseTitle}
          >
            {T.dense}
          </Button>
        </>
      )}
    </div>
  );
}

const Columns = () => (
  <Menu name="columns" label={T.columns} right>
    <ColumnsPanel />
  </Menu>
);

function ColumnsPanel() {
  const { cols } = state.value;
  const move = (index: number, step: number) => {
    const next = [...cols];
    [next[index], next[index + step]] = [next[index + step]!, next[index]!];
    go({ cols: next });
  };
  const others = [...COLUMNS, ...(fields.value ?? []).map(({ field }) => columnOf(field))].filter(
    (name) => !cols.includes(name),
  );
  // `host` is the column of the list, or once that is there the field.
  const add = (name: string) => {
    const column = cols.includes(name) ? columnOf(name) : name;
    if (!cols.includes(column)) toggleColumn(column);
  };
  return (
    <>
      <ol class="columns">
        {cols.map((column, index) => (
          <li key={column}>
            <span>{columnTitle(column)}</span>
            <Button
              class="plain"
              label={T.moveLeft(columnTitle(column))}
              disabled={index === 0}
              onClick={() => move(index, -1)}
            >
              ↑
            </Button>
            <Button
              class="plain"
              label={T.moveRight(columnTitle(column))}
              disabled={index === cols.length - 1}
              onClick={() => move(index, 1)}
            >
              ↓
            </Button>
            <Button
              class="plain"
              label={T.removeColumn(columnTitle(column))}
              onClick={() => toggleColumn(column)}
            >
              ✕
            </Button>
          </li>
        ))}
      </ol>
      <form
        class="row-form"
        onSubmit={(event) => {
          event.preventDefault();
          const name = String(new FormData(event.currentTarget).get("column") ?? "").trim();
          if (name) add(name);
          event.currentTarget.reset();
        }}
      >
        <input
          name="column"
          list="column-names"
          placeholder={T.addColumnField}
          aria-label={T.addColumnField}
        />
        <datalist id="column-names">
          {others.slice(0, 500).map((name) => (
            <option value={name} />
          ))}
        </datalist>
        <button type="submit">{T.add}</button>
      </form>
      <Button class="link" onClick={() => go({ cols: COLUMNS })}>
        {T.defaultColumns}
      </Button>
    </>
  );
}

function Nothing() {
  const found = trailer.value;
  const { q, tz } = state.value;
  const list = hints.value;
  return (
    <section class="nothing" role="status">
      <h2>{T.nothing}</h2>
      <p>
        {range.value
          ? T.nothingIn(
              range.value.fromMs > 0 ? timeText(range.value.fromMs, tz, "minute") : T.beginning,
              timeText(range.value.toMs, tz, "minute"),
            )
          : ""}
      </p>
      {list.length > 0 && (
        <ul class="hints" aria-label={T.hints}>
          {list.map((hint) => {
            const patch = {
              ...(hint.query !== undefined ? { q: hint.query } : {}),
              ...(hint.from ? { from: hint.from, to: hint.to ?? "" } : {}),
              ...(hint.to && !hint.from ? { from: "@0", to: hint.to } : {}),
            };
            const usable = hint.query !== undefined || hint.from || hint.to;
            return (
              <li>
                <span>{hint.message}</span>
                {usable && (
                  <a
                    href={hrefOf(patch)}
                    onClick={(event) => {
                      event.preventDefault();
                      ask(patch);
                    }}
                  >
                    {hint.query ?? T.searchThere}
                  </a>
                )}
              </li>
            );
          })}
        </ul>
      )}
      <div class="ways">
        {q && <Button onClick={() => ask({ q: "" })}>{T.withoutQuery}</Button>}
        {found?.newest && (
          <Button
            onClick={() => {
              // The day before the newest record.
              const to = new Date(Date.parse(found.newest!.replace(/(\.\d{3})\d+/, "$1")) + 1).toISOString();
              ask({ from: new Date(Date.parse(to) - 86_400_000).toISOString(), to });
            }}
          >
            {T.newestAt(timeText(found.newest, tz, "minute"))}
          </Button>
        )}
        {(state.value.from !== "@0" || state.value.to) && (
          <Button onClick={() => ask({ from: "@0", to: "" })}>{T.searchAll}</Button>
        )}
      </div>
    </section>
  );
}

function Foot() {
  const found = trailer.value;
  const span = shownQuestion()?.span;
  const { tz, live } = state.value;
  const read = pages.value?.reached ?? logLines.value?.length;
  const form = narrow.value ? "minute" : "full";
  return (
    <footer class="foot">
      {span && !live && (
        <span>
          {span.fromMs > 0 ? timeText(span.fromMs, tz, form) : T.beginning} – {timeText(span.toMs, tz, form)}
        </span>
      )}
      <span class="spacer" />
      {read !== undefined && total.value
        ? !live && <span>{T.rowsRead(number(read), number(total.value), percent(read / total.value))}</span>
        : null}
      {bucketsPhase.value === "loading" && <span>{T.counting}</span>}
      {found && (
        <span>
          {T.cost(bytesText(found.bytes_scanned), `${Math.max(1, Math.round(found.elapsed_ms))} ms`)}
        </span>
      )}
      {firstRowMs.value !== null && total.value !== 0 && !live && (
        <span title={T.firstRowTitle} data-first-row-ms={firstRowMs.value}>
          {T.firstRow(String(Math.round(firstRowMs.value)))}
        </span>
      )}
    </footer>
  );
}
