// A server with data of its own, the application before it, and a browser.
//
//   LOGPOND=PATH    the binary (default: the one that cargo built)
//   EMBEDDED=1      the page comes from the binary itself, not from web/dist
//   BASE_URL=URL    a server that runs already; tests that need one of their own are skipped
//   CHROMIUM=PATH   the browser
//   CORPUS=FILE     lines of a real access log for the large tests; without it lines are made
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { serve } from "./server.mjs";

const ROOT = new URL("../../", import.meta.url).pathname;
const BINARY =
  process.env.LOGPOND ??
  [join(ROOT, "target/release/logpond"), join(ROOT, "target/debug/logpond")].find(existsSync);
const BROWSER =
  process.env.CHROMIUM ??
  ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const OFF = [
  "fast",
  "durable",
  "bulk",
  "relp",
  "syslog-udp",
  "syslog-tcp",
  "gelf-udp",
  "gelf-tcp",
  "fluent",
  "otlp-grpc",
];

/** Servers that were started; those that still run end with this process. */
const children = [];
process.once("exit", () => children.forEach((child) => child.kill()));

/** True if tests may start and stop servers. */
export const ownServers = !process.env.BASE_URL;

/** Starts a server on a free port, with the application before it. */
export async function pond({ args = [], prefix } = {}) {
  if (process.env.BASE_URL)
    return { url: process.env.BASE_URL, api: process.env.BASE_URL, close: async () => {} };
  if (!BINARY) throw new Error("no binary: set LOGPOND");
  const data = mkdtempSync(join(tmpdir(), "logpond-web-"));
  const ready = join(data, "ready.json");
  const start = async (port = 0) => {
    rmSync(ready, { force: true });
    const child = spawn(
      BINARY,
      [
        "serve",
        "--data",
        join(data, "data"),
        "--http",
        `127.0.0.1:${port}`,
        "--keep-free",
        "0%",
        "--ready-file",
        ready,
        ...OFF.flatMap((name) => [`--${name}`, "off"]),
        ...args,
      ],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    // A test that fails before it closes its server keeps nobody waiting.
    child.unref();
    child.stderr.unref();
    children.push(child);
    let log = "";
    child.stderr.on("data", (part) => {
      log = (log + part).slice(-4000);
    });
    const address = await until(() => {
      if (child.exitCode !== null) throw new Error(`the server ended: ${log}`);
      const text = existsSync(ready) ? readFileSync(ready, "utf8") : "";
      return /"http":"([^"]+)"/.exec(text)?.[1] ?? /127\.0\.0\.1:\d+/.exec(text)?.[0];
    }, "the server is ready");
    const gossip = /"gossip":"([^"]+)"/.exec(readFileSync(ready, "utf8"))?.[1];
    return { child, gossip, port: Number(address.split(":").at(-1)) };
  };
  let running = await start();
  const front = process.env.EMBEDDED ? null : await serve(running.port, prefix ? { prefix } : {});
  const stop = () =>
    new Promise((done) => {
      running.child.ref();
      running.child.once("exit", done);
      running.child.kill("SIGTERM");
    });
  return {
    url: front?.url ?? `http://127.0.0.1:${running.port}/`,
    api: `http://127.0.0.1:${running.port}/`,
    data: join(data, "data"),
    front,
    gossip: running.gossip,
    stop,
    restart: async () => {
      running = await start(running.port);
    },
    close: async () => {
      front?.close();
      if (running.child.exitCode === null) await stop();
      rmSync(data, { recursive: true, force: true });
    },
  };
}

/** nginx, or null: from PATH, NGINX, or where the tests of the program have it. */
export function nginxProgram() {
  const places = [process.env.NGINX, join(ROOT, "target/tools/nginx/usr/sbin/nginx"), "/usr/sbin/nginx"];
  return places.find((path) => path && existsSync(path)) ?? null;
}

