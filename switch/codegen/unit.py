"""The C file being written: the program, and what its parts are called in C."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..layout import cell_bytes
from .names import Names
from .temporaries import SCALARS, temporaries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..bmv2 import Field, HeaderType, Program

WIDE_BITS = 128  # above this a value is a wide_t


def c_type(width: int, is_signed: bool = False) -> str:
    """The C type that stores a value of some width."""
    if width > WIDE_BITS:
        return "wide_t"
    if width > 64:
        return "s128" if is_signed else "u128"
    return f"{'' if is_signed else 'u'}int{cell_bytes(width) * 8}_t"


@dataclass
class Unit:
    """The program with its C names."""

    program: Program
    types: dict[str, str] = field(default_factory=dict)  # header type to struct tag
    fields: dict[tuple[str, str], str] = field(default_factory=dict)  # (header type, field)
    paths: dict[str, str] = field(default_factory=dict)  # header instance to lvalue
    members: list[str] = field(default_factory=list)  # declarations of struct phv
    long_headers: list[tuple[str, str]] = field(default_factory=list)  # lvalue, its varbit field
    cleared_bytes: str = "sizeof *h"  # of struct phv, before the first of those
    stacks: dict[str, str] = field(default_factory=dict)
    union_stacks: dict[str, str] = field(default_factory=dict)
    siblings: dict[str, list[str]] = field(default_factory=dict)  # union member to the others
    union_fields: dict[tuple[str, str], str] = field(default_factory=dict)
    actions: list[str] = field(default_factory=list)
    params: list[list[str]] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    cells: dict[str, tuple[str, str]] = field(default_factory=dict)  # of registers: row, member
    counters: dict[str, str] = field(default_factory=dict)
    meters: dict[str, str] = field(default_factory=dict)
    calculations: dict[str, str] = field(default_factory=dict)
    value_sets: dict[str, str] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)
    temporaries: dict[int, tuple[Field, ...]] = field(init=False)  # by action's number
    local_names: set[str] = field(init=False)  # of all temporaries: fields of `scalars`

    def __post_init__(self) -> None:
        self.temporaries = temporaries(self.program)
        self.local_names = {f.name for own in self.temporaries.values() for f in own}
        self.name_types()
        self.name_headers()
        self.name_objects()

    def name_types(self) -> None:
        """Name header types and their fields."""
        tags = Names()
        for header_type in self.header_types():
            self.types[header_type.name] = tags.new(header_type.name)
            names = Names()
            for f in header_type.fields:
                self.fields[header_type.name, f.name] = names.new(f.name)

    def header_types(self) -> list[HeaderType]:
        """The types that headers have, in order of use."""
        return list({h.type.name: h.type for h in self.program.headers.values()}.values())

    def name_headers(self) -> None:
        """Give every header instance its place in struct phv."""
        names = Names()
        placed: set[str] = set()
        for union_stack in self.program.union_stacks.values():
            self.place_union_stack(union_stack.name, union_stack.unions, names, placed)
        for stack in self.program.stacks.values():
            if all(h in placed for h in stack.headers):
                continue
            name = self.stacks[stack.name] = names.new(stack.name)
            names.taken.add(f"{name}_next")
            tag = self.types[stack.type.name]
            # One more than there are: what an index out of bounds reads and writes.
            self.members.append(f"struct {tag} {name}[{len(stack.headers)} + 1];")
            self.members.append(f"uint32_t {name}_next;")
            for i, header in enumerate(stack.headers):
                self.paths[header] = f"h->{name}[{i}]"
                placed.add(header)
        alone = [h for h in self.program.headers.values() if h.name not in placed]
        # Those of variable length come last: the bytes they might hold need no clearing.
        for instance in sorted(alone, key=lambda h: h.type.varbit is not None):
            name = names.new(instance.name)
            path = self.paths[instance.name] = f"h->{name}"
            self.members.append(f"struct {self.types[instance.type.name]} {name};")
            if (varbit := instance.type.varbit) is not None:
                if not self.long_headers:
                    self.cleared_bytes = f"offsetof(struct phv, {name})"
                self.long_headers.append((path, self.fields[instance.type.name, varbit.name]))
        for union in self.program.unions.values():
            in_union = [h for _, h in union.members]
            for h in in_union:
                self.siblings[h] = [other for other in in_union if other != h]

    def place_union_stack(
        self, stack: str, unions: tuple[str, ...], names: Names, placed: set[str]
    ) -> None:
        """Place a stack of unions as an array of structs."""
        name = self.union_stacks[stack] = names.new(stack)
        names.taken.add(f"{name}_next")
        inner = Names()
        declared = []
        for member, header in self.program.unions[unions[0]].members:
            field_name = self.union_fields[stack, member] = inner.new(member)
            tag = self.types[self.program.headers[header].type.name]
            declared.append(f"struct {tag} {field_name};")
        self.members.append(f"struct {{ {' '.join(declared)} }} {name}[{len(unions)} + 1];")
        self.members.append(f"uint32_t {name}_next;")
        for i, union in enumerate(unions):
            for member, header in self.program.unions[union].members:
                self.paths[header] = f"h->{name}[{i}].{self.union_fields[stack, member]}"
                placed.add(header)

    def name_objects(self) -> None:
        """Name actions, tables and externs."""
        program = self.program
        actions = Names()
        self.actions = [actions.new(a.name) for a in program.actions]
        for action in program.actions:
            params = Names()
            self.params.append([params.new(p.name) for p in action.params])
        self.tables = unique(t.name for t in program.tables)
        self.registers = unique(program.registers)
        self.counters = unique(program.counters)
        self.meters = unique(program.meters)
        self.calculations = unique(program.calculations)
        self.value_sets = unique(program.value_sets)
        self.profiles = unique(program.profiles)

    def field_path(self, header: str, name: str) -> str:
        """The lvalue of a header's field; of one that is an action's own, its variable."""
        type_name = self.program.headers[header].type.name
        c_name = self.fields[type_name, name]
        if header == SCALARS and name in self.local_names:
            return own_name(c_name)
        return f"{self.paths[header]}.{c_name}"

    def standard(self, name: str) -> tuple[str, Field] | None:
        """The lvalue of a field the switch knows of, if the program has it."""
        ref = self.program.standard(name)
        if ref is None:
            return None
        return self.field_path(ref.header, ref.field), self.program.field_of(ref)


def own_name(field_name: str) -> str:
    """The C variable of a temporary: nothing else in scope ends in an underscore."""
    return f"{field_name}_"


def unique(names: Iterable[str]) -> dict[str, str]:
    """An identifier for each of the names."""
    scope = Names()
    return {name: scope.new(name) for name in names}


def indent(text: str, by: int = 1) -> str:
    """Shift lines right; labels and empty lines stay."""
    pad = "    " * by
    return "\n".join(pad + line if line else line for line in text.split("\n"))
