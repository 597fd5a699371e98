// What a search is outside of the page: a command, a request, a file.

import { search as encode, holdsToken, isSignedIn, request, problemFrom } from "../api/client";
import { range, version } from "../state/results";
import { state } from "../state/url";
import { columnField, fieldOfColumn, parseRow, summaryOf } from "../lib/record";
import { isDayName, timeText, zoneName } from "../lib/time";
import { T } from "../strings";
import { say } from "./parts";

const shell = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** The address of this server, with the prefix of a proxy. */
export const base = () => new URL(".", location.href).href;

/** The flag that makes a command ask this server. */
export const addressFlag = () => `--addr ${shell(base())}${isSignedIn() ? " --token-file FILE" : ""}`;

/** The header that a request of curl needs. */
const tokenHeader = () => (isSignedIn() ? ` \\\n  -H "Authorization: Bearer $LOGPOND_TOKEN"` : "");

function times(): { from: string; to: string } {
  const { from, to } = state.value;
  const found = range.value;
  // A day by its name is one of the zone of the page; a command would take it in its own.
  const fixed = (text: string, instant: string | undefined) => (isDayName(text) && instant ? instant : text);
  return { from: fixed(from || "@0", found?.from), to: fixed(to, found?.to) };
}

export function commandOf(): string {
  const { lang, q, sort } = state.value;
  const { from, to } = times();
  const span = `--since ${shell(from)}${to ? ` --until ${shell(to)}` : ""}`;
  const order = sort === "desc" ? " --reverse" : "";
  const command =
    lang === "sql"
      ? `sql ${shell(q)} ${span}`
      : lang === "logql"
        ? `saved run ${shell(q)} ${span} --limit 0`
        : `query ${q ? `--where ${shell(q)} ` : ""}${span}${order}`;
  return `logpond ${command} ${addressFlag()}`;
}

export function curlOf(): string {
  const { lang, q, sort } = state.value;
  const { from, to } = times();
  const given = (name: string, value: string) =>
    value ? ` \\\n  --data-urlencode ${shell(`${name}=${value}`)}` : "";
  if (lang === "sql")
    return `curl ${shell(`${base()}api/v1/sql?${encode({ from, to })}`)} --data ${shell(q)}${tokenHeader()}`;
  if (lang === "logql") {
    return `curl -G ${shell(`${base()}api/query`)}${given("query", q)}${given("from", from)}${given("to", to)} \\\n  -d limit=0${tokenHeader()}`;
  }
  return `curl -G ${shell(`${base()}api/v1/query`)}${given("q", q)}${given("from", from)}${given("to", to)} \\\n  -d direction=${sort === "asc" ? "forward" : "backward"}${tokenHeader()}`;
}

export interface Download {
  text: string;
  name: string;
  href?: string;
  act?: () => void;
}

/** Files of all matches. Nothing is cut: the server streams them. */
export function downloads(): Download[] {
  void version.value;
  const { lang, q, sort } = state.value;
  const found = range.value;
  if (!found) return [];
  const scope = { q, from: found.from, to: found.to };
  const direction = sort === "asc" ? "forward" : "backward";
  const list: [text: string, name: string, path: string][] =
    lang === "q"
      ? [
          [
            T.asNdjson,
            "logpond.ndjson",
            `api/v1/query?${encode({ ...scope, direction, fields: "raw,origin" })}`,
          ],
          [
            T.asCsv,
            "logpond.csv",
            `api/v1/query?${encode({ ...scope, direction, format: "csv", defuse: true })}`,
          ],
          [
            T.asReport,
            "logpond-report.html",
            `api/v1/query?${encode({ ...scope, direction, format: "html", timezone: zoneName(state.value.tz) })}`,
          ],
        ]
      : lang === "sql"
        ? (["json", "csv", "parquet"] as const).map((format) => [
            { json: T.asNdjson, csv: T.asCsv, parquet: "Parquet" }[format],
            `logpond.${format === "json" ? "ndjson" : format}`,
            `api/v1/sql?${encode({ query: q, from: found.from, to: found.to, format, defuse: format === "csv" })}`,
          ])
        : (["ndjson", "csv"] as const).map((format) => [
            format === "csv" ? T.asCsv : T.asNdjson,
            `logpond.${format}`,
            `api/query?${encode({ query: q, from: found.from, to: found.to, format, limit: "0", defuse: format === "csv" })}`,
          ]);
  const made: Download[] = list.map(([text, name, href]) =>
    holdsToken() ? { text, name, act: () => void save(href, name) } : { text, name, href },
  );
  if (lang === "q")
    made.splice(2, 0, {
      text: T.asShown,
      name: "logpond-columns.csv",
      act: () => void saveColumns(scope, direction),
    });
  if (lang === "q")
    made.push({ text: T.asRaw, name: "logpond.log", act: () => void saveRaw(scope, direction) });
  return made;
}

function offer(blob: Blob, name: string) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  [link.href, link.download] = [address, name];
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A link shows no token: where it is not in a cookie, the file passes through the page. */
async function save(href: string, name: string) {
  try {
    offer(await (await request(href)).blob(), name);
  } catch (error) {
    say(problemFrom(error).message);
  }
}

/** Lines of all matches, each made from a line of the answer, as a file. */
async function saveLines(
  params: { q: string; from: string; to: string; direction: string; fields?: string },
  name: string,
  type: string,
  head: string,
  lineOf: (line: string) => string,
) {
  say(T.preparing);
  try {
    const response = await request("api/v1/query", params);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const parts: BlobPart[] = [head];
    let [rest, whole] = ["", false];
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop()!;
      let text = "";
      for (const line of lines) {
        if (line.startsWith('{"_trailer"'))
          whole = (JSON.parse(line) as { _trailer: { complete: boolean } })._trailer.complete;
        else if (line) text += lineOf(line);
      }
      parts.push(text);
    }
    if (!whole) parts.push(`# ${T.fileCut}\n`);
    offer(new Blob(parts, { type }), name);
    if (!whole) say(T.fileCut);
  } catch (error) {
    say(problemFrom(error).message);
  }
}

const saveRaw = (scope: { q: string; from: string; to: string }, direction: string) =>
  saveLines({ ...scope, direction, fields: "raw" }, "logpond.log", "text/plain", "", (line) => {
    const row = JSON.parse(line) as { _line?: string; _msg?: string };
    return `${row._line ?? row._msg ?? line}\n`;
  });

/** A value of CSV. One that a spreadsheet would read as a formula begins with an apostrophe. */
export function csvOf(text: string): string {
  const safe =
    /^[=+\-@\t\r]/.test(text) && !/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The columns of the list, with times in its zone. */
const saveColumns = (scope: { q: string; from: string; to: string }, direction: string) => {
  const { cols, tz } = state.value;
  const line = (values: string[]) => `${values.map(csvOf).join(",")}\r\n`;
  return saveLines(
    { ...scope, direction },
    "logpond-columns.csv",
    "text/csv",
    line(cols.map(fieldOfColumn)),
    (source) => {
      const row = parseRow(source, true);
      return line(
        cols.map((column) =>
          column === "time"
            ? timeText(row.time, tz, "iso")
            : column === "level"
              ? (row.level ?? "")
              : column === "message"
                ? summaryOf(row)
                : (columnField(row, column)?.text ?? ""),
        ),
      );
    },
  );
};
