"""Collectives and traces, packet by packet, on others' switch and by others' compiler.

A fabric runs, and what one of its switches is told and sent is written down as a packet test: what
leaves ours has to leave BMv2, compiled by our compiler or by p4c, whatever time it is there.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from compiler import CompileOptions, compile_program
from controller import routes_of, switch_plan
from controller.entities import CloneSession, DefaultAction, MulticastGroup, SwitchPlan, TableEntry
from lab.machine.program import build_with_p4c, has_p4c
from params.data import Data
from params.inc import Group
from switch.dataplane import WHOLE, MatchKind
from switch.program import Program
from switch.stf import StfResult, StfRunner
from tests.fabric import test_inc, test_ioam
from tests.fabric.network import FABRIC, index_of
from tests.fabric.testbed import Testbed
from tests.p4 import bmv2
from topologies import leaf_spine

SIGNS = {MatchKind.LPM: "/", MatchKind.TERNARY: "&&&", MatchKind.RANGE: "->"}
WITH_BMV2 = pytest.mark.skipif(
    shutil.which(bmv2.SWITCH) is None, reason="BMv2's simple_switch is not installed"
)
WITH_P4C = pytest.mark.skipif(not has_p4c(), reason="p4c is not installed")
BY_THE_CLOCK = (2, 3)  # the words of a hop's six that tell a delay and a load


class Case(Data, frozen=False):
    """A switch, what it runs, and what is sent to it; ``told`` is what of a frame is always so."""

    bed: Testbed
    name: str
    frames: list[tuple[int, bytes]]
    told: Callable[[int, bytes], str]
    defines: tuple[str, ...] = ()

    @property
    def plan(self) -> SwitchPlan:
        fabric, node = self.bed.fabric, self.bed.node(self.name)
        return switch_plan(fabric, node, routes_of(fabric)[node], self.bed.settings)

    def text(self) -> str:
        """As a packet test, with what leaves ours."""
        program = program_of(self.defines)
        lines = [*orders(program, self.plan)]
        for port, frame in self.frames:
            lines += [f"packet {port} {frame.hex()}", "wait"]
        ours = StfRunner(program, Path(self.name))
        ours.play("\n".join(lines))
        lines += [
            f"expect {port} {self.told(port, frame)}"
            for port, frames in sorted(ours.got.items())
            for frame in frames
        ]
        dropped = index_of(program, "counters", "dropped")
        for reason, count in enumerate(ours.dataplane.read_counter(dropped)):
            lines.append(f"check_counter dropped({reason}) packets == {count.packets}")
        ours.dataplane.close()
        return "\n".join(lines)


@cache
def program_of(defines: tuple[str, ...]) -> Program:
    return Program.load(ours(defines).encode(), soon=True)


@cache
def ours(defines: tuple[str, ...]) -> str:
    return compile_program(FABRIC, CompileOptions(defines=defines)).json_text


def orders(program: Program, plan: SwitchPlan) -> Iterator[str]:
    """What a plan says, in a packet test's words."""
    groups = 0
    for entity in plan:
        match entity:
            case TableEntry():
                yield f"add {entity.table} {words_of(program, entity)}"
            case DefaultAction(table, action, params):
                yield f"setdefault {table} {call(action, params)}"
            case CloneSession(session, port):
                yield f"mirroring_add {session} {port}"
            case MulticastGroup(group, ports):
                yield f"mc_mgrp_create {group}"
                yield f"mc_node_create 0 {' '.join(map(str, ports))}"
                yield f"mc_node_associate {group} {groups}"
                groups += 1


def words_of(program: Program, entry: TableEntry) -> str:
    """An entry's priority, keys and action."""
    table = program.tables[index_of(program, "tables", entry.table)]
    signs = {key.name: SIGNS.get(key.kind, "") for key in table.keys}
    words = [str(entry.priority)] if entry.priority else []
    for key, given in entry.match:
        value, more = given if isinstance(given, tuple) else (given, None)
        words.append(f"{key}:{value:#x}" + (f"{signs[key]}{more}" if more is not None else ""))
    return " ".join([*words, call(entry.action, entry.params)])


def call(action: str, params: tuple[tuple[str, int], ...]) -> str:
    return f"{action}({', '.join(f'{name}:{int(value)}' for name, value in params)})"


def entering(bed: Testbed, name: str) -> list[tuple[int, bytes]]:
    """What goes into a switch, in order, as it does."""
    frames: list[tuple[int, bytes]] = []
    inject = bed.network.inject

    def noted(switch: str, port: int, frame: bytes) -> None:
        if switch == name:
            frames.append((port, frame))
        inject(switch, port, frame)

    bed.network.inject = noted
    return frames


def all_of(_port: int, frame: bytes) -> str:
    return f"{frame.hex()}$"


