"""Collectives as schedules: frozen graphs of transfers that every engine can run.

`collective` says what is to be done, `add_collective` writes it into a `Schedule`, `prove` shows
that right, `AlphaBeta` runs it on an ideal fabric, an algorithm's `bound` says how long that should
take.
"""

from traffic.collectives.algorithms import (
    ALGORITHMS,
    add_collective,
    channel_room,
    collective,
)
from traffic.collectives.alphabeta import AlphaBeta
from traffic.collectives.collective import IN_NETWORK, Collective
from traffic.collectives.errors import (
    AlgorithmError,
    PlacementError,
    RankError,
    ScheduleError,
    SizeError,
    SpecError,
    TrafficError,
)
from traffic.collectives.groups import ParallelGroups, check_partition
from traffic.collectives.local import LocalTransfer, local_part
from traffic.collectives.network import CHUNK_BYTES, chunks_of
from traffic.collectives.paths import Paths
from traffic.collectives.schedule import (
    Activity,
    Mode,
    Schedule,
    ScheduleBuilder,
    Transfer,
    merge,
)
from traffic.collectives.spec import (
    ClassedSpec,
    CollectiveOptions,
    CollectiveSpec,
    Site,
    Spec,
)
from traffic.collectives.symbolic import prove
from traffic.collectives.timeline import NEVER, Timeline
from traffic.collectives.wording import complaint

__all__ = [
    "ALGORITHMS",
    "CHUNK_BYTES",
    "IN_NETWORK",
    "NEVER",
    "Activity",
    "AlgorithmError",
    "AlphaBeta",
    "ClassedSpec",
    "Collective",
    "CollectiveOptions",
    "CollectiveSpec",
    "LocalTransfer",
    "Mode",
    "ParallelGroups",
    "Paths",
    "PlacementError",
    "RankError",
    "Schedule",
    "ScheduleBuilder",
    "ScheduleError",
    "Site",
    "SizeError",
    "Spec",
    "SpecError",
    "Timeline",
    "TrafficError",
    "Transfer",
    "add_collective",
    "channel_room",
    "check_partition",
    "chunks_of",
    "collective",
    "complaint",
    "local_part",
    "merge",
    "prove",
]
