"""Graphs of fabrics, and every name and address that follows from them.

Private, as all but `closlab.py` is: it may change from one commit to the next.
"""

from topologies.cabling import Imported
from topologies.containerlab import is_containerlab, read_containerlab
from topologies.described import Described
from topologies.dragonfly import dragonfly
from topologies.draw import dot, draw
from topologies.dual_tor import dual_tor
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
from topologies.graphml import NotGraphMLError, import_graphml
from topologies.htsim_topo import import_topo
from topologies.infragraph import devices_missing, import_infragraph
from topologies.leaf_spine import leaf_spine
from topologies.minigraph import is_minigraph, read_minigraph
from topologies.netlab import is_netlab, read_netlab
from topologies.networkx_graph import import_networkx
from topologies.ns3_topo import export_ns3, import_ns3
from topologies.planes import planes
from topologies.rail import rail
from topologies.tutorial import import_tutorial
from topologies.two_fabrics import two_fabrics

__all__ = [
    "Address",
    "Described",
    "Fabric",
    "Imported",
    "IpVersion",
    "Link",
    "Network",
    "Node",
    "NodeKind",
    "NotGraphMLError",
    "Speed",
    "TopologyError",
    "devices_missing",
    "dot",
    "dragonfly",
    "draw",
    "dual_tor",
    "export_ns3",
    "fat_tree",
    "import_graphml",
    "import_infragraph",
    "import_networkx",
    "import_ns3",
    "import_topo",
    "import_tutorial",
    "is_containerlab",
    "is_minigraph",
    "is_netlab",
    "leaf_spine",
    "planes",
    "rail",
    "read_containerlab",
    "read_minigraph",
    "read_netlab",
    "two_fabrics",
]
