"""The shared buffer against a model of it: who is let in, where it is charged, when pauses end.

The model is written down from what p4src/buffer.p4 promises, with numbers that know no width, and
is told only what enters a switch and what leaves it. Frames are random, and so is what the buffer
is like.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import field, replace
from fractions import Fraction

import pytest

from controller import LinkSpec, Settings, SettingsError, routes_of, switch_plan
from controller.asics import ASICS
from controller.headroom import headroom, in_cells
from controller.tables import DROP_REASONS, SwitchSite, headroom_of, pool_of, queue_index
from lab.scenario import catalogue
from params.buffer import Buffer
from params.classes import ClassSet
from params.data import Data
from params.marking import Ecn
from params.pfc import Pfc
from switch.dataplane import Verb
from tests.fabric.network import PFC_PREFIX, index_of
from tests.fabric.testbed import Testbed, mark_of
from topologies import leaf_spine

FABRIC = leaf_spine(2, 1, 4)
HOSTS = [f"h{number}" for number in range(1, 5)]
DSCP = {0: 0, 1: 8, 3: 26, 4: 32}
LOSSLESS = ClassSet((3, 4))
SLOW = LinkSpec(rate_bps=1_000_000_000, delay_ns=0)

Queue = tuple[int, int]  # port and priority


class Model(Data, frozen=False):
    """A buffer, in whole numbers and fractions."""

    buffer: Buffer
    pfc: Pfc
    pool: int
    headroom: dict[int, int]  # by port
    frame: int
    used: Counter[Queue] = field(default_factory=Counter)  # by the queue that is limited
    taken: Counter[Queue] = field(default_factory=Counter)  # of that, from the pool
    emergency: Counter[Queue] = field(default_factory=Counter)
    leaving: Counter[Queue] = field(default_factory=Counter)
    entered: Counter[Queue] = field(default_factory=Counter)
    paused: dict[Queue, int] = field(default_factory=dict)  # until it holds no more
    stops: int = 0
    resumes: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    in_discards: Counter[Queue] = field(default_factory=Counter)
    out_discards: Counter[Queue] = field(default_factory=Counter)
    inside: dict[int, tuple[Queue, Queue, int]] = field(default_factory=dict)

    @property
    def free(self) -> int:
        return max(0, self.pool - sum(self.taken.values()))

    def limit(self, priority: int) -> Fraction:
        """What a queue may hold now."""
        b = self.buffer
        if priority in LOSSLESS:
            fixed, alpha, own = b.static, b.alpha, b.reserved
        else:
            fixed = b.static if b.lossy_static is None else b.lossy_static
            alpha = b.alpha if b.lossy_alpha is None else b.lossy_alpha
            own = b.lossy_reserved
        return own + (Fraction(fixed) if fixed else Fraction(alpha) * self.free)

    def enter(self, number: int, came: Queue, goes: Queue, size: int) -> None:
        """A frame that has a way."""
        priority = came[1]
        is_lossless = priority in LOSSLESS
        size = in_cells(size, self.buffer.cell)
        queue = came if is_lossless else goes
        own = self.buffer.reserved if is_lossless else self.buffer.lossy_reserved
        left = max(0, own - (self.used[queue] - self.taken[queue]))
        from_pool = max(0, size - left)
        if self.used[queue] + size <= self.limit(priority) and from_pool <= self.free:
            self.used[queue] += size
            self.taken[queue] += from_pool
        elif not is_lossless:
            self.dropped["buffer_full"] += 1
            self.out_discards[goes] += 1
            return
        else:
            if came not in self.paused:
                self.stops += 1
                self.paused[came] = self.end_of_pause(self.used[came])
            fits = self.emergency[came] + size <= self.headroom[came[0]]
            everywhere = self.buffer.headroom_pool
            if everywhere is not None:
                fits = fits and sum(self.emergency.values()) + size <= everywhere
            if not fits:
                self.dropped["headroom_full"] += 1
                self.in_discards[came] += 1
                return
            self.emergency[came] += size
        self.leaving[goes] += size
        self.inside[number] = came, goes, size

    def end_of_pause(self, above: int) -> int:
        """XON, below a queue that long."""
        gap = self.pfc.xon_gap
        if gap is None:
            gap = 2 * self.frame if self.pfc.xon is None else above
        return max(self.pfc.xon or 0, above - gap)

    def leave(self, number: int) -> None:
        """A frame goes out."""
        came, goes, size = self.inside.pop(number)
        free_before = self.free
        queue = came if came[1] in LOSSLESS else goes
        self.leaving[goes] -= size
        first = min(size, self.emergency[came])
        self.emergency[came] -= first
        self.used[queue] -= size - first
        self.taken[queue] -= min(size - first, self.taken[queue])
        if came not in self.paused:
            return
        mark = self.paused[came]
        if self.pfc.xon_follows:
            threshold = int(self.buffer.reserved + Fraction(self.buffer.alpha) * free_before)
            mark = self.end_of_pause(threshold)
        if not self.emergency[came] and self.used[came] <= mark:
            del self.paused[came]
            self.resumes += 1


def any_settings(rng: random.Random) -> Settings:
    """A buffer of some kind, small enough to be full at times."""
    frame = 1500
    follows = rng.random() < 0.3
    buffer = Buffer(
        bytes=10_000_000,
        alpha=rng.choice([1 / 16, 1 / 4, 1, 8]),
        lossy_alpha=rng.choice([None, 1 / 8, 2]),
        static=None if follows else rng.choice([None, None, 9_000, 30_000]),
        lossy_static=rng.choice([None, None, 7_000]),
        reserved=rng.choice([0, 0, 1248, 4_000]),
        lossy_reserved=rng.choice([0, 0, 700]),
        headroom_pool=rng.choice([None, 9_000, 30_000]),
        cell=rng.choice([1, 1, 80, 208, 254]),
    )
    pfc = Pfc(
        priorities=LOSSLESS,
        xon=rng.choice([None, 2_288]),
        xon_gap=rng.choice([None, 2_000]),
        xon_follows=follows,
        headroom=rng.choice([None, 4_000]),
    )
    usual = Settings(
        host_link=SLOW,
        fabric_link=SLOW,
        max_frame=frame,
        buffer=buffer,
        pfc=pfc,
        ecn=Ecn(enabled=False),
    )
    spare = pool_of(SwitchSite(FABRIC, FABRIC.node("leaf1"), usual)) - rng.choice(
        [9_000, 25_000, 60_000]
    )
    return replace(usual, buffer=buffer.but(bytes=buffer.bytes - spare))


def model_of(bed: Testbed) -> Model:
    site = SwitchSite(bed.fabric, bed.node("leaf1"), bed.settings)
    return Model(
        buffer=bed.settings.buffer,
        pfc=bed.settings.pfc,
        pool=pool_of(site),
        headroom={port: headroom_of(site, port) for port in site.ports},
        frame=bed.settings.max_frame,
    )


def check(bed: Testbed, model: Model) -> None:
    """Every register and counter is as the model has it."""
    leaf = bed.switch("leaf1")
    program = leaf.program

    def cells(name: str) -> dict[int, int]:
        values = leaf.plane.read_register(index_of(program, "registers", name))
        return {at: value for at, value in enumerate(values) if value}

    def cells_of(counts: Counter[Queue]) -> dict[int, int]:
        return {queue_index(*queue): count for queue, count in counts.items() if count}

    assert leaf.used()["buffer_pool_used"] == sum(model.taken.values())
    assert leaf.used()["buffer_headroom_used"] == sum(model.emergency.values())
    assert cells("buffer_shared") == cells_of(model.taken)
    assert cells("buffer_in_headroom") == cells_of(model.emergency)
    assert cells("buffer_out_used") == cells_of(model.leaving)
    lossless = {q: n for q, n in model.used.items() if q[1] in LOSSLESS}
    held = {at: n for at, n in cells("buffer_in_used").items() if at % 8 in LOSSLESS}
    assert held == cells_of(Counter(lossless))
    assert cells("pause_asked").keys() == {queue_index(*queue) for queue in model.paused}
    drops = {
        name: leaf.dropped(number)
        for number, name in enumerate(DROP_REASONS)
        if leaf.dropped(number)
    }
    assert drops == {name: count for name, count in model.dropped.items() if count}
    for name, counts in (("in_discards", model.in_discards), ("out_discards", model.out_discards)):
        assert {at: n for at, n in enumerate(leaf.counters(name)) if n} == cells_of(counts)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(12))
def test_the_account_is_the_models(seed: int) -> None:
    rng = random.Random(seed)
    bed = Testbed.build(FABRIC, any_settings(rng), seed)
    run(bed, model_of(bed), rng, frames=500)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 400))
def test_the_account_is_the_models_however_long(seed: int) -> None:
    rng = random.Random(seed)
    bed = Testbed.build(FABRIC, any_settings(rng), seed)
    run(bed, model_of(bed), rng, frames=1500)


def run(bed: Testbed, model: Model, rng: random.Random, frames: int) -> None:
    """Let frames come in bursts and go as the links let them, and compare as they do."""
    leaf = bed.switch("leaf1")
    ports = {h: bed.fabric.port_towards(bed.node("leaf1"), bed.node(h)) for h in HOSTS}
    now = 0
    heaviest = rng.choice(HOSTS)  # to whom most of it goes
    for number in range(frames):
        src, dst = rng.choice(HOSTS), heaviest if rng.random() < 0.8 else rng.choice(HOSTS)
        if src == dst:
            continue
        priority, size = rng.choice(list(DSCP)), rng.choice([60, 64, 209, 508, 700, 1500])
        frame = bed.frame(src, dst, size=size, dscp=DSCP[priority], mark=number)
        if rng.random() < 0.03:
            now += rng.randrange(600_000)
            leaf.plane.service(now)
            leave(leaf.plane.outputs(), model)
        now += rng.choice([0, 0, 50, 1_500])
        model.enter(number, (ports[src], priority), (ports[dst], priority), size)
        leaf.plane.inject(ports[src], frame, now)
        leave(leaf.plane.outputs(), model)
        if number % 16 == 0:
            check(bed, model)
    check(bed, model)
    assert leaf.balance() == 0
    while model.inside:
        now += 100_000
        leaf.plane.service(now)
        leave(leaf.plane.outputs(), model)
        check(bed, model)
    assert not any(leaf.used().values()), "the account leaks"
    leaf.plane.service(now + 100_000)
    queues = [queue_index(port, priority) for port in ports.values() for priority in LOSSLESS]
    assert sum(leaf.counter("xon_sent", queue) for queue in queues) == model.resumes
    assert sum(leaf.counter("xoff_sent", queue) for queue in queues) >= model.stops  # or renewed


def leave(frames: list[tuple[int, bytes, int]], model: Model) -> None:
    for _, frame, _ in frames:
        if not frame.startswith(PFC_PREFIX):
            model.leave(mark_of(frame))


def test_the_sweep_meets_everything_and_the_model_can_disagree() -> None:
    """Both kinds of drops, pauses that begin and end; and a wrong model is found out."""
    met: Counter[str] = Counter()
    for seed in range(6):
        rng = random.Random(seed)
        bed = Testbed.build(FABRIC, any_settings(rng), seed)
        model = model_of(bed)
        run(bed, model, rng, frames=300)
        met += model.dropped + Counter(stops=model.stops, resumes=model.resumes)
    assert met.keys() == {"buffer_full", "headroom_full", "stops", "resumes"}
    rng = random.Random(1)
    bed = Testbed.build(FABRIC, any_settings(rng))
    model = model_of(bed)
    model.pool -= 3_000
    with pytest.raises((AssertionError, KeyError)):
        run(bed, model, rng, frames=600)


def test_profiles_change_while_packets_are_inside_and_nothing_leaks() -> None:
    rng = random.Random(5)
    bed = Testbed.build(FABRIC, any_settings(rng))
    leaf = bed.switch("leaf1")
    node = bed.node("leaf1")
    now = 0
    for turn in range(400):
        frame = bed.frame("h1", "h2", size=rng.choice([64, 1500]), dscp=rng.choice([0, 26, 32]))
        leaf.plane.inject(1, frame, now)
        now += rng.choice([0, 2_000])
        if turn % 20 == 19:
            plan = switch_plan(FABRIC, node, routes_of(FABRIC)[node], any_settings(rng))
            changed = tuple(e for e in plan if getattr(e, "table", "") == "buffer_profiles")
            leaf.tell(changed, Verb.MODIFY)
    while leaf.plane.stats().held:
        now += 100_000
        leaf.plane.service(now)
    assert not any(leaf.used().values())


@pytest.mark.parametrize("cell", [1, 80, 208, 254, 4096])
def test_headroom_is_what_the_worst_frames_take_and_hardly_more(cell: int) -> None:
    """Of all that a sender may send, frames of any sizes one after the other.

    One has arrived that does not fit. Until its sender is silent others follow on the wire, of
    which one may begin at the last moment: the most that they take, by what fits into each time.
    """
    link, most = LinkSpec(100_000_000_000, 10), 1042
    until = most + 24 + 84 + 100 * (2 * 10 + 14) // 8  # bytes' times
    costs = [(size + 24, in_cells(size, cell)) for size in range(60, most + 1)]
    best = [0] * (until + 1)
    for wire, memory in costs:
        for at in range(wire, until + 1):
            best[at] = max(best[at], best[at - wire] + memory)
    exact = 2 * in_cells(most, cell) + best[until]
    assert exact <= headroom(link, most, 14, cell) <= exact * 1.15 + cell


@pytest.mark.parametrize("name", ASICS)
def test_a_profile_is_what_its_source_says(name: str) -> None:
    scenario = catalogue.load("hello", (f"buffer.profile={name}",))
    asic = ASICS[name]
    assert scenario.buffer.bytes == asic.pool + asic.headroom_pool
    assert (scenario.buffer.cell, scenario.pfc.xon) == (asic.cell, asic.xon)
    assert scenario.buffer.alpha == 1  # `threshold` 0
    other = catalogue.load("hello", (f"buffer.profile={name}", "buffer.alpha=0.25"))
    assert (other.buffer.alpha, other.buffer.reserved) == (0.25, 1248)
    again = type(other).model_validate(other.model_dump())
    assert again == other


def test_reserved_bytes_are_taken_from_what_is_shared() -> None:
    plain = any_settings(random.Random(1))
    sizes = []
    for reserved in (0, 1_000):
        buffer = Buffer(bytes=400_000, reserved=reserved, headroom_pool=50_000)
        site = SwitchSite(FABRIC, FABRIC.node("leaf1"), replace(plain, buffer=buffer))
        sizes.append(pool_of(site))
    assert sizes[0] - sizes[1] == 1_000 * len(LOSSLESS) * len(FABRIC.ports(FABRIC.node("leaf1")))
    with pytest.raises(SettingsError, match="too small"):
        pool_of(
            SwitchSite(FABRIC, FABRIC.node("leaf1"), replace(plain, buffer=Buffer(bytes=10_000)))
        )
