"""Everything that ``traffic:`` can say, and how several of it run at once.

Jobs get hosts of their own, one job after the other. Collectives and patterns number hosts
themselves, so they run beside jobs on the same hosts, as background traffic does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from params.data import Data
from traffic.collectives import CollectiveSpec, Schedule, Site, Spec, SpecError, merge
from traffic.collectives.errors import nearest
from traffic.jobs.cluster import Cluster, ClusterSpec, plan
from traffic.jobs.experts import ExpertsJob
from traffic.jobs.inference import InferenceJob, Request
from traffic.jobs.job import Job
from traffic.jobs.placement import Placer
from traffic.jobs.simple import SimpleJob
from traffic.jobs.training import TrainingJob
from traffic.patterns import (
    ElephantsSpec,
    FlowsSpec,
    IncastSpec,
    NorthSouthSpec,
    PermutationSpec,
    PoissonSpec,
    StorageSpec,
)
from traffic.traces.specs import (
    TRACES,
    AicbSpec,
    ChakraSpec,
    FlowTableSpec,
    GoalSpec,
    HtsimSpec,
    MscclSpec,
    Ns3Spec,
)

Part = Annotated[
    CollectiveSpec
    | IncastSpec
    | FlowsSpec
    | PermutationSpec
    | ElephantsSpec
    | PoissonSpec
    | NorthSouthSpec
    | StorageSpec
    | FlowTableSpec
    | HtsimSpec
    | Ns3Spec
    | GoalSpec
    | ChakraSpec
    | MscclSpec
    | AicbSpec
    | SimpleJob
    | TrainingJob
    | ExpertsJob
    | InferenceJob,
    Field(discriminator="kind"),
]


class MixSpec(Spec):
    """Several at once."""

    kind: Literal["mix"] = "mix"
    parts: tuple[Part, ...]
    """What runs at the same time: each like a traffic section of its own."""

    @model_validator(mode="after")
    def _check(self) -> MixSpec:
        if not self.parts:
            raise ValueError("a mix of nothing: name its parts")
        return self


TrafficSpec = Annotated[Part | MixSpec | ClusterSpec, Field(discriminator="kind")]

_MODELS: tuple[type[Spec], ...] = (
    CollectiveSpec, IncastSpec, FlowsSpec, PermutationSpec, ElephantsSpec, PoissonSpec,
    NorthSouthSpec, StorageSpec, *TRACES, SimpleJob, TrainingJob, ExpertsJob, InferenceJob,
    ClusterSpec, MixSpec,
)  # fmt: skip
KINDS = {model.model_fields["kind"].default: model for model in _MODELS}


class Workload(Data):
    """Traffic on a site: what to run, where jobs went, and which hosts' links are slow."""

    schedule: Schedule
    hosts: dict[str, tuple[int, ...]]  # by job: the host of each rank
    port_shares: dict[int, float]  # by host: the share of its rate it has, where not all
    cluster: Cluster | None = None  # who was to run where, of jobs that wait for each other
    requests: tuple[Request, ...] = ()  # of inference


def read_traffic(data: object) -> TrafficSpec:
    """Check what stands below ``traffic:``."""
    if not isinstance(data, dict):
        raise SpecError("traffic: a list of keys and values is missing", "begin with 'kind:'")
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise SpecError(f"traffic.kind: there is no kind {kind!r}", nearest(str(kind), KINDS))
    return KINDS[kind].read(data)  # type: ignore[return-value]  # one of the union by its kind


def make_workload(spec: TrafficSpec, site: Site) -> Workload:
    """The schedule of everything a spec asks for."""
    if isinstance(spec, ClusterSpec):
        cluster = plan(spec, site)
        return Workload(cluster.schedule, {}, {}, cluster)
    parts = spec.parts if isinstance(spec, MixSpec) else (spec,)
    placer = Placer(site)
    schedules: list[Schedule] = []
    requests: list[Request] = []
    hosts: dict[str, tuple[int, ...]] = {}
    shares: dict[int, float] = {}
    for part in parts:
        if not isinstance(part, Job):
            schedules.append(part.classed(part.schedule(site)))
            continue
        if part.name in hosts:
            raise SpecError(f"two jobs are named '{part.name}'", "give each a name of its own")
        ranks = part.size(site)
        node = part.node.gpus if isinstance(part, TrainingJob) and part.node.gpus > 1 else None
        placed = placer.place(ranks, part.placement, node=node)
        made, served = _schedule(part, ranks, site)
        before = sum(map(len, schedules))
        requests += [request.moved(before) for request in served]
        schedules.append(part.classed(made.place(placed, site.hosts)))
        hosts[part.name] = tuple(placed)
        shares |= part.port_shares(placed)
    return Workload(merge(*schedules), hosts, shares, requests=tuple(requests))


def _schedule(
    job: SimpleJob | TrainingJob | ExpertsJob | InferenceJob, ranks: int, site: Site
) -> tuple[Schedule, Sequence[Request]]:
    """A job's schedule, by rank, and whom it serves."""
    if isinstance(job, InferenceJob):
        return job.schedule(ranks, site.seed, site.rate_gbps)
    if isinstance(job, ExpertsJob):
        return job.schedule(ranks, site.seed), ()
    return job.schedule(ranks), ()
