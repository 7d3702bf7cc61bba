"""What an editor's door may be sent by somebody who means it no good, drawn by a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.doors.editor_client import framed

_METHODS = ("initialize", "shutdown_", "textDocument/hover", "textDocument/rename", "x/y", "",
            "textDocument/didOpen", "textDocument/didChange", "textDocument/completion",
            "workspace/executeCommand", "$/cancelRequest", "textDocument/documentSymbol",
            "textDocument/definition", "textDocument/references", "completionItem/resolve",
            "notebookDocument/didOpen", "workspace/didChangeConfiguration", "$/setTrace",
            "textDocument/prepareRename", "workspace/didChangeWorkspaceFolders")  # fmt: skip
_VALUES: tuple[Any, ...] = (None, True, -1, 2**31, 2**63, 10**400, 1.5, "", "\0", "../../passwd",
                            "file:///etc/passwd", "file:///", "x" * 5000, [], {}, [[]], {"a": {}},
                            "\ud83d", "file://%00/x", "untitled:1")  # fmt: skip


def _value(drawn: random.Random, depth: int = 0) -> Any:
    if depth < 3 and drawn.random() < 0.3:
        keys = ("textDocument", "position", "uri", "line", "character", "newName", "text", "range",
                "contentChanges", "context", "id", "command", "settings", "event")  # fmt: skip
        return {drawn.choice(keys): _value(drawn, depth + 1) for _ in range(drawn.randrange(4))}
    return drawn.choice(_VALUES)


def _well_formed(drawn: random.Random, uri: str) -> dict[str, Any]:
    """What has the form of a question, and values that nobody means."""
    number = lambda: drawn.choice((0, 1, 3, 10**6, 2**31 - 1))  # noqa: E731
    place = {"line": number(), "character": number()}
    return {
        "textDocument": {"uri": drawn.choice((uri, uri + "x", "untitled:1", "file:///dev/zero"))},
        "position": place,
        "context": {"includeDeclaration": True},
        "newName": drawn.choice(("a b", "", "action", "main", "x" * 10**5, "ok_name", "é", "1x")),
        "contentChanges": [{"range": {"start": place, "end": place}, "text": "\0{{{("}],
    }


def messages(drawn: random.Random, uri: str, count: int) -> Iterator[bytes]:
    """So many of them, as bytes."""
    for at in range(count):
        number: Any = drawn.choice((f"h{at}", f"h{at}", 10**9 + at, None, [], {}, 1.5, True))
        request = {"jsonrpc": "2.0", "id": number, "method": drawn.choice(_METHODS)}
        match drawn.randrange(9):
            case 0:
                yield framed(drawn.randbytes(drawn.randrange(200)))
            case 1:
                yield framed(json.dumps(_value(drawn)).encode())
            case 2:
                yield framed(b"[" * 10**5)
            case 3:
                yield b"Content-Length: %d\r\n\r\n" % drawn.choice((0, 2)) + b"{}"
            case 4:
                yield b"X-Nonsense: 1\r\n" * drawn.randrange(1, 4) + b"Content-Length: no\r\n\r\n"
            case 5:
                del request[drawn.choice(("jsonrpc", "id", "method"))]
                yield framed(json.dumps(request).encode())
            case 6:
                yield framed(json.dumps({**request, "params": _value(drawn)}).encode())
            case 7:
                yield framed(json.dumps({**request, "params": _well_formed(drawn, uri)}).encode())
            case _:
                yield framed(json.dumps([request, request]).encode())
