"""The test fabric from Python: build it, describe hosts around a switch, run, read the outcome."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import NamedTuple

from params.data import Data
from switch import build
from tests.waiting import LONG_S
from traffic.endpoint import (
    CORE,
    SOURCES,
    EndpointConfig,
    EndpointPlan,
    EndpointReport,
    QueuePair,
    Transfer,
    TransferKind,
    TransferReport,
    TransferState,
    read_report,
)
from traffic.frames import FlowAddress

# Hardly optimised, for these programs run for less time than the compiler takes to make them
# quicker; as the lab builds it, with the same warnings, the core is compiled for other tests.
FLAGS = ("-std=gnu11", "-Og", "-g1", "-Wall", "-Wextra", "-Werror", build.CHECKED)
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
GBPS = 1_000_000_000
A, B, C, D = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"


def compile_c(sources: Sequence[Path], *flags: str) -> Path:
    """Compiled with the repository's flags, and kept; what the compiler says against it is raised.

    Whoever tests in parallel, or again, finds it built, and what others are made of as well.
    """
    options = [*FLAGS, *flags, f"-I{CORE}", "-iquote", str(build.RUNTIME)]
    headers = [path.read_bytes() for path in (*sorted(CORE.rglob("*.h")), *build.LENT)]

    def unit(source: Path) -> Path:
        made_of = build.digest(build.compiler_id(), *options, source.read_bytes(), *headers)
        return build.compiled(f"test-{source.stem}-{made_of}.o", [source], ["-c"], options)

    with ThreadPoolExecutor(build.processors()) as workers:
        units = [*workers.map(unit, sources)]
    name = f"test-{sources[0].stem}-{build.digest(*options, *(unit.name for unit in units))}"
    return build.compiled(name, units, ["-lm"], options)


def compile_star(*flags: str) -> Path:
    return compile_c((Path(__file__).with_name("star.c"), *SOURCES), *flags)


class Sample(NamedTuple):
    """The state of a queue pair at a time."""

    host: str
    queue_pair: int
    at_ns: int
    rate: int
    in_flight: int
    waiting: int


class Sent(NamedTuple):
    """A frame that a watched host sent."""

    host: str
    at_ns: int
    priority: int
    opcode: int
    psn: int
    wire: int


class Outcome(Data, frozen=False):
    """What a run led to."""

    hosts: dict[str, EndpointReport]
    samples: list[Sample] = field(default_factory=list)
    frames: list[Sent] = field(default_factory=list)
    captured: list[bytes] = field(default_factory=list)
    marked: int = 0
    dropped: int = 0
    longest_queue: int = 0
    halves: dict[str, int] = field(default_factory=dict)  # of queue pairs, by host, at the end
    end_ns: int = 0
    text: str = ""

    def counters(self, host: str) -> dict[str, int]:
        return self.hosts[host].counters


def run(
    program: Path,
    plans: Mapping[str, EndpointPlan],
    *,
    extra: Sequence[str] = (),
    wall_s: float = LONG_S,
    **fabric: float,
) -> Outcome:
    """Run hosts by address; `fabric` and `extra` lines are those of star.c."""
    lines = ["fabric " + " ".join(f"{key}={value:.17g}" for key, value in fabric.items())]
    for address, plan in plans.items():
        lines += [f"host {address}", *plan.lines()]
    text = "\n".join([*lines, *extra, "run", ""])
    done = subprocess.run(
        [str(program)], input=text, capture_output=True, text=True, timeout=wall_s, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return _read(done.stdout)


def _read(text: str) -> Outcome:
    outcome = Outcome(hosts={}, text=text)
    report: dict[str, list[str]] = {}
    early: list[str] = []
    current = early
    for line in text.splitlines():
        match line.split():
            case ["host", address]:
                current = report.setdefault(address, [])
            case ["sample", host, number, at, *values]:
                value = dict(word.split("=") for word in values)
                outcome.samples.append(
                    Sample(
                        host,
                        int(number),
                        int(at),
                        int(value["rate"]),
                        int(value["in-flight"]),
                        int(value["waiting"]),
                    )
                )
            case ["frame", host, at, priority, *values]:
                opcode, psn, wire = (int(word.split("=")[1]) for word in values)
                outcome.frames.append(Sent(host, int(at), int(priority), opcode, psn, wire))
            case ["bytes", data]:
                outcome.captured.append(bytes.fromhex(data))
            case ["switch", marked, dropped, longest]:
                outcome.marked, outcome.dropped = int(marked), int(dropped)
                outcome.longest_queue = int(longest)
            case ["halves", host, halves]:
                outcome.halves[host] = int(halves)
            case ["end", at]:
                outcome.end_ns = int(at)
            case ["qp-error", *_]:
                early.append(line)
            case _:
                current.append(line)
    errors = [line for line in early if line.startswith("qp-error")]
    outcome.hosts = {address: read_report([*errors, *lines]) for address, lines in report.items()}
    return outcome


def unfinished(report: EndpointReport) -> list[TransferReport]:
    """The transfers that did not end well."""
    return [each for each in report.transfers.values() if each.state is not TransferState.DONE]


def mac(address: str) -> str:
    """A MAC that follows from an address."""
    return "02:00:" + ":".join(f"{byte:02x}" for byte in IPv4Address(address).packed)


def spoken(address: str, ip: int) -> IPv4Address | IPv6Address:
    """An address in a version of IP: the switch of star.c goes by its last four bytes."""
    ipv4 = IPv4Address(address)
    return ipv4 if ip == 4 else IPv6Address(0xFD << 120 | int(ipv4))


def ends(
    first: str, second: str, number: int = 17, ip: int = 4, **settings: object
) -> tuple[QueuePair, ...]:
    """The two ends of a connection; the second end's number is the first's plus one."""
    pairs = ((first, second, number, number + 1), (second, first, number + 1, number))
    return tuple(
        QueuePair(
            number=own,
            flow=FlowAddress(
                src_mac=mac(src),
                dst_mac=mac(dst),
                src=spoken(src, ip),
                dst=spoken(dst, ip),
                src_port=0xC000 + number,
                queue_pair=peer,
            ),
            **settings,
        )
        for src, dst, own, peer in pairs
    )


def sends(queue_pair: QueuePair, sizes: Iterable[int], first_id: int = 1) -> tuple[Transfer, ...]:
    return _transfers(TransferKind.SEND, queue_pair, sizes, first_id)


def receives(
    queue_pair: QueuePair, sizes: Iterable[int], first_id: int = 1
) -> tuple[Transfer, ...]:
    return _transfers(TransferKind.RECEIVE, queue_pair, sizes, first_id)


def _transfers(
    kind: TransferKind, queue_pair: QueuePair, sizes: Iterable[int], first_id: int
) -> tuple[Transfer, ...]:
    return tuple(
        Transfer(id=number, kind=kind, queue_pair=queue_pair.number, size=size)
        for number, size in enumerate(sizes, first_id)
    )


def one_way(
    config: EndpointConfig, sizes: Sequence[int], **settings: object
) -> dict[str, EndpointPlan]:
    """A sends messages to B over one queue pair."""
    here, there = ends(A, B, ip=config.ip or 4, **settings)
    return {
        A: EndpointPlan(config=config, queue_pairs=(here,), transfers=sends(here, sizes)),
        B: EndpointPlan(config=config, queue_pairs=(there,), transfers=receives(there, sizes)),
    }
