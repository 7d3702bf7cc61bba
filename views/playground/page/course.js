// The course: a lesson is read, its files are edited and graded, and what was typed is kept.

import { editor, places } from "./editor.js";
import { keep, kept } from "./kept.js";
import { ask, offered, stop, tell } from "./lab.js";

const at = (id) => document.getElementById(id);
const { lessons, patience_s, endless } = await (await fetch("course.json")).json();
const MARKS = { passed: "ok", wrong: "wrong", "not judged": "-" };
const scores = kept("scores", {});
let lesson, typed; // the one that is open, and of its files those that are not as given

const files = editor(at("work"), "What is handed in", (name, text) => {
  if (text === lesson.files[name]) delete typed[name];
  else typed[name] = text;
  keepTyped();
});

const keepTyped = () => {
  at("given").disabled = !Object.keys(typed).length;
  keep(`lesson.${lesson.name}`, typed);
};

const option = ({ name, title }) => {
  const score = scores[name];
  return new Option(score ? `${title} (${score})` : title, name);
};

const list = () => {
  const chosen = lesson?.name;
  at("lesson").replaceChildren(...Object.values(lessons).map(option));
  if (chosen) at("lesson").value = chosen;
};

const showFile = () => files.show(at("handed-in").value, typed[at("handed-in").value] ?? lesson.files[at("handed-in").value]);

const named = (word) =>
  Object.keys(lessons).find((name) => name === word || name.replace(/^\d+-/, "") === word || Number(word) === parseInt(name, 10));

// Show the lesson that an address asks for, by number or name, or else the one looked at last.
export const open = (address) => {
  const name = named(new URLSearchParams(address).get("lesson")) ?? kept("lesson", Object.keys(lessons)[0]);
  if (lesson?.name === name) return;
  lesson = lessons[name];
  typed = kept(`lesson.${name}`, {});
  list();
  at("text").innerHTML = lesson.text;
  at("text").parentElement.scrollTop = 0;
  files.forget();
  at("handed-in").replaceChildren(...Object.keys(lesson.files).map((file) => new Option(file)));
  showFile();
  keepTyped();
  at("grade").replaceChildren();
  keep("lesson", name);
  history.replaceState(null, "", `#lesson=${name}`);
};

export const lastOpen = () => `lesson=${kept("lesson", Object.keys(lessons)[0])}`;

const line = (tag, text, className = "") => Object.assign(document.createElement(tag), { textContent: text, className });

const row = ({ check, state, score, max_score, what, where }) => {
  const item = line("li", "", state.replace(" ", "-"));
  item.append(line("b", MARKS[state]), ` ${check} (${score}/${max_score})`);
  if (state === "wrong") item.append(line("pre", what), line("p", `look: ${where}`));
  return item;
};

const show = ({ checks, score, max_score, passed }, isOver) => {
  at("grade").replaceChildren(...checks.map(row));
  const said = checks.filter(({ state }) => state === "wrong").map(({ what, where }) => `${what}\n${where}`);
  const wrong = places(said.join("\n")).filter(({ file }) => file in lesson.files);
  if (wrong.length) {
    at("handed-in").value = wrong[0].file;
    showFile();
    files.goTo(wrong[0].line);
  }
  files.mark(wrong);
  if (!isOver) return tell(`Judged: ${checks.at(-1).check}`);
  tell(`${score} of ${max_score} points${passed ? ": all of it" : ""}`);
  scores[lesson.name] = `${score} of ${max_score}`;
  keep("scores", scores);
  list();
};

const grade = async () => {
  let found = { checks: [] }, timer;
  at("grade").replaceChildren();
  const isEndless = () => {
    const [what, where] = endless;
    const check = { check: "What follows", state: "wrong", score: 0, max_score: 0, what, where };
    stop();
    show({ ...found, checks: [...found.checks, check] });
    tell(what, true);
  };
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(isEndless, 1000 * patience_s);
  };
  const soFar = (text) => {
    wait();
    show((found = JSON.parse(text)));
  };
  wait();
  tell("Begun");
  const handedIn = { ...lesson.files, ...typed };
  const told = await ask("grade", { lesson: lesson.name, files: handedIn }, { soFar });
  clearTimeout(timer);
  if (told.error) tell([told.error, told.cure].filter(Boolean).join("\n"), true);
  else if (!told.stopped) show(told, true);
  document.documentElement.dataset.graded = Number(document.documentElement.dataset.graded ?? 0) + 1;
};

at("lesson").addEventListener("change", () => (location.hash = `lesson=${at("lesson").value}`));
at("handed-in").addEventListener("change", showFile);
at("judge").addEventListener("click", grade);
at("given").addEventListener("click", () => {
  typed = {};
  for (const [name, text] of Object.entries(lesson.files)) files.put(name, text);
  files.mark([]);
  keepTyped();
});
