// A record in full: fields with filters, the original line, JSON, the records around it.

import { useEffect, useState } from "preact/hooks";
import { isAbort, lines, problemFrom, type Problem } from "../api/client";
import { META, columnOf, cursorOf, parseRow, type Field, type Row } from "../lib/record";
import { textParts } from "../lib/paint";
import { isLabel as canFilter, stateOfLabel, toggleLabel } from "../lib/logql";
import { condition, exclude, include, quote, stateOf, toggleChoice, without } from "../lib/query";
import { afterTime, msOf, timeText } from "../lib/time";
import { shownLang, shownQuestion, textIn } from "../state/results";
import { ask, go, hrefOf, run, state } from "../state/url";
import { T } from "../strings";
import { Bar, Button, Parts, ProblemText, bytesText, copy, countText, number } from "./parts";
import { openContext } from "./context";

/** Fields and characters that are drawn before "show all". */
const FIELDS_SHOWN_MAX = 80;
const VALUE_SHOWN_MAX = 4000;
const RAW_SHOWN_MAX = 200_000;

export function applyFilter(field: string, value: string | null, negative: boolean) {
  const lang = shownLang.value;
  if (lang === "logql" && value !== null)
    return ask({ lang, q: toggleLabel(textIn(lang), field, value, negative), sel: "", around: "" });
  if (lang !== "q") return;
  const text = textIn(lang);
  const has = stateOf(text, field, value);
  // A second click takes the filter back.
  const next =
    !negative && value !== null && has !== "excluded"
      ? toggleChoice(text, field, value)
      : has === (negative ? "excluded" : "included")
        ? without(text, field, value)
        : (negative ? exclude : include)(text, field, value);
  ask({ lang, q: next, sel: "", around: "" });
}

export function only(field: string, value: string) {
  ask({ lang: "q", q: condition(field, "=", value), sel: "", around: "" });
}

export function FilterButtons({ field, value }: { field: string; value: string }) {
  const lang = shownLang.value;
  const q = shownQuestion()?.q ?? "";
  if (lang === "logql" && !canFilter(field)) return null;
  const has = (lang === "logql" ? stateOfLabel : stateOf)(q, field, value);
  const named = `${field}=${value.slice(0, 60)}`;
  return (
    <span class="filters">
      <Button
        class="plain"
        label={T.include(named)}
        pressed={has === "included"}
        onClick={() => applyFilter(field, value, false)}
      >
        ⊕
      </Button>
      <Button
        class="plain"
        label={T.exclude(named)}
        pressed={has === "excluded"}
        onClick={() => applyFilter(field, value, true)}
      >
        ⊖
      </Button>
    </span>
  );
}

/** Adds or removes a column; that of a field is `columnOf` it. */
export function toggleColumn(name: string) {
  const { cols } = state.value;
  go({
    cols: cols.includes(name)
      ? cols.filter((known) => known !== name)
      : [
          ...cols.filter((known) => known !== "message"),
          name,
          ...(cols.includes("message") ? ["message"] : []),
        ],
  });
}

/** The record as the server has it: the list has it clipped and without its line. */
export async function fetchRecord(
  row: Row,
  signal: AbortSignal,
): Promise<{ row: Row; source: string } | null> {
  let source = "";
  await lines(
    "api/v1/query",
    { q: `_id=${quote(row.id)}`, from: row.time, to: afterTime(row.time), fields: "raw,origin", limit: 1 },
    signal,
    (batch) => {
      source ||= batch[0]!;
    },
  );
  return source ? { row: parseRow(source, true), source } : null;
}

const ID_CHARS = 26;

/** The record at a position. It is null if there is none, and undefined until that is known. */
export function useRecordAt(position: string): { row: Row | null | undefined; problem: Problem | null } {
  const [found, setFound] = useState<{ position: string; row: Row | null } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    if (!position) return;
    setProblem(null);
    const cut = position.lastIndexOf("_");
    const time = position.slice(0, Math.max(0, cut));
    // A program may have cut off the end of a link.
    if (!Number.isFinite(msOf(time)) || position.length - cut - 1 !== ID_CHARS)
      return setFound({ position, row: null });
    const control = new AbortController();
    let row: Row | null = null;
    lines(
      "api/v1/query",
      { q: `_id=${quote(position.slice(cut + 1))}`, from: time, to: afterTime(time), limit: 1 },
      control.signal,
      ([line]) => {
        row = parseRow(line!);
      },
    ).then(
      () => setFound({ position, row }),
      (error: unknown) => {
        if (!isAbort(error)) setProblem(problemFrom(error));
      },
    );
    return () => control.abort();
  }, [position, run.value]);
  return { row: found?.position === position ? found.row : undefined, problem };
}

/** Records of one instant among which that of a line is looked for. */
const INSTANT_ROWS = 1000;

