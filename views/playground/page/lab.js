// The lab in its worker: what it is asked, what it says, and how it is loaded anew.

const progress = document.getElementById("progress");
const asked = new Map(); // by number: who waits for an answer, and hears of it so far
let worker, number = 0;

// What there is: scenarios, keys, P4. Not before it is loaded.
export let offered;
// What is done each time it is loaded.
export const whenReady = [];

export const tell = (text, hasFailed = false) => {
  progress.classList.toggle("failed", hasFailed);
  progress.textContent = text;
};

const showsFailure = () => progress.classList.contains("failed");

const showBusy = () => {
  const isBusy = [...asked.values()].some(({ isQuiet }) => !isQuiet);
  for (const each of document.querySelectorAll("[data-begins]")) each.disabled = !offered || isBusy;
  for (const each of document.querySelectorAll("[data-stops]")) each.disabled = !isBusy;
};

const answer = (at, found) => {
  const who = asked.get(at);
  asked.delete(at);
  showBusy();
  who?.resolve(found);
};

const answerAll = (found) => [...asked.keys()].forEach((at) => answer(at, found));

const heard = {
  told: (text) => showsFailure() || tell(text),
  soFar: (found, at) => asked.get(at)?.soFar?.(found),
  done: (found, at) => answer(at, found),
  ready: (found) => {
    offered = found;
    whenReady.forEach((act) => act());
    showBusy();
    showsFailure() || tell("Ready.");
  },
  failed: (error) => {
    answerAll({ stopped: true });
    tell(error, true);
  },
  brokeOff: (error) => {
    begin();
    heard.failed(`${error}\nThe lab is loaded anew.`);
  },
};

export const begin = () => {
  worker?.terminate();
  offered = undefined;
  worker = new Worker("worker.js", { type: "module" });
  worker.onmessage = ({ data: { kind, what, at } }) => heard[kind](what, at);
  worker.onerror = ({ message }) =>
    heard[offered ? "brokeOff" : "failed"](`the lab has ended: ${message ?? "no memory"}`);
};

// Ask it; what comes back is its answer, {error, cure}, or {stopped}. What is asked quietly keeps
// nobody from asking for more.
export const ask = (what, words, { soFar, isQuiet = false } = {}) =>
  new Promise((resolve) => {
    asked.set(++number, { resolve, soFar, isQuiet });
    showBusy();
    worker.postMessage({ at: number, what, words });
  });

// Whatever it is doing, it does it no longer.
export const stop = (why = "Stopped; the lab is loaded anew.") => {
  begin();
  answerAll({ stopped: true });
  tell(why);
};
