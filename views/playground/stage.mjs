// Read all of the lab once, as a tab will: what Python compiles and what a run keeps is packed with it.
//
//     node stage.mjs PYODIDE_FOLDER STAGE_FOLDER LAB.zip

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [pyodide, stage, packed] = process.argv.slice(2).map((each) => path.resolve(each));
const { loadPyodide } = await import(pathToFileURL(path.join(pyodide, "pyodide.mjs")).href);
const python = await loadPyodide({ env: { HOME: "/home/pyodide", PYTHONPATH: "/lab:/packages" } });
const copied = (from, to) => {
  python.FS.mkdirTree(to);
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const [there, here] = [path.join(from, entry.name), `${to}/${entry.name}`];
    if (entry.isDirectory()) copied(there, here);
    else python.FS.writeFile(here, fs.readFileSync(there), { mode: 0o644 });
  }
};
copied(stage, "/");
await python.runPythonAsync(fs.readFileSync(path.join(import.meta.dirname, "stage.py"), "utf8"));
fs.writeFileSync(packed, python.FS.readFile("/lab.zip"));
