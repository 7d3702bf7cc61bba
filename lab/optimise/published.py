"""ECN profiles that vendors and papers publish for RoCE, to begin a search with and to compare."""

from __future__ import annotations

from typing import NamedTuple


class Profile(NamedTuple):
    """Where marks begin and end, and the share of packets that are marked there."""

    name: str
    kmin: int
    kmax: int
    pmax: float
    source: str

    def changes(self) -> tuple[str, ...]:
        """As a scenario's keys."""
        return (
            "ecn.enabled=true", f"ecn.kmin={self.kmin}", f"ecn.kmax={self.kmax}",
            f"ecn.pmax={self.pmax}",
        )  # fmt: skip


PUBLISHED = (
    Profile(
        "nvidia", 150_000, 1_500_000, 1.0,
        "NVIDIA, Cumulus Linux 5.9 user guide, RDMA over Converged Ethernet: what 'nv set qos roce'"
        " gives, 146.48 KB, 1.43 MB, probability 100; Quality of Service there has them in bytes",
    ),
    Profile(
        "cisco", 150_000, 3_000_000, 0.07,
        "Nexus 9000, random-detect of queue 3 in QOS_EGRESS_PORT, as T. Pasanen prints it "
        "(nwktimes.blogspot.com, Congestion Avoidance in AI Fabric, 2025); others begin at 950 KB. "
        "Cisco's own Blueprint for AI/ML Applications was not seen with numbers",
    ),
    Profile(
        "sonic", 1_048_576, 2_097_152, 0.05,
        "sonic-buildimage (086b03bd70), files/build_templates/qos_config.j2: AZURE_LOSSLESS",
    ),
    Profile(
        "dcqcn", 5_000, 200_000, 0.01,
        "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, at 40 Gb/s",
    ),
)  # fmt: skip
