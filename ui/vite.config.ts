import { defineConfig } from "vite";

// The driver's REST server in development: MILLSTREAM_REST=http://127.0.0.1:8081 npm run dev
const rest = process.env["MILLSTREAM_REST"] ?? "http://127.0.0.1:8081";

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/millstream/ui_files",
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    license: { fileName: "licenses.md" },
    target: "es2022",
  },
  server: { proxy: Object.fromEntries(["/jobs", "/overview", "/config"].map((path) => [path, rest])) },
});
