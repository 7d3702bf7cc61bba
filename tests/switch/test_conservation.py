"""Every packet is accounted for at every moment, whatever happens to the switch meanwhile."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest

from switch.dataplane import Dataplane, Loop, Program, Role

from .churn import random_op
from .paths import SOURCE, Want, ask
from .programs import compiled
from .test_paths import check_account

EXTERNS = Path(__file__).parent / "p4" / "externs.p4"
PORTS = range(1, 9)


def random_frame(rng: random.Random, now: int) -> bytes:
    want = rng.choice(list(Want))
    arg = rng.randrange(8)
    if want is Want.PAUSE:
        arg = now + rng.randrange(20_000)
    elif want is Want.TRUNCATE:
        arg = rng.randrange(200)
    frame = ask(want, rng.choice([1, 2, 3, 99]), prio=rng.randrange(8), arg=arg & 0xFFFFFFFF,
                size=rng.choice([64, 64, 1500, 9216]))  # fmt: skip
    return frame[: rng.randrange(len(frame))] if rng.random() < 0.05 else frame


def disturb(rng: random.Random, dataplane: Dataplane, programs: list[Program]) -> None:
    """A link goes, a port, the program; or the control plane is busy."""
    port = rng.choice(PORTS)
    roll = rng.random()
    if roll < 0.3:
        dataplane.set_port_up(port, rng.random() < 0.6)
    elif roll < 0.4:
        dataplane.remove_port(port)
    elif roll < 0.6:
        try:
            dataplane.add_port(port)
        except Exception as error:
            assert "in use" in str(error)
    elif roll < 0.65:
        program = rng.choice(programs)
        dataplane.load(program)
        gates = [r.index for r in program.registers if r.name.endswith("gate")]
        dataplane.share_register(Role.QUEUE_GATE, gates[0] if gates else None)
    elif roll < 0.75:
        dataplane.configure_port(port, rate_bps=rng.choice([0, 10**8, 10**10]), delay_ns=500)
    elif roll < 0.8:
        dataplane.set_queue_limits(port, None, packets=rng.choice([1, 10, 1000]))
    elif dataplane.program is not None:
        dataplane.write([random_op(rng, dataplane.program) for _ in range(8)])


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(4))
def test_through_anything(seed: int) -> None:
    rng = random.Random(seed)
    programs = [compiled(SOURCE), compiled(EXTERNS)]
    reasons: set[str] = set()
    with Dataplane("churn", programs[0], cpu_port=8, seed=seed, whole=seed % 2) as dataplane:
        for port in PORTS:
            dataplane.add_port(port)
        now = 0
        for step in range(3000):
            now += rng.randrange(2000)
            if rng.random() < 0.1:
                disturb(rng, dataplane, programs)
                check_account(dataplane)
            dataplane.inject(rng.choice(PORTS), random_frame(rng, now), now)
            check_account(dataplane)
            if step % 50 == 0:
                dataplane.outputs()
                dataplane.drain()
        for port in PORTS:
            dataplane.configure_port(port)
        dataplane.share_register(Role.QUEUE_GATE, None)
        wake = dataplane.service(now + 10**9)
        for _ in range(1000):
            if not dataplane.stats().held:
                break
            assert wake is not None
            wake = dataplane.service(wake)
        stats = dataplane.stats()
        assert stats.held == 0
        check_account(dataplane)
        reasons |= stats.drops.keys()
    # Otherwise this proves little.
    assert {"ingress", "egress", "queue_full", "port_down", "no_such_port", "assert"} <= reasons


def test_books_and_plain_account_are_of_one_moment() -> None:
    """Whoever asks while packets go on, as of a run that is interrupted."""
    is_over = threading.Event()
    with Loop() as loop, Dataplane("busy", compiled(SOURCE), loop=loop, cpu_port=8) as dataplane:
        frame = ask(Want.FORWARD, 99, size=64)

        def go_on() -> None:
            while not is_over.is_set():
                dataplane.packet_out(frame)

        others = threading.Thread(target=go_on)
        others.start()
        try:
            seen: list[Any] = []
            while len(seen) < 1000 or seen[0] == seen[-1]:
                lines, stats = dataplane.books()
                came = sum(line.packets for line in lines if line.book == "in" and not line.made)
                lost = sum(line.packets for line in lines if line.book == "dropped")
                assert (came, lost) == (stats.received, sum(stats.drops.values()))
                seen.append(came)
        finally:
            is_over.set()
            others.join()
