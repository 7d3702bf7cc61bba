"""Expressions and statements, drawn at random where they may stand."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

from params.data import Data

from .kinds import Bits, Bool, Enum, Head, Kind, Struct, zero
from .parts import (
    ARITHMETIC,
    COMPARISONS,
    Argument,
    BreakSignal,
    ContinueSignal,
    ExitSignal,
    Expr,
    Function,
    Param,
    Place,
    ReturnSignal,
    Run,
    Stmt,
    arithmetic,
    assigned,
    binary,
    both,
    cast,
    chosen,
    concatenated,
    conditional,
    declared,
    either,
    indented,
    literal,
    member,
    sequence,
    sliced,
    variable,
)

BOOL = Bool()
WIDTHS = (*range(1, 18), 24, 31, 32, 33, 47, 48, 63, 64, 65, 100, 127, 128, 129, 200)
LEAVES: dict[str, type[Exception]] = {
    "exit": ExitSignal,
    "return": ReturnSignal,
    "break": BreakSignal,
    "continue": ContinueSignal,
}
SHIFTS = range(2, 8)  # the width of an amount; BMv2 shifts by whatever it is told, and takes long


class Scope(Data, frozen=False):
    """What may be used at a place of the program."""

    places: list[Place] = field(default_factory=list)  # that have a value
    fixed: set[str] = field(default_factory=set)  # of these, those not to be written
    heads: list[Place] = field(default_factory=list)  # headers
    valid: set[str] = field(default_factory=set)  # of these, those known to be valid
    unions: dict[str, str] = field(default_factory=dict)  # a header's text to its union's
    stacks: list[tuple[str, list[Place]]] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    steps: list[Callable[[], Stmt | None]] = field(default_factory=list)  # that only this place has
    leaves: str = ""  # how a block may be left: exit, return
    result: Kind | None = None  # what a function returns
    is_straight: bool = False  # as p4c wants actions

    def inner(self) -> Scope:
        """A block within."""
        return replace(
            self,
            places=list(self.places),
            fixed=set(self.fixed),
            valid=set(self.valid),
        )

    def readable(self) -> Iterator[Place]:
        """All that has a value, fields of structs and of valid headers too."""
        for place in self.places:
            yield from _with_fields(place)
        for head in self.heads:
            if head.text in self.valid:
                yield from _fields(head)

    def writable(self) -> Iterator[Place]:
        """What may be assigned to."""
        for place in self.places:
            if place.text not in self.fixed:
                yield from _with_fields(place)
        for head in self.heads:
            if head.text in self.valid:
                yield from _fields(head)


def _with_fields(place: Place) -> Iterator[Place]:
    yield place
    if isinstance(place.kind, Struct):
        yield from _fields(place)


def _fields(place: Place) -> Iterator[Place]:
    assert isinstance(place.kind, Struct)
    for name, _ in place.kind.fields:
        yield member(place, name)


class Grower:
    """Draws parts of a program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.enums: list[Enum] = []
        self.structs: list[Struct] = []
        self.scope = Scope()
        self.is_new = False  # whether what p4c learnt lately may grow
        self._names = 0

    def name(self, stem: str) -> str:
        """A name that nothing else has."""
        self._names += 1
        return f"{stem}{self._names}"

    def often(self, share: float) -> bool:
        """Yes, so often."""
        return self.rng.random() < share

    @contextmanager
    def within(self, scope: Scope) -> Iterator[Scope]:
        """Grow at another place for a while."""
        kept, self.scope = self.scope, scope
        try:
            yield scope
        finally:
            self.scope = kept

    # Types and constants

    def bits(self) -> Bits:
        """A type of numbers."""
        width = self.rng.choice(WIDTHS if self.often(0.7) else (8, 16, 32))
        return Bits(width, width > 1 and self.often(0.3))

    def scalar(self) -> Kind:
        """A type that is no struct."""
        kinds: list[Kind] = [self.bits(), self.bits(), self.bits(), BOOL, *self.enums[:1]]
        return self.rng.choice([*kinds, *self.enums[1:]])

    def kind(self) -> Kind:
        """Any type of variables."""
        return self.rng.choice(self.structs) if self.structs and self.often(0.1) else self.scalar()

    def value(self, kind: Kind) -> Any:
        """A value, at the edges more often than elsewhere."""
        match kind:
            case Bits():
                edges = (0, 1, kind.most, kind.least, kind.most // 2, 1 << kind.width // 2)
                if self.often(0.5):
                    return kind.clamp(self.rng.choice(edges))
                return kind.wrap(self.rng.getrandbits(kind.width))
            case Bool():
                return self.often(0.5)
            case Enum():
                return kind.value(self.rng.randrange(len(kind.members)))
            case Struct():
                return {name: self.value(inner) for name, inner in kind.fields}

    def constant(self, kind: Kind) -> Expr:
        """A constant of a type."""
        return literal(kind, self.value(kind))

    # Expressions

    def known(self, kind: Kind) -> list[Place]:
        """What has a value of a type."""
        return [place for place in self.scope.readable() if place.kind == kind]

    def expr(self, kind: Kind, depth: int = 3) -> Expr:
        """An expression of a type."""
        if isinstance(kind, Struct):
            found = self.known(kind)
            return self.rng.choice(found).expr if found else self.constant(kind)
        if depth <= 0 or self.often(0.15):
            return self.leaf(kind)
        if self.often(0.08) and (call := self.call(kind)):
            return call
        match kind:
            case Bits():
                return self.numeral(kind, depth - 1)
            case Bool():
                return self.truth(depth - 1)
        if self.often(0.3):
            return chosen(self.truth(depth - 1), self.leaf(kind), self.leaf(kind))
        if isinstance(kind, Enum) and kind.width and self.often(0.3):
            return cast(kind, self.expr(Bits(kind.width), depth - 1))
        return self.leaf(kind)

    def leaf(self, kind: Kind) -> Expr:
        """Something without operators, or nearly."""
        found = self.known(kind)
        if found and self.often(0.75):
            return self.rng.choice(found).expr
        if isinstance(kind, Bits) and self.often(0.6):
            others = [p for p in self.scope.readable() if isinstance(p.kind, Bits)]
            if others:
                return self.converted(kind, self.rng.choice(others).expr)
        return self.constant(kind)

    def converted(self, kind: Bits, inner: Expr) -> Expr:
        """A number of another type as one of this."""
        assert isinstance(inner.kind, Bits)
        if inner.kind.is_signed != kind.is_signed:
            inner = cast(Bits(inner.kind.width, kind.is_signed), inner)
        return inner if inner.kind == kind else cast(kind, inner)

    def numeral(self, kind: Bits, depth: int) -> Expr:
        """An expression that gives a number."""
        ways = [self._sum, self._sum, self._sum, self._shift, self._choice, self._unary, self._cast]
        if not kind.is_signed:
            ways += [self._slice, self._quotient]
            ways += [self._joined] if kind.width > 1 else [self._flag]
        return self.rng.choice(ways)(kind, depth)

    def _sum(self, kind: Bits, depth: int) -> Expr:
        sign = self.rng.choice(("+", "-", "*", "&", "|", "^", "|+|", "|-|", "+", "-"))
        return arithmetic(kind, self.expr(kind, depth), sign, self.expr(kind, depth))

    def _shift(self, kind: Bits, depth: int) -> Expr:
        sign = self.rng.choice(("<<", ">>"))
        if self.often(0.4):
            by = self.rng.randrange(kind.width + 2)
            amount = Expr(Bits(32), str(by), lambda _: by)
        else:
            amount = self.expr(Bits(self.rng.choice(SHIFTS)), depth)
        return arithmetic(kind, self.expr(kind, depth), sign, amount)

    def _choice(self, kind: Bits, depth: int) -> Expr:
        return chosen(self.truth(depth), self.expr(kind, depth), self.expr(kind, depth))

    def _unary(self, kind: Bits, depth: int) -> Expr:
        inner = self.expr(kind, depth)
        if self.often(0.5):
            return Expr(kind, f"(~{inner.text})", lambda run: kind.wrap(~inner.of(run)))
        return Expr(kind, f"(-{inner.text})", lambda run: kind.wrap(-inner.of(run)))

    def _cast(self, kind: Bits, depth: int) -> Expr:
        other = Bits(kind.width, not kind.is_signed) if kind.width > 1 else kind
        if self.often(0.6):
            other = Bits(max(2, self.bits().width), kind.is_signed)
        return self.converted(kind, self.expr(other, depth))

    def _slice(self, kind: Bits, depth: int) -> Expr:
        wider = Bits(kind.width + self.rng.choice((0, 1, 3, 8, 20)))
        low = self.rng.randrange(wider.width - kind.width + 1)
        inner = self.expr(wider, depth)
        text = f"({inner.text})[{low + kind.width - 1}:{low}]"
        return Expr(kind, text, lambda run: kind.wrap(inner.of(run) >> low))

    def _quotient(self, kind: Bits, depth: int) -> Expr:
        """By a power of two, as p4c has it."""
        by = literal(kind, 1 << self.rng.randrange(kind.width))
        return arithmetic(kind, self.expr(kind, depth), self.rng.choice(("/", "%")), by)

    def _joined(self, kind: Bits, depth: int) -> Expr:
        left = self.rng.randrange(1, kind.width)
        halves = self.expr(Bits(left), depth), self.expr(Bits(kind.width - left), depth)
        return concatenated(*halves)

    def _flag(self, kind: Bits, depth: int) -> Expr:
        return cast(kind, self.truth(depth))

    def truth(self, depth: int) -> Expr:
        """An expression that gives a bool."""
        if depth <= 0:
            return self.leaf(BOOL)
        ways: list[Callable[[int], Expr]] = [self._compared] * 4
        ways += [self._both, self._either, self._not, self._alike, self._bit]
        ways += [self._is_valid] if self.scope.heads else []
        return self.rng.choice(ways)(depth - 1)

    def _compared(self, depth: int) -> Expr:
        kind = self.rng.choice([p.kind for p in self.scope.readable()] or [self.bits()])
        if not isinstance(kind, Bits):
            kind = self.bits()
        sign = self.rng.choice(list(COMPARISONS))
        left, right = self.expr(kind, depth), self.expr(kind, depth)
        return binary(BOOL, left, sign, right, COMPARISONS[sign])

    def _both(self, depth: int) -> Expr:
        return both(self.truth(depth), self.truth(depth))

    def _either(self, depth: int) -> Expr:
        return either(self.truth(depth), self.truth(depth))

    def _not(self, depth: int) -> Expr:
        inner = self.truth(depth)
        return Expr(BOOL, f"(!{inner.text})", lambda run: not inner.of(run))

    def _bit(self, depth: int) -> Expr:
        return cast(BOOL, self.expr(Bits(1), depth))

    def _alike(self, _: int) -> Expr:
        """Two of one type that is no number."""
        kinds: list[Kind] = [BOOL, *self.enums]
        kinds += [kind for kind in self.structs if self.known(kind)]
        kind = self.rng.choice(kinds)
        sign = self.rng.choice(("==", "!="))
        pair = [self.leaf(kind), self.leaf(kind)]
        if isinstance(kind, Struct):
            pair = [self.rng.choice(self.known(kind)).expr for _ in range(2)]
        heads = [
            h for h in self.scope.heads if h.kind in {o.kind for o in self.scope.heads if o != h}
        ]
        if heads and self.often(0.3):
            first = self.rng.choice(heads)
            second = self.rng.choice([h for h in self.scope.heads if h.kind == first.kind])
            if all(h.text not in self.scope.unions for h in (first, second)):
                pair = [_whole(first), _whole(second)]
        return binary(BOOL, pair[0], sign, pair[1], COMPARISONS[sign])

    def _is_valid(self, _: int) -> Expr:
        return is_valid(self.rng.choice(self.scope.heads))

    def call(self, kind: Kind) -> Expr | None:
        """A call of a function that returns a type."""
        fitting = [f for f in self.scope.functions if f.result == kind]
        if not fitting or self.scope.is_straight:
            return None
        function = self.rng.choice(fitting)
        args = self.arguments(function.params)
        return None if args is None else function.call(args)

    def arguments(self, params: tuple[Param, ...], depth: int = 1) -> tuple[Argument, ...] | None:
        """What a call is given, if there is something to write to."""
        args: list[Argument] = []
        for param in params:
            if param.direction in ("", "in"):
                args.append(self.expr(param.place.kind, depth))
                continue
            fitting = [p for p in self.scope.writable() if p.kind == param.place.kind]
            if not fitting:
                return None
            args.append(self.rng.choice(fitting))
        return tuple(args)

    # Statements

    def block(self, size: int, depth: int = 2) -> Stmt:
        """Some statements."""
        return sequence([self.statement(depth) for _ in range(size)])

    def statement(self, depth: int) -> Stmt:
        """A statement."""
        ways: list[Callable[[int], Stmt | None]] = [self._declare, *[self._assign] * 5]
        ways += [self._assign_op] * 2 if self.is_new else []
        if not self.scope.is_straight:
            ways += [self._assign_bits, self._call_away]
            if depth > 0:
                ways += [self._if] * 2 + [self._switch]
                ways += [self._for] if self.is_new else []
            if self.scope.heads:
                ways += [self._guarded] * 2 + [self._header]
            if self.scope.steps:
                ways += [lambda _: self.rng.choice(self.scope.steps)()] * 4
        for _ in range(20):
            if made := self.rng.choice(ways)(depth):
                return made
        return self._declare(depth)

    def _assign(self, _: int) -> Stmt | None:
        places = [p for p in self.scope.writable() if not isinstance(p.kind, Struct)]
        if self.often(0.1):
            places = [p for p in self.scope.writable() if isinstance(p.kind, Struct)]
        if not places:
            return None
        place = self.rng.choice(places)
        return assigned(place, self.expr(place.kind))

    def _some_bits(self) -> Place | None:
        """A slice that may be written."""
        places = [
            p
            for p in self.scope.writable()
            if isinstance(p.kind, Bits) and not p.kind.is_signed and p.kind.width > 1
        ]
        if not places:
            return None
        place = self.rng.choice(places)
        assert isinstance(place.kind, Bits)
        low = self.rng.randrange(place.kind.width)
        return sliced(place, self.rng.randrange(low, place.kind.width), low)

    def _assign_bits(self, _: int) -> Stmt | None:
        part = self._some_bits()
        return assigned(part, self.expr(part.kind, 2)) if part else None

    def _assign_op(self, _: int) -> Stmt | None:
        """`place op= value;`, of all operators between numbers of one kind, and shifts."""
        numbers = [p for p in self.scope.writable() if isinstance(p.kind, Bits)]
        part = self._some_bits() if self.often(0.3) and not self.scope.is_straight else None
        place = part or (self.rng.choice(numbers) if numbers else None)
        if place is None:
            return None
        kind = place.kind
        assert isinstance(kind, Bits)
        signs = [s for s in ARITHMETIC if not (kind.is_signed and s in ("/", "%"))]
        sign = self.rng.choice(signs)
        if sign in ("/", "%"):
            value = literal(kind, 1 << self.rng.randrange(kind.width))
        elif sign in ("<<", ">>"):
            value = self.expr(Bits(self.rng.choice(SHIFTS)), 2)
        else:
            value = self.expr(kind, 2)
        whole = arithmetic(kind, place.expr, sign, value)
        return Stmt(
            [f"{place.text} {sign}= {value.text};"], lambda run: place.put(run, whole.of(run))
        )

    def _declare(self, _: int) -> Stmt:
        place = variable(self.kind(), self.name("v"))
        made = declared(place, self.expr(place.kind))
        self.scope.places.append(place)
        return made

    def _call_away(self, _: int) -> Stmt | None:
        """A function whose result is kept."""
        functions = self.scope.functions
        kinds = {f.result for f in functions}
        places = [p for p in self.scope.writable() if p.kind in kinds]
        if not places:
            return None
        place = self.rng.choice(places)
        call = self.call(place.kind)
        return None if call is None else assigned(place, call)

    def _if(self, depth: int) -> Stmt:
        condition = self.expr(BOOL)
        then, after = self.branch(depth - 1)
        if self.often(0.5):
            self.scope.valid &= after
            return conditional(condition, then)
        otherwise, after_that = self.branch(depth - 1)
        self.scope.valid &= after & after_that
        return conditional(condition, then, otherwise)

    def branch(self, depth: int, *known: str) -> tuple[Stmt, set[str]]:
        """A block within, and what is known to be valid behind it."""
        with self.within(self.scope.inner()) as scope:
            scope.valid |= set(known)
            made = self.block(self.rng.randint(1, 3), depth)
            if self.scope.leaves and self.often(0.12):
                made = sequence([made, self.leave()])
            return made, scope.valid

    def leave(self) -> Stmt:
        """One of the ways out there are; a function's `return` has a value."""
        word = self.rng.choice(self.scope.leaves.split())
        if word == "return" and self.scope.result is not None:
            value = self.expr(self.scope.result, 2)

            def give(run: Run) -> None:
                raise ReturnSignal(value.of(run))

            return Stmt([f"return {value.text};"], give)

        def go(run: Run) -> None:
            raise LEAVES[word]

        return Stmt([f"{word};"], go)

    def _switch(self, depth: int) -> Stmt | None:
        """`switch` on a number."""
        kind = Bits(self.rng.choice((2, 3, 8, 16)))
        subject = self.expr(kind, 2)
        labels = self.rng.sample(range(min(kind.most + 1, 6)), self.rng.randint(1, 3))
        cases = []
        for label in [*labels, None]:
            made, after = self.branch(depth - 1)
            cases.append((label, made))
            self.scope.valid &= after
        lines = [f"switch ({subject.text}) {{"]
        for label, made in cases:
            word = "default" if label is None else kind.literal(label)
            lines += [f"    {word}: {{", *(f"    {line}" for line in indented(made)), "    }"]
        bodies = dict(cases)

        def do(run: Run) -> None:
            bodies.get(subject.of(run), bodies[None]).do(run)

        return Stmt([*lines, "}"], do)

    def _for(self, depth: int) -> Stmt:
        """A loop over a few numbers, in one of its two forms."""
        kind = Bits(self.rng.choice((2, 3, 8)))
        place = variable(kind, self.name("v"))
        if self.often(0.5):
            ends = [cast(kind, self.expr(Bits(2), 2)) for _ in range(2)]
            head = f"{kind.text} {place.text} in {ends[0].text} .. {ends[1].text}"
        else:
            ends = [literal(kind, self.rng.randrange(2)), literal(kind, self.rng.randrange(3))]
            head = f"{kind.text} {place.text} = {ends[0].text}; {place.text} <= {ends[1].text}; "
            head += f"{place.text} = {place.text} + 1"
        with self.within(self.scope.inner()) as scope:
            scope.valid = set()  # the body may have made any header invalid the time before
            scope.places.append(place)
            scope.fixed.add(place.text)
            scope.leaves += " break continue"
            parts = [self.block(self.rng.randint(1, 2), depth - 1)]
            if self.often(0.5):
                parts.append(conditional(self.expr(BOOL, 2), self.leave()))
            parts.append(self.block(self.rng.randint(0, 2), depth - 1))
            body = sequence(parts)
        self.scope.valid = set()

        def do(run: Run) -> None:
            low, high = (end.of(run) for end in ends)
            for number in range(low, high + 1):
                place.put(run, number)
                try:
                    body.do(run)
                except ContinueSignal:
                    continue
                except BreakSignal:
                    break

        return Stmt([f"for ({head}) {{", *indented(body), "}"], do)

    # Headers

    def _guarded(self, depth: int) -> Stmt:
        """What is done with a header if it is there."""
        head = self.rng.choice(self.scope.heads)
        then, after = self.branch(max(0, depth - 1), head.text)
        self.scope.valid &= after
        return conditional(is_valid(head), then)

    def _header(self, _: int) -> Stmt | None:
        ways = [self._make, self._make, self._remove, self._copy]
        ways += [self._push, self._pop] if self.scope.stacks else []
        return self.rng.choice(ways)()

    def forget(self, *heads: str) -> None:
        """Nothing is known of these any more."""
        self.scope.valid -= set(heads)

    def siblings(self, head: Place) -> list[Place]:
        """The others of a header's union."""
        union = self.scope.unions.get(head.text)
        others = [h for h in self.scope.heads if h.text != head.text]
        return [h for h in others if union is not None and self.scope.unions.get(h.text) == union]

    def _make(self) -> Stmt:
        """A header made valid, with a value in each field."""
        head = self.rng.choice(self.scope.heads)
        assert isinstance(head.kind, Struct)
        siblings = self.siblings(head)
        values = [self.expr(kind, 2) for _, kind in head.kind.fields]

        def set_valid(run: Run) -> None:
            for other in siblings:
                other.get(run).is_valid = False
            if not head.get(run).is_valid:
                head.put(run, Head(_header_of(head), True))

        self.forget(*(h.text for h in siblings))
        steps = [Stmt([f"{head.text}.setValid();"], set_valid)]
        names = [name for name, _ in head.kind.fields]
        kept = []
        for name, value in zip(names, values, strict=True):
            place = variable(value.kind, self.name("v"))
            kept.append(declared(place, value))
            steps.append(assigned(member(head, name), place.expr))
        self.scope.valid.add(head.text)
        return sequence([*kept, *steps])

    def _remove(self) -> Stmt:
        head = self.rng.choice(self.scope.heads)

        def set_invalid(run: Run) -> None:
            head.get(run).is_valid = False

        self.forget(head.text)
        return Stmt([f"{head.text}.setInvalid();"], set_invalid)

    def _copy(self) -> Stmt | None:
        """A header assigned to another, whether it is there or not."""
        free = [h for h in self.scope.heads if h.text not in self.scope.unions]
        pairs = [(a, b) for a in free for b in free if a != b and a.kind == b.kind]
        if not pairs:
            return None
        to, of = self.rng.choice(pairs)
        self.forget(to.text)
        if of.text in self.scope.valid:
            self.scope.valid.add(to.text)
        return Stmt([f"{to.text} = {of.text};"], lambda run: to.put(run, of.get(run)))

    def _push(self) -> Stmt:
        name, items = self.rng.choice(self.scope.stacks)
        by = self.rng.randint(1, len(items))

        def push(run: Run) -> None:
            values = [item.get(run).copy() for item in items]
            for number, item in enumerate(items):
                item.put(run, values[number - by] if number >= by else Head(_header_of(item)))

        self.forget(*(item.text for item in items))
        return Stmt([f"{name}.push_front({by});"], push)

    def _pop(self) -> Stmt:
        name, items = self.rng.choice(self.scope.stacks)
        by = self.rng.randint(1, len(items))

        def pop(run: Run) -> None:
            values = [item.get(run).copy() for item in items]
            for number, item in enumerate(items):
                after = number + by
                item.put(run, values[after] if after < len(items) else Head(_header_of(item)))

        self.forget(*(item.text for item in items))
        return Stmt([f"{name}.pop_front({by});"], pop)

    # Functions

    def function(self, earlier: list[Function]) -> Function:
        """A function of its parameters alone, which may call earlier ones."""
        params = self.params(("in", "inout", "in", "out"), self.rng.randint(1, 3))
        result = self.scalar()
        with self.within(Scope(functions=earlier, leaves="return", result=result)) as scope:
            begun = self.enter(params, scope)
            body = sequence([*begun, self.block(self.rng.randint(1, 4), 1), self.leave()])
        return Function(self.name("f"), params, result, body)

    def params(
        self, directions: tuple[str, ...], count: int, without: Kind | None = None
    ) -> tuple[Param, ...]:
        """Parameters with names of their own."""
        kinds = [kind for kind in (self.scalar() for _ in range(count)) if kind != without]
        return tuple(
            Param(self.rng.choice(directions), variable(kind, self.name("p"))) for kind in kinds
        )

    def enter(self, params: tuple[Param, ...], scope: Scope) -> list[Stmt]:
        """Make parameters known, and give those that are only written a value."""
        begun = []
        for param in params:
            if param.direction == "out":
                begun.append(assigned(param.place, self.constant(param.place.kind)))
            scope.places.append(param.place)
            if param.direction in ("", "in"):
                scope.fixed.add(param.place.text)
        return begun


def is_valid(head: Place) -> Expr:
    """Whether a header is there."""
    return Expr(BOOL, f"{head.text}.isValid()", lambda run: head.get(run).is_valid)


def _whole(head: Place) -> Expr:
    """A header, valid or not."""
    return Expr(head.kind, head.text, lambda run: head.get(run).copy())


def _header_of(head: Place) -> Struct:
    assert isinstance(head.kind, Struct)
    return head.kind


__all__ = ["BOOL", "Grower", "Scope", "is_valid", "zero"]
