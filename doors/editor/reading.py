"""A program is read, and read again when it has changed: what comes before the change is kept.

Everything in a program is known by where it stands in the preprocessed text, so that what comes
after a change is another's. What comes before it is the same to the letter, and what the compiler
makes of it follows from nothing else: words, declarations, and what a check knew after each of
these. Files that are included come out of the preprocessor as they did, wherever they stand, if
neither they nor the macros before them have changed. What comes after a change can be kept, too,
as far as its syntax goes, where the change has moved nothing (layout.py): but not what was checked
of it, for that follows from all before.

The passes go on where the compiler would stop: what is broken is left out of the tree, and of the
rest it is still told what names mean. Only what the compiler itself would say is told as wrong, for
after an error of syntax the checker reports its echoes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from itertools import takewhile
from pathlib import Path

from compiler import core as c
from compiler import syntax as s
from compiler.check import Checker
from compiler.check.marks import Mark
from compiler.check.names import Names
from compiler.diagnostics import CompileError, Diagnostics, TooManyErrorsError
from compiler.lexer import Before, Tokens, tokenize
from compiler.parser import Parser
from compiler.parser.cursor import SyntaxMistakeError, TooDeepError
from compiler.preprocess import Included, Preprocessor
from compiler.source import Line, Text
from doors.editor.layout import laid_out
from doors.editor.program import Program, Settings, deep, real
from params.data import Data

MAX_ERRORS = 1000  # that are told of a program
_AHEAD = 3  # tokens behind such a place that have to be the same, too


class SupersededError(Exception):
    """A file changed meanwhile: what would come of this reading nobody wants."""


class _Stop(Data, frozen=False):
    """A place between two declarations from which one can go on."""

    at: int  # the token behind it
    count: int  # of the declarations before it
    names: dict[str, bool]  # that these declare, and whether they are types
    mark: Mark | None = None  # what a check knew there, if one came so far


class _Whole(Data):
    """A program as it was parsed to its end, when nothing was wrong in it."""

    text: Text
    starts: list[int]  # of its tokens
    stops: list[_Stop]
    declarations: list[s.Decl]

    def behind(self, now: Text) -> dict[int, _Stop]:
        """From where on it reads the same, and stands where it did: stops, by the places of the
        tokens behind them."""
        found: dict[int, _Stop] = {}
        for stop in reversed(self.stops):
            before = self.starts[stop.at - 1]
            if self.text.text[before:] != now.text[before:]:
                break
            found[self.starts[stop.at]] = stop
        return found


class Reading(Data, frozen=False):
    """A program as it was read last, as far as it helps to read it again.

    At any moment, be a reading broken off or not: `_stops` are places of `_text`, whose tokens and
    declarations up to there `_tokens` and `_declarations` are.
    """

    root: Path
    settings: Settings
    is_kept: bool = True  # else it is read once
    apart: int = 1000  # tokens, between two places from which one can go on
    _included: dict[tuple[str, int], Included] = field(default_factory=dict)
    _text: Text = field(default_factory=lambda: Text("", []))
    _tokens: Tokens = field(default_factory=lambda: Tokens([], [], []))
    _declarations: list[s.Decl] = field(default_factory=list)
    _stops: list[_Stop] = field(default_factory=list)
    _whole: _Whole = field(default_factory=lambda: _Whole(Text("", []), [], [], []))
    _checker: Checker | None = None
    _last: Program | None = None  # of which nothing is told, if the last reading came to that

    def read(
        self, read: Callable[[Path], str], go_on: Callable[[], None] = lambda: None
    ) -> Program:
        """What the passes as far as types make of it; `go_on` may raise in between."""
        diagnostics = Diagnostics(most_errors=MAX_ERRORS)
        contents: dict[str, str] = {}

        def remembered(path: Path) -> str:
            name = real(str(path))
            if name not in contents:
                contents[name] = read(path)
            return contents[name]

        included = self._included if self.is_kept else None
        preprocessor = Preprocessor(
            diagnostics, self.settings.include_dirs, read=remembered, kept=included
        )
        for definition in self.settings.defines:
            preprocessor.define(definition)
        with deep():
            try:
                text = diagnostics.text = laid_out(preprocessor.run(self.root))
                go_on()
                tokens = self._tokenized(text, diagnostics)
                macros, expanded = _macros(preprocessor), frozenset(preprocessor.expanded)
                if self._last is not None and not diagnostics.found and tokens == self._last.tokens:
                    return self._last.again(
                        text, diagnostics, macros=macros, expanded=expanded, contents=contents
                    )
                go_on()
                syntax = self._parsed(tokens, diagnostics, go_on)
            except TooManyErrorsError:
                self._stops.clear()
                text = diagnostics.text or Text("\n", [Line(str(self.root), 1, "")])
                tokens, syntax = tokenize("", diagnostics), s.Program(())
            diagnostics, names, core = self._checked(syntax, diagnostics, go_on)
        found = Program(
            self.root, self.settings, text, tokens, syntax, names, diagnostics, core,
            _macros(preprocessor), frozenset(preprocessor.expanded), contents,
        )  # fmt: skip
        self._last = found if self.is_kept and core is not None and not diagnostics.found else None
        return found

    def _tokenized(self, text: Text, diagnostics: Diagnostics) -> Tokens:
        """The words of a text, of which those before its first change are known."""
        same, before = _same(self._text, text), self._tokens
        is_clean = self._last is not None and self._last.tokens == before
        if is_clean and self._text.text == text.text:
            same = len(text.text)  # comments alone have changed: nothing told knows their lines
        self._stops = [*takewhile(lambda s: before.starts[s.at + _AHEAD] < same, self._stops)]
        ends_alike = Before(before, *_alike(self._text.text, text.text)) if before.kinds else None
        last = self._stops[-1] if self._stops else None
        tokens = tokenize(
            text.text, diagnostics, before.up_to(last.at) if last else None, ends_alike
        )
        if diagnostics.found and last is not None:  # what is told of words before it is not known
            self._stops.clear()
        self._text, self._tokens = text, tokens
        return tokens

    def _parsed(
        self, tokens: Tokens, diagnostics: Diagnostics, go_on: Callable[[], None]
    ) -> s.Program:
        """The declarations, of which those before the last stop are known, and others may be."""
        last = self._stops[-1] if self._stops else _Stop(0, 0, {})
        found = self._declarations = self._declarations[: last.count]
        parser = Parser(tokens, diagnostics, last.at, dict(last.names))
        behind = self._whole.behind(self._text)
        try:
            for declaration in parser.declarations():
                found.append(declaration)
                then = behind.get(tokens.starts[parser.at])
                if then is not None and _means_the_same(parser, then, tokens):
                    self._take_over(then, parser, has_stops=not diagnostics.found)
                    break
                is_far = parser.at >= last.at + self.apart
                is_end = tokens.kinds[parser.at + _AHEAD] == "end"
                if self.is_kept and is_far and not is_end and not diagnostics.found:
                    last = _Stop(parser.at, len(found), dict(parser.names))
                    self._stops.append(last)
                go_on()
        except (SyntaxMistakeError, TooDeepError):
            self._stops.clear()
            return s.Program(())
        if self.is_kept and not diagnostics.found:
            self._whole = _Whole(self._text, tokens.starts, [*self._stops], found)
        return s.Program(tuple(found))

    def _take_over(self, first: _Stop, parser: Parser, *, has_stops: bool) -> None:
        """The declarations from a stop on, and the stops, where they are now: none behind what
        something is told of, for who goes on from there would not know of it."""
        moved, more = parser.at - first.at, len(self._declarations) - first.count
        self._stops += [
            _Stop(stop.at + moved, stop.count + more, _since(stop, first, parser))
            for stop in self._whole.stops
            if has_stops and stop.at >= first.at
        ]
        self._declarations += self._whole.declarations[first.count :]

    def _checked(
        self, syntax: s.Program, diagnostics: Diagnostics, go_on: Callable[[], None]
    ) -> tuple[Diagnostics, Names, c.Program | None]:
        """What is told, what names mean, and the typed tree of a program without errors."""
        checker, begin = self._checker_at(diagnostics)
        is_whole = not diagnostics.found
        marks = {stop.count: stop for stop in self._stops if stop.mark is None}
        core = None
        try:
            for count, declaration in enumerate(syntax.declarations[begin:], begin + 1):
                go_on()
                checker.take(declaration)
                if count in marks:
                    marks[count].mark = Mark.of(checker.context)
            core = checker.program()
        except (TooManyErrorsError, CompileError, RecursionError):
            pass  # it is told
        except (SupersededError, MemoryError):
            raise
        except Exception:
            if is_whole:
                raise  # a tree with holes is none that the checker was made for
        finally:
            if not self.is_kept:
                checker.part()
        names, heard = checker.context.meanings, checker.context.diagnostics
        assert names is not None
        if not is_whole:
            return diagnostics, names, None
        return heard, names, None if heard.error_count else core

    def _checker_at(self, diagnostics: Diagnostics) -> tuple[Checker, int]:
        """A check that has come as far as is known, and the number of declarations before that."""
        marked = [stop for stop in self._stops if stop.mark is not None]
        if self._checker is None or not marked:
            heard = Diagnostics(most_errors=MAX_ERRORS)
            self._checker = Checker(heard, Names())
        else:
            last = marked[-1]
            assert last.mark is not None
            last.mark.restore(self._checker.context)
        self._checker.context.diagnostics.text = diagnostics.text
        return self._checker, marked[-1].count if marked else 0


def _same(before: Text, now: Text) -> int:
    """How far two texts are the same, and come from the same places: whole lines."""
    lines = 0
    for one, other in zip(before.lines, now.lines, strict=False):
        if one is not other and one != other:
            break
        lines += 1
    low, high = 0, lines
    while low < high:  # the same line may read differently, where a macro does
        middle = (low + high + 1) // 2
        end = before.starts[middle]
        is_same = end == now.starts[middle] and before.text[:end] == now.text[:end]
        low, high = (middle, high) if is_same else (low, middle - 1)
    return before.starts[low]


def _means_the_same(parser: Parser, then: _Stop, tokens: Tokens) -> bool:
    """Whether what follows is parsed as it was: no name of it is a type that was none, or none that
    was one."""
    differing = {name for name, _ in parser.names.items() ^ then.names.items()}
    return not differing or differing.isdisjoint(tokens.texts[parser.at :])


def _since(stop: _Stop, first: _Stop, parser: Parser) -> dict[str, bool]:
    """The names at a stop if at the first one they are a parser's."""
    declared = {n: is_type for n, is_type in stop.names.items() if first.names.get(n) != is_type}
    return parser.names | declared


def _alike(before: str, now: str) -> tuple[int, int]:
    """From where on a text ends as another does, and by how much that is further than there."""
    low, high = 0, min(len(before), len(now))
    while low < high:
        middle = (low + high + 1) // 2
        is_same = before.endswith(now[len(now) - middle :])
        low, high = (middle, high) if is_same else (low, middle - 1)
    return len(now) - low, len(now) - len(before)


def _macros(preprocessor: Preprocessor) -> dict[str, str]:
    """How macros read."""
    return {name: _defined(m.params, m.body) for name, m in preprocessor.macros.items()}


def _defined(params: tuple[str, ...] | None, body: str) -> str:
    return f"({', '.join(params)}) {body}" if params is not None else f" {body}"


def read_program(
    root: Path,
    settings: Settings,
    read: Callable[[Path], str],
    go_on: Callable[[], None] = lambda: None,
) -> Program:
    """What the passes as far as types make of a file, once."""
    return Reading(root, settings, is_kept=False).read(read, go_on)
