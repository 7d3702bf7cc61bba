"""ECN: the share of marked packets follows the curve."""

import json
import subprocess
import sys

import pytest

from controller import Settings, switch_plans
from params.marking import Ecn
from switch.dataplane import RegisterWrite
from tests.fabric.drive import drive
from tests.fabric.network import Switch, index_of
from tests.fabric.testbed import Testbed, ecn_of, ipv4_frame
from tests.veths import alone
from tests.waiting import SLOWNESS
from topologies import leaf_spine

FABRIC = leaf_spine(1, 1, 2)
KMIN, KMAX, PMAX = 100_000, 400_000, 0.2
SIZE = 1000
LOSSLESS, OUT_PORT = 3, 2


def frame(**fields: int) -> bytes:
    return ipv4_frame("10.0.1.1", "10.0.1.2", size=SIZE, **fields)


def curve(depth: int, kmin: int, kmax: int, pmax: float) -> float:
    if depth >= kmax:
        return 1.0
    return max(0.0, pmax * (depth - kmin) / (kmax - kmin))


CURVES = [(KMIN, KMAX, PMAX), (20_000, 900_000, 1.0), (0, 500_000, 0.01)]
POINTS, PACKETS = 221, 16_000


def worst_deviation(kmin: int, kmax: int, pmax: float) -> float:
    """The most by which the share of marked packets misses the curve, over all depths."""
    switch = Switch.make("leaf1")
    switch.tell(switch_plans(FABRIC, Settings(ecn=Ecn(kmin=kmin, kmax=kmax, pmax=pmax)))["leaf1"])
    used = index_of(switch.program, "registers", "buffer_out_used")
    depths = [SIZE + kmax * step // 200 for step in range(POINTS)]
    worst = 0.0
    for depth in depths:
        # The queue is made to hold all but the packet that passes.
        cell = OUT_PORT * 8 + LOSSLESS
        assert switch.plane.write([RegisterWrite(used, cell, depth - SIZE)]) == [None]
        outcome = drive(switch, [frame(ecn=2)], PACKETS, batch=1)
        assert outcome.sent == PACKETS
        worst = max(worst, abs(outcome.marked / PACKETS - curve(depth, kmin, kmax, pmax)))
    return worst


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("kmin", "kmax", "pmax"), CURVES)
def test_the_share_follows_the_curve_within_two_percent(kmin: int, kmax: int, pmax: float) -> None:
    assert worst_deviation(kmin, kmax, pmax) < 0.02


def test_a_real_queue_is_marked_by_what_it_holds() -> None:
    """Two senders into one port: what the queue holds at each departure is known to the byte."""
    bed = Testbed.build(leaf_spine(1, 1, 3), Settings(ecn=Ecn(kmin=40_000, kmax=40_001, pmax=1.0)))
    for sender in ("h1", "h2"):
        bed.send(sender, "h3", 100, size=SIZE, ecn=1)
    bed.network.run(200_000)
    marks = [ecn_of(data) == 3 for _, data in bed.host("h3").arrived]
    assert len(marks) == 200
    # The queue grows by one while one leaves, and then drains: at most 100 are held.
    first, last = marks.index(True), 199 - marks[::-1].index(True)
    assert all(marks[first : last + 1])
    assert 35 <= first <= 45
    assert 155 <= last <= 165


def test_only_packets_that_understand_it_are_marked() -> None:
    bed = Testbed.build(leaf_spine(1, 1, 3), Settings(ecn=Ecn(kmin=2_000, kmax=3_000, pmax=1.0)))
    for sender, ecn in (("h1", 0), ("h2", 1)):
        bed.send(sender, "h3", 100, size=SIZE, ecn=ecn)
    bed.network.run(200_000)
    codes = [ecn_of(data) for _, data in bed.host("h3").arrived]
    assert codes.count(0) == 100
    assert codes.count(3) > 80
    assert bed.switch("leaf1").counter("marked", 3) == codes.count(3)


def test_without_ecn_nothing_is_marked() -> None:
    bed = Testbed.build(leaf_spine(1, 1, 3), Settings(ecn=Ecn(enabled=False)))
    for sender in ("h1", "h2"):
        bed.send(sender, "h3", 500, size=SIZE, ecn=2)
    bed.network.run(1_000_000)
    assert {ecn_of(data) for _, data in bed.host("h3").arrived} == {2}


def shares_on_veths(switch: str) -> list[tuple[int, float]]:
    """Depths, and the share that a switch, soft or bmv2, marks on real interfaces."""
    done = subprocess.run(
        [*alone(), sys.executable, "-m", "tests.fabric.mark_on_veths", switch],
        capture_output=True,
        text=True,
        check=False,
        timeout=1800 * SLOWNESS,
    )
    assert done.returncode == 0, done.stderr
    return [(depth, share) for depth, share in json.loads(done.stdout)]


def worst_of(shares: list[tuple[int, float]], together: int = 1) -> float:
    """The most by which shares miss the curve, so many depths taken together."""
    off = [share - curve(depth, KMIN, KMAX, PMAX) for depth, share in shares]
    return max(
        abs(sum(off[at : at + together]) / together)
        for at in range(0, len(off) - together + 1, together)
    )


@pytest.mark.reference
def test_bmv2_marks_by_the_same_curve() -> None:
    """Fewer packets, because it is slow: depths are judged 25 together."""
    shares = shares_on_veths("bmv2")
    assert len(shares) == POINTS
    assert worst_of(shares, together=25) < 0.02
