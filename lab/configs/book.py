"""The rules' book: what each looks for, in a line, and where one reads on."""

from __future__ import annotations

from typing import NamedTuple

_CONFIG = "sonic-buildimage, src/sonic-yang-models/doc/Configuration.md"
_YANG = "sonic-buildimage, src/sonic-yang-models/yang-models/sonic-{}.yang"
_PFC = "IEEE 802.1Q, clause 36; IEEE 802.3, annex 31B"
_SCALE = "Guo et al., RDMA over Commodity Ethernet at Scale, SIGCOMM 2016"
_DCQCN = "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015"
_DEADLOCK = "Hu et al., Deadlocks in Datacenter Networks, HotNets 2016"
_BGP = "RFC 7938, Use of BGP for Routing in Large-Scale Data Centers"
_ROCE = "InfiniBand Architecture, annex A17 (RoCEv2)"


class About(NamedTuple):
    """Of a rule."""

    title: str
    reference: str


BOOK = {
    "adapter-cnp": About("An adapter's notifications in a class that is paused", _DCQCN),
    "adapter-dscp": About("Connections' DSCP in another class than at the switch", _SCALE),
    "adapter-ecn": About("An adapter that does not tell or heed congestion", _DCQCN),
    "adapter-pfc": About("An adapter and its switch pause different priorities", _PFC),
    "adapter-trust": About("An adapter that goes by tags which nobody sends", _SCALE),
    "alpha-range": About("An alpha that the chip does not have", _YANG.format("buffer-profile")),
    "bgp-missing": About("A cable without a BGP session", _BGP),
    "cable-differs": About("A cable's two ends have two lengths configured", _CONFIG),
    "cable-untold": About("A cable whose length is not configured", _CONFIG),
    "cnp-class": About("Congestion notifications in a class that is paused", _DCQCN),
    "deadlock": About("Routes close a circle of buffers", _DEADLOCK),
    "deadlock-failure": About("Routes close a circle after one or two failures", _DEADLOCK),
    "dscp-map": About("A DSCP in another class than elsewhere", _SCALE),
    "dscp-untrusted": About("A port without a map of DSCPs to classes", _CONFIG),
    "ecn-flat": About("Hardly a mark before a sender is paused", _DCQCN),
    "ecn-late": About("Marks that begin above where a sender is paused", _DCQCN),
    "ecn-missing": About("A lossless queue that marks nothing", _DCQCN),
    "fec-differs": About("A cable's two ends have two kinds of FEC", _YANG.format("port")),
    "hash-fields": About("Ways are chosen without the port in which queue pairs differ", _ROCE),
    "headroom-small": About("Headroom less than speed and cable need", _PFC),
    "map-partial": About("A map that leaves a paused priority out", _CONFIG),
    "mtu-differs": About("A cable's two ends have two MTUs", _YANG.format("port")),
    "mtu-path": About("Packets that hosts may send do not fit on the way", _ROCE),
    "neighbour-contradicts": About("Two ports name one another as neighbours of others", _CONFIG),
    "neighbour-missing": About("A cable that one end alone names", _CONFIG),
    "oversubscribed": About("Hosts send far more than cables up carry", _SCALE),
    "pfc-nowhere": About("Nothing is paused anywhere", _PFC),
    "pfc-off": About("A group has headroom and nobody is paused", _PFC),
    "pfc-one-end": About("A cable's two ends pause different priorities", _PFC),
    "pfc-path": About("A class that is lossless on the rest of its way", _PFC),
    "pg-map": About("A class counted to another group than its pauses protect", _CONFIG),
    "pg-missing": About("A paused priority without headroom", _CONFIG),
    "pg-not-told": About("A switch that pauses and configures no headroom", _CONFIG),
    "pg-shared": About("A class that nobody pauses in a lossless group", _CONFIG),
    "pool-oversubscribed": About("A pool promises more headroom than it has", _CONFIG),
    "port-down": About("A cable of which one end is down", _YANG.format("port")),
    "queue-limit": About("A lossless queue full before its senders are paused", _CONFIG),
    "queue-map": About("A pause holds another queue than the class is in", _CONFIG),
    "queue-shared": About("A class that may lose in a lossless queue", _CONFIG),
    "reference-missing": About("An entry names what is not there", _CONFIG),
    "scheduler-strict": About("A lossless queue before all others, without a limit", _CONFIG),
    "scheduler-weight": About("Lossless queues with next to no share", _CONFIG),
    "single-cable": About("A cable that nothing can stand in for", _BGP),
    "speed-differs": About("A cable's two ends have two speeds", _YANG.format("port")),
    "trim-lossless": About("Trimming in a class that is paused", _YANG.format("trimming")),
    "trim-queue": About("Cut packets in a queue that is paused", _YANG.format("trimming")),
    "trim-untold": About("Trimming without what becomes of it", _YANG.format("trimming")),
    "unreachable": About("No way leads from some hosts to others", _BGP),
    "uplinks-fewer": About("A switch with fewer cables up than its likes", _SCALE),
    "uplinks-unequal": About("Ways of one group with unequal rates", _SCALE),
    "watchdog-alert": About("A watchdog that only barks", _YANG.format("pfcwd")),
    "watchdog-eager": About("A watchdog that takes congestion for a storm", _YANG.format("pfcwd")),
    "watchdog-late": About("A watchdog later than adapters are patient", _SCALE),
    "watchdog-missing": About("A paused priority that is not watched", _SCALE),
    "watchdog-slow": About("A watchdog that looks too seldom", _YANG.format("pfcwd")),
    "wred-drop": About("A lossless queue that drops instead of marking", _DCQCN),
    "xon-missing": About("Pauses that end with the first packet that leaves", _CONFIG),
}  # fmt: skip
