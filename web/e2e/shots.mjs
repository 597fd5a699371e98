// Pictures of all screens, 360 and 1,440 px wide, light and dark, into e2e/shots/.
//
//   node e2e/shots.mjs [NAME...]      these screens, or all
//   node e2e/shots.mjs --pictures     those of the documentation, into docs/pictures/, as WebP
import { mkdirSync, writeFileSync } from "node:fs";
import { closeBrowser, page, pond, push, pushAccess } from "./harness.mjs";

const OUT = new URL("./shots/", import.meta.url).pathname;
mkdirSync(OUT, { recursive: true });
const PICTURES = new URL("../../docs/pictures/", import.meta.url).pathname;
/** Screens in the documentation. web/test/pictures.test.ts bounds their sizes. */
const PICTURED = ["record", "patterns", "access"];
const QUALITY = 0.82;

const server = await pond();
const now = Date.now();
let seed = 3;
const random = (n) => {
  seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
  return seed % n;
};
const TRACE =
  "java.sql.SQLTransientConnectionException: HikariPool-1 - Connection is not available, request timed out after 30000ms.\n\tat com.zaxxer.hikari.pool.HikariPool.createTimeoutException(HikariPool.java:696)\n\tat com.zaxxer.hikari.pool.HikariPool.getConnection(HikariPool.java:197)\n\tat org.example.shop.OrderStore.save(OrderStore.java:88)";
const KINDS = [
  ["info", "order {n} paid in {ms} ms", 40],
  ["info", "cart of user-{n} updated", 30],
  ["debug", "cache miss for product {n}", 14],
  ["notice", "session of user-{n} renewed", 6],
  ["warn", "retry {n} of payment at pay.example:443", 4],
  ["error", "Order {n} failed: connection refused", 1],
];
const lines = [];
for (let at = now - 6 * 3_600_000; at < now; at += 1500 + random(2500)) {
  const incident = at > now - 80 * 60_000 && at < now - 62 * 60_000;
  let pick = random(95);
  let [level, text] = KINDS.find(([, , weight]) => (pick -= weight) < 0) ?? KINDS[0];
  if (incident && random(3))
    [level, text] = random(4) ? ["error", `upstream timeout after 30s at order {n}`] : ["error", TRACE];
  const ms = incident ? 20_000 + random(12_000) : 5 + random(400);
  lines.push(
    JSON.stringify({
      time: new Date(at).toISOString(),
      level,
      message: text.replace("{n}", String(random(9000))).replace("{ms}", String(ms)),
      hostname: `web-${1 + random(3)}`,
      app: ["shop", "shop", "pay", "mail"][random(4)],
      status: level === "error" ? 504 : [200, 200, 201, 302][random(4)],
      ms,
      trace: (0x10000000 + random(0xefffffff)).toString(16),
    }),
  );
}
await push(server, lines.join("\n"));
await pushAccess(server, 30_000);
await push(
  server,
  Array.from({ length: 900 }, (_, i) =>
    JSON.stringify({
      time: new Date(now - i * 24_000).toISOString(),
      client: `192.0.2.${random(40)}`,
      sni: ["blog.example", "git.example", "shop.example"][random(3)],
      alpn: ["h2", "http/1.1"][random(2)],
      version: random(12) ? "TLSv1.3" : "TLSv1.2",
      cipher: "TLS13_AES_256_GCM_SHA384",
      resumed: random(3) > 0,
      upstream: "unix:/run/app.sock",
      close_reason: [
        "client",
        "client",
        "client",
        "client",
        "upstream",
        "idle",
        "handshake_failed",
        "no_route",
      ][random(8)],
      bytes_from_client: random(5000),
      bytes_to_client: random(400_000),
      handshake_s: (8 + random(60)) / 10_000,
      duration_s: random(90) / 10,
    }),
  ).join("\n"),
);

