"""A program as an editor sees it: what it was read as, and the way from places to words."""

from __future__ import annotations

import gc
import os
import sys
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import field, replace
from functools import cached_property, lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from compiler import bmv2
from compiler import core as c
from compiler import syntax as s
from compiler.check.names import Names
from compiler.diagnostics import CompileError, Diagnostics, TooManyErrorsError
from compiler.lexer import KEYWORDS, SOFT_KEYWORDS, Tokens
from compiler.lower import lower
from compiler.parser.types import Types
from compiler.preprocess import INCLUDE_DIR, blank_comments
from compiler.source import Text
from params.data import Data

MAX_ERRORS = 1000  # that are told of a program
_RECURSION_LIMIT = 20_000
_UNDERSTOOD = Types.EXPRESSION_ANNOTATIONS  # whose words are no names of a program's
_OF_WORDS = {"declared", "_uses", "_at", "_by_word", "_brackets"}
_OPENS, _CLOSES = {"{", "(", "["}, {"}", ")", "]"}


class Settings(Data):
    """What a compilation would be told."""

    include_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()

    def defining(self, name: str) -> Settings:
        """The same, and a macro more."""
        return replace(self, defines=(*self.defines, name))


class Place(Data):
    """A word in a file; line and column count from 0, columns in characters."""

    file: str
    line: int
    column: int
    length: int


@lru_cache(maxsize=4096)
def real(path: str) -> str:
    """The one name of a file, however it is reached."""
    return os.path.realpath(path)


# Files are long, and most are the same in one reading as in the next.


