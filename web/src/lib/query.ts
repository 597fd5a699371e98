// Editing of the native query language (docs/http.md, "The query language").

import { levelOf } from "./levels";

export type TokenKind =
  "text" | "string" | "regex" | "field" | "operator" | "value" | "word" | "paren" | "space";
export interface Token {
  kind: TokenKind;
  text: string;
  start: number;
}

const STRING = String.raw`i?"(?:[^"\\]|\\.)*"?`;
const REGEX = String.raw`/(?:[^/\\\n]|\\.)+/i?(?=[\s)]|$)`;
const NAME = String.raw`(?:[\p{L}\p{N}_@.-]+|"(?:[^"\\]|\\.)*")`;
const OPERATOR = "!=|!~|>=|<=|=|~|>|<|:(?=\\S)";
const PATTERN = new RegExp(
  `(?<space>\\s+)|(?<paren>[()])|(?<word>(?:AND|OR|NOT)(?=[\\s()]|$))` +
    `|(?<field>${NAME})(?<operator>${OPERATOR})(?<value>${STRING}|${REGEX}|[^\\s()]*)` +
    `|(?<string>${STRING})|(?<regex>${REGEX})|(?<text>[^\\s()]+)`,
  "yu",
);

/** Splits a query into tokens, which together are the query. Text is never refused. */
export function tokens(query: string): Token[] {
  const found: Token[] = [];
  PATTERN.lastIndex = 0;
  let at = 0;
  while (at < query.length) {
    PATTERN.lastIndex = at;
    const groups = PATTERN.exec(query)?.groups;
    if (!groups) {
      found.push({ kind: "text", text: query[at]!, start: at });
      at += 1;
      continue;
    }
    // Words such as `12:30:01`, `std::vec` and `http://x` only look like a condition.
    const isText = groups.operator === ":" && (/^[:/]/.test(groups.value!) || /^\d+$/.test(groups.field!));
    if (groups.field !== undefined && !isText) {
      found.push({ kind: "field", text: groups.field, start: at });
      at += groups.field.length;
      found.push({ kind: "operator", text: groups.operator!, start: at });
      at += groups.operator!.length;
      if (groups.value) found.push({ kind: "value", text: groups.value, start: at });
      at += groups.value!.length;
      continue;
    }
    const kind = isText
      ? "text"
      : (Object.keys(groups).find((name) => groups[name] !== undefined) as TokenKind);
    const text = isText ? groups.field! + groups.operator + groups.value : groups[kind]!;
    found.push({ kind, text, start: at });
    at += text.length;
  }
  return found;
}

const BARE = /^[\p{L}\p{N}_.-]+$/u;
export const quote = (text: string) =>
  `"${text.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n").replace(/\r/g, "\\r").replace(/\t/g, "\\t")}"`;
export const valueText = (value: string) => (BARE.test(value) ? value : quote(value));
export const fieldText = (name: string) => (/^[\p{L}\p{N}_@.-]+$/u.test(name) ? name : quote(name));

/** A condition as text. A null value is "has the field". */
export function condition(field: string, operator: string, value: string | null): string {
  const name = field === "_level" ? "level" : fieldText(field);
  return value === null ? `${name}:*` : `${name}${operator}${valueText(value)}`;
}

interface Term {
  text: string;
  start: number;
  end: number;
}

/** The terms that AND joins at the top, or null if there is an OR among them. */
export function topTerms(query: string): Term[] | null {
  const terms: Term[] = [];
  let depth = 0;
  let open: Term | null = null;
  let negated = -1;
  const close = (end: number) => {
    if (open) terms.push({ ...open, end, text: query.slice(open.start, end) });
    open = null;
  };
  const all = tokens(query);
  all.forEach(({ kind, text, start }, index) => {
    const end = start + text.length;
    if (kind === "paren") {
      if (text === "(") {
        if (depth === 0) {
          close(start);
          open = { start: negated >= 0 ? negated : start, end, text: "" };
          negated = -1;
        }
        depth += 1;
      } else {
        depth = Math.max(0, depth - 1);
        if (depth === 0) close(end);
      }
      return;
    }
    if (depth > 0) return;
    if (kind === "word") {
      close(start);
      if (text === "OR") terms.push({ text: "OR", start, end });
      if (text === "NOT" && negated < 0) negated = start;
      return;
    }
    if (kind === "space" || kind === "operator" || kind === "value") return;
    const last = all[index + 2]?.kind === "value" ? all[index + 2]! : all[index + 1]!;
    const ends = kind === "field" ? last.start + last.text.length : end;
    terms.push({
      text: query.slice(negated >= 0 ? negated : start, ends),
      start: negated >= 0 ? negated : start,
      end: ends,
    });
    negated = -1;
  });
  close(query.length);
  return terms.some(({ text }) => text === "OR") ? null : terms;
}

