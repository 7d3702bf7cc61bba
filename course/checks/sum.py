"""Lesson 13: a switch that adds up what all workers send."""

from __future__ import annotations

from course.bench import Bench, Switch
from course.check import check
from course.frames import WIRE_OVERHEAD
from course.verdict import Wrong
from course.workers import (
    FRAME_BYTES,
    GBPS,
    LANES,
    SLOTS,
    Numbers,
    Reduction,
    frame,
    numbers_in,
    summed,
)

PROGRAM = "sum.p4"
_PORTS = (1, 2, 3)
_MAX_GBPS = GBPS * 4 * LANES / (FRAME_BYTES + WIRE_OVERHEAD)
_MIN = 0.9  # of the line rate


def _switch(bench: Bench) -> Switch:
    ports = " ".join(map(str, _PORTS))
    return bench.switch(
        PROGRAM, f"mc_mgrp_create 1\nmc_node_create 1 {ports}\nmc_node_associate 1 0"
    )


def _say(switch: Switch, worker: int, values: Numbers, chunk: int = 0) -> dict[int, Numbers]:
    """What leaves, by port, when one of three workers sends."""
    left = switch.send(worker + 1, frame(worker, 3, chunk, values))
    if any(len(data) != FRAME_BYTES for _, data in left):
        raise Wrong("what leaves is longer or shorter than what came", f"{PROGRAM}: ingress")
    return {port: numbers_in(data) for port, data in left}


def _vector(seed: int) -> Numbers:
    return tuple((seed * 0x9E3779B1 * (lane + 1)) % 2**32 for lane in range(LANES))


@check("Three send, and all get the sum when the last has", 3)
def adds(bench: Bench) -> None:
    """To the bit, number by number."""
    switch = _switch(bench)
    for chunk in (0, 1, SLOTS, 2 * SLOTS):
        vectors = [_vector(3 * chunk + worker + 1) for worker in range(3)]
        for worker in range(2):
            if _say(switch, worker, vectors[worker], chunk):
                raise Wrong(
                    f"{worker + 1} of 3 workers have sent, and something leaves",
                    f"{PROGRAM}: ingress (TODO 3): who is still missing?",
                )
        got = _say(switch, 2, vectors[2], chunk)
        if not got:
            raise Wrong(
                "all three have sent, and nobody gets anything",
                f"{PROGRAM}: ingress (TODO 3): to_all() sends it to everybody",
            )
        if set(got) != set(_PORTS):
            raise Wrong(
                f"the sum leaves by port {', '.join(map(str, sorted(got)))} of {_PORTS}",
                f"{PROGRAM}: ingress (TODO 3): to_all()",
            )
        _check_values(got[1], vectors, chunk)


def _check_values(got: Numbers, vectors: list[Numbers], chunk: int) -> None:
    wanted = summed(vectors)
    wrong = [lane for lane in range(LANES) if got[lane] != wanted[lane]]
    if not wrong:
        return
    lane = wrong[0]
    what = (
        f"number {lane} of the sum is {got[lane]:#010x}; it should be {wanted[lane]:#010x} "
        f"({len(wrong)} of {LANES} are wrong)"
    )
    if all((got[at] - wanted[at]) % 2**32 in (1, 2) for at in wrong):
        raise Wrong(
            what, f"{PROGRAM}: ingress (TODO 2): what carries over from one number to the next?"
        )
    if got == vectors[-1]:
        raise Wrong(
            what, f"{PROGRAM}: ingress (TODO 2): what of the others? It is the last one's alone"
        )
    if chunk >= SLOTS:
        raise Wrong(
            what,
            f"{PROGRAM}: ingress (TODO 2): this slot held another chunk before; the first to come "
            "begins anew",
        )
    raise Wrong(what, f"{PROGRAM}: ingress (TODO 2)")


