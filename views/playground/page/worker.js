// The lab itself, in a thread of its own: the page stays alive while it works.

import { loadPyodide } from "./pyodide/pyodide.mjs";

const say = (kind, what) => postMessage({ kind, what });

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
  return python.pyimport("views.playground.in_tab");
})();

ready.then(
  (lab) => say("ready", JSON.parse(lab.offered())),
  (error) => say("failed", { error: `the lab cannot be loaded: ${error.message ?? error}` }),
);

onmessage = async ({ data }) => {
  const lab = await ready;
  try {
    say("ran", JSON.parse(lab.run(JSON.stringify(data), (line) => say("told", line))));
  } catch (error) {
    const last = String(error.message ?? error).trim().split("\n").at(-1);
    say("failed", { error: `the lab broke off: ${last}`, over: true });
  }
};
