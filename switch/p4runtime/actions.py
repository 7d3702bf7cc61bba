"""Actions with their arguments, between the wire and the data plane.

An action may stand in the data plane once per table that uses it, under one name; which copy is
meant is settled here, per table or profile, when a pipeline is set.
"""

from __future__ import annotations

from collections.abc import Iterable

from finsy.proto import p4r

from params.data import Data
from switch.p4runtime import values as wire
from switch.p4runtime.errors import RequestError, invalid
from switch.p4runtime.symbols import Action

Call = tuple[int, tuple[int, ...]]
"""An action's index in the data plane and its arguments."""


class _Bound(Data):
    """An action and its index in the data plane; `ones` has each parameter's largest value."""

    action: Action
    index: int
    ones: tuple[tuple[int, int], ...]


class ActionCodec:
    """Reads and writes the actions one table (or profile) may take."""

    def __init__(self, where: str, actions: Iterable[tuple[Action, int]]) -> None:
        self.where = where
        self._by_id: dict[int, _Bound] = {}
        self._by_index: dict[int, _Bound] = {}
        for action, index in actions:
            # Strings take the slow path: no number is small enough for them.
            ones = tuple(
                (param.id, wire.all_ones(param.bits) if param.names is None else -1)
                for param in action.params
            )
            bound = _Bound(action, index, ones)
            self._by_id[action.id] = self._by_index[index] = bound

    def decode(self, message: p4r.Action) -> Call:
        """Return the data plane's index of an action and its arguments, in the program's order."""
        bound = self._by_id.get(message.action_id)
        if bound is None:
            raise self._unknown(message.action_id)
        params = message.params
        if len(params) != len(bound.ones):
            raise self._wrong_params(bound, message)
        if not params:
            return bound.index, ()
        numbers = []
        for (param_id, ones), param in zip(bound.ones, params, strict=True):
            value = param.value
            number = int.from_bytes(value, "big")
            if param.param_id != param_id or number > ones or not value:
                return bound.index, self._decode_slowly(bound, message)
            numbers.append(number)
        return bound.index, tuple(numbers)

    def encode(self, index: int, params: tuple[int, ...]) -> p4r.Action:
        """Return an action in canonical form."""
        bound = self._by_index[index]
        return p4r.Action(
            action_id=bound.action.id,
            params=[
                p4r.Action.Param(param_id=param.id, value=wire.encode_field(number, param))
                for param, number in zip(bound.action.params, params, strict=True)
            ],
        )

    def id_of(self, index: int) -> int:
        """Return the P4Info id of an action, 0 if P4Info does not list it."""
        bound = self._by_index.get(index)
        return bound.action.id if bound else 0

    def has(self, action_id: int) -> bool:
        """Tell whether the action is one of this table's."""
        return action_id in self._by_id

    def _decode_slowly(self, bound: _Bound, message: p4r.Action) -> tuple[int, ...]:
        """Read arguments that came in another order, or say what is wrong with them."""
        given = {param.param_id: param.value for param in message.params}
        if given.keys() != {param.id for param in bound.action.params}:
            raise self._wrong_params(bound, message)
        return tuple(
            wire.decode_field(given[param.id], param, self._place(bound, param.name))
            for param in bound.action.params
        )

    def _place(self, bound: _Bound, param: str) -> str:
        return f"{self.where}: action {bound.action.name}: parameter {param}"

    def _unknown(self, action_id: int) -> RequestError:
        known = ", ".join(bound.action.name for bound in self._by_id.values()) or "none"
        what = (
            f"action id 0x{action_id:08x} is not one of its actions" if action_id else "no action"
        )
        return invalid(f"{self.where}: {what}; it may take: {known}")

    def _wrong_params(self, bound: _Bound, message: p4r.Action) -> RequestError:
        wanted = [f"{p.id} ({p.name})" for p in bound.action.params] or ["none"]
        given = [str(p.param_id) for p in message.params] or ["none"]
        return invalid(
            f"{self.where}: action {bound.action.name} takes parameters {', '.join(wanted)};"
            f" given: {', '.join(given)}"
        )
