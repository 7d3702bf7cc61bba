"""Flows that belong to no collective: each is one message, or several that follow one another.

What is random is drawn from the seed alone, so a pattern is the same schedule every time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import NamedTuple

from params.data import Data
from traffic.collectives import Activity, RankError, Schedule, ScheduleBuilder, SizeError
from traffic.patterns.sizes import SizeDistribution

MAX_FLOWS = 5_000_000
_FIRST_PORT = 0xC000
_PORTS = 0x4000


class Flow(NamedTuple):
    """One sender, one receiver, one queue pair of theirs."""

    src: int
    dst: int
    channel: int
    size: int
    start_ns: int = 0


class FlowSet(Data):
    """Flows and what they have in common."""

    name: str
    flows: Sequence[Flow]
    messages: int = 1
    source_ports: int | None = None
    rest_ns: int = 0  # of a sender, between two messages

    def schedule(self, hosts: int) -> Schedule:
        """Every flow's messages one after the other, each posted when the last is delivered."""
        if not 1 <= self.messages <= MAX_FLOWS:
            raise SizeError(f"{self.messages} messages a flow", "give at least 1")
        if self.source_ports is not None and not 1 <= self.source_ports <= _PORTS:
            raise SizeError(f"{self.source_ports} UDP source ports", f"give 1 to {_PORTS}")
        builder = ScheduleBuilder(hosts)
        activity = builder.activity(Activity("flows", self.name, source_ports=self.source_ports))
        for flow in self.flows:
            after: list[int] = []
            for _ in range(self.messages):
                number = builder.transfer(
                    flow.src,
                    flow.dst,
                    flow.size,
                    activity=activity,
                    channel=flow.channel,
                    delay_ns=self.rest_ns if after else flow.start_ns,
                    after=after,
                )
                after = [number]
        return builder.build()


def incast(
    hosts: int, size: int, *, senders: int | None = None, receiver: int = 0, messages: int = 1
) -> Schedule:
    """Several hosts write to one at once; the first ones that are not the receiver."""
    _require_hosts(hosts, 2)
    _require_host(receiver, hosts)
    others = [host for host in range(hosts) if host != receiver]
    count = len(others) if senders is None else senders
    if not 1 <= count <= len(others):
        raise RankError(f"an incast of {count} senders", f"{hosts} hosts allow 1 to {len(others)}")
    flows = [Flow(src, receiver, 0, size) for src in others[:count]]
    return FlowSet("incast", flows, messages).schedule(hosts)


def permutation(hosts: int, size: int, *, seed: int, messages: int = 1) -> Schedule:
    """Every host sends to one other and receives from one other, at random."""
    flows = [Flow(src, dst, 0, size) for src, dst in enumerate(_derangement(hosts, seed))]
    return FlowSet("permutation", flows, messages).schedule(hosts)


