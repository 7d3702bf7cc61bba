"""The protocol: what an editor asks, answered from the desk; what is wrong, told when known."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import re
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from compiler.diagnostics import Diagnostic
from doors.editor import wire as w
from doors.editor.completion import completions, line_then
from doors.editor.desk import Desk, Open
from doors.editor.hover import hover
from doors.editor.kinds import Part
from doors.editor.outline import Entry, outline
from doors.editor.program import Place, Program, Settings, real
from doors.editor.renaming import RefusedError, places, renamed, target
from files import FileError
from lab.errors import LabError

_SOON_S, _IDLE_S = 0.05, 0.4  # after a change: until it is told what is wrong, and all the rest
_UNNEEDED = {"unused", "unreachable"}
_K, _S = lsp.CompletionItemKind, lsp.SymbolKind
_ITEMS = {
    "field": _K.Field, "variable": _K.Variable, "parameter": _K.Variable, "constant": _K.Constant,
    "enum member": _K.EnumMember, "method": _K.Method, "function": _K.Function, "table": _K.Class,
    "action": _K.Function, "keyword": _K.Keyword, "file": _K.File, "macro": _K.Constant,
    "header": _K.Struct, "struct": _K.Struct, "header_union": _K.Struct, "enum": _K.Enum,
    "control": _K.Module, "parser": _K.Module, "package": _K.Module, "extern": _K.Interface,
    "type": _K.TypeParameter, "type parameter": _K.TypeParameter, "instance": _K.Variable,
}  # fmt: skip
_SYMBOLS = {
    "field": _S.Field, "variable": _S.Variable, "constant": _S.Constant, "table": _S.Class,
    "enum member": _S.EnumMember, "function": _S.Function, "action": _S.Function,
    "state": _S.Event, "header": _S.Struct, "struct": _S.Struct, "header_union": _S.Struct,
    "enum": _S.Enum, "control": _S.Module, "parser": _S.Module, "package": _S.Package,
    "extern": _S.Interface, "type": _S.TypeParameter, "error": _S.EnumMember,
    "match_kind": _S.EnumMember,
}  # fmt: skip


class Session(LanguageServer):
    """One editor, for as long as it is connected."""

    def __init__(self, settings: Settings) -> None:
        super().__init__("closlab", version("closlab"))
        self.desk = Desk(settings)
        self._task: asyncio.Task[None] | None = None
        self._told: set[str] = set()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Requests are answered, and of the rest nobody wants windows."""

    def close(self) -> None:
        """The editor is gone."""
        if self._task is not None:
            self._task.cancel()
        self.desk.close()

    # Files

    def path(self, uri: str) -> str:
        """The file that a URI names."""
        return real(to_fs_path(uri) or uri)

    def uri(self, path: str) -> str:
        """What the editor calls a file."""
        known = self.desk.open.get(path)
        return known.uri if known else from_fs_path(path) or path

    def has_changed(self, uri: str) -> None:
        """A file that is open reads differently now."""
        text = self.workspace.get_text_document(uri).source
        self.desk.changed(self.path(uri), Open(uri, text))
        self.look_again()

    def lines(self, path: str) -> list[str]:
        """A file's lines as the editor has them."""
        try:
            text = self.desk.read(Path(path))
        except (FileError, OSError):
            text = ""
        return re.split(r"\r\n|\n|\r", text)

    # Places

    def column(self, path: str, line: int, character: int) -> int:
        """A column in characters, of one as the editor counts."""
        lines = self.lines(path)
        if not 0 <= line < len(lines):
            return 0
        text, units = lines[line], self.workspace.position_codec.client_num_units
        if text.isascii():
            return max(0, min(character, len(text)))
        at = 0
        while at < len(text) and units(text[:at]) < character:
            at += 1
        return at

    def range(self, place: Place, end: Place | None = None) -> lsp.Range:
        """A place as the editor counts."""
        last = end or place
        return lsp.Range(
            self._position(place.file, place.line, place.column),
            self._position(last.file, last.line, last.column + last.length),
        )

    def _position(self, file: str, line: int, column: int) -> lsp.Position:
        lines = self.lines(file)
        text = lines[line][:column] if 0 <= line < len(lines) else ""
        units = (
            len(text) if text.isascii() else self.workspace.position_codec.client_num_units(text)
        )
        return lsp.Position(max(0, line), units)

    def location(self, place: Place) -> lsp.Location:
        """A place in a file."""
        return lsp.Location(self.uri(place.file), self.range(place))

    async def word(self, asked: Any) -> tuple[Program, int | None, str, int, int]:
        """The program, and the token that is asked about; where that is broken, as it last was."""
        path = self.path(asked.text_document.uri)
        root = self.desk.programs_of(path)[0]
        program = await self.desk.program(root)
        line = asked.position.line
        column = self.column(path, line, asked.position.character)
        at = program.word_at(path, line, column)
        sound = self.desk.sound(root)
        if sound not in (program, None) and (at is None or program.declaration_of(at) is None):
            then = line_then(sound, path, program.lines_of(path), line)
            if then is not None and sound.line(path, then) == program.line(path, line):
                before = sound.word_at(path, then, column)
                if before is not None and sound.declaration_of(before) is not None:
                    return sound, before, path, line, column
        return program, at, path, line, column

    # What is wrong

    def look_again(self) -> None:
        """Say what is wrong, when it is known."""
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.ensure_future(self._tell())

    async def _tell(self) -> None:
        await asyncio.sleep(_SOON_S)
        roots = dict.fromkeys(self.desk.programs_of(path)[0] for path in [*self.desk.open])
        read = [await self.desk.program(root) for root in roots]
        self._publish(read)
        await asyncio.sleep(_IDLE_S)
        for program in read:
            await self.desk.finished(program)
        self._publish(read)

    def _publish(self, programs: Iterable[Program]) -> None:
        found: dict[str, dict[tuple[Any, ...], lsp.Diagnostic]] = {p: {} for p in self.desk.open}
        for program in programs:
            for told in program.diagnostics:
                where = real(told.position.file) if told.position else real(str(program.root))
                key = (told.position, told.code, told.message)
                found.setdefault(where, {})[key] = self._told_of(told, where)
        for path in self._told - {*found}:
            found[path] = {}
        for path, own in found.items():
            if own or path in self._told or path in self.desk.open:
                self.text_document_publish_diagnostics(
                    lsp.PublishDiagnosticsParams(self.uri(path), [*own.values()])
                )
        self._told = {path for path, own in found.items() if own}

    def _told_of(self, told: Diagnostic, file: str) -> lsp.Diagnostic:
        at = told.position
        place = Place(file, at.line - 1, at.column - 1, max(1, at.length)) if at else None
        return lsp.Diagnostic(
            range=self.range(place or Place(file, 0, 0, 1)),
            message=told.message + (f"\n{told.cure}" if told.cure else ""),
            severity=lsp.DiagnosticSeverity.Error
            if told.severity == "error"
            else lsp.DiagnosticSeverity.Warning,
            code=told.code,
            source="closlab p4c",
            tags=[lsp.DiagnosticTag.Unnecessary] if told.code in _UNNEEDED else None,
        )


