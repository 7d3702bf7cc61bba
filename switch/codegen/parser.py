"""The parser: one label per state, `p` walking over the frame."""

from __future__ import annotations

from .. import bmv2
from ..bmv2 import Expr, ParserOp, ParseState, Transition
from ..place import JsonError
from .action import Actions
from .bits import load
from .expression import Exprs
from .names import Names, c_string, spoken
from .unit import WIDE_BITS, Unit, c_type

CORE_ERRORS = ("NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort")


class ParserWriter:
    """Writes `parse_headers`, which returns where the unparsed rest starts."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.exprs = Exprs(unit, lookahead=self.lookahead)
        self.exprs.has_statements = True
        scope = Names()
        self.labels = {s.name: scope.new(f"state_{s.name}") for s in unit.program.parser.states}
        self.lines: list[str] = []
        self.used: set[str] = set()  # header types extracted
        self.looping = looping_states(unit.program.parser)

    def error(self, name: str) -> str:
        """The number of an error of the core library."""
        numbers = self.unit.program.errors
        fallback = CORE_ERRORS.index(name) if name in CORE_ERRORS else 0
        return f"{numbers.get(name, fallback)} /* {name} */"

    def lookahead(self, offset: int, width: int) -> str:
        """Bits ahead; that they are there was checked."""
        if width > WIDE_BITS:
            return f"wide_load(p, {offset}, {width})"
        return load(offset, width)

    def emit(self) -> str:
        """The whole parser."""
        parser = self.unit.program.parser
        for state in reachable(parser):
            self.state(state)
        start = self.labels[parser.init_state] if parser.init_state else "done"
        turns = "    unsigned turns = 0; /* of states that may come back to themselves */\n"
        body = "\n".join(self.lines)
        has_error = "failed:" if "goto failed" in body else ""
        text = [
            *self.error_names(),
            "/* Returns where the bytes begin that no header covers. */",
            "SW_INLINE const uint8_t *parse_headers(struct sw_run *r, struct phv *h)",
            "{",
            "    const uint8_t *p = r->pkt->frame, *const end = p + r->pkt->frame_len;",
            f"    uint32_t error = {self.error('NoError')};",
            *self.unit.declared("parser"),
            (turns if self.looping else "") + f"    goto {start};",
            body,
        ]
        if has_error:
            text += ["failed:", '    SW_TRACE(r, "  parser error %s", error_name(error));']
        text += [
            "done:",
            "    r->pkt->parser_error = error;",
            "    (void)h;",
            "    (void)end;",
            "    return p;",
            "}",
        ]
        return "\n".join(text)

    def error_names(self) -> list[str]:
        """The names of errors, for the trace."""
        lines = [
            "static inline const char *error_name(uint32_t error)",
            "{",
            "    switch (error) {",
        ]
        for name, number in self.unit.program.errors.items():
            lines += [f"    case {number}:", f"        return {c_string(name)};"]
        return [*lines, "    }", '    return "unknown";', "}", ""]

    def say(self, text: str) -> None:
        """Add a statement."""
        self.lines.append(f"    {text}")

    def fail(self, condition: str, error: str) -> None:
        """Leave with an error if a condition holds."""
        self.say(f"if ({condition}) {{")
        self.say(f"    error = {error};")
        self.say("    goto failed;")
        self.say("}")

    def state(self, state: ParseState) -> None:
        """One state: its operations, then its transitions."""
        self.lines.append(f"{self.labels[state.name]}:")
        self.say(f'SW_TRACE(r, "  parser state {spoken(state.name)}");')
        if state.name in self.looping:
            # A loop that consumes nothing would not end; one that does ends with the frame.
            self.fail("++turns > SW_FRAME_MAX", self.error("ParserTimeout"))
        self.exprs.settled.clear()
        for op in state.ops:
            start = len(self.lines)
            try:
                self.operation(op)
            except JsonError as error:
                raise JsonError(f"{op.path}: {error}") from None
            self.settle(start)
            if op.op.startswith("extract") and isinstance(op.args[0], bmv2.HeaderRef):
                self.exprs.settled.update(filter(None, [self.unit.late.get(op.args[0].name)]))
        start = len(self.lines)
        self.transitions(state)
        self.settle(start)

    def settle(self, start: int) -> None:
        """Ask for the late headers that the lines since then use."""
        self.lines[start:start] = [f"    {line}" for line in self.exprs.settle()]

    def operation(self, op: ParserOp) -> None:
        """One operation of a state."""
        if op.primitive is not None:
            actions = Actions(self.unit, self.exprs)
            self.lines += ["    " + line for line in actions.primitive(op.primitive)]
        elif op.op in ("extract", "extract_VL"):
            self.extract(op)
        elif op.op == "advance":
            self.advance(op.args[0])
        elif op.op == "verify":
            condition = self.exprs.boolean(op.args[0])
            self.fail(f"!{condition}", self.exprs.stored(op.args[1], 32))
        else:
            self.check_lookahead(op.args[1])
            target, value = op.args
            actions = Actions(self.unit, self.exprs)
            primitive = bmv2.Primitive("assign", (target, value), None, op.path)
            if isinstance(target, bmv2.FieldRef) and self.unit.program.field_of(target).is_varbit:
                primitive = bmv2.Primitive("assign_VL", (target, value), None, op.path)
            self.lines += ["    " + line for line in actions.primitive(primitive)]

    def advance(self, amount: Expr) -> None:
        """Skip bits."""
        bits = self.exprs.count(amount)
        self.fail(f"({bits}) % 8", self.error("ParserInvalidArgument"))
        self.fail(f"(uint64_t)(end - p) < ({bits}) / 8", self.error("PacketTooShort"))
        self.say(f"p += ({bits}) / 8;")

    def extract(self, op: ParserOp) -> None:
        """Take a header from the packet."""
        program, unit = self.unit.program, self.unit
        target = op.args[0]
        after: list[str] = []
        made: list[str] = []
        if isinstance(target, bmv2.HeaderRef):
            header_type, path = program.headers[target.name].type, unit.paths[target.name]
            after = [
                f"{unit.paths[s]}.is_valid = false;" for s in unit.siblings.get(target.name, ())
            ]
            made = Actions(unit, self.exprs).made(target)
        elif isinstance(target, bmv2.StackRef):
            stack = program.stacks[target.name]
            name = unit.stacks[stack.name]
            self.fail(f"h->{name}_next >= {len(stack.headers)}", self.error("StackOutOfBounds"))
            header_type, path = stack.type, f"{self.exprs.reach_stack(stack.name)}[h->{name}_next]"
            after = [f"h->{name}_next++;"]
        else:
            assert isinstance(target, bmv2.UnionStackRef)
            unions = program.union_stacks[target.name].unions
            name = unit.union_stacks[target.name]
            if (target.name, op.member) not in unit.union_fields:
                raise JsonError(f"the unions of {target.name!r} have no member {op.member!r}")
            self.fail(f"h->{name}_next >= {len(unions)}", self.error("StackOutOfBounds"))
            header_type = self.exprs.union_member_type(target.name, op.member)
            path = f"h->{name}[h->{name}_next].{unit.union_fields[target.name, op.member]}"
            after = [f"h->{name}_next++;"]
        self.used.add(header_type.name)
        tag = unit.types[header_type.name]
        size = header_type.fixed_bits // 8
        if header_type.varbit is not None:
            length = self.exprs.count(op.args[1]) if len(op.args) > 1 else "0u"
            self.say("{")
            self.say(f"    uint64_t bits = {length};")
            self.fail("bits % 8", self.error("ParserInvalidArgument"))
            self.fail(f"(uint64_t)(end - p) < {size} + bits / 8", self.error("PacketTooShort"))
            self.fail(f"bits > {header_type.varbit.width}", self.error("HeaderTooShort"))
            for line in made:
                self.say(f"    {line}")
            self.say(f"    get_{tag}(&{path}, p, (uint32_t)bits);")
            self.say(f"    p += {size} + bits / 8;")
            self.say("}")
        else:
            self.fail(f"end - p < {size}", self.error("PacketTooShort"))
            for line in made:
                self.say(line)
            self.say(f"get_{tag}(&{path}, p);")
            self.say(f"p += {size};")
        for line in after:
            self.say(line)
        self.say(f'SW_TRACE(r, "    extract {spoken(target.name)}");')

    def check_lookahead(self, e: Expr) -> None:
        """See that the bits an expression looks at are there."""
        need = max((look.offset + look.width for look in lookaheads(e)), default=0)
        if need:
            self.fail(f"end - p < {-(-need // 8)}", self.error("PacketTooShort"))

    # Transitions

    def transitions(self, state: ParseState) -> None:
        """Choose the next state."""
        default = next((t for t in state.transitions if t.is_default), None)
        cases = [t for t in state.transitions if not t.is_default]
        if not state.key or not cases:
            self.leave(default)
            return
        for key in state.key:
            self.check_lookahead(key)
        self.say("{")
        names = []
        for i, key in enumerate(state.key):
            low, high = self.exprs.interval(key)
            width = max((high - low).bit_length(), 1)
            name = f"key{i}" if len(state.key) > 1 else "key"
            names.append((name, width))
        for key, (name, width), is_used in zip(
            state.key, names, self.looked_at(names, cases), strict=True
        ):
            if is_used:
                self.say(f"    const {c_type(width)} {name} = {self.exprs.stored(key, width)};")
        self.select(names, cases)
        self.say("}")
        self.leave(default)

    def leave(self, transition: Transition | None) -> None:
        """Go where a transition leads; nowhere is the end."""
        target = transition.next_state if transition else None
        self.say(f"goto {self.labels[target]};" if target else "goto done;")

    def select(self, keys: list[tuple[str, int]], cases: list[Transition]) -> None:
        """Try cases in order; plain values of one key become a switch."""
        plain = all(c.value_set is None and self.is_full(keys, c.mask) for c in cases)
        if plain and len(keys) == 1 and keys[0][1] <= 64:
            self.say(f"    switch ({keys[0][0]}) {{")
            seen = set()
            for case in cases:
                assert case.value is not None
                if case.value in seen or case.value >> keys[0][1]:
                    continue
                seen.add(case.value)
                goto = self.labels[case.next_state] if case.next_state else "done"
                self.say(f"    case {case.value:#x}:")
                self.say(f"        goto {goto};")
            self.say("    }")
            return
        for case in cases:
            goto = self.labels[case.next_state] if case.next_state else "done"
            self.say(f"    if ({self.test(keys, case)})")
            self.say(f"        goto {goto};")

    def looked_at(self, keys: list[tuple[str, int]], cases: list[Transition]) -> list[bool]:
        """Which keys there is a case that looks at."""
        widths = [w for _, w in keys]
        if any(case.value_set is not None or case.mask is None for case in cases):
            return [True] * len(keys)
        masks = [split(case.mask, widths) for case in cases if case.mask is not None]
        return [
            any(mask & (1 << w) - 1 for mask in of)
            for w, of in zip(widths, zip(*masks, strict=True), strict=True)
        ]

    def is_full(self, keys: list[tuple[str, int]], mask: int | None) -> bool:
        """Whether a mask lets every bit of the keys through."""
        if mask is None:
            return True
        parts = split(mask, [w for _, w in keys])
        return all(m == (1 << w) - 1 for m, (_, w) in zip(parts, keys, strict=True))

    def test(self, keys: list[tuple[str, int]], case: Transition) -> str:
        """The condition of a case."""
        widths = [w for _, w in keys]
        if case.value_set is not None:
            return self.value_set_test(keys, case)
        assert case.value is not None
        values = split(case.value, widths)
        every = [(1 << w) - 1 for w in widths]
        masks = every if case.mask is None else split(case.mask, widths)
        tests = []
        for (name, width), value, mask, full in zip(keys, values, masks, every, strict=True):
            if mask & full == 0:
                continue
            e = bmv2.Const(value & mask & full)
            tests.append(self.masked_equal(name, width, mask & full, e.value))
        return " && ".join(tests) or "true"

    def masked_equal(self, name: str, width: int, mask: int, value: int) -> str:
        """Whether a key under a mask is a value."""
        from .expression import literal, unsigned_for

        rep = unsigned_for(width)
        if rep.name == "WIDE":
            masked = f"wide_and({name}, {literal(mask, rep)})"
            return f"wide_compare({masked}, {literal(value, rep)}) == 0"
        left = name if mask == (1 << width) - 1 else f"({name} & {literal(mask, rep)})"
        return f"{left} == {literal(value, rep)}"

    def value_set_test(self, keys: list[tuple[str, int]], case: Transition) -> str:
        """Membership in a value set: keys joined without padding, first in the high bits."""
        assert case.value_set is not None
        width = self.unit.program.value_sets[case.value_set].width
        words = -(-width // 64)
        parts: list[list[str]] = [[] for _ in range(words)]
        at = sum(w for _, w in keys)
        masks = split(case.mask, [w for _, w in keys]) if case.mask is not None else None
        for i, (name, key_width) in enumerate(keys):
            at -= key_width
            text = name if masks is None else f"({name} & {masks[i]:#x}u)"
            for word in range(at // 64, min(-(-(at + key_width) // 64), words)):
                shift = at - word * 64
                moved = (
                    f"({text}) << {shift}"
                    if shift > 0
                    else f"({text}) >> {-shift}"
                    if shift
                    else text
                )
                parts[word].append(f"(uint64_t)({moved})")
        key = ", ".join(" | ".join(p) or "0" for p in parts)
        index = f"VALUE_SET_{self.unit.value_sets[case.value_set]}"
        return f"value_set_has(&r->state->value_sets[{index}], (uint64_t[]){{{key}}}, {words})"


def split(value: int, widths: list[int]) -> list[int]:
    """Take apart a number that joins byte-padded fields."""
    parts = []
    for width in reversed(widths):
        size = -(-width // 8) * 8
        parts.append(value & ((1 << size) - 1))
        value >>= size
    return parts[::-1]


def lookaheads(e: Expr | None) -> list[bmv2.Lookahead]:
    """All lookaheads in an expression."""
    if isinstance(e, bmv2.Lookahead):
        return [e]
    if isinstance(e, bmv2.Op):
        return [look for part in (e.left, e.right, e.cond) for look in lookaheads(part)]
    return []


def reachable(parser: bmv2.Parser) -> list[ParseState]:
    """The states that can be entered, the first one first."""
    states = {s.name: s for s in parser.states}
    order: list[str] = []
    work = [parser.init_state] if parser.init_state else []
    while work:
        name = work.pop()
        if name in order:
            continue
        order.append(name)
        following = [t.next_state for t in states[name].transitions if t.next_state]
        work += reversed(following)
    return [states[n] for n in order]


def looping_states(parser: bmv2.Parser) -> set[str]:
    """The states that can come back to themselves."""
    states = {s.name: s for s in parser.states}
    found = set()
    for name in states:
        seen: set[str] = set()
        work = [t.next_state for t in states[name].transitions]
        while work:
            following = work.pop()
            if following is None or following in seen:
                continue
            seen.add(following)
            work += [t.next_state for t in states[following].transitions]
        if name in seen:
            found.add(name)
    return found
