"""What a role may read and write, and of what it is told.

P4Runtime gives every role a primary of its own and leaves it to client and server to agree on what
belongs to a role. Two agreements are known here:

- The *program* gives tables, profiles, counters, meters, registers, value sets, digests, actions
  and controller headers to roles by `@p4runtime_role("name")`, as SONiC's programs do. A profile
  without the annotation goes with its tables; an action or a controller header without it is
  anybody's. Where a program names roles, a role owns what bears its name and nothing else.
- The *client* sends a `stratum.P4RoleConfig` with its bid, as finsy and Stratum's clients do: ids
  of objects that are its own (nobody else may write them while it is there) or shared, whether it
  hears of packets, of which, and whether it may set the pipeline. It then counts for its role
  in place of the program's annotations.

The default role has everything that no other role has to itself, and so has every role of a program
that names none. Multicast groups and clone sessions have no id to be given away by, so only roles
without limits write those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from finsy.proto import p4i, p4r
from google.protobuf import any_pb2
from google.protobuf.message import Message

from params.data import Data
from switch.p4runtime.errors import RequestError, denied, invalid

ANNOTATION = "@p4runtime_role("
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')

# The field that names an entity's object.
_ID_FIELDS = {
    "action_profile_member": "action_profile_id",
    "action_profile_group": "action_profile_id",
    "counter_entry": "counter_id",
    "meter_entry": "meter_id",
    "register_entry": "register_id",
    "value_set_entry": "value_set_id",
    "digest_entry": "digest_id",
}


class RoleConfig(Data):
    """A `stratum.P4RoleConfig`; finsy's module for it is loaded when a client sends one."""

    own: frozenset[int]
    shared: frozenset[int]
    hears_packets: bool
    packet_filter: tuple[int, bytes] | None
    sets_pipeline: bool

    @staticmethod
    def read(config: any_pb2.Any) -> RoleConfig:
        """Read what came with a bid."""
        from finsy.proto.stratum1.p4_role_config_pb2 import P4RoleConfig

        message = P4RoleConfig()
        if not config.Is(P4RoleConfig.DESCRIPTOR) or not _unpack(config, message):
            kind = config.type_url.rpartition("/")[2] or "no type"
            raise invalid(
                f"the role's config is of {kind}, which says nothing here; send a "
                f"{P4RoleConfig.DESCRIPTOR.full_name}, or none"
            )
        found = message.packet_in_filter
        return RoleConfig(
            own=frozenset(message.exclusive_p4_ids),
            shared=frozenset(message.shared_p4_ids),
            hears_packets=message.receives_packet_ins,
            packet_filter=(found.metadata_id, found.value.lstrip(b"\0") or b"\0")
            if message.HasField("packet_in_filter")
            else None,
            sets_pipeline=message.can_push_pipeline,
        )


class Owners:
    """The roles to which a program gives its objects."""

    def __init__(self, info: p4i.P4Info) -> None:
        self._of: dict[int, frozenset[str]] = {}
        for kind in (
            *(info.tables, info.actions, info.action_profiles, info.counters, info.meters),
            *(info.registers, info.value_sets, info.digests, info.controller_packet_metadata),
        ):
            for item in kind:
                found = _roles(item.preamble.annotations)
                if found:
                    self._of[item.preamble.id] = found
        for profile in info.action_profiles:
            tables = [self.of(table) for table in profile.table_ids]
            if profile.preamble.id not in self._of and any(tables):
                self._of[profile.preamble.id] = frozenset().union(*tables)
        self.named = frozenset().union(*self._of.values())

    def of(self, object_id: int) -> frozenset[str]:
        """Return an object's roles; none means the default role's, or anybody's."""
        return self._of.get(object_id, frozenset())


