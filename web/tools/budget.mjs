// Fails if the built application is larger than its budgets, or names another host.
import { readFileSync } from "node:fs";

const DIST = new URL("../dist/", import.meta.url);
const FIRST_SCREEN_GZIP_BYTES_MAX = 90 * 1024;
const ALL_GZIP_BYTES_MAX = 260 * 1024;
const FILES_MAX = 25;

const { files } = JSON.parse(readFileSync(new URL("manifest.json", DIST), "utf8"));
const html = readFileSync(new URL("index.html", DIST), "utf8");
const problems = [];

// The first screen: the page and every file that it names.
const first = files.filter(({ path }) => path === "index.html" || html.includes(`./${path}`));
const sum = (list) => list.reduce((bytes, { gzip }) => bytes + gzip, 0);
const [firstBytes, allBytes] = [sum(first), sum(files)];
console.log(
  `first screen ${(firstBytes / 1024).toFixed(1)} of 90 KiB gzip, everything ` +
    `${(allBytes / 1024).toFixed(1)} of 260 KiB gzip, ${files.length} files`,
);
if (firstBytes > FIRST_SCREEN_GZIP_BYTES_MAX) problems.push("the first screen is over its budget");
if (allBytes > ALL_GZIP_BYTES_MAX) problems.push("the application is over its budget");
if (files.length > FILES_MAX) problems.push(`more than ${FILES_MAX} files`);

if (/<script(?![^>]*\bsrc=)/.test(html) || /<style|\bstyle=|\bon\w+=/.test(html)) {
  problems.push("index.html has inline scripts or styles");
}
if (/(?:src|href)="(?:\/|https?:)/.test(html)) problems.push("index.html has an absolute address");
for (const { path } of files.filter(({ path }) => path.endsWith(".css"))) {
  const css = readFileSync(new URL(path, DIST), "utf8");
  if (/url\((?!#)|@import/.test(css)) problems.push(`${path} loads a further file`);
}
for (const { path } of files.filter(({ path }) => path.endsWith(".js"))) {
  const code = readFileSync(new URL(path, DIST), "utf8");
  if (/\beval\(|new Function\(/.test(code)) problems.push(`${path} evaluates text as code`);
  if (/(?:fetch|import)\(\s*["'`]https?:/.test(code)) problems.push(`${path} loads from another host`);
}
for (const problem of problems) console.error(`budget: ${problem}`);
process.exit(problems.length ? 1 : 0);
