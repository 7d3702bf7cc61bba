"""What is kept of a packet while it waits in a long queue: what egress may still look at.

A packet taken apart has room for every header there may be and for every variable of the program.
Behind the queue only some of that matters: headers that hold anything, and metadata that somebody
may read before it is written. All else is zero when the packet is taken apart again, and nobody
can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from .. import bmv2
from ..bmv2 import Primitive, Program
from .names import Names
from .temporaries import SCALARS
from .unit import Unit, c_type

_WORD = 64
_KNOWN = "h->known & "  # of a late header: its memory means anything
_Ref = tuple[str, str]  # header and field
# Primitives that write all of their first argument, whatever happens.
_WRITES = {
    *("assign", "modify_field", "add", "subtract", "bit_xor", "bit_or", "bit_and"),
    *("shift_left", "shift_right", "modify_field_with_hash_based_offset"),
}
_DROPS = ("drop", "mark_to_drop")  # write, whatever header they are given


class Live:
    """Which fields of metadata are read behind the queue before they are written there."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.numbers: dict[_Ref, int] = {}
        self.headers: set[str] = set()  # all that are spoken of there
        self.steps: list[tuple[int, int, list[int]]] = [(0, 0, [])]  # reads, writes, what is next
        self.bodies: dict[int, list[tuple[int, int]]] = {}
        self.end = self.reads(
            [bmv2.HeaderRef(name) for name in program.deparser.order],
            program.deparser.primitives,
            [c for c in program.checksums if c.update],
            program.field_lists,
        )
        self.begin: dict[str, int] = {}

    def fields(self) -> set[_Ref]:
        """All of them."""
        pipeline = self.program.pipelines["egress"]
        self.begin = {name: self.step() for name in pipeline.nodes}
        for name, node in pipeline.nodes.items():
            self.node(self.begin[name], node)
        living = self.solve()
        found = self.end | (living[self.begin[pipeline.init]] if pipeline.init else 0)
        return {ref for ref, number in self.numbers.items() if found >> number & 1}

    def solve(self) -> list[int]:
        """What is alive before each step."""
        before: list[list[int]] = [[] for _ in self.steps]
        for number, (_, _, following) in enumerate(self.steps):
            for other in following:
                before[other].append(number)
        living = [reads for reads, _, _ in self.steps]
        work = list(range(len(self.steps)))
        while work:
            number = work.pop()
            reads, writes, following = self.steps[number]
            after = 0
            for other in following:
                after |= living[other]
            found = reads | after & ~writes
            if found != living[number]:
                living[number] = found
                work += before[number]
        return living

    def step(self, reads: int = 0, writes: int = 0) -> int:
        """A new step."""
        self.steps.append((reads, writes, []))
        return len(self.steps) - 1

    def node(self, number: int, node: bmv2.Table | bmv2.Conditional | bmv2.ActionCall) -> None:
        """What a node of the control reads, and the actions that it may run."""
        reads, actions = 0, []
        following = [self.begin[name] if name else 0 for name in bmv2.successors(node)]
        if isinstance(node, bmv2.Conditional):
            reads = self.reads(node.condition)
        elif isinstance(node, bmv2.ActionCall):
            actions = [node.action]
        else:
            actions = [*node.actions, *([node.default.action] if node.default else [])]
            reads = self.reads([key.target for key in node.keys])
            if node.profile is not None:
                reads |= self.reads(self.program.profiles[node.profile].inputs)
        always = isinstance(node, bmv2.ActionCall) or (
            isinstance(node, bmv2.Table) and node.default is not None
        )
        first = [self.action(action, following) for action in dict.fromkeys(actions)]
        self.steps[number] = reads, 0, first if always else [*first, *following]

    def action(self, index: int, following: list[int]) -> int:
        """The steps of an action; the first."""
        action = self.program.actions[index]
        if index not in self.bodies:
            self.bodies[index] = [self.effect(p) for p in action.body]
        here = [self.step(*effect) for effect in self.bodies[index]] + [self.step()]
        self.steps[here[-1]][2].extend(following)
        for i, primitive in enumerate(action.body):
            ways = self.steps[here[i]][2]
            if primitive.op.startswith("_jump"):
                target = primitive.args[-1]
                ways.append(here[target.value] if isinstance(target, bmv2.Const) else here[-1])
            ways.append(0 if primitive.op == "exit" else here[i + 1])
        return here[0]

    def effect(self, primitive: Primitive) -> tuple[int, int]:
        """What a primitive reads and what it is sure to write."""
        if primitive.op in _DROPS:
            return 0, 0
        target, *rest = primitive.args or (None,)
        if primitive.op in _WRITES and isinstance(target, bmv2.FieldRef):
            return self.reads(rest), self.reads(target)
        return self.reads(primitive.args), 0

    def reads(self, *parts: object) -> int:
        """The fields that these refer to, as bits."""
        found = 0
        for header, field in refs_in(self.program, parts):
            self.headers.add(header)
            if self.program.headers[header].is_metadata:
                found |= 1 << self.numbers.setdefault((header, field), len(self.numbers))
        return found