const SCREENS = {
  search: ["?from=6h", ".line"],
  record: [
    "?from=6h&q=level%3Derror",
    ".line",
    async (p) => {
      await p.locator(".line .col-message").nth(1).click();
      await p.waitForSelector(".detail .fields");
    },
  ],
  context: [
    "?from=6h&q=HikariPool",
    ".line",
    async (p) => {
      await p.locator(".line .cells").first().click();
      await p.getByRole("button", { name: "Context" }).click();
      await p.waitForSelector(".context-row:nth-child(30)");
    },
  ],
  wrapped: ["?from=6h&q=level%3Derror&wrap=1", ".line"],
  time: [
    "?from=6h",
    ".line",
    async (p) => {
      await p.locator(".range > button").click();
      await p.waitForSelector(".time-panel");
    },
  ],
  suggest: [
    "?from=6h",
    ".line",
    async (p) => {
      await p.click("#query");
      await p.keyboard.type("hostname=");
      await p.waitForSelector("#suggestions li");
    },
  ],
  error: [
    "?from=6h",
    ".line",
    async (p) => {
      await p.fill("#query", "status==500");
      await p.keyboard.press("Enter");
      await p.waitForSelector(".query-problem strong");
    },
  ],
  nothing: ["?q=statsu%3D504", ".nothing"],
  live: ["?live=1", ".line"],
  patterns: ["?view=patterns&from=90m&q=hostname:*", ".pattern-table tbody tr"],
  access: ["?view=access&from=%400", ".access canvas"],
  alerts: [
    "?view=alerts&q=level%3Derror&from=6h",
    ".maker",
    async (p) => {
      await p.locator(".maker .primary").click();
      await p.waitForSelector(".maker canvas");
    },
  ],
  proxy: ["?view=proxy&from=6h", ".proxy canvas"],
  empty: ["", ".empty"],
  numbers: [
    "?from=6h&q=ms:*",
    ".line",
    async (p) => {
      if (await p.locator(".only-narrow").isVisible()) await p.locator(".only-narrow").click();
      await p.locator(".facet button", { hasText: /^.ms/ }).first().click();
      await p.waitForSelector(".numbers svg");
    },
  ],
  cluster: ["?view=cluster", ".cluster .card tbody tr"],
  logql: [
    `?logql=${encodeURIComponent('sum by (level) (count_over_time({app=~".+", level=~".+"}[10m]))')}&from=6h`,
    ".uplot canvas",
  ],
  sql: [
    `?sql=${encodeURIComponent("SELECT status, count(*) AS n, round(avg(ms)) AS ms FROM logs WHERE app IS NOT NULL GROUP BY status ORDER BY n DESC")}&from=6h`,
    ".data tbody tr",
  ],
  keys: [
    "?from=6h",
    ".line",
    async (p) => {
      await p.locator(".grid").focus();
      await p.keyboard.press("?");
      await p.waitForSelector("dialog .keys");
    },
  ],
  palette: [
    "?from=6h",
    ".line",
    async (p) => {
      await p.keyboard.press("Control+k");
      await p.waitForSelector("dialog.palette");
    },
  ],
};
const bare = await pond();
const pictures = process.argv.includes("--pictures");
const wanted = pictures ? PICTURED : process.argv.slice(2);
const SIZES = pictures
  ? [[1200, "light", 720]]
  : [
      [1440, "light", 900],
      [1440, "dark", 900],
      [360, "light", 740],
      [360, "dark", 740],
    ];

/** Encodes a picture as WebP, by the browser. */
async function asWebp(png) {
  const p = await page(server, "", { wait: false });
  await p.goto("about:blank");
  const text = await p.evaluate(
    async ([source, quality]) => {
      const image = new Image();
      image.src = `data:image/png;base64,${source}`;
      await image.decode();
      const canvas = Object.assign(document.createElement("canvas"), {
        width: image.naturalWidth,
        height: image.naturalHeight,
      });
      canvas.getContext("2d").drawImage(image, 0, 0);
      return canvas.toDataURL("image/webp", quality).split(",")[1];
    },
    [png.toString("base64"), QUALITY],
  );
  await p.done();
  return Buffer.from(text, "base64");
}
for (const [name, [address, ready, act]] of Object.entries(SCREENS)) {
  if (wanted.length && !wanted.includes(name)) continue;
  for (const [width, scheme, height] of SIZES) {
    const p = await page(name === "empty" ? bare : server, address, {
      width,
      height,
      scheme,
      wait: false,
    });
    try {
      await p.waitForSelector(ready);
      await act?.(p);
      await p
        .waitForFunction(
          () =>
            ![...document.querySelectorAll(".facets .dim, .card .dim")].some(
              (element) => element.textContent === "Loading…",
            ) && !document.querySelector(".stop"),
          null,
          { timeout: 8000 },
        )
        .catch(() => {});
      const png = await p.screenshot(pictures ? {} : { path: `${OUT}${name}-${width}-${scheme}.png` });
      if (pictures) {
        mkdirSync(PICTURES, { recursive: true });
        writeFileSync(`${PICTURES}${name}.webp`, await asWebp(png));
      }
    } catch (error) {
      console.error(`${name} ${width} ${scheme}: ${error.message.split("\n")[0]}`);
      process.exitCode = 1;
    }
    for (const problem of p.problems)
      if (!(name === "error" && problem.includes("400"))) console.error(`${name}: ${problem}`);
    await p.done();
  }
}
await closeBrowser();
await server.close();
await bare.close();
