// Texts that are edited: with numbers at their lines, colours for what words are, and errors where
// they are.

/* global CodeMirror */

const words = (text) => Object.fromEntries(text.split(" ").map((word) => [word, true]));

CodeMirror.defineMIME("text/x-p4", {
  name: "clike",
  keywords: words(
    "abstract action actions apply const control default else entries enum error exit extern header " +
      "header_union if in inout key match_kind out package parser return select size state struct " +
      "switch table this transition type typedef value_set",
  ),
  types: words("bit bool int string varbit void tuple packet_in packet_out register counter meter"),
  atoms: words("true false accept reject exact ternary lpm range optional selector"),
  hooks: {
    "#": (stream) => (stream.skipToEnd(), "meta"),
    "@": (stream) => (stream.eatWhile(/\w/), "meta"),
  },
});
const MODES = { p4: "text/x-p4", py: "python", yaml: "yaml" };
// A file's name, a line, perhaps a column, and what is said of it there.
const PLACE = /(?:^|[\s/])([\w-]+\.(?:p4|py|yaml)):(\d+)(?::\d+)?:?[ \t]*(.*)/g;

// Where a text says that something is wrong.
export const places = (text) =>
  [...text.matchAll(PLACE)].map(([, file, line, what]) => ({ file, line: +line, what }));

export const editor = (parent, label, changed) => {
  const made = CodeMirror(parent, {
    lineNumbers: true,
    inputStyle: "contenteditable",
    indentUnit: 4,
    screenReaderLabel: label,
    // Tab indents; after Esc it leads on, as it does everywhere else.
    extraKeys: { Esc: (it) => it.setOption("extraKeys", { ...it.getOption("extraKeys"), Tab: false }) },
  });
  const texts = {}; // by name, each with its own way back
  let open;
  made.on("focus", () => made.setOption("extraKeys", { Esc: made.getOption("extraKeys").Esc }));
  made.on("change", (_, { origin }) => origin !== "setValue" && changed(open, made.getValue()));

  const clear = (text) => {
    text.getAllMarks().forEach((mark) => mark.clear());
    text.eachLine((line) => {
      text.removeLineClass(line, "background", "wrong");
      line.widgets?.slice().forEach((widget) => widget.clear());
    });
  };
  return {
    // Show a file, which begins with a text if it was not shown before.
    show(name, text) {
      texts[name] ??= new CodeMirror.Doc(text, MODES[name.split(".").at(-1)]);
      open = name;
      made.swapDoc(texts[name]);
    },
    put(name, text) {
      texts[name]?.setValue(text);
    },
    forget() {
      for (const name of Object.keys(texts)) delete texts[name];
    },
    // Lead to a line of what is shown.
    goTo(line) {
      made.setCursor(line - 1, 0);
      made.scrollIntoView({ line: line - 1, ch: 0 }, 80);
    },
    // Say what is wrong at its places, in each file that was shown.
    mark(found) {
      for (const [name, text] of Object.entries(texts)) {
        clear(text);
        for (const { line, what } of found.filter(({ file }) => file === name)) {
          if (line > text.lineCount()) continue;
          text.addLineClass(line - 1, "background", "wrong");
          if (what) {
            const said = Object.assign(document.createElement("div"), { className: "said", textContent: what });
            text.addLineWidget(line - 1, said);
          }
        }
      }
    },
    refresh: () => made.refresh(),
  };
};