def elephants(
    hosts: int,
    size: int,
    *,
    seed: int,
    flows: int | None = None,
    messages: int = 1,
    source_ports: int = 1,
) -> Schedule:
    """A few long flows that look alike to a hash: they share a handful of UDP source ports.

    Where many hosts would fill every path on average, a few flows collide on some and leave
    others idle.
    """
    count = hosts if flows is None else flows
    if not 1 <= count <= MAX_FLOWS:
        raise SizeError(f"{count} flows", f"give 1 to {MAX_FLOWS}")
    partners = _derangement(hosts, seed)
    order = _chance(seed).sample(range(hosts), hosts)
    made = [
        Flow(src, partners[src], turn, size)
        for turn, src in ((number // hosts, order[number % hosts]) for number in range(count))
    ]
    return FlowSet("elephants", made, messages, source_ports=source_ports).schedule(hosts)


def poisson(
    hosts: int,
    sizes: SizeDistribution,
    *,
    load: float,
    rate_gbps: float,
    duration_ns: int,
    seed: int,
    sigma: float | None = None,
    racks: Sequence[Sequence[int]] | None = None,
) -> Schedule:
    """Flows between random hosts that arrive at random, and keep ports busy to a share.

    Where racks are told, both ends are of different ones.
    """
    _require_hosts(hosts, 2)
    if racks is not None and len(racks) < 2:
        raise RankError("flows between racks, and all hosts are in one", "build a second leaf")
    elsewhere: dict[int, list[int]] = {}
    for rack in racks or ():
        others = [host for host in range(hosts) if host not in rack]
        elsewhere.update(dict.fromkeys(rack, others))
    chance = _chance(seed)
    arrivals = _arrivals(chance, sizes, load * hosts, rate_gbps, duration_ns, sigma)
    channels: Counter[tuple[int, int]] = Counter()
    flows = []
    for start_ns, size in arrivals:
        src = chance.randrange(hosts)
        dst = (
            chance.choice(elsewhere[src])
            if elsewhere
            else (src + 1 + chance.randrange(hosts - 1)) % hosts
        )
        flows.append(_next_flow(channels, src, dst, size, start_ns))
    return FlowSet(f"poisson {sizes.name}", flows).schedule(hosts)


def north_south(
    hosts: int,
    sizes: SizeDistribution,
    *,
    gateways: Sequence[int],
    load: float,
    rate_gbps: float,
    duration_ns: int,
    seed: int,
) -> Schedule:
    """Traffic with the world outside: in and out of gateways, each busy to a share both ways.

    Best effort unless told otherwise, so it competes for buffers but is never paused for.
    """
    for gateway in gateways:
        _require_host(gateway, hosts)
    inside = [host for host in range(hosts) if host not in set(gateways)]
    if not gateways or len(set(gateways)) != len(gateways) or not inside:
        raise RankError(
            f"gateways {list(gateways)} among {hosts} hosts",
            "name at least one, each once, and leave hosts for them to serve",
        )
    chance = _chance(seed)
    arrivals = _arrivals(chance, sizes, 2 * load * len(gateways), rate_gbps, duration_ns)
    channels: Counter[tuple[int, int]] = Counter()
    flows = []
    for start_ns, size in arrivals:
        ends = [chance.choice(gateways), chance.choice(inside)]
        chance.shuffle(ends)
        flows.append(_next_flow(channels, ends[0], ends[1], size, start_ns))
    return FlowSet(f"north-south {sizes.name}", flows).schedule(hosts)


def udp_source_port(
    queue_pair: tuple[int, int, int], source_ports: int | None = None, *, seed: int = 1
) -> int:
    """The UDP source port of a (src, dst, channel): one of so many, or of all RoCEv2 may use.

    Not a CRC, as switches use those: a path must not follow from how the port was chosen.
    """
    digest = blake2b(repr((seed, queue_pair)).encode(), digest_size=8).digest()
    return _FIRST_PORT + int.from_bytes(digest, "big") % (source_ports or _PORTS)


def _chance(seed: int) -> Random:
    return Random(seed)  # noqa: S311  (an experiment's chance, not a secret)


def _arrivals(
    chance: Random,
    sizes: SizeDistribution,
    ports: float,
    rate_gbps: float,
    duration_ns: int,
    sigma: float | None = None,
) -> list[tuple[int, int]]:
    """Start and size of flows that fill so many ports' worth of rate.

    Gaps between them are exponential, or log-normal with this standard deviation of their
    logarithm: the larger, the more of them come in bursts, with the same mean.
    """
    if not ports > 0 or not rate_gbps > 0 or duration_ns < 1:
        raise SizeError(
            f"a load of {ports:g} ports at {rate_gbps:g} Gb/s for {duration_ns} ns",
            "give a load, a rate and a duration above 0",
        )
    gap_ns = sizes.mean * 8 / (ports * rate_gbps)
    if duration_ns / gap_ns > MAX_FLOWS:
        raise SizeError(
            f"about {duration_ns / gap_ns:.0f} flows",
            f"shorten the duration or lower the load: {MAX_FLOWS} are the limit",
        )

    def gap() -> float:
        if sigma is None:
            return chance.expovariate(1 / gap_ns)
        return chance.lognormvariate(math.log(gap_ns) - sigma**2 / 2, sigma)

    flows = []
    now = gap()
    while now < duration_ns:
        flows.append((round(now), sizes.draw(chance)))
        if len(flows) > MAX_FLOWS:
            raise SizeError("too many flows in a burst", "lower arrivals_sigma, or the load")
        now += gap()
    if not flows:
        raise SizeError(
            f"no flow starts within {duration_ns} ns",
            f"one does every {gap_ns:.0f} ns on average: lengthen the duration",
        )
    return flows


def _next_flow(
    channels: Counter[tuple[int, int]], src: int, dst: int, size: int, start_ns: int
) -> Flow:
    """A flow on a queue pair of its own, so it does not stand in line behind earlier ones."""
    channels[src, dst] += 1
    return Flow(src, dst, channels[src, dst] - 1, size, start_ns)


def _derangement(hosts: int, seed: int) -> list[int]:
    """A random permutation in which nobody sends to itself: Sattolo's, one great circle."""
    _require_hosts(hosts, 2)
    chance = _chance(seed)
    partners = list(range(hosts))
    for last in range(hosts - 1, 0, -1):
        other = chance.randrange(last)
        partners[last], partners[other] = partners[other], partners[last]
    return partners


def _require_hosts(hosts: int, least: int) -> None:
    if hosts < least:
        raise RankError(f"{hosts} hosts", f"this pattern needs at least {least}")


def _require_host(host: int, hosts: int) -> None:
    if not 0 <= host < hosts:
        raise RankError(f"there is no h{host + 1}", f"they are h1 to h{hosts}")