Handler = Callable[[Session, Any], Awaitable[Any]]


def _answering(handler: Handler) -> Handler:
    """What is refused is said by the protocol's error, and a defect of ours without its insides."""

    @functools.wraps(handler)
    async def answered(session: Session, params: Any) -> Any:
        try:
            return await handler(session, params)
        except LabError as error:
            told = " ".join(filter(None, (f"{error.message}.", error.cure)))
            raise JsonRpcException(told, code=w.REQUEST_FAILED) from None
        except (asyncio.CancelledError, JsonRpcException):
            raise
        except Exception as error:
            traceback.print_exc()
            what = f"it failed, a defect of closlab: {type(error).__name__}"
            raise JsonRpcException(what, code=-32603) from None

    return answered


async def _hover(session: Session, params: lsp.HoverParams) -> lsp.Hover | None:
    program, at, path, line, column = await session.word(params)
    text = None if at is None else hover(program, at)
    macro = _macro_at(program, path, line, column)
    if text is None and macro is not None:
        text = f"```p4\n#define {macro}{program.macros[macro]}\n```\nmacro"
    return None if text is None else lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text))


def _macro_at(program: Program, path: str, line: int, column: int) -> str | None:
    for match in re.finditer(r"[A-Za-z_]\w*", program.line(path, line)):
        if match.start() <= column <= match.end() and match[0] in program.macros:
            return match[0]
    return None


async def _definition(session: Session, params: lsp.DefinitionParams) -> list[lsp.Location]:
    program, at, path, line, column = await session.word(params)
    included = session.desk.named_in(path, program.line(path, line))
    if included:
        return [session.location(Place(included[0], 0, 0, 0))]
    declaration = None if at is None else program.declaration_of(at)
    if declaration is not None:
        return [session.location(program.place(declaration))]
    macro = _macro_at(program, path, line, column)
    if macro is None:
        return []
    defined = re.compile(rf"\s*#\s*define\s+({re.escape(macro)})\b")
    return [
        session.location(Place(file, number, match.start(1), len(macro)))
        for file in sorted(program.files)
        for number, text in enumerate(program.lines_of(file))
        if (match := defined.match(text))
    ]


