"""A table's entry as its client wrote it, its one-shot action set included."""

from __future__ import annotations

from finsy.proto import p4r

from params.data import Data
from switch import dataplane as dp
from switch.p4runtime.actions import Call
from switch.p4runtime.pipeline import Pipeline
from switch.p4runtime.ports import Ports

Key = tuple[tuple[int, ...], tuple[int, ...], int]
"""What identifies an entry in its table: values, masks and priority."""


NO_WATCH = -1


class Watch(Data):
    """The port a member depends on, in the field the client used."""

    port: int = NO_WATCH
    is_bytes: bool = False

    def write_to(
        self, message: p4r.ActionProfileGroup.Member | p4r.ActionProfileAction, ports: Ports
    ) -> None:
        """Fill in a message's `watch_kind`."""
        if self.port == NO_WATCH:
            return
        if self.is_bytes:
            message.watch_port = ports.text(self.port)
        else:
            message.watch = self.port


class OneShotAction(Data):
    """One action of a one-shot."""

    call: Call
    weight: int
    watch: Watch


class OneShot(Data):
    """An action set, and the members and group it became."""

    profile: int
    actions: tuple[OneShotAction, ...]
    mode: int
    size_semantics: int
    group: int
    members: tuple[int, ...]

    def encode(self, pipeline: Pipeline) -> p4r.ActionProfileActionSet:
        """Return the set as its client wrote it."""
        codec = pipeline.profiles_by_index[self.profile].actions
        message = p4r.ActionProfileActionSet()
        message.action_selection_mode = p4r.ActionProfileActionSet.ActionSelectionMode.ValueType(
            self.mode
        )
        message.size_semantics = p4r.ActionProfileActionSet.SizeSemantics.ValueType(
            self.size_semantics
        )
        for item in self.actions:
            action = message.action_profile_actions.add(
                action=codec.encode(*item.call), weight=item.weight
            )
            item.watch.write_to(action, pipeline.ports)
        return message


class Record(dp.Entry, frozen=False):
    """An entry with what only the control plane knows of it.

    A program's own entries rank below zero in the data plane, so that they need not know how many
    they are; clients see them `raised` to where the last has priority 1.
    """

    metadata: bytes = b""
    controller_metadata: int = 0
    meter: p4r.MeterConfig | None = None
    one_shot: OneShot | None = None
    is_const: bool = False
    raised: int = 0

    @property
    def shown_priority(self) -> int:
        """Its priority as clients see it."""
        return self.priority + self.raised

    @property
    def key(self) -> Key:
        """What identifies it in its table, to clients."""
        return self.values, self.masks, self.priority + self.raised

    @property
    def plane_key(self) -> Key:
        """What identifies it in its table, to the data plane."""
        return self.values, self.masks, self.priority
