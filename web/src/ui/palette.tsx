// Keys, the list of keys, and the palette of commands.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { signOut } from "../api/client";
import { chooseLanguage, go, run, state, toView, VIEWS, type Language } from "../state/url";
import { stop } from "../state/results";
import { pauseTail, resumeTail, tailPaused } from "../state/live";
import { PRESETS } from "../lib/time";
import { T } from "../strings";
import { copy, openMenu, Dialog } from "./parts";
import { activeRow, grid, openRows } from "./grid";
import { fixedLink, submit } from "./searchbar";
import { shift, widen } from "./timepicker";
import { facetsOpen } from "./facets";
import { setTheme, theme } from "./theme";

export const helpOpen = signal(false);
export const paletteOpen = signal(false);

interface Command {
  text: string;
  keys?: string;
  act: () => void;
}

const focusQuery = () => document.querySelector<HTMLTextAreaElement>("#query")?.focus();

function commands(): Command[] {
  const now = state.value;
  return [
    { text: T.commands.query, keys: "/", act: focusQuery },
    {
      text: T.commands.run,
      keys: "r",
      act: () => {
        run.value += 1;
      },
    },
    ...VIEWS.map((view, index) => ({
      text: T.commands.view(T.views[view]),
      keys: `g ${index + 1}`,
      act: () => go(toView(view)),
    })),
    { text: T.commands.live, keys: "L", act: toggleLive },
    {
      text: T.commands.time,
      keys: "t",
      act: () => {
        openMenu.value = "time";
      },
    },
    { text: T.commands.earlier, keys: "[", act: () => shift(-1) },
    { text: T.commands.later, keys: "]", act: () => shift(1) },
    { text: T.commands.widen, keys: "-", act: widen },
    { text: T.commands.utc, keys: "u", act: () => go({ tz: now.tz === "UTC" ? "local" : "UTC" }) },
    { text: T.commands.wrap, keys: "w", act: () => go({ wrap: !now.wrap }) },
    { text: T.commands.dense, keys: "d", act: () => go({ dense: !now.dense }) },
    {
      text: T.commands.facets,
      keys: "f",
      act: () => {
        facetsOpen.value = true;
        document.querySelector<HTMLElement>("#find-field")?.focus();
      },
    },
    {
      text: T.commands.columns,
      keys: "c",
      act: () => {
        openMenu.value = "columns";
      },
    },
    {
      text: T.commands.histogram,
      keys: "h",
      act: () => document.querySelector<HTMLElement>(".histogram .plot")?.focus(),
    },
    ...(now.live
      ? []
      : [{ text: T.commands.sort, act: () => go({ sort: now.sort === "asc" ? "desc" : "asc" }) }]),
    { text: T.commands.language("LogQL"), act: () => writeIn("logql") },
    { text: T.commands.language("SQL"), act: () => writeIn("sql") },
    { text: T.commands.language(T.native), act: () => writeIn("q") },
    { text: T.copyLink, keys: "y", act: () => void copy(location.href, T.linkCopied) },
    { text: T.copyFixed, act: () => void copy(fixedLink(), T.linkCopied) },
    ...(["system", "light", "dark"] as const)
      .filter((name) => name !== theme.value)
      .map((name) => ({ text: T.commands.theme(T.themes[name]), act: () => setTheme(name) })),
    ...PRESETS.map(([from, text]) => ({
      text: from === "@0" ? text : T.last(text),
      act: () => submit({ from, to: "" }),
    })),
    {
      text: T.commands.signOut,
      act: () =>
        void signOut().then(() => {
          run.value += 1;
        }),
    },
    {
      text: T.commands.help,
      keys: "?",
      act: () => {
        helpOpen.value = true;
      },
    },
  ];
}

function writeIn(lang: Language) {
  if (state.value.view !== "search") go(toView("search"));
  chooseLanguage(lang);
  focusQuery();
}

function toggleLive() {
  const now = state.value;
  const native = now.lang === "q" ? {} : { lang: "q" as const, q: "" };
  if (!now.live) go({ ...native, live: true, view: "search", sel: "", around: "" });
  else if (tailPaused.value) {
    resumeTail();
    grid()?.top();
  } else pauseTail();
}

const ROW_KEYS: [keys: string, text: string][] = [
  ["j ↓", T.keys.next],
  ["k ↑", T.keys.previous],
  ["Enter", T.keys.open],
  ["→ ←", T.keys.side],
  ["Shift Enter", T.keys.alone],
  ["Esc", T.keys.escape],
  ["Home End", T.keys.ends],
  ["← →", T.keys.width],
  ["Ctrl Enter", T.keys.run],
  ["Ctrl Space", T.keys.complete],
  ["← → Enter", T.keys.bars],
  ["Shift ← →", T.keys.barRange],
  ["Backspace", T.keys.back],
  ["Alt click", T.keys.excludeValue],
];