async def _all_places(session: Session, params: Any) -> tuple[list[Place], Place | None]:
    """Of what is asked about, in all programs that have it; and where it is declared."""
    program, at, *_ = await session.word(params)
    declaration = None if at is None else program.declaration_of(at)
    if declaration is None:
        return [], None
    where, word = program.place(declaration), program.tokens.texts[declaration]
    others = await session.desk.programs(session.desk.programs_of(where.file))
    read = {each.root: each for each in (*others, program)}
    return places(read.values(), where, word), where


async def _references(session: Session, params: lsp.ReferenceParams) -> list[lsp.Location]:
    found, where = await _all_places(session, params)
    wanted = params.context.include_declaration
    return [session.location(place) for place in found if wanted or place != where]


async def _highlight(
    session: Session, params: lsp.DocumentHighlightParams
) -> list[lsp.DocumentHighlight]:
    program, at, path, *_ = await session.word(params)
    declaration = None if at is None else program.declaration_of(at)
    if declaration is None:
        return []
    found = places([program], program.place(declaration), program.tokens.texts[declaration])
    return [lsp.DocumentHighlight(session.range(place)) for place in found if place.file == path]


async def _prepare(
    session: Session, params: lsp.PrepareRenameParams
) -> lsp.PrepareRenamePlaceholder:
    program, at, *_ = await session.word(params)
    declaration = target(program, at)
    assert at is not None
    return lsp.PrepareRenamePlaceholder(
        session.range(program.place(at)), program.tokens.texts[declaration]
    )


async def _rename(session: Session, params: lsp.RenameParams) -> lsp.WorkspaceEdit:
    program, at, *_ = await session.word(params)
    declaration = target(program, at)
    where, word = program.place(declaration), program.tokens.texts[declaration]
    desk = session.desk
    read = await desk.programs(desk.programs_of(where.file))
    found = await desk.work(
        renamed, read or [program], where, word, params.new_name, desk.variant, desk.read
    )
    edits: dict[str, list[lsp.TextEdit]] = {}
    for place in found:
        own = edits.setdefault(session.uri(place.file), [])
        own.append(lsp.TextEdit(session.range(place), params.new_name))
    return lsp.WorkspaceEdit(changes=edits)


async def _complete(session: Session, params: lsp.CompletionParams) -> lsp.CompletionList:
    desk, path = session.desk, session.path(params.text_document.uri)
    root = desk.programs_of(path)[0]
    program = desk.latest(root) or await desk.program(root)
    line = params.position.line
    column = session.column(path, line, params.position.character)
    lines = session.lines(path)
    found: dict[str, Part] = {}
    for each in (program, desk.sound(root)):
        if each is not None and (each is program or not program.is_sound):
            for part in completions(each, path, lines, line, column):
                found.setdefault(part.name, part)
    items = [
        lsp.CompletionItem(p.name, kind=_ITEMS.get(p.kind, _K.Text), detail=p.told or p.kind)
        for p in found.values()
    ]
    return lsp.CompletionList(is_incomplete=False, items=items)


async def _symbols(session: Session, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    path = session.path(params.text_document.uri)
    program = await session.desk.program(session.desk.programs_of(path)[0])
    return [_symbol(session, entry) for entry in outline(program, path)]


def _symbol(session: Session, entry: Entry) -> lsp.DocumentSymbol:
    return lsp.DocumentSymbol(
        name=entry.name,
        kind=_SYMBOLS.get(entry.kind, _S.Variable),
        range=session.range(entry.place, entry.end),
        selection_range=session.range(entry.place),
        children=[_symbol(session, each) for each in entry.inside],
        detail=entry.kind,
    )


# Sessions


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

    for name, handler, options in (
        (lsp.TEXT_DOCUMENT_HOVER, _hover, None),
        (lsp.TEXT_DOCUMENT_DEFINITION, _definition, None),
        (lsp.TEXT_DOCUMENT_REFERENCES, _references, None),
        (lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, _highlight, None),
        (lsp.TEXT_DOCUMENT_PREPARE_RENAME, _prepare, None),
        (lsp.TEXT_DOCUMENT_RENAME, _rename, lsp.RenameOptions(prepare_provider=True)),
        (lsp.TEXT_DOCUMENT_COMPLETION, _complete, lsp.CompletionOptions(trigger_characters=["."])),
        (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, _symbols, None),
    ):
        made.feature(name, options)(_bound(made, _answering(handler)))
    return made


def _bound(own: Session, handler: Handler) -> Callable[[Any], Awaitable[Any]]:
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
            reads.feed_data(sys.stdin.buffer.read(w.MOST_BYTES))
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
    """Peers are told, and nobody else."""
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)


__all__ = ["RefusedError", "serve", "serve_stdio", "serve_tcp"]
