"""Random edits of P4 programs: read again from where it changed, each is as it is read anew.

    python -m tests.doors.rereadings --count 1000 --seed 1

A program is drawn, and edited one to eight times in a row in any of its files: characters come and
go, words change places, lines are doubled, moved and left out, an edit is taken back. Some readings
are broken off on the way, as by the next keystroke. What comes of each is held against the
compiler's own passes, one after the other from the beginning: the text and where its lines come
from, words, the tree, what each name means and how its declaration reads, macros, all that is told,
the typed tree, and in a part of the cases the JSON; and in a part of them against what comes of the
text as it is written.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from compiler import syntax as s
from compiler.check import check
from compiler.check.names import Names
from compiler.diagnostics import CompileError, Diagnostics, TooManyErrorsError
from compiler.driver import Compiled
from compiler.dump import dump
from compiler.lexer import tokenize
from compiler.parser import parse
from compiler.preprocess import Preprocessor, content_of
from compiler.source import Line, Text
from doors.editor.kinds import kind_of, reads
from doors.editor.layout import laid_out
from doors.editor.program import Program, Settings, deep, real
from doors.editor.reading import MAX_ERRORS, Reading, SupersededError
from params.data import Data
from tests.doors.renames import programs

_BITS = (
    *';{}()<>"@#\n',
    " ",
    "//",
    "/*",
    "*/",
    "#if 0\n",
    "#endif\n",
    "#define hdr hdr\n",
    "bit<8> x;",
)


class Edited(Data, frozen=False):
    """A program's files as they are by now."""

    root: Path
    texts: dict[str, str] = field(default_factory=dict)

    def read(self, path: Path) -> str:
        """A file."""
        found = self.texts.get(real(str(path)))
        return content_of(path) if found is None else found


def anew(edited: Edited, laid: Callable[[Text], Text] = laid_out) -> Program:
    """What the compiler's passes make of a program, from its beginning; its text may be as it is
    written, which an editor's is not."""
    diagnostics, names, core = Diagnostics(most_errors=MAX_ERRORS), Names(), None
    contents: dict[str, str] = {}

    def read(path: Path) -> str:
        contents[real(str(path))] = text = edited.read(path)
        return text

    preprocessor = Preprocessor(diagnostics, read=read)
    with deep():
        try:
            text = diagnostics.text = laid(preprocessor.run(edited.root))
            tokens = tokenize(text.text, diagnostics)
            syntax = parse(tokens, diagnostics)
        except TooManyErrorsError:
            text = diagnostics.text or Text("\n", [Line(str(edited.root), 1, "")])
            tokens, syntax = tokenize("", diagnostics), s.Program(())
        is_whole, heard = not diagnostics.error_count, diagnostics
        if not is_whole:
            heard = Diagnostics(most_errors=MAX_ERRORS)
            heard.text = diagnostics.text
        try:
            core = check(syntax, heard, names)
        except (TooManyErrorsError, CompileError, RecursionError):
            pass
        except Exception:
            if is_whole:
                raise
    core = core if is_whole and not diagnostics.error_count else None
    macros = {
        name: f"({', '.join(m.params)}) {m.body}" if m.params is not None else f" {m.body}"
        for name, m in preprocessor.macros.items()
    }
    return Program(
        edited.root, Settings(), text, tokens, syntax, names, diagnostics, core, macros,
        frozenset(preprocessor.expanded), contents,
    )  # fmt: skip


def shown(program: Program) -> dict[str, object]:
    """All that an editor may be told of a program, to be compared."""
    names = program.names
    return {
        "text": program.text.text,
        "lines": program.text.lines,
        "words": program.tokens,
        "tree": program.syntax,
        "uses": names.uses,
        "declared": {at: _reads(program, at, what) for at, what in names.declared.items()},
        "told": program.diagnostics.found,
        "macros": (program.macros, program.expanded),
        "files": program.contents,
        "types": program.core and dump(Compiled(core=program.core), "types"),
        "functions": program.core and [each.name for each in program.core.functions],
        "kinds": program.core and [str(each) for each in program.core.types],
    }