let prefix = 0;

function onKeyDown(event: KeyboardEvent) {
  const target = event.target as HTMLElement;
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key.toLowerCase() === "k") {
    event.preventDefault();
    paletteOpen.value = true;
    return;
  }
  // A dialog closes itself, and only itself.
  if (event.key === "Escape") return document.querySelector("dialog[open]") ? undefined : escape();
  // In a menu that is open, letters are no commands.
  const typing =
    target.matches("input, textarea, select, [contenteditable]") ||
    (openMenu.value !== "" && target.closest(".menu") !== null);
  if (typing || command || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]"))
    return;
  if (event.key >= "1" && event.key <= String(VIEWS.length) && performance.now() - prefix < 1500) {
    event.preventDefault();
    prefix = 0;
    go(toView(VIEWS[Number(event.key) - 1]!));
    return;
  }
  const onControl = target.matches("button, a, summary, [role=option], [role=tab]");
  const rows: Record<string, () => void> = {
    j: () => grid()?.move(1),
    k: () => grid()?.move(-1),
    ...(onControl || target.matches(".plot") ? {} : { Enter: () => grid()?.toggle() }),
    g: () => {
      prefix = performance.now();
    },
  };
  const act = rows[event.key] ?? commands().find(({ keys }) => keys === event.key)?.act;
  if (!act) return;
  event.preventDefault();
  act();
  if (event.key === "j" || event.key === "k") grid()?.focus();
}

// One step back at a time: what is open, then the row, then the search.
function escape() {
  if (openMenu.value) openMenu.value = "";
  else if (facetsOpen.value) facetsOpen.value = false;
  else if (grid()?.close()) return;
  else if (openRows.value.size && activeRow.value < 0) openRows.value = new Set();
  else stop();
}

export function useKeys() {
  useEffect(() => {
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

export function Help() {
  if (!helpOpen.value) return null;
  return (
    <Dialog
      title={T.keysTitle}
      onClose={() => {
        helpOpen.value = false;
      }}
    >
      <dl class="keys">
        {[
          ...commands()
            .filter(({ keys }) => keys)
            .map(({ keys, text }): [string, string] => [keys!, text]),
          ["Ctrl K", T.keys.palette] as [string, string],
          ...ROW_KEYS,
        ].map(([keys, text]) => (
          <>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd>{key}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
      <p class="dim">{T.syntaxTitle}</p>
      <dl class="keys syntax">
        {T.syntax.map(([form, text]) => (
          <>
            <dt>
              <code>{form}</code>
            </dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  );
}

export function Palette() {
  const [find, setFind] = useState("");
  const [active, setActive] = useState(0);
  useEffect(() => {
    document.querySelector(`#command-${active}`)?.scrollIntoView({ block: "nearest" });
  }, [active, find]);
  if (!paletteOpen.value) return null;
  const close = () => {
    paletteOpen.value = false;
    setFind("");
    setActive(0);
  };
  const words = find.toLowerCase().split(/\s+/).filter(Boolean);
  const list = commands().filter(({ text }) => words.every((word) => text.toLowerCase().includes(word)));
  const choose = (index: number) => {
    const command = list[index];
    close();
    // The dialog gives the focus back first.
    if (command) requestAnimationFrame(command.act);
  };
  return (
    <Dialog title={T.palette} class="palette" onClose={close}>
      <input
        autofocus
        role="combobox"
        aria-expanded={true}
        aria-controls="palette-list"
        aria-activedescendant={list.length ? `command-${active}` : undefined}
        aria-label={T.paletteFind}
        placeholder={T.paletteFind}
        value={find}
        onInput={(event) => {
          setFind(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            setActive(
              (active + (event.key === "ArrowDown" ? 1 : list.length - 1)) % Math.max(1, list.length),
            );
          } else if (event.key === "Enter") {
            event.preventDefault();
            choose(active);
          }
        }}
      />
      <ul id="palette-list" role="listbox" aria-label={T.palette}>
        {list.map(({ text, keys }, index) => (
          <li
            id={`command-${index}`}
            role="option"
            aria-selected={index === active}
            onClick={() => choose(index)}
          >
            <span>{text}</span>
            {keys && <kbd>{keys}</kbd>}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
