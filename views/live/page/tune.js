// A scenario's keys as levers: with every change the run is made anew, and shown over what it was
// before. What is turned stands in the address, so that going back undoes it and a reload keeps it.
"use strict";
let levers = [], settings = {}, asked = 0, command = "";

const offered = (key) => levers.find((lever) => lever.key === key);
const turnedIn = (hash) => Object.fromEntries(hash.split("&").slice(1).map((part) => {
  const [key, ...value] = part.split("=");
  return [decodeURIComponent(key), decodeURIComponent(value.join("="))];
}));
const hashOf = (wanted) => Object.entries(wanted).map(([key, value]) => `&${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join("");

// --- a lever -------------------------------------------------------------------------------------

const named = (kind, attributes) => Object.assign(document.createElement(kind), attributes);

function row(lever) {
  const made = leverRow(lever, (value) => change(lever.key, value), () => mean(lever));
  lever.show = made.show;
  lever.show(settings[lever.key] ?? lever.now);
  return made.element;
}

function mean(lever) {
  $("meaning").textContent = `${lever.key}: ${lever.about} (${lever.takes})`;
}

async function another(key) {
  if (offered(key)) { document.getElementById(`lever-${key}`).focus(); return; }
  const told = await (await fetch(`/tune?key=${encodeURIComponent(key)}`)).json();
  if (told.error) { report(told.error, true); return; }
  levers.push(told);
  $("levers").append(row(told));
  $("another").value = "";
  document.getElementById(`lever-${key}`).focus();
}

// --- what becomes of it --------------------------------------------------------------------------

function change(key, value) {
  const wanted = { ...settings, [key]: value };
  if (offered(key)?.now === value) delete wanted[key];
  history.pushState({ depth: (history.state?.depth ?? 0) + 1 }, "", location.pathname + (hashOf(wanted) ? `#${hashOf(wanted)}` : ""));
  apply(wanted);
}

function apply(wanted) {
  settings = wanted;
  for (const lever of levers) lever.show(settings[lever.key] ?? lever.now);
  const isTurned = Object.keys(settings).length > 0;
  $("undo").disabled = !(history.state?.depth > 0);
  $("reset").disabled = !isTurned;
  simulate();
}

async function simulate() {
  const mine = ++asked, began = performance.now();
  let what = "simulating";
  const clockwork = setInterval(() => { $("tuned").textContent = `${what}, ${((performance.now() - began) / 1000).toFixed(0)} s`; }, 1000);
  $("halt-tune").hidden = false;
  report("simulating");
  const took = () => ((performance.now() - began) / 1000).toFixed(1);
  const isLatest = () => mine === asked;
  let told = await asking({ set: settings });
  if (isLatest() && told.whole === false) {
    tell(told);
    report(what = `the first ${clock(frames[frames.length - 1].t)} of it, all of it is being simulated`);
    told = await asking({ whole: settings });
  }
  if (isLatest() && !told.error) {
    tell(told);
    if (told.verdict === null) {  // it is known when the same was simulated without what it asks about
      report(what = `shown after ${took()} s, what it cost is being simulated`);
      told = await asking({ price: settings });
      if (isLatest()) judge(told.verdict ?? "What it cost was not simulated.");
    }
  }
  clearInterval(clockwork);
  if (!isLatest()) return;
  $("halt-tune").hidden = true;
  if (told.error) report(told.error, true);
  else report(`simulated in ${took()} s`);
}

async function asking(what) {
  try {
    const answer = await fetch("/tune", { method: "POST", headers: { "X-Closlab-Token": token }, body: JSON.stringify(what) });
    return await answer.json();
  } catch {
    return { error: "nobody answers: is closlab tune still running?" };
  }
}

function judge(verdict) {
  $("now").textContent = verdict ?? "…";
  $("was").hidden = verdict === null || verdict === first.verdict;
  $("was").textContent = `Before: ${first.verdict}`;
}

function tell(told) {
  past ??= { directions: scene.directions, frames: frames.slice() };
  exchange(told.scene, told.frames);
  if (!chosen.length) toggle([fullest()]);
  command = told.command;
  judge(told.verdict);
  $("change").textContent = told.change;
  $("cautions").replaceChildren(...told.cautions.map((text) => named("li", { textContent: text })));
  $("command").textContent = command;
  $("changed").hidden = !told.figures.length;
  $("figures").tBodies[0].replaceChildren(...told.figures.map((cells) => {
    const line = document.createElement("tr");
    cells.forEach((cell, place) => line.append(named(place ? "td" : "th", { textContent: cell })));
    return line;
  }));
}

// The direction that most ever waited for.
function fullest() {
  const longest = scene.directions.map((_, d) => frames.reduce((most, frame) => Math.max(most, cell(frame, d, QUEUE)), 0));
  return longest.indexOf(Math.max(...longest));
}

function report(text, isWrong = false) {
  $("tuned").textContent = text;
  $("tuned").classList.toggle("wrong", isWrong);
}

// --- the beginning -------------------------------------------------------------------------------

let first = null;
async function copy(text, button) {
  const usual = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {
    $("command").textContent = text;
    getSelection().selectAllChildren($("command"));
    button.textContent = "selected below";
  }
  setTimeout(() => { button.textContent = usual; }, 1500);
}

async function beginToTune() {
  first = await (await fetch("/tune")).json();
  ({ levers, command } = first);
  $("tune").hidden = $("verdicts").hidden = false;
  $("now").textContent = first.verdict;
  $("command").textContent = command;
  $("levers").replaceChildren(...levers.map(row));
  $("keys").replaceChildren(...first.keys.map(([key, about]) => new Option(about, key)));
  $("another").onchange = () => { if ($("another").value.trim()) another($("another").value.trim()); };
  $("undo").onclick = () => history.back();
  $("reset").onclick = () => {
    history.pushState({ depth: (history.state?.depth ?? 0) + 1 }, "", location.pathname);
    apply({});
  };
  $("halt-tune").onclick = () => fetch("/tune", { method: "POST", headers: { "X-Closlab-Token": token }, body: "{}" });
  $("copy-command").onclick = () => copy(command, $("copy-command"));
  $("copy-link").onclick = () => copy(`${location.origin}/#${token}${hashOf(settings)}`, $("copy-link"));
  addEventListener("popstate", () => apply(turnedIn(location.hash)));
  if (!token) {
    report("to turn anything, open the address that was printed: it ends in a token", true);
    for (const each of $("tune").querySelectorAll("input,select")) each.disabled = true;
    return;
  }
  const wanted = turnedIn(location.hash);
  if (!Object.keys(wanted).length) return;
  while (!isOver()) await new Promise((done) => setTimeout(done, 50));  // what came before is whole
  for (const key of Object.keys(wanted)) if (!offered(key)) await another(key);
  apply(wanted);
}
