"""Traces as a scenario names them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from traffic.collectives import ClassedSpec, PlacementError, Schedule, Site, TrafficError
from traffic.collectives.units import Host, Size
from traffic.traces import aicb, chakra, goal, htsim, msccl, table
from traffic.traces.graph import MOST_RANKS, Graph, TraceError


class TraceSpec(ClassedSpec):
    """What all traces have in common."""

    FILE: ClassVar[str] = "file"  # the key that names what is read

    hosts: Annotated[tuple[Host, ...], Field(min_length=1)] | None = None
    """The hosts its ranks run on, in their order; without it the first ones."""

    def graph(self, _site: Site) -> Graph:
        """What its ranks do."""
        raise NotImplementedError

    def schedule(self, site: Site) -> Schedule:
        """The same as a schedule, on this site's hosts; what is wrong names the file."""
        file = getattr(self, self.FILE)
        try:
            graph = self.graph(site)
            schedule = graph.schedule()
        except TrafficError as error:
            if file in error.message:
                raise
            raise TraceError(f"{file}: {error.message}", error.cure) from None
        placed = tuple(range(graph.ranks)) if self.hosts is None else self.hosts
        if graph.ranks > site.hosts:
            raise PlacementError(
                f"the trace has {graph.ranks} ranks, and the fabric {site.hosts} hosts",
                "choose a larger topology",
            )
        return schedule.place(placed, site.hosts)


class FlowTableSpec(TraceSpec):
    """Flows in a table: start_ns,src,dst,bytes."""

    kind: Literal["table"] = "table"
    file: str
    """The table, as CSV."""

    def graph(self, site: Site) -> Graph:
        """Its flows, which name the hosts themselves."""
        return table.read(Path(self.file), len(self.hosts) if self.hosts else site.hosts)


class HtsimSpec(TraceSpec):
    """A connection matrix of htsim."""

    kind: Literal["htsim"] = "htsim"
    file: str
    """The .cm file."""

    def graph(self, _site: Site) -> Graph:
        """Its flows."""
        return htsim.read(Path(self.file))


class GoalSpec(TraceSpec):
    """A schedule in GOAL, as LogGOPSim and ATLAHS have it."""

    kind: Literal["goal"] = "goal"
    file: str
    """The schedule, in GOAL's text form."""

    def graph(self, _site: Site) -> Graph:
        """What its ranks do."""
        return goal.read(Path(self.file))


class ChakraSpec(TraceSpec):
    """Execution traces of Chakra, one file a rank."""

    FILE: ClassVar[str] = "files"

    kind: Literal["chakra"] = "chakra"
    files: str
    """Their folder, one of them, or what their names begin with: NAME of NAME.0.et."""
    groups: str | None = None
    """A JSON file of process groups, where collectives name some."""
    tflops: Annotated[float, Field(gt=0, le=1e6)] | None = None
    """How fast a rank computes what has operations and no duration."""

    def graph(self, _site: Site) -> Graph:
        """What its ranks do."""
        groups = chakra.read_groups(Path(self.groups)) if self.groups else None
        return chakra.read(Path(self.files), groups, self.tflops or 0)


class MscclSpec(TraceSpec):
    """A collective's schedule in MSCCL's XML."""

    kind: Literal["msccl"] = "msccl"
    file: str
    """The .xml file."""
    bytes: Size = Field(ge=1)
    """The data, as nccl-tests counts them."""
    check: bool = True
    """Whether its result is proven first, and the schedule refused where it is another."""

    def graph(self, _site: Site) -> Graph:
        """What its GPUs do."""
        return msccl.read(Path(self.file), self.bytes, proven=self.check)


class AicbSpec(TraceSpec):
    """A workload of AICB, as SimAI reads it."""

    kind: Literal["aicb"] = "aicb"
    file: str
    """The .txt file."""
    gpus: Annotated[int, Field(ge=1, le=MOST_RANKS)] | None = None
    """How many there are, where the file does not say all_gpus."""
    scale: float = Field(default=1.0, gt=0, le=1)
    """Shrinks all bytes and durations alike, so that a simulator can afford it."""

    def graph(self, _site: Site) -> Graph:
        """What its GPUs do."""
        return aicb.read(Path(self.file), self.gpus, self.scale)


TRACES: tuple[type[TraceSpec], ...] = (
    FlowTableSpec, HtsimSpec, GoalSpec, ChakraSpec, MscclSpec, AicbSpec,
)  # fmt: skip
