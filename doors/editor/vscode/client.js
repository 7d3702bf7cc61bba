// Starts `closlab lsp` and lets VS Code ask it: no package is needed, and nothing is built.
"use strict";

const { spawn } = require("child_process");
const vscode = require("vscode");

const LANGUAGE = "p4";

/** The protocol over a process's stdin and stdout. */
class Connection {
  constructor(command, cwd, told) {
    this.told = told; // what becomes of notifications
    this.waiting = new Map();
    this.number = 0;
    this.rest = Buffer.alloc(0);
    this.process = spawn(command[0], command.slice(1), { cwd });
    this.process.stdout.on("data", (piece) => this.read(piece));
    this.gone = new Promise((resolve) => {
      this.process.on("error", resolve);
      this.process.on("exit", resolve);
    });
    this.process.stdin.on("error", () => {});
    this.gone.then(() => {
      for (const { refuse } of this.waiting.values()) refuse(new Error("the server is gone"));
      this.waiting.clear();
    });
  }

  read(piece) {
    this.rest = Buffer.concat([this.rest, piece]);
    for (;;) {
      const end = this.rest.indexOf("\r\n\r\n");
      const size = end < 0 ? null : /content-length: *(\d+)/i.exec(this.rest.toString("ascii", 0, end));
      if (!size || this.rest.length < end + 4 + Number(size[1])) return;
      const body = this.rest.subarray(end + 4, end + 4 + Number(size[1]));
      this.rest = this.rest.subarray(end + 4 + Number(size[1]));
      this.take(JSON.parse(body.toString("utf8")));
    }
  }

  take(message) {
    const waits = this.waiting.get(message.id);
    if (message.method) {
      if (message.id === undefined) this.told(message.method, message.params);
      else this.send({ id: message.id, result: null });
    } else if (waits) {
      this.waiting.delete(message.id);
      if (message.error) waits.refuse(new Error(message.error.message));
      else waits.resolve(message.result);
    }
  }

  send(message) {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }), "utf8");
    this.process.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.process.stdin.write(body);
  }

  notify(method, params) {
    this.send({ method, params });
  }

  ask(method, params, cancel) {
    const id = ++this.number;
    const answer = new Promise((resolve, refuse) => this.waiting.set(id, { resolve, refuse }));
    if (cancel) cancel.onCancellationRequested(() => this.notify("$/cancelRequest", { id }));
    this.send({ id, method, params });
    return answer;
  }
}

const position = (at) => ({ line: at.line, character: at.character });
const place = (document, at) => ({
  textDocument: { uri: document.uri.toString() },
  position: position(at),
});
const range = (given) =>
  new vscode.Range(given.start.line, given.start.character, given.end.line, given.end.character);
const location = (given) => new vscode.Location(vscode.Uri.parse(given.uri), range(given.range));

function symbol(given) {
  // The protocol counts kinds from 1, and VS Code from 0.
  const made = new vscode.DocumentSymbol(
    given.name, given.detail || "", given.kind - 1, range(given.range), range(given.selectionRange)
  );
  made.children = (given.children || []).map(symbol);
  return made;
}

function shown(given) {
  const made = new vscode.Diagnostic(range(given.range), given.message, given.severity - 1);
  made.code = given.code;
  made.source = given.source;
  made.tags = given.tags;
  return made;
}

/** One server, and what VS Code asks it. */
class Client {
  constructor(wrong) {
    this.wrong = wrong;
    this.parts = [];
  }

  async start() {
    const settings = vscode.workspace.getConfiguration("closlab");
    const folders = vscode.workspace.workspaceFolders || [];
    const command = settings.get("command", ["closlab", "lsp"]);
    const cwd = folders.length ? folders[0].uri.fsPath : undefined;
    this.connection = new Connection(command, cwd, (method, params) => this.hear(method, params));
    this.connection.gone.then((why) => {
      if (!this.isStopped) {
        vscode.window.showErrorMessage(
          `'${command.join(" ")}' ended (${(why && why.message) || why}). ` +
            "Say in closlab.command how it is started."
        );
      }
    });
    await this.connection.ask("initialize", {
      processId: process.pid,
      rootUri: folders.length ? folders[0].uri.toString() : null,
      workspaceFolders: folders.map((each) => ({ uri: each.uri.toString(), name: each.name })),
      capabilities: {},
      initializationOptions: {
        includeDirs: settings.get("includeDirs", []),
        defines: settings.get("defines", []),
      },
    });
    this.connection.notify("initialized", {});
    vscode.workspace.textDocuments.forEach((each) => this.open(each));
    const watcher = vscode.workspace.createFileSystemWatcher("**/*.p4");
    const outside = () => this.connection.notify("workspace/didChangeWatchedFiles", { changes: [] });
    this.parts.push(
      watcher,
      watcher.onDidCreate(outside), watcher.onDidChange(outside), watcher.onDidDelete(outside),
      vscode.workspace.onDidOpenTextDocument((each) => this.open(each)),
      vscode.workspace.onDidChangeTextDocument((event) => this.change(event)),
      vscode.workspace.onDidCloseTextDocument((each) => this.close(each)),
      ...this.providers()
    );
  }