class Scope(Data):
    """What one role has of one pipeline.

    `others` is what other roles have to themselves.
    """

    role: str
    owners: Owners
    config: RoleConfig | None = None
    others: frozenset[int] = frozenset()

    @property
    def is_everything(self) -> bool:
        """Tell whether nothing is out of scope."""
        return not self.others and self.config is None and not self._by_name

    @property
    def _by_name(self) -> bool:
        return bool(self.role and self.config is None and self.owners.named)

    def has(self, object_id: int) -> bool:
        """Tell whether an object is in scope; 0 is what has no id."""
        if self.config is not None:
            return object_id in self.config.own or object_id in self.config.shared
        return not self._by_name or self.role in self.owners.of(object_id)

    def reads(self, entity: p4r.Entity) -> bool:
        """Tell whether a read in this role shows an entity."""
        return self.has(_object_of(entity))

    def refusal(self, entity: p4r.Entity) -> RequestError | None:
        """Say why the role may not write an entity, if it may not."""
        found = _object_of(entity)
        if found in self.others:
            return denied(f"object {found:#010x} is another role's alone")
        if not self.has(found):
            who = ", ".join(map(repr, sorted(self.owners.of(found)))) or "other roles"
            what = f"object {found:#010x}" if found else "the replication engine"
            cure = "its config leaves it out" if self.config is not None else f"it is for {who}"
            return denied(f"role {self.role!r} may not write {what}: {cure}")
        if self._by_name:
            for action in _actions_of(entity):
                owners = self.owners.of(action)
                if owners and self.role not in owners:
                    return denied(f"role {self.role!r} may not use action {action:#010x}")
        return None

    def may_use_packets(self, header_id: int) -> bool:
        """Tell whether the role may send, or hears of, packets with a controller header."""
        owners = self.owners.of(header_id)
        return not self._by_name or not owners or self.role in owners

    def hears(self, packet: p4r.PacketIn, header_id: int) -> bool:
        """Tell whether the role is told of a packet."""
        if self.config is None:
            return self.may_use_packets(header_id)
        if not self.config.hears_packets:
            return False
        wanted = self.config.packet_filter
        return wanted is None or wanted in ((m.metadata_id, m.value) for m in packet.metadata)

    def part_of(
        self, message: p4r.StreamMessageResponse, header_id: int
    ) -> p4r.StreamMessageResponse | None:
        """Return what of a notification concerns the role, if anything does."""
        kind = message.WhichOneof("update")
        if kind == "packet":
            return message if self.hears(message.packet, header_id) else None
        if kind == "digest":
            return message if self.has(message.digest.digest_id) else None
        if kind != "idle_timeout_notification" or self.is_everything:
            return message
        idle = message.idle_timeout_notification
        entries = [entry for entry in idle.table_entry if self.has(entry.table_id)]
        part = p4r.IdleTimeoutNotification(table_entry=entries, timestamp=idle.timestamp)
        return p4r.StreamMessageResponse(idle_timeout_notification=part) if entries else None


def _unpack(config: any_pb2.Any, message: Message) -> bool:
    from google.protobuf.message import DecodeError

    try:
        return bool(config.Unpack(message))
    except DecodeError:
        return False


def _roles(annotations: Iterable[str]) -> frozenset[str]:
    return frozenset(
        role
        for note in annotations
        if note.startswith(ANNOTATION)
        for role in _QUOTED.findall(note)
    )


def _object_of(entity: p4r.Entity) -> int:
    """Return the id of the object an entity is part of, 0 if it has none."""
    kind = entity.WhichOneof("entity")
    if kind == "table_entry":
        return entity.table_entry.table_id
    if kind == "direct_counter_entry":
        return entity.direct_counter_entry.table_entry.table_id
    if kind == "direct_meter_entry":
        return entity.direct_meter_entry.table_entry.table_id
    if kind not in _ID_FIELDS:
        return 0
    found: int = getattr(getattr(entity, kind), _ID_FIELDS[kind])
    return found


def _actions_of(entity: p4r.Entity) -> Iterator[int]:
    """Yield the ids of the actions an entity brings."""
    if entity.HasField("action_profile_member"):
        yield entity.action_profile_member.action.action_id
    elif entity.HasField("table_entry"):
        action = entity.table_entry.action
        yield action.action.action_id
        for each in action.action_profile_action_set.action_profile_actions:
            yield each.action.action_id
