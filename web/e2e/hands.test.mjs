// Keys, contrast, roles, small screens (A14).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { closeBrowser, count, page, pond, push, pushAccess, services, until } from "./harness.mjs";

const AXE = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
let server;
before(async () => {
  server = await pond();
  await push(server, services());
  await pushAccess(server, 3000);
});
after(async () => {
  await closeBrowser();
  await server?.close();
});

const SCREENS = {
  search: ["?from=1h", ".line"],
  "an open record": ["?from=1h", ".line"],
  "nothing found": ["?q=nosuchtext", ".nothing"],
  live: ["?live=1", ".live-bar"],
  patterns: ["?view=patterns", ".pattern-table tbody tr"],
  access: ["?view=access&from=%400", ".top li"],
  alerts: ["?view=alerts&q=level%3Derror", ".maker"],
  proxy: ["?view=proxy", ".card"],
  cluster: ["?view=cluster", ".figures"],
  sql: ["?sql=SELECT%201%20AS%20one", "#main"],
  keys: ["?from=1h", ".line"],
};

// Each takes twenty seconds. For a change each scheme and each width is looked at once, at night all are.
const LOOKS = [
  ["light", 1280],
  ["dark", 360],
];
const OTHER_LOOKS = [
  ["light", 360],
  ["dark", 1280],
];

for (const [scheme, width] of process.env.LOGPOND_ALL_LOOKS ? [...LOOKS, ...OTHER_LOOKS] : LOOKS) {
  test(`no serious finding: ${scheme}, ${width} px`, async () => {
    const found = [];
    for (const [name, [address, ready]] of Object.entries(SCREENS)) {
      const p = await page(server, address, { width, scheme, wait: false });
      await p.waitForSelector(ready);
      if (name === "an open record") {
        await p.locator(".line .cells").first().click();
        await p.waitForSelector(".detail .fields");
      }
      if (name === "keys") {
        await p.locator(".grid").focus();
        await p.keyboard.press("?");
        await p.waitForSelector("dialog .keys");
      }
      // The policy of the page forbids scripts of others: the browser's own way in is not bound by it.
      await p.evaluate(AXE);
      const { violations } = await p.evaluate(() =>
        globalThis.axe.run(document, { resultTypes: ["violations"] }),
      );
      found.push(
        ...violations
          .filter(({ impact }) => impact === "serious" || impact === "critical")
          .map(
            ({ id, nodes }) =>
              `${name}: ${id}: ${nodes
                .slice(0, 3)
                .map(({ html, failureSummary }) => `${html.slice(0, 160)} — ${failureSummary.slice(0, 200)}`)
                .join(" | ")}`,
          ),
      );
      const wide = await p.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) found.push(`${name}: the page scrolls sideways by ${wide} px`);
      await p.done();
    }
    assert.deepEqual(found, []);
  });
}

test("all of it without a mouse", async () => {
  const p = await page(server, "?from=2h");
  const all = await count(p);
  await p.locator(".grid").focus();
  await p.keyboard.press("/");
  assert.equal(await p.evaluate(() => document.activeElement.id), "query");
  await p.keyboard.type("app=shop");
  await p.keyboard.press("Control+Enter");
  await p.waitForFunction(() => location.search.includes("app%3Dshop"));
  await until(async () => (await count(p)) < all, "only records of the shop are counted");
  const shop = await count(p);
  // Zoom by keys in the histogram.
  await p.keyboard.press("Escape");
  await p.keyboard.press("Escape");
  await p.evaluate(() => document.activeElement.blur());
  await p.keyboard.press("h");
  for (let i = 0; i < 3; i += 1) await p.keyboard.press("ArrowLeft");
  for (let i = 0; i < 2; i += 1) await p.keyboard.press("Shift+ArrowLeft");
  await p.keyboard.press("Enter");
  await p.waitForFunction(() => location.search.includes("to="));
  // An open record would be closed by rows that arrive.
  await until(async () => (await count(p)) < shop, "only records of these bars are counted");
  // Rows: down, open, close.
  await p.evaluate(() => document.activeElement.blur());
  await p.waitForSelector(".line");
  await p.keyboard.press("j");
  await p.keyboard.press("j");
  await p.keyboard.press("Enter");
  await p.waitForSelector(".detail");
  assert.ok(await p.$(".line.active.open"));
  await p.keyboard.press("Escape");
  await p.waitForFunction(() => !document.querySelector(".detail"));
  // Facets: reach a value by keys, include it.
  await p.keyboard.press("f");
  assert.equal(await p.evaluate(() => document.activeElement.id), "find-field");
  await p.keyboard.type("Level");
  await p.keyboard.press("Escape");
  for (let i = 0; i < 12; i += 1) {
    await p.keyboard.press("Tab");
    if (await p.evaluate(() => document.activeElement.classList.contains("value"))) break;
  }
  await p.keyboard.press("Enter");
  await p.waitForFunction(() => /level/.test(location.search));
  await p.evaluate(() => document.activeElement.blur());
  await p.keyboard.press("u");
  await p.waitForFunction(() => location.search.includes("tz=UTC"));
  await p.keyboard.press("[");
  await until(async () => !(await p.$(".stop")), "the range before is shown");
  await p.keyboard.press("Control+k");
  await p.waitForSelector("dialog.palette");
  await p.keyboard.type("patterns");
  await p.keyboard.press("Enter");
  await p.waitForFunction(() => location.search.includes("view=patterns"));
  await p.keyboard.press("g");
  await p.keyboard.press("1");
  await p.waitForFunction(() => !location.search.includes("view="));
  await p.keyboard.press("?");
  await p.waitForSelector("dialog .keys");
  const keys = await p.textContent("dialog .keys");
  for (const key of ["/", "j", "k", "Enter", "[", "]", "Ctrl", "Esc", "u", "w", "t", "L"])
    assert.ok(keys.includes(key), key);
  await p.keyboard.press("Escape");
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("the focus can be seen", async () => {
  const p = await page(server, "?from=1h");
  await count(p);
  for (let i = 0; i < 30; i += 1) {
    await p.keyboard.press("Tab");
    const seen = await p.evaluate(() => {
      const element = document.activeElement;
      if (element === document.body || element.id === "query") return true;
      const style = getComputedStyle(element);
      return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
    });
    assert.ok(seen, await p.evaluate(() => document.activeElement.outerHTML.slice(0, 200)));
  }
  await p.done();
});
