"""Pictures of fabrics: DOT text, and PNG, SVG or PDF where Graphviz is installed.

DOT is plain text that any tool reads, so nothing is needed to write it. The rest needs Graphviz's
`dot` program: a drawing library just for pictures would weigh more than all else that is installed.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from topologies.fabric import Fabric, Node, NodeKind, TopologyError

_SHAPES = {NodeKind.HOST: "ellipse"}
_BY_GRAPHVIZ = ".png", ".svg", ".pdf"
_DRAW_S = 60


def dot(fabric: Fabric) -> str:
    """A fabric as DOT: hosts at the bottom, cores at the top, ports at the ends of the cables."""
    return "\n".join(_lines(fabric)) + "\n"


def _lines(fabric: Fabric) -> Iterator[str]:
    yield "graph fabric {"
    yield "  rankdir=BT; nodesep=0.2; ranksep=1.2;"
    yield '  node [fontname="sans-serif"]; edge [fontname="sans-serif", fontsize=8];'
    nodes: list[Node] = sorted((*fabric.hosts, *fabric.switches))
    for plane in range(fabric.planes if fabric.planes > 1 else 0):
        names = "; ".join(str(node) for node in fabric.switches if fabric.plane_of(node) == plane)
        yield f'  subgraph cluster_{plane + 1} {{ label="plane {plane + 1}"; {names}; }}'
    for kind, tier in groupby(nodes, key=lambda node: node.kind):
        names = "; ".join(f"{node} [shape={_SHAPES.get(kind, 'box')}]" for node in tier)
        yield f"  {{ rank=same; {names}; }}"
    for link in fabric.links:
        yield f"  {link.a} -- {link.b} [taillabel={link.a_port}, headlabel={link.b_port}];"
    yield "}"


def draw(fabric: Fabric, path: Path) -> None:
    """Write a fabric's picture: `.dot` as text, the other kinds by Graphviz."""
    if path.suffix == ".dot":
        path.write_text(dot(fabric))
        return
    if path.suffix not in _BY_GRAPHVIZ:
        raise TopologyError(f"{path}: a picture is .dot, {', '.join(_BY_GRAPHVIZ)}")
    program = shutil.which("dot")
    if program is None:
        raise TopologyError(
            f"{path}: drawing needs Graphviz, which is not installed: apt-get install graphviz, "
            "or write .dot and draw it elsewhere"
        )
    done = subprocess.run(
        [program, f"-T{path.suffix[1:]}", "-o", str(path)],
        input=dot(fabric),
        text=True,
        capture_output=True,
        timeout=_DRAW_S,
        check=False,
    )
    if done.returncode:
        raise TopologyError(f"{path}: Graphviz refused: {done.stderr.strip()}")
