"""Renaming: all places of a name and no other, in every program that has the file; or why not.

A new name that no program has at all cannot clash. One that some program has is tried: the programs
are read again with the name changed, and each word must mean what it meant before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from compiler.diagnostics import Diagnostic
from compiler.lexer import KEYWORDS
from doors.editor.kinds import HEADER_METHODS, STACK_METHODS, STACK_PARTS, STATES, TABLE_RESULTS
from doors.editor.program import Place, Program, is_ours, real
from doors.editor.reading import read_program
from lab.errors import LabError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIXED = {"main": "the compiler looks for it by that name", "start": "a parser begins there"}
_BUILT_IN = frozenset(
    (
        *HEADER_METHODS,
        *STACK_PARTS,
        *STACK_METHODS,
        *TABLE_RESULTS,
        *STATES,
        *_FIXED,
        "NoAction",
        "error",
        "apply",
        "default_action",
    )
)
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_DEFINE = re.compile(r"#\s*define\s+(\w+)")
_ASKED = re.compile(r"#\s*(?:(ifn?def)\s+(\w+)|(?:el)?if\b)")
_MAX_VARIANTS = 3


class RefusedError(LabError):
    """A name that cannot be changed to that."""


def target(program: Program, at: int | None) -> int:
    """The declaration of the name that a token is, if it may be changed."""
    declaration = None if at is None else program.declaration_of(at)
    if at is None or declaration is None:
        raise RefusedError("here stands no name that the program declares")
    word, place = program.tokens.texts[declaration], program.place(declaration)
    if is_ours(place.file):
        raise RefusedError(f"'{word}' is declared in {Path(place.file).name}, which is not yours")
    what = program.declared[declaration]
    if word in _FIXED and (word == "main" or type(what).__name__ == "StateDecl"):
        raise RefusedError(f"'{word}' cannot be renamed: {_FIXED[word]}")
    if not program.is_written(program.place(at), word):
        raise RefusedError(f"'{word}' comes out of a macro here", "Rename it where it is written.")
    return declaration


def places(programs: Iterable[Program], where: Place, word: str) -> list[Place]:
    """All places of what is declared there, those in macros among them."""
    found: dict[Place, None] = {}
    for program in programs:
        for at in _declared_at(program, where, word):
            found.update((place, None) for place in _places_in(program, at, word))
    return sorted(found, key=lambda p: (p.file, p.line, p.column))


def _declared_at(program: Program, where: Place, word: str) -> list[int]:
    """The declaration that stands at a place, in another program than where it was found."""
    return [
        at
        for at in program.tokens_of(word)
        if at in program.declared and program.place(at) == where
    ][:1]


def _places_in(program: Program, declaration: int, word: str) -> Iterator[Place]:
    used = program.uses_of(declaration)
    born = set()
    for at in used:
        place = program.place(at)
        if program.is_written(place, word):
            yield place
        else:
            born.add((place.file, place.line))
    for file, number in born:
        yield from _written(program, file, number, word)
    if born:
        for file in sorted(program.files):
            for number, first in program.directives_of(file).items():
                name = _DEFINE.match(first)
                if name and name[1] in program.expanded:
                    yield from _written(program, file, number, word)


def _written(program: Program, file: str, number: int, word: str) -> Iterator[Place]:
    """Where a word stands in a line, outside comments and strings."""
    text = _STRING.sub(lambda m: " " * len(m[0]), program.bare_lines(file)[number])
    for match in re.finditer(rf"\b{re.escape(word)}\b", text):
        yield Place(file, number, match.start(), len(word))


def renamed(
    programs: Sequence[Program],
    where: Place,
    word: str,
    new: str,
    defining: Callable[[Program, str], Program],
    read: Callable[[Path], str],
) -> list[Place]:
    """The places to change, or what is against it."""
    if not _NAME.fullmatch(new) or new in KEYWORDS:
        raise RefusedError(f"'{new}' is no name in P4", "Take letters, digits and underscores.")
    if new in _BUILT_IN:
        raise RefusedError(f"'{new}' has a meaning of its own in P4", "Choose another name.")
    for program in programs:
        _refuse_broken(program)
    programs = [*programs, *_variants(programs, word, defining)]
    found = places(programs, where, word)
    if new == word:
        return found
    _refuse_macros(programs, where, word)
    _refuse_hidden(programs, {*found}, word)
    if any(_has(program, new) for program in programs):
        _try(programs, found, word, new, read)
    return found


def _variants(
    programs: Sequence[Program], word: str, defining: Callable[[Program, str], Program]
) -> Iterator[Program]:
    """The same programs with what #ifdef asks for, where a word stands that is left out else."""
    for program in programs:
        wanted: dict[str, None] = {}
        for file in sorted(program.files):
            left = any(
                program.is_left_out(file, place.line)
                and place.line not in program.directives_of(file)
                for place in _all_in(program, file, word)
            )
            for first in program.directives_of(file).values() if left else ():
                wanted.update((name, None) for name in _asked(first))
        defined = {
            name[1]
            for file in program.files
            for first in program.directives_of(file).values()
            if (name := _DEFINE.match(first))
        }
        for asked in [each for each in wanted if each not in defined][:_MAX_VARIANTS]:
            variant = defining(program, asked)
            if variant.is_sound:
                yield variant


