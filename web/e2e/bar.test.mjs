// The bar and what stands around it: text, language, range, menus, commands.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeBrowser, count, page, pond, until } from "./harness.mjs";
import { CUSTOMERS, MANY, address, facet, fill } from "./records.mjs";

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

const DRAFT = "level>=warn app=shop";

test("a text in the bar outlives every other control", async () => {
  const p = await page(server, "?from=1h");
  await count(p);
  await p.fill("#query", DRAFT);
  const controls = [
    () => p.getByRole("button", { name: "Wrap" }).click(),
    () => p.getByRole("button", { name: "Dense" }).click(),
    () => p.locator(".head .sort").click(),
    () => p.selectOption("#zone", "UTC"),
    () => p.getByRole("button", { name: /^One range earlier/ }).click(),
    () => p.locator(".live-button").click(),
    () => p.locator(".live-button").click(),
    () => p.goBack(),
    () => p.getByRole("link", { name: "Patterns" }).click(),
    () => p.getByRole("link", { name: "Search" }).click(),
  ];
  for (const control of controls) {
    const before = p.url();
    await control();
    await until(() => p.url() !== before, "the control is in the address");
    assert.equal(await p.inputValue("#query"), DRAFT);
    assert.equal(address(p).get("q"), null, "and it was not run");
  }
  // The page says that it was not run.
  await p.waitForSelector(".unrun");
  // A range that is chosen runs it.
  await p.locator(".time .range > button").click();
  await p.getByRole("button", { name: "Last 2 days" }).click();
  await until(() => address(p).get("q") === DRAFT && address(p).get("from") === "2d", "it is run");
  assert.equal(await p.inputValue("#query"), DRAFT);
  await p.waitForFunction(() => !document.querySelector(".unrun"));
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("another language is run when it is run, and Back returns", async () => {
  const p = await page(server, "?from=1h");
  await p.fill("#query", "app=shop");
  await p.keyboard.press("Enter");
  const all = await count(p);
  const asked = p.url();
  const requests = [];
  p.on("request", (request) => requests.push(new URL(request.url()).pathname));
  await p.selectOption(".language", "sql");
  assert.equal(await p.inputValue("#query"), "", "the text of a filter is no statement");
  assert.match(await p.getAttribute("#query", "placeholder"), /SELECT/);
  assert.equal(p.url(), asked);
  assert.equal(await count(p), all, "the rows stay");
  assert.deepEqual(
    requests.filter((path) => /sql|loki/.test(path)),
    [],
  );
  // Run without a text: examples and no error.
  await p.click("#query");
  await p.keyboard.press("Enter");
  await p.waitForSelector(".examples a");
  assert.equal(await p.$(".query-problem strong"), null);
  await p.locator(".examples a", { hasText: "GROUP BY _level" }).click();
  await p.waitForSelector(".data, .query-problem strong");
  await p.goBack();
  await p.goBack();
  await until(() => p.url() === asked, "the query before is back");
  assert.equal(await p.inputValue("#query"), "app=shop");
  assert.equal(await p.inputValue(".language"), "q");
  assert.equal(await count(p), all);
  await p.done();
});

test("a view is reached without the text of another language, by key, link and command", async () => {
  const logql = `?logql=${encodeURIComponent('{app="shop"}')}&from=1h`;
  const p = await page(server, logql);
  await p.waitForSelector(".line");
  assert.equal(await p.getByRole("link", { name: "Patterns" }).getAttribute("href"), "?view=patterns");
  const ways = [
    async () => {
      await p.keyboard.press("g");
      await p.keyboard.press("2");
    },
    async () => {
      await p.keyboard.press("Control+k");
      await p.waitForSelector("dialog.palette");
      await p.keyboard.type("go to patterns");
      await p.keyboard.press("Enter");
    },
    () => p.goto(`${server.url}${logql}&view=patterns`),
  ];
  for (const way of ways) {
    await p.goto(server.url + logql);
    await p.waitForSelector(".line");
    await p.locator(".grid").focus();
    await way();
    await p.waitForSelector(".pattern-table tbody tr");
    assert.equal(await p.inputValue("#query"), "");
  }
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("a double click on the histogram returns to the range before the zoom", async () => {
  const p = await page(server, "?from=2h&q=app%3Dshop");
  await count(p);
  const plot = await p.locator(".plot").boundingBox();
  const y = plot.y + plot.height / 2;
  await p.mouse.move(plot.x + plot.width * 0.82, y);
  await p.mouse.down();
  await p.mouse.move(plot.x + plot.width * 0.98, y, { steps: 4 });
  await p.mouse.up();
  await until(() => address(p).get("to"), "the range is a part");
  await count(p);
  // Over a bar: the first click of the two zooms, too.
  const bar = await p.locator(".stack rect").nth(3).boundingBox();
  await p.mouse.dblclick(bar.x + bar.width / 2, bar.y + bar.height / 2);
  await until(() => address(p).get("from") === "2h" && !address(p).get("to"), "the range is as it was");
  assert.equal(await p.inputValue("#query"), "app=shop");
  await count(p);
  // Without a zoom, it leaves nothing.
  await p.locator(".plot").dblclick({ position: { x: 60, y: 10 } });
  await p.locator(".plot").focus();
  await p.keyboard.press("Backspace");
  assert.equal(address(p).get("from"), "2h");
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("the chosen command can be seen", async () => {
  const p = await page(server, "?from=1h");
  await count(p);
  await p.keyboard.press("Escape");
  await p.keyboard.press("Control+k");
  await p.waitForSelector("dialog.palette");
  const size = await p.$$eval("#palette-list li", (all) => all.length);
  const seen = (index) =>
    p.waitForFunction((n) => {
      const item = document.querySelector(`#command-${n}`);
      if (item?.getAttribute("aria-selected") !== "true") return false;
      const [box, list] = [item.getBoundingClientRect(), item.parentElement.getBoundingClientRect()];
      return box.top >= list.top - 1 && box.bottom <= list.bottom + 1;
    }, index);
  await p.keyboard.press("ArrowUp");
  await seen(size - 1);
  await p.keyboard.press("ArrowDown");
  await seen(0);
  for (let step = 0; step < 20; step += 1) await p.keyboard.press("ArrowDown");
  await seen(20);
  await p.done();
});

test("a range with an end only begins at the beginning", async () => {
  const to = new Date(now).toISOString();
  const p = await page(server, `?to=${to}&q=app%3Dmany`);
  assert.equal(await count(p), MANY);
  assert.match(await p.textContent(".time .range"), /the beginning –/);
  assert.match(await p.textContent(".foot"), /the beginning –/);
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("a command asks the server of the page", async () => {
  for (const search of ["?from=24h&q=level%3E%3Derror", "?sql=SELECT%201", "?logql=%7Bapp%3D%22x%22%7D"]) {
    const p = await page(server, search);
    await p.getByRole("button", { name: "Share" }).click();
    await p.getByRole("button", { name: "Copy as command" }).click();
    await p.waitForFunction(() => document.querySelector(".toast")?.dataset.shown === "true");
    const text = await p.evaluate(() => navigator.clipboard.readText());
    assert.ok(text.startsWith("logpond ") && text.endsWith(` --addr ${server.url}`), text);
    await p.done();
  }
});

test("values beyond the most frequent are found", async () => {
  const p = await page(server, "?from=2h");
  await count(p);
  await p.click("#query");
  await p.keyboard.type("customer=cust-2499");
  await p.locator("#suggestions li", { hasText: "cust-2499" }).waitFor();
  await p.fill("#query", "app=sold");
  await p.keyboard.press("Enter");
  await until(async () => (await count(p)) === CUSTOMERS, "all customers");
  await p.fill("#find-field", "customer");
  await facet(p, "customer").getByRole("button").first().click();
  await p.getByRole("button", { name: "More values" }).click();
  await p.fill(".find-value", "CUST-2499");
  await p.waitForFunction(() =>
    [...document.querySelectorAll(".values .text")].some((text) => text.textContent === "cust-2499"),
  );
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("menus take the focus, and letters there are no commands", async () => {
  const p = await page(server, "?from=1h");
  await count(p);
  await p.locator(".grid").focus();
  await p.keyboard.press("t");
  await p.waitForFunction(() => document.activeElement?.matches(".absolute input"));
  await p.keyboard.press("Control+a");
  await p.keyboard.type("yesterday 09:00");
  assert.equal(await p.inputValue(".absolute input >> nth=0"), "yesterday 09:00");
  await p.keyboard.press("Escape");
  await p.locator(".grid").focus();
  await p.keyboard.press("c");
  await p.waitForFunction(() => document.activeElement?.closest(".panel"));
  await p.locator(".panel .columns button:not([disabled])").first().focus();
  await p.keyboard.press("d");
  await p.keyboard.press("w");
  assert.equal(address(p).get("dense") ?? address(p).get("wrap"), null);
  await p.done();
});

test("suggestions that come late do not open over the rows", async () => {
  const p = await page(server, "?from=1h");
  await count(p);
  let release;
  const held = new Promise((done) => {
    release = done;
  });
  let asked = 0;
  await p.route("**/api/v1/top?*field=user*", async (route) => {
    asked += 1;
    await held;
    await route.continue().catch(() => null);
  });
  await p.click("#query");
  await p.keyboard.type("user=");
  await until(() => asked > 0, "values are asked for");
  await p.locator(".line .cells").first().click();
  await p.waitForSelector(".detail");
  release();
  // The same is asked again and comes; the list of before did not.
  await p.click("#query");
  await p.locator("#suggestions li").first().waitFor();
  await p.locator(".grid").focus();
  await p.waitForFunction(() => document.querySelector("#suggestions").hidden);
  await p.done();
});

test("the refresh is in the address; Escape stops and no more", async () => {
  const p = await page(server, "?from=1h&q=app%3Dshop");
  await count(p);
  await p.locator(".time .range > button").click();
  await p.getByLabel("Refresh every").selectOption("60");
  await until(() => address(p).get("every") === "60", "it is in the address");
  await p.reload();
  await count(p);
  await p.locator(".time .range > button").click();
  assert.equal(await p.getByLabel("Refresh every").inputValue(), "60");
  await p.keyboard.press("Escape");
  let held = 0;
  await p.route("**/api/v1/query?*", () => {
    held += 1;
  });
  await p.getByRole("button", { name: "Run", exact: true }).click();
  await until(() => held === 1, "the query runs");
  await p.locator(".grid").focus();
  await p.keyboard.press("Escape");
  await p.waitForSelector(".partial");
  await p.keyboard.press("Escape");
  await p.keyboard.press("Escape");
  assert.ok(await p.$(".partial"));
  assert.equal(held, 1, "nothing is asked again");
  await p.done();
});

test("a query saved for everyone is removed after a question", async () => {
  const p = await page(server, `?from=1h&logql=${encodeURIComponent('{app="shop"}')}`);
  await p.waitForSelector(".line");
  await p.getByRole("button", { name: "Saved" }).click();
  await p.fill('.panel [placeholder="Name"]', "shop-lines");
  await p.keyboard.press("Enter");
  const item = p.locator(".panel .items li", { hasText: "shop-lines" });
  await item.waitFor();
  await item.getByRole("button", { name: "Remove shop-lines" }).click();
  await item.getByRole("button", { name: "Remove for everyone" }).click();
  await p.waitForFunction(() => !document.querySelector(".panel")?.textContent.includes("shop-lines"));
  await p.done();
});

test("queries of every language are saved on the server with their columns and range", async () => {
  for (const [lang, query, name] of [
    ["q", "app=many", "of-many"],
    ["sql", "select app, count(*) from logs group by app", "by-app"],
    ["logql", '{app="many"}', "of-logql"],
  ]) {
    const p = await page(server, `?${lang}=${encodeURIComponent(query)}&from=2h&cols=time,app`);
    await p.getByRole("button", { name: "Saved", exact: true }).click();
    await p.getByLabel("Name", { exact: true }).fill(name);
    await p.keyboard.press("Enter");
    await p.locator(".panel b", { hasText: name }).waitFor();
    await p.done();
  }
  const { queries } = await (await fetch(`${server.url}api/v1/saved-queries`)).json();
  const found = queries.find(({ name }) => name === "by-app");
  assert.deepEqual([found.language, found.view], ["sql", "?from=2h&cols=time%2Capp"]);
  // Another browser has it, too.
  const p = await page(server, "?from=15m");
  await p.getByRole("button", { name: "Saved", exact: true }).click();
  await p.locator(".panel b", { hasText: "of-many" }).click();
  await until(() => address(p).get("q") === "app=many", "the query is asked");
  assert.equal(address(p).get("from"), "2h");
  assert.equal(address(p).get("cols"), "time,app");
  await p.done();
});
