"""MSCCL's schedules: a collective as threadblocks that copy, add, send and receive chunks.

A connection is a pair of GPUs and a channel; what is sent over it arrives in order. Steps of a
threadblock come one after the other, and a step may wait for one of another threadblock of its GPU.
A send is behind a threadblock as soon as it is posted, as it is for NCCL, whose buffers take it.

| type | receives | then | sends |
|---|---|---|---|
| `s` | | | source |
| `r` | destination | | |
| `rcs` | destination | | what was received |
| `rrc` | | adds it to source, into destination | |
| `rrs` | | adds it to source | the sum |
| `rrcs` | | adds it to source, into destination | the sum |
| `cpy`, `re` | | copies source to destination, or adds it there | |

Before it is run a schedule is carried out on symbols: every chunk of the result has to hold what
its collective promises, each rank's part once. All data go through in one loop, so that a chunk is
as large as the data's share of it.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import field
from pathlib import Path
from xml.etree import ElementTree as Xml

from files import FileError
from params.data import Data
from traffic.reading import parse_xml
from traffic.traces.graph import Graph, TraceError
from traffic.traces.text import text_of, whole

_BUFFERS = {"i": "i", "o": "o", "s": "s", "input": "i", "output": "o", "scratch": "s"}
_TYPES = ("s", "r", "rcs", "rrc", "rrs", "rrcs", "cpy", "re", "nop")
_RECEIVE = ("r", "rcs", "rrc", "rrs", "rrcs")
_SEND = ("s", "rcs", "rrs", "rrcs")
_COLLECTIVES = ("allreduce", "allgather", "reduce_scatter", "alltoall")
_MAX_STEPS = 1_000_000
_MAX_CHUNKS = 1 << 16

Sum = Counter[tuple[int, int]]  # what a chunk holds: of whom, and which of theirs
Place = tuple[str, int]


class Step(Data, frozen=False):
    """One step of a threadblock."""

    type: str
    source: Place
    target: Place
    count: int
    wait: tuple[int, int] | None  # a threadblock of this GPU, and how many of its steps


class Block(Data, frozen=False):
    """A threadblock."""

    gpu: int
    id: int
    send: int
    receive: int
    channel: int
    steps: list[Step] = field(default_factory=list)


class Algorithm(Data, frozen=False):
    """What a file says."""

    name: str
    collective: str
    gpus: int
    chunks: int  # of a loop
    is_in_place: bool
    blocks: list[Block]
    inputs: list[int]  # by GPU
    outputs: list[int]


def read(path: Path, size: int, *, proven: bool = True) -> Graph:
    """The steps of a file as deeds, for so many bytes; ``proven``: if the result is as promised."""
    algorithm = parse(path)
    try:
        if proven:
            check(algorithm)
        return _write(algorithm, size, path.stem)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None


# --- the file -------------------------------------------------------------------------------------


def parse(path: Path) -> Algorithm:
    """A file's schedule."""
    text = text_of(path)
    try:
        return _algorithm(parse_xml(text))
    except (FileError, TraceError) as error:
        raise TraceError(f"{path}: {error}") from None


def _algorithm(root: Xml.Element) -> Algorithm:
    if root.tag != "algo":
        raise TraceError(f"it begins with <{root.tag[:40]}>", "MSCCL's begin with <algo>")
    gpus = _of(root, "ngpus", 1, _MAX_CHUNKS)
    found = Algorithm(
        root.get("name", ""), root.get("coll", ""), gpus,
        _of(root, "nchunksperloop", 1, _MAX_CHUNKS), root.get("inplace", "0") == "1",
        [], [0] * gpus, [0] * gpus,
    )  # fmt: skip
    seen: set[int] = set()
    steps = 0
    for gpu in root.findall("gpu"):
        number = _of(gpu, "id", 0, gpus - 1)
        if number in seen:
            raise TraceError(f"GPU {number} is there twice")
        seen.add(number)
        found.inputs[number] = _of(gpu, "i_chunks", 0, _MAX_CHUNKS)
        found.outputs[number] = _of(gpu, "o_chunks", 0, _MAX_CHUNKS)
        names: set[int] = set()
        for tb in gpu.findall("tb"):
            block = Block(
                number, _of(tb, "id", 0), _of(tb, "send", -1, gpus - 1),
                _of(tb, "recv", -1, gpus - 1), _of(tb, "chan", 0, _MAX_CHUNKS),
            )  # fmt: skip
            if block.id in names:
                raise TraceError(f"GPU {number}: threadblock {block.id} is there twice")
            names.add(block.id)
            for at, step in enumerate(tb.findall("step")):
                try:
                    block.steps.append(_step(step))
                except TraceError as error:
                    place = f"GPU {number}, threadblock {block.id}, step {at}"
                    raise TraceError(f"{place}: {error}") from None
            steps += len(block.steps)
            if steps > _MAX_STEPS:
                raise TraceError(f"more than {_MAX_STEPS:,} steps")
            found.blocks.append(block)
    if len(seen) != gpus:
        raise TraceError(f"it speaks of {gpus} GPUs, and has {len(seen)}")
    return found


