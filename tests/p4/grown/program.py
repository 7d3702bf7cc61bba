"""Whole programs: headers, parser, controls, and the packets that go through them."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from typing import Any

from params.data import Data

from .grower import BOOL, Grower, Scope, is_valid
from .kinds import Bits, Enum, Head, Kind, Struct, copied, from_bits, to_bits, width_of, zero
from .parts import (
    COMPARISONS,
    ExitSignal,
    Expr,
    Function,
    Memory,
    Place,
    ReturnSignal,
    Run,
    Stmt,
    arithmetic,
    as_bits,
    assigned,
    binary,
    both,
    called,
    cast,
    conditional,
    declared,
    indented,
    literal,
    member,
    sequence,
    sliced,
    variable,
)
from .tables import Action, Entry, Table, fill

PORTS = 8
DROPPED = 511
# What may become of a packet besides, and the list of fields that goes along with it.
LISTS = {"clone": 1, "egress clone": 2, "resubmit": 3, "recirculate": 4}
SESSION, EGRESS_SESSION = 5, 6
# Copies leave by ports of their own: which of two packets comes first at one is nobody's promise.
CLONE_PORT, EGRESS_CLONE_PORT, OTHER_CLONE_PORT = 8, 9, 10
CLONE_GROUP = 4
TURNS = 2  # as often a packet may be sent back
CELLS = 4  # of a register or counter
# `standard_metadata.instance_type`, as BMv2 counts.
NORMAL, CLONED, CLONED_AT_EGRESS, RECIRCULATED, REPLICATED, RESUBMITTED = 0, 1, 2, 4, 5, 6
MATCHES = ("exact", "exact", "lpm", "ternary", "range", "optional")
ERRORS = ("PacketTooShort", "StackOutOfBounds", "Odd")
HASHES = ("crc16", "crc32", "csum16", "xor16")


class ParserError(Exception):
    """An error that ends parsing."""


class Cursor(Data, frozen=False):
    """A frame, and how much of it has been read."""

    frame: bytes
    at: int = 0

    def take(self, width: int) -> int:
        """The next bits."""
        if self.at + width > 8 * len(self.frame):
            raise ParserError("PacketTooShort")
        whole = int.from_bytes(self.frame, "big")
        self.at += width
        return whole >> (8 * len(self.frame) - self.at) & ((1 << width) - 1)

    def peek(self, width: int) -> int:
        """The next bits, left where they are."""
        return Cursor(self.frame, self.at).take(width)

    @property
    def rest(self) -> bytes:
        """What has not been read."""
        return self.frame[self.at // 8 :]


class State(Data):
    """A parser's state."""

    name: str
    lines: list[str]
    do: Callable[[Run, Cursor], str]


class Control(Data, frozen=False):
    """Ingress or egress."""

    name: str
    variables: list[Stmt] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    registers: dict[str, Bits] = field(default_factory=dict)
    counters: list[str] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)  # instances of other controls
    body: Stmt = field(default_factory=lambda: sequence([]))

    def lines(self) -> list[str]:
        """Its declaration."""
        inside = [
            f"register<{kind.text}>({CELLS}) {name};" for name, kind in self.registers.items()
        ]
        inside += [
            f"counter({CELLS}, CounterType.packets_and_bytes) {name};" for name in self.counters
        ]
        inside += [f"{name}() {name}_instance;" for name in self.blocks]
        inside += [line for one in self.variables for line in one.lines]
        inside += [line for action in self.actions for line in action.lines()]
        inside += [line for table in self.tables for line in table.lines()]
        return [
            f"control {self.name}(inout headers_t hdr, inout meta_t meta,",
            "        inout standard_metadata_t std) {",
            *(f"    {line}" for line in inside),
            "    apply {",
            *(f"    {line}" for line in indented(self.body)),
            "    }",
            "}",
        ]

    def run(self, run: Run) -> None:
        """Let a packet through."""
        try:
            for one in self.variables:
                one.do(run)
            self.body.do(run)
        except (ExitSignal, ReturnSignal):
            pass


