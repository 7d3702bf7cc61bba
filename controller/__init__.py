"""The control plane: routes, thresholds and all else a switch is told, over P4Runtime.

What speaks to switches is imported when it is asked for: whoever only makes plans does not wait for
gRPC. Private, as all but `closlab.py` is: it may change from one commit to the next.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from controller.entities import SwitchPlan
from controller.errors import ControllerError
from controller.reports import Report, ReportError, decode
from controller.routes import NextHop, Route, in_turn, routes_behind, routes_of, still_taken
from controller.settings import (
    HopTelemetry,
    LinkSpec,
    Loss,
    Punt,
    RoomError,
    Settings,
    SettingsError,
    Steering,
)
from controller.tables import switch_plan, switch_plans

if TYPE_CHECKING:
    from controller.client import (
        Target,
        Tls,
        install,
        read_plans,
    )

__all__ = [
    "ControllerError",
    "HopTelemetry",
    "LinkSpec",
    "Loss",
    "NextHop",
    "Punt",
    "Report",
    "ReportError",
    "RoomError",
    "Route",
    "Settings",
    "SettingsError",
    "Steering",
    "SwitchPlan",
    "Target",
    "Tls",
    "decode",
    "in_turn",
    "install",
    "read_plans",
    "routes_behind",
    "routes_of",
    "still_taken",
    "switch_plan",
    "switch_plans",
]

_LATE = ("Target", "Tls", "install", "read_plans")


def __getattr__(name: str) -> Any:
    """What is imported late (PEP 562)."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.client"), name)
