"""The P4Runtime server of a switch.

A reading order: `service` takes gRPC requests to a `device`, which asks `arbitration` who may
write and keeps a `pipeline` with its `entities`. Those send each update through `tables`,
`profiles`, `replication`, `externs` and `digests` into a `batch` for the data plane. `programs`
builds what a pipeline runs; `symbols` is the P4Info, indexed; `keys`, `actions`, `values` and
`p4data` translate between the wire and the data plane; `packetio`, `digests` and `idle` make the
messages a switch sends of its own accord.
"""

from switch.p4runtime.device import Device
from switch.p4runtime.service import ServeError, Server, Tls

__all__ = ["Device", "ServeError", "Server", "Tls"]
