// A scenario: what is asked stands in the page's address and outlives a reload.

import { editor, places } from "./editor.js";
import { keep, kept } from "./kept.js";
import { ask, offered, tell, whenReady } from "./lab.js";

/* global leverRow */

const at = (id) => document.getElementById(id);
const [scenario, changes, key] = ["scenario", "changes", "key"].map(at);
const made = []; // addresses of what a run left behind
let edited = kept("p4", {}); // files of P4 that are not as they ship
let last;

const lines = () => changes.value.split("\n").map((line) => line.trim()).filter(Boolean);

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

const p4 = editor(at("p4"), "P4", (name, text) => {
  if (text === offered?.p4[name]) delete edited[name];
  else edited[name] = text;
  keepProgram();
});

// --- what is turned: each is a line of the settings ----------------------------------------------

let levers = [], of; // whose scenario's they are

const turned = () => Object.fromEntries(lines().map((line) => [line.split("=")[0], line.split("=").slice(1).join("=")]));

const showLevers = () => {
  const values = turned();
  for (const { lever, show } of levers) show(values[lever.key] ?? lever.now);
};

const turn = ({ key, now }, value) => {
  const others = lines().filter((line) => !line.startsWith(`${key}=`));
  changes.value = [...others, ...(value === now ? [] : [`${key}=${value || "null"}`])].join("\n");
  keepAsked();
};

const fetchLevers = async () => {
  const name = scenario.value;
  if (of === name) return showLevers();
  of = name;
  const found = await ask("levers", { scenario: name }, { isQuiet: true });
  if (of !== name) return;
  if (!found.levers) return (of = undefined);
  const rows = found.levers.map((lever) => ({
    lever,
    ...leverRow(lever, (value) => turn(lever, value), () => (at("turned").textContent = `${lever.key}: ${lever.about} (${lever.takes})`)),
  }));
  levers = rows;
  at("levers").replaceChildren(...rows.map(({ element }) => element));
  showLevers();
};

const keepAsked = () => {
  const name = scenario.value;
  at("about").textContent = offered.scenarios[name] ?? "";
  const sets = lines().map((change) => ` --set ${quoted(change)}`).join("");
  at("command").textContent = `./closlab run ${name} --engine sim${sets}`;
  const words = new URLSearchParams([["scenario", name], ...lines().map((change) => ["set", change])]);
  history.replaceState(null, "", `#${words}`);
  keep("asked", String(words));
  fetchLevers();
};

// Show what an address asks for, or else what was asked last.
export const restore = (address) => {
  if (!offered) return;
  const words = new URLSearchParams(address || kept("asked", ""));
  const name = words.get("scenario");
  scenario.value = name in offered.scenarios ? name : "incast";
  changes.value = words.getAll("set").join("\n");
  keepAsked();
};

export const lastAsked = () => kept("asked", "scenario=incast");

const showFile = () => {
  const name = at("file").value;
  p4.show(name, edited[name] ?? offered.p4[name]);
};

const keepProgram = () => {
  const names = Object.keys(edited);
  at("changed").textContent = names.length ? `Changed: ${names.join(", ")}. It stays in this browser.` : "";
  at("reset").disabled = !names.length;
  keep("p4", edited);
};

const link = (name, text, kind) => {
  const url = URL.createObjectURL(new Blob([text], { type: kind }));
  made.push(url);
  return Object.assign(document.createElement("a"), { href: url, download: name, textContent: name });
};

// What is shown of the last run: one of these.
const VIEWS = ["told", "replay", "compare"];
const frame = (view, page) => {
  at("report").srcdoc = page;
  for (const each of VIEWS) at(each).setAttribute("aria-pressed", each === view);
};

const show = ({ verdict, report, files, error, cure, stopped }) => {
  if (stopped) return;
  const wrong = places(error ?? "").filter(({ file }) => file in offered.p4);
  if (wrong.length) {
    at("file").value = wrong[0].file;
    showFile();
    p4.goTo(wrong[0].line);
  }
  p4.mark(wrong);
  if (error) return tell([error, cure].filter(Boolean).join("\n"), true);
  made.splice(0).forEach((url) => URL.revokeObjectURL(url));
  tell(verdict);
  at("before").textContent = `Before: ${last?.verdict}`;
  at("before").hidden = at("compare").hidden = last === undefined;
  last = { verdict, report };
  const kinds = { json: "application/json", csv: "text/csv" };
  const named = Object.entries(files).map(([name, text]) => link(name, text, kinds[name.split(".").at(-1)]));
  named.push(link("report.html", report, "text/html"));
  at("files").replaceChildren(...named.flatMap((each, n) => (n ? [", ", each] : [each])));
  frame("told", report);
  at("result").hidden = false;
  document.documentElement.dataset.ran = Number(document.documentElement.dataset.ran ?? 0) + 1;
};

whenReady.push(() => {
  scenario.replaceChildren(...Object.keys(offered.scenarios).map((name) => new Option(name)));
  at("keys").replaceChildren(...Object.keys(offered.keys).map((name) => new Option(name)));
  scenario.disabled = false;
  edited = Object.fromEntries(Object.entries(edited).filter(([name, text]) => ![undefined, text].includes(offered.p4[name])));
  if (at("file").options.length) return;
  at("file").replaceChildren(...Object.keys(offered.p4).map((name) => new Option(name)));
  at("file").value = Object.keys(edited)[0] ?? "pause.p4";
  showFile();
  keepProgram();
});

at("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  tell("Begun");
  show(await ask("run", { scenario: scenario.value, changes: lines(), p4: edited }));
});
at("told").addEventListener("click", () => {
  tell(last.verdict);
  frame("told", last.report);
});
for (const view of ["replay", "compare"])
  at(view).addEventListener("click", async () => {
    tell("Begun");
    const { page, error } = await ask(view, {});
    if (error) return tell(error, true);
    if (!page) return;
    tell(last.verdict);
    frame(view, page);
  });
at("program").addEventListener("toggle", p4.refresh);
at("file").addEventListener("change", showFile);
at("reset").addEventListener("click", () => {
  for (const name of Object.keys(edited)) p4.put(name, offered.p4[name]);
  edited = {};
  p4.mark([]);
  keepProgram();
});
at("link").addEventListener("click", () => navigator.clipboard?.writeText(location.href));
[scenario, changes].forEach((each) => each.addEventListener("input", () => offered && keepAsked()));
key.addEventListener("input", () => {
  at("meaning").textContent = offered?.keys[key.value] ?? "";
});
key.addEventListener("change", () => {
  if (offered?.keys[key.value] === undefined) return;
  changes.value = [...lines(), `${key.value}=`].join("\n");
  changes.focus();
  keepAsked();
});
