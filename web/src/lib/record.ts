// Rows of an answer. Text of records is data: it becomes text nodes, never markup. Numbers stay the digits that
// the server sent, because a browser's number has 53 bits.

import { LEVEL_FIELDS, levelOf, type Level } from "./levels";

export type Kind = "text" | "number" | "json";
export interface Field {
  name: string;
  text: string;
  kind: Kind;
  /** Bytes of the whole value, if it is cut. */
  clipped?: number;
}

export interface Row {
  time: string;
  id: string;
  message: string | undefined;
  fields: Field[];
  level: Level | undefined;
  /** Bytes of the row as it was sent, if parts of it are not kept. */
  clippedBytes?: number;
  fieldsOmitted?: number;
}

/** Characters of a value, and fields of a row, that a list keeps; the rest is loaded on demand. The server cuts
 * values before this. */
export const VALUE_CHARS_MAX = 2048;
export const FIELDS_MAX = 200;

// Texts as a whole, signs, and all else.
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
// A number that JavaScript would write in another way.
const ODD_NUMBER = /[:,[]\s*-?(?:\d{16,}|\d+\.\d*0(?=[,}\]\s])|\d[\d.]*[eE]|\d+\.\d{16,})/;

type Member = [name: string, text: string, kind: Kind];

/** The members of an object of JSON, with values as they are written. */
function writtenMembers(line: string): Member[] {
  const members: Member[] = [];
  let depth = 0;
  let name: string | null = null;
  let start: number | null = null;
  const end = (at: number) => {
    if (start === null || name === null) return;
    const written = line.slice(start, at).trim();
    if (written.startsWith('"')) members.push([name, JSON.parse(written) as string, "text"]);
    else members.push([name, written, /^-?\d/.test(written) ? "number" : "json"]);
    name = start = null;
  };
  for (const { 0: sign, index } of line.matchAll(TOKENS)) {
    if (depth === 1 && sign === ":" && start === null) start = index + 1;
    else if (depth === 1 && (sign === "," || sign === "}")) end(index);
    else if (depth === 1 && start === null && sign.startsWith('"')) name = JSON.parse(sign) as string;
    if (sign === "{" || sign === "[") depth += 1;
    if (sign === "}" || sign === "]") depth -= 1;
  }
  return members;
}

function members(line: string): Member[] {
  if (ODD_NUMBER.test(line)) return writtenMembers(line);
  return Object.entries(JSON.parse(line) as Record<string, unknown>).map(([name, value]) => {
    if (typeof value === "string") return [name, value, "text"];
    if (typeof value === "number") return [name, String(value), "number"];
    return [name, JSON.stringify(value), "json"];
  });
}

function clip(text: string, max: number): [string, number | undefined] {
  return text.length > max ? [text.slice(0, max), text.length] : [text, undefined];
}

/** The level of these fields: that of the first field of the list that has one. */
export function levelOfFields(fields: Field[]): Level | undefined {
  let best = LEVEL_FIELDS.length;
  let level: Level | undefined;
  for (const { name, text } of fields) {
    const rank = LEVEL_FIELDS.indexOf(name);
    if (rank < 0 || rank >= best) continue;
    const found = levelOf(name, text);
    if (found) [best, level] = [rank, found];
  }
  return level;
}

/** Parses a line of an answer of /api/v1/query. */
export function parseRow(line: string, whole = false): Row {
  const row: Row = { time: "", id: "", message: undefined, fields: [], level: undefined };
  const max = whole ? Infinity : VALUE_CHARS_MAX;
  let omitted = 0;
  let lengths: Record<string, number> = {};
  for (const [name, value, kind] of members(line)) {
    if (name === "_time") row.time = value;
    else if (name === "_id") row.id = value;
    else if (name === "_clipped" && kind === "json") lengths = JSON.parse(value) as Record<string, number>;
    else if (!whole && row.fields.length >= FIELDS_MAX) omitted += 1;
    else {
      const [text, clipped] = clip(value, max);
      if (clipped) row.clippedBytes = line.length;
      if (name === "_msg") row.message = text;
      else row.fields.push(clipped ? { name, text, kind, clipped } : { name, text, kind });
    }
  }
  for (const [name, length] of Object.entries(lengths)) {
    const field = row.fields.find((known) => known.name === name);
    if (field) field.clipped = length;
    row.clippedBytes = (row.clippedBytes ?? line.length) + length;
  }
  if (omitted) [row.fieldsOmitted, row.clippedBytes] = [omitted, line.length];
  row.level = levelOfFields(row.fields);
  return row;
}

/** Metadata of a record that is neither a column nor a filter. */
export const META = new Set([
  "_line",
  "_line_b64",
  "_msg_bin",
  "_received",
  "_time_source",
  "_level",
  "_level_number",
]);

export function fieldOf(row: Row, name: string): Field | undefined {
  return row.fields.find((field) => field.name === name);
}

// Names that senders use for the machine and for the program, in the order of preference.
const HOST_FIELDS = ["hostname", "host", "_HOSTNAME", "host.name", "k8s.node.name", "node", "instance"];
const APP_FIELDS = [
  "app",
  "service_name",
  "service",
  "service.name",
  "app_name",
  "appname",
  "application",
  "SYSLOG_IDENTIFIER",
  "program",
  "_COMM",
  "container_name",
  "container",
  "k8s.container.name",
  "job",
  "tag",
  "logger",
];

/** The columns of the list at first. They are no fields: a record's time, its level, its message, and two groups. */
export const COLUMNS = ["time", "level", "host", "app", "message"];

/** Columns that stand for one of several fields. */
export const GROUPS = new Map([
  ["host", HOST_FIELDS],
  ["app", APP_FIELDS],
]);

/** Stands before the name of a field that would be taken for another column. */
const FIELD_MARK = "field:";

/** The column of a field. */
export const columnOf = (field: string) =>
  COLUMNS.includes(field) || field.startsWith(FIELD_MARK) ? FIELD_MARK + field : field;

/** The field of a column that has one. */
export const fieldOfColumn = (column: string) =>
  column.startsWith(FIELD_MARK) ? column.slice(FIELD_MARK.length) : column;

/** The field that a column shows in this row. */
export function columnField(row: Row, column: string): Field | undefined {
  for (const name of GROUPS.get(column) ?? [fieldOfColumn(column)]) {
    const found = fieldOf(row, name);
    if (found) return found;
  }
  return undefined;
}

/** The text of a row's message; without one, its fields. */
export function summaryOf(row: Row): string {
  if (row.message !== undefined) return row.message;
  return row.fields
    .filter(({ name }) => !META.has(name))
    .map(({ name, text }) => `${name}=${text}`)
    .join(" ");
}

/** The position of a row, which is a cursor of the server. */
export const cursorOf = (row: Row) => `${row.time}_${row.id}`;

/** A value as text. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));
