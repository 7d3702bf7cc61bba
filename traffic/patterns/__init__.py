"""Patterns: flows that belong to no collective, as schedules."""

from traffic.patterns.flows import (
    Flow,
    FlowSet,
    elephants,
    incast,
    north_south,
    permutation,
    poisson,
    udp_source_port,
)
from traffic.patterns.sizes import SIZES, SizeDistribution, size_distribution
from traffic.patterns.specs import (
    ElephantsSpec,
    FlowsSpec,
    IncastSpec,
    NorthSouthSpec,
    PermutationSpec,
    PoissonSpec,
)
from traffic.patterns.storage import StorageSpec

__all__ = [
    "SIZES",
    "ElephantsSpec",
    "Flow",
    "FlowSet",
    "FlowsSpec",
    "IncastSpec",
    "NorthSouthSpec",
    "PermutationSpec",
    "PoissonSpec",
    "SizeDistribution",
    "StorageSpec",
    "elephants",
    "incast",
    "north_south",
    "permutation",
    "poisson",
    "size_distribution",
    "udp_source_port",
]
