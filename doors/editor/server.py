"""The protocol: what an editor asks, answered from the desk; what is wrong, told when known."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
import re
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from compiler.diagnostics import Diagnostic
from doors.editor import wire as w
from doors.editor.completion import completions, line_now, line_then
from doors.editor.desk import Desk, Open
from doors.editor.hover import hover
from doors.editor.kinds import Part
from doors.editor.outline import Entry, outline
from doors.editor.program import Place, Program, Settings, lines_in, real
from doors.editor.renaming import RefusedError, places, renamed, target
from files import FileError
from lab.errors import LabError

# After a change: until it is told what is wrong, then all the rest; until garbage is looked for.
_SOON_S, _IDLE_S, _PAUSE_S = 0.05, 0.4, 2.0
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


@dataclass(frozen=True, slots=True)
class Word:
    """A word that is asked about: which token of a program it is, if any, and where it stands."""

    program: Program
    at: int | None
    path: str
    line: int
    column: int

    @property
    def declaration(self) -> int | None:
        """The token that declares what it means."""
        return None if self.at is None else self.program.declaration_of(self.at)

    @property
    def is_known(self) -> bool:
        """Whether it means anything."""
        return self.declaration is not None

    @property
    def macro(self) -> str | None:
        """The macro that it names."""
        for match in re.finditer(r"[A-Za-z_]\w*", self.program.line(self.path, self.line)):
            if match.start() <= self.column <= match.end() and match[0] in self.program.macros:
                return match[0]
        return None


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
        return lines_in(text)

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

    async def word(self, asked: Any, *, now: bool = True) -> Word:
        """What is asked about; where a program is broken, or not read yet, as it last was."""
        path = self.path(asked.text_document.uri)
        root = self.desk.programs_of(path)[0]
        line = asked.position.line
        column = self.column(path, line, asked.position.character)
        text = self.lines(path)[line] if 0 <= line < len(self.lines(path)) else ""
        program = await (self.desk.program if now else self.desk.recent)(root)
        found = self._then(program, path, line, column, text)
        if found is None:  # the very line was changed since
            program = await self.desk.program(root)
            found = Word(program, program.word_at(path, line, column), path, line, column)
        sound = self.desk.sound(root)
        if not found.is_known and sound not in (program, None):
            before = self._then(sound, path, line, column, text)
            found = before if before is not None and before.is_known else found
        return found

    def _then(self, program: Program, path: str, line: int, column: int, text: str) -> Word | None:
        """A word as it was when a program was read; None if its line was not there."""
        then = line_then(program, path, self.lines(path), line)
        if then is None or program.line(path, then) != text:
            return None
        return Word(program, program.word_at(path, then, column), path, then, column)

    def now(self, program: Program, place: Place) -> Place:
        """Where a place of a program that was read before is by now."""
        lines = self.lines(place.file)
        if place.file not in self.desk.open or program.lines_of(place.file) == lines:
            return place
        line = line_now(program, place.file, lines, place.line)
        return place if line is None else replace(place, line=line)

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
        await asyncio.sleep(_PAUSE_S)
        self.desk.collect()

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
    word = await session.word(params, now=False)
    text = None if word.at is None else hover(word.program, word.at)
    if text is None and word.macro is not None:
        text = f"```p4\n#define {word.macro}{word.program.macros[word.macro]}\n```\nmacro"
    return None if text is None else lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text))


async def _definition(session: Session, params: lsp.DefinitionParams) -> list[lsp.Location]:
    word = await session.word(params, now=False)
    program = word.program
    included = session.desk.named_in(word.path, program.line(word.path, word.line))
    if included:
        return [session.location(Place(included[0], 0, 0, 0))]
    if word.declaration is not None:
        return [session.location(session.now(program, program.place(word.declaration)))]
    if word.macro is None:
        return []
    defined = re.compile(rf"\s*#\s*define\s+({re.escape(word.macro)})\b")
    return [
        session.location(session.now(program, Place(file, number, match.start(1), len(match[1]))))
        for file in sorted(program.files)
        for number, text in enumerate(program.lines_of(file))
        if (match := defined.match(text))
    ]


async def _references(session: Session, params: lsp.ReferenceParams) -> list[lsp.Location]:
    word = await session.word(params)
    if word.declaration is None:
        return []
    where = word.program.place(word.declaration)
    name = word.program.tokens.texts[word.declaration]
    others = await session.desk.programs(session.desk.programs_of(where.file))
    read = {each.root: each for each in (*others, word.program)}
    wanted = params.context.include_declaration
    found = {
        session.now(program, place)
        for program in read.values()
        for place in places([program], where, name)
        if wanted or place != where
    }
    in_order = sorted(found, key=lambda each: (each.file, each.line, each.column))
    return [session.location(place) for place in in_order]


async def _highlight(
    session: Session, params: lsp.DocumentHighlightParams
) -> list[lsp.DocumentHighlight]:
    word = await session.word(params)
    if word.declaration is None:
        return []
    where = word.program.place(word.declaration)
    found = places([word.program], where, word.program.tokens.texts[word.declaration])
    own = [session.now(word.program, place) for place in found if place.file == word.path]
    return [lsp.DocumentHighlight(session.range(place)) for place in own]


async def _prepare(
    session: Session, params: lsp.PrepareRenameParams
) -> lsp.PrepareRenamePlaceholder:
    word = await session.word(params)
    declaration = target(word.program, word.at)
    assert word.at is not None
    name = word.program.tokens.texts[declaration]
    return lsp.PrepareRenamePlaceholder(session.range(word.program.place(word.at)), name)


async def _rename(session: Session, params: lsp.RenameParams) -> lsp.WorkspaceEdit:
    word = await session.word(params)
    declaration = target(word.program, word.at)
    where, name = word.program.place(declaration), word.program.tokens.texts[declaration]
    desk = session.desk
    read = await desk.programs(desk.programs_of(where.file))
    found = await desk.work(renamed, read, where, name, params.new_name, desk.variant, desk.read)
    if not found:
        raise RefusedError(f"'{name}' was changed meanwhile", "Ask again.")
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
    program = await session.desk.recent(session.desk.programs_of(path)[0])
    return [_symbol(session, program, entry) for entry in outline(program, path)]


def _symbol(session: Session, program: Program, entry: Entry) -> lsp.DocumentSymbol:
    place = session.now(program, entry.place)
    end = session.now(program, entry.end)
    return lsp.DocumentSymbol(
        name=entry.name,
        kind=_SYMBOLS.get(entry.kind, _S.Variable),
        range=session.range(place, end if end.line >= place.line else place),
        selection_range=session.range(place),
        children=[_symbol(session, program, each) for each in entry.inside],
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
    """Peers are told, and nobody else; and what was read is looked through when nobody asks."""
    gc.disable()
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
