// An ordinary visit: each screen, the way back, the commands, and what is told if something is missing.
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { promisify } from "node:util";
import {
  closeBrowser,
  count,
  ownServers,
  page,
  pond,
  push,
  pushAccess,
  services,
  texts,
  until,
} from "./harness.mjs";

let server;
let hasSql;
before(async () => {
  server = await pond();
  await push(server, services(400));
  await pushAccess(server, 300);
  const at = (hours) => new Date(Date.now() - hours * 3_600_000).toISOString();
  await push(server, JSON.stringify({ time: at(72), app: "old", message: "three days ago" }));
  await push(
    server,
    JSON.stringify({ time: at(0), close_reason: "client", bytes_to_client: 7, app: "proxy" }),
  );
  const answer = await fetch(`${server.api}api/v1/sql`, { method: "POST", body: "SELECT 1" });
  hasSql = answer.status !== 501;
});
after(async () => {
  await closeBrowser();
  await server.close();
});

const goTo = async (p, view) => {
  await p.locator(`nav a[href*="view=${view}"]`).click();
  await p.waitForSelector(`.screen.${view}`);
};
/** Runs a command of a shell. The page is served by this process, which must not block. */
const shell = async (command, env = {}) =>
  (await promisify(execFile)("sh", ["-c", command], { env: { ...process.env, ...env }, timeout: 10_000 }))
    .stdout;
const copied = (p) => p.evaluate(() => navigator.clipboard.readText());
const copyAs = async (p, name) => {
  await p.getByRole("button", { name: "Share" }).click();
  await p.getByRole("button", { name }).click();
  return copied(p);
};

test("a server without SQL is asked for it once, and its page has no number that ignores the filters", async (t) => {
  if (hasSql) return t.skip("the server has SQL");
  const p = await page(server, "?view=access&from=24h&bots=1");
  for (let turn = 0; turn < 2; turn += 1) {
    await p.locator(".figures", { hasText: "needs SQL" }).waitFor();
    await p.locator(".chart").first().waitFor();
    assert.equal(await p.locator(".chart .legend b").first().textContent(), "");
    await goTo(p, "proxy");
    await p.locator(".notice", { hasText: "SQL" }).waitFor();
    await until(async () => !(await p.textContent(".figures")).includes("…"), "no number is waited for");
    await goTo(p, "access");
  }
  assert.deepEqual(p.problems.length, 1, p.problems.join("\n"));
  await p.done();
});

test("a screen that could not be loaded is loaded by Try again, and by Run", async () => {
  for (const way of [".screen-failed button", "form .primary"]) {
    const p = await page(server, "?from=24h");
    await count(p);
    await p.route("**/web/access-*.js", (route) => route.abort());
    await p.locator('nav a[href*="view=access"]').click();
    await p.waitForSelector(".screen-failed");
    await p.unroute("**/web/access-*.js");
    await until(async () => {
      if (await p.$(".screen.access")) return true;
      await p
        .locator(way)
        .click({ timeout: 1000 })
        .catch(() => null);
      return false;
    }, "the screen is there");
    assert.match(p.url(), /view=access/);
    await p.done();
  }
});

test(
  "a server that is down is told once, and what is shown is said to be old",
  { skip: !ownServers || process.env.EMBEDDED },
  async () => {
    const p = await page(server, "?from=24h");
    await count(p);
    server.front.state.refuse = true;
    await p.fill("#query", "order");
    await p.keyboard.press("Escape");
    await p.locator("#query").focus();
    await p.keyboard.press("Enter");
    await p.waitForSelector(".away");
    await p.waitForTimeout(500);
    const text = await p.textContent("body");
    assert.equal(text.match(/does not answer/g).length, 1);
    assert.equal(await p.locator(".notices p").count(), 1);
    server.front.state.refuse = false;
    await p.locator(".away button").click();
    await p.waitForFunction(
      () => !document.querySelector(".away, .notices") && document.querySelector(".grid mark"),
    );
    await p.done();
  },
);

test("a narrow list shows dates if the range has more than a day", async () => {
  for (const [from, form] of [
    ["7d", /^\d\d-\d\d \d\d:\d\d:\d\d$/],
    ["6h", /^\d\d:\d\d:\d\d\.\d{3}$/],
  ]) {
    const p = await page(server, `?from=${from}`, { width: 360, height: 640 });
    await count(p);
    assert.match((await texts(p, "time"))[0], form);
    const cut = await p.$eval(".grid .line .col-time", (cell) => cell.scrollWidth > cell.clientWidth);
    assert.equal(cut, false, "it has room");
    await p.done();
  }
});

