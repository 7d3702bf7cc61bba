// The page: what is asked is kept in the tab and in its address, and handed to the worker.

const at = (id) => document.getElementById(id);
const [scenario, changes, key, progress] = ["scenario", "changes", "key", "progress"].map(at);
const KEPT = "closlab.playground";
const NEEDED = { WebAssembly: "WebAssembly", Worker: "workers", BigInt64Array: "64-bit integers" };

let worker, offered, waits;
const made = []; // addresses of what a run left behind

const lines = () => changes.value.split("\n").map((line) => line.trim()).filter(Boolean);
const asked = () => ({ scenario: scenario.value, changes: lines() });

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

const tell = (text, failed = false) => {
  progress.classList.toggle("failed", failed);
  progress.textContent = text;
};

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
  const kinds = { json: "application/json", csv: "text/csv" };
  const named = Object.entries(files).map(([name, text]) => link(name, text, kinds[name.split(".").at(-1)]));
  named.push(link("report.html", report, "text/html"));
  at("files").replaceChildren(...named.flatMap((each, n) => (n ? [", ", each] : [each])));
  at("report").srcdoc = report;
  at("result").hidden = false;
  document.documentElement.dataset.ran = Number(document.documentElement.dataset.ran ?? 0) + 1;
};

const heard = {
  told: (text) => tell(text),
  ready: (found) => {
    offered = found;
    scenario.replaceChildren(...Object.keys(found.scenarios).map((name) => new Option(name)));
    at("keys").replaceChildren(...Object.keys(found.keys).map((name) => new Option(name)));
    scenario.disabled = false;
    restore();
    busy(false);
    tell("Ready.");
    if (waits) start();
  },
  ran: (found) => show(found),
  failed: ({ error, over }) => {
    busy(false);
    tell(`${error}\nReload the page, or press Run to begin anew.`, true);
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
  waits = false;
  busy(true);
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

const lacks = Object.keys(NEEDED).find((name) => !(name in window));
if (lacks) tell(`This browser has no ${NEEDED[lacks]}, without which the lab cannot run here.`, true);
else begin();
