// @vitest-environment node
import { beforeAll, beforeEach, expect, test } from "vitest";

// A history as the browser has it: entries with an address and a state.
const listeners: Record<string, () => void> = {};
let entries: [address: string, state: unknown][] = [];
let at = 0;
const back = () => {
  at -= 1;
  location.search = entries[at]![0];
  listeners.popstate!();
};
const location = { search: "" };

type Url = typeof import("../src/state/url");
let url: Url;
beforeAll(async () => {
  Object.assign(globalThis, {
    location,
    addEventListener: (name: string, act: () => void) => {
      listeners[name] = act;
    },
    history: {
      get state() {
        return entries[at]![1];
      },
      pushState: (state: unknown, _: string, address: string) => {
        entries = [...entries.slice(0, at + 1), [address, state]];
        at += 1;
      },
      replaceState: (state: unknown, _: string, address: string) => {
        entries[at] = [address, state];
      },
    },
  });
  entries = [["?", null]];
  url = await import("../src/state/url");
});
beforeEach(() => {
  [entries, at] = [[["?", null]], 0];
  url.state.value = url.DEFAULTS;
  url.ask({ q: "", lang: "q" });
});

const type = (text: string) => {
  url.draft.value = text;
};

test("a text that was not run stays, whatever else changes", () => {
  type("level>=warn");
  for (const patch of [
    { wrap: true },
    { tz: "UTC" },
    { sort: "asc" as const },
    { cols: ["time"] },
    { live: true },
    { live: false, from: "24h" },
    { view: "patterns" as const },
    { view: "search" as const },
  ]) {
    url.go(patch);
    expect(url.draft.value).toBe("level>=warn");
    expect(url.isRun.value).toBe(false);
  }
  url.ask({ from: "2d" });
  back();
  expect(url.draft.value).toBe("level>=warn");
  expect(url.state.value.q).toBe("");
});

test("a text that is run or given is that of the bar", () => {
  type("level>=warn");
  url.askDraft({ from: "24h" });
  expect(url.state.value).toMatchObject({ q: "level>=warn", from: "24h" });
  expect(url.isRun.value).toBe(true);
  type("level>=warn x");
  url.ask({ q: "y" });
  expect(url.draft.value).toBe("y");
  // Also if the question is the same: the bar had another text.
  type("z");
  const before = url.run.value;
  url.ask({ q: "y" });
  expect([url.draft.value, url.run.value]).toEqual(["y", before + 1]);
  back();
  expect(url.draft.value).toBe("level>=warn");
});

test("another language is no question yet", () => {
  url.ask({ q: "status>=500" });
  const [asked, steps] = [url.asked.value, entries.length];
  url.chooseLanguage("sql");
  expect([url.draft.value, url.draftLang.value]).toEqual(["", "sql"]);
  expect([url.asked.value, entries.length]).toEqual([asked, steps]);
  // Back to the language of the question.
  url.chooseLanguage("q");
  expect([url.draft.value, url.isRun.value]).toEqual(["status>=500", true]);
  // A text that was not run comes along.
  type("SELECT 1");
  url.chooseLanguage("sql");
  expect(url.draft.value).toBe("SELECT 1");
  url.askDraft();
  expect(url.state.value).toMatchObject({ lang: "sql", q: "SELECT 1" });
  back();
  expect(url.state.value).toMatchObject({ lang: "q", q: "status>=500" });
  expect([url.draft.value, url.draftLang.value]).toEqual(["status>=500", "q"]);
});

test("a click adds to the text of the bar if that is native", () => {
  url.ask({ q: "a=1" });
  type("a=1 b=2");
  expect(url.nativeText()).toBe("a=1 b=2");
  url.chooseLanguage("logql");
  expect(url.nativeText()).toBe("a=1");
});

test("a view has no text of a language that it does not understand", () => {
  url.ask({ q: '{app="x"}', lang: "logql" });
  expect(url.hrefOf(url.toView("patterns"))).toBe("?view=patterns");
  expect(url.parse("view=patterns&logql=%7Bapp%3D%22x%22%7D")).toMatchObject({ lang: "q", q: "" });
  expect(url.hrefOf(url.toView("alerts"))).toContain("logql=");
  url.go(url.toView("cluster"));
  url.go(url.toView("search"));
  expect(url.state.value).toMatchObject({ lang: "logql", q: '{app="x"}' });
  url.go(url.toView("patterns"));
  expect(url.state.value).toMatchObject({ lang: "q", q: "" });
  expect([url.draft.value, url.draftLang.value]).toEqual(["", "q"]);
  // Nor a text that was not run.
  url.go(url.toView("search"));
  url.chooseLanguage("sql");
  type("SELECT 1");
  url.go(url.toView("access"));
  expect([url.draft.value, url.draftLang.value]).toEqual(["", "q"]);
});

test("a step back returns to the row that was seen", () => {
  let top = 0;
  url.onLeave(() => top);
  url.go({ from: "24h" });
  expect(url.returnRow()).toBe(null);
  top = 140;
  url.go(url.toView("patterns"));
  top = 0;
  back();
  expect(url.returnRow()).toBe(140);
  // Another run of the same question begins at its first row, and so does another question.
  url.ask({});
  expect(url.returnRow()).toBe(null);
  url.go({ from: "2d" });
  expect(url.returnRow()).toBe(null);
});

const range = () => [url.state.value.from, url.state.value.to];

test("a zoom is taken back, and only a zoom", () => {
  url.go({ from: "24h" });
  url.zoomOut();
  expect(range()).toEqual(["24h", ""]);
  url.zoomIn("2026-11-27T10:00:00.000Z", "2026-11-27T12:00:00.000Z");
  url.zoomIn("2026-11-27T10:30:00.000Z", "2026-11-27T11:00:00.000Z");
  // Filters are no zoom, and stay.
  url.ask({ q: "x" });
  url.zoomOut();
  expect(range()).toEqual(["2026-11-27T10:00:00.000Z", "2026-11-27T12:00:00.000Z"]);
  expect(url.state.value.q).toBe("x");
  url.zoomOut();
  expect(range()).toEqual(["24h", ""]);
  url.zoomOut();
  expect(range()).toEqual(["24h", ""]);
  // Another range has no zoom.
  url.zoomIn("2026-11-27T10:00:00.000Z", "2026-11-27T12:00:00.000Z");
  url.go({ from: "7d", to: "" });
  url.zoomOut();
  expect(range()).toEqual(["7d", ""]);
});

test("a double click takes back the zoom of its first click, too, and leaves no step of it", () => {
  url.go({ from: "24h" });
  url.zoomIn("2026-11-27T10:00:00.000Z", "2026-11-27T12:00:00.000Z");
  url.zoomIn("2026-11-27T10:30:00.000Z", "2026-11-27T10:31:00.000Z");
  url.zoomOut(true);
  expect(range()).toEqual(["24h", ""]);
  back();
  expect(range()).toEqual(["2026-11-27T10:00:00.000Z", "2026-11-27T12:00:00.000Z"]);
  back();
  expect(range()).toEqual(["24h", ""]);
  // With no zoom before it, the range is as it was.
  url.zoomIn("2026-11-27T10:30:00.000Z", "2026-11-27T10:31:00.000Z");
  url.zoomOut(true);
  expect(range()).toEqual(["24h", ""]);
});