def placed(program: Program) -> dict[str, object]:
    """What of it does not follow from how its text is laid out."""
    tokens = program.tokens
    at = {start: program.place(n) for n, start in enumerate(tokens.starts) if tokens.texts[n]}
    uses = program.names.uses
    named = [
        (at[use], at[declared]) for use, declared in uses.items() if use in at and declared in at
    ]
    return {"named": named, "told plainly": program.diagnostics.found, "json plainly": program.json}


def _reads(program: Program, at: int, what: object) -> str:
    return f"{kind_of(what)}: {reads(program.tokens.texts[program.token_at(at)], what)}"


def edit(drawn: random.Random, text: str) -> str:
    """A text with a change somewhere."""
    lines = text.split("\n")
    at, row = drawn.randrange(len(text) + 1), drawn.randrange(len(lines))
    # Many things are typed at a program's end, and no two places are alike.
    at = drawn.choice((at, max(0, len(text) - drawn.randrange(1, 400))))
    match drawn.randrange(6):
        case 0:
            return str(text[:at] + drawn.choice(_BITS) + text[at:])
        case 1:
            return text[:at] + text[at + drawn.randint(1, drawn.choice((1, 3, 200))) :]
        case 2:
            lines.insert(drawn.randrange(len(lines) + 1), lines[row])
        case 3:
            lines.insert(drawn.randrange(len(lines)), lines.pop(row))
        case 4:
            del lines[row]
        case 5:
            words = re.findall(r"[A-Za-z_]\w*", text) or ["x"]
            word, other = drawn.choice(words), drawn.choice(words)
            places = [*re.finditer(rf"\b{word}\b", text)]
            where = drawn.choice(places).span() if places else (at, at)
            return str(text[: where[0]] + other + text[where[1] :])
    return "\n".join(lines)


def _broken_off(drawn: random.Random) -> Callable[[], None]:
    """What breaks a reading off after a while."""
    left = drawn.randrange(60)

    def go_on() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise SupersededError

    return go_on


def one(root: Path, drawn: random.Random, count: int) -> list[str]:
    """A program edited so many times; in what a reading differed."""
    edited, wrong = Edited(root), []
    reading = Reading(root, Settings(), apart=drawn.choice((1, 20, 200, 1000)))
    reading.read(edited.read)
    for turn in range(count):
        files = sorted(anew(edited).contents)
        file = drawn.choice((real(str(root)), drawn.choice(files)))
        before = edited.read(Path(file))
        edited.texts[file] = edit(drawn, before)
        while drawn.random() < 0.3:
            with suppress(SupersededError):
                reading.read(edited.read, _broken_off(drawn))
        found, wanted = reading.read(edited.read), anew(edited)
        both = [shown(found), shown(wanted)]
        if found.is_sound and drawn.random() < 0.2:
            for program, own in zip((found, wanted), both, strict=True):
                program.finish()
                own["told at last"] = program.diagnostics.found
                own["json"] = program.json
        if drawn.random() < 0.3:
            plain = anew(edited, lambda text: text)
            if found.json:
                plain.finish()
            both = [own | placed(p) for own, p in zip(both, (found, plain), strict=True)]
        differs = [what for what in both[1] if both[0].get(what) != both[1][what]]
        if differs:
            wrong.append(f"{root}, edit {turn + 1}: {', '.join(differs)}")
        if drawn.random() < 0.3:
            edited.texts[file] = before
    return wrong


def sweep(count: int, seed: int, tell: Callable[[str], None] = lambda _: None) -> list[str]:
    """So many edits, of programs drawn by a seed; what came out differently."""
    drawn, known, wrong, done = random.Random(seed), programs(), [], 0
    while done < count:
        turns = min(count - done, drawn.randint(1, 8))
        for each in one(drawn.choice(known), drawn, turns):
            tell(each)
            wrong.append(each)
        done += turns
    return wrong


def main() -> None:
    """Sweep and tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    wrong = sweep(given.count, given.seed, print)
    print(f"{given.count} edits, {len(wrong)} differences (seed {given.seed})")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
