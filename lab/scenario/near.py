"""What a file is nearest to that is of no known kind: by its name's end, and by words in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from files import FileError, opened

_START, _LONGEST = 1 << 16, 1 << 50  # what is looked at, of files of any length
_MAX = 2  # kinds that are named


class Kind(NamedTuple):
    """A kind of file."""

    what: str
    suffixes: tuple[str, ...]
    words: tuple[str, ...]
    begins: str  # how one is told


WORKLOADS = (
    Kind("flows in a table", (".csv", ".tsv"),
          ("start", "src", "source", "dst", "dest", "destination", "bytes", "size"),
          "its first line names the columns start_ns,src,dst,bytes"),
    Kind("htsim's connection matrix", (".cm",), ("Nodes", "Connections", "Triggers", "->"),
          "it begins with 'Nodes N' and 'Connections M'"),
    Kind("flows of ns-3", ("flow.txt",), ("flow", "pg", "dport"),
          "its first line says how many flows follow, as: src dst pg dport bytes start"),
    Kind("GOAL", (".goal",), ("num_ranks", "rank", "calc", "requires", "irequires", "recv"),
          "it begins with 'num_ranks N'"),
    Kind("execution traces of Chakra", (".et", ".gz"), ("COMM_COLL_NODE", "comm_size", "ctrl_deps"),
          "its files are called NAME.RANK.et"),
    Kind("a schedule of MSCCL", (".xml",), ("algo", "gpu", "tb", "nchunksperloop", "threadblock"),
          "its first element is <algo>"),
    Kind("a workload of AICB", (".txt",),
          ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL", "NONE", "all_gpus"),
          "it begins with HYBRID_TRANSFORMER_FWD_IN_BCKWD or MICRO"),
)  # fmt: skip
FABRICS = (
    Kind("the P4 tutorials' topology.json", (".json",), ("hosts", "switches", "links"),
          "it has hosts, switches and links"),
    Kind("a graph of networkx", (".json",),
          ("nodes", "edges", "adjacency", "multigraph", "directed", "source", "target"),
          "it has nodes, and links, edges or adjacency"),
    Kind("GraphML", (".graphml",), ("graphml", "graph", "node", "edge"),
          "its first element is <graphml>"),
    Kind("a fat tree of htsim", (".topo",), ("Nodes", "Tiers", "Podsize", "Tier", "Radix_Down"),
          "it has Nodes, Tiers and Podsize"),
    Kind("a topology of ns-3", ("topology.txt",), ("Gbps", "us", "ms", "ns"),
          "its first line says how many nodes, switches and cables there are"),
    Kind("an InfraGraph", (".yaml", ".yml"),
          ("infrastructure", "devices", "device", "instances", "components", "connections"),
          "it has devices, instances, links, and edges or connections"),
)  # fmt: skip
_SCENARIO = Kind(
    "a scenario of the lab", (".yaml", ".yml"), ("topology", "traffic", "transport", "about"),
    "closlab run FILE runs it, closlab list FILE says what is wrong with it",
)  # fmt: skip


def nearest_kinds(path: Path, kinds: tuple[Kind, ...]) -> str:
    """What a file is most like, in words; nothing, if it is like none of them."""
    try:
        with opened(path, _LONGEST) as file:
            text = file.read(_START).decode(errors="replace")
    except (FileError, OSError):
        text = ""
    said = set(re.findall(r"->|[A-Za-z_]+", text))
    likeness = {
        kind: 2 * any(path.name.endswith(end) for end in kind.suffixes)
        + 3 * sum(word in said for word in kind.words) / len(kind.words)
        for kind in (*kinds, _SCENARIO)
    }
    most = max(likeness.values())
    near = [kind for kind, how in likeness.items() if how and how >= 0.8 * most][:_MAX]
    return "; or ".join(f"{kind.what}: {kind.begins}" for kind in near)