def _step(step: Xml.Element) -> Step:
    kind = step.get("type", "")
    if kind not in _TYPES:
        raise TraceError(f"there is no type {kind[:20]!r}", f"known: {', '.join(_TYPES)}")
    places = []
    for buffer, offset in (("srcbuf", "srcoff"), ("dstbuf", "dstoff")):
        name = step.get(buffer, "i")
        if name not in _BUFFERS:
            raise TraceError(f"there is no buffer {name[:20]!r}", "they are i, o and s")
        places.append((_BUFFERS[name], _of(step, offset, -1, _MAX_CHUNKS)))
    depends = _of(step, "depid", -1), _of(step, "deps", -1)
    count = _of(step, "cnt", 0, _MAX_CHUNKS)
    return Step(
        kind, places[0], places[1], count,
        (depends[0], depends[1] + 1) if min(depends) >= 0 else None,
    )  # fmt: skip


def _of(element: Xml.Element, name: str, least: int, most: int = 1 << 31) -> int:
    return whole(element.get(name, ""), f"{element.tag} {name}", least, most)


# --- on symbols -----------------------------------------------------------------------------------


def check(algorithm: Algorithm) -> bool:
    """Carry it out on symbols; whether it is of a collective whose result is known.

    Raises if a threadblock gets stuck, or if the result is another.
    """
    memory = _carry_out(algorithm)
    if algorithm.collective not in _COLLECTIVES:
        return False
    for gpu in range(algorithm.gpus):
        for at, wanted in _promised(algorithm, gpu):
            place = _aliased(algorithm, gpu, ("o", at))
            if memory[gpu].get(place, Counter()) != wanted:
                raise TraceError(
                    f"its {algorithm.collective} leaves another chunk {at} at GPU {gpu} than it "
                    "has to: something is missing there, or twice",
                    "run it all the same with traffic.check=false",
                )
    return True


