"""A small client of the Language Server Protocol, which tests drive the server with."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from lab.machine.paths import ROOT
from tests.lab.ready import Ready

SERVER = ("-c", "from lab.cli import main; main()", "lsp")
_PATIENCE_S = 60


def framed(body: bytes) -> bytes:
    """A body as it goes over the wire."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@cache
def _ready() -> Ready:
    """A process that has read the server's code, once for all clients."""
    return Ready("lab.commands.lsp", "doors.editor.server")


class Client:
    """A server of its own, at whose other end we are."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self.server = _ready().start(
            ["lsp", *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert self.server.stdin and self.server.stdout
        self._stdin, self._stdout = self.server.stdin, self.server.stdout
        self._said: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.diagnostics: dict[str, list[dict[str, Any]]] = {}  # what is wrong, by file
        self.strays: list[dict[str, Any]] = []  # answers without a number
        self._number = 0
        self._versions: dict[str, int] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while line := self._stdout.readline():
            if not line.lower().startswith(b"content-length"):
                continue
            while self._stdout.readline().strip():
                pass
            self._said.put(json.loads(self._stdout.read(int(line.split(b":")[1]))))
        self._said.put(None)

    def send(self, body: bytes) -> None:
        """Bytes as they are."""
        self._stdin.write(body)
        self._stdin.flush()

    def notify(self, method: str, params: Any = None) -> None:
        """Say something that is not answered."""
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        self.send(framed(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        """Ask something, and wait for what is said to it: a result or an error."""
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": params})
        return self._until(lambda said: said.get("id") == number and "method" not in said)

    def _until(self, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        until = time.monotonic() + _PATIENCE_S
        while True:
            said = self._said.get(timeout=max(0.01, until - time.monotonic()))
            assert said is not None, self.server.stderr and self.server.stderr.read()[-3000:]
            if said.get("method") == "textDocument/publishDiagnostics":
                params = said["params"]
                self.diagnostics[params["uri"]] = params["diagnostics"]
            if is_wanted(said):
                return said
            if said.get("id") is None and "error" in said:
                self.strays.append(said)

    def begin(self, **more: Any) -> dict[str, Any]:
        """Say who we are; what the server can."""
        said = self.ask(
            "initialize",
            {"processId": None, "rootUri": self.folder.as_uri(), "capabilities": {}, **more},
        )
        self.notify("initialized", {})
        found: dict[str, Any] = said["result"]["capabilities"]
        return found

    def uri(self, name: str) -> str:
        """What a file of the folder is called."""
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str | None = None) -> None:
        """Open a file, as it is on the disk or with another text."""
        text = (self.folder / name).read_text() if text is None else text
        self._versions[name] = 1
        document = {"uri": self.uri(name), "languageId": "p4", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, name: str, text: str, at: tuple[int, int] | None = None) -> None:
        """Have a file read like this, or text put in at a place."""
        self._versions[name] += 1
        change: dict[str, Any] = {"text": text}
        if at is not None:
            place = {"line": at[0], "character": at[1]}
            change["range"] = {"start": place, "end": place}
        document = {"uri": self.uri(name), "version": self._versions[name]}
        self.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": [change]}
        )

    def at(self, what: str, name: str, line: int, column: int, **more: Any) -> Any:
        """Ask something of a place; its result, or the error's message."""
        said = self.ask(
            f"textDocument/{what}",
            {
                "textDocument": {"uri": self.uri(name)},
                "position": {"line": line, "character": column},
                **more,
            },
        )
        return said["result"] if "result" in said else said["error"]["message"]

    def wrong(self, name: str, is_wanted: Callable[[list[dict[str, Any]]], bool]) -> list[str]:
        """What is wrong with a file, once it is as wanted."""
        uri = self.uri(name)
        while uri not in self.diagnostics or not is_wanted(self.diagnostics[uri]):
            self._until(lambda said: said.get("method") == "textDocument/publishDiagnostics")
        return [each["code"] for each in self.diagnostics[uri]]

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is None:
            self.ask("shutdown")
            self.notify("exit")
            assert self.server.wait(20) == 0
        else:
            self.server.kill()
            self.server.wait()
        assert self.server.stderr is not None
        errors = self.server.stderr.read()
        for stream in (self.server.stdin, self.server.stdout, self.server.stderr):
            if stream is not None:
                stream.close()
        if kind is None:
            assert b"Traceback" not in errors, errors[-3000:].decode(errors="replace")
