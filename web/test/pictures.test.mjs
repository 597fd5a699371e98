import { readdirSync, readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";

const ROOT = new URL("../../", import.meta.url);
const PICTURE_BYTES_MAX = 64 << 10;

test("pictures of the documentation are small, and each is shown", () => {
  const folder = new URL("docs/pictures/", ROOT);
  const pages = ["README.md", "docs/interface.md"].map((path) => readFileSync(new URL(path, ROOT), "utf8"));
  const names = readdirSync(folder);
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) {
    expect(name).toMatch(/^[a-z]+\.webp$/);
    expect(statSync(new URL(name, folder)).size, name).toBeLessThanOrEqual(PICTURE_BYTES_MAX);
    expect(
      pages.some((text) => text.includes(`pictures/${name}`)),
      name,
    ).toBe(true);
  }
  for (const text of pages)
    for (const [, name] of text.matchAll(/pictures\/([\w.-]+)/g)) expect(names).toContain(name);
});
