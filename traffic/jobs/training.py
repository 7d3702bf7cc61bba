"""Training a transformer with tensor, pipeline, data and expert parallelism.

A step of a stage is a fixed order of forward (F) and backward (B) passes over micro-batches, one
forward one backward: with S stages, stage s begins with S-1-s forwards, then alternates, then
drains. What a pass computes and sends, for b sequences of s tokens, hidden size h, e bytes a value
and L layers a stage, with tensor degree t:

- compute: forward, 2 operations for each active parameter and token, and 4bssh in each layer for
  attention itself, which has no parameters (queries by keys, and what comes of it by values); twice
  that backward (three times if activations are recomputed), shared by the stage's t ranks and by
  all stages. So counts the appendix of Narayanan et al., "Efficient Large-Scale Language Model
  Training on GPU Clusters Using Megatron-LM", SC 2021 (arXiv:2104.04473): every token attends to
  all of its sequence, also where a causal kernel would skip half;
- tensor: two all-reduces of bshe a layer, forward and again backward;
- experts: two all-to-alls of bshe/t x active experts a layer, forward and again backward;
- pipeline: bshe/t to the rank at the same place of the next stage, or back;
- data: when a stage's last backward is done, an all-reduce of its gradients, in buckets that may
  overlap that pass. A sharded optimizer makes it a reduce-scatter, and an all-gather of weights;
- norm: where gradients are clipped, one number is summed over all ranks before a step is over, so
  that they begin the next one together.

A pass alternates compute and exchange ``slices`` times, each slice with its part of both: as many
as there are layers would be exact, one is cheap. Exchange within a node is not the fabric's
business and becomes time at the node's own rate, if the whole group is in it; stages always talk
over the fabric. ``scale`` shrinks all bytes and durations alike,
so that a simulator can afford a job whose compute and communication keep their proportion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from params.data import Data
from traffic.collectives import (
    Activity,
    Collective,
    ParallelGroups,
    RankError,
    Schedule,
    ScheduleBuilder,
    Site,
    Spec,
    collective,
)
from traffic.jobs.job import Job, Threads
from traffic.jobs.model import NamedModel

_NORM = "double-binary-tree"  # by which few bytes take few hops
_NORM_BYTES = 4  # a float

Degree = Annotated[int, Field(ge=1, le=65536)]


class Parallelism(Spec):
    """How many ways each dimension is split."""

    tensor: Degree = 1
    """Ranks that share every layer's matrices."""
    pipeline: Degree = 1
    """Stages, each with its share of the layers."""
    data: Degree = 1
    """Replicas, each with its share of the batch."""
    expert: Degree = 1
    """Ranks that a mixture's experts are spread over."""


class Batch(Spec):
    """How many sequences a step takes, and a pass."""

    sequences: Annotated[int, Field(ge=1, le=10**7)]
    """In a step, over all replicas."""
    micro: Annotated[int, Field(ge=1, le=10**5)] = 1
    """In one pass through a stage."""


class Gpu(Spec):
    """What a rank computes with."""

    tflops: float = Field(default=312, gt=0, le=10**6)
    """What it could compute."""
    efficiency: float = Field(default=0.5, gt=0, le=1)
    """The share of that a model gets out of it."""


class NodeSpec(Spec):
    """GPUs that exchange data without the fabric."""

    gpus: Degree = 1
    """How many there are to a node."""
    gbps: float = Field(default=2400, gt=0, le=10**6)
    """The rate each of them exchanges data at inside."""


class Algorithms(Spec):
    """How each dimension's collectives are carried out; none: the first there is."""

    tensor: str | None = None
    """Of the all-reduce inside layers."""
    data: str | None = None
    """Of the all-reduce of gradients."""
    expert: str | None = None
    """Of the all-to-all among experts."""
    channels: int = Field(default=1, ge=1, le=64)
    """Into how many parts each is split."""


