"""What rules stand on: a fabric, what configurations do not say, and what a port's cable needs.

Headroom is asked for by `controller/headroom.py`. Lossless packets have the longest payload that
RoCEv2 has and the port takes, or what LOSSLESS_TRAFFIC_PATTERN says; a pause frame waits for the
longest frame of any class. Memory counts in bytes unless a chip is named: cells only add to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from math import ceil
from typing import Any

from controller import LinkSpec
from controller.headroom import headroom
from lab.configs.config_db import Port, Switch
from lab.configs.fabric import Cable, Fabric, Place, link_of, response_ns
from lab.scenario.model import Scenario
from lab.scenario.translate import controller_settings
from params.data import Data
from params.shares import ALPHAS

_ETHERNET_BYTES = 18  # 802.1Q tag included, FCS not
_ROCE_MTUS = 4096, 2048, 1024, 512, 256  # of InfiniBand
_IP_BYTES = 64  # of a RoCEv2 packet that are none of its payload, at most
ALPHA_RANGE = -8, len(ALPHAS) - 9  # as logarithms


class Options(Data):
    """What configurations do not say."""

    cell: int = 1
    response_ns: int | None = None  # without it as 802.3 has it for the port's speed


class Need(Data):
    """Of a port: how much headroom a lossless priority needs, and of what that is made."""

    link: LinkSpec
    mtu: int  # of lossless packets
    frame: int
    extra_ns: int  # until the sender obeys: its response, and what the pause frame waits for
    size: int


@cache
def header_bytes() -> int:
    """What a RoCEv2 packet has besides its payload, as switches of the lab count it."""
    usual = Scenario(name="usual")
    return controller_settings(usual, usual.fabric()).max_frame - usual.link.mtu


def roce_mtu(switch: Switch, port: Port) -> int:
    """The payload of a lossless packet at a port."""
    fits = [mtu for mtu in _ROCE_MTUS if mtu + _IP_BYTES <= port.mtu]
    own_mtu = switch.lossless_mtu
    return min(fits[0] if fits else 256, max(256, own_mtu // 8 * 8) if own_mtu else 4096)


def extra_ns(speed_mbps: int, port_mtu: int, frame: int, options: Options) -> int:
    """How long a sender goes on beside the cable's delay: it responds, and the pause frame waits.

    It waits for the longest frame that the port takes, of whatever class; one as long as a lossless
    frame is part of any headroom.
    """
    response = response_ns(speed_mbps) if options.response_ns is None else options.response_ns
    return response + ceil(max(0, port_mtu + _ETHERNET_BYTES - frame) * 8000 / speed_mbps)


def need(switch: Switch, port: Port, options: Options) -> Need | None:
    """The headroom that a port's cable needs; None: its length is not configured."""
    link = link_of(port)
    if link is None:
        return None
    mtu = roce_mtu(switch, port)
    frame = mtu + header_bytes()
    extra = extra_ns(port.speed_mbps, port.mtu, frame, options)
    return Need(link, mtu, frame, extra, headroom(link, frame, extra, options.cell))


class Findings(Data, frozen=False):
    """A fabric, and what is found of it."""

    fabric: Fabric
    options: Options
    lossless: frozenset[int]  # the priorities that most ports pause
    disagreeing: frozenset[Place]

    def agreed(self, switch: Switch, port: Port) -> list[int]:
        """The paused priorities of a port, without those that its neighbour knows nothing of."""
        is_odd = Place(switch.name, port.name) in self.disagreeing
        return sorted(port.pfc & self.lossless if is_odd else port.pfc)

    def ports(self) -> Iterator[tuple[Switch, Port]]:
        """All that are in use."""
        for switch in self.fabric.switches.values():
            for port in self.fabric.in_use(switch):
                yield switch, port

    def cables(self) -> Iterator[tuple[Cable, Port, Port]]:
        """All whose both ends are up."""
        for cable in self.fabric.cables:
            a, b = self.fabric.port(cable.a), self.fabric.port(cable.b)
            if a.is_up and b.is_up:
                yield cable, a, b


def facts_of(found: Findings, switch: Switch, port: Port) -> dict[str, Any]:
    """What a run has to know of a port's cable."""
    wanted = need(switch, port, found.options)
    if wanted is None:
        return {}
    link = wanted.link
    return {
        "rate_gbps": link.rate_bps / 1e9, "delay_ns": link.delay_ns, "mtu": wanted.mtu,
        "extra_ns": wanted.extra_ns, "need": wanted.size, "cell": found.options.cell,
    }  # fmt: skip


def xoff_at(switch: Switch, port: Port, priority: int) -> int | None:
    """What one sender alone may have in a switch before it is paused; None: not configured."""
    headroom = switch.headroom(port, switch.group_of(port, priority))
    if headroom is None:
        return None
    profile = headroom[1]
    if profile.static_th is not None:
        return profile.size + profile.static_th
    pool = switch.pools.get(profile.pool)
    if pool is None or pool.size is None or profile.dynamic_th is None:
        return None
    if not ALPHA_RANGE[0] <= profile.dynamic_th <= ALPHA_RANGE[1]:
        return None
    alpha = 2.0**profile.dynamic_th
    return int(profile.size + pool.size * alpha / (1 + alpha))


def commonest(values: Counter[Any]) -> Any:
    """What there is most of; of equally many the least, so that it does not depend on order."""
    return min(values, key=lambda v: (-values[v], repr(v))) if values else None


def listed(numbers: Any) -> str:
    """Numbers as config_db lists them."""
    return ",".join(map(str, sorted(numbers))) or "none"
