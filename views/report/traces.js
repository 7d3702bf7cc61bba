// Rows of bars over time, which one zooms into and searches: traces.py tells what is in them.
for (const box of document.querySelectorAll(".traces")) {
  const told = JSON.parse(box.querySelector("script").textContent);
  const [view, room, canvas] = ["view", "room", "canvas"].map((name) => box.querySelector(`.${name}`));
  const search = box.querySelector("input"), said = box.querySelector("output");
  const [closer, further, all] = box.querySelectorAll("button");
  const ROW = 15, AXIS = 20, LEFT = 118, BAR = 11, MIN_NS = 10;
  const colours = ["--work", "--message", "--drop", "--pause"];
  const plain = `${told.rows.length} rows, ${told.bars.toLocaleString("en")} bars` +
    (told.rows.reduce((sum, [, bars]) => sum + bars.length / 4, 0) < told.bars ? ", the longest of them here" : "");
  let from = 0, to = told.end, rows = told.rows, found = null;

  const inUnit = (ns) => {
    const [name, of] = ns >= 1e6 ? ["ms", 1e6] : ns >= 1e3 ? ["µs", 1e3] : ["ns", 1];
    return `${+(ns / of).toPrecision(6)} ${name}`;
  };
  const wide = () => canvas.clientWidth - LEFT - 8;
  const x = (ns) => LEFT + (ns - from) / (to - from) * wide();
  const ns = (place) => from + (place - LEFT) / wide() * (to - from);

  const step = () => {
    const least = (to - from) / Math.max(2, wide() / 110), size = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map((by) => by * size).find((each) => each >= least);
  };

  function draw() {
    const ratio = devicePixelRatio || 1, width = view.clientWidth, high = view.clientHeight;
    if (!width) return;  // folded
    canvas.style.width = `${width}px`;
    canvas.style.height = `${high}px`;
    canvas.width = width * ratio;
    canvas.height = high * ratio;
    room.style.height = `${rows.length * ROW + AXIS}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const style = getComputedStyle(box), by = step();
    const [ink, faint, rule, paper] = ["--ink", "--faint", "--rule", "--paper"].map((name) => style.getPropertyValue(name));
    const kinds = colours.map((name) => style.getPropertyValue(name));
    for (let at = Math.ceil(from / by) * by; at <= to; at += by) {
      pen.fillStyle = rule;
      pen.fillRect(x(at), AXIS, 1, high);
      pen.fillStyle = faint;
      pen.fillText(inUnit(at), Math.min(x(at) + 3, width - 50), AXIS / 2);
    }
    const first = Math.floor(view.scrollTop / ROW);
    for (let place = first; place < rows.length && (place - first) * ROW < high; place++) {
      const [name, bars] = rows[place], y = AXIS + place * ROW - view.scrollTop;
      if (y < AXIS - ROW) continue;
      for (let i = 0; i < bars.length; i += 4) {
        const begin = x(bars[i]), end = x(bars[i] + bars[i + 1]);
        if (end < LEFT || begin > width) continue;
        pen.globalAlpha = !found || found.has(bars[i + 2]) ? 1 : 0.18;
        pen.fillStyle = kinds[bars[i + 3]];
        const left = Math.max(LEFT, begin), wideness = Math.max(1, Math.min(width, end) - left);
        pen.fillRect(left, y + 2, wideness > 3 ? wideness - 0.7 : wideness, BAR);
        const word = told.words[bars[i + 2]].split(",")[0];
        if (wideness > 6.2 * word.length + 6) {
          pen.fillStyle = paper;
          pen.fillText(word, left + 3, y + 2 + BAR / 2);
        }
      }
      pen.globalAlpha = 1;
      pen.fillStyle = paper;
      pen.fillRect(0, y, LEFT - 2, ROW);
      pen.fillStyle = ink;
      pen.fillText(name, 2, y + ROW / 2, LEFT - 6);
    }
    pen.fillStyle = paper;
    pen.fillRect(0, 0, LEFT - 2, AXIS);
    box.dataset.from = Math.round(from);
    box.dataset.to = Math.round(to);
  }

  function zoom(by, around = (from + to) / 2) {
    const span = Math.min(told.end, Math.max(MIN_NS, (to - from) * by));
    look(around - (around - from) / (to - from) * span, span);
  }

  function look(begin, span) {
    from = Math.max(0, Math.min(told.end - span, begin));
    to = from + span;
    draw();
  }

  function under({ offsetX, offsetY }) {
    const row = rows[Math.floor((offsetY - AXIS + view.scrollTop) / ROW)];
    if (!row || offsetX < LEFT || offsetY < AXIS) return null;
    const at = ns(offsetX), near = 2 * (to - from) / wide();
    for (let i = 0; i < row[1].length; i += 4)
      if (row[1][i] - near <= at && at <= row[1][i] + row[1][i + 1] + near) return [row[0], row[1].slice(i, i + 4)];
    return null;
  }

  // What is searched for: a row by its name, or bars by their words.
  function seek() {
    const wanted = search.value.trim().toLowerCase();
    found = null;
    rows = told.rows;
    said.textContent = plain;
    if (wanted) {
      const words = new Set(told.words.flatMap((word, at) => (word.toLowerCase().includes(wanted) ? [at] : [])));
      const isNamed = ([name]) => name.toLowerCase().includes(wanted);
      const named = told.rows.filter(isNamed);
      let count = 0;
      rows = named.length ? named : told.rows.filter(([, bars]) => bars.some((each, i) => i % 4 === 2 && words.has(each)));
      if (!named.length) {
        found = words;
        for (const [, bars] of rows) for (let i = 2; i < bars.length; i += 4) count += words.has(bars[i]);
      }
      said.textContent = `${rows.length} rows` + (named.length ? "" : `, ${count.toLocaleString("en")} bars`);
    }
    view.scrollTop = 0;
    draw();
  }

  let held = null;
  canvas.onpointerdown = (event) => { held = [event.offsetX, from]; canvas.setPointerCapture(event.pointerId); };
  canvas.onpointerup = () => { held = null; };
  canvas.onpointermove = (event) => {
    if (held) { look(held[1] - (event.offsetX - held[0]) / wide() * (to - from), to - from); return; }
    const what = under(event);
    said.textContent = what
      ? `${what[0]}: ${told.words[what[1][2]]}; from ${inUnit(what[1][0])} for ${inUnit(what[1][1])}` : plain;
  };
  canvas.ondblclick = (event) => zoom(0.25, ns(event.offsetX));
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, ns(event.offsetX));
  }, { passive: false });
  view.onscroll = draw;
  view.onkeydown = (event) => {
    const span = to - from;
    const does = {
      w: () => zoom(0.5), "+": () => zoom(0.5), s: () => zoom(2), "-": () => zoom(2), 0: () => look(0, told.end),
      a: () => look(from - span / 4, span), ArrowLeft: () => look(from - span / 4, span),
      d: () => look(from + span / 4, span), ArrowRight: () => look(from + span / 4, span),
    }[event.key];
    if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    does();
  };
  closer.onclick = () => zoom(0.5);
  further.onclick = () => zoom(2);
  all.onclick = () => look(0, told.end);
  search.oninput = seek;
  new ResizeObserver(draw).observe(view);
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", draw);
  box.hidden = false;
  seek();
}
