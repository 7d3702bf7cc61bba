"""Collectives that switches carry out: who does them together, and what hosts are told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from params.data import Data
from params.inc import PORT as INC_PORT
from params.inc import Group, Inc, share
from topologies import Fabric
from traffic.collectives import IN_NETWORK, LocalTransfer, Schedule, chunks_of
from traffic.frames import ECN_CAPABLE, datagram_headers, mac_bytes

_SOURCE_PORTS = 0xC000  # and a group's number
_SLOTS_ALONE = 16  # of a group for which switches have none


class _Place(Data):
    """Where a collective's chunks are among its group's."""

    group: int
    first_chunk: int


class InNetwork(Data):
    """All of a schedule's."""

    fabric: Fabric
    schedule: Schedule
    config: Inc
    groups: tuple[Group, ...]
    places: dict[int, _Place]  # by activity
    priorities: tuple[int, ...]  # by group

    @classmethod
    def of(cls, schedule: Schedule, fabric: Fabric, config: Inc) -> InNetwork:
        """Those of a job among the same hosts are one group, chunks of which are numbered on."""
        numbers: dict[tuple[str, tuple[int, ...], int], int] = {}
        group_of = {}
        for at, activity in enumerate(schedule.activities):
            what = activity.collective
            if what is not None and what.algorithm == IN_NETWORK:
                key = activity.job, tuple(sorted(what.ranks)), activity.priority
                group_of[at] = numbers.setdefault(key, len(numbers) + 1)
        slots = share(config.slots, len(numbers))
        ahead = (slots or _SLOTS_ALONE) if config.numbers == "floats" else 0
        next_chunk = dict.fromkeys(group_of.values(), 1)
        places = {}
        for at, group in group_of.items():
            what = schedule.activities[at].collective
            assert what is not None
            places[at] = _Place(group, next_chunk[group])
            next_chunk[group] += chunks_of(what, ahead)
        groups = tuple(
            Group(
                number,
                tuple(fabric.hosts[rank].name for rank in ranks),
                slots,
                2 * slots * (number - 1),
            )
            for (_, ranks, _), number in numbers.items()
        )
        priorities = tuple(priority for _, _, priority in numbers)
        return cls(fabric, schedule, config, groups, places, priorities)

    @property
    def bytes(self) -> dict[int, int]:
        """What a rank sends and receives of them at least once, all together."""
        found: dict[int, int] = {}
        for at in self.places:
            what = self.schedule.activities[at].collective
            assert what is not None
            for rank in what.ranks:
                found[rank] = found.get(rank, 0) + what.bytes
        return found

    def job_lines(
        self, rank: int, dscp_of: Callable[[int], int], round_trip_ns: int
    ) -> Iterator[str]:
        """The groups that a rank is in, in the words of `script.h`."""
        if not self.groups:
            return
        host = self.fabric.hosts[rank]
        leaf = self.fabric.leaf_of(host)
        address = self.fabric.address(host, leaf).packed
        macs = mac_bytes(self.fabric.mac(leaf)) + mac_bytes(self.fabric.mac(host, leaf))
        rto_ns = self.config.rto_ns or 16 * round_trip_ns
        floats = "floats=1 " if self.config.numbers == "floats" else ""
        for group, priority in zip(self.groups, self.priorities, strict=True):
            if host.name not in group.members:
                continue
            tos, source = dscp_of(priority) << 2 | ECN_CAPABLE, _SOURCE_PORTS + group.number
            headers = datagram_headers(macs + address + address, source, INC_PORT, tos)
            own, slots = group.members.index(host.name), group.slots or _SLOTS_ALONE
            yield (
                f"job number={group.number} member={own} "
                f"members={len(group.members)} priority={priority} slots={slots} {floats}"
                f"rto={rto_ns} tries={self.config.tries} headers={headers.hex()}"
            )
            for number, name in enumerate(group.members):
                if name != host.name and 0 in (own, number):
                    peer = self.fabric.node(name)
                    there = self.fabric.address(peer, self.fabric.leaf_of(peer)).packed
                    headers = datagram_headers(macs + address + there, source, INC_PORT, tos)
                    yield f"peer job={group.number} member={number} headers={headers.hex()}"

    def line(self, part: LocalTransfer) -> str:
        """A rank's part in one, likewise."""
        place, what = self.places[part.activity], self.schedule.activities[part.activity].collective
        assert what is not None
        group = self.groups[place.group - 1]
        root = group.members.index(self.fabric.hosts[what.ranks[what.root]].name)
        return (
            f"collective id={part.id} job={place.group} op={what.op} first={place.first_chunk} "
            f"size={what.bytes} root={root}"
        )
