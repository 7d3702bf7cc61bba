"""An editor while it is connected: its files and places, what a word means, and what is wrong."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from compiler.diagnostics import Diagnostic
from doors.editor.completion import line_now, line_then
from doors.editor.program import Place, Program, Settings, lines_in, real
from doors.editor.workspace import Desk, Open
from files import FileError
from params.data import Data

# After a change: until it is told what is wrong, then all the rest; until garbage is looked for.
_SOON_S, _IDLE_S, _PAUSE_S = 0.05, 0.4, 2.0
_UNNEEDED = {"unused", "unreachable"}


class Word(Data):
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
        self._published: set[str] = set()

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
            for each in program.diagnostics.found:
                where = real(each.position.file) if each.position else real(str(program.root))
                key = (each.position, each.code, each.message)
                found.setdefault(where, {})[key] = self._lsp_diagnostic(each, where)
        for path in self._published - {*found}:
            found[path] = {}
        for path, own in found.items():
            if own or path in self._published or path in self.desk.open:
                self.text_document_publish_diagnostics(
                    lsp.PublishDiagnosticsParams(self.uri(path), [*own.values()])
                )
        self._published = {path for path, own in found.items() if own}

    def _lsp_diagnostic(self, diagnostic: Diagnostic, file: str) -> lsp.Diagnostic:
        at = diagnostic.position
        place = Place(file, at.line - 1, at.column - 1, max(1, at.length)) if at else None
        return lsp.Diagnostic(
            range=self.range(place or Place(file, 0, 0, 1)),
            message=diagnostic.message + (f"\n{diagnostic.cure}" if diagnostic.cure else ""),
            severity=lsp.DiagnosticSeverity.Error
            if diagnostic.severity == "error"
            else lsp.DiagnosticSeverity.Warning,
            code=diagnostic.code,
            source="closlab p4c",
            tags=[lsp.DiagnosticTag.Unnecessary] if diagnostic.code in _UNNEEDED else None,
        )
