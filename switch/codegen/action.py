"""Actions: each primitive becomes a statement or a few.

A failing index (a register, counter or meter beyond its end) does nothing, as in BMv2.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .. import bmv2
from ..bmv2 import Expr, Primitive
from ..place import JsonError
from .alike import Family
from .expression import Exprs, Rep, cast
from .names import c_string, comment, spoken
from .temporaries import SCALARS
from .unit import Unit, c_type, indent, own_name

REWRITTEN = {  # primitives that are another way to say `assign(dst, a op b)`
    "add": "+",
    "subtract": "-",
    "bit_xor": "^",
    "bit_or": "|",
    "bit_and": "&",
    "shift_left": "<<",
    "shift_right": ">>",
}


VOID_RUN = "    (void)r;\n"  # where no line of the source is told


class Actions:
    """Writes primitives, with expressions of the surrounding action or parser state."""

    def __init__(self, unit: Unit, exprs: Exprs) -> None:
        self.unit = unit
        self.exprs = exprs
        exprs.has_statements = True
        known: dict[str, Callable[[Primitive], list[str]]] = {
            "assign": self.assign,
            "modify_field": self.assign,
            "assign_VL": self.assign_varbit,
            "assign_header": self.assign_header,
            "copy_header": self.assign_header,
            "assign_union": self.assign_union,
            "assign_header_stack": self.assign_stack,
            "assign_union_stack": self.assign_union_stack,
            "push": lambda p: self.shift_stack(p, 1),
            "pop": lambda p: self.shift_stack(p, -1),
            "add_header": self.add_header,
            "add_header_fast": self.add_header,
            "remove_header": self.remove_header,
            "drop": self.drop,
            "mark_to_drop": self.drop,
            "exit": lambda _: ["r->pkt->exited = true;", "return;"],
            "no_op": lambda _: [],
            "assert": self.assertion,
            "assume": self.assertion,
            "log_msg": self.log_message,
            "generate_digest": self.digest,
            "clone_ingress_pkt_to_egress": self.clone,
            "clone_egress_pkt_to_egress": self.clone,
            "resubmit": lambda p: self.request(p, "resubmit_list"),
            "recirculate": lambda p: self.request(p, "recirculate_list"),
            "truncate": self.truncate,
            "modify_field_rng_uniform": self.random,
            "modify_field_with_hash_based_offset": self.hash,
            "count": self.count,
            "execute_meter": self.meter,
            "register_read": self.register_read,
            "register_write": self.register_write,
            "add_to_field": lambda p: self.in_place(p, "+"),
            "subtract_from_field": lambda p: self.in_place(p, "-"),
        }
        known |= dict.fromkeys(REWRITTEN, self.operate)
        self.known = known

    def primitive(self, p: Primitive) -> list[str]:
        """The statements of a primitive."""
        if p.op not in self.known:
            raise JsonError(f"{p.path}: primitive {p.op!r} is not part of v1model")
        try:
            lines = self.known[p.op](p)
            return [*self.exprs.settle(), *lines]
        except JsonError as error:
            raise JsonError(f"{p.path}: {error}") from None
        except (IndexError, ValueError, KeyError):
            raise JsonError(f"{p.path}: wrong arguments for {p.op!r}") from None

    # Assignments

    def target(self, e: Expr) -> tuple[str, int, bool]:
        """An lvalue, its width, and whether it is signed."""
        if isinstance(e, bmv2.FieldRef):
            field = self.unit.program.field_of(e)
            if e.field == bmv2.VALID_FIELD:
                return f"{self.exprs.reach(e.header)}.is_valid", field.width, field.is_signed
            return self.exprs.field_text(e.header, e.field), field.width, field.is_signed
        if isinstance(e, bmv2.StackField):
            stack = self.unit.program.stacks[e.stack]
            found = next(f for f in stack.type.fields if f.name == e.field)
            return self.exprs.last_field(e.stack, e.field), found.width, found.is_signed
        if isinstance(e, bmv2.Op) and e.op == "access_field":
            header_type, path = self.exprs.header(e.left)
            found = header_type.fields[self.exprs.constant(e.right)]
            name = self.unit.fields[header_type.name, found.name]
            return f"{path}.{name}", found.width, found.is_signed
        raise JsonError("the target of an assignment must be a field")

    def store(self, target: Expr, value: Expr) -> list[str]:
        """Assign a number to a field, or to a cell of a register array."""
        if isinstance(target, bmv2.RegisterCell):
            return self.write_register(target.register, target.index, value)
        path, width, is_signed = self.target(target)
        return [f"{path} = {bare(self.exprs.stored(value, width, is_signed))};"]

    def assign(self, p: Primitive) -> list[str]:
        """`dst = value`."""
        target, value = p.args
        if self.exprs.is_boolean(value):
            value = bmv2.Op("b2d", None, value)
        return self.store(target, value)

    def operate(self, p: Primitive) -> list[str]:
        """`dst = a op b`."""
        target, left, right = p.args
        return self.store(target, bmv2.Op(REWRITTEN[p.op], left, right))

    def in_place(self, p: Primitive, op: str) -> list[str]:
        """`dst = dst op b`."""
        target, right = p.args
        return self.store(target, bmv2.Op(op, target, right))

    def varbit_path(self, e: Expr) -> tuple[str, bmv2.Field]:
        """The lvalue of a varbit field."""
        if isinstance(e, bmv2.FieldRef):
            return self.exprs.field_text(e.header, e.field), self.unit.program.field_of(e)
        if isinstance(e, bmv2.Op) and e.op == "access_field":
            header_type, path = self.exprs.header(e.left)
            found = header_type.fields[self.exprs.constant(e.right)]
            return f"{path}.{self.unit.fields[header_type.name, found.name]}", found
        raise JsonError("a field of variable length is expected")

    def assign_varbit(self, p: Primitive) -> list[str]:
        """Copy a field of variable length."""
        (to, field), (source, other) = (self.varbit_path(a) for a in p.args)
        if not field.is_varbit or not other.is_varbit:
            raise JsonError("both fields must be of variable length")
        return [
            f"{to}_bits = {source}_bits;",
            f"memcpy({to}, {source}, {min(field.width, other.width) // 8});",
        ]

    # Headers

    def set_valid(self, e: Expr) -> list[str]:
        """Statements for what else changes when a header becomes valid: a union has one member."""
        if isinstance(e, bmv2.HeaderRef):
            others = self.unit.siblings.get(e.name, [])
            return [f"{self.unit.paths[o]}.is_valid = false;" for o in others]
        if isinstance(e, bmv2.Op) and e.op == "access_union_header":
            _, own = self.exprs.header(e)
            if isinstance(e.left, bmv2.UnionRef):
                members = [
                    self.unit.paths[h] for _, h in self.unit.program.unions[e.left.name].members
                ]
            else:
                stack, path = self.exprs.union_at(e.left)
                names = [n for (s, _), n in self.unit.union_fields.items() if s == stack]
                members = [f"{path}.{n}" for n in names]
            return [f"{m}.is_valid = false;" for m in members if m != own]
        return []

    def size(self, header_type: bmv2.HeaderType, path: str) -> str:
        """A header's bytes."""
        varbit = header_type.varbit
        fixed = str(header_type.fixed_bits // 8)
        if varbit is None:
            return fixed
        return f"{fixed} + {path}.{self.unit.fields[header_type.name, varbit.name]}_bits / 8"

    def if_valid(self, e: Expr) -> tuple[bmv2.HeaderType, str, str]:
        """A header's type, its lvalue, for use only if it is valid, and whether it is."""
        if isinstance(e, bmv2.HeaderRef):
            path, has = self.unit.paths[e.name], self.unit.has(e.name)
            return self.unit.program.headers[e.name].type, path, has
        header_type, path = self.exprs.header(e)
        return header_type, path, f"{path}.is_valid"

    def made(self, e: Expr) -> list[str]:
        """What makes a header's memory mean something, ahead of writing all of it."""
        if not isinstance(e, bmv2.HeaderRef) or e.name not in self.unit.late:
            return []
        name = self.unit.late[e.name]
        if self.unit.paths[e.name] == f"h->{name}":
            return [f"h->known |= LATE_{name};"]
        return [f"late_{name}(h);"]  # one of a stack

    def add_header(self, p: Primitive) -> list[str]:
        """setValid: a header that was not valid starts as zeros."""
        if p.op == "add_header_fast":
            _, path = self.exprs.header(p.args[0])
            return [f"{path}.is_valid = true;", *self.set_valid(p.args[0])]
        header_type, path, has = self.if_valid(p.args[0])
        lines = [
            f"if (!{has}) {{",
            *(f"    {s}" for s in self.made(p.args[0])),
            f"    memset(&{path}, 0, sizeof {path});",
            f"    {path}.is_valid = true;",
            f"    r->pkt->length += {header_type.fixed_bits // 8};",
            *(f"    {s}" for s in self.set_valid(p.args[0])),
            "}",
        ]
        if isinstance(p.args[0], bmv2.HeaderRef) and p.args[0].name in self.unit.late:
            self.exprs.settled.add(self.unit.late[p.args[0].name])
        return lines

    def remove_header(self, p: Primitive) -> list[str]:
        """setInvalid."""
        header_type, path, has = self.if_valid(p.args[0])
        return [
            f"if ({has}) {{",
            f"    r->pkt->length -= {self.size(header_type, path)};",
            f"    {path}.is_valid = false;",
            "}",
        ]

    def assign_header(self, p: Primitive) -> list[str]:
        """Copy a header; an invalid one only makes the target invalid."""
        (to_type, to, _), (from_type, source, has) = (self.if_valid(a) for a in p.args)
        if to_type.name != from_type.name:
            raise JsonError(f"a {from_type.name!r} cannot be assigned to a {to_type.name!r}")
        return [
            f"if ({has}) {{",
            *(f"    {s}" for s in self.made(p.args[0])),
            f"    {to} = {source};",
            *(f"    {s}" for s in self.set_valid(p.args[0])),
            "} else {",
            f"    {to}.is_valid = false;",
            "}",
        ]

    def assign_union(self, p: Primitive) -> list[str]:
        """Copy a union: its members one by one."""
        if all(isinstance(a, bmv2.UnionRef) for a in p.args):
            pairs = zip(*(self.union_members(a) for a in p.args), strict=True)
        else:
            pairs = zip(*(self.stack_members(a) for a in p.args), strict=True)
        return [f"{to} = {source};" for to, source in pairs]

    def union_members(self, e: Expr) -> list[str]:
        """The lvalues of a union's members."""
        assert isinstance(e, bmv2.UnionRef)
        return [self.unit.paths[h] for _, h in self.unit.program.unions[e.name].members]

    def stack_members(self, e: Expr) -> list[str]:
        """The lvalues of the members of a union that may be in a stack."""
        if isinstance(e, bmv2.UnionRef):
            return self.union_members(e)
        stack, path = self.exprs.union_at(e)
        return [f"{path}.{n}" for (s, _), n in self.unit.union_fields.items() if s == stack]

    def assign_stack(self, p: Primitive) -> list[str]:
        """Copy a stack, invalid headers and the fill level with it."""
        refs = [a for a in p.args if isinstance(a, bmv2.StackRef)]
        to, source = (self.unit.stacks[a.name] for a in refs)
        for ref in refs:
            self.exprs.reach_stack(ref.name)
        return [
            f"memcpy(h->{to}, h->{source}, sizeof h->{to});",
            f"h->{to}_next = h->{source}_next;",
        ]

    def assign_union_stack(self, p: Primitive) -> list[str]:
        """Copy a stack of unions."""
        refs = [a for a in p.args if isinstance(a, bmv2.UnionStackRef)]
        to, source = (self.unit.union_stacks[a.name] for a in refs)
        return [
            f"memcpy(h->{to}, h->{source}, sizeof h->{to});",
            f"h->{to}_next = h->{source}_next;",
        ]

    def shift_stack(self, p: Primitive, direction: int) -> list[str]:
        """push_front and pop_front: what enters is invalid."""
        stack, amount = p.args
        if isinstance(stack, bmv2.StackRef):
            self.exprs.reach_stack(stack.name)
            size = len(self.unit.program.stacks[stack.name].headers)
        else:
            assert isinstance(stack, bmv2.UnionStackRef)
            size = len(self.unit.program.union_stacks[stack.name].unions)
        name = self.exprs.stack_name(stack)
        by = self.exprs.count(amount)
        call = "sw_push" if direction > 0 else "sw_pop"
        return [
            f"{call}(h->{name}, sizeof h->{name}[0], {size}, &h->{name}_next, {by});",
        ]

    # Externs

    def drop(self, p: Primitive) -> list[str]:
        """mark_to_drop: also takes back a multicast. It may be given a copy of the metadata."""
        if p.args:
            header_type, path = self.exprs.header(p.args[0])
            names = {f.name: self.unit.fields[header_type.name, f.name] for f in header_type.fields}
            if "egress_spec" not in names:
                raise JsonError("the header given has no field egress_spec")
            spec: str | None = f"{path}.{names['egress_spec']}"
            group = f"{path}.{names['mcast_grp']}" if "mcast_grp" in names else None
        else:
            standard = ("standard_metadata.egress_spec", "intrinsic_metadata.mcast_grp")
            spec, group = (f[0] if f else None for f in map(self.unit.standard, standard))
        lines = [f"{spec} = r->state->drop_port;"] if spec else []
        lines += [f"{group} = 0;"] if group else []
        return lines

    def condition(self, e: Expr) -> str:
        """A condition given as a truth value or as a number."""
        if self.exprs.is_boolean(e):
            return self.exprs.boolean(e)
        return self.exprs.compare("!=", e, bmv2.Const(0))

    def assertion(self, p: Primitive) -> list[str]:
        """The assert and assume externs: the packet is dropped, the switch goes on."""
        where = p.op
        if p.source is not None:
            where = f"{p.source.file}:{p.source.line}: {p.source.text}"
        return [
            f"if (!{self.condition(p.args[0])}) {{",
            f"    sw_assert_failed(r, {c_string(where)});",
            "}",
        ]

    def log_message(self, p: Primitive) -> list[str]:
        """log_msg: braces are filled in with numbers, in decimal."""
        text, values = p.args[0], p.args[1] if len(p.args) > 1 else bmv2.Vector(())
        if not isinstance(text, bmv2.StringConst) or not isinstance(values, bmv2.Vector):
            raise JsonError("log_msg takes a text and a list of values")
        pieces = re.split(r"(?<!\\)\{[^}]*\}", text.value)
        if len(pieces) - 1 != len(values.items):
            raise JsonError(
                f"the text has {len(pieces) - 1} braces, for {len(values.items)} values"
            )
        pieces = [x.replace("\\{", "{").replace("\\}", "}").replace("%", "%%") for x in pieces]
        formats, args = [], []
        for item in values.items:
            is_bool = self.exprs.is_boolean(item)
            value = self.exprs.exact(bmv2.Op("b2d", None, item) if is_bool else item)
            if value.rep is Rep.S64:
                formats.append("%lld")
                args.append(f"(long long){value.text}")
            elif value.rep is Rep.U64:
                formats.append("%llu")
                args.append(f"(unsigned long long){value.text}")
            else:
                formats.append("0x%llx%016llx")
                whole = cast(value, Rep.U128)
                args.append(f"(unsigned long long)({whole} >> 64)")
                args.append(f"(unsigned long long)({whole})")
        text_out = pieces[0] + "".join(f + s for f, s in zip(formats, pieces[1:], strict=True))
        return [f"sw_log(r, {', '.join([c_string(text_out), *args])});"]

    def digest(self, p: Primitive) -> list[str]:
        """digest: send the fields of a learn list."""
        wanted = self.exprs.constant(p.args[1])
        for i, digest in enumerate(self.unit.program.digests):
            if digest.id == wanted:
                return [f"r->pkt->digest_list = {i} + 1; /* {comment(digest.name)} */"]
        raise JsonError(f"there is no learn list with id {wanted}")

    def clone(self, p: Primitive) -> list[str]:
        """clone: the last one of a pipeline wins."""
        session, fields = p.args
        number = f"(uint16_t)({self.exprs.stored(session, 16)})"
        return [
            f"r->pkt->clone_session = {number} | PKT_CLONE_REQUESTED;",
            f"r->pkt->clone_list = (uint16_t)({self.exprs.stored(fields, 16)});",
        ]

    def request(self, p: Primitive, member: str) -> list[str]:
        """resubmit and recirculate."""
        return [f"r->pkt->{member} = (uint16_t)({self.exprs.stored(p.args[0], 16)});"]

    def truncate(self, p: Primitive) -> list[str]:
        """truncate: the smallest length asked for holds."""
        return [
            "{",
            f"    uint64_t most = {self.exprs.count(p.args[0])};",
            "    if (most < r->pkt->truncate_len)",
            "        r->pkt->truncate_len = (uint32_t)most;",
            "}",
        ]

    def random(self, p: Primitive) -> list[str]:
        """random: nothing is written if the bounds are the wrong way round."""
        path, width, _ = self.target(p.args[0])
        low, high = (cast(self.exprs.exact(a), Rep.U64) for a in p.args[1:])
        mask = "" if width >= 64 else f" & {(1 << width) - 1:#x}u"
        return [f"if ({low} <= {high})", f"    {path} = sw_random(r->state, {low}, {high}){mask};"]

    def hash(self, p: Primitive) -> list[str]:
        """hash: `base + calculation % size`, where a size of 0 counts as 1."""
        target, base, calculation, size = p.args
        if not isinstance(calculation, bmv2.ObjectRef) or calculation.kind != "calculation":
            raise JsonError("a calculation is expected")
        path, width, _ = self.target(target)
        name = self.unit.calculations[calculation.name]
        value = f"calculate_{name}(r, h)"
        if isinstance(size, bmv2.Const):
            by = size.value & (2**64 - 1) or 1
            value = f"{value} % {by}u"
        else:
            value = f"sw_modulo({value}, {cast(self.exprs.exact(size), Rep.U64)})"
        if not (isinstance(base, bmv2.Const) and base.value == 0):
            value = f"{value} + {cast(self.exprs.exact(base), Rep.U64)}"
        if width not in (8, 16, 32) and width < 64:
            value = f"({value}) & {(1 << width) - 1:#x}u"
        if width > 128:
            value = f"wide_from_u64({value})"
        return [f"{path} = {value};"]

    def array(self, e: Expr, kind: str) -> str:
        """The name of a counter, meter or register array."""
        if not isinstance(e, bmv2.ObjectRef) or e.kind != kind:
            raise JsonError(f"a {kind.replace('_', ' ')} is expected")
        return e.name

    def count(self, p: Primitive) -> list[str]:
        """count: one packet of the length received."""
        name = self.array(p.args[0], "counter_array")
        c_name = self.unit.counters[name]
        size = self.unit.program.counters[name].size
        cells = f"r->state->counters[COUNTER_{c_name}]"
        return [f"sw_count(r, {cells}, {size}, {self.exprs.count(p.args[1])});"]

    def meter(self, p: Primitive) -> list[str]:
        """execute_meter: 0 green, 1 yellow, 2 red."""
        name = self.array(p.args[0], "meter_array")
        meter = self.unit.program.meters[name]
        path, _, _ = self.target(p.args[2])
        amount = "r->pkt->ingress_len" if meter.counts_bytes else "1"
        index = self.exprs.count(p.args[1])
        array = f"r->state->meters[METER_{self.unit.meters[name]}]"
        return [
            f"if ({index} < {meter.size})",
            f"    {path} = meter_run(&{array}[{index}], {amount}, r->now);",
        ]

    def register_read(self, p: Primitive) -> list[str]:
        """register.read."""
        target, array, index = p.args
        name = self.array(array, "register_array")
        register = self.unit.program.registers[name]
        at = self.exprs.count(index)
        path, width, is_signed = self.target(target)
        value = bare(self.exprs.stored(bmv2.RegisterCell(name, index), width, is_signed))
        return [f"if ({at} < {register.size})", f"    {path} = {value};"]

    def register_write(self, p: Primitive) -> list[str]:
        """register.write."""
        array, index, value = p.args
        return self.write_register(self.array(array, "register_array"), index, value)

    def write_register(self, name: str, index: Expr, value: Expr) -> list[str]:
        """Store in a cell; nothing happens beyond the end."""
        register = self.unit.program.registers[name]
        if self.exprs.is_boolean(value):
            value = bmv2.Op("b2d", None, value)
        stored = bare(self.exprs.stored(value, register.width))
        return [f"write_{self.unit.registers[name]}(r, {self.exprs.count(index)}, {stored});"]


def trace_text(source: bmv2.Source | None) -> str:
    """A line of the P4 source, ready to stand in a C format string."""
    if source is None:
        return ""
    line = " ".join(source.text.split())
    name = source.file.rpartition("/")[2]
    return spoken(f"{name}:{source.line}: {line}")


def trace_call(name: str, params: tuple[tuple[str, int], ...]) -> str:
    """Tell that an action runs, and with which arguments."""
    texts, values = [], []
    for param, width in params:
        if width > 64:
            texts.append(f"{param} = 0x%llx%016llx" if width <= 128 else f"{param} = ...")
            if width <= 128:
                values += [f"(unsigned long long)a->{param}[{i}]" for i in (1, 0)]
        else:
            texts.append(f"{param} = 0x%llx")
            values.append(f"(unsigned long long)a->{param}")
    arguments = "".join(f", {v}" for v in values)
    return f'    SW_TRACE(r, "  action {spoken(name)}({", ".join(texts)})"{arguments});\n'


def bare(text: str) -> str:
    """Drop parentheses around a whole expression."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and i < len(text) - 1:
            return text
    return text[1:-1]


def emit_actions(unit: Unit, indices: list[int]) -> list[str]:
    """The functions of actions; what those of a family do is one of their own."""
    parts = []
    for index in indices:
        family = unit.families.get(index)
        if family is None:
            parts.append(emit_action(unit, index))
        else:
            if index == family.first:
                parts.append(emit_body(unit, family))
            parts.append(emit_member(unit, family, index))
    return parts


def emit_action(unit: Unit, index: int) -> str:
    """The function of an action, and the struct of its parameters."""
    action = unit.program.actions[index]
    name = unit.actions[index]
    params = tuple(zip(unit.params[index], (p.width for p in action.params), strict=True))
    call = trace_call(action.name, params)
    text = emit_function(unit, index, action.body, params, (name, f"do_{name}", call))
    return said_as(action.name, name) + text


def said_as(name: str, c_name: str) -> str:
    """What an action is called in the program, where C calls it otherwise."""
    return f"/* {comment(name)} */\n" if c_name != name else ""


def emit_body(unit: Unit, family: Family) -> str:
    """The function of what a family does, and the struct of what its members give it."""
    name = f"alike_{unit.actions[family.first]}"
    params = tuple((p.name, p.width) for p in family.body.params)
    text = emit_function(unit, family.first, family.body.body, params, (name, name, VOID_RUN))
    return f"/* what {len(family.arguments)} actions do, each with its own */\n{text}"


def emit_member(unit: Unit, family: Family, index: int) -> str:
    """The function of an action that belongs to a family."""
    action = unit.program.actions[index]
    name, body = unit.actions[index], f"alike_{unit.actions[family.first]}"
    exprs = Exprs(unit)
    given = [exprs.exact(e).text for e in family.arguments[index]]
    pairs = zip(family.body.params, given, strict=True)
    lines = [f"{unit.signature('void', f'do_{name}')})", "{"]
    if given:
        lines.append(f"    const struct {body}_params with = {{")
        lines += [f"        .{p.name} = {text}," for p, text in pairs]
        lines.append("    };")
    lines += [
        trace_call(action.name, ()).rstrip(),
        f"    {body}(r, h{', &with' if given else ''});",
        "}",
    ]
    return said_as(action.name, name) + "\n".join(lines)


def emit_function(
    unit: Unit,
    index: int,
    steps: tuple[Primitive, ...],
    params: tuple[tuple[str, int], ...],
    head: tuple[str, str, str],
) -> str:
    """A function that runs these steps with the temporaries of an action."""
    name, function, begins = head
    writer = Actions(unit, Exprs(unit, params))
    jumps = jump_targets(steps)
    body: list[str] = []
    for i, primitive in enumerate(steps):
        if i in jumps:
            body.append(f"step_{i}:;")
            writer.exprs.settled.clear()
        said = trace_text(primitive.source)
        if said:
            body.append(f'SW_TRACE(r, "    {said}");')
        body += (
            jump(writer, i, primitive)
            if primitive.op.startswith("_jump")
            else writer.primitive(primitive)
        )
    if len(steps) in jumps:
        body.append(f"step_{len(steps)}:;")
    text = "\n".join(body)
    parts = []
    if params:
        fields = "\n".join(f"    {declare(n, w)}" for n, w in params)
        parts.append(f"struct {name}_params {{\n{fields}\n}};\n\n")
    argument = f", const struct {name}_params *a" if params else ""
    parts.append(f"{unit.signature('void', function)}{argument})\n{{\n")
    scope = ["h", *(["a"] if params else []), *(["v"] if function in unit.taking else [])]
    unused = (n for n in scope if not re.search(rf"\b{n}\b(?=->|[,)])", text))
    parts += [f"    (void){n};\n" for n in unused]
    for field in unit.temporaries.get(index, ()):
        variable = own_name(unit.fields[unit.program.headers[SCALARS].type.name, field.name])
        parts.append(f"    {c_type(field.width, field.is_signed)} {variable} = {{0}};\n")
    parts.append(begins)
    body_text = indent(text).replace("    step_", "step_")
    parts.append(f"{body_text}\n}}" if text else "}")
    return "".join(parts)


def declare(name: str, width: int) -> str:
    """The declaration of a parameter."""
    if width > 64:
        return f"uint64_t {name}[{-(-width // 64)}]; /* {width} bits */"
    bits = "" if width in (8, 16, 32, 64) else f" /* {width} bits */"
    return f"{c_type(width)} {name};{bits}"


def jump_targets(steps: tuple[Primitive, ...]) -> set[int]:
    """The primitives that jumps lead to."""
    found = set()
    for primitive in steps:
        if primitive.op.startswith("_jump"):
            target = primitive.args[-1]
            while isinstance(target, bmv2.Op):
                raise JsonError(f"{primitive.path}: a jump must lead to a constant place")
            if not isinstance(target, bmv2.Const) or not 0 <= target.value <= len(steps):
                raise JsonError(f"{primitive.path}: a jump leads out of the action")
            found.add(target.value)
    return found


def jumps_back(action: bmv2.Action) -> bool:
    """Whether an action has a loop."""
    return any(
        p.op.startswith("_jump") and isinstance(p.args[-1], bmv2.Const) and p.args[-1].value <= i
        for i, p in enumerate(action.body)
    )


def turn(leave: str, back: str) -> str:
    """A jump back, unless the packet has taken all the turns it may."""
    return f"{{ if (++r->turns > SW_LOOP_MAX) {{ sw_endless(r); {leave} }} {back} }}"


def jump(writer: Actions, here: int, primitive: Primitive) -> list[str]:
    """_jump and _jump_if_zero."""
    target = primitive.args[-1]
    assert isinstance(target, bmv2.Const)
    away = f"goto step_{target.value};"
    if target.value <= here:
        away = turn("return;", away)
    if primitive.op == "_jump":
        return [away]
    lines = [f"if (!{writer.condition(primitive.args[0])})", f"    {away}"]
    return [*writer.exprs.settle(), *lines]