test("the records around one have an address, and Back closes them", async () => {
  const p = await page(server, "?from=24h");
  await count(p);
  await p.fill("#query", "level=error");
  await p.keyboard.press("Escape");
  await p.locator("#query").focus();
  await p.keyboard.press("Enter");
  await p.waitForURL(/level/);
  await count(p);
  const before = p.url();
  await p.locator(".line .cells").first().click();
  await p.getByRole("button", { name: "Context" }).click();
  await p.waitForSelector(".context-row.origin");
  const origin = await p.getAttribute(".context-row.origin", "data-id");
  const address = p.url();
  assert.match(address, /around=/);
  await p.goBack();
  await p.waitForFunction(() => !document.querySelector("dialog.context"));
  assert.equal(p.url(), before);
  assert.equal(await p.inputValue("#query"), "level=error");
  // The address is enough.
  await p.goto(address);
  await p.waitForSelector(".context-row.origin");
  assert.equal(await p.getAttribute(".context-row.origin", "data-id"), origin);
  await p.keyboard.press("Escape");
  await p.waitForFunction(() => !document.querySelector("dialog.context"));
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("the times of rows are times of the range, and days stay relative", async () => {
  const p = await page(server, "?from=24h");
  await count(p);
  const choose = async (from, to) => {
    await p.locator(".time .range > button").click();
    await p.fill(".absolute input >> nth=0", from);
    await p.fill(".absolute input >> nth=1", to);
    await p.locator(".absolute .primary").click();
  };
  const times = await texts(p, "time");
  await choose(times[9], times[4]);
  await p.waitForURL(/to=/);
  assert.equal(await p.locator(".absolute .bad").count(), 0);
  assert.deepEqual(await (await count(p), texts(p, "time")), times.slice(5, 10));
  await choose("yesterday", "");
  await p.waitForURL(/from=yesterday/);
  assert.ok(!p.url().includes("to="));
  await choose("7d", "1h");
  await p.waitForURL(/from=7d/);
  await p.locator(".time .range > button").click();
  assert.equal(await p.inputValue(".absolute input >> nth=1"), "1h");
  await p.done();
});

test("the saved query that is built in opens without an error", async () => {
  const p = await page(server, "?from=24h");
  await count(p);
  const names = ["top-articles", "outbound-bytes", "virtual-hosts"];
  for (const name of names) {
    await p.getByRole("button", { name: "Saved" }).click();
    await p.locator(".panel .item b").first().waitFor();
    const item = p.locator(".panel .item", { has: p.locator("b", { hasText: new RegExp(`^${name}$`) }) });
    if (!(await item.count())) {
      await p.keyboard.press("Escape");
      continue;
    }
    await item.click();
    await p.waitForFunction(() =>
      /series|result/.test(document.querySelector(".plain-results")?.textContent ?? ""),
    );
    assert.equal(await p.locator("#query-problem strong").count(), 0, name);
  }
  assert.deepEqual(p.problems, []);
  await p.done();
});

test(
  "commands of LogQL have no limit, and those of a server with tokens name one",
  { skip: !ownServers },
  async () => {
    const p = await page(server, `?from=24h&logql=${encodeURIComponent('{app="shop"}')}`);
    await p.waitForSelector(".line");
    assert.match(await copyAs(p, "Copy as curl"), /limit=0/);
    assert.match(await copyAs(p, "Copy as command"), /--limit 0/);
    assert.doesNotMatch(await copied(p), /token/);
    const lines = await shell(await copyAs(p, "Copy as curl"));
    assert.equal(JSON.parse(lines).length, 300);
    await p.done();

    const locked = await pond({ args: ["--require-token"] });
    const told = execFileSync(
      process.env.LOGPOND,
      ["token", "create", "--role", "admin", "--name", "me", "--data", locked.data],
      { encoding: "utf8" },
    );
    const token = told.split(/\s/).find((word) => word.startsWith("lp_"));
    await until(() => push(locked, '{"message":"one"}', { token }).catch(() => null), "the token is known");
    const q = await page(locked, "", { wait: false });
    await q.waitForSelector(".sign-in");
    assert.equal(await q.locator("#query-problem strong").count(), 0, "the query is not wrong");
    await q.fill(".sign-in input", token);
    await q.click(".sign-in .primary");
    await q.waitForSelector(".line");
    assert.match(await copyAs(q, "Copy as command"), / --token-file FILE$/);
    const curl = await copyAs(q, "Copy as curl");
    assert.match(curl, /-H "Authorization: Bearer \$LOGPOND_TOKEN"$/);
    const answer = await shell(curl, { LOGPOND_TOKEN: token });
    assert.match(answer, /"one"/);
    await q.done();
    await locked.close();
  },
);

test("a rule is made of words, their opposites and expressions, and its limit is drawn", async () => {
  for (const query of [
    "order OR cache",
    "NOT order",
    "/order|cache/i",
    "(app=shop OR status>=500) level=error",
    "NOT status>=500",
    "NOT (order OR cache)",
    "timeout OR /cache m.ss/",
    'user:"user-1"',
  ]) {
    const p = await page(server, `?view=alerts&from=24h&q=${encodeURIComponent(query)}`);
    await p.waitForSelector(".maker");
    assert.equal(await p.locator(".maker .warn").count(), 0, query);
    await p.fill(".maker label:has-text('above') input", "3");
    await p.locator(".maker form .primary").click();
    await p.waitForSelector(".maker .chart");
    assert.equal(await p.locator(".maker .problem").count(), 0, query);
    assert.match(await p.textContent(".maker .legend"), /limit 3/);
    // The counts of both languages are the same.
    const sum = async (path, params) => {
      const answer = await fetch(`${server.api}${path}?${new URLSearchParams(params)}`);
      return answer.text();
    };
    const logql = (await p.inputValue(".maker .grow input")).replace("[5m]", "[86400s]");
    const theirs =
      JSON.parse(await sum("loki/api/v1/query", { query: logql })).data.result[0]?.value[1] ?? "0";
    const ours = JSON.parse(await sum("api/v1/query", { q: query, from: "24h", count: true }))._trailer.rows;
    assert.equal(Number(theirs), ours, query);
    await p.done();
  }
});

test("a second value of a field can be chosen, and a level that is none has a hint", async () => {
  const p = await page(server, "?from=24h");
  const all = await count(p);
  const value = (text) => p.locator(".facet .value", { hasText: text }).first();
  await value("error").click();
  await until(() => /level%3Derror/.test(p.url()), "the first value");
  const errors = await count(p);
  await value("warn").click();
  await until(() => /OR\+level%3Dwarn/.test(p.url()), "the second value");
  const both = await count(p);
  assert.ok(errors < both && both < all, `${errors} < ${both} < ${all}`);
  await value("error").click();
  await until(() => /q=level%3Dwarn/.test(p.url()), "the first value is taken back");
  await p.fill("#query", "level>=wran");
  await p.keyboard.press("Escape");
  await p.locator("#query").focus();
  await p.keyboard.press("Enter");
  await p.locator("#query-problem button", { hasText: "level>=warn" }).click();
  assert.ok((await count(p)) > 0);
  assert.equal(await p.inputValue("#query"), "level>=warn");
  await p.done();
});

test("an open line of LogQL has the fields of its record, and filters of its labels", async () => {
  const p = await page(server, `?from=24h&logql=${encodeURIComponent('{app="shop"} |= "order"')}`);
  await p.locator(".line .cells").first().click();
  await p.locator(".detail dt", { hasText: "user" }).waitFor();
  const field = (name) =>
    p.locator(".detail dt", { has: p.locator(".name", { hasText: new RegExp(`^${name}$`) }) });
  assert.equal(await field("app").locator(".filters").count(), 1);
  await p.getByRole("button", { name: "Context" }).waitFor();
  await p.done();
});

test("Tab takes the first suggestion of a word that was begun, and otherwise leaves the bar", async () => {
  const p = await page(server, "?from=24h");
  await count(p);
  await p.locator("#query").focus();
  await p.keyboard.type("hostn");
  await p.waitForSelector("#suggestions li");
  await p.keyboard.press("Tab");
  await until(async () => (await p.inputValue("#query")) === "hostname=", "the field is completed");
  await p.fill("#query", "");
  await p.waitForSelector("#suggestions li");
  await p.keyboard.press("Tab");
  assert.equal(await p.inputValue("#query"), "");
  assert.notEqual(await p.evaluate(() => document.activeElement.id), "query");
  await p.done();
});
