"""What judges each lesson: a module a lesson, its checks in the order they are told."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from course.check import Check

_MODULES = {
    1: "forwarding",
    2: "polarisation",
    3: "ramp",
    4: "buffer",
    5: "headroom",
    6: "watchdog",
    7: "rates",
    8: "flowlet",
    9: "spray",
    10: "trim",
    11: "usid",
    12: "telemetry",
    13: "sum",
}


@cache
def checks_of(lesson: int) -> tuple[Check, ...]:
    """A lesson's checks."""
    module = import_module(f"{__name__}.{_MODULES[lesson]}")
    return tuple(member for member in vars(module).values() if isinstance(member, Check))
