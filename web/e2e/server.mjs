// For tests only: serves web/dist as the binary does, and passes everything else to a server.
import { createServer, request } from "node:http";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const DIST = new URL("../dist/", import.meta.url).pathname;
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/** Listens on a free port. `upstream` is the port of a server; `prefix` is a path like `/logs/`. */
export function serve(upstream, { prefix = "/" } = {}) {
  const { files } = JSON.parse(readFileSync(join(DIST, "manifest.json"), "utf8"));
  const known = new Map(files.map((file) => [file.path, file]));
  const open = new Set();
  const state = { upstream, refuse: false };
  const server = createServer((incoming, outgoing) => {
    if (!incoming.url.startsWith(prefix)) return outgoing.writeHead(404).end();
    const path = incoming.url.slice(prefix.length);
    const name = path.split("?")[0];
    const file = known.get(name === "" ? "index.html" : name);
    const page = incoming.method === "GET" && file && existsSync(join(DIST, file.path));
    if (page) {
      const accepts = incoming.headers["accept-encoding"] ?? "";
      const coding = accepts.includes("br") ? "br" : accepts.includes("gzip") ? "gzip" : null;
      const bytes = readFileSync(join(DIST, file.path + (coding === "br" ? ".br" : coding ? ".gz" : "")));
      outgoing.writeHead(200, {
        "content-type": file.content_type,
        "content-security-policy": POLICY,
        "referrer-policy": "no-referrer",
        "cache-control": file.immutable ? "public, max-age=31536000, immutable" : "no-cache",
        vary: "accept, accept-encoding",
        ...(coding ? { "content-encoding": coding } : {}),
      });
      return outgoing.end(bytes);
    }
    if (state.refuse) return incoming.socket.destroy();
    const passed = request(
      {
        host: "127.0.0.1",
        port: state.upstream,
        path: `/${path}`,
        method: incoming.method,
        headers: { ...incoming.headers, host: `127.0.0.1:${state.upstream}` },
      },
      (answer) => {
        outgoing.writeHead(answer.statusCode, answer.headers);
        answer.pipe(outgoing);
      },
    );
    open.add(passed);
    passed.on("close", () => open.delete(passed));
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  // A test that fails before it closes this keeps nobody waiting.
  server.unref();
  return new Promise((resolve) =>
    server.listen(0, "127.0.0.1", () =>
      resolve({
        url: `http://127.0.0.1:${server.address().port}${prefix}`,
        state,
        open,
        close: () => {
          server.closeAllConnections();
          server.close();
        },
      }),
    ),
  );
}
