"""Chakra's execution traces: what each rank computes and sends, one file a rank.

`NAME.0.et`, `NAME.1.et` and so on, each perhaps compressed by gzip: a length and a message, again
and again. The first message is the trace's own (its version), every other a node: what it is,
what it waits for, how long it lasts, and attributes by name. Process groups stand in a JSON file,
`{"0": [0, 1, 2, 3], ...}`; a collective names one of them, or is everybody's.

Time is a node's duration; a compute node without one lasts as long as its operations take at so
many TFLOP/s. Sizes of collectives are ASTRA-sim's: what a rank puts in, so that an all-gather ends
with as many times more as there are ranks.
"""

from __future__ import annotations

import gzip
import re
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from google.protobuf import proto
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FieldOptions,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from files import FileError, opened, parse_json
from params.data import Data
from traffic.collectives import Schedule
from traffic.traces.graph import Graph, TraceError
from traffic.traces.text import MAX_BYTES, text_of

VERSION = "0.0.4"
_MAX_MESSAGE = 64_000_000
_RANK_FILE = re.compile(r"(?P<name>.+)\.(?P<rank>\d{1,5})\.et(\.gz)?", re.ASCII)

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
_KINDS = range(8)
_OPS = {
    0: "all-reduce", 2: "all-gather", 5: "broadcast", 6: "all-to-all", 7: "reduce-scatter",
    9: "barrier",
}  # fmt: skip
_OP_NAMES = {1: "reduce", 3: "gather", 4: "scatter", 8: "reduce-scatter by blocks"}

# What an attribute's value may be, by its field.
_VALUES = {
    3: "double", 5: "float", 7: "int32", 9: "int64", 11: "uint32", 13: "uint64", 15: "sint32",
    17: "sint64", 19: "fixed32", 21: "fixed64", 23: "sfixed32", 25: "sfixed64", 27: "bool",
    29: "string",
}  # fmt: skip


def _message_classes() -> tuple[Any, Any]:
    """Of what a file begins with, and of a node, as far as they are read or written here."""
    file = FileDescriptorProto(name="chakra.proto", package="chakra", syntax="proto2")

    def add(message: DescriptorProto, number: int, name: str, kind: str, **more: Any) -> None:
        type_ = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
        message.field.add(name=name, number=number, type=type_, **more)

    begin = file.message_type.add(name="GlobalMetadata")
    add(begin, 1, "version", "string")
    attribute = file.message_type.add(name="AttributeProto")
    attribute.oneof_decl.add(name="value")
    add(attribute, 1, "name", "string")
    for number, kind in _VALUES.items():
        add(attribute, number, f"{kind}_val", kind, oneof_index=0)
    node = file.message_type.add(name="Node")
    several, packed = FieldDescriptorProto.LABEL_REPEATED, FieldOptions(packed=True)
    add(node, 1, "id", "uint64")
    add(node, 2, "name", "string")
    add(node, 3, "type", "uint64")
    add(node, 4, "ctrl_deps", "uint64", label=several, options=packed)
    add(node, 5, "data_deps", "uint64", label=several, options=packed)
    add(node, 7, "duration_micros", "uint64")
    add(node, 10, "attr", "message", label=several, type_name=".chakra.AttributeProto")
    pool = DescriptorPool()
    pool.Add(file)
    begun, made = (pool.FindMessageTypeByName(f"chakra.{each.name}") for each in (begin, node))
    return GetMessageClass(begun), GetMessageClass(made)


_Metadata, _Node = _message_classes()


class Node(Data):
    """What a rank does: compute, send, receive, or take part in a collective."""

    id: int
    name: str
    kind: int
    waits: list[int]
    duration_us: int
    attributes: dict[str, int | float | str]


# --- files ----------------------------------------------------------------------------------------


def files_of(path: Path) -> list[Path]:
    """The ranks' files, by rank: of a folder, of one of them, or of the name they begin with."""
    folder, name = (path, None) if path.is_dir() else (path.parent, path.name)
    found = _RANK_FILE.fullmatch(path.name)
    if found and name is not None:
        name = found["name"]
    ranks: dict[int, Path] = {}
    try:
        for entry in sorted(folder.iterdir()):
            match = _RANK_FILE.fullmatch(entry.name)
            if match and (name is None or match["name"] == name):
                if int(match["rank"]) in ranks:
                    raise TraceError(
                        f"{folder} has traces of several names",
                        "give the path of one of their files",
                    )
                ranks[int(match["rank"])] = entry
    except OSError as error:
        raise TraceError(f"{folder} cannot be read: {error.strerror}") from None
    if not ranks:
        raise TraceError(f"{path}: no traces are there", "they are called NAME.RANK.et")
    missing = next((rank for rank in range(max(ranks) + 1) if rank not in ranks), None)
    if missing is not None:
        raise TraceError(f"{path}: the trace of rank {missing} is missing")
    return [ranks[rank] for rank in range(len(ranks))]


