// A run at one moment or the next: whether it lasts or was kept, the page has its frames and shows
// one of them. What comes are differences to the frame before; what is remembered are whole frames.
"use strict";
const $ = (id) => document.getElementById(id);
const CELLS = 5, QUEUE = 0, BUSY = 1, PAUSED = 2, MARKED = 3, DROPPED = 4;
const MAX_CHOSEN = 6, MAX_ROWS = 5, MAX_MESSAGES = 10, MAX_EVENTS = 300, MAX_POINTS = 320;
// A run that the page holds itself, without a server (alone.py).
const held = $("held") && JSON.parse($("held").textContent);
// Behind # stands the token, and after & what is turned (tune.js).
const [given, ...turned] = location.hash.slice(1).split("&");
const token = (() => {
  if (held) return "";
  if (given) {
    sessionStorage.setItem("closlab-token", given);
    history.replaceState(null, "", location.pathname + (turned.length ? `#&${turned.join("&")}` : ""));
  }
  return sessionStorage.getItem("closlab-token") || "";
})();

// --- how quantities are said --------------------------------------------------------------------

const inUnit = (value, units) => {
  let [name, size] = units[0];
  for (const [each, of] of units) if (Math.abs(value) >= of) [name, size] = [each, of];
  const scaled = value / size;
  return `${+(scaled >= 999.5 ? scaled.toFixed(0) : scaled.toPrecision(3))} ${name}`;
};
const TIMES = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
const SIZES = [["B", 1], ["KB", 1e3], ["MB", 1e6], ["GB", 1e9]];
const time = (ns) => inUnit(ns, TIMES);
const clock = (ns) => (ns < 1e6 ? `${(ns / 1e3).toFixed(1)} µs` : `${(ns / 1e6).toFixed(3)} ms`);
const bytes = (count) => inUnit(count, SIZES);
const percent = (milli) => `${Math.min(100, Math.round(milli / 10))} %`;

// --- what is known ------------------------------------------------------------------------------

let scene = null, size = 0;
let frames = [], events = [];
let at = -1, isFollowing = true, isPlaying = false, speed = 0, playedAt = 0, playedNs = 0;
let longest = 1, chosen = [], charts = [], isStale = false;
let shapes = [], hits = [], nodes = new Map(), cables = new Map();
let past = null;  // the directions and frames of what this is compared with

const cell = (frame, direction, what) => frame.cells[direction * CELLS + what];
const now = () => frames[at];

function forget() {
  frames = [];
  for (const { item } of events) item.remove();
  events = [];
  at = -1;
}

function take(told) {
  const before = told.key ? null : frames[frames.length - 1];
  const cells = before ? before.cells.slice() : new Int32Array(size * CELLS);
  for (let i = 0; i < told.d.length; i += CELLS + 1)
    for (let what = 0; what < CELLS; what++) cells[told.d[i] * CELLS + what] = told.d[i + 1 + what];
  for (let i = 0; i < cells.length; i += CELLS) longest = Math.max(longest, cells[i]);
  frames.push({
    t: told.t, cells, last: Boolean(told.last),
    messages: told.m || (before ? before.messages : [null, null, []]),
    dead: told.dead ? new Set(told.dead) : before ? before.dead : new Set(),
  });
  if (frames.length > 1.25 * scene.room) {
    const gone = frames.length - scene.room;
    frames.splice(0, gone);
    at -= gone;
  }
  for (const [t, kind, what, link] of told.e || []) addEvent({ t, kind, what, link });
}

// --- the picture --------------------------------------------------------------------------------

const svgNew = (name, attributes) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

