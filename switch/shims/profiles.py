"""Commands on action profiles and the tables that use them."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from switch import dataplane as dp
from switch.p4runtime.pipeline import ProfileBinding
from switch.shims.session import Session, named, need, number
from switch.shims.tables import dump_call, parse_action, parse_key

_NO_LIMIT = 1 << 16


def do_act_prof_create_member(session: Session, words: list[str]) -> Iterator[str]:
    """Add a member: act_prof_create_member <profile> <action> [action parameters]."""
    need(words, 2, _NO_LIMIT)
    profile = _profile(session, words[0])
    taken = {m.member_id for m in _members(session, profile)}
    handle = next(n for n in range(1, len(taken) + 2) if n not in taken)
    member = p4r.ActionProfileMember(action_profile_id=profile.symbol.id, member_id=handle)
    member.action.CopyFrom(_call(session, words[1], words[2:]))
    session.write(dp.Verb.INSERT, p4r.Entity(action_profile_member=member))
    yield f"Member has been created with handle {handle}"


def do_act_prof_modify_member(session: Session, words: list[str]) -> None:
    """Change a member: act_prof_modify_member <profile> <action> <member> [action parameters]."""
    need(words, 3, _NO_LIMIT)
    profile = _profile(session, words[0])
    member = p4r.ActionProfileMember(
        action_profile_id=profile.symbol.id, member_id=number(words[2], "member handle")
    )
    member.action.CopyFrom(_call(session, words[1], words[3:]))
    session.write(dp.Verb.MODIFY, p4r.Entity(action_profile_member=member))


def do_act_prof_delete_member(session: Session, words: list[str]) -> None:
    """Delete a member: act_prof_delete_member <profile> <member>."""
    need(words, 2)
    member = p4r.ActionProfileMember(
        action_profile_id=_profile(session, words[0]).symbol.id,
        member_id=number(words[1], "member handle"),
    )
    session.write(dp.Verb.DELETE, p4r.Entity(action_profile_member=member))


def do_act_prof_create_group(session: Session, words: list[str]) -> Iterator[str]:
    """Add a group: act_prof_create_group <profile>."""
    need(words, 1)
    profile = _profile(session, words[0])
    taken = {g.group_id for g in _groups(session, profile)}
    handle = next(n for n in range(1, len(taken) + 2) if n not in taken)
    group = p4r.ActionProfileGroup(action_profile_id=profile.symbol.id, group_id=handle)
    session.write(dp.Verb.INSERT, p4r.Entity(action_profile_group=group))
    yield f"Group has been created with handle {handle}"


def do_act_prof_delete_group(session: Session, words: list[str]) -> None:
    """Delete a group: act_prof_delete_group <profile> <group>."""
    need(words, 2)
    group = p4r.ActionProfileGroup(
        action_profile_id=_profile(session, words[0]).symbol.id,
        group_id=number(words[1], "group handle"),
    )
    session.write(dp.Verb.DELETE, p4r.Entity(action_profile_group=group))


def do_act_prof_add_member_to_group(session: Session, words: list[str]) -> None:
    """Put a member into a group: act_prof_add_member_to_group <profile> <member> <group>."""
    need(words, 3)
    profile = _profile(session, words[0])
    group = _group(session, profile, words[2])
    group.members.add(member_id=number(words[1], "member handle"), weight=1)
    session.write(dp.Verb.MODIFY, p4r.Entity(action_profile_group=group))


def do_act_prof_remove_member_from_group(session: Session, words: list[str]) -> None:
    """Take a member out: act_prof_remove_member_from_group <profile> <member> <group>."""
    need(words, 3)
    profile = _profile(session, words[0])
    group = _group(session, profile, words[2])
    leaving = number(words[1], "member handle")
    kept = [member for member in group.members if member.member_id != leaving]
    del group.members[:]
    group.members.extend(kept)
    session.write(dp.Verb.MODIFY, p4r.Entity(action_profile_group=group))


def do_act_prof_dump(session: Session, words: list[str]) -> Iterator[str]:
    """Show members and groups: act_prof_dump <profile>."""
    need(words, 1)
    profile = _profile(session, words[0])
    yield "=========="
    yield "MEMBERS"
    for member in _members(session, profile):
        yield "**********"
        yield f"Dumping member {member.member_id}"
        yield dump_call(session, member.action)
    if profile.symbol.is_selector:
        yield "=========="
        yield "GROUPS"
        for group in _groups(session, profile):
            yield "**********"
            yield f"Dumping group {group.group_id}"
            yield f"Members: [{', '.join(str(m.member_id) for m in group.members)}]"


def do_table_indirect_add(session: Session, words: list[str]) -> Iterator[str]:
    """Use a member: table_indirect_add <table> <match fields> => <member>."""
    yield from _add_indirect(session, words, to_group=False)


def do_table_indirect_add_with_group(session: Session, words: list[str]) -> Iterator[str]:
    """Use a group: table_indirect_add_with_group <table> <match fields> => <group>."""
    yield from _add_indirect(session, words, to_group=True)


def do_table_indirect_delete(session: Session, words: list[str]) -> Iterator[str]:
    """Delete an entry: table_indirect_delete <table> <handle>."""
    need(words, 2)
    table = session.table(words[0])
    session.write(dp.Verb.DELETE, p4r.Entity(table_entry=session.entry(table, words[1])))
    yield f"Deleting entry {words[1]} from {words[0]}"


def _add_indirect(session: Session, words: list[str], *, to_group: bool) -> Iterator[str]:
    need(words, 3, _NO_LIMIT)
    table = session.table(words[0])
    handle = number(words[-1], "group handle" if to_group else "member handle")
    keys = [word for word in words[1:-1] if word != "=>"]
    entry = p4r.TableEntry(table_id=table.symbol.id, match=parse_key(table, keys))
    if to_group:
        entry.action.action_profile_group_id = handle
    else:
        entry.action.action_profile_member_id = handle
    session.write(dp.Verb.INSERT, p4r.Entity(table_entry=entry))
    yield f"Entry has been added with handle {session.handle_of(table, entry)}"


def _profile(session: Session, name: str) -> ProfileBinding:
    bindings = session.pipeline.profiles.values()
    return named("action profile", name, bindings, lambda p: p.symbol.name)


def _call(session: Session, name: str, words: list[str]) -> p4r.Action:
    actions = session.pipeline.symbols.actions
    return parse_action(named("action", name, actions, lambda a: a.name), words)


def _members(session: Session, profile: ProfileBinding) -> list[p4r.ActionProfileMember]:
    query = p4r.ActionProfileMember(action_profile_id=profile.symbol.id)
    found = session.read(p4r.Entity(action_profile_member=query))
    return [entity.action_profile_member for entity in found]


def _groups(session: Session, profile: ProfileBinding) -> list[p4r.ActionProfileGroup]:
    query = p4r.ActionProfileGroup(action_profile_id=profile.symbol.id)
    found = session.read(p4r.Entity(action_profile_group=query))
    return [entity.action_profile_group for entity in found]


def _group(session: Session, profile: ProfileBinding, word: str) -> p4r.ActionProfileGroup:
    handle = number(word, "group handle")
    groups = {group.group_id: group for group in _groups(session, profile)}
    return named("group", str(handle), groups.values(), lambda group: str(group.group_id))