def nodes_of(path: Path) -> Iterator[Node]:
    """A file's nodes, one at a time."""
    at = 0
    try:
        with opened(path, MAX_BYTES) as plain:
            packed = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            with gzip.GzipFile(fileobj=plain) if packed else plain as file:
                for at, message in enumerate(_messages(file)):
                    if at:
                        yield _node(message)
    except FileError as error:
        raise TraceError(str(error)) from None
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}") from None
    except (DecodeError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: message {at + 1} is no node of a trace: {error}") from None


def _messages(file: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    read = 0
    while (length := _length(file)) is not None:
        read += length
        if length > _MAX_MESSAGE or read > MAX_BYTES:
            raise DecodeError(f"more than {_MAX_MESSAGE:,} bytes")
        data = file.read(length)
        if len(data) < length:
            raise DecodeError("the file ends within it")
        yield data


def _length(file: BinaryIO | gzip.GzipFile) -> int | None:
    """Of the message that follows, as a varint; None at the end."""
    length = shift = 0
    while byte := file.read(1):
        length |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return length
        shift += 7
        if shift == 70:
            raise DecodeError("a length without an end")
    if shift:
        raise DecodeError("a length that is cut off")
    return None


def _node(message: bytes) -> Node:
    node = _Node.FromString(message)
    waits = [*node.ctrl_deps, *node.data_deps]
    values = {each.name: getattr(each, kind)
              for each in node.attr if (kind := each.WhichOneof("value"))}  # fmt: skip
    return Node(node.id, node.name, node.type, waits, node.duration_micros, values)


def read_groups(path: Path) -> dict[str, list[int]]:
    """A file of process groups."""
    try:
        content = parse_json(text_of(path))
    except ValueError as error:
        raise TraceError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict) or not all(
        isinstance(ranks, list) and ranks and all(type(rank) is int for rank in ranks)
        for ranks in content.values()
    ):
        raise TraceError(f"{path} names no groups", 'write {"0": [0, 1, 2, 3], ...}')
    return content


# --- what they mean -------------------------------------------------------------------------------


def read(path: Path, groups: Mapping[str, list[int]] | None = None, tflops: float = 0) -> Graph:
    """What the ranks of a trace do."""
    files = files_of(path)
    graph = Graph(len(files), path.name.partition(".")[0] or "trace")
    for rank, file in enumerate(files):
        deeds: dict[int, int] = {}
        for node in _after_what_they_wait_for(nodes_of(file), file):
            graph.turn = node.id
            after = list(dict.fromkeys(deeds[wait] for wait in node.waits))
            try:
                deeds[node.id] = _write(graph, rank, node, after, groups or {}, tflops)
            except TraceError as error:
                raise TraceError(f"{file}: node {node.id}: {error}") from None
    if not len(graph):
        raise TraceError(f"{path} says nothing to do")
    return graph


def _write(
    graph: Graph, rank: int, node: Node, after: list[int], groups: Mapping[str, list[int]],
    tflops: float,
) -> int:  # fmt: skip
    if node.kind not in _KINDS:
        raise TraceError(f"it is of the unknown kind {node.kind}")
    if node.kind in (SEND, RECEIVE):
        ends = [_number(node, name, -1) for name in ("comm_src", "comm_dst")]
        tag = _number(node, "comm_tag", 0)
        if ends[node.kind == RECEIVE] not in (rank, -1):
            raise TraceError(f"rank {rank} has a message of another's, rank {ends[0]} to {ends[1]}")
        if node.kind == SEND:
            return graph.send(rank, ends[1], max(1, _size(node)), tag=tag, after=after)
        return graph.receive(rank, ends[0], tag=tag, after=after)
    if node.kind == COLLECTIVE:
        return _write_collective(graph, rank, node, after, groups)
    duration_ns = node.duration_us * 1000
    operations = node.attributes.get("num_ops", 0)
    if node.kind == COMPUTE and not duration_ns and isinstance(operations, int | float):
        if operations and not tflops:
            raise TraceError(
                f"'{node.name[:40]}' has operations and no duration",
                "say how fast a rank computes: tflops",
            )
        duration_ns = round(operations / tflops / 1000) if operations else 0
    if not 0 <= duration_ns <= 10**15:
        raise TraceError(f"it lasts {duration_ns:,} ns")
    return graph.work(rank, duration_ns, after=after)


def _write_collective(
    graph: Graph, rank: int, node: Node, after: list[int], groups: Mapping[str, list[int]]
) -> int:
    kind = _number(node, "comm_type", -1)
    if kind not in _OPS:
        known = _OP_NAMES.get(kind, f"of the type {kind}")
        raise TraceError(f"a collective '{known}' is not known here")
    name = str(node.attributes.get("pg_name", ""))
    if name and name not in groups:
        if groups:
            raise TraceError(
                f"there is no group {name[:40]!r}", f"known: {', '.join(groups)}"[:200]
            )
        raise TraceError(f"its group is {name[:40]!r}", "give the file of groups: groups")
    members = groups[name] if name else range(graph.ranks)
    op = _OPS[kind]
    size = 0 if op == "barrier" else max(1, _size(node))
    if op == "all-gather":
        size *= len(members)
    root = _number(node, "root_rank", members[0]) if op == "broadcast" else 0
    return graph.collective(rank, op, members, size, root=root, after=after)


def _number(node: Node, name: str, usual: int) -> int:
    found = node.attributes.get(name, usual)
    if isinstance(found, str) and found.lstrip("-").isdigit() and len(found) < 20:
        found = int(found)
    if not isinstance(found, int) or not -(1 << 31) <= found < 1 << 31:
        raise TraceError(f"its {name} is {str(found)[:40]!r}")
    return found


def _size(node: Node) -> int:
    found = node.attributes.get("comm_size", 0)
    if not isinstance(found, int) or not 0 <= found <= 1 << 40:
        raise TraceError(f"its comm_size is {str(found)[:40]!r}")
    return found


def _after_what_they_wait_for(nodes: Iterable[Node], file: Path) -> Iterator[Node]:
    """The nodes, each after those it waits for; files need not have them in that order."""
    over: set[int] = set()
    held: dict[int, list[Node]] = {}  # by what it waits for
    seen: set[int] = set()
    for node in nodes:
        if node.id in seen:
            raise TraceError(f"{file}: two nodes have the number {node.id}")
        seen.add(node.id)
        ready = [node]
        while ready:
            one = ready.pop()
            missing = next((wait for wait in one.waits if wait not in over), None)
            if missing is not None:
                held.setdefault(missing, []).append(one)
                continue
            yield one
            over.add(one.id)
            ready += reversed(held.pop(one.id, []))
    if held:
        wait, (stuck, *_) = next(iter(held.items()))
        why = "waits in a circle" if wait in seen else f"waits for {wait}, which is not there"
        raise TraceError(f"{file}: node {stuck.id} {why}")


# --- the other way round --------------------------------------------------------------------------


def write(schedule: Schedule, path: Path) -> list[Path]:
    """A schedule as traces, a file a rank: sends, receives and work, collectives taken apart.

    A message's node has one number on both sides, which is its tag too. What is read from them and
    written again makes the same files.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    nodes = _numbered(schedule)
    written = []
    for rank in range(schedule.ranks):
        file = path.with_name(f"{path.name}.{rank}.et")
        out = BytesIO()
        proto.serialize_length_prefixed(_Metadata(version=VERSION), out)
        mine = sorted({*schedule.starts(rank), *schedule.arrivals(rank)})
        for number in mine:
            for node in _nodes_for(schedule, rank, number, nodes):
                proto.serialize_length_prefixed(node, out)
        file.write_bytes(out.getvalue())
        written.append(file)
    return written


def _numbered(schedule: Schedule) -> array[int]:
    """By transfer: the node it ends with. One that only waits for another is that one's."""
    nodes = array("i")
    free = 0
    for number, (src, dst) in enumerate(zip(schedule.src, schedule.dst, strict=True)):
        if src == dst and _awaited(schedule, number, nodes, most=1):
            nodes.append(nodes[schedule.waits(number)[0]])
            continue
        if src != dst and schedule.delay_ns[number]:
            free += 1  # what passes before it begins is a node of its own
        nodes.append(free)
        free += 1
    return nodes


def _awaited(schedule: Schedule, number: int, nodes: array[int], most: int = 0) -> list[int]:
    """The nodes a transfer waits for; with ``most``: if it does nothing but wait for so many."""
    waits = list(dict.fromkeys(nodes[wait] for wait in schedule.waits(number)))
    return [] if most and (schedule.delay_ns[number] or len(waits) != most) else waits


def _nodes_for(schedule: Schedule, rank: int, number: int, nodes: array[int]) -> Iterator[Any]:
    """A transfer as one of its ends has it; the wait before it begins is a node of its own."""
    src, dst, delay_ns = schedule.src[number], schedule.dst[number], schedule.delay_ns[number]
    is_work, is_sent = src == dst, src == rank
    waits, node = _awaited(schedule, number, nodes), nodes[number]
    if is_work and waits and node in waits:
        return
    if is_work or (delay_ns and is_sent):
        # Durations are whole microseconds: what is less is rounded, and never lost altogether.
        micros = max(1, round(delay_ns / 1000)) if delay_ns else 0
        before = node if is_work else node - 1
        yield _encoded(before, f"work {before}", COMPUTE, waits, micros, {"num_ops": 0})
        waits = [before]
    if is_work:
        return
    about = {
        "comm_src": src, "comm_dst": dst, "comm_size": schedule.size[number], "comm_tag": node,
    }  # fmt: skip
    name, kind = (f"to {dst}", SEND) if is_sent else (f"from {src}", RECEIVE)
    yield _encoded(node, name, kind, waits if is_sent else [], 0, about)


def _encoded(
    number: int, name: str, kind: int, waits: list[int], micros: int, about: Mapping[str, int]
) -> Any:
    node = _Node(id=number, name=name, type=kind, data_deps=waits, duration_micros=micros or None)
    node.attr.add(name="is_cpu_op", bool_val=False)
    for key, value in about.items():
        node.attr.add(name=key, int64_val=value)
    return node
