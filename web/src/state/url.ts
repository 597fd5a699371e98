// The state of a view is its address, and nothing else.

import { computed, signal } from "@preact/signals";

export const VIEWS = ["search", "patterns", "access", "alerts", "proxy", "cluster"] as const;
export type View = (typeof VIEWS)[number];
export type Language = "q" | "logql" | "sql";

export interface State {
  view: View;
  lang: Language;
  q: string;
  from: string;
  to: string;
  cols: string[];
  sort: "desc" | "asc";
  tz: string;
  wrap: boolean;
  dense: boolean;
  live: boolean;
  /** Position of a record that is shown by itself: time and id. */
  sel: string;
  /** Access logs: addresses of one's own, and true if programs are shown. */
  own: string;
  bots: boolean;
}

export const COLUMNS = ["time", "level", "host", "app", "message"];

export const DEFAULTS: State = {
  view: "search",
  lang: "q",
  q: "",
  from: "1h",
  to: "",
  cols: COLUMNS,
  sort: "desc",
  tz: "local",
  wrap: false,
  dense: false,
  live: false,
  sel: "",
  own: "",
  bots: false,
};

const LANGUAGES: Language[] = ["q", "logql", "sql"];

/** Reads an address. It may be of another version, or wrong: what cannot be read has its default. */
export function parse(search: string): State {
  const params = new URLSearchParams(search);
  const lang = LANGUAGES.find((name) => params.has(name)) ?? "q";
  const view = VIEWS.find((name) => name === params.get("view")) ?? "search";
  const to = params.get("to") ?? "";
  const cols = params.get("cols");
  return {
    view,
    lang,
    q: params.get(lang) ?? "",
    from: params.get("from") || (to ? "" : DEFAULTS.from),
    to,
    cols: cols === null ? COLUMNS : cols.split(",").map(decode).filter(Boolean),
    sort: params.get("sort") === "asc" ? "asc" : "desc",
    tz: zone(params.get("tz")),
    wrap: params.get("wrap") === "1",
    dense: params.get("dense") === "1",
    live: params.get("live") === "1",
    sel: params.get("sel") ?? "",
    own: params.get("own") ?? "",
    bots: params.get("bots") === "1",
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function zone(text: string | null): string {
  if (!text || text === "local") return "local";
  try {
    new Intl.DateTimeFormat("en", { timeZone: text });
    return text;
  } catch {
    return "local";
  }
}

/** The address of a state: only what differs from the default. */
export function format(state: State): string {
  const params = new URLSearchParams();
  if (state.view !== "search") params.set("view", state.view);
  if (state.q || state.lang !== "q") params.set(state.lang, state.q);
  if (state.from !== DEFAULTS.from || state.to) params.set("from", state.from);
  if (!state.from) params.delete("from");
  if (state.to) params.set("to", state.to);
  if (state.cols.join() !== COLUMNS.join()) {
    // A comma is the separator; one within a name is escaped once more.
    params.set("cols", state.cols.map((name) => name.replace(/[%,]/g, encodeURIComponent)).join(","));
  }
  if (state.sort !== "desc") params.set("sort", state.sort);
  if (state.tz !== "local") params.set("tz", state.tz);
  if (state.wrap) params.set("wrap", "1");
  if (state.dense) params.set("dense", "1");
  if (state.live) params.set("live", "1");
  if (state.sel) params.set("sel", state.sel);
  if (state.own) params.set("own", state.own);
  if (state.bots) params.set("bots", "1");
  const text = params.toString();
  return text ? `?${text}` : "?";
}

export const state = signal<State>(parse(location.search));

/** The part of the state that requests depend on. */
export const asked = computed(() => {
  const { view, lang, q, from, to, live, sort } = state.value;
  return JSON.stringify([view, lang, q, from, to, live, sort]);
});

/** Counts runs, so that the same question can be asked again. */
export const run = signal(0);

/** Changes the state as one step of the history. */
export function go(patch: Partial<State>) {
  const next = { ...state.value, ...patch };
  const address = format(next);
  if (address === format(state.value)) return;
  history.pushState(null, "", address);
  state.value = next;
}

/** Changes the state without a step. */
export function tweak(patch: Partial<State>) {
  const next = { ...state.value, ...patch };
  history.replaceState(history.state, "", format(next));
  state.value = next;
}

/** Asks: a step of the history if the question is another one, otherwise the same question again. */
export function ask(patch: Partial<State>) {
  const before = asked.value;
  go(patch);
  if (asked.value === before) run.value += 1;
}

addEventListener("popstate", () => {
  state.value = parse(location.search);
});

export const hrefOf = (patch: Partial<State>) => format({ ...state.value, ...patch });
