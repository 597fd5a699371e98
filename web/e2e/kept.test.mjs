// Results that stay while another question fails, records that keys open, and answers that lack a part.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { closeBrowser, count, page, pond, push, pushAccess, services, texts, until } from "./harness.mjs";

let server;
let hasSql;
before(async () => {
  server = await pond();
  await push(server, services(400));
  await pushAccess(server, 200);
  hasSql = (await fetch(`${server.api}api/v1/sql`, { method: "POST", body: "SELECT 1" })).status !== 501;
  const at = new Date(Date.now() - 60_000).toISOString();
  await push(server, JSON.stringify({ time: at, close_reason: "client", bytes_to_client: 7, app: "proxy" }));
});
after(async () => {
  await closeBrowser();
  await server.close();
});

/** Rows that overlap the next one. */
const overlaps = (p) =>
  p.$$eval(".grid .line", (lines) => {
    const boxes = lines.map((line) => line.getBoundingClientRect()).sort((a, b) => a.top - b.top);
    return boxes.filter(({ bottom }, index) => bottom > (boxes[index + 1]?.top ?? Infinity) + 1).length;
  });

/** The first rows: a notice above the list leaves room for fewer of them. */
const head = async (p) => (await texts(p)).slice(0, 15);

const run = async (p, text) => {
  await p.fill("#query", text);
  await p.keyboard.press("Escape");
  await p.locator("#query").focus();
  await p.keyboard.press("Enter");
};

for (const key of ["Enter", "ArrowRight"])
  test(`a record that ${key} opens moves the rows below it`, async () => {
    const p = await page(server, "?q=level%3Derror&from=24h");
    await count(p);
    await p.keyboard.press("Escape");
    await p.locator(".grid").focus();
    for (let turn = 0; turn < 4; turn += 1) {
      await p.keyboard.press("j");
      await p.keyboard.press(key);
      await until(async () => (await p.locator(".detail dl").count()) === turn + 1, "the record is open");
      await until(async () => (await overlaps(p)) === 0, "no row is drawn over another");
    }
    await p.keyboard.press(key === "Enter" ? "Enter" : "ArrowLeft");
    await until(async () => (await p.locator(".detail dl").count()) === 3, "the record is closed");
    await until(async () => (await overlaps(p)) === 0, "no row is drawn over another");
    assert.deepEqual(p.problems, []);
    await p.done();
  });

test("two wrong queries in a row keep the rows of the last right one", async () => {
  const p = await page(server, "?from=24h");
  await count(p);
  await run(p, "level=error");
  await p.waitForURL(/level/);
  const known = await count(p);
  const rows = await head(p);
  for (const wrong of ["level=error AND (", "level=error AND ((", "level=error AND ((("]) {
    await run(p, wrong);
    await p.waitForSelector("#query-problem strong");
    await p.waitForFunction(() => /query before/.test(document.querySelector(".notices")?.textContent ?? ""));
    await p.waitForTimeout(300);
    assert.equal(await count(p), known);
    assert.deepEqual(await head(p), rows);
    assert.equal(await p.locator(".stop").count(), 0);
  }
  // The rows are those of an earlier query, and so are the values that a field opens with.
  await p
    .locator(".facet", { has: p.locator(".name", { hasText: /^user$/ }) })
    .locator("h3 button")
    .first()
    .click();
  await p
    .locator(".facet", { has: p.locator(".name", { hasText: /^user$/ }) })
    .locator(".value")
    .first()
    .waitFor();
  await p.done();
});

