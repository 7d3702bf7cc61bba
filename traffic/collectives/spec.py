"""Traffic as YAML describes it: every spec turns into a schedule once it knows the site."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self, TypeGuard, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from params.classes import Priority
from params.data import Data
from params.section import Strict
from params.units import Host, Size
from traffic.collectives.algorithms import add_collective, collective
from traffic.collectives.collective import Collective
from traffic.collectives.errors import SpecError, nearest
from traffic.collectives.nccl import NcclProtocol
from traffic.collectives.schedule import LOSSLESS, Schedule, ScheduleBuilder
from traffic.collectives.wording import complaint


class Site(Data):
    """What traffic has to know of the fabric it is for."""

    hosts: int
    rate_gbps: float = 100.0
    racks: tuple[tuple[int, ...], ...] = ()  # the hosts below each leaf; none: one rack
    seed: int = 1

    def __post_init__(self) -> None:
        if self.hosts < 1 or not self.rate_gbps > 0:
            raise SpecError(f"a site of {self.hosts} hosts at {self.rate_gbps} Gb/s")


class Spec(Strict):
    """A piece of YAML that refuses what it does not know."""

    # What is built of it is built once for the whole that it is part of, and not for each.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def read(cls, data: object, what: str = "traffic") -> Self:
        """Check what a YAML file holds."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise SpecError(explain(error, cls, what)) from None


def explain(error: ValidationError, model: type[BaseModel], what: str) -> str:
    """All that is wrong, with the place of each and the key that may have been meant."""
    lines = []
    for problem in error.errors():
        place = ".".join([what, *map(str, problem["loc"])])
        if problem["type"] == "extra_forbidden":
            known = _keys_beside(model, problem["loc"])
            lines.append(f"unknown key '{place}'; {nearest(str(problem['loc'][-1]), known)}")
        else:
            lines.append(f"{place}: {complaint(problem)}")
    return "; ".join(lines)


class ClassedSpec(Spec):
    """Traffic of one class of the fabric."""

    priority: Priority = LOSSLESS
    """Its class: 3 is lossless unless pfc.priorities has others, 0 best effort, 6 control."""
    ecn_capable: bool = True
    """Whether its packets can be marked; those that cannot may be dropped instead (WRED)."""

    def classed(self, schedule: Schedule) -> Schedule:
        """What it sends, in its class."""
        return schedule.in_class(self.priority, ecn_capable=self.ecn_capable)


class CollectiveOptions(Spec):
    """Which collective, without saying among whom."""

    op: str
    """all-reduce, reduce-scatter, all-gather, all-to-all, broadcast or barrier."""
    algorithm: str | None = None
    """How it is carried out, such as ring or double-binary-tree; without it the usual way."""
    bytes: Size = 0
    """What every rank has, as nccl-tests counts it."""
    channels: int = 1
    """Into how many parts the data is split, each with queue pairs of its own."""
    root: int = 0
    """The rank a broadcast comes from."""
    node_size: int | None = None
    """Ranks that make a node: of hierarchical all-reduce; of rings and trees, which take another
    rail on each channel then; and for what NCCL's protocols cost."""
    pieces: int | None = None
    """Into how many pieces a tree or broadcast cuts the data to pipeline it."""
    protocol: NcclProtocol | None = None
    """How NCCL hands data on: simple, ll128 or ll. By what its own tuner reckons with, a launch
    takes some microseconds, and so does each step, less within a node; ll sends twice as many
    bytes, ll128 a fifteenth more; in-network, which is NVLink SHARP's, knows simple alone. Without
    it messages cost nothing but their bytes."""

    def among(self, ranks: Sequence[int], world: int, size: int | None = None) -> Collective:
        """The collective of these ranks; of another size than its own if one is given."""
        return collective(
            self.op,
            ranks,
            self.bytes if size is None else size,
            self.algorithm,
            world=world,
            channels=self.channels,
            root=self.root,
            node_size=self.node_size,
            pieces=self.pieces,
            protocol=self.protocol,
        )


class CollectiveSpec(ClassedSpec, CollectiveOptions):
    """A collective, once or several times in a row."""

    kind: Literal["collective"] = "collective"
    ranks: tuple[Host, ...] | None = None
    """The hosts that take part, in their order; without it all of them."""
    repeat: int = Field(default=1, ge=1, le=10_000)
    """How many times in a row."""

    def schedule(self, site: Site) -> Schedule:
        """Each repetition begins, for a rank, when the one before is over for it."""
        what = self.among(range(site.hosts) if self.ranks is None else self.ranks, site.hosts)
        builder = ScheduleBuilder(site.hosts)
        gates: list[list[int]] | None = None
        for step in range(self.repeat):
            gates = add_collective(builder, what, gates=gates, job="collective", step=step)
        return builder.build()


def _keys_beside(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """The keys known where an unknown one was found."""
    here: object = model
    for part in path[:-1]:
        here = _within(here, part)
    return list(here.model_fields) if _is_model(here) else []


def _within(kind: object, part: int | str) -> object:
    """The type of a part of a value: a field, an element, or the union's member of a ``kind``."""
    if _is_model(kind):
        return kind.model_fields[part].annotation if part in kind.model_fields else kind
    members = [_within_annotated(member) for member in get_args(kind)]
    if isinstance(part, int):
        return members[0] if members else kind
    models = [member for member in members if _is_model(member)]
    for member in models:
        if "kind" in member.model_fields and member.model_fields["kind"].default == part:
            return member
    # An optional section: look inside without using up the part.
    return _within(models[0], part) if models else kind


def _within_annotated(kind: object) -> object:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
