"""Frames from anybody, into switches that a controller has filled and into adapters that talk.

    python -m tests.fuzz.frames switch|endpoint COUNT SEED

Plays a target's corpus and so many inputs that are changed from it by lot; under gcc's sanitizers,
if it is started as `tests.switch.sanitized.environment` says. `tests.fuzz.guided` looks for inputs
that reach what none before them has reached, and keeps them in the corpus. A target is a C file
beside this one: `fuzz_add` gives it what frames are to meet, `fuzz` one input, as records.h reads
it; it ends the process if an account or a contract is broken.
"""

from __future__ import annotations

import ctypes
import random
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from controller import Settings, routes_of, switch_plan
from controller.settings import HopTelemetry
from params.access import Rule
from params.load_balancing import LoadBalancing, Policy
from params.pfc import Pfc
from params.trim import Trim
from switch import build
from switch.dataplane import Dataplane
from tests.fabric.network import Switch
from tests.fabric.test_conga import with_header
from tests.fabric.test_forged import with_shim
from tests.fabric.test_pause import pause_frame
from tests.fabric.testbed import ipv4_frame, ipv6_frame
from tests.fuzz.bytes import changed
from tests.traffic.endpoint.star import A, B, C, D, compile_star, ends, receives, run, sends
from topologies import leaf_spine
from traffic.endpoint import (
    CORE,
    SOURCES,
    EndpointConfig,
    EndpointPlan,
    Entropy,
    Recovery,
    TransportKind,
)

HERE = Path(__file__).parent
GBPS = 1_000_000_000
PORTS = 12  # the ports of a switch that frames come to: what records.h calls where
RIGHT_SUM, CUT, LATE = 0x80, 0x40, 0x20
RECORD = struct.Struct("<BBH")
Fuzz = Callable[[bytes, int], int]


def record(frame: bytes, where: int, after: int = 8) -> bytes:
    """A frame as records.h reads it; 2^after ns after the one before it."""
    return RECORD.pack(where, after, len(frame)) + frame


def corpus_of(target: str) -> list[bytes]:
    """What has been kept: an input a line."""
    kept = HERE / "corpus" / f"{target}.hex"
    return [bytes.fromhex(line) for line in kept.read_text().split()] if kept.exists() else []


def keep(target: str, inputs: list[bytes]) -> None:
    """Let this be the corpus."""
    lines = sorted({each.hex() for each in inputs if each}, key=lambda line: (len(line), line))
    (HERE / "corpus" / f"{target}.hex").write_text("\n".join(lines) + "\n")


# --- switches -------------------------------------------------------------------------------------

FABRIC = leaf_spine(2, 2, 2)
LOSSLESS = Settings(
    lb=LoadBalancing(policy=Policy.CONGA),
    telemetry=HopTelemetry(share=0.5),
    rules=(Rule(allow=False, dst_port=80), Rule(allow=True, src="10.0.1.0/24", dst_port=4791)),
    tenants={host.name: 1 + number % 2 for number, host in enumerate(FABRIC.hosts)},
)
CUTTING = Settings(
    pfc=Pfc(enabled=False, priorities=()), trim=Trim(enabled=True, threshold=5000),
    lb=LoadBalancing(policy=Policy.SPRAY),
)  # fmt: skip
OVER_IPV6 = replace(LOSSLESS, rules=(Rule(allow=False, dst_port=80),))
WORLDS = tuple(
    (settings, node, FABRIC.speaking(6 if settings is OVER_IPV6 else 4))
    for settings in (
        *(LOSSLESS, replace(LOSSLESS, lb=LoadBalancing(policy=Policy.FLOWLET)), CUTTING),
        OVER_IPV6,
    )
    for node in ("leaf1", "spine1")
)


def switches(library: ctypes.CDLL) -> list[Dataplane]:
    """Leaves and spines under several settings; whoever holds them keeps them alive."""
    library.fuzz_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    planes = []
    for number, (settings, name, fabric) in enumerate(WORLDS):
        switch = Switch.make(name, seed=number + 1)
        node = fabric.node(name)
        for port in fabric.ports(node):
            switch.plane.configure_port(port, rate_bps=100 * GBPS, delay_ns=100)
        switch.tell(switch_plan(fabric, node, routes_of(fabric)[node], settings))
        library.fuzz_add(switch.plane.handle, PORTS)
        planes.append(switch.plane)
    return planes


def switch_seeds() -> Iterator[bytes]:
    """What the fabric's own frames look like, and a storm of them."""
    plain = ipv4_frame("10.0.1.1", "10.0.2.1", size=200)
    known = [
        plain,
        ipv4_frame("10.0.2.1", "10.0.1.2", size=1100, ecn=1),
        ipv4_frame("10.0.1.1", "10.0.2.2", size=90, dst_port=80, dscp=0),
        ipv4_frame("10.0.2.2", "10.0.1.1", size=64, dst_port=4793, dscp=41),
        with_header(plain, 1, 7, (0, 7), leaf=2),
        with_shim(plain, claimed=4791),
        pause_frame(0xFFFF), pause_frame(0), pause_frame(9, classes=0xFF),
        plain[:12] + b"\x81\x00\x60\x01" + plain[12:],
        bytes(60), plain[:40], b"",
        ipv6_frame("fd00:0:0:1::1", "fd00:0:0:2::1", size=200, ecn=1, label=7),
        ipv6_frame("fe80::1", "ff02::1", size=90, next_header=58),
    ]  # fmt: skip
    for world in range(len(WORLDS)):
        for frame in known:
            yield bytes([world]) + b"".join(
                record(frame, RIGHT_SUM | port - 1) for port in range(1, 5)
            )
        yield bytes([world]) + 40 * record(known[1], 2, after=1) + record(known[6], 0, after=20)


