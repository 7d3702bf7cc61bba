"""Other people's workloads: files that say what to send, read into schedules.

| file | read by |
|---|---|
| flows in a table: `start_ns,src,dst,bytes` | `table.py` |
| htsim's connection matrices, `.cm` | `htsim.py` |
| GOAL, of LogGOPSim and ATLAHS | `goal.py` |
| Chakra's execution traces, `NAME.RANK.et` | `chakra.py` |
| MSCCL's schedules, `.xml` | `msccl.py` |
| AICB's and SimAI's layers | `aicb.py` |

Each reader fills a `graph.Graph`, which becomes a schedule when all of it is known. `specs.py` has
what a scenario's ``traffic:`` may say of them, `guess.py` knows which file is which.
"""

from traffic.traces.graph import TraceError
from traffic.traces.guess import UnknownKindError, kind_of
from traffic.traces.specs import (
    AicbSpec,
    ChakraSpec,
    FlowTableSpec,
    GoalSpec,
    HtsimSpec,
    MscclSpec,
    Ns3Spec,
    TraceSpec,
)

__all__ = [
    "AicbSpec",
    "ChakraSpec",
    "FlowTableSpec",
    "GoalSpec",
    "HtsimSpec",
    "MscclSpec",
    "Ns3Spec",
    "TraceError",
    "TraceSpec",
    "UnknownKindError",
    "kind_of",
]
