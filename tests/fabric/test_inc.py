"""Collectives in the network: every bit of every result, whatever is lost, repeated or overtaken.

The members here are written from docs/inc.md alone. What they send is drawn by lot, number by
number; what they are to get is added up in Python.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import field
from functools import cache, partial

import pytest

from compiler import CompileOptions, compile_program
from controller import Settings
from controller.inc import Tree, tree_of
from params.buffer import Buffer
from params.data import Data
from params.inc import MAX_CHILDREN, Group
from switch.program import Program
from tests.fabric.network import FABRIC, Switch
from tests.fabric.testbed import Testbed, ipv4_frame, ipv6_frame
from topologies import Fabric, fat_tree, leaf_spine

PORT, PART, RESULT = 49413, 0x11, 0x12
EVERYBODY, NOBODY = 0xFFFF, 0xFFFE
LANES, MODULUS = 256, 1 << 32
RTO_NS = 40_000
HEADER = struct.Struct("!BBHIHHB3x")
Numbers = list[int]


@cache
def program() -> Program:
    compiled = compile_program(FABRIC, CompileOptions(defines=("INC",)))
    return Program.load(compiled.json_text.encode(), soon=True)


class Chunk(Data, frozen=False):
    """One of a collective's: what each member gives, and who gets the sum."""

    parts: list[Numbers | None]
    owner: int

    def wanted(self, member: int) -> Numbers | None:
        if self.owner not in (EVERYBODY, member):
            return None
        given = [part for part in self.parts if part is not None]
        return [sum(column) % MODULUS for column in zip(*given, strict=True)]


class Member(Data, frozen=False):
    """A host's part in a job: a chunk is sent when the result of the one `slots` before is here."""

    bed: Testbed
    group: Group
    number: int
    chunks: list[Chunk]
    got: dict[int, Numbers | None] = field(default_factory=dict)
    next: int = 1

    def start(self) -> None:
        self.send_more()
        self.bed.network.at(self.bed.network.now + RTO_NS, self.again)

    @property
    def name(self) -> str:
        return self.group.members[self.number]

    def send_more(self) -> None:
        slots = self.group.slots
        while self.next <= len(self.chunks) and (
            self.next <= slots or self.next - slots in self.got
        ):
            self.send(self.next)
            self.next += 1

    def again(self) -> None:
        for chunk in range(1, self.next):
            if chunk not in self.got:
                self.send(chunk)
        if len(self.got) < len(self.chunks):
            self.bed.network.at(self.bed.network.now + RTO_NS, self.again)

    def send(self, chunk: int) -> None:
        numbers = self.chunks[chunk - 1].parts[self.number]
        owner = self.chunks[chunk - 1].owner
        header = HEADER.pack(
            PART, numbers is not None, self.group.number, chunk, owner, self.number, self.number
        )
        body = header + (b"" if numbers is None else struct.pack(f"!{LANES}I", *numbers))
        self.bed.host(self.name).queue.append(datagram(self.bed.fabric, self.name, body))
        self.bed.network.start(self.bed.host(self.name))

    def hear(self, _now: int, frame: bytes) -> None:
        at = 14 + (20 if self.bed.fabric.ip == 4 else 40) + 8
        kind, has_data, job, chunk, _, _, exponent = HEADER.unpack_from(frame, at)
        if job != self.group.number:
            return
        assert kind == RESULT and exponent == len(self.group.members) - 1
        found = list(struct.unpack_from(f"!{LANES}I", frame, at + 16)) if has_data else None
        assert self.got.setdefault(chunk, found) == found
        self.send_more()


def datagram(fabric: Fabric, host: str, body: bytes) -> bytes:
    node = fabric.node(host)
    make = ipv4_frame if fabric.ip == 4 else ipv6_frame
    own, head = str(fabric.address(node)), 42 if fabric.ip == 4 else 62
    macs = {"src_mac": fabric.mac(node), "dst_mac": fabric.mac(fabric.leaf_of(node))}
    frame = make(own, own, size=head + len(body), dst_port=PORT, **macs)
    return frame[:head] + body


def chunks_by_lot(draw: random.Random, members: int, count: int) -> Iterator[Chunk]:
    """Of reductions, gathers and barriers in turn, whose edges carry: numbers near overflow."""
    for _ in range(count):
        parts: list[Numbers | None] = [
            [draw.choice((draw.getrandbits(32), MODULUS - 1, 1 << 31)) for _ in range(LANES)]
            for _ in range(members)
        ]
        kind, chosen = draw.randrange(4), draw.randrange(members)
        if kind == 1:
            yield Chunk(
                [part if at == chosen else None for at, part in enumerate(parts)], EVERYBODY
            )
        elif kind == 2:
            yield Chunk(parts, chosen)
        elif kind == 3:
            yield Chunk([None] * members, NOBODY)
        else:
            yield Chunk(parts, EVERYBODY)


def spoil(bed: Testbed, draw: random.Random, share: float) -> None:
    """Let cables lose, repeat and hold back frames."""
    network, deliver = bed.network, bed.network._deliver

    def unreliably(sender: tuple[str, int], frame: bytes) -> None:
        chance = draw.random()
        if chance < share:
            return
        if chance < 2 * share:
            deliver(sender, frame)
        if chance < 3 * share:
            later = network.now + draw.randrange(1, 2 * RTO_NS)
            network.at(later, partial(deliver, sender, frame))
            return
        deliver(sender, frame)

    network._deliver = unreliably


