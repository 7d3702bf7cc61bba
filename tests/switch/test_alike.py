"""Actions that differ in numbers and fields only: what they share must do what each of them says.

Programs of such actions are drawn, run one action after the other, and held against Python.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from switch import codegen
from switch.read import read_program

from .programs import Json, assign, const, field, load, one_action, op, outputs
from .test_expressions import INPUTS, Grower, Tree, interesting, sat_cast, sext, usat_cast

MEMBERS = 5
STEPS = 6
ALIKE = [(f"{name}_{i}", width, False) for name, width, is_signed in INPUTS
         if not is_signed and width <= 64 and name != "pad" for i in range(3)]  # fmt: skip
READ = [f for f in INPUTS if f[0] != "pad"] + ALIKE
PAD = ("pad", -sum(w for _, w, _ in READ) % 8, False)
RESULTS = [(f"r{i}", width, False) for i, width in enumerate((8, 16, 32, 48, 64, 64))]


class Alike(Grower):
    """Grows trees of one shape, whose leaves are somebody's own."""

    def __init__(self, seed: int, own: random.Random, reads_results: bool) -> None:
        super().__init__(random.Random(seed))
        self.own = own
        self.reads_results = reads_results

    def leaf(self) -> Tree:
        if self.rng.random() < 0.3:
            value = self.own.choice([0, 1, 2, 9, 10, 255, 256, 0xFFFF, 2**32, 2**63, 2**64 - 1])
            return Tree(const(value), str(value))
        name, width, is_signed = self.rng.choice([f for f in INPUTS if f[0] != "pad"])
        if self.reads_results and width == 64 and not is_signed and self.own.random() < 0.7:
            return Tree(field("out", "r5"), "v['r5']")
        if not is_signed and width <= 64:
            name = f"{name}_{self.own.randrange(3)}"
        return Tree(field("in", name), f"v[{name!r}]")


def member(seed: int, index: int, reads_results: bool) -> tuple[list[Json], list[str]]:
    """What a member does: its steps, and what they say to Python."""
    grower = Alike(seed, random.Random(f"{seed} {index}"), reads_results)
    body, said = [], []
    for name, width, _ in RESULTS:
        tree = grower.number(grower.rng.choice([1, 2]))
        full = (1 << width) - 1
        own = f"{name}_of_{index}"
        body.append(assign(field("scalars", own), op("&", tree.json, const(full))))
        mixed = op("+", op("*", field("out", name), const(3)), field("scalars", own))
        body.append(assign(field("out", name), op("&", mixed, const(full))))
        said.append(f"v[{name!r}] = (v[{name!r}] * 3 + ({tree.text} & {full})) & {full}")
    return body, said


def drawn(seed: int, reads_results: bool) -> tuple[Json, list[str]]:
    """A program of members, and what it says to Python."""
    members = [member(seed, i, reads_results) for i in range(MEMBERS)]
    code = one_action({"in": [*READ, PAD], "out": RESULTS}, [])
    scalars = [[f"{n}_of_{i}", w, False] for i in range(MEMBERS) for n, w, _ in RESULTS]
    code["header_types"].append({"name": "scalars", "id": 9, "fields": scalars})
    code["headers"].append({"name": "scalars", "id": 9, "header_type": "scalars", "metadata": True})
    (last,) = code["pipelines"][0]["tables"]
    for i, (body, _) in enumerate(members):
        name, number = f"act{i}", i + 1
        following = f"run{i + 1}" if i + 1 < MEMBERS else "run"
        action = {"name": name, "id": number, "runtime_data": [], "primitives": body}
        code["actions"].append(action)
        default = {"action_id": number, "action_const": True, "action_data": []}
        code["pipelines"][0]["tables"].append(
            last
            | {"name": f"run{i}", "id": number, "actions": [name], "action_ids": [number]}
            | {"next_tables": {name: following}, "default_entry": default}
        )
    code["pipelines"][0]["init_table"] = "run0"
    return code, [line for _, said in members for line in said]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("reads_results", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_drawn_families(seed: int, reads_results: bool) -> None:
    """Those that read what others of them write are no family, and right all the same."""
    code, said = drawn(seed, reads_results)
    rng = random.Random(seed)
    frames, wanted = [], []
    size = sum(w for _, w, _ in RESULTS) // 8
    for _ in range(20):
        raw = {n: interesting(rng, w) for n, w, _ in READ}
        whole = 0
        for name, width, _ in READ:
            whole = whole << width | raw[name]
        whole <<= PAD[1]
        frames.append((0, whole.to_bytes(sum(w for _, w, _ in [*READ, PAD]) // 8, "big")))
        v = {n: sext(raw[n], w) if signed else raw[n] for n, w, signed in READ}
        v |= dict.fromkeys((n for n, _, _ in RESULTS), 0)
        scope: dict[str, Any] = {
            "v": v, "sext": sext, "sat_cast": sat_cast, "usat_cast": usat_cast,
        }  # fmt: skip
        exec("\n".join(said), scope)
        wanted.append(b"".join(v[n].to_bytes(w // 8, "big") for n, w, _ in RESULTS))
    frames = [(port, frame + bytes(size)) for port, frame in frames]
    got = [frame[-size:] for ((_, frame),) in outputs(load(code), frames)]
    assert got == wanted


@pytest.mark.parametrize("seed", range(3))
def test_families_are_found(seed: int) -> None:
    """Without them the test above would be none."""
    text = codegen.generate(read_program(json.dumps(drawn(seed, False)[0]).encode()))
    assert text.count("alike_act0(r, h") == MEMBERS
