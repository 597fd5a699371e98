// Suggestions at the caret: fields, values with counts, and words of each language.

import { objects } from "../api/client";
import { LEVELS } from "../lib/levels";
import { caretAt, containing, fieldText, valueText } from "../lib/query";
import type { Language } from "../state/url";
import { range, type FieldInfo } from "../state/results";
import { T } from "../strings";
import { number } from "./parts";

export interface Suggestion {
  text: string;
  detail: string;
  insert: string;
  /** True if something is suggested behind it at once. */
  more: boolean;
}
export interface Suggestions {
  from: number;
  to: number;
  items: Suggestion[];
}

const SUGGESTIONS_MAX = 50;
const VALUES_MAX = 1000;
const CACHE_MAX = 30;

const NOTHING: Suggestions = { from: 0, to: 0, items: [] };
const LOGQL_WORDS = (
  "sum min max avg count topk bottomk stddev quantile_over_time count_over_time rate bytes_over_time bytes_rate " +
  "sum_over_time avg_over_time max_over_time min_over_time first_over_time last_over_time absent_over_time " +
  "by without json logfmt regexp pattern unpack line_format label_format unwrap decolorize drop keep"
).split(" ");
const SQL_WORDS = (
  "SELECT FROM WHERE GROUP BY ORDER BY LIMIT AND OR NOT IN LIKE ILIKE IS NULL BETWEEN CASE WHEN THEN ELSE END " +
  "DISTINCT HAVING JOIN LEFT ON WITH OVER PARTITION DESC logs access_combined time message line hostname level " +
  "_level service_name count(*) count sum avg min max approx_percentile_cont date_trunc date_bin regexp_match"
).split(" ");

interface Value {
  value: unknown;
  count: number;
}
const valueCache = new Map<string, { text: string; count: number }[]>();
const fieldCache = new Map<string, FieldInfo[]>();
const rangeKey = () => `${range.value?.from} ${range.value?.to}`;
const scope = () => ({ from: range.value?.from, to: range.value?.to });

function keep<V>(cache: Map<string, V>, key: string, value: V): V {
  if (cache.size >= CACHE_MAX) cache.clear();
  cache.set(key, value);
  return value;
}

async function fieldsOf(signal: AbortSignal): Promise<FieldInfo[]> {
  const known = fieldCache.get(rangeKey());
  if (known) return known;
  const [found] = await objects<FieldInfo>("api/v1/fields", scope(), signal, {}, true);
  return keep(
    fieldCache,
    rangeKey(),
    found.filter(({ field }) => field !== "_msg"),
  );
}

/** The most frequent values of a field. Where these are not all, the server finds those with the prefix. */
async function valuesOf(field: string, prefix: string, signal: AbortSignal) {
  const most = await topValues(field, "", signal);
  return prefix && most.length >= VALUES_MAX ? topValues(field, containing("", field, prefix), signal) : most;
}

async function topValues(field: string, q: string, signal: AbortSignal) {
  const key = JSON.stringify([field, q, rangeKey()]);
  const known = valueCache.get(key);
  if (known) return known;
  const [found] = await objects<Value>(
    "api/v1/top",
    { field, q, n: VALUES_MAX, ...scope() },
    signal,
    {},
    true,
  );
  const texts = found.map(({ value, count }) => ({
    text: typeof value === "string" ? value : JSON.stringify(value),
    count,
  }));
  return keep(valueCache, key, texts);
}

/** Those that begin with the prefix, then those that contain it. */
function matching<I extends { text: string }>(items: I[], prefix: string): I[] {
  const wanted = prefix.toLowerCase();
  const starts = items.filter(({ text }) => text.toLowerCase().startsWith(wanted));
  const holds = wanted ? items.filter(({ text }) => text.toLowerCase().indexOf(wanted) > 0) : [];
  return [...starts, ...holds].slice(0, SUGGESTIONS_MAX);
}

const word = (text: string, insert = text): Suggestion => ({ text, detail: "", insert, more: false });
const detailOf = ({ share, distinct }: FieldInfo) =>
  `${Math.round(share * 100)} % · ${number(distinct)} ${T.values}`;

