"""Random programs of ranks, how long they take by a model of their own, and traces that tell them.

A message takes `ALPHA_NS` whatever its size: `fabric` has links so fast that sizes do not count.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from params.data import Data
from traffic.collectives.alphabeta import AlphaBeta

ALPHA_NS = 1000
fabric = AlphaBeta(alpha_ns=ALPHA_NS, rate_gbps=1e9)


class Deed(Data, frozen=False):
    """What a rank does: for work how long, of messages with whom."""

    rank: int
    kind: str
    after: list[int]
    lasts_ns: int = 0
    peer: int = 0
    size: int = 0
    tag: int = 0


def random_program(chance: Random, step_ns: int = 1) -> tuple[int, list[Deed]]:
    """Ranks, and deeds that can all be done: each waits for earlier ones of its rank."""
    ranks = chance.randint(2, 6)
    deeds: list[Deed] = []
    tags = chance.choice([1, 3])
    for _ in range(chance.randint(1, 40)):
        rank = chance.randrange(ranks)
        after = _some(chance, deeds, rank)
        if chance.random() < 0.4:
            lasts = step_ns * chance.randint(1, 5000)
            deeds.append(Deed(rank, "calc", after, lasts_ns=lasts))
            continue
        peer = (rank + chance.randint(1, ranks - 1)) % ranks
        size, tag = chance.randint(1, 1000), chance.randrange(tags)
        deeds.append(Deed(rank, "send", after, peer=peer, size=size, tag=tag))
        after = _some(chance, deeds, peer)
        deeds.append(Deed(peer, "recv", after, peer=rank, size=size, tag=tag))
    deeds += [Deed(rank, "calc", [], lasts_ns=step_ns) for rank in range(ranks)]
    return ranks, deeds


def _some(chance: Random, deeds: list[Deed], rank: int) -> list[int]:
    mine = [at for at, deed in enumerate(deeds) if deed.rank == rank]
    return sorted(chance.sample(mine, min(len(mine), chance.randint(0, 3))))


def longest_ns(deeds: list[Deed]) -> int:
    """When the last of them is over: the longest way through what waits for what."""
    over: list[int] = []
    sent: dict[tuple[int, int, int], list[int]] = {}
    for deed in deeds:
        begin = max((over[at] for at in deed.after), default=0)
        if deed.kind == "calc":
            over.append(begin + deed.lasts_ns)
        elif deed.kind == "send":
            over.append(begin + ALPHA_NS)
            sent.setdefault((deed.rank, deed.peer, deed.tag), []).append(over[-1])
        else:
            over.append(max(begin, sent[deed.peer, deed.rank, deed.tag].pop(0)))
    return max(over)


def as_goal(ranks: int, deeds: list[Deed], chance: Random) -> str:
    """The same in GOAL; what waits for what stands anywhere below both."""
    text = [f"num_ranks {ranks}", "// a comment { } "]
    for rank in range(ranks):
        text.append(f"rank {rank} {{")
        waits = []
        for at, deed in enumerate(deeds):
            if deed.rank != rank:
                continue
            if deed.kind == "calc":
                text.append(f"  l{at}: calc {deed.lasts_ns} cpu {chance.randint(0, 3)}")
            else:
                word = "to" if deed.kind == "send" else "from"
                text.append(f"  l{at}: {deed.kind} {deed.size}b {word} {deed.peer} tag {deed.tag}")
            waits += [f"  l{at} requires l{one}" for one in deed.after]
        text += [*waits, "}"]
    return "\n".join(text)


# --- Chakra, by another hand ----------------------------------------------------------------------

_FIELDS = descriptor_pb2.FieldDescriptorProto


def _messages() -> tuple[type, type]:
    """The trace's own message and a node, for protobuf's library."""
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="et", syntax="proto3")
    file.message_type.add(name="Metadata").field.add(
        name="version", number=1, type=_FIELDS.TYPE_STRING, label=_FIELDS.LABEL_OPTIONAL
    )
    attribute = file.message_type.add(name="Attribute")
    attribute.oneof_decl.add(name="value")
    attribute.field.add(
        name="name", number=1, type=_FIELDS.TYPE_STRING, label=_FIELDS.LABEL_OPTIONAL
    )
    for name, number, kind in (
        ("int32", 7, _FIELDS.TYPE_INT32), ("int64", 9, _FIELDS.TYPE_INT64),
        ("uint32", 11, _FIELDS.TYPE_UINT32), ("uint64", 13, _FIELDS.TYPE_UINT64),
        ("sint64", 17, _FIELDS.TYPE_SINT64), ("fixed32", 19, _FIELDS.TYPE_FIXED32),
        ("sfixed64", 25, _FIELDS.TYPE_SFIXED64), ("bool", 27, _FIELDS.TYPE_BOOL),
        ("string", 29, _FIELDS.TYPE_STRING), ("double", 3, _FIELDS.TYPE_DOUBLE),
    ):  # fmt: skip
        attribute.field.add(
            name=f"{name}_val", number=number, type=kind, label=_FIELDS.LABEL_OPTIONAL,
            oneof_index=0,
        )  # fmt: skip
    node = file.message_type.add(name="Node")
    for name, number, kind, label in (
        ("id", 1, _FIELDS.TYPE_UINT64, _FIELDS.LABEL_OPTIONAL),
        ("name", 2, _FIELDS.TYPE_STRING, _FIELDS.LABEL_OPTIONAL),
        ("type", 3, _FIELDS.TYPE_INT32, _FIELDS.LABEL_OPTIONAL),
        ("ctrl_deps", 4, _FIELDS.TYPE_UINT64, _FIELDS.LABEL_REPEATED),
        ("data_deps", 5, _FIELDS.TYPE_UINT64, _FIELDS.LABEL_REPEATED),
        ("duration_micros", 7, _FIELDS.TYPE_UINT64, _FIELDS.LABEL_OPTIONAL),
    ):
        node.field.add(name=name, number=number, type=kind, label=label)
    node.field.add(
        name="attr", number=10, type=_FIELDS.TYPE_MESSAGE, label=_FIELDS.LABEL_REPEATED,
        type_name=".et.Attribute",
    )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return tuple(  # type: ignore[return-value]
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"et.{name}"))
        for name in ("Metadata", "Node")
    )


Metadata, Node = _messages()


def length_prefixed(message: object) -> bytes:
    data = message.SerializeToString()  # type: ignore[attr-defined]
    length, out = len(data), bytearray()
    while length >= 128:
        out.append(length & 127 | 128)
        length >>= 7
    return bytes(bytes([*out, length]) + data)


def parsed(data: bytes) -> list[Any]:
    """The nodes of a file, as protobuf's library reads them."""
    found: list[Any] = []
    at = 0
    while at < len(data):
        length = shift = 0
        while True:
            length |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                break
        found.append((Node if found else Metadata)())
        found[-1].ParseFromString(data[at : at + length])
        at += length
    return found[1:]