/** The record of a line of LogQL, which has no id: the one of its instant with this line, or the only one. */
async function recordOfLine(row: Row, signal: AbortSignal): Promise<{ row: Row; source: string } | null> {
  const sources: string[] = [];
  await lines(
    "api/v1/query",
    { q: "", from: row.time, to: afterTime(row.time), fields: "raw,origin", limit: INSTANT_ROWS },
    signal,
    (batch) => void sources.push(...batch),
  );
  const found = sources.map((source) => ({ row: parseRow(source, true), source }));
  const line = ({ row: { fields, message } }: { row: Row }) =>
    fields.find(({ name }) => name === "_line")?.text ?? message;
  return found.find((one) => line(one) === row.message) ?? (found.length === 1 ? found[0]! : null);
}

type Tab = "fields" | "raw" | "json";

export function Detail({ row, alone }: { row: Row; alone?: boolean }) {
  const [tab, setTab] = useState<Tab>("fields");
  const [whole, setWhole] = useState<{ row: Row; source: string } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const huge = (row.clippedBytes ?? 0) > 1_000_000;
  const [wanted, setWanted] = useState(!huge);

  useEffect(() => {
    if (!wanted) return;
    const control = new AbortController();
    (row.id ? fetchRecord : recordOfLine)(row, control.signal).then(
      (found) => setWhole(found),
      (error: unknown) => {
        if (!isAbort(error)) setProblem(problemFrom(error));
      },
    );
    return () => control.abort();
  }, [row.id, row.time, wanted]);

  const record = whole?.row ?? row;
  // Of a line of LogQL, the labels come first: they are those that its query can filter.
  const labels = row.id ? null : new Set(row.fields.map(({ name }) => name));
  const others = labels ? record.fields.filter(({ name }) => !labels.has(name.replace(/\W/g, "_"))) : [];
  const shown = row.id ? record : { ...row, fields: [...row.fields, ...others] };
  const raw = shown.fields.find(({ name }) => name === "_line")?.text ?? (row.id ? "" : (row.message ?? ""));
  return (
    <div class="detail">
      <div class="detail-bar" role="toolbar" aria-label={T.record}>
        {(["fields", "raw", "json"] as const).map((name) => (
          <Button pressed={tab === name} onClick={() => setTab(name)}>
            {T.tabs[name]}
          </Button>
        ))}
        <span class="spacer" />
        {record.id && <Button onClick={() => openContext(record)}>{T.context}</Button>}
        <Button
          onClick={() =>
            void copy(tab === "json" ? pretty(whole?.source ?? row) : raw || shown.message || "")
          }
        >
          {T.copy}
        </Button>
        {record.id && <Button onClick={() => void copy(linkOf(record), T.linkCopied)}>{T.link}</Button>}
        {record.id && !alone && <Button onClick={() => go({ sel: cursorOf(record) })}>{T.openAlone}</Button>}
      </div>
      {problem && <ProblemText problem={problem} />}
      {huge && !wanted && (
        <p class="notice">
          {T.huge(bytesText(row.clippedBytes!))} <Button onClick={() => setWanted(true)}>{T.loadAll}</Button>
        </p>
      )}
      {tab === "fields" && <Fields row={shown} labels={labels} />}
      {tab === "raw" && <Text text={raw || shown.message || ""} />}
      {tab === "json" && <Text text={pretty(whole?.source ?? row)} />}
    </div>
  );
}

const linkOf = (row: Row) =>
  new URL(hrefOf({ sel: cursorOf(row), around: "", live: false, view: "search" }), location.href).href;

function pretty(source: string | Row): string {
  if (typeof source !== "string") {
    return JSON.stringify(
      Object.fromEntries([
        ["_time", source.time],
        ["_msg", source.message],
        ...source.fields.map(({ name, text }) => [name, text]),
      ]),
      null,
      2,
    );
  }
  const members = parseRow(source, true);
  const value = ({ text, kind }: { text: string; kind: Field["kind"] }) =>
    kind === "text" ? JSON.stringify(text) : text;
  const list: [string, string][] = [
    ["_time", JSON.stringify(members.time)],
    ["_id", JSON.stringify(members.id)],
  ];
  if (members.message !== undefined) list.push(["_msg", JSON.stringify(members.message)]);
  for (const field of members.fields) list.push([field.name, value(field)]);
  return `{\n${list.map(([name, text]) => `  ${JSON.stringify(name)}: ${text}`).join(",\n")}\n}`;
}

function Text({ text }: { text: string }) {
  const [all, setAll] = useState(false);
  const shown = all ? text : text.slice(0, RAW_SHOWN_MAX);
  return (
    <pre class="raw" tabIndex={0}>
      <Parts parts={textParts(shown)} />
      {shown.length < text.length && (
        <Button onClick={() => setAll(true)}>{T.moreChars(number(text.length - shown.length))}</Button>
      )}
    </pre>
  );
}

