// The search bar: text over painted tokens, completion, the place of errors, history and saved queries.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { isAbort, isAway, problemFrom, request, signInReason, json, type Problem } from "../api/client";
import { nearestLevel } from "../lib/levels";
import { withVariables } from "../lib/logql";
import { levelWords } from "../lib/query";
import { invisibleIn, markRange, queryParts, withoutInvisible } from "../lib/paint";
import {
  ask,
  askDraft,
  chooseLanguage,
  draft,
  draftLang,
  hrefOf,
  isRun,
  parse,
  state,
  type Language,
  type State,
} from "../state/url";
import { phase, problem, problemText, range, resume, stop, bucketsPhase, pages } from "../state/results";
import { T } from "../strings";
import { Button, Menu, MenuItem, Parts, Retry, copy, openMenu, say } from "./parts";
import { suggest, type Suggestion, type Suggestions } from "./suggest";
import { TimePicker } from "./timepicker";
import { curlOf, commandOf, downloads } from "./commands";

const HISTORY_KEY = "logpond-history";
const LOCAL_SAVED_KEY = "logpond-saved";
const HISTORY_MAX = 50;

interface Remembered {
  lang: Language;
  q: string;
}
interface Saved {
  name: string;
  query: string;
  description?: string;
  built_in?: boolean;
  lang?: Language;
  search?: string;
  language?: string;
  /** The columns and the range, as in the address of the page. */
  view?: string;
}

function stored<E>(key: string): E[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(found) ? (found as E[]) : [];
  } catch {
    return [];
  }
}

function store(key: string, value: unknown) {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // A full or forbidden store only loses the history.
  }
}

function remember(lang: Language, q: string) {
  if (!q.trim()) return;
  const rest = stored<Remembered>(HISTORY_KEY).filter((known) => known.q !== q || known.lang !== lang);
  store(HISTORY_KEY, [{ lang, q }, ...rest].slice(0, HISTORY_MAX));
}

/** Runs the text in the bar, in this range if one is given. */
export function submit(range: Partial<State> = {}) {
  openMenu.value = "";
  remember(draftLang.value, draft.value);
  askDraft({ sel: "", around: "", ...range });
}

/** The characters of the text that a problem is about. */
function wrongRange(found: Problem, text: string): [number, number] | null {
  if (found.start !== undefined) {
    // The server counts characters, and JavaScript units of UTF-16.
    const units = (count: number) => [...text].slice(0, count).join("").length;
    const start = units(found.start);
    return [start, Math.max(start + 1, units(found.end ?? found.start + 1))];
  }
  const place = /line:? (\d+),? col(?:umn)?:? ?(\d+)/i.exec(`${found.message} ${found.hint ?? ""}`);
  if (!place) return null;
  const before = text
    .split("\n")
    .slice(0, Number(place[1]) - 1)
    .join("\n").length;
  const start = before + (Number(place[1]) > 1 ? 1 : 0) + Number(place[2]) - 1;
  const word = /^[\w.]+/.exec(text.slice(start))?.[0].length ?? 1;
  return [start, start + word];
}

const PLACEHOLDERS: Record<Language, string> = {
  q: T.placeholder,
  logql: T.placeholderLogql,
  sql: T.placeholderSql,
};

// The role is allowed for a text area with a list, though the types of JSX do not know it.
const COMBOBOX = { role: "combobox" } as unknown as { role: "textbox" };