class TrainingJob(Job):
    """Steps of training a model."""

    kind: Literal["training"] = "training"
    model: NamedModel
    """What is trained: gpt3-13b, gpt3-175b, llama-70b, mixtral-8x7b, or a file of your own."""
    parallelism: Parallelism
    """How it is split among the ranks."""
    batch: Batch
    """How much is learnt from in a step."""
    gpu: Gpu = Gpu()
    """What a rank computes with."""
    node: NodeSpec = NodeSpec()
    """How many ranks exchange data without the fabric."""
    algorithms: Algorithms = Algorithms()
    """How collectives are carried out."""
    buckets: int = Field(default=4, ge=1, le=1000)
    """In how many parts gradients are exchanged."""
    slices: int = Field(default=1, ge=1, le=1000)
    """How often a pass alternates computing and exchanging; as many as layers is exact."""
    overlap: bool = True
    """Whether gradients are exchanged while the rest is still computed."""
    recompute: bool = False
    """Whether activations are computed again on the way back."""
    sharded_optimizer: bool = False
    """Whether gradients are scattered and weights gathered, instead of all-reduced."""
    clip_gradients: bool = False
    """Whether a step ends with the norm of all gradients, which ranks sum up together."""
    scale: float = Field(default=1.0, gt=0, le=1)
    """Shrinks all bytes and durations alike, so that a simulator can afford the job."""

    @property
    def groups(self) -> ParallelGroups:
        """Who talks with whom."""
        split = self.parallelism
        return ParallelGroups(split.tensor, split.data, split.pipeline, split.expert)

    @property
    def microbatches(self) -> int:
        """How many passes of each direction a rank makes in a step."""
        return self.batch.sequences // (self.batch.micro * self.parallelism.data)

    def in_one_node(self, ranks: Sequence[int]) -> bool:
        """Whether these ranks need no fabric between them."""
        return min(ranks) // self.node.gpus == max(ranks) // self.node.gpus

    def slowdowns(self) -> dict[int, float]:
        """As ranks that exchange within a node keep step, a straggler slows its tensor group."""
        slow = super().slowdowns()
        for group in self._tensor_groups():
            if self.in_one_node(group) and (worst := max(slow.get(r, 1.0) for r in group)) > 1:
                slow.update((rank, worst) for rank in group)
        return slow

    def _tensor_groups(self) -> list[tuple[int, ...]]:
        stages = range(self.groups.pipeline)
        return [group for stage in stages for group in self.groups.tensor_groups(stage)]

    def size(self, _: Site) -> int:
        """How many ranks it has."""
        return self.groups.world

    def schedule(self, ranks: int) -> Schedule:
        """The job's schedule, by rank."""
        self._check(ranks)
        writer = _Writer(self)
        for step in range(self.steps):
            writer.step(step)
        return writer.threads.builder.build()

    def _check(self, ranks: int) -> None:
        self.check_ranks(ranks)
        split, model = self.parallelism, self.model
        if ranks != self.groups.world:
            raise RankError(f"{self.name} has {self.groups.world} ranks, not {ranks}")
        for what, amount, parts in (
            ("layers", model.layers, split.pipeline),
            ("heads", model.heads, split.tensor),
            ("sequences", self.batch.sequences, self.batch.micro * split.data),
        ):
            if amount % parts:
                raise RankError(
                    f"{self.name}: {amount} {what} do not divide by {parts}",
                    "change the degrees of parallelism, or the batch",
                )
        if split.expert > 1 and (model.experts is None or model.experts.count % split.expert):
            raise RankError(
                f"{self.name}: {model.name} has no experts to divide among {split.expert} ranks",
                "use an expert degree that divides them, or 1",
            )


class _Pass(Data):
    """One micro-batch through one stage."""

    forward: bool
    number: int


class _Costs:
    """How long and how large everything is, after scaling."""

    def __init__(self, job: TrainingJob) -> None:
        model, split = job.model, job.parallelism
        tokens = job.batch.micro * model.sequence
        attention = 4 * model.layers * tokens * model.sequence * model.hidden
        operations = 2 * model.active_parameters * tokens + attention
        per_ns = job.gpu.tflops * 1000 * job.gpu.efficiency
        self.forward_ns = operations / (split.tensor * split.pipeline) / per_ns * job.scale
        self.backward_ns = (3 if job.recompute else 2) * self.forward_ns
        values = tokens * model.hidden * model.bytes_per_value * job.scale
        layers = model.layers // split.pipeline
        active = model.experts.active if model.experts else 0
        self.tensor_bytes = 2 * layers * values
        self.expert_bytes = 2 * layers * active * values / split.tensor
        self.pipeline_bytes = values / split.tensor
        gradient = model.bytes_per_gradient * job.scale / (split.tensor * split.pipeline)
        self.dense_gradient_bytes = model.dense_parameters * gradient
        self.expert_gradient_bytes = model.expert_parameters * gradient / split.expert