def _all_in(program: Program, file: str, word: str) -> Iterator[Place]:
    if word in program.contents.get(file, ""):
        for number in range(len(program.bare_lines(file))):
            yield from _written(program, file, number, word)


def _asked(first: str) -> list[str]:
    """The macros that a condition asks for."""
    asked = _ASKED.match(first)
    if asked is None:
        return []
    return [asked[2]] if asked[1] else re.findall(r"\bdefined\s*\(?\s*(\w+)", first)


def _refuse_broken(program: Program) -> None:
    """Where names mean nothing, nobody knows which are this one."""
    for diagnostic in program.diagnostics.found:
        if diagnostic.severity == "error":
            raise RefusedError(
                f"{program.root.name} has errors, the first of which is: {_said(diagnostic)}",
                "Rename when it compiles.",
            )


def _said(diagnostic: Diagnostic) -> str:
    at = diagnostic.position
    return (f"{Path(at.file).name}:{at.line}: " if at else "") + diagnostic.message


def _refuse_macros(programs: Sequence[Program], where: Place, word: str) -> None:
    """A macro in which a word means this here and something else there."""
    for program in programs:
        same = {each for at in _declared_at(program, where, word) for each in program.uses_of(at)}
        born = [
            at for at in program.tokens_of(word) if not program.is_written(program.place(at), word)
        ]
        if same.isdisjoint(born):
            continue
        for at in born:
            if at not in same:
                place = program.place(at)
                raise RefusedError(
                    f"'{word}' comes out of a macro at {Path(place.file).name}:{place.line + 1}, "
                    "and means something else there",
                    "Write it out in one of both.",
                )


def _refuse_hidden(programs: Sequence[Program], found: set[Place], word: str) -> None:
    """A place that the compiler does not see: in a macro, in what #if leaves out, in a note."""
    for place in found:
        if is_ours(place.file):
            raise RefusedError(f"'{word}' is also named in {Path(place.file).name}")
    files = {file for program in programs for file in program.files if not is_ours(file)}
    for file in sorted(files):
        own = [program for program in programs if file in program.files]
        for place in _all_in(own[0], file, word):
            first = own[0].directives_of(file).get(place.line)
            if place in found or (first and re.match(r"#\s*include\b", first)):
                continue
            if first or all(program.is_left_out(file, place.line) for program in own):
                why = "a directive names it" if first else "it is left out"
                raise RefusedError(
                    f"'{word}' also stands at {Path(file).name}:{place.line + 1}, where {why}",
                    "Whether it is the same nobody can tell: rename it there by hand first.",
                )
    for program in programs:
        for at in program.tokens_of(word):
            if program.in_note(at):
                place = program.place(at)
                raise RefusedError(
                    f"an annotation names '{word}' at {Path(place.file).name}:{place.line + 1}",
                    "Whether it is the same nobody can tell: rename it there by hand first.",
                )


def _has(program: Program, word: str) -> bool:
    """Whether a word stands anywhere in a program."""
    if program.tokens_of(word) or word in program.macros:
        return True
    named = re.compile(rf"\b{re.escape(word)}\b")
    return any(named.search(text) for file in program.files for text in program.bare_lines(file))


def _try(
    programs: Sequence[Program],
    found: Sequence[Place],
    word: str,
    new: str,
    read: Callable[[Path], str],
) -> None:
    """Read all again as they would be, and compare what each word means."""
    by_file: dict[str, list[Place]] = {}
    for place in found:
        by_file.setdefault(place.file, []).append(place)

    def changed(path: Path) -> str:
        text = read(path)
        own = by_file.get(real(str(path)))
        return text if own is None else edited(text, own, new)

    for program in programs:
        after = read_program(program.root, program.settings, changed)
        if after.is_sound and after.meanings() == program.meanings():
            continue
        for diagnostic in after.diagnostics.found:
            if diagnostic.severity == "error":
                raise RefusedError(
                    f"'{word}' cannot become '{new}': {_said(diagnostic)}", "Choose another name."
                )
        raise RefusedError(
            f"'{word}' cannot become '{new}': words of {program.root.name} would mean something "
            "else then",
            "Choose another name.",
        )


def edited(text: str, places: Iterable[Place], new: str) -> str:
    """A file's text with these places changed."""
    lines = re.split(r"(\r\n|\n|\r)", text)
    for place in sorted(places, key=lambda p: (p.line, p.column), reverse=True):
        line = lines[2 * place.line]
        lines[2 * place.line] = line[: place.column] + new + line[place.column + place.length :]
    return "".join(lines)
