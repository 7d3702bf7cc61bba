// The lab itself, in a thread of its own: the page stays alive while it works.

import { loadPyodide } from "./pyodide/pyodide.mjs";

// What to say of anything that was thrown: not all of it is an Error.
const said = (error) => (error instanceof Error ? error.message : JSON.stringify(error)) || String(error);

const say = (kind, what) => postMessage({ kind, what });

const files = (tree, python, folder) => {
  for (const name of python.FS.readdir(folder).filter((each) => !each.startsWith("."))) {
    const path = `${folder}/${name}`;
    if (python.FS.isDir(python.FS.stat(path).mode)) files((tree[name] = {}), python, path);
    else if (name.endsWith(".h")) tree[name] = python.FS.readFile(path);
  }
  return tree;
};

// A program's C, compiled and put where the lab looks for it.
const compile = async (python, { source, path, compiling, linking }) => {
  say("told", "Loading clang");
  const { commands } = await import("./clang/bundle.js");
  let complaints = "";
  const options = {
    stderr: (bytes) => bytes && (complaints += new TextDecoder().decode(bytes)),
    fetchProgress: ({ doneLength, totalLength }) =>
      say("told", `Loading clang: ${Math.round((100 * doneLength) / totalLength)} %`),
  };
  const tree = files({}, python, "/headers");
  tree.rt = files({}, python, "/lab/switch/rt");
  tree["program.c"] = source;
  try {
    await commands.clang([], {}, options).catch(() => {}); // loads it
    say("told", "Compiling the program's C");
    const unit = await commands.clang([...compiling, "-c", "program.c", "-o", "program.o"], tree, options);
    const object = { "program.o": unit["program.o"] };
    const linked = await commands["wasm-ld"]([...linking, "program.o", "-o", "program.so"], object, options);
    python.FS.writeFile(path, linked["program.so"], { mode: 0o700 });
  } catch (error) {
    throw new Error(`clang refused: ${complaints.slice(-2000) || said(error)}`);
  }
};

const ready = (async () => {
  say("told", "Loading Python");
  const packed = fetch("lab.zip").then((answer) => {
    if (!answer.ok) throw new Error(`lab.zip: ${answer.status} ${answer.statusText}`);
    return answer.arrayBuffer();
  });
  const python = await loadPyodide({ indexURL: "pyodide/", env: { HOME: "/home/pyodide" } });
  say("told", "Unpacking the lab");
  python.unpackArchive(await packed, "zip", { extractDir: "/" });
  python.runPython(`
import sys
from pathlib import Path
sys.path[:0] = ["/lab", "/packages"]
for kept in Path("/home/pyodide/.cache/closlab").iterdir():
    kept.chmod(0o700)
`);
  say("told", "Reading the lab");
  return { python, lab: python.pyimport("views.playground.in_tab") };
})();

ready.then(
  ({ lab }) => say("ready", JSON.parse(lab.offered())),
  (error) => say("failed", { error: `the lab cannot be loaded: ${said(error)}` }),
);

onmessage = async ({ data }) => {
  const { python, lab } = await ready;
  const run = () => JSON.parse(lab.run(JSON.stringify(data), (line) => say("told", line)));
  try {
    let found = run();
    if (found.compile) {
      await compile(python, found.compile);
      found = run();
    }
    say("ran", found);
  } catch (error) {
    const last = said(error).trim().split("\n").at(-1);
    say("failed", { error: `the lab broke off: ${last}`, over: true });
  }
};