def sums(name: str, ip: int) -> Case:
    """Two jobs' all-reduces and barriers, with losses, repetitions and a stranger's part.

    BMv2 ends where a packet grows by more than the 512 bytes that its buffers have to spare: so no
    part without data is to become a sum with data, as in the other collectives.
    """
    fabric = leaf_spine(2, 1, 2).speaking(ip)
    groups = (Group(1, ("h1", "h2", "h3", "h4"), 2, 0), Group(2, ("h1", "h4"), 1, 4))
    bed = test_inc.world(fabric, groups, 1)
    frames, draw = entering(bed, name), random.Random(ip)
    hearers: dict[str, list[test_inc.Member]] = {host.name: [] for host in fabric.hosts}
    for group in groups:
        drawn = test_inc.chunks_by_lot(draw, len(group.members), 16)
        chunks = [chunk for chunk in drawn if len({part is None for part in chunk.parts}) == 1]
        chunks = [chunk for chunk in chunks if chunk.owner >= test_inc.NOBODY]
        for at, host in enumerate(group.members):
            hearers[host].append(test_inc.Member(bed, group, at, chunks))
    for host, members in hearers.items():
        bed.host(host).on_frame = lambda now, frame, members=members: [
            member.hear(now, frame) for member in members
        ]
        for member in members:
            bed.network.at(draw.randrange(test_inc.RTO_NS), member.start)
    test_inc.spoil(bed, draw, 0.05)
    header = (test_inc.PART, 0, 2, 1, test_inc.EVERYBODY, 0, 0)
    stranger = test_inc.datagram(fabric, "h2", test_inc.HEADER.pack(*header))
    bed.network.at(test_inc.RTO_NS, partial(bed.network.inject, "leaf1", 2, stranger))
    bed.network.run(60 * test_inc.RTO_NS)
    assert all(len(m.got) == len(m.chunks) for some in hearers.values() for m in some)
    return Case(bed, name, frames, all_of, ("INC",))


def traces(name: str, ip: int) -> Case:
    """Packets that begin a trace, go on with one, with room or without, and end it."""
    fabric = leaf_spine(2, 1, 2).speaking(ip)
    bed = Testbed.build(fabric, test_ioam.TRACED)
    frames = entering(bed, name)
    bed.send("h1", "h3", 4, size=300)
    bed.send("h4", "h2", 4, size=101)
    for at, trace in enumerate(
        [(0xCE1000, 6, 12, 6), (0xCE1000, 6, 12, 5), (0xCE1800, 7, 14, 7), (0xC0C000, 6, 13, 13)]
    ):
        frame = test_ioam.with_trace(bed.frame("h1", "h3", size=200, mark=at), *trace)
        bed.network.at(100_000, partial(bed.network.inject, "spine1", 1, frame))
    bed.network.run(1_000_000)
    return Case(bed, name, frames, told_of_traces)


def told_of_traces(port: int, frame: bytes) -> str:
    """All but what depends on the clock; of reports, which do so throughout, that there is one."""
    if port == test_ioam.CPU:
        return ""
    digits = list(frame.hex())
    if (trace := test_ioam.read(frame)) and trace.kind == 0xCE1000:
        first = 2 * (test_ioam.network_at(frame) + 56)
        for at in range(trace.left, len(trace.words)):
            if (at - trace.left) % 6 in BY_THE_CLOCK:
                digits[first + 8 * at : first + 8 * at + 8] = "********"
    return "".join(digits) + "$"


cases = pytest.mark.parametrize(
    ("make", "name", "ip"),
    [
        (make, name, ip)
        for make, names in ((sums, ("leaf1", "spine1")), (traces, ("leaf1", "spine1", "leaf2")))
        for name in names
        for ip in (4, 6)
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)


def must_pass(result: StfResult) -> None:
    assert result.passed, "\n".join(result.failures)
    assert result.packets > 4 and result.expected > 4


@cases
def test_what_is_written_down_holds(
    make: Callable[[str, int], Case], name: str, ip: int, tmp_path: Path
) -> None:
    """Where it was, with what waits packed, and not; else nothing is to be asked of others."""
    case, stf = make(name, ip), tmp_path / f"{name}.stf"
    text = case.text()
    for whole in (WHOLE, 0):
        must_pass(StfRunner(program_of(case.defines), stf, whole).run(text))


def on_bmv2(case: Case, code: str, stf: Path) -> None:
    stf.write_text(case.text())
    compiled: dict[str, Any] = json.loads(code)
    must_pass(bmv2.run_stf(compiled, stf))


@cases
@WITH_BMV2
@pytest.mark.reference
def test_bmv2_does_the_same(
    make: Callable[[str, int], Case], name: str, ip: int, tmp_path: Path
) -> None:
    case = make(name, ip)
    on_bmv2(case, ours(case.defines), tmp_path / f"{name}.stf")


@cases
@WITH_BMV2
@WITH_P4C
@pytest.mark.reference
def test_so_it_does_by_p4c(
    make: Callable[[str, int], Case], name: str, ip: int, tmp_path: Path
) -> None:
    case = make(name, ip)
    by_p4c = build_with_p4c(tmp_path, FABRIC, case.defines).json.read_text()
    on_bmv2(case, by_p4c, tmp_path / f"{name}.stf")
