// A scenario's key as a lever: its name, what one slides or chooses by, and the exact value.
"use strict";
const leverRow = (() => {
  const named = (kind, attributes) => Object.assign(document.createElement(kind), attributes);
  const spoken = (stop) => (stop === "" ? "as it is without" : stop);
  const sizes = { "": 1, ns: 1, us: 1e3, ms: 1e6, s: 1e9, b: 1, kb: 1e3, mb: 1e6, gb: 1e9, kib: 1024, mib: 2 ** 20, gib: 2 ** 30 };
  const worth = (text) => {
    const found = /^([\d.e+-]+)\s*([a-z]*)$/i.exec(text);
    return found ? +found[1] * (sizes[found[2].toLowerCase()] ?? NaN) : NaN;
  };
  const nearestStop = (lever, value) => {
    const wanted = worth(value);
    const place = lever.stops.findIndex((stop) => stop !== "" && worth(stop) >= wanted);
    return place < 0 ? lever.stops.length - 1 : place;
  };

  // turn(value) is called when it was turned, mean() when somebody looks at it; show(value) shows one.
  return (lever, turn, mean) => {
    const element = named("div", { className: "lever" }), name = `lever-${lever.key}`;
    const label = named("label", { htmlFor: name, textContent: lever.key, title: lever.about });
    const exact = named("input", { id: name, type: "text", placeholder: "not set", spellcheck: false, autocomplete: "off" });
    let easy;
    if (lever.is_number && lever.stops.length) {
      easy = named("input", { type: "range", min: 0, max: lever.stops.length - 1, step: 1 });
      easy.oninput = () => { exact.value = lever.stops[+easy.value]; easy.setAttribute("aria-valuetext", spoken(exact.value)); };
      easy.onchange = () => turn(lever.stops[+easy.value]);
    } else if (lever.stops.length) {
      easy = named("select", {});
      easy.append(...lever.stops.map((stop) => new Option(spoken(stop), stop)));
      easy.onchange = () => turn(easy.value);
      exact.hidden = true;
      label.htmlFor = `${name}-easy`;
    }
    if (easy) {
      easy.id = `${name}-easy`;
      if (!exact.hidden) easy.setAttribute("aria-label", lever.key);
    }
    exact.onchange = () => turn(exact.value.trim());
    element.append(label, ...(easy ? [easy] : [named("span", {})]), exact);
    for (const part of [exact, easy]) part?.addEventListener("focus", mean);
    element.onpointerenter = mean;
    const show = (value) => {
      exact.value = value;
      const place = lever.stops.indexOf(value);
      if (easy?.type === "range") {
        easy.value = place >= 0 ? place : nearestStop(lever, value);
        easy.setAttribute("aria-valuetext", spoken(value));
      } else if (easy) easy.value = value;
      element.classList.toggle("is-turned", value !== lever.now);
    };
    return { element, show };
  };
})();
