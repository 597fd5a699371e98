// The first minutes: an empty server, signing in, a server that is down, a prefix, no other hosts (A1, A3).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, test } from "node:test";
import {
  closeBrowser,
  count,
  ownServers,
  page,
  pond,
  push,
  until,
  behindNginx,
  nginxProgram,
} from "./harness.mjs";

after(closeBrowser);

test("the page is whole: its files are there, small, kept, and of this host (A1)", async () => {
  const server = await pond();
  const answers = [];
  const p = await page(server, "", { wait: false });
  p.on("response", (answer) => answers.push([answer.url(), answer.status()]));
  await p.reload();
  await p.waitForSelector("#query");
  assert.ok(answers.length > 2);
  for (const [url, status] of answers) assert.ok(status < 400, `${url}: ${status}`);
  const policy = (await fetch(server.url, { headers: { accept: "text/html" } })).headers.get(
    "content-security-policy",
  );
  assert.match(policy, /default-src '(?:none|self)'/);
  assert.doesNotMatch(policy, /unsafe/);
  assert.deepEqual(p.foreign, []);
  assert.deepEqual(p.problems, []);
  await p.done();
  await server.close();
});

test(
  "an empty server shows commands with its address, and the page turns when the first record arrives (A3)",
  { skip: !ownServers },
  async () => {
    const server = await pond();
    const p = await page(server);
    await p.waitForSelector(".empty");
    const tabs = await p.$$eval('.senders [role="tab"]', (all) => all.map((tab) => tab.textContent));
    for (const name of [
      "File",
      "Syslog",
      "journald",
      "Docker",
      "Kubernetes",
      "OTLP",
      "Vector",
      "Fluent Bit",
      "Alloy",
    ])
      assert.ok(tabs.includes(name), name);
    const host = new URL(server.url).host;
    const { listeners } = await (await fetch(`${server.url}api/v1/listeners`)).json();
    const syslog = listeners.find(({ name }) => name === "syslog-tcp");
    const shown = syslog ? `port="${syslog.address.split(":").at(-1)}"` : "The listener is off";
    await p.getByRole("tab", { name: "Syslog" }).click();
    await p.locator('.senders [role="tabpanel"]', { hasText: shown }).waitFor();
    for (const tab of await p.$$('.senders [role="tab"]')) {
      await tab.click();
      const text = await p.textContent('.senders [role="tabpanel"]');
      assert.ok(text.includes(host) || text.includes("127.0.0.1"), text);
    }
    await push(server, "hello 42", { type: "text/plain" });
    await p.waitForSelector(".line");
    assert.equal(await p.$(".empty"), null);
    // It follows.
    await push(server, "bye 43", { type: "text/plain" });
    await p.locator(".line", { hasText: "bye 43" }).waitFor();
    await p.locator(".live-button").click();
    await p.fill("#query", "hello");
    await p.keyboard.press("Enter");
    await p.waitForFunction(() => document.querySelector(".grid mark")?.textContent === "hello");
    assert.equal(await count(p), 1);
    assert.deepEqual(p.problems, []);
    await p.done();
    await server.close();
  },
);

test(
  "a token is asked for, a wrong one is refused in words, a good one shows the records",
  { skip: !ownServers },
  async () => {
    const server = await pond({ args: ["--require-token"] });
    const token = (role) =>
      execFileSync(
        process.env.LOGPOND,
        ["token", "create", "--role", role, "--name", role, "--data", server.data],
        { encoding: "utf8" },
      )
        .trim()
        .split(/\s/)
        .find((word) => word.startsWith("lp_"));
    const [write, read] = [token("write"), token("read")];
    await until(
      () => push(server, '{"message":"secret thing"}', { token: write }).catch(() => null),
      "the token is known",
    );
    const p = await page(server, "", { wait: false });
    await p.waitForSelector(".sign-in");
    await p.fill(".sign-in input", "lp_wrong");
    await p.keyboard.press("Enter");
    await p.waitForFunction(() =>
      /unknown, expired or revoked|malformed|unknown/i.test(document.querySelector(".sign-in")?.textContent),
    );
    await p.fill(".sign-in input", read);
    await p.click(".sign-in .primary");
    await p.waitForSelector(".line");
    assert.match(await p.textContent(".grid"), /secret thing/);
    // A reader may not save for everyone: the query is kept in this browser, and the page goes on.
    await p.goto(`${server.url}?logql=${encodeURIComponent('{service_name=~".+"}')}`);
    await p.waitForSelector(".line");
    await p.getByRole("button", { name: "Saved" }).click();
    await p.fill('.panel [placeholder="Name"]', "mine");
    await p.keyboard.press("Enter");
    await p.getByText("in this browser: the token may not save").waitFor();
    await p.locator(".panel b", { hasText: "mine" }).waitFor();
    assert.ok(await p.$(".line"), "the rows are still there");
    assert.equal(await p.$(".sign-in"), null);
    assert.ok(!p.url().includes("lp_"));
    await p.done();
    await server.close();
  },
);

