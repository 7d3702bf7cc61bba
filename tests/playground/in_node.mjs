// Run scenarios as a tab does, in node: each line of the standard input is one, as the page asks it.
// Of each a line comes back: what its result's files hold, and how long it took.
//
//     node in_node.mjs PLAYGROUND

import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

process.on("uncaughtException", (error) => {
  console.error(String(error.stack ?? error).split("\n").slice(-30).join("\n").slice(-3000));
  process.exit(1);
});
const folder = path.resolve(process.argv[2]);
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide", "pyodide.mjs")).href);
const python = await loadPyodide({ env: { HOME: "/home/pyodide", PYTHONPATH: "/lab:/packages" } });
const packed = new Uint8Array(fs.readFileSync(path.join(folder, "lab.zip")));
python.unpackArchive(packed, "zip", { extractDir: "/" });
python.pyimport("importlib").invalidate_caches(); // it looked for the lab before it was there
const lab = python.pyimport("views.playground.in_tab");
lab.unpacked();
console.log(lab.offered());
for await (const line of readline.createInterface({ input: process.stdin })) {
  const began = performance.now();
  const told = [];
  const found = JSON.parse(lab.run(line, (each) => told.push(each)));
  console.log(JSON.stringify({ ...found, told, took_ms: performance.now() - began }));
}