@lru_cache(maxsize=256)
def lines_in(text: str) -> list[str]:
    """A file's lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


@lru_cache(maxsize=256)
def _bare(text: str) -> list[str]:
    return blank_comments("\n".join(lines_in(text))).split("\n")


@lru_cache(maxsize=256)
def _directives(text: str) -> dict[int, str]:
    found: dict[int, str] = {}
    goes_on = ""
    for number, line in enumerate(_bare(text)):
        first = goes_on or (line.strip() if line.lstrip().startswith("#") else "")
        if first:
            found[number] = first
        goes_on = first if line.rstrip().endswith("\\") else ""
    return found


class Program(Data, frozen=False, eq=False):
    """A file, all that it includes, and what the compiler makes of them."""

    root: Path
    settings: Settings
    text: Text
    tokens: Tokens
    syntax: s.Program
    names: Names
    diagnostics: Diagnostics
    core: c.Program | None  # if nothing was wrong as far as types
    macros: dict[str, str] = field(default_factory=dict)  # and how their definitions read
    expanded: frozenset[str] = frozenset()  # of these, those that are used
    contents: dict[str, str] = field(default_factory=dict)  # of the files
    json: dict[str, Any] = field(default_factory=dict)  # once it is finished, if it can be run
    _lines_by_file: dict[str, dict[int, list[int]]] = field(default_factory=dict, init=False)

    @property
    def is_sound(self) -> bool:
        """Whether the compiler finds no error as far as types."""
        return self.core is not None

    def again(self, text: Text, diagnostics: Diagnostics, **how: Any) -> Program:
        """The same of another text with the same words at the same places, of which nothing is
        told: it keeps what answers look things up by."""
        found = replace(self, text=text, diagnostics=diagnostics, json={}, **how)
        vars(found).update((name, made) for name, made in vars(self).items() if name in _OF_WORDS)
        return found

    def finish(self) -> None:
        """The passes behind types, which tell what BMv2 cannot do."""
        if self.core is None or self.core.main is None:
            return
        with deep():
            try:
                made, _ = lower(self.core, self.diagnostics)
                self.diagnostics.check()
                self.json = bmv2.write(made, self.core, self.text, str(self.root), self.diagnostics)
            except (CompileError, TooManyErrorsError, RecursionError):
                return  # it is told, or it is deeper than anybody writes

    def index(self) -> None:
        """Make what answers look things up by, once, where nobody waits for an answer."""
        _ = self.files, self.declared, self._brackets, self._uses

    # From places to words, and back

    @cached_property
    def files(self) -> frozenset[str]:
        """All that was read."""
        return frozenset(self._runs)

    @cached_property
    def _runs(self) -> dict[str, list[range]]:
        """By file, which lines of the preprocessed text came from it."""
        found: dict[str, list[range]] = {}
        at = 0
        for file, lines in groupby(self.text.lines, key=attrgetter("file")):
            end = at + sum(1 for _ in lines)
            found.setdefault(real(file), []).append(range(at, end))
            at = end
        return found

    def _lines(self, file: str) -> dict[int, list[int]]:
        """By a file's lines, which lines of the preprocessed text came from it."""
        known = self._lines_by_file.get(file)
        if known is None:
            known = self._lines_by_file[file] = {}
            for run in self._runs.get(file, ()):
                for index in run:
                    known.setdefault(self.text.lines[index].number - 1, []).append(index)
        return known

    def lines_of(self, file: str) -> list[str]:
        """All lines of a file, as they were read."""
        return lines_in(self.contents.get(file, ""))

    def bare_lines(self, file: str) -> list[str]:
        """The same without comments."""
        return _bare(self.contents.get(file, ""))

    def directives_of(self, file: str) -> dict[int, str]:
        """The lines of a file that belong to directives, and the first line of each of these."""
        return _directives(self.contents.get(file, ""))

    def line(self, file: str, number: int) -> str:
        """A line of a file, as it was read."""
        lines = self.lines_of(file)
        return lines[number] if 0 <= number < len(lines) else ""

    def is_left_out(self, file: str, number: int) -> bool:
        """Whether nothing of a line reaches the compiler."""
        found = self._lines(file).get(number, ())
        starts = self.text.starts
        return all(starts[index + 1] - starts[index] <= 1 for index in found)

    def words_of(self, file: str, number: int) -> Iterator[tuple[int, int]]:
        """The tokens of a line, with their columns."""
        starts, tokens = self.text.starts, self.tokens
        for index in self._lines(file).get(number, ()):
            begin, end = starts[index], starts[index + 1]
            at = bisect_left(tokens.starts, begin)
            while at < len(tokens.starts) and tokens.starts[at] < end and tokens.texts[at]:
                yield at, self.text.lines[index].column(tokens.starts[at] - begin)
                at += 1

    def word_at(self, file: str, number: int, column: int) -> int | None:
        """The name that stands at a place or ends there, as a token."""
        line = self.line(file, number)
        best = None
        for at, where in self.words_of(file, number):
            word = self.tokens.texts[at]
            is_written = line.startswith(word, where)
            if is_written and self.is_name(at) and where <= column <= where + len(word):
                best = at
        return best

    def is_name(self, at: int) -> bool:
        """Whether a token can be a name."""
        kind = self.tokens.kinds[at]
        return kind == "name" or kind in SOFT_KEYWORDS or kind in ("error", "_")

    def token_at(self, offset: int) -> int:
        """The token that begins at an offset or next after it."""
        return bisect_left(self.tokens.starts, offset)

    def place(self, at: int) -> Place:
        """Where a token stands."""
        start = self.tokens.starts[at]
        line, column = self.text.line_of(start)
        assert line is not None
        return Place(real(line.file), line.number - 1, column, len(self.tokens.texts[at]))

    def is_written(self, place: Place, word: str) -> bool:
        """Whether a word stands in the file just there, and did not come out of a macro."""
        return self.line(place.file, place.line).startswith(word, place.column)

    def offset_of(self, file: str, number: int, column: int) -> int | None:
        """Where in the preprocessed text a place of a file is."""
        found = self._lines(file).get(number)
        if not found:
            return None
        starts = self.text.starts
        index = max(found, key=lambda each: starts[each + 1] - starts[each])
        return min(starts[index] + column, starts[index + 1] - 1)

    # What names mean

    @cached_property
    def _uses(self) -> dict[int, int]:
        """The token of each use of a name, and that of its declaration."""
        return {
            self._named(use): self._named(declared) for use, declared in self.names.uses.items()
        }

    @cached_property
    def declared(self) -> dict[int, object]:
        """The token of each declaration's name, and what it declares."""
        return {self._named(at): what for at, what in self.names.declared.items()}

    @cached_property
    def _at(self) -> dict[int, int]:
        """The token that begins at an offset."""
        return {start: at for at, start in enumerate(self.tokens.starts)}

    def _named(self, offset: int) -> int:
        """The token of a name; of one written `.name` that of the dot is known."""
        at = self._at.get(offset)
        if at is None:
            at = self.token_at(offset)
        return at + (self.tokens.kinds[at] == ".")

    def declaration_of(self, at: int) -> int | None:
        """The token that declares what a token names."""
        found = self._uses.get(at)
        return at if found is None and at in self.declared else found

    def same(self, declaration: int) -> list[int]:
        """Declarations of one name at one place: a file that is included twice has several."""
        place, word = self.place(declaration), self.tokens.texts[declaration]
        return [
            at for at in self._by_word.get(word, ()) if at in self.declared
            and self.place(at) == place
        ]  # fmt: skip

    @cached_property
    def _by_word(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for at, word in enumerate(self.tokens.texts):
            if word:
                found.setdefault(word, []).append(at)
        return found

    def tokens_of(self, word: str) -> list[int]:
        """Where a word stands, whatever it means."""
        return self._by_word.get(word, [])

    def uses_of(self, declaration: int) -> list[int]:
        """The tokens that name what is declared there, that of the declaration first."""
        wanted = {*self.same(declaration), declaration}
        word = self.tokens.texts[declaration]
        used = [at for at in self.tokens_of(word) if self._uses.get(at) in wanted]
        return sorted(wanted - {*used}) + used

    def meanings(self) -> list[int]:
        """What each token means: the token that declares it, or itself."""
        return [self._uses.get(at, at) for at in range(len(self.tokens.kinds))]

    def in_note(self, at: int) -> bool:
        """Whether a token stands in an annotation's body whose words the compiler leaves alone."""
        if at in self._uses or at in self.declared:
            return False
        while (at := self.opening(at)) > 1:
            if self.tokens.kinds[at - 2] == "@":
                return self.tokens.texts[at - 1] not in _UNDERSTOOD
        return False

    # Brackets

    @cached_property
    def _brackets(self) -> tuple[dict[int, int], list[int]]:
        """What closes what; and of each token the bracket it stands in, or -1."""
        closes: dict[int, int] = {}
        inside: list[int] = []
        stack: list[int] = []
        for at, kind in enumerate(self.tokens.kinds):
            if kind in _CLOSES and stack:
                closes[stack.pop()] = at
            inside.append(stack[-1] if stack else -1)
            if kind in _OPENS:
                stack.append(at)
        return closes, inside

    def closing(self, at: int) -> int:
        """The bracket that closes one, or the program's end."""
        return self._brackets[0].get(at, len(self.tokens.kinds) - 1)

    def opening(self, at: int) -> int:
        """The bracket that a token stands in, or -1."""
        return self._brackets[1][min(at, len(self.tokens.kinds) - 1)]

    def end_of(self, at: int) -> int:
        """The last token of the declaration whose name a token is."""
        kinds = self.tokens.kinds
        while at < len(kinds) - 1:
            kind = kinds[at]
            if kind == "{":
                return self.closing(at)
            if kind in (";", "}") or (kind == ")" and at not in self._brackets[0].values()):
                return at
            at = self.closing(at) if kind in ("(", "[") else at
            at += 1
        return at

    def keywords(self) -> list[str]:
        """The language's own words."""
        return sorted(KEYWORDS - {"_"})


class deep:  # noqa: N801 - it reads as what it is
    """As deep as the compiler goes, and without a look for garbage in what stays."""

    def __enter__(self) -> None:
        self._limit, self._collects = sys.getrecursionlimit(), gc.isenabled()
        sys.setrecursionlimit(max(self._limit, _RECURSION_LIMIT))
        gc.disable()

    def __exit__(self, *_: object) -> None:
        sys.setrecursionlimit(self._limit)
        if self._collects:
            gc.enable()


def is_ours(file: str) -> bool:
    """Whether a file comes with the compiler."""
    return Path(file).is_relative_to(real(str(INCLUDE_DIR)))
