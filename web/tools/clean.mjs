// Empties dist, but for the file that keeps the directory in the repository.
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const DIST = new URL("../dist/", import.meta.url).pathname;
mkdirSync(DIST, { recursive: true });
for (const name of readdirSync(DIST)) {
  if (name !== ".gitignore") rmSync(join(DIST, name), { recursive: true });
}
