"""The control plane: routes, thresholds and all else a switch is told, over P4Runtime.

What speaks to switches is imported when it is asked for: whoever only makes plans does not wait for
gRPC.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from controller.entities import SwitchPlan
from controller.errors import ControllerError
from controller.reports import Report, ReportError, decode
from controller.routes import NextHop, Route, in_turn, routes_of, still_taken
from controller.settings import (
    Buffer,
    Ecn,
    LinkSpec,
    LoadBalancing,
    Loss,
    Pfc,
    Policy,
    Punt,
    Remedy,
    Replay,
    Rule,
    Settings,
    SettingsError,
    Steering,
    Telemetry,
    Trim,
    Watchdog,
)
from controller.tables import switch_plan, switch_plans

if TYPE_CHECKING:
    from controller.client import (
        Counts,
        Target,
        Tls,
        install,
        read_counts,
        read_plans,
    )
    from controller.wire import to_finsy

__all__ = [
    "Buffer",
    "ControllerError",
    "Counts",
    "Ecn",
    "LinkSpec",
    "LoadBalancing",
    "Loss",
    "NextHop",
    "Pfc",
    "Policy",
    "Punt",
    "Remedy",
    "Replay",
    "Report",
    "ReportError",
    "Route",
    "Rule",
    "Settings",
    "SettingsError",
    "Steering",
    "SwitchPlan",
    "Target",
    "Telemetry",
    "Tls",
    "Trim",
    "Watchdog",
    "decode",
    "in_turn",
    "install",
    "read_counts",
    "read_plans",
    "routes_of",
    "still_taken",
    "switch_plan",
    "switch_plans",
    "to_finsy",
]

_CLIENT = ("Counts", "Target", "Tls", "install", "read_counts", "read_plans")
_LATE = {**dict.fromkeys(_CLIENT, "client"), "to_finsy": "wire"}


def __getattr__(name: str) -> Any:
    """What is imported late (PEP 562)."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
