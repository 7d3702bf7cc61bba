"""Graphs of fabrics, and every name and address that follows from them."""

from topologies.draw import dot, draw
from topologies.fabric import (
    Address,
    Fabric,
    IpVersion,
    Link,
    Network,
    Node,
    NodeKind,
    Speed,
    TopologyError,
)
from topologies.fat_tree import fat_tree
from topologies.leaf_spine import leaf_spine
from topologies.rail import rail
from topologies.tutorial import Imported, import_tutorial, read_tutorial

__all__ = [
    "Address",
    "Fabric",
    "Imported",
    "IpVersion",
    "Link",
    "Network",
    "Node",
    "NodeKind",
    "Speed",
    "TopologyError",
    "dot",
    "draw",
    "fat_tree",
    "import_tutorial",
    "leaf_spine",
    "rail",
    "read_tutorial",
]
