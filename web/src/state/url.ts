// The state of a view is its address, and nothing else.

import { batch, computed, signal } from "@preact/signals";
import { COLUMNS } from "../lib/record";

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
  /** Seconds after which the question is asked again, or 0. */
  every: number;
  /** Position of a record that is shown by itself: time and id. */
  sel: string;
  /** Position of a record whose surroundings are shown. */
  around: string;
  /** Access logs: addresses of one's own, and true if programs are shown. */
  own: string;
  bots: boolean;
}

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
  every: 0,
  sel: "",
  around: "",
  own: "",
  bots: false,
};

/** Choices of `every`. */
export const EVERY = [0, 5, 15, 60];

const LANGUAGES: Language[] = ["q", "logql", "sql"];

/** Views that understand each language: the search, and alerts, which make rules of LogQL. */
const OF_ANY_LANGUAGE = new Set<View>(["search", "alerts", "cluster"]);

/** A state that its view understands: a text of another language is no filter there. */
function fitted(next: State): State {
  if (next.lang === "q") return next;
  if (!OF_ANY_LANGUAGE.has(next.view)) return { ...next, lang: "q", q: "" };
  return next.live ? { ...next, live: false } : next;
}

/** Reads an address. It may be of another version, or wrong: what cannot be read has its default. */
export function parse(search: string): State {
  const params = new URLSearchParams(search);
  const lang = LANGUAGES.find((name) => params.has(name)) ?? "q";
  const view = VIEWS.find((name) => name === params.get("view")) ?? "search";
  const to = params.get("to") ?? "";
  const cols = params.get("cols");
  return fitted({
    view,
    lang,
    q: params.get(lang) ?? "",
    from: params.get("from") || (to ? "" : DEFAULTS.from),
    to,
    cols: cols === null ? COLUMNS : [...new Set(cols.split(",").map(decode).filter(Boolean))],
    sort: params.get("sort") === "asc" ? "asc" : "desc",
    tz: zone(params.get("tz")),
    wrap: params.get("wrap") === "1",
    dense: params.get("dense") === "1",
    live: params.get("live") === "1",
    every: EVERY.find((seconds) => String(seconds) === params.get("every")) ?? 0,
    sel: params.get("sel") ?? "",
    around: params.get("around") ?? "",
    own: params.get("own") ?? "",
    bots: params.get("bots") === "1",
  });
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
  if (state.every) params.set("every", String(state.every));
  if (state.sel) params.set("sel", state.sel);
  if (state.around) params.set("around", state.around);
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

/** The text in the bar and its language. They become the question when they are run. */
export const draft = signal(state.value.q);
export const draftLang = signal(state.value.lang);
/** False while the bar has a text that was not run. */
export const isRun = computed(() => draft.value === state.value.q && draftLang.value === state.value.lang);

/** The native text that a click adds to: that of the bar, also if it was not run. */
export const nativeText = () => (draftLang.value === "q" ? draft.value : state.value.q);

/** Takes a state. The text in the bar stays, unless the question is another one or was given. */
function take(next: State, given: boolean) {
  const before = state.value;
  batch(() => {
    state.value = next;
    if (!given && next.q === before.q && next.lang === before.lang && understood(next)) return;
    draft.value = next.q;
    draftLang.value = next.lang;
  });
}

const understood = (next: State) => next.view === "search" || draftLang.value === next.lang;

/** Chooses the language of the bar. A text that was run stays with its language; another one comes along. */
export function chooseLanguage(lang: Language) {
  if (lang === draftLang.value) return;
  const { q, lang: asked } = state.value;
  batch(() => {
    if (isRun.value) draft.value = "";
    else if (lang === asked && !draft.value.trim()) draft.value = q;
    draftLang.value = lang;
  });
}

/** Kept with a step of the history. */
interface Step {
  /** The ranges before each zoom, the last one last. */
  before?: [from: string, to: string][];
  /** The first row that was seen as the step was left. */
  top?: number;
}
type Zooms = NonNullable<Step["before"]>;

const step = () => history.state as Step | null;
const zooms = (): Zooms => step()?.before ?? [];

/** Tells the first row on the screen; set by the list. */
let topRow = () => 0;
export function onLeave(tell: () => number) {
  topRow = tell;
}

let returned: { top: number; run: number } | null = null;
/** The row to which a step back returns, or null: another run begins at its first row. */
export const returnRow = () => (returned && returned.run === run.value ? returned.top : null);

/** Changes the state as one step of the history. */
export function go(patch: Partial<State>, before?: Zooms) {
  const next = fitted({ ...state.value, ...patch });
  const { from, to } = state.value;
  const given = patch.q !== undefined || patch.lang !== undefined;
  if (format(next) === format(state.value)) return take(next, given);
  // Zooms can be taken back as long as the range is theirs.
  const kept = before ?? (next.from === from && next.to === to ? zooms() : []);
  const top = topRow();
  returned = null;
  if (top > 0) history.replaceState({ ...step(), top }, "", format(state.value));
  history.pushState(kept.length ? { before: kept } : null, "", format(next));
  take(next, given);
}

/** Changes the state without a step. */
export function tweak(patch: Partial<State>) {
  const next = fitted({ ...state.value, ...patch });
  history.replaceState(history.state, "", format(next));
  take(next, patch.q !== undefined || patch.lang !== undefined);
}

/** Asks: a step of the history if the question is another one, otherwise the same question again. */
export function ask(patch: Partial<State>) {
  const before = asked.value;
  go(patch);
  if (asked.value === before) run.value += 1;
}

/** Asks the text in the bar, in its language. */
export function askDraft(patch: Partial<State> = {}) {
  const lang = draftLang.value;
  ask({ q: draft.value, lang, ...(lang === "q" ? {} : { live: false }), ...patch });
}

/** Zooms into a part of the range, so that `zoomOut` knows the way back. */
export function zoomIn(from: string, to: string) {
  const range: [string, string] = [state.value.from, state.value.to];
  go({ from, to, live: false }, [...zooms(), range]);
}

/** Returns to the range before the last zoom. A zoom of the same gesture goes first, and leaves no step. */
export function zoomOut(undone = false) {
  const before = [...zooms()];
  if (undone && before.length > 1) before.pop();
  const range = before.pop();
  if (!range) return;
  const [from, to] = range;
  if (!undone) return go({ from, to }, before);
  const next = { ...state.value, from, to };
  history.replaceState(before.length ? { before } : null, "", format(next));
  take(next, false);
}

/** The change that leads to a view: from the bar, by keys and in a link it is the same. */
export const toView = (view: View): Partial<State> => ({ view, live: false, sel: "", around: "" });

addEventListener("popstate", () => {
  const top = step()?.top;
  returned = top === undefined ? null : { top, run: run.value };
  take(parse(location.search), false);
});

export const hrefOf = (patch: Partial<State>) => format(fitted({ ...state.value, ...patch }));
