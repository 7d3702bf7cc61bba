// The lab itself, in a thread of its own: the page stays alive while it works.

import { loadPyodide } from "./pyodide/pyodide.mjs";

// What to say of anything that was thrown: not all of it is an Error.
const said = (error) => (error instanceof Error ? error.message : JSON.stringify(error)) || String(error);

const say = (kind, what, at) => postMessage({ kind, what, at });

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
  const env = { HOME: "/home/pyodide", PYTHONPATH: "/lab:/packages" };
  const python = await loadPyodide({ indexURL: "pyodide/", env });
  say("told", "Unpacking the lab");
  python.unpackArchive(await packed, "zip", { extractDir: "/" });
  say("told", "Reading the lab");
  python.pyimport("importlib").invalidate_caches(); // it looked for the lab before it was there
  const lab = python.pyimport("views.playground.in_tab");
  lab.unpacked();
  return { python, lab };
})();

const IDLE_MS = 1000;
let isAsked = false;

ready.then(
  ({ lab }) => {
    say("ready", JSON.parse(lab.offered()));
    setTimeout(() => isAsked || lab.warm_up(), IDLE_MS);
  },
  (error) => say("failed", `the lab cannot be loaded: ${said(error)}`),
);

// Beyond that an address is a negative number to what calls C from Python.
const MAX_BYTES = 2 ** 31;
const FULL = "It has taken 2 GB, which is all that a tab has: let there be fewer hosts, or messages.";

// What one may ask for, each of Python's functions.
const ASKS = ["run", "levers", "replay", "compare", "grade"];

onmessage = async ({ data: { at, what, words } }) => {
  isAsked = true;
  const { python, lab } = await ready;
  const hear = what === "grade" ? (text) => say("soFar", text, at) : (line) => say("told", line);
  const ask = () => JSON.parse(lab[ASKS.find((each) => each === what)](JSON.stringify(words), hear));
  try {
    let found = ask();
    while (found.compile) {
      await compile(python, found.compile);
      found = ask();
    }
    say("done", found, at);
  } catch (error) {
    const isFull = python._module.HEAPU8.length > 0.9 * MAX_BYTES;
    const why = said(error).trim().split("\n").at(-1);
    say("brokeOff", `the lab broke off: ${why}${isFull ? `\n${FULL}` : ""}`);
  }
};
