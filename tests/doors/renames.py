"""Random renames over the P4 programs of the tree: each compiles to the same but for the name.

    python -m tests.doors.renames --count 500 --seed 1

Names are drawn from all that a program declares. The new name is one that nothing has, so that put
back in the JSON it must give the JSON of before to the letter; that no other declaration was
renamed with it is counted in the syntax tree, by a walk that knows nothing of the editor's door.
A rename that would clash is tried too: to a name that the program has. It is refused, or it
compiles to the same.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from compiler import syntax as s
from compiler.diagnostics import CompileError, Diagnostics
from compiler.driver import CompileOptions, compile_program
from compiler.lexer import tokenize
from compiler.parser import parse
from compiler.preprocess import Preprocessor
from compiler.source import Span
from doors.editor.program import Place, Program, Settings, is_ours, real
from doors.editor.reading import read_program
from doors.editor.renaming import RefusedError, edited, renamed, target
from doors.editor.workspace import Desk
from lab.machine.paths import ROOT
from params.data import Data

_FOLDERS = ("p4src", "exercises", "tests/p4", "tests/switch", "tests/fabric", "tests/compiler")
# What is against a rename, as the messages say it; anything else is a finding.
REASONS = (
    *("comes out of a macro", "left out", "directive names", "annotation names", "not yours"),
    *("cannot be renamed", "cannot become", "has errors", "has a meaning", "also named in"),
    "is no name",
)


def programs() -> list[Path]:
    """All P4 files of the tree."""
    return sorted(path for folder in _FOLDERS for path in (ROOT / folder).rglob("*.p4"))


class Found(Data, frozen=False):
    """What came of all renames."""

    done: int = 0
    compiled: int = 0
    refused: Counter[str] = dataclasses.field(default_factory=Counter)
    wrong: list[str] = dataclasses.field(default_factory=list)

    def text(self) -> str:
        """In a line or two."""
        refused = ", ".join(f"{many} {why}" for why, many in self.refused.most_common())
        return (
            f"{self.done} renames: {self.compiled} compiled to the same but for the name, "
            f"{sum(self.refused.values())} refused ({refused}), {len(self.wrong)} wrong"
        )


def _json(root: Path) -> str:
    """What a program compiles to, places in it aside."""
    compiled = compile_program(root, CompileOptions(no_warnings=True, program_name="program"))
    return json.dumps(_bare(compiled.json), indent=0)


def _bare(value: Any) -> Any:
    """A part of it without its places."""
    if isinstance(value, dict):
        return {key: _bare(each) for key, each in value.items() if key != "source_info"}
    return [_bare(each) for each in value] if isinstance(value, list | tuple) else value


def _declares(root: Path, name: str) -> set[tuple[str, int, int]]:
    """Where a name is declared, by a walk over the tree."""
    diagnostics = Diagnostics()
    text = Preprocessor(diagnostics).run(root)
    tree = parse(tokenize(text.text, diagnostics), diagnostics)
    found: set[tuple[str, int, int]] = set()

    def note(word: str, span: Span) -> None:
        if word == name:
            at = text.position(span)
            found.add((at.file, at.line, at.column))

    for node in _nodes(tree):
        match node:
            case s.NameList():
                for word, span in node.members:
                    note(word, span)
            case s.EnumDecl():
                note(node.name, node.span)
                for word, _, span, _ in node.members:
                    note(word, span)
            case s.ExternDecl():
                note(node.name, node.span)
                for each in node.constructors:
                    found.discard(_place(text.position(each.span)))
            case s.ForIn():
                note(node.name, node.name_span)
            case s.Parameter() | s.Field() | s.Decl():
                note(node.name, node.span)
        for word in getattr(node, "type_params", ()):
            note(word, word.span)
    return found


def _place(at: Any) -> tuple[str, int, int]:
    return at.file, at.line, at.column


def _nodes(node: object) -> Iterator[Any]:
    if isinstance(node, tuple):
        for each in node:
            yield from _nodes(each)
    elif dataclasses.is_dataclass(node):
        if not isinstance(node, s.Program):
            yield node
        constructors = node.constructors if isinstance(node, s.ExternDecl) else ()
        for each in dataclasses.fields(node):
            value = getattr(node, each.name)
            if value is not constructors or not constructors:
                yield from _nodes(value)
        for each in constructors:
            yield from _nodes(each.params)


def _written(folder: Path, program: Program, changes: dict[str, str]) -> Path:
    """A program's files below a folder, with these changes; where its root lies there."""
    own = [file for file in program.files if not is_ours(file)]
    top = Path(os.path.commonpath([str(Path(file).parent) for file in own]))
    for file in own:
        copy = folder / Path(file).relative_to(top)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(changes.get(file, program.contents[file]))
    return folder / Path(real(str(program.root))).relative_to(top)


