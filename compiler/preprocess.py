"""The preprocessor: the part of C's that P4 programs use.

A line that ends with a backslash is joined to the next, be it within a word. Then works line by
line: directives are obeyed, macros in the remaining lines expanded, comments blanked so that
columns stay true. Macros inside strings and comments are left alone. A macro is never expanded
inside its own expansion, and growth is bounded, of macros and of includes: past a bound the line
that grows is an error, and nothing after it is expanded, so no input can make it run away.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import field
from functools import lru_cache
from pathlib import Path

from compiler.diagnostics import Diagnostic, Diagnostics
from compiler.lexer import LONG_STRING
from compiler.source import Line, Position, Text
from files import FileError, NoFileError, read_bytes
from params.data import Data

INCLUDE_DIR = Path(__file__).parent / "p4include"
MAX_INCLUDE_DEPTH = 64
MAX_INCLUDES = 5_000
MAX_MACRO_DEPTH = 500
MAX_EXPANSION = 1 << 18
MAX_REPLACEMENTS = 50_000
MAX_OUTPUT = 1 << 25

_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"?|[A-Za-z_]\w*|\d[\w]*|\s+|##|&&|\|\||==|!=|<=|>=|<<|>>|.', re.DOTALL
)
_COMMENT_OR_STRING = re.compile(LONG_STRING + r'|"(?:\\.|[^"\\\n])*"?|//[^\n]*|/\*', re.DOTALL)
_DIRECTIVE = re.compile(r"\s*#\s*(\w*)\s*(.*)", re.DOTALL)
# What a preprocessor that ran before leaves behind: the next line is this line of that file.
_MARKER = re.compile(r'\s*#\s*(?:line\s+)?(\d+)(?:\s+"((?:\\.|[^"\\])*)")?')
_NAME = re.compile(r"[A-Za-z_]\w*")


class Macro(Data):
    """A #define: `params` is None for an object-like macro."""

    name: str
    params: tuple[str, ...] | None
    body: str


class _Branch(Data, frozen=False):
    """One level of #if: whether its lines count, and whether some branch was taken."""

    active: bool
    taken: bool
    outer: bool
    here: Position
    seen_else: bool = False


class Included(Data):
    """What an included file came to, and all that this followed from."""

    read: tuple[tuple[str, str | None], ...]  # it, and what it includes; None: is not there
    before: dict[str, Macro]
    depth: int
    after: dict[str, Macro]
    expanded: frozenset[str]
    out: list[str]
    lines: list[Line]
    grown: tuple[int, int, int]  # what is out, by characters; macros expanded; files included


class RunawayError(Exception):
    """Macros expand beyond a bound; the message says which."""


def content_of(path: Path) -> str:
    """A program's file as text; `FileError` says why there is none."""
    return read_bytes(path, MAX_OUTPUT).decode("utf-8-sig", "replace")


