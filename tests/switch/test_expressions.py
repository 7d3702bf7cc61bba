"""Expressions against Python's integers: random trees over fields of all sizes, signed ones too."""

from __future__ import annotations

import random
from typing import Any

import pytest

from params.data import Data

from .programs import Json, assign, const, field, load, one_action, op, outputs

INPUTS = [
    ("b1", 1, False), ("b7", 7, False), ("b8", 8, False), ("b13", 13, False), ("b16", 16, False),
    ("i9", 9, True), ("i16", 16, True), ("b32", 32, False), ("i40", 40, True), ("b64", 64, False),
    ("i64", 64, True), ("b100", 100, False), ("i128", 128, True), ("b128", 128, False),
    ("b200", 200, False), ("pad", 6, False),
]  # fmt: skip
WIDTHS = [1, 5, 8, 9, 16, 24, 32, 33, 48, 64, 65, 128, 129, 256]


class Tree(Data, frozen=False):
    """An expression in JSON, and what it is worth given the inputs."""

    json: Json
    text: str


class Grower:
    """Grows random expressions the way compilers write them: whatever may grow is cut off."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def leaf(self) -> Tree:
        if self.rng.random() < 0.25:
            value = self.rng.choice([0, 1, 2, 255, 0xFFFF, 2**32, 2**63, 2**64 - 1, 2**100, 5])
            return Tree(const(value), str(value))
        name = self.rng.choice(INPUTS)[0]
        return Tree(field("in", name), f"v[{name!r}]")

    def number(self, depth: int) -> Tree:
        if depth == 0:
            return self.leaf()
        kind = self.rng.choice(
            ["math", "math", "mask", "signed", "shift", "mux", "cast", "b2d", "div"]
        )
        if kind == "b2d":
            inner = self.truth(depth - 1)
            return Tree(op("b2d", None, inner.json), f"int({inner.text})")
        left = self.number(depth - 1)
        if kind == "mask":
            mask = (1 << self.rng.choice(WIDTHS)) - 1
            return Tree(op("&", left.json, const(mask)), f"({left.text} & {mask})")
        if kind == "signed":
            width = self.rng.choice([w for w in WIDTHS if w > 1])
            return Tree(op("two_comp_mod", left.json, const(width)), f"sext({left.text}, {width})")
        if kind == "cast":
            name = self.rng.choice(["sat_cast", "usat_cast"])
            width = self.rng.choice([w for w in WIDTHS if w > 1])
            return Tree(op(name, left.json, const(width)), f"{name}({left.text}, {width})")
        if kind == "shift":
            name = self.rng.choice(["<<", ">>"])
            if self.rng.random() < 0.5:
                by = self.rng.choice([0, 1, 7, 8, 31, 63, 64, 100])
                amount = Tree(const(by), str(by))
            else:
                amount = Tree(field("in", "b7"), "v['b7']")
            shifted = Tree(op(name, left.json, amount.json), f"({left.text} {name} {amount.text})")
            mask = (1 << self.rng.choice(WIDTHS)) - 1
            return Tree(op("&", shifted.json, const(mask)), f"({shifted.text} & {mask})")
        if kind == "div":
            name = self.rng.choice(["/", "%"])
            top = Tree(op("&", left.json, const(2**32 - 1)), f"({left.text} & {2**32 - 1})")
            name_in = self.rng.choice(["b8", "b16", "b64"])
            bottom = Tree(op("|", field("in", name_in), const(1)), f"(v[{name_in!r}] | 1)")
            sign = "//" if name == "/" else "%"
            return Tree(op(name, top.json, bottom.json), f"({top.text} {sign} {bottom.text})")
        right = self.number(depth - 1)
        if kind == "mux":
            cond = self.truth(depth - 1)
            return Tree(
                op("?", left.json, right.json, cond.json),
                f"({left.text} if {cond.text} else {right.text})",
            )
        name = self.rng.choice(["+", "-", "*", "&", "|", "^"])
        grown = Tree(op(name, left.json, right.json), f"({left.text} {name} {right.text})")
        mask = (1 << self.rng.choice(WIDTHS)) - 1
        return Tree(op("&", grown.json, const(mask)), f"({grown.text} & {mask})")

    def truth(self, depth: int) -> Tree:
        if depth > 0 and self.rng.random() < 0.3:
            left, right = self.truth(depth - 1), self.truth(depth - 1)
            name = self.rng.choice(["and", "or"])
            return Tree(op(name, left.json, right.json), f"({left.text} {name} {right.text})")
        if self.rng.random() < 0.15:
            inner = self.truth(0)
            return Tree(op("not", None, inner.json), f"(not {inner.text})")
        left, right = self.number(max(depth - 1, 0)), self.number(max(depth - 1, 0))
        name = self.rng.choice(["==", "!=", "<", ">", "<=", ">="])
        return Tree(op(name, left.json, right.json), f"({left.text} {name} {right.text})")


def sext(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def sat_cast(value: int, width: int) -> int:
    return max(-(1 << (width - 1)), min(value, (1 << (width - 1)) - 1))


def usat_cast(value: int, width: int) -> int:
    return max(0, min(value, (1 << width) - 1))


def pack(values: dict[str, int]) -> bytes:
    whole = 0
    for name, width, _ in INPUTS:
        whole = whole << width | values[name] & ((1 << width) - 1)
    return whole.to_bytes(sum(w for _, w, _ in INPUTS) // 8, "big")


def interesting(rng: random.Random, width: int) -> int:
    full = (1 << width) - 1
    choices = [0, 1, full, full >> 1, (full >> 1) + 1, rng.getrandbits(width)]
    return rng.choice([*choices, rng.getrandbits(width)]) & full


@pytest.mark.by_day(3)
@pytest.mark.parametrize("seed", range(6))
def test_random_trees(seed: int) -> None:
    rng = random.Random(seed)
    assert sum(w for _, w, _ in INPUTS) % 8 == 0
    grower = Grower(rng)
    trees = [grower.number(rng.choice([1, 2, 3])) for _ in range(40)]
    # Results go into fields of every width, off byte boundaries too.
    results = [(f"r{i}", rng.choice(WIDTHS), False) for i in range(len(trees))]
    spare = -sum(w for _, w, _ in results) % 8
    out = [*results, ("spare", spare, False)] if spare else results
    body = [call for (name, _, _), t in zip(results, trees, strict=True)
            for call in [assign(field("out", name), t.json)]]  # fmt: skip
    program = load(one_action({"in": INPUTS, "out": out}, body))
    inputs = [{n: interesting(rng, w) for n, w, _ in INPUTS} for _ in range(30)]
    size = sum(w for _, w, _ in out) // 8
    frames = [(0, pack(v) + bytes(size)) for v in inputs]
    for raw, sent in zip(inputs, outputs(program, frames), strict=True):
        ((port, frame),) = sent
        assert port == 1
        got = int.from_bytes(frame[-size:], "big")
        v = {n: sext(raw[n], w) if signed else raw[n] for n, w, signed in INPUTS}
        scope: dict[str, Any] = {
            "v": v, "sext": sext, "sat_cast": sat_cast, "usat_cast": usat_cast,
        }  # fmt: skip
        at = size * 8
        for (name, width, _), tree in zip(results, trees, strict=True):
            at -= width
            want = eval(tree.text, scope) & ((1 << width) - 1)
            assert got >> at & ((1 << width) - 1) == want, f"seed {seed}: {name} = {tree.text}"


def test_signed_targets() -> None:
    """A number stored in a signed field is read back with its sign."""
    fields = [("a", 12, True), ("b", 12, True), ("less", 8, False)]
    body = [
        assign(field("h", "b"), op("-", field("h", "a"), const(1))),
        assign(field("h", "less"), op("b2d", None, op("<", field("h", "b"), const(0)))),
    ]
    program = load(one_action({"h": fields}, body))
    frames = [(0, bytes([value >> 4, value << 4 & 0xFF, 0, 0])) for value in (0, 1, 0x800)]
    got = [sent[0][1][:4] for sent in outputs(program, frames)]
    assert [g[3] for g in got] == [1, 0, 0]
    assert [int.from_bytes(g[1:3], "big") & 0xFFF for g in got] == [0xFFF, 0, 0x7FF]


def test_division_by_zero_is_zero() -> None:
    fields = [("a", 8, False), ("b", 8, False)]
    body = [assign(field("h", "a"), op("/", field("h", "a"), field("h", "b")))]
    ((sent,),) = list(outputs(load(one_action({"h": fields}, body)), [(0, b"\x07\x00")]))
    assert sent == (1, b"\x00\x00")
