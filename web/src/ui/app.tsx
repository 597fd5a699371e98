// The frame: views, zone, theme, sign-in, and the record of a link.

import { effect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { problemFrom, signIn, signInReason, away, type Problem } from "../api/client";
import { textParts } from "../lib/paint";
import { summaryOf } from "../lib/record";
import { timeText } from "../lib/time";
import { phase, problem, total, pages } from "../state/results";
import { go, hrefOf, run, state, toView, VIEWS, type View } from "../state/url";
import { T } from "../strings";
import { ContextPanel } from "./context";
import { Detail, useRecordAt } from "./detail";
import { look } from "./empty";
import { lazy } from "./lazy";
import { Help, Palette, helpOpen, paletteOpen, useKeys } from "./palette";
import { Button, Dialog, Menu, MenuItem, Parts, ProblemText, Retry, Toast } from "./parts";
import { SearchBar } from "./searchbar";
import { SearchScreen } from "./search";
import { setTheme, theme } from "./theme";
import { ZoneSelect } from "./timepicker";

const Patterns = lazy(() => import("./patterns").then(({ Patterns }) => Patterns));
const Access = lazy(() => import("./access").then(({ Access }) => Access));
const Alerts = lazy(() => import("./alerts").then(({ Alerts }) => Alerts));
const Proxy = lazy(() => import("./proxy").then(({ Proxy }) => Proxy));
const Cluster = lazy(() => import("./cluster").then(({ ClusterScreen }) => ClusterScreen));

const SCREENS: Record<View, preact.ComponentType> = {
  search: SearchScreen,
  patterns: Patterns,
  access: Access,
  alerts: Alerts,
  proxy: Proxy,
  cluster: Cluster,
};
/** Screens whose requests take a native query. */
const WITH_BAR = new Set<View>(["search", "patterns", "access", "proxy", "alerts"]);

/** Of these, screens all of whose parts ask the query in the bar. */
const WITH_PANELS = new Set<View>(["patterns", "access", "proxy"]);

const isWrong = () => phase.value === "failed" && problem.value?.status === 400;

/** In place of panels that would each say the same of a wrong query. */
const Wrong = () => (
  <main class="screen pad" id="main" tabIndex={0}>
    <h1 class="sr">{T.views[state.value.view]}</h1>
    <p class="dim">{T.queryWrong}</p>
  </main>
);

effect(() => {
  // An empty result may be that of an empty server.
  if (phase.value === "done" && total.value === 0 && pages.value?.count === 0) void look();
});

effect(() => {
  const { view, q } = state.value;
  document.title =
    view === "search" ? (q ? `${q.slice(0, 60)} – Logpond` : "Logpond") : `${T.views[view]} – Logpond`;
});

export function App() {
  useKeys();
  const { view } = state.value;
  const Screen = SCREENS[view];
  return (
    <>
      <a class="skip" href="#main">
        {T.skip}
      </a>
      <Header />
      {WITH_BAR.has(view) && <SearchBar />}
      {signInReason.value ? <SignIn /> : WITH_PANELS.has(view) && isWrong() ? <Wrong /> : <Screen />}
      <Selected />
      <ContextPanel />
      <Help />
      <Palette />
      <Toast />
    </>
  );
}

const PALETTE_KEY = /Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘K" : "Ctrl K";

function Header() {
  const { view } = state.value;
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    const current = nav.current?.querySelector<HTMLElement>("[aria-current]");
    if (current && nav.current) nav.current.scrollLeft = current.offsetLeft - nav.current.offsetLeft - 40;
  }, [view]);
  return (
    <header class="top-bar">
      <a
        class="brand"
        href="?"
        onClick={(event) => {
          event.preventDefault();
          go({ view: "search", q: "", lang: "q", from: "1h", to: "", live: false, sel: "", around: "" });
        }}
      >
        <svg width="18" height="18" viewBox="0 0 16 16" aria-hidden="true">
          <rect width="16" height="16" rx="3" />
          <path d="M3 5h10M3 8h7M3 11h9" />
        </svg>
        Logpond
      </a>
      <nav aria-label={T.viewsLabel} ref={nav}>
        {VIEWS.map((name) => (
          <a
            href={hrefOf(toView(name))}
            aria-current={view === name ? "page" : undefined}
            onClick={(event) => {
              if (event.ctrlKey || event.metaKey || event.shiftKey) return;
              event.preventDefault();
              go(toView(name));
            }}
          >
            {T.views[name]}
          </a>
        ))}
      </nav>
      <span class="spacer" />
      {away.value && (
        <span class="away" role="alert">
          {T.awayShort} <Retry link />
        </span>
      )}
      <span class="header-zone">
        <ZoneSelect />
      </span>
      <Menu name="theme" label={T.themeShort} title={T.theme} right>
        <ul class="items">
          {(["system", "light", "dark"] as const).map((name) => (
            <MenuItem pressed={theme.value === name} onClick={() => setTheme(name)}>
              {T.themes[name]}
            </MenuItem>
          ))}
        </ul>
      </Menu>
      <Button
        class="palette-button"
        label={`${PALETTE_KEY}: ${T.palette}`}
        onClick={() => {
          paletteOpen.value = true;
        }}
      >
        {PALETTE_KEY}
      </Button>
      <Button
        label={T.keysTitle}
        onClick={() => {
          helpOpen.value = true;
        }}
      >
        ?
      </Button>
    </header>
  );
}

function SignIn() {
  const [problem, setProblem] = useState<Problem | null>(null);
  const reason = signInReason.value!;
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const token = String(new FormData(form).get("token") ?? "").trim();
    if (!token) return;
    setProblem(null);
    try {
      await signIn(token);
      run.value += 1;
    } catch (error) {
      const found = problemFrom(error);
      // The server's own sentence is for its commands.
      setProblem(found.status === 401 ? { ...found, message: T.signIn.refused, hint: undefined } : found);
    }
  };
  return (
    <main class="screen sign-in" id="main">
      <form class="card" onSubmit={(event) => void submit(event)} autocomplete="off">
        <h1>{T.signIn.title}</h1>
        <p>{T.signIn[reason]}</p>
        <label>
          {T.signIn.token}
          <input
            name="token"
            type="password"
            autocomplete="off"
            spellcheck={false}
            placeholder="lp_…"
            ref={input}
            required
          />
        </label>
        {problem && <ProblemText problem={problem} />}
        <button type="submit" class="primary">
          {T.signIn.use}
        </button>
        <p class="dim">
          {T.signIn.how} <code>logpond token create --role read --name me</code>
        </p>
      </form>
    </main>
  );
}

/** The record of a link, by itself. */
function Selected() {
  const { sel, tz } = state.value;
  const { row, problem } = useRecordAt(sel);
  if (!sel) return null;
  return (
    <Dialog
      title={row ? timeText(row.time, tz, "full") : T.record}
      class="selected"
      onClose={() => go({ sel: "" })}
    >
      {problem && <ProblemText problem={problem} />}
      {row === null && <p>{T.recordGone}</p>}
      {row && (
        <>
          <p class="selected-text">
            <Parts parts={textParts(summaryOf(row))} />
          </p>
          <Detail row={row} alone />
        </>
      )}
      {row === undefined && !problem && <p class="dim">{T.loading}</p>}
    </Dialog>
  );
}