def _promised(algorithm: Algorithm, gpu: int) -> list[tuple[int, Sum]]:
    """By place of the output, what has to be there."""
    everyone = range(algorithm.gpus)
    inputs, chunks = algorithm.inputs[gpu], algorithm.chunks
    each = max(1, chunks // algorithm.gpus)
    match algorithm.collective:
        case "allreduce":
            return [(at, Counter((one, at) for one in everyone)) for at in range(chunks)]
        case "reduce_scatter":
            return [(at, Counter((one, gpu * each + at) for one in everyone)) for at in range(each)]
        case "allgather":
            part = each if algorithm.is_in_place else inputs
            return [
                (one * part + at, Counter([(one, at)])) for one in everyone for at in range(part)
            ]
        case _:
            return [
                (one * each + at, Counter([(one, gpu * each + at)]))
                for one in everyone
                for at in range(each)
            ]


def _aliased(algorithm: Algorithm, gpu: int, place: Place) -> Place:
    """The place that a name means where input and output are one."""
    buffer, at = place
    if not algorithm.is_in_place or buffer == "s":
        return place
    each = max(1, algorithm.chunks // algorithm.gpus)
    match algorithm.collective:
        case "allreduce":
            return "i", at
        case "allgather":
            return "o", at + (gpu * each if buffer == "i" else 0)
        case "reduce_scatter":
            return "i", at + (gpu * each if buffer == "o" else 0)
    return place


def _carry_out(algorithm: Algorithm) -> list[dict[Place, Sum]]:
    """Every GPU's memory afterwards."""
    memory: list[dict[Place, Sum]] = []
    each = max(1, algorithm.chunks // algorithm.gpus)
    for gpu in range(algorithm.gpus):
        gathers = algorithm.collective == "allgather"
        have = each if gathers and algorithm.is_in_place else algorithm.inputs[gpu]
        if algorithm.collective in ("allreduce", "reduce_scatter", "alltoall"):
            have = max(have, algorithm.chunks)
        memory.append(
            {
                _aliased(algorithm, gpu, ("i", at)): Counter([(gpu, at)])
                for at in range(min(have, _MAX_CHUNKS))
            }
        )
    lines: dict[tuple[int, int, int], deque[list[Sum]]] = {}
    progress = {(block.gpu, block.id): 0 for block in algorithm.blocks}
    moved = True
    while moved:
        moved = False
        for block in algorithm.blocks:
            while (at := progress[block.gpu, block.id]) < len(block.steps):
                step = block.steps[at]
                if step.wait and progress.get((block.gpu, step.wait[0]), 0) < step.wait[1]:
                    break
                if not _carry_out_step(algorithm, block, step, memory[block.gpu], lines):
                    break
                progress[block.gpu, block.id] += 1
                moved = True
    for block in algorithm.blocks:
        if progress[block.gpu, block.id] < len(block.steps):
            raise TraceError(
                f"GPU {block.gpu}, threadblock {block.id}, step {progress[block.gpu, block.id]}: "
                "it waits for ever"
            )
    for (src, dst, channel), line in lines.items():
        if line:
            raise TraceError(f"GPU {dst} does not receive all of GPU {src} on channel {channel}")
    return memory


def _carry_out_step(
    algorithm: Algorithm, block: Block, step: Step, memory: dict[Place, Sum],
    lines: dict[tuple[int, int, int], deque[list[Sum]]],
) -> bool:  # fmt: skip
    def place(of: Place, number: int) -> Place:
        return _aliased(algorithm, block.gpu, (of[0], of[1] + number))

    def had(of: Place) -> list[Sum]:
        return [memory.get(place(of, number), Counter()) for number in range(step.count)]

    values = had(step.source) if step.type not in ("r", "rcs", "nop") else []
    if step.type in _RECEIVE:
        if block.receive < 0:
            raise TraceError(f"GPU {block.gpu}, threadblock {block.id} receives of nobody")
        line = lines.setdefault((block.receive, block.gpu, block.channel), deque())
        if not line:
            return False
        came = line.popleft()
        if len(came) != step.count:
            raise TraceError(
                f"GPU {block.gpu}, threadblock {block.id}: {len(came)} chunks come, and "
                f"{step.count} are received"
            )
        values = [a + b for a, b in zip(values, came, strict=True)] if values else came
    if step.type == "re":
        values = [a + b for a, b in zip(values, had(step.target), strict=True)]
    if step.type in ("r", "rcs", "rrc", "rrcs", "cpy", "re"):
        for number, value in enumerate(values):
            memory[place(step.target, number)] = value
    if step.type in _SEND:
        if block.send < 0:
            raise TraceError(f"GPU {block.gpu}, threadblock {block.id} sends to nobody")
        lines.setdefault((block.gpu, block.send, block.channel), deque()).append(values)
    return True


# --- as deeds -------------------------------------------------------------------------------------


def _write(algorithm: Algorithm, size: int, name: str) -> Graph:
    graph = Graph(algorithm.gpus, name)
    if size < algorithm.chunks:
        raise TraceError(
            f"{size:,} bytes in {algorithm.chunks} chunks", "give bytes: at least one a chunk"
        )
    chunk = size / algorithm.chunks
    behind: dict[tuple[int, int], list[list[int]]] = {}  # by threadblock: after each step
    blocks = {(block.gpu, block.id): block for block in algorithm.blocks}
    order = deque((block.gpu, block.id, 0) for block in algorithm.blocks)
    idle = 0
    while order and idle <= len(order):
        gpu, number, at = order.popleft()
        block = blocks[gpu, number]
        done = behind.setdefault((gpu, number), [])
        idle += 1
        while at < len(block.steps):
            step = block.steps[at]
            after = list(done[-1]) if done else []
            if step.wait:
                other = behind.get((gpu, step.wait[0]), [])
                if len(other) < step.wait[1]:
                    break
                after += other[step.wait[1] - 1]
            after = list(dict.fromkeys(after))
            if step.count and step.type in _RECEIVE:
                after = [graph.receive(gpu, block.receive, tag=block.channel, after=after)]
            if step.count and step.type in _SEND:
                graph.send(
                    gpu, block.send, max(1, round(step.count * chunk)),
                    tag=block.channel, channel=block.channel, after=after,
                )  # fmt: skip
            done.append(after)
            at += 1
            idle = 0
        if at < len(block.steps):
            order.append((gpu, number, at))
    return graph