def one(root: Path, drawn: random.Random, found: Found, clashes: bool = False) -> None:
    """Rename one of a program's names."""
    desk = Desk()
    try:
        program = read_program(root, Settings(), desk.read)
        if not program.is_sound or program.core is None or program.core.main is None:
            return
        own = [at for at in sorted(program.declared) if not is_ours(program.place(at).file)]
        at = drawn.choice(own)
        word = program.tokens.texts[at]
        new = f"{word}_Zq{drawn.randrange(10**6)}"
        if clashes:
            new = drawn.choice([program.tokens.texts[each] for each in own])
        found.done += 1
        _rename(program, at, word, new, found, desk)
    finally:
        desk.close()


def _rename(program: Program, at: int, word: str, new: str, found: Found, desk: Desk) -> None:
    named = f"{program.root.relative_to(ROOT)}: {word} to {new}"
    try:
        declaration = target(program, at)
        where = program.place(declaration)
        changed = renamed([program], where, word, new, desk.variant, desk.read)
    except RefusedError as refused:
        why = next((each for each in REASONS if each in refused.message), None)
        found.refused[why or "?"] += 1
        if why is None or (why == "cannot become" and "_Zq" in new):
            found.wrong.append(f"{named}: {refused.message}")
        return
    by_file: dict[str, list[Place]] = {}
    for place in changed:
        by_file.setdefault(place.file, []).append(place)
        if program.lines_of(place.file)[place.line][place.column :][: len(word)] != word:
            found.wrong.append(f"{named}: {place} is no place of it")
    changes = {f: edited(program.contents[f], own, new) for f, own in by_file.items()}
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        old_root = _written(Path(first), program, {})
        new_root = _written(Path(second), program, changes)
        try:
            before = _json(old_root)
        except CompileError:
            return  # it has types, and is not for BMv2
        try:
            after = _json(new_root)
        except CompileError as error:
            found.wrong.append(f"{named}: {str(error)[:300]}")
            return
        found.compiled += 1
        if "_Zq" in new:
            if after.replace(new, word) != before:
                found.wrong.append(f"{named}: the JSON differs")
            if len(_declares(new_root, new)) != 1 and new != word:
                found.wrong.append(f"{named}: {len(_declares(new_root, new))} are declared now")
        elif re.sub(rf"\b({word}|{new})\b", "~", after) != re.sub(
            rf"\b({word}|{new})\b", "~", before
        ):
            found.wrong.append(f"{named}: the JSON differs")


def sweep(
    count: int, seed: int, tell: Callable[[str], None] = lambda _: None, clash: float = 0.2
) -> Found:
    """So many renames, of programs and names drawn by a seed."""
    drawn = random.Random(seed)
    known = programs()
    found = Found()
    while found.done < count:
        before = len(found.wrong)
        one(drawn.choice(known), drawn, found, drawn.random() < clash)
        for each in found.wrong[before:]:
            tell(each)
    return found


def main() -> None:
    """Sweep and tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = sweep(given.count, given.seed, print)
    print(found.text())
    sys.exit(bool(found.wrong))


if __name__ == "__main__":
    main()
