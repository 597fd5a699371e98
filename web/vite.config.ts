import { defineConfig } from "vite";

// Relative addresses: the application works below any prefix of a proxy.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    // tools/clean.mjs empties it but for the file that keeps the directory.
    emptyOutDir: false,
    assetsDir: "web",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    reportCompressedSize: false,
  },
  // A module is loaded within a test, which a busy machine delays.
  test: { include: ["test/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
} as never);
