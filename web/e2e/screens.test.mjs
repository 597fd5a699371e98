// Access logs, alerts, the proxy and the cluster: numbers are those of the server, and lead to their lines.
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
  pushAccess,
  services,
  until,
} from "./harness.mjs";

let server;
before(async () => {
  server = await pond();
  await pushAccess(server, 8000);
  await push(server, services());
  const now = Date.now();
  await push(
    server,
    Array.from({ length: 60 }, (_, i) =>
      JSON.stringify({
        time: new Date(now - i * 10_000).toISOString(),
        client: `192.0.2.${i % 5}`,
        sni: "blog.example",
        version: "TLSv1.3",
        close_reason: i % 6 ? "client" : "handshake_failed",
        bytes_from_client: 100,
        bytes_to_client: 1000,
        handshake_s: 0.002,
        duration_s: 1,
      }),
    ).join("\n"),
  );
  await push(server, proxyStates(now).join("\n"));
});

/** What a proxy tells of itself, as docs/proxy.md has it. */
function proxyStates(now) {
  const state = (minutes, record) =>
    JSON.stringify({ time: new Date(now - minutes * 60_000).toISOString(), frontend: "0", ...record });
  const certificate = (name, days, minutes) =>
    state(minutes, {
      proxy_state: "certificate",
      name,
      names: [name, `*.${name}`],
      expires: new Date(now + days * 86_400_000).toISOString(),
      message: `the certificate of ${name}`,
    });
  const upstream = (name, up, minutes) =>
    state(minutes, {
      proxy_state: "upstream",
      upstream: name,
      state: up ? "up" : "down",
      connections_open: 3,
      connected_total: 1204,
      failed_total: 7,
      connect_s: 0.0021,
    });
  return [
    certificate("blog.example", 1, 9),
    certificate("blog.example", 61.5, 1),
    certificate("git.example", 6.5, 1),
    upstream("10.0.0.1:80", true, 9),
    upstream("10.0.0.1:80", false, 1),
    upstream("unix:/run/app.sock", true, 1),
  ];
}

after(async () => {
  await closeBrowser();
  await server?.close();
});

const numberOf = (text) => Number(text.replace(/\D/g, ""));

