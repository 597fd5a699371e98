// Runs the tests in a browser: node e2e/run.mjs [NAME...]. See harness.mjs for the variables.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";

const here = new URL("./", import.meta.url).pathname;
const wanted = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const files = readdirSync(here).filter(
  (name) => name.endsWith(".test.mjs") && (!wanted.length || wanted.some((word) => name.startsWith(word))),
);
const { status } = spawnSync(
  process.execPath,
  // A test that hangs fails; the longest takes a minute.
  ["--test", "--test-concurrency=1", "--test-timeout=300000", ...files.map((name) => here + name)],
  { stdio: "inherit" },
);
process.exit(status ?? 1);