/** The fields of a record; those of a line of LogQL that are not among its `labels` have no filters. */
function Fields({ row, labels }: { row: Row; labels: ReadonlySet<string> | null }) {
  const [filter, setFilter] = useState("");
  const [all, setAll] = useState(false);
  const lower = filter.toLowerCase();
  const matches = row.fields.filter(
    ({ name, text }) =>
      name !== "_line" &&
      name !== "_line_b64" &&
      (!lower || name.toLowerCase().includes(lower) || text.toLowerCase().includes(lower)),
  );
  const shown = all ? matches : matches.slice(0, FIELDS_SHOWN_MAX);
  return (
    <>
      {row.fields.length > 30 && (
        <input
          class="field-filter"
          value={filter}
          placeholder={T.findField}
          aria-label={T.findField}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      )}
      <dl class="fields">
        {!lower && (
          <>
            <dt>_time</dt>
            <dd>
              <span class="value">{timeText(row.time, state.value.tz, "iso")}</span>
            </dd>
          </>
        )}
        {!lower && row.message !== undefined && (
          <>
            <dt>{T.columnTitles.message}</dt>
            <dd>
              <Value field={{ name: "_msg", text: row.message, kind: "text" }} />
            </dd>
          </>
        )}
        {shown.map((field) => (
          <FieldRow key={field.name} field={field} isLabel={labels?.has(field.name) ?? false} />
        ))}
      </dl>
      {shown.length < matches.length && (
        <Button onClick={() => setAll(true)}>{T.showAllFields(number(matches.length))}</Button>
      )}
      {row.fieldsOmitted ? <p class="dim">{T.fieldsOmitted(number(row.fieldsOmitted))}</p> : null}
    </>
  );
}

/** A field with its filters. Those of LogQL are of labels, which a line has and a record has not. */
function FieldRow({ field, isLabel }: { field: Field; isLabel: boolean }) {
  const plain =
    META.has(field.name) || field.clipped !== undefined || field.kind === "json" || field.text.length > 1024;
  const native = shownLang.value === "q";
  const filters = !plain && (native || (shownLang.value === "logql" && isLabel));
  const column = columnOf(field.name);
  const shown = state.value.cols.includes(column);
  return (
    <>
      <dt>
        {filters && <FilterButtons field={field.name} value={field.text} />}
        {!META.has(field.name) && (
          <Button
            class="plain"
            label={shown ? T.removeColumn(field.name) : T.addColumn(field.name)}
            pressed={shown}
            onClick={() => toggleColumn(column)}
          >
            ▥
          </Button>
        )}
        <span class="name">
          <Parts parts={textParts(field.name)} />
        </span>
      </dt>
      <dd>
        <Value field={field} />
        {native && !plain && (
          <Button class="plain only" title={T.onlyTitle} onClick={() => only(field.name, field.text)}>
            {T.only}
          </Button>
        )}
      </dd>
    </>
  );
}

function Value({ field }: { field: Field }) {
  const [all, setAll] = useState(false);
  const { tz } = state.value;
  let { text } = field;
  if (field.kind === "json" && text.length < 50_000) text = jsonText(text);
  const isTime = field.name === "_received";
  const cut = !all && text.length > VALUE_SHOWN_MAX ? text.slice(0, VALUE_SHOWN_MAX) : text;
  return (
    <span class={`value kind-${field.kind}`}>
      <Parts parts={textParts(isTime ? timeText(text, tz, "iso") : cut)} />
      {cut.length < text.length && (
        <Button class="link" onClick={() => setAll(true)}>
          {T.moreChars(number(text.length - cut.length))}
        </Button>
      )}
      {field.clipped && <small class="dim"> … {T.ofBytes(bytesText(field.clipped))}</small>}
    </span>
  );
}

function jsonText(text: string): string {
  if (!/^[[{]/.test(text) || /\d{16,}/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

interface TopValueProps {
  field: string;
  text: string;
  count: number;
  /** Its part of the most frequent value's count. */
  share: number;
  pressed?: boolean;
  marked?: boolean;
  /** The query for its records. */
  lines: () => string;
}

/** A value of a list of the most frequent ones: filters by a click, and leads to its records. */
export function TopValue({ field, text, count, share, pressed, marked, lines }: TopValueProps) {
  return (
    <li>
      <button
        type="button"
        class={`plain ${marked ? "warn" : ""}`}
        aria-pressed={pressed}
        title={`${text}\n${number(count)}\n${T.valueHint}`}
        onClick={(event) => applyFilter(field, text, event.altKey)}
      >
        <span class="text">{text ? <Parts parts={textParts(text)} /> : T.emptyValue}</span>
        <span class="count">{countText(count)}</span>
        <Bar share={share} />
      </button>
      <Button
        class="plain go"
        label={T.access.lines(text)}
        onClick={() => ask({ view: "search", q: lines() })}
      >
        →
      </Button>
    </li>
  );
}
