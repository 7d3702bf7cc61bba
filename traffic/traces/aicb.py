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

With `pp` stages as many blocks of GPUs do all of this, each with all of the file's layers: so SimAI
counts them, who adds what a pipeline costs by formula. Here stages wait for each other: forward a
micro-batch goes from stage to stage, and backward the other way, `pp_comm` bytes each time between
GPUs of one place. A micro-batch begins with the row `embedding_layer`; there have to be `ga` of
them. Stages do all forwards, then all backwards, in the order of the file.

A file that begins with `MICRO` has rows for all GPUs together, one exchanged after the other. It
tells no number of GPUs, nor do older files of the other kind: `gpus` does.
"""

from __future__ import annotations

import re
from pathlib import Path

from params.data import Data
from traffic.collectives import TrafficError
from traffic.traces.graph import MAX_DEEDS, MAX_RANKS, Graph, TraceError
from traffic.traces.text import lines_of, whole

_OPS = {
    "ALLREDUCE": "all-reduce", "ALLGATHER": "all-gather", "REDUCESCATTER": "reduce-scatter",
    "ALLTOALL": "all-to-all", "BROADCAST": "broadcast",
}  # fmt: skip
_KEY = re.compile(r"(\w+)\s*:\s*(\d{1,9})\b")
_PASSED_ON = re.compile(r"\bpp_comm\b:?\s*(\d{1,15})")
_MICRO = "MICRO"
_BATCH_BEGINS = "embedding_layer"
_COLUMNS = 12
_SUFFIXES = ("_DP_EP", "_EP")  # the longer first


class Phase(Data):
    """What a layer computes, and what is exchanged then."""

    compute_ns: int
    op: str
    scope: str  # "", _EP or _DP_EP
    bytes: int


class Layer(Data):
    """Three passes and the update."""

    name: str
    line: int
    forward: Phase
    input_gradient: Phase
    weight_gradient: Phase
    update_ns: int


class Workload(Data):
    """What a file says."""

    gpus: int
    says_gpus: bool  # itself, or somebody had to
    tensor: int
    expert: int
    stages: int
    passed_on: int  # bytes from stage to stage
    batches: list[list[Layer]]  # by micro-batch, where stages pass them on; or all in one

    @property
    def stage_gpus(self) -> int:
        """How many GPUs a stage has."""
        return self.gpus // self.stages

    def group(self, rank: int, scope: str, *, weights: bool) -> list[int]:
        """With whom a rank exchanges: in its stage."""
        first = rank - rank % self.stage_gpus
        return [first + one for one in self._group(rank - first, scope, weights=weights)]

    def _group(self, rank: int, scope: str, *, weights: bool) -> list[int]:
        tensor, place = self.tensor, rank % self.tensor
        if not scope and not weights:
            first = rank - place
            return list(range(first, first + tensor))
        if not scope:
            return list(range(place, self.stage_gpus, tensor))
        at = rank // tensor
        if scope == "_EP":
            first = at - at % self.expert
            return [place + tensor * one for one in range(first, first + self.expert)]
        return [
            place + tensor * one
            for one in range(at % self.expert, self.stage_gpus // tensor, self.expert)
        ]


def parse(path: Path, config_gpus: int | None = None) -> Workload:
    """A file's layers; ``config_gpus``: how many GPUs there are, if the file does not say."""
    lines = list(lines_of(path))
    if len(lines) < 2:
        raise TraceError(f"{path} has no layers")
    head = {key: int(value) for key, value in _KEY.findall(lines[0][1])}
    place = f"{path}:{lines[0][0]}"
    is_micro = lines[0][1].strip() == _MICRO
    if "HYBRID_TRANSFORMER" not in lines[0][1] and not is_micro:
        raise TraceError(
            f"{place}: it does not begin as AICB's do",
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 ... all_gpus: 8",
        )
    own = head.get("all_gpus")
    if own is not None and config_gpus not in (None, own):
        raise TraceError(
            f"{place}: it says all_gpus: {own}, and gpus says {config_gpus}",
            "leave gpus (--gpus) out, or change all_gpus in the file",
        )
    gpus = config_gpus if own is None else own
    if gpus is None:
        raise TraceError(f"{place}: it does not say all_gpus", "say it: --gpus 8")
    tensor, expert, stages = (head.get(k, 1) for k in ("model_parallel_NPU_group", "ep", "pp"))
    sizes = min(tensor, expert, stages) >= 1 and 1 <= gpus <= MAX_RANKS
    if not sizes or gpus % (tensor * expert * stages):
        whole_of = " and ".join(map(str, [tensor, expert, *([stages] if stages > 1 else [])]))
        raise TraceError(f"{place}: {gpus} GPUs do not divide into {whole_of}")
    number, line = lines[1]
    count = whole(line, f"{path}:{number}: layers", 1, 100_000)
    if len(lines) - 2 != count:
        raise TraceError(f"{path}: it says {count} layers, and has {len(lines) - 2}")
    layers = []
    for number, line in lines[2:]:
        try:
            layers.append(_layer(line, number))
        except TraceError as error:
            raise TraceError(f"{path}:{number}: {error}") from None
    if is_micro:
        layers.reverse()  # backward they come in the file's order
    passed_on, batches = 0, [layers]
    if stages > 1:
        found = _PASSED_ON.search(lines[0][1])
        passed_on = int(found[1]) if found else 0
        if not passed_on:
            raise TraceError(f"{place}: pp: {stages}, and pp_comm does not say what goes on")
        batches = _batches(layers)
        if len(batches) != head.get("ga", 1):
            raise TraceError(
                f"{place}: it says ga: {head.get('ga', 1)}, and has {len(batches)} rows "
                f"{_BATCH_BEGINS}, with which micro-batches begin"
            )
    return Workload(gpus, own is not None, tensor, expert, stages, passed_on, batches)


