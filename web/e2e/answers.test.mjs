// Fields and other screens: numbers, patterns, rules, wrong queries.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeBrowser, count, ownServers, page, pond, push, until } from "./harness.mjs";
import { MANY, address, facet, fill } from "./records.mjs";

let server;
const now = Date.now();
before(async () => {
  server = await pond();
  await fill(server, now);
});
after(async () => {
  await closeBrowser();
  await server?.close();
});

test("the ends of a range of numbers are those of the query", async () => {
  const p = await page(server, "?from=2h&q=app%3Dshop");
  await count(p);
  await facet(p, "ms").getByRole("button").first().click();
  const ends = () => p.$$eval(".numbers input", (all) => all.map(({ value }) => value));
  await p.waitForSelector(".numbers input");
  await p.fill('.numbers [name="low"]', "100");
  await p.fill('.numbers [name="high"]', "500");
  await p.keyboard.press("Enter");
  await until(() => address(p).get("q") === "app=shop ms>=100 ms<=500", "the first range");
  await until(async () => (await ends()).join() === "100,500", "both ends are shown");
  await p.fill('.numbers [name="low"]', "400");
  await p.fill('.numbers [name="high"]', "200");
  await p.keyboard.press("Enter");
  await until(() => address(p).get("q") === "app=shop ms>=200 ms<=400", "the lower end is first");
  await p.goBack();
  await until(async () => (await ends()).join() === "100,500", "both ends are those of the query again");
  await p.done();
});

test("a pattern of one level leads to the records of that level", async () => {
  const p = await page(server, "?view=patterns&q=app%3Dlevels&from=2h");
  const row = p.locator(".pattern-table tbody tr", { has: p.locator(".tone-warn") });
  await row.waitFor();
  assert.equal(await row.locator(".num").textContent(), "5");
  await row.getByRole("button", { name: "No records of this pattern" }).click();
  await until(() => /NOT \(.*level=warn\)/.test(address(p).get("q") ?? ""), "its level is excluded");
  await p.waitForFunction(() => document.querySelectorAll(".pattern-table tbody tr").length === 1);
  await p.locator(".pattern-table tbody").getByRole("button", { name: "Show" }).click();
  assert.equal(await count(p), 8);
  await p.done();
});

test("a range before with few records is no comparison", async () => {
  const p = await page(server, "?view=patterns&from=31m&q=app%3Dmany%20OR%20app%3Dlevels");
  await p.waitForFunction(() =>
    /no records to compare|too few/.test(document.querySelector("main .toolbar")?.textContent ?? ""),
  );
  assert.equal(await p.$(".pattern-table .badge"), null);
  await p.done();
});

test("a rule takes numbers and durations only", async () => {
  const p = await page(server, "?view=alerts&from=30m&q=level%3Derror");
  await p.waitForFunction(() => document.querySelector(".maker input")?.value.includes("detected_level"));
  for (const [label, wrong, right] of [
    ["fires above", "xx", "2.5"],
    ["for", "abc", "1h30m"],
  ]) {
    const field = p.locator(".maker").getByLabel(label);
    await field.fill(wrong);
    await p.waitForSelector(".maker .bad");
    assert.ok(await p.locator(".maker .primary").isDisabled());
    assert.equal(await p.$(".maker pre"), null, "no rule to copy");
    await field.fill(right);
    await p.waitForFunction(() => !document.querySelector(".maker .bad"));
  }
  assert.match(await p.textContent(".maker pre"), /> 2\.5[\s\S]*for: 1h30m/);
  await p.done();
});

test("a wrong query is marked in every view, and said once", async () => {
  for (const view of ["patterns", "access", "proxy"]) {
    const p = await page(server, `?view=${view}&from=1h&q=status%3D%3D5`);
    await p.waitForSelector(".query-problem strong");
    assert.ok((await p.$$(".paint mark")).length > 0, view);
    await p.waitForFunction(() => !document.querySelector("main .problem, main .card"));
    await p.fill("#query", "status=504");
    await p.keyboard.press("Enter");
    await p.waitForFunction(() => !document.querySelector(".query-problem strong"));
    await p.waitForSelector("main .card, main .pattern-table");
    await p.done();
  }
});

test("a tail shows the fields of what arrives", async () => {
  const p = await page(server, "?live=1&q=app%3Dfresh");
  await p.waitForSelector(".live-state.on");
  await p.waitForFunction(() => /No fields/.test(document.querySelector(".facets")?.textContent ?? ""));
  await push(server, JSON.stringify({ app: "fresh", message: "new", flavour: "mint" }));
  await p.waitForSelector(".line");
  await until(async () => {
    await push(server, JSON.stringify({ app: "fresh", message: "new", flavour: "mint" }));
    return (await p.textContent(".facets")).includes("flavour");
  }, "the field is listed");
  await p.done();
});

test(
  "records of the journal are counted, and senders without a name are said",
  { skip: !ownServers },
  async () => {
    const own = await pond();
    await push(own, "one\ntwo\nthree", { type: "text/plain" });
    const p = await page(own, "?view=cluster", { wait: false });
    await p.waitForFunction(() => /Records3/.test(document.querySelector(".figures")?.textContent ?? ""));
    await p.waitForFunction(() =>
      /3 records in the last 24 hours/.test(document.querySelector(".sources")?.textContent ?? ""),
    );
    assert.doesNotMatch(await p.textContent("main"), /NaN|0\.0 : 1/);
    assert.deepEqual(p.problems, []);
    await p.done();
    await own.close();
  },
);

test("the numbers of a facet are all of them", async () => {
  const p = await page(server, "?from=2h&q=app%3Dmany");
  await count(p);
  await facet(p, "seq").getByRole("button").first().click();
  await p.waitForSelector(".numbers input");
  assert.deepEqual(await p.$$eval(".numbers input", (all) => all.map(({ value }) => value)), [
    "0",
    String(MANY - 1),
  ]);
  const heights = await p.$$eval(".numbers svg rect", (all) => all.map((bar) => bar.height.baseVal.value));
  assert.equal(heights.length, 24);
  assert.ok(Math.min(...heights) > Math.max(...heights) * 0.9, "each part has as many");
  assert.match(await p.textContent(".numbers-axis"), /^0.*3,000.*5,999$/);
  // A drag takes whole bars.
  const box = await p.locator(".numbers svg").boundingBox();
  await p.mouse.move(box.x + box.width * 0.3, box.y + 20);
  await p.mouse.down();
  await p.mouse.move(box.x + box.width * 0.4, box.y + 20, { steps: 4 });
  await p.mouse.up();
  await p.waitForURL(/seq/);
  assert.equal(await p.inputValue("#query"), "app=many seq>=1750 seq<=2500");
  await p.done();
});
