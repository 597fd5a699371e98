// Requests to the server. Addresses are relative to the page, so that it works below any prefix.

import { signal } from "@preact/signals";

export interface Problem {
  status: number;
  code: string;
  message: string;
  start?: number;
  end?: number;
  hint?: string;
}

export class ApiError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
  }
}

export interface Hint {
  message: string;
  query?: string;
  command?: string;
  from?: string;
  to?: string;
}

export interface Trailer {
  complete: boolean;
  missing: string[];
  missing_count?: number;
  silent?: string[];
  lost?: string[];
  rows: number;
  more?: boolean;
  cursor?: string;
  position?: string;
  newest?: string | null;
  from?: string | null;
  to?: string | null;
  hints?: Hint[];
  bytes_scanned: number;
  elapsed_ms: number;
}

/** The data that answers of the present view lack. */
export interface Gaps {
  missing: string[];
  /** How many there are; of very many, an answer names some. */
  missingCount: number;
  silent: string[];
  lost: string[];
  /** Sentences of the server on the same. */
  warnings: string[];
}
export const gaps = signal<Gaps | null>(null);

const union = (known: string[], more: string[] = []) => [...new Set([...known, ...more])];

/** Keeps what an answer lacks until another question is asked. */
export function noteGaps(found: Partial<Trailer> & { warnings?: string[] }) {
  const { missing = [], missing_count = missing.length, silent = [], lost = [], warnings = [] } = found;
  const isWhole = found.complete !== false && !silent.length && !lost.length && !warnings.length;
  if (isWhole) return;
  const known = gaps.value ?? { missing: [], missingCount: 0, silent: [], lost: [], warnings: [] };
  const names = union(known.missing, missing);
  gaps.value = {
    missing: names,
    missingCount: Math.max(known.missingCount, missing_count, names.length),
    silent: union(known.silent, silent),
    lost: union(known.lost, lost),
    warnings: union(known.warnings, warnings),
  };
}

/** Lines that LogQL could not parse, or not as a whole, are counted by each answer anew: they are no gap of the data. */
const isOfLines = (warning: string) => /^\d+ lines? (?:with __error__|ha(?:s|ve) more than)/.test(warning);
export const lineWarnings = (warnings: string[] = []) => warnings.filter(isOfLines);

export type Params = Record<string, string | number | boolean | undefined>;

/** Why the server asks for a token, or null. */
export const signInReason = signal<"missing" | "refused" | "role" | null>(null);
/** True while the server cannot be reached. */
export const away = signal(false);

let clockAheadMs = 0;
/** The time of the server, to about a second. */
export const serverNow = () => Date.now() + clockAheadMs;

// A server without sessions takes the token in a header; then it stays in this tab and ends with it.
const TOKEN_KEY = "logpond-token";
const heldToken = () => sessionStorage.getItem(TOKEN_KEY);
export const holdsToken = () => heldToken() !== null;

export function search(params: Params): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== "" && value !== false) found.set(name, String(value));
  }
  return found.toString();
}

const BUSY_RETRIES_MAX = 3;
/** Addresses longer than this are sent as a form. */
const ADDRESS_CHARS_MAX = 6000;

/** Asks the server. Where `isExtra`, the page goes on if the token has another role. */
export async function request(
  path: string,
  params: Params = {},
  init: RequestInit = {},
  isExtra = false,
): Promise<Response> {
  const query = search(params);
  const headers = new Headers(init.headers);
  const token = heldToken();
  if (token) headers.set("authorization", `Bearer ${token}`);
  let address = query ? `${path}?${query}` : path;
  let options: RequestInit = { ...init, headers, credentials: "same-origin" };
  if (query.length > ADDRESS_CHARS_MAX && !init.method) {
    headers.set("content-type", "application/x-www-form-urlencoded");
    address = path;
    options = { ...options, method: "POST", body: query };
  }
  let response: Response;
  try {
    response = await fetch(address, options);
    // A busy server says when to come again.
    for (let attempt = 0; response.status === 429 && attempt < BUSY_RETRIES_MAX; attempt += 1) {
      const seconds = Math.min(5, Number(response.headers.get("retry-after")) || 1);
      await new Promise((done) => setTimeout(done, seconds * 1000));
      init.signal?.throwIfAborted();
      response = await fetch(address, options);
    }
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    away.value = true;
    throw new ApiError({ status: 0, code: "unreachable", message: "the server does not answer" });
  }
  away.value = false;
  const date = Date.parse(response.headers.get("date") ?? "");
  if (Number.isFinite(date)) clockAheadMs = date - Date.now();
  if (response.ok) return response;
  throw new ApiError(await problemOf(response, isExtra));
}