  hear(method, params) {
    if (method === "textDocument/publishDiagnostics") {
      this.wrong.set(vscode.Uri.parse(params.uri), params.diagnostics.map(shown));
    }
  }

  open(document) {
    if (document.languageId !== LANGUAGE) return;
    this.connection.notify("textDocument/didOpen", {
      textDocument: {
        uri: document.uri.toString(), languageId: LANGUAGE,
        version: document.version, text: document.getText(),
      },
    });
  }

  change(event) {
    if (event.document.languageId !== LANGUAGE || !event.contentChanges.length) return;
    this.connection.notify("textDocument/didChange", {
      textDocument: { uri: event.document.uri.toString(), version: event.document.version },
      contentChanges: event.contentChanges.map((each) => ({
        range: { start: position(each.range.start), end: position(each.range.end) },
        text: each.text,
      })),
    });
  }

  close(document) {
    if (document.languageId !== LANGUAGE) return;
    const uri = document.uri.toString();
    this.connection.notify("textDocument/didClose", { textDocument: { uri } });
  }

  providers() {
    const ask = (method, params, cancel) =>
      this.connection.ask(`textDocument/${method}`, params, cancel);
    const { languages } = vscode;
    return [
      languages.registerHoverProvider(LANGUAGE, {
        provideHover: async (document, at, cancel) => {
          const found = await ask("hover", place(document, at), cancel);
          return found && new vscode.Hover(new vscode.MarkdownString(found.contents.value));
        },
      }),
      languages.registerDefinitionProvider(LANGUAGE, {
        provideDefinition: async (document, at, cancel) =>
          (await ask("definition", place(document, at), cancel)).map(location),
      }),
      languages.registerReferenceProvider(LANGUAGE, {
        provideReferences: async (document, at, context, cancel) =>
          (await ask("references", { ...place(document, at), context }, cancel)).map(location),
      }),
      languages.registerDocumentHighlightProvider(LANGUAGE, {
        provideDocumentHighlights: async (document, at, cancel) =>
          (await ask("documentHighlight", place(document, at), cancel)).map(
            (each) => new vscode.DocumentHighlight(range(each.range))
          ),
      }),
      languages.registerRenameProvider(LANGUAGE, {
        prepareRename: async (document, at, cancel) => {
          const found = await ask("prepareRename", place(document, at), cancel);
          return { range: range(found.range), placeholder: found.placeholder };
        },
        provideRenameEdits: async (document, at, newName, cancel) => {
          const found = await ask("rename", { ...place(document, at), newName }, cancel);
          const edit = new vscode.WorkspaceEdit();
          for (const [uri, changes] of Object.entries(found.changes)) {
            for (const each of changes) edit.replace(vscode.Uri.parse(uri), range(each.range), each.newText);
          }
          return edit;
        },
      }),
      languages.registerDocumentSymbolProvider(LANGUAGE, {
        provideDocumentSymbols: async (document, cancel) => {
          const textDocument = { uri: document.uri.toString() };
          return (await ask("documentSymbol", { textDocument }, cancel)).map(symbol);
        },
      }),
      languages.registerCompletionItemProvider(
        LANGUAGE,
        {
          provideCompletionItems: async (document, at, cancel) =>
            (await ask("completion", place(document, at), cancel)).items.map((each) => {
              const made = new vscode.CompletionItem(each.label, each.kind - 1);
              made.detail = each.detail;
              return made;
            }),
        },
        "."
      ),
    ];
  }

  async stop() {
    this.isStopped = true;
    this.parts.splice(0).forEach((each) => each.dispose());
    this.wrong.clear();
    await this.connection.ask("shutdown", null).catch(() => {});
    this.connection.notify("exit");
    await this.connection.gone;
  }
}

let client = null;

async function activate(context) {
  const wrong = vscode.languages.createDiagnosticCollection("closlab");
  const start = async () => {
    if (client) await client.stop();
    client = new Client(wrong);
    await client.start();
  };
  context.subscriptions.push(wrong, vscode.commands.registerCommand("closlab.restart", start));
  await start();
}

async function deactivate() {
  if (client) await client.stop();
  client = null;
}

module.exports = { activate, deactivate };