def as_chakra(ranks: int, deeds: list[Deed], folder: Path, chance: Random) -> None:
    """The same as execution traces; nodes stand in any order, and attributes have any type."""
    kinds = {"calc": 4, "send": 5, "recv": 6}
    for rank in range(ranks):
        nodes = []
        for at, deed in enumerate(deeds):
            if deed.rank != rank:
                continue
            node = Node(id=at + 1, name=f"{deed.kind} {at}", type=kinds[deed.kind])
            for one in deed.after:
                chance.choice([node.ctrl_deps, node.data_deps]).append(one + 1)
            if deed.kind == "calc":
                node.duration_micros = deed.lasts_ns // 1000
                node.attr.add(name="is_cpu_op", bool_val=True)
            else:
                ends = (rank, deed.peer) if deed.kind == "send" else (deed.peer, rank)
                about = {"comm_src": ends[0], "comm_dst": ends[1], "comm_size": deed.size,
                         "comm_tag": deed.tag}  # fmt: skip
                for name, value in about.items():
                    kind = chance.choice(["int32", "int64", "uint32", "uint64", "sint64",
                                          "fixed32", "sfixed64"])  # fmt: skip
                    node.attr.add(name=name, **{f"{kind}_val": value})
            nodes.append(node)
        messages = [Metadata(version="0.0.4"), *nodes]
        (folder / f"trace.{rank}.et").write_bytes(b"".join(map(length_prefixed, messages)))