/** Leaves out advice in parentheses that is for the command line. */
export const withoutFlags = (text: string) => text.replace(/ ?\((?=[^()]*--[a-z])[^()]*\)/g, "");

async function problemOf(response: Response, isExtra: boolean): Promise<Problem> {
  const text = await response.text().catch(() => "");
  let problem: Partial<Problem> = {};
  try {
    const body = JSON.parse(text) as { error?: Partial<Problem> | string };
    problem = typeof body.error === "string" ? { message: body.error } : (body.error ?? {});
  } catch {
    // Loki's interface has plain text.
    if (text && !text.startsWith("<")) problem = { message: text };
  }
  const { status } = response;
  const found: Problem = { code: "", message: `the server answered ${status}`, ...problem, status };
  found.message = withoutFlags(found.message);
  if (found.hint) found.hint = withoutFlags(found.hint);
  if (status === 401) signInReason.value = found.code === "token_refused" ? "refused" : "missing";
  if (found.code === "role_missing" && !isExtra) signInReason.value = "role";
  // A proxy answers so while the server behind it is down.
  if (status === 502 || status === 504) away.value = found.code === "";
  return found;
}

export async function json<T>(
  path: string,
  params: Params = {},
  init: RequestInit = {},
  isExtra = false,
): Promise<T> {
  const body = (await (await request(path, params, init, isExtra)).json()) as T;
  const { complete, lost, warnings } = Object(body) as Partial<Trailer> & { warnings?: unknown };
  const sentences = Array.isArray(warnings) ? (warnings as string[]).filter((text) => !isOfLines(text)) : [];
  if (!init.signal?.aborted) noteGaps({ complete, lost, warnings: sentences });
  return body;
}

const isTrailer = (line: string) => line.startsWith('{"_trailer"');

/** Reads JSON lines: each batch of complete lines goes to `take`. Returns the trailer. An answer that is beside the
 * view, such as suggestions, says nothing of its completeness. */
export async function lines(
  path: string,
  params: Params,
  signal: AbortSignal,
  take: (batch: string[]) => void,
  init: RequestInit = {},
  isBeside = false,
): Promise<Trailer> {
  const response = await request(path, params, { ...init, signal });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  // Parts of a line that is longer than a chunk are joined once.
  let rest: string[] = [];
  let trailer: Trailer | null = null;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const parts = value.split("\n");
      if (parts.length === 1) {
        rest.push(value);
        continue;
      }
      parts[0] = rest.join("") + parts[0];
      rest = [parts.pop()!];
      const last = parts.at(-1)!;
      if (isTrailer(last)) {
        trailer = (JSON.parse(last) as { _trailer: Trailer })._trailer;
        parts.pop();
      }
      const whole = parts.filter(Boolean);
      if (whole.length) take(whole);
    }
  } catch (error) {
    if ((error as Error).name === "AbortError" || signal.aborted) throw error;
    throw new ApiError({ status: 0, code: "broken", message: "the connection ended before the answer did" });
  }
  if (!trailer)
    throw new ApiError({ status: 0, code: "broken", message: "the answer ended without a trailer" });
  if (!isBeside && !signal.aborted) noteGaps(trailer);
  return trailer;
}

