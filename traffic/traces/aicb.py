"""AICB's workloads, as SimAI reads them: layers of a training step, computed and exchanged.

    HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 1 ga: 1 all_gpus: 8
    2                                                            so many layers
    NAME -1 FWD_NS COMM BYTES  INPUT_GRAD_NS COMM BYTES  WEIGHT_GRAD_NS COMM BYTES  UPDATE_NS

Forward goes through the layers in their order, backward in the other: input gradients, exchanged
at once; weight gradients, exchanged while the layer below is computed. A step ends when all of it
is over. Micro-batches stand in the file layer by layer, so that `ga` repeats nothing.

The first `model_parallel_NPU_group` GPUs are a tensor-parallel group, and so on; those with one
place in theirs are data-parallel. Forward and input gradients are exchanged within tensor groups,
weight gradients within data groups; `_EP` says within expert groups (of `ep` neighbours in a data
group), `_DP_EP` among those with one place in theirs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from traffic.traces.graph import MOST_RANKS, Graph, TraceError
from traffic.traces.text import lines_of, whole

_OPS = {
    "ALLREDUCE": "all-reduce", "ALLGATHER": "all-gather", "REDUCESCATTER": "reduce-scatter",
    "ALLTOALL": "all-to-all",
}  # fmt: skip
_KEY = re.compile(r"(\w+)\s*:\s*(\d{1,9})")
_COLUMNS = 12
_SUFFIXES = ("_DP_EP", "_EP")  # the longer first


@dataclass(frozen=True, slots=True)
class Phase:
    """What a layer computes, and what is exchanged then."""

    compute_ns: int
    op: str
    scope: str  # "", _EP or _DP_EP
    bytes: int


@dataclass(frozen=True, slots=True)
class Layer:
    """Three passes and the update."""

    name: str
    forward: Phase
    input_gradient: Phase
    weight_gradient: Phase
    update_ns: int


@dataclass(frozen=True, slots=True)
class Workload:
    """What a file says."""

    gpus: int
    tensor: int
    expert: int
    layers: list[Layer]

    def group(self, rank: int, scope: str, *, weights: bool) -> list[int]:
        """With whom a rank exchanges."""
        tensor, place = self.tensor, rank % self.tensor
        if not scope and not weights:
            first = rank - place
            return list(range(first, first + tensor))
        if not scope:
            return list(range(place, self.gpus, tensor))
        at = rank // tensor
        if scope == "_EP":
            first = at - at % self.expert
            return [place + tensor * one for one in range(first, first + self.expert)]
        return [
            place + tensor * one
            for one in range(at % self.expert, self.gpus // tensor, self.expert)
        ]


def parse(path: Path) -> Workload:
    """A file's layers."""
    lines = list(lines_of(path))
    if len(lines) < 2:
        raise TraceError(f"{path} has no layers")
    head = {key: int(value) for key, value in _KEY.findall(lines[0][1])}
    place = f"{path}:{lines[0][0]}"
    if "HYBRID_TRANSFORMER" not in lines[0][1] or "all_gpus" not in head:
        raise TraceError(
            f"{place}: it does not begin as AICB's do",
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 ... all_gpus: 8",
        )
    if head.get("pp", 1) > 1:
        raise TraceError(
            f"{place}: pp: {head['pp']}: pipelines are not told by layers alone",
            "a training job of the lab has them: traffic.kind=training, pp",
        )
    gpus, tensor = head["all_gpus"], head.get("model_parallel_NPU_group", 1)
    expert = head.get("ep", 1)
    sizes = tensor >= 1 and expert >= 1 and 1 <= gpus <= MOST_RANKS
    if not sizes or gpus % tensor or (gpus // tensor) % expert:
        raise TraceError(f"{place}: {gpus} GPUs do not divide into {tensor} and {expert}")
    number, line = lines[1]
    count = whole(line, f"{path}:{number}: layers", 1, 100_000)
    if len(lines) - 2 != count:
        raise TraceError(f"{path}: it says {count} layers, and has {len(lines) - 2}")
    layers = []
    for number, line in lines[2:]:
        try:
            layers.append(_layer(line))
        except TraceError as error:
            raise TraceError(f"{path}:{number}: {error}") from None
    return Workload(gpus, tensor, expert, layers)


def _layer(line: str) -> Layer:
    words = line.split()
    if len(words) != _COLUMNS:
        raise TraceError(f"{len(words)} columns, and {_COLUMNS} have to be there")
    phases = []
    for at in (2, 5, 8):
        op, scope = words[at + 1], ""
        for suffix in _SUFFIXES:
            if op.endswith(suffix):
                op, scope = op.removesuffix(suffix), suffix
                break
        if op not in (*_OPS, "NONE"):
            raise TraceError(
                f"{words[at + 1][:40]!r} is not known", f"known: NONE, {', '.join(_OPS)}"
            )
        phases.append(
            Phase(
                whole(words[at], "a time", 0, 10**12), _OPS.get(op, ""), scope,
                whole(words[at + 2], "bytes", 0, 1 << 40),
            )
        )  # fmt: skip
    forward, inputs, weights = phases
    return Layer(words[0], forward, inputs, weights, whole(words[11], "a time", 0, 10**12))


def read(path: Path) -> Graph:
    """The deeds of a file."""
    workload = parse(path)
    graph = Graph(workload.gpus, path.stem)
    for rank in range(workload.gpus):
        _write(graph, workload, rank)
    return graph


def _write(graph: Graph, workload: Workload, rank: int) -> None:
    """A rank's step."""
    thread: list[int] = []

    def exchange(phase: Phase, after: list[int], *, weights: bool = False) -> list[int]:
        group = workload.group(rank, phase.scope, weights=weights)
        if not phase.op or not phase.bytes or len(group) == 1:
            return after
        return [graph.collective(rank, phase.op, group, phase.bytes, after=after)]

    for layer in workload.layers:
        thread = [graph.work(rank, layer.forward.compute_ns, after=thread)]
        thread = exchange(layer.forward, thread)
    beside: list[int] = []
    for layer in reversed(workload.layers):
        thread = [graph.work(rank, layer.input_gradient.compute_ns, after=thread)]
        thread = exchange(layer.input_gradient, thread)
        thread = [graph.work(rank, layer.weight_gradient.compute_ns, after=thread)]
        ended = exchange(layer.weight_gradient, thread, weights=True)
        beside += ended if ended != thread else []
        if layer.update_ns:
            beside.append(graph.work(rank, layer.update_ns, after=ended))
    graph.work(rank, after=list(dict.fromkeys([*thread, *beside])))
