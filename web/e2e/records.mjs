// Records for the tests of the controls: many lines, many values, and contents that mean no good.
import { push, services } from "./harness.mjs";

export const MANY = 6000;
export const CUSTOMERS = 2500;

export async function fill(server, now) {
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
}

/** A part of the list of fields. */
export const facet = (p, name) =>
  p.locator(".facet", { has: p.locator(".name", { hasText: new RegExp(`^${name}$`) }) });

/** The parameters of the page's address. */
export const address = (p) => new URL(p.url()).searchParams;
