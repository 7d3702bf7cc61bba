"""The protocol: who is connected, and which question goes to which answer."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.uris import from_fs_path

from doors.editor import answers
from doors.editor import wire as w
from doors.editor.program import Settings
from doors.editor.session import Session
from lab.errors import LabError


def session(settings: Settings) -> Session:
    """A server for one editor."""
    made = Session(settings)

    @made.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        folders = [each.uri for each in params.workspace_folders or ()]
        if not folders and (params.root_uri or params.root_path):
            folders = [params.root_uri or from_fs_path(params.root_path or "") or ""]
        made.desk.folders = {made.path(uri) for uri in folders if uri}
        made.desk.settings = _settled(settings, params.initialization_options)

    @made.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        made.has_changed(params.text_document.uri)

    @made.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        made.has_changed(params.text_document.uri)

    @made.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        made.desk.changed(made.path(params.text_document.uri), None)
        made.look_again()

    @made.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(_: lsp.DidSaveTextDocumentParams) -> None:
        made.look_again()

    @made.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(_: lsp.DidChangeWatchedFilesParams) -> None:
        made.desk.changed_outside()
        made.look_again()

    @made.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(params: lsp.DidChangeConfigurationParams) -> None:
        given = params.settings
        own = given.get("closlab", given) if isinstance(given, dict) else None
        made.desk.settings = _settled(settings, own)
        made.desk.changed_outside()
        made.look_again()

    @made.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        made.desk.folders -= {made.path(each.uri) for each in params.event.removed}
        made.desk.folders |= {made.path(each.uri) for each in params.event.added}
        made.desk.changed_outside()

    by_dots = lsp.CompletionOptions(trigger_characters=["."])
    for name, handler, options in (
        (lsp.TEXT_DOCUMENT_HOVER, answers.hover, None),
        (lsp.TEXT_DOCUMENT_DEFINITION, answers.definition, None),
        (lsp.TEXT_DOCUMENT_REFERENCES, answers.references, None),
        (lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, answers.highlight, None),
        (lsp.TEXT_DOCUMENT_PREPARE_RENAME, answers.prepare, None),
        (lsp.TEXT_DOCUMENT_RENAME, answers.rename, lsp.RenameOptions(prepare_provider=True)),
        (lsp.TEXT_DOCUMENT_COMPLETION, answers.complete, by_dots),
        (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, answers.symbols, None),
    ):
        made.feature(name, options)(_bound(made, answers.answering(handler)))
    return made


def _bound(own: Session, handler: answers.Handler) -> Callable[[Any], Awaitable[Any]]:
    async def answers(params: Any) -> Any:
        return await handler(own, params)

    return answers


def _settled(given: Settings, options: object) -> Settings:
    """What the command line says, and what the editor adds; what is no word is left out."""
    if not isinstance(options, dict):
        return given
    words = {
        name: [each for each in value if isinstance(each, str)]
        for name, value in options.items()
        if isinstance(value, list)
    }
    dirs = tuple(Path(each).expanduser() for each in words.get("includeDirs", ()))
    defines = tuple(words.get("defines", ()))
    return Settings((*given.include_dirs, *dirs), (*given.defines, *defines))


async def serve(settings: Settings, reads: asyncio.StreamReader, writer: Any) -> int:
    """Serve one editor until it goes; 0 if it took its leave as it should."""
    own = session(settings)
    own.protocol.set_writer(writer)
    wire = w.Wire(reads, writer.write)
    try:
        while (message := await wire.next()) is not None:
            if message.get("method") == "exit":
                return 0 if wire.is_over else 1
            _take(own, wire, message)
            await asyncio.sleep(0)
        return 0 if wire.is_over else 1
    except (ConnectionError, BrokenPipeError):
        return 1
    finally:
        own.close()


def _take(own: Session, wire: w.Wire, message: dict[str, Any]) -> None:
    method, number = message.get("method"), message.get("id")
    try:
        made = own.protocol.structure_message(message)
    except JsonRpcException:
        wire.refuse(w.INVALID_PARAMS, f"these are no params of {str(method)[:80]}", number)
        return
    own.protocol.handle_message(made)
    wire.began = wire.began or method == "initialize"
    wire.is_over = wire.is_over or method == "shutdown"


class _Pipe:
    """Stdout, as the protocol writes to it."""

    def __init__(self, number: int) -> None:
        self._number = number

    def write(self, data: bytes) -> None:
        """All of it."""
        left = memoryview(data)
        while left:
            left = left[os.write(self._number, left) :]

    def close(self) -> None:
        """It is closed at our end."""


def serve_stdio(settings: Settings) -> int:
    """Serve whoever is at the other end of stdin and stdout."""
    _be_quiet()
    ours = os.dup(1)
    os.dup2(2, 1)  # whatever else is said goes to stderr

    async def run() -> int:
        reads = asyncio.StreamReader(limit=1 << 16)
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reads), sys.stdin)
        except ValueError:  # a file on a disk
            reads.feed_data(sys.stdin.buffer.read(w.MAX_BYTES))
            reads.feed_eof()
        return await serve(settings, reads, _Pipe(ours))

    return asyncio.run(run())


def serve_tcp(settings: Settings, host: str, port: int, ready: Callable[[int], None]) -> None:
    """Serve editors that connect, each for itself, until interrupted."""
    _be_quiet()

    async def connected(reads: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await serve(settings, reads, writer)
        with suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    async def run() -> None:
        try:
            server = await asyncio.start_server(connected, host, port)
        except OSError as error:
            raise LabError(
                f"--tcp: {host}:{port} cannot be listened at: {error.strerror}",
                "Take another port, or 0 for any that is free.",
            ) from None
        async with server:
            ready(server.sockets[0].getsockname()[1])
            await server.serve_forever()

    asyncio.run(run())


def _be_quiet() -> None:
    """Peers are told, and nobody else; and what was read is looked through when nobody asks."""
    gc.disable()
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