# --- adapters -------------------------------------------------------------------------------------


def plans() -> Iterator[tuple[EndpointPlan, EndpointPlan]]:
    """What an adapter and its peer do, under several transports."""
    uet = {"transport": TransportKind.UET, "acks": "control", "rto": 4_000_000, "has_trimming": 1}
    kinds: list[tuple[dict[str, object], str]] = [
        ({"recovery": Recovery.GO_BACK_N, "rto": 4_000_000}, "dcqcn"),
        ({"recovery": Recovery.SELECTIVE, "rto": 4_000_000}, "hpcc"),
        (uet, "nscc"),
        (uet, "rccc"),
        (uet, "swift"),
    ]
    mrc = uet | {"transport": TransportKind.MRC, "entropy": Entropy.MRC, "entropies": 16}
    kinds += [({**settings, "payload": "none"}, cc) for settings, cc in kinds[1:4]]
    kinds += [({**settings, "ip": 6}, cc) for settings, cc in kinds[1:3]]
    kinds += [(mrc | {"ip": ip}, "nscc") for ip in (4, 6)]
    kinds += [(mrc | {"ports": 2}, "none")]
    kinds += [(kinds[0][0], "timely"), (kinds[1][0], "powertcp")]
    for settings, cc in kinds:
        config = EndpointConfig(link_bps=100 * GBPS, mtu=256, window=64, **settings)
        chosen: dict[str, object] = {"cc": cc, "priority": 3}
        if config.transport is not None:
            chosen["transport"] = config.transport
        here, there = ends(A, B, ip=config.ip or 4, **chosen)
        if config.ports is not None:
            far = ends(C, D, ip=config.ip or 4, **chosen)
            here, there = (
                own.model_copy(update={"planes": (other.flow,)})
                for own, other in zip((here, there), far, strict=True)
            )
        sizes, answers = [3000, 0, 700], [2000, 1]
        yield tuple(
            EndpointPlan(
                config=config,
                queue_pairs=(own,),
                transfers=(*sends(own, out, first), *receives(own, back, 110 - first)),
            )
            for own, out, back, first in ((here, sizes, answers, 10), (there, answers, sizes, 100))
        )


def adapters(library: ctypes.CDLL) -> list[Dataplane]:
    """The first of each two, which the second is to talk to."""
    library.fuzz_add.argtypes = [ctypes.c_char_p]
    for plan, _ in plans():
        library.fuzz_add("\n".join(plan.lines()).encode())
    return []


def adapter_seeds() -> Iterator[bytes]:
    """What its peer says to it, in a world that loses, marks and cuts."""
    star = compile_star()
    heard: list[bytes] = []
    for number, (plan, peer) in enumerate(plans()):
        if plan.config.ports is not None:  # star.c has but one: the same, by both
            yield bytes([number]) + b"".join(
                record(frame, RIGHT_SUM | at % 2) for at, frame in enumerate(heard)
            )
            continue
        for faults in ({}, {"loss": 0.1, "kmin": 300, "kmax": 900, "pmax": 0.5}, {"trim": 1.0}):
            outcome = run(
                star, {A: plan, B: peer}, extra=[f"capture {B}"], delay=500.0, rate=10.0 * GBPS,
                limit=1200.0 if "trim" in faults else 1e6, **{"seed": 1.0, **faults},
            )  # fmt: skip
            if plan.config.transport is TransportKind.MRC and plan.config.ip == 4:
                heard = outcome.captured
            yield bytes([number]) + b"".join(
                record(frame, RIGHT_SUM * (number % 2)) for frame in outcome.captured
            )
        yield bytes([number]) + record(pause_frame(0xFFFF), 0) + record(pause_frame(0), LATE)


# --- both -----------------------------------------------------------------------------------------

SEEDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "switch": switch_seeds,
    "endpoint": adapter_seeds,
}


def target(name: str) -> tuple[ctypes.CDLL, list[Dataplane]]:
    """A target that has been told what frames are to meet."""
    source = HERE / f"{name}.c"
    if name == "switch":
        library = ctypes.CDLL(str(build.beside_runtime(source)))
        made = switches(library)
    else:
        texts = (
            path.read_bytes()
            for path in (source, *SOURCES, *sorted(CORE.rglob("*.h")), *build.LENT)
        )
        named = f"fuzz-{name}-{build.digest(build.compiler_id(), *build.flags(), *texts)}.so"
        made_of = build.compiled(
            named, (source, *SOURCES), [f"-I{CORE}", f"-I{build.RUNTIME}", "-lm"]
        )
        library = ctypes.CDLL(str(made_of))
        made = adapters(library)
    library.fuzz.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return library, made


def play(name: str, count: int, seed: int) -> int:
    """The corpus, and so many inputs changed from it; how many frames that were."""
    library, made = target(name)
    rng = random.Random(f"{name} {seed}")
    corpus = corpus_of(name)
    assert corpus, f"{name} has no corpus"
    for number in range(len(corpus) + count):
        data = corpus[number] if number < len(corpus) else changed(rng, rng.choice(corpus))
        library.fuzz(data, len(data))
    for plane in made:
        plane.close()
    return len(corpus) + count


if __name__ == "__main__":
    print(play(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), "inputs")
