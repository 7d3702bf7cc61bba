"""The C file being written: the program, and what its parts are called in C."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from params.data import Data

from ..bmv2 import Field, HeaderType, Program, Stack
from ..layout import cell_bytes
from .alike import Family, families
from .lazy_headers import late_headers
from .names import Names
from .temporaries import SCALARS, StageVariables, Uses, stage_variables, temporaries

WIDE_BITS = 128  # above this a value is a wide_t


def c_type(width: int, is_signed: bool = False) -> str:
    """The C type that stores a value of some width."""
    if width > WIDE_BITS:
        return "wide_t"
    if width > 64:
        return "s128" if is_signed else "u128"
    return f"{'' if is_signed else 'u'}int{cell_bytes(width) * 8}_t"


class Unit(Data, frozen=False):
    """The program with its C names."""

    program: Program
    types: dict[str, str] = field(default_factory=dict)  # header type to struct tag
    fields: dict[tuple[str, str], str] = field(default_factory=dict)  # (header type, field)
    paths: dict[str, str] = field(default_factory=dict)  # header instance to lvalue
    members: list[str] = field(default_factory=list)  # declarations of struct phv
    late: dict[str, str] = field(default_factory=dict)  # late header or stack to its C name
    long_headers: list[tuple[str, str]] = field(default_factory=list)  # lvalue, its varbit field
    cleared_bytes: str = "sizeof *h"  # of struct phv, before the first of both kinds
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
    families: dict[int, Family] = field(init=False)  # by action's number
    stage_variables: StageVariables = field(init=False)
    variables: dict[str, str] = field(init=False)  # fields of `scalars` that are either: in C
    taking: dict[str, str] = field(default_factory=dict)  # functions, and whose variables they use

    def __post_init__(self) -> None:
        uses = Uses.of(self.program)
        self.temporaries = temporaries(self.program, uses)
        self.families = families(self.program, self.temporaries, self.program.used_actions)
        own = [f for fields in self.temporaries.values() for f in fields]
        bodies = [family.body for family in self.families.values()]
        self.stage_variables = stage_variables(self.program, uses, own, bodies)
        self.name_types()
        self.name_headers()
        self.name_objects()
        self.name_variables(own)

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
        """Give every header instance its place in struct phv.

        Behind those that are cleared with each packet come late ones, and those of variable length,
        as the bytes they might hold need no clearing: small ones first, for what is used not to be
        far from the rest.
        """
        names = Names()
        placed: set[str] = set()
        late = set(late_headers(self.program))
        if late:
            self.members.append(f"uint64_t {names.new('known')}; /* bits of late headers */")
        for union_stack in self.program.union_stacks.values():
            self.place_union_stack(union_stack.name, union_stack.unions, names, placed)
        behind: dict[str, tuple[int, str]] = {}  # size and declaration by name
        for stack in self.program.stacks.values():
            if not all(h in placed for h in stack.headers):
                placed.update(stack.headers)
                name, declaration = self.place_stack(stack, names)
                if stack.name in late:
                    self.late |= dict.fromkeys((stack.name, *stack.headers), name)
                    behind[name] = stack.type.max_bytes * len(stack.headers), declaration
                else:
                    self.members.append(declaration)
        for header in self.program.headers.values():
            if header.name in placed:
                continue
            name = names.new(header.name)
            path = self.paths[header.name] = f"h->{name}"
            declaration = f"struct {self.types[header.type.name]} {name};"
            varbit = header.type.varbit
            if header.name in late:
                self.late[header.name] = name
            elif varbit is not None:
                self.long_headers.append((path, self.fields[header.type.name, varbit.name]))
            else:
                self.members.append(declaration)
                continue
            behind[name] = header.type.max_bytes, declaration
        if behind:
            order = sorted(behind, key=lambda name: behind[name][0])
            self.cleared_bytes = f"offsetof(struct phv, {order[0]})"
            self.members += (behind[name][1] for name in order)
        in_unions = ([h for _, h in u.members] for u in self.program.unions.values())
        self.siblings = {h: [o for o in union if o != h] for union in in_unions for h in union}

    def place_stack(self, stack: Stack, names: Names) -> tuple[str, str]:
        """Place a stack as an array; its name, and its declaration, which is yet to be put in."""
        name = self.stacks[stack.name] = names.new(stack.name)
        names.taken.add(f"{name}_next")
        self.members.append(f"uint32_t {name}_next;")
        self.paths |= {header: f"h->{name}[{i}]" for i, header in enumerate(stack.headers)}
        # One more than there are: what an index out of bounds reads and writes.
        tag = self.types[stack.type.name]
        return name, f"struct {tag} {name}[{len(stack.headers)} + 1];"

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

    def name_variables(self, own: Iterable[Field]) -> None:
        """Name the variables of actions and of stages, and find the functions that take these."""
        scalars = self.program.headers.get(SCALARS)
        names = (
            {f.name: self.fields[scalars.type.name, f.name] for f in scalars.type.fields}
            if scalars
            else {}
        )
        self.variables = {f.name: own_name(names[f.name]) for f in own}
        stages = {f.name: s for s, found in self.stage_variables.fields.items() for f in found}
        self.variables |= {name: f"v->{names[name]}" for name in stages}
        users = self.stage_variables.users
        self.taking = {f"do_{self.actions[index]}": stage for index, stage in users.items()}
        for table in self.program.tables:
            keys = (k.target.field for k in table.keys if k.target.header == SCALARS)
            found = {users.get(a) for a in table.runnable} | {stages.get(key) for key in keys}
            if stage := next(filter(None, found), None):
                self.taking[f"apply_{self.tables[table.name]}"] = stage

    def field_path(self, header: str, name: str, path: str | None = None) -> str:
        """The lvalue of a header's field; of one that is a variable, that."""
        type_name = self.program.headers[header].type.name
        c_name = self.fields[type_name, name]
        if header == SCALARS and name in self.variables:
            return self.variables[name]
        return f"{path or self.paths[header]}.{c_name}"

    def has(self, header: str) -> str:
        """Whether a header is valid."""
        is_valid = f"{self.paths[header]}.is_valid"
        if header not in self.late:
            return is_valid
        return f"(SW_UNLIKELY(h->known & LATE_{self.late[header]}) && {is_valid})"

    def asked(self, header: str) -> str:
        """The lvalue of a header in an expression, which has its memory cleared if need be."""
        path = self.paths[header]
        if header not in self.late:
            return path
        name = self.late[header]
        inside = path.removeprefix(f"h->{name}")
        return f"late_{name}(h){inside}" if inside else f"(*late_{name}(h))"

    def asked_stack(self, stack: str) -> str:
        """The same of a stack, which is an array."""
        name = self.stacks[stack]
        return f"late_{name}(h)" if stack in self.late else f"h->{name}"

    def declared(self, stage: str) -> list[str]:
        """The lines that declare a stage's variables, if it has any."""
        if stage not in self.stage_variables.fields:
            return []
        declaration = f"struct {stage}_variables variables = {{0}}, *const v = &variables;"
        return [f"    {declaration}", "    (void)v;"]

    def signature(self, result: str, function: str) -> str:
        """How the function of an action or a table begins, its last parameters left out.

        One that uses a stage's variables is inlined: nobody else then knows where they are, so that
        the compiler need not keep them in memory.
        """
        stage = self.taking.get(function)
        if stage is None:
            return f"static inline {result} {function}(struct sw_run *r, struct phv *h"
        variables = f"struct {stage}_variables *v"
        return f"SW_INLINE {result} {function}(struct sw_run *r, struct phv *h, {variables}"

    def call(self, function: str, *more: str) -> str:
        """A call of an action's or a table's function."""
        variables = ("v",) if function in self.taking else ()
        return f"{function}({', '.join(('r', 'h', *variables, *more))})"

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
