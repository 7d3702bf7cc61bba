"""Graphs of fabrics, and every name and address that follows from them."""

from topologies.fabric import Fabric, Link, Node, NodeKind, Speed, TopologyError
from topologies.leaf_spine import leaf_spine

__all__ = ["Fabric", "Link", "Node", "NodeKind", "Speed", "TopologyError", "leaf_spine"]
