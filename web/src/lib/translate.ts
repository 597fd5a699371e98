// Native queries as LogQL, in which alert rules are written.

import { tokens, type Token } from "./query";

/** A condition on the line or on a label. Conditions that are negated have the opposite operator. */
type Leaf =
  | { kind: "line"; regex: boolean; negative: boolean; text: string }
  | { kind: "label"; name: string; operator: string; value: string };
type Tree = Leaf | { kind: "and" | "or"; parts: Tree[] };

/** Levels as lines of LogQL have them, the least severe first. */
const LEVELS = ["trace", "debug", "info", "warn", "error", "critical", "fatal"];
const OPPOSITE: Record<string, string> = {
  "=": "!=",
  "!=": "=",
  "=~": "!~",
  "!~": "=~",
  ">": "<=",
  "<=": ">",
  "<": ">=",
  ">=": "<",
};

/** A part of a query without a counterpart in LogQL. */
class Untranslatable extends Error {}
function refuse(): never {
  throw new Untranslatable();
}

const escapeRegex = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const label = (name: string, operator: string, value: string): Tree => ({
  kind: "label",
  name,
  operator,
  value,
});

/** The text of a token in quotation marks, and if it is of any case. */
function unquoted(token: string): { text: string; fold: boolean } {
  const fold = token.startsWith("i");
  try {
    return { text: JSON.parse(fold ? token.slice(1) : token) as string, fold };
  } catch {
    return refuse();
  }
}

/** A regular expression between slashes, as that of LogQL. */
function regexOf(token: string): string {
  const fold = token.endsWith("i");
  return `${fold ? "(?i)" : ""}${token.slice(1, fold ? -2 : -1).replaceAll("\\/", "/")}`;
}

/** Reads `a b OR NOT (c AND d)` into a tree. */
class Reader {
  private at = 0;
  private readonly list: Token[];
  constructor(query: string) {
    this.list = tokens(query).filter(({ kind }) => kind !== "space");
  }

  whole(): Tree {
    const found = this.or();
    if (this.at < this.list.length) refuse();
    return found;
  }

  private next(kind: string, text?: string): Token | null {
    const token = this.list[this.at];
    if (token?.kind !== kind || (text !== undefined && token.text !== text)) return null;
    this.at += 1;
    return token;
  }

  private or(): Tree {
    const parts = [this.and()];
    while (this.next("word", "OR")) parts.push(this.and());
    return parts.length === 1 ? parts[0]! : { kind: "or", parts };
  }

  private and(): Tree {
    const parts: Tree[] = [];
    for (;;) {
      const token = this.list[this.at];
      if (!token || token.text === ")" || (token.kind === "word" && token.text === "OR")) break;
      if (!this.next("word", "AND")) parts.push(this.term());
    }
    return parts.length === 1 ? parts[0]! : { kind: "and", parts };
  }

  private term(): Tree {
    if (this.next("word", "NOT")) return negated(this.term());
    if (this.next("paren", "(")) {
      const found = this.or();
      if (!this.next("paren", ")") || isEmpty(found)) refuse();
      return found;
    }
    const field = this.next("field");
    if (field) return conditionOf(field.text, this.next("operator")!.text, this.next("value")?.text ?? "");
    const regex = this.next("regex");
    if (regex) return { kind: "line", regex: true, negative: false, text: regexOf(regex.text) };
    const string = this.next("string");
    if (string) {
      const { text, fold } = unquoted(string.text);
      return { kind: "line", regex: fold, negative: false, text: fold ? `(?i)${escapeRegex(text)}` : text };
    }
    let words = this.next("text")?.text ?? refuse();
    for (let more = this.next("text"); more; more = this.next("text")) words += ` ${more.text}`;
    return words === "*"
      ? { kind: "and", parts: [] }
      : { kind: "line", regex: false, negative: false, text: words };
  }
}

const isEmpty = (tree: Tree) => "parts" in tree && tree.parts.length === 0;

function levelOf(operator: string, value: string): Tree {
  if (operator === "=" || operator === "!=") return label("detected_level", operator, value);
  const at = LEVELS.indexOf(value === "notice" ? "info" : value);
  if (at < 0) return refuse();
  const ends: Record<string, [number, number?]> = {
    ">=": [at],
    ">": [at + 1],
    "<=": [0, at + 1],
    "<": [0, at],
  };
  return label("detected_level", "=~", LEVELS.slice(...(ends[operator] ?? refuse())).join("|"));
}

