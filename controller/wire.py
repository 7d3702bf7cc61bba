"""Plans to finsy's entities and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import finsy as fy

from controller.entities import (
    CloneSession,
    DefaultAction,
    Entity,
    Match,
    MulticastGroup,
    SwitchPlan,
    TableEntry,
)
from controller.errors import OtherProgramError

FinsyEntity = (
    fy.P4TableEntry | fy.P4CloneSessionEntry | fy.P4MulticastGroupEntry
)  # what plans consist of


def to_finsy(entity: Entity) -> FinsyEntity:
    """An entity as finsy sends it."""
    match entity:
        case TableEntry():
            return fy.P4TableEntry(
                entity.table,
                match=fy.Match(entity.match),
                action=fy.Action(entity.action, **dict(entity.params)),
                priority=entity.priority,
            )
        case DefaultAction():
            return fy.P4TableEntry(
                entity.table,
                action=fy.Action(entity.action, **dict(entity.params)),
                is_default_action=True,
            )
        case CloneSession():
            return fy.P4CloneSessionEntry(
                entity.session, class_of_service=entity.priority, replicas=[entity.port]
            )
        case MulticastGroup():
            return fy.P4MulticastGroupEntry(entity.group, replicas=list(entity.ports))


def from_finsy(found: FinsyEntity) -> Entity | None:
    """An entity as a switch has it; None for a default action that is none."""
    match found:
        case fy.P4CloneSessionEntry():
            ports = [_port(replica) for replica in found.replicas]
            return CloneSession(found.session_id, ports[0] if ports else 0, found.class_of_service)
        case fy.P4MulticastGroupEntry():
            ports = [_port(replica) for replica in found.replicas]
            return MulticastGroup(found.multicast_group_id, tuple(ports))
        case fy.P4TableEntry(action=fy.P4TableAction() as action):
            params = tuple(sorted(action.args.items()))
            if found.is_default_action:
                return DefaultAction(found.table_id, action.name, params)
            match_fields: list[tuple[str, Match]] = sorted((found.match or {}).items())
            return TableEntry(
                found.table_id, tuple(match_fields), action.name, params, found.priority
            )
    return None


def canonical(plan: Iterable[Entity], schema: Any) -> SwitchPlan:
    """A plan with every name as the switch will tell it."""
    try:
        return tuple(_canonical(entity, schema) for entity in plan)
    except ValueError as error:
        raise OtherProgramError(
            f"the controller fills what this program has not: {error} "
            "(controller/tables.py has the names; leave those of tables, keys, actions and "
            "parameters as they are in p4src, or change both)"
        ) from None


def _canonical(entity: Entity, schema: Any) -> Entity:
    if not isinstance(entity, TableEntry | DefaultAction):
        return entity
    table = schema.tables[entity.table]
    action = table.actions[entity.action]
    params = tuple(sorted((action.params[name].name, value) for name, value in entity.params))
    if isinstance(entity, DefaultAction):
        return DefaultAction(table.alias, action.alias, params)
    match = tuple(sorted((table.match_fields[name].alias, value) for name, value in entity.match))
    return TableEntry(table.alias, match, action.alias, params, entity.priority)


def _port(replica: Any) -> int:
    return int(replica[0] if isinstance(replica, tuple) else getattr(replica, "port", replica))
