"""Figures of the endpoint on this machine: ``python -m tests.traffic.endpoint.measure``.

What a packet costs the core; payload over a veth pair with one core for each end; rates held.
The last two need network namespaces of their own.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from tests.traffic.endpoint.star import GBPS, A, B, compile_c, ends, receives, sends, unfinished
from tests.traffic.endpoint.test_core_native import (
    PATIENT,
    Wire,
    exchange,
    last_end,
    make_wire,
    one_way,
)
from traffic.endpoint import PROGRAM_SOURCES, SOURCES, EndpointConfig, EndpointPlan

PACKETS = 2_000_000
SETTINGS: tuple[tuple[int, dict[str, object], str], ...] = (
    (1, {}, "none"),
    (1000, {}, "none"),
    (1000, {}, "dcqcn"),
    (1000, {"recovery": "selective"}, "none"),
    (1, {"ack_every": 1}, "none"),
    (100, {"ack_every": 1}, "hpcc"),
)


def cost_ns(program: Path, queue_pairs: int, settings: dict[str, object], cc: str) -> float:
    """Nanoseconds a data packet, both ends and acknowledgements together, payload left out."""
    config = EndpointConfig(link_bps=100 * GBPS, payload="none", **settings)
    pairs = [ends(A, B, 100 + 2 * index, cc=cc) for index in range(queue_pairs)]
    sizes = [4096 * (PACKETS // queue_pairs // 10)] * 10
    lines: list[str] = []
    for side, host in enumerate((A, B)):
        transfers = tuple(
            transfer
            for index, pair in enumerate(pairs)
            for transfer in (sends, receives)[side](pair[side], sizes, 100 * index)
        )
        plan = EndpointPlan(
            config=config, queue_pairs=tuple(pair[side] for pair in pairs), transfers=transfers
        )
        lines += [f"host {host}", *plan.lines()]
    text = "\n".join((*lines, ""))
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return float(done.stdout)


def pinned(wire: Wire) -> Wire:
    """The same wire, the program at each end kept on a core of its own."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return wire
    return replace(wire, cores=(cores[0], cores[-1]))


def throughput_gbps(program: Path, wire: Wire) -> tuple[float, float]:
    """Payload, 4 KB a packet, written and checked byte by byte.

    By the clock, and by the time that both ends together had of a processor, halved: what a core
    each would give if nobody else wanted it.
    """
    config = EndpointConfig(link_bps=100 * GBPS, **PATIENT)
    sizes = [1_000_000] * 1000
    before = getrusage(RUSAGE_CHILDREN)
    _, receiver = exchange(program, wire, one_way(config, sizes))
    after = getrusage(RUSAGE_CHILDREN)
    assert not unfinished(receiver)
    busy_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return sum(sizes) * 8 / last_end(receiver), sum(sizes) * 8 / (busy_s / 2) / 1e9


def rate_error(program: Path, wire: Wire, mbps: int) -> float:
    """How far off the rate was over two seconds."""
    config = EndpointConfig(link_bps=100 * GBPS, **PATIENT)
    sizes = [mbps * 1_000_000 // 8 * 2]
    sender, receiver = exchange(program, wire, one_way(config, sizes, rate_bps=mbps * 1_000_000))
    before_last = sender.counters["tx_bytes"] - (sizes[0] % 4096 or 4096) - 62
    return before_last * 8_000 / last_end(receiver) / mbps - 1


def main() -> None:
    """Measure and print."""
    loop = compile_c((Path(__file__).with_name("loop.c"), *SOURCES))
    program = compile_c(PROGRAM_SOURCES, "-O2")
    for queue_pairs, settings, cc in SETTINGS:
        words = " ".join(f"{key}={value}" for key, value in settings.items())
        cost = cost_ns(loop, queue_pairs, settings, cc)
        print(f"{cost:6.1f} ns a packet: {queue_pairs} queue pairs, cc={cc} {words}")
    with make_wire() as wire:
        clock, core = throughput_gbps(program, pinned(wire))
        print(f"{clock:6.2f} Gb/s of payload over a veth pair; {core:.2f} per core used")
        for mbps in (10, 30, 100, 300, 1000, 3000):
            print(f"{rate_error(program, wire, mbps):+8.3%} off {mbps} Mb/s")


if __name__ == "__main__":
    main()
