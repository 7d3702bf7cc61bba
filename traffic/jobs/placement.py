"""Which host each rank of a job runs on.

*packed* fills rack after rack, so neighbours in rank are neighbours in the fabric. *spread* deals
ranks to the racks in turn, so every neighbour is across the spine. *random* is what a busy cluster
gives. *topology-aware* takes as few racks as it can, and of those that will do the one that is left
with the least. *rail-aligned* is for racks that are rails: member j of every node goes to rail j,
so the rings among members j never leave their leaf; it needs to know how many ranks make a node.

Jobs are placed one after the other on what is left.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from random import Random
from typing import Literal

from traffic.collectives import PlacementError, Site, check_partition

Policy = Literal["packed", "spread", "random", "rail-aligned", "topology-aware"]


class Placer:
    """The free hosts of a site."""

    def __init__(self, site: Site) -> None:
        racks: Sequence[Sequence[int]] = site.racks or (tuple(range(site.hosts)),)
        check_partition(racks, site.hosts)
        self._rack_of = {host: at for at, rack in enumerate(racks) for host in rack}
        self._free = [list(rack) for rack in racks]
        self._chance = Random(site.seed)  # noqa: S311  (an experiment's chance, not a secret)
        self._turn = 0

    @property
    def free(self) -> int:
        """How many hosts are left."""
        return sum(map(len, self._free))

    def place(self, ranks: int, policy: Policy, *, node: int | None = None) -> list[int]:
        """The hosts of a job's ranks, taken from what is free."""
        if ranks > self.free:
            raise PlacementError(
                f"{ranks} ranks do not fit on {self.free} free hosts",
                "use fewer ranks or a larger fabric",
            )
        match policy:
            case "packed":
                return [self._next_packed() for _ in range(ranks)]
            case "spread":
                return [self._next_spread() for _ in range(ranks)]
            case "random":
                hosts = self._chance.sample([host for rack in self._free for host in rack], ranks)
                for rack in self._free:
                    rack[:] = [host for host in rack if host not in set(hosts)]
                return hosts
            case "topology-aware":
                return self._in_few_racks(ranks)
            case "rail-aligned":
                return self._rails(ranks, len(self._free) if node is None else node)

    def release(self, hosts: Sequence[int]) -> None:
        """A job is over: its hosts are free again."""
        for host in hosts:
            insort(self._free[self._rack_of[host]], host)

    def _in_few_racks(self, ranks: int) -> list[int]:
        hosts: list[int] = []
        while ranks:
            fitting = [rack for rack in self._free if len(rack) >= ranks]
            rack = min(fitting, key=len) if fitting else max(self._free, key=len)
            taken = min(ranks, len(rack))
            hosts += rack[:taken]
            del rack[:taken]
            ranks -= taken
        return hosts

    def _next_packed(self) -> int:
        return next(rack for rack in self._free if rack).pop(0)

    def _next_spread(self) -> int:
        while not self._free[self._turn % len(self._free)]:
            self._turn += 1
        host = self._free[self._turn % len(self._free)].pop(0)
        self._turn += 1
        return host

    def _rails(self, ranks: int, node: int) -> list[int]:
        rails = len(self._free)
        if node < 1 or ranks % node or rails % node:
            raise PlacementError(
                f"nodes of {node} ranks cannot align {ranks} ranks with {rails} rails",
                "use a node size that divides both",
            )
        # Where rails outnumber a node's members, the next nodes take the next rails.
        hosts = []
        for rank in range(ranks):
            rail = self._free[rank % rails]
            if not rail:
                raise PlacementError(
                    f"rail {rank % rails} has no host left for rank {rank}",
                    "use fewer ranks or more hosts on every rail",
                )
            hosts.append(rail.pop(0))
        return hosts
