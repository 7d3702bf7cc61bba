"""Action profiles: members, groups, and the one-shots that make both on the fly.

A one-shot (an action set inside a table entry) becomes members and a group of its own in the data
plane, with ids no client is likely to pick; clients only ever see the set they wrote. A profile is
used one way or the other, never both, so ids cannot meet in practice and are checked anyway.

References are counted, so that what an entry or a group uses cannot be deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from finsy.proto import p4r

from params.data import Data
from switch import dataplane as dp
from switch.p4runtime.actions import Call
from switch.p4runtime.batch import Batch
from switch.p4runtime.errors import (
    already_exists,
    exhausted,
    invalid,
    not_found,
    precondition,
    unimplemented,
)
from switch.p4runtime.pipeline import Pipeline, ProfileBinding, TableBinding
from switch.p4runtime.ports import Ports
from switch.p4runtime.record import OneShot, OneShotAction, Record, Watch
from switch.p4runtime.symbols import unknown_id

FIRST_HIDDEN_ID = 0x4000_0000


class Seat(Data):
    """A member's place in a group."""

    member: int
    weight: int
    watch: Watch


class Group(Data):
    """A group as its client wrote it."""

    seats: tuple[Seat, ...]
    max_size: int


class Profiles:
    """The members and groups of every action profile."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        profiles = range(len(pipeline.program.profiles))
        self._members: list[dict[int, Call]] = [{} for _ in profiles]
        self._groups: list[dict[int, Group]] = [{} for _ in profiles]
        self._member_uses: list[dict[int, int]] = [{} for _ in profiles]
        self._group_uses: list[dict[int, int]] = [{} for _ in profiles]
        self._one_shots: dict[int, int] = {}
        self._next_hidden = FIRST_HIDDEN_ID

    def rebind(self, pipeline: Pipeline) -> None:
        """Speak to clients in the terms of another P4Info of the same program."""
        self._pipeline = pipeline

    # What table entries ask

    def bind(
        self, batch: Batch, table: TableBinding, record: Record, action: p4r.TableAction
    ) -> None:
        """Point an entry to a member, a group or a new one-shot."""
        assert table.info.profile is not None
        profile = self._pipeline.profiles_by_index[table.info.profile]
        kind = action.WhichOneof("type")
        if kind == "action_profile_member_id":
            member = action.action_profile_member_id
            self._require_manual(profile)
            if member not in self._members[profile.index]:
                raise not_found(f"{profile.where} has no member {member}")
            record.member = member
            _count(batch, self._member_uses[profile.index], member, 1)
        elif kind == "action_profile_group_id" and profile.symbol.is_selector:
            group = action.action_profile_group_id
            self._require_manual(profile)
            if group not in self._groups[profile.index]:
                raise not_found(f"{profile.where} has no group {group}")
            record.group = group
            _count(batch, self._group_uses[profile.index], group, 1)
        elif kind == "action_profile_action_set" and profile.symbol.is_selector:
            self._shoot(batch, profile, record, action.action_profile_action_set)
        else:
            wanted = "a member id, a group id or an action set"
            if not profile.symbol.is_selector:
                wanted = "a member id"
            raise invalid(f"{table.where} takes {wanted}, {kind or 'nothing'} was given")

    def release(self, batch: Batch, record: Record) -> None:
        """Count an entry's member or group as no longer used by it."""
        table = self._pipeline.tables_by_index[record.table]
        profile = table.info.profile
        if profile is None:
            return
        if record.one_shot is not None:
            _count(batch, self._one_shots, profile, -1)
        elif record.member:
            _count(batch, self._member_uses[profile], record.member, -1)
        elif record.group:
            _count(batch, self._group_uses[profile], record.group, -1)

    def sweep(self, batch: Batch, record: Record) -> None:
        """Delete the members and group of a one-shot that is no longer used."""
        shot = record.one_shot
        if shot is None:
            return
        batch.ops.append(dp.GroupWrite(dp.Verb.DELETE, shot.profile, shot.group))
        batch.ops.extend(
            dp.MemberWrite(dp.Verb.DELETE, shot.profile, member) for member in shot.members
        )

    def _shoot(
        self,
        batch: Batch,
        profile: ProfileBinding,
        record: Record,
        action_set: p4r.ActionProfileActionSet,
    ) -> None:
        if self._members[profile.index] or self._groups[profile.index]:
            raise invalid(
                f"{profile.where} holds members or groups; delete them before using action sets"
            )
        if action_set.action_selection_mode == p4r.ActionProfileActionSet.RANDOM:
            raise unimplemented(f"{profile.where}: members are selected by hash only")
        actions = tuple(
            OneShotAction(
                profile.actions.decode(item.action),
                _weight(profile, item.weight),
                _watch(profile, item, self._pipeline.ports),
            )
            for item in action_set.action_profile_actions
        )
        self._check_size(profile, [item.weight for item in actions], 0)
        hidden = self._next_hidden
        self._next_hidden += len(actions) + 1
        members = tuple(range(hidden + 1, hidden + 1 + len(actions)))
        record.group = hidden
        record.one_shot = OneShot(
            profile.index,
            actions,
            action_set.action_selection_mode,
            action_set.size_semantics,
            hidden,
            members,
        )
        _count(batch, self._one_shots, profile.index, 1)
        batch.ops.extend(
            dp.MemberWrite(dp.Verb.INSERT, profile.index, member, *item.call)
            for member, item in zip(members, actions, strict=True)
        )
        seats = tuple(
            dp.GroupMember(member, item.weight, item.watch.port)
            for member, item in zip(members, actions, strict=True)
        )
        batch.ops.append(dp.GroupWrite(dp.Verb.INSERT, profile.index, hidden, seats))

    # Members

    def write_member(self, batch: Batch, verb: dp.Verb, message: p4r.ActionProfileMember) -> None:
        """Insert, modify or delete a member."""
        profile = self._profile(message.action_profile_id)
        members = self._members[profile.index]
        member = message.member_id
        _require_id(profile, "member", member, verb, members)
        if verb is dp.Verb.DELETE:
            if self._member_uses[profile.index].get(member):
                raise precondition(f"{profile.where}: member {member} is used by a group or entry")
            batch.drop(members, member)
            batch.ops.append(dp.MemberWrite(verb, profile.index, member))
            return
        self._require_manual(profile)
        if not message.HasField("action"):
            raise invalid(f"{profile.where}: member {member} needs an action")
        if verb is dp.Verb.INSERT and 0 < profile.symbol.size <= len(members):
            raise exhausted(f"{profile.where} is full: it holds {len(members)} members")
        call = profile.actions.decode(message.action)
        batch.put(members, member, call)
        batch.ops.append(dp.MemberWrite(verb, profile.index, member, *call))

    def read_members(self, query: p4r.ActionProfileMember) -> list[p4r.Entity]:
        """Return one member, a profile's or all."""
        entities = []
        for profile in self._select(query.action_profile_id):
            for member, call in self._members[profile.index].items():
                if query.member_id in (0, member):
                    message = p4r.ActionProfileMember(
                        action_profile_id=profile.symbol.id,
                        member_id=member,
                        action=profile.actions.encode(*call),
                    )
                    entities.append(p4r.Entity(action_profile_member=message))
        return entities

    # Groups

    def write_group(self, batch: Batch, verb: dp.Verb, message: p4r.ActionProfileGroup) -> None:
        """Insert, modify or delete a group."""
        profile = self._profile(message.action_profile_id)
        if not profile.symbol.is_selector:
            raise invalid(f"{profile.where} has no selector, so it has no groups")
        groups = self._groups[profile.index]
        group = message.group_id
        _require_id(profile, "group", group, verb, groups)
        old = groups.get(group)
        if verb is dp.Verb.DELETE:
            if self._group_uses[profile.index].get(group):
                raise precondition(f"{profile.where}: group {group} is used by an entry")
            batch.drop(groups, group)
            batch.ops.append(dp.GroupWrite(verb, profile.index, group))
        else:
            self._require_manual(profile)
            new = self._decode_group(profile, message)
            if old is not None and old.max_size != new.max_size:
                raise invalid(
                    f"{profile.where}: group {group} was made with max_size {old.max_size};"
                    " it cannot change"
                )
            batch.put(groups, group, new)
            seats = tuple(
                dp.GroupMember(seat.member, seat.weight, seat.watch.port) for seat in new.seats
            )
            batch.ops.append(dp.GroupWrite(verb, profile.index, group, seats))
            self._use_seats(batch, profile, new.seats, 1)
        if old is not None:
            self._use_seats(batch, profile, old.seats, -1)

    def read_groups(self, query: p4r.ActionProfileGroup) -> list[p4r.Entity]:
        """Return one group, a selector's or all."""
        entities = []
        for profile in self._select(query.action_profile_id):
            for group, state in self._groups[profile.index].items():
                if query.group_id in (0, group):
                    message = p4r.ActionProfileGroup(
                        action_profile_id=profile.symbol.id,
                        group_id=group,
                        max_size=state.max_size,
                    )
                    for seat in state.seats:
                        member = message.members.add(member_id=seat.member, weight=seat.weight)
                        seat.watch.write_to(member, self._pipeline.ports)
                    entities.append(p4r.Entity(action_profile_group=message))
        return entities

    def _decode_group(self, profile: ProfileBinding, message: p4r.ActionProfileGroup) -> Group:
        seats = []
        seen = set()
        for item in message.members:
            member = item.member_id
            if member not in self._members[profile.index]:
                raise not_found(f"{profile.where} has no member {member}; insert it first")
            if member in seen:
                raise invalid(
                    f"{profile.where}: group {message.group_id} lists member {member} twice;"
                    " give it a larger weight instead"
                )
            seen.add(member)
            watch = _watch(profile, item, self._pipeline.ports)
            seats.append(Seat(member, _weight(profile, item.weight), watch))
        self._check_size(profile, [seat.weight for seat in seats], message.max_size)
        return Group(tuple(seats), message.max_size)

    def _check_size(self, profile: ProfileBinding, weights: Sequence[int], max_size: int) -> None:
        symbol = profile.symbol
        if symbol.max_group_size and max_size > symbol.max_group_size:
            raise invalid(
                f"{profile.where}: max_size {max_size} is above the {symbol.max_group_size}"
                " of the P4Info"
            )
        if symbol.counts_members:
            size = len(weights)
            if symbol.max_member_weight and max(weights, default=0) > symbol.max_member_weight:
                raise invalid(f"{profile.where}: a weight is above {symbol.max_member_weight}")
        else:
            size = sum(weights)
        limit = max_size or symbol.max_group_size
        if limit and size > limit:
            raise exhausted(f"{profile.where}: a group of size {size} is above its limit {limit}")

    def _use_seats(
        self, batch: Batch, profile: ProfileBinding, seats: Sequence[Seat], change: int
    ) -> None:
        for seat in seats:
            _count(batch, self._member_uses[profile.index], seat.member, change)

    # Both

    def _profile(self, profile_id: int) -> ProfileBinding:
        profile = self._pipeline.profiles.get(profile_id)
        if profile is None:
            raise unknown_id("action profile", profile_id)
        return profile

    def _select(self, profile_id: int) -> Iterator[ProfileBinding]:
        if profile_id:
            yield self._profile(profile_id)
        else:
            yield from self._pipeline.profiles.values()

    def _require_manual(self, profile: ProfileBinding) -> None:
        if self._one_shots.get(profile.index):
            raise invalid(
                f"{profile.where} is used with action sets; members and groups cannot be mixed in"
            )