test(
  "a server that is down is said, and the page goes on when it is back",
  { skip: !ownServers || process.env.EMBEDDED },
  async () => {
    const server = await pond();
    await push(server, '{"message":"one"}');
    const p = await page(server);
    assert.equal(await count(p), 1);
    await server.stop();
    await p.fill("#query", "one");
    await p.keyboard.press("Enter");
    await p.waitForSelector(".away");
    assert.ok(await p.$(".line"), "the rows stay");
    await server.restart();
    await p.locator(".away button").click();
    await p.waitForFunction(() => !document.querySelector(".away") && document.querySelector(".grid mark"));
    await p.done();
    await server.close();
  },
);

test(
  "it works below a prefix, behind a proxy (A14)",
  { skip: !ownServers || process.env.EMBEDDED },
  async () => {
    const server = await pond({ prefix: "/logs/" });
    await push(server, '{"message":"below a prefix","app":"x"}');
    const p = await page(server, "?from=1h");
    assert.equal(await count(p), 1);
    for (const view of ["patterns", "access", "alerts", "proxy", "cluster"]) {
      await p.locator(`nav a[href*="view=${view}"]`).click();
      await p.waitForFunction(
        (name) => location.search.includes(name) && document.querySelector("#main"),
        view,
      );
      assert.ok(new URL(p.url()).pathname === "/logs/");
    }
    assert.deepEqual(p.foreign, []);
    assert.deepEqual(p.problems, []);
    await p.done();
    await server.close();
  },
);

test(
  "it works below a prefix, behind nginx",
  { skip: !ownServers || (nginxProgram() ? false : "no nginx: set NGINX") },
  async () => {
    const server = await pond();
    await push(server, '{"message":"behind nginx","app":"x"}');
    const proxy = await behindNginx(server, "/tools/logs/");
    const p = await page(proxy, "?from=1h&q=nginx");
    assert.equal(await count(p), 1);
    await p.locator(".line .cells").first().click();
    await p.waitForSelector(".detail .fields");
    // A link opens the same view, and a file comes through, too.
    await p.getByRole("button", { name: "Download" }).click();
    const [file] = await Promise.all([
      p.waitForEvent("download"),
      p.getByRole("link", { name: /Report/ }).click(),
    ]);
    assert.match(
      await (await import("node:fs/promises")).readFile(await file.path(), "utf8"),
      /behind nginx/,
    );
    await p.getByRole("button", { name: /^.? ?Live/ }).click();
    await p.waitForSelector(".live-state");
    await push(server, '{"message":"nginx live","app":"x"}');
    await p.waitForFunction(() => /nginx live/.test(document.querySelector(".grid")?.textContent ?? ""));
    for (const view of ["patterns", "access", "alerts", "proxy", "cluster"]) {
      await p.locator(`nav a[href*="view=${view}"]`).click();
      await p.waitForFunction(
        (name) => location.search.includes(name) && document.querySelector("#main"),
        view,
      );
      assert.equal(new URL(p.url()).pathname, "/tools/logs/");
    }
    assert.deepEqual(p.foreign, []);
    assert.deepEqual(p.problems, []);
    await p.done();
    await proxy.close();
    await server.close();
  },
);
