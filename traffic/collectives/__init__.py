"""Collectives as schedules: frozen graphs of transfers that every engine can run.

`collective` says what is to be done, `schedule_of` writes it as a `Schedule`, `prove` shows the
schedule right, `AlphaBeta` runs it on an ideal fabric, `bound_ns` says how long that should take.
"""

from traffic.collectives.algorithms import (
    ALGORITHMS,
    add_collective,
    bound_ns,
    channel_room,
    collective,
    schedule_of,
)
from traffic.collectives.alphabeta import AlphaBeta
from traffic.collectives.collective import Collective
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
from traffic.collectives.schedule import (
    Activity,
    Mode,
    Schedule,
    ScheduleBuilder,
    Transfer,
    merge,
)
from traffic.collectives.spec import ClassedSpec, CollectiveOptions, CollectiveSpec, Site, Spec
from traffic.collectives.symbolic import prove
from traffic.collectives.timeline import NEVER, Timeline
from traffic.collectives.wording import complaint

__all__ = [
    "ALGORITHMS",
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
    "bound_ns",
    "channel_room",
    "check_partition",
    "collective",
    "complaint",
    "local_part",
    "merge",
    "prove",
    "schedule_of",
]
