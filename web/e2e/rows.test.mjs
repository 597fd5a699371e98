// The list: columns, records, files, narrow screens, keys.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { closeBrowser, count, page, pond, texts, until } from "./harness.mjs";
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
  await p.route(/query_range\?.*count_over_time/, (route) => route.abort());
  await p.getByRole("button", { name: "Run", exact: true }).click();
  await p.waitForFunction(() => document.querySelector(".toolbar .count")?.textContent === "5,000+ records");
  await p.done();
});

test("lines of LogQL have a histogram, by which they are zoomed", async () => {
  const p = await page(server, `?logql=${encodeURIComponent('{app="shop"} |= "timeout"')}&from=2h`);
  const counts = () => p.$$eval(".histogram .stack", (bars) => bars.map((bar) => Number(bar.dataset.count)));
  const sum = async () => (await counts()).reduce((all, count) => all + count, 0);
  const lines = async () => Number((await p.textContent(".toolbar .count b")).replace(/,/g, ""));
  await p.waitForSelector(".line");
  await until(async () => (await sum()) > 0 && (await sum()) === (await lines()), "each line is in a bar");
  assert.ok(await p.$(".histogram .tone-error"));
  const all = await lines();
  const bars = await counts();
  const at = bars.findIndex((count) => count > 0 && count < all);
  assert.notEqual(at, -1, bars.join());
  const bar = await p.locator(".histogram .stack").nth(at).locator("rect").first().boundingBox();
  await p.mouse.click(bar.x + bar.width / 2, bar.y + bar.height / 2);
  await p.waitForFunction(() => location.search.includes("to="));
  await until(async () => (await lines()) === bars[at], "the lines of the bar are shown");
  assert.match(await p.evaluate(() => location.search), /logql=/);
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("labels of lines of LogQL are fields: their values are counted, and filter by a click", async () => {
  const p = await page(server, `?logql=${encodeURIComponent('{app=~"shop|pay"}')}&from=2h`);
  const lines = async () => Number((await p.textContent(".toolbar .count b")).replace(/,/g, ""));
  const value = (text) => facet(p, "app").locator(".value", { has: p.locator(".text", { hasText: text }) });
  const countOf = async (text) => {
    const title = await value(text).getAttribute("title");
    return Number(title.split("\n")[1].split(" ")[0].replace(/,/g, ""));
  };
  await value("shop").waitFor();
  await until(
    async () => (await countOf("shop")) + (await countOf("pay")) === (await lines()),
    "all are counted",
  );
  assert.ok(await p.$(".facet .value.tone-error"));
  const shop = await countOf("shop");
  await value("shop").click();
  await p.waitForFunction(() => decodeURIComponent(location.search).includes('app="shop"'));
  await until(async () => (await lines()) === shop, "the click includes");
  await until(
    async () => (await facet(p, "app").locator(".value").count()) === 1,
    "the values are those of the lines",
  );
  await value("shop").click({ modifiers: ["Alt"] });
  await until(async () => (await value("pay").count()) === 1, "Alt and a click exclude");
  assert.equal(await value("shop").count(), 0);
  assert.deepEqual(p.problems, []);
  await p.done();
});

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

test("Back returns to the rows that were read", async () => {
  const to = new Date(now).toISOString();
  const p = await page(server, `?from=${new Date(now - 7_200_000).toISOString()}&to=${to}&q=app%3Dmany`);
  await count(p);
  await p.evaluate(() => {
    document.querySelector(".grid").scrollTop = 50_000;
  });
  const first = () =>
    p.evaluate(() => {
      const box = document.querySelector(".grid")?.getBoundingClientRect();
      if (!box) return "";
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
  await p.fill("#query", "app=many many");
  await p.keyboard.press("Enter");
  await until(async () => (await first()).includes(`many ${MANY - 1}`), "the first row");
  assert.deepEqual(p.problems, []);
  await p.done();
});