function draw() {
  $("drawing").innerHTML = scene.drawing;
  hits = [];
  nodes = new Map();
  cables = new Map();
  const svg = $("drawing").querySelector("svg");
  svg.setAttribute("role", "group");  // there is something to press in it
  shapes = ["b", "p", "q"].flatMap((kind) =>
    [...svg.querySelectorAll(`[data-${kind}]`)].map((shape) => ({
      shape, kind, directions: scene.moving[shape.dataset[kind]], digit: 0,
    })));
  for (const { shape, kind, directions } of shapes.slice()) {
    if (kind !== "b") continue;
    const hit = shape.cloneNode(false);
    for (const name of ["data-b", "stroke", "stroke-width", "fill"]) hit.removeAttribute(name);
    hit.setAttribute("class", "hit");
    hit.setAttribute("role", "button");
    hit.setAttribute("tabindex", hits.length ? "-1" : "0");
    hit.setAttribute("aria-label", directions.map((d) => scene.directions[d]).join(", "));
    hit.append(svgNew("title", {}));
    const found = { hit, directions };
    hit.addEventListener("click", () => toggle(directions));
    hit.addEventListener("pointerenter", () => tip(found));
    hit.addEventListener("focus", () => tip(found));
    hit.addEventListener("keydown", (event) => walk(event, hits.indexOf(found)));
    shape.after(hit);
    hits.push(found);
  }
  for (const rect of svg.querySelectorAll("rect")) {
    const name = rect.querySelector("title")?.textContent;
    if (!name || rect.dataset.b) continue;
    const box = rect.getBBox();
    const text = svgNew("text", { x: box.x + box.width / 2, y: box.y - 4, "text-anchor": "middle", fill: "var(--drop)", class: "strong halo" });
    svg.append(text);
    const out = scene.directions.flatMap((d, i) => (d.startsWith(name + ">") ? [i] : []));
    nodes.set(name, { rect, text, out, usual: [rect.getAttribute("stroke"), rect.getAttribute("stroke-width")] });
  }
  const lines = new Map(shapes.filter((s) => s.kind === "b" && s.shape.tagName === "line").map((s) => [scene.directions[s.directions[0]], s]));
  for (const name of scene.cables) {
    const dot = name.indexOf("."), beside = dot < 0 ? "" : name.slice(dot);
    const [a, b] = (dot < 0 ? name : name.slice(0, dot)).split("-");
    const both = [`${a}>${b}${beside}`, `${b}>${a}${beside}`].map((d) => lines.get(d)).filter(Boolean);
    if (!both.length) continue;
    const [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map((key) => +both[0].shape.getAttribute(key));
    const x = x1 + 0.36 * (x2 - x1), y = y1 + 0.36 * (y2 - y1);
    const cross = svgNew("g", { stroke: "var(--drop)", "stroke-width": 2, visibility: "hidden", "pointer-events": "none", class: "cross" });
    cross.append(svgNew("circle", { cx: x, cy: y, r: 7, fill: "var(--paper)", "stroke-width": 1.4 }),
      svgNew("path", { d: `M${x - 3.5} ${y - 3.5}l7 7m0 -7l-7 7` }));
    svg.append(cross);
    cables.set(name, { both, cross, isDead: false });
  }
  $("key").innerHTML = ["idle", "to 25 %", "to 50 %", "to 75 %", "above"].map((name, i) =>
    `<span><i style="border-color:var(--busy${i});border-width:${[1, 1.6, 2.2, 2.8, 3.4][i]}px"></i>${name}</span>`).join("") +
    (shapes.some(({ kind }) => kind === "q") ? '<span><b style="background:var(--queue)"></b>a queue</span>' : "") +
    '<span><b style="background:var(--pause);border-radius:50%"></b>stands still</span>';
}

function walk(event, place) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (event.key === "Enter") toggle(hits[place].directions);
  else if (step) {
    hits[place].hit.setAttribute("tabindex", "-1");
    const { hit } = hits[(place + step + hits.length) % hits.length];
    hit.setAttribute("tabindex", "0");
    hit.focus();
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

function tip({ hit, directions }) {
  const frame = now();
  hit.querySelector("title").textContent = directions.slice(0, 8).map((d) =>
    scene.directions[d] + (frame ? `: ${bytes(cell(frame, d, QUEUE))} wait, ${percent(cell(frame, d, BUSY))} busy, ${percent(cell(frame, d, PAUSED))} paused` : "")).join("\n");
}

const classOf = (milli) => {
  const place = scene.busy.findIndex((limit) => milli / 1000 < limit);
  return place < 0 ? scene.busy.length - 1 : place;
};
const digitOf = (share) => (share > 0 ? Math.min(35, Math.ceil(share * 35 - 1e-9)) : 0);
const most = (frame, directions, what) => directions.reduce((sum, d) => Math.max(sum, cell(frame, d, what)), 0);
const digits = {
  b: (frame, ds) => classOf(most(frame, ds, BUSY)),
  p: (frame, ds) => digitOf(most(frame, ds, PAUSED) / 1000),
  q: (frame, ds) => digitOf(most(frame, ds, QUEUE) / longest),
};

function paint(frame) {
  for (const each of shapes) {
    const digit = digits[each.kind](frame, each.directions);
    if (digit === each.digit) continue;
    each.digit = digit;
    for (const [name, value] of looks[each.kind](digit, each.shape)) each.shape.setAttribute(name, value);
  }
  for (const { rect, text, out, usual } of nodes.values()) {
    const dropped = most(frame, out, DROPPED), said = dropped ? `−${dropped.toLocaleString("en")}` : "";
    if (text.textContent === said) continue;
    text.textContent = said;
    rect.setAttribute("stroke", dropped ? "var(--drop)" : usual[0]);
    rect.setAttribute("stroke-width", dropped ? 2.4 : usual[1]);
  }
  for (const [name, cable] of cables) {
    const isDead = frame.dead.has(name);
    if (isDead === cable.isDead) continue;
    cable.isDead = isDead;
    cable.cross.setAttribute("visibility", isDead ? "visible" : "hidden");
    for (const { shape } of cable.both) shape.style.cssText = isDead ? "stroke:var(--drop);stroke-dasharray:5 4" : "";
  }
}

// --- lists --------------------------------------------------------------------------------------

function tellQueues(frame) {
  const order = [...scene.directions.keys()].filter((d) => cell(frame, d, QUEUE) > 0)
    .sort((a, b) => cell(frame, b, QUEUE) - cell(frame, a, QUEUE)).slice(0, MAX_ROWS);
  const body = $("queues").tBodies[0];
  while (body.rows.length < MAX_ROWS) {
    const row = body.insertRow(), head = document.createElement("th"), button = document.createElement("button");
    head.scope = "row";
    button.type = "button";
    button.onclick = () => toggle([+button.dataset.d]);
    head.append(button);
    row.append(head);
    for (let i = 0; i < 3; i++) row.insertCell();
  }
  [...body.rows].forEach((row, place) => {
    const d = order[place], button = row.querySelector("button");
    row.className = d === undefined ? "is-empty" : "";
    row.ariaHidden = d === undefined;
    button.hidden = d === undefined;
    button.dataset.d = d;
    const told = d === undefined ? ["", "\u00a0", "", ""] : [scene.directions[d], bytes(cell(frame, d, QUEUE)), percent(cell(frame, d, BUSY)), percent(cell(frame, d, PAUSED))];
    button.textContent = told[0];
    [...row.cells].slice(1).forEach((td, i) => { td.textContent = told[i + 1]; });
  });
}

function tellMessages(frame) {
  const [count, done, open] = frame.messages;
  $("talk").hidden = count === null && !open.length;
  $("done").textContent = count === null ? "" : `${done ?? "?"} of ${count} have arrived`;
  $("progress").hidden = done === null;
  if (done !== null) { $("progress").max = count || 1; $("progress").value = done; }
  const lines = open.slice(0, MAX_MESSAGES).map(([src, dst, size, since, what]) =>
    `${src} → ${dst}, ${bytes(size)}${what ? `, ${what}` : ""}, for ${time(Math.max(0, frame.t - since))}`);
  if (open.length > MAX_MESSAGES) lines.push(`and ${open.length - MAX_MESSAGES}${open.length === 64 ? " or more" : ""} others`);
  const list = $("messages");
  while (list.children.length > lines.length) list.lastChild.remove();
  while (list.children.length < lines.length) list.append(document.createElement("li"));
  lines.forEach((line, i) => { if (list.children[i].textContent !== line) list.children[i].textContent = line; });
}

function addEvent(event) {
  const item = document.createElement("li"), when = document.createElement("button"), what = document.createElement("span");
  when.type = "button";
  when.textContent = clock(event.t);
  when.onclick = () => { stop(); leap(event.t); };
  what.className = event.kind;
  what.textContent = event.what;
  item.append(when, what);
  event.item = item;
  events.push(event);
  $("events").prepend(item);
  if (events.length > MAX_EVENTS) events.shift().item.remove();
}

function tellEvents(frame) {
  for (const { t, item } of events) item.classList.toggle("is-later", t > frame.t);
}

function tellMarks() {
  const [first, last] = span();
  const marks = events.slice(-120).map(({ t, kind, what }) => {
    const mark = document.createElement("span");
    mark.style.left = `${(100 * Math.max(0, t - first)) / Math.max(1, last - first)}%`;
    mark.className = kind;
    mark.title = what;
    return mark;
  });
  $("marks").replaceChildren(...marks);
}

// --- stories ------------------------------------------------------------------------------------

const PLOTS = [
  ["queue (KB)", QUEUE, 1e-3, null], ["busy (%)", BUSY, 0.1, 100], ["stands still (%)", PAUSED, 0.1, 100],
];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function toggle(directions) {
  for (const d of directions.slice(0, 2)) {
    const place = chosen.findIndex((each) => each.d === d);
    if (place >= 0) chosen.splice(place, 1);
    else {
      const used = new Set(chosen.map((each) => each.series));
      const series = [...Array(8).keys()].find((each) => !used.has(each));
      chosen = [...chosen, { d, series }].slice(-MAX_CHOSEN);
    }
  }
  tellChosen();
}

function tellChosen() {
  const buttons = chosen.map(({ d, series }) => {
    const button = document.createElement("button");
    button.type = "button";
    button.style.setProperty("--own", `var(--series${series})`);
    button.textContent = scene.directions[d];
    button.title = "Leave it out";
    button.onclick = () => toggle([d]);
    return button;
  });
  const none = document.createElement("span");
  none.className = "faint";
  none.textContent = "Click a line of the fabric, or a queue below.";
  $("chosen").replaceChildren(...(buttons.length ? buttons : [none]));
  for (const { hit, directions } of hits) {
    const found = chosen.find((each) => directions.includes(each.d));
    hit.setAttribute("aria-pressed", Boolean(found));
    if (found) hit.style.setProperty("--own", `var(--series${found.series})`);
  }
  plot();
}

function plot() {
  for (const chart of charts) chart.destroy();
  charts = [];
  $("charts").replaceChildren();
  if (!chosen.length) return;
  const wide = $("charts").clientWidth;
  const axis = { stroke: () => colour("faint"), grid: { stroke: () => colour("rule"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  PLOTS.forEach(([title, , , top], number) => {
    charts.push(new uPlot({
      title, width: wide, height: number === PLOTS.length - 1 ? 142 : 122, padding: [8, 20, 0, 0],
      cursor: { sync: { key: "time" }, drag: { x: false, y: false } }, legend: { show: false },
      scales: { x: { time: false, range: (_, low, high) => [low, Math.min(high, untilWhen())] }, y: { range: (_, low, high) => [0, top ? 1.04 * top : Math.max(1, high * 1.08)] } },
      axes: [{ ...axis, size: number === PLOTS.length - 1 ? 32 : 14, values: (_, ticks) => ticks.map((t) => (number === PLOTS.length - 1 ? time(t) : "")) }, { ...axis, size: 44, splits: top ? () => [0, 50, 100] : undefined }],
      series: [{}, ...chosen.map(({ series }) => ({ stroke: () => colour(`series${series}`), width: 1.8, points: { show: false } })),
        ...(past ? chosen : []).map(({ series }) => ({ stroke: () => colour(`series${series}`), width: 1.2, dash: [5, 4], alpha: 0.75, spanGaps: true, points: { show: false } }))],
      hooks: {
        draw: [(u) => {
          if (!now()) return;
          const x = u.valToPos(now().t, "x", true);
          u.ctx.save();
          u.ctx.strokeStyle = colour("ink");
          u.ctx.setLineDash([3, 3]);
          u.ctx.beginPath();
          u.ctx.moveTo(x, u.bbox.top);
          u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
          u.ctx.stroke();
          u.ctx.restore();
        }],
        ready: [(u) => u.over.addEventListener("click", () => { stop(); leap(u.posToVal(u.cursor.left, "x")); })],
      },
    }, [[0], ...(past ? [...chosen, ...chosen] : chosen).map(() => [0])], $("charts")));
  });
  fill();
}

// Where there are more frames than one could tell apart, a point is the longest queue of several,
// and the mean of their shares.
function course(frames, ds, what, scale) {
  const stride = Math.ceil(frames.length / MAX_POINTS);
  const points = Array.from({ length: Math.ceil(frames.length / stride) }, (_, i) => frames.slice(i * stride, (i + 1) * stride));
  const times = points.map((point) => point[point.length - 1].t);
  return [times, ...ds.map((d) => points.map((point) => scale * (d < 0 ? 0 : what === QUEUE
    ? point.reduce((longest, frame) => Math.max(longest, cell(frame, d, what)), 0)
    : point.reduce((sum, frame) => sum + cell(frame, d, what), 0) / point.length)))];
}

// Beside one that took much longer one would not see the other.
const MUCH = 8, SHOWN = 3;
function untilWhen() {
  const [mine, its] = [frames, past?.frames].map((some) => (some?.length ? some[some.length - 1].t : Infinity));
  return Math.max(mine, its) > MUCH * Math.min(mine, its) ? SHOWN * Math.min(mine, its) : Infinity;
}

function fill() {
  if (!charts.length || !frames.length) return;
  PLOTS.forEach(([, what, scale], number) => {
    const mine = course(frames, chosen.map(({ d }) => d), what, scale);
    const its = past && course(past.frames, chosen.map(({ d }) => past.directions.indexOf(scene.directions[d])), what, scale);
    charts[number].setData(its ? uPlot.join([mine, its]) : mine);
  });
}

// --- time ---------------------------------------------------------------------------------------

const span = () => (frames.length ? [scene.replay ? 0 : frames[0].t, frames[frames.length - 1].t] : [0, 1]);

function placeOf(t) {
  let low = 0, high = frames.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (frames[middle].t <= t) low = middle; else high = middle - 1;
  }
  return low;
}

function leap(t) {
  isFollowing = false;
  show(placeOf(t));
}

function show(place) {
  at = Math.max(0, Math.min(frames.length - 1, place));
  const frame = now();
  if (!frame) return;
  paint(frame);
  tellQueues(frame);
  tellMessages(frame);
  tellEvents(frame);
  const [first, last] = span();
  $("slider").value = (1000 * (frame.t - first)) / Math.max(1, last - first);
  $("clock").textContent = clock(frame.t);
  $("slider").setAttribute("aria-valuetext", clock(frame.t));
  $("follow").setAttribute("aria-pressed", isFollowing);
  for (const chart of charts) chart.redraw(false);
  document.body.dataset.t = frame.t;
}

function stop() {
  if (isFollowing) setSpeeds();
  isPlaying = false;
  isFollowing = false;
  tellPlay();
}

function play() {
  if (at >= frames.length - 1 && (scene.replay || isOver())) at = 0;
  isPlaying = true;
  playedAt = performance.now();
  playedNs = now() ? now().t : 0;
  tellPlay();
  requestAnimationFrame(tick);
}

const isOver = () => frames.length > 0 && frames[frames.length - 1].last;

function tellPlay() {
  const goes = isPlaying || isFollowing;
  $("play").textContent = goes ? "❚❚" : "▶";
  $("play").setAttribute("aria-label", goes ? "Stop" : "Go on");
  $("follow").hidden = scene.replay || isOver();
  $("speeds").hidden = isFollowing;
  $("follow").setAttribute("aria-pressed", isFollowing);
}

function tick() {
  if (!isPlaying) return;
  const t = playedNs + (speed * (performance.now() - playedAt)) / 1000;
  const place = placeOf(t);
  if (place !== at) show(place);
  if (place >= frames.length - 1) {
    isPlaying = false;
    isFollowing = !scene.replay && !isOver();
    tellPlay();
  } else requestAnimationFrame(tick);
}

function setSpeeds() {
  const [first, last] = span();
  const usual = (last - first) / 20 || 1e5;
  const magnitude = 10 ** Math.floor(Math.log10(usual));
  const middle = [1, 2, 5, 10].map((f) => f * magnitude).find((s) => s >= usual * 0.999);
  const options = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10].map((f) => new Option(`${time(f * middle)} a second`, f * middle));
  $("speed").replaceChildren(...options);
  $("speed").selectedIndex = 6;
  speed = middle;
}

// --- step by step -------------------------------------------------------------------------------

// Of a run that is over: each step has its moment, and what it is about is lit. Who asks first has
// the moment shown, and is told at the next press what happened.
let stepAt = -1, isAsked = false;

function light(directions) {
  for (const { hit, directions: own } of hits) hit.classList.toggle("lit", own.some((d) => directions.includes(d)));
}

function toStep(place, isOpen = false) {
  stepAt = Math.max(-1, Math.min(scene.steps.length - 1, place));
  isAsked = isOpen;
  const told = scene.steps[stepAt];
  light(told && !isOpen ? told[2] : []);
  if (told) { stop(); leap(told[0]); }
  $("step").textContent = !told ? `What happened, in ${scene.steps.length} steps`
    : `${stepAt + 1} of ${scene.steps.length}. ${isOpen ? "What happens?" : told[1]}`;
  $("step-back").disabled = stepAt < 0;
  $("step-on").disabled = stepAt === scene.steps.length - 1 && !isOpen;
}

function stepOn() {
  if (isAsked) toStep(stepAt);
  else if (stepAt < scene.steps.length - 1) toStep(stepAt + 1, $("ask").getAttribute("aria-pressed") === "true");
}

function guide() {
  $("steps").hidden = !scene.steps.length;
  if (scene.steps.length) toStep(-1);
}

$("step-on").onclick = stepOn;
$("step-back").onclick = () => toStep(stepAt - 1);
$("ask").onclick = () => $("ask").setAttribute("aria-pressed", $("ask").getAttribute("aria-pressed") !== "true");

// --- what one may do ----------------------------------------------------------------------------

async function ask(words) {
  let told;
  try {
    const answer = await fetch("/do", { method: "POST", headers: { "X-Closlab-Token": token }, body: words });
    told = await answer.json();
  } catch {
    told = { error: "nobody answers" };
  }
  $("said").textContent = told.said || told.error;
  $("said").classList.toggle("wrong", !told.said);
  return Boolean(told.said);
}

function offer() {
  const can = new Set(scene.words);
  if (!can.size) return;
  $("hands").hidden = false;
  for (const word of ["lb", "fail", "traffic", "pace"])
    for (const each of document.querySelectorAll(`.only-${word}`)) each.hidden = !can.has(word);
  $("lb").replaceChildren(...scene.policies.map((name) => new Option(name, name, false, name === scene.lb)));
  $("cable").replaceChildren(...scene.cables.map((name) => new Option(name)));
  if (!token) {
    $("said").textContent = "To interfere, open the address that was printed: it ends in a token.";
    for (const each of $("hands").querySelectorAll("button,select,input")) each.disabled = true;
  }
  $("lb").onchange = () => ask(`lb ${$("lb").value}`);
  $("cable").onchange = tellCable;
  $("cut").onclick = async () => {
    const name = $("cable").value;
    await ask(`${isCut(name) ? "mend" : "fail"} ${name}`);
  };
  $("traffic").onclick = () => ask("traffic");
  // By steps of a tenth of a power of ten, three of them below and above what it is.
  const paceOf = (step) => (scene.pace_ns || 1e5) * 10 ** ((step - 30) / 10);
  $("pace").value = 30;
  $("pace").oninput = () => { $("paced").textContent = `${time(paceOf(+$("pace").value))} a second`; };
  $("pace").oninput();
  $("pace").onchange = () => ask(`pace ${Math.max(1, Math.round(paceOf(+$("pace").value)))}`);
  $("halt").onclick = async () => {
    const isHeld = $("halt").textContent === "let it go on";
    if (await ask(isHeld ? "go" : "stop")) $("halt").textContent = isHeld ? "hold time" : "let it go on";
  };
}

const isCut = (name) => frames.length > 0 && frames[frames.length - 1].dead.has(name);
function tellCable() {
  const said = isCut($("cable").value) ? "mend it" : "cut it";
  if ($("cut").textContent !== said) $("cut").textContent = said;
}

// --- the beginning, and what comes --------------------------------------------------------------

function say(state, text) {
  $("state").dataset.is = state;
  $("state").textContent = text;
}

function refresh() {
  isStale = false;
  if (isFollowing || at < 0) show(frames.length - 1);
  fill();
  tellMarks();
  tellCable();
  const [first, last] = span();
  if (!isFollowing && now()) $("slider").value = (1000 * (now().t - first)) / Math.max(1, last - first);
}

// All frames are there.
function end() {
  isFollowing = false;
  say("over", scene.replay ? "kept run" : "the run is over");
  setSpeeds();
  tellPlay();
  if (scene.replay) { show(0); play(); }
}

function listen() {
  if (held) {
    held.frames.forEach(take);
    refresh();
    return end();
  }
  const source = new EventSource("/frames");
  source.onmessage = ({ data }) => {
    const told = JSON.parse(data);
    if (told.key) forget();
    take(told);
    if (!scene.replay) say("live", "live");
    if (!isStale) {
      isStale = true;
      (document.hidden ? setTimeout : requestAnimationFrame)(refresh);
    }
  };
  source.addEventListener("over", () => {
    source.close();
    end();
  });
  source.onerror = () => {
    source.close();
    isFollowing = false;
    say("lost", "the run has ended, or its server has");
    setSpeeds();
    tellPlay();
    setTimeout(again, 2000);
  };
}

async function again() {
  try {
    const told = await (await fetch("/scene")).json();
    if (told.id !== scene.id) location.reload();
    else { isFollowing = true; listen(); }
  } catch {
    setTimeout(again, 2000);
  }
}

// A fabric that the page has not shown yet.
function stage(found) {
  const isDrawn = scene && ["drawing", "directions", "moving", "cables"].every((what) => String(scene[what]) === String(found[what]));
  scene = found;
  size = scene.directions.length;
  document.title = `${scene.name} · closlab`;
  $("name").textContent = scene.name;
  $("engine").textContent = { sim: "in the simulator", mininet: "on Mininet" }[scene.engine] + (scene.replay ? ", kept" : "");
  $("about").textContent = scene.about;
  if (!isDrawn) {
    draw();
    $("add").replaceChildren(new Option("add a direction…", ""), ...scene.directions.map((name, d) => new Option(name, d)));
  }
  guide();
}

// Another run in place of the one that is shown, at the same moment; what was drawn stays drawn.
function exchange(found, its) {
  const names = chosen.map(({ d, series }) => [scene.directions[d], series]), was = now();
  const isAtEnd = !was || was.last;
  stage(found);
  forget();
  longest = 1;
  its.forEach(take);
  chosen = names.map(([name, series]) => ({ d: scene.directions.indexOf(name), series })).filter(({ d }) => d >= 0);
  if (!isPlaying) setSpeeds();
  show(isAtEnd ? frames.length - 1 : placeOf(was.t));
  tellMarks();
  tellChosen();
  tellPlay();
}

async function begin() {
  stage(held ? held.scene : await (await fetch("/scene")).json());
  isFollowing = !scene.replay;
  $("add").onchange = () => { if ($("add").value) toggle([+$("add").value]); $("add").value = ""; };
  offer();
  setSpeeds();
  tellChosen();
  tellPlay();
  $("play").onclick = () => (isPlaying || isFollowing ? stop() : play());
  $("follow").onclick = () => { isPlaying = false; isFollowing = true; show(frames.length - 1); tellPlay(); };
  $("speed").onchange = () => { speed = +$("speed").value; if (isPlaying) play(); };
  $("slider").oninput = () => {
    const [first, last] = span(), value = +$("slider").value;
    stop();
    leap(first + ((last - first) * value) / 1000);
  };
  new ResizeObserver(() => {
    const wide = $("charts").clientWidth;
    for (const chart of charts) if (chart.width !== wide) chart.setSize({ width: wide, height: chart.height });
  }).observe($("charts"));
  listen();
  if (scene.tuned) beginToTune();
}

const themes = ["", "night", "day"], THEME = "closlab-theme";
function dress(name) {
  document.documentElement.dataset.theme = name;
  try { localStorage.setItem(THEME, name); } catch {}  // a page in another one may keep nothing
  for (const chart of charts) chart.redraw(false);
}
$("theme").onclick = () => dress(themes[(themes.indexOf(document.documentElement.dataset.theme || "") + 1) % 3]);
dress((() => { try { return localStorage.getItem(THEME); } catch {} })() || "");
matchMedia("(prefers-color-scheme:dark)").onchange = () => { for (const chart of charts) chart.redraw(false); };

// Who is hidden is not drawn: what waits for a drawing would wait until somebody looks.
document.addEventListener("visibilitychange", () => { if (document.hidden && isStale) refresh(); });

document.addEventListener("keydown", (event) => {
  if (!scene || event.ctrlKey || event.metaKey || event.altKey) return;
  const { tagName, id } = event.target;  // which may have a use for the key itself
  if (tagName === "SELECT" || (tagName === "INPUT" && id !== "slider")) return;
  if (tagName === "BUTTON" && event.key === " ") return;
  const step = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[event.key];
  if (event.key === " ") $("play").click();
  else if (event.key === "n" && scene.steps.length) stepOn();
  else if (event.key === "b" && scene.steps.length) toStep(stepAt - 1);
  else if (step) { stop(); show(at + step); }
  else return;
  event.preventDefault();
});
begin();
