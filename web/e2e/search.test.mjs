// Search, filters, links, context, errors, times: with a server and a browser.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  ask,
  closeBrowser,
  count,
  ownServers,
  page,
  pond,
  push,
  services,
  texts,
  until,
} from "./harness.mjs";

let server;
const now = Date.now();
before(async () => {
  server = await pond();
  await push(server, services(400, now));
  // One stream with many records of one instant.
  const instant = new Date(now - 7_200_000).toISOString();
  await push(
    server,
    Array.from({ length: 500 }, (_, i) =>
      JSON.stringify({ time: instant, message: `equal ${i}`, hostname: "same", app: "clock", n: i }),
    ).join("\n"),
  );
  await push(
    server,
    JSON.stringify({
      time: new Date(now - 1000).toISOString(),
      message: "numbers",
      app: "odd",
      big: "x",
      id: 1,
    }).replace('"id":1', '"id":18446744073709551615'),
  );
});
after(async () => {
  await closeBrowser();
  await server?.close();
});

test("a word is found, and the page says how many records match", async () => {
  const p = await page(server);
  await p.fill("#query", "timeout");
  await p.keyboard.press("Enter");
  await p.waitForFunction(() => document.title.startsWith("timeout"));
  assert.equal(await count(p), 80);
  assert.ok((await texts(p)).every((text) => text.includes("timeout")));
  assert.equal(await p.$$eval(".grid mark", (marks) => marks[0].textContent), "timeout");
  assert.deepEqual(p.problems, []);
  assert.deepEqual(p.foreign, []);
  await p.done();
});

test("a syntax error is underlined in place, and the rows stay (A9)", async () => {
  const p = await page(server, "?q=level%3Derror");
  const before = await count(p);
  await p.fill("#query", "status==500");
  await p.keyboard.press("Enter");
  await p.waitForSelector(".query-problem strong");
  const marked = () => p.$$eval(".paint mark", (marks) => marks.map((mark) => mark.textContent).join(""));
  assert.equal(await marked(), "==");
  assert.match(await p.textContent(".query-problem"), /did you mean/);
  assert.ok((await texts(p)).length > 0, "earlier rows stay");
  assert.equal(await count(p), 80, "and so does their number");
  assert.equal(before, 80);
  // The text is corrected: the mark goes.
  await p.fill("#query", "status=504");
  assert.equal(await p.$(".paint mark"), null);
  // LogQL has its place in lines and columns.
  await p.selectOption(".language", "logql");
  await p.fill("#query", '{app="shop"} | jsn');
  await p.keyboard.press("Enter");
  await p.waitForSelector(".query-problem strong");
  assert.equal(await marked(), "jsn");
  assert.ok(
    p.problems.every((text) => text.includes("400")),
    p.problems.join(),
  );
  await p.done();
});