test("access logs: panels are exact, filtered by a click, and lead to the raw lines", async () => {
  const p = await page(server, "?view=access&from=%400");
  const card = (title) => p.locator(".card", { has: p.locator("h2", { hasText: title }) });
  await p.getByLabel("Hide bots").uncheck();
  const truth = (
    await ask(server, "api/v1/top", { from: "@0", field: "status", n: 10, q: "status:* remote_addr:*" })
  ).rows;
  const total = (
    await ask(server, "api/v1/query", { from: "@0", q: "status:* remote_addr:*", count: "true" })
  ).trailer.rows;
  await p.waitForFunction(
    (n) =>
      [...document.querySelectorAll(".figures dd")].some(
        (dd) => Number(dd.textContent.replace(/\D/g, "")) === n,
      ),
    total,
  );
  await card("Status codes").locator("li").first().waitFor();
  const shown = await card("Status codes").locator("li .text").allTextContents();
  assert.deepEqual(
    shown,
    truth.map(({ value }) => String(value)),
  );
  await card("Not found").locator("li").first().waitFor();
  await card("Hour of day").locator("li").first().waitFor();
  const hours = await card("Hour of day")
    .locator("li")
    .evaluateAll((list) => list.map((li) => Number(li.title.split(": ")[1].replace(/\D/g, ""))));
  assert.equal(hours.length, 24);
  assert.equal(
    hours.reduce((sum, count) => sum + count, 0),
    total,
  );
  await card("Status codes").locator("li", { hasText: "404" }).locator("button").first().click();
  await p.waitForFunction(() => document.querySelector("#query").value === "status=404");
  await until(
    async () => (await card("Status codes").locator("li").count()) === 1,
    "all panels are filtered",
  );
  await card("Status codes").locator(".go").click();
  const wanted = truth.find(({ value }) => value === 404).count;
  assert.equal(await count(p), wanted);
  await p.goBack();
  await p.waitForSelector(".access");
  await p.locator(".chip").click();
  await p.waitForFunction(() => document.querySelector("#query").value === "");
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("bytes over time are those of the lines", async (t) => {
  const { status } = await fetch(`${server.api}api/v1/sql`, { method: "POST", body: "SELECT 1" });
  if (status === 501) return t.skip("the server has no SQL, so bytes are not filtered");
  const p = await page(server, "?view=access&from=%400");
  await p.getByLabel("Hide bots").uncheck();
  await p.waitForSelector(".access canvas");
  const rows = (await ask(server, "api/v1/query", { from: "@0", q: "status:* remote_addr:*" })).rows;
  const sum = rows.reduce((all, { bytes }) => all + (typeof bytes === "number" ? bytes : 0), 0);
  const text =
    sum >= 1e9 ? `${(sum / 1e9).toFixed(1).replace(/\.0$/, "")} GB` : `${Math.round(sum / 1e6)} MB`;
  await p.waitForFunction((wanted) => document.querySelector(".figures").textContent.includes(wanted), text, {
    timeout: 15_000,
  });
  await p.done();
});

test("a rule is made of a query, and tested against the past", async () => {
  const p = await page(server, "?view=alerts&from=30m&q=level%3Derror");
  await p.waitForFunction(() => document.querySelector(".maker input")?.value.includes("detected_level"));
  assert.match(await p.textContent(".maker pre"), /alert: Errors[\s\S]*for: 2m/);
  await p.locator(".maker .primary").click();
  await p.waitForSelector(".maker canvas");
  assert.match(await p.textContent(".maker [role=status]"), /would/);
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("the proxy's numbers lead to its connections", async () => {
  const p = await page(server, "?view=proxy&from=1h");
  await p.waitForFunction(() => /60/.test(document.querySelector(".figures dd")?.textContent ?? ""));
  const row = p.locator(".card li", { hasText: "handshake_failed" });
  assert.equal(numberOf(await row.locator(".count").textContent()), 10);
  await row.locator(".go").click();
  assert.equal(await count(p), 10);
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("the proxy's certificates and upstreams are as it told them last", async () => {
  const p = await page(server, "?view=proxy&from=1h");
  const table = (name) => p.getByRole("region", { name });
  const rows = async (name) => {
    await table(name).locator("tbody tr").first().waitFor();
    const cells = table(name).locator("tbody tr");
    return cells.evaluateAll((list) =>
      list.map((row) => [...row.cells].map((cell) => cell.innerText.trim())),
    );
  };
  const [blog, git, ...others] = await rows("Certificates");
  assert.deepEqual([blog[0], git[0], others], ["blog.example", "git.example", []]);
  assert.match(blog[2], /^in 6[12] d$/);
  assert.match(git[2], /^in 6\.[45] d$/);
  const marked = table("Certificates").locator("td.warn");
  assert.equal(await marked.count(), 1, "a certificate that ends soon is marked");
  assert.deepEqual(await rows("Upstreams"), [
    ["10.0.0.1:80", "down", "3", "1,204", "7", "2.1 ms"],
    ["unix:/run/app.sock", "up", "3", "1,204", "7", "2.1 ms"],
  ]);
  await table("Upstreams").getByRole("button").first().click();
  assert.equal(await count(p), 2);
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("one server is shown as a cluster of one", async () => {
  const p = await page(server, "?view=cluster", { wait: false });
  await p.waitForSelector(".cluster tbody tr");
  assert.equal(await p.locator(".card", { hasText: "Version" }).locator("tbody tr").count(), 1);
  await p.waitForFunction(() => /web-1/.test(document.querySelector(".cluster").textContent));
  await p.getByRole("button", { name: "web-1" }).click();
  await p.waitForFunction(() => document.querySelector("#query")?.value === 'hostname="web-1"');
  assert.ok((await count(p)) > 0);
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("rules show their state, and when they would have fired", { skip: !ownServers }, async () => {
  const { mkdtempSync, writeFileSync } = await import("node:fs");
  const file = `${mkdtempSync("/tmp/logpond-rules-")}/rules.yml`;
  writeFileSync(
    file,
    `groups:\n  - name: shop\n    interval: 1s\n    rules:\n      - alert: Errors\n        expr: sum(count_over_time({app="shop"} | detected_level="error" [5m])) > 2\n        annotations:\n          summary: "{{ $value }} errors"\n`,
  );
  const own = await pond({ args: ["--alert-rules", file] });
  await push(own, services());
  const p = await page(own, "?view=alerts&from=1h");
  await p.waitForSelector(".rule-firing", { timeout: 25_000 });
  assert.match(await p.textContent(".rule-firing"), /Errors.*1 active/s);
  await p.getByRole("button", { name: /When did it fire/ }).click();
  await p.waitForSelector(".rule canvas");
  assert.match(await p.textContent(".firings"), /\d/);
  assert.deepEqual(p.problems, []);
  await p.done();
  await own.close();
});

test("two nodes are shown, and one that is gone is said", { skip: !ownServers }, async () => {
  const gossip = ["--gossip", "127.0.0.1:0", "--replication", "2"];
  const first = await pond({ args: gossip });
  const second = await pond({ args: [...gossip, "--join", first.gossip] });
  // Nothing is acknowledged before the other node has joined.
  const taken = () =>
    push(first, services()).then(
      () => true,
      () => false,
    );
  await until(taken, "the first node takes records", 60_000);
  const p = await page(first, "?view=cluster", { wait: false });
  const rows = p.locator(".card", { hasText: "Version" }).locator("tbody tr");
  await until(async () => (await rows.count()) === 2, "both nodes are listed", 60_000);
  const text = (await rows.allTextContents()).join(" ");
  assert.ok(text.includes(first.gossip) && text.includes(second.gossip), text);
  await p.waitForFunction(() => /free/.test(document.querySelector(".disk")?.textContent ?? ""));
  assert.match(await p.textContent(".figures"), /Replication2/);
  assert.deepEqual(p.problems, []);
  await second.stop();
  await p.waitForFunction(
    () => document.querySelector(".cluster .state-error")?.textContent.length > 0,
    null,
    { timeout: 60_000 },
  );
  await p.done();
  await second.close();
  await first.close();
});

test("a query that runs is listed and stopped", { skip: !ownServers }, async () => {
  const tail = await fetch(`${server.api}api/v1/query?follow=true&q=app%3Dshop%20NOT%20nobody`);
  const p = await page(server, "?view=cluster", { wait: false });
  const row = p.locator(".running tbody tr", { hasText: "NOT nobody" });
  await row.waitFor();
  assert.match(await row.textContent(), /live/);
  await row.getByRole("button", { name: /Stop/ }).click();
  const lines = (await tail.text()).trim().split("\n");
  const { missing, complete } = JSON.parse(lines.at(-1))._trailer;
  assert.equal(complete, false);
  assert.match(missing.join(), /an operator stopped the query/);
  await row.waitFor({ state: "detached" });
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("disk, and sources that fell silent", { skip: !ownServers }, async () => {
  const own = await pond();
  await push(own, services());
  const old = new Date(Date.now() - 3 * 3_600_000).toISOString();
  await push(own, JSON.stringify({ time: old, message: "the last word", hostname: "gone-1" }));
  const p = await page(own, "?view=cluster", { wait: false });
  await p.waitForFunction(() => /free/.test(document.querySelector(".disk")?.textContent ?? ""));
  const first = p.locator(".sources tbody tr").first();
  await first.waitFor();
  assert.match(await first.textContent(), /gone-1.*silent for 3 h/);
  assert.match(await p.textContent(".sources h2"), /1 silent/);
  assert.ok((await p.locator(".sources .spark").count()) > 0);
  await first.getByRole("button").click();
  assert.equal(await count(p), 1);
  assert.deepEqual(p.problems, []);
  await p.done();
  await own.close();
});