/** Starts nginx with a page below a path, on a free port. */
export async function behindNginx(server, path) {
  const directory = mkdtempSync(join(tmpdir(), "logpond-nginx-"));
  const free = createServer();
  const port = await new Promise((done) => free.listen(0, "127.0.0.1", () => done(free.address().port)));
  await new Promise((done) => free.close(done));
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${directory}/${name};`,
  );
  writeFileSync(
    join(directory, "nginx.conf"),
    `daemon off; master_process off; pid ${directory}/pid; error_log ${directory}/error.log;
     events {}
     http {
       access_log off; ${temporary.join(" ")}
       server {
         listen 127.0.0.1:${port};
         location ${path} { proxy_pass ${server.url}; proxy_buffering off; proxy_http_version 1.1; }
       }
     }`,
  );
  const child = spawn(nginxProgram(), ["-p", directory, "-c", join(directory, "nginx.conf")], {
    stdio: "ignore",
  });
  const url = `http://127.0.0.1:${port}${path}`;
  await until(() => {
    if (child.exitCode !== null) {
      const log = join(directory, "error.log");
      throw new Error(`nginx ended: ${existsSync(log) ? readFileSync(log, "utf8") : ""}`);
    }
    return fetch(url).then(
      (answer) => answer.ok,
      () => false,
    );
  }, "nginx serves");
  return {
    url,
    api: url,
    close: async () => {
      await new Promise((done) => {
        child.once("exit", done);
        child.kill("SIGTERM");
      });
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Waits until a condition holds, and returns what it gives. */
export async function until(condition, what, ms = 20_000) {
  const end = performance.now() + ms;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

export async function push(server, body, { type = "application/x-ndjson", label = [], token } = {}) {
  const query = label.map((text) => `label=${encodeURIComponent(text)}`).join("&");
  const answer = await fetch(`${server.api}api/v1/push?${query}`, {
    method: "POST",
    body,
    headers: { "content-type": type, ...(token ? { authorization: `Bearer ${token}` } : {}) },
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`push: ${answer.status} ${text}`);
  return JSON.parse(text);
}

export async function ask(server, path, params) {
  const answer = await fetch(`${server.api}${path}?${new URLSearchParams(params)}`);
  const lines = (await answer.text())
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const last = lines.at(-1)._trailer;
  return { rows: lines.slice(0, -1), trailer: last };
}

let browser = null;
export async function open() {
  browser ??= await chromium.launch({
    executablePath: BROWSER,
    args: ["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
  });
  return browser;
}
export async function closeBrowser() {
  await browser?.close();
  browser = null;
}

/** A page of a fresh profile. Errors on its console are collected; requests to other hosts are, too. */
export async function page(
  server,
  address = "",
  { width = 1280, height = 800, scheme = "light", zone = "Europe/Berlin", wait = true } = {},
) {
  const context = await (
    await open()
  ).newContext({
    viewport: { width, height },
    colorScheme: scheme,
    timezoneId: zone,
    locale: "en-GB",
    permissions: [],
  });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]).catch(() => {});
  context.setDefaultTimeout(Number(process.env.TIMEOUT_MS ?? 30_000));
  const made = await context.newPage();
  const problems = [];
  const foreign = [];
  made.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
  made.on("pageerror", (error) => problems.push(`${error.message}\n${error.stack}`));
  made.on("request", (request) => {
    if (new URL(request.url()).host !== new URL(server.url).host && !request.url().startsWith("blob:"))
      foreign.push(request.url());
  });
  await made.goto(server.url + address);
  if (wait) await made.waitForSelector("#query");
  return Object.assign(made, { problems, foreign, done: () => context.close() });
}

/** The number of records that the page says. */
export async function count(page) {
  await page.waitForFunction(
    () =>
      /^[\d,]+$/.test(document.querySelector(".toolbar .count b")?.textContent ?? "") &&
      !document.querySelector(".unread"),
  );
  return Number((await page.textContent(".toolbar .count b")).replace(/\D/g, ""));
}

/** Texts of the rows on the screen, by their column. */
export const texts = (page, column = "message") =>
  page.$$eval(`.grid .line .col-${column}`, (cells) => cells.map((cell) => cell.textContent));

/** Lines of an access log: those of CORPUS, or made ones. */
export function* accessLines(wanted) {
  if (process.env.CORPUS) {
    const lines = readFileSync(process.env.CORPUS, "latin1").split("\n").filter(Boolean);
    for (let sent = 0; sent < wanted; sent += 1) yield lines[sent % lines.length];
    return;
  }
  const start = Date.now() - 36 * 3_600_000;
  let seed = 7;
  const random = (n) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % n;
  };
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const two = (n) => String(n).padStart(2, "0");
  for (let sent = 0; sent < wanted; sent += 1) {
    const at = new Date(start + (sent / wanted) * 35 * 3_600_000);
    const time = `${two(at.getUTCDate())}/${months[at.getUTCMonth()]}/${at.getUTCFullYear()}:${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())} +0000`;
    yield `198.51.${random(90)}.${random(250)} - - [${time}] "GET /articles/${random(900)} HTTP/1.1" ${[200, 200, 200, 304, 404, 500][random(6)]} ${random(90_000)} "-" "Mozilla/5.0 (X11; Linux x86_64)"`;
  }
}

export async function pushAccess(server, wanted) {
  const BATCH = 40_000;
  let lines = [];
  for (const line of accessLines(wanted)) {
    lines.push(line);
    if (lines.length === BATCH) {
      await push(server, lines.join("\n"), { type: "text/plain", label: ["app=web"] });
      lines = [];
    }
  }
  if (lines.length) await push(server, lines.join("\n"), { type: "text/plain", label: ["app=web"] });
}

/** Records of some services over the last minutes. */
export function services(total = 400, now = Date.now()) {
  const messages = [
    "order paid",
    "cart updated",
    "retry of payment",
    "upstream timeout after 30s",
    "cache miss",
  ];
  const levels = ["info", "info", "warn", "error", "debug"];
  return Array.from({ length: total }, (_, i) =>
    JSON.stringify({
      time: new Date(now - (total - i) * 4000 - 1000).toISOString(),
      level: levels[i % 5],
      message: `${messages[i % 5]} ${i}`,
      hostname: `web-${(i % 3) + 1}`,
      app: i % 4 ? "shop" : "pay",
      status: [200, 200, 302, 504, 200][i % 5],
      ms: (i * 37) % 900,
      user: `user-${i % 17}`,
    }),
  ).join("\n");
}