function remove(query: string, term: Term): string {
  const before = query.slice(0, term.start).replace(/\s*(?:\bAND\s*)?$/, "");
  const after = query.slice(term.end).replace(/^\s*(?:AND\b\s*)?/, "");
  return [before, after].filter(Boolean).join(" ").trim();
}

const isAll = (query: string) => query.trim() === "" || query.trim() === "*";

/** Adds a condition. The same one is not added twice, and its opposite is replaced. */
export function include(query: string, field: string, value: string | null, negative = false): string {
  const wanted = negative
    ? value === null
      ? `NOT ${condition(field, "=", null)}`
      : condition(field, "!=", value)
    : condition(field, "=", value);
  const opposite = negative
    ? condition(field, "=", value)
    : value === null
      ? `NOT ${condition(field, "=", null)}`
      : condition(field, "!=", value);
  if (isAll(query)) return wanted;
  const terms = topTerms(query);
  if (!terms) return `(${query.trim()}) ${wanted}`;
  if (terms.some(({ text }) => text === wanted)) return query.trim();
  const contrary = terms.find(({ text }) => text === opposite);
  const rest = contrary ? remove(query, contrary) : query.trim();
  return isAll(rest) ? wanted : `${rest} ${wanted}`;
}

export const exclude = (query: string, field: string, value: string | null) =>
  include(query, field, value, true);

/** Removes a condition that is there, whether it includes or excludes. */
export function without(query: string, field: string, value: string | null): string {
  const terms = topTerms(query) ?? [];
  const forms = [
    condition(field, "=", value),
    condition(field, "!=", value),
    `NOT ${condition(field, "=", value)}`,
  ];
  const found = terms.find(({ text }) => forms.includes(text));
  return found ? remove(query, found) : query;
}

/** Removes a term of the top, or returns null if there is none of this text. */
export function withoutTerm(query: string, text: string): string | null {
  const term = topTerms(query)?.find((known) => known.text === text);
  return term ? remove(query, term) : null;
}

/** Says how a query has a condition already. */
export function stateOf(query: string, field: string, value: string | null): "included" | "excluded" | null {
  const terms = topTerms(query) ?? [];
  if (terms.some(({ text }) => text === condition(field, "=", value))) return "included";
  if (value !== null && choices(query, field).includes(valueText(value))) return "included";
  const negatives = [condition(field, "!=", value), `NOT ${condition(field, "=", value)}`];
  return terms.some(({ text }) => negatives.includes(text)) ? "excluded" : null;
}

/** Levels of a query that are none: where their words lie, so that others can be put in place of them. */
export function levelWords(query: string): { word: string; start: number; end: number }[] {
  const all = tokens(query);
  return all.flatMap(({ kind, text, start }, index) => {
    const isLevel = kind === "value" && all[index - 2]?.text === "level" && /^[A-Za-z]+$/.test(text);
    return isLevel && !levelOf("level", text) ? [{ word: text, start, end: start + text.length }] : [];
  });
}

/** The values of one field of which a term has one or another, such as `(a=1 OR a=2)`, or null if it has another form. */
function choiceOf(term: string, field: string): string[] | null {
  const list = tokens(term).filter(({ kind }) => kind !== "space");
  if (list[0]?.text === "(" && list.at(-1)?.text === ")") [list.shift(), list.pop()];
  const name = condition(field, "=", "x").slice(0, -2);
  const values: string[] = [];
  for (let at = 0; at < list.length; at += 4) {
    const [first, operator, value, or] = list.slice(at, at + 4);
    if (first?.text !== name || operator?.text !== "=" || value?.kind !== "value") return null;
    if (or && or.text !== "OR") return null;
    values.push(value.text);
  }
  return values.length && values.length * 4 - 1 === list.length ? values : null;
}

const choiceTerm = (query: string, field: string) => {
  const terms = (topTerms(query) ?? []).map((term) => ({ term, values: choiceOf(term.text, field) }));
  return terms.find((found): found is { term: Term; values: string[] } => found.values !== null) ?? null;
};