def world(
    fabric: Fabric, groups: tuple[Group, ...], seed: int, buffer: Buffer | None = None
) -> Testbed:
    return Testbed.build(
        fabric,
        Settings(groups=groups, **({"buffer": buffer} if buffer else {})),
        seed,
        make_switch=lambda name, number: Switch.make(name, number, program()),
    )


def sums_are_right(seed: int, count: int) -> None:
    draw = random.Random(seed)
    fabric = draw.choice((leaf_spine(3, 2, 2), leaf_spine(2, 1, 3), fat_tree(4)))
    fabric = fabric.speaking(draw.choice((4, 6)))
    names = [host.name for host in fabric.hosts]
    jobs, slots = draw.choice((1, 2)), draw.choice((1, 2, 4))
    groups = []
    for job in range(jobs):
        some = set(draw.sample(names, draw.randint(2, len(names))))
        members = tuple(name for name in names if name in some)
        groups.append(Group(job + 1, members, slots, 2 * slots * job))
    bed = world(fabric, tuple(groups), seed)
    everybody = []
    for group in groups:
        chunks = list(chunks_by_lot(draw, len(group.members), count))
        everybody += [Member(bed, group, at, chunks) for at in range(len(group.members))]
    for name in names:
        mine = [member for member in everybody if member.name == name]
        bed.host(name).on_frame = lambda now, frame, mine=mine: [
            member.hear(now, frame) for member in mine
        ]
    spoil(bed, draw, draw.choice((0, 0.01, 0.05)))
    for member in everybody:
        bed.network.at(draw.randrange(RTO_NS), member.start)
    bed.network.run(200 * count * RTO_NS)
    for member in everybody:
        wanted = {at: c.wanted(member.number) for at, c in enumerate(member.chunks, 1)}
        assert member.got == wanted, (seed, member.name)
    bed.check_accounts()
    assert set(bed.drops()) <= {"in_sum", "old_part"}


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(4))
def test_every_sum_is_right(seed: int) -> None:
    sums_are_right(seed, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_every_sum_is_right_at_length(seed: int) -> None:
    sums_are_right(seed, 60)


def test_results_that_ask_for_pauses_go_to_everybody_at_once() -> None:
    """A packet has one copy: it goes round, and becomes a pause frame as well."""
    fabric, slots = leaf_spine(3, 2, 2), 4
    names = tuple(host.name for host in fabric.hosts)
    groups = (Group(1, names, slots, 0),)
    bed = world(fabric, groups, 1, buffer=Buffer(static=64))
    seen: list[bytes] = []
    bed.network.tap = lambda _when, _name, _port, frame: seen.append(frame)
    chunks = list(chunks_by_lot(random.Random(1), len(names), slots))
    members = [Member(bed, groups[0], at, chunks) for at in range(len(names))]
    for member in members:
        bed.host(member.name).on_frame = member.hear
        member.send_more()
    bed.network.run(RTO_NS)  # nobody has sent anything again
    assert all(len(member.got) == slots for member in members)
    assert any(frame[12:14] == b"\x88\x08" for frame in seen)


def test_strangers_are_refused_and_unknown_jobs_come_back() -> None:
    fabric = leaf_spine(2, 1, 2)
    bed = world(fabric, (Group(1, ("h1", "h3"), 2, 0),), 1)
    none = bytes(LANES * 4)
    part = HEADER.pack(PART, 1, 1, 1, EVERYBODY, 0, 0) + none
    of_another = HEADER.pack(PART, 1, 9, 1, EVERYBODY, 0, 0) + none
    result = HEADER.pack(RESULT, 1, 1, 1, EVERYBODY, 0, 0) + none
    for host, body in (("h2", part), ("h1", result), ("h1", part[:-4]), ("h1", of_another)):
        bed.host(host).queue.append(datagram(fabric, host, body))
        bed.network.start(bed.host(host))
    bed.network.run(1_000_000)
    assert bed.drops() == {"foreign_part": 2, "malformed": 1}
    assert [frame[42:] for _, frame in bed.host("h1").arrived] == [of_another]
    assert not bed.host("h2").arrived


def test_trees_lead_from_every_member_to_one_root() -> None:
    for seed in range(60):
        draw = random.Random(seed)
        fabric = draw.choice((leaf_spine(4, 3, 2), fat_tree(4), leaf_spine(1, 1, 4)))
        links = [link.name for link in fabric.links if link.joins_switches]
        dead = set(draw.sample(links, draw.randrange(min(4, len(links) + 1))))
        some = set(draw.sample(range(len(fabric.hosts)), draw.randint(2, len(fabric.hosts))))
        members = tuple(host.name for at, host in enumerate(fabric.hosts) if at in some)
        group = Group(draw.randrange(1, 9), members, 1, 0)
        tree = tree_of(fabric, group, dead, set())
        if tree is not None:
            check(fabric, group, tree, dead)
        else:
            assert dead


def check(fabric: Fabric, group: Group, tree: Tree, dead: set[str]) -> None:
    (root,) = (switch for switch, parent in tree.parent.items() if parent is None)
    for at, name in enumerate(group.members):
        below, here, steps = fabric.node(name), fabric.leaf_of(fabric.node(name)), 0
        while here != root and steps < 9:
            assert at in tree.children[here][below]
            up = tree.parent[here]
            assert up is not None
            assert any(link.name not in dead for link in fabric.links_between(here, up))
            below, here, steps = here, up, steps + 1
        assert here == root and at in tree.children[root][below]
    assert all(len(children) <= MAX_CHILDREN for children in tree.children.values())