/** The objects of an answer, and its trailer. */
export async function objects<T>(
  path: string,
  params: Params,
  signal: AbortSignal,
  init: RequestInit = {},
  isBeside = false,
): Promise<[T[], Trailer]> {
  const found: T[] = [];
  const trailer = await lines(
    path,
    params,
    signal,
    (batch) => {
      for (const line of batch) found.push(JSON.parse(line) as T);
    },
    init,
    isBeside,
  );
  return [found, trailer];
}

/** A statement of SQL as a request. */
export const statement = (body: string): RequestInit => ({
  method: "POST",
  headers: { "content-type": "text/plain" },
  body,
});

// No answer says if the server has SQL, except that of a statement. A refusal is kept in this tab: each further one
// would be an error on the console of a reader who never wrote SQL.
const NO_SQL_KEY = "logpond-no-sql";
/** Why the server has no SQL; a text without characters if it has, or if that is not known. */
export const noSql = signal(sessionStorage.getItem(NO_SQL_KEY) ?? "");
let sqlWorks = false;
let firstStatement: Promise<unknown> | null = null;

/** Takes note of the answer to a statement of SQL. */
export function noteSql(error?: unknown) {
  const { status, message } = error ? problemFrom(error) : { status: 200, message: "" };
  if (status !== 200 && status !== 501) return;
  sqlWorks = status === 200;
  noSql.value = message;
  if (message) sessionStorage.setItem(NO_SQL_KEY, message);
  else sessionStorage.removeItem(NO_SQL_KEY);
}

/** The rows of a statement of SQL over the records of a filter. A server without SQL is asked once. */
export async function sql<T>(
  body: string,
  params: { q: string; from: string; to: string },
  signal: AbortSignal,
): Promise<T[]> {
  // Panels ask at the same time: all but one wait for the first answer.
  if (!sqlWorks && !noSql.value) await firstStatement;
  signal.throwIfAborted();
  if (noSql.value) throw new ApiError({ status: 501, code: "not_built", message: noSql.value });
  const asked = objects<T>("api/v1/sql", params, signal, statement(body)).then(
    ([rows]) => {
      noteSql();
      return rows;
    },
    (error: unknown) => {
      noteSql(error);
      throw error;
    },
  );
  firstStatement ??= asked
    .catch(() => null)
    .then(() => {
      firstStatement = null;
    });
  return asked;
}

/** Exchanges a token for a cookie that scripts cannot read. */
export async function signIn(token: string): Promise<void> {
  sessionStorage.removeItem(TOKEN_KEY);
  try {
    await request(
      "api/v1/session",
      {},
      {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ token }),
      },
    );
  } catch (error) {
    const status = error instanceof ApiError ? error.problem.status : 0;
    if (status !== 404 && status !== 405) throw error;
    sessionStorage.setItem(TOKEN_KEY, token);
  }
  signInReason.value = null;
  keepSignedIn(true);
}

// The cookie of a session is hidden from scripts, so that there is one is kept beside it.
const SIGNED_IN_KEY = "logpond-signed-in";
const keepSignedIn = (is: boolean) => {
  try {
    if (is) localStorage.setItem(SIGNED_IN_KEY, "1");
    else localStorage.removeItem(SIGNED_IN_KEY);
  } catch {
    // Commands then lack the token.
  }
};
/** True if requests of the page have a token: those of a command need one, too. */
export const isSignedIn = () => holdsToken() || localStorage.getItem(SIGNED_IN_KEY) !== null;

export async function signOut(): Promise<void> {
  sessionStorage.removeItem(TOKEN_KEY);
  keepSignedIn(false);
  await request("api/v1/session", {}, { method: "DELETE" }).catch(() => null);
}

/** True for a problem that the head of the page tells already: the server does not answer. */
export const isAway = (problem: Problem) => away.value && problem.status === 0;

export const isAbort = (error: unknown) => (error as Error)?.name === "AbortError";

export function problemFrom(error: unknown): Problem {
  if (error instanceof ApiError) return error.problem;
  return { status: 0, code: "page", message: (error as Error)?.message ?? String(error) };
}
