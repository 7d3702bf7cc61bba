"""Who may write: many controllers, one primary per role.

Each stream belongs to a role and bids with an election id, a 128-bit number no two live streams
of a role share. The primary is the live stream whose id is the highest the role has *ever* seen,
so when a primary leaves, its backups do not slide into its place: everybody is told NOT_FOUND
with the id to beat, and the first to bid as much becomes primary.

The highest id is forgotten when the last stream of a role closes. P4Runtime would keep it until a
restart; a lab's user who ends one controller and opens a shell with a smaller id expects to write.

Every change of primary is told to every stream of the role; a bid that changes nothing is answered
to the bidder alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from finsy.proto import p4r, rpc_code, rpc_status
from google.protobuf import any_pb2

from params.data import Data
from switch.p4runtime.errors import denied, invalid, not_found, precondition
from switch.p4runtime.roles import RoleConfig

ElectionId = int
"""Both halves of a `Uint128` as one number."""


def election_id(message: p4r.Uint128) -> ElectionId:
    """Return a `Uint128` as an integer."""
    return message.high << 64 | message.low


class Stream(Data, frozen=False, eq=False):
    """One controller's stream; `send` queues a message to it."""

    send: Callable[[p4r.StreamMessageResponse], None]
    role: str = ""
    bid: ElectionId | None = None
    joined: bool = False


class _Role(Data, frozen=False):
    """A role's live streams and the best bid it has seen."""

    name: str
    streams: list[Stream] = field(default_factory=list)
    highest: ElectionId | None = None
    primary: Stream | None = None
    config: any_pb2.Any | None = None
    limits: RoleConfig | None = None


class Arbiter:
    """The live controllers of one device."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._roles: dict[str, _Role] = {}

    def bid(self, stream: Stream, update: p4r.MasterArbitrationUpdate) -> None:
        """Take a stream's bid; raise if it must end the stream."""
        self._check(stream, update)
        bid = election_id(update.election_id) if update.HasField("election_id") else None
        limits = RoleConfig.read(update.role.config) if update.role.HasField("config") else None
        if limits is not None:
            self._check_claims(update.role.name, limits)
        role = self._roles.setdefault(update.role.name, _Role(update.role.name))
        if bid is not None and any(s.bid == bid for s in role.streams if s is not stream):
            raise invalid(
                f"Election id {bid} is already used by another controller"
                + (f" of role {role.name!r}" if role.name else "")
                + "; choose another"
            )
        if not stream.joined:
            stream.role, stream.joined = role.name, True
            role.streams.append(stream)
        stream.bid = bid
        self._elect(role, stream, update, limits)

    def leave(self, stream: Stream) -> None:
        """Forget a stream that ended."""
        if not stream.joined:
            return
        role = self._roles[stream.role]
        role.streams.remove(stream)
        stream.joined = False
        if not role.streams:
            del self._roles[stream.role]
        elif role.primary is stream:
            role.primary = None
            self._tell(role, role.streams)

    def require_primary(self, role_name: str, message: p4r.Uint128) -> None:
        """Raise unless the writer is the primary of its role."""
        role = self._roles.get(role_name)
        if role is None:
            if role_name:
                raise not_found(f"no controller is connected with role {role_name!r}")
            raise denied("no controller is connected: open a StreamChannel and bid first")
        bid = election_id(message)
        if role.primary is None or role.primary.bid != bid:
            best = "nobody is" if role.primary is None else f"election id {role.primary.bid} is"
            raise denied(f"election id {bid} is not primary ({best}); only the primary may write")

    def is_primary(self, stream: Stream) -> bool:
        """Tell whether a stream is its role's primary."""
        role = self._roles.get(stream.role)
        return stream.joined and role is not None and role.primary is stream

    def limits(self, role_name: str) -> RoleConfig | None:
        """Return the config a role's primary gave it, None if it gave none."""
        role = self._roles.get(role_name)
        return None if role is None else role.limits

    def claimed_by_others(self, role_name: str) -> frozenset[int]:
        """Return the objects that other roles have to themselves."""
        others = (r.limits.own for r in self._roles.values() if r.limits and r.name != role_name)
        return frozenset().union(*others)

    def primaries(self) -> Iterator[Stream]:
        """Yield the primary stream of every role."""
        for role in self._roles.values():
            if role.primary is not None:
                yield role.primary

    def _check_claims(self, role_name: str, limits: RoleConfig) -> None:
        """Refuse a config that claims what another role has to itself, or uses."""
        for other in self._roles.values():
            if other.limits is None or other.name == role_name:
                continue
            theirs, ours = other.limits, limits
            both = theirs.own & (ours.own | ours.shared) | ours.own & theirs.shared
            if both:
                raise invalid(
                    f"role {role_name!r} cannot have object {min(both):#010x}: role"
                    f" {other.name!r} has it, and one of them claims it for itself"
                )

    def _check(self, stream: Stream, update: p4r.MasterArbitrationUpdate) -> None:
        if update.device_id != self._device_id:
            if stream.joined:
                raise precondition(f"this stream belongs to device {self._device_id}")
            raise not_found(f"no device {update.device_id} here; this is {self._device_id}")
        if stream.joined and update.role.name != stream.role:
            raise precondition(
                f"this stream belongs to role {stream.role!r}; open another for another role"
            )

    def _elect(
        self,
        role: _Role,
        stream: Stream,
        update: p4r.MasterArbitrationUpdate,
        limits: RoleConfig | None,
    ) -> None:
        wins = stream.bid is not None and (role.highest is None or stream.bid >= role.highest)
        if wins:
            config = update.role.config if update.role.HasField("config") else None
            changed = role.primary is not stream or role.config != config
            changed |= role.highest != stream.bid
            role.primary, role.highest, role.config = stream, stream.bid, config
            role.limits = limits
        else:
            changed = role.primary is stream
            if changed:
                role.primary = None
        self._tell(role, role.streams if changed else [stream])

    def _tell(self, role: _Role, streams: list[Stream]) -> None:
        # The primary hears last: by then nobody else believes in writing.
        for stream in sorted(streams, key=lambda s: s is role.primary):
            stream.send(p4r.StreamMessageResponse(arbitration=self._update(role, stream)))

    def _update(self, role: _Role, stream: Stream) -> p4r.MasterArbitrationUpdate:
        update = p4r.MasterArbitrationUpdate(device_id=self._device_id)
        if role.name:
            update.role.name = role.name
        if role.config is not None:
            update.role.config.CopyFrom(role.config)
        if role.highest is not None:
            update.election_id.high = role.highest >> 64
            update.election_id.low = role.highest & (1 << 64) - 1
        update.status.CopyFrom(_status(role, stream))
        return update


def _status(role: _Role, stream: Stream) -> rpc_status.Status:
    if role.primary is stream:
        return rpc_status.Status(code=rpc_code.OK, message="you are primary")
    if role.primary is None:
        return rpc_status.Status(code=rpc_code.NOT_FOUND, message="there is no primary")
    return rpc_status.Status(code=rpc_code.ALREADY_EXISTS, message="another is primary")
