"""The control plane: routes, thresholds and all else a switch is told, over P4Runtime."""

from controller.client import (
    ControllerError,
    Counts,
    Target,
    Tls,
    install,
    read_counts,
    read_plans,
)
from controller.entities import Plan
from controller.keeper import Keeper
from controller.reports import Report, ReportError, decode
from controller.routes import NextHop, Route, routes_of
from controller.series import Sample, Series
from controller.settings import (
    Buffer,
    Ecn,
    LinkSpec,
    LoadBalancing,
    Loss,
    Pfc,
    Policy,
    Remedy,
    Rule,
    Settings,
    SettingsError,
    Telemetry,
    Watchdog,
)
from controller.tables import plan_of, plans_of
from controller.wire import to_finsy

__all__ = [
    "Buffer",
    "ControllerError",
    "Counts",
    "Ecn",
    "Keeper",
    "LinkSpec",
    "LoadBalancing",
    "Loss",
    "NextHop",
    "Pfc",
    "Plan",
    "Policy",
    "Remedy",
    "Report",
    "ReportError",
    "Route",
    "Rule",
    "Sample",
    "Series",
    "Settings",
    "SettingsError",
    "Target",
    "Telemetry",
    "Tls",
    "Watchdog",
    "decode",
    "install",
    "plan_of",
    "plans_of",
    "read_counts",
    "read_plans",
    "routes_of",
    "to_finsy",
]