function Editor() {
  const text = draft.value;
  const lang = draftLang.value;
  const area = useRef<HTMLTextAreaElement>(null);
  const [open, setOpen] = useState(false);
  const [found, setFound] = useState<Suggestions>({
    from: 0,
    to: 0,
    items: [],
  });
  const [active, setActive] = useState(-1);
  const control = useRef(new AbortController());

  const wrong =
    problem.value && problemText.value === text && isRun.value && phase.value === "failed"
      ? wrongRange(problem.value, text)
      : null;
  let parts = queryParts(text, lang);
  if (wrong) parts = markRange(parts, ...wrong);

  const update = async () => {
    const input = area.current;
    if (!input || document.activeElement !== input) return setOpen(false);
    control.current.abort();
    control.current = new AbortController();
    const { signal } = control.current;
    try {
      const next = await suggest(input.value, input.selectionStart, lang, signal);
      if (signal.aborted || document.activeElement !== input) return;
      setFound(next);
      setActive(-1);
      setOpen(next.items.length > 0);
    } catch (error) {
      if (!isAbort(error)) setOpen(false);
    }
  };

  const accept = (item: Suggestion) => {
    const input = area.current!;
    const before = input.value.slice(0, found.from) + item.insert;
    const after = input.value.slice(found.to);
    draft.value = before + (item.insert.endsWith(" ") ? after.replace(/^\s/, "") : after);
    input.value = draft.value;
    input.setSelectionRange(before.length, before.length);
    input.focus();
    if (item.more) void update();
    else setOpen(false);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const { items } = found;
    if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      setActive((active + step + items.length + (active < 0 && step < 0 ? 1 : 0)) % items.length);
    } else if (
      open &&
      (event.key === "Enter" ? active >= 0 : event.key === "Tab" && (active >= 0 || found.from < found.to)) &&
      !event.ctrlKey &&
      !event.metaKey
    ) {
      event.preventDefault();
      // Tab completes a word that was begun by the first suggestion.
      accept(items[Math.max(0, active)]!);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      control.current.abort();
      setOpen(false);
      submit();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (open) setOpen(false);
      else area.current?.blur();
    } else if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      void update();
    }
  };

  useEffect(() => () => control.current.abort(), []);
  useEffect(() => {
    document.querySelector("#suggestions [aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [active]);

  return (
    <div class="editor">
      <pre class="paint" aria-hidden="true">
        <Parts parts={parts} />
        {text.endsWith("\n") || !text ? " " : ""}
      </pre>
      <textarea
        id="query"
        ref={area}
        rows={1}
        value={text}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        aria-label={T.searchLabel}
        {...COMBOBOX}
        aria-expanded={open}
        aria-controls="suggestions"
        aria-autocomplete="list"
        aria-invalid={wrong !== null}
        aria-describedby="query-problem"
        aria-activedescendant={open && active >= 0 ? `suggestion-${active}` : undefined}
        placeholder={PLACEHOLDERS[lang]}
        onInput={(event) => {
          draft.value = event.currentTarget.value;
          void update();
        }}
        onClick={() => void update()}
        onKeyDown={onKeyDown}
        onBlur={() => {
          control.current.abort();
          setOpen(false);
        }}
      />
      <ul id="suggestions" role="listbox" aria-label={T.suggestions} hidden={!open}>
        {open &&
          found.items.map((item, index) => (
            <li
              key={item.text}
              id={`suggestion-${index}`}
              role="option"
              aria-selected={index === active}
              onPointerDown={(event) => {
                event.preventDefault();
                accept(item);
              }}
            >
              <span>{item.text}</span>
              <small>{item.detail}</small>
            </li>
          ))}
      </ul>
    </div>
  );
}

const savedQueries = signal<Saved[] | null>(null);
const savedProblem = signal<Problem | null>(null);

async function loadSaved() {
  savedProblem.value = null;
  const local = stored<Saved>(LOCAL_SAVED_KEY);
  try {
    const { queries } = await json<{ queries: Saved[] }>("api/v1/saved-queries");
    const known = queries.map((query) => ({ ...query, lang: languageOf(query.language) }));
    savedQueries.value = [...local, ...known];
  } catch (error) {
    savedProblem.value = problemFrom(error);
    savedQueries.value = local;
  }
}

/** Languages as the server names them. */
const LANGUAGE_NAMES: Record<Language, string> = { q: "native", logql: "logql", sql: "sql" };

function languageOf(name: string | undefined): Language {
  const known = Object.entries(LANGUAGE_NAMES).find(([, theirs]) => theirs === name);
  return (known?.[0] as Language | undefined) ?? "logql";
}

/** Saves on the server, for everyone; where the token does not allow it, in this browser. */
async function save(name: string) {
  const lang = draftLang.value;
  const query = draft.value;
  const view = hrefOf({ view: "search", lang: "q", q: "", sel: "", around: "", live: false });
  try {
    await request(
      `api/v1/saved-queries/${encodeURIComponent(name)}`,
      {},
      {
        method: "PUT",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ query, language: LANGUAGE_NAMES[lang], view: view === "?" ? "" : view }),
      },
      true,
    );
    say(T.saved(name));
  } catch (error) {
    const found = problemFrom(error);
    if (found.status !== 401 && found.status !== 403) {
      savedProblem.value = found;
      return;
    }
    const rest = stored<Saved>(LOCAL_SAVED_KEY).filter((known) => known.name !== name);
    store(LOCAL_SAVED_KEY, [{ name, query, lang, search: hrefOf({ q: query, lang }) }, ...rest]);
    say(T.savedLocally(name));
  }
  await loadSaved();
}

