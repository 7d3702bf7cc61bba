"""nccl-tests on a fabric: a rank's program for each GPU, and how long that will take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lab.engines.mininet.programs import Task
from lab.errors import LabError
from lab.machine.native_host import nccl_rank_program
from lab.runs.programs import Ground, Wanted, spread
from lab.runs.verbs import Adapter
from params.quantity import duration
from traffic.collectives import TrafficError
from traffic.collectives.algorithms import find_algorithm
from traffic.nccl_tests import Test, plan_texts

__all__ = ["NcclWanted", "fitted", "memory_bytes"]

_BUFFERS = 3  # of the largest size that a rank may have: what it sends, gets, and adds up
_MEMINFO = Path("/proc/meminfo")


def memory_bytes() -> int:
    """What this machine could give to programs."""
    for line in _MEMINFO.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise LabError(f"{_MEMINFO} does not say how much memory is there")


def fitted(sizes: Sequence[int], ranks: int, available: int) -> tuple[int, ...]:
    """Those sizes that fit into memory."""
    most = available // (_BUFFERS * ranks)
    fit = tuple(size for size in sizes if size <= most)
    if not fit:
        raise LabError(
            f"{ranks} ranks with {sizes[0]:,} bytes each want more than this machine's memory",
            f"Ask for at most {most:,} bytes (-b, -e), or fewer ranks (-g).",
        )
    return fit


class NcclWanted(Wanted):
    """The ranks of a test."""

    test: Test | None = None  # whose ranks may be 0: one a host

    def tasks(self, ground: Ground, folder: Path) -> list[Task]:
        """A program a rank, which finds its plan in the folder."""
        test, _ = self._on(ground)
        try:
            for rank, text in enumerate(plan_texts(test)):
                (folder / f"plan-{rank}").write_text(text)
        except TrafficError as error:
            raise LabError(str(error)) from None
        words = (str(nccl_rank_program()), str(folder))
        one_a_rank = replace(self, words=words, ranks=test.ranks)
        first, *others = super(NcclWanted, one_a_rank).tasks(ground, folder)
        return [replace(first, is_plain=True), *others]

    def announced(self, ground: Ground) -> str:
        """The head of nccl-tests' table, and how long it will take at least."""
        test, hosts = self._on(ground)
        assert self.test is not None and self.verbs is not None
        adapters = self.verbs.adapters(ground.scenario, self.priority)
        ns = _at_least_ns(test, hosts, adapters)
        lines = [
            f"# nThread 1 nGpus {test.ranks} minBytes {test.sizes[0]} maxBytes {test.sizes[-1]} "
            f"warmup iters: {test.warmups} iters: {test.iterations} agg iters: 1 "
            f"validation: {test.checks} graph: 0",
            "#",
            "# Using devices",
            *(
                f"#  Rank {rank:2} on {host:>6} device {rank - hosts.index(host)} closlab0"
                for rank, host in enumerate(hosts)
            ),
            "#",
            f"# Time passes {ground.dilation:,.0f} times more slowly on the fabric. This takes at "
            f"least {duration(ns)} of it, which are {duration(ns * ground.dilation)} here; -e, -n "
            "and -w say how much is done.",
        ]
        if test.sizes != self.test.sizes:
            reduced = f"# Reducing maxBytes to {test.sizes[-1]} due to memory limitation"
            lines.insert(-1, reduced)
        return "\n".join(lines)

    def _on(self, ground: Ground) -> tuple[Test, list[str]]:
        """What is measured there, and the host of each rank."""
        assert self.test is not None
        hosts = spread(ground.hosts(self.hosts), self.ranks)
        if len(hosts) < 2:
            raise LabError("one rank alone has nobody to send to", "Name two hosts, or say -g 2.")
        if self.test.root >= len(hosts):
            raise LabError(
                f"-r {self.test.root}: there is no such rank", f"They are 0 to {len(hosts) - 1}."
            )
        fit = fitted(self.test.sizes, len(hosts), memory_bytes())
        return replace(self.test, ranks=len(hosts), sizes=fit), hosts


def _at_least_ns(test: Test, hosts: Sequence[str], adapters: Mapping[str, Adapter]) -> float:
    """By bytes alone; ranks that exchange blocks share their host's port."""
    ns_per_byte = max(8e9 / adapters[host].bps for host in hosts)
    sharers = max(Counter(hosts).values()) if test.op == "all-to-all" else 1
    total = 0.0
    counts = Counter(dict.fromkeys(test.sizes, test.repeats))
    for size in (test.sizes[0], test.sizes[-1]):
        counts[size] += test.warmups
    for size, times in counts.items():
        what = test.collective(size, in_bytes=True)
        if what is None:
            once = size * ns_per_byte if test.op == "send-receive" else 0.0
        else:
            once = find_algorithm(what.op, what.algorithm).bound(what, 0.0, ns_per_byte)
        total += times * once * sharers
    return total
