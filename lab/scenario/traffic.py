"""What ``traffic:`` may say in a scenario: everything `traffic.jobs` knows, and all pairs."""

from __future__ import annotations

from itertools import permutations
from typing import Literal

from pydantic import Field

from params.units import Size
from traffic import jobs
from traffic.collectives import ClassedSpec, Schedule, Site, Spec, SpecError
from traffic.jobs import Workload
from traffic.patterns.flows import Flow, FlowSet


class AllPairs(ClassedSpec):
    """One message from every host to every other, all at once."""

    kind: Literal["all-pairs"] = "all-pairs"
    bytes: Size = Field(default=16_000, ge=1, le=10**8)
    """The size of a message."""

    def schedule(self, site: Site) -> Schedule:
        """The messages on this site."""
        flows = [Flow(src, dst, 0, self.bytes) for src, dst in permutations(range(site.hosts), 2)]
        return FlowSet("all pairs", flows).schedule(site.hosts)


KINDS: dict[str, type[Spec]] = {"all-pairs": AllPairs, **jobs.KINDS}


def read_traffic(data: object) -> Spec:
    """Check what stands below ``traffic:``."""
    if isinstance(data, dict) and data.get("kind", "all-pairs") == "all-pairs":
        return AllPairs.read(data)
    if not isinstance(data, dict):
        raise SpecError(f"traffic: '{data}' is not a list of keys and values", "begin with 'kind:'")
    return jobs.read_traffic(data)


def make_workload(spec: Spec, site: Site) -> Workload:
    """The schedule of what a scenario asks for."""
    if isinstance(spec, AllPairs):
        return Workload(spec.classed(spec.schedule(site)), {}, {})
    return jobs.make_workload(spec, site)  # type: ignore[arg-type]  # read_traffic made it
