// The controls around the results: the bar, the histogram, columns, panels, menus, keys.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { closeBrowser, count, ownServers, page, pond, push, services, texts, until } from "./harness.mjs";

let server;
const now = Date.now();
const MANY = 6000;
const CUSTOMERS = 2500;
before(async () => {
  server = await pond();
  await push(server, services(400, now));
  const records = (n, of) => Array.from({ length: n }, (_, i) => JSON.stringify(of(i))).join("\n");
  const at = (i) => new Date(now - 1_800_000 + i).toISOString();
  await push(
    server,
    records(MANY, (i) => ({ time: at(i), app: "many", message: `many ${i}`, seq: i })),
  );
  await push(
    server,
    records(CUSTOMERS, (i) => ({ time: at(i), app: "sold", message: "sold", customer: `cust-${i}` })),
  );
  await push(
    server,
    records(20, (i) => ({
      time: at(i),
      app: "web",
      host: "shop.example.com",
      hostname: "edge-2",
      constructor: `made-${i}`,
      message: "page served",
    })),
  );
  await push(
    server,
    records(1, () => ({
      time: at(0),
      app: "odd",
      message: `RTL \u202eevil\u202c text \x1b]8;;http://evil\x07link\x1b]8;;\x07 a\x07b`,
    })),
  );
  await push(
    server,
    records(1, () => ({ time: at(0), app: "long", message: `long ${"word ".repeat(60_000)}` })),
  );
  for (const [level, n] of [
    ["info", 8],
    ["warn", 5],
  ])
    await push(
      server,
      records(n, (i) => ({ time: at(i), app: "levels", level, message: `${i} connections are in use` })),
    );
});
after(async () => {
  await closeBrowser();
  await server?.close();
});

const DRAFT = "level>=warn app=shop";
const address = (p) => new URL(p.url()).searchParams;

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

test("a narrow screen keeps the columns that it does not show, and its panels within", async () => {
  const p = await page(server, "?from=1h", { width: 360, height: 740 });
  await count(p);
  await p.locator(".head .col-level").hover();
  await p.locator(".head .col-level .remove").click();
  await until(() => address(p).get("cols") === "time,host,app,message", "host and app are still chosen");
  for (const name of ["Saved", "History", "Share", "Download", "Columns"]) {
    await p.getByRole("button", { name, exact: true }).click();
    const { left, right, bottom, inner } = await p.$eval(".panel", (panel) => ({
      ...panel.getBoundingClientRect().toJSON(),
      inner: panel.scrollWidth - panel.clientWidth,
    }));
    assert.ok(left >= 0 && right <= 360 && bottom <= 740, `${name}: ${left} to ${right}, ${bottom}`);
    assert.ok(inner <= 0, `${name} is cut by ${inner} px`);
    await p.keyboard.press("Escape");
  }
  // The foot is whole.
  const cut = await p.$$eval(".foot span", (all) =>
    all
      .map((span) => span.getBoundingClientRect())
      .filter(({ right, width, height }) => (right > 360 || height === 0) && width > 0),
  );
  assert.deepEqual(cut, []);
  assert.match(await p.textContent(".foot"), /rows read.*scanned/);
  assert.ok((await p.$$(".histogram .tick")).length >= 2);
  await p.done();
});

