// What of VS Code the extension uses, as far as it goes without a window; and a turn with it.
//   node editor_vscode.js CLIENT.JS FILE LINE CHARACTER COMMAND...
"use strict";

const fs = require("fs");
const Module = require("module");
const [client, file, line, character, ...command] = process.argv.slice(2);

const plain = (...names) => class { constructor(...given) { names.forEach((n, i) => (this[n] = given[i])); } };
const nothing = { dispose() {} };
const providers = {};
const wrong = new Map();
const listen = () => nothing;
const register = (name) => (_, provider) => ((providers[name] = provider), nothing);
const document = {
  languageId: "p4", version: 1, getText: () => fs.readFileSync(file, "utf8"),
  uri: { toString: () => "file://" + file },
};
const vscode = {
  Range: plain("sl", "sc", "el", "ec"), Location: plain("uri", "range"), Hover: plain("contents"),
  MarkdownString: plain("value"), Diagnostic: plain("range", "message", "severity"),
  DocumentSymbol: plain("name", "detail", "kind", "range", "selected"),
  DocumentHighlight: plain("range"), CompletionItem: plain("label", "kind"),
  WorkspaceEdit: class { constructor() { this.all = []; } replace(uri, range, text) { this.all.push(text); } },
  Uri: { parse: (text) => text },
  window: { showErrorMessage: (text) => { console.log("message", text); } },
  commands: { registerCommand: listen },
  workspace: {
    workspaceFolders: undefined, textDocuments: [document],
    getConfiguration: () => ({ get: (name, usual) => (name === "command" ? command : usual) }),
    createFileSystemWatcher: () => ({ ...nothing, onDidCreate: listen, onDidChange: listen, onDidDelete: listen }),
    onDidOpenTextDocument: listen, onDidChangeTextDocument: listen, onDidCloseTextDocument: listen,
  },
  languages: {
    createDiagnosticCollection: () => ({ ...nothing, set: (uri, all) => wrong.set(uri, all), clear() {} }),
    registerHoverProvider: register("hover"), registerDefinitionProvider: register("definition"),
    registerReferenceProvider: register("references"), registerRenameProvider: register("rename"),
    registerDocumentHighlightProvider: register("highlight"),
    registerDocumentSymbolProvider: register("symbols"),
    registerCompletionItemProvider: register("completion"),
  },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

async function turn() {
  const extension = require(client);
  await extension.activate({ subscriptions: [] });
  const at = { line: Number(line), character: Number(character) };
  const said = {
    hover: (await providers.hover.provideHover(document, at)).contents.value,
    definition: (await providers.definition.provideDefinition(document, at)).length,
    references: (await providers.references.provideReferences(document, at, { includeDeclaration: true })).length,
    highlight: (await providers.highlight.provideDocumentHighlights(document, at)).length,
    placeholder: (await providers.rename.prepareRename(document, at)).placeholder,
    rename: (await providers.rename.provideRenameEdits(document, at, "fresh")).all,
    refused: await providers.rename.provideRenameEdits(document, at, "if").catch((e) => e.message),
    symbols: (await providers.symbols.provideDocumentSymbols(document)).map((each) => each.name),
    completion: (await providers.completion.provideCompletionItems(document, at)).length,
  };
  while (!wrong.size) await new Promise((resolve) => setTimeout(resolve, 20));
  said.wrong = [...wrong.values()].flat().map((each) => each.code);
  await extension.deactivate();
  console.log(JSON.stringify(said));
}

turn().catch((error) => { console.log(error.stack); process.exit(1); });