/** Values of a field that a query asks for, as they are written. */
export const choices = (query: string, field: string) => choiceTerm(query, field)?.values ?? [];

/** A query without its choice of values of a field: of these, others can be chosen. */
export function withoutChoice(query: string, field: string): string {
  const found = choiceTerm(query, field);
  return found ? remove(query, found.term) : query;
}

/** Adds a value to those of a field that a query asks for, or takes it from them. */
export function toggleChoice(query: string, field: string, value: string): string {
  const [found, text] = [choiceTerm(query, field), valueText(value)];
  if (!found) return include(query, field, value);
  const values = found.values.includes(text)
    ? found.values.filter((known) => known !== text)
    : [...found.values, text];
  const name = condition(field, "=", "x").slice(0, -2);
  const all = values.map((known) => `${name}=${known}`).join(" OR ");
  if (!all) return remove(query, found.term);
  const term = values.length > 1 ? `(${all})` : all;
  return query.slice(0, found.term.start) + term + query.slice(found.term.end);
}

/** Adds a range of numbers, in place of an earlier one of the same field. */
export function between(query: string, field: string, low: number, high: number): string {
  const name = fieldText(field);
  let rest = isAll(query) ? "" : query.trim();
  for (;;) {
    const found = (topTerms(rest) ?? []).find(
      ({ text }) => text.startsWith(`${name}>=`) || text.startsWith(`${name}<=`),
    );
    if (!found) break;
    rest = remove(rest, found);
  }
  const range = `${name}>=${low} ${name}<=${high}`;
  if (!rest) return range;
  return topTerms(rest) ? `${rest} ${range}` : `(${rest}) ${range}`;
}

/** A query for those records whose field has a text, in upper or lower case. */
export function containing(query: string, field: string, text: string): string {
  const wanted = `${fieldText(field)}:i${quote(text)}`;
  if (isAll(query)) return wanted;
  return topTerms(query) ? `${query.trim()} ${wanted}` : `(${query.trim()}) ${wanted}`;
}

/** The bounds of a field that a query has in the form of `between`, as they are written. */
export function boundsOf(query: string, field: string): { low?: string; high?: string } {
  const name = fieldText(field);
  const found: { low?: string; high?: string } = {};
  for (const { text } of topTerms(query) ?? []) {
    if (text.startsWith(`${name}>=`)) found.low = text.slice(name.length + 2);
    if (text.startsWith(`${name}<=`)) found.high = text.slice(name.length + 2);
  }
  return found;
}

/** The words of a query that a row's text may contain, for highlighting. */
export function needles(query: string): { text: string; fold: boolean }[] {
  const found: { text: string; fold: boolean }[] = [];
  let words = "";
  const flush = () => {
    if (words.trim()) found.push({ text: words.trim(), fold: false });
    words = "";
  };
  let negated = false;
  for (const { kind, text } of tokens(query)) {
    if (kind === "text" && !negated && text !== "*") words += text;
    else if (kind === "space" && words) words += text;
    else {
      flush();
      if (kind === "string" && !negated) {
        const fold = text.startsWith("i");
        const inner = text.replace(/^i?"/, "").replace(/"$/, "").replace(/\\(.)/g, "$1");
        if (inner) found.push({ text: inner, fold });
      }
    }
    if (kind !== "space") negated = kind === "word" && text === "NOT";
  }
  flush();
  return found;
}

export interface Caret {
  kind: "field" | "value";
  prefix: string;
  field?: string;
  from: number;
  to: number;
}

/** The part of the query at the caret that can be completed. */
export function caretAt(query: string, caret: number): Caret | null {
  const all = tokens(query);
  let field = "";
  for (const [index, token] of all.entries()) {
    const end = token.start + token.text.length;
    if (token.kind === "field") field = token.text.replace(/^"|"$/g, "");
    if (caret < token.start || caret > end || (caret === end && token.kind === "space")) continue;
    const next = all[index + 1];
    if (token.kind === "operator" && caret === end && next?.kind !== "value") {
      return { kind: "value", field, prefix: "", from: end, to: end };
    }
    if (token.kind === "value" && caret > token.start) {
      const prefix = query.slice(token.start, caret).replace(/^i?"/, "");
      return { kind: "value", field, prefix, from: token.start, to: end };
    }
    if ((token.kind === "field" || token.kind === "text") && caret > token.start) {
      return { kind: "field", prefix: query.slice(token.start, caret), from: token.start, to: end };
    }
  }
  return { kind: "field", prefix: "", from: caret, to: caret };
}
