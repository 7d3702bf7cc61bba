"""Headers that are cleared when they are first asked for, and variables that only one stage has.

Programs are drawn that write and read headers whether these are valid or not, copy them, push and
pop a stack of them, and keep numbers from action to action and from ingress to egress. What they
say to Python, where every header of every packet begins as zeros, is what must come out.
"""

from __future__ import annotations

import random
from dataclasses import field
from itertools import pairwise
from typing import Any

import pytest

from params.data import Data
from switch import codegen
from switch.read import read_program

from .programs import Json, assign, call, const, load, op, outputs
from .programs import field as field_of

IN = [("kind", 8), ("x", 32), ("y", 64)]
OUT = [("sum", 64)]
SHORT = [("f", 16), ("g", 48), ("h", 128), ("i", 64), ("j", 64), ("k", 64)]
LONG = [("f", 32), ("g", 64), ("h", 128), ("i", 64), ("j", 64), ("k", 64)]
TYPES = {"in": IN, "out": OUT, "short": SHORT, "long": LONG}
KINDS: dict[str, str] = {
    "one": "short",
    "two": "short",
    "big": "long",
    "s[0]": "short",
    "s[1]": "short",
    "s[2]": "short",
}
STACK = ["s[0]", "s[1]", "s[2]"]
SCALARS = {
    f"{stage}{i}": width for stage in ("in", "out", "both") for i, width in enumerate((16, 64))
}
ACTIONS, STEPS, STAGES = 3, 5, ("ingress", "egress")
SEEDS = range(10)

Step = tuple[Any, ...]


def fields_of(header: str) -> list[tuple[str, int]]:
    return TYPES[KINDS.get(header, header)]


class Packet(Data, frozen=False):
    """What a packet is in Python."""

    valid: set[str]
    fields: dict[tuple[str, str], int]
    scalars: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SCALARS, 0))

    def get(self, header: str, name: str) -> int:
        return self.fields.get((header, name), 0)

    def clear(self, header: str) -> None:
        self.fields |= {(header, name): 0 for name, _ in TYPES[KINDS[header]]}

    def copy(self, to: str, source: str) -> None:
        names = [name for name, _ in TYPES[KINDS[to]]]
        self.fields |= {(to, name): self.get(source, name) for name in names}
        (self.valid.add if source in self.valid else self.valid.discard)(to)

    def value(self, e: Step) -> int:
        match e:
            case ("const", value):
                return int(value)
            case ("field", header, name):
                return self.get(header, name)
            case ("scalar", name):
                return self.scalars[name]
            case ("valid", header):
                return int(header in self.valid)
            case (sign, left, right):
                a, b = self.value(left), self.value(right)
                return {"+": a + b, "^": a ^ b, "&": a & b}[sign]
        raise AssertionError(e)

    def take(self, step: Step) -> None:
        match step:
            case ("set", header, name, e):
                width = dict(fields_of(header))[name]
                self.fields[header, name] = self.value(e) % (1 << width)
            case ("keep", name, e):
                self.scalars[name] = self.value(e) % (1 << SCALARS[name])
            case ("add", header):
                if header not in self.valid:
                    self.clear(header)
                self.valid.add(header)
            case ("remove", header):
                self.valid.discard(header)
            case ("copy", to, source):
                if source in self.valid:
                    self.copy(to, source)
                else:
                    self.valid.discard(to)
            case (("push" | "pop") as way,):
                order = STACK[::-1] if way == "push" else STACK
                for to, source in pairwise(order):
                    self.copy(to, source)
                self.clear(order[-1])
                self.valid.discard(order[-1])


def read(e: Step) -> Json:
    """An expression in BMv2's words."""
    match e:
        case ("const", value):
            return const(value)
        case ("field", header, name):
            return field_of(header, name)
        case ("scalar", name):
            return field_of("scalars", name)
        case ("valid", header):
            return op("b2d", None, op("valid", None, {"type": "header", "value": header}))
        case (sign, left, right):
            return op(sign, read(left), read(right))
    raise AssertionError(e)


