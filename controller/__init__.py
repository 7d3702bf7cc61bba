"""The control plane: routes, thresholds and all else a switch is told, over P4Runtime."""

from controller.client import ControllerError, Counts, Target, install, read_counts
from controller.entities import Plan
from controller.routes import NextHop, Route, routes_of
from controller.settings import (
    Buffer,
    Ecn,
    LinkSpec,
    LoadBalancing,
    Loss,
    Pfc,
    Policy,
    Rule,
    Settings,
    SettingsError,
    Telemetry,
)
from controller.tables import plan_of, plans_of

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
    "Plan",
    "Policy",
    "Route",
    "Rule",
    "Settings",
    "SettingsError",
    "Target",
    "Telemetry",
    "install",
    "plan_of",
    "plans_of",
    "read_counts",
    "routes_of",
]
