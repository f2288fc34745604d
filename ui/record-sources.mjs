// Records a hash of the sources beside the built files. A test of the Python package compares it with the sources.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const files = ["index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"];
for (const entry of readdirSync("src", { recursive: true, withFileTypes: true })) {
  if (entry.isFile()) files.push(`${entry.parentPath}/${entry.name}`.replaceAll("\\", "/"));
}
const hash = createHash("sha256");
for (const file of files.sort()) {
  hash.update(file).update("\0").update(readFileSync(file)).update("\0");
}
writeFileSync("../src/millstream/ui_files/sources.sha256", `${hash.digest("hex")}\n`);
