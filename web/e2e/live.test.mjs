// The tail: nothing moves while one reads, and nothing is missing afterwards (A12).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeBrowser, ownServers, page, pond, push, texts, until } from "./harness.mjs";

const SECONDS = Number(process.env.TAIL_SECONDS ?? 12);
const RATE = 500;
let server;
before(async () => {
  server = await pond();
  await push(server, '{"message":"before","seq":-1,"app":"tail"}');
});
after(async () => {
  await closeBrowser();
  await server?.close();
});

/** Sends numbered records at a rate. */
function sender(from, total, { late = false } = {}) {
  let sent = from;
  const end = from + total;
  const done = (async () => {
    while (sent < end) {
      const began = performance.now();
      const count = Math.min(RATE / 10, end - sent);
      const lines = Array.from({ length: count }, (_, i) =>
        JSON.stringify({
          message: `line ${sent + i}`,
          seq: sent + i,
          app: "tail",
          ...(late && i % 7 === 0 ? { time: new Date(Date.now() - 5000).toISOString() } : {}),
        }),
      );
      await push(server, lines.join("\n"));
      sent += count;
      await new Promise((next) => setTimeout(next, Math.max(0, 100 - (performance.now() - began))));
    }
  })();
  return { done, sent: () => sent };
}

test("pause by reading, exact count, resume without a gap", async () => {
  const p = await page(server, "?live=1&q=app%3Dtail&cols=time%2Cseq%2Cmessage");
  await p.waitForFunction(() => document.querySelector(".live-state.on"));
  await p.waitForFunction(() =>
    [...document.querySelectorAll(".col-seq")].some((cell) => cell.textContent === "-1"),
  );
  const total = SECONDS * RATE;
  const sending = sender(0, total, { late: true });
  await p.waitForFunction(() =>
    [...document.querySelectorAll(".line .col-seq")].some((cell) => Number(cell.textContent) > 300),
  );
  // Scrolling down pauses.
  await p.evaluate(() => {
    document.querySelector(".grid").scrollTop = 400;
  });
  await p.waitForSelector(".live-state.paused");
  const before = await texts(p, "seq");
  const top = await p.evaluate(() => document.querySelector(".grid").scrollTop);
  await p.locator(".line .cells").nth(12).click();
  await p.waitForSelector(".detail");
  const heap = await p.evaluate(() => {
    globalThis.gc?.();
    return performance.memory.usedJSHeapSize;
  });
  await sending.done;
  assert.equal(
    await p.evaluate(() => document.querySelector(".grid").scrollTop),
    top,
    "the list did not move",
  );
  const still = await texts(p, "seq");
  assert.ok(
    before.slice(0, 10).every((seq) => still.includes(seq)),
    "the same rows are shown",
  );
  // Everything that was sent since is waiting.
  await p.waitForFunction(
    (sent) =>
      document.querySelector(".live-bar")?.textContent.includes(`${sent.toLocaleString("en-US")} received`),
    total,
  );
  const waiting = Number((await p.textContent(".pill")).replace(/\D/g, ""));
  assert.ok(waiting > 0 && waiting < total);
  await p.click(".pill");
  await p.waitForFunction(
    (last) =>
      [...document.querySelectorAll(".line .col-seq")].some((cell) => Number(cell.textContent) === last),
    total - 1,
  );
  // No gap, no duplicate: all numbers, each once.
  const seen = new Map();
  await p.evaluate(() => {
    document.querySelector(".grid").scrollTop = 0;
  });
  const rows = Math.min(total, Number(await p.getAttribute(".grid", "aria-rowcount")) - 1);
  for (let at = 0; seen.size < rows - 100 && at < rows * 30; at += 500) {
    await p.evaluate((top) => {
      document.querySelector(".grid").scrollTop = top;
    }, at);
    await p.waitForFunction(() => document.querySelectorAll(".line").length > 0);
    await p.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    for (const [index, seq] of await p.$$eval(".line", (lines) =>
      lines.map((line) => [Number(line.dataset.index), Number(line.querySelector(".col-seq")?.textContent)]),
    ))
      seen.set(index, seq);
  }
  const numbers = [...seen.values()].filter((seq) => seq >= 0);
  assert.equal(new Set(numbers).size, numbers.length, "no duplicate");
  const sorted = [...numbers].sort((a, b) => a - b);
  for (let i = 1; i < sorted.length; i += 1)
    assert.equal(sorted[i], sorted[i - 1] + 1, `no gap after ${sorted[i - 1]}`);
  assert.equal(sorted.at(-1), total - 1);
  assert.ok(sorted.length > Math.min(total, 5000) * 0.9, `${sorted.length} rows were compared`);
  const later = await p.evaluate(() => {
    globalThis.gc?.();
    return performance.memory.usedJSHeapSize;
  });
  console.log(
    `# tail of ${total} records: heap ${(heap / 1e6).toFixed(0)} then ${(later / 1e6).toFixed(0)} MB, ${waiting} waited`,
  );
  assert.deepEqual(p.problems, []);
  await p.done();
});

test("a restart of the server leaves no gap", { skip: !ownServers }, async () => {
  const p = await page(server, "?live=1&q=app%3Dagain&cols=time%2Cseq");
  await p.waitForFunction(() => document.querySelector(".live-state.on"));
  const one = (seq) => push(server, JSON.stringify({ message: "x", seq, app: "again" }));
  await until(async () => {
    await one(0);
    return (await texts(p, "seq")).includes("0");
  }, "the tail shows records");
  await one(1);
  await p.waitForFunction(() =>
    [...document.querySelectorAll(".col-seq")].some((cell) => cell.textContent === "1"),
  );
  await server.stop();
  await p.waitForSelector(".live-state.waiting");
  await server.restart();
  for (const seq of [2, 3, 4]) await one(seq);
  await p.waitForFunction(() =>
    [...document.querySelectorAll(".col-seq")].some((cell) => cell.textContent === "4"),
  );
  const shown = (await texts(p, "seq")).map(Number).filter((seq) => seq > 0);
  assert.deepEqual(shown, [4, 3, 2, 1]);
  await p.done();
});
