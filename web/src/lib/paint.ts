// Parts of texts that are shown in another way: found words, colours of terminals, tokens of queries.

import { tokens } from "./query";

export interface Part {
  text: string;
  mark?: boolean;
  tone?: string;
}

// Colours; other sequences of control; titles, links and the like with their end; and two characters.
const ANSI =
  /\x1b\[([\d;]*)m|\x1b\[[\d;:?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-OQ-WYZ\\]/g;
// Characters that are not seen and may change what is seen. Those that join letters and pictures are left alone.
const HIDDEN =
  /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|\r(?!\n)/g;
const CONTROLS =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(
    " ",
  );
const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

const codeOf = (sign: string) => `U+${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;

/** Characters without a shape that get a name in one text; further ones get a common sign. */
const NAMED_MAX = 1000;

/** Parts of a text of a record, as it may be shown: in its colours, and with names for characters without a shape. */
export function textParts(text: string): Part[] {
  if (text.search(HIDDEN) < 0) return [{ text }];
  let left = NAMED_MAX;
  return ansiParts(text).flatMap((part) => {
    const found: Part[] = [];
    let at = 0;
    const plain = (end: number) => {
      if (end > at) found.push({ ...part, text: part.text.slice(at, end) });
    };
    for (const { index, 0: sign } of part.text.matchAll(HIDDEN)) {
      if (left <= 0) break;
      plain(index);
      found.push({ text: CONTROLS[sign.charCodeAt(0)] ?? codeOf(sign), tone: "control" });
      at = index + 1;
      left -= 1;
    }
    if (at < part.text.length) found.push({ ...part, text: part.text.slice(at).replace(HIDDEN, "\ufffd") });
    return found;
  });
}

/** Splits a text by the colours of a terminal, which are no part of the text. */
function ansiParts(text: string): Part[] {
  if (!text.includes("\x1b")) return [{ text }];
  const parts: Part[] = [];
  let [at, tone] = [0, undefined as string | undefined];
  for (const match of text.matchAll(ANSI)) {
    if (match.index > at) parts.push({ text: text.slice(at, match.index), tone });
    at = match.index + match[0].length;
    for (const code of (match[1] ?? "").split(";").map(Number)) {
      if (code === 0) tone = undefined;
      else if (code >= 30 && code <= 37) tone = COLOURS[code - 30];
      else if (code >= 90 && code <= 97) tone = COLOURS[code - 90];
      else if (code === 39) tone = undefined;
    }
  }
  if (at < text.length) parts.push({ text: text.slice(at), tone });
  return parts;
}

const MARKS_MAX = 50;

/** Marks the found words in parts of a text. */
export function markParts(parts: Part[], needles: { text: string; fold: boolean }[]): Part[] {
  if (!needles.length) return parts;
  let left = MARKS_MAX;
  return parts.flatMap((part) => {
    if (part.tone === "control") return [part];
    const found: Part[] = [];
    const folded = part.text.toLowerCase();
    let at = 0;
    while (left > 0) {
      let [best, size] = [-1, 0];
      for (const { text, fold } of needles) {
        const where = fold ? folded.indexOf(text.toLowerCase(), at) : part.text.indexOf(text, at);
        if (where >= 0 && (best < 0 || where < best)) [best, size] = [where, text.length];
      }
      if (best < 0 || size === 0) break;
      if (best > at) found.push({ ...part, text: part.text.slice(at, best) });
      found.push({ ...part, text: part.text.slice(best, best + size), mark: true });
      at = best + size;
      left -= 1;
    }
    if (at < part.text.length) found.push({ ...part, text: part.text.slice(at) });
    return found;
  });
}

const LOGQL =
  /("(?:[^"\\]|\\.)*"?|`[^`]*`?)|(#.*)|(\b(?:by|without|on|ignoring|group_left|group_right|and|or|unless|bool|offset|json|logfmt|regexp|pattern|unpack|line_format|label_format|unwrap|decolorize|drop|keep)\b)|(\b[a-z_]+(?=\s*\())|(\[[^\]]*\]?|\b\d[\w.]*)|([{}()|=!~<>+\-*/%^,]+)/g;
const SQL =
  /('(?:[^']|'')*'?)|(--.*)|(\b(?:select|from|where|group|by|order|limit|offset|having|with|as|join|left|right|inner|outer|full|on|and|or|not|in|like|ilike|is|null|between|case|when|then|else|end|distinct|union|all|over|partition|interval|cast|desc|asc|exists|explain|describe|show|values)\b)|(\b[a-z_]+(?=\s*\())|(\b\d[\w.]*)|([()=!~<>+\-*/%,;.]+)/gi;
const CLASSES = ["string", "comment", "word", "function", "number", "operator"];

/** The tokens of a query, for colours. Together they are the query. */
export function queryParts(text: string, language: "q" | "logql" | "sql"): Part[] {
  if (language === "q") return tokens(text).map(({ kind, text }) => ({ text, tone: kind }));
  const parts: Part[] = [];
  let at = 0;
  for (const match of text.matchAll(language === "sql" ? SQL : LOGQL)) {
    if (match.index > at) parts.push({ text: text.slice(at, match.index) });
    const group = match.slice(1).findIndex((found) => found !== undefined);
    parts.push({ text: match[0], tone: CLASSES[group] });
    at = match.index + match[0].length;
  }
  if (at < text.length) parts.push({ text: text.slice(at) });
  return parts;
}

/** Characters that nobody sees and that change a query. */
const INVISIBLE = /[\u00a0\u00ad\u200b-\u200f\u2028-\u202f\u2060\ufeff]/g;

export function invisibleIn(text: string): { code: string; at: number }[] {
  return [...text.matchAll(INVISIBLE)].map((match) => ({
    code: codeOf(match[0]),
    at: match.index,
  }));
}
export const withoutInvisible = (text: string) =>
  text.replace(INVISIBLE, (found) => (found === "\u00a0" || found === "\u202f" ? " " : ""));

/** Cuts parts at positions and marks what is between them. */
export function markRange(parts: Part[], start: number, end: number): Part[] {
  let at = 0;
  const found = parts.flatMap((part) => {
    const [from, to] = [at, at + part.text.length];
    at = to;
    if (to <= start || from >= end) return [part];
    return [
      { ...part, text: part.text.slice(0, Math.max(0, start - from)) },
      { ...part, text: part.text.slice(Math.max(0, start - from), end - from), mark: true },
      { ...part, text: part.text.slice(end - from) },
    ].filter(({ text }) => text);
  });
  // An error behind the end has a place, too.
  if (start >= at) found.push({ text: " ", mark: true });
  return found;
}
