// Moves through the moments of a fabric: moments.py tells what elements and digits mean. The
// slider's first place is the whole run, as the picture stands without this script.
for (const box of document.querySelectorAll(".moments")) {
  const figure = box.closest("figure"), svg = figure.querySelector("svg");
  const told = JSON.parse(figure.querySelector("script").textContent);
  const button = box.querySelector("button"), slider = box.querySelector("input");
  const said = box.querySelector("output"), marks = box.querySelector(".marks");
  const changing = ["stroke", "stroke-width", "fill", "fill-opacity", "r", "width", "height", "transform"];
  const shapes = [..."bpq"].flatMap((kind, place) =>
    [...svg.querySelectorAll(`[data-${kind}]`)].map((shape) => ({
      shape, kind, at: 3 * shape.dataset[kind] + place,
      usual: changing.map((name) => [name, shape.getAttribute(name)]),
    })));
  const set = (shape, values) => {
    for (const [name, value] of values)
      if (value === null) shape.removeAttribute(name);
      else shape.setAttribute(name, value);
  };
  const show = (moment) => {
    const frame = told.frames[moment - 1];
    for (const { shape, kind, at, usual } of shapes)
      set(shape, frame ? looks[kind](parseInt(frame[at], 36), shape) : usual);
    said.textContent = frame ? told.said[moment - 1] : told.whole;
    slider.value = moment;
    slider.setAttribute("aria-valuetext", said.textContent);
  };
  let timer = 0;
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    button.textContent = "\u25b6 play";
  };
  slider.max = told.frames.length;
  slider.oninput = () => { stop(); show(+slider.value); };
  button.onclick = () => {
    if (timer) return stop();
    button.textContent = "\u23f8 stop";
    let moment = +slider.value % told.frames.length;
    timer = setInterval(() => {
      show(++moment);
      if (moment >= told.frames.length) stop();
    }, 120);
  };
  for (const [place, what] of told.marks) {
    const mark = document.createElement("span");
    mark.style.left = place / 10 + "%";
    mark.title = what;
    marks.append(mark);
  }
  box.hidden = false;
  stop();
  show(0);
  const light = (lit) => {
    for (const { shape, kind } of shapes)
      shape.classList.toggle("lit", kind === "b" && lit.includes(+shape.dataset.b));
  };
  if (told.steps.length) guide();
  if (told.chains.length + told.slow.length + told.jobs.length + told.phases.length) follow();

  // Why a direction stood still, a message was slow, a job or a phase long: chosen by its name, or by a click on it.
  function follow() {
    const line = box.querySelector(".follow"), choice = line.querySelector("select");
    const why = line.querySelector("span");
    const answers = new Map([["", ["", []]]]);
    choice.append(new Option("\u2026", ""));
    const offer = (label, kind, all) => {
      const group = document.createElement("optgroup");
      group.label = label;
      for (const [place, [name, what, ...lit]] of all.entries()) {
        answers.set(kind + place, [what, lit.at(-1)]);
        group.append(new Option(name, kind + place));
      }
      if (all.length) choice.append(group);
    };
    offer("messages", "m", told.slow);
    offer("jobs", "j", told.jobs);
    offer("phases", "p", told.phases);
    offer("links that stood still", "l", told.chains);
    choice.onchange = () => {
      const [what, lit] = answers.get(choice.value);
      why.textContent = what;
      light(lit);
    };
    const ask = (answer) => { stop(); choice.value = answer; choice.onchange(); };
    for (const shape of document.querySelectorAll("[data-why]")) {
      shape.style.cursor = "pointer";
      shape.onclick = () => { ask(shape.dataset.why); figure.scrollIntoView({ block: "nearest" }); };
    }
    for (const { shape } of shapes.filter(({ kind, shape: { tagName } }) => kind === "b" && tagName === "line")) {
      const place = told.chains.findIndex(([, , at]) => at === +shape.dataset.b);
      if (place < 0) continue;
      const reach = shape.cloneNode(false);  // a line is too thin for a finger
      for (const name of ["data-b", "stroke", "stroke-width"]) reach.removeAttribute(name);
      reach.setAttribute("class", "reach");
      reach.onclick = () => ask("l" + place);
      shape.after(reach);
    }
    line.hidden = false;
  }

  // Step by step: each has its moment, and what it is about is lit. Arrow keys lead on. Who asks
  // first has the moment shown, and is told at the next key what happened.
  function guide() {
    const steps = box.querySelector(".steps"), text = steps.querySelector("p");
    const [before, next, ask, present] = steps.querySelectorAll("button");
    let at = -1, isOpen = false;
    const go = (to) => {
      at = Math.max(-1, Math.min(told.steps.length - 1, to));
      const [moment, what, lit] = told.steps[at] ?? [0, `What happened, in ${told.steps.length} steps`, []];
      stop();
      show(moment);
      light(isOpen ? [] : lit);
      text.textContent = at < 0 ? what : `${at + 1} of ${told.steps.length}. ${isOpen ? `${what.split(": ")[0]}: what happens?` : what}`;
      before.disabled = at < 0;
      next.disabled = at === told.steps.length - 1 && !isOpen;
    };
    const on = () => {
      const isAsking = ask.getAttribute("aria-pressed") === "true";
      const isTold = isOpen || !isAsking || at === told.steps.length - 1;
      const to = isOpen ? at : at + 1;
      isOpen = !isTold;
      go(to);
    };
    const back = () => { isOpen = false; go(at - 1); };
    const shown = (isSo) => {
      figure.classList.toggle("present", isSo);
      present.setAttribute("aria-pressed", isSo);
    };
    before.onclick = back;
    next.onclick = on;
    ask.onclick = () => ask.setAttribute("aria-pressed", ask.getAttribute("aria-pressed") !== "true");
    present.onclick = () => shown(!figure.classList.contains("present"));
    document.addEventListener("keydown", (event) => {
      const isHere = figure.classList.contains("present") || steps.contains(event.target);
      const by = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[event.key];
      if (!isHere || event.target === slider || !(by || event.key === "Escape")) return;
      event.preventDefault();
      if (by > 0) on();
      else if (by) back();
      else shown(false);
    });
    slider.addEventListener("input", () => light([]));
    button.addEventListener("click", () => light([]));
    steps.hidden = false;
    go(-1);
  }
}
// A click on a switch of a large fabric unfolds its part: parts.py.
for (const parts of document.querySelectorAll(".parts"))
  document.querySelector("svg:has([data-part])").onclick = ({ target }) => {
    if (!target.dataset.part) return;
    parts.children[target.dataset.part].open = true;
    parts.scrollIntoView({ block: "nearest" });
  };