def stored(target: Json, width: int, e: Step) -> Json:
    return assign(target, op("&", read(e), const((1 << width) - 1)))


def written(step: Step) -> Json:
    """A step in BMv2's words."""
    match step:
        case ("set", header, name, e):
            width = dict(fields_of(header))[name]
            return stored(field_of(header, name), width, e)
        case ("keep", name, e):
            return stored(field_of("scalars", name), SCALARS[name], e)
        case ("add" | "remove", header):
            return call(f"{step[0]}_header", {"type": "header", "value": header})
        case ("copy", to, source):
            headers = ({"type": "header", "value": name} for name in (to, source))
            return call("assign_header", *headers)
    return call(step[0], {"type": "header_stack", "value": "s"}, const(1))


class Drawn:
    """A program: for each stage actions, each with the condition on which it runs."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.actions = {
            stage: [(self.draw(stage), self.steps(stage)) for _ in range(ACTIONS)]
            for stage in STAGES
        }

    def draw(self, stage: str, depth: int = 1) -> Step:
        rng = self.rng
        if depth and rng.random() < 0.6:
            signs = rng.choice(["+", "^", "^", "&"])
            return signs, self.draw(stage, depth - 1), self.draw(stage, depth - 1)
        header = rng.choice(list(KINDS))
        return rng.choice(
            [
                ("const", rng.choice([0, 1, 255, 0x1234])),
                ("field", "in", rng.choice(["x", "y"])),
                ("field", header, rng.choice(TYPES[KINDS[header]])[0]),
                ("field", header, rng.choice(TYPES[KINDS[header]])[0]),
                ("scalar", rng.choice(self.scalars(stage))),
                ("valid", header),
            ]
        )

    def scalars(self, stage: str) -> list[str]:
        own = {"ingress": "in", "egress": "out"}[stage]
        return [name for name in SCALARS if name.startswith((own, "both"))]

    def steps(self, stage: str) -> list[Step]:
        rng = self.rng
        found: list[Step] = []
        for _ in range(STEPS):
            header = rng.choice(list(KINDS))
            name = rng.choice(TYPES[KINDS[header]])[0]
            alike = [other for other in KINDS if KINDS[other] == KINDS[header]]
            found.append(
                rng.choice(
                    [
                        ("set", header, name, self.draw(stage)),
                        ("keep", rng.choice(self.scalars(stage)), self.draw(stage)),
                        ("set", "out", "sum", ("+", ("field", "out", "sum"), self.draw(stage))),
                        ("add", header),
                        ("remove", header),
                        ("copy", header, rng.choice(alike)),
                        (rng.choice(["push", "pop"]),),
                    ]
                )
            )
        total = ("^", ("field", "out", "sum"), self.draw(stage, 2))
        return [*found, ("set", "out", "sum", total)]

    def run(self, packet: Packet) -> None:
        for stage in STAGES:
            for condition, steps in self.actions[stage]:
                if packet.value(condition):
                    for step in steps:
                        packet.take(step)

    def json(self) -> Json:
        """The program, which extracts one, big or two of the stack where `in.kind` says so."""
        types = {**TYPES, "scalars": list(SCALARS.items())}
        standard = [["egress_spec", 9], ["egress_port", 9], ["ingress_port", 9]]
        headers = {"in": "in", "out": "out", **KINDS}
        names = [*headers, "scalars", "standard_metadata"]
        ways = {1: ["one"], 2: ["big"], 3: ["s", "s"], 4: ["big", "one"]}

        def extract(name: str) -> Json:
            kind = "stack" if name == "s" else "regular"
            return {"op": "extract", "parameters": [{"type": kind, "value": name}]}

        default = {"type": "default", "value": None, "next_state": None}
        to_ways = [
            {"type": "hexstr", "value": hex(i), "mask": None, "next_state": f"way{i}"} for i in ways
        ]
        key = [{"type": "field", "value": ["in", "kind"]}]
        states = [
            ("start", [extract("in"), extract("out")], key, [*to_ways, default]),
            *((f"way{i}", [extract(n) for n in way], [], [default]) for i, way in ways.items()),
        ]
        keys = ("name", "parser_ops", "transition_key", "transitions")
        actions: list[Json] = []
        pipelines = []
        for number, stage in enumerate(STAGES):
            conditionals, tables = [], []
            for i, (condition, steps) in enumerate(self.actions[stage]):
                name = f"{stage}_{i}"
                following = f"if_{stage}_{i + 1}" if i + 1 < ACTIONS else None
                body = [written(step) for step in steps]
                actions.append(
                    {"name": name, "id": len(actions), "runtime_data": [], "primitives": body}
                )
                default_entry = {"action_id": len(actions) - 1, "action_const": True}
                tables.append(
                    {"name": f"run_{name}", "id": len(actions), "match_type": "exact"}
                    | {"type": "simple", "max_size": 1, "key": [], "actions": [name]}
                    | {"action_ids": [len(actions) - 1], "next_tables": {name: following}}
                    | {"default_entry": default_entry | {"action_data": []}}
                )
                conditionals.append(
                    {"name": f"if_{name}", "id": i, "true_next": f"run_{name}"}
                    | {"expression": op("!=", read(condition), const(0)), "false_next": following}
                )
            pipelines.append(
                {"name": stage, "id": number, "init_table": f"if_{stage}_0"}
                | {"tables": tables, "conditionals": conditionals}
            )
        return {
            "__meta__": {"version": [2, 18]},
            "header_types": [
                *(
                    {"name": n, "id": i, "fields": [[f, w, False] for f, w in fields]}
                    for i, (n, fields) in enumerate(types.items())
                ),
                {
                    "name": "standard_metadata",
                    "id": len(types),
                    "fields": [[*f, False] for f in standard],
                },
            ],
            "headers": [
                {"name": n, "id": i, "header_type": headers.get(n, n)}
                | {"metadata": n not in headers}
                for i, n in enumerate(names)
            ],
            "header_stacks": [
                {"name": "s", "id": 0, "header_type": "short", "size": len(STACK)}
                | {"header_ids": [names.index(n) for n in STACK]}
            ],
            "parsers": [
                {"name": "parser", "id": 0, "init_state": "start"}
                | {
                    "parse_states": [
                        dict(zip(keys, s, strict=True), id=i) for i, s in enumerate(states)
                    ]
                }
            ],
            "deparsers": [{"name": "deparser", "id": 0, "order": list(headers)}],
            "actions": actions,
            "pipelines": pipelines,
        }


def joined(packet: Packet, headers: list[str]) -> bytes:
    """What is sent of headers."""
    parts = []
    for header in headers:
        for name, width in fields_of(header):
            parts.append(packet.get(header, name).to_bytes(width // 8, "big"))
    return b"".join(parts)


@pytest.mark.by_day(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_programs(seed: int) -> None:
    drawn = Drawn(seed)
    text = drawn.json()
    rng = random.Random(seed)
    frames, wanted = [], []
    for number in range(40):
        has = [[], ["one"], ["big"], ["s[0]", "s[1]"], ["big", "one"]][number % 5]
        packet = Packet({"in", "out", *has}, {})
        for header in ("in", "out", *has):
            for name, width in fields_of(header):
                packet.fields[header, name] = rng.choice([0, 1, rng.getrandbits(width)])
        packet.fields["in", "kind"] = number % 5
        rest = rng.randbytes(rng.randrange(40))
        frames.append((0, joined(packet, ["in", "out", *has]) + rest))
        drawn.run(packet)
        wanted.append(
            joined(packet, ["in", "out", *(h for h in KINDS if h in packet.valid)]) + rest
        )
    assert [frame for ((_, frame),) in outputs(load(text), frames)] == wanted


def test_headers_are_late_and_variables_are_stages() -> None:
    """Without that the test above would show nothing."""
    texts = [codegen.generate(read_program(Drawn(seed).json())) for seed in SEEDS]
    for name in ("one", "two", "big", "s"):
        assert all(f"late_{name}(h)" in text for text in texts)
    for stage in STAGES:
        assert sum(f"struct {stage}_variables" in text for text in texts) > 2
    assert any("h->scalars.both0" in text for text in texts)
