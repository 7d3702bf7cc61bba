// The page: a scenario or a lesson, by its address.

import * as course from "./course.js";
import { begin, stop, tell, whenReady } from "./lab.js";
import * as run from "./run.js";

const at = (id) => document.getElementById(id);
const NEEDED = { WebAssembly: "WebAssembly", Worker: "workers", BigInt64Array: "64-bit integers" };

const show = () => {
  const address = location.hash.slice(1);
  const isLesson = new URLSearchParams(address).has("lesson");
  for (const view of document.querySelectorAll("[data-view]"))
    view.hidden = (view.dataset.view === "course") !== isLesson;
  for (const [name, is] of [["to-course", isLesson], ["to-run", !isLesson]])
    if (is) at(name).setAttribute("aria-current", "page");
    else at(name).removeAttribute("aria-current");
  document.querySelector("[data-view]:not([hidden]) .status").append(at("progress"));
  if (isLesson) course.open(address);
  else run.restore(address);
  at("to-run").href = `#${run.lastAsked()}`;
  at("to-course").href = `#${course.lastOpen()}`;
};

for (const each of document.querySelectorAll("[data-stops]")) each.addEventListener("click", () => stop());
addEventListener("hashchange", show);
whenReady.push(show);
show();
const lacks = Object.keys(NEEDED).find((name) => !(name in window));
if (lacks) tell(`This browser has no ${NEEDED[lacks]}, without which the lab cannot run here.`, true);
else begin();
navigator.serviceWorker?.register("offline.js").catch(() => {}); // where pages may have one
