// The page: what is asked is kept in the tab and in its address, and handed to the worker.

const at = (id) => document.getElementById(id);
const [scenario, changes, key, progress] = ["scenario", "changes", "key", "progress"].map(at);
const KEPT = "closlab.playground";
const NEEDED = { WebAssembly: "WebAssembly", Worker: "workers", BigInt64Array: "64-bit integers" };

let worker, offered, last;
let edited = {}; // files of P4 that are not as they ship
const made = []; // addresses of what a run left behind

const lines = () => changes.value.split("\n").map((line) => line.trim()).filter(Boolean);
const asked = () => ({ scenario: scenario.value, changes: lines(), p4: edited });

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

const keep = () => {
  if (!offered) return;
  const { scenario: name, changes: set } = asked();
  at("about").textContent = offered.scenarios[name] ?? "";
  const sets = set.map((change) => ` --set ${quoted(change)}`).join("");
  at("command").textContent = `./closlab run ${name} --engine sim${sets}`;
  const words = new URLSearchParams([["scenario", name], ...set.map((change) => ["set", change])]);
  history.replaceState(null, "", `#${words}`);
  try {
    localStorage.setItem(KEPT, String(words));
  } catch {} // a tab that may keep nothing
};

const restore = () => {
  let kept = location.hash.slice(1);
  try {
    kept ||= localStorage.getItem(KEPT) ?? "";
  } catch {}
  const words = new URLSearchParams(kept);
  const name = words.get("scenario");
  scenario.value = name in offered.scenarios ? name : "incast";
  changes.value = words.getAll("set").join("\n");
  keep();
};

const showFile = () => {
  at("p4").value = edited[at("file").value] ?? offered.p4[at("file").value];
  sayChanged();
};

const sayChanged = () => {
  const names = Object.keys(edited);
  at("changed").textContent = names.length ? `Changed: ${names.join(", ")}. It stays in this browser.` : "";
  at("reset").disabled = !names.length;
};

const keepProgram = () => {
  sayChanged();
  try {
    localStorage.setItem(`${KEPT}.p4`, JSON.stringify(edited));
  } catch {}
};

const restoreProgram = () => {
  try {
    edited = { ...JSON.parse(localStorage.getItem(`${KEPT}.p4`) ?? "{}"), ...edited };
  } catch {}
  edited = Object.fromEntries(Object.entries(edited).filter(([name, text]) => offered.p4[name] !== text));
  at("file").replaceChildren(...Object.keys(offered.p4).map((name) => new Option(name)));
  at("file").value = Object.keys(edited)[0] ?? "pause.p4";
  showFile();
};

const tell = (text, failed = false) => {
  progress.classList.toggle("failed", failed);
  progress.textContent = text;
};

const hasFailed = () => progress.classList.contains("failed");

const busy = (is) => {
  at("run").disabled = is || !offered;
  at("stop").disabled = !is;
};

const link = (name, text, kind) => {
  const url = URL.createObjectURL(new Blob([text], { type: kind }));
  made.push(url);
  return Object.assign(document.createElement("a"), { href: url, download: name, textContent: name });
};

const show = ({ verdict, report, files, error, cure }) => {
  busy(false);
  if (error) return tell([error, cure].filter(Boolean).join("\n"), true);
  made.splice(0).forEach((url) => URL.revokeObjectURL(url));
  tell(verdict);
  at("before").textContent = `Before: ${last}`;
  at("before").hidden = last === undefined;
  last = verdict;
  const kinds = { json: "application/json", csv: "text/csv" };
  const named = Object.entries(files).map(([name, text]) => link(name, text, kinds[name.split(".").at(-1)]));
  named.push(link("report.html", report, "text/html"));
  at("files").replaceChildren(...named.flatMap((each, n) => (n ? [", ", each] : [each])));
  at("report").srcdoc = report;
  at("result").hidden = false;
  document.documentElement.dataset.ran = Number(document.documentElement.dataset.ran ?? 0) + 1;
};

const heard = {
  told: (text) => hasFailed() || tell(text),
  ready: (found) => {
    offered = found;
    scenario.replaceChildren(...Object.keys(found.scenarios).map((name) => new Option(name)));
    at("keys").replaceChildren(...Object.keys(found.keys).map((name) => new Option(name)));
    scenario.disabled = false;
    restore();
    restoreProgram();
    busy(false);
    hasFailed() || tell("Ready.");
  },
  ran: (found) => show(found),
  failed: ({ error, over }) => {
    busy(false);
    tell(`${error}\nThe lab is loaded anew.`, true);
    if (over) begin();
  },
};

const begin = () => {
  worker?.terminate();
  offered = undefined;
  worker = new Worker("worker.js", { type: "module" });
  worker.onmessage = ({ data: { kind, what } }) => heard[kind](what);
  worker.onerror = ({ message }) => heard.failed({ error: `the lab has ended: ${message ?? "no memory"}` });
};

const start = () => {
  busy(true);
  tell("Begun");
  worker.postMessage(asked());
};

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
at("stop").addEventListener("click", () => {
  const kept = [scenario.value, changes.value];
  begin();
  busy(false);
  [scenario.value, changes.value] = kept;
  tell("Stopped; the lab is loaded anew.");
});
at("file").addEventListener("change", showFile);
at("p4").addEventListener("input", () => {
  const name = at("file").value;
  if (at("p4").value === offered.p4[name]) delete edited[name];
  else edited[name] = at("p4").value;
  keepProgram();
});
at("reset").addEventListener("click", () => {
  edited = {};
  keepProgram();
  showFile();
});
at("link").addEventListener("click", () => navigator.clipboard?.writeText(location.href));
[scenario, changes].forEach((each) => each.addEventListener("input", keep));
key.addEventListener("input", () => {
  const about = offered?.keys[key.value];
  at("meaning").textContent = about ?? "";
});
key.addEventListener("change", () => {
  if (offered?.keys[key.value] === undefined) return;
  changes.value = [...lines(), `${key.value}=`].join("\n");
  changes.focus();
  keep();
});

addEventListener("hashchange", () => offered && restore());

const lacks = Object.keys(NEEDED).find((name) => !(name in window));
if (lacks) tell(`This browser has no ${NEEDED[lacks]}, without which the lab cannot run here.`, true);
else begin();