test("a link to a record that is cut off has a sentence", async () => {
  for (const sel of ["abc", "2026-11-29T12", "2026-11-29T12:00:00.000Z_01"]) {
    const p = await page(server, `?sel=${sel}`, { wait: false });
    await p.waitForFunction(() =>
      /end of the link/.test(document.querySelector("dialog.selected")?.textContent ?? ""),
    );
    await p.done();
  }
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

test("lines of LogQL are read to the end, and counted", async () => {
  const query = '{app="many"}';
  const p = await page(server, `?logql=${encodeURIComponent(query)}&from=2h&cols=time,message`);
  await p.waitForFunction(
    (text) => document.querySelector(".toolbar .count b")?.textContent === text,
    MANY.toLocaleString("en-US"),
  );
  assert.match(await p.textContent(".foot"), /5,000 of 6,000 rows read/);
  await p.waitForFunction(() => {
    const grid = document.querySelector(".grid");
    grid.scrollTop = grid.scrollHeight;
    return [...document.querySelectorAll(".line .col-message")].at(-1)?.textContent.includes('"many 0"');
  });
  assert.match(await p.textContent(".foot"), /6,000 of 6,000 rows read/);
  // Without the number, the page still says that there are more.
  await p.route("**/loki/api/v1/query?*", (route) => route.abort());
  await p.getByRole("button", { name: "Run", exact: true }).click();
  await p.waitForFunction(() => document.querySelector(".toolbar .count")?.textContent === "5,000+ records");
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

const facet = (p, name) =>
  p.locator(".facet", { has: p.locator(".name", { hasText: new RegExp(`^${name}$`) }) });

test("a field of the name of a column has a column of its own", async () => {
  const p = await page(server, "?from=2h&q=app%3Dweb");
  await count(p);
  assert.equal((await texts(p, "host"))[0], "edge-2");
  const button = facet(p, "host").locator(".as-column");
  await facet(p, "host").locator("h3").hover();
  assert.equal(await button.getAttribute("aria-pressed"), "false");
  await button.click();
  await p.waitForSelector(".head .col-field-host");
  assert.equal((await texts(p, "field-host"))[0], "shop.example.com");
  assert.equal((await texts(p, "host"))[0], "edge-2");
  await p.reload();
  await count(p);
  await p.locator(".facet").first().waitFor();
  assert.equal((await texts(p, "field-host"))[0], "shop.example.com");
  await facet(p, "host").locator("h3").hover();
  assert.equal(await button.getAttribute("aria-pressed"), "true");
  await button.click();
  await p.waitForFunction(() => !document.querySelector(".head .col-field-host"));
  assert.equal((await texts(p, "host"))[0], "edge-2");
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("a column of any name is only a column", async () => {
  const p = await page(server, "?from=2h&q=app%3Dweb&cols=time,constructor,toString,__proto__,message");
  assert.equal(await count(p), 20);
  assert.match((await texts(p, "constructor"))[0], /^made-\d+$/);
  assert.equal((await texts(p, "toString"))[0], "");
  await facet(p, "constructor").getByRole("button").first().click();
  await facet(p, "constructor").locator("li").first().waitFor();
  assert.deepEqual(p.problems, []);
  await p.done();
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

test("characters without a shape have a name, and a long row says how long it is", async () => {
  const p = await page(server, "?from=2h&q=app%3Dodd");
  await count(p);
  assert.deepEqual(await texts(p), ["RTL U+202Eevil U+202C text link aBELb".replace("evil U", "evilU")]);
  await p.fill("#query", "app=long");
  await p.keyboard.press("Enter");
  await p.waitForSelector(".line .more");
  const more = await p.$eval(".line .more", (element) => {
    const [box, cell] = [element.getBoundingClientRect(), element.parentElement.getBoundingClientRect()];
    return { text: element.textContent, within: box.width > 20 && box.right <= cell.right + 1 };
  });
  assert.match(more.text, /kB/);
  assert.ok(more.within, "it is not cut away");
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

test("Escape closes records and keeps the focus in the list; widths go by keys", async () => {
  const p = await page(server, "?from=1h&q=app%3Dshop");
  await count(p);
  await p.locator(".line .cells").first().click();
  await p.locator(".detail").getByRole("button", { name: "Raw" }).focus();
  await p.keyboard.press("Escape");
  await p.waitForFunction(
    () => !document.querySelector(".detail") && document.activeElement?.matches(".grid"),
  );
  // The cursor went on: the record that is open is closed all the same.
  await p.keyboard.press("Enter");
  await p.waitForSelector(".detail");
  await p.keyboard.press("j");
  await p.keyboard.press("Escape");
  await p.waitForFunction(() => !document.querySelector(".detail"));
  const width = async () => (await p.locator(".head .col-host").boundingBox()).width;
  const before = await width();
  await p.locator(".head .col-host .grip").focus();
  await p.keyboard.press("ArrowRight");
  await p.keyboard.press("ArrowRight");
  await until(async () => (await width()) === before + 20, "the column is wider");
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

test("a line of LogQL has filters, its record, and what is around it", async () => {
  const p = await page(server, `?from=1h&logql=${encodeURIComponent('{app="shop"} |= "timeout"')}`);
  await p.waitForSelector(".line");
  const line = (await texts(p))[0];
  await p.locator(".line .cells").first().click();
  await p.locator(".detail").getByRole("button", { name: "Context" }).waitFor();
  const label = p.locator(".fields dt", { hasText: /detected_level$/ });
  await label.getByRole("button", { name: /^Only records/ }).click();
  await p.waitForFunction(() => document.querySelector("#query").value.endsWith('| detected_level="error"'));
  await p.waitForSelector(".line");
  assert.equal((await texts(p))[0], line);
  await p.locator(".detail").getByRole("button", { name: "Context" }).click();
  await p.waitForSelector(".context-row.origin");
  assert.match(await p.textContent(".context-row.origin"), /upstream timeout/);
  assert.deepEqual(p.problems, []);
  await p.done();
});

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
  await p.done();
});

test("a wide table of SQL can be read", async () => {
  const p = await page(server, "?from=2h&sql=SELECT%20*%20FROM%20logs%20LIMIT%2020");
  await p.waitForSelector(".data td, .query-problem strong");
  if (await p.$(".data td")) {
    const tall = await p.$$eval(".data tbody tr", (rows) => rows.map((row) => row.offsetHeight));
    assert.ok(Math.max(...tall) < 130, `rows of ${Math.max(...tall)} px`);
    assert.ok(await p.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  }
  await p.done();
});

test("a file has the columns of the list, in its zone", async () => {
  const p = await page(server, "?from=2h&q=app%3Dweb&cols=time,host,field:host,message&tz=Asia/Tokyo");
  await count(p);
  await p.getByRole("button", { name: "Download" }).click();
  const [file] = await Promise.all([
    p.waitForEvent("download"),
    p.getByRole("button", { name: /columns shown/ }).click(),
  ]);
  const lines = (await readFile(await file.path(), "utf8")).trim().split("\r\n");
  assert.equal(lines[0], "time,host,host,message");
  assert.equal(lines.length, 21);
  assert.match(lines[1], /^\d{4}-.*\+09:00,edge-2,shop\.example\.com,page served$/);
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

test("Back returns to the rows that were read", async () => {
  const to = new Date(now).toISOString();
  const p = await page(server, `?from=${new Date(now - 7_200_000).toISOString()}&to=${to}&q=app%3Dmany`);
  await count(p);
  await p.evaluate(() => {
    document.querySelector(".grid").scrollTop = 50_000;
  });
  const first = () =>
    p.evaluate(() => {
      const box = document.querySelector(".grid").getBoundingClientRect();
      const lines = [...document.querySelectorAll(".line")]
        .map((line) => [line.getBoundingClientRect().top, line.textContent])
        .filter(([top]) => top >= box.top + 24)
        .sort(([a], [b]) => a - b);
      return lines[0]?.[1] ?? "";
    });
  await until(async () => /many \d+/.test(await first()), "the rows there are read");
  const seen = /many \d+/.exec(await first())[0];
  await p.getByRole("link", { name: "Cluster" }).click();
  await p.waitForSelector(".figures");
  await p.goBack();
  await until(async () => (await first()).includes(seen), `${seen} is the first row again`);
  // A new question begins at its first row.
  await p.fill("#query", "app=many message:many");
  await p.keyboard.press("Enter");
  await until(async () => (await first()).includes(`many ${MANY - 1}`), "the first row");
  assert.deepEqual(p.problems, []);
  await p.done();
});
