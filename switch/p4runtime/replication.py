"""The replication engine: multicast groups and clone sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from finsy.proto import p4r

from params.data import Data
from switch import dataplane as dp
from switch.p4runtime.batch import Batch
from switch.p4runtime.errors import already_exists, invalid, not_found, unimplemented
from switch.p4runtime.ports import Ports

MAX_GROUP = 65_535
MAX_SESSION = 32_767
MAX_INSTANCE = 65_535
MAX_PORT = 65_535
MAX_PRIORITY = 7

Item = TypeVar("Item")


class Copy(Data):
    """A replica, and in which field its client named the port."""

    replica: dp.Replica
    is_bytes: bool


class Multicast(Data):
    """A multicast group."""

    copies: tuple[Copy, ...]
    metadata: bytes


class Clone(Data):
    """A clone session."""

    copies: tuple[Copy, ...]
    priority: int
    max_bytes: int


class Replication:
    """The multicast groups and clone sessions of a switch."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._groups: dict[int, Multicast] = {}
        self._sessions: dict[int, Clone] = {}

    def rebind(self, ports: Ports) -> None:
        """Name ports as another P4Info does."""
        self._ports = ports

    def write(self, batch: Batch, verb: dp.Verb, message: p4r.PacketReplicationEngineEntry) -> None:
        """Insert, modify or delete a group or a session."""
        match message.WhichOneof("type"):
            case "multicast_group_entry":
                self._write_group(batch, verb, message.multicast_group_entry)
            case "clone_session_entry":
                self._write_session(batch, verb, message.clone_session_entry)
            case _:
                raise invalid("neither a multicast group nor a clone session is given")

    def read(self, query: p4r.PacketReplicationEngineEntry) -> list[p4r.Entity]:
        """Return one group or session, or all of a kind."""
        match query.WhichOneof("type"):
            case "multicast_group_entry":
                groups = self._read_groups(query.multicast_group_entry.multicast_group_id)
                entries = [
                    p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
                    for group in groups
                ]
            case "clone_session_entry":
                sessions = self._read_sessions(query.clone_session_entry.session_id)
                entries = [
                    p4r.PacketReplicationEngineEntry(clone_session_entry=session)
                    for session in sessions
                ]
            case _:
                raise invalid("neither a multicast group nor a clone session is given")
        return [p4r.Entity(packet_replication_engine_entry=entry) for entry in entries]

    def _write_group(self, batch: Batch, verb: dp.Verb, message: p4r.MulticastGroupEntry) -> None:
        group = message.multicast_group_id
        where = f"multicast group {group}"
        _require_id(where, group, MAX_GROUP, verb, self._groups)
        if verb is dp.Verb.DELETE:
            batch.drop(self._groups, group)
            batch.ops.append(dp.MulticastWrite(verb, group))
            return
        copies = self._decode_copies(where, message.replicas)
        batch.put(self._groups, group, Multicast(copies, message.metadata))
        batch.ops.append(dp.MulticastWrite(verb, group, tuple(c.replica for c in copies)))

    def _write_session(self, batch: Batch, verb: dp.Verb, message: p4r.CloneSessionEntry) -> None:
        session = message.session_id
        where = f"clone session {session}"
        _require_id(where, session, MAX_SESSION, verb, self._sessions)
        if verb is dp.Verb.DELETE:
            batch.drop(self._sessions, session)
            batch.ops.append(dp.CloneWrite(verb, session))
            return
        if message.class_of_service > MAX_PRIORITY:
            raise invalid(
                f"{where}: class of service {message.class_of_service} is above {MAX_PRIORITY}"
            )
        if message.packet_length_bytes < 0:
            raise invalid(f"{where}: the packet length is negative")
        clone = Clone(
            self._decode_copies(where, message.replicas),
            message.class_of_service,
            message.packet_length_bytes,
        )
        batch.put(self._sessions, session, clone)
        replicas = tuple(copy.replica for copy in clone.copies)
        batch.ops.append(dp.CloneWrite(verb, session, replicas, clone.max_bytes, clone.priority))

    def _read_groups(self, wanted: int) -> list[p4r.MulticastGroupEntry]:
        return [
            p4r.MulticastGroupEntry(
                multicast_group_id=group,
                replicas=map(self._encode_copy, state.copies),
                metadata=state.metadata,
            )
            for group, state in _select(self._groups, wanted)
        ]

    def _read_sessions(self, wanted: int) -> list[p4r.CloneSessionEntry]:
        return [
            p4r.CloneSessionEntry(
                session_id=session,
                replicas=map(self._encode_copy, state.copies),
                class_of_service=state.priority,
                packet_length_bytes=state.max_bytes,
            )
            for session, state in _select(self._sessions, wanted)
        ]

    def _decode_copies(self, where: str, messages: Iterable[p4r.Replica]) -> tuple[Copy, ...]:
        copies = []
        seen = set()
        for message in messages:
            if message.backup_replicas:
                raise unimplemented(f"{where}: backup replicas are not supported")
            is_bytes = message.WhichOneof("port_kind") == "port"
            port = message.egress_port
            if is_bytes:
                port = self._ports.number(message.port, f"{where}: port")
            if port > MAX_PORT:
                raise invalid(f"{where}: port {port} is above {MAX_PORT}")
            if message.instance > MAX_INSTANCE:
                raise invalid(f"{where}: instance {message.instance} is above {MAX_INSTANCE}")
            if (port, message.instance) in seen:
                raise invalid(f"{where}: port {port} has instance {message.instance} twice")
            seen.add((port, message.instance))
            copies.append(Copy(dp.Replica(port, message.instance), is_bytes))
        return tuple(copies)

    def _encode_copy(self, copy: Copy) -> p4r.Replica:
        port, instance = copy.replica.port, copy.replica.instance
        if copy.is_bytes:
            return p4r.Replica(port=self._ports.text(port), instance=instance)
        return p4r.Replica(egress_port=port, instance=instance)


def _select(items: dict[int, Item], wanted: int) -> list[tuple[int, Item]]:
    return [(key, item) for key, item in items.items() if wanted in (0, key)]


def _require_id(where: str, item: int, limit: int, verb: dp.Verb, items: dict[int, Item]) -> None:
    if not 1 <= item <= limit:
        raise invalid(f"{where}: ids go from 1 to {limit}")
    if verb is dp.Verb.INSERT:
        if item in items:
            raise already_exists(f"{where} exists")
    elif item not in items:
        raise not_found(f"there is no {where}")
