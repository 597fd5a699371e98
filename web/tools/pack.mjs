// Writes .br and .gz beside each file of dist, and dist/manifest.json for embedding.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { extname, join, relative } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const DIST = new URL("../dist/", import.meta.url).pathname;
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json",
};

const files = readdirSync(DIST, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !/\.(br|gz)$/.test(entry.name))
  .map((entry) => relative(DIST, join(entry.parentPath, entry.name)))
  .filter((path) => path !== "manifest.json" && path !== ".gitignore")
  .sort();

const manifest = files.map((path) => {
  const type = TYPES[extname(path)];
  if (!type) throw new Error(`no content type is known for ${path}`);
  const bytes = readFileSync(join(DIST, path));
  const gzip = gzipSync(bytes, { level: 9 });
  const brotli = brotliCompressSync(bytes, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: 11,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });
  writeFileSync(join(DIST, `${path}.gz`), gzip);
  writeFileSync(join(DIST, `${path}.br`), brotli);
  return {
    path,
    content_type: type,
    // A name with a hash of the content never changes its content.
    immutable: /-[\w-]{8}\.\w+$/.test(path),
    sha256: createHash("sha256").update(bytes).digest("hex"),
    bytes: bytes.length,
    gzip: gzip.length,
    brotli: brotli.length,
  };
});
writeFileSync(join(DIST, "manifest.json"), `${JSON.stringify({ files: manifest }, null, 1)}\n`);
