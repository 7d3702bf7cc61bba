"""Late headers: those whose memory is cleared when it is first asked for, not with each packet.

A header that is not valid reads as zero, or as what was last written to it, and a program may do
either. But most packets have few of the headers that a program knows, and of the others nobody
asks more than whether they are valid. So a late header has a bit in the packet that tells whether
its memory means anything: without it the header is not valid and all zero. Parsing and setValid
set the bit, which is all that clearing costs them; a statement that uses fields has to ask.

Who is asked for in many places for its size is better cleared at once.
"""

from __future__ import annotations

from collections import Counter

from .. import bmv2

MAX = 64  # bits there are


def late_headers(program: bmv2.Program) -> list[str]:
    """The names of headers, and of whole stacks, that are late, in the program's order."""
    stacks = program.stacks.values()
    in_unions = {h for u in program.unions.values() for _, h in u.members}
    in_stacks = {h: s.name for s in stacks for h in s.headers}
    apart = {h for s in stacks if in_unions.isdisjoint(s.headers) for h in s.headers}
    sizes: dict[str, int] = {}
    for header in program.headers.values():
        if header.is_metadata or header.name in in_unions:
            continue
        if header.name in in_stacks and header.name not in apart:
            continue
        name = in_stacks.get(header.name, header.name)
        sizes[name] = sizes.get(name, 0) + header.type.max_bytes
    places: Counter[str] = Counter()
    nodes = [n for p in program.pipelines.values() for n in p.nodes.values()]
    for part in (*program.actions, *nodes):
        used = (r for r in bmv2.references(part) if _is_asked_for(r))
        places.update({in_stacks.get(name, name) for name in map(_header, used)})
    listed = map(_header, bmv2.references(program.field_lists))
    never = {in_stacks.get(name, name) for name in listed}
    late = {n for n, size in sizes.items() if size > places[n] and n not in never}
    largest = sorted(late, key=lambda name: -sizes[name])[:MAX]
    return [name for name in sizes if name in largest]


def _header(ref: bmv2.FieldRef | bmv2.HeaderRef | bmv2.StackField) -> str:
    """The header, or stack, that is referred to."""
    if isinstance(ref, bmv2.FieldRef):
        return ref.header
    return ref.stack if isinstance(ref, bmv2.StackField) else ref.name


def _is_asked_for(ref: bmv2.FieldRef | bmv2.HeaderRef | bmv2.StackField) -> bool:
    """Whether a field is used, and not only whether its header is valid."""
    if isinstance(ref, bmv2.FieldRef):
        return ref.field != bmv2.VALID_FIELD
    return isinstance(ref, bmv2.StackField)