@check("A chunk that comes again is not added again", 2)
def again(bench: Bench) -> None:
    """For its answer may only be on its way."""
    switch = _switch(bench)
    vectors = [_vector(worker + 7) for worker in range(3)]
    _say(switch, 0, vectors[0])
    if _say(switch, 0, vectors[0]) or _say(switch, 0, vectors[0]):
        raise Wrong(
            "one worker sent three times, and is taken for three",
            f"{PROGRAM}: ingress (TODO 1): who is seen to have sent?",
        )
    _say(switch, 1, vectors[1])
    got = _say(switch, 2, vectors[2])
    if got and got.get(1) != summed(vectors):
        raise Wrong(
            "a chunk that was sent again was added again",
            f"{PROGRAM}: ingress (TODO 1): who is seen to have sent?",
        )
    if not got:
        raise Wrong(
            "a chunk was sent again before all were there, and the sum never comes",
            f"{PROGRAM}: ingress (TODO 1 and 3): was the same worker counted again?",
        )


@check("Who missed the sum asks again, and gets it alone", 2)
def missed(bench: Bench) -> None:
    """As long as it is there: until the slot is used for the version after the next."""
    switch = _switch(bench)
    vectors = [_vector(worker + 11) for worker in range(3)]
    for worker in range(3):
        _say(switch, worker, vectors[worker])
    got = _say(switch, 1, vectors[1])
    if not got:
        raise Wrong(
            "a worker that missed the sum sends its chunk again, and gets no answer",
            f"{PROGRAM}: ingress (TODO 4): when is the sum there already?",
        )
    if set(got) != {2}:
        raise Wrong(
            f"one worker asked again, and ports {sorted(got)} got an answer",
            f"{PROGRAM}: ingress (TODO 4): back() answers who asked",
        )
    if got[2] != summed(vectors):
        raise Wrong(
            "the answer to one who asks again is not the sum",
            f"{PROGRAM}: ingress (TODO 4): where is the sum, and what is in the packet?",
        )
    # The others go on to the next version of the slot; it is still there for the one that did not.
    _say(switch, 0, _vector(1), SLOTS)
    if _say(switch, 1, vectors[1]).get(2) != summed(vectors):
        raise Wrong(
            "when another worker had gone on to the slot's next version, the sum was lost",
            f"{PROGRAM}: ingress (TODO 1 and 4): two versions of a slot have nothing in common but who "
            "may forget",
        )


@check("An all-reduce of eight workers: to the bit, at 0.9 of line rate", 3, comes_last=True)
def is_quick(bench: Bench) -> None:
    """Where a ring cannot reach more than a half."""
    found = Reduction.of(bench.switch(PROGRAM), 8, 14 * SLOTS).run()
    _check_whole(found)
    ring = bench.run("allreduce-ring").collective
    if found.gbps < _MIN * GBPS:
        rate = f"{ring.algbw_gbps:.0f} Gb/s" if ring and ring.algbw_gbps else "less"
        raise Wrong(
            f"the vector is summed at {found.gbps:.1f} Gb/s of {GBPS}, of which {_MAX_GBPS:.1f} are "
            f"possible; a ring reaches {rate}",
            f"{PROGRAM}: who is told something that nobody asked for?",
        )


@check("It survives the loss of one packet in a thousand", 3, comes_last=True)
def survives(bench: Bench) -> None:
    """Both ways, with two seeds; and that of one in twenty."""
    for seed in (1, 2):
        _check_whole(Reduction.of(bench.switch(PROGRAM), 4, 6 * SLOTS, 0.001, seed).run())
    _check_whole(Reduction.of(bench.switch(PROGRAM), 4, 4 * SLOTS, 0.05, 4).run())


def _check_whole(found: Reduction) -> None:
    if not found.is_whole:
        missing = sum(len(w.chunks) - len(w.results) for w in found.workers)
        raise Wrong(
            f"the all-reduce does not end: {missing} results never come",
            f"{PROGRAM}: ingress (TODO 1, 3 and 4): is somebody waited for who has sent, and was "
            "forgotten or never told?",
        )
    for chunk, lane, got, right in found.errors():
        raise Wrong(
            f"number {lane} of chunk {chunk} is {got:#010x}; it should be {right:#010x}",
            f"{PROGRAM}: ingress (TODO 1 and 2): what of a slot's former use is still in it?",
        )