test("brush, include, exclude, column, zone; the link is the view; Back undoes each step (A11)", async () => {
  const p = await page(server, "?from=6h&q=app%3Ashop");
  await count(p);
  const steps = [];
  const note = async () => steps.push({ url: p.url(), count: await count(p) });
  await note();
  // Bars sum up to the records.
  const sum = await p.$$eval(".stack", (bars) =>
    bars.reduce((all, bar) => all + Number(bar.dataset.count), 0),
  );
  assert.equal(sum, steps[0].count);
  const plot = await p.locator(".plot").boundingBox();
  await p.mouse.move(plot.x + plot.width * 0.85, plot.y + 30);
  await p.mouse.down();
  await p.mouse.move(plot.x + plot.width * 0.99, plot.y + 30, { steps: 4 });
  await p.mouse.up();
  await until(() => p.url() !== steps[0].url, "the range is in the address");
  await note();
  assert.ok(steps[1].count > 0);
  // A facet: the count beside it is that of the records after a click.
  const facet = p
    .locator(".facet", { has: p.locator(".name", { hasText: /^Level$/ }) })
    .locator("li", { hasText: "error" });
  await facet.waitFor();
  const said = Number((await facet.locator(".count").textContent()).replace(/\D/g, ""));
  await facet.hover();
  await facet.getByRole("button", { name: /^Only records/ }).click();
  await until(() => p.url() !== steps[1].url, "the filter is in the address");
  assert.match(await p.inputValue("#query"), /level=error/);
  await note();
  assert.equal(steps[2].count, said);
  // A value of an open record is excluded.
  await p.locator(".line .cells").first().click();
  const host = p.locator(".fields dt", { hasText: /hostname$/ }).first();
  await host.waitFor();
  await host.getByRole("button", { name: /^No records/ }).click();
  await until(() => p.url() !== steps[2].url, "the exclusion is in the address");
  assert.match(await p.inputValue("#query"), /hostname!=web-/);
  await note();
  assert.ok(steps[3].count < steps[2].count);
  await p.locator(".head .col-app").hover();
  await p.locator(".head .col-app .remove").click();
  await until(() => p.url().includes("cols="), "the columns are in the address");
  await note();
  await p.keyboard.press("Escape");
  await p.locator(".grid").focus();
  await p.keyboard.press("u");
  await until(() => p.url().includes("tz=UTC"), "the zone is in the address");
  await note();
  const rows = await texts(p);
  const times = await texts(p, "time");
  // The same in a fresh profile of another zone.
  const other = await page(server, new URL(p.url()).search, { zone: "Asia/Kathmandu" });
  assert.equal(await count(other), steps[5].count);
  assert.deepEqual(await texts(other), rows);
  assert.deepEqual(await texts(other, "time"), times);
  assert.equal(await other.$(".head .col-app"), null);
  assert.equal(await other.inputValue("#query"), await p.inputValue("#query"));
  await other.done();
  for (let step = 4; step >= 0; step -= 1) {
    await p.goBack();
    await until(() => p.url() === steps[step].url, `step ${step}`);
    await p.waitForFunction(
      (wanted) =>
        document.querySelector(".toolbar .count b")?.textContent.replace(/\D/g, "") === String(wanted),
      steps[step].count,
    );
  }
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("context is exact among records of one instant, and reaches both ends (A13)", async () => {
  const truth = (await ask(server, "api/v1/query", { from: "@0", q: "app=clock" })).rows.map(
    (row) => row._id,
  );
  const p = await page(server, "?from=1d&q=n%3D250%20app%3Dclock");
  await count(p);
  await p.locator(".line .cells").first().click();
  await p.getByRole("button", { name: "Context" }).click();
  await p.waitForFunction(() => document.querySelectorAll(".context-row").length === 41);
  const ids = () => p.$$eval(".context-row", (rows) => rows.map((row) => row.dataset.id));
  const middle = truth.indexOf(
    (await ask(server, "api/v1/query", { from: "@0", q: "n=250 app=clock" })).rows[0]._id,
  );
  assert.deepEqual(await ids(), truth.slice(middle - 20, middle + 21));
  for (const name of ["Earlier records", "Later records"]) {
    for (;;) {
      const button = p.getByRole("button", { name });
      if (!(await button.count())) break;
      const before = await p.$$eval(".context-row", (rows) => rows.length);
      await button.click();
      await p.waitForFunction(
        ([n, label]) => {
          const edges = [...document.querySelectorAll(".edge")].map((edge) => edge.textContent);
          return (
            !edges.includes("Loading…") &&
            (document.querySelectorAll(".context-row").length > n || !edges.includes(label))
          );
        },
        [before, name],
      );
    }
  }
  assert.deepEqual(await ids(), truth);
  // Everything, in the order of the server.
  await p.getByRole("button", { name: "Everything" }).click();
  await p.waitForFunction(
    () =>
      document.querySelector(".context-bar code")?.textContent === "*" &&
      document.querySelectorAll(".context-row").length >= 21,
  );
  await p.keyboard.press("Escape");
  assert.equal(await p.inputValue("#query"), "n=250 app=clock");
  assert.ok(await p.$(".detail"), "the record is still open");
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("times are the same in the list, in the record and in the export, with all digits", async () => {
  const p = await page(server, "?from=1d&q=numbers&tz=America%2FNew_York");
  await count(p);
  const row = (await ask(server, "api/v1/query", { from: "1d", q: "numbers" })).rows[0];
  const wanted = new Intl.DateTimeFormat("en-GB", {
    timeZone: "America/New_York",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  }).format(new Date(row._time));
  assert.ok((await texts(p, "time"))[0].includes(wanted));
  await p.locator(".line .cells").first().click();
  await p.waitForFunction((text) => document.querySelector(".fields dd")?.textContent.includes(text), wanted);
  // A number of 64 bits keeps its digits.
  assert.match(await p.textContent(".fields"), /18446744073709551615/);
  await p.getByRole("button", { name: "JSON" }).click();
  assert.match(await p.textContent(".raw"), /"id": 18446744073709551615/);
  await p.done();
});

test("nothing found: the reason and a way on", async () => {
  const p = await page(server, "?q=statsu%3D504");
  await p.waitForSelector(".hints a");
  assert.equal(await p.textContent(".hints a"), "status=504");
  await p.click(".hints a");
  await p.waitForSelector(".line");
  assert.equal(await p.inputValue("#query"), "status=504");
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("completion offers fields, and values with counts", async () => {
  const p = await page(server);
  await count(p);
  await p.locator(".facet").first().waitFor();
  await p.click("#query");
  await p.keyboard.type("hostn");
  await p.locator("#suggestions li", { hasText: "hostname" }).first().waitFor();
  await p.keyboard.press("ArrowDown");
  await p.keyboard.press("Enter");
  await p.locator("#suggestions li", { hasText: "web-1" }).waitFor();
  assert.match(await p.locator("#suggestions li", { hasText: "web-1" }).textContent(), /\d/);
  await p.keyboard.type("web-2");
  await p.waitForFunction(() => document.querySelectorAll("#suggestions li").length === 1);
  await p.keyboard.press("Escape");
  await p.keyboard.press("Enter");
  await p.waitForFunction(() => location.search.includes("web-2"));
  assert.ok((await count(p)) > 0);
  await p.done();
});

test("an open record covers no row below it", async () => {
  const p = await page(server, "?from=1h&q=app%3Dshop");
  await count(p);
  await p.locator(".line .cells").first().click();
  await p.waitForFunction(() => document.querySelector(".detail .fields")?.textContent.includes("_received"));
  await p.waitForFunction(() => {
    const boxes = [...document.querySelectorAll(".grid .line")]
      .map((line) => line.getBoundingClientRect())
      .sort((a, b) => a.top - b.top);
    return boxes.every((box, i) => i === 0 || Math.abs(box.top - boxes[i - 1].bottom) < 1.5);
  });
  await p.done();
});

test("selecting text closes nothing, and columns are kept", async () => {
  const p = await page(server);
  await count(p);
  await p.locator(".line .cells").first().click();
  await p.locator(".fields dd").nth(2).waitFor();
  const box = await p.locator(".fields dd").nth(1).boundingBox();
  await p.mouse.move(box.x + 2, box.y + 8);
  await p.mouse.down();
  await p.mouse.move(box.x + 80, box.y + 8, { steps: 3 });
  await p.mouse.up();
  assert.ok((await p.evaluate(() => getSelection().toString().length)) > 0);
  assert.ok(await p.$(".detail"));
  // A line's text can be selected without opening it.
  const line = await p.locator(".line .col-message").nth(3).boundingBox();
  await p.mouse.move(line.x + 2, line.y + 10);
  await p.mouse.down();
  await p.mouse.move(line.x + 60, line.y + 10, { steps: 3 });
  await p.mouse.up();
  assert.equal(await p.$$eval(".detail", (all) => all.length), 1);
  await p.done();
});

test("LogQL is lines or a chart, SQL is a table", async () => {
  const p = await page(server, `?logql=${encodeURIComponent('{app="shop"} |= "timeout"')}&from=2h`);
  await p.waitForSelector(".line");
  assert.ok((await texts(p)).every((text) => text.includes("timeout")));
  await p.fill("#query", 'sum by (app) (count_over_time({app=~".+"}[5m]))');
  await p.keyboard.press("Enter");
  await p.waitForSelector(".uplot canvas");
  assert.match(await p.textContent(".data"), /shop/);
  await p.selectOption(".language", "sql");
  await p.fill("#query", "SELECT app, count(*) AS n FROM logs GROUP BY app ORDER BY app");
  await p.keyboard.press("Enter");
  await p.waitForFunction(
    () =>
      document.querySelector("th button")?.textContent.startsWith("app") ||
      document.querySelector(".query-problem strong"),
  );
  if (await p.$(".data")) assert.match(await p.textContent(".data"), /pay.*\d/);
  assert.ok(
    p.problems.every((text) => /501|400/.test(text)),
    p.problems.join(),
  );
  await p.done();
});

test("a link to one record opens it by itself", async () => {
  const row = (await ask(server, "api/v1/query", { from: "1d", q: "timeout", limit: 1 })).rows[0];
  const p = await page(server, `?sel=${encodeURIComponent(`${row._time}_${row._id}`)}`);
  await p.waitForSelector("dialog.selected .fields");
  assert.equal(await p.textContent(".selected-text"), row._msg);
  await p.keyboard.press("Escape");
  await p.waitForFunction(
    () => !document.querySelector("dialog.selected") && !location.search.includes("sel="),
  );
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("downloads are whole: no cap, the columns and the report", async () => {
  const p = await page(server, "?from=1d");
  const all = await count(p);
  for (const [name, lines] of [
    ["NDJSON", all + 1],
    ["CSV", null],
    ["Original lines", all],
  ]) {
    await p.getByRole("button", { name: "Download" }).click();
    const [file] = await Promise.all([
      p.waitForEvent("download"),
      name === "Original lines"
        ? p.getByRole("button", { name }).click()
        : p.getByRole("link", { name }).click(),
    ]);
    const text = await (await import("node:fs/promises")).readFile(await file.path(), "utf8");
    if (lines !== null) assert.equal(text.trim().split("\n").length, lines, name);
    else assert.ok(text.trim().split("\n").length >= all, name);
  }
  await p.getByRole("button", { name: "Download" }).click();
  const [file] = await Promise.all([
    p.waitForEvent("download"),
    p.getByRole("link", { name: /Report/ }).click(),
  ]);
  const html = await (await import("node:fs/promises")).readFile(await file.path(), "utf8");
  assert.equal(file.suggestedFilename(), "logpond-report.html");
  assert.match(html, /<svg/);
  assert.match(
    html,
    new RegExp(`${all.toLocaleString("en")} (rows|of)`.replace("rows|of", "rows|that match|of")),
  );
  assert.match(html, /\+01:00|\+02:00/, "times are in the zone of the page");
  assert.equal(html.match(/<tr>/g).length - 1, Math.min(all, 1000));
  assert.doesNotMatch(html, /<script|https?:\/\//);
  const report = await p.context().newPage();
  await report.setViewportSize({ width: 360, height: 740 });
  await report.setContent(html);
  assert.ok(await report.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "on a phone");
  const message = await report.locator("td.m").first().boundingBox();
  assert.ok(message.width > 250, `the message has ${message.width} px`);
  await report.close();
  await p.done();
});

test("a histogram that fails leaves the rows", async () => {
  const p = await page(server, "about:blank".slice(0, 0), {});
  await count(p);
  await p.route("**/api/v1/histogram*", (route) =>
    route.fulfill({
      status: 500,
      contentType: "application/json",
      body: '{"error":{"code":"internal","message":"broken"}}',
    }),
  );
  await p.fill("#query", "timeout");
  await p.keyboard.press("Enter");
  await p.waitForSelector(".histogram .bad");
  assert.match(await p.textContent(".histogram .bad"), /broken/);
  assert.ok((await texts(p)).every((text) => text.includes("timeout")));
  await p.done();
});

test("a slow histogram delays no row, and says what it has not read", async () => {
  const p = await page(server);
  await count(p);
  let asked = 0;
  let release;
  const held = new Promise((done) => {
    release = done;
  });
  await p.route("**/api/v1/histogram*", async (route) => {
    asked += 1;
    if (asked === 1) await new Promise((done) => setTimeout(done, 400));
    else await held;
    await route.continue();
  });
  await p.fill("#query", "timeout");
  await p.keyboard.press("Enter");
  await p.waitForFunction(
    () =>
      document.querySelector(".unread-note") &&
      document.querySelectorAll(".stack").length > 5 &&
      document.querySelectorAll(".stack").length < 40 &&
      document.querySelector(".grid mark"),
  );
  const part = await p.$$eval(".stack", (bars) => bars.length);
  release();
  await p.waitForFunction(
    (bars) => !document.querySelector(".unread-note") && document.querySelectorAll(".stack").length > bars,
    part,
  );
  await p.done();
});

test("an incomplete answer is said", async () => {
  const p = await page(server);
  await count(p);
  await p.route("**/api/v1/query?*", async (route) => {
    const answer = await route.fetch();
    const body = (await answer.text())
      .replace('"complete":true', '"complete":false')
      .replace('"missing":[]', '"missing":["segments/x.parquet: wrong checksum"]');
    await route.fulfill({ response: answer, body });
  });
  await p.keyboard.press("Escape");
  await p.fill("#query", "timeout");
  await p.keyboard.press("Enter");
  await p.waitForSelector(".notices");
  assert.match(await p.textContent(".notices"), /incomplete.*wrong checksum/i);
  await p.done();
});

test("patterns obey the query, and lead to their records", async () => {
  const p = await page(server, "?view=patterns&q=app%3Dpay&from=2h");
  await p.waitForSelector(".pattern-table tbody tr");
  const said = (
    await p.$$eval(".pattern-table tbody .num:first-child", (cells) =>
      cells.map((cell) => Number(cell.textContent.replace(/\D/g, ""))),
    )
  ).reduce((a, b) => a + b, 0);
  assert.equal(
    said,
    (await ask(server, "api/v1/query", { from: "2h", q: "app=pay", count: "true" })).trailer.rows,
  );
  const first = Number((await p.textContent(".pattern-table tbody .num")).replace(/\D/g, ""));
  await p.locator(".pattern-table tbody").getByRole("button", { name: "Show" }).first().click();
  assert.equal(await count(p), first);
  assert.match(await p.inputValue("#query"), /app=pay/);
  await p.done();
});

test("any column goes, also time and message; one is added, resized and kept", async () => {
  const p = await page(server, "?from=2h&q=app%3Ashop");
  await count(p);
  await p.getByRole("button", { name: "Columns" }).click();
  await p.fill('[name="column"]', "ms");
  await p.keyboard.press("Enter");
  await p.waitForSelector(".head .col-ms");
  for (const name of ["time", "message"]) {
    await p.locator(`.head .col-${name}`).hover();
    await p.locator(`.head .col-${name} .remove`).click();
    await p.waitForFunction((column) => !document.querySelector(`.head .col-${column}`), name);
  }
  const before = (await p.locator(".head .col-ms").boundingBox()).width;
  const grip = await p.locator(".head .col-ms .grip").boundingBox();
  await p.mouse.move(grip.x + 3, grip.y + 5);
  await p.mouse.down();
  await p.mouse.move(grip.x + 83, grip.y + 5, { steps: 3 });
  await p.mouse.up();
  await until(
    async () => (await p.locator(".head .col-ms").boundingBox()).width > before + 60,
    "the column is wider",
  );
  await p.reload();
  await p.waitForSelector(".head .col-ms");
  assert.ok((await p.locator(".head .col-ms").boundingBox()).width > before + 60);
  assert.equal(await p.$(".head .col-time"), null);
  assert.ok((await texts(p, "ms")).every((text) => /^\d+$/.test(text)));
  await p.done();
});

test("a number is chosen by a brush, and the query says so", async () => {
  const p = await page(server, "?from=2h&q=app%3Ashop");
  const all = await count(p);
  await p
    .locator(".facet", { has: p.locator(".name", { hasText: /^ms$/ }) })
    .getByRole("button")
    .first()
    .click();
  const plot = await p.locator(".numbers svg").boundingBox();
  await p.mouse.move(plot.x + plot.width * 0.5, plot.y + 10);
  await p.mouse.down();
  await p.mouse.move(plot.x + plot.width * 0.9, plot.y + 10, { steps: 4 });
  await p.mouse.up();
  await p.waitForFunction(() => /ms>=\d+ ms<=\d+/.test(document.querySelector("#query").value));
  const [, low, high] = /ms>=(\d+) ms<=(\d+)/.exec(await p.inputValue("#query"));
  const some = await count(p);
  assert.ok(some > 0 && some < all);
  const { trailer } = await ask(server, "api/v1/query", {
    from: "2h",
    q: `app=shop ms>=${low} ms<=${high}`,
    count: "true",
  });
  assert.equal(some, trailer.rows);
  await p.done();
});

test("an invisible character is named, and can be removed", async () => {
  const p = await page(server);
  await p.fill("#query", "time\u200bout");
  await p.waitForSelector(".odd");
  assert.match(await p.textContent(".odd"), /U\+200B/);
  await p.locator(".odd button").click();
  assert.equal(await p.inputValue("#query"), "timeout");
  await p.done();
});

test("values of any kind are found again by a click", async () => {
  const odd = [
    'say "hi"',
    "back\\slash",
    "a b",
    "/path/x",
    "(x) OR y",
    "NOT",
    "5.0",
    "日本 🙂",
    "tab\there",
    'i"x"',
    "line\nbreak",
    "*",
    "a=b",
  ];
  await push(
    server,
    odd.map((value, n) => JSON.stringify({ message: `odd ${n}!`, app: "odd-values", value })).join("\n"),
  );
  const p = await page(server, "?q=app%3Dodd-values&cols=value%2Cmessage");
  assert.equal(await count(p), odd.length);
  for (let n = 0; n < odd.length; n += 1) {
    await p.goto(`${server.url}?q=${encodeURIComponent(`app=odd-values "odd ${n}!"`)}`);
    await p.locator(".line .cells").first().click();
    const name = p.locator(".fields dt", { hasText: /value$/ });
    await name.waitFor();
    const dd = p
      .locator(".fields dt:has(.filters) + dd")
      .nth(
        await p.$$eval(".fields dt:has(.filters)", (all) =>
          all.findIndex((dt) => dt.textContent.endsWith("value")),
        ),
      );
    await dd.scrollIntoViewIfNeeded();
    // It is visible below the pointer only, which a click that waits for that would not move.
    await dd.locator(".only").click({ force: true });
    await p.waitForFunction(() => document.querySelector("#query").value.startsWith("value="));
    assert.equal(await count(p), 1, `${odd[n]}: ${await p.inputValue("#query")}`);
    assert.ok((await texts(p)).join().includes(`odd ${n}!`));
  }
  await p.done();
});

test("the oldest first, to the end; wrapped rows do not jump", async () => {
  const p = await page(server, "?from=6h&q=app%3Aclock%20OR%20app%3Ashop&sort=asc");
  const all = await count(p);
  const truth = (await ask(server, "api/v1/query", { from: "6h", q: "app:clock OR app:shop" })).rows;
  assert.ok((await texts(p))[0].includes(truth[0]._msg));
  await p.keyboard.press("Escape");
  await p.evaluate(() => {
    document.querySelector(".grid").scrollTop = 1e9;
  });
  await p.waitForFunction(
    (n) =>
      [...document.querySelectorAll(".line")].some(
        (line) =>
          Number(line.dataset.index) === n - 1 && line.querySelector(".col-time").textContent.length > 4,
      ),
    all,
  );
  assert.equal((await texts(p)).at(-1), truth.at(-1)._msg);
  await p.locator(".head .sort").click();
  await p.waitForFunction(() => !location.search.includes("sort="));
  assert.equal(await count(p), all);
  await p.evaluate(() => {
    document.querySelector(".grid").scrollTop = 0;
  });
  await p.waitForFunction(
    (text) => document.querySelector(".line .col-message")?.textContent === text,
    truth.at(-1)._msg,
  );
  // Wrapped: scrolling up by a part of the screen moves the rows by just that.
  await push(
    server,
    Array.from({ length: 300 }, (_, i) =>
      JSON.stringify({ message: `tall ${i} ${"word ".repeat(1 + ((i * 37) % 160))}`, app: "tall" }),
    ).join("\n"),
  );
  await p.goto(`${server.url}?q=app%3Dtall&wrap=1`);
  await count(p);
  await p.evaluate(() => {
    document.querySelector(".grid").scrollTop = 5000;
  });
  const frames = () =>
    p.evaluate(
      () =>
        new Promise((done) =>
          requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))),
        ),
    );
  await frames();
  for (let step = 0; step < 12; step += 1) {
    const before = await p.evaluate(() => {
      const box = document.querySelector(".grid").getBoundingClientRect();
      const line = [...document.querySelectorAll(".line")]
        .map((element) => [element.dataset.index, element.getBoundingClientRect().top])
        .filter(([, top]) => top > box.top + 30)
        .sort((a, b) => a[1] - b[1])[0];
      document.querySelector(".grid").scrollTop -= 150;
      return line;
    });
    await frames();
    const after = await p.evaluate(
      (index) => document.querySelector(`.line[data-index="${index}"]`)?.getBoundingClientRect().top,
      before[0],
    );
    assert.ok(Math.abs(after - before[1] - 150) < 3, `step ${step}: moved by ${after - before[1]}`);
  }
  await p.done();
});

test("a value in the list is filtered by a click beside it", async () => {
  const p = await page(server, "?from=1h&q=app%3Ashop");
  const all = await count(p);
  const cell = p.locator(".line .col-host").first();
  const host = await cell.textContent();
  await cell.hover();
  await cell.getByRole("button", { name: /^No records/ }).click();
  await p.waitForFunction(
    (text) => document.querySelector("#query").value === `app:shop hostname!=${text}`,
    host,
  );
  assert.ok((await count(p)) < all);
  assert.equal(await p.$(".detail"), null, "the row was not opened");
  await p.done();
});

test("LogQL and SQL are completed, too", async () => {
  const p = await page(server, "?from=1h&logql=");
  await p.click("#query");
  await p.keyboard.type("{ho");
  await p.locator("#suggestions li", { hasText: "hostname" }).waitFor();
  await p.keyboard.press("ArrowDown");
  await p.keyboard.press("Enter");
  await p.locator("#suggestions li", { hasText: "web-1" }).waitFor();
  await p.keyboard.type("web-1");
  await p.keyboard.press("ArrowDown");
  await p.keyboard.press("Enter");
  assert.equal(await p.inputValue("#query"), '{hostname="web-1"');
  await p.selectOption(".language", "sql");
  await p.fill("#query", "");
  await p.click("#query");
  await p.keyboard.type("SELECT stat");
  await p.locator("#suggestions li", { hasText: "status" }).first().waitFor();
  await p.done();
});

test(
  "long lines are cut on the server, and whole when a record is opened",
  { skip: !ownServers },
  async () => {
    const own = await pond();
    const lines = Array.from({ length: 40 }, (_, i) =>
      JSON.stringify({
        message: `long ${i} ${"é".repeat(100_000)} end`,
        app: "long",
        other: "y".repeat(5000),
      }),
    );
    await push(own, lines.join("\n"));
    const p = await page(own, "", { wait: false });
    await p.goto(`${own.url}?from=1h&q=app%3Dlong`);
    assert.equal(await count(p), 40);
    // The browser may have dropped a body by the time that a test asks for it, but it knows the size.
    const size = await p.waitForFunction(() =>
      performance
        .getEntriesByType("resource")
        .filter(({ name }) => name.includes("api/v1/query?") && name.includes("clip="))
        .reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0),
    );
    const bytes = await size.jsonValue();
    assert.ok(bytes > 40 * 2048 && bytes < 40 * 6000, `${bytes} bytes for 40 rows`);
    assert.match(await p.textContent(".grid .line .more"), /kB/);
    await p.locator(".line .cells").first().click();
    await p.getByRole("button", { name: "Raw" }).click();
    await p.waitForFunction(() => / end"/.test(document.querySelector("pre.raw")?.textContent ?? ""));
    assert.deepEqual(p.problems, []);
    await p.done();
    await own.close();
  },
);
