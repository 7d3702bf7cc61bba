"""The draft's tests, by its sections 5 to 12, and what they are called here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lab.bmwg import balancing, collectives, congestion, jobs, rdma, scale, uet
from lab.bmwg.bench import Bench
from lab.bmwg.case import Asks
from lab.bmwg.outcome import Outcome
from lab.errors import LabError
from lab.scenario.keys import nearest
from params.data import Data

DRAFT = "draft-calabria-bmwg-ai-fabric-training-bench-04"
LINK = f"https://datatracker.ietf.org/doc/{DRAFT}/"
CHAPTERS = {
    5: "RDMA transport", 6: "UEC transport", 7: "Congestion management", 8: "Load balancing",
    9: "Collectives", 10: "Job completion time", 11: "Scale and convergence", 12: "Soak",
}  # fmt: skip
NOT_RUN = {
    "12.2": "Resource leaks are those of a switch's processes over 24 hours: the simulator has "
    "none. On Mininet `closlab chaos --for 24h` counts memory, descriptors and threads "
    "round by round, and says what grew.",
}
"""Sections that no test here carries out, and why."""


class Test(Data):
    """One of the draft's tests."""

    section: str
    key: str  # what the command calls it
    title: str
    run: Callable[[Bench], Asks[Outcome]]
    on_mininet: bool = True  # whether the machine's own clock and two processors suffice

    @property
    def chapter(self) -> int:
        """The draft's test category."""
        return int(self.section.partition(".")[0])


TESTS = (
    Test("5.1", "throughput", "Baseline throughput", rdma.throughput),
    Test("5.2", "latency", "Latency", rdma.latency),
    Test("5.3", "bursts", "Back-to-back burst absorption", rdma.bursts),
    Test("6.1", "uet-throughput", "UET throughput by transport service", uet.throughput),
    Test("6.2", "uet-latency", "UET latency", uet.latency),
    Test("6.3", "uet-spray", "Packet spray efficacy under UET RUD", uet.spray),
    Test("6.4", "uet-congestion", "UET congestion control", uet.congestion, on_mininet=False),
    Test("6.5", "uet-links", "Link- and network-layer enhancements", uet.links),
    Test("6.6", "uet-collectives", "UET collectives", uet.collectives),
    Test("6.7", "uet-pdcs", "UET PDC scalability", uet.pdcs),
    Test("7.1", "ecn", "ECN marking accuracy and threshold", congestion.ecn),
    Test("7.2", "pfc", "PFC under incast", congestion.pfc),
    Test("7.3", "dcqcn", "DCQCN convergence time", congestion.dcqcn, on_mininet=False),
    Test("7.4", "deadlock", "PFC storm and deadlock resilience", congestion.deadlock),
    Test("8.1", "ecmp", "ECMP entropy and polarization", balancing.ecmp),
    Test("8.2", "flowlet", "Dynamic load balancing (flowlet)", balancing.flowlet),
    Test("8.3", "spray", "Packet spraying", balancing.spray),
    Test("8.4", "fairness", "Jain's fairness index", balancing.index),
    Test("9.1", "allreduce", "AllReduce", collectives.allreduce),
    Test("9.2", "alltoall", "AlltoAll", collectives.alltoall),
    Test("9.3", "allgather", "AllGather", collectives.allgather),
    Test("9.4", "busbw", "Bus bandwidth summary", collectives.summary),
    Test("10.1", "jct", "Synthetic JCT", jobs.synthetic),
    Test("10.2", "mlperf", "MLPerf-aligned JCT", jobs.mlperf),
    Test("10.3", "tenants", "Multi-tenant interference", jobs.tenants),
    Test("11.1", "scale", "Fabric scale limits", scale.limits),
    Test("11.2", "failover", "Link failure convergence", scale.failover),
    Test("11.3", "zero-impact", "Zero-impact failover", scale.zero_impact),
    Test("12.1", "soak", "Sustained load", scale.soak, on_mininet=False),
)


def chosen(asked: Sequence[str], engine: str = "sim") -> tuple[Test, ...]:
    """Those asked for by name, by section or by chapter, or all that can be on the engine."""
    found: list[Test] = []
    for name in asked:
        some = [test for test in TESTS if name in (test.key, test.section, str(test.chapter))]
        if not some:
            said = NOT_RUN.get(name)
            known = [test.key for test in TESTS]
            raise LabError(
                said or f"there is no test '{name}'" + nearest(name, known),
                f"There are: {', '.join(f'{test.section} {test.key}' for test in TESTS)}; "
                "5 to 12 are all of a section.",
            )
        found += some
    if not asked:
        return tuple(test for test in TESTS if engine == "sim" or test.on_mininet)
    for test in found:
        if engine != "sim" and not test.on_mininet:
            raise LabError(
                f"{test.key} takes more hosts, or more time, than this machine's clock gives",
                "Leave it out, or leave --engine out: the simulator has it.",
            )
    return tuple(test for test in TESTS if test in found)
