"""What somebody who watches a run may have done to the fabric: `lb conga`, `fail leaf1-spine2`.

The words are the prompt's. In a result a cable that was cut by hand is a fault of the scenario at
that time, so that the run can be repeated, and so is the load balancer, if it was chosen before the
run; one that was chosen meanwhile has no such place, and is told of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lab.errors import LabError
from lab.scenario.keys import nearest
from lab.scenario.model import Fault, Scenario
from params.data import Data
from params.load_balancing import Policy
from topologies import Fabric, Link

_ACTIONS = {"fail": "down", "mend": "up", "drain": "drain", "undrain": "undrain"}
_DONE = {
    "fail": "cut; routes lead round it",
    "mend": "up",
    "drain": "drained: who has another way takes that",
    "undrain": "used again",
}


class ByHand(NamedTuple):
    """What was done by hand, and when."""

    at_ns: int
    what: str  # the words of the wish


class LiveAction(Data):
    """One of them, which this fabric can be granted."""

    word: str
    value: str  # a policy, or a cable between switches

    @classmethod
    def read(cls, text: str, fabric: Fabric) -> LiveAction:
        """From its words, checked."""
        word, _, value = text.strip().partition(" ")
        match word:
            case "lb":
                known = [policy.value for policy in Policy]
                _check("policy", value, known)
            case "fail" | "mend":
                value = value.replace(" ", "-")
                _check("cable between switches", value, cables(fabric))
            case "drain" | "undrain":
                value = value.replace(" ", "-")
                between = {link.name: link for link in fabric.links if link.joins_switches}
                _check("cable between switches", value, between)
            case _:
                raise LabError(
                    f"nobody here knows the word '{word}'",
                    "It is one of lb, fail, mend, drain and undrain.",
                )
        return cls(word, value)

    def __str__(self) -> str:
        """Its words."""
        return f"{self.word} {self.value}"

    @property
    def policy(self) -> Policy | None:
        """The load balancer it asks for, if it does."""
        return Policy(self.value) if self.word == "lb" else None

    @property
    def done(self) -> str:
        """What is told of a cable once it was done."""
        return f"{self.value} is {_DONE[self.word]}."

    @property
    def link(self) -> str:
        """The cable it is about, if it is about one."""
        return self.value if self.word in _ACTIONS else ""

    def granted(self, scenario: Scenario, now_ns: int) -> Scenario:
        """The scenario in which this happens now by itself, as far as scenarios can say it."""
        if self.word not in _ACTIONS:
            return scenario
        fault = Fault.model_validate(
            {"at_ns": now_ns, "action": _ACTIONS[self.word], "link": self.value}
        )
        return scenario.model_copy(update={"faults": (*scenario.faults, fault)})


def as_it_was(scenario: Scenario, fabric: Fabric, done: Iterable[ByHand]) -> Scenario:
    """The scenario in which what hands did happens by itself; what they did before it began, and
    took back, is not told."""
    before: dict[str, LiveAction] = {}  # by what it is about: the last is what holds
    after = []
    for hand in done:
        try:
            action = LiveAction.read(hand.what, fabric)
        except LabError:  # something that no scenario says
            continue
        if hand.at_ns:
            after.append((hand.at_ns, action))
        else:
            kind = "drain" if action.word in ("drain", "undrain") else "link"
            before[f"{kind} {action.link}"] = action
    for action in before.values():
        if action.policy is not None:
            lb = scenario.lb.model_copy(update={"policy": action.policy})
            scenario = scenario.model_copy(update={"lb": lb})
        elif action.word in ("fail", "drain"):
            scenario = action.granted(scenario, 0)
    for at_ns, action in after:
        scenario = action.granted(scenario, at_ns)
    return scenario


def cables(fabric: Fabric) -> dict[str, Link]:
    """By name: what can be cut, for there may be a way round it, or another port."""
    has_more = fabric.host_ports > 1
    return {link.name: link for link in fabric.links if link.joins_switches or has_more}


def _check(what: str, value: str, known: list[str] | dict[str, Link]) -> None:
    if value not in known:
        raise LabError(
            f"there is no {what} '{value}'{nearest(value, known)}",
            f"There are {', '.join([*known][:24])}.",
        )
