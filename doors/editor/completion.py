"""How a word may go on: what is in scope, and behind a dot what is part of what stands before it.

It works on a program as it was read last, which the line that is being written broke perhaps: what
stands before the dot is read from the line itself, and looked up in the scopes around it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from compiler import syntax as s
from compiler import types as t
from compiler.check.base import Constant, Declared
from compiler.check.names import Member
from compiler.preprocess import INCLUDE_DIR
from doors.editor.kinds import STATES, Part, kind_of, members_of, parts_of, reads, type_of
from doors.editor.program import Program

DIRECTIVES = ("include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif")
PROPERTIES = ("key", "actions", "default_action", "entries", "size", "implementation", "counters",
              "meters", "support_timeout")  # fmt: skip
_CHAIN = re.compile(
    r"((?:\.\s*)?[A-Za-z_]\w*(?:\s*(?:\[[^\[\]]*\]|\([^()]*\)))*"
    r"(?:\s*\.\s*[A-Za-z_]\w*(?:\s*(?:\[[^\[\]]*\]|\([^()]*\)))*)*)\s*\.\s*(\w*)$"
)
_PARTS = re.compile(r"([A-Za-z_]\w*)((?:\s*(?:\[[^\[\]]*\]|\([^()]*\)))*)")
_NOT_IN_SCOPE = (t.Field, Member, s.StateDecl)


def completions(program: Program, file: str, lines: Sequence[str], line: int, column: int
                ) -> list[Part]:  # fmt: skip
    """What may stand at a place of a file that reads like this now."""
    before = lines[line][:column] if line < len(lines) else ""
    if "//" in re.sub(r'"[^"]*"', "", before):
        return []
    if before.lstrip().startswith("#"):
        return _in_directive(before)
    offset = _offset(program, file, lines, line, column)
    at = program.token_at(offset)
    joined = before
    for above in range(line - 1, max(-1, line - 4), -1):
        if not re.match(r"^\s*\.", joined) and joined.strip():
            break
        joined = lines[above].strip() + joined.strip()
    chain = _CHAIN.search(joined)
    if chain:
        return _of_chain(program, at, chain[1])
    if re.search(r"(?:\btransition\s+|:\s*)\w*$", before) and (states := _states(program, at)):
        return states
    if re.search(r":\s*\w*$", before):
        return [Part(name, "match kind") for name in _listed(program, "match_kind")]
    found = {name: Part(name, kind_of(what), reads(name, what).split("\n")[0])
             for name, what in visible(program, at).items()}  # fmt: skip
    words = [Part(word, "keyword") for word in (*program.keywords(), *PROPERTIES, "error")]
    macros = [Part(name, "macro", about) for name, about in program.macros.items()]
    return [*found.values(), *macros, *(each for each in words if each.name not in found)]


def _offset(program: Program, file: str, lines: Sequence[str], line: int, column: int) -> int:
    """Where a place of the file as it is now was when the program was read."""
    then = line_then(program, file, lines, line)
    number = _alike(lines, program.lines_of(file), line) if then is None else then
    found = None
    while found is None and number >= 0:
        found = program.offset_of(file, number, column)
        number, column = number - 1, 1 << 20
    return found or 0


def line_now(program: Program, file: str, lines: Sequence[str], line: int) -> int | None:
    """Where a line of a program that was read before is in the file as it is now."""
    return _moved(program.lines_of(file), lines, line)


def line_then(program: Program, file: str, lines: Sequence[str], line: int) -> int | None:
    """Where a line of the file as it is now was when the program was read, if it was."""
    return _moved(lines, program.lines_of(file), line)


def _moved(one: Sequence[str], other: Sequence[str], line: int) -> int | None:
    """Where a line of one text is in another that is the same above or below all changes."""
    same = _alike(one, other, line + 1)
    if same > line:
        return line
    most = min(len(one), len(other)) - same
    below = _alike(one[::-1][:most], other[::-1][:most], most)
    return line - len(one) + len(other) if line >= len(one) - below else None


def _alike(one: Sequence[str], other: Sequence[str], most: int) -> int:
    """How many lines at the beginning are the same."""
    same = 0
    while same < min(len(one), len(other), most) and one[same] == other[same]:
        same += 1
    return same


def _in_directive(before: str) -> list[Part]:
    if re.match(r"\s*#\s*\w*$", before):
        return [Part(word, "keyword") for word in DIRECTIVES]
    if re.search(r"include\s*<[\w.]*$", before):
        return [Part(each.name, "file") for each in sorted(INCLUDE_DIR.glob("*.p4"))]
    return []


# Scopes


def visible(program: Program, at: int) -> dict[str, object]:
    """The names that mean something at a token; of several the innermost."""
    found: dict[str, object] = {}
    for declared in sorted(program.declared):
        what = program.declared[declared]
        if declared >= at:
            break
        if _is_in_scope(program, declared, what) and _reach(program, declared, what) >= at:
            found[program.tokens.texts[declared]] = what
    return found


def _is_in_scope(program: Program, declared: int, what: object) -> bool:
    """Whether a name is used by itself, and not behind a dot."""
    if isinstance(what, _NOT_IN_SCOPE):
        return False
    if isinstance(what, t.Method):  # a function, but of no extern object
        return program.opening(declared) < 0
    return not (isinstance(what, Constant) and _in_enum(program, declared))


def _in_enum(program: Program, declared: int) -> bool:
    opening = program.opening(declared)
    kinds = program.tokens.kinds
    before = opening
    while before > 0 and kinds[before] not in ("enum", ";", "}"):
        before -= 1
    return opening >= 0 and kinds[before] == "enum"


def _reach(program: Program, declared: int, what: object) -> int:
    """The last token at which a name means this."""
    opening, kinds = program.opening(declared), program.tokens.kinds
    if isinstance(what, Declared) and isinstance(what.type, t.TypeVar):
        return program.end_of(declared)
    if opening < 0:
        return len(kinds)
    if kinds[opening] != "(":
        return program.closing(opening)
    at = program.closing(opening) + 1
    while kinds[at] == "(":  # a constructor's
        at = program.closing(at) + 1
    return program.closing(at) if kinds[at] == "{" else program.end_of(at)


def _states(program: Program, at: int) -> list[Part]:
    """The states of the parser around, with those that every parser has."""
    opening = at
    while (opening := program.opening(opening)) >= 0:
        own = [
            Part(program.tokens.texts[each], "state")
            for each, what in program.declared.items()
            if isinstance(what, s.StateDecl) and program.opening(each) == opening
        ]
        if own:
            return [*own, *(Part(name, "state") for name in STATES)]
    return []


def _listed(program: Program, of: str) -> list[str]:
    return [
        each.name
        for each in program.declared.values()
        if isinstance(each, Member) and each.of == of and each.type is None
    ]


# Behind a dot


def _of_chain(program: Program, at: int, chain: str) -> list[Part]:
    """What is part of `a.b[i].c(...)`."""
    words = [(match[1], match[2]) for match in _PARTS.finditer(_without_arguments(chain))]
    if not words:
        return []
    first, behind = words[0]
    names = visible(program, at)
    if first == "error":
        return [Part(name, "enum member", "error") for name in _listed(program, "error")]
    what = names.get(first)
    if what is None:
        return []
    type_ = _behind(_result(what) if "(" in behind else type_of(what), behind)
    found = parts_of(type_) or members_of(what, _listed(program, "error"))
    for name, more in words[1:]:
        part = next((each for each in found if each.name == name), None)
        if part is None:
            return []
        found = parts_of(_behind(part.type, more))
    return found


def _without_arguments(chain: str) -> str:
    return re.sub(r"\([^()]*\)", "()", chain)


def _result(what: object) -> t.Type | None:
    return what.returns if isinstance(what, t.Method) else None


def _behind(type_: t.Type | None, brackets: str) -> t.Type | None:
    """The type of an element, for as many indexes as stand there."""
    for _ in range(brackets.count("[")):
        base = None if type_ is None else t.strip(type_)
        type_ = base.element if isinstance(base, t.Stack | t.ListType) else type_
    return type_