function conditionOf(field: string, operator: string, value: string): Tree {
  const name = field.replace(/^"|"$/g, "").replace(/[^\w]/g, "_");
  const isQuoted = /^i?"/.test(value);
  const { text, fold } = isQuoted ? unquoted(value) : { text: value, fold: false };
  if (operator === ":" && value === "*") return label(name, "!=", "");
  if (field === "level") return levelOf(operator, text);
  if (operator === ":" || fold) {
    // A part of the text.
    const pattern = `(?s${fold ? "i" : ""}).*${escapeRegex(text)}.*`;
    if (operator === ":") return label(name, "=~", pattern);
    return label(
      name,
      operator === "=" ? "=~" : operator === "!=" ? "!~" : refuse(),
      `(?i)${escapeRegex(text)}`,
    );
  }
  if (operator === "=" || operator === "!=") return label(name, operator, text);
  if (/^[<>]=?$/.test(operator) && /^-?[\d.]+$/.test(value)) return label(name, operator, value);
  if ((operator === "~" || operator === "!~") && value.startsWith("/")) {
    const inner = value.endsWith("i") ? value.slice(1, -2) : value.slice(1, -1);
    const pattern = `${value.endsWith("i") ? "(?i)" : ""}.*(${inner.replaceAll("\\/", "/")}).*`;
    return label(name, operator === "~" ? "=~" : "!~", pattern);
  }
  return refuse();
}

const isNumeric = (operator: string) => /^[<>]=?$/.test(operator);

/** The opposite of a tree, with negations only in its leaves. */
function negated(tree: Tree): Tree {
  if (tree.kind === "line") return { ...tree, negative: !tree.negative };
  if (tree.kind === "label") {
    const opposite = label(tree.name, OPPOSITE[tree.operator]!, tree.value);
    // A line without the label is none with the number, and LogQL compares no label that is not there.
    return isNumeric(tree.operator) ? { kind: "or", parts: [opposite, label(tree.name, "=", "")] } : opposite;
  }
  // The opposite of all records has no form.
  if (!tree.parts.length) return refuse();
  return { kind: tree.kind === "and" ? "or" : "and", parts: tree.parts.map(negated) };
}

const isLabels = (tree: Tree): boolean =>
  tree.kind === "label" || ("parts" in tree && tree.parts.length > 0 && tree.parts.every(isLabels));

/** Conditions on labels as an expression of LogQL. */
function labelText(tree: Tree, inner = false): string {
  if (tree.kind === "label") {
    const { name, operator, value } = tree;
    if (isNumeric(operator)) return `${name} ${operator} ${value}`;
    const space = operator.includes("~") && name !== "detected_level" ? " " : "";
    return `${name}${space}${operator}${space}${JSON.stringify(value)}`;
  }
  if (!("parts" in tree)) return refuse();
  const text = tree.parts.map((part) => labelText(part, true)).join(` ${tree.kind} `);
  return inner ? `(${text})` : text;
}

function lineText({ regex, negative, text }: Leaf & { kind: "line" }): string {
  return `${negative ? (regex ? "!~" : "!=") : regex ? "|~" : "|="} ${JSON.stringify(text)}`;
}

/** One of several texts of the line. */
function anyLine(parts: Tree[]): string {
  const lines = parts.filter(
    (part): part is Leaf & { kind: "line" } => part.kind === "line" && !part.negative,
  );
  if (lines.length < parts.length) return refuse();
  if (lines.every(({ regex }) => !regex))
    return `|= ${lines.map(({ text }) => JSON.stringify(text)).join(" or ")}`;
  const pattern = lines.map(({ regex, text }) => (regex ? `(?:${text})` : escapeRegex(text))).join("|");
  return `|~ ${JSON.stringify(pattern)}`;
}

const flat = (tree: Tree, kind: "and" | "or"): Tree[] =>
  tree.kind === kind ? tree.parts.flatMap((part) => flat(part, kind)) : [tree];

/** LogQL with the meaning of a native query, or null if it has parts without a counterpart. */
export function logqlOf(query: string): string | null {
  try {
    const selectors: string[] = [];
    const filters: string[] = [];
    for (const part of flat(new Reader(query).whole(), "and")) {
      const isSelector =
        part.kind === "label" &&
        part.name !== "detected_level" &&
        (part.operator === "=" || part.operator === "!=");
      if (isSelector) selectors.push(labelText(part));
      else if (isLabels(part)) filters.push(`| ${labelText(part)}`);
      else if (part.kind === "line") filters.push(lineText(part));
      else if (part.kind === "or") filters.push(anyLine(flat(part, "or")));
      else refuse();
    }
    return `{${selectors.join(", ")}}${filters.length ? ` ${filters.join(" ")}` : ""}`;
  } catch (error) {
    if (error instanceof Untranslatable) return null;
    throw error;
  }
}