def refs_in(program: Program, part: object) -> Iterator[_Ref]:
    """The fields that a part of a program refers to, but for those of stacks."""
    match part:
        case bmv2.FieldRef(header, field):
            yield header, field
        case bmv2.HeaderRef(name):
            yield name, bmv2.VALID_FIELD
            yield from ((name, f.name) for f in program.headers[name].type.fields)
        case bmv2.UnionRef(name):
            yield from ((header, bmv2.VALID_FIELD) for _, header in program.unions[name].members)
        case bmv2.ObjectRef("calculation", name):
            yield from refs_in(program, program.calculations[name].inputs)
        case bmv2.Checksum():
            inputs = program.calculations[part.calculation].inputs
            yield from refs_in(program, (part.target, part.condition, inputs))
        case _:
            for inner in bmv2.parts_of(part):
                yield from refs_in(program, inner)


def emit_waiting(unit: Unit, set_before: set[_Ref]) -> str:
    """The functions that pack what of a phv may still matter, and take it apart again.

    `set_before` are fields that the switch sets between queue and egress.
    """
    live = Live(unit.program)
    kept = [ref for ref in sorted(live.fields() - set_before) if not is_variable(unit, ref)]
    fields = {ref: field_of(unit, ref) for ref in kept}
    names, members, save, restore = Names(), [], [], []
    names.taken.add("there")
    for ref in sorted(kept, key=lambda ref: -fields[ref][1]):
        name, (path, width, is_signed) = names.new(ref[1]), fields[ref]
        members.append(f"    {c_type(width, is_signed)} {name};")
        save.append(f"    w->{name} = {path};")
        restore.append(f"    {path} = w->{name};")
    parts = list(header_parts(unit, live.headers))
    for run in runs(parts):
        word, bits = run[0] // _WORD, sum(1 << n % _WORD for n in run)
        known = [parts[n][0].removeprefix(_KNOWN) for n in run]
        if len(run) > 1:  # late ones, of which a packet has few: looked at one by one if it has any
            save.append(f"    if ({_KNOWN}({' | '.join(known)})) {{")
            restore.append(f"    if (w->there[{word}] & {bits:#x}u) {{")
        for number in run:
            save += pack_part(number, *parts[number])
            restore += unpack_part(number, *parts[number])
        if len(run) > 1:
            save.append("    }")
            restore.append("    }")
    lines = [
        "/* What waits of a packet; behind it those headers that hold anything. */",
        "struct waiting {",
        f"    uint64_t there[{max(1, -(-len(parts) // _WORD))}]; /* which those are */",
        *members,
        "};",
        "",
        "static uint32_t pack(const void *phv, uint8_t *start)",
        "{",
        "    const struct phv *h = phv;",
        "    struct waiting *w = (struct waiting *)start;",
        "    uint8_t *to = start + sizeof *w;",
        "    memset(w->there, 0, sizeof w->there);",
        "    (void)h;",
        *save,
        "    return (uint32_t)(to - start);",
        "}",
        "",
        "static void unpack(void *phv, const uint8_t *from)",
        "{",
        "    struct phv *h = phv;",
        "    const struct waiting *w = (const struct waiting *)from;",
        "    from += sizeof *w;",
        "    clear(h);",
        *restore,
        "}",
    ]
    return "\n".join(lines)


