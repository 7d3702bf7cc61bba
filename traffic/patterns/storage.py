"""Storage: hosts that keep what others write, and send what they ask for, all at once.

A checkpoint is a burst: every client writes, spread over the servers. So is loading: every client
asks for its part and is sent it. Both come again after a while, whatever the last one took.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from params.units import DurationNs, Host, Size
from traffic.collectives import Activity, ClassedSpec, RankError, Schedule, ScheduleBuilder, Site
from traffic.collectives.collective import Even

_ASKING_BYTES = 64


class StorageSpec(ClassedSpec):
    """Checkpoints to storage servers, and data from them."""

    kind: Literal["storage"] = "storage"
    servers: Annotated[tuple[Host, ...], Field(min_length=1)]
    """The hosts that store."""
    clients: Annotated[tuple[Host, ...], Field(min_length=1)] | None = None
    """Who saves and loads; without it all other hosts."""
    save: Size = Field(default=0, ge=0, le=1 << 40)
    """What each client writes to them each time: its part of a checkpoint."""
    load: Size = Field(default=0, ge=0, le=1 << 40)
    """What each client asks for each time, and is sent."""
    stripes: int | None = Field(default=None, ge=1)
    """Over how many servers a client spreads it, the next client beginning with the next server;
    without it over all."""
    at_ns: DurationNs = Field(default=0, ge=0, le=10**15)
    """When the first burst begins."""
    every_ns: DurationNs = Field(default=1_000_000, ge=1, le=10**15)
    """How long after the last one the next begins."""
    times: int = Field(default=1, ge=1, le=100_000)
    """How many bursts there are."""

    @model_validator(mode="after")
    def _check(self) -> StorageSpec:
        if not self.save and not self.load:
            raise ValueError("storage that nobody uses: give save, or load")
        if (self.stripes or 1) > len(self.servers):
            raise ValueError(
                f"stripes is {self.stripes}, and there are {len(self.servers)} servers"
            )
        for what, hosts in (("servers", self.servers), ("clients", self.clients or ())):
            if len(set(hosts)) != len(hosts):
                raise ValueError(f"{what}: a host is named twice")
        both = sorted(set(self.servers) & set(self.clients or ()))
        if both:
            raise ValueError(f"h{both[0] + 1} is a server and a client: choose")
        return self

    def schedule(self, site: Site) -> Schedule:
        """The bursts on this site."""
        strange = [host for host in (*self.servers, *(self.clients or ())) if host >= site.hosts]
        if strange:
            raise RankError(f"there is no h{strange[0] + 1}", f"they are h1 to h{site.hosts}")
        others = (host for host in range(site.hosts) if host not in set(self.servers))
        clients = tuple(others) if self.clients is None else self.clients
        if not clients:
            raise RankError("all hosts are servers", "leave some for clients")
        builder = ScheduleBuilder(site.hosts)
        for turn in range(self.times):
            begin = self.at_ns + turn * self.every_ns
            if self.save:
                saved = builder.activity(Activity("flows", "checkpoint", step=turn))
                for client, server, size in self._shares(clients, self.save):
                    builder.transfer(
                        client, server, size, activity=saved, channel=2 * turn, delay_ns=begin
                    )
            if self.load:
                asked = builder.activity(Activity("flows", "asking for data", step=turn))
                loaded = builder.activity(Activity("flows", "data loading", step=turn))
                for client, server, size in self._shares(clients, self.load):
                    asking = builder.transfer(
                        client, server, _ASKING_BYTES, activity=asked, channel=2 * turn + 1,
                        delay_ns=begin,
                    )  # fmt: skip
                    builder.transfer(
                        server, client, size, activity=loaded, channel=turn, after=[asking]
                    )
        return builder.build()

    def _shares(self, clients: tuple[int, ...], size: int) -> list[tuple[int, int, int]]:
        """Client, server, and how much goes between the two; nothing of no bytes."""
        count = self.stripes or len(self.servers)
        parts = Even(size, min(count, size))
        return [
            (client, self.servers[(at * count + part) % len(self.servers)], parts.bytes(part, 1))
            for at, client in enumerate(clients)
            for part in range(parts.count)
        ]
