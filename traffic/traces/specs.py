"""Traces as a scenario names them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from params.units import Host, Size
from traffic.collectives import (
    ClassedSpec,
    PlacementError,
    Schedule,
    Site,
    SizeError,
    TrafficError,
)
from traffic.traces import aicb, chakra, goal, htsim, msccl, ns3, table
from traffic.traces.graph import MAX_RANKS, Graph, TraceError


class TraceSpec(ClassedSpec):
    """What all traces have in common."""

    FILE: ClassVar[str] = "file"  # the key that names what is read
    TOO_LARGE: ClassVar[str | None] = None  # the cure of a message that is, where there is one

    hosts: Annotated[tuple[Host, ...], Field(min_length=1)] | None = None
    """The hosts its ranks run on, in their order; without it the first ones."""

    def graph(self, _site: Site) -> Graph:
        """What its ranks do."""
        raise NotImplementedError

    def own_schedule(self, site: Site) -> Schedule:
        """The same as a schedule of its own ranks; what is wrong names the file."""
        file = getattr(self, self.FILE)
        try:
            return self.graph(site).schedule()
        except TrafficError as error:
            if file in error.message:
                raise
            cure = self.TOO_LARGE if isinstance(error, SizeError) else None
            raise TraceError(f"{file}: {error.message}", cure or error.cure) from None

    def schedule(self, site: Site) -> Schedule:
        """The same on this site's hosts."""
        schedule = self.own_schedule(site)
        placed = tuple(range(schedule.ranks)) if self.hosts is None else self.hosts
        if schedule.ranks > site.hosts:
            raise PlacementError(
                f"the trace has {schedule.ranks} ranks, and the fabric {site.hosts} hosts",
                "choose a larger topology",
            )
        return schedule.place(placed, site.hosts)

    def remarks(self) -> list[str]:
        """What there is to say of a file that can be run."""
        return []


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
    bytes: Annotated[Size, Field(ge=1)] | None = None
    """What a flow of size 0 sends, which in htsim never ends."""

    def graph(self, _site: Site) -> Graph:
        """Its flows."""
        return htsim.read(Path(self.file), self.bytes)


class Ns3Spec(TraceSpec):
    """Flows of the RDMA simulators in ns-3, HPCC's and those made after it."""

    kind: Literal["ns3"] = "ns3"
    file: str
    """The flow.txt: a count, then lines of src, dst, pg, dport (or not), bytes and start."""

    def graph(self, _site: Site) -> Graph:
        """Its flows."""
        return ns3.read(Path(self.file))


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

    TOO_LARGE: ClassVar[str | None] = "shrink it with traffic.scale, at the import with --scale 0.1"

    kind: Literal["aicb"] = "aicb"
    file: str
    """The .txt file."""
    gpus: Annotated[int, Field(ge=1, le=MAX_RANKS)] | None = None
    """How many there are, where the file does not say all_gpus."""
    scale: float = Field(default=1.0, gt=0, le=1)
    """Shrinks all bytes and durations alike, so that a simulator can afford it."""

    def graph(self, _site: Site) -> Graph:
        """What its GPUs do."""
        return aicb.read(Path(self.file), self.gpus, self.scale)

    def remarks(self) -> list[str]:
        """What is exchanged with nobody."""
        exchanges, alone, cure = aicb.alone(Path(self.file), self.gpus)
        if not alone:
            return []
        return [f"of {exchanges:,} exchanges {alone:,} are a GPU's with itself: {cure}"]


TRACES: tuple[type[TraceSpec], ...] = (
    FlowTableSpec, HtsimSpec, Ns3Spec, GoalSpec, ChakraSpec, MscclSpec, AicbSpec,
)  # fmt: skip