def _batches(layers: list[Layer]) -> list[list[Layer]]:
    """Micro-batches; what stands before the first is done with it."""
    found: list[list[Layer]] = []
    before: list[Layer] = []
    for layer in layers:
        if layer.name == _BATCH_BEGINS:
            found.append([*before, layer])
            before = []
        else:
            (found[-1] if found else before).append(layer)
    return found


def _layer(line: str, number: int) -> Layer:
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
    return Layer(words[0], number, forward, inputs, weights, whole(words[11], "a time", 0, 10**12))


def read(path: Path, gpus: int | None = None, scale: float = 1.0) -> Graph:
    """The deeds of a file, all bytes and durations at a scale."""
    workload = parse(path, gpus)
    computed = 3 * workload.gpus * sum(map(len, workload.batches))
    if computed > MAX_DEEDS:
        raise TraceError(
            f"{path}: {workload.gpus:,} GPUs compute {computed:,} times",
            f"at most {MAX_DEEDS:,} times can be: tell of fewer GPUs, or layers",
        )
    graph = Graph(workload.gpus, path.stem)
    for rank in range(workload.gpus):
        _Rank(graph, workload, rank, scale).write()
    return graph


def alone(path: Path, config_gpus: int | None = None) -> tuple[int, int, str]:
    """How many exchanges a file has, how many of them are among one GPU, and what would help."""
    workload = parse(path, config_gpus)
    exchanges = [
        (phase.scope, phase is layer.weight_gradient)
        for layers in workload.batches
        for layer in layers
        for phase in (layer.forward, layer.input_gradient, layer.weight_gradient)
        if phase.op and phase.bytes
    ]
    lonely = {
        each for each in set(exchanges) if len(workload.group(0, each[0], weights=each[1])) == 1
    }
    more = 2 * workload.stages * workload.tensor * workload.expert
    cure = "its groups are of one each"
    if any(scope != "_EP" and weights for scope, weights in lonely):
        key = f"all_gpus: {more} in its first line" if workload.says_gpus else f"--gpus {more}"
        cure = f"{key} would have two to exchange with"
    return len(exchanges), sum(each in lonely for each in exchanges), cure


class _Rank:
    """A rank's step: its thread, and what goes on beside it."""

    def __init__(self, graph: Graph, workload: Workload, rank: int, scale: float) -> None:
        self._graph, self._workload, self._rank, self._scale = graph, workload, rank, scale
        self._thread: list[int] = []
        self._beside: list[int] = []

    def write(self) -> None:
        """All of it."""
        batches = self._workload.batches
        for number, layers in enumerate(batches):
            self._take(-1, 2 * number)
            for layer in layers:
                self._compute(layer.forward)
                self._thread = self._exchange(layer, layer.forward, self._thread)
            self._pass_on(1, 2 * number)
        for number, layers in reversed(list(enumerate(batches))):
            self._take(1, 2 * number + 1)
            for layer in reversed(layers):
                self._backward(layer)
            self._pass_on(-1, 2 * number + 1)
        ends = dict.fromkeys([*self._thread, *self._beside])
        self._graph.work(self._rank, after=list(ends))

    def _backward(self, layer: Layer) -> None:
        self._compute(layer.input_gradient)
        self._thread = self._exchange(layer, layer.input_gradient, self._thread)
        self._compute(layer.weight_gradient)
        ended = self._exchange(layer, layer.weight_gradient, self._thread, weights=True)
        self._beside += ended if ended != self._thread else []
        if layer.update_ns:
            update = self._graph.work(self._rank, self._ns(layer.update_ns), after=ended)
            self._beside.append(update)

    def _ns(self, duration_ns: int) -> int:
        return round(duration_ns * self._scale)

    def _bytes(self, size: int, least: int) -> int:
        return max(round(size * self._scale), least)

    def _compute(self, phase: Phase) -> None:
        done = self._graph.work(self._rank, self._ns(phase.compute_ns), after=self._thread)
        self._thread = [done]

    def _exchange(
        self, layer: Layer, phase: Phase, after: list[int], *, weights: bool = False
    ) -> list[int]:
        group = self._workload.group(self._rank, phase.scope, weights=weights)
        if not phase.op or not phase.bytes or len(group) == 1:
            return after
        size = self._bytes(phase.bytes, len(group))  # of a number each has a byte
        try:
            return [self._graph.collective(self._rank, phase.op, group, size, after=after)]
        except TrafficError as error:
            raise TraceError(f"line {layer.line}: {error.message}", error.cure) from None

    def _neighbour(self, way: int) -> int | None:
        """The GPU at the same place of the next stage, or the one before."""
        peer = self._rank + way * self._workload.stage_gpus
        return peer if 0 <= peer < self._workload.gpus else None

    def _take(self, way: int, tag: int) -> None:
        if (peer := self._neighbour(way)) is not None:
            taken = self._graph.receive(self._rank, peer, tag=tag, after=self._thread)
            self._thread = [taken]

    def _pass_on(self, way: int, tag: int) -> None:
        if (peer := self._neighbour(way)) is not None:
            size = self._bytes(self._workload.passed_on, 1)
            sent = self._graph.send(self._rank, peer, size, tag=tag, after=self._thread)
            self._beside.append(sent)