/** The state of a saved query: its own columns and range if it has some, otherwise those of the page. */
function stateOf(saved: Saved): Partial<State> {
  if (saved.search) return parse(saved.search);
  const asked = { lang: saved.lang ?? "q", q: expand(saved), view: "search" as const, live: false };
  return saved.view ? { ...parse(saved.view), ...asked } : asked;
}

async function removeSaved(saved: Saved) {
  if (saved.search !== undefined) {
    store(
      LOCAL_SAVED_KEY,
      stored<Saved>(LOCAL_SAVED_KEY).filter(({ name }) => name !== saved.name),
    );
  } else {
    try {
      await request(`api/v1/saved-queries/${encodeURIComponent(saved.name)}`, {}, { method: "DELETE" }, true);
    } catch (error) {
      savedProblem.value = problemFrom(error);
    }
  }
  await loadSaved();
}

function SavedMenu() {
  const open = openMenu.value === "saved";
  const [name, setName] = useState("");
  useEffect(() => {
    if (open) void loadSaved();
  }, [open]);
  return (
    <Menu name="saved" label={T.savedQueries} wide>
      <form
        class="row-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim()) void save(name.trim());
        }}
      >
        <input
          value={name}
          onInput={(event) => {
            // The browser's own message says nothing of the form that is asked for.
            const box = event.currentTarget;
            box.setCustomValidity("");
            if (!box.validity.valid) box.setCustomValidity(T.saveRule);
            setName(box.value);
          }}
          placeholder={T.saveAs}
          aria-label={T.saveAs}
          pattern="[A-Za-z0-9._\-]{1,64}"
          title={T.saveRule}
        />
        <button type="submit">{T.save}</button>
      </form>
      <p class="dim">{T.savedOnServer}</p>
      {savedProblem.value && <p class="bad">{savedProblem.value.message}</p>}
      <ul class="items">
        {(savedQueries.value ?? []).map((saved) => (
          <li key={`${saved.lang}${saved.name}`}>
            <button
              type="button"
              class="item"
              onClick={() => {
                openMenu.value = "";
                ask(stateOf(saved));
              }}
            >
              <b>{saved.name}</b>
              <code>{saved.query}</code>
            </button>
            {!saved.built_in && <RemoveSaved saved={saved} />}
          </li>
        ))}
      </ul>
    </Menu>
  );
}

/** Removes a saved query. One of the server is everybody's, so that is asked first. */
function RemoveSaved({ saved }: { saved: Saved }) {
  const [sure, setSure] = useState(false);
  const ours = saved.search === undefined;
  if (sure)
    return (
      <Button class="bad" onClick={() => void removeSaved(saved)}>
        {T.removeForAll}
      </Button>
    );
  return (
    <Button
      class="plain"
      label={T.removeSaved(saved.name)}
      onClick={() => (ours ? setSure(true) : void removeSaved(saved))}
    >
      ✕
    </Button>
  );
}

/** A saved query with its variables in place: the page has no form for them. */
function expand(saved: Saved & { variables?: Record<string, string> }): string {
  const spanMs = range.value ? range.value.toMs - range.value.fromMs : 3_600_000;
  const interval = `${Math.max(60, Math.round(spanMs / 60_000))}s`;
  const values: Record<string, string> = {
    ...saved.variables,
    __interval: interval,
    __auto: interval,
    __rate_interval: interval,
    __range: `${Math.round(spanMs / 1000)}s`,
  };
  return saved.lang === "logql" ? withVariables(saved.query, values) : saved.query;
}

function HistoryMenu() {
  const list = openMenu.value === "history" ? stored<Remembered>(HISTORY_KEY) : [];
  return (
    <Menu name="history" label={T.history} wide>
      {list.length === 0 && <p class="dim">{T.noHistory}</p>}
      <ul class="items">
        {list.map(({ lang, q }) => (
          <li>
            <button
              type="button"
              class="item"
              onClick={() => {
                openMenu.value = "";
                ask({ lang, q, live: false });
              }}
            >
              <code>{q}</code>
              {lang !== "q" && <small>{lang === "sql" ? "SQL" : "LogQL"}</small>}
            </button>
          </li>
        ))}
      </ul>
    </Menu>
  );
}