def _count(batch: Batch, uses: dict[int, int], key: int, change: int) -> None:
    batch.put(uses, key, uses.get(key, 0) + change)


def _require_id(
    profile: ProfileBinding, what: str, item: int, verb: dp.Verb, items: Mapping[int, object]
) -> None:
    if not item:
        raise invalid(f"{profile.where}: {what} id 0 stands for all of them and cannot be written")
    if verb is dp.Verb.INSERT:
        if item in items:
            raise already_exists(f"{profile.where}: {what} {item} exists")
    elif item not in items:
        raise not_found(f"{profile.where} has no {what} {item}")


def _weight(profile: ProfileBinding, weight: int) -> int:
    if weight <= 0:
        raise invalid(f"{profile.where}: weight {weight} is not allowed; weights begin at 1")
    return weight


def _watch(
    profile: ProfileBinding,
    message: p4r.ActionProfileGroup.Member | p4r.ActionProfileAction,
    ports: Ports,
) -> Watch:
    kind = message.WhichOneof("watch_kind")
    if kind == "watch_port" and message.watch_port:
        port = ports.number(message.watch_port, f"{profile.where}: watch_port")
        return Watch(port, is_bytes=True)
    if kind == "watch":
        if message.watch < 0:
            raise invalid(f"{profile.where}: the watched port is negative")
        return Watch(message.watch)
    return Watch()