test("a wrong query of another language keeps the result, whatever it is", async () => {
  const p = await page(server, "?from=24h");
  const known = await count(p);
  const rows = await head(p);
  await p.selectOption(".language", "logql");
  await run(p, '{app="shop"} | jsn');
  await p.waitForSelector("#query-problem strong");
  assert.match(await p.textContent(".notices"), /query before/);
  assert.equal(await count(p), known);
  assert.deepEqual(await head(p), rows);
  // A click adds to the query of these rows.
  await p.selectOption(".language", "sql");
  await run(p, "SELECT nothing");
  await p.waitForSelector("#query-problem strong");
  assert.deepEqual(await head(p), rows);
  await p.locator(".facet .value", { hasText: "error" }).first().click();
  await until(() => /q=level%3Derror/.test(p.url()), "the filter is of the native language");
  assert.equal(await p.inputValue("#query"), "level=error");
  await count(p);

  await p.selectOption(".language", "logql");
  await run(p, '{app="shop"}');
  await p.waitForFunction(() => document.querySelector(".toolbar .count b"));
  await until(async () => (await texts(p)).length > 5, "lines are shown");
  await p.waitForFunction(() => !document.querySelector(".unread"));
  const lines = await head(p);
  await p.selectOption(".language", "q");
  await run(p, "level=error AND (");
  await p.waitForSelector("#query-problem strong");
  assert.match(await p.textContent(".notices"), /query before/);
  assert.deepEqual(await head(p), lines);
  await p.selectOption(".language", "logql");
  await run(p, 'sum(count_over_time({app="shop"}[5m]))');
  await p.waitForSelector(".chart");
  await p.selectOption(".language", "q");
  await run(p, "level=error AND (");
  await p.waitForSelector("#query-problem strong");
  assert.equal(await p.locator(".chart").count(), 1);
  await run(p, "level=error");
  await p.waitForSelector(".grid .line");
  assert.equal(await p.locator(".chart").count(), 0);
  await p.done();
});

/** Makes answers of a path say that they lack a part. */
async function damage(p, path) {
  const said = '"segments/x.parquet: wrong checksum"';
  await p.route(path, async (route) => {
    // A request that the page gives up has no answer.
    const headers = await route.request().allHeaders();
    // The copy of the request is sent by this process, which is no page.
    for (const name of Object.keys(headers))
      if (/^(origin|referer|sec-fetch-)/.test(name)) delete headers[name];
    const answer = await route.fetch({ headers }).catch(() => null);
    const text = await answer?.text().catch(() => null);
    if (!text) return route.abort().catch(() => null);
    const body = text
      .replace('"complete":true', '"complete":false')
      .replace('"missing":[]', `"missing":[${said}]`)
      .replace('"warnings":[]', `"warnings":[${said}]`)
      .replace('"status":"success"', `"status":"success","warnings":[${said}]`);
    await route.fulfill({ response: answer, body }).catch(() => null);
  });
}

for (const [part, address, paths] of [
  ["the counts of fields", "?from=24h", "**/api/v1/fields?*"],
  ["values of a field", "?from=24h", "**/api/v1/top?*"],
  ["the bars", "?from=24h", "**/api/v1/histogram?*"],
  ["the patterns of the range before", "?view=patterns&from=5m", "**/api/v1/patterns?*n=10000*"],
  ["the counts of access logs", "?view=access&from=24h&bots=1", "**/api/v1/query?*count=true*"],
  ["addresses of access logs", "?view=access&from=24h&bots=1", "**/api/v1/fields?*"],
  [
    "bytes of access logs",
    "?view=access&from=24h&bots=1",
    () => (hasSql ? "**/api/v1/sql?*" : "**/api/query?*"),
  ],
  ["values of the proxy", "?view=proxy&from=24h", "**/api/v1/top?*"],
  ["bars of LogQL", "?from=24h&logql=%7Bapp%3D%22shop%22%7D", "**/loki/api/v1/query_range?*step*"],
])
  test(`one bar says what ${part} lack`, async () => {
    const path = typeof paths === "string" ? paths : paths();
    const p = await page(server);
    await damage(p, path);
    await p.goto(server.url + address);
    await p.waitForSelector(".notices p");
    assert.match(await p.textContent(".notices"), /wrong checksum/);
    assert.equal(await p.locator(".notices p").count(), 1);
    // It is of this question.
    await p.unroute(path);
    await p.evaluate(() => document.querySelector('button[type="submit"].primary')?.click());
    await p.waitForFunction(() => !document.querySelector(".notices"));
    await p.done();
  });

test("a value that only the completion asks for is no gap of the result", async () => {
  const p = await page(server, "?from=24h");
  await count(p);
  await damage(p, "**/api/v1/top?*");
  await p.locator("#query").focus();
  await p.keyboard.type("user=");
  await p.waitForSelector("#suggestions li");
  assert.equal(await p.locator(".notices").count(), 0);
  await p.done();
});