export function fixedLink(): string {
  const found = range.value;
  const here = new URL(location.href);
  if (found)
    here.search = hrefOf({
      from: found.fromMs <= 0 ? state.value.from : found.from,
      to: found.to,
      live: false,
    });
  return here.href;
}

function ShareMenu() {
  return (
    <Menu name="share" label={T.share}>
      <ul class="items">
        <MenuItem onClick={() => void copy(location.href, T.linkCopied)}>{T.copyLink}</MenuItem>
        <MenuItem onClick={() => void copy(fixedLink(), T.linkCopied)}>{T.copyFixed}</MenuItem>
        <MenuItem onClick={() => void copy(commandOf())}>{T.copyCommand}</MenuItem>
        <MenuItem onClick={() => void copy(curlOf())}>{T.copyCurl}</MenuItem>
      </ul>
    </Menu>
  );
}

function DownloadMenu() {
  return (
    <Menu name="download" label={T.download}>
      <ul class="items">
        {downloads().map(({ text, href, name, act }) => (
          <li>
            {act ? (
              <Button
                class="item"
                onClick={() => {
                  openMenu.value = "";
                  act();
                }}
              >
                {text}
              </Button>
            ) : (
              <a
                class="item"
                href={href}
                download={name}
                onClick={() => {
                  openMenu.value = "";
                }}
              >
                {text}
              </a>
            )}
          </li>
        ))}
      </ul>
      <p class="dim">{T.downloadAll}</p>
    </Menu>
  );
}

export function SearchBar() {
  const now = state.value;
  const busy =
    phase.value === "loading" || bucketsPhase.value === "loading" || (pages.value?.loading ?? false);
  const failed =
    problem.value &&
    phase.value === "failed" &&
    problemText.value === draft.value &&
    isRun.value &&
    // The query is not wrong if the token is, or if the server is away: the page says that in another place.
    !signInReason.value &&
    !isAway(problem.value)
      ? problem.value
      : null;
  const odd = invisibleIn(draft.value);
  // A comparison with a word that is no level is refused as one of texts.
  const [wrongLevel] = failed?.status === 400 && draftLang.value === "q" ? levelWords(draft.value) : [];
  const near = wrongLevel && nearestLevel(wrongLevel.word);
  const level = near && draft.value.slice(0, wrongLevel.start) + near + draft.value.slice(wrongLevel.end);
  const search = now.view === "search";
  return (
    <search class="searchbar">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        {search && (
          <select
            class="language"
            aria-label={T.language}
            value={draftLang.value}
            onChange={(event) => chooseLanguage(event.currentTarget.value as Language)}
          >
            <option value="q">{T.native}</option>
            <option value="logql">LogQL</option>
            <option value="sql">SQL</option>
          </select>
        )}
        <Editor />
        <TimePicker choose={submit} />
        {busy && search ? (
          <button type="button" class="primary stop" onClick={stop} title={T.stopTitle}>
            {T.stop}
          </button>
        ) : phase.value === "stopped" && pages.value ? (
          <button type="button" class="primary" onClick={resume} title={T.resumeTitle}>
            {T.resume}
          </button>
        ) : (
          <button type="submit" class={isRun.value ? "primary" : "primary unrun"} title={T.runTitle}>
            {T.run}
          </button>
        )}
      </form>
      <div id="query-problem" class="query-problem" role={failed ? "alert" : undefined}>
        {failed && (
          <>
            <strong>{failed.message}</strong>
            {level ? (
              <span>
                {" "}
                · {T.noSuchLevel(wrongLevel!.word)}{" "}
                <Button class="link" onClick={() => ask({ lang: "q", q: level })}>
                  {level}
                </Button>
              </span>
            ) : (
              failed.hint && <span> · {failed.hint}</span>
            )}
            {(failed.status === 0 || failed.status >= 500) && failed.status !== 501 ? (
              <>
                {" "}
                <Retry link />
              </>
            ) : null}
          </>
        )}
        {odd.length > 0 && (
          <span class="odd">
            {T.invisible(odd.map(({ code }) => code))}{" "}
            <Button
              class="link"
              onClick={() => {
                draft.value = withoutInvisible(draft.value);
              }}
            >
              {T.removeInvisible}
            </Button>
          </span>
        )}
      </div>
      {search && (
        <div class="subbar">
          <SavedMenu />
          <HistoryMenu />
          <ShareMenu />
          <DownloadMenu />
        </div>
      )}
    </search>
  );
}
