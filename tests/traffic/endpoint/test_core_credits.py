"""An adapter that goes by credits believes its own switch's grants, and nothing else of that kind.

What it has spent it says itself, in the frame by which it asks; the judge goes by that and by the
promise of credit.h: a grant in a class of ours, of no more than the buffer's size beyond it.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from tests.traffic.endpoint.star import A, B, Outcome, ends, receives, run, sends
from traffic.endpoint import EndpointConfig, EndpointPlan

GBPS = 1_000_000_000
GRANT, ASK = 1, 2
CLASS, SIZE, MIN = 3, 6000, 600
STALLED_NS = 1_000_000  # by then all credit is long spent
MESSAGES = [5000, 5000]


def word(kind: int, priority: int, count: int, oui: int = 0x02C105) -> bytes:
    head = bytes.fromhex("0180c2000001020000000001") + b"\x88\x08\xff\xfe" + oui.to_bytes(3, "big")
    return (head + struct.pack("!BBI", kind, priority, count % 2**32)).ljust(60, b"\0")


def heard(star: Path, words: list[bytes]) -> Outcome:
    """What an adapter does that has spent all it had, and then is told these words."""
    config = EndpointConfig(
        link_bps=10 * GBPS, mtu=256, credit_classes=1 << CLASS, credit_size=SIZE,
        credit_least=MIN, credit_cell=1, credit_ask_after=400_000,
    )  # fmt: skip
    here, there = ends(A, B, priority=CLASS)
    plans = {
        A: EndpointPlan(config=config, queue_pairs=(here,), transfers=sends(here, MESSAGES)),
        B: EndpointPlan(config=EndpointConfig(link_bps=10 * GBPS, mtu=256), queue_pairs=(there,),
                        transfers=receives(there, MESSAGES)),
    }  # fmt: skip
    extra = [f"inject {A} at={STALLED_NS + 10 * n} {frame.hex()}" for n, frame in enumerate(words)]
    return run(star, plans, extra=[f"capture {A}", *extra], delay=500.0, rate=10.0 * GBPS,
               limit=1e6, seed=1.0, timeout=2.5 * STALLED_NS)  # fmt: skip


def spent(outcome: Outcome) -> list[int]:
    """What it says of it, as often as it asks."""
    asks = [
        frame for frame in outcome.captured if frame[12:20] == b"\x88\x08\xff\xfe\x02\xc1\x05\x02"
    ]
    assert {frame[20] for frame in asks} == {CLASS}
    return [int.from_bytes(frame[21:25], "big") for frame in asks]


@pytest.mark.parametrize("seed", range(3))
def test_words_of_strangers_are_counted_and_grant_nothing(star: Path, seed: int) -> None:
    first, *rest = spent(heard(star, []))
    assert SIZE - MIN < first <= SIZE and set(rest) == {first}  # and there it stands
    rng = random.Random(seed)
    words, foreign = [], 0
    for _ in range(300):
        kind = rng.choice((GRANT, GRANT, GRANT, ASK, 0, 3, 255))
        priority = rng.choice((CLASS, CLASS, CLASS, 0, 11, 255))
        near = rng.randrange(MIN) if rng.random() < 0.5 else rng.randrange(SIZE + 1, 2**32)
        is_right = kind == GRANT and priority == CLASS and near <= SIZE
        foreign += not is_right
        words.append(word(kind, priority, first + near))
    words += [word(GRANT, CLASS, first + SIZE, oui=0x0080C2), word(GRANT, CLASS, 0)[:22]]
    outcome = heard(star, words)
    counters = outcome.counters(A)
    assert counters["rx_foreign_credits"] == foreign > 100
    assert counters["rx_credit_grants"] == 300 - foreign > 10
    assert set(spent(outcome)) == {first}


def test_a_right_grant_lets_it_go_on(star: Path) -> None:
    """To the byte: with what is granted less than the largest frame it stands still again."""
    first = spent(heard(star, []))[0]
    outcome = heard(star, [word(GRANT, CLASS, first + SIZE - 1)])
    assert outcome.counters(A)["rx_foreign_credits"] == 0
    assert first + SIZE - 1 - MIN < max(spent(outcome)) <= first + SIZE - 1
