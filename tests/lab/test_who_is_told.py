"""Of a change only those switches hear, on Mininet, whose plans it changes: others take time."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from controller import ControllerError, Loss, Settings, SwitchPlan
from lab.engines.mininet import emulation
from lab.errors import RunError
from topologies import leaf_spine

ALL = {"leaf1", "leaf2", "leaf3", "spine1", "spine2"}
LOSS = Loss("leaf2", 1, 0.2), Loss("spine1", 2, 0.2)


class Install:
    """Stands for the controller's wire: who was spoken to, each time."""

    def __init__(self) -> None:
        self.names: list[set[str]] = []
        self.fails = False

    def __call__(
        self,
        targets: Sequence[Any],
        plans: dict[str, SwitchPlan],
        _done: object,
        **_: object,
    ) -> dict[str, int]:
        self.names.append({target.name for target in targets})
        assert self.names[-1] <= plans.keys()
        if self.fails:
            raise ControllerError("one refused")
        return {target.name: 1 for target in targets}


def test_those_hear_whose_plan_changes_or_who_lost_it(monkeypatch: pytest.MonkeyPatch) -> None:
    install = Install()
    monkeypatch.setattr(emulation, "install", install)
    fabric = leaf_spine(3, 2, 1)
    switches: Any = SimpleNamespace(
        targets=[SimpleNamespace(name=switch.name) for switch in fabric.switches],
        furnish=lambda: None, check=lambda: None, where_they_speak=lambda: None,
        restart=lambda _switch: None,
    )  # fmt: skip
    lab = emulation.Emulation(fabric, switches, Settings())
    lab.install_routes()
    lab.change(lambda settings: replace(settings, losses=LOSS))
    lab.change(lambda settings: settings)
    lab.restart(fabric.node("leaf3"))
    lab.change(lambda settings: settings)
    # leaf1 is reached by spine2 alone: so those know that lead there by a choice, and spine1.
    lab.change(lambda settings: settings, dead={"leaf1-spine1"})
    assert install.names == [ALL, {"leaf2", "spine1"}, set(), {"leaf3"}, ALL - {"spine2"}]
    install.fails = True
    with pytest.raises(RunError, match="one refused"):
        lab.change(lambda settings: replace(settings, losses=()))
    install.fails = False
    lab.change(lambda settings: settings)
    assert install.names[-1] == ALL