class Preprocessor(Data, frozen=False):
    """Turns a file into one `Text`, following includes and macros."""

    diagnostics: Diagnostics
    include_dirs: tuple[Path, ...] = ()
    only_beside: bool = False
    macros: dict[str, Macro] = field(default_factory=dict)
    read: Callable[[Path], str] = content_of  # an editor's files are not yet what is on the disk
    expanded: set[str] = field(default_factory=set)  # the macros that were put into lines
    # What files came to before, by their names and how often one was read by then: an editor's
    # program is read again and again.
    kept: dict[tuple[str, int], Included] | None = None
    _read: list[tuple[str, str | None]] = field(default_factory=list)
    _often: Counter[str] = field(default_factory=Counter)
    _with_arguments: set[str] = field(default_factory=set)  # the macros that take some
    _out: list[str] = field(default_factory=list)
    _lines: list[Line] = field(default_factory=list)
    _size: int = 0
    _replacements: int = 0
    _includes: int = 0
    _stopped: bool = False
    _within: tuple[Path, ...] = ()  # where all that is included lies; empty: anywhere

    def define(self, definition: str) -> None:
        """Take a `-D NAME[=VALUE]`."""
        name, eq, value = definition.partition("=")
        self.macros[name.strip()] = Macro(name.strip(), None, value if eq else "1")

    def run(self, path: Path, name: str | None = None) -> Text:
        """Preprocess a file."""
        if self.only_beside:
            allowed = (path.parent, *self.include_dirs, INCLUDE_DIR)
            self._within = tuple(place.resolve() for place in allowed)
        try:
            content = self.read(path)
        except FileError as error:
            self._error("cannot-read", None, str(error), "check the path")
            content = ""
        self._file(content, name or str(path), path, 0)
        text = Text("".join(self._out), self._lines)
        self.diagnostics.text = text
        return text

    def _error(self, code: str, position: Position | None, message: str, cure: str) -> None:
        self.diagnostics.add(Diagnostic("error", code, message, cure, position))

    def _emit(self, text: str, line: Line) -> None:
        self._size += len(text) + 1
        if self._size > MAX_OUTPUT:
            if not self._stopped:
                self._stop(
                    Position(line.file, line.number, 1, line.original, len(line.original)),
                    f"the program is longer than {MAX_OUTPUT >> 20} MB when all is included",
                    "include less, or expand fewer macros",
                )
            return
        self._out.append(text + "\n")
        self._lines.append(line)

    def _leave_out(self, name: str, lines: list[str], start: int, end: int, shift: int) -> None:
        """Lines that a condition leaves out: nothing is left of each."""
        if self._size + end - start > MAX_OUTPUT:
            for index in range(start, end):
                self._emit("", Line(name, index + 1 + shift, lines[index]))
            return
        self._size += end - start
        self._out.append("\n" * (end - start))
        first = start + 1 + shift
        self._lines += [Line(name, first + at, line) for at, line in enumerate(lines[start:end])]

    def _stop(self, here: Position, message: str, cure: str) -> None:
        """Give up growing: one error, and from here on nothing is included or expanded."""
        self._stopped = True
        self._error("too-large", here, message, cure)

    def _file(self, content: str, name: str, path: Path, depth: int) -> None:
        """A line of output for each line of the file, so that numbers stay true: empty for what is
        a directive, left out, or was joined to the line before."""
        stack: list[_Branch] = []
        is_short = len(content) < _MAX_REMEMBERED
        file = (_remembered if is_short else _lines_of)(content)
        lines, blank, directives = file.whole, file.blank, file.directives
        index = shift = 0
        while index < len(lines):
            if stack and not stack[-1].active:
                at = bisect_left(directives, index)
                end = directives[at] if at < len(directives) else len(lines)
                self._leave_out(name, lines, index, end, shift)
                if end == len(lines):
                    break
                index = end
            original, text, number = lines[index], blank[index], index + 1 + shift
            joined = 1
            if text.lstrip().startswith("#"):
                first = file.written[index]
                indent = len(first) - len(first.lstrip())
                here = Position(name, number, indent + 1, first, len(first.strip()))
                marker = _MARKER.match(original)
                if marker is None:
                    self._directive(text, here, stack, path, depth)
                elif not stack or stack[-1].active:
                    # The marker's own line is the one before the line it announces.
                    number = int(marker[1]) - 1
                    shift = number - (index + 1)
                    name = marker[2] or name
                self._emit("", Line(name, number, first))
            else:
                index_after, text = self._gather_call(text, blank, index, file.names[index])
                # Most lines have no macro.
                is_plain = index_after == index + 1 and file.names[index].isdisjoint(self.macros)
                try:
                    expanded, shifts = (text, ()) if is_plain else self._expand_line(text)
                except RunawayError as problem:
                    expanded, shifts = text, ()
                    here = Position(name, number, 1, original, len(original))
                    self._stop(here, str(problem), _SMALLER)
                self._emit(expanded, Line(name, number, original, shifts))
                for extra in range(index + 1, index_after):
                    self._emit("", Line(name, extra + 1 + shift, lines[extra]))
                joined = index_after - index
            index += joined
        for branch in stack:
            self._error(
                "unterminated-if",
                branch.here,
                "#if without #endif",
                "add the missing #endif",
            )

    def _gather_call(
        self, text: str, blank: list[str], index: int, names: frozenset[str]
    ) -> tuple[int, str]:
        """Join following lines while a function-like macro's arguments are still open."""
        after = index + 1
        if names.isdisjoint(self._with_arguments):
            return after, text
        while text.count("(") > text.count(")") and after < len(blank) and after - index < 200:
            if blank[after].lstrip().startswith("#"):
                break
            text += " " + blank[after]
            after += 1
        return after, text

    # Directives

    def _directive(
        self, text: str, here: Position, stack: list[_Branch], path: Path, depth: int
    ) -> None:
        """`'#' word rest`: conditions always, the others where lines are not being left out."""
        match = _DIRECTIVE.match(text)
        word, rest = (match[1], match[2].strip()) if match else ("", "")
        active = not stack or stack[-1].active
        if word in ("if", "ifdef", "ifndef"):
            value = active and self._condition(word, rest, here)
            stack.append(_Branch(value, value, active, here))
        elif word in ("elif", "else", "endif"):
            self._close(word, rest, here, stack)
        elif not active or not word:
            return
        elif word == "define":
            self._define(rest, here)
        elif word == "undef":
            name = rest.split()[0] if rest else ""
            self.macros.pop(name, None)
            self._with_arguments.discard(name)
        elif word == "include":
            self._include(rest, here, path, depth)
        elif word == "error":
            self._error("error-directive", here, f"#error {rest}", "")
        elif word not in ("pragma", "line", "warning", "ident"):
            self._error(
                "unknown-directive",
                here,
                f"unknown preprocessor directive #{word}",
                "the directives are #include, #define, #undef, #if, #ifdef, #ifndef, "
                "#elif, #else, #endif and #error",
            )

    def _close(self, word: str, rest: str, here: Position, stack: list[_Branch]) -> None:
        """`#elif`, `#else`, `#endif`: one branch of an #if is taken, the first that holds."""
        if not stack:
            self._error(
                "unmatched-directive",
                here,
                f"#{word} without #if",
                "remove it or add the #if it belongs to",
            )
            return
        branch = stack[-1]
        if word == "endif":
            stack.pop()
            return
        if branch.seen_else:
            self._error("unmatched-directive", here, f"#{word} after #else", "remove it")
        if word == "else":
            branch.active = branch.outer and not branch.taken
            branch.seen_else = True
        else:
            branch.active = branch.outer and not branch.taken and self._condition("if", rest, here)
        branch.taken = branch.taken or branch.active

    def _condition(self, word: str, rest: str, here: Position) -> bool:
        """`#ifdef X`, `#ifndef X`, or `#if` with `defined` answered and macros expanded first."""
        if word != "if":
            match = _NAME.match(rest)
            if not match:
                self._error("bad-directive", here, f"#{word} needs a macro name", "")
                return False
            return (match[0] in self.macros) == (word == "ifdef")
        text = re.sub(
            r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))",
            lambda m: "1" if (m[1] or m[2]) in self.macros else "0",
            rest,
        )
        try:
            return _Condition(self._expand(text, frozenset())).value() != 0
        except RunawayError as problem:
            self._stop(here, str(problem), _SMALLER)
            return False
        except (ValueError, ZeroDivisionError, OverflowError, RecursionError):
            self._error(
                "bad-directive",
                here,
                f"cannot evaluate '#if {rest}'",
                "use integers, defined(X), comparisons, &&, ||, ! and parentheses",
            )
            return False

    def _define(self, rest: str, here: Position) -> None:
        """`name body` or `name(a, b) body`, the bracket right behind the name."""
        match = _NAME.match(rest)
        if not match:
            self._error("bad-directive", here, "#define needs a name", "")
            return
        name, after = match[0], rest[match.end() :]
        params: tuple[str, ...] | None = None
        if after.startswith("("):
            inside, close, after = after[1:].partition(")")
            if not close:
                self._error("bad-directive", here, "#define has an unclosed parameter list", "")
                return
            params = tuple(p.strip() for p in inside.split(",")) if inside.strip() else ()
        self.macros[name] = Macro(name, params, after.strip())
        (self._with_arguments.discard if params is None else self._with_arguments.add)(name)

    def _include(self, rest: str, here: Position, path: Path, depth: int) -> None:
        """`"file"` beside this one, then as `<file>`: where -I says, then our own."""
        if self._stopped:
            return
        try:
            rest = rest if rest[:1] in ('"', "<") else self._expand(rest, frozenset()).strip()
        except RunawayError as problem:
            self._stop(here, str(problem), _SMALLER)
            return
        match = re.match(r'"([^"]+)"|<([^>]+)>', rest)
        if not match:
            self._error("bad-directive", here, '#include needs "file" or <file>', "")
            return
        if depth >= MAX_INCLUDE_DEPTH:
            self._error(
                "include-loop",
                here,
                "includes nest too deeply",
                "guard the file with #ifndef / #define / #endif",
            )
            self._stopped = True
            return
        self._includes += 1
        if self._includes > MAX_INCLUDES:
            self._stop(
                here,
                f"more than {MAX_INCLUDES} files are included",
                "guard files with #ifndef / #define / #endif",
            )
            return
        wanted = match[1] or match[2]
        places = [*self.include_dirs, INCLUDE_DIR]
        if match[1]:
            places.insert(0, path.parent)
        why = f"cannot find include file {wanted}"
        for place in places:
            target = place / wanted
            try:
                if self._lies_outside(target):
                    self._error(
                        "include-outside",
                        here,
                        f"{wanted} is not in the program's folder",
                        "include what is handed in with it, or what every compiler has",
                    )
                    return
                content = self.read(target)
            except FileError as error:
                self._note(str(target), None)
                why = why if isinstance(error, NoFileError) else str(error)
                continue
            if self.kept is None:
                self._file(content, str(target), target, depth + 1)
            else:
                self._again(self.kept, content, target, depth + 1)
            return
        self._error(
            "include-not-found",
            here,
            why,
            "add its directory with -I, or correct the name",
        )

    def _again(
        self, kept: dict[tuple[str, int], Included], content: str, target: Path, depth: int
    ) -> None:
        """A file as it came out the last time, if nothing has changed that it follows from."""
        key = (str(target), self._often[str(target)])
        found = kept.get(key)
        if found is not None and self._holds(found, depth):
            self._take(found)
            return
        reported, before = len(self.diagnostics.found), dict(self.macros)
        at, size = len(self._read), self._grown()
        out, lines = len(self._out), len(self._lines)
        expanded, self.expanded = self.expanded, set()
        self._note(str(target), content)
        self._file(content, str(target), target, depth)
        if len(self.diagnostics.found) == reported and not self._stopped:
            grown = tuple(now - then for now, then in zip(self._grown(), size, strict=True))
            kept[key] = Included(
                tuple(self._read[at:]), before, depth, dict(self.macros),
                frozenset(self.expanded), self._out[out:], self._lines[lines:],
                grown,  # type: ignore[arg-type]  # three of them
            )  # fmt: skip
        self.expanded |= expanded

    def _note(self, path: str, content: str | None) -> None:
        self._read.append((path, content))
        self._often[path] += 1

    def _grown(self) -> tuple[int, int, int]:
        return self._size, self._replacements, self._includes

    def _holds(self, found: Included, depth: int) -> bool:
        """Whether a file would come out so again, within all bounds."""
        size, replacements, includes = map(sum, zip(self._grown(), found.grown, strict=True))
        if size > MAX_OUTPUT or replacements > MAX_REPLACEMENTS or includes > MAX_INCLUDES:
            return False
        is_same = found.depth == depth and found.before == self.macros and not self._stopped
        return is_same and all(self._content(path) == content for path, content in found.read)

    def _content(self, path: str) -> str | None:
        with suppress(FileError):
            return self.read(Path(path))
        return None

    def _take(self, found: Included) -> None:
        """What a file came to."""
        for path, content in found.read:
            self._note(path, content)
        self.macros.clear()
        self.macros.update(found.after)
        self._with_arguments = {n for n, m in found.after.items() if m.params is not None}
        self.expanded |= found.expanded
        self._out += found.out
        self._lines += found.lines
        size, replacements, includes = found.grown
        self._size += size
        self._replacements += replacements
        self._includes += includes

    def _lies_outside(self, target: Path) -> bool:
        """Whether a path leads, or a link in it does, to where nothing may be included from."""
        if not self._within:
            return False
        try:
            found = target.resolve()
        except (OSError, ValueError, RuntimeError):  # no path, or a circle of links
            return True
        return not any(found.is_relative_to(place) for place in self._within)

    # Macro expansion

    def _expand_line(self, text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
        """A line with its macros expanded, and pairs of columns, after and before, where they
        end to be the same."""
        macros = self.macros
        if self._stopped:
            return text, ()
        for match in _NAME.finditer(text):
            if match[0] in macros:
                break
        else:
            return text, ()
        out: list[str] = []
        shifts: list[tuple[int, int]] = []
        size = at = 0
        for word, replaced in self._pieces(text, frozenset()):
            if replaced is not None:
                shifts.append((size, at))
            out.append(word if replaced is None else replaced)
            size += len(out[-1])
            at += len(word)
            if replaced is not None:
                shifts.append((size, at))
        return "".join(out), tuple(shifts)

    def _expand(self, text: str, hidden: frozenset[str]) -> str:
        """A text with its macros expanded, but for those in whose expansion it stands."""
        out: list[str] = []
        size = 0
        for word, replaced in self._pieces(text, hidden):
            out.append(word if replaced is None else replaced)
            size += len(out[-1])
            if size > MAX_EXPANSION:
                raise RunawayError(f"a macro here becomes longer than {MAX_EXPANSION} characters")
        return "".join(out)

    def _pieces(self, text: str, hidden: frozenset[str]) -> Iterator[tuple[str, str | None]]:
        """A text's words, and what a macro puts in their place; None where none does."""
        tokens = [m[0] for m in _TOKEN.finditer(text)]
        index = 0
        while index < len(tokens):
            word = tokens[index]
            macro = self.macros.get(word) if word not in hidden else None
            replaced, used = (
                (None, 1) if macro is None else self._apply(macro, tokens, index, hidden)
            )
            yield "".join(tokens[index : index + used]), replaced
            index += used

    def _apply(
        self, macro: Macro, tokens: list[str], index: int, hidden: frozenset[str]
    ) -> tuple[str | None, int]:
        """The expansion of a macro used at `index`, and how many tokens that use took."""
        inner = hidden | {macro.name}
        self.expanded.add(macro.name)
        self._replacements += 1
        if len(inner) > MAX_MACRO_DEPTH:
            raise RunawayError(f"more than {MAX_MACRO_DEPTH} macros stand within one another here")
        if self._replacements > MAX_REPLACEMENTS:
            raise RunawayError(f"more than {MAX_REPLACEMENTS} macros were expanded up to here")
        if macro.params is None:
            return self._expand(_paste(macro.body), inner), 1
        at = index + 1
        while at < len(tokens) and tokens[at].isspace():
            at += 1
        if at >= len(tokens) or tokens[at] != "(":
            return None, 1
        arguments: list[str] = [""]
        level = 1
        at += 1
        while at < len(tokens):
            word = tokens[at]
            level += (word == "(") - (word == ")")
            if level == 0:
                break
            if word == "," and level == 1:
                arguments.append("")
            else:
                arguments[-1] += word
            at += 1
        else:
            return None, 1
        values = dict(zip(macro.params, (a.strip() for a in arguments), strict=False))
        body = _substitute(macro.body, values, lambda t: self._expand(t, hidden))
        if len(body) > MAX_EXPANSION:
            raise RunawayError(f"a macro here becomes longer than {MAX_EXPANSION} characters")
        return self._expand(_paste(body), inner), at + 1 - index


_SMALLER = "let macros use each other less often; a macro that names another twice doubles it"


def _paste(body: str) -> str:
    return re.sub(r"\s*##\s*", "", body) if "##" in body else body


def _substitute(body: str, values: dict[str, str], expand: Callable[[str], str]) -> str:
    """Put arguments in place of parameters, honouring # and ##."""
    out: list[str] = []
    tokens = [m[0] for m in _TOKEN.finditer(body)]
    before = after = [""] * len(tokens)
    if "##" in body:
        before = _beside(tokens)
        after = [each[::-1] for each in _beside([word[::-1] for word in reversed(tokens)])][::-1]
    for index, word in enumerate(tokens):
        if word not in values:
            if word == "#" and index + 1 < len(tokens) and tokens[index + 1] in values:
                continue
            out.append(word)
            continue
        if index and tokens[index - 1] == "#":
            out.append('"' + values[word].replace("\\", "\\\\").replace('"', '\\"') + '"')
        elif "##" in (before[index], after[index]):
            out.append(values[word])
        else:
            out.append(expand(values[word]))
    return "".join(out)


def _beside(tokens: list[str]) -> list[str]:
    """The last two characters before each word, blanks before it aside."""
    found = []
    last, gap = "", ""
    for word in tokens:
        found.append(last)
        if word.isspace():
            gap = " "
        else:
            last, gap = (last + gap + word)[-2:], ""
    return found


class _Lines(Data):
    """A file's lines, and what does not follow from macros."""

    written: list[str]
    whole: list[str]  # joined where one goes on in the next
    blank: list[str]  # without comments
    names: list[frozenset[str]]  # in each of these
    directives: list[int]


def _lines_of(content: str) -> _Lines:
    written = content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines = spliced(written)
    blank = blank_comments("\n".join(lines)).split("\n")
    directives = [at for at, text in enumerate(blank) if text.lstrip().startswith("#")]
    names = [frozenset(_NAME.findall(text)) for text in blank]
    return _Lines(written, lines, blank, names, directives)


# A file is included by many others, which leave out all of it but the first time.
_remembered = lru_cache(maxsize=64)(_lines_of)
_MAX_REMEMBERED = 1 << 18  # characters


def spliced(written: list[str]) -> list[str]:
    """The lines of a program, joined where a backslash ends one: the whole stands where its first
    part did, and an empty line for every other part, so that numbers stay true."""
    lines: list[str] = []
    parts: list[str] = []
    for line in [*written, ""] if _ends_joined(written[-1]) else written:
        goes_on = _ends_joined(line)
        parts.append(line.rstrip(" \t")[:-1] if goes_on else line)
        if not goes_on:
            lines += ["".join(parts), *[""] * (len(parts) - 1)]
            parts.clear()
    return lines


def _ends_joined(line: str) -> bool:
    return line.rstrip(" \t").endswith("\\")


def blank_comments(text: str) -> str:
    """Replace comments by spaces, keeping line breaks and columns."""
    out: list[str] = []
    at = 0
    while match := _COMMENT_OR_STRING.search(text, at):
        out.append(text[at : match.start()])
        word = match[0]
        end = match.end()
        if word == "/*":
            close = text.find("*/", end)
            end = len(text) if close < 0 else close + 2
            out.append(re.sub(r"[^\n]", " ", text[match.start() : end]))
        elif word.startswith("//"):
            out.append(" " * len(word))
        else:
            out.append(word)
        at = end
    out.append(text[at:])
    return "".join(out)


class _Condition:
    """The value of an #if expression, by precedence climbing over its tokens."""

    _LEVELS = (
        ("||",),
        ("&&",),
        ("|",),
        ("^",),
        ("&",),
        ("==", "!="),
        ("<", "<=", ">", ">="),
        ("<<", ">>"),
        ("+", "-"),
        ("*", "/", "%"),
    )

    def __init__(self, text: str) -> None:
        self._tokens = [m[0] for m in _TOKEN.finditer(text) if not m[0].isspace()]
        self._at = 0
        if len(self._tokens) > 1000:
            raise ValueError

    def value(self) -> int:
        """Evaluate all of it."""
        result = self._level(0)
        if self._at != len(self._tokens):
            raise ValueError
        return result

    def _level(self, level: int) -> int:
        if level == len(self._LEVELS):
            return self._unary()
        left = self._level(level + 1)
        while self._at < len(self._tokens) and self._tokens[self._at] in self._LEVELS[level]:
            op = self._tokens[self._at]
            self._at += 1
            left = _binary(op, left, self._level(level + 1))
        return left

    def _unary(self) -> int:
        if self._at >= len(self._tokens):
            raise ValueError
        word = self._tokens[self._at]
        self._at += 1
        if word == "!":
            return int(not self._unary())
        if word == "-":
            return -self._unary()
        if word == "~":
            return ~self._unary()
        if word == "+":
            return self._unary()
        if word == "(":
            value = self._level(0)
            if self._at >= len(self._tokens) or self._tokens[self._at] != ")":
                raise ValueError
            self._at += 1
            return value
        if word[0].isdigit():
            return int(word.rstrip("uUlL").replace("_", ""), 0)
        return int(word == "true")


def _binary(op: str, left: int, right: int) -> int:
    if op in ("<<", ">>"):
        if not 0 <= right < 4096:
            raise ValueError
        return left << right if op == "<<" else left >> right
    table = {
        "||": lambda: int(bool(left or right)),
        "&&": lambda: int(bool(left and right)),
        "|": lambda: left | right,
        "^": lambda: left ^ right,
        "&": lambda: left & right,
        "==": lambda: int(left == right),
        "!=": lambda: int(left != right),
        "<": lambda: int(left < right),
        "<=": lambda: int(left <= right),
        ">": lambda: int(left > right),
        ">=": lambda: int(left >= right),
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left // right,
        "%": lambda: left % right,
    }
    return table[op]()
