// @vitest-environment node
import { beforeAll, describe, expect, test } from "vitest";

type Url = typeof import("../src/state/url");
let url: Url;
beforeAll(async () => {
  Object.assign(globalThis, {
    location: { search: "" },
    addEventListener: () => undefined,
    history: { pushState: () => undefined, replaceState: () => undefined, state: null },
  });
  url = await import("../src/state/url");
});

describe("the address", () => {
  test("is the state, and back", () => {
    const states = [
      {},
      { q: "a b=1" },
      { lang: "sql" as const, q: "SELECT 1" },
      { lang: "logql" as const, q: '{app="x"}' },
      { from: "15m" },
      { from: "2026-11-27T10:00:00Z", to: "2026-11-27T11:00:00Z" },
      { from: "", to: "2026-11-27T11:00:00Z" },
      { cols: ["time", "a,b", "100%", "message"] },
      { cols: [] },
      { own: "203.0.113.7", bots: true },
      { every: 15 },
      { tz: "Asia/Kathmandu", wrap: true, dense: true, live: true, sort: "asc" as const },
      { view: "patterns" as const, sel: "2026-11-27T10:00:00Z_01ABC" },
    ];
    for (const patch of states) {
      const state = { ...url.DEFAULTS, ...patch };
      expect(url.parse(url.format(state).slice(1))).toEqual(state);
    }
  });
  test("has only what differs", () => expect(url.format(url.DEFAULTS)).toBe("?"));
  test("of alerts and older pages is understood", () => {
    expect(url.parse("logql=%7Bapp%3D%22x%22%7D&from=1h")).toMatchObject({
      lang: "logql",
      q: '{app="x"}',
      from: "1h",
    });
    expect(url.parse("q=x&to=%401763719200")).toMatchObject({ q: "x", from: "", to: "@1763719200" });
  });
  test("that is wrong does no harm", () => {
    expect(url.parse("tz=Mars/Base&view=nothing&sort=x&every=1&cols=%25E0%25A4%25A")).toMatchObject({
      tz: "local",
      view: "search",
      sort: "desc",
      every: 0,
    });
    expect(url.parse("cols=a,b,a").cols).toEqual(["a", "b"]);
  });
});