async function native(text: string, caret: number, signal: AbortSignal): Promise<Suggestions> {
  const place = caretAt(text, caret);
  if (!place) return NOTHING;
  const { from, to, prefix } = place;
  if (place.kind === "field") {
    const known = (await fieldsOf(signal)).map((info) => ({
      text: info.field,
      detail: detailOf(info),
      insert: `${fieldText(info.field)}=`,
      more: true,
    }));
    const level = { text: "level>=", detail: T.levelOrWorse, insert: "level>=", more: true };
    const words = ["NOT", "AND", "OR"].map((name) => word(name, `${name} `));
    return { from, to, items: matching(prefix ? [...known, level, ...words] : [level, ...known], prefix) };
  }
  if (place.field === "level") {
    return {
      from,
      to,
      items: matching(
        LEVELS.map((level) => word(level, `${level} `)),
        prefix,
      ),
    };
  }
  const values = await valuesOf(place.field ?? "", prefix, signal);
  const items = matching(values, prefix).map(({ text, count }) => ({
    text,
    detail: number(count),
    insert: `${valueText(text)} `,
    more: false,
  }));
  return { from, to, items };
}

const labelName = (field: string) => field.replace(/\W/g, "_");

async function logql(text: string, caret: number, signal: AbortSignal): Promise<Suggestions> {
  const before = text.slice(0, caret);
  const inside = before.lastIndexOf("{") > before.lastIndexOf("}");
  const value = inside ? /(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)$/.exec(before) : null;
  if (value) {
    const info = (await fieldsOf(signal)).find(({ field }) => labelName(field) === value[1]);
    const values = await valuesOf(info?.field ?? value[1]!, value[2]!, signal);
    const quoted = text[caret] === '"' ? 1 : 0;
    const items = matching(values, value[2]!).map(({ text, count }) => ({
      text,
      detail: number(count),
      insert: `${JSON.stringify(text).slice(1, -1)}"`,
      more: false,
    }));
    return { from: caret - value[2]!.length, to: caret + quoted, items };
  }
  const name = inside ? /[{,]\s*(\w*)$/.exec(before) : null;
  if (name) {
    const labels = (await fieldsOf(signal)).map((info) => ({
      text: labelName(info.field),
      detail: detailOf(info),
      insert: `${labelName(info.field)}="`,
      more: true,
    }));
    const computed = ["service_name", "detected_level"].map((label) => ({
      ...word(label, `${label}="`),
      more: true,
    }));
    return { from: caret - name[1]!.length, to: caret, items: matching([...labels, ...computed], name[1]!) };
  }
  const prefix = /[a-z_]\w*$/.exec(before)?.[0] ?? "";
  if (inside || !prefix) return NOTHING;
  return {
    from: caret - prefix.length,
    to: caret,
    items: matching(
      LOGQL_WORDS.map((one) => word(one)),
      prefix,
    ),
  };
}

const columnName = (field: string) => (/^[a-z_][a-z0-9_]*$/.test(field) ? field : `"${field}"`);

async function sql(text: string, caret: number, signal: AbortSignal): Promise<Suggestions> {
  const before = text.slice(0, caret);
  const value = /([\w.]+)"?\s*(?:=|<>|!=)\s*'([^']*)$/.exec(before);
  if (value) {
    const values = await valuesOf(value[1]!, value[2]!, signal);
    const quoted = text[caret] === "'" ? 1 : 0;
    const items = matching(values, value[2]!).map(({ text, count }) => ({
      text,
      detail: number(count),
      insert: `${text.replaceAll("'", "''")}'`,
      more: false,
    }));
    return { from: caret - value[2]!.length, to: caret + quoted, items };
  }
  const prefix = /[A-Za-z_][\w.]*$/.exec(before)?.[0] ?? "";
  if (!prefix) return NOTHING;
  const columns = (await fieldsOf(signal)).map((info) => ({
    text: info.field,
    detail: detailOf(info),
    insert: columnName(info.field),
    more: false,
  }));
  return {
    from: caret - prefix.length,
    to: caret,
    items: matching([...columns, ...[...new Set(SQL_WORDS)].map((one) => word(one))], prefix),
  };
}

export function suggest(
  text: string,
  caret: number,
  language: Language,
  signal: AbortSignal,
): Promise<Suggestions> {
  return { q: native, logql, sql }[language](text, caret, signal);
}