class _Writer:
    """Writes the steps of a training job."""

    def __init__(self, job: TrainingJob) -> None:
        self._job = job
        self._groups = job.groups
        self._costs = _Costs(job)
        self.threads = Threads(ScheduleBuilder(self._groups.world), job.name, job.slowdowns())
        channels = job.algorithms.channels
        self._pipeline_channel = self.threads.reserve_channels(1)
        self._tensor_channel = self.threads.reserve_channels(channels)
        self._expert_channel = self.threads.reserve_channels(channels)
        self._dense_channel = self.threads.reserve_channels(channels)
        self._sparse_channel = self.threads.reserve_channels(channels)
        self._norm_channel = self.threads.reserve_channels(1)
        everybody = range(self._groups.world)
        has_norm = job.clip_gradients and len(everybody) > 1
        self._norm = collective("all-reduce", everybody, _NORM_BYTES, _NORM) if has_norm else None
        self._arrived: dict[tuple[_Pass, int], int] = {}  # by pass and receiving rank
        self._marks: dict[int, list[int]] = {}  # by rank: the buckets' ends in its last backward
        self._pipeline_activity = 0

    def step(self, step: int) -> None:
        """All passes of all stages, then the gradients."""
        self.threads.begin_step(step, has_passes=True)
        self._pipeline_activity = self.threads.builder.activity(
            Activity("flows", "pipeline", job=self._job.name, step=step)
        )
        self._arrived.clear()
        for stage, what in self._in_order():
            self._pass(stage, what)
        for stage in range(self._groups.pipeline):
            self._exchange_gradients(stage)
        if self._norm is not None:
            self.threads.collective(self._norm, self._norm_channel)

    def _in_order(self) -> Iterator[tuple[int, _Pass]]:
        """Every stage's passes in its order, and none before the passes it needs."""
        stages, count = self._groups.pipeline, self._job.microbatches
        left = [_one_forward_one_backward(stages - 1 - stage, count) for stage in range(stages)]
        done: set[tuple[int, _Pass]] = set()
        while any(left):
            for stage, passes in enumerate(left):
                while passes and self._needs(stage, passes[0]) <= done:
                    done.add((stage, passes[0]))
                    yield stage, passes.pop(0)

    def _needs(self, stage: int, what: _Pass) -> set[tuple[int, _Pass]]:
        before = stage - 1 if what.forward else stage + 1
        return {(before, what)} if 0 <= before < self._groups.pipeline else set()

    def _ranks(self, stage: int) -> range:
        first = self._groups.rank(stage, 0, 0)
        return range(first, first + self._groups.data * self._groups.tensor)

    def _pass(self, stage: int, what: _Pass) -> None:
        job, costs = self._job, self._costs
        duration = costs.forward_ns if what.forward else costs.backward_ns
        last = not what.forward and what.number == job.microbatches - 1
        parts = job.buckets if last and job.overlap else 1
        if last:
            self._marks.update((rank, []) for rank in self._ranks(stage))
        for piece in range(job.slices):
            for rank in self._ranks(stage):
                arrived = [self._arrived[what, rank]] if (what, rank) in self._arrived else []
                for part in range(parts):
                    mark = self.threads.compute(
                        rank,
                        duration / job.slices / parts,
                        also=arrived if piece == part == 0 else [],
                        backward=not what.forward,
                    )
                    if last:
                        self._marks[rank].append(mark)
            self._inside_stage(stage)
        self._pass_on(stage, what)

    def _inside_stage(self, stage: int) -> None:
        """A slice's exchange among tensor groups and among experts."""
        job, costs = self._job, self._costs
        for group in self._groups.tensor_groups(stage):
            self._exchange(
                "all-reduce", group, costs.tensor_bytes / job.slices,
                job.algorithms.tensor, self._tensor_channel,
            )  # fmt: skip
        for group in self._groups.expert_groups(stage):
            self._exchange(
                "all-to-all", group, costs.expert_bytes / job.slices,
                job.algorithms.expert, self._expert_channel,
            )  # fmt: skip

    def _exchange(
        self, op: str, group: tuple[int, ...], size: float, algorithm: str | None, channel: int
    ) -> None:
        """On the fabric, or as time if the group is in one node."""
        if len(group) == 1 or not size:
            return
        if self._job.in_one_node(group):
            for rank in group:
                self.threads.inside_node(rank, self._node_ns(op, group, size))
            return
        self.threads.collective(self._collective(op, group, size, algorithm), channel)

    def _pass_on(self, stage: int, what: _Pass) -> None:
        """Send what the next stage, or the one before, waits for."""
        to = stage + 1 if what.forward else stage - 1
        if not 0 <= to < self._groups.pipeline:
            return
        shift = (to - stage) * len(self._ranks(stage))
        size = max(1, round(self._costs.pipeline_bytes))
        for rank in self._ranks(stage):
            self._arrived[what, rank + shift] = self.threads.builder.transfer(
                rank,
                rank + shift,
                size,
                activity=self._pipeline_activity,
                channel=self._pipeline_channel,
                after=self.threads.ends[rank],
            )

    def _exchange_gradients(self, stage: int) -> None:
        """Bucket after bucket over the replicas, and the step ends when all have come."""
        ends = {rank: list[int]() for rank in self._ranks(stage)}
        job, costs = self._job, self._costs
        dense = self._groups.data_groups(stage)
        experts = self._groups.expert_data_groups(stage)
        for bucket in range(job.buckets):
            for group in dense:
                self._reduce(group, costs.dense_gradient_bytes, bucket, self._dense_channel, ends)
            for group in experts:
                size = costs.expert_gradient_bytes
                self._reduce(group, size, bucket, self._sparse_channel, ends)
        for rank, end in ends.items():
            self.threads.meet(rank, end)

    def _reduce(
        self,
        group: tuple[int, ...],
        size: float,
        bucket: int,
        channel: int,
        ends: dict[int, list[int]],
    ) -> None:
        if len(group) == 1 or not size:
            return
        if self._job.in_one_node(group):
            duration = self._node_ns("all-reduce", group, size / self._job.buckets)
            for rank in group:
                after = [*self._bucket_mark(rank, bucket), *ends[rank]]
                ends[rank] = [self.threads.inside_node_beside(rank, duration, after)]
            return
        ops = ["reduce-scatter", "all-gather"] if self._job.sharded_optimizer else ["all-reduce"]
        for op in ops:
            algorithm = self._job.algorithms.data if op == "all-reduce" else None
            what = self._collective(op, group, size / self._job.buckets, algorithm)
            gates = [[*self._bucket_mark(rank, bucket), *ends[rank]] for rank in group]
            done = self.threads.beside(what, channel, gates)
            ends.update(zip(group, done, strict=True))

    def _bucket_mark(self, rank: int, bucket: int) -> list[int]:
        """What a rank waits for before it has this bucket's gradients."""
        if not self._job.overlap:
            return self.threads.ends[rank]
        marks = self._marks[rank]
        return [marks[(bucket + 1) * len(marks) // self._job.buckets - 1]]

    def _collective(
        self, op: str, group: tuple[int, ...], size: float, algorithm: str | None
    ) -> Collective:
        channels = self._job.algorithms.channels
        # However small the scale, every chunk needs a byte.
        least = 2 * len(group) * channels
        return collective(
            op,
            group,
            max(least, round(size)),
            algorithm,
            world=self._groups.world,
            channels=channels,
        )

    def _node_ns(self, op: str, group: tuple[int, ...], size: float) -> float:
        """What an exchange takes at the node's rate: the bytes each rank must send, no less."""
        turns = 2 if op == "all-reduce" else 1
        return turns * (len(group) - 1) / len(group) * size * 8 / self._job.node.gbps


def _one_forward_one_backward(ahead: int, count: int) -> list[_Pass]:
    """A stage's passes: some forwards ahead, then one and one, then the backwards left."""
    forwards = [_Pass(True, number) for number in range(count)]
    backwards = [_Pass(False, number) for number in range(count)]
    ahead = min(ahead, count)
    paired = [each for pair in zip(forwards[ahead:], backwards, strict=False) for each in pair]
    return [*forwards[:ahead], *paired, *backwards[count - ahead :]]