class Program(Grower):
    """A program, grown from a number."""

    def __init__(self, number: int, size: int = 8) -> None:
        super().__init__(random.Random(f"grown {number}"))
        self.number = number
        self.size = size
        self.is_new = self.often(0.3)
        self.fates = {name for name in LISTS if self.often(0.25)}
        self.groups = self._groups() if self.often(0.25) else {}
        self.clones_to_group = self.often(0.3)
        self.cloned_at_egress = CLONED if self.often(0.3) and not self.clones_to_group else NORMAL
        self.functions: list[Function] = []
        self.sub_controls: list[list[str]] = []
        self._types()
        self._variables()
        for _ in range(self.rng.randint(0, 3)):
            self.functions.append(self.function(list(self.functions)))
        self.has_checksum = self.often(0.6)
        self.states = self._parser()
        self.ingress = self._control("ingress")
        self.egress = self._control("egress")
        self.checked = self._checksum_fields()
        self.frames = [(self.rng.randrange(PORTS), self._frame()) for _ in range(30)]
        self._fill()

    # Types and variables

    def _types(self) -> None:
        members = tuple((self.name("E"), n) for n in range(self.rng.randint(2, 4)))
        self.enums.append(Enum("plain_t", members))
        width = self.rng.choice((2, 4, 8, 13))
        values = self.rng.sample(range(1 << width), self.rng.randint(2, 4))
        self.enums.append(Enum("coded_t", tuple((self.name("S"), v) for v in values), width))
        self.structs.append(Struct("pair_t", self._fields(self.rng.randint(1, 3))))
        kinds = [("kind", Bits(8)), *self._layout(self.rng.randint(1, 5))]
        self.tag = Struct("tag_t", tuple(kinds), True)
        self.simple = [
            Struct(f"{name}_t", self._layout(self.rng.randint(1, 4)), True) for name in ("a", "b")
        ]
        self.item = Struct("item_t", self._layout(self.rng.randint(1, 3), ("more", Bits(1))), True)
        self.forms = [
            Struct(f"{name}_t", self._layout(self.rng.randint(1, 3)), True) for name in ("x", "y")
        ]
        words = [Bits(w) for w in self.rng.choice(((16,), (8, 24), (3, 13, 16), (32, 32), (5, 59)))]
        summed = [(f"w{n}", kind) for n, kind in enumerate(words)]
        self.summed = Struct("sum_t", (*summed, ("sum", Bits(16))), True)
        self.depth = self.rng.randint(1, 4)
        scalars = (*self._fields(self.rng.randint(4, 9)), ("met", Bits(16)))
        self.meta = Struct("meta_t", (*scalars, ("pair", self.structs[0])))
        self.listed = {
            fate: [name for name, _ in scalars if self.often(0.4)] for fate in sorted(self.fates)
        }
        self.probed = [name for name, _ in scalars if self.often(0.7)]

    def _fields(self, count: int) -> tuple[tuple[str, Kind], ...]:
        return tuple((self.name("m"), self.scalar()) for _ in range(count))

    def _layout(self, count: int, *first: tuple[str, Kind]) -> tuple[tuple[str, Kind], ...]:
        """A header's fields, of whole bytes."""
        coded = self.enums[1]
        kinds = [self.rng.choice((self.bits(), self.bits(), BOOL, coded)) for _ in range(count)]
        fields = [*first, *((self.name("h"), kind) for kind in kinds)]
        if odd := -sum(width_of(kind) for _, kind in fields) % 8:
            fields.insert(self.rng.randrange(len(first), len(fields) + 1), ("pad", Bits(odd)))
        return tuple(fields)

    def _groups(self) -> dict[int, list[tuple[int, list[int]]]]:
        """Multicast groups: nodes, each a number and ports; one group is empty."""

        def node() -> tuple[int, list[int]]:
            ports = sorted(self.rng.sample(range(PORTS), self.rng.randint(1, 3)))
            return self.rng.getrandbits(16), ports

        return {1: [node()], 2: [node(), node()], 3: []}

    def _variables(self) -> None:
        self.meta_place = variable(self.meta, "meta")
        self.tag_place = variable(self.tag, "hdr.tag")
        self.items = [variable(self.item, f"hdr.s[{n}]") for n in range(self.depth)]
        self.union = [variable(f, f"hdr.u.{f.text[0]}") for f in self.forms]
        names = {"a": self.simple[0], "b": self.simple[1], "c": self.simple[1], "k": self.summed}
        self.heads = {name: variable(kind, f"hdr.{name}") for name, kind in names.items()}
        wide = [as_bits(member(self.meta_place, name).expr) for name in self.probed]
        widths = [part.kind.width for part in wide if isinstance(part.kind, Bits)]
        fields: list[tuple[str, Kind]] = [(f"f{n}", Bits(w)) for n, w in enumerate(widths)]
        fields.append(("pad", Bits(8 - sum(widths) % 8)))
        self.probe = variable(Struct("probe_t", tuple(fields), True), "hdr.probe")
        self.probes = wide

    @property
    def all_heads(self) -> list[Place]:
        """Every header but the tag, which is always there, and the probe."""
        return [*self.heads.values(), *self.items, *self.union]

    @property
    def emitted(self) -> list[Place]:
        """Every header, in the order in which they leave."""
        return [self.tag_place, *self.all_heads, self.probe]

    def _scope(self) -> Scope:
        """What is known in a control."""
        return Scope(
            places=[self.meta_place, self.tag_place],
            heads=self.all_heads,
            unions={place.text: "u" for place in self.union},
            stacks=[("hdr.s", self.items)],
            functions=self.functions,
        )

    # Parser

    @property
    def _parser_variables(self) -> tuple[Place, Place]:
        """How many rounds are left, and what the rounds before have met."""
        return variable(Bits(2), "left"), variable(Bits(16), "met")

    def _parser(self) -> dict[str, State]:
        # Of a clone BMv2 lets the parser read what another packet has left in metadata.
        known = [self.tag_place]
        known += [] if "clone" in self.fates else [self.meta_place]
        scope = Scope(places=known, is_straight=True)
        order = ["a", "b", "s", "u", "k", "l"]
        self.rng.shuffle(order)
        self.order = order
        states: dict[str, State] = {}
        with self.within(scope):
            after = ["accept", *(f"ask_{name}" for name in reversed(order))]
            places = dict(zip(reversed(order), after[:-1], strict=True))
            for name in order:
                following = places[name]
                found = getattr(self, f"_ask_{name}")(following)
                states |= {state.name: state for state in found}
            first = self._state("start", self._extract(self.tag_place), f"ask_{order[0]}")
        return {first.name: first} | states

    def _state(self, name: str, before: Stmt, following: str) -> State:
        """A state that does something and goes on."""
        parts = [before]
        parts += [self._assign(0) or sequence([]) for _ in range(self.rng.randint(0, 2))]
        if self.often(0.15):
            parts.append(self._verify())
        made = sequence(parts)

        def do(run: Run, cursor: Cursor) -> str:
            run.variables["packet"] = cursor
            made.do(run)
            return following

        return State(name, [*made.lines, f"transition {following};"], do)

    def _extract(self, place: Place) -> Stmt:
        def take(run: Run) -> None:
            self._read(place, run, run.variables["packet"])

        return Stmt([f"packet.extract({place.text});"], take)

    def _read(self, place: Place, run: Run, cursor: Cursor) -> None:
        """Take a header from a frame."""
        assert isinstance(place.kind, Struct)
        bits, left = cursor.take(place.kind.width), place.kind.width
        head = Head(place.kind, True)
        for name, kind in place.kind.fields:
            left -= width_of(kind)
            head.fields[name] = from_bits(kind, bits >> left & ((1 << width_of(kind)) - 1))
        if place.text.startswith("hdr.u"):
            for other in self.union:
                run.variables[other.text].is_valid = False
        run.variables[place.text] = head

    def _verify(self) -> Stmt:
        condition = self.expr(BOOL, 2)

        def check(run: Run) -> None:
            if not condition.of(run):
                raise ParserError("Odd")

        return Stmt([f"verify({condition.text}, error.Odd);"], check)

    def _asked(self, name: str, bit: int, to: str, following: str) -> State:
        """A state that looks at a bit of the tag, in one of several ways."""
        kind = member(self.tag_place, "kind")
        mask = 1 << bit
        way = self.rng.randrange(4)
        subject, label = [
            (f"{kind.text}[{bit}:{bit}]", "1w1"),
            (kind.text, f"8w{mask} &&& 8w{mask}"),
            (f"{kind.text} & 8w{mask}", f"8w{mask}"),
            (f"{kind.text}[{bit}:{bit}], {kind.text}", "1w1, _"),
        ][way]
        if way == 3:
            label = f"({label})"
        lines = [f"transition select({subject}) {{", f"    {label}: {to};"]
        lines += [f"    default: {following};", "}"]
        return State(name, lines, lambda run, _: to if kind.get(run) >> bit & 1 else following)

    def _ask_simple(self, name: str, bit: int, following: str) -> list[State]:
        taken = self._state(f"take_{name}", self._extract(self.heads[name]), following)
        return [self._asked(f"ask_{name}", bit, taken.name, following), taken]

    def _ask_a(self, following: str) -> list[State]:
        return self._ask_simple("a", 0, following)

    def _ask_b(self, following: str) -> list[State]:
        return self._ask_simple("b", 1, following)

    def _ask_k(self, following: str) -> list[State]:
        return self._ask_simple("k", 5, following)

    def _ask_s(self, following: str) -> list[State]:
        def take(run: Run, cursor: Cursor) -> str:
            number = run.variables["next"]
            if number == self.depth:
                raise ParserError("StackOutOfBounds")
            self._read(self.items[number], run, cursor)
            run.variables["next"] = number + 1
            return "take_s" if self.items[number].get(run).fields["more"] else following

        lines = ["packet.extract(hdr.s.next);", "transition select(hdr.s.last.more) {"]
        lines += ["    1: take_s;", f"    default: {following};", "}"]
        return [self._asked("ask_s", 2, "take_s", following), State("take_s", lines, take)]

    def _ask_u(self, following: str) -> list[State]:
        kind = member(self.tag_place, "kind")
        forms = [self._state(f"take_{p.text[-1]}", self._extract(p), following) for p in self.union]
        lines = [f"transition select({kind.text}[4:3]) {{"]
        lines += [f"    {n}: {form.name};" for n, form in enumerate(forms, 1)]
        targets = {n: form.name for n, form in enumerate(forms, 1)}
        ask = State(
            "ask_u",
            [*lines, f"    default: {following};", "}"],
            lambda run, _: targets.get(kind.get(run) >> 3 & 3, following),
        )
        return [ask, *forms]

    def _ask_l(self, following: str) -> list[State]:
        """A loop of as many rounds as two bits of the tag say, each of which reads on."""
        tag, (left, met) = member(self.tag_place, "kind"), self._parser_variables
        seen, self.loop_step = Bits(self.rng.choice((3, 8, 12, 16))), self.rng.choice((8, 16, 0))
        looked = Expr(
            seen, f"packet.lookahead<{seen.text}>()", lambda run: _cursor(run).peek(seen.width)
        )
        sign = self.rng.choice(("+", "^", "|-|"))
        whole = cast(Bits(16), looked)
        look = assigned(met, arithmetic(Bits(16), met.expr, sign, whole))
        bits = f"32w{self.loop_step}" if self.loop_step else "((bit<32>)left << 3)"

        def step(run: Run) -> None:
            _cursor(run).take(self.loop_step or 8 * left.get(run))

        ways = [sequence([look, Stmt([f"packet.advance({bits});"], step)])]
        if self.often(0.3):  # a header that each round reads again
            self.loop_step = -1
            ways = [self._extract(self.heads["c"])]
        down = arithmetic(Bits(2), left.expr, "-", literal(Bits(2), 1))
        begin = sequence(
            [
                assigned(left, sliced(tag, 7, 6).expr),
                assigned(met, self.constant(Bits(16))),
            ]
        )
        turn = sequence([*ways, assigned(left, down)])
        finish = assigned(member(self.meta_place, "met"), met.expr)

        def asked(name: str, before: Stmt, otherwise: str) -> State:
            def do(run: Run, cursor: Cursor) -> str:
                run.variables["packet"] = cursor
                before.do(run)
                return "turn" if left.get(run) else otherwise

            lines = [*before.lines, "transition select(left) {"]
            lines += [f"    0: {otherwise};", "    default: turn;", "}"]
            return State(name, lines, do)

        def leave(run: Run, _: Cursor) -> str:
            finish.do(run)
            return following

        last = State("turned", [*finish.lines, f"transition {following};"], leave)
        return [asked("ask_l", begin, following), asked("turn", turn, "turned"), last]

    def _parse(self, run: Run, cursor: Cursor) -> None:
        """Run the parser; an error ends it, and is noted."""
        run.variables["next"] = 0
        for place in self.emitted:
            assert isinstance(place.kind, Struct)
            run.variables[place.text] = Head(place.kind)
        state = "start"
        try:
            while state != "accept":
                state = self.states[state].do(run, cursor)
        except ParserError as error:
            run.variables["std.parser_error"] = str(error)

    # Controls

    def _control(self, name: str) -> Control:
        control = Control(name)
        is_ingress = name == "ingress"
        with self.within(self._scope()) as scope:
            scope.heads = []  # not within actions
            for _ in range(self.rng.randint(1, 3)):
                place = variable(self.scalar(), self.name("v"))
                control.variables.append(declared(place, self.constant(place.kind)))
                scope.places.append(place)
            direct = [self._action(control, with_data=False) for _ in range(self.rng.randint(0, 2))]
            data = [self._action(control, with_data=True) for _ in range(self.rng.randint(1, 3))]
            scope.heads = self.all_heads
            tables = [self._table(control, data) for _ in range(self.rng.randint(0, 3))]
            scope.leaves = "exit return"
            scope.steps = [lambda: self._apply(tables), self._counted(control)]
            scope.steps += [lambda: self._act(direct)] if direct else []
            scope.steps += [self._hashed]
            if self.often(0.5):
                scope.steps.append(self._block(control))
            if is_ingress:
                scope.steps += [self._registered(control), self._sent]
                scope.steps += [self._cloned] * 2 if "clone" in self.fates else []
                scope.steps += [self._resubmitted] * 2 if "resubmit" in self.fates else []
                scope.steps += [self._replicated] * 2 if self.groups else []
            else:
                scope.steps += [self._cloned_again] * 2 if "egress clone" in self.fates else []
                scope.steps += [self._recirculated] * 2 if "recirculate" in self.fates else []
                scope.steps += [self._drop] if self.often(0.2) else []
            begun = [self._have_tag()]
            begun += self._begin_ingress() if is_ingress else self._noted(EGRESS_FIELDS)
            body = self.block(self.size)
            end = [] if is_ingress else [self._tell()]
            control.body = sequence([*begun, body, *end])
        return control

    def _have_tag(self) -> Stmt:
        """A tag there must be, even of a frame too short for one."""
        fields = [(member(self.tag_place, n), self.constant(k)) for n, k in self.tag.fields]

        def make(run: Run) -> None:
            run.variables["hdr.tag"] = Head(self.tag, True)

        made = Stmt(["hdr.tag.setValid();"], make)
        there = is_valid(self.tag_place)
        missing = Expr(BOOL, f"!{there.text}", lambda run: not there.of(run))
        return conditional(missing, sequence([made, *(assigned(p, v) for p, v in fields)]))

    def _begin_ingress(self) -> list[Stmt]:
        """What the parser and the checksum said."""
        wrong = self.rng.choice(ERRORS)
        error = Expr(
            BOOL,
            f"(std.parser_error == error.{wrong})",
            lambda run: run.variables["std.parser_error"] == wrong,
        )
        was_wrong = variable(BOOL, self.name("v"))
        begun = [self._send(), declared(was_wrong, error)]
        self.scope.places.append(was_wrong)
        return [*begun, *self._noted(INGRESS_FIELDS)]

    def _noted(self, fields: dict[str, int]) -> list[Stmt]:
        """Variables for some of what the switch tells of a packet."""
        begun = []
        for name in self.rng.sample(sorted(fields), 2):
            place = variable(Bits(fields[name]), self.name("v"))
            begun.append(declared(place, variable(place.kind, f"std.{name}").expr))
            self.scope.places.append(place)
        return begun

    def _send(self) -> Stmt:
        port = variable(Bits(9), "std.egress_spec")
        return assigned(port, cast(Bits(9), self.expr(Bits(3), 2)))

    def _sent(self) -> Stmt:
        return self._send() if self.often(0.7) else self._drop()

    def _drop(self) -> Stmt:
        def drop(run: Run) -> None:
            run.variables |= {"std.egress_spec": DROPPED, "std.mcast_grp": 0}

        return Stmt(["mark_to_drop(std);"], drop)

    def _tell(self) -> Stmt:
        """At the end: what metadata holds, in a header of its own."""

        def make(run: Run) -> None:
            assert isinstance(self.probe.kind, Struct)
            run.variables["hdr.probe"] = Head(self.probe.kind, True)

        parts = [Stmt(["hdr.probe.setValid();"], make)]
        for number, value in enumerate(self.probes):
            parts.append(assigned(member(self.probe, f"f{number}"), value))
        pad = member(self.probe, "pad")
        return sequence([*parts, assigned(pad, literal(pad.kind, 0))])

    def _action(self, control: Control, *, with_data: bool) -> Action:
        # What number a plain enumeration's member has for a control plane is nobody's promise.
        directions = ("",) if with_data else ("in", "inout", "out")
        params = self.params(directions, self.rng.randint(0, 3), without=self.enums[0])
        outer = self.scope
        with self.within(outer.inner()) as scope:
            scope.is_straight = True
            begun = self.enter(params, scope)
            body = sequence([*begun, self.block(self.rng.randint(1, 4))])
        action = Action(self.name("act"), params, body)
        control.actions.append(action)
        return action

    def _act(self, actions: list[Action]) -> Stmt | None:
        """An action called by the program."""
        action = self.rng.choice(actions)
        args = self.arguments(action.params)
        if args is None:
            return None
        text = f"{action.name}({', '.join(arg.text for arg in args)});"
        return Stmt([text], called(action.params, args, action.body.do))

    def _block(self, control: Control) -> Callable[[], Stmt | None]:
        """A control within the control, made here and applied as often as is drawn."""
        params = self.params(("in", "inout", "out"), self.rng.randint(1, 3))
        inner = Scope(functions=self.functions, leaves="return exit")
        with self.within(inner) as scope:
            begun = self.enter(params, scope)
            scope.places.append(self.meta_place)
            body = sequence([*begun, self.block(self.rng.randint(1, 4), 1)])
        name = self.name("block")
        words = ", ".join(["inout meta_t meta", *(param.text for param in params)])
        self.sub_controls.append(
            [f"control {name}({words}) {{", "    apply {"]
            + [f"    {line}" for line in indented(body)]
            + ["    }", "}"]
        )
        control.blocks.append(name)

        def run_body(run: Run) -> None:
            with suppress(ReturnSignal):
                body.do(run)

        def step() -> Stmt | None:
            args = self.arguments(params)
            # `meta` goes in and out as a whole: what is passed beside it must be none of its own.
            if args is None or any("meta" in arg.text for arg in args):
                return None
            text = ", ".join(["meta", *(arg.text for arg in args)])
            return Stmt([f"{name}_instance.apply({text});"], called(params, args, run_body))

        return step

    # Tables

    def _table(self, control: Control, actions: list[Action]) -> Table:
        keys, kinds = [], []
        for _ in range(self.rng.randint(0, 3)):
            how = self.rng.choice(MATCHES)
            if how == "lpm" and "lpm" in kinds:
                how = "exact"
            keys.append(self._key(how))
            kinds.append(how)
        chosen = tuple(self.rng.sample(actions, self.rng.randint(1, len(actions))))
        default = Entry((), chosen[0], self._data(chosen[0])) if self.often(0.6) else None
        is_const = bool(keys) and self.often(0.3)
        name = self.name("t")
        table = Table(name, control.name, tuple(keys), tuple(kinds), chosen, default, is_const)
        control.tables.append(table)
        return table

    def _key(self, how: str) -> Expr:
        if how == "exact" and self.often(0.3):
            return is_valid(self.rng.choice(self.all_heads))
        fields = [
            p for p in self.scope.readable() if isinstance(p.kind, Bits) and p.kind.width <= 64
        ]
        fitting = [p for p in fields if how == "exact" or not (_is_signed(p.kind))]
        if how == "lpm":  # what fills a key up to whole bytes BMv2 takes for part of its prefix
            fitting = [p for p in fitting if width_of(p.kind) % 8 == 0]
        if fitting and self.often(0.7):
            return self.rng.choice(fitting).expr
        return self.expr(Bits(self.rng.choice((8, 16) if how == "lpm" else (4, 8, 16))), 2)

    @property
    def has_signed_data(self) -> bool:
        """Whether an entry gives a signed number."""
        tables = [*self.ingress.tables, *self.egress.tables]
        params = [param for table in tables for a in table.actions for param in a.params]
        return any(_is_signed(param.place.kind) for param in params)

    def _data(self, action: Action) -> tuple[Any, ...]:
        return tuple(self.value(param.place.kind) for param in action.params)

    def _apply(self, tables: list[Table]) -> Stmt | None:
        """A table, in one of the ways to ask what came of it."""
        if not tables:
            return None
        table = tables.pop()
        way = self.rng.randrange(4)
        if way < 2:
            return Stmt([f"{table.name}.apply();"], lambda run: void(table.apply(run)))
        if way == 2:
            word = self.rng.choice(("hit", "miss"))
            hit = Expr(
                BOOL,
                f"{table.name}.apply().{word}",
                lambda run: (table.apply(run) is None) == (word == "miss"),
            )
            return self._asked_table(hit)
        return self._switched(table)

    def _asked_table(self, hit: Expr) -> Stmt:
        then, after = self.branch(1)
        otherwise, after_that = self.branch(1)
        self.scope.valid &= after & after_that
        return conditional(hit, then, otherwise)

    def _switched(self, table: Table) -> Stmt:
        labels = self.rng.sample(
            [a.name for a in table.actions], self.rng.randint(1, len(table.actions))
        )
        cases = {}
        for label in [*labels, "default"]:
            cases[label], after = self.branch(1)
            self.scope.valid &= after
        lines = [f"switch ({table.name}.apply().action_run) {{"]
        for label, made in cases.items():
            lines += [f"    {label}: {{", *(f"    {line}" for line in indented(made)), "    }"]

        def do(run: Run) -> None:
            ran = table.ran(table.apply(run))
            cases.get(ran, cases["default"]).do(run)

        return Stmt([*lines, "}"], do)

    # Externs

    def _index(self) -> Expr:
        return cast(Bits(32), self.expr(Bits(CELLS.bit_length() - 1), 2))

    def _counted(self, control: Control) -> Callable[[], Stmt]:
        def step() -> Stmt:
            if not control.counters or self.often(0.3):
                control.counters.append(self.name("c"))
            name, index = self.rng.choice(control.counters), self._index()
            full = f"{control.name}.{name}"

            def count(run: Run) -> None:
                run.memory.count(full, index.of(run), run.length)

            return Stmt([f"{name}.count({index.text});"], count)

        return step

    def _registered(self, control: Control) -> Callable[[], Stmt | None]:
        def step() -> Stmt | None:
            if not control.registers or self.often(0.3):
                control.registers[self.name("r")] = self.bits()
            name = self.rng.choice(list(control.registers))
            kind, index = control.registers[name], self._index()
            full = f"ingress.{name}"
            if self.often(0.5):
                value = self.expr(kind, 2)

                def write(run: Run) -> None:
                    at = index.of(run)
                    cells = run.memory.registers.setdefault(full, [0] * CELLS)
                    cells[at] = value.of(run)

                return Stmt([f"{name}.write({index.text}, {value.text});"], write)
            places = [p for p in self.scope.writable() if p.kind == kind]
            if not places:
                return None
            place = self.rng.choice(places)

            def read(run: Run) -> None:
                cells = run.memory.registers.setdefault(full, [0] * CELLS)
                place.put(run, cells[index.of(run)])

            return Stmt([f"{name}.read({place.text}, {index.text});"], read)

        return step

    def _hashed(self) -> Stmt | None:
        """A hash of a few numbers, whole bytes of them."""
        fields = [p for p in self.scope.readable() if isinstance(p.kind, Bits)]
        if not fields:
            return None
        parts = [as_bits(p.expr) for p in self.rng.sample(fields, min(len(fields), 2))]
        width = sum(width_of(part.kind) for part in parts)
        if odd := -width % 8:
            parts.append(self.constant(Bits(odd)))
        algorithm = self.rng.choice(HASHES)
        base, most = self.rng.randrange(100), self.rng.randint(1, 65535)
        place = variable(Bits(32), self.name("v"))
        data = ", ".join(part.text for part in parts)
        lines = [
            f"bit<32> {place.text};",
            f"hash({place.text}, HashAlgorithm.{algorithm}, 32w{base}, {{ {data} }}, 32w{most});",
        ]

        def compute(run: Run) -> None:
            place.put(run, base + HASHED[algorithm](packed(run, parts)) % most)

        self.scope.places.append(place)
        return Stmt(lines, compute)

    def _cloned(self) -> Stmt:
        call = f"clone_preserving_field_list(CloneType.I2E, {SESSION}, {LISTS['clone']});"
        return Stmt([call], lambda run: run.wants.add("clone"))

    def _cloned_again(self) -> Stmt:
        """At egress, of packets that are no such copies themselves."""
        number = LISTS["egress clone"]
        call = f"clone_preserving_field_list(CloneType.E2E, {EGRESS_SESSION}, {number});"
        clone = Stmt([call], lambda run: run.wants.add("egress clone"))
        return conditional(self._is_a(self.cloned_at_egress), clone)

    def _is_a(self, kind: int) -> Expr:
        what = variable(Bits(32), "std.instance_type").expr
        return binary(BOOL, what, "==", literal(Bits(32), kind), COMPARISONS["=="])

    def _resubmitted(self) -> Stmt:
        return conditional(self._may_turn(), self._turn("resubmit"))

    def _recirculated(self) -> Stmt:
        """Of what is no copy: of two that come back, any may be the first."""
        return conditional(both(self._is_a(NORMAL), self._may_turn()), self._turn("recirculate"))

    def _may_turn(self) -> Expr:
        turns = variable(Bits(8), "meta.turns").expr
        return binary(BOOL, turns, "<", literal(Bits(8), TURNS), COMPARISONS["<"])

    def _turn(self, fate: str) -> Stmt:
        """Send a packet back, and count that."""
        turns = variable(Bits(8), "meta.turns")
        counted = assigned(turns, arithmetic(Bits(8), turns.expr, "+", literal(Bits(8), 1)))
        call = Stmt(
            [f"{fate}_preserving_field_list({LISTS[fate]});"], lambda run: run.wants.add(fate)
        )
        return sequence([counted, call])

    def _replicated(self) -> Stmt:
        group = variable(Bits(16), "std.mcast_grp")
        return assigned(group, cast(Bits(16), self.expr(Bits(2), 2)))

    def _checksum_fields(self) -> list[Expr]:
        return [member(self.heads["k"], name).expr for name, _ in self.summed.fields[:-1]]

    # Packets

    def _frame(self) -> bytes:
        """A frame as the parser takes it, and some that end early."""
        tag = {name: self.value(kind) for name, kind in self.tag.fields}
        tag["kind"] = self.rng.getrandbits(8)
        wanted = [(self.tag, tag)]
        for name in self.order:
            wanted += self._part(name, tag["kind"])
        bits = width = 0
        for kind, values in wanted:
            for field_name, inner in kind.fields:
                bits = bits << width_of(inner) | to_bits(inner, values[field_name])
            width += kind.width
        frame = bits.to_bytes(width // 8, "big") + self.rng.randbytes(self.rng.randrange(20))
        if self.often(0.1):
            frame = frame[: self.rng.randint(1, len(frame))]
        return frame

    def _part(self, name: str, kind: int) -> list[tuple[Struct, dict[str, Any]]]:
        def drawn(struct: Struct) -> tuple[Struct, dict[str, Any]]:
            return struct, {field_name: self.value(inner) for field_name, inner in struct.fields}

        if name == "s" and kind & 4:
            items = [drawn(self.item) for _ in range(self.rng.randint(1, self.depth))]
            for _, item in items:
                item["more"] = 1
            items[-1][1]["more"] = int(self.often(0.1))
            return items
        if name == "u" and kind >> 3 & 3 in (1, 2):
            return [drawn(self.forms[(kind >> 3 & 3) - 1])]
        if name == "l" and (rounds := kind >> 6):
            if self.loop_step < 0:
                return [drawn(self.simple[1]) for _ in range(rounds)]
            width = rounds * self.loop_step or 8 * sum(range(rounds + 1))
            return [drawn(Struct("", (("", Bits(width)),), True))]
        bits = {"a": 1, "b": 2, "k": 32}
        if name not in bits or not kind & bits[name]:
            return []
        made = drawn(self.heads[name].kind)
        if name == "k" and self.often(0.7):
            run = Run(Memory(), {"hdr.k": Head(self.summed, True, made[1])})
            made[1]["sum"] = csum16(packed(run, self._checksum_fields()))
        return [made]

    def _fill(self) -> None:
        """Entries for what the packets bring, as far as they come without any."""
        self.run()
        for control in (self.ingress, self.egress):
            for table in control.tables:
                if table.keys:
                    fill(self.rng, table, self._data)

    def _start(self, memory: Memory, port: int, length: int, kept: dict[str, Any]) -> Run:
        run = Run(memory, length=length)
        run.variables |= {"meta": zero(self.meta), "meta.turns": 0, "std.ingress_port": port}
        run.variables |= {"std.egress_spec": 0, "std.parser_error": "NoError"}
        run.variables |= {"std.checksum_error": 0, "std.packet_length": length}
        run.variables |= {"std.instance_type": NORMAL, "std.egress_rid": 0, "std.mcast_grp": 0}
        run.variables |= kept
        return run

    def _kept(self, run: Run, fate: str, kind: int) -> dict[str, Any]:
        """What goes along with a packet that is sent back, or copied."""
        meta = run.variables["meta"]
        kept = {
            "meta": zero(self.meta) | {name: copied(meta[name]) for name in self.listed[fate]},
            "std.instance_type": kind,
        }
        if fate in ("resubmit", "recirculate"):
            kept["meta.turns"] = run.variables["meta.turns"]
        return kept

    def run(self) -> tuple[list[tuple[int, bytes]], Memory]:
        """What leaves, and what stays."""
        memory: Memory = Memory()
        sent: list[tuple[int, bytes]] = []
        for port, frame in self.frames:
            coming: tuple[int, bytes, dict[str, Any]] | None = (port, frame, {})
            while coming:
                coming = self._enter(memory, sent, *coming)
        return sent, memory

    def _enter(
        self,
        memory: Memory,
        sent: list[tuple[int, bytes]],
        port: int,
        frame: bytes,
        kept: dict[str, Any],
    ) -> tuple[int, bytes, dict[str, Any]] | None:
        """Parser and ingress, and what follows from them; what comes back, if anything does."""
        run, cursor = self._start(memory, port, len(frame), kept), Cursor(frame)
        self._parse(run, cursor)
        checked = self.heads["k"].get(run)
        if self.has_checksum and checked.is_valid:
            wanted = csum16(packed(run, self.checked))
            run.variables["std.checksum_error"] = int(wanted != checked.fields["sum"])
        self.ingress.run(run)
        if "clone" in run.wants:
            self._clone(run, frame, sent)
        if "resubmit" in run.wants:
            return 0, frame, self._kept(run, "resubmit", RESUBMITTED)
        if group := run.variables["std.mcast_grp"]:
            for number, ports in self.groups[group]:
                for to in ports:
                    fields = {"std.instance_type": REPLICATED, "std.egress_rid": number}
                    self._leave(_fork(run, fields), cursor, to, sent)
            return None
        if (to := run.variables["std.egress_spec"]) == DROPPED:
            return None
        run.variables["std.instance_type"] = NORMAL
        back = self._leave(run, cursor, to, sent)
        return (0, back, self._kept(run, "recirculate", RECIRCULATED)) if back else None

    def _clone(self, run: Run, frame: bytes, sent: list[tuple[int, bytes]]) -> None:
        """What ingress has copied: the frame as it came, parsed again."""
        port = run.variables["std.ingress_port"]
        for number, to in self.clones:
            copy, cursor = self._start(run.memory, port, len(frame), {}), Cursor(frame)
            self._parse(copy, cursor)
            # As BMv2 has it, what the parser wrote into metadata is forgotten.
            copy.variables |= self._kept(run, "clone", CLONED)
            copy.variables |= {"std.egress_rid": number, "std.ingress_port": 0}
            self._leave(copy, cursor, to, sent)

    @property
    def clones(self) -> list[tuple[int, int]]:
        """Where clones go, and as which replica."""
        to_group = [(3, CLONE_PORT), (3, OTHER_CLONE_PORT)]
        return to_group if self.clones_to_group else [(0, CLONE_PORT)]

    def _leave(
        self, run: Run, cursor: Cursor, port: int, sent: list[tuple[int, bytes]]
    ) -> bytes | None:
        """Egress, and the frame it makes; if that is to come back, it does not leave."""
        run.wants.clear()
        run.variables |= {"std.egress_port": port, "std.egress_spec": 0}
        self.egress.run(run)
        if "egress clone" in run.wants:
            fields = self._kept(run, "egress clone", CLONED_AT_EGRESS)
            fields |= {"meta.turns": 0, "std.egress_rid": 0, "std.ingress_port": 0}
            self._leave(_fork(run, fields), cursor, EGRESS_CLONE_PORT, sent)
        if run.variables["std.egress_spec"] == DROPPED:
            return None
        head = self.heads["k"].get(run)
        if self.has_checksum and head.is_valid:
            head.fields["sum"] = csum16(packed(run, self.checked))
        frame = self._deparsed(run, cursor)
        if "recirculate" in run.wants:
            return frame
        sent.append((port, frame))
        return None

    def _deparsed(self, run: Run, cursor: Cursor) -> bytes:
        """The frame that the headers make, with what the parser has not read."""
        bits = width = 0
        for place in self.emitted:
            inside = place.get(run)
            if inside.is_valid:
                for name, kind in inside.kind.fields:
                    bits = bits << width_of(kind) | to_bits(kind, inside.fields[name])
                width += inside.kind.width
        return bits.to_bytes(width // 8, "big") + cursor.rest

    # Text

    def _listing(self, name: str) -> str:
        lists = [str(LISTS[fate]) for fate, names in self.listed.items() if name in names]
        return f"@field_list({', '.join(lists)}) " if lists else ""

    def text(self) -> str:
        """The program."""
        assert isinstance(self.probe.kind, Struct)
        headers = [self.tag, *self.simple, self.item, *self.forms, self.summed, self.probe.kind]
        kinds: list[Enum | Struct] = [*self.enums, *self.structs, *headers]
        forms = "".join(f"    {form.text} {form.text[0]};\n" for form in self.forms)
        meta = "".join(
            f"    {self._listing(name)}{kind.text} {name};\n" for name, kind in self.meta.fields
        )
        if turning := [str(LISTS[f]) for f in ("resubmit", "recirculate") if f in self.fates]:
            meta += f"    @field_list({', '.join(turning)}) bit<8> turns;\n"
        members = "tag_t tag; a_t a; b_t b; b_t c; sum_t k; "
        members += f"item_t[{self.depth}] s; forms_t u; probe_t probe;"
        states = [
            f"    state {state.name} {{\n"
            + "".join(f"        {li}\n" for li in state.lines)
            + "    }"
            for state in self.states.values()
        ]
        data = ", ".join(part.text for part in self.checked)
        sums = [
            f"{word}_checksum(hdr.k.isValid(), {{ {data} }}, hdr.k.sum, HashAlgorithm.csum16);"
            if self.has_checksum
            else ""
            for word in ("verify", "update")
        ]
        emits = " ".join(f"packet.emit(hdr.{name});" for name in EMITTED)
        return "\n".join(
            [
                f"// Grown from number {self.number}: python -m tests.p4.grown {self.number} OUT",
                "#include <core.p4>",
                "#define V1MODEL_VERSION 20180101",
                "#include <v1model.p4>",
                "error { Odd }",
                *(kind.declaration() for kind in kinds),
                f"header_union forms_t {{\n{forms}}}",
                f"struct meta_t {{\n{meta}}}",
                f"struct headers_t {{ {members} }}",
                *(line for function in self.functions for line in function.lines()),
                *(line for lines in self.sub_controls for line in lines),
                "parser parse(packet_in packet, out headers_t hdr, inout meta_t meta,",
                "        inout standard_metadata_t std) {",
                *(f"    {place.kind.text} {place.text};" for place in self._parser_variables),
                *states,
                "}",
                "control check(inout headers_t hdr, inout meta_t meta) {",
                f"    apply {{ {sums[0]} }}",
                "}",
                *self.ingress.lines(),
                *self.egress.lines(),
                "control compute(inout headers_t hdr, inout meta_t meta) {",
                f"    apply {{ {sums[1]} }}",
                "}",
                f"control deparse(packet_out packet, in headers_t hdr) {{ apply {{ {emits} }} }}",
                "V1Switch(parse(), check(), ingress(), egress(), compute(), deparse()) main;",
                "",
            ]
        )

    def test(self) -> str:
        """The packet test: entries, packets, what leaves, what is kept."""
        lines = ["# covers: grown programs"]
        sent, memory = self.run()
        lines += self._copying()
        for control in (self.ingress, self.egress):
            for table in control.tables:
                lines += table.commands() if table.seen else []
        lines += [f"expect {port} {frame.hex()} $" for port, frame in sent]
        for number, (port, frame) in enumerate(self.frames, 1):
            lines.append(f"packet {port} {frame.hex()}")
            # What is sent back meets no packet that came later, then.
            if number % 15 == 0 or self.fates or self.groups:
                lines.append("wait")
        for (name, index), (packets, length) in sorted(memory.counters.items()):
            lines.append(f"check_counter {name}({index}) packets == {packets}")
            lines.append(f"check_counter {name}({index}) bytes == {length}")
        for name, cells in sorted(memory.registers.items()):
            kind = self.ingress.registers[name.partition(".")[2]]
            for index, value in enumerate(cells):
                if 0 <= value < 1 << 63:  # as BMv2 shows it
                    lines.append(f"check_register {name}({index}) == {kind.wrap(value)}")
        return "\n".join(lines) + "\n"

    def _copying(self) -> list[str]:
        """What a packet test says to set up copies."""
        groups = dict(self.groups)
        lines = []
        if "clone" in self.fates and self.clones_to_group:
            groups[CLONE_GROUP] = [(self.clones[0][0], [to for _, to in self.clones])]
        nodes = 0
        for group, members in groups.items():
            lines.append(f"mc_mgrp_create {group}")
            for number, ports in members:
                lines.append(f"mc_node_create {number} {' '.join(map(str, ports))}")
                lines.append(f"mc_node_associate {group} {nodes}")
                nodes += 1
        if "clone" in self.fates and self.clones_to_group:
            lines.append(f"mirroring_add_mc {SESSION} {CLONE_GROUP}")
        elif "clone" in self.fates:
            lines.append(f"mirroring_add {SESSION} {CLONE_PORT}")
        if "egress clone" in self.fates:
            lines.append(f"mirroring_add {EGRESS_SESSION} {EGRESS_CLONE_PORT}")
        return lines


# What the switch tells of a packet, with its width. How long it is at egress is not asked: BMv2
# adds and takes away what `setValid` and its like do, but not what assignments of headers do.
INGRESS_FIELDS = {"ingress_port": 9, "checksum_error": 1, "instance_type": 32, "packet_length": 32}
EGRESS_FIELDS = {"egress_port": 9, "egress_rid": 16, "instance_type": 32, "ingress_port": 9}
EMITTED = ("tag", "a", "b", "c", "k", "s", "u", "probe")


def void(_: object) -> None:
    """Nothing."""


def _cursor(run: Run) -> Cursor:
    """How far the parser has come."""
    cursor: Cursor = run.variables["packet"]
    return cursor


def _fork(run: Run, fields: dict[str, Any]) -> Run:
    """A copy of a packet, of which the switch tells something else."""
    copy = run.fork()
    copy.variables |= fields
    return copy


def _is_signed(kind: Kind) -> bool:
    return isinstance(kind, Bits) and kind.is_signed


def packed(run: Run, parts: list[Expr]) -> bytes:
    """Numbers one behind the other, in bytes."""
    bits = width = 0
    for part in parts:
        bits = bits << width_of(part.kind) | to_bits(part.kind, part.of(run))
        width += width_of(part.kind)
    return bits.to_bytes(width // 8, "big")


def csum16(data: bytes) -> int:
    """The Internet's checksum."""
    padded = data + bytes(len(data) % 2)
    total = sum(int.from_bytes(padded[i : i + 2], "big") for i in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def xor16(data: bytes) -> int:
    """Words of 16 bits, each into the one before."""
    padded = data + bytes(len(data) % 2)
    found = 0
    for at in range(0, len(padded), 2):
        found ^= int.from_bytes(padded[at : at + 2], "big")
    return found


def crc16(data: bytes) -> int:
    """CRC-16/ARC, bit by bit."""
    found = 0
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = found >> 1 ^ (0xA001 if found & 1 else 0)
    return found


HASHED: dict[str, Callable[[bytes], int]] = {
    "crc16": crc16,
    "crc32": zlib.crc32,
    "csum16": csum16,
    "xor16": xor16,
}
