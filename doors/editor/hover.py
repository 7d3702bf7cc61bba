"""What a name is: how its declaration reads, its type and width, and the comment above it."""

from __future__ import annotations

import re
from pathlib import Path

from compiler import types as t
from compiler.check.base import Declared, GenericStruct
from doors.editor.kinds import kind_of, reads, type_of, width
from doors.editor.program import Program

_MAX_COMMENT = 40  # lines
_MAX_FIELDS = 40
_BUILT_IN = {
    "isValid": "whether a header, or one of a union's, is there",
    "setValid": "makes a header valid; its fields have no values yet",
    "setInvalid": "makes a header invalid",
    "next": "the element of a stack that is parsed next",
    "last": "the element of a stack that was parsed last",
    "lastIndex": "the index of the element parsed last",
    "push_front": "moves a stack's elements up, the first ones invalid then",
    "pop_front": "moves a stack's elements down",
    "apply": "applies a table, parser or control",
    "hit": "whether a table had an entry for the packet",
    "miss": "whether a table had none",
    "action_run": "which action a table ran, for switch",
    "accept": "the state in which a parser is done",
    "reject": "the state in which a parser refuses the packet",
    "default_action": "what a table runs for a packet without an entry",
    "size": "how many entries a table is to hold, or elements a stack has",
}


def hover(program: Program, at: int) -> str | None:
    """Of a token, in Markdown."""
    declaration = program.declaration_of(at)
    if declaration is None:
        word = program.tokens.texts[at]
        text = _BUILT_IN.get(word)
        return f"`{word}`: {text}" if text else None
    return hover_text(program, declaration)


def hover_text(program: Program, declaration: int) -> str:
    """Of what is declared there."""
    word, what = program.tokens.texts[declaration], program.declared[declaration]
    lines = ["```p4", reads(word, what), "```"]
    facts = [kind_of(what)]
    if isinstance(what, t.Field):
        facts[0] += _within(program, declaration, what)
    facts += filter(None, [_under(type_of(what)), width(type_of(what))])
    lines.append(", ".join(facts))
    if isinstance(what, Declared | GenericStruct):
        lines += _fields(what)
    comment = comment_of(program, declaration)
    if comment:
        lines += ["", comment]
    place = program.place(declaration)
    lines += ["", f"*{Path(place.file).name}:{place.line + 1}*"]
    return "\n".join(lines)


def _under(type_: t.Type | None) -> str:
    """What a type with a name of its own is underneath."""
    if type_ is None:
        return ""
    base = t.underlying(type_)
    return str(base) if base is not type_ and str(base) != str(type_) else ""


def _within(program: Program, declaration: int, field: t.Field) -> str:
    """Of what a field is part, and where in a header it lies."""
    opening = program.opening(declaration)
    for at, what in program.declared.items():
        if at < opening and program.opening(at) != opening and _begins(program, at) == opening:
            type_ = what.type if isinstance(what, Declared) else None
            if not isinstance(type_, t.Struct):
                return f" of {program.tokens.texts[at]}"
            return f" of {type_.kind} {type_}{_bits(type_, field)}"
    return ""


def _begins(program: Program, at: int) -> int:
    """The `{` that follows a declaration's name."""
    kinds = program.tokens.kinds
    while kinds[at] not in ("{", ";", "(", "end"):
        at += 1
    return at


def _bits(type_: t.Struct, field: t.Field) -> str:
    if type_.kind != "header":
        return ""
    begin = 0
    for each in type_.fields:
        wide = t.width_of(each.type)
        if each.name == field.name and wide:
            return f", bits {begin} to {begin + wide - 1} of it"
        if wide is None:
            return ""
        begin += wide
    return ""


def _fields(what: Declared | GenericStruct) -> list[str]:
    """What is in a type."""
    type_ = what.type if isinstance(what, Declared) else None
    if isinstance(type_, t.Struct):
        own = [f"- `{each.type} {each.name}`" for each in type_.fields]
    elif isinstance(type_, t.SerializableEnum):
        own = [f"- `{name} = {value}`" for name, value in type_.members.items()]
    elif isinstance(type_, t.Enum):
        own = [f"- `{name}`" for name in type_.members]
    else:
        return [width(type_)] if isinstance(type_, t.Bits | t.NewType) else []
    left = len(own) - _MAX_FIELDS
    said = [f"- and {left} more"] if left > 0 else []
    return [*filter(None, [width(type_)]), "", *own[:_MAX_FIELDS], *said]


def comment_of(program: Program, declaration: int) -> str:
    """The comment that stands above a declaration, or else behind it on its line."""
    place = program.place(declaration)
    found: list[str] = []
    number = place.line - 1
    in_block = False
    while number >= 0 and len(found) < _MAX_COMMENT:
        line = program.line(place.file, number)
        text = line.strip()
        if in_block or text.startswith("//") or text.endswith("*/"):
            in_block = (in_block or text.endswith("*/")) and "/*" not in text
            found.append(text)
        elif not text.startswith("@"):
            break
        number -= 1
    if not found:
        line = program.line(place.file, place.line)
        _, sign, behind = line.partition("//")
        found = [sign + behind] if sign else []
    return "\n".join(filter(None, map(_bare, reversed(found))))


def _bare(line: str) -> str:
    return re.sub(r"^(//+|/\*+|\*+/?)\s?|\s*\*+/$", "", line.strip())
