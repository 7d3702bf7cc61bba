"""What a file declares, and what is within: an editor's outline."""

from __future__ import annotations

from collections.abc import Iterator

from compiler import syntax as s
from compiler.source import Span
from doors.editor.kinds import kind_of
from doors.editor.program import Place, Program
from params.data import Data


class Entry(Data):
    """A declaration: its name, all of it, and what is within."""

    name: str
    kind: str
    place: Place
    end: Place
    inside: tuple[Entry, ...]


def outline(program: Program, file: str) -> list[Entry]:
    """Of a file, in the order of its lines."""
    entries = []
    for declaration in program.syntax.declarations:
        if isinstance(declaration, s.NameList):
            entries += [e for each in declaration.members if (e := _entry(program, file, *each))]
        else:
            entries += _of(program, file, declaration)
    seen: dict[Place, Entry] = {}
    for entry in entries:  # a file that is included twice is told once
        seen.setdefault(entry.place, entry)
    return sorted(seen.values(), key=lambda e: (e.place.line, e.place.column))


def _of(program: Program, file: str, node: s.Decl) -> Iterator[Entry]:
    inside = tuple(e for each in _inside(node) if (e := _entry(program, file, *each)))
    nested = tuple(e for each in _nested(node) for e in _of(program, file, each))
    own = _entry(program, file, node.name, node.span)
    if own is not None:
        yield Entry(own.name, own.kind, own.place, own.end, inside + nested)


def _entry(program: Program, file: str, name: str, span: Span) -> Entry | None:
    at = program.token_at(span.start)
    place = program.place(at)
    if place.file != file or not program.is_written(place, name):
        return None
    end = program.place(program.end_of(at))
    what = program.declared.get(at)
    kind = "declaration" if what is None else kind_of(what)
    return Entry(name, kind, place, end if end.file == file else place, ())


def _inside(node: s.Decl) -> list[tuple[str, Span]]:
    if isinstance(node, s.StructDecl):
        return [(each.name, each.span) for each in node.fields]
    if isinstance(node, s.EnumDecl):
        return [(name, span) for name, _, span, _ in node.members]
    return []


def _nested(node: s.Decl) -> list[s.Decl]:
    found: list[s.Decl] = []
    if isinstance(node, s.ParserDecl | s.ControlDecl):
        found += [each for each in node.locals if isinstance(each, s.Decl)]
    if isinstance(node, s.ParserDecl):
        found += node.states
    if isinstance(node, s.ExternDecl):
        found += node.methods
    return found