def runs(parts: list[tuple[str, list[str]]]) -> Iterator[list[int]]:
    """Numbers of parts that are looked at together: late headers in a row, in one word of bits."""
    alone = [not held.startswith(_KNOWN) for held, _ in parts]
    for _, run in groupby(range(len(parts)), lambda n: (n // _WORD, alone[n] * (n + 1))):
        yield list(run)


def pack_part(number: int, held: str, pieces: list[str]) -> list[str]:
    """Take a part along if it holds anything."""
    word, bit = divmod(number, _WORD)
    return [
        f"    if ({held}) {{",
        f"        w->there[{word}] |= (uint64_t)1 << {bit};",
        *(f"        to = sw_pack(to, {p});" for p in pieces),
        "    }",
    ]


def unpack_part(number: int, held: str, pieces: list[str]) -> list[str]:
    """Bring it back."""
    word, bit = divmod(number, _WORD)
    known = [f"        h->known |= {held.removeprefix(_KNOWN)};"] if held.startswith(_KNOWN) else []
    return [
        f"    if (w->there[{word}] >> {bit} & 1) {{",
        *known,
        *(f"        from = sw_unpack(from, {p});" for p in pieces),
        "    }",
    ]


def is_variable(unit: Unit, ref: _Ref) -> bool:
    """Whether a field is a variable of an action's or a stage's, which no packet has."""
    return ref[0] == SCALARS and ref[1] in unit.variables


def field_of(unit: Unit, ref: _Ref) -> tuple[str, int, bool]:
    """A field of metadata: its lvalue, its width, and whether it is signed."""
    header, name = ref
    if name == bmv2.VALID_FIELD:
        return f"{unit.paths[header]}.is_valid", 1, False
    field = unit.program.field_of(bmv2.FieldRef(header, name))
    return unit.field_path(header, name), field.width, field.is_signed


def header_parts(unit: Unit, wanted: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Of each header and stack: whether it holds anything, in C, and what of it is to be kept."""
    late = set(unit.late.values())
    for name in (*unit.stacks.values(), *unit.union_stacks.values()):
        whole = f"h->{name}, sizeof h->{name}"
        yield f"h->{name}_next", [f"&h->{name}_next, sizeof h->{name}_next"]
        yield f"{_KNOWN}LATE_{name}" if name in late else f"sw_holds({whole})", [whole]
    for header in unit.program.headers.values():
        path = unit.paths[header.name]
        if header.is_metadata or header.name not in wanted or "[" in path:
            continue
        whole, is_late = f"&{path}, sizeof {path}", header.name in unit.late
        known = f"{_KNOWN}LATE_{unit.late[header.name]}" if is_late else ""
        if (varbit := header.type.varbit) is None:
            yield known or f"sw_holds({whole})", [whole]
            continue
        # Of what it might hold only that which it does; behind it comes how much that is.
        tag, field = unit.types[header.type.name], unit.fields[header.type.name, varbit.name]
        size, ends = f"{path}.{field}_bits", f"offsetof(struct {tag}, {field}_bits)"
        yield (
            known or f"{path}.is_valid || {size}",
            [
                f"(uint8_t *)&{path} + {ends}, sizeof {path} - {ends}",
                f"&{path}, offsetof(struct {tag}, {field}) + {size} / 8",
            ],
        )
